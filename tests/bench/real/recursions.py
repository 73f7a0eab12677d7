"""Kernels whose functions call themselves and each other."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("quicksort")
def quicksort(rng: np.random.Generator, small: bool) -> Case:
    n, length = (70, 20) if small else (300, 100)
    a = rng.integers(0, 1000, (n, length), np.int32)
    return Case(-(-n // 64), 64, [a.ravel(), length, n], {0: np.sort(a, axis=1).ravel()})


@kernel("tree_walk")
def tree_walk(rng: np.random.Generator, small: bool) -> Case:
    n, nodes, limit = (150, 100, 85) if small else (8000, 4000, 93)
    left, right = (np.full(nodes, -1, np.int32) for _ in range(2))
    for node in range(1, nodes):
        above = int(rng.integers(max(0, node - 600), node))
        while left[above] >= 0 and right[above] >= 0:
            above = int((left if rng.random() < 0.5 else right)[above])
        side = left if left[above] < 0 else right
        side[above] = node
    value, root = rng.integers(0, 100, nodes, np.int32), rng.integers(0, nodes, n, np.int32)
    total = np.zeros(nodes + 1, np.int64)  # the last one is that of no node
    for node in reversed(range(nodes)):
        total[node] = value[node] + total[left[node]] + total[right[node]] if value[node] <= limit else 0
    return Case(
        -(-n // 128), 128, [left, right, value, root, np.zeros(n, np.int32), limit, n], {4: total[root]}
    )


@kernel("expression")
def expression(rng: np.random.Generator, small: bool) -> Case:
    n, count = (100, 40) if small else (4000, 140)
    nodes = np.zeros(count, [("operation", np.int32), ("a", np.int32), ("b", np.int32), ("number", np.float32)])
    x, root = rng.uniform(-1, 1, n).astype(np.float32), rng.integers(count // 3, count, n, np.int32)
    values = np.zeros((count, n), np.float32)
    for k, node in enumerate(nodes):
        operation = int(rng.integers(0, 5 if k > 7 else 2))
        a, b = (int(rng.integers(max(0, k - 40), max(1, k))) for _ in range(2))
        node["operation"], node["a"], node["b"], node["number"] = operation, a, b, rng.uniform(-1, 1)
        one, other = values[a], values[b]
        values[k] = (node["number"] + 0 * x, x, one + other, one * other, -one)[operation]
    arguments = [nodes.view(np.int32), root, x, np.full(n, np.nan, np.float32), n]
    return Case(-(-n // 64), 64, arguments, {3: values[root, np.arange(n)]})


@kernel("quadrature")
def quadrature(rng: np.random.Generator, small: bool) -> Case:
    n = 40 if small else 500
    at = rng.random(n)
    expected = 10 * (np.arctan(10 * (1 - at)) + np.arctan(10 * at))
    return Case(-(-n // 64), 64, [at, np.full(n, np.nan), 1e-7, n], {1: expected}, 1e-6)
