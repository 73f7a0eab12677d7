"""A launch under the sanitizer goes on after an access out of bounds, so that one run shows several."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ptxdsl import Array, MemoryFault, RaceError, TrapError, f32, loop, ptx, ptx_kernel, reg, shared, u32, use, when
from ptxdsl.config import override
from ptxdsl.emulator.runtime import worker_pool
from ptxdsl.emulator.sanitizer.sanitizer import collect


@ptx_kernel
def several(x: Array[f32, 1], y: Array[f32, 1]) -> None:
    t = ptx.tid.x
    tile = shared(f32, 32)
    tile[t] = x[t + 4]
    ptx.bar.sync(0)
    y[t] = tile[t]
    y[t + 8] = 1.0
    tile[t + 1] = 2.0


@ptx_kernel
def with_a_race(x: Array[u32, 1], y: Array[u32, 1]) -> None:
    t = ptx.tid.x
    y[t + 1] = t
    y[0] = t


@ptx_kernel
def turns(x: Array[u32, 1], y: Array[u32, 1]) -> None:
    with loop(x[ptx.tid.x + 40]) as i:
        y[i] = i


@ptx_kernel
def tables(x: Array[u32, 1], y: Array[u32, 1]) -> None:
    y[x[ptx.tid.x] & 31] = 1
    with when(ptx.tid.x == 3):
        ptx.red.global_.add.u32(y.at(100), 1)
    y[ptx.tid.x] = ptx.tid.x


@ptx_kernel
def trapped(who: u32, y: Array[u32, 1]) -> None:
    y[ptx.tid.x + 30] = 1
    with when(ptx.tid.x == who):
        ptx.trap()


def arrays(kind: Any = np.float32) -> tuple[Any, Any]:
    return np.arange(32, dtype=kind), np.zeros(32, kind)


def caught(kernel: Any, kind: Any = np.float32, tools: str = "all") -> Any:
    x, y = arrays(kind)
    with use("emulator"), pytest.raises((MemoryFault, RaceError)) as error:
        kernel.configure(1, 32, sanitize=tools)(x, y)
    return error.value, y


def test_each_once() -> None:
    error, y = caught(several, tools="init")
    lines = [finding.access.loc.source for finding in error.findings]
    assert lines == ["tile[t] = x[t + 4]", "y[t + 8] = 1.0", "tile[t + 1] = 2.0"]
    assert [finding.kind for finding in error.findings] == ["memory"] * 3
    assert isinstance(error, MemoryFault)
    assert error.message.splitlines()[0] == "load from x[32]: x is f32[32]"
    assert error.message.splitlines()[1] == "and 2 more findings:"
    assert np.array_equal(y, np.where(np.arange(32) < 8, np.arange(4, 36), 1))


def test_the_next_launch_faults_again() -> None:
    for _ in range(2):
        error, _ = caught(several, tools="init")
        assert len(error.findings) == 3
    x, y = arrays()
    with use("emulator"), pytest.raises(MemoryFault) as plain:
        several[1, 32](x, y)
    assert not plain.value.findings


def test_beside_a_race() -> None:
    error, _ = caught(with_a_race, np.uint32)
    assert [finding.kind for finding in error.findings] == ["memory", "race"]


def test_a_load_gives_zero() -> None:
    error, y = caught(turns, np.uint32)
    assert len(error.findings) == 1
    assert not y.any()


def test_atomics() -> None:
    error, y = caught(tables, np.uint32)
    assert "memory" in [finding.kind for finding in error.findings]
    assert np.array_equal(y, np.arange(32))


@pytest.mark.parametrize("who", [2, 3])
@pytest.mark.parametrize("tools", ["memory", "all"])
def test_another_fault_of_the_block_is_raised_too(tools: str, who: int) -> None:
    """Thread 2 is the first out of bounds; the trap is its own, on another line, or another thread's."""
    launch = trapped.configure(1, 32, sanitize=tools, backend="emulator")
    with collect() as findings, pytest.raises(TrapError) as trap:
        launch(who, np.zeros(32, np.uint32))
    assert [(finding.kind, finding.access.thread) for finding in findings] == [("memory", (2, 0, 0))]
    assert trap.value.thread == (who, 0, 0)
    with pytest.raises(MemoryFault) as first:
        launch(who, np.zeros(32, np.uint32))
    assert isinstance(first.value.__cause__, TrapError)


def test_json() -> None:
    error, _ = caught(several)
    found = json.loads(error.to_json())
    assert found[0]["message"] == "load from x[32]: x is f32[32]"
    assert {"kind", "message", "file", "line", "ptx_line", "instruction", "block", "thread", "hint"} <= set(found[0])
    assert (found[0]["block"], found[0]["thread"], found[0]["line"]) == ([0, 0, 0], [28, 0, 0], error.loc.line)
    x, y = arrays()
    with use("emulator"), pytest.raises(MemoryFault) as plain:
        several[1, 32](x, y)
    assert json.loads(plain.value.to_json())[0]["kind"] == "MemoryFault"


@ptx_kernel
def late_first(n: u32, x: Array[u32, 1], y: Array[u32, 1]) -> None:
    """The first block comes to its access long after the others."""
    value = reg(u32, 1)
    with when(ptx.ctaid.x == 0), loop(n):
        value.set(value * 3 + 1)
    y[value & 1] = value
    with when(ptx.ctaid.x % 4 == 0):
        x[x[ptx.ctaid.x] + 8] = 1


def test_the_lowest_block_is_named_whoever_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-12)
    monkeypatch.setattr(worker_pool, "SURE_SECONDS", 0.0)
    monkeypatch.setattr(worker_pool, "first_slice", lambda _: 1)
    x, y = np.full(8, 100, np.uint32), np.zeros(2, np.uint32)
    launch = late_first.configure(8, 1, sanitize="memory", backend="emulator")
    with override(emulator_threads=2):
        for n in (0, 4_000_000, 4_000_000):
            with collect() as findings:
                launch(n, x, y)
            assert [finding.access.block for finding in findings] == [(0, 0, 0)]
            assert findings[0].message.startswith("store to x[108]")
