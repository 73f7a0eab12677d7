"""Recorded launches repeated on the emulator: what depends on the schedule is found, and what on anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, u32, u64, use
from ptxdsl.gpu_check.bare.tape import Case, Tape
from ptxdsl.gpu_check.emulation import repeat
from ptxdsl.gpu_check.recording import Recorder

Rng = np.random.Generator


def recorded(folder: Path, kernel: object, grid: int, block: int, *arguments: object) -> tuple[Tape, Case]:
    recorder = Recorder(Tape(folder))
    with recorder.installed(), use("emulator"):
        kernel[grid, block](*arguments)  # type: ignore[index]
    (case,) = recorder.tape.cases
    return recorder.tape, case


def test_sums_of_floats_in_any_order(tmp_path: Path, rng: Rng) -> None:
    """The integers beside them are compared."""
    @ptx_kernel
    def k(x: Ptr[f32], total: Ptr[f32], count: Ptr[u32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        ptx.red.global_.add.f32(total + (i & 3), x[i])
        ptx.red.global_.add.u32(count, i)

    x = (rng.standard_normal(4096) * 10.0 ** rng.integers(-6, 6, 4096)).astype(np.float32)
    tape, case = recorded(tmp_path, k, 32, 128, x, np.zeros(4, np.float32), np.zeros(1, np.uint32))
    found = repeat(tape, case, {})
    masks = {area.name: mask for area, mask in zip(case.areas, found.unspecified)}
    assert found.problem == ""
    assert any(masks["total"])
    assert (masks["x"], masks["count"]) == (b"", b"")


def test_who_comes_first(tmp_path: Path) -> None:
    @ptx_kernel
    def k(ticket: Ptr[u32], order: Ptr[u32]) -> None:
        order[ptx.ctaid.x] = ptx.atom.global_.add.u32(ticket, 1)

    tape, case = recorded(tmp_path, k, 64, 1, np.zeros(1, np.uint32), np.zeros(64, np.uint32))
    masks = {area.name: mask for area, mask in zip(case.areas, repeat(tape, case, {}).unspecified)}
    assert masks["ticket"] == b""
    assert any(masks["order"])


def test_other_memory_than_was_recorded(tmp_path: Path, rng: Rng) -> None:
    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        x[ptx.tid.x] += 1

    tape, case = recorded(tmp_path, k, 1, 32, rng.integers(0, 99, 32, np.uint32))
    assert repeat(tape, case, {}).problem == ""
    (area,) = case.areas
    changed = case._replace(areas=(area._replace(before=area.after),))
    assert repeat(tape, changed, {}).problem == "its results depend on more than its parameters and their memory"


def test_an_error_when_it_is_repeated(tmp_path: Path) -> None:
    @ptx_kernel
    def k(x: Ptr[u32], n: u32) -> None:
        x[n] += 1

    tape, case = recorded(tmp_path, k, 1, 1, np.zeros(8, np.uint32), 7)
    wild = case._replace(parameters=(case.parameters[0], case.parameters[1]._replace(data="ffffff0f")))
    assert repeat(tape, wild, {}).problem.startswith("on the emulator it fails when it is repeated: ")


def test_a_launch_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @ptx_kernel
    def k(n: u64, x: Ptr[u64]) -> None:
        with loop(n) as i:
            x[ptx.tid.x] = x[ptx.tid.x] * 3 + i

    tape, case = recorded(tmp_path, k, 1, 32, 9, np.ones(32, np.uint64))
    monkeypatch.setattr("ptxdsl.gpu_check.emulation.LIMIT", 2)
    long = case._replace(parameters=(case.parameters[0]._replace(data="ffffffffffffff00"), case.parameters[1]))
    assert repeat(tape, long, {}).problem == "on the emulator it takes more than 2 s to repeat it"
    assert repeat(tape, case, {}).problem == ""
