"""Recursive functions in block functions, one lane after the other: results, faults and depth are the first tier's."""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulator_harness import argument

from ptxdsl import emulator
from ptxdsl.emulator.codegen.code import Code
from ptxdsl.emulator.jit import block_function, compilation
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.errors import EmulationError
from ptxdsl.launch import LaunchConfig
from ptxdsl.launch.geometry import Scalar

HEAD = ".version 8.4\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f64 %fd<8>;"
ENTRY = ".visible .entry k(.param .u64 x, .param .u32 n) {{ " + REGISTERS + """
    ld.param.u64 %rd0, [x]; ld.param.u32 %r0, [n]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.u32 %r1, %r1, %r2, %r3; setp.ge.u32 %p0, %r1, %r0; @%p0 bra END;
    mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd0, %rd1; ld.global.u32 %r4, [%rd1];
    {call}
    st.global.u32 [%rd1], %r5; END: ret; }}
"""
CALL = "call (%r5), f, (%r4, %rd0, %r1);"
FUNCTION = ".func (.reg .u32 out) {name}(.reg .u32 a, .reg .u64 x, .reg .u32 i) {{ " + REGISTERS + "\n{body}\nret; }}\n"
AGAIN = "call (%r10), {name}, (%r9, x, i);"


def module(*bodies: str, call: str = CALL, before: str = "") -> str:
    """A module whose kernel calls f; the functions are f, g, ..."""
    functions = [FUNCTION.format(name=name, body=body) for name, body in zip("fgh", bodies)]
    declared = [FUNCTION.format(name=name, body="").partition("{")[0] + ";\n" for name, _ in zip("fgh", bodies)]
    return HEAD + before + "".join(declared + functions) + ENTRY.format(call=call)


def run(text: str, grid: int, block: int, x: np.ndarray, n: int, second: bool) -> tuple[str, np.ndarray, Code]:
    program, config, out, said = emulator.load(text), LaunchConfig(grid, block), x.copy(), ""
    code = program.code("k", program.shape_of("k", config))
    if second:
        assert compilation.compile_block_function(code), code.refusal
    try:
        program.run("k", config, [argument("x", out), Scalar("n", np.uint32(n).tobytes())])
    except EmulationError as error:
        said = str(error)
    return said, out, code


def by_lane(code: Code) -> bool:
    plan = plan_block_function(code)
    return plan.lanes is not None and plan.lanes.runs({block.number for block in plan.blocks if block.divergent})


