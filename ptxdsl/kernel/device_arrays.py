"""New device arrays, on the backend that launches take; and memory of the host that GPUs reach quickly."""

from __future__ import annotations

import copyreg
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import LaunchError, PtxTypeError, caller, did_you_mean, similar, with_article
from ..options import checked_options
from ..launch.arrays import Unreadable, View, contiguous_strides, describe, readable, view_by_dlpack
from ..launch.device_array import DeviceArray, PartialArray
from ..launch.device_copies import host_array, numpy_dtype, store
from ..launch.device_memory import aligned
from ..launch.dlpack import shown
from ..types import TYPES, ScalarType, dtype_of, type_meant, type_named
from .backends import choose, device_memory

__all__ = ["DeviceArray", "empty", "from_dlpack", "managed", "pinned", "to_device", "zeros"]


def _described(shape: int | tuple[int, ...], dtype: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """A shape and a dtype that a device can have."""
    extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in extents):
        raise LaunchError(f"shape {shape!r} is no int or tuple of ints from 0 on", loc=caller())
    kind = _dtype(dtype)
    if kind.hasobject or not kind.isnative:
        raise LaunchError(f"a device array cannot hold {kind}", loc=caller())
    return tuple(int(n) for n in extents), kind


def _dtype(given: Any) -> np.dtype[Any]:
    """The dtype that is meant: numpy's, that of a scalar type, or of what another library calls one."""
    numpys: np.dtype[Any] | None = None
    meant = given if isinstance(given, ScalarType) else type_named(given) if isinstance(given, str) else None
    if not isinstance(given, ScalarType):
        try:
            numpys = np.dtype(given)
        except TypeError:
            meant = meant or type_meant(given)
    try:
        found = numpys if meant is None else dtype_of(meant)
    except PtxTypeError as error:
        hint = "take an unsigned type for the bits: `u32`"
        raise LaunchError(error.message, loc=caller(), hint=hint) from error
    if found is None:
        near = similar(given, (*np.sctypeDict, *TYPES)) if isinstance(given, str) else []
        hint = did_you_mean(near, "{!r}", "`f32` or `np.float32`") or ""
        raise LaunchError(f"{given!r} is no dtype", loc=caller(), hint=hint)
    if numpys is not None and numpys != found and numpys.itemsize <= 8:  # no kernel has numpy's "f16", a float128
        raise LaunchError(
            f"{given!r} is {found} in PTX and {numpys} in numpy", loc=caller(),
            hint=f"`ptxdsl.{given}` or `np.{numpys}`",
        )
    return found


@checked_options(LaunchError, "empty")
def empty(
    shape: int | tuple[int, ...], dtype: Any, *, device: int | None = None, backend: str | None = None
) -> DeviceArray:
    """An array of whatever the memory held. ``dtype`` is numpy's or a scalar type of ptxdsl, or its name.

    It lives where launches run: on the GPU, or for the emulator in the host's memory. ``device`` is the GPU's ordinal,
    that of :func:`~ptxdsl.device` if it is None; the emulator has one memory for all. LaunchError for a shape that is
    none, a dtype that no device has, and a GPU that is not there.

    >>> empty((2, 3), np.float32, backend="emulator").shape
    (2, 3)
    """
    array = DeviceArray(*_described(shape, dtype), device_memory(backend, device))
    array.unwritten = True if array.device is None else None
    return array


@checked_options(LaunchError, "zeros")
def zeros(
    shape: int | tuple[int, ...], dtype: Any, *, device: int | None = None, backend: str | None = None
) -> DeviceArray:
    """An array of zeros.

    >>> zeros(3, np.int32, backend="emulator").numpy()
    array([0, 0, 0], dtype=int32)
    """
    array = empty(shape, dtype, device=device, backend=backend)
    store(array, np.broadcast_to(np.zeros((), array.dtype), array.shape), new=True)
    return array


@checked_options(LaunchError, "to_device")
def to_device(values: Any, *, device: int | None = None, backend: str | None = None) -> DeviceArray:
    """A copy of ``values`` (an array or what numpy makes one of) on the device, where launches take it without a copy.

    It is complete when the call returns, for every stream. Arrays that are on a GPU, of any library, are copied there.

    >>> to_device([1, 2, 3], backend="emulator").numpy()
    array([1, 2, 3])
    """
    source: Any = values if isinstance(values, DeviceArray) else _on_gpu(values)
    if source is None:
        source = host_array(values)
    array = empty(source.shape, source.dtype, device=device, backend=backend)
    store(array, source, new=True)
    return array


