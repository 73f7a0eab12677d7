"""Launches in clusters on the emulator: indices, shared memory of other blocks, barriers; against Python and numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from synchronisation_kernels import FETCHES, LINEAR, RING, ROTATE, SENDS

from ptxdsl import Ptr, profile, ptx, ptx_kernel, shared, trace_thread, u32, use
from ptxdsl import emulator
from ptxdsl.errors import BarrierError, DeadlockError, EmulationError, LaunchError, MemoryFault
from ptxdsl.launch import LaunchConfig


def run(
    text: str, grid: Any, block: Any, cluster: Any, shared: int = 0, conservative: bool = False,
    seed: int | None = None, **arguments: Any,
) -> None:
    config = LaunchConfig(grid, block, shared, cluster, seed=seed)
    given = [argument(name, value) for name, value in arguments.items()]
    emulator.load(text).run("k", config, given, conservative=conservative)


SPECIALS = [
    "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y",
    "%cluster_nctaid.z", "%clusterid.x", "%clusterid.y", "%clusterid.z", "%nclusterid.x", "%nclusterid.y",
    "%nclusterid.z", "%cluster_ctarank", "%cluster_nctarank",
]
"""%r55 is the number of the block in the grid."""


def index(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    return number % extents[0], number // extents[0] % extents[1], number // (extents[0] * extents[1])


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize(("grid", "cluster"), [
    ((8, 1, 1), (4, 1, 1)), ((4, 6, 2), (2, 3, 1)), ((3, 2, 4), (1, 2, 4)), ((4, 8, 2), (2, 4, 2)), ((2, 2, 2), None),
])
def test_indices(grid: tuple[int, int, int], cluster: tuple[int, int, int] | None, conservative: bool) -> None:
    blocks = grid[0] * grid[1] * grid[2]
    out = np.full((blocks, len(SPECIALS) + 1), 0xDEAD, np.uint32)
    body = LINEAR + f"ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r55, {4 * len(SPECIALS) + 4}, %rd0;"
    for number, name in enumerate(SPECIALS):
        body += f"mov.u32 %r1, {name}; st.global.u32 [%rd0+{4 * number}], %r1;"
    body += "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1;"
    body += f"st.global.u32 [%rd0+{4 * len(SPECIALS)}], %r1;"
    run(kernel("u64 out", body + "ret;"), grid, 1, cluster, conservative=conservative, out=out)
    shape = cluster or (1, 1, 1)
    for number, row in enumerate(out.tolist()):
        place = index(number, grid)
        own = tuple(a % b for a, b in zip(place, shape))
        rank = own[0] + shape[0] * (own[1] + shape[1] * own[2])
        size = shape[0] * shape[1] * shape[2]
        which, count = ([a // b for a, b in zip(whole, shape)] for whole in (place, grid))
        assert row == [*own, *shape, *which, *count, rank, size, int(cluster is not None)]




@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("how", FETCHES)
@pytest.mark.parametrize(("grid", "cluster"), [(8, 4), (6, 2), ((2, 4), (2, 2)), (16, 8), (48, 16), (4, 1)])
def test_each_block_reads_the_next(how: str, grid: Any, cluster: Any, conservative: bool) -> None:
    config = LaunchConfig(grid, 64, cluster=cluster)
    out = np.zeros((config.blocks, 64), np.uint32)
    text = kernel("u64 out", ROTATE.format(linear=LINEAR, fetch=FETCHES[how]))
    run(text, grid, 64, cluster, conservative=conservative, out=out)
    assert config.cluster is not None
    size, next_ = config.cluster, {}
    for number in range(config.blocks):
        place = index(number, config.grid)
        own = [a % b for a, b in zip(place, size)]
        rank = own[0] + size[0] * (own[1] + size[1] * own[2])
        other = index((rank + 1) % (size[0] * size[1] * size[2]), size)
        x, y, z = (a - b + c for a, b, c in zip(place, own, other))
        next_[number] = x + config.grid[0] * (y + config.grid[1] * z)
    wanted = [[next_[number] * 1000 + lane for lane in range(64)] for number in range(config.blocks)]
    assert out.tolist() == wanted


def test_an_address_of_its_own_memory_means_the_same_to_another_block() -> None:
    """Rank 0 tells rank 1 a generic address through global memory, without mapa; and getctarank knows whose it is."""
    box, out = np.zeros(2, np.uint64), np.zeros((2, 3), np.uint32)
    run(kernel("u64 box, u64 out", """
        .shared .align 4 .b32 pad[5]; .shared .align 4 .b32 cell;
        mov.u32 %r2, %cluster_ctarank; add.u32 %r3, %r2, 40; st.shared.u32 [cell], %r3;
        cvta.shared.u64 %rd1, cell; ld.param.u64 %rd0, [box];
        mad.wide.u32 %rd2, %r2, 8, %rd0; st.global.u64 [%rd2], %rd1;
        barrier.cluster.arrive; barrier.cluster.wait;
        xor.b32 %r4, %r2, 1; mad.wide.u32 %rd2, %r4, 8, %rd0; ld.global.u64 %rd3, [%rd2]; ld.u32 %r5, [%rd3];
        getctarank.u64 %r6, %rd3; getctarank.shared::cluster.u32 %r7, cell;
        barrier.cluster.arrive; barrier.cluster.wait;
        ld.param.u64 %rd4, [out]; mad.wide.u32 %rd4, %r2, 12, %rd4;
        st.global.u32 [%rd4], %r5; st.global.u32 [%rd4+4], %r6; st.global.u32 [%rd4+8], %r7; ret;
    """), 2, 1, 2, box=box, out=out)
    assert out.tolist() == [[41, 1, 0], [40, 0, 1]]


def test_isspacep() -> None:
    out = np.zeros((2, 8), np.uint32)
    body = """
        .shared .align 4 .b32 cell; .local .align 4 .b32 own; .const .align 4 .b32 three = 3;
        mov.u32 %r2, %cluster_ctarank; ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 32, %rd0;
        cvta.shared.u64 %rd1, cell; xor.b32 %r3, %r2, 1; mapa.u64 %rd2, %rd1, %r3; cvta.local.u64 %rd3, own;
    """
    checks = [("%rd1", "shared::cta"), ("%rd1", "shared::cluster"), ("%rd2", "shared"), ("%rd2", "shared::cluster"),
              ("%rd2", "global"), ("%rd0", "global"), ("%rd3", "local"), ("%rd0", "shared::cluster")]
    for number, (register, space) in enumerate(checks):
        body += f"isspacep.{space} %p1, {register}; selp.u32 %r4, 1, 0, %p1; st.global.u32 [%rd0+{4 * number}], %r4;"
    run(kernel("u64 out", body.replace(".const .align 4 .b32 three = 3;", "") + "ret;"), 2, 1, 2, out=out)
    assert out.tolist() == [[1, 1, 0, 1, 0, 1, 1, 0]] * 2




@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("send", SENDS)
def test_numbers_go_round_a_cluster_by_mbarriers(send: str, seed: int | None) -> None:
    """Each block hands its number to the next one, waits for its own, and goes on with that."""
    out = np.zeros(4, np.uint32)
    run(kernel("u64 out", RING.format(send=SENDS[send])), 4, 33, 4, seed=seed, out=out)
    values = list(range(4))
    for _ in range(50):
        values = [(values[rank - 1] * 3 + rank) % (1 << 32) for rank in range(4)]
    assert out.tolist() == values


def test_mbarriers_of_several_blocks_at_once() -> None:
    out = np.zeros(4, np.uint32)
    run(kernel("u64 out", """
        .shared .align 8 .b64 bar; mov.u32 %r2, %cluster_ctarank; mbarrier.init.shared.b64 [bar], 3;
        barrier.cluster.arrive; barrier.cluster.wait;
        setp.ne.u32 %p0, %r2, 1; mov.u32 %r3, 0xd;
        @!%p0 mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [bar], 3, %r3;
        @!%p0 mbarrier.arrive.expect_tx.shared::cluster.multicast::cluster::32b.b64 _, [bar], 8, %r3;
        barrier.cluster.arrive; barrier.cluster.wait;
        mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0; selp.u32 %r4, 100, 0, %p1;
        mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.pending_count.b64 %r5, %rd1; add.u32 %r4, %r4, %r5;
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 4, %rd0; st.global.u32 [%rd0], %r4; ret;
    """).replace(".version 8.6", ".version 9.4").replace("sm_90", "sm_107a"), 4, 1, 4, out=out)
    assert out.tolist() == [102, 3, 102, 102]


def test_threads_arrive_apart_and_ended_threads_do_not_count() -> None:
    """Half of a warp arrives early, the others late; one block ends before the second barrier."""
    out = np.zeros(3, np.uint32)
    run(kernel("u64 out", """
        .shared .align 4 .b32 cell;
        mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; and.b32 %r3, %r1, 1; setp.ne.u32 %p0, %r3, 0;
        setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [cell], %r2;
        @%p0 bra ODD;
        barrier.cluster.arrive;
        bra MET;
        ODD: barrier.cluster.arrive.relaxed;
        MET: barrier.cluster.wait;
        setp.eq.u32 %p2, %r2, 1; @%p2 exit;
        setp.gt.u32 %p3, %r1, 40; @%p3 exit;
        mapa.shared::cluster.u32 %r5, cell, 2; @%p1 atom.shared::cluster.add.u32 %r6, [%r5], 10;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        ld.shared::cluster.u32 %r7, [%r5];
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 4, %rd0; @%p1 st.global.u32 [%rd0], %r7; ret;
    """), 3, 64, 3, out=out)
    assert out.tolist() == [22, 0, 22]


def test_an_arrival_early_and_a_wait_late_let_a_warp_go_on() -> None:
    out = np.zeros((2, 2), np.uint32)
    run(kernel("u64 out", """
        .shared .align 4 .b32 cell[2];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; shr.u32 %r3, %r1, 5;
        mov.u32 %r4, cell; mad.lo.u32 %r4, %r3, 4, %r4; add.u32 %r5, %r1, %r2; st.shared.u32 [%r4], %r5;
        barrier.cluster.arrive;
        bar.sync 0; bar.sync 1, 64;
        barrier.cluster.wait;
        xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r7, %r4, %r6; ld.shared::cluster.u32 %r8, [%r7];
        barrier.cluster.arrive; barrier.cluster.wait;
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 8, %rd0; mad.wide.u32 %rd0, %r3, 4, %rd0;
        st.global.u32 [%rd0], %r8; ret;
    """), 2, 64, 2, out=out)
    assert out.tolist() == [[32, 64], [31, 63]]


@pytest.mark.parametrize("cluster", [None, 1])
def test_the_barrier_of_a_cluster_of_one_block(cluster: int | None) -> None:
    out = np.zeros((5, 64), np.uint32)
    run(kernel("u64 out", """
        .shared .align 4 .b32 cell[64];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r4, cell; mad.lo.u32 %r5, %r1, 4, %r4;
        mad.lo.u32 %r6, %r2, 100, %r1; st.shared.u32 [%r5], %r6;
        barrier.cluster.arrive; barrier.cluster.wait;
        xor.b32 %r7, %r1, 63; mad.lo.u32 %r5, %r7, 4, %r4; ld.shared.u32 %r8, [%r5];
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 256, %rd0; mad.wide.u32 %rd0, %r1, 4, %rd0;
        st.global.u32 [%rd0], %r8; ret;
    """), 5, 64, cluster, out=out)
    np.testing.assert_array_equal(out, np.arange(5)[:, None] * 100 + 63 - np.arange(64))


def test_a_kernel_that_requires_its_cluster() -> None:
    out = np.zeros(4, np.uint32)
    text = kernel("u64 out", """
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_nctarank; ld.param.u64 %rd0, [out];
        mad.wide.u32 %rd0, %r1, 4, %rd0; st.global.u32 [%rd0], %r2; ret;
    """).replace("\n{", "\n.reqnctapercluster 2\n{", 1)
    run(text, 4, 1, None, out=out)
    assert out.tolist() == [2, 2, 2, 2]
    with pytest.raises(LaunchError) as caught:
        run(text, 3, 1, None, out=np.zeros(3, np.uint32))
    assert caught.value.message == "cluster.x is 2, which does not divide grid.x = 3 (grid counts blocks)"


@pytest.mark.parametrize("seed", [None, 5])
def test_lanes_that_wait_for_others_of_their_warp_in_another_block_too(seed: int | None) -> None:
    """Odd lanes wait for what even lanes of both blocks' warps do later: that takes conservative code."""
    out = np.zeros(64, np.uint32)
    run(kernel("u64 out", """
        .shared .align 8 .b64 bar; .shared .b32 value;
        mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 1; setp.ne.u32 %p0, %r3, 0; mov.u32 %r8, %cluster_ctarank;
        mad.lo.u32 %r9, %r8, 32, %r2; ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r9, 4, %rd0;
        setp.ne.u32 %p1, %r2, 0;
        @%p1 bra READY;
        mbarrier.init.shared.b64 [bar], 32;
        READY: barrier.cluster.arrive; barrier.cluster.wait;
        xor.b32 %r10, %r8, 1; mapa.shared::cluster.u32 %r11, bar, %r10;
        @!%p0 bra EVEN;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
        @!%p2 bra WAIT;
        ld.shared.u32 %r4, [value];
        st.global.u32 [%rd0], %r4;
        bra END;
        EVEN: add.u32 %r12, %r8, 70; st.shared.u32 [value], %r12;
        mbarrier.arrive.shared.b64 %rd1, [bar];
        mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r11];
        END: barrier.cluster.arrive; barrier.cluster.wait; ret;
    """), 2, 32, 2, seed=seed, out=out)
    assert out.tolist() == [0, 70] * 16 + [0, 71] * 16


