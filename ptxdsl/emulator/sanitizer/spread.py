"""Sanitized launches on several host threads, with the findings of one.

Each host thread has shadow memory of its own, so what its blocks do to each other is found as on one thread. What is
left are accesses of blocks on different threads. Only launches are spread in which nothing orders blocks, and in which
no block sees which came first: no fences, acquires or releases, no atomics whose old value is used, no accesses of
several strengths to one array. In these each place that two blocks access, one of them to write, is a race, whenever
they do, so that the shadow words of the threads are compared when the launch has ended. Where that finds nothing, each
block has computed what it computes on one thread.

Where anything comes up (a shadow check that Python has to decide, a fault, words of two threads that disagree), the
launch is begun again on one thread, from what its memory was, and that one tells. So findings never depend on threads.
Only arrays that are read and written have to be kept for it: the others have no part in what is computed again. A
kernel to which that has happened stays on one thread for some launches, more each time.

Clusters are spread as blocks are, each on one thread, which follows the order of its blocks in a graph of its own.

Not spread are launches with mbarriers, bulk copies, textures, ``malloc`` or calls of other system functions, in
clusters those where a block may end while others reach its memory, and those whose words and arrays take more time to
compare and to keep than is gained.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...errors import EmulationError
from ...ir import Call, Instruction, Symbol
from ...machine_code.host import cores
from ..codegen.code import Code
from ..machine.address_spaces import AddressRange
from ..machine.layout import Block
from ..machine.shadow import EPOCH_SHIFT, UNWRITTEN, Plane, Reason, Shadow
from ..rewrite.definedness import checks_definedness
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.tool import NO_TOOL, Tool
from ..runtime.launch import run
from .accesses import bulk_accesses, strength
from .cluster_ends import asks_at_ends
from .instrumentation import Instrumentation
from .needs import Checks
from .regions import Region
from .shadow_memory import ShadowMemory
from .shadow_store import Store
from .sync_log import SyncLog

__all__ = ["Spread", "spread", "spread_of"]

WORTH = 1.5e-3
"""Seconds of work for which to try."""
SHARE = 0.25
"""The share of a launch's time on one thread that keeping arrays and comparing words may take."""
BYTES_A_SECOND = 6e9
"""How fast that goes, where other cores have written what is read."""
PAUSE = 8
"""Launches on one thread after one that had to begin again, then doubled."""
CHUNK = 1 << 15
"""Words that are compared at once."""
PATIENCE = 1000
"""Loads of unwritten memory that nobody has used, after which the launch begins again on one thread."""


class Spread(NamedTuple):
    """What a launch on several threads has to do, by the names of arrays; "" stands for all of them.

    ``raced`` are those in which threads are compared, ``read`` those of them that are not only written, ``kept`` those
    that are read and written.
    """

    raced: frozenset[str]
    read: frozenset[str]
    kept: frozenset[str]


class _Pauses:
    """How often a kernel's launches had to begin again, and how many are to come on one thread."""

    def __init__(self) -> None:
        self.failures, self.left = 0, 0

    def over(self) -> bool:
        self.left -= 1
        return self.left < 0

    def fail(self) -> None:
        self.left = PAUSE << min(self.failures, 16)
        self.failures += 1


class _Undecided(Exception):
    """One thread has to tell."""


# What a kernel allows


def spread_of(made: Instrumentation) -> Spread | None:
    """How launches of a kernel with these checks are spread; None where they are not."""
    if made.follows or made.handed or made.bulk or made.reports or made.checks.overlap:
        return None
    if asks_at_ends(made.low.spaces):
        return None
    found = _Uses(made)
    try:
        for place, statement in enumerate(made.low.graph.statements):
            found.add(place, statement)
    except _Undecided:
        return None
    if _meet(found.marked, found.written):  # which is unwritten first depends on the order
        return None
    if any(_meet({name}, found.raced) for name in found.strong):
        return None
    raced, read = _both(found.raced, found.written), found.raced_reads
    return Spread(frozenset(raced), frozenset(_both(read, raced)), frozenset(_both(found.read, found.written)))


def _meet(one: set[str], other: set[str]) -> bool:
    return bool(one and other) and ("" in one or "" in other or not one.isdisjoint(other))


