"""Kernels of the gradients of mixtures of experts: of gating, of weighted sums of experts, and of their weights."""

from __future__ import annotations

import operator
from copy import copy
from functools import cache
from typing import Any

from .. import (
    Array, Kernel, Ptr, ScalarType, block, cdiv, dynamic_shared, f32, loop, math, maximum, mma, ptx, ptx_kernel, reg,
    s32, s64, select, u8, u32, warp, when,
)

from . import storage
from .linalg import simt, tensor_cores
from .moe_kernels import ROW_THREADS, SHAPE, WARPS

__all__ = ["route_gradient_kernel", "simt_weights_kernel", "unpermute_gradient_kernel", "weights_kernel"]


@cache
def route_gradient_kernel(dtype: ScalarType, experts: int, k: int, renormalize: bool) -> Kernel:
    """A warp a token: lane j has what was chosen as number j, and each lane writes experts lane, lane + 32, ...

    With shares w of the chosen and gradients g of these, s = sum(g w), a logit's gradient is w (g - s) of a chosen one
    where the shares add up to 1. Else it is w g - p s, with p the softmax of all, and - p s of those not chosen.
    """
    held = cdiv(experts, 32)
    label = f"moe_route_gradient_{dtype}_{experts}_{k}{'_renormalized' if renormalize else ''}"

    @ptx_kernel(name=label, reqntid=WARPS * 32)
    def kernel(
        grad: Ptr[f32], logits: Ptr[dtype], weights: Ptr[f32], chosen: Ptr[s32], out: Ptr[dtype], tokens: u32
    ) -> None:
        token, lane = ptx.ctaid.x * WARPS + (ptx.tid.x >> 5), ptx.laneid
        inside = token < tokens
        gradient, share, expert = reg(f32, 0.0), reg(f32, 0.0), reg(s32, -1)
        with when(inside & (lane < k)):
            at = token * k + lane
            gradient.set(grad[at])
            share.set(weights[at])
            expert.set(chosen[at])
        total = warp.reduce_sum(gradient * share)
        of_chosen = share * (gradient - total) if renormalize else share * gradient
        found = [reg(f32, 0.0) for _ in range(held)]
        if not renormalize:
            row = logits + ptx.mul.wide.u32(token, experts)
            for value, share_of_all in zip(found, _softmax(row, dtype, experts, held, inside, lane)):
                value.set(share_of_all * -total)
        for number in range(k):
            other, slope = warp.shuffle(expert.copy(), number), warp.shuffle(of_chosen, number)
            for i, value in enumerate(found):
                value.set(select(other.bits(u32) == lane + 32 * i, value + slope, value))
        target = out + ptx.mul.wide.u32(token, experts)
        for i, value in enumerate(found):
            with when(inside & (lane + 32 * i < experts)):
                target[lane + 32 * i] = value.to(dtype)

    return kernel


def _softmax(row: Any, dtype: ScalarType, experts: int, held: int, inside: Any, lane: Any) -> list[Any]:
    """The shares of a lane's experts among all."""
    values = [reg(f32, -float("inf")) for _ in range(held)]
    for i, value in enumerate(values):
        with when(inside & (lane + 32 * i < experts)):
            value.set(storage.widened(row[lane + 32 * i], dtype).to(f32))
    top = values[0].copy()
    for value in values[1:]:
        top = maximum(top, value)
    top = warp.reduce_max(top)
    powers = [math.exp(value - top) for value in values]
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    whole = warp.reduce_sum(total)
    return [ptx.div.rn.f32(power, whole) for power in powers]


