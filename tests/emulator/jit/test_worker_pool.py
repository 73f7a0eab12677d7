"""Blocks on several cores: what they share stays whole, they wait for each other, faults are those of one thread."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest
from emulator_harness import HEADER, THREAD, buffer, kernel, launch, pointer

from ptxdsl import emulator
from ptxdsl.config import override
from ptxdsl.machine_code.host import cores
from ptxdsl.emulator.jit import compilation, tier_up
from ptxdsl.emulator.machine.layout import Launch
from ptxdsl.emulator.runtime import host_threads, worker_pool
from ptxdsl.emulator.runtime import launch as launches
from ptxdsl.emulator.runtime.block_state import BlockState
from ptxdsl.errors import EmulationError, MemoryFault, PtxWarning, TrapError
from ptxdsl.launch import LaunchConfig

WORKERS = 4
PATIENCE = 60
"""Seconds until a thread stops waiting for another one."""


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Four workers, woken after the first block whatever they cost; the thread of each call of compiled code."""
    seen: list[int] = []
    run, wake, here = BlockState.run, worker_pool.WorkerPool.wake, threading.get_ident()
    woken, joined, begun = threading.Event(), threading.Event(), threading.Event()

    def calling(self: worker_pool.WorkerPool, taken: int = 0) -> None:
        wake(self, taken)
        if self.woken:
            woken.set()

    def noted(self: BlockState, turns: int) -> int:
        seen.append(threading.get_ident())
        if seen[-1] != here:
            joined.set()
            begun.wait(PATIENCE)  # the launch is not to be over before its caller has run a block
        else:
            begun.set()
            if woken.is_set() and not joined.is_set():
                woken.clear()
                joined.wait(PATIENCE)  # nor before another worker has
        return run(self, turns)

    monkeypatch.setattr(worker_pool.WorkerPool, "wake", calling)
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-9)
    monkeypatch.setattr(worker_pool, "SURE_SECONDS", 0.0)
    monkeypatch.setattr(worker_pool, "FIRST_BLOCKS", 1)
    monkeypatch.setattr(BlockState, "run", noted)
    with override(emulator_threads=WORKERS):
        yield seen


def test_blocks_run_on_several_threads(threads: list[int]) -> None:
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r0;\nret;")
    x = np.zeros(64 * 500, np.uint32)
    launch(text, 500, 64, x=x)
    assert (x == np.arange(x.size)).all()
    assert 2 <= len(set(threads)) <= WORKERS


def test_each_block_is_taken_once(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """By one thread without a locked instruction, by several with one, in a launch that is made again too."""
    several: list[tuple[int, bool]] = []
    run = BlockState.run

    def noted(self: BlockState, turns: int) -> int:
        flag = ctypes.c_int32.from_address(self.launch.address + Launch.SEVERAL).value
        several.append((threading.get_ident(), bool(flag)))
        return run(self, turns)

    monkeypatch.setattr(BlockState, "run", noted)
    text = kernel("u64 x", "mov.u32 %r0, %ctaid.x;\n" + pointer("%rd0", "x") + "red.global.add.u32 [%rd0], 1;\nret;")
    x = np.zeros(30_000, np.uint32)
    launcher = emulator.load(text).launcher("k", LaunchConfig(x.size, 1))
    for number, workers in enumerate((WORKERS, WORKERS, 1), 1):
        several.clear()
        with override(emulator_threads=workers):
            launcher([buffer("x", x)])
        assert (x == number).all()
        assert all(flag for thread, flag in several if thread != threading.get_ident())
    assert {flag for _, flag in several} == {False}


def test_one_worker_is_the_caller(threads: list[int]) -> None:
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r0;\nret;")
    with override(emulator_threads=1):
        launch(text, 500, 64, x=np.zeros(64 * 500, np.uint32))
    assert set(threads) == {threading.get_ident()}


def test_small_launches_stay_on_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    clock = count(step=1e-5)
    monkeypatch.setattr(worker_pool, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(worker_pool.WorkerPool, "_worker", lambda _, worker: called.append(worker))
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + "st.global.u32 [%rd0], 7;\nret;")
    with override(emulator_threads=WORKERS):
        for _ in range(3):
            launch(text, 4, 64, x=np.zeros(256, np.uint32))
    assert not called


@pytest.mark.parametrize(("seconds", "shared"), [(0.9e-3, False), (1.1e-3, True)])
def test_what_takes_less_than_a_millisecond_is_not_shared_out(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shared: bool
) -> None:
    """Known from the launches before: with another thread it would take longer, not less."""
    started: list[Any] = []
    clock = count(step=seconds)
    for module in (worker_pool, launches):
        monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(host_threads, "start", started.append)
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + "st.global.u32 [%rd0], 7;\nret;")
    with override(emulator_threads=WORKERS):
        for _ in range(3):
            launch(text, 4, 64, x=np.zeros(256, np.uint32))
    assert bool(started) is shared


