"""Integer, extended-precision and logic instructions against Python integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from semantics_harness import Case, Outcomes, run
from semantics_reference import signed
from semantics_samples import integers

COUNT = 256


class Check(NamedTuple):
    """A mnemonic, the widths of its sources, what it gives, and the number for its ``#`` operand.

    ``braces``: the sources are one operand in braces. ``results``: how many, where that decides the form.
    """

    mnemonic: str
    bits: tuple[int, ...]
    reference: Callable[..., Any]
    constant: int | None = None
    braces: bool = False
    results: int | None = None


def _int(kind: str) -> Callable[[int], int]:
    """How a type reads its bits."""
    bits = int(kind[1:])
    return (lambda value: signed(value, bits)) if kind[0] == "s" else (lambda value: value)


def _clamp(value: int, kind: str) -> int:
    bits = int(kind[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _quotient(a: int, b: int, kind: str) -> int:
    x, y = _int(kind)(a), _int(kind)(b)
    if y == 0:
        return -1
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _remainder(a: int, b: int, kind: str) -> int:
    x, y = _int(kind)(a), _int(kind)(b)
    return x - _quotient(a, b, kind) * y if y else -1


def _find(a: int, kind: str) -> int:
    x = _int(kind)(a)
    return (~x if x < 0 else x).bit_length() - 1


def _extract(a: int, b: int, c: int, kind: str) -> int:
    top, start, length = int(kind[1:]) - 1, b & 255, c & 255
    sign = a >> min(start + length - 1, top) & 1 if kind[0] == "s" and length else 0
    return sum((a >> (start + i) & 1 if i < length and start + i <= top else sign) << i for i in range(top + 1))


def _insert(a: int, b: int, c: int, length: int, bits: int) -> int:
    start, result = c & 255, b
    for i in range(length & 255):
        if start + i < bits:
            result = result & ~(1 << (start + i)) | (a >> i & 1) << (start + i)
    return result


def _find_nth(mask: int, base: int, offset: int) -> int:
    steps = signed(offset, 32)
    if steps == 0:
        return base if base < 32 and mask >> base & 1 else -1
    position, left = base, abs(steps) - 1
    while 0 <= position < 32:
        if mask >> position & 1:
            if left == 0:
                return position
            left -= 1
        position += 1 if steps > 0 else -1
    return -1


def _sign_extend(a: int, b: int, mode: str, kind: str) -> int:
    width = b & 31
    if b >= 32 and mode == "clamp":
        return a
    if width == 0:
        return 0
    field = a & ((1 << width) - 1)
    return signed(field, width) if kind == "s32" else field


def _mask(a: int, b: int, mode: str) -> int:
    start, width = a & 31, b & 31
    if mode == "clamp":
        start, width = min(a, 32), min(b, 32)
    return ((1 << width) - 1) << start


def _dot(a: int, b: int, c: int, first: str, second: str, pairs: tuple[tuple[int, int, int], ...]) -> int:
    """Products of fields: (size of a's, place in a, place in b), b's fields being bytes."""
    total = c
    for size, at, other in pairs:
        x, y = a >> at & ((1 << size) - 1), b >> other & 255
        total += (signed(x, size) if first[0] == "s" else x) * (signed(y, 8) if second[0] == "s" else y)
    return total


def _carryless(a: int, b: int) -> int:
    total = 0
    for i in range(64):
        if b >> i & 1:
            total ^= a << i
    return total


def _permute(a: int, b: int, c: int, mode: str) -> int:
    whole = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    if mode == "":
        chosen = [c >> 4 * i & 15 for i in range(4)]
        parts = [whole[s & 7] if s < 8 else 255 * (whole[s & 7] >> 7) for s in chosen]
        return sum(part << 8 * i for i, part in enumerate(parts))
    n = c & 3
    order = {
        ".f4e": [n + i for i in range(4)], ".b4e": [(n - i) % 8 for i in range(4)], ".rc8": [n] * 4,
        ".ecl": [max(i, n) for i in range(4)], ".ecr": [min(i, n) for i in range(4)],
        ".rc16": [2 * (n & 1) + i % 2 for i in range(4)],
    }[mode]
    return sum(whole[place] << 8 * i for i, place in enumerate(order))


def _lut(a: int, b: int, c: int, table: int) -> int:
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def _packed(element: Callable[..., int], bits: int) -> Callable[..., int]:
    """An element-wise reference on packed numbers of 32 bits."""
    mask = (1 << bits) - 1

    def whole(*sources: int) -> int:
        return sum((element(*(s >> at & mask for s in sources)) & mask) << at for at in range(0, 32, bits))

    return whole


def _element(name: str, kind: str) -> Callable[..., int]:
    """add, min.relu and so on in one type."""
    read = _int(kind)
    return {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
        "add.sat": lambda a, b: _clamp(read(a) + read(b), kind),
        "sub.sat": lambda a, b: _clamp(read(a) - read(b), kind),
        "min": lambda a, b: min(read(a), read(b)), "max": lambda a, b: max(read(a), read(b)),
        "min.relu": lambda a, b: max(min(read(a), read(b)), 0),
        "max.relu": lambda a, b: max(read(a), read(b), 0),
        "abs": lambda a: abs(read(a)), "neg": lambda a: -a,
    }[name]


def _arithmetic() -> list[Check]:
    checks = []
    for kind in ("u16", "u32", "u64", "s16", "s32", "s64"):
        bits, read = int(kind[1:]), _int(kind)
        checks += [Check(f"{name}.{kind}", (bits, bits), _element(name, kind)) for name in ("add", "sub", "min", "max")]
        for half, shift in (("lo", 0), ("hi", bits)):
            checks.append(Check(f"mul.{half}.{kind}", (bits, bits),
                                lambda a, b, read=read, shift=shift: read(a) * read(b) >> shift))
            checks.append(Check(f"mad.{half}.{kind}", (bits, bits, bits),
                                lambda a, b, c, read=read, shift=shift: (read(a) * read(b) >> shift) + c))
        checks += [
            Check(f"div.{kind}", (bits, bits), lambda a, b, kind=kind: _quotient(a, b, kind)),
            Check(f"rem.{kind}", (bits, bits), lambda a, b, kind=kind: _remainder(a, b, kind)),
            Check(f"sad.{kind}", (bits, bits, bits), lambda a, b, c, read=read: abs(read(a) - read(b)) + c),
        ]
        if bits < 64:
            checks.append(Check(f"mul.wide.{kind}", (bits, bits), lambda a, b, read=read: read(a) * read(b)))
            checks.append(Check(f"mad.wide.{kind}", (bits, bits, 2 * bits),
                                lambda a, b, c, read=read: read(a) * read(b) + c))
        if kind[0] == "s":
            checks += [Check(f"{name}.{kind}", (bits,), _element(name, kind)) for name in ("abs", "neg")]
    checks += [Check(f"{name}.sat.{kind}", (32, 32), _element(f"{name}.sat", kind))
               for name, kind in (("add", "s32"), ("sub", "s32"), ("add", "u32"))]
    checks += [Check(f"{name}.relu.s32", (32, 32), _element(f"{name}.relu", "s32")) for name in ("min", "max")]
    checks.append(Check("mad.hi.sat.s32", (32, 32, 32), lambda a, b, c: _clamp(
        (signed(a, 32) * signed(b, 32) >> 32) + signed(c, 32), "s32")))
    return checks


def _packed_arithmetic() -> list[Check]:
    checks = []
    for kind, bits in (("u16", 16), ("s16", 16), ("u8", 8), ("s8", 8)):
        name = f"{kind}x{32 // bits}"
        operations = ["add", "add.sat", "min", "max"]
        operations += ["sub", "sub.sat"] if bits == 8 else []
        operations += ["min.relu", "max.relu"] if kind[0] == "s" else []
        checks += [Check(f"{op}.{name}", (32, 32), _packed(_element(op, kind), bits)) for op in operations]
    checks.append(Check("neg.s8x4", (32,), _packed(_element("neg", "s8"), 8)))
    return checks


def _narrow_products() -> list[Check]:
    checks = []
    for kind in ("u32", "s32"):
        def read(value: int, kind: str = kind) -> int:
            return signed(value & 0xFFFFFF, 24) if kind == "s32" else value & 0xFFFFFF

        for half, shift in (("lo", 0), ("hi", 16)):
            def product(a: int, b: int, read: Any = read, shift: int = shift) -> int:
                return read(a) * read(b) >> shift & 0xFFFFFFFF

            checks.append(Check(f"mul24.{half}.{kind}", (32, 32), product))
            checks.append(Check(f"mad24.{half}.{kind}", (32, 32, 32), lambda a, b, c, p=product: p(a, b) + c))
            if (half, kind) == ("hi", "s32"):
                checks.append(Check("mad24.hi.sat.s32", (32, 32, 32), lambda a, b, c, p=product: _clamp(
                    signed(p(a, b), 32) + signed(c, 32), "s32")))
    for first in ("u32", "s32"):
        for second in ("u32", "s32"):
            types = f"{first}.{second}"
            checks.append(Check(f"dp4a.{types}", (32, 32, 32), lambda a, b, c, f=first, s=second: _dot(
                a, b, c, f, s, tuple((8, 8 * i, 8 * i) for i in range(4)))))
            for half, base in (("lo", 0), ("hi", 16)):
                checks.append(Check(f"dp2a.{half}.{types}", (32, 32, 32), lambda a, b, c, f=first, s=second, base=base:
                                    _dot(a, b, c, f, s, ((16, 0, base), (16, 16, base + 8)))))
    return checks


def _bit_fields() -> list[Check]:
    checks = [Check("fns.b32", (32, 5, 7), _find_nth), Check("brev.b32", (32,), lambda a: int(f"{a:032b}"[::-1], 2)),
              Check("brev.b64", (64,), lambda a: int(f"{a:064b}"[::-1], 2))]
    for bits in (32, 64):
        checks += [
            Check(f"popc.b{bits}", (bits,), int.bit_count),
            Check(f"clz.b{bits}", (bits,), lambda a, bits=bits: bits - a.bit_length()),
            Check(f"bfi.b{bits}", (bits, bits, 9, 9), lambda a, b, c, e, bits=bits: _insert(a, b, c, e, bits)),
        ]
        for sign in "us":
            kind = f"{sign}{bits}"
            checks += [
                Check(f"bfe.{kind}", (bits, 9, 9), lambda a, b, c, kind=kind: _extract(a, b, c, kind)),
                Check(f"bfind.{kind}", (bits,), lambda a, kind=kind: _find(a, kind)),
                Check(f"bfind.shiftamt.{kind}", (bits,), lambda a, kind=kind, bits=bits: (
                    bits - 1 - _find(a, kind) if _find(a, kind) >= 0 else -1)),
            ]
    for mode in ("clamp", "wrap"):
        checks.append(Check(f"bmsk.{mode}.b32", (6, 6), lambda a, b, mode=mode: _mask(a, b, mode)))
        checks += [Check(f"szext.{mode}.{kind}", (32, 6), lambda a, b, mode=mode, kind=kind: (
            _sign_extend(a, b, mode, kind))) for kind in ("u32", "s32")]
    for half, shift in (("lo", 0), ("hi", 64)):
        checks.append(Check(f"clmad.{half}.u64", (64,) * 3, lambda a, b, c, s=shift: _carryless(a, b) >> s ^ c))
    return checks


def _carries() -> list[Check]:
    checks = []
    for kind in ("u32", "s32", "u64", "s64"):
        bits, read = int(kind[1:]), _int(kind)
        mask = (1 << bits) - 1

        def total(value: int, mask: int = mask) -> tuple[int, int]:
            return value, int(not 0 <= value <= mask)

        def rest(a: int, b: int, carry: int = 1, mask: int = mask) -> tuple[int, int]:
            """As the adder does it: a plus the complement of b plus the carry, 1 where nothing was borrowed."""
            value = a + (b ^ mask) + carry
            return value, value >> mask.bit_length()

        checks += [
            Check(f"add.cc.{kind}", (bits, bits), lambda a, b, t=total: t(a + b)),
            Check(f"sub.cc.{kind}", (bits, bits), lambda a, b, r=rest: r(a, b)),
            Check(f"addc.{kind}", (bits, bits, 1), lambda a, b, c: a + b + c),
            Check(f"subc.{kind}", (bits, bits, 1), lambda a, b, c, r=rest: r(a, b, c)[0]),
            Check(f"addc.cc.{kind}", (bits, bits, 1), lambda a, b, c, t=total: t(a + b + c)),
            Check(f"subc.cc.{kind}", (bits, bits, 1), lambda a, b, c, r=rest: r(a, b, c)),
        ]
        for half, shift in (("lo", 0), ("hi", bits)):
            def product(a: int, b: int, read: Any = read, shift: int = shift, mask: int = mask) -> int:
                return read(a) * read(b) >> shift & mask

            checks += [
                Check(f"mad.{half}.cc.{kind}", (bits, bits, bits), lambda a, b, c, p=product, t=total: t(p(a, b) + c)),
                Check(f"madc.{half}.{kind}", (bits, bits, bits, 1), lambda a, b, c, f, p=product: p(a, b) + c + f),
                Check(f"madc.{half}.cc.{kind}", (bits, bits, bits, 1),
                      lambda a, b, c, f, p=product, t=total: t(p(a, b) + c + f)),
            ]
    return checks


def _logic() -> list[Check]:
    checks = [
        Check(f"prmt.b32{mode}", (32, 32, 32), lambda a, b, c, mode=mode: _permute(a, b, c, mode))
        for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16")
    ]
    for bits in (1, 16, 32, 64):
        kind = "pred" if bits == 1 else f"b{bits}"
        checks += [
            Check(f"and.{kind}", (bits, bits), int.__and__), Check(f"or.{kind}", (bits, bits), int.__or__),
            Check(f"xor.{kind}", (bits, bits), int.__xor__),
            Check(f"not.{kind}", (bits,), lambda a, top=(1 << bits) - 1: a ^ top),
        ]
        if bits > 1:
            checks.append(Check(f"cnot.{kind}", (bits,), lambda a: int(a == 0)))
            checks.append(Check(f"shl.{kind}", (bits, 7), lambda a, b: a << b))
            checks += [Check(f"shr.{sign}{bits}", (bits, 7), lambda a, b, bits=bits, sign=sign: (
                (signed(a, bits) if sign == "s" else a) >> b)) for sign in "bus"]
            checks.append(Check(f"selp.b{bits}", (bits, bits, 1), lambda a, b, c: a if c else b))
    for mode in ("clamp", "wrap"):
        def count(c: int, mode: str = mode) -> int:
            return min(c, 32) if mode == "clamp" else c & 31

        checks.append(Check(f"shf.l.{mode}.b32", (32, 32, 7), lambda a, b, c, n=count: ((b << 32 | a) << n(c)) >> 32))
        checks.append(Check(f"shf.r.{mode}.b32", (32, 32, 7), lambda a, b, c, n=count: (b << 32 | a) >> n(c)))
    checks += [
        Check("lop3.and.b32", (32, 32, 32, 1), lambda a, b, c, q: (_lut(a, b, c, 0x80), int(a & b & c != 0) & q), 0x80),
        Check("lop3.or.b32", (32, 32, 32, 1), lambda a, b, c, q: (_lut(a, b, c, 0x80), int(a & b & c != 0) | q), 0x80),
    ]
    return checks


def _moves() -> list[Check]:
    def join(size: int) -> Callable[..., int]:
        return lambda *parts: sum(part << size * at for at, part in enumerate(parts))

    def split(size: int, count: int) -> Callable[[int], tuple[int, ...]]:
        return lambda whole: tuple(whole >> size * at & ((1 << size) - 1) for at in range(count))

    kinds = ("b16", "u32", "s64", "f32", "f64")
    checks = [Check(f"mov.{kind}", (int(kind[1:]),), lambda a: a, results=1) for kind in kinds]
    for size, count in ((8, 2), (8, 4), (16, 2), (16, 4), (32, 2)):
        kind = f"mov.b{size * count}"
        checks.append(Check(kind, (size,) * count, join(size), braces=True))
        checks.append(Check(kind, (size * count,), split(size, count), results=count))
    return checks


GROUPS = {
    "arithmetic": _arithmetic, "packed": _packed_arithmetic, "products": _narrow_products, "fields": _bit_fields,
    "carries": _carries, "logic": _logic, "moves": _moves,
}
CHECKS = [check for group in GROUPS.values() for check in group()]


def _sources(check: Check) -> list[np.ndarray]:
    return [integers(f"{check.mnemonic}{at}", bits, COUNT) for at, bits in enumerate(check.bits)]


def _case(check: Check, sources: list[np.ndarray], width: int = 32) -> Case:
    if check.braces:
        return Case(check.mnemonic, (tuple(sources),), width, check.results)
    constant = () if check.constant is None else (check.constant,)
    return Case(check.mnemonic, (*sources[:3], *constant, *sources[3:]), width, check.results)


@pytest.fixture(scope="module", params=[32, 1], ids=["varying", "uniform"])
def outcome(request: pytest.FixtureRequest) -> Outcomes:
    return Outcomes(
        range(len(CHECKS)), lambda number: _sources(CHECKS[number]),
        lambda number, sources: _case(CHECKS[number], sources, request.param),
    )


@pytest.mark.parametrize("index", range(len(CHECKS)), ids=[check.mnemonic for check in CHECKS])
def test_integer(index: int, outcome: Outcomes) -> None:
    check = CHECKS[index]
    sources, results = outcome[index]
    widths = [8 * result.dtype.itemsize for result in results]
    wrong = []
    for at in range(COUNT):
        inputs = tuple(int(source[at]) for source in sources)
        wanted = check.reference(*inputs)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        wanted = tuple(value & ((1 << width) - 1) for value, width in zip(wanted, widths))
        got = tuple(int(result[at]) for result in results)
        if got != wanted:
            wrong.append((*map(hex, inputs), "gave", got, "not", wanted))
    assert not wrong, f"{check.mnemonic}: {len(wrong)} wrong: {wrong[:3]}"


def test_fns_forwards_and_backwards() -> None:
    """From every base by every offset that can be reached and one more, in full, sparse and random masks."""
    masks = [0xFFFFFFFF, 0, 0x80000001, *map(int, integers("fns", 32, 3))]
    inputs = [(m, b, o & 0xFFFFFFFF) for m in masks for b in (*range(0, 32, 5), 31) for o in range(-33, 34)]
    inputs += [(mask, 31, (1 << 31) + n) for mask in masks for n in (0, 1)]
    sources = tuple(np.array(column, np.uint64) for column in zip(*inputs[: len(inputs) // 32 * 32]))
    ((got,),) = run([Case("fns.b32", sources)])
    wanted = [_find_nth(*map(int, each)) & 0xFFFFFFFF for each in zip(*sources)]
    assert got.tolist() == wanted


def test_lop3_of_every_table() -> None:
    sources = tuple(integers(f"lop3{at}", 32, 32) for at in range(3))
    for table, (got,) in enumerate(run([Case("lop3.b32", (*sources, table)) for table in range(256)])):
        assert got.tolist() == [_lut(*map(int, abc), table) for abc in zip(*sources)], f"lop3.b32 {table:#x}"
