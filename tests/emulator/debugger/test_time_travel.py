"""A launch can be taken to any moment: everything is then as it was, and it ends as it does without a debugger."""

from __future__ import annotations

import ctypes
import hashlib
import random
from collections.abc import Callable
from typing import Any

import blackwell_matmul
import hopper_matmul
import numpy as np
import pytest
from debugged import debugged
from matrix_harness import check_product

import ptxdsl
from ptxdsl import (
    MemoryFault, Ptr, Surface, TrapError, break_if, check, cluster, dynamic_shared, f32, loop, otherwise, printf, ptx,
    ptx_func, ptx_kernel, reg, s32, shared, u32, u64, when,
)
from ptxdsl.emulator.debugger import checkpoints
from ptxdsl.emulator.debugger.checkpoints import launch_memory
from ptxdsl.emulator.debugger.debugged_launch import DebuggedLaunch
from ptxdsl.emulator.debugger.probe import NEVER
from ptxdsl.emulator.debugger.reverse import travel
from ptxdsl.emulator.debugger.view import DebugError
from ptxdsl.emulator.machine.layout import Block, Warp

pytestmark = pytest.mark.usefixtures("emulated")


@ptx_func
def twice(v: f32) -> f32:
    return v * 2.0


@ptx_kernel
def reduction(n: u32, x: Ptr[f32], out: Ptr[f32], ticks: Ptr[u64]):
    tile = shared(f32, 96)
    t = ptx.tid.x
    acc = reg(f32, 0.0)
    with loop(t, n, 96) as i:
        acc += twice(x[i])
    tile[t] = acc
    ptx.bar.sync(0)
    with when(t < 32):
        total = reg(f32, tile[t] + tile[t + 32] + tile[t + 64])
        for distance in (16, 8, 4, 2, 1):
            total += ptx.shfl.sync.bfly.b32(total, distance, 31, 0xFFFFFFFF)
        with when(t == 0):
            out[ptx.ctaid.x] = total
            ticks[ptx.ctaid.x] = ptx.clock64


@ptx_kernel
def handed_over(flags: Ptr[u32], out: Ptr[u32]):
    """Each block waits for the next one, which has not begun when it begins."""
    b, last = ptx.ctaid.x, ptx.nctaid.x - 1
    with when(ptx.tid.x == 0):
        with when(b < last):
            with loop():
                break_if(ptx.ld.acquire.gpu.u32(flags + (b + 1)) != 0)
        out[b] = ptx.atom.global_.add.u32(out + 8, 1)
        ptx.st.release.gpu.u32(flags + b, 1)


@ptx_kernel
def exchanged(out: Ptr[u32]):
    """Blocks of a cluster write into each other's shared memory."""
    mine = shared(u32, 64)
    t, rank = ptx.tid.x, ptx.cluster_ctarank
    cluster.sync()
    cluster.at(mine, rank ^ 1)[t] = rank * 100 + t
    cluster.sync()
    out[ptx.ctaid.x * 64 + t] = mine[t]


@ptx_kernel
def divergent(x: Ptr[u32], out: Ptr[u32]):
    t = ptx.tid.x
    n = reg(u32, x[t])
    steps = reg(u32, 0)
    with loop():
        break_if(n == 1)
        odd = (n & 1) == 1
        with when(odd):
            n.set(n * 3 + 1)
        with otherwise():
            n.set(n >> 1)
        steps += 1
    out[t] = steps


def arguments(kernel: Any, rng: np.random.Generator) -> tuple[Any, tuple[Any, ...]]:
    """A launch of a kernel, and its arguments."""
    if kernel is reduction:
        x = rng.integers(-8, 8, 500).astype(np.float32)
        return reduction[3, 96], (500, x, np.zeros(3, np.float32), np.zeros(3, np.uint64))
    if kernel is handed_over:
        return handed_over[4, 40], (np.zeros(8, np.uint32), np.zeros(16, np.uint32))
    if kernel is exchanged:
        return exchanged.configure(4, 64, cluster=2), (np.zeros(256, np.uint32),)
    return divergent[1, 48], (rng.integers(1, 60, 48).astype(np.uint32), np.zeros(48, np.uint32))


