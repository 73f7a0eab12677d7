"""Deoptimisation: a block that runs resumes in conservative code, which assumes nothing about which lanes run when."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Callable

from ...ir import Instruction
from ..analysis.form_plans import plan_of
from ..codegen.code import Code
from ..instructions.undefined import FOLLOWING
from ..machine.layout import LANES, NEVER, Block, Warp
from ..machine.status import Fault
from .block_state import BlockState
from .register_access import read_register

__all__ = ["after_wrap", "deoptimise", "note_wrap", "resume_at"]


def deoptimise(state: BlockState, code: Code) -> BlockState:
    """Resume in other code: the same block, the same statements, other registers. The state to go on with."""
    old, warps, stride = state.code, state.warps, state.stride
    keep = state.warps_memory
    state.attach(code)
    for number in range(state.count):
        before = warps + number * stride
        ctypes.memmove(state.warps + number * state.stride, before, Warp.REGISTERS)
        for name in sorted(_live(state, number, code, old)):
            state.set_register(number, name, dict(enumerate(read_register(old, before, name))))
        _move_lanes(state, number, old, code)
        for field in (Warp.PC, Warp.WAITS):
            ended = not state.get_warp(number, Warp.ALIVE, "I")
            pc = 0 if ended else state.get_warp(number, field, "Q")
            nowhere = code.base if field == Warp.PC else 0
            state.put_warp(number, field, "Q", resume_at(old, code, pc) if pc else nowhere)
    del keep
    return state


def note_wrap(state: BlockState) -> bool:
    """Whether a register wraps around that was taken to be uniform plus a known vector: noted, for later code."""
    if state.get(Block.FAULT_KIND, "i") != Fault.WRAP:
        return False
    code = state.code
    at, ops = code.statement_at(state.get(Block.FAULT_PC, "Q")), code.graph.def_use
    names = {register.name for register in ops[at].uses if register.type.bits < 64}
    code.wraps.add(at)
    for place, op in enumerate(ops):
        widens = isinstance(op.statement, Instruction) and plan_of(op.statement.form).widens
        if widens and any(register.name in names for register in op.uses):
            code.wraps.add(place)
    return True


def after_wrap(state: BlockState, codes: Callable[[bool], Code]) -> BlockState:
    """Finish the block in conservative code; those after it run in code that knows better."""
    old = state.code
    if old.prologue <= state.get(Block.FAULT_PC, "Q") < old.entry:
        if state.counter is None:
            return BlockState(state.launch, codes(False))
        state.restart(codes(True))  # the other blocks of its cluster know where it lies
        return state
    state = deoptimise(state, codes(True))
    state.put(Block.BUDGET, "i", 0)
    state.renews = True
    return state


def _move_lanes(state: BlockState, warp: int, old: Code, new: Code) -> None:
    """Let lanes wait at the blocks of the new code that begin with the same statements."""
    priorities = {block.start: block.priority for block in new.graph.blocks}
    active, alive = state.get_warp(warp, Warp.ACTIVE, "I"), state.get_warp(warp, Warp.ALIVE, "I")
    parked = NEVER
    for lane in range(LANES):
        place = Warp.PRIORITIES + 4 * lane
        number = old.blocks_by_priority[state.get_warp(warp, place, "i")]
        priority = priorities[old.graph.blocks[number].start] if old.graph.blocks else 0
        state.put_warp(warp, place, "i", priority)
        if (alive & ~active) >> lane & 1:
            parked = min(parked, priority)
    state.put_warp(warp, Warp.PARKED, "i", parked)


def _live(state: BlockState, warp: int, code: Code, old: Code) -> set[str]:
    """The registers that some lane of a warp still reads: where the active lanes are, and where the others wait."""
    pc, alive = state.get_warp(warp, Warp.PC, "Q"), state.get_warp(warp, Warp.ALIVE, "I")
    waiting = alive if pc == 0 else alive & ~state.get_warp(warp, Warp.ACTIVE, "I")
    priorities = {state.get_warp(warp, Warp.PRIORITIES + 4 * lane, "i") for lane in range(LANES) if waiting >> lane & 1}
    places = {old.graph.blocks[old.blocks_by_priority[priority]].start for priority in priorities}
    if pc and alive:
        places.add(max(0, old.statement_at(pc)))
    return {name for place in places for name in code.registers.liveness.before(place)}


def resume_at(old: Code, new: Code, pc: int) -> int:
    """The micro-op of the new code at which to go on where the old code was at ``pc``."""
    at = bisect_right(old.offsets, pc - old.base) - 1
    statement = old.statements[at]
    mine, theirs = (
        [n for n, owner in enumerate(code.statements)
         if owner == statement and code.base + code.offsets[n] >= code.entry
         and not isinstance(code.micro_ops[n].op, FOLLOWING)]
        for code in (old, new)
    )
    place = theirs[0] if not mine or at == mine[0] else theirs[max(0, len(theirs) - (len(mine) - mine.index(at)))]
    return new.base + new.offsets[place]
