"""Checks of scans."""

from __future__ import annotations

import numpy as np

from ... import bf16, f16, f32, f64, s64
from ...bench import Row, compare
from .. import scan
from ..scan_kernels import clear_kernel, column_kernel, tile_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _inclusive() -> Row:
    x = np.random.default_rng().standard_normal(30001).astype(np.float32)
    out = np.full_like(x, np.nan)
    return compare(
        "inclusive sums of 30,001", lambda: scan.inclusive(x, out=out), out, x.cumsum(dtype=np.float64), 1e-5
    )


def _exclusive() -> Row:
    x = np.random.default_rng().integers(-1000, 1000, (30, 3001))
    out = np.full_like(x, 77)
    expected = np.maximum.accumulate(x, 0)
    expected = np.concatenate([np.full((1, 3001), np.iinfo(np.int64).min), expected[:-1]])
    return compare(
        "exclusive maxima down 3001 columns of 30", lambda: scan.exclusive(x, "max", axis=0, out=out), out, expected, 0
    )


ENTRIES: dict[str, Entry] = {
    "inclusive": Entry(_inclusive, lambda: [
        clear_kernel(), *(tile_kernel("add", dtype, False, False) for dtype in (f32, f16, bf16, f64, s64)),
        tile_kernel("add", f32, False, True),
    ]),
    "exclusive": Entry(_exclusive, lambda: [
        kernel for dtype in (f32, s64)
        for kernel in (tile_kernel("max", dtype, True, True), column_kernel("max", dtype, True, False))
    ]),
}
