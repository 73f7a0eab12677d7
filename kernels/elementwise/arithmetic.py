"""Ready functions of :func:`map`: sums, products, choices and conversions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import ScalarType, e4m3, e5m2, ptx, select
from ... import math as ptxmath
from .. import arguments
from ..autograd import differentiable
from .mapping import Map

__all__ = ["add", "cast", "clamp", "div", "mul", "residual_add", "scale", "sub", "where"]


def _quotient(x: Any, y: Any) -> Any:
    """Correctly rounded; of integers towards zero, as C has it."""
    return ptx[f"div.rn.{x.type}"](x, y) if x.type.kind == "f" else ptx[f"div.{x.type}"](x, y)


ADD = Map(lambda x, y: x + y, promote=True, name="add")
SUB = Map(lambda x, y: x - y, promote=True, name="sub")
MUL = Map(lambda x, y: x * y, promote=True, name="mul")
DIV = Map(_quotient, promote=True, name="div")
WHERE = Map(select, promote=True, name="where")
SCALE_ADD = Map(lambda x, y, factor: ptxmath.fma(factor, y, x), promote=True, name="residual_add")
CAST = Map(lambda x: x, name="cast")


def _numbers(**operands: Any) -> dict[str, Any]:
    """The operands, if none is an array of bools; a Python bool is 0 or 1."""
    for name, value in operands.items():
        if hasattr(value, "shape") and arguments.dtype_name(value) == "bool":
            raise arguments.wrong(f"`{name}` has dtype bool; wanted are numbers", hint=f"`cast({name}, ptxdsl.s32)`")
    return {name: int(value) if isinstance(value, bool) else value for name, value in operands.items()}


def like(gradient: Any, x: Any) -> Any:
    """A gradient of a broadcast tensor, summed over what it was broadcast along."""
    return gradient.sum_to_size(x.shape).to(x.dtype)


def _gradients(needs: frozenset[str], **pairs: tuple[Any, Any]) -> Mapping[str, Any]:
    """Of name=(gradient, argument) those that are needed."""
    return {name: like(gradient(), x) for name, (gradient, x) in pairs.items() if name in needs}


def _add_backward(x: Any, y: Any, grad_out: Any, needs: frozenset[str]) -> Mapping[str, Any]:
    return _gradients(needs, x=(lambda: grad_out, x), y=(lambda: grad_out, y))


@differentiable("x", "y", backward=_add_backward)
def add(x: Any, y: Any, *, out: Any = None) -> Any:
    """x + y of arrays, or of an array and a number; integers wrap.

    >>> import numpy as np
    >>> add(np.arange(3, dtype=np.float16), 0.5)
    array([0.5, 1.5, 2.5], dtype=float16)
    """
    return ADD.launch(_numbers(x=x, y=y), out=out)


def _sub_backward(x: Any, y: Any, grad_out: Any, needs: frozenset[str]) -> Mapping[str, Any]:
    return _gradients(needs, x=(lambda: grad_out, x), y=(lambda: -grad_out, y))


@differentiable("x", "y", backward=_sub_backward)
def sub(x: Any, y: Any, *, out: Any = None) -> Any:
    """x - y, as :func:`add`."""
    return SUB.launch(_numbers(x=x, y=y), out=out)


def _mul_backward(x: Any, y: Any, grad_out: Any, needs: frozenset[str]) -> Mapping[str, Any]:
    return _gradients(needs, x=(lambda: mul(grad_out, y), x), y=(lambda: mul(grad_out, x), y))


@differentiable("x", "y", backward=_mul_backward)
def mul(x: Any, y: Any, *, out: Any = None) -> Any:
    """x y, as :func:`add`."""
    return MUL.launch(_numbers(x=x, y=y), out=out)


def _div_backward(x: Any, y: Any, grad_out: Any, needs: frozenset[str]) -> Mapping[str, Any]:
    return _gradients(
        needs, x=(lambda: div(grad_out, y), x), y=(lambda: mul(mul(grad_out, -1.0), div(div(x, y), y)), y)
    )


@differentiable("x", "y", backward=_div_backward)
def div(x: Any, y: Any, *, out: Any = None) -> Any:
    """x / y, correctly rounded; of integers towards zero. Otherwise as :func:`add`.

    >>> import numpy as np
    >>> div(np.array([7, -7], np.int32), 2)
    array([ 3, -3], dtype=int32)
    """
    return DIV.launch(_numbers(x=x, y=y), out=out)


def _residual_backward(x: Any, residual: Any, factor: float, grad_out: Any, needs: frozenset[str]) -> Any:
    return _gradients(needs, x=(lambda: mul(grad_out, factor), x), residual=(lambda: grad_out, residual))


@differentiable("x", "residual", backward=_residual_backward)
def residual_add(x: Any, residual: Any, factor: float = 1.0, *, out: Any = None) -> Any:
    """residual + factor x, of floating-point arrays, rounded once.

    >>> import numpy as np
    >>> residual_add(np.ones(2, np.float32), np.arange(2, dtype=np.float32), 0.5)
    array([0.5, 1.5], dtype=float32)
    """
    for name, array in (("x", x), ("residual", residual)):
        arguments.expect_array(name, array, arguments.FLOATS)
    factor = arguments.number("factor", factor)
    return SCALE_ADD.launch({"residual": residual, "x": x, "factor": factor}, out=out)


def _scale_backward(factor: float, grad_out: Any) -> Mapping[str, Any]:
    return {"x": mul(grad_out, factor)}


@differentiable("x", backward=_scale_backward)
def scale(x: Any, factor: float, *, out: Any = None) -> Any:
    """factor x, by a number.

    >>> import numpy as np
    >>> scale(np.arange(3, dtype=np.float32), 0.5)
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return MUL.launch({"x": x, "factor": arguments.number("factor", factor)}, out=out)


