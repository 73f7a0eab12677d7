"""The peers: pyptx's own kernels, traced by pyptx, and numba's loops for the maths that the emulator runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

__all__ = ["numba_matmul", "numba_saxpy", "pyptx_examples"]


def pyptx_examples() -> tuple[Callable[[int], Any], Callable[[int], Any]]:
    """The builders of pyptx for RMSNorm and softmax, each from the row length to a kernel with ``.ptx()``.

    Its examples import jax at the top of the file, for their own checks only: an empty stand-in serves.
    """
    if "jax" not in sys.modules:
        sys.modules.update({"jax": MagicMock(), "jax.numpy": MagicMock()})
    from pyptx.examples.hopper.rms_norm import build_rms_norm
    from pyptx.examples.hopper.softmax import build_softmax

    return (lambda n: build_rms_norm(2048, n)), (lambda n: build_softmax(2048, n))


def numba_saxpy() -> Callable[..., None]:
    """saxpy(a, x, y) as one compiled loop."""
    import numba

    def saxpy(a: Any, x: Any, y: Any) -> None:
        for i in range(x.size):
            y[i] = a * x[i] + y[i]

    return numba.njit(saxpy)


def numba_matmul() -> Callable[..., None]:
    """matmul(a, b, c) as three compiled loops, in the order that vectorises."""
    import numba

    def matmul(a: Any, b: Any, c: Any) -> None:
        c[:] = 0
        for i in range(a.shape[0]):
            for k in range(a.shape[1]):
                for j in range(b.shape[1]):
                    c[i, j] += a[i, k] * b[k, j]

    return numba.njit(matmul)
