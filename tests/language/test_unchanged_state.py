"""Rule R2 lets right programs pass: temporaries, containers made inside, logs that only the host reads, and so on.

Each program runs on the emulator for n = 3 and must leave in x what stands in its decorator.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import logging
import types
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from ptxdsl import Ptr, loop, ptx_kernel, reg, u32, when

# ruff: noqa: B010, PERF401

RIGHT: list[tuple[Callable[..., None], list[int]]] = []


def gives(*expected: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def note(function: Callable[..., None]) -> Callable[..., None]:
        RIGHT.append((function, list(expected)))
        return function

    return note


@gives(0, 2, 4)
def list_made_inside(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        parts = []
        for k in range(2):
            parts.append(i * k)
        parts.append(i)
        x[i] = parts[1] + parts[-1]


@gives(0, 3, 6)
def list_made_inside_anew(n: u32, x: Ptr[u32]):
    for step in (2, 3):
        with loop(n) as i:
            parts = [i * k for k in range(step)]
            parts.append(i)
            parts.reverse()
            x[i] = parts[0] + parts[1]


@gives(0, 3, 6)
def container_rebuilt_in_each_iteration(n: u32, x: Ptr[u32]):
    frag = [None] * 3
    with loop(n) as i:
        for k in range(3):
            frag[k] = i * k
        x[i] = frag[1] + frag[2]


@gives(0, 1, 2)
def container_cleared_in_each_iteration(n: u32, x: Ptr[u32]):
    frag = []
    with loop(n) as i:
        frag.clear()
        frag.append(i)
        x[i] = frag[0]


@gives(6, 5)
def dict_made_inside(n: u32, x: Ptr[u32]):
    with when(n == 3):
        state = {"a": n}
        state["b"] = n + n
        state.update(c=5)
        x[0] = state["b"]
        x[1] = state["c"]


@gives(3)
def object_made_inside(n: u32, x: Ptr[u32]):
    with when(n == 3):
        p = types.SimpleNamespace(a=1)
        p.a += 1
        p.b = p.a + 1
        setattr(p, "c", p.b)
        x[0] = p.c


LOG: list[Any] = []


@gives(0, 1, 2)
def log_that_the_host_reads(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        LOG.append("an iteration")
        x[i] = i
    LOG.append("the end")


def note(text: str) -> None:
    LOG.append(text)


@gives(7)
def log_by_a_helper(n: u32, x: Ptr[u32]):
    note("begin")
    with when(n == 3):
        note("inside")
        x[0] = 7
    note("end")


@gives(7)
def logger_and_print(n: u32, x: Ptr[u32]):
    with when(n == 3):
        logging.getLogger(__name__).debug("inside %s", n)
        print("inside", end="")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.warn("inside", stacklevel=1)
        x[0] = 7


@functools.lru_cache
def squares(k: int) -> int:
    return k * k


@functools.cache
def table_of(k: int) -> list[int]:
    return list(range(k))


@gives(16, 3)
def cached_helpers(n: u32, x: Ptr[u32]):
    with when(n == 3):
        x[0] = squares(4)
        x[1] = table_of(4)[3]
    with when(n == 3):
        x[0] = squares(4)


class Tile:
    def __init__(self, width: int) -> None:
        self.width = width
        self.parts = [1, 2, 3]

    @functools.cached_property
    def half(self) -> int:
        return self.width // 2

    @property
    def double(self) -> int:
        return self.width * 2

    def at(self, i: Any) -> Any:
        return i * self.width

    def total(self) -> int:
        return sum(self.parts)


@gives(2, 4, 6)
def methods_that_only_read(n: u32, x: Ptr[u32]):
    tile = Tile(2)
    with loop(n) as i:
        x[i] = tile.at(i) + tile.half * 2
    with when(n == 3):
        x[0] = tile.half + 1


@gives(10, 8)
def properties(n: u32, x: Ptr[u32]):
    tile = Tile(4)
    with when(n == 3):
        x[0] = tile.total() + tile.width
        x[1] = tile.double


class Kind(enum.Flag):
    A = 1
    B = 2
    C = 4


@gives(5)
def flags_combined(n: u32, x: Ptr[u32]):
    with when(n == 3):
        x[0] = (Kind.A | Kind.C).value
    with when(n == 4):
        x[0] = (Kind.A | Kind.B | Kind.C).value


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Sum:
    total: Any = 0
    parts: list[Any] = dataclasses.field(default_factory=list)

    def add(self, value: Any) -> Sum:
        self.total = self.total + value
        self.parts.append(value)
        return self


@gives(0, 3, 6)
def dataclass_made_inside(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        s = Sum()
        for k in range(3):
            s.add(i * k)
        x[i] = s.total + (len(s.parts) - 3)


@gives(0, 2, 4)
def tuple_made_inside(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        pair = Pair(i, i)
        pair = pair._replace(a=pair.b)
        x[i] = pair.a + pair.b


@gives(0, 1, 3)
def reg_in_a_list(n: u32, x: Ptr[u32]):
    acc = [reg(u32, 0) for _ in range(2)]
    with loop(n) as i:
        acc[0] += i
        for r in acc[1:]:
            r += 1
        x[i] = acc[0]


@gives(3, 9)
def regs_of_an_object(n: u32, x: Ptr[u32]):
    state = types.SimpleNamespace(total=reg(u32, 0), steps={"k": reg(u32, 0)})
    with loop(n) as i:
        total = state.total
        total += i
        state.steps["k"].set(state.steps["k"] + 3)
    x[0] = state.total
    x[1] = state.steps["k"]


@pytest.mark.parametrize(("function", "expected"), RIGHT, ids=[function.__name__ for function, _ in RIGHT])
def test_right(function: Callable[..., None], expected: list[int]) -> None:
    x = np.full(8, 77, np.uint32)
    ptx_kernel(function)[1, 1](3, x)
    assert x[: len(expected)].tolist() == expected


