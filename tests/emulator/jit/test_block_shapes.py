"""Blocks of any shape in the second tier: what the first tier gives, to the bit, sanitized or not.

Warps of which lanes are missing, rows that are no part of a warp, lanes that end early; and accesses of all patterns.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from synchronisation_kernels import FETCHES, LINEAR, ROTATE
from two_tiers import same

from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

SHAPES: list[tuple[int, ...]] = [
    (4, 4), (5, 7, 3), (48,), (8, 8), (5, 5), (24, 3), (33,), (16, 3), (3,), (8, 3), (2, 3, 4), (24, 8), (40, 2),
    (8, 4, 3), (1, 9), (20,), (4, 9), (24,), (128,), (16, 8), (32, 3),
]

START = """
    .shared .align 4 .b8 s[4096];
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [z];
    ld.param.u64 %rd10, [t]; ld.param.u32 %r20, [n]; ld.param.u32 %r21, [w]; mov.u32 %r30, s;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r7, %r6, %r4, %r1; mov.u32 %r8, %ctaid.x;
    mov.u32 %r9, %ntid.z; mul.lo.u32 %r10, %r4, %r5; mul.lo.u32 %r10, %r10, %r9;
    mad.lo.u32 %r11, %r8, %r10, %r7; mad.lo.u32 %r31, %r7, 4, %r30; mov.u32 %r12, %r7; mov.u32 %r13, %r11;
    and.b32 %r14, %r7, 3; mov.u32 %r15, 0; st.shared.u32 [%r31], %r11; bar.sync 0;
"""
"""x is read, y has a number a thread, z a row of 4 numbers for each; %r7 and %r11 are the thread's numbers.

Where "leave" and "search" load, from one of two arrays in each lane, block functions have a side exit.
"""
END = """
    DONE: mul.wide.u32 %rd9, %r11, 4; add.u64 %rd9, %rd9, %rd1; xor.b32 %r12, %r12, %r13; xor.b32 %r12, %r12, %r15;
    st.global.u32 [%rd9], %r12; ret;
