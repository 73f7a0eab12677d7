"""One launch: what to do when compiled code comes back."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Callable

from ..machine.layout import LANES, NEVER, Block, Fault, Status, Warp
from ..instructions.lowering import Code
from ..machine.block_state import LaunchState, State, read_register
from .worker_pool import Team

__all__ = ["run", "without_order"]


def run(launch: LaunchState, code: Callable[[bool], Code], alone: bool = True) -> None:
    """Run all blocks of a launch, on this thread where ``alone``; ``code(conservative)`` gives the kernel's records."""
    if launch.spaces.cluster is not None:
        from .clusters import run_clusters

        run_clusters(launch, code)
    else:
        _Team(launch, code, alone).run()


class _Team(Team):
    def __init__(self, launch: LaunchState, codes: Callable[[bool], Code], alone: bool) -> None:
        super().__init__(launch, codes(False), alone)
        self.codes = codes

    def answer(self, worker: int, state: State, status: int) -> State | None:
        launch = self.launch
        if status == Status.DONE:
            self.progress()
            return None
        if status == Status.YIELD:
            return self.yielded(worker, state)
        if status == Status.FAULT:
            return gone_on(state, self.codes)
        if status == Status.STUCK:
            from .deadlock import deadlock

            raise deadlock(state)
        if status == Status.DEOPT:
            return without_order(state, self.codes(True))
        if status == Status.SERVICE:
            from .system_calls import serve

            serve(state)
        else:
            launch.tool.callback(state)
        return state

    def stuck(self) -> None:
        """All states go on in conservative code first: only there do waiting lanes give way to others of their warp."""
        ordered = [state for state in self.waiting if not state.code.conservative]
        if not ordered:
            from .deadlock import livelock

            raise livelock(min(self.waiting, key=lambda state: state.block))
        self.waiting = type(self.waiting)(
            state if state.code.conservative else without_order(state, self.codes(True)) for state in self.waiting
        )
        self.progress()


def gone_on(state: State, codes: Callable[[bool], Code]) -> State:
    """Go on after what may be a fault, or lanes that have to meet others; raises the fault."""
    from .convergence import converge

    return state if converge(state) else without_order(state, codes(True))


def without_order(state: State, code: Code) -> State:
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
        _replace(state, number, old, code)
        for field in (Warp.PC, Warp.WAITS):
            record = state.get_warp(number, field, "Q")
            nowhere = code.base if field == Warp.PC else 0
            state.put_warp(number, field, "Q", _translate(old, code, record) if record else nowhere)
    del keep
    return state


def _replace(state: State, warp: int, old: Code, new: Code) -> None:
    """Where lanes wait: the ranks of other blocks, that begin with the same statements."""
    ranks = {node.start: node.priority for node in new.graph.blocks}
    active, alive = state.get_warp(warp, Warp.ACTIVE, "I"), state.get_warp(warp, Warp.ALIVE, "I")
    parked = NEVER
    for lane in range(LANES):
        place = Warp.PLACES + 4 * lane
        number = old.nodes_by_rank[state.get_warp(warp, place, "i")]
        rank = ranks[old.graph.blocks[number].start] if old.graph.blocks else 0
        state.put_warp(warp, place, "i", rank)
        if (alive & ~active) >> lane & 1:
            parked = min(parked, rank)
    state.put_warp(warp, Warp.PARKED, "i", parked)


def _needed(state: State, warp: int, code: Code, old: Code) -> set[str]:
    """The registers that some lane of a warp still reads: where the active lanes are, and where the others wait."""
    record, alive = state.get_warp(warp, Warp.PC, "Q"), state.get_warp(warp, Warp.ALIVE, "I")
    waiting = alive if record == 0 else alive & ~state.get_warp(warp, Warp.ACTIVE, "I")
    ranks = {state.get_warp(warp, Warp.PLACES + 4 * lane, "i") for lane in range(LANES) if waiting >> lane & 1}
    places = {old.graph.blocks[old.nodes_by_rank[rank]].start for rank in ranks}
    if record and alive:
        places.add(max(0, old.statement_at(record)))
    needed = {name for place in places for name in code.registers.needed(place)}
    return needed | ({_CARRY} & set(code.registers.offsets) & set(old.registers.offsets))


_CARRY = "%CF"


def _translate(old: Code, new: Code, record: int) -> int:
    """The record of the new code at which to go on where the old one was at ``record``."""
    at = bisect_right(old.offsets, record - old.base) - 1
    statement = old.statements[at]
    mine, theirs = (
        [n for n, owner in enumerate(code.statements)
         if owner == statement and code.base + code.offsets[n] >= code.entry]
        for code in (old, new)
    )
    place = theirs[0] if not mine or at == mine[0] else theirs[max(0, len(theirs) - (len(mine) - mine.index(at)))]
    return new.base + new.offsets[place]
