"""The host threads that run one launch: each takes a block state, runs it for a while, and goes on or gives it back.

Compiled code runs without the interpreter's lock, so that workers are ordinary threads. They are called one after the
other, as soon as what is left of a launch is worth a thread; most launches never call any. All else that happens to a
launch (faults, calls of the system, new code) is done by one worker at a time.

Blocks may wait for each other, so a state whose turn is over goes to the end of a queue that all workers take from, and
makes room for a block that has not started. Compiled code is deterministic: if one worker, alone, finds everything as
it was some rounds before, nothing will ever change, and the blocks wait for ever.
"""

from __future__ import annotations

import _thread
import os
import threading
import warnings
from collections import deque
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING

from ...config import current
from ...errors import EmulationError, PtxWarning, caller
from ..jit.tier_up import note_time
from ..machine.layout import Block
from ..machine.block_state import TURNS, LaunchState, State

if TYPE_CHECKING:
    from ..instructions.lowering import Code

__all__ = ["Team"]

RESIDENT_BYTES = 256 << 20
"""Memory that the states of waiting blocks may take."""
HELP = 0.4e-3
"""Seconds of work for which to call another thread."""
FIRST = 32
"""Turns of a launch's first stretch, where its pace is not known."""
SHORT, LONG = 1e-3, 16e-3
"""How long a stretch is to take: between two, a launch can be interrupted and its workers see what the others did."""
LOOK, LOOKS = 16, 40
"""Rounds without the end of a block after which to look whether anything changes, then doubled, and how many to look:
more than a block has warps, since it may be another one's turn each time."""
LOTS = 64
"""Rounds in which nothing must change where warps are drawn by lot: one that would change something may be unlucky."""
GRACE = 16
"""Turns in which blocks before a faulty one may come to an end, or to a fault of their own, which is then the first."""


def _cores() -> int:
    """How many threads a launch may use."""
    chosen = current().emulator_threads
    if chosen is not None:
        return chosen
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Watch:
    """Counts rounds, in which every state has its turn, without the end of a block."""

    def __init__(self) -> None:
        self.turns, self.rounds, self.look, self.seen, self.since, self.same = 0, 0, LOOK, b"", 0, 0

    def turn(self, states: int) -> bool:
        """A state has had its turn; whether all have."""
        self.turns += 1
        if self.turns < states:
            return False
        self.turns, self.rounds = 0, self.rounds + 1
        return True


