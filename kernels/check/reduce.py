"""Checks of reductions."""

from __future__ import annotations

import numpy as np

from ... import bf16, f16, f32, f64, s64, u8
from ...bench import Row, compare
from .. import reduce
from ..reduce_gradients import EXTREMES, OTHERS, SHARED, SLOPES
from ..reduce_kernels import column_kernel, merge_kernel, row_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _check(name: str, allowed: float) -> Entry:
    def check() -> Row:
        x = np.random.default_rng().standard_normal((30, 3001)).astype(np.float32)
        expected = getattr(np, name)(x.astype(np.float64), 1)
        out = np.full(30, -7, expected.dtype if name.startswith("arg") else np.float32)
        function = getattr(reduce, name)
        return compare(f"{name} of 30 rows of 3001", lambda: function(x, 1, out=out), out, expected, allowed)

    return Entry(check, lambda: [
        kernel for dtype in (f32, f16, f64, u8, s64, *((bf16,) if name == "sum" else ()))
        for kernel in (row_kernel(name, dtype, 32, True), column_kernel(name, dtype, 32, 16 // dtype.bytes, True))
    ] + [row_kernel(name, f32, 256, False), merge_kernel(name, f32, 256, True)])


def _max_backward() -> Row:
    rng = np.random.default_rng()
    x, grad = rng.integers(0, 99, (30, 301)).astype(np.float32), rng.standard_normal(30).astype(np.float32)
    equal, out = x == x.max(1, keepdims=True), np.full_like(x, np.nan)
    return compare(
        "max_backward of 30 rows of 301", lambda: np.copyto(out, reduce.max_backward(grad, x, x.max(1), 1)), out,
        equal / equal.sum(1, keepdims=True) * grad[:, None].astype(np.float64), 1e-6,
    )


def _norm_backward() -> Row:
    rng = np.random.default_rng()
    x, grad = rng.standard_normal((30, 301)).astype(np.float32), rng.standard_normal(30).astype(np.float32)
    out, wide = np.full_like(x, np.nan), x.astype(np.float64)
    root = np.sqrt((wide**2).sum(1))
    return compare(
        "norm_backward of 30 rows of 301",
        lambda: np.copyto(out, reduce.norm_backward(grad, x, root.astype(np.float32), 2, 1)), out,
        wide / root[:, None] * grad[:, None], 1e-6,
    )


def _prod_backward() -> Row:
    rng = np.random.default_rng()
    x, grad = rng.uniform(0.5, 2, (30, 31)).astype(np.float32), rng.standard_normal(30).astype(np.float32)
    x[3, 5] = 0
    out, wide = np.full_like(x, np.nan), x.astype(np.float64)
    others = np.stack([np.delete(wide, at, 1).prod(1) for at in range(31)], 1)
    return compare(
        "prod_backward of 30 rows of 31", lambda: np.copyto(out, reduce.prod_backward(grad, x, 1)), out,
        others * grad[:, None], 1e-5,
    )


ENTRIES: dict[str, Entry] = {
    "sum": _check("sum", 1e-5), "max": _check("max", 0), "argmax": _check("argmax", 0),
    "max_backward": Entry(_max_backward, lambda: [
        EXTREMES.kernel(f32, f32), SHARED.kernel(f32, f32, f32, s64), SHARED.kernel(bf16, bf16, bf16, s64),
    ]),
    "prod_backward": Entry(_prod_backward, lambda: [OTHERS.kernel(f32, f32, s64, f32)]),
    "norm_backward": Entry(_norm_backward, lambda: [SLOPES.kernel(f32, f32, f32), SLOPES.kernel(f16, f16, f16)]),
}
