"""The variables that a kernel declares: shared and local memory, constant tables, variables of the module."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ... import ir
from ...errors import PtxTypeError, TraceError, caller, with_article
from ...ir.signature import ConstType, Ptr
from ...isa.targets import Limits
from ...types import TYPES, KernelOperand, ScalarType, b8, dtype_of
from ..builder import Trace, current
from ..errors import described, located, no_type
from ..values.functions import variable_name
from ..values.literals import plain
from .arrays import View, row_major, with_extents
from .declared import Declared
from .pointers import Pointer

__all__ = ["const", "dynamic_shared", "global_", "local", "param", "shared"]

T = TypeVar("T")
_LINKAGES = ("visible", "weak", "common", "extern")
_STATIC = Limits().static_shared
_CONSTANT = 65536
"""The bytes of constant memory that a module has (PTX manual, State Spaces)."""


def _extents(shape: tuple[Any, ...]) -> str:
    """Extents as they were given, where they are right."""
    return ", ".join(map(str, shape)) if shape and all(type(extent) is int for extent in shape) else "256"


def _shape(function: str, dtype: Any, shape: tuple[Any, ...]) -> tuple[int, ...]:
    if not isinstance(dtype, ScalarType) or dtype.kind == "p":
        raise no_type(f"`{function}` takes a type first", dtype, f"write `{function}({{}}, {_extents(shape)})`")
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    for extent in shape:
        if extent.__class__ is int and extent > 0:
            continue
        if isinstance(plain(extent), bool) or not isinstance(plain(extent), int) or extent < 1:
            raise located(
                PtxTypeError,
                f"an extent of `{function}` is a positive int known while tracing, not {described(extent)}",
                "take it from a compile-time constant: `*, tile=16`; `dynamic_shared` is sized at the launch",
            )
    if not shape:
        raise located(PtxTypeError, f"`{function}` needs a shape", f"write `{function}({dtype}, 256)`")
    return tuple(int(extent) for extent in shape)


def _declared(trace: Trace, space: str, dtype: ScalarType, extents: tuple[Any, ...], align: int) -> Any:
    shape, align = _shape(space, dtype, extents), _alignment(align)
    symbol = trace.unique(variable_name(space))
    extents = (prod(shape),) if space == "param" else shape
    variable = ir.Variable(symbol, space, dtype.register, extents, max(align, dtype.bytes))
    trace.variables.append(variable)
    trace.needs_verification |= dtype.bits > 64  # the declaration alone needs its version
    trace.declared[space] = trace.declared.get(space, 0) + variable.nbytes
    view = View(dtype, space, Declared(trace, symbol, common=False), shape, row_major(shape))
    return with_extents(view, symbol, True)


def shared(dtype: ScalarType, *shape: int, align: int = 16) -> Ptr[KernelOperand]:
    """An array that the threads of a block share: ``shared(f32, 16, 17)``, in C order, aligned to ``align`` bytes.

    Its contents are undefined until they are written. All static arrays of a kernel together have 48 KiB.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, ptx, ptx_kernel, shared, u32
    >>> @ptx_kernel
    ... def backwards(x: Ptr[u32]):
    ...     tile, i = shared(u32, 8), ptx.tid.x
    ...     tile[i] = x[i]
    ...     ptx.bar.sync(0)
    ...     x[i] = tile[7 - i]
    >>> x = np.arange(8, dtype=np.uint32)
    >>> backwards[1, 8](x)
    >>> x.tolist()
    [7, 6, 5, 4, 3, 2, 1, 0]
    """
    trace = current()
    view = _declared(trace, "shared", dtype, shape, align)
    total = trace.declared["shared"]
    if total > _STATIC:
        raise located(
            TraceError, f"{total} bytes of static shared memory; a kernel may have {_STATIC}",
            f"`dynamic_shared({dtype})`, and its size in bytes at the launch: "
            f"`k.configure(grid, block, shared={total})`",
        )
    return view


def local(dtype: ScalarType, *shape: int, align: int = 16) -> Ptr[KernelOperand]:
    """An array that each thread has for itself, for what must be indexed at run time; slow memory behind caches.

    The extents are Python ints. Nothing is in it at first: write before you read.

    >>> import numpy as np
    >>> @ptx_kernel
    ... def pick(i: u32, out: Ptr[u32]):
    ...     squares = local(u32, 4)
    ...     for k in range(4):
    ...         squares[k] = k * k
    ...     out[0] = squares[i]
    >>> out = np.zeros(1, np.uint32)
    >>> pick[1, 1](3, out)
    >>> int(out[0])
    9
    """
    return _declared(current(), "local", dtype, shape, align)


def global_(
    dtype: ScalarType, *shape: int, align: int = 16, linkage: str = "", managed: bool = False
) -> Ptr[KernelOperand]:
    """An array of the module in global memory: one for all blocks and launches, zero when the module is loaded.

    With a ``linkage`` (``"visible"``, ``"weak"`` or ``"common"``) other modules see it, under the name of the Python
    variable; ``"extern"`` is for one that another module has, with which this one is linked. ``managed`` puts it into
    memory that the host shares.

    Of a `texref`, `samplerref` or `surfref` it is the reference itself, which texture and surface instructions name:
    ``t = global_(texref)``, ``ptx["tex.1d.v4.f32.s32"]((t, [x]))``.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, global_, ptx, ptx_kernel, u32
    >>> @ptx_kernel
    ... def ticket(out: Ptr[u32]):
    ...     out[ptx.ctaid.x] = ptx.atom.global_.add.u32(global_(u32, 1), 1)
    >>> out = np.zeros(4, np.uint32)
    >>> ticket[4, 1](out)
    >>> sorted(out.tolist())
    [0, 1, 2, 3]
    """
    trace = current()
    opaque = isinstance(dtype, ScalarType) and dtype.kind == "o"
    if opaque and shape:
        raise located(PtxTypeError, f"{with_article(dtype)} has no shape", f"`global_({dtype})`")
    extents = () if opaque else _shape("global_", dtype, shape)
    if linkage not in ("", *_LINKAGES):
        raise located(
            TraceError, f"`global_` has no linkage {linkage!r}", f"there are {', '.join(map(repr, _LINKAGES))}"
        )
    own = variable_name("global")
    symbol = trace.unique(own if linkage else f"{trace.name}_{own}")
    if linkage and symbol != own:
        raise located(
            TraceError, f"the variable `{own}` is called so in other modules, and the kernel has another `{own}`",
            "give one of them another name",
        )
    attributes: tuple[ir.Directive, ...] = (("managed", ()),) if managed else ()
    size = None if opaque else max(_alignment(align), dtype.bytes)
    trace.module_variables.append(
        ir.Variable(symbol, "global", dtype.register, extents, size, linkage=linkage, attributes=attributes)
    )
    trace.needs_verification |= dtype.bits > 64
    view = View(dtype, "global", Declared(trace, symbol, common=True), extents, row_major(extents))
    return with_extents(view, symbol, True)  # type: ignore[return-value]


def param(dtype: ScalarType, *shape: int, align: int = 16) -> View:
    """A ``.param`` variable: what ``st.param`` fills for a call of PTX that takes a structure, or it returned."""
    trace = current()
    trace.needs_verification = True
    return _declared(trace, "param", dtype, shape, align)


def dynamic_shared(dtype: ScalarType, *shape: int, offset: int = 0, align: int = 16) -> Ptr[KernelOperand]:
    """The shared memory whose size the launch gives: a pointer to it, ``offset`` bytes from its start.

    With a shape it is an array of that shape. All calls in a kernel give the same memory.

    >>> from ptxdsl import dynamic_shared, f32, ptx, ptx_kernel
    >>> @ptx_kernel
    ... def zero():
    ...     dynamic_shared(f32)[ptx.tid.x] = 0.0
    >>> zero.configure(1, 32, shared=32 * 4)()
    """
    trace = current()
    extents, offset = _shape("dynamic_shared", dtype, shape or (1,)), plain(offset)
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0 or offset % dtype.bytes:
        raise located(
            PtxTypeError,
            f"the offset of `dynamic_shared` is a multiple of {dtype.bytes} bytes, not {described(offset)}",
            f"`offset=count * {dtype.bytes}`",
        )
    symbol = "dynamic_shared"
    variable = next((v for v in trace.module_variables if v.name == symbol), None)
    if variable is None:
        variable = ir.Variable(symbol, "shared", b8, (None,), 16, linkage="extern")
        trace.module_variables.append(variable)
    variable.align = max(variable.align or 16, _alignment(align), dtype.bytes)
    base = Declared(trace, symbol, common=True)
    if not shape:
        return Pointer(dtype, "shared", base, offset)  # type: ignore[return-value]
    view = View(dtype, "shared", base, extents, row_major(extents), offset)
    return with_extents(view, symbol, False)  # type: ignore[return-value]


class const(KernelOperand, Generic[T]):
    """A table in constant memory, with the values of a numpy array (or a list of numbers, then with a ``dtype``).

    In an annotation, ``Ptr[const[f32]]`` and ``Array[const[f32], 2]`` are parameters that the kernel only reads: loads
    are ``ld.global.nc``, which ptxas may move before stores, and a store is an error. Nobody may write there while the
    kernel runs, through another parameter neither (PTX manual, ld.global.nc).

    >>> import numpy as np
    >>> from ptxdsl import Ptr, const, ptx, ptx_kernel, u32
    >>> @ptx_kernel
    ... def primes(x: Ptr[u32]):
    ...     table, i = const([2, 3, 5, 7], u32), ptx.tid.x
    ...     x[i] = table[i]
    >>> x = np.zeros(4, np.uint32)
    >>> primes[1, 4](x)
    >>> x.tolist()
    [2, 3, 5, 7]
    >>> print(Ptr[const[u32]])
    Ptr[const[u32]]
    """

    def __new__(cls, array: Any, dtype: ScalarType | None = None) -> Any:
        return _constant_table(array, dtype)

    if not TYPE_CHECKING:

        def __class_getitem__(cls, dtype: ScalarType) -> ConstType:
            if not isinstance(dtype, ScalarType) or dtype.kind in "po":
                raise TraceError(f"const takes one scalar type, not {dtype!r}", loc=caller(), hint="`Ptr[const[f32]]`")
            return ConstType(dtype)


def _constant_table(array: Any, dtype: ScalarType | None) -> View:
    import numpy as np

    trace = current()
    if dtype is not None and dtype.__class__ is not ScalarType:
        hint = "`const([...], f32)`: the table first, then its type"
        raise located(PtxTypeError, f"the type of a `const` is a scalar type, not {described(dtype)}", hint)
    if dtype is None and not isinstance(array, np.ndarray):
        raise located(
            PtxTypeError, f"`const` of {described(array)} has no type", "give a numpy array, or `const([...], f32)`"
        )
    values = np.asarray(array) if dtype is None else _table(array, dtype)
    dtype = dtype or _type_of(values)
    if values.ndim == 0 or values.size == 0:
        raise located(PtxTypeError, f"`const` of an array of shape {values.shape}", "a table has at least one element")
    raw = np.ascontiguousarray(values).view(np.uint8).reshape(-1, dtype.bytes)
    bits = tuple(int.from_bytes(element.tobytes(), "little") for element in raw)
    symbol = trace.unique(f"{trace.name}_{variable_name('const')}")
    variable = ir.Variable(symbol, "const", dtype.register, values.shape, max(16, dtype.bytes), bits)
    total = variable.nbytes + sum(v.nbytes for v in trace.module_variables if v.space == "const")
    if total > _CONSTANT:
        raise located(
            TraceError, f"{total} bytes of constant memory; a module may have {_CONSTANT}", "a parameter `Ptr[f32]`"
        )
    trace.module_variables.append(variable)
    view = View(dtype, "const", Declared(trace, symbol, common=True), values.shape, row_major(values.shape))
    return with_extents(view, symbol, True)


def _table(array: Any, dtype: ScalarType) -> Any:
    """Numbers as an array of a type, each of which must fit in it."""
    import numpy as np

    try:
        given = np.asarray(array)
    except ValueError:
        given = np.asarray(None)
    kind = np.dtype(dtype_of(dtype))
    if given.dtype.kind not in "biuf" and given.dtype != kind:
        raise located(PtxTypeError, f"`const` of {described(array)}, which is no table of numbers", "`const([1, 2])`")
    if dtype.kind in "usb" and given.size:
        low, high = (-(1 << dtype.bits - 1), 1 << dtype.bits - 1) if dtype.kind == "s" else (0, 1 << dtype.bits)
        if not (low <= int(given.min()) and int(given.max()) < high and (given == np.floor(given)).all()):
            raise located(
                PtxTypeError,
                f"`const` of {described(array)}: not each is {with_article(dtype)}, which holds {low} to {high - 1}",
                "a wider type: `const(array, s64)`" if given.dtype.kind in "biu" else "`const(array, f32)`",
            )
    table = given.astype(kind)
    if dtype.is_float and given.dtype.kind in "iu":
        inexact = given[table.astype(np.float64).astype(object) != given.astype(object)]
        if inexact.size:
            raise located(
                PtxTypeError, f"`const` of {described(array)}: {dtype} cannot hold the int {inexact[0]} exactly",
                "give floats to have them rounded: `np.asarray(array, np.float64)`",
            )
    return table


def _type_of(values: Any) -> ScalarType:
    name = values.dtype.name
    for kind in TYPES.values():
        if kind.numpy_name == name and kind.kind in "usf" and kind.lanes == 1:
            return kind
    hints = {
        "b": "`array.view(np.uint8)`",
        "c": f"`array.view(np.float{values.itemsize * 4})` has the real and the imaginary parts, one after the other",
    }
    raise located(
        PtxTypeError, f"PTX has no type for a numpy array of {values.dtype}",
        hints.get(values.dtype.kind, "integers of 8 to 64 bits, float16, float32 or float64"),
    )


def _alignment(align: int) -> int:
    align = plain(align)
    if isinstance(align, bool) or not isinstance(align, int) or align < 1 or align & (align - 1):
        raise located(PtxTypeError, f"an alignment is a power of two, not {described(align)}", "`align=128`")
    return align
