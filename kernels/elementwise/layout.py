"""How the arrays of an elementwise kernel are walked: few dimensions, and vectors where they lie together.

Neighbouring dimensions that all arrays pass through evenly become one, so that arrays that are contiguous and of one
shape have a single dimension. An array that is broadcast along a dimension has an extent of 1 there.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from .. import arguments
from ..storage import BYTES

__all__ = ["Walk", "walk"]


class Walk(NamedTuple):
    """``extents`` are those of the dimensions that are left; ``varies`` says of each array along which it goes on."""

    extents: tuple[int, ...]
    varies: tuple[tuple[bool, ...], ...]
    views: list[Any]
    """Each array with these dimensions, and one of extent 1 behind them where the kernel takes strides."""
    width: int
    """Elements that a thread takes along the last dimension."""
    flat: bool
    """Whether no array needs strides."""


def walk(shape: tuple[int, ...], arrays: list[Any], per_thread: int) -> Walk:
    """The walk through arrays that are broadcast to ``shape``, which is not empty, in vectors of ``per_thread``."""
    if all(tuple(array.shape) == shape and arguments.is_contiguous(array) for array in arrays):
        width = per_thread if arguments.is_aligned(BYTES, *arrays) else 1
        return Walk((math.prod(shape),), ((True,),) * len(arrays), arrays, width, True)
    steps = [_steps(array, shape) for array in arrays]
    kept = [dim for dim, extent in enumerate(shape) if extent > 1]
    groups: list[list[int]] = []
    for dim in kept:
        if groups and all(each[groups[-1][-1]] == each[dim] * shape[dim] for each in steps):
            groups[-1].append(dim)
        else:
            groups.append([dim])
    extents = tuple(math.prod(shape[dim] for dim in group) for group in groups) or (1,)
    varies = tuple(
        tuple(each[group[-1]] != 0 for group in groups) if groups else (True,) for each in steps
    )
    last = [each[groups[-1][-1]] if groups else 1 for each in steps]
    dense = len(extents) == 1 and all(step in (0, 1) for step in last)
    views = [
        _view(array, [e if v else 1 for e, v in zip(extents, along)], dense) for array, along in zip(arrays, varies)
    ]
    width = per_thread
    if any(step > 1 for step in last) or not _vectors(extents, views, width, dense):
        width = 1
    return Walk(extents, varies, views, width, dense)


def _steps(array: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides in elements along the dimensions of ``shape``; 0 where the array is broadcast."""
    own = [0 if extent == 1 else step for extent, step in zip(array.shape, arguments.strides(array))]
    return (0,) * (len(shape) - len(own)) + tuple(own)


def _view(array: Any, extents: list[int], dense: bool) -> Any:
    """The array with these extents, whose elements are all that it has; along steps of 0 it has one."""
    own = arguments.strides(array)
    if any(step == 0 and extent > 1 for extent, step in zip(array.shape, own)):
        array = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in own)]
    return array.reshape(tuple(extents) if dense else (*extents, 1))


def _vectors(extents: tuple[int, ...], views: list[Any], width: int, dense: bool) -> bool:
    """Whether each vector along the last dimension is aligned."""
    for view in views:
        size = view.dtype.itemsize if hasattr(view.dtype, "itemsize") else view.element_size()
        wanted = min(BYTES, width * size)
        if not arguments.is_aligned(wanted, view):
            return False
        outer = [step for extent, step in zip(view.shape[:-2], arguments.strides(view)) if extent > 1]
        if not dense and any(step * size % wanted for step in outer):
            return False
    return dense or extents[-1] % width == 0
