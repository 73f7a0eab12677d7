"""Blocks that share a piece of work, as a row or a channel: those of a cluster, or one by itself.

From compute capability 9.0 on the blocks of a cluster reach each other's shared memory. Each of their warps tells its
part of a sum to all of them, and every block adds the parts up in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import capability, processors, ptx, shared, when
from .. import block, cluster, warp

__all__ = ["Blocks", "has_clusters", "options", "pairwise", "spread"]

MOST = 8
"""Blocks of a cluster, at most: every GPU that has clusters has these."""
_SPLIT = 1024
"""Vectors of a block from which its work is split further, where there are few pieces."""
Operator = Callable[[Any, Any], Any]


def has_clusters() -> bool:
    """Whether the GPU has clusters, or the emulator runs the kernels."""
    return not 0 < capability() < 90


def options(count: int) -> dict[str, Any]:
    """What a kernel whose pieces have so many blocks is declared with; the target is the first that has clusters."""
    return {"arch": "sm_90", "reqnctapercluster": count} if count > 1 else {}


def spread(pieces: int, vectors: int, count: int = 1) -> int:
    """The blocks of a piece of so many vectors: ``count``, or more while that leaves multiprocessors idle."""
    while has_clusters() and count < MOST and 2 * count * pieces <= processors() and vectors > count * _SPLIT:
        count *= 2
    return count


class Blocks:
    """``count`` blocks of ``threads`` along x for each piece; ``thread`` numbers those of all of them."""

    def __init__(self, count: int, threads: int) -> None:
        self.count, self.threads = count, threads
        self.waits = count > 1
        """Whether it is not known yet that all blocks of the cluster run."""
        if self.waits:
            cluster.arrive(relaxed=True)
        self.thread = cluster.rank() * threads + ptx.tid.x if count > 1 else ptx.tid.x

    @property
    def piece(self) -> Any:
        """The number of this block's piece."""
        return ptx.ctaid.x // self.count if self.count > 1 else ptx.ctaid.x

    def reduce(self, op: Operator, values: list[Any]) -> list[Any]:
        """``op`` over each of the values of all threads of the piece, in every thread."""
        if self.count == 1:
            return [block.reduce(op, value, self.threads) for value in values]
        values = [warp.reduce(op, value) for value in values]
        if self.waits:
            cluster.wait()
            self.waits = False
        lane, number, warps = ptx.tid.x & 31, ptx.tid.x >> 5, self.threads // 32
        each = min(32, self.count * warps)
        parts = [shared(value.type, self.count * warps) for value in values]
        with when(lane < self.count):
            for part, value in zip(parts, values):
                cluster.at(part, lane)[cluster.rank() * warps + number] = value
        cluster.sync()
        of_lane = [[part[(lane & each - 1) + at] for at in range(0, self.count * warps, each)] for part in parts]
        return [warp.reduce(op, pairwise(op, of_one), each) for of_one in of_lane]


def pairwise(op: Operator, values: list[Any]) -> Any:
    """``op`` over values that the thread has, as a tree."""
    while len(values) > 1:
        values = [op(*values[at : at + 2]) if at + 1 < len(values) else values[at] for at in range(0, len(values), 2)]
    return values[0]
