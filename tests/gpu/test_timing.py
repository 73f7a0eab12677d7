"""`do_bench` on a GPU: what is done in which order, and what of it is timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driver_standin import Fault, Result, Standin
from gpu_clock import GpuClock
from gpu_harness import make_saxpy, run_saxpy

import ptxdsl
from ptxdsl.bench import do_bench, side_by_side
from ptxdsl.errors import DriverError, LaunchError

@pytest.fixture
def clock(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> GpuClock:
    return GpuClock(cu, monkeypatch)


def launches(stream: int | None = None) -> Callable[[], None]:
    saxpy = make_saxpy()
    x, y = (ptxdsl.to_device(np.zeros(256, np.float32)) for _ in range(2))
    return lambda: saxpy[1, 256, stream](256, 2.0, x, y)


def test_the_kernel_is_timed_and_nothing_else(clock: GpuClock, cu: Standin) -> None:
    found = do_bench(launches(), runs=4, nbytes=3e6, name="saxpy")
    assert found.times == pytest.approx([3e-6] * 4, rel=1e-4)
    assert clock.work == ["memset", "kernel"] * 5
    assert repr(found) == (
        "<saxpy: 3.00 µs (3.00 to 3.00), n = 4, 1.00 TB/s, GPU events, cold L2 on Stand-in>"
    )
    assert not any(event.timed for event in cu.events.values())


def test_a_warm_cache(clock: GpuClock) -> None:
    found = do_bench(launches(), runs=3, cold=False)
    assert clock.work == ["kernel"] * 4
    assert found.clock == "GPU events, warm L2"


def test_reset_is_not_timed(clock: GpuClock, cu: Standin) -> None:
    def reset() -> None:
        cu.submit(0, lambda: clock.step("reset", 5.0))

    found = do_bench(launches(), runs=3, reset=reset)
    assert clock.work == ["reset", "memset", "kernel"] * 4
    assert found.times == pytest.approx([3e-6] * 3, rel=1e-4)


def test_without_a_number_of_runs(clock: GpuClock) -> None:
    clock.cu.kernel = lambda _: clock.step("kernel", 0.01)
    assert do_bench(launches(), seconds=0.2).n == 20


def test_on_a_stream(clock: GpuClock, cu: Standin) -> None:
    found = do_bench(launches(7), runs=2, stream=7)
    assert {launch.stream for launch in cu.launches} == {7}
    assert found.times == pytest.approx([3e-6] * 2, rel=1e-4)


def test_as_a_graph(clock: GpuClock, cu: Standin) -> None:
    found = do_bench(launches(7), runs=120, stream=7, graph=True)
    assert found.n == 120
    assert found.times == pytest.approx([3e-6] * 120, rel=1e-4)
    assert found.clock == "GPU events in a graph, cold L2"
    assert clock.work == ["memset", "kernel"] * (1 + 3 * 50)
    assert len(cu.launches) == 1 + 50  # what was captured is launched by the GPU
    assert cu.calls.count("cuGraphLaunch") == 1 + 3
    assert not (cu.graphs or cu.executables or cu.events)


def test_a_reset_in_a_graph(clock: GpuClock, cu: Standin) -> None:
    do_bench(launches(7), runs=2, stream=7, graph=True, reset=lambda: cu.submit(7, lambda: clock.step("reset", 1.0)))
    assert clock.work == ["reset", "memset", "kernel"] * 3


def test_a_graph_makes_itself_a_stream(clock: GpuClock, cu: Standin) -> None:
    found = do_bench(launches(), runs=2, graph=True)
    (stream,) = {launch.stream for launch in cu.launches}
    assert stream > 0xFF
    assert found.times == pytest.approx([3e-6] * 2, rel=1e-4)
    assert ptxdsl.config.current().stream is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("graph", [False, True])
def test_on_the_stream_of_the_block_around(clock: GpuClock, cu: Standin, graph: bool) -> None:
    with ptxdsl.Stream() as stream:
        found = do_bench(launches(), runs=2, graph=graph)
    assert {launch.stream for launch in cu.launches} == {stream.handle}
    assert found.times == pytest.approx([3e-6] * 2, rel=1e-4)


def test_the_default_stream_cannot_be_captured(clock: GpuClock) -> None:
    with pytest.raises(LaunchError) as error:
        do_bench(launches(), graph=True, stream=0)
    assert error.value.message == "a graph is captured on a stream, and the default one cannot be captured"
    assert error.value.hint == "leave out `stream=`, or pass a `ptxdsl.Stream()` on which the function launches"


def test_what_cannot_be_captured(clock: GpuClock, cu: Standin) -> None:
    def synchronizes() -> None:
        ptxdsl.gpu.device.driver().call("cuStreamSynchronize", 7)  # type: ignore[attr-defined]

    with pytest.raises(LaunchError) as error:
        do_bench(synchronizes, stream=7, graph=True)
    assert error.value.message.startswith("what is measured cannot be captured into a graph: cuStreamSynchronize: ")
    assert error.value.hint == (
        "launch on the stream given as `stream=`, with arrays on the GPU; or leave out `graph=True`"
    )
    assert not (cu.graphs or cu.events or cu.stream(7).capture)


def test_host_arrays_in_a_graph(clock: GpuClock, cu: Standin, recwarn: pytest.WarningsRecorder) -> None:
    saxpy, x, y = make_saxpy(), np.zeros(256, np.float32), np.zeros(256, np.float32)
    with pytest.raises(LaunchError, match="^kernel `saxpy` is launched with host arrays while its stream is captured"):
        do_bench(lambda: saxpy[1, 256](256, 2.0, x, y), graph=True)
    assert not (cu.graphs or cu.events)


def test_a_fault(clock: GpuClock, cu: Standin) -> None:
    def faulty(_: object) -> None:
        raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)

    run = launches()
    cu.kernel = faulty
    with pytest.raises(DriverError) as error:
        do_bench(run, runs=3)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in error.value.message
    assert "was lost before" not in error.value.message
    cu.memory.clear()  # which a lost GPU does not give back


def test_another_gpu(clock: GpuClock, cu: Standin) -> None:
    cu.count = 2
    found = do_bench(lambda: clock.cu.submit(7, lambda: clock.step("work", 2e-6)), runs=2, device=1, stream=7)
    assert found.times == pytest.approx([2e-6] * 2, rel=1e-4)


def test_functions_in_turn(clock: GpuClock) -> None:
    found = side_by_side({"a": launches(), "b": launches()}, runs=5)
    assert [each.n for each in found] == [5, 5]
    assert found[0] / found[1] == pytest.approx(1.0, rel=1e-4)


def test_what_a_measured_launch_computes(cu: Standin, rng: np.random.Generator) -> None:
    cu.kernel = run_saxpy(cu)
    x, y = rng.standard_normal((2, 256), np.float32)
    a, b = ptxdsl.to_device(x), ptxdsl.to_device(y)
    saxpy: Any = make_saxpy()
    do_bench(lambda: saxpy[1, 256](256, 2.0, a, b), runs=2, cold=False)
    expected = y
    for _ in range(3):
        expected = np.float32(2) * x + expected
    np.testing.assert_array_equal(b.numpy(), expected)
