"""Programs of clusters whose blocks reach each other's shared memory, right and wrong: copies, stores, mbarriers, ends.

Each is made of steps, so that a wrong one differs from its right twin by what it leaves out, or does too early. In a
wrong one the line that is at fault ends in ``//@``, the line before it that it meets in ``//#``.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["THREADS", "ClusterProgram", "programs"]

THREADS = 128


class ClusterProgram(NamedTuple):
    name: str
    text: str
    right: bool
    cluster: tuple[int, int, int] = (2, 1, 1)


_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 out)
{
    .reg .pred %p<50>; .reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %rd<50>; .reg .f32 %f<50>;
    .shared .align 1024 .b8 tile[4096]; .shared .align 1024 .b8 other[4096]; .shared .align 8 .b64 bar[4];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, %cluster_nctarank; shl.b32 %r3, %r0, 4;
    add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2; add.u32 %r5, %r1, %r2; sub.u32 %r5, %r5, 1; rem.u32 %r5, %r5, %r2;
    mov.u32 %r10, tile; mov.u32 %r11, other; add.u32 %r12, %r10, %r3; add.u32 %r13, %r11, %r3; mov.u32 %r19, bar;
    mapa.shared::cluster.u32 %r14, %r10, %r4; mapa.shared::cluster.u32 %r15, %r19, %r4;
    mapa.shared::cluster.u32 %r16, %r12, %r4; mapa.shared::cluster.u32 %r17, %r19, %r5; add.u32 %r18, %r17, 8;
    mapa.shared::cluster.u32 %r70, %r10, 0; mapa.shared::cluster.u32 %r71, %r19, 0;
    mov.u32 %r6, %clusterid.x; mul.lo.u32 %r6, %r6, %r2; add.u32 %r6, %r6, %r1; mad.lo.u32 %r7, %r6, 128, %r0;
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd5, %r7, 4; add.u64 %rd5, %rd5, %rd1;
    mul.wide.u32 %rd6, %r6, 2048; add.u64 %rd6, %rd6, %rd1;
    setp.eq.u32 %p0, %r0, 0; setp.eq.u32 %p1, %r1, 0; and.pred %p2, %p0, %p1; not.pred %p4, %p1;
    and.pred %p3, %p0, %p4; setp.lt.u32 %p5, %r0, 16; setp.eq.u32 %p6, %r0, 32; and.pred %p7, %p6, %p1;
    shr.u32 %r30, %r10, 4; and.b32 %r30, %r30, 0x3fff; or.b32 %r30, %r30, 0x400000; mov.b64 %rd10, {%r30, 8};
    shr.u32 %r31, %r11, 4; and.b32 %r31, %r31, 0x3fff; or.b32 %r31, %r31, 0x80000; mov.b64 %rd11, {%r31, 8};
    mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0; setp.eq.u32 %p9, %r0, %r0;
    mov.u32 %r20, 0; mov.u32 %r40, 0; mov.u32 %r41, 0; mov.u32 %r42, 0; mov.u32 %r43, 0; mov.u32 %r60, 0;
    mov.u16 %h0, 1; cvt.u32.u16 %r44, %h0; shl.b32 %r44, %r44, %r2; sub.u32 %r44, %r44, 1; cvt.u16.u32 %h0, %r44;
"""
_FOOT = """
    cvt.rzi.u32.f32 %r21, %f0; add.u32 %r20, %r20, %r21; st.global.u32 [%rd5+65536], %r20;
    ret;
}
"""
SYNC = "bar.sync 0;"
MEET = "barrier.cluster.arrive; barrier.cluster.wait;"
RELAXED = "barrier.cluster.arrive.relaxed; barrier.cluster.wait;"
FENCE = "fence.proxy.async.shared::cta;"
FENCE_INIT = "@%p0 fence.mbarrier_init.release.cluster;"
_TX = "mbarrier::complete_tx::bytes"


def init(count: int = 1, second: int = 1) -> str:
    return f"@%p0 mbarrier.init.shared.b64 [bar], {count};\n@%p0 mbarrier.init.shared.b64 [bar+8], {second};"


