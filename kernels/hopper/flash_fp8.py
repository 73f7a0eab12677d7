"""Attention of e4m3 queries, keys and values on Hopper, by wgmma: `flash` with products of 8 bits.

wgmma takes factors of 8 bits with k along the rows of memory only, and k of the second product are the keys: values
have to be transposed. Three warps of the warpgroup that copies do it tile by tile, from the ring that the copies fill
to another: ldmatrix.trans gives a thread pairs of columns of two keys, two byte permutations part them, and stmatrix
writes 16 bytes of keys a row. Keys lie in the order in which a thread has weights: of 16, thread t of four has 2t,
2t + 1, 2t + 8, 2t + 9, which are its four neighbours as a left factor. Columns lie so that eight rows are written
without bank conflicts: of 16, the even ones first. So a thread has sums of four neighbouring columns, and stores them
as they are.

Weights are at most 2^8, not 1, so that e4m3 holds 2^-17 of the largest as its least.
"""

from __future__ import annotations

from functools import cache
from math import e, log2
from typing import Any, NamedTuple

from ... import (
    Kernel, Pipeline, Ptr, ScalarType, TensorMap, b32, cdiv, dynamic_shared, e4m3, f32, loop, mbarrier, otherwise, pack,
    ptx, ptx_kernel, s32, tensor_map, tiles, tma, u16, u32, u64, wgmma, when,
)

from .. import arguments, storage
from ..sequences import Rows
from .flash_groups import Block, Group, thread_row
from .flash_places import place_of
from .flash_plans import GROUP, ROWS, STAGES, Kind, Plan

__all__ = ["DIMS", "EightBits", "attend", "eight_kernel", "plan_of", "shared_bytes"]

DIMS = range(16, 257, 16)
"""Head dimensions, whose rows begin at multiples of 16 bytes."""
TURNERS = 3
"""Warps that transpose."""
_UNIT = 32
"""Keys that a warp transposes at once, of 16 columns."""


def plan_of(dim: int, causal: bool) -> Plan:
    """The plan for a head dimension.

    >>> plan_of(128, causal=False)
    Plan(dim=128, groups=2, keys=192, registers=(56, 224))
    """
    if dim <= 64:
        return Plan(64, 3, 128, (56, 152))
    if dim <= 128:
        return Plan(128, 2, 128 if causal else 192, (56, 224))
    return Plan(256, 2, 96, (40, 232))


def shared_bytes(plan: Plan) -> int:
    """Bytes of dynamic shared memory: queries, and rings of keys, of values, and of values transposed."""
    return (plan.queries + 3 * STAGES * plan.keys) * plan.dim


def _swizzle(nbytes: int) -> int:
    """That of a tile with rows of so many bytes."""
    return next(span for span in (128, 64, 32) if nbytes % span == 0)


class EightBits(NamedTuple):
    """What a kernel is made for; ``scaled``: factors of queries, keys and values stand in arrays, one for each head."""

    kind: Kind
    out: ScalarType
    scaled: bool = False


