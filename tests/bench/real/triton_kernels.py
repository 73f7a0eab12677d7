"""The kernels in Triton; loaded only where they are compiled."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ["TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"] = "1"  # it takes annotations for uses of what they name

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

__all__ = ["made"]


@triton.jit
def triton_add_relu(x: Any, y: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.maximum(tl.load(x + i, mask) + tl.load(y + i, mask), 0.0), mask)


@triton.jit
def triton_softmax(x: Any, out: Any, columns: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + j, j < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + j, powers / tl.sum(powers, 0), j < columns)


@triton.jit
def triton_layer_norm(x: Any, weight: Any, bias: Any, out: Any, columns: Any, eps: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + j, j < columns, other=0.0)
    mean = tl.sum(total, 0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        d = tl.where(j < columns, tl.load(x + row * columns + j, j < columns, other=0.0) - mean, 0.0)
        squares += d * d
    scale = 1 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        mask = j < columns
        y = (tl.load(x + row * columns + j, mask) - mean) * scale
        tl.store(out + row * columns + j, y * tl.load(weight + j, mask) + tl.load(bias + j, mask), mask)


@triton.jit
def triton_matmul(a: Any, b: Any, c: Any, m: Any, n: Any, k: Any, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr) -> None:
    row = tl.program_id(1) * BM + tl.arange(0, BM)
    col = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        left = tl.load(a + row[:, None] * k + at[None, :], (row[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + col[None, :], (at[:, None] < k) & (col[None, :] < n), other=0.0)
        acc = tl.dot(left, right, acc)
    tl.store(c + row[:, None] * n + col[None, :], acc, (row[:, None] < m) & (col[None, :] < n))


@triton.jit
def triton_matmul_f32(a: Any, b: Any, c: Any, n: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    col = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        left = tl.load(a + row[:, None] * n + at[None, :])
        acc = tl.dot(left, tl.load(b + at[:, None] * n + col[None, :]), acc, input_precision="ieee")
    tl.store(c + row[:, None] * n + col[None, :], acc)


@triton.jit
def triton_attention(q: Any, k: Any, v: Any, out: Any, keys: Any, scale: Any, BLOCK: tl.constexpr, TILE: tl.constexpr,
                     DIM: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, DIM)
    query = tl.load(q + i[:, None] * DIM + d[None, :])
    acc = tl.zeros((BLOCK, DIM), tl.float32)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, keys, TILE):
        j = start + tl.arange(0, TILE)
        scores = tl.dot(query, tl.load(k + j[None, :] * DIM + d[:, None])) * scale
        higher = tl.maximum(top, tl.max(scores, 1))
        shrink = tl.exp(top - higher)
        weights = tl.exp(scores - higher[:, None])
        total = total * shrink + tl.sum(weights, 1)
        values = tl.load(v + j[:, None] * DIM + d[None, :])
        acc = acc * shrink[:, None] + tl.dot(weights.to(tl.float16), values)
        top = higher
    tl.store(out + i[:, None] * DIM + d[None, :], acc / total[:, None])


@triton.jit
def triton_dropout(x: Any, out: Any, n: Any, p: Any, seed: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, tl.load(x + i, mask) / (1 - p), 0.0), mask)


@triton.jit
def triton_cumsum(x: Any, out: Any, columns: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + j, j < columns, other=0)
    tl.store(out + row * columns + j, tl.cumsum(values, 0), j < columns)


@triton.jit
def triton_cross_entropy(x: Any, label: Any, loss: Any, columns: Any, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * columns + j, j < columns, other=-float("inf"))
        higher = tl.maximum(top, values)
        total = total * tl.exp(tl.where(higher == top, 0.0, top - higher))
        total += tl.exp(tl.where(j < columns, values - higher, -float("inf")))
        top = higher
    best = tl.max(top, 0)
    everything = tl.sum(total * tl.exp(top - best), 0)
    tl.store(loss + row, tl.log(everything) + best - tl.load(x + row * columns + tl.load(label + row)))


TARGET = GPUTarget("cuda", 80, 32)
"""One whose matrix products are mma.sync, which the emulator has; on sm_90 they are wgmma."""
KERNELS: list[tuple[Any, dict[str, str], dict[str, int], int]] = [
    (triton_add_relu, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 1024}, 4),
    (triton_softmax, {"x": "*fp32", "out": "*fp32", "columns": "i32"}, {"BLOCK": 1024}, 4),
    (triton_layer_norm, {"x": "*fp32", "weight": "*fp32", "bias": "*fp32", "out": "*fp32", "columns": "i32",
                         "eps": "fp32"}, {"BLOCK": 512}, 4),
    (triton_matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp32", "m": "i32", "n": "i32", "k": "i32"},
     {"BM": 64, "BN": 64, "BK": 32}, 4),
    (triton_matmul_f32, {"a": "*fp32", "b": "*fp32", "c": "*fp32", "n": "i32"}, {"BLOCK": 32}, 4),
    (triton_attention, {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp32", "keys": "i32", "scale": "fp32"},
     {"BLOCK": 64, "TILE": 32, "DIM": 64}, 4),
    (triton_dropout, {"x": "*fp32", "out": "*fp32", "n": "i32", "p": "fp32", "seed": "i32"}, {"BLOCK": 1024}, 4),
    (triton_cumsum, {"x": "*i32", "out": "*i32", "columns": "i32"}, {"BLOCK": 1024}, 4),
    (triton_cross_entropy, {"x": "*fp32", "label": "*i32", "loss": "*fp32", "columns": "i32"}, {"BLOCK": 512}, 4),
]


def made() -> Iterator[tuple[str, str]]:
    """The name and PTX of each; the shared memory that a launch needs stands in the first line."""
    for function, signature, constants, warps in KERNELS:
        types = {**signature, **dict.fromkeys(constants, "constexpr")}
        names = list(types)
        aligned = {(n,): [["tt.divisibility", 16]] for n, name in enumerate(names) if types[name].startswith("*")}
        source = ASTSource(function, types, {(names.index(name),): value for name, value in constants.items()}, aligned)
        compiled = triton.compile(source, target=TARGET, options={"num_warps": warps})
        yield function.__name__, f"// shared {compiled.metadata.shared}\n{compiled.asm['ptx']}"
