"""How arrays of numbers lie in memory, and in which type kernels compute with them.

Registers have 32 or 64 bits: integers of 8 and 16 bits are computed in s32 or u32, f16 and bf16 in f32, a bool is the
byte 0 or 1. 16 bytes are loaded and stored by one instruction, whatever their elements are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ScalarType, bf16, f16, f32, loop, minimum, pack, pred, ptx, s32, u8, u16, u32, u64, unpack

from . import arguments

__all__ = [
    "BYTES", "IN_FLIGHT", "NUMBERS", "UNSIGNED", "along", "in_memory", "load", "load_packed", "load_vector", "narrowed",
    "per_access", "per_vector", "store", "unpacked", "widened", "working",
]

BYTES = 16
"""Of the largest access that every GPU has."""
NUMBERS = [*arguments.INTEGERS, *arguments.FLOATS]
"""The dtypes that kernels compute with, by the names that numpy gives them; bools beside them where it makes sense."""
UNSIGNED = {8: u8, 16: u16, 32: u32, 64: u64}
"""The types whose elements are moved as they are, by their bits."""
IN_FLIGHT = 4
"""Loads that a thread starts before it uses the first."""


def working(dtype: ScalarType) -> ScalarType:
    """The type that elements of ``dtype`` are computed in.

    >>> from ptxdsl import f16, s8, s64, u16
    >>> working(f16), working(s8), working(u16), working(s64)
    (f32, s32, u32, s64)
    """
    if dtype.bytes >= 4:
        return dtype
    return f32 if dtype.is_float else s32 if dtype.is_signed else u32


def in_memory(dtype: ScalarType) -> ScalarType:
    """The type that a kernel's pointer has: bools are bytes."""
    return u8 if dtype is pred else dtype


def per_vector(dtype: ScalarType) -> int:
    """Elements in 16 bytes."""
    return BYTES // dtype.bytes


