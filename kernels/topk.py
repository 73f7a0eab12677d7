"""The k greatest or least elements along the last axis, and where they are."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import s64

from . import arguments, storage
from .sort import radix_sort
from .topk_kernels import NETWORK, THREADS, topk_kernel

__all__ = ["topk"]

_CHUNK = 1 << 14
"""Rows from twice this length on are split among blocks, if there are few rows."""
_ENOUGH_BLOCKS = 512


def topk(
    x: Any, k: int, *, largest: bool = True, sorted: bool = True, out: Any = None, indices_out: Any = None,
) -> tuple[Any, Any]:
    """The k greatest elements along the last axis, and their places.

    Args:
        x: ``[..., n]``, n below 2^31; integers or floats.
        k: 0 to n.
        largest: False takes the least ones.
        sorted: The greatest (or least) first; False leaves them in the order of their places.
        out, indices_out: Where to put values and places, ``[..., k]`` of x's dtype and int64; new arrays if None.

    Of equal elements those with lower places are taken, and come first. NaNs are greater than all else, -0 is 0.

    Returns:
        ``(out, indices_out)``.

    Raises:
        LaunchError: A dtype, shape or k that does not fit. Nothing ran.

    >>> import numpy as np
    >>> topk(np.array([[3, 9, 4, 9], [1, 2, 3, 4]]), 2)
    (array([[9, 9],
           [4, 3]]), array([[1, 3],
           [3, 2]]))
    """
    shape = arguments.expect_array("x", x, storage.NUMBERS)
    if not shape:
        raise arguments.wrong("`x` has no axis to choose along", hint="`x.reshape(1)`")
    n, rows, dtype = shape[-1], prod(shape[:-1]), arguments.scalar_type("x", x)
    if n >= 1 << 31:
        raise arguments.wrong(f"`x` has rows of {n}; they must have fewer than 2**31 elements")
    count = arguments.size("k", k, range(n + 1))
    arguments.flag("largest", largest)
    arguments.flag("sorted", sorted)
    out = arguments.output(out, x, (*shape[:-1], count), dtype, x=x)
    places = arguments.output(indices_out, x, (*shape[:-1], count), s64, name="indices_out", x=x)
    arguments.expect_output(out, indices_out=places)
    if rows * count:
        _chosen(arguments.dense(x), out, places, rows, n, count, largest, sorted)
    return out, places


def _chosen(x: Any, out: Any, places: Any, rows: int, n: int, k: int, largest: bool, ordered: bool) -> None:
    """Choose from chunks of the rows, and then from what was chosen, where a block a row would be too few."""
    dtype, given = arguments.scalar_type("x", x), None
    chunks = min(n // max(_CHUNK, 4 * k), -(-_ENOUGH_BLOCKS // rows))
    if chunks > 1:
        some = [arguments.empty_like(x, (rows, chunks * k), kind) for kind in (dtype, s64)]
        kernel = topk_kernel(dtype, largest, 0, False)
        kernel[rows * chunks, THREADS](x, x, *some, n, n // chunks, chunks, k)
        (x, given), n = some, chunks * k
    network = (1 << (k - 1).bit_length()) if ordered and k <= NETWORK else 0
    targets = out, places
    if ordered and not network:
        targets = arguments.empty_like(x, (rows, k), dtype), arguments.empty_like(x, (rows, k), s64)
    kernel = topk_kernel(dtype, largest, network, given is not None)
    kernel[rows, THREADS](x, x if given is None else given, *targets, n, n, 1, k)
    if targets[0] is not out:
        shaped = (out.reshape(rows, k), places.reshape(rows, k))
        radix_sort(*targets, descending=largest, out=shaped[0], values_out=shaped[1])
