"""The six programs by which the emulator's speed is measured, as one would write them for a GPU, and their references.

Each comes with its data: the arguments of a launch, what it writes, and what numpy computes from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, inf, log2, sqrt
from typing import Any, NamedTuple

import numpy as np
from ptxdsl import Ptr, break_if, f32, loop, maximum, ptx, ptx_kernel, reg, select, shared, u32, when
from ptxdsl import warp

__all__ = ["PROGRAMS", "Case", "Program", "matmul_case"]


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """A thread an element."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def matmul(a: Ptr[f32], b: Ptr[f32], c: Ptr[f32], n: u32, *, tile: int = 16) -> None:
    """A thread an element of c; tiles of a and b go through shared memory."""
    at, bt = shared(f32, tile, tile), shared(f32, tile, tile)
    tx, ty = ptx.tid.x, ptx.tid.y
    row, col = ptx.ctaid.y * tile + ty, ptx.ctaid.x * tile + tx
    acc = reg(f32, 0.0)
    with loop(0, n, tile) as k:
        at[ty, tx] = a[row * n + k + tx]
        bt[ty, tx] = b[(k + ty) * n + col]
        ptx.bar.sync(0)
        for kk in range(tile):
            ptx.fma.rn.f32(at[ty, kk], bt[kk, tx], acc, out=acc)
        ptx.bar.sync(0)
    c[row * n + col] = acc


@ptx_kernel
def softmax(x: Ptr[f32], y: Ptr[f32], *, columns: int = 1024) -> None:
    """A warp a row, which stays in registers."""
    row = (ptx.ctaid.x * ptx.ntid.y + ptx.tid.y) * columns + ptx.tid.x
    values = [x[row + j] for j in range(0, columns, 32)]
    largest = values[0]
    for value in values[1:]:
        largest = maximum(largest, value)
    shift = warp.reduce_max(largest) * -log2(e)
    powers = [ptx.ex2.approx.f32(ptx.fma.rn.f32(value, log2(e), shift)) for value in values]
    total = powers[0]
    for power in powers[1:]:
        total = total + power
    scale = ptx.rcp.approx.f32(warp.reduce_sum(total))
    for j, power in zip(range(0, columns, 32), powers):
        y[row + j] = power * scale


@ptx_kernel
def attention(
    keys: u32, scale: f32, q: Ptr[f32], k: Ptr[f32], v: Ptr[f32], out: Ptr[f32],
    *, dim: int = 64, tile: int = 32, group: int = 4,
) -> None:
    """A thread a query, 64 a block; keys and values go through shared memory, ``group`` scores are rescaled at once."""
    kt, vt = shared(f32, tile, dim), shared(f32, tile, dim)
    t = ptx.tid.x
    i = ptx.ctaid.x * ptx.ntid.x + t
    query = [part * (scale * log2(e)) for d in range(0, dim, 4) for part in q.load(i * dim + d, width=4)]
    acc = [reg(f32, 0.0) for _ in range(dim)]
    largest, total = reg(f32, -inf), reg(f32, 0.0)
    with loop(0, keys, tile) as start:
        ptx.bar.sync(0)
        with loop(t * 4, tile * dim, 64 * 4) as at:
            (kt[0] + at).store(0, k.load(start * dim + at, width=4))
            (vt[0] + at).store(0, v.load(start * dim + at, width=4))
        ptx.bar.sync(0)
        with loop(0, tile, group) as j:
            k0, v0 = kt[0] + j * dim, vt[0] + j * dim
            scores: list[Any] = [None] * group
            for d in range(0, dim, 4):
                parts = [k0.load(g * dim + d, width=4) for g in range(group)]
                for part, element in enumerate(query[d : d + 4]):
                    for g in range(group):
                        key = parts[g][part]
                        scores[g] = element * key if scores[g] is None else ptx.fma.rn.f32(element, key, scores[g])
            top = largest.copy()
            for score in scores:
                top = maximum(top, score)
            shrink = ptx.ex2.approx.f32(largest - top)
            largest.set(top)
            weights = [ptx.ex2.approx.f32(score - top) for score in scores]
            total *= shrink
            for weight in weights:
                total += weight
            for d in range(0, dim, 4):
                rows = [v0.load(g * dim + d, width=4) for g in range(group)]
                for part, element in enumerate(acc[d : d + 4]):
                    element *= shrink
                    for g in range(group):
                        ptx.fma.rn.f32(weights[g], rows[g][part], element, out=element)
    inverse = ptx.rcp.approx.f32(total)
    for d in range(0, dim, 4):
        out.store(i * dim + d, [element * inverse for element in acc[d : d + 4]])


