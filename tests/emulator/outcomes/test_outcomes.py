"""ptxdsl.outcomes: locks and other code of the language, what it says, and how it is used in tests."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from litmus import explored

import ptxdsl
from ptxdsl import Ptr, break_if, loop, otherwise, ptx, ptx_kernel, shared, u32, u64, when
from ptxdsl.emulator.outcomes.api import Explorer
from ptxdsl.pytest_plugin import _assert_outcomes


def _zeros(*sizes: int) -> list[np.ndarray]:
    return [np.zeros(size, np.uint32) for size in sizes]


@ptx_kernel
def message(x: Ptr[u32], flag: Ptr[u32], out: Ptr[u32], *, release: bool = True) -> None:
    with when(ptx.ctaid.x == 0):
        x[0] = 42
        if release:
            ptx.st.release.gpu.global_.u32(flag, 1)
        else:
            ptx.st.relaxed.gpu.global_.u32(flag, 1)
    with otherwise():
        out[0] = ptx.ld.acquire.gpu.global_.u32(flag)
        out[1] = x[0]


def _stale(outcome: Any) -> bool:
    return bool(outcome.out[0] == 1 and outcome.out[1] == 0)


def test_what_is_found() -> None:
    x, flag, out = _zeros(1, 1, 2)
    found = ptxdsl.outcomes(message[2, 1], x, flag, out)
    assert [outcome.out.tolist() for outcome in found] == [[0, 0], [0, 42], [1, 42]]
    assert all(outcome["x"].tolist() == [42] and outcome.flag.tolist() == [1] for outcome in found)
    assert found.complete
    assert found.forbid(_stale) is found
    assert found.require(out=[1, 42]).always(lambda o: o.x[0] == 42) is found
    assert len(found.where(x=[42])) == 3
    assert not x.any()
    assert not flag.any()


def test_a_bad_outcome_is_told_with_its_execution_and_what_would_forbid_it() -> None:
    found = ptxdsl.outcomes(message[2, 1], *_zeros(1, 1, 2), release=False)
    with pytest.raises(AssertionError) as error:
        found.forbid(_stale)
    text = re.sub(r"\S*test_outcomes.py:(\d+)", lambda m: f"line {int(m[1]) - message_line()}", str(error.value))
    assert text == (
        "the memory model allows Outcome(x=[42], flag=[1], out=[1, 0]):\n"
        "thread 0 of block 0:\n"
        "  line 3: x[0] = 42  (st.global.u32 [%rd0], 42)\n"
        "    writes x[0] = 42\n"
        "  line 7: ptx.st.relaxed.gpu.global_.u32(flag, 1)  (st.relaxed.gpu.global.u32 [%rd1], 1)\n"
        "    writes flag[0] = 1\n"
        "thread 0 of block 1:\n"
        "  line 9: out[0] = ptx.ld.acquire.gpu.global_.u32(flag)  (ld.acquire.gpu.global.u32 %r1, [%rd1])\n"
        "    reads flag[0] = 1, written at line 7 (by thread 0 of block 0)\n"
        "  line 9: out[0] = ptx.ld.acquire.gpu.global_.u32(flag)  (st.global.u32 [%rd2], %r1)\n"
        "    writes out[0] = 1\n"
        "  line 10: out[1] = x[0]  (ld.global.u32 %r2, [%rd0])\n"
        "    reads x[0] = 0, from before the launch\n"
        "  line 10: out[1] = x[0]  (st.global.u32 [%rd2+4], %r2)\n"
        "    writes out[1] = 0\n"
        "race: line 3 and line 10, on x[0]\n"
        "forbidden by `st.release.gpu.global.u32` in place of `st.relaxed.gpu.global.u32` at line 7"
    )


def message_line() -> int:
    """The line above the kernel's ``def``."""
    return message.function.__code__.co_firstlineno


@ptx_kernel
def dekker(flags: Ptr[u32], out: Ptr[u32]) -> None:
    me = ptx.ctaid.x
    ptx.st.relaxed.gpu.global_.u32(flags + me, 1)
    out[me] = ptx.ld.relaxed.gpu.global_.u32(flags + (1 - me))


