"""What barriers of a cluster order, and which shared memory no other block reaches: wrong kernels beside right ones."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.sanitizer.launch_proof import LaunchProof
from ptxdsl.emulator.sanitizer.proven_accesses import Proven
from ptxdsl.emulator.sanitizer.report import MADE_AFAR
from ptxdsl.emulator.sanitizer.sanitizer import collect
from ptxdsl.launch import LaunchConfig

ALL = frozenset(("memory", "init", "race", "order", "barrier"))
SYNC = "barrier.cluster.arrive; barrier.cluster.wait;"


def findings(body: str, *, cluster: int = 2, block: int = 64, second: bool = False) -> list[str]:
    text = kernel("u64 out", f"""
    .shared .b32 box[64];
    .shared .b32 tile[64];
    ld.param.u64 %rd0, [out]; mov.u32 %r0, %cluster_ctarank; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2;
    mov.u32 %r3, box; mov.u32 %r4, tile; add.u32 %r5, %r4, %r2; add.u32 %r6, %r3, %r2;
    add.u32 %r7, %r0, 1; rem.u32 %r7, %r7, {cluster}; mapa.shared::cluster.u32 %r8, %r6, %r7;
    mapa.shared::cluster.u32 %r9, %r3, %r7;
    {body}
    mov.u32 %r30, %ctaid.x; mad.lo.u32 %r30, %r30, {block}, %r1; mul.wide.u32 %rd1, %r30, 4; add.u64 %rd0, %rd0, %rd1;
    st.global.u32 [%rd0], %r20; ret;
    """)
    config = LaunchConfig(3 * cluster, block, cluster=cluster, sanitize=ALL)
    program, out = emulator.load(text), np.zeros(3 * cluster * block, np.uint32)
    run = program.launcher("k", config)
    kinds: set[str] = set()
    for _ in range(2 if second else 1):
        with collect() as found:
            run([argument("out", out)])
        kinds = {each.kind for each in found}
        for _, tools, code in program.codes("k") if second else ():
            if tools is not None and not code.block_function:
                compile_block_function(code)
    return sorted(kinds)


FILL = "st.shared.u32 [%r6], %r1; st.shared.u32 [%r5], %r1;"
CASES = {
    "a barrier": (f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8]; {SYNC}", []),
    "none": (f"{FILL} ld.shared::cluster.u32 %r20, [%r8]; {SYNC}", ["init", "race"]),
    "relaxed": (
        f"{FILL} barrier.cluster.arrive.relaxed; barrier.cluster.wait; ld.shared::cluster.u32 %r20, [%r8]; {SYNC}",
        ["race"],
    ),
    "stored between arrival and wait": (
        (f"{FILL} {SYNC} barrier.cluster.arrive; st.shared.u32 [%r6], 5; barrier.cluster.wait; "
         f"ld.shared::cluster.u32 %r20, [%r8]; {SYNC}"), ["race"],
    ),
    "stored behind the barrier": (
        f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8]; st.shared.u32 [%r6], 5; {SYNC}", ["race"],
    ),
    "stored behind two": (
        f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8]; {SYNC} st.shared.u32 [%r6], 5; {SYNC}", [],
    ),
    "a barrier of the block behind it": (
        f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8]; bar.sync 0; st.shared.u32 [%r6], 5; {SYNC}", ["race"],
    ),
    "by threads that have ended": (
        (f"setp.ge.u32 %p0, %r1, 32; @%p0 st.shared.u32 [%r6], 1; @%p0 exit; {FILL} {SYNC} "
         f"ld.shared::cluster.u32 %r20, [%r9+128]; {SYNC}"), ["race"],
    ),
    "two additions": (f"{FILL} {SYNC} red.shared::cluster.add.u32 [%r8], 1; {SYNC} ld.shared.u32 %r20, [%r6];", []),
    "an addition and a store": (
        (f"{FILL} {SYNC} red.shared::cluster.add.u32 [%r8], 1; st.shared.u32 [%r6], 3; {SYNC} "
         "ld.shared.u32 %r20, [%r6];"), ["race"],
    ),
    "the block's own, without a barrier": (
        (f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8]; xor.b32 %r21, %r2, 128; add.u32 %r21, %r21, %r4; "
         f"st.shared.u32 [%r21], 7; ld.shared.u32 %r20, [%r5]; {SYNC}"), ["race"],
    ),
    "the block's own, with one": (
        (f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8]; xor.b32 %r21, %r2, 128; add.u32 %r21, %r21, %r4; "
         f"st.shared.u32 [%r21], 7; bar.sync 0; ld.shared.u32 %r20, [%r5]; {SYNC}"), [],
    ),
    "beyond the variable, into another": (
        f"{FILL} {SYNC} ld.shared::cluster.u32 %r20, [%r8+256]; st.shared.u32 [%r5], 7; {SYNC}", ["race"],
    ),
    "by an index from memory, into another": (
        (f"{FILL} {SYNC} ld.shared.u32 %r21, [%r6]; add.u32 %r21, %r21, 64; shl.b32 %r21, %r21, 2; "
         f"add.u32 %r21, %r21, %r9; ld.shared::cluster.u32 %r20, [%r21]; st.shared.u32 [%r5], 7; {SYNC}"), ["race"],
    ),
}


@pytest.mark.parametrize(("name", "second"), [*((name, False) for name in CASES), ("stored behind the barrier", True)])
def test_orders(name: str, second: bool) -> None:
    body, expected = CASES[name]
    for cluster in (2, 16):
        found = findings(body, cluster=cluster, second=second)
        assert found == expected or (set(found) == {"race"} and "race" in expected)


def test_what_only_its_block_reaches_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where other blocks only read one variable, by addresses that stay in it; not where they may leave it."""
    seen: list[Proven] = []
    run = LaunchProof.run
    monkeypatch.setattr(LaunchProof, "run", lambda self: seen.append(run(self)) or seen[-1])
    for name in ("the block's own, with one", "by an index from memory, into another"):
        findings(CASES[name][0].replace(FILL, f"{FILL} bar.sync 0;"))
    assert [len(each.ordered) for each in seen] == [6, 1]


