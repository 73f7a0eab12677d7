"""One launch: which block states there are, and what to do when compiled code comes back.

Blocks run one after the other in one block state. When a block's warps only wait and poll, it may wait for a block that
has not started: then another state takes the next block, and the states take turns.
"""

from __future__ import annotations

import ctypes
import hashlib
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from time import perf_counter

from .faults import failure
from .hot import heat
from .layout import LANES, Block, Fault, Status, Warp
from .lower import Code
from .services import serve
from .state import LaunchState, State, read_register
from .waiting import deadlock, livelock

__all__ = ["run"]

RESIDENT_BYTES = 256 << 20
"""Memory that the states of waiting blocks may take."""
LOOK = 16
"""Rounds without the end of a block after which to look whether anything changes at all; doubled each time."""
LOOKS = 8


def run(launch: LaunchState, code: Callable[[bool], Code]) -> None:
    """Run all blocks of a launch; ``code(plain)`` gives the kernel's records."""
    states = deque([State(launch, code(False))])
    watch = _Watch(launch)
    while states:
        state = states[0]
        if launch.sanitizer is not None:
            launch.sanitizer.switch(state)
        start = perf_counter()
        status = state.run()
        heat(state.code, perf_counter() - start)
        if status == Status.DONE:
            states.popleft()
            watch = _Watch(launch)
        elif status == Status.FAULT:
            raise failure(state)
        elif status == Status.STUCK:
            raise deadlock(state)
        elif status == Status.SERVICE:
            serve(state)
        elif status == Status.WATCH and launch.sanitizer is not None:
            launch.sanitizer.serve(state)
        elif status == Status.STOPPED and launch.stopped is not None:
            launch.stopped(state)
        elif status == Status.DEOPT:
            states[0] = _without_order(state, code(True))
        elif state.between_blocks:
            watch = _Watch(launch)
        elif launch.started() < launch.blocks and len(states) * state.nbytes < RESIDENT_BYTES:
            states.appendleft(State(launch, state.code))
        else:
            states.rotate(-1)
            watch.turn(states)


class _Watch:
    """Notices when blocks that wait for each other do so for ever.

    The machine is deterministic, so if all it has looks the same as some rounds before, it will for all time. Looking
    costs a pass over the memory, hence ever more rarely.
    """

    def __init__(self, launch: LaunchState) -> None:
        self.launch, self.turns, self.rounds, self.look, self.seen = launch, 0, 0, LOOK, b""

    def turn(self, states: deque[State]) -> None:
        """A state has had its turn without coming to an end."""
        self.turns += 1
        if self.turns < len(states):
            return
        self.turns, self.rounds = 0, self.rounds + 1
        if self.rounds == self.look:
            self.seen = self._digest(states)
        elif self.rounds > self.look:
            if self._digest(states) == self.seen:
                raise livelock(states[0])
            if self.rounds == self.look + LOOKS:
                self.look *= 2

    def _digest(self, states: deque[State]) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for state in sorted(states, key=lambda state: state.address):
            state.digest(digest)
        self.launch.digest(digest)
        return digest.digest()


def _without_order(state: State, code: Code) -> State:
    """Go on in code that assumes nothing about which lanes run when: same block, same statements, other registers."""
    old, warps, stride = state.code, state.warps, state.stride
    wrapped = state.get(Block.FAULT_KIND, "i") == Fault.WRAP
    if wrapped and old.prologue <= state.get(Block.FAULT_RECORD, "Q") < old.entry:
        return State(state.launch, code)
    keep = state.warps_memory
    state.attach(code)
    for number in range(state.count):
        before = warps + number * stride
        ctypes.memmove(state.warps + number * state.stride, before, Warp.REGISTERS)
        for name in sorted(_needed(state, number, code, old)):
            state.set_register(number, name, dict(enumerate(read_register(old, before, name))))
        for field in (Warp.PC, Warp.WAITS):
            record = state.get_warp(number, field, "Q")
            nowhere = code.base if field == Warp.PC else 0
            state.put_warp(number, field, "Q", _translate(old, code, record) if record else nowhere)
    del keep
    return state


def _needed(state: State, warp: int, code: Code, old: Code) -> set[str]:
    """The registers that some lane of a warp still reads: where the active lanes are, and where the others wait."""
    record, alive = state.get_warp(warp, Warp.PC, "Q"), state.get_warp(warp, Warp.ALIVE, "I")
    waiting = alive if record == 0 else alive & ~state.get_warp(warp, Warp.ACTIVE, "I")
    ranks = {state.get_warp(warp, Warp.PLACES + 4 * lane, "i") for lane in range(LANES) if waiting >> lane & 1}
    places = {code.graph.nodes[code.nodes_by_rank[rank]].start for rank in ranks}
    if record and alive:
        places.add(old.statement_at(record))
    needed = {name for place in places for name in code.slots.needed(place)}
    return needed | ({_CARRY} & set(code.slots.offsets) & set(old.slots.offsets))


_CARRY = "%CF"


def _translate(old: Code, new: Code, record: int) -> int:
    """The record of the new code at which to go on where the old one was at ``record``."""
    at = bisect_right(old.offsets, record - old.base) - 1
    statement = old.statements[at]
    start = old.entry - old.base
    mine = [n for n, owner in enumerate(old.statements) if owner == statement and old.offsets[n] >= start]
    theirs = [n for n, owner in enumerate(new.statements) if owner == statement]
    place = theirs[0] if not mine or at == mine[0] else theirs[max(0, len(theirs) - (len(mine) - mine.index(at)))]
    return new.base + new.offsets[place]
