"""ldmatrix and stmatrix of bytes and of packed 6- and 4-bit elements, in both tiers, sanitized too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from two_tiers import same

import ptxdsl
from ptxdsl.errors import MemoryFault

Rng = np.random.Generator
LANES = 32
WIDTHS = {"b8": 8, "b8x16.b6x16_p32": 6, "b8x16.b4x16_p64": 4, "s8.s4": 4}


def unpacked_row(row: Any, bits: int) -> Any:
    """The 16 elements of a row in memory, the first in the lowest bits."""
    whole = int.from_bytes(row.tobytes(), "little")
    return np.array([whole >> bits * number & (1 << bits) - 1 for number in range(16)])


def text_of(mnemonic: str, registers: int, stride: int, offset: int, initial: int) -> str:
    """Shared memory from x; each lane's address is a row of it; registers to y, or from x, and shared memory to y."""
    names = "{" + ", ".join(f"%r{n + 8}" for n in range(registers)) + "}"
    address = f"[%r2+{offset}]"
    stores = mnemonic.startswith("st")
    size = stride * LANES + 16
    lines = [f"ld.global.b32 %r4, [%rd2+{128 * n}]; st.shared.b32 [%r3+{128 * n}], %r4;" for n in range(initial // 128)]
    if stores:
        lines += [f"ld.global.b32 %r{n + 8}, [%rd2+{initial + 128 * n}];" for n in range(registers)]
        places = range(0, initial, 128)
        end = [f"ld.shared.b32 %r4, [%r3+{place}]; st.global.b32 [%rd3+{place}], %r4;" for place in places]
        middle = f"{mnemonic} {address}, {names};"
    else:
        end = [f"st.global.b32 [%rd3+{128 * n}], %r{n + 8};" for n in range(registers)]
        middle = f"{mnemonic} {names}, {address};"
    body = "\n".join([*lines, "bar.warp.sync 0xFFFFFFFF;", middle, "bar.warp.sync 0xFFFFFFFF;", *end])
    return f"""
.version 9.4
.target sm_100a
.entry k(.param .u64 x, .param .u64 y) {{
    .reg .b32 %r<16>; .reg .b64 %rd<6>; .shared .align 16 .b8 tile[{size}];
    mov.u32 %r1, %tid.x; mov.u32 %r3, tile; mad.lo.u32 %r2, %r1, {stride}, %r3; mad.lo.u32 %r3, %r1, 4, %r3;
    ld.param.u64 %rd2, [x]; ld.param.u64 %rd3, [y]; mad.wide.u32 %rd2, %r1, 4, %rd2; mad.wide.u32 %rd3, %r1, 4, %rd3;
    {body}
    ret;
}}"""


def run(text: str, x: Any, words: int, tool: str) -> Any:
    y = np.zeros((words, LANES), np.uint32)
    if tool == "tiers":
        assert same(text, 1, 32, x=x, y=y) == ""
    kernel = ptxdsl.load(text)["k"]
    kernel.configure(1, 32, backend="emulator", sanitize="all" if tool == "sanitized" else None)(x, y)
    return y


LOADS = [
    ("m8n16", 2, "", "b8x16.b6x16_p32"), ("m8n16", 4, "", "b8x16.b4x16_p64"), ("m8n16", 1, "", "s8.s4"),
    ("m16n16", 1, ".trans", "b8x16.b6x16_p32"), ("m16n16", 2, ".trans", "b8x16.b4x16_p64"),
    ("m16n16", 2, ".trans", "b8"),
]


@pytest.mark.parametrize("case", LOADS, ids=str)
def test_ldmatrix(case: tuple[str, int, str, str], rng: Rng) -> None:
    """Rows lie 16 bytes apart (4-bit ones without padding 8); only what a row has of data is initialised."""
    shape, count, trans, kind = case
    bits, high = WIDTHS[kind], 16 if shape == "m16n16" else 8
    stride = 8 if kind == "s8.s4" else 16
    x = rng.integers(0, 256, (LANES, stride), np.uint8)
    registers = count * (2 if high == 16 else 1)
    mnemonic = f"ldmatrix.sync.aligned.{shape}.x{count}{trans}.shared.{kind}"
    text = text_of(mnemonic, registers, stride, 0, stride * LANES)
    tool = "tiers" if count == 4 or kind == "b8" else "sanitized" if bits == 6 else ""
    out = run(text, x.view(np.uint32).reshape(-1), registers, tool)
    found = out.view(np.uint8).reshape(registers, LANES, 4)
    for number in range(count):
        rows = x[high * number : high * (number + 1)]
        matrix = np.array([unpacked_row(row, bits) for row in rows])
        if kind == "s8.s4":
            matrix = np.where(matrix > 7, matrix + 240, matrix)
        matrix = matrix.T if trans else matrix
        for half in range(high // 8):
            mine = matrix[8 * half : 8 * half + 8].reshape(LANES, 4)
            np.testing.assert_array_equal(found[number * (high // 8) + half], mine)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_stmatrix(count: int, rng: Rng) -> None:
    """A lane has rows g and g + 8 of columns 2t and 2t + 1; a column is a row in memory."""
    before = rng.integers(0, 256, (LANES, 48), np.uint8)
    values = rng.integers(0, 256, (count, LANES, 4), np.uint8)
    x = np.concatenate([before.reshape(-1), values.reshape(-1)]).view(np.uint32)
    text = text_of(f"stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8", count, 48, 16, before.size)
    out = run(text, x, before.size // 128, ("", "tiers", "sanitized")[count // 2])
    expected = np.concatenate([before.reshape(-1), np.zeros(16, np.uint8)])
    for number in range(count):
        for lane in range(LANES):
            for part in range(4):
                row, column = lane // 4 + 8 * (part // 2), 2 * (lane % 4) + part % 2
                expected[48 * (8 * number + column) + 16 + row] = values[number, lane, part]
    np.testing.assert_array_equal(out.view(np.uint8).reshape(-1), expected[: before.size])


ROWS = [
    ("ldmatrix.sync.aligned.m8n8.x1.shared.b16", 1, 16), ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", 4, 16),
    ("ldmatrix.sync.aligned.m8n16.x2.shared.b8x16.b4x16_p64", 2, 16),
    ("ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4", 1, 8), ("stmatrix.sync.aligned.m8n8.x2.shared.b16", 2, 16),
    ("stmatrix.sync.aligned.m16n8.x4.trans.shared.b8", 4, 16),
]


@pytest.mark.parametrize("case", ROWS, ids=lambda case: case[0])
def test_rows_are_aligned(case: tuple[str, int, int], rng: Rng) -> None:
    """Of the lanes whose addresses count: those of other lanes may be anything."""
    mnemonic, registers, size = case
    sanitize = "all" if case in (ROWS[1], ROWS[4]) else None
    y, x = np.zeros((64, LANES), np.uint32), rng.integers(0, 2**32, 8 * LANES * 8, np.uint32)
    right = text_of(mnemonic, registers, 48, size, 48 * LANES)
    rows = 8 * int(mnemonic.partition(".x")[2][0])
    wrong = right.replace(mnemonic, f"@%p add.u32 %r2, %r2, {size // 2}; {mnemonic}")
    for lane in (rows - 1, rows):
        text = wrong.replace(".reg .b32 %r<16>;", ".reg .b32 %r<16>; .reg .pred %p;").replace(
            "ld.param.u64 %rd2, [x];", f"setp.eq.u32 %p, %r1, {lane}; ld.param.u64 %rd2, [x];"
        )
        kernel = ptxdsl.load(text)["k"].configure(1, 32, backend="emulator", sanitize=sanitize)
        if lane == rows:
            kernel(x, y)
            continue
        place = 48 * lane + size + size // 2
        with pytest.raises(MemoryFault) as raised:
            kernel(x, y)
        verb = "load from" if mnemonic.startswith("ld") else "store to"
        assert raised.value.message == (
            f"{verb} address {1024 + place:#x} (tile[{place}]): {size} bytes must be aligned to {size} bytes"
        )


def test_a_row_beyond_shared_memory(rng: Rng) -> None:
    text = text_of("ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8", 4, 16, 16 * 30, 512)
    with pytest.raises(MemoryFault, match=r"^load from tile\[544\]: tile is b8\[528\]"):
        run(text, rng.integers(0, 256, 512, np.uint8).view(np.uint32), 4, "")
