"""Rule R2: state that a region changes and somebody reads afterwards, wherever Python keeps it.

Each program is wrong. The line that changes the state is marked with how the state is written.
"""

from __future__ import annotations

import array
import bisect
import collections
import contextlib
import ctypes
import dataclasses
import functools
import heapq
import itertools
import operator
import random
import types
from pathlib import Path
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tracing_helpers import refused

from ptxdsl import LostUpdateError, Ptr, label, loop, otherwise, ptx, reg, u32, when

# ruff: noqa: B006, B010, PLW0603, RUF012

WRONG: list[Callable[..., None]] = []


def wrong(function: Callable[..., None]) -> Callable[..., None]:
    WRONG.append(function)
    return function


# ---------------------------------------------------------------------------------------------------------------------
# Containers that grow, shrink or are put in another order


@wrong
def append_in_when(n: u32, x: Ptr[u32]):
    seen = []
    with when(n < 3):
        seen.append(1)  # wrong: seen
    x[0] = len(seen)


@wrong
def append_of_a_value(n: u32, x: Ptr[u32]):
    seen = []
    with when(n < 3):
        seen.append(n + 1)  # wrong: seen
    x[0] = len(seen)


@wrong
def pop_in_loop(n: u32, x: Ptr[u32]):
    todo = [1, 2, 3]
    with loop(n) as i:
        x[i] = todo.pop()  # wrong: todo


@wrong
def new_key(n: u32, x: Ptr[u32]):
    found = {}
    with when(n < 3):
        found["a"] = 1  # wrong: found['a']
    x[0] = 1 if "a" in found else 2


@wrong
def deleted_key(n: u32, x: Ptr[u32]):
    found = {"a": 1}
    with when(n < 3):
        del found["a"]  # wrong: found['a']
    x[0] = len(found)


@wrong
def set_element(n: u32, x: Ptr[u32]):
    lanes = {1, 2}
    with when(n < 3):
        lanes.add(7)  # wrong: lanes
    x[0] = max(lanes)


@wrong
def discarded_element(n: u32, x: Ptr[u32]):
    lanes = {1, 2}
    with when(n < 3):
        lanes.discard(2)  # wrong: lanes
    for lane in lanes:
        x[lane] = n


@wrong
def reversed_list(n: u32, x: Ptr[u32]):
    order = [1, 2, 3]
    innocent = [0]
    with loop(n) as i:
        innocent2 = [0]
        innocent2[0] = 2
        x[i] = order[0]
        order.reverse()  # wrong: order[0]
        x[i + 1] = innocent[0]


@wrong
def rotated_deque(n: u32, x: Ptr[u32]):
    ring = collections.deque([1, 2, 3])
    with loop(n) as i:
        x[i] = ring[0]
        ring.rotate(1)  # wrong: ring[0]


@wrong
def sorted_in_place(n: u32, x: Ptr[u32]):
    order = [3, 1, 2]
    with when(n < 3):
        order.sort()  # wrong: order[0]
    x[0] = order[0]


@wrong
def cleared(n: u32, x: Ptr[u32]):
    todo = [3, 1, 2]
    with when(n < 3):
        todo.clear()  # wrong: todo
    for k in todo:
        x[k] = n


@wrong
def inserted(n: u32, x: Ptr[u32]):
    todo = [3]
    with otherwise_of(n):
        todo.insert(0, 1)  # wrong: todo
    x[0] = todo[-1] + len(todo)


@contextlib.contextmanager
def otherwise_of(n: Any) -> Iterator[None]:
    with when(n > 5):
        ptx.bar.sync(0)
    with otherwise():
        yield


@wrong
def extended_in_place(n: u32, x: Ptr[u32]):
    todo = [3]
    same = todo
    with when(n < 3):
        same += [4]  # wrong: todo
    x[0] = len(todo)


@wrong
def slice_assigned(n: u32, x: Ptr[u32]):
    todo = [3, 4, 5]
    with when(n < 3):
        todo[1:] = []  # wrong: todo
    x[0] = len(todo)


@wrong
def moved_to_the_end(n: u32, x: Ptr[u32]):
    table = collections.OrderedDict(a=1, b=2)
    with loop(n) as i:
        x[i] = next(iter(table.values()))
        table.move_to_end("a")  # wrong: table


@wrong
def defaultdict_read(n: u32, x: Ptr[u32]):
    table = collections.defaultdict(int)
    with when(n < 3):
        x[0] = table["k"]  # wrong: table['k']
    x[1] = len(table)


@wrong
def counted(n: u32, x: Ptr[u32]):
    table = collections.Counter()
    with when(n < 3):
        table.update("a")  # wrong: table['a']
    x[1] = table["a"]


@wrong
def pushed_on_a_heap(n: u32, x: Ptr[u32]):
    heap = [5]
    with when(n < 3):
        heapq.heappush(heap, 1)  # wrong: heap
    x[1] = heap[0] + len(heap)


@wrong
def inserted_by_bisect(n: u32, x: Ptr[u32]):
    order = [5]
    with when(n < 3):
        bisect.insort(order, 1)  # wrong: order
    x[1] = order[0] + len(order)


