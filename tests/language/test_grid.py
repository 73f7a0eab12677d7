"""The barrier of a grid, `grid.sync`: against what a launch for each step gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import Ptr, grid, loop, ptx, ptx_kernel, u32
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools


def make_shift() -> Any:
    @ptx_kernel
    def shift(x: Ptr[u32], steps: u32) -> None:
        """Each thread takes what the thread behind it, in another block for the first, has at each step."""
        threads = ptx.ntid.x * ptx.ntid.y * ptx.ntid.z
        i = grid.rank() * threads + ptx.tid.x + ptx.ntid.x * (ptx.tid.y + ptx.ntid.y * ptx.tid.z)
        with loop(steps):
            other = x[(i + 1) % (grid.size() * threads)]
            grid.sync()
            x[i] = other + 1
            grid.sync()

    return shift


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("blocks", "block"), [
    (1, 32), (3, 32), ((2, 3), (8, 4)), ((2, 2, 2), (3, 5, 7)), (7, 1), (4, 1000),
])
def test_a_grid_in_step(blocks: Any, block: Any, seed: int | None, rng: np.random.Generator) -> None:
    shift = make_shift()
    count = int(np.prod(blocks) * np.prod(block))
    x = rng.integers(0, 1 << 30, count, np.uint32)
    expected = x.copy()
    for steps in (3, 0, 1, 4):  # the variable of the barrier is left as the next launch wants it
        shift.configure(blocks, block, cooperative=True, seed=seed)(x, steps)
        expected = np.roll(expected, -steps) + np.uint32(steps)
        np.testing.assert_array_equal(x, expected)


def test_the_sanitizer_sees_the_order() -> None:
    x = np.arange(96, dtype=np.uint32)
    make_shift().configure(3, 32, cooperative=True, sanitize="race,init,barrier,memory")(x, 2)
    assert x.tolist() == [(i + 2) % 96 + 2 for i in range(96)]


@pytest.mark.emulator(reason="about what the emulator finds")
def test_without_the_barrier_it_is_a_race() -> None:
    @ptx_kernel
    def shift(x: Ptr[u32]) -> None:
        i = grid.rank() * 32 + ptx.tid.x
        other = x[(i + 1) % (grid.size() * 32)]
        ptx.bar.sync(0)
        x[i] = other

    with pytest.raises(ptxdsl.RaceError):
        shift.configure(3, 32, cooperative=True, sanitize="race")(np.zeros(96, np.uint32))


def test_a_launch_that_is_not_cooperative() -> None:
    shift, line = make_shift(), make_shift.__code__.co_firstlineno + 8
    with pytest.raises(LaunchError) as caught:
        shift[3, 32](np.zeros(96, np.uint32), 1)
    assert caught.value.message == (
        f"`grid.sync` at {__file__}:{line}: grid.sync() waits for all blocks of the grid, "
        "and the launch of kernel `shift` is not cooperative"
    )
    assert caught.value.hint == "`.configure(grid, block, cooperative=True)`"


@pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")
@pytest.mark.parametrize("arch", ["sm_75", "sm_90a", "sm_100a"])
def test_it_assembles(arch: str) -> None:
    assert make_shift().attributes(arch=arch).spill_store_bytes == 0
