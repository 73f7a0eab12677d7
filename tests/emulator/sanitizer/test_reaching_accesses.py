"""Atomics on the shared memory of whichever block of a cluster the data name: what is proven, and what is not."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.sanitizer import proofs
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

ALL = frozenset(("memory", "init", "race", "barrier"))
SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"
CLUSTERS, BLOCK = 3, 64
COUNT = "atom.add.u32 %r10, [%rd5], 1;"


def run(
    body: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, variables: str = ".shared .b32 bins[64];"
) -> tuple[list[str], int]:
    """What is found in a histogram over two blocks, and how many accesses are proven; its counts must be right."""
    text = kernel("u64 data, u64 out", f"""
    {variables} mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, bins; shl.b32 %r3, %r0, 2;
    add.u32 %r4, %r2, %r3; mad.lo.u32 %r5, %r1, {BLOCK}, %r0; mul.wide.u32 %rd0, %r5, 4;
    ld.param.u64 %rd1, [data]; add.u64 %rd1, %rd1, %rd0; ld.global.u32 %r6, [%rd1]; shr.u32 %r7, %r6, 6;
    shl.b32 %r8, %r7, 6; sub.u32 %r8, %r6, %r8;
    cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd3, %rd2; mapa.u64 %rd4, %rd3, %r7; mul.wide.u32 %rd5, %r8, 4;
    add.u64 %rd5, %rd4, %rd5; mov.u32 %r9, 0; setp.eq.u32 %p0, %r0, 0; mov.u32 %r20, %cluster_ctarank;
    setp.eq.u32 %p1, %r20, 0;
    {body}
    ld.param.u64 %rd6, [out]; add.u64 %rd6, %rd6, %rd0; ld.shared.u32 %r11, [%r4]; st.global.u32 [%rd6], %r11; ret;
    """)
    counts = list[int]()
    made = proofs.proven

    def proven(*given: object) -> object:
        found = made(*given)  # type: ignore[arg-type]
        counts.append(len(found.ordered & found.written))
        return found

    monkeypatch.setattr("ptxdsl.emulator.sanitizer.sanitizer.proven", proven)
    data = rng.integers(0, 128, (CLUSTERS, 2 * BLOCK), np.uint32)
    out = np.full_like(data, 77)
    config = LaunchConfig(2 * CLUSTERS, BLOCK, cluster=2, sanitize=ALL)
    with collect() as found:
        emulator.load(text).run("k", config, [argument("data", data), argument("out", out)])
    if not found:
        assert np.array_equal(out, [np.bincount(row, minlength=2 * BLOCK) for row in data])
    return sorted({each.kind for each in found}), counts[0]


FILL = "st.shared.u32 [%r4], %r9;"


@pytest.mark.parametrize("body", [
    f"{FILL} {SYNC} {COUNT} {SYNC}", f"{FILL} {SYNC} {SYNC} {COUNT} bar.sync 0; {SYNC}",
    f"{FILL} bar.sync 0; {SYNC} red.relaxed.cluster.add.u32 [%rd5], 1; {SYNC}",
    f"{FILL} {SYNC} @%p1 bra ON; ON: {COUNT} {SYNC}",
])
def test_atomics_between_two_barriers_of_the_cluster_are_proven(
    body: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, proven = run(body, rng, monkeypatch)
    assert found == []
    assert proven >= 2


@pytest.mark.parametrize(("body", "wanted"), [
    (f"{FILL} bar.sync 0; {COUNT} {SYNC}", "race"),
    (f"{FILL} {SYNC} {COUNT} bar.sync 0; ld.shared.u32 %r12, [%r4]; st.global.u32 [%rd1], %r12; {SYNC}", "race"),
    (f"{FILL} {SYNC} {COUNT} @%p0 st.shared.u32 [%r2], 5; {SYNC}", "race"),
    (f"{FILL} {SYNC} atom.relaxed.cta.add.u32 %r10, [%rd5], 1; {SYNC}", "race"),
    (f"{FILL} {SYNC} ld.u32 %r10, [%rd5]; add.u32 %r10, %r10, 1; st.u32 [%rd5], %r10; {SYNC}", "race"),
    (f"@%p1 {FILL} {SYNC} {COUNT} {SYNC}", "init"),
    (f"setp.lt.u32 %p2, %r0, 40; @%p2 {FILL} {SYNC} {COUNT} {SYNC}", "init"),
    (f"{FILL} {SYNC} {COUNT} bar.sync 0;", "race"),
])
def test_what_is_wrong_is_found(
    body: str, wanted: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = run(body, rng, monkeypatch)
    assert wanted in found


@pytest.mark.parametrize(("body", "variables"), [
    (f"{FILL} {SYNC} {COUNT} {SYNC}", ".shared .b32 bins[64]; .shared .b32 rest[4];"),
    (f"{FILL} @%p1 bra ONE; {SYNC} bra GO; ONE: {SYNC} GO: {COUNT} {SYNC}", ".shared .b32 bins[64];"),
])
def test_what_is_right_and_not_proven(
    body: str, variables: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory that nobody writes, where an atomic might be; barriers that ranks pass in different places."""
    assert run(body, rng, monkeypatch, variables)[0] == []
