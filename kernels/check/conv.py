"""Checks of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import Kernel, ScalarType, bf16, f16, f32, f64
from ...bench import Row, compare
from .. import conv
from ..conv_kernels import Window, conv_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _conv2d(dtype: Any, allowed: float) -> Row:
    rng = np.random.default_rng()
    x, w = rng.standard_normal((2, 8, 12, 11)).astype(dtype), rng.standard_normal((16, 8, 3, 3)).astype(dtype)
    seen = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (2, 3))
    out = np.full((2, 16, 10, 9), np.nan, dtype)
    return compare(
        f"conv2d of {np.dtype(dtype)}, 2 x 8 x 12 x 11 with 16 x 3 x 3", lambda: conv.conv2d(x, w, out=out), out,
        np.einsum("nchwrs,ocrs->nohw", seen, w.astype(np.float64)), allowed,
    )


def _kernels(way: str, *dtypes: ScalarType) -> list[Kernel]:
    window = Window((3, 3), (1, 1), (1, 1))
    return [conv_kernel(which, way, dtype, window) for dtype in dtypes for which in ("forward", "input", "weight")]


ENTRIES: dict[str, Entry] = {
    "conv2d": Entry(
        lambda: _conv2d(np.float32, 1e-5),
        lambda: [*_kernels("fma", f32, f64), *_kernels("thread", f32)[:2], *_kernels("block", f32, f16)[2::3]],
    ),
    "conv2d_16_bits": Entry(lambda: _conv2d(np.float16, 1e-3), lambda: _kernels("mma", f16, bf16), lowest="sm_80"),
}
