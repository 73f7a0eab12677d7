"""What a running kernel can say: `printf`, and `check`, which stops it.

Both call the functions that CUDA provides for the purpose, ``vprintf`` and ``__assertfail``; the emulator knows them
too. The format is checked while tracing: a ``%d`` that gets a float prints nonsense on a GPU.
"""

from __future__ import annotations

import re
from typing import Any

from .. import ir
from ..errors import PtxTypeError
from ..types import b32, b64, b8, f32, f64, pred, s32, s64, u32, u64
from .builder import Trace, current
from .control.regions import when
from .errors import described, located
from .memory.declared import Declared
from .memory.pointers import Pointer
from .values.literals import is_number, plain
from .values.moves import constant, known_form
from .values.value import Result, Value, emit

__all__ = ["check", "printf"]

_CONVERSION = r"(?s)%(?P<flags>[-+ #0]*\d*(?:\.\d+)?)(?P<length>hh|h|ll|l|z|t|j)?(?P<kind>.?)"
_INTEGERS, _FLOATS = "diouxXc", "fFeEgGaA"


def printf(format: str, *values: Any) -> None:  # noqa: A002 -- C's name for it
    r"""Print from the kernel, once for each thread that gets here: ``printf("%d: %f\n", i, x)``.

    The conversions are C's, and each must suit its value: ``%d %u %x`` take 32 bits, ``%lld %llu %llx`` 64 bits,
    ``%f %e %g`` any float, ``%p`` a pointer, ``%s`` a Python string.

    >>> from ptxdsl import printf, ptx, ptx_kernel
    >>> @ptx_kernel
    ... def hello():
    ...     printf("thread %d of %d\n", ptx.tid.x, ptx.ntid.x)
    >>> hello[1, 2]()
    thread 0 of 2
    thread 1 of 2
    """
    trace = current()
    if not isinstance(format, str):
        raise located(
            PtxTypeError, f"the format of `printf` is a string, not {described(format)}", '`printf("%d\\n", v)`'
        )
    wanted = [match for match in re.finditer(_CONVERSION, format) if match["kind"] != "%"]
    if len(wanted) != len(values):
        raise located(
            PtxTypeError, f"the format {format!r} has {len(wanted)} conversions, and there are {len(values)} values",
            "give one value for each `%`; `%%` is a percent sign",
        )
    arguments = [_argument(trace, match, value) for match, value in zip(wanted, values)]
    buffer = _buffer(trace, arguments)
    trace.declare(ir.Function("vprintf", "func", linkage="extern", body=None, results=[ir.Parameter("status", b32)],
                              parameters=[ir.Parameter("format", b64), ir.Parameter("arguments", b64)]))
    trace.call("vprintf", (_text(trace, format).use(trace), buffer), (trace.fresh(s32),))


def check(p: Any, message: str = "check failed") -> None:
    """Stop the kernel with a message, the Python line and the thread where ``p`` does not hold.

    The GPU reports it as a failed device-side assertion, the emulator raises TrapError.

    >>> from ptxdsl import TrapError, check, ptx_kernel, u32
    >>> @ptx_kernel
    ... def few(n: u32):
    ...     check(n < 5, "n is too large")
    >>> try:
    ...     few[1, 1](7)
    ... except TrapError as error:
    ...     print(error.message)
    n is too large
    """
    trace = current()
    if not isinstance(message, str):
        raise located(
            PtxTypeError, f"the message of `check` is a string, not {described(message)}",
            '`check(i < n, "i is too large")`',
        )
    if isinstance(p, bool):
        raise located(
            PtxTypeError, f"`check` of {p} known while tracing", "`assert`: Python decides it before the kernel runs"
        )
    if not isinstance(p, Value) or p.type is not pred:
        got = p.type if isinstance(p, Value) else described(p)
        raise located(PtxTypeError, f"`check` takes a predicate, not {got}", "compare: `check(v != 0, ..)`")
    place = trace.location()
    trace.declare(ir.Function("__assertfail", "func", linkage="extern", body=None, parameters=[
        ir.Parameter("message", b64), ir.Parameter("file", b64), ir.Parameter("line", b32),
        ir.Parameter("function", b64), ir.Parameter("char_size", b64),
    ]))
    with when(~p):
        texts = [_text(trace, text).use(trace) for text in (message, place.file, trace.name)]
        line = ir.Immediate(place.line, b32)
        trace.call("__assertfail", (texts[0], texts[1], line, texts[2], ir.Immediate(1, b64)), ())