@ptx_kernel
def last_one(x: Ptr[u32], count: Ptr[u32], out: Ptr[u32], *, counts: str) -> None:
    x[ptx.ctaid.x] = ptx.ctaid.x + 1
    old = ptx[counts](count, 1)
    with when(old == 1):
        out[0] = x[0] + x[1]


@pytest.mark.parametrize("modifiers", ["acq_rel.cta", "release.gpu", "acquire.gpu", "relaxed.sys", "acquire.cta", ""])
def test_what_would_forbid_an_outcome_does(modifiers: str) -> None:
    """The instruction that is named has the order and the scope of the one that it stands in for, and more."""
    counts = ".".join(filter(None, ("atom", modifiers, "global.inc.u32")))
    repair = ptxdsl.outcomes(last_one[2, 1], *_zeros(2, 1, 1), counts=counts).repair(lambda o: o.out[0] != 3)
    assert repair is not None
    better, worse = re.findall("`(.*?)`", repair[0])
    assert len(repair) == 1
    assert worse == counts
    assert better == f"atom.acq_rel.{'sys' if 'sys' in modifiers else 'gpu'}.global.inc.u32"
    ptxdsl.outcomes(last_one[2, 1], *_zeros(2, 1, 1), counts=better).always(out=[3])


def test_a_fence_that_would_help_in_both_threads() -> None:
    found = ptxdsl.outcomes(dekker[2, 1], *_zeros(2, 2))
    repair = found.repair(out=[0, 0])
    assert repair is not None
    assert len(repair) == 1
    assert repair[0].startswith("`fence.sc.gpu` before ")
    assert ptxdsl.outcomes(dekker[2, 1], *_zeros(2, 2)).repair(out=[5, 5]) is None


@ptx_kernel
def counted(lock: Ptr[u32], count: Ptr[u32], *, how: str) -> None:
    if how == "ticket":
        mine = ptx.atom.relaxed.gpu.global_.add.u32(lock, 1)
    with loop():
        if how == "ticket":
            break_if(ptx.ld.acquire.gpu.global_.u32(lock + 1) == mine)
        elif how == "exch":
            break_if(ptx.atom.acquire.gpu.global_.exch.b32(lock, 1) == 0)
        elif how == "relaxed":
            break_if(ptx.atom.relaxed.gpu.global_.cas.b32(lock, 0, 1) == 0)
        else:
            break_if(ptx.atom.acquire.gpu.global_.cas.b32(lock, 0, 1) == 0)
    count[0] = count[0] + 1
    if how == "ticket":
        ptx.st.release.gpu.global_.u32(lock + 1, mine + 1)
    elif how == "unlocked relaxed":
        ptx.st.relaxed.gpu.global_.u32(lock, 0)
    else:
        ptx.st.release.gpu.global_.u32(lock, 0)


@pytest.mark.parametrize(("how", "threads"), [("cas", 2), ("exch", 2), ("ticket", 2), ("ticket", 3)])
def test_locks(how: str, threads: int) -> None:
    found = ptxdsl.outcomes(counted[threads, 1], *_zeros(2, 1), how=how)
    assert found.complete
    assert not found.races
    assert {outcome.count[0] for outcome in found.always(count=[threads])} == {threads}


@pytest.mark.parametrize("how", ["relaxed", "unlocked relaxed"])
def test_locks_that_do_not_order(how: str) -> None:
    found = ptxdsl.outcomes(counted[2, 1], *_zeros(2, 1), how=how)
    assert found.races
    found.require(count=[1])


@ptx_kernel
def peterson(flags: Ptr[u32], turn: Ptr[u32], count: Ptr[u32], *, exchange: bool) -> None:
    me = ptx.ctaid.x
    other = 1 - me
    ptx.st.relaxed.gpu.global_.u32(flags + me, 1)
    if exchange:
        ptx.atom.acq_rel.gpu.global_.exch.b32(turn, other)
    else:
        ptx.st.relaxed.gpu.global_.u32(turn, other)
        ptx.fence.sc.gpu()
    with loop():
        wants = ptx.ld.acquire.gpu.global_.u32(flags + other)
        break_if((wants == 0) | (ptx.ld.acquire.gpu.global_.u32(turn) == me))
    count[0] = count[0] + 1
    ptx.st.release.gpu.global_.u32(flags + me, 0)


