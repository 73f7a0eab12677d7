"""Checks of optimisers."""

from __future__ import annotations

import numpy as np

from ... import bf16, f32, f64
from ...bench import Row, compare
from .. import optim
from .entry import Entry

__all__ = ["ENTRIES"]


def _adamw() -> Row:
    rng = np.random.default_rng()
    param, grad, mean = rng.standard_normal((3, 1001)).astype(np.float32)
    square = rng.random(1001).astype(np.float32)
    m, v = 0.9 * mean.astype(np.float64) + 0.1 * grad, 0.999 * square.astype(np.float64) + 0.001 * np.square(grad)
    expected = param * (1 - 1e-4) - 1e-2 / (1 - 0.9**3) * m / (np.sqrt(v / (1 - 0.999**3)) + 1e-8)
    return compare(
        "adamw, 1001", lambda: optim.adamw(param.copy(), grad, mean.copy(), square.copy(), 3, lr=1e-2, copy=param),
        param, expected, 1e-6,
    )


def _sgd() -> Row:
    rng = np.random.default_rng()
    param, grad, buffer = rng.standard_normal((3, 1001))
    expected = param - 0.1 * (0.9 * buffer + grad)
    return compare(
        "sgd, 1001", lambda: optim.sgd(param.copy(), grad, buffer.copy(), lr=0.1, momentum=0.9, copy=param), param,
        expected, 1e-14,
    )


def _clip() -> Row:
    grad = np.random.default_rng().standard_normal(1001)
    expected = grad / np.sqrt(np.square(grad).sum())
    out = np.zeros(1001)

    def run() -> None:
        out[...] = grad
        optim.clip_grad_norm(out, 1.0)

    return compare("clip_grad_norm, 1001", run, out, expected, 1e-6)


ENTRIES: dict[str, Entry] = {
    "adamw": Entry(_adamw, lambda: [
        optim.adamw_kernel(f32, bf16, bf16, True, 8), optim.adamw_kernel(f64, f64, None, False, 2),
    ]),
    "sgd": Entry(_sgd, lambda: [optim.sgd_kernel(f32, f32, bf16, True, True, 8)]),
    "clip_grad_norm": Entry(_clip, lambda: [optim.squares_kernel(bf16, f32, 8)]),
}
