"""The micro-ops that the sanitizer adds to a kernel: shadow checks before accesses, reports of synchronisation."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import Address, Call, Immediate, Instruction, Register
from ...isa.effects import Access
from ...types import TYPES
from ..analysis.divergence import UNIFORM, Shape3
from ..codegen.code import Code
from ..codegen.translation import translate
from ..instructions.addresses import lane_by_lane, segment_starts, segments_overlap
from ..instructions import bulk_copies, tensor_copies
from ..instructions.bulk_copies import hosts
from ..instructions.instrumentation import (
    BulkGroup, BulkReport, BulkShadowCheck, CopyBegin, CopyCommit, CopyWait, EpochArrive, EpochBarrier, EpochBegin,
    EpochWarpBarrier, ShadowCheck, SyncAccess, SyncBarrier, SyncBarrierEnd, SyncInstruction, SyncMbarrier,
    TensorReadCheck, TensorShadowCheck,
)
from ..instructions.lowering import Lowering
from ..instructions.memory import private_of
from ..instructions.mbarrier import HELD
from ..instructions.operand_classes import PREDICATE, OperandClass
from ..instructions.operands import NOTHING, Field, raw
from ..instructions.tensor_copies import is_tensor_copy
from ..instructions.tensor_cores.tensor_transfers import cells_of, place_of
from ..machine.address_spaces import AddressSpaces
from ..machine.proxy_shadow import Kinds
from ..machine.shadow import STORED, UPDATED, Role, statement_bits
from ..machine.sync_graph import Does
from ..rewrite.deferred_loads import reads_cells
from ..rewrite.definedness import Definedness, check_definedness
from .proven_accesses import Refuted
from .uses import trusting
from .accesses import (
    action_of, bulk_accesses, checked_access, does, fence_kinds, is_of_core, is_of_tile, is_tile_product, role_of,
    strength,
)
from .needs import Checks, Needs

__all__ = ["Instrumentation", "instrumented"]

_PRED = TYPES["pred"]
MOST_WRITTEN = 4
"""Arrays that an access is compared with where it is not known which one it is to."""


def instrumented(
    spaces: AddressSpaces, block: Shape3, conservative: bool, checks: Checks, wraps: set[int],
    asked: Callable[[Instrumentation], object],
) -> Code | None:
    """A kernel lowered with the checks of the sanitizer; None where it needs none.

    What is ``asked`` of the instrumentation is among the notes of the code.
    """
    made = Definedness(spaces.function, {}, frozenset())
    if checks.init:
        made = check_definedness(spaces.function, checks.unwritten, checks.proven.written)
    answers: list[object] = []

    def instrument(low: Lowering) -> Instrumentation:
        found = Instrumentation(low, checks, made)
        answers.append(asked(found))
        return found

    try:
        code = translate(made.function, spaces, block, conservative, instrument, wraps=wraps)
    except Refuted as error:
        return instrumented(spaces, block, conservative, checks._replace(proven=error.remains), wraps, asked)
    own = made.function is not spaces.function
    code.instrumented = own or any(placed.op.instrumentation for placed in code.micro_ops)
    code.notes[Instrumentation] = answers[0]
    return code if code.instrumented else None


class Instrumentation(Needs):
    """Adds the sanitizer's micro-ops to those of one function."""

    def begin(self) -> None:
        """Emit the micro-op with which a warp begins a block."""
        if self.checked:
            self.low.emit(EpochBegin())

    def statement(self, statement: Instruction | Call) -> None:
        """Emit the micro-ops of a statement, its checks before it and its synchronisation around it."""
        low = self.low
        self._tensor_read(statement)
        if isinstance(statement, Call) or not self.checked:
            low.statement(statement)
            return
        if self.registers is not None:
            self.registers.before(statement)
        if checked_access(statement.form) is not None:
            self._check(statement)
            low.statement(statement)
            if self.proxies is not None:
                self.proxies.fence(statement)
        elif bulk_accesses(statement.form):
            self._bulk(statement)
        elif not self._by_proxy(statement) and not self._by_barrier(statement):
            self._other(statement)

    def _by_barrier(self, statement: Instruction) -> bool:
        """Emit a barrier of block or warp, or a wait for one of the cluster; False for others."""
        low, effects = self.low, statement.form.effects
        if not self.races:
            return False
        if effects.barrier == "block":
            self._barrier(statement)
        elif effects.barrier == "warp":
            low.statement(statement)
            members, guard = low.operands.source(statement.operands[0], 32, False, statement), self._guard(statement)
            tile = self.mbarriers and is_of_tile(statement)
            low.emit(EpochWarpBarrier(guard.kind, members.kind, tile), guard, members)
        elif effects.barrier == "cluster" and effects.waits:
            low.statement(statement)
            self._report(statement)
        else:
            return False
        return True

    def _other(self, statement: Instruction) -> None:
        low, race, init, effects = self.low, self.races, self.checks.init, statement.form.effects
        if init and self.copy_groups >= 0 and effects.completes == "async_group":
            self._copy(statement)
        elif init and ("async_group" in (effects.commits, effects.waits) or effects.commits == "mbarrier"):
            self._copy_group(statement)
        elif race and "bulk_group" in (effects.commits, effects.waits):
            self._report(statement)
            low.statement(statement)
            self._bulk_group(statement)
        elif (race or self.bulk) and not effects.commits and any(a.kind == "mbarrier" for a in effects.accesses):
            self._at_mbarrier(statement)
        else:
            if (race and effects.barrier == "cluster") or (self.follows and effects.fence == "threads"):
                self._report(statement)
            low.statement(statement)

    def _by_proxy(self, statement: Instruction) -> bool:
        """Emit a statement that begins, completes or orders accesses by the async proxy; False for others."""
        low, effects, proxies = self.low, statement.form.effects, self.proxies
        of_products = "wgmma_group" in (effects.commits, effects.waits)
        if proxies is None:
            return self._reported(statement, of_products)
        if proxies.core_fences and proxies.core(statement):
            return True
        if is_tile_product(statement.form):
            proxies.product(statement)
            low.statement(statement)
        elif is_of_core(statement.form):
            proxies.of_core(statement)
        elif of_products or "bulk_group" in (effects.commits, effects.waits):
            low.statement(statement)
            proxies.group(statement)
            if not of_products:
                self._bulk_group(statement)
        elif effects.fence in ("proxies", "mbarrier_init"):
            low.statement(statement)
            proxies.fence(statement)
        elif (self.grouped or self.counted) and effects.control in ("exit", "return"):
            proxies.end(statement, self.grouped, self.counted)
            low.statement(statement)
        elif effects.commits == "tcgen05_commit":
            self._mbarrier(statement)
            proxies.commit(statement, self._address(statement))
            low.statement(statement)
        else:
            return False
        return True

    def _reported(self, statement: Instruction, of_products: bool) -> bool:
        """The same where Python follows these accesses."""
        low, fence = self.low, fence_kinds(statement.form)
        if of_products and self.registers is not None:
            low.statement(statement)
            self.registers.group(statement)
            if self.reports:
                self._report(statement)
        elif self.reports and is_tile_product(statement.form):
            self._report(statement)
            low.statement(statement)
        elif self._is_reported_behind(statement, fence):
            low.statement(statement)
            self._report(statement)
        elif self.reports and self.grouped and statement.form.effects.control in ("exit", "return"):
            self._report(statement)
            low.statement(statement)
        else:
            return False
        return True

    def _is_reported_behind(self, statement: Instruction, fence: int) -> bool:
        if self.reports and is_of_core(statement.form):
            return True
        return bool(self.fenced_mbarriers and fence & Kinds.MBARRIER) or bool(self.reports and fence)

    def _copy(self, statement: Instruction) -> None:
        """``cp.async``, behind the stores that stand for it."""
        size, space = statement.operand("size"), "shared"
        assert isinstance(size, Immediate)
        kind, pattern, place = self.low.address(statement, self._address(statement), size.bits, True, space)
        private = self._is_private(space, self._origin(statement))
        guard = self._guard(statement)
        self.low.emit(CopyBegin(private, kind, pattern, size.bits, self.granule, guard.kind), place, guard)

    def _copy_group(self, statement: Instruction) -> None:
        """The end of a group of copies, or a wait; an arrival at an mbarrier comes when all copies are complete."""
        groups, guard, effects = max(0, self.copy_groups), self._guard(statement), statement.form.effects
        if self.copy_groups < 0:
            return
        if effects.commits == "async_group":
            self.low.emit(CopyCommit(groups, guard.kind), guard)
            return
        last = statement.operands[0] if effects.waits and statement.operands else None
        left = min(groups, last.bits) if isinstance(last, Immediate) else -1
        self.low.emit(CopyWait(groups, left, guard.kind), guard)

    def _bulk_group(self, statement: Instruction) -> None:
        """Behind what commits a bulk group, or waits until groups have written global memory."""
        effects, guard = statement.form.effects, self._guard(statement)
        last = statement.operands[0] if effects.waits else None
        left = last.bits if isinstance(last, Immediate) else 0
        if self.grouped and "read" not in statement.form.tokens:
            self.low.emit(BulkGroup(bool(effects.commits), left, guard.kind), guard)

    def _guard(self, statement: Instruction) -> Field:
        return self.low.operands.guard(statement)

    def _report_access(
        self, statement: Instruction, nbytes: int, address: Address | None = None, guard: Field | None = None
    ) -> None:
        """Report what lies at an address of an instruction, the first one where it is not given."""
        space = "" if address is None else "shared"
        kind, _, place = self.low.address(statement, address or self._address(statement), nbytes, True, space)
        guard = guard or self._guard(statement)
        op = SyncAccess(kind, nbytes, True, guard.kind, False, False, 0, NOTHING.kind, 0)
        self.low.emit(op, lane_by_lane(kind, place), guard)

    def _at_mbarrier(self, statement: Instruction) -> None:
        """An operation on an mbarrier; a wait counts behind it, in lanes to which it says that the phase is over."""
        low = self.low
        if not statement.form.effects.waits:
            self._mbarrier(statement)
            low.statement(statement)
            return
        low.statement(statement)
        result = statement.operands[0]
        if isinstance(result, Register) and result.name in low.registers.liveness.after(low.place):
            self._mbarrier(statement, Field(PREDICATE, "i", (low.slot(HELD, 4),)))

    def _mbarrier(self, statement: Instruction, guard: Field | None = None) -> None:
        guard = guard or self._guard(statement)
        if not self.mbarriers:
            self._report_access(statement, 8, None, guard)
            return
        if self.proxies is not None:
            self.proxies.mbarrier(statement, self._address(statement), guard)
        if not action_of(statement.form):
            return
        kind, _, place = self.low.address(statement, self._address(statement), 8, True)
        op = SyncMbarrier(kind, action_of(statement.form), guard.kind)
        self.low.emit(op, lane_by_lane(kind, place), guard, raw("i", statement_bits(self.low.place)))

    def _report(self, statement: Instruction, converged: bool = False) -> None:
        """Report an instruction; ``converged``: only if all lanes of the warp execute it."""
        guard, effects = self._guard(statement), statement.form.effects
        logged = effects.fence == "threads" or effects.barrier == "cluster"
        done = does(statement.form) if logged else 0
        self.low.emit(SyncInstruction(guard.kind, converged, logged, done, self.waits_at_once), guard)

    def _barrier(self, statement: Instruction) -> None:
        low, guard = self.low, self._guard(statement)
        if low.place in self.unneeded_barriers:
            low.statement(statement)
            return
        if self._is_of_block(statement):
            low.emit(EpochArrive())
            low.statement(statement)
            low.emit(EpochBarrier(guard.kind), guard)
            return
        waits = bool(statement.form.effects.waits)
        if not self.mbarriers:
            self._report(statement, True)
        else:
            number, threads = (low.read(statement, statement.operand(name)) for name in "ab")
            low.emit(SyncBarrier(waits, guard.kind, number.kind, threads.kind), guard, number, threads)
        low.statement(statement)
        if waits and self.mbarriers:
            low.emit(SyncBarrierEnd(guard.kind), guard)
        elif waits:
            self._report(statement)

    def _check(self, statement: Instruction) -> None:
        low, form = self.low, statement.form
        access = checked_access(form)
        assert access is not None
        role, level, nbytes = role_of(access), 3 if low.place in self.confirmed else strength(form), access.nbytes
        origin = self._origin(statement)
        private = self._is_private(access.space, origin)
        race, init = self.accesses[low.place]
        if low.place not in self.followed:
            return
        if private is None and access.space == "shared" and origin in low.spaces.entries and self.copy_groups < 0:
            private = False  # the other blocks of the cluster reach it too
        logs = self._is_logged(low.place, form, access)
        kind, pattern, place = low.address(statement, self._address(statement), nbytes, access.writes)
        if not race and not init:
            if logs:
                self._log(statement, access, kind, lane_by_lane(kind, place))
            return
        alone = private_of(low, access.space, self._address(statement))
        overlap = access.writes and segments_overlap(pattern, place, nbytes, low.present)
        if role == Role.ATOMIC or alone or overlap:
            place, pattern = lane_by_lane(kind, place), None
        guard = self._guard(statement)
        values = [o for o, spec in zip(statement.operands, form.operands) if spec.kind == "value"]
        items = [item for value in values for item in getattr(value, "items", (value,))]
        stores = role == Role.WRITE
        same_value = stores and low.place not in self.updates
        same_value = same_value and all(low.operands.lane_offsets(item) is UNIFORM for item in items)
        compared = race and stores and form.type is not None and len(items) * form.type.bits == 8 * nbytes
        bits = form.type.bits if form.type is not None and compared else 0
        sources = [low.operands.source(item, bits, False, statement) for item in items] if compared else []
        defers = init and (id(statement) in self.definedness.deferred or id(statement) in self.definedness.flags)
        flags = self._flags(statement, role) if defers else ()
        readers = self.read is None or origin not in low.spaces.entries or origin in self.read
        folded = kind.affine and pattern is not None and pattern[0] == "c" and pattern[1] < 32
        folded = folded and low.present > pattern[1] and not any(segment_starts(kind, place))  # type: ignore[index]
        apart = self._written_entries(origin) if role == Role.READ and not init and access.space == "global" else []
        op = ShadowCheck(
            role, level, same_value, private, kind, pattern, nbytes, self.granule, guard.kind, race, init, readers,
            self.barriers_only, folded, init and access.reads and self.copy_groups >= 0 and private is not False,
            tuple(source.kind for source in sources), bits, defers, tuple(flag is not None for flag in flags),
            self.mbarriers and private is not None, race and (self.follows or self.clustered), alone, len(apart),
            race and self.waits_at_once and not private,
            bool(private) and access.space == "shared" and origin not in low.spaces.entries,
        )
        marks = (STORED if stores else 0) | (UPDATED if low.place in self.updates else 0)
        last = raw("i", statement_bits(low.place) | marks)
        low.emit(op, place, guard, *sources, *filter(None, flags), *(raw("i", each) for each in apart), last)
        if logs:
            self._log(statement, access, kind, lane_by_lane(kind, place))

    def _written_entries(self, origin: str) -> list[int]:
        """The arrays that an access to an unknown one may race in; none where that is not known."""
        entries = self.low.spaces.entries
        if self.written is None or origin in entries or len(self.written) > MOST_WRITTEN:
            return []
        found = [self.low.spaces.entry(name, "global") for name in sorted(self.written)]
        return [number for number, known in found if known]

    def _log(self, statement: Instruction, access: Access, kind: OperandClass, place: Field) -> None:
        """Note an access by which threads synchronise, or hand data over."""
        low, form = self.low, statement.form
        guard, bits, stored = self._guard(statement), 0, NOTHING
        if low.place in self.handed and access.writes:
            bits = min(form.type.bits if form.type is not None else 32, 64)
            if not access.reads:
                value = statement.operands[1 - access.operand]
                stored = low.operands.source(getattr(value, "items", (value,))[0], bits, False, statement)
        what = does(form) | (Does.NOTES if self.checks.order else 0)
        if self.checks.order and trusting(self.values, low.place, access):
            what |= Does.TRUSTS
        elif not access.writes and not self.synchronises:  # there is nothing to acquire
            what = 0
        op = SyncAccess(kind, access.nbytes, access.writes, guard.kind, True, access.reads, bits, stored.kind, what)
        low.emit(op, place, guard, *([stored] if stored is not NOTHING else []))

    def _tensor_read(self, statement: Instruction | Call) -> None:
        """Before a load of tensor memory, of which cells may not have been written."""
        loads = isinstance(statement, Instruction) and reads_cells(statement.form)
        if not isinstance(statement, Instruction) or not loads or id(statement) not in self.definedness.deferred:
            return
        low, cells, registers = self.low, cells_of(statement), self.low.registers
        live = registers.liveness.after(low.place)
        names = self.definedness.flags[id(statement)]
        flags = [registers.offsets[name] if name in live else -1 for name in names]
        flags = [-1] * (cells.registers + cells.folded - len(flags)) + flags
        if max(flags) < 0:
            return
        (base, place), guard = place_of(low, statement), self._guard(statement)
        members = low.operands.number(0xFFFFFFFF, 32)
        op = TensorReadCheck(*cells, base.kind, members.kind, guard.kind, low.divergent)
        table, last = raw("q", low.pool.table(flags)), raw("i", statement_bits(low.place))
        low.emit(op, guard, low.priority(), base, place, table, members, last)

    def _flags(self, statement: Instruction, role: int) -> tuple[Field | None, ...]:
        """The predicates that say whether the elements of an access are defined; None of one that has none."""
        registers = self.low.registers
        names = self.definedness.flags[id(statement)]
        if role == Role.READ:  # the predicate of what nobody uses has no place any more
            live = registers.liveness.after(self.low.place)
            return tuple(raw("i", registers.offsets[name]) if name in live else None for name in names)
        return tuple(self.low.operands.source(Register(name, _PRED), 0, False) if name else None for name in names)

    def _bulk(self, statement: Instruction) -> None:
        """A bulk copy: its checks stand between what finds the memory and what moves the bytes."""
        low, completes = self.low, statement.form.effects.completes
        copy = tensor_copies if is_tensor_copy(statement) else bulk_copies
        copy.find(low, statement)
        size, guard = copy.size_of(low, statement), self._guard(statement)
        if self.proxies is not None and completes == "mbarrier":
            self.proxies.completes(statement)
        tensor = next((a.operand for a in bulk_accesses(statement.form) if a.kind == "tensor"), None)
        if self.proxies is not None and tensor is not None:
            self.proxies.map(statement, tensor)
        for access, (race, tracks) in zip(bulk_accesses(statement.form)[::-1], self._bulk_needs(statement)):
            role = role_of(access)
            identity = copy.identity(low, statement) if role == Role.WRITE else ()
            same = tuple(each.kind for each in identity)
            if self.proxies is not None and access.kind != "tensor" and access.space == "shared":
                self.proxies.copied(statement, access.operand, access.writes, size, identity)
                continue
            if self.reports and access.kind != "tensor" and access.space == "shared":
                report = BulkReport(not access.writes, True, size.kind, same, guard.kind)
                low.emit(report, guard, size, hosts(low, access.operand), *identity)
                continue
            if not race and not tracks:
                continue
            level = strength(statement.form) if role == Role.ATOMIC else 0
            grouped = race and access.writes and completes == "bulk_group"
            proxied = race and self.proxies is not None
            place, found = raw("i", statement_bits(low.place)), hosts(low, access.operand)
            if access.kind == "tensor":
                shape, offsets, kinds, fields = tensor_copies.taken(low, statement)
                init = tracks and access.reads
                check = TensorShadowCheck(
                    role, level, self.granule, race, init, shape, offsets, kinds, same, guard.kind, grouped, proxied
                )
                low.emit(check, guard, *fields, *identity, place)
                continue
            init = tracks and access.reads
            op = BulkShadowCheck(role, level, self.granule, race, init, size.kind, same, guard.kind, grouped, proxied)
            low.emit(op, guard, size, found, *identity, place)
            fills = self.bulk and completes == "mbarrier" and role == Role.WRITE
            if fills or (race and completes == "bulk_group" and not grouped):
                low.emit(BulkReport(not access.writes, False, size.kind, (), guard.kind), guard, size, found)
        if completes == "mbarrier" and (self.races or self.bulk) and self.proxies is None:
            self._report_access(statement, 8, statement.operand("mbar"))
        copy.move(low, statement)
