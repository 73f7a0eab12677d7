"""PTX as others write it, through `load`: old targets and versions, 32-bit addresses, and what ptxas takes beyond the manual."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl.errors import VerifyError

REGISTERS = (
    ".reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .f64 %fd<4>;"
)


def program(body: str, *, head: str = ".version 6.5\n.target sm_30\n.address_size 64", outside: str = "") -> str:
    """A kernel of two pointers, in %rd1 and %rd2."""
    return f"""{head}
{outside}
.visible .entry k(.param .u64 given, .param .u64 wanted)
{{
    {REGISTERS}
    ld.param.u64 %rd1, [given];
    ld.param.u64 %rd2, [wanted];
    {body}
    ret;
}}"""


def run(text: str, given: Any, result: Any, threads: int = 1, shared: int = 0) -> Any:
    """What the kernel writes into an array like ``result``, which holds something else before."""
    out = np.full_like(result, 77)
    ptxdsl.load(text)["k"].configure(1, threads, shared=shared, backend="emulator")(given, out)
    return out


# ---------------------------------------------------------------------------------------------------------------------
# Targets and versions before those that ptxdsl prints


@pytest.mark.parametrize(("version", "target"), [("3.0", "sm_30"), ("6.0", "sm_70"), ("9.0", "sm_62"), ("4.2", "sm_53")])
def test_shuffles_and_votes_without_sync(version: str, target: str, rng: np.random.Generator) -> None:
    text = program(f"""
        mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd3, %r1, 4;
        add.u64 %rd1, %rd1, %rd3;
        add.u64 %rd2, %rd2, %rd3;
        ld.global.u32 %r2, [%rd1];
        shfl.bfly.b32 %r3|%p1, %r2, 5, 31;
        setp.gt.s32 %p2, %r3, 0;
        vote.ballot.b32 %r4, %p2;
        xor.b32 %r3, %r3, %r4;
        st.global.u32 [%rd2], %r3;""", head=f".version {version}\n.target {target}\n.address_size 64")
    given = rng.integers(-100, 100, 32, np.int32)
    swapped = given[np.arange(32) ^ 5]
    ballot = sum(1 << lane for lane in range(32) if swapped[lane] > 0)
    assert (run(text, given, given, 32) == (swapped.view(np.uint32) ^ np.uint32(ballot)).view(np.int32)).all()


def test_shuffles_without_sync_are_gone_from_sm_70_on() -> None:
    with pytest.raises(VerifyError, match=r"`vote.ballot.b32` is gone since PTX 6.4") as caught:
        ptxdsl.load(program("vote.ballot.b32 %r1, %p1;", head=".version 6.4\n.target sm_72\n.address_size 64"))
    assert caught.value.hint == "say which lanes take part: `vote.sync.ballot.b32`"


@pytest.mark.ptxas
def test_an_old_target_is_assembled_for_the_lowest_that_there_is() -> None:
    kernel = ptxdsl.load(program("st.global.u32 [%rd2], 1;"))["k"]
    assert kernel.cubin()[:4] == b"\x7fELF"
    assert kernel.attributes().num_regs > 0


# ---------------------------------------------------------------------------------------------------------------------
# What ptxas takes


def test_operands_that_are_sums() -> None:
    text = program("""
        ld.global.u32 %r1, [%rd1];
        st.global.u32 [%rd2], %r1 + 40;
        mov.u64 %rd3, %rd2+4;
        add.s32 %r2, %r1+-3, %r1+1;
        st.global.u32 [%rd3], %r2;""")
    assert run(text, np.array([2], np.int32), np.zeros(2, np.int32)).tolist() == [42, 2]


def test_floats_in_untyped_registers_twice_their_size() -> None:
    text = program("""
        mov.b64 %rd3, 0x0123456789abcdef;
        ld.global.f32 %rd3, [%rd1+4];
        st.global.f32 [%rd2], %rd3;
        st.global.b64 [%rd2+8], %rd3;""")
    given = np.array([3.0, -2.5], np.float32)
    out = run(text, given, np.zeros(4, np.uint32))
    assert out.tolist() == [given.view(np.uint32)[1], 77, given.view(np.uint32)[1], 0]


def test_vectors_as_registers_and_parameters(rng: np.random.Generator) -> None:
    outside = """
    .func (.reg .v2 .u32 both) turned(.reg .v2 .u32 pair, .reg .u32 more)
    {
        .reg .v2 .u32 other;
        mov.u32 other.x, pair.y;
        add.u32 other.y, pair.r, more;
        mov.v2.u32 both, other;
        ret;
    }"""
    text = program("""
        .reg .v2 .u32 v;
        .reg .v4 .u16 w;
        ld.global.v2.u32 v, [%rd1];
        call (v), turned, (v, 7);
        mov.b64 %rd3, v;
        st.global.v2.u32 [%rd2], v;
        st.global.u64 [%rd2+8], %rd3;
        mov.b64 {%h1, %h2, %h3, %h4}, %rd3;
        mov.v4.u16 w, {%h2, %h3, %h4, %h1};
        mov.v4.u16 {%h1, %h2, %h3, %h4}, {%h2, %h1, w.z, w.w};
        st.global.v4.u16 [%rd2+16], {%h1, %h2, %h3, %h4};""", outside=outside)
    given = rng.integers(0, 2**31, 2, np.uint32)
    a, b = given.tolist()
    pair = np.array([b, a + 7], np.uint32)
    h = pair.view(np.uint16)
    last = np.array([h[1], h[0], h[3], h[0]], np.uint16).view(np.uint32)
    assert run(text, given, np.zeros(6, np.uint32)).tolist() == [*pair, *pair, *last]


@pytest.mark.parametrize(("first", "then", "wanted"), [
    ("sub.cc.u32 %r2, 0, 1;", "addc.u32 %r3, 1, 0;", 1), ("sub.cc.u32 %r2, 1, 0;", "addc.u32 %r3, 1, 0;", 2),
    ("add.cc.u32 %r2, 0, 0;", "subc.u32 %r3, 5, 1;", 3), ("add.cc.u32 %r2, -1, 1;", "subc.u32 %r3, 5, 1;", 4),
    ("sub.cc.u32 %r2, 0, 1;", "subc.u32 %r3, 5, 1;", 3), ("add.cc.u32 %r2, -1, 1;", "addc.u32 %r3, 5, 1;", 7),
])
def test_a_carry_between_additions_and_subtractions_is_the_adders(first: str, then: str, wanted: int) -> None:
    text = program(f"{first} {then} st.global.u32 [%rd2], %r3;")
    assert run(text, np.zeros(1, np.uint32), np.zeros(1, np.uint32)).tolist() == [wanted]
