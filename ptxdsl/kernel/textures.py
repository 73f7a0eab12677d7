"""Textures, samplers and surfaces as a host program makes them: an array, and how kernels read it.

The words are those of CUDA's ``cudaTextureDesc``. A texture or surface is its array, not a copy: it shows what the
array holds when a launch begins, and what a kernel stores to a surface is in the array when the launch is over. On a
GPU that takes a copy a launch, but for arrays that cannot be written, which are copied once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
import struct
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from ..errors import LaunchError, caller, with_article
from ..options import checked_options
from ..launch import TracksWrites
from ..launch.arrays import View, describe, owner_of, readable
from ..launch.texture_description import ADDRESS_MODES, AXES, GEOMETRIES, TYPES, Geometry, Levels, Sampling
from .backends import choose

__all__ = ["Sampler", "Surface", "Texture"]

_ADDRESSES = tuple(mode for mode in ADDRESS_MODES if mode != "clamp_ogl")
_FILTERS = ("point", "linear")
_READS = ("element", "normalized")
_GEOMETRIES = {"1d": GEOMETRIES["1d"], "linear": Geometry("x", (1 << 28,)), **GEOMETRIES}
_SURFACES = ("1d", "2d", "3d", "a1d", "a2d")


def _wrong(message: str, hint: str | None = None) -> LaunchError:
    return LaunchError(message, loc=caller(), hint=hint)


def _one_of(what: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise _wrong(f"{what} is one of {', '.join(known)}, not {value!r}", f'`{what}="{known[0]}"`')


class _Image(ABC):
    """What textures and surfaces share: arrays of a format, one a mipmap level, and their geometry."""

    image_kind: str
    made_with: dict[str, Any]
    """How it was asked for, beside the arrays."""
    read = "element"
    srgb = False
    sampling = Sampling()

    def __init__(self, arrays: Sequence[object], geometry: str | None, known: Sequence[str]) -> None:
        self.arrays = [self._view(array) for array in arrays]
        first = self.arrays[0]
        if geometry is None:
            geometry = self._guessed_geometry(first.shape)
        _one_of("geometry", geometry, known)
        self.linear_memory = geometry == "linear"
        self.geometry = "1d" if self.linear_memory else geometry
        self.axes, limits = _GEOMETRIES[geometry]
        self.dtype, self.shape = first.dtype, first.shape
        self.channels = self._channels(geometry, first.shape)
        self._check_extents(geometry, limits)
        for array in self.arrays:
            self._check_steps(array)
        self.layers = first.shape[0] if "l" in self.axes else 1
        self.samples = first.shape[self.axes.index("s")] if "s" in self.axes else 1

    def __reduce__(self) -> tuple[object, ...]:
        """By its arrays, which are pickled as they are, and may be others' too; a handle means nothing elsewhere."""
        arrays = [owner_of(array) for array in self.arrays]
        return partial(type(self), **self.made_with), (arrays if len(arrays) > 1 else arrays[0],)

    def _view(self, array: object) -> View:
        seen = readable(array)
        if seen is None:
            hint = "pass `np.array(...)`" if isinstance(array, (list, tuple)) else None
            raise _wrong(f"a {self.image_kind} is made of an array, not {describe(array)}", hint)
        if seen.dtype not in TYPES:
            near = {"float64": "float32", "int64": "int32", "uint64": "uint32", "bool": "uint8"}.get(seen.dtype)
            fits = ", if each number fits" if seen.dtype in ("int64", "uint64") else ""
            into = ", which then has what is stored" if self.image_kind == "surface" else ""
            hint = f"pass `array.astype(np.{near})`{fits}{into}" if near else None
            raise _wrong(f"a {self.image_kind} has {', '.join(TYPES[:-1])} or {TYPES[-1]}, not {describe(array)}", hint)
        return seen

    def _steps(self, array: View) -> tuple[int, int] | None:
        """Bytes from row to row and from slice to slice, layer or face; None where texels do not lie so."""
        dense, outer = array.itemsize, list(zip(self.axes, array.shape, array.strides))
        inner = [(n, step) for axis, n, step in outer if axis in "xs"]
        inner += [(n, step) for n, step in zip(array.shape[len(outer) :], array.strides[len(outer) :])]
        for extent, step in reversed(inner):
            if step != dense and extent > 1:
                return None
            dense *= extent
        pitch = slices = dense
        for axis, extent, step in reversed([entry for entry in outer if entry[0] in "zlfy"]):
            if extent == 1:
                continue
            if axis == "l" and "f" in self.axes:
                if step != 6 * slices:
                    return None
            elif axis == "y" or "y" not in self.axes:
                pitch = slices = step
            else:
                slices = step
            if pitch < dense or pitch % array.itemsize:
                return None
            if axis == "y":
                slices = pitch * extent
        height = self.extents(array)[1]
        return (pitch, slices) if slices >= pitch * height and slices % pitch == 0 else None

    def _check_steps(self, array: View) -> None:
        if self._steps(array) is None:
            copy = "`copy = np.ascontiguousarray(array)`"
            raise _wrong(
                f"a {self.image_kind} wants contiguous rows, one a pitch behind the other, not "
                f"{describe(array.owner)}, strides {array.strides}",
                "pass `np.ascontiguousarray(array)`" if self.image_kind == "texture"
                else f"{copy}, `Surface(copy)`, and after the launch `array[...] = copy`",
            )

    def _guessed_geometry(self, shape: tuple[int, ...]) -> str:
        if len(shape) in (1, 2):
            return ("1d", "2d")[len(shape) - 1]
        cube = len(shape) > 2 and shape[-3] == 6 and shape[-2] == shape[-1]
        likely = {3: "cube" if cube else "2d" if shape[-1] <= 4 else "3d", 4: "acube" if cube else "3d"}.get(len(shape))
        raise _wrong(
            f"an array of shape {shape} does not say what its axes are", f'`geometry="{likely}"`' if likely else None
        )

    def _channels(self, geometry: str, shape: tuple[int, ...]) -> int:
        count = len(self.axes)
        if len(shape) == count:
            return 1
        names = ", ".join("6 faces" if axis == "f" else AXES[axis] for axis in self.axes)
        if len(shape) != count + 1:
            raise _wrong(
                f"{with_article(geometry)} {self.image_kind} has the axes ({names}), or these and the channels; "
                f"the array has shape {shape}"
            )
        if shape[-1] not in (1, 2, 4):
            hint = "add a channel: `np.concatenate([array, np.ones_like(array[..., :1])], axis=-1)`"
            raise _wrong(
                f"a {self.image_kind} has 1, 2 or 4 channels; "
                f"as the last of ({names}, channels) the array has {shape[-1]}",
                hint if shape[-1] == 3 else None,
            )
        return shape[-1]

    def _check_extents(self, geometry: str, limits: tuple[int, ...]) -> None:
        kind = with_article(f"{geometry} {self.image_kind}")
        for axis, extent, limit in zip(self.axes, self.shape, limits):
            if not 1 <= extent <= limit:
                raise _wrong(f"the {AXES[axis]} of {kind} can be 1 to {limit}, not {extent}")
        if "f" in self.axes:
            at = self.axes.index("f")
            faces, height, width = self.shape[at : at + 3]
            if faces != 6 or height != width:
                raise _wrong(f"{kind} has 6 square faces, not {faces} of {height} by {width}")

    def levels(self) -> list[Levels]:
        """Where the texels of each level lie in host memory."""
        return [self._level(array) for array in self.arrays]

    def _level(self, array: View) -> Levels:
        pitch, slices = self._steps(array) or (0, 0)
        return Levels(array.address, pitch, slices, *self.extents(array))

    def extents(self, array: View) -> tuple[int, int, int]:
        """Width, height and depth of a level; 1 for those that the geometry does not have."""
        sizes = dict(zip(self.axes, array.shape))
        return sizes["x"], sizes.get("y", 1), sizes.get("z", 1)

    @property
    def texel_bytes(self) -> int:
        """Bytes of a texel."""
        return self.channels * self.arrays[0].itemsize

    @property
    def width_bytes(self) -> int:
        """Bytes of a row of the first level."""
        return self.extents(self.arrays[0])[0] * self.samples * self.texel_bytes

    @property
    def described(self) -> str:
        """What it is, in words."""
        kind = with_article(f"{self.geometry} {self.image_kind}")
        return f"{kind} of {self.dtype}[{', '.join(map(str, self.shape))}]"

    def __repr__(self) -> str:
        return f"<{self.described}>"

    @cached_property
    def emulated(self) -> int:
        """The handle on the emulator."""
        for array in self.arrays:
            if array.device is not None:
                raise _wrong(
                    f"a {self.image_kind} of an array on GPU {array.device}; the emulator works in host memory",
                    'make it of a numpy array, or launch with `backend="gpu"`',
                )
            if isinstance(array.owner, TracksWrites):
                array.owner.unwritten = None  # the sanitizer does not see what a surface is written with
        from ..emulator.machine.texture_pool import pool

        handle = pool().take(self)
        self._describe(handle)
        return handle

    @abstractmethod
    def _describe(self, handle: int) -> None:
        """Tell the emulator what the handle stands for."""

    @property
    def handle(self) -> int:
        """The 64-bit handle on the backend of now, for tables of them: an array of these numbers, as a kernel reads it.

        On a GPU with what the array holds now. The object must live as long as the handle is used.
        """
        if choose() == "emulator":
            return self.emulated
        from ..gpu.device import driver
        from ..gpu.textures import image_on

        device = next((array.device for array in self.arrays if array.device is not None), 0)
        image = image_on(self, driver(device))
        image.fill(0)
        return image.handle


