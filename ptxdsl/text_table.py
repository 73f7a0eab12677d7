"""Tables of text, as reports print them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["bar", "table"]


def table(header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    """Columns of text, the first to the left and the others to the right.

    >>> print(table(("what", "ms"), [("saxpy", "1.2"), ("sum", "10.0")]))
    what     ms
    saxpy   1.2
    sum    10.0
    """
    lines = [header, *rows]
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join([str(line[0]).ljust(widths[0]), *(str(cell).rjust(w) for cell, w in zip(line[1:], widths[1:]))])
        for line in lines
    )


def bar(share: float, width: int = 20) -> str:
    """A bar of text, ``width`` letters long for a share of 1.

    >>> bar(0.5, 8)
    '####    '
    """
    return ("#" * round(min(max(share, 0.0), 1.0) * width)).ljust(width)
