"""Images and fields: the inverse DCT of JPEG, a step of shallow water."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, kernel


def _idct8(v: Any) -> Any:
    """Of eight columns, as jidctint.c has it."""
    z1 = (v[2] + v[6]) * 4433
    t2, t3 = z1 - v[6] * 15137, z1 + v[2] * 6270
    t0, t1 = (v[0] + v[4]) << 13, (v[0] - v[4]) << 13
    even = t0 + t3, t1 + t2, t1 - t2, t0 - t3
    z1, z2, z3, z4 = v[7] + v[1], v[5] + v[3], v[7] + v[3], v[5] + v[1]
    z5 = (z3 + z4) * 9633
    z1, z2, z3, z4 = z1 * -7373, z2 * -20995, z3 * -16069 + z5, z4 * -3196 + z5
    odd = v[1] * 12299 + z1 + z4, v[3] * 25172 + z2 + z3, v[5] * 16819 + z2 + z4, v[7] * 2446 + z1 + z3
    found = [one + other for one, other in zip(even, odd)] + [one - other for one, other in zip(even[::-1], odd[::-1])]
    return np.stack(found) >> 13


@kernel("jpeg_idct")
def jpeg_idct(rng: np.random.Generator, small: bool) -> Case:
    blocks = 11 if small else 2001
    coefficients = (rng.standard_normal((blocks, 64)) * 8).astype(np.int16)
    quant, out = rng.integers(1, 30, 64, np.uint16), np.zeros((8, blocks * 8), np.uint8)
    values = (coefficients.astype(np.int32) * quant).reshape(blocks, 8, 8)
    values = _idct8(_idct8(values.transpose(1, 0, 2)).transpose(2, 1, 0)).transpose(2, 1, 0)
    expected = np.clip((values >> 3) + 128, 0, 255).reshape(8, blocks * 8)
    return Case(-(-blocks // 8), (8, 8), [coefficients, quant, out, blocks, blocks * 8], {2: expected})


@kernel("shallow")
def shallow(rng: np.random.Generator, small: bool) -> Case:
    nx, ny = (40, 31) if small else (400, 301)
    h, u, v = (rng.standard_normal((ny, nx)).astype(np.float32) for _ in range(3))
    out = [np.zeros_like(h) for _ in range(3)]
    wide = {id(each): np.pad(each.astype(np.float64), 1, "edge") for each in (h, u, v)}
    hx, ux = ((wide[id(each)][1:-1, 2:] - wide[id(each)][1:-1, :-2]) / 2 for each in (h, u))
    hy, vy = ((wide[id(each)][2:, 1:-1] - wide[id(each)][:-2, 1:-1]) / 2 for each in (h, v))
    dt = 0.01
    expected = {
        3: h - dt * (h * (ux + vy) + u * hx + v * hy), 4: u - dt * 9.81 * hx, 5: v - dt * 9.81 * hy,
    }
    grid = -(-nx // 33), -(-ny // 3)
    arguments = [h, u, v, *out, nx, ny, np.float32(dt)]
    return Case(grid, (33, 3), arguments, expected, 1e-4)
