"""The fast path of launches on the GPU: the same launch, while nothing that it depends on has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driver_standin import Standin
from gpu_harness import make_saxpy

import ptxdsl
from ptxdsl import Ptr, ptx, ptx_kernel, u32, use
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import tools

pytestmark = pytest.mark.skipif(not tools.find_tool("ptxas"), reason="no ptxas")


def test_the_fast_path_launches_the_same(cu: Standin, rng: np.random.Generator) -> None:
    """The second launch with arguments of the same types takes the fast path; unusual ones go through all checks."""
    saxpy = make_saxpy()
    cu.layout = "IfQQ"
    x, y = (ptxdsl.to_device(rng.random(64, np.float32)) for _ in range(2))
    for _ in range(20):
        n, a = int(rng.integers(2**32)), float(np.float32(rng.normal()))
        saxpy[2, 32](n, a, x, y)
        assert cu.numbers(cu.launches[-1]) == (n, a, x.address, y.address)
    count = len(cu.launches)
    wrong = ptxdsl.to_device(np.zeros(64, np.int32))
    cases: list[tuple[Any, ...]] = [(-1, 1.0, x, y), (2**32, 1.0, x, y), (1, 1e39, x, y), (1, 1.0, wrong, y)]
    for args in cases:
        with pytest.raises(LaunchError):
            saxpy[2, 32](*args)
    assert len(cu.launches) == count
    saxpy[2, 32](7, float("inf"), y, x)
    assert cu.numbers(cu.launches[-1]) == (7, float("inf"), y.address, x.address)
    with use("emulator"), pytest.raises(LaunchError, match="is on GPU 0; the emulator works in host memory"):
        saxpy[2, 32](7, 1.0, x, y)


def test_the_fast_path_sees_constants(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: int) -> None:
        x[ptx.tid.x] = value

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    for value in (1, 2, 1, 2, 1):
        fill[1, 32](x, value=value)
    assert len(cu.images) == 2
    assert len(set(cu.images)) == 2


def test_the_fast_path_keeps_true_from_one(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, value: Any) -> None:
        x[ptx.tid.x] = 5 if value is True else int(str(value).startswith("-"))

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    for value in (1, 1, True, True, 0.0, 0.0, -0.0):
        fill[1, 32](x, value=value)
    assert len(cu.images) == 4
    assert len(set(cu.images)) == 3  # 1 and 0.0 make the same code


def test_a_change_of_what_was_traced_and_retrace_end_the_fast_path(cu: Standin) -> None:
    factor = [1]

    @ptx_kernel
    def fill(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = factor[0]

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    launch = fill[1, 32]
    launch(x)
    launch(x)
    assert len(cu.images) == 1
    factor[0] = 5
    launch(x)
    launch(x)
    assert len(cu.images) == 2
    fill.retrace()
    launch(x)
    assert len(cu.images) == 3


def test_the_fast_path_refuses_a_launch_within_a_trace(cu: Standin) -> None:
    @ptx_kernel
    def fill(x: Ptr[u32]) -> None:
        x[ptx.tid.x] = 1

    cu.layout = "Q"
    x = ptxdsl.zeros(32, u32)
    launch = fill[1, 32]
    launch(x)

    @ptx_kernel
    def outer(y: Ptr[u32]) -> None:
        launch(x)
        y[0] = 1

    with pytest.raises(LaunchError, match="is launched while another is traced"):
        outer.ptx()
    assert len(cu.launches) == 1