@pytest.mark.parametrize(("one", "several", "shared"), [
    (0.0, 0.0, True), (1.0, 0.0, True), (0.0, 1.0, False), (1.0, 1.2, False), (1.2, 1.0, True), (2.0, 2.2, True),
])
def test_short_launches_are_shared_out_where_that_was_of_use(
    monkeypatch: pytest.MonkeyPatch, one: float, several: float, shared: bool
) -> None:
    """Milliseconds of the launches before, 0 where there was none: each way is tried."""
    started: list[Any] = []
    clock = count(step=1.5e-3)
    for module in (worker_pool, launches):
        monkeypatch.setattr(module, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(host_threads, "start", started.append)
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + f"st.global.u32 [%rd0], {random.getrandbits(31)};\nret;")
    code = emulator.load(text).code("k", (64, 1, 1))
    code.pace, code.walls = 1.5e-3 / 4, [one / 4e3, several / 4e3]
    with override(emulator_threads=WORKERS):
        launch(text, 4, 64, x=np.zeros(256, np.uint32))
    assert bool(started) is shared


def test_the_other_way_is_tried_again() -> None:
    text = kernel("", f"mov.u32 %r1, {random.getrandbits(31)}; ret;")
    code = emulator.load(text).code("k", (32, 1, 1))
    code.note_wall(True, 3.0)
    assert code.better_alone
    code.note_wall(False, 2.0)
    assert code.better_alone
    launched = 0
    while code.better_alone:
        code.note_wall(False, 2.0)
        launched += 1
    assert 10 < launched < 100
    code.note_wall(True, 3.0)
    assert code.better_alone


def test_a_thread_that_waits_is_woken_and_one_that_waits_in_vain_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "_idle", idle := [])
    monkeypatch.setattr(host_threads, "SECONDS", 60.0)
    done: list[int] = []
    finished = threading.Semaphore(0)

    def work() -> None:
        done.append(threading.get_ident())
        finished.release()

    def wait_until(condition: Callable[[], bool]) -> None:
        start = time.monotonic()
        while not condition():
            assert time.monotonic() < start + 60
            time.sleep(0.001)

    for _ in range(3):
        host_threads.start(work)
        assert finished.acquire(timeout=60)
        wait_until(lambda: len(idle) == 1)
    assert len(set(done)) == 1
    monkeypatch.setattr(host_threads, "SECONDS", 0.01)
    host_threads.start(work)  # which waits for this long afterwards
    wait_until(lambda: len(done) == 4 and not idle)
    host_threads.start(work)
    wait_until(lambda: len(done) == 5)


