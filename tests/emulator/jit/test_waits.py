"""Loops that poll, loops that look like it, and lanes that wait at barriers meanwhile: none takes conservative code."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel
from two_tiers import same

from ptxdsl import emulator
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.instructions.control import Branch, Jump
from ptxdsl.emulator.jit.compilation import tier_up
from ptxdsl.emulator.machine.budgets import FOLLOWS, POLL
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

CHAIN = kernel("u64 x, u64 flags, u32 last", """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [flags]; ld.param.u32 %r20, [last];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r3, %ntid.x;
    mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd2, %rd1; mov.u32 %r9, 1;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra GO; setp.eq.u32 %p1, %r1, %r20; @%p1 bra SET;
    POLL: ld.volatile.global.u32 %r9, [%rd2+4]; setp.eq.u32 %p2, %r9, 0; @%p2 bra POLL; fence.acq_rel.gpu;
    SET: add.u32 %r9, %r9, 1; st.shared.u32 [sum], %r9; fence.acq_rel.gpu; st.volatile.global.u32 [%rd2], %r9;
    GO: bar.sync 0; ld.shared.u32 %r4, [sum]; mad.lo.u32 %r5, %r1, %r3, %r0; mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd3, %rd3, %rd0; st.global.u32 [%rd3], %r4; ret;
""".replace("ld.param.u64 %rd0", ".shared .u32 sum; ld.param.u64 %rd0", 1))


@pytest.mark.parametrize("second_tier", [False, True])
def test_blocks_that_wait_for_those_behind_while_their_warps_are_at_a_barrier(second_tier: bool) -> None:
    blocks, threads = 16, 64
    program, config = emulator.load(CHAIN), LaunchConfig(blocks, threads)
    code = program.code("k", config.block)
    if second_tier:
        tier_up(code)
    x, flags = np.zeros(blocks * threads, np.uint32), np.zeros(blocks + 1, np.uint32)
    values = {"x": x, "flags": flags, "last": np.uint32(blocks - 1)}
    program.run("k", config, [argument(name, value) for name, value in values.items()])
    assert np.array_equal(x, np.repeat(1 + np.arange(blocks, 0, -1), threads))
    assert not any(code.conservative for _, _, code in program.codes("k"))


OWN_WARP = """
    ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; @%p0 bra OTHERS;
    POLL: ld.volatile.global.u32 %r1, [%rd0]; setp.eq.u32 %p1, %r1, 0; @%p1 bra POLL;
    st.global.u32 [%rd0+4], %r1; bra END;
    OTHERS: {ahead} setp.eq.u32 %p2, %r0, 5; @%p2 st.volatile.global.u32 [%rd0], 7;
    END: bar.sync 0; ret;
"""


@pytest.mark.parametrize("ahead", ["", "setp.gt.u32 %p3, %r0, 40; @%p3 bra END;"])
def test_lanes_that_wait_for_others_of_their_warp_still_get_conservative_code(ahead: str) -> None:
    program, config = emulator.load(kernel("u64 x", OWN_WARP.replace("{ahead}", ahead))), LaunchConfig(2, 32)
    x = np.zeros(2, np.uint32)
    program.run("k", config, [argument("x", x)])
    assert x.tolist() == [7, 7]


BOTH_BACK = """
    ld.param.u64 %rd0, [x]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0;
    ld.global.u32 %r1, [%rd1]; and.b32 %r2, %r1, 63; shr.u32 %r3, %r1, 26; mov.u32 %r9, 0;
    AGAIN: mov.u32 %r4, %r2;
    IN: shr.u32 %r4, %r4, 1; add.u32 %r9, %r9, %r4; setp.gt.u32 %p0, %r4, 3; @%p0 bra IN;
    setp.lt.u32 %p1, %r2, %r3; @%p1 bra SECOND; bra.uni FIRST;
    SECOND: sub.u32 %r3, %r3, 1; mad.lo.u32 %r9, %r9, 5, %r3; setp.ne.u32 %p2, %r3, 0; @%p2 bra AGAIN; bra.uni END;
    FIRST: setp.eq.u32 %p3, %r2, 0; @%p3 bra END; sub.u32 %r2, %r2, 1; mad.lo.u32 %r9, %r9, 3, %r2;
    setp.eq.u32 %p4, %r2, 5; @%p4 bra END; bra.uni AGAIN;
    END: bar.sync 0; add.u32 %r9, %r9, %r2; st.global.u32 [%rd1], %r9; ret;
"""


def test_both_ways_of_a_branch_that_lead_back_run_before_the_barrier() -> None:
    text = kernel("u64 x", BOTH_BACK)
    x = np.random.default_rng().integers(0, 1 << 32, 64, np.uint32)
    same(text, 1, 64, x=x)
    program, config = emulator.load(text), LaunchConfig(1, 64)
    code = program.code("k", config.block)
    tier_up(code)
    program.run("k", config, [argument("x", x)])
    assert code.block_function and not code.exits


def costs(body: str) -> list[int]:
    code: Code = Program(parse(kernel("u64 x, u64 y", "ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y];" + body))).code(
        "k", LaunchConfig(1, 64).block
    )
    loops = [placed for placed in code.micro_ops if isinstance(placed.op, (Branch, Jump)) and placed.op.backward]
    return [placed.value("cost") for placed in loops]


@pytest.mark.parametrize(("loop", "cost"), [
    ("L: ld.volatile.global.u32 %r1, [%rd0]; setp.eq.u32 %p0, %r1, 0; @%p0 bra L;", POLL),
    (("mov.u32 %r0, %ctaid.x; L: mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd0;"
     "ld.acquire.gpu.global.u32 %r1, [%rd2]; setp.eq.u32 %p0, %r1, 0; @%p0 bra L;"), POLL),
    ("L: atom.global.cas.b32 %r1, [%rd0], 0, 1; setp.ne.u32 %p0, %r1, 0; @%p0 bra L;", POLL),
    ("L: ld.volatile.global.u64 %rd2, [%rd0]; ld.volatile.global.u32 %r1, [%rd2]; setp.eq.u32 %p0, %r1, 0; @%p0 bra L;",
     POLL),
    (("mov.u32 %r0, %tid.x; L: mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd0; ld.volatile.global.u32 %r1, [%rd2];"
     "setp.ne.u32 %p0, %r1, %r0; mov.u32 %r0, %r1; @%p0 bra L;"), FOLLOWS),
    (("mov.u32 %r0, %tid.x; L: mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd0; add.u32 %r0, %r0, 1;"
     "atom.global.cas.b32 %r1, [%rd2], 0, 9; setp.ne.u32 %p0, %r1, 0; @%p0 bra L;"), FOLLOWS),
    (("mov.u32 %r0, 0; L: mul.wide.u32 %rd2, %r0, 4; add.u64 %rd2, %rd2, %rd0; add.u32 %r0, %r0, 1;"
     "ld.global.u32 %r1, [%rd2]; setp.ne.u32 %p0, %r1, 0; @%p0 bra L;"), 1),
])  # fmt: skip
def test_only_a_loop_that_reads_one_place_gives_way_in_each_turn(loop: str, cost: int) -> None:
    assert costs(loop + "ret;") == [cost]
