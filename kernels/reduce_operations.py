"""What a reduction computes: the state of some elements, how two states become one, and the result.

A state is a list of registers: one, or a value and where it was found for `argmax` and `argmin`. Elements come as
`storage.widened` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any, NamedTuple

from .. import ScalarType, f64, maximum, minimum, pred, ptx, s64, select, u32, u64

from . import storage

__all__ = ["NAMES", "Operation", "beats", "operation", "result_type"]

NAMES = (
    "sum", "prod", "mean", "max", "min", "argmax", "argmin", "any", "all", "count_nonzero", "l1", "l2", "largest",
)
"""`l1` and `l2` are norms, `largest` the greatest magnitude."""

State = list[Any]


class Operation(NamedTuple):
    """A reduction of elements of one dtype."""

    name: str
    dtype: ScalarType
    """Of the elements."""
    state: ScalarType
    """The type in which it is computed."""
    result: ScalarType
    neutral: int | float
    """The state of no elements."""
    lift: Callable[[Any], Any]
    """The state of an element."""
    combine: Callable[[State, State], State]
    """The state of the elements of two states, of which the first comes first."""
    finish: Callable[[State, Any], Any]
    """The result of a state and the number of its elements (u64)."""
    indexed: bool = False


def result_type(name: str, dtype: ScalarType) -> ScalarType:
    """As numpy has it: sums of integers have 64 bits (of bools they are signed), a mean of integers is a float64."""
    if name in ("argmax", "argmin", "count_nonzero"):
        return s64
    if name in ("any", "all"):
        return pred
    if name in ("mean", "l1", "l2", "largest"):
        return dtype if dtype.is_float else f64
    if name in ("sum", "prod") and not dtype.is_float:
        return u64 if dtype.kind == "u" else s64
    return dtype


def _state_type(name: str, dtype: ScalarType) -> ScalarType:
    result = result_type(name, dtype)
    if name in ("any", "all"):
        return u32
    if name in ("max", "min", "argmax", "argmin"):
        return storage.working(dtype)
    return storage.working(result)


def beats(greatest: bool, kind: ScalarType, a: Any, b: Any) -> Any:
    """Whether a is to be taken before b: greater (or less), or a NaN where b is none."""
    if not kind.is_float:
        return a > b if greatest else a < b
    return ptx[f"setp.{'gtu' if greatest else 'ltu'}.{kind}"](a, b) & (b == b)


def _extreme(greatest: bool, kind: ScalarType) -> Callable[[State, State], State]:
    def combine(a: State, b: State) -> State:
        if not kind.is_float:
            return [(maximum if greatest else minimum)(a[0], b[0])]
        return [select(beats(greatest, kind, b[0], a[0]), b[0], a[0])]

    return combine


def _extreme_at(greatest: bool, kind: ScalarType) -> Callable[[State, State], State]:
    def combine(a: State, b: State) -> State:
        # Of equal values, NaNs among them, the lower index.
        second = beats(greatest, kind, b[0], a[0])
        second = second | (~beats(greatest, kind, a[0], b[0]) & (b[1] < a[1]))
        return [select(second, b[0], a[0]), select(second, b[1], a[1])]

    return combine


def _nonzero(kind: ScalarType, value: Any) -> Any:
    """Whether a number counts as true: NaNs do, as in Python."""
    return ptx[f"setp.neu.{kind}"](value, 0.0) if kind.is_float else value != 0


@cache
def operation(name: str, dtype: ScalarType) -> Operation:
    """The reduction called ``name`` of elements of ``dtype``.

    >>> from ptxdsl import s64, u8
    >>> operation("mean", s64).state, operation("argmax", u8).result
    (f64, s64)
    """
    kind, state, result = storage.working(dtype), _state_type(name, dtype), result_type(name, dtype)
    greatest = name in ("max", "argmax", "largest")
    if name in ("max", "min", "argmax", "argmin"):
        low, high = (-inf, inf) if kind.is_float else storage.in_memory(dtype).bounds
        chosen = (_extreme_at if name.startswith("arg") else _extreme)(greatest, kind)
        worst = low if greatest else high
        return Operation(name, dtype, state, result, worst, lambda v: v, chosen, _as_is, name.startswith("arg"))

    def finish(total: State, count: Any) -> Any:
        if name == "mean":
            return ptx[f"div.rn.{state}"](total[0], count.to(state))
        return ptx[f"sqrt.rn.{state}"](total[0]) if name == "l2" else total[0]

    def lift(value: Any) -> Any:
        if name in ("any", "all", "count_nonzero"):
            return _nonzero(kind, value).to(state)
        value = value.to(state)
        if name in ("l1", "largest"):
            return abs(value)
        return value * value if name == "l2" else value

    def combine(a: State, b: State) -> State:
        if name in ("any", "all"):
            return [a[0] | b[0] if name == "any" else a[0] & b[0]]
        return [a[0] * b[0] if name == "prod" else a[0] + b[0]]

    neutral = int(name in ("prod", "all"))
    return Operation(
        name, dtype, state, result, float(neutral) if state.is_float else neutral, lift,
        _extreme(True, state) if name == "largest" else combine, finish,
    )


def _as_is(state: State, count: Any) -> Any:  # noqa: ARG001 -- of extremes the number does not matter
    return state[0]
