"""The emulator's engine: launches, memory, the lanes of a warp, barriers; against numpy and Python."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import THREAD, kernel, launch, pointer

from ptxdsl.emulator.runtime import alone
from ptxdsl.errors import EmulationError


SEEDS = [1, 2]


def fresh(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", [1, 31, 32, 33, 255, 1000, 4097])
@pytest.mark.parametrize("block", [1, 17, 32, 96, 256])
def test_saxpy_of_any_size(n: int, block: int) -> None:
    rng = fresh(n * 1000 + block)
    x, y = rng.random(n, np.float32), rng.random(n, np.float32)
    wanted = np.float32(2.5) * x.astype(np.float64) + y
    text = kernel("u32 n, f32 a, u64 x, u64 y", THREAD + """
        ld.param.u32 %r3, [n];
        setp.ge.u32 %p0, %r0, %r3;
        @%p0 bra END;
    """ + pointer("%rd0", "x") + pointer("%rd1", "y") + """
        ld.param.f32 %f0, [a];
        ld.global.f32 %f1, [%rd0];
        ld.global.f32 %f2, [%rd1];
        fma.rn.f32 %f2, %f0, %f1, %f2;
        st.global.f32 [%rd1], %f2;
        END: ret;
    """)
    launch(text, -(-n // block), block, n=np.uint32(n), a=np.float32(2.5), x=x, y=y)
    np.testing.assert_array_equal(y, wanted.astype(np.float32))


BLOCKS = [(4, 3, 2), (16, 16), (8, 4, 4), (5, 7, 3), (64, 2), (1, 1, 40), (2, 64), (33, 2, 3), (32, 3)]


@pytest.mark.parametrize("block", BLOCKS)
def test_indices_in_three_dimensions(block: tuple[int, ...]) -> None:
    shape = (*block, 1, 1)[:3]
    grid = (2, 3, 2)
    threads = shape[0] * shape[1] * shape[2]
    out = np.full((12 * threads, 6), 0xDEAD, np.uint32)
    body = """
        mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z;
        mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.z;
        mov.u32 %r6, %ntid.x; mov.u32 %r7, %ntid.y; mov.u32 %r8, %ntid.z;
        mov.u32 %r9, %nctaid.x; mov.u32 %r10, %nctaid.y;
        mad.lo.u32 %r11, %r2, %r7, %r1; mad.lo.u32 %r11, %r11, %r6, %r0;
        mad.lo.u32 %r12, %r5, %r10, %r4; mad.lo.u32 %r12, %r12, %r9, %r3;
        mul.lo.u32 %r13, %r6, %r7; mul.lo.u32 %r13, %r13, %r8;
        mad.lo.u32 %r14, %r12, %r13, %r11;
    """ + pointer("%rd0", "out", "%r14", 24) + """
        st.global.v2.u32 [%rd0], {%r0, %r1}; st.global.v2.u32 [%rd0+8], {%r2, %r3};
        st.global.v2.u32 [%rd0+16], {%r4, %r5};
        ret;
    """
    launch(kernel("u64 out", body), grid, block, out=out)
    wanted = [
        (x, y, z, bx, by, bz)
        for bz in range(2) for by in range(3) for bx in range(2)
        for z in range(shape[2]) for y in range(shape[1]) for x in range(shape[0])
    ]
    np.testing.assert_array_equal(out, np.array(wanted, np.uint32))


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_and_scatter(seed: int) -> None:
    rng = fresh(seed)
    n = 777
    order = rng.permutation(n).astype(np.uint32)
    x, out = rng.integers(0, 1 << 63, n, np.uint64), np.zeros(n, np.uint64)
    text = kernel("u32 n, u64 order, u64 x, u64 out", THREAD + """
        ld.param.u32 %r3, [n];
        setp.lt.u32 %p0, %r0, %r3;
        @!%p0 bra END;
    """ + pointer("%rd0", "order") + "ld.global.u32 %r4, [%rd0];" + pointer("%rd1", "x", "%r4", 8)
        + pointer("%rd2", "out", "%r4", 8) + """
        ld.global.u64 %rd3, [%rd1];
        add.u64 %rd3, %rd3, 1;
        st.global.u64 [%rd2], %rd3;
        END: exit;
    """)
    launch(text, 7, 128, n=np.uint32(n), order=order, x=x, out=out)
    np.testing.assert_array_equal(out, x + np.uint64(1))


_KINDS = ["u8", "s8", "u16", "s16", "u32", "s32", "b64"]


@pytest.mark.parametrize(("kind", "vector"), [(k, v) for k in _KINDS for v in (1, 2, 4) if int(k[1:]) * v <= 128])
def test_widths_and_vectors(kind: str, vector: int) -> None:
    bits = int(kind[1:])
    rng = fresh(bits + vector)
    n = 100
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}")
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, n * vector, dtype, endpoint=True)
    out = np.zeros_like(x)
    wide = np.zeros(n * vector, f"{dtype.kind}8")
    prefix, registers = (f".v{vector}" if vector > 1 else ""), "%rd" if bits == 64 else "%r"
    names = [f"{registers}{10 + i}" for i in range(vector)]
    operand = "{" + ", ".join(names) + "}" if vector > 1 else names[0]
    to64 = "".join(
        (f"cvt.{'s64.s32' if kind[0] == 's' else 'u64.u32'} %rd20, {name};" if bits < 64 else f"mov.b64 %rd20, {name};")
        + f"st.global.u64 [%rd2+{8 * i}], %rd20;\n" for i, name in enumerate(names)
    )
    text = kernel("u32 n, u64 x, u64 out, u64 wide", THREAD + """
        ld.param.u32 %r3, [n]; setp.ge.u32 %p0, %r0, %r3; @%p0 exit;
    """ + pointer("%rd0", "x", size=bits // 8 * vector) + pointer("%rd1", "out", size=bits // 8 * vector)
        + pointer("%rd2", "wide", size=8 * vector)
        + f"ld.global{prefix}.{kind} {operand}, [%rd0];\nst.global{prefix}.{kind} [%rd1], {operand};\n{to64} ret;")
    launch(text, 2, 64, n=np.uint32(n), x=x, out=out, wide=wide)
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(wide, x.astype(wide.dtype))


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("absolute", ["", ".abs"])
@pytest.mark.parametrize("nan", ["", ".NaN"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_redux_of_floats(op: str, nan: str, absolute: str, conservative: bool) -> None:
    """Groups of lanes among them all of NaN, one NaN, signed zeros and infinities; -0 is less than +0."""
    rng = fresh(3)
    special = [0x7FC12345, 0xFFC00000, 0, 0x80000000, 0x7F800000, 0xFF800000, 1, 0x80000001, 0x3F800000, 0xC0490FDB]
    x = rng.choice(np.array(special, np.uint32), (40, 32))
    x[0], x[1] = 0x7FC00001, rng.choice([0, 0x80000000], 32)
    x[2:20] = rng.normal(size=(18, 32)).astype(np.float32).view(np.uint32)
    masks = rng.integers(1, 1 << 32, 40, np.uint32)
    masks[:3] = 0xFFFFFFFF
    out = np.zeros((40, 32), np.uint32)
    launch(kernel("u64 x, u64 masks, u64 out", THREAD + pointer("%rd0", "x") + pointer("%rd2", "out") + """
        mov.u32 %r3, %ctaid.x; ld.global.f32 %f0, [%rd0]; mov.u32 %r5, %lanemask_eq;
    """ + pointer("%rd1", "masks", "%r3") + f"""
        ld.global.u32 %r4, [%rd1]; and.b32 %r6, %r4, %r5; setp.eq.u32 %p0, %r6, 0; @%p0 bra ELSE;
        redux.sync.{op}{absolute}{nan}.f32 %f1, %f0, %r4; bra JOIN;
        ELSE: not.b32 %r4, %r4; redux.sync.{op}{absolute}{nan}.f32 %f1, %f0, %r4;
        JOIN: st.global.f32 [%rd2], %f1; ret;
    """).replace("sm_90", "sm_100a"), 40, 32, conservative=conservative, x=x, masks=masks, out=out)

    def reduced(values: list[int]) -> int:
        values = [v & 0x7FFFFFFF for v in values] if absolute else values
        kept = [v for v in values if v & 0x7FFFFFFF <= 0x7F800000]
        if not kept or (nan and len(kept) < len(values)):
            return 0x7FFFFFFF
        return {"min": min, "max": max}[op](kept, key=lambda v: (-1 - (v & 0x7FFFFFFF) if v >> 31 else v))

    for row, mask, found in zip(x.tolist(), masks.tolist(), out.tolist()):
        groups = [reduced([v for lane, v in enumerate(row) if (mask >> lane & 1) == side] or [0]) for side in (0, 1)]
        assert found == [groups[mask >> lane & 1] for lane in range(32)]


@pytest.mark.parametrize("stride", [0, 1, 2, 3, 5, 16])
def test_shared_memory_by_strides(stride: int) -> None:
    x, out = np.arange(64, dtype=np.float32), np.full(64, np.nan, np.float32)
    size = max(1, 64 * stride) * 4
    body = f".shared .align 16 .b8 tile[{size}];\n" + THREAD + pointer("%rd0", "x") + pointer("%rd1", "out") + f"""
        mov.u32 %r10, tile;
        mad.lo.u32 %r11, %r2, {4 * stride}, %r10;
        ld.global.f32 %f0, [%rd0];
        st.shared.f32 [%r11], %f0;
        bar.sync 0;
        mov.u32 %r12, 63;
        sub.u32 %r12, %r12, %r2;
        mad.lo.u32 %r13, %r12, {4 * stride}, %r10;
        ld.shared.f32 %f1, [%r13];
        st.global.f32 [%rd1], %f1;
        ret;
    """
    launch(kernel("u64 x, u64 out", body), 1, 64, x=x, out=out)
    np.testing.assert_array_equal(out, x[::-1] if stride else np.full(64, x[63]))


def test_shared_memory_is_poisoned_and_dynamic_memory_follows_static() -> None:
    out = np.zeros(64, np.uint32)
    text = kernel("u64 out", ".shared .align 4 .b8 mine[128];\n" + THREAD + pointer("%rd0", "out") + """
        mov.u32 %r10, mine; mad.lo.u32 %r10, %r2, 4, %r10; ld.shared.u32 %r11, [%r10];
        mov.u32 %r12, more; mad.lo.u32 %r12, %r2, 4, %r12; ld.shared.u32 %r13, [%r12];
        and.b32 %r11, %r11, %r13;
        st.global.u32 [%rd0], %r11;
        st.shared.u32 [%r10], 0; st.shared.u32 [%r12], 0;
        ret;
    """).replace(".visible", ".extern .shared .align 16 .b8 more[];\n.visible")
    launch(text, 2, 32, shared=128, out=out)
    np.testing.assert_array_equal(out, np.full(64, 0xFFFFFFFF, np.uint32))


@pytest.mark.parametrize("block", [(32, 1), (16, 2), (4, 8), (5, 5)])
def test_each_lane_stores_elsewhere_in_its_local_memory(block: tuple[int, int]) -> None:
    """At an offset of its index, which in rows of a block is no single line."""
    x, y = block
    out = np.zeros(x * y, np.uint32)
    body = """.local .align 4 .b8 mine[256];
        mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
        mul.wide.u32 %rd0, %r0, 4; mov.u64 %rd1, mine; add.u64 %rd1, %rd1, %rd0;
        st.local.u32 [%rd1], %r3; st.local.u32 [%rd1+4], 7;
        ld.local.u32 %r4, [%rd1]; ld.local.u32 %r5, [%rd1+4]; mad.lo.u32 %r4, %r4, 10, %r5;
    """ + pointer("%rd2", "out", "%r3") + "st.global.u32 [%rd2], %r4; ret;"
    launch(kernel("u64 out", body), 1, block, out=out)
    assert out.tolist() == [10 * thread + 7 for thread in range(x * y)]


def test_generic_addresses_reach_shared_local_and_global_memory() -> None:
    x, out = np.arange(32, dtype=np.uint32), np.zeros(96, np.uint32)
    body = ".shared .align 4 .b32 tile[32];\n.local .align 8 .b32 mine[4];\n" + THREAD
    body += pointer("%rd0", "x") + pointer("%rd1", "out") + """
        mov.u64 %rd2, tile; cvta.shared.u64 %rd3, %rd2; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd3, %rd3, %rd4;
        mov.u64 %rd5, mine; cvta.local.u64 %rd6, %rd5;
        ld.u32 %r10, [%rd0];
        add.u32 %r11, %r10, 100; st.u32 [%rd3], %r11;
        add.u32 %r12, %r10, 1000; st.u32 [%rd6+4], %r12;
        bar.sync 0;
        add.u64 %rd7, %rd2, %rd4; ld.shared.u32 %r13, [%rd7];
        ld.local.u32 %r14, [%rd5+4];
        ld.u32 %r15, [%rd3];
        st.u32 [%rd1], %r13; st.global.u32 [%rd1+128], %r14;
        setp.eq.u32 %p0, %r15, %r13;
        isspacep.shared %p1, %rd3; isspacep.global %p2, %rd3; isspacep.local %p3, %rd6;
        cvta.to.shared.u64 %rd8, %rd3; setp.eq.u64 %p4, %rd8, %rd7;
        and.pred %p0, %p0, %p1; and.pred %p0, %p0, %p3; and.pred %p0, %p0, %p4;
        selp.u32 %r16, 1, 0, %p0; selp.u32 %r17, 2, 0, %p2; add.u32 %r16, %r16, %r17;
        st.global.u32 [%rd1+256], %r16;
        ret;
    """
    launch(kernel("u64 x, u64 out", body), 1, 32, x=x, out=out)
    np.testing.assert_array_equal(out, np.concatenate([x + 100, x + 1000, np.ones(32, np.uint32)]))


@pytest.mark.parametrize("element", ["u8", "u16", "u32", "u64"])
@pytest.mark.parametrize("own", [0, 0xFFFFFFFF, 0x0F5A3371])
def test_pointers_that_are_read_from_memory_lead_some_lanes_to_their_own_memory(own: int, element: str) -> None:
    rng, size = np.random.default_rng(), int(element[1:]) // 8
    x = rng.integers(0, 1 << 8 * size, 64, f"u{size}")
    out = np.zeros(64, x.dtype)
    word = {1: "%h", 2: "%h", 4: "%r", 8: "%rd"}[size]
    body = f".local .align 8 .b8 mine[40]; .shared .align 8 .b64 kept[64]; {THREAD}" + f"""
        ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r2, {size}; add.u64 %rd3, %rd0, %rd2;
        and.b32 %r3, %r2, 31; shr.b32 %r3, {own}, %r3; and.b32 %r3, %r3, 1; setp.eq.u32 %p0, %r3, 1;
        mov.u64 %rd4, mine; cvta.local.u64 %rd4, %rd4; and.b32 %r4, %r2, 3; mul.wide.u32 %rd5, %r4, {size};
        add.u64 %rd4, %rd4, %rd5; mov.u64 %rd6, kept; mul.wide.u32 %rd7, %r2, 8; add.u64 %rd6, %rd6, %rd7;
        selp.b64 %rd8, %rd4, %rd3, %p0; st.shared.u64 [%rd6], %rd8; ld.shared.u64 %rd9, [%rd6];
        ld.global.{element} {word}20, [%rd3]; @%p0 st.{element} [%rd9], {word}20;
        ld.{element} {word}21, [%rd9]; add.u64 %rd3, %rd1, %rd2; st.global.{element} [%rd3], {word}21; ret;
    """
    launch(kernel("u64 x, u64 out", body), 1, 64, x=x, out=out)
    assert np.array_equal(out, x)


def test_a_pointer_read_from_memory_that_leads_past_the_own_memory_is_told() -> None:
    body = f".local .align 8 .b8 mine[16]; .shared .align 8 .b64 kept[32]; {THREAD}" + """
        mov.u64 %rd4, mine; cvta.local.u64 %rd4, %rd4; setp.eq.u32 %p0, %r2, 9; @%p0 add.u64 %rd4, %rd4, 16;
        mov.u64 %rd6, kept; mul.wide.u32 %rd7, %r2, 8; add.u64 %rd6, %rd6, %rd7; st.shared.u64 [%rd6], %rd4;
        ld.shared.u64 %rd9, [%rd6]; st.u32 [%rd9], %r2; ret;
    """
    with pytest.raises(EmulationError, match=r"thread \(9, 0, 0\)"):
        launch(kernel("", body), 1, 32)


def test_module_variables_keep_their_values() -> None:
    out = np.zeros(4, np.uint32)
    text = kernel("u64 out", """
        ld.param.u64 %rd0, [out];
        ld.const.u32 %r0, [table+8]; st.global.u32 [%rd0], %r0;
        ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, 1; st.global.u32 [counter], %r1;
        st.global.u32 [%rd0+4], %r1;
        ld.global.u64 %rd1, [where]; ld.u32 %r2, [%rd1]; st.global.u32 [%rd0+8], %r2;
        ret;
    """).replace(".visible", """.const .align 4 .u32 table[3] = {5, 6, 7};
        .global .align 4 .u32 counter = 41;
        .global .align 8 .u64 where = table;
        .visible""")
    launch(text, 1, 1, out=out)
    assert out.tolist() == [7, 42, 5, 0]
    launch(text, 1, 1, out=out)
    assert out.tolist() == [7, 43, 5, 0]


# Warps


SHUFFLES = {
    "up": lambda lane, b: lane - b, "down": lambda lane, b: lane + b, "bfly": lambda lane, b: lane ^ b,
    "idx": lambda lane, b: b,
}


@pytest.mark.parametrize("mode", SHUFFLES)
@pytest.mark.parametrize("width", [32, 16, 8, 1])
@pytest.mark.parametrize("form", ["numbers", "registers", "lanes"])
def test_shuffle(mode: str, width: int, form: str) -> None:
    rng = fresh(width)
    x = rng.integers(0, 1 << 32, 32, np.uint32)
    shift = rng.integers(0, 32, 32) if form == "lanes" else np.full(32, rng.integers(0, 32))
    c = (32 - width) << 8 | (0 if mode == "up" else 31)
    out, good = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    operands = f"{shift[0]}, {c}" if form == "numbers" else "%r10, %r11"
    text = kernel("u64 x, u64 shift, u64 out, u64 good", THREAD + "".join(
        pointer(f"%rd{i}", name) for i, name in enumerate(("x", "shift", "out", "good"))
    ) + f"""
        ld.global.u32 %r3, [%rd0]; mov.u32 %r11, {c};
        {'ld.global.u32 %r10, [%rd1];' if form == 'lanes' else f'mov.u32 %r10, {shift[0]};'}
        shfl.sync.{mode}.b32 %r4|%p0, %r3, {operands}, 0xFFFFFFFF;
        selp.u32 %r5, 1, 0, %p0;
        st.global.u32 [%rd2], %r4; st.global.u32 [%rd3], %r5; ret;
    """)
    launch(text, 1, 32, x=x, shift=shift.astype(np.uint32), out=out, good=good)
    for lane in range(32):
        low = lane // width * width
        high = low + width - 1
        b = int(shift[lane])
        if mode == "idx":
            source = low + b % width
            inside = True
        else:
            source = SHUFFLES[mode](lane, b)
            inside = source >= low if mode == "up" else source <= high
        assert (out[lane], good[lane]) == (x[source if inside else lane], inside), lane


@pytest.mark.parametrize("threads", [64, 52])
@pytest.mark.parametrize(("low", "high"), [(0, 4), (0, 1), (1, 2)], ids=["mixed", "none", "all"])
def test_votes_matches_and_reductions(low: int, high: int, threads: int) -> None:
    rng = fresh(5)
    x = rng.integers(low, high, 64, np.uint32)
    names = ["ballot", "all", "any", "uni", "match", "every", "active"]
    reductions = ["add", "min", "max", "and", "or", "xor", "smin", "smax"]
    out = np.zeros((len(names) + len(reductions), 64), np.uint32)
    stores = "".join(f"st.global.u32 [%rd1+{256 * i}], %r{20 + i};\n" for i in range(len(out)))
    reduce = "".join(
        f"redux.sync.{op.lstrip('s')}.{'s32' if op[0] == 's' else 'b32' if op in ('and', 'or', 'xor') else 'u32'} "
        f"%r{27 + i}, %r4, 0xFFFFFFFF;\n" for i, op in enumerate(reductions)
    )
    text = kernel("u64 x, u64 out", THREAD + pointer("%rd0", "x") + pointer("%rd1", "out") + f"""
        ld.global.u32 %r3, [%rd0]; setp.eq.u32 %p0, %r3, 1;
        mad.lo.u32 %r4, %r3, 0x40000001, %r0;
        vote.sync.ballot.b32 %r20, %p0, 0xFFFFFFFF;
        vote.sync.all.pred %p1, %p0, 0xFFFFFFFF; selp.u32 %r21, 1, 0, %p1;
        vote.sync.any.pred %p1, !%p0, 0xFFFFFFFF; selp.u32 %r22, 1, 0, %p1;
        vote.sync.uni.pred %p1, %p0, 0xFFFFFFFF; selp.u32 %r23, 1, 0, %p1;
        match.any.sync.b32 %r24, %r3, 0xFFFFFFFF;
        match.all.sync.b32 %r25|%p2, %r3, 0xFFFFFFFF; selp.u32 %r25, %r25, 77, %p2;
        activemask.b32 %r26;
        {reduce}{stores} ret;
    """)
    launch(text, 1, threads, x=x, out=out)
    values = (x.astype(np.uint64) * 0x40000001 + np.arange(64)).astype(np.uint32)
    for lane in range(threads):
        warp = slice(lane // 32 * 32, min(lane // 32 * 32 + 32, threads))
        group, v = x[warp], values[warp]
        signed = v.view(np.int32)
        ballot = sum(1 << i for i, item in enumerate(group) if item == 1)
        same = sum(1 << i for i, item in enumerate(group) if item == x[lane])
        everyone = (1 << len(group)) - 1
        every, none = ballot == everyone, ballot == 0
        alike = everyone if same == everyone else 77
        wanted = [ballot, every, not every, every or none, same, alike, everyone,
                  int(v.sum(dtype=np.uint64)) & 0xFFFFFFFF, v.min(), v.max(),
                  np.bitwise_and.reduce(v), np.bitwise_or.reduce(v), np.bitwise_xor.reduce(v),
                  int(signed.min()) & 0xFFFFFFFF, int(signed.max()) & 0xFFFFFFFF]
        assert out[:, lane].tolist() == [int(item) for item in wanted], lane


def test_each_lane_names_its_own_group() -> None:
    out = np.zeros(32, np.uint32)
    launch(kernel("u64 out", THREAD + pointer("%rd0", "out") + """
        and.b32 %r3, %r2, 1; setp.eq.u32 %p0, %r3, 1; selp.b32 %r4, 0xAAAAAAAA, 0x55555555, %p0;
        redux.sync.add.u32 %r5, %r2, %r4;
        vote.sync.ballot.b32 %r6, %p0, %r4;
        xor.b32 %r5, %r5, %r6;
        st.global.u32 [%rd0], %r5; ret;
    """), 1, 32, out=out)
    even, odd = sum(range(0, 32, 2)), sum(range(1, 32, 2)) ^ 0xAAAAAAAA
    assert out.tolist() == [even, odd] * 16


# Atomics


ATOMICS = {
    "add.u32": lambda a, b: a + b, "min.u32": min, "max.u32": max, "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b, "xor.b32": lambda a, b: a ^ b, "inc.u32": lambda a, b: 0 if a >= b else a + 1,
    "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1, "add.u64": lambda a, b: a + b,
    "exch.b32": lambda a, b: b, "min.u64": min, "max.u64": max,
}


@pytest.mark.parametrize("op", ATOMICS)
@pytest.mark.parametrize("space", ["global", "global, locked", "shared"])
def test_atomics_one_after_the_other(op: str, space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old values tell the order that the lanes took; replay it."""
    monkeypatch.setattr(alone, "_several", space.endswith("locked"))
    rng = fresh(9)
    bits = int(op[-2:])
    dtype = np.dtype(f"u{bits // 8}")
    register, size = ("%rd" if bits == 64 else "%r"), bits // 8
    bins, threads = 5, 32 if space == "shared" else 96
    where = rng.integers(0, bins, threads, np.uint32)
    given = rng.integers(0, 1 << (bits - 1) if op[:3] not in ("inc", "dec") else 9, threads, dtype)
    memory = rng.integers(0, 20, bins, dtype)
    before, old = memory.copy(), np.zeros(threads, dtype)
    load = f"ld.global.b{bits}"
    body = THREAD + pointer("%rd0", "where") + pointer("%rd1", "given", size=size) + pointer("%rd2", "old", size=size)
    body += f"ld.global.u32 %r3, [%rd0]; {load} {register}20, [%rd1];" + pointer("%rd3", "memory", "%r3", size)
    if space == "shared":
        body = f".shared .align 8 .b{bits} bin[{bins}];\n" + body + f"""
            mov.u64 %rd4, bin; mul.wide.u32 %rd5, %r3, {size}; add.u64 %rd4, %rd4, %rd5;
            {load} {register}21, [%rd3]; st.shared.b{bits} [%rd4], {register}21; bar.sync 0;
            atom.shared.{op} {register}22, [%rd4], {register}20; bar.sync 0;
            ld.shared.b{bits} {register}23, [%rd4]; st.global.b{bits} [%rd3], {register}23;
        """
    else:
        body += f"atom.global.{op} {register}22, [%rd3], {register}20;\n"
    body += f"st.global.b{bits} [%rd2], {register}22; ret;"
    text = kernel("u64 where, u64 given, u64 old, u64 memory", body)
    launch(text, 1, threads, where=where, given=given, old=old, memory=memory)
    modulus = 1 << bits
    for bin_ in range(bins):
        value = int(before[bin_])
        for thread in np.flatnonzero(where == bin_):  # lanes go in order, and warps where no barrier stands between
            assert int(old[thread]) == value, (bin_, thread)
            value = ATOMICS[op](value, int(given[thread])) % modulus
        assert int(memory[bin_]) == value


