"""Arms of divergent branches: which registers are scalars in the second tier, and the numbers of the first tier."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import kernel
from two_tiers import same

from ptxdsl.emulator.jit.plan import Layout
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

START = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n]; mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4;
    add.u64 %rd3, %rd2, %rd1; add.u64 %rd4, %rd2, %rd0; ld.global.u32 %r5, [%rd4]; and.b32 %r6, %r5, 3;
    and.b32 %r7, %r5, 1; setp.eq.u32 %p0, %r7, 0; mov.u32 %r10, 0; mov.u32 %r11, 3; mov.u32 %r12, 0;
"""
END = "mad.lo.u32 %r12, %r12, 5, %r10; st.global.u32 [%rd3], %r12; ret;"
ROW = """mad.lo.s32 %r21, %r10, 64, %r1; mul.wide.s32 %rd5, %r21, 4; add.u64 %rd5, %rd5, %rd0;
    ld.global.u32 %r22, [%rd5]; mad.lo.u32 %r12, %r12, 3, %r22;"""


def arms(first: str, second: str, end: str = END) -> str:
    return f"{START} @%p0 bra ELSE; {first} bra JOIN; ELSE: {second} JOIN: {end}"


def counted(label: str, counter: str, bound: str, body: str) -> str:
    return (f"mov.u32 {counter}, 0; {label}: {body} add.u32 {counter}, {counter}, 1;"
            f"setp.lt.u32 %p1, {counter}, {bound}; @%p1 bra {label};")


LOOP = counted("L", "%r30", "%r20", ROW.replace("%r10", "%r30"))
AGAIN = LOOP.replace("L", "M").replace("%r30", "%r31").replace("%p1", "%p3")
OTHER = "sub.u32 %r12, %r12, %r1;"
VARYING = {
    "live in the other arm": (arms("mov.u32 %r11, %r20;", "add.u32 %r12, %r12, %r11;", "add.u32 %r10, %r11, 0;" + END),
                              "%r11"),
    "read by the other arm": (arms("mov.u32 %r11, %r20; st.global.u32 [%rd3], %r11; add.u32 %r12, %r11, %r5;",
                                   "add.u32 %r12, %r12, %r11;"), "%r11"),
    "written in both arms": (arms(LOOP, LOOP.replace("L", "M")), "%r30"),
    "merged": (arms("mov.u32 %r10, 4;", "mov.u32 %r10, 5;"), "%r10"),
    "kept": (arms("mov.u32 %r10, 4;", OTHER), "%r10"),
    "trips": (arms(counted("L", "%r30", "%r6", ROW.replace("%r10", "%r30")), OTHER), "%r30"),
    "a bound within the arm": (
        arms(counted("L", "%r30", "%r20", "setp.gt.s32 %p2, %r1, 9; @%p2 bra OUT; " + ROW.replace("%r10", "%r30"))
             + "OUT: mad.lo.u32 %r12, %r12, 7, %r30;", OTHER), "%r30"),
    "an early exit": (
        arms(counted("L", "%r30", "%r20", "mad.lo.u32 %r12, %r12, 3, %r5; shr.u32 %r31, %r12, 2; and.b32 %r31, %r31, 3;"
             "setp.eq.u32 %p2, %r31, 0; @%p2 bra OUT;") + "OUT: mad.lo.u32 %r12, %r12, 7, %r30;", OTHER), "%r30"),
    "nested": (
        arms("setp.gt.u32 %p2, %r6, 1; @%p2 bra IN; mov.u32 %r30, %ctaid.x; IN: add.u32 %r12, %r12, 3;"
             "@!%p2 add.u32 %r12, %r12, %r30;", OTHER), "%r30"),
    "kept through the branch's own loop": (
        f"{START} mov.u32 %r30, 0; AGAIN: @%p0 bra ELSE; mov.u32 %r30, %r20; add.u32 %r12, %r12, %r30; bra JOIN;"
        "ELSE: add.u32 %r12, %r12, 9; JOIN: shr.u32 %r5, %r5, 1; and.b32 %r7, %r5, 1; setp.eq.u32 %p0, %r7, 0;"
        "add.u32 %r10, %r10, 1; add.u32 %r12, %r12, %r30; setp.lt.u32 %p2, %r10, 6; @%p2 bra AGAIN;" + END, "%r30"),
    "read by lanes that go round again": (
        f"{START} mov.u32 %r30, 0; AGAIN: @%p0 bra ELSE; mov.u32 %r30, %r20; INNER: add.u32 %r12, %r12, %r30;"
        "add.u32 %r30, %r30, 1; setp.lt.u32 %p3, %r30, 9; @%p3 bra INNER; ELSE: shr.u32 %r5, %r5, 1;"
        "and.b32 %r7, %r5, 1; setp.eq.u32 %p0, %r7, 0; setp.ne.u32 %p2, %r5, 0; @%p2 bra AGAIN;" + END, ""),
}
FREE = {
    "a counter": (arms(LOOP, OTHER), "%r30"),
    "counters of both": (arms(LOOP, AGAIN), "%r30"),
    "nested": (arms("setp.gt.u32 %p2, %r6, 1; @%p2 bra IN;" + LOOP + "bra OUT; IN: add.u32 %r12, %r12, 3; OUT:"
                    + AGAIN, OTHER), "%r30"),
    "once more behind the arms": (arms(LOOP, OTHER, LOOP.replace("L", "M") + END), "%r30"),
    "both ways of an index": (
        START.replace("and.b32 %r7, %r5, 1; setp.eq.u32 %p0, %r7, 0;", "setp.lt.u32 %p0, %r1, 11;")
        + "@%p0 bra ELSE;" + LOOP + "bra JOIN; ELSE: " + AGAIN
        + "add.u32 %r12, %r12, %r1; JOIN:" + END, "%r31"),
}


def layout(text: str, name: str) -> Layout:
    code = Program(parse(text)).code("k", LaunchConfig(3, 48).block)
    return plan_block_function(code).registers[name].layout


@pytest.mark.parametrize("name", [*VARYING, *("free: " + name for name in FREE)])
def test_registers_of_one_arm(name: str, rng: np.random.Generator) -> None:
    body, register = FREE[name[6:]] if name.startswith("free: ") else VARYING[name]
    text = kernel("u64 x, u64 y, u32 n", body)
    if register:
        wanted = Layout.UNIFORM if name.startswith("free: ") else Layout.VARYING
        assert layout(text, register) is wanted
    x, y = rng.integers(0, 1 << 32, 640, np.uint32), np.zeros(3 * 48, np.uint32)
    assert not same(text, 3, 48, x=x, y=y, n=np.uint32(5))


UNREACHED = """
    ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; bra after;
before:
    mul.wide.u32 %rd1, %r0, 8; add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r1, [%rd2];
    setp.eq.u32 %p0, %r1, 3; @%p0 bra before;
after:
    st.global.u32 [%rd0], 7;
"""


@pytest.mark.parametrize("threads", [1, 32, 96])
def test_code_that_nothing_reaches(threads: int) -> None:
    """Its registers have no place in a warp."""
    assert same(kernel("u64 x", UNREACHED), 2, threads, x=np.zeros(1, np.uint32)) == ""
