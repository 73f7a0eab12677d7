"""Handlers of arguments passed by value: Python's numbers, the scalars of numpy and ml_dtypes, which hold their bytes,
tensor maps, and what only Python can pack.

What a number becomes is what `launch.scalars` makes of it; what has to be rounded in another way than LLVM does, or
does not fit, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .code import DOUBLE, INT, OBJECT, TYPE_OF_OBJECT, WORD, Code, handler, place
from .layout import ASKED_OF_MAPS, Argument, Frame

__all__ = ["add_numbers"]

FLOAT = ir.FloatType()
Reader = Callable[[Code, Any], Any]
"""The number that a value is: a word or a double."""
KINDS = ("f16", "bf16", "f32", "f64")
PAIRS = {"f16": 16, "bf16": 16, "f32": 32}
"""The types of which two are packed as one, with their bits."""


def add_numbers(module: Any) -> None:
    """The handlers of numbers, and of what Python packs; those of an :class:`Argument` with a ``reader`` call that.

    ``integer`` packs a whole number, ``whole_f32`` makes a float of it, ``real_f32`` one of another float.
    """
    for name, read in (*_INTEGERS.items(), *_FLOATS.items()):
        code = Code(module, f"read:{name}", 2)
        code.store(read(code, code.arguments[0]), code.arguments[1])
        code.done()
    with handler(module, "int_integer") as (code, entry, value, frame):
        place(code, entry, frame, _python_integer(code, entry, value))
    with handler(module, "integer") as (code, entry, value, frame):
        place(code, entry, frame, _within(code, entry, _read(code, entry, value, WORD)))
    for kind in KINDS:
        with handler(module, f"whole_{kind}") as (code, entry, value, frame):
            whole = _within(code, entry, _read(code, entry, value, WORD))
            place(code, entry, frame, _NARROWED[kind](code, code.ir.sitofp(whole, DOUBLE)))
        with handler(module, f"real_{kind}") as (code, entry, value, frame):
            place(code, entry, frame, _NARROWED[kind](code, _read(code, entry, value, DOUBLE)))
    for kind, bits in PAIRS.items():
        with handler(module, f"pair_{kind}") as (code, entry, value, frame):
            place(code, entry, frame, _pair(code, value, kind, bits))
    with handler(module, "bits") as (code, entry, value, frame):
        place(code, entry, frame, code.load(value, OBJECT))
    with handler(module, "constant") as (code, entry, value, _):
        equal = code.call("PyObject_RichCompareBool", value, code.get(entry, Argument.object), WORD(2), result=INT)
        code.require(code.is_(equal, INT(1)))
    with handler(module, "python") as (code, entry, value, frame):
        _packed_by_python(code, entry, value, frame)
    with handler(module, "tensor_map") as (code, entry, value, frame):
        _tensor_map(code, entry, value, frame)


# ---------------------------------------------------------------------------------------------------------------------
# What comes


def _read(code: Code, entry: Any, value: Any, kind: Any) -> Any:
    number = code.room(8)
    taken = code.call_address(code.get(entry, Argument.reader), value, number)
    code.require(code.is_(taken, INT(1)))
    return code.load(number, 0, kind)


def _within(code: Code, entry: Any, number: Any) -> Any:
    code.require(code.ir.icmp_signed(">=", number, code.get(entry, Argument.low)))
    code.require(code.ir.icmp_signed("<=", number, code.get(entry, Argument.high)))
    return number


def _int(code: Code, value: Any) -> Any:
    number = code.call("PyLong_AsLongLong", value)
    code.require_valid(number)
    return number


def _python_integer(code: Code, entry: Any, value: Any) -> Any:
    """An int within the bounds, which may lie on both sides of 2**63."""
    overflow = code.room(8)
    number = code.call("PyLong_AsLongLongAndOverflow", value, overflow)
    beyond = code.load(overflow, 0, INT)
    large = code.function.append_basic_block()
    small = code.function.append_basic_block()
    after = code.function.append_basic_block()
    code.ir.cbranch(code.is_(beyond, INT(0)), small, large)
    code.ir.position_at_end(small)
    _within(code, entry, number)
    last = code.ir.block
    code.ir.branch(after)
    code.ir.position_at_end(large)
    code.require(code.ir.icmp_signed(">", beyond, INT(0)))
    code.require_given(code.get(entry, Argument.wide))
    unsigned = code.call("PyLong_AsUnsignedLongLong", value)
    code.require_valid(unsigned)
    wide = code.ir.block
    code.ir.branch(after)
    code.ir.position_at_end(after)
    found = code.ir.phi(WORD)
    found.add_incoming(number, last)
    found.add_incoming(unsigned, wide)
    return found


def _float(code: Code, value: Any) -> Any:
    return code.call("PyFloat_AsDouble", value, result=DOUBLE)


def _signed(bits: int) -> Reader:
    def read(code: Code, value: Any) -> Any:
        number = code.load(value, OBJECT, ir.IntType(bits))
        return number if bits == 64 else code.ir.sext(number, WORD)

    return read


def _unsigned(bits: int) -> Reader:
    def read(code: Code, value: Any) -> Any:
        number = code.load(value, OBJECT, ir.IntType(bits))
        if bits < 64:
            return code.ir.zext(number, WORD)
        code.require(code.ir.icmp_signed(">=", number, WORD(0)))
        return number

    return read


def _numpy_float32(code: Code, value: Any) -> Any:
    return code.ir.fpext(code.load(value, OBJECT, FLOAT), DOUBLE)


def _numpy_float64(code: Code, value: Any) -> Any:
    return code.load(value, OBJECT, DOUBLE)


_INTEGERS: dict[str, Reader] = {
    "int": _int, **{f"int{bits}": _signed(bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": _unsigned(bits) for bits in (8, 16, 32, 64)},
}
"""What whole numbers come as; those of numpy by its names."""
_FLOATS: dict[str, Reader] = {"float": _float, "float32": _numpy_float32, "float64": _numpy_float64}


def _pair(code: Code, value: Any, kind: str, bits: int) -> Any:
    """A tuple of two of Python's floats as one number."""
    code.require_same(code.call("PyTuple_Size", value), WORD(2))
    parts = []
    for index in range(2):
        item = code.call("PyTuple_GetItem", value, WORD(index))
        code.require_same(code.load(item, TYPE_OF_OBJECT), code.known("float"))
        narrow = _NARROWED[kind](code, _float(code, item))
        parts.append(narrow if narrow.type == WORD else code.ir.zext(code.ir.bitcast(narrow, INT), WORD))
    return code.ir.or_(parts[0], code.ir.shl(parts[1], WORD(bits)))


