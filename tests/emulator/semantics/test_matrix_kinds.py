"""mma and wmma of every kind that the emulator has, as PTX: fragments are packed here, by the manual's formulas."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxdsl
from ptxdsl.isa import lookup

Rng = np.random.Generator
LANES = 32
FLOATS: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
}
RANGES = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2), "s32": (-1000, 1000)}
BITS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "f16": 16, "bf16": 16}


def drawn(rng: Rng, kind: str, shape: tuple[int, int]) -> Any:
    """Small whole numbers, so that sums of floats are exact in any order."""
    low, high = RANGES.get(kind, (-6, 7))
    return rng.integers(low, high, shape)


def codes(values: Any, kind: str) -> Any:
    """The bits of each element, as Python integers."""
    bits = BITS.get(kind, 32)
    if kind in FLOATS:
        values = values.astype(FLOATS[kind]).view(f"u{max(bits, 8) // 8}")
    return values.astype(object) & ((1 << bits) - 1)


def places(shape: str, kind: str, which: str, lane: int) -> list[list[tuple[int, int]]]:
    """The elements in each register of a lane, the lowest first: Matrix Fragments in the manual."""
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    g, t, run = lane >> 2, lane & 3, max(1, 32 // BITS[kind])
    if which == "a":
        registers = m * k // LANES // run
        return [[(g + 8 * (r % (m // 8)), t * run + i + 4 * run * (r // (m // 8))) for i in range(run)]
                for r in range(registers)]
    if which == "b":
        return [[(t * run + i + 4 * run * r, g) for i in range(run)] for r in range(n * k // LANES // run)]
    return [[(g + 8 * (r // 2), 2 * t + r % 2)] for r in range(m * n // LANES)]


def packed(matrix: Any, shape: str, kind: str, which: str, as_kind: str | None = None) -> Any:
    """The registers of all lanes, one row a lane."""
    bits, table = BITS.get(as_kind or kind, 32), codes(matrix, as_kind or kind)
    rows = [
        [sum(int(table[at]) << bits * number for number, at in enumerate(register))
         for register in places(shape, kind, which, lane)]
        for lane in range(LANES)
    ]
    return np.array(rows, np.uint64 if bits == 64 else np.uint32)


def multiplied(a: Any, b: Any, op: str) -> Any:
    """a @ b, or of single bits the ones in what ``op`` makes of each row and column."""
    if not op:
        return a @ b
    return (a[:, :, None] ^ b[None] if op == "xor" else a[:, :, None] & b[None]).sum(1)


def registers(count: int, name: str) -> str:
    return "{" + ", ".join(f"%{name}{number}" for number in range(count)) + "}"


def run_mma(mnemonic: str, a: Any, b: Any, c: Any, wide: bool) -> Any:
    """One mma on the registers of each lane; those of the result."""
    size, letter = (8, "fd") if wide else (4, "r")
    parts, text = (("a", a), ("b", b), ("c", c)), []
    for name, array in parts:
        text += [f"ld.param.u64 %rd0, [{name}]; mad.lo.u64 %rd1, %rd2, {array.shape[1] * size}, %rd0;"]
        text += [f"ld.global.b{8 * size} %{name}{n}, [%rd1+{n * size}];" for n in range(array.shape[1])]
    lists = [registers(array.shape[1], name) for name, array in parts]
    stores = [f"st.global.b{8 * size} [%rd1+{n * size}], %c{n};" for n in range(c.shape[1])]
    kind = "f64" if letter == "fd" else "b32"
    declared = " ".join(f".reg .{kind} %{name}<{array.shape[1]}>;" for name, array in parts)
    lines = "\n".join([*text, f"{mnemonic} {lists[2]}, {lists[0]}, {lists[1]}, {lists[2]};", *stores])
    m = ptxdsl.load(f"""
.version 8.7
.target sm_120a
.entry k(.param .u64 a, .param .u64 b, .param .u64 c) {{
    .reg .b32 %t; .reg .b64 %rd<3>; {declared}
    mov.u32 %t, %tid.x;
    cvt.u64.u32 %rd2, %t;
    {lines}
    ret;
}}""")
    out = c.copy()
    m["k"].configure(1, 32, backend="emulator")(a, b, out)
    return out


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
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    a, b, c = drawn(rng, left, (m, k)), drawn(rng, right, (k, n)), drawn(rng, result, (m, n))
    mnemonic = f"mma.sync.aligned.{shape}.row.col.{result}.{left}.{right}.{result}" + (f".{op}.popc" if op else "")
    out = run_mma(
        mnemonic, packed(a, shape, left, "a"), packed(b, shape, right, "b"),
        packed(c, shape, left, "c", result), result == "f64",
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
    out = run_mma(mnemonic, left, right, start, False)
    np.testing.assert_array_equal(out, packed(expected.astype(np.int64), shape, "s8", "c", "s32"))


def test_tf32_does_not_see_the_lowest_bits() -> None:
    shape = "m16n8k8"
    a, b, c = np.ones((16, 8)), np.ones((8, 8)), np.zeros((16, 8))
    left = packed(a, shape, "tf32", "a") | np.uint32(0x1FFF)
    right, start = packed(b, shape, "tf32", "b"), packed(c, shape, "tf32", "c", "f32")
    out = run_mma(f"mma.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32", left, right, start, False)
    assert set(out.view(np.float32).reshape(-1)) == {8.0}


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
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
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