def _where_backward(condition: Any, x: Any, y: Any, grad_out: Any, needs: frozenset[str]) -> Mapping[str, Any]:
    return _gradients(
        needs, x=(lambda: where(condition, grad_out, 0.0), x), y=(lambda: where(condition, 0.0, grad_out), y)
    )


@differentiable("x", "y", backward=_where_backward)
def where(condition: Any, x: Any, y: Any, *, out: Any = None) -> Any:
    """x where ``condition``, an array of bool, is true, else y; all three are broadcast, x or y may be a number.

    >>> import numpy as np
    >>> x = np.array([-1.0, 2.0])
    >>> where(x > 0, x, 0.0)
    array([0., 2.])
    """
    arguments.expect_array("condition", condition, ["bool"])
    return WHERE.launch({"condition": condition, "x": x, "y": y}, out=out)


def _bounded(low: bool, high: bool) -> Map:
    """NaNs stay; where the lower bound is above the upper one, that is the result."""

    def clamped(x: Any, *bounds: Any) -> Any:
        if low:
            x = select(x < bounds[0], bounds[0], x)
        return select(x > bounds[-1], bounds[-1], x) if high else x

    return Map(clamped, promote=True, name="clamp")


CLAMPS = {(low, high): _bounded(low, high) for low, high in ((True, False), (False, True), (True, True))}


def _clamp_backward(x: Any, min: Any, max: Any, grad_out: Any) -> Mapping[str, Any]:  # noqa: A002 -- as torch has it
    inside = (x >= min if min is not None else True) & (x <= max if max is not None else True)
    return {"x": where(inside, grad_out, 0.0)}


@differentiable("x", backward=_clamp_backward)
def clamp(x: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:  # noqa: A002 -- as torch has it
    """x, but ``min`` where it is less and ``max`` where it is more: numbers or arrays, or None for no bound.

    NaNs stay. A gradient goes to x alone.

    >>> import numpy as np
    >>> clamp(np.array([-3, 1, 7]), 0, 5)
    array([0, 1, 5])
    """
    bounds = {name: bound for name, bound in (("min", min), ("max", max)) if bound is not None}
    if not bounds:
        raise arguments.wrong("`min` and `max` are None; wanted is one of them")
    return CLAMPS[min is not None, max is not None].launch({"x": x, **bounds}, out=out)


def _cast_backward(x: Any, grad_out: Any) -> Mapping[str, Any]:
    return {"x": cast(grad_out, arguments.DTYPES[arguments.dtype_name(x)])}


@differentiable("x", backward=_cast_backward)
def cast(x: Any, dtype: ScalarType, *, out: Any = None) -> Any:
    """x as another type: ``cast(x, bf16)``; ``pred`` is bool.

    Floating-point numbers are rounded to the nearest, even on a tie; integers take their low bits; from floating point
    to integers what lies beyond the type becomes its nearest number, and NaN 0.

    >>> import numpy as np
    >>> from ptxdsl import f16, s8
    >>> cast(np.array([1.5, -2.7, 300.0]), s8)
    array([   1,   -2,  127], dtype=int8)
    """
    if dtype not in arguments.DTYPES.values():
        raise arguments.wrong(f"dtype is {dtype!r:.60}; it can be a type: `ptxdsl.f16`, or `ptxdsl.pred` for bool")
    if dtype in (e4m3, e5m2):
        raise arguments.wrong(f"dtype is {dtype}; 8-bit floats are converted in pairs only, which `cast` does not do")
    return CAST.launch({"x": x}, out=out, dtype=dtype)
