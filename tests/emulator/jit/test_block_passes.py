"""Passes of all warps without checks give what the checked loop gives: results to the bit, and each fault.

Sizes lie around the edges of blocks, where checks hold in some warps or some lanes only.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel
from llvmlite import ir
from two_tiers import same

from ptxdsl.emulator.codegen.segments import LINE
from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.machine_code.host import vector_registers
from ptxdsl.text import parse

START = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n]; ld.param.u32 %r21, [w];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mul.lo.u32 %r6, %r4, %r5; mad.lo.u32 %r7, %r2, %r4, %r1; mad.lo.u32 %r8, %r3, %r6, %r7; add.u32 %r9, %r8, %r21;
"""
"""%r7 is the thread's number in its block, %r8 in the grid, %r9 that and w."""
COPY = """
    mul.wide.u32 %rd2, %r9, 4; add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1;
    ld.global.u32 %r10, [%rd3]; mad.lo.u32 %r10, %r10, 3, %r9; st.global.u32 [%rd4], %r10;
"""
BODIES = {
    "less": f"setp.lt.u32 %p1, %r8, %r20; @!%p1 bra END; {COPY} END: ret;",
    "return": f"setp.ge.s32 %p1, %r8, %r20; @%p1 ret; {COPY} ret;",
    "both": f"""setp.gt.s32 %p1, %r8, 2; setp.lt.s32 %p2, %r8, %r20; and.pred %p3, %p1, %p2; not.pred %p4, %p3;
        @%p4 bra END; {COPY} END: ret;""",
    "either": f"setp.ge.u32 %p1, %r8, %r20; setp.eq.u32 %p2, %r3, 1; or.pred %p3, %p1, %p2; @%p3 ret; {COPY} ret;",
    "unequal": f"setp.ne.u32 %p1, %r8, %r20; @!%p1 bra END; {COPY} END: ret;",
    "else": """setp.lt.u32 %p1, %r8, %r20; mul.wide.u32 %rd2, %r9, 4; add.u64 %rd3, %rd2, %rd0;
        add.u64 %rd4, %rd2, %rd1; @%p1 bra LOAD; mov.u32 %r10, 7; bra JOIN; LOAD: ld.global.u32 %r10, [%rd3];
        JOIN: st.global.u32 [%rd4], %r10; ret;""",
    "guard": """setp.lt.u32 %p1, %r8, %r20; mul.wide.u32 %rd2, %r9, 4; add.u64 %rd3, %rd2, %rd0;
        add.u64 %rd4, %rd2, %rd1; mov.u32 %r10, 5; @%p1 ld.global.u32 %r10, [%rd3]; @%p1 st.global.u32 [%rd4], %r10;
        ret;""",
    "none": f"{COPY} ret;",
    "bytes": """cvt.u64.u32 %rd2, %r9; add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1; ld.global.u8 %r10, [%rd3];
        add.u32 %r10, %r10, 1; st.global.u8 [%rd4], %r10; ret;""",
    "vectors": """setp.lt.u32 %p1, %r8, %r20; @!%p1 bra END; mul.wide.u32 %rd2, %r9, 16; add.u64 %rd3, %rd2, %rd0;
        add.u64 %rd4, %rd2, %rd1; ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd3];
        st.global.v4.u32 [%rd4], {%r13, %r10, %r12, %r11}; END: ret;""",
    "loop": """.shared .align 4 .b8 s[4096]; mov.u32 %r30, s; mad.lo.u32 %r31, %r7, 4, %r30; mov.u32 %r14, 0;
        mov.u32 %r15, 0;
        L: mad.lo.u32 %r10, %r14, %r6, %r9; mul.wide.u32 %rd2, %r10, 4; add.u64 %rd3, %rd2, %rd0;
        ld.global.u32 %r11, [%rd3]; st.shared.u32 [%r31], %r11; bar.sync 0; ld.shared.u32 %r12, [%r30+8];
        mad.lo.u32 %r15, %r15, 3, %r12; bar.sync 0; add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, %r20; @%p1 bra L;
        mul.wide.u32 %rd2, %r8, 4; add.u64 %rd4, %rd2, %rd1; st.global.u32 [%rd4], %r15; ret;""",
    "rows": """.shared .align 4 .b8 s[4096]; mov.u32 %r30, s; mad.lo.u32 %r31, %r7, 4, %r30;
        mad.lo.u32 %r10, %r2, %r20, %r1; add.u32 %r10, %r10, %r21; mul.wide.u32 %rd2, %r10, 4;
        add.u64 %rd3, %rd2, %rd0; ld.global.u32 %r11, [%rd3]; st.shared.u32 [%r31], %r11; bar.sync 0;
        ld.shared.u32 %r12, [%r30+12]; add.u32 %r12, %r12, %r11; mul.wide.u32 %rd2, %r8, 4; add.u64 %rd4, %rd2, %rd1;
        st.global.u32 [%rd4], %r12; ret;""",
}
REFUSED = {"unequal", "guard"}
BLOCKS = ((64,), (96,), (256,), (16, 8), (8, 8), (32, 4), (4, 16))