def per_access(*dtypes: ScalarType) -> int:
    """Elements that a thread takes of arrays of these types: 16 bytes of the narrowest, at most 8 elements.

    >>> from ptxdsl import f16, f64
    >>> per_access(f16), per_access(f32, f64), per_access(u8)
    (8, 4, 8)
    """
    return min(8, BYTES // min(dtype.bytes for dtype in dtypes))


def widened(value: Any, dtype: ScalarType) -> Any:
    """An element in the type that it is computed in."""
    if dtype is bf16:
        return (value.bits(u16).to(u32) << 16).bits(f32)
    return value if dtype.bytes >= 4 else value.to(working(dtype))


def narrowed(value: Any, dtype: ScalarType) -> Any:
    """The element that a value is stored as: floats are rounded to the nearest, integers lose their upper bits."""
    return value if dtype.bytes >= 4 else value.to(in_memory(dtype))


def load(pointer: Any, index: Any, count: int) -> list[Any]:
    """``pointer[index : index + count]``, ``count`` a power of two, aligned to all its bytes or to 16.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f16, ptx_kernel
    >>> @ptx_kernel
    ... def reverse(x: Ptr[f16], y: Ptr[f16]):
    ...     store(y, 0, load(x, 0, 8)[::-1])
    >>> x, y = np.arange(8, dtype=np.float16), np.zeros(8, np.float16)
    >>> reverse[1, 1](x, y)
    >>> y
    array([7., 6., 5., 4., 3., 2., 1., 0.], dtype=float16)
    """
    words = load_packed(pointer, index, count)
    if len(words) == count:
        return words
    if pointer.dtype.bytes == 2:
        return [half for word in words for half in unpack(word, pointer.dtype)]
    bytes_ = [((word >> shift) & 0xFF).to(u8) for word in words for shift in range(0, 32, 8)]
    return bytes_ if pointer.dtype is u8 else [value.bits(pointer.dtype) for value in bytes_]


def load_packed(pointer: Any, index: Any, count: int) -> list[Any]:
    """The words of 32 bits that hold what :func:`load` gives; the elements where no word holds several."""
    size = pointer.dtype.bytes
    if count == 1:
        return [pointer[index]]
    if size * count < 4 or size >= 4:
        width = min(count, BYTES // size)
        first = pointer + index
        return [value for at in range(0, count, width) for value in first.load(at, width=width)]
    return load_packed((pointer + index).cast(u32), 0, size * count // 4)


def unpacked(words: list[Any], dtype: ScalarType, count: int) -> list[Any]:
    """The ``count`` elements of what :func:`load_packed` has loaded, as :func:`widened` has them."""
    if len(words) == count:
        return [widened(word, dtype) for word in words]
    return [element for word in words for element in _elements(word, dtype)]


def load_vector(pointer: Any, index: int, dtype: ScalarType) -> list[Any]:
    """The elements of the 16 bytes from ``pointer[index]`` on, as :func:`widened` has them."""
    if dtype.bytes >= 4:
        return list(pointer.load(index, width=per_vector(dtype)))
    words = pointer.cast(u32).load(index * dtype.bytes // 4, width=4)
    return [element for word in words for element in _elements(word, dtype)]


def _elements(word: Any, dtype: ScalarType) -> list[Any]:
    """The elements of 32 bits."""
    if dtype is f16:
        return [half.to(f32) for half in unpack(word, f16)]
    if dtype is bf16:
        return [(word << 16).bits(f32), (word & 0xFFFF0000).bits(f32)]
    bits = 8 * dtype.bytes
    if dtype.is_signed:
        signed = word.bits(s32)
        return [ptx.bfe.s32(signed, at, bits) for at in range(0, 32, bits)]
    return [ptx.bfe.u32(word, at, bits) for at in range(0, 32, bits)]


def along(
    source: Any, count: Any, dtype: ScalarType, lane: Any, lanes: int, one: Callable[[Any, Any], None],
    several: Callable[[list[Any], Any], None], in_flight: int = IN_FLIGHT,
) -> None:
    """Visit source[0:count] by so many lanes: ``one(element, index)``, and ``several`` from an index on, 16 bytes.

    What lies before and behind whole 16 bytes is visited one by one. Each lane goes upwards.
    """
    per = per_vector(dtype)
    before = (0 - source.address).to(u32) & (BYTES - 1)
    head = minimum(before >> dtype.bytes.bit_length() - 1, count)
    vectors = (count - head) // per
    body, step = source + head, lanes * in_flight
    whole = vectors - vectors % step
    with loop(lane, head, lanes) as i:
        one(widened(source[i], dtype), i)
    with loop(lane, whole + lane, step) as i:
        at = body + i * per
        loaded = [load_vector(at, number * lanes * per, dtype) for number in range(in_flight)]
        for number, elements in enumerate(loaded):
            several(elements, head + (i + number * lanes) * per)
    with loop(whole + lane, vectors, lanes) as i:
        several(load_vector(body + i * per, 0, dtype), head + i * per)
    with loop(head + vectors * per + lane, count, lanes) as i:
        one(widened(source[i], dtype), i)


def store(pointer: Any, index: Any, values: list[Any]) -> None:
    """Store as many values, each converted to the pointer's type; aligned as for :func:`load`."""
    dtype, count = pointer.dtype, len(values)
    if count == 1:
        pointer[index] = values[0].to(dtype)
        return
    if dtype.bytes * count < 4 or dtype.bytes >= 4:
        width = min(count, BYTES // dtype.bytes)
        first = pointer + index
        for at in range(0, count, width):
            first.store(at, [value.to(dtype) for value in values[at : at + width]])
        return
    each = 4 // dtype.bytes
    words = [_word(values[at : at + each], dtype) for at in range(0, count, each)]
    store((pointer + index).cast(u32), 0, words)


def _word(values: list[Any], dtype: ScalarType) -> Any:
    """The 32 bits of two or four values as elements of ``dtype``."""
    if dtype is bf16 and all(value.type is f32 for value in values):
        low, high = values
        return ptx.cvt.rn.bf16x2.f32(high, low).bits(u32)
    if dtype.bytes == 2:
        converted = [value.to(dtype) for value in values]
        return pack(u32, *(value if dtype is u16 else value.bits(u16) for value in converted))
    word, *more = (value.bits(u32) if _is_wide(value) else value.to(dtype).bits(u8).to(u32) for value in values)
    word = word & 0xFF
    for number, value in enumerate(more, 1):
        word = ptx.bfi.b32(value, word, number * 8, 8)
    return word


def _is_wide(value: Any) -> bool:
    """Whether the lower bits of a value are what it is narrowed to."""
    return value.type.is_integer and value.type.bits == 32
