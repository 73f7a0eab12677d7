"""The float64 twins of numbers against numpy's float64, instruction by instruction, and real results bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Ptr, bf16, config, f16, f16x2, f32, f64, local, loop, ptx, ptx_kernel, reg, select, shared, u32, when

pytestmark = pytest.mark.usefixtures("emulated")
Array = Any
THIRD = np.float32(1 / 3)
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-45, 3e38, 1.0, -1.0], np.float32)


def followed(kernel: Any, grid: Any, block: Any, *args: Any, outputs: list[Array], **named: Any) -> ptxdsl.numerics:
    """Launch without and with the twins: the outputs are the same to the bit; what the twins show."""
    before = [output.copy() for output in outputs]
    kernel.configure(grid, block)(*args, **named)
    plain = [output.copy() for output in outputs]
    for output, old in zip(outputs, before):
        output[...] = old
    launch = kernel.configure(grid, block, twin="float64")
    launch(*args, **named)
    for output, expected in zip(outputs, plain):
        assert output.tobytes() == expected.tobytes()
    return launch.numerics


# ---------------------------------------------------------------------------------------------------------------------
# Instructions: each gets operands whose twins differ from them


def _fma(a: Array, b: Array, c: Array) -> Array:
    """Rounded once: exact in longdouble but for ties, which the tolerance of the caller allows."""
    return np.float64(np.longdouble(a) * np.longdouble(b) + np.longdouble(c))


REFERENCES: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "fma": _fma, "div": np.divide, "rcp": lambda a: 1 / a,
    "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "neg": np.negative, "abs": np.abs, "min": np.fmin, "max": np.fmax, "copysign": lambda a, b:
    np.copysign(b, a),
}
F32 = [
    "add.f32", "sub.rz.ftz.f32", "mul.rp.f32", "fma.rn.f32", "fma.rn.sat.f32", "div.rn.f32", "div.full.f32",
    "div.approx.ftz.f32", "rcp.rn.f32", "rcp.approx.f32", "sqrt.rm.f32", "sqrt.approx.f32", "rsqrt.approx.f32",
    "ex2.approx.f32", "lg2.approx.f32", "sin.approx.f32", "cos.approx.f32", "tanh.approx.f32", "neg.f32", "abs.ftz.f32",
    "min.f32", "max.NaN.f32", "copysign.f32",
]
F64 = ["add.rn.f64", "fma.rn.f64", "rsqrt.approx.f64", "rcp.approx.ftz.f64"]
F16X2 = ["add.rn.f16x2", "sub.sat.f16x2", "mul.f16x2", "fma.rn.relu.f16x2", "neg.f16x2", "abs.f16x2", "min.f16x2",
         "max.NaN.f16x2"]
BF16 = ["fma.rn.bf16", "add.rn.bf16", "ex2.approx.ftz.bf16", "max.bf16", "tanh.approx.bf16"]
CLOSE = ("ex2", "lg2", "sin", "cos", "tanh", "fma", "rsqrt")
"""Where libraries, or the reference, may differ in the last places."""


TWO = ("add", "sub", "mul", "div", "min", "max", "copysign")


def _count(mnemonic: str) -> int:
    opcode = mnemonic.split(".", maxsplit=1)[0]
    return 3 if opcode == "fma" else 2 if opcode in TWO else 1


def _expected(mnemonic: str, *operands: Array) -> Array:
    opcode, *tokens = mnemonic.split(".")
    given = operands[: _count(mnemonic)]
    with np.errstate(all="ignore"):
        result = REFERENCES[opcode](*given)
        if "NaN" in tokens:
            result = np.where(np.isnan(given).any(axis=0), np.nan, result)
        if "sat" in tokens:
            result = np.where(np.isnan(result), 0.0, np.clip(result, 0, 1))
        if "relu" in tokens:
            result = np.where(result <= 0, 0.0, result)
    return result


def _agree(found: Array, expected: Array, mnemonic: str) -> None:
    if mnemonic.split(".", maxsplit=1)[0] in CLOSE:
        np.testing.assert_allclose(found, expected, rtol=3e-15, atol=1e-300, err_msg=mnemonic)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=mnemonic)


@ptx_kernel
def every(x: Ptr[f32], y: Ptr[f32], z: Ptr[f32], out: Ptr[f32], *, names: tuple[str, ...] = ()):
    i = ptx.tid.x
    operands = x[i] * float(THIRD), y[i] * float(THIRD), z[i] * float(THIRD)
    for n, name in enumerate(names):
        out[i + n * 64] = ptx[name](*operands[: _count(name)])


def _inputs(rng: np.random.Generator, dtype: Any) -> list[Array]:
    """Numbers of every size, special ones among them, in all combinations with each other."""
    made = []
    for place in range(3):
        x = (rng.standard_normal(64) * np.exp2(rng.integers(-8, 8, 64))).astype(dtype)
        with np.errstate(over="ignore"):
            x[rng.permutation(64)[:20]] = np.resize(np.roll(SPECIAL, place), 20).astype(dtype)
        made.append(x)
    return made


def test_f32(rng: np.random.Generator) -> None:
    x, y, z = _inputs(rng, np.float32)
    out = np.full((len(F32), 64), -7, np.float32)
    n = followed(every, 1, 64, x, y, z, out, outputs=[out], names=tuple(F32))
    with np.errstate(all="ignore"):
        operands = [a.astype(np.float64) * np.float64(THIRD) for a in (x, y, z)]
    for mnemonic, found in zip(F32, n.float64(out)):
        _agree(found, _expected(mnemonic, *operands), mnemonic)


@ptx_kernel
def every_f64(x: Ptr[f32], y: Ptr[f32], z: Ptr[f32], out: Ptr[f64], *, names: tuple[str, ...] = ()):
    i = ptx.tid.x
    operands = [(v[i] * float(THIRD)).to(f64) for v in (x, y, z)]
    for n, name in enumerate(names):
        out[i + n * 64] = ptx[name](*operands[: _count(name)])


def test_f64(rng: np.random.Generator) -> None:
    """A number that comes from f32 brings its error along."""
    x, y, z = _inputs(rng, np.float32)
    out = np.full((len(F64), 64), -7, np.float64)
    n = followed(every_f64, 1, 64, x, y, z, out, outputs=[out], names=tuple(F64))
    with np.errstate(all="ignore"):
        operands = [a.astype(np.float64) * np.float64(THIRD) for a in (x, y, z)]
    for mnemonic, found in zip(F64, n.float64(out)):
        _agree(found, _expected(mnemonic, *operands), mnemonic)


@ptx_kernel
def every_pair(x: Ptr[f16x2], y: Ptr[f16x2], z: Ptr[f16x2], out: Ptr[f16x2], *, names: tuple[str, ...] = ()):
    i = ptx.tid.x
    operands = [ptx.mul.f16x2(v[i], v[i]) for v in (x, y, z)]
    for n, name in enumerate(names):
        out[i + n * 32] = ptx[name](*operands[: _count(name)])


def test_packed_halves(rng: np.random.Generator) -> None:
    x, y, z = _inputs(rng, np.float16)
    out = np.full((len(F16X2), 64), -7, np.float16)
    n = followed(every_pair, 1, 32, x, y, z, out, outputs=[out], names=tuple(F16X2))
    operands = [a.astype(np.float64) ** 2 for a in (x, y, z)]
    for mnemonic, found in zip(F16X2, n.float64(out)):
        _agree(found, _expected(mnemonic, *operands), mnemonic)


@ptx_kernel
def every_bf16(x: Ptr[f32], y: Ptr[f32], z: Ptr[f32], out: Ptr[bf16], *, names: tuple[str, ...] = ()):
    i = ptx.tid.x
    operands = [v[i].to(bf16) for v in (x, y, z)]
    for n, name in enumerate(names):
        out[i + n * 64] = ptx[name](*operands[: _count(name)])


def test_bf16(rng: np.random.Generator) -> None:
    """A conversion to a narrower type rounds the number and leaves its twin."""
    x, y, z = _inputs(rng, np.float32)
    out = np.full((len(BF16), 64), 1, np.uint16)
    n = followed(every_bf16, 1, 64, x, y, z, out.view(ptxdsl.dtype_of(bf16)), outputs=[out], names=tuple(BF16))
    operands = [a.astype(np.float64) for a in (x, y, z)]
    for mnemonic, found in zip(BF16, n.float64(out, bf16)):
        _agree(found, _expected(mnemonic, *operands), mnemonic)


# ---------------------------------------------------------------------------------------------------------------------
# Ways of a number: conversions, moves, memory, other lanes


@ptx_kernel
def converts(x: Ptr[f32], k: Ptr[u32], out: Ptr[f32]):
    i = ptx.tid.x
    v = x[i] * float(THIRD)
    pair = ptx.cvt.rn.f16x2.f32(v, v + 1.0)
    low, high = pair.unpack(f16)
    small = ptx.cvt.rn.satfinite.e4m3x2.f32(v, v * 0.5)
    back = ptx.cvt.rn.f16x2.e4m3x2(small).unpack(f16)
    results = (
        low.to(f32), high.to(f32), back[0].to(f32), back[1].to(f32), ptx.cvt.rni.f32.f32(v), k[i].to(f32) * v,
        ptx.cvt.rna.tf32.f32(v).bits(f32), select(v > 0.0, v, -v),
    )
    for n, result in enumerate(results):
        out[i + n * 64] = result


def test_conversions(rng: np.random.Generator) -> None:
    x, k = rng.standard_normal(64).astype(np.float32), rng.integers(0, 1 << 32, 64, np.uint32)
    out = np.zeros((8, 64), np.float32)
    n = followed(converts, 1, 64, x, k, out, outputs=[out])
    v = x.astype(np.float64) * np.float64(THIRD)
    expected = [v + 1, v, v * 0.5, v, np.rint(v), k * v, v, abs(v)]
    np.testing.assert_array_equal(n.float64(out), expected)


@ptx_kernel
def through_memory(x: Ptr[f32], out: Ptr[f32], shift: u32):
    t, i = ptx.tid.x, ptx.ctaid.x * 64 + ptx.tid.x
    tile, own = shared(f32, 64), local(f32, 4)
    v = x[i] * x[i]
    tile[t] = v
    ptx.bar.sync(0)
    for n in range(4):
        own[n] = tile[t ^ 1] * float(n + 1)
    moved = ptx.shfl.sync.bfly.b32(v.bits(u32), 5, 31, 0xFFFFFFFF)
    pair = x.cast(u32).load(ptx.ctaid.x * 64 + t // 2 * 2, width=2)
    out[i] = own[(t + shift) & 3] + moved.bits(f32)
    out[i + 256] = pair[0].bits(f32) * pair[1].bits(f32)


def test_memory_and_shuffles(rng: np.random.Generator) -> None:
    """Shared, local and global memory, vectors of untyped words, other lanes: numbers keep their twins."""
    x, out = rng.standard_normal(256).astype(np.float32), np.zeros(512, np.float32)
    n = followed(through_memory, 4, 64, x, out, 3, outputs=[out])
    v, i = x.astype(np.float64), np.arange(256)
    first = (v * v)[i ^ 1] * ((i % 64 + 3 & 3) + 1) + (v * v)[i ^ 5]
    np.testing.assert_array_equal(n.float64(out), [*first, *(v[i // 2 * 2] * v[i // 2 * 2 + 1])])


@ptx_kernel
def sums(x: Ptr[f32], total: Ptr[f32], before: Ptr[f32], largest: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    v = x[i] * x[i]
    before[i] = ptx.atom.global_.add.f32(total.at(0), v)
    kept = shared(f32, 1)
    with when(ptx.tid.x == 0):
        kept[0] = 0.0
    ptx.bar.sync(0)
    ptx.red.shared.add.f32(kept.at(0), v)
    ptx.bar.sync(0)
    with when(ptx.tid.x == 0):
        largest[ptx.ctaid.x] = kept[0]


def test_atomics(rng: np.random.Generator) -> None:
    """In the order of the lanes, and each gets the twin of what was there."""
    x = rng.standard_normal(3 * 50).astype(np.float32)
    total, before, largest = np.zeros(1, np.float32), np.zeros(150, np.float32), np.zeros(3, np.float32)
    with config.override(emulator_threads=1):
        n = followed(sums, 3, 50, x, total, before, largest, outputs=[total, before, largest])
    partial = np.cumsum([0, *x.astype(np.float64) ** 2])
    np.testing.assert_array_equal(n.float64(before), partial[:-1])
    assert n.float64(total) == partial[-1]
    each = [np.cumsum(part)[-1] for part in (x.astype(np.float64) ** 2).reshape(3, 50)]
    np.testing.assert_allclose(n.float64(largest), each, rtol=1e-14)  # warps take turns in any order


FOREIGN = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
    .reg .b64 %rd<6>; .reg .b32 %r<12>; .reg .b16 %h<4>; .reg .pred %p<2>; .reg .f32 %f<6>; .reg .f64 %d<3>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
    ld.global.b32 %r2, [%rd1]; mov.b32 %f1, %r2; mul.f32 %f1, %f1, %f1; mov.b32 %r3, %f1;
    mov.b64 %rd4, {%r3, %r2}; mov.b64 {%r4, %r5}, %rd4; setp.lt.u32 %p1, %r1, 16; selp.b32 %r6, %r4, %r5, %p1;
    st.global.b32 [%rd2], %r6;
    xor.b32 %r7, %r3, 0x80000000; st.global.u32 [%rd2 + 128], %r7;
    atom.global.exch.b32 %r8, [%rd2], %r3; st.global.b32 [%rd2 + 256], %r8;
    mov.b32 %f2, %r8; add.f32 %f2, %f2, %f1; st.global.f32 [%rd2 + 384], %f2;
LOOP: ld.global.b32 %r9, [%rd2]; mov.b32 %f3, %r9; add.f32 %f4, %f3, %f1; mov.b32 %r10, %f4;
    atom.global.cas.b32 %r11, [%rd2], %r9, %r10; setp.ne.u32 %p1, %r11, %r9; @%p1 bra LOOP;
    ret;
}"""


