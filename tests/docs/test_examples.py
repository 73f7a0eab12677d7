"""Every example is short, right, and runs as its user would run it."""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ptxdsl import __main__ as command
from ptxdsl import bench

SCRIPTS = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.py"))
NAMES = [path.stem for path in SCRIPTS]
# Small and ragged: no multiple of a tile, a block or a warp.
SIZES: dict[str, list[dict[str, int]]] = {
    "attention": [{"length": 1}, {"length": 37, "dim": 32}, {"length": 33, "dim": 128, "warps": 3}],
    "autotune": [{"height": 1, "width": 1}, {"height": 37, "width": 70}],
    "block_sum": [{"n": 1}, {"n": 31, "blocks": 1}, {"n": 70_001, "blocks": 7}],
    "matmul": [{"m": 1, "n": 1, "k": 1}, {"m": 17, "n": 33, "k": 15}, {"m": 40, "n": 9, "k": 31, "tile": 8}],
    "mma_matmul": [{"m": 1, "n": 1, "k": 1}, {"m": 129, "n": 65, "k": 191}],
    "rotate": [{"height": 1, "width": 1}, {"height": 33, "width": 7, "degrees": 90}, {"height": 40, "width": 31}],
    "saxpy": [{"n": 1}, {"n": 255}, {"n": 257}],
    "softmax": [{"rows": 1, "columns": 1}, {"rows": 3, "columns": 127}, {"rows": 2, "columns": 1025}],
    "wgmma_matmul": [{"m": 1, "n": 1, "k": 1}, {"m": 129, "n": 130, "k": 193}],
    "tcgen05_matmul": [{"m": 1, "n": 1, "k": 1}, {"m": 129, "n": 130, "k": 321}],
    "transpose": [{"height": 1, "width": 1}, {"height": 33, "width": 31}, {"height": 64, "width": 96}],
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SCRIPTS[NAMES.index(name)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_promised_examples_are_there() -> None:
    promised = "attention block_sum histogram mandelbrot matmul saxpy softmax transpose"
    assert set(promised.split()) <= set(NAMES)


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_under_80_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) < 80


@pytest.mark.parametrize("path", SCRIPTS, ids=NAMES)
def test_as_a_script(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("ok")


@pytest.mark.parametrize(("name", "size"), [(n, s) for n in SIZES for s in SIZES[n]], ids=str)
def test_ragged_sizes(name: str, size: dict[str, int]) -> None:
    row = load(name).main(**size)
    assert row.ok, row


def test_histogram_of_files(tmp_path: Path, rng: np.random.Generator) -> None:
    for size in (1, 255, 100_001):
        path = tmp_path / f"{size}"
        path.write_bytes(rng.integers(0, 256, size, np.uint8).tobytes())
        assert load("histogram").main(str(path)).ok


def test_mandelbrot_is_a_png(tmp_path: Path) -> None:
    path = tmp_path / "set.png"
    assert load("mandelbrot").main(str(path), width=61, height=45).ok
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        body += content if kind == b"IDAT" else b""
        at += 12 + length
    lines = np.frombuffer(zlib.decompress(body), np.uint8).reshape(45, 62)
    assert (lines[:, 0] == 0).all()
    assert lines[:, 1:].min() == 0 and lines[:, 1:].max() > 200  # inside of the set, and far outside


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["examples", "saxpy", "transpose"]) == 0
    header, saxpy, transpose = capsys.readouterr().out.splitlines()
    assert header.split() == ["example", "ran", "on", "first", "ms", "then", "ms", "error", "allowed"]
    assert saxpy.startswith("saxpy, n = 1,000,000  ") and saxpy.endswith("ok")
    assert transpose.startswith("transpose, 500 x 700") and transpose.endswith("ok")


def test_a_wrong_result_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxdsl.bench.checks.error_of", lambda result, expected: 0.5)
    assert command.main(["examples", "saxpy"]) == 1
    assert capsys.readouterr().out.rstrip().endswith("WRONG")
    row: Any = bench.Row("x", "emulator", 1.0, 0.5, 0.1)
    with pytest.raises(SystemExit) as left:
        bench.report(row)
    assert left.value.code == 1


def test_an_unknown_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["examples", "saxby"]) == 2
    assert capsys.readouterr().err == f"there is no example saxby; there are {', '.join(NAMES)}\n"