def test_petersons_lock_needs_the_exchange() -> None:
    ptxdsl.outcomes(peterson[2, 1], *_zeros(2, 1, 1), exchange=True).always(count=[2])
    ptxdsl.outcomes(peterson[2, 1], *_zeros(2, 1, 1), exchange=False).require(count=[1])


@ptx_kernel
def seqlock(sequence: Ptr[u32], data: Ptr[u32], out: Ptr[u32], *, fences: bool) -> None:
    with when(ptx.ctaid.x == 0):
        ptx.st.relaxed.gpu.global_.u32(sequence, 1)
        if fences:
            ptx.fence.acq_rel.gpu()
        ptx.st.relaxed.gpu.global_.u32(data, 1)
        ptx.st.relaxed.gpu.global_.u32(data + 1, 1)
        ptx.st.release.gpu.global_.u32(sequence, 2)
    with otherwise():
        before = ptx.ld.acquire.gpu.global_.u32(sequence)
        a = ptx.ld.relaxed.gpu.global_.u32(data)
        b = ptx.ld.relaxed.gpu.global_.u32(data + 1)
        if fences:
            ptx.fence.acq_rel.gpu()
        after = ptx.ld.relaxed.gpu.global_.u32(sequence)
        out[0] = before
        out[1] = after
        out[2] = a
        out[3] = b


def _torn(outcome: Any) -> bool:
    before, after, a, b = outcome.out
    return bool(before == after and before % 2 == 0 and a != b)


def test_a_seqlock_needs_its_fences() -> None:
    ptxdsl.outcomes(seqlock[2, 1], *_zeros(1, 2, 4), fences=True).forbid(_torn)
    ptxdsl.outcomes(seqlock[2, 1], *_zeros(1, 2, 4), fences=False).require(_torn)


@ptx_kernel
def last_block(parts: Ptr[u32], done: Ptr[u32], out: Ptr[u32], *, fence: bool) -> None:
    i = ptx.ctaid.x
    parts[i] = i + 1
    if fence:
        ptx.fence.acq_rel.gpu()
    before = ptx.atom.relaxed.gpu.global_.add.u32(done, 1)
    with when(before == ptx.nctaid.x - 1):
        if fence:
            ptx.fence.acq_rel.gpu()
        out[0] = parts[0] + parts[1] + parts[2]


def test_the_last_block_sums_what_all_have_written() -> None:
    found = ptxdsl.outcomes(last_block[3, 1], *_zeros(3, 1, 1), fence=True)
    assert not found.always(out=[6]).races
    ptxdsl.outcomes(last_block[3, 1], *_zeros(3, 1, 1), fence=False).require(lambda o: o.out[0] < 6)


@ptx_kernel
def handed_over(out: Ptr[u32], *, waits: bool) -> None:
    bar, box = shared(u64, 1), shared(u32, 1)
    with when(ptx.tid.x == 0):
        ptx.mbarrier.init.shared.b64(bar, 1)
    ptx.barrier.sync(0)
    with when(ptx.tid.x == 0):
        box[0] = 7
        ptx.mbarrier.arrive.shared.b64(bar)
    with otherwise():
        if waits:
            with loop():
                break_if(ptx.mbarrier.try_wait.parity.shared.b64(bar, 0))
        out[0] = box[0]


def test_an_mbarrier_orders_what_it_hands_over() -> None:
    assert not ptxdsl.outcomes(handed_over[1, 2], *_zeros(1), waits=True).always(out=[7]).races
    found = ptxdsl.outcomes(handed_over[1, 2], *_zeros(1), waits=False)
    assert {int(outcome.out[0]) for outcome in found} == {0, 7}
    assert found.races


@ptx_kernel
def waits_forever(flag: Ptr[u32]) -> None:
    with loop():
        break_if(ptx.ld.acquire.gpu.global_.u32(flag) == 1)
    ptx.st.release.gpu.global_.u32(flag, 1)


def test_a_thread_that_waits_forever() -> None:
    found = ptxdsl.outcomes(waits_forever[2, 1], *_zeros(1))
    assert [re.sub(r" at .*", "", each) for each in found[0].waiting] == [
        "thread 0 of block 0", "thread 0 of block 1",
    ]
    with pytest.raises(AssertionError, match="waits: thread 0 of block 0 at "):
        found.always()


