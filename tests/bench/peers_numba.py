"""numba's loops for the maths of the six programs: one thread, ``fastmath``. ``pip install numba``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

__all__ = ["NAME", "RUNS"]

NAME = "numba.njit loops"


@njit(fastmath=True)
def saxpy(n: Any, a: Any, x: Any, y: Any) -> None:
    for i in range(n):
        y[i] = a * x[i] + y[i]


@njit(fastmath=True)
def matmul(a: Any, b: Any, c: Any, n: Any) -> None:
    """In the order that vectorises."""
    c[:] = 0
    for i in range(n):
        for k in range(n):
            for j in range(n):
                c[i, j] += a[i, k] * b[k, j]


@njit(fastmath=True)
def softmax(x: Any, y: Any) -> None:
    for i in range(x.shape[0]):
        largest = x[i, 0]
        for j in range(1, x.shape[1]):
            largest = max(largest, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            power = np.exp(x[i, j] - largest)
            y[i, j] = power
            total += power
        scale = np.float32(1) / total
        for j in range(x.shape[1]):
            y[i, j] *= scale


@njit(fastmath=True)
def attention(keys: Any, scale: Any, q: Any, k: Any, v: Any, out: Any) -> None:
    """A row of scores at a time."""
    scores = np.empty(keys, np.float32)
    for i in range(q.shape[0]):
        largest = np.float32(-np.inf)
        for j in range(keys):
            dot = np.float32(0)
            for d in range(q.shape[1]):
                dot += q[i, d] * k[j, d]
            scores[j] = dot * scale
            largest = max(largest, scores[j])
        total = np.float32(0)
        for j in range(keys):
            scores[j] = np.exp(scores[j] - largest)
            total += scores[j]
        out[i, :] = 0
        for j in range(keys):
            weight = scores[j] / total
            for d in range(q.shape[1]):
                out[i, d] += weight * v[j, d]


@njit(fastmath=True)
def collatz(n: Any, steps: Any) -> None:
    for i in range(n):
        value, count = i + 1, 0
        while value != 1:
            value = value >> 1 if value & 1 == 0 else 3 * value + 1
            count += 1
        steps[i] = count


@njit(fastmath=True)
def histogram(n: Any, data: Any, counts: Any) -> None:
    for i in range(n):
        counts[data[i]] += 1


RUNS: dict[str, Callable[..., None]] = {
    "saxpy": saxpy, "matmul": matmul, "softmax": softmax, "attention": attention, "collatz": collatz,
    "histogram": histogram,
}
"""By the program's name: what runs it, on the arguments of the program's own launch."""
