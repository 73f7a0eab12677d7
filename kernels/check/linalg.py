"""Checks of products and transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import bf16, e4m3, f16, f32, f64, s8, s32
from ...bench import Row, compare
from .. import linalg, matrices
from ..linalg import simt, tensor_cores, vector
from ..linalg.epilogue import Epilogue
from ..rows import plan_of
from .entry import Entry

__all__ = ["ENTRIES"]

NN, NT, TN, ONE = (False, False), (False, True), (True, False), (False, False)


def _matmul(dtype: Any, bound: float) -> Callable[[], Row]:
    def check() -> Row:
        rng = np.random.default_rng()
        a, b = rng.standard_normal((100, 77)).astype(dtype), rng.standard_normal((77, 130)).astype(dtype)
        out = np.full((100, 130), np.nan, dtype)
        return compare(
            f"matmul of {np.dtype(dtype)}, 100 x 77 x 130", lambda: linalg.matmul(a, b, out=out), out,
            a.astype(np.float64) @ b.astype(np.float64), bound,
        )

    return check


def _gemv() -> Row:
    rng = np.random.default_rng()
    a, x = rng.standard_normal((100, 1000)), rng.standard_normal(1000)
    out = np.full(100, np.nan)
    return compare("gemv, 100 x 1000", lambda: linalg.gemv(a, x, out=out), out, a @ x, 1e-13)


def _transpose() -> Row:
    x = np.random.default_rng().standard_normal((3, 100, 77))
    out = np.full((3, 77, 100), np.nan)
    return compare("transpose, 3 x 100 x 77", lambda: linalg.transpose(x, out=out), out, x.swapaxes(1, 2), 0.0)


_FULL = Epilogue(bf16, f32, bf16, "gelu", True)
ENTRIES: dict[str, Entry] = {
    "matmul": Entry(_matmul(np.float32, 1e-6), lambda: [
        simt.product_kernel(Epilogue(f32), NN, ONE),
        simt.product_kernel(Epilogue(f32, f32, f32, "gelu", True), TN, ONE),
    ]),
    "matmul_f16": Entry(_matmul(np.float16, 1e-3), lambda: [
        tensor_cores.product_kernel(f16, f16, Epilogue(f16), NN, ONE, tensor_cores.LARGE),
        tensor_cores.product_kernel(bf16, bf16, _FULL, NT, (True, True), tensor_cores.LARGE),
        tensor_cores.product_kernel(f16, f16, Epilogue(f32), TN, ONE, tensor_cores.SMALL),
        tensor_cores.product_kernel(f32, f32, Epilogue(f32), NT, ONE, tensor_cores.LARGE, True),
        tensor_cores.product_kernel(s8, s8, Epilogue(s32), NT, ONE, tensor_cores.LARGE),
    ], "sm_80", 255),
    "matmul_f64": Entry(_matmul(np.float64, 1e-14), lambda: [
        tensor_cores.product_kernel(f64, f64, Epilogue(f64), NT, ONE, tensor_cores.SMALL),
    ], "sm_80", 255),
    "matmul_e4m3": Entry(_matmul(np.float32, 1e-6), lambda: [
        tensor_cores.product_kernel(e4m3, e4m3, Epilogue(bf16), NT, ONE, tensor_cores.LARGE),
    ], "sm_89", 255),
    "gemv": Entry(_gemv, lambda: [
        vector.gemv_kernel(kind, plan_of(4096, np.zeros(4096, np.float16), held=2)) for kind in (f16, bf16, f32)
    ]),
    "transpose": Entry(_transpose, lambda: [matrices.transpose_kernel(kind) for kind in (f16, f32, f64)]),
}
