"""Litmus tests of copies that complete later, and of the fences between the generic proxy and theirs.

Programs are those of :mod:`litmus`; x, y, z, w and sx, sy, sz, sw are 16 bytes each, which a copy moves at once. At
first x is 7, and all else 0: a load of x finds 7 before a copy to it is complete, and 0 where the copy was too early.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import ptxdsl
import pytest
from litmus import explored, ptx_of, reaches
from ptxdsl import EmulationError, LaunchError, Ptr, ptx, ptx_kernel, shared, u32, use
from ptxdsl.config import override
from ptxdsl.emulator.outcomes import api

OUT = "! cp.async.bulk.global.shared::cta.bulk_group [%x], [sx], 16; ;; ! cp.async.bulk.commit_group;"
IN = "! cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [sx], [%x], 16, [mb];"
INIT = "! mbarrier.init.shared.b64 [mb], 1;"
EXPECT = "! mbarrier.arrive.expect_tx.shared.b64 %d1, [mb], 16;"
TRY = "! WAIT{0}: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [mb], 0; @!%p0 bra WAIT{0};"
DONE, HAS_READ = "! cp.async.bulk.wait_group 0;", "! cp.async.bulk.wait_group.read 0;"
PROXY, SHARED, GLOBAL = (f"fence.proxy.async{space}" for space in ("", ".shared::cta", ".global"))
SYNC = "! bar.sync 0;"
LATE = "! cp.async.ca.shared.global [sx], [%x], 16;"
ALL, GROUP = "! cp.async.wait_all;", "! cp.async.commit_group; ;; ! cp.async.wait_group 0;"
ALLOWED, FORBIDDEN = True, False


def steps(*texts: str) -> str:
    return " ;; ".join(texts)


OTHERS = "ld.acquire r0 v;; ld r1 x"
PASSED = "1:r0=1 1:r1=7"
TESTS = {
    # What a copy reads of the generic proxy needs a fence.
    "stored, copied": (steps("st sx 1", OUT, DONE, "ld r0 x"), "0:r0=0", ALLOWED),
    "stored, fence, copied": (steps("st sx 1", PROXY, OUT, DONE, "ld r0 x"), "0:r0=0", FORBIDDEN),
    "stored, fence of shared memory, copied": (steps("st sx 1", SHARED, OUT, DONE, "ld r0 x"), "0:r0=0", FORBIDDEN),
    "stored, fence of global memory, copied": (steps("st sx 1", GLOBAL, OUT, DONE, "ld r0 x"), "0:r0=0", ALLOWED),
    "stored, another fence, copied": (
        steps("st sx 1", "fence.proxy.alias", "fence.sc.gpu", OUT, DONE, "ld r0 x"), "0:r0=0", ALLOWED),
    "fence, stored, copied": (steps(PROXY, "st sx 1", OUT, DONE, "ld r0 x"), "0:r0=0", ALLOWED),
    "x stored, loaded": (steps(INIT, EXPECT, "st x 1", IN, TRY.format(0), "ld r0 sx"), "0:r0=7", ALLOWED),
    "x stored, fence, loaded": (
        steps(INIT, EXPECT, "st x 1", GLOBAL, IN, TRY.format(0), "ld r0 sx"), "0:r0=7", FORBIDDEN),
    "x stored, fence of shared memory, loaded": (
        steps(INIT, EXPECT, "st x 1", SHARED, IN, TRY.format(0), "ld r0 sx"), "0:r0=7", ALLOWED),
    # When it is complete, and for whom.
    "no wait": (steps("st sx 1", PROXY, OUT, "ld r0 x"), "0:r0=7", ALLOWED),
    "no wait, it may be over": (steps("st sx 1", PROXY, OUT, "ld r0 x"), "0:r0=1", ALLOWED),
    "no wait, it is complete at the end": (steps("st sx 1", PROXY, OUT), "x=7", FORBIDDEN),
    "it has only read": (steps("st sx 1", PROXY, OUT, HAS_READ, "ld r0 x"), "0:r0=7", ALLOWED),
    "a group may be left": (
        steps("st sx 1", PROXY, OUT, "! cp.async.bulk.wait_group 1;", "ld r0 x"), "0:r0=7", ALLOWED),
    "it is in no group": (
        steps("st sx 1", PROXY, OUT.partition(" ;; ")[0], DONE, "ld r0 x"), "0:r0=7", ALLOWED),
    "it is in a group of cp.async, whose wait this is": (
        steps("st sx 1", PROXY, OUT.partition(" ;; ")[0], GROUP, "ld r0 x"), "0:r0=7", ALLOWED),
    "it is in a group of cp.async": (
        steps("st sx 1", PROXY, OUT.partition(" ;; ")[0], "! cp.async.commit_group;", DONE, "ld r0 x"), "0:r0=7",
        ALLOWED),
    "loaded, no wait": (steps(INIT, EXPECT, IN, "ld r0 sx"), "0:r0=0", ALLOWED),
    # What its thread does next.
    "overwritten": (steps("st sx 1", PROXY, OUT, "st sx 2"), "x=2", ALLOWED),
    "overwritten when it has read": (steps("st sx 1", PROXY, OUT, HAS_READ, "st sx 2"), "x=2", FORBIDDEN),
    "overwritten when it is complete": (steps("st sx 1", PROXY, OUT, DONE, "st sx 2"), "x=2", FORBIDDEN),
    "what it writes is overwritten": (steps("st sx 1", PROXY, OUT, "st x 2"), "x=1", ALLOWED),
    "what it has written is overwritten": (steps("st sx 1", PROXY, OUT, DONE, "st x 2"), "x=1", FORBIDDEN),
    "two copies, the first stays": (
        steps("st sx 1", PROXY, OUT, HAS_READ, "st sx 2", PROXY, OUT), "x=1", ALLOWED),
    "two copies, the first is complete": (
        steps("st sx 1", PROXY, OUT, DONE, "st sx 2", PROXY, OUT), "x=1", FORBIDDEN),
    "a part of what it has written is overwritten": (
        steps("st sy 5", PROXY, OUT, DONE, "st x 3"), "x=3 y=5", ALLOWED),
    "the other part stays": (steps("st sy 5", PROXY, OUT, DONE, "st x 3"), "x=3 y=0", FORBIDDEN),
    "it has overwritten a part": (steps("st sy 5", PROXY, "st y 3", GLOBAL, OUT), "x=0 y=5", ALLOWED),
    # Other threads.
    "stored by another, fence, barrier": (
        "|".join((steps("st sx 1", PROXY, SYNC), steps(SYNC, OUT, DONE, "ld r0 x"))), "1:r0=0", FORBIDDEN),
    "stored by another, barrier, fence": (
        "|".join((steps("st sx 1", SYNC), steps(SYNC, PROXY, OUT, DONE, "ld r0 x"))), "1:r0=0", FORBIDDEN),
    "stored by another, barrier": (
        "|".join((steps("st sx 1", SYNC), steps(SYNC, OUT, DONE, "ld r0 x"))), "1:r0=0", ALLOWED),
    "another's fence behind its barrier": (
        "|".join((steps("st sx 1", SYNC, PROXY), steps(SYNC, OUT, DONE, "ld r0 x"))), "1:r0=0", ALLOWED),
    "handed on": (
        "|".join((steps("st sx 1", PROXY, OUT, DONE, "st.release v 1"), OTHERS)), PASSED, FORBIDDEN),
    "handed on when it has read": (
        "|".join((steps("st sx 1", PROXY, OUT, HAS_READ, "st.release v 1"), OTHERS)), PASSED, ALLOWED),
    "waited for by another": ("|".join((
        steps(INIT, EXPECT, SYNC, IN), steps(SYNC, TRY.format(1), "ld r0 sx"))), "1:r0=0", FORBIDDEN),
    "counted behind the copy, not behind its thread": ("|".join((
        steps(INIT, EXPECT, SYNC, "st u 1", IN), steps(SYNC, TRY.format(1), "ld r0 u"))), "1:r0=0", ALLOWED),
    "counted behind an arrival of its thread": ("|".join((
        steps(INIT, SYNC, "st u 1", EXPECT, IN), steps(SYNC, TRY.format(1), "ld r0 u"))), "1:r0=0", FORBIDDEN),
    # cp.async is of the generic proxy.
    "cp.async, no wait": (steps("st x 1", LATE, "ld r0 sx"), "0:r0=0", ALLOWED),
    "cp.async, all": (steps("st x 1", LATE, ALL, "ld r0 sx"), "0:r0=0", FORBIDDEN),
    "cp.async, its group": (steps("st x 1", LATE, GROUP, "ld r0 sx"), "0:r0=0", FORBIDDEN),
    "cp.async, the wait of bulk copies": (steps("st x 1", LATE, "! cp.async.commit_group;", DONE, "ld r0 sx"),
                                          "0:r0=0", ALLOWED),
    "cp.async, x was 7": (steps("st x 1", LATE, ALL, "ld r0 sx"), "0:r0=7", FORBIDDEN),
    "cp.async, x stored behind it": (steps(LATE, "st x 1", ALL, "ld r0 sx"), "0:r0=1", ALLOWED),
    "cp.async, x stored behind the wait": (steps(LATE, ALL, "st x 1", "ld r0 sx"), "0:r0=1", FORBIDDEN),
}


@pytest.mark.parametrize("name", TESTS)
def test_verdicts(name: str) -> None:
    program, state, verdict = TESTS[name]
    assert reaches(program, state, 1, (7,)) is verdict


def test_schedules_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the programs of one thread that are free of races: in the emulator's own runs."""
    zeros = "! mov.u32 %t0, 0; st.shared.v4.u32 [sx], {%t0, %t0, %t0, %t0};"
    programs = [steps(zeros, program) for program, *_ in TESTS.values() if "|" not in program]
    found = {program: explored(program, 1, (7,)) for program in programs}
    monkeypatch.setattr(api, "FEW_WITH_COPIES", 0)
    compared = 0
    for program, outcomes in found.items():
        if not outcomes.races:
            explored.cache_clear()
            runs = ptxdsl.outcomes(*launch_of(program))
            assert {str(each) for each in runs} == {str(each) for each in outcomes}, program
            compared += 1
    assert compared >= 9


