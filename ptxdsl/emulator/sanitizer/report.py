"""Makes findings of what shadow checks report, each bug once, in the names that the user gave."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable, Container
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NamedTuple

from ...errors import PtxWarning
from ...isa import Form
from ...types import ScalarType
from ..machine.address_spaces import AddressRange
from ..machine.layout import LANES, LOCAL_START, SHARED_START, Warp
from ..machine.tensor_memory import TensorMemory
from ..machine.warp_rows import lanes_of_warps
from ..machine.shadow import (
    EPOCH_SHIFT, LANE, LAST_STATEMENT, PENDING, STATEMENT_SHIFT, WARP, WARP_SHIFT, Reason, WarpClock,
)
from ..machine.unsupported import render
from ..rewrite.deferred_loads import reads_cells
from ..rewrite.definedness import checks_definedness
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.faults import Scene, block_of, index_in, set_bits
from ..runtime.memory_faults import element_name
from .accesses import bulk_accesses, checked_access, strength
from .findings import Access, Finding, Index
from .hand_over import Write
from .origins import Origins
from .updates import Updates

__all__ = ["END", "WAIT", "WAIT_GROUP", "Copier", "Reporter", "at", "collected"]

collected: ContextVar[list[Finding] | None] = ContextVar("ptxdsl_findings", default=None)
"""Where findings go instead of being raised."""


class Copier(NamedTuple):
    """A thread, as warp and lane, with an incomplete copy; whether that is a bulk copy."""

    thread: tuple[int, int]
    bulk: bool


END = "end"
"""What a thread does that ends too early."""
_TENSOR = AddressRange("tensor memory", 0, 0, 0, 0)
WAIT = {
    False: "wait first: `ptx.cp.async_.wait_all()` in that thread, then a barrier if it is another one",
    True: "wait first at the mbarrier that counts its bytes: `ptx.mbarrier.try_wait.parity.shared.b64(bar, parity)`",
}
IN_STEP = (
    "lanes of a warp do not run in step: put `ptx.bar.warp.sync(0xFFFFFFFF)` between the two, "
    "or `ptx.bar.sync(0)` where other warps take part"
)
MADE_AFAR = "put `ptx.fence.mbarrier_init.release.cluster()` behind its initialisation, then `ptxdsl.cluster.sync()`"
WAIT_GROUP = (
    "wait first, in the thread that copies: `ptx.cp.async_.bulk.wait_group{}`; then a barrier if it is another one"
)


class _Memory(NamedTuple):
    name: str
    element: str
    space: str


class Reporter:
    """Collects the findings of a launch, each bug once."""

    def __init__(self, launch: LaunchState, memory: Any, kinds: Container[str] = ("race", "init")) -> None:
        self.launch, self.memory, self.kinds = launch, memory, kinds
        self.updates = Updates()
        self.findings: list[Finding] = []
        self.copier: Callable[[int], Copier | None] = lambda _: None
        """The thread that has begun an incomplete copy to a host address."""
        self.states: list[BlockState] = []
        """The block states of a cluster."""
        self.deferred: dict[int, dict[tuple[int, int, int], int]] = {}
        """Of loads of unwritten memory that nobody has used yet: by statement and thread, the host address."""
        self.origins: Origins | None = None
        self._known: set[Any] = set()
        self._faults: dict[Any, int] = {}
        """The places among the findings of accesses out of bounds."""
        self._places: set[int] = set()

    def has(self, statement: int) -> bool:
        """Whether something has been found at a statement."""
        return statement in self._places

    def note(
        self, state: BlockState, pc: int, thread: tuple[int, int], reason: int, word: int, other: Index, host: int
    ) -> None:
        """Record a race, or a read of unwritten memory; ``word`` holds the access before, ``other`` its thread."""
        place, before = state.code.statement_at(pc), word >> STATEMENT_SHIFT & LAST_STATEMENT
        kind = "init" if reason in (Reason.UNINITIALISED, Reason.INCOMPLETE_COPY) else "race"
        self._places.add(place)
        copier = self.copier(host) if kind == "init" else None
        if reason == Reason.INCOMPLETE_COPY:
            copier = Copier(((word & WARP) >> WARP_SHIFT, word & LANE), False)
        elif kind == "race" and self.updates.confirmed(state.code, place, before):
            kind = "cas"
        if kind not in self.kinds:
            return
        guarded, address = self.range_of(state, host)
        lines = [self.line(state, n) for n in ((place,) if kind == "init" else sorted((place, before)))]
        if not self._is_new(kind, guarded and guarded.name, *lines):
            return
        warp, memory = thread[0], self.memory_of(Scene(state, *thread, pc), guarded, address, host)
        mine = self.access_of(state, place, block_of(state), thread)
        if kind == "init":
            self.findings.append(self._unwritten_memory(mine, memory, copier))
            return
        theirs = self.access_of(state, before, index_in(self.launch.config.grid, other[0]), other[1:])
        one_thread = (mine.block, mine.thread) == (theirs.block, theirs.thread)
        if word < PENDING and one_thread:  # the word names one of several lanes
            theirs = replace(theirs, thread=self._index((warp, _other_lane(state, *thread))))
        sides = (place, before, self._in_one_warp(thread, other[1:]))
        one = place == before and mine.block == theirs.block and other[1] == warp and sides[2]
        one = one and word >> EPOCH_SHIFT == self.memory.clock(state, warp, WarpClock.EPOCH) >> EPOCH_SHIFT
        race = replace(self._race(state, mine, theirs, memory, sides, one), kind=kind)
        if word >= PENDING and mine.block == theirs.block:
            race = replace(race, hint=WAIT_GROUP.format(".read(0)" if reason != Reason.WRITER else "(0)"))
        self.findings.append(race)

    def add(self, place: int, finding: Finding, *key: Any) -> None:
        """Record a finding at a statement, unless it is one that is known."""
        self._places.add(place)
        if finding.kind in self.kinds and self._is_new(*key):
            self.findings.append(finding)

    def old_value(
        self, state: BlockState, pc: int, reader: tuple[int, int, int], missed: Write, host: int
    ) -> None:
        """A thread may read what was there before a write that it counts on."""
        place, code = state.code.statement_at(pc), state.code
        guarded, address = self.range_of(state, host)
        lines = [self.line(state, n) for n in sorted((place, missed.statement))]
        if "order" not in self.kinds or not self._is_new("order", guarded and guarded.name, *lines):
            return
        sides = []
        for (block, *who), statement in ((reader, place), (missed.who, missed.statement)):
            sides.append(self.access_of(state, statement, index_in(self.launch.config.grid, block), (who[0], who[1])))
        mine, theirs = sides
        memory = self.memory_of(Scene(state, *reader[1:], pc), guarded, address)
        store: Any = code.graph.statements[missed.statement]
        message = (
            f"{mine.verb} from {memory.element} in {memory.space} memory by thread {mine.thread} of block "
            f"{mine.block} may still give {_shown(store.form.type, missed.before)}, the value before the "
            f"{theirs.verb} by thread {theirs.thread} of block {theirs.block}: nothing orders the two"
        )
        hint = _order_hint(mine, theirs, self._in_one_warp(reader[1:], (missed.who[1], missed.who[2])))
        self.findings.append(Finding("order", message, mine, theirs, *memory, hint))

    def holder(self, state: BlockState, host: int) -> BlockState:
        """The block of the cluster in whose shared memory a host address lies; a block itself for other memory."""
        size = self.launch.shared_bytes
        return next((each for each in self.states if 0 <= host - each.shared < size), state)

    def memory_of(self, scene: Scene, guarded: AddressRange | None, address: int, host: int = 0) -> _Memory:
        """The name of what lies at an address, and of the block of the cluster that has it if that is another one."""
        if guarded is _TENSOR:
            lane, column = address >> 16, address & 0xFFFF
            return _Memory(_TENSOR.name, f"lane {lane}, column {column} of tensor memory", "tensor")
        name = guarded.name if guarded is not None else "memory"
        element = element_name(scene, guarded, address) if guarded is not None else f"address {address:#x}"
        holder = self.holder(scene.state, host)
        element += f" of block {holder.rank} of the cluster" if holder is not scene.state else ""
        return _Memory(name, element, self._space(guarded))

    def _is_new(self, *key: Any) -> bool:
        new = key not in self._known
        self._known.add(key)
        return new

    def _unwritten_memory(self, mine: Access, memory: _Memory, copier: Copier | None) -> Finding:
        what = f"{mine.verb} {'from' if mine.verb == 'bulk copy' else at(mine.verb)} {memory.element}"
        if copier is None:
            message = f"{what}, which nobody has written"
            shared = ", then `ptx.bar.sync(0)`" if memory.space == "shared" else ""
            hint = f"write {memory.name} before it is read{shared}"
        else:
            message = f"{what}, whose copy by thread {self._index(copier.thread)} is not known to be complete"
            hint = WAIT[copier.bulk]
        return Finding("init", message, mine, None, *memory, hint)

    def _race(
        self, state: BlockState, mine: Access, theirs: Access, memory: _Memory, sides: tuple[int, int, bool], one: bool
    ) -> Finding:
        update = self.updates.of(state.code, *sides[:2])
        if one and update is not None:
            message = (
                f"race: threads {theirs.thread} and {mine.thread} of one warp update {memory.element} in "
                f"{memory.space} memory with one instruction; one of the updates is lost"
            )
        elif one:
            message = (
                f"race: threads {theirs.thread} and {mine.thread} of one warp {mine.verb} {at(mine.verb)} "
                f"{memory.element} in {memory.space} memory with one instruction; which value stays is not known"
            )
        else:
            other_block = f" of block {mine.block}" if mine.block != theirs.block else ""
            message = (
                f"race on {memory.element} in {memory.space} memory: {mine.verb} by thread {mine.thread}"
                f"{other_block} and {theirs.verb} by thread {theirs.thread}"
                f" of block {theirs.block} are not ordered"
            )
        hint = self._hint(state, mine, theirs, *sides) if update is None else update.hint(memory.name, memory.space)
        return Finding("race", message, mine, theirs, *memory, hint)

    def fault(self, finding: Finding) -> None:
        """Record an access out of bounds, which went nowhere; those of one line to one array are one finding."""
        key = "memory", finding.access.line, finding.message.partition("[")[0]
        at = self._faults.setdefault(key, len(self.findings))
        if at == len(self.findings):
            self.findings.append(finding)
        else:
            self.findings[at] = replace(self.findings[at], count=self.findings[at].count + 1)

    def defer(self, state: BlockState, pc: int, warp: int, hosts: dict[int, int]) -> None:
        """Lanes of a warp have loaded from unwritten memory, which is no error until they use it."""
        found = self.deferred.setdefault(state.code.statement_at(pc), {})
        found.update({(state.block, warp, lane): host for lane, host in hosts.items()})

    def unwritten(self, state: BlockState, pc: int, thread: tuple[int, int], register: str) -> None:
        """A thread uses a register that has no value, or one that was computed from such."""
        statements = state.code.graph.statements
        use = state.code.statement_at(pc)
        use = next(n for n in range(use, len(statements)) if not checks_definedness(statements[n]))
        if self.origins is None or self.origins.code is not state.code:
            self.origins = Origins(state.code, self.deferred)
        origin = self.origins.of(register, use, (state.block, *thread))
        line = self.line(state, origin.place)
        used = None
        if line != self.line(state, use):
            used = self.access_of(state, use, block_of(state), thread)
        access = self.access_of(state, origin.place, block_of(state), thread)
        if origin.host is None:
            if self._is_new("init", origin.register, line):
                self._note_register(replace(access, verb="read"), origin.register, used)
            return
        guarded, address = self.range_of(state, origin.host)
        if not self._is_new("init", guarded and guarded.name, line):
            return
        memory = self.memory_of(Scene(state, *thread, pc), guarded, address)
        self.findings.append(replace(self._unwritten_memory(access, memory, self.copier(origin.host)), use=used))

    def _note_register(self, access: Access, register: str, used: Access | None) -> None:
        message = f"`{access.instruction}` reads {register}, which this thread has not written"
        hint = f"write {register} on every way to this instruction, also where a guard does not hold"
        self.findings.append(Finding("init", message, access, None, register, register, "register", hint, used))

    def bugs(self) -> list[Finding]:
        """The findings, without the reads of unwritten memory that a race explains."""
        races = (f for f in self.findings if f.kind == "race" and not (f.earlier and f.earlier.verb == END))
        raced = {(f.array, a.line) for f in races for a in (f.access, f.earlier) if a}
        return [f for f in self.findings if f.kind != "init" or (f.array, f.access.line) not in raced]

    def incomplete(self, state: BlockState, place: int) -> None:
        """Warn of an instruction that is no longer checked."""
        statement: Any = state.code.graph.statements[place]
        self._warn(f"the sanitizer is incomplete: it could not follow `{render(statement)}` to the end of the launch")

    def overflow(self) -> None:
        """Warn that the launch has more epochs than the store keeps, or more events than the log."""
        what = "the launch has too many barriers and fences for all races between its threads to be told"
        self._warn(f"the sanitizer is incomplete: {what}")

    @staticmethod
    def _warn(message: str) -> None:
        warnings.warn(message, PtxWarning, stacklevel=2)

    # Names

    @staticmethod
    def line(state: BlockState, place: int) -> Any:
        """The line that a statement comes from, the same for all iterations of an unrolled loop."""
        statements = state.code.graph.statements
        statement = statements[place] if place < len(statements) else None
        return statement and (statement.loc or statement.line)

    def range_of(self, state: BlockState, host: int) -> tuple[AddressRange | None, int]:
        """The array that a host address lies in, and the address as the kernel has it."""
        launch = self.launch
        for one in self.states or (state,):
            inside = host - one.shared
            if 0 <= inside < launch.shared_bytes:
                address = inside + SHARED_START
                return self._find(address, True), address
        size = launch.spaces.local_bytes
        if size and 0 <= host - state.local < size * state.count * LANES:
            address = state.local_offset(host) + LOCAL_START
            return self._local(address), address
        inside = host - state.tensor - TensorMemory.CELLS
        if state.tensor and 0 <= inside < TensorMemory.nbytes - TensorMemory.CELLS:
            column, lane = divmod(inside, TensorMemory.PITCH)
            return _TENSOR, lane // 4 << 16 | column
        return self._find(host, False), host

    def _find(self, address: int, shared: bool) -> AddressRange | None:
        ranges = (area for area in self.launch.ranges if area is not None and area.shared == shared)
        return next((area for area in ranges if 0 <= address - area.address < self.launch.size_of(area)), None)

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

    def _in_one_warp(self, one: tuple[int, int], other: tuple[int, int]) -> bool:
        """Whether two threads of a block, by the emulator's warps and lanes, are in one warp of a GPU."""
        lanes = lanes_of_warps(self.launch.config.block)
        return (one[0] * lanes + one[1]) // LANES == (other[0] * lanes + other[1]) // LANES

    def _index(self, thread: tuple[int, int]) -> Index:
        block = self.launch.config.block
        return index_in(block, thread[0] * lanes_of_warps(block) + thread[1])

    def access_of(self, state: BlockState, place: int, block: Index, thread: tuple[int, int]) -> Access:
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
            if theirs.verb == "mbarrier operation":  # of these, shadow words are of initialisations alone
                return MADE_AFAR
            if any(strength(form) for form in forms) and not all(strength(form) for form in forms):
                return "let both be atomic, or order them: `fence.acq_rel.gpu` on both sides of a flag"
            if self._one_cluster(mine.block, theirs.block):
                return "put a barrier of the cluster between the two: `ptxdsl.cluster.sync()`"
            return "blocks are ordered by nothing but atomics and flags: release one and acquire it, or launch twice"
        if place == before:
            return "let one thread store, or use an atomic operation"
        if one_warp:
            return IN_STEP
        return "put a barrier between the two: `ptx.bar.sync(0)`"

    def _one_cluster(self, one: Index, other: Index) -> bool:
        """Whether two blocks are of one cluster."""
        cluster = self.launch.spaces.cluster or (1, 1, 1)
        return all(a // extent == b // extent for a, b, extent in zip(one, other, cluster))


def _other_lane(state: BlockState, warp: int, lane: int) -> int:
    """A lane that executes what a lane of its warp does."""
    active = set_bits(state.get_warp(warp, Warp.ACTIVE, "I"))
    return next((other for other in active if other != lane), lane ^ 1)


def _shown(kind: ScalarType | None, number: int) -> str:
    """What a number that memory holds is in a type."""
    if kind is not None and kind.kind == "f" and kind.bits in (32, 64):
        return repr(struct.unpack("<f" if kind.bits == 32 else "<d", number.to_bytes(kind.bits // 8, "little"))[0])
    bits = kind.bits if kind is not None else 32
    return str(number - (1 << bits) if kind is not None and kind.is_signed and number >> (bits - 1) else number)


def _order_hint(mine: Access, theirs: Access, one_warp: bool) -> str:
    if mine.block != theirs.block:
        return (
            "order them: `ptx.fence.acq_rel.gpu()` between the store and the flag behind it, and between the load of "
            "the flag and this one"
        )
    if one_warp:
        return IN_STEP
    return "put a barrier between the two: `ptx.bar.sync(0)`"


def _verb(form: Form) -> str:
    if form.effects.completes == "wgmma_group":
        return "wgmma"
    if form.effects.completes == "tcgen05_commit":
        return f"tcgen05.{form.tokens[0]}"
    if any(access.kind == "mbarrier" for access in form.effects.accesses) and not bulk_accesses(form):
        return "mbarrier operation"
    if bulk := bulk_accesses(form):
        return "bulk reduction" if bulk[0].reads else "bulk copy"
    if form.effects.completes == "tcgen05_wait":
        return "load" if reads_cells(form) else "store"
    access = checked_access(form)
    if access is None or (access.reads and access.writes):
        return "atomic operation"
    verb = "store" if access.writes else "load"
    if not form.effects.strong:
        return verb
    return f"volatile {verb}" if form.effects.order == "volatile" else f"relaxed {verb}"


def at(verb: str) -> str:
    if verb == "wgmma" or verb.startswith("tcgen05"):
        return "of"
    return "from" if verb.endswith("load") else "to" if verb.endswith(("store", "copy")) else "on"
