"""Tensor maps: what a kernel's tensor copies (TMA) know of an array, encoded on the host as the driver's API does.

No driver is asked, so a map is made without a GPU too. What the API refuses is refused here, with the reason.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..errors import LaunchError, caller
from ..options import checked_options
from ..isa.tensor_maps import (
    CORNER_BITS, ELEMENTS, INTERLEAVES, LARGE_BYTES, MOST_DIMENSIONS, PIXELS, SWIZZLES, TILED, ElementType, encode,
    field_values,
)
from ..types import ScalarType
from .arrays import Unreadable, View, describe, owner_of, view
from .tensor_map_argument import TensorMapArgument

__all__ = ["TensorMapArgument", "tensor_map"]

_TYPES = {
    "bool": "u8", "uint8": "u8", "int8": "u8", "uint16": "u16", "int16": "u16", "uint32": "u32", "int32": "s32",
    "uint64": "u64", "int64": "s64", "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
}
"""Element types by numpy's names; those of other types of 8 bits are copied as u8."""
_PROMOTIONS = (0, 64, 128, 256)
_FILLS = ("zeros", "nan")
_PADDED = ("b4x16_p64", "b6x16_p32")


@checked_options(LaunchError, "tensor_map")
def tensor_map(
    array: object, box: Sequence[int], *, swizzle: int | str | None = None,
    element_strides: Sequence[int] | None = None, fill: str = "zeros", interleave: int = 0, l2_promotion: int = 128,
    dtype: ScalarType | str | None = None, corners: tuple[Sequence[int], Sequence[int]] | None = None,
) -> TensorMapArgument:
    """A tensor map of ``array`` for copies of boxes of ``box`` elements between global and shared memory.

    Shapes are in numpy's order, the innermost dimension last; the coordinates of a tensor copy are in PTX's order,
    the innermost first. Boxes may stick out of the array: what lies outside is filled when it is loaded, and not
    stored. The map holds the array's address, so it is good as long as the array keeps its memory.

    Args:
        array: of numpy, torch, CuPy, JAX or a device array; 1 to 5 dimensions, the last one contiguous.
        box: elements of a box in each dimension, 1 to 256.
        swizzle: bytes of the swizzle, 32, 64, 96 or 128, or its name: "128B", "128B_atom_32B", "128B_atom_32B_flip_8B",
            "128B_atom_64B"; a row of a box may have at most so many bytes.
        element_strides: 1 to 8 for each dimension: only each n-th element of a box is loaded.
        fill: what lies outside of the array, "zeros" or "nan".
        interleave: bytes of a slice of the layouts NC/8HWC8 (16) and NC/16HWC16 (32), or 0.
        l2_promotion: bytes that the L2 cache fetches at once, 0, 64, 128 or 256: a hint.
        dtype: another element type than the array's: "tf32", "f32.ftz", "tf32.ftz" of a float32 array; "b4x16",
            "b4x16_p64" or "b6x16_p32" of packed bytes, where shapes then count elements of 4 or 6 bits.
        corners: for copies of pixels (im2col) of an array of shape (N, [[D,] H,] W, C): the lower corner of the
            bounding box, and the upper one relative to the last pixel, ([D,] [H,] W) each; copies along the width
            (im2col::w) use those of W. Then ``box`` is the number of pixels, 1 to 1024, and of channels, 1 to 256.
            The emulator's own encoding: no driver was seen yet.

    Raises:
        LaunchError: what the hardware cannot do, with the reason.

    >>> import numpy as np
    >>> tensor_map(np.zeros((128, 64), np.float16), (64, 64), swizzle=128)
    <tensor map of f16 (128, 64), boxes of (64, 64), swizzle 128B>
    """
    options: dict[str, Any] = {
        "box": box, "swizzle": swizzle, "element_strides": element_strides, "fill": fill, "interleave": interleave,
        "l2_promotion": l2_promotion, "dtype": dtype, "corners": corners,
    }
    made = _Encoder(array, **options).made()
    made.options = options
    return made