def test_one_block_is_no_work_for_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes, and however often its turn is over."""
    called: list[int] = []
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-9)
    monkeypatch.setattr(worker_pool.WorkerPool, "_worker", lambda _, worker: called.append(worker))
    loop = "mov.u32 %r4, 3000000; LOOP: sub.u32 %r4, %r4, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra LOOP; ret;"
    with override(emulator_threads=WORKERS):
        launch(kernel("", loop), 1, 32)
    assert not called


@pytest.mark.parametrize("second_tier", [False, True])
@pytest.mark.parametrize(
    ("instruction", "dtype", "start", "expected"),
    [
        ("atom.global.add.u32 %r9, [%rd1], 3;", np.uint32, 0, lambda n: 3 * n),
        ("red.global.add.u32 [%rd1], 3;", np.uint32, 0, lambda n: 3 * n),
        ("red.global.add.u64 [%rd1], 5;", np.uint64, 7, lambda n: 5 * n + 7),
        ("red.global.add.f32 [%rd1], 0f3F800000;", np.float32, 0, lambda n: n),
        ("red.global.add.f64 [%rd1], 0d3FF0000000000000;", np.float64, 0, lambda n: n),
        ("red.global.inc.u32 [%rd1], 96;", np.uint32, 0, lambda n: n % 97),
        ("red.global.xor.b32 [%rd1], %r0;", np.uint32, 7, lambda _: 7),
        ("red.add.u32 [%rd1], 1;", np.uint32, 0, lambda n: n),
        (
            """AGAIN: ld.volatile.global.u32 %r5, [%rd1]; add.u32 %r6, %r5, 2;
            atom.global.cas.b32 %r7, [%rd1], %r5, %r6; setp.ne.u32 %p1, %r7, %r5; @%p1 bra AGAIN;""",
            np.uint32, 0, lambda n: 2 * n,
        ),
    ],
)
def test_atomics_lose_nothing(
    instruction: str, dtype: Any, start: int, expected: Any, second_tier: bool, threads: list[int]
) -> None:
    """Every thread changes one of three numbers; all changes are there in the end."""
    blocks, size, times = 300, 96, 32
    text = kernel("u64 x", THREAD + f"""
        rem.u32 %r3, %r0, 3; ld.param.u64 %rd1, [x]; mul.wide.u32 %rd2, %r3, {np.dtype(dtype).itemsize};
        add.u64 %rd1, %rd1, %rd2; mov.u32 %r20, {times};
    MORE: {instruction}
        sub.u32 %r20, %r20, 1; setp.ne.u32 %p7, %r20, 0; @%p7 bra MORE; ret;
    """)
    x = np.full(3, start, dtype)
    launch(text, blocks, size, x=x, second_tier=second_tier)
    assert (x == expected(blocks * size * times // 3)).all()
    assert len(set(threads)) > 1


def test_tickets_are_given_once(threads: list[int]) -> None:
    body = THREAD + pointer("%rd0", "x") + (
        "ld.param.u64 %rd1, [count];\natom.global.add.u32 %r5, [%rd1], 1;\nst.global.u32 [%rd0], %r5;\nret;"
    )
    x, count = np.zeros(200 * 128, np.uint32), np.zeros(1, np.uint32)
    launch(kernel("u64 x, u64 count", body), 200, 128, x=x, count=count)
    assert count[0] == x.size
    assert (np.sort(x) == np.arange(x.size)).all()
    assert len(set(threads)) > 1


GRID_BARRIER = """
    mov.u32 %r10, 0;
PHASE:
    add.u32 %r10, %r10, 1;
    // each block adds its number plus the phase to the sum of the phase, then all wait for all
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra MEET;
    ld.param.u64 %rd1, [count];
    ld.param.u64 %rd2, [sums];
    mov.u32 %r11, %ctaid.x;
    mul.wide.u32 %rd3, %r10, 4;
    add.u64 %rd2, %rd2, %rd3;
    red.relaxed.gpu.global.add.u32 [%rd2], %r11;
    atom.acq_rel.gpu.global.add.u32 %r12, [%rd1], 1;
    mov.u32 %r13, %nctaid.x;
    mul.lo.u32 %r14, %r13, %r10;
WAIT:
    ld.acquire.gpu.global.u32 %r15, [%rd1];
    setp.lt.u32 %p2, %r15, %r14;
    @%p2 bra WAIT;
    // the sum of this phase is complete: every block must see it so
    ld.relaxed.gpu.global.u32 %r16, [%rd2];
    ld.param.u64 %rd4, [seen];
    mad.lo.u32 %r17, %r10, %r13, %r11;
    mul.wide.u32 %rd5, %r17, 4;
    add.u64 %rd4, %rd4, %rd5;
    st.global.u32 [%rd4], %r16;
