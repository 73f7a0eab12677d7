"""Lanes of a warp that execute a ``.sync`` instruction at different places: they wait for each other, as PTX says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD, kernel, launch, pointer

from ptxdsl import load, use
from ptxdsl.errors import BarrierError, DeadlockError, MemoryFault, TrapError

FULL = "0xFFFFFFFF"


def run(body: str, threads: int = 32, dtype: Any = np.uint32, **more: Any) -> np.ndarray:
    """What each thread leaves in %r3 after ``body``, in which %r2 is its number; the same in every code there is."""
    text = kernel("u64 x", THREAD + body + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r3;\nret;")
    found = []
    for way in ({}, {"conservative": True}, {"second_tier": True}):
        x = np.full(threads, 0xDEAD, np.uint32)
        launch(text, 1, threads, x=x, **way, **more)
        found.append(x)
    assert (found[0] == found[1]).all() and (found[0] == found[2]).all()
    return found[0].view(dtype)


def failing(kind: type[Exception], body: str, threads: int = 32) -> Any:
    text = kernel("u64 x", THREAD + body + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r3;\nret;")
    with pytest.raises(kind) as caught:
        launch(text, 1, threads, x=np.zeros(threads, np.uint32))
    return caught.value


def arms(first: str, second: str, cut: int = 16, behind: str = "") -> str:
    """Lanes below ``cut`` execute ``first``, the others ``second``."""
    return f"""
        mul.lo.u32 %r4, %r2, %r2; setp.lt.u32 %p0, %r2, {cut}; mov.u32 %r3, 0; mov.u32 %r9, 7;
        @!%p0 bra ELSE; {first} bra MET;
        ELSE: {second}
        MET: {behind}
    """


LANES = np.arange(32)


@pytest.mark.parametrize("cut", [1, 9, 16, 31])
@pytest.mark.parametrize(
    ("mode", "b", "source"),
    [
        ("bfly", 16, LANES ^ 16), ("bfly", 1, LANES ^ 1), ("idx", 5, LANES * 0 + 5),
        ("up", 3, np.where(LANES >= 3, LANES - 3, LANES)), ("down", 20, np.where(LANES < 12, LANES + 20, LANES)),
    ],
)
def test_shuffle_in_both_arms(mode: str, b: int, source: np.ndarray, cut: int) -> None:
    c = 0 if mode == "up" else 31
    shuffle = f"shfl.sync.{mode}.b32 %r3|%p1, {{}}, {b}, {c}, {FULL};"
    mine = "add.u32 %r5, %r4, 100; " + shuffle.format("%r5")
    found = run(arms(shuffle.format("%r4"), mine, cut))
    values = np.where(LANES < cut, LANES**2, LANES**2 + 100)
    assert (found == values[source]).all()


def test_results_go_where_each_instruction_wants_them() -> None:
    found = run(arms(
        f"shfl.sync.bfly.b32 %r6, %r4, 31, 31, {FULL}; add.u32 %r3, %r6, 1000;",
        f"""mov.u32 %r7, {FULL}; shfl.sync.bfly.b32 %r8|%p2, %r2, 31, 31, %r7;
        selp.u32 %r9, 1, 2, %p2; add.u32 %r3, %r8, %r9;""",
    ))
    assert (found == np.where(LANES < 16, 31 - LANES + 1000, (31 - LANES) ** 2 + 1)).all()


VOTES = {"all": lambda p: p.all(), "any": lambda p: p.any(), "uni": lambda p: p.all() or not p.any()}


@pytest.mark.parametrize("mode", VOTES)
@pytest.mark.parametrize("bound", [0, 3, 32])
def test_vote_in_both_arms(mode: str, bound: int) -> None:
    vote = f"setp.lt.u32 %p1, %r2, {bound}; vote.sync.{mode}.pred %p2, {{}}%p1, {FULL}; selp.u32 %r3, 1, 0, %p2;"
    found = run(arms(vote.format(""), vote.format("!")))
    holds = (bound > LANES) ^ (LANES >= 16)
    assert (found == VOTES[mode](holds)).all()


def test_ballot_match_and_redux_in_both_arms() -> None:
    ballot = f"setp.ne.u32 %p1, %r9, %r2; vote.sync.ballot.b32 %r3, %p1, {FULL};"
    assert (run(arms(ballot, "add.u32 %r9, %r9, 13; " + ballot)) == 0xFFFFFFFF & ~(1 << 7) & ~(1 << 20)).all()
    match = f"and.b32 %r5, %r2, 3; match.any.sync.b32 %r3, %r5, {FULL};"
    assert (run(arms(match, match)) == [sum(1 << n for n in range(k % 4, 32, 4)) for k in range(32)]).all()
    match = f"match.all.sync.b32 %r6|%p1, %r9, {FULL}; selp.u32 %r3, %r6, 5, %p1;"
    assert (run(arms(match, match)) == 0xFFFFFFFF).all()
    assert (run(arms(match, "mov.u32 %r9, 8; " + match)) == 5).all()
    for op, kind, expected in (
        ("add", "u32", (LANES**2).sum()), ("min", "s32", -3), ("max", "u32", 0xFFFFFFFD), ("max", "s32", 31 * 31),
        ("and", "b32", 0), ("or", "b32", 0xFFFFFFFD | 2), ("xor", "b32", None),
    ):
        redux = f"redux.sync.{op}.{kind} %r3, %r4, {FULL};"
        second = redux if op == "add" else "setp.eq.u32 %p1, %r2, 20; @%p1 mov.u32 %r4, -3; " + redux
        values = LANES**2 if op == "add" else np.where(LANES == 20, -3, LANES**2)
        wanted = np.bitwise_xor.reduce(values) if expected is None else expected
        if op == "or":
            wanted = np.bitwise_or.reduce(values)
        assert (run(arms(redux, second)) == wanted & 0xFFFFFFFF).all(), op


def test_one_is_elected_of_all() -> None:
    elect = "elect.sync %r5|%p1, 0xFFFFFFF0; selp.u32 %r3, 100, %r5, %p1;"
    found = run(arms("setp.lt.u32 %p3, %r2, 4; @%p3 bra MET; " + elect, elect))
    assert (found[4:] == np.where(LANES[4:] == 4, 100, 4)).all()


def test_masks_that_differ_converge_separately() -> None:
    """Lanes 0-7 and 24-31 share a mask, across the arms; the others have their own."""
    masks = """
        setp.lt.u32 %p4, %r2, 8; setp.ge.u32 %p5, %r2, 24; or.pred %p6, %p4, %p5;
        selp.u32 %r7, 0xFF0000FF, 0x00FFFF00, %p6;
    """
    shuffle = "shfl.sync.bfly.b32 %r3, %r4, {}, 31, %r7;"
    found = run(masks + arms(shuffle.format("31"), shuffle.format("31")))
    assert (found == (31 - LANES) ** 2).all()


def test_in_a_loop_of_different_lengths() -> None:
    """Each round all lanes that are left converge; those that leave the loop end."""
    found = run("""
        and.b32 %r5, %r2, 7; add.u32 %r5, %r5, 1; mov.u32 %r3, 0; and.b32 %r6, %r2, 1; setp.eq.u32 %p0, %r6, 0;
    LOOP:
        activemask.b32 %r8; setp.eq.u32 %p1, %r5, 0;
        vote.sync.ballot.b32 %r7, %p1, 0xFFFFFFFF; @%p1 bra OUT; sub.u32 %r5, %r5, 1;
        @!%p0 bra ODD; shfl.sync.idx.b32 %r9, %r5, 7, 31, 0xFFFFFFFF; bra BACK;
        ODD: shfl.sync.idx.b32 %r9, %r5, 7, 31, 0xFFFFFFFF;
        BACK: add.u32 %r3, %r3, %r9; setp.gt.u32 %p2, %r5, 100; bra LOOP;
        OUT: """ + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r3; ret;\n")
    wanted = [sum(range(7, 7 - (k % 8 + 1), -1)) for k in range(32)]
    assert (found == wanted).all()


def test_ended_lanes_are_waited_for_no_longer() -> None:
    """The arm that waits comes first in the text; the other one ends without ever executing the instruction."""
    found = run("""
        mov.u32 %r3, 0; setp.eq.u32 %p0, %r2, 0; @%p0 bra EXIT;
        setp.gt.u32 %p1, %r2, 0; vote.sync.all.pred %p2, %p1, 0xFFFFFFFF; selp.u32 %r3, 1, 2, %p2;
        EXIT:
    """)
    assert found[0] == 0 and (found[1:] == 1).all()


def test_a_number_of_a_lane_that_has_ended_is_a_fault() -> None:
    error = failing(BarrierError, """
        mov.u32 %r3, 0; setp.lt.u32 %p0, %r2, 8; @!%p0 bra SKIP;
        shfl.sync.bfly.b32 %r3, %r2, 16, 31, 0xFFFFFFFF;
        SKIP:
    """)
    assert error.message.startswith("`shfl.sync.bfly.b32` in lane 0 of warp 0 takes from lane 16, which has ended; ")


def test_other_qualifiers_do_not_converge() -> None:
    up = f"shfl.sync.up.b32 %r3, %r4, 1, 0, {FULL};"
    error = failing(BarrierError, arms(up, f"shfl.sync.down.b32 %r3, %r4, 1, 31, {FULL};"))
    assert error.message == "`shfl` names lanes 16-31 in its member mask 0xffffffff, but they are elsewhere"
    assert "shfl.sync.up" in error.instruction


@pytest.mark.parametrize("threads", [32, 64, 96, 80])
@pytest.mark.parametrize("instruction", ["barrier.sync 0;", "barrier.cta.sync 0;", "barrier.sync 3;"])
def test_barriers_in_both_arms(instruction: str, threads: int) -> None:
    """What one thread writes before either barrier, all read behind them."""
    body = """
        .shared .align 4 .b32 cells[128]; mov.u32 %r10, cells; mad.lo.u32 %r11, %r2, 4, %r10;
        and.b32 %r5, %r2, 1; setp.eq.u32 %p0, %r5, 0; add.u32 %r6, %r2, 1000; @!%p0 bra ODD;
        st.shared.u32 [%r11], %r6; BARRIER bra READ;
        ODD: add.u32 %r6, %r6, 1; st.shared.u32 [%r11], %r6; BARRIER
        READ: mov.u32 %r7, %ntid.x; sub.u32 %r7, %r7, 1; sub.u32 %r7, %r7, %r2; mad.lo.u32 %r7, %r7, 4, %r10;
        ld.shared.u32 %r3, [%r7];
    """.replace("BARRIER", instruction)
    wanted = np.arange(threads) + 1000 + (np.arange(threads) & 1)
    assert (run(body, threads) == wanted[::-1]).all()


def test_a_barrier_of_some_warps_in_both_arms() -> None:
    """Warps 0 and 2 synchronise at barrier 5, of two warps, their lanes in both arms; warp 1 does not take part."""
    body = """
        .shared .align 4 .b32 cell; mov.u32 %r10, cell; shr.u32 %r4, %r2, 5; and.b32 %r5, %r2, 31; mov.u32 %r3, 0;
        setp.eq.u32 %p0, %r4, 1; @%p0 bra DONE;
        setp.eq.u32 %p1, %r2, 70; @%p1 st.shared.u32 [%r10], 77;
        setp.lt.u32 %p2, %r5, 9; @%p2 bra FEW; barrier.sync 5, 64; bra READ; FEW: barrier.sync 5, 64;
        READ: ld.shared.u32 %r3, [%r10];
        DONE:
    """
    assert (run(body, 96) == np.repeat([77, 0, 77], 32)).all()


@pytest.mark.parametrize("op", ["popc.u32 %r3", "or.pred %p3", "and.pred %p3"])
def test_a_vote_at_a_barrier_in_both_arms(op: str) -> None:
    red = f"barrier.red.{op}, 2, {{}}; {'' if 'popc' in op else 'selp.u32 %r3, 1, 0, %p3;'}"
    body = f"""
        setp.lt.u32 %p1, %r2, 23; setp.lt.u32 %p2, %r2, 40; and.b32 %r5, %r2, 1; setp.eq.u32 %p0, %r5, 0;
        @%p0 bra EVEN; {red.format("%p1")} bra MET; EVEN: {red.format("!%p2")} MET:
    """
    threads = np.arange(64)
    holds = np.where(threads & 1, threads < 23, threads >= 40)
    expected = {"popc.u32 %r3": holds.sum(), "or.pred %p3": holds.any(), "and.pred %p3": holds.all()}[op]
    assert (run(body, 64) == expected).all()


def test_lanes_end_while_others_wait_at_a_barrier() -> None:
    body = """
        setp.lt.u32 %p0, %r2, 5; mov.u32 %r3, 4; @!%p0 bra OTHERS; barrier.sync 0; mov.u32 %r3, 6; bra DONE;
        OTHERS: add.u32 %r3, %r3, 1;
        DONE:
    """
    assert (run(body) == np.where(LANES < 5, 6, 5)).all()


def test_an_aligned_barrier_must_be_reached_together() -> None:
    for first, second in (("bar.sync 0;", "bar.sync 0;"), ("barrier.sync.aligned 0;", "barrier.sync 0;")):
        error = failing(BarrierError, arms(first, second))
        opcode = first.split()[0]
        assert error.message == f"`{opcode}` is reached by lanes 0-15 of warp 0 while lanes 16-31 are elsewhere"


ROTATED = """
    mov.u32 %r3, 0; mov.u32 %r5, 0; setp.ne.u32 %p0, %r2, 0;
    HEAD: bar.sync 0;
    add.u32 %r3, %r3, 1; setp.ge.u32 %p1, %r3, 5;
    @%p1 bra END;
    @%p0 bra HEAD;
    add.u32 %r5, %r5, 1; {}
    bra HEAD;
    END: mad.lo.u32 %r3, %r5, 100, %r3;
