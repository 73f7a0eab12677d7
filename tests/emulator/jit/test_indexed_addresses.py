"""Accesses by an index of each lane: what the first tier gives, to the bit, faults included."""

from __future__ import annotations

import random

import numpy as np
import pytest
from emulator_harness import kernel
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.text import parse
from two_tiers import outcomes, same

BYTES = {"u8": 1, "s16": 2, "b32": 4, "b64": 8}
REGISTERS = {"u8": "%h4", "s16": "%h4", "b32": "%r10", "b64": "%rd11"}
BLOCKS = [(128,), (96,), (48,), (20,), (33,), (16, 4)]


def addressed(draw: random.Random, scale: int, signed: bool) -> str:
    """Statements that put x plus the index, times the size, in %rd6."""
    kind = "s32" if signed else "u32"
    shift = scale.bit_length() - 1
    ways = [
        f"mul.wide.{kind} %rd5, %r9, {scale}; add.s64 %rd6, %rd0, %rd5;",
        f"mad.wide.{kind} %rd6, %r9, {scale}, %rd0;",
        f"cvt.{kind.replace('32', '64')}.{kind} %rd4, %r9; mul.lo.s64 %rd5, %rd4, {scale}; add.s64 %rd6, %rd5, %rd0;",
        f"mul.wide.{kind} %rd5, %r9, {scale}; mov.u32 %r9, 5; add.s64 %rd6, %rd0, %rd5;",  # no index any more
        f"mul.wide.{kind} %rd5, %r9, {scale}; add.s64 %rd4, %rd0, %rd8; add.s64 %rd6, %rd4, %rd5;",
    ]
    if scale & scale - 1 == 0:
        ways.append(f"cvt.{kind.replace('32', '64')}.{kind} %rd4, %r9; shl.b64 %rd5, %rd4, {shift};"
                    f"add.s64 %rd6, %rd0, %rd5;")
    return draw.choice(ways)


def drawn(draw: random.Random) -> tuple[str, int, str]:
    """A kernel that loads and stores by an index, the bytes from element to element, and the type."""
    kind = draw.choice([*BYTES])
    scale = draw.choice((BYTES[kind], BYTES[kind], 3 * BYTES[kind], 16, 24))
    signed, offset = draw.random() < 0.7, draw.choice((0, 0, BYTES[kind], -BYTES[kind]))
    body = f"""mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x; mad.lo.u32 %r1, %r2, %r3, %r1;
        mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.y; mul.lo.u32 %r5, %r5, %r3; mad.lo.u32 %r2, %r4, %r5, %r1;
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [order]; ld.param.u64 %rd2, [out];
        mul.lo.u32 %r7, %r4, 0; cvt.u64.u32 %rd8, %r7;
        mul.wide.u32 %rd3, %r2, 8; add.u64 %rd2, %rd2, %rd3; mov.u64 %rd9, 0; mov.u16 %h4, 0; mov.u32 %r10, 0;
        mul.wide.u32 %rd3, %r2, 4; add.u64 %rd1, %rd1, %rd3; and.b32 %r6, %r2, {draw.choice((0, 1, 3, 7))};
        add.u32 %r6, %r6, 1; mov.u64 %rd11, 0;
        AGAIN: ld.global.u32 %r9, [%rd1]; {addressed(draw, scale, signed)}
        ld.global.{kind} {REGISTERS[kind]}, [%rd6+{offset + scale}];"""
    wide = {"u8": "cvt.u64.u16", "s16": "cvt.s64.s16", "b32": "cvt.u64.u32", "b64": "mov.b64"}[kind]
    body += f"{wide} %rd12, {REGISTERS[kind]}; mul.lo.u64 %rd9, %rd9, 31; add.u64 %rd9, %rd9, %rd12;"
    if draw.random() < 0.5:
        stored = kind.replace("s", "u")
        body += "cvt.u16.u64 %h4, %rd9; cvt.u32.u64 %r10, %rd9; mov.b64 %rd11, %rd9;"
        body += f"st.global.{stored} [%rd6+{offset + scale}], {REGISTERS[kind]};"
    body += """add.u64 %rd1, %rd1, 4; sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0; @%p3 bra AGAIN;
        st.global.u64 [%rd2], %rd9; ret;"""
    return kernel("u64 x, u64 order, u64 out", body), scale, kind


