"""What is copied to a device array, and how: from numbers, arrays of the host, and arrays on the same or another GPU.

What the host sends or receives lies dense, in the order of the device's memory, so that parts with gaps and transposed
ones are few copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LaunchError, caller
from .arrays import View, describe, readable
from .dlpack import shown
from .rows import extent_of, packed_order, rows

__all__ = ["assigned", "checked", "download", "host_array", "numpy_dtype", "store"]

Array = Any
"""A device array, or an array of numpy's."""


# ---------------------------------------------------------------------------------------------------------------------
# What is to be copied


def _given(array: Array, values: Any) -> Array:
    """An array of the host, or one of another library on the same GPU, as a device array."""
    if not isinstance(values, _NO_PROTOCOL):
        seen = readable(values)
        if seen is not None and seen.device is not None:
            if seen.device != array.device:
                raise LaunchError(
                    f"{describe(values)} cannot be copied to an array on "
                    f"{'the emulator' if array.device is None else f'GPU {array.device}'}", loc=caller(),
                    hint="`ptxdsl.to_device(values)` before, or `.copy_from(values.numpy())`",
                )
            array._memory.rest()  # whatever stream of the other library it comes from
            return array.over(
                seen.address, seen.shape, numpy_dtype(seen), array._memory, seen.owner, strides=seen.strides,
                readonly=seen.readonly,
            )
    return host_array(values)


_NO_PROTOCOL = (np.ndarray, np.generic, int, float, complex, list, tuple)


def host_array(values: Any) -> np.ndarray[Any, Any]:
    """What numpy makes of ``values``, without a copy of arrays that other libraries have in host memory."""
    if not isinstance(values, _NO_PROTOCOL):
        seen = readable(values)
        if seen is not None and seen.device is None:
            return shown(seen.address, seen.shape, seen.strides, numpy_dtype(seen), seen.owner, True)
    return np.asarray(values)


def numpy_dtype(seen: View) -> np.dtype[Any]:
    """The dtype of an array of another library."""
    try:
        return np.dtype(seen.dtype)
    except TypeError:
        import ml_dtypes

        if not hasattr(ml_dtypes, seen.dtype):
            raise LaunchError(f"numpy has no dtype {seen.dtype}", loc=caller()) from None
        return np.dtype(getattr(ml_dtypes, seen.dtype))


def checked(array: Array, values: Any) -> Array:
    """``values`` as an array of the same shape and dtype; LaunchError if they are none."""
    source = values if hasattr(values, "_ptxdsl_view") else _given(array, values)
    if source.shape != array.shape or source.dtype != array.dtype:
        raise _misfit(array, source)
    return source


def assigned(array: Array, values: Any) -> Array:
    """``values`` as numpy would broadcast them; Python's numbers in the dtype of the array."""
    if hasattr(values, "_ptxdsl_view"):
        source: Array = values
    elif isinstance(values, (bool, int, float, complex, list, tuple)):
        source = _numbers(array, values)
    else:
        source = _given(array, values)
    if source.dtype != array.dtype:
        raise _misfit(array, source)
    if source.shape == array.shape:
        return source
    try:
        found = np.broadcast_shapes(source.shape, array.shape)
    except ValueError:
        found = ()
    if found != array.shape:
        raise _misfit(array, source)
    return np.broadcast_to(source.numpy() if hasattr(source, "_ptxdsl_view") else source, array.shape)


def _numbers(array: Array, values: Any) -> np.ndarray[Any, Any]:
    """Python's numbers in the dtype of the array, which must be able to hold them."""
    made = np.asarray(values)
    kinds = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc", "V": "biuf"}.get(array.dtype.kind, "")
    if made.size and made.dtype.kind not in kinds:
        raise _misfit(array, made)
    name = array.dtype.name
    if made.size and made.dtype.kind in "iu" and name.startswith(("int", "uint")):
        width, signed = int(name.lstrip("uint")), name.startswith("int")
        low, high = (-1 << width - 1, 1 << width - 1) if signed else (0, 1 << width)
        if not (low <= int(made.min()) and int(made.max()) < high):
            raise LaunchError(f"{values!r} does not fit in {name}", loc=caller())
    return made.astype(array.dtype)


