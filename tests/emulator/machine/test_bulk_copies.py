"""cp.async.bulk and cp.reduce.async.bulk on the emulator: every direction against numpy, faults word for word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import THREAD, argument, buffer, kernel

from ptxdsl import Ptr, break_if, emulator, f32, loop, ptx, ptx_kernel, shared, u64, use, when
from ptxdsl.errors import (
    BarrierError, DeadlockError, EmulationError, MemoryFault, RaceError, UninitializedError,
)
from ptxdsl.gpu.assembler import assemble
from ptxdsl.launch import LaunchConfig

TX = "mbarrier::complete_tx::bytes"
BYTES = 4096
SHARED = f"""
.shared .align 16 .b8 tile[{BYTES}]; .shared .align 8 .b64 bar;
mov.u32 %r10, tile; mov.u32 %r11, bar;
ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; ld.param.u32 %r12, [n];
setp.eq.u32 %p0, %r2, 0;
@%p0 mbarrier.init.shared.b64 [bar], 1;
bar.sync 0;
"""
WAIT = "WAIT: mbarrier.try_wait.parity.shared.b64 %p31, [bar], 0;\n@!%p31 bra WAIT;\n"
EXPECT = "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12;\n"


def module(body: str) -> str:
    text = kernel("u64 x, u64 out, u32 n", THREAD + SHARED + body + "ret;")
    return text.replace(".version 8.6\n.target sm_90", ".version 9.3\n.target sm_100a")


def run(text: str, grid: int, block: int, cluster: int | None = None, **more: Any) -> None:
    config = LaunchConfig(grid, block, cluster=cluster, sanitize=more.pop("sanitize", None))
    conservative = more.pop("conservative", False)
    arguments = [argument(name, value) for name, value in more.items()]
    emulator.load(text).run("k", config, arguments, conservative=conservative)


def random_bytes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8)


COPY_OUT = """
mov.u32 %r20, %r2;
OUT: setp.ge.u32 %p30, %r20, %r12; @%p30 bra OVER;
add.u32 %r21, %r10, %r20; ld.shared.u8 %r22, [%r21]; cvt.u64.u32 %rd20, %r20; add.u64 %rd20, %rd1, %rd20;
st.global.u8 [%rd20], %r22; add.u32 %r20, %r20, %r1; bra OUT;
OVER:
"""
"""The first n bytes of the tile, by all threads."""
COPY_IN = """
mov.u32 %r20, %r2;
IN: setp.ge.u32 %p30, %r20, %r12; @%p30 bra READY;
cvt.u64.u32 %rd20, %r20; add.u64 %rd20, %rd0, %rd20; ld.global.u8 %r22, [%rd20];
add.u32 %r21, %r10, %r20; st.shared.u8 [%r21], %r22; add.u32 %r20, %r20, %r1; bra IN;
READY: fence.proxy.async.shared::cta; bar.sync 0;
"""
STORED = "@%p0 cp.async.bulk.commit_group; @%p0 cp.async.bulk.wait_group 0;\n"
SIZES = [0, 16, 32, 48, 112, 1008, 4080, 4096]


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("copy", [
    f"cp.async.bulk.shared::cluster.global.{TX} [%r10], [%rd0], %r12, [%r11];",
    f"cp.async.bulk.shared::cta.global.{TX} [tile], [%rd0], %r12, [bar];",
    f"cp.async.bulk.shared::cluster.global.{TX}.L2::cache_hint [%r10], [%rd0], %r12, [%r11], %rd9;",
    f"cp.async.bulk.relaxed.cta.shared::cta.global.{TX}.b128 [%r10], [%rd0], %r12, [%r11];",
])
def test_global_to_shared(copy: str, size: int, conservative: bool) -> None:
    x, out = random_bytes(size, size), np.zeros(BYTES, np.uint8)
    body = f"createpolicy.fractional.L2::evict_first.b64 %rd9;\n{EXPECT}@%p0 {copy}\n{WAIT}{COPY_OUT}"
    run(module(body), 1, 64, x=x, out=out, n=np.uint32(size), conservative=conservative)
    np.testing.assert_array_equal(out, np.append(x, np.zeros(BYTES - size, np.uint8)))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mask", [None, 0xFFFF, 0, 0x0001, 0xA5C3])
def test_shared_to_global(mask: int | None, size: int) -> None:
    x, out = random_bytes(size, size), np.full(size, 7, np.uint8)
    masked = ("", "") if mask is None else (".cp_mask", ", %h9")
    copy = f"cp.async.bulk.global.shared::cta.bulk_group{masked[0]} [%rd1], [%r10], %r12{masked[1]};"
    run(module(f"mov.b16 %h9, {mask or 0};\n{COPY_IN}@%p0 {copy}\n{STORED}"), 1, 96, x=x, out=out, n=np.uint32(size))
    chosen = np.resize(np.array([(0xFFFF if mask is None else mask) >> bit & 1 for bit in range(16)], bool), size)
    np.testing.assert_array_equal(out, np.where(chosen, x, 7))


def test_each_lane_copies_its_own_bytes() -> None:
    """Sizes of 0 to 15 times 16, for the lanes of a predicate."""
    x, out, sizes = random_bytes(32 * 256), np.zeros((32, 256), np.uint8), np.arange(32) % 16 * 16
    body = """
        mul.lo.u32 %r13, %r2, 128; mul.wide.u32 %rd2, %r2, 256; add.u64 %rd3, %rd0, %rd2; add.u64 %rd4, %rd1, %rd2;
        and.b32 %r14, %r2, 15; shl.b32 %r14, %r14, 4; min.u32 %r15, %r14, 128; add.u32 %r13, %r10, %r13;
        setp.ne.u32 %p2, %r2, 9;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], %r15;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r13], [%rd3], %r15, [%r11];
        bar.warp.sync -1;
        @%p0 mbarrier.arrive.shared.b64 _, [bar];
    """ + WAIT + """
        @%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r13], %r15;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;
    """
    run(module(body), 1, 32, x=x, out=out, n=np.uint32(0))
    wanted = np.where(np.arange(256) < np.minimum(sizes, 128)[:, None], x.reshape(32, 256), 0)
    wanted[9] = 0
    np.testing.assert_array_equal(out, wanted)


RANK = "mov.u32 %r30, %cluster_ctarank; add.u32 %r31, %r30, 1; rem.u32 %r31, %r31, %cluster_nctarank;\n"
BARRIER = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
OWN = "mad.wide.u32 %rd0, %r30, %r12, %rd0; mad.wide.u32 %rd1, %r30, %r12, %rd1;\n"


@pytest.mark.parametrize("size", [16, 2032, 4096])
def test_to_the_next_block_of_the_cluster(size: int) -> None:
    blocks = 4
    x, out = random_bytes(blocks * size), np.zeros((blocks, size), np.uint8)
    body = RANK.replace("%cluster_nctarank;", "4;") + OWN + f"""
        .shared .align 16 .b8 inbox[{BYTES}];
        {COPY_IN}{BARRIER}{EXPECT}
        mov.u32 %r32, inbox; mapa.shared::cluster.u32 %r32, %r32, %r31; mapa.shared::cluster.u32 %r33, %r11, %r31;
        @%p0 cp.async.bulk.shared::cluster.shared::cta.{TX} [%r32], [%r10], %r12, [%r33];
        {WAIT} mov.u32 %r10, inbox; {COPY_OUT} {BARRIER}
    """
    run(module(body), blocks, 32, blocks, x=x, out=out, n=np.uint32(size))
    np.testing.assert_array_equal(out, np.roll(x.reshape(blocks, size), 1, axis=0))


@pytest.mark.parametrize("mask", [0b1111, 0b0101, 0b1000, 0b0001])
@pytest.mark.parametrize("width", ["", "::16b", "::32b"])
def test_multicast(mask: int, width: str) -> None:
    """Block 1 sends; those of the mask find the bytes and their mbarriers complete, the others nothing."""
    size, blocks = 512, 4
    x, out = random_bytes(size), np.zeros((blocks, size), np.uint8)
    given = "%h9" if width != "::32b" else "%r40"
    body = f"""
        mov.u32 %r30, %cluster_ctarank; mov.b16 %h9, {mask}; mov.b32 %r40, {mask};
        mad.wide.u32 %rd1, %r30, %r12, %rd1;
        shr.u32 %r41, %r40, %r30; and.b32 %r41, %r41, 1; setp.eq.u32 %p5, %r41, 1; setp.eq.u32 %p6, %r30, 1;
        and.pred %p6, %p6, %p0; and.pred %p7, %p0, %p5;
        {BARRIER} @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12;
        @%p6 cp.async.bulk.shared::cluster.global.{TX}.multicast::cluster{width} [%r10], [%rd0], %r12, [%r11], {given};
        @!%p5 bra DONE; {WAIT} {COPY_OUT} DONE: {BARRIER}
    """
    text = module(body).replace(".version 9.3\n.target sm_100a", ".version 9.4\n.target sm_107a")
    run(text, blocks, 32, blocks, x=x, out=out, n=np.uint32(size))
    for rank in range(blocks):
        np.testing.assert_array_equal(out[rank], x if mask >> rank & 1 else 0)


# Reductions

NUMBERS = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}
INTEGERS = [
    "add.u32", "add.s32", "add.u64", "min.u32", "min.s32", "max.u32", "max.s32", "inc.u32", "dec.u32", "and.b32",
    "or.b32", "xor.b32",
]
GLOBAL_ONLY = [
    "min.u64", "min.s64", "max.u64", "max.s64", "and.b64", "or.b64", "xor.b64", "add.noftz.f16", "min.f16", "max.f16",
    "add.f32", "add.noftz.f32", "add.f64", "add.noftz.bf16", "min.bf16", "max.bf16",
]


def combined(operation: str, old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """What numpy makes of a reduction."""
    if operation == "add":
        return old + value
    if operation in ("min", "max", "and", "or", "xor"):
        names = {"min": "minimum", "max": "maximum"}
        return getattr(np, names.get(operation, f"bitwise_{operation}"))(old, value)
    if operation == "inc":
        return np.where(old >= value, 0, old + 1)
    return np.where((old == 0) | (old > value), value, old - 1)


def samples(kind: Any, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if np.dtype(kind).kind == "f":
        return (rng.standard_normal(count) * 8).astype(kind)
    small = rng.integers(0, 6, count).astype(kind)
    wide = rng.integers(0, 1 << 63, count, np.uint64).astype(kind)
    return np.where(rng.random(count) < 0.5, small, wide)


def bf16(values: np.ndarray) -> np.ndarray:
    """To the nearest bf16, as a float32."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


