"""Grid-stride loops of several blocks at once: what the first tier gives, in which order, and which loops these are."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel
from two_tiers import outcomes

from ptxdsl.emulator.jit import block_function, planning
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

START = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %nctaid.x;
    mul.lo.u32 %r5, %r3, %r4; mad.lo.u32 %r6, %r2, %r3, %r1;
"""
PLACE = "mul.wide.u32 %rd2, %r6, 4; add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1;"
COPY = f"{PLACE} ld.global.u32 %r10, [%rd3]; mad.lo.u32 %r10, %r10, 3, %r6; st.global.u32 [%rd4], %r10;"
IN_PLACE = f"{PLACE} ld.global.u32 %r10, [%rd4]; mad.lo.u32 %r10, %r10, 3, 1; st.global.u32 [%rd4], %r10;"
NEXT = "add.u32 %r6, %r6, %r5; setp.lt.u32 %p1, %r6, %r20; @%p1 bra L;"
FIRST = "setp.ge.u32 %p1, %r6, %r20; @%p1 ret;"
TOGETHER = {
    "copy": f"{FIRST} L: {COPY} {NEXT} ret;",
    "in place": f"{FIRST} L: {IN_PLACE} {NEXT} ret;",
    "bound": f"L: setp.ge.u32 %p1, %r6, %r20; @%p1 bra END; {IN_PLACE} add.u32 %r6, %r6, %r5; bra L; END: ret;",
    "signed": f"{FIRST} L: {IN_PLACE} add.s32 %r6, %r6, %r5; setp.lt.s32 %p1, %r6, %r20; @%p1 bra L; ret;",
    "pointers": """setp.ge.u32 %p1, %r6, %r20; @%p1 bra END; mul.wide.u32 %rd2, %r6, 16; add.u64 %rd3, %rd2, %rd0;
        add.u64 %rd4, %rd2, %rd1; mul.wide.u32 %rd5, %r5, 16;
        L: ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd3]; st.global.v4.u32 [%rd4], {%r12, %r11, %r13, %r10};
        add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5; add.u32 %r6, %r6, %r5; setp.lt.u32 %p1, %r6, %r20;
        @%p1 bra L; END: ret;""",
    "counted": f"""mov.u32 %r7, 0; {FIRST} L: {IN_PLACE} add.u32 %r7, %r7, 7; {NEXT}
        mad.lo.u32 %r6, %r2, %r3, %r1; {PLACE} ld.global.u32 %r10, [%rd4]; add.u32 %r10, %r10, %r7;
        st.global.u32 [%rd4], %r10; ret;""",
    "carry": f"""{FIRST} sub.u32 %r7, %r6, %r20; L: {COPY} add.cc.u32 %r7, %r7, %r5; addc.u32 %r8, 0, 0;
        setp.eq.u32 %p1, %r8, 0; add.u32 %r6, %r6, %r5; @%p1 bra L; ret;""",
    "lanes": f"mul.lo.u32 %r8, %r1, %r1; {FIRST} L: {IN_PLACE} add.u32 %r10, %r10, %r8; st.global.u32 [%rd4], %r10;"
             f"{NEXT} ret;",
    "always": f"mov.u32 %r7, 0; L: {IN_PLACE} add.u32 %r6, %r6, %r5; add.u32 %r7, %r7, 1; setp.lt.u32 %p1, %r7, 5;"
              "@%p1 bra L; ret;",
    "numbers": f"""{FIRST} mad.lo.u32 %r9, %r2, 5, %r4; L: {PLACE} mad.lo.u32 %r10, %r9, 3, %r6;
        st.global.u32 [%rd4], %r10; {NEXT} ret;""",
}
APART = {
    "a step that changes": f"{FIRST} mov.u32 %r7, %r5; L: {COPY} add.u32 %r7, %r7, %r5; add.u32 %r6, %r6, %r5;"
                           "add.u32 %r6, %r6, %r5; setp.lt.u32 %p1, %r6, %r20; @%p1 bra L; ret;",
    "a product": f"mov.u32 %r7, 1; {FIRST} L: {COPY} mul.lo.u32 %r7, %r7, 3; {NEXT} mul.wide.u32 %rd2, %r1, 4;"
                 "add.u64 %rd4, %rd2, %rd1; st.global.u32 [%rd4], %r7; ret;",
    "a load before": f"ld.global.u32 %r7, [%rd0]; {FIRST} L: {COPY} {NEXT} ret;",
    "any space": f"{FIRST} L: mul.wide.u32 %rd2, %r6, 4; add.u64 %rd4, %rd2, %rd1; st.u32 [%rd4], %r6; {NEXT} ret;",
}


