"""Checks of mixtures of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bf16, f16, f32
from ...bench import Row, compare
from .. import moe
from ..moe_kernels import gather_kernel, invert_kernel, product_kernel, route_kernel, scatter_kernel, simt_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _route() -> Row:
    logits = np.random.default_rng().standard_normal((100, 60)).astype(np.float32)
    out = np.full((100, 4), np.nan, np.float32)
    shares = np.exp(-np.sort(-logits.astype(np.float64), 1)[:, :4])
    expected = shares / shares.sum(1, keepdims=True)
    return compare(
        "route, 100 tokens to 4 of 60 experts", lambda: moe.route(logits, 4, weights_out=out), out, expected, 1e-6
    )


def _grouped_matmul(dtype: Any, allowed: float) -> Row:
    rng = np.random.default_rng()
    x, w = rng.standard_normal((200, 72)).astype(dtype), rng.standard_normal((3, 72, 40)).astype(dtype)
    offsets, out = np.array([0, 90, 90, 200]), np.full((200, 40), np.nan, dtype)
    expected = np.concatenate([x[:90].astype(np.float64) @ w[0], x[90:].astype(np.float64) @ w[2]])
    return compare(
        f"grouped_matmul of {np.dtype(dtype)}, 200 x 72 x 40, 3 experts",
        lambda: moe.grouped_matmul(x, w, offsets, out=out), out, expected, allowed,
    )


ENTRIES: dict[str, Entry] = {
    "route": Entry(_route, lambda: [
        route_kernel(f32, 64, 4, True), route_kernel(f16, 256, 8, False), gather_kernel(f16), invert_kernel(),
        scatter_kernel(f16, 4), scatter_kernel(f32, 2),
    ]),
    "grouped_matmul": Entry(
        lambda: _grouped_matmul(np.float16, 1e-3),
        lambda: [product_kernel(dtype, turned) for dtype in (f16, bf16) for turned in (False, True)], lowest="sm_80",
    ),
    "grouped_matmul_f32": Entry(
        lambda: _grouped_matmul(np.float32, 1e-5), lambda: [simt_kernel(turned) for turned in (False, True)]
    ),
}
