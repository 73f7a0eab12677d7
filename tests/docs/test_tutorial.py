"""The tutorial's pages run from top to bottom, each in a namespace of its own, as the build of the site runs them."""

from __future__ import annotations

import linecache
import re
from itertools import pairwise
from pathlib import Path

import pytest

from ptxdsl import PtxError, use

PAGES = sorted((Path(__file__).parent.parent.parent / "docs" / "tutorial").glob("[0-9]*.md"))
CELL = re.compile(r"^```\{code-cell\} python3\n(:tags: \[raises-exception\]\n\n)?(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text("utf-8")
    cells = CELL.findall(text)
    assert len(cells) == text.count("{code-cell}") >= 1
    names: dict[str, object] = {}
    monkeypatch.setattr("builtins.print", lambda *_, **__: None)
    with use("emulator"):
        for number, (raises, source) in enumerate(cells):
            if "IPython" in source:
                continue
            file = f"<cell {page.stem} {number}>"
            linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
            code = compile(source, file, "exec")
            if raises:
                with pytest.raises(PtxError):
                    exec(code, names)
            else:
                exec(code, names)


def test_the_pages_are_numbered_and_linked() -> None:
    assert [int(page.stem[:2]) for page in PAGES] == list(range(1, len(PAGES) + 1)) and len(PAGES) >= 10
    for page, following in pairwise(PAGES):
        assert f"]({following.name})" in page.read_text("utf-8")