MEET:
    bar.sync 0;
    setp.lt.u32 %p3, %r10, PHASES;
    @%p3 bra PHASE;
    ret;
"""


@pytest.mark.parametrize("second_tier", [False, True])
@pytest.mark.parametrize("blocks", [2, 5, 33])
def test_a_barrier_for_the_grid(blocks: int, second_tier: bool, threads: list[int]) -> None:
    phases = 20
    text = kernel("u64 count, u64 sums, u64 seen", THREAD + GRID_BARRIER.replace("PHASES", str(phases)))
    count, sums = np.zeros(1, np.uint32), np.zeros(phases + 1, np.uint32)
    seen = np.zeros((phases + 1, blocks), np.uint32)
    launch(text, blocks, 64, count=count, sums=sums, seen=seen, second_tier=second_tier)
    assert (sums[1:] == blocks * (blocks - 1) // 2).all()
    assert (seen[1:] == blocks * (blocks - 1) // 2).all()
    assert len(set(threads)) > 1


@pytest.mark.parametrize("second_tier", [False, True])
@pytest.mark.parametrize("step", [1, -1])
def test_a_chain_of_blocks(step: int, second_tier: bool, threads: list[int]) -> None:
    """Each block waits for the one before it, or behind it, which may not have started, and adds its number."""
    blocks = 60
    body = THREAD + f"""
        ld.param.u64 %rd1, [x];
        mov.u32 %r3, %ctaid.x;
        {"" if step > 0 else "mov.u32 %r4, %nctaid.x; sub.u32 %r3, %r4, %r3; sub.u32 %r3, %r3, 1;"}
        mul.wide.u32 %rd2, %r3, 4;
        add.u64 %rd1, %rd1, %rd2;
    WAIT:
        ld.acquire.gpu.global.u32 %r5, [%rd1];
        setp.eq.u32 %p1, %r5, 0;
        @%p1 bra WAIT;
        add.u32 %r5, %r5, %r3;
        st.release.gpu.global.u32 [%rd1+4], %r5;
        ret;
    """
    x = np.zeros(blocks + 1, np.uint32)
    x[0] = 1
    launch(kernel("u64 x", body), blocks, 32, x=x, second_tier=second_tier)
    assert (x == 1 + np.concatenate([[0], np.cumsum(np.arange(blocks))])).all()


SLOW = """
    mov.u32 %r20, %ctaid.x;
    mov.u32 %r21, %nctaid.x;
    sub.u32 %r21, %r21, %r20;
    mul.lo.u32 %r21, %r21, 400;
SPIN:
    sub.u32 %r21, %r21, 1;
    setp.ne.u32 %p9, %r21, 0;
    @%p9 bra SPIN;
