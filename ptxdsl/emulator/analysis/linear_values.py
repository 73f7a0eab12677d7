"""Numbers of all threads of a launch as sums of known terms, and the arithmetic of such sums.

A :class:`Value` is congruent to an integer modulo 2^``bits``, the sum of its parts. A :class:`Part` is a number for
each thread of the block, a multiple of each coordinate of the block (``%ctaid``), and unknown multiples of ``step``,
which are any in each thread and at each time: what a loop adds, what memory holds. So nothing is wrong where registers
wrap around: a congruence survives it. Whether a number is its integer itself follows from ``low`` and ``high``, which
bound the integer, and only widening, comparing and dividing ask for it. Parts are kept apart where a comparison has
bounded one of them: ``row * n + column`` with ``column < n`` gives each row bytes of its own.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import gcd
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "EXACT", "NO_BLOCK", "Part", "Value", "clamped", "constant", "flat", "is_exact", "joined", "negated", "number_of",
    "of_threads", "plus", "summed", "times", "unknown",
]

EXACT = 128
"""Bits of what is the integer itself."""
NO_BLOCK = (0, 0, 0)
_LARGE = 1 << 60
Threads = Any
"""A vector of int64, one number a thread, or None for zeros."""


class Part(NamedTuple):
    """``const + vector[thread] + sum(block * %ctaid) + step * (any integer)``, from ``low`` to ``high``.

    ``symbols``: the induction variables that are being worked out, with their coefficients. ``extent``: no number of
    const and vector together is larger.
    """

    const: int = 0
    vector: Threads = None
    block: tuple[int, int, int] = NO_BLOCK
    step: int = 0
    low: int | None = 0
    high: int | None = 0
    symbols: tuple[tuple[Hashable, int], ...] = ()
    extent: int = 0


class Value(NamedTuple):
    """Parts by what bounded them (None for the others), and the name of the array that it is an address in."""

    parts: dict[Hashable, Part]
    bits: int = EXACT
    origin: str = ""


def constant(number: int, width: int = 0) -> Value:
    """An integer; one of ``width`` bits whose highest is set stands for the negative number as well."""
    bits = EXACT
    if width and number >> (width - 1):
        number, bits = number - (1 << width), width
    if abs(number) >= _LARGE:
        return unknown(64)
    return Value({None: Part(number, low=number, high=number, extent=abs(number))}, bits)


def of_threads(numbers: Threads) -> Value:
    """A number for each thread, of at most 62 bits."""
    low, high = int(numbers.min()), int(numbers.max())
    if low == high:
        return constant(low)
    return Value({None: Part(0, numbers, low=low, high=high, extent=max(abs(low), abs(high)))})


def unknown(width: int, origin: str = "", high: int | None = None) -> Value:
    """Any number of so many bits."""
    if high == 0 and not origin:
        return constant(0)
    return Value({None: Part(step=1, low=0, high=(1 << width) - 1 if high is None else high)}, EXACT, origin)


def summed(a: Part, b: Part) -> Part:
    """Two parts as one."""
    vector = a.vector if b.vector is None else b.vector if a.vector is None else a.vector + b.vector
    low = None if a.low is None or b.low is None else a.low + b.low
    high = None if a.high is None or b.high is None else a.high + b.high
    block = a.block if b.block is NO_BLOCK else (
        a.block[0] + b.block[0], a.block[1] + b.block[1], a.block[2] + b.block[2]
    )
    symbols = a.symbols
    if b.symbols:
        found = dict(a.symbols)
        for name, coefficient in b.symbols:
            found[name] = found.get(name, 0) + coefficient
        symbols = tuple((name, coefficient) for name, coefficient in found.items() if coefficient)
    return Part(a.const + b.const, vector, block, gcd(a.step, b.step), low, high, symbols, a.extent + b.extent)


def plus(a: Value, b: Value, width: int) -> Value:
    """The sum, in a register of so many bits."""
    if a.origin and b.origin:
        return unknown(width)
    parts = dict(a.parts)
    for key, part in b.parts.items():
        parts[key] = summed(parts[key], part) if key in parts else part
    origin = a.origin or b.origin
    if sum(part.extent for part in parts.values()) >= _LARGE:
        return unknown(64, origin)
    return Value(parts, min(a.bits, b.bits, width), origin)


def times(a: Value, factor: int, width: int) -> Value:
    """The product with a number."""
    if factor == 0:
        return constant(0)
    if a.origin:
        return unknown(width) if factor != 1 else a
    if sum(part.extent for part in a.parts.values()) * abs(factor) >= _LARGE:
        return unknown(64)
    zeros = (factor & -factor).bit_length() - 1
    parts: dict[Hashable, Part] = {}
    for key, p in a.parts.items():
        vector = None if p.vector is None else p.vector * factor
        ends = [None if end is None else end * factor for end in (p.low, p.high)]
        if factor < 0:
            ends.reverse()
        x, y, z = p.block
        place = key if key is None else (key, factor)
        part = Part(
            p.const * factor, vector, (x * factor, y * factor, z * factor) if p.block is not NO_BLOCK else NO_BLOCK,
            abs(p.step * factor), ends[0], ends[1], tuple((name, k * factor) for name, k in p.symbols),
            p.extent * abs(factor),
        )
        parts[place] = summed(parts[place], part) if place in parts else part
    return Value(parts, min(a.bits + zeros, width), "")


def negated(a: Value, width: int) -> Value:
    return times(a, -1, width)


def flat(a: Value) -> Part:
    """All parts as one."""
    parts = list(a.parts.values())
    result = parts[0]
    for part in parts[1:]:
        result = summed(result, part)
    return result


def is_exact(a: Value, width: int, signed: bool) -> tuple[int, int] | None:
    """The bounds of a register's number, read as signed or not, where it is the integer; None where it may not be."""
    if a.bits < width or a.origin:
        return None
    whole = flat(a) if len(a.parts) > 1 else next(iter(a.parts.values()))
    low, high = whole.low, whole.high
    least, most = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    return (low, high) if low is not None and high is not None and least <= low and high <= most else None


