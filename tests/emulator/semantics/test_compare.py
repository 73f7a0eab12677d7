"""Comparison, selection, sign, property, minimum and maximum instructions, in every form that the table spells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from semantics_harness import Case, Outcomes, spellings
from semantics_reference import LAYOUTS, decode, flush, signed
from semantics_samples import SEED, floats, integers, near

from ptxdsl.isa import Form

COUNT = 64
OPCODES = ("setp", "selp", "slct", "neg", "abs", "copysign", "testp", "min", "max")
PICKED = 120
"""How many of the forms of ``set`` are tried in a run, at random: there are thousands, all alike."""


def _forms() -> list[Form]:
    forms = [form for opcode in OPCODES for form in spellings(opcode)]
    chosen = np.random.default_rng(SEED).permutation(spellings("set"))[:PICKED]
    forms += sorted(chosen, key=lambda form: (form.mnemonic, len(form.operands)))
    return [form for form in forms if form.opcode not in ("min", "max", "neg", "abs") or form.type.is_float]


FORMS = _forms()


def _element(kind: Any) -> str:
    return str(kind) if kind.lanes == 1 else str(kind)[: str(kind).rindex("x")]


def _operand(kind: Any, salt: str, like: np.ndarray | None = None) -> np.ndarray:
    """Numbers of a type; with ``like`` half of them near or equal to those."""
    name, lanes = _element(kind), kind.lanes
    bits = kind.bits // lanes
    whole = np.zeros(COUNT, np.uint64)
    for lane in range(lanes):
        place = np.uint64(bits * lane)
        part = floats(f"{salt}{lane}", name, COUNT) if name in LAYOUTS else integers(f"{salt}{lane}", bits, COUNT)
        if like is not None:
            old = like >> place & np.uint64((1 << bits) - 1)
            close = near(f"{salt}{lane}n", name, old) if name in LAYOUTS else old
            third = np.arange(COUNT) % 3
            part = np.where(third == 0, part, np.where(third == 1, close, old))
        whole |= part << place
    return whole


def _sources(form: Form) -> tuple[np.ndarray, ...]:
    result: list[np.ndarray] = []
    for at, spec in enumerate(spec for spec in form.operands if not spec.written):
        same = result and spec.type is not None and spec.type.bits == _bits(form, 0) and spec.type.bits > 1
        result.append(_operand(spec.type, f"{form.mnemonic}{at}", result[0] if same else None))
    return tuple(result)


def _bits(form: Form, source: int) -> int:
    return [spec for spec in form.operands if not spec.written][source].type.bits


@pytest.fixture(scope="module", params=[32, 1], ids=["varying", "uniform"])
def outcome(request: pytest.FixtureRequest) -> Outcomes:
    def case(number: int, sources: tuple[np.ndarray, ...]) -> Case:
        form = FORMS[number]
        return Case(form.mnemonic, sources, request.param, sum(spec.written for spec in form.operands))

    return Outcomes(range(len(FORMS)), lambda number: _sources(FORMS[number]), case)


# ---------------------------------------------------------------------------------------------------------------------
# The reference


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b, "hs": lambda a, b: a >= b,
}


def _compare(name: str, kind: str, parts: list[str], a: int, b: int) -> bool:
    if kind not in LAYOUTS:
        bits = int(kind[1:])
        return RELATIONS[name](*((signed(v, bits) if kind[0] == "s" else v) for v in (a, b)))
    layout = LAYOUTS[kind]
    if "ftz" in parts:
        a, b = flush(a, layout), flush(b, layout)
    x, y = decode(a, layout)[0], decode(b, layout)[0]
    unordered = x != x or y != y
    if name in ("num", "nan"):
        return unordered == (name == "nan")
    if name in RELATIONS:
        return not unordered and RELATIONS[name](x, y)
    return unordered or RELATIONS[name[:-1]](x, y)


def _combine(parts: list[str], value: bool, c: int | None) -> int:
    if c is None:
        return int(value)
    return {"and": value & c, "or": value | c, "xor": value ^ c}[next(p for p in parts if p in ("and", "or", "xor"))]


def _fields(kind: Any, value: int) -> list[int]:
    bits = kind.bits // kind.lanes
    return [value >> at & ((1 << bits) - 1) for at in range(0, kind.bits, bits)]


def _setp(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    kind = next(spec.type for spec in form.operands if not spec.written)
    c = s[2] if len(s) == 3 else None
    held = [_compare(parts[1], _element(kind), parts, a, b) for a, b in zip(_fields(kind, s[0]), _fields(kind, s[1]))]
    if kind.lanes == 2:
        return tuple(_combine(parts, h, c) for h in held)
    both = (_combine(parts, held[0], c), _combine(parts, not held[0], c))
    return both if form.operands[1].written else both[:1]


def _set(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    target, kind = form.operands[0].type, form.operands[1].type
    c, bits = s[2] if len(s) == 3 else None, target.bits // kind.lanes
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(_element(target), (1 << bits) - 1)
    if target.lanes > 1 and not target.is_float:
        one = 1
    held = [_compare(parts[1], _element(kind), parts, a, b) for a, b in zip(_fields(kind, s[0]), _fields(kind, s[1]))]
    return (sum(one << bits * at for at, h in enumerate(held) if _combine(parts, h, c)),)


def _select(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    return (s[0] if s[2] else s[1],)


def _select_sign(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    if parts[-1] == "s32":
        return (s[0] if signed(s[2], 32) >= 0 else s[1],)
    code = flush(s[2], LAYOUTS["f32"]) if "ftz" in parts else s[2]
    return (s[0] if decode(code, LAYOUTS["f32"])[0] >= 0 else s[1],)


def _sign(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    kind = form.operands[0].type
    layout, whole = LAYOUTS[_element(kind)], 0
    for at, code in enumerate(_fields(kind, s[0])):
        code = flush(code, layout) if "ftz" in parts else code
        top = 1 << (layout.bits - 1)
        if parts[0] == "neg":
            code ^= top
        elif not (_element(kind) == "f64" and decode(code, layout)[0] != decode(code, layout)[0]):
            code &= top - 1
        whole |= code << at * layout.bits
    return (whole,)


def _copysign(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    top = 1 << (form.operands[0].type.bits - 1)
    return (s[0] & top | s[1] & (top - 1),)


def _testp(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    layout = LAYOUTS[parts[2]]
    value = decode(s[0], layout)[0]
    nan, infinite = value != value, abs(value) == float("inf")
    subnormal = not nan and not infinite and value != 0 and flush(s[0], layout) != s[0]
    return (int({
        "finite": not nan and not infinite, "infinite": infinite, "number": not nan, "notanumber": nan,
        "normal": not nan and not infinite and not subnormal, "subnormal": subnormal,
    }[parts[1]]),)


def _extreme(form: Form, parts: list[str], s: tuple[int, ...]) -> tuple[int, ...]:
    kind = form.operands[0].type
    layout, whole = LAYOUTS[_element(kind)], 0
    for at, codes in enumerate(zip(*(_fields(kind, value) for value in s))):
        whole |= _extreme_element(layout, parts, list(codes)) << at * layout.bits
    return (whole,)


def _extreme_element(layout: Any, parts: list[str], codes: list[int]) -> int:
    top = 1 << (layout.bits - 1)
    if "ftz" in parts:
        codes = [flush(code, layout) for code in codes]
    sign = (codes[0] ^ codes[1]) & top
    if "abs" in parts:
        codes = [code & (top - 1) for code in codes]
    ranked = [(*decode(code, layout), code) for code in codes]
    numbers = [(value, -s, code) for value, s, code in ranked if value == value]
    if not numbers or ("NaN" in parts and len(numbers) < len(codes)):
        return layout.nan
    best = (min if parts[0] == "min" else max)(numbers)[2]
    return best & (top - 1) | sign if "xorsign" in parts else best


REFERENCES = {"setp": _setp, "set": _set, "selp": _select, "slct": _select_sign, "neg": _sign, "abs": _sign,
              "copysign": _copysign, "testp": _testp, "min": _extreme, "max": _extreme}


@pytest.mark.parametrize("index", range(len(FORMS)), ids=[f"{f.mnemonic}-{len(f.operands)}" for f in FORMS])
def test_compare(index: int, outcome: Outcomes) -> None:
    form = FORMS[index]
    sources, results = outcome[index]
    wrong = []
    for at in range(COUNT):
        inputs = tuple(int(source[at]) & ((1 << _bits(form, i)) - 1) for i, source in enumerate(sources))
        wanted = REFERENCES[form.opcode](form, form.mnemonic.split("."), inputs)
        got = tuple(int(result[at]) for result in results)
        free = str(form.type) == "f64" and form.opcode in ("min", "max") and _nan(got) and _nan(wanted)
        if got != wanted and not free:
            wrong.append((*map(hex, inputs), "gave", tuple(map(hex, got)), "not", tuple(map(hex, wanted))))
    assert not wrong, f"{form.mnemonic}: {len(wrong)} wrong: {wrong[:3]}"


def _nan(codes: tuple[int, ...]) -> bool:
    value = decode(codes[0], LAYOUTS["f64"])[0]
    return value != value
