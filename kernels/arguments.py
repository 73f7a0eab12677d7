"""What the functions of the library ask of their arrays before they launch anything, and what they give back.

Arrays are numpy's, torch's, CuPy's or ptxdsl's: only ``shape``, ``dtype``, strides and the address are looked at. What
is wrong is a LaunchError that names the argument, what came and what was wanted.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .. import (
    LaunchError, Loc, ScalarType, bf16, dtype_of, e4m3, e5m2, empty, f16, f32, f64, pred, s8, s16, s32, s64, u8, u16,
    u32, u64,
)

__all__ = [
    "DTYPES", "FLOATS", "GRID", "INTEGERS", "aligned", "axes", "axis", "broadcast", "bytes_of", "dense", "dtype_name",
    "empty_like", "expect", "expect_aligned", "expect_array", "expect_output", "flag", "floating", "is_aligned",
    "is_contiguous", "name_of", "number", "one_of", "output", "scalar_type", "size", "spans", "strides", "wrong",
]

FLOATS: dict[str, ScalarType] = {"float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64}
INTEGERS: dict[str, ScalarType] = {
    "int8": s8, "int16": s16, "int32": s32, "int64": s64, "uint8": u8, "uint16": u16, "uint32": u32, "uint64": u64,
}
DTYPES: dict[str, ScalarType] = {
    **FLOATS, **INTEGERS, "bool": pred, "float8_e4m3fn": e4m3, "float8_e5m2": e5m2,
}
"""The types by the names that numpy, ml_dtypes and torch give them; kernels read bool as u8 (`bytes_of`)."""
GRID = 65535
"""Blocks of a grid's y and z at most; along x there are 2^31 - 1."""
_NAMES = {kind: name for name, kind in DTYPES.items()}


def name_of(kind: ScalarType) -> str:
    """The name of a type's dtype.

    >>> name_of(f16), name_of(pred)
    ('float16', 'bool')
    """
    return _NAMES[kind]


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def wrong(message: str, hint: str | None = None) -> LaunchError:
    """A LaunchError at the line that called the library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return LaunchError(message, hint=hint, loc=Loc(frame.f_code.co_filename, frame.f_lineno) if frame else None)


# Dtypes and shapes


def dtype_name(array: Any) -> str:
    """The dtype of an array as numpy calls it; torch's without ``torch.``."""
    return _name(getattr(array, "dtype", type(array).__name__))


@lru_cache(maxsize=256)
def _name(dtype: Any) -> str:
    """numpy takes microseconds for it."""
    return str(dtype).removeprefix("torch.")


def scalar_type(name: str, array: Any, allowed: Iterable[str] = DTYPES) -> ScalarType:
    """The scalar type of an array whose dtype is one of ``allowed``.

    >>> scalar_type("x", np.zeros(3, np.int16))
    s16
    """
    allowed = list(allowed)
    if dtype_name(array) not in allowed:
        raise wrong(f"`{name}` has dtype {dtype_name(array)}; wanted is {' or '.join(allowed)}")
    return DTYPES[dtype_name(array)]


def floating(name: str, array: Any) -> ScalarType:
    """The scalar type of a floating-point array."""
    return scalar_type(name, array, FLOATS)


def _shape(array: Any) -> tuple[int, ...] | None:
    """The shape of an array; None of what is none, as numpy's scalars, which are numbers."""
    if isinstance(array, np.generic) or not (hasattr(array, "shape") and hasattr(array, "dtype")):
        return None
    return tuple(int(extent) for extent in array.shape)


def expect_array(name: str, array: Any, dtypes: Iterable[str] = DTYPES) -> tuple[int, ...]:
    """The shape of ``array``, which may have any, and any strides, if it has one of the dtypes."""
    found = _shape(array)
    if found is None:
        raise wrong(f"`{name}` is {array!r:.60}, not an array of {' or '.join(dtypes)}")
    scalar_type(name, array, dtypes)
    return found


def expect(
    name: str, array: Any, shape: Sequence[int | str], dtypes: Sequence[str], *, contiguous: bool = True
) -> tuple[int, ...]:
    """The shape of ``array``, if it has one of the dtypes and the shape; a word in ``shape`` stands for any extent.

    With ``contiguous`` it must be C-contiguous.

    >>> expect("x", np.zeros((2, 256), np.float32), ["M", 256], ["float32"])
    (2, 256)
    """
    wanted = f"[{', '.join(map(str, shape))}] of {' or '.join(dtypes)}"
    got = _shape(array)
    if got is None:
        raise wrong(f"`{name}` is {array!r:.60}, not an array {wanted}")
    fits = len(got) == len(shape) and all(isinstance(w, str) or w == g for w, g in zip(shape, got))
    if not fits or dtype_name(array) not in dtypes:
        raise wrong(f"`{name}` has shape {list(got)} and dtype {dtype_name(array)}; wanted is {wanted}")
    if contiguous and not is_contiguous(array):
        raise wrong(f"`{name}` is not C-contiguous; wanted is {wanted}", hint=f"`np.ascontiguousarray({name})`")
    return got


