"""What the functions of the library ask of their arrays before they launch anything.

Arrays are numpy's, torch's, CuPy's or ptxdsl's: only ``shape``, ``dtype`` and the address are looked at. What is wrong
is a LaunchError that names the argument, what came and what was wanted.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from .. import LaunchError, Loc, ScalarType, bf16, dtype_of, empty, f16, f32, f64

__all__ = [
    "FLOATS", "aligned", "dtype_name", "empty_like", "expect", "expect_aligned", "expect_output", "floating",
    "is_aligned", "number", "size", "wrong",
]

FLOATS: dict[str, ScalarType] = {"float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64}


_LIBRARY = os.path.dirname(__file__) + os.sep


def wrong(message: str, hint: str | None = None) -> LaunchError:
    """A LaunchError at the line that called the library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY):
        frame = frame.f_back
    return LaunchError(message, hint=hint, loc=Loc(frame.f_code.co_filename, frame.f_lineno) if frame else None)


def dtype_name(array: Any) -> str:
    """The dtype of an array as numpy calls it; torch's without ``torch.``."""
    return str(getattr(array, "dtype", type(array).__name__)).removeprefix("torch.")


def expect(name: str, array: Any, shape: Sequence[int | str], dtypes: Sequence[str]) -> tuple[int, ...]:
    """The shape of ``array``, if it has one of the dtypes and the shape; a word in ``shape`` stands for any extent.

    >>> expect("x", np.zeros((2, 256), np.float32), ["M", 256], ["float32"])
    (2, 256)
    """
    wanted = f"[{', '.join(map(str, shape))}] of {' or '.join(dtypes)}"
    found = getattr(array, "shape", None)
    if found is None or not hasattr(array, "dtype"):
        raise wrong(f"`{name}` is {array!r:.60}, not an array {wanted}")
    got = tuple(int(extent) for extent in found)
    fits = len(got) == len(shape) and all(isinstance(w, str) or w == g for w, g in zip(shape, got))
    if not fits or dtype_name(array) not in dtypes:
        raise wrong(f"`{name}` has shape {list(got)} and dtype {dtype_name(array)}; wanted is {wanted}")
    if not _contiguous(array):
        raise wrong(f"`{name}` is not C-contiguous; wanted is {wanted}", hint=f"`np.ascontiguousarray({name})`")
    return got


def _contiguous(array: Any) -> bool:
    """Whether an array is C-contiguous, where it says so."""
    if isinstance(array, np.ndarray):
        return array.flags.c_contiguous
    told = getattr(array, "is_contiguous", None) or getattr(getattr(array, "flags", None), "c_contiguous", True)
    return bool(told() if callable(told) else told)


def floating(name: str, array: Any) -> ScalarType:
    """The scalar type of a floating-point array."""
    if dtype_name(array) not in FLOATS:
        raise wrong(f"`{name}` has dtype {dtype_name(array)}; wanted is {' or '.join(FLOATS)}")
    return FLOATS[dtype_name(array)]


def size(name: str, value: int, allowed: range) -> int:
    """An extent that must be one of ``allowed``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value not in allowed:
        step = f" in steps of {allowed.step}" if allowed.step != 1 else ""
        raise wrong(f"{name} is {value!r:.60}; it can be {allowed[0]} to {allowed[-1]}{step}")
    return int(value)


def number(name: str, value: float) -> float:
    """A finite number."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or not math.isfinite(value):
        raise wrong(f"{name} is {value!r:.60}; it can be any finite number")
    return float(value)


def empty_like(array: Any, shape: tuple[int, ...], dtype: ScalarType) -> Any:
    """A new array of the same kind (numpy, torch, device) and place as ``array``."""
    if isinstance(array, np.ndarray):
        return np.empty(shape, dtype_of(dtype))
    if type(array).__module__.partition(".")[0] == "torch":
        names = {kind: name for name, kind in FLOATS.items()}
        return array.new_empty(shape, dtype=getattr(__import__("torch"), names[dtype]))
    return empty(shape, dtype, backend=getattr(array, "backend", None))


def _extent(array: Any) -> tuple[int, int] | None:
    """The first and last address of a contiguous array."""
    if isinstance(array, np.ndarray):
        start = array.__array_interface__["data"][0]
    elif hasattr(array, "data_ptr"):
        start = array.data_ptr()
    elif hasattr(array, "address"):
        start = array.address
    elif hasattr(array, "__cuda_array_interface__"):
        start = array.__cuda_array_interface__["data"][0]
    else:
        return None
    item = array.element_size() if hasattr(array, "element_size") else array.dtype.itemsize
    return start, start + math.prod(array.shape) * item


def expect_output(out: Any, **inputs: Any) -> None:
    """That ``out`` can be written, and shares no memory with the inputs, which are read after some of it is written."""
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise wrong("`out` is read-only", hint="give an array of its own, or leave `out` out")
    mine = _extent(out)
    for name, array in inputs.items():
        other = _extent(array)
        if mine and other and mine[0] < other[1] and other[0] < mine[1]:
            raise wrong(f"`out` overlaps `{name}`", hint="give an array of its own, or leave `out` out")


def is_aligned(bytes_: int, *arrays: Any) -> bool:
    """Whether all arrays begin at a multiple of so many bytes."""
    return not any((extent := _extent(array)) and extent[0] % bytes_ for array in arrays)


def aligned(bytes_: int, **inputs: Any) -> list[Any]:
    """The inputs (None among them), of numpy's a copy where they do not begin at a multiple of so many bytes."""
    found = [
        array.copy() if isinstance(array, np.ndarray) and not is_aligned(bytes_, array) else array
        for array in inputs.values()
    ]
    expect_aligned(bytes_, **dict(zip(inputs, found)))
    return found


def expect_aligned(bytes_: int, **inputs: Any) -> None:
    """That the inputs begin at a multiple of so many bytes, which vector loads need."""
    for name, array in inputs.items():
        extent = _extent(array)
        if extent and extent[0] % bytes_:
            what = f"`{name}` begins at address {extent[0]:#x}; wanted is a multiple of {bytes_}"
            raise wrong(what, hint=f"`{name} = {name}.copy()`")
