"""The gradients of attention on Hopper: five products by wgmma for each tile of keys and queries, one kernel for all.

The design of FlashAttention-3 (Shah et al. 2024). A block has 128 keys, 64 for each of two warpgroups, and goes over
the queries that see them, of all heads that share them; a thread of a third warpgroup brings tiles of queries and of
their gradients by tensor copies to two rings. A warpgroup makes its scores and their gradients ds, here called slopes,
transposed, a row a key, so that both are left factors of the products with gradients and queries as they lie in
registers: the sums of dv and dk stay there to the end. The slopes of all keys of the block go through shared memory to
dq, of which each warpgroup makes a part; bulk copies add it to an array of float32, in the order in which registers
hold it (`flash_states`). In which order blocks do so is not known, so the last bits of dq may differ from run to run;
dk and dv are the same.

The formulas stand in `ptxdsl.kernels.flash_backward`.

Queries and keys that a tile has beyond the end of a sequence are 0, and a weight of theirs is made 0. Copies of packed
sequences bring those of the next one there, which the warpgroups set to 0 before they multiply: a weight of 0 times
infinity is NaN.
"""

from __future__ import annotations

from functools import cache
from math import e, log2
from typing import Any

from ... import (
    Kernel, Pipeline, Ptr, TensorMap, cdiv, dynamic_shared, f32, loop, mbarrier, otherwise, ptx, ptx_kernel, reg, s32,
    select, tensor_map, tiles, tma, u32, wgmma, when,
)

from .. import arguments
from ..sequences import length_type, rows_of, side_of
from . import flash_states
from .flash_backward_plans import DIMS, GROUPS, KEYS, Kind, Plan, Work, plan_of, work_of
from .flash_groups import clear_rows, store_rows, thread_row
from .flash_plans import GROUP, ROWS, SLAB, STAGES, box_of, place_at
from .flash_states import PART, Shape
from .staging import Writer

__all__ = ["DIMS", "Kind", "Plan", "backward_kernel", "differentiate", "differentiate_packed", "plan_of"]

_REGISTERS = 24, 240
"""Of the threads that copy and multiply."""
_TOGETHER, _ALONE = 1, 2
"""Named barriers: of both warpgroups, and of the first one alone."""
_NEVER = 1 << 30
"""The first query that sees a key that is not there."""


