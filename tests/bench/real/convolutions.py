"""Filters over signals and images, and arithmetic on bytes."""

from __future__ import annotations

import numpy as np

from .case import Case, kernel


@kernel("conv_2d")
def conv_2d(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 37) if small else (300, 200)
    x, f = rng.standard_normal((h, w)).astype(np.float32), rng.standard_normal((5, 5)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.float64), 2), (5, 5))
    expected, out = np.einsum("ijkl,kl->ij", windows, f.astype(np.float64)), np.full_like(x, np.nan)
    return Case(
        (-(-w // 16), -(-h // 16)), (20, 20), [x, out, w, h], {1: expected}, 1e-5, native=[x, out, w, h, f],
        variables=(("filter", f.reshape(-1)),),
    )


@kernel("blur_rows")
def blur_rows(rng: np.random.Generator, small: bool) -> Case:
    w, h = (50, 7) if small else (500, 300)
    x, taps = rng.integers(0, 256, (h, w), np.uint8), rng.integers(0, 28, 9, np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.int32), ((0, 0), (4, 4)), "edge"), 9, axis=1)
    expected, out = (windows @ taps + 128) >> 8, np.zeros_like(x)
    return Case(
        (-(-w // 128), h), 128, [x, out, w, h], {1: expected}, native=[x, out, w, h, taps],
        variables=(("taps", taps),),
    )


@kernel("conv_channels")
def conv_channels(rng: np.random.Generator, small: bool) -> Case:
    channels, outputs, w, h = (3, 2, 21, 13) if small else (8, 8, 64, 50)
    x = rng.standard_normal((channels, h, w)).astype(np.float32)
    f = rng.standard_normal((outputs, channels, 3, 3)).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), axis=(1, 2))
    expected = np.einsum("cijkl,ockl->oij", windows, f.astype(np.float64))
    out = np.full(expected.shape, np.nan, np.float32)
    arguments = [x, f, out, channels, w, h]
    grid = (-(-(w - 2) // 16), -(-(h - 2) // 8), outputs)
    return Case(grid, (16, 8), arguments, {2: expected}, 1e-5, native=[*arguments, outputs])


@kernel("gemm_dp4a")
def gemm_dp4a(rng: np.random.Generator, small: bool) -> Case:
    n, words = (33, 5) if small else (150, 40)
    a, b = rng.integers(-128, 128, (n, words, 4), np.int8), rng.integers(-128, 128, (words, n, 4), np.int8)
    scale = rng.random(n, np.float32)
    product = np.einsum("ikp,kjp->ij", a.astype(np.int64), b.astype(np.int64))
    arguments = [a.view(np.int32), b.view(np.int32), scale, np.full((n, n), np.nan, np.float32), n, words]
    return Case((-(-n // 16), -(-n // 8)), (16, 8), arguments, {3: product * scale.astype(np.float64)[:, None]}, 1e-6)


@kernel("quantise_rows")
def quantise_rows(rng: np.random.Generator, small: bool) -> Case:
    rows, columns = (8, 140) if small else (400, 1024)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    out, scales = np.zeros((rows, columns), np.int8), np.full(rows, np.nan, np.float32)
    top = np.abs(x).max(1)
    expected = np.rint(x * (np.float32(127) / top)[:, None])
    arguments = [x, out, scales, columns]
    # Where the product is rounded otherwise (division by an approximate reciprocal), a byte may be the next one.
    return Case(rows // 4, 128, arguments, {1: expected, 2: top / 127}, 0.01, native=[*arguments, rows])
