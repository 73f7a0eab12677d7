"""Kernels that an earlier process has lowered: taken from disk, right, and told of as if they had just been lowered."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument
from ptxdsl import (
    EmulationError, MemoryFault, Ptr, config, emulator, f32, loop, otherwise, profile, ptx, ptx_kernel, reg,
    shared, u32, use, when,
)
from ptxdsl.emulator import program
from ptxdsl.emulator.codegen import kept_code
from ptxdsl.emulator.codegen.library import library
from ptxdsl.emulator.jit import tier_up
from ptxdsl.launch import LaunchConfig


@ptx_kernel
def mixed(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    """Shared memory, a loop, divergence, accesses of several patterns."""
    tile = shared(f32, 8, 16)
    i = ptx.ctaid.x * 128 + ptx.tid.y * 16 + ptx.tid.x
    tile[ptx.tid.y, ptx.tid.x] = x[i]
    ptx.bar.sync(0)
    total = reg(f32, 0.0)
    with loop(0, n) as k:
        with when(ptx.tid.x < k):
            total += tile[k % 8, ptx.tid.x]
        with otherwise():
            total += tile[ptx.tid.y, k % 16] * 2.0
    y[i] = total


def mixed_in_numpy(n: int, x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    column = np.arange(16)
    for tile, out in zip(x.reshape(-1, 8, 16), y.reshape(-1, 8, 16)):
        for k in range(n):
            out += np.where(column < k, tile[k % 8][None, :], tile[:, k % 16][:, None] * np.float32(2))
    return y


def as_new_process() -> None:
    """Forget all programs; compiled handlers stay. What a launch has left to do is done."""
    for thread in threading.enumerate():
        if thread.name == tier_up.THREAD:
            thread.join()
    program._programs.clear()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A cache of its own."""
    with config.override(cache_dir=tmp_path):
        library.cache_clear()
        as_new_process()
        yield tmp_path
    library.cache_clear()
    as_new_process()


@pytest.fixture
def kept(folder: Path) -> Path:
    """A cache with the kernel."""
    launched(0)
    as_new_process()
    return folder


def launched(n: int, rng: np.random.Generator | None = None) -> None:
    """One launch, which must be right."""
    x = (rng or np.random.default_rng()).standard_normal(128 * 7).astype(np.float32)
    y = np.full_like(x, np.nan)
    with use("emulator"):
        mixed_again()[7, (16, 8)](n, x, y)
    assert y.tobytes() == mixed_in_numpy(n, x).tobytes()


def mixed_again() -> Any:
    """The kernel as a process has it that has not launched it."""
    return ptx_kernel(mixed.function)


