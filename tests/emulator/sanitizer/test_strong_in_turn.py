"""Strong accesses that barriers order, or which never meet, need no record; others are followed as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import ptxdsl
import pytest
from emulator_harness import kernel
from ptxdsl import use
from ptxdsl.emulator.instructions.instrumentation import SyncAccess
from ptxdsl.emulator.program import BOUNDS
from ptxdsl.emulator.sanitizer.sanitizer import collect

START = """
.shared .align 4 .b32 s[96];
mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; cvt.u64.u32 %rd4, %r2;
ld.param.u64 %rd1, [x]; add.u64 %rd1, %rd1, %rd4; ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd4;
mov.u32 %r3, s; add.u32 %r4, %r3, %r2; ld.global.u32 %r5, [%rd1];
"""
SCAN = """
st.volatile.shared.u32 [%r4], %r5; {first}
mov.u32 %r6, 1;
L: setp.ge.u32 %p1, %r1, %r6; shl.b32 %r7, %r6, 2; sub.u32 %r10, %r4, %r7;
mov.u32 %r8, 0; @%p1 ld.volatile.shared.u32 %r8, [%r10];
{second}
ld.volatile.shared.u32 %r9, [%r4]; add.u32 %r9, %r9, %r8; st.volatile.shared.u32 [%r4], %r9;
{third}
shl.b32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, {width}; @%p2 bra L;
ld.volatile.shared.u32 %r9, [%r4]; st.global.u32 [%rd2], %r9; ret;
"""
BLOCK, WARP = "bar.sync 0;", "bar.warp.sync -1;"
OWN = "st.volatile.global.u32 [%rd2], %r5; ld.volatile.global.u32 %r6, [%rd2]; st.global.u32 [%rd2], %r6; ret;"
MEET = "xor.b32 %r6, %r1, 1; mul.wide.u32 %rd5, %r6, 4; ld.param.u64 %rd3, [out]; add.u64 %rd3, %rd3, %rd5;"
MEET += "st.volatile.global.u32 [%rd2], %r5; ld.volatile.global.u32 %r6, [%rd3]; add.u32 %r6, %r6, 1;"
MEET += "st.volatile.global.u32 [%rd2], %r6; ret;"


def scan(barrier: str, width: int, missing: int = -1) -> str:
    given = ["" if n == missing else barrier for n in range(3)]
    return START + SCAN.format(first=given[0], second=given[1], third=given[2], width=width)


def checked(body: str, threads: int) -> tuple[np.ndarray[Any, Any], set[str], bool]:
    """What a launch writes, the kinds of its findings, and whether strong accesses are noted."""
    x, out = np.random.default_rng().integers(0, 9, threads, np.uint32), np.zeros(threads, np.uint32)
    entry = ptxdsl.load(kernel("u64 x, u64 out", body))["k"]
    with use("emulator"), collect() as findings:
        entry.configure(1, threads, sanitize="all")(x, out)
    codes = [code for _, tools, code in entry.compiled({}).program.codes("k") if tools not in (None, BOUNDS)]
    noted = any(isinstance(placed.op, SyncAccess) for code in codes for placed in code.micro_ops)
    if not findings:
        np.testing.assert_array_equal(out, np.cumsum(x) if SCAN[:30] in body else x)
    return out, {finding.kind for finding in findings}, noted


@pytest.mark.parametrize(("body", "threads"), [
    (scan(BLOCK, 96), 96), (scan(WARP, 32), 32), (START + OWN, 96),
])
def test_in_turn(body: str, threads: int) -> None:
    _, found, noted = checked(body, threads)
    assert not found
    assert not noted


@pytest.mark.parametrize(("body", "threads"), [
    *((scan(BLOCK, 96, missing), 96) for missing in range(3)), (scan(WARP, 32, 0), 32), (scan(WARP, 32, 2), 32),
    (START + MEET, 96),
])
def test_not_in_turn(body: str, threads: int) -> None:
    _, found, noted = checked(body, threads)
    assert found == {"order"}
    assert noted
