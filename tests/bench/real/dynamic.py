"""Dynamic programming and automata, exact."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("needleman_wunsch")
def needleman_wunsch(rng: np.random.Generator, small: bool) -> Case:
    """The launch for the longest diagonal of tiles, in a table that is right above it."""
    tiles, gap = (2, 3) if small else (40, 3)
    n = tiles * 32
    score = rng.integers(-5, 6, (n, n), np.int32)
    full = np.zeros((n + 1, n + 1), np.int32)
    full[0] = full[:, 0] = -gap * np.arange(n + 1)
    for d in range(2 * n - 1):  # all entries of an antidiagonal at once
        y = np.arange(max(0, d - n + 1), min(d, n - 1) + 1)
        x = d - y
        full[y + 1, x + 1] = np.maximum(full[y, x] + score[y, x], np.maximum(full[y, x + 1], full[y + 1, x]) - gap)
    rows, columns = np.indices((n, n)) // 32
    table, expected = full.copy(), full.copy()
    table[1:, 1:][rows + columns >= tiles - 1] = 0
    expected[1:, 1:][rows + columns > tiles - 1] = 0
    return Case(tiles, 32, [score, table, n, tiles - 1, gap], {1: expected})


@kernel("floyd_warshall")
def floyd_warshall(rng: np.random.Generator, small: bool) -> Case:
    n, k = (37, 5) if small else (500, 123)
    before = rng.integers(0, 10_000, (n, n), np.int32)
    expected = np.minimum(before, before[:, k, None] + before[k])
    return Case((-(-n // 32), -(-n // 8)), (32, 8), [before, np.zeros_like(before), n, k], {1: expected})


@kernel("path_grid")
def path_grid(rng: np.random.Generator, small: bool) -> Case:
    w, h, blocks = (100, 5, 2) if small else (1000, 30, 10)
    cost = rng.integers(0, 100, (blocks, h, w), np.int32)
    best = cost[:, 0].copy()
    for y in range(1, h):
        wide = np.pad(best, ((0, 0), (1, 1)), constant_values=1 << 30)
        best = np.minimum(np.minimum(wide[:, :-2], wide[:, 2:]), best) + cost[:, y]
    arguments = [cost, np.zeros((blocks, w), np.int32), w, h]
    return Case(blocks, 256, arguments, {1: best}, native=[*arguments, blocks], shared=8 * w)


@kernel("life")
def life(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 37) if small else (400, 300)
    x = rng.integers(0, 2, (h, w), np.uint8)
    n = sum(np.roll(x, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - x
    expected = (n == 3) | ((n == 2) & (x == 1))
    return Case((-(-w // 16), -(-h // 16)), (16, 16), [x, np.full_like(x, 7), w, h], {1: expected})
