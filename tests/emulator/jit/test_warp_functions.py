"""Functions of a warp, for kernels that no block function runs: the results, faults and waits are the first tier's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from emulator_harness import THREAD, argument, kernel, pointer

from ptxdsl import emulator
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.jit import compilation, warp_function
from ptxdsl.emulator.jit.warp_planning import plan_warp_functions
from ptxdsl.errors import EmulationError
from ptxdsl.launch import LaunchConfig

BODY = THREAD + pointer("%rd0", "x") + "ld.global.u32 %r4, [%rd0];\n"


def run(text: str, grid: int, block: int, x: np.ndarray, second: bool) -> tuple[str, np.ndarray, Code]:
    """What was said, what was written, and the code; ``second``: in functions of a warp."""
    program, config, out = emulator.load(text), LaunchConfig(grid, block), x.copy()
    code, said = program.code("k", config.block), ""
    if second:
        compilation.tier_up(code)
        assert code.warp_functions and not code.block_function, code.refusal
    try:
        program.run("k", config, [argument("x", out)])
    except EmulationError as error:
        said = str(error)
    return said, out, code


def same(body: str, grid: int, block: int) -> tuple[str, np.ndarray, np.ndarray]:
    x = np.random.default_rng().integers(0, 1 << 32, grid * block, np.uint32)
    text = kernel("u64 x", body)
    (said, first, _), (again, second, _) = (run(text, grid, block, x, tier) for tier in (False, True))
    assert said == again
    np.testing.assert_array_equal(first, second)
    return said, x, second


LOOP = "mov.u32 %r8, 0; {0}: mad.lo.u32 {1}, {1}, 5, %r8; add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 9; @%p2 bra {0};\n"


@pytest.mark.parametrize("block", [64, 60])
@pytest.mark.parametrize("fails", ["", "setp.eq.u32 %p3, %r5, 3; @%p3 ld.global.u32 %r4, [%rd0+4096];"])
def test_warps_that_hand_over_by_barriers_of_two(fails: str, block: int) -> None:
    """One warp makes what the other takes: one arrives where the other waits."""
    said, _, _ = same(".shared .align 4 .b32 s[32];\n" + BODY + f"""
        mov.u32 %r5, 0; and.b32 %r9, %r2, 31; mov.u32 %r6, s; mad.lo.u32 %r6, %r9, 4, %r6;
        setp.ge.u32 %p1, %r2, 32; @%p1 bra TAKE;
        MAKE: {LOOP.format("A", "%r4")} bar.sync 2, 64; st.shared.u32 [%r6], %r4; bar.arrive 1, 64;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 6; @%p0 bra MAKE; bra END;
        TAKE: bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %r7, [%r6]; {fails}
        {LOOP.format("B", "%r7")} xor.b32 %r4, %r4, %r7;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 6; @%p0 bra TAKE;
        END: st.global.u32 [%rd0], %r4; ret;""", 3, block)
    assert bool(said) == bool(fails)


def polls() -> None:
    """A warp that polls an mbarrier, in a loop that leaves its function in each turn, lets the other one run."""
    same(".shared .align 8 .b64 bar;\n" + BODY + f"""
        setp.eq.u32 %p3, %r2, 0; @%p3 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;
        setp.lt.u32 %p1, %r2, 32; @%p1 bra WORK;
        WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @%p2 bra DONE; bra WAIT;
        DONE: {LOOP.format("A", "%r4")} bra END;
        WORK: {LOOP.format("B", "%r4")} setp.eq.u32 %p3, %r2, 0; @%p3 mbarrier.arrive.shared.b64 _, [bar];
        END: st.global.u32 [%rd0], %r4; ret;""", 3, 64)


def test_a_poll_ends_the_time_slice() -> None:
    """In a process of its own, for without that it never ends."""
    folders = [str(Path(__file__).parent), *sys.path]
    code = f"import sys; sys.path[:0] = {folders}; import test_warp_functions; test_warp_functions.polls()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_long_kernel_is_several_functions() -> None:
    steps = "".join(
        f"mad.lo.u32 %r{10 + k % 8}, %r{10 + (k + 3) % 8}, {2 * k + 1}, %r4; xor.b32 %r4, %r4, %r{10 + k % 8};\n"
        for k in range(900)
    )
    start = "".join(f"mov.u32 %r{10 + k}, {k};" for k in range(8))
    body = BODY + f"""{start} mov.u32 %r5, 0; AGAIN: {steps} add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 3;
        @%p0 bra AGAIN; st.global.u32 [%rd0], %r4; ret;"""
    same(body, 2, 96)
    code = emulator.load(kernel("u64 x", body)).code("k", (96, 1, 1))
    assert len(plan_warp_functions(code).functions) > 1


@pytest.fixture
def no_block_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "compile_block_function", lambda _: False)


WRITES = "".join(f"add.u32 %r{20 + k}, %r4, {k}; xor.b32 %r4, %r4, %r{20 + k};\n" for k in range(12))


@pytest.mark.usefixtures("no_block_functions")
@pytest.mark.parametrize("limit", [7, 32, 40])
def test_a_register_that_lanes_do_not_agree_on(limit: int) -> None:
    """A bound splits a warp; converged code takes what is written behind it for one number."""
    _, x, got = same(BODY + f"""
        mov.u32 %r5, 1; setp.lt.u32 %p1, %r2, {limit}; @%p1 bra ON; {WRITES} mov.u32 %r5, 7;
        ON: bar.sync 1; {LOOP.format("A", "%r5")} add.u32 %r4, %r4, %r5; st.global.u32 [%rd0], %r4; ret;""", 2, 64)
    given = x.reshape(2, 64).astype(np.uint64)
    five = np.where(np.arange(64) < limit, 1, 7).astype(np.uint64)
    value = given.copy()
    for k in range(12):
        value ^= (value + np.uint64(k)) % (1 << 32)
    value = np.where(np.arange(64) < limit, given, value)
    for k in range(9):
        five = (five * 5 + np.uint64(k)) % (1 << 32)
    np.testing.assert_array_equal(got, ((value + five) % (1 << 32)).ravel())


@pytest.mark.usefixtures("no_block_functions")
def test_a_poll_lets_the_other_warp_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warp_function, "BUDGET", 1 << 15)
    same(".shared .align 4 .b32 s[1];\n" + BODY + f"""
        st.shared.u32 [s], 0; bar.sync 0; setp.ge.u32 %p1, %r2, 32; @%p1 bra LATE;
        WAIT: ld.volatile.shared.u32 %r5, [s]; setp.eq.u32 %p0, %r5, 0; @%p0 bra WAIT;
        {LOOP.format("A", "%r4")} bra END;
        LATE: {LOOP.format("B", "%r4")} st.volatile.shared.u32 [s], 1;
        END: st.global.u32 [%rd0], %r4; ret;""", 2, 64)


@pytest.mark.usefixtures("no_block_functions")
@pytest.mark.parametrize("block", [32, 90])
def test_lanes_that_diverge_end_and_leave_the_array(block: int) -> None:
    """Loops of data-dependent length, an exit of some lanes, an access out of bounds in the last block."""
    for offset in (0, 4 * 3 * 90):
        said, _, _ = same(BODY + f"""
            and.b32 %r5, %r4, 15; mov.u32 %r6, 0;
            TURN: mad.lo.u32 %r4, %r4, 3, %r6; add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, %r5; @%p0 bra TURN;
            setp.eq.u32 %p1, %r5, 3; @%p1 ret; bar.warp.sync 0xFFFFFFFF; st.global.u32 [%rd0], %r4;
            setp.eq.u32 %p1, %r5, 9; @%p1 bra SKIP; ld.global.u32 %r7, [%rd0+{offset}]; add.u32 %r4, %r4, %r7;
            SKIP: st.global.u32 [%rd0], %r4; ret;""".replace("bar.warp.sync 0xFFFFFFFF;", ""), 3, block)
        assert bool(said) == bool(offset)


def handed_over(poller: str, block: int) -> str:
    """Warps that hand a number round, each waiting for the one before it; ``poller`` are the lanes that poll."""
    warps = -(-block // 32)
    return f""".shared .align 4 .b32 flags[{warps}]; .shared .align 4 .b32 box[{32 * warps}];\n""" + BODY + f"""
        mov.u32 %r21, %tid.x; and.b32 %r5, %r21, 31; shr.u32 %r6, %r21, 5; mov.u32 %r7, flags;
        mad.lo.u32 %r8, %r6, 4, %r7; st.shared.u32 [%r8], 0; bar.sync 0;
        add.u32 %r9, %r6, {warps - 1}; rem.u32 %r9, %r9, {warps}; mad.lo.u32 %r10, %r9, 4, %r7;
        mov.u32 %r11, box; shl.b32 %r12, %r9, 7; add.u32 %r12, %r12, %r11; mad.lo.u32 %r12, %r5, 4, %r12;
        shl.b32 %r13, %r6, 7; add.u32 %r13, %r13, %r11; mad.lo.u32 %r13, %r5, 4, %r13;
        setp.eq.u32 %p3, %r6, 0; selp.b32 %r14, 1, 0, %p3; mov.u32 %r15, 1; mov.u32 %r17, 0;
        ROUND: setp.eq.u32 %p6, %r15, 1; and.pred %p1, %p6, %p3; @%p1 bra MAKE;
        {poller}; @%p2 bra TOGETHER;
        sub.u32 %r16, %r15, %r14; add.u32 %r17, %r17, %r5;
        WAIT: ld.acquire.cta.shared.u32 %r18, [%r10]; setp.lt.u32 %p0, %r18, %r16; @%p0 bra WAIT;
        TOGETHER: bar.warp.sync 0xFFFFFFFF; ld.shared.u32 %r19, [%r12]; add.u32 %r4, %r19, %r17;
        MAKE: mad.lo.u32 %r4, %r4, 5, %r6; st.shared.u32 [%r13], %r4; bar.warp.sync 0xFFFFFFFF;
        setp.ne.u32 %p4, %r5, 0; @%p4 bra AFTER; st.release.cta.shared.u32 [%r8], %r15;
        AFTER: add.u32 %r15, %r15, 1; setp.le.u32 %p5, %r15, 5; @%p5 bra ROUND;
        st.global.u32 [%rd0], %r4; ret;"""


@pytest.mark.usefixtures("no_block_functions")
@pytest.mark.parametrize(("poller", "sanitize"), [
    ("setp.ne.u32 %p2, %r5, 0", None), ("setp.ne.u32 %p2, %r5, 31", None), ("setp.ge.u32 %p2, %r5, 7", None),
    ("setp.ge.u32 %p2, %r5, 32", None), ("and.b32 %r20, %r5, 1; setp.eq.u32 %p2, %r20, 1", None),
    ("setp.ge.u32 %p2, %r5, 7", ("race", "init")),
])
def test_lanes_that_poll_resume_where_they_polled(poller: str, sanitize: tuple[str, ...] | None) -> None:
    """The others wait behind the poll: what they hold is put together with what the pollers have computed before it."""
    block = 96
    text = kernel("u64 x", handed_over(poller, block))
    x = np.random.default_rng().integers(0, 1 << 32, 2 * block, np.uint32)
    results = []
    for second in (False, True):
        program, config, out = emulator.load(text), LaunchConfig(2, block, sanitize=sanitize), x.copy()
        for _ in range(2 if second else 1):
            out[...] = x
            program.run("k", config, [argument("x", out)])
            codes = [code for _, _, code in program.codes("k")]
            for code in codes if second else ():
                compilation.tier_up(code)
                assert code.warp_functions
        results.append(out)
    np.testing.assert_array_equal(*results)
    lanes = np.arange(32)
    polls = {"0": lanes == 0, "31": lanes == 31, "7": lanes < 7, "32": lanes < 32}.get(poller.rsplit(maxsplit=1)[-1])
    polls = lanes % 2 == 0 if "and.b32" in poller else polls
    for values, got in zip(x.reshape(2, 3, 32), results[0].reshape(2, 3, 32)):
        kept, added = values[0].copy(), np.zeros((3, 32), np.uint32)
        for step in range(15):
            warp = step % 3
            if step:
                added[warp] += np.where(polls, lanes, 0).astype(np.uint32)
                kept = kept + added[warp]
            kept = kept * np.uint32(5) + np.uint32(warp)
            np.testing.assert_array_equal(got[warp] if step >= 12 else kept, kept)
