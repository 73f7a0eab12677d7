"""The second tier gives what the first gives, to the bit: block functions, superinstructions, and their side exits.

The first tier is tested against references elsewhere; here both run the same PTX on the same data.
"""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD, argument, kernel, pointer

from ptxdsl import EmulationError
from ptxdsl.emulator.jit.compilation import compile_block_function, compile_superinstructions
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

import programs


def tiers(text: str, block: Any) -> list[Program]:
    """The same module three times: in the first tier, with a block function, and with superinstructions too."""
    found = []
    for level in range(3):
        program = Program(parse(text))
        entry = program.module.functions[-1].name
        code = program.code(entry, program.shape_of(entry, LaunchConfig(1, block)))
        if level:
            assert compile_block_function(code) and code.block_function, "no block function"
        if level == 2:
            compile_superinstructions(code)
        found.append(program)
    return found


def outcomes(text: str, grid: Any, block: Any, shared: int = 0, **arguments: Any) -> list[tuple[str, list[bytes]]]:
    """The error of each tier, and what is in memory then."""
    found = []
    for program in tiers(text, block):
        mine = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in arguments.items()}
        said = ""
        for _ in range(2):  # the second launch reads the entries that the first has learned
            given = [argument(name, value) for name, value in mine.items()]
            try:
                program.run(program.module.functions[-1].name, LaunchConfig(grid, block, shared), given)
            except EmulationError as error:
                said = re.sub(r"0x[0-9a-f]+", "0x", str(error))
        found.append((said, [value.tobytes() for value in mine.values() if isinstance(value, np.ndarray)]))
    return found


def same(text: str, grid: Any, block: Any, shared: int = 0, **arguments: Any) -> tuple[str, list[bytes]]:
    first, whole, both = outcomes(text, grid, block, shared, **arguments)
    assert whole == first
    assert both == first
    return first


@pytest.mark.parametrize("program", programs.PROGRAMS, ids=lambda program: program.name)
def test_programs(program: programs.Program, rng: np.random.Generator) -> None:
    case = program.case(rng).poisoned() if program.name != "saxpy" else program.case(rng)
    text = case.kernel.ptx()
    names = [parameter.name for parameter in parse(text).functions[0].parameters]
    numbers = [np.uint32(value) if isinstance(value, int) else value for value in case.arguments]
    given = dict(zip(names, numbers))
    same(text, case.grid, case.block, **given)


# ---------------------------------------------------------------------------------------------------------------------
# Random kernels


def exchange(rng: random.Random, count: int) -> str:
    """Threads of a block that exchange numbers through shared memory, in loops and under conditions."""
    lines = []
    for number in range(count):
        kind = rng.choice(["store", "loop", "some", "half", "product", "early"])
        value = f"%r{rng.randrange(10, 14)}"
        if kind == "loop":
            lines.append(f"mov.u32 %r20, 0; L{number}: add.u32 {value}, {value}, %r20;"
                         f"mad.lo.u32 %r11, {value}, 3, %r2;"
                         f"add.u32 %r20, %r20, 1; setp.lt.u32 %p1, %r20, {rng.choice(['4', '%r15', '%r16'])};"
                         f"@%p1 bra L{number};")
        elif kind == "some":
            lines.append(f"setp.{rng.choice(['lt', 'ge'])}.u32 %p1, %r2, {rng.randrange(70)}; @%p1 bra S{number};"
                         f"xor.b32 {value}, {value}, %r0; add.u32 %r12, %r12, {value}; S{number}:")
        elif kind == "half":
            lines.append(f"and.b32 %r21, {value}, 1; setp.eq.u32 %p1, %r21, 0; @%p1 bra H{number};"
                         f"shr.u32 {value}, {value}, 1; bra J{number}; H{number}: mad.lo.u32 {value}, {value}, 5, %r13;"
                         f"J{number}:")
        elif kind == "product":
            lines.append(f"mul.lo.u32 %r22, %r17, %r15; add.u32 {value}, {value}, %r22; sub.u32 %r13, {value}, %r18;")
        elif kind == "early" and number > count // 2:
            lines.append(f"setp.ge.u32 %p2, %r2, {rng.choice([32, 64, 200])}; @%p2 bra DONE;")
        shift = rng.choice([1, 16, 32, 33, 64])
        lines.append(f"""
            st.shared.u32 [%r30], {value}; bar.sync 0;
            add.u32 %r31, %r2, {shift}; rem.u32 %r31, %r31, %r19; shl.b32 %r31, %r31, 2; add.u32 %r31, %r31, %r32;
            setp.lt.u32 %p3, %r31, %r33; @%p3 ld.shared.u32 %r14, [%r31]; @%p3 add.u32 {value}, {value}, %r14;
            bar.sync 0;""")
    return "\n".join(lines)


