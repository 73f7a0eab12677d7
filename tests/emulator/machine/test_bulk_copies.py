"""cp.async.bulk and cp.reduce.async.bulk on the emulator: every direction and operation against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bulk_copy_kernels import (
    BARRIER, BYTES, COPY_IN, COPY_OUT, EXPECT, FETCH, GLOBAL_ONLY, INTEGERS, LOADS, OWN, RANK, STORED, STORES, SUMS,
    TX, WAIT, module, random_bytes, run,
)

from ptxdsl import Ptr, break_if, f32, loop, ptx, ptx_kernel, shared, u64, use, when
from ptxdsl.gpu.assembler import assemble

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


@pytest.mark.parametrize("sanitize", [None, ("race", "init", "memory")])
@pytest.mark.parametrize(("left", "size", "right"), [
    (5, 64, 9), (0, 16, 15), (15, 16, 0), (8, 32, 8), (0, 48, 0), (3, 1040, 1),
])
def test_bytes_beyond_an_array_are_ignored(
    left: int, size: int, right: int, sanitize: tuple[str, ...] | None
) -> None:
    """They are not read, and what the tile holds there may be anything; the mbarrier counts them all."""
    whole = random_bytes(size + 16, size)
    start = -whole.ctypes.data % 16
    x, out = whole[start + left : start + size - right], np.zeros(size, np.uint8)
    copy = f"sub.u64 %rd0, %rd0, {left}; @%p0 cp.async.bulk.shared::cta.global.{TX}.ignore_oob [%r10], [%rd0], %r12, "
    copy += f"%r13, {right}, [%r11];\nmov.u32 %r20, %r2;\n"
    text = module(f"mov.u32 %r13, {left};{EXPECT}{copy}{WAIT}add.u32 %r10, %r10, {left}; "
                  f"add.u64 %rd1, %rd1, {left}; sub.u32 %r12, %r12, {left + right};" + COPY_OUT)
    run(text, 1, 32, x=x, out=out, n=np.uint32(size), sanitize=sanitize)
    assert out[left : size - right].tobytes() == x.tobytes()
    assert not out[:left].any()
    assert not out[size - right :].any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mask", [None, 0xFFFF, 0, 0x0001, 0xA5C3])
def test_shared_to_global(mask: int | None, size: int) -> None:
    x, out = random_bytes(size, size), np.full(size, 7, np.uint8)
    masked = ("", "") if mask is None else (".cp_mask", ", %h9")
    copy = f"cp.async.bulk.global.shared::cta.bulk_group{masked[0]} [%rd1], [%r10], %r12{masked[1]};"
    run(module(f"mov.b16 %h9, {mask or 0};\n{COPY_IN}@%p0 {copy}\n{STORED}"), 1, 96, x=x, out=out, n=np.uint32(size))
    chosen = np.resize(np.array([(0xFFFF if mask is None else mask) >> bit & 1 for bit in range(16)], bool), size)
    np.testing.assert_array_equal(out, np.where(chosen, x, 7))


@pytest.mark.parametrize("reduces", [False, True])
def test_multimem_has_one_device(reduces: bool) -> None:
    x, out = random_bytes(256), np.arange(256).astype(np.uint8)
    name, operation = ("cp.reduce", ".add.u32") if reduces else ("cp", "")
    copy = f"multimem.{name}.async.bulk.global.shared::cta.bulk_group{operation} [%rd1], [%r10], %r12;"
    wanted = x.view(np.uint32) + out.view(np.uint32) * reduces
    run(module(f"{COPY_IN}@%p0 {copy}\n{STORED}"), 1, 32, x=x, out=out, n=np.uint32(256))
    np.testing.assert_array_equal(out.view(np.uint32), wanted)


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


@pytest.mark.parametrize(("blocks", "mask"), [(4, 0b1111), (4, 0b0101), (4, 0b1000), (4, 0b0001), (16, 0xA5C3)])
@pytest.mark.parametrize("width", ["", "::16b", "::32b"])
def test_multicast(blocks: int, mask: int, width: str) -> None:
    """Block 1 sends; those of the mask find the bytes and their mbarriers complete, the others nothing."""
    size = 512
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
        ptx.fence.proxy.async_.shared__cta()
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