def launch_of(program: str) -> tuple[Any, ...]:
    threads = program.count("|") + 1
    memory, out = np.zeros(8, np.uint32), np.zeros((threads, 6), np.uint32)
    memory[0] = 7
    return ptxdsl.load(ptx_of(program))["litmus"].configure(1, threads, backend="emulator"), memory, out


def test_a_wait_in_another_block_of_the_cluster() -> None:
    """The copy and its mbarrier are the other block's; a wait at the scope of its own block sees it."""
    init = "! mbarrier.init.shared.b64 [mb], 1; ;; ! mbarrier.arrive.expect_tx.shared.b64 %d1, [mb], 16;"
    meet = "! barrier.cluster.arrive; barrier.cluster.wait;"
    afar = "! mapa.shared::cluster.u32 %t1, sx, 1; mapa.shared::cluster.u32 %t3, mb, 1;"
    send = "! cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%t1], [sx], 16, [%t3];"
    first = steps("st sx 5", PROXY, meet, afar, send, meet)
    second = steps(init, meet, TRY.format(1), "ld r0 sx", meet)
    found = explored(f"{first}|{second}", 2, (), 2)
    assert [outcome.out[1, 0] for outcome in found] == [5] and not found.races


@pytest.mark.parametrize("vector", [False, True])
def test_numbers_sent_to_another_block(vector: bool) -> None:
    """``st.async``: what the other block's mbarrier has counted is there; what the thread did before need not be."""
    kind, numbers, nbytes = ("v4.b32", "{%t4, %t4, %t4, %t4}", 16) if vector else ("b32", "%t4", 4)
    init = f"! mbarrier.init.shared.b64 [mb], 1; ;; ! mbarrier.arrive.expect_tx.shared.b64 %d1, [mb], {nbytes};"
    meet = "! barrier.cluster.arrive; barrier.cluster.wait;"
    afar = "! mapa.shared::cluster.u32 %t1, sx, 1; mapa.shared::cluster.u32 %t3, mb, 1; mov.u32 %t4, 5;"
    send = f"! st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind} [%t1], {numbers}, [%t3];"
    first = steps(meet, "st x 1", afar, send, "! mov.u32 %t4, 6;", meet)
    read = "! ld.shared.u32 %r0, [sx+12];" if vector else "ld r0 sx"
    found = explored(f"{first}|{steps(init, meet, TRY.format(1), read, 'ld r1 x', meet)}", 2, (7,), 2)
    assert sorted(tuple(outcome.out[1, :2]) for outcome in found) == [(5, 1), (5, 7)]
    assert not found.races
    early = explored(f"{first}|{steps(init, meet, read, TRY.format(1), meet)}", 2, (7,), 2)
    assert sorted(outcome.out[1, 0] for outcome in early) == [0, 5]
    assert early.races


