"""Trials leave no trace: all that a kernel writes is as it was, wherever it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, Config, In, InOut, Out, Ptr, Surface, autotune, config, f32, global_, ptx, ptx_kernel, reg, u32,
)

CONFIGS = [Config(block=32, A=1), Config(block=32, A=2)]


@pytest.fixture(autouse=True)
def _fresh(emulated: None, tmp_path: Path) -> Iterator[None]:
    """The emulator, and a cache of the test's own."""
    with config.override(cache_dir=tmp_path / "cache"):
        yield


def test_a_kernel_whose_work_depends_on_what_it_finds(rng: np.random.Generator) -> None:
    """Each trial finds what the first one found: else the second would do no work."""
    @ptx_kernel
    def drain(count: Ptr[u32], *, A: int) -> None:
        with ptxdsl.loop():
            ptxdsl.break_if(count[0] == 0)
            count[0] = count[0] - 1

    count = np.array([int(rng.integers(50, 100))], np.uint32)
    before = count.copy()
    tuning = autotune([Config(block=1, A=1), Config(block=1, A=2)])(drain)[1].tune(count)
    np.testing.assert_array_equal(count, before)
    assert tuning[0].cost == tuning[1].cost


def test_a_strided_array(rng: np.random.Generator) -> None:
    @ptx_kernel
    def k(x: Array[f32, 2], *, A: int) -> None:
        x[0, ptx.tid.x] = x[0, ptx.tid.x] * float(A) + 1.0

    whole = rng.standard_normal((5, 80), np.float32)
    before = whole.copy()
    autotune(CONFIGS)(k)[1].tune(whole[1:3, :32])
    np.testing.assert_array_equal(whole, before)


def test_what_a_table_points_to(rng: np.random.Generator) -> None:
    @ptx_kernel
    def k(targets: Ptr[Ptr[f32]], *, A: int) -> None:
        target = targets[ptx.ctaid.x]
        target[ptx.tid.x] = target[ptx.tid.x] + float(A)

    targets = [rng.standard_normal(32, np.float32) for _ in range(3)]
    before = [target.copy() for target in targets]
    autotune(CONFIGS)(k)[3].tune(targets)
    np.testing.assert_array_equal(targets, before)


def test_a_variable_of_the_module(rng: np.random.Generator) -> None:
    @ptx_kernel
    def tickets(out: Ptr[u32], *, A: int) -> None:
        out[0] = ptx.atom.global_.add.u32(global_(u32, 1), A)

    out = np.zeros(1, np.uint32)
    tuned = autotune([Config(block=1, A=1), Config(block=1, A=2)])(tickets)
    for wanted in range(4):
        tuned[1](out)
        assert out[0] == wanted * tuned.tuning()[0].best.A


def test_a_surface(rng: np.random.Generator) -> None:
    @ptx_kernel
    def k(image: Surface, *, A: int) -> None:
        place = ptx.tid.x.bits(ptxdsl.s32) * 4
        ptx["sust.b.1d.b32.trap"]((image, [place]), reg(u32, A))

    image = rng.integers(0, 99, 32, np.uint32)
    before = image.copy()
    autotune(CONFIGS)(k)[1].tune(Surface(image))
    np.testing.assert_array_equal(image, before)


def test_what_was_never_written_stays_so(rng: np.random.Generator) -> None:
    @ptx_kernel
    def k(x: Ptr[f32], *, A: int) -> None:
        x[ptx.tid.x] = float(A)

    @ptx_kernel
    def reads(x: Ptr[f32], y: Ptr[f32]) -> None:
        y[ptx.tid.x] = x[ptx.tid.x]

    x, y = ptxdsl.empty(32, np.float32), ptxdsl.zeros(32, np.float32)
    autotune(CONFIGS)(k)[1].tune(x)
    with pytest.raises(ptxdsl.UninitializedError):
        reads.configure(1, 32, sanitize="init")(x, y)
    autotune(CONFIGS)(k)[1](x)
    reads.configure(1, 32, sanitize="init")(x, y)
    assert (y.numpy() == 1).all()


def test_a_tensor_map(rng: np.random.Generator) -> None:
    from ptxdsl import shared

    @ptx_kernel(arch="sm_90")
    def k(target: ptxdsl.TensorMap, *, A: int) -> None:
        tile = shared(f32, 32, align=128)
        tile[ptx.tid.x] = float(A)
        ptx.fence.proxy.async_.shared__cta()
        ptx.bar.sync(0)
        with ptxdsl.when(ptx.tid.x == 0):
            ptx["cp.async.bulk.tensor.1d.global.shared::cta.bulk_group"]((target, [reg(ptxdsl.s32, 0)]), tile)
            ptx.cp.async_.bulk.commit_group()
            ptx.cp.async_.bulk.wait_group(0)

    array = ptxdsl.to_device(rng.standard_normal(32, np.float32))
    before = array.numpy()
    tuned = autotune(CONFIGS)(k)
    made = ptxdsl.tensor_map(array, (32,))
    tuned[1].tune(made)
    np.testing.assert_array_equal(array.numpy(), before)
    tuned[1](made)
    assert (array.numpy() == 1).all()


def test_arrays_with_a_direction(rng: np.random.Generator) -> None:
    @ptx_kernel
    def k(x: Ptr[f32], y: Ptr[f32], z: Ptr[f32], *, A: int) -> None:
        x[ptx.tid.x] = x[ptx.tid.x] + float(A)
        y[ptx.tid.x] = x[ptx.tid.x]
        z[ptx.tid.x] = z[ptx.tid.x] + y[ptx.tid.x]

    x, y, z = rng.standard_normal((3, 32), np.float32)
    before = x.copy(), y.copy(), z.copy()
    tuned = autotune(CONFIGS, ["x", "y"])(k)
    tuned[1].tune(In(x), Out(y), InOut(z))
    np.testing.assert_array_equal((x, y, z), before)
    assert tuned.tuning()[0].key == {"x": ((32,), "float32"), "y": ((32,), "float32")}
    tuned[1](In(x), Out(y), InOut(z))
    np.testing.assert_array_equal((x, y, z), (before[0], before[0] + 1, before[2] + (before[0] + 1)))


@pytest.mark.parametrize("how", ["interrupt", "fault"])
def test_a_trial_that_breaks_off(rng: np.random.Generator, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.tuning.measures import EmulatorMeasure

    @ptx_kernel
    def k(x: Ptr[f32], *, A: int) -> None:
        x[ptx.tid.x] = x[ptx.tid.x] + float(A)

    trial = EmulatorMeasure.trial

    def broken(self: EmulatorMeasure, which: Config, run: Callable[[], object], memory: Any) -> Any:
        trial(self, which, run, memory)
        raise KeyboardInterrupt if how == "interrupt" else ptxdsl.EmulationError("broken")

    monkeypatch.setattr(EmulatorMeasure, "trial", broken)
    x = rng.standard_normal(32, np.float32)
    before = x.copy()
    with pytest.raises((KeyboardInterrupt, ptxdsl.EmulationError)):
        autotune(CONFIGS)(k)[1](x)
    np.testing.assert_array_equal(x, before)