def _packed_by_python(code: Code, entry: Any, value: Any, frame: Any) -> None:
    """``object`` is a function that gives the bytes of all parameters of the argument, or None."""
    packed = code.call_object(code.get(entry, Argument.object), value)
    code.require_given(packed)
    data = code.call("PyBytes_AsString", packed)
    with code.ir.if_then(code.is_not(data, WORD(0))):  # of None there is none, which is an error
        _copy_bytes(code, entry, frame, data, code.call("PyBytes_Size", packed))
    code.release(packed)
    code.require_given(data)


def _copy_bytes(code: Code, entry: Any, frame: Any, data: Any, nbytes: Any) -> None:
    memory = code.ir.add(code.get(frame, Frame.memory), code.get(entry, Argument.offset))
    code.call("memcpy", memory, data, nbytes)


def _tensor_map(code: Code, entry: Any, value: Any, frame: Any) -> None:
    """``object`` has what `ASKED_OF_MAPS` must be where tiles are copied by the map; 0 where they are not."""
    asked = code.get(entry, Argument.object)
    with code.ir.if_then(code.is_not(asked, WORD(0))):
        for index, name in enumerate(ASKED_OF_MAPS):
            held = code.attribute(value, code.name(name))
            wanted = code.call("PyTuple_GetItem", asked, WORD(index))
            equal = code.call("PyObject_RichCompareBool", held, wanted, WORD(2), result=INT)
            code.release(held)
            code.require(code.is_(equal, INT(1)))
    seen = code.attribute(value, code.name("seen"))
    device = code.call("PyTuple_GetItem", seen, code.get(entry, Argument.low))
    ordinal = code.call("PyLong_AsUnsignedLongLong", device)
    code.release(seen)
    code.require_same(ordinal, code.get(entry, Argument.device))
    data = code.attribute(value, code.name("_data"))  # which the map keeps
    code.release(data)
    code.require_same(code.call("PyBytes_Size", data), code.get(entry, Argument.itemsize))
    _copy_bytes(code, entry, frame, code.call("PyBytes_AsString", data), code.get(entry, Argument.itemsize))


# ---------------------------------------------------------------------------------------------------------------------
# What it becomes


def _float32(code: Code, number: Any) -> Any:
    """The nearest one; refused if that is an infinity and the number was none."""
    narrow = code.ir.fptrunc(number, FLOAT)
    overflown = code.ir.and_(
        code.ir.fcmp_ordered("==", _size(code, narrow), FLOAT(_INFINITY)),
        code.ir.fcmp_ordered("!=", _size(code, number), DOUBLE(_INFINITY)),
    )
    code.require(code.ir.not_(overflown))
    return narrow


def _bfloat16(code: Code, number: Any) -> Any:
    """Rounded to a float32 and then again, as ml_dtypes does; only what is finite."""
    b = code.ir
    bits = b.zext(b.bitcast(_float32(code, number), INT), WORD)
    rounded = b.lshr(b.add(bits, b.add(WORD(0x7FFF), b.and_(b.lshr(bits, WORD(16)), WORD(1)))), WORD(16))
    code.require(b.icmp_unsigned("<", b.and_(rounded, WORD(0x7FFF)), WORD(0x7F80)))
    return rounded


def _float16(code: Code, number: Any) -> Any:
    """The nearest one, of two that are as near the even one; only what is finite.

    Of a normal number the bits are rounded where they stand. One that is less is added to a number whose last bit has
    the value of a float16's, which rounds it.
    """
    b = code.ir
    size = _size(code, number)
    code.require(b.fcmp_ordered("<", size, DOUBLE(65520.0)))
    bits, sign = b.bitcast(size, WORD), b.lshr(b.bitcast(number, WORD), WORD(63))
    last = b.and_(b.lshr(bits, WORD(42)), WORD(1))
    normal = b.sub(b.lshr(b.add(bits, b.add(WORD((1 << 41) - 1), last)), WORD(42)), WORD((1023 - 15) << 10))
    unit = DOUBLE(2.0**28)
    small = b.sub(b.bitcast(b.fadd(size, unit), WORD), b.bitcast(unit, WORD))
    half = b.select(b.fcmp_ordered("<", size, DOUBLE(2.0**-14)), small, normal)
    return b.or_(half, b.shl(sign, WORD(15)))


_INFINITY = float("inf")
_NARROWED: dict[str, Reader] = {
    "f16": _float16, "bf16": _bfloat16, "f32": _float32, "f64": lambda code, number: number,  # noqa: ARG005
}
"""A double in a type of PTX."""


def _size(code: Code, number: Any) -> Any:
    return code.ir.call(code.module.declare_intrinsic("llvm.fabs", [number.type]), [number])