@pytest.mark.parametrize("operation", INTEGERS + GLOBAL_ONLY)
def test_reductions_to_global_memory(operation: str) -> None:
    """Two blocks of several threads, each thread once."""
    name, *_, kind = operation.split(".")
    size, threads = 176, 5
    commutes = name in ("add", "and", "or", "xor", "min", "max")
    threads = threads if commutes and kind[0] != "f" and kind != "bf16" else 1
    blocks = 2 if threads > 1 else 1
    short = kind == "bf16"
    dtype = np.float32 if short else NUMBERS[kind]
    count = size // (2 if short else np.dtype(dtype).itemsize)
    x, out = samples(dtype, count, 1), samples(dtype, count, 2)
    if short:
        x, out = bf16(x), bf16(out)
    wanted = out.copy()
    for _ in range(threads * blocks):
        wanted = combined(name, wanted, x)
    given = [(a.view(np.uint32) >> 16).astype(np.uint16) if short else a for a in (x, out)]
    wanted = bf16(wanted) if short else wanted
    body = f"""{COPY_IN}
        setp.lt.u32 %p3, %r2, {threads};
        @%p3 cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%rd1], [%r10], %r12;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    """
    run(module(body).replace(".version 9.3", ".version 9.4"), blocks, 32, x=given[0], out=given[1], n=np.uint32(size))
    found = (given[1].astype(np.uint32) << 16).view(np.float32) if short else given[1]
    np.testing.assert_array_equal(found, wanted)


