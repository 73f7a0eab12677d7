"""Waiting for ever: the errors of blocks whose warps all wait, with what each of them waits for."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

from ...errors import DeadlockError
from ...ir import Address, Instruction, Register, Symbol
from ..machine.layout import LANES, SHARED_START, Barrier, Block, Cluster, ClusterBlock, Mbarrier, Warp
from ..machine.unsupported import render
from .block_state import BlockState
from .convergence import raise_pending
from .faults import Scene, ranges

__all__ = ["deadlock", "livelock"]

def deadlock(state: BlockState) -> DeadlockError:
    """The error of a state in which every live warp waits at a barrier."""
    raise_pending(state)
    live = state.get(Block.LIVE, "I")
    warps = [number for number in range(state.count) if live >> number & 1]
    lines = list(_waiting(state, warps))
    first = warps[0]
    scene = Scene(state, first, 0, state.get_warp(first, Warp.WAITS, "Q"))
    ended = state.count - len(warps)
    note = f"; {ended} of the block's {state.count} warps have ended" if ended else ""
    message = f"deadlock: all warps of the block wait at barriers that nobody completes{note}\n" + "\n".join(lines)
    error = scene.raised(DeadlockError, message)
    assert isinstance(error, DeadlockError)
    return error


def _waiting(state: BlockState, warps: list[int]) -> Iterator[str]:
    """One line for each barrier instruction that warps wait at."""
    groups: dict[tuple[int, int], list[int]] = {}
    for number in warps:
        key = state.get_warp(number, Warp.WAITS, "Q"), state.get_warp(number, Warp.BARRIER, "i")
        groups.setdefault(key, []).append(number)
    for (record, barrier), members in groups.items():
        if barrier == Cluster.NUMBER:
            head = int.from_bytes(ctypes.string_at(state.get(Block.CLUSTER, "Q") + ClusterBlock.HEAD, 8), "little")
            arrived, live = struct.unpack("<ii", ctypes.string_at(head + Cluster.ARRIVED, 8))
            yield (
                f"  {_warps(members)} at the barrier of the cluster ({arrived} of {live} threads have arrived): "
                f"{_line(state, record)}"
            )
            continue
        place = Block.BARRIERS + barrier * Barrier.nbytes
        arrived, expected = state.get(place + Barrier.ARRIVED, "i"), state.get(place + Barrier.EXPECTED, "i")
        needed = expected // LANES or state.get(Block.LIVE, "I").bit_count()
        yield (
            f"  {_warps(members)} at barrier {barrier} ({arrived} of {needed} warps have arrived): "
            f"{_line(state, record)}"
        )


def _warps(members: list[int]) -> str:
    return f"warp {members[0]} waits" if len(members) == 1 else f"warps {ranges(members)} wait"


def _line(state: BlockState, record: int) -> str:
    number = state.code.statement_at(record)
    statement: Any = state.code.graph.statements[max(0, number)]
    where = f" at {statement.loc}" if statement.loc is not None else f" at PTX line {statement.line}"
    return f"{render(statement)}{where}"


def livelock(state: BlockState) -> DeadlockError:
    """The error where all warps go round in loops and nothing changes any more."""
    raise_pending(state)
    runnable = state.get(Block.RUNNABLE, "I")
    warps = [number for number in range(state.count) if runnable >> number & 1]
    record = state.get_warp(warps[0], Warp.PC, "Q")
    lane = next(n for n in range(LANES) if state.get_warp(warps[0], Warp.ACTIVE, "I") >> n & 1)
    what, hint = "every warp polls memory in a loop, and nothing changes it any more", (
        "another thread must write what the loop waits for"
    )
    lines = list(_mbarriers(state, warps))
    if lines:
        record = state.get_warp(warps[0], Warp.WAITS, "Q") or record
        what = "\n".join(("all warps wait, some at mbarriers that nobody completes", *lines))
        hint = "count who arrives in a phase, how often, and which bytes come"
    error = Scene(state, warps[0], lane, record).raised(DeadlockError, f"deadlock: {what}", hint)
    assert isinstance(error, DeadlockError)
    return error


NEAR = 16
"""Statements of a loop that waits; what lies further away is another one."""


def _mbarriers(state: BlockState, warps: list[int]) -> Iterator[str]:
    """One line for each mbarrier that warps ask for again and again."""
    groups: dict[tuple[int, str], list[int]] = {}
    for number in warps:
        record, at = state.get_warp(number, Warp.WAITS, "Q"), state.get_warp(number, Warp.PC, "Q")
        statement = state.code.statement_at(record) if record else -1
        if statement >= 0 and abs(statement - state.code.statement_at(at)) <= NEAR:
            wait = state.code.graph.statements[statement]
            if isinstance(wait, Instruction) and wait.form.effects.waits == "mbarrier":
                groups.setdefault((record, _pending(state, number, wait)), []).append(number)
    for (record, pending), members in groups.items():
        yield f"  {_warps(members)}{pending}: {_line(state, record)}"


def _pending(state: BlockState, warp: int, wait: Instruction) -> str:
    """What the mbarrier of a wait still waits for."""
    address = next(operand for operand in wait.operands if isinstance(operand, Address))
    if isinstance(address.base, Register):
        lane = (state.get_warp(warp, Warp.ACTIVE, "I") & -state.get_warp(warp, Warp.ACTIVE, "I")).bit_length() - 1
        at = state.register(warp, address.base.name)[max(0, lane)]
    elif isinstance(address.base, Symbol):
        at = state.code.operands.symbol(address.base, wait)
    else:
        return ""
    offset = (at + address.offset & (1 << Cluster.RANK_BITS) - 1) - SHARED_START
    if not 0 <= offset <= state.launch.shared_bytes - 8:
        return ""
    word = int.from_bytes(ctypes.string_at(state.shared + offset, 8), "little")
    arrivals, tx = word & Mbarrier.MOST, word >> Mbarrier.TX & (2 * Mbarrier.MOST + 1)
    tx -= (tx > Mbarrier.MOST) * (2 * Mbarrier.MOST + 2)
    return f" for {arrivals} more arrivals and {tx} bytes"
