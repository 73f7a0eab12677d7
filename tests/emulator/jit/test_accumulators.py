"""Sums that are made some at a time are what they would be one step after the other: to the bit, in both tiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_harness import kernel
from llvmlite import ir
from two_tiers import same

from ptxdsl.emulator.jit import block_passes
from ptxdsl.emulator.jit.accumulators import in_groups
from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

SIDE, DEPTH = 5, 4
"""Of the sums of a thread, and columns of the tiles."""


def product(step: str = "", last: str = "", after: str = "", turn: str = "") -> str:
    """A tiled product, 16 x 4 threads: ``step`` for each column, ``last`` behind all, ``after`` behind the barrier."""
    rows, columns = range(SIDE), range(SIDE)
    sums = [f"%a{100 + SIDE * i + j}" for i in rows for j in columns]
    body = [
        ".reg .f32 %a<900>; .shared .align 16 .b8 s[8192];",
        "ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n];",
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r7, %r2, 16, %r1; mov.u32 %r30, s;",
        "mad.lo.u32 %r31, %r7, 4, %r30; mad.lo.u32 %r32, %r1, 4, %r30; mad.lo.u32 %r33, %r2, 4, %r30;",
        "mov.u32 %r14, 0; mov.u32 %r40, 1;", *(f"mov.f32 {name}, 0f3F800000;" for name in sums),
        "L: shl.b32 %r10, %r14, 9; mad.lo.u32 %r10, %r7, 4, %r10; cvt.u64.u32 %rd2, %r10; add.u64 %rd3, %rd2, %rd0;",
        *(f"ld.global.f32 %a{n}, [%rd3+{256 * n}]; st.shared.f32 [%r31+{256 * n}], %a{n};" for n in range(8)),
        "bar.sync 0;", turn,
    ]
    for k in range(DEPTH):
        body += [f"ld.shared.f32 %a{500 + 20 * k + i}, [%r33+{16 * i + 128 * k}];" for i in rows]
        body += [f"ld.shared.f32 %a{600 + 20 * k + j}, [%r32+{64 * j + 320 * k}];" for j in columns]
        body += [
            f"fma.rn.f32 {name}, %a{500 + 20 * k + n // SIDE}, %a{600 + 20 * k + n % SIDE}, {name};"
            for n, name in enumerate(sums)
        ]
        body += [step.replace("K", str(k))]
    body += [last, "bar.sync 0;", after, "add.u32 %r14, %r14, 1; setp.lt.u32 %p1, %r14, %r20; @%p1 bra L;"]
    body += ["mul.wide.u32 %rd2, %r7, 4; add.u64 %rd4, %rd2, %rd1;"]
    body += [f"st.global.f32 [%rd4+{256 * n}], {name};" for n, name in enumerate(sums)]
    body += [f"st.global.u32 [%rd4+{256 * len(sums)}], %r40; ret;"]
    return kernel("u64 x, u64 y, u32 n", "\n".join(body))


GROUPED = {
    "plain": {},
    "a sum is read on the way": {"step": "mul.rn.f32 %a70K, %a103, %a103;", "last": "add.f32 %a104, %a104, %a104;"},
    "a number is stepped": {"last": "add.u32 %r40, %r40, 7;"},
    "a store behind all": {"last": "st.shared.f32 [%r31+4096], %a110;"},
}
OTHERS = {
    "sums are exchanged": {"last": "mov.f32 %a800, %a100; mov.f32 %a100, %a101; mov.f32 %a101, %a800;"},
    "a sum of sums": {"step": "add.f32 %a100, %a100, %a101;"},
    "a number is read, then written": {"step": "mul.lo.u32 %r41, %r40, 3; add.u32 %r40, %r41, 1;"},
    "carries": {"step": "add.cc.u32 %r42, %r40, 0xFFFFFFFF; addc.u32 %r40, %r40, %r42;"},
    "a store on the way": {"step": "st.shared.f32 [%r31+4096], %a110;"},
}


def groups(text: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many groups the passes of a kernel have."""
    found: list[int] = []

    def noted(*arguments: Any) -> list[list[int]]:
        made = in_groups(*arguments)
        found.append(len(made))
        return made

    with monkeypatch.context() as patch:
        patch.setattr(block_passes, "in_groups", noted)
        plan = plan_block_function(Program(parse(text)).code("k", LaunchConfig(1, (16, 4)).block))
        emit_block_function(ir.Module(), "k", plan)
    return found


@pytest.mark.parametrize("name", GROUPED)
def test_results(name: str, rng: np.random.Generator) -> None:
    text = product(**GROUPED[name])
    x = rng.standard_normal(3 * 2048, np.float32)
    x[rng.integers(0, x.size, 3)] = np.float32([np.nan, np.inf, -0.0])
    same(text, 2, (16, 4), x=x, y=np.zeros(64 * (SIDE * SIDE + 1), np.float32), n=np.uint32(rng.integers(1, 4)))


@pytest.mark.parametrize("name", [*GROUPED, *OTHERS])
def test_sums_are_in_groups(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing tells in which order they are made."""
    found = groups(product(**{**GROUPED, **OTHERS}[name]), monkeypatch)
    assert (max(found, default=0) > 2) is (name in GROUPED)
