"""Barriers of a warp that its lanes come to by different ways order memory, as any other; what they leave out does not.

%r11 is a cell of the thread's own in shared memory, %r7 that of another thread, whose lane number differs in 17.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from emulator_harness import THREAD, argument, kernel, pointer

from ptxdsl import emulator
from ptxdsl.errors import PtxWarning, RaceError
from ptxdsl.launch import LaunchConfig

HEAD = THREAD + pointer("%rd0", "x") + """
    .shared .align 4 .b32 cells[64]; mov.u32 %r10, cells; mad.lo.u32 %r11, %r2, 4, %r10; add.u32 %r6, %r2, 100;
    xor.b32 %r7, %r2, 17; mad.lo.u32 %r7, %r7, 4, %r10; setp.lt.u32 %p0, %r2, 16;
    setp.lt.u32 %p1, %r2, 8; and.b32 %r8, %r2, 1; setp.eq.u32 %p2, %r8, 0;
"""
STORE, LOAD = "st.shared.u32 [%r11], %r6;", "ld.shared.u32 %r3, [%r7];"
END = "st.global.u32 [%rd0], %r3; ret;"
FULL = "bar.warp.sync 0xFFFFFFFF;"


def arms(first: str, second: str, guard: str = "%p0") -> str:
    return f"@{guard} bra OTHER; {first} bra MET; OTHER: {second} MET:"


RIGHT = {
    "behind both arms": STORE + arms(FULL, FULL) + LOAD,
    "within the arms": arms(STORE + FULL + LOAD, STORE + FULL + LOAD),
    "odd and even lanes": STORE + arms(FULL, FULL, "%p2") + LOAD,
    "one arm reads, twice": arms(STORE + FULL + FULL + LOAD, STORE + FULL + LOAD + FULL),
    "a register for the mask": "mov.u32 %r9, 0xFFFFFFFF;" + STORE + arms("bar.warp.sync %r9;", FULL) + LOAD,
    "nested": STORE + f"@%p0 bra LOW; {FULL} bra MET; LOW: @%p1 bra LEAST; {FULL} bra MET; LEAST: {FULL} MET:" + LOAD,
    "before the other's store": STORE + arms(FULL, FULL) + LOAD + arms(FULL, FULL).replace("MET", "END").replace(
        "OTHER", "ELSE") + STORE,
}
WRONG = {
    "each arm its own lanes": STORE + arms("bar.warp.sync 0xFFFF0000;", "bar.warp.sync 0x0000FFFF;") + LOAD,
    "a shuffle orders nothing": STORE + arms(
        "shfl.sync.bfly.b32 %r4, %r2, 1, 31, 0xFFFFFFFF;", "shfl.sync.bfly.b32 %r4, %r2, 1, 31, 0xFFFFFFFF;") + LOAD,
    "a vote orders nothing": STORE + arms(
        "vote.sync.any.pred %p4, %p1, 0xFFFFFFFF;", "vote.sync.any.pred %p4, %p1, 0xFFFFFFFF;") + LOAD,
    "a store behind it": arms(FULL + STORE, FULL + STORE) + LOAD,
    "a load before it": STORE + LOAD + arms(FULL, FULL),
}


def run(body: str, seed: int | None) -> list[int]:
    x = np.zeros(32, np.uint32)
    config = LaunchConfig(1, 32, sanitize=frozenset(("race", "init")), seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PtxWarning)
        emulator.load(kernel("u64 x", HEAD + body + END)).run("k", config, [argument("x", x)])
    return x.tolist()


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", RIGHT)
def test_right(name: str, seed: int | None) -> None:
    assert run(RIGHT[name], seed) == [(lane ^ 17) + 100 for lane in range(32)]


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str, seed: int | None) -> None:
    with pytest.raises(RaceError, match=r"race on cells\["):
        run(WRONG[name], seed)
