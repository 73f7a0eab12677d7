"""The module that says in which chapters an opcode has rows, so that the others are not read for it."""

from __future__ import annotations

from ..table import chapter, chapters

__all__ = ["chapters_by_opcode", "source"]


def chapters_by_opcode() -> dict[str, tuple[str, ...]]:
    """The opcodes as the chapters have them now."""
    found: dict[str, tuple[str, ...]] = {}
    for name in chapters():
        for opcode in chapter(name).opcodes:
            found[opcode] = (*found.get(opcode, ()), name)
    return found


def source() -> str:
    """The text of ``opcode_chapters.py``."""
    lines = [f"    {opcode!r}: {names},\n" for opcode, names in chapters_by_opcode().items()]
    return _HEAD + "".join(lines).replace("'", '"') + "}\n"


_HEAD = '''"""In which chapters each opcode has rows. Written by ``python -m ptxdsl.isa``; tests/isa compares it."""

from __future__ import annotations

__all__ = ["CHAPTERS"]

CHAPTERS: dict[str, tuple[str, ...]] = {
'''