@ptx_kernel
def outside(flag: Ptr[u32], x: Ptr[u32]) -> None:
    with when(ptx.ctaid.x == 0):
        ptx.st.relaxed.gpu.global_.u32(flag, 9)
    with otherwise():
        x[ptx.ld.relaxed.gpu.global_.u32(flag)] = 1


def test_a_fault_in_some_execution() -> None:
    found = ptxdsl.outcomes(outside[2, 1], *_zeros(1, 2))
    assert {outcome.error.partition(":")[0] for outcome in found} == {"", "MemoryFault"}


@ptx_kernel
def endless(x: Ptr[u32]) -> None:
    with loop():
        x[0] = x[0] + 1
        break_if(x[0] == 0)


def test_a_bound() -> None:
    found = ptxdsl.outcomes(endless[1, 1], *_zeros(1), bound=20)
    assert not found.complete
    with pytest.raises(AssertionError, match="more than the bound allows"):
        found.forbid(x=[5])


@ptx_kernel
def many(x: Ptr[u32]) -> None:
    for _ in range(4):
        x[ptx.tid.x] = ptx.ld.relaxed.gpu.global_.u32(x + 4)
        ptx.st.relaxed.gpu.global_.u32(x + 4, ptx.tid.x)


def test_a_limit() -> None:
    with pytest.raises(ptxdsl.LaunchError, match="the launch has more than 20 states to explore"):
        ptxdsl.outcomes(many[1, 4], *_zeros(5), limit=20)


@ptx_kernel
def pieces(x: Ptr[u32], out: Ptr[u32]) -> None:
    with when(ptx.ctaid.x == 0):
        x.store(0, (1, 1))
    with otherwise():
        a, b = x.load(0, width=2)
        out[0] = a
        out[1] = b


def test_a_vector_is_a_set_of_elements() -> None:
    found = ptxdsl.outcomes(pieces[2, 1], *_zeros(2, 2))
    assert {tuple(outcome.out) for outcome in found} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_mixed_sizes_race() -> None:
    found = explored("! st.relaxed.gpu.global.u64 [%x], 0x200000001; | ld r0 x; ld r1 y")
    assert {tuple(outcome.out[1, :2].tolist()) for outcome in found} == {(0, 0), (0, 2), (1, 0), (1, 2)}
    assert any("by accesses of different bytes, of which the model says nothing" in race for race in found.races)
    ordered = "! st.global.u64 [%x], 0x200000001; ;; st.release z 1 | ld.acquire r0 z; ld.weak r1 x; ld.weak r2 y"
    assert {tuple(o.out[1, :3].tolist()) for o in explored(ordered) if o.out[1, 0]} == {(1, 1, 2)}


CLUSTER = """.version 8.6
.target sm_90
.address_size 64
.visible .entry neighbours(.param .u64 out)
{
.reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<3>;
.shared .align 4 .b32 box;
ld.param.u64 %d0, [out];
mov.u32 %r0, %cluster_ctarank;
mov.u32 %r1, box;
xor.b32 %r2, %r0, 1;
mapa.shared::cluster.u32 %r3, %r1, %r2;
add.u32 %r4, %r0, 5;
st.shared::cluster.u32 [%r3], %r4;
BARRIER
ld.shared.u32 %r5, [%r1];
mul.wide.u32 %d1, %r0, 4; add.u64 %d0, %d0, %d1;
st.global.u32 [%d0], %r5;
ret;
}
"""


@pytest.mark.parametrize(("barrier", "every"), [
    ("barrier.cluster.arrive; barrier.cluster.wait;", {(6, 5)}),
    ("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;", {(6, 5)}),
    ("barrier.cluster.arrive.relaxed; barrier.cluster.wait;", {(0, 0), (0, 5), (6, 0), (6, 5)}),
    ("fence.acq_rel.cluster; barrier.cluster.arrive.relaxed; barrier.cluster.wait;", {(0, 0), (0, 5), (6, 0), (6, 5)}),
    ("", {(0, 0), (0, 5), (6, 0), (6, 5)}),
])
def test_the_shared_memory_of_another_block(barrier: str, every: set[tuple[int, int]]) -> None:
    kernel = ptxdsl.load(CLUSTER.replace("BARRIER", barrier))["neighbours"]
    found = ptxdsl.outcomes(kernel.configure(2, 1, cluster=2), *_zeros(2))
    assert {tuple(outcome.out.tolist()) for outcome in found} == every