def test_compare_and_swap_and_float_sums() -> None:
    rng = fresh(11)
    x = rng.integers(0, 100, 256).astype(np.float32)
    sums = np.zeros(3, np.float64)
    single, word = np.zeros(1, np.float32), np.array([5], np.uint32)
    winners = np.zeros(256, np.uint32)
    text = kernel("u64 x, u64 single, u64 sums, u64 word, u64 winners", THREAD + pointer("%rd0", "x") + """
        ld.param.u64 %rd1, [single]; ld.param.u64 %rd2, [sums]; ld.param.u64 %rd3, [word];
        ld.global.f32 %f0, [%rd0]; red.global.add.f32 [%rd1], %f0;
        cvt.f64.f32 %fd0, %f0; atom.add.f64 %fd1, [%rd2+8], %fd0;
        add.u32 %r3, %r0, 1000;
        atom.global.cas.b32 %r4, [%rd3], 5, %r3;
        setp.eq.u32 %p0, %r4, 5; selp.u32 %r5, 1, 0, %p0;
    """ + pointer("%rd4", "winners") + "st.global.u32 [%rd4], %r5; ret;")
    launch(text, 2, 128, x=x, single=single, sums=sums, word=word, winners=winners)
    assert single[0] == x.sum() and sums.tolist() == [0.0, float(x.sum(dtype=np.float64)), 0.0]
    assert winners.sum() == 1 and word[0] == 1000 + int(np.argmax(winners))