@pytest.mark.parametrize("number", range(16))
def test_random_kernels(number: int, rng: np.random.Generator) -> None:
    draw = random.Random(int(rng.integers(1 << 62)))
    block, grid = BLOCKS[number % len(BLOCKS)], 3
    threads = int(np.prod(block)) * grid
    text, scale, _ = drawn(draw)
    elements = threads + 40
    x = rng.integers(0, 256, (elements + 2) * scale, np.uint8)
    order = rng.permutation(elements)[: threads + 8].astype(np.int32)  # no two threads meet
    if draw.random() < 0.3:
        order = np.arange(threads + 8, dtype=np.int32)
    if draw.random() < 0.4:
        order[rng.integers(threads)] = draw.choice((-1, -2, elements, elements + 1, 1 << 30, -(1 << 31), (1 << 31) - 1))
    first, second = outcomes(text, grid, block, None, None, x=x, order=order, out=np.zeros(threads, np.uint64))
    assert second[0] == first[0], text
    assert first[0] or second == first, text  # at a fault, other warps may have come further


COLUMNS = kernel(
    "u64 start, u64 x, u64 out",
    """mov.u32 %r1, %tid.x; ld.param.u64 %rd0, [start]; ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [out];
    ld.global.u32 %r2, [%rd0]; ld.global.u32 %r3, [%rd0+4]; add.u32 %r4, %r2, %r1; mov.u32 %r5, 0;
    mul.wide.u32 %rd3, %r4, 4; add.u64 %rd4, %rd1, %rd3; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3;
    setp.ge.u32 %p1, %r4, %r3; @%p1 bra DONE;
    sub.u32 %r7, %r3, %r4; add.u32 %r7, %r7, 31; shr.u32 %r7, %r7, 5;
    AGAIN: ld.global.u32 %r6, [%rd4]; mad.lo.u32 %r5, %r5, 3, %r6; st.global.u32 [%rd4], %r5;
    add.u64 %rd4, %rd4, 128; sub.u32 %r7, %r7, 1; setp.ne.u32 %p1, %r7, 0; @%p1 bra AGAIN;
    DONE: st.global.u32 [%rd2], %r5; ret;""",
)


@pytest.mark.parametrize("count", [1, 31, 32, 45, 64, 77, 200, 201])
def test_lanes_that_are_left_lie_side_by_side(count: int, rng: np.random.Generator) -> None:
    x, first = rng.integers(0, 1 << 32, 200, np.uint32), int(rng.integers(4))
    start = np.array([first, min(first + count, 201)], np.uint32)
    message = same(COLUMNS, 1, 32, None, start=start, x=x, out=np.zeros(32, np.uint32))
    assert ("load from x[200]" in message) == (start[1] > 200), message


def test_what_is_found() -> None:
    """An index where all of it stands in the basic block, none where its register has changed; and a probable line."""
    before = "mov.u32 %r1, %tid.x; ld.param.u64 %rd0, [x]; mad.wide.u32 %rd1, %r1, 4, %rd0; ld.global.u32 %r2, [%rd1];"
    found = []
    for between in ("", "mov.u32 %r2, %r3;", "add.s64 %rd5, %rd2, 0;"):
        body = f"mov.u32 %r3, %r1; {before} mul.wide.s32 %rd2, %r2, 12; {between} add.s64 %rd3, %rd0, %rd2;"
        program = Program(parse(kernel("u64 x", body + "ld.global.u32 %r4, [%rd3+8]; st.global.u32 [%rd1], %r4; ret;")))
        plan = plan_block_function(program.code("k", (64, 1, 1)))
        found.append([op.indexed.scale for block in plan.blocks for op in block.ops if op.indexed is not None])
    assert found == [[12], [], [12]]
    plan = plan_block_function(Program(parse(COLUMNS)).code("k", (32, 1, 1)))
    assert sum(op.beside for block in plan.blocks for op in block.ops) == 2
