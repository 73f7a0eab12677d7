"""Clusters on several host threads: results and faults are those of one thread, and clusters wait for earlier ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
import ptxdsl
import pytest
from emulator_harness import argument, kernel
from synchronisation_kernels import FETCHES, LINEAR, ROTATE

from ptxdsl import emulator
from ptxdsl.config import override
from ptxdsl.errors import DeadlockError, EmulationError, TrapError
from ptxdsl.emulator.runtime import alone, cluster_pool, worker_pool
from ptxdsl.emulator.runtime.cluster_pool import ClusterPool
from ptxdsl.emulator.runtime.clusters import Clusters
from ptxdsl.emulator.tools import profile as profile_module
from ptxdsl.launch import LaunchConfig

PATIENCE = 60.0


def run(text: str, grid: Any, block: Any, cluster: Any, **arguments: Any) -> None:
    given = [argument(name, value) for name, value in arguments.items()]
    emulator.load(text).run("k", LaunchConfig(grid, block, cluster=cluster), given)


@pytest.fixture(params=[2, 3])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """So many host threads, of which a second one has begun before the caller runs its second cluster, or its first,
    and the caller before it ends one.
    """
    seen: list[int] = []
    another, caller = threading.Event(), threading.Event()
    run_one, here = Clusters.run, threading.get_ident()

    def noted(self: Clusters, number: int, count: int) -> None:
        assert count == 1
        seen.append(threading.get_ident())
        if seen[-1] != here:
            another.set()
            assert caller.wait(PATIENCE)
        else:
            caller.set()
            assert not self.pool.woken or another.wait(PATIENCE)
        run_one(self, number, count)

    monkeypatch.setattr(cluster_pool, "FAST", 0.0)
    monkeypatch.setattr(cluster_pool, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-12)
    monkeypatch.setattr(Clusters, "run", noted)
    with override(emulator_threads=request.param):
        yield seen


@pytest.mark.parametrize("how", FETCHES)
def test_each_block_reads_the_next(threads: list[int], how: str) -> None:
    out = np.zeros((48, 64), np.uint32)
    run(kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=FETCHES[how])), 48, 64, 4, out=out)
    blocks = np.arange(48)
    assert (out == ((blocks + 1) % 4 + blocks // 4 * 4)[:, None] * 1000 + np.arange(64)).all()
    assert len(set(threads)) > 1
    assert len(threads) == 12


def test_the_fault_is_that_of_one_thread(threads: list[int]) -> None:
    """Clusters before it run to their ends, whichever fails first."""
    text = kernel("u64 out, u64 fails", LINEAR + """
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r55, 4, %rd0; st.global.u32 [%rd0], 1;
        barrier.cluster.arrive; barrier.cluster.wait;
        ld.param.u64 %rd1, [fails]; mad.wide.u32 %rd1, %r55, 4, %rd1; ld.global.u32 %r1, [%rd1];
        setp.ne.u32 %p1, %r1, 0; @%p1 trap; st.global.u32 [%rd0], 2; ret;
    """)
    for fails in ((9,), (9, 15), (6, 9, 30), (31,)):
        given, out = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
        given[list(fails)] = 1
        with pytest.raises(TrapError) as raised:
            run(text, 32, 1, 2, out=out, fails=given)
        assert raised.value.block == (fails[0], 0, 0)
        first = fails[0] // 2 * 2
        assert (out[:first] == 2).all()
    assert len(set(threads)) > 1


WAITS = LINEAR + """
    .reg .u32 %n; ld.param.u64 %rd0, [flags]; mad.wide.u32 %rd1, %r55, 4, %rd0;
    setp.lt.u32 %p1, %r55, 4; @%p1 bra DONE; sub.u32 %n, %r55, 4; mad.wide.u32 %rd2, %n, 4, %rd0;
    WAIT: ld.relaxed.gpu.global.u32 %r1, [%rd2]; setp.eq.u32 %p2, %r1, 0; @%p2 bra WAIT;
    DONE: barrier.cluster.arrive; barrier.cluster.wait; add.u32 %r2, %r55, 1;
    st.relaxed.gpu.global.u32 [%rd1], %r2; ret;
