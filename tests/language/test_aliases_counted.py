"""Rule R3 where a register that one place holds and one that two hold are changed by the same line.

Whether a register is held twice is counted before it is searched for; these programs try to make the count wrong. Each
has one line with `# wrong`, which is reached with the second register, or with the first one again.
"""

from __future__ import annotations

import gc
import inspect
import sys
from collections.abc import Callable
from functools import partial
from itertools import starmap
from operator import iadd
from types import SimpleNamespace
from typing import Any

import pytest
from ptxdsl import AliasError, Ptr, f32, loop, ptx, ptx_kernel, reg, u32, when
from ptxdsl.language.introspection.frame_variables import locals_of
from ptxdsl.language.introspection.reachable import children
from ptxdsl.language.rules import aliasing


def registers(count: int = 4) -> list[Any]:
    return [reg(f32, float(i)) for i in range(count)]


def operator_of_elements(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[3]
    for q in range(4):
        acc[q] += x  # wrong
    out[0] = old


def an_array_takes_what_a_tuple_holds(out: Any, x: Any) -> None:
    best, at = reg(f32, out[0]), reg(f32, 0.0)
    before = best, at
    best += x  # wrong
    out[1] = before[0]


def register_added_to_itself_first(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    for q in range(2):
        acc[q] += acc[0]  # wrong
    out[0] = old


def set_of_itself_first(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    for q in range(2):
        acc[q].set(acc[0])  # wrong
    out[0] = old


def out_is_an_operand_first(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    for q in range(2):
        ptx.fma.rn.f32(acc[0], x, x, out=acc[q])  # wrong
    out[0] = old


def out_is_the_last_operand_first(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    for q in range(2):
        ptx.fma.rn.f32(x, x, acc[0], out=acc[q])  # wrong
    out[0] = old


def out_is_each_operand(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    for q in range(2):
        ptx.fma.rn.f32(acc[q], acc[q], acc[q], out=acc[q])  # wrong
    out[0] = old


def in_a_loop(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    with loop(3):
        for q in range(2):
            acc[q] += x  # wrong
    out[0] = old


def in_a_loop_where_state_changes(out: Any, x: Any) -> None:
    acc = registers()
    state = SimpleNamespace(seen=[])
    old = acc[1]
    with loop(3), when(x > 0.0):
        for q in range(2):
            state.seen.append(q)
            acc[q].set(x)  # wrong
    out[0] = old


def name_in_a_loop(out: Any, x: Any) -> None:
    total, other = registers(2)
    kept = [other]
    with loop(3):
        total += x
        other += x  # wrong
    out[0] = kept[0]


def second_name_made_in_the_loop(out: Any, x: Any) -> None:
    total = reg(f32, 0.0)
    with loop(3):
        total += x
        old = total
        total += x  # wrong
        out[0] = old


def helper_called_twice(out: Any, x: Any) -> None:
    def add(r: Any) -> None:
        r += x

    one, two = registers(2)
    old = two
    add(one)
    add(two)  # wrong
    out[0] = old


def second_list_of_the_same(out: Any, x: Any) -> None:
    acc = registers()
    kept: list[Any] = []
    for q in range(4):
        acc[q] *= x  # wrong
        kept.append(acc[(q + 1) % 4])
    out[0] = kept[0]


def vector(out: Any, x: Any) -> None:
    words = [reg(u32, 0) for _ in range(4)]
    out.cast(u32).load(0, width=4, out=words)
    old = words[2]
    out.cast(u32).load(4, width=4, out=words)  # wrong
    out.cast(u32)[0] = old


def vector_with_one_kept_deep(out: Any, x: Any) -> None:
    words = [reg(u32, 0) for _ in range(4)]
    first, last = {"low": words[:2]}, [{"kept": [words[3]]}]  # the first two are held twice, and searched for
    out.cast(u32).load(0, width=4, out=words)  # wrong
    out.cast(u32)[0] = last[0]["kept"][0]


def element_kept_in_a_later_turn(out: Any, x: Any) -> None:
    acc = registers(2)
    old: Any = x
    for element in acc:
        for g in range(3):
            element += x  # wrong
            if g == 1:
                old = element
    out[0] = old
    out[1] = acc[-1]


def element_kept_in_an_object(out: Any, x: Any) -> None:
    acc = registers(2)
    state = SimpleNamespace(last=x)
    for element in acc:
        for _ in range(3):
            ptx.fma.rn.f32(x, x, element, out=element)  # wrong
            state.last = element
    out[0] = state.last
    out[1] = acc[-1]


def element_that_leaves_its_list(out: Any, x: Any) -> None:
    acc = registers(2)
    old: Any = x
    for element in acc[:1]:
        for g in range(3):
            ptx.fma.rn.f32(x, x, element, out=element)  # wrong
            if g == 0:
                old = acc.pop(0)
    out[0] = old
    out[1] = acc[-1]


def element_replaced_in_its_list(out: Any, x: Any) -> None:
    acc, kept = registers(2), []
    for element in acc[:1]:
        for g in range(3):
            ptx.fma.rn.f32(x, x, element, out=element)  # wrong
            if g == 0:
                kept.append(acc[0])
                acc[0] = acc[1]
    out[0] = kept[0]
    out[1] = acc[-1]


def list_under_another_name(out: Any, x: Any) -> None:
    acc = registers(2)
    kept = acc
    for element in acc[:1]:
        for g in range(3):
            ptx.fma.rn.f32(x, x, element, out=element)  # wrong
            if g == 0:
                acc = registers(2)
    out[0] = kept[0]
    out[1] = acc[0]


def other_register_under_the_name(out: Any, x: Any) -> None:
    acc = registers(2)
    old = acc[1]
    for element in acc:
        for g in range(3):
            if g == 1:
                element = acc[1]
            element.set(x)  # wrong
    out[0] = old
    out[1] = acc[-1]


def in_a_tuple_made_before(out: Any, x: Any) -> None:
    acc = registers(2)
    pairs = [(x, 1), (x, 2)]
    for element in acc:
        for g in range(3):
            element += x  # wrong
            pairs[g % 2] = (element, g)
    out[0] = pairs[0][0]
    out[1] = acc[-1]


def element_kept_between_two_changes(out: Any, x: Any) -> None:
    acc = registers(3)
    kept: list[Any] = []
    for i, element in enumerate(acc):
        element *= x
        if i == 2:
            kept.append(element)
        ptx.fma.rn.f32(x, x, element, out=element)  # wrong
    out[0] = kept[0]
    out[1] = acc[-1]


def element_kept_after_the_first_use_of_an_instruction(out: Any, x: Any) -> None:
    acc = registers(2)
    kept: list[Any] = []
    for element in acc:
        for g in range(3):
            ptx.fma.rm.ftz.sat.f32(x, x, element, out=element)  # wrong
            if g == 0:
                kept.append(element)
    out[0] = kept[0]
    out[1] = acc[-1]


def element_kept_beside_the_first_use_of_an_instruction(out: Any, x: Any) -> None:
    acc = registers(3)
    kept: list[Any] = []
    for i, element in enumerate(acc):
        element *= x
        if i == 1:
            kept.append(element)
        ptx.fma.rp.ftz.sat.f32(x, x, element, out=element)  # wrong
    out[0] = kept[0]
    out[1] = acc[-1]


def by_iadd(out: Any, x: Any) -> None:
    acc = registers()
    old = acc[1]
    for q in range(2):
        acc[q] = iadd(acc[q], x)  # wrong
    out[0] = old


def by_starmap(out: Any, x: Any) -> None:
    acc = registers(2)
    old = acc[1]
    for _ in starmap(iadd, [(acc[0], x), (acc[1], x)]):  # wrong
        pass
    out[0] = old + acc[1]


def by_partial(out: Any, x: Any) -> None:
    acc = registers(2)
    old = acc[1]
    for q in range(2):
        partial(ptx.add.f32, x, x, out=acc[q])()  # wrong
    out[0] = old


WRONG = [program for program in list(globals().values()) if callable(program) and getattr(program, "__module__", "")
         == __name__ and "# wrong\n" in inspect.getsource(program)]


@pytest.mark.parametrize("program", WRONG, ids=lambda f: f.__name__)
def test_a_second_holder_is_found(program: Callable[[Any, Any], None]) -> None:
    def kernel(out: Ptr[f32], x: f32) -> None:
        program(out, x)

    for _ in range(2):
        with pytest.raises(AliasError) as caught:
            ptx_kernel(kernel).ptx()
        lines, first = inspect.getsourcelines(program)
        assert caught.value.loc is not None
        assert "# wrong" in lines[caught.value.loc.line - first]


@pytest.mark.parametrize("program", [p for p in WRONG if "old = " in inspect.getsource(p)], ids=lambda f: f.__name__)
def test_without_a_second_holder_they_are_right(program: Callable[[Any, Any], None]) -> None:
    source = inspect.getsource(program)
    names = dict(globals())
    copied = "\n".join(f"{line}.copy()" if " old = " in line else line for line in source.splitlines())
    exec(copied, names)
    right = names[program.__name__]

    def kernel(out: Ptr[f32], x: f32) -> None:
        right(out, x)

    assert ptx_kernel(kernel).ptx()


def test_a_look_at_a_frame_leaves_no_references() -> None:
    held = object()
    before = sys.getrefcount(held)
    assert locals_of(sys._getframe())["held"] is held
    assert sys.getrefcount(held) == before


def test_registers_that_helpers_change_are_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = aliasing.holders
    monkeypatch.setattr(aliasing, "holders", lambda *given: searched.append(1) or search(*given))
    monkeypatch.setattr(gc, "get_referrers", None)

    def add(total: Any, values: list[Any]) -> None:
        for value in values:
            ptx.add.f32(total, value, out=total)

    def kernel(out: Ptr[f32], x: f32) -> None:
        total = reg(f32, 0.0)
        add(total, [x, x * 2.0, x, x, x])
        out[0] = total

    assert ptx_kernel(kernel).ptx()
    assert len(searched) <= 1


def test_elements_of_a_list_are_searched_for_once_an_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = aliasing.holders
    monkeypatch.setattr(aliasing, "holders", lambda *given: searched.append(1) or search(*given))

    def kernel(out: Ptr[f32], x: f32) -> None:
        acc = registers(8)
        with loop(3):
            for element in acc[:6]:
                element *= x
                for _ in range(5):
                    ptx.fma.rn.f32(x, x, element, out=element)
        for i, value in enumerate(acc):
            out[i] = value

    assert ptx_kernel(kernel).ptx()
    assert len(searched) <= 8


def test_elements_of_a_list_that_helpers_are_handed_are_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is one place, in how many frames it may be; each element is changed by the same line again."""
    searched: list[int] = []
    search = aliasing.holders
    monkeypatch.setattr(aliasing, "holders", lambda *given: searched.append(1) or search(*given))
    holder = SimpleNamespace

    def multiply(sums: Any, x: Any) -> None:
        for _ in range(6):
            ptx["ld.global.v4.f32"](x, out=sums.registers)

    def step(sums: Any, x: Any) -> None:
        multiply(sums, x)

    def kernel(out: Ptr[f32], x: Ptr[f32]) -> None:
        sums = holder(registers=registers())
        with loop(3):
            step(sums, x)
        for i, value in enumerate(sums.registers):
            out[i] = value

    assert ptx_kernel(kernel).ptx()
    assert len(searched) <= 4


def test_objects_of_classes_compiled_to_c_are_read_without_their_table() -> None:
    formatters = pytest.importorskip("mypy.error_formatter")
    assert children(formatters.JSONFormatter()) in ([], [("attribute", [], [])])
