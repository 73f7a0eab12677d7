"""Device arrays: memory where the kernels run, so that a launch copies nothing.

On the emulator that is host memory, on a GPU the GPU's; a program that keeps its data in device arrays runs on either
without a change. There is no arithmetic here: numpy, torch and CuPy have that.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from typing import Any, Protocol

import numpy as np

from ..errors import LaunchError, caller
from ..types import ScalarType, dtype_of
from .arrays import View, contiguous_strides, dtype_name
from .geometry import Buffer, TracksWrites

__all__ = ["DeviceArray", "DeviceMemory", "in_host_memory"]

_in_host_memory: weakref.WeakSet[DeviceArray] = weakref.WeakSet()
_ALIGNMENT = 256
"""What cuMemAlloc gives; the emulator's arrays have it too, so that vector accesses mean the same on both."""


class DeviceMemory(Protocol):
    """The memory of a GPU."""

    device: int
    """The ordinal of the GPU."""

    def allocate(self, nbytes: int, /) -> int:
        """The address of so many bytes; 0 for none."""

    def free(self, address: int, /) -> None:
        """Give memory back."""

    def to_device(self, address: int, host: np.ndarray[Any, Any], /) -> None:
        """Copy a contiguous array there."""

    def to_host(self, host: np.ndarray[Any, Any], address: int, /) -> None:
        """Copy to a contiguous array, when what was submitted to the GPU is done."""


class DeviceArray(TracksWrites):
    """A C-contiguous array on the device.

    >>> x = to_device(np.arange(6, dtype=np.float32).reshape(2, 3), backend="emulator")
    >>> x
    DeviceArray(shape=(2, 3), dtype=float32, backend='emulator')
    >>> x.numpy()[1]
    array([3., 4., 5.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_host", "_memory", "address", "device", "dtype", "owner", "shape", "unwritten")

    address: int
    """Where the first element is, in the memory of the device."""
    device: int | None
    """The ordinal of the GPU; None for the emulator's."""
    owner: object
    """What keeps the memory alive, where the array does not."""

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], memory: DeviceMemory | None) -> None:
        """New memory of a GPU, or with None of the host, for the emulator."""
        self.shape, self.dtype, self._memory = shape, dtype, memory
        self.device = None if memory is None else memory.device
        self.owner = self.unwritten = None
        self._host: Any = None
        if memory is not None:
            self.address = memory.allocate(self.nbytes)
            weakref.finalize(self, memory.free, self.address).atexit = False
        else:
            aligned = np.empty(self.nbytes + _ALIGNMENT, np.uint8)
            start = -aligned.ctypes.data % _ALIGNMENT
            self._host = aligned[start : start + self.nbytes].view(dtype).reshape(shape)
            self.address = self._host.ctypes.data
            _in_host_memory.add(self)

    @classmethod
    def over(
        cls, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], memory: DeviceMemory | None, owner: object
    ) -> DeviceArray:
        """An array in memory that is allocated already, and that ``owner`` keeps."""
        self = cls.__new__(cls)
        self.shape, self.dtype, self._memory, self.address = shape, dtype, memory, address
        self.device = None if memory is None else memory.device
        self.owner, self.unwritten, self._host = owner, None, None
        if memory is None:
            host = np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(address))
            self._host = host.view(dtype).reshape(shape)
        return self

    @property
    def backend(self) -> str:
        """``"gpu"`` or ``"emulator"``: where launches take it without a copy."""
        return "emulator" if self._memory is None else "gpu"

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
        if self._memory is None:
            return np.array(self._host)
        host: np.ndarray[Any, Any] = np.empty(self.shape, self.dtype)
        self._memory.to_host(host, self.address)
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
        if self._memory is None:
            self._host[...] = source
        else:
            self._memory.to_device(self.address, source)

    def view(self, dtype: Any) -> DeviceArray:
        """The same memory as elements of another type, in one dimension if their size differs."""
        kind = dtype_of(dtype) if isinstance(dtype, ScalarType) else np.dtype(dtype)
        if self.nbytes % kind.itemsize:
            raise LaunchError(f"{self.nbytes} bytes are no whole number of {kind.name}", loc=caller())
        shape = self.shape if kind.itemsize == self.dtype.itemsize else (self.nbytes // kind.itemsize,)
        return DeviceArray.over(self.address, shape, kind, self._memory, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False and self._memory is not None:
            raise ValueError("an array on the GPU cannot become a numpy array without a copy")
        host: np.ndarray[Any, Any] = self._host if self._memory is None and not copy else self.numpy()
        if host is self._host:
            self.unwritten = None  # what is written through it goes unseen
        return host if dtype is None else host.astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        """The array protocols: ``__cuda_array_interface__`` on the GPU, DLPack on the host."""
        if name == "__cuda_array_interface__" and self._memory is not None:
            return {
                "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "version": 3,
                "stream": 1,
            }
        if name in ("__dlpack__", "__dlpack_device__") and self._memory is None:
            self.unwritten = None
            return getattr(self._host, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype.name}, backend={self.backend!r})"


def in_host_memory() -> list[Buffer]:
    """All live device arrays of the emulator, as buffers of a launch."""
    return [Buffer.of("a device array", array._ptxdsl_view()) for array in list(_in_host_memory)]
