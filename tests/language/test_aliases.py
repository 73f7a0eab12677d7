"""Rule R3 wherever Python keeps a register: programs that must be refused, at the line of the change, and right ones.

Each wrong program has one line with `# wrong`: that of the change. A right program gives the numbers that it says.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import itertools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from ptxdsl import (
    AliasError, Ptr, label, loop, otherwise, pred, ptx, ptx_kernel, reg, select, u32, u64, when,
)

KEPT: Any = types.SimpleNamespace()
STACK: list[Any] = []


@dataclasses.dataclass
class State:
    best: Any
    at: Any = 0


class Slots:
    __slots__ = ("__hidden",)

    def __init__(self, hidden: Any) -> None:
        self.__hidden = hidden

    def read(self) -> Any:
        return self.__hidden + 0


class Backed:
    def __init__(self, best: Any) -> None:
        self._best = best

    @property
    def best(self) -> Any:
        return self._best


class Shared:
    best: Any = None


class Counter:
    """An object with registers that its methods change."""

    def __init__(self, start: Any) -> None:
        self.total, self.last = reg(u32, start), reg(u32, 0)

    def add(self, x: Any) -> Counter:
        self.last.set(x)
        self.total += x
        return self

    def both(self) -> Any:
        return self.total + self.last


class Group:
    """An object that has its registers by name and in a list, and keeps what it should not."""

    def __init__(self, x: Any) -> None:
        self.a, self.b = reg(u32, x), reg(u32, x)
        self.all, self.history = [self.a, self.b], []

    def clear(self) -> None:
        for r in self.all:
            r.set(0)

    def step(self) -> None:
        self.history.append(self.a)
        self.a += 1  # wrong

    def total(self) -> Any:
        return self.a + self.b


def bump(r: Any, x: Any = 1) -> Any:
    r += x
    return r


def show(r: Any) -> Any:
    return r + 0


def read_global() -> Any:
    return STACK[-1] + 0


def capture(r: Any) -> Callable[[], Any]:
    return lambda: r + 0


def later(r: Any) -> Iterator[Any]:
    yield 0
    yield r + 0


def sums(r: Any, x: Any) -> Iterator[int]:
    for k in range(3):
        r += x
        yield k


@contextlib.contextmanager
def written(out: Any, r: Any) -> Iterator[None]:
    r.set(5)
    yield
    out[0] = r


# ---------------------------------------------------------------------------------------------------------------------
# Wrong


def in_tuple(out: Any, x: Any) -> None:
    best, at = reg(u32, x), reg(u32, 0)
    before = (best, at)
    best += 5  # wrong
    out[0] = before[0]


def in_list(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = [best]
    best.set(5)  # wrong
    out[0] = before[0]


def in_dict(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = {"best": best}
    best += 5  # wrong
    out[0] = before["best"]


def in_dict_of_lists(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = {"all": [[best]]}
    best += 5  # wrong
    out[0] = before["all"][0][0]


def in_context_variable(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before: Any = contextvars.ContextVar("before")
    before.set(best)
    best += 5  # wrong
    out[0] = before.get()


def in_set(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = collections.deque([best])
    best += 5  # wrong
    out[0] = before.pop()


def in_deep_list(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before: Any = best
    for _ in range(40):
        before = [before]
    best += 5  # wrong
    for _ in range(40):
        before = before[0]
    out[0] = before


def in_dataclass(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = State(best)
    best += 5  # wrong
    out[0] = before.best


def in_replaced_dataclass(out: Any, x: Any) -> None:
    state = State(reg(u32, x))
    before = dataclasses.replace(state)
    state.best += 5  # wrong
    out[0] = before.best


def in_named_tuple(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = collections.namedtuple("Pair", "best at")(best, 0)  # noqa: PYI024
    best += 5  # wrong
    out[0] = before.best


def in_slots(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = Slots(best)
    best += 5  # wrong
    out[0] = before.read()


def in_property(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = Backed(best)
    best += 5  # wrong
    out[0] = before.best


def in_class(out: Any, x: Any) -> None:
    best = reg(u32, x)
    Shared.best = best
    best += 5  # wrong
    out[0] = Shared.best


def in_class_of_instance(out: Any, x: Any) -> None:
    best = reg(u32, x)
    Shared.best = best
    before = Shared()
    best += 5  # wrong
    out[0] = before.best


def in_global_object(out: Any, x: Any) -> None:
    best = reg(u32, x)
    KEPT.best = best
    best += 5  # wrong
    out[0] = KEPT.best


def in_global_of_helper(out: Any, x: Any) -> None:
    best = reg(u32, x)
    STACK.append(best)
    best += 5  # wrong
    out[0] = read_global()


def in_closure(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = capture(best)
    best += 5  # wrong
    out[0] = before()


def in_closure_of_same_name(out: Any, x: Any) -> None:
    def make(best: Any) -> Any:
        return lambda: best + 0

    best = reg(u32, x)
    before = make(best)
    best += 5  # wrong
    out[0] = before()


def in_captured_name(out: Any, x: Any) -> None:
    best = reg(u32, x)
    old = best

    def before() -> Any:
        return old + 0

    best += 5  # wrong
    out[0] = before()


def in_default(out: Any, x: Any) -> None:
    best = reg(u32, x)

    def before(r: Any = best) -> Any:
        return r + 0

    best += 5  # wrong
    out[0] = before()


def in_keyword_default(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = lambda *, r=best: r + 0  # noqa: E731
    best += 5  # wrong
    out[0] = before()


def in_function_attribute(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before: Any = capture(0)
    before.best = best
    best += 5  # wrong
    out[0] = before.best


def in_partial(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = functools.partial(show, best)
    best += 5  # wrong
    out[0] = before()


def in_partial_keyword(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = functools.partial(show, r=best)
    best += 5  # wrong
    out[0] = before()


def in_bound_method(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = best.copy
    best += 5  # wrong
    out[0] = before()


def in_bound_method_of_holder(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = Slots(best).read
    best += 5  # wrong
    out[0] = before()


def in_generator(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = later(best)
    next(before)
    best += 5  # wrong
    out[0] = next(before)


def in_generator_expression(out: Any, x: Any) -> None:
    best, at = reg(u32, x), reg(u32, 0)
    before = (r + 0 for r in (best, at))
    best += 5  # wrong
    out[0] = next(before)


def in_iterator(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = itertools.cycle([best])
    best += 5  # wrong
    out[0] = next(before)


def in_comprehension(out: Any, x: Any) -> None:
    regs = [reg(u32, x) for _ in range(3)]
    before = [r for r in regs]  # noqa: C416
    regs[0] += 5  # wrong
    out[0] = before[0]


def in_slice(out: Any, x: Any) -> None:
    regs = [reg(u32, x) for _ in range(3)]
    before = regs[:2]
    for r in regs:
        r += 5  # wrong
    out[0] = before[1]


def in_array_of_objects(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = np.empty(1, dtype=object)
    before[0] = best
    best += 5  # wrong
    out[0] = before[0]


def in_weak_reference(out: Any, x: Any) -> None:
    state = State(reg(u32, x))
    best = reg(u32, x)
    state.best = best
    before = weakref.ref(state)
    best += 5  # wrong
    out[0] = before().best  # type: ignore[union-attr]


def changed_in_helper(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = (best, 1)
    bump(best, x)  # wrong
    out[0] = before[0]


def helper_given_both(out: Any, x: Any) -> None:
    def both(r: Any, pair: Any) -> Any:
        r += 5  # wrong
        return pair[0]

    best = reg(u32, x)
    out[0] = both(best, (best, 0))


def changed_as_output(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = (best,)
    ptx.add.u32(best, 1, out=best)  # wrong
    out[0] = before[0]


def changed_by_atomic(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = [best]
    ptx.atom.global_.add.u32(out, 1, out=best)  # wrong
    out[0] = before[0]


def changed_by_load(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = [best]
    out.load(0, out=best)  # wrong
    out[0] = before[0]


def at_same_place_later(out: Any, x: Any) -> None:
    best, before = reg(u32, x), []
    for k in range(4):
        if k == 2:
            before.append(best)
        best += 1  # wrong
    out[0] = before[0]


def at_same_place_in_helper(out: Any, x: Any) -> None:
    def change(r: Any) -> None:
        r += 1

    one, two = State(reg(u32, x)), reg(u32, x)
    taken = one.best
    before = (two,)
    for r in (taken, two):
        change(r)  # wrong
    out[0] = before[0] + taken


def another_holder_gone(out: Any, x: Any) -> None:
    best, spare, before = reg(u32, x), [], []
    spare.append(best)
    for k in range(2):
        if k:
            before.append(spare.pop())
        best += 1  # wrong
    out[0] = before[0]


def used_in_next_iteration(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = (best,)
    with loop(2):
        out[0] = before[0]
        best += 1  # wrong


def pointer_cast(out: Any, x: Any) -> None:
    p = reg(out)
    q = p.cast(u32)
    p += 1  # wrong
    q[0] = x


def pointer_cast_in_loop(out: Any, x: Any) -> None:
    p = reg(out)
    q = p.cast(u32)
    with loop(3):
        q[0] = x
        p += 1  # wrong


def pointer_generic(out: Any, x: Any) -> None:
    p = reg(out)
    q = p.generic()
    p.set(out + 1)  # wrong
    q[0] = x


def pointer_offset_of_cast(out: Any, x: Any) -> None:
    p = reg(out)
    q = p.cast(u32) + 1
    p -= 1  # wrong
    q[0] = x


def pointer_in_tuple(out: Any, x: Any) -> None:
    p = reg(out)
    before = (p.cast(u32), 0)
    p += 1  # wrong
    before[0][0] = x


def part_of_reg(out: Any, x: Any) -> None:
    best = reg(u32, x)
    low = best.part("h0")
    best += 5  # wrong
    out[0] = ptx.vadd.u32.u32.u32(low, 0)


def in_history_of_object(out: Any, x: Any) -> None:
    group = Group(x)
    group.all = []
    group.step()  # wrong
    out[0] = group.history[0]


def in_old_loop_variable(out: Any, x: Any) -> None:
    best = reg(u32, x)
    for old in [best]:
        best += 5  # wrong
        out[0] = old


def in_returned_pair(out: Any, x: Any) -> None:
    state = State(reg(u32, x))
    before = (lambda s: (s.best, s.at))(state)
    state.best += 5  # wrong
    out[0] = before[0]


def in_enum(out: Any, x: Any) -> None:
    best = reg(u32, x)
    kept = type("Kept", (), {"best": best})
    best += 5  # wrong
    out[0] = kept().best


def in_exception(out: Any, x: Any) -> None:
    best = reg(u32, x)
    before = ValueError(best)
    best += 5  # wrong
    out[0] = before.args[0]


def output_that_was_named(out: Any, x: Any) -> None:
    best = reg(u32, x)
    more = ptx.add.u32(best, 1, out=best)
    best += 5  # wrong
    out[0] = more


def loop_made_before(out: Any, x: Any) -> None:
    n = reg(u32, x)
    rows = loop(n)
    n += 5  # wrong
    with rows as i:
        out[0] = i


def loop_step_made_before(out: Any, x: Any) -> None:
    n = reg(u32, 1)
    rows = [loop(0, x, n)]
    n += 5  # wrong
    with rows[0] as i:
        out[0] = i


def when_made_before(out: Any, x: Any) -> None:
    p = reg(pred, True)
    block = when(p)
    p.set(x > 5)  # wrong
    with block:
        out[0] = x


# ---------------------------------------------------------------------------------------------------------------------
# Right: what the kernel stores for x = 3


def r_tuple_not_used_again(out: Any, x: Any) -> int:
    best, at = reg(u32, x), reg(u32, 0)
    pair = (best, at)
    a, b = pair
    a += 5
    b += 1
    out[0] = a + b
    return 9


def r_copies(out: Any, x: Any) -> int:
    best, at = reg(u32, x), reg(u32, 7)
    before = (best.copy(), at.copy())
    best += 5
    out[0] = best * 100 + before[0]
    return 803


def r_swap(out: Any, x: Any) -> int:
    a, b = reg(u32, x), reg(u32, 1)
    old = a.copy()
    a.set(b)
    b.set(old)
    out[0] = a * 10 + b
    return 13


def r_rotated_names(out: Any, x: Any) -> int:
    a, b = reg(u32, x), reg(u32, 1)
    a, b = b, a
    a += 1
    out[0] = a * 10 + b
    return 23


def r_list_in_loop(out: Any, x: Any) -> int:
    acc = [reg(u32, k) for k in range(4)]
    with loop(x):
        for k in range(4):
            acc[k] += k
        for r in acc:
            r += 1
    out[0] = acc[0] + acc[3]
    return 18


def r_enumerate(out: Any, x: Any) -> int:
    acc = [reg(u32, 0) for _ in range(3)]
    for k, (r, s) in enumerate(itertools.pairwise(acc)):
        s.set(x + k)
        r += 1
    out[0] = acc[0] + acc[1] + acc[2]
    return 9


def r_grouped_for_a_loop(out: Any, x: Any) -> int:
    low, high = reg(u32, x), reg(u32, 0)
    for r in (low, high):
        r += 1
    for r in [low, high]:
        r += x
    out[0] = low * 10 + high
    return 74


def r_dict(out: Any, x: Any) -> int:
    state = {"a": reg(u32, x), "b": reg(u32, 0)}
    state["a"] += 1
    for name in state:
        state[name] += 1
    a = state["a"]
    a += 1
    out[0] = state["a"] * 10 + state["b"]
    return 61


def r_helper(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    with loop(x) as i:
        bump(acc, i)
        bump(bump(acc))
    out[0] = acc
    return 9


def r_helper_of_element(out: Any, x: Any) -> int:
    regs = [reg(u32, 0), reg(u32, x)]
    bump(regs[0], x)
    bump(regs[1])
    out[0] = regs[0] * 10 + regs[1]
    return 34


def r_object(out: Any, x: Any) -> int:
    counter = Counter(1)
    with loop(x) as i:
        counter.add(i).add(1)
    total = counter.total
    total += 1
    out[0] = counter.both()
    return 9


def r_object_with_a_group(out: Any, x: Any) -> int:
    group = Group(x)
    group.clear()
    out[0] = group.total() + 1
    return 1


def r_arguments(out: Any, x: Any) -> int:
    def step(*regs: Any, **named: Any) -> None:
        for r in regs:
            r += 1
        named["acc"] += x

    a, b, c = reg(u32, x), reg(u32, x), reg(u32, 0)
    step(a, b, acc=c)
    out[0] = a * 100 + b * 10 + c
    return 443


def r_rows(out: Any, x: Any) -> int:
    acc = [[reg(u32, 0) for _ in range(2)] for _ in range(2)]
    with loop(x):
        for i in range(2):
            row = acc[i]
            for j in range(2):
                row[j] += i + j
    out[0] = acc[1][1]
    return 6


def r_dataclass_handed_on(out: Any, x: Any) -> int:
    def step(state: State) -> State:
        state.best += 1
        with when(state.best > 2):
            state.at.set(state.best)
        return state

    state = State(reg(u32, 0), reg(u32, 0))
    for _ in range(3):
        state = step(state)
    out[0] = state.best * 10 + state.at
    return 33


def r_attribute_beside_another(out: Any, x: Any) -> int:
    best = reg(u32, x)
    state = State(best, 4)
    best += 1
    out[0] = best * 10 + state.at
    return 44


def r_flattened(out: Any, x: Any) -> int:
    acc = [[reg(u32, x) for _ in range(2)] for _ in range(2)]
    flat = [r for row in acc for r in row]
    for r in flat:
        r += 1
    more = []
    for row in acc:
        for r in row:
            more.append(r)  # noqa: PERF402
    for r in more:
        r += 1
    out[0] = acc[1][1] + acc[0][0]
    return 10


def r_other_element(out: Any, x: Any) -> int:
    best = reg(u32, x)
    pair = (best, 4)
    best += 1
    out[0] = best * 10 + pair[1]
    return 44


def r_closure(out: Any, x: Any) -> int:
    best = reg(u32, x)

    def raise_to(v: Any) -> None:
        with when(best < v):
            best.set(v)

    def read() -> Any:
        return best + 0

    raise_to(5)
    best += 1
    raise_to(4)
    out[0] = read() * 10 + best
    return 66


def r_nonlocal(out: Any, x: Any) -> int:
    best = reg(u32, x)

    def step() -> None:
        nonlocal best
        best += 1

    step()
    best += 1
    step()
    out[0] = best
    return 6


def r_lambda(out: Any, x: Any) -> int:
    best = reg(u32, x)
    step = lambda: bump(best, 2)  # noqa: E731
    step()
    best += 1
    step()
    out[0] = best
    return 8


def r_generator(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    for k in sums(acc, x):
        acc += k
    out[0] = acc
    return 12


def r_generator_by_hand(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    steps = sums(acc, x)
    next(steps)
    next(steps)
    out[0] = acc
    return 6


def r_context_manager(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    with written(out, acc):
        acc += x
    return 8


def r_partial_that_changes(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    step = functools.partial(bump, acc)
    step(x)
    step(x)
    out[0] = acc
    return 6


def r_method_that_sets(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    put = acc.set
    put(x)
    acc += 1
    put(acc + 1)
    out[0] = acc
    return 5


def r_local_function_with_default(out: Any, x: Any) -> int:
    acc = reg(u32, 0)

    def step(v: Any, r: Any = acc) -> None:
        r += v

    step(x)
    step(1)
    out[0] = acc
    return 4


def r_comprehension(out: Any, x: Any) -> int:
    acc = [reg(u32, x) for _ in range(3)]
    [r.set(k) for k, r in enumerate(acc)]
    values = [r + 0 for r in acc]
    acc[2] += 1
    out[0] = values[2] * 10 + acc[2]
    return 23


def r_global_list(out: Any, x: Any) -> int:
    STACK.append(reg(u32, x))
    STACK[-1] += 1
    top = STACK[-1]
    top += 1
    out[0] = STACK[-1]
    return 5


def r_two_lists_one_object(out: Any, x: Any) -> int:
    acc = [reg(u32, x)]
    same = acc
    same[0] += 1
    acc[0] += 1
    out[0] = same[0]
    return 5


def r_select_and_bits(out: Any, x: Any) -> int:
    best = reg(u32, x)
    bits, chosen, same = best.bits(u32), select(x > 1, best, 0), best.to(u32)
    inverted, plus = ~best, +best
    best += 5
    out[0] = bits + chosen + same + inverted + plus
    return 8


def r_pointer(out: Any, x: Any) -> int:
    p = reg(out)
    q, r = p + 1, p.copy().cast(u32)
    p += 2
    p.cast(u32)[0] = 9
    p -= 1
    q[0] = 8
    r[0] = x
    return 3


def r_pointers_in_loop(out: Any, x: Any) -> int:
    p, end = reg(out), out + 3
    with loop(x):
        row = p.cast(u32)
        row[0] = 7
        p += 1
    with when(p == end):
        out[0] = 4
    with otherwise():
        out[0] = 5
    return 4


def r_pointer_in_object(out: Any, x: Any) -> int:
    cursor = types.SimpleNamespace(p=reg(out), left=reg(u32, x))
    with loop(x):
        cursor.p[0] = cursor.left
        cursor.p += 1
        cursor.left -= 1
    return 3


def r_parts(out: Any, x: Any) -> int:
    acc = reg(u32, 0)
    low, high = acc.part("h0"), acc.part("h1")
    ptx.vadd.u32.u32.u32(x, 1, acc, out=low)
    ptx.vadd.u32.u32.u32(x, 2, acc, out=high)
    out[0] = acc
    return 0x50004


def r_blocks(out: Any, x: Any) -> int:
    n, p = reg(u32, x), reg(pred, True)
    n += 1
    rows, block = loop(n), when(p)
    with rows:
        out[0] += 2
    n += 1
    with block:
        p.set(x > 9)
        out[0] += n
    return 13


def r_label(out: Any, x: Any) -> int:
    n = reg(u32, 0)
    top = label()
    n += 1
    ptx.bra(top, pred=n < 5)
    out[0] = n
    return 5


def r_wide(out: Any, x: Any) -> int:
    regs = [reg(u64, k) for k in range(40)]
    total = reg(u64, 0)
    for r in regs:
        r += 1
        total += r
    out[0] = total.to(u32)
    return 820


PROGRAMS = [value for value in list(globals().values()) if inspect.isfunction(value) and value.__module__ == __name__]
WRONG = [program for program in PROGRAMS if "# wrong\n" in inspect.getsource(program)]
RIGHT = [program for program in PROGRAMS if program.__name__.startswith("r_")]


def _kernel(program: Callable[[Any, Any], Any]) -> Any:
    def kernel(out: Ptr[u32], x: u32) -> None:
        program(out, x)

    return ptx_kernel(kernel)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    yield
    STACK.clear()
    Shared.best = KEPT.best = None


@pytest.mark.parametrize("program", WRONG, ids=lambda f: f.__name__)
def test_wrong(program: Callable[[Any, Any], None]) -> None:
    with pytest.raises(AliasError) as caught:
        _kernel(program).ptx()
    lines, first = inspect.getsourcelines(program)
    assert caught.value.loc is not None
    assert "# wrong" in lines[caught.value.loc.line - first]
    assert ".copy()" in str(caught.value.hint)


@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_right(program: Callable[[Any, Any], int]) -> None:
    wanted: list[int] = []
    out = np.zeros(16, np.uint32)
    _kernel(lambda out, x: wanted.append(program(out, x)))[1, 1](out, 3)
    assert int(out[0]) == wanted[0]


@pytest.mark.parametrize(("program", "message", "hint"), [
    (in_tuple, "`best` and `before[0]` hold the same reg, and this changes both",
     "keep the values apart: `before = [r.copy() for r in ...]`, or a `reg` for each"),
    (in_partial, "`best` and `before.args[0]` hold the same reg, and this changes both",
     "give `before` a copy, `best.copy()`, or the variable itself: `lambda: ... best ...`"),
    (in_closure, "`best` and `r` hold the same reg, and this changes both",
     "give `before` a copy, `best.copy()`, or the variable itself: `lambda: ... best ...`"),
    (pointer_cast, "`p` and `q` hold the same reg, and this changes both",
     "keep the old value apart: `q = p.copy().cast(u32)`"),
    (part_of_reg, "`best` and `low` hold the same reg, and this changes both",
     'keep the old value apart: `low = best.copy().part("h0")`'),
    (when_made_before, "the `when` of line {line} was made of this reg and is not entered yet",
     "write `with when(p):` where it is entered, or give it a `.copy()`"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_words(program: Callable[[Any, Any], None], message: str, hint: str) -> None:
    with pytest.raises(AliasError) as caught:
        _kernel(program).ptx()
    line = inspect.getsourcelines(program)[1] + 2
    assert (caught.value.message, caught.value.hint) == (message.format(line=line), hint)
