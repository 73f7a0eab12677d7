"""Which element of a matrix each lane of a warp holds in which register: the layouts of mma and wmma fragments.

The one home of these layouts: the emulator multiplies by them, kernels may place elements by them. Those of ``mma`` are
the manual's (Matrix Fragments for mma.m16n8k16 and the like). The manual leaves those of ``wmma`` open; these are the
ones of two ``mma`` side by side, which hardware since sm_80 uses.

``g`` is lane // 4, ``t`` is lane % 4 throughout.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

__all__ = ["LAYOUTS", "Layout", "Place"]


class Place(NamedTuple):
    """An element of a fragment, at ``row`` + g and ``column`` + 2t; if transposed, at ``row`` + 2t and ``column`` + g.

    ``register`` holds it, in its half ``half`` where two elements share a register.
    """

    register: int
    half: int
    row: int
    column: int


class Layout(NamedTuple):
    """A fragment of ``rows`` x ``columns`` elements; ``transposed`` is B's, whose rows go with t."""

    rows: int
    columns: int
    transposed: bool
    places: tuple[Place, ...]

    def owner(self, row: int, column: int) -> tuple[int, int, int]:
        """Lane, register and half that hold an element."""
        g, pair = (column % 8, row % 8) if self.transposed else (row % 8, column % 8)
        for place in self.places:
            base = (place.column, place.row) if self.transposed else (place.row, place.column)
            element = (column, row) if self.transposed else (row, column)
            if base[0] == element[0] - g and base[1] == element[1] - pair + pair % 2:
                return g * 4 + pair // 2, place.register, place.half
        raise AssertionError((row, column))


def _pairs(rows: int, columns: int, transposed: bool, shared: bool, of: Callable[[int, int, int], int]) -> Layout:
    """The places of tiles of 8 x 8; ``of(row tile, column tile, half)`` numbers them as if each had a register."""
    places = []
    for i in range(rows // 8):
        for j in range(columns // 8):
            for half in (0, 1):
                number = of(i, j, half)
                row, column = (8 * i + half, 8 * j) if transposed else (8 * i, 8 * j + half)
                places.append(Place(number // 2 if shared else number, number % 2 if shared else 0, row, column))
    return Layout(rows, columns, transposed, tuple(sorted(places)))


def _a(columns: int) -> Layout:
    return _pairs(16, columns, False, True, lambda i, j, half: 4 * j + 2 * i + half)


def _b(rows: int, columns: int) -> Layout:
    return _pairs(rows, columns, True, True, lambda i, j, half: rows // 4 * j + 2 * i + half)


def _c(columns: int, shared: bool) -> Layout:
    return _pairs(16, columns, False, shared, lambda i, j, half: 4 * j + 2 * i + half)


LAYOUTS: dict[tuple[str, str, int], Layout] = {
    ("m16n16k16", "a", 16): _a(16), ("m16n16k16", "b", 16): _b(16, 16),
    ("m16n16k16", "c", 32): _c(16, False), ("m16n16k16", "c", 16): _c(16, True),
    ("m16n8k16", "a", 16): _a(16), ("m16n8k16", "b", 16): _b(16, 8),
    ("m16n8k16", "c", 32): _c(8, False), ("m16n8k16", "c", 16): _c(8, True),
    ("m16n8k8", "a", 16): _a(8), ("m16n8k8", "b", 16): _b(8, 8),
    ("m16n8k8", "c", 32): _c(8, False), ("m16n8k8", "c", 16): _c(8, True),
}
"""By shape, matrix (``c`` stands for d too) and bits of an element."""
