"""Clusters that compiled code runs one after the other: the results, faults and hand-overs are those of single ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from synchronisation_kernels import FETCHES, LINEAR, ROTATE

from ptxdsl import emulator
from ptxdsl.config import override
from ptxdsl.errors import DeadlockError, MemoryFault, TrapError
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.runtime import cluster_pool
from ptxdsl.emulator.runtime.clusters import Clusters
from ptxdsl.launch import LaunchConfig


@pytest.fixture(params=["handlers", "block function"])
def batches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[bool, list[int]]]:
    """Whether kernels are compiled, and how many clusters a host thread has taken at a time."""
    seen: list[int] = []
    run_all = Clusters.run

    def noted(self: Clusters, first: int, count: int) -> None:
        seen.append(count)
        run_all(self, first, count)

    monkeypatch.setattr(cluster_pool, "BATCH_SECONDS", 1e9)
    monkeypatch.setattr(Clusters, "run", noted)
    with override(emulator_threads=1):
        yield request.param == "block function", seen


def run(text: str, grid: Any, block: Any, cluster: tuple[int, int, int], second: bool, **arguments: Any) -> None:
    program = emulator.load(text)
    config = LaunchConfig(grid, block, cluster=cluster)
    code = program.code("k", config.block, cluster=cluster)
    code.pace = 1e-9
    if second:
        assert compile_block_function(code), code.refusal
    program.run("k", config, [argument(name, value) for name, value in arguments.items()])


SHAPES = ((4, 1, 1), (2, 3, 1), (4, 2, 2))


@pytest.mark.parametrize(("how", "cluster"), [*zip(FETCHES, 2 * SHAPES)])
def test_each_block_reads_the_next(batches: tuple[bool, list[int]], how: str, cluster: tuple[int, int, int]) -> None:
    grid = tuple(extent * times for extent, times in zip(cluster, (5, 3, 2)))
    blocks, size = int(np.prod(grid)), int(np.prod(cluster))
    out = np.zeros((blocks, 64), np.uint32)
    run(kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=FETCHES[how])), grid, 64, cluster, batches[0], out=out)
    place = np.stack(np.unravel_index(np.arange(blocks), grid[::-1])[::-1], 1)
    inside = place % cluster
    rank = inside[:, 0] + cluster[0] * (inside[:, 1] + cluster[1] * inside[:, 2])
    other = (rank + 1) % size
    moved = np.stack([other % cluster[0], other // cluster[0] % cluster[1], other // (cluster[0] * cluster[1])], 1)
    there = place - inside + moved
    number = there[:, 0] + grid[0] * (there[:, 1] + grid[1] * there[:, 2])
    assert (out == number[:, None] * 1000 + np.arange(64)).all()
    assert batches[1][-1] == blocks // size


POLLS = """
    .shared .align 4 .b32 flag; mov.u32 %r1, %cluster_ctarank; st.shared.u32 [flag], 0;
    barrier.cluster.arrive; barrier.cluster.wait;
    ld.param.u64 %rd1, [asked]; mad.wide.u32 %rd1, %r50, 4, %rd1; ld.global.u32 %r2, [%rd1];
    mov.u32 %r4, 7; setp.eq.u32 %p1, %r2, 0; @%p1 bra DONE; setp.eq.u32 %p2, %r2, 2; @%p2 trap;
    setp.eq.u32 %p3, %r1, 0; @%p3 bra POLL;
    mapa.shared::cluster.u32 %r3, flag, 0; st.relaxed.cluster.shared::cluster.u32 [%r3], 9; bra DONE;
    POLL: ld.relaxed.cluster.shared.u32 %r4, [flag]; setp.eq.u32 %p4, %r4, 0; @%p4 bra POLL;
    DONE: barrier.cluster.arrive; barrier.cluster.wait;
    ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r50, 4, %rd0; st.global.u32 [%rd0], %r4; ret;
