"""Kernels that use tensor memory, as PTX, and its cells by the manual's formulas: for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

import ptxdsl

__all__ = ["ALLOCATE", "FREE", "MEET", "cell", "complete", "fill", "kernel", "launched", "registers"]

_HEAD = """.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .u64 source, .param .u64 out){cluster}
{{
    .reg .b64 %source, %out, %at, %desc;
    .reg .b32 %r<{registers}>;
    .reg .f32 %f<{registers}>;
    .reg .b32 %base, %quarter, %t, %w, %a, %b, %c, %bar, %rank;
    .reg .b16 %h;
    .reg .pred %p, %q, %first;
    .shared .align 1024 .b8 tile[{tile}];
    .shared .align 16 .b32 slot[4];
    .shared .align 8 .b64 barriers[4];
    ld.param.u64 %source, [source];
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;
    setp.eq.u32 %first, %t, 0;
    and.b32 %quarter, %w, 3;
    shl.b32 %quarter, %quarter, 21;
{body}
    ret;
}}
"""

ALLOCATE = """
    setp.ne.u32 %p, %w, 0;
    @%p bra ALLOCATED{n};
    tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [slot+{slot}], {columns};
ALLOCATED{n}:
    bar.sync 0;
    ld.shared.u32 %base, [slot+{slot}];
"""
FREE = """
    bar.sync 0;
    setp.ne.u32 %p, %w, 0;
    @%p bra FREED{n};
    tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %base, {columns};
FREED{n}:
"""


def kernel(
    body: str, *, columns: int = 512, group: int = 1, target: str = "sm_103a", version: str = "8.8",
    registers: int = 160, cluster: int = 0, tile: int = 16,
) -> Any:
    """A kernel that has allocated so many columns (none for 0) around a body; ``%base`` is their address."""
    named = {"columns": columns, "group": group, "slot": 0, "n": 0}
    whole = ALLOCATE.format(**named) + body + FREE.format(**named) if columns else body
    directive = f" .reqnctapercluster {cluster}, 1, 1" if cluster else ""
    text = _HEAD.format(
        body=whole, target=target, version=version, registers=registers, cluster=directive, tile=tile
    )
    return ptxdsl.load(text)["k"]


def launched(made: Any, source: Any, shape: tuple[int, ...], threads: int = 128, grid: int = 1, **how: Any) -> Any:
    """What a kernel writes to its second array, of u32."""
    out = np.full(shape, 0xDEADBEEF, np.uint32)
    made.configure(grid, threads, **how)(np.ascontiguousarray(source).view(np.uint32), out)
    return out


MEET = "barrier.cluster.arrive; barrier.cluster.wait;"


def complete(operation: str, group: int = 1, thread: str = "%first", n: int = 0) -> str:
    """An operation of one thread, which all threads wait for at an mbarrier; of a pair those of both blocks."""
    form = f"tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster"
    commit = f"{form}.b64 [barriers]" if group == 1 else f"{form}.multicast::cluster.b64 [barriers], %h"
    return f"""
    mov.b16 %h, 3;
    @%first mbarrier.init.shared.b64 [barriers], 1;
    bar.sync 0;
    {MEET if group == 2 else ""}
    {operation}
    @{thread} {commit};
COMPLETE{n}:
    mbarrier.try_wait.parity.shared.b64 %p, [barriers], 0;
    @!%p bra COMPLETE{n};
    """


def registers(count: int, first: int = 0, letter: str = "r") -> str:
    """Registers in braces."""
    return "{" + ", ".join(f"%{letter}{first + n}" for n in range(count)) + "}"


def fill(columns: int, pitch: int, per: int = 64) -> str:
    """Store columns from %base on; lane i of column j gets source[i, j], whose rows are ``pitch`` numbers."""
    per = min(per, columns)
    lines = [f"mul.wide.u32 %at, %t, {4 * pitch};", "add.u64 %at, %at, %source;", "add.u32 %a, %base, %quarter;"]
    for first in range(0, columns, per):
        lines += [f"ld.global.b32 %r{n}, [%at+{4 * (first + n)}];" for n in range(per)]
        lines += [f"tcgen05.st.sync.aligned.32x32b.x{per}.b32 [%a+{first}], {registers(per)};"]
    return "\n    ".join(["", *lines, "tcgen05.wait::st.sync.aligned;", ""])


def cell(shape: str, t: int, r: int, half: int) -> tuple[int, int]:
    """Lane and column of a register, from the address on: the manual's table, where each register is one cell."""
    if shape == "32x32b":
        return t, r
    if shape == "16x64b":
        return t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2
    if shape == "16x128b":
        return t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
    if shape == "16x256b":
        return t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
    return t % 16, r + (half if t >= 16 else 0)
