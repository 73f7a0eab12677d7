"""The plugin of pytest: options, ini file and markers, seeds and how a failure is had again, findings as failures."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxdsl import RaceError, UninitializedError, outcomes

pytest_plugins = ["pytester"]
INSTALLED = any(point.name == "ptxdsl" for point in entry_points(group="pytest11"))
KERNELS = """
from ptxdsl import Ptr, f32, otherwise, ptx, ptx_kernel, shared, u32, when

@ptx_kernel
def reverse(x: Ptr[f32]):
    tile, t = shared(f32, 64), ptx.tid.x
    tile[t] = x[t]
    x[t] = tile[63 - t]

@ptx_kernel
def two(x: Ptr[f32], y: Ptr[f32]):
    tile, other, t = shared(f32, 64), shared(f32, 64), ptx.tid.x
    tile[t] = x[t]
    y[t] = tile[63 - t] + other[t]

@ptx_kernel
def add(x: Ptr[u32]):
    x[0] = x[0] + 1

@ptx_kernel
def message(x: Ptr[u32], flag: Ptr[u32], out: Ptr[u32]):
    with when(ptx.ctaid.x == 0):
        x[0] = 42
        ptx.st.release.gpu.global_.u32(flag, 1)
    with otherwise():
        out[0] = ptx.ld.acquire.gpu.global_.u32(flag)
        with when(out[0] == 1):
            out[1] = x[0]
"""
HEAD = """
import os, threading, unittest
import numpy as np
import pytest
from their_kernels import reverse, two
from ptxdsl.config import current

def launch():
    reverse[1, 64](np.zeros(64, np.float32))
"""
Run = Callable[..., pytest.RunResult]


@pytest.fixture(scope="module", autouse=True)
def all_modules() -> None:
    """Load what the tests use: pytester drops modules that its runs load, and some can be loaded once only."""
    names: dict[str, object] = {}
    exec(compile(KERNELS, __file__, "exec"), names)
    two: Any = names["two"]
    x = np.zeros(64, np.float32)
    with pytest.raises(UninitializedError):
        two.configure(1, 64, backend="emulator", sanitize="all", seed=1)(x, x.copy())
    with pytest.raises(RaceError):
        two.configure(1, 64, backend="emulator", schedule="explore")(x, x.copy())
    outcomes(two[1, 1], x, x.copy())


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest, strict in all that it can be, over a file of tests."""
    monkeypatch.setenv("PTXDSL_TRACEBACK", "short")
    pytester.makepyfile(their_kernels=KERNELS)

    def run(tests: str, *options: str, ini: str = "") -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + tests)
        pytester.makeini(f"[pytest]\naddopts = --strict-markers --strict-config -W error\n{ini}")
        given = ["--assert=plain", "-pno:hypothesispytest", "-pno:cacheprovider"]
        given += [] if INSTALLED else ["-pptxdsl.pytest_plugin"]
        return pytester.runpytest_inprocess(*given, *options)

    return run


RACE = "def test_race():\n    launch()\n"
SETTINGS = """
def settings():
    found = current()
    return sorted(found.sanitize or ()), found.seed, found.backend
"""


def test_without_options_nothing_is_on(run: Run) -> None:
    result = run(SETTINGS + "def test():\n    assert settings()[:2] == ([], None)\n" + RACE)
    result.assert_outcomes(passed=2)
    assert "\nptxdsl: " not in result.stdout.str()


@pytest.mark.parametrize("prefix", ["--ptx", "--ptxdsl"])
def test_options(run: Run, prefix: str) -> None:
    result = run(RACE, f"{prefix}-sanitize")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["ptxdsl: sanitize=all", "*RaceError*"])
    run(RACE, f"{prefix}-tools", "barrier,order").assert_outcomes(passed=1)
    run(RACE, f"{prefix}-tools", "race").assert_outcomes(failed=1)


def test_ini_file(run: Run) -> None:
    both = "ptxdsl_sanitize = init, race\nptxdsl_seeds = 2"
    tests = SETTINGS + "def test():\n    assert settings() in [(['init', 'race'], n, 'emulator') for n in (1, 2)]\n"
    result = run(tests, ini=both)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["ptxdsl: sanitize=init, race, seeds=1 to 2"])
    tests = SETTINGS + "def test():\n    assert settings() == (['init'], 7, 'emulator')\n"
    run(tests, "--ptx-tools", "init", "--ptx-seed", "7", ini=both).assert_outcomes(passed=1)


