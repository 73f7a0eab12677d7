"""The plugin of coverage.py, run in processes of its own over small files.

Each file says what coverage.py must tell of it: ``# missed`` at a line that is not covered, ``# partial`` at a covered
one of which a side is missing; all other lines are covered.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("coverage")
pytestmark = [pytest.mark.emulator, pytest.mark.processes]

HEAD = """\
import numpy as np
from ptxdsl import Ptr, break_if, continue_if, loop, otherwise, ptx, ptx_func, ptx_kernel, reg, u32, use, when
out = np.zeros(64, np.uint32)
"""
Measure = Callable[..., dict[str, Any]]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs coverage.py in the folder of the test."""
    root = Path(__file__).parents[2]

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        settings = {**os.environ, "PYTHONPATH": str(root), "PTXDSL_BACKEND": "emulator", **environment}
        command = [sys.executable, "-m", "coverage", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)

    return run


def configure(folder: Path, more: str = "", branch: bool = True) -> None:
    text = f"[run]\nplugins = ptxdsl.coverage\nsource = .\nbranch = {branch}\n{more}"
    (folder / ".coveragerc").write_text(text, "utf-8")


@pytest.fixture
def measure(tmp_path: Path, run: Run) -> Measure:
    """Writes files, runs ``main.py``, and gives what coverage.py tells of each file."""

    def measure(
        files: dict[str, str], *command: str, more: str = "", branch: bool = True, then: tuple[str, ...] = (),
        **environment: str,
    ) -> dict[str, Any]:
        for name, text in files.items():
            (tmp_path / name).write_text(text, "utf-8")
        configure(tmp_path, more, branch)
        done = run("run", *(command or ("main.py",)), **environment)
        assert done.returncode == 0, done.stdout + done.stderr
        for step in then:
            assert run(step).returncode == 0
        report = run("json", "-o", "report.json")
        assert report.returncode == 0, report.stdout + report.stderr
        found: dict[str, Any] = json.loads((tmp_path / "report.json").read_text("utf-8"))["files"]
        return found

    return measure


def marked(text: str, word: str) -> list[int]:
    return [number for number, line in enumerate(text.splitlines(), 1) if f"# {word}" in line]


def check(found: dict[str, Any], text: str, branch: bool = True) -> None:
    assert found["missing_lines"] == marked(text, "missed")
    if branch:
        missing = {line for line, _ in found["missing_branches"]} - {*found["missing_lines"]}
        assert sorted(missing) == marked(text, "partial")


BLOCKS = HEAD + """
@ptx_kernel
def blocks(n: u32, y: Ptr[u32]):
    i = ptx.tid.x
    with when(i < 100):  # partial: all lanes enter
        y[i] = i
    with when(i > n):  # partial: none does
        y[i] = n  # missed
    with when(i == 3):
        y[i] = 1
    with otherwise():
        y[i] = 2
    with when(i < 64):  # partial
        y[i] = 3
    with otherwise():  # partial
        y[i] = 4  # missed
    with when(i > 64):  # partial
        y[i] = 5  # missed
    with otherwise():  # partial
        with when(i == 1):
            y[i] = 6
    ptx.ret(pred=i == 1000)  # partial
    ptx.ret(pred=i == 1)
    y[i] = 7

@ptx_kernel
def loops(n: u32, y: Ptr[u32]):
    total = reg(u32, 0)
    with loop(n) as i:
        continue_if(i == 1)
        continue_if(i == 50)  # partial
        total += i
        break_if(i == 60)  # partial
    with loop(10):  # partial: it is left by the break alone
        total += 1
        break_if(total > 40)
    with loop():
        total += 1
        break_if(total > 100)
    with loop(total, 3) as i:  # partial
        total += i  # missed
    with loop(n, unroll=4) as i:
        with loop(i):
            total += 1
    with loop(8, unroll=2):
        total += 1
        break_if(total == 1)  # partial
    y[0] = total

@ptx_kernel
def never_launched(y: Ptr[u32]):
    unused = 3  # missed
    y[0] = 1  # missed

@ptx_func
def called(a: u32) -> u32:
    r = reg(u32, a)
    with when(a > 100):  # partial
        r += 1  # missed
    return r

@ptx_kernel
def calls(y: Ptr[u32]):
    y[0] = called(3)

@ptx_kernel
def traced_alone(y: Ptr[u32]):
    three = 3
    for k in range(three):  # partial: its body yields what no lane executes
        y[k] = k  # missed

def python(a):
    with open(__file__) as file:
        text = file.read()
    if a:  # partial
        return text
    return a  # missed

blocks[1, 64](100, out)
loops[1, 1](9, out)
calls[1, 1](out)
traced_alone.ptx()
python(1)
"""


