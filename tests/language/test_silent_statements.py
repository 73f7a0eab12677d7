"""Statements that do nothing, comparisons that ask nothing, and an `otherwise()` that is not the else of its `with`."""

# ruff: noqa: B015, N805 -- kernels that are wrong, in classes that are tables
from __future__ import annotations

import contextlib
import linecache
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Ptr, PtxTypeError, StructureError, break_if, f32, loop, maximum, minimum, otherwise, ptx,
    ptx_kernel, reg, s32, select, u8, u16, u32, u64, when,
)

LOWER, UPPER = 0, 4294967295


def _refused(function: Callable[..., Any], kind: type[Exception]) -> Any:
    """The error of a function that has `# wrong` at its line, the second time as the first."""
    error: Any = None
    for _ in range(2):
        with pytest.raises(kind) as caught:
            ptx_kernel(function).ptx()
        error = caught.value
        source = linecache.getline(error.loc.file, error.loc.line)
        assert "# wrong" in source, (source, error)
    return error


def helper(v: Any) -> None:
    v == 1  # wrong


class Holder:
    def __init__(self, v: Any) -> None:
        self.v = v

    def less(self, n: int) -> None:
        self.v < n  # wrong


class Stream:
    """Whose `<<` is a call."""

    def __init__(self, x: Any) -> None:
        self.x, self.count = x, 0

    def __lshift__(self, v: Any) -> Stream:
        self.x[self.count] = v
        self.count += 1
        return self


class Nothing:
    """Comparisons as statements."""

    def equal(n: u32, x: Ptr[u32]):
        acc = reg(u32, 0)
        acc == 3  # wrong
        x[0] = acc

    def less(n: u32, x: Ptr[u32]):
        acc = reg(u32, n)
        acc < 5  # wrong

    def of_a_value(n: u32, x: Ptr[u32]):
        n * n > 3  # wrong

    def a_number_first(n: u32, x: Ptr[u32]):
        1 >= n  # wrong

    def of_a_predicate(n: u32, x: Ptr[u32]):
        p = n < 5
        p == (n > 2)  # wrong

    def of_an_element(n: u32, x: Ptr[u32]):
        x[n] != 1  # wrong

    def in_a_tuple(n: u32, x: Ptr[u32]):
        x[0] = 1
        n == 1, n == 2  # wrong

    def in_a_region(n: u32, x: Ptr[u32]):
        with when(n > 1):
            n == 3  # wrong
            x[0] = 1

    def in_a_loop(n: u32, x: Ptr[u32]):
        acc = reg(u32, 0)
        with loop(n) as i:
            acc >= i  # wrong
        x[0] = acc

    def in_a_helper(n: u32, x: Ptr[u32]):
        helper(n)

    def in_a_method(n: u32, x: Ptr[u32]):
        Holder(n).less(3)

    def in_a_closure(n: u32, x: Ptr[u32]):
        def inner():
            n == 1  # wrong

        inner()

    def of_another_module(n: u32, x: Ptr[u32]):
        for v in [n, n + 1]:
            v != 3  # wrong


