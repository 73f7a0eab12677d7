"""Checks of histograms."""

from __future__ import annotations

import numpy as np

from ... import f32, f64, s64, u8
from ...bench import Row, compare
from .. import histogram
from ..histogram_bytes import bins_kernel, reach_kernel
from ..histogram_kernels import count_kernel, zero_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _histogram() -> Row:
    x = np.random.default_rng().standard_normal(30001).astype(np.float32)
    out, expected = np.full(40, -7), np.histogram(x.astype(np.float64), 40, (-3, 3))[0]
    return compare(
        "histogram of 30,001, 40 bins", lambda: histogram.histogram(x, 40, range=(-3, 3), out=out), out, expected, 0
    )


def _bincount() -> Row:
    x = np.random.default_rng().integers(0, 200, 30001).astype(np.uint8)
    out, expected = np.full(256, -7), np.bincount(x, minlength=256)
    return compare("bincount of 30,001 bytes", lambda: histogram.bincount(x, out=out), out, expected, 0)


ENTRIES: dict[str, Entry] = {
    "histogram": Entry(_histogram, lambda: [
        zero_kernel(s64), count_kernel("uniform", f32, None, "lanes"), count_kernel("uniform", f32, None, "warps"),
        count_kernel("uniform", f32, f32, "lanes"), count_kernel("searched", f64, None, "lanes"),
    ]),
    "bincount": Entry(_bincount, lambda: [
        count_kernel("bits", u8, None, "lanes"), reach_kernel(u8), bins_kernel("integer", u8),
        count_kernel("integer", s64, None, "global"),
    ]),
}
