"""The part of the stand-in driver that makes CUDA arrays, texture objects and surface objects.

A CUDA array is bytes with an extent; a copy checks what it is given against them. Fields that the driver's structures
do not have cannot be set.
"""

from __future__ import annotations

import ctypes
import types
from typing import Any

from driver_standin import OK, Handle, Numbers, Standin

SIZES = {"UNSIGNED_INT8": 1, "SIGNED_INT8": 1, "UNSIGNED_INT16": 2, "SIGNED_INT16": 2, "UNSIGNED_INT32": 4,
         "SIGNED_INT32": 4, "HALF": 2, "FLOAT": 4}


class CUDA_ARRAY3D_DESCRIPTOR:
    __slots__ = ("Depth", "Flags", "Format", "Height", "NumChannels", "Width")


class CUDA_MEMCPY3D:
    __slots__ = (
        "Depth", "Height", "WidthInBytes", "dstArray", "dstDevice", "dstHeight", "dstHost", "dstMemoryType", "dstPitch",
        "srcArray", "srcDevice", "srcHeight", "srcHost", "srcMemoryType", "srcPitch",
    )


class CUDA_TEXTURE_DESC:
    __slots__ = (
        "addressMode", "borderColor", "filterMode", "flags", "maxAnisotropy", "maxMipmapLevelClamp",
        "minMipmapLevelClamp", "mipmapFilterMode", "mipmapLevelBias",
    )


class CUDA_RESOURCE_DESC:
    __slots__ = ("flags", "res", "resType")

    def __init__(self) -> None:
        self.res = types.SimpleNamespace(
            array=types.SimpleNamespace(hArray=None), mipmap=types.SimpleNamespace(hMipmappedArray=None),
            linear=types.SimpleNamespace(devPtr=0, format=None, numChannels=0, sizeInBytes=0),
        )


class CudaArray(Handle):
    """A CUDA array: a handle with memory."""

    shape: tuple[int, int, int]
    flags: int
    channels: int
    format: str
    data: bytearray


