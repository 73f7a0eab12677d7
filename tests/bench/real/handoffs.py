"""Kernels that hand data from one thread, warp or block to another."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("look_back")
def look_back(rng: np.random.Generator, small: bool) -> Case:
    # Each launch after the first finds the states set: it is right since what it reads there is the same.
    n = 1500 if small else 100_000
    x, blocks = rng.integers(-100, 100, n, np.int32), -(-n // 256)
    sums, totals, states = (np.zeros(blocks, np.int32) for _ in range(3))
    out = np.zeros_like(x)
    return Case(blocks, 256, [x, out, sums, totals, states, n, 1], {1: np.cumsum(x)}, native=[x, out, n])


@kernel("two_buffers")
def two_buffers(rng: np.random.Generator, small: bool) -> Case:
    blocks, tiles = (2, 5) if small else (40, 50)
    x, out = rng.standard_normal((blocks, tiles, 96)).astype(np.float32), np.zeros((blocks, 96), np.float32)
    return Case(blocks, 128, [x, out, tiles], {1: x.sum(1, dtype=np.float64)}, 1e-4, native=[x, out, tiles, blocks])


@kernel("chain_of_blocks")
def chain_of_blocks(rng: np.random.Generator, small: bool) -> Case:
    blocks, steps = (4, 3) if small else (300, 20)
    x = rng.integers(0, 1 << 32, (blocks, 64), np.uint32)
    edge, flags, out, expected = np.zeros_like(x), np.zeros(blocks, np.int32), np.zeros_like(x), x.copy()
    for b in range(blocks):
        expected[b] += expected[b - 1] if b else 0
        for _ in range(steps):
            expected[b] = expected[b] * np.uint32(5) + np.uint32(1)
    return Case(blocks, 64, [x, edge, flags, out, steps, 1], {3: expected}, native=[x, out, steps, blocks])


@kernel("cluster_argmax")
def cluster_argmax(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (2, 1500) if small else (40, 6000)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    best, where = np.zeros(rows, np.float32), np.zeros(rows, np.int32)
    native = [x, best, where, columns, rows]
    return Case(8 * rows, 128, [x, best, where, columns], {1: x.max(1), 2: x.argmax(1)}, native=native, cluster=8)


@kernel("cluster_halo")
def cluster_halo(rng: np.random.Generator, small: bool) -> Case:
    clusters, steps = (2, 3) if small else (30, 20)
    x, out = rng.standard_normal((clusters, 512)).astype(np.float32), np.zeros((clusters, 512), np.float32)
    expected = np.pad(x.astype(np.float64), ((0, 0), (1, 1)))
    for _ in range(steps):
        expected[:, 1:-1] = 0.25 * expected[:, :-2] + 0.5 * expected[:, 1:-1] + 0.25 * expected[:, 2:]
    native = [x, out, steps, clusters]
    return Case(4 * clusters, 128, [x, out, steps], {1: expected[:, 1:-1]}, 1e-5, native=native, cluster=4)


@kernel("cluster_lookup")
def cluster_lookup(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (3000, 4) if small else (200_000, 16)
    table, index = rng.integers(0, 1 << 30, 1024, np.int32), rng.integers(0, 1024, n, np.int32)
    return Case(blocks, 256, [table, index, np.zeros(n, np.int32), n], {2: table[index]}, cluster=4)


@kernel("segmented_sum")
def segmented_sum(rng: np.random.Generator, small: bool) -> Case:
    n = 1500 if small else 300_000
    x, head = rng.integers(-100, 100, n, np.int32), rng.random(n) < 0.1
    ids = (np.cumsum(head) - 1 + (not head[0])).astype(np.int32)
    sums = np.zeros(ids[-1] + 1, np.int32)
    expected = np.bincount(ids, x).astype(np.int32)
    arguments = [x, head.astype(np.uint8), ids, sums, n]
    return Case(-(-n // 256), 256, arguments, {3: expected}, native=[x, ids, sums, n])


@kernel("partition_ballot")
def partition_ballot(rng: np.random.Generator, small: bool) -> Case:
    n = 1500 if small else 300_000
    x, pivot = rng.integers(-1000, 1000, n, np.int32), 100
    rows = [x[first : first + 256] for first in range(0, n, 256)]
    expected = np.concatenate([np.concatenate((row[row < pivot], row[row >= pivot])) for row in rows])
    lefts = np.zeros(len(rows), np.int32)
    arguments = [x, np.zeros_like(x), lefts, pivot, n]
    return Case(len(rows), 256, arguments, {1: expected, 2: [int((row < pivot).sum()) for row in rows]})
