"""Modules on a GPU: loaded once, in a capture too, and unloaded with the last kernel that uses them."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from driver_standin import CONTEXT, Fault, Result, Standin
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import Ptr, dynamic_shared, f32, ptx, ptx_kernel, u32, use
from ptxdsl.gpu import device, tools
from ptxdsl.errors import LaunchError

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def test_more_shared_memory_stays_allowed(cu: Standin) -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        tile = dynamic_shared(f32)
        tile[ptx.tid.x] = x[0]

    cu.layout = "Q"
    x = ptxdsl.zeros(4, f32)
    launches = [k[1, 32, None, nbytes] for nbytes in (100 << 10, 60 << 10, 100 << 10)]
    for launch in launches:
        launch(x)
    k[1, 32, None, 100 << 10](x)
    assert [launched.shared >> 10 for launched in cu.launches] == [100, 60, 100, 100]


def test_a_first_launch_in_a_capture(cu: Standin) -> None:
    """Loading is no part of the graph, and does not end it."""
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    with cu.capture(7) as capture:
        saxpy[1, 32, 7](1, 1.0, x, x)
        saxpy[1, 32, 7](2, 1.0, x, x)
        assert not capture.invalid
        assert len(capture.work) == 2
    assert len(cu.images) == 1


def test_arrays_die_in_a_capture(cu: Standin) -> None:
    x = ptxdsl.zeros(32, f32)
    with cu.capture(7) as capture:
        del x
        gc.collect()
        y = ptxdsl.empty(32, f32)
        assert not capture.invalid
        with pytest.raises(Fault):
            cu.unsafe()  # for everybody else a capture stays what it was
        capture.invalid = False
        assert len(cu.memory) == 2
    del y
    ptxdsl.synchronize()
    assert not cu.memory


def test_threads_load_a_module_once(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    barrier = threading.Barrier(8)

    def work() -> None:
        with use("gpu"):
            barrier.wait()
            saxpy[1, 32](1, 1.0, x, x)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cu.launches) == 8
    assert len(cu.images) == 1
    assert len({launched.function.module for launched in cu.launches}) == 1


def test_a_module_is_unloaded_with_its_last_kernel(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    done: list[int] = []
    cu.kernel = lambda launched: done.append(launched.function.module)
    saxpy[1, 32](1, 1.0, x, x)
    (module,) = cu.modules
    del saxpy
    gc.collect()
    assert list(cu.modules) == [module], "the launch is still to be done"
    x.numpy()
    assert done == [module]
    assert not cu.modules


def test_a_module_that_a_graph_launches_stays(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    with cu.capture(7):
        saxpy[1, 32, 7](1, 1.0, x, x)
    del saxpy
    gc.collect()
    x.numpy()
    assert len(cu.modules) == 1


@pytest.mark.parametrize(("current", "after"), [(None, CONTEXT), (0, CONTEXT), (1, CONTEXT + 1)])
def test_the_current_device_stays(cu: Standin, current: int | None, after: int) -> None:
    """What torch or the user has made current is so afterwards; without any it is the first GPU's."""
    cu.count = 2
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.cuCtxSetCurrent(0 if current is None else CONTEXT + current)
    cu.layout = "IfQQ"
    for _ in range(3):
        saxpy[1, 32](1, 1.0, x, x)
        x.numpy()
        ptxdsl.zeros(3, f32)
    assert cu.local.context == after


def test_a_launch_on_the_second_gpu_leaves_none_current(cu: Standin) -> None:
    cu.count = 2
    gpu = device.driver(1)
    address = gpu.memory.allocate(128)
    assert getattr(cu.local, "context", 0) == 0
    gpu.memory.free(address)
    assert getattr(cu.local, "context", 0) == 0


