"""Carries that are only tested become comparisons: the same in every case; and which ones these are."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_harness import kernel, launch

from ptxdsl import Ptr, loop, ptx, ptx_kernel, u32, u64
from ptxdsl.emulator.program import Program
from ptxdsl.emulator.rewrite.tested_carries import carry_tests
from ptxdsl.text import parse

LOADED = """ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.u64 %rd2, [out]; mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd3, %r0, 8; add.u64 %rd4, %rd0, %rd3; add.u64 %rd5, %rd1, %rd3; add.u64 %rd6, %rd2, %rd3;
    ld.global.u64 %rd7, [%rd4]; ld.global.u64 %rd8, [%rd5]; cvt.u32.u64 %r7, %rd7; cvt.u32.u64 %r8, %rd8;"""
TEST = "add.cc.{0} {1}7, {1}7, {1}8; addc.{0} {1}9, 0, 0; setp.eq.{0} %p1, {1}9, 0;"
STORED = "selp.u64 %rd10, 1, 0, %p1; st.global.u64 [%rd6], %rd10; ret;"
NOT_ALONE = {
    "the carry is read": TEST + "cvt.u64.u32 %rd10, %r9; st.global.u64 [%rd6], %rd10; ret;",
    "the flag is read": TEST + "addc.u32 %r11, 5, 0; cvt.u64.u32 %rd10, %r11; st.global.u64 [%rd6], %rd10; ret;",
    "a guard": "setp.eq.u32 %p2, %r0, 3; @%p2 " + TEST + STORED,
    "more than a carry": TEST.replace("0, 0;", "0, 1;") + STORED,
    "another test": TEST.replace("eq", "ne") + STORED,
}


def module(body: str) -> str:
    return kernel("u64 x, u64 y, u64 out", LOADED + body)


def rewritten(text: str) -> bool:
    """Whether the kernel that is run has no carry any more."""
    function = Program(parse(text))._kernel("k", None).function
    return not any("cc" in statement.form.tokens for statement in function.instructions())


@pytest.mark.parametrize("kind", ["u32", "u64"])
def test_every_case(kind: str, rng: np.random.Generator) -> None:
    bits = int(kind[1:])
    text = module(TEST.format(kind, "%r" if bits == 32 else "%rd") + STORED)
    assert rewritten(text)
    edges = np.array([0, 1, 2, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 2, (1 << bits) - 1], np.uint64)
    drawn = rng.integers(0, 1 << bits, 64 - 49, np.uint64)
    x, y = np.r_[np.repeat(edges, 7), drawn], np.r_[np.tile(edges, 7), rng.permutation(drawn)]
    out = np.full(64, 0xA5, np.uint64)
    launch(text, 1, 64, x=x, y=y, out=out)
    assert out.tolist() == [int(int(a) + int(b) < 1 << bits) for a, b in zip(x, y)]


@pytest.mark.parametrize("name", NOT_ALONE)
def test_others_stay(name: str) -> None:
    text = module(NOT_ALONE[name].format("u32", "%r"))
    assert not rewritten(text)


@ptx_kernel
def steps(n: u32, step: u32, last: u64, far: u64, out: Ptr[u64]) -> None:
    with loop(ptx.tid.x, n, step) as i:
        out[ptx.tid.x] = out[ptx.tid.x] + i.to(u64)
    with loop(last - 40, last, far) as j:
        out[ptx.tid.x] = out[ptx.tid.x] + (last - j)


def test_loops_of_the_language(rng: np.random.Generator) -> None:
    """They end where their counter would wrap around."""
    text = steps.ptx()
    body = parse(text).functions[0].body
    assert body is not None and len(carry_tests(body)) == 2
    for n, step in ((100, 7), ((1 << 32) - 1, 1 << 31), ((1 << 32) - 1, (1 << 32) - 5), (5, 3), (0, 1)):
        last, far = (1 << 64) - int(rng.integers(1, 9)), int(rng.integers(1, 50))
        out = np.zeros(16, np.uint64)
        steps[1, 16](n, step, last, far, out)
        for thread, found in enumerate(out.tolist()):
            assert found == sum(range(thread, n, step)) + sum(range(40, 0, -far))
