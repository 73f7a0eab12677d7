"""``cvt``: every form that the table spells, against exact fractions, bit for bit."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from semantics_harness import Case, Outcomes, run, spellings
from semantics_reference import INF, LAYOUTS, NAN, Number, clamp01, decode, encode, flush, relu, signed
from semantics_samples import floats, generator, integers

from ptxdsl.isa import Form

COUNT = 64
INTEGRAL = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
FORMS = spellings("cvt")
EVERY = ("cvt.f32.f16", "cvt.f32.bf16", "cvt.rni.s32.f16", "cvt.rmi.s64.bf16", "cvt.rpi.f16.f16", "cvt.rz.f16.bf16",
         "cvt.rn.bf16.f16", "cvt.rn.f16.u16")
"""Forms with a source of 16 bits that are tried on many of its patterns, at random; pairs of bytes are on all bytes."""
MANY = 4096


def _element(kind: Any) -> str:
    name = str(kind)
    return name[: name.rindex("x")] if "x" in name else name


def _random(kind: str, salt: str, count: int) -> np.ndarray:
    """Codes of an element type."""
    if kind in LAYOUTS:
        return floats(salt, kind, count)
    bits = 8 if kind in ("ue8m0", "s2f6") else int(kind[1:])
    return integers(salt, bits, count)


def _operand(spec: Any, salt: str, count: int) -> np.ndarray:
    """Numbers for an operand: packed elements, each in its slot."""
    kind, lanes = _element(spec.type), spec.type.lanes
    slot = spec.type.bits // lanes
    whole = np.zeros(count, np.uint64)
    for lane in range(lanes):
        whole |= _random(kind, f"{salt}{lane}", count) << np.uint64(lane * slot)
    return whole


def _sources(form: Form) -> tuple[Any, ...]:
    specs = [spec for spec in form.operands if not spec.written]
    if len(specs) == 1 and specs[0].type.lanes == 2 and specs[0].type.bits <= 16:
        codes = np.arange(256, dtype=np.uint64)
        upper = generator(form.mnemonic).permutation(codes) << np.uint64(8)
        return (codes if specs[0].type.bits == 8 else codes | upper,)
    count = COUNT
    result: list[Any] = []
    for at, spec in enumerate(specs):
        salt = f"{form.mnemonic}{at}"
        if spec.count:
            result.append(tuple(_operand(spec, f"{salt}.{i}", count) for i in range(spec.count)))
        elif spec.name == "scale":
            near = generator(salt).integers(110, 145, count, dtype=np.uint64)
            wild = _operand(spec, salt, count)
            both = near | near << np.uint64(8) if spec.type.bits == 16 else near
            result.append(np.where(np.arange(count) % 3 < 2, both, wild))
        else:
            result.append(_operand(spec, salt, count))
    if form.mnemonic in EVERY:
        result[0] = np.sort(generator(form.mnemonic).permutation(1 << 16)[:MANY]).astype(np.uint64)
    return tuple(result)


@pytest.fixture(scope="module")
def outcome() -> Outcomes:
    return Outcomes(
        [form.mnemonic for form in FORMS], lambda number: _sources(FORMS[number]),
        lambda number, sources: Case(FORMS[number].mnemonic, sources),
    )


# ---------------------------------------------------------------------------------------------------------------------
# The reference


def _clamp(value: int, kind: str) -> int:
    bits = int(kind[1:])
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def _value(code: int, kind: str, parts: list[str]) -> tuple[Number, int]:
    """The number in a source element, and the sign of a zero."""
    if kind == "ue8m0":
        return (NAN if code == 255 else Fraction(2) ** (code - 127)), 0
    if kind == "s2f6":
        return Fraction(signed(code, 8), 64), 0
    layout = LAYOUTS[kind]
    code &= (1 << layout.bits) - 1
    if "ftz" in parts and kind == "f32":
        code = flush(code, layout)
    if "scaled::n1::ue8m0" in parts and flush(code, layout) != code:
        code = 0
    return decode(code, layout)


def _scaled(value: tuple[Number, int], scale: int, divide: bool) -> tuple[Number, int]:
    number, sign = value
    if scale == 255 or number != number:
        return NAN, 0
    if abs(number) == INF:
        return value
    return Fraction(number) * Fraction(2) ** ((127 - scale) if divide else (scale - 127)), sign


def _integral(value: tuple[Number, int], mode: str) -> tuple[Number, int]:
    number, sign = value
    if isinstance(number, float):
        return value
    whole = Fraction(INTEGRAL[mode](number))
    return whole, sign if number == 0 else int(number < 0)


def _to_integer(value: Number, kind: str, source: str, mode: str) -> int:
    bits = int(kind[1:])
    if value != value:
        return 1 << (bits - 1) if source == "f64" or bits == 64 else 0
    if isinstance(value, float):
        return _clamp((1 if value > 0 else -1) << 80, kind)
    return _clamp(INTEGRAL[mode](value), kind)


def _power(value: Number, mode: str, finite: bool) -> int:
    """ue8m0: the exponent of a magnitude."""
    if value != value:
        return 255
    top = 254 if finite else 255
    if abs(value) == INF:
        return top
    code, size = 0, abs(Fraction(value))
    while code < 255 and Fraction(2) ** (code - 127) < size:
        code += 1
    exact = Fraction(2) ** (code - 127) == size
    return min(code if mode == "rp" or exact else max(code - 1, 0), top)


def _unsigned(value: Number, mode: str, finite: bool) -> int:
    """ue5m3: of the magnitude."""
    layout = LAYOUTS["ue5m3"]
    if value != value or (abs(value) == INF and not finite):
        return 255
    if abs(value) == INF:
        return 254
    wide = layout._replace(exponent=7, nan=None)
    code = encode(abs(value), wide, mode)
    if code <= 254:
        return code
    return 254 if finite or mode == "rz" else 255


def _to_float(value: tuple[Number, int], kind: str, parts: list[str], random: tuple[int, int] | None) -> int:
    mode = next((part for part in parts if part in ("rn", "rna", "rz", "rm", "rp", "rs")), "rn")
    finite = "satfinite" in parts
    if "sat" in parts:
        value = clamp01(value)
    if "relu" in parts:
        value = relu(value)
    number, sign = value
    if kind == "ue8m0":
        return _power(number, mode, finite)
    if kind == "ue5m3":
        return _unsigned(number, mode, finite)
    if kind == "s2f6":
        if isinstance(number, float):
            return 127 if number != number or number > 0 else 128
        return min(max(INTEGRAL[mode + "i"](number * 64), -128), 127) & 255
    layout = LAYOUTS[kind]
    code = encode(number, layout, mode, sign=sign, finite=finite, random=random)
    if kind == "tf32":
        return 0x7FFFFFFF if number != number else code << 13
    if "pzo" in parts and code == 1 << (layout.bits - 1):
        code = 0
    return flush(code, layout) if "ftz" in parts and kind == "f32" else code


def _reversed(value: int) -> int:
    return int(f"{value:016b}"[::-1], 2)


def _rbits(kind: str, lanes: int, rbits: int) -> list[tuple[int, int]]:
    """The random bits of each element, the first first."""
    upper, lower = rbits >> 16, rbits & 0xFFFF
    if lanes == 2:
        count = 13 if kind == "f16" else 16
        return [(half & ((1 << count) - 1), count) for half in (upper, lower)]
    if kind == "e2m1":
        b = [rbits >> 8 * i & 255 for i in range(4)]
        upper, lower = b[3] << 8 | b[1], b[2] << 8 | b[0]
    return [(half, 16) for half in (_reversed(upper), upper, _reversed(lower), lower)]


def _expected(form: Form, sources: tuple[int, ...]) -> int:
    """``sources``: the operands' bits, those in braces one after the other."""
    parts = form.mnemonic.split(".")
    target, source = form.operands[0].type, form.operands[1].type
    if parts[1] == "pack":
        return _pack(parts[3], sources)
    kind, origin, lanes = _element(target), _element(source), target.lanes
    if lanes == 1 or source.lanes == lanes:
        step = source.bits // source.lanes
        elements = [sources[0] >> step * i & ((1 << step) - 1) for i in range(lanes)]
    else:
        elements = list(sources[:lanes])[::-1]
    random = _rbits(kind, lanes, sources[lanes])[::-1] if "rs" in parts else [None] * lanes
    scales: list[int] | None = None
    if any(part.startswith("scaled") for part in parts):
        scales = [sources[-1] >> (8 * i if "n2" in form.mnemonic else 0) & 255 for i in range(lanes)]
    slot, whole = target.bits // lanes, 0
    for at, code in enumerate(elements):
        whole |= _convert(code, kind, origin, parts, random[at], scales[at] if scales else None) << slot * at
    return whole