def digest(launch: DebuggedLaunch) -> str:
    """All that the threads can see, and where they are."""
    found = hashlib.sha256(repr((launch.tick, launch.thread, launch.place)).encode())
    for region in launch_memory(launch.launch):
        found.update(ctypes.string_at(region.address, region.nbytes))
    for state in launch.execution.running():
        found.update(repr((state.block, state.get(Block.RUNNABLE, "I"))).encode())
        found.update(ctypes.string_at(state.first, state.table - state.first))
        for warp in range(state.count):
            data = bytearray(ctypes.string_at(state.warps + warp * state.stride, state.stride))
            if not state.get_warp(warp, Warp.ALIVE, "I"):  # where it stopped last is nobody's business any more
                data[Warp.PC : Warp.PC + 8] = bytes(8)
            found.update(data)
    return found.hexdigest()


def travelled(rng: np.random.Generator, steps: list[int], moments: int) -> Callable[[DebuggedLaunch], None]:
    """Goes back to moments of a launch, drawn from those that it was stopped at, and compares all that there is."""
    draws = random.Random(int(rng.integers(1 << 30)))

    def steer(run: DebuggedLaunch) -> None:
        seen: dict[int, str] = {}
        while run._run(run.tick + draws.choice(steps)) is None:
            run._settle(None)
            seen[run.tick] = digest(run)
        end = run.tick
        assert 1 < len(run.history.checkpoints) <= checkpoints.MOST
        for tick in draws.sample(sorted(seen), min(moments, len(seen))):
            travel(run, tick)
            assert run.tick == tick
            assert digest(run) == seen[tick], tick
        assert run._run(NEVER) is not None
        assert run.ended
        assert run.tick == end

    return steer


KERNELS = [reduction, handed_over, exchanged, divergent]


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.entry)
def test_every_moment_is_the_same_again(
    kernel: Any, seed: int | None, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "INTERVAL", 11)
    monkeypatch.setattr(checkpoints, "MOST", 5)
    launch, args = arguments(kernel, rng)
    if seed is not None:
        launch = kernel.configure(launch.config.grid, launch.config.block, cluster=launch.config.cluster, seed=seed)
    debugged(launch, *args, steer=travelled(rng, [1, 2, 7, 30, 100], 25))
    if kernel is reduction:
        np.testing.assert_array_equal(args[2], np.full(3, 2 * args[1].sum(), np.float32))
    elif kernel is handed_over:
        np.testing.assert_array_equal(args[1][:4], [3, 2, 1, 0])
    elif kernel is exchanged:
        expected = [(b % 2 ^ 1) * 100 + t for b in range(4) for t in range(64)]
        np.testing.assert_array_equal(args[0], expected)
    else:
        before = args[0].copy(), np.zeros(48, np.uint32)
        with ptxdsl.use("emulator"):
            divergent[1, 48](*before)
        np.testing.assert_array_equal(args[1], before[1])


@pytest.mark.parametrize("program", [blackwell_matmul, hopper_matmul], ids=["tcgen05", "wgmma"])
def test_tensor_cores_and_copies(program: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "INTERVAL", 1500)

    def launch(a: Any, b: Any, c: Any) -> None:
        debugged(program.launch, a, b, c, steer=travelled(rng, [200, 2000], 4))

    check_product(launch, rng, 128, 128, 128)


def test_what_is_printed_again_is_not_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    @ptx_kernel
    def speaks(n: u32):
        with loop(0, n) as i:
            with when(ptx.tid.x == 0):
                printf("turn %u\n", i)

    def steer(run: DebuggedLaunch) -> None:
        run._run(60)
        run._settle(None)
        travel(run, 5)
        run._run(40)
        travel(run, 50)
        run._run(NEVER)

    debugged(speaks[1, 32], 9, steer=steer)
    assert capsys.readouterr().out == "".join(f"turn {i}\n" for i in range(9))