class Something:
    """Right programs: each stores 1 in x[0]."""

    def stream(n: u32, x: Ptr[u32]):
        Stream(x) << n * 0 + 1 << n

    def computed_in_vain(n: u32, x: Ptr[u32]):
        acc = reg(u32, 1)
        acc + n
        ~(n < 5)
        ptx.add.u32(acc, n)
        maximum(acc, n)
        n.to(f32)
        x[0] = acc

    def numbers(n: u32, x: Ptr[u32]):
        LOWER + 1
        LOWER == 3
        x[0] = 1

    def touched(n: u32, x: Ptr[u32]):
        x[0]
        x[0] = 1

    def kept(n: u32, x: Ptr[u32]):
        _ = n + 1
        x[0] = 1

    def given(n: u32, x: Ptr[u32]):
        ptx.atom.global_.add.u32(x, 1)
        ptx.ld.volatile.global_.u32(x)
        ptx.shfl.sync.idx.b32(n, 0, 31, 0xFFFFFFFF)

    def into_a_reg(n: u32, x: Ptr[u32]):
        acc = reg(u32, 0)
        ptx.add.u32(acc, 1, out=acc)
        acc.set(acc)
        x[0] = acc

    def of_a_helper(n: u32, x: Ptr[u32]):
        def store(v: Any) -> Any:
            x[0] = v
            return v + 1

        store(1)
        [store(v) for v in (2, 1)]

    def of_a_container(n: u32, x: Ptr[u32]):
        values = [n + 1, n * 0]
        values.append(values.pop() + 1)
        values.pop(0)
        x[0] = values[0]

    def in_a_list(n: u32, x: Ptr[u32]):
        x[0] = next(n + k for k in range(3)) * 0 + 1

    def in_place(n: u32, x: Ptr[u32]):
        acc = reg(u32, 0)
        acc += 1
        x[0] = acc


class Decided:
    """Comparisons that the type decides."""

    def at_least_zero(n: u32, x: Ptr[u32]):
        with when(n - 1 >= 0):  # wrong
            x[0] = 1

    def at_least_zero_64(n: u64, x: Ptr[u32]):
        with when(n - 1 >= 0):  # wrong
            x[0] = 1

    def at_least_zero_16(n: u16, x: Ptr[u32]):
        with when(n >= 0):  # wrong
            x[0] = 1

    def at_least_zero_8(n: u32, x: Ptr[u8]):
        with when(x[0] >= 0):  # wrong
            x[0] = 1

    def the_other_way(n: u32, x: Ptr[u32]):
        with when(0 <= n):  # wrong
            x[0] = 1

    def below_zero(n: u32, x: Ptr[u32]):
        x[0] = select(n - 5 < 0, 0, n)  # wrong

    def below_zero_the_other_way(n: u32, x: Ptr[u32]):
        x[0] = select(0 > n - 5, 0, n)  # wrong

    def counted_down(n: u32, x: Ptr[u32]):
        i = reg(u32, n)
        with loop():
            i -= 1
            break_if(i < 0)  # wrong
            x[i] = 1

    def at_most_all(n: u32, x: Ptr[u32]):
        with when(n <= 0xFFFFFFFF):  # wrong
            x[0] = 1

    def above_all(n: u32, x: Ptr[u32]):
        with when(n > 0xFFFFFFFF):  # wrong
            x[0] = 1

    def lowest(n: s32, x: Ptr[u32]):
        with when(n >= -2147483648):  # wrong
            x[0] = 1

    def a_difference_and_a_name(n: u32, x: Ptr[u32]):
        with when(n - 3 >= LOWER):  # wrong
            x[0] = 1

    def a_reg(n: u32, x: Ptr[u32]):
        i = reg(u32, n)
        with when((i >= 0) & (i < 5)):  # wrong
            x[0] = 1

    def a_difference_and_a_number_of_numpy(n: u32, x: Ptr[u32]):
        with when(n - 3 >= np.uint32(0)):  # wrong
            x[0] = 1

    def clamped_by_a_number_of_numpy(n: u32, x: Ptr[u32]):
        x[0] = maximum(n - 3, np.uint32(0))  # wrong

    def as_a_guard(n: u32, x: Ptr[u32]):
        x.store(0, 1, pred=n - 1 >= 0)  # wrong

    def clamped(n: u32, x: Ptr[u32]):
        x[0] = maximum(n - 7, 0)  # wrong

    def clamped_the_other_way(n: u32, x: Ptr[u32]):
        x[0] = minimum(0, n - 7)  # wrong