@pytest.mark.parametrize("part", range(4))
def test_random_exchange(part: int, rng: np.random.Generator) -> None:
    seed = 4 * part + int(rng.integers(4))
    drawn = random.Random(f"exchange {seed}")
    block: Any = drawn.choice([(32, 1), (64, 1), (96, 1), (16, 8), (8, 8), (64, 2)])
    threads = block[0] * block[1]
    text = kernel("u64 out, u32 a, u32 b", f"""
        .shared .align 4 .b8 numbers[{4 * threads}];
        mov.u32 %r17, %tid.y; mov.u32 %r1, %ntid.x; mov.u32 %r18, %tid.x; mad.lo.u32 %r2, %r17, %r1, %r18;
        mov.u32 %r3, %ctaid.x; mov.u32 %r19, {threads}; mad.lo.u32 %r0, %r3, %r19, %r2;
        ld.param.u32 %r15, [a]; ld.param.u32 %r4, [b]; and.b32 %r16, %r2, 7; add.u32 %r16, %r16, %r4;
        mov.u32 %r32, numbers; mad.lo.u32 %r30, %r2, 4, %r32; add.u32 %r33, %r32, {4 * threads}; mov.u32 %r14, 0;
        mov.u32 %r10, %r0; mul.lo.u32 %r11, %r2, %r15; mov.u32 %r12, %r3; add.u32 %r13, %r18, %r4;
        {exchange(drawn, drawn.randrange(2, 6))}
        DONE:
        ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 16; add.u64 %rd0, %rd0, %rd1;
        st.global.v4.u32 [%rd0], {{%r10, %r11, %r12, %r13}}; ret;
    """)
    out = np.full((3 * threads, 4), 0xDEADBEEF, np.uint32)
    said, _ = same(text, 3, block, out=out, a=np.uint32(drawn.randrange(1, 9)), b=np.uint32(drawn.randrange(1, 5)))
    assert not said


# ---------------------------------------------------------------------------------------------------------------------
# Side exits


def elementwise(body: str) -> str:
    return kernel("u64 x, u64 y, u32 n", THREAD + pointer("%rd0", "x") + pointer("%rd1", "y") + body)


@pytest.mark.parametrize("short", [1, 31, 32, 100])
def test_a_fault_is_reported_alike(short: int) -> None:
    x, y = np.arange(256 - short, dtype=np.uint32), np.zeros(256, np.uint32)
    text = elementwise("ld.global.u32 %r3, [%rd0]; st.global.u32 [%rd1], %r3; ret;")
    said, _ = same(text, 4, 64, x=x, y=y, n=np.uint32(0))
    assert "beyond the end" in said or "out of bounds" in said or "x" in said


def test_the_last_block_is_shorter() -> None:
    x, y = np.arange(200, dtype=np.uint32), np.zeros(200, np.uint32)
    text = elementwise("""
        ld.param.u32 %r4, [n]; setp.ge.u32 %p0, %r0, %r4; @%p0 bra DONE;
        ld.global.u32 %r3, [%rd0]; add.u32 %r3, %r3, 7; st.global.u32 [%rd1], %r3; DONE: ret;""")
    said, (_, got) = same(text, 4, 64, x=x, y=y, n=np.uint32(200))
    assert not said
    np.testing.assert_array_equal(np.frombuffer(got, np.uint32), x + 7)


@pytest.mark.parametrize("lane", [0, 13, 95])
def test_a_trap_behind_a_barrier(lane: int) -> None:
    x, y = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    text = elementwise(f"""
        ld.global.u32 %r3, [%rd0]; st.global.u32 [%rd1], %r3; bar.sync 0;
        setp.eq.u32 %p0, %r3, {lane}; @%p0 trap; st.global.u32 [%rd1], %r2; ret;""")
    said, _ = same(text, 1, 96, x=x, y=y, n=np.uint32(0))
    assert "trap" in said


