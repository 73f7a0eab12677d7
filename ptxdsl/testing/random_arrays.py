"""Random arrays as tests of kernels want them: all magnitudes, and the values at which kernels break."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["float_info", "random_array", "special_values", "ulps"]


def float_info(dtype: np.dtype[Any]) -> Any:
    """numpy's ``finfo`` of a floating-point dtype, ml_dtypes' for its own; None of other dtypes."""
    if dtype.isbuiltin == 1:
        return np.finfo(dtype) if dtype.kind == "f" else None
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    try:
        return finfo(dtype)
    except ValueError:
        return None


def special_values(dtype: DTypeLike) -> NDArray[Any]:
    """The values of a dtype at which kernels break: zeros of both signs, the smallest, the largest, infinities, NaN.

    >>> special_values("float16").tolist()
    [0.0, -0.0, 1.0, -1.0, 5.960464477539063e-08, 6.103515625e-05, 65504.0, -65504.0, inf, -inf, nan]
    >>> special_values("int8").tolist()
    [0, 1, -1, 127, -128]
    """
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        values: list[Any] = [0, 1, info.max] if kind.kind == "u" else [0, 1, -1, info.max, info.min]
        return np.array(values, kind)
    floats = float_info(kind)
    if floats is None:
        raise TypeError(f"{kind} has no special values: it is no boolean, integer or floating-point dtype")
    finite = [0.0, -0.0, 1.0, -1.0, float(floats.smallest_subnormal), float(floats.tiny), float(floats.max)]
    beyond = np.array([np.inf, -np.inf, np.nan], np.float32).astype(kind)
    kept = beyond[~np.isfinite(beyond.astype(np.float32))]  # of what has neither infinities nor NaN they are numbers
    return np.concatenate([np.array([*finite, float(floats.min)], np.float64).astype(kind), kept])


def random_array(
    rng: np.random.Generator, shape: int | tuple[int, ...], dtype: DTypeLike = np.float32, special: float = 0.0
) -> NDArray[Any]:
    """A random array: floats normal, of all magnitudes in every fourth place; integers of the whole range.

    Args:
        rng: Where the numbers come from.
        shape: Of the array.
        dtype: Boolean, integer or floating-point, those of ml_dtypes too.
        special: The share of elements that are :func:`special_values`.

    >>> random_array(np.random.default_rng(), (2, 3), "float16").shape
    (2, 3)
    """
    kind = np.dtype(dtype)
    if kind.kind == "b":
        values: NDArray[Any] = rng.random(shape) < 0.5
    elif kind.kind in "iu":
        values = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
    else:
        floats = float_info(kind)
        if floats is None:
            raise TypeError(f"no random {kind}: it is no boolean, integer or floating-point dtype")
        wide = np.asarray(rng.standard_normal(shape))
        low, high = np.log2(float(floats.tiny)), np.log2(float(floats.max))
        magnitudes = np.exp2(rng.uniform(low, high, wide.shape)) * np.sign(wide)
        limit = float(floats.max)
        values = np.clip(np.where(rng.random(wide.shape) < 0.25, magnitudes, wide), -limit, limit).astype(kind)
    values = np.asarray(values)
    chosen = rng.random(values.shape) < special
    values[chosen] = rng.choice(special_values(kind), int(chosen.sum()))
    return values


def ulps(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    """How many numbers of their dtype lie between the elements of two arrays; infinite where only one is NaN.

    >>> ulps(np.float32([1, 0.0]), np.float32([1 + 2**-23, -0.0])).tolist()
    [1.0, 0.0]
    """
    if float_info(a.dtype) is None:
        return np.abs(a.astype(np.float64) - b.astype(np.float64))
    bits = np.dtype(f"i{a.dtype.itemsize}")

    def ordered(values: NDArray[Any]) -> NDArray[np.int64]:
        raw = np.ascontiguousarray(values).view(bits).astype(np.int64)
        return np.where(raw < 0, np.iinfo(bits).min - raw, raw)

    first, second = ordered(a), ordered(b)
    with np.errstate(over="ignore"):  # of opposite signs, where no difference is small
        exact = np.abs(first - second).astype(np.float64)
    rough = np.abs(first.astype(np.float64) - second.astype(np.float64))
    apart = np.where(rough < 2.0**62, exact, rough)
    nan_a, nan_b = np.isnan(a.astype(np.float64)), np.isnan(b.astype(np.float64))
    return np.where(nan_a & nan_b, 0.0, np.where(nan_a | nan_b, np.inf, apart))
