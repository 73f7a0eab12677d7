"""The host threads that run one launch: each takes a block state, runs it for a time slice, and goes on or requeues it.

Compiled code runs without the interpreter's lock, so that workers are ordinary threads. They are started one after the
other, as soon as what is left of a launch is worth a thread; most launches start none. All else that happens to a
launch (faults, system calls, deoptimisation) is done by one worker at a time.

Blocks may wait for each other, so a state whose time slice is over goes to the end of a queue that all workers take
from, and makes room for a block that has not started.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from time import perf_counter
from typing import NamedTuple

from ...errors import EmulationError
from ...machine_code.host import cores
from ..codegen.code import Code
from ..jit.tier_up import note_time
from ..machine.status import Status
from . import host_threads
from .block_state import TIME_SLICE, BlockState, LaunchState
from .quiescence import Quiescence, digest
from .seeded_schedule import SeededSchedule

__all__ = ["Returned", "WorkerPool", "first_slice"]

RESIDENT_BYTES = 256 << 20
"""Memory that the states of waiting blocks may take."""
WAKE_SECONDS = 1e-3
"""Seconds of work for which to start another worker: what it costs is a tenth of that, where its core is idle."""
SURE_SECONDS = 2e-3
"""What takes longer is shared out in any case; below that, where it was of use in the launches before."""
FIRST_BLOCKS = 32
"""Blocks of a launch's first slice, where its pace is not known."""
SHORT, LONG = 1e-3, 16e-3
"""How long a call of compiled code is to take: between two, a launch can be interrupted and its workers see
what the others did."""
GRACE = 16
"""Time slices in which blocks before a faulty one may end, or fault themselves: then theirs is the first fault."""


class Returned(NamedTuple):
    """A state that compiled code has returned from, with its status, after some seconds."""

    state: BlockState
    status: int
    seconds: float


def first_slice(pace: float) -> int:
    """Blocks to begin with, at so many seconds a block (0 where that is not known)."""
    return max(FIRST_BLOCKS, min(TIME_SLICE, int(SHORT / pace))) if pace else FIRST_BLOCKS