# Barriers and waiting


@pytest.mark.parametrize("threads", [32, 64, 96, 250, 1024])
def test_block_sum_through_shared_memory(threads: int) -> None:
    rng = fresh(threads)
    x, out = rng.integers(0, 1000, threads * 3, np.uint32), np.zeros(3, np.uint32)
    top = 1 << (threads - 1).bit_length()
    steps = []
    while top > 1:
        top //= 2
        steps.append(f"""
            add.u32 %r20, %r2, {top}; setp.lt.u32 %p1, %r2, {top}; setp.lt.and.u32 %p1, %r20, {threads}, %p1;
            @%p1 ld.shared.u32 %r21, [%r11+{4 * top}]; @%p1 ld.shared.u32 %r22, [%r11];
            @%p1 add.u32 %r22, %r21, %r22; @%p1 st.shared.u32 [%r11], %r22; bar.sync 0;""")
    body = f".shared .align 4 .u32 part[{threads}];\n" + THREAD + pointer("%rd0", "x") + """
        ld.global.u32 %r3, [%rd0]; mov.u32 %r10, part; mad.lo.u32 %r11, %r2, 4, %r10;
        st.shared.u32 [%r11], %r3; bar.sync 0;
    """ + "".join(steps) + """
        setp.ne.u32 %p0, %r2, 0; @%p0 ret;
        mov.u32 %r30, %ctaid.x;
    """ + pointer("%rd1", "out", "%r30") + "ld.shared.u32 %r4, [part]; st.global.u32 [%rd1], %r4; ret;"
    launch(kernel("u64 x, u64 out", body), 3, threads, x=x, out=out)
    np.testing.assert_array_equal(out, x.reshape(3, -1).sum(1))


