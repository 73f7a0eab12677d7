"""Inverse trigonometric functions."""

from __future__ import annotations

import math
from typing import Any

from ..language import ptx, select
from ..types import KernelOperand, f32, f64
from .functions import fma_rn, function_of, has_sign, is_nan, polynomial, quotient, values

_PI = {f32: (3.1415927410125732, -8.742277657347586e-08), f64: (math.pi, 1.2246467991473532e-16)}
"""pi as the sum of two."""
_ASIN = {
    f32: (0.04223085939884186, 0.024148281663656235, 0.045474935322999954, 0.07495281100273132, 0.16666752099990845),
    f64: (
        0.03261385753483145, -0.020957012946162316, 0.021663163364064167, 0.0037313839299707345, 0.010771584285009338,
        0.011400886190260076, 0.013980517288608052, 0.01735164359419215, 0.02237221279185026, 0.030381942805937017,
        0.0446428571719865, 0.07499999999974459, 0.1666666666666674,
    ),
}
"""(asin(x) - x) / x^3 in x^2 for |x| < 1/2."""
_ATAN = {
    f32: (
        -0.0018038429552689195, 0.010968567803502083, -0.03129386156797409, 0.058089692145586014, -0.08412082493305206,
        0.10955450683832169, -0.14264923334121704, 0.19998617470264435, -0.33333301544189453,
    ),
    f64: (
        1.3590451444192254e-05, -0.00015582526633154583, 0.0008483239646936506, -0.0029333382079663717,
        0.007291190304012978, -0.014035330751447245, 0.02212924461785426, -0.030022646636424583, 0.03671778343080786,
        -0.04222958463411881, 0.047237892103961315, -0.05253959563775608, 0.058806293323578354, -0.0666642163671564,
        0.07692282070561815, -0.09090907202938475, 0.11111111018993211, -0.14285714283013656, 0.19999999999959908,
        -0.33333333333333126,
    ),
}
"""(atan(x) - x) / x^3 in x^2 for |x| < 1."""


def _near_one(size: Any) -> Any:
    """asin(sqrt((1 - size) / 2)) for a ``size`` from 1/2 to 1: half of acos(size)."""
    square = fma_rn(size, -0.5, 0.5)
    root = ptx[f"sqrt.rn.{size.type}"](square)
    error = select(root > 0.0, quotient(fma_rn(-root, root, square), root + root), 0.0)
    return root + fma_rn(root * square, polynomial(square, *_ASIN[size.type]), error)


@function_of(f32, f64)
def asin(x: Any) -> KernelOperand:
    """The arc sine in radians, to 2 ulp; NaN beyond 1 and -1."""
    size, square = abs(x), x * x
    small = fma_rn(size * square, polynomial(square, *_ASIN[x.type]), size)
    high, low = _PI[x.type]
    large = fma_rn(_near_one(size), -2.0, low * 0.5) + high * 0.5
    return ptx[f"copysign.{x.type}"](x, select(size < 0.5, small, large))


@function_of(f32, f64)
def acos(x: Any) -> KernelOperand:
    """The arc cosine in radians, to 2 ulp; NaN beyond 1 and -1."""
    size, square = abs(x), x * x
    high, low = _PI[x.type]
    rest = fma_rn(x * square, polynomial(square, *_ASIN[x.type]), x)
    small = high * 0.5 - (rest - low * 0.5)
    large = _near_one(size) * 2.0
    return select(size < 0.5, small, select(x < 0.0, high - (large - low), large))


@function_of(f32, f64)
def atan(x: Any) -> KernelOperand:
    """The arc tangent in radians, to 2 ulp."""
    size = abs(x)
    return ptx[f"copysign.{x.type}"](x, _angle(size, 1.0, size > 1.0))


@function_of(f32, f64)
def atan2(y: Any, x: Any) -> KernelOperand:
    """The angle of the point (x, y) in radians, from -pi to pi, to 2 ulp; signed zeros and infinities as in C."""
    y, x = values(y, x)
    width, height = abs(x), abs(y)
    angle = _angle(height, width, height > width)
    high, low = _PI[x.type]
    angle = select(has_sign(x), high - (angle - low), angle)
    return select(is_nan(x) | is_nan(y), math.nan, ptx[f"copysign.{x.type}"](y, angle))


def _angle(height: Any, width: Any, steep: Any) -> Any:
    """atan(height / width), of sizes."""
    kind = height.type
    small, large = select(steep, width, height), select(steep, height, width)
    ratio = quotient(small, large)
    ratio = select(large == 0.0, 0.0, select(small == math.inf, 1.0, ratio))
    square = ratio * ratio
    angle = fma_rn(ratio * square, polynomial(square, *_ATAN[kind]), ratio)
    high, low = _PI[kind]
    return select(steep, high * 0.5 - (angle - low * 0.5), angle)
