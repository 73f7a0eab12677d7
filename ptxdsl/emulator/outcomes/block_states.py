"""A block state in which threads of a block run alone, also where the block is one of a cluster.

All of its addresses of shared memory, those of other blocks of the cluster too, lie in the memory of this one: what a
thread reads is put there just before.
"""

from __future__ import annotations

import struct
from typing import Any

from ..codegen.code import Code
from ..machine.allocation import allocate, copy_bytes
from ..machine.layout import SHARED_START, SPACE_BITS, Block, Cluster, ClusterBlock, Entry
from ..runtime.block_state import BlockState, LaunchState
from ..runtime.clusters import window_entry
from ..runtime.faults import index_in

__all__ = ["LoneBlocks"]

_ENTRY = Entry.span("LOW", "SPACES")


class LoneBlocks:
    """The block states of a launch: one, or one for each block of a cluster."""

    def __init__(self, launch: LaunchState, code: Code) -> None:
        self.launch, self.code = launch, code
        self.shape = launch.spaces.cluster
        self.size = 1 if self.shape is None else self.shape[0] * self.shape[1] * self.shape[2]
        self._states: dict[int, BlockState] = {}
        self._memory: list[Any] = []

    def place(self, block: int) -> tuple[int, int]:
        """The number of a block's cluster, and its rank there."""
        if self.shape is None:
            return block, 0
        (gx, gy, _), (a, b, _) = self.launch.config.grid, self.shape
        x, y, z = index_in(self.launch.config.grid, block)
        i, j, k = (at // extent for at, extent in zip((x, y, z), self.shape))
        rank = x % a + a * (y % b + b * (z % self.shape[2]))
        return i + gx // a * (j + gy // b * k), rank

    def state(self, block: int) -> BlockState:
        """The state of a block, at its begin."""
        cluster, rank = self.place(block)
        state = self._states.get(rank)
        if state is None:
            state = self._states[rank] = BlockState(self.launch, self.code, rank)
            state.own_blocks()
            if self.shape is not None:
                self._open(state)
        if self.shape is not None:
            grid = self.launch.config.grid
            clusters = grid[0] // self.shape[0], grid[1] // self.shape[1], grid[2] // self.shape[2]
            state.put(Block.NCLUSTERID, "iii", *clusters)
            state.put(Block.CLUSTERID, "iii", *index_in(clusters, cluster))
        return state

    def _open(self, state: BlockState) -> None:
        """Give a state the addresses of the shared memory of all blocks of its cluster."""
        memory, place, view = allocate(Cluster.nbytes + ClusterBlock.nbytes)
        self._memory.append(memory)
        struct.pack_into("<i", view, Cluster.LIVE, 1 << 20)
        struct.pack_into("<QQ", view, Cluster.nbytes, state.address, place)
        state.put(Block.CLUSTER, "Q", place + Cluster.nbytes)
        state.put(Block.RANK, "i", state.rank)
        state.put(Block.CLUSTER_CTAID, "iii", *index_in(self.shape or (1, 1, 1), state.rank))
        window, size = self.launch.spaces.memory.shared_window, self.launch.shared_bytes
        first = state.shared - SHARED_START
        state.put(Block.CLUSTER_FIRST, "QQQQ", first, 0, size, window)
        for rank in range(self.size):
            for generic, space in enumerate(("shared", "generic")):
                low = generic * window + (rank << Cluster.RANK_BITS)
                entry = _ENTRY.pack(low + SHARED_START, size, size, first - low, SPACE_BITS[space])
                copy_bytes(window_entry(state, rank, generic), entry, len(entry))
        state.put(Block.ENTRIES, "i", len(self.launch.ranges) + 2 * self.size)