class ImageStandin(Standin):
    """A stand-in with texture units, as far as a host program sees them."""

    CUarray_format = CUaddress_mode = CUfilter_mode = CUresourcetype = CUmemorytype = Numbers()
    CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D = CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D
    CUDA_TEXTURE_DESC, CUDA_RESOURCE_DESC = CUDA_TEXTURE_DESC, CUDA_RESOURCE_DESC

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.arrays: dict[int, CudaArray] = {}
        self.mipmaps: dict[int, list[CudaArray]] = {}
        self.textures: dict[int, tuple[Any, Any]] = {}
        self.surfaces: dict[int, Any] = {}
        self.references: dict[bytes, dict[str, Any]] = {}
        self.copies: list[CUDA_MEMCPY3D] = []
        self.next = 0x1000

    def fresh(self) -> int:
        self.next += 0x10
        return self.next

    def new_array(self, desc: Any, level: int = 0) -> CudaArray:
        assert isinstance(desc, CUDA_ARRAY3D_DESCRIPTOR)
        size = SIZES[desc.Format.removeprefix("CU_AD_FORMAT_")]
        assert desc.NumChannels in (1, 2, 4)
        assert desc.Width > 0
        assert desc.Flags & ~15 == 0
        array = CudaArray(self.fresh())
        array.flags, array.channels, array.format = desc.Flags, desc.NumChannels, desc.Format
        width, height = max(1, desc.Width >> level), max(1, desc.Height >> level)
        depth = max(1, desc.Depth if desc.Flags & 5 else desc.Depth >> level)
        if desc.Flags & 4:
            assert width == height
            assert depth % 6 == 0
        array.shape = depth, height, width * size * desc.NumChannels
        array.data = bytearray(depth * height * array.shape[2])
        return array

    def cuArray3DCreate(self, desc: Any) -> tuple[Any, ...]:
        self.inside()
        array = self.new_array(desc)
        self.arrays[int(array)] = array
        return OK, array

    def cuArrayDestroy(self, array: CudaArray) -> tuple[Any, ...]:
        del self.arrays[int(array)]
        return (OK,)

    def cuMipmappedArrayCreate(self, desc: Any, levels: int) -> tuple[Any, ...]:
        self.inside()
        assert type(levels) is int
        handle = Handle(self.fresh())
        self.mipmaps[handle] = [self.new_array(desc, level) for level in range(levels)]
        return OK, handle

    def cuMipmappedArrayGetLevel(self, mipmap: Handle, level: int) -> tuple[Any, ...]:
        return OK, self.mipmaps[mipmap][level]

    def cuMipmappedArrayDestroy(self, mipmap: Handle) -> tuple[Any, ...]:
        del self.mipmaps[mipmap]
        return (OK,)

    def cuMemcpyDtoDAsync(self, to: int, source: int, nbytes: int, stream: int) -> tuple[Any, ...]:
        self.check(source, nbytes)
        return self.cuMemcpyHtoDAsync(to, source, nbytes, stream)

    def cuMemcpy3DAsync(self, copy: Any, stream: int) -> tuple[Any, ...]:
        self.inside()
        assert isinstance(copy, CUDA_MEMCPY3D)
        assert isinstance(stream, int)
        self.copies.append(copy)
        back = copy.srcMemoryType == "CU_MEMORYTYPE_ARRAY"
        near, far = ("dst", "src") if back else ("src", "dst")
        array = getattr(copy, f"{far}Array")
        assert isinstance(array, CudaArray)
        assert (copy.Depth, copy.Height, copy.WidthInBytes) == array.shape
        assert (getattr(copy, f"{near}Height"), getattr(copy, f"{near}Pitch")) == array.shape[1:]
        if getattr(copy, f"{near}MemoryType") == "CU_MEMORYTYPE_HOST":
            address = getattr(copy, f"{near}Host")
        else:
            assert getattr(copy, f"{near}MemoryType") == "CU_MEMORYTYPE_DEVICE"
            address = getattr(copy, f"{near}Device")
            self.check(address, len(array.data))
        if back:
            ctypes.memmove(address, bytes(array.data), len(array.data))
        else:
            array.data[:] = ctypes.string_at(address, len(array.data))
        return (OK,)

    def resource(self, desc: Any) -> Any:
        """What a resource descriptor names."""
        assert isinstance(desc, CUDA_RESOURCE_DESC)
        if desc.resType == "CU_RESOURCE_TYPE_ARRAY":
            return self.arrays[int(desc.res.array.hArray)]
        if desc.resType == "CU_RESOURCE_TYPE_MIPMAPPED_ARRAY":
            return self.mipmaps[desc.res.mipmap.hMipmappedArray]
        assert desc.resType == "CU_RESOURCE_TYPE_LINEAR"
        linear = desc.res.linear
        self.check(linear.devPtr, linear.sizeInBytes)
        assert linear.devPtr % 256 == 0
        assert linear.sizeInBytes % (SIZES[linear.format.removeprefix("CU_AD_FORMAT_")] * linear.numChannels) == 0
        return linear

    def cuTexObjectCreate(self, resource: Any, desc: Any, view: Any) -> tuple[Any, ...]:
        self.inside()
        assert isinstance(desc, CUDA_TEXTURE_DESC)
        assert view is None
        assert len(desc.addressMode) == 3
        assert [type(x) for x in desc.borderColor] == [float] * 4
        assert {desc.filterMode, desc.mipmapFilterMode} <= {"CU_TR_FILTER_MODE_POINT", "CU_TR_FILTER_MODE_LINEAR"}
        handle = Handle(self.fresh())
        self.textures[handle] = self.resource(resource), desc
        return OK, handle

    def cuTexObjectDestroy(self, handle: int) -> tuple[Any, ...]:
        del self.textures[handle]
        return (OK,)

    def cuSurfObjectCreate(self, resource: Any) -> tuple[Any, ...]:
        self.inside()
        handle, array = Handle(self.fresh()), self.resource(resource)
        assert array.flags & 2, "an array without CUDA_ARRAY3D_SURFACE_LDST"
        self.surfaces[handle] = array
        return OK, handle

    def cuSurfObjectDestroy(self, handle: int) -> tuple[Any, ...]:
        del self.surfaces[handle]
        return (OK,)

    # -- references of a module

    def cuModuleGetTexRef(self, module: Handle, name: bytes) -> tuple[Any, ...]:
        assert isinstance(module, Handle)
        assert type(name) is bytes
        return OK, self.references.setdefault(name, {})

    def cuModuleGetSurfRef(self, module: Handle, name: bytes) -> tuple[Any, ...]:
        return self.cuModuleGetTexRef(module, name)

    def cuTexRefSetArray(self, reference: dict[str, Any], array: CudaArray, flags: int) -> tuple[Any, ...]:
        assert flags == 1, "CU_TRSA_OVERRIDE_FORMAT"
        reference["array"] = self.arrays[int(array)]
        return (OK,)

    def cuSurfRefSetArray(self, reference: dict[str, Any], array: CudaArray, flags: int) -> tuple[Any, ...]:
        assert flags == 0
        reference["array"] = self.arrays[int(array)]
        return (OK,)

    def cuTexRefSetMipmappedArray(self, reference: dict[str, Any], mipmap: Handle, flags: int) -> tuple[Any, ...]:
        assert flags == 1
        reference["array"] = self.mipmaps[mipmap]
        return (OK,)

    def cuTexRefSetAddress(self, reference: dict[str, Any], address: int, nbytes: int) -> tuple[Any, ...]:
        self.check(address, nbytes)
        reference["array"] = address
        return OK, 0

    def cuTexRefSetFormat(self, reference: dict[str, Any], kind: str, channels: int) -> tuple[Any, ...]:
        reference["format"] = kind, channels
        return (OK,)

    def cuTexRefSetAddressMode(self, reference: dict[str, Any], axis: int, mode: str) -> tuple[Any, ...]:
        assert axis in (0, 1, 2)
        reference.setdefault("address", {})[axis] = mode
        return (OK,)

    def cuTexRefSetFilterMode(self, reference: dict[str, Any], mode: str) -> tuple[Any, ...]:
        reference["filter"] = mode
        return (OK,)

    def cuTexRefSetFlags(self, reference: dict[str, Any], flags: int) -> tuple[Any, ...]:
        reference["flags"] = flags
        return (OK,)

    def cuTexRefSetMipmapFilterMode(self, reference: dict[str, Any], mode: str) -> tuple[Any, ...]:
        reference["blend"] = mode
        return (OK,)

    def cuTexRefSetMipmapLevelBias(self, reference: dict[str, Any], bias: float) -> tuple[Any, ...]:
        reference["bias"] = bias
        return (OK,)

    def cuTexRefSetMipmapLevelClamp(self, reference: dict[str, Any], low: float, high: float) -> tuple[Any, ...]:
        reference["levels"] = low, high
        return (OK,)