def _sampling(
    address: str | Sequence[str], filter_mode: str, normalized: bool | None, border: Sequence[float],
    mipmap: tuple[str, float, tuple[float, float]], *, real: bool = True,
) -> Sampling:
    """The modes, checked; ``normalized`` is None where a texture decides."""
    modes = (address,) * 3 if isinstance(address, str) else (*address, "clamp", "clamp")[:3]
    for mode in modes:
        _one_of("address", mode, _ADDRESSES)
    _one_of("filter", filter_mode, _FILTERS)
    mipmap_filter, bias, (low, high) = mipmap
    _one_of("mipmap_filter", mipmap_filter, _FILTERS)
    used = {address} if isinstance(address, str) else set(address)
    if normalized is False and used & {"wrap", "mirror"}:
        mode = "wrap" if "wrap" in used else "mirror"
        raise _wrong(f'address="{mode}" is for coordinates from 0 to 1', "`normalized=True`, and divide by the size")
    if len(border) != 4:
        raise _wrong(f"border has four channels, not {len(border)}", "`border=(0, 0, 0, 0)`")
    return Sampling(
        (modes[0], modes[1], modes[2]), filter_mode == "linear", bool(normalized), mipmap_filter == "linear",
        float(bias), float(low), float(high), _bits(border, real),
    )


