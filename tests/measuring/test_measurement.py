"""What a measurement says of its times, beside numpy; ratios, tables and plots."""

from __future__ import annotations

import builtins
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxdsl.bench import Measurement, Measurements, Ratio
from ptxdsl.errors import PtxError


def test_statistics(rng: np.random.Generator) -> None:
    for count in (1, 2, 3, 10, 101):
        times = rng.lognormal(-10, 1, count)
        found = Measurement(tuple(times))
        assert found.median == pytest.approx(np.median(times))
        assert (found.low, found.high) == pytest.approx(tuple(np.percentile(times, [25, 75])))
        assert found.spread == pytest.approx((found.high - found.low) / found.median)
        assert (found.best, found.mean, found.n) == (times.min(), pytest.approx(times.mean()), count)


def test_rates_that_nobody_gave() -> None:
    found = Measurement((1e-3,))
    assert found.bytes_per_second is None
    assert found.flops_per_second is None


@pytest.mark.parametrize(("found", "text"), [
    (Measurement((1.5e-3,)), "<run: 1.50 ms (1.50 to 1.50), n = 1, wall time>"),
    (Measurement((1e-6, 2e-6), "k", "GPU events, cold L2", "H100", 3e6, 6e9, 4096),
     "<k at 4096: 1.50 µs (1.25 to 1.75), n = 2, 2.00 TB/s, 4.00 Pflop/s, GPU events, cold L2 on H100>"),
    (Measurement((999.96e-9,)), "<run: 1.00 µs (1.00 to 1.00), n = 1, wall time>"),
    (Measurement((0.0,), nbytes=1.0), "<run: 0.00 ns (0.00 to 0.00), n = 1, inf PB/s, wall time>"),
    (Measurement((123.4,)), "<run: 123 s (123 to 123), n = 1, wall time>"),
])
def test_repr(found: Measurement, text: str) -> None:
    assert repr(found) == text


def test_the_interval_of_a_ratio_holds_the_true_one(rng: np.random.Generator) -> None:
    held = 0
    for _ in range(40):
        a, b = (Measurement(tuple(scale * rng.lognormal(0, 0.2, 60))) for scale in (3.0, 2.0))
        ratio = a / b
        assert ratio.low <= float(ratio) <= ratio.high
        assert (a / b, (a / b).low, (a / b).high) == (ratio, ratio.low, ratio.high)
        held += ratio.low <= 1.5 <= ratio.high
    assert held >= 30  # of 95 % a share below 75 % is less likely than 1 in 100,000


def test_a_ratio_is_a_number() -> None:
    ratio = Measurement((4.0,)) / Measurement((2.0,))
    assert ratio == 2.0
    assert repr(ratio) == "2 (2 to 2)"
    kept = pickle.loads(pickle.dumps(Ratio(1.5, 1.25, 1.75)))
    assert (kept, kept.low, kept.high) == (1.5, 1.25, 1.75)


def test_times_that_do_not_compare() -> None:
    a, b = Measurement((1.0,), "a", where="emulator"), Measurement((1.0,), "b", "GPU events, cold L2", "H100")
    with pytest.raises(PtxError) as error:
        a / b
    assert str(error.value).splitlines()[0] == (
        "these times do not compare: `a` is wall time on emulator, `b` is GPU events, cold L2 on H100"
    )
    assert error.value.hint == "measure both in the same place with the same options"
    with pytest.raises(TypeError):
        a / 2  # type: ignore[operator]


def test_table() -> None:
    found = Measurements([
        Measurement((2e-6, 2e-6), "ours", where="emulator", nbytes=4e6),
        Measurement((3e-6, 5e-6), "theirs", where="emulator"),
    ])
    assert repr(found) == """\
         median          quartiles  n  of ours        B/s
ours    2.00 µs  2.00 µs - 2.00 µs  2     1.00  2.00 TB/s
theirs  4.00 µs  3.50 µs - 4.50 µs  2     2.00
wall time on emulator"""
    assert found.bars(8) == "ours    ####      2.00 µs\ntheirs  ########  4.00 µs"
    assert found["theirs"] is found[1]
    assert repr(Measurements([])) == "no measurements"


def test_a_table_of_different_places_and_sizes() -> None:
    found = Measurements([Measurement((1e-3,), "k", where="emulator", at=10), Measurement((2e-3,), "k", "GPU", "H100")])
    assert repr(found) == """\
   at   median          quartiles  n                     by
k  10  1.00 ms  1.00 ms - 1.00 ms  1  wall time on emulator
k      2.00 ms  2.00 ms - 2.00 ms  1            GPU on H100"""


SOME = Measurements([Measurement((1e-3, 2e-3), "a"), Measurement((3e-3, 9e-3), "b")])
SIZED = Measurements([Measurement((n * 1e-6, n * 2e-6), name, at=n) for name in "ab" for n in (100, 1000, 10)])


@pytest.mark.parametrize("found", [SOME, SIZED])
def test_plot(found: Measurements, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found.plot(tmp_path / "a.svg")
    found.plot(tmp_path / "a.png")
    assert "<svg" in (tmp_path / "a.svg").read_text("utf-8")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_plotted(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(PtxError, match="^there is no measurement to plot"):
        Measurements([]).plot(tmp_path / "a.svg")
    with pytest.raises(PtxError, match="^matplotlib says: Format 'abc' is not supported"):
        SOME.plot(tmp_path / "a.abc")


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(PtxError) as error:
        SOME.plot(tmp_path / "a.svg")
    assert error.value.message == "a plot is drawn by matplotlib, which is not installed"
    assert error.value.hint == "pip install matplotlib; `bars()` draws with text"
