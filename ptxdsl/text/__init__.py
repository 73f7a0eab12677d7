"""PTX text, both ways: `to_text` prints a module, `parse` reads one.

The text is the contract between tracing and running: whatever a kernel means stands in it, its Python lines included,
so ``parse(to_text(m)) == m`` for every module that verifies. What the text does not keep is said in `parser`.
"""

from __future__ import annotations

from .parser import parse
from .printer import to_text

__all__ = ["parse", "to_text"]