def test_named_barriers_hand_over_between_warps() -> None:
    """Warp 0 produces, warp 1 consumes, with arrive and sync on two barriers."""
    out = np.zeros(100, np.uint32)
    launch(kernel("u64 out", ".shared .align 4 .u32 cell[32];\n" + THREAD + """
        mov.u32 %r9, %laneid; mov.u32 %r10, cell; mad.lo.u32 %r11, %r9, 4, %r10;
        ld.param.u64 %rd0, [out];
        mov.u32 %r5, 0; shr.u32 %r6, %r2, 5; setp.eq.u32 %p0, %r6, 0;
        @!%p0 bra CONSUME;
        PRODUCE:
        mad.lo.u32 %r7, %r5, 3, %r9; st.shared.u32 [%r11], %r7;
        bar.arrive 1, 64; bar.sync 2, 64;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 100; @%p1 bra PRODUCE;
        ret;
        CONSUME:
        bar.sync 1, 64; ld.shared.u32 %r8, [cell+124];
        mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r8;
        bar.arrive 2, 64;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 100; @%p1 bra CONSUME;
        ret;
    """), 1, 64, out=out)
    np.testing.assert_array_equal(out, np.arange(100) * 3 + 31)


def test_barrier_reductions() -> None:
    rng = fresh(3)
    x, out = rng.integers(0, 2, 96, np.uint32), np.zeros((3, 96), np.uint32)
    launch(kernel("u64 x, u64 out", THREAD + pointer("%rd0", "x") + pointer("%rd1", "out") + """
        ld.global.u32 %r3, [%rd0]; setp.ne.u32 %p0, %r3, 0;
        bar.red.popc.u32 %r4, 0, %p0;
        bar.red.and.pred %p1, 0, %p0; selp.u32 %r5, 1, 0, %p1;
        bar.red.or.pred %p2, 0, !%p0; selp.u32 %r6, 1, 0, %p2;
        st.global.u32 [%rd1], %r4; st.global.u32 [%rd1+384], %r5; st.global.u32 [%rd1+768], %r6; ret;
    """), 1, 96, x=x, out=out)
    assert (out == np.array([[x.sum()], [x.all()], [not x.all()]])).all()


