"""Shuffles from lanes that do not take part: an error where the number is used, in every tier; else the program runs.

Each program is a body in which %r2 is the number of the thread and %r3 what it stores; FULL is the mask of all lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD, argument, kernel, launch, pointer

from ptxdsl import emulator
from ptxdsl.emulator.instructions.warp import source_lane
from ptxdsl.errors import BarrierError
from ptxdsl.launch import LaunchConfig

STORE = "st.global.u32 [%rd0], %r3; ret;"
FIRST = "setp.eq.u32 %p9, %r2, 0; @%p9 st.global.u32 [%rd0], %r3; ret;"
UNTOUCHED = 0xDEAD
SANITIZE = frozenset(("race", "init", "memory", "barrier"))
TIERS = ["first", "second", "conservative", "sanitized", "seeded"]
N = 64


def run(body: str, tier: str, threads: Any = 32, x: np.ndarray | None = None, blocks: int = 2) -> np.ndarray:
    """What the threads of the last block leave."""
    body = body if body.endswith("ret;") else body + STORE
    text = kernel("u64 x", THREAD + pointer("%rd0", "x", "%r2") + body.replace("FULL", "0xFFFFFFFF"))
    x = np.full(N, UNTOUCHED, np.uint32) if x is None else x
    if tier in ("sanitized", "seeded"):
        config = LaunchConfig(blocks, threads, sanitize=SANITIZE, seed=5 if tier == "seeded" else None)
        emulator.load(text).run("k", config, [argument("x", x)])
    else:
        launch(text, blocks, threads, x=x, second_tier=tier == "second", conservative=tier == "conservative")
    return x


def reduction(steps: tuple[int, ...], mode: str = "down", mask: str = "FULL") -> str:
    """%r3 is added up over lanes."""
    step = "shfl.sync.{}.b32 %r4, %r3, {}, 31, {}; add.u32 %r3, %r3, %r4;"
    return "".join(step.format(mode, distance, mask) for distance in steps)


def below(n: int, guard: str = "@!") -> str:
    return f"setp.lt.u32 %p0, %r2, {n}; {guard}%p0 "


MINE = "mov.u32 %r3, %r2; "
NEXT = MINE + "shfl.sync.down.b32 %r4, %r3, 1, 31, FULL; add.u32 %r5, %r2, 1; "
GROUPS = "setp.lt.u32 %p1, %r2, 16; selp.u32 %r7, 0x0000FFFF, 0xFFFF0000, %p1; "

NEVER, ENDED, ELSEWHERE, UNNAMED = "was never there", "has ended", "is elsewhere", "member mask does not name"
WRONG: dict[str, tuple[str, int, int, str]] = {  # body, threads, the lane that is missing, why
    "butterfly of a partial warp": (MINE + "shfl.sync.bfly.b32 %r3, %r3, 16, 31, FULL;", 48, 16, NEVER),
    "one thread": (MINE + "shfl.sync.bfly.b32 %r3, %r3, 1, 31, FULL;", 1, 1, NEVER),
    "reduction over 33": (MINE + reduction((16, 8, 4, 2, 1), "bfly"), 33, 16, NEVER),
    "reduction, first lane stores": (MINE + reduction((16, 8, 4, 2, 1)) + FIRST, 20, 20, NEVER),
    "index of a lane that is not there": (MINE + "shfl.sync.idx.b32 %r3, %r3, 31, 31, FULL;", 40, 31, NEVER),
    "index in a register": (MINE + "mov.u32 %r6, 17; shfl.sync.idx.b32 %r3, %r3, %r6, 31, FULL;", 16, 17, NEVER),
    "segment that is cut": (MINE + "shfl.sync.down.b32 %r3, %r3, 2, 0x181F, FULL;", 13, 13, NEVER),
    "two of three ended": (below(20) + "ret; " + MINE + reduction((16, 8, 4, 2, 1), "bfly"), 32, 20, ENDED),
    "early return, down": (below(20) + "ret; shfl.sync.down.b32 %r3, %r2, 1, 31, FULL;", 32, 20, ENDED),
    "ended, mask without them": (below(20) + "ret; shfl.sync.down.b32 %r3, %r2, 1, 31, 0xFFFFF;", 32, 20, ENDED),
    "ended, index": (below(8) + "ret; shfl.sync.idx.b32 %r3, %r2, 8, 31, FULL;", 32, 8, ENDED),
    "guard": (MINE + below(20, "@") + "shfl.sync.down.b32 %r3, %r2, 1, 31, 0xFFFFF;", 32, 20, ELSEWHERE),
    "branch": (MINE + below(8) + "bra ON; shfl.sync.bfly.b32 %r3, %r2, 8, 31, 0xFF; ON:", 32, 8, ELSEWHERE),
    "branch that others leave": (
        MINE + below(8) + "bra ON; shfl.sync.bfly.b32 %r3, %r2, 8, 31, FULL; ON:", 32, 8, ENDED,
    ),
    "groups": (MINE + GROUPS + "shfl.sync.bfly.b32 %r3, %r3, 16, 31, %r7;", 32, 16, UNNAMED),
    "groups, index": (MINE + GROUPS + "shfl.sync.idx.b32 %r3, %r3, 0, 31, %r7;", 32, 0, UNNAMED),
    "groups in two arms": (
        MINE + GROUPS + "@%p1 bra LOW; shfl.sync.bfly.b32 %r3, %r3, 16, 31, 0xFFFF0000; bra ON;"
        "LOW: shfl.sync.bfly.b32 %r3, %r3, 16, 31, 0x0000FFFF; ON:", 32, 16, ELSEWHERE,
    ),
    "both arms of a partial warp": (
        MINE + GROUPS + "@%p1 bra LOW; shfl.sync.bfly.b32 %r3, %r3, 8, 31, FULL; bra ON;"
        "LOW: shfl.sync.bfly.b32 %r3, %r3, 8, 31, FULL; ON:", 20, 24, NEVER,
    ),
    "off by one in the guard": (NEXT + "setp.le.u32 %p0, %r5, 20; @%p0 add.u32 %r3, %r3, %r4;", 20, 20, NEVER),
    "off by one in the select": (NEXT + "setp.le.u32 %p0, %r5, 20; selp.u32 %r3, %r4, %r3, %p0;", 20, 20, NEVER),
    "a branch depends on it": (NEXT + "setp.gt.u32 %p0, %r4, 9; @%p0 bra ON; mov.u32 %r3, 5; ON:", 20, 20, NEVER),
    "a guard depends on it": (NEXT + "setp.gt.u32 %p0, %r4, 9; @%p0 mov.u32 %r3, 5;", 20, 20, NEVER),
    "a conjunction depends on it": (
        NEXT + "setp.lt.u32 %p0, %r5, 21; setp.gt.u32 %p1, %r4, 77; and.pred %p2, %p0, %p1; @%p2 bra ON;"
        "mov.u32 %r3, 5; ON:", 20, 20, NEVER,
    ),
    "a disjunction depends on it": (
        NEXT + "setp.ge.u32 %p0, %r5, 21; setp.gt.or.u32 %p2, %r4, 77, %p0; @%p2 bra ON; mov.u32 %r3, 5; ON:",
        20, 20, NEVER,
    ),
    "a vote depends on it": (
        NEXT + "setp.gt.u32 %p0, %r4, 9; vote.sync.ballot.b32 %r3, %p0, FULL;", 20, 20, NEVER,
    ),
    "redux takes it": (NEXT + "redux.sync.add.u32 %r3, %r4, FULL;", 20, 20, NEVER),
    "an address depends on it": (
        NEXT + "and.b32 %r4, %r4, 15; mul.wide.u32 %rd1, %r4, 4; ld.param.u64 %rd2, [x]; add.u64 %rd1, %rd1, %rd2;"
        "ld.global.u32 %r3, [%rd1];", 20, 20, NEVER,
    ),
    "through further shuffles": (
        MINE + "shfl.sync.down.b32 %r4, %r3, 4, 31, FULL; shfl.sync.up.b32 %r3, %r4, 2, 0, FULL;", 20, 22, NEVER,
    ),
    "through memory": (
        ".shared .align 4 .b32 cells[64]; mov.u32 %r10, cells; mad.lo.u32 %r11, %r2, 4, %r10;" + NEXT
        + "st.shared.u32 [%r11], %r4; bar.sync 0; ld.shared.u32 %r3, [%r10];", 20, 20, NEVER,
    ),
    "in a loop": (
        MINE + "mov.u32 %r6, 16; LOOP: shfl.sync.down.b32 %r4, %r3, %r6, 31, FULL; add.u32 %r3, %r3, %r4;"
        "shr.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra LOOP;" + FIRST, 20, 20, NEVER,
    ),
    "in the second warp only": (MINE + reduction((16, 8, 4, 2, 1), "bfly"), 56, 24, NEVER),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str, tier: str) -> None:
    body, threads, lane, why = WRONG[name]
    with pytest.raises(BarrierError) as caught:
        run(body, tier, threads)
    error = caught.value
    assert error.message.startswith("`shfl.sync.") and "shfl.sync." in error.instruction
    assert f"takes from lane {lane}, which " in error.message and why in error.message, error.message


LANES = np.arange(32)


def first(value: int) -> Callable[[int], Any]:
    return lambda n: np.where(np.arange(n) == 0, value, UNTOUCHED)


def neighbour(n: int) -> Any:
    t = np.arange(n)
    return np.where(t + 1 < n, 2 * t + 1, t)


RIGHT: dict[str, tuple[str, int, Callable[[int], Any]]] = {  # body, threads, what is stored
    "half a warp, first lane stores": (MINE + reduction((8, 4, 2, 1)) + FIRST, 16, first(120)),
    "half a warp, half a mask": (MINE + reduction((8, 4, 2, 1), mask="0xFFFF") + FIRST, 16, first(120)),
    "half a warp, butterfly": (MINE + reduction((8, 4, 2, 1), "bfly"), 16, lambda n: np.full(n, 120)),
    "four lanes of seven": (MINE + reduction((2, 1)) + FIRST, 7, first(6)),
    "up": (MINE + "shfl.sync.up.b32 %r3, %r3, 1, 0, FULL;", 20, lambda n: np.maximum(np.arange(n) - 1, 0)),
    "segments": (MINE + "shfl.sync.down.b32 %r3, %r3, 1, 0x1C1F, FULL;", 20,
                 lambda n: np.arange(n) + (np.arange(n) % 4 < 3)),
    "own value": (MINE + "shfl.sync.idx.b32 %r3, %r3, %r2, 31, FULL;", 20, np.arange),
    "first lane": (MINE + "shfl.sync.idx.b32 %r3, %r3, 0, 31, FULL;", 3, lambda n: np.full(n, 0)),
    "guard": (NEXT + "setp.lt.u32 %p0, %r5, 20; @%p0 add.u32 %r3, %r3, %r4;", 20, neighbour),
    "select": (NEXT + "setp.lt.u32 %p0, %r5, 20; selp.u32 %r4, %r4, 0, %p0; add.u32 %r3, %r3, %r4;", 20, neighbour),
    "select, negated": (
        NEXT + "setp.ge.u32 %p0, %r5, 20; selp.u32 %r4, 0, %r4, %p0; add.u32 %r3, %r3, %r4;", 20, neighbour,
    ),
    "branch": (NEXT + "setp.ge.u32 %p0, %r5, 20; @%p0 bra ON; add.u32 %r3, %r3, %r4; ON:", 20, neighbour),
    "select after arithmetic": (
        NEXT + "mul.lo.u32 %r4, %r4, 3; xor.b32 %r4, %r4, 0; setp.lt.u32 %p0, %r5, 20; selp.u32 %r3, %r4, 7, %p0;", 20,
        lambda n: np.where(np.arange(n) + 1 < n, 3 * (np.arange(n) + 1), 7),
    ),
    "a predicate decides": (
        NEXT + "setp.lt.u32 %p0, %r5, 20; setp.ne.u32 %p1, %r4, 77; and.pred %p2, %p0, %p1;"
        "@!%p2 bra ON; add.u32 %r3, %r3, 1; ON:", 20, lambda n: np.arange(n) + (np.arange(n) + 1 < n),
    ),
    "another decides": (
        NEXT + "setp.ge.u32 %p0, %r5, 20; setp.eq.or.u32 %p2, %r4, 77, %p0; @%p2 bra ON; add.u32 %r3, %r3, 1; ON:", 20,
        lambda n: np.arange(n) + (np.arange(n) + 1 < n),
    ),
    "never read": (MINE + "shfl.sync.down.b32 %r4, %r3, 5, 31, FULL;", 20, np.arange),
    "written again": (NEXT + "mov.u32 %r4, 9; mov.u32 %r3, %r4;", 20, lambda n: np.full(n, 9)),
    "after an early return": (
        below(20) + "ret; " + NEXT + "setp.lt.u32 %p0, %r5, 20; @%p0 add.u32 %r3, %r3, %r4;", 32,
        lambda n: np.concatenate([neighbour(20), np.full(12, UNTOUCHED)]),
    ),
    "others are about to end": (
        MINE + below(16) + "bra DONE;" + reduction((8, 4, 2, 1)) + "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u32 "
        "[%rd0], %r3; DONE: ret;", 32, first(120),
    ),
    "clamped": (
        MINE + "".join(f"shfl.sync.down.b32 %r4|%p1, %r3, {d}, 19, FULL; @%p1 add.u32 %r3, %r3, %r4;"
                       for d in (16, 8, 4, 2, 1)) + FIRST, 20, first(190),
    ),
    "groups": (MINE + GROUPS + "shfl.sync.bfly.b32 %r3, %r3, 8, 31, %r7;", 32, lambda n: np.arange(n) ^ 8),
    "votes of a partial warp": ("vote.sync.ballot.b32 %r3, 1, FULL;", 20, lambda n: np.full(n, (1 << 20) - 1)),
    "votes after a return": (
        below(20) + "ret; setp.ne.u32 %p1, %r2, 3; vote.sync.all.pred %p2, %p1, FULL; selp.u32 %r3, 1, 2, %p2;", 32,
        lambda n: np.where(np.arange(n) < 20, 2, UNTOUCHED),
    ),
    "redux of a partial warp": (MINE + "redux.sync.add.u32 %r3, %r3, FULL;", 20, lambda n: np.full(n, 190)),
    "match of a partial warp": ("match.any.sync.b32 %r3, 7, FULL;", 5, lambda n: np.full(n, 31)),
    "barrier of a partial warp": (MINE + "bar.warp.sync FULL;", 5, np.arange),
    "one is elected": (
        "elect.sync %r4|%p1, FULL; selp.u32 %r3, 100, %r4, %p1;", 5, lambda n: np.where(np.arange(n) == 0, 100, 0),
    ),
    "the active lanes": (below(20) + "ret; activemask.b32 %r3;", 32,
                         lambda n: np.where(np.arange(n) < 20, (1 << 20) - 1, UNTOUCHED)),
    "in a loop": (
        MINE + "mov.u32 %r6, 16; LOOP: shfl.sync.down.b32 %r4, %r3, %r6, 31, FULL; add.u32 %r7, %r2, %r6;"
        "setp.lt.u32 %p0, %r7, 20; @%p0 add.u32 %r3, %r3, %r4; shr.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0;"
        "@%p1 bra LOOP;" + FIRST, 20, first(190),
    ),
    "both arms, dropped": (
        MINE + GROUPS + "@%p1 bra LOW; shfl.sync.bfly.b32 %r3, %r2, 16, 31, FULL; bra ON;"
        "LOW: shfl.sync.bfly.b32 %r3, %r2, 16, 31, FULL; ON: and.b32 %r6, %r2, 15; setp.ge.u32 %p2, %r6, 4;"
        "@%p2 mov.u32 %r3, 99;", 20,
        lambda n: np.where(np.arange(n) % 16 < 4, np.arange(n) ^ 16, 99),
    ),
}


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str, tier: str) -> None:
    body, threads, wanted = RIGHT[name]
    assert run(body, tier, threads)[:threads].tolist() == wanted(threads).astype(np.uint32).tolist()


def test_what_is_said() -> None:
    with pytest.raises(BarrierError) as caught:
        run(NEXT + "add.u32 %r3, %r3, %r4;\n" + STORE, "first", 48)
    error = caught.value
    line = error.ptx_line
    assert error.message == (
        "`shfl.sync.down.b32` in lane 15 of warp 1 takes from lane 16, which was never there: the block has 48 "
        f"threads; `st.global.u32` uses that number, at PTX line {line + 1}"
    )
    assert error.hint == (
        "launch 64 threads and give the further ones the neutral element, or take only from lanes that exist"
    )
    assert error.thread == (47, 0, 0)


@pytest.mark.parametrize(("name", "hint"), [
    ("early return, down", "let no thread end before it: guard the loads and stores, and not the shuffle"),
    ("guard", "move it out of the branch, so that lane 20 executes it too"),
    ("groups", "name lane 16 in it: `0xFFFFFFFF` for a whole warp"),
])
def test_what_to_do(name: str, hint: str) -> None:
    body, threads, *_ = WRONG[name]
    with pytest.raises(BarrierError) as caught:
        run(body, "first", threads)
    assert caught.value.hint == hint


def test_old_shuffles_without_a_mask() -> None:
    def text(n: int) -> str:
        body = THREAD + pointer("%rd0", "x", "%r2") + f"shfl.down.b32 %r3, %r2, 1, 31; setp.lt.u32 %p0, %r2, {n};"
        made = kernel("u64 x", body + "@%p0 st.global.u32 [%rd0], %r3; ret;")
        return made.replace("sm_90", "sm_60").replace(".version 8.6", ".version 6.0")

    x = np.zeros(20, np.uint32)
    launch(text(19), 1, 20, x=x)
    assert x.tolist() == [*range(1, 20), 0]
    with pytest.raises(BarrierError, match="takes from lane 20, which was never there"):
        launch(text(20), 1, 20, x=x)


def test_a_product_of_matrices_takes_a_whole_warp() -> None:
    body = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%r10,%r10,%r10,%r10}, {%r10,%r10}, "
    body = "mov.u32 %r10, 0; mov.f32 %f4, 0f00000000;" + body + "{%f4,%f4,%f4,%f4}; mov.b32 %r3, %f0;"
    assert (run(body, "first", 64)[:64] == 0).all()
    for tier in TIERS:
        with pytest.raises(BarrierError) as caught:
            run(body, tier, 48)
        assert caught.value.message == (
            "`mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32` takes all 32 lanes of a warp, and warp 1 has lane "
            "16, which was never there: the block has 48 threads"
        )
        with pytest.raises(BarrierError, match="warp 0 has lane 9, which has ended"):
            run("setp.eq.u32 %p0, %r2, 9; @%p0 ret;" + body, tier, 32)


TILE = ".shared .align 16 .b8 tile[512]; mov.u32 %r10, tile; and.b32 %r11, %r2, 7; mad.lo.u32 %r11, %r11, 32, %r10;"
FRAGMENTS = {
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r12}, [%r11];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r11], {%r3};",
    "movmatrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r3;",
    "wmma load": "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r12,%r13,%r14,%r15}, [%r10];",
    "wmma store": "wmma.store.d.sync.aligned.col.m16n16k16.shared.f16 [%r10], {%r3,%r3,%r3,%r3};",
}


@pytest.mark.parametrize("tier", ["first", "second", "conservative"])
@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_are_those_of_a_whole_warp(name: str, tier: str) -> None:
    ops = FRAGMENTS[name]
    mnemonic = ops.partition(" ")[0]
    assert (run(TILE + MINE + ops, tier, 64)[:64] == np.arange(64)).all()
    assert (run(TILE + MINE + below(32, "@") + ops, tier, 32)[:32] == np.arange(32)).all()
    for body, threads, why in (
        (ops, 48, "warp 1 has lane 16, which was never there: the block has 48 threads"),
        (below(9, "@!") + "ret;" + ops, 32, "warp 0 has lane 9, which has ended"),
        (below(9, "@") + ops, 32, "lanes 9-31 of warp 0 are elsewhere"),
        (below(9, "@!") + "bra ON;" + ops + "ON:", 32, "lanes 9-31 of warp 0 are elsewhere"),
    ):
        with pytest.raises(BarrierError) as caught:
            run(TILE + MINE + body, tier, threads)
        assert caught.value.message == f"`{mnemonic}` takes all 32 lanes of a warp, and {why}"
        assert caught.value.instruction is not None and mnemonic in caught.value.instruction


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("known", [True, False])
def test_random_shuffles(mode: str, known: bool, rng: np.random.Generator) -> None:
    """What PTX's pseudocode says of sources, of the lanes below ``threads``: all those that exist are right."""
    for _ in range(6):
        threads, b, c = (int(rng.integers(1, 32)), int(rng.integers(0, 33)), int(rng.choice(CLAMPS)))
        sources = [source_lane(mode, lane, b, c)[0] for lane in range(threads)]
        there = [source < threads for source in sources]
        operands = f"{b}, {c}" if known else "%r5, %r6"
        shuffle = f"mov.u32 %r5, {b}; mov.u32 %r6, {c}; {MINE} shfl.sync.{mode}.b32 %r3, %r3, {operands}, FULL;"
        mask = sum(1 << lane for lane, good in enumerate(there) if good)
        guard = f"mov.u32 %r7, {mask}; shr.u32 %r7, %r7, %r2; and.b32 %r7, %r7, 1; setp.eq.u32 %p0, %r7, 1;"
        found = run(f"{shuffle} {guard} @%p0 {STORE}", "first", threads, blocks=1)[:threads]
        assert found.tolist() == [s if good else UNTOUCHED for s, good in zip(sources, there)]
        if not all(there):
            with pytest.raises(BarrierError):
                run(shuffle, "first", threads)


CLAMPS = [0, 31, 0x181F, 0x1C1F, 0x1E00, 0x1800, 0x100F, 19, 0x1F]
