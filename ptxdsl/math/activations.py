"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from ..language import ptx
from ..types import KernelOperand, f32, f64
from .exponential import exp
from .functions import fma_rn, function_of
from .special import erf


@function_of(f32, f64)
def sigmoid(x: Any) -> KernelOperand:
    """``1 / (1 + exp(-x))``, to 3 units in the last place; in f32 0 below -88.7, where it is less than 2^-127."""
    return ptx[f"rcp.rn.{x.type}"](exp(-x) + 1.0)


@function_of(f32)
def sigmoid_approx(x: Any) -> KernelOperand:
    """``1 / (1 + exp(-x))`` by ``ex2.approx`` and ``rcp.approx``: relative error at most ``2^-21 + |x| * 2^-23``."""
    # A power that is denormal adds nothing to 1: as 0 it takes no instructions beside the one.
    return ptx.rcp.approx.f32(ptx.ex2.approx.ftz.f32(x * -math.log2(math.e)) + 1.0)


@function_of(f32, f64)
def silu(x: Any) -> KernelOperand:
    """``x * sigmoid(x)``, to 4 units in the last place."""
    return x * sigmoid(x)


@function_of(f32)
def silu_approx(x: Any) -> KernelOperand:
    """``x * sigmoid_approx(x)``."""
    return x * sigmoid_approx(x)


@function_of(f32, f64)
def gelu(x: Any) -> KernelOperand:
    """``x/2 * (1 + erf(x / sqrt(2)))``: absolute error at most 1 ulp of ``max(1, |x|)``."""
    return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)


@function_of(f32, f64)
def gelu_tanh(x: Any) -> KernelOperand:
    """The usual approximation of `gelu` by a tanh: ``x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))``."""
    inner = x * fma_rn(x * x, 0.044715 * 2 * math.sqrt(2 / math.pi), 2 * math.sqrt(2 / math.pi))
    return x * sigmoid(inner)
