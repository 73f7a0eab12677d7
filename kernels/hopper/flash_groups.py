"""The roles of a block of attention on Hopper: what copies tiles, and the warpgroups that multiply. See `flash`."""

from __future__ import annotations

from math import inf, log
from typing import Any

from ... import (
    Pipeline, b32, bf16, bf16x2, dynamic_shared, f16, f16x2, f32, loop, maximum, mbarrier, minimum, mma, ptx, reg, s32,
    select, tiles, tma, u32, u64, warp, wgmma, when,
)

from ..online import finite, inverse
from .flash_plans import GROUP, ROWS, STAGES, Kind, Plan
from .staging import Writer

__all__ = ["Block", "Group", "Softmax", "clear_rows", "store_rows", "thread_row"]

_FIRST_BARRIER = 1
_PIECES = 8
"""Of 16 bytes, in a row of a slab."""


class Block:
    """The tiles and rings of a block."""

    def __init__(self, kind: Kind, plan: Plan) -> None:
        self.kind, self.plan, dim = kind, plan, plan.dim
        self.queries = tiles.Ring(dynamic_shared(kind.dtype, align=1024), plan.groups, ROWS, dim)
        self.k = tiles.Ring(self.queries.end, STAGES, plan.keys, dim)
        self.v = tiles.Ring(self.k.end, STAGES, plan.keys, dim)
        nbytes = self.k[0].nbytes
        self.k_pipe = Pipeline(STAGES, consumers=plan.groups, nbytes=nbytes, start=False)
        self.v_pipe = Pipeline(STAGES, consumers=plan.groups, nbytes=nbytes, start=False)
        self.copied, self.copied_pipe = self.v, self.v_pipe
        """The ring that values are copied to."""
        self.ready = mbarrier.declare()
        mbarrier.start(*self.k_pipe.bars, *self.v_pipe.bars, (self.ready, 1))

    def produce(
        self, maps: tuple[Any, Any, Any], heads: tuple[Any, Any], rows: tuple[Any, Any], count: Any
    ) -> None:
        """Copy the queries, and ``count`` tiles of keys and values from the last one on, by one thread.

        ``heads`` and ``rows`` are those of the first query and the first key.
        """
        for each in maps:
            tma.prefetch_map(each)
        (q, k, v), plan, at = maps, self.plan, self.kind.at
        mbarrier.arrive(self.ready, expect_tx=plan.groups * self.queries[0].nbytes)
        for group in range(plan.groups):
            tma.load(self.queries[group], q, at(heads[0], rows[0] + group * ROWS), self.ready)
        k_side, v_side = self.k_pipe.producer(), self.copied_pipe.producer()
        with loop(count) as number:
            place = at(heads[1], rows[1] + (count - 1 - number) * plan.keys)
            slot = k_side.acquire()
            tma.load(self.k[slot], k, place, slot.full)
            slot = v_side.acquire()
            tma.load(self.copied[slot], v, place, slot.full)

    def values(self, slot: Any) -> Any:
        """The values of a stage, as the right factor of weights."""
        return self.v[slot]


class Softmax:
    """The online softmax of a warpgroup's rows, of which a thread has a quarter of each of two.

    The largest weight is 2^``lift``.
    """

    def __init__(self, factor: Any, lift: float) -> None:
        self.factor, self.lift = factor, lift
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
        lowered = [-base + self.lift for base in bases] if self.lift else [-base for base in bases]
        scores.map_rows(lambda v, base: ptx.ex2.approx.ftz.f32(ptx.fma.rn.f32(v, self.factor, base)), lowered)
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


