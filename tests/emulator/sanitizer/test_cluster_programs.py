"""The sanitizer and blocks that reach each other's shared memory: copies, stores, mbarriers, ends; right ones pass."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest
from cluster_programs import THREADS, ClusterProgram, programs

import ptxdsl
from ptxdsl import EmulationError, MemoryFault
from ptxdsl.emulator.sanitizer.sanitizer import collect

PROGRAMS = programs()


def findings(program: ClusterProgram) -> list[Any]:
    """Of right ones two clusters run, so that the second meets what the first has left."""
    shape = program.cluster
    grid = ((1 + program.right) * shape[0], *shape[1:])
    x, out = np.zeros(4096, np.uint8), np.zeros(65536 + 4 * THREADS * math.prod(grid), np.uint8)
    with collect() as found:
        kernel = ptxdsl.load(program.text)["k"]
        with contextlib.nullcontext() if program.right else contextlib.suppress(EmulationError):
            kernel.configure(grid, THREADS, cluster=shape, backend="emulator", sanitize=("race", "init"))(x, out)
    return found


def marked(text: str, mark: str) -> int | None:
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(mark)]
    return lines[0] if lines else None


def test_names_are_one_program_each() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.right], ids=lambda p: p.name)
def test_right_programs(program: ClusterProgram) -> None:
    assert [str(finding) for finding in findings(program)] == []


@pytest.mark.parametrize("program", [p for p in PROGRAMS if not p.right], ids=lambda p: p.name)
def test_wrong_programs(program: ClusterProgram) -> None:
    """Both lines are named, whichever of them a run comes to last."""
    found = findings(program)
    assert found, "nothing was found"
    lines = {marked(program.text, "//@"), marked(program.text, "//#")} - {None}
    first = found[0]
    assert {first.access.ptx_line, *([first.earlier.ptx_line] if first.earlier else [])} == lines, str(first)
    assert first.hint


TO_ENDED = [p for p in PROGRAMS if p.name in (
    "end: arrival at an mbarrier of a block that does not wait", "end: a copy that its receiver does not wait for",
)]


@pytest.mark.parametrize("program", TO_ENDED, ids=lambda p: p.name)
def test_an_access_to_a_block_that_has_ended_is_one_error(program: ClusterProgram) -> None:
    """The launch ends there, as such operations cannot go nowhere; nothing else is said of it."""
    kernel = ptxdsl.load(program.text)["k"].configure(
        program.cluster, THREADS, cluster=program.cluster, backend="emulator", sanitize=("race", "init")
    )
    arrays = np.zeros(4096, np.uint8), np.zeros(1 << 17, np.uint8)
    with pytest.raises(MemoryFault, match="which has ended") as raised:
        kernel(*arrays)
    assert raised.value.__cause__ is None
    with collect() as found:
        kernel(*arrays)
    assert [each.kind for each in found] == ["memory"]
