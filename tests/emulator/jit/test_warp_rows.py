"""Blocks of odd rows, whose warps are whole rows where nothing can tell: which do, and that results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel
from two_tiers import outcomes, same

from ptxdsl import RaceError
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.machine.warp_rows import WarpRows, lanes_of_warps, warps_of
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

SHAPES = {
    (24, 7, 1): 24, (33, 3, 1): 11, (12, 12, 1): 24, (40, 10, 1): 20, (48, 4, 1): 24, (17, 17, 1): 17, (13, 5, 1): 26,
    (12, 5, 3): 12, (12, 4, 3): 24, (100, 2, 1): 25, (5, 7, 3): 32, (37, 3, 1): 32, (33, 11, 1): 32, (16, 9, 1): 32,
    (64, 3, 1): 32, (24, 1, 1): 32, (100, 1, 1): 32, (5, 5, 1): 32, (3, 3, 3): 32,
}
START = """
    .shared .align 4 .b8 s[8192];
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %ntid.y; mov.u32 %r5, %tid.z; mad.lo.u32 %r6, %r5, %r4, %r2; mad.lo.u32 %r6, %r6, %r3, %r1;
    mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ntid.z; mul.lo.u32 %r9, %r3, %r4; mul.lo.u32 %r9, %r9, %r8;
    mad.lo.u32 %r10, %r7, %r9, %r6; mul.wide.u32 %rd2, %r10, 4; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;
    mov.u32 %r11, s; mad.lo.u32 %r12, %r6, 4, %r11; ld.global.u32 %r13, [%rd3]; st.shared.u32 [%r12], %r13;
"""
"""%r6 is the thread's number in its block, %r12 its place in shared memory, %r13 what it has loaded."""
END = "st.global.u32 [%rd4], %r13; ret;"
ROWS = """
    bar.sync 0; sub.u32 %r14, %r6, %r1; mov.u32 %r15, 0;
    AGAIN: add.u32 %r16, %r14, %r15; mad.lo.u32 %r16, %r16, 4, %r11; ld.shared.u32 %r17, [%r16];
    setp.le.u32 %p1, %r1, %r15; @%p1 bra NEXT; mad.lo.u32 %r13, %r13, 3, %r17;
    NEXT: add.u32 %r15, %r15, 1; setp.lt.u32 %p2, %r15, %r3; @%p2 bra AGAIN;
    bar.sync 0; setp.ne.u32 %p3, %r2, 1; @%p3 bra DONE; st.shared.u32 [%r12], %r13;
    DONE: bar.sync 0; mul.lo.u32 %r18, %r4, %r3; add.u32 %r19, %r1, %r3; setp.ge.u32 %p4, %r19, %r9;
    @%p4 bra LAST; mad.lo.u32 %r19, %r19, 4, %r11; ld.shared.u32 %r20, [%r19]; xor.b32 %r13, %r13, %r20; LAST:
"""
"""Each thread goes over the lower part of its row; the second row tells all others what it has found."""


DIVIDED = {
    "div": "rem.u32 %r1, %r40, {w}; div.u32 %r2, %r40, {w};",
    "product": "mul.wide.u32 %rd9, %r40, {magic}; shr.u64 %rd10, %rd9, 36; cvt.u32.u64 %r2, %rd10;"
               "mul.lo.u32 %r41, %r2, {w}; sub.u32 %r1, %r40, %r41;",
}
"""The row %r2 of a thread in a block of one index, and its place there %r1; of 24 also as compilers divide."""


