"""The name of an element of an array: ``tile[3, 5]``, as numpy and a kernel index it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["element_text"]


def element_text(name: str, number: int, shape: Sequence[int | None]) -> str:
    """The element with a number, in C order, of an array of a shape; also where the array has none with it.

    >>> element_text("tile", 29, (4, 8)), element_text("tile", 32, (4, 8)), element_text("x", -1, (4,))
    ('tile[3, 5]', 'tile[4, 0]', 'x[-1]')
    """
    places = []
    for extent in reversed(shape[1:]):
        number, place = divmod(number, max(1, extent or 0))
        places.append(place)
    return f"{name}[{', '.join(map(str, (number, *reversed(places))))}]"
