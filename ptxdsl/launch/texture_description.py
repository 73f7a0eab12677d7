"""What a texture is to both backends: its geometry, the types of texels, where they lie, and how they are sampled."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ADDRESS_MODES", "AXES", "GEOMETRIES", "TYPES", "Geometry", "Levels", "Sampling"]

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32")
"""numpy's names."""
ADDRESS_MODES = ("wrap", "mirror", "clamp_ogl", "clamp", "border")
"""What lies beyond the edges, in the order of the numbers that ``txq`` gives; CUDA has no ``clamp_ogl``."""
AXES = {"l": "layers", "f": "faces", "z": "depth", "y": "height", "x": "width", "s": "samples"}


class Geometry(NamedTuple):
    """The axes of an array, the outermost first, as letters of ``AXES``, and the most that each can be."""

    axes: str
    limits: tuple[int, ...]


_WIDE, _LAYERS = 32768, 2048
GEOMETRIES = {
    "1d": Geometry("x", (131072,)),
    "2d": Geometry("yx", (65536, 131072)),
    "3d": Geometry("zyx", (16384, 16384, 16384)),
    "a1d": Geometry("lx", (_LAYERS, _WIDE)),
    "a2d": Geometry("lyx", (_LAYERS, _WIDE, _WIDE)),
    "cube": Geometry("fyx", (6, _WIDE, _WIDE)),
    "acube": Geometry("lfyx", (_LAYERS // 6, 6, _WIDE, _WIDE)),
    "2dms": Geometry("yxs", (_WIDE, _WIDE, 16)),
    "a2dms": Geometry("lyxs", (_LAYERS, _WIDE, _WIDE, 16)),
}
"""By PTX's names. The limits are those of every GPU since sm_75."""


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
