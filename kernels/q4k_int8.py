"""Q4_K products with activations of 8 bits: integer dot products of four, one rounding of x and none of the weights.

x is quantised in runs of 32: ``x = step * q``, q from -127 to 127, with the sums of q over 16, by which a sub-block's
minimum is multiplied. Where RMSNorm is folded in, gamma x is quantised, with the sum of the squares of x in each super-
block, and the product is divided by the root of their mean. Eight lanes share a super-block, each with 16 bytes of its
weights, so that a warp has four of them in flight and a super-block takes about 20 instructions of a warp.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, cdiv, f32, loop, maximum, ptx, ptx_kernel, reg, s8, s32, select, u8, u32, warp
from .. import when

from . import arguments
from .q4k import BLOCK_BYTES, BLOCK_WEIGHTS
from .quant_scales import sub_block_scales

__all__ = ["int8_kernel", "quantize_activations", "quantize_kernel"]

RUN = 32
"""Numbers of x that share a step."""
WARPS = 4


def quantize_activations(x: Any, gamma: Any = None) -> tuple[Any, ...]:
    """x in 8 bits: ``[M, K]`` of int8, steps ``[M, K / 32]`` and sums of 16 quants times their step ``[M, K / 16]``.

    With gamma it is that of gamma x, and there are sums of 256 squares of x, ``[M, K / 256]``.
    """
    rows, k = (int(extent) for extent in x.shape)
    made = [arguments.empty_like(x, (rows, k), s8)]
    made += [arguments.empty_like(x, (rows, k // each), f32) for each in (RUN, 16, *([] if gamma is None else [256]))]
    kernel = quantize_kernel(arguments.floating("x", x), None if gamma is None else arguments.floating("gamma", gamma))
    factors = (x, made[1]) if gamma is None else (gamma, made[3])
    kernel[(cdiv(k, BLOCK_WEIGHTS * WARPS), rows), WARPS * 32](x, *made[:3], *factors, k)
    return tuple(made)


@cache
def quantize_kernel(dtype: ScalarType, gamma_type: ScalarType | None = None) -> Kernel:
    """A warp quantises 256 numbers, a lane eight of them; four lanes share a step. With a type of gamma, gamma x."""
    factor_type, normed = gamma_type or dtype, gamma_type is not None

    @ptx_kernel(name=f"quantize_activations_{dtype}{f'_{gamma_type}' if normed else ''}", reqntid=WARPS * 32)
    def kernel(
        x: Ptr[dtype], quants: Ptr[s8], steps: Ptr[f32], sums: Ptr[f32], gamma: Ptr[factor_type], squares: Ptr[f32],
        k: u32,
    ) -> None:
        at = (ptx.ctaid.x * WARPS * 32 + ptx.tid.x) * 8
        with when(at < k):
            place = ptx.mul.wide.u32(ptx.ctaid.y, k)
            values = [v.to(f32) for half in (0, 4) for v in (x + place).load(at + half, width=4)]
            if normed:
                square = values[0] * values[0]
                for v in values[1:]:
                    square = ptx.fma.rn.f32(v, v, square)
                square = warp.reduce_sum(square)
                with when((ptx.tid.x & 31) == 0):
                    (squares + place // BLOCK_WEIGHTS)[at // BLOCK_WEIGHTS] = square
                factors = [v.to(f32) for half in (0, 4) for v in gamma.load(at + half, width=4)]
                values = [v * factor for v, factor in zip(values, factors)]
            # By their bits, of which a NaN has more than any number: it spoils its run, as it spoils a product.
            bits = ptx.abs.f32(values[0]).bits(u32)
            for v in values[1:]:
                bits = maximum(bits, ptx.abs.f32(v).bits(u32))
            for distance in (1, 2):
                bits = maximum(bits, ptx.shfl.sync.bfly.b32(bits, distance, 31, 0xFFFFFFFF))
            largest = bits.bits(f32)
            step = largest * (1 / 127)
            inverse = select(largest == 0.0, 0.0, ptx.div.rn.f32(127.0, largest))
            whole = [ptx.cvt.rni.s32.f32(v * inverse) for v in values]
            words = [_packed(whole[half : half + 4]) for half in (0, 4)]
            (quants + place).cast(u32).store(at // 4, words)
            total = whole[0]
            for q in whole[1:]:
                total = total + q
            total = total + ptx.shfl.sync.bfly.b32(total, 1, 31, 0xFFFFFFFF)
            lane = ptx.tid.x & 31
            with when((lane & 1) == 0):
                (sums + place // 16)[at // 16] = total.to(f32) * step
            with when((lane & 3) == 0):
                (steps + place // RUN)[at // RUN] = step

    return kernel


def _packed(quants: list[Any]) -> Any:
    """Four numbers of 8 bits in a word."""
    word = quants[0].bits(u32) & 0xFF
    for n, q in enumerate(quants[1:], 1):
        word = word | ((q.bits(u32) & 0xFF) << (8 * n))
    return word


@cache
def int8_kernel(dtype: ScalarType, normed: bool = False) -> Kernel:
    """The product of one row of x a block along y, a warp an output; divided by the root where it is ``normed``."""

    @ptx_kernel(name=f"{'rmsnorm_' * normed}q4k_int8_gemv_{dtype}", reqntid=WARPS * 32)
    def kernel(
        quants: Ptr[s8], steps: Ptr[f32], sums: Ptr[f32], squares: Ptr[f32], w: Ptr[u8], y: Ptr[dtype], n: u32,
        blocks: u32, eps: f32,
    ) -> None:
        lane, token = ptx.tid.x & 31, ptx.ctaid.y
        output = ptx.ctaid.x * WARPS + (ptx.tid.x >> 5)
        part = lane & 7
        group, half = part >> 1, part & 1
        own_quants = quants.cast(u32) + ptx.mul.wide.u32(token, blocks * (BLOCK_WEIGHTS // 4)) + (group * 16 + half * 4)
        own_steps = steps + ptx.mul.wide.u32(token, blocks * (BLOCK_WEIGHTS // RUN)) + group * 2
        own_sums = sums + ptx.mul.wide.u32(token, blocks * (BLOCK_WEIGHTS // 16)) + (group * 4 + half)
        with when(output < n):
            weights = w.cast(u32) + ptx.mul.wide.u32(output, blocks * (BLOCK_BYTES // 4))
            dot, square = reg(f32, 0.0), reg(f32, 0.0)
            own_squares = squares + ptx.mul.wide.u32(token, blocks) if normed else squares
            with loop(lane >> 3, blocks, 4) as block:
                if normed:
                    square += own_squares[block]
                packed = weights + block * (BLOCK_BYTES // 4)
                nibbles = packed.load(4 + part * 4, width=4)
                scale0, minimum0, scale1, minimum1 = sub_block_scales(packed.load(0, width=4), group)
                step0, step1 = own_steps.load(block * (BLOCK_WEIGHTS // RUN), width=2)
                for shift, place, scale, minimum, step in (
                    (0, 0, scale0, minimum0, step0), (4, 8, scale1, minimum1, step1),
                ):
                    products: Any = 0
                    for word, four in zip(nibbles, own_quants.load(block * 64 + place, width=4)):
                        four_weights = (word >> shift) & 0x0F0F0F0F
                        products = ptx.dp4a.s32.u32(four.bits(s32), four_weights, products)
                    ptx.fma.rn.f32(products.to(f32), scale * step, dot, out=dot)
                    ptx.fma.rn.f32(-minimum, own_sums[block * 16 + (place // 4)], dot, out=dot)
            total = warp.reduce_sum(dot)
            if normed:  # eight lanes have added up the same ones
                mean = ptx.div.rn.f32(warp.reduce_sum(square) * 0.125, (blocks * BLOCK_WEIGHTS).to(f32))
                total = ptx.div.rn.f32(total, ptx.sqrt.rn.f32(mean + eps))
            with when(lane == 0):
                (y + ptx.mul.wide.u32(token, n))[output] = total.to(dtype)

    return kernel
