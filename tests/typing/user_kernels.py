"""Right kernels as a user writes them, fully annotated: `mypy --strict` and pyright have nothing to say about them.

They are launched too, so that what is accepted here is right at run time.
"""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np

import ptxdsl
from ptxdsl import (
    Array, Config, Kernel, Ptr, ScalarType, Stream, autotune, block, break_if, cdiv, check, const, dynamic_shared, f16,
    f32, f64, grid, local, loop, math, maximum, minimum, otherwise, pack, printf, ptx, ptx_func, ptx_kernel, reg, s32,
    select, shared, u8, u32, u64, warp, when,
)

Floats = np.ndarray[Any, np.dtype[np.float32]]


# Helpers: annotated with what they take, and given values, parameters, registers or Python numbers.


def global_index() -> u32:
    return ptx.ctaid.x * ptx.ntid.x + ptx.tid.x


def clamped(i: u32, n: u32) -> u32:
    return minimum(i, n - 1)


def fma(a: f32, b: f32, c: f32) -> f32:
    return ptx.fma.rn.f32(a, b, c)


def verbatim(a: f32, b: f32) -> f32:
    return ptx["add.rn.f32"](a, b)


def scaled(x: f32, factor: f32 | float) -> f32:
    return x * factor


def element(x: Ptr[f32], i: u32) -> f32:
    return x[i]


def softplus(x: f32) -> f32:
    return math.log(1.0 + math.exp(x))


def row_sum(a: Array[f32, 2], row: u32) -> f32:
    acc = reg(f32, 0.0)
    with loop(a.shape[1]) as j:
        acc += a[row, j]
    return acc


def inside(row: s32, column: s32, height: s32, width: s32) -> ptxdsl.pred:
    return (row >= 0) & (row < height) & (column >= 0) & (column < width)


def both(a: u32, b: u32) -> tuple[u32, u32]:
    return a + b, a ^ b


