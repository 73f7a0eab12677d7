"""Device arrays: memory where the kernels run, so that a launch copies nothing.

On the emulator that is host memory, on a GPU the GPU's; a program that keeps its data in device arrays runs on either
without a change. There is no arithmetic here: numpy, torch and CuPy have that. Indexing gives parts, which are the same
memory; numpy says what a part is, on a GPU of an array that stands for the memory and is never read.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError, caller
from ..types import ScalarType, dtype_of
from .arrays import View, contiguous, contiguous_strides, dtype_name
from .device_copies import assigned, checked, download, store
from .device_memory import DeviceMemory, aligned
from .dlpack import CUDA, HOST, capsule_of, shown
from .geometry import Buffer, TracksWrites
from .indexing import indexed, reshaped, retyped
from .rows import extent_of
from .unwritten import of_range, with_range, written

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["DeviceArray", "PartialArray", "in_host_memory"]

_SHOWN = 8
"""How many elements of a dimension a notebook shows."""
_in_host_memory: weakref.WeakSet[DeviceArray] = weakref.WeakSet()

class DeviceArray(TracksWrites):
    """An array on the device. New ones are C-contiguous, and so are most of their parts.

    Ints, slices, ``...`` and None index it as they index a numpy array, and give a part of the same memory; a part with
    gaps is taken for an ``Array[...]``, and not for a ``Ptr``. ``x[key] = values`` copies numbers, numpy arrays and
    device arrays there, which must have the same dtype.

    >>> x = to_device(np.arange(6, dtype=np.float32).reshape(2, 3), backend="emulator")
    >>> x
    DeviceArray(shape=(2, 3), dtype=float32, backend='emulator')
    >>> x[:, 1:] = 0
    >>> x[1].numpy(), x[0, ::-1].numpy()
    (array([3., 0., 0.], dtype=float32), array([0., 0., 0.], dtype=float32))
    """

    __slots__ = (
        "__weakref__", "_base", "_host", "_managed", "_memory", "_record", "address", "device", "dtype", "owner",
        "readonly", "shape", "strides",
    )

    address: int
    """Where the first element is, in the memory of the device."""
    device: int | None
    """The ordinal of the GPU; None for the emulator's."""
    owner: object
    """What keeps the memory alive, where the array does not."""
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    """Bytes from one element to the next, for each dimension."""
    readonly: bool
    """Whether it may not be written: memory of another library may be so."""
    _memory: DeviceMemory | None
    _host: Any
    """The memory as an array of numpy's, of the emulator."""
    _base: DeviceArray | None
    """The array that the memory was allocated for, of a part."""
    _record: Any
    """Which bytes of the memory were never written; of a part the base knows."""
    _managed: bool

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], memory: DeviceMemory | None, *, managed: bool = False
    ) -> None:
        """New memory of a GPU, or with None of the host, for the emulator; ``managed`` memory is both's."""
        self._describe(shape, contiguous_strides(shape, dtype.itemsize), dtype, memory)
        if memory is not None:
            self._managed = managed
            self.address = memory.allocate_managed(self.nbytes) if managed else memory.allocate(self.nbytes)
            weakref.finalize(self, memory.free, self.address).atexit = False
        else:
            self._host = aligned(shape, dtype)
            self.address = self._host.ctypes.data
            _in_host_memory.add(self)

    def _describe(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], memory: DeviceMemory | None
    ) -> None:
        self.shape, self.strides, self.dtype, self._memory = shape, strides, dtype, memory
        self.device = None if memory is None else memory.device
        self.owner = self._record = self._base = self._host = None
        self.readonly = self._managed = False

    @classmethod
    def over(
        cls, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], memory: DeviceMemory | None, owner: object, *,
        strides: tuple[int, ...] | None = None, readonly: bool = False, host: np.ndarray[Any, Any] | None = None,
    ) -> Self:
        """An array in memory that is allocated already, and that ``owner`` keeps; ``host`` shows that of the host."""
        dense = contiguous_strides(shape, dtype.itemsize)
        plain = not readonly and (strides is None or contiguous(shape, strides, dtype.itemsize))
        self: Self = cls.__new__(cls if plain else PartialArray)  # type: ignore[assignment]
        self._describe(shape, dense if plain or strides is None else strides, dtype, memory)
        self.address, self.owner, self.readonly = address, owner, readonly
        if memory is None:
            self._host = shown(address, shape, self.strides, dtype, owner, readonly) if host is None else host
        return self

    # What it is

    @property
    def backend(self) -> str:
        """``"gpu"`` or ``"emulator"``: where launches take it without a copy."""
        return "emulator" if self._memory is None else "gpu"

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return contiguous(self.shape, self.strides, self.dtype.itemsize)

    def _ptxdsl_view(self) -> View:
        return View(
            self.address, dtype_name(self.dtype), self.dtype.itemsize, self.shape, self.strides, self.readonly,
            self.device, self,
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        gaps = "" if self.contiguous else f", strides={self.strides}"
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype.name}{gaps}, backend={self.backend!r})"

    def _repr_html_(self) -> str:
        from ..html_page import fragment, grid

        rows = [("shape", self.shape), ("dtype", self.dtype.name)]
        rows += [] if self.contiguous else [("strides", self.strides)]
        rows += [("size", f"{self.nbytes:,} bytes"), ("place", _place(self))]
        if self.size:
            few = self[(0,) * (self.ndim - 2)] if self.ndim > 2 else self
            few = few[tuple(slice(_SHOWN) for _ in few.shape)]
            rows.append(("values" if few.size == self.size else "first values", np.array2string(few.numpy(), 120)))
        return fragment(grid(("array", ""), rows))

    # Which bytes were never written

    @property
    def unwritten(self) -> Any:
        """See :class:`~ptxdsl.launch.geometry.TracksWrites`."""
        base, record = self._base, self._record
        if base is not None:
            return of_range(base._record, *self._range(base))
        return record.copy() if isinstance(record, np.ndarray) else record

    @unwritten.setter
    def unwritten(self, value: Any) -> None:
        base = self._base
        if base is None:
            self._record = value
        elif base._record is not None:
            base._record = with_range(base._record, base.nbytes, *self._range(base), value)

    @property
    def is_part(self) -> bool:
        """Whether it is a part of another array's memory."""
        return self._base is not None

    def _range(self, base: DeviceArray) -> tuple[int, int]:
        """Where its bytes begin in those of its base, and how many there are from the first to the last."""
        before, after = extent_of(self.shape, self.strides, self.dtype.itemsize)
        return self.address - before - base.address, before + after

    def _note_written(self) -> None:
        base = self if self._base is None else self._base
        if base._record is not None:
            start, itemsize = self.address - base.address, self.dtype.itemsize
            base._record = written(base._record, base.nbytes, start, self.shape, self.strides, itemsize)

    # Parts

    def _layout(self) -> np.ndarray[Any, Any]:
        """An array of numpy's with this shape and these strides; only the emulator's may be read."""
        if self._memory is None:
            host: np.ndarray[Any, Any] = self._host
            return host
        return np.lib.stride_tricks.as_strided(np.empty(1, self.dtype), self.shape, self.strides)

    def _part(self, made: np.ndarray[Any, Any], layout: np.ndarray[Any, Any]) -> DeviceArray:
        """The part that is to this array as ``made`` is to its layout."""
        places = [each.__array_interface__["data"][0] for each in (made, layout)]
        address = self.address + (places[0] - places[1] if made.size else 0)
        part = DeviceArray.over(
            address, made.shape, made.dtype, self._memory, self, strides=made.strides, readonly=self.readonly, host=made
        )
        part._base, part._managed = self if self._base is None else self._base, self._managed
        return part

    def __getitem__(self, key: Any) -> DeviceArray:
        layout = self._layout()
        return self._part(indexed(layout, key), layout)

    def __setitem__(self, key: Any, values: Any) -> None:
        part = self[key]
        store(part, assigned(part, values))

    @property
    def T(self) -> DeviceArray:  # noqa: N802  # numpy's name
        """The same memory with its dimensions in the opposite order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> DeviceArray:
        """The same memory with its dimensions in another order, as numpy's."""
        layout = self._layout()
        return self._part(layout.transpose(*axes), layout)

    def reshape(self, *shape: Any) -> DeviceArray:
        """The same memory in another shape, of which one extent may be -1; LaunchError if that takes a copy."""
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        layout = self._layout()
        return self._part(reshaped(layout, extents, self.contiguous), layout)

    def view(self, dtype: Any) -> DeviceArray:
        """The same memory as elements of another type, in one dimension if their size differs."""
        kind = dtype_of(dtype) if isinstance(dtype, ScalarType) else np.dtype(dtype)
        if self.address % kind.alignment:
            raise LaunchError(
                f"an array at {self.address:#x} cannot be seen as {kind.name}, which wants a multiple of "
                f"{kind.alignment}", loc=caller(), hint=f"`x.copy().view({kind.name!r})`",
            )
        layout = self._layout()
        return self._part(retyped(layout, kind, self.contiguous), layout)

    # Contents

    def _live(self) -> np.ndarray[Any, Any] | None:
        """The memory as an array of numpy's, where the host has it, when no launch uses it any more."""
        if self._memory is None or not self._managed:
            return self._host
        self._memory.rest()
        return shown(self.address, self.shape, self.strides, self.dtype, self, self.readonly)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory, when all work submitted to the device is done."""
        live = self._live()
        return np.array(live, order="C") if live is not None else download(self)

    def copy_to_host(self) -> np.ndarray[Any, Any]:
        """The same under the name that Numba gives it."""
        return self.numpy()

    def item(self) -> Any:
        """The one element of an array that has one, as a Python number."""
        return self.numpy().item()

    def copy_from(self, values: Any) -> None:
        """Overwrite the contents; ``values`` must have the same shape and dtype."""
        store(self, checked(self, values))

    def copy(self) -> DeviceArray:
        """A C-contiguous copy on the same device, in memory of its own."""
        made = self.like()
        store(made, self, new=True)
        return made

    def like(self) -> DeviceArray:
        """A new C-contiguous array of the same shape and dtype on the same device, of whatever the memory held."""
        made = DeviceArray(self.shape, self.dtype, self._memory)
        made.unwritten = True if self._memory is None else None
        return made

    def to(self, device: int) -> DeviceArray:
        """The array on another GPU: a copy, or the array itself where it is there. The emulator has one memory."""
        if self._memory is None or device == self.device:
            return self
        made = DeviceArray(self.shape, self.dtype, self._memory.beside(device))
        store(made, self, new=True)
        return made

    # Other libraries

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        live = self._live()
        if copy is False and live is None:
            raise ValueError("an array on the GPU cannot become a numpy array without a copy")
        if live is None or copy:
            live = self.numpy()
        elif not self.readonly:
            self.unwritten = None  # what is written through it goes unseen
        return live if dtype is None else live.astype(dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        """``__cuda_array_interface__``: on a GPU, and of a dtype for which the interface has a code."""
        if name == "__cuda_array_interface__" and self._memory is not None and self.dtype.kind != "V":
            return {
                "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, self.readonly), "version": 3,
                "strides": None if self.contiguous else self.strides, "stream": 1,
            }
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dlpack_device__(self) -> tuple[int, int]:
        return (HOST, 0) if self.device is None else (CUDA, self.device)

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> object:
        """A capsule for another library, by DLPack 1.1: of every dtype for which that has a code.

        BufferError for other dtypes, and for what takes a copy that ``copy=False`` forbids.
        """
        device = self.__dlpack_device__()
        wanted = device if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        given: Any = self
        if wanted != device:
            if copy is False:
                raise BufferError(f"an array on device {device} is on {wanted} as a copy only")
            given = self._on(*wanted)
        elif copy:
            given = self.copy()
        if given._memory is None:
            if stream is not None and self._memory is None:
                raise BufferError(f"memory of the host is on no stream, and stream={stream} was asked for")
            given.unwritten = None
        else:
            if stream == 0 or (stream is not None and stream < -1):
                raise BufferError(f"stream={stream} is no stream by DLPack; 1 and 2 are the default ones")
            given._memory.ready_for(stream)
        return capsule_of(
            given, wanted, readonly=given.readonly, copied=given is not self, max_version=max_version
        )

    def _on(self, kind: int, ordinal: int) -> DeviceArray:
        """A copy on another device, as DLPack counts devices."""
        if kind == CUDA and self._memory is not None:
            return self.to(ordinal)
        if (kind, ordinal) != (HOST, 0):
            raise BufferError(f"an array on device {self.__dlpack_device__()} cannot be given on {(kind, ordinal)}")
        made = DeviceArray(self.shape, self.dtype, None)
        store(made, self, new=True)
        return made


class PartialArray(DeviceArray):
    """A device array with gaps, or one that may not be written: what a fast path of launches need not look for."""

    __slots__ = ()


def _place(array: DeviceArray) -> str:
    where = "host memory, of the emulator" if array.device is None else f"GPU {array.device}"
    return f"{where}, at {array.address:#x}{', read-only' * array.readonly}"


def in_host_memory() -> list[Buffer]:
    """All live device arrays of the emulator, as buffers of a launch."""
    if len(_in_host_memory) == 0:  # as most launches find it, without what a walk takes
        return []
    return [Buffer.of("a device array", array._ptxdsl_view()) for array in list(_in_host_memory)]
