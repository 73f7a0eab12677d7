"""Arrays of any library in one form: an address, a dtype, a shape and strides.

A kernel takes numpy arrays, torch tensors, CuPy and JAX arrays, and all objects with ``__cuda_array_interface__`` or
DLPack. The libraries are never imported: an object of theirs can only come from a program that did so itself. What
reads an object is chosen once for its type, because a launch takes microseconds.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .torch_tensors import is_torch

__all__ = [
    "Unreadable", "View", "contiguous", "contiguous_strides", "describe", "dtype_name", "library_of", "owner_of",
    "plain_address", "view",
]

_BYTE, _addressof = ctypes.c_char, ctypes.addressof


class View(NamedTuple):
    """Memory of another owner. ``strides`` are in bytes, ``device`` is a GPU's ordinal or None for the host.

    ``dtype`` is numpy's (or ml_dtypes') name; one of foreign byte order is numpy's string, such as ``">f4"``.
    ``stream`` is the handle of the stream on which the memory becomes valid, where the owner gives one.
    """

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readonly: bool
    device: int | None
    owner: object
    stream: int | None = None


def owner_of(seen: View) -> Any:
    """The array that was seen."""
    return seen.owner[0] if isinstance(seen.owner, tuple) else seen.owner


def plain_address(array: np.ndarray[Any, Any]) -> int:
    """The address of an array of numpy's that is contiguous, writable and not empty; 0 of all others.

    It takes a fourth of the time that :func:`view` does, and most arrays that launches are given are so.

    >>> x = np.zeros((2, 3))
    >>> plain_address(x) == x.ctypes.data, plain_address(x.T), plain_address(x[:0])
    (True, 0, 0)
    """
    try:
        return _addressof(_BYTE.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):
        return 0


class Unreadable(Exception):
    """An object with an array protocol that raises when it is used."""


def view(value: object) -> View | None:
    """``value`` seen as an array; None if it is none.

    >>> view(np.zeros((2, 3), np.float32))[1:5]
    ('float32', 4, (2, 3), (12, 4))
    """
    try:
        read = _READERS.get(type(value))
        if read is None:
            read = _READERS[type(value)] = _reader(value)
        return read(value)
    except (BufferError, RuntimeError, ValueError, TypeError, KeyError) as error:
        raise Unreadable(f"says {type(error).__name__}: {error}") from error


_READERS: dict[type, Callable[[Any], View | None]] = {}


def _reader(value: object) -> Callable[[Any], View | None]:
    masked = sys.modules.get("numpy.ma")  # it is slow to import, and there is no masked array without it
    if isinstance(value, (np.generic, type)) or (masked and isinstance(value, masked.MaskedArray)):
        return _no_array
    if isinstance(value, np.ndarray):
        return _numpy
    if is_torch(value):
        return _torch
    if hasattr(value, "_ptxdsl_view"):
        return operator.methodcaller("_ptxdsl_view")
    if hasattr(value, "__cuda_array_interface__"):
        return _cuda_array_interface
    if hasattr(value, "__dlpack__"):
        return _dlpack
    return _no_array


def library_of(value: object) -> str:
    """The package that an object's class comes from: ``"numpy"``, ``"torch"``, ..."""
    return type(value).__module__.partition(".")[0]


def _no_array(_: object) -> None:
    return None