class Sampler:
    """How a texture is read, for PTX of ``.target ..., texmode_independent``, where samplers have names.

    Its arguments are those of :class:`Texture`; the texture decides whether coordinates are normalized, unless
    ``force_unnormalized``. With ``m = ptxdsl.load(...)``, ``m["s"] = Sampler(filter="linear")`` binds it to the
    module's ``.samplerref s``. A kernel takes it as a parameter annotated ``Sampler``, and all its textures with one:
    ``ptx["tex.2d.v4.f32.f32"]((image, sampler, [x, y]))``. On the emulator only: CUDA's driver cannot make one.
    """

    image_kind = "sampler"
    described = "a sampler"

    @checked_options(LaunchError, "Sampler")
    def __init__(
        self, *, address: str | Sequence[str] = "clamp", filter: str = "point",  # noqa: A002
        force_unnormalized: bool = False, border: Sequence[float] = (0.0, 0.0, 0.0, 0.0), mipmap_filter: str = "point",
        mipmap_bias: float = 0.0, mipmap_clamp: tuple[float, float] = (0.0, 1000.0),
    ) -> None:
        self.made_with = {name: value for name, value in locals().items() if name != "self"}
        sampling = _sampling(address, filter, None, border, (mipmap_filter, mipmap_bias, mipmap_clamp))
        self.sampling = sampling._replace(force_unnormalized=bool(force_unnormalized))

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Sampler, **self.made_with), ()

    @cached_property
    def emulated(self) -> int:
        """The handle on the emulator."""
        from ..emulator.machine.texture_pool import pool

        handle = pool().take(self)
        pool().write_sampler(handle, self.sampling, alone=True)
        return handle


