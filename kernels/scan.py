"""Scans: of each element the sum (product, greatest, least) of all up to it, or of all before it, along an axis."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import cdiv, u64

from . import arguments
from .autograd import differentiable
from .scan_kernels import OPERATORS, THREADS, clear_kernel, column_kernel, tile_kernel, tile_size

__all__ = ["exclusive", "inclusive"]

DTYPES = ["int32", "int64", "uint32", "uint64", *arguments.FLOATS]


def _gradient(exclusive_: bool, op: str, axis: int, flags: Any, grad_out: Any) -> dict[str, Any]:
    """Each element is in the sums behind it: the scan of the gradient from the other end."""
    if op != "add" or flags is not None:
        what = f"of op {op!r}" if op != "add" else "with `flags`"
        raise arguments.wrong(f"a scan {what} has no gradient here, only sums without `flags` have")
    return {"x": _scan(grad_out.flip(axis), op, exclusive_, axis, None, None).flip(axis)}


def _inclusive_gradient(op: str, axis: int, flags: Any, grad_out: Any) -> dict[str, Any]:
    return _gradient(False, op, axis, flags, grad_out)


def _exclusive_gradient(op: str, axis: int, flags: Any, grad_out: Any) -> dict[str, Any]:
    return _gradient(True, op, axis, flags, grad_out)


@differentiable("x", backward=_inclusive_gradient)
def inclusive(x: Any, op: str = "add", *, axis: int = -1, flags: Any = None, out: Any = None) -> Any:
    """out[i] = x[0] op ... op x[i] along an axis.

    Args:
        x: Any shape with one axis at least; int32, int64, uint32, uint64 or floats.
        op: ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.
        axis: The axis along which it goes, which may count from the end.
        flags: A bool array of x's shape: the scan begins anew at each True. None for one scan.
        out: Where to put the result, of x's shape and dtype; a new array of x's kind if None. It may be ``x``.

    float16 and bfloat16 are computed in float32, and each result is rounded once; integers wrap around. Along the last
    axis, sums of floats are made in an order that depends on the shape alone: result i is off by no more than
    (n / 4096 + 40) 2^-24 of the sum of magnitudes up to i (n / 2048 and 2^-53 for float64), along others by i 2^-24. A
    NaN stays to the end of the scan, for all operations.

    Returns:
        ``out``.

    Raises:
        LaunchError: A dtype, shape, axis or operation that does not fit. Nothing ran.

    >>> import numpy as np
    >>> inclusive(np.array([1, 2, 3, 4], np.int32))
    array([ 1,  3,  6, 10], dtype=int32)
    >>> inclusive(np.array([1, 2, 3, 4], np.int32), flags=np.array([False, False, True, False]))
    array([1, 3, 3, 7], dtype=int32)
    """
    return _scan(x, op, False, axis, flags, out)


@differentiable("x", backward=_exclusive_gradient)
def exclusive(x: Any, op: str = "add", *, axis: int = -1, flags: Any = None, out: Any = None) -> Any:
    """out[i] = x[0] op ... op x[i - 1], and where a scan begins the neutral element: 0, 1, or the type's extremes.

    Arguments, bounds and errors are those of :func:`inclusive`.

    >>> import numpy as np
    >>> exclusive(np.array([[3.0, 1.0], [2.0, 5.0]]), "max", axis=0)
    array([[-inf, -inf],
           [  3.,   1.]])
    """
    return _scan(x, op, True, axis, flags, out)


def _scan(x: Any, op: str, exclusive: bool, axis: int, flags: Any, out: Any) -> Any:
    shape = arguments.expect_array("x", x, DTYPES)
    dtype = arguments.scalar_type("x", x, DTYPES)
    arguments.one_of("op", op, list(OPERATORS))
    at = arguments.axis("axis", axis, len(shape))
    if flags is not None:
        arguments.expect("flags", flags, list(shape), ["bool"])
    out = arguments.output(out, x, shape, dtype, in_place=["x"], x=x, flags=flags)
    outer, n, inner = prod(shape[:at]), shape[at], prod(shape[at + 1 :])
    if not outer * n * inner:
        return out
    x = arguments.dense(x)
    marks = x if flags is None else arguments.bytes_of(flags)
    segmented = flags is not None
    if inner > 1:
        kernel = column_kernel(op, dtype, exclusive, segmented)
        kernel[cdiv(outer * inner, THREADS), THREADS](x, marks, out, n, inner, outer * inner)
        return out
    tiles = cdiv(n, tile_size(dtype))
    words = workspace(x, 2 * outer * tiles + 1)
    wide = arguments.empty_like(x, (2 * outer * tiles,), dtype) if dtype.bits == 64 else words
    tile_kernel(op, dtype, exclusive, segmented)[outer * tiles, THREADS](x, marks, out, words, wide, n, tiles)
    return out


def workspace(like: Any, words: int) -> Any:
    """So many zeros of 64 bits beside ``like``."""
    made = arguments.empty_like(like, (words,), u64)
    clear_kernel()[cdiv(words, THREADS), THREADS](made, words)
    return made