def test_a_fault_can_be_gone_back_from(rng: np.random.Generator) -> None:
    @ptx_kernel
    def beyond(x: Ptr[f32]):
        i = reg(u32, ptx.tid.x)
        with loop(0, 5):
            x[i] = 1.0
            i += 32

    x = np.zeros(100, np.float32)
    seen: list[Any] = []

    def steer(run: DebuggedLaunch) -> None:
        for _ in range(2):
            stop = run.resume()
            assert stop is not None
            i = run.view().number(run.view().variables["i"])
            seen.append((stop.reason, stop.text.splitlines()[0], run.thread.lane, i))
            travel(run, run.tick - 10)
            assert run.error is None
        run.resume()
        run.resume()

    with pytest.raises(MemoryFault, match=r"store to x\[100\]: x is f32\[100\]"):
        debugged(beyond[1, 32], x, steer=steer)
    assert seen == [("exception", "store to x[100]: x is f32[100]", 4, 100)] * 2


def test_a_trap_stops_where_it_is() -> None:
    @ptx_kernel
    def checked(x: Ptr[f32]):
        v = x[ptx.tid.x]
        check(v < 3, "too large")
        x[ptx.tid.x] = v + 1

    def steer(run: DebuggedLaunch) -> None:
        stop = run.resume()
        assert stop is not None and stop.reason == "exception"
        assert run.places.frames(run.place)[0].loc == run.error.loc  # type: ignore[union-attr]
        assert run.view().thread == (3, 0, 0)
        run.stops_at_faults = False
        run.resume()

    with pytest.raises(TrapError, match="too large"):
        debugged(checked[1, 8], np.arange(8, dtype=np.float32), steer=steer)


def test_copies_that_are_too_large_are_refused() -> None:
    @ptx_kernel
    def small(x: Ptr[f32]):
        x[ptx.tid.x] = 1.0

    def steer(run: DebuggedLaunch) -> None:
        run.step("instruction")
        assert run.history.missing == "the launch may write 3 MiB, and 4 MiB are allowed for copies (history=7)"
        with pytest.raises(DebugError, match="there is no way back: the launch may write 3 MiB"):
            travel(run, 1)
        run.resume()

    x = np.zeros(3 << 18, np.float32)
    debugged(small[1, 32], x, steer=steer, history=4)
    assert (x[:32] == 1).all()


def test_a_kernel_that_writes_a_surface_goes_forward_only() -> None:
    @ptx_kernel
    def fill(image: Surface):
        x = ptx.tid.x.bits(s32)
        ptx["sust.b.1d.b32.zero"]((image, (x * 4,)), x + 1)

    def steer(run: DebuggedLaunch) -> None:
        run.step("instruction")
        with pytest.raises(DebugError, match="there is no way back: the kernel writes surfaces, of which no copies"):
            travel(run, 1)
        run.resume()

    out = np.full(5, -1, np.int32)
    debugged(fill[1, 8], Surface(out), steer=steer)
    assert out.tolist() == [1, 2, 3, 4, 5]


def test_the_bound_of_the_copies_is_told(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "INTERVAL", 50)

    @ptx_kernel
    def fills(x: Ptr[u32]):
        with loop(ptx.tid.x, 120_000, 1024) as i:
            x[i] = i + 1

    def steer(run: DebuggedLaunch) -> None:
        travelled(rng, [60], 8)(run)
        assert run.history.nbytes <= 1 << 20
        assert run.history.interval > 50

    x = np.zeros(120_000, np.uint32)
    said = debugged(fills[1, 1024], x, steer=steer, history=1)
    told = "the copies for going back take 1 MiB: every second one is dropped from here on, and going back takes longer"
    assert said == [f"{told} (more: history=2)"]
    np.testing.assert_array_equal(x, np.arange(1, 120_001))


def test_dynamic_shared_memory_and_a_second_launch(rng: np.random.Generator) -> None:
    @ptx_kernel
    def reversed_(x: Ptr[f32]):
        tile, t = dynamic_shared(f32), ptx.tid.x
        tile[t] = x[t]
        ptx.bar.sync(0)
        x[t] = tile[63 - t]

    x = rng.standard_normal(64).astype(np.float32)
    given = x.copy()

    def steer(run: DebuggedLaunch) -> None:
        run._run(30)
        travel(run, 3)
        run._run(NEVER)

    launch = reversed_.configure(1, 64, shared=256)
    for _ in range(2):
        debugged(launch, x, steer=steer)
    np.testing.assert_array_equal(x, given)