def test_what_launches_nothing_or_twice() -> None:
    with pytest.raises(ptxdsl.LaunchError, match="launches nothing"):
        ptxdsl.outcomes(lambda: None)
    with pytest.raises(ptxdsl.LaunchError, match="explores one launch, and this is the second"):
        ptxdsl.outcomes(lambda: [dekker[2, 1](*_zeros(2, 2)) for _ in range(2)])


def test_what_is_no_launch_and_what_is_no_array() -> None:
    with pytest.raises(ptxdsl.LaunchError, match="takes a launch first, not the int 3") as error:
        ptxdsl.outcomes(3)  # type: ignore[arg-type]
    assert error.value.loc is not None
    assert error.value.loc.file == __file__
    found = ptxdsl.outcomes(message[2, 1], *_zeros(1, 1, 2))
    with pytest.raises(KeyError, match="the outcome has no array `result`; it has x, flag, out"):
        found.forbid(result=[1, 0])
    with pytest.raises(AttributeError, match="the outcome has no array `result`; it has x, flag, out"):
        found.forbid(lambda o: o.result[0] == 1)


def test_the_fixture() -> None:
    launch = message[2, 1]
    assert len(_assert_outcomes(launch, *_zeros(1, 1, 2), never=_stale, sometimes={"out": [1, 42]})) == 3
    with pytest.raises(AssertionError, match="the memory model allows"):
        _assert_outcomes(launch, *_zeros(1, 1, 2), never=_stale, release=False)
    with pytest.raises(AssertionError, match="^races:\n"):
        _assert_outcomes(launch, *_zeros(1, 1, 2), races=False)
    with pytest.raises(AssertionError, match="waits: "):
        _assert_outcomes(waits_forever[2, 1], *_zeros(1))


def test_a_launch_in_every_execution() -> None:
    lock, count = _zeros(2, 1)
    launch = counted.configure(2, 1, schedule="explore", backend="emulator")
    for total in (2, 4):
        launch(lock, count, how="cas")
        assert count[0] == total
    with pytest.raises(ptxdsl.DeadlockError, match=r"threads wait forever:\nthread 0 of block 0 at .*:\d+\n"):
        waits_forever.configure(2, 1, schedule="explore", backend="emulator")(*_zeros(1))
    with pytest.raises(ptxdsl.MemoryFault, match=r"x has 2 elements|x\[9\]") as error:
        outside.configure(2, 1, schedule="explore", backend="emulator")(*_zeros(1, 2))
    assert "written at" in str(error.value.__cause__)
    with pytest.raises(ptxdsl.LaunchError, match="more than 100 memory operations"):
        endless.configure(1, 1, schedule="explore", backend="emulator")(*_zeros(1))
    with pytest.raises(ptxdsl.LaunchError, match="or a schedule that an exploration has told, not 'all'"):
        endless.configure(1, 1, schedule="all")


@ptx_kernel
def agreed(x: Ptr[u32], flag: Ptr[u32], *, ordered: bool, careless: int = 0) -> None:
    with when(ptx.ctaid.x == 0):
        x[0] = 1
        if ordered:
            ptx.fence.acq_rel.gpu()
        ptx.st.relaxed.gpu.global_.u32(flag, 1)
    with otherwise():
        seen = ptx.ld.acquire.gpu.global_.u32(flag)
        with when((seen + careless) >= 1):
            ptxdsl.check((seen == 0) | (x[0] == 1), "the message is there")


def test_checks_in_every_execution() -> None:
    agreed.configure(2, 1, schedule="explore", backend="emulator")(*_zeros(1, 1), ordered=True)
    with pytest.raises(ptxdsl.TrapError, match="the message is there"):
        agreed.configure(2, 1, schedule="explore", backend="emulator")(*_zeros(1, 1), ordered=False)
    with pytest.raises(ptxdsl.RaceError) as error:
        agreed.configure(2, 1, schedule="explore", backend="emulator")(*_zeros(1, 1), ordered=True, careless=1)
    first = agreed.function.__code__.co_firstlineno
    assert re.sub(r"\S*test_outcomes.py:(\d+)", lambda m: f"line {int(m[1]) - first}", error.value.message) == (
        "threads race: conflicting accesses, not both strong, that nothing orders\n  line 3 and line 10, on x[0]"
    )