def ready(count: int = 1, second: int = 1) -> str:
    return f"{init(count, second)}\n{FENCE_INIT}\n{MEET}"


def expect(nbytes: int = 2048, bar: str = "bar", who: str = "%p0") -> str:
    return f"@{who} mbarrier.arrive.expect_tx.shared.b64 _, [{bar}], {nbytes};"


def multicast(mark: str = "", who: str = "%p2", where: str = "tile", bar: str = "bar") -> str:
    form = f"cp.async.bulk.shared::cluster.global.{_TX}.multicast::cluster"
    return f"@{who} {form} [{where}], [%rd0], 2048, [{bar}], %h0; {mark}"


def send(mark: str = "", who: str = "%p0") -> str:
    """A copy of the tile into the next block's ``other``, counted there."""
    return f"@{who} cp.async.bulk.shared::cluster.shared::cta.{_TX} [%r14+4096], [tile], 2048, [%r15]; {mark}"


def wait(label: str, bar: str = "bar", parity: str = "0", who: str = "", scope: str = "") -> str:
    guard = f"@!{who} bra {label}_DONE;\n" if who else ""
    return (
        f"{guard}{label}: mbarrier.try_wait.parity{scope}.shared.b64 %p40, [{bar}], {parity};\n@!%p40 bra {label};\n"
        f"{label}_DONE:"
    )


FILL = "st.shared.v4.b32 [%r12], {%r40, %r41, %r42, %r43};"
FILL_OTHER = "st.shared.v4.b32 [%r13], {%r40, %r41, %r42, %r43};"
READ = "ld.shared.u32 %r20, [%r12];"
READ_OTHER = "ld.shared.u32 %r20, [%r13];"
PRODUCT = (
    "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %rd10, "
    "%rd11, %p9, 1, 1, 0, 0; MARK\nwgmma.commit_group.sync.aligned;"
)
DONE = "wgmma.wait_group.sync.aligned 0;"
B_TILE = f"@%p5 {FILL_OTHER}\n{FENCE}"


def product(mark: str = "") -> str:
    return PRODUCT.replace("MARK", mark)


def _loads() -> list[ClusterProgram]:
    """A load that all blocks get: each waits at its own mbarrier, and what was there before is over."""
    found = []
    for name, steps, right in (
        ("each block waits", [ready(), expect(), multicast(), wait("W"), READ, MEET], True),
        ("each block waits, read from afar", [ready(), expect(), multicast(), wait("W"), MEET,
                                              "ld.shared::cluster.u32 %r20, [%r16];", MEET], True),
        ("nobody waits", [ready(), expect(), multicast("//#"), MEET, READ + " //@", wait("W"), MEET], False),
        ("one block waits", [ready(), expect(), multicast("//#"), wait("W", who="%p1"), MEET, READ + " //@",
                             wait("V"), MEET], False),
        ("one warp waits, then the block meets", [ready(), expect(), multicast(), wait("W", who="%p0"), SYNC, READ,
                                                  MEET], True),
        ("over what was stored, fenced", [FILL, FENCE, ready(), expect(), multicast(), wait("W"), READ, MEET], True),
        ("over what was stored, fenced behind the barrier", [FILL, ready(), f"@%p2 {FENCE}", expect(), multicast(),
                                                             wait("W"), READ, MEET], True),
        ("over what was stored", [FILL + " //#", ready(), expect(), multicast("//@"), wait("W"), READ, MEET], False),
        ("over what is read", [ready(), FILL, FENCE, MEET, READ, MEET, expect(), multicast(), wait("W"), MEET], True),
        ("over what the own block alone has read", [ready(), FILL, FENCE, MEET, READ + " //#", SYNC, expect(),
                                                    multicast("//@"), wait("W"), MEET], False),
        ("read by wgmma", [ready(), B_TILE, MEET, expect(), multicast(), wait("W"), product(), DONE, MEET], True),
        ("read by wgmma before it is there", [ready(), B_TILE, MEET, expect(), multicast("//#"), MEET, product("//@"),
                                              DONE, wait("W"), MEET], False),
        ("over what wgmma reads", [ready(), B_TILE, FILL, FENCE, MEET, product("//#"), MEET, expect(),
                                   multicast("//@"), wait("W"), DONE, MEET], False),
        ("over what wgmma has read", [ready(), B_TILE, FILL, FENCE, MEET, product(), DONE, MEET, expect(),
                                      multicast(), wait("W"), MEET], True),
    ):
        found.append(_made(f"multicast: {name}", steps, right))
    for shape in ((1, 1, 1), (3, 1, 1), (2, 2, 1), (1, 2, 4)):
        steps = [ready(), expect(), multicast(), wait("W"), READ, MEET]
        found.append(_made(f"multicast in a cluster of {shape}", steps, True)._replace(cluster=shape))
        steps = [FILL + " //#", ready(), expect(), multicast("//@"), wait("W"), READ, MEET]
        found.append(_made(f"multicast over stores in a cluster of {shape}", steps, False)._replace(cluster=shape))
    return found


