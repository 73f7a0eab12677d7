"""Arguments of foreign PTX, whose parameters have less of a type than the source's.

Compilers write `.u32` for C's ``int`` as well and untyped bits for floats, so a number of the right size is taken as
its bits, where an annotation asks for exactly one type. A parameter of the size of an address may be one: it takes an
array or a number. Structs, and the TMA descriptors of traced kernels too, are passed by value.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from ..types import TYPES, ScalarType, encode
from .arrays import contiguous, dtype_name, plain_address, view
from .geometry import Argument, Buffer, Handle, Scalar
from .parameter_check import Convert, ParameterCheck
from .scalars import scalar
from .tensor_map_argument import TensorMapArgument

__all__ = ["aggregate", "foreign_scalar", "scalar_bits"]


def foreign_scalar(check: ParameterCheck, kind: ScalarType, address_bits: int) -> Convert:
    """A number, or an array where the parameter may be an address."""
    name, strict, memory = check.parameter.ptx[0].name, scalar(check, kind), _memory(check)
    size, end = kind.bytes, 1 << kind.bits if kind.kind in "bus" and kind.lanes == 1 else 0

    def number(value: Any) -> tuple[Argument, ...]:
        if type(value) is int and 0 <= value < end:
            return (Scalar(name, value.to_bytes(size, "little")),)
        data = scalar_bits(value, kind)
        return strict(value) if data is None else (Scalar(name, data),)

    def number_or_address(value: Any) -> tuple[Argument, ...]:
        if type(value) is np.ndarray:
            return memory(value)
        if isinstance(value, (int, np.generic)) or (kind.kind == "b" and isinstance(value, float)):
            return number(value)
        return (Handle(name, value),) if hasattr(value, "image_kind") else memory(value)

    return number_or_address if kind.bits == address_bits and kind.kind in "bus" else number


def scalar_bits(value: Any, kind: ScalarType) -> bytes | None:
    """The bytes of a number that PTX cannot tell from one of type ``kind``; None for all others.

    >>> from ptxdsl.types import b32, u32
    >>> scalar_bits(-1, u32), scalar_bits(1.0, b32), scalar_bits(np.int16(-2), u32), scalar_bits(1.0, u32)
    (b'\\xff\\xff\\xff\\xff', b'\\x00\\x00\\x80?', b'\\xfe\\xff\\xff\\xff', None)
    """
    if kind.kind not in "bus" or kind.lanes > 1:
        return None
    if isinstance(value, np.generic):
        whole = value.dtype.kind in "biu"
        if value.nbytes == kind.bytes and (whole or kind.kind == "b"):
            return value.tobytes()
        value = int(value) if whole else None
    if isinstance(value, float) and kind.kind == "b" and kind.bits in (32, 64):
        return encode(value, TYPES[f"f{kind.bits}"]).to_bytes(kind.bytes, "little")
    if not isinstance(value, int) or not -(1 << (kind.bits - 1)) <= value < 1 << kind.bits:
        return None
    return (int(value) & (1 << kind.bits) - 1).to_bytes(kind.bytes, "little")


def _memory(check: ParameterCheck) -> Convert:
    """An array of any type."""
    name = check.parameter.ptx[0].name

    def memory(value: Any) -> tuple[Argument, ...]:
        if type(value) is np.ndarray and (address := plain_address(value)):
            dtype, shape, strides = dtype_name(value.dtype), value.shape, value.strides
            return (Buffer(name, address, value.nbytes, dtype, shape, strides, True, value),)
        seen = view(value)
        if seen is None:
            raise check.error(value, f".{check.annotation} wants an array or an int")
        check.check_writable(value, seen, sure=False)
        if not contiguous(seen.shape, seen.strides, seen.itemsize):
            raise check.not_contiguous(value, seen, "foreign PTX is given contiguous memory only")
        return (Buffer.of(name, seen),)

    return memory


def aggregate(check: ParameterCheck, address_bits: int) -> Convert:
    """A descriptor or struct passed by value; one of the size of an address may be one, and then takes an array."""
    entry, memory = check.parameter.ptx[0], _memory(check)
    name, nbytes = entry.name, entry.nbytes

    def struct(value: Any) -> tuple[Argument, ...]:
        if isinstance(value, TensorMapArgument) and nbytes == len(bytes(value)):
            for need in check.boxes:
                if not need.met(value.box, value.bits, value.swizzle):
                    swizzle = f", swizzle={need.swizzle}" if need.swizzle else ""
                    raise check.error(
                        value, f"`{need.helper}` at {need.loc} wants {need.wanted}",
                        f"`tensor_map(array, {need.box}{swizzle})`, as `tile.box` and the swizzle of the tile say",
                        f", {value!r}",
                    )
            return (Scalar(name, bytes(value), (Buffer.of(name, value.seen, value.nbytes),)),)
        data = _bytes_of(value, nbytes)
        if len(data) != nbytes:
            came = f" of {len(data)} bytes" if data else ""
            raise check.error(value, f"{check.annotation} wants an object of {nbytes} bytes", None, came)
        return (Scalar(name, data),)

    def struct_or_address(value: Any) -> tuple[Argument, ...]:
        if type(value) is int and 0 <= value < 1 << 8 * nbytes:
            return (Scalar(name, value.to_bytes(nbytes, "little")),)
        by_value = isinstance(value, (bytes, bytearray, memoryview, ctypes.Structure, ctypes.Array, np.generic))
        return struct(value) if by_value or view(value) is None else memory(value)

    return struct_or_address if 8 * nbytes == address_bits and entry.type.bits in (8, address_bits) else struct


_BUFFERS: Any = (bytes, bytearray, memoryview, np.ndarray, ctypes.Structure, ctypes.Array)


def _bytes_of(value: Any, nbytes: int) -> bytes:
    """The bytes of an object; none for one that does not give them."""
    if hasattr(value, "getPtr"):  # the structs of cuda-python
        return ctypes.string_at(int(value.getPtr()), nbytes)
    if isinstance(value, np.generic):
        return value.tobytes()
    if hasattr(value, "__bytes__"):
        return bytes(value)
    return memoryview(value).tobytes() if isinstance(value, _BUFFERS) else b""
