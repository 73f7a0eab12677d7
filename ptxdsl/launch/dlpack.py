"""DLPack, in both directions: what other libraries' capsules hold, and capsules of our memory for them.

A capsule that is read is not consumed: whoever keeps it keeps the array, and its destructor gives the array back. A
capsule that is made is numpy's, of unsigned integers at our address, with the device and the dtype that the memory has
written into it. So it is numpy's machine code that releases the memory, once, be the capsule consumed or not, also
while the interpreter ends.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

__all__ = ["CUDA", "DEFAULT_STREAM", "HOST", "Tensor", "capsule_of", "shown", "tensor_of"]

HOST, CUDA = 1, 2
"""Numbers of DLDeviceType."""
_HOST_KINDS, _CUDA_KINDS = (HOST, 3, 11), (CUDA, 13)
"""Pinned memory is the host's too, managed memory the GPU's."""
DEFAULT_STREAM = 1
_VERSION = (1, 1)
_READ_ONLY, _COPIED, _PADDED = 1, 2, 4
_FAMILIES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex"}
_NAMES = {
    "bool": (6, 8), "float8_e3m4": (7, 8), "float8_e4m3": (8, 8), "float8_e4m3b11fnuz": (9, 8),
    "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8), "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8),
    "float8_e8m0fnu": (14, 8), "float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4),
    **{f"{family}{bits}": (code, bits) for code, family in _FAMILIES.items()
       for bits in {0: (2, 4, 8, 16, 32, 64), 1: (2, 4, 8, 16, 32, 64), 2: (16, 32, 64), 4: (16,), 5: (64, 128)}[code]},
}
"""The code and the bits of each dtype; one of fewer bits than 8 has a byte for each element, as ml_dtypes has it."""
_CODES = {facts: name for name, facts in _NAMES.items()}


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


class Tensor(NamedTuple):
    """What a capsule holds. ``strides`` are in elements, None where they are contiguous; ``device`` is a GPU's."""

    address: int
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    readonly: bool
    device: int | None
    capsule: object


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


def _opened(capsule: object) -> tuple[_DLTensor, _DLVersioned | None]:
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _DLVersioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major != _VERSION[0]:
            raise BufferError(f"its DLPack is of version {managed.major}.{managed.minor}")
        return managed.tensor, managed
    return _DLTensor.from_address(_pointer(capsule, b"dltensor")), None


def tensor_of(value: Any) -> Tensor | None:
    """What an object gives by DLPack, valid on the default stream; None for memory of other devices."""
    kind, ordinal = value.__dlpack_device__()
    if kind not in _HOST_KINDS + _CUDA_KINDS:
        return None
    stream = {} if kind in _HOST_KINDS else {"stream": DEFAULT_STREAM}
    try:
        capsule = value.__dlpack__(max_version=_VERSION, **stream)
    except TypeError:
        capsule = value.__dlpack__(**stream)
    tensor, managed = _opened(capsule)
    flags = managed.flags if managed is not None else 0
    name, itemsize = _element(tensor, bool(flags & _PADDED))
    axes = range(tensor.ndim)
    return Tensor(
        (tensor.data or 0) + tensor.byte_offset, name, itemsize, tuple(tensor.shape[axis] for axis in axes),
        tuple(tensor.strides[axis] for axis in axes) if tensor.strides else None, bool(flags & _READ_ONLY),
        None if kind in _HOST_KINDS else ordinal, capsule,
    )


def _element(tensor: _DLTensor, padded: bool) -> tuple[str, int]:
    """The dtype of the elements and their size in bytes."""
    bits, lanes = tensor.bits, tensor.lanes
    name = _CODES.get((tensor.code, bits), f"{_FAMILIES.get(tensor.code, f'dlpack{tensor.code}_')}{bits}")
    if bits < 8 and not padded and bits * lanes != 8:
        raise ValueError(f"its elements are {name}, several in a byte")
    if lanes == 1:
        return name, (bits + 7) // 8
    if bits * lanes % 8:
        raise ValueError(f"its elements are {lanes} {name} each")
    return f"{name}_x{lanes}", bits * lanes // 8


class _Memory:
    """What numpy makes an array of, without touching the memory; the array keeps ``owner``."""

    def __init__(
        self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], kind: str, readonly: bool, owner: object
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "shape": shape, "strides": strides, "typestr": kind, "data": (address, readonly), "version": 3,
        }


def shown(
    address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], owner: object,
    readonly: bool = False,
) -> np.ndarray[Any, Any]:
    """Memory that the host has as an array of numpy's, which keeps ``owner``."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(_Memory(address, shape, strides, f"|V{dtype.itemsize}", readonly, owner)).view(dtype)


def capsule_of(
    array: Any, device: tuple[int, int], *, readonly: bool, copied: bool, max_version: tuple[int, int] | None
) -> object:
    """A capsule of an array's memory: one with ``address``, ``shape``, ``strides`` in bytes and ``dtype``."""
    known = _NAMES.get(array.dtype.name) if array.dtype.isnative else None
    if known is None:
        raise BufferError(f"DLPack has no code for {array.dtype}")
    (code, bits), itemsize = known, array.dtype.itemsize
    versioned = max_version is not None and max_version[0] >= 1
    if bits < 8 and not versioned:
        raise BufferError(f"DLPack before version 1.1 cannot say that each {array.dtype.name} has a byte of its own")
    carrier = "<c16" if itemsize == 16 else f"<u{itemsize}"
    numbers = np.asarray(_Memory(array.address, array.shape, array.strides, carrier, readonly, array))
    capsule: object
    try:
        capsule = numbers.__dlpack__(max_version=_VERSION) if versioned else numbers.__dlpack__()
    except TypeError:  # numpy before 2.1
        capsule = numbers.__dlpack__()
    tensor, managed = _opened(capsule)
    tensor.code, tensor.bits, tensor.device_type, tensor.device_id = code, bits, *device
    tensor.data = array.address or None
    if managed is not None:
        managed.minor = _VERSION[1]
        managed.flags |= _COPIED * copied | _PADDED * (bits < 8)
    elif bits < 8:
        raise BufferError(f"numpy {np.__version__} makes no capsules that could hold {array.dtype.name}")
    return capsule
