"""Gluon's kernels, with barriers, tensor copies, wgmma and tensor memory in the open, run unchanged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from foreign_units import Unit, bf16, e4m3, f16, f32, moved_rows, random_array, tiles, unit, wide

Rng = np.random.Generator
Case = tuple[Any, list[Any], Any, Any]
"""Grid, arguments, what is found, what is right."""
pytestmark = pytest.mark.usefixtures("emulated")


def doubled(_: Unit, rng: Rng) -> Case:
    x = random_array(rng, (int(rng.integers(1, 5000)),), f32)
    y = np.zeros_like(x)
    return 1, [x, y, x.size], y, 2 * x


def reduced(kind: Any, operation: Any, rows: int) -> Callable[[Unit, Rng], Case]:
    def made(of: Unit, rng: Rng) -> Case:
        m, n = int(rng.integers(1, 100)), int(rng.integers(1, 12)) * 8
        x = random_array(rng, (m, n), f32) if kind is f32 else rng.integers(-1000, 1000, (m, n)).astype(kind)
        out, padded = np.full((rows, n), 3, kind), np.zeros((tiles(m, rows) * rows, n), kind)
        padded[:m] = x
        right = operation.reduce(np.concatenate([out[None], padded.reshape(-1, rows, n)]), axis=0)
        return (tiles(m, rows), tiles(n, 32)), [*of.box(0, x), *of.box(1, out)], out, right

    return made


def product(kind: Any, BM: int, BN: int, factor: int = 1, programs: int = 0) -> Callable[[Unit, Rng], Case]:
    def made(of: Unit, rng: Rng) -> Case:
        m, n, k = int(rng.integers(1, 300)), int(rng.integers(1, 20)) * 16, int(rng.integers(1, 20)) * 16
        a, b = random_array(rng, (m, k), kind), random_array(rng, (k, n), kind)
        c = np.zeros((m, n), kind)
        sizes, grid = ([m, n, k], programs) if programs else ([k], (tiles(m, BM), tiles(n, BN)))
        return grid, [*of.box(0, a), *of.box(1, b), *of.box(2, c), *sizes], c, factor * (wide(a) @ wide(b))

    return made


def scaled(of: Unit, rng: Rng) -> Case:
    a, b, c = random_array(rng, (128, 128), e4m3), random_array(rng, (64, 128), e4m3), np.zeros((128, 64), f32)
    codes = [rng.integers(120, 134, (rows, 4)).astype(np.uint8) for rows in (128, 64)]
    left, right = (wide(x) * 2.0 ** (code.astype(int) - 127).repeat(32, 1) for x, code in zip((a, b), codes))
    return 1, [*of.box(0, a), *of.box(1, b), *codes, c], c, left @ right.T


def cancelled(_: Unit, rng: Rng) -> Case:
    x = random_array(rng, (int(rng.integers(1, 3000)),), f32)
    return tiles(x.size, 128), [x, x.size], x, x + 1


def rows(of: Unit, rng: Rng) -> Case:
    return (2, 3), *moved_rows(of, rng)


def convolved(step: int) -> Callable[[Unit, Rng], Case]:
    """A 3 x 3 convolution with a border of zeros, of every pixel or of each second in both directions."""

    def made(of: Unit, rng: Rng) -> Case:
        count, height, width = (int(rng.integers(1, most)) for most in (4, 9, 9))
        x = random_array(rng, (count, step * height, step * width, 64), f16)
        w = random_array(rng, (3, 3, 64, 32), f16)
        out = np.full((count * height * width, 32), np.nan, f16)
        padded = np.pad(wide(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        right = sum(
            padded[:, r : r + step * height : step, s : s + step * width : step] @ wide(w[r, s])
            for r in range(3) for s in range(3))
        pixels = of.box(0, x, corners=((-1, -1), (-1, -1)), element_strides=(1, step, step, 1))
        arguments = [*pixels, *of.box(1, w.reshape(-1, 32)), *of.box(2, out), height, width]
        return tiles(len(out), 64), arguments, out, np.reshape(right, out.shape)

    return made


CASES: dict[str, tuple[Any, float]] = {
    "copies_90": (doubled, 0), "arrivals_100": (doubled, 0), "add_90": (reduced(f32, np.add, 32), 1e-6),
    "max_90": (reduced(np.int32, np.maximum, 16), 0), "xor_100": (reduced(np.int32, np.bitwise_xor, 16), 0),
    "wgmma_90": (product(f16, 64, 128), 2e-3), "wgmma_registers_90": (product(bf16, 64, 64, 2), 1e-2),
    "specialised_90": (product(f16, 64, 128), 2e-3), "cluster_90": (product(f16, 128, 128), 2e-3),
    "tcgen05_100": (product(f16, 128, 128), 2e-3), "tcgen05_two_100": (product(f16, 256, 128), 2e-3),
    "tcgen05_specialised_100": (product(f16, 128, 64, programs=2), 2e-3), "scaled_100": (scaled, 1e-5),
    "cancelled_100": (cancelled, 0), "rows_100": (rows, 0),
    "convolved1_90": (convolved(1), 2e-3), "convolved2_90": (convolved(2), 2e-3),
}


def check(name: str, rng: Rng, **options: Any) -> None:
    of, (made, allowed) = unit(f"gluon_{name}"), CASES[name]
    grid, arguments, got, right = made(of, rng)
    of.launch(grid, arguments, **options)
    assert np.abs(wide(got) - right).max() <= allowed * np.abs(right).max()


@pytest.mark.parametrize("name", CASES)
def test_kernel_is_right(name: str, rng: Rng) -> None:
    check(name, rng)


@pytest.mark.parametrize("name", ["specialised_90", "tcgen05_specialised_100"])
def test_kernel_is_right_under_a_seed(name: str, rng: Rng) -> None:
    check(name, rng, seed=int(rng.integers(1000)))


@pytest.mark.parametrize("name", ["wgmma_registers_90", "scaled_100", "convolved2_90"])
def test_nothing_is_found(name: str, rng: Rng) -> None:
    check(name, rng, sanitize="all")
