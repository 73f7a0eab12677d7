"""Whether threads keep to bytes of their own where guards leave out threads of some blocks: address by address.

``if (column < n)`` leaves out the last threads of the last block. What they would touch is in the next row, so that
addresses alone, which execution has for all threads of any block, do not tell the threads apart. What comparisons say
of registers at an access says who makes it. For launches of a few thousand threads: all of them are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from .disjointness import Footprint, apart
from .divergence import Shape3
from .linear_values import EXACT, Part, flat

__all__ = ["are_disjoint_within"]

MOST = 1 << 20
"""Bytes, or units of them, of all threads together, up to which they are compared."""


def are_disjoint_within(accesses: Sequence[tuple[Footprint, tuple[Part, ...]]], grid: Shape3, threads: int) -> bool:
    """Whether what one thread of the grid writes is touched by no other; False where that is not found out.

    Only those threads make an access for whom its parts are within their bounds.
    """
    if prod(grid) * threads * len(accesses) > MOST:
        return False
    coordinates = [each.ravel()[:, None] for each in np.indices(grid)]
    every = np.arange(prod(grid) * threads).reshape(-1, threads)
    masks: dict[tuple[int, ...], Any] = {}
    starts, owners, sizes, writes = [], [], [], []
    for access, bounds in accesses:
        part = flat(access.value)
        if part.step or part.symbols or access.value.bits < EXACT:
            return False
        key = tuple(map(id, bounds))
        if key not in masks:
            masks[key] = _within(bounds, coordinates, every.shape)
        mask = masks[key] if access.threads is None else masks[key] & access.threads
        found = np.broadcast_to(_numbers(part, coordinates), every.shape)[mask]
        starts.append(found)
        owners.append(every[mask])
        sizes.append(np.full(len(found), access.nbytes, np.int64))
        writes.append(np.full(len(found), access.writes))
    first, nbytes, who, write = (np.concatenate(each) for each in (starts, sizes, owners, writes))
    return not len(first) or apart(first, nbytes, who, write, 0, most=MOST)


def _numbers(part: Part, coordinates: list[Any]) -> Any:
    """A part in each block and thread."""
    found = part.const + sum(each * numbers for each, numbers in zip(part.block, coordinates))
    return found if part.vector is None else found + part.vector


def _within(bounds: tuple[Part, ...], coordinates: list[Any], shape: tuple[int, ...]) -> Any:
    """The threads of all blocks for whom these are within their bounds."""
    mask = np.ones(shape, bool)
    for part in bounds:
        numbers = _numbers(part, coordinates)
        for end, holds in ((part.low, np.greater_equal), (part.high, np.less_equal)):
            if end is not None:
                mask &= holds(numbers, end)
    return mask