class WorkerPool:
    """The workers of a launch, of which the caller is number 0. What they share is changed under ``mutex`` only."""

    def __init__(self, launch: LaunchState, codes: Callable[[bool], Code], alone: bool) -> None:
        self.launch, self.codes, self.code = launch, codes, codes(False)
        self.random = launch.config.seed is not None
        self.schedule = SeededSchedule(launch) if self.random else None
        self.alone = alone or self.code.prints or self.random
        short = launch.blocks * self.code.walls[True] < SURE_SECONDS
        self.patience = SURE_SECONDS if short and self.code.better_alone else 0.0
        """Seconds in which no further worker is started."""
        self.mutex = threading.Lock()
        self.changed = threading.Condition(self.mutex)
        self.waiting: deque[BlockState] = deque()
        self.running: dict[int, BlockState | None] = {}
        """The workers that run a state, None where it is being made."""
        self.admit, self.stopped = False, False
        self.comparing = False
        """Only worker 0 runs, to see whether anything changes."""
        self.quiescence = Quiescence(self.random)
        self.held, self.turns = 0, 0
        """Workers that wait for earlier blocks, and the time slices of these since."""
        self.most, self.woken, self.seconds, self.grace = 0, 0, 0.0, GRACE
        self.error: BaseException | None = None
        self.fault: tuple[int, EmulationError] | None = None

    def run(self, returned: Returned | None = None) -> float:
        """Run the launch to its end, from a state that has begun, if there is one; the seconds in compiled code.

        Raises what went wrong.
        """
        try:
            with self.mutex:  # the first one to be started may want to start another
                self.wake()
            self._work(0, returned)
        except BaseException:
            self._abandon()
            raise
        try:
            if self.error is not None:
                self._abandon()
                raise self.error
            if self.fault is not None:
                raise self.fault[1]
        finally:  # an error holds this frame, and so must not be held by it
            self.error = self.fault = None
        return self.seconds

    def _work(self, worker: int, returned: Returned | None = None) -> None:
        blocks, state = first_slice(self.code.pace), None
        if returned is not None:
            with self.mutex:
                self.running[worker] = returned.state
                state = self._returned(worker, *returned)
        while state is not None or (state := self._take(worker)) is not None:
            self.launch.tool.switch(state)
            self.running[worker] = state
            start = perf_counter()
            status = state.run(TIME_SLICE if self.random else blocks)  # a slice that is drawn is one call
            spent = perf_counter() - start
            blocks = min(TIME_SLICE, blocks * 4) if spent < SHORT else max(1, blocks // 4) if spent > LONG else blocks
            with self.mutex:
                state = self._returned(worker, state, status, spent)

    def _take(self, worker: int) -> BlockState | None:
        """A state to run; None where nothing is left to do."""
        with self.mutex:
            while not self.stopped:
                if worker and self.comparing:
                    self.changed.wait()
                elif self.launch.left() and self._starts(worker):
                    self.admit = False
                    self.running[worker] = None
                    break
                elif self.waiting and (state := self._next(worker)) is not None:
                    if not self._is_cancelled(state):
                        self.running[worker] = state
                        return state
                elif self.running or self.waiting:
                    self.changed.wait()
                else:
                    self.stopped = True
                    self.changed.notify_all()
            else:
                return None
        return self._new_state(worker) if self.schedule is None else self.schedule.begin(self.code)

    def _new_state(self, worker: int) -> BlockState:
        state = self.launch.state(self.code)
        state.worker = worker
        return state

    def _next(self, worker: int) -> BlockState | None:
        """The state that waits for its turn with this worker."""
        if self.schedule is not None:
            self.schedule.draw(self.waiting)
        if not self.launch.tool.pinned and not self.held:
            return self.waiting.popleft()
        states = [state for state in self.waiting if state.worker == worker or not self.launch.tool.pinned]
        if self.held:
            states.sort(key=lambda state: state.block)
        mine = next(iter(states), None)
        if mine is not None:
            self.waiting.remove(mine)
        return mine

    def _starts(self, worker: int) -> bool:
        """Whether the next block starts now, though others wait."""
        if self.schedule is not None:
            return self.schedule.starts(self.waiting, RESIDENT_BYTES)
        pinned, admit = self.launch.tool.pinned, self.admit and not self.held
        return admit or not any(state.worker == worker or not pinned for state in self.waiting)

    def _returned(self, worker: int, state: BlockState, status: int, spent: float) -> BlockState | None:
        """Answer what compiled code returned with; the state to go on with, None to take another one."""
        self.seconds += spent
        note_time(state.code, spent)
        following: BlockState | None = None
        if not self.stopped and not self._is_cancelled(state):
            try:
                following = self._answer(worker, state, status)
            except EmulationError as error:
                self._fail(state, error)
        if following is None:
            self.running.pop(worker, None)
            self.changed.notify_all()
        return following

    def _answer(self, worker: int, state: BlockState, status: int) -> BlockState | None:
        if status == Status.DONE:
            self._progress()
            if self.schedule is not None:
                self.schedule.end(state, self.code)
            else:
                self.launch.end(state)
            return None
        if status == Status.YIELD:
            return self._yielded(worker, state)
        from .events import deadlock, handle

        if status == Status.BLOCKED:
            raise deadlock(state)
        if self.launch.tool.in_order and self._passed_over(state):
            return None
        return handle(state, status, self.codes)

    def _passed_over(self, state: BlockState) -> bool:
        """Wait until no earlier block is being run; whether this one need not go on then."""
        self.held, self.turns = self.held + 1, 0
        while self.held <= self.woken and self.turns < GRACE and not (self.stopped or self.comparing):
            others = (*self.running.values(), *self.waiting)
            if not any(o is not None and not o.between_blocks and o.block < state.block for o in others):
                break
            self.changed.wait(SHORT)
        self.held -= 1
        return self.stopped or self._is_cancelled(state)

    # Time slices

    def _progress(self) -> None:
        """A block has come to an end."""
        self.quiescence = Quiescence(self.random)
        self._set_comparing(False)

    def _set_comparing(self, comparing: bool) -> None:
        if self.comparing and not comparing:
            self.changed.notify_all()
        self.comparing = comparing
        self.launch.stop_clocks(comparing)

    def _yielded(self, worker: int, state: BlockState) -> BlockState | None:
        """A call of compiled code is over, and perhaps a time slice."""
        if state.between_blocks:
            state.left = TIME_SLICE
            self._progress()
            if self.schedule is not None:
                return state
            self.wake()
            return self._renewed(worker, state)
        if state.left > 0 and not (worker and self.comparing):
            self.wake()
            return state
        self.waiting.append(state)
        if state.left > 0:
            return None
        self.turns += 1
        if self.schedule is None and state.has_pending:
            from .events import complete

            complete([state])
        state.left = TIME_SLICE if self.schedule is None else self.schedule.slice()
        states = len(self.waiting) + len(self.running) - 1
        if self.fault is not None:
            self.grace -= 1
        elif self.launch.left() and states * state.nbytes < RESIDENT_BYTES:
            self.admit = True
        elif self.quiescence.slice_over(states):
            self.launch.tool.stalled()
            self.comparing = True
            if not worker and len(self.running) == 1:
                self._compare()
        self.wake(1)
        return None

    def _renewed(self, worker: int, state: BlockState) -> BlockState:
        """The state for the next blocks: in other code, where more is known than when the launch began."""
        if self.code.outdated:
            self.code = self.codes(False)
        return self._new_state(worker) if state.renews or state.code.outdated else state

    def _compare(self) -> None:
        """Compare the memory with what it was some rounds ago, or remember it."""
        from .events import complete

        if complete(self.waiting):
            self._progress()
            return
        if self.quiescence.reached(digest(self.launch, self.waiting)):
            self._quiescent()
        self._set_comparing(self.quiescence.stopped)

    def _quiescent(self) -> None:
        """All states resume in conservative code first: only there do waiting lanes yield to others of their warp."""
        from .events import deoptimise, livelock

        if all(state.code.conservative for state in self.waiting):
            first = min(self.waiting, key=lambda state: state.block)
            if self.quiescence.certain(first.code):
                raise livelock(first)
            return
        code = self.codes(True)
        self.waiting = deque(state if state.code.conservative else deoptimise(state, code) for state in self.waiting)
        self._progress()

    # Workers

    def wake(self, taken: int = 0) -> None:
        """Start further workers where enough is left to do, without the ``taken`` states that this worker runs."""
        left = self.launch.left() + len(self.waiting) - taken
        pace = max(self.code.pace, self.seconds / max(1, self.launch.blocks - self.launch.left()))
        wanted = min(int(left * pace / WAKE_SECONDS), left)
        if self.alone or self.seconds < self.patience or wanted <= self.woken:
            return
        self.most = self.most or cores() - 1
        for _ in range(self.woken, min(wanted, self.most)):
            self.launch.share()
            try:
                host_threads.start(partial(copy_context().run, self._worker, self.woken + 1))
            except RuntimeError:  # Python ends, or there are too many threads
                self.most = self.woken
                break
            self.woken += 1
        self.alone = self.woken >= self.most

    def _worker(self, worker: int) -> None:
        try:
            self._work(worker)
        except BaseException as error:  # noqa: BLE001 - the caller of the launch gets it
            with self.mutex:
                self.error = self.error or error
                self._stop()
        with self.mutex:
            self.running.pop(worker, None)
            self.changed.notify_all()

    # Ends

    def _is_cancelled(self, state: BlockState) -> bool:
        """Whether a state need not go on, since an earlier block has failed."""
        return self.fault is not None and (state.block >= self.fault[0] or self.grace < 0)

    def _fail(self, state: BlockState, error: EmulationError) -> None:
        """A block has failed: none behind it starts any more, those before it have yet to show that they do not."""
        if self.fault is None or state.block < self.fault[0]:
            self.fault = state.block, error
            self.launch.close(state.block if self.schedule is None else 0)

    def _stop(self) -> None:
        self.stopped = True
        self.launch.close(0)
        self.changed.notify_all()

    def _abandon(self) -> None:
        """Stop, and wait until no worker touches the memory of the launch any more, even if interrupted again."""
        try:
            with self.mutex:
                self._stop()
                self.running.pop(0, None)
                while self.running:
                    self.changed.wait()
        except KeyboardInterrupt:
            self._abandon()