def test_one_thread_and_the_profile_of_a_cluster() -> None:
    @ptx_kernel
    def swap(x: Ptr[u32], y: Ptr[u32]) -> None:
        cell, t, i = shared(u32, 32), ptx.tid.x, ptx.ctaid.x * 32 + ptx.tid.x
        cell[t] = x[i]
        ptx.barrier.cluster.arrive()
        ptx.barrier.cluster.wait()
        there = ptx.mapa.shared__cluster.u32((cell + t).address, ptx.cluster_ctarank ^ 1)
        y[i] = ptx["ld.shared::cluster.u32"](there)
        ptx.barrier.cluster.arrive()
        ptx.barrier.cluster.wait()

    x, y = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    launch = swap.configure(4, 32, cluster=2)
    with use("emulator"):
        with profile() as p:
            launch(x, y)
        steps = trace_thread(launch, x, y, block=1, thread=3)
    np.testing.assert_array_equal(y.reshape(2, 2, 32), x.reshape(2, 2, 32)[:, ::-1])
    assert p.totals.executions == 4 * len(steps)
    assert [step.registers["there"] for step in steps if step.text.startswith("mapa")] == [0x400 + 12]


# What can go wrong


def failing(body: str, kind: type[EmulationError], seed: int | None = None) -> EmulationError:
    with pytest.raises(kind) as caught:
        run(kernel("", body + "ret;"), 2, 32, 2, seed=seed)
    return caught.value


