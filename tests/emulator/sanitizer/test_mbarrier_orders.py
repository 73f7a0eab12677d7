"""The order by mbarriers and barriers of some warps or lanes, as compiled code follows it: as Python does alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mbarrier_programs
import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.analysis import warp_barriers
from ptxdsl.emulator.runtime import quiescence
from ptxdsl.emulator.sanitizer.instrumentation import Instrumentation
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.emulator.sanitizer.synchronisation import Synchronisation
from ptxdsl.errors import DeadlockError, EmulationError, RaceError
from ptxdsl.launch import LaunchConfig

RACE = frozenset(("race",))


@pytest.fixture(autouse=True)
def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is proven by barriers of some warps."""
    monkeypatch.setattr(warp_barriers, "MOST_STEPS", -1)


def run(text: str, block: int, seed: int | None = None, tools: frozenset[str] = RACE, **arrays: Any) -> None:
    config = LaunchConfig(1, block, 0, None, sanitize=tools, seed=seed)
    emulator.load(text).run("k", config, [argument(name, array) for name, array in arrays.items()])


def found(text: str, warps: int) -> list[Any]:
    with collect() as findings:
        run(text, 32 * warps, out=np.zeros(1, np.uint32))
    return sorted((f.access.ptx_line, f.earlier.ptx_line if f.earlier else 0) for f in findings)


