"""What the sanitizer does where more than a barrier of the block orders threads: accesses, meetings, barriers."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

from ...ir import Instruction
from ..instructions.threads import COPIES
from ..machine.layout import LANES, Block
from ..machine.shadow import Reason
from .clusters import at_cluster_barrier, at_mbarrier
from .happens_before import BlockOrder, Meeting, Thread, join
from .instrumentation import scope, strength

if TYPE_CHECKING:
    from ..machine.block_state import State
    from .sanitizer import Sanitizer

__all__ = ["synchronise"]


def synchronise(
    sanitizer: Sanitizer, state: State, block: BlockOrder, warp: int, lanes: list[int], reason: int
) -> None:
    """Lanes of a warp are about to execute, or have executed, an instruction that orders threads."""
    record = state.get(Block.FAULT_RECORD, "Q")
    statement: Any = state.code.graph.statements[state.code.statement_at(record)]
    if reason == Reason.SYNC_ACCESS:
        hosts = struct.unpack("<32Q", ctypes.string_at(state.address + Block.SCRATCH, 256))
        for lane in lanes:
            if statement.form.semantics == "cp_async":
                sanitizer.copies.begin(state, (warp, lane), statement, hosts[lane])
            elif statement.form.opcode == "mbarrier":
                at_mbarrier(sanitizer, state, block, (warp, lane), statement, hosts[lane])
            else:
                _at_access(sanitizer, state, block, (warp, lane), statement, hosts[lane])
    elif statement.form.semantics in COPIES:
        sanitizer.copies.note(state, [(warp, lane) for lane in lanes], statement)
    elif statement.form.semantics.startswith("barrier_cluster"):
        at_cluster_barrier(sanitizer, state, block, warp, lanes, statement)
    elif reason == Reason.WARP_BARRIER:
        _at_meeting(sanitizer, state, block, warp, lanes, statement)
    elif statement.form.opcode in ("fence", "membar"):
        wide = scope(statement.form) == 2
        for lane in lanes:
            block.fence((warp, lane), sanitizer.view(state, block, (warp, lane)), wide)
    else:
        _at_named_barrier(sanitizer, state, block, warp, statement, lanes)
    sanitizer.advance(state, warp)


def _at_access(
    sanitizer: Sanitizer, state: State, block: BlockOrder, thread: Thread, statement: Instruction, host: int
) -> None:
    tokens, form, order = statement.form.tokens, statement.form, sanitizer.order
    both = "acq_rel" in tokens or "sc" in tokens
    wide = strength(form) == 2
    view = sanitizer.view(state, block, thread)
    if form.opcode in ("ld", "ldu", "atom", "red"):
        sanitizer.polls(state)
        order.read(block, thread, host, both or "acquire" in tokens, view)
    if form.opcode not in ("ld", "ldu"):
        keeps = form.opcode != "st"
        clocks = list(order.fenced(block, thread))
        if both or "release" in tokens:
            clocks.append((wide, sanitizer.view(state, block, thread)))
        order.write(block, host, clocks, keeps)


def _at_meeting(
    sanitizer: Sanitizer, state: State, block: BlockOrder, warp: int, lanes: list[int], statement: Instruction
) -> None:
    operand = statement.operands[0]
    groups: dict[int, list[int]] = {}
    for lane in lanes:
        groups.setdefault(sanitizer.value(state, warp, operand, lane), []).append(lane)
    for members in groups.values():
        threads = [(warp, lane) for lane in members]
        block.meet(threads, [sanitizer.view(state, block, thread) for thread in threads])


def _at_named_barrier(
    sanitizer: Sanitizer, state: State, block: BlockOrder, warp: int, statement: Instruction, lanes: list[int]
) -> None:
    """Before a barrier for some warps, and once more behind it."""
    if warp in block.waits:
        meeting = block.waits.pop(warp)
        for lane in lanes:
            block.own[warp, lane] = join(sanitizer.view(state, block, (warp, lane)), meeting.clock)
        return
    named = dict(zip([spec.name for spec in statement.form.operands], statement.operands))
    number, count = (sanitizer.value(state, warp, named[name], lanes[0]) for name in "ab")
    meeting = block.open.get(number) or Meeting()
    block.open[number] = meeting
    meeting.clock = join(meeting.clock, *[sanitizer.view(state, block, (warp, lane)) for lane in lanes])
    meeting.warps += 1
    if meeting.warps * LANES >= count:
        del block.open[number]
    if statement.form.semantics != "bar_arrive":
        block.waits[warp] = meeting
