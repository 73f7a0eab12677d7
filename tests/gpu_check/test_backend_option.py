"""`pytest --backend gpu`: what runs, what does not and why, and whose fault it is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import backend_option
import driver_shim
import pytest

from ptxdsl.gpu import tools
from ptxdsl.gpu.device import unavailable

ROOT = Path(__file__).parents[2]
standing_in = pytest.mark.skipif(
    driver_shim.missing() is not None or not tools.find_tool("ptxas"), reason=f"{driver_shim.missing()}, or no ptxas"
)
TESTS = """
import numpy as np
import pytest
from ptxdsl import Ptr, backend_name, f32, ptx, ptx_kernel, u32, use, zeros

@ptx_kernel
def put(x: Ptr[u32], at: u32):
    x[at] = 7

def test_host_arrays():
    x = np.zeros(4, np.uint32)
    put[1, 1](x, 2)
    assert x.tolist() == [0, 0, 7, 0]

@pytest.mark.emulator(reason="it makes faults")
def test_fault_on_purpose():
    put[1, 1](zeros(4, u32), 1 << 30)

def test_fault():
    put[1, 1](zeros(4, u32), 1 << 30)

def test_afterwards():
    x = zeros(4, u32)
    put[1, 1](x, 3)
    assert x.numpy().tolist() == [0, 0, 0, 7]
    assert backend_name() == "Stand-in"

@ptx_kernel(arch="sm_100a")
def of_another(x: Ptr[u32]):
    x[0] = 7

def test_of_another_gpu():
    of_another[1, 1](zeros(4, u32))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(Path(backend_option.__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)


@standing_in
def test_on_the_stand_in(tmp_path: Path) -> None:
    path = tmp_path / "test_put.py"
    path.write_text(TESTS)
    ini = tmp_path / "pytest.ini"
    ini.write_text("[pytest]\nfilterwarnings = error\nmarkers = emulator\n")
    done = run("-c", str(ini), "-p", "backend_option", "--backend", "gpu", "--gpu-standin", str(path))
    assert "1 failed, 2 passed, 1 skipped, 1 deselected" in done.stdout, done.stdout
    assert "backend gpu: 1 tests not run, it makes faults" in done.stdout
    lost = r"test_put.py::test_fault has lost the GPU's context, mark it `emulator`: .*ILLEGAL_ADDRESS"
    assert re.search(lost, done.stdout)
    assert "the kernel is for sm_100a, the GPU (Stand-in) is sm_90" in done.stdout
    assert "backend gpu: 3 launches on the stand-in" in done.stdout


@standing_in
def test_the_suite_on_the_stand_in() -> None:
    """A part of it, with all kinds of arguments."""
    files = ["language/test_subroutine.py", "launch/test_scalars.py", "kernels/test_quant.py", "gpu/test_copies.py"]
    done = run("--backend", "gpu", "--gpu-standin", *(f"tests/{file}" for file in files))
    assert done.returncode == 0, done.stdout
    count = re.search(r"backend gpu: (\d+) launches on the stand-in", done.stdout)
    assert count is not None
    assert int(count[1]) > 20
    assert re.search(r"backend gpu: \d+ tests not run, with a stand-in of their own", done.stdout)


@pytest.mark.skipif(unavailable() is None, reason="there is a GPU")
def test_without_a_gpu() -> None:
    done = run("--backend", "gpu", "tests/launch/test_scalars.py")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert re.search("^ERROR: --backend gpu: (no|the) NVIDIA driver", done.stderr, re.MULTILINE)
