"""Q4_K products with activations of 8 bits: integer dot products of four, one rounding of x and none of the weights.

x is quantised in runs of 32: ``x = step * q``, q from -127 to 127, with the sums of q over 16, by which a sub-block's
minimum is multiplied. Each block does that for itself, in shared memory, and then goes over many rows of weights: x is
read once a block, and there is no launch before. Where RMSNorm is folded in, gamma x is quantised, and the products are
divided by the root of the mean square of x.

Eight lanes share a super-block, each with 16 bytes of its weights, of up to four rows: so a warp has sixteen super-
blocks in flight, the rows share what it loads of x, and a super-block takes fewer than 20 instructions of a warp.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, cdiv, f32, loop, maximum, minimum, processors, ptx, ptx_kernel, reg, s8, s32, select,
    shared, u8, u32, warp, when,
)
from .. import block

from . import arguments
from .q4k import BLOCK_BYTES, BLOCK_WEIGHTS
from .quant_scales import sub_block_scales
from .storage import load_packed, unpacked

__all__ = ["int8_kernel", "int8_product", "quantize_activations", "quantize_kernel"]

RUN = 32
"""Numbers of x that share a step."""
WARPS = 8
THREADS = 32 * WARPS
PART = 64
"""Super-blocks of x that a block has in shared memory at a time, 22 KiB."""
_ROWS = (4, 2, 1)
"""Rows of weights that a warp may have at a time."""
_RESIDENT = 8
"""Blocks of a multiprocessor."""


def int8_product(x: Any, gamma: Any, w: Any, y: Any, n: int, blocks: int, eps: float) -> None:
    """Launch the product for each row of x."""
    gamma_type = None if gamma is None else arguments.floating("gamma", gamma)
    rows = next(rows for rows in _ROWS if rows == 1 or cdiv(n, rows * WARPS) > processors())
    kernel = int8_kernel(arguments.floating("x", x), gamma_type, rows, blocks <= PART)
    grid = min(cdiv(n, rows * WARPS), _RESIDENT * processors())
    for some in arguments.spans(x.shape[0]):
        kernel[(grid, some.stop - some.start), THREADS](
            x[some], x if gamma is None else gamma, w, y[some], n, blocks, eps
        )


class _Activations:
    """Super-blocks of a row of x in 8 bits in shared memory, in the order in which the lanes of a warp take them.

    Of each 256 numbers the first halves of all runs come first: what eight lanes load at once lies side by side.
    """

    def __init__(self, x: Any, gamma: Any) -> None:
        self.x, self.gamma = x, gamma
        self.quants, self.steps = shared(u32, PART * 64), shared(f32, PART * 8)
        self.sums = shared(f32, PART * 16)

    def fill(self, first: Any, count: Any) -> Any:
        """Quantise ``count`` super-blocks from ``first`` on; the sum of the squares of x that this thread has read."""
        square = reg(f32, 0.0)
        with loop(ptx.tid.x * 8, count * BLOCK_WEIGHTS, THREADS * 8) as at:
            place = first * BLOCK_WEIGHTS + at
            values = _eight(self.x, place)
            if self.gamma is not None:
                for v in values:
                    ptx.fma.rn.f32(v, v, square, out=square)
                values = [v * factor for v, factor in zip(values, _eight(self.gamma, place))]
            words, step, total = _quantised(values)
            run, lane = at // RUN, ptx.tid.x & 31
            part = (at // BLOCK_WEIGHTS) * 16 + (run & 1) * 8 + (run >> 1 & 3) * 2 + (at >> 4 & 1)
            self.quants.at(part * 4 + (at >> 2 & 2)).store(0, words)
            with when((lane & 1) == 0):
                self.sums[part] = total
            with when((lane & 3) == 0):
                self.steps[run] = step
        return square.copy()


def _eight(pointer: Any, at: Any) -> list[Any]:
    return unpacked(load_packed(pointer, at, 8), pointer.dtype, 8)


def _quantised(values: list[Any]) -> tuple[list[Any], Any, Any]:
    """Eight numbers in two words; the step of this lane and the next three, and the sum of this lane and the next."""
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
    total = whole[0]
    for q in whole[1:]:
        total = total + q
    total = total + ptx.shfl.sync.bfly.b32(total, 1, 31, 0xFFFFFFFF)
    return [_packed(whole[half : half + 4]) for half in (0, 4)], step, total.to(f32) * step


def _packed(quants: list[Any]) -> Any:
    """Four numbers of 8 bits in a word."""
    word = quants[0].bits(u32) & 0xFF
    for n, q in enumerate(quants[1:], 1):
        word = word | ((q.bits(u32) & 0xFF) << (8 * n))
    return word


@cache
def int8_kernel(dtype: ScalarType, gamma_type: ScalarType | None = None, rows: int = 4, whole: bool = True) -> Kernel:
    """The product of one row of x a block along y, ``rows`` outputs a warp at a time; with a type of gamma of RMSNorm.

    ``whole`` rows of x have ``PART`` super-blocks at most, and are quantised once; others part by part for each output.
    """
    normed, factor_type = gamma_type is not None, gamma_type or dtype
    kind = f"{'rmsnorm_' * normed}q4k_int8_gemv_{dtype}{f'_{gamma_type}' if normed else ''}"

    @ptx_kernel(name=f"{kind}_x{rows}{'' if whole else '_parts'}", reqntid=THREADS)
    def kernel(
        x: Ptr[dtype], gamma: Ptr[factor_type], w: Ptr[u8], y: Ptr[dtype], n: u32, blocks: u32, eps: f32
    ) -> None:
        lane, token = ptx.tid.x & 31, ptx.ctaid.y
        activations = _Activations(x + ptx.mul.wide.u32(token, blocks * BLOCK_WEIGHTS), gamma if normed else None)
        results = y + ptx.mul.wide.u32(token, n)

        def root(square: Any) -> Any:
            mean = ptx.div.rn.f32(block.reduce(operator.add, square, THREADS), (blocks * BLOCK_WEIGHTS).to(f32))
            return ptx.sqrt.rn.f32(mean + eps)

        if whole:
            square = activations.fill(0, blocks)
            block.sync()
            divisor = root(square) if normed else None
        with loop(ptx.ctaid.x * (WARPS * rows), n, ptx.nctaid.x * (WARPS * rows)) as begin:
            first = begin + (ptx.tid.x >> 5) * rows
            each = [
                w.cast(u32) + ptx.mul.wide.u32(minimum(first + row, n - 1), blocks * (BLOCK_BYTES // 4))
                for row in range(rows)
            ]
            dots = [reg(f32, 0.0) for _ in each]
            if whole:
                _multiply(activations, each, dots, blocks)
            else:
                squares = reg(f32, 0.0)
                with loop(0, blocks, PART) as start:
                    held = minimum(blocks - start, PART)
                    block.sync()
                    squares += activations.fill(start, held)
                    block.sync()
                    _multiply(activations, [one + start * (BLOCK_BYTES // 4) for one in each], dots, held)
                divisor = root(squares.copy()) if normed else None
            totals = [warp.reduce_sum(dot) for dot in dots]
            total = totals[0]
            for row, other in enumerate(totals[1:], 1):
                total = select(lane == row, other, total)
            if divisor is not None:
                total = ptx.div.rn.f32(total, divisor)
            with when((lane < rows) & (first + lane < n)):
                results[first + lane] = total.to(dtype)

    return kernel


def _multiply(activations: _Activations, rows: list[Any], dots: list[Any], count: Any) -> None:
    """Add to ``dots`` the products of so many super-blocks of the rows of weights."""
    lane = ptx.tid.x & 31
    part = lane & 7
    quants, sums = activations.quants.at(part * 4), activations.sums.at(part)
    steps = activations.steps.at((part >> 1) * 2)
    with loop(lane >> 3, count, 4, unroll=max(1, 4 // len(rows))) as number:
        packed = [row + number * (BLOCK_BYTES // 4) for row in rows]
        loaded = [(one.load(4 + part * 4, width=4), one.load(0, width=4)) for one in packed]
        halves = [
            (shift, quants.load(number * 64 + at * 32, width=4), step, sums[number * 16 + at * 8])
            for at, (shift, step) in enumerate(zip((0, 4), steps.load(number * 8, width=2)))
        ]
        for dot, (nibbles, header) in zip(dots, loaded):
            scale0, minimum0, scale1, minimum1 = sub_block_scales(header, part >> 1)
            for (shift, fours, step, own), scale, least in zip(halves, (scale0, scale1), (minimum0, minimum1)):
                products: Any = 0
                for word, four in zip(nibbles, fours):
                    products = ptx.dp4a.s32.u32(four.bits(s32), (word >> shift) & 0x0F0F0F0F, products)
                ptx.fma.rn.f32(products.to(f32), scale * step, dot, out=dot)
                ptx.fma.rn.f32(-least, own, dot, out=dot)


def quantize_activations(x: Any) -> tuple[Any, Any, Any]:
    """x in 8 bits: ``[M, K]`` of int8, steps ``[M, K / 32]`` and sums of 16 quants times their step ``[M, K / 16]``."""
    rows, k = (int(extent) for extent in x.shape)
    quants = arguments.empty_like(x, (rows, k), s8)
    steps, sums = (arguments.empty_like(x, (rows, k // each), f32) for each in (RUN, 16))
    kernel = quantize_kernel(arguments.floating("x", x))
    kernel[(cdiv(k, THREADS * 8), rows), THREADS](x, quants, steps, sums, k)
    return quants, steps, sums


@cache
def quantize_kernel(dtype: ScalarType) -> Kernel:
    """A warp quantises 256 numbers, a lane eight of them; four lanes share a step."""

    @ptx_kernel(name=f"quantize_activations_{dtype}", reqntid=THREADS)
    def kernel(x: Ptr[dtype], quants: Ptr[s8], steps: Ptr[f32], sums: Ptr[f32], k: u32) -> None:
        at = (ptx.ctaid.x * THREADS + ptx.tid.x) * 8
        with when(at < k):
            place = ptx.mul.wide.u32(ptx.ctaid.y, k)
            words, step, total = _quantised(_eight(x + place, at))
            (quants + place).cast(u32).store(at // 4, words)
            with when((ptx.tid.x & 1) == 0):
                (sums + place // 16)[at // 16] = total
            with when((ptx.tid.x & 3) == 0):
                (steps + place // RUN)[at // RUN] = step

    return kernel
