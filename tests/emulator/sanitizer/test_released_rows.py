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