def _argument(trace: Trace, match: re.Match[str], value: Any) -> Value:
    """A value as C passes it on: 32 or 64 bits, floats as doubles."""
    kind, length, spelled = match["kind"], match["length"] or "", match[0]
    if kind == "s" and isinstance(value, str):
        return _text(trace, value)
    if kind == "p" and isinstance(value, Pointer):
        return value.generic().address if value.space != "generic" else value.address
    if kind in _FLOATS:
        if is_number(value):
            return Result(constant(trace, +plain(value), f64), f64, trace.kernel)
        if isinstance(value, Value) and value.type.is_float and value.type.lanes == 1 and value.type.bits >= 16:
            return value.to(f32).to(f64) if value.type.bits < 32 else value.to(f64)
        raise _unsuited(spelled, "a float", value, "%d")
    if kind in _INTEGERS:
        wide = length in ("ll", "l", "z", "t", "j")
        if is_number(value):
            kind = s64 if wide else s32
            return Result(constant(trace, plain(value), kind), kind, trace.kernel)
        if isinstance(value, Value):
            if value.type is pred and not wide:
                return value.to(u32)
            if value.type.kind in "usb" and value.type.bits <= 32 and not wide:
                return value if value.type.bits == 32 else value.to(s32 if value.type.is_signed else u32)
            if value.type.kind in "usb" and value.type.bits == 64 and wide:
                return value
        raise _unsuited(spelled, "64 bits" if wide else "32 bits", value, "%f")
    raise located(
        PtxTypeError, f"`{spelled}` is no conversion of `printf` for {_kind(value)}",
        "`%d` for integers, `%lld` for those of 64 bits, `%f` for floats, `%p` for pointers, `%s` for Python strings",
    )


def _kind(value: Any) -> str:
    return value._kind() if isinstance(value, (Value, Pointer)) else described(value)


def _unsuited(spelled: str, wanted: str, value: Any, otherwise: str) -> PtxTypeError:
    if isinstance(value, Value) and not value.type.is_float and value.type is not pred:
        otherwise = "%lld" if value.type.bits == 64 else "%d"
        otherwise = otherwise.replace("d", "u") if value.type.kind == "u" else otherwise
    return located(PtxTypeError, f"`{spelled}` prints {wanted}, not {_kind(value)}", f"`{otherwise}`")


def _text(trace: Trace, text: str) -> Value:
    """The generic address of a string in global memory, ended by a zero."""
    symbol = trace.texts.get(text)
    if symbol is None:
        symbol = trace.texts[text] = trace.unique(f"{trace.name}_text")
        bits = (*text.encode("utf-8"), 0)
        trace.module_variables.append(ir.Variable(symbol, "global", b8, (len(bits),), 1, bits))
    return emit(known_form("cvta.global.u64"), u64, ir.Symbol(symbol))


def _buffer(trace: Trace, arguments: list[Value]) -> ir.Operand:
    """The values one after the other in local memory, each aligned to its size: what a ``va_list`` is on a GPU."""
    if not arguments:
        return ir.Immediate(0, b64)
    offsets, size = [], 0
    for value in arguments:
        size = -(-size // value.type.bytes) * value.type.bytes
        offsets.append(size)
        size += value.type.bytes
    symbol = trace.unique("printf")
    trace.variables.append(ir.Variable(symbol, "local", b8, (size,), 8))
    for value, offset in zip(arguments, offsets):
        Pointer(value.type, "local", Declared(trace, symbol, common=False), offset).store(0, value)
    return emit(known_form("cvta.local.u64"), u64, ir.Symbol(symbol)).use(trace)