def _misfit(array: Array, source: Array) -> LaunchError:
    hint = None
    if source.dtype.kind in "biufcV" and (source.shape == array.shape or source.size == 1):
        hint = f"convert it before: `values.astype({array.dtype.name!r})`"
    return LaunchError(
        f"an array of {source.dtype.name}, shape {source.shape} cannot fill one of {array.dtype.name}, "
        f"shape {array.shape}", loc=caller(), hint=hint,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Copying


def store(array: Array, source: Array, *, new: bool = False) -> None:
    """Copy an array of the same shape and dtype into a device array; ``new`` memory is nobody else's yet."""
    if array.readonly:
        raise LaunchError("the array may not be written: it shows memory of another library", loc=caller())
    array._note_written()
    if not array.size:
        return
    if hasattr(source, "_ptxdsl_view"):
        live = source._live()
        if live is None and array._memory is not None and not array._managed:
            _move(array, source)
            return
        source = download(source) if live is None else live
    if array._memory is None or array._managed:
        array._live()[...] = source
    elif array.contiguous and (byte := _uniform(source)) is not None:
        array._memory.set(array.address, array.nbytes, byte, new=new)
    else:
        _upload(array, source, new)


def _uniform(source: np.ndarray[Any, Any]) -> int | None:
    """The byte that all of an array consists of, where one number was broadcast."""
    if any(source.strides) or source.dtype.kind == "O":
        return None
    found = set(np.asarray(source[(0,) * source.ndim]).tobytes())
    return found.pop() if len(found) == 1 else None


def _upwards(array: Array) -> tuple[slice, ...]:
    """The index that makes all strides of an array positive."""
    return tuple(slice(None, None, -1) if step < 0 else slice(None) for step in array.strides)


def _upload(array: Array, source: np.ndarray[Any, Any], new: bool) -> None:
    key = _upwards(array)
    target, order = array[key], packed_order(array.shape, array.strides)
    packed = np.asarray(source[key].transpose(order), order="C").transpose(np.argsort(order))
    layouts = (target.address, target.strides), (packed.__array_interface__["data"][0], packed.strides)
    array._memory.upload(rows(target.shape, target.itemsize, *layouts), new=new)


def download(array: Array) -> np.ndarray[Any, Any]:
    """A C-contiguous copy in host memory of an array on a GPU."""
    key, order = _upwards(array), packed_order(array.shape, array.strides)
    source = array[key]
    packed = np.empty([array.shape[axis] for axis in order], array.dtype).transpose(np.argsort(order))
    layouts = (packed.__array_interface__["data"][0], packed.strides), (source.address, source.strides)
    array._memory.download(rows(source.shape, source.itemsize, *layouts))
    return np.asarray(packed[key], order="C")


def _move(array: Array, source: Array) -> None:
    """From one array on a GPU to another, which may be on another GPU, or the same memory."""
    if source.device != array.device:
        dense = source if source.contiguous else source.copy()
        if not array.contiguous:
            kept = array.like()
            _move(kept, dense)
            _move(array, kept)
            return
        array._memory.receive(array.address, dense._memory, dense.address, dense.nbytes)
        return
    if _overlap(array, source):
        if (array.address, array.strides) == (source.address, source.strides):
            return
        source = source.copy()
    layouts = (array.address, array.strides), (source.address, source.strides)
    array._memory.move(rows(array.shape, array.itemsize, *layouts))


def _overlap(array: Array, source: Array) -> bool:
    (start, end), (low, high) = (
        (each.address - before, each.address + after)
        for each in (array, source) for before, after in [extent_of(each.shape, each.strides, each.itemsize)]
    )
    return start < high and low < end
