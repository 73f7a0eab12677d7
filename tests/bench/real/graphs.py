"""Graphs: triangles, a step of breadth-first search with a queue."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


def _graph(rng: np.random.Generator, vertices: int, edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the sorted neighbours of each vertex begin, these, and the vertex of each."""
    pairs = np.unique(np.sort(rng.integers(0, vertices, (edges, 2)), axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))].astype(np.int32)
    row = np.searchsorted(both[:, 0], np.arange(vertices + 1)).astype(np.int32)
    return row, both[:, 1].copy(), both[:, 0].copy()


@kernel("triangles")
def triangles(rng: np.random.Generator, small: bool) -> Case:
    """The neighbours are passed twice: as such, and as the ends of the edges."""
    vertices, edges = (50, 300) if small else (2000, 15_000)
    row, col, source = _graph(rng, vertices, edges)
    linked = np.zeros((vertices, vertices), np.float32)
    linked[source, col] = 1
    expected = np.array([int((linked @ linked * linked).sum(dtype=np.float64))], np.uint64)
    total = np.zeros(1, np.uint64)
    return Case(-(-col.size // 384), 384, [row, col, source, col, col.size, total], {5: expected})


@kernel("bfs_queue")
def bfs_queue(rng: np.random.Generator, small: bool) -> Case:
    vertices, edges, many = (300, 900, 40) if small else (60_000, 240_000, 12_000)
    row, col, source = _graph(rng, vertices, edges)
    frontier = rng.choice(vertices, many, replace=False).astype(np.int32)
    dist = np.full(vertices, -1, np.int32)
    dist[frontier] = 0
    expected = dist.copy()
    reached = col[np.isin(source, frontier)]
    expected[reached[dist[reached] == -1]] = 1
    count, following = np.zeros(1, np.int32), np.zeros(vertices, np.int32)
    arguments = [row, col, frontier, many, dist, following, count, 1]
    return Case(-(-many // 256), 256, arguments, {4: expected, 6: [int((expected == 1).sum())]})
