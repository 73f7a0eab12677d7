"""Autotuning on a GPU: by its times, on its memory, kept for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_standin import Fault, Launched, Result, Standin
from gpu_clock import GpuClock
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import Config, Ptr, autotune, cdiv, config, global_, ptx, ptx_kernel, u32
from ptxdsl.errors import DriverError, LaunchError, PerformanceWarning, PtxWarning

BLOCKS = [Config(block=n) for n in (32, 128, 64)]
TIMES = {32: 9e-6, 128: 3e-6, 64: 5e-6}


@pytest.fixture
def clock(cu: Standin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GpuClock]:
    """A GPU on which saxpy takes the time that its block has in TIMES."""
    found = GpuClock(cu, monkeypatch)

    def saxpy(launched: Launched) -> None:
        n, a, x, y = cu.numbers(launched)
        assert launched.grid[0] * launched.block[0] >= n
        cu.array(y, n)[:] = np.float32(a) * cu.array(x, n) + cu.array(y, n)
        found.step(f"saxpy {launched.block[0]}", TIMES[launched.block[0]])

    cu.kernel = saxpy
    with config.override(cache_dir=tmp_path / "cache"):
        yield found


def grid(n: int) -> Callable[[Config], int]:
    return lambda each: cdiv(n, each.block)


def arrays(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal(n, np.float32), rng.standard_normal(n, np.float32)


def test_the_fastest_is_chosen(clock: GpuClock, rng: np.random.Generator) -> None:
    k = autotune(BLOCKS, ["n"], seconds=1e-4)(make_saxpy())
    x, y = arrays(rng, 200)
    a, b = ptxdsl.to_device(x), ptxdsl.to_device(y)
    k[grid(200)](200, 2.0, a, b)
    np.testing.assert_array_equal(b.numpy(), np.float32(2) * x + y)
    (tuning,) = k.tuning()
    assert tuning.best is BLOCKS[1]
    assert [trial.cost for trial in tuning] == pytest.approx([TIMES[each.block] for each in BLOCKS], rel=1e-3)
    assert [trial.runs for trial in tuning] == [11, 33, 20]
    assert clock.work[-1] == "saxpy 128"
    assert repr(tuning).splitlines()[:2] == [
        "saxpy, n = 200, on Stand-in     time          quartiles  of best",
        "Config(block=128)            3.00 µs  3.00 µs - 3.00 µs     1.00",
    ]
    count = len(clock.work)
    k[grid(200)](200, 2.0, a, b)
    b.numpy()
    assert clock.work[count:] == ["saxpy 128"]


def test_kernels_are_assembled_with_the_settings_in_force(clock: GpuClock, tmp_path: Path) -> None:
    @ptx_kernel
    def k(x: Ptr[u32], *, A: int) -> None:
        x[0] = A

    clock.cu.kernel, clock.cu.layout = lambda _: clock.step("k", 1e-6), "Q"
    tuned = autotune([Config(block=1, A=n) for n in range(5)], seconds=1e-4)(k)
    tuned[1].warm(ptxdsl.zeros(1, np.uint32))
    kept = [path.read_bytes() for path in (tmp_path / "cache").iterdir() if path.is_file()]
    assert sum(b"\x7fELF" in content for content in kept) == 5
    assert clock.work


def test_numpy_arrays(clock: GpuClock, rng: np.random.Generator) -> None:
    """Trials take copies on the GPU, so that no copy is timed, and the array gets the result of one launch."""
    k = autotune(BLOCKS, seconds=1e-4)(make_saxpy())
    x, y = arrays(rng, 100)
    wanted = np.float32(2) * x + y
    with pytest.warns(PerformanceWarning):
        k[grid(100)](100, 2.0, x, y)
    np.testing.assert_array_equal(y, wanted)
    assert k.tuning()[0].best is BLOCKS[1]
    k.retune()
    before = list(clock.cu.calls)
    wanted = np.float32(2) * x + y
    k[grid(100)](100, 2.0, ptxdsl.In(x), ptxdsl.InOut(y))
    np.testing.assert_array_equal(y, wanted)
    assert [*clock.cu.calls[len(before):]].count("cuLaunchKernelEx") == 1  # what is kept on disk is the same


def test_it_is_kept_for_this_gpu_and_driver(
    clock: GpuClock, cu: Standin, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = map(ptxdsl.to_device, arrays(rng, 64))

    def launches() -> int:
        before = len(cu.launches)
        autotune(BLOCKS, ["n"], seconds=1e-4)(make_saxpy())[grid(64)](64, 2.0, a, b)
        return len(cu.launches) - before

    assert launches() > 30
    assert launches() == 1
    newer = Standin.cuDriverGetVersion

    def version(out: int) -> None:
        newer(cu, out)
        np.ctypeslib.as_array((np.ctypeslib.ctypes.c_int * 1).from_address(out))[0] += 10

    monkeypatch.setattr(cu, "cuDriverGetVersion", version)
    assert launches() > 30


def test_the_stream_of_the_launch(clock: GpuClock, cu: Standin, rng: np.random.Generator) -> None:
    k = autotune(BLOCKS, seconds=1e-4)(make_saxpy())
    x, y = arrays(rng, 64)
    a, b = ptxdsl.to_device(x), ptxdsl.to_device(y)
    k[grid(64), None, 7](64, 2.0, a, b)
    assert {launch.stream for launch in cu.launches} == {7}
    cu.finish_all()
    np.testing.assert_array_equal(b.numpy(), np.float32(2) * x + y)


def test_the_gpu_of_the_stream_around(clock: GpuClock, cu: Standin, rng: np.random.Generator) -> None:
    cu.count = 2
    k = autotune(BLOCKS, seconds=1e-4)(make_saxpy())
    x, y = arrays(rng, 64)
    wanted = np.float32(2) * x + y
    with ptxdsl.Stream(device=1) as stream, pytest.warns(PerformanceWarning):
        k[grid(64)](64, 2.0, x, y)
    np.testing.assert_array_equal(y, wanted)
    assert {launch.stream for launch in cu.launches} == {stream.handle}


def test_in_a_capture(clock: GpuClock, cu: Standin, rng: np.random.Generator) -> None:
    k = autotune(BLOCKS, seconds=1e-4)(make_saxpy())
    a, b = map(ptxdsl.to_device, arrays(rng, 64))
    with cu.capture(7):
        with pytest.raises(LaunchError) as error:
            k[grid(64), None, 7](64, 2.0, a, b)
    assert error.value.message == (
        "kernel `saxpy` has to be tuned for this launch, and its stream is captured into a graph"
    )
    assert error.value.hint == "before the capture: `kernel[grid].tune(...)` with these arguments"
    k[grid(64), None, 7].tune(64, 2.0, a, b)
    with cu.capture(7) as captured:
        k[grid(64), None, 7](64, 2.0, a, b)
        assert len(captured.work) == 1


def test_what_the_driver_refuses(clock: GpuClock, cu: Standin, rng: np.random.Generator) -> None:
    launch = cu.cuLaunchKernelEx

    def refusing(config: int, function: int, pointers: int, extra: int) -> None:
        launch(config, function, pointers, extra)
        if cu.launches[-1].block[0] == 128:
            raise Fault(Result.CUDA_ERROR_OUT_OF_MEMORY)

    cu.cuLaunchKernelEx = refusing  # type: ignore[method-assign]
    k = autotune(BLOCKS, seconds=1e-4)(make_saxpy())
    x, y = arrays(rng, 64)
    a, b = ptxdsl.to_device(x), ptxdsl.to_device(y)
    with pytest.warns(PtxWarning, match="1 of 3 configurations of kernel `saxpy` cannot be launched:\n"
                      r"  Config\(block=128\): .*CUDA_ERROR_OUT_OF_MEMORY"):
        k[grid(64)](64, 2.0, a, b)
    assert k.tuning()[0].best is BLOCKS[2]
    np.testing.assert_array_equal(b.numpy(), np.float32(2) * x + y)


def test_a_fault_ends_it(clock: GpuClock, cu: Standin, rng: np.random.Generator) -> None:
    def faulty(launched: Launched) -> None:
        if launched.block[0] == 128:
            raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)

    cu.kernel = faulty
    k = autotune(BLOCKS, seconds=1e-4)(make_saxpy())
    a, b = map(ptxdsl.to_device, arrays(rng, 64))
    with pytest.raises(DriverError) as error:
        k[grid(64)](64, 2.0, a, b)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in error.value.message
    assert error.value.message.endswith("\n  while Config(block=128) of kernel `saxpy` was tried")
    cu.memory.clear()  # which a lost GPU does not give back


def test_a_variable_of_the_module(clock: GpuClock, cu: Standin) -> None:
    @ptx_kernel
    def count(x: Ptr[u32], *, A: int) -> None:
        x[0] = ptx.atom.global_.add.u32(global_(u32, 1), A)

    variable: Any = []

    def run(launched: Launched) -> None:
        (address,) = cu.numbers(launched)
        ((size, buffer),) = cu.globals.values()
        variable[:] = [np.frombuffer(buffer, np.uint32, size // 4)]
        cu.array(address, 1, np.uint32)[0] = variable[0][0]
        variable[0][0] += 1
        clock.step("count", 1e-6)

    cu.kernel, cu.layout = run, "Q"
    x = ptxdsl.zeros(1, np.uint32)
    k = autotune([Config(block=1, A=1), Config(block=1, A=2)], seconds=1e-4)(count)
    k[1].tune(x)
    assert len(clock.work) > 20
    cu.finish_all()  # nothing has waited for the copy that restores it
    assert variable[0][0] == 0
    k[1](x)
    assert x.numpy()[0] == 0
    assert variable[0][0] == 1
