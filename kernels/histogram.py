"""Histograms: how many elements lie in each bin, or the sum of their weights."""

from __future__ import annotations

from math import isfinite, prod
from typing import Any

import numpy as np

from .. import cdiv, f64, processors, s64

from . import arguments, histogram_bytes, reduce, storage
from .histogram_kernels import RESIDENT, THREADS, count_kernel, place_of, zero_kernel

__all__ = ["bincount", "histogram"]

_CHUNK_BYTES = 1 << 17
_SPANS = 2.0**-960, 2.0**960
"""Between these from the first edge to the last, the bins by that distance are a number with all its digits."""


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
        count, reach = edges.size - 1, None
    else:
        count, reach = arguments.size("bins", bins, _range(1, 1 << 24)), None if range is None else _reach(range)
    out = arguments.output(out, x, (count,), s64 if weight is None else f64, x=x, weights=weights)
    values, kind = _values(x, weight), "searched"
    if not np.ndim(bins):
        edges = np.histogram_bin_edges(np.zeros(0), count, reach or _occurring(x, values))
        kind = "uniform" if _SPANS[0] < edges[-1] - edges[0] < _SPANS[1] else "searched"
    _count(kind, x, values, weights, edges, out)
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
    if out is not None:
        (length,) = arguments.expect("out", out, ["length"], ["int64" if weight is None else "float64"])
        arguments.expect_output(out, x=x, weights=weights)
    values = _values(x, weight)
    if out is None:
        if prod(shape):
            least, most = _ends(x, values)
            if least < 0:
                raise arguments.wrong(f"`x` has {least}; wanted are integers from 0 on")
            length = max(length, most + 1)
        arguments.size("the number of bins", length, _range(1 << 31))
    out = arguments.output(out, x, (length,), s64 if weight is None else f64, x=x, weights=weights)
    _count("integer", x, values, weights, np.zeros(1), out)
    return out


# ---------------------------------------------------------------------------------------------------------------------


def _weight(weights: Any, shape: tuple[int, ...]) -> Any:
    if weights is None:
        return None
    weights = arguments.dense(weights) if hasattr(weights, "shape") else weights
    arguments.expect("weights", weights, list(shape), list(arguments.FLOATS))
    return arguments.floating("weights", weights)


def _reach(given: tuple[float, float]) -> tuple[float, float]:
    """From where to where a range reaches."""
    low, high = (arguments.number("range", end) for end in given)
    if low > high:
        raise arguments.wrong(f"range is {given!r:.60}; its first number must not be greater than its second")
    return low, high


def _occurring(x: Any, values: Any) -> tuple[float, float]:
    """The same from the least to the greatest element."""
    low, high = map(float, _ends(x, values)) if prod(x.shape) else (0.0, 1.0)
    if not isfinite(low) or not isfinite(high):
        raise arguments.wrong(f"`x` reaches from {low} to {high}", hint="give a finite `range`")
    return low, high


def _ends(x: Any, values: Any) -> tuple[Any, Any]:
    """The least and the greatest element, which the host waits for."""
    if values is None:
        return reduce.min(x).item(), reduce.max(x).item()
    reach = arguments.empty_like(x, (2,), s64)
    histogram_bytes.reach_kernel(arguments.scalar_type("x", x))[1, histogram_bytes.VALUES](values, reach)
    return reach[:1].item(), reach[1:].item()


def _values(x: Any, weight: Any) -> Any:
    """How often each value of 8 bits occurs in x; None of other types, and where weights are added up."""
    dtype, n = arguments.scalar_type("x", x), prod(x.shape)
    if dtype.bytes > 1 or weight is not None or not n:
        return None
    counts = arguments.empty_like(x, (histogram_bytes.VALUES,), s64)
    zero_kernel(s64)[1, histogram_bytes.VALUES](counts, histogram_bytes.VALUES)
    _launch("bits", x, None, np.zeros(1), counts)
    return counts


def _count(kind: str, x: Any, values: Any, weights: Any, edges: Any, out: Any) -> None:
    n, bins = prod(x.shape), int(out.shape[0])
    if not bins:
        return
    zero_kernel(s64 if weights is None else f64)[cdiv(bins, THREADS), THREADS](out, bins)
    if not n:
        return
    if values is not None:
        kernel = histogram_bytes.bins_kernel(kind, arguments.scalar_type("x", x))
        kernel[1, histogram_bytes.VALUES](values, edges, out, bins)
        return
    _launch(kind, x, weights, edges, out)


def _launch(kind: str, x: Any, weights: Any, edges: Any, out: Any) -> None:
    n, bins = prod(x.shape), int(out.shape[0])
    x, dtype = arguments.dense(x), arguments.scalar_type("x", x)
    weight = None if weights is None else arguments.floating("weights", weights)
    weights = x if weights is None else arguments.dense(weights)
    least = max(_CHUNK_BYTES // dtype.bytes, 4 * bins)
    chunk = cdiv(max(cdiv(n, RESIDENT * processors()), least), storage.BYTES) * storage.BYTES
    kernel = count_kernel(kind, dtype, weight, place_of(bins, weight))
    kernel[cdiv(n, chunk), THREADS](x, weights, edges, out, n, chunk, bins)
