"""Arrays of any library in one form: an address, a dtype, a shape and strides.

A kernel takes numpy arrays, torch tensors, CuPy and JAX arrays, and all objects with ``__cuda_array_interface__`` or
DLPack. The libraries are never imported: an object of theirs can only come from a program that did so itself. What
reads an object is chosen once for its type where that decides, because a launch takes microseconds.
"""

from __future__ import annotations

import ctypes
import operator
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import LaunchError, caller, with_article
from .dlpack import DEFAULT_STREAM, tensor_of
from .torch_tensors import is_torch, without_memory

__all__ = [
    "Unreadable", "View", "ask_ordinals", "contiguous", "contiguous_strides", "describe", "dtype_name", "library_of",
    "owner_of", "plain_address", "readable", "view", "view_by_dlpack",
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


def plain_address(array: Any) -> int:
    """The address of an array of numpy's that is contiguous, writable and not empty; 0 of all others.

    It takes a fourth of the time that :func:`view` does, and most arrays that launches are given are so.

    >>> x = np.zeros((2, 3))
    >>> plain_address(x) == x.ctypes.data, plain_address(x.T), plain_address(x[:0])
    (True, 0, 0)
    """
    try:
        return _addressof(_BYTE.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        return 0


class Unreadable(Exception):
    """An object with an array protocol that raises when it is used, or an array without memory.

    ``hint`` has ``{}`` where the name of the object belongs.
    """

    def __init__(self, problem: str, hint: str | None = None) -> None:
        super().__init__(problem)
        self.hint = hint


_RAISED = (BufferError, RuntimeError, ValueError, TypeError, KeyError)


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
    except _RAISED as error:
        raise Unreadable(f"says {type(error).__name__}: {error}") from error


def readable(value: object) -> View | None:
    """As :func:`view`, for a caller who has no better words where that fails: LaunchError."""
    try:
        return view(value)
    except Unreadable as error:
        hint = error.hint and error.hint.format("values")
        raise LaunchError(f"{with_article(type(value).__name__)} {error}", loc=caller(), hint=hint) from error


_READERS: dict[type, Callable[[Any], View | None]] = {}


def _reader(value: object) -> Callable[[Any], View | None]:
    """What reads all objects of a type; by protocols each is asked, since a type may have arrays on host and GPU."""
    masked = sys.modules.get("numpy.ma")  # it is slow to import, and there is no masked array without it
    if isinstance(value, (np.generic, type, int, float, str, list, tuple)):
        return _no_array
    if masked and isinstance(value, masked.MaskedArray):
        return _no_array
    if isinstance(value, np.ndarray):
        return _numpy
    if is_torch(value):
        return _torch
    if hasattr(value, "_ptxdsl_view"):
        return operator.methodcaller("_ptxdsl_view")
    return _by_protocol


def _by_protocol(value: Any) -> View | None:
    """An interface before version 3 does not say on which stream the memory becomes valid, where DLPack does."""
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None and (interface.get("version", 0) >= 3 or not hasattr(value, "__dlpack__")):
        return _cuda_array_interface(value, interface)
    return _dlpack(value) if hasattr(value, "__dlpack__") else None


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


def _torch(tensor: Any) -> View:
    problem = without_memory(tensor)
    if problem is not None:
        raise Unreadable(*problem)
    size, device = tensor.element_size(), tensor.device
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


def _cuda_array_interface(value: Any, interface: dict[str, Any]) -> View | None:
    if interface.get("mask") is not None:
        return None
    dtype = _dtype_of_typestr(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or contiguous_strides(shape, dtype.itemsize)
    address, readonly = interface["data"]
    stream = interface.get("stream")
    return View(
        address or 0, _name_of(value, dtype), dtype.itemsize, shape, tuple(strides), bool(readonly),
        _ordinal(value, address or 0), value, int(stream) if stream is not None else None,
    )


@lru_cache(maxsize=64)
def _dtype_of_typestr(typestr: str) -> np.dtype[Any]:
    return np.dtype(typestr)


def _name_of(value: Any, dtype: np.dtype[Any]) -> str:
    """The interface has no code for bf16 and the 8-bit floats but ``V2``; the dtype of the array has the name."""
    named = getattr(value, "dtype", None) if dtype.kind == "V" else None
    return str(getattr(named, "name", named or dtype_name(dtype)))


_asked: list[Callable[[int], int | None]] = []


def ask_ordinals(ask: Callable[[int], int | None]) -> None:
    """Let ``ask`` say which GPU an address belongs to, for arrays that do not say it themselves."""
    _asked[:] = [ask]


def _ordinal(value: Any, address: int) -> int:
    device = getattr(value, "device", None)
    ordinal = getattr(device, "id", getattr(device, "index", device))
    if isinstance(ordinal, int):
        return ordinal
    known = _asked[0](address) if _asked and address else None
    return known or 0


def _dlpack(value: Any) -> View | None:
    """The View keeps the capsule, which is not consumed, and whose destructor releases the array."""
    tensor = tensor_of(value)
    if tensor is None:
        return None
    address, dtype, itemsize, shape, steps, readonly, device, capsule = tensor
    strides = contiguous_strides(shape, itemsize) if steps is None else tuple(step * itemsize for step in steps)
    return View(
        address, dtype, itemsize, shape, strides, readonly or library_of(value).startswith("jax"), device,
        (value, capsule), None if device is None else DEFAULT_STREAM,
    )


def view_by_dlpack(value: object) -> View | None:
    """``value`` seen through DLPack; None if it has none, or is on a device of which ptxdsl knows nothing."""
    try:
        return _dlpack(value) if hasattr(value, "__dlpack__") else None
    except _RAISED as error:
        raise Unreadable(f"says {type(error).__name__}: {error}") from error


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
        return f"{with_article(what or f'{library} {kind.__name__}')} of {seen.dtype}, shape {seen.shape}{place}"
    if isinstance(value, np.generic):
        return f"the numpy {value.dtype.name} {value}"
    name = kind.__name__
    if isinstance(value, (bool, int, float, complex, str)) and len(repr(value)) <= 40:
        return f"the {name} {value!r}"
    return with_article(name)
