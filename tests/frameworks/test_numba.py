"""Numba's device arrays as arguments, the real ones: of its simulator in the emulator, of a GPU beside the stand-in."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from driver_standin import Standin
from gpu_harness import make_saxpy, run_saxpy

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed: pip install numba-cuda")

import ptxdsl
from ptxdsl import use
from ptxdsl.gpu import tools

SIMULATED = """
import numpy as np
from numba import cuda
from ptxdsl import Array, LaunchError, Ptr, f32, ptx, ptx_kernel, use

@ptx_kernel
def add(x: Ptr[f32], y: Array[f32, 2]):
    y[ptx.ctaid.x, ptx.tid.x] = y[ptx.ctaid.x, ptx.tid.x] + x[ptx.tid.x]

@cuda.jit
def twice(y):
    i, j = cuda.grid(2)
    y[i, j] = y[i, j] * 2

rng = np.random.default_rng()
x, y = rng.standard_normal(7).astype(np.float32), rng.standard_normal((5, 7)).astype(np.float32)
x_device, y_device = cuda.to_device(x), cuda.to_device(y)
assert type(y_device).__module__.startswith("numba.cuda.simulator")
with use("emulator"):
    add[5, 7](x_device, y_device)       # ptxdsl's
    twice[(1, 1), (5, 7)](y_device)     # Numba's, on what it left
    add[5, 7](x_device, y_device)
    np.testing.assert_allclose(y_device.copy_to_host(), (y + x) * 2 + x, rtol=1e-5)
    try:
        add[5, 7](x_device, cuda.to_device(y.astype(np.float64)))
    except LaunchError as error:
        print(error.message)
"""


def test_arrays_of_the_simulator() -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, "-c", SIMULATED], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "argument `y` of kernel `add` is a numba FakeCUDAArray of float64, shape (5, 7); Array[f32, 2] wants float32\n"
    )


@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
def test_arrays_of_a_gpu(cu: Standin, rng: np.random.Generator) -> None:
    from numba.cuda.cudadrv.devicearray import DeviceNDArray
    from numba.cuda.cudadrv.driver import MemoryPointer

    def on_gpu(owner: Any) -> Any:
        memory = MemoryPointer(None, owner.address, owner.nbytes)
        return DeviceNDArray(owner.shape, (4,), np.float32, gpu_data=memory)

    saxpy = make_saxpy()
    cu.kernel = run_saxpy(cu)
    x, y = rng.standard_normal((2, 300)).astype(np.float32)
    with use("gpu"):
        ours = [ptxdsl.to_device(values) for values in (x, y)]
        allocated = len(cu.memory)
        saxpy[3, 128](300, -2.0, *map(on_gpu, ours))
        np.testing.assert_allclose(ours[1].numpy(), y - 2 * x, rtol=1e-5, atol=1e-6)
        assert len(cu.memory) <= allocated