def _convert(code: int, kind: str, origin: str, parts: list[str], random: Any, scale: int | None) -> int:
    mode = next((part for part in parts if part in INTEGRAL), None)
    integer = kind[0] in "us" and kind[1:].isdigit()
    if origin[0] in "us" and origin[1:].isdigit():
        value = signed(code, int(origin[1:])) if origin[0] == "s" else code
        if integer:
            return (_clamp(value, kind) if "sat" in parts else value) & ((1 << int(kind[1:])) - 1)
        return _to_float((Fraction(value), 0), kind, parts, None)
    number = _value(code, origin, parts)
    if integer:
        assert mode is not None
        return _to_integer(number[0], kind, origin, mode) & ((1 << int(kind[1:])) - 1)
    if mode is not None:
        number = _integral(number, mode)
    if scale is not None:
        number = _scaled(number, scale, divide=kind not in ("f16", "bf16"))
    return _to_float(number, kind, parts, random)


def _pack(kind: str, sources: tuple[int, ...]) -> int:
    size = int(kind[1:])
    low, high = (_clamp(signed(value, 32), kind) & ((1 << size) - 1) for value in (sources[1], sources[0]))
    above = sources[2] << 2 * size if len(sources) == 3 else 0
    return (above | high << size | low) & 0xFFFFFFFF


