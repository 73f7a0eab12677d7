"""Accesses to each other's shared memory by the blocks of a cluster: what its barriers order is proven, and no more."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.sanitizer import cluster_proof
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

ALL = frozenset(("memory", "init", "race", "barrier"))
SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"
BLOCK, CLUSTERS = 64, 2
NUMBERS = count()
HEAD = """
    .shared .b32 tile[128]; .shared .b32 rest[8];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, tile; shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3;
    mov.u32 %r5, %ctaid.x; mad.lo.u32 %r5, %r5, 64, %r0; mul.wide.u32 %rd0, %r5, 4; mov.u32 %r6, 0;
    cvt.u64.u32 %rd1, %r2; cvta.shared.u64 %rd1, %rd1; ld.param.u64 %rd9, [out]; add.u64 %rd9, %rd9, %rd0;
"""
"""The block's thread, its rank, the address of tile, that of the thread's word, a sum, tile's generic address."""


def run(body: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], bool, bytes]:
    """The kinds of findings; whether all accesses to tile are proven; what is written.

    Each program is one of its own, so that no proof of the same one is known.
    """
    text = kernel("u64 out", f"{HEAD} {body}\n mov.u32 %r31, {next(NUMBERS)}; st.global.u32 [%rd9], %r6; ret;")
    proven = []
    made = cluster_proof.ClusterProof._reached

    def noted(proof: cluster_proof.ClusterProof) -> tuple[set[int], set[int]]:
        ordered, written = made(proof)
        proven.append(bool(ordered) and ordered == written)
        return ordered, written

    out = np.full((CLUSTERS, ranks, BLOCK), 77, np.uint32)
    config = LaunchConfig(ranks * CLUSTERS, BLOCK, cluster=ranks, sanitize=ALL)
    with collect() as found, monkeypatch.context() as patch:
        patch.setattr(cluster_proof.ClusterProof, "_reached", noted)
        emulator.load(text).run("k", config, [argument("out", out)])
    return sorted({each.kind for each in found}), any(proven), out.tobytes()


def far(rank: str, offset: str, access: str) -> str:
    """An access to the memory of a rank, ``offset`` bytes behind tile."""
    return f"mapa.u64 %rd2, %rd1, {rank}; cvt.u64.u32 %rd3, {offset}; add.u64 %rd2, %rd2, %rd3; {access}"


LOAD, STORE = "ld.u32 %r7, [%rd2]; add.u32 %r6, %r6, %r7;", "st.u32 [%rd2], %r0;"
OWN = "st.shared.u32 [%r4], %r0; st.shared.u32 [%r4+256], %r1;"
LEFT = "add.u32 %r8, %r1, 3; and.b32 %r8, %r8, 3;"
EXCHANGE = f"{OWN} {SYNC} {LEFT} {far('%r8', '%r3', LOAD)} {SYNC}"
HALO = f"""
    {OWN} mov.u32 %r20, 0; mov.u32 %r21, 0;
    LOOP: {SYNC} setp.ge.u32 %p0, %r0, 1; @%p0 bra INNER; setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE;
    sub.u32 %r8, %r1, 1; add.u32 %r9, %r21, 252; {far('%r8', '%r9', LOAD)} bra DONE;
    INNER: add.u32 %r9, %r4, %r21; ld.shared.u32 %r7, [%r9+-4]; add.u32 %r6, %r6, %r7;
    DONE: xor.b32 %r21, %r21, 256; add.u32 %r9, %r4, %r21; st.shared.u32 [%r9], %r6;
    add.u32 %r20, %r20, 1; setp.lt.u32 %p2, %r20, 7; @%p2 bra LOOP; {SYNC}
"""
"""Steps of a sum whose edges come from the rank before, between two buffers."""
GATHERED = f"""
    setp.eq.u32 %p0, %r0, 0; @!%p0 bra ON; shl.b32 %r9, %r1, 2; {far('0', '%r9', 'st.u32 [%rd2], %r1;')}
    ON: {SYNC} setp.eq.u32 %p1, %r1, 0; @!%p1 bra END; @!%p0 bra END; ld.global.u32 %r9, [%rd9]; and.b32 %r9, %r9, 3;
    shl.b32 %r9, %r9, 2; add.u32 %r9, %r9, %r2; ld.shared.u32 %r6, [%r9]; END:
"""
"""Rank 0 has one word of each rank, and reads that which data choose."""