def test_markers(run: Run) -> None:
    tests = SETTINGS + """
@pytest.mark.ptx_sanitize
def test_all():
    assert settings()[0] == ["barrier", "init", "memory", "order", "race"]

@pytest.mark.ptx_sanitize("race", "cas")
class TestClass:
    def test_some(self):
        assert settings()[0] == ["cas", "race"]

    @pytest.mark.ptx_sanitize("off")
    def test_off(self):
        launch()

@pytest.mark.ptx_seeds(3)
def test_seeds():
    assert settings()[1] in (1, 2, 3)

@pytest.mark.ptx_seeds(0)
def test_usual():
    assert settings()[1] is None
"""
    run(tests).assert_outcomes(passed=7)
    run(tests, "--ptx-tools", "init", "--ptx-seeds", "2").assert_outcomes(passed=10)


WRONG = {
    ("", "--ptx-tools=rcae", ""): (
        "--ptx-tools: sanitize is 'rcae'; it can be all, off, or one or more of memory, race, order, init, barrier, "
        "cas, separated by commas; did you mean 'race'?"
    ),
    ("", "--ptx-seeds=-1", ""): "--ptx-seeds is -1; it can be a number from 0 to 999999999",
    ("", "--ptx-seed=9999999999", ""): "--ptx-seed is 9999999999; it can be a number from 0 to 999999999",
    ("", "", "ptxdsl_seeds = many"): "ptxdsl_seeds is 'many'; it can be a number from 0 to 999999999",
    ("@pytest.mark.ptx_seeds('3')\n", "", ""): (
        "test_it.py::test_race: the marker ptx_seeds is '3'; it can be a number from 0 to 999999999"
    ),
    ("@pytest.mark.ptx_sanitize('race', 'int')\n", "", ""): (
        "test_it.py::test_race: the marker ptx_sanitize: sanitize is 'int'; it can be all, off, or one or more of "
        "memory, race, order, init, barrier, cas, separated by commas; did you mean 'init'?"
    ),
}


@pytest.mark.parametrize("wrong", WRONG, ids=" ".join)
def test_wrong_settings(run: Run, wrong: tuple[str, str, str]) -> None:
    marker, option, ini = wrong
    result = run(marker + RACE, *([option] if option else []), ini=ini)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert f"ERROR: {WRONG[wrong]}" in result.stderr.str().splitlines()


SEEDED = SETTINGS + """
@pytest.fixture
def fresh():
    made = [settings()]
    yield made
    assert len(made) == 2

@pytest.mark.parametrize("name", ["a", "b-seed2"])
def test_order(fresh, name):
    fresh.append(settings())
    assert fresh[0] == fresh[1]
    assert fresh[1][1] != 2 or name == "a"

class TestOld(unittest.TestCase):
    def test_old(self):
        assert settings()[1] == 1
"""


def test_seeds_and_how_a_failure_is_had_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(SEEDED, "--ptx-seeds", "3", "--ptx-sanitize")
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["ptxdsl: sanitize=all, seeds=1 to 3", "* test_order[[]b-seed2-seed2] *"])
    command = "python -m pytest --ptx-seed 2 --ptx-sanitize 'test_it.py::test_order[b-seed2]'"
    text = result.stdout.str()
    assert f"in the schedule of seed 2; again:\n{command}\n" in text and text.count("; again:") == 1
    run(SEEDED, *command.split()[3:6], "test_it.py::test_order[b-seed2]").assert_outcomes(failed=1)
    run(SEEDED, "--ptx-seeds", "2", "--ptx-seed", "3").assert_outcomes(passed=4, failed=1)


def test_seeds_of_several_processes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    result = run(SEEDED + "@pytest.mark.ptx_sanitize\n" + RACE, "--ptx-seeds", "2", "-n1")
    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines([
        "*their_kernels.py:6: RaceError P503", "    tile?t? = x?t?", "E   race on tile*", "test_it.py:*: in test_race",
        "in the schedule of seed 1; again:", "python -m pytest --ptx-seed 1 test_it.py::test_race",
    ])


