"""``k.tiers()``: which engine runs a kernel's launches, and why."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ptxdsl import Ptr, loop, ptx, ptx_kernel, reg, u32
from ptxdsl.emulator.jit import planning
from ptxdsl.emulator.jit.plan import Refused
from ptxdsl.emulator.jit.tier_up import THREAD
from ptxdsl.emulator.tools.tiers import Tier
from ptxdsl.kernel.kernel import Kernel


def made(seed: int) -> Kernel:
    @ptx_kernel
    def turns(n: u32, x: Ptr[u32]) -> None:
        i = ptx.ctaid.x * ptx.ntid.x + ptx.tid.x
        v = reg(u32, x[i])
        with loop(0, n):
            v.set(v * 3 + seed)
        x[i] = v

    return turns


def run_long(kernel: Kernel, **options: object) -> None:
    x = np.zeros(4096, np.uint32)
    launch = kernel.configure(64, 64, backend="emulator", **options)
    for _ in range(200):
        launch(500, x)
        if all(tier.engine != "handlers" or "compiled after" not in tier.reason for tier in kernel.tiers()):
            break
    for thread in threading.enumerate():
        if thread.name == THREAD:
            thread.join()


def test_engine_of_each_way_of_launching(rng: np.random.Generator) -> None:
    kernel = made(int(rng.integers(1 << 30)))
    assert str(kernel.tiers()) == "not launched on the emulator yet"
    x = np.zeros(64, np.uint32)
    kernel.configure(1, 64, backend="emulator")(0, x)
    (tier,) = kernel.tiers()
    assert tier[:3] == ((64, 1, 1), False, "handlers")
    assert tier.reason.startswith("it has run for ") and ", and is compiled after " in tier.reason
    run_long(kernel)
    assert kernel.tiers() == (Tier((64, 1, 1), False, "block function", ""),)
    kernel.configure(1, 32, backend="emulator", sanitize="race")(0, x)
    sanitized = [tier for tier in kernel.tiers() if tier.sanitized]
    assert [tier[:3] for tier in sanitized] == [((32, 1, 1), True, "handlers")]
    assert str(sanitized[0]).startswith("blocks of (32, 1, 1), sanitized: handlers: it has run for ")


@pytest.mark.parametrize(("error", "shown"), [
    (Refused("an indirect branch (line 7)"), "functions of a warp: an indirect branch (line 7)"),
    (ValueError("no"), "handlers: compiling it failed: ValueError('no')"),
])
@pytest.mark.filterwarnings("ignore:kernel `turns` stays in the emulator's first tier")
def test_reason_of_a_refusal(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, error: Exception, shown: str
) -> None:
    def refuses(_: object) -> None:
        raise error

    monkeypatch.setattr(planning, "plan_block_function", refuses)
    kernel = made(int(rng.integers(1 << 30)))
    run_long(kernel)
    kernel.configure(1, 64, backend="emulator")(0, np.zeros(64, np.uint32))
    assert str(kernel.tiers()) == f"blocks of (64, 1, 1): {shown}"
