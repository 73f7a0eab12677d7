"""Rules R1 to R6 on whole programs: the wrong ones are refused word for word, the right ones pass.

The table at the end says what each wrong program gets. All of it holds on every supported Python, whose bytecode
differs; a `with` body may stand in `exec`, doctests, helper functions, closures, generators and context managers
too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import textwrap
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest
from tracing_helpers import refused, said

import ptxdsl
from ptxdsl import (
    AliasError, ControlFlowError, EscapeError, LostUpdateError, Ptr, PtxError, break_if, f32, label, loop, otherwise,
    pred, ptx, reg, select, u32, when,
)
from ptxdsl.language import trace
from ptxdsl.language.tracing import check_source

# ---------------------------------------------------------------------------------------------------------------------
# R1: values do not leave their region


def r1_when(n: u32, x: f32):
    with when(n < 4):
        v = x + 1.0
    v * 2.0


def r1_loop_counter(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        x[i] = n
    x[0] = i


def r1_both_branches(n: u32, x: f32, y: Ptr[f32]):
    with when(n < 4):
        v = x + 1.0
    with otherwise():
        v = x + 2.0
    y[0] = v


def r1_list(n: u32, x: f32, y: Ptr[f32]):
    parts = []
    with loop(n):
        parts.append(x + 1.0)
    y[0] = parts[0]


def r1_predicate(n: u32, x: Ptr[u32]):
    with loop(n) as i:
        p = i == 3
    with when(p):
        x[0] = n


def r1_block_made_inside(n: u32, x: f32):
    with loop(n) as i:
        w = when(i < 3)
    with w:
        x * 2.0


def r1_sibling(n: u32, x: f32):
    with when(n < 4):
        v = x + 1.0
    with otherwise():
        v * 2.0


# ---------------------------------------------------------------------------------------------------------------------
# R2: updates are not lost


def r2_value(n: u32, x: f32):
    acc = x
    with loop(n):
        acc = acc + x


def r2_augmented(n: u32, x: f32):
    acc = x
    with loop(n):
        acc += x


def r2_reg(n: u32, x: f32):
    acc = reg(f32, 0.0)
    with loop(n):
        acc = acc + x


def r2_number(n: u32, x: f32):
    stage = 0
    with loop(n):
        x * float(stage)
        stage = (stage + 1) % 4


def r2_number_from_zero(n: u32, x: f32):
    count = 0
    with loop(n):
        count += 1


def r2_number_below_zero(n: u32, x: f32):
    count = -1
    with loop(n):
        count += 1


def r2_flag(n: u32, x: f32):
    first = True
    with loop(n):
        x * (1.0 if first else 2.0)
        first = False


def r2_pointer(n: u32, x: Ptr[f32]):
    with loop(n):
        x[0] = 1.0
        x = x + 4


def r2_reg_pointer(n: u32, x: Ptr[f32]):
    p = reg(x)
    with loop(n):
        p[0] = 1.0
        p = p + 4


def r2_none(n: u32, x: f32):
    prev = None
    with loop(n):
        if prev is not None:
            prev + x
        prev = x * 2.0


def r2_swap(n: u32, x: f32):
    a, b = x * 1.0, x * 2.0
    with loop(n):
        a, b = b, a


def r2_walrus(n: u32, x: f32):
    v = x
    with loop(n):
        (v := v + 1.0) * 2.0


def r2_predicate(n: u32, x: f32):
    p = n < 3
    with loop(n):
        p = p & (n < 2)


def r2_tuple(n: u32, x: f32):
    state = (x * 1.0, 0)
    with loop(n):
        v, k = state
        state = (v + x, k + 1)


def r2_when_number(n: u32, x: f32):
    scale = 1.0
    with when(n < 4):
        scale = 2.0
    x * scale


def r2_branches_number(n: u32, x: f32):
    with when(n < 4):
        scale = 2.0
    with otherwise():
        scale = 3.0
    x * scale


def r2_when_outer_value(n: u32, x: f32):
    a, b = x * 1.0, x * 2.0
    t = a
    with when(n < 3):
        t = b
    t + 1.0


def r2_when_value(n: u32, x: f32):
    v = x * 1.0
    with when(n < 2):
        v = v + 1.0
    v * 1.0


def r2_when_in_unrolled_loop(n: u32, x: f32):
    v = x * 1.0
    for _ in range(2):
        with when(n < 4):
            v = v + 1.0


def r2_when_in_loop(n: u32, x: f32):
    v = x * 2.0
    with loop(n):
        with when(n < 4):
            v = v + 1.0


def r2_read_in_next_iteration(n: u32, x: f32):
    a, t = x * 1.0, x * 2.0
    with loop(n):
        t + 1.0
        with when(n < 4):
            t = a


def r2_list(n: u32, x: f32):
    acc = [x * 1.0, x * 2.0]
    with loop(n):
        acc[0] = acc[0] + x


def r2_list_of_numbers(n: u32, x: f32):
    acc = [0.0] * 4
    with loop(n):
        for k in range(4):
            acc[k] = acc[k] + x


def r2_list_augmented(n: u32, x: f32):
    acc = [0.0] * 4
    with loop(n):
        for k in range(4):
            acc[k] += x


def r2_nested_list(n: u32, x: f32):
    acc = [[x * 1.0], [x * 2.0]]
    with loop(n):
        acc[1][0] = acc[1][0] + x


def r2_list_in_helper(n: u32, x: f32):
    def update(values: Any) -> None:
        values[0] = values[0] + x

    acc = [x * 1.0]
    with loop(n):
        update(acc)


def r2_rotation(n: u32, x: f32):
    queue = deque([x * 1.0, x * 2.0])
    with loop(n):
        queue[0] + 1.0
        queue.rotate(1)


def r2_dict(n: u32, x: f32):
    state = {"a": x}
    with loop(n):
        state["a"] = state["a"] * 2.0


def r2_object(n: u32, x: f32):
    state = types.SimpleNamespace(acc=x)
    with loop(n):
        state.acc = state.acc + x


@dataclasses.dataclass
class State:
    acc: Any
    step: int = 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    acc: Any


class Slotted:
    __slots__ = ("acc",)


def r2_dataclass(n: u32, x: f32):
    state = State(x)
    with loop(n):
        state.acc = state.acc + x


def r2_frozen_dataclass(n: u32, x: f32):
    state = Frozen(x * 1.0)
    with loop(n):
        state = dataclasses.replace(state, acc=state.acc + x)


def r2_slots(n: u32, x: f32):
    state = Slotted()
    state.acc = x
    with loop(n):
        state.acc = state.acc + x


class Pipeline:
    def __init__(self) -> None:
        self.stage = 0

    def advance(self) -> None:
        self.stage = (self.stage + 1) % 4


def r2_method(n: u32, x: f32):
    pipeline = Pipeline()
    with loop(n):
        pipeline.advance()


def r2_closure(n: u32, x: f32):
    acc = x

    def bump() -> None:
        nonlocal acc
        acc = acc + x

    with loop(n):
        bump()


def r2_loop_in_closure(n: u32, x: f32):
    acc = x

    def run() -> None:
        nonlocal acc
        with loop(n):
            acc = acc + x

    run()


def r2_helper(n: u32, x: f32):
    def run(v: Any) -> None:
        with loop(n):
            v = v + x

    run(x)


def r2_list_of_caller(n: u32, x: f32):
    def run(values: Any) -> None:
        with loop(n):
            values[0] = values[0] + x

    acc = [x * 1.0]
    run(acc)


@contextlib.contextmanager
def rows(n: Any) -> Iterator[Any]:
    with loop(n) as i:
        yield i


def r2_context_manager(n: u32, x: f32):
    acc = x
    with rows(n):
        acc = acc + x


class Rows:
    def __init__(self, n: Any) -> None:
        self.loop = loop(n)

    def __enter__(self) -> Any:
        return self.loop.__enter__()

    def __exit__(self, *error: object) -> None:
        self.loop.__exit__(*error)


def r2_context_manager_class(n: u32, x: f32):
    acc = x
    with Rows(n):
        acc = acc + x


def r2_exit_stack(n: u32, x: f32):
    acc = x
    with contextlib.ExitStack() as stack:
        stack.enter_context(loop(n))
        acc = acc + x


def r2_generator(n: u32, x: f32):
    def tiles() -> Iterator[Any]:
        with loop(n) as i:
            yield i

    acc = x
    for _ in tiles():
        acc = acc + x


def r2_label(n: u32, x: f32):
    v = x * 2.0
    top = label()
    v = v + 1.0
    ptx.bra(top, pred=v < 10.0)


TOTAL: Any = None


def r2_global(n: u32, x: f32):
    global TOTAL  # noqa: PLW0603
    TOTAL = x
    with loop(n):
        TOTAL = TOTAL + x


# ---------------------------------------------------------------------------------------------------------------------
# R3: a reg goes by one name


def r3_set(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    m.set(x)
    old + 1.0


def r3_augmented(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    m += x
    old + m


def r3_changed_by_the_second_name(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    old += x
    m + 1.0


def r3_out(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    ptx.add.f32(m, x, out=m)
    old + 1.0


def r3_set_from_the_other(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    m.set(old + x)
    old + 1.0


def r3_kept_on_the_way(n: u32, x: f32):
    m = reg(f32, 0.0)
    kept = []
    for _ in range(3):
        m.set(x)
        kept.append(m)
    kept[0] + 1.0


def r3_in_helper(n: u32, x: f32):
    def bump(r: Any) -> None:
        r += x

    m = reg(f32, 0.0)
    old = m
    bump(m)
    old + m


def r3_in_closure(n: u32, x: f32):
    m = reg(f32, 0.0)

    def bump() -> None:
        m.set(x)

    old = m
    bump()
    old + m


def r3_read_in_next_iteration(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    with loop(n):
        old + 1.0
        m.set(m + x)


def r3_element(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    first = acc[0]
    acc[0] += x
    first + 1.0


def r3_element_set(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    first = acc[0]
    acc[0].set(x)
    first + 1.0


def r3_list(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    saved = acc[:]
    acc[0] += x
    saved[0] + 1.0


def r3_list_in_loop(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    saved = list(acc)
    for r in acc:
        r += x
    saved[0] + acc[0]


def r3_repeated_list(n: u32, x: f32):
    acc = [reg(f32, 0.0)] * 4
    for r in acc:
        r += x
    acc[0] + acc[1]


def r3_slot_copied(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    acc[1] = acc[0]
    acc[0] += x
    acc[1] + 1.0


def r3_object(n: u32, x: f32):
    state = State(reg(f32, 0.0))
    old = state.acc
    state.acc.set(x)
    old + 1.0


def r3_pointer(n: u32, x: Ptr[f32]):
    p = reg(x)
    q = p
    p += 4
    q[0] = 1.0


def r3_passed_twice(n: u32, x: f32):
    def combine(into: Any, other: Any) -> Any:
        into += x
        return into + other

    m = reg(f32, 0.0)
    combine(m, m)


# ---------------------------------------------------------------------------------------------------------------------
# R4: no Python truth


def r4_if(n: u32, x: f32):
    if n < 4:
        x * 2.0


def r4_and(n: u32, x: f32):
    with when(n > 2 and n < 4):
        x * 2.0


def r4_chain(n: u32, x: f32):
    with when(2 < n < 4):
        x * 2.0


def r4_not(n: u32, x: f32):
    with when(not n < 4):
        x * 2.0


def r4_in(n: u32, x: f32):
    n in [3, 4]  # noqa: B015


def r4_range(n: u32, x: f32):
    for _ in range(n):
        x * 2.0


def r4_while(n: u32, x: f32):
    while n > 0:
        x * 2.0


def r4_conditional(n: u32, x: f32):
    x if n < 4 else x * 2.0


# ---------------------------------------------------------------------------------------------------------------------
# R5: Python statements do not leave a block


def r5_return(n: u32, x: f32):
    with when(n < 4):
        return
    x * 2.0


def r5_return_in_branch(n: u32, x: f32):
    with loop(n):
        for k in range(4):
            if k == 2:
                return
    x * 2.0


def r5_break(n: u32, x: f32):
    for _ in range(4):
        with when(n < 4):
            break


def r5_continue(n: u32, x: f32):
    for k in range(4):
        with when(n < 4):
            if k == 1:
                continue
            x * 2.0


def r5_otherwise(n: u32, x: f32):
    with when(n < 4):
        x * 2.0
    with otherwise():
        return


def r5_attribute(n: u32, x: f32):
    with ptxdsl.when(n < 4):
        return


def r5_second_item(n: u32, x: f32):
    with contextlib.nullcontext(), when(n < 4):
        return


def r5_nested_function(n: u32, x: f32):
    def helper() -> Any:
        with when(n < 4):
            return x * 2.0

    helper()


def r5_local_name(n: u32, x: f32):
    block = when
    with block(n < 4):
        return
    x * 2.0


def r5_context_manager(n: u32, x: f32):
    with rows(n):
        return
    x * 2.0


def helper_that_returns(n: Any, x: Any) -> Any:
    with loop(n) as i:
        return x * i.to(f32)


def r5_helper(n: u32, x: f32):
    helper_that_returns(n, x)


def r5_try(n: u32, x: f32):
    while True:
        with when(n < 4):
            try:
                x * 2.0
            except ValueError:
                break


# ---------------------------------------------------------------------------------------------------------------------
# Right programs


def right_temporary(n: u32, x: f32):
    t = x * 2.0
    t + 1.0
    with loop(n):
        t = x * 3.0
        t + 1.0


def right_temporary_of_a_when(n: u32, x: f32):
    v = x * 1.0
    with when(n < 3):
        v = v + 1.0
        for _ in range(3):
            v = v + 1.0


def right_loop_variable_rebound(n: u32, x: f32):
    for _ in range(2):
        with loop(n) as i:
            i = i + 1
            i.to(f32) * x


def right_list_of_regs(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(4)]
    with loop(n):
        for r in acc:
            r += x
        for k, r in enumerate(acc):
            r.set(r * float(k))
    acc[3] += x
    a = acc[1]
    a += x
    acc[1] + 1.0


def right_tuple_of_regs(n: u32, x: f32):
    a, b = reg(f32, 0.0), reg(f32, 0.0)
    for r in (a, b):
        r += x
    a + b


def right_parameter(n: u32, x: f32):
    def bump(r: Any, v: Any) -> Any:
        v = v * 2.0
        r += v
        return r

    acc = reg(f32, 0.0)
    with loop(n):
        bump(acc, x)
        other = bump(acc, x)
    acc += x
    del other


def right_same_list_twice(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    state = types.SimpleNamespace(here=acc, there=acc)
    state.here[0] += x
    for r in acc:
        r += x
    state.there[0] + acc[1]


def right_copy(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m.copy()
    m.set(x)
    old + m


def right_name_given_up(n: u32, x: f32):
    m = reg(f32, 0.0)
    old = m
    old + 1.0
    m.set(x)
    m + 1.0


def right_comprehension(n: u32, x: f32):
    acc = [reg(f32, 0.0) for _ in range(2)]
    sums = [r + 1.0 for r in acc]
    for r in acc:
        r += x
    [r * s for r, s in zip(acc, sums)]


def right_fragment(n: u32, x: f32):
    frag: list[Any] = [None] * 4
    with loop(n):
        for k in range(4):
            frag[k] = x * float(k)
        frag[0] + frag[1]


def right_fragment_of_zeros(n: u32, x: f32):
    frag: list[Any] = [0.0] * 4
    with loop(n):
        for k in range(4):
            frag[k] = x * float(k)
        frag[0] + frag[1]


def right_fragment_again(n: u32, x: f32):
    frag = [x * 1.0, x * 2.0]
    frag[0] + frag[1]
    with loop(n):
        frag[0] = x * 4.0
        frag[1] = x * 3.0
        frag[0] + frag[1]


def right_counter(n: u32, x: f32):
    k = 3
    with loop(n):
        for k in range(8):
            x * float(k)
    for k in range(2):
        x * float(k)


def right_context_managers(n: u32, x: f32):
    with rows(n) as i:
        t = x * 2.0
    with rows(n) as i:
        t = x * i.to(f32)
        t + 1.0


def right_constant_made_inside(n: u32, x: f32):
    with when(n < 3):
        width = 4
        x * float(width)
    with otherwise():
        x * 2.0
    for _ in range(2):
        x * 1.0


def right_nested(n: u32, x: f32):
    acc = reg(f32, 0.0)
    with loop(n) as i:
        with loop(n) as j:
            with when(i == j):
                acc += x
            with otherwise():
                acc -= x
    total = acc + 1.0
    acc = total * 2.0
    acc + 1.0


def right_python_control_flow_inside(n: u32, x: f32):
    with when(n < 3):
        for k in range(4):
            if k == 1:
                continue
            if k == 3:
                break
            x * float(k)
        while True:
            break

        def helper() -> Any:
            return x * 2.0

        helper()
    return


def right_file(n: u32, x: f32):
    for k in range(3):
        if k == 1:
            continue
        with contextlib.nullcontext():
            break
    with contextlib.nullcontext(), contextlib.suppress(KeyError):
        return


def right_labels(n: u32, x: f32):
    v = reg(f32, 0.0)
    t = x * 1.0
    top = label()
    t = x * 2.0
    v += t
    ptx.bra(top, pred=v < 10.0)
    t + 1.0


def right_select(n: u32, x: f32, y: Ptr[f32]):
    flag = reg(pred, False)
    with loop(n) as i:
        flag.set(i == 3)
        break_if(flag)
    y[0] = select(flag, x, 1.0)


def right_pointer_reg(n: u32, x: Ptr[f32]):
    p = reg(x)
    q = p.copy()
    p += 4
    q[0] = 2.0
    with loop(n):
        p[0] = 1.0
        p += 4


def right_pointer_temporary(n: u32, x: Ptr[f32]):
    for k in range(2):
        with when(n > k):
            p = x + n
            p[k] = 1.0


def right_growing_list(n: u32, x: f32):
    seen: list[Any] = []
    with loop(n):
        for k in range(3):
            seen.append(x * float(k))  # noqa: PERF401
        seen[0] + seen[2]
        seen.clear()


RIGHT = [function for name, function in globals().items() if name.startswith("right_")]
WRONG = [function for name, function in globals().items() if name[:3] in ("r1_", "r2_", "r3_", "r4_", "r5_")]


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__name__)
def test_right(function: Any) -> None:
    check_source(function)
    trace(function)


# ---------------------------------------------------------------------------------------------------------------------
# What each wrong program gets; lines are counted from its `def`

_R1 = {
    r1_when: (
        "`v` was computed at line 2, inside the `when` of line 1, and is used after it", "v * 2.0",
        "declare `v = reg(f32, 0)` before the `when`, and write `v.set(...)` inside it",
    ),
    r1_loop_counter: (
        "`i` was computed at line 1, inside the `loop` of line 1, and is used after it", "x[0] = i",
        "declare `i = reg(u32, 0)` before the `loop`, and write `i.set(...)` inside it",
    ),
    r1_both_branches: (
        "`v` was computed at line 4, inside the `otherwise` of line 3, and is used after it", "y[0] = v",
        "declare `v = reg(f32, 0)` before the `when`, and write `v.set(...)` inside it",
    ),
    r1_list: (
        "`%f1` was computed at line 3, inside the `loop` of line 2, and is used after it", "y[0] = parts[0]",
        "declare `v = reg(f32, 0)` before the `loop`, and write `v.set(...)` inside it",
    ),
    r1_predicate: (
        "`p` was computed at line 2, inside the `loop` of line 1, and is used after it", "with when(p):",
        "declare `p = reg(pred)` before the `loop`, and write `p.set(...)` inside it",
    ),
    r1_block_made_inside: (
        "`%p1` was computed at line 2, inside the `loop` of line 1, and is used after it", "with w:",
        "declare `v = reg(pred)` before the `loop`, and write `v.set(...)` inside it",
    ),
    r1_sibling: (
        "`v` was computed at line 2, inside the `when` of line 1, and is used after it", "v * 2.0",
        "declare `v = reg(f32, 0)` before the `when`, and write `v.set(...)` inside it",
    ),
}

_R2 = {
    r2_value: (
        "acc", "rebound", "the loop of line 2", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_augmented: (
        "acc", "rebound", "the loop of line 2", "acc += x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_reg: (
        "acc", "rebound", "the loop of line 2", "acc = acc + x",
        "`acc` is a reg: change it in place with `acc += ...` or `acc.set(...)`",
    ),
    r2_number: (
        "stage", "rebound", "the loop of line 2", "stage = (stage + 1) % 4",
        "declare `stage = reg(u32, 0)` before the loop, then `stage += ...` or `stage.set(...)`",
    ),
    r2_number_from_zero: (
        "count", "rebound", "the loop of line 2", "count += 1",
        "declare `count = reg(u32, 0)` before the loop, then `count += ...` or `count.set(...)`",
    ),
    r2_number_below_zero: (
        "count", "rebound", "the loop of line 2", "count += 1",
        "declare `count = reg(s32, -1)` before the loop, then `count += ...` or `count.set(...)`",
    ),
    r2_flag: (
        "first", "rebound", "the loop of line 2", "first = False",
        "declare `first = reg(pred, True)` before the loop, then `first.set(...)`",
    ),
    r2_pointer: (
        "x", "rebound", "the loop of line 1", "x = x + 4", "declare `x = reg(x)` before the loop, then `x += ...`",
    ),
    r2_reg_pointer: (
        "p", "rebound", "the loop of line 2", "p = p + 4", "`p` is a reg: change it in place with `p += ...`",
    ),
    r2_none: (
        "prev", "rebound", "the loop of line 2", "prev = x * 2.0",
        "keep what changes in a `reg` that is declared before the loop",
    ),
    r2_swap: (
        "a", "rebound", "the loop of line 2", "a, b = b, a",
        "declare `a = reg(f32, a)` before the loop, then `a += ...` or `a.set(...)`",
    ),
    r2_walrus: (
        "v", "rebound", "the loop of line 2", "(v := v + 1.0) * 2.0",
        "declare `v = reg(f32, v)` before the loop, then `v += ...` or `v.set(...)`",
    ),
    r2_predicate: (
        "p", "rebound", "the loop of line 2", "p = p & (n < 2)",
        "declare `p = reg(pred, p)` before the loop, then `p.set(...)`",
    ),
    r2_tuple: (
        "state", "rebound", "the loop of line 2", "state = (v + x, k + 1)",
        "keep what changes in a `reg` that is declared before the loop",
    ),
    r2_when_number: (
        "scale", "rebound", "the when of line 2", "scale = 2.0",
        "declare `scale = reg(f32, 1.0)` before the when, then `scale += ...` or `scale.set(...)`",
    ),
    r2_branches_number: (
        "scale", "rebound", "the otherwise of line 3", "scale = 3.0",
        "declare `scale = reg(f32, 2.0)` before the when, then `scale += ...` or `scale.set(...)`",
    ),
    r2_when_outer_value: (
        "t", "rebound", "the when of line 3", "t = b",
        "declare `t = reg(f32, t)` before the when, then `t += ...` or `t.set(...)`",
    ),
    r2_when_value: (
        "v", "rebound", "the when of line 2", "v = v + 1.0",
        "declare `v = reg(f32, v)` before the when, then `v += ...` or `v.set(...)`",
    ),
    r2_when_in_unrolled_loop: (
        "v", "rebound", "the when of line 3", "v = v + 1.0",
        "declare `v = reg(f32, v)` before the when, then `v += ...` or `v.set(...)`",
    ),
    r2_when_in_loop: (
        "v", "rebound", "the loop of line 2", "v = v + 1.0",
        "declare `v = reg(f32, v)` before the loop, then `v += ...` or `v.set(...)`",
    ),
    r2_read_in_next_iteration: (
        "t", "rebound", "the loop of line 2", "t = a",
        "declare `t = reg(f32, t)` before the loop, then `t += ...` or `t.set(...)`",
    ),
    r2_list: (
        "acc[0]", "replaced", "the loop of line 2", "acc[0] = acc[0] + x",
        "declare `acc[0] = reg(f32, acc[0])` before the loop, then `acc[0] += ...` or `acc[0].set(...)`",
    ),
    r2_list_of_numbers: (
        "acc[0]", "replaced", "the loop of line 2", "acc[k] = acc[k] + x",
        "declare `acc[0] = reg(f32, 0.0)` before the loop, then `acc[0] += ...` or `acc[0].set(...)`",
    ),
    r2_list_augmented: (
        "acc[0]", "replaced", "the loop of line 2", "acc[k] += x",
        "declare `acc[0] = reg(f32, 0.0)` before the loop, then `acc[0] += ...` or `acc[0].set(...)`",
    ),
    r2_nested_list: (
        "acc[1][0]", "replaced", "the loop of line 2", "acc[1][0] = acc[1][0] + x",
        "declare `acc[1][0] = reg(f32, acc[1][0])` before the loop, then `acc[1][0] += ...` or `acc[1][0].set(...)`",
    ),
    r2_list_in_helper: (
        "acc[0]", "replaced", "the loop of line 5", "values[0] = values[0] + x",
        "declare `acc[0] = reg(f32, acc[0])` before the loop, then `acc[0] += ...` or `acc[0].set(...)`",
    ),
    r2_rotation: (
        "queue[0]", "replaced", "the loop of line 2", "queue.rotate(1)",
        "declare `queue[0] = reg(f32, queue[0])` before the loop, then `queue[0] += ...` or `queue[0].set(...)`",
    ),
    r2_dict: (
        "state['a']", "replaced", "the loop of line 2", 'state["a"] = state["a"] * 2.0',
        ("declare `state['a'] = reg(f32, state['a'])` before the loop, then `state['a'] += ...` or "
         "`state['a'].set(...)`"),
    ),
    r2_object: (
        "state.acc", "replaced", "the loop of line 2", "state.acc = state.acc + x",
        "declare `state.acc = reg(f32, state.acc)` before the loop, then `state.acc += ...` or `state.acc.set(...)`",
    ),
    r2_dataclass: (
        "state.acc", "replaced", "the loop of line 2", "state.acc = state.acc + x",
        "declare `state.acc = reg(f32, state.acc)` before the loop, then `state.acc += ...` or `state.acc.set(...)`",
    ),
    r2_frozen_dataclass: (
        "state", "rebound", "the loop of line 2", "state = dataclasses.replace(state, acc=state.acc + x)",
        "keep what changes in a `reg` that is declared before the loop",
    ),
    r2_slots: (
        "state.acc", "replaced", "the loop of line 3", "state.acc = state.acc + x",
        "declare `state.acc = reg(f32, state.acc)` before the loop, then `state.acc += ...` or `state.acc.set(...)`",
    ),
    r2_method: (
        "pipeline.stage", "replaced", "the loop of line 2", "self.stage = (self.stage + 1) % 4",
        ("declare `pipeline.stage = reg(u32, 0)` before the loop, then `pipeline.stage += ...` or "
         "`pipeline.stage.set(...)`"),
    ),
    r2_closure: (
        "acc", "rebound", "the loop of line 7", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_loop_in_closure: (
        "acc", "rebound", "the loop of line 5", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_helper: (
        "v", "rebound", "the loop of line 2", "v = v + x",
        "declare `v = reg(f32, v)` before the loop, then `v += ...` or `v.set(...)`",
    ),
    r2_list_of_caller: (
        "values[0]", "replaced", "the loop of line 2", "values[0] = values[0] + x",
        "declare `values[0] = reg(f32, values[0])` before the loop, then `values[0] += ...` or `values[0].set(...)`",
    ),
    r2_context_manager: (
        "acc", "rebound", "the loop of line -4", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_context_manager_class: (
        "acc", "rebound", "the loop of line -6", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_exit_stack: (
        "acc", "rebound", "the loop of line 3", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_generator: (
        "acc", "rebound", "the loop of line 2", "acc = acc + x",
        "declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`",
    ),
    r2_label: (
        "v", "rebound", "the loop that the label of line 2 begins", "v = v + 1.0",
        "declare `v = reg(f32, v)` before the label, then `v += ...` or `v.set(...)`",
    ),
    r2_global: (
        "TOTAL", "rebound", "the loop of line 3", "TOTAL = TOTAL + x",
        "declare `TOTAL = reg(f32, TOTAL)` before the loop, then `TOTAL += ...` or `TOTAL.set(...)`",
    ),
}

_R3 = {
    r3_set: ("m", "old", "m.set(x)", "keep the old value apart: `old = m.copy()`"),
    r3_augmented: ("m", "old", "m += x", "keep the old value apart: `old = m.copy()`"),
    r3_changed_by_the_second_name: ("old", "m", "old += x", "keep the old value apart: `m = old.copy()`"),
    r3_out: ("m", "old", "ptx.add.f32(m, x, out=m)", "keep the old value apart: `old = m.copy()`"),
    r3_set_from_the_other: ("m", "old", "m.set(old + x)", "keep the old value apart: `old = m.copy()`"),
    r3_kept_on_the_way: (
        "m", "kept[0]", "m.set(x)", "keep the values apart: `kept = [r.copy() for r in ...]`, or a `reg` for each",
    ),
    r3_in_helper: ("m", "old", "bump(m)", "keep the old value apart: `old = m.copy()`"),
    r3_in_closure: ("m", "old", "bump()", "keep the old value apart: `old = m.copy()`"),
    r3_read_in_next_iteration: ("m", "old", "m.set(m + x)", "keep the old value apart: `old = m.copy()`"),
    r3_element: ("acc[0]", "first", "acc[0] += x", "keep the old value apart: `first = acc[0].copy()`"),
    r3_element_set: ("acc[0]", "first", "acc[0].set(x)", "keep the old value apart: `first = acc[0].copy()`"),
    r3_list: (
        "acc[0]", "saved[0]", "acc[0] += x",
        "keep the values apart: `saved = [r.copy() for r in ...]`, or a `reg` for each",
    ),
    r3_list_in_loop: (
        "r", "saved[0]", "r += x", "keep the values apart: `saved = [r.copy() for r in ...]`, or a `reg` for each",
    ),
    r3_repeated_list: (
        "r", "acc[1]", "r += x", "keep the values apart: `acc = [r.copy() for r in ...]`, or a `reg` for each",
    ),
    r3_slot_copied: (
        "acc[0]", "acc[1]", "acc[0] += x",
        "keep the values apart: `acc = [r.copy() for r in ...]`, or a `reg` for each",
    ),
    r3_object: ("state.acc", "old", "state.acc.set(x)", "keep the old value apart: `old = state.acc.copy()`"),
    r3_pointer: ("p", "q", "p += 4", "keep the old value apart: `q = p.copy()`"),
    r3_passed_twice: ("into", "other", "into += x", "keep the old value apart: `other = into.copy()`"),
}

_R4 = {
    r4_if: "if n < 4:",
    r4_and: "with when(n > 2 and n < 4):",
    r4_chain: "with when(2 < n < 4):",
    r4_not: "with when(not n < 4):",
    r4_in: "n in [3, 4]  # noqa: B015",
    r4_range: "for _ in range(n):",
    r4_while: "while n > 0:",
    r4_conditional: "x if n < 4 else x * 2.0",
}

_R5 = {
    r5_return: ("return", "when(n < 4)", 1, "return"),
    r5_return_in_branch: ("return", "loop(n)", 1, "return"),
    r5_break: ("break", "when(n < 4)", 2, "break"),
    r5_continue: ("continue", "when(n < 4)", 2, "continue"),
    r5_otherwise: ("return", "otherwise()", 3, "return"),
    r5_attribute: ("return", "ptxdsl.when(n < 4)", 1, "return"),
    r5_second_item: ("return", "contextlib.nullcontext(), when(n < 4)", 1, "return"),
    r5_nested_function: ("return", "when(n < 4)", 2, "return x * 2.0"),
    r5_local_name: ("return", "block(n < 4)", 2, "return"),
    r5_context_manager: ("return", "rows(n)", 1, "return"),
    r5_helper: ("return", "loop(n)", -4, "return x * i.to(f32)"),
    r5_try: ("break", "when(n < 4)", 2, "break"),
}

_WAYS = {
    "return": "`ptx.ret(pred=p)` ends the threads for which p holds; a helper returns after its block, "
    "a `reg` carries the result",
    "break": "`break_if(p)` leaves a `with loop():`; a Python `for` unrolls and cannot end when the kernel runs",
    "continue": "`continue_if(p)` goes on with the next iteration of a `with loop():`; "
    "in a Python `for` use `with when(~p):`",
}


def _name(function: Any) -> str:
    return str(function.__name__)


def test_every_program_has_its_words() -> None:
    assert {*_R1, *_R2, *_R3, *_R4, *_R5} == set(WRONG)


@pytest.mark.parametrize("function", _R1, ids=_name)
def test_escape(function: Any) -> None:
    message, source, hint = _R1[function]
    assert said(refused(function), function) == ("EscapeError", message, source, hint)


@pytest.mark.parametrize("function", _R2, ids=_name)
def test_lost_update(function: Any) -> None:
    name, verb, where, source, hint = _R2[function]
    once = "the trace runs its body once, so the update would be lost"
    anyway = "the trace runs its body anyway, so the change would always hold"
    message = f"`{name}` is {verb} inside {where}; {once if 'loop' in where else anyway}"
    assert said(refused(function), function) == ("LostUpdateError", message, source, hint)


@pytest.mark.parametrize("function", _R3, ids=_name)
def test_alias(function: Any) -> None:
    one, other, source, hint = _R3[function]
    message = f"`{one}` and `{other}` hold the same reg, and this changes both"
    assert said(refused(function), function) == ("AliasError", message, source, hint)


@pytest.mark.parametrize("function", _R4, ids=_name)
def test_truth(function: Any) -> None:
    kind, message, source, hint = said(refused(function), function)
    assert (kind, source) == ("TruthError", _R4[function])
    assert message.endswith(("has no Python truth: the kernel is traced once, before it runs",
                             "has no Python int: the kernel is traced once, before it runs"))
    assert "`with " in hint


@pytest.mark.parametrize("function", _R5, ids=_name)
def test_python_leaves_a_block(function: Any) -> None:
    statement, block, line, source = _R5[function]
    message = (
        f"`{statement}` leaves the `with {block}` of line {line}; the trace would end the block here for all threads"
    )
    assert said(refused(function), function) == ("ControlFlowError", message, source, _WAYS[statement])


def test_at_decoration() -> None:
    """What the source shows is refused before anybody launches; what only the run shows, when it is traced."""
    later = {r5_local_name, r5_context_manager, r5_helper}
    for function in _R5:
        if function in later:
            check_source(function)
        else:
            with pytest.raises(ControlFlowError):
                check_source(function)


# ---------------------------------------------------------------------------------------------------------------------
# Where there is no source, or an unusual one

_SOURCELESS = """
def {name}(n: u32, x: f32):
{body}
"""


def _made(body: str) -> Any:
    """A kernel function from `exec`, without a file."""
    scope = dict(globals())
    exec(_SOURCELESS.format(name="made", body=textwrap.indent(textwrap.dedent(body), "    ")), scope)
    return scope["made"]


_WITHOUT_SOURCE = {
    "acc = x\nwith loop(n):\n    acc = acc + x": LostUpdateError,
    "scale = 1.0\nwith when(n < 3):\n    scale = 2.0\n_ = x * scale": LostUpdateError,
    "m = reg(f32, 0.0)\nold = m\nm.set(x)\n_ = old + 1.0": AliasError,
    "with when(n < 3):\n    v = x + 1.0\n_ = v * 2.0": EscapeError,
    "with when(n < 3):\n    _ = x + 1.0\n    return\n_ = x * 2.0": ControlFlowError,
    "with loop(n):\n    if True:\n        return 5\n_ = x * 2.0": ControlFlowError,
    "for k in range(4):\n    with when(n < 3):\n        break\n    _ = x * 2.0": ControlFlowError,
    "for k in range(4):\n    with when(n < 3):\n        if k:\n            continue\n        _ = x\n    _ = x * 1.0":
        ControlFlowError,
    "with rows(n):\n    return\n_ = x * 2.0": ControlFlowError,
    "def helper():\n    with when(n < 3):\n        return x\n    return x * 2.0\nhelper()": ControlFlowError,
    "with when(n < 3):\n    for k in range(4):\n        if k < 1: continue\n        if k: break\n        _ = x * 2.0":
        None,
    "def helper():\n    with when(n < 3):\n        _ = x * 2.0\n    return x * 3.0\nhelper()": None,
    "for k in range(2):\n    with when(n < 3):\n        _ = x * 2.0\n    with loop(n):\n        _ = x * 3.0": None,
    "with when(n < 3):\n    _ = x * 2.0\nwith otherwise():\n    _ = x * 3.0\nreturn": None,
}


@pytest.mark.parametrize(("body", "kind"), _WITHOUT_SOURCE.items(), ids=list(map(str, range(len(_WITHOUT_SOURCE)))))
def test_without_source(body: str, kind: type[PtxError] | None) -> None:
    function = _made(body)
    check_source(function)
    if kind is None:
        trace(function)
    else:
        with pytest.raises(PtxError) as caught:
            trace(function)
        assert type(caught.value) is kind
        assert caught.value.loc is not None
        assert caught.value.loc.file == "<string>"


def test_in_a_doctest() -> None:
    text = """
    >>> from ptxdsl import f32, loop, u32, when
    >>> from ptxdsl.language import trace; from ptxdsl.language.tracing import check_source
    >>> def lost(n: u32, x: f32):
    ...     acc = x
    ...     with loop(n):
    ...         acc = acc + x
    >>> trace(lost)
    Traceback (most recent call last):
    ptxdsl.errors.LostUpdateError: `acc` is rebound inside the loop of line 3; the trace runs its body once, so ...
      at <doctest guards[2]>:4: acc = acc + x
      hint: declare `acc = reg(f32, acc)` before the loop, then `acc += ...` or `acc.set(...)`
    >>> def left(n: u32, x: f32):
    ...     with when(n < 3):
    ...         return
    >>> check_source(left)
    Traceback (most recent call last):
    ptxdsl.errors.ControlFlowError: `return` leaves the `with when(n < 3)` of line 2; the trace would end ...
      at <doctest guards[4]>:3: return
      hint: `ptx.ret(pred=p)` ends the threads for which p holds; a helper returns after its block, a `reg` ...
    """
    test = doctest.DocTestParser().get_doctest(text, {"__name__": "guards"}, "guards", None, 0)
    report: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert outcome.attempted == 6


def test_cost_of_a_place_is_paid_once() -> None:
    """A register that is changed a thousand times at one place is looked up in the frames once."""
    looks = []

    class Watched(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            looks.append(1)
            return super().__iter__()

    def kernel(n: u32, x: f32):
        acc = Watched([reg(f32, 0.0)])
        r = acc[0]
        for _ in range(1000):
            r += x

    trace(kernel)
    assert len(looks) < 20