def test_warps_that_arrive_at_different_barriers() -> None:
    """Two instructions, one barrier: the warps of the first wait for those of the second."""
    x, y = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    text = elementwise("""
        shr.u32 %r4, %r2, 5; setp.eq.u32 %p0, %r4, 1; @%p0 bra OTHER;
        bar.sync 0; mov.u32 %r5, 100; bra JOIN;
        OTHER: bar.sync 0; mov.u32 %r5, 200;
        JOIN: add.u32 %r5, %r5, %r2; bar.sync 0; st.global.u32 [%rd1], %r5; ret;""")
    _, (_, got) = same(text, 1, 96, x=x, y=y, n=np.uint32(0))
    t = np.arange(96)
    np.testing.assert_array_equal(np.frombuffer(got, np.uint32), np.where(t // 32 == 1, 200, 100) + t)


def test_a_barrier_that_some_lanes_miss() -> None:
    text = elementwise("setp.lt.u32 %p0, %r2, 40; @%p0 bra DONE; bar.sync 0; DONE: st.global.u32 [%rd1], %r2; ret;")
    said, _ = same(text, 1, 64, x=np.zeros(64, np.uint32), y=np.zeros(64, np.uint32), n=np.uint32(0))
    assert "barrier" in said


def test_addresses_that_wrap_around() -> None:
    """An index below zero wraps in 32 bits, and comes out right where only lanes from 1 on use it."""
    x, y = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    text = kernel("u64 x, u64 y", """
        mov.u32 %r2, %tid.x; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y];
        setp.lt.u32 %p0, %r2, 1; @%p0 bra DONE;
        sub.u32 %r3, %r2, 1; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd2, %rd0; ld.global.u32 %r4, [%rd2];
        mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r4; DONE: ret;""")
    said, (_, got) = same(text, 1, 64, x=x, y=y)
    assert not said
    assert np.frombuffer(got, np.uint32).tolist() == [0, *range(63)]


def test_a_long_loop_comes_to_its_end() -> None:
    """Its budget is spent before: the first tier resumes."""
    y = np.zeros(64, np.uint32)
    text = kernel("u64 y", """
        mov.u32 %r2, %tid.x; ld.param.u64 %rd1, [y]; mov.u32 %r3, 0; mov.u32 %r4, 0;
        AGAIN: mad.lo.u32 %r4, %r4, 3, %r2; add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 3000000; @%p0 bra AGAIN;
        mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r4; ret;""")
    same(text, 1, 64, y=y)


def test_a_loop_with_barriers_can_be_interrupted() -> None:
    """The host can interrupt it, also where the code between two barriers is short."""
    text = kernel("u64 y", """
        mov.u32 %r2, %tid.x; ld.param.u64 %rd1, [y]; mov.u32 %r3, 0; mov.u32 %r4, 0;
        AGAIN: bar.sync 0; mad.lo.u32 %r4, %r4, 3, %r2; add.u32 %r3, %r3, 1;
        setp.lt.u32 %p0, %r3, 2000000000; @%p0 bra AGAIN;
        mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], %r4; ret;""")
    program = tiers(text, 64)[1]

    def interrupt(*_: Any) -> None:
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    start = perf_counter()
    try:
        with pytest.raises(InterruptedError):
            program.run("k", LaunchConfig(1, 64), [argument("y", np.zeros(64, np.uint32))])
    finally:
        signal.signal(signal.SIGALRM, before)
    assert perf_counter() - start < 5


def test_nan_is_canonical_wherever_it_is_seen() -> None:
    """Sums in loops and across barriers may carry any NaN; what is stored or compared is PTX's."""
    rng = np.random.default_rng()
    x = rng.integers(0, 1 << 32, 64, np.uint32)
    x[::3] |= 0x7F800001
    text = elementwise("""
        ld.global.f32 %f0, [%rd0]; mov.f32 %f1, %f0; mov.u32 %r3, 0;
        AGAIN: fma.rn.f32 %f1, %f1, %f0, %f1; add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 5; @%p0 bra AGAIN;
        bar.sync 0; add.f32 %f1, %f1, %f0; mov.b32 %r4, %f1; add.u32 %r4, %r4, 1; st.global.u32 [%rd1], %r4; ret;""")
    said, (_, got) = same(text, 1, 64, x=x, y=np.zeros(64, np.uint32), n=np.uint32(0))
    assert not said
    nan = np.frombuffer(got, np.uint32)[::3]
    assert (nan == 0x80000000).all()


WARP: dict[str, Callable[[int], str]] = {
    "shfl": lambda n: f"shfl.sync.bfly.b32 %r4, %r4, {n % 31 + 1}, 31, -1;",
    "down": lambda n: f"shfl.sync.down.b32 %r5, %r4, {n % 7}, 31, -1; add.u32 %r4, %r4, %r5;",
    "vote": lambda n: f"setp.gt.u32 %p1, %r4, {n * 9}; vote.sync.ballot.b32 %r5, %p1, -1; xor.b32 %r4, %r4, %r5;",
    "redux": lambda _: "redux.sync.add.u32 %r5, %r4, -1; add.u32 %r4, %r4, %r5;",
    "match": lambda _: "and.b32 %r5, %r4, 3; match.any.sync.b32 %r6, %r5, -1; xor.b32 %r4, %r4, %r6;",
    "atom": lambda n: f"and.b32 %r5, %r4, 15; mad.lo.u32 %r5, %r5, 4, %r9; atom.shared.add.u32 %r6, [%r5], {n};"
                      "xor.b32 %r4, %r4, %r6;",
    "red": lambda n: "and.b32 %r5, %r4, 15; mad.lo.u32 %r5, %r5, 4, %r9; red.shared.max.u32 [%r5], %r4;"
                     f"add.u32 %r4, %r4, {n};",
    "leader": lambda n: f"setp.eq.u32 %p1, %r8, {n % 32}; @%p1 st.shared.u32 [%r9+{4 * (n % 16)}], %r4;"
                        "bar.warp.sync -1;"
                        f"ld.shared.u32 %r5, [%r9+{4 * (n % 16)}]; add.u32 %r4, %r4, %r5;",
}


@pytest.mark.parametrize("part", range(2))
def test_random_warp_operations(part: int, rng: np.random.Generator) -> None:
    seed = 4 * part + int(rng.integers(4))
    drawn = random.Random(f"warp {seed}")
    lines = "\n".join(WARP[drawn.choice(list(WARP))](drawn.randrange(1, 40)) for _ in range(drawn.randrange(3, 9)))
    text = elementwise(f"""
        .shared .align 4 .b8 bins[64];
        mov.u32 %r9, bins; mov.u32 %r8, %laneid; setp.lt.u32 %p0, %r2, 16; mad.lo.u32 %r7, %r2, 4, %r9;
        @%p0 st.shared.u32 [%r7], %r2; bar.sync 0; ld.global.u32 %r4, [%rd0];
        {lines}
        st.global.u32 [%rd1], %r4; ret;""")
    x = np.random.default_rng(seed).integers(0, 1 << 32, 128, np.uint32)
    said, _ = same(text, 2, 64, x=x, y=np.zeros(128, np.uint32), n=np.uint32(0))
    assert not said


# ---------------------------------------------------------------------------------------------------------------------
# Strong accesses, and loops that wait


@pytest.mark.parametrize("poll", ["ld.volatile.global.u32 %r4", "ld.acquire.gpu.global.u32 %r4"])
def test_blocks_that_wait_for_the_one_before(poll: str) -> None:
    text = elementwise(f"""
        ld.param.u64 %rd2, [x]; ld.param.u64 %rd3, [y]; mov.u32 %r10, 0; setp.eq.u32 %p0, %r3, 0; @%p0 bra MINE;
        mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd4, %rd2; WAIT: {poll}, [%rd4+-4]; setp.eq.u32 %p1, %r4, 0;
        @%p1 bra WAIT; mov.u32 %r10, %r4;
        MINE: add.u32 %r10, %r10, 5; bar.sync 0; setp.ne.u32 %p2, %r2, 0; @%p2 bra DONE;
        mul.wide.u32 %rd4, %r3, 4; add.u64 %rd5, %rd4, %rd2; st.release.gpu.global.u32 [%rd5], %r10;
        DONE: st.global.u32 [%rd1], %r10; ret;""").replace("%tid.x;", "%tid.x; mov.u32 %r3, %ctaid.x;")
    x, y = np.zeros(16, np.uint32), np.zeros(64 * 16, np.uint32)
    said, (flags, _) = same(text, 16, 64, x=x, y=y, n=np.uint32(0))
    assert not said
    assert np.frombuffer(flags, np.uint32)[-1] == 80


@pytest.mark.parametrize("space", ["global", "shared"])
def test_a_lock_that_lanes_take_in_turn(space: str) -> None:
    where = "ld.param.u64 %rd2, [x];"
    if space == "shared":
        where = ".shared .align 8 .b8 s[8]; mov.u64 %rd2, s; st.shared.v2.u32 [s], {0, 0}; bar.sync 0;"
    text = elementwise(f"""
        {where} setp.ne.u32 %p3, %r2, %r2;
        AGAIN: atom.{space}.cas.b32 %r4, [%rd2], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra LATER;
        ld.volatile.{space}.u32 %r5, [%rd2+4]; mad.lo.u32 %r5, %r5, 3, 1; st.volatile.{space}.u32 [%rd2+4], %r5;
        atom.{space}.exch.b32 %r6, [%rd2], 0; setp.eq.u32 %p3, %r2, %r2;
        LATER: @!%p3 bra AGAIN; bar.sync 0; ld.volatile.{space}.u32 %r5, [%rd2+4]; st.global.u32 [%rd1], %r5; ret;""")
    said, (_, got) = same(text, 2, 64, x=np.zeros(2, np.uint32), y=np.zeros(128, np.uint32), n=np.uint32(0))
    assert not said
    assert len(set(np.frombuffer(got, np.uint32)[:64])) == 1


def test_warps_of_one_block_that_wait_for_each_other() -> None:
    """The first warp polls for what the second stores: the first tier resumes, and runs both in turn."""
    text = elementwise("""
        .shared .align 4 .b8 s[4]; st.shared.u32 [s], 0; bar.sync 0; setp.gt.u32 %p0, %r2, 31; @%p0 bra OTHER;
        WAIT: ld.volatile.shared.u32 %r4, [s]; setp.eq.u32 %p1, %r4, 0; @%p1 bra WAIT; bra DONE;
        OTHER: mov.u32 %r4, 7; st.volatile.shared.u32 [s], %r4; DONE: st.global.u32 [%rd1], %r4; ret;""")
    said, (_, got) = same(text, 2, 64, x=np.zeros(64, np.uint32), y=np.zeros(128, np.uint32), n=np.uint32(0))
    assert not said
    assert set(np.frombuffer(got, np.uint32)) == {7}


def test_a_wait_for_ever_is_told_alike() -> None:
    text = elementwise("""
        ld.param.u64 %rd2, [x]; WAIT: ld.volatile.global.u32 %r4, [%rd2]; setp.eq.u32 %p1, %r4, 0; @%p1 bra WAIT; ret;
        """)
    said, _ = same(text, 1, 64, x=np.zeros(4, np.uint32), y=np.zeros(64, np.uint32), n=np.uint32(0))
    assert "wait" in said


# ---------------------------------------------------------------------------------------------------------------------
# Local memory


LOCAL_BYTES = 64


def local_accesses(rng: random.Random, count: int, widest: int, model: Any) -> str:
    """Stores and loads of local memory at offsets that are uniform or not, under guards; ``model`` does the same."""
    lines = []
    lane, data = np.arange(64), model["data"]
    for _ in range(count):
        size = rng.choice([1, 2, 4, 8])
        items = rng.choice([n for n in (1, 2, 4) if size * n <= widest] or [1])
        size = min(size, widest)
        nbytes, factor = size * items, rng.choice([0, 0, 1, 3])
        start, guarded = rng.randrange(LOCAL_BYTES), rng.random() < 0.4
        offset = (start + factor * lane) % (LOCAL_BYTES // nbytes) * nbytes
        lines.append(f"mad.lo.u32 %r5, %r2, {factor}, {start}; rem.u32 %r5, %r5, {LOCAL_BYTES // nbytes};"
                     f"mul.lo.u32 %r5, %r5, {nbytes}; cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd4;")
        taken = data % 3 != 0 if guarded else np.full(64, True)
        lines.append("rem.u32 %r6, %r4, 3; setp.ne.u32 %p1, %r6, 0;" if guarded else "setp.eq.u32 %p1, %r2, %r2;")
        kind, suffix = f"u{8 * size}", f".v{items}" if items > 1 else ""
        names = [f"%{'rd' if size == 8 else 'r'}1{n}" for n in range(items)]
        listed = f"{{{', '.join(names)}}}" if items > 1 else names[0]
        place, space = ("[%rd5]", ".local") if rng.random() < 0.7 else ("[%rd6]", "")
        lines.append("add.u64 %rd6, %rd5, %rd7;")
        if rng.random() < 0.5:
            for n, name in enumerate(names):
                lines.append(f"add.u32 %r7, %r4, {n};" + (
                    f"cvt.u64.u32 {name}, %r7; mul.lo.u64 {name}, {name}, 4294967297;" if size == 8
                    else f"mov.u32 {name}, %r7;"))
                value = (data + n) * (4294967297 if size == 8 else 1)
                for at in np.flatnonzero(taken):
                    byte = int(value[at]).to_bytes(16, "little")[:size]
                    begin = offset[at] + n * size
                    model["memory"][at, begin : begin + size] = np.frombuffer(byte, np.uint8)
            lines.append(f"@%p1 st{space}{suffix}.{kind} {place}, {listed};")
        else:
            move = "mov.u64 {}, 0;" if size == 8 else "mov.u32 {}, 0;"
            lines += [move.format(name) for name in names]
            lines.append(f"@%p1 ld{space}{suffix}.{kind} {listed}, {place};")
            for n, name in enumerate(names):
                lines.append((f"cvt.u32.u64 %r7, {name};" if size == 8 else f"mov.u32 %r7, {name};")
                             + "mad.lo.u32 %r4, %r4, 5, %r7; and.b32 %r4, %r4, 65535;")
                for at in range(64):
                    begin = offset[at] + n * size
                    got = int.from_bytes(model["memory"][at, begin : begin + min(size, 4)].tobytes(), "little")
                    data[at] = (data[at] * 5 + got * bool(taken[at])) & 65535
    return "\n".join(lines)


def test_random_local_memory(rng: np.random.Generator) -> None:
    seed = int(rng.integers(4))
    drawn = random.Random(f"local {seed}")
    model = {"data": np.arange(64, dtype=np.int64) * 7 + 1, "memory": np.zeros((64, LOCAL_BYTES), np.uint8)}
    clear = "".join(f"st.local.u32 [%rd4+{n}], 0;" for n in range(0, LOCAL_BYTES, 4))
    body = local_accesses(drawn, 8, drawn.choice([4, 8, 16]), model)
    text = elementwise(f"""
        .local .align 16 .b8 before[12], l[{LOCAL_BYTES}]; mov.u64 %rd4, l; {clear}
        cvta.local.u64 %rd7, %rd4; sub.u64 %rd7, %rd7, %rd4; mad.lo.u32 %r4, %r2, 7, 1;
        {body}
        st.global.u32 [%rd1], %r4; ret;""")
    said, (_, got) = same(text, 1, 64, x=np.zeros(64, np.uint32), y=np.zeros(64, np.uint32), n=np.uint32(0))
    assert not said
    np.testing.assert_array_equal(np.frombuffer(got, np.uint32), model["data"])


@pytest.mark.parametrize("offset", ["%r2", "64", "%r2 ", "-4"])
def test_beyond_a_local_array_is_told_alike(offset: str) -> None:
    text = elementwise(f"""
        .local .align 4 .b8 l[64], other[64]; mov.u64 %rd4, l; cvt.s64.s32 %rd5, {offset.strip()};
        {"mul.lo.u64 %rd5, %rd5, 4;" if "r2" in offset else ""} add.u64 %rd4, %rd4, %rd5; mov.u32 %r4, 9;
        {"cvta.local.u64 %rd4, %rd4; st.u32" if offset.endswith(" ") else "st.local.u32"} [%rd4], %r4; ret;""")
    said, _ = same(text, 1, 64, x=np.zeros(64, np.uint32), y=np.zeros(64, np.uint32), n=np.uint32(0))
    assert "local" in said


# ---------------------------------------------------------------------------------------------------------------------
# Lanes that end before others


def ending(rng: random.Random, count: int) -> str:
    """Threads that end at random, by guards, in arms and in loops; what is left goes on, also behind barriers."""
    lines = []
    for number in range(count):
        kind = rng.choice(["guard", "branch", "arm", "loop", "barrier", "ballot", "store"])
        modulus, value = rng.randrange(3, 40), rng.randrange(3)
        lines.append(f"mad.lo.u32 %r4, %r4, 1664525, 1013904223; shr.u32 %r5, %r4, 8; rem.u32 %r5, %r5, {modulus};"
                     f"setp.eq.u32 %p1, %r5, {value};")
        if kind == "guard":
            lines.append(f"@%p1 exit; add.u32 %r4, %r4, {number};")
        elif kind == "branch":
            lines.append("@%p1 bra DONE;")
        elif kind == "arm":
            lines.append(f"setp.lt.u32 %p2, %r5, {modulus // 2}; @%p2 bra A{number}; @%p1 st.global.u32 [%rd1], %r5;"
                         f"@%p1 exit; add.u32 %r4, %r4, 3; bra J{number}; A{number}: xor.b32 %r4, %r4, %r2; J{number}:")
        elif kind == "loop":
            lines.append(f"mov.u32 %r6, 0; L{number}: mad.lo.u32 %r4, %r4, 5, %r6; and.b32 %r7, %r4, 63;"
                         f"setp.eq.u32 %p3, %r7, 9; @%p3 bra DONE; add.u32 %r6, %r6, 1;"
                         f"setp.lt.u32 %p3, %r6, %r5; @%p3 bra L{number};")
        elif kind == "barrier":
            lines.append("barrier.sync 0;" if rng.random() < 0.5 else "bar.sync 0;")
        elif kind == "ballot":
            lines.append("activemask.b32 %r8; add.u32 %r4, %r4, %r8;")
        lines.append("add.u32 %r9, %r9, %r4; st.global.u32 [%rd1], %r9;")
    return "\n".join(lines)


@pytest.mark.parametrize("part", range(2))
def test_lanes_that_end_at_random(part: int, rng: np.random.Generator) -> None:
    seed = 5 * part + int(rng.integers(5))
    drawn = random.Random(f"ending {seed}")
    text = elementwise(f"""
        ld.global.u32 %r4, [%rd0]; mov.u32 %r9, 0; {ending(drawn, drawn.randrange(2, 6))}
        DONE: ret;""")
    threads = drawn.choice([32, 64, 96])
    x = np.random.default_rng(seed).integers(0, 1 << 32, 3 * threads, np.uint32)
    said, _ = same(text, 3, threads, x=x, y=np.zeros(3 * threads, np.uint32), n=np.uint32(0))
    assert not said


def test_affine_accesses_of_some_lanes_stay_within_their_array() -> None:
    """The other lanes' addresses lie outside of it; no lane is at fault, and there is no side exit."""
    text = elementwise("""
        .shared .align 4 .b8 s[256]; mov.u32 %r5, s; mad.lo.u32 %r5, %r2, 4, %r5; st.shared.u32 [%r5], %r2; bar.sync 0;
        mov.u32 %r4, 7; setp.lt.s32 %p0, %r2, 5; @%p0 bra SKIP; ld.shared.u32 %r4, [%r5+-20]; SKIP:
        bar.sync 0; setp.lt.s32 %p0, %r2, 3; @%p0 bra NEXT; st.shared.u32 [%r5+-12], %r4; NEXT: bar.sync 0;
        ld.shared.u32 %r4, [%r5]; st.global.u32 [%rd1], %r4; ret;""")
    program = tiers(text, 64)[1]
    y = np.zeros(64, np.uint32)
    given = [argument("x", np.zeros(64, np.uint32)), argument("y", y), argument("n", np.uint32(0))]
    program.run("k", LaunchConfig(1, 64), given)
    assert not program.code("k", LaunchConfig(1, 64).block).exits
    before = np.where(np.arange(64) < 5, 7, np.arange(64) - 5)
    np.testing.assert_array_equal(y, [*before[3:], 61, 62, 63])


# ---------------------------------------------------------------------------------------------------------------------
# Indexed branches


@pytest.mark.parametrize("selector", ["%r8", "%r4", "%r2", "%r9"])
@pytest.mark.parametrize("guard", ["", "@%p2 "])
def test_an_interpreter(selector: str, guard: str) -> None:
    """A table of branches in a loop, by a number that is the same for all lanes or not, and is beyond it at the end."""
    text = elementwise(f"""
        ld.global.u32 %r4, [%rd0]; mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r10, 1; bra START;
        ADD: add.u32 %r10, %r10, %r2; bra NEXT; MUL: mul.lo.u32 %r10, %r10, 5; bra NEXT;
        SHIFT: shr.u32 %r10, %r10, 1; add.u32 %r10, %r10, 77; st.global.u32 [%rd1], %r10; bra NEXT;
        NEXT: add.u32 %r8, %r8, 1; shr.u32 %r4, %r4, 1; and.b32 %r9, %r10, 3; setp.gt.u32 %p0, %r8, 20; @%p0 bra DONE;
        START: rem.u32 %r5, {selector}, 4; add.u32 %r6, %r8, %r5; setp.ne.u32 %p1, %r8, %r2;
        setp.lt.u32 %p2, %r5, 3; T: .branchtargets ADD, MUL, SHIFT, MUL; {guard}brx.idx %r5, T; bra NEXT;
        DONE: st.global.u32 [%rd1], %r10; ret;""" if guard else f"""
        ld.global.u32 %r4, [%rd0]; mov.u32 %r8, 0; mov.u32 %r9, 0; mov.u32 %r10, 1; bra START;
        ADD: add.u32 %r10, %r10, %r2; bra NEXT; MUL: mul.lo.u32 %r10, %r10, 5; bra NEXT;
        SHIFT: shr.u32 %r10, %r10, 1; add.u32 %r10, %r10, 77; st.global.u32 [%rd1], %r10; bra NEXT;
        NEXT: add.u32 %r8, %r8, 1; shr.u32 %r4, %r4, 1; and.b32 %r9, %r10, 3;
        START: rem.u32 %r5, {selector}, 4; T: .branchtargets ADD, MUL, SHIFT, MUL, DONE; setp.gt.u32 %p0, %r8, 20;
        selp.u32 %r5, 4, %r5, %p0; setp.eq.u32 %p1, %r8, %r2; brx.idx %r5, T;
        DONE: st.global.u32 [%rd1], %r10; ret;""")
    x = np.random.default_rng().integers(0, 1 << 32, 96, np.uint32)
    said, _ = same(text, 1, 96, x=x, y=np.zeros(96, np.uint32), n=np.uint32(0))
    assert not said


def test_a_branch_beyond_its_table_is_told_alike() -> None:
    text = elementwise("""
        ld.global.u32 %r4, [%rd0]; bar.sync 0; T: .branchtargets A, B; brx.idx %r4, T;
        A: st.global.u32 [%rd1], 5; ret; B: st.global.u32 [%rd1], 6; ret;""")
    x = np.arange(96, dtype=np.uint32) % 2
    said, (_, got) = same(text, 1, 96, x=x, y=np.zeros(96, np.uint32), n=np.uint32(0))
    assert not said
    np.testing.assert_array_equal(np.frombuffer(got, np.uint32), x + 5)
    x[70] = 2
    said, _ = same(text, 1, 96, x=x, y=np.zeros(96, np.uint32), n=np.uint32(0))
    assert "brx" in said


# ---------------------------------------------------------------------------------------------------------------------
# Clusters


RING = """
    .shared .align 4 .b8 s[256]; mov.u32 %r5, s; mad.lo.u32 %r6, %r2, 4, %r5; ld.global.u32 %r4, [%rd0];
    mov.u32 %r7, %cluster_ctarank; mov.u32 %r8, %cluster_nctarank; mov.u32 %r9, 0;
    AGAIN: st.shared.u32 [%r6], %r4; SYNC
    add.u32 %r10, %r7, %r9; add.u32 %r10, %r10, TURN; rem.u32 %r10, %r10, %r8; mapa.shared::cluster.u32 %r11, %r6, %r10;
    ld.shared::cluster.u32 %r12, [%r11]; SYNC
    mad.lo.u32 %r4, %r4, 3, %r12; add.u32 %r9, %r9, 1; setp.lt.u32 %p0, %r9, 3; @%p0 bra AGAIN;
    st.global.u32 [%rd1], %r4; ret;"""


@pytest.mark.parametrize("turn", ["1", "%r2"])
@pytest.mark.parametrize("sync", [
    "barrier.cluster.arrive; barrier.cluster.wait;", ("barrier.cluster.arrive.aligned; bar.sync 0;"
    "barrier.cluster.wait.aligned;"), "barrier.cluster.arrive; add.u32 %r4, %r4, 1; barrier.cluster.wait;",
])
def test_blocks_that_read_from_each_other(turn: str, sync: str) -> None:
    text = elementwise(RING.replace("SYNC", sync).replace("TURN", turn))
    x = np.random.default_rng().integers(0, 1 << 32, 6 * 64, np.uint32)
    found = []
    for second in (False, True):
        program, y = Program(parse(text)), np.zeros(6 * 64, np.uint32)
        code = program.code("k", LaunchConfig(6, 64).block, cluster=(3, 1, 1))
        assert not second or compile_block_function(code), code.refusal
        given = [argument("x", x), argument("y", y), argument("n", np.uint32(0))]
        program.run("k", LaunchConfig(6, 64, cluster=(3, 1, 1)), given)
        assert not code.exits
        found.append(y)
    np.testing.assert_array_equal(*found)
    if turn == "1" and "add" not in sync:
        data = x.reshape(2, 3, 64).astype(np.uint64)
        for step in range(3):
            data = (3 * data + np.roll(data, -1 - step, axis=1)) % (1 << 32)
        np.testing.assert_array_equal(found[0], data.ravel())


@pytest.mark.parametrize("body", [
    "barrier.cluster.wait; ret;",
    ("mov.u32 %r7, %cluster_ctarank; setp.eq.u32 %p0, %r7, 1; @%p0 bra DONE; barrier.cluster.arrive;"
    "barrier.cluster.wait; bar.sync 0; WAIT: ld.volatile.global.u32 %r4, [%rd0]; setp.ne.u32 %p1, %r4, 77;"
    "@%p1 bra WAIT; DONE: ret;"),
])
def test_what_goes_wrong_in_a_cluster_is_told_alike(body: str) -> None:
    found = []
    for second in (False, True):
        program = Program(parse(elementwise(body)))
        code = program.code("k", LaunchConfig(2, 64).block, cluster=(2, 1, 1))
        assert not second or compile_block_function(code), code.refusal
        x = np.zeros(128, np.uint32)
        with pytest.raises(EmulationError) as caught:
            program.run("k", LaunchConfig(2, 64, cluster=(2, 1, 1)), [
                argument("x", x), argument("y", x.copy()), argument("n", np.uint32(0)),
            ])
        found.append(str(caught.value))
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------------------------------------
# Barriers with results


@pytest.mark.parametrize("exits", ["", "setp.lt.u32 %p3, %r2, 40; @%p3 bra SKIP; ld.global.u32 %r9, [%rd0+512]; SKIP:"])
def test_barriers_that_count(exits: str) -> None:
    """Votes of all warps, in a loop; with a fault between two."""
    text = elementwise(f"""
        ld.global.u32 %r4, [%rd0]; mov.u32 %r5, 0;
        AGAIN: and.b32 %r6, %r4, 1; setp.eq.u32 %p0, %r6, 1; setp.gt.u32 %p1, %r4, 3;
        barrier.red.popc.u32 %r7, 0, %p0; add.u32 %r4, %r4, %r7; {exits}
        bar.red.and.pred %p2, 0, %p1; selp.u32 %r8, 1000, 3, %p2; add.u32 %r4, %r4, %r8;
        setp.eq.u32 %p1, %r4, %r5; bar.red.or.pred %p2, 1, %p1; selp.u32 %r8, 77, 5, %p2; add.u32 %r4, %r4, %r8;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 4; @%p0 bra AGAIN; st.global.u32 [%rd1], %r4; ret;""")
    x = np.random.default_rng().integers(0, 40, 2 * 96, np.uint32)
    said, (_, got) = same(text, 2, 96, x=x, y=np.zeros(2 * 96, np.uint32), n=np.uint32(0))
    assert bool(said) == bool(exits)
    data = x.reshape(2, 96).astype(np.int64)
    for turn in range(4):
        above = (data > 3).all(axis=1)
        data = data + (data % 2).sum(axis=1)[:, None]
        data = data + np.where(above, 1000, 3)[:, None]
        data = data + np.where((data == turn).any(axis=1), 77, 5)[:, None]
    if not exits:
        np.testing.assert_array_equal(np.frombuffer(got, np.uint32), data.ravel())


@pytest.mark.parametrize("action", ["and.pred", "or.pred", "popc.u32"])
@pytest.mark.parametrize("odd", [0, 40, 95])
def test_a_vote_on_what_was_known_before_the_last_barrier(action: str, odd: int) -> None:
    """Nothing between the two barriers reads the predicate; one lane of one warp disagrees."""
    take = "selp.u32 %r7, 1, 0, %p2;" if action.endswith("pred") else ""
    text = elementwise(f"""
        ld.global.u32 %r4, [%rd0]; setp.gt.u32 %p1, %r4, 3; bar.sync 0;
        bar.red.{action} {'%p2' if take else '%r7'}, 0, %p1; {take} st.global.u32 [%rd1], %r7; ret;""")
    for most in (0, 9):
        x = np.full(96, most, np.uint32)
        x[odd] = 9 - most
        said, (_, got) = same(text, 1, 96, x=x, y=np.zeros(96, np.uint32), n=np.uint32(0))
        high = x > 3
        wanted = {"and.pred": high.all(), "or.pred": high.any(), "popc.u32": high.sum()}[action]
        assert not said and np.frombuffer(got, np.uint32).tolist() == [int(wanted)] * 96


def test_a_missing_lane_behind_a_warp_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code that follows what the shuffle gives begins where only the second warp is left."""
    text = kernel("u64 x", THREAD + pointer("%rd0", "x", "%r2") + """
        mov.u32 %r3, %r2; shfl.sync.bfly.b32 %r3, %r3, 16, 31, 0xFFFFFFFF; st.global.u32 [%rd0], %r3; ret;""")
    sanitize = frozenset(("race", "init", "memory", "barrier"))
    config, found, code_of = LaunchConfig(2, 48, sanitize=sanitize), [], Program.code

    def compiled(*given: Any, **named: Any) -> Any:
        code = code_of(*given, **named)
        assert code.conservative or compile_block_function(code)
        return code

    for method in (code_of, compiled):
        monkeypatch.setattr(Program, "code", method)
        x = np.arange(96, dtype=np.uint32)
        with pytest.raises(EmulationError) as caught:
            Program(parse(text)).run("k", config, [argument("x", x)])
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert "takes from lane" in found[0]