def test_a_block_that_is_not_in_the_cluster() -> None:
    error = failing("""
        .shared .align 4 .b32 cell[4]; mapa.shared::cluster.u32 %r1, cell, 5; ld.shared::cluster.u32 %r2, [%r1+8];
    """, MemoryFault)
    assert error.message == "load from shared address 0x408 of block 5 of the cluster, which has 2 blocks"


def test_beyond_the_shared_memory_of_another_block_and_of_its_own() -> None:
    error = failing("""
        .shared .align 4 .b32 cell[4]; mapa.shared::cluster.u32 %r1, cell, 1; ld.shared::cluster.u32 %r2, [%r1+16];
    """, MemoryFault)
    assert error.message == (
        "load from shared address 0x410 of block 1 of the cluster: a block has 16 bytes of shared memory "
        "from address 0x400 on"
    )
    error = failing("""
        .shared .align 4 .b32 cell[4]; .shared .align 4 .b32 pad[4]; mov.u32 %r1, %cluster_ctarank;
        setp.eq.u32 %p1, %r1, 1; mov.u32 %r2, cell; @%p1 ld.shared.u32 %r3, [%r2+16];
    """, MemoryFault)
    assert error.message == "load from cell[4]: cell is b32[4] in shared memory"
    assert error.block == (1, 0, 0)


