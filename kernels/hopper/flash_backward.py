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

Queries and keys that a tile has beyond the end of a sequence are 0, and a weight of theirs is made 0.
"""

from __future__ import annotations

from functools import cache
from math import e, log2
from typing import Any, NamedTuple

from ... import (
    Kernel, Pipeline, Ptr, ScalarType, TensorMap, cdiv, dynamic_shared, f32, loop, maximum, mbarrier, minimum,
    otherwise, ptx, ptx_kernel, reg, s32, select, tensor_map, tiles, tma, u32, wgmma, when,
)

from .. import arguments
from . import flash_states
from .flash_groups import thread_row
from .flash_plans import GROUP, ROWS, SLAB, STAGES
from .flash_states import PART
from .staging import Writer

__all__ = ["DIMS", "Kind", "Plan", "backward_kernel", "differentiate", "plan_of"]

DIMS = (64, 128)
"""Head dimensions that tiles are made for; others are taken as the next one, and filled with 0 by the copies."""
KEYS, GROUPS = 2 * ROWS, 2
"""Of a block, and the warpgroups that share them."""
_REGISTERS = 24, 240
"""Of the threads that copy and multiply."""
_TOGETHER, _ALONE = 1, 2
"""Named barriers: of both warpgroups, and of the first one alone."""
_NEVER = 1 << 30
"""The first query that sees a key that is not there."""


class Plan(NamedTuple):
    """Tiles of ``queries`` rows and ``dim`` columns, whose product with the slopes is as large for either."""

    dim: int
    queries: int

    @property
    def threads(self) -> int:
        return (GROUPS + 1) * GROUP

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        states, slopes, sums = 2 * self.queries * 4, KEYS * self.queries * 2, GROUPS * ROWS * SLAB * 4
        return (2 * KEYS + 2 * STAGES * self.queries) * self.dim * 2 + STAGES * (states + slopes) + sums


def plan_of(dim: int) -> Plan:
    """The plan for a head dimension: 64 scores a thread, or half as many where sums of 128 columns take the place.

    >>> plan_of(80)
    Plan(dim=128, queries=64)
    """
    return Plan(64, 128) if dim <= 64 else Plan(128, 64)


class Kind(NamedTuple):
    """What a kernel is made for."""

    dtype: ScalarType
    dim: int
    causal: bool


class _Range(NamedTuple):
    """The tiles of queries of a block, from ``begin`` to ``end``; those before ``split`` need a mask."""

    begin: Any
    split: Any
    end: Any


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

    def produce(self, maps: tuple[Any, ...], key_head: Any, first: Any, group: Any, rows: _Range, tiles_: Any) -> None:
        """Copy the keys and values from ``first`` on, and tiles of queries, by one thread."""
        k, v, q, gradient, states = maps
        for each in maps:
            tma.prefetch_map(each)
        mbarrier.arrive(self.ready, expect_tx=self.k.nbytes + self.v.nbytes)
        tma.load(self.k, k, (key_head, first, 0), self.ready)
        tma.load(self.v, v, (key_head, first, 0), self.ready)
        q_side, gradient_side = self.q_pipe.producer(), self.gradient_pipe.producer()
        with loop(group) as member:
            head = key_head * group + member
            with loop(rows.begin, rows.end) as tile:
                slot, row = q_side.acquire(), tile * self.plan.queries
                tma.load(self.q[slot], q, (head, row, 0), slot.full)
                tma.load(self.states[slot].at(0, 0), states, (head * tiles_ + tile.bits(u32), 0), slot.full)
                slot = gradient_side.acquire()
                tma.load(self.gradient[slot], gradient, (head, row, 0), slot.full)


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

    def accumulate(self, dq: Any, key_head: Any, group: Any, rows: _Range, tiles_: Any) -> None:
        """Go over the tiles of queries, of which a head has ``tiles_``."""
        mbarrier.wait(self.block.ready, 0)
        with loop(group) as member:
            head = key_head * group + member
            with loop(rows.begin, rows.split) as tile:
                self.step(dq, head, tiles_, tile, True)
            with loop(rows.split, rows.end) as tile:
                self.step(dq, head, tiles_, tile, False)

    def step(self, dq: Any, head: Any, tiles_: Any, tile: Any, masked: bool) -> None:
        """Add what a tile of queries gives to the sums of keys and values, and to dq."""
        block, dtype = self.block, self.kind.dtype
        beside = self.plan.queries == SLAB  # registers are left for a product of weights that runs beside the slopes
        q_slot = self.q_side.wait()
        queries, states = block.q[q_slot], block.states[q_slot]
        _multiply(self.scores, self.k, queries.T, False)
        gradient_slot = self.gradient_side.wait()
        gradients = block.gradient[gradient_slot]
        _multiply(self.slopes, self.v, gradients.T, False)
        wgmma.wait(1)
        self.weigh(states, tile * self.plan.queries, masked)
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
        self.add_queries(dq, head * tiles_ + tile.bits(u32))

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

    def store(self, dk: Any, dv: Any, key_head: Any, first: Any, scale: Any) -> None:
        """The gradients of keys and values, by way of the tiles of these."""
        ptx.barrier.cta.sync(_TOGETHER, GROUPS * GROUP)
        writer = Writer(self.kind.dtype)
        self.k_sums.map(lambda v: v * scale)
        writer.write(self.k, self.k_sums.blocks[0], 0)
        writer.write(self.v, self.v_sums.blocks[0], 0)
        tma.fence()
        self.meet()
        with when(self.leads):
            at = (key_head, first + (self.number * ROWS).bits(s32), 0)
            tma.store(dk, at, self.k)
            tma.store(dv, at, self.v)
            tma.commit()
            tma.wait(0, read=True)


def _range(kind: Kind, plan: Plan, first: Any, queries: Any, keys: Any) -> _Range:
    """The tiles of queries that see the keys from ``first`` on; of the last keys all need a mask."""
    shift, end = keys - queries, cdiv(queries.bits(u32), plan.queries).bits(s32)
    begin, split = reg(s32, 0).copy(), reg(s32, 0).copy()
    if kind.causal:
        begin = minimum(end, (maximum(0, first - shift).bits(u32) // plan.queries).bits(s32))
        last = maximum(0, first + KEYS - 1 - shift).bits(u32)
        split = minimum(end, cdiv(last, plan.queries).bits(s32))
    return _Range(begin, select(first + KEYS > keys, end, split), end)


@cache
def backward_kernel(kind: Kind) -> Kernel:
    """``(k, v, q, gradient, states, sums of dq, dk, dv, queries, keys, heads a key head, factor, scale)``."""
    plan = plan_of(kind.dim)
    name = f"hopper_flash_backward_{kind.dtype}_hd{kind.dim}{'_causal' * kind.causal}"

    @ptx_kernel(name=name, maxntid=plan.threads, minnctapersm=1)
    def kernel(
        k: TensorMap, v: TensorMap, q: TensorMap, gradient: TensorMap, states: TensorMap, dq: Ptr[f32],
        dk: TensorMap, dv: TensorMap, queries: s32, keys: s32, group: u32, factor: f32, scale: f32,
    ) -> None:
        # With a mask the first keys are seen by the most queries: they begin first.
        first, key_head = (ptx.ctaid.x * KEYS).bits(s32), ptx.ctaid.y
        rows, tiles_ = _range(kind, plan, first, queries, keys), cdiv(queries.bits(u32), plan.queries)
        block = _Block(kind, plan)
        with when(wgmma.number() == GROUPS):
            ptx.setmaxnreg.dec.sync.aligned.u32(_REGISTERS[0])
            with when(ptx.tid.x == GROUPS * GROUP):
                maps = (k, v, q, gradient, states)
                block.produce(maps, key_head, first, group, rows, tiles_)
        with otherwise():
            ptx.setmaxnreg.inc.sync.aligned.u32(_REGISTERS[1])
            own = [first + (wgmma.number() * ROWS).bits(s32) + thread_row(half) for half in range(2)]
            seen = [key - (keys - queries) if kind.causal else reg(s32, 0).copy() for key in own]
            mine = _Group(block, factor, [select(key < keys, low, _NEVER) for key, low in zip(own, seen)])
            mine.accumulate(dq, key_head, group, rows, tiles_)
            mine.store(dk, dv, key_head, first, scale)

    return kernel


def differentiate(
    gradient: Any, q: Any, k: Any, v: Any, out: Any, logarithms: Any, *, causal: bool, scale: float, **options: Any
) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v, for arrays that `attention.flash_attention_backward` has checked.

    ``out`` and ``logarithms`` are what `flash.attend` gives. D is 128 at most.
    """
    (batch, heads, queries, dim), (_, key_heads, keys, _) = q.shape, k.shape
    kind, plan = Kind(arguments.floating("q", q), dim, causal), plan_of(dim)
    every, count = batch * heads, cdiv(queries, plan.queries)
    made = tuple(arguments.empty_like(x, tuple(x.shape), kind.dtype) for x in (q, k, v))
    states = arguments.empty_like(q, (every * count, 2 * plan.queries), f32)
    sums = arguments.empty_like(q, (every * count, GROUPS * PART), f32)
    flash_states.prepare(out, gradient, logarithms, states, sums, plan.queries, **options)

    def mapped(array: Any, rows: int) -> Any:
        return tensor_map(array.reshape(-1, *array.shape[2:]), (1, rows, SLAB), swizzle=2 * SLAB)

    maps = [
        mapped(k, KEYS), mapped(v, KEYS), mapped(q, plan.queries), mapped(gradient, plan.queries),
        tensor_map(states, (1, 2 * plan.queries)), sums, mapped(made[1], ROWS),
        mapped(made[2], ROWS),
    ]
    grid = cdiv(keys, KEYS), batch * key_heads
    run = backward_kernel(kind).configure(grid, plan.threads, shared=plan.shared, **options)
    run(*maps, queries, keys, heads // key_heads, scale * log2(e), scale)
    flash_states.finish(sums, made[0], plan.queries, scale, **options)
    return made
