"""The part of the stand-in driver that makes CUDA arrays, texture objects and surface objects.

A CUDA array is bytes with an extent; a copy checks what it is given against them.
"""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_size_t, c_uint32, c_uint64
from typing import Any

from driver_standin import Standin, put

__all__ = ["CudaArray", "ImageStandin"]

_SIZES = {1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}
"""Bytes of a channel, by the numbers of CUarray_format."""
_HOST, _DEVICE, _ARRAY = 1, 2, 3
"""Numbers of CUmemorytype."""
_AS_ARRAY, _AS_MIPMAP, _AS_LINEAR = 0, 1, 2
"""Numbers of CUresourcetype."""


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [
        ("Width", c_size_t), ("Height", c_size_t), ("Depth", c_size_t), ("Format", c_uint32), ("NumChannels", c_uint32),
        ("Flags", c_uint32),
    ]


def _end(side: str) -> list[tuple[str, Any]]:
    return [
        *((f"{side}{name}", c_size_t) for name in ("XInBytes", "Y", "Z", "LOD")), (f"{side}MemoryType", c_uint32),
        *((f"{side}{name}", c_uint64) for name in ("Host", "Device", "Array", "Reserved", "Pitch", "Height")),
    ]


class Copy(ctypes.Structure):
    _fields_ = [*_end("src"), *_end("dst"), ("WidthInBytes", c_size_t), ("Height", c_size_t), ("Depth", c_size_t)]


class Linear(ctypes.Structure):
    _fields_ = [("devPtr", c_uint64), ("format", c_uint32), ("numChannels", c_uint32), ("sizeInBytes", c_size_t)]


class Resource(ctypes.Union):
    _fields_ = [("handle", c_uint64), ("linear", Linear), ("reserved", c_uint32 * 32)]


class ResourceDescriptor(ctypes.Structure):
    _fields_ = [("resType", c_uint32), ("res", Resource), ("flags", c_uint32)]


class TextureDescriptor(ctypes.Structure):
    _fields_ = [
        ("addressMode", c_uint32 * 3), ("filterMode", c_uint32), ("flags", c_uint32), ("maxAnisotropy", c_uint32),
        ("mipmapFilterMode", c_uint32), ("mipmapLevelBias", c_float), ("minMipmapLevelClamp", c_float),
        ("maxMipmapLevelClamp", c_float), ("borderColor", c_float * 4), ("reserved", c_uint32 * 12),
    ]


class CudaArray:
    """A CUDA array; ``shape`` is its depth, its height and its width in bytes."""

    def __init__(self, desc: ArrayDescriptor, level: int = 0) -> None:
        assert desc.NumChannels in (1, 2, 4)
        assert desc.Width > 0
        assert desc.Flags & ~15 == 0
        self.flags, self.channels, self.format = desc.Flags, desc.NumChannels, desc.Format
        width, height = max(1, desc.Width >> level), max(1, desc.Height >> level)
        depth = max(1, desc.Depth if desc.Flags & 5 else desc.Depth >> level)
        if desc.Flags & 4:
            assert width == height
            assert depth % 6 == 0
        self.shape = depth, height, width * _SIZES[desc.Format] * desc.NumChannels
        self.data = bytearray(depth * height * self.shape[2])


