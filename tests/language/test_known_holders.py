"""Rule R3 finds with what it remembers of earlier searches what it finds by searching each time anew."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ptxdsl import AliasError, Ptr, f32, loop, ptx, ptx_kernel, reg
from ptxdsl.language.rules import aliasing

def registers(count: int) -> list[Any]:
    return [reg(f32, 0.0) for _ in range(count)]


def in_a_list_of_an_object(out: Any, x: Any) -> None:
    sums = SimpleNamespace(blocks=[registers(6)])
    kept = [sums.blocks[0][4]]
    for i in range(6):
        sums.blocks[0][i].set(x)  # wrong
    out[0] = kept[0]


def of_a_vector(out: Any, x: Any) -> None:
    sums = SimpleNamespace(blocks=[registers(4) for _ in range(3)])
    kept = [sums.blocks[2][3]]
    for block in sums.blocks:
        out.load(0, width=4, out=block)  # wrong
    out[0] = kept[0]


def by_a_helper(out: Any, x: Any) -> None:
    def add(values: list[Any]) -> None:
        for value in values:
            value += x

    rows = [registers(2) for _ in range(4)]
    kept = [rows[3][1]]
    for row in rows:
        add(row)  # wrong
    out[0] = kept[0]


def moved_to_another_list(out: Any, x: Any) -> None:
    rows, kept = [registers(3), registers(3)], []
    for row in rows:
        for i in range(3):
            element = row[i]
            if row is rows[1] and i == 2:
                kept.append(element)
                row[i] = reg(f32, 0.0)
            element += x  # wrong
    out[0] = kept[0]


def in_a_second_list(out: Any, x: Any) -> None:
    sums = SimpleNamespace(registers=registers(6))
    kept: list[Any] = []
    for i in range(6):
        if i == 4:
            kept = sums.registers
            sums.registers = list(kept)
        sums.registers[i].set(x)  # wrong
    out[0] = kept[5]


def given_by_a_helper(out: Any, x: Any) -> None:
    (last,) = registers(1)
    kept = [last, last]
    for i in range(5):
        (last if i == 4 else reg(f32, 0.0)).set(x)  # wrong
    out[0] = kept[0]
    out[1] = kept[1]


def in_a_region_opened_later(out: Any, x: Any) -> None:
    sums = SimpleNamespace(registers=registers(6))
    for turn in range(2):
        with loop(3):
            for i in range(6):
                sums.registers[i].set(x)  # wrong
        if turn == 0:
            sums.kept = {"last": sums.registers[5]}
    out[0] = sums.kept["last"]


WRONG = [
    in_a_list_of_an_object, of_a_vector, by_a_helper, moved_to_another_list, in_a_second_list, given_by_a_helper,
    in_a_region_opened_later,
]


def traced(program: Callable[..., None], *given: Any) -> str:
    """The PTX text of a program, or its error."""

    def kernel(out: Ptr[f32], x: f32) -> None:
        program(out, x, *given)

    try:
        return ptx_kernel(kernel).ptx()
    except AliasError as error:
        return str(error)


def searched(patch: pytest.MonkeyPatch, program: Callable[..., None], *given: Any) -> str:
    """What becomes of a program if each change is searched for."""
    with patch.context() as inner:
        for name in ("is_alone", "is_known"):
            inner.setattr(aliasing, name, lambda *_: False)
        return traced(program, *given)


@pytest.mark.parametrize("program", WRONG, ids=lambda f: f.__name__)
def test_a_second_holder_that_comes_late_is_found(
    program: Callable[[Any, Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = traced(program)
    assert "hold the same reg" in found
    assert found == searched(monkeypatch, program)


def random_program(out: Any, x: Any, plan: list[tuple[str, int, int]]) -> None:
    """Changes of registers in lists, all of them at the same few lines, and what gives them further holders."""
    rows = [SimpleNamespace(registers=registers(3)) for _ in range(3)]
    kept: list[Any] = []
    for action, i, j in plan:
        row = rows[i].registers
        if action == "element":
            row[j].set(x)
        elif action == "deep":
            ptx.fma.rn.f32(x, x, x, out=rows[i].registers[j])
        elif action == "name":
            element = row[j]
            element *= x
        elif action == "vector":
            ptx["ld.global.v2.f32"](out, out=row[:2])
        elif action == "keep":
            kept.append(row[j])
        elif action == "move":
            kept.append(row[j])
            row[j] = reg(f32, 0.0)
        elif action == "share":
            rows[j].registers = row
        elif action == "copy":
            rows[i].registers = list(row)
        else:
            kept.clear()
    for row in rows:
        out[0] = row.registers[0] + row.registers[1] + row.registers[2]
    for value in kept:
        out[1] = value


ACTIONS = ["element", "deep", "name", "vector"] * 6 + ["keep", "move", "share", "copy", "forget"]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    count = int(rng.integers(4, 60))
    plan = [(str(rng.choice(ACTIONS)), int(rng.integers(3)), int(rng.integers(3))) for _ in range(count)]
    assert traced(random_program, plan) == searched(monkeypatch, random_program, plan), plan