@pytest.mark.parametrize(("grid", "cluster"), [(16, 8), (16, 16), (32, 16), (24, 8), (20, 2), (22, 2)])
def test_a_cooperative_launch_of_clusters(cu: Standin, grid: int, cluster: int) -> None:
    """The stand-in's processors hold 2 blocks each, in groups of 8 and 2, and a cluster is in one group."""
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[ptx.ctaid.x] = 1.0

    cu.layout = "Q"
    launch, x = k.configure(grid, 32, cluster=cluster, cooperative=True), ptxdsl.zeros(64, f32)
    room = sum(each * 2 // cluster for each in (8, 2)) * cluster
    if grid <= room:
        launch(x)
        assert cu.launches[-1].attributes == {"CLUSTER_DIMENSION": (cluster, 1, 1), "COOPERATIVE": 1}
        return
    with pytest.raises(LaunchError) as caught:
        launch(x)
    assert caught.value.message == f"a cooperative launch of {grid} blocks; {room} fit on this GPU (Stand-in) at once"


def test_a_cluster_for_which_there_is_no_room(cu: Standin) -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[ptx.ctaid.x] = 1.0

    cu.layout, cu.busy = "Q", 0
    with pytest.raises(LaunchError) as caught:
        k.configure(8, 32, cluster=8)(ptxdsl.zeros(64, f32))
    assert caught.value.message == "this GPU (Stand-in) has no room for a cluster of 8 blocks of kernel `k`"
    assert caught.value.hint == "make the cluster, the block or its shared memory smaller"


def test_the_name_of_a_gpu(cu: Any) -> None:
    assert device.driver().name == "Stand-in"


def test_warm_loads_and_launches_nothing(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    saxpy[1, 32].warm(1, 1.0, x, y=x)
    assert (len(cu.images), len(cu.launches)) == (1, 0)
    before = len(cu.calls)
    with cu.capture(7):
        saxpy[1, 32, 7](1, 1.0, x, x)
    assert not {"cuModuleLoadData", "cuModuleGetFunction"} & set(cu.calls[before:])
    with pytest.raises(LaunchError, match="^argument `n` of kernel `saxpy` is the int -1"):
        saxpy[1, 32].warm(-1, 1.0, x, x)


@pytest.mark.parametrize("stream", ["default", "own"])
@pytest.mark.parametrize("asked", ["allocation", "launch", "collection"])
def test_modules_are_unloaded_where_another_library_waits(cu: Standin, stream: str, asked: str) -> None:
    """Nobody waits through ptxdsl; the next allocation, launch or collection sees that the GPU is done."""
    @ptx_kernel
    def other(n: u32) -> None:
        pass

    other[1, 32].warm(1)
    (before,) = cu.modules
    own = ptxdsl.Stream() if stream == "own" else None
    x = ptxdsl.zeros(4, f32)
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    saxpy[1, 32, own](1, 1.0, x, x)
    del saxpy
    gc.collect()
    ptxdsl.empty(4, f32)
    assert len(cu.modules) == 2, "its launch is still to be done"
    cu.finish_all()  # as torch.cuda.synchronize() does
    cu.layout = "I"
    if asked == "allocation":
        ptxdsl.empty(4, f32)
    elif asked == "launch":
        other[1, 32](1)
    else:
        device.driver().retire(lambda: None)
    assert [*cu.modules] == [before]
    assert len(cu.events) <= 1


def test_modules_of_launches_on_streams_of_others_wait_for_a_wait(cu: Standin) -> None:
    """Such a stream may be gone by now: no event can tell."""
    torch_like = cu.fresh()
    with use("gpu"), device.driver().current():
        cu.streams[torch_like] = type(cu.streams[0])(blocking=False)
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    saxpy[1, 32, torch_like](1, 1.0, x, x)
    del saxpy
    gc.collect()
    cu.finish_all()
    ptxdsl.empty(4, f32)
    assert len(cu.modules) == 1
    ptxdsl.synchronize()
    assert not cu.modules


def test_nothing_is_asked_for_while_a_graph_is_captured(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    saxpy[1, 32](1, 1.0, x, x)
    del saxpy
    with cu.capture(7) as capture:
        gc.collect()
        cu.finish_all()
        ptxdsl.empty(4, f32)
        assert not capture.invalid
        assert len(cu.modules) == 1
    ptxdsl.empty(4, f32)
    cu.finish_all()
    ptxdsl.empty(4, f32)
    assert not cu.modules


def test_what_is_retired_after_a_fault(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(32, f32)
    cu.layout = "IfQQ"
    saxpy[1, 32](1, 1.0, x, x)
    del saxpy
    gc.collect()
    cu.sticky = int(Result.CUDA_ERROR_ILLEGAL_ADDRESS)
    device.driver().give_back()
    assert len(cu.modules) == 1