@cache
def unpermute_gradient_kernel(dtype: ScalarType) -> Kernel:
    """dy[i] = weights[order[i]] grad[order[i] / k], dweights[order[i]] = grad[order[i] / k] . y[i]; a block a row."""
    acc = storage.working(dtype)

    @ptx_kernel(name=f"moe_unpermute_gradient_{dtype}", reqntid=ROW_THREADS)
    def kernel(
        grad: Ptr[dtype], y: Ptr[dtype], order: Ptr[s64], weights: Ptr[f32], dy: Ptr[dtype], dweights: Ptr[f32],
        width: u32, k: u32,
    ) -> None:
        number, place = ptx.ctaid.x, order[ptx.ctaid.x].to(u32)
        row, own, target = (
            pointer + ptx.mul.wide.u32(at, width) for pointer, at in ((grad, place // k), (y, number), (dy, number))
        )
        share, total = weights[place].to(acc), reg(acc, 0.0)
        with loop(ptx.tid.x, width, ROW_THREADS) as i:
            gradient = storage.widened(row[i], dtype)
            ptx[f"fma.rn.{acc}"](gradient, storage.widened(own[i], dtype), total, out=total)
            target[i] = storage.narrowed(gradient * share, dtype)
        product = block.reduce(operator.add, total.copy(), ROW_THREADS)
        with when(ptx.tid.x == 0):
            dweights[place] = product.to(f32)

    return kernel


def _place(across: Any, down: Any, tile: tuple[int, int]) -> tuple[Any, Any, Any]:
    """The expert of a block, and the first row and column of its tile."""
    rest = ptx.ctaid.x // across
    return rest // down, rest % down * tile[0], ptx.ctaid.x % across * tile[1]


def _until(rows: Any, end: Any) -> Any:
    """A matrix that ends before row ``end``."""
    found = copy(rows)
    found.shape = (end, rows.shape[1])
    return found


@cache
def weights_kernel(dtype: ScalarType) -> Kernel:
    """out[e] = left[rows of e].T @ right[rows of e] by tensor cores, 0 of no rows; a block a tile of an expert."""
    shape = SHAPE

    @ptx_kernel(name=f"moe_weight_gradients_{dtype}", reqntid=shape.threads)
    def kernel(
        left: Array[dtype, 2], right: Array[dtype, 2], offsets: Ptr[s64], out: Array[dtype, 3], across: u32, down: u32,
    ) -> None:
        expert, row, column = _place(across, down, shape.tile)
        begin, end = offsets[expert].to(u32), offsets[expert + 1].to(u32)
        sources = _until(left, end), _until(right, end)
        memory = dynamic_shared(u8, align=1024)
        own_a = tensor_cores.Operand(memory, shape, 0, dtype, False)
        own_b = tensor_cores.Operand(own_a.ring.end, shape, 1, dtype, False)
        number = ptx.tid.x >> 5
        lower, along = number // shape.warps[1], number % shape.warps[1]

        def fetch(step: Any) -> None:
            for own, source, first in ((own_a, sources[0], row), (own_b, sources[1], column)):
                own.fetch(step % shape.stages, source, first, begin + step * own.depth)
            ptx.cp.async_.commit_group()

        for stage in range(shape.stages - 1):
            fetch(stage)
        sums = mma.zeros(*shape.part)
        with loop(cdiv(end - begin, own_a.depth)) as step:
            ptx.cp.async_.wait_group(shape.stages - 2)
            ptx.bar.sync(0)
            fetch(step + (shape.stages - 1))
            mma.multiply(sums, own_a.tile(step % shape.stages, lower), own_b.tile(step % shape.stages, along).T)
        ptx.cp.async_.wait_all()
        target: Any = out
        sums.store(target[expert], row + lower * shape.part[0], column + along * shape.part[1])

    return kernel


@cache
def simt_weights_kernel() -> Kernel:
    """The same of float32, by fused multiply-adds."""
    tile = simt.TILE

    @ptx_kernel(name="moe_weight_gradients_f32", reqntid=simt.THREADS)
    def kernel(
        left: Array[f32, 2], right: Array[f32, 2], offsets: Ptr[s64], out: Array[f32, 3], across: u32, down: u32,
    ) -> None:
        expert, row, column = _place(across, down, (tile, tile))
        begin, end = offsets[expert].to(u32), offsets[expert + 1].to(u32)
        sources = _until(left, end), _until(right, end)
        for y, z, total in simt.products(sources, (False, False), row, column, begin, end):
            with when((y < out.shape[1]) & (z < out.shape[2])):
                out[expert, y, z] = total

    return kernel
