"""Indices beyond their own dimension are found where memory is there, and right programs are left alone."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

from ptxdsl import (
    Array, MemoryFault, Ptr, RaceError, const, f32, local, loop, ptx, ptx_kernel, reg, s32, shared, u32, use, when,
)
from tests.support.index_programs import RIGHT, WRONG, run

generator = np.random.default_rng(11)


def arrays() -> tuple[Any, Any]:
    """The middle of a matrix, so that its rows lie apart, and memory is on all sides; and a vector."""
    return generator.random((4, 4)).astype(np.float32), np.zeros(32, np.float32)


def wrong_lines(kernel: Any) -> set[str]:
    import tests.support.index_programs as programs

    body = inspect.getsource(kernel.function)
    source = body if "# wrong" in body else inspect.getsource(programs.called._function)
    return {line.strip() for line in source.splitlines() if line.endswith("# wrong")}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("tools", ["memory", ("memory", "race", "init")])
def test_wrong(name: str, tools: Any) -> None:
    a, y = arrays()
    with use("emulator"), pytest.raises(MemoryFault) as error:
        run(WRONG[name], a, y, sanitize=tools)
    found = {f.access.loc.source.strip() for f in error.value.findings if f.kind == "memory"}
    assert found == wrong_lines(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("tools", ["memory", ("memory", "init")])
def test_right(name: str, tools: Any) -> None:
    a, y = arrays()
    b, z = a.copy(), y.copy()
    with use("emulator"):
        run(RIGHT[name], a, y)
        run(RIGHT[name], b, z, sanitize=tools)
    assert np.array_equal(a, b) and np.array_equal(y, z)
    assert len(WRONG) >= 25 and len(RIGHT) >= 25


def test_plain_launches_have_no_checks() -> None:
    a, y = arrays()
    kernel = WRONG["next_row"]
    with use("emulator"):
        before = kernel.ptx()
        run(kernel, a, y)
        assert np.all(y == a[2, 2])
        with pytest.raises(MemoryFault):
            run(kernel, a, y, sanitize="memory")
        run(kernel, a, y)
        assert kernel.ptx() == before


def message(function: Any, *arguments: Any, block: int = 1) -> Any:
    with use("emulator"), pytest.raises(MemoryFault) as error:
        ptx_kernel(function).configure(1, block, sanitize="memory")(*arguments)
    return error.value


def test_message() -> None:
    def store(a: Array[f32, 2], n: u32) -> None:
        with when(ptx.tid.x == 5):
            a[n, 6] = 1.0

    error = message(store, np.zeros((4, 4), np.float32), 2, block=8)
    assert error.message == "store to a[2, 6]: a is f32[4, 4], and 6 is outside of dimension 1"
    assert (error.thread, error.hint, error.loc.source.strip()) == ((5, 0, 0), None, "a[n, 6] = 1.0")


def test_message_below_zero() -> None:
    def load(a: Array[f32, 2], n: s32, m: u32) -> None:
        a[0, 0] = a[1, n]
        a[0, 1] = a[m - 9, 0]

    error = message(load, np.zeros((4, 4), np.float32), -1, 8)
    assert [finding.message for finding in error.findings] == [
        "load from a[1, -1]: a is f32[4, 4], and -1 is outside of dimension 1",
        "load from a[4294967295, 0]: a is f32[4, 4], and 4294967295 is outside of dimension 0",
    ]
    assert error.findings[1].hint == "4294967295 is -1 as a u32: the index went below 0"


def test_message_of_a_vector() -> None:
    def load(n: u32) -> None:
        tile = shared(f32, 4, 6)
        tile.store((1, n), [1.0, 2.0, 3.0, 4.0])

    error = message(load, 4)
    assert error.message == "store of 4 elements to tile[1, 4]: tile is f32[4, 6], and 4 to 7 is outside of dimension 1"


def test_strides_of_a_view() -> None:
    def store(a: Array[f32, 2], n: u32) -> None:
        a[1, n] = 1.0

    whole = np.zeros((6, 8), np.float32)
    error = message(store, whole[::2, 2:6], 4)
    assert error.message == "store to a[1, 4]: a is f32[3, 4], and 4 is outside of dimension 1"
    assert whole[2, 6] == 1.0


def test_an_access_that_leaves_the_array_is_one_finding() -> None:
    def store(a: Array[f32, 2], n: u32) -> None:
        a[n, 0] = 1.0
        a[3, n + 90] = 2.0

    error = message(store, np.zeros((4, 4), np.float32), 4)
    assert [finding.message for finding in error.findings] == [
        "store to a[4, 0]: a is f32[4, 4], and 4 is outside of dimension 0",
        "store to a[3, 94]: a is f32[4, 4], and 94 is outside of dimension 1",
    ]


def test_the_launch_goes_on() -> None:
    def several(a: Array[f32, 2], y: Array[f32, 1], n: u32) -> None:
        y[n + 30] = 1.0
        with loop(n) as i:
            a[0, i + 1] = 1.0
        y[0] = 7.0

    a, y = arrays()
    error = message(several, a, y, 4)
    assert [finding.kind for finding in error.findings] == ["memory"] * 2
    assert y[0] == 7.0 and a[1, 0] == 1.0


def test_registers_keep_what_they_were() -> None:
    def store(a: Array[f32, 2], n: u32) -> None:
        i = reg(u32, n)
        place = a.at(i, i)
        i.set(0)
        ptx.st.global_.f32(place, 1.0)
        a[i, i] = 2.0

    error = message(store, np.zeros((4, 4), np.float32), 9)
    assert error.message == "store to a[9, 9]: a is f32[4, 4], and 9 is outside of dimension 0"
    assert len(error.findings) == 1


def test_blocks_beside_each_other() -> None:
    def store(a: Array[f32, 2]) -> None:
        i = ptx.ctaid.x * 256 + ptx.tid.x
        a[i, i % 5] = 1.0

    a = np.zeros((1 << 16, 4), np.float32)
    with use("emulator"), pytest.raises(MemoryFault) as error:
        ptx_kernel(store).configure(256, 256, sanitize="memory")(a)
    assert len(error.value.findings) == 1
    rows = np.arange(len(a) - 1)
    assert np.array_equal(a[rows, np.minimum(rows % 5, 3)] == 1.0, rows % 5 < 4)


def test_elements_of_variables_are_named_by_their_indices() -> None:
    @ptx_kernel
    def k(x: Ptr[f32], two: Array[f32, 2]):
        tile, t = shared(f32, 4, 8), ptx.tid.x
        tile[t // 8, t % 8] = x[t]
        two[t % 4, t % 5] = tile[3 - t // 8, t % 8]

    with pytest.raises(RaceError) as caught:
        k.configure(1, 64, backend="emulator", sanitize="all")(np.ones(64, np.float32), np.ones((4, 5), np.float32))
    found = {finding.array: finding.element for finding in caught.value.findings if finding.kind == "race"}
    assert found == {"tile": "tile[3, 0]", "two": "two[0, 2]"}
    assert caught.value.message.startswith("race on tile[3, 0] in shared memory: load by thread (0, 0, 0) and store by")


def test_what_variables_are_is_told_with_their_extents() -> None:
    @ptx_kernel
    def k(n: u32, x: Ptr[f32]):
        tile, own, table = shared(f32, 4, 8), local(u32, 2, 3), const(np.ones((5, 2), np.float32))
        tile.at(0, 0)[n] = x[0]
        own.at(1, 2)[n] = n
        x[0] = table.at(0, 0)[n]

    for n, message in (
        (29, "store to own[11, 1]: own is u32[2, 3] in local memory"),
        (32, "store to tile[4, 0]: tile is f32[4, 8] in shared memory"),
    ):
        with pytest.raises(MemoryFault) as caught:
            k.configure(1, 1, backend="emulator")(n, np.ones(64, np.float32))
        assert caught.value.message == message


def test_one_line_that_python_repeats_is_one_finding() -> None:
    @ptx_kernel
    def k(a: Array[f32, 2], y: Ptr[f32]):
        t = ptx.tid.x
        for i in range(4):
            y[t + 32 * i] = a[i, t + 1]
        y[t] = a[0, t + 1]

    launch = k.configure(1, 32, backend="emulator", sanitize="memory")
    with pytest.raises(MemoryFault) as caught:
        launch(np.ones((4, 32), np.float32), np.ones(100, np.float32))
    assert [(f.message, f.count) for f in caught.value.findings] == [
        ("load from a[0, 32]: a is f32[4, 32], and 32 is outside of dimension 1", 4),
        ("store to y[100]: y is f32[100]", 1),
        ("load from a[0, 32]: a is f32[4, 32], and 32 is outside of dimension 1", 1),
    ]
    first, *_ = str(caught.value).splitlines()
    assert first == (
        "load from a[0, 32]: a is f32[4, 32], and 32 is outside of dimension 1; "
        "3 more instructions do the same at this line"
    )
    assert str(caught.value.findings[1]).splitlines()[0] == "store to y[100]: y is f32[100]"
    assert [found["count"] for found in json.loads(caught.value.to_json())] == [4, 1, 1]
