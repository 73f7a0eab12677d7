"""Whether accesses by the async proxy are over, of a block whose order Python follows.

Compiled code decides that by what it knows of the order of warps (:mod:`..codegen.proxy_checks.orders`), which is out
of date from where Python has taken over. Then the same is decided here, by Python's clocks, of those that it has not
found to be over; and whether fences are behind what the generic proxy has written.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..machine.layout import LANES
from ..machine.proxy_shadow import (
    COMMITS, EVENTS, GENERATION_BITS, GENERATION_SHIFT, OBJECT_SHIFT, RING, CommitEvent, FenceEvent, Kinds, Objects,
    ProxyShadow,
)
from ..machine.shadow import EPOCH_SHIFT, LANE, WARP, WARP_SHIFT, Shadow, WarpOrder
from ..runtime.block_state import BlockState
from .async_accesses import AsyncAccesses, Knows, Seen
from .clocks import Clocks
from .happens_before import BlockOrder, Clock, Thread, covers, join
from .warp_orders import WarpOrders

__all__ = ["is_fenced", "is_over", "keep_fences"]


class _Known:
    """What is kept of a block, and what a thread of it knows."""

    def __init__(self, clocks: Clocks, state: BlockState, block: BlockOrder, thread: Thread) -> None:
        self.address, self.number, self.thread = clocks.memory.get(state, Shadow.PROXIES), block.block, thread
        self.base = clocks.memory.get(state, Shadow.BASE)
        self.clock: Clock = clocks.of_thread(state, block, thread)

    def of(self, field: int, index: int, nbytes: int = 4) -> int:
        return int.from_bytes(ctypes.string_at(self.address + field + nbytes * index, nbytes), "little")

    def knows(self, seen: int, warp: int, lanes: int) -> bool:
        """Whether what one of some lanes of a warp did in an epoch happens before what the thread does."""
        if seen < self.base:
            return False
        own = self.thread[0] == warp and lanes >> self.thread[1] & 1
        epoch = seen >> EPOCH_SHIFT
        some = (lane for lane in range(LANES) if lanes >> lane & 1)
        return bool(own) or any(covers(self.clock, (self.number, warp, lane), epoch, False) for lane in some)

    def phase(self, number: int, generation: int) -> bool:
        """Whether a phase of an mbarrier, or a later one, has been seen to be complete."""
        count = self.of(ProxyShadow.GENERATIONS, number)
        if number >= Objects.WARPGROUP or count - generation > RING:
            return True
        for later in range(generation, count):
            row = (number * RING + later % RING) * LANES
            for warp in range(LANES):
                seen = self.of(ProxyShadow.SEEN, row + warp, 8)
                if self.knows(seen, warp, self.of(ProxyShadow.SEEN_BY, row + warp)):
                    return True
        return False

    def groups(self, fields: tuple[int, int], of: int, generation: int, warp: int, lanes: int) -> bool:
        """Whether groups of a thread or a warp have been waited for."""
        count = self.of(fields[0], of)
        if generation >= count or count - generation > RING:
            return generation < count
        return self.knows(self.of(fields[1], of * RING + generation % RING, 8), warp, lanes)

    def commits(self, warp: int, lane: int, generation: int) -> bool:
        """Whether a phase is over at which a commit of the thread has arrived."""
        count = self.of(ProxyShadow.TENSOR_COMMITTED, warp)
        if count - generation > COMMITS:
            return True
        rows: Any = np.dtype({
            "names": ["mbarrier", "generation", "mask"], "formats": ["u2", "u4", "u4"],
            "offsets": [CommitEvent.MBARRIER, CommitEvent.GENERATION, CommitEvent.MASK], "itemsize": CommitEvent.nbytes,
        })
        place = self.address + ProxyShadow.TENSOR_COMMITS + warp * COMMITS * CommitEvent.nbytes
        events = np.frombuffer(ctypes.string_at(place, COMMITS * CommitEvent.nbytes), rows)
        chosen = (events[number % COMMITS] for number in range(generation, count))
        return any(
            int(event["mask"]) >> lane & 1 and self.phase(int(event["mbarrier"]), int(event["generation"]))
            for event in chosen
        )


def is_over(clocks: Clocks, state: BlockState, block: BlockOrder, thread: Thread, word: int) -> bool:
    """Whether the access of a shadow word is complete, as far as a thread knows."""
    known = _Known(clocks, state, block, thread)
    number = word >> OBJECT_SHIFT & 0xFF
    generation = word >> GENERATION_SHIFT & (1 << GENERATION_BITS) - 1
    warp, lane = (word & WARP) >> WARP_SHIFT, word & LANE
    if number == Objects.TENSOR:
        return known.commits(warp, lane, generation)
    if number == Objects.THREAD:
        fields = ProxyShadow.THREAD_WAITED, ProxyShadow.THREAD_SEEN
        return known.groups(fields, word & (WARP | LANE), generation, warp, 1 << lane)
    if number < Objects.WARPGROUP:
        return known.phase(number, generation)
    first = 4 * (number - Objects.WARPGROUP)
    fields = ProxyShadow.WAITED, ProxyShadow.GROUP_SEEN
    return any(known.groups(fields, each, generation, each, 0xFFFFFFFF) for each in range(first, first + 4))


def keep_fences(clocks: Clocks, state: BlockState, block: BlockOrder, accesses: AsyncAccesses) -> None:
    """Take the fences between proxies that compiled code knows of a block, which Python follows from now on."""
    memory = clocks.memory
    address, base = memory.get(state, Shadow.PROXIES), memory.get(state, Shadow.BASE)

    def number(at: int, nbytes: int = 8) -> int:
        return int.from_bytes(ctypes.string_at(at, nbytes), "little")

    for warp in range(state.count):
        count = number(address + ProxyShadow.FENCES + 4 * warp, 4)
        for which in range(max(0, count - EVENTS), count):
            event = address + ProxyShadow.EVENTS + (warp * EVENTS + which % EVENTS) * FenceEvent.nbytes
            mask = number(event + FenceEvent.MASK, 4)
            rows = {
                name: np.frombuffer(ctypes.string_at(event + FenceEvent.ORDER + place, 8 * LANES), np.uint64)
                for name, place in (
                    ("known", WarpOrder.KNOWN), ("one", WarpOrder.ONE), ("part", WarpOrder.PART),
                    ("part_one", WarpOrder.PART_ONE),
                )
            }
            first = base >> EPOCH_SHIFT
            clock = WarpOrders.clock_of(block.block, first, rows["known"], rows["one"])
            if number(event + FenceEvent.ORDER + WarpOrder.PART_MASK, 4) & mask:
                clock = join(clock, WarpOrders.clock_of(block.block, first, rows["part"], rows["part_one"]))
            lanes = [lane for lane in range(LANES) if mask >> lane & 1]
            floors = (number(event + place) >> EPOCH_SHIFT for place in (FenceEvent.BLOCK_FLOOR, FenceEvent.WARP_FLOOR))
            of_block, of_warp = floors
            own: Clock = {block.block: of_block - 1, (block.block, warp): of_warp - 1}
            epoch = number(event + FenceEvent.EPOCH) >> EPOCH_SHIFT
            own.update({(block.block, warp, lane): epoch for lane in lanes})
            then = BlockOrder(block.block)
            then.common = clock
            accesses.fence(Knows(then, warp, lanes, own, epoch), number(event + FenceEvent.KINDS, 4))


def is_fenced(
    clocks: Clocks, state: BlockState, block: BlockOrder, thread: Thread, word: int, accesses: AsyncAccesses, kinds: int
) -> bool:
    """Whether a fence of some kinds stands between the write of a shadow word and what a thread does."""
    memory = clocks.memory
    writer = memory.thread_of(word)
    theirs = memory.fenced if kinds & Kinds.GLOBAL and writer[0] != block.block else None
    if theirs is not None and int(theirs[writer[0] + 1]) >> EPOCH_SHIFT >= word >> EPOCH_SHIFT:
        return True
    knows = accesses.knows(state, block, thread[0], [thread[1]])
    return accesses.fenced(Seen(writer[0], writer[1], 1 << writer[2], word >> EPOCH_SHIFT), knows, kinds)
