"""What a notebook shows, and the report: well-formed HTML that needs nothing else, with everything escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Array, DeviceArray, EmulationError, Kernel, Ptr, RaceError, f16, f32, load, loop, profile, ptx, ptx_kernel, shared,
    to_device, u32, use, when, zeros,
)
from ptxdsl.errors import LaunchError
from ptxdsl.gpu import cubin, tools
from ptxdsl.gpu.tools import NoAssembler

pytestmark = pytest.mark.emulator
RNG = np.random.default_rng()


class Html(HTMLParser):
    """Checks that every element is closed and nothing is loaded; collects texts, lines and drawn bars."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.lines: list[str] = []
        self.widths: dict[str, list[float]] = {}
        self.feed(text)
        self.close()
        assert self.open == []
        assert not re.search(r"https?:|url\(|@import|fetch\(", text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        found = dict(attrs)
        assert not {"src", "href", "onclick"} & found.keys()
        if "data-at" in found:
            self.lines.append(found["data-at"] or "")
        if tag == "rect" and found["class"] != "back":
            self.widths.setdefault(found["class"] or "", []).append(float(found["width"] or 0))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@ptx_kernel
def strided(n: u32, x: Ptr[f32], y: Ptr[f32], *, pad: int = 0) -> None:
    """A copy down the columns, <b>not</b> & never bold."""
    tile = shared(f32, 32, 32 + pad)
    column, row = ptx.tid.x, ptx.tid.y
    with loop(0, 32, 8) as k:
        tile[row + k, column] = x[(row + k) * n + column]
    ptx.bar.sync(0)
    with loop(0, 32, 8) as k:
        with when(column < n):
            y[column * 32 + row + k] = tile[column, row + k]


def arrays() -> tuple[int, np.ndarray, np.ndarray]:
    return 32, RNG.random((32, 32), np.float32), np.full((32, 32), np.nan, np.float32)


def texts_in(found: Html, pattern: str) -> list[str]:
    return [text for text in found.texts if re.fullmatch(pattern, text)]


@pytest.mark.ptxas
def test_a_kernel_shows_python_ptx_and_sass() -> None:
    found = Html(strided._repr_html_() or "")
    assert [text for text in found.texts if text in ("Python", "PTX", "SASS")] == ["Python", "PTX", "SASS"]
    line = next(at for at in found.lines if at.endswith(f":{_line('tile[column, row + k]')}"))
    assert found.lines.count(line) > 3  # one of Python, several of PTX and SASS
    assert texts_in(found, r"    (st|LD)\S+ .*") and texts_in(found, r"    (@\S+ )?LDS\S* .*")
    assert "share" not in found.texts


def _line(part: str) -> int:
    source = Path(__file__).read_text("utf-8").splitlines()
    return next(number for number, line in enumerate(source, 1) if part in line)


def test_a_kernel_without_nvidias_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cubin, "find_tool", lambda tool: [])
    found = Html(strided.report(pad=3)._repr_html_())
    if any("registers a thread" in text for text in found.texts):
        assert "Without SASS: no nvdisasm, NVIDIA's disassembler, was found" in found.texts

    def none(*_: object) -> Any:
        raise NoAssembler("no ptxas, NVIDIA's assembler, was found")

    monkeypatch.setattr(tools, "find_assembler", none)
    monkeypatch.setattr("ptxdsl.kernel.compiled_kernel.CompiledKernel.assembled", none)
    found = Html(strided.report(pad=5)._repr_html_())
    assert "Without machine code: no ptxas, NVIDIA's assembler, was found" in found.texts
    assert [text for text in found.texts if text in ("Python", "PTX", "SASS")] == ["Python", "PTX"]


def test_a_kernel_that_cannot_be_traced_shows_its_repr() -> None:
    @ptx_kernel
    def needs(x: Ptr[f32], *, size: int) -> None:
        x[0] = float(size)

    @ptx_kernel
    def fails(x: Ptr[f32]) -> None:
        x[{}["missing"]] = 0.0

    assert needs._repr_html_() is None and fails._repr_html_() is None
    assert repr(needs) == "<ptx_kernel needs(x: Ptr[f32])>"


def test_foreign_ptx() -> None:
    entry = load(strided.ptx())["strided"]
    found = Html(entry._repr_html_() or "")
    assert "PTX" in found.texts and any("st.shared.f32" in text for text in found.texts)


def test_a_report_without_its_path() -> None:
    with pytest.raises(LaunchError) as caught:
        strided[1, (32, 8)].report(*arrays())
    assert (caught.value.message, caught.value.hint) == (
        "the path of a report is a str, a Path or None, and int came",
        'before the arguments of the launch: `k[grid, block].report("report.html", ...)`',
    )
    assert "report(*arrays())" in str(caught.value)


