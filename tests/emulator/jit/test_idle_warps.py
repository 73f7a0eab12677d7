"""Phases in which fewer threads work each time: warps without work are not run, and nothing else changes."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
from emulator_harness import argument, kernel
from sampled import sampled
from two_tiers import outcomes, same

from ptxdsl.emulator.jit import block_function
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.jit.idle_planning import kept_registers
from ptxdsl.emulator.jit.plan import Plan
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

START = """mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
    ld.param.u64 %rd0, [x]; mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd0, %rd1; ld.param.u32 %r20, [s];
    ld.param.u32 %r21, [m]; ld.param.u32 %r22, [b]; ld.param.u32 %r23, [rounds]; mov.u32 %r24, 0; mov.u32 %r25, 7;
    shl.b32 %r5, %r1, 1; add.s32 %r6, %r5, 2; ld.global.u32 %r7, [%rd1]; xor.b32 %r8, %r7, %r1;"""
WORK = """ld.global.u32 %r30, [%rd1]; mad.lo.u32 %r30, %r30, 3, %r24; add.u32 %r30, %r30, %r20;
    st.global.u32 [%rd1], %r30;"""
ELSEWHERE = """mul.wide.u32 %rd10, %r9, 4; add.u64 %rd11, %rd0, %rd10; ld.global.u32 %r30, [%rd11];
    mad.lo.u32 %r30, %r30, 3, %r24; mad.lo.u32 %r30, %r1, %r20, %r30; st.global.u32 [%rd11], %r30;"""
NEXT = """mul.lo.u32 %r20, %r20, %r21; add.u32 %r24, %r24, 1; mad.lo.u32 %r25, %r25, 5, %r20;
    setp.lt.u32 %p3, %r24, %r23; @%p3 bra AGAIN;"""
END = """ld.global.u32 %r30, [%rd1]; xor.b32 %r31, %r20, %r24; xor.b32 %r31, %r31, %r22; xor.b32 %r31, %r31, %r25;
    add.u32 %r31, %r31, %r8; mad.lo.u32 %r30, %r30, 9, %r31; st.global.u32 [%rd1], %r30; ret;"""
GROWING = {
    "thread": "mov.u32 %r10, %r1;",
    "multiple": "mul.lo.s32 %r10, %r20, %r5;",
    "next multiple": "mul.lo.s32 %r11, %r20, %r6; add.s32 %r10, %r11, -1;",
    "sum": "mad.lo.s32 %r10, %r20, %r6, %r24;",
    "difference": "mul.lo.s32 %r11, %r6, %r20; sub.s32 %r10, %r11, %r25;",
    "shifted": "mad.lo.s32 %r11, %r1, %r20, %r1; shl.b32 %r10, %r11, 3;",
    "uniform before": "shl.b32 %r11, %r20, 1; mul.lo.s32 %r10, %r11, %r1;",
}
OTHERS = {
    "falling": "sub.s32 %r10, %r3, %r1;",
    "product of threads": "mul.lo.s32 %r10, %r1, %r6;",
    "data": "add.u32 %r10, %r8, %r20;",
    "bits": "xor.b32 %r10, %r1, %r24;",
    "remainder": "rem.u32 %r10, %r1, 48;",
    "lane": "mov.u32 %r10, %laneid;",
    "turned": "add.u32 %r11, %r1, 32; rem.u32 %r10, %r11, %r3;",
}
BLOCKS = (96, 100, 128, 160, 250, 256, 33, 65)
PARAMETERS = "u64 x, u32 s, u32 m, u32 b, u32 rounds"


def phases(number: str, test: str = "ge.s32", *, mirrored: bool = False, negated: bool = False, ends: bool = False,
           between: str = "", work: str = WORK) -> str:
    """Rounds of work up to a bound; a barrier begins each, or ends it. Work elsewhere is at places that x says."""
    operands = "%r22, %r10" if mirrored else "%r10, %r22"
    turn = f"{number} setp.{test} %p1, {operands}; @{'!' if negated else ''}%p1 bra JOIN; {work}"
    if ends:
        return kernel(PARAMETERS, f"{START} bar.sync 0; AGAIN: {turn} JOIN: bar.sync 0; {between} {NEXT} {END}")
    return kernel(PARAMETERS, f"{START} AGAIN: bar.sync 0; {turn} JOIN: {between} {NEXT} bar.sync 0; {END}")


def given(rng: np.random.Generator, threads: int) -> dict[str, object]:
    return {
        "x": rng.integers(0, 1 << 32, 3 * threads, np.uint32),
        "s": np.uint32(rng.choice([0, 1, 1, 2, 3, threads, int(rng.integers(1 << 32))])),
        "m": np.uint32(rng.choice([1, 2, 2, 3, 0, (1 << 32) - 1, int(rng.integers(1 << 32))])),
        "b": np.uint32(rng.choice([0, 1, threads // 2, threads, 2 * threads, int(rng.integers(1, 2 * threads)), 1 << 31,
                                   (1 << 31) - 1, (1 << 32) - 1])),
        "rounds": np.uint32(rng.integers(1, 12)),
    }


@pytest.mark.parametrize("number", sampled(range(36), 18))
def test_random_phases(number: int, rng: np.random.Generator) -> None:
    """Whatever the bound and the steps, numbers that wrap around and products that fall included."""
    draw = random.Random(int(rng.integers(1 << 62)))
    forms = [*(GROWING.values()), *(GROWING.values()), *(OTHERS.values())]
    test = draw.choice(["ge.s32", "gt.s32", "lt.s32", "le.s32", "ge.u32", "gt.u32", "lo.u32", "hs.u32", "eq.s32"])
    between = draw.choice(["", "", "add.u32 %r8, %r8, %r1;", "shr.u32 %r22, %r22, 1;"])
    text = phases(draw.choice(forms), test, mirrored=draw.random() < 0.3, negated=draw.random() < 0.4,
                  ends=draw.random() < 0.5, between=between)
    threads = draw.choice(BLOCKS)
    for _ in range(3):
        assert same(text, 3, threads, **given(rng, threads)) == ""


@pytest.mark.parametrize(("test", "s", "bound"), [
    ("ge.s32", 1 << 24, 1 << 28), ("ge.u32", 1 << 25, 1 << 30), ("gt.s32", -1, -80), ("ge.s32", -3, -300),
    ("ge.u32", (1 << 31) + 3, 64), ("gt.s32", (1 << 30) + 1, 90),
])
@pytest.mark.parametrize("name", sorted(GROWING.keys() - {"thread"}))
def test_numbers_that_wrap_around_or_fall(name: str, test: str, s: int, bound: int, rng: np.random.Generator) -> None:
    """Of which a warp may be beyond the bound, and a later one not."""
    for rounds in (1, 3):
        numbers = {"s": s, "m": 1, "b": bound, "rounds": rounds}
        arguments = given(rng, 256) | {key: np.uint32(number % (1 << 32)) for key, number in numbers.items()}
        assert same(phases(GROWING[name], test), 2, 256, **arguments) == ""


@pytest.mark.parametrize("sanitize", [("race",), "all"])
def test_sanitized_phases(sanitize: object, rng: np.random.Generator) -> None:
    assert same(phases(GROWING["multiple"]), 2, 160, sanitize, **given(rng, 160)) == ""


PLACED = kernel(
    f"{PARAMETERS}, u64 order",
    f"""{START} ld.param.u64 %rd20, [order]; mul.wide.u32 %rd21, %r4, 4; add.u64 %rd21, %rd20, %rd21;
    ld.global.u32 %r9, [%rd21]; AGAIN: bar.sync 0; mul.lo.s32 %r10, %r20, %r5; setp.ge.s32 %p1, %r10, %r22;
    @%p1 bra JOIN; {ELSEWHERE} JOIN: {NEXT} bar.sync 0; {END}""",
)


@pytest.mark.parametrize("threads", [96, 100, 128, 256])
@pytest.mark.parametrize("order", ["any", "even", "side by side", "nearly", "halves", "beyond"])
def test_work_at_places_of_each_lane(threads: int, order: str, rng: np.random.Generator) -> None:
    """In warps of which all lanes work, some or none."""
    lanes = np.arange(3 * threads, dtype=np.uint32)
    some = {"even": lanes * 2, "side by side": lanes + 5, "halves": lanes + lanes // 16}
    some["nearly"] = some["side by side"].copy()
    some["nearly"][[9, 41]] = some["nearly"][[41, 9]]
    places = some.get(order, rng.permutation(lanes))
    if order == "beyond":
        places[int(rng.integers(len(places)))] = int(rng.choice([1 << 20, 1 << 31, (1 << 32) - 1]))
    for s, bound in ((1, threads), (1, 2 * threads), (2, 70), (1, int(rng.integers(2 * threads)))):
        arguments = given(rng, threads)
        arguments |= {"x": rng.integers(0, 1 << 32, 7 * threads, np.uint32), "s": np.uint32(s), "m": np.uint32(2),
                      "b": np.uint32(bound), "rounds": np.uint32(7), "order": places.astype(np.uint32)}
        first, second = outcomes(PLACED, 3, threads, None, None, **arguments)
        assert second[0] == first[0]
        assert first[0] or second == first  # at a fault, other warps may have come further
        assert not first[0] or order == "beyond", first[0]


def idle(text: str, threads: int = 128) -> list[int]:
    plan = plan_block_function(Program(parse(text)).code("k", (threads, 1, 1)))
    return [len(each.ends) for _, each in plan.idle]


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("name", GROWING)
def test_what_is_found(name: str, ends: bool) -> None:
    assert idle(phases(GROWING[name], ends=ends)) == [1 if ends else 2]
    assert idle(phases(GROWING[name], "gt.u32", ends=ends)) == [1 if ends else 2]
    assert idle(phases(GROWING[name], "lt.s32", negated=True, ends=ends)) == [1 if ends else 2]
    assert idle(phases(GROWING[name], "le.s32", mirrored=True, ends=ends)) == [1 if ends else 2]
    for test in ("lt.s32", "eq.s32", "ne.s32"):  # the warps that are left are the last, or any
        assert idle(phases(GROWING[name], test, ends=ends)) == []
    assert idle(phases(GROWING[name], "ge.s32", mirrored=True, ends=ends)) == []


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_grow(name: str) -> None:
    assert idle(phases(OTHERS[name])) == []


def test_what_idle_warps_do() -> None:
    """They must write what is the same in all warps, and nothing else."""
    number = GROWING["thread"]
    assert idle(phases(number, between="add.u32 %r8, %r8, %r1;")) == []
    assert idle(phases(number, between="st.global.u32 [%rd1], %r24;")) == []
    assert idle(phases(number, between="ld.global.u32 %r25, [%rd0];")) == []
    assert idle(phases(number, between="@%p1 add.u32 %r25, %r25, 1;")) == []
    assert idle(phases(number, between="setp.gt.u32 %p2, %r8, 9; @%p2 bra OUT; add.u32 %r25, %r25, 1; OUT:")) == []
    assert idle(phases(number, between="shr.u32 %r22, %r22, 1; mov.u32 %r11, %r1;")) == [2]
    assert idle(phases("add.u32 %r20, %r20, 1; mul.lo.u32 %r10, %r20, %r1;")) == [2]
    assert idle(phases("mul.lo.u32 %r10, %r20, %r1; add.u32 %r20, %r20, 1;")) == []  # it is another by then
    assert idle(phases(number), 64) == []


def test_a_bound_that_threads_compare_at_different_times() -> None:
    often = """mov.u32 %r40, 0; TURN: setp.ge.u32 %p1, %r1, %r40; add.u32 %r40, %r40, 1; setp.lt.u32 %p2, %r40, %r8;
        @%p2 bra TURN;"""
    turn = f"AGAIN: bar.sync 0; @%p1 bra JOIN; {WORK} JOIN: {NEXT} bar.sync 0; {END}"
    assert idle(kernel(PARAMETERS, f"{START} {often} {turn}")) == []
    assert idle(kernel(PARAMETERS, f"{START} {often.replace('%r8;', '%r22;')} {turn}")) == [2]


def test_a_fault_behind_idle_warps(rng: np.random.Generator) -> None:
    """The first tier goes on where idle warps have been passed over."""
    work = WORK.replace("st.global.u32 [%rd1]", "mul.wide.u32 %rd2, %r20, 4; add.u64 %rd3, %rd1, %rd2; "
                                                "st.global.u32 [%rd3]")
    text = phases(GROWING["multiple"], work=work)
    arguments = given(rng, 128)
    arguments |= {"s": np.uint32(1), "m": np.uint32(2), "b": np.uint32(300), "rounds": np.uint32(20)}
    said = [message for message, _ in outcomes(text, 2, 128, None, None, **arguments)]
    places = [re.findall(r"block \(.*?\), thread \(.*?\)|PTX line \d+", message) for message in said]
    assert places[0] == places[1] != [], said


def planned(text: str) -> Plan:
    return plan_block_function(Program(parse(text)).code("k", (128, 1, 1)))


def kept(text: str) -> list[set[str]]:
    """What is kept once behind barriers, of the registers that are named here."""
    return [{*names} & {"%r20", "%r22", "%r24", "%r25"} for names in kept_registers(planned(text)).values()]


TWICE = """AGAIN: bar.sync 0; mul.lo.u32 %r10, %r20, %r1; setp.ge.u32 %p1, %r10, %r22; @%p1 bra JOIN; {work}
    JOIN: add.u32 %r24, %r24, 1; bar.sync 0; setp.ge.u32 %p2, %r1, %r25; @%p2 bra OVER; {work} OVER: {other}
    mul.lo.u32 %r20, %r20, %r21; setp.lt.u32 %p3, %r24, %r23; @%p3 bra AGAIN;"""


def twice(other: str) -> str:
    """Two phases a round; ``other`` is what the second writes besides."""
    return kernel(PARAMETERS, f"{START} {TWICE.format(work=WORK, other=other)} bar.sync 0; {END}")


def test_what_is_kept_once() -> None:
    """All that idle warps have written, where those that are idle again write it again or need it no more."""
    number = GROWING["multiple"]
    assert kept(phases(number)) == [{"%r20", "%r24", "%r25"}] * 2
    assert kept(phases(number, ends=True)) == [{"%r20", "%r24", "%r25"}]
    assert kept(phases(number, between="shr.u32 %r22, %r22, 1;")) == [{"%r20", "%r22", "%r24", "%r25"}] * 2
    assert kept(phases(OTHERS["data"])) == [{"%r20", "%r24", "%r25"}] * 2  # no warp is idle: all that is one number
    assert len(planned(twice("")).idle) == 2
    assert kept(twice("")) == [{"%r20"}]  # behind the last barrier; of the others, each way leaves a number as it was
    assert kept(twice("add.u32 %r24, %r24, 0;")) == [{"%r24"}, {"%r20", "%r24"}]


@pytest.mark.parametrize("other", ["", "add.u32 %r24, %r24, 0;", "add.u32 %r25, %r25, 3;"])
@pytest.mark.parametrize("threads", [128, 160, 250])
def test_two_phases_a_round(other: str, threads: int, rng: np.random.Generator) -> None:
    for _ in range(3):
        assert same(twice(other), 3, threads, **given(rng, threads)) == ""


MEET = f""".shared .align 4 .b32 room[256]; mov.u32 %r50, room; shl.b32 %r51, %r1, 2; add.u32 %r51, %r50, %r51;
    st.shared.u32 [%r51], %r1; bar.sync 0; add.u32 %r52, %r1, 32; rem.u32 %r52, %r52, %r3; shl.b32 %r52, %r52, 2;
    add.u32 %r52, %r50, %r52; ld.shared.u32 %r52, [%r52]; mad.lo.u32 %r8, %r52, 77, %r8; {END}"""
"""The end for threads that read what those of the next warp have written, so that all must have made as many rounds."""


@pytest.mark.parametrize("budget", sampled([1, 7, 30, 90, 150, 200], 2))
@pytest.mark.parametrize("ends", [False, True])
def test_blocks_that_leave_at_any_time(
    budget: int, ends: bool, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first tier finds what was kept once in the memory of each warp: of those that have run, and of the others."""
    monkeypatch.setattr(block_function, "BUDGET", budget)
    of_its_own = f"xor.b32 %r25, %r25, {budget};"  # compiled code is kept by its text
    work = WORK + "red.global.add.u32 [%rd1], 5;"  # with which another warp is the first behind each barrier
    for name, done in (("multiple", WORK), ("thread", work), ("uniform before", work)):
        text = phases(GROWING[name], ends=ends, between=of_its_own, work=done).replace(END, MEET)
        for threads in (128, 250):
            arguments = given(rng, threads) | {"s": np.uint32(1), "m": np.uint32(2), "rounds": np.uint32(9)}
            arguments["b"] = np.uint32(rng.integers(1, 4 * threads))
            assert same(text, 3, threads, **arguments) == ""
    assert same(twice(of_its_own).replace(END, MEET), 3, 160, **given(rng, 160)) == ""
    program = Program(parse(text))
    code = program.code("k", (250, 1, 1))
    assert compile_block_function(code)
    program.run("k", LaunchConfig(3, 250), [argument(name, value) for name, value in arguments.items()])
    assert code.exits


def test_blocks_that_stay_to_their_end(rng: np.random.Generator) -> None:
    """What is kept once is what a warp would find in its memory, in all regions."""
    for text in (phases(GROWING["multiple"]), phases(GROWING["thread"], ends=True), twice("add.u32 %r24, %r24, 0;")):
        program = Program(parse(text))
        code = program.code("k", (128, 1, 1))
        assert compile_block_function(code)
        numbers = {"s": np.uint32(1), "m": np.uint32(2), "b": np.uint32(100), "rounds": np.uint32(6)}
        arguments = given(rng, 128) | numbers
        program.run("k", LaunchConfig(3, 128), [argument(name, value) for name, value in arguments.items()])
        assert not code.exits
