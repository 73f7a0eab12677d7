"""Recursive functions under the sanitizer, whose lanes run one after the other in compiled code: wrong and right twins.

What is found in the code of one lane is what the first tier finds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import ptxdsl
from ptxdsl import use
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.sanitizer.sanitizer import collect

N = 96
RIGHT = 15
WRONG = {
    "a number that another thread changes": (1, "race"),
    "one that another thread changes, by a generic address": (2, "race"),
    "one that another thread changes, by an address from memory": (4, "race"),
    "a local array that was not stored": (8, "init"),
}
"""The bit of ``right`` without which the kernel does it once, at some depth; what is found."""
MODULE = """.version 8.4
.target sm_90
.address_size 64
.func (.reg .u32 out) f(.reg .u32 a, .reg .u64 mine, .reg .u64 y, .reg .u32 right);
.func (.reg .u32 out) f(.reg .u32 a, .reg .u64 mine, .reg .u64 y, .reg .u32 right) {
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .local .align 8 .b8 room[24];
    mov.u32 out, a; setp.eq.u32 %p1, a, 0; mov.u64 %rd9, room;
    st.local.u64 [%rd9], mine; ld.local.u64 %rd8, [%rd9];
    and.b32 %r21, a, 1; mul.wide.u32 %rd10, %r21, 4; add.u64 %rd10, %rd9, %rd10; st.local.u32 [%rd10+8], a;
    and.b32 %r22, right, 8; setp.ne.u32 %p5, %r22, 0; @%p5 st.local.u32 [%rd9+8], a; @%p5 st.local.u32 [%rd9+12], a;
    ld.u32 %r20, [mine]; mad.lo.u32 %r20, %r20, 3, a; st.global.u32 [mine], %r20;
    ld.global.u32 %r20, [%rd8]; add.u32 %r20, %r20, a; st.u32 [%rd8], %r20;
    @%p1 bra DONE;
    sub.u32 %r9, a, 1; call (%r10), f, (%r9, mine, y, right);
    shr.u32 %r9, a, 1; mov.u32 %r11, %r10; call (%r10), f, (%r9, mine, y, right); mad.lo.u32 out, %r10, 3, %r11;
    ld.local.u32 %r22, [%rd9+8]; ld.local.u32 %r23, [%rd9+12]; mad.lo.u32 out, %r22, %r23, out;
    setp.ne.u32 %p2, a, 3; @%p2 bra DONE;
    and.b32 %r22, right, 1; setp.eq.u32 %p5, %r22, 0; @%p5 st.global.u32 [y], out;
    and.b32 %r22, right, 2; setp.eq.u32 %p5, %r22, 0; @%p5 ld.u32 out, [y+380];
    and.b32 %r22, right, 4; setp.ne.u32 %p5, %r22, 0; @%p5 bra DONE;
    st.local.u64 [%rd9], y; ld.local.u64 %rd8, [%rd9]; st.u32 [%rd8], out;
    DONE: ret; }
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 right) {
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r0, [right]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2; ld.global.u32 %r2, [%rd3];
    call (%r3), f, (%r2, %rd4, %rd1, %r0); ld.global.u32 %r4, [%rd4]; add.u32 %r3, %r3, %r4;
    st.global.u32 [%rd4], %r3; ret; }
"""


def runs_by_lane(code: Code) -> bool:
    plan = plan_block_function(code)
    return plan.lanes is not None and plan.lanes.runs({block.number for block in plan.blocks if block.divergent})


def test_wrong_and_right(rng: np.random.Generator) -> None:
    x, module = rng.integers(3, 7, N, np.uint32), ptxdsl.load(MODULE)
    launch = module["k"].configure(1, N, sanitize="all")

    def launched(right: int) -> tuple[set[str], Any]:
        """What is found, and what was written."""
        y = np.arange(N, dtype=np.uint32)
        with use("emulator"), collect() as findings:
            launch(x, y, right)
        return {each.kind for each in findings}, y

    found, usual = launched(RIGHT)
    assert not found
    codes = [code for *_, code in module["k"].compiled({}).program.codes("k")]
    assert all(launched(RIGHT & ~bit)[0] == {kind} for bit, kind in WRONG.values())
    for code in codes:
        assert runs_by_lane(code)
        assert compile_block_function(code)
    found, result = launched(RIGHT)
    assert not found
    np.testing.assert_array_equal(result, usual)
    for what, (bit, kind) in WRONG.items():
        assert launched(RIGHT & ~bit)[0] == {kind}, what