@pytest.mark.ptxas
def test_the_report(tmp_path: Path) -> None:
    given = arrays()
    report = strided[1, (32, 8)].report(tmp_path / "report.html", *given)
    assert repr(report) == "<report on strided>"
    assert np.array_equal(given[2], given[1])
    text = (tmp_path / "report.html").read_text("utf-8")
    assert text.startswith("<!doctype html>")
    found = Html(text)
    assert "&lt;b&gt;not" in text and "<b>not" not in text
    with use("emulator"), profile() as p:
        strided[1, (32, 8)](*given)
    store = next(line for line in p.lines if "tile[column, row + k]" in line.source)
    assert f"{100 * store.share:.1f} %" in found.texts
    sectors, ways = store.counters.global_sectors, store.counters.conflict_ways
    assert (sectors, ways) == (1024, 32.0)
    assert "1,024 sectors, 32.0 a request, 12 % of their bytes used" in found.texts
    assert "1,024 wavefronts, 32.0 for each that is needed" in found.texts
    assert "128 sectors, 4.0 a request, 100 % of their bytes used" in found.texts
    # The longest bar of a picture is 260 wide: an eighth of these sectors was asked for, a 32nd of the wavefronts.
    assert 32.5 in found.widths["good"] and 227.5 in found.widths["bad"] and 251.9 in found.widths["bad"]
    assert texts_in(found, r"\d+ of 255") and "4,096 of 49,152 bytes" in found.texts
    assert texts_in(found, r"32 of 32 warps, limited by threads.*")


def test_a_report_of_a_padded_tile_has_no_conflict() -> None:
    found = Html(strided[1, (32, 8)].report(None, *arrays(), pad=1)._repr_html_())
    notes = [text for text in found.texts if "wavefronts, " in text]
    assert notes == ["32 wavefronts, 1.0 for each that is needed"] * 2


def test_a_profile() -> None:
    with use("emulator"), profile() as p:
        strided[1, (32, 8)](*arrays())
    found = Html(p._repr_html_())
    assert "strided" in found.texts and texts_in(found, r"\d+\.\d %")
    assert "nothing was launched" in Html(profile()._repr_html_()).texts


def test_findings() -> None:
    @ptx_kernel
    def reverse(x: Ptr[f32]) -> None:
        tile, i = shared(f32, 64), ptx.tid.x
        tile[i] = x[i]
        x[i] = tile[63 - i]  # <&>

    with pytest.raises(RaceError) as caught:
        reverse.configure(1, 64, backend="emulator", sanitize="all")(np.ones(64, np.float32))
    found = Html(caught.value._repr_html_())
    assert "RaceError" in found.texts and "race" in found.texts and "earlier" in found.texts
    assert "put a barrier between the two: `ptx.bar.sync(0)`" in found.texts
    assert any(text.endswith("x[i] = tile[63 - i]  # <&>") for text in found.texts)
    assert "<i>" in Html(EmulationError("<i>")._repr_html_()).texts


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (40, 50), (2, 3, 4), (0, 3), (0, 3, 4), (5, 0, 2, 2)], ids=str)
def test_arrays(shape: tuple[int, ...]) -> None:
    values = RNG.integers(100, 1000, shape).astype(np.float16)
    array = to_device(values, backend="emulator")
    found = Html(array._repr_html_())
    assert str(shape) in found.texts and "float16" in found.texts and f"{values.nbytes:,} bytes" in found.texts
    shown = " ".join(found.texts)
    assert not values.size or f"{values.flat[0]:.0f}." in shown
    assert any("emulator" in text for text in found.texts)


def test_parts_of_arrays() -> None:
    found = Html(zeros((4, 6), f16, backend="emulator")[:, ::2]._repr_html_())
    assert "strides" in found.texts and "(12, 4)" in found.texts


@pytest.mark.ptxas
def test_forecasts() -> None:
    forecast = strided[1, (32, 8)].forecast(*arrays())
    found = Html(forecast._repr_html_())
    assert any(text.startswith("strided[1, 32x8]: ") and text.endswith(", on h200") for text in found.texts)
    assert len(found.widths["bad"]) == 1 and max(found.widths["bad"] + found.widths["good"]) == 260.0
    Html(ptxdsl.forecast("h200")._repr_html_())


def test_every_display_is_found_by_name() -> None:
    for kind in (Kernel, DeviceArray, ptxdsl.profile, ptxdsl.forecast, EmulationError):
        assert callable(kind._repr_html_)


@ptx_kernel
def row_of(a: Array[f32, 2], y: Ptr[f32]) -> None:
    y[ptx.tid.x] = helper(a, ptx.tid.x)


def helper(a: Any, i: Any) -> Any:
    return a[0, i] * 2.0


def test_helpers_are_shown_too() -> None:
    found = Html(row_of[1, 4].report(None, np.ones((1, 4), np.float32), np.ones(4, np.float32))._repr_html_())
    assert "    return a[0, i] * 2.0" in found.texts
