"""What the documentation site is made of: every public name has a place among the pages of the API."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import ptxdsl

DOCS = Path(__file__).parent.parent.parent / "docs"


def api_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("api_pages", DOCS / "api_pages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_one_place() -> None:
    pages = api_pages().pages()
    text = "\n".join(pages.values())
    documented = re.findall(r"^\.\. auto(?:class|function|data|module):: ptxdsl\.(\w+)$", text, re.MULTILINE)
    documented += re.findall(r"^\| `(\w+)` \|", pages["types"], re.MULTILINE)
    assert len(documented) > 150
    assert sorted(set(documented)) == sorted(documented)
    assert sorted({*ptxdsl.__all__, *ptxdsl._SUBMODULES} - {"__version__", "kernels"}) == sorted(documented)
    library = re.findall(r"^\.\. automodule:: ptxdsl\.kernels\.(\w+)$", text, re.MULTILINE)
    assert library == list(ptxdsl.kernels.__all__)


def test_every_page_is_in_a_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    listed = set(re.findall(r"^[\w./-]+$", index, re.MULTILINE))
    for path in (*DOCS.glob("*.md"), *DOCS.glob("howto/*.md")):
        assert path.relative_to(DOCS).with_suffix("").as_posix() in listed | {"index"}, path.name
