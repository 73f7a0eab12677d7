"""From what a user passes to what a kernel takes.

The annotation decides, never the value: a Python int is a ``u32`` where the kernel says so, and an error where it does
not fit. How a parameter is to be checked is decided once a kernel; a launch then runs one closure a parameter.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import ir
from . import foreign_scalars as lenient
from .arrays import Unreadable, View, contiguous, contiguous_strides, view
from ..errors import LaunchError, caller
from .geometry import Argument, Buffer, Handle, Scalar
from .scalars import Check, Convert, Elements, elements, names_image, scalar
from ..ir.signature import ArrayType, HandleType, KernelParameter, PtrType, TensorMapType
from ..types import ScalarType, u64

__all__ = ["Binder"]


class Binder:
    """The arguments of one kernel: ``binder(args)`` gives one Scalar or Buffer a ``.param``, or raises LaunchError.

    ``written`` are the parameters whose memory the kernel stores to. ``foreign`` is the size of addresses where the
    PTX is not ours: parameters of that size take an array or a number, since PTX does not tell pointers from integers.
    """

    def __init__(
        self, kernel: str, parameters: Sequence[KernelParameter], written: frozenset[str], *, foreign: int = 0
    ) -> None:
        self.kernel = kernel
        self.names = tuple(parameter.name for parameter in parameters)
        self._converters = [
            _converter(Check(kernel, parameter, parameter.name in written), foreign) for parameter in parameters
        ]

    def __call__(self, args: Sequence[object]) -> list[Argument]:
        if len(args) != len(self._converters):
            raise self._miscounted(args)
        bound: list[Argument] = []
        try:
            for convert, value in zip(self._converters, args):
                bound += convert(value)
        except Unreadable as error:
            name = self.names[self._converters.index(convert)]
            message = f"argument `{name}` of kernel `{self.kernel}` is a {type(value).__name__}, which {error}"
            raise LaunchError(message, loc=caller()) from error
        return bound

    def positional(self, args: Sequence[object], named: dict[str, object]) -> tuple[object, ...]:
        """All arguments in order, where some were given by name."""
        for name in self.names[: len(args)]:
            if name in named:
                raise LaunchError(f"kernel `{self.kernel}` got argument `{name}` twice", loc=caller())
        rest = self.names[len(args) :]
        missing = [name for name in rest if name not in named]
        if missing:
            raise self._miscounted([*args, *named], missing)
        return (*args, *(named[name] for name in rest))

    def _miscounted(self, args: Sequence[object], missing: Sequence[str] = ()) -> LaunchError:
        wanted, came = len(self.names), len(args)
        missing = [f"`{name}`" for name in missing or self.names[came:]]
        problem = f"{' and '.join(missing)} missing" if missing else f"{came - wanted} too many"
        names = f" ({', '.join(self.names)})" if self.names else ""
        return LaunchError(
            f"kernel `{self.kernel}` takes {_plural(wanted, 'argument')}{names}, {came} came: {problem}", loc=caller()
        )


def _converter(check: Check, foreign: int) -> Convert:
    annotation = check.annotation
    if isinstance(annotation, PtrType) and annotation.target is not None:
        return _table(check, annotation.target)
    if isinstance(annotation, PtrType):
        return _pointer(check, elements(annotation.dtype), annotation.dtype.bytes)
    if isinstance(annotation, ArrayType):
        return _array(check, annotation)
    if isinstance(annotation, HandleType):
        return _handle(check, annotation.name.lower())
    if isinstance(annotation, ScalarType) and annotation.kind == "o":
        return _handle(check, {"texref": "texture", "surfref": "surface", "samplerref": "sampler"}[str(annotation)])
    if isinstance(annotation, TensorMapType) or check.parameter.ptx[0].shape:
        entry = check.parameter.ptx[0]
        holds = 8 * entry.nbytes == foreign and entry.type.bits in (8, foreign)
        return _struct_or_memory(check) if holds else _aggregate(check)
    if annotation.bits == foreign and annotation.kind in "bus":
        return _number_or_memory(check, annotation)
    return _foreign_number(check, annotation) if foreign else scalar(check, annotation)


# ---------------------------------------------------------------------------------------------------------------------
# Memory


def _pointer(check: Check, accepted: Elements, size: int) -> Convert:
    name, names, written = check.parameter.ptx[0].name, accepted.names, check.written

    def pointer(value: Any) -> tuple[Argument, ...]:
        seen = view(value)
        if seen is None:
            raise _no_array(check, value, accepted)
        address, dtype, itemsize, shape, strides, readonly, device, owner, stream = seen
        nbytes = math.prod(shape) * itemsize
        if dtype not in names or (readonly and written) or address % size:
            _refuse_elements(check, seen, value, accepted, size)
        if not contiguous(shape, strides, itemsize):
            other = f"{check.name}: Array[{check.annotation.dtype}, {len(shape)}]"
            hint = f"{_compact(check.name, value)}, or declare `{other}`"
            raise check.error(value, f"{check.annotation} wants contiguous memory", hint, f", strides {strides}")
        if nbytes % size:
            raise check.error(value, f"{check.annotation} wants a multiple of {size} bytes")
        return (Buffer(name, address, nbytes, dtype, shape, strides, not readonly, owner, device, stream),)

    return pointer


def _table(check: Check, target: ScalarType) -> Convert:
    """A list of arrays as a table of their addresses."""
    name = check.parameter.ptx[0].name

    def table(value: Any) -> tuple[Argument, ...]:
        if not isinstance(value, (list, tuple)):
            raise check.error(value, f"{check.annotation} wants a list of arrays", f"pass `[{check.name}]`")
        targets: list[Buffer] = []
        for number, array in enumerate(value):
            entry = ir.Parameter(f"{name}[{number}]", u64)
            parameter = KernelParameter(entry.name, PtrType(target), (entry,))
            (buffer,) = _pointer(Check(check.kernel, parameter, False), elements(target), target.bytes)(array)
            assert isinstance(buffer, Buffer)
            targets.append(buffer)
        addresses = np.array([buffer.address for buffer in targets], np.uint64)
        whole = view(addresses)
        assert whole is not None
        return (
            Buffer(
                name, whole.address, addresses.nbytes, whole.dtype, whole.shape, whole.strides, False, addresses,
                targets=tuple(targets),
            ),
        )

    return table


def _no_array(check: Check, value: object, accepted: Elements) -> LaunchError:
    make = None
    if isinstance(value, (list, tuple)):
        make = f"np.array({check.name}, np.{accepted.names[0]})"
    elif isinstance(value, (bytes, bytearray, memoryview)):
        make = f"np.frombuffer({check.name}, np.{accepted.names[0]})"
    hint = f"pass `{make}`" if make else None
    return check.error(value, f"{check.annotation} wants an array of {accepted}", hint)


def _refuse_elements(check: Check, seen: View, value: object, accepted: Elements, size: int) -> None:
    if seen.dtype not in accepted.names:
        hint = _conversion(check.name, seen, accepted.names[0])
        raise check.error(value, f"{check.annotation} wants {accepted}", hint)
    if seen.readonly and check.written:
        raise check.error(value, "the kernel writes to it", f"`{check.name} = {check.name}.copy()`", ", read-only")
    if math.prod(seen.shape):
        hint, detail = f"`{check.name} = {check.name}.copy()`", f", at {seen.address:#x}"
        raise check.error(value, f"{check.annotation} wants it aligned to {size} bytes", hint, detail)


def _of_torch(value: object) -> bool:
    return type(value).__module__.split(".")[0] == "torch"


def _compact(name: str, value: object) -> str:
    return f"`{name} = {name}.contiguous()`" if _of_torch(value) else f"`{name} = np.ascontiguousarray({name})`"


def _conversion(name: str, seen: View, wanted: str) -> str:
    torch = _of_torch(seen.owner)
    library = "torch" if torch else "np" if hasattr(np, wanted) else "ml_dtypes"
    integers = ("int", "uint", "bool")
    same = seen.itemsize == np.dtype(wanted).itemsize if library == "np" else False
    if same and seen.dtype.startswith(integers) and wanted.startswith(integers):
        return f"`{name} = {name}.view({library}.{wanted})`"
    return f"`{name} = {name}.{'to' if torch else 'astype'}({library}.{wanted})`"


def _array(check: Check, array: ArrayType) -> Convert:
    accepted, size, entries = elements(array.dtype), array.dtype.bytes, check.parameter.ptx
    open_axes = [axis for axis, extent in enumerate(array.shape) if extent is None]
    strided = len(entries) > 1 + len(open_axes)
    scalar_names = [entry.name for entry in entries[1:]]
    name, pack = entries[0].name, struct.Struct("<I").pack

    def convert(value: Any) -> tuple[Argument, ...]:
        seen = view(value)
        if seen is None:
            raise _no_array(check, value, accepted)
        address, dtype, itemsize, shape, strides, readonly, device, owner, stream = seen
        if dtype not in accepted.names or (readonly and check.written) or address % size:
            _refuse_elements(check, seen, value, accepted, size)
        _check_shape(check, array, value, shape)
        steps = _steps(check, array, value, seen, strided)
        extent = sum((n - 1) * step for n, step in zip(shape, steps)) + 1 if math.prod(shape) else 0
        numbers = [shape[axis] for axis in open_axes] + list(steps[:-1] if strided else ())
        return (
            Buffer(name, address, extent * itemsize, dtype, shape, strides, not readonly, owner, device, stream),
            *(Scalar(name, pack(number)) for name, number in zip(scalar_names, numbers)),
        )

    return convert


def _check_shape(check: Check, array: ArrayType, value: object, shape: tuple[int, ...]) -> None:
    if len(shape) != len(array.shape):
        raise check.error(value, f"{array} wants {_plural(len(array.shape), 'dimension')}")
    for axis, (came, wanted) in enumerate(zip(shape, array.shape)):
        if wanted is not None and came != wanted:
            raise check.error(value, f"{array} wants extent {wanted} in dimension {axis}")
        if came >> 32:
            raise check.error(value, f"{array} wants every extent below 2**32")


def _steps(check: Check, array: ArrayType, value: object, seen: View, strided: bool) -> tuple[int, ...]:
    """The strides in elements. Those of dimensions of extent 1 say nothing and are taken as contiguous."""
    size, dense = seen.itemsize, contiguous_strides(seen.shape, seen.itemsize)
    if not math.prod(seen.shape):
        return tuple(stride // size for stride in dense)
    strides = [d if n == 1 else s for n, s, d in zip(seen.shape, seen.strides, dense)]
    detail, hint = f", strides {seen.strides}", _compact(check.name, value)
    if strided and strides[-1] != size:
        raise check.error(value, f"{array} wants the last dimension contiguous", hint, detail)
    if not strided and tuple(strides) != dense:
        raise check.error(value, f"{array} wants contiguous memory", hint, detail)
    if any(stride < 0 or stride % size or stride // size >> 32 for stride in strides):
        raise check.error(value, f"{array} wants strides of 0 to 2**32 - 1 whole elements", hint, detail)
    if check.written and 0 in strides:
        raise check.error(value, "the kernel writes to it, and its elements overlap", hint, detail)
    return tuple(stride // size for stride in strides)


def _number_or_memory(check: Check, kind: ScalarType) -> Convert:
    """A parameter of foreign PTX that may be an address."""
    number, memory = _foreign_number(check, kind), _untyped(check)
    name = check.parameter.ptx[0].name

    def convert(value: Any) -> tuple[Argument, ...]:
        if isinstance(value, (int, np.generic)) or (kind.kind == "b" and isinstance(value, float)):
            return number(value)
        return (Handle(name, value),) if names_image(value) else memory(value)

    return convert


def _foreign_number(check: Check, kind: ScalarType) -> Convert:
    name, strict = check.parameter.ptx[0].name, scalar(check, kind)

    def number(value: Any) -> tuple[Argument, ...]:
        data = lenient.bits(value, kind)
        return strict(value) if data is None else (Scalar(name, data),)

    return number


def _handle(check: Check, word: str) -> Convert:
    """A texture, a sampler or a surface, or the handle of one that somebody else made."""
    number, name = scalar(check, u64), check.parameter.ptx[0].name

    def handle(value: Any) -> tuple[Argument, ...]:
        if names_image(value) and value.word == word:
            return (Handle(name, value),)
        if isinstance(value, (int, np.generic)) and not isinstance(value, bool):
            return number(value)
        array = view(value) is not None and word != "sampler"
        hint = f"pass `ptxdsl.{word.capitalize()}({check.name})`" if array else None
        raise check.error(value, f"{check.annotation} wants a ptxdsl.{word.capitalize()} or its handle", hint)

    return handle


def _untyped(check: Check) -> Convert:
    name = check.parameter.ptx[0].name

    def memory(value: Any) -> tuple[Argument, ...]:
        seen = view(value)
        if seen is None:
            raise check.error(value, f".{check.annotation} wants an array or an int")
        if seen.readonly and check.written:
            raise check.error(value, "the kernel writes to it", f"`{check.name} = {check.name}.copy()`", ", read-only")
        if not contiguous(seen.shape, seen.strides, seen.itemsize):
            hint = _compact(check.name, value)
            raise check.error(value, "foreign PTX is given contiguous memory only", hint, f", strides {seen.strides}")
        nbytes = math.prod(seen.shape) * seen.itemsize
        address, dtype, _, shape, strides, readonly, device, owner, stream = seen
        return (Buffer(name, address, nbytes, dtype, shape, strides, not readonly, owner, device, stream),)

    return memory


def _struct_or_memory(check: Check) -> Convert:
    """A struct of the size of an address, which may be one: an array is given as its address, all else by value."""
    value_of, memory = _aggregate(check), _untyped(check)
    name, nbytes = check.parameter.ptx[0].name, check.parameter.ptx[0].nbytes

    def convert(value: Any) -> tuple[Argument, ...]:
        if type(value) is int and 0 <= value < 1 << 8 * nbytes:
            return (Scalar(name, value.to_bytes(nbytes, "little")),)
        given = isinstance(value, (bytes, bytearray, memoryview, ctypes.Structure, ctypes.Array, np.generic))
        return memory(value) if not given and view(value) is not None else value_of(value)

    return convert


def _aggregate(check: Check) -> Convert:
    """A descriptor or struct passed by value: anything with the right number of bytes."""
    entry = check.parameter.ptx[0]

    def convert(value: Any) -> tuple[Argument, ...]:
        data = b""
        if hasattr(value, "getPtr"):
            data = ctypes.string_at(int(value.getPtr()), entry.nbytes)
        elif isinstance(value, np.generic):
            data = value.tobytes()
        elif hasattr(value, "__bytes__"):
            data = bytes(value)
        elif isinstance(value, (bytes, bytearray, memoryview, np.ndarray, ctypes.Structure, ctypes.Array)):
            data = memoryview(value).tobytes()  # type: ignore[arg-type]
        if len(data) != entry.nbytes:
            came = f" of {len(data)} bytes" if data else ""
            raise check.error(value, f"{check.annotation} wants an object of {entry.nbytes} bytes", None, came)
        return (Scalar(entry.name, data),)

    return convert


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + "s" * (count != 1)
