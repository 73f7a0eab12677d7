"""What the kernels should compute, in float64 with numpy: for their checks, and to read beside them."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["attention", "causal", "rms_norm"]

Array = npt.NDArray[Any]


def attention(q: Array, k: Array, v: Array, visible: npt.ArrayLike = True, scale: float | None = None) -> Array:
    """softmax(scale q k^T) v of ``[B, H, S, D]``; ``visible`` broadcasts to the scores, and no visible key gives 0.

    >>> attention(*np.ones((3, 1, 1, 2, 4))).shape
    (1, 1, 2, 4)
    """
    group = q.shape[1] // k.shape[1]
    q, k, v = q.astype(np.float64), k.astype(np.float64).repeat(group, 1), v.astype(np.float64).repeat(group, 1)
    scores = (q @ k.swapaxes(-1, -2)) * (1 / sqrt(q.shape[-1]) if scale is None else scale)
    scores = np.where(visible, scores, -inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(top == -inf, 0, top))
    total = weights.sum(-1, keepdims=True)
    result: Array = (weights / np.where(total == 0, 1, total)) @ v
    return result


def causal(queries: int, keys: int) -> Array:
    """Which keys a query sees if the last query sees the last key: ``[1, 1, queries, keys]``."""
    return np.tri(queries, keys, keys - queries, dtype=bool)[None, None]


def rms_norm(x: Array, gamma: Array, eps: float = 1e-5) -> Array:
    """gamma x / sqrt(mean(x^2) + eps) of each row of x."""
    x = x.astype(np.float64)
    result: Array = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps) * gamma.astype(np.float64)
    return result
