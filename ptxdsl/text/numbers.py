"""Constant expressions: PTX computes with numbers as C does, in 64 bits, signed unless a number says otherwise.

The manual (Constants, Summary of Constant Expression Evaluation Rules): ``U`` and ``.u64`` make a value unsigned, what
is unsigned spreads, `~` and `%` make it so, comparisons give a signed 0 or 1, and there are floats, which do not mix
with integers.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from ..types import ScalarType, encode, f32, f64
from .source import Source, Token, whole

__all__ = ["Number", "encoded", "expression", "literal"]

_EXACT = re.compile(r"0(?:[fF]([0-9a-fA-F]{8})|[dD]([0-9a-fA-F]{16}))$")
_FLOATING = re.compile(r"(?=\.?[0-9])[0-9]*(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$")
_MASK = (1 << 64) - 1
WARP_SIZE = 32


class Number(NamedTuple):
    """A constant, an int or a float; ``exact`` is the type of a 0f or 0d literal, of which ``value`` has the bits."""

    value: int | float
    unsigned: bool = False
    exact: ScalarType | None = None


def literal(text: str) -> Number | None:
    """The constant that one token is, or None."""
    if match := _EXACT.match(text):
        return Number(int(match[1] or match[2], 16), exact=f32 if match[1] else f64)
    if text == "WARP_SZ":
        return Number(WARP_SIZE)
    try:
        value = whole(text)
    except ValueError:
        return Number(float(text)) if _FLOATING.match(text) and math.isfinite(float(text)) else None
    return Number(value, text.endswith("U") or value >= 1 << 63)


def encoded(number: Number, kind: ScalarType) -> int:
    """The bits of a constant in an operand or element of type ``kind``.

    An integer that is too large keeps its lower bits, as ptxas has it, and a float in 64 untyped bits is an f64.
    Raises ValueError, with the reason, where a constant has no place there.
    """
    value, _, exact = number
    if exact is not None:
        return _encoded_bits(int(value), exact, kind)
    if kind.kind == "f":
        if isinstance(value, int):
            raise ValueError(f"the integer {value} is no {kind}; write {value}.0")
        return encode(value, kind)
    if isinstance(value, float):
        if str(kind) != "b64":
            raise ValueError(f"the float {value!r} is no {kind}")
        return encode(value, f64)
    if kind.kind == "p":
        return int(value != 0)
    if not -(1 << 63) <= value < 1 << max(64, kind.bits):
        raise ValueError(f"{value} does not fit in 64 bits")
    return value & (1 << kind.bits) - 1


def _encoded_bits(bits: int, exact: ScalarType, kind: ScalarType) -> int:
    if kind.kind == "f" and kind is not exact and kind in (f32, f64):
        if kind is f64:
            return encode(struct.unpack("<f", bits.to_bytes(4, "little"))[0], f64)
        return encode(struct.unpack("<d", bits.to_bytes(8, "little"))[0], f32)
    if kind is exact or (kind.kind == "b" and kind.bits == exact.bits):
        return bits
    raise ValueError(f"the {exact} {_hexadecimal(bits, exact)} is no {kind}")


def _hexadecimal(bits: int, exact: ScalarType) -> str:
    return f"0f{bits:08X}" if exact is f32 else f"0d{bits:016X}"


# ---------------------------------------------------------------------------------------------------------------------
# Expressions, by precedence climbing

_LEVELS = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "+": lambda a, b: a + b,
    "-": lambda a, b: a - b, "*": lambda a, b: a * b, "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}
_FLOAT: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else math.copysign(math.inf, a) * math.copysign(1.0, b) if a else math.nan,
}


def expression(source: Source, level: int = 0) -> Number:
    """The value of the constant expression that begins at the source's next token; the source goes past it."""
    left = _unary(source)
    while True:
        token = source.peek()
        if token.text == "?" and level == 0:
            source.next()
            source.nested(1, token.start)
            chosen = expression(source)
            source.expect(":", "the first alternative of `?`")
            other = expression(source)
            left = chosen if left.value else other
            source.nested(-1, token.start)
            continue
        binding = _LEVELS.get(token.text, 0)
        if binding <= level:
            return left
        source.next()
        left = _apply(source, token, left, expression(source, binding))


def _unary(source: Source) -> Number:
    token = source.next()
    if token.text in ("-", "+", "!", "~"):
        source.nested(1, token.start)
        value, unsigned, exact = operand = _unary(source)
        source.nested(-1, token.start)
        if token.text == "+":
            return operand
        if exact is not None or (isinstance(value, float) and token.text != "-"):
            source.fail(f"`{token.text}` does not apply to a float of this kind", token.start)
        if isinstance(value, float):
            return Number(-value)
        if token.text == "!":
            return Number(int(not value))
        return _wrap(-value, False)._replace(unsigned=unsigned) if token.text == "-" else _wrap(~value, True)
    if token.text == "(":
        source.nested(1, token.start)
        inner = _parenthesis(source)
        source.nested(-1, token.start)
        return inner
    number = literal(token.text)
    if number is None:
        source.fail(f"expected a number, not {source.quoted(token)}", token.start)
    return number


def _parenthesis(source: Source) -> Number:
    if source.peek().text in (".s64", ".u64"):
        unsigned = source.next().text == ".u64"
        source.expect(")", "the type of a cast")
        value = _unary(source).value
        return _wrap(int(value), unsigned)
    inner = expression(source)
    source.expect(")", "an expression in parentheses")
    return inner


def _apply(source: Source, sign: Token, left: Number, right: Number) -> Number:
    if left.exact is not None or right.exact is not None:
        source.fail(f"`{sign.text}` does not apply to a 0f or 0d number", sign.start)
    a, b = left.value, right.value
    if isinstance(a, float) or isinstance(b, float):
        if isinstance(a, int) or isinstance(b, int) or sign.text not in (*_FLOAT, *_COMPARE):
            source.fail(f"`{sign.text}` does not apply to {a} and {b}", sign.start)
        return Number(int(_COMPARE[sign.text](a, b))) if sign.text in _COMPARE else Number(_FLOAT[sign.text](a, b))
    if sign.text in ("&&", "||"):
        return Number(int(bool(a and b) if sign.text == "&&" else bool(a or b)))
    unsigned = left.unsigned if sign.text in ("<<", ">>") else left.unsigned or right.unsigned or sign.text == "%"
    if unsigned:
        a, b = a & _MASK, b & _MASK
    if sign.text in _COMPARE:
        return Number(int(_COMPARE[sign.text](a, b)))
    if sign.text in ("/", "%"):
        if b == 0:
            source.fail("a division by zero", sign.start)
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return _wrap(quotient if sign.text == "/" else a - quotient * b, unsigned)
    return _wrap(_BINARY[sign.text](a, b), unsigned)


def _wrap(value: int, unsigned: bool) -> Number:
    value &= _MASK
    return Number(value if unsigned or not value >> 63 else value - (1 << 64), unsigned)
