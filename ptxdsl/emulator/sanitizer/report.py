"""The sanitizer's findings: both lines and threads, the element, and how to repair it."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...errors import EmulationError, Loc, PtxWarning, RaceError, UninitializedError
from ...isa import Form
from ..machine.address_spaces import AddressRange
from ..machine.layout import LANES, LOCAL_START, SHARED_START
from ..machine.shadow import EPOCH_SHIFT, PENDING, STATEMENT_SHIFT, Reason, Shadow, WarpClock
from ..machine.unsupported import render
from ..rewrite.definedness import checks_definedness
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.faults import Scene
from ..runtime.memory_faults import element_name
from .accesses import bulk_accesses, checked_access, strength

__all__ = ["Access", "Finding", "Reporter", "raised"]

Index = tuple[int, int, int]
SHOWN = 10
"""Findings that a report spells out."""


@dataclass(frozen=True)
class Access:
    """One side of a finding: what a thread did, and where the kernel says so."""

    verb: str
    block: Index
    thread: Index
    loc: Loc | None
    ptx_line: int | None
    instruction: str

    @property
    def line(self) -> Loc | int | None:
        """The Python line, where there is one, else the line of the PTX."""
        return self.loc or self.ptx_line

    def __str__(self) -> str:
        where = f" at {self.loc}" if self.loc is not None else ""
        line = f" (PTX line {self.ptx_line}: {self.instruction})" if self.ptx_line else ""
        return f"{self.verb} by thread {self.thread} of block {self.block}{where}{line}"


@dataclass(frozen=True)
class Finding:
    """One bug. ``kind`` is race, init or incomplete; ``earlier`` is the access before ``access``, where there is one.

    ``array`` and ``element`` name the memory (``x`` and ``x[3, 70]``), ``space`` is its state space.
    """

    kind: str
    message: str
    access: Access
    earlier: Access | None = None
    array: str = ""
    element: str = ""
    space: str = ""
    hint: str | None = None

    def __str__(self) -> str:
        lines = [self.message, f"  {self.access}"]
        if self.earlier is not None:
            lines.append(f"  {self.earlier}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


_KINDS: dict[str, type[EmulationError]] = {"race": RaceError, "init": UninitializedError}


def raised(findings: list[Finding]) -> EmulationError:
    """The error of the first finding that tells of the others too; ``error.findings`` has them all."""
    first = findings[0]
    kind = _KINDS[first.kind]
    access = first.access
    lines = [first.message]
    if first.earlier is not None:
        lines.append(f"  after the {first.earlier}")
    rest = findings[1:]
    if rest:
        lines.append(f"and {len(rest)} more finding{'s' if len(rest) > 1 else ''}:")
        lines += ["  " + str(finding).replace("\n", "\n  ") for finding in rest[:SHOWN]]
        if len(rest) > SHOWN:
            lines.append(f"  ... and {len(rest) - SHOWN} more")
    error = kind(
        "\n".join(lines), loc=access.loc, hint=first.hint, block=access.block, thread=access.thread,
        ptx_line=access.ptx_line, instruction=access.instruction,
    )
    error.findings = tuple(findings)
    return error


class Copier(NamedTuple):
    """A thread, as warp and lane, with an incomplete copy; whether that is a bulk copy."""

    thread: tuple[int, int]
    bulk: bool


_WAIT = {
    False: "wait first: `ptx.cp.async_.wait_all()` in that thread, then a barrier if it is another one",
    True: "wait first at the mbarrier that counts its bytes: `ptx.mbarrier.try_wait.parity.shared.b64(bar, parity)`",
}


_WAIT_GROUP = (
    "wait first, in the thread that copies: `ptx.cp.async_.bulk.wait_group{}`; then a barrier if it is another one"
)


class _Memory(NamedTuple):
    name: str
    element: str
    space: str


class Reporter:
    """Collects the findings of a launch, each bug once."""

    def __init__(self, launch: LaunchState) -> None:
        self.launch = launch
        self.findings: list[Finding] = []
        self.copier: Callable[[int], Copier | None] = lambda _: None
        """Who has begun a copy to a host address that is incomplete."""
        self.states: list[BlockState] = []
        """The block states of a cluster."""
        self._known: set[Any] = set()
        self._places: set[int] = set()

    def has(self, statement: int) -> bool:
        """Whether something has been found at a statement."""
        return statement in self._places

    def note(
        self, state: BlockState, record: int, warp: int, lane: int, reason: int, word: int, other: Index, host: int
    ) -> None:
        """Record a race, or a read of unwritten memory; ``word`` holds the access before, ``other`` its thread."""
        place, before = state.code.statement_at(record), word >> STATEMENT_SHIFT & 0xFFFF
        kind = "init" if reason == Reason.UNINITIALISED else "race"
        self._places.add(place)
        copier = self.copier(host) if kind == "init" else None
        guarded, address = self._range(state, host)
        lines = [self._line(state, n) for n in ((place,) if kind == "init" else sorted((place, before)))]
        if not self._is_new(kind, guarded and guarded.name, *lines):
            return
        scene = Scene(state, warp, lane, record)
        name = guarded.name if guarded is not None else "memory"
        memory = _Memory(name, self._element(scene, guarded, address), self._space(guarded))
        mine = self._access(state, place, scene.raised(EmulationError, "").block, (warp, lane))
        if kind == "init":
            self.findings.append(self._unwritten_memory(mine, memory, copier))
            return
        theirs = self._access(state, before, self._block(other[0]), (other[1], other[2]))
        sides = (place, before, other[1] == warp)
        one = place == before and mine.block == theirs.block and other[1] == warp
        one = one and word >> EPOCH_SHIFT == _epoch(state, warp)
        race = self._race(state, mine, theirs, memory, sides, one)
        if word >= PENDING and mine.block == theirs.block:
            race = replace(race, hint=_WAIT_GROUP.format(".read(0)" if reason != Reason.WRITER else "(0)"))
        self.findings.append(race)

    def _is_new(self, *key: Any) -> bool:
        new = key not in self._known
        self._known.add(key)
        return new

    def _unwritten_memory(self, mine: Access, memory: _Memory, copier: Copier | None) -> Finding:
        what = f"{mine.verb} {'from' if mine.verb == 'bulk copy' else _at(mine.verb)} {memory.element}"
        if copier is None:
            message = f"{what}, which nobody has written"
            shared = ", then `ptx.bar.sync(0)`" if memory.space == "shared" else ""
            hint = f"write {memory.name} before it is read{shared}"
        else:
            message = f"{what}, whose copy by thread {self._index(copier.thread)} is not known to be complete"
            hint = _WAIT[copier.bulk]
        return Finding("init", message, mine, None, *memory, hint)

    def _race(
        self, state: BlockState, mine: Access, theirs: Access, memory: _Memory, sides: tuple[int, int, bool], one: bool
    ) -> Finding:
        if one:
            message = (
                f"race: threads {theirs.thread} and {mine.thread} of one warp {mine.verb} {_at(mine.verb)} "
                f"{memory.element} in {memory.space} memory with one instruction; which value stays is not known"
            )
        else:
            message = (
                f"race on {memory.element} in {memory.space} memory: {mine.verb} by thread {mine.thread}"
                f"{_other_block(mine, theirs)} and {theirs.verb} by thread {theirs.thread}"
                f" of block {theirs.block} are not ordered"
            )
        return Finding("race", message, mine, theirs, *memory, self._hint(state, mine, theirs, *sides))

    def unwritten(self, state: BlockState, record: int, thread: tuple[int, int], register: str) -> None:
        """A thread reads a register that it has not written."""
        statements = state.code.graph.statements
        place = state.code.statement_at(record)
        place = next(n for n in range(place, len(statements)) if not checks_definedness(statements[n]))
        if not self._is_new("init", register, self._line(state, place)):
            return
        scene = Scene(state, *thread, record)
        access = self._access(state, place, scene.raised(EmulationError, "").block, thread)
        message = f"`{access.instruction}` reads {register}, which this thread has not written"
        hint = f"write {register} on every way to this instruction, also where a guard does not hold"
        access = replace(access, verb="read")
        self.findings.append(Finding("init", message, access, None, register, register, "register", hint))

    def bugs(self) -> list[Finding]:
        """The findings, without the reads of unwritten memory that a race explains."""
        raced = {(f.array, a.line) for f in self.findings if f.kind == "race" for a in (f.access, f.earlier) if a}
        return [f for f in self.findings if f.kind == "race" or (f.array, f.access.line) not in raced]

    def incomplete(self, state: BlockState, place: int) -> None:
        """Warn of an instruction that is no longer checked."""
        statement: Any = state.code.graph.statements[place]
        self._warn(f"the sanitizer is incomplete: it could not follow `{render(statement)}` to the end of the launch")

    def overflow(self) -> None:
        """Warn that the launch has more epochs than the store keeps."""
        self._warn("the sanitizer is incomplete: the launch has too many barriers for races between blocks to be told")

    @staticmethod
    def _warn(message: str) -> None:
        warnings.warn(message, PtxWarning, stacklevel=2)

    # Names

    @staticmethod
    def _line(state: BlockState, place: int) -> Any:
        """The line that a statement comes from, the same for all iterations of an unrolled loop."""
        statements = state.code.graph.statements
        statement = statements[place] if place < len(statements) else None
        return statement and (statement.loc or statement.line)

    def _range(self, state: BlockState, host: int) -> tuple[AddressRange | None, int]:
        """The array that a host address lies in, and the address as the kernel has it."""
        launch = self.launch
        for one in self.states or (state,):
            inside = host - one.shared
            if 0 <= inside < launch.shared_bytes:
                address = inside + SHARED_START
                return self._find(address, True), address
        size = launch.spaces.local_bytes
        if size and 0 <= host - state.local < size * state.count * LANES:
            address = (host - state.local) % size + LOCAL_START
            return self._local(address), address
        return self._find(host, False), host

    def _find(self, address: int, shared: bool) -> AddressRange | None:
        for guarded in self.launch.ranges:
            if guarded is None or guarded.shared != shared:
                continue
            if guarded.address <= address < guarded.address + self.launch.size_of(guarded):
                return guarded
        return None

    def _local(self, address: int) -> AddressRange | None:
        spaces = self.launch.spaces
        for variable in spaces.function.variables:
            start = spaces.symbols.get(variable.name, -1)
            if variable.space == "local" and start <= address < start + variable.nbytes:
                return AddressRange(variable.name, start, variable.nbytes, 0, start, variable=variable)
        return None

    @staticmethod
    def _space(guarded: AddressRange | None) -> str:
        if guarded is None:
            return "local"
        return guarded.variable.space if guarded.variable is not None else "global"

    @staticmethod
    def _element(scene: Scene, guarded: AddressRange | None, address: int) -> str:
        return element_name(scene, guarded, address) if guarded is not None else f"address {address:#x}"

    def _block(self, number: int) -> Index:
        x, y, _ = self.launch.config.grid
        return number % x, number // x % y, number // (x * y)

    def _index(self, thread: tuple[int, int]) -> Index:
        flat = thread[0] * LANES + thread[1]
        x, y, _ = self.launch.config.block
        return flat % x, flat // x % y, flat // (x * y)

    def _access(self, state: BlockState, place: int, block: Any, thread: tuple[int, int]) -> Access:
        statements = state.code.graph.statements
        statement: Any = statements[place] if place < len(statements) else None
        index = self._index(thread)
        if statement is None:
            return Access("access", block, index, None, None, "")
        return Access(_verb(statement.form), block, index, statement.loc, statement.line or None, render(statement))

    def _hint(self, state: BlockState, mine: Access, theirs: Access, place: int, before: int, one_warp: bool) -> str:
        """How to order the two accesses."""
        statements = state.code.graph.statements
        forms = [statements[n].form for n in (place, before) if n < len(statements)]  # type: ignore[union-attr]
        if mine.block != theirs.block:
            if any(strength(form) for form in forms) and not all(strength(form) for form in forms):
                return "let both be atomic, or order them: `fence.acq_rel.gpu` on both sides of a flag"
            return "blocks are ordered by nothing but atomics and flags: release one and acquire it, or launch twice"
        if place == before:
            return "let one thread store, or use an atomic operation"
        if one_warp:
            return "lanes of a warp do not run in step: put `ptx.bar.warp.sync(0xFFFFFFFF)` between the two"
        return "put a barrier between the two: `ptx.bar.sync(0)`"


def _verb(form: Form) -> str:
    if bulk := bulk_accesses(form):
        return "bulk reduction" if bulk[0].reads else "bulk copy"
    access = checked_access(form)
    if access is None or (access.reads and access.writes):
        return "atomic operation"
    verb = "store" if access.writes else "load"
    if not form.effects.strong:
        return verb
    return f"volatile {verb}" if form.effects.order == "volatile" else f"relaxed {verb}"


def _at(verb: str) -> str:
    return "from" if verb.endswith("load") else "to" if verb.endswith(("store", "copy")) else "on"


def _other_block(mine: Access, theirs: Access) -> str:
    return f" of block {mine.block}" if mine.block != theirs.block else ""


def _epoch(state: BlockState, warp: int) -> int:
    place = state.shadow + Shadow.WARP_CLOCKS + warp * WarpClock.nbytes + WarpClock.EPOCH
    return int.from_bytes(ctypes.string_at(place, 8), "little") >> EPOCH_SHIFT
