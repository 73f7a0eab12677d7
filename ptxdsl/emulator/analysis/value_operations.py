"""What instructions make of values that are known before a launch: sums exactly, of the rest what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np

from ...isa import Form
from ...types import ScalarType
from ..machine.layout import CLUSTER_ORIGIN, Cluster
from .linear_values import (
    EXACT, Part, Value, constant, flat, is_exact, joined, number_of, of_threads, plus, times, unknown,
)
from .thread_arithmetic import OPERATIONS, bits_of

__all__ = ["computed", "numbers"]

_UNLIKE = frozenset(("sat", "cc", "hi"))
"""Modifiers of sums and products that are none."""
_SHIFTS = ("shl", "shr")


def computed(form: Form, kind: ScalarType, given: Sequence[Value], out: int, threads: int) -> Value:
    """The result of an integer instruction that only computes, in a register of ``out`` bits."""
    opcode, tokens, width, signed = form.opcode, form.tokens, kind.bits, kind.kind == "s"
    count = len(given)
    if opcode in ("mov", "cvta") and count == 1:
        return given[0]
    if opcode == "mapa" and count == 2 and given[0].origin:
        return _of_any_block(given[0])
    if opcode == "cvt" and count == 1:
        return _converted(given[0], tokens)
    if opcode in ("add", "sub") and count == 2 and _UNLIKE.isdisjoint(tokens):
        if opcode == "add":
            return plus(given[0], given[1], width)
        return unknown(64) if given[1].origin else plus(given[0], times(given[1], -1, width), width)
    if opcode in ("mul", "mad") and count == 2 + (opcode == "mad") and _UNLIKE.isdisjoint(tokens):
        wide = "wide" in tokens
        a, b = (_widened(each, width, signed) if wide else each for each in given[:2])
        product = _product(a, b, out if wide else width, threads)
        return product if opcode == "mul" else plus(product, given[2], out if wide else width)
    if opcode in ("neg", "not") and count == 1:
        opposite = times(given[0], -1, width)
        return opposite if opcode == "neg" else plus(opposite, constant(-1), width)
    if opcode == "selp" and count == 3:
        return joined(given[0], given[1], width)
    if opcode in OPERATIONS and count == 2 and opcode != "mul":
        return _bitwise(opcode, given[0], given[1], kind, threads)
    return _below(max(width, out))


def numbers(value: Value, width: int, signed: bool, threads: int) -> Any:
    """The register's number in each thread; None where that is not known."""
    whole = flat(value)
    if value.origin or whole.block != (0, 0, 0) or whole.step or whole.symbols or value.bits < width:
        return None
    found = np.full(threads, whole.const, np.int64) if whole.vector is None else whole.vector + whole.const
    return bits_of(found, width, signed)


def _below(width: int) -> Value:
    """Any number of so many bits."""
    return unknown(64, high=(1 << width) - 1 if width < 64 else None)


def _is_anything(whole: Part) -> bool:
    """Whether nothing is known of a number but its width."""
    return whole.step == 1 and whole.vector is None and whole.block == (0, 0, 0) and not whole.symbols


def _of_any_block(value: Value) -> Value:
    """The address of the same in the shared memory of some block of the cluster."""
    whole, origin = flat(value), CLUSTER_ORIGIN + value.origin.removeprefix(CLUSTER_ORIGIN)
    low, high = whole.low, whole.high
    inside = low is not None and high is not None and low >= 0 and high < 1 << Cluster.RANK_BITS
    bits = EXACT if inside and value.bits >= 32 else value.bits  # shared addresses are numbers of 32 bits
    return value._replace(bits=bits, origin=origin)


def _converted(value: Value, tokens: Sequence[str]) -> Value:
    types = [token for token in tokens if token[0] in "us" and token[1:].isdigit()]
    if len(types) != 2 or len(tokens) != 2:
        return unknown(64)
    (to_signed, to), (signed, source) = ((token[0] == "s", int(token[1:])) for token in types)
    if to > source:
        return _widened(value, source, signed)
    if to < 32:
        return unknown(64) if is_exact(value, to, to_signed) is None else value
    return value._replace(bits=min(value.bits, to)) if to < source else value


def _product(a: Value, b: Value, width: int, threads: int) -> Value:
    for left, right in ((a, b), (b, a)):
        number = number_of(right)
        if number is not None and right.bits >= width:
            return times(left, number, width)
    x, y = numbers(a, 32, False, threads), numbers(b, 32, False, threads)
    exact = is_exact(a, 32, False) is not None and is_exact(b, 32, False) is not None
    if exact and x is not None and y is not None and max(x.max(), y.max()) < 1 << 30:
        return of_threads(x * y)._replace(bits=width)
    return unknown(64)