@pytest.mark.parametrize(("make", "warps", "first"), [
    (mbarrier_programs.program, mbarrier_programs.WARPS, 0), (mbarrier_programs.program, mbarrier_programs.WARPS, 300),
    (mbarrier_programs.tiles, 2, 0), (mbarrier_programs.tiles, 2, 40),
    (mbarrier_programs.named, mbarrier_programs.WARPS, 0), (mbarrier_programs.named, mbarrier_programs.WARPS, 50),
])
def test_random_programs_are_judged_as_by_python(
    make: Callable[[int], str], warps: int, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [kernel("u64 out", make(seed)) for seed in range(first, first + 3)]
    ours = [found(text, warps) for text in texts]
    monkeypatch.setattr(Instrumentation, "_follows_mbarriers", lambda self, instructions: False)
    assert ours == [found(f"{text}// once more\n", warps) for text in texts]


HALVES = """
.shared .align 4 .b32 slots[64];
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 16; shl.b32 %r2, 0xffff, %r1; mov.u32 %r3, slots; mad.lo.u32 %r4, %r0, 4, %r3;
xor.b32 %r5, %r0, 5; mad.lo.u32 %r5, %r5, 4, %r3; mov.u32 %r6, 0; mov.u32 %r7, %r0;
LOOP: st.shared.u32 [%r4], %r7; bar.warp.sync %r2;
ld.shared.u32 %r8, [%r5]; add.u32 %r7, %r7, %r8; {last}
add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 9; @%p2 bra LOOP;
ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r0, 4, %rd0; st.global.u32 [%rd0], %r7; ret;
"""


@pytest.mark.parametrize("last", ["bar.warp.sync %r2;", ""])
def test_barriers_of_half_a_warp(last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[int] = []
    monkeypatch.setattr(Synchronisation, "event", lambda self, *args, real=Synchronisation.event: (
        events.append(1), real(self, *args)
    ))
    want, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    for _ in range(9):
        want = want + want[np.arange(64) ^ 5]
    text = kernel("u64 out", HALVES.format(last=last))
    if last:
        run(text, 64, out=out)
        np.testing.assert_array_equal(out, want)
    else:
        with pytest.raises(RaceError, match=r"slots\[\d+\] in shared memory"):
            run(text, 64, out=out)
    assert not events


PHASES = """
.shared .align 8 .b64 bar; .shared .align 4 .b32 slots[64];
mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r3, slots; mad.lo.u32 %r4, %r0, 4, %r3;
xor.b32 %r5, %r0, 63; mad.lo.u32 %r5, %r5, 4, %r3; mov.u32 %r6, 0; mov.u32 %r7, 0;
@!%p0 mbarrier.init.shared.b64 [bar], 64;
bar.sync 0;
{before}
LOOP: st.shared.u32 [%r4], %r6;
mbarrier.arrive.shared.b64 %rd9, [bar]; A: mbarrier.test_wait.shared.b64 %p1, [bar], %rd9; @!%p1 bra A;
ld.shared.u32 %r8, [%r5]; add.u32 %r7, %r7, %r8;
{last}
add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 9; @%p2 bra LOOP;
{after}
ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r0, 4, %rd0; st.global.u32 [%rd0], %r7; ret;
"""
LAST = "mbarrier.arrive.shared.b64 %rd9, [bar]; B: mbarrier.test_wait.shared.b64 %p1, [bar], %rd9; @!%p1 bra B;"
STRONG = (
    "@!%p0 st.relaxed.cta.shared.u32 [word], 64;",
    "fence.acq_rel.cta; @!%p0 atom.acquire.cta.shared.add.u32 %r9, [word], 1;",
)


@pytest.mark.parametrize("strong", [("", ""), STRONG])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_python_is_not_asked(strong: tuple[str, str], seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in the mbarrier's phases; a strong access at the end may be Python's."""
    events: list[int] = []
    monkeypatch.setattr(Synchronisation, "event", lambda self, *args, real=Synchronisation.event: (
        events.append(1), real(self, *args)
    ))
    word = ".shared .align 4 .b32 word;" if strong[0] else ""
    body = word + PHASES.format(before=strong[0], last=LAST, after=strong[1])
    out = np.zeros(64, np.uint32)
    run(kernel("u64 out", body), 64, seed, out=out)
    assert out.tolist() == [36] * 64
    assert len(events) <= 4 * bool(strong[0])


@pytest.mark.parametrize("strong", [("", ""), STRONG])
def test_a_slot_is_stored_again_too_early(strong: tuple[str, str]) -> None:
    word = ".shared .align 4 .b32 word;" if strong[0] else ""
    body = word + PHASES.format(before=strong[0], last="", after=strong[1])
    with pytest.raises(RaceError, match=r"slots\[\d+\] in shared memory: (store|load)"):
        run(kernel("u64 out", body), 64, out=np.zeros(64, np.uint32))


STAGES = """
.shared .align 4 .b32 slots[128];
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 63; mov.u32 %r2, slots; mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r4, 0;
xor.b32 %r1, %r1, 63; mad.lo.u32 %r5, %r1, 4, %r2; mov.u32 %r7, 0; setp.gt.u32 %p0, %r0, 63; mov.u32 %r11, 3;
@%p0 bra TAKE;
GIVE: and.b32 %r9, %r4, 1; add.u32 %r8, %r9, 3; setp.lt.u32 %p1, %r4, 2;
@%p1 bra FREE; bar.sync %r8, 128; FREE: shl.b32 %r10, %r9, 8; add.u32 %r10, %r10, %r3;
st.shared.u32 [%r10], %r4; add.u32 %r8, %r9, {full}; bar.arrive %r8, {count};
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra GIVE; bra DONE;
TAKE: and.b32 %r9, %r4, 1; add.u32 %r8, %r9, 1; shl.b32 %r10, %r9, 8; add.u32 %r10, %r10, %r5;
{early} bar.sync %r8, 128; {late} add.u32 %r7, %r7, %r6;
setp.gt.u32 %p1, %r4, 6; @%p1 bra LAST; add.u32 %r8, %r9, 3; {free} LAST:
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, 9; @%p2 bra TAKE;
DONE: mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 128, %r0;
ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r8, 4, %rd0; st.global.u32 [%rd0], %r7; ret;
"""
LOAD = "ld.shared.u32 %r6, [%r10];"
RIGHT = {"full": 1, "count": 128, "early": "", "late": LOAD, "free": "bar.arrive %r8, 128;"}
WRONG: dict[str, dict[str, Any]] = {
    "read before the barrier": {"early": LOAD, "late": ""}, "read after the slot is free": {
        "late": "mov.u32 %r6, 0;", "free": f"bar.arrive %r8, 128; {LOAD}",
    }, "no arrival": {"free": ""}, "other numbers": {"full": 5}, "another count": {"count": 96},
    "warps that do not meet": {"full": 1, "count": 64},
}


def staged(blocks: int, seed: int | None, last: str = "", **parts: Any) -> np.ndarray[Any, Any]:
    out = np.zeros((blocks, 128), np.uint32)
    config = LaunchConfig(blocks, 128, 0, None, sanitize=RACE, seed=seed)
    text = kernel("u64 out", STAGES.format(**RIGHT | parts)) + last
    emulator.load(text).run("k", config, [argument("out", out)])
    return out


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_python_is_not_asked_about_barriers_of_some_warps(seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[int] = []
    monkeypatch.setattr(Synchronisation, "event", lambda self, *args, real=Synchronisation.event: (
        events.append(1), real(self, *args)
    ))
    for blocks in (3, 1):
        np.testing.assert_array_equal(staged(blocks, seed), [[0] * 64 + [36] * 64] * blocks)
    assert not events


@pytest.mark.parametrize("wrong", WRONG)
def test_barriers_of_some_warps_that_are_wrong(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(last: str) -> str:
        with pytest.raises(EmulationError) as error:
            staged(2, None, last, **WRONG[wrong])
        return str(error.value)

    ours = told("")
    monkeypatch.setattr(Instrumentation, "_follows_mbarriers", lambda self, instructions: False)
    assert ours == told("// once more\n")


ATTENDED = """
.shared .align 8 .b64 bar;
mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, 0;
@!%p0 mbarrier.init.shared.b64 [bar], {arrivals};
bar.sync 0;
mov.u64 %rd1, %globaltimer; mbarrier.arrive.shared.b64 %rd9, [bar];
bra WAIT;
AGAIN: add.u32 %r1, %r1, 1;
WAIT: mbarrier.test_wait.shared.b64 %p1, [bar], %rd9;
@%p1 bra DONE;
setp.lt.u32 %p2, %r1, 16; @%p2 bra AGAIN;
mov.u64 %rd2, %globaltimer; sub.u64 %rd3, %rd2, %rd1; setp.lt.u64 %p3, %rd3, 40000; @%p3 bra WAIT;
{timeout}
nanosleep.u32 1000; bra WAIT;
DONE: ret;
"""


@pytest.mark.parametrize("seed", [None, 1])
def test_a_wait_that_reads_a_clock_ends(seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiescence, "SECONDS", 0.02)
    run(kernel("", ATTENDED.format(arrivals=64, timeout="")), 64, seed)
    with pytest.raises(DeadlockError, match="which lacks 1 of 65 arrivals"):
        run(kernel("", ATTENDED.format(arrivals=65, timeout="")), 64, seed)


@pytest.mark.parametrize("warps", [1, 3, 32])
def test_every_warp_has_to_see_the_clock_stand_still(warps: int) -> None:
    """In each round one warp has its turn, and reads the clock."""
    waits, turn, clock = quiescence.Quiescence(False), 0, 0
    read = [0] * warps
    for _ in range(200):
        turn, clock = (turn + 1) % warps, clock + (not waits.stopped)
        read[turn] = clock
        if waits.slice_over(1) and waits.reached(repr((turn, read)).encode()):
            return
    pytest.fail("the end is not found")


def test_a_timeout_is_no_deadlock() -> None:
    timeout = "setp.gt.u64 %p3, %rd3, 100000000; @%p3 bra LATE;"
    late = "LATE: ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r0, 4, %rd0; st.global.u32 [%rd0], 1; ret;"
    out = np.zeros(64, np.uint32)
    run(kernel("u64 out", ATTENDED.format(arrivals=65, timeout=timeout) + late), 64, None, frozenset(), out=out)
    assert out.all()


def test_no_warp_is_drawn_so_rarely_that_nothing_seems_to_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Instrumentation, "_follows_mbarriers", lambda self, instructions: False)
    for number in (3, 4, 5, 9, 10):
        out = np.full(1, 99, np.uint32)
        with collect():
            text = kernel("u64 out", mbarrier_programs.program(number)) + "// random\n"
            run(text, 32 * mbarrier_programs.WARPS, 1, out=out)
        assert out[0] == 0
