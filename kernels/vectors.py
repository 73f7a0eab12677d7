"""Several neighbouring elements of an array at once, by accesses of up to 16 bytes, whatever their type."""

from __future__ import annotations

from typing import Any

from .. import ScalarType, bf16, f32, f64, pack, ptx, u8, u16, u32, unpack

__all__ = ["BYTES", "computed_in", "load", "per_access", "store", "widened"]

BYTES = 16
"""Of the largest access that every GPU has."""


def per_access(*dtypes: ScalarType) -> int:
    """Elements that a thread takes of arrays of these types: 16 bytes of the narrowest, at most 8 elements.

    >>> from ptxdsl import f16, f64
    >>> per_access(f16), per_access(f32, f64), per_access(u8)
    (8, 4, 8)
    """
    return min(8, BYTES // min(dtype.bytes for dtype in dtypes))


def computed_in(dtype: ScalarType) -> ScalarType:
    """The type in which a floating-point type is computed: f64, or f32 for all others."""
    return f64 if dtype is f64 else f32


def widened(values: list[Any]) -> list[Any]:
    """Floating-point values in the type in which they are computed."""
    return [value.to(computed_in(value.type)) for value in values]


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
    size = pointer.dtype.bytes
    if count == 1:
        return [pointer[index]]
    if size * count < 4 or size >= 4:
        width = min(count, BYTES // size)
        first = pointer + index
        return [value for at in range(0, count, width) for value in first.load(at, width=width)]
    words = load((pointer + index).cast(u32), 0, size * count // 4)
    if size == 2:
        return [half for word in words for half in unpack(word, pointer.dtype)]
    bytes_ = [((word >> shift) & 0xFF).to(u8) for word in words for shift in range(0, 32, 8)]
    return bytes_ if pointer.dtype is u8 else [value.bits(pointer.dtype) for value in bytes_]


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
    converted = [value.to(dtype) for value in values]
    if dtype.bytes == 2:
        return pack(u32, *(value if dtype is u16 else value.bits(u16) for value in converted))
    word = converted[0].bits(u8).to(u32) if dtype is not u8 else converted[0].to(u32)
    for shift, value in zip((8, 16, 24), converted[1:]):
        word = word | ((value if dtype is u8 else value.bits(u8)).to(u32) << shift)
    return word
