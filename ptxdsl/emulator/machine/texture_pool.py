"""Textures, samplers and surfaces in the emulator's memory: headers that compiled code reads.

A handle is the address of a header in one pool, so a number that is no handle is recognised without touching it. The
texels stay where numpy has them; a header says where, of which format, and how to sample.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from ... import locks
from ...errors import LaunchError, caller, with_article
from ...launch.texture_description import ADDRESS_MODES, GEOMETRIES, TYPES, Levels, Sampling
from ...machine_code.once import once
from .allocation import number_at
from .layout import LANES
from .status import Number
from .structs import Struct, field

if TYPE_CHECKING:
    from ...ir import Variable

__all__ = ["GEOMETRY_NUMBERS", "HEADERS", "Header", "Kind", "Level", "ModuleReference", "Pool", "Request", "pool"]

HEADERS = 16384
"""Textures, samplers and surfaces that can be there at a time."""

GEOMETRY_NUMBERS = {name: number for number, name in enumerate(GEOMETRIES)}


class Kind(Number):
    """What a header describes."""

    NONE = 0
    TEXTURE = 1
    SAMPLER = 2
    SURFACE = 3


QUERIES = (
    "width", "height", "depth", "array_size", "channel_data_type", "channel_order", "num_mipmap_levels",
    "num_samples", "memory_layout", "normalized_coords", "force_unnormalized_coords", "filter_mode", "addr_mode_0",
    "addr_mode_1", "addr_mode_2",
)
"""What txq and suq query."""


class Header(Struct):
    """A header. From SAMPLER on is all that a sampler has."""

    align = 256
    KIND = field("i")
    GEOMETRY = field("i")
    """One of GEOMETRY_NUMBERS."""
    FORMAT = field("i")
    """3 times the index in TYPES, plus 0, 1, 2 for 1, 2, 4 channels."""
    TEXEL = field("i")
    """Bytes."""
    READ = field("i")
    """How integers are read: as they are, as numbers from 0 or -1 to 1, by the table of sRGB."""
    LEVELS = field("i")
    SAMPLES = field("i")
    LAYERS = field("i")
    TABLE = field("Q")
    """Address of the levels."""
    CURVE = field("Q")
    """Address of 256 f32, what sRGB's numbers stand for."""
    REAL = field("i")
    """Whether texels are read as f32."""
    PROPERTIES = field("i", len(QUERIES))
    """In the order of QUERIES."""
    SAMPLER = field("i", 0, align=64)
    ADDRESS = field("i", 3)
    """Of each axis: index in ADDRESS_MODES."""
    LINEAR = field("i")
    NORMALIZED = field("i")
    BLEND = field("i")
    """Whether two mipmap levels are blended."""
    BIAS = field("f")
    LOWEST = field("f")
    HIGHEST = field("f")
    """Of the level of detail, as the bias."""
    UNNORMALIZED = field("i")
    """Of a sampler apart: coordinates are texels, whatever the texture says."""
    BORDER = field("I", 4, align=16)
    """The bits of four channels."""


class Level(Struct):
    """The description of a mipmap level."""

    BASE = field("q")
    PITCH = field("q")
    SLICE = field("q")
    """Bytes from row to row, and from slice or layer to the next."""
    WIDTH = field("i")
    HEIGHT = field("i")
    DEPTH = field("i")


class Request(Struct):
    """What one instruction gives to a unit and gets back, by lane."""

    HANDLE = field("Q", LANES)
    SAMPLER = field("Q", LANES)
    LAYER = field("i", LANES)
    X = field("i", 3 * LANES)
    """Then Y and Z."""
    SAMPLE = field("i", LANES)
    OFFSET = field("i", 3 * LANES)
    REFERENCE = field("i", LANES)
    LOD = field("i", LANES)
    GRADIENTS = field("i", 6 * LANES)
    """By x along each axis, then by y."""
    VALUE = field("Q", 0)
    """What is stored, where a load has its RESULT."""
    RESULT = field("Q", 4 * LANES)
    """Four channels."""


_DATA_TYPES = dict(zip(TYPES, (0x10DA, 0x10D7, 0x10DB, 0x10D8, 0x10DC, 0x10D9, 0x10DD, 0x10DE)))
_NORMALIZED = {"uint8": 0x10D2, "int8": 0x10D0, "uint16": 0x10D3, "int16": 0x10D1}
_ORDERS = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
"""OpenCL's numbers, which PTX takes over."""
_LEVEL = Level.span("BASE")
_KIND, _IMAGE, _SAMPLER = Header.span("KIND", "KIND"), Header.span("GEOMETRY", "REAL"), Header.span("SAMPLER", "BORDER")
_IMAGE_PROPERTIES = struct.Struct(f"<{QUERIES.index('normalized_coords')}i")
_SAMPLER_PROPERTIES = struct.Struct(f"<{len(QUERIES) - QUERIES.index('normalized_coords')}i")


class Picture(Protocol):
    """What is asked of a texture or surface."""

    geometry: str
    dtype: str
    channels: int
    samples: int
    layers: int
    read: str
    srgb: bool

    def levels(self) -> list[Levels]:
        """Where the texels lie."""


