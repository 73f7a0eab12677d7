"""How matrices lie in memory, and what products ask of it: contiguous rows, at multiples of 16 bytes for most copies.

Rows are contiguous in an array or in its transpose. A matrix of which neither fits is copied to one that does.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .. import Array, Kernel, ScalarType, cdiv, ptx, ptx_kernel, shared, when

from . import arguments
from .storage import UNSIGNED

__all__ = ["Stored", "fits", "launch_transpose", "store", "swapped", "transpose_kernel"]

_UNIT = 16
"""Bytes at whose multiples the rows begin that a tensor copy or cp.async reads."""
TILE, ROWS = 32, 8


class Stored(NamedTuple):
    """A matrix, or a batch of them, as it lies in memory: with contiguous rows, and transposed where ``turned``."""

    array: Any
    turned: bool


def swapped(array: Any) -> Any:
    """The same memory with the last two axes exchanged."""
    if hasattr(array, "mT"):
        return array.mT
    order = list(range(array.ndim))
    order[-2:] = order[-1], order[-2]
    return array.transpose(order)


def fits(array: Any, aligned: bool = True) -> bool:
    """Whether a kernel takes matrices ``[..., rows, columns]``: contiguous rows, which do not overlap.

    ``aligned`` wants rows that begin at multiples of 16 bytes.
    """
    steps, size = arguments.strides(array), arguments.scalar_type("a", array).bytes
    (rows, columns), (down, along) = array.shape[-2:], steps[-2:]
    if (columns > 1 and along != 1) or min(steps) < 0 or max(steps) >= 2**32:
        return False
    if not aligned:
        return True
    outer = [step for step, extent in zip(steps[:-1], array.shape[:-1]) if extent > 1]
    return (
        (rows == 1 or down >= columns) and all(step * size % _UNIT == 0 for step in outer)
        and arguments.is_aligned(_UNIT, array)
    )


def store(array: Any, ways: tuple[bool, ...], aligned: bool = True) -> Stored:
    """Matrices ``[..., rows, columns]`` in the first of these ways in which they :func:`fits`, else a copy.

    A way says whether the matrix is stored turned. The copy has the way of what is contiguous, if that is one of them.

    >>> x = np.zeros((8, 5), np.float16)
    >>> store(x.T, (False, True)).turned, store(x[:, ::2], (False,)).array.strides
    (True, (16, 2))
    """
    seen = {turned: swapped(array) if turned else array for turned in (False, True)}
    for turned in ways:
        if fits(seen[turned], aligned):
            return Stored(seen[turned], turned)
    along = [turned for turned in seen if arguments.strides(seen[turned])[-1] == 1]
    turned = next((way for way in along if way in ways), ways[0])
    *outer, columns = seen[turned].shape
    dtype = arguments.scalar_type("a", array)
    each = _UNIT // dtype.bytes if aligned else 1
    copy = arguments.empty_like(array, (*outer, cdiv(columns, each) * each), dtype)[..., :columns]
    if along and turned not in along and not isinstance(array, np.ndarray) and min(arguments.strides(array)) >= 0:
        launch_transpose(*(part if part.ndim == 3 else part[None] for part in (seen[not turned], copy)))
    else:
        copy[...] = seen[turned]
    return Stored(copy, turned)


def launch_transpose(x: Any, out: Any) -> None:
    """Store the transposes of matrices ``[B, rows, columns]`` with contiguous rows; out has such rows, too."""
    kernel = transpose_kernel(arguments.scalar_type("x", x))
    batch, rows, columns = x.shape
    for some in arguments.spans(batch):
        for tiles in arguments.spans(cdiv(rows, TILE)):
            part = slice(tiles.start * TILE, min(tiles.stop * TILE, rows))
            grid = cdiv(columns, TILE), tiles.stop - tiles.start, some.stop - some.start
            kernel[grid, TILE * ROWS](x[some, part], out[some, :, part])


@cache
def transpose_kernel(dtype: ScalarType) -> Kernel:
    """out[b, j, i] = x[b, i, j], by blocks of 32 x 8 threads, each with a tile of 32 x 32."""
    unit = UNSIGNED[dtype.bits]

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