class _Encoder:
    """The arguments of :func:`tensor_map`, in PTX's order, checked one after the other."""

    def __init__(
        self, array: object, box: Sequence[int], swizzle: int | str | None, element_strides: Sequence[int] | None,
        fill: str, interleave: int, l2_promotion: int, dtype: ScalarType | str | None,
        corners: tuple[Sequence[int], Sequence[int]] | None,
    ) -> None:
        self.array = array
        self.seen = self._read(array)
        self.kind = self._type(dtype)
        self.element = ELEMENTS[self.kind]
        self.swizzle = self._swizzle(swizzle)
        self.interleave = self._one_of("interleave", interleave, INTERLEAVES)
        self.fill = self._one_of("fill", fill, _FILLS)
        self.promotion = self._one_of("l2_promotion", l2_promotion, _PROMOTIONS)
        rank = len(self.seen.shape)
        if not 1 <= rank <= MOST_DIMENSIONS:
            self._refuse(f"has {rank} dimensions; a tensor map has 1 to {MOST_DIMENSIONS}")
        self.rank = rank
        self.corners = self._corners(corners)
        self.box = self._per_dimension("box", box, 256) if self.corners is None else self._pixels(box)
        self.steps = self._per_dimension("element_strides", element_strides or (1,) * rank, 8)
        self.shape = self._shape()
        self.strides = self._strides()

    def _refuse(self, problem: str, hint: str | None = None) -> NoReturn:
        raise LaunchError(f"tensor_map: the array is {describe(self.array)}; it {problem}", loc=caller(), hint=hint)

    def _wrong(self, problem: str, hint: str | None = None) -> NoReturn:
        raise LaunchError(f"tensor_map: {problem}", loc=caller(), hint=hint)

    def _read(self, array: object) -> View:
        try:
            seen = view(array)
        except Unreadable as error:
            self._refuse(str(error))
        if seen is None:
            self._refuse("is no array")
        return seen

    def _type(self, dtype: ScalarType | str | None) -> str:
        seen = self.seen
        own = _TYPES.get(seen.dtype, "u8" if seen.itemsize == 1 else "")
        if dtype is None:
            if not own:
                self._refuse("has elements that no tensor map knows", "view it as integers of the same size")
            return own
        kind = str(dtype)
        if kind not in ELEMENTS:
            self._wrong(f"dtype is {dtype!r}; it must be one of {', '.join(ELEMENTS)}")
        size = max(ELEMENTS[kind].bits, 8)
        if size != 8 * seen.itemsize:
            self._refuse(f"has elements of {8 * seen.itemsize} bits; {kind} wants {size}")
        return kind

    def _one_of(self, name: str, value: object, values: tuple[object, ...]) -> int:
        if value not in values or isinstance(value, bool):
            self._wrong(f"{name} is {value!r}; it must be one of {', '.join(map(repr, values))}")
        return values.index(value)

    def _swizzle(self, swizzle: int | str | None) -> str:
        name = "none" if swizzle in (None, 0) else f"{swizzle}B" if isinstance(swizzle, int) else str(swizzle)
        found = {known.lower(): known for known in SWIZZLES}.get(name.lower())
        if found is None:
            self._wrong(f"swizzle is {swizzle!r}; it must be 32, 64, 96, 128 or one of {', '.join(SWIZZLES)}")
        return found

    def _per_dimension(self, name: str, values: Sequence[int], most: int) -> tuple[int, ...]:
        """One number a dimension, the innermost first."""
        values = tuple(values) if isinstance(values, (tuple, list)) else (values,)  # type: ignore[assignment]
        if len(values) != self.rank or not all(type(v) is not bool and hasattr(v, "__index__") for v in values):
            self._wrong(f"{name} is {values!r}; it must be {self.rank} integers, one for each dimension of the array")
        numbers = tuple(value.__index__() for value in values)
        if not all(1 <= number <= most for number in numbers):
            self._wrong(f"{name} is {numbers!r}; each must be from 1 to {most}")
        return numbers[::-1]

    def _corners(self, corners: tuple[Sequence[int], Sequence[int]] | None) -> tuple[int, int] | None:
        """The fields of both corners."""
        if corners is None:
            return None
        count = self.rank - 2
        if count < 1:
            self._refuse(f"has {self.rank} dimensions; copies of pixels want 3 to {MOST_DIMENSIONS}")
        bits, found = CORNER_BITS[self.rank], []
        for corner in corners:
            if len(corner) != count or not all(-(1 << bits - 1) <= number < 1 << bits - 1 for number in corner):
                self._wrong(f"a corner is {tuple(corner)!r}; it must be {count} integers of {bits} bits")
            numbers = enumerate(reversed(corner))
            found.append(sum((number & (1 << bits) - 1) << bits * place for place, number in numbers))
        low, high = found
        return low, high

    def _pixels(self, box: Sequence[int]) -> tuple[int, ...]:
        """Channels and pixels."""
        if len(box) != 2 or not (1 <= box[0] <= 1024 and 1 <= box[1] <= 256):
            self._wrong(f"box is {tuple(box)!r}; it must be 1 to 1024 pixels and 1 to 256 channels")
        return box[1], box[0]

    def _shape(self) -> tuple[int, ...]:
        shape = list(self.seen.shape[::-1])
        if self.element.bits < 8:
            shape[0] = shape[0] * 8 // self.element.bits
        if not all(1 <= extent <= 1 << 32 for extent in shape):
            self._refuse("has an empty dimension, or one of more than 2**32 elements")
        if self.interleave:
            shape[0] = shape[0] * self.element.bits // 8 // INTERLEAVES[self.interleave]
        return tuple(shape)

    @property
    def _alignment(self) -> int:
        """Of the address and the strides."""
        return 32 if self.interleave == 2 or self.kind in _PADDED else 16

    def _strides(self) -> tuple[int, ...]:
        """In bytes, of all dimensions but the innermost; of one of a single element any will do."""
        seen, alignment = self.seen, self._alignment
        strides, shape = seen.strides[::-1], seen.shape[::-1]
        if strides[0] != seen.itemsize and shape[0] > 1:
            self._refuse(
                f"has the strides {seen.strides}; its last dimension must be contiguous",
                "np.ascontiguousarray(array), or swap its dimensions, and those of the box and the coordinates",
            )
        if seen.address % alignment:
            self._refuse(f"lies at {seen.address:#x}; a tensor map wants a multiple of {alignment}",
                         "ptxdsl.to_device(array), or begin at another element")
        least = shape[0] * seen.itemsize
        found = []
        for extent, stride in zip(shape[1:], strides[1:]):
            if extent == 1:
                stride = max(stride, 0) if stride % alignment == 0 else -(-least // alignment) * alignment
            if stride % alignment or not 0 <= stride < 1 << 40:
                self._refuse(
                    f"has the strides {seen.strides}; a tensor map wants multiples of {alignment} bytes, below 2**40",
                    "make the rows of the array longer, and pass a view of the part that is used",
                )
            found.append(stride)
            least = max(least, extent * stride)
        return tuple(found)

    def _check_box(self) -> None:
        element, spread = self.element, SWIZZLES[self.swizzle]
        row = self.box[0] * element.stored_bits // 8
        if self.interleave:
            self._check_interleaved()
            return
        if row % 16 or self.box[0] * element.stored_bits % 8:
            self._wrong(
                f"a row of the box has {self.box[0]} elements of {element.stored_bits} bits, {row} bytes; "
                "it must be a multiple of 16 bytes", "make the last extent of the box larger",
            )
        if spread.span and row > spread.span:
            self._wrong(
                f"a row of the box has {row} bytes; with swizzle {self.swizzle} it may have {spread.span}",
                f"{spread.span * 8 // element.stored_bits} elements in the last dimension, in several copies",
            )
        if self.kind in _PADDED:
            self._check_padded()

    def _check_interleaved(self) -> None:
        if self.rank < 3:
            self._wrong(f"interleave wants 3 dimensions or more; the array has {self.rank}")
        if INTERLEAVES[self.interleave] == 32 and self.swizzle != "32B":
            self._wrong(f"interleave=32 wants swizzle 32B; it is {self.swizzle}", "swizzle=32")

    def _check_padded(self) -> None:
        if self.box[0] != 128 or self.shape[0] % 128:
            self._wrong(f"{self.kind} wants a box of 128 elements in the last dimension, and an array of a multiple "
                        f"of 128; they are {self.box[0]} and {self.shape[0]}")
        if self.swizzle not in ("none", "128B", "128B_atom_32B", "128B_atom_64B"):
            self._wrong(f"{self.kind} wants no swizzle or one of 128 bytes; it is {self.swizzle}")

    def _reach(self) -> dict[str, int | tuple[int, ...]]:
        """The fields of what a copy takes."""
        if self.corners is None:
            return {"box_dim": self.box}
        low, high = self.corners
        channels, pixels = self.box
        return {"box_dim": channels, "pixels": pixels, "low_corner": low, "high_corner": high}

    def made(self) -> TensorMapArgument:
        self._check_box()
        element: ElementType = self.element
        if self.fill and "f" not in self.kind:
            self._wrong(f"fill is 'nan', and {self.kind} has none", "fill='zeros'")
        inner = self.shape[0] * (INTERLEAVES[self.interleave] * 8 if self.interleave else element.bits) // 8
        nbytes = inner + sum((n - 1) * stride for n, stride in zip(self.shape[1:], self.strides))
        spread = SWIZZLES[self.swizzle]
        mode = TILED if self.corners is None else PIXELS
        data = encode({
            "global_address": self.seen.address, "mode": mode, "rank": self.rank, "elemtype": element.code,
            "tf32": element.tf32, "interleave_layout": self.interleave, "swizzle_mode": spread.mode,
            "swizzle_atomicity": spread.atomicity, "swizzle_96": int(spread.wide), "fill_mode": self.fill,
            "l2_promotion": self.promotion, "large": int(nbytes >= LARGE_BYTES), "global_dim": self.shape,
            "element_stride": self.steps, **field_values(self.strides), **self._reach(),
        })
        swizzled = f", swizzle {self.swizzle}" if spread.span else ""
        described = f"{self.kind} {self.seen.shape}, boxes of {self.box[::-1]}{swizzled}"
        return TensorMapArgument(
            data, self.seen, nbytes, described, self.box, element.stored_bits, self.swizzle
        )


def _reduced(made: TensorMapArgument) -> tuple[Callable[..., TensorMapArgument], tuple[Any, ...]]:
    """A map is pickled by its array, which is pickled as it is, and may be others' too: its bytes have an address."""
    seen, array = made.seen, owner_of(made.seen)
    row = seen.shape[-1] * seen.itemsize
    packed = not isinstance(array, np.ndarray) or array.flags.c_contiguous or array.flags.f_contiguous
    if not packed and row % 16:
        from pickle import PicklingError

        raise PicklingError(str(LaunchError(
            f"a tensor map cannot be pickled with its array, of which a row has {row} bytes: numpy packs the rows of a "
            "part of an array, and a tensor map wants multiples of 16 bytes from one to the next", loc=caller(),
            hint="make the map in the process that launches",
        )))
    return partial(tensor_map, **made.options), (array,)


copyreg.pickle(TensorMapArgument, _reduced)