"""


def test_clusters_wait_for_earlier_ones(threads: list[int]) -> None:
    flags = np.zeros(64, np.uint32)
    run(kernel("u64 flags", WAITS), 64, 1, 2, flags=flags)
    assert (flags == np.arange(64) + 1).all()
    assert len(set(threads)) > 1


def test_a_wait_for_ever_is_found(threads: list[int]) -> None:
    """Blocks 6 and 10 wait for what nobody writes; it is told of the first, as by one thread."""
    text = WAITS.replace("st.relaxed", "setp.eq.u32 %p3, %r55, 2; @%p3 exit; st.relaxed")
    with pytest.raises(DeadlockError) as raised:
        run(kernel("u64 flags", text), 12, 1, 2, flags=np.zeros(12, np.uint32))
    assert raised.value.block == (6, 0, 0)
    assert len(set(threads)) > 1


@pytest.mark.parametrize("interrupted", [0, 1])
def test_an_interruption_ends_all(threads: list[int], monkeypatch: pytest.MonkeyPatch, interrupted: int) -> None:
    pools: list[ClusterPool] = []
    ahead, raised = Clusters._run_ahead, threading.Event()

    def failing(self: Clusters, number: int, end: int) -> None:
        pools.append(self.pool)
        caller = threading.current_thread() is threading.main_thread()
        if self.pool.woken or not caller:
            if caller is not bool(interrupted):
                raised.set()
                raise KeyboardInterrupt
            raised.wait(PATIENCE)  # or all would be over before the other thread comes
        ahead(self, number, end)

    monkeypatch.setattr(Clusters, "_run_ahead", failing)
    text = kernel("u64 flags", WAITS)
    with pytest.raises(KeyboardInterrupt):
        run(text, 64, 1, 2, flags=np.zeros(64, np.uint32))
    assert not pools[0].running
    assert len(set(threads)) > 1


def test_atomics_lock_beside_another_host_thread(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []
    note = Clusters._note_locks
    monkeypatch.setattr(alone, "_several", False)
    monkeypatch.setattr(Clusters, "_note_locks", lambda self, locks: (
        seen.append((threading.get_ident(), locks)), note(self, locks)
    ))
    total = np.zeros(1, np.uint32)
    run(kernel("u64 total", "ld.param.u64 %rd0, [total]; red.global.add.u32 [%rd0], 3; ret;"), 64, 32, 2, total=total)
    assert total[0] == 64 * 32 * 3
    others = [locks for thread, locks in seen if thread != threading.get_ident()]
    assert others
    assert all(others)


def test_short_clusters_have_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Python does for each is most of their time, or they are over before another thread is ready."""
    started: list[Any] = []
    monkeypatch.setattr(cluster_pool.host_threads, "start", started.append)
    out = np.zeros((48, 64), np.uint32)
    text = kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=next(iter(FETCHES.values()))))
    with override(emulator_threads=4):
        for fast, seconds in ((0.0, 1e9), (1.0, 0.0)):
            monkeypatch.setattr(cluster_pool, "FAST", fast)
            monkeypatch.setattr(worker_pool, "WAKE_SECONDS", seconds)
            run(text, 48, 64, 4, out=out)
    assert not started


def test_an_error_of_the_emulator_is_raised(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    ahead = Clusters._run_ahead

    def failing(self: Clusters, number: int, end: int) -> None:
        if number >= 5:
            raise EmulationError(f"no cluster {number}")
        ahead(self, number, end)

    monkeypatch.setattr(Clusters, "_run_ahead", failing)
    with pytest.raises(EmulationError, match="no cluster 5"):
        run(kernel("u64 flags", WAITS), 64, 1, 2, flags=np.zeros(64, np.uint32))
    assert threads


def test_a_thread_that_begins_when_the_launch_is_over_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was started before a cluster failed: then others have the memory of the launch."""
    started: list[Any] = []
    monkeypatch.setattr(cluster_pool.host_threads, "start", started.append)
    monkeypatch.setattr(cluster_pool, "FAST", 0.0)
    monkeypatch.setattr(cluster_pool, "BATCH_SECONDS", 0.0)
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 0.0)
    text = kernel("u64 out", LINEAR + """
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r55, 4, %rd0; setp.eq.u32 %p1, %r55, 3;
        barrier.cluster.arrive; barrier.cluster.wait; @%p1 trap; st.global.u32 [%rd0], 2; ret;
    """)
    out = np.zeros(16, np.uint32)
    with override(emulator_threads=2), pytest.raises(TrapError):
        run(text, 16, 1, 2, out=out)
    assert len(started) == 1
    started[0]()
    assert (out[:2] == 2).all()
    assert not out[4:].any()


def test_a_profile_counts_what_one_thread_counts(threads: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code goes from block to block as Python does, which is taken for right here."""
    text = kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=next(iter(FETCHES.values()))))
    counted, python = [], mock.Mock(wraps=Clusters._run)
    monkeypatch.setattr(Clusters, "_run", lambda self, *arguments: python(self, *arguments))
    for compiled, workers in ((False, 1), (True, 1), (True, 2)):
        monkeypatch.setattr(profile_module._Counts, "compiled_turns", compiled)
        out = np.zeros((48, 64), np.uint32)
        python.reset_mock()
        with override(emulator_threads=workers), ptxdsl.profile() as p:
            run(text, 48, 64, 4, out=out)
        counted.append(p.table(by="instruction", sort="source"))
        assert python.called is not compiled
    assert counted[0] == counted[1] == counted[2]
    assert len(set(threads)) > 1


def test_a_launch_that_is_known_to_be_long_has_both_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(cluster_pool.host_threads, "start", lambda _: started.append(pools[-1].done))
    pools: list[ClusterPool] = []
    begin = ClusterPool.run
    monkeypatch.setattr(ClusterPool, "run", lambda self: (pools.append(self), begin(self)))
    monkeypatch.setattr(cluster_pool, "FAST", 0.0)
    monkeypatch.setattr(worker_pool, "WAKE_SECONDS", 1e-12)
    text = kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=next(iter(FETCHES.values()))) + "// its own")
    with override(emulator_threads=2):
        for _ in range(2):
            run(text, 48, 64, 4, out=np.zeros((48, 64), np.uint32))
    assert started[0] > 0
    assert started[1] == 0
