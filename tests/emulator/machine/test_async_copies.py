"""cp.async, st.async, red.async, st.bulk, multimem and cluster launch control on the emulator, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import THREAD, kernel, launch, pointer

from ptxdsl.emulator.rewrite.pipeline import rewrite
from ptxdsl.errors import MemoryFault
from ptxdsl.ir import Instruction
from ptxdsl.text import parse

COPY = """
.shared .align 16 .b8 tile[1024];
mov.u32 %r10, tile; mad.lo.u32 %r10, %r2, {size}, %r10; setp.lt.u32 %p1, %r2, 20;
"""


def copied(instruction: str, size: int, more: str = "", **arguments: np.ndarray) -> np.ndarray:
    """What 32 threads find in 512 bytes of shared memory of 0xaa after a copy of ``size`` bytes each."""
    out = np.zeros((32, size), np.uint8)
    fill = "".join(f"st.shared.u8 [%r10+{n}], 170;" for n in range(size))
    fetch = "".join(f"ld.shared.u8 %r12, [%r10+{n}]; st.global.u8 [%rd1+{n}], %r12;" for n in range(size))
    names = "u64 x, u64 out" + "".join(f", u64 {name}" for name in arguments if name != "x")
    start = THREAD + COPY.replace("{size}", str(size)) + pointer("%rd0", "x", size=size)
    body = start + pointer("%rd1", "out", size=size) + more + fill + instruction + f"""
        cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; {fetch} ret;
    """
    launch(kernel(names, body), 1, 32, x=arguments.pop("x"), out=out, **arguments)
    return out


@pytest.mark.parametrize("plain", ["", "@%p1 ", "@!%p1 "])
@pytest.mark.parametrize(("level", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_cp_async_of_every_size(level: str, size: int, plain: str) -> None:
    x = np.random.default_rng(size).integers(0, 256, (32, size), np.uint8)
    out = copied(f"{plain}cp.async.{level}.shared.global [%r10], [%rd0], {size};", size, x=x)
    runs = np.arange(32) < 20
    chosen = {"": runs | True, "@%p1 ": runs, "@!%p1 ": ~runs}[plain]
    np.testing.assert_array_equal(out, np.where(chosen[:, None], x, 170))


@pytest.mark.parametrize("guard", ["", "@%p1 "])
@pytest.mark.parametrize(("level", "size"), [("ca", 4), ("ca", 8), ("cg", 16)])
def test_cp_async_of_the_first_bytes(level: str, size: int, guard: str) -> None:
    """Each lane has its own number of bytes, 0 of them from nowhere; the array ends with the last that is used."""
    used = np.random.default_rng(7).integers(0, size + 1, 32).astype(np.uint32)
    used[[3, 31]] = 0
    used[30] = size - 1
    x = np.random.default_rng(size).integers(0, 256, 31 * size - 1, np.uint8)
    more = pointer("%rd2", "used") + "ld.global.u32 %r11, [%rd2]; setp.eq.u32 %p3, %r11, 0; @%p3 mov.u64 %rd0, 16;"
    text = f"{guard}cp.async.{level}.shared.global.L2::128B [%r10], [%rd0], {size}, %r11;"
    out = copied(text, size, more, x=x, used=used)
    whole = np.resize(np.append(x, np.zeros(size + 1, np.uint8)), (32, size))
    wanted = np.where(np.arange(size) < used[:, None], whole, 0)
    np.testing.assert_array_equal(out, np.where((np.arange(32) < (20 if guard else 32))[:, None], wanted, 170))


@pytest.mark.parametrize(("size", "choice", "in_part"), [
    (16, "mov.u32 %r13, 16; selp.b32 %r11, %r13, 0, %p3;", False),  # as compilers choose between all and none
    (4, "selp.b32 %r11, 0, 8, %p4;", False),
    (4, "mov.u32 %r11, 4; @%p4 mov.u32 %r11, 3;", True),
    (8, "selp.b32 %r11, 8, 0, %p3; shr.u32 %r11, %r11, 1;", True),
])
def test_cp_async_of_all_bytes_or_none_reads_no_single_bytes(size: int, choice: str, in_part: bool) -> None:
    x = np.random.default_rng(size).integers(0, 256, (20, size), np.uint8)
    more = f"setp.lt.u32 %p3, %r2, 20; not.pred %p4, %p3; {choice} @%p4 mov.u64 %rd0, 16; @%p4 mov.u32 %r11, 0;"
    text = f"cp.async.ca.shared.global [%r10], [%rd0], {size}, %r11;"
    used = np.where(np.arange(32) < 20, size // 2 if "shr" in choice else size, 0)
    wanted = np.where(np.arange(size) < used[:, None], np.resize(np.append(x, x), (32, size)), 0)
    np.testing.assert_array_equal(copied(text, size, more, x=x), wanted)
    module = parse(kernel("u64 x", more + text + "ret;"))
    statements = rewrite(module, module.function("k"), None).instructions()
    assert any(isinstance(s, Instruction) and s.form.mnemonic == "ld.global.u8" for s in statements) == in_part


def test_cp_async_with_a_number_of_bytes() -> None:
    x = np.random.default_rng(1).integers(0, 256, (32, 16), np.uint8)
    for used in (0, 5, 16):
        out = copied(f"cp.async.cg.shared.global [%r10], [%rd0], 16, {used};", 16, x=x)
        np.testing.assert_array_equal(out, np.where(np.arange(16) < used, x, 0))


@pytest.mark.parametrize("ignore", ["%p1", "!%p1"])
def test_cp_async_that_ignores_its_source(ignore: str) -> None:
    x = np.random.default_rng(5).integers(0, 256, (32, 8), np.uint8)
    out = copied(f"cp.async.ca.shared.global [%r10], [%rd0], 8, {ignore};", 8, x=x)
    np.testing.assert_array_equal(out, np.where(((np.arange(32) < 20) == (ignore == "!%p1"))[:, None], x, 0))


def test_cp_async_out_of_bounds_and_misaligned() -> None:
    with pytest.raises(MemoryFault, match=r"load of 16 bytes from x\[31, 0\]: x is u8\[31, 16\]"):
        copied("cp.async.cg.shared.global [%r10], [%rd0], 16;", 16, x=np.zeros((31, 16), np.uint8))
    with pytest.raises(MemoryFault, match="16 bytes must be aligned to 16 bytes"):
        copied("cp.async.cg.shared.global [%r10+8], [%rd0], 16;", 16, x=np.zeros((32, 16), np.uint8))


@pytest.mark.parametrize("noinc", [True, False])
def test_a_copy_arrives_at_an_mbarrier(noinc: bool) -> None:
    x, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    launch(kernel("u64 x, u64 out", THREAD + pointer("%rd0", "x") + pointer("%rd1", "out") + f"""
        .shared .align 8 .b64 bar; .shared .align 16 .b32 tile[64];
        mov.u32 %r10, tile; mad.lo.u32 %r10, %r2, 4, %r10; setp.ne.u32 %p0, %r2, 0;
        @!%p0 mbarrier.init.shared.b64 [bar], 64;
        bar.sync 0;
        cp.async.ca.shared.global [%r10], [%rd0], 4;
        cp.async.mbarrier.arrive{".noinc" if noinc else ""}.shared.b64 [bar];
        {"" if noinc else "mbarrier.arrive.shared.b64 _, [bar];"}
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
        @!%p1 bra WAIT;
        xor.b32 %r11, %r2, 63; mov.u32 %r10, tile; mad.lo.u32 %r10, %r11, 4, %r10;
        ld.shared.u32 %r12, [%r10]; st.global.u32 [%rd1], %r12; ret;
    """), 1, 64, x=x, out=out)
    assert out.tolist() == list(range(63, -1, -1))


TRANSACTION = """
.shared .align 16 .b64 cell[2]; .shared .align 8 .b64 bar;
st.shared.v2.u64 [cell], {{100, 100}};
mbarrier.init.shared.b64 [bar], 1;
mov.u32 %r1, cell; mov.u32 %r2, bar; mov.u64 %rd3, 0x300000005; mov.b32 %r5, 77; mov.b32 %r6, 0xfffffff0;
mbarrier.arrive.expect_tx.shared.b64 _, [bar], {nbytes};
{line}
mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;
ld.shared.v2.u64 {{%rd1, %rd2}}, [cell];
selp.u64 %rd5, 1, 0, %p1;
ld.param.u64 %rd0, [out]; st.global.u64 [%rd0], %rd1; st.global.u64 [%rd0+8], %rd2; st.global.u64 [%rd0+16], %rd5; ret;
"""
STORES = {
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1+8], %r5, [%r2];": (4, 100, 77),
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r1], %rd3, [%r2];": (8, 0x300000005, 100),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%r1], {%r5, %r5}, [%r2];": (8, 77 << 32 | 77, 100),
    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r1], {%r5, %r5, %r6, %r5}, [%r2];":
        (16, 77 << 32 | 77, 77 << 32 | 0xFFFFFFF0),
}
_RED = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
STORES |= {
    f"{_RED}.add.u32 [%r1], %r6, [%r2];": (4, 84, 100),
    f"{_RED}.add.u64 [%r1], %rd3, [%r2];": (8, 100 + 0x300000005, 100),
    f"{_RED}.min.u32 [%r1], %r5, [%r2];": (4, 77, 100),
    f"{_RED}.min.s32 [%r1], %r6, [%r2];": (4, 0xFFFFFFF0, 100),
    f"{_RED}.max.s32 [%r1], %r6, [%r2];": (4, 100, 100),
    f"{_RED}.xor.b32 [%r1], %r5, [%r2];": (4, 100 ^ 77, 100),
    f"{_RED}.inc.u32 [%r1], %r5, [%r2];": (4, 0, 100),
    f"{_RED}.dec.u32 [%r1], %r6, [%r2];": (4, 99, 100),
}


@pytest.mark.parametrize("line", STORES)
def test_stores_and_reductions_that_an_mbarrier_counts(line: str) -> None:
    nbytes, *wanted = STORES[line]
    out = np.zeros(3, np.uint64)
    launch(kernel("u64 out", TRANSACTION.format(nbytes=nbytes, line=line)), 1, 1, out=out)
    assert out.tolist() == [*wanted, 1]
    launch(kernel("u64 out", TRANSACTION.format(nbytes=nbytes + 4, line=line)), 1, 1, out=out)
    assert out.tolist() == [*wanted, 0]


GLOBAL = {
    "st.async.release.gpu.global.u16 [%rd0], %h1;": 0x1000_0000_0000_BEEF,
    "st.async.mmio.release.sys.global.b64 [%rd0], %rd1;": 0x12345,
    "red.async.release.gpu.global.add.u64 [%rd0], %rd1;": 0x1000_0000_0001_2345,
    "red.async.release.sys.global.add.s64 [%rd0], %rd1;": 0x1000_0000_0001_2345,
    "red.async.mmio.release.sys.global.or.b32 [%rd0], %r1;": 0x1000_0000_0000_0007,
    "multimem.st.async.release.gpu.global.b32 [%rd0], %r1;": 0x1000_0000_0000_0007,
    "multimem.red.async.release.gpu.global.add.u32 [%rd0], %r1;": 0x1000_0000_0000_0007,
    "multimem.st.relaxed.gpu.global.u64 [%rd0], %rd1;": 0x12345,
    "multimem.red.release.sys.global.max.u64 [%rd0], %rd1;": 0x1000_0000_0000_0000,
    "multimem.red.add.u64 [%rd0], %rd1;": 0x1000_0000_0001_2345,
    "multimem.ld_reduce.relaxed.sys.global.min.s64 %rd2, [%rd0]; add.u64 %rd2, %rd2, 9; st.global.u64 [%rd0], %rd2;":
        0x1000_0000_0000_0009,
    "multimem.ld_reduce.global.add.v2.f16x2 {%r2, %r3}, [%rd0]; st.global.v2.u32 [%rd0], {%r3, %r2};": 0x1000_0000,
    "multimem.st.global.v2.f16x2 [%rd0], {%r1, %r4};": 0x3C00_4000_0000_0007,
    "multimem.red.global.add.v4.f16 [%rd0], {%h2, %h3, %h2, %h2};": 0x3C00_3C00_4000_3C00,
    "multimem.red.global.add.v2.f32 [%rd0], {%f1, %f1};": 0x3F80_0000_3F80_0000,
}


@pytest.mark.parametrize("line", GLOBAL)
def test_one_device_is_all_devices(line: str) -> None:
    x = np.array([0x1000_0000_0000_0000], np.uint64)
    text = kernel("u64 x", """
        mov.b16 %h1, 0xbeef; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0x4000; mov.u32 %r1, 7; mov.u32 %r4, 0x3c004000;
        mov.u64 %rd1, 0x12345; mov.f32 %f1, 0f3F800000; ld.param.u64 %rd0, [x];
    """ + line + "ret;").replace(".version 8.6", ".version 9.3").replace("sm_90", "sm_100")
    launch(text, 1, 1, x=x)
    assert hex(x[0]) == hex(GLOBAL[line])


@pytest.mark.parametrize("size", [0, 8, 64, 128])
def test_st_bulk(size: int) -> None:
    out = np.zeros(18, np.uint64)
    launch(kernel("u64 out", f"""
        .shared .align 16 .b64 tile[18];
        mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mad.lo.u32 %r2, %r1, 8, %r2; mov.u64 %rd3, -1;
        st.shared.u64 [%r2], %rd3;
        bar.sync 0;
        setp.eq.u32 %p1, %r1, 3; mov.u32 %r4, tile; mov.u64 %rd4, {size};
        @%p1 st.bulk.weak.shared::cta [%r4+8], %rd4, 0;
        bar.sync 0;
        ld.shared.u64 %rd5, [%r2]; ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r1, 8, %rd0;
        st.global.u64 [%rd0], %rd5; ret;
    """).replace("sm_90", "sm_100"), 1, 18, out=out)
    inside = (np.arange(18) >= 1) & (np.arange(18) < 1 + size // 8)
    np.testing.assert_array_equal(out, np.where(inside, np.uint64(0), np.uint64(0xFFFF_FFFF_FFFF_FFFF)))


def test_cluster_launch_control_has_no_work_to_give() -> None:
    out = np.full(3, 9, np.uint32)
    launch(kernel("u64 out", """
        .reg .b128 %rq<2>; .shared .align 16 .b64 answer[2]; .shared .align 8 .b64 bar;
        mbarrier.init.shared.b64 [bar], 1; mov.u32 %r1, answer; mov.u32 %r2, bar;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
        clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];
        WAIT: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra WAIT;
        ld.shared.b128 %rq1, [answer];
        clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %rq1;
        selp.u32 %r3, 1, 0, %p2; ld.param.u64 %rd0, [out]; st.global.u32 [%rd0], %r3; ret;
    """).replace("sm_90", "sm_100"), 1, 1, out=out)
    assert out[0] == 0


WISHES = {
    "discard.global.L2 [%rd0], 128;": None, "applypriority.L2::evict_normal [%rd0+128], 128;": None,
    "prefetch.global.L1 [%rd0+100000];": None, "prefetchu.L1 [%rd0];": None, "prefetch.L2 [%rd0];": None,
    "discard.global.L2 [%rd0+256], 128;": "store of 128 bytes to x[64]: x is u32[64]",
    "applypriority.global.L2::evict_normal [%rd0+64], 128;":
        "load from address {0:#x} (x[16]): 128 bytes must be aligned to 128 bytes",
}


@pytest.mark.parametrize("line", WISHES)
def test_wishes_about_caches(line: str) -> None:
    """They change nothing, but memory that is to be discarded or kept must be there."""
    memory = np.arange(128, dtype=np.uint32)
    x = memory[-memory.ctypes.data % 128 // 4 :][:64]
    before, text = x.copy(), kernel("u64 x", f"ld.param.u64 %rd0, [x];\n{line}\nret;")
    wanted = WISHES[line]
    if wanted is None:
        launch(text, 1, 32, x=x)
        np.testing.assert_array_equal(x, before)
        return
    with pytest.raises(MemoryFault) as caught:
        launch(text, 1, 32, x=x)
    assert caught.value.message == wanted.format(x.ctypes.data + 64)
