"""Integer arithmetic. Packed types (``u16x2``, ``s8x4``) are the same operations on more, narrower lanes."""

from __future__ import annotations

from collections.abc import Callable

from ...isa import Form
from ...types import ScalarType
from .lanes import Bits
from . import semantics


def elements(form: Form) -> ScalarType:
    """The type of the operation, which names the elements of packed operands."""
    kind = form.type
    assert kind is not None
    return kind


def packed(operation: Callable[..., Bits]) -> Callable[..., Bits]:
    """An operation on elements made into one on operands of the form's type."""

    def build(form: Form, *sources: Bits) -> Bits:
        count = elements(form).lanes
        return operation(form, *(source.unpack(count) for source in sources)).pack(count)

    return build


def is_signed(form: Form) -> bool:
    return elements(form).is_signed


@semantics("add.int")
@packed
def _add(form: Form, a: Bits, b: Bits) -> Bits:
    if "sat" in form.tokens:
        return a.call("sadd.sat" if is_signed(form) else "uadd.sat", b)
    return a + b


@semantics("sub.int")
@packed
def _sub(form: Form, a: Bits, b: Bits) -> Bits:
    if "sat" in form.tokens:
        return a.call("ssub.sat" if is_signed(form) else "usub.sat", b)
    return a - b


def product(form: Form, a: Bits, b: Bits) -> Bits:
    """The half of a * b that the form asks for, or with ``.wide`` all of it."""
    if "lo" in form.tokens:
        return a * b
    signed = is_signed(form)
    whole = a.extend(2 * a.bits, signed) * b.extend(2 * a.bits, signed)
    return whole if "wide" in form.tokens else whole.field(a.bits, a.bits)


def _plus(form: Form, a: Bits, c: Bits) -> Bits:
    return a.call("sadd.sat", c) if "sat" in form.tokens else a + c


@semantics("mul.int")
def _mul(form: Form, a: Bits, b: Bits) -> Bits:
    return product(form, a, b)


