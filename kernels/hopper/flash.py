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
from math import e, log2
from typing import Any

from ... import (
    Kernel, Ptr, TensorMap, cdiv, f32, otherwise, ptx, ptx_kernel, s32, tensor_map, u32, u64, wgmma, when,
)

from .. import arguments
from ..sequences import Rows, rows_of
from .flash_groups import Block, Group
from .flash_places import place_of
from .flash_plans import DIMS, GROUP, ROWS, SLAB, Kind, Plan, plan_of

__all__ = ["DIMS", "Kind", "Plan", "attend", "attend_packed", "flash_kernel", "packed_kernel", "plan_of"]


def _run(kind: Kind, maps: tuple[Any, ...], out: Any, state: Any, rows: Rows, group: Any, factor: Any) -> None:
    """The roles of a block; ``out`` is a map, of packed sequences a pointer to the first query of the sequence."""
    plan = plan_of(kind.dim, kind.causal)
    place = place_of(kind, plan, rows, group)
    if kind.packed:
        ptx.ret(pred=place.first >= rows.queries)
    block = Block(kind, plan)
    with when(wgmma.number() == plan.groups):
        ptx.setmaxnreg.dec.sync.aligned.u32(plan.registers[0])
        with when(ptx.tid.x == plan.groups * GROUP):
            begins = place.first + rows.begin, rows.key_begin
            block.produce(maps, (place.head, place.key_head), begins, place.count)
    with otherwise():
        ptx.setmaxnreg.inc.sync.aligned.u32(plan.registers[1])
        row = place.row
        mine = Group(block, factor, place.limits(kind, rows))
        sums = mine.attend(place.count, place.whole, rows.keys)
        if kind.state:
            mine.note(state, row, rows.queries, place.head)
        if kind.packed:
            pitch = ptx.nctaid.y * kind.dim
            to = out + (ptx.mul.wide.u32(row.bits(u32), pitch) + (place.head * kind.dim).to(u64))
            mine.store_rows(sums, to, pitch, rows.queries - row)
        else:
            mine.store(sums, out, kind.at(place.head, row))


def _options(kind: Kind) -> dict[str, Any]:
    name = f"hopper_{'packed_' * kind.packed}flash_{kind.dtype}_hd{kind.dim}"
    name += "_causal" * kind.causal + "_negative" * kind.negative + "_state" * kind.state
    return {"name": name, "maxntid": plan_of(kind.dim, kind.causal).threads, "minnctapersm": 1}


@cache
def flash_kernel(kind: Kind) -> Kernel:
    """``(q, k, v, out, [state,] queries, keys, heads a key head, factor)``: the maps are of (all heads, rows, D)."""
    if kind.state:
        @ptx_kernel(**_options(kind))
        def noting(
            q: TensorMap, k: TensorMap, v: TensorMap, out: TensorMap, state: Ptr[f32], queries: s32, keys: s32,
            group: u32, factor: f32,
        ) -> None:
            head = ptx.ctaid.z * ptx.nctaid.y + ptx.ctaid.y
            own = state + ptx.mul.wide.u32(head, queries.bits(u32))
            _run(kind, (q, k, v), out, own, Rows(queries, keys), group, factor)

        return noting

    @ptx_kernel(**_options(kind))
    def kernel(
        q: TensorMap, k: TensorMap, v: TensorMap, out: TensorMap, queries: s32, keys: s32, group: u32, factor: f32,
    ) -> None:
        _run(kind, (q, k, v), out, None, Rows(queries, keys), group, factor)

    return kernel


