"""What a loop needs once stands before it: addresses that do not change in it, and the test of a step in a register."""

from __future__ import annotations

import numpy as np
import pytest
from tracing_helpers import ptx as lines

from ptxdsl import Ptr, continue_if, f32, loop, ptx, ptx_kernel, reg, s32, shared, u32, u64, use, when

# ---------------------------------------------------------------------------------------------------------------------
# Addresses


def test_an_address_that_does_not_change_is_computed_before_the_loop() -> None:
    def kernel(n: u32, at: u32, x: Ptr[f32], y: Ptr[f32]):
        with loop(n) as i:
            y[i] = x[at]

    assert lines(kernel) == [
        "mov.u32 %i, 0", "setp.ge.u32 %p0, %i, %r0", "@%p0 bra $endloop_1",
        "mul.wide.u32 %rd2, %r1, 4", "add.u64 %rd3, %rd0, %rd2",
        "$loop_1:", "ld.global.f32 %f0, [%rd3]", "mul.wide.u32 %rd4, %i, 4", "add.u64 %rd5, %rd1, %rd4",
        "st.global.f32 [%rd5], %f0", "add.u32 %i, %i, 1", "setp.lt.u32 %p0, %i, %r0", "@%p0 bra $loop_1",
        "$endloop_1:", "ret",
    ]


def test_it_leaves_as_many_loops_as_do_not_change_it() -> None:
    def kernel(n: u32, at: u32, x: Ptr[f32]):
        with loop(n) as i:
            with loop(4) as _:
                x[i] = x[at]

    found = lines(kernel)
    assert found.index("add.u64 %rd2, %rd0, %rd1") < found.index("$loop_1:")  # x[at]
    assert found.index("$loop_1:") < found.index("add.u64 %rd4, %rd0, %rd3") < found.index("$loop_2:")  # x[i]


def test_what_the_user_writes_stays_where_it_stands() -> None:
    def kernel(n: u32, at: u32, x: Ptr[f32]):
        with loop(n) as _:
            x[at * 3] = 0.0

    found = lines(kernel)
    assert found.index("$loop_1:") < found.index("mul.lo.u32 %r2, %r1, 3") < found.index("add.u64 %rd2, %rd0, %rd1")


def test_what_a_branch_may_skip_stays_behind_it() -> None:
    def kernel(n: u32, at: u32, x: Ptr[f32]):
        with loop(n) as i:
            with when(i > 3):
                x[at] = 0.0
            continue_if(i == 5)
            x[at + 1] = 1.0

    found = lines(kernel)
    assert found.index("$loop_1:") < found.index("@!%p1 bra $endif_2") < found.index("add.u64 %rd2, %rd0, %rd1")


@pytest.mark.parametrize("unroll", [1, 3])
def test_registers_that_the_loop_changes(unroll: int, rng: np.random.Generator) -> None:
    """Of a `reg` in the body, of an outer counter, of a pointer that moves on: each where it has its value."""

    @ptx_kernel
    def kernel(n: u32, at: u32, x: Ptr[f32], y: Ptr[f32]):
        tile, moving, there = shared(f32, 4, 8), reg(x + at), reg(u32, at)
        with loop(n, unroll=unroll) as i:
            tile[at, 1] = moving[0] + x[there]
            y[i] = tile[at, 1] + x[at]
            moving += 1
            there += 2

    for n in range(8):
        x, y = rng.standard_normal(40).astype(np.float32), np.full(8, np.nan, np.float32)
        kernel.configure(1, 1, backend="emulator", sanitize="all")(n, 2, x, y)
        i = np.arange(n)
        np.testing.assert_array_equal(y[:n], x[2 + i] + x[2 + 2 * i] + x[2])
        assert np.isnan(y[n:]).all()


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def test_a_step_in_a_register_is_tested_by_a_carry() -> None:
    def kernel(n: u32, step: u32, x: Ptr[u32]):
        with loop(3, n, step) as i:
            x[0] = i

    assert lines(kernel) == [
        "mov.u32 %i, 3", "setp.ge.u32 %p0, %i, %r0", "@%p0 bra $endloop_1", "sub.u32 %r2, %i, %r0",
        "$loop_1:", "st.global.u32 [%rd0], %i", "add.cc.u32 %r2, %r2, %r1", "addc.u32 %r3, 0, 0",
        "setp.eq.u32 %p0, %r3, 0", "add.u32 %i, %i, %r1", "@%p0 bra $loop_1", "$endloop_1:", "ret",
    ]


@pytest.mark.parametrize("kind", [u32, s32, u64], ids=str)
def test_the_carry_is_left_to_who_uses_it(kind: type) -> None:
    """A sum of several words that keeps its carry from one iteration to the next."""

    @ptx_kernel
    def kernel(words: kind, one: kind, a: Ptr[u32], b: Ptr[u32], out: Ptr[u32]):  # type: ignore[valid-type]
        ptx.add.cc.u32(0, 0)
        with loop(0, words, one) as i:
            out[i] = ptx.addc.cc.u32(a[i], b[i])

    a, b = (0xFFFFFFFF_FFFFFFFF_00000001_FFFFFFFF, 0x00000000_00000001_FFFFFFFF_00000001)
    words = [np.frombuffer(n.to_bytes(16, "little"), np.uint32).copy() for n in (a, b)]
    out = np.zeros(4, np.uint32)
    with use("emulator"):
        kernel[1, 1](4, 1, *words, out)
    assert int.from_bytes(out.tobytes(), "little") == (a + b) % 2**128
    assert "setp.lt" in kernel.ptx()
