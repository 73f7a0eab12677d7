"""What barriers of some warps order is proven beforehand where it is the same in any order of the warps, only there.

The proof is held against what is followed as a kernel runs, and traces against what may happen to them: warps that take
their turns at random, with a vector clock for each thread.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from typing import Any

import mbarrier_programs
import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.analysis import block_execution, warp_barriers
from ptxdsl.emulator.analysis.warp_barriers import Ordered, Trace
from ptxdsl.emulator.instructions.instrumentation import ShadowCheck, SyncBarrier
from ptxdsl.emulator.sanitizer import proofs
from ptxdsl.emulator.sanitizer.launch_proof import LaunchProof
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

LANES, WARPS, SIZE = 32, 3, 64
NUMBERS = itertools.count()


class Proofs:
    """The proofs that were made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[proofs.Proven] = []
        run = LaunchProof.run
        monkeypatch.setattr(LaunchProof, "run", lambda proof: (self.made.append(run(proof)), self.made[-1])[1])

    def of(self, array: str) -> tuple[bool, bool]:
        """Whether any access to an array is proven to be ordered, and any to be written."""
        places = {place for place, name in self.made[-1].arrays if name == array}
        return bool(places & self.made[-1].ordered), bool(places & self.made[-1].written)


def found(text: str, block: int, *tools: str, **arrays: Any) -> list[Any]:
    """What is found in a launch of one block."""
    with collect() as findings:
        config = LaunchConfig(1, block, 0, None, sanitize=frozenset(tools))
        emulator.load(text).run("k", config, [argument(name, array) for name, array in arrays.items()])
    return sorted((f.kind, f.access.ptx_line, f.earlier.ptx_line if f.earlier else 0) for f in findings)