def _bits(border: Sequence[float], real: bool) -> tuple[int, int, int, int]:
    """The border as a texel has it."""
    try:
        if real:
            a, b, c, d = struct.unpack("<4I", struct.pack("<4f", *border))
        else:
            a, b, c, d = (int(x) & 0xFFFFFFFF for x in border)
    except (TypeError, ValueError, OverflowError, struct.error):
        raise _wrong(f"border has four numbers, not {border!r}", "`border=(0, 0, 0, 0)`") from None
    return a, b, c, d


class Texture(_Image):
    """An array that kernels read through the texture units: filtered, and beyond its edges.

    ``geometry`` says what the array's axes are, in PTX's words: ``"1d"`` (width), ``"2d"`` (height, width), ``"3d"``
    (depth, height, width), layers of these as ``"a1d"`` and ``"a2d"`` (layers, ...), ``"cube"`` (6, n, n) and
    ``"acube"`` (layers, 6, n, n), ``"linear"`` (width; up to 2**28 texels, whole coordinates only). An axis of 1, 2
    or 4 channels may follow them. A list of arrays, each half the size of the one before, is a texture with
    mipmap levels.

    ``address`` is what lies beyond the edges: ``"clamp"``, ``"border"``, and for ``normalized`` coordinates ``"wrap"``
    and ``"mirror"``; one for all axes, or one for each of x, y, z. ``filter`` is ``"point"`` or ``"linear"``. With
    ``read="normalized"`` integers of 8 and 16 bits are read as numbers from 0 (or -1) to 1, and with ``srgb`` the first
    three channels of 8 bits as light.

    A kernel takes it as a parameter annotated ``Texture``, which is its handle of 64 bits:

    >>> import numpy as np
    >>> from ptxdsl import Array, Texture, f32, ptx, ptx_kernel, u32
    >>> @ptx_kernel
    ... def resize(image: Texture, out: Array[f32, 2], scale: f32):
    ...     x, y = ptx.tid.x, ptx.tid.y
    ...     at = [(i.to(f32) + 0.5) * scale for i in (x, y)]
    ...     out[y, x] = ptx["tex.2d.v4.f32.f32"]((image, at))[0]
    >>> picture = np.float32([[0, 4], [8, 12]])
    >>> out = np.empty((4, 4), np.float32)
    >>> resize[1, (4, 4)](Texture(picture, filter="linear"), out, 0.5)
    >>> out
    array([[ 0.,  1.,  3.,  4.],
           [ 2.,  3.,  5.,  6.],
           [ 6.,  7.,  9., 10.],
           [ 8.,  9., 11., 12.]], dtype=float32)
    """

    image_kind = "texture"

    @checked_options(LaunchError, "Texture")
    def __init__(
        self, array: Any, geometry: str | None = None, *, address: str | Sequence[str] = "clamp",
        filter: str = "point",  # noqa: A002
        read: str = "element", normalized: bool = False, border: Sequence[float] = (0, 0, 0, 0), srgb: bool = False,
        mipmap_filter: str = "point", mipmap_bias: float = 0.0, mipmap_clamp: tuple[float, float] = (0.0, 1000.0),
    ) -> None:
        self.made_with = {name: value for name, value in locals().items() if name not in ("self", "array", "__class__")}
        levels = list(array) if isinstance(array, (list, tuple)) and array and hasattr(array[0], "shape") else [array]
        super().__init__(levels, geometry, tuple(_GEOMETRIES))
        self.read, self.srgb = read, bool(srgb)
        self._check_read()
        real = self.dtype.startswith("float") or read == "normalized"
        mipmap = mipmap_filter, mipmap_bias, mipmap_clamp
        sampling = _sampling(address, filter, bool(normalized), border, mipmap, real=real)
        if filter == "linear" and not real:
            small = self.dtype in ("uint8", "int8", "uint16", "int16")
            raise _wrong(
                f'filter="linear" makes floats, and the texels are read as {self.dtype}',
                '`read="normalized"`' if small else "pass `array.astype(np.float32)`",
            )
        if self.linear_memory and (filter == "linear" or normalized or len(levels) > 1):
            raise _wrong(
                "a linear texture is read at whole coordinates, without a filter or mipmap levels", '`geometry="1d"`'
            )
        if len(levels) > 1:
            self._check_levels(normalized)
        one = 0x3F800000 if real else 1
        a, b, c, d = (sampling.border[n] if n < self.channels else one if n == 3 else 0 for n in range(4))
        self.sampling = sampling._replace(border=(a, b, c, d))

    def _check_read(self) -> None:
        _one_of("read", self.read, _READS)
        if self.read == "normalized" and self.dtype not in ("uint8", "int8", "uint16", "int16"):
            raise _wrong(
                f'read="normalized" is for integers of 8 and 16 bits; the array is {self.dtype}', '`read="element"`'
            )
        if self.srgb and (self.dtype != "uint8" or self.read != "normalized"):
            raise _wrong("srgb is for uint8 that is read as numbers from 0 to 1", '`read="normalized"`')

    def _check_levels(self, normalized: bool) -> None:
        if "s" in self.axes or self.linear_memory:
            raise _wrong("a texture with samples has no mipmap levels")
        if not normalized and "cube" not in self.geometry:
            raise _wrong("mipmap levels are for coordinates from 0 to 1", "`normalized=True`, and divide by the size")
        for number, array in enumerate(self.arrays):
            halved = tuple(
                max(1, extent >> number) if axis in "xyz" else extent for axis, extent in zip(self.axes, self.shape)
            )
            wanted = halved + self.shape[len(self.axes) :]
            if array.shape != wanted or array.dtype != self.dtype:
                raise _wrong(
                    f"mipmap level {number} is {array.dtype}[{', '.join(map(str, array.shape))}]; "
                    f"it halves to {self.dtype}[{', '.join(map(str, wanted))}]"
                )

    def _describe(self, handle: int) -> None:
        from ..emulator.machine.texture_pool import Kind, pool

        pool().write_picture(handle, Kind.TEXTURE, self)
        pool().write_sampler(handle, self.sampling)


