"""The example with peers' addresses and multicast memory: its kernels assemble, and the emulator runs what it can."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxdsl.config import override
from ptxdsl.gpu import tools

SCRIPT = Path(__file__).parents[2] / "examples/distributed/symmetric_memory.py"


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("symmetric_memory", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_command() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "4096"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("for two or more GPUs: torchrun --nproc-per-node gpu ")
    assert "4 peers, and 1 by multicast" in done.stdout


@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
@pytest.mark.parametrize("arch", ["sm_90", "sm_100a"])
def test_the_kernels_assemble(example: Any, arch: str) -> None:
    assert example.sum_of_peers.cubin(arch=arch, world=8).startswith(b"\x7fELF")
    for kernel, instruction in (
        (example.sum_by_multicast, "multimem.ld_reduce.relaxed.sys.global.add.v4.f32"),
        (example.meet, "multimem.red.release.sys.global.add.u32"),
    ):
        assert kernel.cubin(arch=arch).startswith(b"\x7fELF")
        assert instruction in kernel.ptx()
        assert ".target sm_90\n" in kernel.ptx()


@pytest.mark.parametrize("world", [1, 3, 8])
def test_the_sum_of_peers(example: Any, world: int, rng: np.random.Generator) -> None:
    peers = [rng.standard_normal(777).astype(np.float32) for _ in range(world)]
    total, n = np.full(777, np.nan, np.float32), 700
    with override(backend="emulator", sanitize="all"):
        example.sum_of_peers[6, 128](n, peers, total, world=world)
    exact = np.sum(peers, axis=0, dtype=np.float64)
    scale = np.sum(np.abs(peers), axis=0, dtype=np.float64)
    assert np.all(np.abs(total - exact)[:n] <= world * 2.0**-24 * scale[:n])
    assert np.isnan(total[n:]).all()


def test_multicast_with_one_device(example: Any, rng: np.random.Generator) -> None:
    """What one device has is its own sum; the counter goes up by one, and who expects more waits for good."""
    x, arrived = rng.standard_normal(64, np.float32), np.array([41], np.uint32)
    before = x.copy()
    with override(backend="emulator", sanitize="all"):
        example.sum_by_multicast[1, 32](15, x)
        example.meet[1, 1](arrived, arrived, 42)
        with pytest.raises(example.ptxdsl.DeadlockError):
            example.meet[1, 1](arrived, arrived, 44)
    assert np.array_equal(x, before)
    assert arrived.tolist() == [43]
