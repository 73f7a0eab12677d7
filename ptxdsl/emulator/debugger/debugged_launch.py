"""One launch in a debugger: where it is, how it goes on, step by step, and back."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...errors import EmulationError
from ...ir import Call, Instruction
from ..machine.debug_control import Flag
from ..machine.layout import LANES, Block, Warp
from ..runtime.block_state import BlockState, LaunchState
from .breakpoints import Breakpoint, interpolated
from .checkpoints import History
from .execution import Execution
from .places import Places
from .probe import NEVER, debugged_code
from .view import DebugError, View

__all__ = ["DebuggedLaunch", "Stop", "Thread"]


class Thread(NamedTuple):
    """A thread by the number of its block, its warp there and its lane."""

    block: int
    warp: int
    lane: int


class Stop(NamedTuple):
    """Why the launch has stopped: entry, breakpoint, step, pause, begin, exception or finding; "" at the end."""

    reason: str
    text: str = ""
    breakpoints: tuple[Breakpoint, ...] = ()


class DebuggedLaunch:
    """A launch that has stopped, or has not begun. Who stops it also says where it goes on.

    ``thread`` is the one in focus. ``only`` restricts breakpoints to one thread. ``history`` are the bytes that copies
    for going back may take. ``say`` is told what breakpoints with a message have to say.
    """

    def __init__(
        self, launch: LaunchState, places: Places, history: int, say: Callable[[str], object] = print
    ) -> None:
        self.launch, self.places, self.say = launch, places, say
        self.code, self.control = debugged_code(launch.spaces, launch.config.block)
        self.control.reset()
        self.execution = Execution(launch, self.code, self.control)
        self.history = History(self.execution, history)
        self.breakpoints: list[Breakpoint] = []
        self.findings: list[tuple[str, list[int], Thread]] = []
        """What the sanitizer has found: the text, the statements, the thread."""
        self.only: Thread | None = None
        self.stops_at_faults = True
        self.tick, self.furthest = 0, 0
        self.place = 0
        self.thread = Thread(-1, 0, 0)
        self.error: EmulationError | None = None
        self.ended = False
        self._state: BlockState | None = None

    # Where it is

    @property
    def state(self) -> BlockState:
        """The state of the block in focus."""
        assert self._state is not None
        return self._state

    @property
    def statement(self) -> Instruction | Call:
        """The one that the thread in focus is about to execute."""
        return self.places.statements[self.place]

    def view(self, frame: int = 0) -> View:
        """What the thread in focus sees in a function that runs there, 0 the innermost."""
        frames, state = self.places.frames(self.place), self.state
        unit = next((u for u in self.execution.units if state in u.states), None)
        seen = frames[min(frame, len(frames) - 1)]
        return View(state, unit, self.thread.warp, self.thread.lane, self.place, seen, self.places.registers)

    def focus(self, thread: Thread) -> None:
        """Look at another thread of a block that runs. Raises DebugError where there is none."""
        state = next((s for s in self.execution.running() if s.block == thread.block), None)
        if state is None:
            raise DebugError(f"block {thread.block} does not run now")
        if thread.warp * LANES + thread.lane >= self.launch.config.threads or not 0 <= thread.lane < LANES:
            raise DebugError(f"a block has {self.launch.config.threads} threads")
        self._state, self.thread, self.place = state, thread, self.place_of(state, thread.warp, thread.lane)

    def active(self, state: BlockState, warp: int) -> int:
        """The lanes of a warp that are where it is."""
        return int(state.get_warp(warp, Warp.ACTIVE, "I"))

    def alive(self, state: BlockState, warp: int) -> int:
        """The lanes of a warp that have not ended."""
        return int(state.get_warp(warp, Warp.ALIVE, "I"))

    def has_ended(self, block: int, warp: int) -> bool:
        """Whether a warp of a block that runs has ended."""
        state = next((s for s in self.execution.running() if s.block == block), None)
        return state is not None and not self.alive(state, warp)

    def place_at(self, thread: Thread) -> int:
        """The statement that a thread of a block that runs is at."""
        state = next((s for s in self.execution.running() if s.block == thread.block), self.state)
        return self.place_of(state, thread.warp, thread.lane)

    def place_of(self, state: BlockState, warp: int, lane: int | None = None) -> int:
        """The statement that a warp is at, or one of its lanes."""
        active, waits = state.get_warp(warp, Warp.ACTIVE, "I"), not state.get(Block.RUNNABLE, "I") >> warp & 1
        if lane is None or active >> lane & 1:
            pc = state.get_warp(warp, Warp.WAITS if waits else Warp.PC, "Q")
            place = state.code.statement_at(pc) if pc else 0
            return max(0, min(place, len(self.places.statements) - 1))
        priority = state.get_warp(warp, Warp.PRIORITIES + 4 * lane, "i")
        blocks = state.code.blocks_by_priority
        if not 0 <= priority < len(blocks):
            return self.place
        return min(state.code.graph.blocks[blocks[priority]].start, len(self.places.statements) - 1)

    # Going on

    def resume(self) -> Stop | None:
        """Go on to the next breakpoint; None where the launch has ended. Raises the fault that it has stopped at."""
        return self._go(())

    def step(self, how: str) -> Stop | None:
        """Go on by an ``instruction``, to the next line (``over`` or ``into`` helpers), or ``out`` of a helper."""
        return self._go(self._steps(how))

    def _steps(self, how: str) -> list[int]:
        """The statements at which a step ends."""
        places, here = self.places, self.place
        everywhere = range(len(places.statements))
        if how == "instruction" or self.thread.block < 0:
            return list(everywhere)
        depth, line = places.depth(here), places.line(here)
        if how == "out":
            return [place for place in everywhere if places.depth(place) < depth]
        deepest = depth if how == "over" else len(places.statements)
        return [
            place for place in everywhere if place not in places.hoisted
            if places.depth(place) <= deepest and (places.depth(place) != depth or places.line(place) != line)
        ]

    def _flags(self, steps: Iterable[int]) -> tuple[bytes, dict[int, list[Breakpoint]]]:
        flags, stops = bytearray(self.control.statements), dict[int, list[Breakpoint]]()
        for place in steps:
            flags[place] |= Flag.STOP_FOCUS
        for point in self.breakpoints:
            for place in point.places(self.places):
                flags[place] |= Flag.STOP
                stops.setdefault(place, []).append(point)
        for _, places, _ in self.findings:
            for place in places:
                flags[place] |= Flag.STOP
        return bytes(flags), stops

    def _go(self, steps: Iterable[int]) -> Stop | None:
        if self.error is not None:
            raise self.error
        wanted = frozenset(steps)
        flags, stops = self._flags(wanted)
        self.control.flag(flags)
        self._focus_control()
        waited = self._collective()
        while True:
            ended = self._run(NEVER)
            if ended is not None:
                return ended if ended.reason else None
            stop = self._stop(wanted, stops, waited)
            if stop is not None:
                return stop

    def _collective(self) -> int:
        """The statement that the thread may come to again, since it waits there for others; -1 for none."""
        if self.thread.block < 0:
            return -1
        statement = self.statement
        return self.place if isinstance(statement, Instruction) and statement.form.effects.collective else -1

    def _focus_control(self) -> None:
        self.control["BLOCK"], self.control["WARP"] = self.thread.block, self.thread.warp
        self.control["LANES"] = 1 << self.thread.lane

    def _arrived(self) -> tuple[BlockState, int, int, int]:
        """The state that has stopped, the warp, its active lanes, the statement."""
        state = self.execution.state
        assert state is not None
        warp = state.get(Block.FAULT_WARP, "i")
        place = state.code.statement_at(state.get(Block.FAULT_PC, "Q"))
        return state, warp, state.get_warp(warp, Warp.ACTIVE, "I"), place

    def _stop(self, steps: frozenset[int], stops: dict[int, list[Breakpoint]], waited: int) -> Stop | None:
        """Why to stop where compiled code has; None to go on."""
        state, warp, active, place = self._arrived()
        mine = (state.block, warp) == self.thread[:2] and active >> self.thread.lane & 1
        if self.control["PAUSE"]:
            self.control["PAUSE"] = 0
            self._settle(self.thread.lane if mine else None)
            return Stop("pause")
        found = self._finding(state, warp, active, place)
        if found is not None:
            return found
        there = stops.get(place, ())
        hits = [(b, lane) for b in there if (lane := self._hit(b, state, warp, active, place)) is not None]
        for point, lane in hits:
            if point.message:
                self._tell(point, state, warp, lane, place)
        hits = [(b, lane) for b, lane in hits if not b.message]
        if hits:
            self._settle(self.thread.lane if mine and not hits[0][0].condition else hits[0][1])
            return Stop("breakpoint", breakpoints=tuple(b for b, _ in hits))
        if mine and place in steps and place != waited:
            self._settle(self.thread.lane)
            return Stop("step")
        return None

    def _hit(self, point: Breakpoint, state: BlockState, warp: int, active: int, place: int) -> int | None:
        """The lane for which a breakpoint stops. A condition that cannot be computed stops too, and is told."""
        if self.only is not None:
            active &= 1 << self.only.lane if (state.block, warp) == self.only[:2] else 0
        try:
            return point.lane(self._view_of(state, warp, 0, place), active, self.tick)
        except DebugError as error:
            self.say(f"the condition `{point.condition}` of line {point.line}: {error.message}")
            return (active & -active).bit_length() - 1

    def _view_of(self, state: BlockState, warp: int, lane: int, place: int) -> View:
        unit = next((u for u in self.execution.units if state in u.states), None)
        return View(state, unit, warp, lane, place, self.places.frames(place)[0], self.places.registers)

    def _tell(self, point: Breakpoint, state: BlockState, warp: int, lane: int, place: int) -> None:
        if self.tick >= self.furthest:
            self.say(interpolated(point.message, self._view_of(state, warp, lane, place)))

    def _finding(self, state: BlockState, warp: int, active: int, place: int) -> Stop | None:
        """Whether a thread comes to where the sanitizer has found something."""
        for entry in self.findings:
            text, places, thread = entry
            if place in places and (state.block, warp) == thread[:2] and active >> thread.lane & 1:
                self.findings.remove(entry)
                self._settle(thread.lane)
                return Stop("finding", text)
        return None

    def _settle(self, lane: int | None) -> None:
        """The thread that has stopped is in focus: a lane of the warp, the first active one if that is None."""
        state, warp, active, place = self._arrived()
        first = (active & -active).bit_length() - 1 if active else 0
        self._state, self.place = state, place
        self.thread = Thread(state.block, warp, first if lane is None else lane)

    # Running

    def _run(self, target: int, replay: bool = False) -> Stop | None:
        """Run until compiled code stops, or to a tick; a Stop at a fault, one without a reason at the end."""
        control = self.control
        while True:
            hidden = replay or self.tick < self.furthest
            limit = min(target, self.history.due if not replay else NEVER, self.furthest if hidden else NEVER)
            control["TARGET"] = max(limit, self.tick + 1)
            try:
                with _silence() if hidden else contextlib.nullcontext():
                    state = self.execution.advance()
            except EmulationError as error:
                self.tick = control["TICK"]
                self.furthest = max(self.furthest, self.tick)
                return self._fault(error, replay)
            self.tick = control["TICK"]
            if state is None:
                self.ended = True
                self.furthest = max(self.furthest, self.tick + 1)
                return Stop("")
            self.furthest = max(self.furthest, self.tick)
            if replay:
                control["PAUSE"] = 0  # the user means what goes forward
            if self.tick >= self.history.due and not replay:
                self._keep()
            if self.tick >= target or self._asked():
                return None

    def _keep(self) -> None:
        """Keep a copy to go back to, and tell when these take all that they may."""
        before = self.history.full
        self.history.take()
        if self.history.full and not before:
            self.say(
                f"the copies for going back take {self.history.limit >> 20} MiB: every second one is dropped from here "
                f"on, and going back takes longer (more: history={self.history.limit >> 19})"
            )

    def _asked(self) -> bool:
        """Whether compiled code has stopped for more than the tick."""
        state, warp, active, place = self._arrived()
        flags = self.control.flags_of(place)
        mine = (state.block, warp) == self.thread[:2] and bool(active >> self.thread.lane & 1)
        return bool(flags & Flag.STOP or (flags & Flag.STOP_FOCUS and mine) or self.control["PAUSE"])

    def _fault(self, error: EmulationError, replay: bool) -> Stop:
        """The launch has gone wrong: its state is still there."""
        if replay or not self.stops_at_faults:
            raise error
        self.error, state = error, self.execution.state
        assert state is not None
        warp, lane = state.get(Block.FAULT_WARP, "i"), state.get(Block.FAULT_LANE, "i")
        if error.thread is not None:
            x, y, _ = self.launch.config.block
            flat = error.thread[0] + x * (error.thread[1] + y * error.thread[2])
            warp, lane = flat // LANES, flat % LANES
        self._state, self.thread = state, Thread(state.block, warp, lane)
        self.place = max(0, self._place_of_fault(error, state, warp, lane))
        return Stop("exception", str(error))

    def _place_of_fault(self, error: EmulationError, state: BlockState, warp: int, lane: int) -> int:
        lines = [n for n, s in enumerate(self.places.statements) if s.line == error.ptx_line]
        place = self.place_of(state, warp, lane)
        return place if place in lines or not lines else lines[0]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """What the kernel prints again is not shown again."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
