"""What a texture is to both backends: the types that texels can have, where they lie, and how they are sampled."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TYPES", "Levels", "Sampling"]

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32")
"""numpy's names."""


class Levels(NamedTuple):
    """A mipmap level: the address of its first texel, strides in bytes, extents in texels."""

    base: int
    pitch: int
    slice: int
    width: int
    height: int
    depth: int


class Sampling(NamedTuple):
    """How a texture is sampled: address mode of each axis, filters, range of mipmap levels, bits of the border."""

    addresses: tuple[str, str, str] = ("clamp", "clamp", "clamp")
    linear: bool = False
    normalized: bool = False
    blend: bool = False
    bias: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0
    border: tuple[int, int, int, int] = (0, 0, 0, 0)
    force_unnormalized: bool = False