def number_of(a: Value) -> int | None:
    """The integer that all threads have."""
    whole = flat(a)
    plain = whole.vector is None and whole.block == NO_BLOCK and not whole.step and not whole.symbols and not a.origin
    return whole.const if plain else None


def clamped(a: Value, key: Hashable, width: int, signed: bool, low: int, high: int) -> Value:
    """The number, known to be from low to high when it is read as signed or not."""
    if a.origin:
        return a
    whole = flat(a)
    if whole.symbols:  # of induction variables only an upper end is asked for, and those are below 2^(width - 2)
        small = abs(whole.const) < 1 << width - 2
        return Value({None: whole._replace(low=None, high=high)}, a.bits) if small else a
    known = is_exact(a, width, signed)
    if known is not None:
        low, high = max(low, known[0]), min(high, known[1])
        if low > high:
            return a
        return Value({key: whole._replace(low=low, high=high)}, a.bits)
    step = gcd(whole.step, 1 << min(a.bits, width))
    return Value({key: whole._replace(step=step, low=low, high=high)}, width if signed else EXACT)


def joined(a: Value, b: Value, width: int) -> Value:
    """What is one or the other."""
    if a is b:
        return a
    x, y = flat(a), flat(b)
    if a.origin != b.origin:
        return unknown(width)
    same = x.block == y.block and x.symbols == y.symbols and (
        x.vector is y.vector or (x.vector is not None and y.vector is not None and np.array_equal(x.vector, y.vector))
    )
    if not same:
        return unknown(width, a.origin)
    low = None if x.low is None or y.low is None else min(x.low, y.low)
    high = None if x.high is None or y.high is None else max(x.high, y.high)
    step = gcd(gcd(x.step, y.step), x.const - y.const)
    whole = x._replace(step=step, low=low, high=high, extent=max(x.extent, y.extent))
    return Value({None: whole}, min(a.bits, b.bits), a.origin)
