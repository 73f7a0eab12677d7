"""Sanitized clusters on several host threads: findings and results are those of one."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from ptxdsl import Ptr, cluster, ptx, ptx_kernel, shared, u32

from ptxdsl.config import override
from ptxdsl.emulator.runtime import cluster_pool, worker_pool
from ptxdsl.emulator.runtime.clusters import Clusters
from ptxdsl.emulator.sanitizer import spread
from ptxdsl.emulator.sanitizer.sanitizer import collect

BLOCKS, THREADS = 24, 64


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """Every launch is worth two threads, a cluster at a time; whether each attempt held, and on how many threads."""
    found: list[tuple[bool, int]] = []
    attempt, run, here = spread._attempt, Clusters.run, threading.get_ident()
    seen: set[int] = set()
    another = threading.Event()

    def noted(*arguments: Any) -> bool:
        another.clear()
        seen.clear()
        held = attempt(*arguments)
        found.append((held, len(seen)))
        return held

    def one(self: Clusters, number: int, count: int) -> None:
        seen.add(threading.get_ident())
        if threading.get_ident() != here:
            another.set()
        elif self.pool.woken:
            another.wait(60)  # the launch is not to be over before the other thread has run a cluster
        run(self, number, count)

    for module, name, value in (
        (spread, "WORTH", 0.0), (spread, "SHARE", float("inf")), (spread, "PAUSE", 0), (spread, "_attempt", noted),
        (cluster_pool, "FAST", 0.0), (cluster_pool, "BATCH_SECONDS", 0.0), (worker_pool, "WAKE_SECONDS", 1e-12),
        (Clusters, "run", one),
    ):
        monkeypatch.setattr(module, name, value)
    return found


def compared(kernel: Any, *arguments: Any, size: Any = 4, blocks: int = BLOCKS) -> list[dict[str, object]]:
    """What one thread finds; two find the same, and leave the same memory."""
    results = []
    launch = kernel.configure(blocks, THREADS, cluster=size, sanitize=("race", "init"), backend="emulator")
    for threads in (1, 2, 2):
        mine = [np.copy(each) for each in arguments]
        with override(emulator_threads=threads), collect() as findings:
            launch(*mine)
        results.append(([each.record() for each in findings], [each.tobytes() for each in mine]))
    assert results[0] == results[1] == results[2]
    return results[0][0]


@ptx_kernel
def turned(x: Ptr[u32], y: Ptr[u32], *, apart: bool) -> None:
    """Each block reads what the next one of its cluster has stored, at places that no proof knows."""
    mine = shared(u32, THREADS)
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    mine[ptx.tid.x ^ (x[i] >> 31)] = x[i] * 3
    if apart:
        cluster.arrive()
        x[i] = ptx.tid.x
        cluster.wait()
    else:
        cluster.sync()
    y[i] = cluster.at(mine, (cluster.rank() + 1) % cluster.size())[ptx.tid.x]
    cluster.sync()


@ptx_kernel
def counted(x: Ptr[u32], bins: Ptr[u32]) -> None:
    """A histogram in the shared memory of two blocks, added up in global memory, at places that no proof knows."""
    mine = shared(u32, THREADS)
    bin_ = x[ptx.ctaid.x * ptx.ntid.x + ptx.tid.x] % (2 * THREADS)
    mine[ptx.tid.x ^ (bin_ >> 31)] = 0
    cluster.sync()
    place = cluster.at(mine, bin_ // THREADS)
    ptx.red.shared__cluster.add.u32(place.at(bin_ % THREADS), 1)
    cluster.sync()
    ptx.red.global_.add.u32(bins + cluster.rank() * THREADS + ptx.tid.x, mine[ptx.tid.x])


@ptx_kernel
def clashing(x: Ptr[u32], y: Ptr[u32]) -> None:
    """Two clusters write one place."""
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    y[i % (4 * THREADS * 5)] = x[i]
    cluster.sync()


@ptx_kernel
def unmet(x: Ptr[u32], y: Ptr[u32]) -> None:
    """No barrier before the other block's memory is read."""
    mine = shared(u32, THREADS)
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    mine[ptx.tid.x] = x[i]
    y[i] = cluster.at(mine, (cluster.rank() + 1) % cluster.size())[ptx.tid.x]
    cluster.sync()


@pytest.mark.parametrize(("apart", "size"), [(False, 4), (True, 3), (False, 1), (False, 8)])
def test_blocks_that_read_each_other(attempts: list[tuple[bool, int]], apart: bool, size: int) -> None:
    x = np.arange(BLOCKS * THREADS, dtype=np.uint32)
    launch = _With(turned, apart)
    assert compared(launch, x, np.zeros_like(x), size=size) == []
    assert [held for held, _ in attempts] == [True, True]
    assert max(threads for _, threads in attempts) == 2


class _With:
    """A kernel with its constant."""

    def __init__(self, kernel: Any, apart: bool) -> None:
        self.kernel, self.apart = kernel, apart

    def configure(self, *arguments: Any, **options: Any) -> Any:
        made = self.kernel.configure(*arguments, **options)
        return lambda *given: made(*given, apart=self.apart)


def test_a_histogram(attempts: list[tuple[bool, int]], rng: np.random.Generator) -> None:
    x, bins = rng.integers(0, 1 << 30, BLOCKS * THREADS, np.uint32), np.zeros(2 * THREADS, np.uint32)
    assert compared(counted, x, bins, size=2) == []
    assert max(attempts) == (True, 2)


@pytest.mark.parametrize("kernel", [clashing, unmet])
def test_wrong_ones_are_told_by_one_thread(attempts: list[tuple[bool, int]], kernel: Any) -> None:
    x = np.arange(BLOCKS * THREADS, dtype=np.uint32)
    assert {each["kind"] for each in compared(kernel, x, np.zeros_like(x))} >= {"race"}
    assert not any(held for held, _ in attempts)