def test_a_missing_fence_is_a_race_and_told_how_to_mend() -> None:
    found = explored(steps("st sx 1", OUT, DONE, "ld r0 x"), 1, (7,))
    how = "on sx[0] by different proxies: `fence.proxy.async` orders them"
    assert found.races == [f"PTX line 18 and PTX line 19, {how}"]
    assert found.repair(lambda o: o.out[0, 0] == 0) == ["`fence.proxy.async` before PTX line 19"]
    bad = found.where(lambda o: o.out[0, 0] == 0)[0]
    assert "copy 0 of thread 0 of block 0:" in bad.execution
    assert "reads memory[0] = 0, written at PTX line 19 (by copy 0 of thread 0 of block 0)" in bad.execution
    assert "writes memory[0] = [0, 0, 0, 0]" in bad.execution
    assert not explored(steps("st sx 1", PROXY, OUT, DONE, "ld r0 x"), 1, (7,)).races


@ptx_kernel
def put(y: Ptr[u32], out: Ptr[u32], *, fence: bool = True, read: bool = False) -> None:
    tile = shared(u32, 4, align=16)
    tile[0] = 42
    if fence:
        ptx.fence.proxy.async_()
    ptx.cp.async_.bulk.global_.shared__cta.bulk_group(y, tile, 16)
    ptx.cp.async_.bulk.commit_group()
    if read:
        ptx.cp.async_.bulk.wait_group.read(0)
    else:
        ptx.cp.async_.bulk.wait_group(0)
    out[0] = y[0]