class Team:
    """The workers of a launch, of which the caller is number 0. What they share is changed under ``mutex`` only."""

    def __init__(self, launch: LaunchState, code: Code, alone: bool) -> None:
        self.launch, self.code = launch, code
        self.alone = alone or code.prints or launch.config.seed is not None
        self.mutex = threading.Lock()
        self.changed = threading.Condition(self.mutex)
        self.waiting: deque[State] = deque()
        self.running: set[int] = set()
        self.opening, self.quiet, self.stopped = False, False, False
        self.watch = _Watch()
        self.most, self.called, self.seconds, self.grace = 0, 0, 0.0, GRACE
        self.error: BaseException | None = None
        self.fault: tuple[int, EmulationError] | None = None

    def answer(self, worker: int, state: State, status: int) -> State | None:
        """Do what compiled code asks for; the state to go on with, None where its turn is over."""
        raise NotImplementedError

    def stuck(self) -> None:
        """Nothing will ever change: raises, unless the states can be given other code."""
        raise NotImplementedError

    def run(self) -> None:
        """Run the launch to its end; raises what went wrong."""
        try:
            self.call()
            self._work(0)
        except BaseException:
            self._abandon()
            raise
        if self.error is not None:
            raise self.error
        if self.fault is not None:
            raise self.fault[1]
        self.code.pace = self.seconds / max(1, self.launch.blocks)
        if self.code.failure is not None:
            self._tell()

    def _tell(self) -> None:
        error, self.code.failure = self.code.failure, None
        loc, name = caller(), self.launch.spaces.function.name
        warnings.warn_explicit(
            f"kernel `{name}` stays in the emulator's first tier, which is right but slower: making the second failed "
            f"with {error!r}", PtxWarning, loc.file if loc else "<unknown>", loc.line if loc else 0,
        )

    def _work(self, worker: int) -> None:
        turns = max(FIRST, min(TURNS, int(SHORT / self.code.pace))) if self.code.pace else FIRST
        while (state := self._take(worker)) is not None:
            going: State | None = state
            while going is not None:
                self.launch.tool.switch(going)
                start = perf_counter()
                status = going.run(turns)
                spent = perf_counter() - start
                turns = min(TURNS, turns * 4) if spent < SHORT else max(1, turns // 4) if spent > LONG else turns
                with self.mutex:
                    going = self._came_back(worker, going, status, spent)

    def _take(self, worker: int) -> State | None:
        """A state to run; None where nothing is left to do."""
        with self.mutex:
            while not self.stopped:
                if worker and self.quiet:
                    self.changed.wait()
                elif self.launch.left() and (self.opening or not self.waiting):
                    self.opening = False
                    self.running.add(worker)
                    break
                elif self.waiting:
                    state = self.waiting.popleft()
                    if not self._over(state):
                        self.running.add(worker)
                        return state
                elif self.running:
                    self.changed.wait()
                else:
                    self.stopped = True
                    self.changed.notify_all()
            else:
                return None
        return State(self.launch, self.code)

    def _came_back(self, worker: int, state: State, status: int, spent: float) -> State | None:
        self.seconds += spent
        note_time(state.code, spent)
        going: State | None = None
        if not self.stopped and not self._over(state):
            try:
                going = self.answer(worker, state, status)
            except EmulationError as error:
                self._fail(state, error)
        if going is None:
            self.running.discard(worker)
            self.changed.notify_all()
        return going

    # Turns

    def progress(self) -> None:
        """A block has come to an end."""
        self.watch = _Watch()
        if self.quiet:
            self.quiet = False
            self.changed.notify_all()

    def yielded(self, worker: int, state: State) -> State | None:
        """A stretch is over, and perhaps a turn."""
        if state.between_blocks:
            state.left = TURNS
            self.progress()
            self.call()
            return state
        if state.left > 0 and not (worker and self.quiet):
            self.call()
            return state
        self.waiting.append(state)
        if state.left > 0:
            return None
        state.left = TURNS
        states = len(self.waiting) + len(self.running) - 1
        if self.fault is not None:
            self.grace -= 1
        elif self.launch.left() and states * state.nbytes < RESIDENT_BYTES:
            self.opening = True
        elif self.watch.turn(states):
            self._look(worker)
        self.call(1)
        return None

    def _look(self, worker: int) -> None:
        """All states have had a turn: see whether that changed anything, if it is time for that."""
        watch = self.watch
        if watch.rounds < watch.look:
            return
        self.quiet = True
        if worker or len(self.running) > 1:
            return
        lots = self.launch.config.seed is not None
        seen = self._digest()
        watch.same = watch.same + 1 if seen == watch.seen else 0
        if watch.same >= (LOTS if lots else 1):
            self.stuck()
        elif not watch.seen:
            watch.seen, watch.since = seen, watch.rounds
        elif watch.rounds >= watch.since + LOOKS and not watch.same:
            watch.look, watch.seen, self.quiet = 2 * watch.rounds, b"", False
            self.changed.notify_all()
        elif lots:
            watch.seen = seen

    def _digest(self) -> bytes:
        from hashlib import blake2b

        digest = blake2b(digest_size=16)
        for state in sorted(self.waiting, key=lambda state: state.address):
            state.digest(digest)
            if self.launch.config.seed is None:  # a turn may be over before every warp had its own
                digest.update(bytes([state.get(Block.CURRENT, "B")]))
        self.launch.digest(digest)
        return digest.digest()

    # Help

    def call(self, mine: int = 0) -> None:
        """Call other workers, where what is left to do is worth it; ``mine`` of what waits this one takes itself."""
        left = self.launch.left() + len(self.waiting) - mine
        pace = max(self.code.pace, self.seconds / max(1, self.launch.blocks - self.launch.left()))
        wanted = min(int(left * pace / HELP), left)
        if self.alone or wanted <= self.called:
            return
        self.most = self.most or _cores() - 1
        for _ in range(self.called, min(wanted, self.most)):
            self.called += 1
            _thread.start_new_thread(copy_context().run, (self._help, self.called))
        self.alone = self.called >= self.most

    def _help(self, worker: int) -> None:
        try:
            self._work(worker)
        except BaseException as error:  # noqa: BLE001 - the caller of the launch gets it
            with self.mutex:
                self.error = self.error or error
                self._stop()
        with self.mutex:
            self.running.discard(worker)
            self.changed.notify_all()

    # Ends

    def _over(self, state: State) -> bool:
        """Whether a state need not go on, since a block before its own has failed."""
        return self.fault is not None and (state.block >= self.fault[0] or self.grace < 0)

    def _fail(self, state: State, error: EmulationError) -> None:
        """A block has failed: none behind it starts any more, those before it have yet to show that they do not."""
        if self.fault is None or state.block < self.fault[0]:
            self.fault = state.block, error
            self.launch.close(state.block)

    def _stop(self) -> None:
        self.stopped = True
        self.launch.close(0)
        self.changed.notify_all()

    def _abandon(self) -> None:
        """Stop, and wait until nobody touches the memory of the launch any more, however often one is interrupted."""
        try:
            with self.mutex:
                self._stop()
                self.running.discard(0)
                while self.running:
                    self.changed.wait()
        except KeyboardInterrupt:
            self._abandon()
