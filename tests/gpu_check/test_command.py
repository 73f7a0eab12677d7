"""`python -m ptxdsl gpu-check`: from tests to a folder for another machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ptxdsl.__main__ import main
from ptxdsl.gpu import tools
from ptxdsl.gpu.device import unavailable
from ptxdsl.gpu_check import command
from ptxdsl.gpu_check.bare.tape import Tape
from ptxdsl.gpu_check.preparing import pack

TESTS = """
import numpy as np
import pytest
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, use

@ptx_kernel
def scale(x: Ptr[f32], by: f32):
    x[ptx.tid.x] *= by

@pytest.mark.parametrize("by", [2.0, 3.0])
def test_scale(by):
    x = np.arange(32, dtype=np.float32)
    scale[1, 32](x, by)
    assert (x == by * np.arange(32)).all()

def test_that_fails():
    scale[1, 8](np.ones(8, np.float32), 1.5)
    assert False
"""


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    path = tmp_path / "test_scale.py"
    path.write_text(TESTS)
    return path


@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
def test_pack(tests: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "packed"
    assert main(["gpu-check", "pack", str(out), "--arch", "sm_90a", "--tests", str(tests)]) == 0
    said = capfd.readouterr()
    assert "3 launches of 3 tests, 0.0 MiB. Left out:" in said.out
    assert f"on the machine with the GPU: python {out / 'replay.py'}" in said.out
    assert "some tests failed, as told above; their launches are repeated all the same" in said.err
    tape = Tape.load(out / "launches")
    assert tape.target == "sm_90"
    assert sorted(case.test.rpartition("::")[2] for case in tape.cases) == [
        "test_scale[2.0]", "test_scale[3.0]", "test_that_fails",
    ]
    (code,) = tape.codes.values()
    assert tape.get(code.cubin).startswith(b"\x7fELF")
    assert list(code.places.values()) == [f"{tests}:8"]


def test_wrong_gpus_are_told_at_once(tests: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-check", "pack", str(tmp_path / "packed"), "--arch", "sm_9", "--tests", str(tests)]) == 1
    said = capfd.readouterr()
    assert said.err.splitlines() == ["LaunchError: 'sm_9' is no GPU", "  hint: write `--arch sm_90`"]
    assert not said.out


def test_what_pack_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-check", "pack"]) == 2
    assert capsys.readouterr().err == "pack takes a folder and a GPU: `gpu-check pack FOLDER --arch sm_90`\n"


@pytest.mark.skipif(unavailable() is None, reason="there is a GPU")
def test_run_needs_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gpu-check"]) == 1
    assert capsys.readouterr().err.startswith("LaunchError: ")


def test_tests_that_launch_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "test_nothing.py"
    path.write_text("def test_nothing(): pass\n")
    assert main(["gpu-check", "pack", str(tmp_path / "packed"), "--arch", "sm_90", "--tests", str(path)]) == 1
    assert "LaunchError: pytest ended with 0, and no launch was recorded" in capfd.readouterr().err


def test_where_there_are_no_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    with pytest.raises(command.LaunchError) as caught:
        command.pack_into(tmp_path / "packed", "sm_90")
    assert caught.value.message == f"there are no tests in {tmp_path / 'tests'}; the repository has them"
    assert caught.value.hint == "run it in a clone, or name tests: --tests"


def test_an_interrupted_run_goes_on(
    tests: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded is there, and of what was repeated only the missing pieces are done again."""
    out, part = tmp_path / "packed", tmp_path / "packed.part"
    recorded = command._recorded([tests], part)
    assert [path.name for path in sorted(part.iterdir())] == ["recorded", "tests.txt"]
    monkeypatch.setattr(command, "record", None)
    monkeypatch.setattr("ptxdsl.gpu_check.pieces._PIECE", 1)
    pack(recorded, out, "sm_90", kept=part)
    pieces = sorted((part / "repeated").iterdir())
    assert len(pieces) == len(recorded.cases) == 3
    pieces[1].unlink()
    shutil.rmtree(out)
    said: list[tuple[str, int, int]] = []
    again = pack(command._recorded([tests], part), out, "sm_90", kept=part, progress=lambda *words: said.append(words))
    assert said == [("repeated on the emulator", 3, 3)]
    assert len(again.cases) == 3
    assert "going on with what was recorded before" in capfd.readouterr().err
    with pytest.raises(command.LaunchError) as caught:
        command._recorded([tmp_path], part)
    assert caught.value.message == f"{part} has what other tests launch: {part / 'tests.txt'}"
    assert caught.value.hint == f"remove it: `rm -r {part}`"
