"""Compiled handlers on disk: nothing that happens to the folder stops a kernel, and nothing damaged is ever run."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ptxdsl import config
from ptxdsl.emulator.codegen import storage
from ptxdsl.emulator.codegen.library import Library, _emit
from ptxdsl.emulator.codegen.storage import KEPT, Storage, fingerprint
from ptxdsl.emulator.instructions.control import Exit
from ptxdsl.emulator.instructions.operand_classes import ABSENT, PREDICATE
from ptxdsl.emulator.instructions.scheduler import SchedulerFunction
from ptxdsl.machine_code.host import Host

OPS = [SchedulerFunction("reschedule"), Exit(ABSENT, False), Exit(PREDICATE, False).with_codes("i")]
HOST = Host("", lambda: "some LLVM on some CPU")


def library(folder: Path) -> Library:
    """A library as a fresh process has it."""
    return Library(_emit, Storage(folder, HOST))


def compiled(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[int]:
    """How many handlers a fresh process compiles, in each batch, when it needs all of them."""
    counts = []
    original = Library._compile
    with monkeypatch.context() as patch:
        patch.setattr(Library, "_compile", lambda self, keys, _: (counts.append(len(keys)), original(self, keys)))
        handlers = library(folder).need(OPS)
    assert all(handlers[op] for op in OPS)
    return counts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the handlers of two batches."""
    library(tmp_path).need(OPS[:1])
    library(tmp_path).need(OPS)
    return tmp_path


def objects(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.o"))


def test_the_next_process_compiles_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(objects(folder)) == 2
    assert compiled(monkeypatch, folder) == []


@pytest.mark.parametrize("damage", ["truncated", "empty", "changed", "gone", "a folder"])
def test_a_damaged_object_file_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    path = objects(folder)[0]
    data = path.read_bytes()
    path.unlink()
    if damage == "a folder":
        path.mkdir()
    elif damage != "gone":
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"truncated": data[:-9], "empty": b"", "changed": changed}[damage])
    assert sum(compiled(monkeypatch, folder)) in (1, 2)
    if damage != "a folder":
        assert path.read_bytes() == data
        assert compiled(monkeypatch, folder) == []


@pytest.mark.parametrize("damage", ["binary", "truncated", "swapped", "gone", "[1, 2]"])
def test_a_damaged_index_is_made_again(folder: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    (index,) = folder.glob("*/index")
    lines = index.read_text().split()
    names, homes = lines[::2], lines[1::2]
    contents = {
        "binary": b"\xff\x00" * 200, "truncated": index.read_bytes()[:-20], "[1, 2]": b"[1, 2]", "gone": b"",
        "swapped": "\n".join(map(" ".join, zip(names, reversed(homes)))).encode(),
    }
    index.write_bytes(contents[damage])
    if damage == "gone":
        index.unlink()
    made = sum(compiled(monkeypatch, folder))
    assert made == 0 if damage == "truncated" else made > 0  # the object file that is left says itself what it has
    assert compiled(monkeypatch, folder) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    assert compiled(monkeypatch, tmp_path / "file") == [3]


def test_a_folder_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is used all the same, also after the first failure to add something."""
    objects(folder)[0].unlink()

    def refuse(*_: object) -> None:
        raise PermissionError("read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    fresh = library(folder)
    for op in OPS:
        assert fresh.need([op])[op]
    assert len(objects(folder)) == 1
    assert list(folder.glob("*/*.*")) == objects(folder)


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("PTXDSL_CACHE_DIR", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the user has none
    config._read.cache_clear()
    try:
        assert config.current().cache_dir is None
    finally:
        config._read.cache_clear()


def test_old_folders_are_dropped(tmp_path: Path) -> None:
    for number in range(KEPT + 3):
        other = tmp_path / f"{number:024x}"
        other.mkdir()
        os.utime(other, (number, number))
    library(tmp_path).need(OPS[:1])
    names = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert len(names) == KEPT
    assert {f"{number:024x}" for number in range(4, KEPT + 3)} < names


def test_the_fingerprint_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, folder = tmp_path / "package", tmp_path / "cache"
    for part in ("analysis", "emulator/codegen", "ir", "isa/chapters", "launch", "machine_code", "text"):
        (package / part).mkdir(parents=True)
    source = package / "emulator" / "codegen" / "data.py"
    for path, text in ((source, "a = 1"), (package / "isa/chapters/move.isa", "mov"), (package / "types.py", ""),
                       (package / "launch/texture_description.py", "")):
        path.write_text(text)
    monkeypatch.setattr(storage, "PACKAGE", package)
    first = fingerprint(folder, HOST)
    assert fingerprint(folder, HOST) == first != fingerprint(folder, Host("", lambda: "another CPU"))
    source.write_text("a = 2")
    second = fingerprint(folder, HOST)
    (package / "isa/chapters/move.isa").write_text("mov.b64")
    assert len({first, second, fingerprint(folder, HOST)}) == 3
    (package / "isa/chapters/move.isa").write_text("mov")
    source.write_text("a = 1")
    assert fingerprint(folder, HOST) == first


SCRIPT = """
import sys
import numpy as np
from ptxdsl import Ptr, f32, ptx, ptx_kernel
@ptx_kernel
def double(x: Ptr[f32]):
    x[ptx.tid.x] = x[ptx.tid.x] * 2
x = np.arange(32, dtype=np.float32)
double[1, 32](x)
assert x.tolist() == list(range(0, 64, 2))
print("ptxdsl.emulator.codegen.handler" in sys.modules, "llvmlite" in sys.modules, "difflib" in sys.modules)
"""


def test_several_processes_at_once(tmp_path: Path) -> None:
    """They may all compile; a later process does not even load what compiles: on x86-64, not LLVM either; nor what
    finds words for errors.
    """
    path = tmp_path / "kernel.py"
    path.write_text(SCRIPT)
    environment = {**os.environ, "PTXDSL_CACHE_DIR": str(tmp_path / "cache"), "PTXDSL_BACKEND": "emulator"}
    linked = not sys.platform.startswith("linux") or platform.machine() != "x86_64"

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(path)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    for process in [start() for _ in range(3)]:
        out, errors = process.communicate()
        assert (process.returncode, out.split()[0] in ("True", "False"), errors) == (0, True, "")
    assert start().communicate() == (f"False {linked} False\n", "")
    index = next((tmp_path / "cache").glob("handlers/*/index")).read_text().split()
    assert len(index) % 2 == 0 and np.unique([len(word) for word in index]).tolist() == [24, 25]


NO_CODE = ("analysis", "collector", "config", "errors", "ir", "launch.disk_cache", "locks")
"""What modules that emit code import, and no code depends on but through its key."""


def test_the_fingerprint_covers_what_emits_code() -> None:
    parts = (*NO_CODE, *(part.removesuffix(".py").replace("/", ".") for part in storage.PARTS))
    for folder in ("codegen", "semantics", "jit"):
        for path in (storage.PACKAGE / "emulator" / folder).rglob("*.py"):
            package = path.relative_to(storage.PACKAGE).parts[:-1]
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.level:
                    base = package[: len(package) - node.level + 1]
                    target = ".".join([*base, *([node.module] if node.module else [])])
                    names = [target] if target else [alias.name for alias in node.names]
                    assert all(f"{name}.".startswith(tuple(f"{part}." for part in parts)) for name in names), path
