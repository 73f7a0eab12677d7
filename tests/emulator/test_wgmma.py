"""wgmma against numpy: tiles by descriptor in every layout, A in registers, types, signs, scales of the accumulator.

A sparse A, whose metadata are placed by the formulas of the harness, and single bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matrix_harness import FILL_TILES, FLOATS, drawn, metadata, packed, sparse

import ptxdsl
from ptxdsl.isa.matrix_descriptors import descriptor

Rng = np.random.Generator
_START = 1024
"""Where shared memory begins."""
_SIZES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "b1": 0.125}

_KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 a, .param .u64 b, .param .u64 d, .param .u64 regs, .param .u32 add)
{{
    .reg .b64 %image, %a, %b, %d, %regs, %at;
    .reg .b32 %t, %n, %x, %add, %h<4>, %e;
    .reg .{kind} %d<{count}>;
    .reg .pred %p, %scale;
    .shared .align 1024 .b8 tiles[{nbytes}];
    ld.param.u64 %image, [image];
    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %d, [d];
    ld.param.u64 %regs, [regs];
    ld.param.u32 %add, [add];
    mov.u32 %t, %tid.x;
""" + FILL_TILES + """    bar.sync 0;
    mul.wide.u32 %at, %t, 32;
    add.u64 %regs, %regs, %at;
    ld.global.v4.b32 {{%h0, %h1, %h2, %h3}}, [%regs];
    ld.global.b32 %e, [%regs+16];
    mul.wide.u32 %at, %t, {stride};
    add.u64 %d, %d, %at;
{loads}
    setp.ne.u32 %scale, %add, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}{satfinite}.{result}.{left}.{right}{popc}
        {{{list}}}, {a}, %b{meta}, %scale{signs};
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
{stores}
    ret;
}}
"""


def _kernel(
    types: tuple[str, str, str], n: int, signs: str, satfinite: bool, held: bool, nbytes: int, selector: int = -1,
) -> Any:
    result, left, right = types
    kind, size = ("b32", 4) if result == "f16" else (result, 4)
    count = n // (4 if result == "f16" else 2)
    each = [f"[%d+{size * number}]" for number in range(count)]
    return ptxdsl.load(_KERNEL.format(
        kind=kind, count=count, nbytes=nbytes, stride=count * size, n=n, k=int(32 / _SIZES[left]) << (selector >= 0),
        sp=".sp" * (selector >= 0), meta=f", %e, {selector}" * (selector >= 0), popc=".and.popc" * (left == "b1"),
        result=result,
        left=left, right=right, satfinite=".satfinite" * satfinite, a="{%h0, %h1, %h2, %h3}" if held else "%a",
        signs=signs, list=", ".join(f"%d{number}" for number in range(count)),
        loads="\n".join(f"    ld.global.{kind} %d{number}, {at};" for number, at in enumerate(each)),
        stores="\n".join(f"    st.global.{kind} {at}, %d{number};" for number, at in enumerate(each)),
    ))["k"]


