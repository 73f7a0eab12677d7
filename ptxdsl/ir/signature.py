"""What a kernel takes: the annotations of its parameters, and the PTX parameters that each becomes.

The one place that knows the order, size and meaning of a kernel's ``.param`` list: the tracer declares from it, the
launcher packs by it, the emulator reads by it.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Union, overload

from ..errors import Loc, TraceError, caller
from ..types import KernelOperand, ScalarType, b8, f32, type_meant, u32, u64
from . import module as ir

__all__ = [
    "Array", "ArrayType", "ConstType", "HandleType", "KernelParameter", "Ptr", "PtrType", "Signature", "TensorMap",
    "TensorMapType", "closure_of", "definition_of",
]

T = TypeVar("T")


@dataclass(frozen=True)
class ConstType:
    """Elements of ``dtype`` that a kernel only reads: ``const[f32]``."""

    dtype: ScalarType

    def __str__(self) -> str:
        return f"const[{self.dtype}]"


@dataclass(frozen=True)
class PtrType:
    """A pointer to contiguous elements of ``dtype`` in global memory.

    With a ``target`` the elements are pointers to that, and ``dtype`` is u64. ``const``: the kernel only reads what
    is pointed to (by the target).
    """

    dtype: ScalarType
    target: ScalarType | None = None
    const: bool = False

    def __str__(self) -> str:
        kind = self.target or self.dtype
        element = f"const[{kind}]" if self.const else kind
        return f"Ptr[{element}]" if self.target is None else f"Ptr[Ptr[{element}]]"


@dataclass(frozen=True)
class ArrayType:
    """A pointer with a shape; ``shape`` has an int for each static extent, None for each that the launch brings.

    The last dimension is contiguous. PTX parameters: the pointer, then each extent that is not static (u32), then
    the stride in elements of each dimension but the last (u32); the strides of an all-static array are static too.
    """

    dtype: ScalarType
    shape: tuple[int | None, ...]
    const: bool = False

    def __str__(self) -> str:
        element = f"const[{self.dtype}]" if self.const else self.dtype
        if any(extent is not None for extent in self.shape):
            return f"Array[{element}, {', '.join(map(str, self.shape))}]"
        return f"Array[{element}, {len(self.shape)}]"


@dataclass(frozen=True)
class TensorMapType:
    """A TMA descriptor of 128 bytes, passed by value."""

    def __str__(self) -> str:
        return "TensorMap"


@dataclass(frozen=True)
class HandleType:
    """The handle of 64 bits of a ``texture``, ``sampler`` or ``surface``."""

    image_kind: str

    def __str__(self) -> str:
        return self.image_kind.capitalize()


@cache
def _pointer(dtype: ScalarType) -> PtrType:
    return PtrType(dtype)


class Ptr(KernelOperand, Generic[T]):
    """``Ptr[f32]``: a pointer to contiguous float32 in global memory; ``Ptr[Ptr[f32]]``: a table of such pointers.

    It counts elements: ``p[i]``, ``p[i] = v``, ``p + i``; ``p.load(i, width=4)`` and ``p.store(i, values)`` are vector
    accesses, aligned to all their bytes. The launch takes an array of that dtype, of any shape and C-contiguous (of a
    table: a list of them), else it is a LaunchError. ``Ptr[const[f32]]`` is for what nobody writes while the kernel
    runs: its loads are ``ld.global.nc``, and a store is an error.

    >>> print(Ptr[f32], Ptr[Ptr[f32]])
    Ptr[f32] Ptr[Ptr[f32]]
    """

    if TYPE_CHECKING:
        @overload
        def __getitem__(self: Ptr[Ptr[T]], index: Any) -> Ptr[T]: ...
        @overload
        def __getitem__(self, index: Any) -> KernelOperand: ...
        def __getitem__(self, index: Any) -> Any: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def load(
            self, index: Any = 0, *, width: int = 1, pred: Any = None, out: Any = None, **hints: Any
        ) -> KernelOperand: ...
        def store(self, index: Any, values: Any, *, pred: Any = None, **hints: Any) -> None: ...
    else:
        def __class_getitem__(cls, dtype: ScalarType | ConstType | PtrType) -> PtrType:
            if isinstance(dtype, PtrType) and dtype.target is None:
                return PtrType(u64, dtype.dtype, dtype.const)
            if isinstance(dtype, ConstType):
                return PtrType(dtype.dtype, const=True)
            if not isinstance(dtype, ScalarType):
                element = dtype[0] if isinstance(dtype, tuple) and dtype else dtype
                kind = element if isinstance(element, ScalarType) else type_meant(element) or f32
                raise TraceError(f"Ptr takes one scalar type, not {dtype!r}", loc=caller(), hint=f"write `Ptr[{kind}]`")
            return _pointer(dtype)


class _ArrayMeta(type):
    def __getitem__(cls, item: Any) -> ArrayType:
        parts = item if isinstance(item, tuple) else (item,)
        element, *extents = parts
        dtype = element.dtype if isinstance(element, ConstType) else element
        known = all(extent is None or (type(extent) is int and extent > 0) for extent in extents)
        if not isinstance(dtype, ScalarType) or not extents or not known:
            kind = dtype if isinstance(dtype, ScalarType) else type_meant(dtype) or f32
            raise TraceError(
                f"Array takes a scalar type and a number of dimensions or a shape, not {item!r}", loc=caller(),
                hint=f"write `Array[{kind}, 2]`, or `Array[{kind}, None, 64]` with the extents that are fixed",
            )
        if len(extents) == 1 and extents[0] is not None:
            extents = [None] * extents[0]
        return ArrayType(dtype, tuple(extents), dtype is not element)


if TYPE_CHECKING:
    # Only so may numbers stand in brackets: a type checker takes the array for its element, which allows indexing.
    from typing import Annotated as Array
else:
    class Array(metaclass=_ArrayMeta):
        """``Array[f32, 2]``: a matrix of float32, its shape and strides; ``Array[f32, None, 64]`` fixes an extent.

        In the kernel ``a[i, j]`` is an element and ``a.shape[0]`` an extent (u32, or an int where it is fixed). The
        launch takes an array of that dtype and rank, with strides that are multiples of the element and the last
        dimension contiguous, else it is a LaunchError.

        >>> print(Array[f32, 2], Array[f32, None, 64])
        Array[f32, 2] Array[f32, None, 64]
        """


class TensorMap:
    """A parameter that is a TMA descriptor: the 128 bytes of a ``CUtensorMap``, as the driver's API encodes them.

    The launch takes what :func:`ptxdsl.tensor_map` makes of an array, and any object of 128 bytes, such as what
    cuda-bindings' ``cuTensorMapEncodeTiled`` gives; of that the array must be an argument too.
    """


Annotation = Union[ScalarType, PtrType, ArrayType, TensorMapType, HandleType]


@dataclass(frozen=True)
class KernelParameter:
    """A run-time parameter of a kernel and the ``.param`` entries that carry it, in order."""

    name: str
    annotation: Annotation
    ptx: tuple[ir.Parameter, ...]


@dataclass(frozen=True)
class Signature:
    """The run-time parameters of a kernel and its compile-time constants with their defaults."""

    parameters: tuple[KernelParameter, ...]
    constants: dict[str, Any]

    REQUIRED = inspect.Parameter.empty

    @classmethod
    def of(cls, function: Callable[..., object], names: Mapping[str, Any] | None = None) -> Signature:
        """Read a kernel function's signature; a TraceError names the parameter whose annotation is missing or wrong.

        ``names`` are the local names where the function was defined: an annotation in a string, as all are after
        ``from __future__ import annotations``, may use them.
        """
        code = function.__code__
        loc = definition_of(code)
        annotations = _annotations(function, names)
        count, last = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        if code.co_posonlyargcount or code.co_flags & _MANY or function.__defaults__:
            _refuse(function, loc)
        parameters = (_parameter(function, name, annotations.get(name), loc) for name in code.co_varnames[:count])
        defaults = function.__kwdefaults__ or {}
        constants = {name: defaults.get(name, cls.REQUIRED) for name in code.co_varnames[count:last]}
        return cls(tuple(parameters), constants)

    @property
    def ptx(self) -> tuple[ir.Parameter, ...]:
        """All ``.param`` entries in order."""
        return tuple(entry for parameter in self.parameters for entry in parameter.ptx)


_MANY = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _refuse(function: Callable[..., object], loc: Loc) -> None:
    """The error for a parameter that no kernel can have."""
    for name, parameter in inspect.signature(function, follow_wrapped=False).parameters.items():
        if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            raise TraceError(f"kernel `{function.__name__}` cannot take `{parameter}`", loc=loc)
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is not parameter.empty:
            raise TraceError(
                f"parameter `{name}` of kernel `{function.__name__}` has a default; run-time parameters have none",
                loc=loc, hint=f"make it a compile-time constant: `*, {name}={parameter.default!r}`",
            )


@cache
def _compiled(annotation: str) -> CodeType:
    return compile(annotation, "<annotation>", "eval")


def _annotations(function: Callable[..., object], names: Mapping[str, Any] | None) -> dict[str, Any]:
    known = {**(names or {}), **closure_of(function)}
    try:
        return {
            name: eval(_compiled(value), function.__globals__, known) if isinstance(value, str) else value
            for name, value in function.__annotations__.items() if name != "return"
        }
    except NameError as error:
        code = function.__code__
        raise TraceError(
            f"an annotation of kernel `{function.__name__}` cannot be evaluated: {error}",
            loc=definition_of(code),
        ) from None


def definition_of(code: CodeType) -> Loc:
    """The line of a function's ``def``, behind its decorators; the first that Python knows where there is no source."""
    first = Loc(code.co_filename, code.co_firstlineno)
    if not first.source.startswith("@"):
        return first
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno :]
    begins = re.compile(rf"\s*(async\s+)?def\s+{re.escape(code.co_name)}\b")
    behind = next((number for number, line in enumerate(lines, 1) if begins.match(line)), 0)
    return Loc(code.co_filename, code.co_firstlineno + behind)


