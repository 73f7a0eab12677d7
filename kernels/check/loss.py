"""Checks of losses."""

from __future__ import annotations

import numpy as np

from ... import bf16, dtype_of, f32, f64, s32, s64
from ...bench import Row, compare
from .. import loss, reference
from ..rows import plan_of
from .entry import Entry

__all__ = ["ENTRIES"]


def _cross_entropy() -> Row:
    rng = np.random.default_rng()
    logits, target = rng.standard_normal((33, 1000)).astype(np.float32), rng.integers(0, 1000, 33)
    grad = np.full_like(logits, np.nan)
    expected = (reference.softmax(logits) - np.eye(1000)[target]) / 33
    return compare(
        "cross_entropy with its gradient, 33 x 1000", lambda: loss.cross_entropy_with_grad(logits, target, grad=grad),
        grad, expected, 1e-6,
    )


def _weighted() -> Row:
    rng = np.random.default_rng()
    logits, target = rng.standard_normal((33, 1000)).astype(np.float32), rng.integers(0, 1000, 33)
    weight, grad = rng.uniform(0.5, 2, 1000).astype(np.float32), np.full_like(logits, np.nan)
    own = weight[target].astype(np.float64)
    expected = (reference.softmax(logits) - np.eye(1000)[target]) * own[:, None] / own.sum()
    return compare(
        "cross_entropy with weights of classes, 33 x 1000",
        lambda: loss.cross_entropy_with_grad(logits, target, weight=weight, grad=grad), grad, expected, 1e-6,
    )


ENTRIES: dict[str, Entry] = {
    "cross_entropy": Entry(_cross_entropy, lambda: [
        loss.rows_kernel(bf16, s64, True, True, plan_of(32_000, np.zeros(32_000, dtype_of(bf16)))),
        loss.rows_kernel(f32, s32, False, False, plan_of(1000, np.zeros(1000, np.float32))),
        loss.rows_kernel(f64, s64, True, False, plan_of(100_003, np.zeros(4))),
        loss.count_kernel(s64, f32), loss.total_kernel(f32, True),
    ]),
    "cross_entropy_weighted": Entry(_weighted, lambda: [
        *(
            loss.rows_kernel(bf16, s64, True, True, plan_of(length, np.zeros(8, dtype_of(bf16)), held=2), bf16)
            for length in (16_000, 32_000)
        ),
        loss.rows_kernel(f32, s64, True, True, plan_of(1000, np.zeros(1000, np.float32)), f32),
        loss.weigh_kernel(s64, f32, f32),
    ]),
}
