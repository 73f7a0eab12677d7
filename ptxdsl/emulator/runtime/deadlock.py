"""Waiting for ever: the errors of blocks whose warps all wait, with what each of them waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import DeadlockError
from ...ir import Address, Instruction, Register, Symbol
from ..instructions.tensor_memory import TensorAllocate, TensorDeallocate
from ..machine.allocation import number_at
from ..machine.layout import LANES, SHARED_START, Barrier, Block, Cluster, ClusterBlock, Mbarrier, Warp
from ..machine.unsupported import render
from .block_state import BlockState
from .convergence import raise_pending
from .faults import Scene, ranges, set_bits
from .tensor_memory_faults import PAIR, waiting_for

__all__ = ["deadlock", "livelock"]


def deadlock(state: BlockState) -> DeadlockError:
    """The error of a state in which every live warp waits at a barrier."""
    raise_pending(state)
    warps = set_bits(state.get(Block.LIVE, "I"))
    lines = list(_waiting(state, warps))
    first = warps[0]
    scene = Scene(state, first, 0, state.get_warp(first, Warp.WAITS, "Q"))
    ended = state.count - len(warps)
    note = f"; {ended} of the block's {state.count} warps have ended" if ended else ""
    message = f"deadlock: all warps of the block wait at barriers that nobody completes{note}\n" + "\n".join(lines)
    return scene.raised(DeadlockError, message)


def _waiting(state: BlockState, warps: list[int]) -> Iterator[str]:
    """One line for each barrier instruction that warps wait at."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number in warps:
        key = state.get_warp(number, Warp.WAITS, "Q"), state.get_warp(number, Warp.BARRIER, "i")
        groups.setdefault(key, []).append(number)
    for (pc, barrier), members in groups.items():
        if barrier == Cluster.NUMBER:
            head = number_at(state.get(Block.CLUSTER, "Q") + ClusterBlock.HEAD)
            arrived, live = number_at(head + Cluster.ARRIVED, 4), number_at(head + Cluster.LIVE, 4)
            what = f"the barrier of the cluster ({arrived} of {live} threads have arrived)"
        else:
            place = Block.BARRIERS + barrier * Barrier.nbytes
            arrived, expected = state.get(place + Barrier.ARRIVED, "i"), state.get(place + Barrier.EXPECTED, "i")
            needed = expected // LANES or state.get(Block.LIVE, "I").bit_count()
            what = f"barrier {barrier} ({arrived} of {needed} warps have arrived)"
        yield f"  {_warps(members)} at {what}: {_line(state, pc)}"


def _warps(members: list[int]) -> str:
    return f"warp {members[0]} waits" if len(members) == 1 else f"warps {ranges(members)} wait"


def _line(state: BlockState, pc: int) -> str:
    number = state.code.statement_at(pc)
    statement: Any = state.code.graph.statements[max(0, number)]
    where = f" at {statement.loc}" if statement.loc is not None else f" at PTX line {statement.line}"
    return f"{render(statement)}{where}"


def livelock(state: BlockState) -> DeadlockError:
    """The error where all warps poll memory in loops and nothing changes any more."""
    raise_pending(state)
    warps = set_bits(state.get(Block.RUNNABLE, "I"))
    pc = state.get_warp(warps[0], Warp.PC, "Q")
    lane = set_bits(state.get_warp(warps[0], Warp.ACTIVE, "I"))[0]
    what, hint = "every warp polls memory in a loop, and nothing changes it any more", (
        "another thread must write what the loop waits for"
    )
    lines = list(_mbarriers(state, warps))
    if lines:
        pc = state.get_warp(warps[0], Warp.WAITS, "Q") or pc
        what = "\n".join(("all warps wait, some at mbarriers that nobody completes", *lines))
        hint = "count who arrives in a phase, how often, and which bytes come"
        if all(" tensor memory " in line or PAIR in line for line in lines):
            what = "\n".join(("all warps wait, some for tensor memory", *lines))
            hint = "free what is no longer needed before more is allocated: `tcgen05.dealloc`"
        if all(_GROUP in line for line in lines):
            what = "\n".join(("all warps wait, some for the others of their warpgroup", *lines))
            hint = "all four warps of a warpgroup execute the same wgmma instructions"
    return Scene(state, warps[0], lane, pc).raised(DeadlockError, f"deadlock: {what}", hint)


_GROUP = " for the other warps of the warpgroup"
NEAR = 16
"""Statements of a loop that waits; what lies further away is another one."""


def _mbarriers(state: BlockState, warps: list[int]) -> Iterator[str]:
    """One line for each mbarrier that warps poll, or wait for groups of wgmma."""
    groups: dict[tuple[int, str], list[int]] = {}
    for number in warps:
        pc, at = state.get_warp(number, Warp.WAITS, "Q"), state.get_warp(number, Warp.PC, "Q")
        statement = state.code.statement_at(pc) if pc else -1
        if statement >= 0 and abs(statement - state.code.statement_at(at)) <= NEAR:
            wait = state.code.graph.statements[statement]
            if not isinstance(wait, Instruction):
                continue
            if isinstance(state.code.op_at(pc), (TensorAllocate, TensorDeallocate)):
                groups.setdefault((pc, waiting_for(state, wait)), []).append(number)
            elif wait.form.effects.waits == "wgmma_group":
                groups.setdefault((pc, _GROUP), []).append(number)
            elif wait.form.effects.waits == "mbarrier":
                groups.setdefault((pc, _pending(state, number, wait)), []).append(number)
    for (pc, pending), members in groups.items():
        yield f"  {_warps(members)}{pending}: {_line(state, pc)}"


def _pending(state: BlockState, warp: int, wait: Instruction) -> str:
    """What the mbarrier of a wait still waits for."""
    address = next(operand for operand in wait.operands if isinstance(operand, Address))
    if isinstance(address.base, Register):
        lane, *_ = *set_bits(state.get_warp(warp, Warp.ACTIVE, "I")), 0
        at = state.register(warp, address.base.name)[lane]
    elif isinstance(address.base, Symbol):
        at = state.code.operands.symbol(address.base, wait)
    else:
        return ""
    offset = (at + address.offset & (1 << Cluster.RANK_BITS) - 1) - SHARED_START
    if not 0 <= offset <= state.launch.shared_bytes - 8:
        return ""
    word = number_at(state.shared + offset)
    arrivals, tx = word & Mbarrier.MOST, word >> Mbarrier.TX & (2 * Mbarrier.MOST + 1)
    tx -= (tx > Mbarrier.MOST) * (2 * Mbarrier.MOST + 2)
    return f" for {arrivals} more arrivals and {tx} bytes"
