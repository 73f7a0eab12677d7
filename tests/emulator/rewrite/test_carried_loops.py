"""Loops that a carry ends are ended by a comparison, where both say the same: with the same registers after them."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import kernel, launch

from ptxdsl import Ptr, loop, ptx, ptx_func, ptx_kernel, u32
from ptxdsl.emulator.rewrite.carried_loops import compare_counters
from ptxdsl.emulator.rewrite.pipeline import rewrite
from ptxdsl.ir import Function
from ptxdsl.text import parse

KINDS = {"u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64}
LANES, MOST = 96, 40
SAME = {
    "as it is": (),
    "with branches in it": ("BODY", "setp.lt.u32 %p2, COUNT, 3;\n@%p2 bra $skip;\nadd.u32 HASH, HASH, 7;\n$skip:"),
    "between numbers": (
        "COUNTER, START", "COUNTER, 2", "setp.ge.KIND %p0, COUNTER, STOP;\n@%p0 bra $end;", "",
        "COUNTER, STOP", "COUNTER, 300",
    ),
    "in a loop": (
        "mov.bSIZE COUNTER", "$again:\nmov.bSIZE COUNTER",
        "$end:", "setp.lt.u32 %p4, COUNT, 20;\n@%p4 bra $again;\n$end:",
    ),
}
"""Changes of the text below after which the counter may be compared."""
OTHER = {
    "not tested before": ("@%p0 bra $end;\nsub", "sub"),
    "tested otherwise": ("setp.ge.KIND %p0, COUNTER, STOP", "setp.gt.KIND %p0, COUNTER, STOP"),
    "tested with another": ("setp.ge.KIND %p0, COUNTER, STOP", "setp.ge.KIND %p0, COUNTER, STEP"),
    "tested under a guard": ("@%p0 bra $end;\nsub", "@%p0 bra $end;\n@%p3 sub"),
    "a predicate that has changed": ("@%p0 bra $end;\nsub", "setp.lt.KIND %p0, COUNTER, 1;\n@%p0 bra $end;\nsub"),
    "a counter that has changed": ("$loop:", "add.KIND COUNTER, COUNTER, 1;\n$loop:"),
    "a counter that changes": ("BODY", "add.KIND COUNTER, COUNTER, 1;"),
    "a step that changes": ("BODY", "add.KIND STEP, STEP, 1;"),
    "a step that has changed": ("$loop:", "add.KIND STEP, STEP, 1;\n$loop:"),
    "what is left changes": ("BODY", "@%p3 add.KIND LEFT, LEFT, 1;"),
    "a way into the loop": ("sub.KIND", "@%p3 bra $inside;\nsub.KIND", "BODY", "$inside:"),
    "a second way back": ("BODY", "@%p3 bra $loop;"),
    "a carry that is read later": ("$end:", "$end:\naddc.u32 HASH, HASH, 0;"),
    "another carry": ("addc.KIND CARRY, 0, 0", "addc.KIND CARRY, 0, 1"),
    "a loop that the carry goes on with": ("setp.eq.KIND %p0, CARRY, 0", "setp.eq.KIND %p0, CARRY, 1"),
}

TEXT = """
mov.u32 %r0, %tid.x;
mov.u32 HASH, 1;
mov.u32 COUNT, 0;
mov.bSIZE CARRY, 0;
mov.bSIZE LEFT, 0;
and.b32 %r1, %r0, 1;
setp.eq.u32 %p3, %r1, 0;
ld.param.u64 %rd1, [x];
mul.wide.u32 %rd2, %r0, 48;
add.u64 %rd1, %rd1, %rd2;
ld.global.KIND START, [%rd1];
ld.global.KIND STOP, [%rd1+8];
ld.global.KIND STEP, [%rd1+16];
mov.bSIZE COUNTER, START;
setp.ge.KIND %p0, COUNTER, STOP;
@%p0 bra $end;
sub.KIND LEFT, COUNTER, STOP;
$loop:
add.u32 COUNT, COUNT, 1;
setp.gt.u32 %p1, COUNT, 40;
@%p1 bra $end;
cvt.u32.KIND %r2, COUNTER;
mad.lo.u32 HASH, HASH, 31, %r2;
BODY
add.cc.KIND LEFT, LEFT, STEP;
addc.KIND CARRY, 0, 0;
setp.eq.KIND %p0, CARRY, 0;
add.KIND COUNTER, COUNTER, STEP;
@%p0 bra $loop;
$end:
st.global.KIND [%rd1], COUNTER;
st.global.KIND [%rd1+8], LEFT;
st.global.KIND [%rd1+16], CARRY;
st.global.u32 [%rd1+32], HASH;
st.global.u32 [%rd1+40], COUNT;
ret;
"""


def text(kind: str, changes: tuple[str, ...] = ()) -> str:
    found = TEXT
    for old, new in zip(changes[::2], changes[1::2]):
        assert old in found
        found = found.replace(old, new)
    letter = "%r" if kind.endswith("32") else "%rd"
    names = {"COUNTER": 10, "START": 11, "STOP": 12, "STEP": 13, "LEFT": 14, "CARRY": 15}
    for name, number in names.items():
        found = found.replace(name, f"{letter}{number}")
    for name, new in {"HASH": "%r20", "COUNT": "%r21", "BODY": "", "KIND": kind, "SIZE": kind[1:]}.items():
        found = found.replace(name, new)
    return kernel("u64 x", found)


def function(ptx_text: str) -> Function:
    return parse(ptx_text).functions[0]


def inputs(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Of each thread START, STOP and STEP: some near the ends of the type, some that end soon, steps of any size."""
    dtype = np.dtype(KINDS[kind])
    info = np.iinfo(dtype)
    bits = dtype.itemsize * 8
    found = np.zeros((LANES, 6), np.uint64)
    for row in found:
        step = int(rng.integers(0, 9)) if rng.random() < 0.5 else int(rng.integers(0, 1 << bits - 1)) * 2 + 1
        start = int(rng.choice([info.min, info.max - 50, 0])) + int(rng.integers(0, 50))
        stop = min(info.max, start + int(rng.integers(-2, 40)) * max(step, 1)) if rng.random() < 0.7 else int(info.max)
        for column, value in enumerate((start, max(stop, info.min), step)):
            row[column] = value % (1 << bits)
    return found


