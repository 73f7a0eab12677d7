"""Whole programs as users write them, each against numpy on random data.

Here the language, the PTX and the emulator have to agree on more than one instruction at a time.
"""

from __future__ import annotations

import numpy as np
import pytest

from ptxdsl import (
    Array, Ptr, break_if, continue_if, dynamic_shared, f16, f32, f64, local, loop, maximum, minimum, otherwise, ptx,
    ptx_kernel, reg, s32, s64, select, shared, u8, u32, u64, when,
)

Rng = np.random.Generator


@ptx_kernel
def bitonic_sort(data: Ptr[u32], *, size):
    """One block sorts ``size`` keys (a power of two) in shared memory."""
    keys = shared(u32, size)
    t = ptx.tid.x
    keys[t] = data[t]
    width = 2
    while width <= size:
        stride = width // 2
        while stride:
            ptx.bar.sync(0)
            other = t ^ stride
            with when(other > t):
                a, b = keys[t], keys[other]
                up = (t & width) == 0
                low, high = minimum(a, b), maximum(a, b)
                keys[t] = select(up, low, high)
                keys[other] = select(up, high, low)
            stride //= 2
        width *= 2
    ptx.bar.sync(0)
    data[t] = keys[t]


@pytest.mark.parametrize("size", [2, 32, 64, 1024])
def test_bitonic_sort(size: int, rng: Rng) -> None:
    keys = rng.integers(0, 2**32, size, np.uint32)
    expected = np.sort(keys)
    bitonic_sort[1, size](keys, size=size)
    np.testing.assert_array_equal(keys, expected)


