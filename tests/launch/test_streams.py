"""Streams, events and graphs on the emulator: the same programs as on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Event, Ptr, Stream, ptx, ptx_kernel, u32
from ptxdsl.errors import LaunchError


@ptx_kernel
def count(x: Ptr[u32], by: u32) -> None:
    x[ptx.tid.x] += by


def test_a_graph_records_and_replays(rng: np.random.Generator) -> None:
    values = rng.integers(0, 1 << 20, 32, np.uint32)
    x, y = ptxdsl.to_device(values), ptxdsl.to_device(values)
    launch = count[1, 32]
    launch(x, 0)
    with ptxdsl.graph() as g:
        launch(x, 1)
        count[1, 32](x, 2)
        launch(y, 4)
    assert len(g) == 3
    np.testing.assert_array_equal(x.numpy(), values)
    g.replay()
    g.replay(Stream())
    np.testing.assert_array_equal(x.numpy(), values + 6)
    np.testing.assert_array_equal(y.numpy(), values + 8)
    launch(x, 1)
    np.testing.assert_array_equal(x.numpy(), values + 7)


def test_a_graph_of_a_stream_takes_the_launches_on_it() -> None:
    stream, x = Stream(), ptxdsl.zeros(32, u32)
    count[1, 32, stream](x, 1)
    with ptxdsl.graph(stream=stream) as g:
        count[1, 32, stream](x, 2)
        count[1, 32, Stream()](x, 4)
    assert len(g) == 1
    assert x.numpy().tolist() == [5] * 32
    g.replay()
    assert x.numpy().tolist() == [7] * 32
    count[1, 32, stream](x, 8)
    assert x.numpy().tolist() == [15] * 32


def test_host_arrays_are_refused_as_on_a_gpu() -> None:
    host = np.zeros(32, np.uint32)
    with pytest.raises(LaunchError) as caught, ptxdsl.graph() as g:
        count[1, 32](host, 1)
    assert caught.value.message == (
        "kernel `count` is launched with host arrays while its stream is captured into a graph"
    )
    assert caught.value.hint == "`x = ptxdsl.to_device(x)` before the capture"
    assert len(g) == 0
    count[1, 32](host, 1)
    assert host.tolist() == [1] * 32


@pytest.mark.emulator
def test_events_and_streams() -> None:
    stream, other = Stream(priority=-1), Stream()
    start, end = stream.record(timing=True), Event(timing=True)
    with stream:
        count[1, 32](ptxdsl.zeros(32, u32), 1)
    end.record(stream)
    other.wait(end)
    other.wait(stream)
    end.synchronize()
    ptxdsl.synchronize()
    assert (stream.done, end.done, stream.backend) == (True, True, "emulator")
    assert end.since(start) > 0
    assert stream.handle != other.handle
