"""The sanitizer and the async proxy: what is complete, what is fenced, registers of wgmma; right programs pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proxy_programs import THREADS, Program, programs

import ptxdsl
from ptxdsl.emulator.sanitizer.sanitizer import collect

PROGRAMS = programs()


def findings(text: str, seed: int | None = None) -> list[Any]:
    x, out = np.zeros(4096, np.uint8), np.zeros(8192, np.uint8)
    with collect() as found:
        kernel = ptxdsl.load(text)["k"].configure(1, THREADS, backend="emulator", sanitize=("race", "init"), seed=seed)
        kernel(x, out)
    return found


def marked(text: str, mark: str) -> int | None:
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(mark)]
    return lines[0] if lines else None


def test_there_are_enough() -> None:
    names = [program.name for program in PROGRAMS]
    assert len({(program.name, program.right) for program in PROGRAMS}) == len(names)
    assert sum(not program.right for program in PROGRAMS) >= 60
    assert sum(program.right for program in PROGRAMS) >= 40


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.right], ids=lambda p: p.name)
def test_right_programs(program: Program) -> None:
    assert [str(finding) for finding in findings(program.text)] == []


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.right], ids=lambda p: p.name)
def test_wrong_programs(program: Program) -> None:
    """Both lines are named, whichever of them a run comes to last."""
    found = findings(program.text)
    assert found, "nothing was found"
    lines = {marked(program.text, "//@"), marked(program.text, "//#")} - {None}
    first = found[0]
    named = {first.access.ptx_line, *([first.earlier.ptx_line] if first.earlier else [])}
    assert named == lines, str(first)
    assert first.hint


_MESSAGES = {
    "load, ends: nobody waits":
        "the block ends before the bulk copy by thread (0, 0, 0) is known to be complete: "
        "nobody has waited for its phase of bar[0]",
    "mbarrier: made again before a wait":
        "bar[0] is made again or invalid while the bulk copy by thread (0, 0, 0) that it counts is not known to be "
        "complete",
    "mbarrier: made again, bytes lack": "bar[1] is made again or invalid while its phase still waits for 64 bytes",
    "answers: nobody uses it": "load from tile[0], whose copy by thread (0, 0, 0) is not known to be complete",
}


@pytest.mark.parametrize(("name", "message"), _MESSAGES.items())
def test_messages(name: str, message: str) -> None:
    program = next(each for each in PROGRAMS if each.name == name)
    assert findings(program.text)[0].message == message