@pytest.mark.parametrize("branch", [True, False])
def test_blocks(measure: Measure, branch: bool) -> None:
    check(measure({"main.py": BLOCKS}, branch=branch)["main.py"], BLOCKS, branch)


HELPERS = """
from ptxdsl import otherwise, reg, u32, when

def carried(v):
    r = reg(u32, v)
    with when(v > 3):
        r += 2
    with otherwise():
        r += 3
    return r

def twice(v):
    return v + v

def unreached(v):
    w = v * 3  # missed
    return w

def other(v):
    return v  # missed
"""
PLACES = HEAD + """
import ptxdsl as P
from ptxdsl import when as only
from helpers import carried, twice, unreached

class Kernels:
    width = 4

    @staticmethod
    @ptx_kernel
    def in_class(n: u32, late: u32, y: Ptr[u32]):
        i = ptx.tid.x
        y[i] = carried(i) + Kernels.width
        with only(i > n):  # partial
            y[i] = unreached(i)  # missed
            y[i + 1] = 7  # missed
        with only(n == 3):  # partial
            y[i] = late  # missed

def factory(c):
    counts = range(c)

    @ptx_kernel
    def inner(n: u32, y: Ptr[u32]):
        i = ptx.tid.x
        for j in counts:
            if j == 1:
                y[i] = j
            elif j == 77:  # partial
                y[i] = 2  # missed
        with P.when(
            i == n
        ):
            y[i] = (
                twice(i)
                + 1
            )
        if c > 100:  # partial
            y[i] = 1  # missed
    return inner

@ptx_kernel
def excluded(n: u32, y: Ptr[u32]):
    with when(n == 1):
        y[0] = 1  # pragma: no cover
    with when(n == 2):  # pragma: no cover
        y[0] = 1
    with when(n == 3):  # pragma: no branch
        y[0] = 1  # missed

@ptx_kernel
def faulty(y: Ptr[u32]):
    i = ptx.tid.x
    y[i] = 1
    y[i + 100] = 2
    y[i] = 3  # missed

@ptx_kernel
def more(n: u32, y: Ptr[u32]):
    with when(n > 5):
        y[0] = 1
    with when(n > 50):
        y[0] = 2
    with when(n > 500):
        y[0] = 3

Kernels.in_class[1, 32](40, 2, out)
factory(3)[1, 32](7, out)
excluded[1, 1](0, out)
try:
    faulty[1, 64](out)
except P.MemoryFault:
    pass
more[1, 1](1, out)
more[1, 1](10, out)
more.configure(1, 1, sanitize="all")(100, out)
with P.profile():
    more.configure(1, 1, sanitize=False)(1000, out)
"""


