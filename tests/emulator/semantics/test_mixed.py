"""Arithmetic on mixed formats, and on four narrow floats at a time, against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from semantics_harness import Case, Outcomes, spellings
from semantics_reference import LAYOUTS, NAN, Number, add, clamp01, decode, encode, flush, multiply
from semantics_samples import SEED, floats, generator, integers

from ptxdsl.isa import Form

COUNT = 128
PICKED = 48
"""How many of the 896 forms on narrow floats are tried in a run, at random."""


def _forms() -> list[Form]:
    forms = [form for opcode in ("add", "sub", "mul", "fma") for form in spellings(opcode) if form.type.is_float]
    pairs = [form for form in forms if form.operands[0].type.lanes < 4]
    wide = [form for form in pairs if len({spec.type for spec in form.operands}) > 1]
    narrow = [form for form in forms if form.operands[0].type.lanes == 4]
    chosen = np.random.default_rng(SEED).permutation(len(narrow))[:PICKED]
    return wide + [narrow[at] for at in sorted(chosen)]


FORMS = _forms()


def _element(kind: Any) -> str:
    name = str(kind)
    return name if kind.lanes == 1 else name[: name.rindex("x")]


def _operand(kind: Any, salt: str) -> np.ndarray:
    name, slot = _element(kind).removesuffix("p4"), kind.bits // kind.lanes
    whole = np.zeros(COUNT, np.uint64)
    for lane in range(kind.lanes):
        if name == "ue8m0":
            close = generator(f"{salt}{lane}").integers(118, 136, COUNT, dtype=np.uint64)
            codes = np.where(np.arange(COUNT) % 4 > 0, close, integers(f"{salt}{lane}w", 8, COUNT))
        else:
            codes = floats(f"{salt}{lane}", name, COUNT)
        whole |= codes << np.uint64(slot * lane)
    return whole


@pytest.fixture(scope="module")
def outcome() -> Outcomes:
    def sources(number: int) -> list[np.ndarray]:
        form = FORMS[number]
        return [_operand(spec.type, f"{form.mnemonic}{at}") for at, spec in enumerate(form.operands[1:])]

    return Outcomes(
        [form.mnemonic for form in FORMS], sources, lambda number, given: Case(FORMS[number].mnemonic, tuple(given))
    )


def _number(code: int, kind: Any, parts: list[str]) -> tuple[Number, int]:
    name = _element(kind).removesuffix("p4")
    if name == "ue8m0":
        return (NAN if code == 255 else Fraction(2) ** (code - 127)), 0
    code &= (1 << LAYOUTS[name].bits) - 1
    return decode(flush(code, LAYOUTS[name]) if "ftz" in parts and name in ("f32", "f16") else code, LAYOUTS[name])


def _expected(form: Form, sources: tuple[int, ...]) -> int:
    parts, target = form.mnemonic.split("."), form.operands[0].type
    layout, slot, whole = LAYOUTS[_element(target)], target.bits // target.lanes, 0
    default = "rz" if _element(form.operands[1].type) == "f32" and layout.bits == 16 else "rn"
    mode = next((part for part in parts if part in ("rn", "rz", "rm", "rp")), default)
    for lane in range(target.lanes):
        numbers = []
        for spec, source in zip(form.operands[1:], sources):
            size = spec.type.bits // target.lanes
            numbers.append(_number(source >> size * lane & ((1 << size) - 1), spec.type, parts))
        if parts[0] in ("mul", "fma"):
            numbers[:2] = [multiply(numbers[0], numbers[1])]
        if parts[0] == "sub":
            numbers[1] = (-numbers[1][0], 1 - numbers[1][1])
        value = numbers[0] if parts[0] == "mul" else add(numbers[0], numbers[1], mode)
        if "sat" in parts:
            value = clamp01(value)
        whole |= _encode(value, layout, mode, parts) << slot * lane
    return whole


def _encode(value: tuple[Number, int], layout: Any, mode: str, parts: list[str]) -> int:
    finite = "satfinite" in parts
    code = encode(value[0], layout, mode, sign=value[1], finite=finite)
    if layout is LAYOUTS["e4m3"] and not finite and value[0] == value[0]:
        beyond = encode(value[0], layout._replace(exponent=7, nan=None), mode, sign=value[1])
        if beyond & 0x3FF > 0x7E:
            code = code & 0x80 | 0x7F
    return flush(code, layout) if "ftz" in parts and layout.bits > 8 else code


@pytest.mark.parametrize("form", FORMS, ids=[form.mnemonic for form in FORMS])
def test_mixed(form: Form, outcome: Outcomes) -> None:
    sources, (results,) = outcome[form.mnemonic]
    wrong = []
    for at in range(COUNT):
        inputs = tuple(int(source[at]) for source in sources)
        wanted, got = _expected(form, inputs), int(results[at])
        if got != wanted:
            wrong.append((*map(hex, inputs), "gave", hex(got), "not", hex(wanted)))
    assert not wrong, f"{form.mnemonic}: {len(wrong)} wrong: {wrong[:3]}"
