"""A seed draws the order of the blocks, and where they stop: the same each time, whatever the setting of threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from emulator_harness import argument, kernel

from ptxdsl import emulator
from ptxdsl.config import override
from ptxdsl.errors import EmulationError
from ptxdsl.launch import LaunchConfig

TICKET = """
mov.u32 %r1, %ctaid.x; mov.u32 %r5, %tid.x; setp.ne.u32 %p0, %r5, 0; @%p0 ret;
ld.param.u64 %rd0, [out]; atom.global.add.u32 %r2, [%rd0], 1;
mad.wide.u32 %rd1, %r2, 4, %rd0; st.global.u32 [%rd1+4], %r1; ret;
"""
"""Each block writes its number at the place of its ticket."""
STOPS = """
mov.u32 %r1, %ctaid.x; mov.u32 %r3, 0; ld.param.u64 %rd0, [out];
AGAIN: atom.global.add.u32 %r2, [%rd0], 1; mad.wide.u32 %rd1, %r2, 4, %rd0; st.global.u32 [%rd1+4], %r1;
mov.u32 %r6, 0; WAIT: add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, 2000; @%p0 bra WAIT;
add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, 20; @%p0 bra AGAIN; ret;
"""
"""The same in each turn of a loop: the numbers of the blocks in the order in which they came by."""


def order(text: str, seed: int | None, grid: Any = 24, cluster: int | None = None, count: int = 24) -> list[int]:
    out = np.zeros(4096, np.uint32)
    config = LaunchConfig(grid, 1, 0, cluster, seed=seed)
    emulator.load(kernel("u64 out", text)).run("k", config, [argument("out", out)])
    assert out[0] == count
    return out[1 : 1 + count].tolist()


@pytest.mark.parametrize("cluster", [None, 2])
def test_order_of_blocks(cluster: int | None) -> None:
    usual = order(TICKET, None, cluster=cluster)
    drawn = [order(TICKET, seed, cluster=cluster) for seed in range(5)]
    assert all(sorted(each) == sorted(usual) == list(range(24)) for each in drawn)
    assert len({tuple(each) for each in [usual, *drawn]}) == 6
    for seed, each in enumerate(drawn):
        for threads in (1, 4):
            with override(emulator_threads=threads):
                assert order(TICKET, seed, cluster=cluster) == each


def test_blocks_stop_in_their_loops() -> None:
    """Every block comes by 20 times, and others in between; the same each time."""
    found = [order(STOPS, seed, 4, count=80) for seed in (1, 3, 1)]
    assert found[0] == found[2] != found[1]
    for each in found:
        assert sorted(each) == sorted([*range(4)] * 20)
        assert sum(a != b for a, b in itertools.pairwise(each)) > 3


def test_every_block_runs_once() -> None:
    out = np.zeros(3000, np.uint32)
    text = """mov.u32 %r1, %ctaid.x; ld.param.u64 %rd0, [out]; mad.wide.u32 %rd0, %r1, 4, %rd0;
        red.global.add.u32 [%rd0], 1; ret;"""
    program = emulator.load(kernel("u64 out", text))
    for seed in (7, 8):
        program.run("k", LaunchConfig(3000, 1, seed=seed), [argument("out", out)])
    assert (out == 2).all()


def test_a_fault_ends_the_launch() -> None:
    text = "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p0, %r1, 5; @%p0 ret; trap;"
    with pytest.raises(EmulationError) as caught:
        emulator.load(kernel("", text)).run("k", LaunchConfig(50, 1, seed=3), [])
    assert caught.value.block == (5, 0, 0)


def test_waiting_blocks_see_those_that_come_later() -> None:
    """Each block waits for the next one, so that all of them are under way at once."""
    text = """mov.u32 %r1, %ctaid.x; ld.param.u64 %rd0, [out]; mad.wide.u32 %rd1, %r1, 4, %rd0;
        setp.eq.u32 %p1, %r1, 39; @%p1 bra TELL;
        WAIT: ld.acquire.gpu.global.u32 %r2, [%rd1+4]; setp.eq.u32 %p0, %r2, 0; @%p0 bra WAIT;
        TELL: st.release.gpu.global.u32 [%rd1], 1; ret;"""
    for seed in range(4):
        out = np.zeros(41, np.uint32)
        emulator.load(kernel("u64 out", text)).run("k", LaunchConfig(40, 1, seed=seed), [argument("out", out)])
        assert (out[:40] == 1).all()
