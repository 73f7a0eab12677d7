"""Which bytes of a device array were never written, where several arrays look at the same memory.

The memory has one record, of the array that it was allocated for: True for all bytes, None where nothing is known or
all are written, a mask, or what the sanitizer keeps, whose ``mask()`` is one. A part of the array reads and changes its
own bytes in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LARGEST_MASK", "of_range", "with_range", "written"]

LARGEST_MASK = 1 << 28
"""Of larger memory in parts nothing is known, since a mask has a byte for each of its bytes."""


def of_range(record: Any, start: int, nbytes: int) -> Any:
    """The record of a part of the memory."""
    if record is None or record is True:
        return record
    found = _mask(record)[start : start + nbytes]
    return found.copy() if found.any() else None  # the mask is changed in place, and who has asked may keep it


def with_range(record: Any, total: int, start: int, nbytes: int, values: Any) -> Any:
    """The record of ``total`` bytes after a part of them has become as ``values`` says: None, True or a mask."""
    mask = _own_mask(record, total)
    if mask is not None:
        mask[start : start + nbytes] = False if values is None else values
    return mask


def written(
    record: Any, total: int, start: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> Any:
    """The record of ``total`` bytes after the elements of an array that begins at ``start`` were written."""
    if 0 in shape:
        return record
    mask = _own_mask(record, total)
    if mask is not None:
        np.ndarray((*shape, itemsize), bool, mask, start, (*strides, 1))[...] = False
    return mask


def _own_mask(record: Any, total: int) -> Any:
    if record is None or record is True:
        return np.ones(total, bool) if record and total <= LARGEST_MASK else None
    return _mask(record)


def _mask(record: Any) -> Any:
    return record.mask() if hasattr(record, "mask") else record
