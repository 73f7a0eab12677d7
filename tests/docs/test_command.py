"""The command line: `python -m ptxdsl show` and `check`; the other commands are tested with what they run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ptxdsl
from ptxdsl.__main__ import main

KERNELS = """
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when

@ptx_kernel
def twice(n: u32, x: Ptr[f32]):
    i = ptx.tid.x
    with when(i < n):
        x[i] = x[i] + x[i]

@ptx_kernel
def wrong(x: Ptr[f32]):
    x[0] = 1 if ptx.tid.x == 0 else 0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    return path


def test_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "ptxdsl", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    assert "examples" in done.stdout and "kernels" in done.stdout


def test_show_one_kernel(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{file}:twice"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(".version ") and ".visible .entry twice(" in text
    assert set(ptxdsl.load(text)) == {"twice"}


def test_show_for_a_target(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{file}:twice", "--arch", "sm_90a"]) == 0
    assert ".target sm_90a\n" in capsys.readouterr().out


@pytest.mark.ptxas
def test_show_the_machine_code(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{file}:twice", "--sass", "--arch", "sm_80"]) == 0
    assert "FADD" in capsys.readouterr().out


def test_show_a_kernel_that_cannot_be_traced(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(file)]) == 1
    out, err = capsys.readouterr()
    assert ".entry twice(" in out
    first, second, *_ = err.splitlines()
    assert first.startswith("TruthError: ")
    assert second == f"  at {file}:12: x[0] = 1 if ptx.tid.x == 0 else 0"


def test_show_a_kernel_that_is_not_there(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", f"{file}:thrice"]) == 2
    assert capsys.readouterr().err == f"{file} has no kernel 'thrice'; it has twice, wrong\n"


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_file_that_is_not_there(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, str(tmp_path / "none.py")]) == 2
    assert capsys.readouterr().err == f"there is no file {tmp_path / 'none.py'}\n"


def test_check(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["show", f"{file}:twice"])
    text = capsys.readouterr().out
    good, bad = tmp_path / "good.ptx", tmp_path / "bad.ptx"
    good.write_text(text)
    assert main(["check", str(good)]) == 0
    assert capsys.readouterr().out.startswith(f"{good}: twice, ")
    bad.write_text(text.replace("add.f32", "add.f23"))
    assert main(["check", str(bad)]) == 1
    line = text[: text.index("add.f32")].count("\n") + 1
    assert capsys.readouterr().out.startswith(f"{bad}:{line}:5: error P200 ParseError: ")


def test_check_verifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.ptx"
    path.write_text(
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n"
        ".reg .f32 %f<1>;\n.reg .u32 %r<1>;\nmov.u32 %r0, 1;\nadd.f32 %f0, %f0, %r0;\nret;\n}\n"
    )
    assert main(["check", str(path)]) == 1
    assert capsys.readouterr().out.startswith(f"{path}:9: error P201 VerifyError: ")