class ImageStandin(Standin):
    """A stand-in with texture units, as far as a host program sees them."""

    def __init__(self, capability: int = 90, count: int = 1) -> None:
        super().__init__(capability, count)
        self.arrays: dict[int, CudaArray] = {}
        self.mipmaps: dict[int, list[tuple[int, CudaArray]]] = {}
        self.textures: dict[int, tuple[Any, TextureDescriptor]] = {}
        self.surfaces: dict[int, Any] = {}
        self.references: dict[bytes, dict[str, Any]] = {}
        self.reference_names: dict[int, bytes] = {}
        self.copies: list[Copy] = []

    def cuArray3DCreate(self, out: int, desc: int) -> None:
        self.inside()
        handle = self.fresh()
        self.arrays[handle] = CudaArray(ArrayDescriptor.from_address(desc))
        put(out, handle)

    def cuArrayDestroy(self, array: int) -> None:
        self.finish_all()
        del self.arrays[array]

    def cuMipmappedArrayCreate(self, out: int, desc: int, levels: int) -> None:
        self.inside()
        made = [(self.fresh(), CudaArray(ArrayDescriptor.from_address(desc), level)) for level in range(levels)]
        handle = self.fresh()
        self.mipmaps[handle] = made
        put(out, handle)

    def cuMipmappedArrayGetLevel(self, out: int, mipmap: int, level: int) -> None:
        put(out, self.mipmaps[mipmap][level][0])

    def cuMipmappedArrayDestroy(self, mipmap: int) -> None:
        self.finish_all()
        del self.mipmaps[mipmap]

    def array_of(self, handle: int) -> CudaArray:
        """The CUDA array of a handle, be it a level of a mipmap."""
        known = {**self.arrays, **{each: array for levels in self.mipmaps.values() for each, array in levels}}
        return known[handle]

    def cuMemcpy3DAsync(self, desc: int, stream: int) -> None:
        self.inside()
        copy = Copy.from_buffer_copy((ctypes.c_char * ctypes.sizeof(Copy)).from_address(desc))
        if _ARRAY not in (copy.srcMemoryType, copy.dstMemoryType):
            self.copy_rows(copy, stream)
            return
        self.copies.append(copy)
        back = copy.srcMemoryType == _ARRAY
        near, far = ("dst", "src") if back else ("src", "dst")
        array = self.array_of(getattr(copy, f"{far}Array"))
        assert (copy.Depth, copy.Height, copy.WidthInBytes) == array.shape
        assert (getattr(copy, f"{near}Height"), getattr(copy, f"{near}Pitch")) == array.shape[1:]
        hosted = getattr(copy, f"{near}MemoryType") == _HOST
        address = getattr(copy, f"{near}Host" if hosted else f"{near}Device")
        if not hosted:
            assert getattr(copy, f"{near}MemoryType") == _DEVICE
            self.check(address, len(array.data))
        if back:
            self.submit(stream, lambda: ctypes.memmove(address, bytes(array.data), len(array.data)))
            if hosted and not self.is_pinned(address):
                self.finish_stream(stream)
            return
        staged = ctypes.string_at(address, len(array.data)) if hosted and not self.is_pinned(address) else None

        def fill() -> None:
            array.data[:] = ctypes.string_at(address, len(array.data)) if staged is None else staged

        self.submit(stream, fill)

    def copy_rows(self, copy: Copy, stream: int) -> None:
        """Rows with a pitch, none of which overlap, between the host and a GPU, or within one."""
        assert copy.Depth == 1
        ends = []
        for side in ("src", "dst"):
            kind, pitch = getattr(copy, f"{side}MemoryType"), getattr(copy, f"{side}Pitch")
            assert kind in (_HOST, _DEVICE)
            assert copy.WidthInBytes <= pitch < 1 << 31
            assert copy.Height <= getattr(copy, f"{side}Height")
            first = getattr(copy, f"{side}Host" if kind == _HOST else f"{side}Device")
            ends.append([first + row * pitch for row in range(copy.Height)])
            for address in ends[-1] if kind == _DEVICE else ():
                self.check(address, copy.WidthInBytes)
        sources, targets = ends
        hosted, width = copy.srcMemoryType == _HOST and not self.is_pinned(sources[0]), copy.WidthInBytes
        staged = [ctypes.string_at(source, width) for source in sources] if hosted else sources

        def run() -> None:
            for target, source in zip(targets, staged):
                ctypes.memmove(target, source, width)

        self.submit(stream, run)
        if copy.dstMemoryType == _HOST and not self.is_pinned(targets[0]):
            self.finish_stream(stream)

    def resource(self, address: int) -> Any:
        """What a resource descriptor names."""
        desc = ResourceDescriptor.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(ResourceDescriptor)))
        if desc.resType == _AS_ARRAY:
            return self.arrays[desc.res.handle]
        if desc.resType == _AS_MIPMAP:
            return [array for _, array in self.mipmaps[desc.res.handle]]
        assert desc.resType == _AS_LINEAR
        linear = desc.res.linear
        self.check(linear.devPtr, linear.sizeInBytes)
        assert linear.devPtr % 256 == 0
        assert linear.sizeInBytes % (_SIZES[linear.format] * linear.numChannels) == 0
        return linear

    def cuTexObjectCreate(self, out: int, resource: int, desc: int, view: int) -> None:
        self.inside()
        assert view == 0
        handle, size = self.fresh(), ctypes.sizeof(TextureDescriptor)
        given = TextureDescriptor.from_buffer_copy(ctypes.string_at(desc, size))
        assert {given.filterMode, given.mipmapFilterMode} <= {0, 1}
        self.textures[handle] = self.resource(resource), given
        put(out, handle)

    def cuTexObjectDestroy(self, handle: int) -> None:
        del self.textures[handle]

    def cuSurfObjectCreate(self, out: int, resource: int) -> None:
        self.inside()
        handle, array = self.fresh(), self.resource(resource)
        assert array.flags & 2, "an array without CUDA_ARRAY3D_SURFACE_LDST"
        self.surfaces[handle] = array
        put(out, handle)

    def cuSurfObjectDestroy(self, handle: int) -> None:
        del self.surfaces[handle]

    # -- references of a module

    def cuModuleGetTexRef(self, out: int, module: int, name: int) -> None:
        text = ctypes.string_at(name)
        assert text in self.modules[module]
        handle = self.fresh()
        self.reference_names[handle] = text
        self.references.setdefault(text, {})
        put(out, handle)

    def cuModuleGetSurfRef(self, out: int, module: int, name: int) -> None:
        self.cuModuleGetTexRef(out, module, name)

    def reference(self, handle: int) -> dict[str, Any]:
        return self.references[self.reference_names[handle]]

    def cuTexRefSetArray(self, reference: int, array: int, flags: int) -> None:
        assert flags == 1, "CU_TRSA_OVERRIDE_FORMAT"
        self.reference(reference)["array"] = self.arrays[array]

    def cuSurfRefSetArray(self, reference: int, array: int, flags: int) -> None:
        assert flags == 0
        self.reference(reference)["array"] = self.arrays[array]

    def cuTexRefSetMipmappedArray(self, reference: int, mipmap: int, flags: int) -> None:
        assert flags == 1
        self.reference(reference)["array"] = [array for _, array in self.mipmaps[mipmap]]

    def cuTexRefSetAddress(self, offset: int, reference: int, address: int, nbytes: int) -> None:
        self.check(address, nbytes)
        self.reference(reference)["array"] = address
        put(offset, 0)

    def cuTexRefSetFormat(self, reference: int, kind: int, channels: int) -> None:
        self.reference(reference)["format"] = kind, channels

    def cuTexRefSetAddressMode(self, reference: int, axis: int, mode: int) -> None:
        assert axis in (0, 1, 2)
        self.reference(reference).setdefault("address", {})[axis] = mode

    def cuTexRefSetFilterMode(self, reference: int, mode: int) -> None:
        self.reference(reference)["filter"] = mode

    def cuTexRefSetFlags(self, reference: int, flags: int) -> None:
        self.reference(reference)["flags"] = flags

    def cuTexRefSetMipmapFilterMode(self, reference: int, mode: int) -> None:
        self.reference(reference)["blend"] = mode

    def cuTexRefSetMipmapLevelBias(self, reference: int, bias: float) -> None:
        self.reference(reference)["bias"] = bias

    def cuTexRefSetMipmapLevelClamp(self, reference: int, low: float, high: float) -> None:
        self.reference(reference)["levels"] = low, high
