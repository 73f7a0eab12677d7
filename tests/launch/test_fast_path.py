"""The fast path of a launch on the emulator: taken again only while nothing that a launch depends on has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxdsl import Ptr, ptx, ptx_kernel, u32, use
from ptxdsl.config import override
from ptxdsl.errors import EmulationError, LaunchError
from ptxdsl.kernel.run import EmulatorRun

STEP = 1


@ptx_kernel
def add(x: Ptr[u32], n: u32, *, twice: bool = False) -> None:
    i = ptx.tid.x
    x[i] = x[i] + n * STEP * (2 if twice else 1)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """How many launches took the fast path."""
    counts = [0]
    original = EmulatorRun.fast_path

    def counted(self: EmulatorRun, *args: Any) -> Any:
        launch = original(self, *args)

        def again(given: Any) -> bool:
            done = launch is not None and launch(given)
            counts[0] += done
            return done

        return again if launch is not None else None

    monkeypatch.setattr(EmulatorRun, "fast_path", counted)
    with use("emulator"):
        yield counts


def test_it_is_taken_and_computes_the_same(taken: list[int]) -> None:
    launch, x = add.configure(1, 32), np.zeros(32, np.uint32)
    for n in range(5):
        launch(x, n)
    assert taken == [4]
    assert x.tolist() == [10] * 32
    other = np.zeros(40, np.uint32)[4:]
    launch(other, 7)
    assert taken == [5]
    assert other.tolist() == [7] * 32 + [0] * 4


def test_constants_have_paths_of_their_own(taken: list[int]) -> None:
    launch, x = add.configure(1, 1), np.zeros(1, np.uint32)
    for twice in (False, True, False, True):
        launch(x, 1, twice=twice)
    assert taken == [2]
    assert x.tolist() == [6]


def test_bad_arguments_are_refused_on_it(taken: list[int]) -> None:
    launch, x = add.configure(1, 32), np.zeros(32, np.uint32)
    launch(x, 1)
    for args, message in (
        ((x, -1), "argument `n` of kernel `add` is the int -1; u32 wants an int from 0 to 4294967295"),
        ((x[::2], 1), "wants contiguous memory"),
        ((x.astype(np.float32), 1), "Ptr\\[u32\\] wants uint32"),
        ((np.broadcast_to(x, 32), 1), "the kernel writes to it"),
        ((x,), "1 came: `n` missing"),
    ):
        with pytest.raises(LaunchError, match=message):
            launch(*args)
    with pytest.raises(EmulationError):
        launch(x[:8], 1)


def test_it_ends_where_the_settings_change(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    launch, x = add.configure(1, 1), np.zeros(1, np.uint32)
    launch(x, 1)
    with override(sanitize="init"):
        launch(x, 1)
        assert taken == [0]
        launch(x, 1)
        assert taken == [1]
    launch(x, 1)
    assert taken == [1]
    monkeypatch.setenv("PTXDSL_SEED", "3")
    launch(x, 1)
    assert taken == [1]
    assert x.tolist() == [5]


def test_it_ends_with_a_retrace(taken: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    launch, x = add.configure(1, 1), np.zeros(1, np.uint32)
    launch(x, 1)
    monkeypatch.setitem(globals(), "STEP", 10)
    add.retrace()
    launch(x, 1)
    assert taken == [0]
    assert x.tolist() == [11]
    monkeypatch.undo()
    add.retrace()


def test_every_launch_is_reported(taken: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    launch, x = add.configure(1, 1), np.zeros(1, np.uint32)
    with override(log="debug"):
        for _ in range(3):
            launch(x, 1)
    assert taken == [0]
    assert capsys.readouterr().err.count("launch add") == 3


def test_a_launch_within_a_trace_is_refused(taken: list[int]) -> None:
    launch, x = add.configure(1, 1), np.zeros(1, np.uint32)
    launch(x, 1)

    @ptx_kernel
    def outer(y: Ptr[u32]) -> None:
        launch(x, 1)
        y[0] = 1

    with pytest.raises(LaunchError, match="is launched while another is traced"):
        outer.ptx()
    assert taken == [0]
    assert x.tolist() == [1]