"""


def test_python_goes_on_where_blocks_poll(batches: tuple[bool, list[int]]) -> None:
    """Some clusters wait for a flag of another block, which takes time slices; the others are done ahead."""
    asked = np.repeat(np.random.default_rng().integers(0, 2, 40, np.uint32), 2)
    out = np.zeros(80, np.uint32)
    run(kernel("u64 asked, u64 out", LINEAR + POLLS), 80, 32, (2, 1, 1), batches[0], asked=asked, out=out)
    assert (out == np.where((asked == 1) & (np.arange(80) % 2 == 0), 9, 7)).all()
    assert batches[1] == [40]


def test_a_fault_in_the_middle(batches: tuple[bool, list[int]]) -> None:
    asked = np.zeros(80, np.uint32)
    asked[[4, 5, 53, 70]] = 1, 1, 2, 2
    out = np.zeros(80, np.uint32)
    with pytest.raises(TrapError) as raised:
        run(kernel("u64 asked, u64 out", LINEAR + POLLS), 80, 32, (2, 1, 1), batches[0], asked=asked, out=out)
    assert raised.value.block == (53, 0, 0)
    assert out[:52].all() and not out[53:].any()


def test_each_cluster_reaches_its_own_blocks_until_they_end(batches: tuple[bool, list[int]]) -> None:
    """A block ends early in every cluster: the memory of the next one's is there again; a late access is a fault."""
    text = LINEAR + """
        .shared .align 4 .b32 cell; mov.u32 %r1, %cluster_ctarank; mapa.shared::cluster.u32 %r2, cell, 1;
        st.shared.u32 [cell], %r50; barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cluster.u32 %r3, [%r2];
        barrier.cluster.arrive; barrier.cluster.wait; setp.eq.u32 %p1, %r1, 1; @%p1 ret;
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r50, 4, %rd0; st.global.u32 [%rd0], %r3;
        setp.ne.u32 %p2, %r50, 34; @%p2 ret; barrier.cluster.arrive; barrier.cluster.wait;
        ld.shared::cluster.u32 %r3, [%r2]; ret;
    """
    out = np.zeros(60, np.uint32)
    with pytest.raises(MemoryFault) as raised:
        run(kernel("u64 out", text), 60, 1, (2, 1, 1), batches[0], out=out)
    assert raised.value.message == "load from cell[0] of block 1 of the cluster, which has ended"
    assert raised.value.block == (34, 0, 0)
    assert (out[:36:2] == np.arange(0, 36, 2) + 1).all()


def test_a_deadlock_in_the_middle(batches: tuple[bool, list[int]]) -> None:
    text = LINEAR + """
        setp.eq.u32 %p1, %r50, 13; @%p1 bra ELSE; barrier.cluster.arrive; barrier.cluster.wait; ret;
        ELSE: barrier.sync 3, 64; ret;
    """
    with pytest.raises(DeadlockError) as raised:
        run(kernel("", text), 30, 32, (3, 1, 1), False)
    assert raised.value.block == (13, 0, 0)
    assert "barrier 3 (1 of 2 warps have arrived)" in raised.value.message


WRAPS = LINEAR + """
    .shared .align 4 .b32 cell; ld.param.u32 %r1, [further]; mov.u32 %r2, %tid.x; mov.u32 %r3, cell;
    mad.lo.u32 %r4, %r2, 4, %r3; add.u32 %r5, %r4, %r1; mul.wide.u32 %rd5, %r5, 3; st.shared.u32 [cell], %r50;
    barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r6, %cluster_ctarank; xor.b32 %r6, %r6, 1;
    mapa.shared::cluster.u32 %r7, cell, %r6; ld.shared::cluster.u32 %r8, [%r7]; barrier.cluster.arrive;
    cvt.u64.u32 %rd2, %r8; shl.b64 %rd2, %rd2, 48; or.b64 %rd1, %rd5, %rd2; barrier.cluster.wait;
    ld.param.u64 %rd0, [out]; mad.lo.u32 %r9, %r50, 32, %r2; mad.wide.u32 %rd0, %r9, 8, %rd0;
    st.global.u64 [%rd0], %rd1; ret;
"""
"""Three times an address of shared memory and a number, in all bits, beside the number of the next block."""


@pytest.mark.parametrize("rank", [0, 2, 3])
@pytest.mark.parametrize("second", [False, True])
def test_a_register_wraps_in_a_later_launch(monkeypatch: pytest.MonkeyPatch, rank: int, second: bool) -> None:
    """What does not change from block to block is computed anew where states serve again, by each of a cluster."""
    kept: list[bool] = []
    take_up = Clusters.take_up

    def noted(self: Clusters, pool: cluster_pool.ClusterPool, worker: int) -> bool:
        kept.append(take_up(self, pool, worker))
        return kept[-1]

    monkeypatch.setattr(Clusters, "take_up", noted)
    program = emulator.load(kernel("u64 out, u32 further", f"{WRAPS} // {rank} {second}"))
    config = LaunchConfig(12, 32, cluster=(4, 1, 1))
    code = program.code("k", config.block, cluster=(4, 1, 1))
    assert not second or compile_block_function(code), code.refusal
    launches, out = program.launcher("k", config), np.zeros((12, 32), np.uint64)
    beside = (np.arange(12, dtype=np.uint64) ^ 1)[:, None] << np.uint64(48)
    with override(emulator_threads=1):
        launches([argument("out", out), argument("further", np.uint32(0))])
        first = out[:, :1] % (1 << 48) // 3
        assert len(np.unique(first)) == 4
        for further in (0, (1 << 32) - int(first[rank, 0]) - 16, 5, 77):
            assert code.outdated is (further in (5, 77))
            launches([argument("out", out), argument("further", np.uint32(further))])
            sums = (first + 4 * np.arange(32, dtype=np.uint64) + further) % (1 << 32)
            assert (out == (sums * 3 | beside)).all()
    assert kept[:2] == [True, True]