def test_untyped_registers_of_foreign_code(rng: np.random.Generator) -> None:
    """Packed and unpacked words, selp, exch and loops of cas move floats, and integer arithmetic does not."""
    x, y = rng.standard_normal(32).astype(np.float32), np.zeros((4, 32), np.float32)
    n = followed(ptxdsl.load(FOREIGN)["k"], 1, 32, x, y, outputs=[y])
    v, lanes = x.astype(np.float64), np.arange(32)
    first = np.where(lanes < 16, v * v, v)
    found = n.float64(y)
    np.testing.assert_array_equal(found[0], v * v + v * v)
    np.testing.assert_array_equal(found[1], -(x * x).astype(np.float64))
    np.testing.assert_array_equal(found[2:], [first, first + v * v])


# ---------------------------------------------------------------------------------------------------------------------
# Products of fragments

PRODUCTS = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": (4, 2, "f16", 16),
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": (4, 2, "f32", 8),
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": (4, 2, "bf16", 16),
}


@pytest.mark.parametrize("mnemonic", PRODUCTS)
def test_products(mnemonic: str, rng: np.random.Generator) -> None:
    """Registers of fragments are filled by the lanes; products of the twins add up in float64."""
    from ptxdsl.isa.fragments import layout

    na, nb, kind, depth = PRODUCTS[mnemonic]
    bits = 32 if kind == "f32" else 16
    shape = f"m16n8k{depth}"
    regs = ", ".join(f"%a{n}" for n in range(na)), ", ".join(f"%b{n}" for n in range(nb))
    cvt = {kind: f"cvt.rn.{kind}x2.f32 {{}}, %f1, %f0;" for kind in ("f16", "bf16")} | {"f32": "mov.b32 {}, %f0;"}
    lines, parts = [], 32 // bits
    for name, count in (("a", na), ("b", nb)):
        for n in range(count):
            for part in range(parts):
                at = 4 * (n * parts + part) * 32 + (0 if name == "a" else 4 * na * parts * 32)
                lines.append(f"ld.global.f32 %f{part}, [%rd1 + {at}]; mul.f32 %f{part}, %f{part}, 0f3EAAAAAB;")
            lines.append(cvt[kind].format(f"%{name}{n}"))
    text = f""".version 8.0
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 x, .param .u64 y) {{
        .reg .b64 %rd<4>; .reg .b32 %r1; .reg .b32 %a<4>; .reg .b32 %b<2>; .reg .f32 %f<2>; .reg .f32 %d<4>;
        ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;
        add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
        {' '.join(lines)}
        mov.f32 %d0, 0f3DCCCCCD; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
        {mnemonic} {{%d0, %d1, %d2, %d3}}, {{{regs[0]}}}, {{{regs[1]}}}, {{%d0, %d1, %d2, %d3}};
        {mnemonic} {{%d0, %d1, %d2, %d3}}, {{{regs[0]}}}, {{{regs[1]}}}, {{%d0, %d1, %d2, %d3}};
        {' '.join(f"st.global.f32 [%rd2 + {128 * n}], %d{n};" for n in range(4))}
        ret;
    }}"""
    x = rng.standard_normal(((na + nb) * parts, 32)).astype(np.float32)
    y = np.zeros((4, 32), np.float32)
    n = followed(ptxdsl.load(text)["k"], 1, 32, x, y, outputs=[y])
    v = x.astype(np.float64) * np.float64(np.float32(1 / 3))
    matrices = {}
    for which, start, rows, columns in (("a", 0, 16, depth), ("b", na * parts, depth, 8)):
        made, places = np.zeros((rows, columns)), layout(shape, which, bits)
        for row in range(rows):
            for column in range(columns):
                lane, register, part = places.owner(row, column)
                made[row, column] = v[start + register * parts + part, lane]
        matrices[which] = made
    result, c = np.zeros((16, 8)), layout(shape, "c", 32)
    for row in range(16):
        for column in range(8):
            lane, register, _ = c.owner(row, column)
            result[row, column] = n.float64(y)[register, lane]
    expected = np.float64(np.float32(0.1)) + 2 * matrices["a"] @ matrices["b"]
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)
    assert n.outputs[0].error > 1e-8