@ptx_kernel
def scan(x: Ptr[s32], y: Ptr[s32], n: u32, *, block=256):
    """Inclusive prefix sum of each block's slice (Hillis and Steele, two buffers)."""
    buffers = shared(s32, 2, block)
    t = ptx.tid.x
    i = ptx.ctaid.x * block + t
    value = reg(s32, 0)
    with when(i < n):
        value.set(x[i])
    buffers[0, t] = value
    ptx.bar.sync(0)
    here, step = 0, 1
    while step < block:
        with when(t >= step):
            value += buffers[here, t - step]
        here ^= 1
        buffers[here, t] = value
        ptx.bar.sync(0)
        step *= 2
    with when(i < n):
        y[i] = value


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000])
def test_scan(n: int, rng: Rng) -> None:
    x = rng.integers(-1000, 1000, n, np.int32)
    y = np.full(n, -1, np.int32)
    scan[-(-n // 256), 256](x, y, n)
    for start in range(0, n, 256):
        np.testing.assert_array_equal(y[start : start + 256], np.cumsum(x[start : start + 256]))


@ptx_kernel
def collatz(n: u32, steps: Ptr[u32]):
    """Steps of the 3n + 1 rule from each start: every lane leaves the loop at its own time."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ptx.ret(pred=i >= n)
    value = reg(u64, (i + 1).to(u64))
    count = reg(u32, 0)
    with loop():
        break_if(value == 1)
        with when((value & 1) == 0):
            value >>= 1
        with otherwise():
            value.set(value * 3 + 1)
        count += 1
    steps[i] = count


def test_collatz() -> None:
    def steps_of(value: int) -> int:
        steps = 0
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            steps += 1
        return steps

    n = 777
    steps = np.full(n, 0xFFFFFFFF, np.uint32)
    collatz[-(-n // 128), 128](n, steps)
    assert steps.tolist() == [steps_of(i + 1) for i in range(n)]


@ptx_kernel
def primes(n: u32, found: Ptr[u8]):
    """Trial division, with a continue and a break in one loop."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        composite = reg(u32, 0)
        with loop(2, n) as d:
            break_if(d * d > i)
            continue_if((d > 2) & ((d & 1) == 0))
            with when(i % d == 0):
                composite.set(1)
        with when((composite == 0) & (i >= 2)):
            found[i] = 1
        with otherwise():
            found[i] = 0


def test_primes() -> None:
    n = 500
    found = np.full(n, 7, np.uint8)
    primes[4, 128](n, found)
    expected = [int(i >= 2 and all(i % d for d in range(2, i))) for i in range(n)]
    assert found.tolist() == expected


@ptx_kernel
def spin_lock(lock: Ptr[u32], total: Ptr[u32], *, rounds):
    """Every thread of every block adds under one lock: threads of one warp wait for each other."""
    with loop(rounds):
        with loop():
            taken = ptx.atom.global_.cas.b32(lock, 0, 1)
            with when(taken == 0):
                ptx.membar.gl()
                total[0] = ptx.ld.volatile.global_.u32(total) + 1
                ptx.membar.gl()
                ptx.atom.global_.exch.b32(lock, 0)
            break_if(taken == 0)


def test_spin_lock() -> None:
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    spin_lock[3, 64](lock, total, rounds=2)
    assert total[0] == 3 * 64 * 2 and lock[0] == 0


@ptx_kernel
def ring(items: Ptr[u32], out: Ptr[u32], n: u32, *, slots=4):
    """Warp 0 produces, warp 1 consumes, through a ring in shared memory and flags that both poll."""
    queue = shared(u32, slots, 32)
    full, empty = shared(u32, 1), shared(u32, 1)
    lane, warp = ptx.tid.x & 31, ptx.tid.x >> 5
    with when(ptx.tid.x == 0):
        full[0] = 0
        empty[0] = 0
    ptx.bar.sync(0)
    with when(warp == 0):
        with loop(n) as i:
            with loop():
                done = ptx.ld.volatile.shared.u32(empty + 0)
                break_if(i - done < slots)
            ptx.membar.cta()
            queue[i % slots, lane] = items[i * 32 + lane]
            ptx.membar.cta()
            ptx.bar.warp.sync(0xFFFFFFFF)
            with when(lane == 0):
                ptx.st.volatile.shared.u32(full + 0, i + 1)
    with otherwise():
        with loop(n) as i:
            with loop():
                ready = ptx.ld.volatile.shared.u32(full + 0)
                break_if(ready > i)
            ptx.membar.cta()
            out[i * 32 + lane] = queue[i % slots, lane] * 2
            ptx.membar.cta()
            ptx.bar.warp.sync(0xFFFFFFFF)
            with when(lane == 0):
                ptx.st.volatile.shared.u32(empty + 0, i + 1)


def test_producer_and_consumer_warps(rng: Rng) -> None:
    n = 37
    items = rng.integers(0, 2**31, n * 32, np.uint32)
    out = np.full_like(items, 1)
    ring[1, 64](items, out, n)
    np.testing.assert_array_equal(out, items * 2)


@ptx_kernel
def grid_barrier(arrived: Ptr[u32], x: Ptr[u32], y: Ptr[u32]):
    """Every block writes, all wait for all, every block reads its neighbour's: blocks must run side by side."""
    t, b = ptx.tid.x, ptx.ctaid.x
    x[b * 32 + t] = b * 100 + t
    ptx.membar.gl()
    ptx.bar.sync(0)
    with when(t == 0):
        ptx.atom.global_.add.u32(arrived, 1)
        with loop():
            break_if(ptx.ld.volatile.global_.u32(arrived) == ptx.nctaid.x)
    ptx.bar.sync(0)
    neighbour = (b + 1) % ptx.nctaid.x
    y[b * 32 + t] = ptx.ld.volatile.global_.u32(x + (neighbour * 32 + t))


def test_blocks_wait_for_each_other() -> None:
    blocks = 9
    arrived = np.zeros(1, np.uint32)
    x, y = np.full((blocks, 32), 9, np.uint32), np.full((blocks, 32), 9, np.uint32)
    grid_barrier[blocks, 32](arrived, x, y)
    expected = np.arange(blocks)[:, None] * 100 + np.arange(32)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, np.roll(expected, -1, axis=0))


@ptx_kernel
def stencil(a: Array[f32, 2], b: Array[f32, 2]):
    """Mean of the five points around each inner point of a matrix with any row stride."""
    row = ptx.ctaid.y * ptx.ntid.y + ptx.tid.y + 1
    col = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x + 1
    with when((row + 1 < a.shape[0]) & (col + 1 < a.shape[1])):
        total = a[row, col] + a[row - 1, col] + a[row + 1, col] + a[row, col - 1] + a[row, col + 1]
        b[row, col] = total * 0.2


@pytest.mark.parametrize(("rows", "cols"), [(3, 3), (17, 41), (33, 32)])
def test_stencil_on_strided_views(rows: int, cols: int, rng: Rng) -> None:
    a = rng.standard_normal((rows, cols + 5)).astype(np.float32)[:, :cols]
    b = np.zeros((rows, cols), np.float32)
    stencil[(-(-cols // 16), -(-rows // 8)), (16, 8)](a, b)
    a64 = a.astype(np.float64)
    inner = a64[1:-1, 1:-1] + a64[:-2, 1:-1] + a64[2:, 1:-1] + a64[1:-1, :-2] + a64[1:-1, 2:]
    np.testing.assert_allclose(b[1:-1, 1:-1], inner * 0.2, rtol=0, atol=1e-6)
    assert not b[0].any() and not b[:, -1].any()


@ptx_kernel
def reverse(x: Ptr[f64], *, n):
    """Reverse within a block through dynamic shared memory."""
    buffer = dynamic_shared(f64)
    t = ptx.tid.x
    buffer[t] = x[t]
    ptx.bar.sync(0)
    x[t] = buffer[n - 1 - t]


def test_dynamic_shared_memory(rng: Rng) -> None:
    x = rng.standard_normal(100)
    expected = x[::-1].copy()
    reverse.configure(1, 100, shared=800)(x, n=100)
    np.testing.assert_array_equal(x, expected)


@ptx_kernel
def local_sort(x: Ptr[f32], n: u32, *, count=8):
    """Each thread sorts its own eight numbers in local memory (insertion sort with data-dependent loops)."""
    mine = local(f32, count)
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        for k in range(count):
            mine[k] = x[i * count + k]
        with loop(1, count) as k:
            value = mine[k]
            hole = reg(u32, k)
            with loop():
                break_if(hole == 0)
                before = mine[hole - 1]
                break_if(before <= value)
                mine[hole] = before
                hole -= 1
            mine[hole] = value
        for k in range(count):
            x[i * count + k] = mine[k]


def test_local_memory(rng: Rng) -> None:
    n = 45
    x = rng.standard_normal((n, 8)).astype(np.float32)
    expected = np.sort(x, axis=1)
    local_sort[2, 32](x.reshape(-1), n)
    np.testing.assert_array_equal(x, expected)


@ptx_kernel
def axpy_half(a: f16, x: Ptr[f16], y: Ptr[f16], n: u32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = ptx.fma.rn.f16(a, x[i], y[i])


def test_half_precision(rng: Rng) -> None:
    x, y = rng.standard_normal((2, 300)).astype(np.float16)
    exact = np.float64(np.float16(0.3)) * x.astype(np.float64) + y.astype(np.float64)
    axpy_half[3, 128](np.float16(0.3), x, y, 300)
    np.testing.assert_array_equal(y, exact.astype(np.float16))


@ptx_kernel
def dot(x: Ptr[f64], y: Ptr[f64], out: Ptr[f64], n: s64):
    """Grid-stride loop with 64-bit indices and a double atomic."""
    acc = reg(f64, 0.0)
    start = (ptx.ctaid.x * ptx.ntid.x + ptx.tid.x).to(s64)
    with loop(start, n, (ptx.nctaid.x * ptx.ntid.x).to(s64)) as i:
        ptx.fma.rn.f64(x[i], y[i], acc, out=acc)
    ptx.red.global_.add.f64(out, acc)


def test_dot(rng: Rng) -> None:
    x, y = rng.standard_normal((2, 1001))
    out = np.zeros(1)
    dot[2, 96](x, y, out, 1001)
    np.testing.assert_allclose(out[0], x @ y, rtol=0, atol=1e-11)
