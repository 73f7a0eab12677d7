"""mma and wmma of every kind that the emulator has, as PTX: fragments are packed here, by the manual's formulas."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from matrix_harness import BITS, LANES, codes, drawn, packed, registers, run_mma, sizes_of

import ptxdsl
from ptxdsl.isa import lookup

Rng = np.random.Generator


def multiplied(a: Any, b: Any, op: str) -> Any:
    """a @ b, or of single bits the ones in what ``op`` makes of each row and column."""
    if not op:
        return a @ b
    return (a[:, :, None] ^ b[None] if op == "xor" else a[:, :, None] & b[None]).sum(1)


MMA = [
    ("m16n8k8", "tf32", "tf32", "f32", ""), ("m16n8k4", "tf32", "tf32", "f32", ""),
    *[(shape, left, right, "s32", "") for shape in ("m8n8k16", "m16n8k16", "m16n8k32")
      for left, right in (("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8"))],
    *[(shape, left, right, "s32", "") for shape in ("m8n8k32", "m16n8k32", "m16n8k64")
      for left, right in (("s4", "s4"), ("u4", "s4"), ("u4", "u4"))],
    *[(shape, "b1", "b1", "s32", op) for shape in ("m8n8k128", "m16n8k128", "m16n8k256") for op in ("xor", "and")],
    *[(shape, "f64", "f64", "f64", "") for shape in ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16")],
    *[("m16n8k32", left, right, "f32", "") for left in ("e4m3", "e5m2") for right in ("e4m3", "e5m2")],
    ("m16n8k16", "e4m3", "e5m2", "f32", ""),
]


@pytest.mark.parametrize("case", MMA, ids="-".join)
def test_mma(case: tuple[str, str, str, str, str], rng: Rng) -> None:
    shape, left, right, result, op = case
    m, n, k = sizes_of(shape)
    a, b, c = drawn(rng, left, (m, k)), drawn(rng, right, (k, n)), drawn(rng, result, (m, n))
    mnemonic = f"mma.sync.aligned.{shape}.row.col.{result}.{left}.{right}.{result}" + (f".{op}.popc" if op else "")
    out = run_mma(
        mnemonic, packed(a, shape, left, "a"), packed(b, shape, right, "b"),
        packed(c, shape, left, "c", result),
    )
    expected = multiplied(a, b, op) + c
    np.testing.assert_array_equal(out, packed(expected, shape, left, "c", result))


@pytest.mark.parametrize("satfinite", [False, True])
def test_the_sum_of_integers_wraps_or_is_clamped(satfinite: bool) -> None:
    shape, high = "m16n8k32", 2**31 - 1
    a, b = np.full((16, 32), 100), np.full((32, 8), 100)
    b[:, 4:] = -100
    c = np.where(b[:1] > 0, high - 5, -high)
    c = np.repeat(c, 16, 0)
    exact = c.astype(object) + (a @ b).astype(object)
    expected = np.clip(exact, -high - 1, high) if satfinite else (exact + high + 1) % 2**32 - high - 1
    mnemonic = f"mma.sync.aligned.{shape}.row.col{'.satfinite' * satfinite}.s32.s8.s8.s32"
    left, right, start = packed(a, shape, "s8", "a"), packed(b, shape, "s8", "b"), packed(c, shape, "s8", "c", "s32")
    out = run_mma(mnemonic, left, right, start)
    np.testing.assert_array_equal(out, packed(expected.astype(np.int64), shape, "s8", "c", "s32"))


def test_tf32_does_not_see_the_lowest_bits() -> None:
    shape = "m16n8k8"
    a, b, c = np.ones((16, 8)), np.ones((8, 8)), np.zeros((16, 8))
    left = packed(a, shape, "tf32", "a") | np.uint32(0x1FFF)
    right, start = packed(b, shape, "tf32", "b"), packed(c, shape, "tf32", "c", "f32")
    out = run_mma(f"mma.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32", left, right, start)
    assert set(out.view(np.float32).reshape(-1)) == {8.0}


def directed(a: float, b: float, c: float, mode: str) -> float:
    """a * b + c of f64, rounded once, from exact fractions."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = float(exact)
    down, up = (math.nextafter(near, towards) for towards in (-math.inf, math.inf))
    low, high = (near, up) if Fraction(near) <= exact else (down, near)
    if Fraction(low) == exact or Fraction(high) == exact:
        return near
    return {"rm": low, "rp": high, "rz": low if exact > 0 else high, "rn": near}[mode]


