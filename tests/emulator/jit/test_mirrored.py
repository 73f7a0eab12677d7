"""Lanes that go through memory from the last element to the first: one load for all of them, in both tiers."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import kernel
from two_tiers import outcomes

from ptxdsl.emulator.analysis.divergence import VARYING
from ptxdsl.emulator.jit.planning import plan_block_function
from ptxdsl.emulator.program import Program
from ptxdsl.launch import LaunchConfig
from ptxdsl.text import parse

BODY = """
    ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u32 %r20, [n];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;
    setp.ge.s32 %p1, %r4, %r20; @%p1 bra END;
    {index}
    mul.wide.s32 %rd2, %r6, {size}; add.s64 %rd3, %rd0, %rd2; ld.global.{type} {number}, [%rd3];
    mul.wide.s32 %rd4, %r4, {size}; add.s64 %rd5, %rd1, %rd4; st.global.{type} [%rd5], {number};
    END: ret;
"""
INDICES = {
    "not": "not.b32 %r5, %r4; add.s32 %r6, %r5, %r20;",
    "neg": "neg.s32 %r5, %r4; sub.s32 %r7, %r20, 1; add.s32 %r6, %r5, %r7;",
    "sub": "sub.s32 %r7, %r20, 1; sub.s32 %r6, %r7, %r4;",
}
TYPES = {"u8": ("%r10", np.uint8), "u16": ("%r10", np.uint16), "u32": ("%r10", np.uint32), "u64": ("%rd9", np.uint64)}


def module(index: str, name: str) -> str:
    number, dtype = TYPES[name]
    size = np.dtype(dtype).itemsize
    return kernel("u64 x, u64 y, u32 n", BODY.format(index=INDICES[index], size=size, type=name, number=number))


@pytest.mark.parametrize("index", INDICES)
def test_the_addresses_are_affine(index: str) -> None:
    code = Program(parse(module(index, "u32"))).code("k", LaunchConfig(1, 128).block)
    assert code.operands.facts.offsets.get("%r6") == tuple(-lane for lane in range(32))
    assert code.operands.facts.offsets.get("%rd3") is not VARYING
    assert plan_block_function(code)


@pytest.mark.parametrize(("index", "name"), [("not", "u32"), ("neg", "u8"), ("not", "u64"), ("sub", "u16")])
def test_results_and_faults(index: str, name: str, rng: np.random.Generator) -> None:
    dtype = TYPES[name][1]
    for n, short in ((128 * 3, 0), (128 * 3 - 31, 0), (77, 0), (300, 5), (300, 290)):
        values = rng.integers(0, 1 << 8, n - short).astype(dtype)
        out = np.full(n, 0xAB, dtype)
        first, second = outcomes(module(index, name), 3, 128, None, None, x=values, y=out, n=np.uint32(n))
        assert first == second
        assert bool(first[0]) is bool(short)
        if not short:
            assert first[1][1] == values[::-1].tobytes()
