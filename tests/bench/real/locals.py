"""Kernels whose threads have arrays of their own, in local memory."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("insertion_sort")
def insertion_sort(rng: np.random.Generator, small: bool) -> Case:
    n = 150 if small else 10_000
    x = rng.integers(-1000, 1000, (n, 16), np.int32)
    return Case(-(-n // 128), 128, [x, np.zeros_like(x), n], {1: np.sort(x, axis=1)})


@kernel("tree_count")
def tree_count(rng: np.random.Generator, small: bool) -> Case:
    nodes, n = (63, 70) if small else (8191, 4000)
    points = _tree(rng.random((nodes, 2), np.float32))
    low, size = rng.random((n, 2), np.float32), rng.random((n, 2), np.float32) * np.float32(0.1)
    boxes = np.concatenate([low, low + size], axis=1)
    inside = np.ones((n, nodes), bool)
    for axis in range(2):
        inside &= (points[:, axis] >= boxes[:, axis, None]) & (points[:, axis] <= boxes[:, 2 + axis, None])
    out = np.full(n, -1, np.int32)
    return Case(-(-n // 128), 128, [points, nodes, boxes, out, n], {3: inside.sum(1)})


def _tree(points: np.ndarray) -> np.ndarray:
    """A full tree, split by each coordinate in turns: the children of node k are 2 k and 2 k + 1."""
    tree = np.zeros_like(points)
    waiting = [(1, points)]
    while waiting:
        node, mine = waiting.pop()
        mine = mine[np.argsort(mine[:, (node.bit_length() - 1) % 2])]
        middle = len(mine) // 2
        tree[node - 1] = mine[middle]
        if middle:
            waiting += [(2 * node, mine[:middle]), (2 * node + 1, mine[middle + 1 :])]
    return tree


@kernel("mode_rows")
def mode_rows(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (70, 21) if small else (8000, 64)
    x = rng.integers(0, 256, (rows, columns), np.uint8)
    counts = ((x & 15)[:, :, None] == np.arange(16, dtype=np.uint8)).sum(1)
    out = np.full(rows, -1, np.int32)
    return Case(-(-rows // 64), 64, [x, out, rows, columns], {1: counts.argmax(1)})


@kernel("edit_distance")
def edit_distance(rng: np.random.Generator, small: bool) -> Case:
    n, length = (70, 9) if small else (1500, 32)
    a, b = rng.integers(97, 101, (2, n, length), np.uint8)
    row = np.tile(np.arange(length + 1), (n, 1))
    for k in range(1, length + 1):
        before = row.copy()
        row[:, 0] = k
        for j in range(1, length + 1):
            cost = before[:, j - 1] + (a[:, k - 1] != b[:, j - 1])
            row[:, j] = np.minimum(np.minimum(before[:, j], row[:, j - 1]) + 1, cost)
    return Case(-(-n // 128), 128, [a, b, np.full(n, -1, np.int32), n, length], {2: row[:, length]})