def test_other_threads_and_processes_have_the_settings(run: Run) -> None:
    tests = SETTINGS + """
def test():
    found = []
    thread = threading.Thread(target=lambda: found.append(settings()))
    thread.start()
    thread.join()
    assert found == [(["race"], 5, "emulator")]
    assert os.environ["PTXDSL_SANITIZE"] == "race" and os.environ["PTXDSL_SEED"] == "5"
"""
    run(tests, "--ptx-tools", "race", "--ptx-seed", "5").assert_outcomes(passed=1)
    assert "PTXDSL_SANITIZE" not in os.environ and "PTXDSL_SEED" not in os.environ


def test_findings_show_their_lines_first(run: Run) -> None:
    tests = """
def helper():
    two[1, 64](np.zeros(64, np.float32), np.zeros(64, np.float32))

def test_two():
    unused = [1, 2]
    helper()

@pytest.fixture
def launched():
    launch()

def test_fixture(launched):
    pass
"""
    result = run(tests, "--ptx-sanitize")
    result.assert_outcomes(failed=1, errors=1)
    places = re.findall(r"^([\w/.]+):(\d+): (.*)\n    (.*)$", result.stdout.str(), re.MULTILINE)
    assert [(Path(file).name, what, line) for file, _, what, line in places] == [
        ("their_kernels.py", "RaceError P503", "tile[t] = x[t]"),
        ("test_it.py", "in launched", "launch()"),
        ("test_it.py", "in launch", "reverse[1, 64](np.zeros(64, np.float32))"),
        ("their_kernels.py", "UninitializedError P502", "y[t] = tile[63 - t] + other[t]"),
        ("their_kernels.py", "RaceError P503", "tile[t] = x[t]"),
        ("test_it.py", "in test_two", "helper()"),
        ("test_it.py", "in helper", "two[1, 64](np.zeros(64, np.float32), np.zeros(64, np.float32))"),
    ]
    text = result.stdout.str()
    assert "unused" not in text and "pytest_plugin" not in text
    assert text.count("E     hint: put a barrier between the two: `ptx.bar.sync(0)`") == 2
    assert "E   load from other[0], which nobody has written\n" in text
    assert "FAILED test_it.py::test_two - ptxdsl.errors.UninitializedError: " in text.replace(" load", " ")


@pytest.mark.parametrize("option", ["--tb=long", "--tb=native", "--tb=line", "--full-trace"])
def test_other_tracebacks_are_pytests(run: Run, option: str) -> None:
    result = run(RACE, "--ptx-sanitize", option)
    result.assert_outcomes(failed=1)
    assert "RaceError P503" not in result.stdout.str() and "RaceError: race on tile" in result.stdout.str()


def test_expected_failures_stay(run: Run) -> None:
    tests = f"@pytest.mark.xfail\n{RACE}\ndef test_raises():\n    with pytest.raises(Exception):\n        launch()\n"
    run(tests, "--ptx-sanitize").assert_outcomes(xfailed=1, passed=1)


def test_an_execution_of_an_explored_launch_is_shown(run: Run) -> None:
    tests = """
def test_explored():
    reverse.configure(1, 64, backend="emulator", schedule="explore")(np.zeros(64, np.float32))
"""
    result = run(tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["their_kernels.py:*: RaceError P503", "E*schedule*"])


def test_outcomes(run: Run) -> None:
    tests = """
def test_it(assert_outcomes):
    x = np.zeros(1, np.uint32)
    from their_kernels import add
    assert_outcomes(add[2, 1], x, sometimes={"x": [1]}, never={"x": [0]})
    with pytest.raises(AssertionError, match="the memory model allows Outcome"):
        assert_outcomes(add[2, 1], x, always={"x": [2]})
"""
    for options in ([], ["--ptx-sanitize"], ["--ptx-seed", "3"]):
        run(tests, *options).assert_outcomes(passed=1)


def test_the_page_of_the_documentation(run: Run) -> None:
    text = (Path(__file__).parents[2] / "docs" / "howto" / "testing.md").read_text("utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if not block.startswith(">>>")]
    settings = re.findall(r'^(ptxdsl_\w+) = "(.*)"$', text, re.MULTILINE)
    assert [name for name, _ in settings] == ["ptxdsl_sanitize", "ptxdsl_seeds"]
    ini = "\n".join(map(" = ".join, settings))
    result = run("from their_kernels import message\n" + "\n".join(blocks), ini=ini)
    result.assert_outcomes(passed=20 + 3 + 3 + 3)  # what has no marker has the three seeds of the ini file
