"""Activation functions and their backward passes, as ready functions of :func:`map`.

In float32 and float64 they are those of :mod:`ptxdsl.math`, to a few units in the last place; for float16 and bfloat16
those that take the special function unit, whose error in float32 is far below what is rounded away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ... import maximum, select
from ... import math as ptxmath
from .. import arguments
from ..autograd import differentiable
from .mapping import Map

__all__ = [
    "geglu", "geglu_backward", "gelu", "gelu_backward", "leaky_relu", "leaky_relu_backward", "relu", "relu_backward",
    "sigmoid", "sigmoid_backward", "silu", "silu_backward", "softplus", "softplus_backward", "swiglu",
    "swiglu_backward", "tanh", "tanh_backward",
]

_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715

Function = Callable[..., Any]


def _sigmoid(x: Any, fast: bool) -> Any:
    return ptxmath.sigmoid_approx(x) if fast else ptxmath.sigmoid(x)


def _exp(x: Any, fast: bool) -> Any:
    return ptxmath.exp_approx(x) if fast else ptxmath.exp(x)


def _relu(x: Any, _fast: bool) -> Any:
    return select(x <= 0.0, 0.0, x)


def _relu_slope(x: Any, _fast: bool) -> Any:
    return select(x > 0.0, 1.0, x * 0.0)


def _leaky_relu(x: Any, slope: Any, _fast: bool) -> Any:
    return select(x > 0.0, x, x * slope)


def _leaky_relu_slope(x: Any, slope: Any, _fast: bool) -> Any:
    return select(x > 0.0, 1.0, slope)


def _sigmoid_slope(x: Any, fast: bool) -> Any:
    s = _sigmoid(x, fast)
    return s * (1.0 - s)


def _tanh(x: Any, _fast: bool) -> Any:
    return ptxmath.tanh(x)


def _tanh_slope(x: Any, _fast: bool) -> Any:
    t = ptxmath.tanh(x)
    return ptxmath.fma(-t, t, 1.0)


def _silu(x: Any, fast: bool) -> Any:
    return x * _sigmoid(x, fast)


def _silu_slope(x: Any, fast: bool) -> Any:
    s = _sigmoid(x, fast)
    return s * ptxmath.fma(x, 1.0 - s, 1.0)


def _gelu(x: Any, _fast: bool) -> Any:
    return ptxmath.gelu(x)


def _gelu_slope(x: Any, fast: bool) -> Any:
    """Phi(x) + x phi(x), of the normal distribution."""
    phi = _exp(x * x * -0.5, fast) * (1 / math.sqrt(2 * math.pi))
    return ptxmath.fma(x, phi, ptxmath.fma(ptxmath.erf(x * math.sqrt(0.5)), 0.5, 0.5))


def _inner(x: Any) -> Any:
    """Twice the argument of the tanh, which makes it a sigmoid's."""
    return x * ptxmath.fma(x * x, 2 * _ROOT * _CUBIC, 2 * _ROOT)


def _gelu_tanh(x: Any, fast: bool) -> Any:
    return x * _sigmoid(_inner(x), fast)


def _gelu_tanh_slope(x: Any, fast: bool) -> Any:
    s = _sigmoid(_inner(x), fast)
    return s * ptxmath.fma(x * ptxmath.fma(x * x, 6 * _ROOT * _CUBIC, 2 * _ROOT), 1.0 - s, 1.0)


def _softplus(x: Any, beta: Any, threshold: Any, fast: bool) -> Any:
    """log(1 + exp(t)) = max(t, 0) + log(1 + exp(-|t|)), of which nothing overflows."""
    t = x * beta
    grown = maximum(t, 0.0) + ptxmath.log1p(_exp(-ptxmath.fabs(t), fast))
    return select(t > threshold, x, select(t != t, t, grown / beta))


def _softplus_slope(x: Any, beta: Any, threshold: Any, fast: bool) -> Any:
    t = x * beta
    return select(t > threshold, 1.0, _sigmoid(t, fast))


_FORMULAS: dict[str, tuple[Function, Function]] = {
    "relu": (_relu, _relu_slope),
    "leaky_relu": (_leaky_relu, _leaky_relu_slope),
    "sigmoid": (_sigmoid, _sigmoid_slope),
    "tanh": (_tanh, _tanh_slope),
    "silu": (_silu, _silu_slope),
    "gelu": (_gelu, _gelu_slope),
    "gelu_tanh": (_gelu_tanh, _gelu_tanh_slope),
    "softplus": (_softplus, _softplus_slope),
}
"""Each function and its derivative."""


@cache
def forward(name: str, fast: bool) -> Map:
    """The map of an activation."""
    function = _FORMULAS[name][0]
    return Map(lambda *operands: function(*operands, fast), name=name, promote=True)


