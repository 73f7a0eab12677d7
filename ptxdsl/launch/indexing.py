"""Parts of an array by numpy's rules, of arrays that only stand for the memory and must not be read."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..errors import LaunchError, caller, with_article

__all__ = ["indexed", "reshaped", "retyped"]


def indexed(layout: np.ndarray[Any, Any], key: Any) -> np.ndarray[Any, Any]:
    """A part by ints, slices, ``...`` and None; LaunchError for other keys, with which numpy would read the memory."""
    keys = key if isinstance(key, tuple) else (key,)
    for each in keys:
        if not (each is None or each is ... or isinstance(each, slice) or _is_int(each)):
            raise LaunchError(
                "a device array is indexed by ints, slices, `...` and None, not by "
                + with_article(type(each).__name__), loc=caller(),
                hint="`x.numpy()[...]` is a copy that numpy indexes",
            )
    whole = any(each is ... for each in keys)
    part: np.ndarray[Any, Any] = layout[keys if whole else (*keys, ...)]  # without `...`, of ints alone, it is a number
    return part


def _is_int(key: object) -> bool:
    if isinstance(key, (bool, np.bool_)):
        return False
    try:
        operator.index(key)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def reshaped(layout: np.ndarray[Any, Any], shape: Any, contiguous: bool) -> np.ndarray[Any, Any]:
    """The array in another shape; LaunchError where that takes a copy."""
    if contiguous:
        return layout.reshape(shape)
    dense = np.lib.stride_tricks.as_strided(np.empty(1, np.uint8), layout.shape, (0,) * layout.ndim)
    wanted = dense.reshape(shape).shape
    try:
        return _viewed(layout, wanted)
    except (AttributeError, ValueError):
        raise LaunchError(
            f"an array of shape {layout.shape}, strides {layout.strides} has no shape {wanted} without a copy",
            loc=caller(), hint=f"`x.copy().reshape({', '.join(map(str, wanted))})`",
        ) from None


def _viewed(layout: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    try:
        return np.reshape(layout, shape, copy=False)
    except TypeError:  # numpy before 2.1
        made = layout.view()
        made.shape = shape
        return made


def retyped(layout: np.ndarray[Any, Any], kind: np.dtype[Any], contiguous: bool) -> np.ndarray[Any, Any]:
    """The array as elements of another type, in one dimension if their size differs."""
    if kind.itemsize == layout.itemsize:
        return layout.view(kind)
    if layout.nbytes % kind.itemsize:
        raise LaunchError(f"{layout.nbytes} bytes are no whole number of {kind.name}", loc=caller())
    if not contiguous:
        raise LaunchError(
            f"an array of strides {layout.strides} cannot be seen as {kind.name}, whose size differs",
            loc=caller(), hint=f"`x.copy().view({kind.name!r})`",
        )
    return layout.reshape(-1).view(np.uint8).view(kind) if layout.size else np.empty(0, kind)
