"""The check of topk."""

from __future__ import annotations

import numpy as np

from ... import f16, f32, f64
from ...bench import Row, compare
from .. import topk
from ..topk_kernels import topk_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _topk() -> Row:
    x = np.random.default_rng().standard_normal((8, 3001)).astype(np.float32)
    out = np.full((8, 50), np.nan, np.float32)
    return compare(
        "the greatest 50 of 8 rows of 3001", lambda: topk.topk(x, 50, out=out), out, -np.sort(-x, 1)[:, :50], 0
    )


ENTRIES: dict[str, Entry] = {
    "topk": Entry(_topk, lambda: [
        *(topk_kernel(dtype, True, 64, False) for dtype in (f16, f32, f64)), topk_kernel(f32, True, 0, False),
        topk_kernel(f32, True, 1024, True),
    ])
}
