"""Plans of block functions: which kernels have one, and keys that say all that their code depends on."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from emulator_harness import THREAD, kernel, pointer
from llvmlite import ir

from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.plan import PlannedBlock, BlockBarrier, PlannedOp, PlannedRegister, Plan
from ptxdsl.emulator.jit.planning import key_of, plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

BODY = THREAD + pointer("%rd0", "x") + """
    ld.global.f32 %f0, [%rd0]; mov.u32 %r3, 0; .shared .align 4 .b8 s[256]; mov.u32 %r4, s;
    mad.lo.u32 %r4, %r2, 4, %r4; st.shared.f32 [%r4], %f0; bar.sync 0;
    AGAIN: fma.rn.f32 %f1, %f0, %f0, %f1; add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 5; @%p0 bra AGAIN;
    ld.shared.f32 %f2, [%r4]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd0], %f1; ret;"""


def code(body: str = BODY, block: Any = 64) -> Any:
    return Program(parse(kernel("u64 x", body))).code("k", LaunchConfig(1, block).block)


def plan(body: str = BODY, block: Any = 64) -> Plan:
    made = plan_block_function(code(body, block))
    assert made is not None
    return made


def llvm(made: Plan) -> str:
    module = ir.Module()
    emit_block_function(module, "f", made)
    return str(module)


def test_a_kernel_has_the_same_key_and_code_every_time() -> None:
    """Nothing in either depends on where something lies in this process."""
    first, again = plan(), plan()
    assert first.key == again.key
    assert llvm(first) == llvm(again)


def changed(made: Any, name: str) -> Any:
    return made._replace(**{name: f"another {name}"})


@pytest.mark.parametrize("kind", [Plan, PlannedBlock, BlockBarrier, PlannedOp, PlannedRegister])
def test_the_key_has_every_field(kind: Any) -> None:
    kernel_code = code()
    made = plan_block_function(kernel_code)
    assert made is not None
    barrier = next(block.number for block in made.blocks if block.barrier is not None)
    register = next(iter(made.registers))

    def with_block(block: PlannedBlock) -> Plan:
        return made._replace(blocks=(*made.blocks[:barrier], block, *made.blocks[barrier + 1 :]))

    for name in kind._fields:
        if kind is Plan:
            if name in ("key", "live"):  # liveness follows from the statements, which are in the key
                continue
            other = changed(made, name)
        elif kind is PlannedBlock:
            other = with_block(changed(made.blocks[barrier], name))
        elif kind is BlockBarrier:
            other = with_block(made.blocks[barrier]._replace(barrier=changed(made.blocks[barrier].barrier, name)))
        elif kind is PlannedOp:
            first, *others = made.blocks[barrier].ops
            other = with_block(made.blocks[barrier]._replace(ops=(changed(first, name), *others)))
        else:
            other = made._replace(registers={**made.registers, register: changed(made.registers[register], name)})
        assert key_of(other, kernel_code) != made.key, name


def test_the_key_has_what_is_live() -> None:
    """The same micro-ops, another register live at the barrier: it is stored where the function returns."""
    base = THREAD + "mov.u32 %r4, %r2; mov.u32 %r5, %r2; bar.sync 0; add.u32 %r6, {}, 1; trap;"
    first, other = code(base.format("%r4")), code(base.format("%r5"))
    made = plan_block_function(first)
    assert made is not None
    assert key_of(made, first) != key_of(made, other)


LOCAL = ".local .align 4 .b8 l[4]; st.local.u32 [l], 1; ret;"


@pytest.mark.parametrize(("body", "block"), [
    (BODY, 48), (LOCAL, 64), ("ld.param.u64 %rd0, [x]; ld.volatile.global.u32 %r0, [%rd0]; ret;", 64),
    ("ld.param.u64 %rd0, [x]; atom.global.cas.b32 %r0, [%rd0], 0, 1; ret;", 64), ("bar.sync 0, 32; ret;", 64),
    ("add.u32 %r0, %r0, 1;" * 1501 + "ret;", 64),
])
def test_some_kernels_stay_in_the_first_tier(body: str, block: int) -> None:
    assert plan_block_function(code(body, block)) is None


def test_relaxed_additions_do_not() -> None:
    assert plan("ld.param.u64 %rd0, [x]; atom.relaxed.gpu.global.add.u32 %r0, [%rd0], 1; ret;")


def test_planning_loads_no_llvm() -> None:
    """A block function that is on disk is found by its key alone."""
    program = "import sys, ptxdsl.emulator.jit.planning; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