def _bitwise(opcode: str, a: Value, b: Value, kind: ScalarType, threads: int) -> Value:
    """An operation on bits, a quotient, a shift."""
    width, signed = kind.bits, kind.kind == "s"
    if width <= 32:
        shift = opcode in _SHIFTS
        x = numbers(a, width, signed, threads)
        y = numbers(b, 32 if shift else width, signed and not shift, threads)
        if x is not None and y is not None and (opcode not in ("div", "rem") or y.all()):
            return of_threads(bits_of(OPERATIONS[opcode](x, y), width, signed))
    if opcode in ("and", "or", "xor") and number_of(b) is None:
        a, b = b, a
    number = number_of(b)
    if opcode == "shl" and number is not None and 0 <= number < width:
        return times(a, 1 << number, width)
    if a.origin or b.origin:
        return unknown(64)
    if opcode in ("or", "xor"):
        apart = _apart(a, b, width) or _apart(b, a, width)
        return plus(a, b, width) if apart else _below(width)
    found = None
    if number is not None and opcode == "and":
        found = _masked(a, number & ((1 << width) - 1), width)
    elif number is not None and number > 0:
        found = _divided(opcode, a, number, width, signed)
    return found or _bounded(opcode, a, b, width, signed)


def _divided(opcode: str, a: Value, number: int, width: int, signed: bool) -> Value | None:
    """What a shift to the right or a division by a power of two leaves; None of what is none of these."""
    natural = is_exact(a, width, False) is not None and (not signed or is_exact(a, width, True) is not None)
    if opcode == "rem" and not number & (number - 1) and natural:
        return _low_bits(a, number.bit_length() - 1, width)
    if opcode == "div" and not number & (number - 1) and natural:
        return _shifted(a, number.bit_length() - 1)
    return _shifted(a, number) if opcode == "shr" and number < width and natural else None


def _masked(a: Value, mask: int, width: int) -> Value | None:
    """The bits of a mask that is one run of ones; None of others."""
    if not mask:
        return constant(0)
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length()
    if mask != (1 << high) - (1 << low):
        return None
    upper = a if high >= width else _low_bits(a, high, width)
    if not low:
        return upper
    found = plus(upper, times(_low_bits(a, low, width), -1, width), width)
    known, whole = is_exact(upper, width, False), flat(found)
    if known is None or whole.low is None or whole.symbols:
        return found
    return found._replace(parts={None: whole._replace(low=max(0, whole.low), high=known[1])})


def _bounded(opcode: str, a: Value, b: Value, width: int, signed: bool) -> Value:
    """Any number between the bounds that follow from the operands'."""
    x, y = is_exact(a, width, False), is_exact(b, width, False)
    top = (1 << width) - 1
    if signed and (x is None or y is None or max(x[1], y[1]) >> (width - 1)):
        return unknown(64, high=top)
    ends = {"min": [x, y], "and": [x, y], "div": [x], "shr": [x], "rem": [x, y]}.get(opcode, [])
    most = min([end[1] for end in ends if end is not None], default=top)
    if opcode == "max" and x is not None and y is not None:
        most = max(x[1], y[1])
    return unknown(64, high=most)


def _widened(value: Value, width: int, signed: bool) -> Value:
    """A number of so many bits in a wider register."""
    if is_exact(value, width, signed) is not None:
        return value._replace(bits=EXACT)
    if not value.origin and _is_anything(flat(value)):
        low, high = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        return Value({None: Part(step=1, low=low, high=high)})
    return value._replace(bits=min(value.bits, width))


def _multiple(value: Value) -> int:
    """A power of two that a number is a multiple of, in each thread and block; a large one of zero."""
    whole, found = flat(value), 0
    if whole.symbols:
        return 1
    for number in (whole.const, whole.step, *whole.block):
        found = gcd(found, number)
    if whole.vector is not None:
        found = gcd(found, int(np.gcd.reduce(whole.vector)))
    found = (found & -found) if found else 1 << 62
    return min(found, 1 << value.bits)


def _apart(a: Value, b: Value, width: int) -> bool:
    """Whether no bit is set in both: one is a multiple of a power of two that the other is below."""
    known = is_exact(b, width, False)
    return known is not None and _multiple(a) > known[1]


def _low_bits(a: Value, count: int, width: int) -> Value:
    """The number modulo 2^count."""
    whole = flat(a)
    known = is_exact(a, width, False)
    if known is not None and known[1] < 1 << count:
        return a
    if a.bits < count or whole.symbols:
        return unknown(64, high=(1 << count) - 1)
    least = 1 << count
    vector = None if whole.vector is None else (whole.vector + whole.const) % least
    const = whole.const % least if vector is None else 0
    block = tuple(0 if each % least == 0 else each for each in whole.block)
    step = gcd(whole.step, least)
    if step == least and block == (0, 0, 0):  # nothing unknown is left
        return of_threads(vector) if vector is not None else constant(const)
    return Value({None: Part(const, vector, block, step, 0, least - 1, (), least)})  # type: ignore[arg-type]


def _shifted(a: Value, count: int) -> Value:
    """A number that is its integer and not negative, divided by 2^count."""
    whole, unit = flat(a), 1 << count
    known = (whole.low or 0) >> count, (whole.high or 0) >> count
    if known[0] == known[1]:
        return constant(known[0])
    if whole.symbols or whole.step % unit or any(each % unit for each in whole.block):
        return unknown(64, high=known[1])
    vector = None if whole.vector is None else (whole.vector + whole.const) >> count
    const = whole.const >> count if vector is None else 0
    x, y, z = whole.block
    block = x >> count, y >> count, z >> count
    return Value({None: Part(const, vector, block, whole.step >> count, *known, (), whole.extent)})
