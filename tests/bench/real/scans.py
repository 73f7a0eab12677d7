"""Prefix sums of the numbers of each block, and compaction by ballots."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


def _of_blocks(x: np.ndarray, block: int) -> np.ndarray:
    """The inclusive sums within each block."""
    padded = np.zeros(-(-x.size // block) * block, np.float64 if x.dtype.kind == "f" else x.dtype)
    padded[: x.size] = x
    return padded.reshape(-1, block).cumsum(1).reshape(-1)[: x.size].astype(padded.dtype)


@kernel("scan_hillis_steele")
def scan_hillis_steele(rng: np.random.Generator, small: bool) -> Case:
    n = 700 if small else 300_000
    x = rng.standard_normal(n).astype(np.float32)
    return Case(-(-n // 256), 256, [x, np.full_like(x, np.nan), n], {1: _of_blocks(x, 256)}, 1e-5)


@kernel("scan_tree")
def scan_tree(rng: np.random.Generator, small: bool) -> Case:
    n = 701 if small else 300_001
    x = rng.integers(-100, 100, n, np.int32)
    return Case(-(-n // 256), 128, [x, np.full_like(x, 7), n], {1: _of_blocks(x, 256) - x})


@kernel("scan_warps")
def scan_warps(rng: np.random.Generator, small: bool) -> Case:
    n = 701 if small else 500_001
    x = rng.integers(-100, 100, n, np.int32)
    return Case(-(-n // 512), 512, [x, np.full_like(x, 7), n], {1: _of_blocks(x, 512)})


@kernel("compact_ballot")
def compact_ballot(rng: np.random.Generator, small: bool) -> Case:
    n = 701 if small else 400_001
    x, blocks = rng.integers(-100, 100, n, np.int32), -(-n // 256)
    expected, counts = np.zeros(blocks * 256, np.int32), np.zeros(blocks, np.int32)
    for b in range(blocks):
        kept = x[b * 256 : b * 256 + 256]
        kept = kept[kept > 0]
        expected[b * 256 : b * 256 + kept.size], counts[b] = kept, kept.size
    return Case(blocks, 256, [x, np.zeros_like(expected), np.zeros(blocks, np.int32), n], {1: expected, 2: counts})
