"""Attention of many queries on Hopper: both products by wgmma, the softmax of one tile beside the products of others.

The design of FlashAttention-3 (Shah et al. 2024). A block has two or three warpgroups of 64 queries each, and one more
of which a thread brings tiles of k and v by tensor copies to two rings. For each tile of keys a warpgroup starts the
product of its queries with it, then that of the last tile's weights, which are in registers, with the last tile of
values; while the second runs, it takes the softmax of the first. The warpgroups take turns in starting products (named
barriers), so that one computes exponentials while another one's products run.

Keys are taken from the last tile to the first: only the first ones taken need a mask, and have a loop of their own.
"""

from __future__ import annotations

from functools import cache
from math import e, inf, log, log2
from typing import Any, NamedTuple

from ... import (
    Kernel, Pipeline, Ptr, ScalarType, TensorMap, bf16x2, cdiv, dynamic_shared, f16, f16x2, f32, loop, maximum,
    mbarrier, minimum, mma, otherwise, ptx, ptx_kernel, reg, s32, select, tensor_map, tiles, tma, u32, warp, wgmma,
    when,
)

from .. import arguments
from ..online import finite, inverse
from .staging import Writer

__all__ = ["DIMS", "Plan", "attend", "flash_kernel", "plan_of"]

DIMS = (64, 128, 256)
"""Head dimensions that tiles are made for; others are taken as the next one, and filled with 0 by the copies."""
GROUP, ROWS, SLAB = 128, 64, 64
"""Threads of a warpgroup, its queries, and the columns of 128 bytes of a tile."""
STAGES = 2
_FIRST_BARRIER = 1


class Plan(NamedTuple):
    """``groups`` of 64 queries a block, tiles of ``keys``, and the registers of the threads that copy and multiply."""

    dim: int
    groups: int
    keys: int
    registers: tuple[int, int]

    @property
    def threads(self) -> int:
        return (self.groups + 1) * GROUP

    @property
    def queries(self) -> int:
        return self.groups * ROWS

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return (self.queries + 2 * STAGES * self.keys) * self.dim * 2


def plan_of(dim: int, causal: bool) -> Plan:
    """The plan for a head dimension: what fills 240 or 160 registers with scores, weights and sums.

    >>> plan_of(80, causal=True)
    Plan(dim=128, groups=2, keys=128, registers=(24, 240))
    """
    wide = next(each for each in DIMS if each >= dim)
    if wide == 64:
        return Plan(64, 3, 128, (32, 160))
    return Plan(wide, 2, 80 if wide == 256 else 128 if causal else 176, (24, 240))


class Kind(NamedTuple):
    """What a kernel is made for."""

    dtype: ScalarType
    dim: int
    causal: bool
    negative: bool = False
    """Whether the scores change their sign: the factor of a kernel is positive."""
    state: bool = False
    """Whether it also stores the logarithm of each query's sum of weights, for the backward pass."""


class _Block:
    """The tiles and rings of a block."""

    def __init__(self, kind: Kind, plan: Plan) -> None:
        self.kind, self.plan, dim = kind, plan, plan.dim
        self.queries = tiles.Ring(dynamic_shared(kind.dtype, align=1024), plan.groups, ROWS, dim)
        self.k = tiles.Ring(self.queries.end, STAGES, plan.keys, dim)
        self.v = tiles.Ring(self.k.end, STAGES, plan.keys, dim)
        nbytes = self.k[0].nbytes
        self.k_pipe = Pipeline(STAGES, consumers=plan.groups, nbytes=nbytes, start=False)
        self.v_pipe = Pipeline(STAGES, consumers=plan.groups, nbytes=nbytes, start=False)
        self.ready = mbarrier.declare()
        mbarrier.start(*self.k_pipe.bars, *self.v_pipe.bars, (self.ready, 1))

    def produce(self, q: Any, k: Any, v: Any, head: Any, key_head: Any, first: Any, count: Any) -> None:
        """Copy the queries, and ``count`` tiles of keys and values from the last one on, by one thread."""
        for each in (q, k, v):
            tma.prefetch_map(each)
        plan = self.plan
        mbarrier.arrive(self.ready, expect_tx=plan.groups * self.queries[0].nbytes)
        for group in range(plan.groups):
            tma.load(self.queries[group], q, (head, first + group * ROWS, 0), self.ready)
        k_side, v_side = self.k_pipe.producer(), self.v_pipe.producer()
        with loop(count) as number:
            row = (count - 1 - number) * plan.keys
            slot = k_side.acquire()
            tma.load(self.k[slot], k, (key_head, row, 0), slot.full)
            slot = v_side.acquire()
            tma.load(self.v[slot], v, (key_head, row, 0), slot.full)


