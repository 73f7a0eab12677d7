"""Device arrays: memory where the kernels run, so that a launch copies nothing.

On the emulator that is host memory, on a GPU the GPU's; a program that keeps its data in device arrays runs on either
without a change. There is no arithmetic here: numpy, torch and CuPy have that.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any

import numpy as np

from ..errors import LaunchError, caller
from ..launch import Buffer
from ..types import ScalarType, dtype_of
from .device import choose, driver
from ..launch.arrays import View, contiguous_strides, dtype_name

__all__ = ["DeviceArray", "empty", "to_device", "zeros"]

_emulated: weakref.WeakSet[DeviceArray] = weakref.WeakSet()
"""The emulator's memory: every array of it that somebody still holds."""
_ALIGNMENT = 256
"""What cuMemAlloc gives; the emulator's arrays have it too, so that vector accesses mean the same on both."""


class DeviceArray:
    """A C-contiguous array on the device.

    >>> x = to_device(np.arange(6, dtype=np.float32).reshape(2, 3), backend="emulator")
    >>> x
    DeviceArray(shape=(2, 3), dtype=float32, backend='emulator')
    >>> x.numpy()[1]
    array([3., 4., 5.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_host", "address", "backend", "device", "dtype", "owner", "shape", "unwritten")

    address: int
    """Where the first element is, in the memory of the device."""
    device: int | None
    """The ordinal of the GPU; None for the emulator's."""
    owner: object
    """Who keeps the memory, where the array does not."""
    unwritten: Any
    """For the sanitizer: which bytes nobody has written yet (True for all); None where that is not known."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], backend: str) -> None:
        self.shape, self.dtype, self.backend = shape, dtype, backend
        self._host: np.ndarray[Any, Any] | None = None
        self.device = self.owner = None
        self.unwritten = None
        if backend == "gpu":
            gpu = driver()
            self.address, self.device = gpu.allocate(self.nbytes), gpu.device
            weakref.finalize(self, gpu.free, self.address)
        else:
            memory = np.empty(self.nbytes + _ALIGNMENT, np.uint8)
            start = -memory.ctypes.data % _ALIGNMENT
            self._host = memory[start : start + self.nbytes].view(dtype).reshape(shape)
            self.address = self._host.ctypes.data
            _emulated.add(self)

    @classmethod
    def over(
        cls, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], backend: str, owner: object
    ) -> DeviceArray:
        """An array in memory that is there already, and that ``owner`` keeps."""
        self = cls.__new__(cls)
        self.shape, self.dtype, self.backend, self.address = shape, dtype, backend, address
        self.unwritten, self.owner = None, owner
        self.device = driver().device if backend == "gpu" else None
        self._host = None
        if backend != "gpu":
            memory = np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(address))
            self._host = memory.view(dtype).reshape(shape)
        return self

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def _ptxdsl_view(self) -> View:
        itemsize = self.dtype.itemsize
        strides = contiguous_strides(self.shape, itemsize)
        return View(self.address, dtype_name(self.dtype), itemsize, self.shape, strides, False, self.device, self)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory, when all work submitted to the device is done."""
        if self._host is not None:
            return self._host.copy()
        host: np.ndarray[Any, Any] = np.empty(self.shape, self.dtype)
        driver().to_host(host, self.address)
        return host

    def copy_to_host(self) -> np.ndarray[Any, Any]:
        """The same under the name that Numba gives it."""
        return self.numpy()

    def copy_from(self, values: Any) -> None:
        """Overwrite the contents; ``values`` must have the same shape and dtype."""
        source = np.asarray(values, order="C")  # ascontiguousarray makes one dimension of none
        if source.shape != self.shape or source.dtype != self.dtype:
            raise LaunchError(
                f"an array of {source.dtype.name}, shape {source.shape} cannot fill one of {self.dtype.name}, "
                f"shape {self.shape}", loc=caller(),
            )
        self.unwritten = None
        if self._host is not None:
            self._host[...] = source
        else:
            driver().to_device(self.address, source)

    def view(self, dtype: Any) -> DeviceArray:
        """The same memory as elements of another type, in one dimension if their size differs."""
        kind = dtype_of(dtype) if isinstance(dtype, ScalarType) else np.dtype(dtype)
        if self.nbytes % kind.itemsize:
            raise LaunchError(f"{self.nbytes} bytes are no whole number of {kind.name}", loc=caller())
        shape = self.shape if kind.itemsize == self.dtype.itemsize else (self.nbytes // kind.itemsize,)
        return DeviceArray.over(self.address, shape, kind, self.backend, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False and self._host is None:
            raise ValueError("an array on the GPU cannot become a numpy array without a copy")
        host: np.ndarray[Any, Any] = self._host if self._host is not None and not copy else self.numpy()
        if host is self._host:
            self.unwritten = None
        return host if dtype is None else host.astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        """The protocols, each where it can be kept: the GPU's on the GPU, DLPack on the host."""
        if name == "__cuda_array_interface__" and self.backend == "gpu":
            return {
                "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3,
                "stream": 1,
            }
        if name in ("__dlpack__", "__dlpack_device__") and self._host is not None:
            self.unwritten = None
            return getattr(self._host, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype.name}, backend={self.backend!r})"


def emulated() -> list[Buffer]:
    """The device arrays in the emulator's memory, as what a launch may reach."""
    return [
        Buffer("a device array", view.address, array.nbytes, view.dtype, view.shape, view.strides, True, array)
        for array in list(_emulated) for view in [array._ptxdsl_view()]
    ]


def empty(shape: int | tuple[int, ...], dtype: Any, *, backend: str | None = None) -> DeviceArray:
    """An array of whatever the memory held. ``dtype`` is numpy's or a scalar type of ptxdsl (``f32``).

    It lives where launches run: on the GPU, or for the emulator in the host's memory. LaunchError for a shape that is
    none, and a dtype that no device has.

    >>> empty((2, 3), np.float32, backend="emulator").shape
    (2, 3)
    """
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0 for n in extents):
        raise LaunchError(f"shape {shape!r} is no int or tuple of ints from 0 on", loc=caller())
    kind = dtype_of(dtype) if isinstance(dtype, ScalarType) else np.dtype(dtype)
    if kind.hasobject or not kind.isnative:
        raise LaunchError(f"a device array cannot hold {kind}", loc=caller())
    array = DeviceArray(tuple(int(n) for n in extents), kind, choose(backend))
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
