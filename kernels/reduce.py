"""Reductions: sums, extremes and where they are, means and norms, of a whole array or along axes.

What is reduced is read once. Large arrays are split over blocks, which write what they have reduced, and a second
kernel combines that; no atomics take part, so that the same array gives the same bits each time.
"""

from __future__ import annotations

from builtins import min as _least
from collections.abc import Iterable
from functools import reduce as _fold
from operator import mul
from typing import Any

from .. import cdiv, s64

from . import arguments, storage
from .autograd import differentiable
from .reduce_kernels import COLUMN_LANES, THREADS, column_kernel, merge_kernel, row_kernel
from .reduce_operations import Operation, operation
from .vectors import BYTES

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "norm", "prod", "sum",
]

Axis = int | tuple[int, ...] | None
_CHUNK_BYTES = 1 << 16
"""A block reduces at least so much, where a row or column is split."""
_ENOUGH_BLOCKS = 512
"""So many blocks fill every GPU; rows and columns are not split any further."""


def _sum_gradient(x: Any, axis: Axis, keepdims: bool, grad_out: Any) -> dict[str, Any]:
    del keepdims  # the extents say it
    axes = arguments.axes("axis", axis, x.ndim)
    kept = [1 if at in axes else n for at, n in enumerate(x.shape)]
    return {"x": grad_out.reshape(kept).expand(x.shape).to(x.dtype)}


def _mean_gradient(x: Any, axis: Axis, keepdims: bool, grad_out: Any) -> dict[str, Any]:
    count = _product(x.shape[at] for at in arguments.axes("axis", axis, x.ndim))
    return _sum_gradient(x, axis, keepdims, grad_out / count)