def test_a_gpu_explores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxdsl.kernel.dispatcher.choose", lambda _: "gpu")
    with pytest.raises(ptxdsl.LaunchError, match="schedule='explore' is the emulator's, and kernel `dekker`"):
        dekker.configure(2, 1, schedule="explore")(*_zeros(2, 2))


def test_progress(capsys: pytest.CaptureFixture[str]) -> None:
    explorer = Explorer(progress=True)
    explorer._progress(5, 2)
    assert capsys.readouterr().err == ""
    explorer.shown = 0.0
    explorer._progress(5, 2)
    assert capsys.readouterr().err == "\rptxdsl.outcomes(): 5 states, 2 executions"


@ptx_kernel
def reused(out: Ptr[u32], *, twice: bool) -> None:
    box = shared(u32, 2)
    t = ptx.tid.x
    for k in range(2):
        box[t] = t + 10 * k + 1
        ptx.barrier.sync(0)
        out[2 * k + t] = box[1 - t]
        if twice:
            ptx.barrier.sync(0)


def test_shared_memory_that_is_used_again() -> None:
    assert not ptxdsl.outcomes(reused[1, 2], *_zeros(4), twice=True).always(out=[2, 1, 12, 11]).races
    found = ptxdsl.outcomes(reused[1, 2], *_zeros(4), twice=False)
    assert len(found) == 4
    assert found.races


@ptx_kernel
def in_one_arm(out: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        ptx.barrier.sync(1, 64)
    out[0] = 1


def test_a_barrier_that_others_never_reach() -> None:
    found = ptxdsl.outcomes(in_one_arm[1, 2], *_zeros(1))
    assert [len(outcome.waiting) for outcome in found] == [1]


@ptx_kernel
def handed_by_warps(out: Ptr[u32]) -> None:
    box = shared(u32, 1)
    lane = ptx.tid.x % 32
    with when(ptx.tid.x < 32):
        with when(lane == 0):
            box[0] = 5
        ptx.bar.arrive(1, 64)
    with otherwise():
        ptx.bar.sync(1, 64)
        with when(lane == 0):
            out[0] = box[0]


def test_a_barrier_with_a_count() -> None:
    assert not ptxdsl.outcomes(handed_by_warps[1, 64], *_zeros(1)).always(out=[5]).races


@ptx_kernel
def steals(top: Ptr[u32], bottom: Ptr[u32], out: Ptr[u32], *, fences: bool) -> None:
    with when(ptx.ctaid.x == 0):
        b = ptx.ld.relaxed.gpu.global_.u32(bottom) - 1
        ptx.st.relaxed.gpu.global_.u32(bottom, b)
        if fences:
            ptx.fence.sc.gpu()
        t = ptx.ld.relaxed.gpu.global_.u32(top)
        with when(t < b):
            out[0] = 1
        with otherwise():
            with when(t == b):
                with when(ptx.atom.relaxed.gpu.global_.cas.b32(top, t, t + 1) == t):
                    out[0] = 1
            ptx.st.relaxed.gpu.global_.u32(bottom, b + 1)
    with otherwise():
        t = ptx.ld.acquire.gpu.global_.u32(top)
        if fences:
            ptx.fence.sc.gpu()
        with when(t < ptx.ld.acquire.gpu.global_.u32(bottom)):
            with when(ptx.atom.relaxed.gpu.global_.cas.b32(top, t, t + 1) == t):
                out[ptx.ctaid.x] = 1


@pytest.mark.parametrize(("blocks", "fences", "given"), [(2, True, {2}), (2, False, {2}), (3, False, {2, 3})])
def test_a_deque_without_fences_gives_an_element_twice(blocks: int, fences: bool, given: set[int]) -> None:
    top, out = _zeros(1, blocks)
    found = ptxdsl.outcomes(steals[blocks, 1], top, np.array([2], np.uint32), out, fences=fences)
    assert {int(outcome.out.sum()) for outcome in found} == given