def test_barrier_without_warps_that_have_ended() -> None:
    out = np.zeros(128, np.uint32)
    launch(kernel("u64 out", THREAD + pointer("%rd0", "out") + """
        setp.lt.u32 %p0, %r2, 64; @%p0 exit;
        bar.sync 0; st.global.u32 [%rd0], 7; ret;
    """), 1, 128, out=out)
    assert out.tolist() == [0] * 64 + [7] * 64


def test_warps_spin_for_each_other() -> None:
    flag, out = np.zeros(1, np.uint32), np.zeros(64, np.uint32)
    launch(kernel("u64 flag, u64 out", THREAD + pointer("%rd0", "out") + """
        ld.param.u64 %rd1, [flag];
        setp.ge.u32 %p0, %r2, 32; @%p0 bra WRITE;
        WAIT: ld.volatile.global.u32 %r3, [%rd1]; setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT;
        st.global.u32 [%rd0], %r3; ret;
        WRITE: st.volatile.global.u32 [%rd1], 9; st.global.u32 [%rd0], 1; ret;
    """), 1, 64, flag=flag, out=out)
    assert out.tolist() == [9] * 32 + [1] * 32


@pytest.mark.parametrize("threads", [32, 40, 64])
def test_a_spin_lock_between_the_lanes_of_a_warp(threads: int) -> None:
    lock, total = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    launch(kernel("u64 lock, u64 total", THREAD + """
        ld.param.u64 %rd0, [lock]; ld.param.u64 %rd1, [total];
        TAKE: atom.global.cas.b32 %r3, [%rd0], 0, 1; setp.ne.u32 %p0, %r3, 0; @%p0 bra TAKE;
        ld.volatile.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, %r0; st.volatile.global.u32 [%rd1], %r4;
        membar.gl; atom.global.exch.b32 %r5, [%rd0], 0;
        ret;
    """), 2, threads, lock=lock, total=total)
    assert total[0] == sum(range(2 * threads)) and lock[0] == 0