def _between() -> list[ClusterProgram]:
    """Copies from one block's shared memory into another's."""
    found = []
    for name, steps, right in (
        ("fenced", [ready(), FILL, FENCE, MEET, expect(), send(), wait("W"), READ_OTHER, MEET], True),
        ("source without a fence", [ready(), FILL + " //#", MEET, expect(), send("//@"), wait("W"), READ_OTHER, MEET],
         False),
        ("fenced by the thread that copies", [ready(), FILL, MEET, f"@%p0 {FENCE}", expect(), send(), wait("W"),
                                              READ_OTHER, MEET], True),
        ("over what was stored", [ready(), FILL, FENCE, FILL_OTHER + " //#", MEET, expect(), send("//@"), wait("W"),
                                  READ_OTHER, MEET], False),
        ("over what was stored and fenced", [ready(), FILL, FILL_OTHER, FENCE, MEET, expect(), send(), wait("W"),
                                             READ_OTHER, MEET], True),
        ("nobody waits", [ready(), FILL, FENCE, MEET, expect(), send("//#"), MEET, READ_OTHER + " //@", wait("W"),
                          MEET], False),
        ("source overwritten at once", [ready(), FILL, FENCE, MEET, expect(), send("//#"), SYNC, FILL + " //@",
                                        wait("W"), MEET], False),
        ("source overwritten behind the receiver's wait", [ready(), FILL, FENCE, MEET, expect(), send(), wait("W"),
                                                           MEET, FILL, MEET], True),
        ("source overwritten behind the own wait", [ready(), FILL, FENCE, MEET, expect(), send("//#"), wait("W"),
                                                    FILL + " //@", MEET], False),
        ("into what the receiver still reads", [ready(), FILL, FILL_OTHER, FENCE, MEET, READ_OTHER + " //#", expect(),
                                                send("//@"), wait("W"), MEET], False),
        ("into what the receiver has read", [ready(), FILL, FILL_OTHER, FENCE, MEET, READ_OTHER, MEET, expect(),
                                             send(), wait("W"), MEET], True),
    ):
        found.append(_made(f"copy to another block: {name}", steps, right))
    return found


