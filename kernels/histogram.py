"""Histograms: how many elements lie in each bin, or the sum of their weights."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from .. import cdiv, f64, s64

from . import arguments, reduce, storage
from .histogram_kernels import SHARED_BINS, THREADS, count_kernel, zero_kernel

__all__ = ["bincount", "histogram"]

_CHUNK_BYTES = 1 << 17
_MAX_BLOCKS = 1024


def histogram(
    x: Any, bins: Any = 10, *, range: tuple[float, float] | None = None, weights: Any = None, out: Any = None
) -> tuple[Any, Any]:
    """How many elements lie in each bin (numpy.histogram).

    Args:
        x: Any shape, taken as flat; integers or floats.
        bins: How many bins of equal width, or their edges: one axis, ascending, which the host reads.
        range: From where to where bins of equal width reach; from the least to the greatest element if None, which the
            host waits for.
        weights: Floats of x's shape that are added up instead of counting, or None.
        out: ``[bins]`` of int64, with weights float64; a new array of x's kind if None.

    A bin has its lower edge, and the last one both of its edges; elements beyond all edges and NaNs count nowhere.
    Edges are numpy's, computed in float64, and decide exactly. Weights are added in float64, in an order that may
    differ from call to call.

    Returns:
        ``(out, edges)``, the edges as a numpy array of float64.

    Raises:
        LaunchError: A dtype, shape, number of bins or range that does not fit. Nothing ran.

    >>> histogram(np.array([1, 2, 1, 4, 9]), 4, range=(0, 8))
    (array([2, 1, 1, 0]), array([0., 2., 4., 6., 8.]))
    """
    shape = arguments.expect_array("x", x, storage.NUMBERS)
    weight = _weight(weights, shape)
    if np.ndim(bins):
        edges = np.asarray(bins, np.float64)
        if edges.ndim != 1 or edges.size < 2 or not (edges[1:] >= edges[:-1]).all() or not np.isfinite(edges).all():
            raise arguments.wrong(f"bins is {bins!r:.60}; edges are two or more finite numbers that ascend")
        if range is not None:
            raise arguments.wrong("`range` is given, and the edges of the bins too", hint="leave `range` out")
        kind = "searched"
    else:
        arguments.size("bins", bins, _range(1, 1 << 24))
        edges, kind = _edges(x, int(bins), range, prod(shape)), "uniform"
    out = arguments.output(out, x, (edges.size - 1,), s64 if weight is None else f64, x=x, weights=weights)
    _count(kind, x, weights, edges, out)
    return out, edges


_range = range


def bincount(x: Any, weights: Any = None, *, minlength: int = 0, out: Any = None) -> Any:
    """How often each of 0, 1, ... occurs (numpy.bincount).

    Args:
        x: Any shape, taken as flat; integers from 0 on.
        weights: As of :func:`histogram`.
        minlength: The least length of the result, which is one more than the greatest element.
        out: ``[length]`` of int64, with weights float64. If it is given, its length is the result's, elements beyond it
            count nowhere, and the host waits for nothing; else it looks for the least and the greatest element.

    >>> bincount(np.array([1, 5, 1, 0], np.uint8))
    array([1, 2, 0, 0, 0, 1])
    """
    shape = arguments.expect_array("x", x, list(arguments.INTEGERS))
    weight = _weight(weights, shape)
    length = arguments.size("minlength", minlength, _range(1 << 31))
    if out is None:
        if prod(shape):
            least = reduce.min(x).item()
            if least < 0:
                raise arguments.wrong(f"`x` has {least}; wanted are integers from 0 on")
            length = max(length, reduce.max(x).item() + 1)
        arguments.size("the number of bins", length, _range(1 << 31))
    else:
        (length,) = arguments.expect("out", out, ["length"], ["int64" if weight is None else "float64"])
    out = arguments.output(out, x, (length,), s64 if weight is None else f64, x=x, weights=weights)
    _count("integer", x, weights, np.zeros(1), out)
    return out


# ---------------------------------------------------------------------------------------------------------------------


def _weight(weights: Any, shape: tuple[int, ...]) -> Any:
    if weights is None:
        return None
    weights = arguments.dense(weights) if hasattr(weights, "shape") else weights
    arguments.expect("weights", weights, list(shape), list(arguments.FLOATS))
    return arguments.floating("weights", weights)


def _edges(x: Any, bins: int, reach: tuple[float, float] | None, size: int) -> Any:
    """The edges of bins of equal width, as numpy has them."""
    if reach is None:
        low, high = (float(reduce.min(x).item()), float(reduce.max(x).item())) if size else (0.0, 1.0)
        if not isfinite(low) or not isfinite(high):
            raise arguments.wrong(f"`x` reaches from {low} to {high}", hint="give a finite `range`")
    else:
        low, high = (arguments.number("range", end) for end in reach)
        if low > high:
            raise arguments.wrong(f"range is {reach!r:.60}; its first number must not be greater than its second")
    return np.histogram_bin_edges(np.zeros(0), bins, (low, high))


def _count(kind: str, x: Any, weights: Any, edges: Any, out: Any) -> None:
    n, bins = prod(x.shape), int(out.shape[0])
    if not bins:
        return
    zero_kernel(s64 if weights is None else f64)[cdiv(bins, THREADS), THREADS](out, bins)
    if not n:
        return
    x, dtype = arguments.dense(x), arguments.scalar_type("x", x)
    weight = None if weights is None else arguments.floating("weights", weights)
    weights = x if weights is None else arguments.dense(weights)
    least = max(_CHUNK_BYTES // dtype.bytes, 4 * bins)
    chunk = max(cdiv(n, _MAX_BLOCKS), least)
    kernel = count_kernel(kind, dtype, weight, bins <= SHARED_BINS)
    kernel[cdiv(n, chunk), THREADS](x, weights, edges, out, n, chunk, bins)
