"""Which handler of the machine code an argument of a launch gets, and what that compares.

By what the argument is: :func:`_array` and :func:`_value` know the kinds that machine code reads itself. All others, as
structs and arrays that only their own Python code can describe, are packed by what the long way has for them, alone. No
handler is trusted: each has to pack the arguments of the launch that the plan is made from as the long way did, or is
not used.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from types import BuiltinMethodType
from typing import Any, NamedTuple

import numpy as np

from ..ir.signature import ArrayType, HandleType, KernelParameter, PtrType
from ..launch import Argument as Bound, Buffer, Handle, Scalar
from ..launch.arrays import View, view
from ..launch.device_array import DeviceArray
from ..launch.scalars import elements
from ..launch.tensor_map_argument import TensorMapArgument
from ..launch.torch_tensors import is_torch
from ..types import ScalarType, u64
from .launch_code import ASKED_OF_MAPS, MOST_AXES, Argument, Frame, Tensor, address, has_slots

__all__ = ["ArgumentPlan", "exchange_functions", "planned"]

_EXACT = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24, "f64": 1 << 53}
"""Up to which number every whole one is a float of a type."""
_LARGEST = (1 << 63) - 1
_CAPSULE = b"dlpack_exchange_api"
_MAJOR = 1
"""The version of DLPack whose exchange API is known here."""
_READ, _STREAM = 40, 48
"""Where its table has the functions that read a tensor, and that tell the current stream."""


class ArgumentPlan(NamedTuple):
    """An argument of a launch that went well: the parameter it was for, what came, and what the long way made of it.

    ``several``: there is more than one GPU; ``boxed``: copies of tiles need something of it; ``stream``: that of all
    launches, None where each asks for it.
    """

    parameter: KernelParameter
    value: Any
    bound: Sequence[Bound]
    offsets: Sequence[int]
    convert: Callable[[Any], Sequence[Bound]]
    ordinal: int
    several: bool
    written: bool
    foreign: bool
    boxed: bool
    stream: int | None


def planned(plan: ArgumentPlan, entry: Argument) -> list[object] | None:
    """Fill in an entry; what it needs to be kept alive. None where the argument takes all of the long way."""
    if any(_is_elsewhere(argument, plan.ordinal) for argument in plan.bound):
        return None
    entry.offset, entry.type = plan.offsets[0], id(type(plan.value))
    kept: list[object] = [type(plan.value)]
    try:
        name = (_array if type(plan.bound[0]) is Buffer else _value)(plan, entry, kept)
    except Exception:  # noqa: BLE001  # what the object's own code raises; the launch was made
        return None
    if name is not None:
        entry.handler = address(name)
        if _packs_the_same(plan, entry):
            return kept
    pack = _by_python(plan)
    entry.handler, entry.object = address("python"), id(pack)
    return [*kept, pack] if _packs_the_same(plan, entry) else None


def _is_elsewhere(argument: Bound, ordinal: int) -> bool:
    """Whether something has to be copied to the GPU or made there for each launch."""
    if type(argument) is Handle:
        return True
    if type(argument) is Buffer:
        return argument.device != ordinal or bool(argument.targets)
    return any(target.device != ordinal for target in argument.targets)  # type: ignore[union-attr]


def _bytes_of(argument: Bound) -> bytes:
    assert not isinstance(argument, Handle)
    return argument.data if isinstance(argument, Scalar) else argument.address.to_bytes(8, "little")


def _packs_the_same(plan: ArgumentPlan, entry: Argument) -> bool:
    handler = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(entry.handler)
    memory = (ctypes.c_ubyte * (plan.offsets[-1] + len(_bytes_of(plan.bound[-1])) + 16))()
    frame = Frame(memory=ctypes.addressof(memory))
    try:
        taken = handler(ctypes.addressof(entry), plan.value, ctypes.addressof(frame))
    except Exception:  # noqa: BLE001  # what the object's own code raises; it goes the long way
        return False
    packed = zip(plan.offsets, map(_bytes_of, plan.bound))
    found = bytes(memory)
    return bool(taken) and all(found.startswith(data, at) for at, data in packed)


def _by_python(plan: ArgumentPlan) -> Callable[[Any], bytes | None]:
    """What packs an argument by the conversion of the long way."""
    convert, ordinal, stream = plan.convert, plan.ordinal, plan.stream
    if len(plan.bound) == 1 and type(plan.bound[0]) is Scalar and not plan.bound[0].targets:
        return lambda value: convert(value)[0].data  # type: ignore[union-attr]
    places = [offset - plan.offsets[0] for offset in plan.offsets]
    size = places[-1] + len(_bytes_of(plan.bound[-1]))

    def pack(value: Any) -> bytes | None:
        packed = bytearray(size)
        for place, argument in zip(places, convert(value)):
            if _is_elsewhere(argument, ordinal):
                return None
            if type(argument) is Buffer and argument.stream is not None and (argument.stream or 1) != (stream or 1):
                return None
            data = _bytes_of(argument)
            packed[place : place + len(data)] = data
        return bytes(packed)

    return pack


# ---------------------------------------------------------------------------------------------------------------------
# Numbers and what else is passed by value


def _value(plan: ArgumentPlan, entry: Argument, kept: list[object]) -> str | None:
    """What is passed as it is."""
    kind, value = plan.parameter.annotation, plan.value
    if isinstance(kind, HandleType):
        kind = u64
    if type(value) is TensorMapArgument:
        if plan.boxed:
            kept.append(tuple(getattr(value, name) for name in ASKED_OF_MAPS))
            entry.object = id(kept[-1])
        entry.device, entry.itemsize = plan.ordinal, len(bytes(value))
        entry.low = View._fields.index("device")
        return "tensor_map"
    if not isinstance(kind, ScalarType) or plan.parameter.ptx[0].shape:
        return None
    if kind.lanes > 1:
        return {"f16x2": "pair_f16", "bf16x2": "pair_bf16", "f32x2": "pair_f32"}.get(str(kind))
    if type(value) in (int, float):
        return _converted(plan, entry, kind, type(value).__name__)
    if not isinstance(value, np.generic) or not _is_readable(value):
        return None
    if _keeps_bits(plan, kind, value):
        return "bits"
    return _converted(plan, entry, kind, value.dtype.name)


def _is_readable(value: np.generic) -> bool:
    """Whether the bytes of a scalar are where the machine code looks for them."""
    return value.itemsize in (1, 2, 4, 8) and ctypes.string_at(id(value) + 16, value.itemsize) == value.tobytes()


def _keeps_bits(plan: ArgumentPlan, kind: ScalarType, value: np.generic) -> bool:
    """Whether every scalar of this type is passed as it is."""
    if value.itemsize != kind.bytes:
        return False
    if plan.foreign and kind.kind in "bus" and (value.dtype.kind in "biu" or kind.kind == "b"):
        return True
    return value.dtype.name in (elements(kind).names if kind.kind == "b" else (kind.numpy_name,))


def _converted(plan: ArgumentPlan, entry: Argument, kind: ScalarType, source: str) -> str | None:
    """The handler that makes a number of a type of one that came as ``source``."""
    real = source in ("float", "float32", "float64")
    if not real and source.removeprefix("u").rstrip("0123456789") != "int":
        return None
    entry.reader = address(f"read:{source}")
    target = f"f{kind.bits}" if real and plan.foreign and kind.kind == "b" else str(kind)  # untyped, so of its size
    if target in _EXACT:
        entry.low, entry.high = -_EXACT[target], _EXACT[target]
        return f"real_{target}" if real else f"whole_{target}"
    if real or kind.kind not in "bus" or kind.bits > 64:
        return None
    low, high = (-(1 << kind.bits - 1), (1 << kind.bits) - 1) if plan.foreign else kind.bounds
    entry.low, entry.high, entry.wide = low, min(high, _LARGEST), high > _LARGEST
    return "int_integer" if source == "int" else "integer"


# ---------------------------------------------------------------------------------------------------------------------
# Arrays


def _array(plan: ArgumentPlan, entry: Argument, kept: list[object]) -> str | None:
    seen, value = view(plan.value), plan.value
    if seen is None or len(seen.shape) > MOST_AXES or not _set_layout(plan, entry, seen.itemsize):
        return None
    if type(value) is DeviceArray and has_slots(DeviceArray):
        kept += (value.dtype, value.device)
        entry.dtype, entry.device = id(value.dtype), id(value.device)
        whole = entry.rank < 0 and entry.align in (1, entry.itemsize)
        return "device_pointer" if whole else "device_array"
    if is_torch(value):
        return _tensor(plan, entry, kept)
    if hasattr(value, "_ptxdsl_view"):
        return None
    interface = getattr(value, "__cuda_array_interface__", None)
    # Before version 3 it names no stream, as JAX's: DLPack is asked, in Python.
    if interface is not None and (interface.get("version", 0) >= 3 or not hasattr(value, "__dlpack__")):
        return _cuda_array(plan, entry, kept)
    return None


def _set_layout(plan: ArgumentPlan, entry: Argument, itemsize: int) -> bool:
    kind = plan.parameter.annotation
    entry.rank, entry.itemsize, entry.align, entry.written = -1, itemsize, 1, plan.written
    if isinstance(kind, PtrType):
        entry.align = kind.dtype.bytes
    elif isinstance(kind, ArrayType):
        if len(kind.shape) > MOST_AXES:
            return False
        entry.rank, entry.align = len(kind.shape), kind.dtype.bytes
        entry.extents[: len(kind.shape)] = [-1 if extent is None else extent for extent in kind.shape]
        entry.strided = len(plan.bound) > 1 + kind.shape.count(None)
    return True


def _tensor(plan: ArgumentPlan, entry: Argument, kept: list[object]) -> str:
    tensor, torch = plan.value, sys.modules["torch"]
    lazy = ["is_neg"] + ["is_conj"] * ("complex" in str(tensor.dtype))
    for number, name in enumerate(name for name in lazy if hasattr(tensor, name)):
        method = getattr(tensor, name)
        if type(method) is BuiltinMethodType and _flags(method) == _WITHOUT_ARGUMENTS:
            entry.lazy_functions[number] = _function(method)
        else:
            kept.append(sys.intern(name))
            entry.lazy[number] = id(kept[-1])
    entry.counted = plan.written
    if plan.written and not plan.foreign:
        kept.append(getattr(torch, "is_grad_enabled", object))
        entry.recording = id(kept[-1])
    found = exchange_functions(type(tensor))
    if found is not None:
        read = Tensor()
        ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(found[0])(tensor, ctypes.addressof(read))
        entry.object, entry.dtype, entry.device = found[0], read.dtype, read.device
        return "exchanged_tensor"
    kept += (tensor.dtype, tensor.layout)
    entry.dtype, entry.object, entry.device = id(tensor.dtype), id(tensor.layout), plan.ordinal
    return "tensor"


_WITHOUT_ARGUMENTS = 4
"""What says of a builtin that its function is given ``self`` alone."""
_flags = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(("PyCFunction_GetFlags", ctypes.pythonapi))
_function = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(("PyCFunction_GetFunction", ctypes.pythonapi))


def exchange_functions(kind: Any) -> tuple[int, int] | None:
    """The functions of DLPack's exchange API that read a tensor of a class, and that tell the current stream.

    None where the class has none, or has tensors that are more than their memory.
    """
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    torch = sys.modules.get("torch")
    plain = getattr(getattr(torch, "_C", None), "_disabled_torch_dispatch_impl", None)
    if capsule is None or getattr(kind, "__torch_dispatch__", plain) is not plain:
        return None
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        table = get(capsule, _CAPSULE)
    except ValueError:
        return None
    if ctypes.c_uint32.from_address(table).value != _MAJOR:
        return None
    read, stream = (ctypes.c_uint64.from_address(table + offset).value for offset in (_READ, _STREAM))
    return (read, stream) if read else None


def _cuda_array(plan: ArgumentPlan, entry: Argument, kept: list[object]) -> str | None:
    value = plan.value
    interface = value.__cuda_array_interface__
    typestr = interface["typestr"]
    kept.append(typestr)
    entry.dtype = id(typestr)
    if typestr[1] == "V":  # of bf16 and the 8-bit floats, which the interface has no names for
        kept.append(value.dtype)
        entry.object = id(value.dtype)
    if not plan.several:
        return "cuda_array"
    names = _way_to_ordinal(value)
    if names is None:
        return None
    kept += names
    entry.device, entry.device_name = plan.ordinal, id(names[0])
    entry.device_part = id(names[1]) if len(names) > 1 else 0
    return "cuda_array"


def _way_to_ordinal(value: Any) -> tuple[str, ...] | None:
    """The attributes that lead to the number of the GPU."""
    device = getattr(value, "device", None)
    if type(device) is int:
        return (sys.intern("device"),)
    for name in ("id", "index"):
        if type(getattr(device, name, None)) is int:
            return sys.intern("device"), sys.intern(name)
    return None