@cache
def backward(name: str, fast: bool) -> Map:
    """The map of a gradient and x to the gradient of x."""
    slope = _FORMULAS[name][1]
    return Map(lambda gradient, *operands: gradient * slope(*operands, fast), name=f"{name}_backward", promote=True)


@cache
def gated(name: str, fast: bool) -> Map:
    """The map of gate and up to activation(gate) up."""
    function = _FORMULAS[name][0]
    return Map(lambda gate, up: function(gate, fast) * up, name=f"{name}_gated", promote=True)


@cache
def gated_backward(name: str, fast: bool) -> Map:
    """The map of a gradient, gate and up to the gradients of both."""
    function, slope = _FORMULAS[name]

    def gradients(gradient: Any, gate: Any, up: Any) -> tuple[Any, Any]:
        return gradient * up * slope(gate, fast), gradient * function(gate, fast)

    return Map(gradients, name=f"{name}_gated_backward", promote=True)


def _narrow(*arrays: Any) -> bool:
    return all(arguments.dtype_name(array) in ("float16", "bfloat16") for array in arrays)


def _run(name: str, x: Any, out: Any, **numbers: float) -> Any:
    arguments.expect_array("x", x, arguments.FLOATS)
    return forward(name, _narrow(x)).launch({"x": x, **numbers}, out=out)


def _run_backward(name: str, grad_out: Any, x: Any, out: Any, **numbers: float) -> Any:
    for what, array in (("grad_out", grad_out), ("x", x)):
        arguments.expect_array(what, array, [arguments.dtype_name(x)] if what == "grad_out" else arguments.FLOATS)
    return backward(name, _narrow(x)).launch({"grad_out": grad_out, "x": x, **numbers}, out=out)


def relu_backward(grad_out: Any, x: Any, *, out: Any = None) -> Any:
    """The gradient of x in :func:`relu`."""
    return _run_backward("relu", grad_out, x, out)


@differentiable("x", backward=lambda x, grad_out: {"x": relu_backward(grad_out, x)})
def relu(x: Any, *, out: Any = None) -> Any:
    """max(x, 0); NaNs stay.

    >>> import numpy as np
    >>> relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    return _run("relu", x, out)


def leaky_relu_backward(grad_out: Any, x: Any, negative_slope: float = 0.01, *, out: Any = None) -> Any:
    """The gradient of x in :func:`leaky_relu`."""
    return _run_backward("leaky_relu", grad_out, x, out, slope=arguments.number("negative_slope", negative_slope))


@differentiable("x", backward=lambda x, negative_slope, grad_out: {
    "x": leaky_relu_backward(grad_out, x, negative_slope)
})
def leaky_relu(x: Any, negative_slope: float = 0.01, *, out: Any = None) -> Any:
    """x where it is positive, else ``negative_slope`` x."""
    return _run("leaky_relu", x, out, slope=arguments.number("negative_slope", negative_slope))


def sigmoid_backward(grad_out: Any, x: Any, *, out: Any = None) -> Any:
    """The gradient of x in :func:`sigmoid`."""
    return _run_backward("sigmoid", grad_out, x, out)


@differentiable("x", backward=lambda x, grad_out: {"x": sigmoid_backward(grad_out, x)})
def sigmoid(x: Any, *, out: Any = None) -> Any:
    """1 / (1 + exp(-x))."""
    return _run("sigmoid", x, out)


def tanh_backward(grad_out: Any, x: Any, *, out: Any = None) -> Any:
    """The gradient of x in :func:`tanh`."""
    return _run_backward("tanh", grad_out, x, out)


@differentiable("x", backward=lambda x, grad_out: {"x": tanh_backward(grad_out, x)})
def tanh(x: Any, *, out: Any = None) -> Any:
    """The hyperbolic tangent."""
    return _run("tanh", x, out)


def silu_backward(grad_out: Any, x: Any, *, out: Any = None) -> Any:
    """The gradient of x in :func:`silu`."""
    return _run_backward("silu", grad_out, x, out)


@differentiable("x", backward=lambda x, grad_out: {"x": silu_backward(grad_out, x)})
def silu(x: Any, *, out: Any = None) -> Any:
    """x sigmoid(x)."""
    return _run("silu", x, out)


def _gelu_name(approximate: str) -> str:
    return "gelu" if arguments.one_of("approximate", approximate, ("none", "tanh")) == "none" else "gelu_tanh"


def gelu_backward(grad_out: Any, x: Any, approximate: str = "none", *, out: Any = None) -> Any:
    """The gradient of x in :func:`gelu`."""
    return _run_backward(_gelu_name(approximate), grad_out, x, out)


@differentiable("x", backward=lambda x, approximate, grad_out: {"x": gelu_backward(grad_out, x, approximate)})
def gelu(x: Any, approximate: str = "none", *, out: Any = None) -> Any:
    """x Phi(x), with Phi of the normal distribution by erf, or approximated by a ``"tanh"`` (Hendrycks & Gimpel 2016).

    >>> import numpy as np
    >>> gelu(np.array([-1.0, 1.0])).round(4), gelu(np.array([-1.0, 1.0]), "tanh").round(4)
    (array([-0.1587,  0.8413]), array([-0.1588,  0.8412]))
    """
    return _run(_gelu_name(approximate), x, out)


def _softplus_numbers(beta: float, threshold: float) -> dict[str, float]:
    if arguments.number("beta", beta) == 0:
        raise arguments.wrong("beta is 0; it can be any other finite number")
    return {"beta": float(beta), "threshold": arguments.number("threshold", threshold)}


def softplus_backward(
    grad_out: Any, x: Any, beta: float = 1.0, threshold: float = 20.0, *, out: Any = None
) -> Any:
    """The gradient of x in :func:`softplus`."""
    return _run_backward("softplus", grad_out, x, out, **_softplus_numbers(beta, threshold))


@differentiable("x", backward=lambda x, beta, threshold, grad_out: {
    "x": softplus_backward(grad_out, x, beta, threshold)
})
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0, *, out: Any = None) -> Any:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is more than ``threshold``."""
    return _run("softplus", x, out, **_softplus_numbers(beta, threshold))


