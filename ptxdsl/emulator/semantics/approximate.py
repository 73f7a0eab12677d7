"""The approximate functions: ``ex2``, ``lg2``, ``sin``, ``cos``, ``tanh``, ``rsqrt``.

PTX bounds their errors and fixes their special values, not their bits. Here they are polynomials (Chebyshev fits, the
highest error of each beside it) in vector code: a call of the host's library for each lane would cost fifty times
more. All stay well within the manual's bounds. The f16 and bf16 forms are the f32 function rounded. In f64, which PTX
has of ``rsqrt`` only and the float64 twins of numbers of all (:mod:`.float64`), they are the host's library's.
"""

from __future__ import annotations

from collections.abc import Callable

from ...isa import Form
from .lanes import Bits, Real
from . import semantics
from .floating import each, rough
from .formats import FORMATS, canonical, flush, narrow, widen
from .integer import elements

_EXP2 = (1.0, 0.6931472067028326, 0.24022650922288757, 0.05550327226670302, 0.009618056678524637,
         0.0013400428177615838, 0.0001546144469856913)
"""2**f for |f| <= 1/2: 2e-9."""
_LOG2 = (1.4426950035679822, -0.7213474682495624, 0.48091075345941253, -0.36069326813533614, 0.28790326092450147,
         -0.2391698814010418, 0.21607822552243777, -0.20586188051276055, 0.1231096846719146)
"""log2(1 + f) / f for 1 + f in [sqrt(1/2), sqrt(2)]: 5e-8."""
_SIN = (1.0, -0.16666650191222354, 0.008332009838451985, -0.000195005568237818)
"""sin(r) / r in r**2 for |r| <= pi/4: 4e-9."""
_COS = (1.0, -0.49999999599265754, 0.04166661518398301, -0.0013886572586698461, 2.437564598713959e-05)
"""cos(r) in r**2 for |r| <= pi/4: 1e-10."""
_TANH = (-0.33333213817543506, 0.13323494162011276, -0.05267516350724622, 0.016212255738452773)
"""(tanh(x) / x - 1) / x**2 in x**2 for |x| <= 5/8: 1e-6."""


def _polynomial(x: Real, coefficients: tuple[float, ...]) -> Real:
    total = x.b.number(x.bits, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total.fma(x, coefficient)
    return total


def _function(name: str, of_host: str) -> Callable[[Callable[[Real], Real]], None]:
    """Register a function of an f32 for every format it has forms in; in f64 it is that of C's library."""

    def register(function: Callable[[Real], Real]) -> None:
        @semantics(name)
        def build(form: Form, a: Bits) -> Bits:
            (value,), (layout,) = each(form, (a,))
            if layout.bits == 64:
                return value.reals().library(of_host).to_bits()
            ftz = "ftz" in form.tokens
            value = flush(value, layout) if ftz else value
            result = function(widen(value, layout))
            code = canonical(result) if layout.bits == 32 else narrow(result, layout)
            return (flush(code, layout) if ftz else code).pack(elements(form).lanes)

    return register


_SHIFTER = 1.5 * 2.0**23
"""Added to a small f32 it leaves the nearest integer in the lowest bits, without a conversion."""


def _power(exponent: Bits) -> Real:
    """2**exponent in f32, for -126 <= exponent <= 127."""
    return ((exponent + FORMATS["f32"].bias) << FORMATS["f32"].mantissa).reals()


def _exp2(x: Real) -> Real:
    """In two factors, so that a subnormal result is rounded once."""
    x = x.compare("<", -160.0).pick(-160.0, x)
    x = x.compare(">", 130.0).pick(130.0, x)
    shifted = x + _SHIFTER
    exponent = shifted.to_bits() - 0x4B400000
    whole = shifted - _SHIFTER
    half = exponent.sar(1)
    return _polynomial(x - whole, _EXP2) * _power(half) * _power(exponent - half)


@_function("ex2", "exp2")
def _ex2(x: Real) -> Real:
    return _exp2(x)


@_function("lg2", "log2")
def _lg2(x: Real) -> Real:
    tiny = x.compare("<", 2.0**-126)
    bits = tiny.pick(x * 2.0**23, x).to_bits()
    above = bits - 0x3F3504F3
    exponent = above.sar(23)
    fraction = ((above & 0x7FFFFF) + 0x3F3504F3).reals() - 1.0
    whole = exponent.to_real(32, signed=True) - tiny.pick(x.b.number(32, 23.0), 0.0)
    result = fraction.fma(_polynomial(fraction, _LOG2), whole)
    result = x.compare("<", float("inf")).pick(result, x)
    result = x.compare("==", 0.0).pick(float("-inf"), result)
    return x.compare("<", 0.0).pick(float("nan"), result)


def _sine(x: Real, quarter: int) -> Real:
    """sin(x + quarter * pi / 2): reduced to [-pi/4, pi/4] in f64, which is exact enough as far as x has a meaning."""
    wide = x.to(64)
    turns = (wide * 0.6366197723675814).integral("rni")
    rest = (-turns).fma(6.123233995736766e-17, (-turns).fma(1.5707963267948966, wide)).to(32)
    rest = abs(rest).compare(">", 0.8).pick(0.8, rest)
    place = (turns - (turns * 0.25).integral("rmi") * 4.0 + 2.0**52).to_bits().trunc(32) + quarter
    square = rest * rest
    value = (place & 1).ne(0).pick(_polynomial(square, _COS), rest * _polynomial(square, _SIN))
    return (value.to_bits() ^ ((place & 2) << 30)).reals()


@_function("sin", "sin")
def _sin(x: Real) -> Real:
    return x.compare("==", 0.0).pick(x, _sine(x, 0))


@_function("cos", "cos")
def _cos(x: Real) -> Real:
    return _sine(x, 1)


@_function("tanh", "tanh")
def _tanh(x: Real) -> Real:
    size = abs(x)
    far = 1.0 - 2.0 / (_exp2(size * 2.8853900817779268) + 1.0)
    square = x * x
    near = x * square.fma(_polynomial(square, _TANH), 1.0)
    return size.compare("<", 0.625).pick(near, far.call("copysign", x))


@semantics("rsqrt")
def _rsqrt(form: Form, a: Bits) -> Bits:
    """Two correctly rounded steps: within 2**-23."""
    if "ftz" in form.tokens and a.bits == 64:
        return rough(a, lambda value: 1.0 / value.sqrt())
    (value,), (layout,) = each(form, (a,))
    code = canonical(1.0 / value.reals().sqrt())
    return flush(code, layout) if "ftz" in form.tokens else code