def test_f32_sums_in_global_memory_flush_subnormals() -> None:
    """As red.global does; .noftz does not."""
    tiny = np.full(4, 2.0**-127, np.float32)
    for noftz, wanted in (("", 0), (".noftz", 2.0**-126)):
        x, out = tiny.copy(), tiny.copy()
        copy = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add{noftz}.f32 [%rd1], [%r10], %r12;"
        text = module(f"{COPY_IN}@%p0 {copy}\n{STORED}").replace(".version 9.3", ".version 9.4")
        run(text, 1, 32, x=x, out=out, n=np.uint32(16))
        np.testing.assert_array_equal(out, np.float32(wanted))


@pytest.mark.parametrize("operation", INTEGERS)
def test_reductions_to_another_block(operation: str) -> None:
    """Every block of the cluster into the first one, which an mbarrier tells of all of them."""
    name, kind = operation.split(".")
    dtype, blocks, size = NUMBERS[kind], 3, 240
    x = samples(dtype, blocks * size // np.dtype(dtype).itemsize, 3).reshape(blocks, -1)
    if name in ("inc", "dec"):
        x[1:] = x[0]  # other orders give other results
    out = np.zeros(x.shape[1], dtype)
    body = f"""
        .shared .align 16 .b8 sums[{BYTES}];
        mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p4, %r30, 0; and.pred %p5, %p4, %p0; mov.b32 %r50, 0;
        mov.u32 %r52, sums; FILL: add.u32 %r51, %r50, %r52; st.shared.b32 [%r51], 0; add.u32 %r50, %r50, 4;
        setp.lt.u32 %p6, %r50, {size}; @%p6 bra FILL;
        mul.wide.u32 %rd2, %r30, %r12; add.u64 %rd0, %rd0, %rd2; {COPY_IN}
        mul.lo.u32 %r34, %r12, {blocks};
        @%p5 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r34;
        {BARRIER}
        mov.u32 %r32, sums; mapa.shared::cluster.u32 %r32, %r32, 0; mapa.shared::cluster.u32 %r33, %r11, 0;
        @%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.{TX}.{operation} [%r32], [%r10], %r12, [%r33];
        @!%p4 bra DONE; {WAIT} mov.u32 %r10, sums; {COPY_OUT} DONE: {BARRIER}
    """
    run(module(body), blocks, 32, blocks, x=x, out=out, n=np.uint32(size))
    wanted = np.zeros_like(out)
    for row in x:
        wanted = combined(name, wanted, row)
    np.testing.assert_array_equal(out, wanted)


# Faults

LOADS = f"cp.async.bulk.shared::cta.global.{TX} [%r10], [%rd0], %r12, [%r11];"
STORES = "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], %r12;"
SUMS = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r10], %r12;"
FAULTS = {
    "size": (LOADS, 40, f"`cp.async.bulk.shared::cta.global.{TX}` of 40 bytes, which is no multiple of 16"),
    "reduced": (
        SUMS, 8, "`cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32` of 8 bytes, which is no multiple of 16",
    ),
    "source": (LOADS, 528, "bulk copy of 528 bytes from x[0]: x is u8[512]"),
    "inside": (f"add.u64 %rd0, %rd0, 256; {LOADS}", 272, "bulk copy of 272 bytes from x[256]: x is u8[512]"),
    "before": (f"sub.u64 %rd0, %rd0, 16; {LOADS}", 32, "bulk copy of 32 bytes from x[-16]: x is u8[512]"),
    "tile": (
        f"add.u32 %r10, %r10, 4080; {LOADS}", 32,
        "bulk copy of 32 bytes to tile[4080]: tile is b8[4096] in shared memory",
    ),
    "dest": (STORES, 1040, "bulk copy of 1040 bytes to out[0, 0]: out is f32[16, 16]"),
    "sums": (
        f"add.u64 %rd1, %rd1, 96; {SUMS}", 1024, "bulk reduction of 1024 bytes to out[1, 8]: out is f32[16, 16]",
    ),
    "null": (f"mov.u64 %rd0, 0; {LOADS}", 64, "bulk copy of 64 bytes from address 0x0, a null pointer"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    copy, size, message = FAULTS[name]
    lines = copy.replace("; ", ";\n")
    text = module(f"setp.eq.u32 %p0, %r2, 3;\n@!%p0 bra OVER;\n{lines}\nOVER:\n")
    x, out = np.zeros(512, np.uint8), np.zeros((16, 16), np.float32)
    with pytest.raises(MemoryFault) as caught:
        run(text, 1, 32, x=x, out=out, n=np.uint32(size))
    assert caught.value.message == message
    assert caught.value.thread == (3, 0, 0)
    assert caught.value.instruction == copy.rpartition("; ")[2].rstrip(";")
    assert text.splitlines()[(caught.value.ptx_line or 0) - 1].startswith("cp.")


@pytest.mark.parametrize(("change", "end"), [("add.u64 %rd0, %rd0, 8;", "from"), ("add.u32 %r10, %r10, 4;", "to")])
def test_misaligned(change: str, end: str) -> None:
    x = np.zeros(512, np.uint8)[-np.zeros(512, np.uint8).ctypes.data % 16 :]
    with pytest.raises(MemoryFault) as caught:
        run(module(f"{change} @%p0 {LOADS}"), 1, 32, x=x, out=np.zeros(1), n=np.uint32(64))
    place = "x[8]" if end == "from" else "tile[4]"
    start, rest = caught.value.message.split(" address ")
    assert start == f"bulk copy of 64 bytes {end}"
    assert rest.split(" ", 1)[1] == f"({place}): bulk copies must be aligned to 16 bytes"


def test_read_only_memory() -> None:
    x, out = np.zeros(512, np.uint8), np.zeros(64, np.uint8)
    arguments = [argument("x", x), buffer("out", out, writable=False), argument("n", np.uint32(64))]
    with pytest.raises(MemoryFault) as caught:
        emulator.load(module(f"@%p0 {STORES}")).run("k", LaunchConfig(1, 32), arguments)
    assert caught.value.message == "bulk copy of 64 bytes to out[0]: out is read-only"


def test_no_mbarrier() -> None:
    x, copy = np.zeros(512, np.uint8), LOADS.replace("%r11", "%r13")
    with pytest.raises(BarrierError) as caught:
        run(module(f"add.u32 %r13, %r10, 64; @%p0 {copy}"), 1, 32, x=x, out=x, n=np.uint32(64))
    assert caught.value.message == (
        f"`cp.async.bulk.shared::cta.global.{TX}` of tile[64]: what lies there is no mbarrier"
    )
    with pytest.raises(MemoryFault) as fault:
        run(module(f"add.u32 %r13, %r10, 4; @%p0 {copy}"), 1, 32, x=x, out=x, n=np.uint32(64))
    assert fault.value.message.endswith("(tile[4]): 8 bytes must be aligned to 8 bytes")
    with pytest.raises(MemoryFault, match=r"atomic of 8 bytes on tile\[8192\]: tile is b8\[4096\] in shared memory"):
        run(module(f"add.u32 %r13, %r10, 8192; @%p0 {copy}"), 1, 32, x=x, out=x, n=np.uint32(64))


def test_from_one_array_into_the_next() -> None:
    """A pointer of unknown origin, that no name of an array restricts."""
    table, x = np.zeros(2, np.uint64), np.zeros(64, np.uint8)
    table[0] = x.ctypes.data
    body = "ld.global.u64 %rd0, [%rd0]; @%p0 " + LOADS.replace("%r12", "128")
    with pytest.raises(MemoryFault, match="bulk copy of 128 bytes from"):
        run(module(body), 1, 32, x=table, out=x, n=np.uint32(0))


@pytest.mark.parametrize(("size", "offset", "good"), [(96, 0, True), (80, 16, True), (112, 0, False), (96, 16, False)])
def test_memory_of_malloc(size: int, offset: int, good: bool) -> None:
    """Two pieces of 96 bytes, one behind the other: a copy may not go from the first into what lies behind it."""
    piece = "{{ .param .b64 a; .param .b64 r; st.param.b64 [a], 96; call (r), malloc, (a); ld.param.b64 {}, [r]; }}\n"
    body = f"""
        @!%p0 bra OVER; {piece.format("%rd5")} {piece.format("%rd6")} st.global.u32 [%rd5+16], 7;
        add.u64 %rd0, %rd5, {offset}; {LOADS} ld.shared.u32 %r20, [tile+{16 - offset}]; st.global.u32 [%rd1], %r20;
        OVER:
    """
    text = module(body).replace(".visible", ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.visible")
    x, out = np.zeros(1), np.zeros(4, np.uint32)
    if good:
        run(text, 1, 32, x=x, out=out, n=np.uint32(size))
        assert out[0] == 7
        return
    span = f"from bytes {offset} to {offset + size - 1} of the 96 bytes"
    with pytest.raises(MemoryFault, match=f"bulk copy of {size} bytes {span}"):
        run(text, 1, 32, x=x, out=out, n=np.uint32(size))


FETCH = f"cp.async.bulk.shared::cluster.global.{TX}"
CLUSTER_FAULTS = {
    "mbarrier": (
        f"mapa.shared::cluster.u32 %r11, %r11, 1; @%p0 {FETCH} [%r10], [%rd0], 64, [%r11];",
        f"`{FETCH}` writes to block 0 of the cluster, and its mbarrier lies in block 1",
    ),
    "own": (
        "mapa.shared::cluster.u32 %r10, %r10, 1; @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r10], 64;",
        "`cp.async.bulk.global.shared::cta.bulk_group` of an address in block 1 of the cluster, executed by block 0",
    ),
    "beyond": (
        f"mov.b16 %h1, 4; @%p0 {FETCH}.multicast::cluster [%r10], [%rd0], 64, [%r11], %h1;",
        "bulk copy of 64 bytes to shared address 0x400 of block 2 of the cluster, which has 2 blocks",
    ),
}


@pytest.mark.parametrize("name", CLUSTER_FAULTS)
def test_the_wrong_block_of_a_cluster(name: str) -> None:
    copy, message = CLUSTER_FAULTS[name]
    with pytest.raises(MemoryFault) as caught:
        run(module(copy), 2, 32, 2, x=np.zeros(64, np.uint8), out=np.zeros(64, np.uint8), n=np.uint32(0))
    assert caught.value.message == message


def test_bytes_that_nobody_copies() -> None:
    with pytest.raises(DeadlockError, match="64 bytes"):
        run(module("mov.u32 %r12, 64;" + EXPECT + WAIT), 1, 32, x=np.zeros(1), out=np.zeros(1), n=np.uint32(0))


@pytest.mark.parametrize("waits", [True, False])
def test_multicast_under_the_sanitizer(waits: bool) -> None:
    """Each block has to wait at its own mbarrier: a barrier of the cluster is not enough."""
    x, out = random_bytes(256), np.zeros((4, 256), np.uint8)
    body = f"""
        mov.u32 %r30, %cluster_ctarank; mov.b16 %h9, 15; mad.wide.u32 %rd1, %r30, %r12, %rd1;
        setp.eq.u32 %p6, %r30, 1; and.pred %p6, %p6, %p0;
        {BARRIER} @%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12; {BARRIER}
        @%p6 {FETCH}.multicast::cluster [tile], [%rd0], %r12, [bar], %h9;
        {WAIT if waits else BARRIER} {COPY_OUT} {BARRIER}
    """
    arguments = {"x": x, "out": out, "n": np.uint32(256), "sanitize": frozenset(("race", "init"))}
    if waits:
        run(module(body), 4, 32, 4, **arguments)
        assert (out == x).all()
        return
    with pytest.raises(UninitializedError, match=r"load from tile\[0\], whose copy by thread \(0, 0, 0\) is not known"):
        run(module(body), 4, 32, 4, **arguments)


def test_what_stays_refused() -> None:
    copy = f"cp.async.bulk.shared::cta.global.{TX}.ignore_oob [%r10], [%rd0], 64, %r12, %r12, [%r11];"
    with pytest.raises(EmulationError, match=r"does not support `cp\.async\.bulk\.shared::cta\.global.*ignore_oob`"):
        run(module(copy), 1, 32, x=np.zeros(1), out=np.zeros(1), n=np.uint32(0))


# The sanitizer

BOTH = frozenset(("race", "init"))
IN_ORDER = "bar.sync 0;\n"
FETCH_ALL = f"{EXPECT}@%p0 {FETCH} [%r10], [%rd0], %r12, [%r11];\n"


@pytest.mark.parametrize("tools", [("init",), ("race",), ("race", "init")])
@pytest.mark.parametrize("cluster", [None, 1])
def test_a_clean_copy_in_and_out(tools: tuple[str, ...], cluster: int | None) -> None:
    """Everybody waits at the mbarrier, changes its own bytes, and one thread sends them back; twice."""
    x, out = random_bytes(1024), np.zeros(1024, np.uint8)
    change = """
        mul.lo.u32 %r20, %r2, 32; add.u32 %r20, %r20, %r10; ld.shared.u32 %r21, [%r20]; add.u32 %r21, %r21, 1;
        st.shared.u32 [%r20], %r21; fence.proxy.async.shared::cta; bar.sync 0;
    """
    again = WAIT.replace("WAIT", "AGAIN").replace("[bar], 0", "[bar], 1")
    send = f"{change}@%p0 {STORES}\n{STORED}"
    body = f"{FETCH_ALL}{WAIT}{send}{IN_ORDER}{FETCH_ALL}{again}{send}"
    run(module(body), 1, 32, cluster, x=x, out=out, n=np.uint32(1024), sanitize=frozenset(tools))
    wanted = x.copy()
    wanted.view(np.uint32)[::8] += 1
    np.testing.assert_array_equal(out, wanted)


def found(body: str, error: type[EmulationError], block: int = 64, cluster: int | None = None, **arrays: Any) -> Any:
    given = {"x": np.zeros(256, np.uint32), "out": np.zeros(256, np.uint32), "n": np.uint32(1024), **arrays}
    with pytest.raises(error) as caught:
        run(module(body), cluster or 1, block, cluster, **given, sanitize=BOTH)
    return caught.value


READ = "mul.lo.u32 %r20, %r2, 4; add.u32 %r20, %r20, %r10; ld.shared.u32 %r21, [%r20];\n"
WRITE = "mul.lo.u32 %r20, %r2, 4; add.u32 %r20, %r20, %r10; st.shared.u32 [%r20], %r2;\n"


@pytest.mark.parametrize("cluster", [None, 2])
def test_a_read_before_the_copy_is_complete(cluster: int | None) -> None:
    """Nobody waits: a barrier after the copy is not enough."""
    error = found(FETCH_ALL + IN_ORDER + READ, UninitializedError, cluster=cluster)
    assert error.message.splitlines()[0] == (
        "load from tile[0], whose copy by thread (0, 0, 0) is not known to be complete"
    )
    assert error.hint == (
        "wait first at the mbarrier that counts its bytes: `ptx.mbarrier.try_wait.parity.shared.b64(bar, parity)`"
    )


def test_a_source_that_nobody_has_written() -> None:
    error = found(f"setp.lt.u32 %p9, %r2, 32; @%p9 bra HALF; bra OVER; HALF: {WRITE} OVER: bar.sync 0; @%p0 {STORES}",
                  UninitializedError)
    assert error.message.splitlines()[0] == "bulk copy from tile[128], which nobody has written"
    assert error.instruction == f"@%p0 {STORES}".rstrip(";")


def test_races_with_plain_accesses() -> None:
    store = found(WRITE + "bar.sync 0;" + WRITE + f"@%p0 {STORES.replace('%r12', '256')}", RaceError)
    assert store.message.splitlines()[0].startswith("race on tile[")
    assert "bulk copy by thread (0, 0, 0)" in store.message
    assert "store by thread" in store.message
    load = found(FETCH_ALL.replace("%r12", "256") + READ + WAIT, RaceError)
    assert "bulk copy by thread (0, 0, 0)" in load.message
    assert "load by thread" in load.message


def test_races_in_global_memory() -> None:
    """One block copies what another one writes; reductions do not race with each other, copies do."""
    blocks = "mov.u32 %r30, %ctaid.x; setp.eq.u32 %p9, %r30, 0; @%p9 bra COPY;\n"
    write = "mul.wide.u32 %rd5, %r2, 4; add.u64 %rd5, %rd5, %rd0; st.global.u32 [%rd5], %r2; bra OVER;\n"
    body = f"{blocks}{write}COPY: {FETCH_ALL}{WAIT}OVER:\n"
    given = {"x": np.zeros(256, np.uint32), "out": np.zeros(256, np.uint32), "n": np.uint32(1024)}
    with pytest.raises(RaceError, match=r"race on x\[\d+\] in global memory: .*bulk copy by thread"):
        run(module(body), 2, 64, **given, sanitize=BOTH)
    body = COPY_IN + f"@%p0 {SUMS}\n{STORED}"
    run(module(body), 3, 64, **given, sanitize=BOTH)
    with pytest.raises(RaceError, match=r"race on out\[0\] in global memory: bulk copy by thread .* and bulk copy by"):
        run(module(COPY_IN + f"@%p0 {STORES}\n{STORED}"), 3, 64, **given, sanitize=BOTH)


def test_lanes_that_copy_to_one_place() -> None:
    error = found(f"{FETCH_ALL.replace('@%p0 cp', 'cp').replace('%r12', '64')}{WAIT}", RaceError, block=32)
    assert error.message.splitlines()[0] == (
        "race: threads (0, 0, 0) and (1, 0, 0) of one warp bulk copy to tile[0] in shared memory with one "
        "instruction; which value stays is not known"
    )


@pytest.mark.parametrize("waits", [True, False])
def test_what_another_block_sends(waits: bool) -> None:
    """Block 1 reads what block 0 has copied to it: it has to wait at its own mbarrier."""
    body = f"""
        mov.u32 %r30, %cluster_ctarank; setp.eq.u32 %p4, %r30, 0; and.pred %p5, %p4, %p0; not.pred %p6, %p4;
        {COPY_IN} .shared .align 16 .b8 inbox[{BYTES}]; and.pred %p7, %p6, %p0;
        @%p7 mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r12;
        {BARRIER}
        mov.u32 %r32, inbox; mov.u32 %r33, inbox; mapa.shared::cluster.u32 %r32, %r32, 1;
        mapa.shared::cluster.u32 %r34, %r11, 1;
        @%p5 cp.async.bulk.shared::cluster.shared::cta.{TX} [%r32], [%r10], %r12, [%r34];
        {BARRIER} @%p4 bra OVER; {WAIT if waits else ""} mov.u32 %r10, %r33; {COPY_OUT.replace("OVER:", "SENT:")
        .replace("bra OVER", "bra SENT")} OVER: {BARRIER}
    """
    x, out = random_bytes(256), np.zeros(256, np.uint8)
    if waits:
        run(module(body), 2, 32, 2, x=x, out=out, n=np.uint32(256), sanitize=BOTH)
        np.testing.assert_array_equal(out, x)
        return
    with pytest.raises(UninitializedError, match=r"load from inbox\[0\], whose copy by thread \(0, 0, 0\) is not"):
        run(module(body), 2, 32, 2, x=x, out=out, n=np.uint32(256), sanitize=BOTH)


@pytest.mark.ptxas
def test_the_assembler_takes_these_kernels() -> None:
    """All copies that stand here, in one kernel for each target."""
    copies = [LOADS, STORES, SUMS, f"{FETCH} [tile], [%rd0], 64, [bar];"]
    copies += [f"{FETCH}.multicast::cluster [%r10], [%rd0], %r12, [%r11], %h9;"]
    copies += [f"cp.async.bulk.shared::cluster.shared::cta.{TX} [%r10], [tile+32], 16, [%r11];"]
    copies += ["cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1], [%r10], %r12, %h9;"]
    copies += ["cp.async.bulk.prefetch.L2.global [%rd0], %r12;"]
    for operation in INTEGERS:
        copies += [f"cp.reduce.async.bulk.shared::cluster.shared::cta.{TX}.{operation} [%r10], [tile], %r12, [%r11];"]
    for operation in INTEGERS + GLOBAL_ONLY:
        if operation != "add.noftz.f32":
            copies += [f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%rd1], [tile], %r12;"]
    text = module("\n".join(("mov.b16 %h9, 3;", *copies, STORED, WAIT, EXPECT)))
    assert assemble(text.replace(".version 9.3", ".version 8.6"), "sm_100a")
    sent = RANK.replace("%cluster_nctarank;", "4;") + OWN + COPY_IN + BARRIER + EXPECT + WAIT + COPY_OUT
    assert assemble(module(sent).replace("sm_100a", "sm_90"), "sm_90")


@ptx_kernel
def doubled(x: Ptr[f32], y: Ptr[f32]):
    tile, bar = shared(f32, 256, align=16), shared(u64, 1)
    with when(ptx.tid.x == 0):
        ptx.mbarrier.init.shared.b64(bar, 1)
        ptx.mbarrier.arrive.expect_tx.shared.b64(bar, 1024)
        ptx["cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"](tile, x, 1024, bar)
    ptx.bar.sync(0)
    with loop():
        break_if(ptx.mbarrier.try_wait.parity.shared.b64(bar, 0))
    tile[ptx.tid.x] = tile[ptx.tid.x] * 2.0
    ptx.fence.proxy.async_()
    ptx.bar.sync(0)
    with when(ptx.tid.x == 0):
        ptx["cp.async.bulk.global.shared::cta.bulk_group"](y, tile, 1024)
        ptx.cp.async_.bulk.commit_group()
        ptx.cp.async_.bulk.wait_group(0)


@pytest.mark.parametrize("sanitize", [None, ("race", "init")])
def test_a_traced_kernel(sanitize: tuple[str, ...] | None) -> None:
    x, y = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    with use("emulator"):
        doubled.configure(1, 256, sanitize=sanitize)(x, y)
    np.testing.assert_array_equal(y, 2 * x)


SYNC = "bar.sync 0;\n"
HALVES = """
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1+128], [tile+128], 128;
@%p0 cp.async.bulk.commit_group;
"""


@pytest.mark.parametrize(("wait", "wrong"), [
    ("", [0, 128]), ("cp.async.bulk.wait_group.read 2;", [0, 128]), ("cp.async.bulk.wait_group.read 1;", [128]),
    ("cp.async.bulk.wait_group 1;", [128]), ("cp.async.bulk.wait_group.read 0;", None),
    ("cp.async.bulk.wait_group 0;", None),
])
def test_a_source_that_is_overwritten_before_it_is_read(wait: str, wrong: list[int] | None) -> None:
    """A barrier is not enough: the thread that copies waits for its groups before it."""
    body = WRITE + SYNC + HALVES + wait + SYNC + WRITE
    if wrong is None:
        run(module(body), 1, 64, x=np.zeros(1), out=np.zeros(64, np.uint32), n=np.uint32(0), sanitize=BOTH)
        return
    error = found(body, RaceError)
    assert error.message.splitlines()[0] in [
        f"race on tile[{byte}] in shared memory: store by thread ({byte // 4}, 0, 0) "
        "and bulk copy by thread (0, 0, 0) of block (0, 0, 0) are not ordered" for byte in wrong
    ]
    assert error.hint == (
        "wait first, in the thread that copies: `ptx.cp.async_.bulk.wait_group.read(0)`; "
        "then a barrier if it is another one"
    )


@pytest.mark.parametrize(("wait", "good"), [
    ("wait_group 0", True), ("wait_group.read 0", False), ("commit_group", False),
])
def test_a_destination_that_is_read_before_it_is_written(wait: str, good: bool) -> None:
    body = f"{WRITE}{SYNC}{HALVES}@%p0 cp.async.bulk.{wait};\n@%p0 ld.global.u32 %r25, [%rd1+4];"
    if good:
        run(module(body), 1, 64, x=np.zeros(1), out=np.zeros(64, np.uint32), n=np.uint32(0), sanitize=BOTH)
        return
    error = found(body, RaceError)
    assert error.message.splitlines()[0] == (
        "race on out[1] in global memory: load by thread (0, 0, 0) and bulk copy by thread (0, 0, 0) "
        "of block (0, 0, 0) are not ordered"
    )
    assert "wait_group(0)" in (error.hint or "")


def test_copies_that_a_block_ends_with() -> None:
    """They are no business of the next block, nor of the next launch."""
    body = "mov.u32 %r30, %ctaid.x; mul.wide.u32 %rd5, %r30, 256; add.u64 %rd1, %rd1, %rd5;" + WRITE + SYNC + HALVES
    out = np.zeros((5, 64), np.uint32)
    for _ in range(2):
        run(module(body), 5, 64, x=np.zeros(1), out=out, n=np.uint32(0), sanitize=BOTH)
    np.testing.assert_array_equal(out, np.tile(np.arange(64), (5, 1)))