class _Block:
    """The tiles and rings of a block."""

    def __init__(self, kind: Kind, plan: Plan) -> None:
        self.kind, self.plan, dim = kind, plan, plan.dim
        self.k = tiles.Tile(dynamic_shared(kind.dtype, align=1024), KEYS, dim)
        self.k_slabs = tiles.Ring(self.k.place, dim // SLAB, KEYS, SLAB)
        self.v = tiles.Tile(self.k_slabs.end, KEYS, dim)
        self.q = tiles.Ring(self.v.place + KEYS * dim, STAGES, plan.queries, dim)
        self.gradient = tiles.Ring(self.q.end, STAGES, plan.queries, dim)
        # The slopes of a tile, and those of the next one: slabs of 64 queries.
        self.slopes = tiles.Ring(self.gradient.end, STAGES * plan.queries // SLAB, KEYS, SLAB)
        self.sums = tiles.Ring(self.slopes.end.cast(f32), GROUPS, ROWS, SLAB)
        self.states = tiles.Ring(self.sums.end, STAGES, 2, plan.queries, 0)
        nbytes = self.q[0].nbytes
        self.q_pipe = Pipeline(STAGES, consumers=GROUPS, nbytes=nbytes + self.states[0].nbytes, start=False)
        self.gradient_pipe = Pipeline(STAGES, consumers=GROUPS, nbytes=nbytes, start=False)
        self.ready = mbarrier.declare()
        mbarrier.start(*self.q_pipe.bars, *self.gradient_pipe.bars, (self.ready, 1))

    def produce(self, maps: tuple[Any, ...], work: Work) -> None:
        """Copy the keys and values, and tiles of queries, by one thread."""
        k, v, q, gradient, states = maps
        for each in maps:
            tma.prefetch_map(each)
        packed, rows = self.kind.packed, work.rows
        mbarrier.arrive(self.ready, expect_tx=self.k.nbytes + self.v.nbytes)
        at = place_at(packed, work.key_head, work.first + rows.key_begin)
        tma.load(self.k, k, at, self.ready)
        tma.load(self.v, v, at, self.ready)
        q_side, gradient_side = self.q_pipe.producer(), self.gradient_pipe.producer()
        with loop(work.group) as member, loop(work.begin, work.end) as tile:
            head, state = work.state(member, tile)
            at = place_at(packed, head, tile * self.plan.queries + rows.begin)
            slot = q_side.acquire()
            tma.load(self.q[slot], q, at, slot.full)
            tma.load(self.states[slot].at(0, 0), states, (state, 0), slot.full)
            slot = gradient_side.acquire()
            tma.load(self.gradient[slot], gradient, at, slot.full)


def _multiply(sums: Any, a: Any, b: Any, accumulate: bool = True) -> None:
    """Start a product, a group of its own."""
    wgmma.fence()
    wgmma.multiply(sums, a, b, accumulate=accumulate)
    wgmma.commit()


class _Group:
    """A warpgroup that multiplies: its number, its keys, its sums."""

    def __init__(self, block: _Block, factor: Any, lows: list[Any]) -> None:
        self.block, self.plan, self.kind = block, block.plan, block.kind
        self.number, self.factor = wgmma.number(), factor
        self.lows = lows
        """The first query that sees the key of each of a thread's two rows."""
        self.q_side, self.gradient_side = block.q_pipe.consumer(), block.gradient_pipe.consumer()
        self.leads = (ptx.tid.x & GROUP - 1) == 0
        dim, queries = self.plan
        self.k, self.v = (tile.part(ROWS, dim, self.number * ROWS) for tile in (block.k, block.v))
        self.k_sums, self.v_sums = wgmma.zeros(ROWS, dim), wgmma.zeros(ROWS, dim)
        self.scores, self.slopes = wgmma.zeros(ROWS, queries), wgmma.zeros(ROWS, queries)
        self.q_sums = self.scores if queries == SLAB else wgmma.zeros(ROWS, SLAB)
        self.column = (ptx.laneid & 3) << 1
        self.buffer = reg(u32, 0)
        """Which of the two buffers of slopes is next."""

    def meet(self) -> None:
        """All threads of the warpgroup."""
        ptx.barrier.cta.sync(self.number + _ALONE, GROUP)

    def accumulate(self, dq: Any, work: Work) -> None:
        """Go over the tiles of queries."""
        mbarrier.wait(self.block.ready, 0)
        if self.kind.packed:
            self.clear(work.rows.keys - work.first, self.block.k, self.block.v)
        with loop(work.group) as member:
            with loop(work.begin, work.split) as tile:
                self.step(dq, work, member, tile, True)
            with loop(work.split, work.end) as tile:
                self.step(dq, work, member, tile, False)

    def clear(self, left: Any, *tiles_: Any) -> None:
        """Set the rows of tiles beyond the ``left`` first ones to 0, by both warpgroups."""
        with when(left < tiles_[0].shape[0]):
            for tile in tiles_:
                clear_rows(tile, left.bits(u32), GROUPS * GROUP)
            tma.fence()
            ptx.barrier.cta.sync(_TOGETHER, GROUPS * GROUP)

    def step(self, dq: Any, work: Work, member: Any, tile: Any, masked: bool) -> None:
        """Add what a tile of queries gives to the sums of keys and values, and to dq."""
        block, dtype = self.block, self.kind.dtype
        beside = self.plan.queries == SLAB  # registers are left for a product of weights that runs beside the slopes
        first = tile * self.plan.queries
        q_slot = self.q_side.wait()
        queries, states = block.q[q_slot], block.states[q_slot]
        if self.kind.packed:
            gradient_slot = self.gradient_side.wait()
            self.clear(work.rows.queries - first, queries, block.gradient[gradient_slot])
        _multiply(self.scores, self.k, queries.T, False)
        if not self.kind.packed:
            gradient_slot = self.gradient_side.wait()
        gradients = block.gradient[gradient_slot]
        _multiply(self.slopes, self.v, gradients.T, False)
        wgmma.wait(1)
        self.weigh(states, first, masked)
        weights = self.scores.fragment(dtype) if beside else None
        wgmma.wait(0)
        if beside:
            _multiply(self.v_sums, weights, gradients)
        self.slope(states)
        slopes = self.slopes.fragment(dtype)
        if not beside:
            _multiply(self.v_sums, self.scores.fragment(dtype), gradients)
        _multiply(self.k_sums, slopes, queries)
        self.share(slopes)
        self.multiply_slopes()
        wgmma.wait(2)
        gradient_slot.release(pred=self.leads)
        wgmma.wait(1)
        q_slot.release(pred=self.leads)
        wgmma.wait(0)
        self.add_queries(dq, work.state(member, tile)[1])

    def weigh(self, states: Any, first: Any, masked: bool) -> None:
        """Replace scores by weights, of which those of keys that a query does not see are 0."""
        lows = [low - first - self.column.bits(s32) for low in self.lows]
        registers = self.scores.registers
        for eight in range(self.plan.queries // 8):
            pair = states.at(0, self.column + 8 * eight).load(0, width=2)
            for i, register in enumerate(registers[4 * eight : 4 * eight + 4]):
                weight = ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(register.copy(), self.factor, -pair[i % 2]))
                if masked:
                    weight = select(lows[i // 2] <= 8 * eight + i % 2, weight, 0.0)
                register.set(weight)

    def slope(self, states: Any) -> None:
        """Replace the products of gradients and values by the gradients of scores, but for the factor."""
        weights, slopes = self.scores.registers, self.slopes.registers
        for eight in range(self.plan.queries // 8):
            pair = states.at(1, self.column + 8 * eight).load(0, width=2)
            for i in range(4 * eight, 4 * eight + 4):
                slopes[i].set(weights[i].copy() * (slopes[i].copy() - pair[i % 2]))

    def share(self, slopes: Any) -> None:
        """Write the slopes of this warpgroup's keys to shared memory, and wait for the other's.

        Of the two buffers one is free: who writes to it has met the other warpgroup since this one read it.
        """
        writer, count = Writer(self.kind.dtype), self.plan.queries // SLAB
        for slab in range(count):
            tile = self.block.slopes[self.buffer * count + slab].part(ROWS, SLAB, self.number * ROWS)
            for column in range(0, SLAB, 16):
                writer.write_words(tile, column, slopes.blocks[0, (slab * SLAB + column) // 16])
        tma.fence()
        ptx.barrier.cta.sync(_TOGETHER, GROUPS * GROUP)

    def multiply_slopes(self) -> None:
        """This warpgroup's part of dq: half of the queries, or of the columns."""
        block, count = self.block, self.plan.queries // SLAB
        slab, column = (self.number, 0) if count > 1 else (0, self.number)
        _multiply(self.q_sums, block.slopes[self.buffer * count + slab].T, block.k_slabs[column], False)
        self.buffer.set(self.buffer ^ 1)

    def add_queries(self, dq: Any, tile: Any) -> None:
        """Add this warpgroup's part to the array, by a copy that ends behind the next products."""
        staged, registers = self.block.sums[self.number].place, self.q_sums.registers
        with when(self.leads):
            tma.wait(0, read=True)
        self.meet()
        for four in range(0, len(registers), 4):
            place = staged + (four * GROUP + (ptx.tid.x & GROUP - 1) * 4)
            place.store(0, [register.copy() for register in registers[four : four + 4]])
        tma.fence()
        self.meet()
        with when(self.leads):
            to = dq + ptx.mul.wide.u32(tile * GROUPS + self.number, PART)
            ptx["cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"](to, staged, PART * 4)
            tma.commit()

    def store(self, dk: Any, dv: Any, work: Work, scale: Any) -> None:
        """The gradients of keys and values, by way of the tiles of these: by tensor copies, or row by row if packed."""
        ptx.barrier.cta.sync(_TOGETHER, GROUPS * GROUP)
        writer = Writer(self.kind.dtype)
        self.k_sums.map(lambda v: v * scale)
        writer.write(self.k, self.k_sums.blocks[0], 0)
        writer.write(self.v, self.v_sums.blocks[0], 0)
        first = work.first + (self.number * ROWS).bits(s32)
        if self.kind.packed:
            self.meet()
            heads, dim, left = ptx.nctaid.y, self.kind.dim, work.rows.keys - first
            own = side_of(first + work.rows.key_begin, left, work.key_head, heads, True).first * dim
            store_rows(self.k, dk + own, heads * dim, left, dim)
            store_rows(self.v, dv + own, heads * dim, left, dim)
        else:
            tma.fence()
            self.meet()
            with when(self.leads):
                at = (work.key_head, first, 0)
                tma.store(dk, at, self.k)
                tma.store(dv, at, self.v)
                tma.commit()
        with when(self.leads):
            tma.wait(0, read=True)


@cache
def backward_kernel(kind: Kind) -> Kernel:
    """``(k, v, q, gradient, states, sums of dq, dk, dv, queries, keys, heads a key head, tiles, factor, scale)``.

    ``tiles`` are those of a head. Of packed sequences `sequences` has what ``queries`` and ``keys`` are, and ``dk`` and
    ``dv`` are pointers.
    """
    plan, dtype = plan_of(kind.dim), kind.dtype
    length: Any = length_type(kind.packed)
    name = f"hopper_{'packed_' * kind.packed}flash_backward_{kind.dtype}_hd{kind.dim}{'_causal' * kind.causal}"
    target: Any = Ptr[dtype] if kind.packed else TensorMap

    @ptx_kernel(name=name, maxntid=plan.threads, minnctapersm=1)
    def kernel(
        k: TensorMap, v: TensorMap, q: TensorMap, gradient: TensorMap, states: TensorMap, dq: Ptr[f32], dk: target,
        dv: target, queries: length, keys: length, group: u32, tiles_: u32, factor: f32, scale: f32,
    ) -> None:
        rows = rows_of(queries, keys, kind.packed)
        work = work_of(kind, plan, rows, group, tiles_)
        if kind.packed:
            ptx.ret(pred=work.first >= rows.keys)
        block = _Block(kind, plan)
        with when(wgmma.number() == GROUPS):
            ptx.setmaxnreg.dec.sync.aligned.u32(_REGISTERS[0])
            with when(ptx.tid.x == GROUPS * GROUP):
                block.produce((k, v, q, gradient, states), work)
        with otherwise():
            ptx.setmaxnreg.inc.sync.aligned.u32(_REGISTERS[1])
            own = [work.first + (wgmma.number() * ROWS).bits(s32) + thread_row(half) for half in range(2)]
            seen = [key - (rows.keys - rows.queries) if kind.causal else reg(s32, 0).copy() for key in own]
            mine = _Group(block, factor, [select(key < rows.keys, low, _NEVER) for key, low in zip(own, seen)])
            mine.accumulate(dq, work)
            mine.store(dk, dv, work, scale)

    return kernel


def differentiate(
    gradient: Any, q: Any, k: Any, v: Any, out: Any, logarithms: Any, *, causal: bool, scale: float, **options: Any
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, for arrays that `attention.flash_attention_backward` has checked.

    ``out`` and ``logarithms`` are what `flash.attend` gives. D is 128 at most.
    """
    made = tuple(arguments.empty_like(x, tuple(x.shape), arguments.floating("q", q)) for x in (q, k, v))
    (heads, queries, dim), (key_heads, keys, _) = q.shape[1:], k.shape[1:]
    tiles_ = cdiv(queries, plan_of(dim).queries)
    for some in arguments.spans(q.shape[0]):
        shape = Shape(some.stop - some.start, heads, queries, tiles_, queries)
        arrays = [x[some].reshape(-1, *x.shape[2:]) for x in (k, v, q, gradient)]
        results = [x[some].reshape(-1, *x.shape[2:]) for x in made]
        _launch(
            arrays, results, (out[some], logarithms[some]), shape, (keys, keys), key_heads, causal, scale, **options
        )
    return made


def differentiate_packed(
    arrays: list[Any], made: tuple[Any, ...], forward: tuple[Any, Any], starts: tuple[Any, Any],
    most: tuple[int, int], *, causal: bool, scale: float, **options: Any,
) -> None:
    """The same for `attention.varlen_attention_backward`, which gives the arrays that are to be ``made``.

    ``arrays`` are q, k, v and the gradient, ``forward`` the result and the logarithms; ``starts`` are those of queries
    and of keys, ``most`` what a sequence has of them.
    """
    q, k, v, gradient = arrays
    rows, heads, dim = q.shape
    count = starts[0].shape[0] - 1
    shape = Shape(count, heads, most[0], rows // plan_of(dim).queries + count, starts[0])
    _launch(
        [k, v, q, gradient], list(made), forward, shape, (most[1], starts[1]), k.shape[1], causal, scale,
        **options,
    )


def _launch(
    arrays: list[Any], made: list[Any], forward: tuple[Any, Any], shape: Shape, keys: tuple[int, Any], key_heads: int,
    causal: bool, scale: float, **options: Any,
) -> None:
    """All three kernels; ``keys`` are the most of a sequence, and what the kernel is told of them."""
    packed, dim = not isinstance(shape.lengths, int), arrays[0].shape[-1]
    kind, plan = Kind(arguments.floating("q", arrays[2]), dim, causal, packed), plan_of(dim)
    every = shape.heads * shape.tiles * (1 if packed else shape.sequences)
    states = arguments.empty_like(made[0], (every, 2 * plan.queries), f32)
    sums = arguments.empty_like(made[0], (every, GROUPS * PART), f32)
    (out, logarithms), gradient = forward, arrays[3]
    flash_states.prepare(out, gradient, logarithms, states, sums, shape, plan.queries, **options)

    def mapped(array: Any, rows: int) -> Any:
        return tensor_map(array, box_of(packed, rows), swizzle=2 * SLAB)

    boxes = KEYS, KEYS, plan.queries, plan.queries
    maps = [mapped(array, rows) for array, rows in zip(arrays, boxes)]
    targets = made[1:] if packed else [mapped(array, ROWS) for array in made[1:]]
    run = backward_kernel(kind).configure(
        (cdiv(keys[0], KEYS), key_heads, shape.sequences), plan.threads, shared=plan.shared, **options
    )
    run(
        *maps, tensor_map(states, (1, 2 * plan.queries)), sums, *targets, shape.lengths, keys[1],
        shape.heads // key_heads, shape.tiles, scale * log2(e), scale,
    )
    flash_states.finish(sums, made[0], shape, plan.queries, scale, **options)