def _stores() -> list[ClusterProgram]:
    """Asynchronous stores and reductions into another block, and stores that an mbarrier hands over."""
    found = []
    form = "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r16], %r40, [%r15];"
    add = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r16], %r40, [%r15];"
    e = expect(512)
    plain = "st.shared::cluster.u32 [%r16], %r40;"
    there = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15];"
    afar = wait("W", scope=".acquire.cluster")
    for name, steps, right in (
        ("st.async: waits", [ready(), e, form, wait("W"), READ, MEET], True),
        ("st.async: a barrier of the cluster alone", [ready(), e, form + " //#", MEET, READ + " //@", wait("W"), MEET],
         False),
        ("red.async: waits", [FILL, ready(), e, add, wait("W"), READ, MEET], True),
        ("red.async: a barrier of the cluster alone", [FILL, ready(), e, add + " //#", MEET, READ + " //@", wait("W"),
                                                       MEET], False),
        ("st.async: over what is read", [FILL, ready(), e, READ + " //#", form + " //@", wait("W"), MEET], False),
        ("st.async: over what was read", [FILL, ready(), e, READ, MEET, form, wait("W"), MEET], True),
        ("store and arrive", [ready(THREADS), plain, there, afar, READ, MEET], True),
        ("store and arrive, relaxed", [
            ready(THREADS), plain + " //#", there.replace("release", "relaxed"), afar, READ + " //@", MEET], False),
        ("store behind the arrival", [ready(THREADS), there, plain + " //@", afar, READ + " //#", MEET], False),
        ("store, and the receiver does not wait", [ready(THREADS), plain + " //#", there, READ + " //@", afar, MEET],
         False),
        ("store, fenced, then stored in bulk by the receiver", [
            ready(THREADS), "st.shared::cluster.v4.b32 [%r16], {%r40, %r41, %r42, %r43};", "fence.proxy.async;", there,
            afar, _bulk_store(), MEET], True),
        ("store, then fenced and stored in bulk by the receiver", [
            ready(THREADS), "st.shared::cluster.v4.b32 [%r16], {%r40, %r41, %r42, %r43};", there, afar,
            "fence.proxy.async;", _bulk_store(), MEET], True),
        ("store, then stored in bulk by the receiver", [
            ready(THREADS), "st.shared::cluster.v4.b32 [%r16], {%r40, %r41, %r42, %r43}; //#", there, afar,
            _bulk_store("//@"), MEET], False),
        ("store, then read by the receiver's wgmma", [
            ready(THREADS), B_TILE, SYNC, "st.shared::cluster.v4.b32 [%r16], {%r40, %r41, %r42, %r43}; //#", there,
            afar, product("//@"), DONE, MEET], False),
        ("store, fenced, then read by the receiver's wgmma", [
            ready(THREADS), B_TILE, SYNC, "st.shared::cluster.v4.b32 [%r16], {%r40, %r41, %r42, %r43};",
            "fence.proxy.async;", there, afar, product(), DONE, MEET], True),
        ("a bulk store, then a store from afar", [
            ready(), FILL, FENCE, SYNC, _bulk_store("//#").replace("@%p0 cp.async.bulk.wait_group.read 0;", ""), MEET,
            "st.shared::cluster.u32 [%r16], %r40; //@", "@%p0 cp.async.bulk.wait_group 0;", MEET], False),
        ("a bulk store that is waited for, then a store from afar", [
            ready(), FILL, FENCE, SYNC, _bulk_store(), MEET, "st.shared::cluster.u32 [%r16], %r40;", MEET], True),
    ):
        found.append(_made(name, steps, right))
    return found


def _bulk_store(mark: str = "") -> str:
    return (
        f"@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd6], [tile], 2048; {mark}\n"
        "@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group.read 0;"
    )


def _mbarriers() -> list[ClusterProgram]:
    """What has to stand between an mbarrier's initialisation and its use by other blocks."""
    found = []
    arrive = "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15];"
    for name, before, right in (
        ("fence, barrier of the cluster", f"{FENCE_INIT}\n{MEET}", True),
        ("fence, relaxed barrier of the cluster", f"{FENCE_INIT}\n{RELAXED}", True),
        ("fence of proxies, barrier of the cluster", f"@%p0 fence.proxy.async;\n{MEET}", True),
        ("barrier of the cluster alone", MEET, True),
        ("relaxed barrier of the cluster alone", RELAXED, False),
    ):
        mark, line = ("", "") if right else ("//#", "//@")
        start = f"@%p0 mbarrier.init.shared.b64 [bar], 1; {mark}\n{SYNC}\n{before}"
        found.append(_made(f"mbarrier of a multicast: {name}", [
            start, expect(),
            multicast(line), wait("W"), READ, MEET], right))
    for name, before, right in (
        ("fence, barrier of the cluster", f"{FENCE_INIT}\n{MEET}", True),
        ("fence, relaxed barrier of the cluster", f"{FENCE_INIT}\n{RELAXED}", True),
        ("barrier of the cluster", MEET, True),
        ("fence of threads, relaxed barrier of the cluster", f"fence.acq_rel.cluster;\n{RELAXED}", True),
        ("relaxed barrier of the cluster alone", RELAXED, False),
    ):
        mark, line = ("", "") if right else (" //#", " //@")
        start = f"@%p0 mbarrier.init.shared.b64 [bar], 1;{mark}\n{SYNC}\n{before}"
        found.append(_made(f"mbarrier that another block arrives at: {name}", [
            start, arrive + line, wait("W", scope=".acquire.cluster"), MEET], right))
    return found


