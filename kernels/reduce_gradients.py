"""Gradients of reductions: maps over x, the result and its gradient, which are broadcast along what was reduced."""

from __future__ import annotations

from typing import Any

from .. import f32, f64, ptx, select

from . import arguments
from .elementwise.mapping import Map
from .reduce_launches import Axis, product, reduced

__all__ = [
    "EXTREMES", "OTHERS", "SHARED", "SLOPES", "extreme_gradient", "mean_gradient", "norm_gradient", "prod_gradient",
    "sum_gradient",
]


def sum_gradient(x: Any, axis: Axis, grad_out: Any) -> dict[str, Any]:
    """As torch has it: an expanded tensor, of no memory of its own."""
    axes = arguments.axes("axis", axis, x.ndim)
    return {"x": grad_out.reshape(_kept(x.shape, axes)).expand(x.shape).to(x.dtype)}


def mean_gradient(x: Any, axis: Axis, grad_out: Any) -> dict[str, Any]:
    """The same, divided by the number of elements."""
    count = product(x.shape[at] for at in arguments.axes("axis", axis, x.ndim))
    return sum_gradient(x, axis, grad_out / count)


def _is_extreme(x: Any, extreme: Any) -> Any:
    return (x == extreme) | (x != x)  # a NaN is the extreme of what it is in


def _is_largest(x: Any, largest: Any) -> Any:
    return _is_extreme(abs(x), largest)


def _divided(a: Any, b: Any) -> Any:
    return ptx[f"div.rn.{a.type}"](a, b)


def _sign(x: Any) -> Any:
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x))  # of 0 and NaNs themselves


EXTREMES = Map(_is_extreme, name="reduce_is_extreme")
_LARGEST = Map(_is_largest, name="reduce_is_largest")
SHARED = Map(
    lambda x, extreme, gradient, count: select(_is_extreme(x, extreme), _divided(gradient, count.to(x.type)), 0.0),
    name="reduce_extreme_gradient",
)
_LARGEST_SHARED = Map(
    lambda x, largest, gradient, count: select(
        _is_largest(x, largest), _divided(gradient, count.to(x.type)) * _sign(x), 0.0
    ),
    name="reduce_largest_gradient",
)
_SIGNED = Map(lambda x, gradient: _sign(x) * gradient, name="reduce_l1_gradient")
SLOPES = Map(
    lambda x, norm, gradient: select(norm == 0.0, 0.0, _divided(x, norm) * gradient), name="reduce_l2_gradient"
)
_FACTORS = Map(lambda x: select(x == 0.0, 1.0, x), name="reduce_factors")
def _others(x: Any, rest: Any, zeros: Any, gradient: Any) -> Any:
    """The product of the others, from that of all that is not 0, times the gradient."""
    of_zeros = select((zeros == 1) & (x == 0.0), rest, 0.0)
    return select(zeros == 0, _divided(rest, x.to(rest.type)), of_zeros) * gradient.to(rest.type)


_ZEROS = Map(lambda x: x == 0.0, name="reduce_zeros")
OTHERS = Map(_others, name="reduce_prod_gradient")


def extreme_gradient(grad_out: Any, x: Any, out: Any, axis: Axis) -> Any:
    """The gradient of a maximum or minimum, shared evenly among equal ones."""
    kept, gradient, extreme = _arguments(x, axis, grad_out=grad_out, out=out)
    if not product(x.shape):
        return arguments.empty_like(x, tuple(x.shape), arguments.floating("x", x))
    return SHARED(x, extreme, gradient, _counted(EXTREMES(x, extreme), axis, kept))


def norm_gradient(grad_out: Any, x: Any, out: Any, name: str, axis: Axis) -> Any:
    """The gradient of a norm, by the name of its reduction."""
    kept, gradient, norm = _arguments(x, axis, grad_out=grad_out, out=out)
    if name == "l1":
        return _SIGNED(x, gradient)
    if name == "l2":
        return SLOPES(x, norm, gradient)
    if not product(x.shape):
        return arguments.empty_like(x, tuple(x.shape), arguments.floating("x", x))
    return _LARGEST_SHARED(x, norm, gradient, _counted(_LARGEST(x, norm), axis, kept))


def prod_gradient(grad_out: Any, x: Any, axis: Axis) -> Any:
    """The gradient of a product: of each element that of the others."""
    kept, gradient = _arguments(x, axis, grad_out=grad_out)
    dtype = arguments.floating("x", x)
    others = reduced("prod", _FACTORS(x, dtype=f64 if dtype is f64 else f32), axis).reshape(kept)
    return OTHERS(x, others, _counted(_ZEROS(x), axis, kept), gradient, dtype=dtype)


def _counted(x: Any, axis: Axis, kept: tuple[int, ...]) -> Any:
    return reduced("count_nonzero", x, axis).reshape(kept)


def _kept(shape: Any, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the reduced axes as 1."""
    return tuple(1 if at in axes else int(n) for at, n in enumerate(shape))


def _arguments(x: Any, axis: Axis, **results: Any) -> tuple[Any, ...]:
    """The shape of results whose reduced axes stay, and the results in it, if they fit x."""
    shape = arguments.expect_array("x", x, arguments.FLOATS)
    axes = arguments.axes("axis", axis, len(shape))
    kept = _kept(shape, axes)
    short = tuple(n for at, n in enumerate(shape) if at not in axes)
    for name, array in results.items():
        found = arguments.expect_array(name, array, [arguments.dtype_name(x)])
        if found not in (kept, short):
            raise arguments.wrong(f"`{name}` has shape {list(found)}; wanted is {list(short)} or {list(kept)}")
    return kept, *(array.reshape(kept) for array in results.values())