def closure_of(function: Callable[..., object]) -> dict[str, Any]:
    """The variables of a function's closure that have a value."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        with suppress(ValueError):  # it has none yet
            found[name] = cell.cell_contents
    return found


def _parameter(function: Callable[..., object], name: str, annotation: Any, loc: Loc) -> KernelParameter:
    if annotation is TensorMap:
        annotation = TensorMapType()
    if isinstance(annotation, type) and hasattr(annotation, "image_kind"):
        annotation = HandleType(annotation.image_kind)
    entries: tuple[ir.Parameter, ...]
    if isinstance(annotation, ScalarType) and annotation.kind not in "po":
        entries = (ir.Parameter(name, annotation.register if annotation.kind == "f" else annotation),)
    elif isinstance(annotation, PtrType):
        entries = (ir.Parameter(name, u64, pointer=("global", annotation.dtype.bytes)),)
    elif isinstance(annotation, ArrayType):
        entries = _array_entries(name, annotation)
    elif isinstance(annotation, TensorMapType):
        entries = (ir.Parameter(name, b8, (128,), align=64),)
    elif isinstance(annotation, HandleType):
        entries = (ir.Parameter(name, u64),)
    elif str(annotation) in _OPAQUE:
        raise TraceError(
            f"parameter `{name}` of kernel `{function.__name__}` has the annotation {annotation}, the type of a "
            "variable of the module", loc=loc,
            hint=f"write `{name}: {_OPAQUE[str(annotation)]}`, or `global_({annotation})` inside",
        )
    else:
        what = "has no annotation" if annotation is None else f"has the annotation {annotation!r}, which is no PTX type"
        meant = kind if (kind := type_meant(annotation)) is not None and kind.kind not in "po" else None
        kinds = f"`{name}: {meant or u32}`, `{name}: Ptr[{meant or f32}]` or `{name}: Array[{meant or f32}, 2]`"
        raise TraceError(
            f"parameter `{name}` of kernel `{function.__name__}` {what}", loc=loc,
            hint="a kernel is a plain function, not a method" if name == "self" and annotation is None
            else f"write {kinds}; a compile-time constant comes after `*`",
        )
    return KernelParameter(name, annotation, entries)


_OPAQUE = {"texref": "Texture", "samplerref": "Sampler", "surfref": "Surface"}


def _array_entries(name: str, array: ArrayType) -> tuple[ir.Parameter, ...]:
    entries = [ir.Parameter(name, u64, pointer=("global", array.dtype.bytes))]
    entries += [ir.Parameter(f"{name}_shape{i}", u32) for i, extent in enumerate(array.shape) if extent is None]
    if None in array.shape[1:]:
        entries += [ir.Parameter(f"{name}_stride{i}", u32) for i in range(len(array.shape) - 1)]
    return tuple(entries)
