"""Copies from shared to tensor memory, shifts and commits, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tensor_memory_programs import MEET, complete, fill, kernel, launched, registers
from tensor_products import matrix_word

from ptxdsl import EmulationError, MemoryFault

Rng = np.random.Generator


def read(columns: int, per: int = 64) -> str:
    """Write the columns from %base on, row by row, to the block's part of the second array."""
    lines = ["mov.u32 %c, %ctaid.x; shl.b32 %c, %c, 7; add.u32 %c, %c, %t;"]
    lines += [f"mul.wide.u32 %at, %c, {4 * columns}; add.u64 %at, %at, %out; add.u32 %a, %base, %quarter;"]
    for first in range(0, columns, per):
        count = min(per, columns - first)
        lines += [f"tcgen05.ld.sync.aligned.32x32b.x{count}.b32 {registers(count)}, [%a+{first}];"]
        lines += ["tcgen05.wait::ld.sync.aligned;"]
        lines += [f"st.global.b32 [%at+{4 * (first + n)}], %r{n};" for n in range(count)]
    return "\n    ".join(["", *lines, ""])


def refused(kind: type[EmulationError], body: str, **how: Any) -> str:
    with pytest.raises(kind) as caught:
        launched(kernel(body, columns=64, **how), np.zeros(8), (128, 64))
    return caught.value.message


@pytest.mark.parametrize("quarter", range(4))
def test_shift(quarter: int, rng: Rng) -> None:
    """Eight columns of one quarter of the lanes move down by one lane; its last one stays."""
    column = int(rng.integers(0, 57))
    shift = complete(f"@%first tcgen05.shift.cta_group::1.down [%base+{quarter << 21 | column}];")
    source = rng.integers(0, 2**32, (128, 64), np.uint32)
    wanted, first = source.copy(), 32 * quarter
    wanted[first : first + 31, column : column + 8] = source[first + 1 : first + 32, column : column + 8]
    out = launched(kernel(fill(64, 64) + shift + read(64), columns=64), source, (128, 64))
    np.testing.assert_array_equal(out, wanted)


def test_shift_in_both_blocks_of_a_pair(rng: Rng) -> None:
    body = fill(32, 32) + """
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.and.u32 %q, %rank, 1, %first;
    """ + complete("@%q tcgen05.shift.cta_group::2.down [%base+8];", 2, "%q") + read(32) + MEET
    source = rng.integers(0, 2**32, (128, 32), np.uint32)
    wanted = source.copy()
    wanted[:31, 8:16] = source[1:32, 8:16]
    out = launched(kernel(body, columns=32, group=2), source, (2, 128, 32), grid=2, cluster=2)
    np.testing.assert_array_equal(out, [wanted, wanted])


def test_shifts_that_are_wrong() -> None:
    form = "tcgen05.shift.cta_group::1.down"
    assert refused(MemoryFault, f"@%first {form} [%base+{16 << 16}];") == (
        f"`{form}` at lane 16 of tensor memory: a shift begins at lane 0, 32, 64 or 96"
    )
    assert refused(MemoryFault, f"@%first {form} [%base+60];") == (
        f"`{form}` accesses columns 60 to 67 of tensor memory, of which column 64 is not allocated; allocated are "
        "columns 0 to 63"
    )


COMMIT = """
    @%first mbarrier.init.shared.b64 [barriers], 1;
    bar.sync 0;
    {meet}
    mov.u32 %rank, %cluster_ctarank;
    setp.eq.and.u32 %q, %rank, {rank}, %first;
    @%q {commit};
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p, [barriers], 0;
    @!%p bra WAIT;
    mov.u32 %c, %ctaid.x;
    shl.b32 %c, %c, 7;
    add.u32 %c, %c, %t;
    mul.wide.u32 %at, %c, 4;
    add.u64 %at, %at, %out;
    st.global.b32 [%at], %c;
    {meet}
"""


