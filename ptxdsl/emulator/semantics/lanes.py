"""The values that the semantics compute with: one number for each lane of a warp.

Semantics are written once and run twice: over all 32 lanes where a value may differ between them, and once where the
whole warp is known to hold the same number. ``Lanes`` hides the difference: a value is ``<32 x iN>`` at width 32 and a
plain ``iN`` at width 1. ``Bits`` and ``Real`` wrap such a value with Python's operators, so that an instruction's
definition reads like the manual's pseudocode. They are thin: each operator appends one LLVM instruction.

No fast-math flag is ever set, and nothing here depends on the rounding mode of the host, which stays at nearest-even.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Union, overload

from llvmlite import ir

from .constants import Same, undefined, zeros

__all__ = ["Bits", "Lanes", "Real", "integer_range", "join"]

_FLOATS: dict[int, ir.Type] = {16: ir.HalfType(), 32: ir.FloatType(), 64: ir.DoubleType()}
_LETTER = {16: "f16", 32: "f32", 64: "f64"}


def integer_range(bits: int, signed: bool) -> tuple[int, int]:
    """The least and the greatest integer of so many bits."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


class Lanes:
    """An LLVM IR builder over ``width`` lanes: 32, or 1 for values that are the same in the whole warp.

    ``ir`` is the llvmlite builder. Values at the border to the engine are LLVM integers of the operand's width
    (``<32 x i32>`` for ``f32`` and ``u32`` alike, ``<32 x i1>`` for a predicate; scalars at width 1).
    """

    __slots__ = ("ir", "width")

    def __init__(self, builder: ir.IRBuilder, width: int) -> None:
        self.ir = builder
        self.width = width

    def type(self, element: ir.Type) -> ir.Type:
        """The type of one ``element`` for each lane."""
        return element if self.width == 1 else ir.VectorType(element, self.width)

    def integer(self, bits: int) -> ir.Type:
        """The type of an integer of ``bits`` for each lane."""
        return self.type(ir.IntType(bits))

    def real(self, bits: int) -> ir.Type:
        """The type of an IEEE number of 16, 32 or 64 bits for each lane."""
        return self.type(_FLOATS[bits])

    def splat(self, element: ir.Type, text: str) -> ir.Constant:
        """The same constant in each lane, written once: a list of 32 makes LLVM's parser slow."""
        if self.width == 1:
            return ir.FormattedConstant(element, text)
        return Same(element, text, self.width)

    def everywhere(self, one: Any) -> Any:
        """A number of LLVM in each lane."""
        if self.width == 1:
            return one
        none = undefined(ir.VectorType(one.type, self.width))
        first = self.ir.insert_element(none, one, ir.IntType(32)(0))
        value = self.ir.shuffle_vector(first, none, zeros(self.integer(32)))
        value.one = one
        return value

    def const(self, bits: int, number: int) -> ir.Constant:
        """The LLVM integer ``number``, taken modulo 2**bits, in each lane."""
        element = ir.IntType(bits)
        number &= (1 << bits) - 1
        return self.splat(element, ("true" if number else "false") if bits == 1 else str(number))

    def bits(self, bits: int, number: int) -> Bits:
        """The constant ``number`` as Bits."""
        return Bits(self, self.const(bits, number), bits)

    def number(self, bits: int, number: float) -> Real:
        """The constant ``number``, rounded to ``bits`` (32 or 64), as a Real."""
        if bits == 32:
            number = struct.unpack("<f", struct.pack("<f", number))[0]
        code = struct.unpack("<Q", struct.pack("<d", number))[0]
        return Real(self, self.splat(_FLOATS[bits], f"0x{code:016X}"), bits)

    def wrap(self, value: Any) -> Bits:
        """An LLVM integer value of the engine as Bits."""
        kind = value.type
        return Bits(self, value, (kind.element if isinstance(kind, ir.VectorType) else kind).width)

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        """A call of the LLVM intrinsic ``name`` (mangled suffix included)."""
        module = self.ir.module
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(result, [a.type for a in arguments]), name)
        return self.ir.call(function, arguments)

    def seldom(self, condition: Bits, repair: Callable[[], Any], value: Any) -> Any:
        """``value``, or what ``repair`` makes of it where the condition holds in a lane: a branch, for what is rare."""
        i1, builder = ir.IntType(1), self.ir
        some = condition.value
        if self.width > 1:
            word = ir.IntType(self.width)
            some = builder.icmp_unsigned("!=", builder.bitcast(some, word), word(0))
        some = self.call("llvm.expect.i1", i1, some, i1(0))
        before, rare = builder.block, builder.append_basic_block("rare")
        after = builder.append_basic_block("after")
        builder.cbranch(some, rare, after)
        builder.position_at_end(rare)
        repaired = repair()
        rare = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        either = builder.phi(value.type)
        either.add_incoming(value, before)
        either.add_incoming(repaired, rare)
        return either

    def suffix(self, element: str) -> str:
        """The mangled name of the type ``element`` (``i32``, ``f64``) in each lane: ``v32i32``."""
        return element if self.width == 1 else f"v{self.width}{element}"