def _nan64(form: Form, code: int) -> bool:
    value = decode(code, LAYOUTS["f64"])[0]
    return str(form.operands[0].type) == "f64" and value != value


@pytest.mark.parametrize("form", FORMS, ids=[form.mnemonic for form in FORMS])
def test_cvt(form: Form, outcome: Outcomes) -> None:
    sources, (results,) = outcome[form.mnemonic]
    check(form, sources, results)


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", [form for form in FORMS if form.mnemonic in EVERY], ids=lambda form: form.mnemonic)
def test_every_pattern(form: Form) -> None:
    patterns = np.arange(1 << 16, dtype=np.uint64)
    ((results,),) = run([Case(form.mnemonic, (patterns,))])
    check(form, (patterns,), results)


def check(form: Form, sources: tuple[Any, ...], results: np.ndarray) -> None:
    flat = [array for item in sources for array in (item if isinstance(item, tuple) else (item,))]
    wrong = []
    for at in range(len(results)):
        inputs = tuple(int(array[at]) for array in flat)
        wanted, got = _expected(form, inputs), int(results[at])
        if got != wanted and not (_nan64(form, wanted) and _nan64(form, got)):
            wrong.append((*map(hex, inputs), "gave", hex(got), "not", hex(wanted)))
    assert not wrong, f"{form.mnemonic}: {len(wrong)} of {len(results)} wrong: {wrong[:3]}"


def test_every_pattern_is_tried() -> None:
    assert set(EVERY) <= {form.mnemonic for form in FORMS}
