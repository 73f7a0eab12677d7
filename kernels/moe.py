"""Mixtures of experts: which experts a token goes to, moving tokens to their experts and back, a product for each.

A layer is::

    weights, experts = route(logits, k)
    rows, offsets, order = permute(x, experts, E)
    y = unpermute(grouped_matmul(rows, w, offsets), order, weights)

Nothing waits for the device: how many tokens an expert has stays there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import bf16, cdiv, f16, f32, s32, s64

from . import arguments
from .histogram import bincount
from .linalg import simt
from .moe_kernels import (
    MOST_EXPERTS, ROW_THREADS, SHAPE, WARPS, gather_kernel, invert_kernel, product_kernel, route_kernel, scatter_kernel,
    simt_kernel,
)
from .scan import inclusive
from .sort import argsort

__all__ = ["grouped_matmul", "permute", "route", "unpermute"]

_ROUTED = ["float16", "bfloat16", "float32"]


def route(
    logits: Any, k: int, *, renormalize: bool = True, weights_out: Any = None, experts_out: Any = None
) -> tuple[Any, Any]:
    """The k experts of each token with the greatest logits, and their shares: softmax gating (Shazeer et al. 2017).

    Args:
        logits: ``[T, E]``, float16, bfloat16 or float32, E up to 512; NaNs are not chosen and spoil the shares.
        k: 1 to E, at most 32.
        renormalize: Whether the shares of the k add up to 1; else they are those of the softmax over all experts.
        weights_out, experts_out: ``[T, k]`` of float32 and int32; new arrays if None.

    Returns:
        ``(weights, experts)``, the greatest first, of equal ones the lower number first.

    Raises:
        LaunchError: A shape, dtype or number that does not fit. Nothing ran.

    >>> weights, experts = route(np.array([[0, 3, 1, 3]], np.float32), 2)
    >>> weights, experts
    (array([[0.5, 0.5]], dtype=float32), array([[1, 3]], dtype=int32))
    """
    tokens, experts = arguments.expect("logits", logits, ["T", "E"], _ROUTED)
    arguments.size("the number of experts", experts, range(1, MOST_EXPERTS + 1))
    count = arguments.size("k", k, range(1, min(experts, 32) + 1))
    arguments.flag("renormalize", renormalize)
    weights = arguments.output(weights_out, logits, (tokens, count), f32, name="weights_out", logits=logits)
    chosen = arguments.output(experts_out, logits, (tokens, count), s32, name="experts_out", logits=logits)
    if tokens:
        kernel = route_kernel(arguments.floating("logits", logits), experts, count, bool(renormalize))
        kernel[cdiv(tokens, WARPS), WARPS * 32](logits, weights, chosen, tokens)
    return weights, chosen


def permute(x: Any, experts: Any, count: int, *, out: Any = None) -> tuple[Any, Any, Any]:
    """The tokens in the order of their experts, each as often as it has experts.

    Args:
        x: ``[T, H]``, floats.
        experts: ``[T, k]`` of int32, 0 to count - 1; T k below 2^30.
        count: The number of experts.
        out: ``[T k, H]`` of x's dtype; a new array if None.

    Returns:
        ``(out, offsets, order)``: rows offsets[e] to offsets[e + 1] (int64 ``[count + 1]``) are those of expert e, in
        the order of their tokens, and row i is that of token order[i] // k (int64 ``[T k]``).

    >>> rows, offsets, order = permute(np.eye(3), np.array([[1], [0], [1]], np.int32), 2)
    >>> rows.argmax(1), offsets, order
    (array([1, 0, 2]), array([0, 1, 3]), array([1, 0, 2]))
    """
    tokens, width = arguments.expect("x", x, ["T", "H"], list(arguments.FLOATS))
    _, each = arguments.expect("experts", experts, [tokens, "k"], ["int32"])
    arguments.size("count", count, range(1, 1 << 24))
    if isinstance(experts, np.ndarray) and experts.size and not 0 <= experts.min() <= experts.max() < count:
        raise arguments.wrong(f"`experts` has {experts.min()} to {experts.max()}; it can have 0 to {count - 1}")
    rows, dtype = tokens * each, arguments.floating("x", x)
    out = arguments.output(out, x, (rows, width), dtype, x=x)
    offsets = arguments.empty_like(x, (count + 1,), s64)
    flat = experts.reshape(rows)
    counts = bincount(flat, out=arguments.empty_like(x, (count,), s64))
    offsets[:1] = 0
    inclusive(counts, out=offsets[1:])
    order = argsort(flat)
    if rows * width:
        gather_kernel(dtype)[rows, ROW_THREADS](x, order, out, width, each)
    return out, offsets, order


def unpermute(y: Any, order: Any, weights: Any, *, out: Any = None) -> Any:
    """Each token's sum over its experts, out[t] = sum over j of weights[t, j] y[row of (t, j)].

    Args:
        y: ``[T k, H]``, floats.
        order: What :func:`permute` gave.
        weights: ``[T, k]`` of float32, k up to 32.
        out: ``[T, H]`` of y's dtype; a new array if None.

    Sums are in float32 (float64 of float64), in the order of j.

    >>> unpermute(np.array([[1.0], [2.0]]), np.array([1, 0]), np.array([[0.5], [3]], np.float32))
    array([[1.],
           [3.]])
    """
    tokens, each = arguments.expect("weights", weights, ["T", "k"], ["float32"])
    arguments.size("k", each, range(1, 33))
    _, width = arguments.expect("y", y, [tokens * each, "H"], list(arguments.FLOATS))
    arguments.expect("order", order, [tokens * each], ["int64"])
    dtype = arguments.floating("y", y)
    out = arguments.output(out, y, (tokens, width), dtype, y=y, weights=weights)
    if tokens * width:
        inverse = arguments.empty_like(y, (tokens * each,), s64)
        invert_kernel()[cdiv(tokens * each, ROW_THREADS), ROW_THREADS](order, inverse, tokens * each)
        scatter_kernel(dtype, each)[tokens, ROW_THREADS](y, inverse, weights, out, width)
    return out


def grouped_matmul(x: Any, w: Any, offsets: Any, *, transpose_w: bool = False, out: Any = None) -> Any:
    """out[offsets[e]:offsets[e + 1]] = x[offsets[e]:offsets[e + 1]] @ w[e] for each expert e.

    Args:
        x: ``[T, K]``, float16, bfloat16 (both by tensor cores, K a multiple of 8) or float32.
        w: ``[E, K, N]`` of x's dtype, N of 16-bit types a multiple of 8; with ``transpose_w`` ``[E, N, K]``.
        offsets: ``[E + 1]`` of int64, ascending from 0 to T; only the kernel reads them.
        out: ``[T, N]`` of x's dtype; a new array of x's kind if None.

    Sums are in float32. 16-bit arrays begin at multiples of 16 bytes.

    Returns:
        ``out``.

    Raises:
        LaunchError: A shape, dtype or alignment that does not fit. Nothing ran.

    >>> x, w = np.ones((3, 2), np.float32), np.array([np.eye(2), np.full((2, 2), 5)], np.float32)
    >>> grouped_matmul(x, w, np.array([0, 1, 3]))
    array([[ 1.,  1.],
           [10., 10.],
           [10., 10.]], dtype=float32)
    """
    tokens, depth = arguments.expect("x", x, ["T", "K"], _ROUTED)
    names = [arguments.dtype_name(x)]
    turned = arguments.flag("transpose_w", transpose_w)
    wanted: list[int | str] = ["E", "N", depth] if turned else ["E", depth, "N"]
    experts, *sides = arguments.expect("w", w, wanted, names)
    width, dtype = sides[0 if turned else 1], arguments.floating("x", x)
    arguments.expect("offsets", offsets, [experts + 1], ["int64"])
    out = arguments.output(out, x, (tokens, width), dtype, x=x, w=w)
    if not tokens * width * experts:
        return out
    if dtype is f32:
        across = cdiv(width, simt.TILE)
        blocks = across * (tokens // simt.TILE + experts)
        simt_kernel(turned)[blocks, simt.THREADS](x, w, offsets, out, experts, across)
        return out
    assert dtype in (f16, bf16)
    for name, extent in (("K", depth), ("N", depth if turned else width)):
        if extent % 8:
            raise arguments.wrong(f"{name} is {extent}; of {names[0]} it is a multiple of 8", hint="pad with zeros")
    x, w = arguments.aligned(16, x=x, w=w)
    across = cdiv(width, SHAPE.tile[1])
    product_kernel(dtype, turned).configure(
        across * (tokens // SHAPE.tile[0] + experts), SHAPE.threads, shared=SHAPE.shared
    )(x, w, offsets, out, experts, across)
    return out
