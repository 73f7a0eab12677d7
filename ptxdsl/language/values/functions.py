"""The functions of the language that are neither operators nor memory: `reg`, `select`, `minimum`, `pack` and such."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, overload

from ... import ir
from ...errors import PtxTypeError, with_article
from ...types import KernelOperand, ScalarType, f32, pred, type_meant, u16
from ..builder import PendingRegion, current, thread
from ..errors import described, located, mismatch, named, no_type
from ..introspection.call_sites import user_frame
from ..introspection.variable_names import target_of_call
from ..rules.decided_comparisons import check_extreme
from .literals import is_number, known_integer, literal, plain
from .moves import constant, known_form, parts_form, set_register
from .narrow import narrowed, widened
from .operators import extreme, selection
from .value import Negated, Reg, Result, Value, Vec, emit, set_source

__all__ = ["cdiv", "maximum", "minimum", "pack", "reg", "select", "unpack"]


def reg(type: Any, value: Any = None) -> KernelOperand:
    """A register of ``type`` that may be changed, holding ``value`` (nothing yet, if there is none).

    ``reg(v)`` is one with the type and contents of ``v``, a Value or a pointer. In PTX it has the name of the Python
    variable. One ``mov``.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, f32, loop, ptx_kernel, reg, u32
    >>> @ptx_kernel
    ... def total(x: Ptr[f32], n: u32):
    ...     acc = reg(f32, 0.0)
    ...     with loop(n) as i:
    ...         acc += x[i]
    ...     x[0] = acc
    >>> x = np.arange(5, dtype=np.float32)
    >>> total[1, 1](x, 5)
    >>> float(x[0])
    10.0
    """
    trace = current()
    if not isinstance(type, ScalarType):
        if value is None and hasattr(type, "as_register"):
            return type.as_register(variable_name())
        if value is not None or not isinstance(type, Value):
            start = "0.0" if (type_meant(type) or f32).is_float else "0"
            raise no_type("`reg` takes a type", type, f"write `reg({{}}, {start})`")
        type, value = type.type, type
    source = set_source(trace, value, type) if value is not None else None
    register = trace.fresh(type, variable_name())
    if source is None:
        trace.needs_verification |= type.bits > 64  # the declaration alone needs its version
        return Reg(register, type, PendingRegion.of(trace.region))  # type: ignore[return-value]
    set_register(trace, register, source, type)
    return Reg(register, type, trace.region)  # type: ignore[return-value]


def variable_name(otherwise: str = "reg") -> str:
    """What to call the thing that the user is making: the variable it goes to."""
    frame = user_frame(3)
    trace = current()
    found = target_of_call(frame)
    if found is None:
        return otherwise + trace.suffix
    if len(found.names) > 1:
        return found.names[trace.count(f"{frame.f_code.co_name}:{frame.f_lineno}") % len(found.names)] + trace.suffix
    name = found.names[0]
    return (f"{name}{trace.count(name)}" if found.many else name) + trace.suffix


@contextmanager
def parts_named(part: str) -> Iterator[None]:
    """What a helper makes in here is a part of what its user makes, and is called so: ``pipe_full`` in ``pipe``."""
    trace = current()
    before, trace.suffix = trace.suffix, f"{trace.suffix}_{part}"
    try:
        yield
    finally:
        trace.suffix = before


def select(p: Any, a: Any, b: Any) -> KernelOperand:
    """``a`` where ``p`` holds, else ``b``: one ``selp``. At least one of them is a Value, which gives the type.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, ptx, ptx_kernel, s32, select
    >>> @ptx_kernel
    ... def relu(x: Ptr[s32]):
    ...     i = ptx.tid.x
    ...     x[i] = select(x[i] < 0, 0, x[i])
    >>> x = np.array([-2, -1, 0, 1], np.int32)
    >>> relu[1, 4](x)
    >>> x.tolist()
    [0, 0, 0, 1]
    """
    trace = current()
    if not isinstance(p, Value) or p.type is not pred:
        raise located(
            PtxTypeError, f"`select` takes a predicate first, not {p.type if isinstance(p, Value) else described(p)}",
            "compare: `select(v != 0, a, b)`",
        )
    type = _common("select", a, b)
    if type is pred:
        raise located(PtxTypeError, "PTX selects no predicates", "`(p & a) | (~p & b)`")
    if isinstance(p, Negated):
        p, a, b = p.source, b, a
    if type.bits == 8:
        wide = [_wide(value, type) for value in (a, b)]
        chosen = emit(known_form("selp.u16"), u16, *wide, p.use(trace))
        return Result(narrowed(trace, chosen.register, type), type, trace.region)  # type: ignore[return-value]
    form = selection(type)
    if form is None:
        raise located(PtxTypeError, f"PTX has no selp of {type}", "convert first: `v.to(u32)`")
    return emit(form, type, _source(a, type), _source(b, type), p.use(trace))  # type: ignore[return-value]


def minimum(a: Any, b: Any) -> KernelOperand:
    """The lesser of two values of one type, or of a value and a number, by one ``min``.

    Of a NaN and a number it is the number; ``ptx.min.NaN.f32(a, b)`` gives the NaN.

    >>> import numpy as np
    >>> @ptx_kernel
    ... def clamp(x: Ptr[f32]):
    ...     x[ptx.tid.x] = maximum(minimum(x[ptx.tid.x], 1.0), 0.0)
    >>> x = np.array([-2, 0.5, np.nan, 7], np.float32)
    >>> clamp[1, 4](x)
    >>> x
    array([0. , 0.5, 1. , 1. ], dtype=float32)
    """
    return _extreme("min", a, b)


def maximum(a: Any, b: Any) -> KernelOperand:
    """The greater of two values of one type, or of a value and a number, by one ``max``; see ``minimum``."""
    return _extreme("max", a, b)


@overload
def cdiv(a: int, b: int) -> int: ...
@overload
def cdiv(a: Any, b: Any) -> KernelOperand: ...
def cdiv(a: Any, b: Any) -> Any:
    """The quotient of Python ints or unsigned Values, rounded up: the blocks of 256 threads that 1000 elements need.

    Of Values ``a + b - 1`` must be within their type.

    >>> cdiv(1000, 256)
    4
    """
    if known_integer(b) == 0:
        raise located(PtxTypeError, "`cdiv` by 0", "`cdiv(n, 256)`")
    for value in (a, b):
        if isinstance(value, Value) and value.type.kind != "u":
            kind, name = value.type, named(value, "v")
            hint = f"`{name}.bits(u{kind.bits})` of one that is not negative" if kind.is_integer else None
            raise located(PtxTypeError, f"`cdiv` of {kind}, and it is of unsigned numbers", hint)
    return (a + (b - 1)) // b


def pack(type: ScalarType, *parts: Any) -> KernelOperand:
    """Values packed into one of ``type``, the first in the lowest bits, by one ``mov``: ``pack(f16x2, lo, hi)``.

    PtxTypeError where their bits do not fill the type.

    >>> import numpy as np
    >>> from ptxdsl import pack, unpack
    >>> @ptx_kernel
    ... def swap(x: Ptr[u64]):
    ...     low, high = unpack(x[0], u32)
    ...     x[0] = pack(u64, high, low)
    >>> x = np.array([0x1111111122222222], np.uint64)
    >>> swap[1, 1](x)
    >>> hex(x[0])
    '0x2222222211111111'
    """
    trace = current()
    if not isinstance(type, ScalarType):
        raise no_type("`pack` takes a type first", type, "write `pack({}, lo, hi)`", "u64")
    if not all(isinstance(part, Value) for part in parts) or sum(part.type.bits for part in parts) != type.bits:
        got = " and ".join(str(p.type) if isinstance(p, Value) else described(p) for p in parts)
        hint = "`pack(f16x2, lo, hi)`, `pack(u64, lo, hi)`"
        raise located(PtxTypeError, f"{got} do not fill {with_article(type)}", hint)
    form = parts_form(type, len(parts), written=False)
    return emit(form, type, ir.Vector(tuple(part.use(trace) for part in parts)))  # type: ignore[return-value]


def unpack(value: Any, type: ScalarType) -> Vec:
    """Split a value into its parts, the lowest first, by one ``mov``: a u64 is two u32; see ``pack``."""
    return value.unpack(type)


def _extreme(name: str, a: Any, b: Any) -> Any:
    if isinstance(a, Value) and isinstance(b, Value) and a.type is b.type:
        type = a.type
    elif is_number(a) and is_number(b):
        return min(a, b) if name == "min" else max(a, b)
    else:
        type = _common(f"{name}imum", a, b)
    for value, number in ((a, b), (b, a)):
        if isinstance(value, Value) and is_number(number):
            check_extreme(current(), f"{name}imum", value, plain(number))
    form = extreme(name, type)
    if form is None:
        less = "a < b" if name == "min" else "a > b"
        hint = f"`select({less}, a, b)`" if type.is_integer else "say what the bits are: `v.bits(u32)`"
        if type.is_float:
            hint = f"convert first: `v.to(f32)`, or `select({less}, a, b)`"
        raise located(PtxTypeError, f"PTX has no {name} of {type}", hint)
    return emit(form, type, _source(a, type), _source(b, type), depth=4)


def _common(function: str, a: Any, b: Any) -> ScalarType:
    """The type of two operands that must agree."""
    for value in (a, b):
        if not isinstance(value, Value) and not is_number(value):
            raise located(
                PtxTypeError, f"`{function}` of {described(value)}", "operands are Values, regs and Python numbers"
            )
    if isinstance(a, Value) and isinstance(b, Value):
        if a.type is not b.type:
            raise mismatch(function, a, b)
        return a.type
    if isinstance(a, Value) or isinstance(b, Value):
        return a.type if isinstance(a, Value) else b.type
    raise located(
        PtxTypeError, f"`{function}` of two Python numbers has no type",
        f"give one of them a type: `reg({'f32' if isinstance(plain(a), float) else 's32'}, {plain(a) + 0})`",
    )


def _wide(value: Any, type: ScalarType) -> ir.Operand:
    """A value or number of an 8-bit type in 16 bits."""
    if isinstance(value, Value):
        return widened(current(), value.use(current()))
    return ir.Immediate(literal(value, type).bits, u16)


def _source(value: Any, type: ScalarType) -> ir.Operand:
    trace = thread.trace or current()
    if isinstance(value, Value):
        return value.use(trace)
    if type.register is not type:
        return constant(trace, value, type)
    return literal(value, type)
