"""Labelled programs: each race is found at its lines and nothing else is, whatever order a seed draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ordered_programs import ORDERED
from ptxdsl import RaceError, use
from ptxdsl.emulator.sanitizer.findings import Finding
from ptxdsl.emulator.sanitizer.sanitizer import collect
from race_cases import judge
from racy_programs import RACY


@pytest.mark.parametrize("name", RACY)
def test_racy(name: str, rng: np.random.Generator) -> None:
    for seed in (None, int(rng.integers(1 << 32)))[: 1 + RACY[name].any_order]:
        assert not judge(RACY[name], seed), seed


@pytest.mark.parametrize("name", ORDERED)
def test_ordered(name: str, rng: np.random.Generator) -> None:
    for seed in (None, int(rng.integers(1 << 32))):
        assert not judge(ORDERED[name], seed), seed


# Reports


def findings_of(name: str, tools: Any, seed: int | None = None) -> list[Finding]:
    program = (RACY | ORDERED)[name]
    data = [np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32), np.zeros(64, np.uint32)]
    with use("emulator"), collect() as findings:
        program.kernel.configure(**program.launch, sanitize=tools, seed=seed)(*data, **program.constants)
    return findings


LOST = "a load and a store are no update: `ptx.red.global_.{}(y + i, v)` {}, and loses none"
UPDATE = (
    "race: threads (0, 0, 0) and (1, 0, 0) of one warp update y[0] in global memory with one instruction; one of the "
    "updates is lost"
)
STORES = "race on y[0] in global memory: store by thread {} and store by thread {} of block (0, 0, 0) are not ordered"
OLD = (
    "volatile load from {} memory by thread (0, 0, 0) of block {} may still give {}, the value before the volatile "
    "store by thread {} of block (0, 0, 0): nothing orders the two"
)
IN_STEP = (
    "lanes of a warp do not run in step: put `ptx.bar.warp.sync(0xFFFFFFFF)` between the two, "
    "or `ptx.bar.sync(0)` where other warps take part"
)
FENCES = (
    "order them: `ptx.fence.acq_rel.gpu()` between the store and the flag behind it, and between the load of the flag "
    "and this one"
)
REPORTS = {
    "lanes_increment": (UPDATE, LOST.format("add.u32", "adds v")),
    "update_in_a_loop": (UPDATE, LOST.format("xor.b32", "flips bits")),
    "greatest_of_two_warps": (
        STORES.format((32, 0, 0), (0, 0, 0)), LOST.format("max.u32", "keeps the greater one"),
    ),
    "bits_of_a_mask": (
        STORES.format("(3, 0, 0) of block (1, 0, 0)", (3, 0, 0)), LOST.format("or.b32", "sets bits"),
    ),
    "two_stores_of_all_lanes": (STORES.format((0, 0, 0), (1, 0, 0)), IN_STEP),
    "last_block_reads_volatile_sums": (OLD.format("y[64] in global", (3, 0, 0), 0, (0, 0, 0)), FENCES),
    "volatile_reduction_in_step": (OLD.format("s[8] in shared", (0, 0, 0), 8, (8, 0, 0)), IN_STEP),
}


@pytest.mark.parametrize("name", REPORTS)
def test_reports(name: str) -> None:
    program, (message, hint) = RACY[name], REPORTS[name]
    found = findings_of(name, "all")[0]
    assert (found.kind, found.message, found.hint) == (program.kind, message, hint)


@pytest.mark.parametrize("name", [name for name in RACY if RACY[name].launch["block"] == 32])
def test_one_thread_is_not_both_sides(name: str) -> None:
    for found in findings_of(name, "all", 11):
        if found.earlier is not None:
            sides = [(side.block, side.thread) for side in (found.access, found.earlier)]
            assert sides[0] != sides[1]


def test_what_a_compare_and_swap_confirms_is_found_by_name() -> None:
    name = "update_by_compare_and_swap-ld"
    assert not findings_of(name, "all") and not findings_of(name, "race")
    found = findings_of(name, ("race", "cas"))
    assert {each.kind for each in found} == {"cas"}
    assert {each.kind for each in findings_of("weak_flags", ("race", "cas"))} == {"race"}
    with pytest.raises(RaceError):
        run_raising(name, "cas")


def run_raising(name: str, tools: Any) -> None:
    data = [np.arange(4096, dtype=np.uint32), np.zeros(4096, np.uint32), np.zeros(64, np.uint32)]
    program = ORDERED[name]
    program.kernel.configure(**program.launch, sanitize=tools, backend="emulator")(*data, **program.constants)


@pytest.mark.parametrize("kind", ["race", "order"])
def test_kinds_are_apart(kind: str) -> None:
    """Each tool finds its own kind, and no other."""
    for name in ("message_of_strong_accesses-volatile-volatile", "lanes_increment", "weak_flags"):
        wanted = {kind} if RACY[name].kind == kind else set()
        assert {each.kind for each in findings_of(name, kind)} == wanted


def test_enough() -> None:
    assert len(RACY) >= 60 and len(ORDERED) >= 60
