"""The online softmax: a state that takes scores one after the other, and states that merge.

A state is the largest score so far, the sum of the weights exp(score - largest), and the sum of the values so weighted
(Milakov & Gimelshein 2018). It is rescaled when a larger score comes; merging two states does the same. ``acc`` is the
type of all three, f32 or f64.
"""

from __future__ import annotations

from math import e, inf, log2
from typing import Any

from .. import ScalarType, f64, maximum, ptx, select
from .. import math as ptxmath

__all__ = ["exp", "finite", "fma", "inverse", "merge", "scaled"]


def fma(acc: ScalarType, a: Any, b: Any, c: Any, out: Any = None) -> Any:
    """a * b + c, rounded once."""
    return (ptx.fma.rn.f64 if acc is f64 else ptx.fma.rn.f32)(a, b, c, out=out)


def scaled(acc: ScalarType, scale: Any) -> Any:
    """The factor that makes a dot product an exponent for :func:`exp`: f32 has an instruction for powers of two."""
    return scale if acc is f64 else scale * log2(e)


def exp(acc: ScalarType, x: Any) -> Any:
    """The weight of an exponent that :func:`scaled` went into."""
    return ptxmath.exp(x) if acc is f64 else ptx.ex2.approx.f32(x)


def inverse(acc: ScalarType, total: Any) -> Any:
    """1 / total, and 0 for the total of no keys at all."""
    return select(total == 0.0, 0.0, ptx.rcp.rn.f64(total) if acc is f64 else ptx.rcp.rn.f32(total))


def finite(top: Any) -> Any:
    """The largest score, or 0 where every score is -inf: exp(-inf - 0) is 0, exp(-inf + inf) would be NaN."""
    return select(top == -inf, 0.0, top)


def merge(acc: ScalarType, largest: list[Any], total: list[Any], sums: list[Any]) -> tuple[Any, Any, Any]:
    """Several states of the online softmax as one: the largest score, the total weight, the weighted sum."""
    top = largest[0]
    for other in largest[1:]:
        top = maximum(top, other)
    base = finite(top)
    shrink = [exp(acc, other - base) for other in largest]
    weight, value = total[0] * shrink[0], sums[0] * shrink[0]
    for w, v, factor in zip(total[1:], sums[1:], shrink[1:]):
        weight = fma(acc, w, factor, weight)
        value = fma(acc, v, factor, value)
    return top, weight, value
