"""``python -m ptxdsl.isa [folder]`` writes what is derived from the table: the stub of ``ptx``, pages, an index."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .generate import opcode_chapters, pages, stubs
from .opcode_chapters import CHAPTERS

__all__ = ["derived", "main"]


def derived(root: Path) -> dict[Path, str]:
    """What each derived file of a repository holds."""
    CHAPTERS.update(opcode_chapters.chapters_by_opcode())  # which may be more than when they were last written
    found = {root / "ptxdsl" / "isa" / "opcode_chapters.py": opcode_chapters.source()}
    found[root / "ptxdsl" / "language" / "namespace" / "ptx.pyi"] = stubs.stub()
    found.update({root / "docs" / "isa" / name: text for name, text in pages.pages().items()})
    readme = root / "ptxdsl" / "isa" / "README.md"
    found[readme] = re.sub(r"^\d+ opcodes in .*$", pages.summary(), readme.read_text("utf-8"), flags=re.MULTILINE)
    return found


def main(arguments: list[str]) -> int:
    """Write the derived files that are not up to date, and name them."""
    root = Path(arguments[0]) if arguments else Path(__file__).parent.parent.parent
    for path, text in derived(root).items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(path.relative_to(root))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
