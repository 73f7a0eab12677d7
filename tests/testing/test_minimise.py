"""`minimise`: the smallest launch that still goes wrong."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, DeadlockError, LaunchError, MemoryFault, Ptr, RaceError, UninitializedError, f32, loop, ptx, ptx_kernel, reg,
    shared, u32, when,
)
from ptxdsl.testing import minimise

pytestmark = pytest.mark.emulator


@ptx_kernel
def racy(x: Ptr[f32], y: Ptr[f32], n: u32) -> None:
    tile = shared(f32, 128)
    t = ptx.tid.x
    i = ptx.ctaid.x * 128 + t
    y[i] = ptx.sqrt.rn.f32(x[i] * x[i] + 1.0)
    acc = reg(f32, 0.0)
    with loop(t, n, 128) as j:
        acc += x[j]
    tile[t] = acc
    x[i] = tile[127 - t]


def test_a_race() -> None:
    x, y = np.ones((2, 512), np.float32)
    small = minimise(racy.configure(4, 128, sanitize="race"), x, y, 512)
    assert isinstance(small.error, RaceError)
    assert small.grid == (1, 1, 1) and small.block[0] < 128
    assert all(each.size < 512 for each in small.arguments[:2])
    before, after = small.instructions
    assert after < before and "sqrt" not in small.ptx
    assert len(re.findall(r"\b(?:ld|st)\.shared", small.ptx)) == 2
    with pytest.raises(RaceError, match=r"^race on tile\["):
        small()
    assert (x == 1).all() and (y == 1).all()
    first, second = str(small).splitlines()[:2]
    assert first.startswith(f"racy[(1, 1, 1), {small.block}](float32[") and f"{after} of {before} instructions" in first
    assert second.startswith("RaceError: race on tile[")


def test_what_is_left_is_ptx_that_goes_wrong_by_itself() -> None:
    x, y = np.ones((2, 512), np.float32)
    small = minimise(racy.configure(4, 128, sanitize="race"), x, y, 512)
    again = ptxdsl.load(small.ptx)["racy"].configure(small.grid, small.block, sanitize="race", backend="emulator")
    with pytest.raises(RaceError):
        again(*small.arguments)


def test_out_of_bounds_keeps_the_bound() -> None:
    @ptx_kernel
    def beyond(n: u32, x: Ptr[f32]) -> None:
        i = ptx.ctaid.x * 64 + ptx.tid.x
        with when(i < n):
            x[i] = ptx.rcp.rn.f32(x[i] + 2.0)

    small = minimise(beyond[8, 64], 500, np.ones(300, np.float32))
    assert isinstance(small.error, MemoryFault)
    assert small.arguments[1].size == 1 and small.instructions[1] < small.instructions[0]
    with pytest.raises(MemoryFault):
        small()


def test_uninitialised_memory_of_a_matrix() -> None:
    @ptx_kernel
    def half(a: Array[f32, 2]) -> None:
        tile = shared(f32, 64)
        with when(ptx.tid.x < 32):
            tile[ptx.tid.x] = a[ptx.ctaid.x, ptx.tid.x]
        ptx.bar.sync(0)
        a[ptx.ctaid.x, ptx.tid.x] = tile[ptx.tid.x]

    small = minimise(half.configure(5, 64, sanitize="all"), np.ones((5, 64), np.float32))
    assert isinstance(small.error, UninitializedError) and small.grid == (1, 1, 1)
    assert small.arguments[0].shape[0] == 1
    with pytest.raises(UninitializedError):
        small()


def test_a_deadlock_keeps_its_branch() -> None:
    @ptx_kernel
    def stuck(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = x[ptx.tid.x] + 1.0
        with when(ptx.tid.x < 32):
            ptx.barrier.sync(1, 64)

    small = minimise(stuck[2, 64], np.ones(64, np.float32))
    assert isinstance(small.error, DeadlockError) and "add.f32" not in small.ptx
    assert small.grid == (1, 1, 1)


def test_foreign_ptx_and_constants() -> None:
    @ptx_kernel
    def k(x: Ptr[f32], *, shift: int) -> None:
        x[ptx.tid.x + shift] = x[ptx.tid.x] * 2.0

    small = minimise(k[2, 32], np.ones(40, np.float32), shift=16)
    foreign = minimise(ptxdsl.load(k.ptx(shift=16))["k"][2, 32], np.ones(40, np.float32))
    assert isinstance(small.error, MemoryFault) and isinstance(foreign.error, MemoryFault)
    assert small.instructions[1] == foreign.instructions[1]


def test_nothing_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_BACKEND", "emulator")
    x, y = np.ones((2, 512), np.float32)
    with pytest.raises(LaunchError) as caught:
        minimise(racy[4, 128], x, y, 512)
    assert caught.value.message == "kernel `racy` does nothing wrong with these arguments"
    assert caught.value.hint == 'ask for the check: `k.configure(grid, block, sanitize="all")`'


def test_a_launch_that_is_none() -> None:
    with pytest.raises(LaunchError, match="^block.x|^kernel `racy` takes 3 arguments|argument"):
        minimise(racy[4, 128], np.ones(3, np.float32))


def test_no_more_trials_than_wanted() -> None:
    x, y = np.ones((2, 512), np.float32)
    launch: Any = racy.configure(4, 128, sanitize="race")
    assert minimise(launch, x, y, 512, limit=5).trials == 5
