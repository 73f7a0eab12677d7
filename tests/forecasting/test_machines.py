"""The descriptions of GPUs against the peaks that NVIDIA names, and pieces of the model against numbers by hand."""

from __future__ import annotations

import doctest

import pytest

from ptxdsl.emulator.tools import sampling
from ptxdsl.emulator.tools.sampling import Reach, groups, probes
from ptxdsl.emulator.tools.tensor_boxes import box_ranges
from ptxdsl.forecasting import execution, machines, pipes, result, sass
from ptxdsl.forecasting.machines import MACHINES, Machine
from ptxdsl.forecasting.sass import Sass, Segment, segments
from ptxdsl.forecasting.timeline import segment_clocks
from ptxdsl.isa import lookup
from ptxdsl.isa.arithmetic import flops
from ptxdsl.isa.targets import multiprocessor
from ptxdsl.isa.tensor_maps import encode

EACH = pytest.mark.parametrize("one", MACHINES.values(), ids=MACHINES.keys())
PEAKS = {
    "a100": (312, 19.5, 9.7), "rtx4090": (165.2, 82.6, 1.3), "h100": (989, 62, 31), "h200": (989, 62, 31),
    "b200": (2250, 70, 35),
}
"""Tflop/s of dense bf16 with sums in f32, of fp32 and of fp64; those of Hopper at the clock of the tensor cores."""


@EACH
def test_peaks(one: Machine) -> None:
    dense = one.multiprocessors * one.hertz / 1e12
    half, single, double = PEAKS[one.name]
    assert dense * one.rates.tensor_rate("bf16") == pytest.approx(half, rel=0.02)
    assert 2 * dense * one.rates.fp32 == pytest.approx(single, rel=0.02)
    assert 2 * dense * one.rates.fp64 == pytest.approx(double, rel=0.02)
    assert one.rates.tensor_rate("e4m3") == 2 * one.rates.tensor_rate("f16")


@EACH
def test_descriptions_are_possible(one: Machine) -> None:
    assert multiprocessor(one.target).threads % 32 == 0
    assert 0.5 < one.copy_share <= one.read_share < 1
    assert one.shared_latency <= one.l1_latency < one.l2_latency < one.memory_latency
    assert one.memory < one.l2_rate * one.hertz and one.sources


@pytest.mark.parametrize("module", [sampling, execution, machines, pipes, result, sass])
def test_doctests(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("grid", [(1, 1, 1), (17, 1, 1), (5, 7, 1), (3, 1, 4), (9, 8, 7), (1, 1, 33)])
def test_groups_cover_a_grid(grid: tuple[int, int, int]) -> None:
    found = list(groups(grid))
    blocks = grid[0] * grid[1] * grid[2]
    assert sum(group.size for group in found) == blocks
    chosen = [unit for group in found for unit in group.chosen]
    assert len(chosen) == len(set(chosen)) and max(chosen) == blocks - 1 and min(chosen) >= 0
    assert set(probes(grid).values()) <= set(range(blocks))


def test_reach_of_a_product() -> None:
    """Rows of a are read by blocks of one y, columns of b by those of one x, a table by all."""
    strip_a, strip_b, table = 40, 30, 5
    fresh = {"first": strip_a + strip_b + table, "x": strip_b, "y": strip_a, "xy": 0}
    reach = Reach.of(strip_a + strip_b + table, fresh, 10_000)
    assert reach.distinct(6, 4) == 6 * strip_b + 4 * strip_a + table
    assert Reach.of(75, fresh, 100).distinct(6, 4) == 100


def test_reach_along_z() -> None:
    fresh = {"first": 10, "x": 10, "y": 10, "xy": 10, "z": 10}
    assert Reach.of(10, fresh, 1 << 30).distinct(3, 4, 5) == 600
    assert Reach.of(10, fresh | {"z": 0}, 1 << 30).distinct(3, 4, 5) == 120


def test_rows_of_a_box_within_its_tensor() -> None:
    data = encode({
        "global_address": 4096, "rank": 2, "elemtype": 10, "global_dim": (100, 7), "global_stride": (16,),
        "box_dim": (64, 4),
    })
    assert list(box_ranges(data, (64, 5), ())) == [(4096 + 5 * 256 + 128, 72), (4096 + 6 * 256 + 128, 72)]
    assert next(box_ranges(data, (2**32 - 8, 0), ())) == (4096, 112)
    assert [place for place, _ in box_ranges(data, (0, 6, 1, 9, 0), ("tile::gather4",))] == [
        4096 + 6 * 256, 4096 + 256, 4096,
    ]


def test_operations_of_a_warp_in_a_product_of_a_warpgroup() -> None:
    form = lookup("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16")[0]
    assert 4 * flops(form).warp == 2 * 64 * 128 * 16


LISTING = """
	.section	.text.other,"ax",@progbits
.text.other:
        /*0000*/                   EXIT ;
//--------------------- .text.k --------------------------
.text.k:
	//## File "ptx", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
.L_x_1:
	//## File "ptx", line 5
        /*0020*/                   FFMA R8, R4, R5, R8 ;
        /*0030*/              @!P0 BRA `(.L_x_1) ;
        /*0040*/                   EXIT ;
.L_x_0:
        /*0050*/                   BRA `(.L_x_0);
        /*0060*/                   NOP;
.L_x_3:
"""


def test_blocks_of_a_listing() -> None:
    found = segments(LISTING, "k")
    assert [[one.opcode for one in segment.instructions] for segment in found] == [
        ["LDC", "LDG.E.128"], ["FFMA", "BRA"], ["EXIT"],
    ]
    assert [one.line for one in found[1].instructions] == [5, 5]
    assert found[1].instructions[1].target == ".L_x_1" and found[1].instructions[1].guard == "@!P0"


def test_a_warp_waits_for_each_part_of_a_wide_load() -> None:
    h200 = MACHINES["h200"]
    load = Sass(0, "LDG.E.128", ("R4", "desc[UR4][R2.64]"), "", 1)
    for register, waits in (("R7", True), ("R8", False)):
        use = Sass(16, "FADD", ("R0", register, "R1"), "", 2)
        (clocks,) = segment_clocks([Segment((), [load, use])], h200, 1.0)
        assert (sum(clocks) >= h200.memory_latency) == waits


def test_loads_of_a_turn_that_the_next_one_uses() -> None:
    """A load for the next turn is waited for only as long as the turn is shorter."""
    h200 = MACHINES["h200"]
    use = Sass(0, "FADD", ("R0", "R4", "R0"), "", 1)
    load = Sass(16, "LDG.E", ("R4", "desc[UR4][R2.64]"), "", 2)
    back = Sass(32, "BRA", ("`(.L_1)",), "@P0", 3)
    (clocks,) = segment_clocks([Segment((".L_1",), [use, load, back])], h200, 0.0)
    assert h200.l2_latency <= sum(clocks) <= h200.l2_latency + 8
