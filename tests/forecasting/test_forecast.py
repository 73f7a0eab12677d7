"""Forecasts of small kernels against bounds that are computed by hand, what they say, and what they refuse."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, AssembleError, Forecast, LaunchError, Ptr, PtxError, bf16, dtype_of, dynamic_shared, f32, forecast, loop,
    ptx, ptx_kernel, reg, shared, tensor_map, tma, mbarrier, TensorMap, u32, when, wgmma, tiles,
)
from ptxdsl.forecasting import forecast as home
from ptxdsl.forecasting.bounds import Bound
from ptxdsl.forecasting.machines import MACHINES, machine
from ptxdsl.gpu import tools

pytestmark = [pytest.mark.usefixtures("emulated"), pytest.mark.ptxas]
H200 = MACHINES["h200"]


@ptx_kernel
def saxpy(n: u32, a: f32, x: Ptr[f32], y: Ptr[f32]):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i < n):
        y[i] = a * x[i] + y[i]


@ptx_kernel
def transposed(a: Array[f32, 2], b: Array[f32, 2], *, pad: int = 0):
    tile = shared(f32, 32, 32 + pad)
    x, y = ptx.tid.x, ptx.tid.y
    height, width = a.shape
    row, column = ptx.ctaid.y * 32 + y, ptx.ctaid.x * 32 + x
    with when((row < height) & (column < width)):
        tile[y, x] = a[row, column]
    ptx.bar.sync(0)
    row, column = ptx.ctaid.x * 32 + y, ptx.ctaid.y * 32 + x
    with when((row < width) & (column < height)):
        b[row, column] = tile[x, y]


@ptx_kernel
def powers(x: Ptr[f32], turns: u32):
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    values = [reg(f32, x[i] + n) for n in range(4)]
    with loop(turns):
        for value in values:
            value.set(ptx.ex2.approx.ftz.f32(value))
    x[i] = values[0] + values[1] + values[2] + values[3]


@ptx_kernel
def chase(links: Ptr[u32], turns: u32):
    at = reg(u32, ptx.tid.x)
    with loop(turns):
        at.set(links[at])
    links[ptx.tid.x] = at


def only(f: Forecast) -> Any:
    assert len(f.launches) == 1
    return f.launches[0]


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9)


# ---------------------------------------------------------------------------------------------------------------------
# Bounds by hand


def test_memory_takes_the_bytes_that_are_touched() -> None:
    n = random.randrange(100_000, 200_000)
    x, y = np.zeros(n, np.float32), np.zeros(n, np.float32)
    launch = only(saxpy[-(-n // 256), 256].forecast(n, 2.0, x, y))
    sectors = -(-n // 8)
    assert close(launch.bound("memory").seconds, 32 * 3 * sectors / (4.8e12 * H200.copy_share))
    assert close(launch.bound("L2 cache").seconds, 32 * 3 * sectors / (6150 * 1830e6))


def test_what_is_only_read_has_the_rate_of_reading() -> None:
    @ptx_kernel
    def total(x: Ptr[f32], y: Ptr[f32]):
        ptx.red.global_.add.f32(y, x[ptx.ctaid.x * 256 + ptx.tid.x])

    launch = only(total[64, 256].forecast(np.zeros(64 * 256, np.float32), np.zeros(1, np.float32), gpu="a100"))
    a100 = MACHINES["a100"]
    assert close(launch.bound("memory").seconds, (64 * 1024 + 2 * 32) / (2.039e12 * a100.read_share))


def test_what_blocks_read_again_comes_from_the_cache() -> None:
    @ptx_kernel
    def scaled(x: Ptr[f32], factors: Ptr[f32], y: Ptr[f32]):
        i = ptx.tid.x
        y[ptx.ctaid.x * 256 + i] = x[ptx.ctaid.x * 256 + i] * factors[i]

    x, factors, y = (np.zeros(n, np.float32) for n in (256 * 1000, 256, 256 * 1000))
    launch = only(scaled[1000, 256].forecast(x, factors, y))
    assert close(launch.bound("memory").seconds, (2 * 1024 * 1000 + 1024) / (4.8e12 * H200.copy_share))
    assert close(launch.bound("L2 cache").seconds, 3 * 1024 * 1000 / (6150 * 1830e6))


@pytest.mark.parametrize("pad", [0, 1])
def test_shared_memory_with_and_without_conflicts(pad: int) -> None:
    blocks = H200.multiprocessors
    a, b = np.zeros((32, 32 * blocks), np.float32), np.zeros((32 * blocks, 32), np.float32)
    launch = only(transposed[(blocks, 1), (32, 32)].forecast(a, b, pad=pad))
    stored, loaded, touched = 32, 32 * (1 if pad else 32), 2 * 32
    bound = launch.bound("shared memory")
    assert close(bound.seconds, (stored + loaded + touched) / 1830e6)
    assert ("bank conflicts" in bound.detail) == (not pad)
    worst = max(bound.lines, key=lambda line: line[1])[0]
    assert pad or "b[row, column] = tile[x, y]" in (worst.source or "")


def test_special_functions_bind_and_name_their_line() -> None:
    blocks, turns = 2 * H200.multiprocessors, random.randrange(200, 300)
    launch = only(powers[blocks, 256].forecast(np.zeros(blocks * 256, np.float32), turns))
    assert launch.binding.kind == "special functions"
    assert close(launch.binding.seconds, 2 * 256 * turns * 4 / 16 / 1830e6)
    assert "ex2.approx" in (launch.lines[0][0].source or "") and launch.lines[0][1] == 1.0


def test_blocks_are_shared_out_whole() -> None:
    """One block more than there are multiprocessors takes twice as long."""
    times = []
    for blocks in (H200.multiprocessors, H200.multiprocessors + 1):
        f = powers[blocks, 256].forecast(np.zeros(blocks * 256, np.float32), 100)
        times.append(only(f).bound("special functions").seconds)
    assert close(times[1], 2 * times[0])


def test_a_chain_of_loads_waits_for_the_memory_each_time() -> None:
    turns = 200
    links = np.arange(1 << 20, dtype=np.uint32) + 64
    launch = only(chase[1, 32].forecast(links, turns))
    assert launch.binding.kind == "latency"
    clocks = launch.binding.seconds * 1830e6 / turns
    assert 0.9 * H200.memory_latency <= clocks < H200.memory_latency + 60
    assert "links[at]" in (launch.lines[0][0].source or "")


def test_loads_side_by_side_wait_together() -> None:
    @ptx_kernel
    def gathered(x: Ptr[f32], y: Ptr[f32], *, apart: bool):
        values = [x[ptx.tid.x + 4096 * n] for n in range(8)] if not apart else []
        total = reg(f32, 0.0)
        for n in range(8):
            if apart:
                total += x[ptx.tid.x + 4096 * n + (total.bits(u32) & 1)]
            else:
                total += values[n]
        y[ptx.tid.x] = total

    x, y = np.zeros(1 << 16, np.float32), np.zeros(32, np.float32)
    together, apart = (
        only(gathered[1, 32].forecast(x, y, apart=apart)).bound("latency").seconds * 1830e6 for apart in (False, True)
    )
    assert together < H200.memory_latency + 200
    assert apart > 7.9 * H200.memory_latency


def test_products_of_warpgroups() -> None:
    @ptx_kernel(maxntid=128)
    def product(a: TensorMap, b: TensorMap, c: Array[f32, 2]):
        a_tile = tiles.Tile(dynamic_shared(bf16, align=1024), 64, 64)
        b_tile = tiles.Tile(dynamic_shared(bf16, align=1024) + 64 * 64, 128, 64)
        full = mbarrier.declare()
        mbarrier.start((full, 1))
        with when(ptx.tid.x == 0):
            mbarrier.arrive(full, expect_tx=a_tile.nbytes + b_tile.nbytes)
            tma.load(a_tile, a, (0, 0), full)
            tma.load(b_tile, b, (0, 0), full)
        mbarrier.wait(full, 0)
        sums = wgmma.zeros(64, 128)
        wgmma.fence()
        wgmma.multiply(sums, a_tile, b_tile.T)
        wgmma.commit()
        wgmma.wait()
        sums.store(c, 0, 0)

    half = dtype_of(bf16)
    a, b, c = np.zeros((64, 64), half), np.zeros((128, 64), half), np.zeros((64, 128), np.float32)
    maps = tensor_map(a, (64, 64), swizzle=128), tensor_map(b, (128, 64), swizzle=128)
    launch = only(product.configure(1, 128, shared=(64 + 128) * 128).forecast(*maps, c))
    assert close(launch.bound("tensor cores").seconds, 2 * 64 * 128 * 64 / 4096 / 1830e6)
    nbytes = 64 * 64 * 2 + 128 * 64 * 2 + c.nbytes
    assert close(launch.bound("memory").seconds, nbytes / (4.8e12 * H200.copy_share))
    read = 4 * (64 + 128) * 16 * 2  # by the four products of 16 along k
    copied = (64 + 128) * 128
    stored = 64 * 4 * 2  # registers of 4 warps; a request has 8 rows, a sector each, so 2 wavefronts
    assert close(launch.bound("shared memory").seconds, ((read + copied) / 128 + stored) / 1830e6)


@pytest.mark.parametrize("multicast", [False, True])
def test_a_multicast_is_read_once(multicast: bool) -> None:
    @ptx_kernel(reqnctapercluster=2, explicitcluster=True)
    def shared_tile(a: TensorMap, c: Ptr[f32]):
        tile = tiles.Tile(shared(bf16, 64 * 64, align=1024), 64, 64)
        full = mbarrier.declare()
        mbarrier.start((full, 1), cluster=True)
        rank = ptxdsl.cluster.rank()
        with when(ptx.tid.x == 0):
            mbarrier.arrive(full, expect_tx=tile.nbytes)
            if multicast:
                tma.load(tile.part(32, 64, rank * 32), a, (rank * 32, 0), full, multicast=3)
            else:
                tma.load(tile.part(32, 64, 0), a, (0, 0), full)
                tma.load(tile.part(32, 64, 32), a, (32, 0), full)
        mbarrier.wait(full, 0)
        c[ptx.ctaid.x * 32 + ptx.tid.x] = 1.0
        ptxdsl.cluster.sync()

    a, c = np.zeros((64, 64), dtype_of(bf16)), np.zeros(64 * 8, np.float32)
    launch = only(shared_tile[16, 32].forecast(tensor_map(a, (32, 64), swizzle=128), c))
    moved = 16 * 64 * 64 * 2 // (2 if multicast else 1) + c.nbytes
    assert close(launch.bound("L2 cache").seconds, moved / (64 * 16 * 1830e6))
    assert close(launch.bound("memory").seconds, (a.nbytes + c.nbytes) / (4.8e12 * H200.copy_share))


def test_the_time_is_no_less_than_any_bound_and_the_launch() -> None:
    launch = only(saxpy[4, 256].forecast(1000, 2.0, np.zeros(1000, np.float32), np.zeros(1000, np.float32)))
    assert launch.binding == Bound("launch", H200.launch, "until an empty kernel has ended")
    assert launch.seconds >= H200.launch + max(bound.seconds for bound in launch.bounds)
    assert launch.low < launch.seconds < launch.high


def test_another_clock_changes_what_depends_on_it() -> None:
    x = np.zeros(1 << 16, np.float32)
    slow, fast = (only(powers[256, 256].forecast(x, 50, clock=clock)) for clock in (1000, 2000))
    assert close(slow.bound("special functions").seconds, 2 * fast.bound("special functions").seconds)
    assert slow.bound("memory").seconds == fast.bound("memory").seconds


# ---------------------------------------------------------------------------------------------------------------------
# Some blocks for all


def alike(one: Forecast, other: Forecast) -> None:
    for a, b in zip(only(one).bounds, only(other).bounds):
        assert a.kind == b.kind
        assert a.seconds == pytest.approx(b.seconds, rel=1e-3), a.kind


def test_some_blocks_tell_what_all_do() -> None:
    n = random.randrange(300_000, 400_000)
    x, y = np.zeros(n, np.float32), np.zeros(n, np.float32)
    launch = saxpy[-(-n // 128), 128]
    some = launch.forecast(n, 2.0, x, y)
    alike(some, launch.forecast(n, 2.0, x, y, sample=0))
    assert only(some).blocks_run < 16
    assert only(some).caveats[0] == f"counted on {only(some).blocks_run} of {-(-n // 128):,} blocks"


def test_some_blocks_of_a_ragged_grid_of_two_dimensions() -> None:
    height, width = random.randrange(900, 1000), random.randrange(1200, 1300)
    a, b = np.zeros((height, width), np.float32), np.zeros((width, height), np.float32)
    launch = transposed[(-(-width // 32), -(-height // 32)), (32, 32)]
    some, every = launch.forecast(a, b), launch.forecast(a, b, sample=0)
    for kind in ("shared memory", "issue slots"):
        assert only(some).bound(kind).seconds == pytest.approx(only(every).bound(kind).seconds, rel=2e-3)
    assert only(some).bound("memory").seconds == pytest.approx(only(every).bound("memory").seconds, rel=0.03)


def test_blocks_that_differ_are_a_caveat() -> None:
    @ptx_kernel
    def uneven(x: Ptr[f32]):
        total = reg(f32, 0.0)
        with loop(ptx.ctaid.x * 16):
            total += 1.0
        x[ptx.ctaid.x * 32 + ptx.tid.x] = total

    f = uneven[400, 32].forecast(np.zeros(400 * 32, np.float32))
    assert only(f).spread > 0.1
    assert any(text.startswith("these blocks differ (standard error of the counts ") for text in only(f).caveats)
    every = only(uneven[400, 32].forecast(np.zeros(400 * 32, np.float32), sample=0))
    assert every.spread == 0 and not every.caveats


def test_blocks_that_wait_for_each_other_are_run_whole() -> None:
    @ptx_kernel
    def in_turn(flags: Ptr[u32], x: Ptr[f32]):
        block = ptx.ctaid.x
        with when((ptx.tid.x == 0) & (block > 0)):
            with loop():
                ptxdsl.break_if(ptx.ld.acquire.gpu.global_.u32(flags + block - 1) == 1)
        ptx.bar.sync(0)
        x[block * 32 + ptx.tid.x] = 1.0
        with when(ptx.tid.x == 0):
            ptx.st.release.gpu.global_.u32(flags + block, 1)

    flags, x = np.zeros(100, np.uint32), np.zeros(3200, np.float32)
    launch = only(in_turn[100, 32].forecast(flags, x))
    assert launch.blocks_run == 100
    assert launch.caveats[0].startswith(
        "all blocks were run: its blocks may wait for each other: `ld.acquire.gpu.global.u32` (test_forecast.py:"
    )
    assert not flags.any() and not x.any()


def test_clusters_are_sampled_as_clusters() -> None:
    @ptx_kernel
    def paired(x: Ptr[f32]):
        ptx.barrier.cluster.arrive()
        ptx.barrier.cluster.wait()
        x[ptx.ctaid.x * 64 + ptx.tid.x] = 1.0

    x = np.zeros(64 * 600, np.float32)
    launch = only(paired.configure(600, 64, cluster=2).forecast(x))
    assert launch.blocks_run < 40 and launch.blocks_run % 2 == 0
    assert close(launch.bound("memory").seconds, x.nbytes / (4.8e12 * H200.copy_share))


# ---------------------------------------------------------------------------------------------------------------------
# What it says


def test_arguments_stay_as_they_are() -> None:
    x, y = np.ones(5000, np.float32), np.ones(5000, np.float32)
    saxpy[20, 256].forecast(5000, 2.0, x, y)
    assert (y == 1).all() and (x == 1).all()


def test_launches_of_a_block_add_up(tmp_path: Path) -> None:
    x, y = np.ones(5000, np.float32), np.ones(5000, np.float32)
    with forecast(gpu="b200", sample=0) as f:
        saxpy[20, 256](5000, 2.0, x, y)
        powers[8, 256](x, 10)
    assert (y == 3).all()
    assert isinstance(f, Forecast) and [one.kernel for one in f.launches] == ["saxpy", "powers"]
    assert close(f.seconds, sum(one.seconds for one in f.launches)) and f.low < f.seconds < f.high
    said = str(f).splitlines()
    assert said[0] == "b200 (sm_100a, 148 multiprocessors, 1850 MHz)"
    assert said[1].startswith("saxpy[20, 256]: 2.") and said[1].endswith("bound by launch")
    assert said[-1].startswith("2 launches: ")
    assert repr(f).startswith("<forecast on b200: saxpy 2.")
    data = json.loads(json.dumps(f.to_dict()))
    assert data["seconds"] == f.seconds and data["launches"][1]["bounds"][0]["kind"] == "memory"
    pytest.importorskip("matplotlib")
    f.plot(tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(PtxError, match="^matplotlib says: Format 'abc' is not supported"):
        f.plot(tmp_path / "f.abc")


def test_nothing_launched() -> None:
    with forecast() as f:
        pass
    assert repr(f) == "<forecast on h200: nothing launched>"
    assert str(f).endswith("0 launches: 0.00 us (0.00 us to 0.00 us)")
    with pytest.raises(PtxError, match="^nothing was launched, so nothing binds"):
        _ = f.binding


def test_no_such_bound() -> None:
    launch = only(chase[1, 32].forecast(np.zeros(64, np.uint32), 2))
    with pytest.raises(PtxError, match="^there is no bound 'hbm'"):
        launch.bound("hbm")


# ---------------------------------------------------------------------------------------------------------------------
# What is missing, and what is refused


def test_without_a_disassembler_the_ptx_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = H200.multiprocessors
    x = np.zeros(blocks * 256, np.float32)
    whole = only(powers[blocks, 256].forecast(x, 300))
    home.assembled_kernel.cache_clear()
    monkeypatch.setattr("ptxdsl.forecasting.sass.find_tool", lambda _: [])
    launch = only(powers[blocks, 256].forecast(x, 300))
    home.assembled_kernel.cache_clear()
    assert "no nvdisasm was found: instructions and latencies are those of the PTX" in launch.caveats
    assert launch.registers == whole.registers
    assert launch.binding.kind == "special functions" and close(launch.binding.seconds, whole.binding.seconds)
    assert "instructions of PTX" in launch.bound("issue slots").detail


def test_without_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    home.assembled_kernel.cache_clear()
    monkeypatch.setattr(tools, "_candidates", lambda _: iter(()))
    launch = only(saxpy[4, 256].forecast(1000, 2.0, np.zeros(1000, np.float32), np.zeros(1000, np.float32)))
    assert launch.caveats == (
        "no ptxas was found: instructions and latencies are those of the PTX, registers are not known",
    )
    assert launch.registers == 0 and launch.occupancy == 1


def test_a_kernel_for_another_target() -> None:
    @ptx_kernel(arch="sm_100a")
    def newer(x: Ptr[f32]):
        x[ptx.tid.x] = 1.0

    with pytest.raises(AssembleError, match="does not assemble this for sm_90a"):
        newer[1, 32].forecast(np.zeros(32, np.float32))
    assert only(newer[1, 32].forecast(np.zeros(32, np.float32), gpu="b200")).machine.name == "b200"


def test_no_room_for_a_block() -> None:
    @ptx_kernel
    def large(x: Ptr[f32]):
        memory = dynamic_shared(f32)
        memory[ptx.tid.x] = 1.0
        x[ptx.tid.x] = memory[ptx.tid.x]

    launch = large[1, 32, None, 120_000]
    with pytest.raises(LaunchError) as caught:
        launch.forecast(np.zeros(32, np.float32), gpu="rtx4090")
    assert str(caught.value).startswith(
        "a multiprocessor of rtx4090 has no room for a block of kernel `large`: shared memory"
    )
    assert only(launch.forecast(np.zeros(32, np.float32), gpu="h100")).blocks == 1


@pytest.mark.parametrize(("options", "message"), [
    ({"gpu": "h2000"}, "there is no description of a GPU 'h2000'; known are a100, rtx4090, h100, h200, b200"),
    ({"clock": 0}, "clock is in MHz, a positive int, not 0"),
    ({"sample": -1}, "sample is a number of blocks, 0 for all of them, not -1"),
])
def test_options_that_are_wrong(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        chase[1, 32].forecast(np.zeros(32, np.uint32), 1, **options)
    assert str(caught.value).splitlines()[0] == message


def test_a_profile_within_a_forecast() -> None:
    with forecast(), pytest.raises(LaunchError, match="^ptxdsl.profile\\(\\) within a forecast: launches have one obs"):
        ptxdsl.profile().__enter__()


def test_machine_of_a_user() -> None:
    import dataclasses

    mine = dataclasses.replace(machine("h100"), name="mine", multiprocessors=1)
    f = powers[2, 256].forecast(np.zeros(512, np.float32), 100, gpu=mine)
    assert close(only(f).bound("special functions").seconds, 2 * 256 * 100 * 4 / 16 / 1830e6)
