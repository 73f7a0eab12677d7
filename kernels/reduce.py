"""Reductions: sums, extremes and where they are, means and norms, of a whole array or along axes.

What is reduced is read once. Large arrays are split over blocks, which write what they have reduced, and a second
kernel combines that; no atomics take part, so that the same array gives the same bits each time.
"""

from __future__ import annotations

from typing import Any

from . import arguments
from .autograd import differentiable
from .reduce_gradients import extreme_gradient, mean_gradient, norm_gradient, prod_gradient, sum_gradient
from .reduce_launches import Axis, reduced

__all__ = [
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "max_backward", "mean", "min", "min_backward", "norm",
    "norm_backward", "prod", "prod_backward", "sum",
]

@differentiable("x", backward=sum_gradient)
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
    return reduced("sum", x, axis, keepdims, out)


def prod_backward(grad_out: Any, x: Any, axis: Axis = None) -> Any:
    """The gradient of :func:`prod` in x: of each element the product of the others, exact where one or more are 0.

    Args:
        grad_out: That of the result, of x's dtype, with the reduced axes or without them.
        x: As of :func:`prod`, floats.
        axis: As of :func:`prod`.

    >>> import numpy as np
    >>> prod_backward(np.array(1.0), np.array([2.0, 0.0, 3.0]))
    array([0., 6., 0.])
    """
    return prod_gradient(grad_out, x, axis)


@differentiable("x", backward=lambda x, axis, grad_out: {"x": prod_gradient(grad_out, x, axis)})
def prod(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The product of the elements, in the types of :func:`sum`; that of nothing is 1.

    >>> import numpy as np
    >>> prod(np.array([2.0, 3.0, 4.0]))
    array(24.)
    """
    return reduced("prod", x, axis, keepdims, out)


@differentiable("x", backward=mean_gradient)
def mean(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The sum divided by the number of elements; of integers a float64. That of nothing is NaN.

    >>> import numpy as np
    >>> mean(np.array([[1, 2], [3, 5]]), axis=1)
    array([1.5, 4. ])
    """
    return reduced("mean", x, axis, keepdims, out)


def max_backward(grad_out: Any, x: Any, out: Any, axis: Axis = None) -> Any:
    """The gradient of ``out = max(x, axis)`` in x: equal extremes have equal shares, as those of torch.amax.

    Args:
        grad_out: That of ``out``, of x's dtype, with the reduced axes or without them.
        x: As of :func:`max`, floats.
        out: What :func:`max` gave. Where it is a NaN the NaNs have the gradient.
        axis: As of :func:`max`.

    >>> import numpy as np
    >>> x = np.array([[1.0, 4.0, 4.0], [3.0, 2.0, 1.0]])
    >>> max_backward(np.array([1.0, 10.0]), x, max(x, 1), 1)
    array([[ 0. ,  0.5,  0.5],
           [10. ,  0. ,  0. ]])
    """
    return extreme_gradient(grad_out, x, out, axis)


_extreme = differentiable("x", backward=lambda x, out, axis, grad_out: {"x": extreme_gradient(grad_out, x, out, axis)})


@_extreme
def max(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The greatest element, of x's dtype; a NaN where there is one. LaunchError where nothing is reduced.

    >>> import numpy as np
    >>> max(np.array([[1.0, np.nan], [3.0, 5.0]]), axis=1)
    array([nan,  5.])
    """
    return reduced("max", x, axis, keepdims, out)


def min_backward(grad_out: Any, x: Any, out: Any, axis: Axis = None) -> Any:
    """The gradient of ``out = min(x, axis)`` in x, as :func:`max_backward`."""
    return extreme_gradient(grad_out, x, out, axis)


@_extreme
def min(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """The least element, as :func:`max`.

    >>> import numpy as np
    >>> min(np.array([3, 1, 2], np.int16))
    array(1, dtype=int16)
    """
    return reduced("min", x, axis, keepdims, out)


def argmax(x: Any, axis: int | None = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Where the greatest element is: the first of equal ones, the first NaN where there is one, as an int64.

    With ``axis=None`` it is the place in the flattened array.

    >>> import numpy as np
    >>> argmax(np.array([[1, 7, 7], [9, 0, 9]]), axis=1)
    array([1, 0])
    """
    return reduced("argmax", x, axis, keepdims, out)


def argmin(x: Any, axis: int | None = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Where the least element is, as :func:`argmax`.

    >>> import numpy as np
    >>> argmin(np.array([2.0, np.nan, 1.0]))
    array(1)
    """
    return reduced("argmin", x, axis, keepdims, out)


def any(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Whether one of the elements is not 0, as a bool; NaNs are not 0.

    >>> import numpy as np
    >>> any(np.zeros((2, 3), bool), axis=0)
    array([False, False, False])
    """
    return reduced("any", x, axis, keepdims, out)


def all(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """Whether none of the elements is 0, as a bool.

    >>> import numpy as np
    >>> all(np.array([[1, 0], [2, 3]]), axis=1)
    array([False,  True])
    """
    return reduced("all", x, axis, keepdims, out)


def count_nonzero(x: Any, axis: Axis = None, *, keepdims: bool = False, out: Any = None) -> Any:
    """How many elements are not 0, as an int64.

    >>> import numpy as np
    >>> count_nonzero(np.array([0.0, 2.0, np.nan]))
    array(2)
    """
    return reduced("count_nonzero", x, axis, keepdims, out)


def norm_backward(grad_out: Any, x: Any, out: Any, ord: float = 2, axis: Axis = None) -> Any:
    """The gradient of ``out = norm(x, ord, axis)`` in x; 0 where all elements are 0.

    Of ord 1 it is the signs, of 2 ``x / out``, and of infinity the greatest magnitudes share it evenly.

    >>> import numpy as np
    >>> x = np.array([3.0, -4.0])
    >>> norm_backward(np.array(5.0), x, norm(x)), norm_backward(np.array(5.0), x, norm(x, 1), 1)
    (array([ 3., -4.]), array([ 5., -5.]))
    """
    return norm_gradient(grad_out, x, out, _known(ord), axis)


def _norm_slopes(x: Any, out: Any, ord: float, axis: Axis, grad_out: Any) -> dict[str, Any]:
    return {"x": norm_backward(grad_out, x, out, ord, axis)}


@differentiable("x", backward=_norm_slopes)
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
    return reduced(_known(ord), x, axis, keepdims, out)


def _known(ord: float) -> str:
    names = {1: "l1", 2: "l2", float("inf"): "largest"}
    if isinstance(ord, bool) or ord not in names:
        raise arguments.wrong(f"ord is {ord!r:.60}; it can be 1, 2 or infinity")
    return names[ord]
