"""Checks of reductions."""

from __future__ import annotations

import numpy as np

from ... import bf16, f16, f32, f64, s64, u8
from ...bench import Row, compare
from .. import reduce
from ..reduce_kernels import column_kernel, merge_kernel, row_kernel
from .entry import Entry

__all__ = ["ENTRIES"]


def _check(name: str, allowed: float) -> Entry:
    def check() -> Row:
        x = np.random.default_rng().standard_normal((30, 3001)).astype(np.float32)
        expected = getattr(np, name)(x.astype(np.float64), 1)
        out = np.full(30, -7, expected.dtype if name.startswith("arg") else np.float32)
        function = getattr(reduce, name)
        return compare(f"{name} of 30 rows of 3001", lambda: function(x, 1, out=out), out, expected, allowed)

    return Entry(check, lambda: [
        kernel for dtype in (f32, f16, f64, u8, s64, *((bf16,) if name == "sum" else ()))
        for kernel in (row_kernel(name, dtype, 32, True), column_kernel(name, dtype, 32, 16 // dtype.bytes, True))
    ] + [row_kernel(name, f32, 256, False), merge_kernel(name, f32, 256, True)])


ENTRIES: dict[str, Entry] = {"sum": _check("sum", 1e-5), "max": _check("max", 0), "argmax": _check("argmax", 0)}
