"""Rule R2 lets right programs pass: iterators, generators, context managers, functions and numpy.

Each program runs on the emulator for n = 3 and must leave in x what stands in its decorator.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ptxdsl import Ptr, break_if, loop, otherwise, ptx_kernel, reg, select, u32, when

# ruff: noqa: B006, RUF046

RIGHT: list[tuple[Callable[..., None], list[int]]] = []


def gives(*expected: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def note(function: Callable[..., None]) -> Callable[..., None]:
        RIGHT.append((function, list(expected)))
        return function

    return note


@gives(0, 1, 2)
def iterators_made_inside(n: u32, x: Ptr[u32]):
    names = ["a", "b"]
    with loop(n) as i:
        for k, _ in enumerate(names):
            x[i] = i * k
        for a, b in zip(names, reversed(names)):
            assert a != b
        it = iter(names)
        next(it)
        turns = itertools.cycle([1, 2])
        x[i] = i * next(turns)


@gives(0, 1, 2)
def generator_made_inside(n: u32, x: Ptr[u32]):
    def numbers() -> Iterator[int]:
        yield from (1, 2)

    with loop(n) as i:
        g = numbers()
        x[i] = i * next(g)


@contextlib.contextmanager
def rows(n: Any) -> Iterator[Any]:
    with loop(n) as i:
        yield i


@gives(0, 2, 4)
def block_of_a_context_manager(n: u32, x: Ptr[u32]):
    with rows(n) as i:
        t = i * 2
        x[i] = t


@gives(0, 2, 4)
def block_of_a_generator(n: u32, x: Ptr[u32]):
    def tiles() -> Iterator[Any]:
        with loop(n) as i:
            yield i

    g = tiles()
    for i in g:
        x[i] = i * 2


@gives(5, 6)
def temporaries(n: u32, x: Ptr[u32]):
    for k in range(2):
        with when(n > k):
            scale = 5 + k
            names = ["a"]
            x[k] = scale + len(names) - 1


@gives(4, 5)
def other_attribute_read(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace(width=4, note="")
    with when(n == 3):
        cfg.note = "inside"
        x[1] = 5
    x[0] = cfg.width


@gives(4)
def other_key_read(n: u32, x: Ptr[u32]):
    cfg = {"width": 4, "note": ""}
    with when(n == 3):
        cfg["note"] = "inside"
        x[0] = 5
    x[0] = cfg["width"]


@gives(8)
def rebuilt_after_the_region(n: u32, x: Ptr[u32]):
    state = {"k": 1}
    with when(n == 3):
        state["k"] = 2
    state["k"] = 8
    x[0] = state["k"]


@gives(8)
def name_rebuilt_after_the_region(n: u32, x: Ptr[u32]):
    k = 1
    with when(n == 5):
        k = 2
        x[0] = k
    k = 8
    x[0] = k


@gives(8)
def equal_again(n: u32, x: Ptr[u32]):
    todo = [8, 9]
    with when(n == 3):
        last = todo.pop()
        todo.append(last)
    x[0] = todo[0]


@gives(1, 3)
def function_made_inside(n: u32, x: Ptr[u32]):
    with when(n == 3):
        def helper(v: Any) -> Any:
            return v + 1

        x[1] = helper(n) - 1
    with when(n == 3):
        def helper(v: Any) -> Any:
            return v - 2

        x[0] = helper(n)


@gives(6)
def name_of_an_inner_function(n: u32, x: Ptr[u32]):
    for k in range(2):
        with when(n == 3):
            t = n * (k + 1)
            parts = [t for _ in range(2)]
            scaled = lambda v: v + t * 0  # noqa: E731
            x[0] = scaled(parts[0])


@gives(0, 10, 20)
def numpy_read(n: u32, x: Ptr[u32]):
    table = np.arange(4) * 5
    with loop(n) as i:
        fresh = table.copy()
        fresh[2] += 0
        x[i] = i * int(fresh[2])


COUNTS: dict[str, int] = {}


@gives(3)
def only_written_counter(n: u32, x: Ptr[u32]):
    with when(n == 3):
        COUNTS["inside"] = 1
        x[0] = n


@gives(0, 1, 3)
def module_functions(n: u32, x: Ptr[u32]):
    total = reg(u32, 0)
    with loop(n) as i:
        total += i * int(math.floor(1.5))
        x[i] = total


@gives(2, 2)
def otherwise_with_temporaries(n: u32, x: Ptr[u32]):
    with when(n == 4):
        parts = [1]
        x[0] = parts[0]
    with otherwise():
        parts = [2, 3]
        parts.pop()
        x[0] = parts[0]
    x[1] = select(n == 3, reg(u32, 2), 1)


@gives(3)
def enclosing_loop(n: u32, x: Ptr[u32]):
    best = reg(u32, 0)
    with loop():
        candidates = []
        with when(best < n):
            candidates.append(best + 1)
            best.set(candidates[0])
        break_if(best >= n)
    x[0] = best


@gives(1, 1, 1)
def default_that_is_read(n: u32, x: Ptr[u32]):
    def helper(v: Any, table: list[int] = [1, 2], *, names: dict[str, int] = {"k": 0}) -> Any:
        return v * names["k"] + table[0]

    with loop(n) as i:
        x[i] = helper(i)


@gives(3)
def values_collected_for_no_reader(n: u32, x: Ptr[u32]):
    seen = []
    with when(n == 3):
        seen.append(n)
        x[0] = n


@gives(2)
def deque_made_inside(n: u32, x: Ptr[u32]):
    with when(n == 3):
        ring = collections.deque([1, 2])
        ring.rotate(1)
        x[0] = ring[0]


@pytest.mark.parametrize(("function", "expected"), RIGHT, ids=[function.__name__ for function, _ in RIGHT])
def test_right(function: Callable[..., None], expected: list[int]) -> None:
    x = np.full(8, 77, np.uint32)
    ptx_kernel(function)[1, 1](3, x)
    assert x[: len(expected)].tolist() == expected