def same(text: str, x: np.ndarray, *, block: int = 64, exits: bool = False) -> str:
    """Run a kernel in both tiers; what was said."""
    n, grid = len(x) - 3, -(-len(x) // block)
    (said, first, _), (again, second, code) = (run(text, grid, block, x, n, tier) for tier in (False, True))
    assert re.sub("0x[0-9a-f]+", "", said) == re.sub("0x[0-9a-f]+", "", again)
    if not said:
        np.testing.assert_array_equal(first, second)
        assert bool(code.exits) == exits
    assert by_lane(code)
    return said


def numbers(rng: np.random.Generator, below: int, count: int = 150) -> np.ndarray:
    return rng.integers(0, below, count, np.uint32)


FIB = f"""mov.u32 out, a; setp.lt.u32 %p1, a, 2; @%p1 bra DONE;
    sub.u32 %r9, a, 1; {AGAIN.format(name="f")} mov.u32 %r11, %r10;
    sub.u32 %r9, a, 2; {AGAIN.format(name="f")} add.u32 out, %r10, %r11; DONE:"""


@pytest.mark.parametrize("block", [64, 40, 7])
def test_lanes_at_different_depths(block: int, rng: np.random.Generator) -> None:
    same(module(FIB), numbers(rng, 9), block=block)


def test_all_lanes_at_one_depth_and_one_lane_at_another(rng: np.random.Generator) -> None:
    x = np.full(150, 7, np.uint32)
    same(module(FIB), x)
    x[rng.integers(0, 147)] = 9
    same(module(FIB), x)


def test_functions_that_call_each_other(rng: np.random.Generator) -> None:
    f = f"""mov.u32 out, i; setp.eq.u32 %p1, a, 0; @%p1 bra DONE;
        sub.u32 %r9, a, 1; {AGAIN.format(name="g")} mad.lo.u32 out, %r10, 3, a; DONE:"""
    g = f"""mov.u32 out, 5; setp.eq.u32 %p1, a, 0; @%p1 bra DONE; and.b32 %r8, a, 3; setp.eq.u32 %p2, %r8, 2;
        sub.u32 %r9, a, 1; {AGAIN.format(name="f")} @%p2 mul.lo.u32 %r10, %r10, %r10; xor.b32 out, %r10, a; DONE:"""
    same(module(f, g), numbers(rng, 40))


def test_local_arrays_predicates_doubles_and_special_registers(rng: np.random.Generator) -> None:
    f = f""".local .align 8 .b8 room[64];
        mov.u64 %rd1, room; and.b32 %r8, a, 7; mul.wide.u32 %rd2, %r8, 8; add.u64 %rd2, %rd1, %rd2;
        st.local.u64 [%rd1], 0; st.local.v2.u32 [%rd2], {{a, i}};
        cvt.rn.f64.u32 %fd1, a; sqrt.rn.f64 %fd1, %fd1; setp.gt.f64 %p3, %fd1, 0d4008000000000000;
        mov.u32 %r12, %tid.x; mov.u32 %r13, %laneid; mad.lo.u32 out, %r12, 5, %r13;
        setp.lt.u32 %p1, a, 3; @%p1 bra DONE;
        sub.u32 %r9, a, 3; {AGAIN.format(name="f")} ld.local.u32 %r14, [%rd2+4]; @%p3 add.u32 %r10, %r10, %r14;
        shr.u32 %r9, a, 1; ld.local.u32 %r15, [%rd1]; mov.u32 %r16, %r10; {AGAIN.format(name="f")}
        cvt.rzi.u32.f64 %r17, %fd1; mad.lo.u32 out, %r10, %r17, %r16; add.cc.u32 %r15, %r15, out;
        addc.u32 out, %r15, %r14; DONE:"""
    same(module(f), numbers(rng, 20), block=48)


def test_a_call_in_a_loop_and_under_a_branch(rng: np.random.Generator) -> None:
    loop = f"""mov.u32 %r5, 0; mov.u32 %r6, 0; and.b32 %r20, %r4, 1; setp.eq.u32 %p4, %r20, 0; mov.u32 %r4, 6;
        @%p4 bra SKIP;
        AGAIN: {CALL.replace("(%r5)", "(%r7)")} add.u32 %r5, %r5, %r7; add.u32 %r4, %r6, 2;
        add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 5; @%p1 bra AGAIN;
        SKIP: add.u32 %r5, %r5, %r1;"""
    same(module(FIB, call=loop), numbers(rng, 9))


def test_places_that_every_lane_adds_to(rng: np.random.Generator) -> None:
    count = "red.global.add.u32 [x], 1; atom.global.max.u32 %r20, [x+4], a;\n"
    same(module(count + FIB, call=CALL + "setp.lt.u32 %p1, %r1, 2; @%p1 bra END;"), numbers(rng, 9))


@pytest.mark.parametrize(("statement", "why"), [
    ("atom.global.add.u32 %r20, [x], 1; add.u32 %r19, %r19, %r20;", "the result of an atomic operation"),
    ("red.global.exch.b32 [x], a;", "the last one stays"),
    ("ld.volatile.global.u32 %r19, [x];", "others may write it"),
    ("activemask.b32 %r19;", "lanes see each other"),
])
def test_lanes_that_see_each_other_run_together(statement: str, why: str) -> None:
    statement = statement.replace("red.global.exch.b32", "atom.global.exch.b32 %r20,")
    f = FIB.replace("add.u32 out, %r10, %r11;", f"{statement} add.u32 out, %r10, %r11; add.u32 out, out, %r19;")
    assert not by_lane(emulator.load(module("mov.u32 %r19, 0;" + f)).code("k", (64, 1, 1))), why


def test_a_fault_is_that_of_the_first_tier(rng: np.random.Generator) -> None:
    x = numbers(rng, 6)
    x[rng.integers(0, 147)] = 8
    f = FIB.replace("DONE:", "DONE: setp.ne.u32 %p2, a, 8; @%p2 bra RIGHT; ld.global.u32 out, [x+4096]; RIGHT:")
    said = same(module(f), x)
    assert "ld.global.u32" in said


ROOM = ".local .align 4 .b8 room[4000]; mov.u64 %rd1, room; st.local.u32 [%rd1+3996], a;"


@pytest.mark.parametrize("room", ["", ROOM])
def test_a_recursion_without_end_is_that_of_the_first_tier(room: str) -> None:
    x = np.full(150, 3, np.uint32)
    x[70] = 1
    f = f"""{room} mov.u32 out, a; setp.eq.u32 %p1, a, 3; @%p1 bra DONE; {AGAIN.format(name="f").replace("%r9", "a")}
        add.u32 out, %r10, 1; DONE:"""
    assert "local" in same(module(f), x)


@pytest.mark.parametrize("budget", [1, 100, 3000])
def test_what_runs_long_goes_on_in_the_first_tier(
    budget: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_function, "BUDGET", budget)
    of_its_own = f"mov.u32 %r31, {budget};"  # compiled code is kept by its text
    same(module(FIB, call=of_its_own + CALL), numbers(rng, 12, 300), exits=True)


def test_a_lane_that_prints_or_ends_within_the_recursion(rng: np.random.Generator) -> None:
    for statement in ("@%p6 exit;", "@%p6 trap;"):
        f = FIB.replace("DONE:", f"DONE: setp.eq.u32 %p6, a, 7; {statement}")
        same(module(f), numbers(rng, 8), exits=True)


def test_both_ways_of_a_branch_are_compiled(rng: np.random.Generator) -> None:
    """Lanes that diverge outside of a region, to two basic blocks of it, do not leave the function."""
    call = """setp.gt.u32 %p1, %r4, 100; @%p1 bra MORE; xor.b32 %r5, %r4, 77; sqrt.rn.f64 %fd1, 0d4008000000000000;
        mul.lo.u32 %r5, %r5, %r4; bra BOTH; MORE: mad.lo.u32 %r5, %r4, 7, %r1; rem.u32 %r5, %r5, 91; BOTH:"""
    text = HEAD + ENTRY.format(call=call)
    x = numbers(rng, 200, 147)
    (_, first, _), (_, second, code) = (run(text, 3, 49, x, 147, tier) for tier in (False, True))
    np.testing.assert_array_equal(first, second)
    assert not code.exits
