"""What a product by tensor copies asks of its matrices: which way they are stored, and rows at multiples of 16 bytes.

A matrix whose rows begin elsewhere, or that has no contiguous dimension, is copied by a kernel to one that fits.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from .. import Array, Kernel, ScalarType, cdiv, loop, ptx, ptx_kernel, when

from . import arguments

__all__ = ["Stored", "fits", "store"]

_UNIT = 16
"""Bytes at whose multiples the rows begin that a tensor copy reads."""


class Stored(NamedTuple):
    """A matrix as it lies in memory: ``array`` has contiguous rows, and is the transpose where ``turned``."""

    array: Any
    turned: bool


def fits(array: Any) -> bool:
    """Whether tensor copies take a matrix: contiguous rows that begin at multiples of 16 bytes."""
    (rows, columns), (down, along) = array.shape, arguments.strides(array)
    size = arguments.scalar_type("a", array).bytes
    return (
        (along == 1 or columns == 1) and (rows == 1 or (down * size % _UNIT == 0 and down >= columns))
        and arguments.is_aligned(_UNIT, array)
    )


def store(name: str, array: Any, ways: tuple[bool, ...]) -> Stored:
    """A matrix as tensor copies take it, in the first of these ways in which it fits; else a copy.

    A way says whether the matrix is stored turned.
    """
    for turned in ways:
        if fits(found := array.T if turned else array):
            return Stored(found, turned)
    along = [turned for turned in (False, True) if _contiguous(array.T if turned else array)]
    if not along:
        raise arguments.wrong(
            f"`{name}` has the strides {arguments.strides(array)}; wanted are contiguous rows or columns",
            hint=f"`{name} = {name}.copy()`",
        )
    turned = along[0] if along[0] in ways else ways[0]
    return Stored(_copied(array, along[0], turned), turned)


def _contiguous(array: Any) -> bool:
    return array.shape[1] == 1 or arguments.strides(array)[1] == 1


def _copied(array: Any, along: bool, turned: bool) -> Any:
    """A copy, or one of the transpose, with rows at multiples of 16 bytes; ``along`` says what is contiguous."""
    dtype = arguments.scalar_type("a", array)
    (rows, columns), each = array.shape[::-1] if turned else array.shape, _UNIT // dtype.bytes
    wide = arguments.empty_like(array, (rows, cdiv(columns, each) * each), dtype)
    kernel = copy_kernel(dtype, along != turned)
    kernel[(cdiv(columns, 32), min(cdiv(rows, 8), 65535)), (32, 8)](array.T if along else array, wide[:, :columns])
    return wide[:, :columns]


@cache
def copy_kernel(dtype: ScalarType, across: bool) -> Kernel:
    """``y = x``, or, ``across``, ``y = x.T``."""
    matrix: Any = Array[dtype, 2]

    @ptx_kernel(name=f"copy_matrix_{dtype}{'_turned' * across}")
    def kernel(x: matrix, y: matrix) -> None:
        column = ptx.ctaid.x * 32 + ptx.tid.x
        with when(column < y.shape[1]), loop(ptx.ctaid.y * 8 + ptx.tid.y, y.shape[0], ptx.nctaid.y * 8) as row:
            y[row, column] = x[column, row] if across else x[row, column]

    return kernel