@cache
def packed_kernel(kind: Kind) -> Kernel:
    """``(q, k, v, out, [state,] q_starts, k_starts, heads a key head, factor)``: sequences one behind the other.

    The maps are of (rows, heads, D); where each sequence begins, and the last one ends, stands in the two tables. A
    block whose queries the sequence does not have ends at once.
    """
    dtype = kind.dtype
    assert kind.packed

    def run(maps: tuple[Any, ...], out: Any, state: Any, starts: tuple[Any, Any], group: Any, factor: Any) -> None:
        rows = rows_of(*starts, packed=True)
        begin, heads = rows.begin.bits(u32), ptx.nctaid.y
        own = out + ptx.mul.wide.u32(begin, heads * kind.dim)
        noted = None if state is None else state + ptx.mul.wide.u32(begin, heads)
        _run(kind, maps, own, noted, rows, group, factor)

    if kind.state:
        @ptx_kernel(**_options(kind))
        def noting(
            q: TensorMap, k: TensorMap, v: TensorMap, out: Ptr[dtype], state: Ptr[f32], q_starts: Ptr[s32],
            k_starts: Ptr[s32], group: u32, factor: f32,
        ) -> None:
            run((q, k, v), out, state, (q_starts, k_starts), group, factor)

        return noting

    @ptx_kernel(**_options(kind))
    def kernel(
        q: TensorMap, k: TensorMap, v: TensorMap, out: Ptr[dtype], q_starts: Ptr[s32], k_starts: Ptr[s32], group: u32,
        factor: f32,
    ) -> None:
        run((q, k, v), out, None, (q_starts, k_starts), group, factor)

    return kernel


def _factor(scale: float) -> float:
    """To the base 2, and positive; a factor of 0 would make NaN of a masked score."""
    return max(abs(scale) * log2(e), 2.0**-100)


def _maps(kind: Kind, plan: Plan, **arrays: Any) -> list[Any]:
    """The tensor maps of arrays of three dimensions."""
    boxes = {"q": ROWS, "k": plan.keys, "v": plan.keys, "out": ROWS}
    return [tensor_map(array, kind.box(boxes[name]), swizzle=2 * SLAB) for name, array in arrays.items()]


def attend(
    q: Any, k: Any, v: Any, out: Any, *, causal: bool, scale: float, state: Any = None, **options: Any
) -> Any:
    """Launch the kernel for arrays that `attention.flash_attention` has checked: f16 or bf16, at multiples of 16 bytes.

    ``state``, of shape ``[B, Hq, Sq]`` and float32, is given the logarithm of each query's sum of weights.
    """
    (batch, heads, queries, dim), (_, key_heads, keys, _) = q.shape, k.shape
    kind = Kind(arguments.floating("q", q), dim, causal, scale < 0, state is not None)
    plan = plan_of(dim, causal)
    for some in arguments.spans(batch):
        parts = {"q": q[some], "k": k[some], "v": v[some], "out": out[some]}
        maps = _maps(kind, plan, **{name: x.reshape(-1, *x.shape[2:]) for name, x in parts.items()})
        grid = cdiv(queries, plan.queries), heads, some.stop - some.start
        launch = flash_kernel(kind).configure(grid, plan.threads, shared=plan.shared, **options)
        launch(*maps, *([] if state is None else [state[some]]), queries, keys, heads // key_heads, _factor(scale))
    return out


def attend_packed(
    q: Any, k: Any, v: Any, out: Any, starts: tuple[Any, Any], most: int, *, causal: bool, scale: float,
    state: Any = None, **options: Any,
) -> Any:
    """The same for `attention.varlen_attention`: ``starts`` of queries and of keys, ``most`` queries of a sequence.

    ``state`` is of shape ``[T, Hq]``.
    """
    heads, key_heads, dim = q.shape[1], k.shape[1], q.shape[2]
    kind = Kind(arguments.floating("q", q), dim, causal, scale < 0, state is not None, packed=True)
    plan = plan_of(dim, causal)
    launch = packed_kernel(kind).configure(
        (cdiv(most, plan.queries), heads, starts[0].shape[0] - 1), plan.threads, shared=plan.shared, **options
    )
    states = () if state is None else (state,)
    launch(*_maps(kind, plan, q=q, k=k, v=v), out, *states, *starts, heads // key_heads, _factor(scale))
    return out