Number = Union["Bits", int]


class Bits:
    """An integer of ``bits`` bits in each lane; with one bit, a predicate. Arithmetic wraps.

    Signedness is the operation's: ``>>`` shifts in zeros and ``sar`` the sign; comparisons take ``signed``.
    """

    __slots__ = ("b", "bits", "value")

    def __init__(self, b: Lanes, value: Any, bits: int) -> None:
        self.b = b
        self.value = value
        self.bits = bits

    def _of(self, other: Number) -> Any:
        return other.value if isinstance(other, Bits) else self.b.const(self.bits, other)

    def _same(self, value: Any) -> Bits:
        return Bits(self.b, value, self.bits)

    def __add__(self, other: Number) -> Bits:
        return self._same(self.b.ir.add(self.value, self._of(other)))

    def __sub__(self, other: Number) -> Bits:
        return self._same(self.b.ir.sub(self.value, self._of(other)))

    def __rsub__(self, other: int) -> Bits:
        return self._same(self.b.ir.sub(self._of(other), self.value))

    def __mul__(self, other: Number) -> Bits:
        return self._same(self.b.ir.mul(self.value, self._of(other)))

    def __and__(self, other: Number) -> Bits:
        return self._same(self.b.ir.and_(self.value, self._of(other)))

    def __or__(self, other: Number) -> Bits:
        return self._same(self.b.ir.or_(self.value, self._of(other)))

    def __xor__(self, other: Number) -> Bits:
        return self._same(self.b.ir.xor(self.value, self._of(other)))

    def __invert__(self) -> Bits:
        return self ^ -1

    def __neg__(self) -> Bits:
        return 0 - self

    def __lshift__(self, count: Number) -> Bits:
        """Counts of ``bits`` and more are undefined, here and in the other shifts: clamp first."""
        return self._same(self.b.ir.shl(self.value, self._of(count)))

    def __rshift__(self, count: Number) -> Bits:
        return self._same(self.b.ir.lshr(self.value, self._of(count)))

    def sar(self, count: Number) -> Bits:
        """Shift right, filling with the sign."""
        return self._same(self.b.ir.ashr(self.value, self._of(count)))

    def shr(self, count: Number, signed: bool) -> Bits:
        return self.sar(count) if signed else self >> count

    def once(self) -> Bits | None:
        """The number that was put in each lane, at width 1; None where lanes may differ."""
        one = getattr(self.value, "one", None)
        return None if one is None else Bits(Lanes(self.b.ir, 1), one, self.bits)

    def divide(self, other: Number, signed: bool) -> Bits:
        """Quotient, truncated; by zero it is undefined."""
        ir_ = self.b.ir
        return self._same((ir_.sdiv if signed else ir_.udiv)(self.value, self._of(other)))

    def compare(self, relation: str, other: Number, signed: bool = False) -> Bits:
        """``relation`` is ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``; the result is a predicate."""
        ir_ = self.b.ir
        compare = ir_.icmp_signed if signed else ir_.icmp_unsigned
        return Bits(self.b, compare(relation, self.value, self._of(other)), 1)

    def eq(self, other: Number) -> Bits:
        return self.compare("==", other)

    def ne(self, other: Number) -> Bits:
        return self.compare("!=", other)

    def lt(self, other: Number, signed: bool = False) -> Bits:
        return self.compare("<", other, signed)

    def le(self, other: Number, signed: bool = False) -> Bits:
        return self.compare("<=", other, signed)

    def gt(self, other: Number, signed: bool = False) -> Bits:
        return self.compare(">", other, signed)

    def ge(self, other: Number, signed: bool = False) -> Bits:
        return self.compare(">=", other, signed)

    def negative(self) -> Bits:
        """Whether the top bit is set."""
        return self.lt(0, signed=True)

    def zext(self, bits: int) -> Bits:
        return self if bits == self.bits else Bits(self.b, self.b.ir.zext(self.value, self.b.integer(bits)), bits)

    def sext(self, bits: int) -> Bits:
        return self if bits == self.bits else Bits(self.b, self.b.ir.sext(self.value, self.b.integer(bits)), bits)

    def extend(self, bits: int, signed: bool) -> Bits:
        return self.sext(bits) if signed else self.zext(bits)

    def trunc(self, bits: int) -> Bits:
        return self if bits == self.bits else Bits(self.b, self.b.ir.trunc(self.value, self.b.integer(bits)), bits)

    def resize(self, bits: int, signed: bool) -> Bits:
        """Extend or truncate to ``bits``."""
        return self.trunc(bits) if bits < self.bits else self.extend(bits, signed)

    def field(self, low: int, bits: int) -> Bits:
        """The ``bits`` bits from bit ``low`` on."""
        return (self >> low if low else self).trunc(bits)

    def parts(self, bits: int) -> list[Bits]:
        """The fields of ``bits`` bits that it packs, the lowest first."""
        return [self.field(low, bits) for low in range(0, self.bits, bits)]

    def unpack(self, count: int) -> Bits:
        """The ``count`` fields of each lane as ``count`` times as many lanes: no instruction, only a view."""
        if count == 1:
            return self
        b = Lanes(self.b.ir, self.b.width * count)
        return Bits(b, b.ir.bitcast(self.value, b.integer(self.bits // count)), self.bits // count)

    def pack(self, count: int) -> Bits:
        """The opposite of :meth:`unpack`."""
        if count == 1:
            return self
        b = Lanes(self.b.ir, self.b.width // count)
        return Bits(b, b.ir.bitcast(self.value, b.integer(self.bits * count)), self.bits * count)

    @overload
    def pick(self, yes: Bits, no: Number) -> Bits: ...
    @overload
    def pick(self, yes: int, no: Bits) -> Bits: ...
    @overload
    def pick(self, yes: Real, no: Real | float) -> Real: ...
    @overload
    def pick(self, yes: float, no: Real) -> Real: ...

    def pick(self, yes: Any, no: Any) -> Any:
        """``yes`` in the lanes where this predicate holds, ``no`` in the others; two of Bits or Real, or one an int."""
        like = yes if isinstance(yes, (Bits, Real)) else no
        value = self.b.ir.select(self.value, like._of(yes), like._of(no))
        return type(like)(self.b, value, like.bits)

    def call(self, name: str, *others: Number) -> Bits:
        """The LLVM intrinsic ``llvm.name`` on integers of this width."""
        b = self.b
        full = f"llvm.{name}.{b.suffix(f'i{self.bits}')}"
        return self._same(b.call(full, self.value.type, self.value, *(self._of(other) for other in others)))

    def min(self, other: Number, signed: bool = False) -> Bits:
        return self.call("smin" if signed else "umin", other)

    def max(self, other: Number, signed: bool = False) -> Bits:
        return self.call("smax" if signed else "umax", other)

    def clamp(self, bits: int, signed: bool) -> Bits:
        """This signed number, clamped to the range of an integer of ``bits``."""
        low, high = integer_range(bits, signed)
        return self.max(low, signed=True).min(high, signed=True)

    def popcount(self) -> Bits:
        return self.call("ctpop")

    def leading_zeros(self) -> Bits:
        """``bits`` for 0."""
        b = self.b
        return self._same(b.call(
            f"llvm.ctlz.{b.suffix(f'i{self.bits}')}", self.value.type, self.value, ir.Constant(ir.IntType(1), 0)
        ))

    def reals(self) -> Real:
        """The same bits read as IEEE numbers of this width."""
        return Real(self.b, self.b.ir.bitcast(self.value, self.b.real(self.bits)), self.bits)

    def to_real(self, bits: int, signed: bool) -> Real:
        """The nearest number of ``bits`` bits, ties to even."""
        ir_ = self.b.ir
        return Real(self.b, (ir_.sitofp if signed else ir_.uitofp)(self.value, self.b.real(bits)), bits)


def join(parts: list[Bits]) -> Bits:
    """The opposite of :meth:`Bits.parts`: the first is the lowest."""
    bits = sum(part.bits for part in parts)
    whole, at = parts[0].zext(bits), parts[0].bits
    for part in parts[1:]:
        whole = whole | (part.zext(bits) << at)
        at += part.bits
    return whole


class Real:
    """An IEEE number of 32 or 64 bits in each lane; operators round to nearest even, as the host does.

    The NaN that an operator returns is the host's: callers make it canonical.
    """

    __slots__ = ("b", "bits", "value")

    def __init__(self, b: Lanes, value: Any, bits: int) -> None:
        self.b = b
        self.value = value
        self.bits = bits

    def _of(self, other: Real | float) -> Any:
        return other.value if isinstance(other, Real) else self.b.number(self.bits, other).value

    def _same(self, value: Any) -> Real:
        return Real(self.b, value, self.bits)

    def everywhere(self, lanes: Lanes) -> Real:
        """A number of width 1 in each of some lanes."""
        return Real(lanes, lanes.everywhere(self.value), self.bits)

    def __add__(self, other: Real | float) -> Real:
        return self._same(self.b.ir.fadd(self.value, self._of(other)))

    def __sub__(self, other: Real | float) -> Real:
        return self._same(self.b.ir.fsub(self.value, self._of(other)))

    def __rsub__(self, other: float) -> Real:
        return self._same(self.b.ir.fsub(self._of(other), self.value))

    def __mul__(self, other: Real | float) -> Real:
        return self._same(self.b.ir.fmul(self.value, self._of(other)))

    def __truediv__(self, other: Real | float) -> Real:
        return self._same(self.b.ir.fdiv(self.value, self._of(other)))

    def __rtruediv__(self, other: float) -> Real:
        return self._same(self.b.ir.fdiv(self._of(other), self.value))

    def __neg__(self) -> Real:
        return self._same(self.b.ir.fneg(self.value))

    def call(self, name: str, *others: Real | float) -> Real:
        """The LLVM intrinsic ``llvm.name`` on numbers of this width."""
        b = self.b
        full = f"llvm.{name}.{b.suffix(_LETTER[self.bits])}"
        return self._same(b.call(full, self.value.type, self.value, *(self._of(other) for other in others)))

    def library(self, name: str) -> Real:
        """A function of C's library, lane by lane: of f64, and slow."""
        ir_, double, i32 = self.b.ir, _FLOATS[64], ir.IntType(32)
        function = ir_.module.globals.get(name) or ir.Function(ir_.module, ir.FunctionType(double, [double]), name)
        if self.b.width == 1:
            return self._same(ir_.call(function, [self.value]))
        found = undefined(self.value.type)
        for lane in range(self.b.width):
            one = ir_.call(function, [ir_.extract_element(self.value, i32(lane))])
            found = ir_.insert_element(found, one, i32(lane))
        return self._same(found)

    def __abs__(self) -> Real:
        return self.call("fabs")

    def fma(self, factor: Real | float, addend: Real | float) -> Real:
        """``self * factor + addend``, rounded once."""
        return self.call("fma", factor, addend)

    def sqrt(self) -> Real:
        return self.call("sqrt")

    def integral(self, mode: str) -> Real:
        """Rounded to an integer: ``rni`` nearest even, ``rzi`` to zero, ``rmi`` down, ``rpi`` up."""
        return self.call({"rni": "roundeven", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode])

    def compare(self, relation: str, other: Real | float, ordered: bool = True) -> Bits:
        """``relation`` as in :meth:`Bits.compare`; with a NaN an ordered comparison is false, an unordered one true."""
        ir_ = self.b.ir
        compare = ir_.fcmp_ordered if ordered else ir_.fcmp_unordered
        return Bits(self.b, compare(relation, self.value, self._of(other)), 1)

    def isnan(self) -> Bits:
        return Bits(self.b, self.b.ir.fcmp_unordered("uno", self.value, self.value), 1)

    def to_bits(self) -> Bits:
        """Its representation."""
        return Bits(self.b, self.b.ir.bitcast(self.value, self.b.integer(self.bits)), self.bits)

    def to(self, bits: int) -> Real:
        """Widened exactly or rounded to nearest even."""
        if bits == self.bits:
            return self
        ir_ = self.b.ir
        return Real(self.b, (ir_.fpext if bits > self.bits else ir_.fptrunc)(self.value, self.b.real(bits)), bits)

    def to_int(self, bits: int, signed: bool) -> Bits:
        """Truncated and clamped to an integer of ``bits``; NaN gives 0.

        A range that this type holds exactly is clamped before, another one after the conversion. LLVM's saturating
        conversion means the same but goes lane by lane.
        """
        low, high = integer_range(bits, signed)
        if bits < (24 if self.bits == 32 else 53):
            inside = self.compare(">", float(low)).pick(self, float(low))
            inside = inside.compare("<", float(high)).pick(inside, float(high))
            whole = inside._convert(max(bits, 32), signed).trunc(bits)
            return whole if low == 0 else self.isnan().pick(0, whole)
        whole = self.compare(">=", float(high + 1)).pick(high, self._convert(bits, signed))
        if low == 0:
            return self.compare(">", 0.0).pick(whole, 0)
        return self.isnan().pick(0, self.compare(">=", float(low)).pick(whole, low))

    def _convert(self, bits: int, signed: bool) -> Bits:
        """As to_int, undefined beyond the range: a lane's such value must not be picked."""
        ir_ = self.b.ir
        return Bits(self.b, (ir_.fptosi if signed else ir_.fptoui)(self.value, self.b.integer(bits)), bits)