# Gated units


def _halves(gate: Any, up: Any) -> tuple[Any, Any]:
    """Gate and up; without ``up`` they are the halves of the last axis."""
    if up is not None:
        return gate, up
    shape = arguments.expect_array("gate", gate, arguments.FLOATS)
    if not shape or shape[-1] % 2:
        raise arguments.wrong(f"`gate` has shape {list(shape)}; without `up` its last extent is even: gate and up")
    half = shape[-1] // 2
    return gate[..., :half], gate[..., half:]


def _gated(name: str, gate: Any, up: Any, out: Any) -> Any:
    gate, up = _halves(gate, up)
    for what, array in (("gate", gate), ("up", up)):
        arguments.expect_array(what, array, arguments.FLOATS)
    return gated(name, _narrow(gate, up)).launch({"gate": gate, "up": up}, out=out)


def _gated_gradients(name: str, grad_out: Any, gate: Any, up: Any, out: Any) -> Any:
    """Both gradients; without ``up`` as one array."""
    packed = None
    if up is None:
        packed = arguments.empty_like(gate, tuple(gate.shape), arguments.floating("gate", gate)) if out is None else out
        out = _halves(packed, None)
    gate, up = _halves(gate, up)
    arguments.expect_array("grad_out", grad_out, arguments.FLOATS)
    found = gated_backward(name, _narrow(gate, up)).launch({"grad_out": grad_out, "gate": gate, "up": up}, out=out)
    return found if packed is None else packed


def _recorded_gradients(name: str, grad_out: Any, gate: Any, up: Any) -> Mapping[str, Any]:
    found = _gated_gradients(name, grad_out, gate, up, None)
    return {"gate": found} if up is None else dict(zip(("gate", "up"), found))


def swiglu_backward(grad_out: Any, gate: Any, up: Any = None, *, out: Any = None) -> Any:
    """The gradients of gate and up in :func:`swiglu`: a pair, or without ``up`` one array. ``out`` as well."""
    return _gated_gradients("silu", grad_out, gate, up, out)


@differentiable("gate", "up", backward=lambda gate, up, grad_out: _recorded_gradients("silu", grad_out, gate, up))
def swiglu(gate: Any, up: Any = None, *, out: Any = None) -> Any:
    """silu(gate) up (Shazeer 2020); without ``up`` of the halves of gate's last axis.

    >>> import numpy as np
    >>> swiglu(np.array([[0.0, 100.0, 2.0, 3.0]]))
    array([[  0., 300.]])
    """
    return _gated("silu", gate, up, out)


def geglu_backward(
    grad_out: Any, gate: Any, up: Any = None, approximate: str = "none", *, out: Any = None
) -> Any:
    """The gradients of gate and up in :func:`geglu`, as :func:`swiglu_backward`."""
    return _gated_gradients(_gelu_name(approximate), grad_out, gate, up, out)


@differentiable("gate", "up", backward=lambda gate, up, approximate, grad_out: _recorded_gradients(
    _gelu_name(approximate), grad_out, gate, up
))
def geglu(gate: Any, up: Any = None, approximate: str = "none", *, out: Any = None) -> Any:
    """gelu(gate) up (Shazeer 2020), as :func:`swiglu` and :func:`gelu`."""
    return _gated(_gelu_name(approximate), gate, up, out)