def axis(name: str, value: int, ndim: int) -> int:
    """An axis of ``ndim`` dimensions, counted from the first one; -1 is the last.

    >>> axis("axis", -1, 3)
    2
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -ndim <= value < ndim:
        known = f"it can be {-ndim} to {ndim - 1}" if ndim else "the array has no dimensions"
        raise wrong(f"{name} is {value!r:.60}; {known}")
    return int(value) % ndim


def axes(name: str, value: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Several axes in ascending order: an int, a sequence, or None for all of them.

    >>> axes("axis", (-1, 0), 3), axes("axis", None, 2)
    ((0, 2), (0, 1))
    """
    if value is None:
        return tuple(range(ndim))
    found = [axis(name, each, ndim) for each in (value if isinstance(value, (tuple, list)) else (value,))]
    if len(set(found)) < len(found):
        raise wrong(f"{name} is {value!r:.60}, which names an axis twice")
    return tuple(sorted(found))


def broadcast(**arrays: Any) -> tuple[int, ...]:
    """The shape that all arrays are broadcast to, by numpy's rules.

    >>> broadcast(x=np.zeros((3, 1)), y=np.zeros(4))
    (3, 4)
    """
    shapes = {name: tuple(int(extent) for extent in array.shape) for name, array in arrays.items()}
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        told = " and ".join(f"`{name}` {list(shape)}" for name, shape in shapes.items())
        raise wrong(f"shapes that do not broadcast: {told}") from None


# Memory


class _Layout(NamedTuple):
    """Where an array lies; ``steps`` are the strides in elements."""

    address: int
    itemsize: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def extent(self) -> tuple[int, int]:
        """The first address, and the one behind the last."""
        if 0 in self.shape:
            return self.address, self.address
        reach = [(extent - 1) * step for extent, step in zip(self.shape, self.steps)]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        return self.address + low * self.itemsize, self.address + (high + 1) * self.itemsize


    def overlaps(self, other: _Layout) -> bool:
        """Whether an element of both has the same byte; where that takes long to find out, it is said to."""
        (start, end), (other_start, other_end) = self.extent, other.extent
        if end <= other_start or other_end <= start:
            return False
        try:
            return np.shares_memory(self._shown(), other._shown(), max_work=10_000)  # type: ignore[arg-type]  # any number, by its documentation
        except np.exceptions.TooHardError:
            return True

    def _shown(self) -> Any:
        """The same layout as an array of numpy's, of memory that is never read."""
        strides_ = tuple(step * self.itemsize for step in self.steps)
        shown = {"data": (self.address, True), "shape": self.shape, "typestr": f"|V{self.itemsize}", "version": 3}
        return np.asarray(SimpleNamespace(__array_interface__={**shown, "strides": strides_}))


def _layout(array: Any) -> _Layout | None:
    """None of an array that does not say where it is."""
    shape = tuple(int(extent) for extent in array.shape)
    interface = getattr(array, "__cuda_array_interface__", None) if not hasattr(array, "data_ptr") else None
    if hasattr(array, "data_ptr"):
        item = array.element_size()
        told = getattr(array, "stride", None)
        steps = tuple(told()) if told is not None else _dense_steps(shape)
        return _Layout(array.data_ptr(), item, shape, steps)
    strides_: tuple[int, ...] | None
    if isinstance(array, np.ndarray):
        address, strides_ = array.__array_interface__["data"][0], array.strides
    elif hasattr(array, "address"):
        address, strides_ = array.address, getattr(array, "strides", None)
    elif interface is not None:
        address, strides_ = interface["data"][0], interface.get("strides")
    else:
        return None
    item = array.dtype.itemsize
    steps = _dense_steps(shape) if strides_ is None else tuple(step // item for step in strides_)
    return _Layout(address, item, shape, steps)


def _dense_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))


def strides(array: Any) -> tuple[int, ...]:
    """The strides of an array in elements.

    >>> strides(np.zeros((2, 6), np.float32)[:, ::2])
    (6, 2)
    """
    found = _layout(array)
    return _dense_steps(tuple(array.shape)) if found is None else found.steps


def is_contiguous(array: Any) -> bool:
    """Whether an array is C-contiguous, where it says so."""
    if isinstance(array, np.ndarray):
        return array.flags.c_contiguous
    found = _layout(array)
    if found is None or 0 in found.shape:
        return True
    dense_steps = _dense_steps(found.shape)
    return all(extent == 1 or a == b for extent, a, b in zip(found.shape, found.steps, dense_steps))


