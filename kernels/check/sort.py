"""Checks of sorting."""

from __future__ import annotations

import numpy as np

from ... import f32, f64, s16, u32
from ...bench import Row, compare
from .. import sort
from ..sort_kernels import Sorted, count_kernel, pass_kernel, row_kernel, start_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _radix_sort() -> Row:
    x = np.random.default_rng().standard_normal(30001).astype(np.float32)
    out = np.full_like(x, np.nan)
    return compare("radix_sort of 30,001", lambda: sort.radix_sort(x, out=out), out, np.sort(x), 0)


def _argsort() -> Row:
    x = np.random.default_rng().integers(-100, 100, (5, 3001)).astype(np.int16)
    out = np.full(x.shape, -1)
    expected = np.argsort(x, 1, kind="stable")
    return compare("argsort of 5 rows of 3001", lambda: sort.argsort(x, out=out), out, expected, 0)


ENTRIES: dict[str, Entry] = {
    "radix_sort": Entry(_radix_sort, lambda: [start_kernel(), *(
        kernel for what in (Sorted(f32, False), Sorted(u32, True, 32), Sorted(f64, False, 64))
        for kernel in (count_kernel(what), pass_kernel(what))
    )]),
    "argsort": Entry(_argsort, lambda: [
        row_kernel(Sorted(s16, False, 64, True), True), row_kernel(Sorted(f32, False, 64), True),
        row_kernel(Sorted(f32, True, 32), False),
    ]),
}
