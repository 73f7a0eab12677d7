"""Strategies of hypothesis for kernels: shapes, strides, dtypes, arrays with special values, and launches' grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray

from .random_arrays import float_info, random_array, special_values

__all__ = ["arrays", "blocks", "dtypes", "extents", "shapes", "strided"]


def extents(most: int = 300, least: int = 0) -> st.SearchStrategy[int]:
    """An extent at which kernels break: 0, 1, around the warp, around powers of two and multiples of 32, or any.

    >>> extents(40).filter(lambda n: n > 32).example() > 32  # doctest: +SKIP
    True
    """
    near = {base + off for base in (0, 1, 32, 64, 96, *(1 << n for n in range(16))) for off in (-1, 0, 1)}
    chosen = sorted(n for n in near if least <= n <= most)
    return st.sampled_from(chosen) | st.integers(least, most) if chosen else st.integers(least, most)


def shapes(
    ndim: int | tuple[int, int] = (1, 3), most: int = 70, least: int = 0, elements: int = 20_000
) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of so many dimensions (a number, or the least and the most), of at most so many elements."""
    low, high = (ndim, ndim) if isinstance(ndim, int) else ndim
    whole = st.lists(extents(most, least), min_size=low, max_size=high).map(tuple)
    return whole.filter(lambda shape: int(np.prod(shape, dtype=np.int64)) <= elements)


def dtypes(names: Sequence[str] = ("float16", "bfloat16", "float32", "float64")) -> st.SearchStrategy[np.dtype[Any]]:
    """One of the dtypes, which may be those of ml_dtypes."""
    import ml_dtypes

    return st.sampled_from([np.dtype(getattr(ml_dtypes, name, name)) for name in names])


def arrays(
    dtype: DTypeLike | st.SearchStrategy[Any] = np.float32, shape: Any = None, special: float = 0.05,
    nan: bool = True, infinity: bool = True,
) -> st.SearchStrategy[NDArray[Any]]:
    """Arrays as :func:`~ptxdsl.testing.random_array` makes them.

    Args:
        dtype: A dtype, or a strategy of dtypes.
        shape: A shape, or a strategy of shapes; :func:`shapes` if None.
        special: The share of special values.
        nan: Whether there may be NaN.
        infinity: Whether there may be infinities.

    hypothesis shrinks the shape and the seed, so a small failing case stays small.
    """
    of_dtype = dtype if isinstance(dtype, st.SearchStrategy) else st.just(np.dtype(dtype))
    of_shape = shape if isinstance(shape, st.SearchStrategy) else shapes() if shape is None else st.just(shape)

    def made(kind: Any, extent: Any, seed: int) -> NDArray[Any]:
        values = random_array(np.random.default_rng(seed), extent, kind, special)
        if float_info(values.dtype) is not None and not (nan and infinity):
            wide = values.astype(np.float64)
            wrong = (np.isnan(wide) & (not nan)) | (np.isinf(wide) & (not infinity))
            values[wrong] = special_values(values.dtype)[2]
        return values

    return st.builds(made, of_dtype, of_shape, st.integers(0, 2**32 - 1))


def strided(of: st.SearchStrategy[NDArray[Any]]) -> st.SearchStrategy[NDArray[Any]]:
    """The same arrays as parts of larger ones: rows further apart, and not at the beginning of their memory."""

    def part(array: NDArray[Any], before: int, gap: int) -> NDArray[Any]:
        if not array.ndim:
            return array
        whole = np.zeros((*array.shape[:-1], before + array.shape[-1] + gap), array.dtype)
        view = whole[..., before : before + array.shape[-1]]
        view[...] = array
        return view

    return st.builds(part, of, st.integers(0, 5), st.integers(0, 9))


def blocks(most: int = 256, multiple: int = 1) -> st.SearchStrategy[int]:
    """Numbers of threads of a block: around the warp, powers of two, or any; multiples of ``multiple``."""
    return extents(most // multiple, 1).map(lambda n: n * multiple)
