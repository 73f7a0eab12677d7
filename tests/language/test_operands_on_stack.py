"""Rule R3 for registers that only an expression holds: what it has evaluated, while it goes on, is not changed."""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptxdsl import AliasError, Ptr, ptx_kernel, reg, select, u32, when
from ptxdsl.language import reference_counts
from ptxdsl.language.rules import aliasing


pytestmark = pytest.mark.usefixtures("young_heap")  # a search for a list that is being filled visits all objects


class Generator:
    """A linear congruential generator, with what it may give."""

    def __init__(self, seed: int) -> None:
        self.state = reg(u32, seed)

    def step(self) -> Generator:
        self.state.set(self.state * 3 + 1)
        return self

    def register(self) -> Any:
        self.state.set(self.state * 3 + 1)
        return self.state

    def value(self) -> Any:
        self.state.set(self.state * 3 + 1)
        return self.state.copy()

    def high(self) -> Any:
        self.state.set(self.state * 3 + 1)
        return self.state >> 1

    @property
    def drawn(self) -> Any:
        return self.register()


class Pair(NamedTuple):
    low: Any
    high: Any


def increased(r: Any) -> Any:
    r += 1
    return r


def added(r: Any, x: Any) -> Any:
    r += x
    return r


def difference(low: Any, high: Any) -> Any:
    return high - low


def partial_sums(r: Any) -> Iterator[Any]:
    for k in range(3):
        r += k
        yield r


# ---------------------------------------------------------------------------------------------------------------------
# Wrong


def two_draws(x: Any) -> None:
    g = Generator(1)
    x[0] = g.register() - g.register()  # wrong


def two_of_a_property(x: Any) -> None:
    g = Generator(1)
    x[0] = g.drawn - g.drawn  # wrong


def name_and_call(x: Any) -> None:
    a = reg(u32, 1)
    x[0] = a + increased(a)  # wrong


def attribute_and_call(x: Any) -> None:
    g = Generator(1)
    x[0] = g.state + g.high()  # wrong


def arguments(x: Any) -> None:
    a = reg(u32, 1)
    x[0] = difference(a, increased(a))  # wrong


def keywords(x: Any) -> None:
    a = reg(u32, 1)
    x[0] = difference(low=a, high=increased(a))  # wrong


def comparison(x: Any) -> None:
    a = reg(u32, 1)
    with when(a < increased(a)):  # wrong
        x[0] = 1


def selection(x: Any) -> None:
    a = reg(u32, 1)
    x[0] = select(x[1] > 2, a, increased(a))  # wrong


def tuple_of_calls(x: Any) -> None:
    a = reg(u32, 1)
    pair = (increased(a), increased(a))  # wrong
    x[0] = pair[0]


def list_of_calls(x: Any) -> None:
    a = reg(u32, 1)
    kept = [increased(a), increased(a)]  # wrong
    x[0] = kept[0]


def dict_of_calls(x: Any) -> None:
    a = reg(u32, 1)
    kept = {"p": increased(a), "q": increased(a)}  # wrong
    x[0] = kept["p"]


def named_tuple(x: Any) -> None:
    g = Generator(1)
    pair = Pair(g.register(), g.register())  # wrong
    x[0] = pair.low - pair.high


def comprehension(x: Any) -> None:
    g = Generator(1)
    kept = [g.register() for _ in range(3)]  # wrong
    x[0] = kept[0]


def dict_comprehension(x: Any) -> None:
    g = Generator(1)
    kept = {k: g.register() for k in range(3)}  # wrong
    x[0] = kept[0]


def list_of_a_map(x: Any) -> None:
    a = reg(u32, 1)

    def add(k: int) -> Any:
        nonlocal a
        a += k  # wrong
        return a

    kept = list(map(add, [1, 2, 3]))
    x[0] = kept[0]


def tuple_of_a_generator(x: Any) -> None:
    a = reg(u32, 1)

    def add() -> Any:
        a.set(a + 1)  # wrong
        return a

    kept = tuple(add() for _ in range(3))  # wrong: from Python 3.14 on a loop of this function
    x[0] = kept[0]


# ---------------------------------------------------------------------------------------------------------------------
# Right


def r_values(x: Any) -> int:
    g = Generator(1)
    x[0] = g.value() + g.value() + g.high()
    return 4 + 13 + 20


def r_values_in_a_list(x: Any) -> int:
    g = Generator(1)
    first, second, third = [g.value() for _ in range(3)]
    x[0] = first + second + third
    return 4 + 13 + 40


def r_values_of_a_map(x: Any) -> int:
    g = Generator(1)
    kept = list(map(Generator.value, [g, g, g]))
    x[0] = kept[0] + kept[2]
    return 44