def arrays(rng: random.Random, threads: int, blocks: int, name: str) -> dict[str, Any]:
    """Arguments that fit, nearly fit, or do not."""
    total = threads * blocks
    edges = [total, total - 1, total - 31, total - threads, total - threads - 33, 1, 0, 40, total + 70]
    scale = 4 if name == "vectors" else 1
    size = {"loop": 3 * total, "rows": 32 * total}.get(name, scale * total) + rng.choice([0, 0, 0, -1, -33, 5])
    n = max(0, rng.choice(edges)) if name not in ("loop", "rows") else rng.choice([1, 2, 3, 16])
    values = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 1 << 32, size, np.uint32)
    w = rng.choice([0, 0, 0, 1, 3, (1 << 32) - 1, (1 << 32) - threads, (1 << 32) - total // 2])
    out = np.full(scale * total + rng.choice([0, 0, 2]), 0xABCD, np.uint32)
    return {"x": values, "y": out, "n": np.uint32(n), "w": np.uint32(w)}


def passes(text: str, block: Any) -> int:
    """How many passes without checks the block function of a kernel has."""
    module = ir.Module()
    emit_block_function(module, "k", plan_block_function(Program(parse(text)).code("k", LaunchConfig(1, block).block)))
    return sum(each.name.startswith("unchecked") for each in module.globals["k"].blocks)


@pytest.mark.parametrize("name", BODIES)
def test_results_and_faults(name: str, rng: np.random.Generator) -> None:
    text, some = kernel("u64 x, u64 y, u32 n, u32 w", START + BODIES[name]), random.Random(int(rng.integers(1 << 30)))
    block = some.choice(BLOCKS)
    for _ in range(4):
        same(text, 3, block, **arrays(some, int(np.prod(block)), 3, name))


@pytest.mark.parametrize("name", BODIES)
def test_there_is_a_pass(name: str) -> None:
    assert (passes(kernel("u64 x, u64 y, u32 n, u32 w", START + BODIES[name]), (16, 8)) > 0) is (name not in REFUSED)


def test_what_a_warp_is_told_of_itself(rng: np.random.Generator) -> None:
    """The index of its first thread is in no register."""
    body = START + """mov.u32 %r22, %tid.x; L: mad.lo.u32 %r10, %r3, %r6, %r22; mul.wide.u32 %rd2, %r10, 4;
        add.u64 %rd3, %rd2, %rd0; add.u64 %rd4, %rd2, %rd1; ld.global.u32 %r11, [%rd3]; st.global.u32 [%rd4], %r11;
        add.u32 %r22, %r22, %r4; setp.lt.u32 %p1, %r22, %r6; @%p1 bra L; ret;"""
    given = arrays(random.Random(int(rng.integers(1 << 30))), 96, 3, "own")
    same(kernel("u64 x, u64 y, u32 n, u32 w", body), 3, 96, **given)


TILES = """.shared .align 16 .b8 s[8192]; mov.u32 %r30, s; mad.lo.u32 %r31, %r7, 4, %r30; mov.u32 %r14, 0;
    mov.u32 %r15, 0; mad.lo.u32 %r16, %r2, %r20, %r1;
    L: shl.b32 %r17, %r14, 4; add.u32 %r10, %r16, %r17; mul.wide.u32 %rd2, %r10, 4; add.u64 %rd3, %rd2, %rd0;
    ld.global.u32 %r11, [%rd3]; st.shared.u32 [%r31], %r11; bar.sync 0; ld.shared.u32 %r12, [%r30+8];
    mad.lo.u32 %r15, %r15, 3, %r12; ld.shared.u32 %r13, [%r31]; add.u32 %r15, %r15, %r13; bar.sync 0;
    add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, %r21; @%p1 bra L;
    mul.wide.u32 %rd2, %r7, 4; add.u64 %rd4, %rd2, %rd1; st.global.u32 [%rd4], %r15; ret;"""
"""Tiles of 16 columns, from left to right: ``n`` elements to a row, ``w`` tiles."""


def test_rows_of_tiles_that_lie_in_two_cache_lines(rng: np.random.Generator) -> None:
    """However far all rows begin behind a line's begin, and where each begins elsewhere."""
    text, some = kernel("u64 x, u64 y, u32 n, u32 w", START + TILES), random.Random(int(rng.integers(1 << 30)))
    module = ir.Module()
    code = Program(parse(text)).code("k", LaunchConfig(1, (16, 8)).block)
    emit_block_function(module, "k", plan_block_function(code))
    assert ("vpermi2var" in str(module)) is (vector_registers()[1] == LINE)
    for pitch in (64, 67):
        for first in (0, 16, some.randrange(0, LINE, 4)):
            memory = rng.integers(0, 256, 32 * pitch + 2 * LINE, np.uint8)
            start = -memory.ctypes.data % LINE + first
            moved = _placed(memory[start : start + 32 * pitch], first)
            same(text, 1, (16, 8), x=moved, y=np.zeros(128, np.uint32), n=np.uint32(pitch), w=np.uint32(4))


class _Placed(np.ndarray):  # type: ignore[type-arg]
    """An array whose copies begin as far behind a cache line's begin."""

    first = 0

    def copy(self, order: Any = "C") -> Any:
        del order
        return _placed(self, self.first)


def _placed(values: Any, first: int) -> _Placed:
    memory = np.empty(values.size + 2 * LINE, np.uint8)
    start = -memory.ctypes.data % LINE + first
    found = memory[start : start + values.size].view(_Placed)
    found[:], found.first = np.asarray(values), first
    return found


@pytest.mark.parametrize("atomic", [True, False])
def test_only_loads_beside_atomics_are_made_in_pieces(atomic: bool) -> None:
    update = "red.global.add.u32 [%rd4], 1;" if atomic else "st.global.u32 [%rd4], 1;"
    text = kernel("u64 x, u64 y, u32 n, u32 w", START + COPY.replace("st.global.u32 [%rd4], %r10;", update) + "ret;")
    module = ir.Module()
    emit_block_function(module, "k", plan_block_function(Program(parse(text)).code("k", LaunchConfig(1, 64).block)))
    assert ("load volatile" in str(module)) is atomic


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_loads_beside_atomics_are_made_in_pieces(bits: int, rng: np.random.Generator) -> None:
    kind, some = f"u{bits}", random.Random(int(rng.integers(1 << 30)))
    number = "%rd5" if bits == 64 else "%r10"
    body = f"""L: mul.wide.u32 %rd2, %r8, {bits // 8}; add.u64 %rd3, %rd2, %rd0; ld.global.{kind} {number}, [%rd3];
        {"cvt.u32.u64 %r10, %rd5;" if bits == 64 else ""} and.b32 %r10, %r10, 15; mul.wide.u32 %rd4, %r10, 4;
        add.u64 %rd4, %rd4, %rd1; red.global.add.u32 [%rd4], %r21; add.u32 %r8, %r8, 32; setp.lt.u32 %p1, %r8, %r20;
        @%p1 bra L; ret;"""
    text = kernel("u64 x, u64 y, u32 n, u32 w", START + body)
    for block in (32, 96):
        n = some.choice([32, 64, 352])
        values = rng.integers(0, 256, (3 * block + n) * bits // 8 + 16, np.uint8)[some.choice([0, 8, 16]) :]
        same(text, 3, block, x=values, y=np.zeros(16, np.uint32), n=np.uint32(n), w=np.uint32(some.randrange(9)))
