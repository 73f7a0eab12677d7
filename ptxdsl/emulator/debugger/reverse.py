"""Back in time: a launch is taken back to a checkpoint, and runs again up to the moment that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..machine.debug_control import LOGGED, Flag
from .debugged_launch import DebuggedLaunch, Stop, Thread
from .probe import NEVER
from .view import DebugError

__all__ = ["Moment", "back", "back_to_breakpoint", "moment", "return_to", "search", "travel"]

_Entries = list[tuple[int, int]]


class Moment(NamedTuple):
    """Where a launch is: the tick, the thread in focus, whether it has failed there."""

    tick: int
    thread: Thread
    failed: bool


def moment(launch: DebuggedLaunch) -> Moment:
    """Where it is now."""
    return Moment(launch.tick, launch.thread, launch.error is not None)


def travel(launch: DebuggedLaunch, tick: int, thread: Thread | None = None) -> None:
    """Go to the moment before the statement that a tick names; ``thread`` is in focus then, if its block runs."""
    _restore(launch, tick)
    launch.control.flag(bytes(launch.control.statements))
    launch._run(tick, replay=True)
    launch._settle(None)
    if thread is not None:
        state, warp, active, _ = launch._arrived()
        if (state.block, warp) == thread[:2] and active >> thread.lane & 1:
            launch._settle(thread.lane)


def return_to(launch: DebuggedLaunch, where: Moment) -> None:
    """Go forward again to where it was."""
    travel(launch, where.tick)
    if where.failed:
        launch._run(NEVER)
    try:
        launch.focus(where.thread)
    except DebugError:  # of a block that does not run yet
        launch.thread = where.thread


def _restore(launch: DebuggedLaunch, tick: int) -> int:
    """Take it back to the last checkpoint before a tick, whose tick is given."""
    if launch.history.missing:
        raise DebugError(f"there is no way back: {launch.history.missing}")
    checkpoint = launch.history.before(tick)[0]
    launch.history.restore(checkpoint)
    launch.error, launch.ended, launch.tick = None, False, checkpoint.tick
    launch.control["WORD"] = launch.control["NBYTES"] = 0
    return checkpoint.tick


def search(launch: DebuggedLaunch, last: int, prepare: Callable[[], None], found: Callable[[bool], bool]) -> None:
    """Run the time up to a tick again, a checkpoint's interval at a time, the last one first.

    ``prepare`` sets what to note; ``found(first)`` says whether that is enough, at the ``first`` checkpoint it has to
    be.
    """
    while True:
        begin = _restore(launch, last)
        prepare()
        if last > begin:
            launch._run(last, replay=True)
        if found(begin == 0) or begin == 0:
            return
        last = begin


def _last(launch: DebuggedLaunch) -> int:
    """The tick of the last statement that has begun before now."""
    return launch.tick if launch.error is not None else launch.tick - 1


def back(launch: DebuggedLaunch, how: str) -> Stop:
    """A step back of the thread in focus: an ``instruction``, a line (``over`` helpers, ``into`` them), or ``out``."""
    places, here, thread, where = launch.places, launch.place, launch.thread, moment(launch)
    if launch.history.missing:
        raise DebugError(f"there is no way back: {launch.history.missing}")
    depth = places.depth(here)
    deepest = {"over": depth, "out": depth - 1}.get(how, len(places.statements))
    flags = bytes(
        Flag.LOG_FOCUS if how == "instruction" or places.depth(place) <= deepest else 0
        for place in range(len(places.statements))
    )
    entries: _Entries = []
    target: list[int] = []

    def prepare() -> None:
        launch.control.flag(flags)
        launch._focus_control()

    def found(first: bool) -> bool:
        entries[:0] = launch.control.logged()
        if not entries:
            return False
        start = len(entries) - 1
        if how != "instruction":
            while start and _line(launch, entries[start - 1][1]) == _line(launch, entries[-1][1]):
                start -= 1
        target[:] = [entries[start][0]]
        return first or start > 0 or how == "instruction" or len(entries) >= LOGGED

    last = _last(launch)
    if last > 0:
        search(launch, last, prepare, found)
    if not target:
        return_to(launch, where)
        return Stop("begin", "here the thread begins")
    travel(launch, target[0], thread)
    return Stop("step")


def _line(launch: DebuggedLaunch, place: int) -> object:
    return launch.places.line(place), launch.places.depth(place)


def back_to_breakpoint(launch: DebuggedLaunch) -> Stop:
    """Back to where a breakpoint would have stopped last, or to the begin of the launch."""
    flags, stops = launch._flags(())
    plain = {
        place for place, there in stops.items()
        if launch.only is None and all(not (b.condition or b.hits or b.message) for b in there)
    }
    asked = bytes(
        Flag.LOG_STOP if place in plain else Flag.STOP if place in stops else 0 for place in range(len(flags))
    )
    best: list[tuple[int, Thread | None, Stop]] = []

    def found(_: bool) -> bool:
        for tick, place in launch.control.logged()[-1:]:
            if not best or tick > best[0][0]:
                best[:] = [(tick, None, Stop("breakpoint", breakpoints=tuple(stops[place])))]
        return bool(best)

    def prepare() -> None:
        launch.control.flag(asked)

    last = _last(launch)
    while last > 0:
        begin = _restore(launch, last)
        prepare()
        while launch.tick < last:
            launch._run(last, replay=True)
            state, warp, active, place = launch._arrived()
            there = [b for b in stops.get(place, ()) if place not in plain and not b.message]
            hits = [(b, lane) for b in there if (lane := launch._hit(b, state, warp, active, place)) is not None]
            if hits:
                thread = Thread(state.block, warp, hits[0][1])
                best[:] = [(launch.tick, thread, Stop("breakpoint", breakpoints=tuple(b for b, _ in hits)))]
        if found(begin == 0) or begin == 0:
            break
        last = begin
    if best:
        tick, where, stop = best[0]
        travel(launch, tick, where or launch.thread)
        return stop
    travel(launch, 1)
    return Stop("begin", "here the launch begins")