@pytest.mark.parametrize(("shape", "mode"), [("m8n8k4", "rm"), ("m16n8k4", "rz"), ("m16n8k8", "rp"), ("m8n8k4", "rn")])
def test_f64_rounds_in_each_direction(shape: str, mode: str, rng: Rng) -> None:
    m, n, k = sizes_of(shape)
    a, b, c = (rng.standard_normal(size) * 2.0 ** rng.integers(-30, 30, size) for size in ((m, k), (k, n), (m, n)))
    expected = c.copy()
    for at in np.ndindex(m, n):
        for step in range(k):
            expected[at] = directed(a[at[0], step], b[step, at[1]], expected[at], mode)
    out = run_mma(
        f"mma.sync.aligned.{shape}.row.col.{mode}.f64.f64.f64.f64", packed(a, shape, "f64", "a"),
        packed(b, shape, "f64", "b"), packed(c, shape, "f64", "c", "f64"),
    )
    np.testing.assert_array_equal(out, packed(expected, shape, "f64", "c", "f64"))


def quad_pair(which: str, lane: int, item: int, order: str = "row", wide: bool = False) -> tuple[int, int]:
    """Row and column of element ``item`` of a lane, in its own of the four products of mma.m8n8k4 of f16."""
    high, t = 4 * (lane >= 16), lane % 4
    if which == "c":
        return ((t & 1) + (item & 2) + high, (item & 4) + (t & 2) + (item & 1)) if wide else (t + high, item)
    along, line = (item, t + high) if (which == "a") == (order == "row") else (t, item + high)
    return (line, along) if which == "a" else (along, line)


