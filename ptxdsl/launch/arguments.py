"""From what a user passes to what a kernel takes.

The annotation decides, never the value: a Python int is a ``u32`` where the kernel says so, and an error where it does
not fit. How a parameter is to be checked is decided once a kernel; a launch then runs one closure a parameter.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import ir
from ..errors import LaunchError, caller, with_article
from ..ir.signature import ArrayType, HandleType, KernelParameter, PtrType, TensorMapType
from ..types import ScalarType, u64
from .argument_hints import array_objection, dtype_repair, made_of
from .directions import In
from .arrays import Unreadable, View, contiguous, contiguous_strides, plain_address, view
from .geometry import IMAGE_KINDS, Argument, Buffer, Handle, ImageArgument, Scalar
from .parameter_check import Convert, ParameterCheck, plural
from .scalars import Elements, elements, scalar
from .torch_tensors import count_version, is_torch

if TYPE_CHECKING:
    from ..language.block_needs import BoxNeed

__all__ = ["Binder"]


class Binder:
    """The arguments of one kernel: ``binder(args)`` gives one Scalar or Buffer a ``.param``, or raises LaunchError.

    ``written`` are the parameters whose memory the kernel stores to, `x[]` what a table points to. ``foreign`` is the
    size of addresses where the PTX is not ours: parameters of that size take an array or a number, since pointers are
    integers in PTX. ``boxes`` is what copies of tiles need of tensor maps.
    """

    def __init__(
        self, kernel: str, parameters: Sequence[KernelParameter], written: frozenset[str], *, foreign: int = 0,
        boxes: Sequence[BoxNeed] = (),
    ) -> None:
        self.kernel = kernel
        self.names = tuple(parameter.name for parameter in parameters)
        stored = {name.removesuffix("[]") for name in written}
        checks = (
            ParameterCheck(
                kernel, parameter, parameter.name in stored, tuple(n for n in boxes if n.parameter == parameter.name)
            ) for parameter in parameters
        )
        self._checks, self._foreign = tuple(checks), foreign
        self.converters = [_converter(check, foreign) for check in self._checks]

    def __call__(self, args: Sequence[object]) -> list[Argument]:
        if len(args) != len(self.converters):
            raise self._miscounted(args)
        bound: list[Argument] = []
        try:
            for convert, value in zip(self.converters, args):
                bound += convert(value) if not isinstance(value, In) else self._directed(convert, value)
        except Unreadable as error:
            name, what = self.names[self.converters.index(convert)], with_article(type(value).__name__)
            message = f"argument `{name}` of kernel `{self.kernel}` is {what}, which {error}"
            hint = error.hint and error.hint.format(name)
            raise LaunchError(message, loc=caller(), hint=hint) from error
        return bound

    def _directed(self, convert: Convert, value: In) -> list[Argument]:
        """The arguments for an array whose direction the caller has said."""
        check = self._checks[self.converters.index(convert)]
        convert = _converter(check._replace(written=value.direction != "in"), self._foreign)
        direction = value.direction if check.written or value.direction != "in" else None
        return [
            a._replace(direction=direction) if type(a) is Buffer and not a.targets else a for a in convert(value.array)
        ]

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
            f"kernel `{self.kernel}` takes {plural(wanted, 'argument')}{names}, {came} came: {problem}", loc=caller()
        )


def _converter(check: ParameterCheck, foreign: int) -> Convert:
    annotation = check.annotation
    if isinstance(annotation, PtrType):
        return _pointer(check, annotation.dtype) if annotation.target is None else _table(check, annotation.target)
    if isinstance(annotation, ArrayType):
        return _array(check, annotation)
    if isinstance(annotation, HandleType):
        return _handle(check, annotation.image_kind)
    if str(annotation) in IMAGE_KINDS:
        return _handle(check, IMAGE_KINDS[str(annotation)])
    by_value = isinstance(annotation, TensorMapType) or check.parameter.ptx[0].shape
    if not by_value and not foreign:
        return scalar(check, annotation)
    from .foreign_arguments import aggregate, foreign_scalar

    return aggregate(check, foreign) if by_value else foreign_scalar(check, annotation, foreign)


_new: Any = tuple.__new__
"""Makes a named tuple without its function of the named fields, which takes longer than the tuple itself."""
_NUMPY_NAMES = {dtype: dtype.name for dtype in map(np.dtype, "?bhiqBHIQefd")}
"""numpy's names of the types of elements that need no look at their order of bytes."""


def _pointer(check: ParameterCheck, kind: ScalarType) -> Convert:
    accepted, size, name, written = elements(kind), kind.bytes, check.parameter.ptx[0].name, check.written
    known = {dtype: known for dtype, known in _NUMPY_NAMES.items() if known in accepted.names}

    def pointer(value: Any) -> tuple[Argument, ...]:
        if type(value) is np.ndarray:
            dtype, address, nbytes = known.get(value.dtype), plain_address(value), value.nbytes
            if dtype is not None and address and not (address % size or nbytes % size):
                fields = (name, address, nbytes, dtype, value.shape, value.strides, True, value, None, None, (), None)
                return (_new(Buffer, fields),)
        return checked(value)

    def checked(value: Any) -> tuple[Argument, ...]:
        seen = view(value)
        if seen is None:
            raise _no_array(check, value, accepted)
        seen = _check_elements(check, seen, value, accepted, size)
        if not contiguous(seen.shape, seen.strides, seen.itemsize):
            rank, steps = len(seen.shape), seen.strides
            refused = rank < 2 or "[" in name or array_objection(seen.shape, steps, seen.itemsize, True, written)
            other = "" if refused else f"declare `{check.name}: Array[{kind}, {rank}]`; or "
            raise check.not_contiguous(value, seen, f"{check.annotation} wants contiguous memory", other)
        buffer = Buffer.of(name, seen)
        if buffer.nbytes % size:
            raise check.error(value, f"{check.annotation} wants a multiple of {size} bytes")
        return (buffer,)

    return pointer


