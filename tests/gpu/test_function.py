"""Kernels loaded on a GPU: parameters, geometry, the driver's compiler, variables."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
from driver_standin import Standin
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import Array, Ptr, dynamic_shared, f32, ptx, ptx_func, ptx_kernel, reg, shared, u32, u64, use, when
from ptxdsl.config import override
from ptxdsl.errors import DriverError, LaunchError, PtxWarning
from ptxdsl.gpu import assembler, ptxas, tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


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

    def slow(config: int, function: int, pointers: int, extra: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            barrier.wait(timeout=20)
        addresses = (ctypes.c_uint64 * 4).from_address(pointers)
        seen.append((ctypes.c_uint32.from_address(addresses[0]).value, ctypes.c_float.from_address(addresses[1]).value))

    cu.__dict__["cuLaunchKernelEx"] = slow
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
    assert launched.attributes == {"CLUSTER_DIMENSION": (2, 1, 1), "COOPERATIVE": 1}
    assert cu.attributes == {"MAX_DYNAMIC_SHARED_SIZE_BYTES": 100_000}
    cu.attributes.clear()
    k[1, 32, None, 4096](x)
    assert cu.attributes == {}
    assert cu.launches[-1].attributes == {}


@pytest.mark.parametrize(("cluster", "allowed"), [
    (8, {}), ((4, 2, 2), {"NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 1}),
])
def test_clusters_of_more_blocks_than_every_gpu_takes(cu: Standin, cluster: Any, allowed: dict[str, int]) -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[ptx.ctaid.x] = 1.0

    cu.layout = "Q"
    k.configure((16, 4, 2), 32, cluster=cluster)(ptxdsl.zeros(16, f32))
    assert cu.attributes == allowed


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
    cu: Standin, options: dict[str, Any], limits: dict[str, int], capability: int, message: str
) -> None:
    @ptx_kernel
    def k(n: u32) -> None:
        tile, more = shared(f32, 32), dynamic_shared(f32)
        tile[ptx.tid.x] = 1.0
        more[ptx.tid.x] = 1.0

    cu.capability = capability
    cu.limits.update(limits)
    with pytest.raises(LaunchError) as caught:
        k.configure(**{"shared": 128, **options})(1)
    assert caught.value.message == message
    assert caught.value.loc is not None
    assert caught.value.loc.file == __file__
    assert not cu.launches


def test_without_ptxas_the_driver_compiles(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_found", lambda _: iter(()))
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x = ptxdsl.zeros(32, f32)
    saxpy[1, 32](1, 1.0, x, x)
    assert cu.images == [saxpy.ptx().encode() + b"\0"]
    assert len(cu.launches) == 1


def test_what_the_drivers_compiler_refuses(cu: Standin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_found", lambda _: iter(()))
    cu.log = b"ptxas application ptx input, line 3; error : no"
    with pytest.raises(DriverError) as caught:
        make_saxpy()[1, 32](1, 1.0, ptxdsl.zeros(32, f32), ptxdsl.zeros(32, f32))
    assert caught.value.message == (
        "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): the driver's compiler refuses the PTX\n"
        "ptxas application ptx input, line 3; error : no"
    )
    assert caught.value.hint == "ptxas explains better: pip install 'nvidia-cuda-nvcc>=13,<14'"


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
    assert cu.globals[0, b"count"][1].raw[4:8] == b"\1\0\0\0"


def test_attributes_of_a_launch(cu: Standin) -> None:
    saxpy, x = make_saxpy(), ptxdsl.zeros(4, f32)
    cu.layout = "IfQQ"
    saxpy.configure(1, 32, priority=-2, programmatic=True, sync_domain="remote")(1, 1.0, x, x)
    saxpy.configure(1, 32, sync_domain="default", priority=0)(1, 1.0, x, x)
    assert [launched.attributes for launched in cu.launches] == [
        {"PROGRAMMATIC_STREAM_SERIALIZATION": 1, "PRIORITY": -2, "MEM_SYNC_DOMAIN": 1},
        {"PRIORITY": 0, "MEM_SYNC_DOMAIN": 0},
    ]


def test_the_stack_of_each_thread(cu: Standin) -> None:
    """It grows once, on the GPU of the launch, and is never taken back; in a capture too."""
    @ptx_kernel
    def k(n: u32) -> None:
        pass

    cu.count = 2
    k[1, 32](1)
    k.configure(1, 32, stack=512)(1)
    assert "cuCtxSetLimit" not in cu.calls
    large = k.configure(1, 32, stack=20_000)
    for _ in range(4):
        large(1)
    k.configure(1, 32, stack=4096)(1)
    assert cu.stack[:2] == [20_000, 1024]
    assert cu.calls.count("cuCtxSetLimit") == 1
    with ptxdsl.device(1):
        large(1)
    assert cu.stack[:2] == [20_000, 20_000]
    with cu.capture(7) as capture:
        k.configure(1, 32, stream=7, stack=30_000)(1)
        assert not capture.invalid
    assert cu.stack[0] == 30_000
    with pytest.raises(LaunchError) as caught:
        k.configure(1, 32, stack=1 << 20)
    assert caught.value.message == "stack is 1048576 bytes; it can be 0 to 524288 bytes"


def test_an_unknown_stack_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    log = "ptxas warning : Stack size for entry function 'k' cannot be statically determined\n"
    text = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    monkeypatch.setattr(ptxas, "run", lambda *_: (b"\x7fELF", log))
    monkeypatch.setattr(ptxas, "_registry", {})
    with override(cache_dir="off"), pytest.warns(PtxWarning) as caught:
        assembler.assemble(text)
    assert str(caught[0].message) == (
        "ptxas: Stack size for entry function 'k' cannot be statically determined; a launch says how many bytes a "
        "thread may take: `.configure(grid, block, stack=16384)`"
    )


def test_a_launch_tells_of_an_unknown_stack(cu: Standin) -> None:
    """Once a kernel, and only where the launch does not say it."""
    @ptx_func
    def down(n: u32) -> u32:
        result = reg(u32, 0)
        with when(n != 0):
            result.set(down(n - 1) * 3 + n)
        return result

    @ptx_kernel
    def k(x: Ptr[u32]) -> None:
        x[0] = down(x[0])

    cu.layout, x = "Q", ptxdsl.zeros(1, u32)
    k.configure(1, 1, stack=4096)(x)
    launch = k[1, 1]
    with pytest.warns(PtxWarning) as caught:
        launch(x)
    (warning,) = caught
    assert str(warning.message) == (
        "ptxas cannot tell how much stack kernel `k` takes, and a GPU gives 1 KiB a thread at first; a launch says how "
        "much: `.configure(grid, block, stack=16384)`"
    )
    assert warning.filename == __file__
    k[1, 2](x)