@semantics("mad.int")
def _mad(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    return _plus(form, product(form, a, b), c)


@semantics("mul24")
def _mul24(form: Form, a: Bits, b: Bits) -> Bits:
    signed = is_signed(form)
    whole = (a << 8).shr(8, signed).extend(64, signed) * (b << 8).shr(8, signed).extend(64, signed)
    return whole.field(0 if "lo" in form.tokens else 16, 32)


@semantics("mad24")
def _mad24(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    return _plus(form, _mul24(form, a, b), c)


@semantics("sad")
def _sad(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    signed = is_signed(form)
    return a.max(b, signed) - a.min(b, signed) + c


def _size(a: Bits) -> Bits:
    """The absolute value, as an unsigned number."""
    return a.max(-a, signed=True)


def _positive(b: Bits, signed: bool) -> Bits:
    """The size of a divisor, 1 for none."""
    size = _size(b) if signed else b
    return size.eq(0).pick(1, size)


def _quotient(a: Bits, b: Bits, signed: bool) -> Bits:
    """Unsigned a / b, by the size of b. A float of twice the bits has the right integer part: its error is < 1 / b.

    A divisor that all lanes have is inverted once. The inverse is too large by two to four units in its last place, so
    that no product is below the quotient: nor is it too large by 1 / b, since a has half of the float's bits.
    """
    if a.bits > 32:
        return a.divide(_positive(b, signed), signed=False)
    wide = 32 if a.bits <= 16 else 64
    ratio, one = a.to_real(wide, signed=False), b.once()
    if one is None:
        ratio = ratio / _positive(b, signed).to_real(wide, signed=False)
    else:
        above = one.b.number(wide, 1 + 2.0 ** (-22 if wide == 32 else -51))
        ratio = ratio * (above / _positive(one, signed).to_real(wide, signed=False)).everywhere(a.b)
    return Bits(a.b, a.b.ir.fptoui(ratio.value, a.b.integer(32)), 32).trunc(a.bits)


def _divide(form: Form, a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """Quotient and remainder. By zero, which PTX leaves open, both are all ones, as the hardware's code has it."""
    zero, signed = b.eq(0), is_signed(form)
    quotient = _quotient(_size(a) if signed else a, b, signed)
    if signed:
        quotient = (a ^ b).negative().pick(-quotient, quotient)
    return zero.pick(-1, quotient), zero.pick(-1, a - quotient * b)


@semantics("div.int")
def _div(form: Form, a: Bits, b: Bits) -> Bits:
    return _divide(form, a, b)[0]


@semantics("rem")
def _rem(form: Form, a: Bits, b: Bits) -> Bits:
    return _divide(form, a, b)[1]


@semantics("abs.int")
@packed
def _abs(_: Form, a: Bits) -> Bits:
    return _size(a)


@semantics("neg.int")
@packed
def _neg(_: Form, a: Bits) -> Bits:
    return -a


def _relu(form: Form, value: Bits) -> Bits:
    return value.max(0, signed=True) if "relu" in form.tokens else value


@semantics("min.int")
@packed
def _min(form: Form, a: Bits, b: Bits) -> Bits:
    return _relu(form, a.min(b, is_signed(form)))


@semantics("max.int")
@packed
def _max(form: Form, a: Bits, b: Bits) -> Bits:
    return _relu(form, a.max(b, is_signed(form)))


@semantics("popc")
def _popc(_: Form, a: Bits) -> Bits:
    return a.popcount().trunc(32)


@semantics("clz")
def _clz(_: Form, a: Bits) -> Bits:
    return a.leading_zeros().trunc(32)


@semantics("bfind")
def _bfind(form: Form, a: Bits) -> Bits:
    if is_signed(form):
        a = a ^ a.sar(a.bits - 1)
    zeros = a.leading_zeros().trunc(32)
    return a.eq(0).pick(-1, zeros if "shiftamt" in form.tokens else a.bits - 1 - zeros)


@semantics("brev")
def _brev(_: Form, a: Bits) -> Bits:
    return a.call("bitreverse")


@semantics("fns")
def _fns(_: Form, mask: Bits, base: Bits, offset: Bits) -> Bits:
    """Backwards is forwards in the mirror; each step forwards removes the lowest set bit."""
    backwards = offset.negative()
    start = backwards.pick(31 - base, base)
    ahead = backwards.pick(mask.call("bitreverse"), mask)
    ahead = ahead & (mask.b.bits(32, -1) << (start & 31))
    steps = _size(offset) - 1
    for step in range(31):
        ahead = (steps.compare(">", step, signed=True)).pick(ahead & (ahead - 1), ahead)
    found = (ahead & -ahead).leading_zeros()
    position = backwards.pick(found, 31 - found)
    missing = ahead.eq(0) | base.gt(31) | steps.gt(31, signed=True) | (offset.eq(0) & position.ne(base))
    return missing.pick(-1, position)


@semantics("bfe")
def _bfe(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    top = a.bits - 1
    start, length = (b & 0xFF).resize(a.bits, False), (c & 0xFF).resize(a.bits, False)
    if is_signed(form):
        spare = a.bits - length.min(a.bits).max(1)
        field = (a.sar(start.min(top)) << spare).sar(spare)
        return length.eq(0).pick(0, field)
    field = start.gt(top).pick(0, a >> (start & top))
    return length.gt(top).pick(field, field & _ones(length & top))


def _ones(length: Bits) -> Bits:
    """``length`` ones, for a length below the width."""
    return ~(length.b.bits(length.bits, -1) << length)


@semantics("bfi")
def _bfi(_: Form, a: Bits, b: Bits, c: Bits, length: Bits) -> Bits:
    top = a.bits - 1
    start, length = (c & 0xFF).resize(a.bits, False), (length & 0xFF).resize(a.bits, False)
    mask = length.gt(top).pick(-1, _ones(length & top)) << (start & top)
    mask = start.gt(top).pick(0, mask)
    return (b & ~mask) | ((a << (start & top)) & mask)


@semantics("szext")
def _szext(form: Form, a: Bits, b: Bits) -> Bits:
    """The shift that leaves the field is the width less b, of which 0 bits leave nothing."""
    width = b & 31
    spare = 32 - width.max(1)
    field = width.eq(0).pick(0, (a << spare).shr(spare, is_signed(form)))
    return b.gt(31).pick(a, field) if "clamp" in form.tokens else field


@semantics("bmsk")
def _bmsk(form: Form, a: Bits, b: Bits) -> Bits:
    start, width = a & 31, b & 31
    low = start.b.bits(32, -1) << start
    end = start + width
    open_end = end.gt(31)
    if "clamp" in form.tokens:
        low = a.gt(31).pick(0, low)
        open_end = open_end | b.gt(31)
    return low & open_end.pick(-1, _ones(end & 31))


def _bytes(form: Form, slot: str, value: Bits, size: int) -> list[Bits]:
    signed = form.modifiers[slot] == "s32"
    return [part.extend(32, signed) for part in value.parts(size)]


@semantics("dp4a")
def _dp4a(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    for x, y in zip(_bytes(form, "atype", a, 8), _bytes(form, "btype", b, 8)):
        c = c + x * y
    return c


@semantics("dp2a")
def _dp2a(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    selected = _bytes(form, "btype", b, 8)
    for x, y in zip(_bytes(form, "atype", a, 16), selected[:2] if "lo" in form.tokens else selected[2:]):
        c = c + x * y
    return c


@semantics("clmad")
def _clmad(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    """The upper half is the lower half of the mirrored factors, mirrored and shifted by one."""
    if "lo" in form.tokens:
        return _carryless(a, b) ^ c
    mirrored = _carryless(a.call("bitreverse"), b.call("bitreverse")).call("bitreverse")
    return (mirrored >> 1) ^ c


def _carryless(a: Bits, b: Bits) -> Bits:
    total = a.b.bits(64, 0)
    for bit in range(64):
        total = total ^ (-((b >> bit) & 1) & (a << bit))
    return total