def r_one_after_the_other(x: Any) -> int:
    x[0] = Generator(1).step().step().step().state + 0
    return 40


def r_for_its_effect(x: Any) -> int:
    g = Generator(1)
    [g.register() for _ in range(3)]
    x[0] = g.state
    return 40


def r_changes_in_a_lambda(x: Any) -> int:
    a, b = reg(u32, 1), reg(u32, 2)
    both = lambda v: (a.set(v), b.set(v + 1), a.set(v + 2))  # noqa: E731
    both(5)
    x[0] = a * 10 + b
    return 76


def r_reduced(x: Any) -> int:
    x[0] = functools.reduce(added, [1, 2, 3], reg(u32, 0)) + 0
    return 6


def r_composed(x: Any) -> int:
    a = reg(u32, 0)
    x[0] = increased(increased(increased(a)))
    return 3


def r_other_registers(x: Any) -> int:
    a, b = reg(u32, 1), reg(u32, 1)
    x[0] = a + increased(b)
    return 3


def r_different_registers_of_a_map(x: Any) -> int:
    first, second = list(map(increased, [reg(u32, 0), reg(u32, 5)]))
    x[0] = first + second
    return 7


def r_used_at_once(x: Any) -> int:
    x[0] = sum(r + 0 for r in partial_sums(reg(u32, 1)))
    return 1 + 2 + 4


def r_in_turn(x: Any) -> int:
    for k, r in enumerate(partial_sums(reg(u32, 1))):
        x[2 - k] = r
    return 4


def r_sums_by_value(x: Any) -> int:
    sums = itertools.accumulate([x[0] * 0 + k for k in range(4)], lambda a, b: a + b)
    x[0] = list(sums)[3]
    return 6


def r_cursor(x: Any) -> int:
    at, total = reg(u32, 1), reg(u32, 0)

    def take() -> Any:
        value = x[at]
        at.set(at + 1)
        return value

    total += take() + take() * 2 + take() * 4
    x[0] = total
    return 77 * 7


PROGRAMS = [value for value in list(globals().values()) if isinstance(value, types.FunctionType)]
WRONG = [each for each in PROGRAMS if "# wrong\n" in inspect.getsource(each)]
RIGHT = [each for each in PROGRAMS if each.__name__.startswith("r_")]


def _kernel(program: Callable[[Any], Any]) -> Any:
    def kernel(x: Ptr[u32]) -> None:
        program(x)

    return ptx_kernel(kernel)


@pytest.mark.parametrize("program", WRONG, ids=lambda f: f.__name__)
def test_wrong(program: Callable[[Any], None]) -> None:
    with pytest.raises(AliasError) as caught:
        _kernel(program).ptx()
    lines, first = inspect.getsourcelines(program)
    assert caught.value.loc is not None
    assert "# wrong" in lines[caught.value.loc.line - first]
    assert ".copy()" in str(caught.value.hint)


_UNSEEN = itertools.count(1_000_003, 3)
"""Numbers that nothing has added yet, nor the two that follow each."""


@pytest.mark.parametrize("numbers", [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)], ids=str)
def test_what_a_process_has_seen_before_changes_nothing(
    numbers: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each number takes another way through ptxdsl the first time that it is added."""
    monkeypatch.setattr(aliasing.searches, "count", 1 << 20)
    reference_counts.measure()
    first = next(_UNSEEN)

    def kernel(x: Ptr[u32]) -> None:
        seen, a = reg(u32, 1), reg(u32, 1)
        for each in numbers:
            seen += first + each - 1

        def add(k: int) -> Any:
            nonlocal a
            a += k
            return a

        kept = list(map(add, range(first, first + 3)))
        x[0] = kept[0] + seen

    with pytest.raises(AliasError, match="a list that is being filled here has the same reg already"):
        ptx_kernel(kernel).ptx()


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_right(program: Callable[[Any], int]) -> None:
    wanted: list[int] = []
    x = np.full(8, 77, np.uint32)
    _kernel(lambda x: wanted.append(program(x)))[1, 1](x)
    assert int(x[0]) == wanted[0]


@pytest.mark.parametrize(("program", "message", "hint"), [
    (two_draws, "what `g.register()` has given is the same reg, and this changes it before it is used",
     "write `g.register().copy()` there, or have the function return a copy"),
    (name_and_call, "`a` is an operand already, and this changes it before it is used", "write `a.copy()` there"),
    (list_of_a_map, "a list that is being filled here has the same reg already, and this changes it",
     "have it filled with copies: return or yield `....copy()`"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_words(program: Callable[[Any], None], message: str, hint: str) -> None:
    with pytest.raises(AliasError) as caught:
        _kernel(program).ptx()
    assert (caught.value.message, caught.value.hint) == (message, hint)
