"""PTX text, both ways: `to_text` prints a module, `parse` reads one.

The text is the contract between tracing and running: it has all of a kernel, its Python lines included,
so ``parse(to_text(m)) == m`` for every module that verifies. What the text does not keep is said in `parser`, which is
loaded when something is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .printer import to_text

if TYPE_CHECKING:
    from .parser import parse

__all__ = ["parse", "to_text"]


def __getattr__(name: str) -> Any:
    if name == "parse":
        from .parser import parse

        return parse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