class Surface(_Image):
    """An array that kernels read and write by coordinates, with what happens beyond its edges in the instruction.

    ``geometry`` is ``"1d"``, ``"2d"``, ``"3d"``, ``"a1d"`` or ``"a2d"``, as for :class:`Texture`.

    >>> import numpy as np
    >>> from ptxdsl import Surface, ptx, ptx_kernel, s32
    >>> @ptx_kernel
    ... def fill(image: Surface):
    ...     x, y = ptx.tid.x.bits(s32), ptx.tid.y.bits(s32)
    ...     ptx["sust.b.2d.b32.zero"]((image, (x * 4, y)), x * 10 + y)  # in bytes along x
    >>> out = np.zeros((2, 3), np.int32)
    >>> fill[1, (8, 8)](Surface(out))
    >>> out
    array([[ 0, 10, 20],
           [ 1, 11, 21]], dtype=int32)
    """

    image_kind = "surface"

    @checked_options(LaunchError, "Surface")
    def __init__(self, array: Any, geometry: str | None = None) -> None:
        self.made_with = {"geometry": geometry}
        super().__init__([array], geometry, _SURFACES)
        if self.arrays[0].readonly:
            raise _wrong(f"a surface can be written, and {describe(array)} is read-only", "`array = array.copy()`")

    def _describe(self, handle: int) -> None:
        from ..emulator.machine.texture_pool import Kind, pool

        pool().write_picture(handle, Kind.SURFACE, self)
