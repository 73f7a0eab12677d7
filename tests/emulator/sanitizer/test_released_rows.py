"""What one warp stores and another one reads, all lanes or one, behind a release and an acquire of one lane each."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

HEAD = """
.shared .b32 box[32]; .shared .b32 flag; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; shr.u32 %r2, %r0, 5;
mov.u32 %r3, box; mad.lo.u32 %r4, %r1, 4, %r3; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r2, 1;
setp.eq.u32 %p2, %r2, 2; setp.gt.u32 %p3, %r1, 15; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r1, 4;
add.u64 %rd2, %rd0, %rd1; @%p0 st.shared.u32 [flag], 0; bar.sync 0; mov.u32 %r6, 0; @%p1 bra TAKE; @%p2 bra THIRD;
"""
STORE, SYNC = "st.shared.u32 [%r4], %r0;", "bar.warp.sync 0xffffffff;"
RELEASE = "@%p0 st.release.cta.shared.u32 [flag], 1;"
ACQUIRE = "@!%p0 bra GO; POLL: ld.acquire.cta.shared.u32 %r5, [flag]; setp.eq.u32 %p4, %r5, 0; @%p4 bra POLL; GO:"
LOAD, HALF = "ld.shared.u32 %r6, [%r4];", "@%p3 st.shared.u32 [%r4], %r0;"


def findings(give: str, take: str, third: str = "") -> list[str]:
    """What is found in a program of three warps."""
    body = f"{HEAD}{give} bra END; TAKE: {take} st.global.u32 [%rd2], %r6; bra END; THIRD: {third} END: ret;"
    program, out = emulator.load(kernel("u64 out", body)), np.zeros(4096, np.uint32)
    with collect() as found:
        program.run("k", LaunchConfig(1, 96, sanitize=frozenset(("race",))), [argument("out", out)])
    return [each.message for each in found if "box" in each.message]


def test_all_that_the_warp_has_stored() -> None:
    assert not findings(f"{STORE}{SYNC}{RELEASE}", f"{ACQUIRE}{SYNC}{LOAD}")
    assert not findings(f"{STORE}{SYNC}{STORE}{SYNC}{RELEASE}", f"{ACQUIRE}{SYNC}{LOAD}{LOAD}")


def test_one_lane() -> None:
    assert not findings(f"{STORE}{SYNC}{RELEASE}", f"{ACQUIRE} @%p0 {LOAD}")
    assert not findings(f"@%p0 {STORE}{RELEASE}", f"{ACQUIRE}{SYNC} @%p0 {LOAD}")


@pytest.mark.parametrize(("give", "take", "third"), [
    (f"{STORE}{SYNC}{RELEASE}", f"{ACQUIRE}{LOAD}", ""),
    (f"{STORE}{RELEASE}", f"{ACQUIRE}{SYNC}{LOAD}", ""),
    (f"{STORE}{SYNC}{RELEASE}{STORE}", f"{ACQUIRE}{SYNC}{LOAD}", ""),
    (f"{STORE}{SYNC}{RELEASE}", f"{LOAD}{ACQUIRE}{SYNC}", ""),
    (f"{SYNC} @!%p3 {STORE}{SYNC}{RELEASE}", f"{ACQUIRE}{SYNC}{LOAD}", HALF),
    (f"@!%p3 {STORE}{SYNC}{RELEASE}{HALF}", f"{ACQUIRE}{SYNC}{LOAD}", ""),
])
def test_what_is_not_released_or_not_acquired(give: str, take: str, third: str) -> None:
    assert findings(give, take, third)


RING = """
.shared .b32 box[128]; .shared .b32 flags[4]; mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; shr.u32 %r2, %r0, 5;
setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r1, 1; shl.b32 %r3, %r2, 2; mov.u32 %r4, flags; add.u32 %r4, %r4, %r3;
add.u32 %r5, %r2, 3; and.b32 %r5, %r5, 3; shl.b32 %r6, %r5, 2; mov.u32 %r7, flags; add.u32 %r7, %r7, %r6;
shl.b32 %r8, %r0, 2; mov.u32 %r9, box; add.u32 %r8, %r9, %r8; shl.b32 %r10, %r5, 5; add.u32 %r10, %r10, %r1;
shl.b32 %r10, %r10, 2; add.u32 %r10, %r9, %r10; setp.eq.u32 %p2, %r2, 0; selp.u32 %r11, 1, 0, %p2;
@%p0 st.shared.u32 [%r4], 0; bar.sync 0; mov.u32 %r12, 1; mov.u32 %r13, %r1;
"""
"""Four warps: r4 and r7 are the flags of a warp and of the one before it, r8 and r10 its word of their rows."""


def ring(wait: str, take: str, give: str) -> list[str]:
    """What is found where each warp adds to what the one before it has made, ten times around."""
    body = f"""{RING} ROUND: sub.u32 %r14, %r12, %r11; setp.eq.u32 %p3, %r14, 0; @%p3 bra GIVE; @!%p0 bra GO;
    POLL: {wait} setp.lt.u32 %p4, %r15, %r14; @%p4 bra POLL; GO: {take} GIVE: add.u32 %r13, %r13, 1; {give}
    add.u32 %r12, %r12, 1; setp.lt.u32 %p5, %r12, 10; @%p5 bra ROUND; ld.param.u64 %rd0, [out];
    mul.wide.u32 %rd1, %r0, 4; add.u64 %rd0, %rd0, %rd1; st.global.u32 [%rd0], %r13; ret;"""
    program, out = emulator.load(kernel("u64 out", body)), np.zeros(4096, np.uint32)
    with collect() as found:
        program.run("k", LaunchConfig(1, 128, sanitize=frozenset(("race",))), [argument("out", out)])
    messages = [each.message for each in found if "box" in each.message]
    if not messages:
        warps, lanes = np.divmod(np.arange(128), 32)
        assert np.array_equal(out[:128], lanes + 33 + warps)
    return messages


WAIT, TAKE = "ld.acquire.cta.shared.u32 %r15, [%r7];", "bar.warp.sync 0xffffffff; ld.shared.u32 %r13, [%r10];"
PUT, TELL = "st.shared.u32 [%r8], %r13; bar.warp.sync 0xffffffff;", "@%p0 st.release.cta.shared.u32 [%r4], %r12;"


def test_rows_that_go_around_a_ring_of_warps() -> None:
    """Each row is written again once the news that it was read have come around."""
    assert not ring(WAIT, TAKE, PUT + TELL)
    assert not ring(WAIT, TAKE, PUT + "@%p1 st.release.cta.shared.u32 [%r4], %r12;")
    fenced = "@%p0 fence.acq_rel.cta; @%p0 st.relaxed.cta.shared.u32 [%r4], %r12;"
    assert not ring("ld.relaxed.cta.shared.u32 %r15, [%r7]; fence.acq_rel.cta;", TAKE, PUT + fenced)


@pytest.mark.parametrize(("wait", "take", "give"), [
    (WAIT, TAKE, PUT + "@%p0 st.relaxed.cta.shared.u32 [%r4], %r12;"),
    (WAIT, "ld.shared.u32 %r13, [%r10];", PUT + TELL),
    (WAIT, TAKE, "st.shared.u32 [%r8], %r13;" + TELL),
    (WAIT, TAKE, TELL + PUT),
])
def test_a_ring_with_one_thing_missing(wait: str, take: str, give: str) -> None:
    assert ring(wait, take, give)


@pytest.mark.parametrize(("between", "clean"), [
    ("bar.warp.sync 0xffffffff; @%p1 st.release.cta.shared.u32 [%r4], %r12;", True),
    ("@%p1 st.release.cta.shared.u32 [%r4], %r12;", False),
    ("@%p0 st.release.cta.shared.u32 [%r4], %r12;", True),
])
def test_news_of_one_lane_are_those_of_another_behind_a_barrier_of_the_warp(between: str, clean: bool) -> None:
    """Warp 0 makes a row, warp 1 passes the news on, warp 2 takes the row: only what the lane knows is released."""
    body = f"""{RING} setp.eq.u32 %p3, %r2, 3; @%p3 bra END; @%p2 bra GIVE; @!%p0 bra GO;
    POLL: ld.acquire.cta.shared.u32 %r15, [%r7]; setp.lt.u32 %p4, %r15, 1; @%p4 bra POLL; GO:
    setp.eq.u32 %p3, %r2, 2; @%p3 bra TAKE; {between} bra END; TAKE: bar.warp.sync 0xffffffff;
    ld.shared.u32 %r13, [%r10+-128]; bra END; GIVE: {PUT}{TELL} END: ret;"""
    program = emulator.load(kernel("u64 out", body))
    with collect() as found:
        program.run("k", LaunchConfig(1, 128, sanitize=frozenset(("race",))), [argument("out", np.zeros(4, np.uint32))])
    assert clean != any("box" in each.message for each in found)


@pytest.mark.parametrize(("second", "third", "clean"), [
    ("release", "release", True), ("relaxed", "release", False), ("release", "relaxed", False),
])
def test_readers_that_count_themselves_off(second: str, third: str, clean: bool) -> None:
    """Warps 1 and 2 read a row of warp 0, which writes it again once both are counted: a sequence of releases."""
    body = f"""{RING} sub.u32 %r16, %r8, %r3; @%p2 bra GIVE; @!%p0 bra GO;
    POLL: ld.acquire.cta.shared.u32 %r15, [flags]; setp.lt.u32 %p4, %r15, 1; @%p4 bra POLL; GO:
    bar.warp.sync 0xffffffff; and.b32 %r17, %r1, 31; shl.b32 %r17, %r17, 2; add.u32 %r17, %r9, %r17;
    ld.shared.u32 %r13, [%r17]; bar.warp.sync 0xffffffff; setp.eq.u32 %p3, %r2, 1; @!%p3 bra THIRD;
    @%p0 atom.{second}.cta.shared.add.u32 %r18, [flags+4], 1; bra END;
    THIRD: setp.eq.u32 %p3, %r2, 3; @%p3 bra END;
    @%p0 atom.{third}.cta.shared.add.u32 %r18, [flags+4], 1; bra END;
    GIVE: {PUT}{TELL} @!%p0 bra ON;
    WAIT: ld.acquire.cta.shared.u32 %r15, [flags+4]; setp.lt.u32 %p4, %r15, 2; @%p4 bra WAIT; ON:
    bar.warp.sync 0xffffffff; st.shared.u32 [%r8], %r1; END: ret;"""
    program = emulator.load(kernel("u64 out", body))
    with collect() as found:
        program.run("k", LaunchConfig(1, 96, sanitize=frozenset(("race",))), [argument("out", np.zeros(4, np.uint32))])
    assert clean != any("box" in each.message for each in found)