# ---------------------------------------------------------------------------------------------------------------------
# Several launches


@ptx_kernel
def squares(x: Ptr[f32], y: Ptr[f32]):
    y[ptx.tid.x] = x[ptx.tid.x] * x[ptx.tid.x]


def test_one_launch_goes_on_with_what_another_left(rng: np.random.Generator) -> None:
    x, y, z = rng.standard_normal(64).astype(np.float32), np.zeros(64, np.float32), np.zeros(64, np.float32)
    with ptxdsl.numerics() as n:
        squares[1, 64](x, y)
        y[5] = 2.5
        squares[1, 64](y, z)
    v = x.astype(np.float64) ** 2
    v[5] = 2.5
    np.testing.assert_array_equal(n.float64(y), v)
    np.testing.assert_array_equal(n.float64(z), v * v)
    assert n.launches == {"squares": 2}


@ptx_kernel
def grid_loop(n: u32, x: Ptr[f32], out: Ptr[f32]):
    acc = reg(f32, 0.0)
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with loop(i, n, ptx.nctaid.x * ptx.ntid.x) as j:
        with when(x[j] > 0.0):
            acc += x[j] * x[j]
    out[i] = acc


def test_divergent_loops_of_odd_sizes(rng: np.random.Generator) -> None:
    x, out = rng.standard_normal(1003).astype(np.float32), np.full(3 * 45, -1, np.float32)
    n = followed(grid_loop, 3, 45, 1003, x, out, outputs=[out])
    v = x.astype(np.float64)
    expected = np.zeros(135)
    for start in range(0, 1003, 135):
        part = v[start : start + 135]
        expected[: len(part)] += np.where(part > 0, part * part, 0)
    np.testing.assert_array_equal(n.float64(out), expected)
