"""The GPU path, from arguments to the driver's calls, against the stand-in of driver_standin.py."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ptxdsl
from driver_standin import CONTEXT, OK, Handle, Launched, Result, Standin, install
from ptxdsl import Array, Ptr, dynamic_shared, f32, ptx, ptx_kernel, s32, shared, u32, u64, use, when
from ptxdsl.gpu import assembler, device, tools
from ptxdsl.gpu.error_hints import EXPLANATIONS
from ptxdsl.kernel.backends import choose
from ptxdsl.errors import DriverError, LaunchError, PerformanceWarning

FIRST_STREAM = 0x51


@pytest.fixture
def cu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Standin]:
    """A machine with a GPU, of which every allocation is given back in the end."""
    standin = install(monkeypatch, Standin())
    with use("gpu"):
        yield standin
    gc.collect()
    assert not standin.memory
    device._bindings.cache_clear()
    device._driver.cache_clear()


pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def make_saxpy() -> Any:
    @ptx_kernel
    def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        with when(i < n):
            y[i] = a * x[i] + y[i]

    return saxpy


def run_saxpy(cu: Standin) -> Callable[[Launched], None]:
    """What the GPU would do."""

    def run(launched: Launched) -> None:
        n, a, x, y = cu.numbers(launched)
        assert launched.grid[0] * launched.block[0] >= n
        cu.array(y, n)[:] = np.float32(a) * cu.array(x, n) + cu.array(y, n)

    cu.layout = "IfQQ"
    return run


# ---------------------------------------------------------------------------------------------------------------------
# Arguments


def test_numpy_arrays_are_copied_in_and_what_is_written_back(cu: Standin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x, y = rng.random(1000, np.float32), rng.random(1000, np.float32)
    expected, kept = np.float32(3) * x + y, x.copy()
    with pytest.warns(PerformanceWarning) as caught:
        saxpy[4, 256](1000, 3.0, x, y)
    assert np.array_equal(y, expected)
    assert np.array_equal(x, kept)
    (warning,) = caught
    assert str(warning.message) == (
        "kernel `saxpy` has its arrays x, y copied to the GPU at every launch; "
        "keep them there: `x = ptxdsl.to_device(x)`"
    )
    assert warning.filename == __file__
    assert cu.calls.count("cuMemcpyHtoDAsync") == 2
    assert cu.calls.count("cuMemcpyDtoHAsync") == 1
    assert cu.calls.index("cuStreamSynchronize") > cu.calls.index("cuMemcpyDtoHAsync")
    assert not cu.memory
    launched = cu.launches[0]
    assert (launched.grid, launched.block, launched.shared, launched.stream) == ((4, 1, 1), (256, 1, 1), 0, 0)
    saxpy[4, 256](1000, 3.0, x, y)  # no second warning, which would be an error


def test_read_only_arrays_that_are_only_read(cu: Standin) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x, y = np.ones(10, np.float32), np.zeros(10, np.float32)
    x.flags.writeable = False
    with pytest.warns(PerformanceWarning):
        saxpy[1, 32](10, 2.0, x, y)
    assert y.tolist() == [2.0] * 10
    with pytest.raises(LaunchError, match=r"^argument `y` of kernel `saxpy` is .*, read-only; the kernel writes to it"):
        saxpy[1, 32](10, 2.0, y, x)


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_arrays_that_overlap_stay_so(cu: Standin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x = rng.random(100, np.float32)
    expected = np.float32(2) * x + x
    saxpy[1, 128](100, 2.0, x, x)
    assert np.array_equal(x, expected)
    whole = rng.random(100, np.float32)
    kept = whole.copy()
    saxpy[1, 64](60, 2.0, whole[:60], whole[30:90])
    assert np.array_equal(whole[:30], kept[:30])
    assert np.array_equal(whole[90:], kept[90:])
    assert np.array_equal(whole[60:90], np.float32(2) * kept[30:60] + kept[60:90])


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_empty_arrays(cu: Standin) -> None:
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    nothing = np.zeros(0, np.float32)
    saxpy[1, 32](0, 1.0, nothing, nothing)
    assert cu.numbers(cu.launches[0]) == (0, 1.0, 0, 0)
    assert "cuMemAlloc" not in cu.calls


def test_device_arrays_are_not_copied(cu: Standin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x, y = rng.random(1000, np.float32), rng.random(1000, np.float32)
    dx, dy = ptxdsl.to_device(x), ptxdsl.to_device(y)
    assert dx.__cuda_array_interface__["data"] == (dx.address, False)
    before = len(cu.calls)
    for _ in range(3):
        saxpy[4, 256](1000, 3.0, dx, dy)
        y = np.float32(3) * x + y
    assert not [call for call in cu.calls[before:] if "cpy" in call or "Synchronize" in call]
    assert np.array_equal(dy.numpy(), y)
    assert ptxdsl.zeros((2, 3), s32).numpy().tolist() == [[0] * 3] * 2
    with pytest.raises(ValueError, match="cannot become a numpy array without a copy"):
        dx.__array__(copy=False)


def test_device_arrays_of_the_gpu_on_the_emulator(cu: Standin) -> None:
    saxpy, dx = make_saxpy(), ptxdsl.to_device(np.ones(4, np.float32))
    with pytest.raises(LaunchError) as caught:
        saxpy.configure(1, 4, backend="emulator")(4, 1.0, dx, dx)
    assert caught.value.message == (
        "argument `x` of kernel `saxpy` is on GPU 0; the emulator works in host memory"
    )


def test_the_fast_path_launches_the_same(cu: Standin, rng: np.random.Generator) -> None:
    """The second launch with arguments of the same types takes the fast path; unusual ones go through all checks."""
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x, y = (ptxdsl.to_device(rng.random(64, np.float32)) for _ in range(2))
    for _ in range(20):
        n, a = int(rng.integers(2**32)), float(np.float32(rng.normal()))
        saxpy[2, 32](n, a, x, y)
        assert cu.numbers(cu.launches[-1]) == (n, a, x.address, y.address)
    count = len(cu.launches)
    wrong = ptxdsl.to_device(np.zeros(64, np.int32))
    cases: list[tuple[Any, ...]] = [(-1, 1.0, x, y), (2**32, 1.0, x, y), (1, 1e39, x, y), (1, 1.0, wrong, y)]
    for args in cases:
        with pytest.raises(LaunchError):
            saxpy[2, 32](*args)
    assert len(cu.launches) == count
    saxpy[2, 32](7, float("inf"), y, x)
    assert cu.numbers(cu.launches[-1]) == (7, float("inf"), y.address, x.address)
    with use("emulator"), pytest.raises(LaunchError, match="is on GPU 0; the emulator works in host memory"):
        saxpy[2, 32](7, 1.0, x, y)


def test_the_fast_path_sees_constants(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: int) -> None:
        x[ptx.tid.x] = value

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    for value in (1, 2, 1, 2, 1):
        fill[1, 32](x, value=value)
    assert len(cu.images) == 2
    assert len(set(cu.images)) == 2


def test_the_fast_path_keeps_true_from_one(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: Any) -> None:
        x[ptx.tid.x] = 5 if value is True else int(str(value).startswith("-"))

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    for value in (1, 1, True, True, 0.0, 0.0, -0.0):
        fill[1, 32](x, value=value)
    assert len(cu.images) == 4
    assert len(set(cu.images)) == 3  # 1 and 0.0 make the same code


def test_one_warning_a_kernel(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: int) -> None:
        x[ptx.tid.x] = value

    cu.layout = "Q"
    x = np.zeros(32, np.uint32)
    with pytest.warns(PerformanceWarning):
        fill[1, 32](x, value=0)
    fill[1, 32](x, value=1)  # a second warning would be an error


def test_retrace_ends_the_fast_path(cu: Standin) -> None:
    factor = [1]

    @ptx_kernel
    def fill(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = factor[0]

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    launch = fill[1, 32]
    launch(x)
    launch(x)
    factor[0] = 5
    launch(x)
    assert len(cu.images) == 1
    fill.retrace()
    launch(x)
    assert len(cu.images) == 2


def test_the_fast_path_refuses_a_launch_within_a_trace(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = 1

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    launch = fill[1, 32]
    launch(x)

    @ptx_kernel
    def outer(y: Ptr[u32]) -> None:
        launch(x)
        y[0] = 1

    with pytest.raises(LaunchError, match="is launched while another is traced"):
        outer.ptx()
    assert len(cu.launches) == 1


def test_arrays_with_shape_and_strides(cu: Standin) -> None:
    @ptx_kernel
    def touch(m: Array[f32, 2], k: u64) -> None:
        with when(m.shape[0] > 0):
            m[0, 0] = 1.0
        ptx.mov.u64(k)

    cu.layout = "QIIIQ"
    m = ptxdsl.zeros((3, 5), f32)
    touch[1, 1](m, 2**64 - 1)
    touch[1, 1](m, 2**64 - 1)
    assert [cu.numbers(launched) for launched in cu.launches] == [(m.address, 3, 5, 5, 2**64 - 1)] * 2


def test_threads_have_parameters_of_their_own(cu: Standin) -> None:
    """Launches of eight threads at once, each with its own numbers, which the driver reads late."""
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    seen: list[tuple[int, float]] = []
    barrier = threading.Barrier(8)

    def slow(config: Any, function: Any, pointers: int, extra: int) -> tuple[Any, ...]:
        if threading.current_thread() is not threading.main_thread():
            barrier.wait(timeout=20)
        addresses = (ctypes.c_uint64 * 4).from_address(pointers)
        seen.append((ctypes.c_uint32.from_address(addresses[0]).value, ctypes.c_float.from_address(addresses[1]).value))
        return (OK,)

    object.__setattr__(cu, "cuLaunchKernelEx", slow)
    x = ptxdsl.zeros(32, f32)
    with use("gpu"):  # the setting is part of what a planned launch was planned for
        saxpy[1, 32](99, 1.0, x, x)
    seen.clear()

    def work(i: int) -> None:
        with use("gpu"):
            saxpy[1, 32](i, float(i), x, x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(i, float(i)) for i in range(8)]


# ---------------------------------------------------------------------------------------------------------------------
# Streams


class Foreign:
    """An array of a library that has streams."""

    def __init__(self, memory: Any, stream: int | None) -> None:
        self.memory = memory
        self.__cuda_array_interface__ = {**memory.__cuda_array_interface__, "stream": stream}


def test_streams_of_arrays_are_waited_for(cu: Standin) -> None:
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x = ptxdsl.zeros(32, f32)
    saxpy[1, 32](1, 1.0, Foreign(x, 7), Foreign(x, 8))
    assert sorted(cu.waits) == [(7, 0), (8, 0)]
    cu.waits.clear()
    saxpy[1, 32, FIRST_STREAM](1, 1.0, Foreign(x, FIRST_STREAM), Foreign(x, None))
    assert cu.waits == []
    saxpy[1, 32](1, 1.0, Foreign(x, 1), Foreign(x, None))
    assert cu.waits == []
    assert [launched.stream for launched in cu.launches] == [0, FIRST_STREAM, 0]


def test_the_current_stream_of_torch(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ptxdsl.zeros(32, f32)
    address = x.address
    current = types.SimpleNamespace(cuda_stream=0x77)
    streams = types.SimpleNamespace(current_stream=lambda _: current)
    torch = types.SimpleNamespace(_C=types.SimpleNamespace(), cuda=streams)
    monkeypatch.setitem(sys.modules, "torch", torch)
    kind = type("Tensor", (), {
        "__module__": "torch", "data_ptr": lambda _: address, "stride": lambda _: (1,), "element_size": lambda _: 4,
        "is_contiguous": lambda _: True, "get_device": lambda _: 0,
    })
    tensor: Any = kind()
    tensor.layout, tensor.dtype, tensor.shape = "torch.strided", "torch.float32", (32,)
    tensor.device = types.SimpleNamespace(type="cuda", index=0)
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    saxpy[1, 32](1, 1.0, tensor, tensor)
    current.cuda_stream = 0x78
    saxpy[1, 32](2, 1.0, tensor, tensor)
    saxpy[1, 32, 5](3, 1.0, tensor, tensor)
    assert [launched.stream for launched in cu.launches] == [0x77, 0x78, 5]
    assert [cu.numbers(launched)[0] for launched in cu.launches] == [1, 2, 3]


def test_no_host_arrays_while_a_stream_is_captured(cu: Standin) -> None:
    saxpy, cu.capturing = make_saxpy(), 1
    x = np.zeros(32, np.float32)
    with pytest.warns(PerformanceWarning), pytest.raises(LaunchError) as caught:
        saxpy[1, 32](1, 1.0, x, x)
    assert caught.value.message == (
        "kernel `saxpy` is launched with host arrays while its stream is captured into a graph"
    )
    assert caught.value.hint == "`x = ptxdsl.to_device(x)` before the capture"
    assert not cu.launches


def test_arrays_on_two_gpus(cu: Standin) -> None:
    saxpy, cu.count = make_saxpy(), 2
    x = ptxdsl.zeros(32, f32)
    other = Foreign(x, None)
    other.device = 1  # type: ignore[attr-defined]
    with pytest.raises(LaunchError) as caught:
        saxpy[1, 32](1, 1.0, x, other)
    assert caught.value.message == (
        "argument `x` of kernel `saxpy` is on GPU 0, `y` on GPU 1; all of a launch have to be on one"
    )


# ---------------------------------------------------------------------------------------------------------------------
# Geometry


def test_cluster_cooperative_stream_and_shared(cu: Standin) -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        tile = dynamic_shared(f32)
        tile[ptx.tid.x] = x[0]

    cu.layout = "Q"
    x = ptxdsl.zeros(4, f32)
    k.configure((4, 2), 32, cluster=(2, 1), cooperative=True, stream=9, shared=100_000)(x)
    launched = cu.launches[0]
    assert (launched.grid, launched.block, launched.shared, launched.stream) == ((4, 2, 1), (32, 1, 1), 100_000, 9)
    cluster = launched.attributes["CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"].clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (2, 1, 1)
    assert launched.attributes["CU_LAUNCH_ATTRIBUTE_COOPERATIVE"].cooperative == 1
    assert cu.attributes == {"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 100_000}
    cu.attributes.clear()
    k[1, 32, None, 4096](x)
    assert cu.attributes == {}
    assert cu.launches[-1].attributes == {}


@pytest.mark.parametrize(
    ("options", "limits", "capability", "message"),
    [
        (
            {"grid": 1, "block": 1024}, {"MAX_THREADS_PER_BLOCK": 512}, 90,
            ("block (1024, 1, 1) has 1024 threads; on this GPU (Stand-in) kernel `k` can have 512, for the "
             "registers it uses"),
        ),
        (
            {"grid": 1, "block": 32, "shared": 230_000}, {"SHARED_SIZE_BYTES": 4096}, 90,
            ("kernel `k` declares 4096 bytes of shared memory and the launch adds 230000; a block on this GPU "
             "(Stand-in) can have 232448"),
        ),
        ({"grid": 2, "block": 32, "cluster": 2}, {}, 80, "clusters need sm_90, the GPU (Stand-in) is sm_80"),
        (
            {"grid": 21, "block": 32, "cooperative": True}, {}, 90,
            "a cooperative launch of 21 blocks; 20 fit on this GPU (Stand-in) at once",
        ),
    ],
)
def test_what_this_gpu_cannot_launch(
    options: dict[str, Any], limits: dict[str, int], capability: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @ptx_kernel
    def k(n: u32) -> None:
        tile, more = shared(f32, 32), dynamic_shared(f32)
        tile[ptx.tid.x] = 1.0
        more[ptx.tid.x] = 1.0

    cu = install(monkeypatch, Standin(capability))
    cu.limits.update(limits)
    with use("gpu"), pytest.raises(LaunchError) as caught:
        k.configure(**{"shared": 128, **options})(1)
    assert caught.value.message == message
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert not cu.launches


@pytest.mark.parametrize(
    ("arch", "capability", "target"),
    [(None, 75, "sm_75"), (None, 80, "sm_80"), (None, 90, "sm_90"), ("sm_90a", 90, "sm_90a"), ("sm_80", 90, "sm_90"),
     (None, 100, "sm_100"), ("sm_100a", 100, "sm_100a"), ("sm_100f", 103, "sm_103a")],
)
def test_what_is_assembled(arch: str | None, capability: int, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cu = install(monkeypatch, Standin(capability))
    seen = []
    real = assembler.assemble_module

    def assemble_module(text: str, arch: str) -> Any:
        seen.append(arch)
        return real(text, arch)

    monkeypatch.setattr(assembler, "assemble_module", assemble_module)

    @ptx_kernel(arch=arch)
    def k(n: u32) -> None:
        pass

    with use("gpu"):
        k[1, 1](1)
    assert seen == [target]
    assert len(cu.launches) == 1


def test_a_kernel_for_another_gpu(cu: Standin) -> None:
    @ptx_kernel(arch="sm_100a")
    def k(n: u32) -> None:
        pass

    with pytest.raises(LaunchError, match=r"^the kernel is for sm_100a, the GPU \(Stand-in\) is sm_90"):
        k[1, 1](1)


# ---------------------------------------------------------------------------------------------------------------------
# What goes wrong


def test_errors_of_the_driver_are_explained(cu: Standin) -> None:
    saxpy = make_saxpy()
    x = ptxdsl.zeros(32, f32)
    cu.fail["cuLaunchKernelEx"] = Result.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(DriverError) as caught:
        saxpy[1, 32](1, 1.0, x, x)
    error = caught.value
    assert error.message == (
        f"cuLaunchKernelEx: CUDA_ERROR_ILLEGAL_ADDRESS (700): {EXPLANATIONS['ILLEGAL_ADDRESS']}"
    )
    assert error.name == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert error.hint == '`with ptxdsl.use("emulator"):` names the thread and the line'
    assert error.loc is not None
    assert error.loc.file == __file__


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
@pytest.mark.parametrize(
    "failing", ["cuLaunchKernelEx", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize"]
)
def test_memory_is_given_back_after_an_error(failing: str, cu: Standin) -> None:
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    cu.fail[failing] = Result.CUDA_ERROR_INVALID_VALUE
    x, y = np.zeros(32, np.float32), np.zeros(32, np.float32)
    with pytest.raises(DriverError, match=f"^{failing}: CUDA_ERROR_INVALID_VALUE"):
        saxpy[1, 32](1, 1.0, x, y)
    assert not cu.memory


def test_without_ptxas_the_driver_compiles(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find_tool", lambda _: [])
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x = ptxdsl.zeros(32, f32)
    saxpy[1, 32](1, 1.0, x, x)
    assert cu.images == [saxpy.ptx().encode() + b"\0"]
    assert len(cu.launches) == 1


def test_what_the_drivers_compiler_refuses(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find_tool", lambda _: [])

    def refuse(image: bytes, count: int, options: Any, values: Any) -> tuple[Any, ...]:
        ctypes.memmove(values[0], b"ptxas application ptx input, line 3; error : no\0", 48)
        return (Result.CUDA_ERROR_INVALID_PTX,)

    object.__setattr__(cu, "cuModuleLoadDataEx", refuse)
    with pytest.raises(DriverError) as caught:
        make_saxpy()[1, 32](1, 1.0, ptxdsl.zeros(32, f32), ptxdsl.zeros(32, f32))
    assert caught.value.message == (
        "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): the driver's compiler refuses the PTX\n"
        "ptxas application ptx input, line 3; error : no"
    )
    assert caught.value.hint == "ptxas explains better: pip install 'nvidia-cuda-nvcc>=13,<14'"


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "cuda"]:
        monkeypatch.delitem(sys.modules, name)
    device._bindings.cache_clear()

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


def test_a_driver_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    standin = install(monkeypatch, Standin())
    standin.fail["cuInit"] = Result.CUDA_ERROR_NO_DEVICE
    assert device.unavailable() == (
        f"the NVIDIA driver does not start: CUDA_ERROR_NO_DEVICE (100): {EXPLANATIONS['NO_DEVICE']}"
    )
    install(monkeypatch, Standin(count=0))
    assert device.unavailable() == "the NVIDIA driver has no GPU"
    assert choose("auto") == "emulator"


def test_bindings_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    class NotFound(RuntimeError):
        pass

    def fail(_: int) -> None:
        raise NotFound("ensure the driver is installed")

    install(monkeypatch, types.SimpleNamespace(cuInit=fail))
    assert device.unavailable() == "no NVIDIA driver: ensure the driver is installed"


def test_auto_takes_the_gpu(cu: Standin) -> None:
    with use("auto"):
        assert choose() == "gpu"
        assert choose("emulator") == "emulator"
        assert ptxdsl.kernel.backend_name() == "Stand-in"
        assert ptxdsl.kernel.backend_name("emulator") == "emulator"


def test_the_stand_in_notices(cu: Standin) -> None:
    """The stand-in is no rubber stamp: wrong calls fail in it."""
    with pytest.raises(AssertionError):
        cu.cuMemAlloc(0)
    with pytest.raises(AssertionError):
        cu.cuCtxSetCurrent(7)  # type: ignore[arg-type]
    cu.cuCtxSetCurrent(Handle(CONTEXT))
    with pytest.raises(AssertionError):
        cu.cuMemcpyHtoD(64, 0, 4)
    with pytest.raises(AssertionError):
        cu.cuModuleLoadData(b".version")


# ---------------------------------------------------------------------------------------------------------------------
# Tables of pointers


@ptx_kernel
def fill(tables: Ptr[Ptr[f32]], value: f32) -> None:
    tables[ptx.ctaid.x][ptx.tid.x] = value


def test_a_table_holds_the_addresses_on_the_gpu(cu: Standin) -> None:
    def run(launched: Launched) -> None:
        table, value = cu.numbers(launched)
        for address in cu.array(table, 2, np.uint64):
            cu.array(int(address), 32)[:] = value

    cu.layout, cu.kernel = "Qf", run
    arrays = [ptxdsl.zeros(32, f32) for _ in range(2)]
    fill[2, 32](arrays, 2.5)
    assert all((array.numpy() == 2.5).all() for array in arrays)


def test_a_table_takes_no_arrays_of_the_host(cu: Standin) -> None:
    with pytest.raises(LaunchError) as caught:
        fill[2, 32]([ptxdsl.zeros(32, f32), np.zeros(32, np.float32)], 2.5)
    assert caught.value.message == (
        "argument `tables[1]` of kernel `fill` is in host memory; the arrays of a table have to be on the GPU"
    )
    assert caught.value.hint == "`tables = [ptxdsl.to_device(array) for array in tables]`"
    assert not cu.launches


# ---------------------------------------------------------------------------------------------------------------------
# Variables of a module


def test_the_kernels_of_a_module_share_its_variables(cu: Standin) -> None:
    m = ptxdsl.load("""
.version 7.0
.target sm_75
.address_size 64
.global .align 4 .u32 count[16];
.visible .entry first() { .reg .b32 r; ld.global.u32 r, [count]; ret; }
.visible .entry second() { .reg .b32 r; ld.global.u32 r, [count]; ret; }""")
    m.variables["count"] = np.arange(16, dtype=np.uint32)
    m["first"][1, 1]()
    m["second"][1, 1]()
    assert len(cu.images) == 1
    seen = m.variables["count"]
    assert (seen.device, seen.backend, seen.numpy().tolist()) == (0, "gpu", list(range(16)))
    assert cu.globals[b"count"][1].raw[4:8] == b"\1\0\0\0"