@pytest.mark.parametrize("space", [".shared::cluster", ""])
def test_a_commit_arrives_at_an_mbarrier(space: str) -> None:
    address = "[barriers]" if space else "[%at]"
    commit = f"tcgen05.commit.cta_group::1.mbarrier::arrive::one{space}.b64 {address}"
    body = "mov.u64 %at, barriers; cvta.shared.u64 %at, %at;" + COMMIT.format(commit=commit, meet="", rank=0)
    out = launched(kernel(body, columns=0), np.zeros(4), (128,))
    assert out.tolist() == list(range(128))


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("space", [".shared::cluster", ""])
def test_a_commit_arrives_in_several_blocks(space: str, seed: int | None) -> None:
    address = "[barriers]" if space else "[%at]"
    commit = f"tcgen05.commit.cta_group::2.mbarrier::arrive::one{space}.multicast::cluster.b64 {address}, %h"
    head = "mov.b16 %h, 15; mov.u64 %at, barriers; cvta.shared.u64 %at, %at;"
    body = head + COMMIT.format(commit=commit, meet=MEET, rank=1)
    out = launched(kernel(body, columns=0), np.zeros(4), (512,), grid=4, cluster=4, seed=seed)
    assert out.tolist() == list(range(512))


# Copies


_START = 1024
"""Where ``tile`` begins in shared memory: behind what else there is, at a multiple of 1024."""
ROWS = {"128x256b": 128, "4x256b": 4, "128x128b": 128, "64x128b.warpx2::02_13": 64, "64x128b.warpx2::01_23": 64,
        "32x128b.warpx4": 32}
SWIZZLES = {0: (16, ()), 6: (32, ((4, 7),)), 4: (64, ((4, 7), (5, 8))), 2: (128, ((4, 7), (5, 8), (6, 9))),
            1: (128, ((5, 7), (6, 8)))}
"""By the number in a descriptor: the bytes of a row, and which bit of an address flips which."""


def address(start: int, leading: int, stride: int, mode: int, row: int, at: int) -> int:
    """Where a byte of a row lies, in shared memory: the manual's canonical K-major layout."""
    span, flips = SWIZZLES[mode]
    place = start + row % 8 * span + row // 8 * stride + (at // 16 * leading + at % 16 if mode == 0 else at)
    for to, of in flips:
        place ^= (place >> of & 1) << to
    return place


