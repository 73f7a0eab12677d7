"""The video instructions, on random parts of registers, against Python integers."""

from __future__ import annotations


import numpy as np
import pytest
from semantics_harness import Case, Outcomes, spellings
from semantics_reference import signed
from semantics_samples import SEED, integers

from ptxdsl.isa import Form, opcodes

COUNT = 64
PICKED = 240
"""How many of the 3,000 forms are tried in a run, at random."""
SCALAR = ("b0", "b1", "b2", "b3", "h0", "h1")


def _forms() -> list[Form]:
    every = [form for opcode in opcodes() if opcode[0] == "v" and opcode != "vote" for form in spellings(opcode)]
    chosen = np.random.default_rng(SEED).permutation(len(every))[:PICKED]
    return [every[at] for at in sorted(chosen)]


FORMS = _forms()


def _selectors(form: Form, rng: np.random.Generator) -> tuple[str, ...]:
    """Parts for each operand, as its pattern and the form allow."""
    result = []
    count = int(form.opcode[-1]) if form.opcode[-1] in "24" else 1
    for spec in form.operands:
        selector = ""
        if spec.selector and (spec.selected or rng.random() < 0.7):
            if count == 1:
                selector = SCALAR[int(rng.integers(6))]
            elif spec.written:
                kept = [d for d in range(count - 1, -1, -1) if rng.random() < 0.6] or [0]
                selector = "hb"[count == 4] + "".join(map(str, kept))
            else:
                selector = "hb"[count == 4] + "".join(str(int(d)) for d in rng.integers(0, 2 * count, count))
        if spec.negatable and rng.random() < 0.5:
            selector = "-" + selector
        result.append(selector)
    return tuple(result)


RNG = np.random.default_rng([SEED, 7])
CASES = [(form, _selectors(form, RNG)) for form in FORMS]


@pytest.fixture(scope="module")
def outcome() -> Outcomes:
    def sources(number: int) -> list[np.ndarray]:
        form, _ = CASES[number]
        return [integers(f"{form.mnemonic}{at}", 32, COUNT) for at in range(len(form.operands) - 1)]

    def case(number: int, given: list[np.ndarray]) -> Case:
        form, parts = CASES[number]
        return Case(form.mnemonic, tuple(given), selectors=parts)

    return Outcomes(range(len(CASES)), sources, case)


# ---------------------------------------------------------------------------------------------------------------------
# The reference


def _clamp(value: int, kind: str, bits: int) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "s32" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _part(value: int, kind: str, selector: str) -> int:
    bits = {"b": 8, "h": 16}.get(selector[:1], 32)
    field = value >> bits * int(selector[1:] or 0) & ((1 << bits) - 1)
    return signed(field, bits) if kind == "s32" else field


def _operate(name: str, a: int, b: int, parts: list[str]) -> int:
    if name == "set":
        relation = next(p for p in parts if p in ("eq", "ne", "lt", "le", "gt", "ge"))
        return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[relation])
    if name == "avrg":
        return (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1
    if name in ("shl", "shr"):
        count = min(b, 32) if "clamp" in parts else b & 31
        return a << count if name == "shl" else a >> count
    return {"add": a + b, "sub": a - b, "absdiff": abs(a - b), "min": min(a, b), "max": max(a, b)}[name]


def _scalar(form: Form, selectors: tuple[str, ...], sources: list[int]) -> int:
    parts = form.mnemonic.split(".")
    name, kinds = parts[0][1:], [p for p in parts if p in ("u32", "s32")]
    kind, first, second = kinds if name != "set" else ["u32", *kinds]
    value = _operate(name, _part(sources[0], first, selectors[1]), _part(sources[1], second, selectors[2]), parts)
    bits = {"b": 8, "h": 16}.get(selectors[0][:1], 32)
    if "sat" in parts:
        value = _clamp(value, kind, bits)
    if len(sources) < 3:
        return value & 0xFFFFFFFF
    c = signed(sources[2], 32) if kind == "s32" else sources[2]
    if parts[-1] in ("add", "min", "max"):
        return {"add": value + c, "min": min(value, c), "max": max(value, c)}[parts[-1]] & 0xFFFFFFFF
    mask = ((1 << bits) - 1) << bits * int(selectors[0][1:])
    return value << bits * int(selectors[0][1:]) & mask | sources[2] & ~mask & 0xFFFFFFFF


def _mad(form: Form, selectors: tuple[str, ...], sources: list[int]) -> int:
    parts = form.mnemonic.split(".")
    _, first, second = [p for p in parts if p in ("u32", "s32")]
    minus = [selector.startswith("-") for selector in selectors]
    final = "s32" in (first, second) or minus[1] ^ minus[2] or minus[3]
    product = _part(sources[0], first, selectors[1].lstrip("-")) * _part(sources[1], second, selectors[2].lstrip("-"))
    c = signed(sources[2], 32) if final else sources[2]
    total = (-product if minus[1] ^ minus[2] else product) + (-c if minus[3] else c) + ("po" in parts)
    total >>= next((int(p[3:]) for p in parts if p.startswith("shr")), 0)
    return (_clamp(total, "s32" if final else "u32", 32) if "sat" in parts else total) & 0xFFFFFFFF


def _simd(form: Form, selectors: tuple[str, ...], sources: list[int]) -> int:
    parts = form.mnemonic.split(".")
    name, count = parts[0][1:-1], int(parts[0][-1])
    bits, kinds = 32 // count, [p for p in parts if p in ("u32", "s32")]
    kind, first, second = kinds if name != "set" else ["u32", *kinds]
    a, b, c = sources
    both = b << 32 | a
    order = [[int(digit) for digit in selectors[i][1:]][::-1] or [base + at for at in range(count)]
             for i, base in ((1, 0), (2, count))]

    def field(at: int, of: str) -> int:
        value = both >> bits * at & ((1 << bits) - 1)
        return signed(value, bits) if of == "s32" else value

    values = [_operate(name, field(x, first), field(y, second), parts) for x, y in zip(*order)]
    if "sat" in parts:
        values = [_clamp(value, kind, bits) for value in values]
    written = [int(d) for d in selectors[0][1:]] or list(range(count))
    if parts[-1] == "add":
        return c + sum(values[at] for at in written) & 0xFFFFFFFF
    fields = [values[at] if at in written else c >> bits * at for at in range(count)]
    return sum((value & ((1 << bits) - 1)) << bits * at for at, value in enumerate(fields))


@pytest.mark.parametrize("index", range(len(CASES)), ids=[
    f"{form.mnemonic}-{len(form.operands)}{''.join(f',{s}' for s in parts)}" for form, parts in CASES
])
def test_video(index: int, outcome: Outcomes) -> None:
    form, selectors = CASES[index]
    sources, (results,) = outcome[index]
    reference = _mad if form.opcode == "vmad" else _simd if form.opcode[-1] in "24" else _scalar
    wrong = []
    for at in range(COUNT):
        inputs = [int(source[at]) for source in sources]
        wanted, got = reference(form, selectors, inputs), int(results[at])
        if got != wanted:
            wrong.append((*map(hex, inputs), "gave", hex(got), "not", hex(wanted)))
    assert not wrong, f"{form.mnemonic} {selectors}: {len(wrong)} wrong: {wrong[:3]}"