"""
"""The lower its number, the longer a block takes."""


def test_the_first_fault_is_that_of_the_lowest_block(threads: list[int]) -> None:
    body = THREAD + pointer("%rd0", "x") + SLOW + "st.global.u32 [%rd0], %r0;\nret;"
    x = np.zeros(32 * 37 + 5, np.uint32)
    for _ in range(10):
        with pytest.raises(MemoryFault, match=r"store to x\[1189\]") as caught:
            launch(kernel("u64 x", body), 400, 32, x=x)
        assert (caught.value.block, caught.value.thread) == ((37, 0, 0), (5, 0, 0))
    assert len(set(threads)) > 1


def test_no_block_starts_behind_a_fault(threads: list[int]) -> None:
    body = THREAD + pointer("%rd0", "x", "%r0") + """
        mov.u32 %r3, %ctaid.x; setp.eq.u32 %p1, %r3, 3; @%p1 trap;
        mov.u32 %r4, 300000;
        SPIN: mad.lo.u32 %r3, %r3, %r3, 1; sub.u32 %r4, %r4, 1; setp.ne.u32 %p2, %r4, 0; @%p2 bra SPIN;
        or.b32 %r3, %r3, 1; st.global.u32 [%rd0], %r3; ret;
    """  # long blocks, or a thread that has to wait for a core would find all of them done
    x = np.zeros(4000 * 32, np.uint32)
    with pytest.raises(TrapError):
        launch(kernel("u64 x", body), 4000, 32, x=x)
    assert np.count_nonzero(x) < x.size // 2, "the others have gone on"
    assert threads


def test_a_fault_ends_a_wait_for_it(threads: list[int]) -> None:
    """Block 0 polls for what block 1 would write, which traps instead."""
    body = THREAD + """
        ld.param.u64 %rd1, [x]; mov.u32 %r3, %ctaid.x; setp.ne.u32 %p1, %r3, 0; @%p1 trap;
        WAIT: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p2, %r5, 0; @%p2 bra WAIT; ret;
    """
    with pytest.raises(TrapError) as caught:
        launch(kernel("u64 x", body), 2, 32, x=np.zeros(1, np.uint32))
    assert caught.value.block == (1, 0, 0)
    assert threads


def test_prints_come_in_the_order_of_blocks(threads: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    text = HEADER + """
        .extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
        .global .align 1 .b8 text[10] = {98, 108, 111, 99, 107, 32, 37, 100, 10, 0};
        .visible .entry k() {
            .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p;
            .local .align 8 .b8 arguments[8];
            mov.u32 %r1, %tid.x; setp.ne.u32 %p, %r1, 0; @%p ret;
            mov.u32 %r2, %ctaid.x; rem.u32 %r3, %r2, 7; setp.ne.u32 %p, %r3, 0; @%p ret;
            mov.u64 %rd1, arguments; st.local.u32 [%rd1], %r2;
            cvta.local.u64 %rd1, %rd1; mov.u64 %rd2, text; cvta.global.u64 %rd2, %rd2;
            { .param .b64 a; .param .b64 b; .param .b32 r;
              st.param.b64 [a], %rd2; st.param.b64 [b], %rd1; call (r), vprintf, (a, b); }
            ret;
        }
    """
    launch(text, 2000, 32)
    assert capsys.readouterr().out.splitlines() == [f"block {n}" for n in range(0, 2000, 7)]
    assert set(threads) == {threading.get_ident()}


def test_a_racy_index_is_a_fault_and_no_crash(threads: list[int]) -> None:
    """Blocks overwrite what others take for an index: whatever they read, it is checked before it is used."""
    body = THREAD + """
        ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r9, 200;
    LOOP:
        and.b32 %r3, %r0, 63; mul.wide.u32 %rd3, %r3, 4; add.u64 %rd3, %rd1, %rd3;
        st.global.u32 [%rd3], %r0; ld.global.u32 %r4, [%rd3];
        mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd2, %rd4; st.global.u32 [%rd4], 1;
        mad.lo.u32 %r0, %r0, 5, 1; and.b32 %r0, %r0, 1023; sub.u32 %r9, %r9, 1;
        setp.ne.u32 %p1, %r9, 0; @%p1 bra LOOP;
        mov.u32 %r5, %ctaid.x; setp.lt.u32 %p2, %r5, 390; @%p2 ret; st.global.u32 [%rd1], 4096; bra LOOP;
    """
    x, y = np.zeros(64, np.uint32), np.zeros(1024, np.uint32)
    with pytest.raises(MemoryFault, match="(end of|store to) y"):
        launch(kernel("u64 x, u64 y", body), 400, 64, x=x, y=y)
    assert threads


@pytest.mark.parametrize("workers", [1, WORKERS])
def test_an_interrupt_ends_a_launch(workers: int, threads: list[int]) -> None:
    body = "mov.u64 %rd0, 0; LOOP: add.u64 %rd0, %rd0, 1; bra LOOP;"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with override(emulator_threads=workers), pytest.raises(KeyboardInterrupt):
            launch(kernel("", body), 8, 64)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    count = len(threads)
    timer.join(0.05)
    assert len(threads) == count, "no thread is left"
    assert len(set(threads)) == workers


def test_what_goes_wrong_on_another_thread_is_raised_here(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    here, run = threading.get_ident(), BlockState.run

    def failing(self: BlockState, turns: int) -> int:
        status = run(self, turns)
        if threading.get_ident() != here:
            raise MemoryError("none left")
        return status

    monkeypatch.setattr(BlockState, "run", failing)
    text = kernel("", THREAD + SLOW + "ret;")
    with pytest.raises(MemoryError, match="none left"):
        launch(text, 400, 32)
    assert threads


def test_one_worker_gives_the_same_sum_again() -> None:
    """Floats are added in the order of the blocks."""
    rng = np.random.default_rng()
    x = rng.standard_normal(256 * 300).astype(np.float32)
    body = THREAD + pointer("%rd0", "x") + """
        ld.param.u64 %rd1, [sum]; ld.global.f32 %f0, [%rd0]; red.global.add.f32 [%rd1], %f0; ret;
    """
    found = []
    with override(emulator_threads=1):
        for _ in range(3):
            total = np.zeros(1, np.float32)
            launch(kernel("u64 x, u64 sum", body), 300, 256, x=x, sum=total)
            found.append(total[0])
    assert found[0] == found[1] == found[2]
    assert abs(found[0] - x.sum(dtype=np.float64)) < 0.05


def test_errors_of_the_emulator_come_from_any_thread(threads: list[int]) -> None:
    """New code, for lanes that wait for lanes of their own warp, is made on whichever thread needs it."""
    body = THREAD + """
        .shared .align 4 .b32 flag; mov.u32 %r5, flag; st.shared.u32 [%r5], 0; bar.sync 0;
        setp.eq.u32 %p1, %r2, 0; @%p1 bra WRITE;
        WAIT: ld.volatile.shared.u32 %r4, [%r5]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT; bra DONE;
        WRITE: st.volatile.shared.u32 [%r5], 1;
        DONE:
    """ + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r0; ret;"
    x = np.zeros(64 * 40, np.uint32)
    launch(kernel("u64 x", body), 40, 64, x=x)
    assert (x == np.arange(x.size)).all()
    assert len(set(threads)) > 1
    with pytest.raises(EmulationError):
        launch(kernel("", "trap;"), 40, 64)


def test_a_second_tier_that_cannot_be_made_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong in the thread that makes it, the launches go on, and one of them says so."""
    tried = threading.Event()

    def failing(_: Any) -> None:
        tried.set()
        raise ValueError("no such pass")

    monkeypatch.setattr(compilation, "tier_up", failing)
    monkeypatch.setattr(tier_up, "SECONDS", 0.0)
    monkeypatch.setattr(tier_up, "SECONDS_A_MICRO_OP", 0.0)
    text = kernel("u64 x", THREAD + pointer("%rd0", "x") + "st.global.u32 [%rd0], 9;\nret;", name="tepid")
    x = np.zeros(64, np.uint32)

    def launches() -> None:
        for _ in range(3):
            launch(text, 1, 64, x=x)
            assert tried.wait(PATIENCE)
            for thread in threading.enumerate():
                if thread.name == tier_up.THREAD:
                    thread.join()

    with pytest.warns(PtxWarning) as told:
        launches()
    assert (x == 9).all()
    assert [str(warning.message) for warning in told] == [
        ("kernel `tepid` stays in the emulator's first tier, which is right but slower: "
         "making the second failed with ValueError('no such pass')"),
    ]


@pytest.mark.parametrize(("variable", "setting", "found"), [
    (None, None, 6), ("", None, 6), ("4", None, 4), ("9", None, 6), ("2,3", None, 2), ("0", None, 6), ("many", None, 6),
    ("4", 5, 5), (None, 9, 9),
])
def test_threads_of_a_process_that_shares_the_cores(
    variable: str | None, setting: int | None, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if variable is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", variable)
    with override(emulator_threads=setting):
        assert cores() == found
