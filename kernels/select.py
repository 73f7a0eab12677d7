"""Picking elements: by a mask, by a condition, the places of what is not 0, one of each run; in one pass, in order.

How many there will be is known on the device alone. Without ``count`` the host waits for that number and the result has
the length; with ``count``, an int64 array of one element, the number goes there and nothing waits: the result is as
long as the input then, and what lies behind the first ``count[0]`` elements is undefined.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from .. import ScalarType, cdiv, s64

from . import arguments, storage
from .functions import expect_function
from .scan import workspace
from .select_kernels import EXAMPLE, THREADS, TILE, lengths_kernel, pack_kernel, runs_kernel

__all__ = ["compact", "nonzero", "partition", "unique", "where"]

_DTYPES = [*storage.NUMBERS, "bool"]


def compact(x: Any, mask: Any, *, out: Any = None, count: Any = None) -> Any:
    """x[mask]: the elements where the mask is True, in their order.

    Args:
        x: Any shape, taken as flat, below 2^31 elements; numbers or bools.
        mask: Bools of x's shape.
        out: One axis of x's size, of which the beginning is filled; a new array of x's kind if None.
        count: int64 ``[1]`` for how many there are, or None: see the module's head.

    Returns:
        ``out``, or without ``count`` the part of it that is filled.

    Raises:
        LaunchError: A dtype or shape that does not fit. Nothing ran.

    >>> import numpy as np
    >>> compact(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    array([1., 3.])
    """
    dtype = _dtype(x)
    mask = _mask(mask, x)
    return _packed("mask", x, mask, dtype, out, count)


def where(x: Any, predicate: Callable[[Any], Any], *, out: Any = None, count: Any = None) -> Any:
    """The elements for which a function holds, in their order.

    Args:
        predicate: A function of an element that gives a predicate, traced as part of the kernel. The element has at
            least 32 bits: of 8 and 16 bits it is an s32 or u32, of float16 and bfloat16 an f32. Give the same function
            each time, not a new lambda, or each call traces it again.
        x, out, count: As of :func:`compact`.

    >>> import numpy as np
    >>> where(np.array([3, -1, 4, -5], np.int32), lambda v: v > 0)
    array([3, 4], dtype=int32)
    """
    dtype = _dtype(x)
    expect_function("predicate", predicate, 1, EXAMPLE)
    return _packed(predicate, x, None, dtype, out, count)


def nonzero(x: Any, *, out: Any = None, count: Any = None) -> Any:
    """The places of the elements that are not 0, in the flattened array: int64 (numpy.flatnonzero).

    Arguments are those of :func:`compact`; ``out`` is int64.

    >>> import numpy as np
    >>> nonzero(np.array([0, 7, 0, 8]))
    array([1, 3])
    """
    dtype = _dtype(x)
    if arguments.dtype_name(x) == "bool":
        return _packed("mask", arguments.bytes_of(x), _mask(x, x), dtype, out, count, places=True)
    return _packed(_not_zero, x, None, dtype, out, count, places=True)


def unique(
    x: Any, *, return_inverse: bool = False, return_counts: bool = False, out: Any = None, count: Any = None
) -> Any:
    """The first element of each run of equal ones; of a sorted array every value once (torch.unique_consecutive).

    Args:
        x: As of :func:`compact`. NaNs are equal to each other.
        return_inverse: Whether the run of each element is wanted, too: int64 of x's shape.
        return_counts: Whether the lengths of the runs are wanted, too: int64, one for each.
        out, count: As of :func:`compact`; with ``count`` the lengths are as long as x, too.

    Returns:
        ``out``, or a tuple of it, the inverse and the counts, as far as these are wanted.

    >>> import numpy as np
    >>> unique(np.array([1, 1, 2, 5, 5, 1]))
    array([1, 2, 5, 1])
    >>> unique(np.array([1, 1, 2, 5, 5, 1]), return_inverse=True, return_counts=True)
    (array([1, 2, 5, 1]), array([0, 0, 1, 2, 2, 3]), array([2, 1, 2, 1]))
    """
    dtype = _dtype(x)
    wanted = arguments.flag("return_inverse", return_inverse), arguments.flag("return_counts", return_counts)
    return _runs(x, dtype, *wanted, out, count) if any(wanted) else _packed("run", x, None, dtype, out, count)


def partition(x: Any, mask: Any, *, out: Any = None, count: Any = None) -> tuple[Any, Any]:
    """The elements where the mask is True, then the others, both in their order; and how many are the first.

    Arguments are those of :func:`compact`; all of ``out`` is filled.

    Returns:
        ``(out, count)``, the count an int64 array ``[1]``; nothing waits.

    >>> import numpy as np
    >>> partition(np.array([1, 2, 3, 4]), np.array([False, True, False, True]))
    (array([2, 4, 1, 3]), array([2]))
    """
    dtype = _dtype(x)
    mask = _mask(mask, x)
    count = _count(count, x)
    out = _packed("mask", x, mask, dtype, out, count)
    return _packed("unmasked", x, mask, dtype, out, count), count


# ---------------------------------------------------------------------------------------------------------------------


def _not_zero(value: Any) -> Any:
    return ~(value == 0.0) if value.type.is_float else value != 0


def _dtype(x: Any) -> ScalarType:
    shape = arguments.expect_array("x", x, _DTYPES)
    if prod(shape) >= 1 << 31:
        raise arguments.wrong(f"`x` has {prod(shape)} elements; they must be fewer than 2**31")
    return arguments.scalar_type("x", x)


def _mask(mask: Any, x: Any) -> Any:
    mask = arguments.dense(mask) if hasattr(mask, "shape") else mask
    arguments.expect("mask", mask, [int(extent) for extent in x.shape], ["bool"])
    return mask


def _count(count: Any, x: Any) -> Any:
    return arguments.output(count, x, (1,), s64, name="count")


def _packed(
    which: Any, x: Any, mask: Any, dtype: ScalarType, out: Any, count: Any, places: bool = False
) -> Any:
    n = prod(x.shape)
    out = arguments.output(out, x, (n,), s64 if places else dtype, x=x, mask=mask)
    told = _count(count, x)
    arguments.expect_output(told, name="count", x=x, mask=mask, results=out)
    tiles = max(cdiv(n, TILE), 1)
    x, bytes_ = (None if a is None else arguments.bytes_of(arguments.dense(a)) for a in (x, mask))
    words = workspace(x, 2 * tiles + 1)
    kernel = pack_kernel(which, dtype, places)
    kernel[tiles, THREADS](x, x if bytes_ is None else bytes_, arguments.bytes_of(out), words, told, n, tiles)
    if count is not None:
        return out
    return out[: told.item()]


def _runs(x: Any, dtype: ScalarType, inverse: bool, counts: bool, out: Any, count: Any) -> tuple[Any, ...]:
    n = prod(x.shape)
    out, told = arguments.output(out, x, (n,), dtype, x=x), _count(count, x)
    arguments.expect_output(told, name="count", x=x, results=out)
    tiles = max(cdiv(n, TILE), 1)
    starts, lengths = (arguments.empty_like(x, (n,), s64) for _ in range(2))
    runs = arguments.empty_like(x, tuple(x.shape), s64) if inverse else starts
    source, words = arguments.bytes_of(arguments.dense(x)), workspace(x, 2 * tiles + 1)
    runs_kernel(dtype, inverse)[tiles, THREADS](
        source, arguments.bytes_of(out), starts, runs, words, told, n, tiles
    )
    if counts and n:
        lengths_kernel()[cdiv(n, THREADS), THREADS](starts, told, lengths, n)
    many = slice(None) if count is not None else slice(told.item())
    return out[many], *([runs] if inverse else []), *([lengths[many]] if counts else [])