def _both(one: set[str], other: set[str]) -> set[str]:
    if not one or not other:
        return set()
    if "" in one or "" in other:
        return {""} if "" in one and "" in other else (other if "" in one else one)
    return one & other


class _Uses:
    """The arrays in global memory that a kernel accesses, by what it does there."""

    def __init__(self, made: Instrumentation) -> None:
        self.made = made
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.raced: set[str] = set()
        self.raced_reads: set[str] = set()
        self.strong: set[str] = set()
        self.marked: set[str] = set()
        """Those of which a load may find that the host left them unwritten."""

    def add(self, place: int, statement: Any) -> None:
        if isinstance(statement, Call):
            if not checks_definedness(statement) and statement.callee != Symbol("__assertfail"):
                raise _Undecided
            return
        if not isinstance(statement, Instruction):
            return
        form = statement.form
        if bulk_accesses(form) or form.effects.fence == "threads" or form.effects.waits == "grid":
            raise _Undecided
        for access in form.effects.accesses:
            if access.kind in ("mbarrier", "tensormap", "tensor", "texel", "handle"):
                raise _Undecided
            if access.space in ("global", "generic"):
                self._global(place, statement, access)

    def _global(self, place: int, statement: Instruction, access: Any) -> None:
        made = self.made
        strong = strength(statement.form) and id(statement) not in made.upheld.in_turn
        found = made.between_blocks(statement, access)
        if found is None or id(statement) in made.reach:
            return
        name, race = found
        area = made.low.spaces.ranges[made.low.spaces.entries[name]] if name else None
        if area is not None and area.shared:  # of the blocks of a cluster, which one thread runs
            return
        if strong and access.reads and made.low.graph.def_use[place].writes:
            raise _Undecided
        if race and not made.checks.race:
            raise _Undecided
        init = made.checks.init and made.checks.unwritten
        for names, condition in (
            (self.read, access.reads), (self.written, access.writes), (self.raced, race), (self.strong, strong),
            (self.raced_reads, race and access.reads), (self.marked, init and access.reads),
        ):
            if condition:
                names.add(name)


# A launch


def spread(launch: LaunchState, checks: Checks, code: Code, codes: Callable[[bool], Code]) -> bool:
    """Run a launch on several threads, if that is worth it; whether that found all right, so that it has been run."""
    plan = code.notes.get(Instrumentation)
    if plan is None or code.prints or launch.config.seed is not None or launch.blocks == 1:
        return False
    expected = launch.blocks // math.prod(launch.spaces.cluster or (1,)) * code.pace
    if expected < WORTH or cores() == 1:
        return False
    attempt = LaunchState(launch.spaces, launch.config, launch.arguments)
    memory = ShadowMemory(attempt, checks.init)
    raced, kept = (list(_areas(attempt, names)) for names in (plan.raced, plan.kept))
    words = sum(area.nbytes for area in raced) >> memory.granule
    nbytes = 2 * 8 * words * (2 if plan.read else 1) + 3 * sum(area.nbytes for area in kept)
    pauses = code.notes.setdefault(_Pauses, _Pauses())
    if nbytes / BYTES_A_SECOND > SHARE * expected or not pauses.over():
        return False
    before = [(area, ctypes.string_at(area.place, area.nbytes)) for area in kept]
    if _attempt(attempt, memory, plan, codes):
        pauses.failures = 0
        return True
    pauses.fail()
    for area, data in before:
        ctypes.memmove(area.place, data, len(data))
    return False


def _areas(launch: LaunchState, names: frozenset[str]) -> Iterator[AddressRange]:
    """The arrays of these names that a launch may write."""
    entries = launch.spaces.entries
    numbers = range(len(launch.ranges)) if "" in names else sorted({entries[name] for name in names})
    for number in numbers:
        area = launch.ranges[number]
        if area is not None and area.writable and not area.shared and not area.heap and area.nbytes > 0:
            yield area


def _attempt(launch: LaunchState, memory: ShadowMemory, plan: Spread, codes: Callable[[bool], Code]) -> bool:
    tool = launch.tool = _Threads(launch, memory, plan)
    try:
        run(launch, codes(False), codes, alone=False)
        return not tool.raced()
    except (EmulationError, _Undecided):
        return False
    finally:
        tool.release()
        launch.tool = NO_TOOL  # which kept the launch


