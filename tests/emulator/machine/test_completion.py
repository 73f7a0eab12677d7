"""Asynchronous operations complete late, or when a seed draws it: a missing wait is seen, a right program stays right.

Each program is a wrong one beside its right twin: another wait, or one at another place.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from emulator_harness import THREAD, kernel

import ptxdsl
from ptxdsl import Array, bf16, break_if, f32, loop, ptx, ptx_kernel, reg, shared, tensor_map, u32, u64, when
from ptxdsl.isa.instruction_descriptors import Product, Variant, encode
from ptxdsl.isa.matrix_descriptors import descriptor

BYTES = 4096
START = """
.shared .align 1024 .b8 tile[4096]; .shared .align 8 .b64 bar, free;
mov.u32 %r10, tile; mov.u32 %r11, bar; shl.b32 %r12, %r2, 4; add.u32 %r13, %r10, %r12;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; cvt.u64.u32 %rd5, %r12;
add.u64 %rd2, %rd0, %rd5; add.u64 %rd3, %rd1, %rd5; setp.eq.u32 %p0, %r2, 0; mov.b64 %rd7, m; cvta.param.u64 %rd7, %rd7;
add.u64 %rd6, %rd1, 2048;
.reg .f32 %d<4>; .reg .pred %yes;
@%p0 mbarrier.init.shared.b64 [bar], 1; @%p0 mbarrier.init.shared.b64 [free], 1;
bar.sync 0;
"""
TX = "mbarrier::complete_tx::bytes"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 1024;\n"
LOAD = EXPECT + f"@%p0 cp.async.bulk.shared::cluster.global.{TX} [%r10], [%rd0], 1024, [%r11];\n"
BOX = EXPECT + f"@%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.{TX} [%r10], [%rd7, {{0}}], [%r11];\n"
WAIT = "W{0}: mbarrier.try_wait.parity.shared.b64 %p31, [bar], {1};\n@!%p31 bra W{0};\n"
SEEN = "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r13]; st.global.v4.b32 [%rd3], {%r20, %r21, %r22, %r23};\n"
FILL = """ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [%rd2]; st.shared.v4.b32 [%r13], {%r20, %r21, %r22, %r23};
fence.proxy.async.shared::cta; bar.sync 0;
"""
STORE = "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 1024;\n"
SUM = "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r10], 1024;\n"
BACK = "@%p0 cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd7, {0}], [%r10];\n"
ADD = "@%p0 cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%rd7, {0}], [%r10];\n"
COMMIT = "@%p0 cp.async.bulk.commit_group;\n"
READ = "@%p0 ld.global.b32 %r24, [%rd1]; @%p0 st.global.b32 [%rd1+1024], %r24;\n"
OTHER = "bar.sync 0; st.shared.v4.b32 [%r13], {%r2, %r2, %r2, %r2};\n"
COPY = "cp.async.cg.shared.global [%r13], [%rd2], 16;\n"
TAKE = "cp.async.mbarrier.arrive.noinc.shared.b64 [bar];\n"
ALL = "@%p0 mbarrier.init.shared.b64 [bar], 128; bar.sync 0;\n"
SEND = EXPECT.replace("1024", "16") + """@%p0 ld.global.v4.b32 {%r24, %r25, %r26, %r27}, [%rd0];
@%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r10], {%r24, %r25, %r26, %r27}, [%r11];
"""
COUNT = EXPECT.replace("1024", "512") + """st.shared.b32 [%r13], %r2; bar.sync 0;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r13], 7, [%r11];
"""
PRODUCT = f"""wgmma.fence.sync.aligned; setp.eq.u32 %yes, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}},
  {descriptor(1024, 128, 256, 16)}, {descriptor(1024, 128, 256, 16)}, %yes, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
"""
HELD = f"""wgmma.fence.sync.aligned; setp.eq.u32 %yes, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}},
  {{%r20, %r21, %r22, %r23}}, {descriptor(1024, 128, 256, 16)}, %yes, 1, 1, 0;