def test_blocks_wait_for_blocks() -> None:
    """A grid barrier in software: every block waits until all have come."""
    blocks = 20
    count, out = np.zeros(1, np.uint32), np.zeros(blocks * 32, np.uint32)
    launch(kernel("u64 count, u64 out", THREAD + pointer("%rd0", "out") + f"""
        ld.param.u64 %rd1, [count];
        setp.eq.u32 %p0, %r2, 0; @%p0 atom.global.add.u32 %r3, [%rd1], 1;
        WAIT: ld.acquire.gpu.global.u32 %r4, [%rd1]; setp.lt.u32 %p1, %r4, {blocks}; @%p1 bra WAIT;
        st.global.u32 [%rd0], %r4; ret;
    """), blocks, 32, count=count, out=out)
    assert (out == blocks).all()


def test_sums_of_indices_that_wrap_are_exact() -> None:
    """32-bit indices that wrap within a warp: the engine's assumption of affine addresses must not show."""
    x, out = np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)
    launch(kernel("u64 x, u64 out, u32 bias", THREAD + pointer("%rd0", "out") + """
        ld.param.u32 %r5, [bias]; add.u32 %r6, %r0, %r5; ld.param.u64 %rd1, [x];
        mul.wide.u32 %rd2, %r6, 4; ld.param.u32 %r7, [bias]; neg.s32 %r8, %r7; mul.wide.u32 %rd3, %r8, 4;
        shl.b64 %rd2, %rd2, 30; shr.u64 %rd2, %rd2, 30;
        mul.wide.u32 %rd4, %r6, 4; st.global.u32 [%rd0], %r6;
        cvt.u64.u32 %rd5, %r6; setp.gt.u64 %p0, %rd5, 100; @%p0 exit;
        add.u64 %rd6, %rd1, %rd4; ld.global.u32 %r9, [%rd6]; add.u32 %r9, %r9, 500; st.global.u32 [%rd0], %r9;
        ret;
    """), 1, 64, x=x, out=out, bias=np.uint32(2**32 - 16))
    assert out.tolist() == [2**32 - 16 + i for i in range(16)] + [500 + i for i in range(48)]


