"""Kernels in the tasks and actors of Ray."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="needs pip install 'ptxdsl[distributed]'"
)

SCRIPT = """
import sys
import numpy as np
import pickled_kernels
import ptxdsl
import ray
from ptxdsl import Ptr, f32, ptx, ptx_kernel, u32, when
from ptxdsl.machine_code.host import cores

@ptx_kernel
def squares(n: u32, x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = x[i] * x[i]

@ray.remote
def squares_of(x):
    y = np.empty_like(x)
    squares[-(-x.size // 128), 128](x.size, x, y)
    return y, x.flags.writeable, cores()

@ray.remote
def launched(launch, x):
    y = np.array(x)
    launch(x.size, y)
    return ptxdsl.to_device(y)

@ray.remote
class Actor:
    def __init__(self, kernel):
        self.kernel = kernel

    def run(self, x):
        y = np.empty_like(x)
        self.kernel[-(-x.size // 128), 128](x.size, x, y)
        return y

@ray.remote
def failing():
    pickled_kernels.failing(0)

def main(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(5000).astype(np.float32)
    squares[40, 128](x.size, x, np.empty_like(x))
    held = ray.put(x)
    for y, writeable, threads in ray.get([squares_of.remote(held) for _ in range(3)]):
        np.testing.assert_array_equal(y, x * x)
        assert not writeable and threads == 1, (writeable, threads)
    launch = pickled_kernels.scaled_by(0.5)[1, 32]
    np.testing.assert_array_equal(ray.get(launched.remote(launch, held)).numpy(), x * np.float32(0.5))
    actor = Actor.remote(squares)
    np.testing.assert_array_equal(ray.get(actor.run.remote(held)), x * x)
    assert ray.get(ray.put(pickled_kernels.saxpy)) is pickled_kernels.saxpy
    try:
        ray.get(failing.remote())
    except ptxdsl.LaunchError as error:
        assert str(pickled_kernels.caught(0)) in str(error), error
    else:
        raise AssertionError("no error came back")

if __name__ == "__main__":
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    main(int(sys.argv[1]))
    ray.shutdown()
    print("ok")
"""


def test_tasks_and_actors(tmp_path: Path) -> None:
    script = tmp_path / "tasks.py"
    script.write_text(SCRIPT)
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }
    done = subprocess.run(
        [sys.executable, script, os.environ["TEST_SEED"]], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 and done.stdout.endswith("ok\n"), done.stdout + done.stderr
