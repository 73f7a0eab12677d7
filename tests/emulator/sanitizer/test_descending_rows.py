"""Lanes that access elements in rising or falling order, from places on that no proof knows: races, and none."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

THREADS = 64
HEAD = """
.shared .b32 s[256]; mov.u32 %r0, %tid.x; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; sub.u32 %r3, 252, %r2; mov.u32 %r9, 0;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2;
"""


def access(step: int, writes: bool, falls: bool, low: int, high: int) -> str:
    """An access of the threads from one number on up to another, to what the number for this step says."""
    place, guard = f"%r{10 + step}", f"%p{step}"
    return (
        f"ld.global.u32 %r{20 + step}, [%rd0+{4 * step}]; shl.b32 %r{20 + step}, %r{20 + step}, 2; "
        f"add.u32 %r{30 + step}, %r{20 + step}, %r1; add.u32 {place}, %r{30 + step}, {'%r3' if falls else '%r2'}; "
        f"sub.u32 %r{40 + step}, %r0, {low}; setp.lt.u32 {guard}, %r{40 + step}, {high - low}; "
        f"add.u32 %r{50 + step}, %r0, {1000 * step}; @{guard} "
        + (f"st.shared.u32 [{place}], %r{50 + step};" if writes else f"ld.shared.u32 %r9, [{place}];")
    )


def program(rng: np.random.Generator) -> tuple[str, np.ndarray, bool]:
    """A program, where its accesses begin, and whether it has a race."""
    text, starts, racy = [HEAD], rng.integers(0, 3, 8) * rng.integers(0, 17), False
    accesses: list[dict[int, set[tuple[int, bool]]]] = [{}]
    for step in range(rng.integers(2, 7)):
        if rng.random() < 0.4:
            text.append("bar.sync 0;")
            accesses.append({})
            continue
        writes, falls, start = rng.random() < 0.5, rng.random() < 0.7, int(starts[step])
        low, high = sorted(rng.integers(0, THREADS + 1, 2)) if rng.random() < 0.5 else (0, THREADS)
        text.append(access(step, writes, falls, low, high))
        for thread in range(low, high):
            at = accesses[-1].setdefault(start + (THREADS - 1 - thread if falls else thread), set())
            racy |= any(other != thread and (writes or wrote) for other, wrote in at)
            at.add((thread, writes))
    return " ".join(text), starts, racy


def races(body: str, starts: np.ndarray) -> bool:
    """Whether a race is found."""
    loaded = emulator.load(kernel("u64 x, u64 y", f"{body} st.global.u32 [%rd3], %r9; ret;"))
    x, y = np.zeros(1024, np.uint32), np.zeros(1024, np.uint32)
    x[: len(starts)] = starts
    with collect() as findings:
        loaded.run("k", LaunchConfig(1, THREADS, sanitize=frozenset(("race",))), [argument("x", x), argument("y", y)])
    return bool(findings)


@pytest.mark.parametrize("seed", range(40))
def test_any_rows(seed: int) -> None:
    body, starts, racy = program(np.random.default_rng(seed))
    assert races(body, starts) == racy


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("low", [0, 8, 24, 40])
def test_lanes_of_one_group(first: bool, second: bool, low: int) -> None:
    """Eight threads store to eight places, and load from them: each its own, or in the other order."""
    rises, falls = 64, 2 * low + 8
    starts = np.array([falls if order else rises for order in (first, second)])
    for writes in (False, True):
        body = f"{HEAD} {access(0, True, first, low, low + 8)} {access(1, writes, second, low, low + 8)}"
        assert races(body, starts) == (first != second)
