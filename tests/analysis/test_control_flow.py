"""Blocks, where divergent lanes reconverge, and what is live."""

from __future__ import annotations

import pytest

from ptxdsl.analysis.control_flow import ControlFlowGraph, control_flow_graph
from ptxdsl.analysis.definite_assignment import maybe_unwritten
from ptxdsl.analysis.liveness import Liveness
from ptxdsl.text import parse


def graph(body: str, conservative: bool = False) -> ControlFlowGraph:
    text = f"""
.version 8.0
.target sm_90
.address_size 64
.entry k(.param .u32 n)
{{
    .reg .b32 %r<9>;
    .reg .pred %p<4>;
{body}
}}
"""
    return control_flow_graph(parse(text).functions[0], conservative)


BRANCH = """
    ld.param.u32 %r1, [n];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra $then;
    mov.u32 %r2, 1;
    bra $end;
$then:
    mov.u32 %r2, 2;
$end:
    add.u32 %r3, %r2, %r1;
    ret;
"""


def test_both_ways_of_a_branch_reconverge_behind_it() -> None:
    found = graph(BRANCH)
    assert [(block.start, block.stop) for block in found.blocks] == [(0, 3), (3, 5), (5, 6), (6, 8)]
    assert [block.successors for block in found.blocks] == [(2, 1), (3,), (3,), ()]
    assert found.reconvergence == [3, 3, 3, -1]
    assert [block.priority for block in found.blocks] == [0, 1, 2, 3]
    assert found.divergent_region(0, {}) == {1, 2}


def test_a_branch_to_the_end_is_an_exit() -> None:
    found = graph("setp.eq.u32 %p1, 0, 0;\n@%p1 bra $end;\nmov.u32 %r1, 1;\n$end:\nret;")
    assert found.blocks[0].exits
    assert found.blocks[0].successors == (1,)


def test_what_cannot_be_reached_is_no_block() -> None:
    assert len(graph("bra $end;\nmov.u32 %r1, 1;\n$end:\nmov.u32 %r2, 1;\nret;").blocks) == 2


@pytest.mark.parametrize(("conservative", "starts"), [(False, [0, 1]), (True, [0, 1, 2])])
def test_lanes_can_wait_at_a_barrier(conservative: bool, starts: list[int]) -> None:
    found = graph("mov.u32 %r1, 1;\nbar.sync 0;\nadd.u32 %r2, %r1, 1;\nret;", conservative)
    assert [block.start for block in found.blocks] == starts


def test_definitions_and_uses() -> None:
    add = graph(BRANCH).def_use[6]
    assert [register.name for register in add.writes] == ["%r3"]
    assert [register.name for register in add.uses] == ["%r2", "%r1"]


def test_liveness() -> None:
    live = Liveness(graph(BRANCH))
    assert live.after(2) == {"%r1"}
    assert live.before(6) == {"%r1", "%r2"}
    assert live.after(6) == set()


def test_a_guarded_write_keeps_the_register_live_and_counts_for_no_definite_one() -> None:
    found = graph("setp.eq.u32 %p1, 0, 0;\n@%p1 mov.u32 %r1, 1;\nadd.u32 %r2, %r1, 1;\nret;")
    assert Liveness(found).before(1) == {"%p1", "%r1"}
    assert {register.name for register in maybe_unwritten(found)} == {"%r1"}
