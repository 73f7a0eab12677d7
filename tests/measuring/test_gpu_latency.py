"""The benchmark of launch latency (tests/bench/gpu_latency.py), as far as it can be tested without a GPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import gpu_latency
import numpy as np
import pytest
from gpu_latency import Launch, Times

SCRIPT = Path(gpu_latency.__file__)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PTXDSL_BACKEND": "auto"}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_launches_take_turns_and_the_queue_is_drained_between() -> None:
    log: list[str] = []
    launches = [Launch("a", "", "empty", lambda: log.append("a")), Launch("b", "", "empty", lambda: log.append("b"))]
    times = gpu_latency.measured(launches, lambda: log.append("|"), rounds=3, turns=2)
    assert "".join(log) == "aaaabbbb" + "|aa|bb" * 3 + "|"
    assert len(times) == 2
    assert all(each.cpu >= 0 and each.wall >= 0 for each in times)


def test_the_table_has_the_cheapest_first_and_ratios_to_ptxdsl() -> None:
    launches = [
        Launch("other", "f(x)", "saxpy", lambda: None), Launch("ptxdsl", "prepared", "saxpy", lambda: None),
        Launch("ptxdsl", "slower", "saxpy", lambda: None), Launch("other", "f()", "empty", lambda: None),
    ]
    shown = gpu_latency.shown(launches, [Times(500, 510), Times(200, 201), Times(400, 400), Times(90.4, 91)])
    assert [line.split() for line in shown.splitlines()[1:]] == [
        ["empty", "other", "f()", "90", "91"],
        ["saxpy", "ptxdsl", "prepared", "200", "201", "1.00"],
        ["saxpy", "ptxdsl", "slower", "400", "400", "2.00"],
        ["saxpy", "other", "f(x)", "500", "510", "2.50"],
    ]


def test_a_saxpy_that_is_wrong_ends_it() -> None:
    y, x = np.zeros(gpu_latency.N, np.float32), gpu_latency._values()

    def right() -> None:
        y[:] += np.float32(gpu_latency.A) * x

    def wrong() -> None:
        y[:-1] += np.float32(gpu_latency.A) * x[:-1]

    gpu_latency.check([Launch("a", "", "saxpy", right, y.copy), Launch("a", "", "empty", lambda: None)])
    with pytest.raises(SystemExit, match="^b, f: the saxpy is wrong$"):
        gpu_latency.check([Launch("b", "f", "saxpy", wrong, y.copy)])


def test_without_a_gpu_it_says_so_in_a_line() -> None:
    done = run("ptxdsl", "--rounds", "1", "--turns", "1")
    if done.returncode == 0:
        pytest.skip("there is a GPU")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"nothing is measured: there is no GPU \(.*NVIDIA driver.*\)\n", done.stderr)


def test_a_peer_that_there_is_not() -> None:
    done = run("warp")
    assert done.returncode == 2
    assert "there is no peer 'warp'; there are ptxdsl, cuda.core, triton, cupy, numba, torch" in done.stderr


@pytest.mark.skipif(not shutil.which(os.environ.get("CC", "cc")) or not find_spec("cuda"), reason="no compiler of C")
def test_above_a_driver_that_does_nothing(tmp_path: Path) -> None:
    out = tmp_path / "table.txt"
    done = run("ptxdsl", "torch", "--idle", "--rounds", "1", "--turns", "3", "--out", str(out))
    assert done.returncode == 0, done.stderr
    head, _, *lines = done.stdout.splitlines()
    assert head.startswith("Idle, Python 3.")
    assert head.endswith("; torch: needs a GPU")
    assert out.read_text("utf-8") == done.stdout
    assert [line.split()[:2] for line in lines[1:]] == [["empty", "ptxdsl"]] * 2 + [["saxpy", "ptxdsl"]] * 2
