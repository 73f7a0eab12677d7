"""What compiled code fetches ahead: lines that a loop over tiles loads, and those that blocks store to."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir

from ptxdsl import Ptr, f32, loop, ptx, ptx_kernel, reg, shared, u32, use
from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse


@ptx_kernel
def product(a: Ptr[f32], b: Ptr[f32], c: Ptr[f32], n: u32) -> None:
    at, bt = shared(f32, 16, 16), shared(f32, 16, 16)
    tx, ty = ptx.tid.x, ptx.tid.y
    row, column = ptx.ctaid.y * 16 + ty, ptx.ctaid.x * 16 + tx
    total = reg(f32, 0.0)
    with loop(0, n, 16) as k:
        at[ty, tx] = a[row * n + k + tx]
        bt[ty, tx] = b[(k + ty) * n + column]
        ptx.bar.sync(0)
        for kk in range(16):
            ptx.fma.rn.f32(at[ty, kk], bt[kk, tx], total, out=total)
        ptx.bar.sync(0)
    c[row * n + column] = total


@ptx_kernel
def doubled(x: Ptr[f32], y: Ptr[f32]) -> None:
    i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
    y[i] = x[i] * 2.0


def emitted(kernel: Any, block: Any) -> tuple[Any, list[str]]:
    """The plan of a kernel, and its prefetches."""
    program = Program(parse(kernel.ptx()))
    name = program.module.functions[0].name
    plan = plan_block_function(program.code(name, LaunchConfig(1, block).block))
    module = ir.Module()
    emit_block_function(module, "k", plan)
    return plan, [line.strip() for line in str(module).splitlines() if "call" in line and "llvm.prefetch" in line]


def test_tiles_that_all_blocks_of_a_row_load_are_told_apart(rng: np.random.Generator) -> None:
    plan, fetched = emitted(product, (16, 16))
    loads = [planned for block in plan.blocks for planned in block.ops if planned.op.reads_memory]
    slots = {register.slot: name for name, register in plan.registers.items()}
    of_global = [each for each in loads if slots.get(each.value("slot"), "").startswith("%rd")]
    assert [slots[each.value("slot")] in plan.along_rows for each in of_global] == [False, True]
    assert fetched and all("i32 0, i32 2, i32 1" in line for line in fetched)
    a, b = rng.standard_normal((2, 640, 640), np.float32)  # more than half of most second caches
    c = np.full_like(a, np.nan)
    with use("emulator"):
        for _ in range(2):
            product[(40, 40), (16, 16)](a, b, c, 640)
    assert np.abs(c - a.astype(np.float64) @ b).max() < 1e-3


def test_stores_of_blocks_side_by_side() -> None:
    _, fetched = emitted(doubled, 256)
    assert len(fetched) == 2 and all("i32 1, i32 3, i32 1" in line for line in fetched)
