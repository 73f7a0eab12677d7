"""Calls of ours that Python refuses, told with the user's line and how the call is written."""

# mypy: disable-error-code=call-arg
from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxdsl import Ptr, f32, loop, ptx, reg, select, shared, u32, when
from ptxdsl.errors import PtxTypeError
from ptxdsl.language import trace

OPERANDS = "operands by position, in PTX's order; `out=` for the result, `pred=` for the guard"


def no_predicate(n: u32) -> None:
    with when():
        pass


def named_operand(n: u32) -> None:
    ptx.add.u32(a=n)


def named_operand_in_brackets(n: u32) -> None:
    ptx["ld.global.v4.f32"](n, mask=3)


def named_bound(n: u32) -> None:
    with loop(start=3):
        pass


def wrong_keyword(x: Ptr[f32]) -> None:
    x.load(mask=3)


def no_type(n: u32) -> None:
    n.to()


def no_register(n: u32) -> None:
    reg()


def too_few(n: u32) -> None:
    select(n < 3)


def named_array(n: u32) -> None:
    shared(f32, 4, name="a")


@pytest.mark.parametrize(("kernel", "message", "line", "hint"), [
    (no_predicate, "`when()` missing 1 required positional argument: 'p'", "with when():", "`when(p)`"),
    (named_operand, "`ptx.add.u32()` got an unexpected keyword argument 'a'", "ptx.add.u32(a=n)",
     f"`add.u32 d, a, b`: {OPERANDS}"),
    (named_operand_in_brackets, "`ptx[\"ld.global.v4.f32\"]()` got an unexpected keyword argument 'mask'",
     'ptx["ld.global.v4.f32"](n, mask=3)', "`ld.global.v4.f32 {d0, d1, d2, d3}, [a]`: " + OPERANDS),
    (named_bound, "`loop()` got an unexpected keyword argument 'start'", "with loop(start=3):",
     "`loop(*bounds, unroll=1)`"),
    (wrong_keyword, "`.load()` got an unexpected keyword argument 'mask'", "x.load(mask=3)",
     ("`.load(index=0, *, width=1, pred=None, out=None, cache=None, evict=None, evict_l2=None, prefetch=None, "
      "policy=None)`")),
    (no_type, "`.to()` missing 1 required positional argument: 'type'", "n.to()", "`.to(type, *modifiers)`"),
    (no_register, "`reg()` missing 1 required positional argument: 'type'", "reg()", "`reg(type, value=None)`"),
    (too_few, "`select()` missing 2 required positional arguments: 'a' and 'b'", "select(n < 3)",
     "`select(p, a, b)`"),
    (named_array, "`shared()` got an unexpected keyword argument 'name'", 'shared(f32, 4, name="a")',
     "`shared(dtype, *shape, align=16)`"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_refused_by_python(kernel: Callable[..., None], message: str, line: str, hint: str) -> None:
    with pytest.raises(PtxTypeError) as caught:
        trace(kernel)
    error = caught.value
    assert error.loc is not None
    assert (error.message, error.loc.source, error.hint) == (message, line, hint)


def test_a_helper_of_the_users_is_the_users() -> None:
    def kernel(n: u32) -> None:
        def when(a: u32, b: u32) -> None: ...

        when(n)

    with pytest.raises(TypeError) as caught:
        trace(kernel)
    assert not isinstance(caught.value, PtxTypeError)