@ptx_kernel
def helpers(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = global_index()
    with when(i < n):
        at = clamped(i + 1, n)
        v = fma(element(x, at), 2.0 * x[i], verbatim(x[i], x[at]))
        y[i] = scaled(v, 0.5) + softplus(x[i]) + scaled(x[i], x[at])
    check(i < 1 << 20, "too many threads")


# Conversions: a name may change its type, as in any kernel.


@ptx_kernel
def conversions(n: u32, x: Ptr[f32], h: Ptr[f16], z: Ptr[u8], w: Ptr[f64]) -> None:
    i = ptx.tid.x
    with when(i < n):
        v = x[i].to(f64)
        w[i] = v * 2.0
        h[i] = x[i].to(f16, "rn")
        narrow = x[i].to(s32, "rni")
        z[i] = (narrow & 255).to(u32).to(u8)
        word = i.to(u64) << 2
        low, high = word.unpack(u32)
        pair = pack(u64, low, high)
        signed = i.to(s32) - 1
        at = select(signed < 0, 0, signed)
        w[i] += (pair >> 2).to(f64) + x[at].to(f64)


# Memory: views, vectors, shared arrays, tables.


@ptx_kernel
def memory(n: u32, x: Ptr[f32], y: Ptr[f32], table: Ptr[Ptr[f32]]) -> None:
    t = ptx.tid.x
    tile = shared(f32, 32, 33)
    flat = dynamic_shared(f32)
    own = local(f32, 4)
    weights = const(np.array([0.25, 0.5, 0.25], np.float32))
    a, b, c, d = x.load(4 * t, width=4)
    for k, v in enumerate((a, b, c, d)):
        own[k] = v
    tile[t % 32, t // 32] = own[t % 4]
    flat[t] = a + weights[1]
    ptx.bar.sync(0)
    first = table[0]
    y.store(4 * t, [tile[t % 32, t // 32], flat[t] + first[t], c, d])
    (y + 4 * t)[3] = element(flat, t) + element(x + 1, t)


@ptx_kernel
def read_only(n: u32, x: Ptr[const[f32]], a: Array[const[f32], 2], y: Ptr[f32]) -> None:
    with when(ptx.tid.x < n):
        y[ptx.tid.x] = fma(x[ptx.tid.x], a[0, ptx.tid.x], element(y, ptx.tid.x))


@ptx_kernel
def transpose(a: Array[f32, 2], b: Array[f32, None, 8], *, tile: int = 8) -> None:
    height, width = a.shape
    block_of = shared(f32, tile, tile + 1)
    row, column = ptx.ctaid.y * tile + ptx.tid.y, ptx.ctaid.x * tile + ptx.tid.x
    with when((row < height) & (column < width)):
        block_of[ptx.tid.y, ptx.tid.x] = a[row, column]
    with otherwise():
        block_of[ptx.tid.y, ptx.tid.x] = 0.0
    ptx.bar.sync(0)
    b[ptx.ctaid.x * tile + ptx.tid.y, ptx.tid.x] = block_of[ptx.tid.x, ptx.tid.y]


# Control flow.


@ptx_kernel
def control(n: u32, x: Ptr[f32], out: Ptr[f32]) -> None:
    acc, best = reg(f32, 0.0), reg(f32)
    best.set(-1e30)
    with loop(ptx.tid.x, n, ptx.ntid.x, unroll=2) as i:
        v = x[i]
        with when(v > 0.0):
            acc += v
        with otherwise():
            acc -= v
        best.set(maximum(best, v))
    steps = reg(u32, 0)
    with loop():
        steps += 1
        break_if(steps >= 3)
    with loop(3):
        acc *= 0.5
    total = block.reduce_sum(acc)
    top = warp.reduce(maximum, best)
    before = warp.scan(operator.add, steps, exclusive=True, initial=0)
    with when(ptx.tid.x == 0):
        out[0], out[1], out[2] = total, top, (steps + before).to(f32)
        printf("%f\n", total)


@ptx_func
def squared(x: f32) -> f32:
    return x * x


@ptx_kernel
def rows(a: Array[f32, 2], out: Ptr[f32]) -> None:
    row = block.thread()
    ok = inside(row.to(s32), ptx.laneid.to(s32) - row.to(s32), a.shape[0].to(s32), a.shape[1].to(s32))
    with when(ok):
        out[row] = squared(row_sum(a, row))
        low, mixed = both(row, ptx.laneid)
        out[row] += (low * 0 + mixed).to(f32)


# Kernels made for a type: an annotation that is computed is the one thing that type checkers cannot follow.


def axpy(dtype: ScalarType) -> Kernel:
    @ptx_kernel(name=f"axpy_{dtype}", maxntid=256)
    def kernel(n: u32, x: Ptr[dtype], y: Ptr[dtype], *, a: int = 2) -> None:  # type: ignore[valid-type]
        i = global_index()
        with when(i < n):
            y[i] += a * x[i]

    return kernel


@autotune(Config.product(EACH=[1, 2]), key=["n"])
@ptx_kernel
def doubled(n: u32, x: Ptr[f32], *, EACH: int) -> None:
    start = global_index() * EACH
    for k in range(EACH):
        with when(start + k < n):
            x[start + k] *= 2.0


def floats(*shape: int) -> Floats:
    return np.random.default_rng().random(shape, np.float32)


def main(folder: Path) -> dict[str, Floats]:
    n, x, y = 64, floats(256), floats(256)
    results: dict[str, Floats] = {}
    with ptxdsl.use("emulator"):
        stream = Stream(backend="emulator")
        helpers[cdiv(n, 32), 32](n, x, y)
        results["helpers"] = y[:n].copy()
        conversions[1, n, stream](n, x, np.zeros(n, np.float16), np.zeros(n, np.uint8), np.zeros(n))
        with ptxdsl.profile() as profile:
            memory.configure(1, 32, shared=128)(32, x, y, [x, y])
            transpose[(1, 2), (8, 8)](floats(8, 8).reshape(8, 8), floats(8, 8), tile=8)
        text: str = profile.table()
        profile.html(folder / "profile.html")
        share: float = max(line.share for line in profile.lines)
        read_only[1, 32](8, x, floats(1, 8), y)
        out = ptxdsl.empty(3, f32)
        control[1, 64](256, ptxdsl.to_device(x), out)
        total: float = out.numpy()[0]
        results["control"] = out.numpy()
        rows[1, 32](floats(4, 8), y)
        axpy(f32)[2, 32](n, x, y)
        launch = doubled[lambda config: cdiv(n, 32 * config.EACH), 32]
        launch(n, y)
        ptx_text: str = control.ptx(comments=True)
        with stream:
            helpers[2, 32](n, x, y)
        stream.synchronize()
        ptxdsl.synchronize()
    assert text and share and total and ptx_text and grid
    return results