def _on_gpu(values: Any) -> DeviceArray | None:
    """An array of another library on a GPU."""
    seen = None if isinstance(values, (np.ndarray, np.generic)) else readable(values)
    return None if seen is None or seen.device is None else _over(seen, wait=True)


def _over(seen: View, *, wait: bool) -> DeviceArray:
    """Memory of another library as a device array; ``wait`` for all that its GPU was asked to do."""
    memory: Any = None if seen.device is None else device_memory("gpu", seen.device)
    if memory is not None:
        (memory.rest if wait else memory.settle)()
    return DeviceArray.over(
        seen.address, seen.shape, numpy_dtype(seen), memory, seen.owner, strides=seen.strides, readonly=seen.readonly
    )


@checked_options(LaunchError, "from_dlpack")
def from_dlpack(array: Any, /, *, device: int | None = None, copy: bool | None = None) -> DeviceArray:
    """The memory of an array that speaks DLPack, as a device array: one of the host's for the emulator.

    It keeps the memory alive. ``device`` is where it is wanted, which takes a copy if it is elsewhere; with
    ``copy=True`` it is a copy in any case, and with ``copy=False`` BufferError is raised where one would be needed.

    >>> x = np.arange(6).reshape(2, 3)
    >>> y = from_dlpack(x)
    >>> y[0, 1:] = 7
    >>> x
    array([[0, 7, 7],
           [3, 4, 5]])
    """
    try:
        seen = view_by_dlpack(array)
    except Unreadable as error:
        name = with_article(type(array).__name__)
        raise LaunchError(f"{name}, which {error}, is no source of DLPack", loc=caller()) from error
    if seen is None:
        raise LaunchError(
            f"{describe(array)} has no DLPack that ptxdsl reads", loc=caller(), hint="`ptxdsl.to_device(array)` copies"
        )
    found = _over(seen, wait=False)
    moves = device is not None and found.device is not None and device != found.device
    if copy is False and moves:
        raise BufferError(f"an array on GPU {found.device} is on GPU {device} as a copy only")
    if moves:
        assert device is not None
        return found.to(device)
    return found.copy() if copy else found


@checked_options(LaunchError, "managed")
def managed(
    shape: int | tuple[int, ...], dtype: Any, *, device: int | None = None, backend: str | None = None
) -> DeviceArray:
    """An array of whatever the memory held, which the host and all GPUs have at one address.

    Launches take it as any device array. ``np.asarray(x)`` is the same memory, when the launches so far are done: ask
    for it again after the next launch, since the host must not touch the memory while a kernel may run.

    >>> x = managed(3, np.int32, backend="emulator")
    >>> np.asarray(x)[:] = [1, 2, 3]
    >>> x.numpy()
    array([1, 2, 3], dtype=int32)
    """
    array = DeviceArray(*_described(shape, dtype), device_memory(backend, device), managed=True)
    array.unwritten = True if array.device is None else None
    return array


class _Pinned:
    """What keeps pinned memory, as the base of arrays."""

    def __init__(self, memory: Any, nbytes: int) -> None:
        self.address: int = memory.allocate_pinned(nbytes)
        weakref.finalize(self, memory.free_pinned, self.address).atexit = False


@checked_options(LaunchError, "pinned")
def pinned(
    shape: int | tuple[int, ...], dtype: Any, *, device: int | None = None, backend: str | None = None
) -> np.ndarray[Any, Any]:
    """An array of numpy's of whatever the memory held, in memory that stays where it is (page-locked).

    A GPU copies from it and to it faster, and beside all else. It is given back with the last array that shows it. For
    the emulator it is memory as any other.

    >>> x = pinned((2, 3), np.float32, backend="emulator")
    >>> type(x), x.shape, x.dtype
    (<class 'numpy.ndarray'>, (2, 3), dtype('float32'))
    """
    (extents, kind), memory = _described(shape, dtype), device_memory(backend, device)
    nbytes = math.prod(extents) * kind.itemsize
    if memory is None or not nbytes:
        return aligned(extents, kind)
    kept = _Pinned(memory, nbytes)
    return shown(kept.address, extents, contiguous_strides(extents, kind.itemsize), kind, kept)


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


for _kind in (DeviceArray, PartialArray):
    copyreg.pickle(_kind, _reduced)
