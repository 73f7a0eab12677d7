"""CuPy's arrays as arguments, the real ones.

Without a GPU CuPy allocates nothing and has no streams: these arrays are of memory of the driver's stand-in, and to
what version 2 of the array interface says the tests add what version 3 does, the stream.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from driver_standin import Standin
from gpu_harness import make_saxpy, run_saxpy

with pytest.MonkeyPatch.context() as patch:
    patch.setenv("CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION", "2")
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed: pip install cupy-cuda13x")

import ptxdsl
from ptxdsl import Array, LaunchError, Ptr, f32, ptx, ptx_kernel, use
from ptxdsl.gpu import tools

needs_ptxas = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


STREAM = 0x77


class WithStream(cupy.ndarray):
    """CuPy's array, with version 3 of the interface, for which CuPy asks the GPU's current stream."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**super().__cuda_array_interface__, "version": 3, "stream": STREAM}


WithStream.__module__, WithStream.__name__ = "cupy", "ndarray"


@pytest.fixture(autouse=True)
def current_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda: SimpleNamespace(ptr=STREAM))


def on_gpu(owner: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """CuPy's array of the memory of a device array of ours."""
    nbytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = cupy.cuda.UnownedMemory(owner.address, nbytes, owner, 0)
    return WithStream(shape, dtype=dtype, memptr=cupy.cuda.MemoryPointer(memory, 0))


@needs_ptxas
def test_a_launch_takes_them_as_they_are(cu: Standin, rng: np.random.Generator) -> None:
    saxpy = make_saxpy()
    cu.kernel = run_saxpy(cu)
    with use("gpu"):
        for n in (1, 33, 1001):
            x, y = rng.standard_normal((2, n)).astype(np.float32)
            ours = [ptxdsl.to_device(values) for values in (x, y)]
            allocated = len(cu.memory)
            saxpy[n // 128 + 1, 128](n, 3.0, *(on_gpu(owner, (n,)) for owner in ours))
            np.testing.assert_allclose(ours[1].numpy(), 3 * x + y, rtol=1e-6)
            assert len(cu.memory) <= allocated  # of the rounds before, some is given back by now
            assert cu.launches[-1].stream == STREAM


@ptx_kernel
def rows(x: Array[f32, 2]):
    x[ptx.ctaid.x, ptx.tid.x] = 1.0


@needs_ptxas
def test_strides_and_what_does_not_fit(cu: Standin) -> None:
    cu.layout = "QIII"
    with use("gpu"):
        memory = ptxdsl.zeros(60, np.float32)
        array = on_gpu(memory, (5, 12))
        rows[5, 4](array[:, 3:7])
        assert cu.numbers(cu.launches[-1]) == (memory.address + 12, 5, 4, 12)
        with pytest.raises(LaunchError) as caught:
            rows[5, 4](array.T)
        assert caught.value.message == (
            "argument `x` of kernel `rows` is a cupy ndarray of float32, shape (12, 5) on GPU 0, strides (4, 48); "
            "Array[f32, 2] wants the last dimension contiguous"
        )
        assert caught.value.hint is not None and "cupy.ascontiguousarray(x)" in caught.value.hint
        with pytest.raises(LaunchError, match="is a cupy ndarray of float64, shape"):
            rows[5, 4](on_gpu(memory, (5, 6), np.float64))


def test_the_emulator_says_where_they_are() -> None:
    @ptx_kernel
    def one(x: Ptr[f32]):
        x[0] = 1.0

    host = np.zeros(4, np.float32)
    memory = cupy.cuda.UnownedMemory(host.ctypes.data, host.nbytes, host, 0)
    array = WithStream((4,), dtype=np.float32, memptr=cupy.cuda.MemoryPointer(memory, 0))
    with pytest.raises(LaunchError) as caught:
        one.configure(1, 1, backend="emulator")(array)
    assert caught.value.message == (
        "argument `x` of kernel `one` is on GPU 0; the emulator works in host memory"
    )
    assert caught.value.hint == 'pass a numpy array, or `backend="gpu"`'
