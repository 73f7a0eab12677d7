"""Comparison and selection."""

from __future__ import annotations

from typing import Any

from ...isa import Form
from ...types import ScalarType
from .lanes import Bits
from . import semantics
from .formats import FORMATS, flush, format_of, widen

RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
              "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def _relation(form: Form, kind: ScalarType, a: Bits, b: Bits) -> Bits:
    """Whether a cmp b, for each element; false with a NaN, but true in the comparisons that end in u."""
    name = form.modifiers["cmp"]
    assert name is not None
    if not kind.is_float:
        return a.compare(RELATIONS[name], b, signed=kind.is_signed)
    layout = format_of(kind)
    if "ftz" in form.tokens:
        a, b = flush(a, layout), flush(b, layout)
    bits = 64 if layout.bits == 64 else 32
    x, y = widen(a, layout, bits), widen(b, layout, bits)
    if name in ("num", "nan"):
        return Bits(x.b, x.b.ir.fcmp_ordered("ord" if name == "num" else "uno", x.value, y.value), 1)
    ordered = name in RELATIONS
    return x.compare(RELATIONS[name if ordered else name[:-1]], y, ordered)


def _combine(form: Form, value: Bits, c: Bits | None) -> Bits:
    if c is None:
        return value
    return {"and": value & c, "or": value | c, "xor": value ^ c}[form.modifiers["bool"] or ""]


def _compared(form: Form) -> ScalarType:
    """The type of the operands compared."""
    kind = next(spec for spec in form.operands if not spec.written).type
    assert kind is not None
    return kind


@semantics("setp")
def _setp(form: Form, a: Bits, b: Bits, c: Bits | None = None) -> Any:
    holds = _relation(form, _compared(form), a, b)
    d = _combine(form, holds, c)
    return (d, _combine(form, ~holds, c)) if form.operands[1].written else d


@semantics("setp_pair")
def _setp_pair(form: Form, a: Bits, b: Bits, c: Bits | None = None) -> Any:
    kind = _compared(form)
    halves = [_relation(form, kind, x, y) for x, y in zip(a.parts(16), b.parts(16))]
    return tuple(_combine(form, half, c) for half in halves)


@semantics("set")
def _set(form: Form, a: Bits, b: Bits, c: Bits | None = None) -> Bits:
    kind, target = _compared(form), form.operands[0].type
    assert target is not None
    lanes = kind.lanes
    holds = _relation(form, kind, a.unpack(lanes), b.unpack(lanes))
    holds = _combine(form, holds, None if c is None else c.sext(kind.bits).unpack(lanes).ne(0))
    bits = target.bits // lanes
    if target.is_float:
        layout = format_of(target)
        return holds.pick(holds.b.bits(bits, layout.bias << layout.mantissa), 0).pack(lanes)
    return (holds.zext(bits) if target.lanes > 1 else holds.sext(bits)).pack(lanes)


@semantics("selp")
def _selp(_: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    return c.pick(a, b)


@semantics("slct")
def _slct(form: Form, a: Bits, b: Bits, c: Bits) -> Bits:
    if form.operands[3].type is None or not form.operands[3].type.is_float:
        return c.ge(0, signed=True).pick(a, b)
    selector = flush(c, FORMATS["f32"]) if "ftz" in form.tokens else c
    return selector.reals().compare(">=", 0.0).pick(a, b)
