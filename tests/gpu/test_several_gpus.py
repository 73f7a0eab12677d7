"""Two GPUs: which one streams, launches and variables of modules are on."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from driver_standin import Standin

import ptxdsl
from ptxdsl import Event, LaunchError, Ptr, Stream, f32, ptx, ptx_kernel, u32
from ptxdsl.gpu import tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
MODULE = """
.version 7.0
.target sm_75
.address_size 64
.global .align 4 .u32 count[16];
.const .align 4 .u32 table[16];
.visible .entry first() { .reg .b32 r; ld.global.u32 r, [count]; st.global.u32 [count+4], r; ret; }
.visible .entry second() { .reg .b32 r; ld.const.u32 r, [table]; st.global.u32 [count+4], r; ret; }"""


@pytest.fixture
def two(cu: Standin) -> Standin:
    cu.count = 2
    return cu


def make_alone() -> Any:
    @ptx_kernel
    def alone(n: u32) -> None:
        pass

    return alone


def gpus_of(cu: Standin) -> list[int]:
    return [launched.function.device for launched in cu.launches]


def test_streams_and_graphs_are_on_the_current_gpu(two: Standin) -> None:
    with ptxdsl.device(1):
        stream, other = Stream(), Stream(0)
        with ptxdsl.graph() as graph:
            make_alone()[1, 1](7)
    assert [each.device for each in (stream, other, graph.stream, Stream(), Stream(1))] == [1, 0, 1, 0, 1]
    assert [two.streams[each.handle].device for each in (stream, other, graph.stream)] == [1, 0, 1]
    assert len(graph) == 1
    graph.replay()
    ptxdsl.synchronize()
    assert gpus_of(two) == [1]


def test_the_gpu_of_a_stream_without_arrays(two: Standin) -> None:
    """By an object, by its handle, and from a block."""
    alone, stream = make_alone(), Stream(1)
    for _ in range(3):
        alone[1, 1, stream](7)
        alone[1, 1, stream.handle](7)
        with stream:
            alone[1, 1](7)
        alone[1, 1](7)
        with ptxdsl.device(1):
            alone[1, 1](7)
            alone[1, 1, 0](7)
    assert gpus_of(two) == [1, 1, 1, 0, 1, 1] * 3


def test_streams_of_other_libraries(two: Standin) -> None:
    class TorchLike:
        def __init__(self, handle: int) -> None:
            self.cuda_stream = handle

    mine = [Stream(0), Stream(1)]
    for stream in mine:
        seen = Stream.of(TorchLike(stream.handle))
        assert (seen.device, seen.backend, seen.handle) == (stream.device, "gpu", stream.handle)
    with ptxdsl.device(1):
        assert Stream.of(TorchLike(0)).device == 1
        assert Stream.of(mine[0].handle).device == 0
    mine[0].wait(mine[1].handle)
    assert two.waits[-1] == (mine[1].handle, mine[0].handle)
    event = Event()
    event.record(mine[1].handle)
    event.synchronize()


@pytest.mark.filterwarnings("ignore::ptxdsl.PerformanceWarning")
def test_host_arrays_go_to_the_gpu_of_the_stream(two: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = 1.0

    two.layout = "Q"
    fill[1, 4, Stream(1)](np.zeros(4, np.float32))
    assert gpus_of(two) == [1]


def test_variables_of_each_gpu(two: Standin, rng: np.random.Generator) -> None:
    m = ptxdsl.load(MODULE)
    two.layout = ""
    values = rng.integers(0, 1 << 32, (2, 2, 16), np.uint32)
    for ordinal in range(2):
        with ptxdsl.device(ordinal):
            m.variables["count"], m.variables["table"] = values[ordinal]
            assert m.variables["count"].device == ordinal
            m["first"][1, 1]()
            m["second"][1, 1]()
    assert gpus_of(two) == [0, 0, 1, 1]
    assert len(two.images) == 2
    assert len({launched.function.module for launched in two.launches}) == 2
    for ordinal in range(2):
        for number, name in enumerate((b"count", b"table")):
            assert two.globals[ordinal, name][1].raw == values[ordinal, number].tobytes()
        with Stream(ordinal):
            assert m.variables["table"].numpy().tolist() == values[ordinal, 1].tolist()


def test_variables_that_came_from_another_process(two: Standin, rng: np.random.Generator) -> None:
    """They begin on each GPU as they were, whichever it is first loaded on."""
    m = ptxdsl.load(MODULE)
    values: Any = rng.integers(0, 1 << 32, 16, np.uint32)
    with ptxdsl.device(1):
        m.variables["count"] = values
        data = pickle.dumps(m)
    made = pickle.loads(data)
    for ordinal in (1, 0):
        with ptxdsl.device(ordinal):
            assert made.variables["count"].numpy().tolist() == values.tolist()
    made.variables["count"] = values[::-1]
    with ptxdsl.device(1):
        assert made.variables["count"].numpy().tolist() == values.tolist()
    with ptxdsl.use("emulator"):
        assert made.variables["count"].numpy().tolist() == values.tolist()


def test_a_gpu_that_there_is_not(two: Standin) -> None:
    for wrong in (lambda: Stream(2), lambda: ptxdsl.graph(device=2), lambda: Stream.of(0, 2)):
        with pytest.raises(LaunchError) as caught:
            wrong()
        assert caught.value.message == "there is no GPU 2; this machine has GPUs 0 to 1"
    with pytest.raises(LaunchError) as caught:
        Stream(True)
    assert caught.value.message == "device is the number of a GPU, not True"
