"""Gradients of the functions of :mod:`.moe`, which torch's autograd calls, and which can be called as they are."""

from __future__ import annotations

from typing import Any

from .. import cdiv, f32

from . import arguments
from .linalg import simt
from .moe_backward_kernels import (
    route_gradient_kernel, simt_weights_kernel, unpermute_gradient_kernel, weights_kernel,
)
from .moe_kernels import MOST_EXPERTS, ROW_THREADS, SHAPE, WARPS

__all__ = ["ROUTED", "route_backward", "unpermute_backward", "weight_gradients"]

ROUTED = ["float16", "bfloat16", "float32"]
"""The dtypes of logits, and of products of experts."""


def route_backward(
    grad_weights: Any, logits: Any, weights: Any, experts: Any, *, renormalize: bool = True, out: Any = None
) -> Any:
    """The gradient of the logits of :func:`~ptxdsl.kernels.moe.route`, from that of the weights.

    Args:
        grad_weights: ``[T, k]`` of float32.
        logits: As of ``route``.
        weights, experts: What ``route`` gave.
        renormalize: As ``route`` had it.
        out: ``[T, E]`` of the logits' dtype; a new array if None.

    >>> import numpy as np
    >>> from ptxdsl.kernels.moe import route
    >>> logits = np.log(np.array([[1, 3, 4]], np.float32))
    >>> weights, experts = route(logits, 2, renormalize=False)
    >>> route_backward(np.array([[0, 1]], np.float32), logits, weights, experts, renormalize=False).round(4)
    array([[-0.0469,  0.2344, -0.1875]], dtype=float32)
    """
    tokens, count = arguments.expect("logits", logits, ["T", "E"], ROUTED)
    arguments.size("the number of experts", count, range(1, MOST_EXPERTS + 1))
    _, k = arguments.expect("weights", weights, [tokens, "k"], ["float32"])
    arguments.size("k", k, range(1, min(count, 32) + 1))
    arguments.expect("experts", experts, [tokens, k], ["int32"])
    arguments.expect("grad_weights", grad_weights, [tokens, k], ["float32"])
    arguments.flag("renormalize", renormalize)
    dtype, inputs = arguments.floating("logits", logits), {"weights": weights, "experts": experts}
    out = arguments.output(out, logits, (tokens, count), dtype, logits=logits, grad_weights=grad_weights, **inputs)
    if tokens:
        kernel = route_gradient_kernel(dtype, count, k, bool(renormalize))
        kernel[cdiv(tokens, WARPS), WARPS * 32](grad_weights, logits, weights, experts, out, tokens)
    return out


def unpermute_backward(grad_out: Any, y: Any, order: Any, weights: Any) -> tuple[Any, Any]:
    """The gradients of y and of the weights of :func:`~ptxdsl.kernels.moe.unpermute`.

    Args:
        grad_out: ``[T, H]`` of y's dtype.
        y, order, weights: As of ``unpermute``.

    Sums are in float32 (float64 of float64), and the weights' gradient is float32.

    >>> import numpy as np
    >>> y, weights = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5], [3]], np.float32)
    >>> unpermute_backward(np.ones((2, 2)), y, np.array([1, 0]), weights)
    (array([[3. , 3. ],
           [0.5, 0.5]]), array([[7.],
           [3.]], dtype=float32))
    """
    tokens, each = arguments.expect("weights", weights, ["T", "k"], ["float32"])
    _, width = arguments.expect("y", y, [tokens * each, "H"], list(arguments.FLOATS))
    arguments.expect("order", order, [tokens * each], ["int64"])
    arguments.expect("grad_out", grad_out, [tokens, width], [arguments.dtype_name(y)])
    dtype = arguments.floating("y", y)
    found = arguments.empty_like(y, (tokens * each, width), dtype), arguments.empty_like(y, (tokens, each), f32)
    if tokens * each:
        kernel = unpermute_gradient_kernel(dtype)
        kernel[tokens * each, ROW_THREADS](grad_out, y, order, weights, *found, width, each)
    return found


def weight_gradients(left: Any, right: Any, offsets: Any, experts: int) -> Any:
    """left[rows of e].T @ right[rows of e] for each expert e, of arrays that were checked."""
    dtype, (_, down), (_, across) = arguments.floating("x", left), left.shape, right.shape
    out = arguments.empty_like(left, (experts, down, across), dtype)
    if not experts * down * across:
        return out
    if dtype is f32:
        tiles = cdiv(across, simt.TILE), cdiv(down, simt.TILE)
        simt_weights_kernel()[tiles[0] * tiles[1] * experts, simt.THREADS](left, right, offsets, out, *tiles)
        return out
    for extent in (down, across):
        if extent % 8:
            raise arguments.wrong(
                f"a side of the weights has {extent}; of 16-bit types their gradient takes multiples of 8",
                hint="pad with zeros",
            )
    left, right = arguments.aligned(16, x=left, grad_out=right)
    tiles = cdiv(across, SHAPE.tile[1]), cdiv(down, SHAPE.tile[0])
    weights_kernel(dtype).configure(tiles[0] * tiles[1] * experts, SHAPE.threads, shared=SHAPE.shared)(
        left, right, offsets, out, *tiles
    )
    return out