@pytest.mark.parametrize("tools", [("race",), ("race", "init")])
def test_random_programs_are_judged_as_they_run(tools: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    made, proven = Proofs(monkeypatch), 0
    first = random.randrange(1 << 20)
    for seed in range(first, first + 100):
        if proven and seed >= first + 16:
            break
        text = kernel("u64 out", mbarrier_programs.named(seed))
        out = np.zeros(1, np.uint32)
        ours = found(text, 32 * mbarrier_programs.WARPS, *tools, out=out)
        proven += any(made.of("slots"))
        with monkeypatch.context() as patch:
            patch.setattr(warp_barriers, "MOST_STEPS", -1)
            assert ours == found(f"{text}// once more\n", 32 * mbarrier_programs.WARPS, *tools, out=out), seed
    assert proven


RING = """
{own} .shared .align 4 .b32 slots[256];
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 63; mov.u32 %r2, slots; mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r4, 0;
xor.b32 %r1, %r1, 63; mad.lo.u32 %r5, %r1, 4, %r2; mov.u32 %r7, 0; setp.gt.u32 %p0, %r0, 63; and.b32 %r20, %r0, 31;
setp.lt.u32 %p4, %r20, 16; setp.eq.u32 %p5, %r20, 7; setp.eq.u32 %p8, %r20, %r20;
ld.param.u64 %rd1, [to]; ld.global.u32 %r21, [%rd1]; setp.eq.u32 %p6, %r21, 0; ld.param.u32 %r22, [n]; {first}
@%p0 bra TAKE;
GIVE: and.b32 %r9, %r4, 1; add.u32 %r8, %r9, 3; setp.lt.u32 %p1, %r4, 2;
@%p1 bra FREE; {free} FREE: shl.b32 %r10, %r9, 8; add.u32 %r10, %r10, %r3;
{store} add.u32 %r8, %r9, 1; {full}
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r22; @%p2 bra GIVE; bra DONE;
TAKE: and.b32 %r9, %r4, 1; add.u32 %r8, %r9, 1; shl.b32 %r10, %r9, 8; add.u32 %r10, %r10, %r5;
{wait} {load} add.u32 %r7, %r7, %r6; add.u32 %r8, %r9, 3; {give_back}
add.u32 %r4, %r4, 1; setp.lt.u32 %p2, %r4, %r22; @%p2 bra TAKE;
DONE: {last} mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 128, %r0;
ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r8, 4, %rd0; st.global.u32 [%rd0], %r7; ret;
"""
RIGHT = {
    "own": "", "last": "", "first": "", "free": "bar.sync %r8, 128;", "store": "st.shared.u32 [%r10], %r4;",
    "full": "bar.arrive %r8, 128;",
    "wait": "bar.sync %r8, 128;", "load": "ld.shared.u32 %r6, [%r10];", "give_back": "bar.arrive %r8, 128;",
}
NEIGHBOUR = "xor.b32 %r11, %r10, 4;"


def ring(n: int = 9, **parts: str) -> tuple[list[Any], np.ndarray[Any, Any], bool]:
    """What is found where two warps hand numbers over to two others; what these got; whether anything was checked."""
    out = np.zeros((2, 128), np.uint32)
    text = kernel("u64 out, u64 to, u32 n", RING.format(**RIGHT | parts))
    text += f"// {next(NUMBERS)}\n"  # so that no proof of it is kept
    module = emulator.load(text)
    given = {"out": out, "to": np.zeros(1, np.uint32), "n": np.uint32(n)}
    with collect() as findings:
        config = LaunchConfig(2, 128, 0, None, sanitize=frozenset(("race", "init")))
        module.run("k", config, [argument(name, each) for name, each in given.items()])
    checks = (ShadowCheck, SyncBarrier)
    checked = any(isinstance(placed.op, checks) for _, _, code in module.codes("k") for placed in code.micro_ops)
    return [f.kind for f in findings], out, checked


PROVEN: dict[str, dict[str, str]] = {
    "as it is": {}, "a number for the barrier": {"full": "setp.eq.u32 %p7, %r9, 0; @%p7 bar.arrive 1, 128; "
                                                 "@!%p7 bar.arrive 2, 128;"},
    "waits only": {"give_back": "setp.gt.u32 %p7, %r4, 6; @%p7 bra LAST; bar.sync %r8, 128; LAST:"},
    "all threads": {"first": "bar.sync 0; barrier.sync 5;"},
    "a guard that holds": {"full": "@%p8 bar.arrive %r8, 128;"},
    "lanes of one warp, with a barrier of it": {
        "store": f"{NEIGHBOUR} st.shared.u32 [%r10], %r4; bar.warp.sync -1; st.shared.u32 [%r11], %r4;"},
    "lanes of one warp, behind a wait": {"load": f"{NEIGHBOUR} ld.shared.u32 %r6, [%r10]; bar.sync 9, 64; "
                                         "st.shared.u32 [%r11], %r6;"},
}


@pytest.mark.parametrize("case", PROVEN)
def test_what_is_proven_is_not_checked(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Proofs(monkeypatch)
    findings, out, checked = ring(**PROVEN[case])
    assert (findings, checked, made.of("slots")) == ([], False, (True, True))
    np.testing.assert_array_equal(out, [[0] * 64 + [36] * 64] * 2)


NOT_PROVEN: dict[str, tuple[dict[str, str], set[str], tuple[bool, bool]]] = {
    "a store before the slot is free": ({"free": "", "store": f"{RIGHT['store']} @!%p1 bar.sync %r8, 128;"},
                                        {"race"}, (False, False)),
    "a store behind the arrival": ({"store": "", "full": f"bar.arrive %r8, 128; {RIGHT['store']}"},
                                   {"race"}, (False, False)),
    "a load before the wait": ({"wait": RIGHT["load"] + RIGHT["wait"], "load": ""}, {"race"}, (False, False)),
    "lanes of one warp, behind an arrival": (
        {"full": f"{RIGHT['full']} {NEIGHBOUR} ld.shared.u32 %r6, [%r11];"}, {"race"}, (False, False)),
    "lanes of one warp": ({"store": f"{NEIGHBOUR} st.shared.u32 [%r10], %r4; st.shared.u32 [%r11], %r0;"},
                          {"race"}, (False, False)),
    "a barrier of half of a warp": (
        {"store": f"{NEIGHBOUR} st.shared.u32 [%r10], %r4; @%p4 bar.warp.sync 0xffff; st.shared.u32 [%r11], %r0;"},
        {"race"}, (False, False)),
    "two lanes at one place": ({"store": "and.b32 %r11, %r10, -8; st.shared.u32 [%r11], %r0;"},
                               {"race", "init"}, (False, False)),
    "a slot that is not written": ({"store": f"@%p4 {RIGHT['store']}"}, {"init"}, (True, False)),
    "a store that depends on memory": ({"store": f"@%p6 {RIGHT['store']}"}, set(), (True, False)),
    "a way that depends on memory": ({"store": f"@!%p6 bra OVER; {RIGHT['store']} OVER:"}, set(), (True, False)),
    "a place that depends on memory": ({"store": "add.u32 %r10, %r10, %r21; st.shared.u32 [%r10], %r4;"},
                                       set(), (False, False)),
    "an arrival on a way that depends on memory": (
        {"full": "@!%p6 bra OVER; bar.arrive %r8, 128; OVER:"}, set(), (False, False)),
    "an arrival that depends on memory": ({"full": "@%p6 bar.arrive %r8, 128;"}, set(), (False, False)),
    "a number that depends on memory": ({"full": "add.u32 %r8, %r8, %r21; bar.arrive %r8, 128;"},
                                        set(), (False, False)),
    "a count that depends on memory": ({"full": "add.u32 %r11, %r21, 128; bar.arrive %r8, %r11;"},
                                       set(), (False, False)),
    "a loop that depends on memory": (
        {"full": "mov.u32 %r12, %r21; MORE: bar.arrive %r8, 128; add.u32 %r12, %r12, 1; setp.lt.u32 %p7, %r12, 1; "
                 "@%p7 bra MORE;"}, set(), (False, False)),
    "a loop of other barriers that depends on memory": (
        {"full": f"mov.u32 %r12, %r21; MORE: bar.sync 9, 64; add.u32 %r12, %r12, 1; setp.lt.u32 %p7, %r12, 2; "
                 f"@%p7 bra MORE; {RIGHT['full']}"}, set(), (False, False)),
    "a last loop of barriers that depends on memory": (
        {"last": "mov.u32 %r12, %r21; MORE: bar.sync 9, 128; add.u32 %r12, %r12, 1; setp.lt.u32 %p7, %r12, 2; "
                 "@%p7 bra MORE;"}, set(), (False, False)),
    "a barrier of lanes on a way that depends on memory": (
        {"store": f"{NEIGHBOUR} st.shared.u32 [%r10], %r4; @!%p6 bra OVER; bar.warp.sync -1; OVER: "
                  "st.shared.u32 [%r11], %r4;"}, set(), (False, False)),
    "an end that depends on memory": ({"first": "@!%p6 ret;"}, set(), (False, False)),
    "an end on a way that depends on memory": ({"first": "@%p6 bra ON; @%p5 ret; ON:"}, set(), (False, False)),
    "a place that depends on the block": (
        {"first": "mov.u32 %r12, %ctaid.x; shl.b32 %r12, %r12, 9; add.u32 %r3, %r3, %r12; add.u32 %r5, %r5, %r12;"},
        set(), (False, False)),
    "copies that nobody waits for": (
        {"store": "cp.async.ca.shared.global [%r10], [%rd1], 4;"}, {"init"}, (False, False)),
    "ordered accesses": ({"store": "st.relaxed.cta.shared.u32 [%r10], %r4;"}, set(), (False, False)),
}


@pytest.mark.parametrize("case", NOT_PROVEN)
def test_what_is_not_plain_is_checked(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, kinds, proven = NOT_PROVEN[case]
    made = Proofs(monkeypatch)
    findings, _, checked = ring(**parts)
    assert (set(findings), checked, made.of("slots")) == (kinds, True, proven)


@pytest.mark.parametrize("end", ["", "@!%p6 ret;"])
def test_lanes_that_may_have_ended(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Proofs(monkeypatch)
    findings, _, _ = ring(own=".shared .align 4 .b32 own[128];", last=f"""
        mov.u32 %r11, own; mad.lo.u32 %r11, %r0, 4, %r11; st.shared.u32 [%r11], %r0; {end}
        bar.warp.sync -1; xor.b32 %r11, %r11, 4; ld.shared.u32 %r12, [%r11];""")
    assert (findings, made.of("own")) == ([], (not end, not end))


def test_a_long_trace_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Proofs(monkeypatch)
    monkeypatch.setattr(warp_barriers, "MOST_STEPS", 120)
    for n, effort, proven in ((9, 1, True), (30, 1, False), (30, 4, True)):
        monkeypatch.setattr(proofs, "EFFORT", effort * block_execution.EFFORT)
        findings, _, checked = ring(n)
        assert (findings, checked, made.of("slots")) == ([], not proven, (proven, proven))


# Traces, held against what may happen


class Made:
    """A random trace, and the same as a list for each warp: of accesses, or of arrivals at a barrier."""

    def __init__(self, draw: random.Random) -> None:
        self.trace = Trace(WARPS * LANES, lambda _: SIZE)
        self.warps: list[list[tuple[Any, ...]]] = [[] for _ in range(WARPS)]
        self.place = 0
        often = draw.choice((0.2, 0.4))
        for _ in range(draw.randrange(3, 14)):
            meets = sorted(draw.sample(range(WARPS), draw.choice((1, 2, 2, 3))))
            number, waits = sum(1 << warp for warp in meets), {warp for warp in meets if draw.random() < 0.6}
            expected = LANES * (len(meets) + (draw.random() < 0.03))
            if draw.random() < 0.05:
                number = 0
            for warp in range(WARPS):
                if draw.random() < often:
                    self.access(warp, draw)
                if warp in meets and draw.random() < 0.98:
                    self.trace.arrive(number, expected, warp in waits, self.threads(warp, range(LANES)))
                    self.warps[warp].append(("arrive", number, expected, warp in waits))

    def threads(self, warp: int, lanes: Any) -> Any:
        found = np.zeros(WARPS * LANES, bool)
        found[[warp * LANES + lane for lane in lanes]] = True
        return found

    def access(self, warp: int, draw: random.Random) -> None:
        lanes = draw.choice(([0], [0, 1], [1], [5, 6]))
        start, stride, writes = draw.choice((0, 1, 8, 20)), draw.choice((0, 2, 2)), draw.random() < 0.5
        starts = start + stride * (np.arange(WARPS * LANES) % LANES % 8)
        self.trace.access(self.place, "s", starts, 2, self.threads(warp, lanes), writes, True)
        self.warps[warp].append(("access", self.place, [(lane, int(starts[lane])) for lane in lanes], writes))
        self.place += 1


class Run:
    """One order of the warps: whether two accesses are in no order, which reads find nothing, whether all end."""

    def __init__(self, warps: list[list[tuple[Any, ...]]], draw: random.Random) -> None:
        self.clocks = np.zeros((WARPS * LANES, WARPS * LANES), np.int64)
        np.fill_diagonal(self.clocks, 1)
        self.accesses: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
        self.races, self.early = False, set[int]()
        self.open: dict[int, tuple[list[int], list[Any]]] = {}
        at, blocked = [0] * WARPS, set[int]()
        while True:
            ready = [warp for warp in range(WARPS) if warp not in blocked and at[warp] < len(warps[warp])]
            if not ready:
                break
            warp = draw.choice(ready)
            step = warps[warp][at[warp]]
            at[warp] += 1
            if step[0] == "access":
                self.access(warp, *step[1:])
                continue
            _, number, expected, waits = step
            waiting, released = self.open.setdefault(number, ([], []))
            mine = self.clocks[warp * LANES : warp * LANES + LANES]
            released.append(mine.max(axis=0))
            waiting += [warp] * waits
            blocked |= {warp} if waits else set()
            for lane in range(warp * LANES, warp * LANES + LANES):
                self.clocks[lane, lane] += 1
            if LANES * len(released) >= expected:
                for each in waiting:
                    part = self.clocks[each * LANES : each * LANES + LANES]
                    np.maximum(part, np.max(released, axis=0), out=part)
                blocked -= set(waiting)
                del self.open[number]
        self.ends = not blocked

    def access(self, warp: int, place: int, lanes: list[tuple[int, int]], writes: bool) -> None:
        noted = []
        for lane, start in lanes:
            thread = warp * LANES + lane
            for byte in (start, start + 1):
                before = self.accesses[byte]
                if not writes and not any(each[2] for each in before):
                    self.early.add(place)
                self.races |= any(
                    other != thread and (wrote or writes) and epoch > self.clocks[thread, other]
                    for other, epoch, wrote in before
                )
                noted.append((byte, (thread, int(self.clocks[thread, thread]), writes)))
        for byte, each in noted:
            self.races |= writes and any(b == byte and other[0] != each[0] for b, other in noted)
            self.accesses[byte].append(each)


def test_traces_are_judged_as_in_any_order_of_the_warps() -> None:
    draw = random.Random(random.randrange(1 << 30))
    ordered = racing = 0
    for _ in range(500):
        made = Made(draw)
        told = made.trace.ordered()
        if told is None:
            continue
        runs = [Run(made.warps, draw) for _ in range(4)]
        assert all(run.ends for run in runs)
        assert all(run.races == bool(told.racing) for run in runs)
        if not told.racing:
            assert all(run.early == told.early for run in runs)
        ordered += not told.racing
        racing += bool(told.racing)
    assert ordered > 20
    assert racing > 20


def steps(*given: tuple[int, int, int, bool]) -> Ordered | None:
    """Warps that arrive one after the other: the warp, the barrier, the threads that it is for, whether it waits."""
    trace = Trace(WARPS * LANES, lambda _: SIZE)
    for warp, number, expected, waits in given:
        trace.arrive(number, expected, waits, np.arange(WARPS * LANES) // LANES == warp)
    return trace.ordered()


@pytest.mark.parametrize(("given", "known"), [
    ([(0, 1, 64, False), (1, 1, 64, True)], True),
    ([(0, 1, 64, False), (1, 1, 64, True), (2, 1, 64, True)], False),  # which two are first
    ([(0, 1, 64, False), (0, 1, 64, False), (1, 1, 64, True), (1, 1, 64, True)], False),  # twice before the other
    ([(0, 1, 64, False), (0, 2, 64, True), (0, 1, 64, False), (1, 1, 64, True), (1, 2, 64, False), (1, 1, 64, True)],
     True),
    ([(0, 1, 64, False), (0, 2, 64, True), (0, 1, 64, False), (1, 2, 64, False), (1, 1, 64, True), (1, 1, 64, True)],
     False),  # the other may not have been there
    ([(0, 1, 64, True), (1, 1, 96, True)], False),
    ([(0, 1, 64, True), (0, 2, 64, False), (1, 2, 64, True), (1, 1, 64, False)], False),  # a deadlock
    ([(0, 1, 64, False), (1, 1, 64, True), (1, 1, 64, True)], False),  # one that nobody ends
    ([(0, 1, 64, False), (1, 1, 64, True), (0, 1, 64, False)], False),
    ([(0, 1, 64, True), (1, 1, 64, True), (0, 1, 64, False)], True),  # one that nobody waits for
])
def test_phases(given: list[tuple[int, int, int, bool]], known: bool) -> None:
    assert (steps(*given) is not None) is known


def test_lanes_that_come_without_their_warp_or_to_different_barriers() -> None:
    threads = np.arange(WARPS * LANES) < 40
    numbers = np.arange(WARPS * LANES) % 2
    every = np.ones(WARPS * LANES, bool)
    for given in ((1, 64, True, threads), (numbers, 96, True, every), (1, 96 + numbers, True, every)):
        trace = Trace(WARPS * LANES, lambda _: SIZE)
        trace.arrive(*given)
        assert trace.ordered() is None
    trace.lose_array("s")
    assert trace.ordered() is None


@pytest.mark.parametrize("lanes", [32, 31])
def test_barriers_of_lanes(lanes: int) -> None:
    trace = Trace(WARPS * LANES, lambda _: SIZE)
    for lane in (0, 1):
        trace.access(lane, "s", 0, 4, np.arange(WARPS * LANES) == lane, True, True)
        trace.meet(np.arange(WARPS * LANES) < lanes)
    assert trace.ordered() == Ordered({"s"} if lanes < 32 else set(), set())


def test_a_thread_by_itself() -> None:
    for order in ((True, False, True), (True, True, False), (False, True, True)):
        trace = Trace(WARPS * LANES, lambda _: SIZE)
        for writes in order:
            trace.access(int(writes), "s", 0, 4, np.arange(WARPS * LANES) == 33, writes, True)
        assert trace.ordered() == Ordered(set(), set() if order[0] else {0})


@pytest.mark.parametrize("accesses", [
    [((0,), False), ((1,), False), ((1,), True)], [((0, 1), False), ((1,), True)], [((0,), True), None, ((0, 1), True)],
    [((0,), True), None, ((0,), True), ((1,), False)], [((0,), False), None, ((1,), False), ((0,), True)],
])
def test_lanes_that_are_not_ordered(accesses: list[tuple[tuple[int, ...], bool] | None]) -> None:
    """Accesses of lanes to one place, None for a barrier between; one after the other with one each they are fine."""
    for each in (False, True):
        trace, threads = Trace(WARPS * LANES, lambda _: SIZE), np.arange(WARPS * LANES)
        for access in accesses:
            for lane in access[0] if each and access else ():
                trace.meet(threads < LANES)
                trace.access(0, "s", 0, 4, threads == lane, access[1] if access else False, True)
            if not each and access:
                trace.access(0, "s", 0, 4, np.isin(threads, access[0]), access[1], True)
            elif not each:
                trace.meet(threads < LANES)
        told = trace.ordered()
        assert told is not None
        assert told.racing == (set() if each else {"s"})


def test_arrays_that_are_accessed_anywhere() -> None:
    every = np.ones(WARPS * LANES, bool)
    for start, known in ((0, True), (SIZE - 3, False), (-1, False)):
        trace = Trace(WARPS * LANES, lambda _: SIZE)
        trace.access(0, "s", start, 4, every, False, True)
        assert trace.ordered() == Ordered(set() if known else {"s"}, {0} if known else set())
    trace = Trace(WARPS * LANES, lambda _: SIZE)
    trace.lose_array("t")
    assert trace.ordered() == Ordered({"t"}, set())
    trace.lose_array("")
    assert trace.ordered() is None
