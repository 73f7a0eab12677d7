"""Which traces are preverified, so that `verify` need not run, and which need verification.

That no preverified trace is one that `verify` refuses is tested by all tests that trace: see
``each_trace_is_verified``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxdsl import (
    Ptr, b32, b128, break_if, check, continue_if, f32, label, loop, otherwise, printf, ptx, ptx_func, reg, shared, u32,
    when,
)
from ptxdsl.errors import EscapeError
from ptxdsl.language.memory.variables import param
from ptxdsl.language.tracing import traced


def has_a_value(n: u32, x: Ptr[f32]) -> None:
    total = reg(f32, 0.0)
    with loop(n) as i:
        continue_if(i == 3)
        break_if(i == 7)
        with when(i < 5):
            total += x[i]
    x[0] = total


def written_where_it_was_declared(n: u32, x: Ptr[f32]) -> None:
    square, last = reg(f32), reg(f32)
    ptx.mul.f32(x[0], x[0], out=square)
    with loop(n) as i:
        inner = reg(f32)
        inner.set(x[i])
        last.set(inner)
    x[0] = square
    last.set(0.0)


def guarded(n: u32, x: Ptr[f32]) -> None:
    value = reg(f32)
    ptx.mov.f32(1.0, out=value, pred=n > 3)
    x[0] = value


def written_and_never_read(n: u32) -> None:
    value = reg(u32)
    with when(n < 3):
        value.set(n)


def never_written(x: Ptr[f32]) -> None:
    x[0] = reg(f32)


def written_in_both_branches(n: u32, x: Ptr[f32]) -> None:
    value = reg(f32)
    with when(n < 3):
        value.set(1.0)
    with otherwise():
        value.set(2.0)
    x[0] = value


def changed_in_place(n: u32) -> None:
    value = reg(u32)
    value += n


def branches(n: u32) -> None:
    ptx.bra("done", pred=n == 0)
    label("done")


def prints(n: u32) -> None:
    printf("%u\n", n)


def checks(n: u32) -> None:
    check(n < 3)


@ptx_func
def twice(n: u32) -> u32:
    return n + n


def calls(n: u32) -> None:
    twice(n)


def calls_in_words(n: u32) -> None:
    ptx.call(twice, n)


def names_a_parameter(n: u32, x: Ptr[u32]) -> None:
    x[0] = ptx.ld.param.u32("n")


def has_a_variable_that_is_new_in_ptx() -> None:
    shared(b128, 4)


def has_a_register_that_is_new_in_ptx() -> None:
    reg(b128)


def has_a_param_variable() -> None:
    ptx.st.param.b32(param(b32, 1), 0)


@pytest.mark.parametrize(
    "kernel", [has_a_value, written_where_it_was_declared, guarded, written_and_never_read], ids=lambda k: k.__name__
)
def test_preverified(kernel: Callable[..., None]) -> None:
    assert not traced(kernel).needs_verification


@pytest.mark.parametrize("kernel", [
    never_written, written_in_both_branches, changed_in_place, branches, prints, checks, calls, calls_in_words,
    names_a_parameter, has_a_param_variable, has_a_variable_that_is_new_in_ptx, has_a_register_that_is_new_in_ptx,
], ids=lambda k: k.__name__)
def test_needs_verification(kernel: Callable[..., None]) -> None:
    assert traced(kernel).needs_verification


def test_a_reg_without_a_value_ends_with_its_block() -> None:
    def reads(n: u32, x: Ptr[u32]) -> None:
        with when(n < 3):
            value = reg(u32)
        x[0] = value

    def writes(n: u32) -> None:
        with when(n < 3):
            value = reg(u32)
        value.set(n)

    for kernel in (reads, writes):
        with pytest.raises(EscapeError) as caught:
            traced(kernel)
        assert caught.value.loc is not None
        assert caught.value.loc.source in ("x[0] = value", "value.set(n)")
        assert caught.value.message.endswith("and is used after it")
