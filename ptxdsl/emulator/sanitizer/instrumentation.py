"""Which records the sanitizer adds to a kernel: a look before every access that could matter, a note at what orders.

Reads of arrays that the kernel writes nowhere cannot race, so they are left alone; synchronisation through memory is
followed only in kernels that have a fence, an acquire or a release, for without one of them nothing is ever ordered so.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ...ir import Address, Call, Function, Instruction, Symbol, Vector
from ...isa import Form
from ..analysis.divergence import UNIFORM, Shape3
from ..instructions.instrumentation import (
    EpochArrive, EpochBarrier, EpochBegin, EpochWarpBarrier, ShadowCheck, SyncAccess, SyncInstruction,
)
from ..instructions.lowering import Code, Lowering, lower
from ..instructions.operands import Field, raw
from ..instructions.threads import COPIES, whole
from ..machine.address_spaces import Spaces
from ..machine.shadow import STATEMENT_SHIFT
from ..rewrite.definedness import check_definedness

__all__ = ["Checks", "Instrumentation", "grain", "instrumented", "scope", "strength"]

_SPACES = ("global", "shared", "generic", "local")
_ORDERS = ("acquire", "release", "acq_rel", "sc")
_ROLES = {"ld": 0, "ldu": 0, "st": 1, "atom": 2, "red": 2}


class Checks(NamedTuple):
    """Which tools are on, and what the launch asks of them.

    ``overlap``: arrays share memory, so a name says nothing about who writes. ``fresh``: some are not initialised.
    """

    race: bool
    init: bool
    overlap: bool
    fresh: bool


def accesses(form: Form) -> bool:
    """Whether an instruction touches memory that threads could share, or that could be uninitialised."""
    return form.opcode in _ROLES and form.space in _SPACES and form.type is not None


@lru_cache(maxsize=256)
def scope(form: Form) -> int:
    """1 where an ordering operation reaches the block, 2 where it reaches the GPU or beyond."""
    return 1 if any(token in form.tokens for token in ("cta", "cluster")) else 2


@lru_cache(maxsize=256)
def strength(form: Form) -> int:
    """0 for a weak access, else its scope."""
    strong = (*_ORDERS, "relaxed", "volatile", "mmio")
    if form.opcode in ("atom", "red") or any(token in form.tokens for token in strong):
        return scope(form)
    return 0


def grain(function: Function) -> int:
    """The size that the kernel's smallest access has, as a power of two: what is kept track of as one."""
    sizes = [
        statement.form.type.bits // 8 for statement in function.body or ()
        if isinstance(statement, Instruction) and accesses(statement.form) and statement.form.type is not None
    ]
    return min(max(1, min(sizes, default=4)), 4).bit_length() - 1


def _orders(statement: Any) -> bool:
    if not isinstance(statement, Instruction):
        return False
    form = statement.form
    if form.opcode in ("fence", "membar"):
        return fences(form)
    return accesses(form) and any(token in form.tokens for token in _ORDERS)


def fences(form: Form) -> bool:
    """Whether a fence orders what threads do, rather than what proxies see."""
    return "proxy" not in form.tokens and "mbarrier_init" not in form.tokens


def _covered(low: Lowering, node: Any) -> Iterator[int]:
    """The loads of a block that a store of the same thread to the same place follows: races with one are with both.

    Accesses that order, and whatever else threads act on each other by, end the search.
    """
    statements, ops = low.graph.statements, low.graph.def_use
    waiting: dict[Any, int] = {}
    for place in range(node.start, node.stop):
        statement = statements[place]
        form = getattr(statement, "form", None)
        if not isinstance(statement, Instruction) or form is None:
            waiting.clear()
            continue
        if accesses(form) and not strength(form) and form.space != "local":
            address = next(operand for operand in statement.operands if isinstance(operand, Address))
            value = next(operand for operand in statement.operands if not isinstance(operand, Address))
            key = (address, statement.guard, form.space, form.type.bits, len(getattr(value, "items", (0,))))
            if _ROLES[form.opcode] == 0:
                waiting[key] = place
            elif key in waiting:
                yield waiting.pop(key)
        elif form.opcode in (*_ROLES, "bar", "barrier", "fence", "membar"):
            waiting.clear()
        changed = {register.name for register in ops[place].writes}
        if changed:
            waiting = {key: n for key, n in waiting.items() if not _mentions(key, changed)}


