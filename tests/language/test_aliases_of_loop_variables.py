"""Rule R3 where a loop variable is changed: the container that it comes from holds the register too, and that is meant.

A name is excused only where the container was made of it; any other one is a second holder.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any

import pytest
from ptxdsl import AliasError, Ptr, f32, loop, ptx_kernel, reg

KEPT: Any = None


def registers(count: int = 3) -> list[Any]:
    return [reg(f32, float(i)) for i in range(count)]


def wrong_name_of_an_element(out: Any, x: Any) -> None:
    acc = registers()
    best = acc[2]
    for element in acc:
        element += x
    out[0] = best


def wrong_name_of_an_element_of_a_zip(out: Any, x: Any) -> None:
    acc = registers()
    best = acc[1]
    for element, factor in zip(acc, range(3)):
        element += x * factor
    out[0] = best


def wrong_name_of_an_element_of_a_chain(out: Any, x: Any) -> None:
    acc = registers()
    best = acc[2]
    for element in islice(chain(acc[1:], acc[:1]), 3):
        element += x
    out[0] = best


def wrong_name_before_a_second_loop(out: Any, x: Any) -> None:
    acc = registers()
    for element in acc:
        element += x
    before = acc[1]
    with loop(3):
        for element in acc:
            element += x
    out[0] = before


def wrong_global(out: Any, x: Any) -> None:
    global KEPT  # noqa: PLW0603
    for element in registers():
        for turn in range(2):
            element += x
            if turn == 0:
                KEPT = element
    out[0] = KEPT


def wrong_swap(out: Any, x: Any) -> None:
    acc = registers()
    first = acc[0]
    for element in acc[:1]:
        for _ in range(3):
            element += x
            acc[0], acc[1] = acc[1], acc[0]
    out[0] = first


def right_names_in_a_tuple(out: Any, x: Any) -> None:
    total, count, _ = registers()
    for each in (total, count):
        each += x
    out[0] = total + count


def right_names_stored_in_a_list(out: Any, x: Any) -> None:
    total, count, _ = registers()
    both: list[Any] = [None, None]
    both[0] = total
    both[1] = count
    for each in both:
        each += x
    out[0] = total + count


def right_names_stored_in_an_object(out: Any, x: Any) -> None:
    total, count, _ = registers()
    state = SimpleNamespace()
    state.total = total
    state.count = count
    for each in (state.total, state.count):
        each += x
    out[0] = total + count


def right_names_that_a_dict_was_filled_with(out: Any, x: Any) -> None:
    total, count, _ = registers()
    named: dict[str, Any] = {}
    named.update(total=total, count=count)
    for each in named.values():
        each += x
    out[0] = total + count


def right_names_that_a_function_gives(out: Any, x: Any) -> None:
    total, count, _ = registers()

    def both() -> list[Any]:
        return [total, count]

    for each in both():
        each += x
    out[0] = total + count


def right_copy_of_an_element(out: Any, x: Any) -> None:
    acc = registers()
    best = acc[2].copy()
    for element in acc:
        element += x
    out[0] = best


def _programs(kind: str) -> list[Any]:
    return [pytest.param(value, id=name) for name, value in globals().items() if name.startswith(kind)]


def _traced(program: Callable[[Any, Any], None]) -> str:
    def kernel(out: Ptr[f32], x: f32) -> None:
        program(out, x)

    return ptx_kernel(kernel).ptx()


@pytest.mark.parametrize("program", _programs("wrong"))
def test_a_name_that_the_loop_does_not_go_over_is_a_second_holder(program: Callable[[Any, Any], None]) -> None:
    with pytest.raises(AliasError) as caught:
        _traced(program)
    lines, first = inspect.getsourcelines(program)
    assert caught.value.loc is not None
    assert "element += x" in lines[caught.value.loc.line - first]


@pytest.mark.parametrize("program", _programs("right"))
def test_the_names_that_the_loop_goes_over_are_the_same_place(program: Callable[[Any, Any], None]) -> None:
    assert _traced(program)