class Group:
    """A warpgroup that multiplies: its number, its queries, its sums."""

    lift = 0.0

    def __init__(self, block: Block, factor: Any, limits: Any) -> None:
        self.block, self.plan, self.kind = block, block.plan, block.kind
        self.number, self.limits = wgmma.number(), limits
        self.softmax = Softmax(factor, self.lift)
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
        wgmma.multiply(sums, weights, self.block.values(slot))
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

    def registers(self) -> Any:
        """Those of the weights, of 32 bits each."""
        dtype, keys = self.kind.dtype, self.plan.keys
        words: dict[Any, Any] = {f16: f16x2, bf16: bf16x2}
        word = words.get(dtype, b32)
        steps = range(keys * dtype.bytes // 32)
        return mma.Fragment("a", dtype, (ROWS, keys), {(0, step): [reg(word) for _ in range(4)] for step in steps}, 4)

    def rounded(self, scores: Any) -> dict[Any, list[Any]]:
        """The weights in the dtype of the values, as registers of a left factor have them."""
        found: dict[Any, list[Any]] = scores.fragment(self.kind.dtype).blocks
        return found

    def keep(self, weights: Any, scores: Any) -> None:
        """The weights of the next product, once the last one has read its own."""
        for key, words in self.rounded(scores).items():
            for register, word in zip(weights.blocks[key], words):
                register.set(word)

    def attend(self, count: Any, whole: Any, keys: Any) -> Any:
        """The sums over all tiles of the ``keys``, of which the first ``whole`` need no mask."""
        scores, sums = wgmma.zeros(ROWS, self.plan.keys), wgmma.zeros(ROWS, self.plan.dim)
        weights = self.registers()
        mbarrier.wait(self.block.ready, 0)
        with when(count > 0):
            slot = self.multiply_keys(scores)
            wgmma.wait(0)
            slot.release(pred=self.leads)
            self.weigh(scores, self.first(count, 0), True)
            self.keep(weights, scores)
            if self.kind.packed:
                self.clear_values(keys - self.first(count, 0))
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

    def clear_values(self, left: Any) -> None:
        """Set the values beyond the ``left`` ones of the first tile taken to 0: a weight of 0 times infinity is NaN."""
        groups, tile = self.plan.groups, self.block.v[0]
        with when(left < self.plan.keys):
            mbarrier.wait(self.block.v_pipe.full, 0)
            clear_rows(tile, left.bits(u32), groups * GROUP)
            tma.fence()
            ptx.barrier.cta.sync(_FIRST_BARRIER + 2 * groups, groups * GROUP)

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

    def meet(self) -> None:
        """All threads of the warpgroup."""
        ptx.barrier.cta.sync(self.number + (_FIRST_BARRIER + self.plan.groups), GROUP)

    def write(self, sums: Any) -> Any:
        """The tile of the result, which was that of the queries."""
        writer, tile = Writer(self.kind.dtype), self.block.queries[self.number]
        factors = self.softmax.factors()
        sums.map_rows(lambda v, by: v * by, factors)
        self.meet()
        writer.write(tile, sums.blocks[0], 0)
        return tile

    def store(self, sums: Any, to: Any, at: tuple[Any, ...]) -> None:
        """The result, by a tensor copy, which stores nothing beyond the edges of the array."""
        tile = self.write(sums)
        tma.fence()
        self.meet()
        with when(self.leads):
            tma.store(to, at, tile)
            tma.commit()
            tma.wait(0, read=True)

    def store_rows(self, sums: Any, to: Any, pitch: Any, left: Any) -> None:
        """The ``left`` first rows of the result, to rows ``pitch`` elements apart: those behind are of others."""
        tile = self.write(sums)
        self.meet()
        store_rows(tile, to, pitch, left, self.kind.dim)

    def note(self, state: Any, row: Any, queries: Any, head: Any) -> None:
        """Store the logarithm of each row's sum of weights, -inf of none; ``row`` is that of the warpgroup's first.

        Those of packed sequences have one of each head a row.
        """
        for half, (top, total) in enumerate(zip(self.softmax.top, self.softmax.total)):
            whole = warp.reduce_sum(total, 4)
            logarithm = (top * self.softmax.factor + ptx.lg2.approx.f32(whole)) * log(2)
            at = row + thread_row(half)
            place = at.bits(u32) * ptx.nctaid.y + head if self.kind.packed else at
            state.store(place, logarithm, pred=(at < queries) & ((ptx.laneid & 3) == 0))


def clear_rows(tile: Any, first: Any, threads: int) -> None:
    """Set the rows of a swizzled tile from ``first`` (u32) on to 0, by the first ``threads`` of the block."""
    for column in range(0, tile.shape[1], tile.slab):
        place = tile.element(0, column).cast(u32)
        with loop(first * _PIECES + ptx.tid.x, tile.shape[0] * _PIECES, threads) as piece:
            (place + piece * 4).store(0, [0] * 4)


def store_rows(tile: Any, to: Any, pitch: Any, left: Any, columns: int) -> None:
    """Store the ``left`` (s32) first rows of a warpgroup's tile of 16-bit numbers, 16 bytes a thread."""
    row_pieces, thread = columns // 8, ptx.tid.x & GROUP - 1
    for first in range(0, ROWS * row_pieces, GROUP):
        number = thread + first
        row, column = number // row_pieces, number % row_pieces * 8
        with when(row.bits(s32) < minimum(left, ROWS)):
            words = tile.at(row, column).cast(u32).load(0, width=4)
            place = to + (ptx.mul.wide.u32(row, pitch) + column.to(u64))
            place.cast(u32).store(0, list(words))


def thread_row(half: int) -> Any:
    """The row of a warpgroup's 64 that a thread has as its first or second: an s32."""
    return (((ptx.tid.x >> 5) & 3) * 16 + (ptx.laneid >> 2) + 8 * half).bits(s32)


