"""Several blocks in one call: what the first tier gives, in grids of each shape; and which block has the fault."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulator_harness import kernel
from llvmlite import ir
from two_tiers import outcomes, same

from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

START = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z; mov.u32 %r6, %nctaid.x; mov.u32 %r7, %nctaid.y;
    mad.lo.u32 %r8, %r5, %r7, %r4; mad.lo.u32 %r8, %r8, %r6, %r3; mad.lo.u32 %r9, %r8, %r2, %r1;
"""
"""%r8 is the number of the block, %r9 that of the thread in the grid."""
PLACE = "mul.wide.u32 %rd2, %r9, 4; add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1;"
COPY = f"""{PLACE} ld.global.u32 %r10, [%rd3]; mad.lo.u32 %r10, %r3, 3, %r10; mad.lo.u32 %r10, %r4, 5, %r10;
    mad.lo.u32 %r10, %r5, 7, %r10; st.global.u32 [%rd4], %r10;"""
TOGETHER = {
    "all": f"{COPY} ret;",
    "bound": f"setp.ge.u32 %p1, %r9, %r20; @%p1 ret; {COPY} ret;",
    "vectors": """setp.ge.u32 %p1, %r9, %r20; @%p1 bra END; mul.wide.u32 %rd2, %r9, 16; add.u64 %rd3, %rd2, %rd0;
        add.u64 %rd4, %rd2, %rd1; ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd3];
        st.global.v4.u32 [%rd4], {%r13, %r3, %r12, %r8}; END: ret;""",
    "bytes": f"""{PLACE} cvt.u64.u32 %rd2, %r9; add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1;
        ld.global.u8 %r10, [%rd3]; add.u32 %r10, %r10, %r8; st.global.u8 [%rd4], %r10; ret;""",
    "once": f"setp.ne.u32 %p1, %r8, 2; @%p1 ret; {COPY} ret;",
}
APART = {
    "shared": f""".shared .align 4 .b8 s[128]; {COPY} mov.u32 %r30, s; ld.shared.u32 %r10, [%r30];
        st.global.u32 [%rd4], %r10; ret;""",
    "barrier": f"{COPY} bar.sync 0; ret;",
}
GRIDS = (7, 33, (5, 3), (2, 3, 4), (1, 9), (1, 1, 5))


def module(body: str) -> str:
    return kernel("u64 x, u64 y, u32 n", START + body)


def together(body: str, block: int) -> bool:
    made = ir.Module()
    code = Program(parse(module(body))).code("k", LaunchConfig(1, block).block)
    emit_block_function(made, "k", plan_block_function(code))
    return any(each.name.startswith("next_block") for each in made.globals["k"].blocks)


@pytest.mark.parametrize("name", TOGETHER)
def test_results_and_faults(name: str, rng: np.random.Generator) -> None:
    some = random.Random(int(rng.integers(1 << 30)))
    for grid in some.sample(GRIDS, 3):
        block = some.choice([32, 64, 96, 256])
        assert together(TOGETHER[name], block)
        total = int(np.prod(grid)) * block
        size = (4 if name == "vectors" else 1) * total
        values = rng.integers(0, 1 << 32, size + some.choice([0, 0, -5, -3 * block]), np.uint32)
        n = some.choice([total, total - 1, total - block - 7, block + 3, 0])
        same(module(TOGETHER[name]), grid, block, x=values, y=np.full(size, 0xA5, np.uint32), n=np.uint32(n))


@pytest.mark.parametrize("block", [1, 7, 16, 20, 31, 33, (4, 5), (16, 2), (3, 3, 3)])
def test_small_and_odd_blocks(block: int | tuple[int, ...], rng: np.random.Generator) -> None:
    """Nothing is written by lanes that a block does not have."""
    name = random.Random(int(rng.integers(1 << 30))).choice(list(TOGETHER))
    size = 6 * int(np.prod(block)) * (4 if name == "vectors" else 1)
    values, out = rng.integers(0, 1 << 32, size, np.uint32), np.full(size + 64, 0xA5, np.uint32)
    same(module(TOGETHER[name]), (3, 2), block, x=values, y=out, n=np.uint32(size))


@pytest.mark.parametrize("name", APART)
def test_others(name: str) -> None:
    assert not together(APART[name], 64)


def test_a_block_in_the_middle_has_the_fault(rng: np.random.Generator) -> None:
    """It is told with that block's index; the blocks before it have run, and none behind it."""
    grid, block, bad = (6, 4), 64, int(rng.integers(3, 20))
    body = f"""setp.eq.u32 %p1, %r8, {bad}; selp.u32 %r9, 1000000, %r9, %p1; {COPY} ret;"""
    values, out = np.arange(24 * block, dtype=np.uint32), np.zeros(24 * block, np.uint32)
    (said, memory), second = outcomes(module(body), grid, block, None, None, x=values, y=out, n=np.uint32(0))
    assert second == (said, memory)
    assert f"({bad % 6}, {bad // 6}, 0)" in said
    written = np.frombuffer(memory[1], np.uint32).reshape(24, block)
    assert written[:bad].any(axis=1).all() and not written[bad + 1 :].any()
