"""Random numbers without a state: Philox-4x32-10, uniform and normal numbers, integers, dropout.

Element i is a function of ``seed``, ``subsequence``, ``offset`` and i: of the words of the counter i // 4 + offset (two
elements of 64 bits a counter). It depends on no grid and no GPU, and is the same on the emulator. :func:`philox` gives
the words as they are: those of cuRAND's ``curandStatePhilox4_32_10_t`` from ``curand_init(seed, subsequence, 4 *
offset)`` on, and of Random123; numpy's Philox is another one (4x64).
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from .. import ScalarType, cdiv, dtype_of

from . import arguments
from .autograd import differentiable
from .random_kernels import THREADS, dropout_kernel, each, fill_kernel

__all__ = ["dropout", "integers", "normal", "philox", "uniform"]

Shape = int | tuple[int, ...]


def philox(shape: Shape | None = None, seed: int = 0, *, subsequence: int = 0, offset: int = 0, out: Any = None) -> Any:
    """Words of 32 random bits.

    Args:
        shape: An int or a tuple of ints; None takes that of ``out``.
        seed: The key, 0 to 2^64 - 1.
        subsequence: The upper half of the counter, 0 to 2^64 - 1: independent numbers of the same seed.
        offset: Where the lower half begins, 0 to 2^64 - 1; a call uses a counter for four elements.
        out: uint32, or uint64 for two words each (the first is the lower half), numpy's, torch's or a device array; a
            new numpy array of uint32 if None.

    Returns:
        ``out``.

    Raises:
        LaunchError: A number, shape or dtype that does not fit. Nothing ran.

    >>> [f"{word:08x}" for word in philox(4)]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    out = _output(shape, out, ["uint32", "uint64"], "uint32")
    return _fill("philox", out, seed, subsequence, offset, 0, 0)


def uniform(
    shape: Shape | None = None, seed: int = 0, *, low: float = 0.0, high: float = 1.0, dtype: Any = None,
    subsequence: int = 0, offset: int = 0, out: Any = None,
) -> Any:
    """Numbers from low (which may occur) to high (which may occur by rounding only, and never with low = 0, high = 1).

    Args:
        low, high: Finite numbers.
        dtype: Of floats, numpy's or a type such as ``f16``; float32 if None.
        shape, seed, subsequence, offset, out: As of :func:`philox`.

    They are low + (high - low) u, with u a multiple of 2^-24 in [0, 1): 2^-53 for float64, 2^-11 for float16, 2^-8 for
    bfloat16.

    >>> float(uniform(1000, seed=1).mean().round(1))
    0.5
    """
    out = _output(shape, out, list(arguments.FLOATS), dtype or "float32")
    low, high = arguments.number("low", low), arguments.number("high", high)
    return _fill("uniform", out, seed, subsequence, offset, low, high)


def normal(
    shape: Shape | None = None, seed: int = 0, *, mean: float = 0.0, std: float = 1.0, dtype: Any = None,
    subsequence: int = 0, offset: int = 0, out: Any = None,
) -> Any:
    """Normally distributed numbers, by Box and Muller's method: two of two words (of 64 bits for float64).

    Args:
        mean: A finite number.
        std: The standard deviation, 0 or more.
        dtype, shape, seed, subsequence, offset, out: As of :func:`uniform`.

    Magnitudes reach 6.8 standard deviations (9.5 for float64).

    >>> float(normal(1000, seed=1).std().round(1))
    1.0
    """
    out = _output(shape, out, list(arguments.FLOATS), dtype or "float32")
    mean, std = arguments.number("mean", mean), arguments.number("std", std, 0)
    return _fill("normal", out, seed, subsequence, offset, mean, std)


def integers(
    shape: Shape | None = None, seed: int = 0, *, low: int = 0, high: int, dtype: Any = None, subsequence: int = 0,
    offset: int = 0, out: Any = None,
) -> Any:
    """Integers from low to high - 1: low + floor(word (high - low) / 2^32), with words of 64 bits for 64-bit dtypes.

    Args:
        low, high: Within the dtype; low < high.
        dtype: Of integers; int64 if None.
        shape, seed, subsequence, offset, out: As of :func:`philox`.

    The probability of each is off by less than 2^-32 (2^-64).

    >>> sorted(set(integers(100, low=-1, high=2).tolist()))
    [-1, 0, 1]
    """
    out = _output(shape, out, list(arguments.INTEGERS), dtype or "int64")
    least, most = arguments.scalar_type("out", out).bounds
    first = arguments.size("low", low, range(least, most + 1))
    behind = arguments.size("high", high, range(first + 1, most + 2))
    if behind - first == 1 << 64:
        raise arguments.wrong("high - low is 2**64; it must be less", hint="`philox(out=words)` fills a uint64 array")
    return _fill("integers", out, seed, subsequence, offset, first % (1 << 64), behind - first)