def _rings() -> list[ClusterProgram]:
    """A stage that the first block loads for both, again and again: all consumers of all blocks free it."""
    found, afar = [], "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, "
    for name, count, free, right in (
        ("all consumers free it at the loader's", 2, f"{afar}[%r71+8];", True),
        ("the own block alone frees it", 1, "@%p2 mbarrier.arrive.shared.b64 _, [bar+8];", False),
        ("each block at its own mbarrier", 1, "@%p0 mbarrier.arrive.shared.b64 _, [bar+8];", False),
    ):
        found.append(_made(f"ring: {name}", [
            ready(1, count), "mov.u32 %r60, 0; mov.u32 %r61, 1; mov.u32 %r62, 0;",
            f"TURN: {wait('EMPTY', 'bar+8', '%r61', '%p2', '.acquire.cluster')}", expect(),
            multicast("" if right else "//@"), wait("FULL", parity="%r62"),
            f"ld.shared.u32 %r63, [%r12]; {'' if right else '//#'}", "add.u32 %r20, %r20, %r63;", SYNC, free,
            "xor.b32 %r61, %r61, 1; xor.b32 %r62, %r62, 1; add.u32 %r60, %r60, 1; setp.lt.u32 %p42, %r60, 4;",
            "@%p42 bra TURN;", MEET], right))
    return found


def _ends() -> list[ClusterProgram]:
    """No block ends while another one may still reach its shared memory."""
    found = []
    load = "ld.shared::cluster.u32 %r20, [%r16];"
    for name, steps, right in (
        ("read, barrier", [FILL, MEET, load, MEET], True),
        ("read", [FILL, MEET, load + " //@"], False),
        ("store", [FILL, MEET, "st.shared::cluster.u32 [%r16], %r40; //@"], False),
        ("read, a barrier of the block", [FILL, MEET, load + " //@", SYNC], False),
        ("read, relaxed barrier", [FILL, MEET, load, RELAXED], True),
        ("read between arrival and wait", [FILL, MEET, "barrier.cluster.arrive;", load + " //@",
                                           "barrier.cluster.wait;"], False),
        ("read, arrival at the other's mbarrier", [
            FILL, ready(THREADS), load, "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15];",
            wait("W", scope=".acquire.cluster")], True),
        ("arrival at an mbarrier of a block that does not wait", [
            ready(THREADS), "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r15]; //@"], False),
        ("a copy that its receiver waits for", [ready(), FILL, FENCE, MEET, expect(), send(), wait("W")], True),
        ("a copy that its receiver does not wait for", [ready(), FILL, FENCE, MEET, expect(), send("//@")], False),
        ("atomic", [FILL, MEET, "red.shared::cluster.add.u32 [%r16], 1; //@"], False),
        ("atomic, barrier", [FILL, MEET, "red.shared::cluster.add.u32 [%r16], 1;", MEET], True),
        ("own memory", [FILL, MEET, READ], True),
    ):
        found.append(_made(f"end: {name}", steps, right))
    return found


def _made(name: str, steps: list[str], right: bool) -> ClusterProgram:
    return ClusterProgram(name, _HEAD + "\n".join(filter(None, steps)) + _FOOT, right)


def programs() -> list[ClusterProgram]:
    """All of them."""
    return [*_loads(), *_between(), *_stores(), *_mbarriers(), *_rings(), *_ends()]
