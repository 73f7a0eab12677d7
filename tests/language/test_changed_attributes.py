"""Rule R2: state that a region changes and somebody reads afterwards, in attributes, globals, closures and names.

Each program is wrong. The line that changes the state is marked with how the state is written.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable
from typing import Any

import pytest
from tracing_helpers import marked, refused

from ptxdsl import LostUpdateError, Ptr, loop, u32, when


# ruff: noqa: B006, B010, PLW0603, RUF012

WRONG: list[Callable[..., None]] = []


def wrong(function: Callable[..., None]) -> Callable[..., None]:
    WRONG.append(function)
    return function


# ---------------------------------------------------------------------------------------------------------------------
# Attributes


class Slots:
    __slots__ = ("__hidden", "shown")

    def __init__(self) -> None:
        self.__hidden, self.shown = 0, [0]

    def step(self) -> int:
        self.__hidden += 1  # wrong: s._Slots__hidden
        return self.__hidden


@wrong
def mangled_slot(n: u32, x: Ptr[u32]):
    s = Slots()
    with loop(n) as i:
        x[i] = s.step()  # in: step


class Config:
    count = 0
    table: dict[str, int] = {}

    def __init__(self) -> None:
        self._size = 1
        self.limits = [4, 5]

    def resize(self, value: int) -> None:
        self._size = value  # wrong: cfg._size

    size = property(lambda self: self._size, resize)

    def note(self) -> None:
        Config.count += 1  # wrong: Config.count

    @classmethod
    def register(cls, name: str) -> None:
        cls.table[name] = 1  # wrong: Config.table['k']


@wrong
def property_with_a_backing_field(n: u32, x: Ptr[u32]):
    cfg = Config()
    with when(n < 3):
        cfg.size = 7  # in: resize
    x[0] = cfg.size


@wrong
def class_attribute(n: u32, x: Ptr[u32]):
    cfg = Config()
    with when(n < 3):
        cfg.note()  # in: note
    x[0] = cfg.count
    Config.count = 0


@wrong
def class_attribute_by_name(n: u32, x: Ptr[u32]):
    with when(n < 3):
        Config.count = 9  # wrong: Config.count
    x[0] = Config.count


@wrong
def class_table(n: u32, x: Ptr[u32]):
    Config.table.clear()
    with when(n < 3):
        Config.register("k")  # in: register
    x[0] = len(Config.table)


@wrong
def attribute_of_an_element(n: u32, x: Ptr[u32]):
    cfg = Config()
    with when(n < 3):
        cfg.limits[0] = 5  # wrong: cfg.limits[0]
    x[0] = cfg.limits[0]


@wrong
def set_by_setattr(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace(a=1, b=2)
    with when(n < 3):
        cfg2 = types.SimpleNamespace(a=1)
        cfg2.a = 4
        setattr(cfg, "a", 5)  # wrong: cfg.a
    x[0] = cfg.a


@wrong
def new_attribute(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace()
    with when(n < 3):
        cfg.seen = True  # wrong: cfg.seen
    x[0] = int(hasattr(cfg, "seen"))


@wrong
def deleted_attribute(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace(seen=1)
    with when(n < 3):
        del cfg.seen  # wrong: cfg.seen
    x[0] = getattr(cfg, "seen", 3)


@wrong
def attributes_by_the_dict(n: u32, x: Ptr[u32]):
    cfg = Config()
    with when(n < 3):
        cfg.__dict__["_size"] = 5  # wrong: cfg._size
    x[0] = cfg.size


@wrong
def function_attribute(n: u32, x: Ptr[u32]):
    def helper() -> int:
        helper.calls += 1  # wrong: helper.calls
        return helper.calls

    helper.calls = 0
    with loop(n) as i:
        x[i] = helper()


@wrong
def default_argument(n: u32, x: Ptr[u32]):
    def helper(seen: list[int] = []) -> int:
        seen.append(1)  # wrong: helper.__defaults__[0]
        return len(seen)

    with loop(n) as i:
        x[i] = helper()


@wrong
def keyword_default(n: u32, x: Ptr[u32]):
    def helper(*, state: dict[str, int] = {"k": 0}) -> int:
        state["k"] += 1  # wrong: helper.__kwdefaults__['state']['k']
        return state["k"]

    with loop(n) as i:
        x[i] = helper()


@dataclasses.dataclass
class Point:
    at: int = 0
    path: list[int] = dataclasses.field(default_factory=list)


@wrong
def dataclass_in_a_tuple(n: u32, x: Ptr[u32]):
    pair = (Point(), Point())
    with when(n < 3):
        pair[1].at = 4  # wrong: pair[1].at
    x[0] = pair[1].at


@wrong
def dataclass_list(n: u32, x: Ptr[u32]):
    points = {"a": Point()}
    with when(n < 3):
        points["a"].path.append(4)  # wrong: points['a'].path
    x[0] = sum(points["a"].path)


# ---------------------------------------------------------------------------------------------------------------------
# Globals and closures

TODO = [1, 2, 3]
TABLE: dict[str, int] = {}
TOTAL = 0


def take() -> int:
    return TODO.pop()  # wrong: TODO


def bump() -> None:
    global TOTAL
    TOTAL = TOTAL + 1  # wrong: TOTAL


def total() -> int:
    return TOTAL


@wrong
def module_list(n: u32, x: Ptr[u32]):
    TODO[:] = [1, 2, 3]
    with loop(n) as i:
        x[i] = take()  # in: take


@wrong
def module_list_by_name(n: u32, x: Ptr[u32]):
    TODO[:] = [1, 2, 3]
    with when(n < 3):
        TODO[0] = 5  # wrong: TODO[0]
    x[0] = TODO[0]


@wrong
def module_dict_read_by_a_helper(n: u32, x: Ptr[u32]):
    def size() -> int:
        return len(TABLE)

    TABLE.clear()
    with when(n < 3):
        TABLE["k"] = 5  # wrong: TABLE['k']
    x[0] = size()


@wrong
def global_rebound_by_a_helper(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        bump()  # in: bump
        x[i] = TOTAL


@wrong
def global_read_by_a_helper(n: u32, x: Ptr[u32]):
    with when(n < 3):
        bump()  # in: bump
    x[0] = total()


def counter_elsewhere() -> Callable[[], int]:
    count = 0

    def count_up() -> int:
        nonlocal count
        count += 1  # wrong: count
        return count

    return count_up


@wrong
def cell_of_a_helper_made_elsewhere(n: u32, x: Ptr[u32]):
    step = counter_elsewhere()
    with loop(n) as i:
        x[i] = step()  # in: count_up


@wrong
def name_read_by_an_inner_function(n: u32, x: Ptr[u32]):
    k = 1

    def scaled() -> Any:
        return n * k

    with when(n < 3):
        k = 2  # wrong: k
    x[0] = scaled()


@wrong
def name_read_in_an_except_block(n: u32, x: Ptr[u32]):
    k = 1
    with when(n < 3):
        k = 2  # wrong: k
    try:
        raise KeyError
    except KeyError:
        x[0] = k


@wrong
def name_read_in_finally(n: u32, x: Ptr[u32]):
    k = 1
    try:
        with when(n < 3):
            k = 2  # wrong: k
    finally:
        x[0] = k


@wrong
def name_read_in_a_comprehension(n: u32, x: Ptr[u32]):
    k = 1
    with when(n < 3):
        k = 2  # wrong: k
    x[0] = sum([k for _ in range(2)])


def one(n: Any) -> Any:
    return n + 1


def two(n: Any) -> Any:
    return n + 2


@wrong
def function_rebound(n: u32, x: Ptr[u32]):
    f = one
    with when(n < 3):
        f = two  # wrong: f
    x[0] = f(n)


@wrong
def class_rebound(n: u32, x: Ptr[u32]):
    kind = Point
    with when(n < 3):
        kind = Config  # wrong: kind
    x[0] = len(kind.__name__)


@wrong
def lambda_rebound(n: u32, x: Ptr[u32]):
    f = lambda: 1  # noqa: E731
    with when(n < 3):
        f = lambda: 2  # wrong: f  # noqa: E731
    x[0] = f()


@wrong
def partial_rebound(n: u32, x: Ptr[u32]):
    f = functools.partial(max, 1)
    with when(n < 3):
        f = functools.partial(max, 2)  # wrong: f
    x[0] = f(0)


@pytest.mark.parametrize("function", WRONG, ids=lambda function: function.__name__)
def test_wrong(function: Callable[..., None]) -> None:
    error = refused(function)
    assert isinstance(error, LostUpdateError), error
    assert error.loc is not None
    assert (error.loc.line, error.message.split("`")[1]) == marked(function)