def test_a_traced_kernel() -> None:
    """That of docs/memory_model.md, and its two mistakes."""
    arrays = np.zeros(4, np.uint32), np.zeros(1, np.uint32)
    with use("emulator"):
        ptxdsl.outcomes(put[1, 1], *arrays).always(out=[42])
        with pytest.raises(AssertionError, match="forbidden by `fence.proxy.async` before .*test_copies.py"):
            ptxdsl.outcomes(put[1, 1], *arrays, fence=False).always(out=[42])
        found = ptxdsl.outcomes(put[1, 1], *arrays, read=True)
    assert sorted(outcome.out[0] for outcome in found) == [0, 42]


def test_bytes_that_an_mbarrier_does_not_expect() -> None:
    """Its bytes may come before they are expected; a phase that nobody completes is waited for for ever."""
    assert {o.waiting == () for o in explored(steps(INIT, IN, EXPECT, TRY.format(0), "ld r0 sx"), 1)} == {True}
    lacking = explored(steps(INIT, EXPECT.replace("16", "32"), IN, TRY.format(0)), 1)
    assert all(outcome.waiting for outcome in lacking)
    unmade = explored(IN, 1)
    assert ["has not been made" in outcome.error for outcome in unmade] == [True]


def test_a_copy_out_of_bounds() -> None:
    found = explored(steps("st sx 1", PROXY, OUT.replace("[%x]", "[%x+32]")), 1)
    assert ["a copy of 16 bytes out of bounds" in outcome.error for outcome in found] == [True]


def test_a_copy_that_is_not_aligned() -> None:
    small = "! mov.u32 %t5, 8; " + OUT[2:].replace("16;", "%t5;")
    for text in (OUT.replace("[%x]", "[%x+8]"), small, LATE.replace("[sx]", "[sx+4]")):
        found = explored(steps("st sx 1", PROXY, text), 1)
        assert ["are no multiples of 16" in outcome.error for outcome in found] == [True]


