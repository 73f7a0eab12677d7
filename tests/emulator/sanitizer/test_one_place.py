"""Lanes of a warp that store at one place: the same value, which only the launch knows, is no race, others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ptxdsl import Ptr, RaceError, ptx, ptx_kernel, shared, u32, use, when
from ptxdsl.emulator.sanitizer.sanitizer import Sanitizer


@ptx_kernel
def of_warps(x: Ptr[u32], y: Ptr[u32]) -> None:
    s, t = shared(u32, 4), ptx.tid.x
    s[t >> 5] = x[t]
    ptx.bar.sync(0)
    y[t] = s[(t + 32 & 127) >> 5]


@ptx_kernel
def of_some_lanes(x: Ptr[u32], y: Ptr[u32]) -> None:
    s, t = shared(u32, 4), ptx.tid.x
    with when(t % 32 < 5):
        s[t >> 5] = x[t]
    ptx.bar.sync(0)
    y[t] = s[(t + 32 & 127) >> 5]


@ptx_kernel
def update(x: Ptr[u32], y: Ptr[u32]) -> None:
    s, t = shared(u32, 4), ptx.tid.x
    s[t >> 5] = 0
    ptx.bar.sync(0)
    s[t >> 5] = s[t >> 5] + x[t]
    ptx.bar.sync(0)
    y[t] = s[t >> 5]


def run(kernel: Any, x: Any) -> Any:
    y = np.zeros(128, np.uint32)
    with use("emulator"):
        kernel.configure(1, 128, sanitize="all")(x.astype(np.uint32), y)
    return y


@pytest.mark.parametrize("kernel", [of_warps, of_some_lanes])
def test_the_same_value(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Sanitizer, "callback")
    warps = np.arange(128) // 32
    assert np.array_equal(run(kernel, warps * 7), (warps + 1) % 4 * 7)


@pytest.mark.parametrize("lane", [1, 3, 4])
@pytest.mark.parametrize("kernel", [of_warps, of_some_lanes])
def test_another_value_in_one_lane(kernel: Any, lane: int) -> None:
    x = np.arange(128) // 32 * 7
    x[64 + lane] += 1
    with pytest.raises(RaceError):
        run(kernel, x)


def test_a_lost_update_of_the_same_value() -> None:
    with pytest.raises(RaceError):
        run(update, np.ones(128))
