"""Matrix products on Blackwell: 16- and 8-bit matrices of any shape, sums in float32 in tensor memory.

A block has six warps. One thread of the fifth brings tiles of a and b by tensor copies to a ring of stages, one of the
sixth has them multiplied (tcgen05), and the first four take the sums from tensor memory and store them by tensor
copies. Tensor memory holds the sums of two tiles: one is stored while the next one is made. Two blocks of a cluster are
a pair, which makes 256 rows together: each brings its rows of a and half of the columns of b, and the thread of the
first one issues the products of both.

What a and b lack of whole tiles is filled with 0 by the copies, and what c lacks is not stored by them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ... import (
    Kernel, Pipeline, ScalarType, b32, cluster, dynamic_shared, f32, loop, mbarrier, ptx, tcgen05, tiles, tma, when,
)

from .. import tensor_products, tile_order
from ..tensor_products import SPAN, End, Kind, Ring, prepare

__all__ = [
    "ROWS", "SHARED", "STAGED", "Block", "Kind", "Plan", "division_of", "kernel_of", "matmul", "options_of", "run",
]

ROWS, THREADS, STORING = 128, 192, 128
"""Rows of a block's tile, its threads, and those of them that store."""
BUFFERS = 2
"""Of rows of 128 bytes on their way to global memory."""
STAGED = BUFFERS * ROWS * SPAN
SHARED = 232448 - 2048
_BARRIER = 1


class Plan(NamedTuple):
    """Tiles of 128 rows a block and ``columns``, for a ``pair`` 256 rows; ``stages`` of the ring."""

    columns: int = 256
    stages: int = 6
    pair: bool = True
    buffers: int = 2
    """Of sums in tensor memory: one is stored while the next one is made."""

    @property
    def blocks(self) -> int:
        return 1 + self.pair

    @property
    def share(self) -> int:
        """Columns of b that a block brings."""
        return self.columns // self.blocks

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * (ROWS + self.share) * SPAN + STAGED


