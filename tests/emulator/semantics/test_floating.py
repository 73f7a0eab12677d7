"""Floating-point arithmetic of every format, rounding and modifier against exact fractions, bit for bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from semantics_harness import Case, Outcomes
from semantics_reference import (
    LAYOUTS, add, clamp01, decode, divide, encode, flush, multiply, relu, root,
)
from semantics_samples import floats, near

COUNT = 192
MODES = ("rn", "rz", "rm", "rp")


class Check(NamedTuple):
    mnemonic: str
    operation: str
    name: str


def _checks() -> list[Check]:
    checks = []
    for operation in ("add", "sub", "mul"):
        for mode in ("", *(f".{m}" for m in MODES)):
            checks += [Check(f"{operation}{mode}{m}.f32", operation, "f32") for m in ("", ".ftz", ".sat", ".ftz.sat")]
            checks += [Check(f"{operation}{mode}{m}.f32x2", operation, "f32") for m in ("", ".ftz")]
            checks.append(Check(f"{operation}{mode}.f64", operation, "f64"))
        for mode in ("", ".rn"):
            for kind in ("f16", "f16x2"):
                checks += [Check(f"{operation}{mode}{m}.{kind}", operation, "f16")
                           for m in ("", ".ftz", ".sat", ".ftz.sat")]
            checks += [Check(f"{operation}{mode}.{kind}", operation, "bf16") for kind in ("bf16", "bf16x2")]
    for mode in MODES:
        for m in ("", ".ftz", ".sat", ".ftz.sat"):
            checks += [Check(f"{opcode}.{mode}{m}.f32", "fma", "f32") for opcode in ("fma", "mad")]
        checks += [Check(f"fma.{mode}{m}.f32x2", "fma", "f32") for m in ("", ".ftz")]
        checks += [Check(f"{opcode}.{mode}.f64", "fma", "f64") for opcode in ("fma", "mad")]
        for operation in ("div", "rcp", "sqrt"):
            checks += [Check(f"{operation}.{mode}{m}.f32", operation, "f32") for m in ("", ".ftz")]
            checks.append(Check(f"{operation}.{mode}.f64", operation, "f64"))
    for kind in ("f16", "f16x2"):
        checks += [Check(f"fma.rn{m}.{kind}", "fma", "f16")
                   for m in ("", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu", ".oob", ".oob.relu")]
    for kind in ("bf16", "bf16x2"):
        checks += [Check(f"fma.rn{m}.{kind}", "fma", "bf16") for m in ("", ".relu", ".oob", ".oob.relu")]
    return checks


CHECKS = _checks()
ARITY = {"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}


def _pack(codes: np.ndarray, mnemonic: str, name: str) -> np.ndarray:
    """Pairs of elements in one number where the form is packed."""
    if not mnemonic.endswith("x2"):
        return codes
    return codes[0::2] | (codes[1::2] << np.uint64(LAYOUTS[name].bits))


def _elements(check: Check) -> list[np.ndarray]:
    count = COUNT * (2 if check.mnemonic.endswith("x2") else 1)
    first = floats(check.mnemonic, check.name, count)
    second = floats(check.mnemonic + "b", check.name, count)
    close = near(check.mnemonic, check.name, first)
    half = np.arange(count) % 4 < 2
    third = floats(check.mnemonic + "c", check.name, count)
    if check.operation == "fma":
        products = np.array([_product(a, b, check) for a, b in zip(first, second)], np.uint64)
        third = np.where(half, near(check.mnemonic + "p", check.name, products), third)
    else:
        second = np.where(half, close, second)
    if ".oob" in check.mnemonic:
        for array, every in ((first, 7), (second, 11)):
            array[::every] = 0xFFFF
    return [first, second, third][: ARITY[check.operation]]


def _product(a: int, b: int, check: Check) -> int:
    layout = LAYOUTS[check.name]
    value, sign = multiply(decode(int(a), layout), decode(int(b), layout))
    return encode(value, layout, sign=sign)


@pytest.fixture(scope="module")
def outcome() -> Outcomes:
    def case(number: int, arrays: list[np.ndarray]) -> Case:
        check = CHECKS[number]
        return Case(check.mnemonic, tuple(_pack(codes, check.mnemonic, check.name) for codes in arrays))

    return Outcomes([check.mnemonic for check in CHECKS], lambda number: _elements(CHECKS[number]), case)


def _expected(check: Check, codes: tuple[int, ...]) -> int:
    layout, parts = LAYOUTS[check.name], check.mnemonic.split(".")
    mode = next((part for part in parts if part in MODES), "rn")
    if "ftz" in parts:
        codes = tuple(flush(code, layout) for code in codes)
    if "oob" in parts and 0xFFFF in codes[:2]:
        return 0
    x = [decode(code, layout) for code in codes]
    one = (decode(layout.bias << layout.mantissa, layout)[0], 0)
    if check.operation == "add":
        value = add(x[0], x[1], mode)
    elif check.operation == "sub":
        value = add(x[0], (-x[1][0], 1 - x[1][1]), mode)
    elif check.operation == "mul":
        value = multiply(x[0], x[1])
    elif check.operation == "fma":
        value = add(multiply(x[0], x[1]), x[2], mode)
    elif check.operation == "sqrt":
        value = root(x[0])
    else:
        value = divide(*([one, *x] if check.operation == "rcp" else x))
    if "sat" in parts:
        value = clamp01(value)
    if "relu" in parts:
        value = relu(value)
    code = encode(value[0], layout, mode, sign=value[1])
    return flush(code, layout) if "ftz" in parts else code


def _isnan(code: int) -> bool:
    value = decode(code, LAYOUTS["f64"])[0]
    return value != value


@pytest.mark.parametrize("check", CHECKS, ids=[check.mnemonic for check in CHECKS])
def test_arithmetic(check: Check, outcome: Outcomes) -> None:
    arrays, (packed,) = outcome[check.mnemonic]
    layout = LAYOUTS[check.name]
    got = packed.astype(np.uint64)
    if check.mnemonic.endswith("x2"):
        mask = np.uint64((1 << layout.bits) - 1)
        got = np.stack([got & mask, got >> np.uint64(layout.bits)], 1).ravel()
    wrong = []
    for at, codes in enumerate(zip(*arrays)):
        sources = tuple(int(code) for code in codes)
        wanted = _expected(check, sources)
        result = int(got[at])
        if check.name == "f64" and _isnan(result) and _isnan(wanted):
            continue  # the payload of an f64 NaN is the host's
        if result != wanted:
            wrong.append((*map(hex, sources), "gave", hex(result), "not", hex(wanted)))
    assert not wrong, f"{check.mnemonic}: {len(wrong)} of {len(got)} wrong: {wrong[:3]}"
