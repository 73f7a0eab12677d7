"""`python -m ptxdsl check`: what it finds in files of Python and of PTX, as text, JSON and SARIF."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import ptxdsl
from ptxdsl.__main__ import main
from ptxdsl.checking import check_file
from ptxdsl.checking.diagnostics import kinds

HEAD = """
import sys
import warnings
import numpy as np
import ptxdsl
from ptxdsl import Ptr, f32, ptx, ptx_kernel, shared, u32

"""
RIGHT = """
@ptx_kernel
def fill(x: Ptr[f32]):
    x[ptx.tid.x] = 1.0
"""
RACE = """
@ptx_kernel
def reverse(x: Ptr[f32]):
    tile = shared(f32, 64)
    tile[ptx.tid.x] = x[ptx.tid.x]
    x[ptx.tid.x] = tile[63 - ptx.tid.x]
"""
TRUTH = """
@ptx_kernel
def clip(x: Ptr[f32]):
    if x[0] > 0:
        x[0] = 0.0
"""
RUN = """
if __name__ == "__main__":
    print("running", *sys.argv[1:])
    reverse[1, 64](np.ones(64, np.float32))
    print("not reached")
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def write(*parts: str, name: str = "user.py") -> Path:
        Path(name).write_text("".join(parts) if name.endswith(".ptx") else HEAD + "".join(parts))
        return Path(name)

    return write