def choose(m: int) -> Plan:
    """Pairs where there are rows for them, and as many stages as there is memory for.

    >>> choose(4096), choose(100)
    (Plan(columns=256, stages=6, pair=True, buffers=2), Plan(columns=256, stages=4, pair=False, buffers=2))
    """
    plan = Plan(pair=m > ROWS)
    return plan._replace(stages=(SHARED - STAGED) // ((ROWS + plan.share) * SPAN))


class Block:
    """What the roles of a block share."""

    def __init__(self, kind: Kind) -> None:
        self.kind, self.plan = kind, kind.plan
        plan = self.plan
        self.a = Ring(dynamic_shared(kind.a, align=1024), kind.a, ROWS, kind.turned[0], plan.stages)
        self.b = Ring(self.a.ring.end, kind.b, plan.share, kind.turned[1], plan.stages)
        staged = self.b.ring.end.cast(kind.c)
        self.staged = tiles.Ring(staged, BUFFERS, ROWS, SPAN // kind.c.bytes)
        # The first block of a pair waits for what both bring, and both wait for its products.
        self.pipe = Pipeline(plan.stages, consumers=1, cluster=plan.pair, start=False)
        self.made = Pipeline(plan.buffers, consumers=plan.blocks, cluster=plan.pair, start=False)
        mbarrier.start(*self.pipe.bars, *self.made.bars, cluster=plan.pair)
        self.rank = cluster.rank() if plan.pair else None
        self.memory = tcgen05.allocate(self.memory_columns, pair=plan.pair)

    @property
    def memory_columns(self) -> int:
        """Of tensor memory, which begins with the sums."""
        return self.plan.buffers * self.plan.columns

    @property
    def nbytes(self) -> int:
        """What a block copies to a stage."""
        return (ROWS + self.plan.share) * SPAN

    def sums(self, place: Any) -> Any:
        """Those of a buffer, of which the number is not known while tracing."""
        plan, own = self.plan, self.memory.address + place.index * self.plan.columns
        return tcgen05.Memory(own, plan.columns, plan.pair).sums(ROWS * plan.blocks, plan.columns)

    def tiles(self, rows: Any, columns: Any) -> Any:
        """The loop over the tiles of this block or pair, of ``rows`` x ``columns``."""
        number, count = ptx.ctaid.x, ptx.nctaid.x
        if self.plan.pair:
            number, count = number >> 1, count >> 1
        return loop(number, rows * columns, count)

    def place(self, tile: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
        """The first row and column of the tile of this block or pair."""
        row, column = tile_order.place(tile, rows, columns)
        return row * (ROWS * self.plan.blocks), column * self.plan.columns

    def produce(self, maps: tuple[Any, ...], rows: Any, columns: Any, steps: Any) -> None:
        """Fill stages, by one thread of each block; the bytes are counted in the first block of a pair."""
        for each in maps:
            tma.prefetch_map(each)
        producer = self.pipe.producer()
        first = None if self.rank is None else self.rank == 0
        with self.tiles(rows, columns) as tile:
            row, column = self.place(tile, rows, columns)
            if self.rank is not None:
                row = row + self.rank * ROWS
            with loop(steps) as step:
                slot = producer.acquire()
                mbarrier.arrive(slot.full, expect_tx=self.plan.blocks * self.nbytes, pred=first)
                bar = slot.full if self.rank is None else cluster.at(slot.full, 0)
                self.copy(maps, slot, row, column, step, bar)
        if self.plan.pair:
            producer.finish()

    def copy(self, maps: tuple[Any, ...], slot: Any, row: Any, column: Any, step: Any, bar: Any) -> None:
        """Fill a stage: with the rows of a from ``row`` on, and what this block brings of the columns of b."""
        plan, k = self.plan, step * self.a.depth
        own = column if self.rank is None else column + self.rank * plan.share
        tma.load(self.a.copied(slot, 0, ROWS), maps[0], self.a.at(row, k), bar, pair=plan.pair)
        tma.load(self.b.copied(slot, 0, plan.share), maps[1], self.b.at(own, k), bar, pair=plan.pair)

    def multiply(self, rows: Any, columns: Any, steps: Any) -> None:
        """Have products made, by one thread, of a pair in the first block."""
        plan, filled, made = self.plan, self.pipe.consumer(), self.made.producer()
        both = 3 if plan.pair else None
        with self.tiles(rows, columns):
            place = made.acquire()
            sums = self.sums(place)
            tcgen05.fence_after()
            with loop(steps) as step:
                slot = filled.wait()
                self.add(sums, slot, step > 0)
                tcgen05.commit(slot.empty, pair=plan.pair, multicast=both)
            tcgen05.commit(place.full, pair=plan.pair, multicast=both)

    def add(self, sums: Any, slot: Any, accumulate: Any) -> None:
        """Have the product of a stage added to the sums."""
        a, b = self.a.factor(slot, 0, ROWS), self.b.factor(slot, 0, self.plan.share)
        tcgen05.multiply(sums, a, b.T, accumulate=accumulate)

    def store(self, to: Any, rows: Any, columns: Any, end: Callable[[Any], End]) -> None:
        """Store sums, by four warps; ``end(column)`` is what is stored for those of a tile."""
        made, wide = self.made.consumer(), SPAN // self.kind.c.bytes
        leads = ptx.tid.x == 0
        with self.tiles(rows, columns) as tile:
            row, column = self.place(tile, rows, columns)
            place, finish = made.wait(), end(column)
            sums = self.sums(place)
            tcgen05.fence_after()
            for number, first in enumerate(range(0, self.plan.columns, wide)):
                part = sums.load(first, wide)
                if self.kind.copied:
                    top = row if self.rank is None else row + self.rank * ROWS
                    self._stage(self.staged[number % BUFFERS], part, first, finish)
                    with when(leads):
                        tma.store(to, (top, column + first), self.staged[number % BUFFERS])
                        tma.commit()
                else:
                    part.map_at(lambda _, at, value, finish=finish: finish(at, [value])[0])
                    part.store(to, row, column)
            tcgen05.fence_before()
            ptx.bar.sync(_BARRIER, STORING)
            place.release(rank=None if self.rank is None else 0, pred=leads)
        with when(leads):
            tma.wait(0, read=True)

    def _stage(self, tile: Any, part: Any, first: int, finish: End) -> None:
        """Write columns to a buffer: a thread has a whole row of them."""
        with when(ptx.tid.x == 0):
            tma.wait(BUFFERS - 1, read=True)
        ptx.bar.sync(_BARRIER, STORING)
        values = [finish(first + at, [register.copy()])[0] for at, register in enumerate(part.registers)]
        each = 16 // self.kind.c.bytes
        for at in range(0, len(values), each):
            own = values[at : at + each]
            if self.kind.c is not f32:
                name = f"cvt.rn.{self.kind.c}x2.f32"
                own = [ptx[name](high, low).bits(b32) for low, high in zip(own[::2], own[1::2])]
            place = tile.at(ptx.tid.x, at)
            (place if self.kind.c is f32 else place.cast(b32)).store(0, own)
        tma.fence()
        ptx.bar.sync(_BARRIER, STORING)


def run(
    block: Block, maps: tuple[Any, ...], c: Any, bias: Any, n: Any, rows: Any, columns: Any, steps: Any, scale: Any
) -> None:
    """The roles of a block."""
    with when(ptx.tid.x == STORING):
        block.produce(maps, rows, columns, steps)
    issues = ptx.tid.x == STORING + 32
    with when(issues if block.rank is None else issues & (block.rank == 0)):
        block.multiply(rows, columns, steps)
    with when(ptx.tid.x < STORING):
        block.store(c, rows, columns, lambda column: End(block.kind, bias, n, scale, column))
    block.memory.free()


def options_of(plan: Plan) -> dict[str, Any]:
    """What a kernel says of its blocks."""
    options: dict[str, Any] = {"maxntid": THREADS, "minnctapersm": 1}
    if plan.pair:
        options["reqnctapercluster"] = 2
    return options


@cache
def kernel_of(kind: Kind) -> Kernel:
    """The kernel, as of `tensor_products.kernel_of`."""
    plan = kind.plan
    name = f"blackwell_matmul_{kind.a}_{kind.b}_{kind.c}_{plan.columns}{'_pair' * plan.pair}"

    def traced(a: Any, b: Any, *others: Any) -> None:
        run(Block(kind), (a, b), *others)

    return tensor_products.kernel_of(kind, name, traced, **options_of(plan))


def division_of(plan: Plan) -> tensor_products.Division:
    return tensor_products.Division(
        (ROWS * plan.blocks, plan.columns), plan.blocks, (ROWS, plan.share, ROWS), THREADS, plan.shared
    )


def matmul(
    a: Any, b: Any, *, bias: Any = None, activation: Callable[[Any], Any] | None = None, scale: float = 1.0,
    dtype: ScalarType | None = None, out: Any = None, plan: Plan | None = None, processors: int | None = None,
    **launch: Any,
) -> Any:
    """``activation(scale * (a @ b) + bias)`` on Blackwell (sm_100a); arguments and errors as `hopper.matmul.matmul`.

    Here 8-bit matrices are read where they are in both ways of storing, too.

    >>> import numpy as np
    >>> a, b = np.eye(3, 8, dtype=np.float16), np.arange(40, dtype=np.float16).reshape(8, 5)
    >>> matmul(a, b).tolist() == b[:3].tolist()
    True
    """
    product = prepare(a, b, bias, dtype, out, lambda _: (False, True))
    most, plan = tensor_products.processors(processors, launch), choose(product.shape[0]) if plan is None else plan
    kind = Kind(*product.types, product.turned, plan, product.bias, activation, product.copied)
    return tensor_products.launch(kernel_of(kind), product, division_of(plan), bias, scale, most, **launch)
