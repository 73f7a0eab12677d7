"""Loops whose turns all warps of a block make together: what the first tier gives, and which loops these are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel
from two_tiers import outcomes

from ptxdsl.emulator.jit import block_function
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

START = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n]; ld.param.u32 %r21, [w];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.x;
    mul.lo.u32 %r5, %r3, %r4; mad.lo.u32 %r6, %r2, %r3, %r1;
"""
TURN = """mul.wide.u32 %rd2, %r6, 4; add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1; ld.global.u32 %r10, [%rd3];
    mad.lo.u32 %r10, %r10, 3, %r6; st.global.u32 [%rd4], %r10;"""
NEXT = "add.u32 %r6, %r6, %r5; setp.lt.u32 %p1, %r6, %r20; @%p1 bra L;"
TOGETHER = {
    "grid": f"setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} {NEXT} ret;",
    "bound": f"L: setp.ge.u32 %p1, %r6, %r20; @%p1 bra END; {TURN} add.u32 %r6, %r6, %r5; bra L; END: ret;",
    "pointers": """setp.ge.u32 %p1, %r6, %r20; @%p1 bra END; mul.wide.u32 %rd2, %r6, 16; add.u64 %rd3, %rd2, %rd0;
        add.u64 %rd4, %rd2, %rd1; mul.wide.u32 %rd5, %r5, 16;
        L: ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd3]; st.global.v4.u32 [%rd4], {%r12, %r11, %r13, %r10};
        add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5; add.u32 %r6, %r6, %r5; setp.lt.u32 %p1, %r6, %r20;
        @%p1 bra L; END: ret;""",
    "counted": f"""mov.u32 %r7, 0; setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} add.u32 %r7, %r7, 1; {NEXT}
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd4, %rd2, %rd1; st.global.u32 [%rd4], %r7; ret;""",
    "some": f"""setp.gt.u32 %p1, %r1, 70; @%p1 ret; setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} {NEXT} ret;""",
    "inner": f"""setp.ge.u32 %p1, %r6, %r20; @%p1 ret;
        L: setp.lt.u32 %p2, %r6, %r21; @%p2 bra J; {TURN} J: {NEXT} ret;""",
    "always": f"""mov.u32 %r7, 0; L: {TURN} add.u32 %r6, %r6, %r5; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 5;
        @%p1 bra L; ret;""",
}
ALONE = {
    "sum": """mov.u32 %r8, 0; setp.ge.u32 %p1, %r6, %r20; @%p1 ret; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd4, %rd2, %rd1;
        L: mul.wide.u32 %rd2, %r6, 4; add.u64 %rd3, %rd2, %rd0; ld.global.u32 %r10, [%rd3]; add.u32 %r8, %r8, %r10;
        st.global.u32 [%rd4], %r8; """ + NEXT + "ret;",
    "atomic": f"setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} {NEXT} atom.global.add.u32 %r9, [%rd1], %r10; ret;",
    "barrier": f"L: {TURN} {NEXT} bar.sync 0; ret;",
    "block": f"setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} add.u32 %r6, %r6, %r3; setp.lt.u32 %p1, %r6, %r20;"
             "@%p1 bra L; ret;",
    "warp": f"mov.u32 %r5, 32; setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} add.u32 %r6, %r6, 32;"
            "setp.lt.u32 %p1, %r6, %r20; @%p1 bra L; ret;",
}
BLOCKS = (64, 96, 128, 256)


def module(body: str) -> str:
    return kernel("u64 x, u64 y, u32 n, u32 w", START + body)


def alike(text: str, block: int, **arguments: Any) -> None:
    """Both tiers write the same, or find the same fault; by then other warps may have written more."""
    (said, memory), (second, found) = outcomes(text, 2, block, None, None, **arguments)
    assert second == said
    assert said or found == memory


def meets(body: str, block: int) -> bool:
    """Whether all warps make the turns of a loop together."""
    code = Program(parse(module(body))).code("k", LaunchConfig(1, block).block)
    return any(each.turn is not None for each in plan_block_function(code).blocks)


@pytest.mark.parametrize("name", TOGETHER)
def test_results_and_faults(name: str, rng: np.random.Generator) -> None:
    some = random.Random(int(rng.integers(1 << 30)))
    assert meets(TOGETHER[name], 128) is (name != "some")
    block = some.choice(BLOCKS)
    total, scale = 2 * block, 4 if name == "pointers" else 1
    for short in (0, 0, 0, 1, total):
        n = some.choice([0, 1, 31, total - 1, total, 3 * total, 3 * total - 33, 5 * total + 7, 4 * total + block + 32])
        most = 5 * total if name == "always" else max(n, 1)
        size = scale * max(1, most - short)
        values = rng.integers(0, 1 << 32, size, np.uint32)
        w = np.uint32(some.choice([0, 1, 40, block // 2, block, n // 2]))
        out = np.full(max(size, total), 0xABCD, np.uint32)
        alike(module(TOGETHER[name]), block, x=values, y=out, n=np.uint32(n), w=w)


@pytest.mark.parametrize("name", ALONE)
def test_other_loops(name: str) -> None:
    assert not meets(ALONE[name], 128)


def test_the_budget_ends_in_a_turn(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    monkeypatch.setattr(block_function, "BUDGET", 300)
    own = f"xor.b32 %r30, %r30, {rng.integers(1 << 30)};"  # no other test has this kernel
    text = module(f"setp.ge.u32 %p1, %r6, %r20; @%p1 ret; L: {TURN} {own} {NEXT} ret;")
    values = rng.integers(0, 1 << 32, 9000, np.uint32)
    alike(text, 128, x=values, y=np.zeros_like(values), n=np.uint32(values.size - 5), w=np.uint32(0))