def test_the_advice_for_an_mbarrier_of_another_block() -> None:
    text = kernel("u64 out", f"""
    .shared .align 8 .b64 bar;
    mov.u32 %r0, %cluster_ctarank; setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r0, 1; mov.u32 %r2, bar;
    mapa.shared::cluster.u32 %r3, %r2, 0; @%p0 mbarrier.init.shared.b64 [bar], 1;
    barrier.cluster.arrive.relaxed; barrier.cluster.wait;
    @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r3]; {SYNC} ret;
    """)
    run = emulator.load(text).launcher("k", LaunchConfig(2, 1, cluster=2, sanitize=ALL))
    with collect() as found:
        run([argument("out", np.zeros(1, np.uint32))])
    assert [each.hint for each in found if each.kind == "race"] == [MADE_AFAR]


@pytest.mark.parametrize(("cluster", "hint"), [
    (2, "put a barrier of the cluster between the two: `ptxdsl.cluster.sync()`"),
    (None, "blocks are ordered by nothing but atomics and flags: release one and acquire it, or launch twice"),
])
def test_the_advice_for_blocks_that_race(cluster: int | None, hint: str) -> None:
    text = kernel("u64 out", """
    ld.param.u64 %rd0, [out]; mov.u32 %r0, %ctaid.x; st.global.u32 [%rd0], %r0; ret;
    """)
    run = emulator.load(text).launcher("k", LaunchConfig(2, 1, cluster=cluster, sanitize=ALL))
    with collect() as found:
        run([argument("out", np.zeros(1, np.uint32))])
    assert [each.hint for each in found if each.kind == "race"] == [hint]