class Pool:
    """The headers, and what each describes."""

    def __init__(self) -> None:
        import numpy as np

        self._memory = np.zeros((HEADERS + 1) * Header.nbytes, np.uint8)  # unused pages are never touched
        self.start = self._memory.ctypes.data + -self._memory.ctypes.data % Header.nbytes
        self._free = list(range(HEADERS - 1, -1, -1))
        self._owners: dict[int, Any] = {}
        self._kept: dict[int, Any] = {}
        self._lock = locks.lock()

    def take(self, owner: object) -> int:
        """The handle of an empty header, which is given back when its owner is no more."""
        with self._lock:
            if not self._free:
                raise LaunchError(f"there are {HEADERS} textures, samplers and surfaces already", loc=caller())
            handle = self.start + self._free.pop() * Header.nbytes
        self._owners[handle] = weakref.ref(owner)
        weakref.finalize(owner, self._give, handle)
        return handle

    def _give(self, handle: int) -> None:
        ctypes.memset(handle, 0, Header.nbytes)
        self._kept.pop(handle, None)
        self._owners.pop(handle, None)
        self._free.append((handle - self.start) // Header.nbytes)

    def owner(self, handle: int) -> Any:
        """The texture, sampler or surface that a number is the handle of; None where it is no handle."""
        found = self._owners.get(handle)
        return found() if found is not None else None

    def kind(self, handle: int) -> int:
        """What a handle stands for."""
        return number_at(handle, 4) if handle in self._owners else Kind.NONE

    def copy(self, to: int, source: int) -> None:
        """Let a handle stand for what another one does."""
        ctypes.memmove(to, source, Header.nbytes)

    def write_picture(self, handle: int, kind: int, picture: Picture) -> None:
        """Describe a texture or a surface."""
        import numpy as np

        levels = picture.levels()
        table = np.frombuffer(b"".join(_LEVEL.pack(*level) for level in levels), np.uint8)
        code = 3 * TYPES.index(picture.dtype) + picture.channels.bit_length() - 1
        texel = np.dtype(picture.dtype).itemsize * picture.channels
        read = 2 if picture.srgb else 1 if picture.read == "normalized" else 0
        real = picture.dtype.startswith("float") or picture.read == "normalized"
        self._kept[handle] = table
        first = levels[0]
        data_type = _NORMALIZED[picture.dtype] if picture.read == "normalized" else _DATA_TYPES[picture.dtype]
        self._put(
            handle, Header.GEOMETRY, _IMAGE, GEOMETRY_NUMBERS[picture.geometry], code, texel, read, len(levels),
            picture.samples, picture.layers, table.ctypes.data, _curve().ctypes.data, real,
        )
        self._put(
            handle, Header.PROPERTIES, _IMAGE_PROPERTIES, first.width, first.height, first.depth,
            picture.layers, data_type, _ORDERS[picture.channels], len(levels), picture.samples, 0,
        )
        self._put(handle, Header.KIND, _KIND, kind)

    def write_sampler(self, handle: int, sampler: Sampling, alone: bool = False) -> None:
        """Describe how a texture is sampled, in its header, or in the header of a sampler."""
        modes = [ADDRESS_MODES.index(mode) for mode in sampler.addresses]
        self._put(
            handle, Header.SAMPLER, _SAMPLER, *modes, sampler.linear, sampler.normalized, sampler.blend, sampler.bias,
            sampler.lowest, sampler.highest, sampler.force_unnormalized, *sampler.border,
        )
        self._put(
            handle, Header.PROPERTIES + _IMAGE_PROPERTIES.size, _SAMPLER_PROPERTIES, sampler.normalized,
            sampler.force_unnormalized, sampler.linear, *modes,
        )
        if alone:
            self._put(handle, Header.KIND, _KIND, Kind.SAMPLER)

    def _put(self, handle: int, offset: int, packer: struct.Struct, *values: Any) -> None:
        ctypes.memmove(handle + offset, packer.pack(*values), packer.size)


class ModuleReference:
    """A texture, sampler or surface that a module declares: what the host binds to it, or its initial fields say."""

    def __init__(self, variable: Variable) -> None:
        self.variable, self.handle = variable, pool().take(self)
        self.bound: Any = None
        if str(variable.type) == "samplerref" and variable.properties:
            pool().write_sampler(self.handle, _initial(dict(variable.properties)), alone=True)

    def bind(self, bound: Any) -> None:
        """Stand for this from now on."""
        self.bound = bound
        pool().copy(self.handle, bound.emulated)

    @property
    def described(self) -> str:
        """What it stands for, in words."""
        return self.bound.described if self.bound is not None else with_article(self.variable.type)

    @property
    def width_bytes(self) -> int:
        """Of a surface: bytes in a row."""
        return int(self.bound.width_bytes) if self.bound is not None else 0


_INITIAL = {"clamp_to_edge": "clamp", "clamp_to_border": "border"}


def _initial(fields: dict[str, Any]) -> Sampling:
    """What the initial fields of a ``.samplerref`` say."""
    modes = [fields.get(f"addr_mode_{axis}", "clamp_to_edge") for axis in range(3)]
    x, y, z = (_INITIAL.get(mode, mode) for mode in modes)
    forced = bool(fields.get("force_unnormalized_coords", 0))
    return Sampling((x, y, z), fields.get("filter_mode") == "linear", highest=1000.0, force_unnormalized=forced)


@functools.cache
def _curve() -> Any:
    """sRGB's numbers as the light that they stand for (IEC 61966-2-1)."""
    import numpy as np

    c = np.arange(256) / 255.0
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


@once
def pool() -> Pool:
    """The pool of this process."""
    return Pool()
