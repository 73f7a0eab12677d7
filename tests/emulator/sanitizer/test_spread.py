"""Sanitized launches on several host threads: the findings are those of one, whoever comes first."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ptxdsl
import pytest
from ptxdsl import Ptr, ptx, ptx_kernel, shared, u32, when
from ptxdsl.config import override
from ptxdsl.emulator.runtime import worker_pool
from ptxdsl.emulator.runtime.block_state import BlockState
from ptxdsl.emulator.sanitizer import spread
from ptxdsl.emulator.sanitizer.sanitizer import collect

BLOCKS, THREADS = 24, 64
N = BLOCKS * THREADS
Attempts = list[tuple[bool, int]]


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    """Every launch is worth two threads, a block at a time; whether each attempt held, and on how many threads."""
    found: Attempts = []
    attempt, switch, make = spread._attempt, spread._Threads.switch, spread._Threads._mine
    caller, joined, threads = threading.get_ident(), threading.Event(), [0]

    def noted(*arguments: Any) -> bool:
        joined.clear()
        held = attempt(*arguments)
        found.append((held, threads[0]))
        return held

    def slow(self: spread._Threads, state: BlockState) -> None:
        switch(self, state)
        if threading.get_ident() != caller:
            joined.set()
        else:
            joined.wait(60)  # the launch is not to be over before the other thread has run a block
        if random.random() < 0.2:
            time.sleep(random.random() * 1e-4)

    def mine(self: spread._Threads) -> Any:
        memory = make(self)
        threads[0] = len(self.memories)
        return memory

    for name, value in (("WORTH", 0.0), ("SHARE", float("inf")), ("PAUSE", 0), ("_attempt", noted)):
        monkeypatch.setattr(spread, name, value)
    monkeypatch.setattr(spread._Threads, "switch", slow)
    monkeypatch.setattr(spread._Threads, "_mine", mine)
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-12)
    monkeypatch.setattr(worker_pool, "SURE_SECONDS", 0.0)
    monkeypatch.setattr(worker_pool, "first_slice", lambda _: 1)
    return found


def compared(launch: Callable[..., None], *arguments: Any) -> list[dict[str, object]]:
    """What one thread finds in the second launch of a kernel; two find the same, and leave the same memory."""
    results = []
    for threads in (1, 1, 2):
        mine = [np.copy(each) for each in arguments]
        with override(emulator_threads=threads), collect() as findings:
            launch(*mine)
        results.append(([each.record() for each in findings], [each.tobytes() for each in mine]))
    assert results[1] == results[2]
    return results[1][0]


@ptx_kernel
def scatter(index: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    out[index[i]] = i


@ptx_kernel
def accumulate(index: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    out[index[i]] = out[index[i]] + i


@ptx_kernel
def look(index: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    out[i] = out[index[i]] + 1


@ptx_kernel
def tile_of_some(index: Ptr[u32], out: Ptr[u32]) -> None:
    """What an index of 2^16 and more leaves out is not written."""
    tile, t = shared(u32, THREADS), ptx.tid.x
    i = ptx.ctaid.x * ptx.ntid.x + t
    with when(index[i] < 1 << 16):
        tile[t] = i
    ptx.bar.sync(0)
    out[i] = tile[t ^ 1]


@ptx_kernel
def shuffled_tile(index: Ptr[u32], out: Ptr[u32]) -> None:
    tile = shared(u32, THREADS)
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    tile[index[i] % THREADS] = i
    ptx.bar.sync(0)
    out[index[i]] = tile[ptx.tid.x ^ 1]


def permutation(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return rng.permutation(N).astype(np.uint32)


def within_blocks(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    return np.concatenate([rng.permutation(THREADS) + THREADS * block for block in range(BLOCKS)]).astype(np.uint32)


def straight(_: np.random.Generator) -> np.ndarray[Any, Any]:
    return np.arange(N, dtype=np.uint32)


def of_another_block(index: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    one, other = rng.permutation(BLOCKS)[:2] * THREADS + rng.integers(0, THREADS, 2)
    index[one] = index[other]


def of_the_same_block(index: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    block = rng.integers(BLOCKS) * THREADS
    one, other = block + rng.permutation(THREADS)[:2]
    index[one] = index[other]


def outside(index: np.ndarray[Any, Any], rng: np.random.Generator) -> None:
    index[rng.integers(N)] = (1 << 16) + N


@pytest.mark.parametrize(("kernel", "right", "wrong", "kind"), [
    (scatter, permutation, of_another_block, "race"), (accumulate, permutation, of_another_block, "race"),
    (look, straight, of_another_block, "race"), (scatter, permutation, outside, "memory"),
    (tile_of_some, permutation, outside, "init"), (shuffled_tile, within_blocks, of_the_same_block, "race"),
    (shuffled_tile, within_blocks, outside, "memory"),
])
def test_findings_are_those_of_one_thread(
    attempts: Attempts, kernel: Any, right: Any, wrong: Any, kind: str
) -> None:
    launch = kernel.configure(BLOCKS, THREADS, sanitize="all", backend="emulator")
    for _ in range(4):
        rng = np.random.default_rng()
        index, out = right(rng), rng.integers(0, 1000, N, np.uint32)
        assert not compared(launch, index, out)
        assert attempts.pop() == (True, 2)
        for _ in range(rng.integers(1, 4)):
            wrong(index, rng)
        found = compared(launch, index, out)
        assert kind in {each["kind"] for each in found}
        assert attempts.pop()[0] is False


@ptx_kernel
def tickets(counter: Ptr[u32], out: Ptr[u32]) -> None:
    ticket = ptx.atom.global_.add.u32(counter, 1)
    out[ticket] = ptx.ctaid.x


@ptx_kernel
def counted(counter: Ptr[u32], index: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    ptx.red.global_.add.u32(counter, 1)
    out[index[i]] = i


@ptx_kernel
def some_strong(index: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(ptx.tid.x != 0):
        out[index[i]] = i
    with when(ptx.tid.x == 0):
        ptx.red.global_.add.u32(out + index[i], 1)


def test_kernels_that_see_an_order_of_blocks_stay_on_one_thread(attempts: Attempts) -> None:
    index, out, counter = permutation(np.random.default_rng()), np.zeros(N, np.uint32), np.zeros(1, np.uint32)
    options = {"sanitize": "all", "backend": "emulator"}
    for threads in (1, 2, 2):
        with override(emulator_threads=threads):
            tickets.configure(BLOCKS, THREADS, **options)(np.zeros_like(counter), out)
            some_strong.configure(BLOCKS, THREADS, **options)(index, out)
            scatter.configure(BLOCKS, THREADS, seed=3, **options)(index, out)
    assert not attempts
    for threads in (1, 2, 2):
        with override(emulator_threads=threads):
            counted.configure(BLOCKS, THREADS, **options)(counter, index, out)
    assert attempts == [(True, 2)] * 2
    assert counter[0] == 3 * N


def test_what_is_unwritten_after_a_launch_is_what_no_thread_wrote(attempts: Attempts) -> None:
    index = permutation(np.random.default_rng())
    kept = np.arange(N) % 7 == 0
    index[kept] = index[~kept][0]
    with ptxdsl.use("emulator"):
        launch = some_of.configure(BLOCKS, THREADS, sanitize="all")
        for threads in (1, 2, 2):
            out = ptxdsl.empty(N, np.uint32)
            with override(emulator_threads=threads):
                launch(index, out)
        assert attempts[-1] == (True, 2)
        written = np.zeros(N, bool)
        written[index[~kept]] = True
        missing = int(np.flatnonzero(~written)[0])
        read = take.configure(1, 1, sanitize="all")
        read(int(np.flatnonzero(written)[-1]), out, np.zeros(1, np.uint32))
        with pytest.raises(ptxdsl.UninitializedError):
            read(missing, out, np.zeros(1, np.uint32))


@ptx_kernel
def some_of(index: Ptr[u32], out: Ptr[u32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    with when(i % 7 != 0):
        out[index[i]] = i


@ptx_kernel
def take(i: u32, x: Ptr[u32], out: Ptr[u32]) -> None:
    out[0] = x[i]


def test_a_kernel_that_had_to_begin_again_pauses(attempts: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "PAUSE", 3)
    index, out = permutation(np.random.default_rng()), np.zeros(N, np.uint32)
    wrong = index.copy()
    wrong[-1] = wrong[0]
    launch = scatter.configure(BLOCKS, THREADS, sanitize=("race", "init"), backend="emulator")
    for number, each in enumerate((index, wrong, *4 * [index])):
        with override(emulator_threads=2 if number else 1), collect():
            launch(each, out)
    assert [held for held, _ in attempts] == [False, True]


def test_arrays_of_an_attempt_that_failed_are_as_they_were(attempts: Attempts) -> None:
    index, out = permutation(np.random.default_rng()), np.zeros(N, np.uint32)
    expected = np.zeros(N, np.uint32)
    index[5] = index[5 + THREADS]
    np.add.at(expected, index, np.arange(N, dtype=np.uint32))
    launch = accumulate.configure(BLOCKS, THREADS, sanitize="all", backend="emulator")
    with override(emulator_threads=1):
        launch(permutation(np.random.default_rng()), np.zeros_like(out))
    with override(emulator_threads=2), collect() as findings:
        launch(index, out)
    assert len(findings) == 1
    assert attempts == [(False, attempts[0][1])]
    assert (out == expected).all()


def test_each_worker_has_a_number_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first worker to be started may start the next one at once."""
    from ptxdsl.emulator.runtime import host_threads

    start, work, numbers = host_threads.start, worker_pool.WorkerPool._worker, []

    def waiting(what: Callable[[], object]) -> None:
        start(what)
        time.sleep(0.01)

    def noted(self: worker_pool.WorkerPool, worker: int) -> None:
        numbers.append(worker)
        self.wake()
        work(self, worker)

    monkeypatch.setattr(host_threads, "start", waiting)
    monkeypatch.setattr(worker_pool.WorkerPool, "_worker", noted)
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-12)
    monkeypatch.setattr(worker_pool, "first_slice", lambda _: 1)
    launch = scatter.configure(BLOCKS, THREADS, backend="emulator")
    with override(emulator_threads=2):
        for _ in range(3):
            launch(permutation(np.random.default_rng()), np.zeros(N, np.uint32))
    assert numbers
    assert set(numbers) == {1}
