"""Numbers that all threads of a block have, where they follow from parameters and indices alone, and their arithmetic.

A :class:`Number` is one integer for all threads or a vector of one each, plus multiples of the block's coordinates
(``%ctaid``), all modulo two to the bits of the register. What an operation makes of these is exact, or nothing is known
of it: widening, dividing and comparing ask that no block's number wraps around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from ...isa import Form
from ...types import ScalarType
from .comparisons import MIRRORED
from .divergence import Shape3
from .linear_values import NO_BLOCK
from .thread_arithmetic import OPERATIONS, UNSIGNED, compared

__all__ = ["Arithmetic", "Number", "cut", "merged", "same"]

_HIGHEST = -1 << 63
_FEW = 2
"""Blocks in which a comparison differs among threads, that are told apart."""
_PLAIN = frozenset(("sat", "cc"))
"""Modifiers that sums and products here do not have."""
_SHIFTS = ("shl", "shr")
_BITWISE = ("and", "or", "xor")
Vector = Any
"""An int64 for each thread, or one int for all."""


class Number(NamedTuple):
    """``numbers + sum(block * %ctaid)``, read as signed; an offset in an array where there is an origin.

    ``known``: the threads whose number it is, None for all.
    """

    numbers: Vector
    block: Shape3 = NO_BLOCK
    origin: str = ""
    known: Any = None


def same(a: Number, b: Number) -> bool:
    """Whether two registers hold the same in all threads."""
    if a is b:
        return True
    if a.block != b.block or a.origin != b.origin or a.known is not b.known:
        return False
    return bool(np.array_equal(a.numbers, b.numbers))


def merged(where: Any, a: Number, b: Number) -> Number | None:
    """One in some threads and the other in the rest; None where these have nothing in common."""
    if a.block != b.block or a.origin != b.origin:
        return None
    return Number(np.where(where, a.numbers, b.numbers), a.block, a.origin)


def cut(x: Vector, width: int) -> Vector:
    """The low bits, read as signed."""
    half = 1 << (width - 1)
    if isinstance(x, int):
        return ((x + half) & (2 * half - 1)) - half
    return x if width >= 64 else ((x + half) & (2 * half - 1)) - half


def _natural(x: Vector, width: int) -> Vector | None:
    """The low bits, read as unsigned; None where that is no int64."""
    if isinstance(x, int):
        x &= (1 << width) - 1
        return x if x < 1 << 63 else None
    if width < 64:
        return x & ((1 << width) - 1)
    return None if (x < 0).any() else x


def _read(x: Vector, width: int, signed: bool) -> Vector | None:
    return cut(x, width) if signed else _natural(x, width)


class Arithmetic:
    """What instructions make of numbers in a grid."""

    def __init__(self, grid: Shape3, threads: int, starts: Callable[[str], int] = lambda _: 0) -> None:
        self.least, self.most = [0, 0, 0], [count - 1 for count in grid]
        self.threads, self.starts = threads, starts
        self.cuts: set[tuple[int, int]] = set()
        """Axes and coordinates of blocks from which on comparisons come out otherwise than before."""

    def limit(self, part: Sequence[tuple[int, int]]) -> None:
        """Take blocks to be in a part of the grid: the first and the last coordinate along each axis."""
        for axis, (low, high) in enumerate(part):
            self.least[axis], self.most[axis] = low, high

    def _ends(self, a: Number) -> tuple[Vector, Vector]:
        """The least and the largest number of each thread, in any block."""
        ends = [(each * least, each * most) for each, least, most in zip(a.block, self.least, self.most)]
        return a.numbers + sum(map(min, ends)), a.numbers + sum(map(max, ends))

    def whole(self, a: Number, width: int, signed: bool) -> Number | None:
        """A register's number, read as signed or not, as the integer; None where it may have wrapped around."""
        if a.origin:
            return None
        if a.block == NO_BLOCK:
            found = _read(a.numbers, width, signed)
            return None if found is None else Number(found)
        x, y, z = a.block
        a = Number(cut(a.numbers, width), (cut(x, width), cut(y, width), cut(z, width)))
        low, high = self._ends(a)
        least, most = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        return a if least <= _least(low) and _most(high) <= most else None

    def result(self, form: Form, kind: ScalarType, given: Sequence[Number], out: int) -> Number | None:
        """What an instruction that only computes gives, in a register of ``out`` bits."""
        opcode, tokens, width, signed = form.opcode, form.tokens, kind.bits, kind.kind == "s"
        count = len(given)
        if opcode in ("mov", "cvta") and count == 1:
            return given[0]
        if kind.kind == "p":
            return _logic(opcode, given)
        if opcode == "setp":
            return self._tested(tokens, width, signed, given)
        if opcode == "selp" and count == 3:
            return _selected(given)
        if opcode == "cvt":
            return self._converted(given[0], tokens)
        return self._integer(opcode, tokens, width, signed, given, out) if _PLAIN.isdisjoint(tokens) else None

    def _integer(
        self, opcode: str, tokens: Sequence[str], width: int, signed: bool, given: Sequence[Number], out: int
    ) -> Number | None:
        count = len(given)
        if opcode in ("add", "sub") and count == 2:
            return _sum(given[0], given[1], 1 if opcode == "add" else -1, width)
        if opcode in ("mul", "mad") and count == 2 + (opcode == "mad"):
            product = self._product(given[0], given[1], tokens, width, signed, out)
            if product is None or count == 2:
                return product
            return _sum(given[2], product, 1, out if "wide" in tokens else width)
        if opcode == "shl" and count == 2 and isinstance(given[1].numbers, int) and given[1].block == NO_BLOCK:
            by = given[1].numbers & 0xFFFFFFFF
            return _times(given[0], 1 << by, width) if by < width else Number(0)
        if opcode == "and" and count == 2:
            masked = _low_bits(given[0], given[1], width) or _low_bits(given[1], given[0], width)
            if masked is not None:
                return masked
        if opcode in _BITWISE and count == 2:
            moved = self._moved(opcode, given[0], given[1]) or self._moved(opcode, given[1], given[0])
            if moved is not None:
                return moved
        if opcode in ("min", "max") and count == 2:
            return self._chosen(opcode, width, signed, given)
        given = [self._pinned(each) for each in given]
        if any(each.origin or each.block != NO_BLOCK for each in given):
            return None
        return _plain(opcode, [each.numbers for each in given], width, signed)

    def _pinned(self, a: Number) -> Number:
        """A number in the one block that there is along each axis it depends on; itself where there are several."""
        if a.block == NO_BLOCK or any(
            each and least < most for each, least, most in zip(a.block, self.least, self.most)
        ):
            return a
        return a._replace(numbers=a.numbers + sum(map(mul, a.block, self.least)), block=NO_BLOCK)

    def _chosen(self, opcode: str, width: int, signed: bool, given: Sequence[Number]) -> Number | None:
        """The smaller or the larger of two numbers, where it is known which one that is."""
        first = self._tested(("lt" if opcode == "min" else "gt",), width, signed, given)
        if first is None or first.known is not None:
            return None
        which = first.numbers
        alike = isinstance(which, int) or (which == which[0]).all()
        return _selected([*given, Number(int(which if isinstance(which, int) else which[0])) if alike else first])

    def _moved(self, opcode: str, a: Number, b: Number) -> Number | None:
        """An address of which low bits are changed, where that of the array has none of these."""
        start = self.starts(a.origin) if a.origin else 0
        if not start or b.origin or b.block != NO_BLOCK or a.block != NO_BLOCK:
            return None
        least, most = _least(b.numbers), _most(b.numbers)
        if opcode == "and":
            least, most = ~most, ~least
        if least < 0 or most >= start & -start:
            return None
        return Number(_scalar(OPERATIONS[opcode](a.numbers, b.numbers)), NO_BLOCK, a.origin)

    def _product(
        self, a: Number, b: Number, tokens: Sequence[str], width: int, signed: bool, out: int
    ) -> Number | None:
        if "lo" not in tokens:
            one, other = self.whole(a, width, signed), self.whole(b, width, signed)
            if one is None or other is None:
                return None
            a, b = one, other
            if "hi" in tokens:
                return _high(a, b, width)
        bits = out if "wide" in tokens else width
        for left, right in ((a, b), (b, a)):
            if isinstance(right.numbers, int) and right.block == NO_BLOCK and not right.origin:
                return _times(left, right.numbers, bits)
        if a.block != NO_BLOCK or b.block != NO_BLOCK or a.origin or b.origin:
            return None
        return Number(cut(a.numbers * b.numbers, bits))

    def _converted(self, value: Number, tokens: Sequence[str]) -> Number | None:
        types = [token for token in tokens if token[0] in "us" and token[1:].isdigit()]
        if len(types) != 2 or len(tokens) != 2:
            return None
        (signed, source), to = (types[1][0] == "s", int(types[1][1:])), int(types[0][1:])
        if value.origin:
            return value if min(to, source) >= 32 else None
        if to < 32:
            return None
        if to <= source:
            x, y, z = value.block
            return Number(cut(value.numbers, to), (cut(x, to), cut(y, to), cut(z, to)))
        return self.whole(value, source, signed)

    def _tested(self, tokens: Sequence[str], width: int, signed: bool, given: Sequence[Number]) -> Number | None:
        test = tokens[0]
        signed, test = signed and test not in UNSIGNED, UNSIGNED.get(test, test)
        if test not in MIRRORED or len(given) not in (2, 3):
            return None
        a, b = (self.whole(each, width, signed) for each in given[:2])
        known = None
        if a is not None and b is not None and a.block == b.block:
            found: Any = _answer(test, a.numbers, b.numbers)
        elif a is not None and b is not None:
            (al, ah), (bl, bh) = self._ends(a), self._ends(b)
            found, known = self._decided(test, al, ah, bl, bh)
            if not known.all():
                self._note_cuts(test, a, b)
            if not known.any():
                return None
            known = None if known.all() else known
        elif width == 64 and not signed and all(x.block == NO_BLOCK and not x.origin for x in given[:2]):
            x, y = (_flipped(each.numbers) for each in given[:2])
            found = _answer(test, x, y)
        else:
            return None
        if len(given) == 3:
            joins = [token for token in tokens if token in ("and", "or", "xor")]
            joined = _logic(joins[0], [Number(found), given[2]]) if joins else None
            return None if joined is None else joined._replace(known=known)
        return Number(found, known=known)

    def _note_cuts(self, test: str, a: Number, b: Number) -> None:
        """Note where along an axis of the grid a comparison changes, if its block has one coordinate only."""
        factors = [one - other for one, other in zip(a.block, b.block)]
        axes = [axis for axis in range(3) if factors[axis] and self.least[axis] < self.most[axis]]
        if len(axes) != 1:
            return
        axis, factor = axes[0], factors[axes[0]]
        rest = a.numbers - b.numbers + sum(
            each * self.least[other] for other, each in enumerate(factors) if other != axis
        )
        if test in ("le", "gt"):
            rest = rest - 1
        change = -(rest // factor) if factor > 0 else rest // -factor + 1  # the first of the other answer
        first, last = _least(change), _most(change)
        self.cuts.update((axis, at) for at in range(first, last + 1) if last - first <= _FEW)
        self.cuts.update(((axis, first), (axis, last + (test in ("eq", "ne")))))

    def _decided(
        self, test: str, al: Vector, ah: Vector, bl: Vector, bh: Vector
    ) -> tuple[Any, Any]:
        """Where a comparison holds whatever the block, and in which threads that is decided."""
        if test in ("gt", "le"):
            al, ah, bl, bh, test = bl, bh, al, ah, {"gt": "lt", "le": "ge"}[test]
        if test in ("lt", "ge"):
            yes, no = ah < bl, al >= bh
        else:
            yes, no = (al == bh) & (ah == bl), (ah < bl) | (al > bh)
        if test in ("ge", "ne"):
            yes, no = no, yes
        yes, no = (np.broadcast_to(each, (self.threads,)) for each in (yes, no))
        return yes.astype(np.int64), yes | no


def _least(x: Vector) -> int:
    return x if isinstance(x, int) else int(x.min())


def _most(x: Vector) -> int:
    return x if isinstance(x, int) else int(x.max())


def _flipped(x: Vector) -> Vector:
    """Numbers that compare as signed as the given ones do as unsigned."""
    return x ^ _HIGHEST if isinstance(x, int) else x ^ np.int64(_HIGHEST)


def _answer(test: str, a: Vector, b: Vector) -> Vector:
    found = compared(test, a, b)
    return int(found) if isinstance(found, (bool, np.bool_)) else found.astype(np.int64)


def _sum(a: Number, b: Number, sign: int, width: int) -> Number | None:
    if b.origin and (a.origin or sign < 0):
        return None
    x, y, z = b.block
    block = a.block
    if b.block != NO_BLOCK:
        block = block[0] + sign * x, block[1] + sign * y, block[2] + sign * z
    return Number(cut(a.numbers + sign * b.numbers, width), block, a.origin or b.origin)


def _times(a: Number, factor: int, width: int) -> Number | None:
    if a.origin:
        return a if factor == 1 else None
    factor = cut(factor, width)
    x, y, z = a.block
    block = a.block if a.block == NO_BLOCK else (
        cut(x * factor, width), cut(y * factor, width), cut(z * factor, width)
    )
    return Number(cut(a.numbers * factor, width), block)


def _high(a: Number, b: Number, width: int) -> Number | None:
    """The high bits of a product of whole numbers."""
    if width != 32 or a.block != NO_BLOCK or b.block != NO_BLOCK:
        return None
    x, y = a.numbers, b.numbers
    if isinstance(x, int) and isinstance(y, int):
        return Number(cut(x * y >> 32, 32))
    if _least(x) >= 0 and _least(y) >= 0:
        product = np.asarray(x).astype(np.uint64) * np.asarray(y).astype(np.uint64)
        return Number(cut((product >> np.uint64(32)).astype(np.int64), 32))
    return Number(cut(x * y >> 32, 32))  # of signed numbers no product is beyond 2^62


def _low_bits(a: Number, mask: Number, width: int) -> Number | None:
    """The lowest bits of a number where those of all blocks are the same."""
    ones = mask.numbers
    if not isinstance(ones, int) or mask.block != NO_BLOCK or a.block == NO_BLOCK or a.origin:
        return None
    if ones < 0 or ones & (ones + 1) or any(each & ones for each in a.block):
        return None
    return Number(cut(a.numbers & ones, width))


def _plain(opcode: str, x: list[Vector], width: int, signed: bool) -> Number | None:
    """An operation on numbers that no block changes."""
    if opcode in ("neg", "not", "abs") and len(x) == 1:
        a = cut(x[0], width)
        return Number(cut(abs(a) if opcode == "abs" else -a if opcode == "neg" else ~a, width))
    if opcode == "brev" and len(x) == 1:
        return Number(cut(_reversed(x[0], width), width)) if width == 32 else None
    if opcode in _FIELDS:
        found = _FIELDS[opcode](x, width, signed)
        return None if found is None else Number(cut(_scalar(found), width))
    if len(x) != 2 or opcode not in OPERATIONS:
        return None
    if opcode in _BITWISE:
        return Number(cut(_scalar(OPERATIONS[opcode](x[0], x[1])), width))
    if opcode in _SHIFTS:
        by = _natural(x[1], 32)
        return _shifted(opcode, x[0], by, width, signed)
    a, b = (_read(each, width, signed) for each in x)
    if a is None or b is None:
        return None
    if opcode in ("div", "rem") and (not np.all(b) or min(_least(a), _least(b)) == _HIGHEST):
        return None
    return Number(_scalar(cut(_scalar(OPERATIONS[opcode](a, b)), width)))


def _field(x: Sequence[Vector]) -> tuple[int, int] | None:
    """The first bit and the number of bits of a field, by the last two operands; None where they are not known."""
    first, count = x[-2:]
    if not isinstance(first, int) or not isinstance(count, int):
        return None
    return first & 0xFF, count & 0xFF


def _extracted(x: Sequence[Vector], width: int, signed: bool) -> Vector | None:
    field = _field(x)
    bits = _natural(x[0], width)
    if field is None or bits is None or not 0 < field[1] <= width - field[0]:
        return None
    found = bits >> field[0] & (1 << field[1]) - 1
    return cut(found, field[1]) if signed else found


def _inserted(x: Sequence[Vector], width: int, _: bool) -> Vector | None:
    field = _field(x)
    if field is None or not 0 < field[1] <= width - field[0] or width > 32:
        return None
    mask = (1 << field[1]) - 1
    return x[1] & ~(mask << field[0]) | (x[0] & mask) << field[0]


def _looked_up(x: Sequence[Vector], _: int, __: bool) -> Vector | None:
    """``lop3``: bit by bit by a table of eight answers."""
    table, found = x[-1], 0
    if len(x) != 4 or not isinstance(table, int):
        return None
    for number in range(8):
        if table >> number & 1:
            a, b, c = (each if number >> bit & 1 else ~each for each, bit in zip(x, (2, 1, 0)))
            found = found | a & b & c
    return found


_FIELDS: dict[str, Callable[[Sequence[Vector], int, bool], Any]] = {
    "bfe": _extracted, "bfi": _inserted, "lop3": _looked_up,
}


def _scalar(x: Any) -> Vector:
    """A number for all threads as an int."""
    return int(x) if isinstance(x, np.generic) or (isinstance(x, np.ndarray) and not x.ndim) else x


def _shifted(opcode: str, x: Vector, by: Vector, width: int, signed: bool) -> Number | None:
    by = np.minimum(by, width)
    if opcode == "shl":
        found = np.where(by >= width, 0, np.asarray(x, np.int64) << np.minimum(by, width - 1))
        return Number(cut(_scalar(found), width))
    if signed:
        return Number(_scalar(np.asarray(cut(x, width), np.int64) >> np.minimum(by, width - 1)))
    bits = np.asarray(x, np.int64).astype(np.uint64) & np.uint64((1 << width) - 1)
    found = np.where(by >= width, np.uint64(0), bits >> np.minimum(by, width - 1).astype(np.uint64))
    return Number(cut(_scalar(found.astype(np.int64)), width))


def _reversed(x: Vector, width: int) -> Vector:
    found = 0
    for bit in range(width):
        found = found | ((x >> bit & 1) << (width - 1 - bit))
    return found


def _selected(given: Sequence[Number]) -> Number | None:
    yes, no, which = given
    if isinstance(which.numbers, int):
        return yes if which.numbers else no
    return merged(which.numbers != 0, yes, no)


_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
}


def _logic(opcode: str, given: Sequence[Number]) -> Number | None:
    """An operation on predicates."""
    x = [each.numbers for each in given]
    if opcode == "not":
        return Number(int(not x[0]) if isinstance(x[0], int) else (x[0] == 0).astype(np.int64))
    if opcode not in _LOGIC or len(x) != 2:
        return None
    return Number(_scalar(np.asarray(_LOGIC[opcode](*x)).astype(np.int64)))
