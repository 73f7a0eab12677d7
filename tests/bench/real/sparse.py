"""Sparse matrices and graphs: rows of many lengths, gathered values."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


def _rows(rng: np.random.Generator, rows: int, columns: int, mean: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each row begins, and the columns: rows of lengths about a mean, some empty, some long."""
    lengths = np.minimum(rng.geometric(1 / mean, rows) - 1, columns)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return start, rng.integers(0, columns, start[-1], np.int32)


def _csr(rng: np.random.Generator, rows: int, mean: int) -> tuple[list[np.ndarray], np.ndarray]:
    start, column = _rows(rng, rows, rows, mean)
    value, x = rng.standard_normal(column.size).astype(np.float32), rng.standard_normal(rows).astype(np.float32)
    owner = np.repeat(np.arange(rows), np.diff(start))
    expected = np.bincount(owner, value.astype(np.float64) * x[column], rows)
    return [start, column, value, x, np.full(rows, np.nan, np.float32)], expected


@kernel("csr_scalar")
def csr_scalar(rng: np.random.Generator, small: bool) -> Case:
    rows = 200 if small else 20_000
    arrays, expected = _csr(rng, rows, 12)
    return Case(-(-rows // 128), 128, [*arrays, rows], {4: expected}, 1e-5)


@kernel("csr_vector")
def csr_vector(rng: np.random.Generator, small: bool) -> Case:
    rows = 61 if small else 4000
    arrays, expected = _csr(rng, rows, 60)
    return Case(-(-rows // 4), 128, [*arrays, rows], {4: expected}, 1e-5)


@kernel("ell")
def ell(rng: np.random.Generator, small: bool) -> Case:
    rows, width = (100, 5) if small else (30_000, 12)
    column = rng.integers(-rows // 4, rows, (width, rows)).astype(np.int32)
    column[column < 0] = -1
    value, x = rng.standard_normal((width, rows)), rng.standard_normal(rows)
    expected = np.where(column >= 0, value * x[column], 0.0).sum(0)
    return Case(-(-rows // 256), 256, [column, value, x, np.full(rows, np.nan), rows, width], {3: expected}, 1e-12)


@kernel("bfs_step")
def bfs_step(rng: np.random.Generator, small: bool) -> Case:
    n = 300 if small else 60_000
    start, to = _rows(rng, n, n, 8)
    before = rng.choice(np.array([-1, -1, -1, 0, 1, 2], np.int32), n)
    expected = before.copy()
    found = to[np.repeat(before == 2, np.diff(start))]
    expected[found[before[found] < 0]] = 3
    changed = np.zeros(1, np.int32)
    arguments = [start, to, before, before.copy(), changed, n, 2]
    return Case(-(-n // 256), 256, arguments, {3: expected, 4: [1]})


@kernel("relax_edges")
def relax_edges(rng: np.random.Generator, small: bool) -> Case:
    n, edges = (100, 1000) if small else (30_000, 200_000)
    ends, cost = rng.integers(0, n, (2, edges), np.int32), rng.integers(1, 100, edges, np.uint32)
    before = rng.integers(0, 1000, n, np.uint32)
    before[rng.random(n) < 0.3] = 0xFFFFFFFF
    known = before[ends[0]] != 0xFFFFFFFF
    expected = before.copy()
    np.minimum.at(expected, ends[1][known], (before[ends[0]] + cost)[known])
    arguments = [ends[0].copy(), ends[1].copy(), cost, before, before.copy(), edges]
    return Case(-(-edges // 256), 256, arguments, {4: expected})


@kernel("pagerank")
def pagerank(rng: np.random.Generator, small: bool) -> Case:
    n = 200 if small else 20_000
    start, source = _rows(rng, n, n, 10)
    degree = np.maximum(np.bincount(source, minlength=n), 1).astype(np.int32)
    before = rng.random(n, np.float32)
    owner = np.repeat(np.arange(n), np.diff(start))
    expected = 0.15 / n + 0.85 * np.bincount(owner, before[source].astype(np.float64) / degree[source], n)
    arguments = [start, source, degree, before, np.full(n, np.nan, np.float32), n]
    return Case(-(-n // 192), 192, arguments, {4: expected}, 1e-5)