@wrong
def set_by_operator(n: u32, x: Ptr[u32]):
    order = [5]
    with when(n < 3):
        operator.setitem(order, 0, 1)  # wrong: order[0]
    x[1] = order[0]


@wrong
def shuffled(n: u32, x: Ptr[u32]):
    order = list(range(50))
    with when(n < 3):
        random.Random(3).shuffle(order)  # wrong: order[0]
    x[1] = order[0]


@wrong
def nested_deeply(n: u32, x: Ptr[u32]):
    tree = [[[[[[[[[1]]]]]]]]]
    with when(n < 3):
        tree[0][0][0][0][0][0][0][0][0] = 2  # wrong: tree[0][0][0][0][0][0][0][0][0]
    x[1] = tree[0][0][0][0][0][0][0][0][0]


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


# ---------------------------------------------------------------------------------------------------------------------
# Iterators, buffers, numbers of other libraries


@wrong
def generator(n: u32, x: Ptr[u32]):
    def numbers() -> Iterator[int]:
        yield from range(10)

    g = numbers()
    with loop(n) as i:
        x[i] = next(g)  # wrong: g


@wrong
def cycle(n: u32, x: Ptr[u32]):
    turns = itertools.cycle([1, 2, 3])
    with loop(n) as i:
        x[i] = next(turns)  # wrong: turns


@wrong
def count(n: u32, x: Ptr[u32]):
    numbers = itertools.count()
    with loop(n) as i:
        x[i] = next(numbers)  # wrong: numbers


@wrong
def list_iterator(n: u32, x: Ptr[u32]):
    rest = iter([1, 2, 3])
    with when(n < 2):
        x[0] = next(rest)  # wrong: rest
    x[1] = next(rest)


@wrong
def enumeration(n: u32, x: Ptr[u32]):
    rest = enumerate("abc")
    with when(n < 2):
        next(rest)  # wrong: rest
    for k, _ in rest:
        x[k] = n


@wrong
def random_numbers(n: u32, x: Ptr[u32]):
    rng = random.Random(1)
    with loop(n) as i:
        x[i] = int(rng.random() * 10)  # wrong: rng


@wrong
def numpy_random(n: u32, x: Ptr[u32]):
    rng = np.random.default_rng(1)
    with loop(n) as i:
        x[i] = int(rng.integers(10))  # wrong: rng


@wrong
def numpy_counter(n: u32, x: Ptr[u32]):
    counts = np.zeros(4, np.int64)
    with loop(n) as i:
        counts[1] += 1  # wrong: counts
        x[i] = int(counts[1])


@wrong
def numpy_array_in_an_object(n: u32, x: Ptr[u32]):
    cfg = types.SimpleNamespace(a=np.zeros(4, np.int64))
    with when(n < 3):
        np.add.at(cfg.a, 1, 1)  # wrong: cfg.a
    x[0] = int(cfg.a[1])


@wrong
def bytes_in_a_buffer(n: u32, x: Ptr[u32]):
    flags = bytearray(4)
    with when(n < 3):
        flags[1] = 1  # wrong: flags
    x[0] = flags[1]


@wrong
def array_of_numbers(n: u32, x: Ptr[u32]):
    numbers = array.array("i", [0, 0])
    with when(n < 3):
        numbers[1] = 1  # wrong: numbers
    x[0] = numbers[1]


@wrong
def number_of_c(n: u32, x: Ptr[u32]):
    number = ctypes.c_int(3)
    with when(n < 3):
        number.value = 4  # wrong: number
    x[0] = number.value


@wrong
def label_loop(n: u32, x: Ptr[u32]):
    todo = [1, 2, 3]
    i = reg(u32, 0)
    top = label()
    x[i] = todo.pop()  # wrong: todo
    i += 1
    ptx.bra(top, pred=i < n)


@wrong
def bound_only_inside(n: u32, x: Ptr[u32]):
    with when(n < 3):
        scale = 2  # wrong: scale
    x[0] = scale


_SOURCE = Path(__file__).read_text().splitlines()


def _expected(function: Callable[..., None]) -> tuple[int, str]:
    """The marked line of a program, or of the helper that it names, and how the state is written there."""
    number = function.__code__.co_firstlineno
    while "# wrong: " not in _SOURCE[number - 1]:
        if "# in: " in _SOURCE[number - 1]:
            helper = _SOURCE[number - 1].split("# in: ")[1]
            number = next(k for k, text in enumerate(_SOURCE, 1) if text.lstrip().startswith(f"def {helper}("))
        number += 1
    return number, _SOURCE[number - 1].split("# wrong: ")[1].split("  #")[0]


@pytest.mark.parametrize("function", WRONG, ids=lambda function: function.__name__)
def test_wrong(function: Callable[..., None]) -> None:
    error = refused(function)
    line, path = _expected(function)
    assert isinstance(error, LostUpdateError), error
    assert error.loc is not None
    assert (error.loc.line, error.message.split("`")[1]) == (line, path)
