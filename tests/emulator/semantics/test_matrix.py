"""Matrix instructions on the emulator: wmma, mma and ldmatrix against numpy.

Small integers are exact whatever the order of the sum; random numbers are held to the bound of a sum of 16 products.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import Kernel, Ptr, bf16, f16, f32, ptx, ptx_kernel, shared, u32, when
from ptxdsl.errors import EmulationError, MemoryFault
from ptxdsl.isa.fragments import LAYOUTS, Layout

NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
TYPES = {"f16": f16, "bf16": bf16, "f32": f32}
Rng = np.random.Generator


@pytest.mark.parametrize("key", LAYOUTS, ids=str)
def test_every_element_lies_in_one_place(key: tuple[str, str, int]) -> None:
    layout: Layout = LAYOUTS[key]
    owners = {layout.owner(row, column) for row in range(layout.rows) for column in range(layout.columns)}
    assert len(owners) == layout.rows * layout.columns
    assert len({place.register for place in layout.places}) == layout.rows * layout.columns * min(key[2], 32) // 1024


def wmma(kind: str, a_order: str, b_order: str, c_order: str, result: str, addend: str) -> Kernel:
    """d = a @ b + c of 16 x 16 matrices, each with its own stride."""
    product = f"{kind}.{kind}.{addend}" if kind == "bf16" else addend
    product = f"{result}.{product}"

    @ptx_kernel
    def k(
        a: Ptr[TYPES[kind]], b: Ptr[TYPES[kind]], c: Ptr[TYPES[addend]], d: Ptr[TYPES[result]],
        lda: u32, ldb: u32, ldc: u32, ldd: u32,
    ) -> None:
        left = ptx[f"wmma.load.a.sync.aligned.{a_order}.m16n16k16.global.{kind}"](a, lda)
        right = ptx[f"wmma.load.b.sync.aligned.{b_order}.m16n16k16.global.{kind}"](b, ldb)
        start = ptx[f"wmma.load.c.sync.aligned.{c_order}.m16n16k16.global.{addend}"](c, ldc)
        total = ptx[f"wmma.mma.sync.aligned.{a_order}.{b_order}.m16n16k16.{product}"](left, right, start)
        ptx[f"wmma.store.d.sync.aligned.{c_order}.m16n16k16.global.{result}"](d, total, ldd)

    return k


def stored(values: Any, order: str, stride: int, kind: str) -> Any:
    """A 16 x 16 matrix in memory, its rows or columns ``stride`` apart, NaN between."""
    memory = np.full((16, stride), np.nan, NUMPY[kind])
    memory[:, :16] = values if order == "row" else values.T
    return memory.reshape(-1)[: 15 * stride + 16].copy()


def fetched(memory: Any, order: str, stride: int) -> Any:
    whole = np.concatenate([memory, np.zeros(stride - 16, memory.dtype)]).reshape(16, stride)
    assert np.isnan(whole[:-1, 16:].astype(np.float64)).all()
    values = whole[:, :16].astype(np.float64)
    return values if order == "row" else values.T


def run_wmma(rng: Rng, case: tuple[str, ...], draw: Any) -> tuple[Any, Any, Any, Any]:
    kind, a_order, b_order, c_order, result, addend = case
    a, b, c = (draw(NUMPY[x]) for x in (kind, kind, addend))
    lda, ldb, ldc, ldd = (int(x) for x in rng.choice([16, 24, 40], 4))
    d = stored(np.full((16, 16), np.nan), c_order, ldd, result)
    wmma(*case)[1, 32](
        stored(a, a_order, lda, kind), stored(b, b_order, ldb, kind), stored(c, c_order, ldc, addend), d,
        lda, ldb, ldc, ldd,
    )
    return (*(x.astype(np.float64) for x in (a, b, c)), fetched(d, c_order, ldd))  # type: ignore[return-value]


CASES = [
    ("f16", "row", "row", "row", "f32", "f32"), ("f16", "row", "col", "row", "f32", "f32"),
    ("f16", "col", "row", "col", "f32", "f32"), ("f16", "col", "col", "row", "f16", "f16"),
    ("f16", "row", "col", "col", "f16", "f32"), ("f16", "row", "col", "row", "f32", "f16"),
    ("bf16", "row", "col", "row", "f32", "f32"), ("bf16", "col", "row", "col", "f32", "f32"),
]


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_wmma_of_integers_is_exact(case: tuple[str, ...], rng: Rng) -> None:
    a, b, c, d = run_wmma(rng, case, lambda kind: rng.integers(-6, 7, (16, 16)).astype(kind))
    np.testing.assert_array_equal(d, a @ b + c)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_wmma_of_random_numbers(case: tuple[str, ...], rng: Rng) -> None:
    a, b, c, d = run_wmma(rng, case, lambda kind: rng.standard_normal((16, 16)).astype(kind))
    bound = 17 * 2.0**-24 * (abs(a) @ abs(b) + abs(c))
    if case[4] == "f16":
        bound += 2.0**-11 * abs(a @ b + c) + 2.0**-24
    assert (abs(d - (a @ b + c)) <= bound).all()


@ptx_kernel
def through_shared(a: Ptr[f16], d: Ptr[f32]) -> None:
    """a @ a.T by way of shared memory, without strides."""
    tile, out = shared(f16, 16, 16), shared(f32, 256)
    lane = ptx.tid.x
    for i in range(8):
        tile[i * 2 + (lane >> 4), lane & 15] = a[i * 32 + lane]
    ptx.bar.warp.sync(0xFFFFFFFF)
    left = ptx["wmma.load.a.sync.aligned.row.m16n16k16.shared.f16"](tile, 16)
    right = ptx["wmma.load.b.sync.aligned.col.m16n16k16.shared.f16"](tile, 16)
    zero = [ptx.mov.f32(0.0) for _ in range(8)]
    total = ptx["wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"](left, right, zero)
    ptx["wmma.store.d.sync.aligned.row.m16n16k16.shared.f32"](out, total, 16)
    ptx.bar.warp.sync(0xFFFFFFFF)
    for i in range(8):
        d[i * 32 + lane] = out[i * 32 + lane]


def test_wmma_through_shared_memory(rng: Rng) -> None:
    a = rng.integers(-8, 9, (16, 16)).astype(np.float16)
    d = np.full((16, 16), np.nan, np.float32)
    through_shared[1, 32](a.reshape(-1), d.reshape(-1))
    np.testing.assert_array_equal(d, a.astype(np.float64) @ a.astype(np.float64).T)


def mma(shape: str, kind: str, result: str) -> Kernel:
    """One mma on fragments that the kernel places by the manual's formulas."""
    depth = int(shape.split("k")[1])
    per = 2 if result == "f16" else 1

    @ptx_kernel
    def k(a: Ptr[u32], b: Ptr[u32], c: Ptr[TYPES[result]], d: Ptr[TYPES[result]]) -> None:
        lane = ptx.tid.x
        g, t = lane >> 2, lane & 3
        words = depth // 2
        left = [a[(g + 8 * (r % 2)) * words + 4 * (r // 2) + t] for r in range(depth // 4)]
        right = [b[g * words + 4 * r + t] for r in range(depth // 8)]
        places = [(g + 8 * (v // 2)) * 8 + 2 * t + v % 2 for v in range(4)]
        start = [c[place] for place in places]
        if per == 2:
            start = [ptx.mov.b32((start[i].bits(_b16()), start[i + 1].bits(_b16()))) for i in (0, 2)]
        out = ptx[f"mma.sync.aligned.{shape}.row.col.{result}.{kind}.{kind}.{result}"](left, right, start)
        values = [half for word in out for half in word.unpack(f16)] if per == 2 else out
        for place, value in zip(places, values):
            d[place] = value

    return k


def _b16() -> Any:
    from ptxdsl import b16

    return b16


@pytest.mark.parametrize(
    ("shape", "kind", "result"),
    [("m16n8k16", "f16", "f32"), ("m16n8k16", "bf16", "f32"), ("m16n8k8", "f16", "f32"), ("m16n8k8", "bf16", "f32"),
     ("m16n8k16", "f16", "f16"), ("m16n8k8", "f16", "f16")],
)
def test_mma(shape: str, kind: str, result: str, rng: Rng) -> None:
    depth = int(shape.split("k")[1])
    a = rng.integers(-5, 6, (16, depth)).astype(NUMPY[kind])
    b = rng.integers(-5, 6, (8, depth)).astype(NUMPY[kind])
    c = rng.integers(-50, 51, (16, 8)).astype(NUMPY[result])
    d = np.full((16, 8), np.nan, NUMPY[result])
    mma(shape, kind, result)[1, 32](*(x.view(np.uint32).reshape(-1) for x in (a, b)), c.reshape(-1), d.reshape(-1))
    expected = a.astype(np.float64) @ b.astype(np.float64).T + c.astype(np.float64)
    np.testing.assert_array_equal(d.astype(np.float64), expected)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix(count: int, trans: str, rng: Rng) -> None:
    @ptx_kernel
    def k(x: Ptr[u32], y: Ptr[u32]) -> None:
        rows = shared(u32, 32, 4)
        lane = ptx.tid.x
        for i in range(4):
            rows[lane, i] = x[lane * 4 + i]
        ptx.bar.warp.sync(0xFFFFFFFF)
        parts = ptx[f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"](rows + lane * 4)
        for i in range(count):
            y[i * 32 + lane] = parts[i].bits(u32)

    x = rng.integers(0, 2**16, (32, 8)).astype(np.uint16)
    y = np.zeros((count, 32), np.uint32)
    k[1, 32](x.view(np.uint32).reshape(-1), y.reshape(-1))
    for number in range(count):
        matrix = x[8 * number : 8 * number + 8]
        matrix = matrix.T if trans else matrix
        np.testing.assert_array_equal(y[number].view(np.uint16), matrix.reshape(-1))


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix(count: int, trans: str, rng: Rng) -> None:
    @ptx_kernel
    def k(x: Ptr[u32], y: Ptr[u32]) -> None:
        rows = shared(u32, 32, 8, align=16)
        lane = ptx.tid.x
        for i in range(8):
            rows[lane, i] = 7
        ptx.bar.warp.sync(0xFFFFFFFF)
        ptx[f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16"](
            rows + lane * 8, [x[i * 32 + lane] for i in range(count)]
        )
        for i in range(8):
            y[lane * 8 + i] = rows[lane, i]

    x = rng.integers(0, 2**16, (count, 8, 8)).astype(np.uint16)
    y = np.zeros((32, 8), np.uint32)
    k[1, 32](x.view(np.uint32).reshape(-1), y.reshape(-1))
    wanted = np.full((32, 16), 0, np.uint16)
    wanted[:, ::2] = 7
    wanted[: 8 * count, :8] = np.concatenate([matrix.T if trans else matrix for matrix in x])
    np.testing.assert_array_equal(y.view(np.uint16), wanted)


def test_movmatrix(rng: Rng) -> None:
    @ptx_kernel
    def k(x: Ptr[u32], y: Ptr[u32]) -> None:
        y[ptx.tid.x] = ptx["movmatrix.sync.aligned.m8n8.trans.b16"](x[ptx.tid.x])

    x = rng.integers(0, 2**16, (8, 8)).astype(np.uint16)
    y = np.zeros(32, np.uint32)
    k[1, 32](x.view(np.uint32).reshape(-1), y)
    np.testing.assert_array_equal(y.view(np.uint16).reshape(8, 8), x.T)


def test_a_fault_names_the_array() -> None:
    kernel = wmma("f16", "row", "row", "row", "f32", "f32")
    a, c = np.zeros(255, np.float16), np.zeros(256, np.float32)
    with pytest.raises(MemoryFault, match=r"^load of 4 bytes from a\[254\]: a is f16\[255\]") as caught:
        kernel[1, 32](a, np.zeros(256, np.float16), c, c.copy(), 16, 16, 16, 16)
    assert caught.value.loc is not None and "wmma.load.a" in caught.value.loc.source


def test_lanes_that_are_elsewhere() -> None:
    @ptx_kernel
    def k(d: Ptr[f32]) -> None:
        with when(ptx.tid.x < 16):
            zero = [ptx.mov.f32(0.0) for _ in range(8)]
            ptx["wmma.store.d.sync.aligned.row.m16n16k16.global.f32"](d, zero, 16)
        ptx.bar.sync(0)

    with pytest.raises(EmulationError, match=r"takes all 32 lanes of a warp, and lanes 16-31 of warp 0 are elsewhere"):
        k[1, 32](np.zeros(256, np.float32))