"""


def piece(rng: random.Random, n: int, warp: bool) -> str:
    """A few instructions: accesses of all patterns, loops, branches, exits, barriers, what warps do together."""
    value = f"%r{rng.choice([12, 13, 15])}"
    scale = rng.choice([4, 8, 12, 16])
    index = rng.choice(["%r7", "%r1", "%r2", "%r6", "%r11", "%r14"])
    kinds = ["row", "strided", "shared", "table", "loop", "loop", "half", "bound", "out", "vector", "barrier", "bins",
             "bound", "stride", "tree", "nested", "trap", "leave", "search"]
    kind = rng.choice(kinds + (["shfl", "vote", "match"] if warp else []))
    address = f"mad.wide.u32 %rd8, %r22, {scale}, %rd0; ld.global.u32 %r23, [%rd8+{4 * rng.randrange(4)}];"
    return {
        "row": f"mad.lo.u32 %r22, %r2, %r21, %r1; {address} add.u32 {value}, {value}, %r23;",
        "strided": f"mov.u32 %r22, {index}; {address} xor.b32 {value}, {value}, %r23;",
        "table": f"and.b32 %r22, {value}, 255; {address} add.u32 {value}, {value}, %r23;",
        "shared": f"add.u32 %r22, %r7, {rng.randrange(1, 40)}; rem.u32 %r22, %r22, %r10;"
                  f"mad.lo.u32 %r22, %r22, 4, %r30; ld.shared.u32 %r23, [%r22]; sub.u32 {value}, {value}, %r23;",
        "loop": f"mov.u32 %r24, 0; L{n}: mad.lo.u32 %r22, %r24, %r21, {index};"
                f"and.b32 %r22, %r22, 511; {address} mad.lo.u32 {value}, {value}, 3, %r23; add.u32 %r24, %r24, 1;"
                f"setp.lt.u32 %p1, %r24, {rng.choice(['4', '%r14', '%r20'])}; @%p1 bra L{n};",
        "half": f"and.b32 %r22, {value}, 1; setp.eq.u32 %p1, %r22, 0; @%p1 bra H{n}; shr.u32 {value}, {value}, 1;"
                f"bra J{n}; H{n}: mad.lo.u32 {value}, {value}, 5, %r13; J{n}:",
        "bound": f"setp.ge.u32 %p1, {index}, {rng.randrange(1, 60)}; @%p1 bra B{n};"
                 f"mov.u32 %r22, %r7; {address} add.u32 {value}, {value}, %r23; B{n}:",
        "nested": f"setp.ge.u32 %p1, {index}, {rng.randrange(1, 90)}; @%p1 bra B{n}; mov.u32 %r22, %r7; {address}"
                  f"add.u32 {value}, {value}, %r23; setp.lt.u32 %p3, {rng.choice(['%r1', '%r7'])}, {rng.randrange(40)};"
                  f"@%p3 bra C{n}; mad.lo.u32 {value}, {value}, 7, %r14; {address} sub.u32 %r12, %r12, %r23; C{n}:"
                  f"xor.b32 %r15, %r15, {value}; {address} add.u32 %r13, %r13, %r23; B{n}:",
        "stride": f"mov.u32 %r24, {rng.choice(['%r7', '%r1'])}; setp.ge.u32 %p1, %r24, {rng.randrange(1, 200)};"
                  f"@%p1 bra B{n}; L{n}: and.b32 %r22, %r24, 511; {address} mad.lo.u32 {value}, {value}, 5, %r23;"
                  f"add.u32 %r24, %r24, {rng.choice(['%r4', '%r10', '32'])}; setp.lt.u32 %p1, %r24, 200;"
                  f"@%p1 bra L{n}; B{n}:",
        "tree": f"bar.sync 0; st.shared.u32 [%r31], {value}; mov.u32 %r24, {rng.choice([64, 16, 24])};"
                f"L{n}: bar.sync 0;"
                f"setp.ge.u32 %p1, %r7, %r24; add.u32 %r22, %r7, %r24; setp.ge.u32 %p3, %r22, %r10;"
                f"or.pred %p1, %p1, %p3; @%p1 bra B{n}; mad.lo.u32 %r22, %r22, 4, %r30; ld.shared.u32 %r22, [%r22];"
                f"ld.shared.u32 %r23, [%r31]; add.u32 %r23, %r23, %r22; mad.lo.u32 %r23, %r23, 3, %r14;"
                f"add.u32 %r23, %r23, %r14; mul.lo.u32 %r23, %r23, 3; sub.u32 %r23, %r23, %r14;"
                f"st.shared.u32 [%r31], %r23; B{n}: shr.u32 %r24, %r24, 1; setp.ne.u32 %p1, %r24, 0; @%p1 bra L{n};"
                f"bar.sync 0; ld.shared.u32 %r23, [%r30]; add.u32 {value}, {value}, %r23;",
        "trap": f"setp.ge.u32 %p1, {index}, {rng.randrange(1, 60)}; @%p1 bra B{n}; mov.u32 %r22, %r7; {address}"
                f"setp.eq.u32 %p3, %r11, {rng.randrange(1000)}; @%p3 trap; add.u32 {value}, {value}, %r23; B{n}:",
        "leave": f"setp.gt.u32 %p3, {index}, {rng.randrange(50)}; selp.b64 %rd7, %rd0, %rd10, %p3;"
                 f"and.b32 %r22, %r7, 63; mad.wide.u32 %rd7, %r22, 4, %rd7; ld.global.u32 %r23, [%rd7];"
                 f"add.u32 {value}, {value}, %r23;",
        "search": f"mov.u32 %r24, 0; mov.u32 %r25, 5; L{n}: and.b32 %r22, {value}, 1; setp.eq.u32 %p1, %r22, 0;"
                  f"@%p1 bra J{n}; setp.gt.u32 %p3, {index}, %r24; and.b32 %r22, %r7, 63;"
                  f"selp.b64 %rd7, %rd0, %rd10, %p3; mad.wide.u32 %rd7, %r22, 4, %rd7; ld.global.u32 %r23, [%rd7];"
                  f"xor.b32 {value}, {value}, %r23; and.b32 %r25, {value}, 7; J{n}: add.u32 %r24, %r24, 1;"
                  f"mad.lo.u32 {value}, {value}, 3, 1; setp.gt.u32 %p1, %r25, %r24; @%p1 bra L{n};",
        "out": f"mad.wide.u32 %rd8, %r11, 16, %rd2; st.global.u32 [%rd8+{4 * rng.randrange(4)}], {value};",
        "vector": f"mad.wide.u32 %rd8, %r11, 16, %rd2; st.global.v2.u32 [%rd8], {{{value}, %r11}};"
                  f"ld.global.v4.u32 {{%r22, %r23, %r24, %r25}}, [%rd8]; add.u32 {value}, {value}, %r22;",
        "barrier": f"bar.sync 0; st.shared.u32 [%r31], {value}; bar.sync 0;",
        "bins": f"bar.sync 0; and.b32 %r22, {value}, 7; mad.lo.u32 %r22, %r22, 4, %r30; red.shared.add.u32 [%r22], 3;"
                "bar.sync 0;",
        "shfl": f"activemask.b32 %r26; shfl.sync.{rng.choice(['bfly', 'up', 'down', 'idx'])}.b32 %r23|%p1, {value},"
                f"{rng.randrange(32)}, {rng.choice([31, 0, 0x1800])}, %r26; @%p1 add.u32 {value}, {value}, %r23;",
        "vote": f"activemask.b32 %r26; setp.gt.u32 %p1, {value}, 77; vote.sync.ballot.b32 %r23, %p1, %r26;"
                f"xor.b32 {value}, {value}, %r23;",
        "match": f"activemask.b32 %r26; and.b32 %r22, {value}, 3; match.any.sync.b32 %r23, %r22, %r26;"
                 f"redux.sync.add.u32 %r22, %r14, %r26; add.u32 {value}, %r23, %r22;",
    }[kind]


def program(rng: random.Random, warp: bool = True) -> str:
    pieces = [piece(rng, n, warp) for n in range(rng.randrange(2, 7))]
    if rng.random() < 0.4:  # lanes that end early
        at, over = rng.randrange(len(pieces) + 1), rng.choice(["%r7", "%r1", "%r2", "%r11", "%r14"])
        compared = f"setp.{rng.choice(['ge', 'eq', 'ge'])}.u32 %p2, {over}, {rng.randrange(1, 50)}"
        pieces.insert(at, f"{compared}; @%p2 {rng.choice(['exit', 'bra GONE'])};")
        if over != "%r7":  # which whole warps would have to miss
            pieces[at + 1 :] = [each for each in pieces[at + 1 :] if "bar.sync" not in each]
    return kernel("u64 x, u64 y, u64 z, u64 t, u32 n, u32 w", START + "\n".join(pieces) + END + " GONE: ret;")


def arguments(rng: random.Random, block: tuple[int, ...], blocks: int) -> dict[str, Any]:
    threads, data = int(np.prod(block)), np.random.default_rng(rng.randrange(1 << 30))
    return {
        "x": data.integers(0, 1 << 32, 4 * 512 + 8, np.uint32), "y": np.zeros(threads * blocks, np.uint32),
        "z": np.zeros(4 * threads * blocks, np.uint32), "t": data.integers(0, 1 << 32, 64, np.uint32),
        "n": np.uint32(rng.randrange(1, 6)),
        "w": np.uint32(rng.randrange(1, 40)),
    }


@pytest.mark.parametrize("part", range(3))
def test_random_programs(part: int, rng: np.random.Generator) -> None:
    seed = 3 * part + int(rng.integers(3))
    drawn = random.Random(f"shapes {seed}")
    block = SHAPES[seed % len(SHAPES)]
    same(program(drawn), 3, block, **arguments(drawn, block, 3))


def test_random_programs_sanitized(rng: np.random.Generator) -> None:
    seed = int(rng.integers(3))
    drawn = random.Random(f"sanitized shapes {seed}")
    block = SHAPES[seed % len(SHAPES)]
    same(program(drawn, False), 3, block, "all", **arguments(drawn, block, 3))


def test_blocks_are_not_left(rng: np.random.Generator) -> None:
    """A tree reduction, a bound on the data and an early end need no side exit."""
    text = kernel("u64 x, u64 y, u32 n", """
        .shared .align 4 .b8 s[1024];
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r4, [n]; mov.u32 %r5, s;
        mad.wide.u32 %rd2, %r3, 4, %rd0; mad.lo.u32 %r6, %r2, 4, %r5; mov.u32 %r7, 0;
        setp.ge.u32 %p0, %r3, %r4; @%p0 bra NONE; ld.global.u32 %r7, [%rd2]; NONE: st.shared.u32 [%r6], %r7;
        mov.u32 %r8, 128; AGAIN: bar.sync 0; add.u32 %r9, %r2, %r8; setp.ge.u32 %p0, %r2, %r8;
        setp.ge.u32 %p1, %r9, %r1; or.pred %p0, %p0, %p1; @%p0 bra SKIP;
        mad.lo.u32 %r12, %r9, 4, %r5; ld.shared.u32 %r10, [%r12]; ld.shared.u32 %r11, [%r6];
        add.u32 %r10, %r10, %r11; st.shared.u32 [%r6], %r10; SKIP: shr.u32 %r8, %r8, 1;
        setp.ne.u32 %p0, %r8, 0; @%p0 bra AGAIN; bar.sync 0; setp.ge.u32 %p2, %r2, 3; @%p2 bra DONE;
        ld.shared.u32 %r7, [s]; mad.wide.u32 %rd3, %r3, 4, %rd1; st.global.u32 [%rd3], %r7;
        DONE: ret;""")
    for threads in (200, 64, 40, 12):
        x = rng.integers(0, 1 << 20, 5 * threads, np.uint32)
        y, n = np.zeros(5 * threads, np.uint32), 4 * threads + threads // 3
        made = Program(parse(text))
        code = made.code("k", (threads, 1, 1))
        assert compile_block_function(code)
        made.run("k", LaunchConfig(5, threads), [argument(*each) for each in (("x", x), ("y", y), ("n", np.uint32(n)))])
        sums = np.where(np.arange(5 * threads) < n, x, 0).reshape(5, threads).sum(1)
        np.testing.assert_array_equal(y.reshape(5, threads)[:, :3], np.repeat(sums[:, None], 3, 1))
        assert not code.exits, threads


ENDS = {
    "guard": "setp.eq.u32 %p0, %r2, 1; @%p0 ret;",
    "arm": "setp.eq.u32 %p0, %r4, 0; @%p0 bra ON; setp.eq.u32 %p1, %r2, 1; @%p1 bra ON; add.u32 %r1, %r1, 3; ret; ON:",
    "both arms": "setp.eq.u32 %p0, %r4, 0; @%p0 bra EVEN; setp.eq.u32 %p1, %r2, 1; @%p1 bra LAST;"
                 "add.u32 %r1, %r1, 3; bra ON; EVEN: mul.lo.u32 %r1, %r1, 5; bra ON; LAST: ret; ON:",
}
"""Ends of the threads whose %r2, their number modulo 3, is 1; of "arm" it is %r4, modulo 2, and %r2 not 1."""


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("how", ENDS)
def test_lanes_that_have_ended_are_gone_behind_the_next_barriers(how: str, again: bool) -> None:
    """``again``: the barrier before their end is in a loop, whose second turn they do not make."""
    text = kernel("u64 x, u64 y", f"""
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; mov.u32 %r0, %tid.x; mov.u32 %r5, 0;
        mad.wide.u32 %rd2, %r0, 4, %rd0; mad.wide.u32 %rd3, %r0, 4, %rd1; ld.global.u32 %r1, [%rd2];
        rem.u32 %r2, %r1, 3; and.b32 %r4, %r1, 1;
        AGAIN: bar.sync 0; st.global.u32 [%rd3], %r1; {ENDS[how]} bar.sync 0; add.u32 %r1, %r1, 100;
        st.global.u32 [%rd3], %r1; add.u32 %r5, %r5, 1; setp.lt.u32 %p5, %r5, {1 + again}; @%p5 bra AGAIN;
        bar.sync 0; add.u32 %r1, %r1, 1000; st.global.u32 [%rd3], %r1; ret;""")
    x = np.random.default_rng(3).integers(0, 90, 80, np.uint32)
    assert not same(text, 1, 80, x=x, y=np.zeros_like(x))
    y = np.zeros_like(x)
    Program(parse(text)).run("k", LaunchConfig(1, 80), [argument("x", x), argument("y", y)])
    gone = (x % 2 == 1) & (x % 3 != 1) if how == "arm" else (x % 3 == 1) & ((x % 2 == 1) | (how == "guard"))
    assert gone.any() and np.array_equal(y[gone], x[gone])
    assert (y[~gone] > 1000).all()


def test_side_exits_keep_what_lanes_read_that_wait_elsewhere() -> None:
    """%r4 is read behind the branch by the lanes that take it; those that load write it first."""
    text = kernel("u64 x, u64 y, u64 t", """
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [t]; mov.u32 %r0, %tid.x;
        mad.wide.u32 %rd3, %r0, 4, %rd0; ld.global.u32 %r1, [%rd3]; and.b32 %r4, %r1, 7; mov.u32 %r5, 0;
        AGAIN: mad.lo.u32 %r1, %r1, 1664525, 1013904223; shr.u32 %r2, %r1, 24; and.b32 %r2, %r2, 3;
        setp.ne.u32 %p0, %r2, 0; @%p0 bra BEHIND;
        and.b32 %r3, %r0, 1; setp.eq.u32 %p1, %r3, 0; selp.b64 %rd4, %rd0, %rd2, %p1;
        mad.wide.u32 %rd4, %r0, 4, %rd4; ld.global.u32 %r4, [%rd4]; and.b32 %r4, %r4, 15;
        BEHIND: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r4; @%p2 bra AGAIN;
        mad.wide.u32 %rd5, %r0, 4, %rd1; mad.lo.u32 %r6, %r5, 16, %r4; st.global.u32 [%rd5], %r6; ret;""")
    data = np.random.default_rng(5)
    x, t = (data.integers(0, 1 << 32, 64, np.uint32) for _ in range(2))
    assert not same(text, 1, 64, x=x, y=np.zeros(64, np.uint32), t=t)


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("how", FETCHES)
def test_checks_of_memory_that_other_blocks_have(how: str, right: bool) -> None:
    """Whose memory it is, is not known; without the first barrier the blocks of a cluster race."""
    body = ROTATE.format(linear=LINEAR, fetch=FETCHES[how])
    if not right:
        body = body.replace("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;", "")
    said = same(kernel("u64 out", body), 4, 64, "all", 2, out=np.zeros((4, 64), np.uint32))
    assert bool(said) is not right, said