SETTINGS: dict[str, dict[str, str]] = {
    "plain": {}, "sanitized": {"PTXDSL_SANITIZE": "all"}, "seed": {"PTXDSL_SEED": "3"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_places(measure: Measure, settings: dict[str, str]) -> None:
    """Classes, factories, helpers in other files, exclusions, faults, and launches of all kinds."""
    text = PLACES
    if "PTXDSL_SANITIZE" in settings:  # it passes over what is out of bounds
        text = text.replace("y[i] = 3  # missed", "y[i] = 3")
    found = measure({"main.py": text, "helpers.py": HELPERS}, **settings)
    check(found["main.py"], text)
    check(found["helpers.py"], HELPERS)


def test_in_words(measure: Measure, run: Run, tmp_path: Path) -> None:
    """The page says in words of lanes which side is missing."""
    measure({"main.py": BLOCKS})
    assert run("html").returncode == 0
    page = next((tmp_path / "htmlcov").glob("main_py.html")).read_text("utf-8")
    line = BLOCKS.splitlines().index("    with when(i > n):  # partial: none does") + 1
    assert f"line {line} was not entered by any lane" in page
    assert f"line {line - 2} was not skipped by any lane" in page


SHARED = HEAD + """
import sys
from pathlib import Path

@ptx_kernel
def one(n: u32, y: Ptr[u32]):
    with when(n == 1):
        y[0] = 1
    with when(n == 2):
        y[0] = 1
    with when(n == 3):  # partial
        y[0] = 1  # missed

def child(n):
    one[1, 1](n, out)

if __name__ == "__main__":  # partial
    import multiprocessing
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=child, args=(n,)) for n in (1, 2)]
    for process in children:
        process.start()
    for process in children:
        process.join()
"""


def test_several_processes(measure: Measure) -> None:
    more = "parallel = true\nconcurrency = multiprocessing\nrelative_files = true\n"
    check(measure({"main.py": SHARED}, more=more, then=("combine",))["main.py"], SHARED)


def test_contexts_of_tests(measure: Measure, tmp_path: Path) -> None:
    """Under pytest, where warnings are errors; each test is told which lines it has executed."""
    text = SHARED.partition("if __name__")[0] + "def test_one():\n    child(1)\n\ndef test_two():\n    child(2)\n"
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", "utf-8")
    more = "dynamic_context = test_function\n[json]\nshow_contexts = true\n"
    found = measure({"test_main.py": text}, "-m", "pytest", "-q", "test_main.py", more=more)["test_main.py"]
    check(found, text)
    first = text.splitlines().index("    with when(n == 1):") + 2
    assert found["contexts"][str(first)] == ["test_main.test_one"]
    assert found["contexts"][str(first + 2)] == ["test_main.test_two"]


def test_not_imported(measure: Measure) -> None:
    found = measure({"main.py": HEAD, "other.py": HEAD + "\n@ptx_kernel\ndef k(y: Ptr[u32]):\n    y[0] = 1\n"})
    assert found["other.py"]["missing_lines"] == [1, 2, 3, 5, 6, 7]


@pytest.mark.parametrize("came", ["core = pytrace", "timid = true"])
def test_other_cores(run: Run, tmp_path: Path, came: str) -> None:
    configure(tmp_path, f"{came}\n")
    (tmp_path / "main.py").write_text("", "utf-8")
    done = run("run", "main.py")
    assert done.returncode == 1
    assert done.stdout + done.stderr == (
        f"the plugin ptxdsl.coverage cannot count what kernels execute with `{came}`: of coverage.py's cores only "
        "ctrace asks plugins; write `core = ctrace`, or leave it out\n"
    )


def test_no_options(run: Run, tmp_path: Path) -> None:
    configure(tmp_path, "[ptxdsl.coverage]\nlines = all\n")
    (tmp_path / "main.py").write_text("", "utf-8")
    done = run("run", "main.py")
    assert done.stdout + done.stderr == "the plugin ptxdsl.coverage has no options, and lines came\n"


def test_launches_on_a_gpu_are_told(run: Run, tmp_path: Path) -> None:
    configure(tmp_path)
    text = "import ptxdsl.executed_lines as lines\nfor name in 'k', 'add', 'k':\n"
    text += "    lines.recorder().not_recorded(name)\n"
    (tmp_path / "main.py").write_text(text, "utf-8")
    done = run("run", "main.py")
    assert done.stdout + done.stderr == (
        "ptxdsl.coverage: launches on a GPU are not counted, of kernels k, add; PTXDSL_BACKEND=emulator runs them "
        "where lines are counted\n"
    )
