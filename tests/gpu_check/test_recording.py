"""What is recorded of the launches that tests make, and what is not, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator_harness import HEADER

import ptxdsl
from ptxdsl import Ptr, TensorMap, f32, ptx, ptx_kernel, tensor_map, u32, use, when
from ptxdsl.errors import EmulationError
from ptxdsl.gpu_check.bare.tape import Parameter, Relocation, Tape
from ptxdsl.gpu_check.emulation import repeat
from ptxdsl.gpu_check.recording import Recorder

Rng = np.random.Generator


@pytest.fixture
def recorder(tmp_path: Path) -> Any:
    """A recorder, and launches on the emulator."""
    made = Recorder(Tape(tmp_path / "tape"), most=1 << 16, each=4)
    with made.installed(), use("emulator"):
        yield made


def make_add() -> Any:
    @ptx_kernel
    def add(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = x[i] + y[i]

    return add


def test_a_launch(recorder: Recorder, rng: Rng) -> None:
    memory = rng.random(100, np.float32)
    x, y = memory[3:43], memory[50:95]
    before = x.tobytes(), y.tobytes()
    recorder.test = "a test"
    make_add()[2, 32](40, x, y)
    (case,) = recorder.tape.cases
    assert (case.test, case.entry, case.grid, case.block) == ("a test", "add", (2, 1, 1), (32, 1, 1))
    assert case.parameters[0] == Parameter("28000000")
    first, second = (case.parameters[n].relocations[0].area for n in (1, 2))
    assert {first, second} == {0, 1}
    areas = [case.areas[n] for n in (first, second)]
    assert [area.size for area in areas] == [160, 180]
    assert [area.start for area in areas] == [each.ctypes.data % 256 for each in (x, y)]
    assert [area.dtype for area in areas] == ["float32"] * 2
    assert tuple(recorder.tape.get(area.before) for area in areas) == before
    assert recorder.tape.get(areas[1].after) == y.tobytes()
    assert areas[0].before == areas[0].after
    assert ".entry add(" in recorder.tape.text(case)


def test_it_is_the_same_from_a_file(recorder: Recorder, rng: Rng) -> None:
    x = rng.random(8, np.float32)
    make_add().configure(2, 4, seed=3)(8, x, x.copy())
    recorder.tape.save()
    loaded = Tape.load(recorder.tape.folder)
    assert loaded.cases == recorder.tape.cases
    assert loaded.codes == recorder.tape.codes
    assert loaded.get(loaded.cases[0].areas[0].before) == recorder.tape.get(loaded.cases[0].areas[0].before)


def test_arrays_that_overlap_are_one_area(recorder: Recorder, rng: Rng) -> None:
    x = rng.random(40, np.float32)
    make_add()[1, 32](20, x[:30], x[10:])
    (case,) = recorder.tape.cases
    assert [area.size for area in case.areas] == [160]
    assert [p.relocations for p in case.parameters[1:]] == [(Relocation(0, 0, 0),), (Relocation(0, 0, 40),)]


def test_addresses_in_memory_and_in_tensor_maps(recorder: Recorder, rng: Rng) -> None:
    @ptx_kernel
    def k(table: Ptr[Ptr[f32]], m: TensorMap, y: Ptr[f32]) -> None:
        y[ptx.tid.x] = table[ptx.tid.x & 1][ptx.tid.x]

    arrays = [rng.random(32, np.float32) for _ in range(2)]
    kept, y = rng.random((16, 16), np.float32), np.zeros(32, np.float32)
    k[1, 32](arrays, tensor_map(kept, (8, 16)), y)
    (case,) = recorder.tape.cases
    table, m, _ = case.parameters
    sizes = [area.size for area in case.areas]
    assert [sizes[r.area] for r in case.areas[table.relocations[0].area].relocations] == [128, 128]
    assert [sizes[r.area] for r in m.relocations] == [1024]
    assert bytes.fromhex(m.data)[m.relocations[0].offset :][:8] == bytes(8)
    assert repeat(recorder.tape, case, {}) == ("", (b"",) * len(sizes))


def test_variables_of_a_module(recorder: Recorder) -> None:
    m = ptxdsl.load(HEADER + """
.global .u32 count = 5;
.visible .entry k() { .reg .b32 r; atom.global.add.u32 r, [count], 2; ret; }""")
    m["k"][1, 32]()
    m["k"][1, 32]()
    areas = [case.areas for case in recorder.tape.cases]
    assert [[(area.name, area.variable, area.size) for area in each] for each in areas] == [[("count", "count", 4)]] * 2
    numbers = [int.from_bytes(recorder.tape.get(key), "little") for (a,) in areas for key in (a.before, a.after)]
    assert numbers == [5, 69, 69, 133]
    cases = list(recorder.tape.cases)  # what is repeated is recorded, too
    assert [repeat(recorder.tape, case, {}).problem for case in cases] == ["", ""]


def test_what_is_left_out(recorder: Recorder, rng: Rng) -> None:
    add, x = make_add(), rng.random(1 << 14, np.float32)
    add[1, 32](32, x, x[:32].copy())
    add[1, 32](32, x[:32], x[:32].copy())
    add[1, 32](32, x[:32], x[:32].copy())
    with pytest.raises(EmulationError):
        add[1, 32](32, x[:3], x[:32].copy())
    for n in range(5):
        add[1, 32](n, x[:32], x[:32].copy())
    assert len(recorder.tape.cases) == 4
    assert recorder.tape.left_out == {
        "it has more than 64 KiB of memory": 1, "it is one that was made before": 1,
        "the emulator tells an error, as the test wants": 1, "its test has made 4 others": 2,
    }


def test_clocks_are_not_to_be_compared(recorder: Recorder) -> None:
    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = ptx.clock

    k[1, 32](np.zeros(32, np.uint32))
    assert [case.incomparable for case in recorder.tape.cases] == ["it reads %clock"]


def test_after_the_end_nothing_is_recorded(tmp_path: Path) -> None:
    recorder, add, x = Recorder(Tape(tmp_path)), make_add(), np.ones(32, np.float32)
    with use("emulator"):
        launch = add[1, 32]
        with recorder.installed():
            launch(32, x, x.copy())
        launch(31, x, x.copy())
    assert len(recorder.tape.cases) == 1
    assert not recorder.tape.left_out
