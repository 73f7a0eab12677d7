"""Random matrices, and whether a product of them is within its bound: for the library's products on tensor cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["check", "made"]

UNITS = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8, np.dtype(np.float32): 2.0**-24}


def made(rng: np.random.Generator, dtype: Any, rows: int, columns: int, turned: bool = False) -> Any:
    """A random matrix, stored as its transpose where ``turned``."""
    values = rng.standard_normal((columns, rows) if turned else (rows, columns)).astype(dtype)
    return values.T if turned else values


def check(matmul: Callable[..., Any], a: Any, b: Any, out: Any, **options: Any) -> None:
    """That the product is within its bound, element by element; what surrounds ``out`` is left alone.

    A sum of k products is added with at least the bits that float32 has but for two, k / 16 times: an error of
    2^-22 of the sum of the magnitudes for each. Storing rounds by half a unit of the type.
    """
    whole = np.full((out.shape[0] + 2, out.shape[1] + 16), np.nan, out.dtype)
    part = whole[1:-1, 8:-8]
    bias = options.get("bias")
    activation = options.pop("reference", lambda x: x)
    assert matmul(a, b, out=part, backend="emulator", **options) is part
    a, b, scale = a.astype(np.float64), b.astype(np.float64), options.get("scale", 1.0)
    want, around = scale * (a @ b), abs(scale) * (np.abs(a) @ np.abs(b))
    if bias is not None:
        want, around = want + bias.astype(np.float64), around + np.abs(bias.astype(np.float64))
    want = activation(want)
    allowed = 1.2 * ((a.shape[1] // 16 + 4) * 2.0**-22 * around + UNITS[out.dtype] * np.abs(want)) + 2.0**-24
    error = np.abs(part.astype(np.float64) - want)
    assert (error <= allowed).all(), f"{np.nanmax(error / allowed)} of what is allowed, {np.isnan(error).sum()} NaN"
    whole[1:-1, 8:-8] = np.nan
    assert np.isnan(whole).all()
