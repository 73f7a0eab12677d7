"""Host arrays in launches on the GPU: copied there, and back what was written."""

from __future__ import annotations


import numpy as np
import pytest
from driver_standin import Result, Standin
from gpu_harness import make_saxpy, run_saxpy

import ptxdsl
from ptxdsl import Ptr, ptx, ptx_kernel, s32, u32
from ptxdsl.errors import DriverError, LaunchError, PerformanceWarning
from ptxdsl.gpu import device, tools
from ptxdsl.gpu.memory import STAGING

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


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
    assert cu.calls.count("cuMemcpyHtoDAsync") == 1
    assert cu.calls.count("cuMemcpyDtoHAsync") == 1
    assert cu.calls.index("cuStreamSynchronize") > cu.calls.index("cuMemcpyDtoHAsync")
    cu.finish_all()
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
    assert not [call for call in cu.calls if call.startswith(("cuMemAlloc", "cuMemcpy"))]


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


def test_one_warning_a_kernel(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: int) -> None:
        x[ptx.tid.x] = value

    cu.layout = "Q"
    x = np.zeros(32, np.uint32)
    with pytest.warns(PerformanceWarning):
        fill[1, 32](x, value=0)
    fill[1, 32](x, value=1)  # a second warning would be an error


def test_no_host_arrays_while_a_stream_is_captured(cu: Standin) -> None:
    saxpy = make_saxpy()
    x = np.zeros(32, np.float32)
    with cu.capture(7), pytest.warns(PerformanceWarning), pytest.raises(LaunchError) as caught:
        saxpy[1, 32, 7](1, 1.0, x, x)
    assert caught.value.message == (
        "kernel `saxpy` is launched with host arrays while its stream is captured into a graph"
    )
    assert caught.value.hint == "`x = ptxdsl.to_device(x)` before the capture"
    assert not cu.launches


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
    cu.finish_all()
    assert not cu.memory


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_directions(cu: Standin, rng: np.random.Generator) -> None:
    """``In`` is not copied back, ``Out`` not to the GPU, whatever the trace says."""
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    x, y = rng.random(32, np.float32), rng.random(32, np.float32)
    kept, expected = y.copy(), np.float32(2) * x + y
    saxpy[1, 32](32, 2.0, x, ptxdsl.In(y))
    np.testing.assert_array_equal(y, kept)
    saxpy[1, 32](32, 2.0, x, ptxdsl.InOut(y))
    np.testing.assert_array_equal(y, expected)
    for _ in range(2):
        saxpy[1, 32](32, 0.0, x, ptxdsl.Out(y))
    np.testing.assert_array_equal(y.view(np.uint32), np.full(32, 0xCDCDCDCD, np.uint32))
    assert (cu.calls.count("cuMemcpyHtoDAsync"), cu.calls.count("cuMemcpyDtoHAsync")) == (1 + 1 + 1 + 1, 0 + 1 + 1 + 1)


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
@pytest.mark.parametrize("pools", [True, False])
@pytest.mark.parametrize("flags", [0, 1])
@pytest.mark.parametrize("n", [1, 1000, 20_000, STAGING // 4 + 3])
def test_all_of_it_is_in_the_order_of_the_stream(
    n: int, flags: int, pools: bool, cu: Standin, rng: np.random.Generator
) -> None:
    """Small arrays are staged together, large ones are not; another stream is not waited for."""
    cu.has_pools = pools
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    own = [ptxdsl.Stream() for _ in range(2)]
    streams = [stream.handle for stream in own] if flags else [0x20, 0x21]
    other, later = ptxdsl.zeros(4, u32), []
    cu.submit(streams[1], lambda: later.append(1))
    for _ in range(3):
        x, y = rng.random(n, np.float32), rng.random(n, np.float32)
        expected, kept = np.float32(3) * x + y, x.copy()
        del cu.calls[:]
        saxpy[-(-n // 256), 256, streams[0]](n, 3.0, x, y)
        assert np.array_equal(y, expected) and np.array_equal(x, kept)
        staged = n * 4 <= 64 << 10
        assert cu.calls.count("cuMemcpyHtoDAsync") == (1 if staged else 2)
        assert ("cuMemAlloc" in cu.calls, "cuMemAllocFromPoolAsync" in cu.calls) == (not pools, pools)
        assert cu.calls.count("cuMemHostAlloc") <= 1
    assert later == ([] if pools else [1])  # cuMemFree waits for everything
    assert other.numpy().tolist() == [0] * 4
    assert len(cu.pinned) == (1 if staged else 0)
    device.driver().memory.trim()
    assert not cu.pinned


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_many_arrays_in_one_launch(cu: Standin, rng: np.random.Generator) -> None:
    """More than the staging memory holds, of sizes that are no multiples of anything."""
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    sizes = [int(n) for n in rng.integers(1, 60_000 // 4, 4)] + [1, 3, 16385]
    for n in sizes:
        x, y = rng.random(n, np.float32), rng.random(n, np.float32)
        expected = np.float32(0.5) * x + y
        saxpy[-(-n // 256), 256](n, 0.5, x, y)
        assert np.array_equal(y, expected)