"""


@pytest.mark.parametrize("threads", [32, 40, 128])
def test_one_lane_has_work_to_do_before_an_aligned_barrier(threads: int) -> None:
    wanted = np.r_[405, np.full(threads - 1, 5)]
    assert (run(ROTATED.format(""), threads) == wanted).all()
    text = kernel("u64 x", THREAD + ROTATED.format("") + pointer("%rd0", "x") + "st.global.u32 [%rd0], %r3;\nret;")
    x = np.zeros(threads, np.uint32)
    with use("emulator"):
        load(text)["k"].configure(1, threads, sanitize="all")(x)
    assert (x == wanted).all()


@pytest.mark.parametrize(("other", "here", "away"), [("bar.sync 0;", "0", "1-31"), ("ret;", "1-31", "0")])
def test_one_lane_never_comes_to_an_aligned_barrier(other: str, here: str, away: str) -> None:
    error = failing(BarrierError, ROTATED.format(other))
    assert error.message == f"`bar.sync` is reached by lanes {here} of warp 0 while lanes {away} are elsewhere"


def test_why_others_diverge_comes_before_the_barrier() -> None:
    """One lane goes where it traps; all others come to a barrier first."""
    body = "setp.eq.u32 %p0, %r2, 3; @%p0 bra FAIL; bar.sync 0; bra GOOD; FAIL: trap; GOOD: mov.u32 %r3, 1;"
    error = failing(TrapError, body)
    assert error.thread == (3, 0, 0)


def test_a_fault_that_follows_from_a_barrier_in_a_branch() -> None:
    error = failing(BarrierError, """
        mov.u32 %r20, 0; setp.lt.u32 %p0, %r2, 3; @!%p0 bra ON; bar.sync 0; ON: st.shared.u32 [%r20], 1;
    """)
    assert error.message == "`bar.sync` is reached by lanes 0-2 of warp 0 while lanes 3-31 are elsewhere"


def test_a_fault_before_convergence() -> None:
    shuffle = f"shfl.sync.bfly.b32 %r3, %r4, 1, 31, {FULL};"
    failing(MemoryFault, arms(shuffle, "mov.u32 %r20, 0; st.shared.u32 [%r20], 1; " + shuffle))


def test_waiting_for_a_warp_that_never_comes() -> None:
    error = failing(DeadlockError, arms("barrier.sync 1, 64;", "barrier.sync 1, 64;"))
    assert "1 of 2 warps have arrived" in error.message


def test_numbers_of_barriers_are_checked() -> None:
    error = failing(BarrierError, "mov.u32 %r7, 17; " + arms("barrier.sync %r7;", "barrier.sync %r7;"))
    assert error.message == "`barrier.sync` names a barrier beyond 15"
    error = failing(BarrierError, "mov.u32 %r7, 33; " + arms("barrier.sync 1, %r7;", "barrier.sync 1, %r7;"))
    assert error.message == "`barrier.sync` waits for a number of threads that is no positive multiple of 32"
