"""Sums down the columns of a matrix: the gradients of weights and biases.

A thread has a column, and blocks share the rows of long matrices; what they add up to is added by a second launch, in
an order that depends on the shape alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ... import Kernel, Ptr, ScalarType, cdiv, loop, minimum, ptx, ptx_kernel, reg, u32, when
from .. import arguments
from ..storage import working
from ..rows import row_of

__all__ = ["column_sums", "products_kernel", "sums_kernel", "weight_gradients"]

THREADS = 128
ROWS = 64
"""That a thread adds up, at least, where several share a column."""
MOST = 64
"""Parts of a column."""


def _down(rows: Any, each: Any, body: Any) -> None:
    """Call ``body(column, row)`` for the rows of this block's part."""
    start = ptx.ctaid.y * each
    with loop(start, minimum(start + each, rows)) as row:
        body(row)


@cache
def sums_kernel(dtype: ScalarType, out_type: ScalarType) -> Kernel:
    """The sums of each column over ``each`` rows at a time: ``[parts, columns]``."""
    acc = working(dtype)

    @ptx_kernel(name=f"column_sums_{dtype}_{out_type}", reqntid=THREADS)
    def kernel(x: Ptr[dtype], out: Ptr[out_type], rows: u32, columns: u32, each: u32) -> None:
        column = ptx.ctaid.x * THREADS + ptx.tid.x
        with when(column < columns):
            total = reg(acc, 0.0)
            _down(rows, each, lambda row: total.set(total + row_of(x, row, columns)[column].to(acc)))
            row_of(out, ptx.ctaid.y, columns)[column] = total.to(out_type)

    return kernel


@cache
def products_kernel(dtype: ScalarType, centred: bool) -> Kernel:
    """The sums of gradient times normalised x, and of the gradient, of each column over ``each`` rows at a time."""
    acc = working(dtype)

    @ptx_kernel(name=f"{'layer' if centred else 'rms'}_norm_weights_{dtype}", reqntid=THREADS)
    def kernel(
        grad: Ptr[dtype], x: Ptr[dtype], statistics: Ptr[acc], products: Ptr[acc], sums: Ptr[acc], rows: u32,
        columns: u32, each: u32,
    ) -> None:
        column = ptx.ctaid.x * THREADS + ptx.tid.x
        with when(column < columns):
            product, total = reg(acc, 0.0), reg(acc, 0.0)

            def add(row: Any) -> None:
                gradient, value = (row_of(pointer, row, columns)[column].to(acc) for pointer in (grad, x))
                inverse, mean = (statistics + ptx.mul.wide.u32(row, 2)).load(width=2)
                if centred:
                    value = value - mean
                ptx[f"fma.rn.{acc}"](gradient, value * inverse, product, out=product)
                total.set(total + gradient)

            _down(rows, each, add)
            row_of(products, ptx.ctaid.y, columns)[column] = product
            row_of(sums, ptx.ctaid.y, columns)[column] = total

    return kernel


def _parts(rows: int) -> tuple[int, int]:
    """How many parts a column has, and the rows of each."""
    parts = max(1, min(MOST, rows // ROWS))
    each = max(1, -(-rows // parts))
    return max(1, -(-rows // each)), each


def column_sums(x: Any, rows: int, columns: int, out: Any) -> None:
    """The sums of the columns of a C-contiguous matrix, to ``out`` of any floating-point type."""
    dtype, kind = arguments.floating("x", x), arguments.floating("out", out)
    parts, each = _parts(rows)
    blocks = cdiv(columns, THREADS)
    if parts == 1:
        sums_kernel(dtype, kind)[(blocks, 1), THREADS](x, out, rows, columns, each)
        return
    partial = arguments.empty_like(x, (parts, columns), working(dtype))
    sums_kernel(dtype, working(dtype))[(blocks, parts), THREADS](x, partial, rows, columns, each)
    sums_kernel(working(dtype), kind)[(blocks, 1), THREADS](partial, out, parts, columns, parts)


def weight_gradients(
    grad: Any, x: Any, statistics: Any, rows: int, columns: int, centred: bool, weight: Any, bias: Any
) -> None:
    """The gradients of weight and bias, to those arrays (None: not wanted)."""
    dtype = arguments.floating("x", x)
    parts, each = _parts(rows)
    products, sums = (arguments.empty_like(x, (parts, columns), working(dtype)) for _ in range(2))
    products_kernel(dtype, centred)[(cdiv(columns, THREADS), parts), THREADS](
        grad, x, statistics, products, sums, rows, columns, each
    )
    for partial, out in ((products, weight), (sums, bias)):
        if out is not None:
            column_sums(partial, parts, columns, out)