def module(body: str) -> str:
    return kernel("u64 x, u64 y, u32 n", START + body)


def alike(text: str, grid: Any, block: int, **arguments: Any) -> tuple[Any, Any]:
    """Both tiers write the same, or find the same fault; by then other blocks may have written more."""
    (said, memory), (second, found) = outcomes(text, grid, block, None, None, **arguments)
    assert second == said
    assert said or found == memory
    return said, found


def together(body: str) -> bool:
    code = Program(parse(module(body))).code("k", LaunchConfig(1, 128).block)
    plan = plan_block_function(code)
    assert any(block.turn is not None for block in plan.blocks)
    return bool(plan.grid_steps)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> int:
    """Host threads that blocks are shared out among."""
    count = int(rng.integers(1, 4))
    monkeypatch.setattr(planning, "cores", lambda: count)
    return count


@pytest.mark.parametrize("name", TOGETHER)
def test_results_and_faults(name: str, threads: int, rng: np.random.Generator) -> None:
    some = random.Random(int(rng.integers(1 << 30)))
    assert together(TOGETHER[name])
    grid, block = some.choice([5, 9, 16]), some.choice([64, 128])
    total, scale = grid * block, 4 if name == "pointers" else 1
    for short in (0, 0, some.choice([1, total, 2 * total + 40])):
        n = some.choice([31, total, 3 * total, 6 * total - 33, 5 * total + 7, 4 * total + block + 32, 7 * total])
        most = 5 * total if name == "always" else max(n, 1)
        size = scale * max(1, most - short)
        values = rng.integers(0, 1 << 32, size, np.uint32)
        out = rng.integers(0, 1 << 32, max(size, total), np.uint32)
        shape = (grid, 2) if name in ("copy", "numbers") and some.random() < 0.3 else grid
        alike(module(TOGETHER[name]), shape, block, x=values, y=out, n=np.uint32(n))


@pytest.mark.parametrize("name", APART)
def test_other_loops(name: str) -> None:
    code = Program(parse(module(APART[name]))).code("k", LaunchConfig(1, 128).block)
    assert not plan_block_function(code).grid_steps


def test_the_last_block_has_made_turns_when_the_first_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "cores", lambda: 1)
    grid, block, turns = 7, 64, 5
    short = turns * grid * block + 5  # the first block fails in its sixth turn
    values, out = np.arange(short, dtype=np.uint32), np.zeros(6 * grid * block, np.uint32)
    text = module(TOGETHER["copy"].replace("mad.lo.u32 %r10, %r10, 3, %r6", "mad.lo.u32 %r10, %r10, 1, 9"))
    (said, _), (second, found) = outcomes(text, grid, block, None, None, x=values, y=out, n=np.uint32(out.size))
    assert said and second == said
    written = np.frombuffer(found[1], np.uint32)
    last = (turns * grid - 1) * block
    assert np.array_equal(written[last : last + block], values[last : last + block] + 9)


def test_the_budget_ends_in_a_turn(monkeypatch: pytest.MonkeyPatch, threads: int, rng: np.random.Generator) -> None:
    monkeypatch.setattr(block_function, "BUDGET", 900)
    own = f"xor.b32 %r30, %r30, {rng.integers(1 << 30)};"  # no other test has this kernel
    text = module(f"{FIRST} L: {IN_PLACE} {own} {NEXT} ret;")
    values = rng.integers(0, 1 << 32, 19000, np.uint32)
    alike(text, 8, 128, x=values, y=values.copy(), n=np.uint32(values.size - 5))