def test_the_memory_of_a_block_that_has_ended() -> None:
    error = failing("""
        .shared .align 4 .b32 cell[4]; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1;
        mapa.shared::cluster.u32 %r2, cell, 1; barrier.cluster.arrive; barrier.cluster.wait; @%p1 exit;
        ld.shared::cluster.u32 %r3, [%r2+4];
    """, MemoryFault)
    assert error.message == "load from cell[1] of block 1 of the cluster, which has ended"
    assert error.hint == "synchronise the blocks before they end: `ptxdsl.cluster.sync()`"


def test_arriving_twice_and_waiting_without_an_arrival() -> None:
    error = failing("barrier.cluster.arrive; barrier.cluster.arrive;", BarrierError)
    assert error.message == "`barrier.cluster.arrive` comes before `barrier.cluster.wait` for the arrival before"
    error = failing("barrier.cluster.wait.acquire;", BarrierError)
    assert error.message == "`barrier.cluster.wait.acquire` comes before `barrier.cluster.arrive`"


def test_an_aligned_arrival_of_some_lanes() -> None:
    error = failing("""
        mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 7; @%p1 bra ELSE; barrier.cluster.arrive.aligned; bra MET;
        ELSE: barrier.cluster.arrive; MET: barrier.cluster.wait;
    """, BarrierError)
    assert error.message == (
        "`barrier.cluster.arrive.aligned` is reached by lanes 0-6 of warp 0 while lanes 7-31 are elsewhere"
    )