@lru_cache(maxsize=256)
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a dtype; its string where the bytes are in foreign order."""
    return str(dtype.name if dtype.isnative else dtype.str)


def _numpy(array: np.ndarray[Any, Any]) -> View:
    interface = array.__array_interface__
    address, readonly = interface["data"]
    return View(
        address, dtype_name(array.dtype), array.itemsize, array.shape, array.strides, readonly, None, array
    )


def _torch(tensor: Any) -> View | None:
    if str(tensor.layout) != "torch.strided":
        return None
    for kind in ("neg", "conj"):
        if getattr(tensor, f"is_{kind}", bool)():
            raise ValueError(f"its memory is not what it shows: pass `x.resolve_{kind}()`")
    size = tensor.element_size()
    device = tensor.device
    return View(
        tensor.data_ptr(), str(tensor.dtype)[6:], size, tuple(tensor.shape), tuple(s * size for s in tensor.stride()),
        False, None if device.type == "cpu" else device.index or 0, tensor,
    )


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """The strides in bytes of a C-contiguous array."""
    strides = []
    for extent in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(extent, 1)
    return tuple(reversed(strides))


def contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    """Whether the elements lie in C order without gaps; the stride of an extent of 1 does not matter.

    >>> contiguous((2, 1, 3), (12, 999, 4), 4), contiguous((2, 3), (4, 8), 4)
    (True, False)
    """
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if stride != itemsize and extent > 1:
            return 0 in shape
        itemsize *= extent
    return True


def _cuda_array_interface(value: Any) -> View | None:
    interface = value.__cuda_array_interface__
    if interface.get("mask") is not None:
        return None
    dtype = _dtype_of_typestr(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or contiguous_strides(shape, dtype.itemsize)
    address, readonly = interface["data"]
    stream = interface.get("stream")
    return View(
        address or 0, _name_of(value, dtype), dtype.itemsize, shape, tuple(strides), bool(readonly),
        _ordinal(value), value, int(stream) if stream is not None else None,
    )


@lru_cache(maxsize=64)
def _dtype_of_typestr(typestr: str) -> np.dtype[Any]:
    return np.dtype(typestr)


def _name_of(value: Any, dtype: np.dtype[Any]) -> str:
    """The interface has no code for bf16 and the 8-bit floats but ``V2``; the dtype of the array has the name."""
    named = getattr(value, "dtype", None) if dtype.kind == "V" else None
    return str(getattr(named, "name", named or dtype_name(dtype)))


def _ordinal(value: Any) -> int:
    device = getattr(value, "device", 0)
    ordinal = getattr(device, "id", getattr(device, "index", device))
    return ordinal if isinstance(ordinal, int) else 0


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _DLTensor),
    ]


_DL_HOST = (1, 3, 11)
_DL_CUDA = (2, 13)
_DL_READ_ONLY = 1
_DEFAULT_STREAM = 1
_DL_NAMES = {
    0: "int{}", 1: "uint{}", 2: "float{}", 4: "bfloat{}", 5: "complex{}", 6: "bool",
    10: "float8_e4m3fn", 12: "float8_e5m2",
}


def _dlpack(value: Any) -> View | None:
    """Reads the capsule without consuming it: the View keeps it, and its destructor releases the array."""
    kind, ordinal = value.__dlpack_device__()
    if kind not in _DL_HOST + _DL_CUDA:
        return None
    arguments = {} if kind in _DL_HOST else {"stream": _DEFAULT_STREAM}
    try:
        capsule = value.__dlpack__(max_version=(1, 0), **arguments)
    except TypeError:
        capsule = value.__dlpack__(**arguments)
    tensor, readonly = _tensor(capsule)
    if tensor.lanes != 1:
        return None
    itemsize = (tensor.bits + 7) // 8
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] * itemsize for i in range(tensor.ndim))
    else:
        strides = contiguous_strides(shape, itemsize)
    name = _DL_NAMES.get(tensor.code, f"dlpack{tensor.code}_{{}}").format(tensor.bits)
    return View(
        (tensor.data or 0) + tensor.byte_offset, name, itemsize, shape,
        strides, readonly or library_of(value).startswith("jax"), None if kind in _DL_HOST else ordinal,
        (value, capsule), None if kind in _DL_HOST else _DEFAULT_STREAM,
    )


def _tensor(capsule: Any) -> tuple[_DLTensor, bool]:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    valid = ctypes.pythonapi.PyCapsule_IsValid
    valid.restype, valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
    if valid(capsule, b"dltensor_versioned"):
        managed = _DLVersioned.from_address(get(capsule, b"dltensor_versioned"))
        return managed.tensor, bool(managed.flags & _DL_READ_ONLY)
    return _DLTensor.from_address(get(capsule, b"dltensor")), False


def describe(value: object) -> str:
    """What an object is, for a message.

    >>> describe(np.zeros(3)), describe(3), describe(None)
    ('a numpy array of float64, shape (3,)', 'the int 3', 'None')
    """
    if value is None:
        return "None"
    kind = type(value)
    library = library_of(value)
    seen = None if isinstance(value, type) else view(value)
    if seen is not None:
        what = {"numpy": "numpy array", "torch": "torch tensor", "ptxdsl": "device array"}.get(library)
        place = "" if seen.device is None else f" on GPU {seen.device}"
        return f"a {what or f'{library} {kind.__name__}'} of {seen.dtype}, shape {seen.shape}{place}"
    if isinstance(value, np.generic):
        return f"the numpy {value.dtype.name} {value}"
    name = kind.__name__
    if isinstance(value, (bool, int, float, complex, str)) and len(repr(value)) <= 40:
        return f"the {name} {value!r}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