class Asked:
    """Right programs: each stores 1 in x[0] for n = 7."""

    def above(n: u32, x: Ptr[u32]):
        x[0] = (n > 0).to(u32)

    def not_zero(n: u32, x: Ptr[u32]):
        x[0] = (n >= 1).to(u32) & (n != 0).to(u32)

    def a_bound_with_a_name(n: u32, x: Ptr[u32]):
        x[0] = ((n >= LOWER) & (n <= UPPER)).to(u32)

    def a_bound_in_a_loop(n: u32, x: Ptr[u32]):
        count = reg(u32, 0)
        for lower in (0, 3, 9):
            count += (n >= lower).to(u32)
        x[0] = count - 1

    def a_signed_difference(n: u32, x: Ptr[u32]):
        x[0] = ((n - 3).bits(s32) >= 0).to(u32) & ((n - 9).bits(s32) < 0).to(u32)

    def one_comparison_for_two(n: u32, x: Ptr[u32]):
        x[0] = (n - 5 < 4).to(u32)

    def a_distance_that_wraps(n: u32, x: Ptr[u32]):
        x[0] = (n - 9 > 0x80000000).to(u32)

    def a_lower_bound_of_0(n: u32, x: Ptr[u32]):
        x[0] = minimum(maximum(n, LOWER), 1)

    def signed(n: u32, x: Ptr[u32]):
        m = n.bits(s32)
        x[0] = (m >= 0).to(u32) + (m < 0).to(u32)

    def a_hash(n: u32, x: Ptr[u32]):
        h = (n - 11) * 2654435761 ^ (n - 3)
        x[0] = (h == h).to(u32)


@contextlib.contextmanager
def both(p: Any, q: Any) -> Iterator[None]:
    with when(p):
        with when(q):
            yield


@contextlib.contextmanager
def only(p: Any) -> Iterator[None]:
    with when(p):
        yield


def stored(p: Any, x: Any, value: int) -> None:
    with when(p):
        x[0] = value


class OneElse:
    """An `otherwise()` behind a `with` of several conditions."""

    def two(n: u32, x: Ptr[u32]):
        with when(n > 1), when(n < 5):
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2

    def on_lines(n: u32, x: Ptr[u32]):
        with (
            when(n > 1),
            when(n < 5),
        ):
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2

    def three(n: u32, x: Ptr[u32]):
        with when(n > 1), when(n < 5), when(n != 3):
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2

    def a_loop_between(n: u32, x: Ptr[u32]):
        with when(n > 1), loop(n) as i, when(i < 5):
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2

    def inside(n: u32, x: Ptr[u32]):
        with when(n > 1):
            with when(n < 5), when(n != 3):
                x[0] = 1
            with otherwise():  # wrong
                x[0] = 2

    def a_stack(n: u32, x: Ptr[u32]):
        with contextlib.ExitStack() as stack:
            stack.enter_context(when(n > 1))
            stack.enter_context(when(n < 5))
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2

    def a_generator(n: u32, x: Ptr[u32]):
        with both(n > 1, n < 5):
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2

    def two_generators(n: u32, x: Ptr[u32]):
        with only(n > 1), only(n < 5):
            x[0] = 1
        with otherwise():  # wrong
            x[0] = 2


