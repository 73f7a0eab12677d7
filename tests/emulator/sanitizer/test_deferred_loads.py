"""Loads of unwritten memory whose value is discarded, as compilers hoist them, and those whose value is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel

import ptxdsl
from ptxdsl import UninitializedError, use

HEAD = """
.shared .align 16 .b8 s[512]; .local .align 16 .b8 own[64];
mov.u32 %r2, %tid.x; and.b32 %r3, %r2, 31; mov.u32 %r6, s; mov.u32 %r7, own;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r2, 4, %rd1; mad.lo.u32 %r8, %r2, 4, %r6;
setp.lt.u32 %p0, %r2, 5; setp.ge.u32 %p1, %r2, 5; mov.u32 %r30, 0;
@%p0 st.shared.u32 [%r8], %r2; @%p0 st.local.u32 [own], 5; st.local.u32 [own+4], 3;
"""
LOAD, LOCAL = "ld.shared.u32 %r10, [%r8]; // !\n", "ld.local.u32 %r10, [own]; // !\n"
STORE = "\nst.global.u32 [%rd2], {};"
OUT = STORE.format("%r11")
RIGHT = {
    "selp": LOAD + "selp.u32 %r11, %r10, 7, %p0;" + OUT,
    "selp, local": LOCAL + "selp.u32 %r11, %r10, 7, %p0;" + OUT,
    "selp the other way": LOAD + "selp.u32 %r11, 7, %r10, %p1;" + OUT,
    "computed with first": LOAD + "add.u32 %r12, %r10, 4; mul.lo.u32 %r12, %r12, %r12; "
        "selp.u32 %r11, %r12, 7, %p0;" + OUT,
    "a condition": LOAD + "setp.gt.u32 %p5, %r10, 2; and.pred %p6, %p0, %p5; selp.u32 %r11, 1, 0, %p6;" + OUT,
    "a condition with or": LOAD + "setp.gt.u32 %p5, %r10, 2; or.pred %p6, %p5, %p1; selp.u32 %r11, 1, 0, %p6;" + OUT,
    "setp.and": LOAD + "setp.gt.and.u32 %p6, %r10, 2, %p0; selp.u32 %r11, 1, 0, %p6;" + OUT,
    "setp.or": LOAD + "setp.gt.or.u32 %p6, %r10, 2, %p1; selp.u32 %r11, 1, 0, %p6;" + OUT,
    "a branch on it": LOAD + "setp.gt.and.u32 %p6, %r10, 2, %p0; mov.u32 %r11, 1; @%p6 bra E; mov.u32 %r11, 2; "
        "E:" + OUT,
    "a mask": LOAD + "selp.b32 %r12, -1, 0, %p0; and.b32 %r11, %r10, %r12;" + OUT,
    "a guarded store": LOAD + "@%p0 st.global.u32 [%rd2], %r10;",
    "a branch around": LOAD + "@%p1 bra E; st.global.u32 [%rd2], %r10; E:",
    "before a loop of no turns": LOAD + "mov.u32 %r11, 0; selp.u32 %r12, 2, 0, %p0; mov.u32 %r13, 0; "
        "L: setp.ge.u32 %p5, "
        "%r13, %r12; @%p5 bra E; add.u32 %r11, %r11, %r10; add.u32 %r13, %r13, 1; bra L; E:" + OUT,
    "a guarded move": LOAD + "mov.u32 %r11, 4; @%p0 mov.u32 %r11, %r10;" + OUT,
    "half of a pair": "ld.local.v2.u32 {%r10, %r11}, [own];" + "@%p0 add.u32 %r11, %r11, %r10;" + OUT,
    "an element that nobody reads": "ld.local.v2.u32 {%r10, %r11}, [own]; add.u32 %r11, %r11, 1;" + OUT,
    "elements between": "ld.local.v4.u32 {%r10, %r11, %r12, %r13}, [own];" + OUT,
    "copied": LOCAL + "st.local.u32 [own+8], %r10; ld.local.u32 %r12, [own+8]; selp.u32 %r11, %r12, 7, %p0;" + OUT,
    "copied to shared memory": LOAD + "st.shared.u32 [%r8+256], %r10; ld.shared.u32 %r12, [%r8+256]; "
        "@%p0 st.global.u32 [%rd2], %r12;",
    "a struct with padding": "ld.local.v4.u32 {%r10, %r11, %r12, %r13}, [own]; st.local.v4.u32 [own+16], "
        "{%r10, %r11, %r12, %r13}; ld.local.u32 %r11, [own+20];" + OUT,
    "overwritten": LOAD + "@%p1 mov.u32 %r10, 3; mov.u32 %r11, %r10;" + OUT,
    "never used": LOAD + "setp.ne.u32 %p5, %r30, 0; @%p5 st.global.u32 [%rd2], %r10;",
    "an index that is chosen": LOAD + "selp.u32 %r12, %r10, 0, %p0; mad.wide.u32 %rd3, %r12, 4, %rd0; "
        "ld.global.u32 %r11, [%rd3];" + OUT,
    "64 bits": "ld.local.u32 %r10, [own]; cvt.u64.u32 %rd5, %r10; selp.u64 %rd6, %rd5, 9, %p0; "
        "cvt.u32.u64 %r11, %rd6;" + OUT,
    "a float": "ld.shared.f32 %f1, [%r8]; fma.rn.f32 %f2, %f1, %f1, %f1; mov.f32 %f3, 0f3F800000; "
        "selp.f32 %f4, %f2, %f3, %p0; st.global.f32 [%rd2], %f4;",
}
WRONG = {
    "the other element": "ld.local.v2.u32 {%r11, %r10}, [own]; // !\n add.u32 %r11, %r11, 1;" + OUT,
    "stored": LOAD + "mov.u32 %r11, %r10;" + OUT,
    "stored, local": LOCAL + "add.u32 %r11, %r10, 1;" + OUT,
    "selp takes it": LOAD + "selp.u32 %r11, %r10, 7, %p1;" + OUT,
    "selp on it": LOAD + "setp.eq.u32 %p5, %r10, 3; selp.u32 %r11, 1, 2, %p5;" + OUT,
    "a condition that needs it": LOAD + "setp.gt.u32 %p5, %r10, 2; or.pred %p6, %p0, %p5; "
        "selp.u32 %r11, 1, 0, %p6;" + OUT,
    "a branch": LOAD + "setp.gt.u32 %p5, %r10, 2; @%p5 bra E; st.global.u32 [%rd2], 1; E:",
    "a branch on and": LOAD + "setp.gt.and.u32 %p5, %r10, 2, %p1; @%p5 bra E; st.global.u32 [%rd2], 1; E:",
    "an address": LOAD + "and.b32 %r10, %r10, 4; mad.wide.u32 %rd3, %r10, 1, %rd1; @%p1 st.global.u32 [%rd3], 1;",
    "a guard": LOAD + "setp.gt.u32 %p5, %r10, 2; @%p5 st.global.u32 [%rd2], 1;",
    "the other guard": LOAD + "@%p1 st.global.u32 [%rd2], %r10;",
    "a loop that turns": LOAD + "mov.u32 %r11, 0; mov.u32 %r13, 0; L: setp.ge.u32 %p5, %r13, 3; @%p5 bra E; "
        "add.u32 %r11, %r11, %r10; add.u32 %r13, %r13, 1; bra L; E:" + OUT,
    "an atomic": LOAD + "@%p1 red.global.add.u32 [%rd1], %r10;",
    "an atomic on it": "atom.shared.add.u32 %r11, [%r8], 1; // !",
    "a shuffle": LOAD + "shfl.sync.idx.b32 %r11, %r10, 9, 31, -1; @%p0 st.global.u32 [%rd2], %r11;",
    "a vote": LOAD + "setp.gt.u32 %p5, %r10, 2; vote.sync.any.pred %p6, %p5, -1; selp.u32 %r11, 1, 0, %p6;" + OUT,
    "copied": "ld.local.u32 %r10, [own]; st.local.u32 [own+8], %r10; ld.local.u32 %r12, [own+8]; // !\n"
        "selp.u32 %r11, %r12, 7, %p1;" + OUT,
    "an update": "ld.shared.u32 %r10, [%r8]; add.u32 %r10, %r10, 1; st.shared.u32 [%r8], %r10; "
        "ld.shared.u32 %r11, [%r8]; // !" + OUT,
    "half of a pair": "ld.local.v2.u32 {%r10, %r11}, [own]; // !\n selp.u32 %r11, %r11, %r10, %p0;" + OUT,
    "or with zero": LOAD + "or.b32 %r11, %r10, %r30;" + OUT,
    "xor with itself": LOAD + "@%p1 xor.b32 %r11, %r10, %r10; @%p1 st.global.u32 [%rd2], %r11;",
    "a mask of ones": LOAD + "selp.b32 %r12, -1, 0, %p1; and.b32 %r11, %r10, %r12;" + OUT,
    "through an array": LOAD.replace("// !", "") + "shl.b32 %r12, %r3, 2; add.u32 %r12, %r12, %r6; "
        "st.shared.u32 [%r12+256], %r10; "
        "bar.warp.sync -1; ld.shared.u32 %r11, [%r6+284]; // !\n@%p0 st.global.u32 [%rd2], %r11;",
}


def run(body: str) -> np.ndarray[Any, Any]:
    x, out = np.arange(64, dtype=np.uint32), np.zeros(32, np.uint32)
    with use("emulator"):
        program = ptxdsl.load(kernel("u64 x, u64 out", HEAD + body + " ret;"))
        program["k"].configure(1, 32, sanitize="init")(x, out)
    return out


@pytest.mark.parametrize("name", RIGHT)
def test_discarded(name: str) -> None:
    with use("emulator"):
        out = run(RIGHT[name])
        plain = np.zeros(32, np.uint32)
        program = ptxdsl.load(kernel("u64 x, u64 out", HEAD + RIGHT[name] + " ret;"))
        program["k"][1, 32](np.arange(64, dtype=np.uint32), plain)
    assert np.array_equal(out, plain)


@pytest.mark.parametrize("name", WRONG)
def test_used(name: str) -> None:
    with pytest.raises(UninitializedError, match=r"(load from|operation on) (s|own)\[\d+\]|of the thread") as caught:
        run(WRONG[name])
    lines = kernel("u64 x, u64 out", HEAD + WRONG[name] + " ret;").splitlines()
    marked = [number for number, line in enumerate(lines, 1) if "// !" in line]
    if marked:
        assert caught.value.ptx_line in marked
