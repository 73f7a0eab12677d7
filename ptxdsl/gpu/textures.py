"""Textures and surfaces on a GPU: CUDA arrays, the objects that name them, and copies from and to the user's arrays.

An image is made once a GPU and filled at each launch, since its array may have changed; that of a read-only array
is filled once. What a kernel may have stored to a surface goes back into its array.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import LaunchError, caller
from ..launch import Argument, Handle, Scalar
from .device import Driver

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..launch.arrays import View
    from ..launch.texture_description import Levels, Sampling

__all__ = ["DeviceImage", "Images", "image_on"]

_FORMATS = {
    "uint8": "UNSIGNED_INT8", "int8": "SIGNED_INT8", "uint16": "UNSIGNED_INT16", "int16": "SIGNED_INT16",
    "uint32": "UNSIGNED_INT32", "int32": "SIGNED_INT32", "float16": "HALF", "float32": "FLOAT",
}
_LAYERED, _SURFACE, _CUBE, _GATHER = 1, 2, 4, 8
_AS_INTEGERS, _NORMALIZED, _SRGB = 1, 2, 16
_GATHERED = 32768
"""Extents up to which a 2d texture can be gathered from."""


class Image(Protocol):
    """A texture or surface of a host program, as far as a GPU needs it."""

    image_kind: str
    axes: str
    """Letters of :data:`..launch.texture_description.AXES`."""
    arrays: list[View]
    """One a mipmap level."""
    dtype: str
    channels: int
    layers: int
    linear_memory: bool
    sampling: Sampling
    """Of a texture, as are the next two."""
    read: str
    srgb: bool

    @property
    def texel_bytes(self) -> int: ...

    @property
    def width_bytes(self) -> int:
        """Of a row of the first level."""

    @property
    def described(self) -> str:
        """For a message."""

    def levels(self) -> list[Levels]:
        """Where the texels lie."""

    def extents(self, array: View) -> tuple[int, int, int]:
        """Width, height and depth of a level."""


class DeviceImage:
    """A texture or surface on one GPU."""

    def __init__(self, image: Image, gpu: Driver) -> None:
        self.gpu, self.image_kind, self.axes, self.layers = gpu, image.image_kind, image.axes, image.layers
        if "s" in image.axes:
            raise LaunchError(
                f"CUDA makes no textures with samples: {image.described}", loc=caller(),
                hint='run it on the emulator: `with ptxdsl.use("emulator"):`',
            )
        self.arrays = image.arrays
        self.placed = image.levels()
        self.extents = [image.extents(array) for array in image.arrays]
        self.texel_bytes, self.channels = image.texel_bytes, image.channels
        self.filled = False
        self.format = getattr(gpu.cu.CUarray_format, f"CU_AD_FORMAT_{_FORMATS[image.dtype]}")
        self.memory, self.handle = 0, 0
        self.mipmap: Any = None
        self.levels: list[Any] = []
        try:
            with gpu.uncaptured():
                if image.linear_memory:
                    self.memory = gpu.memory.allocate(image.width_bytes)
                else:
                    self._make_arrays()
                self.flags = self._flags(image)
                self.handle = self._object(image)
        except BaseException:
            self.free()
            raise

    def _make_arrays(self) -> None:
        """One CUDA array a level."""
        gpu, (width, height, depth) = self.gpu, self.extents[0]
        desc = gpu.cu.CUDA_ARRAY3D_DESCRIPTOR()
        desc.Width, desc.Height, desc.Depth = width, height if "y" in self.axes else 0, 0
        desc.Format, desc.NumChannels, desc.Flags = self.format, self.channels, 0
        if "z" in self.axes:
            desc.Depth = depth
        if "l" in self.axes:
            desc.Depth, desc.Flags = self.layers, _LAYERED
        if "f" in self.axes:
            desc.Depth, desc.Flags = 6 * self.layers, desc.Flags | _CUBE
        if self.image_kind == "surface":
            desc.Flags |= _SURFACE
        elif self.axes == "yx" and max(width, height) <= _GATHERED:
            desc.Flags |= _GATHER
        if len(self.arrays) == 1:
            self.levels = [gpu.call("cuArray3DCreate", desc)]
            return
        self.mipmap = gpu.call("cuMipmappedArrayCreate", desc, len(self.arrays))
        self.levels = [gpu.call("cuMipmappedArrayGetLevel", self.mipmap, level) for level in range(len(self.arrays))]

    def _flags(self, image: Image) -> int:
        if self.image_kind == "surface":
            return 0
        as_integers = image.read == "element" and not image.dtype.startswith("float")
        normalized = image.sampling.normalized or "f" in image.axes
        return _AS_INTEGERS * as_integers | _NORMALIZED * normalized | _SRGB * image.srgb

    def _object(self, image: Image) -> int:
        """The handle that kernels get."""
        cu = self.gpu.cu
        resource, kinds = cu.CUDA_RESOURCE_DESC(), cu.CUresourcetype
        if self.memory:
            resource.resType, linear = kinds.CU_RESOURCE_TYPE_LINEAR, resource.res.linear
            linear.devPtr, linear.format, linear.numChannels = self.memory, self.format, self.channels
            linear.sizeInBytes = image.width_bytes
        elif self.mipmap is not None:
            resource.resType = kinds.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
            resource.res.mipmap.hMipmappedArray = self.mipmap
        else:
            resource.resType, resource.res.array.hArray = kinds.CU_RESOURCE_TYPE_ARRAY, self.levels[0]
        if self.image_kind == "surface":
            return int(self.gpu.call("cuSurfObjectCreate", resource))
        sampling, desc = image.sampling, cu.CUDA_TEXTURE_DESC()
        desc.addressMode = [self._address(mode) for mode in sampling.addresses]
        desc.filterMode, desc.mipmapFilterMode = self._filter(sampling.linear), self._filter(sampling.blend)
        desc.flags, desc.mipmapLevelBias = self.flags, sampling.bias
        desc.minMipmapLevelClamp, desc.maxMipmapLevelClamp = sampling.lowest, sampling.highest
        desc.borderColor = list(struct.unpack("<4f", struct.pack("<4I", *sampling.border)))
        return int(self.gpu.call("cuTexObjectCreate", resource, desc, None))

    def _address(self, mode: str) -> Any:
        return getattr(self.gpu.cu.CUaddress_mode, f"CU_TR_ADDRESS_MODE_{mode.upper()}")

    def _filter(self, linear: bool) -> Any:
        return getattr(self.gpu.cu.CUfilter_mode, f"CU_TR_FILTER_MODE_{'LINEAR' if linear else 'POINT'}")

    # Copies

    def fill(self, stream: int) -> None:
        """Take over what the user's arrays hold now."""
        if self.filled and all(array.readonly for array in self.arrays):
            return
        for level in range(len(self.arrays)):
            self._copy(level, stream, back=False)
        self.filled = True

    def fetch(self, stream: int) -> bool:
        """Copy a surface back into its array; whether that is in host memory, where one has to wait for it."""
        if self.image_kind != "surface":
            return False
        self._copy(0, stream, back=True)
        return self.arrays[0].device is None

    def _copy(self, level: int, stream: int, back: bool) -> None:
        """Between an array of the user's and the level of the image."""
        gpu, array, (width, height, depth) = self.gpu, self.arrays[level], self.extents[level]
        nbytes = width * self.texel_bytes
        if self.memory:
            kind = "HtoD" if array.device is None else "DtoD"
            gpu.call(f"cuMemcpy{kind}Async", self.memory, array.address, nbytes, stream)
            return
        copy, kinds = gpu.cu.CUDA_MEMCPY3D(), gpu.cu.CUmemorytype
        near, far = ("dst", "src") if back else ("src", "dst")
        kind = kinds.CU_MEMORYTYPE_HOST if array.device is None else kinds.CU_MEMORYTYPE_DEVICE
        setattr(copy, f"{near}MemoryType", kind)
        setattr(copy, f"{near}{'Host' if array.device is None else 'Device'}", array.address)
        _, pitch, slices, *_ = self.placed[level]
        setattr(copy, f"{near}Pitch", pitch)
        setattr(copy, f"{near}Height", slices // pitch)
        setattr(copy, f"{far}MemoryType", kinds.CU_MEMORYTYPE_ARRAY)
        setattr(copy, f"{far}Array", self.levels[level])
        copy.WidthInBytes, copy.Height = nbytes, height
        copy.Depth = depth * self.layers * (6 if "f" in self.axes else 1)
        gpu.call("cuMemcpy3DAsync", copy, stream)

    # References

    def bind(self, module: Any, name: str, image: Image) -> None:
        """Let a reference of a loaded module stand for this."""
        call, encoded = self.gpu.call, name.encode()
        if self.image_kind == "surface":
            call("cuSurfRefSetArray", call("cuModuleGetSurfRef", module, encoded), self.levels[0], 0)
            return
        reference, sampling = call("cuModuleGetTexRef", module, encoded), image.sampling
        if self.memory:
            call("cuTexRefSetAddress", reference, self.memory, image.width_bytes)
        elif self.mipmap is not None:
            call("cuTexRefSetMipmappedArray", reference, self.mipmap, 1)
            call("cuTexRefSetMipmapFilterMode", reference, self._filter(sampling.blend))
            call("cuTexRefSetMipmapLevelBias", reference, sampling.bias)
            call("cuTexRefSetMipmapLevelClamp", reference, sampling.lowest, sampling.highest)
        else:
            call("cuTexRefSetArray", reference, self.levels[0], 1)
        if "border" in sampling.addresses and any(sampling.border[: self.channels]):
            raise LaunchError(
                f"the texture reference `{name}` can have a border of zeros only on a GPU", loc=caller(),
                hint="pass the texture as a parameter",
            )
        call("cuTexRefSetFormat", reference, self.format, self.channels)
        for axis, mode in enumerate(sampling.addresses):
            call("cuTexRefSetAddressMode", reference, axis, self._address(mode))
        call("cuTexRefSetFilterMode", reference, self._filter(sampling.linear))
        call("cuTexRefSetFlags", reference, self.flags)

    def free(self) -> None:
        """Give everything back; nothing may use it any more."""
        gpu = self.gpu
        if self.handle:
            gpu.discard("cuSurfObjectDestroy" if self.image_kind == "surface" else "cuTexObjectDestroy", self.handle)
        if self.mipmap is not None:
            gpu.discard("cuMipmappedArrayDestroy", self.mipmap)
        elif self.levels:
            gpu.discard("cuArrayDestroy", self.levels[0])
        gpu.memory.free(self.memory)


_images: weakref.WeakKeyDictionary[Any, dict[int, DeviceImage]] = weakref.WeakKeyDictionary()


def image_on(image: Image, gpu: Driver) -> DeviceImage:
    """A texture or surface on a GPU, made when it is first wanted there."""
    known = _images.setdefault(image, {})
    found = known.get(gpu.device)
    if found is None:
        for array in image.arrays:
            if array.device not in (None, gpu.device):
                raise LaunchError(
                    f"a {image.image_kind} of an array on GPU {array.device} in a launch on GPU {gpu.device}",
                    loc=caller(),
                )
        found = known[gpu.device] = DeviceImage(image, gpu)
        weakref.finalize(image, gpu.retire, found.free).atexit = False
    return found


class Images:
    """The textures and surfaces of one launch: its arguments as numbers, filled before it and fetched after it."""

    def __init__(
        self, gpu: Driver, stream: int, arguments: Sequence[Argument], module: Any, references: Mapping[str, Image]
    ) -> None:
        self.gpu, self.stream, self.given, self.module, self.references = gpu, stream, arguments, module, references

    def __enter__(self) -> Self:
        self.images: dict[int, DeviceImage] = {}
        self.arguments = [self._numbered(argument) for argument in self.given]
        for name, image in self.references.items():
            self._on(image, f"`{name}`").bind(self.module, name, image)
        self._refuse_capture()
        for made in self.images.values():
            made.fill(self.stream)
        return self

    def _refuse_capture(self) -> None:
        """A graph would copy from host memory, and to it, whenever it is launched."""
        hosted = [made for made in self.images.values() if any(array.device is None for array in made.arrays)]
        if hosted and self.gpu.captures(self.stream):
            raise LaunchError(
                f"a launch with a {hosted[0].image_kind} of a host array while its stream is captured into a graph",
                loc=caller(), hint="make it of `ptxdsl.to_device(array)`",
            )

    def _numbered(self, argument: Argument) -> Argument:
        if type(argument) is not Handle:
            return argument
        image = self._on(argument.owner, f"argument `{argument.name}`")
        return Scalar(argument.name, image.handle.to_bytes(8, "little"))

    def _on(self, image: Image, what: str) -> DeviceImage:
        if image.image_kind == "sampler":
            raise LaunchError(
                f"{what} is a sampler of its own, which CUDA's driver has no way to make", loc=caller(),
                hint='give the texture these modes, or run on the emulator: `with ptxdsl.use("emulator"):`',
            )
        made = self.images[id(image)] = image_on(image, self.gpu)
        return made

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return
        fetched = [image.fetch(self.stream) for image in self.images.values()]
        if any(fetched):
            self.gpu.synchronize_stream(self.stream)
