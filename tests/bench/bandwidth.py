"""Memory-bound kernels beside numpy, and matrix products beside its BLAS: ``python tests/bench/bandwidth.py``.

Copies (an element a thread, four elements a thread, a byte a thread, grid-stride), fills, saxpy and transposes of
arrays of 1 MB and of 64 MB beside numpy's functions that read and write the same bytes; f32 products by tiles of
16 x 16 beside ``numpy.matmul``, of arrays that begin with a page and 16 bytes behind it.
One thread; interleaved rounds, every result checked against numpy; the ratio is that of the medians.
``--rounds N``, ``--only NAME ...``, ``--cpu`` for the processor's time instead of the wall's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import ptxdsl
from emulator import ONE_THREAD, seconds, tiered_up
from programs import matmul, saxpy
from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, shared, u8, u32, when
from ptxdsl.bench import error_of, table

__all__ = ["main"]

SIZES = {"1 MB": 1 << 18, "64 MB": 1 << 24}
"""Elements of each array."""
SIDES = {"1 MB": 512, "64 MB": 4096}
PRODUCTS = (256, 512, 1024)
PAGE = 4096
OFFSETS = (0, 16)
"""Bytes from a page's begin to a matrix: numpy aligns to 16 bytes."""
STREAM, PRODUCT = 1.2, 2.0
"""The promises: times of numpy's time."""


