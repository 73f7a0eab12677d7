"""Rule R2: state that a region changes and somebody reads afterwards, in containers, iterators and buffers.

Each program is wrong. The line that changes the state is marked with how the state is written.
"""

from __future__ import annotations

import array
import bisect
import collections
import contextlib
import ctypes
import heapq
import itertools
import operator
import random
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tracing_helpers import marked, refused

from ptxdsl import LostUpdateError, Ptr, label, loop, otherwise, ptx, reg, u32, when



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


@pytest.mark.parametrize("function", WRONG, ids=lambda function: function.__name__)
def test_wrong(function: Callable[..., None]) -> None:
    error = refused(function)
    assert isinstance(error, LostUpdateError), error
    assert error.loc is not None
    name = error.message.split("`")[1]
    if sys.version_info >= (3, 14):
        name = name.removesuffix("[...]")  # iterators cannot be copied there: what is in them has changed
    assert (error.loc.line, name) == marked(function)
