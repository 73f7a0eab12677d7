"""The vector clock of each thread: the clock that compiled code keeps for its warp, joined with what Python follows."""

from __future__ import annotations

import ctypes

from ..machine.shadow import EPOCH_SHIFT, Shadow, WarpClock
from ..runtime.block_state import BlockState
from .happens_before import BlockOrder, Clock, HappensBefore, Thread, join
from .shadow_memory import ShadowMemory

__all__ = ["Clocks"]

_CLOCK = WarpClock.span("EPOCH", "BARRIERS")


class Clocks:
    """The vector clocks of a launch."""

    def __init__(self, memory: ShadowMemory) -> None:
        self.memory = memory
        self.order = HappensBefore()

    def block(self, number: int) -> BlockOrder:
        """The order of a block."""
        found = self.order.blocks.get(number)
        if found is None:
            found = self.order.blocks[number] = BlockOrder(number, self.memory.cluster_of(number))
        return found

    def of_block(self, state: BlockState) -> BlockOrder:
        """The order of the state's block, with the barriers that compiled code has counted since the last call."""
        block = self.block(self.memory.block_of(state))
        data = ctypes.string_at(state.shadow + Shadow.WARP_CLOCKS, state.count * WarpClock.nbytes)
        base = self.memory.get(state, Shadow.BASE)  # warps before it have not begun with this block
        clocks = [_CLOCK.unpack_from(data, start) for start in range(0, len(data), WarpClock.nbytes)]
        clocks = [clock if clock[0] > base else (0, 0, 0, 0) for clock in clocks]
        _, floor, _, barriers = max(clocks, key=lambda clock: clock[3])
        block.barrier(barriers, floor >> EPOCH_SHIFT)
        for warp, (_, block_floor, warp_floor, _) in enumerate(clocks):
            if warp_floor > block_floor:
                block.warp_barrier(warp, warp_floor)
        return block

    @staticmethod
    def of_warp(state: BlockState, warp: int) -> tuple[int, int, int]:
        """The epoch of a warp and its floors, shifted as in a shadow word."""
        place = state.shadow + Shadow.WARP_CLOCKS + warp * WarpClock.nbytes
        epoch, block_floor, warp_floor, _ = _CLOCK.unpack(ctypes.string_at(place, _CLOCK.size))
        return epoch, block_floor, warp_floor

    def of_thread(self, state: BlockState, block: BlockOrder, thread: Thread) -> Clock:
        """The whole clock of a thread, its own epoch included."""
        return self.with_own(block, thread, *self.of_warp(state, thread[0]))

    @staticmethod
    def with_own(block: BlockOrder, thread: Thread, epoch: int, block_floor: int, warp_floor: int) -> Clock:
        """The whole clock of a thread, with that of its warp."""
        return join(block.clock(thread), Clocks.own(block, thread, epoch, block_floor, warp_floor))

    @staticmethod
    def own(block: BlockOrder, thread: Thread, epoch: int, block_floor: int, warp_floor: int) -> Clock:
        """What a thread's clock has beyond what it has acquired: its epoch, and the barriers of block and warp."""
        warp, lane = thread
        number = block.block
        return {
            (number, warp, lane): epoch >> EPOCH_SHIFT, number: (block_floor >> EPOCH_SHIFT) - 1,
            (number, warp): (warp_floor >> EPOCH_SHIFT) - 1,
        }
