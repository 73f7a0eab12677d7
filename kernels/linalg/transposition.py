"""The transpose of matrices, by tiles in shared memory, so that both sides are read and written along their rows."""

from __future__ import annotations

from functools import cache
from typing import Any

from ... import Array, Kernel, ScalarType, cdiv, ptx, ptx_kernel, shared, u8, u16, u32, u64, when
from .. import arguments
from ..autograd import differentiable

__all__ = ["transpose", "transpose_kernel"]

TILE, ROWS = 32, 8
_UNITS = {1: u8, 2: u16, 4: u32, 8: u64}


@cache
def transpose_kernel(dtype: ScalarType) -> Kernel:
    """out[b, j, i] = x[b, i, j], by blocks of 32 x 8 threads, each with a tile of 32 x 32."""
    unit = _UNITS[dtype.bytes]

    @ptx_kernel(name=f"transpose_{dtype}", reqntid=TILE * ROWS)
    def kernel(x: Array[dtype, 3], out: Array[dtype, 3]) -> None:
        tile = shared(unit, TILE, TILE + 1)  # a column's elements lie in different banks
        source: Any = x
        target: Any = out
        lane, line, batch = ptx.tid.x & 31, ptx.tid.x >> 5, ptx.ctaid.z
        row, column = ptx.ctaid.y * TILE, ptx.ctaid.x * TILE
        for step in range(0, TILE, ROWS):
            i, j = row + line + step, column + lane
            with when((i < source.shape[1]) & (j < source.shape[2])):
                tile[line + step, lane] = source.at(batch, i, j).cast(unit)[0]
        ptx.bar.sync(0)
        for step in range(0, TILE, ROWS):
            i, j = column + line + step, row + lane
            with when((i < target.shape[1]) & (j < target.shape[2])):
                target.at(batch, i, j).cast(unit)[0] = tile[lane, line + step]

    return kernel


def _gradient(grad_out: Any) -> dict[str, Any]:
    return {"a": transpose(grad_out)}


@differentiable("a", backward=_gradient)
def transpose(a: Any, *, out: Any = None) -> Any:
    """The last two axes exchanged, in new memory: C-contiguous.

    Args:
        a: ``[..., M, N]`` of any dtype.
        out: ``[..., N, M]`` of a's dtype; a new array of a's kind if None.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape or dtype that does not fit, or ``out`` overlaps a. Nothing ran.

    >>> import numpy as np
    >>> transpose(np.arange(6).reshape(2, 3))
    array([[0, 3],
           [1, 4],
           [2, 5]])
    """
    shape = arguments.expect_array("a", a)
    if len(shape) < 2:
        raise arguments.wrong(f"`a` has shape {list(shape)}; wanted is [..., M, N]")
    kind = arguments.scalar_type("a", a)
    *batch, rows, columns = shape
    out = arguments.output(out, a, (*batch, columns, rows), kind, a=a)
    if 0 in shape:
        return out
    source, target = arguments.bytes_of(arguments.dense(a)), arguments.bytes_of(out)
    kernel = transpose_kernel(arguments.DTYPES[arguments.dtype_name(source)])
    source, target = source.reshape(-1, rows, columns), target.reshape(-1, columns, rows)
    for first in range(0, source.shape[0], GRID):
        parts = source[first : first + GRID], target[first : first + GRID]
        kernel[(cdiv(columns, TILE), cdiv(rows, TILE), parts[0].shape[0]), TILE * ROWS](*parts)
    return out


GRID = 65535
"""Blocks of a grid's z at most."""
