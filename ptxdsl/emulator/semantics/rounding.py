"""Arithmetic that is exact in every rounding direction on a host that only rounds to nearest.

For results of f32 and narrower the operation is done in a wider type *rounded to odd*: where it is inexact the last
bit is set, so that rounding once more, in any direction, gives what rounding the exact value would have. For f64 there
is no wider type: the result to nearest is moved one step where the sign of its error, found exactly, says so.
"""

from __future__ import annotations

from .lanes import Bits, Real

__all__ = ["directed_f64", "odd"]


def two_sum(a: Real, b: Real) -> tuple[Real, Real]:
    """The sum to nearest and its error, exactly (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _to_odd(nearest: Real, error: Real) -> Real:
    """Of the neighbours of an inexact value the one with an odd last bit; ``error`` has the sign of value - nearest."""
    bits = nearest.to_bits()
    outwards = (bits ^ error.to_bits()).negative()
    one = bits.b.bits(bits.bits, 1)
    move = (error.compare("!=", 0.0) & (bits & 1).eq(0)).pick(outwards.pick(-1, one), 0)
    return (bits + move).reals()


def _zero_down(total: Real, a: Real, b: Real) -> Real:
    """Rounding down, x + -x is -0."""
    signs = ((a.to_bits() | b.to_bits()) >> (total.bits - 1)) << (total.bits - 1)
    return total.compare("==", 0.0).pick(signs.reals(), total)


def odd(operation: str, values: list[Real], mode: str = "rn") -> Real:
    """``add``, ``mul``, ``fma``, ``div`` or ``sqrt`` rounded to odd.

    The values must have come from a type of less than half the bits, so that products are exact. ``mode`` is the
    direction of the rounding to come: it decides the sign of a zero.
    """
    if operation == "mul":
        return values[0] * values[1]
    if operation in ("add", "fma"):
        a, b = values if operation == "add" else (values[0] * values[1], values[2])
        total, error = two_sum(a, b)
        return _zero_down(_to_odd(total, error), a, b) if mode == "rm" else _to_odd(total, error)
    if operation == "div":
        a, b = values
        quotient = a / b
        error = (-quotient).fma(b, a)
        return _to_odd(quotient, (error.to_bits() ^ _sign(b)).reals())
    root = values[0].sqrt()
    return _to_odd(root, (-root).fma(root, values[0]))


def _sign(value: Real) -> Bits:
    """The sign, in its place."""
    return value.to_bits() & (1 << (value.bits - 1))


# ---------------------------------------------------------------------------------------------------------------------
# f64


def directed_f64(operation: str, values: list[Real], mode: str) -> Real:
    """``add``, ``mul``, ``fma``, ``div`` or ``sqrt`` of f64, rounded ``rz``, ``rm`` or ``rp``."""
    nearest, error = _NEAREST_AND_ERROR[operation](values)
    finite = _all_finite(values)
    overflow = finite & _infinite(nearest)
    if operation == "div":
        overflow = overflow & values[1].compare("!=", 0.0)
    error = overflow.pick(-nearest, error)
    known = overflow | (finite & ~_infinite(nearest))
    moved = _step(nearest, known & error.compare("<", 0.0), known & error.compare(">", 0.0), mode)
    if mode == "rm" and operation in ("add", "fma"):
        a, b = values if operation == "add" else ((values[0].to_bits() ^ values[1].to_bits()).reals(), values[2])
        return error.compare("==", 0.0).pick(_zero_down(moved, a, b), moved)
    return moved


def _step(nearest: Real, below: Bits, above: Bits, mode: str) -> Real:
    """The neighbour of ``nearest`` that the mode wants where the exact value lies below or above it."""
    bits = nearest.to_bits()
    negative = bits.negative()
    inwards = {"rz": (below & ~negative) | (above & negative), "rm": below & ~negative, "rp": above & negative}[mode]
    outwards = {"rz": None, "rm": below & negative, "rp": above & ~negative}[mode]
    moved = bits + inwards.sext(64)
    return (moved if outwards is None else moved + outwards.zext(64)).reals()


def _infinite(value: Real) -> Bits:
    return abs(value).compare("==", float("inf"))


def _all_finite(values: list[Real]) -> Bits:
    finite = abs(values[0]).compare("<", float("inf"))
    for value in values[1:]:
        finite = finite & abs(value).compare("<", float("inf"))
    return finite


def _scaled(value: Real) -> tuple[Real, Bits]:
    """``m`` in [1, 2), with the sign, and ``e`` such that value = m * 2**e; anything for 0, infinity and NaN."""
    tiny = abs(value).compare("<", 2.0**-1022)
    bits = tiny.pick(value * 2.0**54, value).to_bits()
    exponent = ((bits >> 52) & 0x7FF) - tiny.pick(bits.b.bits(64, 1023 + 54), 1023)
    return ((bits & 0x800FFFFFFFFFFFFF) | 0x3FF0000000000000).reals(), exponent


def _power(exponent: Bits) -> Real:
    """2**exponent, the exponent clamped: what is so far from the other numbers only matters by its sign."""
    return ((exponent.max(-400, signed=True).min(400, signed=True) + 1023) << 52).reals()


def _sign_of_sum(terms: list[Real]) -> Real:
    """A number with the sign of the exact sum; the first two terms must not overlap, the smaller first (Shewchuk)."""
    parts = terms[:2]
    for term in terms[2:]:
        grown, carried = [], term
        for part in parts:
            carried, low = two_sum(carried, part)
            grown.append(low)
        parts = [*grown, carried]
    total = parts[-1]
    for part in reversed(parts[:-1]):
        total = total.compare("==", 0.0).pick(part, total)
    return total


def _add(values: list[Real]) -> tuple[Real, Real]:
    return two_sum(*values)


def _fma(values: list[Real]) -> tuple[Real, Real]:
    a, b, c = values
    return _fused(a, b, c, a.fma(b, c))


def _mul(values: list[Real]) -> tuple[Real, Real]:
    a, b = values
    return _fused(a, b, a.b.number(64, 0.0), a * b)


def _fused(a: Real, b: Real, c: Real, nearest: Real) -> tuple[Real, Real]:
    """With a * b + c to nearest the sign of its error, everything scaled so that nothing over- or underflows."""
    (ma, ea), (mb, eb), (mc, ec), (mr, er) = map(_scaled, (a, b, c, nearest))
    product = ea + eb
    lone = c.compare("==", 0.0)
    top = lone.pick(product, product.max(ec, signed=True))
    high = ma * mb
    low = ma.fma(mb, -high)
    scale = _power(product - top)
    error = _sign_of_sum([
        low * scale, high * scale,
        lone.pick(0.0, mc * _power(ec - top)),
        nearest.compare("==", 0.0).pick(0.0, -(mr * _power(er - top))),
    ])
    exact = a.compare("==", 0.0) | b.compare("==", 0.0)
    return nearest, exact.pick(0.0, error)


def _div(values: list[Real]) -> tuple[Real, Real]:
    a, b = values
    nearest = a / b
    (ma, ea), (mb, eb), (mq, eq) = map(_scaled, (a, b, nearest))
    quotient = nearest.compare("==", 0.0).pick(0.0, mq * _power(eq - ea + eb))
    error = ((-quotient).fma(mb, ma).to_bits() ^ _sign(b)).reals()
    exact = a.compare("==", 0.0) | b.compare("==", 0.0)
    return nearest, exact.pick(0.0, error)


def _sqrt(values: list[Real]) -> tuple[Real, Real]:
    a = values[0]
    nearest = a.sqrt()
    (ma, ea), (mr, er) = _scaled(a), _scaled(nearest)
    root = mr * _power(er - ea.sar(1))
    error = (-root).fma(root, ma * _power(ea & 1))
    return nearest, a.compare(">", 0.0).pick(error, 0.0)


_NEAREST_AND_ERROR = {"add": _add, "mul": _mul, "fma": _fma, "div": _div, "sqrt": _sqrt}