def results(ptx_text: str, x: np.ndarray, second_tier: bool = False) -> np.ndarray:
    out = x.copy()
    launch(ptx_text, 1, LANES, second_tier=second_tier, x=out)
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*SAME, *OTHER])
def test_the_registers_are_the_same(kind: str, name: str, rng: np.random.Generator) -> None:
    """Beside the same text with something harmless between, which no pass takes for such a loop."""
    changed = text(kind, (SAME | OTHER)[name])
    was = function(changed)
    assert (compare_counters(was) is not was) == (name in SAME)
    apart = changed.replace("setp.eq.", "mov.u32 %r40, 0;\nsetp.eq.")
    was = function(apart)
    assert compare_counters(was) is was
    x = inputs(kind, rng)
    expected = results(apart, x)
    assert name in OTHER or len(np.unique(expected[:, 5])) > 1
    for second_tier in (False, True):
        np.testing.assert_array_equal(results(changed, x, second_tier), expected)


def test_an_iteration_has_as_many_instructions() -> None:
    was = function(text("s64"))
    became = compare_counters(was)
    before, after = ([s.form.mnemonic for s in f.instructions()] for f in (was, became))
    assert len(after) == len(before) + 3
    assert after[after.index("sub.s64"):][:4] == ["sub.s64", "add.s64", "max.s64", "sub.s64"]
    assert after[-11:-6] == ["add.s64", "setp.lt.s64", "selp.s64", "add.s64", "bra"]


def test_loops_of_functions_too() -> None:
    @ptx_func
    def total(n: u32, step: u32, x: Ptr[u32]):
        with loop(1, n, step) as i:
            x[i] = i

    @ptx_kernel
    def sums(n: u32, x: Ptr[u32]):
        total(n, ptx.ntid.x, x)

    module = parse(sums.ptx())
    mnemonics = [s.form.mnemonic for s in rewrite(module, module.function("sums"), None).instructions()]
    assert "setp.lt.u32" in mnemonics and "add.cc.u32" not in mnemonics