def test_a_report_of_validity_is_refused() -> None:
    """As the emulator does elsewhere: a copy that leaves it out would be another one."""
    report = "mbarrier::complete_tx::bytes.mbarrier::report::validity::per_element::ff"
    text = ptx_of(steps(INIT, EXPECT, IN.replace("mbarrier::complete_tx::bytes", report)))
    text = text.replace(".version 8.6\n.target sm_90", ".version 9.4\n.target sm_107a")
    kernel, *arrays = ptxdsl.load(text)["litmus"], np.zeros(8, np.uint32), np.zeros((1, 6), np.uint32)
    with pytest.raises(EmulationError, match="does not support"):
        ptxdsl.outcomes(kernel.configure(1, 1, backend="emulator"), *arrays)


def test_more_threads_are_explored_by_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    text = steps("st sx 1", PROXY, OUT, DONE, "ld r0 x")
    assert explored(f"{text}{'|ld r0 u' * 7}", 1).executions > 0
    monkeypatch.setattr(api.Explorer, "by_schedules", lambda *_: (_ for _ in ()).throw(LaunchError("by schedules")))
    with pytest.raises(LaunchError, match="by schedules"):
        ptxdsl.outcomes(*launch_of(f"{text}{'|ld r0 u' * 8}"))


class _BySchedules(api.Explorer):
    def explores_by_axioms(self, _: Any) -> bool:
        return False


def _step(draw: random.Random, number: int) -> str:
    """A step of one thread: two tiles in global memory, at x and at [%x+16], and two in shared memory."""
    memory, tile = draw.choice(("%x", "%x+16")), draw.choice(("sx", "tile"))
    return draw.choice((
        f"st.shared.u32 [{tile}], {number};", f"st.global.u32 [{memory}], {number};", "fence.proxy.async;",
        f"cp.async.bulk.global.shared::cta.bulk_group [{memory}], [{tile}], 16;\ncp.async.bulk.commit_group;",
        f"cp.async.ca.shared.global [{tile}], [{memory}], 16;\ncp.async.commit_group;",
        f"cp.async.bulk.wait_group {draw.randint(0, 1)};", "cp.async.bulk.wait_group.read 0;",
        f"cp.async.wait_group {draw.randint(0, 1)};",
        f"ld.shared.u32 %r0, [{tile}];\nst.global.u32 [%out+{4 * (number % 6)}], %r0;",
        f"ld.global.u32 %r0, [{memory}];\nst.global.u32 [%out+{4 * (number % 6)}], %r0;",
    ))


def _states(explorer: api.Explorer, text: str) -> tuple[set[str], bool]:
    """The final states, and whether they are all, without a race."""
    memory, out = np.full(8, 7, np.uint32), np.zeros((1, 6), np.uint32)
    with override(backend="emulator", sanitize="off"), explorer:
        ptxdsl.load(text)["litmus"].configure(1, 1, backend="emulator")(memory, out)
    found = explorer.found
    assert found is not None
    return {str(each) for each in found if not each.error}, found.complete and not found.races


def test_random_programs_beside_their_schedules(rng: np.random.Generator) -> None:
    """What the runs of the emulator end in is among the outcomes; it is all of them where nothing races."""
    draw, equal = random.Random(int(rng.integers(1 << 32))), 0
    zeros = "mov.u32 %t0, 0;\n" + "\n".join(
        f"st.shared.v4.u32 [{tile}], {{%t0, %t0, %t0, %t0}};" for tile in ("sx", "tile")
    )
    frame = ptx_of("! BODY").replace("sx[6];", "sx[6];\n.shared .align 16 .b32 tile[4];")
    for _ in range(15):
        steps = [_step(draw, number) for number in range(1, draw.randint(3, 8))]
        while sum("16;" in step for step in steps) > 2:  # the executions of copies that race are too many
            steps.pop()
        body = "\n".join((zeros, *steps))
        text = frame.replace("BODY", body)
        every, good = _states(api.Explorer(), text)
        found, complete = _states(_BySchedules(), text)
        assert found <= every, text
        assert found == every or not good, text
        assert complete or not good, text
        equal += good
    assert equal
