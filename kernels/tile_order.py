"""The order in which persistent blocks take the tiles of a matrix.

Blocks that run at the same time should read the same rows of a and columns of b, which then come from the L2 cache:
they take tiles from a band of some rows of tiles, column after column, then from the next band.
"""

from __future__ import annotations

from typing import Any

from .. import minimum

__all__ = ["BAND", "place"]

BAND = 8
"""Rows of tiles in a band."""


def place(number: Any, rows: Any, columns: Any, band: int = BAND) -> tuple[Any, Any]:
    """The row and column of a tile, of ``rows`` x ``columns`` of them, all u32; no two numbers have the same.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, ptx, ptx_kernel, u32
    >>> @ptx_kernel
    ... def order(x: Ptr[u32], rows: u32, columns: u32):
    ...     row, column = place(ptx.tid.x, rows, columns, 2)
    ...     x[row * columns + column] = ptx.tid.x
    >>> x = np.zeros((3, 3), np.uint32)
    >>> order[1, 9](x, 3, 3)
    >>> x.tolist()
    [[0, 2, 4], [1, 3, 5], [6, 7, 8]]
    """
    whole = columns * band
    first = number // whole * band
    within, height = number % whole, minimum(rows - first, band)
    return first + within % height, within // height