wgmma.commit_group.sync.aligned;
"""
DONE = "wgmma.wait_group.sync.aligned 0;\n"
SUMS = "st.global.v4.f32 [%rd3], {%d0, %d1, %d2, %d3};\n"
ZEROS = "".join(f"mov.f32 %d{n}, 0f00000000;" for n in range(4))


class Twins(NamedTuple):
    """Two programs; ``late`` where the wrong one shows without a seed."""

    wrong: str
    right: str
    late: bool = True


def _source(operation: str, wait: str) -> Twins:
    """The source of an operation is overwritten, with and without a wait."""
    return Twins(FILL + operation + COMMIT + OTHER, FILL + operation + COMMIT + wait + OTHER)


_RING = """setp.ge.u32 %p1, %r2, 32; @%p1 bra READER; {load} {wait} {again} bra OVER;
READER: {first} {seen} {gives} OVER:
"""


def _ring(waits: bool) -> str:
    """One warp loads a stage twice, the others read it once, and say so."""
    again = "bar.warp.sync -1; F: mbarrier.try_wait.parity.shared.b64 %p30, [free], 0;\n@!%p30 bra F;" if waits else ""
    start = "@%p0 mbarrier.init.shared.b64 [free], 96; bar.sync 0; add.u64 %rd6, %rd0, 1024;"
    return start + _RING.format(
        load=LOAD, wait=WAIT.format(0, 0), again=again + LOAD.replace("[%rd0]", "[%rd6]"),
        first=WAIT.format(1, 0), seen=SEEN, gives="mbarrier.arrive.shared.b64 _, [free];",
    )


GROUPS = "@%p0 cp.async.bulk.wait_group{} {};\n"
PROGRAMS = {
    "bulk copy": Twins(LOAD + "bar.sync 0;" + SEEN, LOAD + WAIT.format(0, 0) + SEEN),
    "bulk copy, the phase before": Twins(LOAD + WAIT.format(0, 1) + SEEN, LOAD + WAIT.format(0, 0) + SEEN),
    "tensor load": Twins(BOX + "bar.sync 0;" + SEEN, BOX + WAIT.format(0, 0) + SEEN),
    "a stage is loaded while it is read": Twins(_ring(False), _ring(True), late=False),
    "bulk store": _source(STORE, GROUPS.format(".read", 0)),
    "bulk store, one group too many": Twins(
        FILL + STORE + COMMIT + GROUPS.format(".read", 1) + OTHER, FILL + STORE + COMMIT + GROUPS.format("", 0) + OTHER
    ),
    "bulk store, not committed": Twins(
        FILL + STORE + GROUPS.format("", 0) + OTHER, FILL + STORE + COMMIT + GROUPS.format("", 0) + OTHER
    ),
    "bulk reduction": _source(SUM, GROUPS.format(".read", 0)),
    "tensor store": _source(BACK, GROUPS.format(".read", 0)),
    "tensor reduction": _source(ADD, GROUPS.format(".read", 0)),
    "only the source is read": Twins(*(
        FILL + STORE + COMMIT + GROUPS.format(read, 0) + READ for read in (".read", "")
    )),
    "only the box is read": Twins(*(FILL + BACK + COMMIT + GROUPS.format(read, 0) + READ for read in (".read", ""))),
    "the group before": Twins(*(
        FILL + STORE + COMMIT + STORE.replace("[%rd1]", "[%rd6]") + COMMIT + GROUPS.format(".read", left) + OTHER
        for left in (1, 0)
    )),
    "cp.async": Twins(COPY + "cp.async.commit_group;" + SEEN, COPY + "cp.async.wait_all;" + SEEN, late=False),
    "cp.async, one group too many": Twins(*(
        COPY + f"cp.async.commit_group; cp.async.wait_group {left};" + SEEN for left in (1, 0)
    ), late=False),
    "cp.async, for others": Twins(
        ALL + COPY + "mbarrier.arrive.shared.b64 _, [bar];" + WAIT.format(0, 0) + SEEN,
        ALL + COPY + TAKE + WAIT.format(0, 0) + SEEN, late=False,
    ),
    "cp.async, one more arrival": Twins(
        ALL + COPY + "mbarrier.arrive.shared.b64 _, [bar];" + WAIT.format(0, 0) + SEEN,
        ALL + COPY + TAKE.replace(".noinc", "") + "mbarrier.arrive.shared.b64 _, [bar];" + WAIT.format(0, 0) + SEEN,
        late=False,
    ),
    "st.async": Twins(SEND + "bar.sync 0;" + SEEN, SEND + WAIT.format(0, 0) + SEEN, late=False),
    "red.async": Twins(COUNT + "bar.sync 0;" + SEEN, COUNT + WAIT.format(0, 0) + SEEN, late=False),
    "accumulators": Twins(FILL + ZEROS + PRODUCT + SUMS, FILL + ZEROS + PRODUCT + DONE + SUMS),
    "accumulators, one group too many": Twins(*(
        FILL + ZEROS + PRODUCT + DONE.replace("0", str(left)) + SUMS for left in (1, 0)
    )),
    "a tile is overwritten": Twins(
        FILL + ZEROS + PRODUCT + OTHER + DONE + SUMS, FILL + ZEROS + PRODUCT + DONE + OTHER + SUMS
    ),
    "rows in registers are overwritten": Twins(
        FILL + ZEROS + HELD + "mov.b32 %r21, %r2;" + DONE + SUMS + "st.global.b32 [%rd3+2048], %r21;",
        FILL + ZEROS + HELD + DONE + "mov.b32 %r21, %r2;" + SUMS + "st.global.b32 [%rd3+2048], %r21;",
    ),
}


@cache
def _module(body: str) -> Any:
    text = kernel("u64 x, u64 out", THREAD + START + body + "ret;").replace("sm_90", "sm_90a")
    return ptxdsl.load(text.replace("(.param .u64 x", "(.param .align 64 .b8 m[128], .param .u64 x"))["k"]


def _run(body: str, seed: int | None) -> bytes:
    x = np.random.default_rng(5).standard_normal(BYTES // 2).astype(np.float16)
    out = np.zeros(BYTES, np.uint8)
    tensor = out[:1024] if BACK in body or ADD in body else x[:512]
    launch = _module(body).configure(1, 128, backend="emulator", seed=seed)
    try:
        launch(tensor_map(tensor.view(np.int32), (256,)), x, out)
    except ptxdsl.DeadlockError:
        return b"deadlock"
    return out.tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_missing_wait_is_seen(name: str) -> None:
    twins = PROGRAMS[name]
    wanted = _run(twins.right, None)
    assert wanted != b"deadlock"
    assert {_run(twins.right, seed) for seed in range(8)} == {wanted}
    assert (_run(twins.wrong, None) != wanted) == twins.late
    assert any(_run(twins.wrong, seed) != wanted for seed in range(20))


_HIGH = 0x40004040
"""Of a descriptor: 8 rows are 1024 bytes, swizzled by 128."""


@ptx_kernel
def _tensor_product(c: Array[f32, 2], *, waits: bool, overwrites: bool) -> None:
    """Ones times ones into tensor memory: 16 in each cell. Nobody waits for the first of its two commits."""
    tile, done, home = shared(bf16, 128 * 64, align=1024), shared(u64, 1), shared(u32, 1)
    unasked = shared(u64, 1)
    thread = ptx.tid.x
    for first in range(0, 128 * 64, 128):
        tile[first + thread] = reg(bf16, 1.0)
    with when(thread == 0):
        ptx.mbarrier.init.shared.b64(done, 1)
        ptx.mbarrier.init.shared.b64(unasked, 1)
    ptx.fence.proxy.async_.shared__cta()
    with when(thread < 32):
        ptx["tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32"](home, 32)
    ptx["tcgen05.fence::before_thread_sync"]()
    ptx.bar.sync(0)
    ptx["tcgen05.fence::after_thread_sync"]()
    cells = home[0]
    with when(thread == 0):
        low = (tile.address.bits(u32) >> 4 & 0x3FFF) | 0x10000
        at, word = low.to(u64) | (_HIGH << 32), encode(Variant("f16"), Product(128, 16, 16, "f32", ("bf16", "bf16")))
        ptx["tcgen05.mma.cta_group::1.kind::f16"](cells, at, at, reg(u32, word), thread != 0)
        ptx["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"](unasked)
        ptx["tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64"](done)
    if waits:
        with loop():
            break_if(ptx.mbarrier.try_wait.parity.shared.b64(done, 0))
    if overwrites:
        tile[thread] = reg(bf16, 2.0)
        ptx.fence.proxy.async_.shared__cta()
        ptx.bar.sync(0)
        with loop():
            break_if(ptx.mbarrier.try_wait.parity.shared.b64(done, 0))
    ptx["tcgen05.fence::after_thread_sync"]()
    values = ptx["tcgen05.ld.sync.aligned.32x32b.x16.b32"](cells + (thread >> 5 << 21))
    ptx["tcgen05.wait::ld.sync.aligned"]()
    for number, value in enumerate(values):
        c[thread, number] = value.bits(f32)
    ptx.bar.sync(0)
    if waits:
        with when(thread == 0):
            ptx.mbarrier.inval.shared.b64(unasked)
    with when(thread < 32):
        ptx["tcgen05.dealloc.cta_group::1.sync.aligned.b32"](cells, 32)


@pytest.mark.parametrize(("waits", "overwrites"), [(True, False), (True, True), (False, False), (False, True)])
def test_products_in_tensor_memory(waits: bool, overwrites: bool) -> None:
    """They are right where the commit's mbarrier is waited for before they, or the tiles, are touched."""
    right = []
    for seed in (None, *range(8)):
        c = np.zeros((128, 16), np.float32)
        launch = _tensor_product.configure(1, 128, backend="emulator", seed=seed)
        try:
            launch(c, waits=waits, overwrites=overwrites)
        except ptxdsl.EmulationError:  # tcgen05.ld of what is not complete
            c[:] = 0
        right.append(bool((c == 16).all()))
    assert all(right) if waits else not right[0] and not all(right[1:])
