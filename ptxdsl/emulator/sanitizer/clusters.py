"""The sanitizer and what reaches beyond a block: mbarriers, the barrier of a cluster, shared memory of other blocks.

In a cluster the shared memory of each block is looked at as global memory is, since all may touch it. Who arrives at
an mbarrier hands on what it knows to those who find that phase complete; transactions count as arrivals here, for what
they stand for are the stores of the thread before them.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import Instruction
from ..machine.layout import Block, Cluster, ClusterBlock, Entry, Mbarrier
from ..machine.shadow import (
    EPOCH_BITS, EPOCH_SHIFT, LANE, STATEMENT_SHIFT, UNWRITTEN, WARP, WARP_SHIFT, Reason, WarpClock,
)
from ..runtime.clusters import window_entry
from .happens_before import BlockOrder, Clock, Phase, Thread, join, knows

if TYPE_CHECKING:
    from ..machine.block_state import State
    from .sanitizer import Sanitizer

__all__ = ["at_cluster_barrier", "at_mbarrier", "connect", "renew"]


def connect(sanitizer: Sanitizer, states: list[State]) -> None:
    """Let each block of a cluster know of the shared memory of all of them."""
    shared = [(*region[:4], 0) for state in states for region in sanitizer.owned[state.address] if region[4] == 1]
    for state in states:
        local = [region for region in sanitizer.owned[state.address] if region[4] != 1]
        sanitizer.describe(state, [*((*region, 0) for region in sanitizer.regions), *shared, *local])
    sanitizer.reporter.states = states
    for state, other, generic in itertools.product(states, states, (0, 1)):
        for low, _, words, stride, kind in sanitizer.owned[other.address]:
            if kind == 1:
                place = window_entry(state, other.rank, generic) + Entry.SHADOW_WORDS
                first = (words - (low >> sanitizer.grain) * 8) & (1 << 64) - 1
                ctypes.memmove(place, struct.pack("<QQ", first, stride), 16)


def renew(sanitizer: Sanitizer, states: list[State]) -> None:
    """The shared memory of a new cluster: nobody has touched it."""
    pieces = (states[0].launch.shared_bytes >> sanitizer.grain) + 1
    for state in states:
        for _, _, tags, stride, kind in sanitizer.owned[state.address]:
            for plane in range(3) if kind == 1 else ():
                words = np.ctypeslib.as_array((ctypes.c_uint64 * pieces).from_address(tags + plane * stride))
                words[:] = UNWRITTEN if plane == 0 and sanitizer.checks.init else 0


def at_mbarrier(
    sanitizer: Sanitizer, state: State, block: BlockOrder, thread: Thread, statement: Instruction, host: int
) -> None:
    """Before something happens to the mbarrier at a host address."""
    what, tokens, phases = statement.form.tokens[0], statement.form.tokens, sanitizer.order.mbarriers
    parity = int.from_bytes(ctypes.string_at(host, 8), "little") >> Mbarrier.PARITY & 1
    if what in ("init", "inval"):
        warp, lane = thread
        place = min(state.code.statement_at(state.get(Block.FAULT_RECORD, "Q")), 0x7FFF)
        phases[host] = Phase(0, sanitizer.own(state, warp, WarpClock.EPOCH) | place << STATEMENT_SHIFT | lane)
        return
    phase = phases.setdefault(host, Phase(parity))
    phase.turn(parity)
    view = sanitizer.view(state, block, thread)
    _is_made(sanitizer, state, block, thread, view, host, phase)
    if what in ("test_wait", "try_wait"):
        sanitizer.polls(state)
        if not any(token.startswith("relaxed") for token in tokens) and phase.done:
            block.own[thread] = join(view, phase.done)
    elif what in ("arrive", "arrive_drop", "complete_tx"):
        loose = what != "complete_tx" and any(token.startswith("relaxed") for token in tokens)
        clocks = [clock for _, clock in sanitizer.order.fenced(block, thread)] if loose else [view]
        phase.pending = join(phase.pending, *clocks)


def _is_made(
    sanitizer: Sanitizer, state: State, block: BlockOrder, thread: Thread, view: Clock, host: int, phase: Phase
) -> None:
    """A thread uses an mbarrier: note a race with the thread that has initialised it, where nothing orders the two."""
    made = phase.made
    segment = made >> EPOCH_SHIFT
    other = int(sanitizer.store.owners[segment & (1 << EPOCH_BITS) - 1]) - 1, (made & WARP) >> WARP_SHIFT, made & LANE
    here = other[0] == block.block or bool(sanitizer.reporter.states)
    if made and here and not knows(view, other, segment, False):
        record = state.get(Block.FAULT_RECORD, "Q")
        sanitizer.reporter.note(state, record, *thread, Reason.WRITER, made, other, host)
        phase.made = 0


def at_cluster_barrier(
    sanitizer: Sanitizer, state: State, block: BlockOrder, warp: int, lanes: list[int], statement: Instruction
) -> None:
    """Before threads arrive at the barrier of the cluster, and behind a wait."""
    head = int.from_bytes(ctypes.string_at(state.get(Block.CLUSTER, "Q") + ClusterBlock.HEAD, 8), "little")
    number = int.from_bytes(ctypes.string_at(head + Cluster.PHASE, 4), "little")
    which: Any = tuple(state.get(Block.CLUSTERID + 4 * axis, "i") for axis in range(3))
    meetings = sanitizer.order.clusters
    threads = [(warp, lane) for lane in lanes]
    if statement.form.semantics.endswith("wait"):
        clock = meetings.get((which, number - 1), {})
        for thread in threads:
            block.own[thread] = join(sanitizer.view(state, block, thread), clock)
        return
    known = meetings.get((which, number), {})
    for thread in threads:
        if "relaxed" in statement.form.tokens:
            known = join(known, *[clock for _, clock in sanitizer.order.fenced(block, thread)])
        else:
            known = join(known, sanitizer.view(state, block, thread))
    meetings[which, number] = known
