"""Occupancy: against NVIDIA's own calculation in ``cuda_occupancy.h``, the driver where there is one, and by hand."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driver_standin import Standin

import ptxdsl
from ptxdsl import Ptr, dynamic_shared, f32, ptx, ptx_kernel, shared
from ptxdsl.errors import LaunchError, TargetError
from ptxdsl.gpu.device import Driver
from ptxdsl.gpu.occupancy import Occupancy
from ptxdsl.gpu.tools import _wheel_folders
from ptxdsl.isa.targets import TARGETS, limits, multiprocessor

KNOWN = sorted({target.number for target in TARGETS.values()} - {107})
SOURCE = """
#include <stddef.h>
#include <limits.h>
#include "cuda_occupancy.h"
int occupancy(const int *device, const int *kernel, int block, int *allowed) {
    struct cudaOccDeviceProp p = {device[0], device[1], 1024, device[2], 65536, 65536, 32, 48 << 10, device[3], 1,
                                  device[4], device[5]};
    struct cudaOccFuncAttributes f = {kernel[0], kernel[1], kernel[2], PARTITIONED_GC_OFF, FUNC_SHMEM_LIMIT_OPTIN,
                                      kernel[3], kernel[4], 0};
    struct cudaOccDeviceState state = {CACHE_PREFER_NONE, SHAREDMEM_CARVEOUT_DEFAULT};
    struct cudaOccResult r;
    int error = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &f, &state, block, kernel[3]);
    int found[] = {r.blockLimitWarps, r.blockLimitRegs, r.blockLimitSharedMem, r.blockLimitBarriers,
                   r.blockLimitBlocks};
    for (int i = 0; i < 5; i++) allowed[i] = found[i];
    return error ? -1 : r.activeBlocksPerMultiprocessor;
}
"""


@ptx_kernel
def reverse(x: Ptr[f32]) -> None:
    tile = shared(f32, 1024)
    t = ptx.tid.x
    tile[t] = x[t]
    ptx.bar.sync(0)
    x[t] = tile[1023 - t]


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """The header's calculation, compiled."""
    compiler = shutil.which("cc")
    folders = [folder / home / "include" for folder in _wheel_folders("nvidia") for home in ("cu13", "cuda_runtime")]
    include = next((folder for folder in folders if (folder / "cuda_occupancy.h").is_file()), None)
    if compiler is None or include is None:
        pytest.skip("no C compiler, or no cuda_occupancy.h (nvidia-cuda-runtime)")
    folder: Path = tmp_path_factory.mktemp("occupancy")
    (folder / "occupancy.c").write_text(SOURCE)
    command = [compiler, "-shared", "-fPIC", "-O1", "-w", "-I", include, "occupancy.c", "-o", "occupancy.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "occupancy.so")).occupancy


def test_as_nvidia_calculates_it(oracle: Callable[..., Any], rng: np.random.Generator) -> None:
    seen = set()
    for _ in range(4000):
        number = int(rng.choice(KNOWN))
        arch, unit = f"sm_{number}", multiprocessor(f"sm_{number}")
        threads = int(rng.integers(1, 1025))
        registers = int(rng.choice([rng.integers(1, 256), rng.integers(8, 65)]))
        static = int(rng.choice([0, rng.integers(0, 49 << 10), rng.integers(0, 2000)]))
        dynamic = int(rng.choice([0, rng.integers(0, 230 << 10), rng.integers(0, 9000)]))
        barriers = int(rng.integers(0, 17))
        ours = Occupancy(arch, threads, registers, static + dynamic, barriers)

        device = (ctypes.c_int * 6)(
            number // 10, number % 10, unit.threads, unit.shared, limits(arch).shared, unit.reserved
        )
        kernel = (ctypes.c_int * 5)(1024, registers, static, dynamic, barriers)
        allowed = (ctypes.c_int * 5)()
        blocks = oracle(device, kernel, threads, allowed)
        assert ours.blocks == blocks, (ours, list(allowed))
        if blocks > 0:
            names = ("threads", "registers", "shared memory", "barriers", "blocks")
            theirs = {name: n for name, n in zip(names, allowed) if n != 2**31 - 1}
            assert ours.allowed == theirs, ours
        seen |= {*ours.limited_by} if blocks else {"none"}
    assert seen == {"threads", "registers", "shared memory", "barriers", "blocks", "none"}


@pytest.mark.parametrize(("arch", "threads", "registers", "shared_bytes", "blocks", "limit"), [
    ("sm_90", 256, 40, 0, 6, "registers"),  # 16384 // 1280 = 12 warps a partition, 48 in all
    ("sm_90", 256, 33, 0, 6, "registers"),  # 33 are given as 40
    ("sm_80", 128, 64, 0, 8, "registers"),
    ("sm_86", 1024, 32, 0, 1, "threads"),
    ("sm_90", 128, 32, 100 << 10, 2, "shared memory"),  # 228 // 101
    ("sm_90", 128, 32, 113 << 10, 2, "shared memory"),  # 228 // 114
    ("sm_90", 128, 32, (113 << 10) + 1, 1, "shared memory"),  # 114 KiB and one unit of 128 bytes
    ("sm_75", 64, 16, 4 << 10, 16, "threads"),
    ("sm_75", 64, 16, (4 << 10) + 1, 15, "shared memory"),  # a unit of 256 bytes more
    ("sm_90", 96, 255, 0, 2, "registers"),  # 2 warps a partition
    ("sm_90", 1024, 65, 0, 0, "registers"),
    ("sm_86", 32, 32, 0, 16, "blocks"),
])
def test_by_hand(arch: str, threads: int, registers: int, shared_bytes: int, blocks: int, limit: str) -> None:
    found = Occupancy(arch, threads, registers, shared_bytes, 1)
    assert found.blocks == blocks
    assert limit in found.limited_by


def test_what_the_advice_says_is_so(rng: np.random.Generator) -> None:
    said = 0
    for _ in range(500):
        arch = f"sm_{rng.choice(KNOWN)}"
        given = {
            "arch": arch, "threads": int(rng.integers(1, 1025)), "registers": int(rng.integers(16, 256)),
            "shared": int(rng.integers(0, limits(arch).shared)), "barriers": 1,
        }
        one = Occupancy(**given)
        if one.advice is None:
            assert {"threads", "blocks", "barriers"} & {*one.limited_by}
            continue
        said += 1
        numbers = [int(word) for word in one.advice.split() if word.isdigit()]
        assert numbers.pop() == one.blocks + 1
        better = dict(given)
        for name, text in (("registers", "registers a thread"), ("shared", "bytes of shared memory")):
            if text in one.advice:
                better[name] = numbers.pop(0)
        assert Occupancy(**better).blocks >= one.blocks + 1
        for name in better.keys() - {"arch", "threads", "barriers"}:
            if better[name] != given[name]:  # one more would be too much
                unit = 1 if name == "registers" else multiprocessor(arch).shared_unit
                assert Occupancy(**{**better, name: better[name] + unit}).blocks <= one.blocks
    assert said > 50


@pytest.mark.ptxas
def test_of_a_kernel() -> None:
    assert repr(reverse.occupancy(256, arch="sm_90")) == (
        "<occupancy on sm_90: 8 blocks of 256 threads, 64 of 64 warps (100 %), limited by threads>"
    )
    assert reverse.occupancy((16, 4, 2), arch="sm_90").threads == 128
    one = reverse.occupancy(64, arch="sm_103")
    taken = reverse.attributes(arch="sm_103")
    assert (one.registers, one.shared, one.barriers) == (taken.num_regs, 4096, 1)
    assert 10 <= taken.num_regs <= 16
    assert str(one) == f"""\
occupancy on sm_103: 32 blocks of 64 threads, 64 of 64 warps (100 %), limited by threads, barriers and blocks
resource       blocks               a block takes
threads            32                  64 of 2048  <- limit
registers          64  {taken.num_regs} a thread, 1024 of 65536
shared memory      45        5120 of 233472 bytes
barriers           32                     1 of 32  <- limit
blocks             32                     1 of 32  <- limit"""
    assert "barriers" not in reverse.occupancy(64, arch="sm_80").allowed


@pytest.mark.ptxas
def test_every_block_size() -> None:
    found = reverse.block_sizes(arch="sm_86")
    assert [one.threads for one in found] == list(range(32, 1025, 32))
    assert found.best.threads == 768
    assert found.best.fraction == 1.0
    lines = repr(found).splitlines()
    assert lines[0].split() == ["threads", "on", "sm_86", "blocks", "warps", "full", "limited", "by"]
    assert lines[4].split() == ["128", "12", "48/48", "100", "%", "#" * 20, "threads"]
    assert [line.split()[0] for line in lines if line.endswith("<- best")] == ["768"]


@pytest.mark.ptxas
def test_dynamic_shared_memory_that_depends_on_the_block() -> None:
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        tile = dynamic_shared(f32)
        tile[ptx.tid.x] = x[ptx.tid.x]
        ptx.bar.sync(0)
        x[ptx.tid.x] = tile[0]

    assert k.occupancy(128, 50 << 10, arch="sm_90").blocks == 4
    found = k.block_sizes(lambda threads: 512 * threads, arch="sm_90")
    assert [one.shared for one in found][:3] == [32 * 512, 64 * 512, 96 * 512]
    assert found[-1].blocks == 0
    assert "shared memory" in found[-1].limited_by
    assert found.best.blocks * found.best.threads == max(one.blocks * one.threads for one in found)


@pytest.mark.ptxas
def test_a_bound_on_the_block() -> None:
    @ptx_kernel(maxntid=96)
    def k(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = 1.0

    assert [one.threads for one in k.block_sizes(arch="sm_90")] == [32, 64, 96]
    assert repr(k.occupancy(128, arch="sm_90")) == (
        "<occupancy on sm_90: 0 blocks of 128 threads, 0 of 64 warps (0 %), limited by threads>"
    )


@pytest.mark.ptxas
def test_the_default_target(cu: Standin) -> None:
    assert reverse.occupancy(128).arch == "sm_90"  # the GPU's
    with ptxdsl.use("emulator"):
        assert reverse.occupancy(128).arch == "sm_75"  # the lowest that it needs


@pytest.mark.ptxas
def test_what_is_not_known() -> None:
    with pytest.raises(LaunchError, match=r"^block.x is 1025; it can be 1 to 1024"):
        reverse.occupancy(1025, arch="sm_90")
    with pytest.raises(TargetError) as error:
        repr(reverse.occupancy(128, arch="sm_107"))
    assert error.value.message == (
        "what a multiprocessor of sm_107 has is not published; it is of sm_75, sm_80, sm_86, sm_87, sm_88, sm_89, "
        "sm_90, sm_100, sm_103, sm_110, sm_120, sm_121"
    )


@pytest.mark.gpu
@pytest.mark.ptxas
def test_as_the_driver_says(real_gpu: Driver, rng: np.random.Generator) -> None:
    from ptxdsl.gpu.function import LoadedFunction

    with ptxdsl.use("gpu"):
        gpu = real_gpu
        function = LoadedFunction(reverse.compiled({}), gpu)
        for threads in [32, 96, 1024, *rng.integers(1, 1025, 50)]:
            says = gpu.call("cuOccupancyMaxActiveBlocksPerMultiprocessor", function.handle, int(threads), 0)
            assert reverse.occupancy(int(threads)).blocks == says, threads


@pytest.mark.ptxas
@pytest.mark.parametrize(("size", "busy"), [(2, 2), (4, 1), (8, 2), (16, 1), (16, 0)])
def test_clusters_as_the_driver_says(cu: Standin, size: int, busy: int) -> None:
    """The stand-in has 10 multiprocessors, in groups of 8 and 2."""
    @ptx_kernel
    def k(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = 1.0

    cu.busy = busy
    found = k.configure(16, 64, cluster=size).occupancy()
    expected = 8 * busy // size + 2 * busy // size
    assert (found.clusters, found.cluster, found.threads) == (expected, size, 64)
    count = f"{expected} cluster{'s' * (expected != 1)}"
    assert repr(found).endswith(f"; {count} of {size} blocks on this GPU>")
    assert (cu.attributes == {"NON_PORTABLE_CLUSTER_SIZE_ALLOWED": 1}) is (size > 8)
    assert not cu.launches
    assert k.configure(16, 64, cluster=size, backend="emulator").occupancy(arch="sm_100").clusters is None


@pytest.mark.ptxas
def test_clusters_without_a_gpu(rng: np.random.Generator) -> None:
    """Against a loop that places the blocks; at 1 block a multiprocessor 132 of them are resident on an H100."""
    with ptxdsl.use("emulator"):
        for size in (1, 2, 3, 4, 8, 16):
            found = reverse.configure(48, 1024, cluster=size, shared=0).occupancy(arch="sm_90a")
            placed = 0
            for processors in (18, 18, 16, 16, 16, 16, 16, 16):
                free = processors * found.blocks
                while free >= size:
                    free, placed = free - size, placed + 1
            assert (found.clusters, found.blocks) == (placed, 2)
        large = reverse.configure(16, (256, 4), cluster=(4, 1, 1)).occupancy(arch="sm_90")
        assert repr(large) == (
            "<occupancy on sm_90: 2 blocks of 1024 threads, 64 of 64 warps (100 %), limited by threads; "
            "at most 66 clusters of 4 blocks on an H100 SXM>"
        )
        assert reverse.configure(4, 1024, cluster=2).occupancy(arch="sm_120").clusters == 85
        assert reverse.configure(4, 1024).occupancy(arch="sm_90").cluster == 1
        assert reverse.configure(4, 1024, cluster=2).occupancy(arch="sm_103").clusters is None
