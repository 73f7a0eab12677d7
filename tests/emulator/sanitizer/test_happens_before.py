"""The sanitizer and the orders that mbarriers and clusters make: no false alarm; races are found where they lack."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from synchronisation_kernels import FETCHES, LINEAR, RING, ROTATE, SENDS, SLOT

from ptxdsl import emulator
from ptxdsl.emulator.analysis import warp_barriers
from ptxdsl.emulator.sanitizer.barriers import Barriers
from ptxdsl.emulator.sanitizer.instrumentation import Instrumentation
from ptxdsl.errors import RaceError, UninitializedError
from ptxdsl.launch import LaunchConfig


def run(text: str, grid: Any, block: Any, cluster: Any = None, seed: int | None = None, **arguments: Any) -> None:
    config = LaunchConfig(grid, block, 0, cluster, sanitize=frozenset(("memory", "init", "race", "barrier")), seed=seed)
    emulator.load(text).run("k", config, [argument(name, value) for name, value in arguments.items()])


SEEDS = [None, 1]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("arrive", "arrivals"), [
    ("mbarrier.arrive.shared.b64", 32), ("@%p5 mbarrier.arrive.shared.b64", 1),
])
def test_warps_hand_over_by_mbarriers(arrive: str, arrivals: int, seed: int | None) -> None:
    out = np.zeros((9, 32), np.uint32)
    body = SLOT.format(wait="try_wait", arrive=arrive, arrivals=arrivals).replace("%r5, 100;", "%r5, 9;")
    run(kernel("u64 out", body), 1, 64, seed=seed, out=out)
    np.testing.assert_array_equal(out, np.arange(9, dtype=np.uint32)[:, None] ** 2 + np.arange(32, dtype=np.uint32))


def test_a_hand_over_without_a_wait() -> None:
    body = SLOT.format(wait="try_wait", arrive="@%p5 mbarrier.arrive.shared.b64", arrivals=1)
    wait = "W1: mbarrier.try_wait.parity.shared.b64 %p2, [full], %r6;\n@!%p2 bra W1;"
    assert wait in body
    body = body.replace(wait, "").replace("%r5, 100;", "%r5, 3;")
    out = np.zeros((100, 32), np.uint32)
    with pytest.raises((RaceError, UninitializedError), match=r"slot\[\d+\]"):
        run(kernel("u64 out", body), 1, 64, out=out)


def test_a_relaxed_arrival_hands_on_nothing() -> None:
    body = SLOT.format(wait="try_wait", arrive="@%p5 mbarrier.arrive.relaxed.cta.shared.b64", arrivals=1)
    body = body.replace("%r5, 100;", "%r5, 3;")
    with pytest.raises(RaceError, match=r"slot\[\d+\] in shared memory"):
        run(kernel("u64 out", body), 1, 64, out=np.zeros((100, 32), np.uint32))


COPY = """
.shared .align 8 .b64 bar; .shared .align 16 .b32 tile[64];
mov.u32 %r2, %tid.x; mov.u32 %r10, tile; mad.lo.u32 %r10, %r2, 4, %r10; setp.ne.u32 %p0, %r2, 0;
@!%p0 mbarrier.init.shared.b64 [bar], 64;
bar.sync 0;
ld.param.u64 %rd0, [x]; mad.wide.u32 %rd0, %r2, 4, %rd0; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r2, 4, %rd1;
cp.async.ca.shared.global [%r10], [%rd0], 4;
{arrive}
WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
@!%p1 bra WAIT;
xor.b32 %r11, %r2, 63; mov.u32 %r10, tile; mad.lo.u32 %r10, %r11, 4, %r10;
ld.shared.u32 %r12, [%r10]; st.global.u32 [%rd1], %r12; ret;
"""


def test_copies_that_arrive() -> None:
    x, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    body = COPY.format(arrive="cp.async.mbarrier.arrive.noinc.shared.b64 [bar];")
    run(kernel("u64 x, u64 out", body), 1, 64, x=x, out=out)
    assert out.tolist() == x[::-1].tolist()
    body = body.replace("WAIT:", "").replace("@!%p1 bra WAIT;", "")
    with pytest.raises((RaceError, UninitializedError), match=r"tile\[\d+\]"):
        run(kernel("u64 x, u64 out", body), 1, 64, x=x, out=out)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("how", FETCHES)
def test_blocks_of_a_cluster_meet(how: str, seed: int | None) -> None:
    out = np.zeros((4, 64), np.uint32)
    text = ROTATE.format(linear=LINEAR, fetch=FETCHES[how])
    text = text.replace("barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.arrive.aligned")
    run(kernel("u64 out", text), 4, 64, 2, seed=seed, out=out)
    assert out.tolist() == [[(number ^ 1) * 1000 + lane for lane in range(64)] for number in range(4)]


def test_a_cluster_that_does_not_meet() -> None:
    text = ROTATE.format(linear=LINEAR, fetch=FETCHES["by a shared address"])
    arrival = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    with pytest.raises((RaceError, UninitializedError), match=r"cell\[\d+\]"):
        run(kernel("u64 out", text.replace(arrival, "")), 2, 64, 2, out=np.zeros((2, 64), np.uint32))
    text = text.replace("arrive.release", "arrive.relaxed")
    with pytest.raises(RaceError, match=r"cell\[\d+\] of block [01] of the cluster in shared memory"):
        run(kernel("u64 out", text), 2, 64, 2, out=np.zeros((2, 64), np.uint32))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("send", ["st.async", "a store"])
def test_numbers_go_round_a_cluster(send: str, seed: int | None) -> None:
    out = np.zeros(4, np.uint32)
    run(kernel("u64 out", RING.format(send=SENDS[send]).replace("%r9, 50", "%r9, 5")), 4, 33, 4, seed=seed, out=out)
    values = list(range(4))
    for _ in range(5):
        values = [(values[rank - 1] * 3 + rank) % (1 << 32) for rank in range(4)]
    assert out.tolist() == values


def test_shared_memory_that_no_block_has_written() -> None:
    text = kernel("u64 out", """
        .shared .align 4 .b32 cell[4]; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1; mov.u32 %r4, cell;
        setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r4+4], %r2;
        barrier.cluster.arrive; barrier.cluster.wait;
        mapa.shared::cluster.u32 %r5, %r4, {0}; ld.shared::cluster.u32 %r6, [%r5+4];
        barrier.cluster.arrive; barrier.cluster.wait;
        ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 4, %rd0; st.global.u32 [%rd0], %r6; ret;
    """)
    run(text.replace("{0}", "0"), 4, 1, 2, out=np.zeros(4, np.uint32))
    with pytest.raises(UninitializedError, match=r"^load from cell\[1\], which nobody has written"):
        run(text.replace("{0}", "1"), 4, 1, 2, out=np.zeros(4, np.uint32))


def test_warps_race_after_another_block_had_its_turn() -> None:
    text = kernel("u64 x, u64 flag", """
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [flag];
        setp.eq.u32 %p0, %r1, 1; @%p0 bra TELL;
        WAIT: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT;
        bar.warp.sync 0xffffffff; and.b32 %r4, %r2, 31; setp.eq.u32 %p2, %r4, 0;
        @%p2 st.global.u32 [%rd0+20], %r2;
        ret;
        TELL: st.volatile.global.u32 [%rd1], 1; ret;
    """)
    with pytest.raises(RaceError, match=r"^race on x\[5\] in global memory: store by thread"):
        run(text, 2, 64, x=np.zeros(8, np.uint32), flag=np.zeros(1, np.uint32))


STORE = "@%p1 st.global.u32 [%rd0+20], %r1;"


@pytest.mark.parametrize("turns", [(0, 0, 0, 0), (3000, 0, 0, 3000)])  # all in compiled code; Python goes on
@pytest.mark.parametrize(("before", "after"), [(STORE, ""), ("", STORE)])
def test_blocks_of_a_cluster_race_after_a_turn(before: str, after: str, turns: tuple[int, ...]) -> None:
    """In the last cluster, a barrier of the block orders nothing of the other block, which has had its turn since."""
    text = kernel("u64 x, u64 turns", f"""
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [turns];
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; ld.global.u32 %r3, [%rd1]; setp.eq.u32 %p0, %r1, 2;
        setp.eq.u32 %p1, %r1, 3; setp.eq.and.u32 %p1, %r2, 0, %p1;
        {before} barrier.cluster.arrive; barrier.cluster.wait; {after}
        AGAIN: setp.eq.u32 %p3, %r3, 0; @%p3 bra OVER;
        sub.u32 %r3, %r3, 1; ld.volatile.global.u32 %r5, [%rd1]; bra AGAIN;
        OVER: bar.sync 0; @%p0 ld.global.u32 %r4, [%rd0+20]; ret;
    """)
    x, counts = np.zeros(8, np.uint32), np.array(turns, np.uint32)
    if before:
        run(text, 4, 64, 2, x=x, turns=counts)
        return
    with pytest.raises(RaceError, match=r"^race on x\[5\] in global memory: "):
        run(text, 4, 64, 2, x=x, turns=counts)


GROUPS = """
.shared .align 16 .b32 tile[128];
mov.u32 %r2, %tid.x; mov.u32 %r10, tile; mad.lo.u32 %r10, %r2, 4, %r10; xor.b32 %r11, %r2, 63;
mov.u32 %r12, tile; mad.lo.u32 %r12, %r11, 4, %r12;
ld.param.u64 %rd0, [x]; mad.wide.u32 %rd0, %r2, 4, %rd0; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r2, 4, %rd1;
cp.async.ca.shared.global [%r10], [%rd0], 4;
cp.async.commit_group;
cp.async.ca.shared.global [%r10+256], [%rd0+256], 4;
cp.async.commit_group;
{first}
bar.sync 0;
ld.shared.u32 %r13, [%r12]; st.global.u32 [%rd1], %r13;
{second}
{barrier}
ld.shared.u32 %r13, [%r12+256]; st.global.u32 [%rd1+256], %r13; ret;
"""
FIRST, SECOND = "cp.async.wait_group 1;", "cp.async.wait_group 0;"


@pytest.mark.parametrize("cluster", [None, 2])
@pytest.mark.parametrize(("first", "second", "barrier", "wrong"), [
    (FIRST, SECOND, "bar.sync 0;", None), (FIRST, "cp.async.wait_all;", "bar.sync 0;", None),
    ("cp.async.wait_all;", "", "", None),
    ("", SECOND, "bar.sync 0;", range(64)),
    ("cp.async.wait_group 2;", SECOND, "bar.sync 0;", range(64)),
    (FIRST, "", "bar.sync 0;", range(64, 128)),
])
def test_groups_of_copies(first: str, second: str, barrier: str, wrong: range | None, cluster: int | None) -> None:
    x, out = np.arange(128, dtype=np.uint32), np.zeros(128, np.uint32)
    text = kernel("u64 x, u64 out", GROUPS.format(first=first, second=second, barrier=barrier))
    if wrong is None:
        run(text, 2, 64, cluster, x=x, out=out)
        assert out.tolist() == [*range(63, -1, -1), *range(127, 63, -1)]
        return
    with pytest.raises(UninitializedError) as caught:
        run(text, 2, 64, cluster, x=x, out=out)
    pattern = r"load from tile\[(\d+)\], whose copy by thread \((\d+), 0, 0\) is not known to be complete"
    found = re.fullmatch(pattern, caught.value.message)
    assert found is not None
    assert int(found[1]) in wrong
    assert int(found[1]) % 64 == int(found[2])
    assert caught.value.hint == (
        "wait first: `ptx.cp.async_.wait_all()` in that thread, then a barrier if it is another one"
    )


def test_a_barrier_before_the_wait_orders_nothing() -> None:
    text = kernel("u64 x, u64 out", GROUPS.format(first=FIRST, second=SECOND, barrier=""))
    with pytest.raises((RaceError, UninitializedError), match=r"tile\[\d+\]"):
        run(text, 2, 64, x=np.arange(128, dtype=np.uint32), out=np.zeros(128, np.uint32))


def test_an_mbarrier_is_used_before_its_initialisation_is_known() -> None:
    body = """
        .shared .align 8 .b64 bar; mov.u32 %r2, %tid.x; setp.eq.u32 %p0, %r2, 0;
        @%p0 mbarrier.init.shared.b64 [bar], 64; {between}
        mbarrier.arrive.shared.b64 %rd9, [bar]; W: mbarrier.test_wait.shared.b64 %p1, [bar], %rd9; @!%p1 bra W; ret;
    """
    for enough in ("bar.sync 0;", "barrier.cluster.arrive; barrier.cluster.wait;"):
        run(kernel("", body.format(between=enough)), 1, 64)
    with pytest.raises(RaceError, match=r"^race on bar\[0\] in shared memory") as caught:
        run(kernel("", body.format(between="bar.warp.sync -1;")), 1, 64)
    (found,) = caught.value.findings
    assert found.earlier is not None and found.earlier.instruction == "@%p0 mbarrier.init.shared.b64 [bar], 64"
    assert found.access.instruction == "mbarrier.arrive.shared.b64 %rd9, [bar]"
    assert found.access.thread == (32, 0, 0)


def test_an_unwritten_cell_of_another_block_is_one_bug() -> None:
    """What is reported once counts as written by nobody, not by the block that has read it."""
    text = ROTATE.format(linear=LINEAR, fetch=FETCHES["by a shared address"])
    arrival = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;"
    with pytest.raises(RaceError) as caught:
        run(kernel("u64 out", text.replace(arrival, "bar.sync 0;")), 2, 64, 2, out=np.zeros((2, 64), np.uint32))
    (found,) = caught.value.findings
    assert found.earlier is not None
    sides = [access.instruction for access in (found.access, found.earlier)]
    assert sides == ["st.shared.u32 [%r5], %r6", "ld.shared::cluster.u32 %r8, [%r9]"]


def test_arrivals_release_what_each_thread_knows() -> None:
    """What most threads share is joined once, and no clock of a thread changes by it."""
    from ptxdsl.emulator.sanitizer.barriers import _Mbarrier
    from ptxdsl.emulator.sanitizer.happens_before import BlockOrder, publish

    random = np.random.default_rng(5)
    for _ in range(20):
        block, mbarrier, wanted = BlockOrder(0, 0), _Mbarrier(0), {}
        clocks = [{(0, w, n): int(random.integers(9)) for w, n in random.integers(4, size=(6, 2))} for _ in range(3)]
        before = [dict(clock) for clock in clocks]
        for arrival in range(12):
            clock, level = clocks[random.integers(3)], int(random.integers(1, 3))
            own = {(0, 0, arrival % 4): int(random.integers(20)), 0: int(random.integers(9))}
            mbarrier.release(block, level, clock, own)
            publish(wanted, block, level, clock)
            publish(wanted, block, level, own)
        assert mbarrier.pending == wanted and clocks == before


HALVES = """
.shared .b32 s[64];
mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 63; shl.b32 %r2, %r2, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;
ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
setp.lt.u32 %p1, %r1, 64; mov.u32 %r4, 0; mov.u32 %r5, 0;
@!%p1 bra B;
A: add.u32 %r6, %r4, %r1; st.shared.u32 [%r3], %r6; {arrive} {wait}
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra A; bra C;
B: bar.sync 1, 128; ld.shared.u32 %r6, [%r3]; add.u32 %r5, %r5, %r6; bar.arrive 2, 128;
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra B;
C: st.global.u32 [%rd1], %r5; ret;
"""


def test_clocks_of_named_barriers_have_an_entry_for_a_warp(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    told = Barriers.named_barrier

    def followed(self: Barriers, state: Any, block: Any, threads: Any, statement: Any) -> None:
        told(self, state, block, threads, statement)
        sizes.append(max(map(len, (block.clock(threads[0]), *(each.clock for each in block.open.values())))))

    monkeypatch.setattr(Barriers, "named_barrier", followed)
    monkeypatch.setattr(warp_barriers, "MOST_STEPS", -1)  # so that nothing is proven of it
    monkeypatch.setattr(Instrumentation, "_follows_mbarriers", lambda self, instructions: False)
    out = np.zeros(128, np.uint32)
    run(kernel("u64 out", HALVES.format(arrive="bar.arrive 1, 128;", wait="bar.sync 2, 128;")), 1, 128, out=out)
    np.testing.assert_array_equal(out, np.append(np.zeros(64), 9 * np.arange(64) + 36))
    assert len(sizes) > 36
    assert max(sizes) <= 4 + 1  # the warps, and the block
    with pytest.raises(RaceError):
        run(kernel("u64 out", HALVES.format(arrive="bar.arrive 1, 128;", wait="bar.arrive 2, 128;")), 1, 128, out=out)
