"""Sorting: radix sort of keys and of pairs, of places, of rows and of segments; stable."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .. import cdiv, s64

from . import arguments, storage
from .scan import workspace
from .sort_kernels import DIGITS, THREADS, Sorted, count_kernel, pass_kernel, row_kernel, start_kernel, tile_size

__all__ = ["argsort", "radix_sort", "segmented_sort"]

_COUNT_BLOCKS = 512
_ROW = 1 << 16
"""Rows up to this length are sorted by a block each; longer ones by all blocks, one row after the other."""
VALUES = [*storage.NUMBERS, "bool"]


def radix_sort(
    keys: Any, values: Any = None, *, descending: bool = False, out: Any = None, values_out: Any = None
) -> Any:
    """Keys in order along the last axis, and values as their keys: a stable sort.

    Args:
        keys: Any shape with one axis at least, below 2^30 elements a row; integers of 8 to 64 bits or floats.
        values: An array of the same shape and any dtype, or None.
        descending: The greatest first; equal keys stay in their order here too.
        out, values_out: Where to put keys and values; new arrays of their kinds if None.

    Floats are in numpy's order: -0 and 0 are equal, NaNs are greater than all else. Bits are kept as they are.

    Returns:
        ``out``, or with values ``(out, values_out)``.

    Raises:
        LaunchError: A dtype or shape that does not fit. Nothing ran.

    >>> radix_sort(np.array([3, -1, 2], np.int32))
    array([-1,  2,  3], dtype=int32)
    >>> radix_sort(np.array([3.0, -1.0, 2.0]), np.array([10, 20, 30]), descending=True)
    (array([ 3.,  2., -1.]), array([10, 30, 20]))
    """
    shape = arguments.expect_array("keys", keys, storage.NUMBERS)
    dtype = arguments.scalar_type("keys", keys)
    if not shape:
        raise arguments.wrong("`keys` has no axis to sort along", hint="`keys.reshape(1)`")
    what = Sorted(dtype, arguments.flag("descending", descending), _bits(values, shape))
    out = arguments.output(out, keys, shape, dtype, keys=keys, values=values)
    made = _values_out(values, values_out, shape, out, keys=keys)
    _sort(what, keys, values, out, made, shape)
    return out if values is None else (out, made)


def argsort(keys: Any, *, descending: bool = False, out: Any = None) -> Any:
    """The places of the keys in order, along the last axis: int64, those of equal keys ascending.

    Arguments, order and errors are those of :func:`radix_sort`.

    >>> argsort(np.array([[3, 1, 2], [5, 5, 4]]))
    array([[1, 2, 0],
           [2, 0, 1]])
    """
    shape = arguments.expect_array("keys", keys, storage.NUMBERS)
    dtype = arguments.scalar_type("keys", keys)
    if not shape:
        raise arguments.wrong("`keys` has no axis to sort along", hint="`keys.reshape(1)`")
    out = arguments.output(out, keys, shape, s64, keys=keys)
    what = Sorted(dtype, arguments.flag("descending", descending), 64, places=True)
    _sort(what, keys, None, arguments.empty_like(keys, shape, dtype), out, shape)
    return out


def segmented_sort(
    keys: Any, offsets: Any, values: Any = None, *, descending: bool = False, out: Any = None, values_out: Any = None
) -> Any:
    """Sort keys[offsets[i]:offsets[i + 1]] for each i, each segment for itself; a block sorts a segment.

    Args:
        keys: One axis, below 2^30 elements; dtypes and order of :func:`radix_sort`.
        offsets: int64 ``[segments + 1]``, ascending from 0 to the number of keys; checked of numpy's arrays only.
        values, descending, out, values_out: As of :func:`radix_sort`.

    >>> segmented_sort(np.array([3, 1, 2, 9, 8], np.uint8), np.array([0, 3, 5]))
    array([1, 2, 3, 8, 9], dtype=uint8)
    """
    shape = arguments.expect("keys", keys, ["N"], storage.NUMBERS)
    (bounds,) = arguments.expect("offsets", offsets, ["segments + 1"], ["int64"])
    if bounds < 1:
        raise arguments.wrong("`offsets` is empty; it has a number more than there are segments")
    if isinstance(offsets, np.ndarray):
        steps = offsets[1:] < offsets[:-1]
        if offsets[0] != 0 or offsets[-1] != shape[0] or steps.any():
            raise arguments.wrong(f"`offsets` must ascend from 0 to {shape[0]}, the number of keys")
    dtype = arguments.scalar_type("keys", keys)
    what = Sorted(dtype, arguments.flag("descending", descending), _bits(values, shape))
    out = arguments.output(out, keys, shape, dtype, keys=keys, values=values, offsets=offsets)
    made = _values_out(values, values_out, shape, out, keys=keys, offsets=offsets)
    if bounds > 1:
        _rows(what, keys, values, out, made, offsets, bounds - 1, shape[0])
    return out if values is None else (out, made)


# ---------------------------------------------------------------------------------------------------------------------


def _bits(values: Any, shape: tuple[int, ...]) -> int:
    """The bits of a value, 0 where there are none."""
    if values is None:
        return 0
    values = arguments.dense(values) if hasattr(values, "shape") else values
    arguments.expect("values", values, list(shape), VALUES)
    return arguments.scalar_type("values", values).bytes * 8


def _values_out(values: Any, values_out: Any, shape: tuple[int, ...], out: Any, **others: Any) -> Any:
    """Where the values go; None where there are none."""
    if values is None:
        if values_out is not None:
            raise arguments.wrong("`values_out` is given, and there are no `values`")
        return None
    dtype = arguments.scalar_type("values", values)
    made = arguments.output(values_out, values, shape, dtype, name="values_out", values=values, **others)
    arguments.expect_output(out, values_out=made)
    return made


def _sort(what: Sorted, keys: Any, values: Any, out: Any, values_out: Any, shape: tuple[int, ...]) -> None:
    n, rows = shape[-1], prod(shape[:-1])
    if n >= 1 << 30:
        raise arguments.wrong(f"`keys` has rows of {n}; they must have fewer than 2**30 elements")
    if not n * rows:
        return
    if rows > 1 and n <= _ROW:
        _rows(what, keys, values, out, values_out, None, rows, n)
        return
    dense = [None if a is None else arguments.dense(a).reshape(rows, n) for a in (keys, values, out, values_out)]
    for row in range(rows):
        _one_row(what, n, *(None if array is None else array[row] for array in dense))


def _one_row(what: Sorted, n: int, keys: Any, values: Any, out: Any, values_out: Any) -> None:
    passes, tiles = what.dtype.bits // 8, cdiv(n, tile_size(what))
    each = 1 + tiles * (DIGITS // 2)
    words = workspace(keys, passes * (each + DIGITS // 2))
    counts = words[passes * each :]
    blocks = min(cdiv(n, THREADS * 4), _COUNT_BLOCKS)
    count_kernel(what._replace(value_bits=0, places=False))[blocks, THREADS](keys, counts, n)
    start_kernel()[passes, THREADS](counts)

    def launch(number: int, step: Sorted, *arrays: Any) -> None:
        starts, own = counts[number * (DIGITS // 2) :], words[number * each : (number + 1) * each]
        pass_kernel(step)[tiles, THREADS](*arrays, starts, own, n, number * 8)

    _passes(what, keys, values, out, values_out, launch)


def _rows(
    what: Sorted, keys: Any, values: Any, out: Any, values_out: Any, offsets: Any, rows: int, n: int
) -> None:
    def launch(number: int, step: Sorted, *arrays: Any) -> None:
        bounds = arrays[0] if offsets is None else offsets
        row_kernel(step, offsets is None)[rows, THREADS](*arrays, bounds, n, number * 8)

    _passes(what, arguments.dense(keys), values, out, values_out, launch)


def _or(*arrays: Any) -> Any:
    """The first array that is there: a pointer to values that nobody reads needs one of their type."""
    return next(array for array in arrays if array is not None)


def _passes(what: Sorted, keys: Any, values: Any, out: Any, values_out: Any, launch: Callable[..., None]) -> None:
    """One pass for each 8 bits, from array to array so that the last one fills the outputs."""
    passes = what.dtype.bits // 8
    other = arguments.empty_like(out, tuple(out.shape), what.dtype) if passes > 1 else None
    values, values_out = (None if a is None else arguments.bytes_of(a) for a in (values, values_out))
    values_other = None
    if passes > 1 and values_out is not None:
        kind = arguments.scalar_type("values", values_out)
        values_other = arguments.empty_like(values_out, tuple(values_out.shape), kind)
    source = keys, None if values is None else arguments.dense(values)
    for number in range(passes):
        last = (passes - 1 - number) % 2 == 0
        target = (out, values_out) if last else (other, values_other)
        step = what._replace(places=what.places and number == 0)
        launch(number, step, source[0], _or(source[1], target[1], source[0]), target[0], _or(target[1], target[0]))
        source = target
