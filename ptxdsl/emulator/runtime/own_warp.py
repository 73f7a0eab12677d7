"""Whether lanes that poll may be waiting for others of their own warp, or only for other warps and blocks.

Where the rest of the warp has come to where it can do nothing without the lanes that poll, a barrier of the block or of
the whole warp, or its end, before it writes anything, it cannot end their wait, and conservative code is of no use: one
thread of a block that waits for another block, while the others are at the barrier behind, is how blocks wait for each
other. What is not seen: that what the others would write is not what is polled.
"""

from __future__ import annotations

from ...ir import Call, Immediate, Instruction
from ..codegen.code import Code
from ..machine.layout import FULL, LANES, Block, Warp
from .block_state import BlockState

__all__ = ["poll_on"]


def poll_on(state: BlockState) -> bool:
    """Let a warp that has polled for long poll on, after others; False where that would be for lanes of its own."""
    number, code = state.get(Block.FAULT_WARP, "i"), state.code
    waiting = state.get_warp(number, Warp.ALIVE, "I") & ~state.get_warp(number, Warp.ACTIVE, "I")
    priorities = {
        state.get_warp(number, Warp.PRIORITIES + 4 * lane, "i") for lane in range(LANES) if waiting >> lane & 1
    }
    if state.get(Block.FAULT_KIND, "i") or not all(_waits(code, priority) for priority in priorities):
        return False
    state.put_warp(number, Warp.YIELDS, "i", 0)
    state.put_warp(number, Warp.PC, "Q", code.base)
    state.put(Block.BUDGET, "i", 0)
    state.left = 0
    return True


def _waits(code: Code, priority: int) -> bool:
    """Whether lanes at the block of a priority write nothing before they wait for the whole warp, or end."""
    blocks, statements = code.graph.blocks, code.graph.statements
    seen, todo = set[int](), [code.blocks_by_priority[priority]]
    while todo:
        number = todo.pop()
        if number in seen:
            continue
        seen.add(number)
        ahead = statements[blocks[number].start : blocks[number].stop]
        stop = next((place for place, statement in enumerate(ahead) if _stops(statement)), len(ahead))
        if any(_acts(statement) for statement in ahead[:stop]):
            return False
        if stop == len(ahead):
            todo += blocks[number].successors
    return True


def _stops(statement: Instruction | Call) -> bool:
    """Whether no lane goes on behind a statement before all of its warp that live have come."""
    if isinstance(statement, Call) or statement.guard is not None:
        return False
    effects = statement.form.effects
    if effects.converges == "mask":
        members = statement.operands[-1]
        return isinstance(members, Immediate) and members.value in (FULL, -1)
    return effects.converges == "warp" or effects.waits == "block"


def _acts(statement: Instruction | Call) -> bool:
    """Whether a statement may end the wait of others."""
    if isinstance(statement, Call):
        return True
    effects = statement.form.effects
    return bool(effects.writes or effects.arrives or effects.completes or effects.commits)
