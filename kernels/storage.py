"""How arrays of numbers lie in memory, and in which type kernels compute with them.

Registers have 32 or 64 bits: integers of 8 and 16 bits are computed in s32 or u32, f16 and bf16 in f32, a bool is the
byte 0 or 1. 16 bytes are loaded and stored by one instruction, whatever their elements are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import ScalarType, bf16, f16, f32, loop, minimum, pack, pred, ptx, s32, u8, u16, u32, u64, unpack

from . import arguments
from .vectors import BYTES

__all__ = [
    "IN_FLIGHT", "NUMBERS", "UNSIGNED", "along", "in_memory", "load_vector", "narrowed", "per_vector", "store_vector",
    "widened", "working",
]

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


def widened(value: Any, dtype: ScalarType) -> Any:
    """An element in the type that it is computed in."""
    if dtype is bf16:
        return (value.bits(u16).to(u32) << 16).bits(f32)
    return value if dtype.bytes >= 4 else value.to(working(dtype))


def narrowed(value: Any, dtype: ScalarType) -> Any:
    """The element that a value is stored as: floats are rounded to the nearest, integers lose their upper bits."""
    return value if dtype.bytes >= 4 else value.to(in_memory(dtype))


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


def store_vector(pointer: Any, index: int, values: list[Any], dtype: ScalarType) -> None:
    """Store as many values as fill 16 bytes from ``pointer[index]`` on, each :func:`narrowed`."""
    if dtype.bytes >= 4:
        pointer.store(index, values)
        return
    each = 4 // dtype.bytes
    words = [_word(values[i : i + each], dtype) for i in range(0, len(values), each)]
    pointer.cast(u32).store(index * dtype.bytes // 4, words)


def _word(values: list[Any], dtype: ScalarType) -> Any:
    """32 bits of elements."""
    if dtype.is_float:
        return pack(u32, *(value.to(dtype) for value in values))
    bits = 8 * dtype.bytes
    word = values[0].bits(u32) & ((1 << bits) - 1)
    for number, value in enumerate(values[1:], 1):
        word = ptx.bfi.b32(value.bits(u32), word, number * bits, bits)
    return word
