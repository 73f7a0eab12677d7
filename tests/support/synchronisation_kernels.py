"""Kernels whose threads are ordered by mbarriers and clusters, for the tests of both and of the sanitizer."""

from __future__ import annotations

LINEAR = """
mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ctaid.y; mov.u32 %r52, %ctaid.z; mov.u32 %r53, %nctaid.x;
mov.u32 %r54, %nctaid.y; mad.lo.u32 %r55, %r52, %r54, %r51; mad.lo.u32 %r55, %r55, %r53, %r50;
"""

ROTATE = """
.shared .align 4 .b32 cell[64]; .shared .align 4 .b32 pad;
mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank;
mov.u32 %r4, cell; mad.lo.u32 %r5, %r1, 4, %r4;
{linear} mad.lo.u32 %r6, %r55, 1000, %r1; st.shared.u32 [%r5], %r6;
barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
add.u32 %r7, %r2, 1; rem.u32 %r7, %r7, %r3;
{fetch}
barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;
ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r55, 256, %rd0; mad.wide.u32 %rd0, %r1, 4, %rd0;
st.global.u32 [%rd0], %r8; ret;
"""

FETCHES = {
    "by a shared address": "mapa.shared::cluster.u32 %r9, %r5, %r7; ld.shared::cluster.u32 %r8, [%r9];",
    "by a variable": """mapa.shared::cluster.u32 %r9, cell, %r7; mad.lo.u32 %r9, %r1, 4, %r9;
        ld.shared::cluster.u32 %r8, [%r9];""",
    "by a generic address": """cvt.u64.u32 %rd1, %r5; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r7;
        ld.u32 %r8, [%rd2];""",
    "by cvta of the variable": """cvta.shared.u64 %rd1, cell; mad.wide.u32 %rd1, %r1, 4, %rd1; mapa.u64 %rd2, %rd1, %r7;
        cvta.to.shared::cluster.u64 %rd3, %rd2; ld.shared::cluster.u32 %r8, [%rd3];""",
    "by an atomic": "mapa.shared::cluster.u32 %r9, %r5, %r7; atom.shared::cluster.add.u32 %r8, [%r9], 5;",
    "by a generic atomic": """cvt.u64.u32 %rd1, %r5; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r7;
        atom.relaxed.cluster.or.b32 %r8, [%rd2], 0;""",
}

RING = """
.shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 4 .b32 slot;
mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; mov.u32 %r1, %tid.x;
setp.ne.u32 %p0, %r1, 0; @%p0 bra READY;
mbarrier.init.shared.b64 [full], 1; mbarrier.init.shared.b64 [empty], 1; fence.mbarrier_init.release.cluster;
READY: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%p0 bra END;
add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, %r3; add.u32 %r5, %r2, %r3; sub.u32 %r5, %r5, 1; rem.u32 %r5, %r5, %r3;
mapa.shared::cluster.u32 %r6, full, %r4; mapa.shared::cluster.u32 %r7, slot, %r4;
mapa.shared::cluster.u32 %r8, empty, %r5;
mov.u32 %r9, 0; mov.u32 %r10, %r2;
LOOP:
// the number goes to the next block
and.b32 %r11, %r9, 1; xor.b32 %r12, %r11, 1;
W0: mbarrier.try_wait.parity.shared.b64 %p1, [empty], %r12; @!%p1 bra W0;
{send}
mbarrier.arrive.expect_tx.shared.b64 _, [full], 4;
W1: mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [full], %r11; @!%p1 bra W1;
ld.shared.u32 %r10, [slot]; mad.lo.u32 %r10, %r10, 3, %r2;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r8];
add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 50; @%p2 bra LOOP;
ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r2, 4, %rd0; st.global.u32 [%rd0], %r10;
END: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret;
"""

SENDS = {
    "st.async": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r7], %r10, [%r6];",
    "a store": "st.shared::cluster.u32 [%r7], %r10; mbarrier.complete_tx.shared::cluster.b64 [%r6], 4;",
    "red.async": """mov.u32 %r13, 0; xor.b32 %r14, %r10, 0; st.shared::cluster.u32 [%r7], %r13;
        red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.b32 [%r7], %r14, [%r6];""",
}

SLOT = """
.shared .align 8 .b64 full; .shared .align 8 .b64 empty; .shared .align 4 .b32 slot[32];
mov.u32 %r2, %tid.x; mov.u32 %r3, %laneid; mov.u32 %r4, slot; mad.lo.u32 %r4, %r3, 4, %r4;
setp.ne.u32 %p0, %r2, 0;
@%p0 bra READY;
mbarrier.init.shared.b64 [full], {arrivals};
mbarrier.init.shared.b64 [empty], {arrivals};
READY: bar.sync 0;
ld.param.u64 %rd0, [out]; mov.u32 %r5, 0;
setp.eq.u32 %p5, %r3, 0;
setp.ge.u32 %p1, %r2, 32;
@%p1 bra CONSUMER;
PRODUCER:
and.b32 %r6, %r5, 1; xor.b32 %r6, %r6, 1;
W0: mbarrier.{wait}.parity.shared.b64 %p2, [empty], %r6;
@!%p2 bra W0;
mad.lo.u32 %r7, %r5, %r5, %r3;
st.shared.u32 [%r4], %r7;
bar.warp.sync 0xffffffff;
{arrive} _, [full];
add.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r5, 100;
@%p3 bra PRODUCER;
ret;
CONSUMER:
and.b32 %r6, %r5, 1;
W1: mbarrier.{wait}.parity.shared.b64 %p2, [full], %r6;
@!%p2 bra W1;
ld.shared.u32 %r7, [%r4];
bar.warp.sync 0xffffffff;
{arrive} _, [empty];
mad.wide.u32 %rd1, %r5, 128, %rd0; mad.wide.u32 %rd1, %r3, 4, %rd1;
st.global.u32 [%rd1], %r7;
add.u32 %r5, %r5, 1;
setp.lt.u32 %p3, %r5, 100;
@%p3 bra CONSUMER;
ret;
"""
