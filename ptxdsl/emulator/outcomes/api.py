"""All final states of a launch that the memory model allows: the public function, and what it returns.

The threads run one by one (:mod:`.machine`), in every execution that the axioms allow (:mod:`.search`,
:mod:`.axioms`). The arrays are as before afterwards.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, product
from time import monotonic
from functools import partial
from typing import Any


from ...config import override
from ...errors import LaunchError, caller
from ...options import checked_options
from ...launch import Buffer
from ...launch.arrays import describe
from ..runtime.block_state import LaunchState
from ..tools.observer import Observer
from .axioms import Execution, Order
from .events import SHARED_PLACE, Threads
from .executions import Complete
from .fences import repair
from .machine import Machine, copies_in, follows
from .outcome import Condition, Outcome, Outcomes
from .schedule_outcomes import arrays_of, bounds, contents, schedule_outcomes
from .schedule_search import ScheduleSearch
from .search import Limit, Search
from .wording import Names, place_of

__all__ = ["Condition", "Explorer", "Memory", "Outcome", "Outcomes", "outcomes"]

BOUND = 100
"""Memory operations that a thread may make,"""
LIMIT = 200_000
"""and states of a search."""
FEW, FEW_WITH_COPIES = 32, 8
"""Threads of a launch that is explored by the axioms, and of one that begins copies."""


class Memory:
    """The memory of before the launch."""

    def __init__(self, launch: LaunchState) -> None:
        self.areas = [
            (area.place, ctypes.string_at(area.place, area.nbytes), area.writable)
            for area in launch.ranges if area is not None and not area.shared and area.nbytes > 0 and not area.heap
        ]

    def initial(self, address: int, nbytes: int) -> bytes:
        """The bytes at an address of an event; shared memory is zeros."""
        if address < SHARED_PLACE:
            for place, data, _ in self.areas:
                if place <= address < place + len(data):
                    return data[address - place : address - place + nbytes]
        return bytes(nbytes)

    def restore(self) -> None:
        """Have it as before."""
        for place, data, writable in self.areas:
            if writable:
                ctypes.memmove(place, data, len(data))


def _threads(launch: LaunchState, machine: Machine) -> Threads:
    (gx, gy, gz), per_block = launch.config.grid, machine.per_block
    blocks = [block for block in range(gx * gy * gz) for _ in range(per_block)]
    return Threads(blocks, [machine.blocks.place(block)[0] for block in blocks])


class Explorer(Observer):
    """Explores a launch in place of running it; ``found`` are its outcomes.

    A launch of a few threads is explored by the axioms (:mod:`.search`), any other one by the order of what
    synchronises it (:mod:`.schedule_search`).
    """

    what = "ptxdsl.outcomes()"
    defers = True

    def __init__(self, bound: int | None = None, limit: int | None = None, progress: bool | None = None) -> None:
        super().__init__()
        self.bound, self.limit = bound, limit
        self.shows = sys.stderr.isatty() if progress is None else progress
        self.shown = monotonic()
        self.found: Outcomes | None = None

    def run(self, launch: LaunchState) -> None:
        """Explore a launch in place of running it."""
        super().run(launch)
        if self.found is not None:
            raise LaunchError("ptxdsl.outcomes() explores one launch, and this is the second", loc=caller())
        launch.tool = self
        memory = Memory(launch)
        try:
            if self.explores_by_axioms(launch):
                self.found = self._by_axioms(launch, memory)
            else:
                self.by_schedules(launch, memory)
        finally:
            memory.restore()
            if self.shows:
                print("\r\033[K", end="", file=sys.stderr, flush=True)

    def explores_by_axioms(self, launch: LaunchState) -> bool:
        """Whether a launch is small enough."""
        most = FEW_WITH_COPIES if copies_in(launch) else FEW
        return launch.blocks * launch.config.threads <= most and follows(launch)

    def _by_axioms(self, launch: LaunchState, memory: Memory) -> Outcomes:
        bound, limit = self.bound or BOUND, self.limit or LIMIT
        machine = Machine(launch)
        search = Search(machine, _threads(launch, machine), memory.initial, bound, limit, self._progress)
        try:
            executions = search.run()
        except Limit:
            raise LaunchError(
                f"the launch has more than {limit} states to explore", loc=caller(),
                hint="fewer threads, or shorter loops; `limit=` says how many",
            ) from None
        return _Collected(launch, memory, executions).outcomes(not search.cut)

    def by_schedules(self, launch: LaunchState, memory: Memory) -> None:
        """Explore a launch by its schedules."""
        buffers = [b for b in Names(launch).buffers if b.writable]
        search = ScheduleSearch(launch, memory.restore, lambda: contents(buffers), self._schedules)
        search.search(*bounds(self.bound, self.limit))
        self.found = schedule_outcomes(search, buffers)

    def _schedules(self, runs: int, left: int) -> None:
        self._show(f"{runs} schedules, {left} to come")

    def _progress(self, states: int, executions: int) -> None:
        self._show(f"{states} states, {executions} executions")

    def _show(self, text: str) -> None:
        if self.shows and monotonic() - self.shown > 0.2:
            self.shown = monotonic()
            print(f"\r{self.what}: {text}", end="", file=sys.stderr, flush=True)


class _Collected:
    """The executions of a launch, by their final states."""

    def __init__(self, launch: LaunchState, memory: Memory, complete: list[Complete]) -> None:
        self.names, self.memory = Names(launch), memory
        self.buffers = {buffer.name: buffer for buffer in self.names.buffers if buffer.writable}
        self.complete = complete

    def _states(self, execution: Execution) -> Iterator[tuple[tuple[bytes, ...], list[int]]]:
        """The arrays at the end, and the writes that stay, for each choice that the axioms leave."""
        for causality in execution.orders():
            ends = []
            for writes, orders in zip(causality.locations(), causality.coherence()):
                ends.append({_ends(execution, writes, order): None for order in orders})
            for chosen in product(*ends):
                ranges = [each for end in chosen for each in end]
                last = sorted({n for _, _, writes in ranges for n in writes})
                for written in _byte_by_byte(execution, ranges):
                    yield tuple(self._array(buffer, written) for buffer in self.buffers.values()), last

    def _array(self, buffer: Buffer, written: Mapping[int, int]) -> bytes:
        data = bytearray(self.memory.initial(buffer.address, buffer.nbytes))
        for at, value in written.items():
            if 0 <= at - buffer.address < len(data):
                data[at - buffer.address] = value
        return bytes(data)

    def outcomes(self, complete: bool) -> Outcomes:
        """All of them."""
        found: dict[Any, Outcome] = {}
        races: dict[str, None] = {}
        for each in self.complete:
            execution = each.execution
            waiting = tuple(f"{self.names.thread(s.thread)} at {place_of(s.statement)}" for s in each.waiting)
            error = "; ".join(f"{type(s.error).__name__}: {s.error}" for s in each.errors)
            for state, last in self._states(execution):
                key = state, waiting, error
                known = found.get(key)
                if known is None or known.steps > len(execution.events):
                    outcome = found[key] = self._outcome(state, waiting, error, len(execution.events))
                    outcome.raised = next((step.error for step in each.errors), None)
                    outcome._told = partial(self.names.execution, execution, last)
            races.update(dict.fromkeys(self._race(execution, a, b) for a, b in each.races))
        incomplete = "" if complete else "threads did more than the bound allows"
        made = Outcomes([found[key] for key in sorted(found)], incomplete, sorted(races), len(self.complete))
        made.hint = "; raise `bound=`"
        made._shows = self._repaired
        return made

    def _outcome(self, state: tuple[bytes, ...], waiting: tuple[str, ...], error: str, steps: int) -> Outcome:
        return Outcome(arrays_of(list(self.buffers.values()), state), waiting, error, steps)

    def _race(self, execution: Execution, a: int, b: int) -> str:
        one, other = sorted((execution.events[a], execution.events[b]), key=lambda e: (e.statement.line, e.who))
        name, mixed = self.names.element(max(one.address, other.address))[0], one[3:5] != other[3:5]
        how = " by accesses of different bytes, of which the model says nothing" if mixed else ""
        if "async" in (one.proxy, other.proxy):
            how = "" if one.proxy == other.proxy else " by different proxies: `fence.proxy.async` orders them"
        return f"{place_of(one.statement)} and {place_of(other.statement)}, on {name}{how}"

    def _repaired(self, holds: Callable[[Outcome], bool]) -> list[str] | None:
        def shows(execution: Execution) -> bool:
            return any(holds(self._outcome(state, (), "", 0)) for state, _ in self._states(execution))

        ended = [each.execution for each in self.complete if not each.waiting and not each.errors]
        bad = [execution for execution in ended if shows(execution)]
        return repair(bad, shows)


_Range = tuple[int, int, tuple[int, ...]]
"""Bytes, from an address to another one, and the writes that may have left them."""


def _ends(execution: Execution, writes: list[int], order: Order) -> tuple[_Range, ...]:
    """What a coherence order leaves at the end: of a write that is overwritten in part, the other bytes stay."""
    events = {n: execution.events[n] for n in writes}
    found = []
    for low, high in pairwise(sorted({place for event in events.values() for place in (event.address, event.end)})):
        there = [n for n, event in events.items() if event.address <= low and high <= event.end]
        last = tuple(n for n in there if not any(order[n] >> other & 1 for other in there))
        if last:
            found.append((low, high, last))
    return tuple(found)


def _byte_by_byte(execution: Execution, ranges: list[_Range]) -> Iterator[dict[int, int]]:
    """The bytes that the last writes leave; where several leave one, each of these may."""
    for chosen in product(*(writes for _, _, writes in ranges)):
        yield {
            at: execution.events[n].written[at - execution.events[n].address]
            for n, (low, high, _) in zip(chosen, ranges) for at in range(low, high)
        }


@checked_options(LaunchError, "outcomes")
def outcomes(
    launch: Callable[..., object], *args: object, bound: int | None = None, limit: int | None = None,
    progress: bool | None = None, **named: object,
) -> Outcomes:
    """All final states of a launch that PTX's memory model allows, weak ones included.

    Calls ``launch(*args, **named)``, which launches one kernel of a few threads on the emulator. Each outcome has the
    arrays of the launch as they may be at its end; what is not among them is proved not to happen. The arrays that were
    passed stay as they are. ``bound``: memory operations of a thread, ``limit``: states of the search. ``progress``
    shows how far it has come on stderr, by default where that is a terminal.

    A launch of more than 32 threads, or with tensor copies, matrix instructions or exchanges of registers between
    lanes, is explored by its schedules, without weak behaviour. Raises LaunchError beyond the limit.

    >>> from ptxdsl import Ptr, outcomes, ptx, ptx_kernel, u32, otherwise, when
    >>> @ptx_kernel
    ... def message(x: Ptr[u32], flag: Ptr[u32], out: Ptr[u32]):
    ...     with when(ptx.ctaid.x == 0):
    ...         x[0] = 42
    ...         ptx.st.release.gpu.global_.u32(flag, 1)
    ...     with otherwise():
    ...         out[0] = ptx.ld.acquire.gpu.global_.u32(flag)
    ...         out[1] = x[0]
    >>> x, flag, out = (np.zeros(n, np.uint32) for n in (1, 1, 2))
    >>> found = outcomes(message[2, 1], x, flag, out)
    >>> [outcome.out.tolist() for outcome in found]
    [[0, 0], [0, 42], [1, 42]]
    >>> found.forbid(lambda o: o.out[0] == 1 and o.out[1] == 0).races
    [...]
    """
    if not callable(launch):
        raise LaunchError(
            f"ptxdsl.outcomes() takes a launch first, not {describe(launch)}", loc=caller(),
            hint="`ptxdsl.outcomes(kernel[2, 1], x, y)`: the launch, then its arguments",
        )
    explorer = Explorer(bound, limit, progress)
    with override(backend="emulator", sanitize="off"), explorer:
        launch(*args, **named)
    if explorer.found is None:
        raise LaunchError("ptxdsl.outcomes() was given a call that launches nothing", loc=caller())
    return explorer.found
