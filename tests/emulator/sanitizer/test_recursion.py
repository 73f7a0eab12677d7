"""Registers around recursive calls: what was never written is pushed and popped, and is an error where it is used."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ptxdsl
from ptxdsl import UninitializedError, use

FUNCTION = """
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 result) paths(.param .b32 down, .param .b32 across)
{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    .local .b32 own[2];
    ld.param.u32 %r0, [down];
    ld.param.u32 %r1, [across];
    LOCAL
    mov.u32 %r2, 1;
    min.u32 %r3, %r0, %r1;
    setp.eq.u32 %p0, %r3, 0;
    @%p0 bra END;
    {
        .param .b32 first;
        .param .b32 second;
        .param .b32 back;
        sub.u32 %r4, %r0, 1;
        st.param.b32 [first], %r4;
        st.param.b32 [second], %r1;
        call (back), paths, (first, second);
        ld.param.b32 %r5, [back];
    }
    {
        .param .b32 first;
        .param .b32 second;
        .param .b32 back;
        sub.u32 %r6, %r1, 1;
        st.param.b32 [first], %r0;
        st.param.b32 [second], %r6;
        call (back), paths, (first, second);
        ld.param.b32 %r7, [back];
    }
    add.u32 %r2, %r5, %r7;
    USE
END:
    st.param.b32 [result], %r2;
    ret;
}
.visible .entry k(.param .u64 out, .param .u32 down)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd0, [out];
    ld.param.u32 %r0, [down];
    mov.u32 %r1, %tid.x;
    call (%r2), paths, (%r0, %r1);
    mad.wide.u32 %rd1, %r1, 4, %rd0;
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
RIGHT = {
    "registers only": ("", ""),
    "a variable that the calls leave alone": (
        "st.local.u32 [own], %r0;", "ld.local.u32 %r8, [own]; sub.u32 %r8, %r8, %r0; add.u32 %r2, %r2, %r8;",
    ),
    "a register that is not used": ("", "@!%p0 mov.u32 %r8, 4;"),
}
WRONG = {
    "a variable": ("", "ld.local.u32 %r8, [own]; add.u32 %r2, %r2, %r8;"),
    "half of a variable": ("st.local.u32 [own], %r0;", "ld.local.u32 %r8, [own+4]; add.u32 %r2, %r2, %r8;"),
    "a register of one way": ("@%p0 mov.u32 %r8, 1;", "add.u32 %r2, %r2, %r8;"),
}


def launch(program: tuple[str, str], down: int) -> np.ndarray:
    text = FUNCTION.replace("LOCAL", program[0]).replace("USE", program[1])
    out = np.full(9, 99, np.uint32)
    with use("emulator"):
        ptxdsl.load(text)["k"].configure(1, 9, sanitize="all")(out, down)
    return out


@pytest.mark.parametrize("program", RIGHT.values(), ids=RIGHT)
def test_right(program: tuple[str, str], rng: np.random.Generator) -> None:
    down = int(rng.integers(0, 6))
    assert launch(program, down).tolist() == [math.comb(down + across, down) for across in range(9)]


@pytest.mark.parametrize("program", WRONG.values(), ids=WRONG)
def test_wrong(program: tuple[str, str], rng: np.random.Generator) -> None:
    with pytest.raises(UninitializedError):
        launch(program, int(rng.integers(1, 6)))
