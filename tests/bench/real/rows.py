"""Blocks with odd rows, and trees in shared memory whose strides double: solvers, a scan, a sorting network."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("heat_20")
def heat_20(rng: np.random.Generator, small: bool) -> Case:
    w, h = (47, 30) if small else (401, 300)
    field, out = rng.standard_normal((h, w)), np.zeros((h, w))
    expected = np.zeros((h, w))
    sides = field[1:-1, :-2] + field[1:-1, 2:] + field[:-2, 1:-1] + field[2:, 1:-1]
    expected[1:-1, 1:-1] = field[1:-1, 1:-1] + 0.1 * (sides - 4 * field[1:-1, 1:-1])
    return Case((-(-w // 20), -(-h // 12)), (20, 12), [field, out, w, h, np.float64(0.1)], {1: expected}, 1e-12)


@kernel("gauss_20")
def gauss_20(rng: np.random.Generator, small: bool) -> Case:
    systems = 3 if small else 100
    a = rng.standard_normal((systems, 20, 21))
    a[:, :, :20] += 4 * rng.permuted(np.broadcast_to(np.eye(20), (systems, 20, 20)), axis=1)
    out = np.zeros((systems, 20))
    expected = np.linalg.solve(a[:, :, :20], a[:, :, 20:])[:, :, 0]
    return Case(systems, (21, 8), [a, out], {1: expected}, 1e-8, native=[a, out, systems])


@kernel("inverse_12")
def inverse_12(rng: np.random.Generator, small: bool) -> Case:
    blocks = 3 if small else 300
    a = (rng.standard_normal((blocks, 12, 12)) + 12 * np.eye(12)).astype(np.float32)
    out = np.zeros_like(a)
    return Case(blocks, (24, 12), [a, out], {1: np.linalg.inv(a.astype(np.float64))}, 1e-4, native=[a, out, blocks])


@kernel("floyd_40")
def floyd_40(rng: np.random.Generator, small: bool) -> Case:
    graphs = 2 if small else 20
    d = rng.integers(1, 100, (graphs, 40, 40), np.int32)
    expected = d.copy()
    for k in range(40):
        np.minimum(expected, expected[:, :, k : k + 1] + expected[:, k : k + 1], out=expected)
    return Case(graphs, (40, 10), [d], {0: expected}, native=[d, graphs])


@kernel("brent_kung")
def brent_kung(rng: np.random.Generator, small: bool) -> Case:
    blocks = 3 if small else 400
    values = rng.integers(-1000, 1000, (blocks, 512), np.int32)
    out = np.zeros_like(values)
    expected = np.cumsum(values, 1, dtype=np.int32)
    return Case(blocks, 256, [values, out], {1: expected}, native=[values, out, blocks], shared=4 * (512 + 16))


@kernel("cyclic_reduction")
def cyclic_reduction(rng: np.random.Generator, small: bool) -> Case:
    systems = 3 if small else 400
    a, c, d = (rng.standard_normal((systems, 128)).astype(np.float32) for _ in range(3))
    a[:, 0], c[:, -1] = 0, 0
    b, out = np.abs(a) + np.abs(c) + 1, np.zeros_like(d)
    whole = np.zeros((systems, 128, 128))
    at = np.arange(128)
    whole[:, at, at], whole[:, at[1:], at[:-1]], whole[:, at[:-1], at[1:]] = b, a[:, 1:], c[:, :-1]
    expected = np.linalg.solve(whole, d[:, :, None])[:, :, 0]
    arguments = [a, b, c, d, out]
    return Case(systems, 64, arguments, {4: expected}, 1e-4, native=[*arguments, systems])


@kernel("odd_even_merge")
def odd_even_merge(rng: np.random.Generator, small: bool) -> Case:
    blocks = 3 if small else 100
    values = rng.integers(0, 1 << 32, (blocks, 256), np.uint32)
    out = np.zeros_like(values)
    return Case(blocks, 128, [values, out], {1: np.sort(values, 1)}, native=[values, out, blocks])
