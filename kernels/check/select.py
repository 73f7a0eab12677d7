"""Checks of picking elements."""

from __future__ import annotations

import numpy as np

from ... import f32, pred, s64, u8
from ...bench import Row, compare
from .. import select
from ..select_kernels import lengths_kernel, pack_kernel, runs_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _compact() -> Row:
    x = np.random.default_rng().standard_normal(30001).astype(np.float32)
    out, count = np.full_like(x, np.nan), np.zeros(1, np.int64)
    expected = np.where(np.arange(x.size) < (x > 0).sum(), np.concatenate([x[x > 0], x[x <= 0]]), np.nan)
    return compare(
        "compact of 30,001", lambda: select.compact(x, x > 0, out=out, count=count), out, expected, 0
    )


def _partition() -> Row:
    x = np.random.default_rng().integers(0, 9, 30001)
    out = np.full_like(x, -7)
    expected = np.concatenate([x[x > 3], x[x <= 3]])
    return compare("partition of 30,001", lambda: select.partition(x, x > 3, out=out), out, expected, 0)


def _unique() -> Row:
    x, out = np.sort(np.random.default_rng().integers(0, 99, 30001)), np.full(30001, -7)
    return compare(
        "unique with inverse and counts of 30,001",
        lambda: np.copyto(out, select.unique(x, return_inverse=True, return_counts=True)[1]), out,
        np.unique(x, return_inverse=True)[1].reshape(-1), 0,
    )


ENTRIES: dict[str, Entry] = {
    "compact": Entry(_compact, lambda: [
        pack_kernel("mask", f32, False), pack_kernel("mask", pred, True), pack_kernel("run", f32, False),
    ]),
    "unique": Entry(_unique, lambda: [runs_kernel(s64, True), runs_kernel(f32, False), lengths_kernel()]),
    "partition": Entry(_partition, lambda: [pack_kernel("unmasked", kind, False) for kind in (s64, u8)]),
}