def computed(body: str, width: int, how: str = "div") -> str:
    """A kernel of blocks of one index that computes rows of so many threads."""
    rows = DIVIDED[how].format(w=width, magic=-(-(1 << 36) // width))
    start = START.replace("mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;", f"mov.u32 %r40, %tid.x; {rows}")
    start = start.replace("mov.u32 %r3, %ntid.x;", f"mov.u32 %r3, {width};")
    start = start.replace("mov.u32 %r4, %ntid.y;", f"mov.u32 %r42, %ntid.x; div.u32 %r4, %r42, {width};")
    return kernel("u64 x, u64 y", f"{start}{body}{END}")


def text_of(body: str, parameters: str = "u64 x, u64 y") -> str:
    return kernel(parameters, f"{START}{body}{END}")


def lanes_of(body: str, block: Any = (24, 7)) -> int:
    return lanes_of_warps(Program(parse(text_of(body))).shape_of("k", LaunchConfig(1, block)))


@pytest.mark.parametrize("block", SHAPES, ids=str)
def test_the_lanes_of_a_shape(block: tuple[int, int, int]) -> None:
    assert lanes_of(ROWS, block) == SHAPES[block]


KEEP = {
    "shfl": "shfl.sync.bfly.b32 %r13, %r13, 1, 31, -1;",
    "vote": "vote.sync.ballot.b32 %r13, %p0, -1;",
    "barrier of a warp": "bar.warp.sync -1;",
    "lane": "mov.u32 %r20, %laneid; add.u32 %r13, %r13, %r20;",
    "mask": "mov.u32 %r20, %lanemask_lt; add.u32 %r13, %r13, %r20;",
    "warp": "mov.u32 %r20, %warpid; add.u32 %r13, %r13, %r20;",
    "volatile": "ld.volatile.shared.u32 %r13, [%r12];",
    "relaxed": "st.relaxed.cta.shared.u32 [%r12], %r13;",
    "some threads": "bar.sync 0, 192;",
    "arrival": "bar.arrive 1, 192;",
    "guarded barrier": "setp.eq.u32 %p0, %r7, 0; @%p0 bar.sync 0;",
    "barrier of some rows": "setp.gt.u32 %p0, %r2, 0; @%p0 bra OVER; bar.sync 0; OVER:",
    "barrier by what is loaded": "setp.gt.u32 %p0, %r13, 9; @%p0 bra OVER; bar.sync 0; OVER:",
}
TAKE = {
    "shared memory": "bar.sync 0; ld.shared.u32 %r13, [s];",
    "barrier of all threads": "setp.gt.u32 %p0, %r7, 0; @%p0 bra OVER; bar.sync 0; OVER:",
    "barrier behind an exit": "setp.gt.u32 %p0, %r2, 0; @%p0 ret; bar.sync 0;",
    "barrier behind a branch to the end": "setp.gt.u32 %p0, %r2, 0; @%p0 bra LAST; bar.sync 0; bra ON; LAST: ret; ON:",
    "atomic operations": "atom.shared.add.u32 %r13, [%r12], 1;",
    "counting": "red.global.add.u32 [%rd1], 1;",
    "exit without a barrier": "setp.gt.u32 %p0, %r2, 0; @%p0 ret;",
}


@pytest.mark.parametrize("name", KEEP)
def test_what_tells_warps_apart_keeps_them(name: str) -> None:
    assert lanes_of(KEEP[name]) == 32


@pytest.mark.parametrize("name", TAKE)
def test_what_does_not_tell_warps_apart(name: str) -> None:
    assert lanes_of(TAKE[name]) == 24


def test_a_seed_draws_among_the_warps_of_a_gpu() -> None:
    program = Program(parse(text_of(ROWS)))
    assert lanes_of_warps(program.shape_of("k", LaunchConfig(1, (24, 7), seed=3))) == 32


@pytest.mark.parametrize("block", [(24, 7), (33, 3), (12, 4, 2)], ids=str)
def test_all_tiers_and_all_warps_give_the_same(block: tuple[int, ...], rng: np.random.Generator) -> None:
    threads = 5 * int(np.prod(block))
    x, y, text = rng.integers(0, 1 << 32, threads, np.uint32), np.zeros(threads, np.uint32), text_of(ROWS)
    first, second = outcomes(text, 5, block, None, None, x=x, y=y)
    assert first == second and not first[0]
    for options in ({"seed": 7}, {"sanitize": "all"}):
        mine = y.copy()
        Program(parse(text)).run("k", LaunchConfig(5, block, **options), [argument("x", x), argument("y", mine)])
        assert mine.tobytes() == first[1][1], options
    assert not same(text, 5, block, "all", x=x, y=y)


@pytest.mark.parametrize(("threads", "width", "lanes"), [
    (168, 24, 24), (240, 20, 20), (144, 12, 24), (132, 33, 11), (72, 24, 24), (128, 24, 32), (100, 24, 32),
    (288, 8, 32),
])
def test_rows_that_a_kernel_computes(threads: int, width: int, lanes: int) -> None:
    program = Program(parse(computed(ROWS, width)))
    assert lanes_of_warps(program.shape_of("k", LaunchConfig(1, threads))) == lanes


@pytest.mark.parametrize(("how", "width"), [("div", 20), ("product", 24)])
def test_rows_that_a_kernel_computes_give_the_same(how: str, width: int, rng: np.random.Generator) -> None:
    threads, text = 6 * width, computed(ROWS, width, how)
    x, y = rng.integers(0, 1 << 32, 3 * threads, np.uint32), np.zeros(3 * threads, np.uint32)
    shape = Program(parse(text)).shape_of("k", LaunchConfig(3, threads))
    assert isinstance(shape, WarpRows) and shape.offsets["%r2"] == (0,) * 32
    assert not same(text, 3, threads, x=x, y=y)
    found = []
    for seed in (None, 3):
        mine = y.copy()
        Program(parse(text)).run("k", LaunchConfig(3, threads, seed=seed), [argument("x", x), argument("y", mine)])
        found.append(mine.tobytes())
    assert found[0] == found[1]
    assert not same(text, 3, threads, "all", x=x, y=y)


def test_rows_need_no_side_exit(rng: np.random.Generator) -> None:
    program, config = Program(parse(text_of(ROWS))), LaunchConfig(5, (24, 7))
    shape = program.shape_of("k", config)
    assert isinstance(shape, WarpRows) and warps_of(shape) == 7
    code = program.code("k", shape)
    assert compile_block_function(code)
    x = rng.integers(0, 1 << 32, 5 * 168, np.uint32)
    program.run("k", config, [argument("x", x), argument("y", np.zeros_like(x))])
    assert not code.exits


@pytest.mark.parametrize(("offset", "hint"), [(1, "bar.warp.sync"), (24, "bar.sync(0)")])
def test_what_orders_two_threads_follows_from_the_warps_of_a_gpu(offset: int, hint: str) -> None:
    """Threads 0 and 1 are of one warp; 10 and 34 are neighbours in a column, and of two warps."""
    body = f"""
        setp.ne.u32 %p0, %r6, {10 if offset == 24 else 0}; @%p0 bra OVER;
        mov.u32 %r20, 7; st.shared.u32 [%r12+{4 * offset}], %r20; OVER:"""
    x = np.zeros(24 * 7, np.uint32)
    program = Program(parse(text_of(body)))
    config = LaunchConfig(1, (24, 7), sanitize="race")
    assert lanes_of_warps(program.shape_of("k", config)) == 24
    with pytest.raises(RaceError) as raised:
        program.run("k", config, [argument("x", x), argument("y", np.zeros_like(x))])
    assert hint in str(raised.value)


@pytest.mark.parametrize("sanitize", [None, "all"])
def test_a_thread_out_of_bounds_is_named(sanitize: str | None) -> None:
    x = np.zeros(24 * 7, np.uint32)
    said = same(text_of(ROWS), 1, (24, 7), sanitize, x=x, y=np.zeros(24 * 7 - 5, np.uint32))
    assert "thread (19, 6, 0)" in said
