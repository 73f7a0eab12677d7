"""Kernels that move data."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("saxpy_third")
def saxpy_third(rng: np.random.Generator, small: bool) -> Case:
    n, a = 1000 if small else 1_000_000, np.float32(rng.standard_normal())
    x, y = rng.standard_normal((2, n)).astype(np.float32)
    return Case(-(-n // 256), 256, [x, y, np.full_like(x, np.nan), a, n], {2: np.float64(a) * x + y}, 1e-6)


@kernel("copy_vectors")
def copy_vectors(rng: np.random.Generator, small: bool) -> Case:
    n, blocks = (1000, 3) if small else (250_000, 128)
    x = rng.integers(0, 1 << 31, (n, 4), np.int32)
    return Case(blocks, 256, [x, np.zeros_like(x), n], {1: x})


def _transpose(small: bool, rng: np.random.Generator, block: tuple[int, int], tile: tuple[int, int]) -> Case:
    w, h = (70, 45) if small else (1000, 700)
    x, out = rng.standard_normal((h, w)).astype(np.float32), np.full((w, h), np.nan, np.float32)
    return Case((-(-w // tile[0]), -(-h // tile[1])), block, [x, out, w, h], {1: x.T})


@kernel("transpose_naive")
def transpose_naive(rng: np.random.Generator, small: bool) -> Case:
    return _transpose(small, rng, (16, 16), (16, 16))


@kernel("transpose_tiled")
def transpose_tiled(rng: np.random.Generator, small: bool) -> Case:
    return _transpose(small, rng, (32, 8), (32, 32))


@kernel("embedding")
def embedding(rng: np.random.Generator, small: bool) -> Case:
    tokens, words, dim = (7, 11, 77) if small else (1500, 3000, 300)
    table = rng.standard_normal((words, dim)).astype(np.float32)
    which, out = rng.integers(0, words, tokens, np.int32), np.full((tokens, dim), np.nan, np.float32)
    arguments = [table, which, out, dim]
    return Case(tokens, 128, arguments, {2: table[which]}, native=[*arguments, tokens])


@kernel("gather_add")
def gather_add(rng: np.random.Generator, small: bool) -> Case:
    n, m = (1000, 300) if small else (400_000, 100_000)
    x, index = rng.standard_normal(m).astype(np.float32), rng.integers(0, m, n, np.int32)
    return Case(-(-n // 256), 256, [x, index, np.ones(n, np.float32), n], {2: 1 + x[index].astype(np.float64)}, 1e-6)


@kernel("split_structures")
def split_structures(rng: np.random.Generator, small: bool) -> Case:
    n = 300 if small else 100_000
    fields = ["x", "y", "z", "vx", "vy", "vz", "kind", "mass"]
    particles = np.zeros(n, [(name, np.int32 if name == "kind" else np.float32) for name in fields])
    for name in fields:
        particles[name] = rng.integers(0, 9, n) if name == "kind" else rng.standard_normal(n)
    squares = sum(particles[name].astype(np.float64) ** 2 for name in ("vx", "vy", "vz"))
    raw = particles.view(np.uint8)
    outs = [np.full(n, np.nan, np.float32), np.full(n, -1, np.int32), np.full((3, n), np.nan, np.float32)]
    expected = {1: 0.5 * particles["mass"] * squares, 2: particles["kind"],
                3: np.stack([particles[name] for name in ("x", "y", "z")])}
    return Case(-(-n // 128), 128, [raw, *outs, n], expected, 1e-5)
