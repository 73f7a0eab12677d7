"""XLA's foreign function interface, from its C header, by ctypes: what XLA calls when a program launches a kernel.

XLA hands over a *call frame*: the addresses, types and shapes of the arguments and results, the attributes of the call,
and functions to ask for more. With these structures a Python function is a handler, and no compiler is needed. Versions
of the interface only ever append fields, so what is read here stays where it is; `struct_size` says how much is there.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from ..launch.arrays import View, contiguous_strides

__all__ = ["Call", "Memory", "handler"]

_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_HEAD: Any = [("struct_size", _size), ("extension", _pointer)]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", _int), ("minor", _int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("version", _Version), ("traits", ctypes.c_uint32)]


class _Extension(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("type", _int), ("next", _pointer), ("metadata", ctypes.POINTER(_Metadata))]


class _Buffer(ctypes.Structure):
    _fields_ = [
        *_HEAD, ("dtype", _int), ("data", _pointer), ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Bytes(ctypes.Structure):
    _fields_ = [("data", _pointer), ("size", _size)]


class _Values(ctypes.Structure):
    """Arguments or results."""

    _fields_ = [
        *_HEAD, ("size", ctypes.c_int64), ("types", _pointer),
        ("values", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]


class _Attributes(ctypes.Structure):
    _fields_ = [
        *_HEAD, ("size", ctypes.c_int64), ("types", _pointer),
        ("names", ctypes.POINTER(ctypes.POINTER(_Bytes))), ("values", ctypes.POINTER(ctypes.POINTER(_Bytes))),
    ]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("message", ctypes.c_char_p), ("code", _int)]


class _StreamArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("context", _pointer), ("stream", _pointer)]


class _OrdinalArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("context", _pointer), ("ordinal", ctypes.c_int32)]


_FUNCTIONS = (
    "Error_Create", "Error_GetMessage", "Error_Destroy", "Handler_Register", "Stream_Get", "Type_Register",
    "ExecutionContext_Get", "State_Set", "State_Get", "DeviceMemory_Allocate", "DeviceMemory_Free",
    "ThreadPool_Schedule", "ThreadPool_NumThreads", "Future_Create", "Future_SetAvailable", "Future_SetError",
    "RunId_Get", "DeviceOrdinal_Get",
)
_function = ctypes.CFUNCTYPE(_pointer, _pointer)


class _Api(ctypes.Structure):
    _fields_ = [*_HEAD, ("version", _Version), ("internal", _pointer), *((name, _function) for name in _FUNCTIONS)]


class _Frame(ctypes.Structure):
    _fields_ = [
        *_HEAD, ("api", ctypes.POINTER(_Api)), ("context", _pointer), ("stage", _int),
        ("arguments", _Values), ("results", _Values), ("attributes", _Attributes),
    ]


_handler = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_Frame))
_METADATA = 1
"""The kind of extension by which XLA asks what a handler is made for."""
_MAJOR = 0
"""Within a major version, all minor ones are served: what they append is not looked at."""
_INTERNAL = 13
"""The code of an error for which XLA has no better one."""
_DTYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 16: "bfloat16", 15: "complex64", 18: "complex128",
    19: "float8_e5m2", 20: "float8_e4m3fn", 23: "float8_e4m3b11fnuz", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz",
    28: "float8_e4m3", 29: "float8_e3m4", 33: "float8_e8m0fnu",
}
"""The types of elements of which each has bytes of its own."""


class Memory:
    """An array in memory of XLA's; ``device`` is a GPU's number, or None for the host."""

    def __init__(self, address: int, dtype: str, shape: tuple[int, ...], device: int | None, readonly: bool) -> None:
        self.address, self.shape, self.device, self.readonly = address, shape, device, readonly
        self.dtype: Any = np.dtype(getattr(ml_dtypes, dtype, dtype))

    def _ptxdsl_view(self) -> View:
        strides = contiguous_strides(self.shape, self.dtype.itemsize)
        return View(
            self.address, self.dtype.name, self.dtype.itemsize, self.shape, strides, self.readonly, self.device, self
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


# Messages call an array by its class; to its user it is JAX's.
Memory.__module__, Memory.__qualname__, Memory.__name__ = "jax", "Array", "Array"


class Call:
    """One execution of a call: its arguments and results, on ``platform``."""

    def __init__(self, frame: Any, platform: str) -> None:
        self._frame, self.platform = frame, platform

    @cached_property
    def device(self) -> int | None:
        """The number of the GPU, or None on the host."""
        if self.platform != "CUDA":
            return None
        return int(self._ask("DeviceOrdinal_Get", _OrdinalArguments).ordinal)

    @cached_property
    def stream(self) -> int | None:
        """The handle of the GPU's stream on which the results are expected."""
        return None if self.platform != "CUDA" else int(self._ask("Stream_Get", _StreamArguments).stream or 0)

    def _ask(self, function: str, arguments: Any) -> Any:
        given = arguments(ctypes.sizeof(arguments), None, self._frame.context)
        error = getattr(self._frame.api.contents, function)(ctypes.addressof(given))
        if error:
            raise RuntimeError(f"XLA_FFI_{function} failed")
        return given

    @property
    def arguments(self) -> list[Memory]:
        """What the kernel may read."""
        return self._memory(self._frame.arguments, True)

    @property
    def results(self) -> list[Memory]:
        """What it is to write."""
        return self._memory(self._frame.results, False)

    def _memory(self, values: Any, readonly: bool) -> list[Memory]:
        found = []
        for number in range(values.size):
            buffer = values.values[number].contents
            shape = tuple(buffer.dims[: buffer.rank]) if buffer.rank else ()
            found.append(Memory(buffer.data or 0, _DTYPES[buffer.dtype], shape, self.device, readonly))
        return found

    def attribute(self, name: str) -> str:
        """An attribute that is a string."""
        attributes = self._frame.attributes
        for number in range(attributes.size):
            if _text(attributes.names[number].contents) == name:
                return _text(attributes.values[number].contents)
        raise RuntimeError(f"the call has no attribute {name}")

    def error(self, message: str) -> int:
        """An error of XLA's, for the handler to return."""
        arguments = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, message.encode(), _INTERNAL)
        return int(self._frame.api.contents.Error_Create(ctypes.addressof(arguments)))


def _text(span: Any) -> str:
    return ctypes.string_at(span.data, span.size).decode() if span.size else ""


def handler(run: Callable[[Call], None], platform: str) -> Any:
    """A function for XLA to call, which calls ``run``; what that raises becomes an error of XLA's."""
    def handle(pointer: Any) -> int | None:
        frame = pointer.contents
        if frame.extension:
            extension = _Extension.from_address(frame.extension)
            if extension.type == _METADATA:  # XLA asks for which version of the interface the handler was made
                own = frame.api.contents.version
                version = extension.metadata.contents.version
                version.major, version.minor = _MAJOR, own.minor if own.major == _MAJOR else 0
                return None
        call = Call(frame, platform)
        try:
            run(call)
        except BaseException as error:  # noqa: BLE001  # there is no Python above that could have it
            return call.error(f"{type(error).__name__}: {error}")
        return None

    return _handler(handle)
