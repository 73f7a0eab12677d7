"""Matrix products on Hopper: 16- and 8-bit matrices of any shape, sums in float32, by persistent blocks.

A block has three warpgroups. One thread of the last brings tiles of a and b by tensor copies to a ring of stages; each
of the others multiplies its half of the tile by wgmma from there, and stores it by way of `staging` while the next
tile's stages are filled. Two neighbouring blocks of a column are a cluster and need the same tile of b: each brings a
half of it to both. The registers that the copying warpgroup gives up (setmaxnreg) hold the others' sums.

What a and b lack of whole tiles is filled with 0 by the copies, and what c lacks is not stored by them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ... import (
    Kernel, Pipeline, ScalarType, cdiv, cluster, dynamic_shared, loop, mbarrier, otherwise, ptx, reg, tma, u32, wgmma,
    when,
)

from .. import tensor_products, tile_order
from ..tensor_products import SPAN, End, Kind, Ring, prepare
from .staging import NBYTES, ROWS, Staging

__all__ = ["Kind", "Plan", "choose", "kernel_of", "matmul"]

THREADS, CONSUMERS = 384, 2
PRODUCER_REGISTERS, CONSUMER_REGISTERS = 40, 232
"""Of the 168 that each thread of 384 begins with."""
_SHARED = 232448 - 2048
"""Bytes of a block, without what mbarriers and the alignment of tiles take."""


class Plan(NamedTuple):
    """The tile of a block, ``rows`` x ``columns`` of c; ``stages`` of the ring; ``blocks`` of a cluster, 1 or 2."""

    rows: int = 128
    columns: int = 256
    stages: int = 4
    blocks: int = 1

    @property
    def own(self) -> tuple[int, int]:
        """What each of the two multiplying warpgroups has of it: half of the rows, or of the columns of 64 rows."""
        return (self.rows // 2, self.columns) if self.rows > ROWS else (self.rows, self.columns // 2)

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * (self.rows + self.columns) * SPAN + CONSUMERS * NBYTES


TILES = {(128, 256): 1024, (256, 128): 1152, (128, 128): 640, (64, 256): 704}
"""Tiles, and the clocks that 128 bytes of k take: the larger of what tensor cores (4096 flops a clock) and shared
memory (128 bytes a clock, written by the copies and read by wgmma) need.
"""


def choose(m: int, n: int, processors: int) -> Plan:
    """The plan that takes the fewest clocks: waves of blocks on so many processors, times the clocks of a tile.

    >>> choose(8192, 8192, 132)
    Plan(rows=128, columns=256, stages=4, blocks=2)
    >>> choose(40, 32768, 132)
    Plan(rows=64, columns=256, stages=4, blocks=1)
    """

    def clocks(tile: tuple[int, int]) -> tuple[int, int]:
        count = cdiv(m, tile[0]) * cdiv(n, tile[1])
        return cdiv(count, processors) * TILES[tile], -tile[0] * tile[1]

    return _plan(*min(TILES, key=clocks), m)


def _plan(rows: int, columns: int, m: int) -> Plan:
    stages = (_SHARED - CONSUMERS * NBYTES) // ((rows + columns) * SPAN)
    return Plan(rows, columns, min(stages, 6), 1 if m <= rows else 2)


class _Block:
    """What the roles of a block share."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.plan = kind, kind.plan
        plan = self.plan
        self.a = Ring(dynamic_shared(kind.a, align=1024), kind.a, plan.rows, kind.turned[0], plan.stages)
        self.b = Ring(self.a.ring.end, kind.b, plan.columns, kind.turned[1], plan.stages)
        self.staged = self.b.ring.end
        many = plan.blocks > 1
        self.pipe = Pipeline(
            plan.stages, consumers=plan.blocks if many else CONSUMERS, nbytes=(plan.rows + plan.columns) * SPAN,
            cluster=many, start=False,
        )
        # What the warpgroups of this block have given back, for the thread that tells the cluster.
        self.given = Pipeline(plan.stages, producers=CONSUMERS, consumers=1, start=False) if many else None
        mbarrier.start(*self.pipe.bars, *(self.given.bars[:1] if self.given else ()), cluster=many)
        self.rank = cluster.rank() if plan.blocks > 1 else None

    def tiles(self, rows: Any, columns: Any) -> Any:
        """The loop over the tiles of this cluster, of ``rows`` x ``columns`` for a cluster."""
        number, count = ptx.ctaid.x, ptx.nctaid.x
        if self.plan.blocks > 1:
            number, count = number // self.plan.blocks, count // self.plan.blocks
        return loop(number, rows * columns, count)

    def place(self, tile: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
        """The first row and column of the tile of this block."""
        row, column = tile_order.place(tile, rows, columns)
        if self.rank is not None:
            row = row * self.plan.blocks + self.rank
        return row * self.plan.rows, column * self.plan.columns

    def produce(self, a: Any, b: Any, rows: Any, columns: Any, steps: Any) -> None:
        """Fill stages, by one thread."""
        tma.prefetch_map(a)
        tma.prefetch_map(b)
        plan, producer = self.plan, self.pipe.producer()
        share = plan.columns // plan.blocks
        first = 0 if self.rank is None else self.rank * share
        both = None if self.rank is None else (1 << plan.blocks) - 1
        with self.tiles(rows, columns) as tile:
            row, column = self.place(tile, rows, columns)
            with loop(steps) as step:
                slot, k = producer.acquire(), step * self.a.depth
                tma.load(self.a.copied(slot, 0, plan.rows), a, self.a.at(row, k), slot.full)
                part = self.b.copied(slot, first, share)
                tma.load(part, b, self.b.at(column + first, k), slot.full, multicast=both)
        if plan.blocks > 1:
            producer.finish()

    def consume(self, steps: Any, rows: Any, columns: Any, finish: Any) -> None:
        """Multiply, by a warpgroup; ``finish`` takes each tile's sums, its row and its column."""
        group, (high, wide) = wgmma.number(), self.plan.own
        split = high < self.plan.rows
        top, left = (group * high, 0) if split else (0, group * wide)
        consumer, sums = self.pipe.consumer(), wgmma.zeros(high, wide)
        before = reg(u32, 0)
        with self.tiles(rows, columns) as tile:
            with loop(steps) as step:
                slot = consumer.wait()
                wgmma.fence()
                a, b = self.a.factor(slot, top, high), self.b.factor(slot, left, wide)
                wgmma.multiply(sums, a, b.T, accumulate=step > 0)
                wgmma.commit()
                wgmma.wait(1)
                self.release(before, step > 0)
                before.set(slot.index)
            wgmma.wait(0)
            self.release(before)
            row, column = self.place(tile, rows, columns)
            finish(sums, row + top, column + left)

    def relay(self, rows: Any, columns: Any, steps: Any) -> None:
        """Give stages back to all blocks of the cluster once both warpgroups have, by one thread.

        An arrival that other blocks see is behind a fence that takes some hundred clocks, which the warps that multiply
        do not wait for.
        """
        assert self.given is not None
        done = self.given.consumer()
        with self.tiles(rows, columns), loop(steps):
            slot = done.wait()
            for rank in range(self.plan.blocks):
                mbarrier.arrive(self.pipe.empty + slot.index, rank=rank)

    def release(self, stage: Any, also: Any = None) -> None:
        """Give a stage back, by one arrival of the warpgroup."""
        leads = (ptx.tid.x & 127) == 0
        bars = self.pipe.empty if self.given is None else self.given.full
        mbarrier.arrive(bars + stage, pred=leads if also is None else leads & also)


@cache
def kernel_of(kind: Kind) -> Kernel:
    """The kernel, as of `tensor_products.kernel_of`."""
    plan = kind.plan

    def run(a: Any, b: Any, c: Any, bias: Any, n: Any, rows: Any, columns: Any, steps: Any, scale: Any) -> None:
        block = _Block(kind)
        with when(wgmma.number() == CONSUMERS):
            ptx.setmaxnreg.dec.sync.aligned.u32(PRODUCER_REGISTERS)
            with when(ptx.tid.x == CONSUMERS * 128):
                block.produce(a, b, rows, columns, steps)
            if plan.blocks > 1:
                with when(ptx.tid.x == CONSUMERS * 128 + 32):
                    block.relay(rows, columns, steps)
        with otherwise():
            ptx.setmaxnreg.inc.sync.aligned.u32(CONSUMER_REGISTERS)
            staging = Staging(block.staged, kind.c, wgmma.number(), 1) if kind.copied else None

            def finish(sums: Any, row: Any, column: Any) -> None:
                end = End(kind, bias, n, scale, column + ((ptx.laneid & 3) << 1) if kind.copied else column)
                if staging is not None:
                    staging.store(c, (row, column), sums, end)
                else:
                    sums.map_at(lambda _, at, value: end(at, [value])[0])
                    sums.store(c, row, column)

            block.consume(steps, rows, columns, finish)
            if staging is not None:
                staging.drain()
        if plan.blocks > 1:
            cluster.sync()

    options: dict[str, Any] = {"maxntid": THREADS, "minnctapersm": 1}
    if plan.blocks > 1:
        options["reqnctapercluster"] = plan.blocks
    name = f"hopper_matmul_{kind.a}_{kind.b}_{kind.c}_{plan.rows}x{plan.columns}"
    return tensor_products.kernel_of(kind, name, run, **options)


def matmul(
    a: Any, b: Any, *, bias: Any = None, activation: Callable[[Any], Any] | None = None, scale: float = 1.0,
    dtype: ScalarType | None = None, out: Any = None, plan: Plan | None = None, processors: int | None = None,
    **launch: Any,
) -> Any:
    """``activation(scale * (a @ b) + bias)`` on Hopper (sm_90a).

    Args:
        a: ``[M, K]``, float16, bfloat16, float8_e4m3fn or float8_e5m2, with any strides: rows or columns that are
            contiguous and begin at multiples of 16 bytes (of 8-bit types: rows) are read where they are, else a copy.
        b: ``[K, N]``, of a's dtype, or the other of the 8-bit types; of these, columns that are contiguous are read
            where they are.
        bias: ``[N]``, float16, bfloat16 or float32, or None.
        activation: Traced in place: a function of an f32, such as ``ptxdsl.math.gelu``. The kernel is kept for it.
        scale: Factor of the sums, of 8-bit types the product of both scales.
        dtype: Of a new ``out``: f16, bf16 or f32; a's by default, bf16 for 8-bit types.
        out: Where to put the result, ``[M, N]``, float16, bfloat16 or float32 with contiguous rows.
        plan: The tile, the stages and the cluster; the one of the fewest clocks by :func:`choose` if None.
        processors: Blocks to launch at most; those of the GPU if None.
        launch: Options of ``Kernel.configure``, such as ``backend``.

    Sums are in float32.

    Raises:
        LaunchError: A shape, dtype or device that does not fit, or ``out`` overlaps an input. Nothing ran.

    >>> import numpy as np
    >>> a, b = np.eye(3, 8, dtype=np.float16), np.arange(40, dtype=np.float16).reshape(8, 5)
    >>> matmul(a, b).tolist() == b[:3].tolist()
    True
    """
    product = prepare(a, b, bias, dtype, out, lambda eight: (False,) if eight else (False, True))
    most, (m, n, _) = tensor_products.processors(processors, launch), product.shape
    plan = choose(m, n, most) if plan is None else plan
    kind = Kind(*product.types, product.turned, plan, product.bias, activation, product.copied)
    into = tensor_products.Division(
        (plan.rows * plan.blocks, plan.columns), plan.blocks, (plan.rows, plan.columns // plan.blocks, ROWS), THREADS,
        plan.shared,
    )
    return tensor_products.launch(kernel_of(kind), product, into, bias, scale, most, **launch)