def _dropout_backward(grad_out: Any, p: float, seed: int, subsequence: int, offset: int) -> dict[str, Any]:
    return {"x": dropout(grad_out.contiguous(), p, seed, subsequence=subsequence, offset=offset)}


@differentiable("x", backward=_dropout_backward)
def dropout(
    x: Any, p: float = 0.5, seed: int = 0, *, subsequence: int = 0, offset: int = 0, out: Any = None
) -> Any:
    """x / (1 - p), with each element 0 instead with probability p (torch.nn.functional.dropout).

    Args:
        x: Any shape; floats.
        p: 0 to 1; 1 gives zeros.
        seed, subsequence, offset: As of :func:`philox`. The same ones drop the same elements: the gradient is
            ``dropout`` of the incoming gradient, and no mask is kept.
        out: Of x's shape and dtype, and it may be x; a new array of x's kind if None.

    >>> dropout(np.ones(8, np.float32), 0.5, seed=3)
    array([2., 0., 2., 2., 0., 2., 0., 2.], dtype=float32)
    """
    shape = arguments.expect_array("x", x, list(arguments.FLOATS))
    dtype, p = arguments.floating("x", x), arguments.number("p", p, 0, 1)
    key = [_word(name, value) for name, value in _named(seed, subsequence, offset)]
    out = arguments.output(out, x, shape, dtype, in_place=["x"], x=x)
    n, scale = prod(shape), 0.0 if p == 1 else 1 / (1 - p)
    if n:
        kernel = dropout_kernel(dtype)[cdiv(n, 4 * THREADS), THREADS]
        kernel(arguments.dense(x), out, n, *key, round(p * 2**32), scale)
    return out


# ---------------------------------------------------------------------------------------------------------------------


def _named(seed: int, subsequence: int, offset: int) -> list[tuple[str, int]]:
    return [("seed", seed), ("subsequence", subsequence), ("offset", offset)]


def _word(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 1 << 64:
        raise arguments.wrong(f"{name} is {value!r:.60}; it can be 0 to 2**64 - 1")
    return int(value)


def _output(shape: Shape | None, out: Any, dtypes: list[str], dtype: Any) -> Any:
    """Where to put the numbers: ``out``, or a new numpy array."""
    if out is not None:
        found = arguments.expect_array("out", out, dtypes)
        arguments.expect("out", out, found if shape is None else _extents(shape), dtypes)
        arguments.expect_output(out)
        return out
    if shape is None:
        raise arguments.wrong("neither `shape` nor `out` is given", hint="give one of them")
    extents = _extents(shape)
    try:
        kind = dtype_of(dtype) if isinstance(dtype, ScalarType) else np.dtype(dtype)
    except TypeError:
        kind = None
    if kind is None or kind.name not in dtypes:
        got = f"{dtype!r:.60}" if kind is None else kind.name
        raise arguments.wrong(f"dtype is {got}; wanted is {' or '.join(dtypes)}")
    return np.empty(extents, kind)


def _extents(shape: Shape) -> tuple[int, ...]:
    """The shape as a tuple of ints."""
    if not isinstance(shape, (int, np.integer, tuple, list)):
        raise arguments.wrong(f"`shape` is {shape!r:.60}, not an int or a tuple of ints")
    extents = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(arguments.size("an extent of `shape`", extent, range(1 << 48)) for extent in extents)


def _fill(kind: str, out: Any, seed: int, subsequence: int, offset: int, a: float, b: float) -> Any:
    dtype, n = arguments.scalar_type("out", out), prod(out.shape)
    key = [_word(name, value) for name, value in _named(seed, subsequence, offset)]
    if n:
        fill_kernel(kind, dtype)[cdiv(n, each(dtype) * THREADS), THREADS](out, n, *key, a, b)
    return out
