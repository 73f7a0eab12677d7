"""The micro-ops that the sanitizer adds to a kernel: shadow checks before accesses, reports of synchronisation.

Reads of arrays that the kernel never writes cannot race, so they have no check; synchronisation through memory is
followed only in kernels that have a fence, an acquire or a release, since nothing else orders threads that way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
    BulkReport, BulkShadowCheck, CopyBegin, CopyCommit, CopyWait, EpochArrive, EpochBarrier, EpochBegin,
    EpochWarpBarrier, ShadowCheck, SyncAccess, SyncBarrier, SyncBarrierEnd, SyncInstruction, SyncMbarrier,
    TensorReadCheck, TensorShadowCheck,
)
from ..instructions.lowering import Lowering
from ..instructions.memory import private_of
from ..instructions.operand_classes import OperandClass
from ..instructions.operands import NOTHING, Field, raw
from ..instructions.tensor_copies import is_tensor_copy
from ..instructions.tensor_transfers import cells_of, place_of
from ..machine.address_spaces import AddressSpaces
from ..machine.shadow import STORED, UPDATED, Role, statement_bits
from ..machine.sync_graph import Does
from ..rewrite.deferred_loads import reads_cells
from ..rewrite.definedness import Definedness, check_definedness
from .covered_loads import covered
from .proxy_instrumentation import ProductRegisters, ProxyInstrumentation
from .proven_accesses import NOTHING_PROVEN, Proven, Refuted, same_statements, upheld
from .uses import Values, trusting
from .accesses import (
    action_of, bulk_accesses, checked_access, copy_groups, does, granularity, granule_of, holds_orders, is_of_tile,
    is_tile_product, role_of, strength, synchronise,
)

__all__ = ["Checks", "Instrumentation", "instrumented"]

_PRED = TYPES["pred"]
MOST_WRITTEN = 4
"""Arrays that an access is compared with where it is not known which one it is to."""


class Checks(NamedTuple):
    """Which checks are on, and what the launch requires of them.

    ``overlap``: arrays share memory, so provenance does not say what writes to it. ``unwritten``: the host has left
    memory uninitialised. ``proven``: what needs no check.
    """

    race: bool
    init: bool
    overlap: bool
    unwritten: bool
    order: bool
    cas: bool
    proven: Proven = NOTHING_PROVEN


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


class Instrumentation:
    """Adds the sanitizer's micro-ops to those of one function."""

    def __init__(self, low: Lowering, checks: Checks, definedness: Definedness) -> None:
        self.low, self.checks, self.definedness = low, checks, definedness
        low.defers = False
        self.granule = granule_of(low.function)
        self.copy_groups = copy_groups(low.function) if checks.init else -1
        instructions = [(place, s) for place, s in enumerate(low.graph.statements) if isinstance(s, Instruction)]
        self.follows = checks.race and synchronise([s.form for _, s in instructions])
        """Whether synchronisation through memory is followed."""
        self.clustered = any(s.form.effects.barrier == "cluster" for _, s in instructions)
        self.meets = self.clustered and self._arrive_and_wait(instructions)
        """Whether threads do nothing between their arrival at a barrier of the cluster and the end of its phase."""
        self.values = Values(low.graph)
        self.upheld = upheld(checks.proven, low.spaces, self._origin, definedness.flags)
        self.handed = self._handed_over(instructions) if checks.order else set()
        self.confirmed = self._confirmed(instructions) if checks.race and not checks.cas else set()
        pairs = [pair for basic_block in low.graph.blocks for pair in covered(low, basic_block)]
        self.covered, self.updates = {load for load, _ in pairs}, {store for _, store in pairs}
        barriers = [s.form.effects for _, s in instructions if s.form.effects.barrier == "block"]
        self.partial_barriers = not all(effects.waits for effects in barriers)
        x, y, z = low.block
        self.threads = -(-x * y * z // 32) * 32
        self.barriers_only = not self.follows and not self.handed and all(self._orders_all(s) for _, s in instructions)
        self.reach = same_statements(checks.proven.reach, low.spaces)
        """Accesses that are to shared memory of the cluster."""
        self.read: set[str] | None = set()
        self.written: set[str] | None = set()
        for place, statement in instructions:
            access = checked_access(statement.form)
            if access is not None and access.space != "local":
                if access.writes:
                    self.written = self._with(self.written, statement)
                elif place not in self.covered:
                    self.read = self._with(self.read, statement)
            for access in bulk_accesses(statement.form):
                known = access.kind != "tensor"  # the map says which array, when it is executed
                if access.writes:
                    self.written = self._with(self.written, statement, access.operand) if known else None
                if access.reads:
                    self.read = self._with(self.read, statement, access.operand) if known else None
            if is_tile_product(statement.form):
                self.read = None
        waited = any(bulk_accesses(s.form) and s.form.effects.completes == "mbarrier" for _, s in instructions)
        self.mbarriers = checks.race and self._follows_mbarriers([s for _, s in instructions])
        """Whether compiled code follows mbarriers and barriers of some warps or lanes, rather than Python."""
        self.proxies: ProxyInstrumentation | None = None
        if self.mbarriers and granularity(low.spaces).followed:
            self.proxies = ProxyInstrumentation(low, self.granule, checks.init, self.copy_groups >= 0)
            self.barriers_only = False
        self.registers = ProductRegisters(low) if granularity(low.spaces).proxies else None
        self.bulk_stores = any(
            s.form.effects.completes == "bulk_group" and bulk_accesses(s.form)[0].kind != "tensor"
            for _, s in instructions if bulk_accesses(s.form)
        )
        """Whether bulk copies of groups write global memory, which Python follows."""
        self.bulk = checks.init and waited and self.proxies is None
        """Whether Python follows which bulk copies are complete."""
        if checks.overlap:
            self.written = self.read = None
        self.accesses = {
            place: self._needs(place, s, access) for place, s in instructions
            if (access := checked_access(s.form)) is not None
        }
        """Whether an access is checked, for races and for being initialised."""
        self.followed = {place for place, needs in self.accesses.items() if any(needs)}
        self._leave_out()
        copies = [each for _, s in instructions for each in self._bulk_needs(s)]
        mbarriers = checks.race and any(a.kind == "mbarrier" for _, s in instructions for a in s.form.effects.accesses)
        self.races = mbarriers or self.proxies is not None or bool(self.handed)
        self.races = self.races or any(race for race, _ in (*self.accesses.values(), *copies))
        """Whether anything asks for the order of threads."""
        self.checked = any(any(needs) for needs in (*self.accesses.values(), *copies)) or self.races
        self.checked = self.checked or (self.registers is not None and bool(self.registers.hazards))

    def _arrive_and_wait(self, instructions: list[tuple[int, Instruction]]) -> bool:
        """Whether each arrival at a barrier of the cluster releases, and the wait for its end comes next."""
        barriers = {place: s for place, s in instructions if s.form.effects.barrier == "cluster"}
        blocks = self.low.graph.blocks
        ways = [number for block in blocks for number in block.successors]
        met = {each.start for number, each in enumerate(blocks) if ways.count(number) > 1}
        for place, statement in barriers.items():
            arrives = not statement.form.effects.waits
            other = barriers.get(place + 1 if arrives else place - 1)
            if other is None or bool(other.form.effects.waits) is not arrives or (place + arrives) in met:
                return False
            if statement.guard is not None or (arrives and statement.form.effects.order == "relaxed"):
                return False
        return True

    def _needs(self, place: int, statement: Instruction, access: Access) -> tuple[bool, bool]:
        """Whether an access may race, and whether it may be one to memory that is not initialised."""
        checks, origin = self.checks, self._origin(statement)
        race = checks.race and access.space != "local" and (access.writes or self._may_be_written(origin))
        init = checks.init and (self._is_private(access.space, origin) is not False or checks.unwritten)
        return race and place not in self.covered, init

    def _bulk_needs(self, statement: Instruction) -> list[tuple[bool, bool]]:
        """The same of the ends of a bulk copy, the source first."""
        found = []
        for access in bulk_accesses(statement.form)[::-1]:
            checks, origin = self.checks, self._origin(statement, access.operand)
            race = checks.race and (access.writes or self._may_be_written(origin))
            init = checks.init and (self._is_private(access.space, origin) is not False or checks.unwritten)
            found.append((race, init))
        return found

    def _follows_mbarriers(self, instructions: list[Instruction]) -> bool:
        """Whether mbarriers of this block, and barriers of it, of some warps or of lanes, are what orders threads."""
        if self.low.spaces.cluster not in (None, (1, 1, 1)) or not holds_orders([s.form for s in instructions]):
            return False
        if granularity(self.low.spaces).followed:
            return True
        found = any(a.kind == "mbarrier" for s in instructions for a in s.form.effects.accesses)
        some = any(s.form.effects.barrier == "block" and not self._is_of_block(s) for s in instructions)
        return found or some or any(is_of_tile(statement) for statement in instructions)

    def _leave_out(self) -> None:
        """Check nothing that is proven."""
        ordered, written, _ = self.upheld
        for place, (race, init) in self.accesses.items():
            if self.proxies is not None and self._is_shared(place):
                continue  # what wgmma reads is in no proof
            number = id(self.low.graph.statements[place])
            self.accesses[place] = race and number not in ordered, init and number not in written
        if self.proxies is None and not any(init and self._finds_copies(self.low.graph.statements[place])
                                            for place, (_, init) in self.accesses.items()):
            self.copy_groups = -1

    def _is_shared(self, place: int) -> bool:
        """Whether an access may be one to shared memory."""
        statement: Any = self.low.graph.statements[place]
        access = checked_access(statement.form)
        return access is not None and self._is_private(access.space, self._origin(statement)) is not False

    def between_blocks(self, statement: Instruction, access: Access) -> tuple[str, bool] | None:
        """The array of an access that other blocks may reach, "" if it is not known, and whether it may race there."""
        origin = self._origin(statement, access.operand)
        if self._is_private(access.space, origin):
            return None
        race = (access.writes or self._may_be_written(origin)) and id(statement) not in self.upheld.ordered
        return origin if origin in self.low.spaces.entries else "", race

    def _finds_copies(self, statement: Any) -> bool:
        """Whether an access may read what an asynchronous copy writes."""
        access = checked_access(statement.form)
        if access is None or not access.reads:
            return False
        return self._is_private(access.space, self._origin(statement)) is not False

    def _confirmed(self, instructions: list[tuple[int, Instruction]]) -> set[int]:
        """The weak loads whose value a compare-and-swap of the same array confirms."""
        found = set()
        for place, statement in instructions:
            access = checked_access(statement.form)
            if access is None or access.writes or strength(statement.form):
                continue
            swaps = (self.low.graph.statements[swap] for swap in self.values.confirms(place))
            origin = self._origin(statement)
            if any(isinstance(swap, Instruction) and self._origin(swap) == origin for swap in swaps):
                found.add(place)
        return found

    def _handed_over(self, instructions: list[tuple[int, Instruction]]) -> set[int]:
        """The strong accesses by which data may be handed over without an order (:mod:`.hand_over`)."""
        strong = {place: s for place, s in instructions if (a := checked_access(s.form)) is not None
                  and strength(s.form) and a.space != "local" and id(s) not in self.upheld.in_turn}
        reads = {place: s for place, s in strong.items() if s.form.effects.reads}
        uses = {place: self.values.uses(place) for place in reads}
        choosing = {place for place, use in uses.items() if use.chooses or use.addresses}
        trusts = {place for place, s in reads.items() if trusting(self.values, place, s.form.effects.access)}
        stores = {self._origin(s) for s in strong.values() if not s.form.effects.reads}
        in_step = {place for place in trusts if uses[place].stored and not uses[place].chooses
                   and self._origin(reads[place]) in stores}
        trusts = {place for place in trusts if choosing - {place}}
        if not trusts:  # read-modify-writes count only where somebody sees what they have written
            choosing, strong = set(), {p: s for p, s in strong.items() if not s.form.effects.atomic}
        trusts |= in_step
        if not trusts:
            return set()
        origins = {self._origin(reads[place]) for place in trusts | choosing}
        known = self.low.spaces.entries
        if not all(origin in known for origin in origins):
            return set(strong)
        return {place for place, s in strong.items() if (o := self._origin(s)) in origins or o not in known}

    def _with(self, names: set[str] | None, statement: Instruction, operand: int | None = None) -> set[str] | None:
        """The names with that of the array which an instruction accesses; None for all, where it is not known."""
        origin = self._origin(statement, operand)
        if id(statement) in self.reach and names is not None:
            return names | self.low.spaces.shared
        return None if names is None or origin not in self.low.spaces.entries else names | {origin}

    def _orders_all(self, statement: Instruction) -> bool:
        """Whether a statement orders no threads, or all threads of the block."""
        effects = statement.form.effects
        if effects.barrier == "block":
            return self._is_of_block(statement)
        return not effects.barrier and not any(access.kind == "mbarrier" for access in effects.accesses)

    @staticmethod
    def _address(statement: Instruction) -> Address:
        return next(operand for operand in statement.operands if isinstance(operand, Address))

    def _origin(self, statement: Instruction, operand: int | None = None) -> str:
        address = self._address(statement) if operand is None else statement.operands[operand]
        return self.low.origin(address.base) if isinstance(address, Address) else ""

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
        elif (race or self.bulk) and not effects.commits and any(a.kind == "mbarrier" for a in effects.accesses):
            self._mbarrier(statement)
            low.statement(statement)
        else:
            if (race and effects.barrier == "cluster") or (self.follows and effects.fence == "threads"):
                self._report(statement)
            low.statement(statement)

    def _by_proxy(self, statement: Instruction) -> bool:
        """Emit a statement that begins, completes or orders accesses by the async proxy; False for others."""
        low, effects, proxies = self.low, statement.form.effects, self.proxies
        of_products = "wgmma_group" in (effects.commits, effects.waits)
        if proxies is None:
            if self.registers is None or not of_products:
                return False
            low.statement(statement)
            self.registers.group(statement)
        elif is_tile_product(statement.form):
            proxies.product(statement)
            low.statement(statement)
        elif of_products or "bulk_group" in (effects.commits, effects.waits):
            if self.bulk_stores and not of_products:
                self._report(statement)
            low.statement(statement)
            proxies.group(statement)
        elif effects.fence in ("proxies", "mbarrier_init"):
            low.statement(statement)
            proxies.fence(statement)
        elif effects.commits == "tcgen05_commit":
            self._mbarrier(statement)
            low.statement(statement)
        else:
            return False
        return True

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

    def _guard(self, statement: Instruction) -> Field:
        return self.low.operands.guard(statement)

    def _report_access(self, statement: Instruction, nbytes: int, address: Address | None = None) -> None:
        """Report what lies at an address of an instruction, the first one where it is not given."""
        space = "" if address is None else "shared"
        kind, _, place = self.low.address(statement, address or self._address(statement), nbytes, True, space)
        guard = self._guard(statement)
        op = SyncAccess(kind, nbytes, True, guard.kind, False, False, 0, NOTHING.kind, 0)
        self.low.emit(op, lane_by_lane(kind, place), guard)

    def _mbarrier(self, statement: Instruction) -> None:
        if not self.mbarriers:
            self._report_access(statement, 8)
            return
        if self.proxies is not None:
            self.proxies.mbarrier(statement, self._address(statement))
        if not action_of(statement.form):
            return
        kind, _, place = self.low.address(statement, self._address(statement), 8, True)
        guard = self._guard(statement)
        op = SyncMbarrier(kind, action_of(statement.form), guard.kind)
        self.low.emit(op, lane_by_lane(kind, place), guard, raw("i", statement_bits(self.low.place)))

    def _report(self, statement: Instruction, converged: bool = False) -> None:
        """Report an instruction; ``converged``: only if all lanes of the warp execute it."""
        guard, effects = self._guard(statement), statement.form.effects
        logged = effects.fence == "threads" or effects.barrier == "cluster"
        self.low.emit(SyncInstruction(guard.kind, converged, logged, does(statement.form) if logged else 0, self.meets),
                      guard)

    def _barrier(self, statement: Instruction) -> None:
        low, guard = self.low, self._guard(statement)
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

    def _is_of_block(self, statement: Instruction) -> bool:
        """Whether a barrier is for all threads of the block."""
        count = statement.operand("b")
        if not statement.form.effects.waits:
            return False
        return count is None or (not self.partial_barriers and getattr(count, "bits", None) == self.threads)

    def _check(self, statement: Instruction) -> None:
        low, form = self.low, statement.form
        access = checked_access(form)
        assert access is not None
        role, level, nbytes = role_of(access), 3 if low.place in self.confirmed else strength(form), access.nbytes
        origin, local = self._origin(statement), access.space == "local"
        private = self._is_private(access.space, origin)
        race, init = self.accesses[low.place]
        if low.place not in self.followed:
            return
        if private is None and access.space == "shared" and origin in low.spaces.entries and self.copy_groups < 0:
            private = False  # the other blocks of the cluster reach it too
        logs = (self.follows and strength(form) and not local) or low.place in self.handed
        kind, pattern, place = low.address(statement, self._address(statement), nbytes, access.writes)
        if not race and not init:
            if logs:
                self._log(statement, access, kind, lane_by_lane(kind, place))
            return
        alone = private_of(low, access.space, self._address(statement))
        meets = access.writes and segments_overlap(pattern, place, nbytes, low.present)
        if role == Role.ATOMIC or alone or meets:
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
            race and self.meets and not private,
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
            if not race and not tracks:
                continue
            level = strength(statement.form) if role == Role.ATOMIC else 0
            place, found = raw("i", statement_bits(low.place)), hosts(low, access.operand)
            if access.kind == "tensor":
                shape, offsets, kinds, fields = tensor_copies.taken(low, statement)
                init = tracks and access.reads
                check = TensorShadowCheck(
                    role, level, self.granule, race, init, shape, offsets, kinds, same, guard.kind
                )
                low.emit(check, guard, *fields, *identity, place)
                continue
            op = BulkShadowCheck(role, level, self.granule, race, tracks and access.reads, size.kind, same, guard.kind)
            low.emit(op, guard, size, found, *identity, place)
            fills = self.bulk and completes == "mbarrier" and role == Role.WRITE
            if fills or (race and completes == "bulk_group"):
                low.emit(BulkReport(not access.writes, size.kind, guard.kind), guard, size, found)
        if completes == "mbarrier" and (self.races or self.bulk) and self.proxies is None:
            self._report_access(statement, 8, statement.operand("mbar"))
        copy.move(low, statement)

    def _may_be_written(self, origin: str) -> bool:
        """Whether the kernel may write what an address of this provenance reads."""
        if self.written is None or origin in self.written:
            return True
        return bool(self.written) and origin not in self.low.spaces.entries

    def _is_private(self, space: str, origin: str) -> bool | None:
        """Whether memory is reached by one block (True) or by all (False); None where that is not known."""
        if space != "global" and self.low.spaces.cluster not in (None, (1, 1, 1)):
            return None
        if space in ("shared", "global"):
            return space == "shared"
        number = self.low.spaces.entries.get(origin)
        if space == "local" or number is None or number in self.low.spaces.locals:
            return None
        guarded = self.low.spaces.ranges[number]
        return guarded is not None and guarded.shared
