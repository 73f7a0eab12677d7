"""Tensor copies as numpy makes them, by the manual's formulas, and kernels that make them in PTX."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["copy_kernel", "in_shared", "place", "rows_of"]

_LINES = {"32B": (1, 16), "64B": (3, 16), "128B": (7, 16), "128B_atom_32B": (3, 32), "128B_atom_32B_flip_8B": (3, 32),
          "128B_atom_64B": (1, 64), "96B": (1, 16)}


def place(offset: int, swizzle: str | None) -> int:
    """Where the byte of a box lies that would lie at ``offset`` without a swizzle."""
    if swizzle is None:
        return offset
    mask, atom = _LINES[swizzle]
    line = offset // 128
    moved = offset ^ (line & mask) * atom
    return moved ^ 8 * (line & 1) if swizzle.endswith("8B") and "flip" in swizzle else moved


def rows_of(shape: Sequence[int], box: Sequence[int], steps: Sequence[int], start: Sequence[int]) -> list[Any]:
    """The index of each row of a box, without the innermost dimension, in the order of shared memory; None outside."""
    axes = [range(first, first + extent, step) for first, extent, step in zip(start[:-1], box[:-1], steps[:-1])]
    inside = lambda index: all(0 <= at < extent for at, extent in zip(index, shape[:-1]))  # noqa: E731
    return [index if inside(index) else None for index in itertools.product(*axes)]


def in_shared(
    array: np.ndarray[Any, Any], rows: list[Any], width: int, first: int, swizzle: str | None, fill: bytes
) -> bytes:
    """The lines of a box in shared memory: of each row ``width`` elements from element ``first`` on."""
    size = array.itemsize
    found = bytearray(b"\xff" * (-(-len(rows) * width * size // 128) * 128))
    for number, index in enumerate(rows):
        for column in range(width):
            at = first + column
            good = index is not None and 0 <= at < array.shape[-1]
            data = array[(*index, at)].tobytes() if good else fill
            for byte in range(size):
                offset = (number * width + column) * size + byte
                found[place(offset, swizzle)] = data[byte]
    return bytes(found)


_KERNEL = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 m[128], .param .u64 data, .param .u64 coordinates)
{{
    .reg .b64 %map, %data, %at, %state;
    .reg .b32 %n, %end, %word, %c<5>;
    .reg .pred %p;
    .shared .align 1024 .b8 box[{nbytes}];
    .shared .align 8 .b64 bar;
    mov.b64 %map, m;
    cvta.param.u64 %map, %map;
    ld.param.u64 %data, [data];
    ld.param.u64 %at, [coordinates];
{coordinates}
{body}
    ret;
}}
"""
_COPY = """    mov.u32 %n, 0;
{label}:
    mov.u32 %word, box;
    add.u32 %word, %word, %n;
    cvt.u64.u32 %at, %n;
    add.u64 %at, %at, %data;
    {{ .reg .b32 %x; {moves} }}
    add.u32 %n, %n, 4;
    setp.lt.u32 %p, %n, {nbytes};
    @%p bra {label};
"""
_LOAD = """    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.expect_tx.shared.b64 %state, [bar], {expected};
    {instruction} [box], [%map, {{{list}}}], [bar];
WAIT:
    mbarrier.try_wait.shared.b64 %p, [bar], %state;
    @!%p bra WAIT;
"""
_STORE = """    fence.proxy.async;
    {instruction} [%map, {{{list}}}], [box];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
"""


def copy_kernel(instruction: str, nbytes: int, count: int, version: str = "8.6", target: str = "sm_90a") -> str:
    """A kernel of one thread that loads a box and gives its bytes, or stores a box of the bytes that it is given."""
    lines = -(-nbytes // 128) * 128
    read = "\n".join(f"    ld.global.b32 %c{n}, [%at+{4 * n}];" for n in range(count))
    loads, coordinates = ".mbarrier::" in instruction, ", ".join(f"%c{n}" for n in range(count))
    moves = "ld.shared.b32 %x, [%word]; st.global.b32 [%at], %x;"
    if not loads:
        moves = "ld.global.b32 %x, [%at]; st.shared.b32 [%word], %x;"
    copy = _COPY.format(label="MOVE", moves=moves, nbytes=lines)
    tensor = (_LOAD if loads else _STORE).format(instruction=instruction, expected=nbytes, list=coordinates)
    body = tensor + copy if loads else copy + tensor
    return _KERNEL.format(version=version, target=target, nbytes=lines, coordinates=read, body=body)
