"""Whether there is a GPU, what is assembled for it, and its errors in words."""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any

import numpy as np
import pytest
from driver_standin import CONTEXT, Result, Standin
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import f32, ptx_kernel, u32, use
from ptxdsl.errors import DriverError, LaunchError
from ptxdsl.gpu import assembler, device, tools
from ptxdsl.gpu.error_hints import EXPLANATIONS
from ptxdsl.kernel.backends import choose

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


@pytest.mark.parametrize(
    ("arch", "capability", "target"),
    [(None, 75, "sm_75"), (None, 80, "sm_80"), (None, 90, "sm_90"), ("sm_90a", 90, "sm_90a"), ("sm_80", 90, "sm_90"),
     (None, 100, "sm_100"), ("sm_100a", 100, "sm_100a"), ("sm_100f", 103, "sm_103a")],
)
def test_what_is_assembled(
    cu: Standin, arch: str | None, capability: int, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cu.capability = capability
    seen = []
    real = assembler.assemble_module

    def assemble_module(text: str, arch: str, **known: Any) -> Any:
        seen.append(arch)
        return real(text, arch, **known)

    monkeypatch.setattr(assembler, "assemble_module", assemble_module)

    @ptx_kernel(arch=arch)
    def k(n: u32) -> None:
        pass

    k[1, 1](1)
    assert seen == [target]
    assert len(cu.launches) == 1


def test_a_kernel_for_another_gpu(cu: Standin) -> None:
    @ptx_kernel(arch="sm_100a")
    def k(n: u32) -> None:
        pass

    with pytest.raises(LaunchError, match=r"^the kernel is for sm_100a, the GPU \(Stand-in\) is sm_90"):
        k[1, 1](1)


def test_errors_of_the_driver_are_explained(cu: Standin) -> None:
    saxpy = make_saxpy()
    x = ptxdsl.zeros(32, f32)
    cu.fail["cuLaunchKernelEx"] = Result.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(DriverError) as caught:
        saxpy[1, 32](1, 1.0, x, x)
    error = caught.value
    assert error.message == f"cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE (1): {EXPLANATIONS['INVALID_VALUE']}"
    assert error.name == "CUDA_ERROR_INVALID_VALUE"
    assert error.hint is None
    assert error.loc is not None
    assert error.loc.file == __file__


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "cuda"]:
        monkeypatch.delitem(sys.modules, name)
    device.forget()

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    library = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    assert device.unavailable() == f"no NVIDIA driver: {library} cannot be loaded"
    assert choose("auto") == "emulator"
    assert not [name for name in sys.modules if name.split(".")[0] == "cuda"]
    monkeypatch.setenv("PTXDSL_BACKEND", "gpu")
    with pytest.raises(LaunchError) as caught:
        make_saxpy()[1, 32](1, 1.0, np.zeros(1, np.float32), np.zeros(1, np.float32))
    problem = f"no NVIDIA driver: {library} cannot be loaded"
    assert caught.value.message == f"the backend is gpu, and there is none: {problem}"
    assert caught.value.hint == 'run on the CPU: `with ptxdsl.use("emulator"):` or PTXDSL_BACKEND=emulator'
    assert caught.value.loc is not None
    assert "make_saxpy()[1, 32]" in caught.value.loc.source


def test_a_driver_without_a_gpu(cu: Standin) -> None:
    cu.fail["cuInit"] = Result.CUDA_ERROR_NO_DEVICE
    assert device.unavailable() == (
        f"the NVIDIA driver does not start: CUDA_ERROR_NO_DEVICE (100): {EXPLANATIONS['NO_DEVICE']}"
    )
    device.forget()
    cu.fail.clear()
    cu.count = 0
    assert device.unavailable() == "the NVIDIA driver has no GPU"
    assert choose("auto") == "emulator"


def test_bindings_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class NotFound(RuntimeError):
        pass

    def fail(_: int) -> None:
        raise NotFound("ensure the driver is installed")

    driver = types.SimpleNamespace(cuInit=fail)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    monkeypatch.setattr("cuda.bindings.driver", driver)
    device.forget()
    assert device.unavailable() == "no NVIDIA driver: ensure the driver is installed"


def test_auto_takes_the_gpu(cu: Standin) -> None:
    with use("auto"):
        assert choose() == "gpu"
        assert choose("emulator") == "emulator"
        assert ptxdsl.kernel.backend_name() == "Stand-in"
        assert ptxdsl.kernel.backend_name("emulator") == "emulator"


def test_device_arrays_of_the_gpu_on_the_emulator(cu: Standin) -> None:
    saxpy, dx = make_saxpy(), ptxdsl.to_device(np.ones(4, np.float32))
    with pytest.raises(LaunchError) as caught:
        saxpy.configure(1, 4, backend="emulator")(4, 1.0, dx, dx)
    assert caught.value.message == (
        "argument `x` of kernel `saxpy` is on GPU 0; the emulator works in host memory"
    )


def test_the_stand_in_notices(cu: Standin) -> None:
    """The stand-in is no rubber stamp: wrong calls fail in it."""
    with pytest.raises(AssertionError):
        cu.cuCtxSetCurrent(7)
    cu.cuCtxSetCurrent(CONTEXT)
    with pytest.raises(AssertionError):
        cu.cuMemAlloc(0, 0)
    with pytest.raises(AssertionError):
        cu.cuMemcpyHtoD(64, 0, 4)
    text = ctypes.create_string_buffer(b".version 7.0" + b" " * 64)
    with pytest.raises(AssertionError):
        cu.cuModuleLoadData(0, ctypes.addressof(text))
