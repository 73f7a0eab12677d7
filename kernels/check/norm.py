"""Checks of normalisations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import Kernel, ScalarType, bf16, dtype_of, f16, f32, f64
from ...bench import Row, compare
from .. import norm, reference
from ..norm import batch, columns, scaled, softmax_rows
from ..rows import plan_of
from .entry import Entry

__all__ = ["ENTRIES"]


def _checked(what: str, run: Callable[..., Any], expected: Callable[..., Any]) -> Callable[[], Row]:
    """A check of a function of x ``[33, 1000]``, weight and bias."""

    def check() -> Row:
        rng = np.random.default_rng()
        x = rng.standard_normal((33, 1000)).astype(np.float32)
        weight, bias = rng.standard_normal((2, 1000)).astype(np.float32)
        out = np.full_like(x, np.nan)
        return compare(f"{what}, 33 x 1000", lambda: run(x, weight, bias, out), out, expected(x, weight, bias), 1e-6)

    return check


def _plan(kind: ScalarType, length: int = 4096, **given: int) -> Any:
    return plan_of(length, np.zeros(length + 8, dtype_of(kind))[:length], **given)


def _softmax_kernels(logarithm: bool) -> list[Kernel]:
    plans = [(kind, _plan(kind, length)) for kind, length in ((bf16, 4096), (f32, 1000), (f16, 32768), (f64, 100_000))]
    return [
        *(softmax_rows.softmax_kernel(kind, logarithm, plan) for kind, plan in plans),
        softmax_rows.softmax_kernel(bf16, logarithm, _plan(bf16, 102_400, rows=4)),
        *(softmax_rows.backward_kernel(bf16, logarithm, _plan(bf16, length, held=2)) for length in (4096, 32_000)),
    ]


def _fused(x: Any, weight: Any, _bias: Any, out: Any) -> Any:
    return norm.fused_add_rms_norm(x, 2 * x, weight, out=out)


ENTRIES: dict[str, Entry] = {
    "rms_norm": Entry(
        _checked("rms_norm", lambda x, weight, _, out: norm.rms_norm(x, weight, out=out),
                 lambda x, weight, _: reference.rms_norm(x, weight, 1e-6)),
        lambda: [
            scaled.norm_kernel(bf16, bf16, None, False, _plan(bf16)),
            scaled.norm_kernel(f16, f32, None, False, _plan(f16, 16384)),
            *(scaled.backward_kernel(bf16, bf16, False, _plan(bf16, length, held=2)) for length in (4096, 32_000)),
            columns.products_kernel(bf16, False), columns.sums_kernel(f32, bf16),
        ],
    ),
    "layer_norm": Entry(
        _checked("layer_norm", lambda x, weight, bias, out: norm.layer_norm(x, weight, bias, out=out),
                 reference.layer_norm),
        lambda: [
            scaled.norm_kernel(f32, f32, f32, True, _plan(f32)),
            scaled.norm_kernel(f64, f64, f64, True, _plan(f64, 1000)),
            scaled.backward_kernel(f32, f32, True, _plan(f32, held=2)), columns.products_kernel(f32, True),
        ],
    ),
    "fused_add_rms_norm": Entry(
        _checked("fused_add_rms_norm", _fused, lambda x, weight, _: reference.rms_norm(3 * x, weight, 1e-6)),
        lambda: [scaled.add_norm_kernel(bf16, bf16, _plan(bf16, 8192, held=2))],
    ),
    "batch_norm": Entry(
        _checked("batch_norm", lambda x, weight, bias, out: norm.batch_norm(
            x, None, None, weight, bias, training=True, out=out
        ), reference.batch_norm),
        lambda: [
            batch.training_kernel(bf16, (f32, f32, f32), 8), batch.inference_kernel(f32, (f32, f32, f32), 4),
            batch.backward_kernel(f32, (f32, f32, None), True, 4),
            batch.training_kernel(bf16, (f32, f32, f32), 8, 2),
            batch.backward_kernel(f32, (f32, f32, None), True, 4, 8),
        ],
    ),
    "softmax": Entry(
        _checked("softmax", lambda x, _, __, out: norm.softmax(x, out=out), lambda x, _, __: reference.softmax(x)),
        lambda: _softmax_kernels(False),
    ),
    "log_softmax": Entry(
        _checked("log_softmax", lambda x, _, __, out: norm.log_softmax(x, out=out),
                 lambda x, _, __: np.log(reference.softmax(x))),
        lambda: _softmax_kernels(True),
    ),
}
