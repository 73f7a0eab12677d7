"""Products by `ptxdsl.tcgen05` over types, layouts, shapes, a in tensor memory and pairs of blocks, against numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxdsl import (
    Array, Ptr, PtxTypeError, TensorMap, bf16, cluster, dynamic_shared, e4m3, e5m2, f16, f32, loop, mbarrier, ptx,
    ptx_kernel, s8, s32, shared, tcgen05, tensor_map, tf32, tiles, tma, u8, u16, u32, when,
)

Rng = np.random.Generator
_NUMPY: dict[Any, Any] = {
    f16: np.float16, bf16: ml_dtypes.bfloat16, tf32: np.float32, e4m3: ml_dtypes.float8_e4m3fn,
    e5m2: ml_dtypes.float8_e5m2, s8: np.int8, u8: np.uint8, f32: np.float32, s32: np.int32,
}
_RAW: dict[int, Any] = {1: u8, 2: u16, 4: u32}
_TYPES = [(f16, f16, f32), (f16, f16, f16), (bf16, bf16, f32), (tf32, tf32, f32), (e4m3, e5m2, f32), (s8, u8, s32)]


def _numbers(rng: Rng, kind: Any, shape: tuple[int, int]) -> Any:
    return rng.integers(0 if kind is u8 else -4, 5, shape).astype(_NUMPY[kind])


def _bits(x: Any) -> Any:
    return x.view(f"u{x.dtype.itemsize}").ravel()


def _tile(kind: Any, shape: tuple[int, int], swizzle: int, source: Any, offset: int, start: Any = 0) -> Any:
    """A tile with the numbers of ``source`` from an element on, written by all threads."""
    tile = tiles.Tile(dynamic_shared(kind, align=1024, offset=offset), *shape, swizzle)
    with loop(ptx.tid.x, shape[0] * shape[1], ptx.ntid.x) as i:
        tile.at(i // shape[1], i % shape[1]).cast(_RAW[kind.bytes])[0] = source[i + start]
    return tile


def _product(kinds: Any, swizzles: Any, turned: Any, m: int, n: int, k: int, twice: bool) -> Any:
    left, right, result = kinds
    shapes = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))

    @ptx_kernel
    def kernel(a: Ptr[_RAW[left.bytes]], b: Ptr[_RAW[right.bytes]], c: Array[f32 if result is f16 else result, 2]):
        x = _tile(left, shapes[0], swizzles[0], a, 0)
        y = _tile(right, shapes[1], swizzles[1], b, 65536)
        bar = mbarrier.declare()
        tma.fence()
        mbarrier.start((bar, 1))
        memory = tcgen05.allocate(256)
        sums = memory.sums(m, n, result, column=32 if n <= 64 else 0)
        with when(ptx.tid.x == 32):
            for accumulate in (False, True)[: 1 + twice]:
                tcgen05.multiply(
                    sums, x.T if turned[0] else x, y.T if turned[1] else y, accumulate=accumulate,
                )
            tcgen05.commit(bar)
        mbarrier.wait(bar, 0)
        tcgen05.fence_after()
        sums.load().store(c)
        memory.free()

    return kernel


@pytest.mark.parametrize("kinds", _TYPES, ids=str)
def test_product(rng: Rng, kinds: Any) -> None:
    """Rows of 64 and 128, orders of a and b and swizzles at random, a result without its last rows and columns."""
    k, size = 2 * 32 // kinds[0].bytes, kinds[0].bytes
    m, n = int(rng.choice([64, 128])), int(rng.choice([16, 64, 208]))
    free = size < 4
    turned = (free and rng.random() < 0.5, not free or rng.random() < 0.5)
    if turned[0]:
        m = 128
    if not turned[1]:
        n = 64 if size == 2 else 128
    shapes = ((k, m) if turned[0] else (m, k)), ((n, k) if turned[1] else (k, n))
    swizzles = [int(rng.choice([s for s in (16, 32, 64, 128) if shape[1] * size % s == 0])) for shape in shapes]
    a, b = (_numbers(rng, kind, shape) for kind, shape in zip(kinds, shapes))
    c = np.zeros((m - 1, n - 3), _NUMPY[f32 if kinds[2] is f16 else kinds[2]])
    kernel = _product(kinds, swizzles, turned, m, n, k, True)
    kernel.configure(1, 128, shared=131072)(_bits(a), _bits(b), c)
    x, y = a.T if turned[0] else a, b.T if turned[1] else b
    expected = 2 * (x.astype(np.float64) @ y.astype(np.float64))
    np.testing.assert_array_equal(c, expected[: m - 1, : n - 3], str((m, n, swizzles, turned)))


def test_weights_in_tensor_memory(rng: Rng) -> None:
    """What was loaded from sums is rounded, stored, and multiplied from tensor memory: attention without softmax."""
    @ptx_kernel
    def kernel(a: Ptr[u16], b: Ptr[u16], c: Array[f32, 2]):
        x, y = _tile(f16, (128, 64), 128, a, 0), _tile(f16, (64, 64), 128, b, 16384)
        bars = mbarrier.declare(2)
        tma.fence()
        mbarrier.start((bars, 1))
        memory = tcgen05.allocate(256)
        scores, weights = memory.sums(128, 64), memory.operand(128, 64, f16, column=64)
        out = memory.sums(128, 64, column=128)
        with when(ptx.tid.x == 0):
            tcgen05.multiply(scores, x, y.T, accumulate=False)
            tcgen05.commit(bars)
        mbarrier.wait(bars, 0)
        tcgen05.fence_after()
        part = scores.load()
        part.map(lambda v: v * 0.5)
        weights.store(part)
        tcgen05.fence_before()
        ptx.bar.sync(0)
        with when(ptx.tid.x == 0):
            tcgen05.fence_after()
            tcgen05.multiply(out, weights, y, accumulate=False, negate_b=True)
            tcgen05.commit(bars + 1)
        mbarrier.wait(bars + 1, 0)
        tcgen05.fence_after()
        out.load(32, 32).store(c)
        memory.free()

    a, b = _numbers(rng, f16, (128, 64)), _numbers(rng, f16, (64, 64))
    c = np.full((128, 64), 7, np.float32)
    kernel.configure(1, 128, shared=24576)(_bits(a), _bits(b), c)
    scores = (a.astype(np.float64) @ b.astype(np.float64).T / 2).astype(np.float16).astype(np.float64)
    np.testing.assert_array_equal(c[:, 32:], -(scores @ b.astype(np.float64))[:, 32:])
    assert (c[:, :32] == 7).all()


@pytest.mark.parametrize("rows", [128, 256])
def test_pair(rng: Rng, rows: int) -> None:
    """Each block has half of a's rows and of b's columns; one thread of one block multiplies, both read their part."""
    m, n = rows // 2, 32

    @ptx_kernel
    def kernel(a: Ptr[u16], b: Ptr[u16], c: Array[f32, 2]):
        rank = cluster.rank()
        x = _tile(f16, (m, 64), 128, a, 0, rank * (m * 64))
        y = _tile(f16, (n, 64), 128, b, 32768, rank * (n * 64))
        bar = mbarrier.declare()
        tma.fence()
        mbarrier.start((bar, 1), cluster=True)
        memory = tcgen05.allocate(64, pair=True)
        sums = memory.sums(rows, 2 * n)
        with when((ptx.tid.x == 0) & (rank == 0)):
            tcgen05.multiply(sums, x, y.T, accumulate=False)
            tcgen05.commit(bar, pair=True, multicast=3)
        mbarrier.wait(bar, 0, cluster=True)
        tcgen05.fence_after()
        sums.load().store(c)
        memory.free()

    a, b = _numbers(rng, f16, (rows, 64)), _numbers(rng, f16, (2 * n, 64))
    c = np.full((rows, 2 * n), np.nan, np.float32)
    kernel.configure(2, 128, cluster=2, shared=65536)(_bits(a), _bits(b), c)
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64).T)


def test_copies_that_the_other_block_of_a_pair_waits_for(rng: Rng) -> None:
    """Both blocks copy; the mbarrier of the first counts the bytes of both."""
    @ptx_kernel
    def kernel(a: TensorMap, x: Ptr[f32]):
        box, bar, rank = shared(f32, 8, 32, align=128), mbarrier.declare(), cluster.rank()
        mbarrier.start((bar, 1), cluster=True)
        with when(ptx.tid.x == 0):
            mbarrier.arrive(bar, expect_tx=2 * 8 * 32 * 4, pred=rank == 0)
            tma.load(box, a, (rank * 8, 0), cluster.at(bar, 0), pair=True)
        with when(rank == 0):
            mbarrier.wait(bar, 0, cluster=True)
            for row in range(8):
                x[row * 32 + ptx.tid.x] = box[row, ptx.tid.x] + cluster.at(box, 1)[row, ptx.tid.x]
        cluster.sync()

    a, x = rng.standard_normal((16, 32)).astype(np.float32), np.full((8, 32), np.nan, np.float32)
    kernel.configure(2, 32, cluster=2, backend="emulator")(tensor_map(a, (8, 32)), x)
    np.testing.assert_array_equal(x, a[:8] + a[8:])

    @ptx_kernel
    def apart(a: TensorMap):
        box, bar = shared(f32, 8, 32, align=128), mbarrier.declare()
        tma.load(box, a, (0, 0), cluster.at(bar, 0))

    with pytest.raises(PtxTypeError, match="is no mbarrier"):
        apart.ptx()