class _Block(Block):
    """The tiles and rings of a block, among them that of the values as they are copied."""

    def __init__(self, kind: Kind, plan: Plan) -> None:
        self.kind, self.plan, dim, keys = kind, plan, plan.dim, plan.keys
        swizzle = _swizzle(dim)
        self.queries = tiles.Ring(dynamic_shared(e4m3, align=1024), plan.groups, ROWS, dim, swizzle)
        self.k = tiles.Ring(self.queries.end, STAGES, keys, dim, swizzle)
        self.copied = tiles.Ring(self.k.end, STAGES, keys, dim, swizzle)
        self.v = tiles.Ring(self.copied.end, STAGES, dim, keys, _swizzle(keys))
        nbytes = self.k[0].nbytes
        self.k_pipe = Pipeline(STAGES, consumers=plan.groups, nbytes=nbytes, start=False)
        self.copied_pipe = Pipeline(STAGES, consumers=TURNERS, nbytes=nbytes, start=False)
        self.v_pipe = Pipeline(STAGES, producers=TURNERS, consumers=plan.groups, start=False)
        self.ready = mbarrier.declare()
        bars = self.k_pipe.bars, self.copied_pipe.bars, self.v_pipe.bars
        mbarrier.start(*(bar for pair in bars for bar in pair), (self.ready, 1))

    def values(self, slot: Any) -> Any:
        return self.v[slot].T

    def transpose(self, warp: Any, count: Any) -> None:
        """Transpose ``count`` tiles of values, by the warp of this number of several."""
        from_side, to_side = self.copied_pipe.consumer(), self.v_pipe.producer()
        units, leads = self.plan.keys // _UNIT, ptx.laneid == 0
        with loop(count):
            slot = from_side.wait()
            to_slot = to_side.acquire()
            with loop(warp, self.plan.dim // 16 * units, TURNERS, unroll=4) as unit:
                _transpose(self.copied[slot], self.v[to_slot], unit % units * _UNIT, unit // units * 16)
            tma.fence()
            ptx.bar.warp.sync(0xFFFFFFFF)
            to_slot.commit(pred=leads)
            slot.release(pred=leads)


def _transpose(values: Any, turned: Any, key: Any, column: Any) -> None:
    """Transpose 32 keys from ``key`` on of 16 columns, by a warp; see the module for the order."""
    lane = ptx.laneid
    words = ptx.ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16(values.at(key + lane, column).cast(u16))
    made = []
    for low, high in (words[:2], words[2:]):
        made += [ptx.prmt.b32(low, high, order) for order in (0x6420, 0x7531)]
    row, half = (lane & 7) + (lane >> 3 & 1) * 8, (lane >> 4) * 16
    ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(turned.at(column + row, key + half).cast(u16), made)


class _Group(Group):
    """A warpgroup that multiplies by e4m3."""

    lift = 8.0

    def rounded(self, scores: Any) -> dict[Any, list[Any]]:
        """Of 32 keys, a thread has two of each eight in a row; they are four neighbours, and four more."""
        values = [register.copy() for register in scores.registers]
        found: dict[Any, list[Any]] = {}
        for step in range(self.plan.keys // 32):
            pairs = [_pair(*values[first : first + 2]) for first in range(16 * step, 16 * step + 16, 2)]
            # Pairs alternate between the rows; a word has those of two times eight keys.
            words = [(0, 2), (1, 3), (4, 6), (5, 7)]
            found[0, step] = [pack(b32, pairs[low], pairs[high]) for low, high in words]
        return found

    def store_sums(self, sums: Any, to: Any, left: Any, scale: Any) -> None:
        """The result, to rows from ``to`` on, of which there are ``left``."""
        dim, registers = self.kind.dim, sums.registers
        factors = [factor * scale for factor in self.softmax.factors()]
        for half, factor in enumerate(factors):
            row = thread_row(half)
            place = to + (ptx.mul.wide.u32(row.bits(u32), dim) + ((ptx.laneid & 3) * 4).to(u64))
            with when(row < left):
                for column in range(0, dim, 16):
                    eights = [registers[column // 2 + 4 * eight + 2 * half :][:2] for eight in range(2)]
                    four = [eights[i % 2][i // 2].copy() * factor for i in range(4)]
                    storage.store(place, column, four)


def _pair(low: Any, high: Any) -> Any:
    """Two numbers as e4m3."""
    return ptx.cvt.rn.satfinite.e4m3x2.f32(high, low).bits(u16)


def _run(
    made_for: EightBits, maps: tuple[Any, ...], out: Any, rows: Rows, group: Any, factor: Any, scale: Any, scales: Any
) -> None:
    kind = made_for.kind
    plan = plan_of(kind.dim, kind.causal)
    place = place_of(kind, plan, rows, group)
    block, base = _Block(kind, plan), plan.groups * GROUP
    with when(wgmma.number() == plan.groups):
        ptx.setmaxnreg.dec.sync.aligned.u32(plan.registers[0])
        with when(ptx.tid.x == base):
            block.produce(maps, (place.head, place.key_head), (place.first, 0), place.count)
        with when(ptx.tid.x >= base + 32):
            block.transpose((ptx.tid.x - base - 32) // 32, place.count)
    with otherwise():
        ptx.setmaxnreg.inc.sync.aligned.u32(plan.registers[1])
        if scales is not None:
            q_scales, k_scales, v_scales = scales
            factor = factor * q_scales[place.head] * k_scales[place.key_head]
            scale = v_scales[place.key_head]
        mine = _Group(block, factor, place.limits(kind, rows))
        sums = mine.attend(place.count, place.whole, rows.keys)
        to = out + ptx.mad.wide.u32(place.head, rows.queries.bits(u32), place.row.bits(u32).to(u64)) * kind.dim
        mine.store_sums(sums, to, rows.queries - place.row, scale)


@cache
def eight_kernel(made_for: EightBits) -> Kernel:
    """``(q, k, v, out, queries, keys, heads a key head, factor, scale of the result, [scales of q, k, v])``."""
    kind, dtype = made_for.kind, made_for.out
    name = f"hopper_flash_e4m3_{dtype}_hd{kind.dim}"
    name += "_causal" * kind.causal + "_negative" * kind.negative + "_scaled" * made_for.scaled
    options: dict[str, Any] = {
        "name": name, "maxntid": plan_of(kind.dim, kind.causal).threads, "minnctapersm": 1
    }
    if made_for.scaled:
        @ptx_kernel(**options)
        def scaled(
            q: TensorMap, k: TensorMap, v: TensorMap, out: Ptr[dtype], queries: s32, keys: s32, group: u32,
            factor: f32, q_scales: Ptr[f32], k_scales: Ptr[f32], v_scales: Ptr[f32],
        ) -> None:
            scales = q_scales, k_scales, v_scales
            _run(made_for, (q, k, v), out, Rows(queries, keys), group, factor, None, scales)

        return scaled

    @ptx_kernel(**options)
    def kernel(
        q: TensorMap, k: TensorMap, v: TensorMap, out: Ptr[dtype], queries: s32, keys: s32, group: u32, factor: f32,
        scale: f32,
    ) -> None:
        _run(made_for, (q, k, v), out, Rows(queries, keys), group, factor, scale, None)

    return kernel


def attend(
    q: Any, k: Any, v: Any, out: Any, scales: tuple[Any, ...], *, causal: bool, scale: float, **options: Any
) -> Any:
    """Launch the kernel for arrays that `attention.fp8_attention` has checked.

    ``scales`` of q, k and v are three numbers, or three arrays of float32.
    """
    (batch, heads, queries, dim), (_, key_heads, keys, _) = q.shape, k.shape
    numbers = isinstance(scales[0], float)
    kind = Kind(e4m3, dim, causal, scale < 0)
    made_for, plan = EightBits(kind, arguments.floating("out", out), not numbers), plan_of(dim, causal)
    swizzle = _swizzle(plan.dim)
    factor = max(abs(scale) * log2(e) * (scales[0] * scales[1] if numbers else 1.0), 2.0**-100)
    kernel = eight_kernel(made_for)
    for some in arguments.spans(batch):
        maps = [
            tensor_map(x[some].reshape(-1, *x.shape[2:]), (1, rows, swizzle), swizzle=swizzle)
            for x, rows in ((q, ROWS), (k, plan.keys), (v, plan.keys))
        ]
        own = scales[2:] if numbers else [each[some] for each in scales]
        grid = cdiv(queries, plan.queries), heads, some.stop - some.start
        launch = kernel.configure(grid, plan.threads, shared=shared_bytes(plan), **options)
        launch(*maps, out[some], queries, keys, heads // key_heads, factor, *own)
    return out
