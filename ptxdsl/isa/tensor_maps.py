"""The 128 bytes of a tensor map: which bits hold which property of the tensor and of the boxes that are copied.

The one home of this layout: the host encodes by it, the emulator decodes by it, and ``tensormap.replace`` writes its
fields. NVIDIA calls the bytes opaque, but the assembler expands ``tensormap.replace`` into loads and stores of them, so
each field that it can replace is known to the bit (a test reads them off the assembler's output). The L2 promotion, the
mode and the bit of large tensors are those of descriptors that public compilers build themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

__all__ = [
    "ADDRESS_ALIGNMENT", "CORNER_BITS", "ELEMENTS", "FIELDS", "INTERLEAVES", "LARGE_BYTES", "MAP_BYTES",
    "MOST_DIMENSIONS", "PIXELS", "SWIZZLES", "TILED", "TILED_MODES", "USED_BYTES", "ElementType", "Field", "Swizzle",
    "decode", "encode", "field_values",
]

MAP_BYTES = 128
USED_BYTES = MAP_BYTES // 2
"""Of a tensor map, from its start."""
ADDRESS_ALIGNMENT = 16
"""Of the address of a tensor."""
MOST_DIMENSIONS = 5
LARGE_BYTES = 1 << 17
"""A tensor of so many bytes or more has the bit ``large``."""
TILED = 2
"""The mode of maps of boxes."""
TILED_MODES = (0, TILED)
"""What is taken for it: kernels make maps of zeros by ``tensormap.replace.tile``, which has no field for the mode."""
PIXELS = 3
"""The mode of maps of pixels (im2col). It is this project's, and so are the fields ``low_corner`` to ``pixels``: public
sources say how many bits they have, and not where they are."""
CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""Bits of each number of a corner, by the dimensions of the tensor."""


class Field(NamedTuple):
    """Some bits, which hold a number less ``bias``."""

    offset: int
    bits: int
    bias: int = 0


def _each(offset: int, bits: int, bias: int = 0, count: int = MOST_DIMENSIONS) -> tuple[Field, ...]:
    return tuple(Field(offset + bits * number, bits, bias) for number in range(count))


FIELDS: dict[str, tuple[Field, ...]] = {
    "global_address": (Field(0, 64),),
    "mode": (Field(64, 4),),
    "rank": (Field(68, 3, 1),),
    "elemtype": (Field(71, 4),),
    "interleave_layout": (Field(75, 2),),
    "swizzle_mode": (Field(77, 2),),
    "fill_mode": (Field(79, 1),),
    "tf32": (Field(80, 1),),
    "l2_promotion": (Field(81, 2),),
    "swizzle_atomicity": (Field(83, 2),),
    "large": (Field(85, 1),),
    "swizzle_96": (Field(86, 1),),
    "global_stride": _each(96, 32, count=4),
    "global_stride_high": _each(224, 4, count=4),
    "global_dim": _each(256, 32, 1),
    "element_stride": _each(416, 3, 1),
    "box_dim": _each(440, 8, 1),
    "low_corner": (Field(448, 16),),
    "high_corner": (Field(464, 16),),
    "pixels": (Field(480, 10, 1),),
}
"""By name, a field for each dimension where there are several, the innermost first.

Strides are of the dimensions behind the innermost, in units of 16 bytes, and have 4 bits more in a field of their own.
Maps of pixels have corners where the others have the box behind its innermost dimension, which are channels.
"""


class ElementType(NamedTuple):
    """``code`` and ``tf32`` are its fields; ``number`` is that of ``tensormap.replace``.

    ``bits`` are those of an element in global memory, ``shared_bits`` those that it takes in shared memory.
    """

    code: int
    number: int
    bits: int
    tf32: int = 0
    shared_bits: int = 0

    @property
    def stored_bits(self) -> int:
        return self.shared_bits or self.bits


ELEMENTS = {
    "u8": ElementType(0, 0, 8), "u16": ElementType(1, 1, 16), "u32": ElementType(2, 2, 32),
    "s32": ElementType(3, 3, 32), "u64": ElementType(4, 4, 64), "s64": ElementType(5, 5, 64),
    "f16": ElementType(6, 6, 16), "f32": ElementType(7, 7, 32), "f32.ftz": ElementType(8, 8, 32),
    "f64": ElementType(9, 9, 64), "bf16": ElementType(10, 10, 16), "tf32": ElementType(7, 11, 32, 1),
    "tf32.ftz": ElementType(8, 12, 32, 1), "b4x16": ElementType(11, 13, 4),
    "b4x16_p64": ElementType(12, 14, 4, 0, 8), "b6x16_p32": ElementType(13, 15, 6, 0, 8),
}
"""By the names of PTX. The padded ones fill 16 bytes of shared memory with 16 elements."""
INTERLEAVES = (0, 16, 32)
"""Bytes of a slice, by the value of the field."""


class Swizzle(NamedTuple):
    """``mode`` and ``atomicity`` are its fields.

    In shared memory, bits of a byte's address are inverted where others are set: ``bits`` of them from ``low`` on by
    those from bit 7 on; ``flips``: bit 3 by bit 7 too. ``span`` are the bytes that a row of a box may have. That of 96
    bytes has a bit of its own, ``wide``.
    """

    mode: int
    atomicity: int
    span: int
    low: int
    bits: int
    flips: bool = False
    wide: bool = False


SWIZZLES = {
    "none": Swizzle(0, 0, 0, 4, 0), "32B": Swizzle(1, 0, 32, 4, 1), "64B": Swizzle(2, 0, 64, 4, 2),
    "96B": Swizzle(0, 0, 96, 4, 1, wide=True), "128B": Swizzle(3, 0, 128, 4, 3),
    "128B_atom_32B": Swizzle(3, 1, 128, 5, 2),
    "128B_atom_32B_flip_8B": Swizzle(3, 2, 128, 5, 2, True), "128B_atom_64B": Swizzle(3, 3, 128, 6, 1),
}


def encode(values: Mapping[str, int | Iterable[int]]) -> bytes:
    """The bytes of a map; fields that have no value are of the least one.

    >>> encode({"rank": 2, "box_dim": (64, 128)})[52:60].hex()
    '0000003f7f000000'
    """
    word = 0
    for name, value in values.items():
        for field, number in zip(FIELDS[name], (value,) if isinstance(value, int) else value):
            held = number - field.bias
            if held >> field.bits:
                raise ValueError(f"{name} {number} does not fit into {field.bits} bits")
            word |= held << field.offset
    return word.to_bytes(MAP_BYTES, "little")


def decode(data: bytes) -> dict[str, tuple[int, ...]]:
    """The values of all fields.

    >>> decode(encode({"global_address": 4096, "global_dim": (7, 3)}))["global_dim"]
    (7, 3, 1, 1, 1)
    """
    word = int.from_bytes(data, "little")
    return {
        name: tuple((word >> field.offset & (1 << field.bits) - 1) + field.bias for field in fields)
        for name, fields in FIELDS.items()
    }


def field_values(strides: Iterable[int]) -> dict[str, tuple[int, ...]]:
    """The fields of strides in bytes."""
    units = tuple(stride >> 4 for stride in strides)
    return {
        "global_stride": tuple(unit & (1 << 32) - 1 for unit in units),
        "global_stride_high": tuple(unit >> 32 for unit in units),
    }
