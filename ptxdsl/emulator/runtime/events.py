"""What to do when compiled code returns for another reason than the end of a block or of a time slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..codegen.code import Code
from ..machine.layout import Block
from ..machine.status import Fault, Status
from . import (  # noqa: F401 - they register their texts
    barrier_faults, bulk_copy_faults, control_faults, matrix_faults, memory_faults, tensor_copy_faults,
    tensor_memory_faults, tensor_product_faults, texture_faults, wgmma_faults,
)
from .block_state import BlockState
from .convergence import converge
from .deadlock import deadlock, livelock
from .deoptimise import after_wrap, deoptimise, note_wrap
from .faults import failure
from .own_warp import poll_on
from .system_calls import answer
from .tensor_product_plans import follow_descriptor
from .undefined import follow

__all__ = ["complete", "deadlock", "deoptimise", "handle", "livelock"]


def complete(states: Iterable[BlockState]) -> bool:
    """Make all asynchronous operations of states that are not complete; whether there were some. Raises faults."""
    found = False
    for state in states:
        if state.complete():
            found = True
            if state.get(Block.STATUS, "i") == Status.FAULT:
                raise failure(state)
    return found


def handle(state: BlockState, status: int, codes: Callable[[bool], Code]) -> BlockState:
    """Do what compiled code asks for; the state to go on with. Raises faults."""
    if status == Status.FAULT:
        if state.get(Block.FAULT_KIND, "i") == Fault.SOURCE:
            return follow(state)
        if state.get(Block.FAULT_KIND, "i") == Fault.PRODUCT_NEW:
            return follow_descriptor(state)
        if state.launch.tool.passes(state):
            return state
        return state if converge(state) else deoptimise(state, codes(True))
    if status == Status.DEOPT:
        if note_wrap(state):
            return after_wrap(state, codes)
        return state if poll_on(state) else deoptimise(state, codes(True))
    if status == Status.SYSTEM_CALL:
        answer(state)
    else:
        state.launch.tool.callback(state)
    return state
