"""What the functions of this package share: their types, Horner's rule, sums and products of two floats."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ..errors import PtxTypeError
from ..language import Value, ptx, reg
from ..language.errors import described, located, mismatch, named
from ..language.values.literals import is_number
from ..types import KernelOperand, ScalarType, bf16, f16, f32, f64, pred, s16, s32, s64

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


FORMATS: dict[Any, Float] = {
    f16: Float(s16, 10, 15, 0x7C00), bf16: Float(s16, 7, 127, 0x7F80),
    f32: Float(s32, 23, 127, 0x7F800000), f64: Float(s64, 52, 1023, 0x7FF0000000000000),
}


def function_of(*kinds: ScalarType) -> Callable[[F], F]:
    """A function of floats of these types; of f16 and bf16 by way of f32 where they are not among them.

    The first argument that is a Value gives the type; Python numbers among the others become Values of it. An argument
    that is called ``n`` is no float.
    """

    def decorate(function: F) -> F:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]

        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            if named or len(arguments) != len(names):
                arguments = _arranged(function.__name__, names, arguments, named)
            floats = arguments if names[-1] != "n" else arguments[:-1]
            kind = _kind(function.__name__, floats)
            if kind in kinds:
                return function(*arguments)
            if kind not in _BY_WAY:
                raise _other_type(function.__name__, next(a for a in floats if isinstance(a, Value)), kinds)
            wide = [a.to(f32) if isinstance(a, Value) else a for a in floats]
            return _narrow(function(*wide, *arguments[len(floats):]), kind)

        return checked  # type: ignore[return-value]

    return decorate


_BY_WAY = (f16, bf16)


def _arranged(function: str, names: tuple[str, ...], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The arguments in order, those by name too."""
    given = {**dict(zip(names, arguments)), **named}
    if len(given) != len(arguments) + len(named) or given.keys() != set(names):
        wanted = f"{len(names)} argument{'s' if len(names) > 1 else ''}"
        message = f"`{function}` takes {wanted}, and {len(arguments) + len(named)} came"
        raise located(PtxTypeError, message, f"`{function}({', '.join(names)})`")
    return tuple(given[name] for name in names)


def _kind(function: str, arguments: tuple[Any, ...]) -> ScalarType:
    """The one type of the arguments."""
    first = None
    for each in arguments:
        if not isinstance(each, Value):
            if not is_number(each):
                raise located(PtxTypeError, f"`{function}` of {described(each)}", "give a Value or a number")
        elif first is None:
            first = each
        elif each.type is not first.type:
            raise mismatch(function, first, each)
    if first is None:
        message = f"`{function}` of {described(arguments[0])}"
        raise located(PtxTypeError, message, "of Python numbers Python's `math` has it, of others `reg(f32, 1.5)`")
    return first.type


def _other_type(function: str, value: Value, kinds: tuple[ScalarType, ...]) -> PtxTypeError:
    """The error for a value of a type that the function does not have, with a conversion that keeps the number."""
    kind, name = value.type, named(value, "v")
    known = " and ".join(map(str, kinds))
    if kind is pred:
        hint: str | None = f"`select({name}, 1.0, 0.0)` of floats"
    elif kind is f64:
        accurate = function.removesuffix("_approx")
        hint = f"`{accurate}({name})` takes f64"
    elif not kind.is_integer:
        element = str(kind).partition("x")[0]
        hint = f"`{name}.unpack({element})`, and each by itself" if kind.bits // kind.lanes >= 16 < kind.bits else None
    elif kind.bits < 32 or f64 not in kinds:
        hint = f"`{name}.to(f32)`" + (" rounds beyond 2**24" if kind.bits > 16 else "")
    else:
        hint = f"`{name}.to(f64)`" + (" rounds beyond 2**53" if kind.bits > 32 else "")
    return located(PtxTypeError, f"`{function}` of {kind}, and it is of {known}", hint)


def _narrow(result: Any, kind: ScalarType) -> Any:
    if isinstance(result, tuple):
        return tuple(_narrow(each, kind) for each in result)
    return result.to(kind) if result.type is f32 else result


def values(*arguments: Any) -> list[Any]:
    """The arguments as Values of one type, Python numbers too."""
    kind = next(a.type for a in arguments if isinstance(a, Value))
    return [a if isinstance(a, Value) else reg(kind, a).copy() for a in arguments]


def fma_rn(a: Any, b: Any, c: Any) -> KernelOperand:
    """``a * b + c``, rounded once; at least one is a Value."""
    kind = next(v.type for v in (a, b, c) if isinstance(v, Value))
    return ptx[f"fma.rn.{kind}"](a, b, c)


def quotient(a: Any, b: Any) -> KernelOperand:
    """``a / b``, rounded once; at least one is a Value."""
    kind = next(v.type for v in (a, b) if isinstance(v, Value))
    return ptx[f"div.rn.{kind}"](a, b)


def polynomial(x: Any, *coefficients: float) -> KernelOperand:
    """The polynomial with these coefficients, the highest power first, by Horner's rule."""
    result: Any = coefficients[0]
    for coefficient in coefficients[1:]:
        result = fma_rn(result, x, coefficient)
    return result


def is_nan(x: Any) -> KernelOperand:
    return ptx[f"testp.notanumber.{x.type}"](x)


def has_sign(x: Any) -> KernelOperand:
    """Whether the sign bit is set: of -0 and of NaNs too."""
    return x.bits(FORMATS[x.type].integer) < 0


def power_of_two(exponent: Any, kind: ScalarType) -> KernelOperand:
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