@ptx_kernel
def collatz(n: u32, steps: Ptr[u32]) -> None:
    """Steps of the 3n + 1 rule from i + 1; every lane leaves the loop at its own time. All fits for n = 65,536."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ptx.ret(pred=i >= n)
    value, count = reg(u32, i + 1), reg(u32, 0)
    with loop():
        break_if(value == 1)
        value.set(select((value & 1) == 0, value >> 1, value * 3 + 1))
        count += 1
    steps[i] = count


@ptx_kernel
def histogram(n: u32, data: Ptr[u32], counts: Ptr[u32], *, threads: int = 256) -> None:
    """A histogram a block in shared memory, added up with atomics."""
    mine = shared(u32, 256)
    with loop(ptx.tid.x, 256, threads) as i:
        mine[i] = 0
    ptx.bar.sync(0)
    with loop(ptx.ctaid.x * threads + ptx.tid.x, n, ptx.nctaid.x * threads) as i:
        ptx.red.shared.add.u32(mine + data[i], 1)
    ptx.bar.sync(0)
    with loop(ptx.tid.x, 256, threads) as i:
        ptx.red.global_.add.u32(counts + i, mine[i])


class Case(NamedTuple):
    """A program on data: kernel, grid, block, arguments, what it must have written (by the argument's place), error."""

    kernel: Any
    grid: Any
    block: Any
    arguments: list[Any]
    result: int
    expected: np.ndarray
    allowed: float

    def launcher(self, **options: Any) -> Callable[[], None]:
        """A warm launch on the emulator; ``options`` as of ``configure``."""
        configured = self.kernel.configure(self.grid, self.block, backend="emulator", **options)
        return lambda: configured(*self.arguments)

    def poisoned(self) -> Case:
        """The same case with nothing written yet."""
        arguments = list(self.arguments)
        arguments[self.result] = np.full_like(arguments[self.result], 77 if self.kernel is not histogram else 0)
        return self._replace(arguments=arguments)


class Program(NamedTuple):
    """A program: its name, what it runs on, and how to make that."""

    name: str
    size: str
    case: Callable[[np.random.Generator], Case]


def _saxpy(rng: np.random.Generator) -> Case:
    x, y = rng.standard_normal((2, 1_000_000)).astype(np.float32)
    # y grows with each launch: by 0 here, so that any number of launches leaves the same
    return Case(saxpy, -(-x.size // 256), 256, [x.size, np.float32(0), x, y], 3, y.copy(), 0.0)


def matmul_case(rng: np.random.Generator, n: int = 256) -> Case:
    """The product of two n x n matrices."""
    a, b = rng.standard_normal((2, n, n)).astype(np.float32)
    c = np.full_like(a, np.nan)
    return Case(matmul, (n // 16, n // 16), (16, 16), [a, b, c, n], 2, a.astype(np.float64) @ b, 1e-5)


def _softmax(rng: np.random.Generator) -> Case:
    x = rng.standard_normal((256, 1024)).astype(np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    return Case(softmax, 64, (32, 4), [x, np.full_like(x, np.nan)], 1, expected, 1e-5)


def _attention(rng: np.random.Generator) -> Case:
    q, k, v = rng.standard_normal((3, 256, 64)).astype(np.float32)
    scale = np.float32(1 / sqrt(64))
    scores = np.float64(scale) * (q.astype(np.float64) @ k.T)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ v
    return Case(attention, 4, 64, [256, scale, q, k, v, np.full_like(q, np.nan)], 5, expected, 1e-5)


def _collatz(_: np.random.Generator) -> Case:
    n = 65_536
    value, expected = np.arange(1, n + 1, dtype=np.int64), np.zeros(n, np.uint32)
    while (going := value != 1).any():
        value = np.where(going, np.where(value % 2 == 0, value // 2, 3 * value + 1), value)
        expected += going
    return Case(collatz, n // 128, 128, [n, np.full(n, 7, np.uint32)], 1, expected, 0.0)


def _histogram(rng: np.random.Generator) -> Case:
    data = rng.integers(0, 256, 1_000_000, np.uint32)
    counts = np.zeros(256, np.uint32)
    return Case(histogram, 64, 256, [data.size, data, counts], 2, np.bincount(data, minlength=256), 0.0)


PROGRAMS = (
    Program("saxpy", "1e6", _saxpy), Program("matmul", "256^3", matmul_case),
    Program("softmax", "256 x 1024", _softmax), Program("attention", "256 x 256 x 64", _attention),
    Program("collatz", "65,536", _collatz), Program("histogram", "1e6, 256 bins", _histogram),
)
