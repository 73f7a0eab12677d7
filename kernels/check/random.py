"""Checks of random numbers."""

from __future__ import annotations

import numpy as np

from ... import f16, f32, f64, s8, s64, u32
from ...bench import Row, compare
from .. import random
from ..random_kernels import dropout_kernel, fill_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _philox() -> Row:
    out = np.zeros(4, np.uint32)
    expected = [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]  # kat_vectors of Random123
    most = 2**64 - 1
    return compare(
        "philox", lambda: random.philox(4, most, subsequence=most, offset=most, out=out), out, expected, 0
    )


def _normal() -> Row:
    out = np.full(30001, np.nan, np.float32)

    def deviation() -> None:
        random.normal(seed=5, out=out)
        out[0] = np.square(out[1:], dtype=np.float64).mean()

    return compare("variance of 30,000 normal numbers", deviation, out[:1], [1.0], 0.05)


ENTRIES: dict[str, Entry] = {
    "philox": Entry(_philox, lambda: [
        fill_kernel("philox", u32), fill_kernel("integers", s8), fill_kernel("integers", s64)
    ]),
    "normal": Entry(_normal, lambda: [
        kernel for dtype in (f16, f32, f64)
        for kernel in (fill_kernel("normal", dtype), fill_kernel("uniform", dtype), dropout_kernel(dtype))
    ]),
}
