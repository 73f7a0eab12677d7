"""What the functions of this package share: their types, Horner's rule, sums and products of two floats."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ..errors import PtxTypeError
from ..language import Value, ptx, reg
from ..language.errors import described, located
from ..types import ScalarType, bf16, f16, f32, f64, s32, s64

__all__ = [
    "FORMATS", "Float", "fast_two_sum", "fma_rn", "function_of", "has_sign", "is_nan", "polynomial", "power_of_two",
    "quotient", "two_product", "two_sum", "values",
]

F = TypeVar("F", bound=Callable[..., Any])


class Float(NamedTuple):
    """A floating point format: the integer of its size, and the numbers of IEEE 754."""

    integer: ScalarType
    fraction: int
    """The bits of the significand that are stored."""
    bias: int
    infinity: int
    """The bits of infinity."""

    @property
    def least(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def sign(self) -> int:
        """The bits of -0, as a signed integer."""
        return -self.infinity - (1 << self.fraction)


FORMATS: dict[Any, Float] = {f32: Float(s32, 23, 127, 0x7F800000), f64: Float(s64, 52, 1023, 0x7FF0000000000000)}


def function_of(*kinds: ScalarType) -> Callable[[F], F]:
    """A function of floats of these types; of f16 and bf16 by way of f32.

    The first argument that is a Value gives the type; Python numbers among the others become Values of it.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def checked(*arguments: Any) -> Any:
            kind = next((a.type for a in arguments if isinstance(a, Value)), None)
            if kind is None:
                message = f"`{function.__name__}` of {described(arguments[0])}"
                raise located(PtxTypeError, message, "of Python numbers Python's `math` has it")
            if kind in (f16, bf16):
                results = checked(*[a.to(f32) if isinstance(a, Value) and a.type is kind else a for a in arguments])
                return _narrow(results, kind)
            if kind not in kinds:
                known = " and ".join(map(str, kinds))
                raise located(PtxTypeError, f"`{function.__name__}` of {kind}, and it is of {known}", "`v.to(f32)`")
            return function(*arguments)

        return checked  # type: ignore[return-value]

    return decorate


def _narrow(result: Any, kind: ScalarType) -> Any:
    if isinstance(result, tuple):
        return tuple(_narrow(each, kind) for each in result)
    return result.to(kind) if result.type is f32 else result


def values(*arguments: Any) -> list[Any]:
    """The arguments as Values of one type, Python numbers too."""
    kind = next(a.type for a in arguments if isinstance(a, Value))
    return [a if isinstance(a, Value) else reg(kind, a).copy() for a in arguments]


def fma_rn(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once; at least one is a Value."""
    kind = next(v.type for v in (a, b, c) if isinstance(v, Value))
    return ptx[f"fma.rn.{kind}"](a, b, c)


def quotient(a: Any, b: Any) -> Any:
    """``a / b``, rounded once; at least one is a Value."""
    kind = next(v.type for v in (a, b) if isinstance(v, Value))
    return ptx[f"div.rn.{kind}"](a, b)


def polynomial(x: Any, *coefficients: float) -> Any:
    """The polynomial with these coefficients, the highest power first, by Horner's rule."""
    result: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        result = fma_rn(result, x, coefficient)
    return result


def is_nan(x: Any) -> Any:
    return ptx[f"testp.notanumber.{x.type}"](x)


def has_sign(x: Any) -> Any:
    """Whether the sign bit is set: of -0 and of NaNs too."""
    return x.bits(FORMATS[x.type].integer) < 0


def power_of_two(exponent: Any, kind: ScalarType) -> Any:
    """``2**exponent`` for an s32 exponent, which must be that of a normal number."""
    form = FORMATS[kind]
    biased = exponent.to(s64) if form.integer is s64 else exponent
    return ((biased + form.bias) << form.fraction).bits(kind)


# ---------------------------------------------------------------------------------------------------------------------
# Sums and products as two floats, the second the rounding error of the first (Dekker 1971, Knuth)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def fast_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """`two_sum` where ``a`` is the larger in size."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    product = a * b
    return product, fma_rn(a, b, -product)
