"""A ``repr`` like that of dataclasses, without a function that is compiled for each class at import.

Every script that uses ptxdsl pays for its import, and few ever print a statement.
"""

from __future__ import annotations

__all__ = ["LazyRepr"]


class LazyRepr:
    """The base of a dataclass made with ``repr=False``: its fields by name, as without that.

    >>> from dataclasses import dataclass
    >>> @dataclass(repr=False)
    ... class Point(LazyRepr):
    ...     x: int
    ...     y: int = 0
    >>> Point(3)
    Point(x=3, y=0)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        from dataclasses import fields

        shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)  # type: ignore[arg-type]
        return f"{type(self).__qualname__}({', '.join(shown)})"
