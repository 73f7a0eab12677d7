"""Errors in functions that a compiler has inlined name the line of the function and those of the calls."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import MemoryFault, RaceError, UninitializedError, use
from ptxdsl.text import parse, to_text

TEXT = """.version 7.4
.target sm_70
.address_size 64
.visible .entry k(.param .u64 x, .param .u32 at)
{
  .reg .b64 %rd<4>; .reg .b32 %r<6>; .shared .align 4 .b8 s[64];
  .loc 1 40 3
  ld.param.u64 %rd0, [x]; ld.param.u32 %r0, [at];
  .loc 1 41 5
  mul.wide.u32 %rd1, %r0, 4;
  .loc 2 9 11, function_name $name0, inlined_at 1 41 5
  add.u64 %rd1, %rd0, %rd1;
  .loc 3 7 2, function_name $name1, inlined_at 2 9 11
  BODY
  .loc 1 43 1
  st.global.u32 [%rd0], %r1;
  ret;
}
.file 1 "kernel.cu"
.file 2 "helper.h"
.file 3 "detail.h"
"""
CHAIN = "detail.h:7, inlined at helper.h:9, inlined at kernel.cu:41"
CASES: dict[str, tuple[str, int, Any]] = {
    "a fault": ("ld.global.u32 %r1, [%rd1];", 99, MemoryFault),
    "unwritten memory": ("ld.shared.u32 %r1, [s];", 0, UninitializedError),
    "a race": ("mov.u32 %r1, %tid.x; st.shared.u32 [s], %r1;", 0, RaceError),
}


@pytest.mark.parametrize("name", CASES)
def test_the_chain(name: str) -> None:
    body, at, error = CASES[name]
    with use("emulator"), pytest.raises(error) as caught:
        ptxdsl.load(TEXT.replace("BODY", body))["k"].configure(1, 32, sanitize="all")(np.zeros(8, np.uint32), at)
    assert f"\n  at {CHAIN}\n" in str(caught.value)
    assert caught.value.loc[:] == ("detail.h", 7)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_module_is_the_same() -> None:
    """Lines are compared without the calls, which are not printed."""
    module = parse(TEXT.replace("BODY", "mov.u32 %r1, 0;"))
    assert parse(to_text(module)) == module
    lines = [str(statement.loc) for statement in module.functions[0].instructions()]
    assert lines[-4:] == ["helper.h:9, inlined at kernel.cu:41", CHAIN, "kernel.cu:43", "kernel.cu:43"]


def test_a_line_that_is_inlined_again() -> None:
    """The chain is that of the place where it stands, not of one before."""
    again = ".loc 2 9 11, function_name $name0, inlined_at 1 50 5"
    text = TEXT.replace("BODY", f"mov.u32 %r1, 0;\n{again}\nmov.u32 %r2, 0;")
    lines = [str(statement.loc) for statement in parse(text).functions[0].instructions()]
    assert lines[-3] == "helper.h:9, inlined at kernel.cu:50"