# Calls


FUNCTIONS = """
.extern .func (.param .b32 status) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[20] = {37, 100, 32, 37, 117, 32, 37, 108, 108, 120, 32, 37, 46, 49, 102, 32, 37, 37, 10};
.func (.param .b32 value) twice(.param .b32 a)
{ .reg .b32 %r<3>; .reg .pred %p<2>;
  ld.param.u32 %r1, [a]; setp.lt.u32 %p1, %r1, 5; @%p1 bra SMALL; shl.b32 %r1, %r1, 1; st.param.b32 [value], %r1; ret;
  SMALL: st.param.b32 [value], 7; ret; }
.func (.reg .u32 value) plus(.reg .u32 a, .reg .u32 b)
{ .reg .b32 %r<3>; { .param .b32 x; .param .b32 y; st.param.b32 [x], a; call (y), twice, (x); ld.param.b32 %r1, [y]; }
  add.u32 value, %r1, b; ret; }
"""


def test_functions_that_call_functions() -> None:
    out = np.zeros(64, np.uint32)
    text = kernel("u64 out", THREAD + pointer("%rd0", "out") + """
        call (%r3), plus, (%r0, %r2);
        setp.gt.u32 %p0, %r0, 50; @%p0 call (%r3), plus, (%r3, 1);
        st.global.u32 [%rd0], %r3; ret;
    """).replace(".visible", FUNCTIONS + ".visible")
    launch(text, 1, 64, out=out)

    def plus(a: int, b: int) -> int:
        return (2 * a if a >= 5 else 7) + b

    first = [plus(i, i) for i in range(64)]
    assert out.tolist() == [plus(v, 1) if i > 50 else v for i, v in enumerate(first)]


def test_printf(capsys: pytest.CaptureFixture[str]) -> None:
    text = kernel("u32 n", ".local .align 8 .b8 room[32];\n" + THREAD + """
        mov.u64 %rd0, text; cvta.global.u64 %rd0, %rd0; mov.u64 %rd1, room; cvta.local.u64 %rd1, %rd1;
        neg.s32 %r3, %r2; st.local.u32 [room], %r3; st.local.u32 [room+4], %r3;
        cvt.u64.u32 %rd2, %r2; st.local.u64 [room+8], %rd2; cvt.rn.f64.u32 %fd0, %r2; st.local.f64 [room+16], %fd0;
        setp.lt.u32 %p0, %r2, 2;
        { .param .b64 p0; .param .b64 p1; .param .b32 r; st.param.b64 [p0], %rd0; st.param.b64 [p1], %rd1;
          @%p0 call.uni (r), vprintf, (p0, p1); ld.param.b32 %r4, [r]; }
        ret;
    """).replace(".visible", FUNCTIONS + ".visible")
    launch(text, 1, 32, n=np.uint32(0))
    assert capsys.readouterr().out == "0 0 0 0.0 %\n-1 4294967295 1 1.0 %\n"


