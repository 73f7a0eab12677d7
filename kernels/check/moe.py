"""Checks of mixtures of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bf16, f16, f32
from ...bench import Row, compare
from .. import moe, reference
from ..moe_backward_kernels import (
    route_gradient_kernel, simt_weights_kernel, unpermute_gradient_kernel, weights_kernel,
)
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


def _route_backward() -> Row:
    rng = np.random.default_rng()
    logits, grad = rng.standard_normal((100, 60)).astype(np.float32), rng.standard_normal((100, 4)).astype(np.float32)
    weights, experts = moe.route(logits, 4, renormalize=False)
    out, shares, slopes = np.full_like(logits, np.nan), reference.softmax(logits), np.zeros((100, 60))
    np.put_along_axis(slopes, experts.astype(np.int64), grad.astype(np.float64), 1)
    expected = shares * (slopes - (shares * slopes).sum(1, keepdims=True))
    return compare(
        "route_backward, 100 tokens to 4 of 60 experts",
        lambda: moe.route_backward(grad, logits, weights, experts, renormalize=False, out=out), out, expected, 1e-5,
    )


def _permute_backward() -> Row:
    rng = np.random.default_rng()
    grad, order = rng.standard_normal((200, 70)).astype(np.float32), rng.permutation(200)
    out, expected = np.full((100, 70), np.nan, np.float32), np.zeros((100, 70))
    np.add.at(expected, order // 2, grad.astype(np.float64))
    return compare(
        "permute_backward, 100 tokens of 2 experts", lambda: moe.permute_backward(grad, order, 2, out=out), out,
        expected, 1e-6,
    )


def _grouped_gradients(dtype: Any, allowed: float) -> Row:
    rng = np.random.default_rng()
    x, w = rng.standard_normal((200, 72)).astype(dtype), np.zeros((3, 72, 40), dtype)
    grad, offsets = rng.standard_normal((200, 40)).astype(dtype), np.array([0, 90, 90, 200])
    out = np.full_like(w, np.nan)
    parts = [x[a:b].astype(np.float64).T @ grad[a:b] for a, b in ((0, 90), (90, 90), (90, 200))]

    def run() -> None:
        out[...] = moe.grouped_matmul_backward(grad, x, w, offsets, needs=frozenset("w"))["w"]

    return compare(
        f"grouped_matmul_backward of {np.dtype(dtype)}, 72 x 200 x 40, 3 experts", run, out, np.stack(parts), allowed
    )


ENTRIES: dict[str, Entry] = {
    "route": Entry(_route, lambda: [
        route_kernel(f32, 64, 4, True), route_kernel(f16, 256, 8, False), gather_kernel(f16), invert_kernel(),
        scatter_kernel(f16, 4), scatter_kernel(f32, 2),
    ]),
    "route_backward": Entry(_route_backward, lambda: [
        route_gradient_kernel(f32, 64, 4, False), route_gradient_kernel(f16, 256, 8, True),
    ]),
    "permute_backward": Entry(_permute_backward, lambda: [
        scatter_kernel(f32, 2), unpermute_gradient_kernel(f32), unpermute_gradient_kernel(f16),
    ]),
    "grouped_matmul": Entry(
        lambda: _grouped_matmul(np.float16, 1e-3),
        lambda: [product_kernel(dtype, turned) for dtype in (f16, bf16) for turned in (False, True)], lowest="sm_80",
    ),
    "grouped_matmul_f32": Entry(
        lambda: _grouped_matmul(np.float32, 1e-5), lambda: [simt_kernel(turned) for turned in (False, True)]
    ),
    "grouped_matmul_backward": Entry(
        lambda: _grouped_gradients(np.float16, 1e-3), lambda: [weights_kernel(dtype) for dtype in (f16, bf16)],
        lowest="sm_80",
    ),
    "grouped_matmul_backward_f32": Entry(
        lambda: _grouped_gradients(np.float32, 1e-5), lambda: [simt_weights_kernel()]
    ),
}
