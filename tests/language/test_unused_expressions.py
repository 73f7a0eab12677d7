"""Statements that do nothing: an instruction that is named and not called, a comparison in the place of a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tracing_helpers import ptx as traced
from tracing_helpers import refused, said

from ptxdsl import Ptr, break_if, loop, ptx, reg, u32


def barrier(x: Ptr[u32]):
    ptx.bar.sync


def barrier_in_brackets(x: Ptr[u32]):
    ptx["bar.sync"]


def half_a_name(x: Ptr[u32]):
    ptx.membar


def return_in_a_loop(n: u32):
    with loop(n):
        ptx.ret


def barrier_in_a_nested_function(x: Ptr[u32]):
    def helper():
        ptx.bar.sync

    helper()


def helper():
    ptx.bar.sync


def barrier_in_a_helper(x: Ptr[u32]):
    helper()


def outer_helper():
    helper()


def barrier_in_a_helper_of_a_helper(x: Ptr[u32]):
    outer_helper()


def load(x: Ptr[u32]):
    x.load


def set_of_a_reg(x: Ptr[u32]):
    v = reg(u32, 0)
    v.set
    x[0] = v


def leaving(n: u32):
    with loop():
        break_if


def store_with_two_signs(x: Ptr[u32], n: u32):
    x[0] == n  # noqa: B015


def _named(line: str) -> tuple[str, ...]:
    text = line.replace('"', "'")
    return (
        "StructureError", f"`{text}` names an instruction and does not call it: the statement does nothing", line,
        f"`{text}(..)`",
    )


def _method(line: str) -> tuple[str, ...]:
    text = f"`{line}` names a method and does not call it: the statement does nothing"
    return ("StructureError", text, line, f"`{line}(..)`")


WRONG: list[tuple[Callable[..., None], tuple[str, ...]]] = [
    (barrier, _named("ptx.bar.sync")),
    (barrier_in_brackets, _named('ptx["bar.sync"]')),
    (half_a_name, _named("ptx.membar")),
    (return_in_a_loop, _named("ptx.ret")),
    (barrier_in_a_nested_function, _named("ptx.bar.sync")),
    (load, _method("x.load")),
    (set_of_a_reg, _method("v.set")),
    (leaving, (
        "StructureError", "`break_if` is named and not called: the statement does nothing", "break_if",
        "`break_if(..)`",
    )),
    (store_with_two_signs, (
        "StructureError", "`x[0] == n` compares, and the result is not used: the statement does nothing",
        "x[0] == n  # noqa: B015", "`x[0] = n`",
    )),
]


@pytest.mark.parametrize(("kernel", "words"), WRONG, ids=[kernel.__name__ for kernel, _ in WRONG])
def test_refused(kernel: Callable[..., None], words: tuple[str, ...]) -> None:
    assert said(refused(kernel), kernel) == words


def test_in_helpers() -> None:
    """A helper is looked at when a kernel that calls it is traced; it is refused each time."""
    for kernel in (barrier_in_a_helper, barrier_in_a_helper_of_a_helper, barrier_in_a_helper):
        error = refused(kernel)
        assert error.message == "`ptx.bar.sync` names an instruction and does not call it: the statement does nothing"
        assert error.loc is not None
        assert error.loc.line == helper.__code__.co_firstlineno + 1


def test_what_is_no_mistake() -> None:
    """Docstrings, names of instructions that are kept, a value that is looked at."""
    table: dict[str, Any] = {}

    def kernel(x: Ptr[u32], n: u32):
        """A docstring."""
        n
        add = ptx.add.u32
        table["add"] = add
        same = x[0] == n
        add(n, n, pred=same, out=reg(u32, 0))

    assert traced(kernel)[-2] == "@%p0 add.u32 %reg, %r0, %r0"