def goes_to(shape: str, row: int) -> list[int]:
    """The lanes of a row, by the pictures of CUTLASS."""
    if shape == "4x256b":
        return [32 * row]
    if "02_13" in shape:
        return [row, row + 64]
    if "01_23" in shape:
        return [row % 32 + 64 * (row // 32), row % 32 + 64 * (row // 32) + 32]
    return [row + 32 * n for n in range(4)] if "warpx4" in shape else [row]


def copied(words: int, first: int = 0) -> str:
    """Put words of the first array to ``tile``."""
    return f"""
    mov.u32 %c, %t;
    mov.u32 %b, tile;
FILL:
    mul.wide.u32 %at, %c, 4;
    add.u64 %at, %at, %source;
    ld.global.b32 %r0, [%at+{4 * first}];
    mad.lo.u32 %r1, %c, 4, %b;
    st.shared.b32 [%r1], %r0;
    add.u32 %c, %c, 128;
    setp.lt.u32 %p, %c, {words};
    @%p bra FILL;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    """


def expanded(data: np.ndarray[Any, Any], bits: int) -> np.ndarray[Any, Any]:
    """Rows of 16-byte units, of which each holds 16 elements of so many bits, as bytes."""
    units = data.reshape(len(data), -1, 16)[..., : 2 * bits]
    fields = np.unpackbits(units, axis=-1, bitorder="little").reshape(*units.shape[:2], 16, bits)
    values = (fields * (1 << np.arange(bits))).sum(axis=-1) << (2 if bits == 4 else 0)
    return values.astype(np.uint8).reshape(len(data), -1)


@pytest.mark.parametrize("mode", SWIZZLES)
@pytest.mark.parametrize("shape", ROWS)
def test_copies(shape: str, mode: int, rng: Rng) -> None:
    form = str(rng.choice(["", ".b8x16.b4x16_p64", ".b8x16.b6x16_p32"]))
    rows, line, span = ROWS[shape], 32 if "256b" in shape else 16, SWIZZLES[mode][0]
    stride = 8 * span + 128 * int(rng.integers(0, 2)) if mode in (0, 6) else 8 * span
    leading = 16 * int(rng.integers(1, 5)) if mode == 0 else 16
    leading += stride * (-(-rows // 8)) if mode == 0 else 0
    step = int(rng.integers(0, (span - line) // 16 + 1)) * 16 if mode > 0 else 16 * int(rng.integers(0, 3))
    if mode == 1:
        step = step // 32 * 32
    nbytes = 32768
    source = rng.integers(0, 256, nbytes, np.uint8)
    lane, column = int(rng.integers(0, 32)) if shape == "4x256b" else 0, int(rng.integers(0, 57))
    word = matrix_word(_START + step, leading, stride, mode)
    body = fill(64, 64) + copied(nbytes // 4, 128 * 64) + f"""
    mov.b64 %desc, {word};
    """ + complete(f"@%first tcgen05.cp.cta_group::1.{shape}{form} [%base+{lane << 16 | column}], %desc;") + read(64)
    image = rng.integers(0, 2**32, (128, 64), np.uint32)
    given = np.concatenate([image.ravel(), source.view(np.uint32)])
    out = launched(kernel(body, columns=64, tile=nbytes), given, (128, 64))
    places = [[address(step, leading, stride, mode, row, at) for at in range(line)] for row in range(rows)]
    data = source[np.array(places)]
    if form:
        data = expanded(data, 4 if "b4" in form else 6)
    wanted = image.copy()
    for row in range(rows):
        for to in goes_to(shape, row):
            wanted[lane + to, column : column + line // 4] = np.ascontiguousarray(data[row]).view(np.uint32)
    np.testing.assert_array_equal(out, wanted)


def test_each_block_of_a_pair_copies_its_own_rows(rng: Rng) -> None:
    body = "mov.u32 %rank, %cluster_ctarank; mul.wide.u32 %at, %rank, 512; add.u64 %source, %source, %at;"
    body += copied(128) + f"""
    mov.b64 %desc, {matrix_word(_START, 16, 128, 0)};
    setp.eq.and.u32 %q, %rank, 0, %first;
    """ + complete("@%q tcgen05.cp.cta_group::2.32x128b.warpx4 [%base+4], %desc;", 2, "%q")
    body += "add.u32 %base, %base, 4;" + read(4) + "sub.u32 %base, %base, 4;" + MEET
    source = rng.integers(0, 2**32, (2, 32, 4), np.uint32)
    out = launched(kernel(body, columns=32, group=2, tile=512), source, (2, 128, 4), grid=2, cluster=2)
    np.testing.assert_array_equal(out, np.tile(source, (1, 4, 1)))


@pytest.mark.parametrize(("word", "why"), [
    (matrix_word(0x400, 16, 128, 0) ^ 1 << 46, "bits 46-48 are 0, and must be 1"),
    (matrix_word(0x400, 16, 128, 3), "bits 61-63, the swizzle, are 3; there are 0, 1, 2, 4 and 6"),
    (matrix_word(0x400, 16, 128, 2) | 1 << 49, "its base offset is 1; the emulator takes 0 only"),
    (matrix_word(0x400, 16, 128, 0) | 1 << 52,
     "bit 52 is set: its leading dimension would be an address, which only rows of 48 bytes have"),
    (matrix_word(0x400 + 112, 16, 1024, 2), "a line of 32 bytes begins at byte 112 of a row of 128 bytes"),
    (matrix_word(0x400, 16, 0x2000, 2),
     "128 rows of 32 bytes from 0x400 on, leading 0x10, stride 0x2000, @"),
    (matrix_word(0, 16, 1024, 2),
     "128 rows of 32 bytes from 0x0 on, leading 0x10, stride 0x400, @"),
])
def test_descriptors_that_are_none(word: int, why: str) -> None:
    form = "tcgen05.cp.cta_group::1.128x256b"
    body = f"mov.b64 %desc, {word};\n@%first {form} [%base], %desc;"
    why = why.replace("@", "go beyond the block's shared memory, 0x400 to 0x4430")
    assert refused(MemoryFault, body, tile=16384) == f"the matrix descriptor {word:#x} of `{form}`: {why}"


def test_copies_to_lanes_that_are_wrong() -> None:
    body = f"mov.b64 %desc, {matrix_word(0x400, 16, 128, 0)};\n"
    body += f"@%first tcgen05.cp.cta_group::1.{{}} [%base+{32 << 16}], %desc;"
    assert refused(MemoryFault, body.format("128x128b")) == (
        "`tcgen05.cp.cta_group::1.128x128b` at lane 32 of tensor memory: a copy of this shape begins at lane 0"
    )
    assert refused(MemoryFault, body.format("4x256b")) == (
        "`tcgen05.cp.cta_group::1.4x256b` at lane 32 of tensor memory: a copy of this shape begins at one of the lanes "
        "0 to 31"
    )
