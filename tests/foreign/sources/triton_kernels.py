"""Kernels in Triton after the patterns of its tutorials; loaded only where they are compiled."""

# mypy: disable-error-code="untyped-decorator"
from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

os.environ["TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"] = "1"  # it takes annotations for uses of what they name

import triton
import triton.language as tl

__all__ = ["KERNELS", "Recipe"]


@triton.jit
def tile_of(number: Any, M: Any, N: Any, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr) -> Any:
    """The tile with a number, in groups of rows that share what they read."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = number // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    within = number % (GROUP * columns)
    return first + within % height, within // height


@triton.jit
def matmul(
    a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, LEAKY: tl.constexpr,
) -> None:
    """Pointers, masks along K, any size."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    i = (row * BM + tl.arange(0, BM)) % M
    j = (column * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left, right = a + i[:, None] * K + k[None, :], b + k[:, None] * N + j[None, :]
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        sums = tl.dot(x, y, sums)
        left += BK
        right += BK * N
    if LEAKY:
        sums = tl.where(sums >= 0, sums, 0.01 * sums)
    i, j = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
    tl.store(c + N * i[:, None] + j[None, :], sums.to(c.dtype.element_ty), (i[:, None] < M) & (j[None, :] < N))


@triton.jit
def matmul_int8(
    a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
) -> None:
    """The second factor transposed in memory."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        x = tl.load(a + i[:, None] * K + (start + k)[None, :], (i[:, None] < M) & (start + k < K)[None, :], other=0)
        y = tl.load(b + j[None, :] * K + (start + k)[:, None], (j[None, :] < N) & (start + k < K)[:, None], other=0)
        sums = tl.dot(x, y, sums)
    tl.store(c + N * i[:, None] + j[None, :], sums, (i[:, None] < M) & (j[None, :] < N))


@triton.jit
def matmul_descriptors(
    a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, SPECIALISED: tl.constexpr,
) -> None:
    """Tensor descriptors from the host; the second factor is (N, K)."""
    row, column = tile_of(tl.program_id(0), M, N, BM, BN, GROUP)
    i, j = row * BM, column * BN
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in tl.range(tl.cdiv(K, BK), warp_specialize=SPECIALISED):
        x, y = a.load([i, step * BK]), b.load([j, step * BK])
        sums = tl.dot(x, y.T, sums)
    c.store([i, j], sums.to(c.dtype))


@triton.jit
def matmul_persistent(
    a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, PROGRAMS: tl.constexpr, HALVES: tl.constexpr, FLAT: tl.constexpr, SPECIALISED: tl.constexpr,
) -> None:
    """Descriptors made by the kernel; each program takes each PROGRAMS-th tile, and stores it in halves."""
    left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN if not HALVES else BN // 2])
    first = tl.program_id(0)
    tiles = tl.cdiv(M, BM) * tl.cdiv(N, BN)
    stored = first - PROGRAMS
    for number in tl.range(first, tiles, PROGRAMS, flatten=FLAT, warp_specialize=SPECIALISED):
        row, column = tile_of(number, M, N, BM, BN, GROUP)
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x, y = left.load([row * BM, step * BK]), right.load([column * BN, step * BK])
            sums = tl.dot(x, y.T, sums)
        stored += PROGRAMS
        row, column = tile_of(stored, M, N, BM, BN, GROUP)
        if HALVES:
            parts = tl.permute(tl.reshape(sums, (BM, 2, BN // 2)), (0, 2, 1))
            one, other = tl.split(parts)
            out.store([row * BM, column * BN], one.to(c.dtype.element_ty))
            out.store([row * BM, column * BN + BN // 2], other.to(c.dtype.element_ty))
        else:
            out.store([row * BM, column * BN], sums.to(c.dtype.element_ty))


@triton.jit
def split_k(
    a: Any, b: Any, c: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
) -> None:
    """Parts of K are added up in memory by tensor copies that reduce."""
    i, j, part, parts = tl.program_id(0) * BM, tl.program_id(1) * BN, tl.program_id(2), tl.num_programs(2)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    for step in tl.range(part, tl.cdiv(K, BK), parts):
        sums = tl.dot(a.load([i, step * BK]), b.load([step * BK, j]), sums)
    c.atomic_add([i, j], sums)


@triton.jit
def grouped(
    addresses: Any, sizes: Any, count: Any, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
) -> None:
    """Products of several pairs, whose addresses and sizes lie in memory; descriptors are made for each."""
    number = tl.program_id(0)
    done = 0
    for group in range(count):
        M, N, K = tl.load(sizes + 3 * group), tl.load(sizes + 3 * group + 1), tl.load(sizes + 3 * group + 2)
        columns = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * columns
        if number >= done and number < done + tiles:
            a = tl.load(addresses + 3 * group).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses + 3 * group + 1).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses + 3 * group + 2).to(tl.pointer_type(tl.float16))
            left = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
            right = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
            out = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
            while number >= done and number < done + tiles:
                row, column = (number - done) // columns, (number - done) % columns
                sums = tl.zeros((BM, BN), dtype=tl.float32)
                for step in range(tl.cdiv(K, BK)):
                    x, y = left.load([row * BM, step * BK]), right.load([column * BN, step * BK])
                    sums += tl.dot(x, y.T)
                out.store([row * BM, column * BN], sums.to(tl.float16))
                number += PROGRAMS
        done = done + tiles


@triton.jit
def grouped_pointers(
    addresses: Any, sizes: Any, count: Any, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
) -> None:
    """The same by pointers; sizes that are multiples of the tiles, as the tutorial asks."""
    number = tl.program_id(0)
    done = 0
    for group in range(count):
        M, N, K = tl.load(sizes + 3 * group), tl.load(sizes + 3 * group + 1), tl.load(sizes + 3 * group + 2)
        columns = tl.cdiv(N, BN)
        tiles = tl.cdiv(M, BM) * columns
        while number >= done and number < done + tiles:
            a = tl.load(addresses + 3 * group).to(tl.pointer_type(tl.float16))
            b = tl.load(addresses + 3 * group + 1).to(tl.pointer_type(tl.float16))
            c = tl.load(addresses + 3 * group + 2).to(tl.pointer_type(tl.float16))
            i = (number - done) // columns * BM + tl.arange(0, BM)
            j = (number - done) % columns * BN + tl.arange(0, BN)
            k = tl.arange(0, BK)
            left, right = a + i[:, None] * K + k[None, :], b + k[:, None] * N + j[None, :]
            sums = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(tl.cdiv(K, BK)):
                tl.multiple_of(left, [16, 16])
                tl.multiple_of(right, [16, 16])
                sums += tl.dot(tl.load(left), tl.load(right))
                left += BK
                right += BK * N
            tl.store(c + i[:, None] * N + j[None, :], sums.to(tl.float16))
            number += PROGRAMS
        done = done + tiles


@triton.jit
def attention_part(
    acc: Any, total: Any, top: Any, q: Any, k: Any, v: Any, base: Any, low: Any, high: Any, scale: Any, i: Any,
    MASKED: tl.constexpr, BN: tl.constexpr, SPECIALISED: tl.constexpr,
) -> Any:
    """Keys from low to high; scale is by log2(e) larger."""
    for start in tl.range(low, high, BN, warp_specialize=SPECIALISED):
        start = tl.multiple_of(start, BN)
        scores = tl.dot(q, k.load([base + start, 0]).T)
        if MASKED:
            seen = i[:, None] >= (start + tl.arange(0, BN))[None, :]
            scores = scores * scale + tl.where(seen, 0, -1.0e6)
            higher = tl.maximum(top, tl.max(scores, 1))
            scores -= higher[:, None]
        else:
            higher = tl.maximum(top, tl.max(scores, 1) * scale)
            scores = scores * scale - higher[:, None]
        weights = tl.math.exp2(scores)
        shrink = tl.math.exp2(top - higher)
        sums = tl.sum(weights, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(weights.to(v.dtype), v.load([base + start, 0]), acc)
        total = total * shrink + sums
        top = higher
    return acc, total, top


@triton.jit
def attention(
    scale: Any, logsum: Any, heads: Any, q: Any, k: Any, v: Any, out: Any, length: Any, DIM: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr, SPECIALISED: tl.constexpr,
) -> None:
    """Fused attention, forward: (batch * heads * length, DIM) arrays by descriptors."""
    block, which = tl.program_id(0), tl.program_id(1)
    base = which * length
    i = block * BM + tl.arange(0, BM)
    top = tl.zeros([BM], dtype=tl.float32) - float("inf")
    total = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, DIM], dtype=tl.float32)
    scale2 = scale * 1.44269504
    x = q.load([base + block * BM, 0])
    if CAUSAL:
        acc, total, top = attention_part(acc, total, top, x, k, v, base, 0, block * BM, scale2, i, False, BN,
                                         SPECIALISED)
        acc, total, top = attention_part(acc, total, top, x, k, v, base, block * BM, (block + 1) * BM, scale2, i, True,
                                         BN, SPECIALISED)
    else:
        acc, total, top = attention_part(acc, total, top, x, k, v, base, 0, length, scale2, i, False, BN, SPECIALISED)
    top += tl.math.log2(total)
    tl.store(logsum + base + i, top)
    out.store([base + block * BM, 0], (acc / total[:, None]).to(out.dtype))


@triton.jit
def attention_delta(out: Any, grad: Any, delta: Any, length: Any, BM: tl.constexpr, DIM: tl.constexpr) -> None:
    """The sum of out * grad over each row."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    at = (tl.program_id(1) * length + i[:, None]) * DIM + tl.arange(0, DIM)[None, :]
    tl.store(delta + tl.program_id(1) * length + i, tl.sum(tl.load(out + at) * tl.load(grad + at).to(tl.float32), 1))


@triton.jit
def attention_dk_dv(
    dk: Any, dv: Any, q: Any, k: Any, v: Any, grad: Any, logsum: Any, delta: Any, first: Any, low: Any, steps: Any,
    BM: tl.constexpr, BN: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
) -> Any:
    """The gradients of BN keys and values, by rows from low on."""
    j, d = first + tl.arange(0, BN), tl.arange(0, DIM)
    for step in range(steps):
        i = low + step * BM + tl.arange(0, BM)
        turned = tl.load(q + i[None, :] * DIM + d[:, None])
        weights = tl.math.exp2(tl.dot(k, turned) - tl.load(logsum + i)[None, :])
        if MASKED:
            weights = tl.where(i[None, :] >= j[:, None], weights, 0.0)
        g = tl.load(grad + i[:, None] * DIM + d[None, :])
        dv += tl.dot(weights.to(tl.float16), g)
        slopes = tl.dot(v, tl.trans(g)).to(tl.float32) - tl.load(delta + i)[None, :]
        dk += tl.dot((weights * slopes).to(tl.float16), tl.trans(turned))
    return dk, dv


@triton.jit
def attention_dq(
    dq: Any, q: Any, k: Any, v: Any, grad: Any, logsum: Any, delta: Any, first: Any, low: Any, steps: Any,
    BM: tl.constexpr, BN: tl.constexpr, DIM: tl.constexpr, MASKED: tl.constexpr,
) -> Any:
    """The gradients of BM queries, by keys from low on."""
    i, d = first + tl.arange(0, BM), tl.arange(0, DIM)
    for step in range(steps):
        j = low + step * BN + tl.arange(0, BN)
        turned = tl.load(k + j[None, :] * DIM + d[:, None])
        weights = tl.math.exp2(tl.dot(q, turned) - logsum)
        if MASKED:
            weights = tl.where(i[:, None] >= j[None, :], weights, 0.0)
        values = tl.load(v + j[None, :] * DIM + d[:, None])
        slopes = (weights * (tl.dot(grad, values).to(tl.float32) - delta[:, None])).to(tl.float16)
        dq += tl.dot(slopes, tl.trans(turned))
    return dq


@triton.jit
def attention_backward(
    q: Any, k: Any, v: Any, scale: Any, grad: Any, dq: Any, dk: Any, dv: Any, logsum: Any, delta: Any, length: Any,
    BLOCK: tl.constexpr, STEP: tl.constexpr, DIM: tl.constexpr,
) -> None:
    """Causal attention, backward; k is given times scale * log2(e)."""
    base = tl.program_id(2).to(tl.int64) * length
    q, k, v, grad = q + base * DIM, k + base * DIM, v + base * DIM, grad + base * DIM
    dq, dk, dv, logsum, delta = dq + base * DIM, dk + base * DIM, dv + base * DIM, logsum + base, delta + base
    first = tl.program_id(0) * BLOCK
    i, d = first + tl.arange(0, BLOCK), tl.arange(0, DIM)
    place = i[:, None] * DIM + d[None, :]
    keys, values = tl.load(k + place), tl.load(v + place)
    sum_k, sum_v = tl.zeros([BLOCK, DIM], dtype=tl.float32), tl.zeros([BLOCK, DIM], dtype=tl.float32)
    sum_k, sum_v = attention_dk_dv(sum_k, sum_v, q, keys, values, grad, logsum, delta, first, first, BLOCK // STEP,
                                   STEP, BLOCK, DIM, True)
    rest = first + BLOCK
    sum_k, sum_v = attention_dk_dv(sum_k, sum_v, q, keys, values, grad, logsum, delta, first, rest,
                                   (length - rest) // STEP, STEP, BLOCK, DIM, False)
    tl.store(dv + place, sum_v)
    tl.store(dk + place, sum_k * scale)
    x, g = tl.load(q + place), tl.load(grad + place)
    sums = tl.load(logsum + i)[:, None]
    deltas = tl.load(delta + i)
    sum_q = tl.zeros([BLOCK, DIM], dtype=tl.float32)
    sum_q = attention_dq(sum_q, x, k, v, g, sums, deltas, first, first, BLOCK // STEP, BLOCK, STEP, DIM, True)
    sum_q = attention_dq(sum_q, x, k, v, g, sums, deltas, first, 0, first // STEP, BLOCK, STEP, DIM, False)
    tl.store(dq + place, sum_q * 0.6931471824645996)


@triton.jit
def scaled(
    a: Any, a_scale: Any, b: Any, b_scale: Any, c: Any, M: Any, N: Any, K: Any, A: tl.constexpr, B: tl.constexpr,
    VECTOR: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
) -> None:
    """A product of blocks with scales: a is (M, K), b is (N, K), scales (M, K / VECTOR) and (N, K / VECTOR)."""
    PA: tl.constexpr = 2 if A == "e2m1" else 1
    PB: tl.constexpr = 2 if B == "e2m1" else 1
    i, j = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    ka, kb, ks = tl.arange(0, BK // PA), tl.arange(0, BK // PB), tl.arange(0, BK // VECTOR)
    sums = tl.zeros((BM, BN), dtype=tl.float32)
    row, column = i % M, j % N
    for start in range(0, K, BK):
        x = tl.load(a + row[:, None] * (K // PA) + (start // PA + ka)[None, :])
        y = tl.load(b + column[:, None] * (K // PB) + (start // PB + kb)[None, :])
        sx = tl.load(a_scale + row[:, None] * (K // VECTOR) + (start // VECTOR + ks)[None, :])
        sy = tl.load(b_scale + column[:, None] * (K // VECTOR) + (start // VECTOR + ks)[None, :])
        sums = tl.dot_scaled(x, sx, A, y.T, sy, B, sums)
    tl.store(c + N * i[:, None] + j[None, :], sums, (i[:, None] < M) & (j[None, :] < N))


@triton.jit
def rows_by_descriptor(x: Any, index: Any, out: Any, columns: Any, ROWS: tl.constexpr, WIDTH: tl.constexpr) -> None:
    """Rows are gathered, doubled, and scattered to the same places of another array."""
    at = tl.load(index + tl.program_id(0) * ROWS + tl.arange(0, ROWS))
    for start in range(0, columns, WIDTH):
        out.scatter(x.gather(at, start) * 2, at, start)


@triton.jit
def softmax_dependent(x: Any, out: Any, rows: Any, columns: Any, BLOCK: tl.constexpr) -> None:
    """A launch that depends on the one before it (griddepcontrol), over rows."""
    tl.extra.cuda.gdc_wait()
    j = tl.arange(0, BLOCK)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        values = tl.load(x + row * columns + j, j < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(out + row * columns + j, powers / tl.sum(powers, 0), j < columns)
    tl.extra.cuda.gdc_launch_dependents()


class Recipe(NamedTuple):
    """How a kernel is compiled: its types, its constants, its options, and for what."""

    function: Any
    types: dict[str, str]
    constants: dict[str, Any]
    options: Mapping[str, Any] = MappingProxyType({})
    targets: tuple[int, ...] = (90, 100)


def pointers(kind: str, out: str = "fp16") -> dict[str, str]:
    return {"a": f"*{kind}", "b": f"*{kind}", "c": f"*{out}", "M": "i32", "N": "i32", "K": "i32"}


def described(kind: str, a: str, b: str, c: str, out: str = "fp16") -> dict[str, str]:
    boxes = {"a": f"tensordesc<{kind}[{a}]>", "b": f"tensordesc<{kind}[{b}]>", "c": f"tensordesc<{out}[{c}]>"}
    return {**boxes, "M": "i32", "N": "i32", "K": "i32"}


def attended(kind: str, rows: int, keys: int, dim: int) -> dict[str, str]:
    boxes = {"q": rows, "k": keys, "v": keys, "out": rows}
    return {"scale": "fp32", "logsum": "*fp32", "heads": "i32",
            **{name: f"tensordesc<{kind}[{box}, {dim}]>" for name, box in boxes.items()}, "length": "i32"}


_T64 = {"BM": 64, "BN": 64, "BK": 64}
_TILE = {**_T64, "GROUP": 4}
_SCALED = {"a": "*u8", "a_scale": "*u8", "b": "*u8", "b_scale": "*u8", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
KERNELS: dict[str, Recipe] = {
    "matmul_f16": Recipe(matmul, pointers("fp16"), {**_TILE, "LEAKY": True}),
    "matmul_bf16": Recipe(matmul, pointers("bf16", "fp32"), {**_TILE, "BN": 128, "LEAKY": False}, {"num_stages": 4}),
    "matmul_tf32": Recipe(matmul, pointers("fp32", "fp32"), {**_TILE, "BK": 32, "LEAKY": False}),
    "matmul_e4m3": Recipe(matmul, pointers("fp8e4nv"), {**_TILE, "LEAKY": False}),
    "matmul_int8": Recipe(matmul_int8, pointers("i8", "i32"), _T64),
    "matmul_cluster": Recipe(matmul, pointers("fp16"), {**_TILE, "BM": 128, "LEAKY": False}, {"num_ctas": 2}),
    "descriptors_f16": Recipe(
        matmul_descriptors, described("fp16", "64, 64", "128, 64", "64, 128"),
        {"BM": 64, "BN": 128, "BK": 64, "GROUP": 4, "SPECIALISED": False}),
    "descriptors_e5m2": Recipe(
        matmul_descriptors, described("fp8e5", "128, 128", "128, 128", "128, 128", "fp32"),
        {"BM": 128, "BN": 128, "BK": 128, "GROUP": 2, "SPECIALISED": False}, {"num_warps": 8}),
    "descriptors_specialised": Recipe(
        matmul_descriptors, described("fp16", "128, 64", "128, 64", "128, 128"),
        {"BM": 128, "BN": 128, "BK": 64, "GROUP": 4, "SPECIALISED": True}, {"num_warps": 4},
        (100,)),
    "descriptors_cluster": Recipe(
        matmul_descriptors, described("fp16", "128, 64", "128, 64", "128, 128"),
        {"BM": 128, "BN": 128, "BK": 64, "GROUP": 4, "SPECIALISED": False}, {"num_ctas": 2}),
    "persistent": Recipe(
        matmul_persistent, pointers("fp16"),
        {**_TILE, "BM": 128, "PROGRAMS": 3, "HALVES": False, "FLAT": True, "SPECIALISED": False}),
    "persistent_halves": Recipe(
        matmul_persistent, pointers("fp16"),
        {**_TILE, "BM": 128, "BN": 128, "PROGRAMS": 2, "HALVES": True, "FLAT": False, "SPECIALISED": False},
        {"num_warps": 8, "maxnreg": 128}),
    "persistent_specialised": Recipe(
        matmul_persistent, pointers("fp16"),
        {**_TILE, "BM": 128, "BN": 128, "PROGRAMS": 2, "HALVES": False, "FLAT": True, "SPECIALISED": True}),
    "split_k": Recipe(
        split_k, {"a": "tensordesc<bf16[64, 64]>", "b": "tensordesc<bf16[64, 64]>", "c": "tensordesc<fp32[64, 64]>",
                  "K": "i32"}, _T64),
    "grouped": Recipe(grouped, {"addresses": "*i64", "sizes": "*i32", "count": "i32"}, {"PROGRAMS": 3, **_T64}),
    "grouped_pointers": Recipe(
        grouped_pointers, {"addresses": "*i64", "sizes": "*i32", "count": "i32"}, {"PROGRAMS": 3, **_T64}),
    "attention_f16": Recipe(
        attention, attended("fp16", 64, 32, 64), {"DIM": 64, "BM": 64, "BN": 32, "CAUSAL": True, "SPECIALISED": False}),
    "attention_bf16": Recipe(
        attention, attended("bf16", 128, 64, 128),
        {"DIM": 128, "BM": 128, "BN": 64, "CAUSAL": False, "SPECIALISED": False}, {"num_warps": 8}),
    "attention_specialised": Recipe(
        attention, attended("fp16", 128, 64, 64),
        {"DIM": 64, "BM": 128, "BN": 64, "CAUSAL": False, "SPECIALISED": True}, {"num_warps": 4},
        (100,)),
    "attention_delta": Recipe(
        attention_delta, {"out": "*fp16", "grad": "*fp16", "delta": "*fp32", "length": "i32"}, {"BM": 64, "DIM": 64}),
    "attention_backward": Recipe(
        attention_backward,
        {"q": "*fp16", "k": "*fp16", "v": "*fp16", "scale": "fp32", "grad": "*fp16", "dq": "*fp32", "dk": "*fp32",
         "dv": "*fp32", "logsum": "*fp32", "delta": "*fp32", "length": "i32"}, {"BLOCK": 64, "STEP": 32, "DIM": 64}),
    "scaled_e4m3": Recipe(
        scaled, {**_SCALED, "a": "*fp8e4nv", "b": "*fp8e5"},
        {"A": "e4m3", "B": "e5m2", "VECTOR": 32, "BM": 128, "BN": 64, "BK": 128}),
    "scaled_e2m1": Recipe(
        scaled, _SCALED, {"A": "e2m1", "B": "e2m1", "VECTOR": 32, "BM": 128, "BN": 128, "BK": 128}),
    "scaled_nvfp4": Recipe(
        scaled, {**_SCALED, "a_scale": "*fp8e4nv", "b_scale": "*fp8e4nv"},
        {"A": "e2m1", "B": "e2m1", "VECTOR": 16, "BM": 128, "BN": 128, "BK": 128}, targets=(100,)),
    "scaled_mixed": Recipe(
        scaled, {**_SCALED, "a": "*fp8e4nv"},
        {"A": "e4m3", "B": "e2m1", "VECTOR": 32, "BM": 128, "BN": 128, "BK": 128}, targets=(100,)),
    "rows": Recipe(
        rows_by_descriptor, {"x": "tensordesc<fp16[1, 64]>", "index": "*i32", "out": "tensordesc<fp16[1, 64]>",
                             "columns": "i32"}, {"ROWS": 32, "WIDTH": 64}, targets=(100,)),
    "softmax_dependent": Recipe(
        softmax_dependent, {"x": "*fp32", "out": "*fp32", "rows": "i32", "columns": "i32"}, {"BLOCK": 1024},
        {"launch_pdl": True}, (90,)),
}
