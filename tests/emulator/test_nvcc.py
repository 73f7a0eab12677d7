"""What nvcc makes of CUDA C++, optimised, not optimised, for debugging and relocatable, gives the right answers."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl.gpu.tools import find_tool
from ptxdsl.kernel.ptx_module import PtxModule

SOURCE = Path(__file__).parent.parent / "corpus" / "live.cu"
WAYS = {
    "optimised": ["-arch=sm_75"], "debugging": ["-arch=sm_90", "-G"], "plain": ["-arch=sm_89", "-Xcicc", "-O0"],
    "relocatable": ["-arch=sm_120", "-rdc=true", "-lineinfo"],
}
NVCC = next(iter(find_tool("nvcc")), None)
Rng = np.random.Generator

pytestmark = [
    pytest.mark.skipif(NVCC is None or shutil.which("g++") is None, reason="no nvcc, or no compiler for its host"),
    pytest.mark.usefixtures("_emulator"),
]


@pytest.fixture
def _emulator() -> Iterator[None]:
    with ptxdsl.use("emulator"):
        yield


@pytest.fixture(scope="module", params=list(WAYS))
def m(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> PtxModule:
    out = tmp_path_factory.mktemp("nvcc") / "live.ptx"
    done = subprocess.run(
        [str(NVCC), *WAYS[request.param], "-std=c++17", "-w", "-ptx", str(SOURCE), "-o", str(out)],
        capture_output=True, text=True, check=False,
    )
    if done.returncode:
        pytest.skip(f"this nvcc does not compile here: {done.stderr[:200]}")
    return ptxdsl.load(out)


def test_virtual_functions_on_the_heap(m: PtxModule) -> None:
    out = np.zeros(40, np.float32)
    m["shapes::areas"][1, 40](out)
    assert out.tolist() == [t * t if t & 1 else 3 * t for t in range(40)]


def test_recursion(m: PtxModule) -> None:
    out, known = np.zeros(40, np.int32), [0, 1]
    m["recursion"][1, 40](out)
    while len(known) < 12:
        known.append(known[-1] + known[-2])
    assert out.tolist() == [known[t % 12] for t in range(40)]


def test_function_pointers(m: PtxModule, rng: Rng) -> None:
    which, out, t = rng.integers(0, 3, 64).astype(np.int32), np.zeros(64, np.int32), np.arange(64)
    m["pointers"][1, 64](which, out)
    assert out.tolist() == np.choose(which, [t + 7, t * 7, t - 7]).tolist()


def test_switch(m: PtxModule, rng: Rng) -> None:
    which, out, t = rng.integers(0, 9, 64).astype(np.int32), np.zeros(64, np.int32), np.arange(64)
    m["branches"][1, 64](which, out)
    ways = [t + 5, t * 7, (t ^ 0x55) - 2, t - 2, t * t, -t, t // 3, t * 0 + 99, t * 0 + 99]
    assert out.tolist() == np.choose(which, ways).tolist()


class Given(ctypes.Structure):
    _fields_ = (("count", ctypes.c_int), ("scale", ctypes.c_double), ("values", ctypes.c_void_p))


def test_a_struct_with_a_pointer(m: PtxModule, rng: Rng) -> None:
    values, out = ptxdsl.to_device(rng.integers(0, 100, 9).astype(np.float32)), np.zeros(32)
    m["structs"][1, 32](Given(9, 0.5, values.address), out)
    assert out.tolist() == [0.5 * float(values.numpy().sum()) + t for t in range(32)]


def test_variables(m: PtxModule) -> None:
    m.variables["table"] = np.array([10, 20, 30, 40], np.float32)
    m.variables["counter"] = 5
    out = np.zeros(32, np.float32)
    m["variables"][1, 32](out)
    assert out.tolist() == [10 * (t % 4 + 1) + 8 for t in range(32)]
    assert m.variables["counter"].numpy() == 8


def test_local_arrays(m: PtxModule, rng: Rng) -> None:
    which, out = rng.integers(0, 20, 64).astype(np.int32), np.zeros(64, np.int32)
    m["locals"][1, 64](which, out)
    for t, i in enumerate(which.tolist()):
        expected = np.arange(20) * t
        expected[i] += 1000
        assert out[t] == expected[:: 1 + (i & 1)].sum()


def test_128_bits(m: PtxModule, rng: Rng) -> None:
    x, out = rng.integers(1, 2**64, 3, dtype=np.uint64), np.zeros(3, np.uint64)
    x[2] >>= np.uint64(rng.integers(0, 50))
    m["wide"][1, 1](x, out)
    a, b = int(x[0]) << 64 | int(x[1]), int(x[2])
    assert (int(out[0]) << 64 | int(out[1]), int(out[2])) == divmod(a, b)


def test_cooperative_groups(m: PtxModule, rng: Rng) -> None:
    x, out = rng.integers(0, 100, 64).astype(np.int32), np.zeros(64, np.int32)
    if "groups" not in m:
        pytest.skip("cooperative_groups.h needs nvidia-cuda-cccl")
    m["groups"][1, 64](x, out)
    assert out.tolist() == np.repeat(x.reshape(2, 32).sum(1) + 32, 32).tolist()
    moved = np.roll(x, -1)
    m["grid"].configure(4, 16, cooperative=True)(x)
    assert x.tolist() == moved.tolist()


def test_printf(m: PtxModule, capsys: pytest.CaptureFixture[str]) -> None:
    m["prints"][1, 64](3)
    assert capsys.readouterr().out == "".join(f"thread {t} of 64: {t / 4:.2f} done\n" for t in range(3))


def test_functions_of_the_maths_library(m: PtxModule, rng: Rng) -> None:
    x, out = rng.uniform(0.1, 8, 64), np.zeros((64, 6))
    m["functions"][1, 64](x, out)
    exact = np.c_[np.sin(x), np.exp(x), x**1.7, [math.gamma(v) for v in x], np.cbrt(x)]
    assert np.abs(out[:, :5] / exact - 1).max() < 4e-15
    assert np.abs(out[:, 5] - np.sin(x.astype(np.float32).astype(np.float64))).max() < 2e-7