@pytest.mark.parametrize("body", [
    EXCHANGE, HALO, EXCHANGE.replace(SYNC, f"bar.sync 0; {SYNC} bar.sync 0;", 1),
    f"{OWN} {SYNC} {LEFT} mapa.shared::cluster.u32 %r9, %r4, %r8; ld.shared::cluster.u32 %r6, [%r9+256]; {SYNC}",
    f"{LEFT} {far('%r8', '%r3', STORE)} {SYNC} ld.shared.u32 %r6, [%r4]; {SYNC}",
    f"{OWN} {SYNC} {LEFT} {far('%r8', '%r3', STORE)} {SYNC} xor.b32 %r9, %r3, 4; {far('%r8', '%r9', LOAD)} {SYNC}",
    (f"setp.eq.u32 %p0, %r1, 2; @!%p0 bra ON; {OWN} bar.sync 0; xor.b32 %r9, %r3, 252; add.u32 %r9, %r9, %r2; "
     f"ld.shared.u32 %r6, [%r9]; ON: {SYNC} {far('2', '%r3', LOAD)} {SYNC}"),
])
def test_what_barriers_of_the_cluster_order_is_proven(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, proven, out = run(body, 4, monkeypatch)
    assert found == []
    assert proven
    assert out == without(body, 4, monkeypatch)[2]


def test_a_read_of_a_word_that_data_choose_is_of_its_array(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ranks read their own array, of which only the first words are written: races are excluded, no more."""
    assert run(GATHERED, 4, monkeypatch)[0] == []
    assert run(GATHERED.replace("tile[128]", "tile[4]"), 4, monkeypatch)[0] == []
    assert "race" in run(GATHERED.replace(SYNC, "bar.sync 0;", 1) + SYNC, 4, monkeypatch)[0]


def without(body: str, ranks: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], bool, bytes]:
    """The same where nothing is proven so."""
    with monkeypatch.context() as patch:
        patch.setattr(cluster_proof, "execute_cluster", lambda *_: (None, False))
        return run(body, ranks, monkeypatch)


@pytest.mark.parametrize(("body", "wanted"), [
    (EXCHANGE.replace(SYNC, "bar.sync 0;", 1), "race"),
    (EXCHANGE.replace(SYNC, "", 1), "race"),
    (HALO.replace(f"LOOP: {SYNC}", "LOOP: bar.sync 0;"), "race"),
    (HALO.replace("xor.b32 %r21, %r21, 256;", ""), "race"),
    (EXCHANGE.replace(OWN, "st.shared.u32 [%r4+256], %r1;"), "init"),
    (f"{OWN} {SYNC} {far('1', '%r3', STORE.replace('r0', 'r1'))} {SYNC}", "race"),
    (f"{OWN} {SYNC} {LEFT} {far('%r8', '%r3', STORE)} ld.shared.u32 %r6, [%r4]; {SYNC}", "race"),
    (f"{OWN} {SYNC} {LEFT} and.b32 %r9, %r3, 248; {far('%r8', '%r9', STORE)} {SYNC}", "race"),
    (f"setp.eq.u32 %p0, %r1, 2; @!%p0 bra ON; {OWN} bar.sync 0; ON: {far('2', '%r3', LOAD)} {SYNC}", "race"),
    (f"{OWN} {SYNC} {LEFT} add.u32 %r9, %r3, 380; {far('%r8', '%r9', LOAD)} {SYNC}", "init"),
])
def test_what_is_wrong_is_found(body: str, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(body, 4, monkeypatch)[0]
    assert wanted in found
    assert found == without(body, 4, monkeypatch)[0]


def random_body(rng: np.random.Generator, ranks: int) -> str:
    """Stores and loads, own ones and those of other ranks, with barriers of both kinds between."""
    lines = [OWN, SYNC] if rng.random() < 0.8 else []
    for step in range(rng.integers(2, 7)):
        end = f"N{step}:"
        guard = rng.choice(["", "setp.lt.u32 %p0, %r0, 32;", "setp.eq.u32 %p0, %r0, 5;", "setp.eq.u32 %p0, %r1, 1;"])
        jump = f"{guard} @!%p0 bra N{step};" if guard else ""
        offset = rng.choice(["mov.u32 %r9, %r3;", "xor.b32 %r9, %r3, 252;", "add.u32 %r9, %r3, 256;", "mov.u32 %r9, 8;",
                             "and.b32 %r9, %r3, 124;"])
        rank = rng.choice([f"add.u32 %r8, %r1, 1; rem.u32 %r8, %r8, {ranks};", "mov.u32 %r8, %r1;", "mov.u32 %r8, 1;",
                           f"sub.u32 %r8, {ranks - 1}, %r1;"])
        access = rng.choice([LOAD, LOAD, STORE])
        if rng.random() < 0.4:
            what = f"add.u32 %r9, %r9, %r2; {access.replace('%rd2', '%r9').replace('.u32 ', '.shared.u32 ', 1)}"
        else:
            what = f"{rank} {far('%r8', '%r9', access)}"
        barrier = rng.choice([SYNC, SYNC, SYNC, "bar.sync 0;", ""])
        lines += [jump, offset, what, end, barrier]
    return "\n".join([*lines, SYNC])


def judged(rng: np.random.Generator, programs: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How many random programs are proven, and how many are wrong; each is judged as without the proof."""
    proven = wrong = 0
    for _ in range(programs):
        ranks = int(rng.choice([2, 4]))
        body = random_body(rng, ranks)
        run(body, ranks, monkeypatch)  # stores that change nothing do not race: so with what is in memory then
        found, is_proven, out = run(body, ranks, monkeypatch)
        expected, _, same = without(body, ranks, monkeypatch)
        assert found == expected, body
        assert found or out == same, body
        proven, wrong = proven + is_proven, wrong + bool(found)
    return proven, wrong


def test_random_programs_are_judged_alike(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    judged(rng, 12, monkeypatch)


@pytest.mark.exhaustive
def test_many_random_programs_are_judged_alike(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    proven, wrong = judged(rng, 400, monkeypatch)
    assert proven > 40 and wrong > 40


