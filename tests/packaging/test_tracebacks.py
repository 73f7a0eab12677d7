"""Errors show the user's lines and the message, without ptxdsl's own frames: in plain Python, pytest and IPython."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import ptxdsl
from ptxdsl import Ptr, PtxError, RaceError, f32, ptx, ptx_kernel, tracebacks
from ptxdsl.errors import Loc

SCRIPT = """
import numpy as np
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32

def helper(x, n):
    x[0] = x[0] + n

@ptx_kernel
def k(x: Ptr[f32], n: u32):
    helper(x, n)

k[1, 1](np.zeros(1, np.float32), 1)
"""


def run(folder: Path, *command: str, **settings: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PTXDSL_")}
    root = str(Path(ptxdsl.__file__).parent.parent)
    environment.update(PYTHONPATH=root, PTXDSL_BACKEND="emulator", PTXDSL_CACHE_DIR="off", **settings)
    done = subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode
    return done.stdout + done.stderr


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "user.py"
    path.write_text(SCRIPT)
    return path


def test_plain_python(script: Path) -> None:
    text = run(script.parent, "user.py")
    places = re.findall(r'File "(.*)", line (\d+), in (.*)', text)
    assert [(Path(file).name, line, where) for file, line, where in places] == [
        ("user.py", "12", "<module>"), ("user.py", "10", "k"), ("user.py", "6", "helper"),
    ]
    assert text.splitlines()[-3] == "ptxdsl.errors.PtxTypeError: `+` of f32 and u32: PTX converts nothing by itself"


def test_a_variable_turns_it_off(script: Path) -> None:
    files = re.findall(r'File "(.*)", line', run(script.parent, "user.py", PTXDSL_TRACEBACK="full"))
    assert any(Path(file).parent.name == "kernel" for file in files)


def test_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(SCRIPT.replace("k[1", "def test_it():\n    k[1"))
    text = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_user.py")
    assert re.findall(r"^(\S+):(\d+): ", text, re.MULTILINE) == [
        ("test_user.py", "13"), ("test_user.py", "10"), ("test_user.py", "6"),
    ]


def failed() -> PtxError:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[0] = x[0] + ptx.tid.x

    with pytest.raises(PtxError) as caught:
        k.ptx()
    return caught.value


def files(error: BaseException) -> list[str]:
    found, traceback = [], error.__traceback__
    while traceback is not None:
        found.append(traceback.tb_frame.f_code.co_filename)
        traceback = traceback.tb_next
    return found


def test_errors_of_others_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_TRACEBACK", "short")
    with pytest.raises(AttributeError) as caught:
        ptxdsl.types.u32.nothing  # type: ignore[attr-defined]
    before = caught.value.__traceback__
    tracebacks.shorten(caught.value)
    assert caught.value.__traceback__ is before is not None


def test_what_an_error_came_of_is_shortened_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_TRACEBACK", "short")
    cause, error = failed(), RaceError("later")
    assert len(set(files(cause))) > 1
    cause.__context__, error.__cause__ = error, cause  # a circle
    tracebacks.shorten(error)
    assert set(files(cause)) == {__file__}


def test_the_settings_are_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    error = failed()
    monkeypatch.setenv("PTXDSL_TRACEBACK", "none")
    tracebacks.shorten(error)
    assert set(files(error)) == {__file__}


class Shell:
    """As much of IPython's shell as is used."""

    def __init__(self) -> None:
        self.custom_exceptions: tuple[Any, ...] = ()
        self.shown: list[Any] = []
        self.compile = self.InteractiveTB = self

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", "In[3]") if "kernel_1" in name else None

    def structured_traceback(self, kind: Any, error: Any, traceback: Any, tb_offset: int) -> list[str]:
        return [f"{kind.__name__} {traceback.tb_next is None} {tb_offset}"]

    def set_custom_exc(self, kinds: tuple[Any, ...], handler: Any) -> None:
        self.custom_exceptions, self.handler = kinds, handler

    def _showtraceback(self, kind: Any, error: Any, lines: Any) -> None:
        self.shown.append(lines)


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    shell = Shell()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]
    return shell


def test_ipython(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_TRACEBACK", "short")
    tracebacks.install()
    assert shell.custom_exceptions == (PtxError,)
    error = failed()
    assert shell.handler(shell, type(error), error, error.__traceback__, 1) == ["PtxTypeError False 1"]
    assert shell.shown == [["PtxTypeError False 1"]] and set(files(error)) == {__file__}


def test_another_handler_in_ipython_stays(shell: Shell) -> None:
    shell.custom_exceptions = (ValueError,)
    tracebacks.install()
    assert shell.custom_exceptions == (ValueError,)


def test_cells_of_a_notebook_have_their_number(shell: Shell) -> None:
    assert str(Loc("/tmp/kernel_1/2.py", 5)) == "Cell In[3]:5"
    assert str(Loc("/nowhere/user.py", 5)) == "/nowhere/user.py:5"