class Else:
    """Right programs, and what they store in x[0] for n = 0 to 7."""

    def nested(n: u32, x: Ptr[u32]):  # 2 2 1 1 1 0 0 0
        with when(n > 1):
            with when(n < 5):
                x[0] = 1
        with otherwise():
            x[0] = 2

    def both_have_one(n: u32, x: Ptr[u32]):  # 2 2 1 1 1 3 3 3
        with when(n > 1):
            with when(n < 5):
                x[0] = 1
            with otherwise():
                x[0] = 3
        with otherwise():
            x[0] = 2

    def one_condition(n: u32, x: Ptr[u32]):  # 2 2 1 1 1 2 2 2
        with when((n > 1) & (n < 5)):
            x[0] = 1
        with otherwise():
            x[0] = 2

    def none_follows(n: u32, x: Ptr[u32]):  # 0 0 1 1 1 0 0 0
        with when(n > 1), when(n < 5):
            x[0] = 1

    def a_loop(n: u32, x: Ptr[u32]):  # 2 2 1 1 1 1 1 1
        with when(n > 1), loop(n):
            x[0] = 1
        with otherwise():
            x[0] = 2

    def a_stack_of_one(n: u32, x: Ptr[u32]):  # 2 2 1 1 1 1 1 1
        with contextlib.ExitStack() as stack:
            stack.enter_context(when(n > 1))
            x[0] = 1
        with otherwise():
            x[0] = 2

    def a_generator_of_one(n: u32, x: Ptr[u32]):  # 2 2 1 1 1 1 1 1
        with only(n > 1):
            x[0] = 1
        with otherwise():
            x[0] = 2

    def a_helper_on_the_line(n: u32, x: Ptr[u32]):  # 2 0 0 1 1 1 1 1
        with when(n > 0): stored(n > 2, x, 1)  # noqa: E701
        with otherwise(): stored(n < 5, x, 2)  # noqa: E701

    def two_inside(n: u32, x: Ptr[u32]):  # 2 2 1 0 1 0 0 0
        with when(n > 1):
            with when(n < 5), when(n != 3):
                x[0] = 1
        with otherwise():
            x[0] = 2


def _of(table: type) -> list[Any]:
    return [function for function in vars(table).values() if callable(function)]


def _launched(function: Any, n: int) -> int:
    x = np.zeros(16, np.uint32)
    ptx_kernel(function)[1, 1](n, x)
    return int(x[0])


@pytest.mark.parametrize("function", _of(Nothing))
def test_a_statement_that_does_nothing(function: Any) -> None:
    _refused(function, StructureError)


@pytest.mark.parametrize("function", _of(Decided))
def test_a_comparison_that_asks_nothing(function: Any) -> None:
    _refused(function, PtxTypeError)


@pytest.mark.parametrize("function", _of(OneElse))
def test_the_else_of_several_conditions(function: Any) -> None:
    _refused(function, StructureError)


@pytest.mark.parametrize("function", _of(Something) + _of(Asked))
def test_right(function: Any) -> None:
    assert _launched(function, 7) == 1


@pytest.mark.parametrize("function", _of(Else))
def test_the_else_of_one(function: Any) -> None:
    head = linecache.getline(__file__, function.__code__.co_firstlineno)
    assert [_launched(function, n) for n in range(8)] == [int(v) for v in head.partition("# ")[2].split()]


def test_the_messages() -> None:
    def said(function: Any) -> tuple[str, str | None]:
        error = _refused(function, (StructureError, PtxTypeError))  # type: ignore[arg-type]
        return error.message, error.hint

    nothing = "compares, and the result is not used: the statement does nothing"
    assert said(Nothing.equal) == (
        f"`acc == 3` {nothing}", "`acc.set(3)` changes it, `with when(acc == 3):` asks"
    )
    assert said(Nothing.less) == (f"`acc < 5` {nothing}", "`with when(acc < 5):`")
    line = Decided.at_least_zero.__code__.co_firstlineno + 1
    assert said(Decided.at_least_zero) == (
        f"`>= 0` of a u32 is always True: it is unsigned, so at least 0: the difference of line {line} wraps around",
        "compare before subtracting: `a >= b` instead of `a - b >= 0`; or compute with signed numbers: `v.bits(s32)`",
    )
    assert said(Decided.at_most_all) == (
        "`<= 4294967295` of a u32 is always True: it is at most 4294967295", "decide it in Python: it is True"
    )
    line = Decided.clamped.__code__.co_firstlineno + 1
    assert said(Decided.clamped) == (
        f"`maximum` of a u32 and 0 is the number itself: the difference of line {line} wraps around",
        "compare before subtracting: `select(a > b, a - b, 0)`",
    )
    line = OneElse.two.__code__.co_firstlineno + 1
    assert said(OneElse.two) == (
        ("this `otherwise()` follows a `with` of several conditions, and would be the else of the first alone: "
         f"line {line}"),
        "one condition: `with when(a & b):`; or one `with` inside the other, each with its `otherwise()`",
    )
