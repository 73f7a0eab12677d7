"""`do_bench` on the host's clock: what is timed, how often, and what of it comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxdsl import Ptr, f32, ptx, ptx_kernel, use
from ptxdsl.bench import do_bench, side_by_side, timing
from ptxdsl.errors import LaunchError


class Clock:
    """A clock that only what is measured moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[str] = []

    def __call__(self) -> float:
        return self.now

    def takes(self, name: str, seconds: Callable[[], float]) -> Callable[[], None]:
        def run() -> None:
            self.calls.append(name)
            self.now += seconds()

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setitem(timing._CLOCKS, "wall", found)
    return found


@pytest.fixture(autouse=True)
def _emulated(emulated: None) -> None:
    """All of this is measured on the host's clock."""


def test_each_run_is_timed(clock: Clock, rng: np.random.Generator) -> None:
    taken = [1e9, *rng.uniform(1e-6, 1e-3, 11)]  # the first run compiles, and does not count
    pending = iter(taken)
    found = do_bench(clock.takes("run", lambda: next(pending)), runs=11, name="k", nbytes=1e6, flops=2e6)
    assert found.times == pytest.approx(taken[1:], rel=1e-3, abs=1e-6)
    assert (found.n, found.name, found.clock, found.where) == (11, "k", "wall time", "emulator")
    assert found.bytes_per_second == 1e6 / found.median
    assert found.flops_per_second == 2e6 / found.median


def test_reset_is_called_before_each_run_and_not_timed(clock: Clock) -> None:
    found = do_bench(clock.takes("run", lambda: 2.0), runs=3, reset=clock.takes("reset", lambda: 77.0))
    assert found.times == (2.0, 2.0, 2.0)
    assert clock.calls == ["reset", "run"] * 4


@pytest.mark.parametrize(("each", "runs"), [(1.0, 5), (0.05, 5), (0.001, 200), (1e-6, 1000)])
def test_how_often_it_runs(clock: Clock, each: float, runs: int) -> None:
    assert do_bench(clock.takes("run", lambda: each), seconds=0.2).n == runs


def test_it_waits_until_times_get_no_shorter(clock: Clock) -> None:
    """As where the emulator compiles a kernel beside its launches."""
    found = do_bench(clock.takes("run", lambda: 1e-3 if len(clock.calls) > 200 else 5e-3), seconds=1.0)
    assert set(np.round(found.times, 9)) == {1e-3}


def test_what_gets_shorter_for_ever_comes_to_an_end(clock: Clock) -> None:
    assert do_bench(clock.takes("run", lambda: 10.0 / len(clock.calls)), seconds=1.0).n >= 5


def test_functions_in_turn(clock: Clock) -> None:
    found = side_by_side(
        {"a": clock.takes("a", lambda: 1.0), "b": clock.takes("b", lambda: 3.0)}, runs=12, nbytes=6.0
    )
    assert [(each.name, each.times) for each in found] == [("a", (1.0,) * 12), ("b", (3.0,) * 12)]
    assert {each.nbytes for each in found} == {6.0}
    assert clock.calls[2:] == (["a"] * 2 + ["b"] * 2) * 2 + ["a"] * 3 + ["b"] * 3 + ["a"] * 2 + ["b"] * 2 + [
        "a"] * 3 + ["b"] * 3
    assert float(found["b"] / found["a"]) == 3.0


def test_functions_in_turn_without_a_number_of_runs(clock: Clock) -> None:
    found = side_by_side({"a": clock.takes("a", lambda: 0.01), "b": clock.takes("b", lambda: 0.02)}, seconds=0.2)
    assert [each.n for each in found] == [20, 10]


def test_few_runs_of_several_functions(clock: Clock) -> None:
    found = side_by_side({"a": clock.takes("a", lambda: 1.0), "b": clock.takes("b", lambda: 3.0)}, runs=2)
    assert [each.n for each in found] == [2, 2]


def test_a_kernel() -> None:
    @ptx_kernel
    def add_one(x: Ptr[f32]) -> None:
        x[ptx.tid.x] = x[ptx.tid.x] + 1.0

    x = np.zeros(32, np.float32)
    found = do_bench(lambda: add_one[1, 32](x), runs=4)
    assert (x == 5).all()  # once to compile
    assert len(found.times) == 4
    assert min(found.times) > 0


def test_cpu_time() -> None:
    found = do_bench(lambda: sum(range(1000)), runs=3, clock="cpu")
    assert found.clock == "CPU time"
    assert found.name == "run"


def test_an_error_is_passed_on() -> None:
    def wrong() -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        do_bench(wrong)


@pytest.mark.parametrize(("options", "message", "hint"), [
    ({"runs": 0}, "runs is an int from 1 on, not 0", None),
    ({"runs": True}, "runs is an int from 1 on, not True", None),
    ({"runs": 2.5}, "runs is an int from 1 on, not 2.5", None),
    ({"seconds": 0}, "seconds is how long to measure, above 0, not 0", None),
    ({"seconds": float("nan")}, "seconds is how long to measure, above 0, not nan", None),
    ({"clock": "walll"}, "clock is 'wall' or 'cpu', not 'walll'", "did you mean `clock='wall'`?"),
])
def test_wrong_options(options: dict[str, object], message: str, hint: str | None) -> None:
    with use("emulator"), pytest.raises(LaunchError) as error:
        do_bench(lambda: None, **options)  # type: ignore[arg-type]
    assert (error.value.message, error.value.hint) == (message, hint)
    assert error.value.loc is not None
    assert error.value.loc.file == __file__