def _table(check: ParameterCheck, target: ScalarType) -> Convert:
    """A list of arrays as a table of their addresses."""
    name = check.parameter.ptx[0].name

    def table(value: Any) -> tuple[Argument, ...]:
        if not isinstance(value, (list, tuple)):
            raise check.error(value, f"{check.annotation} wants a list of arrays", f"pass `[{check.name}]`")
        targets: list[Buffer] = []
        for number, array in enumerate(value):
            entry = ir.Parameter(f"{name}[{number}]", u64)
            parameter = KernelParameter(entry.name, PtrType(target), (entry,))
            (buffer,) = _pointer(ParameterCheck(check.kernel, parameter, False), target)(array)
            assert isinstance(buffer, Buffer)
            if check.written and is_torch(array):
                count_version(array)  # of those that are only read, too: which they are is not known
            targets.append(buffer)
        addresses = np.array([buffer.address for buffer in targets], np.uint64)
        whole = view(addresses)
        assert whole is not None
        return (Buffer.of(name, whole)._replace(writable=False, targets=tuple(targets)),)

    return table


def _no_array(check: ParameterCheck, value: object, accepted: Elements) -> LaunchError:
    hint = made_of(check.name, value, accepted.names[0], check.output)
    return check.error(value, f"{check.annotation} wants an array of {accepted}", hint)


def _check_elements(check: ParameterCheck, seen: View, value: object, accepted: Elements, size: int) -> View:
    """The array as the kernel gets it: a copy of one of numpy's that is not aligned, if it is only read.

    Such are what other processes send: Dask's arrays lie wherever they came to lie in a message.
    """
    if seen.dtype not in accepted.names:
        declared = str(check.annotation).replace(str(check.annotation.dtype), "{}", 1)
        hint = dtype_repair(check.name, seen, accepted.names[0], check.output, declared)
        raise check.error(value, f"{check.annotation} wants {accepted}", hint)
    check.check_writable(value, seen)
    if seen.address % size and math.prod(seen.shape):
        if isinstance(value, np.ndarray) and not check.output:
            copied = view(value.copy())
            assert copied is not None
            return copied
        hint, detail = check.copied(value, seen), f", at {seen.address:#x}"
        raise check.error(value, f"{check.annotation} wants it aligned to {size} bytes", hint, detail)
    return seen


def _array(check: ParameterCheck, array: ArrayType) -> Convert:
    accepted, size, entries = elements(array.dtype), array.dtype.bytes, check.parameter.ptx
    open_axes = [axis for axis, extent in enumerate(array.shape) if extent is None]
    strided = len(entries) > 1 + len(open_axes)
    scalar_names = [entry.name for entry in entries[1:]]
    name, pack = entries[0].name, struct.Struct("<I").pack

    def convert(value: Any) -> tuple[Argument, ...]:
        seen = view(value)
        if seen is None:
            raise _no_array(check, value, accepted)
        shape = seen.shape
        seen = _check_elements(check, seen, value, accepted, size)
        _check_shape(check, array, value, shape)
        steps = _steps(check, array, value, seen, strided)
        extent = sum((n - 1) * step for n, step in zip(shape, steps)) + 1 if math.prod(shape) else 0
        numbers = [shape[axis] for axis in open_axes] + list(steps[:-1] if strided else ())
        return (
            Buffer.of(name, seen, extent * seen.itemsize),
            *(Scalar(name, pack(number)) for name, number in zip(scalar_names, numbers)),
        )

    return convert


def _check_shape(check: ParameterCheck, array: ArrayType, value: object, shape: tuple[int, ...]) -> None:
    if len(shape) != len(array.shape):
        raise check.error(value, f"{array} wants {plural(len(array.shape), 'dimension')}")
    for axis, (came, wanted) in enumerate(zip(shape, array.shape)):
        if wanted is not None and came != wanted:
            raise check.error(value, f"{array} wants extent {wanted} in dimension {axis}")
        if came >> 32:
            raise check.error(value, f"{array} wants every extent below 2**32")


def _steps(check: ParameterCheck, array: ArrayType, value: object, seen: View, strided: bool) -> tuple[int, ...]:
    """The strides in elements. Those of dimensions of extent 1 have no meaning and are taken as contiguous."""
    size, dense = seen.itemsize, contiguous_strides(seen.shape, seen.itemsize)
    if not math.prod(seen.shape):
        return tuple(stride // size for stride in dense)
    why = array_objection(seen.shape, seen.strides, size, strided, check.written)
    if why:
        raise check.not_contiguous(value, seen, f"{array} {why}" if why.startswith("wants") else why)
    strides = [d if n == 1 else s for n, s, d in zip(seen.shape, seen.strides, dense)]
    return tuple(stride // size for stride in strides)


def _handle(check: ParameterCheck, image_kind: str) -> Convert:
    """A texture, a sampler or a surface, or the handle of one that another library made."""
    number, name, made = scalar(check, u64), check.parameter.ptx[0].name, f"ptxdsl.{image_kind.capitalize()}"

    def handle(value: Any) -> tuple[Argument, ...]:
        if isinstance(value, ImageArgument) and value.image_kind == image_kind:
            return (Handle(name, value),)
        if isinstance(value, (int, np.generic)) and not isinstance(value, bool):
            return number(value)
        array = image_kind != "sampler" and view(value) is not None
        hint = f"pass `{made}({check.name})`" if array else None
        raise check.error(value, f"{check.annotation} wants {with_article(made)} or its handle", hint)

    return handle
