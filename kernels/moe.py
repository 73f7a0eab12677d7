"""Mixtures of experts: which experts a token goes to, moving tokens to their experts and back, a product for each.

A layer is::

    weights, experts = route(logits, k)
    rows, offsets, order = permute(x, experts, E)
    y = unpermute(grouped_matmul(rows, w, offsets), order, weights)

Nothing waits for the device: how many tokens an expert has stays there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import bf16, cdiv, f16, f32, s32, s64

from . import arguments
from .autograd import differentiable
from .histogram import bincount
from .linalg import simt
from .moe_gradients import ROUTED, route_backward, unpermute_backward, weight_gradients
from .moe_kernels import (
    MOST_EXPERTS, ROW_THREADS, SHAPE, WARPS, gather_kernel, invert_kernel, product_kernel, route_kernel, scatter_kernel,
    simt_kernel,
)
from .scan import inclusive
from .sort import argsort

__all__ = [
    "grouped_matmul", "grouped_matmul_backward", "permute", "permute_backward", "route", "route_backward", "unpermute",
    "unpermute_backward",
]


def _route_gradient(
    logits: Any, weights_out: Any, experts_out: Any, renormalize: bool, grad_weights_out: Any
) -> Mapping[str, Any]:
    return {"logits": route_backward(grad_weights_out, logits, weights_out, experts_out, renormalize=renormalize)}


@differentiable("logits", backward=_route_gradient, results=("weights_out", "experts_out"))
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
    tokens, experts = arguments.expect("logits", logits, ["T", "E"], ROUTED)
    arguments.size("the number of experts", experts, range(1, MOST_EXPERTS + 1))
    count = arguments.size("k", k, range(1, min(experts, 32) + 1))
    arguments.flag("renormalize", renormalize)
    weights = arguments.output(weights_out, logits, (tokens, count), f32, name="weights_out", logits=logits)
    chosen = arguments.output(experts_out, logits, (tokens, count), s32, name="experts_out", logits=logits)
    if tokens:
        kernel = route_kernel(arguments.floating("logits", logits), experts, count, bool(renormalize))
        kernel[cdiv(tokens, WARPS), WARPS * 32](logits, weights, chosen, tokens)
    return weights, chosen


def permute_backward(grad_out: Any, order: Any, k: int, *, out: Any = None) -> Any:
    """The gradient of x of :func:`permute`: of each token the sum of those of its k rows, up to 32.

    >>> permute_backward(np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([1, 2, 0, 3]), 2)
    array([[ 5.],
           [10.]])
    """
    rows, _ = arguments.expect("grad_out", grad_out, ["T k", "H"], list(arguments.FLOATS))
    each = arguments.size("k", k, range(1, 33))
    if rows % each:
        raise arguments.wrong(f"`grad_out` has {rows} rows; of k {each} it has a multiple of that")
    ones = arguments.empty_like(grad_out, (rows // each, each), f32)
    ones[...] = 1
    return unpermute(grad_out, order, ones, out=out)


def _permute_gradient(experts: Any, order: Any, grad_out: Any) -> Mapping[str, Any]:
    return {"x": permute_backward(grad_out, order, experts.shape[1])}


@differentiable("x", backward=_permute_gradient, results=("out", "offsets", "order"))
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


def _unpermute_gradients(grad_out: Any, y: Any, order: Any, weights: Any) -> Mapping[str, Any]:
    return dict(zip(("y", "weights"), unpermute_backward(grad_out, y, order, weights)))


@differentiable("y", "weights", backward=_unpermute_gradients)
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


def grouped_matmul_backward(
    grad_out: Any, x: Any, w: Any, offsets: Any, *, transpose_w: bool = False,
    needs: frozenset[str] = frozenset(("x", "w")),
) -> Mapping[str, Any]:
    """The gradients of x and w of :func:`grouped_matmul` by name, those that ``needs`` names.

    Args:
        grad_out: ``[T, N]`` of x's dtype.
        x, w, offsets, transpose_w: As of :func:`grouped_matmul`; of 16-bit types K and N are multiples of 8.

    Rows that belong to no expert have a gradient of 0, and so has an expert without rows. Sums are in float32.

    >>> x, w = np.ones((3, 2), np.float32), np.ones((2, 2, 1), np.float32)
    >>> grouped_matmul_backward(np.ones((3, 1), np.float32), x, w, np.array([0, 1, 3]))["w"][:, 0, 0]
    array([1., 2.], dtype=float32)
    """
    (tokens, _), (experts, *sides) = (tuple(array.shape) for array in _product_arguments(x, w, offsets, transpose_w))
    arguments.expect("grad_out", grad_out, [tokens, sides[0 if transpose_w else 1]], [arguments.dtype_name(x)])
    found: dict[str, Any] = {}
    if "x" in needs:
        out = arguments.empty_like(x, tuple(x.shape), arguments.floating("x", x))
        out[...] = 0
        found["x"] = grouped_matmul(grad_out, w, offsets, transpose_w=not transpose_w, out=out)
    if "w" in needs:
        pair = (grad_out, x) if transpose_w else (x, grad_out)
        found["w"] = weight_gradients(*pair, offsets, experts)
    return found


def _product_arguments(x: Any, w: Any, offsets: Any, transpose_w: bool) -> tuple[Any, Any]:
    """x and w, if they and the offsets are what a product takes."""
    _, depth = arguments.expect("x", x, ["T", "K"], ROUTED)
    wanted: list[int | str] = ["E", "N", depth] if arguments.flag("transpose_w", transpose_w) else ["E", depth, "N"]
    experts, *_ = arguments.expect("w", w, wanted, [arguments.dtype_name(x)])
    arguments.expect("offsets", offsets, [experts + 1], ["int64"])
    return x, w


@differentiable("x", "w", backward=grouped_matmul_backward)
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
    turned = bool(transpose_w)
    given = _product_arguments(x, w, offsets, transpose_w)
    (tokens, depth), (experts, *sides) = (tuple(array.shape) for array in given)
    width, dtype = sides[0 if turned else 1], arguments.floating("x", x)
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
            kind = arguments.dtype_name(x)
            raise arguments.wrong(f"{name} is {extent}; of {kind} it is a multiple of 8", hint="pad with zeros")
    x, w = arguments.aligned(16, x=x, w=w)
    across = cdiv(width, SHAPE.tile[1])
    product_kernel(dtype, turned).configure(
        across * (tokens // SHAPE.tile[0] + experts), SHAPE.threads, shared=SHAPE.shared
    )(x, w, offsets, out, experts, across)
    return out
