"""Warps that run side by side compute what they do one after the other: to the bit, and with the same faults.

What all warps have in common is kept once, and handed over where a later warp leaves the function.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel
from llvmlite import ir
from two_tiers import outcomes, same

from ptxdsl.emulator.jit import block_passes
from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.idle_planning import kept_registers
from ptxdsl.emulator.jit.jammed_warps import warps_at_once
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.machine_code.host import vector_registers
from ptxdsl.text import parse

DEPTH = 12
START = """.reg .f32 %a<100>; .shared .align 16 .b8 s[16384]; ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y];
    ld.param.u32 %r20, [n]; ld.param.u32 %r21, [w]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mul.lo.u32 %r6, %r4, %r5; mad.lo.u32 %r7, %r2, %r4, %r1;
    mad.lo.u32 %r8, %r3, %r6, %r7; mov.u32 %r30, s; mad.lo.u32 %r31, %r7, 4, %r30;
    mad.lo.u32 %r32, %r1, 4, %r30; mad.lo.u32 %r33, %r2, 4, %r30; mov.u32 %r14, 0; mov.u32 %r15, 0;
    mov.f32 %a90, 0f3F800000; mov.f32 %a91, 0f00000000;"""
"""%r7 is the thread's number in its block, %r8 in the grid; %r14 and %r15 count turns, the sums are %a90 and %a91."""
LOAD = """L: add.u32 %r10, %r8, %r15; mul.wide.u32 %rd2, %r10, 4; add.u64 %rd3, %rd2, %rd0;
    ld.global.f32 %a0, [%rd3]; st.shared.f32 [%r31], %a0; {store} bar.sync 0;"""
"""The index grows by %r21 a turn."""
END = """bar.sync 0; add.u32 %r15, %r15, %r21; add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, %r20; @%p1 bra L;
    mul.wide.u32 %rd4, %r8, 8; add.u64 %rd4, %rd4, %rd1; st.global.v2.f32 [%rd4], {%a90, %a91}; ret;"""
COLUMN = "ld.shared.f32 %a{a}, [%r33+{at}]; ld.shared.f32 %a{b}, [%r32+{at}]; fma.rn.f32 %a90, %a{a}, %a{b}, %a90;"
WORK = {
    "product": "".join(COLUMN.format(a=2 * k + 1, b=2 * k + 2, at=4 * k) for k in range(DEPTH)),
    "chain": "mov.f32 %a91, %a0;" + "fma.rn.f32 %a91, %a91, %a0, %a90; add.f32 %a90, %a91, %a90;" * DEPTH,
    "integers": "mov.b32 %r40, %a90;" + "mad.lo.u32 %r40, %r40, 77, %r15; xor.b32 %r40, %r40, %r14;" * DEPTH
    + "and.b32 %r40, %r40, 0x3FFFFFFF; mov.b32 %a90, %r40;",
    "predicate": "setp.gt.f32 %p3, %a0, 0f00000000;"
    + "selp.f32 %a91, %a0, %a90, %p3; add.f32 %a90, %a91, %a90;" * DEPTH,
    "short": "add.f32 %a90, %a90, %a0;",
}
BLOCKS = ((16, 16), (32, 8), (64, 2), (8, 8), (32, 3), (16, 12), (128, 1), (32, 1))


def program(work: str, store: str = "") -> str:
    return kernel("u64 x, u64 y, u32 n, u32 w", "\n".join((START, LOAD.format(store=store), WORK[work], END)))


def given(rng: np.random.Generator, threads: int, blocks: int, missing: int = 0) -> dict[str, Any]:
    n, w = int(rng.integers(1, 5)), int(rng.integers(0, 40))
    x = rng.standard_normal(max(1, threads * blocks + (n - 1) * w - missing), np.float32)
    x[rng.integers(0, x.size, 3)] = np.float32([np.nan, np.inf, -0.0])
    return {"x": x, "y": np.zeros(2 * threads * blocks, np.float32), "n": np.uint32(n), "w": np.uint32(w)}


@pytest.mark.parametrize("work", WORK)
def test_results(work: str, rng: np.random.Generator) -> None:
    for block in [BLOCKS[0], *rng.permutation(BLOCKS[1:])[:2].tolist()]:
        assert same(program(work), 3, tuple(block), **given(rng, block[0] * block[1], 3)) == ""


@pytest.mark.parametrize("work", ["product", "short"])
@pytest.mark.parametrize("missing", [1, 20, 33, 70])
def test_faults(work: str, missing: int, rng: np.random.Generator) -> None:
    """Of a later warp in a later turn, which has what is kept once; what is said is the same but for the registers."""
    block = [(16, 16), (64, 2), (32, 3)][int(rng.integers(3))]
    said = outcomes(program(work), 2, block, None, None, **given(rng, block[0] * block[1], 2, missing))
    places = [re.findall(r"element \d+|block \(.*?\), thread \(.*?\)|PTX line \d+", message) for message, _ in said]
    assert places[0] == places[1] != [], said


def test_what_warps_store(rng: np.random.Generator) -> None:
    """A store in the loop that the others read behind the barrier."""
    store = "mad.lo.u32 %r34, %r7, 4, 4096; add.u32 %r34, %r34, %r30; st.shared.u32 [%r34], %r14;"
    assert same(program("product", store), 2, (16, 16), **given(rng, 256, 2)) == ""


def at_once(text: str, block: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many warps run side by side in the passes of a kernel."""
    found: list[int] = []

    def noted(*arguments: Any) -> int:
        found.append(warps_at_once(*arguments))
        return found[-1]

    with monkeypatch.context() as patch:
        patch.setattr(block_passes, "warps_at_once", noted)
        emit_block_function(ir.Module(), "k", plan_block_function(planned(text, block)))
    return found


def planned(text: str, block: Any) -> Any:
    return Program(parse(text)).code("k", LaunchConfig(1, block).block)


def test_as_many_as_have_their_sums_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    number, size = vector_registers()
    most = number * size // 2 // 128
    most = min(8, 1 << max(0, most.bit_length() - 1))
    assert max(at_once(program("product"), (16, 16), monkeypatch)) == most
    assert max(at_once(program("product"), (32, 3), monkeypatch)) == 1
    assert max(at_once(program("short"), (16, 16), monkeypatch)) == min(2, most)


def test_what_is_kept_once() -> None:
    """The counters of a loop, in any block of several warps; not what is one number for each row."""
    for block, counters in (((16, 16), {"%r14", "%r15"}), ((32, 1), set())):
        kept = kept_registers(plan_block_function(planned(program("product"), block)))
        assert all(set(names) == counters for names in kept.values())
        assert bool(kept) is bool(counters)
