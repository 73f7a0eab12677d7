"""The video instructions: arithmetic on parts of registers, one part (``vadd``) or two or four at a time (``vadd2``).

Which parts stands at the operands (``%r1.b0``, ``-%r2.h1``), not in the form, so that a builder here takes them beside
the sources: ``selectors`` has one for each operand of the instruction in order, "" where there is none, with a ``-``
before it where the operand is negated.
"""

from __future__ import annotations

from ...isa import Form
from .compare import RELATIONS
from .lanes import Bits, join
from . import semantics

_WIDE = 64
"""Scalar intermediate values have 34 bits, those of vmad 67."""


def _types(form: Form) -> list[str]:
    """The types in the mnemonic, ``u32`` or ``s32``, in order."""
    return [token for token in form.tokens if token in ("u32", "s32")]


def _part(value: Bits, kind: str, selector: str, bits: int) -> Bits:
    """The byte, halfword or word that the selector names, extended to ``bits`` as its type says."""
    size = {"b": 8, "h": 16}.get(selector[:1], 32)
    return value.field(size * int(selector[1:] or 0), size).extend(bits, kind[0] == "s")


def _combine(name: str, a: Bits, b: Bits) -> Bits:
    """The operation on two numbers that are wide enough not to overflow."""
    if name == "add":
        return a + b
    if name == "sub":
        return a - b
    if name == "avrg":
        total = a + b
        return (total + (~total.negative()).zext(total.bits)).sar(1)
    if name == "absdiff":
        return a.max(b, signed=True) - a.min(b, signed=True)
    return a.min(b, signed=True) if name == "min" else a.max(b, signed=True)


def _compare(form: Form, a: Bits, b: Bits) -> Bits:
    relation = next(RELATIONS[token] for token in form.tokens if token in RELATIONS)
    return a.compare(relation, b, signed=True).zext(a.bits)


# ---------------------------------------------------------------------------------------------------------------------
# One part


def _finish(form: Form, kind: str, value: Bits, c: Bits | None, selector: str) -> Bits:
    """Saturation to the part that is written, the second operation with c, or the merge into it."""
    size = {"b": 8, "h": 16}.get(selector[:1], 32)
    if "sat" in form.tokens:
        value = value.clamp(size, kind[0] == "s")
    second = next((token for token in form.tokens if token in ("add", "min", "max")), None)
    if second is not None and c is not None:
        return _combine(second, value, c.extend(value.bits, kind[0] == "s")).trunc(32)
    result = value.trunc(32)
    if not selector or c is None:
        return result
    place = size * int(selector[1:])
    mask = ((1 << size) - 1) << place
    return ((result << place) & mask) | (c & ~mask)


@semantics("vadd", "vsub", "vabsdiff", "vmin", "vmax")
def _scalar(form: Form, a: Bits, b: Bits, c: Bits | None = None, *, selectors: tuple[str, ...] = ("",) * 4) -> Bits:
    kind, first, second = _types(form)
    x, y = _part(a, first, selectors[1], _WIDE), _part(b, second, selectors[2], _WIDE)
    return _finish(form, kind, _combine(form.opcode[1:], x, y), c, selectors[0])


@semantics("vshl", "vshr")
def _shift(form: Form, a: Bits, b: Bits, c: Bits | None = None, *, selectors: tuple[str, ...] = ("",) * 4) -> Bits:
    """No bit is lost before the saturation and the second operation."""
    kind, first, second = _types(form)
    wide = 2 * _WIDE if form.opcode == "vshl" else _WIDE
    x, y = _part(a, first, selectors[1], wide), _part(b, second, selectors[2], wide)
    count = y.min(32) if "clamp" in form.tokens else y & 31
    return _finish(form, kind, x << count if form.opcode == "vshl" else x.sar(count), c, selectors[0])


@semantics("vset")
def _set(form: Form, a: Bits, b: Bits, c: Bits | None = None, *, selectors: tuple[str, ...] = ("",) * 4) -> Bits:
    first, second = _types(form)
    x, y = _part(a, first, selectors[1], _WIDE), _part(b, second, selectors[2], _WIDE)
    return _finish(form, "u32", _compare(form, x, y), c, selectors[0])


@semantics("vmad")
def _mad(form: Form, a: Bits, b: Bits, c: Bits, *, selectors: tuple[str, ...] = ("",) * 4) -> Bits:
    """In 128 bits: a product may have 64, and the sum more."""
    _, first, second = _types(form)
    negated = [selector.startswith("-") for selector in selectors]
    minus = negated[1] != negated[2]
    signed = "s32" in (first, second) or minus or negated[3]
    plain = [selector.lstrip("-") for selector in selectors]
    total = _part(a, first, plain[1], 128) * _part(b, second, plain[2], 128)
    if minus:
        total = -total
    addend = c.extend(128, signed)
    total = total - addend if negated[3] else total + addend
    if "po" in form.tokens:
        total = total + 1
    scale = next((int(token[3:]) for token in form.tokens if token.startswith("shr")), 0)
    if scale:
        total = total.sar(scale)
    return (total.clamp(32, signed) if "sat" in form.tokens else total).trunc(32)


# ---------------------------------------------------------------------------------------------------------------------
# Two halfwords or four bytes


def _selected(a: Bits, b: Bits, kind: str, selector: str, count: int) -> list[Bits]:
    """The parts of a and b (numbered on from a's) that a selector names, the lowest first, as 32 bits."""
    size = 32 // count
    parts = [*a.parts(size), *b.parts(size)]
    return [parts[int(digit)].extend(32, kind[0] == "s") for digit in selector[:0:-1]]


@semantics(*(f"v{name}{count}" for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set") for count in (2, 4)))
def _simd(form: Form, a: Bits, b: Bits, c: Bits, *, selectors: tuple[str, ...] = ("",) * 4) -> Bits:
    count, name = int(form.opcode[-1]), form.opcode[1:-1]
    letter, size = ("h", 16) if count == 2 else ("b", 8)
    kind, first, second = _types(form) if name != "set" else ["u32", *_types(form)]
    low = "".join(str(at) for at in range(count - 1, -1, -1))
    high = "".join(str(at) for at in range(2 * count - 1, count - 1, -1))
    xs = _selected(a, b, first, selectors[1] or letter + low, count)
    ys = _selected(a, b, second, selectors[2] or letter + high, count)
    values = [_compare(form, x, y) if name == "set" else _combine(name, x, y) for x, y in zip(xs, ys)]
    if "sat" in form.tokens:
        values = [value.clamp(size, kind[0] == "s") for value in values]
    written = {int(digit) for digit in (selectors[0] or letter + low)[1:]}
    if "add" in form.tokens:
        for at in written:
            c = c + values[at]
        return c
    kept = c.parts(size)
    return join([values[at].trunc(size) if at in written else kept[at] for at in range(count)])
