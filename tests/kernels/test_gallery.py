"""The galleries in docs follow from the code: `python tests/bench/gallery.py` writes them."""

from __future__ import annotations

import re
import zlib
from pathlib import Path

import gallery
import pytest

from ptxdsl.kernels.check import LIBRARY
from ptxdsl.kernels.check.facts import FACTS

PAGE = gallery.PAGE.read_text("utf-8")
ARCH = "sm_90a"
MADE_AGAIN = ("optim.sgd", "elementwise.where", "rope.rope")
"""Functions of one kernel each, which are assembled here in seconds."""


def rows(domain: str) -> dict[str, list[str]]:
    """The rows of a domain's tables by their first cells."""
    text = PAGE.partition(f"\n## {domain}\n")[2].partition("\n## ")[0]
    found = [line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return {cells[0]: cells for cells in found}


def test_every_function_has_its_facts_in_the_order_of_the_library() -> None:
    assert list(FACTS) == list(LIBRARY)


@pytest.mark.parametrize("name", LIBRARY)
def test_every_function_has_a_row(name: str) -> None:
    domain, _, function = name.partition(".")
    _, computes, error, bound, size, time, binding = rows(domain)[f"`{function}`"]
    facts = FACTS[name]
    assert computes == f"`{facts.formula}`<br>`{facts.arrays}`" and size == facts.size
    assert float(error) <= float(bound) and time.endswith(" µs") and binding
    for kernel in LIBRARY[name].kernels():
        target = gallery.target_of(LIBRARY[name], ARCH)
        assert f"`{kernel.entry}`{'' if target == ARCH else f', {target}'}" in rows(domain)


@pytest.mark.ptxas
@pytest.mark.parametrize("name", MADE_AGAIN)
def test_what_the_kernels_take_is_up_to_date(name: str) -> None:
    made_by, here = re.findall(r"ptxas [\d.]+\d", PAGE)[0], gallery.assembler(ARCH)
    if made_by != here:
        pytest.skip(f"the page was made with {made_by}, and here is {here}, whose registers may differ")
    found = rows(name.partition(".")[0])
    for kernel in LIBRARY[name].kernels():
        cells = gallery.kernel_cells(kernel, LIBRARY[name], ARCH)
        assert found[cells[0]] == list(cells), "make the page again: python tests/bench/gallery.py"


def test_checks_and_forecasts_give_the_same_again() -> None:
    cells = gallery.function_cells("norm.softmax", LIBRARY["norm.softmax"], FACTS["norm.softmax"])
    assert rows("norm")["`softmax`"] == list(cells)


def test_a_wrong_result_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptxdsl.bench.checks.error_of", lambda result, expected: 0.5)
    with pytest.raises(SystemExit, match=r"norm.softmax: error 0.5 > 1e-06"):
        gallery.function_cells("norm.softmax", LIBRARY["norm.softmax"], FACTS["norm.softmax"])


def test_texts_of_numbers() -> None:
    assert [gallery.rounded_up(error) for error in (0.0, 1.0, 1.23e-7, 9.9e-7)] == ["0", "1", "2e-07", "1e-06"]
    assert [gallery.time_text(t) for t in (2e-6, 9.96e-6, 2.68e-5, 1.24e-3)] == ["2.0 µs", "10 µs", "27 µs", "1200 µs"]


def test_the_page_of_the_examples_is_up_to_date() -> None:
    assert gallery.EXAMPLES.read_text("utf-8") == gallery.examples_page()


def pixels(path: Path) -> bytes:
    """The lines of a PNG whose data are in one chunk."""
    return zlib.decompress(path.read_bytes().partition(b"IDAT")[2].rpartition(b"IEND")[0][:-8])


def test_the_picture_is_up_to_date(tmp_path: Path) -> None:
    gallery.write_picture(tmp_path / "again.png")
    assert pixels(tmp_path / "again.png") == pixels(gallery.PICTURE)