@pytest.fixture
def not_lowered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time that a text is parsed, or a kernel lowered, by this thread: earlier tests' may compile beside it.

    The second tier does both, and a slow machine would come to it.
    """
    monkeypatch.setattr(tier_up, "SECONDS", math.inf)
    done: list[str] = []
    own = threading.get_ident()

    def noted(name: str) -> None:
        original: Callable[..., Any] = getattr(program, name)

        def wrapped(*given: Any, **named: Any) -> Any:
            if threading.get_ident() == own:
                done.append(name)
            return original(*given, **named)

        monkeypatch.setattr(program, name, wrapped)

    noted("_read")
    noted("_lowered")
    return done


def test_the_next_process_neither_parses_nor_lowers(kept: Path, not_lowered: list[str]) -> None:
    launched(5)
    launched(9)
    assert not_lowered == []
    with use("emulator"):  # another shape of block is another kernel
        mixed_again()[1, (16, 4)](3, np.zeros(128, np.float32), np.zeros(128, np.float32))
    assert sorted(not_lowered) == ["_lowered", "_read"]


@ptx_kernel
def reversed_rows(x: Ptr[u32], y: Ptr[u32]) -> None:
    """Rows of 24 threads, which make the warps."""
    row = ptx.tid.y * 24
    y[row + ptx.tid.x] = x[row + 23 - ptx.tid.x]


@ptx_kernel
def reversed_computed(x: Ptr[u32], y: Ptr[u32]) -> None:
    """The same rows, of one index."""
    row = ptx.tid.x // 24 * 24
    y[row + ptx.tid.x % 24] = x[row + 23 - ptx.tid.x % 24]


@pytest.mark.parametrize(("kernel", "block"), [(reversed_rows, (24, 9)), (reversed_computed, 216)], ids=["y", "x"])
def test_odd_rows_make_the_warps_in_the_next_process(
    kernel: Any, block: Any, folder: Path, not_lowered: list[str]
) -> None:
    x, shapes = np.arange(24 * 9, dtype=np.uint32), []
    for turn in range(3):
        made, y = ptx_kernel(kernel.function), np.zeros_like(x)
        with use("emulator"):
            made[1, block](x, y)
            code = made.compiled({}).program.codes(kernel.function.__name__)[0]
            shapes.append(code[0])
            if turn == 2:  # what is asked for of a kernel from disk is made of its text again
                assert code[2].description.graph.statements
        assert y.tobytes() == x.reshape(9, 24)[:, ::-1].tobytes()
        as_new_process()
    assert not_lowered.count("_lowered") == 2
    assert [shape.lanes for shape in shapes] == [24, 24, 24]


def test_a_fault_is_told_as_before(folder: Path) -> None:
    x, y = np.zeros(128, np.float32), np.zeros(100, np.float32)
    told = []
    for _ in range(2):
        with use("emulator"), pytest.raises(MemoryFault) as raised:
            mixed_again()[1, (16, 8)](2, x, y)
        told.append(str(raised.value))
        as_new_process()
    assert told[0] == told[1]
    assert "y[100]" in told[0] and "y[i] = total" in told[0]


def test_tools_see_a_kernel_from_disk(kept: Path) -> None:
    kernel, x = mixed_again(), np.ones(128, np.float32)
    with use("emulator"):
        kernel[1, (16, 8)](3, x, np.zeros_like(x))
        with profile() as found:
            kernel[1, (16, 8)](3, x, np.zeros_like(x))
        assert any("total +=" in line.source for line in found.lines)
        kernel.configure(1, (16, 8), sanitize="all")(3, x, np.zeros_like(x))
        assert str(kernel.tiers()).startswith("blocks of (16, 8, 1): handlers")


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "gone", "without its handlers", "swapped"])
def test_what_is_damaged_is_lowered_again(kept: Path, damage: str, not_lowered: list[str]) -> None:
    (path,) = kept.glob("handlers/*/kernels/*")
    data = path.read_bytes()
    middle = len(data) // 2
    if damage == "gone":
        path.unlink()
    elif damage == "without its handlers":
        for each in kept.glob("handlers/*/*.o"):
            each.unlink()
        library.cache_clear()
    elif damage == "swapped":  # whole, and of another kernel
        with use("emulator"):
            mixed_again()[1, (16, 4)](3, np.zeros(128, np.float32), np.zeros(128, np.float32))
        (other,) = set(kept.glob("handlers/*/kernels/*")) - {path}
        os.replace(other, path)
        as_new_process()
        not_lowered.clear()
    else:
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"truncated": data[:-9], "empty": b"", "changed": changed}[damage])
    launched(4)
    assert sorted(not_lowered) == ["_lowered", "_read"]
    assert path.read_bytes() == data


@pytest.mark.parametrize("damage", ["", "gone", "without its code"])
def test_a_block_function_of_another_process(kept: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """It is used soon, and nothing is compiled beside the launches."""
    launched(5)
    ((_, _, code),) = compiled_codes()
    tier_up_now(code)
    as_new_process()
    library.cache_clear()
    (path,) = kept.glob("handlers/*/kernels/*.b")
    if damage == "gone":
        path.unlink()
    elif damage:
        file = kept_code.marshal.loads(path.read_bytes()[12:])[2]
        (each,) = kept.glob(f"handlers/*/{file}.o")
        each.unlink()
    begun: list[Any] = []
    monkeypatch.setattr(tier_up, "_begin", begun.append)
    kernel, x, y = mixed_again(), np.ones(128 * 7, np.float32), np.zeros(128 * 7, np.float32)
    with use("emulator"):
        while not begun and not any(code.block_function for _, _, code in compiled_codes()):
            kernel[7, (16, 8)](50, x, y)
        y[:] = np.nan
        kernel[7, (16, 8)](50, x, y)
    assert bool(begun) == bool(damage)
    assert y.tobytes() == mixed_in_numpy(50, x).tobytes()


def tier_up_now(code: Any) -> None:
    from ptxdsl.emulator.jit.compilation import compile_block_function

    assert compile_block_function(code)


def compiled_codes() -> list[Any]:
    return [found for loaded in program._programs.values() for found in loaded.codes("mixed")]


@pytest.mark.parametrize(
    "what", ["barrier.cluster.arrive;\nbarrier.cluster.wait;", "mov.u64 %rd1, table;", "istypep.texref %p1, %rd2;"]
)
def test_what_is_not_kept(folder: Path, what: str) -> None:
    """Kernels in clusters, and those with addresses of this process among their micro-ops."""
    table = ".global .b32 table[4];\n" if "table" in what else ""
    text = f""".version 8.0
.target sm_90
.address_size 64
{table}.visible .entry k(.param .u64 x)
{{
    .reg .b64 %rd<3>;
    .reg .pred %p<2>;
    ld.param.u64 %rd2, [x];
    {what}
    st.global.u64 [%rd2], 0;
}}
"""
    for _ in range(2):
        x = np.ones(1, np.uint64)
        emulator.load(text).run("k", LaunchConfig(1, 1), [argument("x", x)])
        assert x == 0
        as_new_process()
    assert not list(folder.glob("handlers/*/kernels/*"))


SCRIPT = """
import sys
import numpy as np
from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, use, when
@ptx_kernel
def steps(n: f32, x: Ptr[f32]):
    i = ptx.tid.x
    with loop(0, 5) as k:
        with when(x[i + k] > n):
            x[i] = x[i] * 2 + x[i + k]
x = np.arange(37, dtype=np.float32)
with use("emulator"):
    steps[1, 32](40.0, x)
assert x[:32].tolist() == list(range(32))
print("ptxdsl.text.parser" in sys.modules, "ptxdsl.emulator.instructions.lowering" in sys.modules)
from ptxdsl.emulator.program import _programs
((_, _, code),) = next(iter(_programs.values())).codes("steps")
assert code.micro_ops  # lowered again where it came from disk: to the same micro-ops
"""


def test_the_order_of_sets_does_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    said = []
    for seed in "12":
        variables = {**os.environ, "PTXDSL_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, path], env=variables, capture_output=True, text=True, check=True)
        said.append(run.stdout.split())
    assert said == [["True", "True"], ["False", "False"]]


def test_other_micro_ops_than_before(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is told of a kernel would be wrong."""
    other = program._lowered
    monkeypatch.setattr(program, "_lowered", lambda spaces, *_: other(spaces, (64, 1, 1)))
    launched(3)
    ((_, _, code),) = compiled_codes()
    with pytest.raises(EmulationError, match="a bug in the emulator: a kernel was lowered to other micro-ops"):
        _ = code.micro_ops