@ptx_kernel
def copy(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """A thread an element."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = x[i]


@ptx_kernel
def copy4(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """A thread four elements, as one access."""
    i = (ptx.ctaid.x * ptx.ntid.x + ptx.tid.x) * 4
    with when(i < n):
        y.store(i, x.load(i, width=4))


@ptx_kernel
def copy_bytes(n: u32, x: Ptr[u8], y: Ptr[u8]) -> None:
    """A thread a byte."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = x[i]


@ptx_kernel
def fill(n: u32, a: f32, y: Ptr[f32]) -> None:
    """A thread an element."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a


@ptx_kernel
def copy_strided(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """All threads of the grid go on together."""
    with loop(ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, n, ptx.nctaid.x * ptx.ntid.x) as i:
        y[i] = x[i]


@ptx_kernel
def copy4_strided(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """The same with four elements a thread."""
    first = (ptx.ctaid.x * ptx.ntid.x + ptx.tid.x) * 4
    with loop(first, n, ptx.nctaid.x * ptx.ntid.x * 4) as i:
        y.store(i, x.load(i, width=4))


@ptx_kernel
def saxpy_strided(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """All threads of the grid go on together."""
    with loop(ptx.ctaid.x * ptx.ntid.x + ptx.tid.x, n, ptx.nctaid.x * ptx.ntid.x) as i:
        y[i] = a * x[i] + y[i]


@ptx_kernel
def transpose(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """Tiles of 32 x 32 through shared memory, by 32 x 8 threads."""
    tile = shared(f32, 32, 33)
    tx, ty = ptx.tid.x, ptx.tid.y
    column, row = ptx.ctaid.x * 32, ptx.ctaid.y * 32
    for j in range(0, 32, 8):
        tile[ty + j, tx] = x[(row + ty + j) * n + column + tx]
    ptx.bar.sync(0)
    for j in range(0, 32, 8):
        y[(column + ty + j) * n + row + tx] = tile[tx, ty + j]


@ptx_kernel
def transpose_naive(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """A thread an element, without shared memory."""
    column, row = ptx.ctaid.x * 32 + ptx.tid.x, ptx.ctaid.y * 8 + ptx.tid.y
    y[column * n + row] = x[row * n + column]


class Pair(NamedTuple):
    """A launch and numpy's function for the same bytes; what was written, and what was wanted."""

    name: str
    size: str
    ours: Callable[[], object]
    numpy: Callable[[], object]
    result: np.ndarray
    expected: np.ndarray
    allowed: float = 0.0
    limit: float = STREAM


def _launcher(kernel: Any, grid: Any, block: Any, *arguments: Any) -> Callable[[], object]:
    return partial(kernel.configure(grid, block, backend="emulator"), *arguments)


def _bytes(*arrays: np.ndarray) -> list[np.ndarray]:
    return [array.view(np.uint8) for array in arrays]


def streams(size: str, rng: np.random.Generator) -> list[Pair]:
    """Copies and sums of arrays of one size."""
    n, a = SIZES[size], np.float32(0)  # y grows with each launch, by 0
    x, y, z = (rng.standard_normal(n, np.float32) for _ in range(3))
    t, w, sums = np.empty_like(x), np.empty_like(x), y.copy()

    def add() -> None:
        np.multiply(x, a, out=t)
        np.add(t, sums, out=sums)

    copied = partial(np.copyto, z, x)
    return [
        Pair("copy", size, _launcher(copy, n // 256, 256, n, x, z), copied, z, x),
        Pair("copy4", size, _launcher(copy4, n // 1024, 256, n, x, z), copied, z, x),
        Pair("copy_bytes", size, _launcher(copy_bytes, n // 64, 256, 4 * n, *_bytes(x, z)), copied, z, x),
        Pair("fill", size, _launcher(fill, n // 256, 256, n, a, w), partial(w.fill, a), w, np.full_like(w, a)),
        Pair("copy_strided", size, _launcher(copy_strided, 64, 256, n, x, z), copied, z, x),
        Pair("copy4_strided", size, _launcher(copy4_strided, 64, 256, n, x, z), copied, z, x),
        Pair("saxpy", size, _launcher(saxpy, n // 256, 256, n, a, x, y), add, y, y.copy()),
        Pair("saxpy_strided", size, _launcher(saxpy_strided, 64, 256, n, a, x, y), add, y, y.copy()),
    ]


def transposes(size: str, rng: np.random.Generator) -> list[Pair]:
    """Transposes of a square matrix."""
    n = SIDES[size]
    x = rng.standard_normal((n, n), np.float32)
    y = np.empty_like(x)
    ours = _launcher(transpose, (n // 32, n // 32), (32, 8), n, x, y)
    naive = _launcher(transpose_naive, (n // 32, n // 8), (32, 8), n, x, y)
    turned = partial(np.copyto, y, x.T)
    return [Pair("transpose", size, ours, turned, y, x.T), Pair("transpose_naive", size, naive, turned, y, x.T)]


def placed(n: int, offset: int) -> np.ndarray:
    """An n x n matrix that begins so many bytes behind a page's begin."""
    memory = np.empty(n * n * 4 + 2 * PAGE, np.uint8)
    start = -memory.ctypes.data % PAGE + offset
    return memory[start : start + n * n * 4].view(np.float32).reshape(n, n)


def product(n: int, rng: np.random.Generator, offset: int) -> Pair:
    """The product of two n x n matrices."""
    a, b, c = (placed(n, offset) for _ in range(3))
    a[:], b[:] = rng.standard_normal((2, n, n), np.float32)
    ours = _launcher(matmul, (n // 16, n // 16), (16, 16), a, b, c, n)
    expected = a.astype(np.float64) @ b
    return Pair("matmul", f"{n}^3 +{offset}", ours, partial(np.matmul, a, b), c, expected, 1e-5, PRODUCT)


def products(n: int, rng: np.random.Generator) -> list[Pair]:
    """Products of matrices whose rows lie in cache lines of their own, and of such whose rows do not."""
    return [product(n, rng, offset) for offset in OFFSETS]


def measured(pairs: list[Pair], rounds: int) -> list[tuple[str, ...]]:
    """A row of the table for each pair; raises SystemExit where a result is wrong."""
    rows: list[tuple[str, ...]] = []
    for pair in pairs:
        tiered_up(pair.ours)
        if "saxpy" not in pair.name:
            pair.result.view(np.uint8)[:] = 0xA5
        pair.ours()
        if not error_of(pair.result, pair.expected) <= pair.allowed:
            raise SystemExit(f"{pair.name} {pair.size}: a wrong result")
        times: tuple[list[float], list[float]] = [], []
        for _ in range(rounds):
            for spent, call in zip(times, (pair.ours, pair.numpy)):
                spent.append(seconds(call))
        ours, theirs = (statistics.median(spent) * 1e3 for spent in times)
        best = min(times[0]) / min(times[1])
        verdict = "ok" if ours <= pair.limit * theirs else "OVER"
        rows.append((pair.name, pair.size, f"{ours:.3g}", f"{theirs:.3g}", f"{ours / theirs:.2f}", f"{best:.2f}",
                     f"<= {pair.limit:g}", verdict))
    return rows


def main() -> int:
    """Print the table; 1 where a promise is not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    if any(os.environ.get(name) != "1" for name in ONE_THREAD):  # libraries read these when they are loaded
        return subprocess.call([sys.executable, *sys.argv], env={**os.environ, **dict.fromkeys(ONE_THREAD, "1")})
    rng, rows = np.random.default_rng(), []
    sources = [partial(make, size, rng) for size in SIZES for make in (streams, transposes)]
    for make in (*sources, *(partial(products, n, rng) for n in PRODUCTS)):
        pairs = [pair for pair in make() if not options.only or not {pair.name, pair.size}.isdisjoint(options.only)]
        rows += measured(pairs, options.rounds)
    print(f"ptxdsl {ptxdsl.__version__}, one thread, medians in ms\n")
    header = ("kernel", "arrays", "ptxdsl", "numpy", "times numpy", "of the minima", "limit", "")
    print(table(header, rows))
    return int(any(row[-1] == "OVER" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
