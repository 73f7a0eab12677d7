"""What the kernels should compute, in float64 with numpy: for their checks, and to read beside them."""

from __future__ import annotations

from itertools import pairwise
from math import erf as erf_
from math import inf, pi, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "attention", "attention_gradients", "batch_norm", "causal", "erf", "gelu", "gelu_tanh", "layer_norm", "relu",
    "rms_norm", "rope", "sigmoid", "silu", "softmax", "softplus", "tanh", "varlen_attention",
]

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


def varlen_attention(q: Array, k: Array, v: Array, starts: Array) -> Array:
    """The attention of sequences that stand one behind the other: ``[tokens, H, D]``, the sequences from ``starts``."""
    parts = []
    for first, end in pairwise(starts):
        queries, keys, values = (x[None, first:end].swapaxes(1, 2) for x in (q, k, v))
        parts.append(attention(queries, keys, values)[0].swapaxes(0, 1))
    return np.concatenate(parts)


def attention_gradients(
    gradient: Array, q: Array, k: Array, v: Array, visible: npt.ArrayLike = True, scale: float | None = None
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v, of one of the result of :func:`attention`."""
    group, factor = q.shape[1] // k.shape[1], 1 / sqrt(q.shape[-1]) if scale is None else scale
    g, q, keys, values = (x.astype(np.float64) for x in (gradient, q, k.repeat(group, 1), v.repeat(group, 1)))
    scores = np.where(visible, q @ keys.swapaxes(-1, -2) * factor, -inf)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(top == -inf, 0, top))
    total = weights.sum(-1, keepdims=True)
    weights /= np.where(total == 0, 1, total)
    slopes = g @ values.swapaxes(-1, -2)
    slopes = weights * (slopes - (weights * slopes).sum(-1, keepdims=True)) * factor
    dk, dv = (
        x.reshape(k.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)
        for x in (slopes.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g)
    )
    return slopes @ keys, dk, dv


def causal(queries: int, keys: int) -> Array:
    """Which keys a query sees if the last query sees the last key: ``[1, 1, queries, keys]``."""
    return np.tri(queries, keys, keys - queries, dtype=bool)[None, None]


def rms_norm(x: Array, gamma: Array, eps: float = 1e-5) -> Array:
    """gamma x / sqrt(mean(x^2) + eps) of each row of x."""
    x = x.astype(np.float64)
    result: Array = x / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps) * gamma.astype(np.float64)
    return result


def erf(x: Array) -> Array:
    """The error function."""
    return np.array([erf_(float(each)) for each in x.ravel()]).reshape(x.shape)


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return np.maximum(x, 0)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x))."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x.astype(np.float64))))


def tanh(x: Array) -> Array:
    """The hyperbolic tangent."""
    return np.tanh(x.astype(np.float64))


def silu(x: Array) -> Array:
    """x sigmoid(x)."""
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """x Phi(x), of the normal distribution."""
    return x * 0.5 * (1 + erf(x / sqrt(2)))


def gelu_tanh(x: Array) -> Array:
    """The approximation of ``gelu`` by a tanh."""
    return x * 0.5 * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


def softplus(x: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """log(1 + exp(beta x)) / beta, and x where beta x is above the threshold."""
    with np.errstate(invalid="ignore"):
        return np.where(beta * x > threshold, x, np.logaddexp(0, np.minimum(beta * x, threshold)) / beta)


def layer_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> Array:
    """(x - mean) weight / sqrt(var + eps) + bias of each row of x."""
    x = x.astype(np.float64)
    result: Array = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return result * weight.astype(np.float64) + bias.astype(np.float64)


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x) / sum(exp(x)) along an axis."""
    x = x.astype(np.float64)
    weights = np.exp(x - x.max(axis, keepdims=True))
    result: Array = weights / weights.sum(axis, keepdims=True)
    return result


def batch_norm(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> Array:
    """(x - mean) weight / sqrt(var + eps) + bias of each channel of ``[N, C, ...]``."""
    rows = np.moveaxis(x, 1, -1)
    mean, var = (getattr(rows.reshape(-1, x.shape[1]).astype(np.float64), name)(0) for name in ("mean", "var"))
    result: Array = np.moveaxis((rows - mean) / np.sqrt(var + eps) * weight + bias, -1, 1)
    return result


def rope(
    x: Array, positions: Array, theta: float = 10_000.0, rotary_dim: int | None = None, *, neox: bool = False
) -> Array:
    """Pairs of the last axis of ``[..., S, H, D]`` turned by ``positions`` ``[..., S]``."""
    turned = x.shape[-1] if rotary_dim is None else rotary_dim
    angles = positions[..., None, None] * theta ** (-np.arange(0, turned, 2) / max(turned, 1))
    result = x.astype(np.float64)
    half = turned // 2
    first = np.s_[..., :half] if neox else np.s_[..., 0:turned:2]
    second = np.s_[..., half:turned] if neox else np.s_[..., 1:turned:2]
    a, b = result[first].copy(), result[second].copy()
    result[first], result[second] = a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)
    return result