class _Tile:
    """A matrix of lines by k laid out in an image of shared memory, by the manual's canonical layouts."""

    def __init__(self, rng: Rng, image: Any, start: int, matrix: Any, major: str, span: int) -> None:
        data = matrix if major == "k" else matrix.T
        size = data.itemsize
        rows, columns = data.shape
        per = span // size
        eights = -(-rows // 8)
        slabs = -(-columns // per) if span > 16 or major == "mn" else columns // per
        width = columns * size
        inside = int(rng.integers(0, span // width)) * width if major == "k" and span > 16 else 0
        group, slab = 8 * span, 8 * span * eights
        if rng.integers(2):  # the other dimension first
            group, slab = 8 * span * slabs, 8 * span
        if major == "k" and span > 16:
            group, slab = 8 * span, 0
        start = -(-start // 1024) * 1024
        for row in range(rows):
            for column in range(columns):
                at = start + row // 8 * group + row % 8 * span + column // per * slab + column % per * size + inside
                at ^= (at >> 7 & span // 16 - 1) << 4
                image[at : at + size] = np.frombuffer(data[row, column].tobytes(), np.uint8)
        leading, stride = (slab, group) if span > 16 or major == "k" else (group, slab)
        self.end = start + eights * slabs * 8 * span
        self.descriptor = np.uint64(descriptor(_START + start + inside, leading, stride, span))


def _placed(values: Any, n: int) -> Any:
    """D by thread and value: row 16w + g + 8((v/2)%2), column 8(v/4) + 2t + v%2."""
    thread, v = np.meshgrid(np.arange(128), np.arange(n // 2), indexing="ij")
    lane = thread % 32
    return values[thread // 32 * 16 + lane // 4 + v // 2 % 2 * 8, v // 4 * 8 + lane % 4 * 2 + v % 2]


def _codes(matrix: Any, kind: str) -> Any:
    """The elements as they lie in memory."""
    dtype = {"s8": np.int8, "u8": np.uint8}.get(kind) or FLOATS.get(kind)
    return matrix.astype(np.float32 if kind == "tf32" else dtype)


def _values(rng: Rng, kind: str, shape: tuple[int, int]) -> Any:
    return drawn(rng, kind, shape) if kind in ("s8", "u8", "tf32") else rng.standard_normal(shape) * 3


_CASES = [
    *(("f32", kind, kind, major, span)
      for kind in ("f16", "bf16") for major in ("k", "mn") for span in (16, 32, 64, 128)),
    *(("f32", "tf32", "tf32", "k", span) for span in (16, 128)), ("f16", "f16", "f16", "mn", 128),
    ("f16", "e4m3", "e5m2", "k", 64), ("f32", "e5m2", "e4m3", "k", 128), ("f32", "e4m3", "e4m3", "k", 16),
    ("s32", "s8", "u8", "k", 128), ("s32", "u8", "u8", "k", 32), ("s32", "s8", "s8", "k", 16),
]


_SPARSE_CASES = [
    *(("f32", "bf16", "bf16", major, span) for major, spans in (("k", (16, 32, 64, 128)), ("mn", (16, 32, 64, 128)))
      for span in spans),
    ("f16", "f16", "f16", "k", 128), ("f32", "f16", "f16", "mn", 64), ("f32", "tf32", "tf32", "k", 128),
    ("f32", "tf32", "tf32", "k", 16), ("f32", "e4m3", "e5m2", "k", 128), ("f16", "e5m2", "e5m2", "k", 64),
    ("f32", "e4m3", "e4m3", "k", 16), ("s32", "s8", "u8", "k", 128), ("s32", "u8", "s8", "k", 32),
]


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: "-".join(map(str, case)))
def test_products(case: tuple[str, str, str, str, int], held: bool, rng: Rng) -> None:
    _check(case, held, rng, -1)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("case", _SPARSE_CASES, ids=lambda case: "-".join(map(str, case)))
def test_sparse_products(case: tuple[str, str, str, str, int], held: bool, rng: Rng) -> None:
    _check(case, held, rng, int(rng.integers(2)) if _SIZES[case[1]] > 1 else 0)


def _check(case: tuple[str, str, str, str, int], held: bool, rng: Rng, selector: int) -> None:
    """A product of random numbers; A is sparse where there is a selector."""
    result, left, right, major, span = case
    n = int(rng.choice([8, 24, 64, 128, 256]))
    k = 32 // int(_SIZES[left])
    depth, kept, registers = k, np.tile(np.arange(k), (64, 1)), rng.integers(0, 2**32, (128, 8), np.uint32)
    if selector >= 0:
        depth = 2 * k
        tables = [sparse(rng, depth, left, bool(rng.integers(2))) for _ in range(4)]
        kept = np.concatenate([table[0] for table in tables])
        registers[:, 4] = np.concatenate([metadata(rng, codes, left, selector) for _, codes in tables])
    a, b = _codes(_values(rng, left, (64, k)), left), _codes(_values(rng, right, (n, depth)), right)
    image = rng.integers(0, 256, 1 << 16).astype(np.uint8)
    tile = _Tile(rng, image, 0, a, "k" if held else major, span)
    wide = selector >= 0 and (major, span) == ("k", 32)
    other = _Tile(rng, image, tile.end, b, major, 64 if wide else span)
    image = image[: -(-other.end // 512) * 512].copy()
    signs, turned = "", ""
    minus = 1
    if result != "s32":
        first, second = (int(sign) for sign in rng.choice([-1, 1], 2))
        minus, signs = first * second, f", {first}, {second}"
    if _SIZES[left] == 2:
        turned = f", {int(major == 'mn')}" * (1 if held else 2)
    whole = result == "s32"
    satfinite = whole and bool(rng.integers(2))
    old = rng.integers(-(2**31), 2**31, (64, n)).astype(np.int32) if whole else rng.standard_normal((64, n)) * 4
    old = old if whole else old.astype(np.float16 if result == "f16" else np.float32)
    if held:
        for warp in range(4):
            part = a[16 * warp : 16 * warp + 16].astype(np.int64 if whole else np.float32)
            registers[32 * warp : 32 * warp + 32, :4] = packed(part, f"m16n8k{k}", left, "a")
    kernel = _kernel((result, left, right), n, signs + turned, satfinite, held, image.size, selector)
    for add in (1, 0):
        d = np.ascontiguousarray(_placed(old, n))
        kernel.configure(1, 128, backend="emulator")(
            image, tile.descriptor, other.descriptor, d.view(np.uint32), registers, np.uint32(add)
        )
        x, y = np.zeros((64, depth)), b.astype(np.float64)
        np.put_along_axis(x, kept, a.astype(np.float64), 1)
        exact, size = minus * (x @ y.T), abs(x) @ abs(y).T
        exact, size = exact + add * old.astype(np.float64), size + add * abs(old.astype(np.float64))
        if whole:
            wrapped = exact.astype(np.int64)
            wrapped = wrapped.clip(-(2**31), 2**31 - 1) if satfinite else wrapped.astype(np.int32)
            np.testing.assert_array_equal(d, _placed(wrapped, n).astype(np.int32))
            continue
        bound = (k + 1) * 2.0**-24 * size + (2.0**-11 * abs(exact) + 2.0**-24 if result == "f16" else 0)
        assert (abs(d.astype(np.float64) - _placed(exact, n)) <= _placed(bound, n) * 1.01).all()


@pytest.mark.parametrize("span", [16, 32, 128])
@pytest.mark.parametrize("held", [False, True])
def test_single_bits(held: bool, span: int, rng: Rng) -> None:
    n = int(rng.choice([8, 24, 64, 256]))
    a, b = (rng.integers(0, 2, (lines, 256), np.uint8) for lines in (64, n))
    image = rng.integers(0, 256, 1 << 16).astype(np.uint8)
    tile = _Tile(rng, image, 0, np.packbits(a, 1, "little"), "k", span)
    other = _Tile(rng, image, tile.end, np.packbits(b, 1, "little"), "k", span)
    registers = np.zeros((128, 8), np.uint32)
    for warp in range(4):
        registers[32 * warp : 32 * warp + 32, :4] = packed(a[16 * warp : 16 * warp + 16], "m16n8k256", "b1", "a")
    kernel = _kernel(("s32", "b1", "b1"), n, "", False, held, image.size)
    old = rng.integers(-(2**31), 2**31, (64, n)).astype(np.int32)
    for add in (1, 0):
        d = np.ascontiguousarray(_placed(old, n))
        kernel.configure(1, 128, backend="emulator")(
            image, tile.descriptor, other.descriptor, d.view(np.uint32), registers, np.uint32(add)
        )
        exact = a.astype(np.int64) @ b.T.astype(np.int64) + add * old.astype(np.int64)
        np.testing.assert_array_equal(d, _placed(exact.astype(np.int32), n))


def test_rows_too_short_for_a_sparse_product(rng: Rng) -> None:
    image, d = np.zeros(8192, np.uint8), np.zeros((128, 32), np.float32)
    tile = _Tile(rng, image, 0, np.zeros((64, 16), np.float16), "k", 32)
    wrong = np.uint64(descriptor(_START, 16, 256, 32))
    kernel = _kernel(("f32", "f16", "f16"), 64, ", 1, 1, 0, 0", False, False, image.size, 1)
    with pytest.raises(ptxdsl.MemoryFault) as raised:
        kernel.configure(1, 128, backend="emulator")(
            image, tile.descriptor, wrong, d, np.zeros((128, 8), np.uint32), np.uint32(1)
        )
    assert raised.value.message == (
        "the matrix descriptor 0xc000001000010040 of `wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16`: its "
        "swizzle has rows of 32 bytes, but a line of B has 64 where A is sparse"
    )


def test_a_descriptor_beyond_shared_memory(rng: Rng) -> None:
    image, d = np.zeros(8192, np.uint8), np.zeros((128, 32), np.float32)
    tile = _Tile(rng, image, 0, np.zeros((64, 16), np.float16), "k", 32)
    wrong = np.uint64(descriptor(_START + 7168, 16, 256, 32))
    kernel = _kernel(("f32", "f16", "f16"), 64, ", 1, 1, 0, 0", False, False, image.size)
    with pytest.raises(ptxdsl.MemoryFault) as raised:
        kernel.configure(1, 128, backend="emulator")(
            image, tile.descriptor, wrong, d, np.zeros((128, 8), np.uint32), np.uint32(1)
        )
    assert raised.value.message == (
        "the matrix descriptor 0xc000001000010200 of `wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16`: a tile at "
        "0x2000, leading 0x10, stride 0x100, rows of 32 bytes goes beyond the block's shared memory, 0x400 to 0x2400"
    )


_GROUPS = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 d)
{{
    .reg .b64 %d, %at;
    .reg .b32 %t, %x, %w;
    .reg .pred %p;
    .shared .align 1024 .b32 count;
    ld.param.u64 %d, [d];
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;
    setp.eq.u32 %p, %w, {late};
    @!%p bra COMMIT;
    {first}
COMMIT:
    atom.shared.add.u32 %x, [count], 1;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ld.shared.b32 %x, [count];
    mul.wide.u32 %at, %t, 4;
    add.u64 %d, %d, %at;
    st.global.b32 [%d], %x;
    ret;
}}
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_wait_is_for_all_warps_of_the_group(seed: int | None, rng: Rng) -> None:
    """What a warp does after it, all have begun the group before: none has seen fewer than 128 arrivals of its own."""
    late = int(rng.integers(4))
    spin = "mov.u32 %x, 0; SPIN: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, 5000; @%p bra SPIN;"
    text = _GROUPS.format(late=late, first=spin).replace("ld.param", "st.shared.b32 [count], 0; bar.sync 0; ld.param")
    kernel = ptxdsl.load(text)["k"]
    d = np.zeros(128, np.uint32)
    kernel.configure(3, 128, backend="emulator", seed=seed)(d)
    assert (d == 128).all()


def test_a_warp_that_does_not_come() -> None:
    kernel = ptxdsl.load(_GROUPS.format(late=2, first="exit;"))["k"]
    with pytest.raises(ptxdsl.DeadlockError) as raised:
        kernel.configure(1, 128, backend="emulator")(np.zeros(128, np.uint32))
    first, line = raised.value.message.splitlines()
    assert first == "deadlock: all warps wait, some for the others of their warpgroup"
    assert line == (
        "  warps 0-1, 3 wait for group 0 of wgmma, which warp 2 has not committed and has ended: "
        "wgmma.wait_group.sync.aligned 0 at PTX line 19"
    )


def test_fewer_than_four_warps() -> None:
    kernel = ptxdsl.load(_GROUPS.format(late=9, first=""))["k"]
    with pytest.raises(ptxdsl.EmulationError) as raised:
        kernel.configure(1, 192, backend="emulator")(np.zeros(192, np.uint32))
    assert raised.value.message == (
        "`wgmma.commit_group.sync.aligned` in warp 4 of a block of 192 threads: a warpgroup is four warps, from a "
        "multiple of four on"
    )
