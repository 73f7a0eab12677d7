"""How to mend an argument that does not fit, so that nothing is lost where the hint is followed.

A kernel that stores to an array must store to the caller's: a hint that makes a copy of such an array says to copy it
back. A conversion that could change a number is offered second, after the declaration that takes the array as it is.
"""

from __future__ import annotations

import math

import numpy as np

from ..types import TYPES
from .arrays import View, contiguous_strides, library_of
from .torch_tensors import is_torch

__all__ = ["array_objection", "copied", "dtype_repair", "made_of"]


def copied(name: str, seen: View, made: str, output: bool) -> str:
    """The hint to pass a copy, which the expression ``made`` gives, instead of the array ``name``."""
    if not output:
        return f"`{name} = {made}`"
    copy = _new_name(name)
    if seen.readonly or _overlapping(seen):
        return f"`{copy} = {made}`: pass it, and the result is in it"
    back = f"{name}.copy_({copy})" if _is_torch(seen) else f"{name}[...] = {copy}"
    return f"`{copy} = {made}`, pass it, and afterwards `{back}`: the kernel stores to it"


def made_of(name: str, value: object, dtype: str, output: bool) -> str | None:
    """The hint for what is no array: a list of numbers, or bytes."""
    if isinstance(value, (list, tuple)):
        made = f"np.array({name}, np.{dtype})"
    elif isinstance(value, (bytes, bytearray, memoryview)):
        readonly = memoryview(value).readonly
        made = f"np.frombuffer({name}, np.{dtype})" + ".copy()" * (readonly and output)
        if output and not readonly:
            return f"pass `{made}`"
    else:
        return None
    return f"`{_new_name(name)} = {made}`: pass it, and the result is in it" if output else f"pass `{made}`"


def dtype_repair(name: str, seen: View, wanted: str, output: bool, declared: str) -> str | None:
    """The hint for an array of another dtype; ``declared`` is the annotation, with ``{}`` for the type in it."""
    library = "torch" if _is_torch(seen) else "np" if hasattr(np, wanted) else "ml_dtypes"
    came, target = _dtype(seen.dtype), _dtype(wanted)
    if seen.dtype in _NARROW and wanted in ("float32", "float64"):
        return f"{_declaration(name, seen.dtype, declared)}; or {_cast(name, seen, library, wanted, output)}"
    if came is None or target is None or came.kind in "OSUV":
        return None if came is not None and came.kind in "OSU" else _declaration(name, seen.dtype, declared)
    if came.kind == "c":
        return _complex(name, seen, came, wanted, declared)
    same = came.itemsize == target.itemsize and came.kind in "iubmM" and target.kind in "iub"
    if same and came.isnative:
        return f"`{name} = {name}.view({library}.{wanted})`"
    copy = _cast(name, seen, library, wanted, output)
    if np.can_cast(came, target, "safe") and not output:
        return copy
    declaration = _declaration(name, seen.dtype, declared)
    if not np.can_cast(came, target, "same_kind") and declaration:
        return declaration
    safe, rounds = np.can_cast(came, target, "safe"), target.kind not in "iu"
    changes = "" if safe else "rounded, " if rounds else "if each number fits, "
    return f"{declaration}; or, {changes}{copy}".replace("or, `", "or `") if declaration else f"{changes}{copy}"


_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
"""Floats that numpy does not know, and a float32 holds."""


def _cast(name: str, seen: View, library: str, wanted: str, output: bool) -> str:
    if library_of(seen.owner) == "ptxdsl":
        return copied(name, seen, f"ptxdsl.to_device({name}.numpy().astype({library}.{wanted}))", output)
    method = "to" if library == "torch" else "astype"
    return copied(name, seen, f"{name}.{method}({library}.{wanted})", output)


def _complex(name: str, seen: View, came: np.dtype[np.generic], wanted: str, declared: str) -> str | None:
    """Complex numbers as pairs of floats: real part, imaginary part."""
    part = f"float{came.itemsize * 4}"
    view = f"torch.view_as_real({name})" if _is_torch(seen) else f"{name}.view(np.{part})"
    said = f"`{view}` has the real and the imaginary parts, one after the other"
    return said if part == wanted else f"{_declaration(name, part, declared)}; {said}"


def _declaration(name: str, dtype: str, declared: str) -> str | None:
    native = _dtype(dtype)
    known = dtype if native is None else native.newbyteorder("=").name
    if native is not None and not native.isnative:
        return None
    kind = next((t for t in TYPES.values() if t.numpy_name == known and t.kind in "usf" and t.lanes == 1), None)
    return None if kind is None else f"declare `{name}: {declared.format(kind)}`"


def array_objection(shape: tuple[int, ...], strides: tuple[int, ...], size: int, strided: bool, output: bool) -> str:
    """Why memory with these strides (in bytes) cannot be an ``Array``; empty where it can."""
    if not math.prod(shape):
        return ""
    dense = contiguous_strides(shape, size)
    steps = [d if n == 1 else s for n, s, d in zip(shape, strides, dense)]
    if strided and steps[-1] != size:
        return "wants the last dimension contiguous"
    if not strided and tuple(steps) != dense:
        return "wants contiguous memory"
    if any(step < 0 or step % size or step // size >> 32 for step in steps):
        return "wants strides of 0 to 2**32 - 1 whole elements"
    return "the kernel writes to it, and its elements overlap" if output and 0 in steps else ""


def _overlapping(seen: View) -> bool:
    return any(stride == 0 and extent > 1 for stride, extent in zip(seen.strides, seen.shape))


def _new_name(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).strip("_") + "_copy"


def _is_torch(seen: View) -> bool:
    return is_torch(seen.owner)


def _dtype(name: str) -> np.dtype[np.generic] | None:
    try:
        return np.dtype(name)
    except TypeError:
        return None