def test_special_registers() -> None:
    names = ["%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt",
             "%lanemask_ge", "%dynamic_smem_size", "%smid", "%nsmid"]
    out = np.zeros((len(names), 80), np.uint32)
    moves = "".join(f"mov.u32 %r3, {name}; st.global.u32 [%rd0+{320 * i}], %r3;\n" for i, name in enumerate(names))
    text = kernel("u64 out", THREAD + pointer("%rd0", "out") + moves + "ret;")
    for conservative in (False, True):
        launch(text, 1, 80, shared=48, conservative=conservative, out=out)
        for thread in range(80):
            lane = thread % 32
            eq, lt = 1 << lane, (1 << lane) - 1
            gt = 0xFFFFFFFF & ~(eq | lt)
            assert out[:, thread].tolist() == [lane, thread // 32, 3, eq, lt, eq | lt, gt, eq | gt, 48, 0, 1]
        out[:] = 0


def test_vector_of_indices_and_clocks() -> None:
    out, times = np.zeros((24, 4), np.uint32), np.zeros(6, np.uint64)
    launch(kernel("u64 out, u64 times", """
        mov.v4.u32 {%r0, %r1, %r2, %r3}, %tid; mad.lo.u32 %r4, %r1, 4, %r0; mad.lo.u32 %r4, %r2, 12, %r4;
    """ + pointer("%rd0", "out", "%r4", 16) + """
        st.global.v4.u32 [%rd0], {%r0, %r1, %r2, %r3};
        ld.param.u64 %rd1, [times];
        mov.u64 %rd2, %clock64; st.global.u64 [%rd1], %rd2; mov.u64 %rd3, %globaltimer; st.global.u64 [%rd1+16], %rd3;
        nanosleep.u32 20; mov.u32 %r5, %clock; cvt.u64.u32 %rd5, %r5; st.global.u64 [%rd1+32], %rd5;
        mov.u64 %rd2, %clock64; st.global.u64 [%rd1+8], %rd2; mov.u64 %rd3, %globaltimer; st.global.u64 [%rd1+24], %rd3;
        ret;
    """), 1, (4, 3, 2), out=out, times=times)
    assert out.tolist() == [[x, y, z, 0] for z in range(2) for y in range(3) for x in range(4)]
    assert 0 < times[0] <= times[1] and 10**18 < times[2] <= times[3]


def test_address_of_a_parameter() -> None:
    out = np.zeros(2, np.uint32)
    launch(kernel("u64 out, u32 a, u32 b", """
        mov.b64 %rd1, b; ld.param.u64 %rd0, [out]; ld.param.u32 %r1, [%rd1];
        cvta.param.u64 %rd2, %rd1; ld.u32 %r2, [%rd2+-4];
        st.global.v2.u32 [%rd0], {%r1, %r2}; ret;
    """), 1, 1, out=out, a=np.uint32(5), b=np.uint32(6))
    assert out.tolist() == [6, 5]


@pytest.mark.parametrize("count", [1, 2, 300])
def test_branch_by_an_index(count: int) -> None:
    """Lanes part to as many places as the list has; with a guard, some go on behind the branch."""
    cases = "".join(f"C{i}: mad.lo.u32 %r3, %r3, 7, {i}; bra DONE;\n" for i in range(count))
    indices = fresh(count).integers(0, count, 96).astype(np.uint32)
    indices[:32] = count - 1
    for guard in ("", "@%p0 ", "@!%p0 "):
        out = np.full(96, 0xDEAD, np.uint32)
        text = kernel("u64 index, u64 out", THREAD + pointer("%rd0", "index") + pointer("%rd1", "out") + f"""
            ld.global.u32 %r4, [%rd0]; and.b32 %r5, %r0, 1; setp.ne.u32 %p0, %r5, 0; mov.u32 %r3, 1000;
            LIST: .branchtargets {', '.join(f'C{i}' for i in range(count))};
            {guard}brx.idx %r4, LIST;
            {'mov.u32 %r3, 5; bra DONE;' if guard else ''}
            {cases}
            DONE: st.global.u32 [%rd1], %r3; ret;
        """)
        for conservative in (False, True):
            launch(text, 1, 96, conservative=conservative, index=indices, out=out)
            wanted = 7000 + indices
            if guard:
                wanted[int("!" not in guard) ^ 1 :: 2] = 5
            assert out.tolist() == wanted.tolist()
            out[:] = 0


def test_branch_by_an_index_beyond_the_list() -> None:
    text = kernel("u32 n", "ld.param.u32 %r1, [n];\nLIST: .branchtargets A, B;\nbrx.idx %r1, LIST;\nA: ret;\nB: ret;")
    launch(text, 1, 32, n=np.uint32(1))
    with pytest.raises(EmulationError, match="the index of `brx.idx` is beyond its list of labels"):
        launch(text, 1, 32, n=np.uint32(2))


REDUCTIONS = {
    "add.u32": np.add, "and.b32": np.bitwise_and, "or.b32": np.bitwise_or, "xor.b32": np.bitwise_xor,
    "min.u32": np.minimum, "max.u32": np.maximum, "min.s32": np.minimum, "max.s32": np.maximum, "add.s32": np.add,
}


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("operation", sorted(REDUCTIONS))
@pytest.mark.parametrize("second_tier", [False, True])
def test_groups_of_equal_keys_are_reduced_and_shuffled_by_themselves(
    operation: str, few: bool, second_tier: bool
) -> None:
    n, rng = 90, np.random.default_rng()
    keys = rng.integers(0, 4 if few else 40, 96, np.uint32)
    x = rng.integers(0, 1 << 32, 96, np.uint32)
    out, first = np.zeros(96, np.uint32), np.zeros(96, np.uint32)
    body = THREAD + pointer("%rd0", "keys") + pointer("%rd1", "x") + pointer("%rd2", "out") + pointer("%rd3", "first")
    body += f"""ld.param.u32 %r3, [n]; setp.ge.u32 %p0, %r2, %r3; @%p0 bra END;
        ld.global.u32 %r4, [%rd0]; ld.global.u32 %r5, [%rd1]; activemask.b32 %r6;
        match.any.sync.b32 %r7, %r4, %r6; redux.sync.{operation} %r8, %r5, %r7; st.global.u32 [%rd2], %r8;
        brev.b32 %r9, %r7; clz.b32 %r10, %r9; shfl.sync.idx.b32 %r11, %r5, %r10, 31, %r6;
        st.global.u32 [%rd3], %r11; END: ret;"""
    text = kernel("u64 keys, u64 x, u64 out, u64 first, u32 n", body)
    launch(text, 1, 96, second_tier=second_tier, keys=keys, x=x, out=out, first=first, n=np.uint32(n))
    typed = x.view(np.int32) if operation.endswith("s32") else x
    expected, leaders = np.zeros(96, np.uint32), np.zeros(96, np.uint32)
    for thread in range(n):
        warp = np.arange(thread // 32 * 32, min(n, thread // 32 * 32 + 32))
        mine = warp[keys[warp] == keys[thread]]
        expected[thread] = REDUCTIONS[operation].reduce(typed[mine], dtype=typed.dtype).astype(np.uint32)
        leaders[thread] = x[mine[0]]
    assert np.array_equal(out, expected)
    assert np.array_equal(first, leaders)
