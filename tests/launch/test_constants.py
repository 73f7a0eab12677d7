"""Compile-time constants: those that a kernel can tell apart do not share a trace, and those that it cannot do."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptxdsl import Ptr, f32, f64, ptx_func, ptx_kernel, reg, u32


@dataclass(frozen=True)
class Cfg:
    a: Any
    hidden: Any = field(default=0, compare=False)


class Pair(NamedTuple):
    a: Any
    b: Any = 0


class Name(str):
    __slots__ = ("extra",)


class Equal:
    """Equal to everything."""

    def __init__(self, a: Any) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class Slots:
    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a


class Level(enum.IntEnum):
    ONE = 1
    TWO = 2


class Other(enum.IntEnum):
    ONE = 1


def adder(n: Any) -> Callable[[Any], Any]:
    return lambda v: v + n


NAN = float("nan")
APART: list[tuple[Any, Any]] = [
    (1, 1.0), (1, True), (0, False), (0.0, -0.0), (1, Level.ONE), (Level.ONE, Other.ONE), (Level.ONE, Level.TWO),
    ((1, 2), (1, 2.0)), ((0.0,), (-0.0,)), (((1,),), ((True,),)), ((1, 2), Pair(1, 2)), (Pair(1), Pair(1.0)),
    (Cfg(1), Cfg(1.0)), (Cfg(0.0), Cfg(-0.0)), (Cfg(Cfg((1,))), Cfg(Cfg((True,)))), (Cfg(1, hidden=1), Cfg(1,
    hidden=2)),
    (np.float32(0.0), np.float32(-0.0)), (np.float32(1), np.float64(1)), (np.int32(1), 1), (np.uint8(1), np.int8(1)),
    (frozenset([1]), frozenset([1.0])), (frozenset([(0.0,)]), frozenset([(-0.0,)])), ("a", Name("a")), ("a", b"a"),
    (Equal(1), Equal(2)), (Equal(1), Equal(1.0)), (Slots(1), Slots(2)), (Slots(0.0), Slots(-0.0)),
    (SimpleNamespace, dict), (f32, f64), (range(3), range(4)), (1 + 0j, 1 + 1j), (complex(0.0, 0.0), complex(-0.0,
    0.0)),
    (Decimal("1.0"), Decimal("1.00")), (Fraction(1, 2), 0.5), (adder(1), adder(2)), (adder(1), adder(1.0)),
    (functools.partial(max, 1), functools.partial(max, 2)), (np.dtype("f4"), np.dtype("f8")), (None, 0), (..., None),
    (Cfg(np.float32(0.0)), Cfg(np.float32(-0.0))), (2**64, float(2**64)),
]
ALIKE: list[Callable[[], Any]] = [
    lambda: 1, lambda: 12345678901, lambda: 1.5, lambda: -0.0, lambda: float("nan"), lambda: "a b"[:2], lambda: (1,
    (2,)),
    lambda: Cfg((1, 2.0)), lambda: Pair(1, "x"), lambda: np.float32(1.5), lambda: np.int64(3), lambda: Equal(3),
    lambda: Slots(3), lambda: Level(2), lambda: frozenset([1, 2]), lambda: adder(3), lambda: functools.partial(max, 1),
    lambda: f32, lambda: np.float32("nan"), lambda: Decimal("1.10"), lambda: Fraction(1, 3), lambda: None,
    lambda: Name("n"), lambda: range(5), lambda: Cfg(Cfg(Slots((1,)))), lambda: b"ab", lambda: 1j,
    lambda: np.dtype("f4"),
]


def _counted() -> tuple[Any, list[Any]]:
    traced: list[Any] = []

    @ptx_kernel
    def k(out: Ptr[u32], *, a: Any) -> None:
        traced.append(a)
        out[0] = 1

    return k, traced


@pytest.mark.parametrize(("one", "other"), APART)
def test_constants_that_differ_have_traces_of_their_own(one: Any, other: Any) -> None:
    k, traced = _counted()
    out = np.zeros(1, np.uint32)
    for value in (one, other, one, other):
        k[1, 1](out, a=value)
    assert [value is wanted for value, wanted in zip(traced, (one, other))] == [True, True]
    assert len(traced) == 2


@pytest.mark.parametrize("make", ALIKE)
def test_constants_that_do_not_differ_share_a_trace(make: Callable[[], Any]) -> None:
    k, traced = _counted()
    out = np.zeros(1, np.uint32)
    for _ in range(3):
        k[1, 1](out, a=make())
    assert len(traced) == 1


@pytest.mark.parametrize(
    "make", [Equal, Slots, Cfg, lambda a: SimpleNamespace(x=Slots(a)).x, lambda a: Cfg(Slots(a)).a],
    ids=["equal to everything", "slots", "frozen dataclass", "slots in a namespace", "slots in a dataclass"],
)
def test_a_constant_that_changes_between_launches_is_seen(make: Callable[[Any], Any]) -> None:
    @ptx_kernel
    def k(out: Ptr[u32], *, c: Any) -> None:
        out[0] = c.a

    constant, out = make(1), np.zeros(1, np.uint32)
    launch = k[1, 1]
    for a in (1, 2, 2, 1, 3):
        object.__setattr__(constant, "a", a)
        launch(out, c=constant)
        assert out[0] == a


def test_what_a_constant_s_function_reads_is_seen() -> None:
    scale = [1]

    def op(v: Any) -> Any:
        return v * scale[0]

    @ptx_kernel
    def k(out: Ptr[u32], *, op: Any) -> None:
        out[0] = op(reg(u32, 5))

    out = np.zeros(1, np.uint32)
    for factor in (1, 3, 1):
        scale[0] = factor
        k[1, 1](out, op=op)
        assert out[0] == 5 * factor


def test_the_constants_of_a_function_too() -> None:
    @ptx_func
    def constant(*, c: Any) -> f32:
        return reg(f32, float(c.a)) / (float("inf") if str(c.a).startswith("-") else 1.0)

    @ptx_kernel
    def k(out: Ptr[f32]) -> None:
        for at, value in enumerate((Cfg(0.0), Cfg(-0.0), Cfg(1), Cfg(1.0), Equal(7), Equal(8))):
            out[at] = constant(c=value)

    out = np.ones(6, np.float32)
    k[1, 1](out)
    assert np.signbit(out).tolist() == [False, True, False, False, False, False]
    assert out.tolist() == [0, 0, 1, 1, 7, 8]
    assert k.ptx().count(".func") == 6
