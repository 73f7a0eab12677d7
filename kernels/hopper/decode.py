"""Attention of one query a sequence: the query heads that share keys are the rows of one product by mma.sync.

The keys of all sequences are shared evenly among persistent blocks, one a multiprocessor (`decode_work`). A warp of a
block brings tiles of k and v by tensor copies to a ring of stages; four warps take 16 rows of keys each: the product of
the heads with them, the online softmax, and the product of the weights, which stay in registers, with the values. Where
a piece of a sequence ends, the four states are merged by way of shared memory.

What is a whole sequence is stored. Else the state goes to global memory, and an arrival is published; the block that
ends the sequence waits for those before it, which began earlier, and merges the states in their order. An arrival is a
number that no other launch has, so that nothing needs zeros beforehand, and what waited for it removes it.

It takes sm_90: tensor copies and mbarriers; no instruction of one generation alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import count
from math import e, inf, log2
from secrets import randbits
from typing import Any, NamedTuple

from ... import (
    Array, Kernel, Pipeline, Ptr, ScalarType, TensorMap, b32, break_if, cdiv, check, dynamic_shared, f32, loop,
    maximum, minimum, mma, otherwise, processors, ptx, ptx_kernel, reg, s32, s64, select, shared, tensor_map, tiles, tma, u32,
    u64, warp, when,
)

from .. import arguments
from ..online import finite, inverse
from .decode_work import Lengths, Piece, Share

__all__ = ["Kind", "Plan", "attend", "decode_kernel", "plan_of"]

SLAB = 64
"""Columns of 128 bytes of a tile."""
WARPS, KEYS = 4, 16
"""Warps that multiply, and the keys that one takes at a time."""
THREADS = (WARPS + 1) * 32
ROWS = 16
"""Query heads of a product."""
_RING = 196608
"""Bytes of all stages, at most."""
_BARRIER = 1
_arrivals = count(randbits(62))


class Plan(NamedTuple):
    """Tiles of ``keys`` x ``dim`` of k and v, and how many stages of them."""

    dim: int
    keys: int
    stages: int

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * 2 * self.keys * self.dim * 2


def plan_of(dim: int) -> Plan:
    """The plan for a head dimension.

    >>> plan_of(80), plan_of(256)
    (Plan(dim=128, keys=64, stages=6), Plan(dim=256, keys=64, stages=3))
    """
    wide = cdiv(dim, SLAB) * SLAB
    keys = 128 if wide == SLAB else 64
    return Plan(wide, keys, _RING // (4 * keys * wide))


class Kind(NamedTuple):
    """What a kernel is made for."""

    dtype: ScalarType
    dim: int
    halves: int
    """Of the 16 rows of a product, whether the lower 8 are used, too: 2; else 1."""
    lengths: ScalarType | None
    """The type of an array of lengths, None where one number is that of all."""
    table: ScalarType | None = None
    """The type of a table of pages, None of dense caches."""
    page: int = 0
    heads_first: bool = False

    @property
    def box(self) -> int:
        """Rows of a tensor copy: of those that lie together in a page, a power of two."""
        keys = plan_of(self.dim).keys
        return min(keys, self.page & -self.page) if self.page else keys

    @property
    def name(self) -> str:
        pages = f"_paged_{self.table}_{self.box}{'_heads_first' * self.heads_first}" if self.table else ""
        return f"hopper_decode_{self.dtype}_hd{self.dim}_rows{8 * self.halves}_{self.lengths or 'uniform'}{pages}"


class _Heads(NamedTuple):
    """How the query heads are cut in units: ``group`` share keys, ``parts`` products of at most 16 of them."""

    count: Any
    group: Any
    parts: Any

    def key_head(self, unit: Any) -> Any:
        return ptx.div.u32(unit, self.parts)

    def rows(self, unit: Any) -> tuple[Any, Any]:
        """The first query head of a unit, and how many it has."""
        key_head = self.key_head(unit)
        first = (unit - key_head * self.parts) * ROWS
        return key_head * self.group + first, minimum(self.group - first, ROWS)


class _Ring:
    """The stages of a block."""

    def __init__(self, kind: Kind, plan: Plan) -> None:
        self.kind, self.plan = kind, plan
        self.k = tiles.Ring(dynamic_shared(kind.dtype, align=1024), plan.stages, plan.keys, plan.dim)
        self.v = tiles.Ring(self.k.end, plan.stages, plan.keys, plan.dim)
        boxes = plan.keys // kind.box
        self.lanes = min(32, boxes)
        """Lanes that bring a stage, each as many boxes."""
        self.boxes = boxes // self.lanes
        self.pipe = Pipeline(
            plan.stages, producers=self.lanes, consumers=WARPS, nbytes=2 * self.k.first.nbytes // self.lanes
        )

    def produce(self, share: Share, k: Any, v: Any, heads: _Heads, place: Callable[..., Any]) -> None:
        """Fill the stages, by one warp; ``place(piece, key, key_head)`` are the coordinates but for the column."""
        first = share.first()
        with when(ptx.laneid < self.lanes):
            tma.prefetch_map(k)
            tma.prefetch_map(v)
            side = self.pipe.producer()

            def work(piece: Piece) -> None:
                key_head = heads.key_head(piece.unit)
                with loop(piece.tile, piece.tile + piece.count) as tile:
                    row = ptx.laneid * (self.boxes * self.kind.box)
                    at = [
                        place(piece, tile * self.plan.keys + (row + box * self.kind.box), key_head)
                        for box in range(self.boxes)
                    ]
                    slot = side.acquire()
                    for ring, source in ((self.k, k), (self.v, v)):
                        for box, coordinates in enumerate(at):
                            self._copy(ring[slot], row + box * self.kind.box, source, coordinates, slot.full)

            share.pieces(first, work)

    def _copy(self, tile: Any, row: Any, source: Any, at: Callable[[int], tuple[Any, ...]], full: Any) -> None:
        for column in range(0, self.plan.dim, SLAB):
            to = tile.place + (row * SLAB + column * self.plan.keys)
            tma.load(to, source, at(column), full)


class _State:
    """The online softmax of a warp: of its rows a thread has a part of one or two."""

    def __init__(self, kind: Kind, plan: Plan, factor: Any) -> None:
        self.kind, self.factor, self.halves = kind, factor, range(kind.halves)
        self.top = [reg(f32, -inf) for _ in self.halves]
        self.total = [reg(f32, 0.0) for _ in self.halves]
        self.sums = mma.zeros(ROWS, plan.dim)

    def reset(self) -> None:
        for half in self.halves:
            self.top[half].set(-inf)
            self.total[half].set(0.0)
        self.sums.fill(0.0)

    def pairs(self, registers: list[Any]) -> list[tuple[int, int, Any, Any]]:
        """Half, first column but for the lane's, and the two registers, of all that is used of an accumulator."""
        return [
            (half, i // 4 * 8, registers[i + 2 * half], registers[i + 2 * half + 1])
            for i in range(0, len(registers), 4) for half in self.halves
        ]

    def rescale(self, by: list[Any]) -> None:
        for half, _, *pair in self.pairs(self.sums.registers):
            for register in pair:
                register.set(register * by[half])

    def weigh(self, scores: Any) -> Any:
        """The weights of the scores as the left factor of their product with values; the sums go down to them."""
        pairs = self.pairs(scores.registers)
        for _, _, *pair in pairs:
            for register in pair:
                register.set(register * self.factor)
        raised, tops = None, []
        for half in self.halves:
            top = self.top[half].copy()
            for own, _, left, right in pairs:
                if own == half:
                    top = maximum(top, maximum(left, right))
            tops.append(warp.reduce_max(top, 4))
            grew = tops[half] > self.top[half]
            raised = grew if raised is None else raised | grew
        bases = [finite(top) for top in tops]
        with when(ptx.vote.sync.any.pred(raised, warp.MASK)):
            shrink = [ptx.ex2.approx.ftz.f32(self.top[half] - bases[half]) for half in self.halves]
            for half in self.halves:
                self.total[half].set(self.total[half] * shrink[half])
                self.top[half].set(tops[half])
            self.rescale(shrink)
        for half, _, *pair in pairs:
            for register in pair:
                register.set(ptx.ex2.approx.ftz.f32(register - bases[half]))
        for half in self.halves:
            for own, _, left, right in pairs:
                if own == half:
                    self.total[half].set(self.total[half] + (left + right))
        packed = {
            (half, column): ptx[f"cvt.rn.{self.kind.dtype}x2.f32"](right, left) for half, column, left, right in pairs
        }
        nothing = None if self.kind.halves == 2 else ptx.mov.b32(0)
        blocks = {(0, 0): [packed.get((half, column), nothing) for column in (0, 8) for half in range(2)]}
        return mma.Fragment("a", self.kind.dtype, (ROWS, KEYS), blocks)

    def add(self, top: list[Any], total: list[Any], sums: list[tuple[Any, Any]]) -> None:
        """Merge another state: ``sums`` are those of ``pairs``."""
        shrink, grow = [], []
        for half in self.halves:
            both = maximum(self.top[half], top[half])
            base = finite(both)
            shrink.append(ptx.ex2.approx.ftz.f32(self.top[half] - base))
            grow.append(ptx.ex2.approx.ftz.f32(top[half] - base))
            self.top[half].set(both)
            self.total[half].set(ptx.fma.rn.f32(self.total[half], shrink[half], total[half] * grow[half]))
        for (half, _, *own), others in zip(self.pairs(self.sums.registers), sums):
            for register, other in zip(own, others):
                register.set(ptx.fma.rn.f32(register, shrink[half], other * grow[half]))


class _Partials(NamedTuple):
    """The states of pieces in global memory, two of a block: of the piece that goes on a sequence, of one that begins.

    ``sums`` are 16 x dim of each, ``states`` the greatest score and the total of each row, ``arrived`` the arrivals.
    """

    sums: Any
    states: Any
    arrived: Any
    arrival: Any
    dim: int

    def of(self, part: Any) -> tuple[Any, Any]:
        return self.sums + ptx.mul.wide.u32(part, ROWS * self.dim), self.states + ptx.mul.wide.u32(part, 2 * ROWS)

    @classmethod
    def behind(cls, sums: Any, arrived: Any, arrival: Any, dim: int) -> _Partials:
        """The states lie behind all sums."""
        return cls(sums, sums + ptx.mul.wide.u32(ptx.nctaid.x, 2 * ROWS * dim), arrived, arrival, dim)

    def publish(self, part: Any) -> None:
        """By one thread, behind a barrier of all that wrote the state."""
        ptx.st.release.gpu.global_.u64(self.arrived + part, self.arrival)

    def take(self, part: Any) -> None:
        """Wait for an arrival and remove it, so that this launch can be repeated."""
        place = self.arrived + part
        with loop():
            break_if(ptx.ld.acquire.gpu.global_.u64(place) == self.arrival)
        place[0] = 0


class _Consumer:
    """The four warps that multiply."""

    def __init__(
        self, ring: _Ring, share: Share, heads: _Heads, partials: _Partials, q: Any, out: Any, factor: Any
    ) -> None:
        self.ring, self.kind, self.plan = ring, ring.kind, ring.plan
        self.share, self.heads, self.partials, self.q, self.out = share, heads, partials, q, out
        self.state = _State(self.kind, self.plan, factor)
        self.warp, self.lane = ptx.tid.x >> 5, ptx.laneid
        self.row, self.column = self.lane >> 2, (self.lane & 3) << 1
        self.rows = 8 * self.kind.halves
        self.tops, self.totals = (shared(f32, WARPS + 1, ROWS) for _ in range(2))
        """Of each warp and, behind them, of all: what is in the rows."""
        self.merged = shared(f32, WARPS, self.rows, SLAB + 8)
        blocks = {(0, step): [reg(b32, 0) for _ in range(4)] for step in range(self.plan.dim // 16)}
        self.queries = mma.Fragment("a", self.kind.dtype, (ROWS, self.plan.dim), blocks)

    def meet(self) -> None:
        ptx.barrier.cta.sync(_BARRIER, WARPS * 32)

    def run(self) -> None:
        """All pieces of the block, and the sequence that it ends and others began."""
        first, share = self.share.first(), self.share
        side = self.ring.pipe.consumer()

        def work(piece: Piece) -> None:
            self.state.reset()
            self.load(piece)
            with loop(piece.tile, piece.tile + piece.count) as tile:
                slot = side.wait()
                self.multiply(slot, piece.length - minimum(piece.length, tile * self.plan.keys))
                ptx.bar.warp.sync(warp.MASK)
                slot.release(pred=self.lane == 0)
            begins = piece.tile == 0
            part = ptx.ctaid.x * 2 + begins.to(u32)
            self.finish(piece, part, begins & (piece.count == piece.tiles))

        share.pieces(first, work)
        with when((first.tile > 0) & (first.tile + first.count == first.tiles)):
            self.combine(first)

    def load(self, piece: Piece) -> None:
        """The queries of a unit, as the left factor; what there is none of is 0."""
        head, rows = self.heads.rows(piece.unit)
        start = self.q + ptx.mul.wide.u32(piece.sequence * self.heads.count + head, self.kind.dim)
        words = start.cast(b32)
        for (_, step), registers in self.queries.blocks.items():
            for half in range(self.kind.halves):
                row = self.row + 8 * half
                for number, at in ((half, step * 16), (2 + half, step * 16 + 8)):
                    if at >= self.kind.dim:
                        continue
                    registers[number].set(0)
                    words.load(
                        row * (self.kind.dim // 2) + (self.lane & 3) + at // 2, pred=row < rows, out=registers[number]
                    )

    def multiply(self, slot: Any, left: Any) -> None:
        """The keys of the warp in a tile, of which ``left`` are keys of the sequence."""
        k, v = self.ring.k[slot], self.ring.v[slot]
        for first in range(0, self.plan.keys, WARPS * KEYS):
            row = self.warp * KEYS + first
            scores = mma.zeros(ROWS, KEYS)
            mma.multiply(scores, self.queries, k.part(KEYS, self.plan.dim, row).T)
            with when(left < row + KEYS):
                self.mask(scores, v, row, left)
            weights = self.state.weigh(scores)
            mma.multiply(self.state.sums, weights, v.part(KEYS, self.plan.dim, row))

    def mask(self, scores: Any, v: Any, row: Any, left: Any) -> None:
        """No weight for what is behind the last key, and no values there, which might be NaN."""
        column = row + self.column
        for i, register in enumerate(scores.registers):
            register.set(select(column + (i // 4 * 8 + i % 2) < left, register.copy(), -inf))
        mine = row + (self.lane >> 1)
        with when(mine >= left):
            for slab in range(self.plan.dim // SLAB):
                place = v.place + (mine * SLAB + (self.lane & 1) * (SLAB // 2) + slab * SLAB * self.plan.keys)
                for at in range(0, SLAB // 2, 8):
                    place.cast(b32).store(at // 2, [0, 0, 0, 0])
            tma.fence()  # the next copy to this stage is behind these stores
        ptx.bar.warp.sync(warp.MASK)

    def finish(self, piece: Piece, part: Any = None, whole: Any = None) -> None:
        """Merge the states of the warps. Store the result; with ``part``, where not ``whole``, the state as this."""
        state, own = self.state, [self.row + 8 * half for half in self.state.halves]
        totals = [warp.reduce_sum(total, 4) for total in state.total]
        with when(self.column == 0):
            for row, top, total in zip(own, state.top, totals):
                self.tops[self.warp, row] = top
                self.totals[self.warp, row] = total
        self.meet()
        factors = []
        for row, top in zip(own, state.top):
            tops = [self.tops[other, row] for other in range(WARPS)]
            most = tops[0]
            for other in tops[1:]:
                most = maximum(most, other)
            base = finite(most)
            total = None
            for other in range(WARPS):
                own_total = self.totals[other, row] * ptx.ex2.approx.ftz.f32(tops[other] - base)
                total = own_total if total is None else total + own_total
            factors.append(ptx.ex2.approx.ftz.f32(top - base))
            with when((self.warp == 0) & (self.column == 0)):
                self.tops[WARPS, row] = most
                self.totals[WARPS, row] = total
        state.rescale(factors)
        for first in range(0, self.plan.dim, SLAB):
            for half, at, left, right in state.pairs(state.sums.registers):
                if first <= at < first + SLAB:
                    self.merged.at(self.warp, own[half], self.column + (at - first)).store(0, [left, right])
            self.meet()
            self.store(piece, first, part, whole)
            self.meet()
        if part is not None:
            with when(~whole & (ptx.tid.x == 0)):
                self.partials.publish(part)

    def store(self, piece: Piece, first: int, part: Any, whole: Any) -> None:
        """Add up what the warps have in ``merged``, the columns from ``first`` on, and store it."""
        each = self.rows // 2
        row, own = ptx.tid.x // (SLAB // each), ptx.tid.x % (SLAB // each) * each
        column = own + first
        found = [
            [value for at in range(0, each, 4) for value in self.merged.at(other, row, own + at).load(0, width=4)]
            for other in range(WARPS)
        ]
        values = [a + b + (c + d) for a, b, c, d in zip(*found)]
        (head, rows), dim = self.heads.rows(piece.unit), self.kind.dim

        def result() -> None:
            factor = inverse(f32, self.totals[WARPS, row])
            place = self.out + ptx.mul.wide.u32(piece.sequence * self.heads.count + head, dim) + (row * dim + column)
            words = [
                ptx[f"cvt.rn.{self.kind.dtype}x2.f32"](right * factor, left * factor).bits(b32)
                for left, right in zip(values[::2], values[1::2])
            ]
            place.cast(b32).store(0, words, pred=(row < rows) & (column < dim))

        if part is None:
            result()
            return
        with when(whole):
            result()
        with otherwise():
            sums, states = self.partials.of(part)
            for at in range(0, each, 4):
                sums.store(row * self.plan.dim + column + at, values[at : at + 4])
            if not first:
                states.store(row * 2, [self.tops[WARPS, row], self.totals[WARPS, row]], pred=own == 0)

    def combine(self, piece: Piece) -> None:
        """Merge the states of all pieces of a sequence, of which this block has the last one: a warp each fourth."""
        first = self.share.block_of(self.share.start - piece.tile)
        parts = ptx.ctaid.x + 1 - first
        with loop(ptx.tid.x, parts, WARPS * 32) as number:
            self.partials.take(self.part(first, number))
        self.meet()
        self.state.reset()
        with loop(self.warp, parts, WARPS) as number:
            sums, states = self.partials.of(self.part(first, number))
            rows = [self.row + 8 * half for half in self.state.halves]
            found = [states.load(row * 2, width=2) for row in rows]
            loaded = [
                tuple(sums.load(rows[half] * self.plan.dim + self.column + at, width=2))
                for half, at, *_ in self.state.pairs(self.state.sums.registers)
            ]
            totals = [select(self.column == 0, total, 0.0) for _, total in found]
            self.state.add([top for top, _ in found], totals, loaded)
        self.finish(piece)

    def part(self, first: Any, number: Any) -> Any:
        """Of the blocks from ``first`` on, the first one's piece begins the sequence, the others' go on."""
        return (first + number) * 2 + (number == 0).to(u32)


def _place(kind: Kind, heads: _Heads, table: Any, pages: Any) -> Callable[..., Any]:
    """Where the boxes of keys lie: their coordinates in a map, by the column."""
    if kind.table is None:
        def dense(piece: Piece, key: Any, key_head: Any) -> Callable[[int], tuple[Any, ...]]:
            row = piece.sequence * ptx.div.u32(heads.count, heads.group) + key_head
            return lambda column: (row, key, column)

        return dense

    def paged(piece: Piece, key: Any, key_head: Any) -> Callable[[int], tuple[Any, ...]]:
        page, within = reg(u32, pages), key % kind.page  # no page: zeros come
        with when(key < piece.length):
            entry = table[piece.sequence, key // kind.page].to(s64)
            check(entry.bits(u64) < pages.to(u64), "paged_decode: a page beyond the cache")
            page.set(entry.to(u32))
        inner = (key_head, within) if kind.heads_first else (within, key_head)
        return lambda column: (page, *inner, column)

    return paged


@cache
def decode_kernel(kind: Kind) -> Kernel:
    """``(q, k, v, lengths, out, sums, arrived, arrival, batch, heads, group, parts, longest, factor[, table, pages])``.

    k and v are maps of (sequences and heads, keys, D), or of the pages.
    """
    plan, dtype = plan_of(kind.dim), kind.dtype
    lengths_type: Any = u32 if kind.lengths is None else Ptr[kind.lengths]
    table_type: Any = Array[kind.table, 2] if kind.table is not None else None

    def run(
        q: Any, k: Any, v: Any, lengths: Any, out: Any, sums: Any, arrived: Any, arrival: Any, batch: Any, count: Any,
        group: Any, parts: Any, longest: Any, factor: Any, table: Any = None, pages: Any = None,
    ) -> None:
        def length(sequence: Any) -> Any:
            if kind.lengths is None:
                return lengths
            if kind.table is None:
                return minimum(lengths[sequence].bits(u32), longest)
            wide = lengths[sequence].to(s64)
            check(wide.bits(u64) <= longest.to(u64), "paged_decode: a length beyond the table")
            return wide.to(u32)

        heads = _Heads(count, group, parts)
        ring = _Ring(kind, plan)
        share = Share(Lengths(length, kind.lengths is None, batch, ptx.div.u32(count, group) * parts, plan.keys))
        with when(share.start < share.stop):
            with when(ptx.tid.x >= WARPS * 32):
                ring.produce(share, k, v, heads, _place(kind, heads, table, pages))
            with otherwise():
                partials = _Partials.behind(sums, arrived, arrival, plan.dim)
                _Consumer(ring, share, heads, partials, q, out, factor).run()

    options: dict[str, Any] = {"name": kind.name, "maxntid": THREADS, "minnctapersm": 1}
    if kind.table is None:
        @ptx_kernel(**options)
        def dense(
            q: Ptr[dtype], k: TensorMap, v: TensorMap, lengths: lengths_type, out: Ptr[dtype], sums: Ptr[f32],
            arrived: Ptr[u64], arrival: u64, batch: u32, heads: u32, group: u32, parts: u32, longest: u32, factor: f32,
        ) -> None:
            run(q, k, v, lengths, out, sums, arrived, arrival, batch, heads, group, parts, longest, factor)

        return dense

    @ptx_kernel(**options)
    def paged(
        q: Ptr[dtype], k: TensorMap, v: TensorMap, lengths: lengths_type, out: Ptr[dtype], sums: Ptr[f32],
        arrived: Ptr[u64], arrival: u64, batch: u32, heads: u32, group: u32, parts: u32, longest: u32, factor: f32,
        table: table_type, pages: u32,
    ) -> None:
        run(q, k, v, lengths, out, sums, arrived, arrival, batch, heads, group, parts, longest, factor, table, pages)

    return paged


def attend(
    q: Any, k: Any, v: Any, lengths: Any, out: Any, *, scale: float, table: Any = None, heads_first: bool = False,
    blocks: int | None = None, **options: Any,
) -> Any:
    """Launch the kernel for arrays that `decoding` has checked: f16 or bf16, at multiples of 16 bytes.

    ``blocks`` is how many share the keys, one for each multiprocessor by default.
    """
    batch, heads, dim = q.shape
    if table is None:
        _, key_heads, longest, _ = k.shape
        page, pages = 0, 0
    else:
        pages, key_heads, page = (k.shape[axis] for axis in ((0, 1, 2) if heads_first else (0, 2, 1)))
        longest = table.shape[1] * page
    group = heads // key_heads
    plan, parts = plan_of(dim), cdiv(group, ROWS)
    uniform = isinstance(lengths, int)
    kind = Kind(
        arguments.floating("q", q), dim, 1 if group <= ROWS // 2 else 2,
        None if uniform else arguments.scalar_type("seq_lens", lengths),
        None if table is None else arguments.scalar_type("block_table", table), page, heads_first,
    )
    most = batch * key_heads * parts * max(1, cdiv(longest, plan.keys))
    blocks = min(processors() if blocks is None else blocks, most)
    if table is None:
        box: tuple[int, ...] = (1, kind.box, SLAB)
        k, v = (x.reshape(-1, *x.shape[2:]) for x in (k, v))
    else:
        box = (1, 1, kind.box, SLAB) if heads_first else (1, kind.box, 1, SLAB)
    maps = [tensor_map(x, box, swizzle=2 * SLAB) for x in (k, v)]
    sums = arguments.empty_like(q, (2 * blocks * ROWS * (plan.dim + 2),), f32)
    arrived = arguments.empty_like(q, (2 * blocks,), u64)
    launch = decode_kernel(kind).configure(blocks, THREADS, shared=plan.shared, **options)
    launch(
        q, *maps, lengths, out, sums, arrived, next(_arrivals), batch, heads, group, parts, longest, scale * log2(e),
        *(() if table is None else (table, pages)),
    )
    return out
