"""Triton's interpreter on the six programs, a program of it doing what a block of ours does.

``pip install triton torch`` (the CPU build of torch will do).
"""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl

__all__ = ["NAME", "RUNS"]

NAME = "Triton's interpreter, same tile"


@triton.jit
def _saxpy(n: Any, a: Any, x: Any, y: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, a * tl.load(x + i, mask) + tl.load(y + i, mask), mask)


@triton.jit
def _matmul(a: Any, b: Any, c: Any, n: Any, T: tl.constexpr) -> None:
    row = tl.program_id(1) * T + tl.arange(0, T)
    col = tl.program_id(0) * T + tl.arange(0, T)
    acc = tl.zeros((T, T), tl.float32)
    for k in range(0, n, T):
        inner = k + tl.arange(0, T)
        left = tl.load(a + row[:, None] * n + inner[None, :])
        acc += tl.dot(left, tl.load(b + inner[:, None] * n + col[None, :]), input_precision="ieee")
    tl.store(c + row[:, None] * n + col[None, :], acc)


@triton.jit
def _softmax(x: Any, y: Any, ROWS: tl.constexpr, COLUMNS: tl.constexpr) -> None:
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + at)
    powers = tl.exp(values - tl.max(values, 1)[:, None])
    tl.store(y + at, powers / tl.sum(powers, 1)[:, None])


@triton.jit
def _attention(
    keys: Any, scale: Any, q: Any, k: Any, v: Any, out: Any, BLOCK: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr
) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, DIM)
    query = tl.load(q + i[:, None] * DIM + d[None, :]) * scale
    acc = tl.zeros((BLOCK, DIM), tl.float32)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, keys, TILE):
        j = start + tl.arange(0, TILE)
        scores = tl.dot(query, tl.load(k + j[None, :] * DIM + d[:, None]), input_precision="ieee")
        top = tl.maximum(largest, tl.max(scores, 1))
        shrink = tl.exp(largest - top)
        weights = tl.exp(scores - top[:, None])
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + j[:, None] * DIM + d[None, :])
        acc = acc * shrink[:, None] + tl.dot(weights, values, input_precision="ieee")
        largest = top
    tl.store(out + i[:, None] * DIM + d[None, :], acc / total[:, None])


@triton.jit
def _collatz(n: Any, steps: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = (i + 1).to(tl.int64)
    count = tl.zeros((BLOCK,), tl.int32)
    while tl.max(value, 0) > 1:
        going = value != 1
        value = tl.where(going, tl.where(value % 2 == 0, value // 2, 3 * value + 1), value)
        count += going.to(tl.int32)
    tl.store(steps + i, count, i < n)


@triton.jit
def _histogram(n: Any, data: Any, counts: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(data + i, i < n, other=0).to(tl.int32)
    found = tl.histogram(bins, 256)
    beyond = tl.sum((i >= n).to(tl.int32), 0)
    bin_ = tl.arange(0, 256)
    tl.atomic_add(counts + bin_, found - tl.where(bin_ == 0, beyond, 0))


def _as_torch(array: Any) -> Any:
    return torch.from_numpy(array.view("int32") if array.dtype.name == "uint32" else array)


def _run_saxpy(n: int, a: float, x: Any, y: Any) -> None:
    _saxpy[(-(-n // 256),)](n, a, _as_torch(x), _as_torch(y), BLOCK=256)


def _run_matmul(a: Any, b: Any, c: Any, n: int) -> None:
    _matmul[n // 16, n // 16](_as_torch(a), _as_torch(b), _as_torch(c), n, T=16)


def _run_softmax(x: Any, y: Any) -> None:
    _softmax[(x.shape[0] // 4,)](_as_torch(x), _as_torch(y), ROWS=4, COLUMNS=x.shape[1])


def _run_attention(keys: int, scale: float, q: Any, k: Any, v: Any, out: Any) -> None:
    tensors = [_as_torch(array) for array in (q, k, v, out)]
    _attention[(q.shape[0] // 64,)](keys, float(scale), *tensors, BLOCK=64, DIM=q.shape[1], TILE=32)


def _run_collatz(n: int, steps: Any) -> None:
    _collatz[(n // 128,)](n, _as_torch(steps), BLOCK=128)


def _run_histogram(n: int, data: Any, counts: Any) -> None:
    _histogram[(64,)](n, _as_torch(data), _as_torch(counts), BLOCK=triton.next_power_of_2(-(-n // 64)))


RUNS: dict[str, Callable[..., None]] = {
    "saxpy": _run_saxpy, "matmul": _run_matmul, "softmax": _run_softmax, "attention": _run_attention,
    "collatz": _run_collatz, "histogram": _run_histogram,
}