@differentiable("x", backward=_sum_gradient)
def sum(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The sum of the elements.

    Args:
        x: Any shape; integers, floats or bools, C-contiguous as all arrays here.
        axis: An axis or a tuple of axes, which may count from the end; None is all of them.
        keepdims: Whether the axes that are reduced stay, with an extent of 1.
        out: Where to put the result; a new array of x's kind if None.

    Integers are added in 64 bits and give int64 or uint64 (bools int64), as in numpy; float16 and bfloat16 are added in
    float32 and rounded once. The sum of n floats is off by no more than (n / 512 + 64) u of the sum of their
    magnitudes, where the last axes are reduced, else (n / 8 + 64) u, with u = 2^-24 (2^-53 for float64); and by what
    the last rounding to float16 or bfloat16 takes. The sum of nothing is 0.

    Returns:
        ``out``, an array also where it has no dimensions.

    Raises:
        LaunchError: A dtype, an axis or an ``out`` that does not fit. Nothing ran.

    >>> import numpy as np
    >>> sum(np.arange(6, dtype=np.int8).reshape(2, 3), axis=0)
    array([3, 5, 7])
    """
    return _reduced("sum", x, axis, keepdims, out)


def prod(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The product of the elements, in the types of :func:`sum`; that of nothing is 1.

    >>> import numpy as np
    >>> prod(np.array([2.0, 3.0, 4.0]))
    array(24.)
    """
    return _reduced("prod", x, axis, keepdims, out)


@differentiable("x", backward=_mean_gradient)
def mean(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The sum divided by the number of elements; of integers a float64. That of nothing is NaN.

    >>> import numpy as np
    >>> mean(np.array([[1, 2], [3, 5]]), axis=1)
    array([1.5, 4. ])
    """
    return _reduced("mean", x, axis, keepdims, out)


def max(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The greatest element, of x's dtype; a NaN where there is one. LaunchError where nothing is reduced.

    >>> import numpy as np
    >>> max(np.array([[1.0, np.nan], [3.0, 5.0]]), axis=1)
    array([nan,  5.])
    """
    return _reduced("max", x, axis, keepdims, out)


def min(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The least element, as :func:`max`.

    >>> import numpy as np
    >>> min(np.array([3, 1, 2], np.int16))
    array(1, dtype=int16)
    """
    return _reduced("min", x, axis, keepdims, out)


def argmax(x: Any, axis: int | None = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Where the greatest element is: the first of equal ones, the first NaN where there is one, as an int64.

    With ``axis=None`` it is the place in the flattened array.

    >>> import numpy as np
    >>> argmax(np.array([[1, 7, 7], [9, 0, 9]]), axis=1)
    array([1, 0])
    """
    return _reduced("argmax", x, axis, keepdims, out)


def argmin(x: Any, axis: int | None = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Where the least element is, as :func:`argmax`.

    >>> import numpy as np
    >>> argmin(np.array([2.0, np.nan, 1.0]))
    array(1)
    """
    return _reduced("argmin", x, axis, keepdims, out)


def any(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Whether one of the elements is not 0, as a bool; NaNs are not 0.

    >>> import numpy as np
    >>> any(np.zeros((2, 3), bool), axis=0)
    array([False, False, False])
    """
    return _reduced("any", x, axis, keepdims, out)


def all(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Whether none of the elements is 0, as a bool.

    >>> import numpy as np
    >>> all(np.array([[1, 0], [2, 3]]), axis=1)
    array([False,  True])
    """
    return _reduced("all", x, axis, keepdims, out)


def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """How many elements are not 0, as an int64.

    >>> import numpy as np
    >>> count_nonzero(np.array([0.0, 2.0, np.nan]))
    array(2)
    """
    return _reduced("count_nonzero", x, axis, keepdims, out)


def norm(x: Any, ord: float = 2, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The norm of the elements taken as a vector, whatever the number of axes (torch.linalg.vector_norm).

    Args:
        x: As of :func:`sum`.
        ord: 1 adds up magnitudes, 2 squares of which it gives the root, infinity takes the greatest magnitude.
        axis, keepdims, out: As of :func:`sum`.

    Of integers it is a float64. Squares may overflow (float16 in float32).

    >>> import numpy as np
    >>> norm(np.array([[3.0, 4.0], [6.0, -8.0]]), axis=1)
    array([ 5., 10.])
    """
    names = {1: "l1", 2: "l2", float("inf"): "largest"}
    if isinstance(ord, bool) or ord not in names:
        raise arguments.wrong(f"ord is {ord!r:.60}; it can be 1, 2 or infinity")
    return _reduced(names[ord], x, axis, keepdims, out)


# ---------------------------------------------------------------------------------------------------------------------


def _reduced(name: str, x: Any, axis: Axis, keepdims: bool, out: Any) -> Any:
    shape = arguments.expect_array("x", x, [*storage.NUMBERS, "bool"])
    if name.startswith("arg") and isinstance(axis, (tuple, list)):
        raise arguments.wrong(f"axis is {axis!r:.60}; it can be an int, or None for all", hint="reshape `x` first")
    axes = arguments.axes("axis", axis, len(shape))
    kept = tuple(n for at, n in enumerate(shape) if at not in axes)
    if name in ("max", "min", "largest", "argmax", "argmin") and _product(kept) and not _product(shape):
        raise arguments.wrong(f"`x` has shape {list(shape)}; along no elements there is no {_SPOKEN.get(name, name)}")
    op = operation(name, arguments.scalar_type("x", x))
    if arguments.flag("keepdims", keepdims):
        kept = tuple(1 if at in axes else n for at, n in enumerate(shape))
    out = arguments.output(out, x, kept, op.result, x=x)
    if _product(kept):
        _run(op, arguments.bytes_of(arguments.dense(x)), arguments.bytes_of(out), shape, axes)
    return out


def _product(extents: Iterable[int]) -> int:
    return _fold(mul, extents, 1)


_SPOKEN = {"largest": "greatest magnitude"}


def _run(op: Operation, x: Any, out: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Axes that lie side by side are reduced together; the groups one after the other, from the last one on."""
    groups: list[list[int]] = []
    for axis in axes:
        if groups and (groups[-1][-1] == axis - 1 or set(shape[groups[-1][-1] + 1 : axis]) == {1}):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    groups = groups or [[len(shape)]]  # of no axes each element is a result
    count, left = _product(shape[axis] for axis in axes), list(shape)
    states: list[Any] | None = None
    for group in reversed(groups):
        first, end = group[0], group[-1] + 1
        extents = _product(left[:first]), _product(left[first:end]), _product(left[end:])
        del left[first:end]
        target = out if group is groups[0] else None
        if states is None:
            states = _first(op, x, *extents, target, count)
        else:
            states = _merged(op, states, *extents, target, count)


def _first(op: Operation, x: Any, outer: int, n: int, inner: int, out: Any, count: int) -> list[Any]:
    """The states of [outer, n, inner] along n; the results, if there is an ``out``."""
    row = n * op.dtype.bytes
    per = storage.per_vector(op.dtype)
    columns = per if inner % per == 0 and arguments.is_aligned(BYTES, x) else 1
    if inner == 1:
        lanes = 4 if row <= 128 else 32 if row <= 1 << 14 else THREADS
        blocks, step = cdiv(outer, THREADS // lanes), op.dtype.bytes
    else:
        lanes = COLUMN_LANES[inner <= COLUMN_LANES[1] * columns]
        groups = cdiv(inner, lanes * columns)
        blocks, step = outer * groups, lanes * columns * op.dtype.bytes
    wanted = cdiv(_ENOUGH_BLOCKS, blocks)
    chunks = _least(cdiv(n * step, _CHUNK_BYTES), wanted) or 1
    chunk = cdiv(n, chunks)
    chunks = cdiv(n, chunk) if n else 1
    finished = out is not None and chunks == 1
    values, indices = _targets(op, x, (outer, chunks, inner), out if finished else None)
    if inner == 1:
        kernel = row_kernel(op.name, op.dtype, lanes, finished)
        kernel[(blocks, chunks), THREADS](x, values, indices, outer, n, chunk, count)
    else:
        kernel = column_kernel(op.name, op.dtype, lanes, columns, finished)
        kernel[(blocks, chunks), THREADS](x, values, indices, inner, groups, n, chunk, count)
    return [values, indices] if chunks == 1 else _merged(op, [values, indices], outer, chunks, inner, out, count)


def _merged(op: Operation, states: list[Any], outer: int, n: int, inner: int, out: Any, count: int) -> list[Any]:
    """The same of states [outer, n, inner]."""
    values, indices = _targets(op, states[0], (outer, inner), out)
    lanes = THREADS if inner == 1 else 1
    kernel = merge_kernel(op.name, op.dtype, lanes, out is not None)
    kernel[cdiv(outer * inner, THREADS // lanes), THREADS](*states, values, indices, outer * inner, inner, n, count)
    return [values, indices]


def add_parts(parts: Any, out: Any) -> None:
    """Add up the first axis of ``parts``, sums as a reduction of ``out``'s dtype has them, into ``out``."""
    op = operation("sum", arguments.scalar_type("out", out))
    _merged(op, [parts, parts], 1, parts.shape[0], _product(out.shape), out, parts.shape[0])


def _targets(op: Operation, like: Any, shape: tuple[int, ...], out: Any) -> tuple[Any, Any]:
    """Where results or states go, and the indices of states; one array where there is nothing for the second."""
    values = arguments.empty_like(like, shape, op.state) if out is None else out
    return values, arguments.empty_like(like, shape, s64) if out is None and op.indexed else values