class _Softmax:
    """The online softmax of a warpgroup's rows, of which a thread has a quarter of each of two."""

    def __init__(self, factor: Any) -> None:
        self.factor = factor
        self.top = [reg(f32, -inf) for _ in range(2)]
        self.total = [reg(f32, 0.0) for _ in range(2)]

    def weigh(self, scores: Any) -> list[Any]:
        """Replace scores by weights; what the sums of earlier weights are multiplied by."""
        tops = [maximum(old, new) for old, new in zip(self.top, scores.reduce_rows(maximum))]
        bases = [finite(top) * self.factor for top in tops]
        shrink = [
            ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(old, self.factor, -base)) for old, base in zip(self.top, bases)
        ]
        for old, top in zip(self.top, tops):
            old.set(top)
        scores.map_rows(lambda v, base: ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(v, self.factor, -base)), bases)
        for half, (total, by) in enumerate(zip(self.total, shrink)):
            registers = scores.registers
            own = [register.copy() for i, register in enumerate(registers) if i // 2 % 2 == half]
            total.set(ptx.fma.rn.f32(total, by, _sum(own)))
        return shrink

    def factors(self) -> list[Any]:
        """The inverse of each row's sum of weights, in all four lanes; 0 of a row without a key."""
        return [inverse(f32, warp.reduce_sum(total, 4)) for total in self.total]


def _sum(values: list[Any]) -> Any:
    while len(values) > 1:
        values = [a + b for a, b in zip(values[::2], values[1::2])] + values[len(values) & ~1 :]
    return values[0]


class _Group:
    """A warpgroup that multiplies: its number, its queries, its sums."""

    def __init__(self, block: _Block, factor: Any, limits: Any) -> None:
        self.block, self.plan, self.kind = block, block.plan, block.kind
        self.number, self.limits = wgmma.number(), limits
        self.softmax = _Softmax(factor)
        self.k_side, self.v_side = block.k_pipe.consumer(), block.v_pipe.consumer()
        self.leads = (ptx.tid.x & GROUP - 1) == 0

    def turn(self) -> None:
        """Wait until this warpgroup may start products."""
        ptx.barrier.cta.sync(self.number + _FIRST_BARRIER, 2 * GROUP)

    def pass_on(self, last: Any = None) -> None:
        """Let the next warpgroup start products; the first one's turn does not come again after the ``last``."""
        groups = self.plan.groups
        after = select(self.number == groups - 1, 0, self.number + 1) + _FIRST_BARRIER
        if last is None:
            ptx.barrier.cta.arrive(after, 2 * GROUP)
        else:
            with when(~(last & (self.number == groups - 1))):
                ptx.barrier.cta.arrive(after, 2 * GROUP)

    def begin(self) -> None:
        """The last warpgroup gives the first one its first turn."""
        with when(self.number == self.plan.groups - 1):
            ptx.barrier.cta.arrive(_FIRST_BARRIER, 2 * GROUP)

    def multiply_keys(self, scores: Any) -> Any:
        slot = self.k_side.wait()
        wgmma.fence()
        queries, keys = self.block.queries[self.number], self.block.k[slot].T
        wgmma.multiply(scores, queries, keys, accumulate=False, negate_a=self.kind.negative)
        wgmma.commit()
        return slot

    def multiply_values(self, sums: Any, weights: Any) -> Any:
        slot = self.v_side.wait()
        wgmma.fence()
        wgmma.multiply(sums, weights, self.block.v[slot])
        wgmma.commit()
        return slot

    def weigh(self, scores: Any, first: Any, masked: bool) -> list[Any]:
        """The softmax of the scores of the keys from ``first`` on; of those beyond a row's limit the weight is 0."""
        if masked:
            column = ((ptx.laneid & 3) << 1).bits(s32)
            ends = [limit - first - column for limit in self.limits]
            for i, register in enumerate(scores.registers):
                register.set(select(ends[i // 2 % 2] > i // 4 * 8 + i % 2, register.copy(), -inf))
        return self.softmax.weigh(scores)

    def keep(self, weights: Any, scores: Any) -> None:
        """The weights of the next product, once the last one has read its own."""
        made = scores.fragment(self.kind.dtype)
        for key, words in made.blocks.items():
            for register, word in zip(weights.blocks[key], words):
                register.set(word)

    def attend(self, count: Any, whole: Any) -> Any:
        """The sums over all tiles, of which the first ``whole`` need no mask."""
        scores, sums = wgmma.zeros(ROWS, self.plan.keys), wgmma.zeros(ROWS, self.plan.dim)
        pair = f16x2 if self.kind.dtype is f16 else bf16x2
        blocks = {(0, step): [reg(pair) for _ in range(4)] for step in range(self.plan.keys // 16)}
        weights = mma.Fragment("a", self.kind.dtype, scores.shape, blocks, 4)
        del blocks
        mbarrier.wait(self.block.ready, 0)
        with when(count > 0):
            slot = self.multiply_keys(scores)
            wgmma.wait(0)
            slot.release(pred=self.leads)
            self.weigh(scores, self.first(count, 0), True)
            self.keep(weights, scores)
            masked = maximum(count - whole, 1)
            with when(count > 1):
                self.begin()
            with loop(1, masked) as number:
                self.step(scores, sums, weights, count, number, True)
            with loop(masked, count) as number:
                self.step(scores, sums, weights, count, number, False)
            slot = self.multiply_values(sums, weights)
            wgmma.wait(0)
            slot.release(pred=self.leads)
        return sums

    def first(self, count: Any, number: Any) -> Any:
        """The first key of the tile that is taken as this one."""
        return (count - 1 - number) * self.plan.keys

    def step(self, scores: Any, sums: Any, weights: Any, count: Any, number: Any, masked: bool) -> None:
        """The scores of a tile, beside the values of the tile before."""
        self.turn()
        k_slot, v_slot = self.multiply_keys(scores), self.multiply_values(sums, weights)
        self.pass_on(number == count - 1)
        wgmma.wait(1)
        k_slot.release(pred=self.leads)
        shrink = self.weigh(scores, self.first(count, number), masked)
        wgmma.wait(0)
        v_slot.release(pred=self.leads)
        sums.map_rows(lambda v, by: v * by, shrink)
        self.keep(weights, scores)

    def store(self, sums: Any, to: Any, at: tuple[Any, Any]) -> None:
        """The result, by way of the queries' tile: head and row."""
        writer, tile = Writer(self.kind.dtype), self.block.queries[self.number]
        factors = self.softmax.factors()
        sums.map_rows(lambda v, by: v * by, factors)
        ptx.barrier.cta.sync(self.number + (_FIRST_BARRIER + self.plan.groups), GROUP)
        writer.write(tile, sums.blocks[0], 0)
        tma.fence()
        ptx.barrier.cta.sync(self.number + (_FIRST_BARRIER + self.plan.groups), GROUP)
        with when(self.leads):
            tma.store(to, (*at, 0), tile)
            tma.commit()
            tma.wait(0, read=True)

    def note(self, state: Any, row: Any, queries: Any) -> None:
        """Store the logarithm of each row's sum of weights, -inf of none; ``row`` is that of the warpgroup's first."""
        for half, (top, total) in enumerate(zip(self.softmax.top, self.softmax.total)):
            whole = warp.reduce_sum(total, 4)
            logarithm = (top * self.softmax.factor + ptx.lg2.approx.f32(whole)) * log(2)
            at = row + thread_row(half)
            state.store(at, logarithm, pred=(at < queries) & ((ptx.laneid & 3) == 0))


def thread_row(half: int) -> Any:
    """The row of a warpgroup's 64 that a thread has as its first or second: an s32."""
    return (((ptx.tid.x >> 5) & 3) * 16 + (ptx.laneid >> 2) + 8 * half).bits(s32)


@cache
def flash_kernel(kind: Kind) -> Kernel:
    """``(q, k, v, out, [state,] queries, keys, heads a key head, factor)``: the maps are of (all heads, rows, D)."""
    plan = plan_of(kind.dim, kind.causal)

    def run(
        q: Any, k: Any, v: Any, out: Any, state: Any, queries: Any, keys: Any, group: Any, factor: Any
    ) -> None:
        # With a mask the last queries see the most keys: they begin first.
        number = ptx.nctaid.x - 1 - ptx.ctaid.x if kind.causal else ptx.ctaid.x
        first, shift = (number * plan.queries).bits(s32), keys - queries
        end = minimum(keys, first + plan.queries + shift) if kind.causal else keys
        seen = minimum(keys, first + shift + 1) if kind.causal else keys
        count, whole = (maximum(0, each).bits(u32) for each in (end, seen))
        count, whole = cdiv(count, plan.keys).bits(s32), (whole // plan.keys).bits(s32)
        head = ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y
        block = _Block(kind, plan)
        with when(wgmma.number() == plan.groups):
            ptx.setmaxnreg.dec.sync.aligned.u32(plan.registers[0])
            with when(ptx.tid.x == plan.groups * GROUP):
                block.produce(q, k, v, head, head // group, first, count)
        with otherwise():
            ptx.setmaxnreg.inc.sync.aligned.u32(plan.registers[1])
            row = first + (wgmma.number() * ROWS).bits(s32)
            limits = [
                minimum(keys, row + thread_row(half) + shift + 1) if kind.causal else keys for half in range(2)
            ]
            mine = _Group(block, factor, limits)
            sums = mine.attend(count, whole)
            if kind.state:
                mine.note(state + ptx.mul.wide.u32(head, queries.bits(u32)), row, queries)
            mine.store(sums, out, (head, row))

    name = f"hopper_flash_{kind.dtype}_hd{kind.dim}{'_causal' * kind.causal}{'_negative' * kind.negative}"
    options: dict[str, Any] = {"maxntid": plan.threads, "minnctapersm": 1}
    if kind.state:
        @ptx_kernel(name=name + "_state", **options)
        def noting(
            q: TensorMap, k: TensorMap, v: TensorMap, out: TensorMap, state: Ptr[f32], queries: s32, keys: s32,
            group: u32, factor: f32,
        ) -> None:
            run(q, k, v, out, state, queries, keys, group, factor)

        return noting

    @ptx_kernel(name=name, **options)
    def kernel(
        q: TensorMap, k: TensorMap, v: TensorMap, out: TensorMap, queries: s32, keys: s32, group: u32, factor: f32,
    ) -> None:
        run(q, k, v, out, None, queries, keys, group, factor)

    return kernel


def attend(
    q: Any, k: Any, v: Any, out: Any, *, causal: bool, scale: float, state: Any = None, **options: Any
) -> Any:
    """Launch the kernel for arrays that `attention.flash_attention` has checked: f16 or bf16, at multiples of 16 bytes.

    ``state``, of shape ``[B, Hq, Sq]`` and float32, is given the logarithm of each query's sum of weights.
    """
    (batch, heads, queries, dim), (_, key_heads, keys, _) = q.shape, k.shape
    kind = Kind(arguments.floating("q", q), dim, causal, scale < 0, state is not None)
    plan = plan_of(dim, causal)
    boxes = {"q": ROWS, "k": plan.keys, "v": plan.keys, "out": ROWS}
    maps = [
        tensor_map(x.reshape(-1, *x.shape[2:]), (1, boxes[name], SLAB), swizzle=2 * SLAB)
        for name, x in (("q", q), ("k", k), ("v", v), ("out", out))
    ]
    launch = flash_kernel(kind).configure(
        (cdiv(queries, plan.queries), heads, batch), plan.threads, shared=plan.shared, **options
    )
    # A factor of 0 would make NaN of a masked score.
    factor = max(abs(scale) * log2(e), 2.0**-100)
    launch(*maps, *(() if state is None else (state,)), queries, keys, heads // key_heads, factor)
    return out
