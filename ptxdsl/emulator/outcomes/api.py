"""All final states of a launch that the memory model allows: the public function, and what it returns.

The threads run one by one (:mod:`.machine`), in every execution that the axioms allow (:mod:`.search`,
:mod:`.axioms`). The arrays are as before afterwards.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from time import monotonic
from functools import partial
from typing import Any, Union

import numpy as np

from ...config import override
from ...errors import LaunchError, caller
from ...launch import Buffer
from ...launch.arrays import describe
from ..runtime.block_state import LaunchState
from ..tools.observer import Observer
from .axioms import Execution
from .events import Threads
from .fences import repair
from .machine import SHARED_PLACE, Machine
from .executions import Complete
from .search import Limit, Search
from .wording import Names, place_of

__all__ = ["Condition", "Explorer", "Outcome", "Outcomes", "outcomes"]

BOUND = 100
"""Memory operations that a thread may make,"""
LIMIT = 200_000
"""and states of a search."""
Condition = Union[Mapping[str, Any], "Callable[[Outcome], object]"]
"""What is asked of an outcome: a function of it, or the elements of some arrays."""


class Outcome:
    """A final state.

    Each array that the launch was given is an attribute by the name of its parameter, a numpy array: ``outcome.out``,
    or ``outcome["out"]``. ``waiting`` names the threads that wait forever, each with its line; ``error`` is what went
    wrong in a thread, if anything did, and ``raised`` the exception. ``execution`` says how it comes about, in as few
    steps as possible.
    """

    def __init__(self, arrays: dict[str, Any], waiting: tuple[str, ...], error: str, steps: int) -> None:
        self.arrays, self.waiting, self.error, self.steps = arrays, waiting, error, steps
        self.raised: Exception | None = None
        self._told: Callable[[], str] = str

    @property
    def execution(self) -> str:
        """The shortest execution that ends so: of each thread the lines, and what each read was given by whom."""
        return self._told()

    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("arrays", {})
        if name in arrays:
            return arrays[name]
        raise AttributeError(self._lacks(name))

    def __getitem__(self, name: str) -> Any:
        if name not in self.arrays:
            raise KeyError(self._lacks(name))
        return self.arrays[name]

    def _lacks(self, name: str) -> str:
        return f"the outcome has no array `{name}`; it has {', '.join(self.__dict__.get('arrays', {})) or 'none'}"

    def __repr__(self) -> str:
        said = [f"{name}={array.tolist()}" for name, array in self.arrays.items()]
        said += [f"waits: {each}" for each in self.waiting]
        return f"Outcome({', '.join([*said, *([self.error] if self.error else [])])})"


class Outcomes(list[Outcome]):
    """All outcomes of a launch, each once.

    ``complete``: no thread did more than the bound allows, so that what is not here cannot happen. ``races`` names the
    pairs of lines that race in some execution: conflicting accesses, not both strong, that nothing orders. What such
    code does is PTX's to say and no compiler's; in C++ it is undefined.
    """

    def __init__(self, found: Iterable[Outcome], complete: bool, races: list[str], executions: int) -> None:
        super().__init__(found)
        self.complete, self.races, self.executions = complete, races, executions
        self._shows: Callable[[Callable[[Outcome], bool]], list[str] | None] = lambda _: None

    def where(self, condition: Condition | None = None, /, **arrays: Any) -> list[Outcome]:
        """The outcomes for which a condition holds: ``where(out=[1, 0])`` or ``where(lambda o: o.out[0] == 1)``."""
        holds = _condition(condition, arrays)
        return [outcome for outcome in self if holds(outcome)]

    def repair(self, condition: Condition | None = None, /, **arrays: Any) -> list[str] | None:
        """The changes, one or two, after which no outcome has the condition; None where none was found."""
        return self._shows(_condition(condition, arrays))

    def forbid(self, condition: Condition | None = None, /, **arrays: Any) -> Outcomes:
        """AssertionError where an outcome has the condition, with its execution and what would forbid it."""
        __tracebackhide__ = True
        found = self.where(condition, **arrays)
        if found:
            raise AssertionError(f"the memory model allows {found[0]!r}:\n{self._told(found[0], condition, arrays)}")
        self._require_complete()
        return self

    def require(self, condition: Condition | None = None, /, **arrays: Any) -> Outcomes:
        """AssertionError where no outcome has the condition."""
        __tracebackhide__ = True
        if not self.where(condition, **arrays):
            raise AssertionError(f"no outcome is so; there are:\n{self}")
        return self

    def always(self, condition: Condition | None = None, /, **arrays: Any) -> Outcomes:
        """AssertionError where an outcome has not the condition, or some thread waits forever or fails."""
        __tracebackhide__ = True
        holds = _condition(condition, arrays)
        return self.forbid(lambda outcome: bool(outcome.waiting or outcome.error) or not holds(outcome))

    def _told(self, outcome: Outcome, condition: Condition | None, arrays: Mapping[str, Any]) -> str:
        changes = self.repair(condition, **arrays)
        mend = f"\nforbidden by {' and '.join(changes)}" if changes else ""
        races = "".join(f"\nrace: {race}" for race in self.races)
        return f"{outcome.execution}{races}{mend}"

    def _require_complete(self) -> None:
        if not self.complete:
            raise AssertionError("threads did more than the bound allows, so that nothing is proved; raise `bound=`")

    def __str__(self) -> str:
        lines = [repr(outcome) for outcome in self]
        lines += [f"race: {race}" for race in self.races]
        if not self.complete:
            lines.append("not all: some thread did more than the bound allows")
        return "\n".join(lines)


def _condition(condition: Condition | None, arrays: Mapping[str, Any]) -> Callable[[Outcome], bool]:
    if callable(condition):
        return lambda outcome: bool(condition(outcome))
    wanted = {**(condition or {}), **arrays}
    return lambda outcome: all(np.array_equal(outcome[name], value) for name, value in wanted.items())


class _Memory:
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
    """Explores a launch in place of running it; ``found`` are its outcomes."""

    what = "ptxdsl.outcomes()"

    def __init__(self, bound: int = BOUND, limit: int = LIMIT, progress: bool | None = None) -> None:
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
        memory = _Memory(launch)
        try:
            machine = Machine(launch)
            search = Search(machine, _threads(launch, machine), memory.initial, self.bound, self.limit, self._progress)
            try:
                executions = search.run()
            except Limit:
                raise LaunchError(
                    f"the launch has more than {self.limit} states to explore", loc=caller(),
                    hint="fewer threads, or shorter loops; `limit=` says how many",
                ) from None
            self.found = _Collected(launch, memory, executions).outcomes(not search.cut)
        finally:
            memory.restore()
            if self.shows:
                print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _progress(self, states: int, executions: int) -> None:
        if self.shows and monotonic() - self.shown > 0.2:
            self.shown = monotonic()
            print(f"\rptxdsl.outcomes: {states} states, {executions} executions", end="", file=sys.stderr, flush=True)


class _Collected:
    """The executions of a launch, by their final states."""

    def __init__(self, launch: LaunchState, memory: _Memory, complete: list[Complete]) -> None:
        self.names, self.memory = Names(launch), memory
        self.buffers = {buffer.name: buffer for buffer in self.names.buffers if buffer.writable}
        self.complete = complete

    def _states(self, execution: Execution) -> Iterator[tuple[tuple[bytes, ...], list[int]]]:
        """The arrays at the end, and the writes that stay, for each choice that the axioms leave."""
        for causality in execution.orders():
            ends = []
            for writes, orders in zip(causality.locations(), causality.coherence()):
                ends.append({tuple(n for n in writes if not order[n]): None for order in orders})
            for chosen in product(*ends):
                last = [n for end in chosen for n in end]
                for written in _byte_by_byte(execution, last):
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
        made = Outcomes([found[key] for key in sorted(found)], complete, sorted(races), len(self.complete))
        made._shows = self._repaired
        return made

    def _outcome(self, state: tuple[bytes, ...], waiting: tuple[str, ...], error: str, steps: int) -> Outcome:
        arrays: dict[str, Any] = {}
        for (name, buffer), data in zip(self.buffers.items(), state):
            array = np.frombuffer(data, np.dtype(buffer.dtype) if buffer.dtype else np.uint8)
            arrays[name] = array.reshape(buffer.shape) if array.size == int(np.prod(buffer.shape)) else array
        return Outcome(arrays, waiting, error, steps)

    def _race(self, execution: Execution, a: int, b: int) -> str:
        one, other = sorted((execution.events[a], execution.events[b]), key=lambda e: (e.statement.line, e.who))
        name, mixed = self.names.element(max(one.address, other.address))[0], one[3:5] != other[3:5]
        sizes = " by accesses of different bytes, of which the model says nothing" if mixed else ""
        return f"{place_of(one.statement)} and {place_of(other.statement)}, on {name}{sizes}"

    def _repaired(self, holds: Callable[[Outcome], bool]) -> list[str] | None:
        def shows(execution: Execution) -> bool:
            return any(holds(self._outcome(state, (), "", 0)) for state, _ in self._states(execution))

        ended = [each.execution for each in self.complete if not each.waiting and not each.errors]
        bad = [execution for execution in ended if shows(execution)]
        return repair(bad, shows)


def _byte_by_byte(execution: Execution, last: list[int]) -> Iterator[dict[int, int]]:
    """The bytes that the last writes leave; where several leave one, each of these may."""
    options: dict[int, dict[int, None]] = {}
    for n in last:
        event = execution.events[n]
        options.setdefault(event.address, {})[n] = None
    for chosen in product(*options.values()):
        written: dict[int, int] = {}
        for n in chosen:
            event = execution.events[n]
            written.update({event.address + k: value for k, value in enumerate(event.written)})
        yield written


def outcomes(
    launch: Callable[..., object], *args: object, bound: int = BOUND, limit: int = LIMIT,
    progress: bool | None = None, **named: object,
) -> Outcomes:
    """All final states of a launch that PTX's memory model allows, weak ones included.

    Calls ``launch(*args, **named)``, which launches one kernel of a few threads on the emulator. Each outcome has the
    arrays of the launch as they may be at its end; what is not among them is proved not to happen. The arrays that were
    passed stay as they are. ``bound``: memory operations of a thread, ``limit``: states of the search. ``progress``
    shows how far it has come on stderr, by default where that is a terminal.

    Raises EmulationError for what it does not follow (asynchronous copies, matrix instructions, exchanges of registers
    between lanes), LaunchError beyond the limit.

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
