"""Products by `ptxdsl.mma` and `ptxdsl.wgmma` over types, layouts, swizzles and ragged results, against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import (
    Array, Ptr, bf16, dynamic_shared, e4m3, e5m2, f16, f32, f64, loop, mma, ptx, ptx_kernel, s8, s32, tf32, tma, u8,
    u16, u32, u64, warp, wgmma,
)

Rng = np.random.Generator
_NUMPY: dict[Any, Any] = {
    f16: np.float16, bf16: ml_dtypes.bfloat16, tf32: np.float32, e4m3: ml_dtypes.float8_e4m3fn,
    e5m2: ml_dtypes.float8_e5m2, s8: np.int8, u8: np.uint8, f64: np.float64, f32: np.float32, s32: np.int32,
}
_RAW: dict[int, Any] = {1: u8, 2: u16, 4: u32, 8: u64}
_TYPES = [
    (f16, f16, f32), (f16, f16, f16), (bf16, bf16, f32), (tf32, tf32, f32), (e4m3, e5m2, f32), (e4m3, e4m3, f16),
    (s8, u8, s32), (f64, f64, f64),
]


def _numbers(rng: Rng, kind: Any, shape: tuple[int, int]) -> Any:
    """Small whole numbers, whose sums every type holds."""
    return rng.integers(0 if kind is u8 else -4, 5, shape).astype(_NUMPY[kind])


def _bits(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}").ravel()


def _tile(kind: Any, shape: tuple[int, int], swizzle: int, offset: int) -> Any:
    """A tile; one that is not swizzled has 16 bytes between its rows."""
    pitch = None if swizzle else shape[1] + 16 // kind.bytes
    return mma.Tile(dynamic_shared(kind, align=1024, offset=offset), *shape, swizzle, pitch=pitch)


def _fill(tile: Any, source: Any) -> None:
    with loop(ptx.tid.x, tile.shape[0] * tile.shape[1], ptx.ntid.x) as i:
        tile.at(i // tile.shape[1], i % tile.shape[1]).cast(_RAW[tile.dtype.bytes])[0] = source[i]


def _launch(kernel: Any, threads: int, a: Any, b: Any, c: Any) -> None:
    kernel.configure(1, threads, shared=131072)(_bits(a), _bits(b), c)


def _expected(a: Any, b: Any, turned: tuple[bool, bool]) -> Any:
    x, y = a.T if turned[0] else a, b.T if turned[1] else b
    return x.astype(np.float64) @ y.astype(np.float64)


def _shapes(m: int, n: int, k: int, turned: tuple[bool, bool]) -> Any:
    return ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))


def _product_of_a_warp(kinds: Any, swizzles: Any, turned: Any, m: int, n: int, k: int) -> Any:
    (left, right, result), shapes = kinds, _shapes(m, n, k, turned)

    @ptx_kernel
    def kernel(a: Ptr[_RAW[left.bytes]], b: Ptr[_RAW[right.bytes]], c: Array[result, 2]):
        x, y = _tile(left, shapes[0], swizzles[0], 0), _tile(right, shapes[1], swizzles[1], 65536)
        _fill(x, a)
        _fill(y, b)
        ptx.bar.sync(0)
        sums = mma.zeros(m, n, result)
        mma.multiply(sums, x.T if turned[0] else x, y.T if turned[1] else y)
        sums.store(c)

    return kernel


@pytest.mark.parametrize("kinds", [kinds for kinds in _TYPES if kinds[0] is not bf16], ids=str)
def test_product_of_a_warp(rng: Rng, kinds: Any) -> None:
    """Both orders of a and of b, each swizzle somewhere, an odd number of blocks, a result without its last ones."""
    k = {8: 32, 16: 32, 32: 16, 64: 8}[kinds[0].bits]
    for turned in ((False, True), (True, False))[: 1 + (kinds in (_TYPES[0], _TYPES[4]))]:
        swizzles = [
            int(rng.choice([0, *(s for s in (16, 32, 64, 128) if shape[1] * kinds[0].bytes % s == 0)]))
            for shape in _shapes(32, 24, k, turned)
        ]
        kernel = _product_of_a_warp(kinds, swizzles, turned, 32, 24, k)
        a, b = (_numbers(rng, kind, shape) for kind, shape in zip(kinds, _shapes(32, 24, k, turned)))
        c = np.zeros((31, 21), _NUMPY[kinds[2]])
        _launch(kernel, 32, a, b, c)
        np.testing.assert_array_equal(c, _expected(a, b, turned)[:31, :21], str((swizzles, turned)))
        along_k = turned == (False, True) and kinds[0] is not f64
        assert ("ldmatrix" in kernel.ptx()) is (kinds[0].bits == 16 or along_k)


def _product_of_a_warpgroup(
    kinds: Any, swizzles: Any, turned: Any, m: int, n: int, k: int, groups: int, held: bool
) -> Any:
    (left, right, result), shapes = kinds, _shapes(m * groups, n, k, turned)

    @ptx_kernel
    def kernel(a: Ptr[_RAW[left.bytes]], b: Ptr[_RAW[right.bytes]], c: Array[result, 2]):
        x, y = _tile(left, shapes[0], swizzles[0], 0), _tile(right, shapes[1], swizzles[1], 65536)
        _fill(x, a)
        _fill(y, b)
        tma.fence()
        ptx.bar.sync(0)
        row = wgmma.number() * m
        sums = wgmma.zeros(m, n, result)
        sums.fill(1 if result is s32 else 1.0)
        mine = x.T if turned[0] else wgmma.load_a(x, m, k, row=row) if held else x.part(m, k, row)
        wgmma.fence()
        wgmma.multiply(sums, mine, y.T if turned[1] else y, accumulate=ptx.tid.x >= 128)
        wgmma.commit()
        wgmma.wait()
        sums.store(c, row)

    return kernel


@pytest.mark.parametrize("kinds", _TYPES[:-1], ids=str)
def test_product_of_a_warpgroup(rng: Rng, kinds: Any) -> None:
    k = 2 * 32 // kinds[0].bytes
    half = kinds[0].bytes == 2
    for number, turned in enumerate([(False, True), (True, False)] if half else [(False, True)]):
        groups = 1 if turned[0] else 2
        m = 64 * (1 + turned[0])
        swizzles = [
            int(rng.choice([s for s in (16, 32, 64, 128) if shape[1] * kinds[0].bytes % s == 0]))
            for shape in _shapes(m * groups, 48, k, turned)
        ]
        held = kinds[0] in (tf32, e4m3) or number == 1
        kernel = _product_of_a_warpgroup(kinds, swizzles, turned, m, 48, k, groups, held)
        a, b = (_numbers(rng, kind, shape) for kind, shape in zip(kinds, _shapes(m * groups, 48, k, turned)))
        c = np.zeros((m * groups - 1, 47), _NUMPY[kinds[2]])
        _launch(kernel, 128 * groups, a, b, c)
        expected = _expected(a, b, turned)
        expected[128 if groups == 1 else 64 :] += 1
        np.testing.assert_array_equal(c, expected[: m * groups - 1, :47], str((swizzles, turned)))


def test_views_without_tiles(rng: Rng) -> None:
    """Elements of arrays, beyond whose edges there are zeros; sums that begin with an array."""
    @ptx_kernel
    def kernel(a: Array[f16, 2], b: Array[f16, 2], c: Array[f32, 2], d: Array[f16, 2]):
        sums = mma.zeros(16, 16)
        sums.load(c, 3, 1)
        mma.multiply(sums, mma.load_a(a, 16, 32, row=2, column=1), mma.load_b(b, 32, 16, row=1, column=4))
        sums.map(lambda v: v * 2.0)
        sums.store(d, 1, 2)

    a, b, c = _numbers(rng, f16, (13, 21)), _numbers(rng, f16, (22, 17)), _numbers(rng, f32, (16, 15))
    d = np.zeros((15, 16), np.float16)
    kernel.configure(1, 32)(a, b, c, d)
    expected = np.zeros((16, 16))
    expected[:13, :14] = c[3:, 1:]
    expected[:11, :13] += a[2:, 1:].astype(np.float64) @ b[1:21, 4:]
    np.testing.assert_array_equal(d[1:, 2:], 2 * expected[:14, :14])
    assert not d[0].any() and not d[:, :2].any()


@pytest.mark.parametrize("kinds", [kinds for kinds in _TYPES if kinds[2] is s32 or kinds[0] is e4m3], ids=str)
def test_views_of_bytes(rng: Rng, kinds: Any) -> None:
    left, right, result = kinds

    @ptx_kernel
    def kernel(a: Array[left, 2], b: Array[right, 2], c: Array[result, 2]):
        sums = mma.zeros(16, 8, result)
        mma.multiply(sums, mma.load_a(a, 16, 32, row=1), mma.load_b(b, 32, 8, column=2))
        sums.store(c)

    a, b, c = _numbers(rng, left, (14, 29)), _numbers(rng, right, (29, 9)), np.ones((16, 8), _NUMPY[result])
    kernel.configure(1, 32)(a, b, c)
    expected = np.zeros((16, 8))
    expected[:13, :7] = a[1:].astype(np.float64) @ b[:, 2:].astype(np.float64)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("helper", [mma, wgmma], ids=lambda helper: helper.__name__)
def test_attention_of_a_tile(rng: Rng, helper: Any) -> None:
    """Scores, their softmax by rows, and its product with another tile: no lane needs the numbers of others."""
    rows = 16 if helper is mma else 64

    @ptx_kernel
    def kernel(q: Ptr[u16], k: Ptr[u16], v: Ptr[u16], out: Array[f32, 2]):
        tiles = [_tile(f16, (count, 64), 128, 8192 * at) for at, count in enumerate((rows, 64, 64))]
        for tile, source in zip(tiles, (q, k, v)):
            _fill(tile, source)
        tma.fence()
        ptx.bar.sync(0)
        scores, sums = helper.zeros(rows, 64), helper.zeros(rows, 64)
        _multiply(helper, scores, tiles[0], tiles[1].T)
        most = scores.reduce_rows(lambda x, y: ptx.max.f32(x, y))
        scores.map_rows(lambda x, top: ptx.ex2.approx.f32(x - top), most)
        totals = scores.reduce_rows(lambda x, y: x + y)
        _multiply(helper, sums, scores.fragment(f16), tiles[2])
        sums.map_rows(lambda x, total: x * total, [ptx.rcp.approx.f32(total) for total in totals])
        sums.store(out)

    q, k, v = ((rng.standard_normal((count, 64)) / 3).astype(np.float16) for count in (rows, 64, 64))
    out = np.zeros((rows, 64), np.float32)
    kernel.configure(1, 32 if helper is mma else 128, shared=32768)(
        _bits(q), _bits(k), _bits(v), out
    )
    weights = np.exp2(q.astype(np.float64) @ k.T.astype(np.float64))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    assert abs(out - expected).max() < 2e-3


def _multiply(helper: Any, sums: Any, a: Any, b: Any) -> None:
    if helper is mma:
        mma.multiply(sums, a, b)
        return
    wgmma.fence()
    wgmma.multiply(sums, a, b)
    wgmma.commit()
    wgmma.wait()


def test_each_number_once(rng: Rng) -> None:
    """Going through the sums gives each place of the matrix once, and the rows of a thread are those of its numbers."""
    @ptx_kernel
    def kernel(seen: Array[s32, 2], rows: Array[s32, 2]):
        sums = wgmma.zeros(128, 24, s32)
        for row, column, _ in sums:
            ptx.red.global_.add.s32(seen.at(row, column), 1)
        for number, row in enumerate(sums.rows()):
            rows[ptx.tid.x, number] = row.bits(s32)

    seen, rows = np.zeros((128, 24), np.int32), np.zeros((128, 4), np.int32)
    kernel.configure(1, 128)(seen, rows)
    assert (seen == 1).all()
    assert sorted(set(rows.ravel().tolist())) == list(range(128))
    assert warp.MASK == 0xFFFFFFFF
