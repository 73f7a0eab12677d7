"""What compiled code knows of the order among the warps and lanes of a block, as the clocks that Python has.

Nearly always it is all that is asked. Python reads it where a shadow check finds no order, to report the race, and
where something happens that compiled code cannot hold: from there on, until the block ends, Python follows alone.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..instructions.instrumentation import EpochWarpBarrier, SyncBarrier, SyncMbarrier
from ..machine.layout import LANES, Barrier, Block
from ..machine.shadow import (
    BARRIERS, EPOCH_SHIFT, LANE, MBARRIERS, BarrierOrder, MbarrierOrder, Shadow, WarpClock, WarpOrder,
)
from ..runtime.block_state import BlockState
from ..runtime.faults import set_bits
from .barriers import Barriers
from .clocks import Clocks
from .happens_before import BlockOrder, Clock, Rendezvous, join, publish
from .sync_log import Event

__all__ = ["WarpOrders"]

_WARP = np.dtype([
    ("known", "u8", LANES), ("one", "u8", LANES), ("part", "u8", LANES), ("part_one", "u8", LANES),
    ("tile_floor", "u8", LANES), ("tile_mask", "u4", LANES), ("part_floor", "u8"), ("tile_latest", "u8"),
    ("part_mask", "u4"), ("waits", "u4"), ("", "u4", 10),
])
_MBARRIER = np.dtype([
    ("pending", "u8", LANES), ("pending_one", "u8", LANES), ("complete", "u8", LANES), ("complete_one", "u8", LANES),
    ("host", "u8"), ("base", "u8"), ("initialiser", "u8"), ("parity", "u4"), ("users", "u4"), ("", "u8", 4),
])
_BARRIER = np.dtype([("pending", "u8", LANES), ("pending_one", "u8", LANES), ("open", "u8"), ("", "u8", 7)])
assert _WARP.itemsize == WarpOrder.nbytes
assert _BARRIER.itemsize == BarrierOrder.nbytes
assert _MBARRIER.itemsize == MbarrierOrder.nbytes


class WarpOrders:
    """Those of a launch."""

    def __init__(self, clocks: Clocks, barriers: Barriers) -> None:
        self.clocks, self.barriers, self.memory = clocks, barriers, clocks.memory

    def _followed(self, state: BlockState) -> int:
        """Where the orders of a block are; 0 where Python follows it."""
        memory, code = self.memory, state.code
        if not memory.orders or memory.get(state, Shadow.GIVEN_UP) == memory.get(state, Shadow.BASE):
            return 0
        if WarpOrders not in code.notes:
            code.notes[WarpOrders] = any(
                isinstance(placed.op, (SyncMbarrier, SyncBarrier))
                or (isinstance(placed.op, EpochWarpBarrier) and placed.op.followed)
                for placed in code.micro_ops
            )
        return memory.get(state, Shadow.ORDERS) if code.notes[WarpOrders] else 0

    def given_up(self, state: BlockState) -> bool:
        """Whether Python follows the order of a block's threads alone."""
        return self.memory.get(state, Shadow.GIVEN_UP) == self.memory.get(state, Shadow.BASE)

    @staticmethod
    def _rows(address: int, kind: np.dtype[Any], count: int) -> np.ndarray[Any, Any]:
        return np.frombuffer(ctypes.string_at(address, count * kind.itemsize), kind)

    def know(self, block: BlockOrder, warp: int, record: Event) -> None:
        """What a warp knew when it noted this."""
        known, one = np.array(record.hosts, np.uint64), np.array(record.before, np.uint64)
        clock = join(block.common, self.clock_of(block.block, self.memory.first_epoch, known, one))
        block.own.update(dict.fromkeys(((warp, lane) for lane in range(LANES)), clock))

    @staticmethod
    def clock_of(number: int, first: int, known: Any, one: Any) -> Clock:
        """A row of a block as a clock; what is older than its first epoch is of other blocks."""
        base = first << EPOCH_SHIFT
        clock: Clock = {}
        for warp, (floor, lane) in enumerate(zip(known.tolist(), one.tolist())):
            if floor > base:
                clock[number, warp] = (floor >> EPOCH_SHIFT) - 1
            if lane > base:
                clock[number, warp, lane & LANE] = (lane >> EPOCH_SHIFT) - 1
        return clock

    def read(self, state: BlockState, block: BlockOrder) -> None:
        """Give all threads of a block the clocks that compiled code has for them."""
        address = self._followed(state)
        if not address:
            return
        number, first = block.block, self.memory.get(state, Shadow.BASE) >> EPOCH_SHIFT
        for warp, row in enumerate(self._rows(address, _WARP, state.count)):
            known = join(block.common, self.clock_of(number, first, row["known"], row["one"]))
            block.own.update(dict.fromkeys(((warp, lane) for lane in range(LANES)), known))
            if row["part_mask"]:
                passed = self.memory.clock(state, warp, WarpClock.WARP_FLOOR) > int(row["part_floor"])
                part = join(known, self.clock_of(number, first, row["part"], row["part_one"]))
                for lane in set_bits(0xFFFFFFFF if passed else int(row["part_mask"])):
                    block.own[warp, lane] = part
            floor = self.memory.clock(state, warp, WarpClock.WARP_FLOOR)
            for lane in range(LANES) if int(row["tile_latest"]) > floor else ():
                if int(row["tile_floor"][lane]) > floor:
                    before = (int(row["tile_floor"][lane]) >> EPOCH_SHIFT) - 1
                    others = {(number, warp, other): before for other in set_bits(int(row["tile_mask"][lane]))}
                    block.own[warp, lane] = join(block.own[warp, lane], others)

    def give_up(self, state: BlockState, block: BlockOrder) -> None:
        """Something happens that compiled code cannot hold: Python follows the block from here on."""
        address = self._followed(state)
        if self.memory.orders:
            self.read(state, block)
            base = self.memory.get(state, Shadow.BASE)
            self.memory.put(state, Shadow.GIVEN_UP, "Q", base)
        if not address:
            return
        number, first = block.block, base >> EPOCH_SHIFT
        for row in self._rows(address + LANES * WarpOrder.nbytes, _MBARRIER, MBARRIERS):
            if int(row["base"]) != base:
                continue
            mbarrier = self.barriers.new(int(row["host"]), int(row["parity"]), int(row["initialiser"]))
            warps = set_bits(int(row["users"]))
            mbarrier.users = {(block.block, (warp, lane)) for warp in warps for lane in range(LANES)}
            for into, name in ((mbarrier.pending, "pending"), (mbarrier.complete, "complete")):
                publish(into, block, 2, self.clock_of(number, first, row[name], row[f"{name}_one"]))
        self._barriers(state, block, address, base)

    def _barriers(self, state: BlockState, block: BlockOrder, address: int, base: int) -> None:
        """Those at which warps have arrived, and where warps wait: they know of what is complete already."""
        warps = self._rows(address, _WARP, state.count)
        table = address + LANES * WarpOrder.nbytes + MBARRIERS * MbarrierOrder.nbytes
        block.waits.update({warp: Rendezvous() for warp, row in enumerate(warps) if row["waits"]})
        for number, row in enumerate(self._rows(table, _BARRIER, BARRIERS)):
            if int(row["open"]) != base:
                continue
            place = Block.BARRIERS + number * Barrier.nbytes
            clock = self.clock_of(block.block, base >> EPOCH_SHIFT, row["pending"], row["pending_one"])
            opened = block.open[number] = Rendezvous(clock, state.get(place + Barrier.ARRIVED, "I"))
            block.waits.update(dict.fromkeys(set_bits(state.get(place + Barrier.WAITING, "I")), opened))