@pytest.mark.parametrize("case", [
    ("row", "col", "f32", "f32"), ("col", "row", "f32", "f16"), ("row", "row", "f16", "f16"),
    ("col", "col", "f32", "f32"),
], ids="-".join)
def test_four_products_of_quad_pairs(case: tuple[str, str, str, str], rng: Rng) -> None:
    rows, columns, result, addend = case
    a, b, c = (drawn(rng, "f16", (4, *size)) for size in ((8, 4), (4, 8), (8, 8)))
    arrays = {}
    for name, matrix, order, kind in (("a", a, rows, "f16"), ("b", b, columns, "f16"), ("c", c, "", addend)):
        count = 8 if name == "c" else 4
        held = np.zeros((LANES, count), np.float32 if kind == "f32" else np.float16)
        for lane in range(LANES):
            for item in range(count):
                held[lane, item] = matrix[lane % 16 // 4][quad_pair(name, lane, item, order, kind == "f32")]
        arrays[name] = held.view(np.uint32)
    out = run_mma(
        f"mma.sync.aligned.m8n8k4.{rows}.{columns}.{result}.f16.f16.{addend}", *arrays.values(),
        8 if result == "f32" else 4,
    ).view(np.float32 if result == "f32" else np.float16)
    expected = a @ b + c
    for lane in range(LANES):
        for item in range(8):
            at = quad_pair("c", lane, item, wide=result == "f32")
            assert out[lane, item] == expected[lane % 16 // 4][at]


# ---------------------------------------------------------------------------------------------------------------------
# wmma: fragments are the emulator's own, so only what goes from memory to memory can be seen


def memory(matrix: Any, order: str, stride: int, kind: str) -> Any:
    """A matrix in memory, its rows or columns ``stride`` elements apart, packed below a byte."""
    lines = matrix if order == "row" else matrix.T
    whole = np.zeros((lines.shape[0], stride), lines.dtype)
    whole[:, : lines.shape[1]] = lines
    bits, table = BITS.get(kind, 32), codes(whole, kind)
    if bits >= 8:
        return table.astype(f"u{bits // 8}").reshape(-1)
    per = 8 // bits
    rows = table.reshape(-1, per)
    return np.array([sum(int(v) << bits * i for i, v in enumerate(row)) for row in rows], np.uint8)


def wmma_text(shape: str, kind: str, addend: str, orders: tuple[str, str, str], op: str) -> str:
    rows, columns, result = orders
    spelled = f"{addend}.{addend}" if kind == "f16" else f"{addend}.{kind}.{kind}.{addend}"
    middle = f"{op}.popc." if op else ""
    loads = [
        f"wmma.load.{name}.sync.aligned.{order}.{shape}.global.{what}"
        for name, order, what in (("a", rows, kind), ("b", columns, kind), ("c", result, addend))
    ]
    product = f"wmma.mma.{middle}sync.aligned.{rows}.{columns}.{shape}.{spelled}"
    store = f"wmma.store.d.sync.aligned.{result}.{shape}.global.{addend}"
    form = next(form for form in lookup(product) if len(form.operands) == 4)
    counts = dict(zip("dabc", (max(spec.count, 1) for spec in form.operands)))
    wide = kind == "f64"
    kinds = {name: "f64" if wide else "f32" if addend == "f32" and name in "dc" else "b32" for name in "dabc"}
    lines = [".reg .b64 %rd<4>; .reg .b32 %s<4>;"]
    lines += [f".reg .{kinds[name]} %{name}<{count}>;" for name, count in counts.items()]
    for number, name in enumerate("abcd"):
        lines += [f"ld.param.u64 %rd{number}, [{name}]; ld.param.u32 %s{number}, [s{name}];"]
    lists = {name: registers(count, name) for name, count in counts.items()}
    for number, (load, name) in enumerate(zip(loads, "abc")):
        lines.append(f"{load} {lists[name]}, [%rd{number}], %s{number};")
    lines.append(f"{product} {lists['d']}, {lists['a']}, {lists['b']}, {lists['c']};")
    lines.append(f"{store} [%rd3], {lists['d']}, %s3;")
    parameters = ", ".join([f".param .u64 {name}" for name in "abcd"] + [f".param .u32 s{name}" for name in "abcd"])
    body = "\n".join(lines)
    return f".version 8.7\n.target sm_120a\n.entry k({parameters}) {{\n{body}\nret;\n}}"


SQUARE = ("m16n16k16", "m32n8k16", "m8n32k16")
WMMA = [
    *[(shape, kind, addend, "") for shape in SQUARE
      for kind, addend in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32"))],
    ("m16n16k8", "tf32", "f32", ""), ("m8n8k4", "f64", "f64", ""),
    ("m8n8k32", "s4", "s32", ""), ("m8n8k32", "u4", "s32", ""), ("m8n8k128", "b1", "s32", "xor"),
    ("m8n8k128", "b1", "s32", "and"),
]


@pytest.mark.parametrize("case", WMMA, ids="-".join)
def test_wmma(case: tuple[str, str, str, str], rng: Rng) -> None:
    shape, kind, addend, op = case
    m, n, k = sizes_of(shape)
    a, b, c = drawn(rng, kind, (m, k)), drawn(rng, kind, (k, n)), drawn(rng, addend, (m, n))
    free = BITS[kind] >= 8
    orders = tuple(str(order) for order in rng.choice(["row", "col"], 3))
    rows, columns, result = orders if free else ("row", "col", orders[2])
    unit = 128 if BITS[kind] < 8 else 16
    lengths = [k if rows == "row" else m, n if columns == "row" else k, *[n if result == "row" else m] * 2]
    strides = [-(-length // unit) * unit + unit * int(rng.integers(0, 2)) for length in lengths]
    d = memory(np.zeros((m, n), np.int64), result, strides[3], addend)
    module = ptxdsl.load(wmma_text(shape, kind, addend, (rows, columns, result), op))
    arrays = [memory(x, order, stride, what) for x, order, stride, what in zip(
        (a, b, c), (rows, columns, result), strides, (kind, kind, addend))]
    module["k"].configure(1, 32, backend="emulator")(*arrays, d, *strides)
    np.testing.assert_array_equal(d, memory(multiplied(a, b, op) + c, result, strides[3], addend))
