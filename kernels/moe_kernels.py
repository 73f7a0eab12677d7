"""Kernels of mixtures of experts: choosing experts, moving tokens to them and back, and a product for each expert.

A block of the grouped product finds its expert by itself: tiles are counted off over the experts, 32 at a time. So the
host need not know how many tokens each expert has, and the grid has a tile an expert more than all tokens fill.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any

from .. import (
    Array, Kernel, Ptr, ScalarType, cdiv, dynamic_shared, f32, loop, math, maximum, mma, ptx, ptx_kernel, reg, s32, s64,
    select, u8, u32, u64, when,
)
from .. import warp

from . import storage
from .linalg import simt, tensor_cores

__all__ = [
    "MOST_EXPERTS", "ROW_THREADS", "SHAPE", "WARPS", "gather_kernel", "invert_kernel", "product_kernel", "route_kernel",
    "scatter_kernel", "simt_kernel",
]

WARPS = 8
MOST_EXPERTS = 512
ROW_THREADS = 128
SHAPE = tensor_cores.Shape((2, 2), (32, 32), 64, 3)


@cache
def route_kernel(dtype: ScalarType, experts: int, k: int, renormalize: bool) -> Kernel:
    """A warp a token: each lane holds the logits of experts lane, lane + 32, ...; the greatest is taken k times."""
    held = cdiv(experts, 32)
    label = f"moe_route_{dtype}_{experts}_{k}{'_renormalized' if renormalize else ''}"

    @ptx_kernel(name=label, reqntid=WARPS * 32)
    def kernel(logits: Ptr[dtype], weights: Ptr[f32], chosen: Ptr[s32], tokens: u32) -> None:
        token, lane = ptx.ctaid.x * WARPS + (ptx.tid.x >> 5), ptx.laneid
        row = logits + ptx.mul.wide.u32(token, experts)
        values = [reg(f32, -inf) for _ in range(held)]
        for i, value in enumerate(values):
            with when((token < tokens) & (lane + 32 * i < experts)):
                value.set(storage.widened(row[lane + 32 * i], dtype).to(f32))
        top = values[0].copy()
        for value in values[1:]:
            top = maximum(top, value)
        top = warp.reduce_max(top)
        total = reg(f32, 0.0)
        for value in values:
            total += math.exp(value - top)
        whole, taken, mine, place = warp.reduce_sum(total.copy()), reg(f32, 0.0), reg(f32, 0.0), reg(u32, 0)
        for number in range(k):
            best, at = _greatest(values, lane)
            weight = math.exp(best - top)
            taken += weight
            with when(lane == number):
                mine.set(weight)
                place.set(at)
            for i, value in enumerate(values):
                value.set(select(at == lane + 32 * i, -inf, value))
        share = ptx.div.rn.f32(mine, taken if renormalize else whole)
        with when((token < tokens) & (lane < k)):
            weights[token * k + lane] = share
            chosen[token * k + lane] = place.bits(s32)

    return kernel


def _greatest(values: list[Any], lane: Any) -> tuple[Any, Any]:
    """The greatest value of a warp and its place, the lowest of equal ones."""
    best, at = reg(values[0]), reg(u32, lane)
    for i, value in enumerate(values[1:], 1):
        with when(value > best):
            best.set(value)
            at.set(lane + 32 * i)
    for distance in (16, 8, 4, 2, 1):
        other, place = warp.shuffle_xor(best.copy(), distance), warp.shuffle_xor(at.copy(), distance)
        with when((other > best) | ((other == best) & (place < at))):
            best.set(other)
            at.set(place)
    return best.copy(), at.copy()


@cache
def gather_kernel(dtype: ScalarType) -> Kernel:
    """out[i] = x[order[i] / k], a block a row of ``width`` elements."""
    per = storage.per_vector(dtype)

    @ptx_kernel(name=f"moe_gather_{dtype}", reqntid=ROW_THREADS)
    def kernel(x: Ptr[dtype], order: Ptr[s64], out: Ptr[dtype], width: u32, k: u32) -> None:
        source = x + order[ptx.ctaid.x].bits(u64) // k.to(u64) * width.to(u64)
        target = out + ptx.mul.wide.u32(ptx.ctaid.x, width)
        whole = select(((source.address | target.address) & 15) == 0, width // per * per, 0)
        with loop(ptx.tid.x * per, whole, ROW_THREADS * per) as i:
            (target + i).cast(u32).store(0, list((source + i).cast(u32).load(0, width=4)))
        with loop(whole + ptx.tid.x, width, ROW_THREADS) as i:
            target[i] = source[i]

    return kernel


@cache
def invert_kernel() -> Kernel:
    """inverse[order[i]] = i."""

    @ptx_kernel(name="moe_invert", reqntid=ROW_THREADS)
    def kernel(order: Ptr[s64], inverse: Ptr[s64], n: u32) -> None:
        i = ptx.ctaid.x * ROW_THREADS + ptx.tid.x
        with when(i < n):
            inverse[order[i]] = i.to(s64)

    return kernel


@cache
def scatter_kernel(dtype: ScalarType, k: int) -> Kernel:
    """out[t] = sum over j of weights[t, j] y[inverse[t k + j]], added in the order of j; a block a token."""
    acc = storage.working(dtype)

    @ptx_kernel(name=f"moe_scatter_{dtype}_{k}", reqntid=ROW_THREADS)
    def kernel(y: Ptr[dtype], inverse: Ptr[s64], weights: Ptr[f32], out: Ptr[dtype], width: u32) -> None:
        token = ptx.ctaid.x
        rows = [y + inverse[token * k + j].bits(u64) * width.to(u64) for j in range(k)]
        shares = [weights[token * k + j].to(acc) for j in range(k)]
        target = out + ptx.mul.wide.u32(token, width)
        with loop(ptx.tid.x, width, ROW_THREADS) as i:
            total = reg(acc, 0.0)
            for element, share in zip([storage.widened(row[i], dtype) for row in rows], shares):
                ptx[f"fma.rn.{acc}"](element, share, total, out=total)
            target[i] = storage.narrowed(total, dtype)

    return kernel


def _expert(offsets: Any, experts: Any, tile: Any, rows: int) -> tuple[Any, Any, Any]:
    """The expert of a tile of so many rows, the tile's first row, and the end of the expert's rows.

    Beyond the last tile the first row is the end. All lanes of a warp come here.
    """
    expert, first, end, base = reg(u32, 0), reg(u32, 0), reg(u32, 0), reg(u32, 0)
    with loop(0, experts, 32) as start:
        mine, begin, stop = start + ptx.laneid, reg(u32, 0), reg(u32, 0)
        with when(mine < experts):
            begin.set(offsets[mine].to(u32))
            stop.set(offsets[mine + 1].to(u32))
        count = (stop - begin + (rows - 1)) // rows
        upto = base + warp.scan(lambda a, b: a + b, count)
        before = upto - count
        found = ptx.vote.sync.ballot.b32((tile >= before) & (tile < upto), warp.MASK)
        lane = ptx.bfind.u32(found) & 31
        row, last = warp.shuffle(begin + (tile - before) * rows, lane), warp.shuffle(stop.copy(), lane)
        with when(found != 0):
            expert.set(start + lane)
            first.set(row)
            end.set(last)
        base.set(warp.shuffle(upto, 31))
    return expert.copy(), first.copy(), end.copy()


def _views(x: Any, w: Any, out: Any, expert: Any) -> tuple[Any, Any, Any]:
    """The matrices of an expert's product."""
    return x, w[expert], out


