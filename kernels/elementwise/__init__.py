"""Elementwise functions: ``map`` makes one of any Python function over Values, the others are made so.

All take numpy, torch, CuPy and device arrays of any shape and strides, broadcast them by numpy's rules, and have an
``out``, which may be an operand. float16 and bfloat16 are computed in float32 and rounded once.
"""

from .activations import (
    geglu, geglu_backward, gelu, gelu_backward, leaky_relu, leaky_relu_backward, relu, relu_backward, sigmoid,
    sigmoid_backward, silu, silu_backward, softplus, softplus_backward, swiglu, swiglu_backward, tanh, tanh_backward,
)
from .arithmetic import add, cast, clamp, div, mul, residual_add, scale, sub, where
from .mapping import Map, map  # noqa: A004

__all__ = [
    "Map", "add", "cast", "clamp", "div", "geglu", "geglu_backward", "gelu", "gelu_backward", "leaky_relu",
    "leaky_relu_backward", "map", "mul", "relu", "relu_backward", "residual_add", "scale", "sigmoid",
    "sigmoid_backward", "silu", "silu_backward", "softplus", "softplus_backward", "sub", "swiglu", "swiglu_backward",
    "tanh", "tanh_backward", "where",
]