def _mentions(key: Any, names: set[str]) -> bool:
    address, guard = key[:2]
    guard = getattr(guard, "predicate", guard)
    return getattr(address.base, "name", None) in names or getattr(guard, "name", None) in names


def instrumented(spaces: Spaces, block: Shape3, plain: bool, checks: Checks) -> Code:
    """A kernel lowered with the checks of the sanitizer."""
    function = check_definedness(spaces.function) if checks.init else spaces.function
    return lower(function, spaces, block, plain, partial(Instrumentation, checks=checks))


class Instrumentation:
    """Adds the sanitizer's micro-ops to those of one function."""

    def __init__(self, low: Lowering, checks: Checks) -> None:
        self.low, self.checks = low, checks
        self.grain = grain(low.function)
        statements = low.graph.statements
        self.follows = checks.race and any(_orders(statement) for statement in statements)
        self.covered = {place for node in low.graph.blocks for place in _covered(low, node)}
        self.read: set[str] | None = set()
        self.arrives = any(isinstance(s, Instruction) and s.form.semantics == "bar_arrive" for s in statements)
        x, y, z = low.block
        self.threads = -(-x * y * z // 32) * 32
        self.written: set[str] | None = set()
        self.simple = not self.follows and all(self._simple(statement) for statement in statements)
        for place, statement in enumerate(statements):
            if isinstance(statement, Instruction) and accesses(statement.form) and statement.form.space != "local":
                if _ROLES[statement.form.opcode]:
                    self.written = self._with(self.written, statement)
                elif place not in self.covered:
                    self.read = self._with(self.read, statement)
        if checks.overlap:
            self.written = self.read = None

    def _with(self, names: set[str] | None, statement: Instruction) -> set[str] | None:
        """The names with that of the array which an instruction touches; None for all, where that is not known."""
        origin = self._origin(statement)
        return None if names is None or origin not in self.low.spaces.entries else names | {origin}

    def _simple(self, statement: Any) -> bool:
        """Whether a statement orders nobody, or all threads of the block."""
        meaning = getattr(getattr(statement, "form", None), "semantics", "")
        if meaning in ("bar_sync", "bar_red"):
            return self.everybody(statement)
        return meaning not in ("bar_warp_sync", "bar_arrive", "mbarrier") and not meaning.startswith("barrier_cluster")

    @staticmethod
    def _address(statement: Instruction) -> Address:
        return next(operand for operand in statement.operands if isinstance(operand, Address))

    def _origin(self, statement: Instruction) -> str:
        base = self._address(statement).base
        if isinstance(base, Symbol):
            return self.low.spaces.origins.get(base.symbol, "")
        return self.low.facts.provenance.get(getattr(base, "name", ""), "")

    def begin(self) -> None:
        """Emit the micro-op with which a warp begins a block."""
        self.low.emit(EpochBegin())

    def statement(self, statement: Instruction | Call) -> None:
        """Emit the micro-ops of a statement and its checks."""
        low = self.low
        if isinstance(statement, Call):
            low.statement(statement)
            return
        form = statement.form
        if accesses(form):
            self._access(statement)
            low.statement(statement)
        elif self.checks.race and form.semantics in ("bar_sync", "bar_arrive", "bar_red"):
            self._barrier(statement)
        elif self.checks.init and form.semantics == "cp_async":
            self._touch(statement, 4)
        elif self.checks.init and form.semantics in COPIES:
            self._ask(statement, False)
        elif self.checks.race and form.semantics == "barrier_cluster_arrive":
            self._ask(statement, False)
            low.statement(statement)
        elif self.checks.race and form.semantics == "barrier_cluster_wait":
            low.statement(statement)
            self._ask(statement, False)
        elif self.checks.race and form.opcode == "mbarrier" and form.tokens[0] not in ("pending_count", "check_layout"):
            self._touch(statement)
            low.statement(statement)
        elif self.checks.race and form.semantics == "bar_warp_sync":
            low.statement(statement)
            members, guard = low.operands.source(statement.operands[0], 32, False, statement), self._guard(statement)
            low.emit(EpochWarpBarrier(guard.kind, members.kind), guard, members)
        elif self.follows and form.opcode in ("fence", "membar") and fences(form):
            self._ask(statement, False)
            low.statement(statement)
        else:
            low.statement(statement)

    def _guard(self, statement: Instruction) -> Field:
        return self.low.operands.guard(statement)

    def _touch(self, statement: Instruction, nbytes: int = 8) -> None:
        """Tell Python of what lies at an instruction's first address."""
        kind, _, place = self.low.address(statement, self._address(statement), nbytes, True)
        if kind.affine:
            kind, place = whole(kind, place)
        guard = self._guard(statement)
        self.low.emit(SyncAccess(kind, nbytes, True, guard.kind), place, guard)

    def _ask(self, statement: Instruction, together: bool) -> None:
        guard = self._guard(statement)
        self.low.emit(SyncInstruction(guard.kind, together), guard)

    def _barrier(self, statement: Instruction) -> None:
        low, guard = self.low, self._guard(statement)
        if self.everybody(statement):
            low.emit(EpochArrive())
            low.statement(statement)
            low.emit(EpochBarrier(guard.kind), guard)
            return
        self._ask(statement, True)
        low.statement(statement)
        if statement.form.semantics != "bar_arrive":
            self._ask(statement, False)

    def everybody(self, statement: Instruction) -> bool:
        """Whether a barrier is for all threads of the block."""
        counts = [o for o, spec in zip(statement.operands, statement.form.operands) if spec.name == "b"]
        if statement.form.semantics == "bar_arrive":
            return False
        return not counts or (not self.arrives and getattr(counts[0], "bits", None) == self.threads)

    def _access(self, statement: Instruction) -> None:
        low, checks, form = self.low, self.checks, statement.form
        assert form.type is not None
        role, level = _ROLES[form.opcode], strength(form)
        values = [o for o, spec in zip(statement.operands, form.operands) if spec.kind == "value"]
        count = max([len(value.items) if isinstance(value, Vector) else 1 for value in values], default=1)
        nbytes = form.type.bits // 8 * count
        origin = self._origin(statement)
        own = self._own(form.space, origin)
        local = form.space == "local"
        race = checks.race and not local and (role > 0 or self._may_be_written(origin))
        race = race and low.place not in self.covered
        init = checks.init and (own is not False or checks.fresh)
        if not race and not init:
            return
        kind, pattern, place = low.address(statement, self._address(statement), nbytes, role > 0)
        if role == 2 and kind.affine:
            (kind, place), pattern = whole(kind, place), None
        guard = self._guard(statement)
        same = role == 1 and all(low.operands.known(i) is UNIFORM for v in values for i in getattr(v, "items", (v,)))
        readers = self.read is None or origin not in low.spaces.entries or origin in self.read
        folded = kind.affine and pattern is not None and pattern[0] == "c" and pattern[1] < 32
        folded = folded and not any(place.values[7:])
        op = ShadowCheck(
            role, level, same, own, kind, pattern, nbytes, self.grain, guard.kind, race, init, readers, self.simple,
            folded,
        )
        low.emit(op, place, guard, raw("i", min(low.place, 0x7FFF) << STATEMENT_SHIFT))
        if self.follows and level and not local:
            if kind.affine:
                kind, place = whole(kind, place)
            low.emit(SyncAccess(kind, nbytes, role > 0, guard.kind), place, guard)

    def _may_be_written(self, origin: str) -> bool:
        """Whether the kernel may write what an address of this origin reads."""
        if self.written is None or origin in self.written:
            return True
        return bool(self.written) and origin not in self.low.spaces.entries

    def _own(self, space: str, origin: str) -> bool | None:
        """Whether memory is the block's own (True) or all blocks' (False); None where that is not known."""
        if space != "global" and self.low.spaces.cluster not in (None, (1, 1, 1)):
            return None
        if space in ("shared", "global"):
            return space == "shared"
        number = self.low.spaces.entries.get(origin)
        if space == "local" or number is None:
            return None
        guarded = self.low.spaces.ranges[number]
        return guarded is not None and guarded.shared
