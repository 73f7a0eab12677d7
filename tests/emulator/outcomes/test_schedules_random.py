"""Random programs of a few threads: what the schedules end in is among the outcomes of the axioms.

It is all of them where a fence.sc before each access leaves interleavings only.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl.config import override
from ptxdsl.emulator.outcomes.api import Explorer

HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry program(.param .u64 places, .param .u64 out)
{
.reg .b64 %x, %y, %o; .reg .b32 %b, %v; .reg .pred %p;
ld.param.u64 %x, [places]; ld.param.u64 %o, [out]; add.u64 %y, %x, 4; mov.u32 %b, %ctaid.x;
"""


class _BySchedules(Explorer):
    def explores_by_axioms(self, launch: Any) -> bool:
        return False


def _statement(draw: random.Random, fenced: bool, to: int) -> str:
    at, number = draw.choice(("[%x]", "[%y]")), draw.randint(1, 3)
    fence = "fence.sc.gpu;\n" * fenced
    stays = f"st.global.u32 [%o+{to}], %v;"
    loads, stores = (("relaxed",),) * 2 if fenced else (("relaxed", "acquire"), ("relaxed", "release"))
    return fence + draw.choice((
        f"st.{draw.choice(stores)}.gpu.global.u32 {at}, {number};",
        f"ld.{draw.choice(loads)}.gpu.global.u32 %v, {at};\n{stays}",
        f"atom.relaxed.gpu.global.add.u32 %v, {at}, {number};\n{stays}",
        f"atom.relaxed.gpu.global.exch.b32 %v, {at}, {number};\n{stays}",
        f"red.relaxed.gpu.global.add.u32 {at}, 1;",
    ))


def _program(draw: random.Random, fenced: bool) -> tuple[int, str]:
    threads = 2 if fenced else draw.choice((2, 3))
    branches = [f"setp.eq.u32 %p, %b, {thread};\n@%p bra T{thread};\n" for thread in range(threads)]
    text = "".join([HEAD, *branches, "ret;\n"])
    for thread in range(threads):
        lines = [_statement(draw, fenced, 8 * thread + 4 * n) for n in range(draw.randint(1, 2))]
        text += "\n".join([f"T{thread}:", *lines, "ret;\n"])
    return threads, text + "}\n"


def _states(explorer: Explorer, kernel: Any) -> set[tuple[int, ...]]:
    with override(backend="emulator", sanitize="off"), explorer:
        kernel(np.zeros(2, np.uint32), np.zeros(6, np.uint32))
    assert explorer.found is not None
    return {(*outcome["places"].tolist(), *outcome["out"].tolist()) for outcome in explorer.found}


@pytest.mark.parametrize("fenced", [False, True])
def test_random_programs_beside_the_axioms(fenced: bool, rng: np.random.Generator) -> None:
    draw = random.Random(int(rng.integers(1 << 32)))
    for _ in range(8):
        threads, text = _program(draw, fenced)
        kernel = ptxdsl.load(text)["program"][threads, 1]
        every = _states(Explorer(), kernel)
        found = _states(_BySchedules(bound=50), kernel)
        assert found <= every, text
        assert found == every or not fenced, text