def test_a_block_that_never_arrives() -> None:
    error = failing("""
        mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 bra ELSE;
        barrier.cluster.arrive; barrier.cluster.wait; bra END;
        ELSE: bar.sync 3, 64;
        END:
    """, DeadlockError)
    assert error.message == (
        "deadlock: all warps of the block wait at barriers that nobody completes\n"
        "  block (1, 0, 0) of rank 1, warp 0 waits at barrier 3 (1 of 2 warps have arrived): "
        "bar.sync 3, 64 at PTX line 15\n"
        "  block (0, 0, 0) of rank 0, warp 0 waits at the barrier of the cluster (32 of 64 threads have arrived): "
        "barrier.cluster.wait at PTX line 14"
    )
    assert error.block == (1, 0, 0)


@pytest.mark.parametrize("seed", [None, 9])
def test_a_wait_for_a_block_that_waits_for_an_mbarrier(seed: int | None) -> None:
    error = failing("""
        .shared .align 8 .b64 bar; mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 1; @%p1 bra ELSE;
        barrier.cluster.arrive; barrier.cluster.wait; bra END;
        ELSE: mbarrier.init.shared.b64 [bar], 32;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
        END:
    """, DeadlockError, seed=seed)
    assert error.message == (
        "deadlock: all warps wait, some at mbarriers that nobody completes\n"
        "  block (1, 0, 0) of rank 1, warp 0 waits for the phase of parity 0 of bar[0], which lacks 32 of 32 arrivals: "
        "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0 at PTX line 16\n"
        "  block (0, 0, 0) of rank 0, warp 0 waits at the barrier of the cluster (32 of 64 threads have arrived): "
        "barrier.cluster.wait at PTX line 14"
    )
    assert error.block == (1, 0, 0)
