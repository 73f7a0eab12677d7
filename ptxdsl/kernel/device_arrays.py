"""New device arrays, on the backend that launches take."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import LaunchError, caller
from ..launch.device_array import DeviceArray
from ..types import ScalarType, dtype_of
from .backends import choose, device_memory

__all__ = ["DeviceArray", "empty", "to_device", "zeros"]


def empty(shape: int | tuple[int, ...], dtype: Any, *, backend: str | None = None) -> DeviceArray:
    """An array of whatever the memory held. ``dtype`` is numpy's or a scalar type of ptxdsl (``f32``).

    It lives where launches run: on the GPU, or for the emulator in the host's memory. LaunchError for a shape that is
    none, and a dtype that no device has.

    >>> empty((2, 3), np.float32, backend="emulator").shape
    (2, 3)
    """
    extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in extents):
        raise LaunchError(f"shape {shape!r} is no int or tuple of ints from 0 on", loc=caller())
    kind = dtype_of(dtype) if isinstance(dtype, ScalarType) else np.dtype(dtype)
    if kind.hasobject or not kind.isnative:
        raise LaunchError(f"a device array cannot hold {kind}", loc=caller())
    array = DeviceArray(tuple(int(n) for n in extents), kind, device_memory(backend))
    array.unwritten = True if array.device is None else None
    return array


def zeros(shape: int | tuple[int, ...], dtype: Any, *, backend: str | None = None) -> DeviceArray:
    """An array of zeros.

    >>> zeros(3, np.int32, backend="emulator").numpy()
    array([0, 0, 0], dtype=int32)
    """
    array = empty(shape, dtype, backend=backend)
    array.copy_from(np.zeros(array.shape, array.dtype))
    return array


def to_device(values: Any, *, backend: str | None = None) -> DeviceArray:
    """A copy of ``values`` (an array or what numpy makes one of) on the device, where launches take it without a copy.

    >>> to_device([1, 2, 3], backend="emulator").numpy()
    array([1, 2, 3])
    """
    source = np.asarray(values)
    array = empty(source.shape, source.dtype, backend=backend)
    array.copy_from(source)
    return array


def _reduced(array: DeviceArray) -> tuple[Callable[..., DeviceArray], tuple[Any, ...]]:
    """A device array is pickled by its values: an address means nothing elsewhere.

    One that lies where launches run comes to lie where launches run in the process that it is unpickled in, another one
    on the same backend.
    """
    values = array.numpy() if array.backend == "gpu" else array._host
    usual = array.backend == choose(None)
    return _restored, (values, None if usual else array.backend, array.unwritten is True)


def _restored(values: np.ndarray[Any, Any], backend: str | None, unwritten: bool) -> DeviceArray:
    array = to_device(values, backend=backend)
    if unwritten and array.device is None:
        array.unwritten = True
    return array


copyreg.pickle(DeviceArray, _reduced)
