"""Plans of block functions: which kernels have one, and keys that say all that their code depends on."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from emulator_harness import THREAD, kernel, pointer
from llvmlite import ir

from ptxdsl.emulator.jit.block_function import emit_block_function
from ptxdsl.emulator.jit.plan import BlockBarrier, Plan, PlannedBlock, PlannedOp, PlannedRegister
from ptxdsl.emulator.jit.compilation import compile_block_function
from ptxdsl.emulator.jit.planning import key_of, plan_block_function
from ptxdsl.emulator import instructions
from ptxdsl.emulator.instructions.micro_op import MicroOp
from ptxdsl.emulator.program import Program
from ptxdsl.emulator.sanitizer.needs import Checks
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
    return plan_block_function(code(body, block))


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
    barrier = next(block.number for block in made.blocks if block.barrier is not None)
    register = next(iter(made.registers))

    def with_block(block: PlannedBlock) -> Plan:
        return made._replace(blocks=(*made.blocks[:barrier], block, *made.blocks[barrier + 1 :]))

    for name in kind._fields:
        if kind is Plan:
            if name in ("key", "live", "registers_of"):  # these follow from the statements, which are in the key
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
    assert key_of(made, first) != key_of(made, other)


@pytest.mark.parametrize(("body", "block", "reason"), [
    ("bar.sync 0, 32; ret;", 64, "a barrier of some threads of the block (PTX line 12)"),
    ("add.u32 %r0, %r0, 1;" * 1501 + "ret;", 64, "1502 statements, more than 1500"),
])
def test_some_kernels_stay_in_the_first_tier(body: str, block: int, reason: str) -> None:
    """And the code says why."""
    made = code(body, block)
    assert not compile_block_function(made)
    assert made.refusal == reason


@pytest.mark.parametrize("access", [
    "atom.relaxed.gpu.global.add.u32 %r0, [%rd0], 1;", "ld.volatile.global.u32 %r0, [%rd0];",
    "atom.global.cas.b32 %r0, [%rd0], 0, 1;", "ld.acquire.gpu.global.u32 %r0, [%rd0];",
])
def test_strong_accesses_do_not(access: str) -> None:
    assert plan(f"ld.param.u64 %rd0, [x]; {access} ret;")


def test_planning_loads_no_llvm() -> None:
    """A block function that is on disk is found by its key alone."""
    program = "import sys, ptxdsl.emulator.jit.planning; print('llvmlite' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


COPIES = THREAD + pointer("%rd0", "x") + """
    .shared .align 4 .b8 s[256]; mov.u32 %r4, s; mad.lo.u32 %r4, %r2, 4, %r4;
    cp.async.ca.shared.global [%r4], [%rd0], 4; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;
    ld.shared.f32 %f0, [%r4]; st.global.f32 [%rd0], %f0; ret;"""
EVERYTHING = """
    ld.param.u64 %rd0, [x]; isspacep.global %p1, %rd0; mul.wide.u32 %rd1, %r2, 4; add.u64 %rd1, %rd1, %rd0;
    ld.global.u32 %r3, [%rd1]; fence.acq_rel.gpu; red.global.add.u32 [%rd0], 1; st.global.u32 [%rd1], %r3;
    bar.sync 0; bar.red.popc.u32 %r3, 0, %p1; bar.warp.sync -1; shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
    vote.sync.any.pred %p1, %p1, -1;
    activemask.b32 %r5; elect.sync _|%p2, -1; match.any.sync.b32 %r6, %r3, -1; redux.sync.add.u32 %r7, %r3, -1;
    setp.eq.u32 %p3, %r3, 77; @%p3 trap; @%p3 exit; ret;"""
ROWS = """
    ld.param.u64 %rd0, [x]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; ld.global.u32 %r4, [%rd0];
    mad.lo.u32 %r5, %r3, %r4, %r2; mul.wide.u32 %rd1, %r5, 4; add.u64 %rd1, %rd1, %rd0; ld.global.u32 %r6, [%rd1];
    add.u32 %r7, %r2, %r4; mul.wide.u32 %rd2, %r7, 4; add.u64 %rd2, %rd2, %rd0; st.global.u32 [%rd2], %r6; ret;"""


PRINTS = """
    { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd0; st.param.b64 [b], %rd1;
      @%p0 call (r), vprintf, (a, b); } ret;"""
PARAMETER = THREAD + """
    setp.lt.u32 %p0, %r2, 9; mov.u64 %rd0, 0; @%p0 ld.param.u64 %rd0, [x]; st.global.u64 [%rd0], %rd0; ret;"""
FLAG = THREAD + pointer("%rd0", "x") + """
    bar.warp.sync -1; fence.acq_rel.gpu; st.release.gpu.global.u32 [%rd0], %r2; ld.acquire.gpu.global.u32 %r3, [%rd0];
    setp.eq.u32 %p0, %r3, 0; @%p0 ret; st.global.u32 [%rd0], %r3; ret;"""
VPRINTF = ".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"


CLUSTER = "barrier.cluster.arrive; barrier.cluster.wait; ret;"


def test_every_inlinable_micro_op_is_compiled() -> None:
    """A kind without an emitter, or one that no kernel here has, is an error and not a slow path."""
    for module in walk_packages(instructions.__path__, f"{instructions.__name__}."):
        import_module(module.name)
    found: set[type[MicroOp]] = set()
    cases = ((THREAD + EVERYTHING, 64, False), (CLUSTER, 64, False), (ROWS, (16, 4), False), (BODY, 64, True),
             (COPIES, 64, True), (PRINTS, 64, False), (PARAMETER, 64, False), (FLAG, 64, True))
    for body, block, sanitized in cases:
        text = kernel("u64 x", body).replace(".visible", VPRINTF + ".visible")
        every = Checks(race=True, init=True, overlap=False, unwritten=False, order=True, cas=True)
        checks = every if sanitized else None
        made = plan_block_function(Program(parse(text)).code("k", LaunchConfig(1, block).block, checks=checks))
        assert llvm(made)
        planned = [*made.prologue, *(op for each in made.blocks for op in each.ops)]
        found |= {type(each.op) for each in planned}
    assert {kind for kind in MicroOp.__subclasses__() if kind.inlinable} <= found


def test_code_that_follows_deferred_loads_has_a_block_function() -> None:
    body = """.shared .align 4 .b8 tile[128]; .reg .b32 %v, %w, %t; .reg .b64 %x; .reg .pred %p;
    ld.param.u64 %x, [x]; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 5;
    ld.shared.u32 %v, [tile]; ld.shared.u32 %w, [tile+4]; selp.u32 %v, %v, 7, %p; st.global.u32 [%x], %v;"""
    checks = Checks(race=True, init=True, overlap=False, unwritten=False, order=True, cas=True)
    code = Program(parse(kernel("u64 x", body))).code("k", LaunchConfig(1, 64).block, checks=checks)
    assert plan_block_function(code)