def _torch(array: Any) -> Any:
    """The module torch for a tensor of its, else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else None


def dense(array: Any) -> Any:
    """The array, or a C-contiguous copy of its kind where it is not contiguous."""
    if is_contiguous(array):
        return array
    if isinstance(array, np.ndarray):
        return np.ascontiguousarray(array)
    if _torch(array):
        return array.contiguous()
    made = empty_like(array, tuple(array.shape), DTYPES[dtype_name(array)])
    made[...] = array
    return made


def bytes_of(array: Any) -> Any:
    """A bool array as uint8, of the same memory; any other one as it is."""
    if dtype_name(array) != "bool":
        return array
    torch = _torch(array)
    return array.view(torch.uint8 if torch else np.uint8)


def empty_like(array: Any, shape: tuple[int, ...], dtype: ScalarType) -> Any:
    """A new array of the same kind (numpy, torch, CuPy, device) and place as ``array``; of bool for ``pred``."""
    name = _NAMES[dtype]
    kind = np.dtype(bool) if dtype is pred else dtype_of(dtype)
    if isinstance(array, np.ndarray):
        return np.empty(shape, kind)
    torch = _torch(array)
    if torch is not None:
        return array.new_empty(shape, dtype=getattr(torch, name))
    if type(array).__module__.partition(".")[0] == "cupy":
        with array.device:
            return sys.modules["cupy"].empty(shape, kind)
    return empty(shape, kind, backend=getattr(array, "backend", None))


def output(
    out: Any, like: Any, shape: tuple[int, ...], dtype: ScalarType, /, *, in_place: Sequence[str] = (),
    name: str = "out", **inputs: Any,
) -> Any:
    """``out`` if it fits and can be written, or a new array of the kind of ``like`` if it is None.

    It may share no memory with the inputs; with those named in ``in_place``, only as the same array.
    """
    if out is None:
        return empty_like(like, shape, dtype)
    expect(name, out, list(shape), [_NAMES[dtype]])
    expect_output(out, in_place=in_place, name=name, **inputs)
    return out


def expect_output(out: Any, /, *, in_place: Sequence[str] = (), name: str = "out", **inputs: Any) -> None:
    """That ``out`` can be written, and shares no memory with the inputs, which are read after some of it is written.

    Those named in ``in_place`` are read where, and before, they are written: they may be the same array.
    """
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise wrong(f"`{name}` is read-only", hint=f"give an array of its own, or leave `{name}` out")
    mine = _layout(out)
    for other_name, array in inputs.items():
        other = None if array is None else _layout(array)
        if mine is None or other is None or (other_name in in_place and mine == other):
            continue
        if mine.overlaps(other):
            raise wrong(f"`{name}` overlaps `{other_name}`", hint=f"give an array of its own, or leave `{name}` out")


def is_aligned(bytes_: int, *arrays: Any) -> bool:
    """Whether all arrays begin at a multiple of so many bytes."""
    return not any((found := _layout(array)) and found.address % bytes_ for array in arrays)


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
        found = None if array is None else _layout(array)
        if found and found.address % bytes_:
            what = f"`{name}` begins at address {found.address:#x}; wanted is a multiple of {bytes_}"
            raise wrong(what, hint=f"`{name} = {name}.copy()`")


# Numbers


def spans(count: int, each: int = 1) -> Iterator[slice]:
    """A count in parts that fit along y or z of a grid, with so many blocks for each.

    >>> list(spans(70000))
    [slice(0, 65535, None), slice(65535, 70000, None)]
    """
    most = max(1, GRID // each)
    for first in range(0, count, most):
        yield slice(first, min(first + most, count))


def size(name: str, value: int, allowed: range) -> int:
    """An extent that must be one of ``allowed``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value not in allowed:
        step = f" in steps of {allowed.step}" if allowed.step != 1 else ""
        raise wrong(f"{name} is {value!r:.60}; it can be {allowed[0]} to {allowed[-1]}{step}")
    return int(value)


def number(name: str, value: float, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number from ``low`` to ``high``."""
    fits = isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value) and low <= value <= high
    if not fits:
        known = "any finite number"
        if low > -math.inf:
            known = f"{low:g} or more" if high == math.inf else f"{low:g} to {high:g}"
        raise wrong(f"{name} is {value!r:.60}; it can be {known}")
    return float(value)


def flag(name: str, value: bool) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise wrong(f"{name} is {value!r:.60}; it can be True or False")
    return bool(value)


def one_of(name: str, value: str | None, allowed: Sequence[str | None]) -> str | None:
    """One of a few words."""
    if value not in allowed:
        raise wrong(f"{name} is {value!r:.60}; it can be {' or '.join(map(repr, allowed))}")
    return value
