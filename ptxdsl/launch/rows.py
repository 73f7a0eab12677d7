"""Which bytes of strided memory go where: a copy in rows, as the driver's pitched copies want them.

A row is as many bytes as lie together on both sides; rows that are evenly apart make one copy. Nothing here touches
memory, so that one of the sides, or both, may be a GPU's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["MAX_PITCH", "Rows", "extent_of", "packed_order", "rows"]

MAX_PITCH = (1 << 31) - 1
"""What CU_DEVICE_ATTRIBUTE_MAX_PITCH is on every GPU: rows that are further apart are copied one by one."""


class Rows(NamedTuple):
    """``height`` rows of ``width`` bytes, one ``to_pitch`` and ``source_pitch`` behind the other."""

    to: int
    source: int
    width: int
    height: int
    to_pitch: int
    source_pitch: int


def rows(
    shape: Sequence[int], itemsize: int, to: tuple[int, Sequence[int]], source: tuple[int, Sequence[int]]
) -> Iterator[Rows]:
    """The copies that bring elements from one layout to another; a layout is an address and strides in bytes.

    >>> list(rows((4, 3), 2, (0, (6, 2)), (100, (10, 2))))
    [Rows(to=0, source=100, width=6, height=4, to_pitch=6, source_pitch=10)]
    >>> list(rows((4, 3), 2, (0, (6, 2)), (100, (6, 2))))
    [Rows(to=0, source=100, width=24, height=1, to_pitch=24, source_pitch=24)]
    """
    if 0 in shape:
        return
    (first, second), axes = _upwards(shape, to, source)
    axes = _merged([*axes, (itemsize, 1, 1)])
    width = axes.pop()[0]
    height, pitches = 1, (width, width)
    if axes and all(width <= step <= MAX_PITCH for step in axes[-1][1:]):
        height, *steps = axes.pop()
        pitches = steps[0], steps[1]
    for place in itertools.product(*(range(extent) for extent, _, _ in axes)):
        there = sum(n * step for n, (_, step, _) in zip(place, axes))
        here = sum(n * step for n, (_, _, step) in zip(place, axes))
        yield Rows(first + there, second + here, width, height, *pitches)


def _upwards(
    shape: Sequence[int], to: tuple[int, Sequence[int]], source: tuple[int, Sequence[int]]
) -> tuple[tuple[int, int], list[tuple[int, int, int]]]:
    """Addresses and axes of which none goes downwards in the target, the largest steps there first."""
    first, second, axes = to[0], source[0], []
    for extent, there, here in zip(shape, to[1], source[1]):
        if extent == 1:
            continue
        if there < 0:
            first, second = first + (extent - 1) * there, second + (extent - 1) * here
            there, here = -there, -here
        axes.append((extent, there, here))
    return (first, second), sorted(axes, key=lambda axis: -axis[1])


def _merged(axes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The same elements by fewer axes."""
    merged = [axes[0]]
    for extent, there, here in axes[1:]:
        count, outer_there, outer_here = merged[-1]
        if (outer_there, outer_here) == (extent * there, extent * here):
            merged[-1] = count * extent, there, here
        else:
            merged.append((extent, there, here))
    return merged


def packed_order(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """The axes of an array in the order of memory, so that a dense array of that order is copied in few rows.

    >>> packed_order((2, 3, 4), (4, 8, 24))
    (2, 1, 0)
    """
    return tuple(sorted(range(len(shape)), key=lambda axis: (-abs(strides[axis]), axis)))


def extent_of(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The bytes before the first element, and from it on, within which all elements lie."""
    if not math.prod(shape):
        return 0, 0
    reach = [(n - 1) * step for n, step in zip(shape, strides)]
    return -sum(step for step in reach if step < 0), sum(step for step in reach if step > 0) + itemsize
