"""Logic, shifts and byte permutation."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ...isa import Form
from .lanes import Bits, join
from . import semantics
from .integer import is_signed


@semantics("and")
def _and(_: Form, a: Bits, b: Bits) -> Bits:
    return a & b


@semantics("or")
def _or(_: Form, a: Bits, b: Bits) -> Bits:
    return a | b


@semantics("xor")
def _xor(_: Form, a: Bits, b: Bits) -> Bits:
    return a ^ b


@semantics("not")
def _not(_: Form, a: Bits) -> Bits:
    return ~a


@semantics("cnot")
def _cnot(_: Form, a: Bits) -> Bits:
    return a.eq(0).zext(a.bits)


def _table(a: Bits, b: Bits, table: int) -> Bits:
    """The function of two bits with the values ``table`` at (a, b) = 00, 01, 10, 11."""
    terms = [x & y for at, (x, y) in enumerate(((~a, ~b), (~a, b), (a, ~b), (a, b))) if table >> at & 1]
    return reduce(or_, terms) if terms else a.b.bits(a.bits, 0)


@semantics("lop3")
def _lop3(form: Form, a: Bits, b: Bits, c: Bits, table: int, q: Bits | None = None) -> Any:
    """Split by a, the function is two functions of b and c; LLVM finds the shortest form."""
    d = (~a & _table(b, c, table & 15)) | (a & _table(b, c, table >> 4))
    if q is None:
        return d
    nonzero = d.ne(0)
    return d, (nonzero | q if "or" in form.tokens else nonzero & q)


@semantics("shl")
def _shl(_: Form, a: Bits, b: Bits) -> Bits:
    top = a.bits - 1
    return b.gt(top).pick(0, a << (b & top).resize(a.bits, False))


@semantics("shr")
def _shr(form: Form, a: Bits, b: Bits) -> Bits:
    top = a.bits - 1
    if is_signed(form):
        return a.sar(b.min(top).resize(a.bits, False))
    return b.gt(top).pick(0, a >> (b & top).resize(a.bits, False))


@semantics("shf")
def _shf(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    left = "l" in form.tokens
    shifted = b.call("fshl", a, c) if left else b.call("fshr", a, c)
    if "wrap" in form.tokens:
        return shifted
    return c.gt(31).pick(a if left else b, shifted)


_SELECTORS = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The four selectors, the highest byte first, for each mode and lowest two bits of c."""


@semantics("prmt")
def _prmt(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    both = join([a, b])
    mode = form.modifiers.get("mode")
    if mode is not None:
        first, *others = _SELECTORS[mode]
        low = c & 3
        c = c.b.bits(32, first)
        for at, selector in enumerate(others, 1):
            c = low.eq(at).pick(selector, c)
    chosen = []
    for nibble in c.field(0, 16).parts(4):
        byte = (both >> ((nibble & 7).zext(64) << 3)).trunc(8)
        chosen.append((nibble & 8).ne(0).pick(byte.sar(7), byte) if mode is None else byte)
    return join(chosen)
