"""Streams, events and graphs on a GPU."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from driver_standin import Fault, Result, Standin
from gpu_harness import make_saxpy, run_saxpy

import ptxdsl
from ptxdsl import Event, Stream, f32, ptx_kernel, u32
from ptxdsl.config import override
from ptxdsl.errors import DriverError, LaunchError
from ptxdsl.gpu import device, tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def streams_of(cu: Standin) -> list[int]:
    return [launched.stream for launched in cu.launches]


def test_the_stream_of_a_block(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    first, second = Stream(), Stream(priority=-3)
    for _ in range(3):
        saxpy[1, 32](1, 1.0, x, x)
        with first:
            saxpy[1, 32](1, 1.0, x, x)
            with second:
                saxpy[1, 32](1, 1.0, x, x)
                saxpy[1, 32, first](1, 1.0, x, x)
            saxpy[1, 32](1, 1.0, x, x)
        saxpy[1, 32](1, 1.0, x, x)
    one, two = first.handle, second.handle
    assert streams_of(cu) == [0, one, two, one, one, 0] * 3
    assert (cu.streams[two].priority, cu.streams[two].blocking) == (-3, False)
    assert repr(first) == f"Stream(device=0, handle={one:#x}, backend='gpu')"
    del first, second
    gc.collect()
    assert not {one, two} & set(cu.streams)


def test_streams_wait_for_each_other(cu: Standin, rng: np.random.Generator) -> None:
    """Without the wait the second launch, which is asked for first, would read what was there before."""
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    values = rng.random(32, np.float32)
    for waits in (False, True):
        x, y, z = ptxdsl.to_device(values), ptxdsl.zeros(32, f32), ptxdsl.zeros(32, f32)
        ptxdsl.synchronize()
        one, two = Stream(), Stream()
        saxpy[1, 32, one](32, 2.0, x, y)
        assert not one.done
        if waits:
            two.wait(one)
        saxpy[1, 32, two](32, 1.0, y, z)
        two.synchronize()
        assert two.done
        assert one.done is waits
        np.testing.assert_array_equal(cu.array(z.address, 32), 2 * values if waits else 0 * values)


def test_events(cu: Standin) -> None:
    saxpy, x, stream = make_saxpy(), ptxdsl.zeros(32, f32), Stream()
    cu.layout = "IfQQ"
    start, end = Event(timing=True), Event(timing=True)
    assert start.done
    start.record(stream)
    saxpy[1, 32, stream](32, 1.0, x, x)
    end.record(stream)
    assert not end.done
    assert end.since(start) >= 0
    assert end.done
    assert stream.done
    plain = stream.record()
    plain.synchronize()
    with pytest.raises(LaunchError) as caught:
        plain.since(start)
    assert caught.value.message == "no time between two events: the second was made without `timing=True`"
    with pytest.raises(LaunchError) as caught:
        end.since(Event(timing=True))
    assert caught.value.message == "no time between two events: the first was never recorded"
    del start, end, plain, caught
    gc.collect()
    assert not cu.events


def test_a_graph_is_captured_and_replayed(cu: Standin, rng: np.random.Generator) -> None:
    saxpy, cu.kernel = make_saxpy(), run_saxpy(cu)
    values = rng.random(32, np.float32)
    x, y = ptxdsl.to_device(values), ptxdsl.zeros(32, f32)
    ptxdsl.synchronize()
    with ptxdsl.graph() as g:
        saxpy[1, 32](32, 1.0, x, y)
        saxpy[1, 32](32, 2.0, x, y)
    assert len(g) == 2
    assert not cu.array(y.address, 32).any(), "nothing has run"
    for _ in range(3):
        g.replay()
    g.stream.synchronize()
    np.testing.assert_allclose(cu.array(y.address, 32), 9 * values, rtol=1e-6)
    address = y.address
    del x, y, saxpy
    gc.collect()
    g.replay()
    g.stream.synchronize()
    np.testing.assert_allclose(cu.array(address, 32), 12 * values, rtol=1e-6)
    g.replay()
    del g
    gc.collect()
    assert address in cu.memory, "the replay is still to be done"
    ptxdsl.synchronize()
    cu.finish_all()  # memory is given back in the order of a stream
    assert not cu.memory
    gc.collect()  # the kernel
    ptxdsl.synchronize()
    assert not cu.executables
    assert not cu.graphs
    assert not cu.modules


def test_other_threads_do_not_end_a_capture(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    with ptxdsl.graph() as g, ThreadPoolExecutor(1) as pool:
        pool.submit(cu.unsafe).result()
        saxpy[1, 32](1, 1.0, x, x)
    assert len(g) == 1


def test_a_graph_with_a_fast_path(cu: Standin) -> None:
    """Launches that were made before are captured all the same, and their arrays kept."""
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    launch = saxpy[1, 32]
    for _ in range(3):
        launch(1, 1.0, x, x)
    ptxdsl.synchronize()
    kept = []
    with ptxdsl.graph() as g:
        for n in range(4):
            y = ptxdsl.empty(32, f32)
            kept.append(y.address)
            launch(n, 1.0, x, y)
    del y
    gc.collect()
    assert len(g) == 4
    assert set(kept) <= set(cu.memory)
    launch(9, 1.0, x, x)
    assert [cu.numbers(launched)[0] for launched in cu.launches] == [1, 1, 1, 0, 1, 2, 3, 9]
    assert streams_of(cu)[-1] == 0


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_what_ends_a_capture(cu: Standin) -> None:
    saxpy, x, host = make_saxpy(), ptxdsl.zeros(32, f32), np.zeros(32, np.float32)
    with pytest.raises(LaunchError) as caught, ptxdsl.graph():
        saxpy[1, 32](1, 1.0, x, host)
    assert caught.value.message == (
        "kernel `saxpy` is launched with host arrays while its stream is captured into a graph"
    )
    stream = Stream()
    with pytest.raises(LaunchError) as caught, ptxdsl.graph(stream=stream) as g:
        g.replay()
    assert caught.value.message == "a graph is replayed while its stream is captured"
    with pytest.raises(LaunchError) as caught:
        g.replay()
    assert caught.value.message == "a graph is replayed whose block has not ended well"
    with pytest.raises(DriverError, match="^cuStreamEndCapture: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        with ptxdsl.graph(stream=stream), pytest.raises(DriverError, match="^cuStreamSynchronize: .*_UNSUPPORTED"):
            stream.synchronize()
    assert not cu.streams[stream.handle].capture
    assert not cu.graphs
    saxpy[1, 32, stream](1, 1.0, x, x)


def test_a_fault_in_a_stream(cu: Standin) -> None:
    saxpy, x, stream = make_saxpy(), ptxdsl.zeros(32, f32), Stream()
    cu.layout = "IfQQ"

    def fault(_: Any) -> None:
        raise Fault(Result.CUDA_ERROR_ILLEGAL_ADDRESS, sticky=True)

    cu.kernel = fault
    saxpy[1, 32, stream](1, 1.0, x, x)
    with pytest.raises(DriverError, match="^kernel `saxpy`.* faulted: .*; cuStreamSynchronize has told it"):
        stream.synchronize()


def test_a_launch_on_the_default_stream_beside_a_capture(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    with ptxdsl.graph() as g:
        saxpy[1, 32, 0](1, 1.0, x, x)
        saxpy[1, 32](2, 1.0, x, x)
    assert len(g) == 1
    assert streams_of(cu) == [0, g.stream.handle]
    before = len(cu.calls)
    assert not device.driver().captures(0)
    assert len(cu.calls) == before, "nobody is asked"


def test_a_graph_while_debugging(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    with override(debug=True), ptxdsl.graph() as g:
        saxpy[1, 32](1, 1.0, x, x)
    assert len(g) == 1


def test_the_stream_of_a_block_says_which_gpu(cu: Standin) -> None:
    @ptx_kernel
    def k(n: u32) -> None:
        pass

    cu.count = 2
    stream = Stream(1)
    with stream:
        k[1, 1](7)
    k[1, 1](8)
    assert streams_of(cu) == [stream.handle, 0]
    assert [launched.function.device for launched in cu.launches] == [1, 0]


def test_streams_of_other_libraries(cu: Standin) -> None:
    class TorchLike:
        cuda_stream = 7

    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    mine = Stream()
    mine.wait(TorchLike())
    mine.wait(9)
    assert cu.waits == [(0, mine.handle), (7, mine.handle), (9, mine.handle)]
    with Stream.of(TorchLike()):
        saxpy[1, 32](1, 1.0, x, x)
    with ptxdsl.graph(stream=TorchLike()) as g:
        saxpy[1, 32](1, 1.0, x, x)
    g.replay(9)
    assert streams_of(cu) == [7, 7]
    for wrong, message in ((None, "None is no stream"), ("main", "stream is a CUDA stream or its handle, not 'main'")):
        with pytest.raises(LaunchError) as caught:
            Stream.of(wrong)
        assert caught.value.message == message
    with pytest.raises(LaunchError) as caught:
        Stream("0")  # type: ignore[arg-type]
    assert caught.value.message == "device is the number of a GPU, not '0'"
    assert 7 in cu.streams