class _Threads(Tool[BlockState]):
    """The checks of a launch on several threads, each in shadow memory of its own."""

    pinned = compiled_turns = True

    def __init__(self, launch: LaunchState, memory: ShadowMemory, plan: Spread) -> None:
        self.launch, self.plan = launch, plan
        memory.open()
        self.memories = [memory]
        self._by_thread = {threading.get_ident(): memory}
        self._lock = threading.Lock()
        self._passed = 0

    def _mine(self) -> ShadowMemory:
        found = self._by_thread.get(threading.get_ident())
        if found is None:
            with self._lock:
                first = self.memories[0]
                found = ShadowMemory(self.launch, first.init)
                lows = {region.low for region in self._regions(first)}
                found.open_beside(first, _store(len(self.memories)), lows)
                self.memories.append(found)
                self._by_thread[threading.get_ident()] = found
        return found

    def _regions(self, memory: ShadowMemory) -> list[Region]:
        """Those of the arrays in which threads are compared."""
        places = [area.place for area in _areas(self.launch, self.plan.raced)]
        return [region for region in memory.regions if any(map(region.holds, places))]

    def attach(self, state: BlockState) -> None:
        self._mine().attach(state)

    def connect(self, states: list[BlockState]) -> None:
        self._mine().connect(states)

    def begin_cluster(self, states: list[BlockState]) -> None:
        self._mine().begin_cluster(states)

    def switch(self, state: BlockState) -> None:
        self._mine().switch(state)

    def entered(self, state: BlockState) -> None:
        memory = self._mine()
        memory.entered(state)
        memory.log.clear()  # what barriers of the cluster order is in the graph

    def callback(self, state: BlockState) -> None:
        """A load of unwritten memory is nothing until its value is used."""
        reason = self.memories[0].get(state, Shadow.REASON, "i")
        self._passed += 1
        if reason != Reason.DEFERRED or self._passed > PATIENCE:
            raise _Undecided
        state.put(Block.CURRENT, "I", state.get(Block.FAULT_WARP, "i") - 1 & 31)
        state.put(Block.STAY, "I", 1)

    def _undecided(self, *_: Any, **__: Any) -> Any:
        raise _Undecided

    passes = stalled = allocated = unwritten = outside = converged = _undecided

    def raced(self) -> bool:
        """Whether blocks on different threads may race; notes what was written, in the first one's shadow memory."""
        if any(memory.exhausted() for memory in self.memories):
            return True
        if len(self.memories) == 1:
            return False
        groups = zip(*(self._regions(memory) for memory in self.memories))
        return any(_raced(self.memories, group, "" in self.plan.read or self._reads(group[0])) for group in groups)

    def _reads(self, region: Region) -> bool:
        return any(region.holds(area.place) for area in _areas(self.launch, self.plan.read))

    def release(self) -> None:
        """Give the shadow memory back."""
        first, *others = self.memories
        for memory in others:
            memory.release_beside(first)
        first.release()


def _raced(memories: list[ShadowMemory], regions: tuple[Region, ...], reads: bool) -> bool:
    """Whether a place that one thread has written is accessed by another one."""
    first = memories[0]
    since = np.uint64(first.first_epoch << EPOCH_SHIFT)
    planes = (Plane.WRITER, Plane.READER) if reads else (Plane.WRITER,)
    granules = -(-regions[0].nbytes >> first.granule)
    for start in range(0, granules, CHUNK):
        count = min(CHUNK, granules - start)
        host = start << first.granule
        found = [
            [memory.words(region, region.low + host, count, plane) >= since for plane in planes]
            for memory, region in zip(memories, regions)
        ]
        touched = [each[0] | each[-1] if reads else each[0] for each in found]
        several = touched[0] & touched[1]
        if len(touched) > 2:
            several = np.add.reduce([each.astype(np.uint8) for each in touched]) > 1
        if several.any() and (np.logical_or.reduce([each[0] for each in found]) & several).any():
            return True
        if first.has_unwritten:
            words = first.words(regions[0], regions[0].low + host, count)
            for memory, region, (writes, *_) in zip(memories[1:], regions[1:], found[1:]):
                newer = memory.words(region, region.low + host, count)
                np.copyto(words, newer, where=writes & (words == UNWRITTEN))
    return False


@cache
def _store(number: int) -> Store:
    """The store of a further thread; the one of the process is locked while it is used."""
    del number
    return Store(SyncLog())