def line_of(path: Path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    status = main(["check", *arguments, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert status == (0 if found["ok"] else 1)
    return found


def test_a_file_without_mistakes(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(RIGHT)
    assert main(["check", str(path)]) == 0
    out, err = capsys.readouterr()
    assert re.fullmatch(r"user\.py: fill, \d+ instructions, for sm_75: no errors\n", out) and err == ""


def test_every_kernel_is_checked_although_the_script_stopped(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(RACE, TRUTH, RIGHT, RUN)
    assert main(["check", str(path)]) == 1
    out = capsys.readouterr().out
    stored, loaded, asked = (line_of(path, text) for text in ("tile[ptx.tid.x] =", "tile[63", "if x[0]"))
    assert out.startswith("running\n") and "not reached" not in out
    assert f"user.py:{stored}: error P503 RaceError: race on tile[32] in shared memory: store by thread" in out
    assert f"  earlier: user.py:{loaded}\n  hint: put a barrier between the two: `ptx.bar.sync(0)`\n" in out
    assert f"user.py:{asked}: error P106 TruthError: a run-time predicate has no Python truth" in out
    assert re.search(r"^user\.py: reverse, \d+ instructions, for sm_75; fill, \d+ [^:]*: 2 errors$", out, re.MULTILINE)


def test_json_is_alone_on_the_standard_output(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(RACE, RUN)
    assert main(["check", str(path), "--json"]) == 1
    out, err = capsys.readouterr()
    assert err == "running\n"
    found = json.loads(out)
    assert (found["format"], found["ok"], len(found["files"])) == (1, False, 1)
    (race,) = found["files"][0]["diagnostics"]
    assert (race["code"], race["name"], race["level"]) == ("P503", "RaceError", "error")
    assert (race["file"], race["line"]) == ("user.py", line_of(path, "tile[ptx.tid.x] ="))
    assert race["source"] == "tile[ptx.tid.x] = x[ptx.tid.x]"
    details = race["details"]
    assert (details["element"], details["space"], details["thread"]) == ("tile[32]", "shared", [32, 0, 0])
    assert details["earlier"]["line"] == line_of(path, "tile[63")


def test_only_what_is_imported_where_nothing_is_to_run(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(RACE, RUN)
    found = answer(capsys, "user.py", "--no-run")
    assert [kernel["name"] for kernel in found["files"][0]["kernels"]] == ["reverse"]


def test_other_checks_than_all(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write(RACE, RUN)
    assert answer(capsys, "user.py", "--sanitize", "memory")["ok"]


def test_constants_that_a_launch_gave_and_those_that_nobody_gave(write: Any, capsys: Any) -> None:
    write(
        "@ptx_kernel\ndef scaled(x: Ptr[f32], *, by: int):\n    x[0] = float(by)\n"
        "@ptx_kernel\ndef tiled(x: Ptr[f32], *, m: int, n: int, k: int = 1):\n    x[0] = float(m * n)\n"
        "for by in (2, 3):\n    scaled[1, 1](np.zeros(1, np.float32), by=by)\n"
    )
    (file,) = answer(capsys, "user.py")["files"]
    assert [kernel["name"] for kernel in file["kernels"]] == ["scaled", "scaled"]
    assert file["skipped"] == ["tiled was not launched, and m, n have no default"]


def test_exceptions_of_python_are_located(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(RIGHT, "def half():\n    return 1 / 0\nhalf()\n")
    (file,) = answer(capsys, "user.py")["files"]
    (found,) = file["diagnostics"]
    assert (found["code"], found["name"]) == ("P001", "ZeroDivisionError")
    assert (found["message"], found["line"]) == ("ZeroDivisionError: division by zero", line_of(path, "1 / 0"))
    assert [kernel["name"] for kernel in file["kernels"]] == ["fill"]


@pytest.mark.parametrize(("ending", "ok"), [
    ("sys.exit(0)", True), ("sys.exit()", True), ("sys.exit(3)", False), ("sys.exit('no')", False),
])
def test_a_script_that_exits(write: Any, capsys: pytest.CaptureFixture[str], ending: str, ok: bool) -> None:
    write(ending + "\n")
    assert answer(capsys, "user.py")["ok"] is ok


def test_a_file_that_is_no_python(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write("def f(:\n")
    (found,) = answer(capsys, "user.py")["files"][0]["diagnostics"]
    assert (found["name"], found["line"]) == ("SyntaxError", line_of(path, "def f(:"))


def test_warnings_are_no_errors(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write("warnings.warn('slow', ptxdsl.PerformanceWarning)\nwarnings.warn('other', UserWarning)\n")
    with pytest.warns(UserWarning, match="^other$"):
        found = answer(capsys, "user.py")
    (warned,) = found["files"][0]["diagnostics"]
    assert (warned["code"], warned["level"], warned["message"]) == ("P601", "warning", "slow")


def test_the_interpreter_is_as_before(write: Any) -> None:
    path = write("sys.path.append('more')\n", RIGHT)
    before = list(sys.argv), list(sys.path), sys.modules["__main__"]
    assert check_file(path, arguments=("a", "b")).ok
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before


def test_scripts_import_what_lies_beside_them_and_get_their_arguments(write: Any) -> None:
    Path("beside.py").write_text("WORD = 'b'\n")
    path = write("import beside\nassert sys.argv == ['user.py', 'a', beside.WORD], sys.argv\n")
    try:
        assert check_file(path, arguments=("a", "b")).diagnostics == []
    finally:
        sys.modules.pop("beside", None)


@pytest.mark.ptxas
def test_the_assembler_is_asked_for_the_target(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write("@ptx_kernel(arch='sm_90a')\ndef k(x: Ptr[f32]):\n    x[0] = 1.0\n")
    assert answer(capsys, "user.py")["ok"]
    (found,) = answer(capsys, "user.py", "--arch", "sm_80")["files"][0]["diagnostics"]
    assert found["code"] == "P300" and found["hint"] == 'the PTX is for sm_90a: `arch="sm_90a"`'


def test_without_an_assembler_it_says_so(write: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxdsl.gpu.tools, "assemblers", list)
    write(RIGHT, "@ptx_kernel\ndef other(x: Ptr[f32]):\n    x[0] = 1.0\n")
    (file,) = answer(capsys, "user.py")["files"]
    assert file["ok"] and file["skipped"] == [
        "not assembled: no ptxas, NVIDIA's assembler, was found (pip install 'nvidia-cuda-nvcc>=13,<14')"
    ]


PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry k()
{
    .reg .f32 %f<2>;
    mov.f32 %f0, 0f00000000;
    add.f32 %f1, %f0, %f0;
    ret;
}
"""


@pytest.mark.parametrize(("old", "new", "code", "line", "column"), [
    ("add.f32", "add.f23", "P200", 8, 5), ("%f0, %f0;", "%f0, %r0;", "P200", 8, None),
    ("ret;", ".reg .u32 %r<1>; mov.u32 %r0, 1; add.f32 %f1, %f0, %r0; ret;", "P201", 9, None),
])
def test_ptx_text(write: Any, capsys: Any, old: str, new: str, code: str, line: int, column: int | None) -> None:
    write(PTX, name="right.ptx")
    write(PTX.replace(old, new, 1), name="wrong.ptx")
    right, wrong = answer(capsys, "right.ptx", "wrong.ptx")["files"]
    assert right == {
        "file": "right.ptx", "ok": True, "kernels": [{"name": "k", "target": "sm_75", "instructions": 3}],
        "skipped": [], "diagnostics": [],
    }
    (found,) = wrong["diagnostics"]
    assert (found["code"], found["file"], found["line"]) == (code, "wrong.ptx", line)
    assert column is None or found["column"] == column


def test_sarif(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(RACE, TRUTH, RUN)
    assert main(["check", str(path), "--sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(kinds())
    race, truth = run["results"]
    for result, code in ((race, "P503"), (truth, "P106")):
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"] == code and result["level"] == "error"
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "user.py"
    assert race["locations"][0]["physicalLocation"]["region"] == {"startLine": line_of(path, "tile[ptx.tid.x] =")}
    (related,) = race["relatedLocations"]
    assert related["physicalLocation"]["region"]["startLine"] == line_of(path, "tile[63")
    assert race["message"]["text"].endswith("\nhint: put a barrier between the two: `ptx.bar.sync(0)`")


def test_places_of_other_folders_are_uris(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a b.py"
    path.write_text("1 / 0\n")
    assert main(["check", str(path), "--sarif"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == path.as_uri()


def test_each_code_has_one_class_and_a_section() -> None:
    page = (Path(ptxdsl.__file__).parent.parent / "docs" / "errors.md").read_text("utf-8")
    sections = dict(re.findall(r"^## (P\d{3}) (.*)$", page, re.MULTILINE))
    assert {code: name for code, (name, _) in kinds().items()} == {**sections, "P001": "Exception"}
    classes = [kind for kind in vars(ptxdsl.errors).values() if isinstance(kind, type) and hasattr(kind, "code")]
    assert len({kind.code for kind in classes}) == len(classes) == len(kinds()) - 1