@cache
def product_kernel(dtype: ScalarType, turned: bool) -> Kernel:
    """out[rows of e] = x[rows of e] @ w[e] by tensor cores; ``turned``: w is ``[E, N, K]``."""
    shape = SHAPE

    @ptx_kernel(name=f"moe_grouped_matmul_{dtype}{'_turned' if turned else ''}", reqntid=shape.threads)
    def kernel(
        x: Array[dtype, 2], w: Array[dtype, 3], offsets: Ptr[s64], out: Array[dtype, 2], experts: u32, across: u32,
    ) -> None:
        expert, row, end = _expert(offsets, experts, ptx.ctaid.x // across, shape.tile[0])
        ptx.ret(pred=row >= end)
        tokens, weights, target = _views(x, w, out, expert)
        column = ptx.ctaid.x % across * shape.tile[1]
        memory = dynamic_shared(u8, align=1024)
        own_a = tensor_cores.Operand(memory, shape, 0, dtype, True)
        own_b = tensor_cores.Operand(own_a.ring.end, shape, 1, dtype, turned)
        number = ptx.tid.x >> 5
        down, along = number // shape.warps[1], number % shape.warps[1]

        def fetch(step: Any) -> None:
            own_a.fetch(step % shape.stages, tokens, row, step * own_a.depth)
            own_b.fetch(step % shape.stages, weights, column, step * own_b.depth)
            ptx.cp.async_.commit_group()

        for stage in range(shape.stages - 1):
            fetch(stage)
        sums = mma.zeros(*shape.part)
        with loop(cdiv(tokens.shape[1], own_a.depth)) as step:
            ptx.cp.async_.wait_group(shape.stages - 2)
            ptx.bar.sync(0)
            fetch(step + (shape.stages - 1))
            mma.multiply(sums, own_a.tile(step % shape.stages, down), own_b.tile(step % shape.stages, along).T)
        ptx.cp.async_.wait_all()
        row, column = row + down * shape.part[0], column + along * shape.part[1]
        for y, z, value in sums:
            inside = (row + y < end) & (column + z < target.shape[1])
            target.at(row + y, column + z).store(0, value.to(dtype), pred=inside)

    return kernel


@cache
def simt_kernel(turned: bool) -> Kernel:
    """The same of float32, by fused multiply-adds."""
    tile = simt.TILE

    @ptx_kernel(name=f"moe_grouped_matmul_f32{'_turned' if turned else ''}", reqntid=simt.THREADS)
    def kernel(
        x: Array[f32, 2], w: Array[f32, 3], offsets: Ptr[s64], out: Array[f32, 2], experts: u32, across: u32,
    ) -> None:
        expert, row, end = _expert(offsets, experts, ptx.ctaid.x // across, tile)
        ptx.ret(pred=row >= end)
        tokens, weights, target = _views(x, w, out, expert)
        column = ptx.ctaid.x % across * tile
        for y, z, total in simt.products((tokens, weights), (True, turned), row, column, 0, tokens.shape[1]):
            with when((y < end) & (z < target.shape[1])):
                target[y, z] = total

    return kernel
