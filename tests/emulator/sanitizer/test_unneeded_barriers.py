"""Barriers that the sanitizer need not follow: which these are, and that nothing is found otherwise for them."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.instructions.instrumentation import EpochArrive, EpochBarrier
from ptxdsl.emulator.sanitizer import needs
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

RACE = frozenset(("race",))
HEAD = """
.shared .b32 s[64]; mov.u32 %r2, %tid.x; mov.u32 %r1, s; ld.param.u64 %rd0, [x]; mul.wide.u32 %rd1, %r2, 4;
add.u64 %rd2, %rd0, %rd1; ld.global.u32 %r60, [%rd2]; ld.global.u32 %r61, [%rd2+256]; mad.lo.u32 %r3, %r60, 4, %r1;
mad.lo.u32 %r4, %r61, 4, %r1; ld.param.u64 %rd4, [y]; add.u64 %rd3, %rd4, %rd1; ld.param.u32 %r5, [n];
setp.ne.u32 %p0, %r5, 0; setp.lt.u32 %p1, %r2, 32; mov.u32 %r6, 0; mov.u32 %r9, 0;
"""
"""Each thread has a place of its own (%r3), and that of another one (%r4), which no proof knows."""
STORE, OTHER, BARRIER, QUIET, LOAD = (
    "st.shared.u32 [%r3], %r2;", "st.shared.u32 [%r4], %r2;", "bar.sync 0;", "st.global.u32 [%rd3], %r6;",
    "ld.shared.u32 %r7, [%r4]; add.u32 %r6, %r6, %r7;",
)
AGAIN = "add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra L;"
"""Loads are proven where no store is between the same barriers, stores never."""


def found(body: str) -> tuple[list[str], int]:
    """What is found in a program, and how many of its barriers are followed."""
    program = emulator.load(kernel("u64 x, u64 y, u32 n", f"{HEAD}{body}\n ret;"))
    place = np.random.default_rng(1).permutation(64).astype(np.uint32)
    x, y = np.concatenate([place, np.roll(place, 32)]), np.zeros(4096, np.uint32)
    given = [argument(name, value) for name, value in (("x", x), ("y", y), ("n", np.uint32(1)))]
    with collect() as findings:
        program.run("k", LaunchConfig(1, 64, sanitize=RACE), given)
    ops = [placed.op for _, _, code in program.codes("k") for placed in code.micro_ops]
    followed = sum(isinstance(op, EpochBarrier) for op in ops)
    assert sum(isinstance(op, EpochArrive) for op in ops) == followed
    return [finding.message for finding in findings], followed


@pytest.mark.parametrize(("body", "followed"), [
    (f"{STORE}{BARRIER}{OTHER}", 1),
    (f"{STORE}{BARRIER}{QUIET}{BARRIER}{BARRIER}{OTHER}", 1),
    (f"{BARRIER}{STORE}{BARRIER}{OTHER}{BARRIER}{QUIET}{BARRIER}", 1),
    (f"{STORE}{BARRIER}{OTHER}{BARRIER}{STORE}", 2),
    (f"L: {STORE}{BARRIER}{OTHER}{BARRIER}{QUIET} {AGAIN}", 2),
    (f"L: {STORE}{BARRIER}{QUIET}{BARRIER}{OTHER}{BARRIER} {AGAIN}", 2),
    (f"{STORE} @!%p0 bra N; {BARRIER}{QUIET} N: {BARRIER}{OTHER}", 1),
    (f"{STORE}{BARRIER} @!%p0 bra N; {OTHER} N: {BARRIER}{QUIET}", 1),
    (f"{STORE}{BARRIER} @%p1 bra N; {OTHER} N: {BARRIER}{QUIET}", 1),
])
def test_barriers_that_need_not_be_followed(body: str, followed: int) -> None:
    assert found(body) == ([], followed)


@pytest.mark.parametrize("body", [
    f"{STORE}{OTHER}", f"{BARRIER}{STORE}{BARRIER}{OTHER}{STORE}{BARRIER}",
    f"{STORE}{BARRIER}{OTHER} @!%p0 bra N; {BARRIER}{QUIET}{BARRIER} @%p0 bra M; N: {BARRIER} M: {STORE}{OTHER}",
    f"L: {STORE}{BARRIER}{QUIET}{BARRIER}{OTHER} {AGAIN} {BARRIER}",
])
def test_races_between_barriers_of_which_some_are_not_followed(body: str) -> None:
    messages, _ = found(body)
    assert messages


def test_threads_that_pass_other_barriers() -> None:
    """The second warp has nothing behind its barrier, but the first one has."""
    body = f"@%p1 bra T; {STORE}{BARRIER} ret; T: {BARRIER}{OTHER}"
    assert found(body) == ([], 2)


@pytest.mark.parametrize("seed", range(60))
def test_any_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is the same where all barriers are followed."""
    body = _program(np.random.default_rng(seed))
    some, followed = found(body)
    monkeypatch.setattr(needs, "unneeded_barriers", lambda *_: set())
    every, barriers = found(f"{body} ")
    assert some == every
    assert followed <= barriers


def _program(rng: np.random.Generator) -> str:
    labels = iter(range(1000))

    def statements(depth: int, barriers: bool) -> str:
        kinds = [STORE, OTHER, LOAD, QUIET, *([BARRIER] * 4 if barriers else [])]
        return " ".join(
            nested(depth, barriers) if depth and rng.random() < 0.25 else str(rng.choice(kinds))
            for _ in range(rng.integers(1, 6))
        )

    def nested(depth: int, barriers: bool) -> str:
        label, kind = next(labels), rng.integers(3)
        if kind == 0:
            turn = f"%r{10 + label % 40}"
            inside = statements(depth - 1, barriers)
            return (
                f"mov.u32 {turn}, 0; A{label}: {inside} add.u32 {turn}, {turn}, 1; setp.lt.u32 %p2, {turn}, 2; "
                f"@%p2 bra A{label};"
            )
        inside = statements(depth - 1, barriers and kind == 1)
        return f"@{'!%p0' if kind == 1 else '%p1'} bra A{label}; {inside} A{label}:"

    return statements(2, True)
