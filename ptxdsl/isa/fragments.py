"""Which element of a matrix each lane of a warp holds in which register: the layouts of mma and wmma fragments.

The one home of these layouts: the emulator multiplies by them, kernels may place elements by them. Those of ``mma`` are
the manual's (Matrix Fragments for mma.m16n8k16 and the like). The manual leaves those of ``wmma`` open; these are the
ones of several ``mma`` side by side, which hardware since sm_80 uses.

All follow one rule. ``g`` is lane // 4, ``t`` is lane % 4. A matrix is cut into tiles of 8 lines (rows, of B columns)
by 4 runs, and in each a lane has the run t of the line g: as many elements as a register of 32 bits takes, of C and D
two. A sparse A, of which half the columns are kept, lies like a dense one of half as many columns. The exception is
``m8n8k4`` of f16, four products at a time (:class:`QuadPairs`).

Beside the matrices lie the codes of a sparse A's kept elements (:func:`metadata_place`) and the scales of blocks
(:func:`scale_lanes`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "ELEMENT_BITS", "LAYOUTS", "SHAPES", "SPARSE_SHAPES", "Layout", "Place", "QuadPairs", "chunk_of", "element_bits",
    "held", "layout", "metadata_place", "scale_lanes", "shape_of",
]

_SHAPE = re.compile(r"m\d+n\d+k\d+$")


def shape_of(tokens: tuple[str, ...]) -> str:
    """The shape among the modifiers of a matrix instruction, ``m16n8k16``; empty where it has none."""
    return next((token for token in tokens if _SHAPE.match(token)), "")


class Place(NamedTuple):
    """An element of a fragment, at ``row`` + g and ``column`` + run * t; if transposed, with g and t exchanged.

    ``register`` holds it; it is part ``part`` of those that share the register, the lowest bits first.
    """

    register: int
    part: int
    row: int
    column: int


class Layout(NamedTuple):
    """A fragment of ``rows`` x ``columns`` elements; ``transposed`` is B's, whose rows go with t."""

    rows: int
    columns: int
    transposed: bool
    run: int
    places: tuple[Place, ...]

    def owner(self, row: int, column: int) -> tuple[int, int, int]:
        """Lane, register and part that hold an element."""
        line, along = (column, row) if self.transposed else (row, column)
        lane = line % 8 * 4 + along // self.run % 4
        first = (line - line % 8, along - along // self.run % 4 * self.run)
        return (lane, *_index(self)[first[::-1] if self.transposed else first])


@lru_cache(maxsize=256)
def _index(layout: Layout) -> dict[tuple[int, int], tuple[int, int]]:
    return {(place.row, place.column): (place.register, place.part) for place in layout.places}


def _layout(rows: int, columns: int, transposed: bool, run: int, shared: bool) -> Layout:
    """Tiles of the lines first, then along them; ``shared``: the elements of a run are in one register."""
    lines, length = (columns, rows) if transposed else (rows, columns)
    places = []
    for along in range(length // (4 * run)):
        for tile in range(lines // 8):
            # B's registers follow the depth first, the others their lines.
            number = tile * (length // (4 * run)) + along if transposed else along * (lines // 8) + tile
            for part in range(run):
                where = (8 * tile, 4 * run * along + part)
                register = number if shared else number * run + part
                places.append(Place(register, part if shared else 0, *(where[::-1] if transposed else where)))
    return Layout(rows, columns, transposed, run, tuple(sorted(places)))


@lru_cache(maxsize=256)
def layout(shape: str, which: str, bits: int) -> Layout:
    """The layout of ``a``, ``b`` or ``c`` (which is that of d too) of ``m16n8k16`` with elements of so many bits.

    >>> layout("m16n8k16", "a", 16).places[:2]
    (Place(register=0, part=0, row=0, column=0), Place(register=0, part=1, row=0, column=1))
    """
    m, n, k = map(int, re.findall(r"\d+", shape))
    if which == "c":
        return _layout(m, n, False, 2, bits == 16)
    rows, columns = (m, k) if which == "a" else (k, n)
    return _layout(rows, columns, which == "b", max(1, 32 // bits), True)


class QuadPairs(NamedTuple):
    """A fragment of ``mma.m8n8k4`` of f16: four products, each of two quads of lanes, 16 lanes apart.

    The four matrices are taken as one: those of A and C below each other, those of B side by side. ``which`` is ``a``,
    ``b``, ``c16`` or ``c32`` (accumulators by their bits), ``order`` that of A or B, ``row`` or ``col``.
    """

    which: str
    order: str

    @property
    def rows(self) -> int:
        return 4 if self.which == "b" else 32

    @property
    def columns(self) -> int:
        return {"a": 4, "b": 32}.get(self.which, 8)

    def owner(self, row: int, column: int) -> tuple[int, int, int]:
        """Lane, register and part that hold an element."""
        line, along = (column, row) if self.which == "b" else (row, column)
        product, line = divmod(line, 8)
        high, line = divmod(line, 4)
        if self.which == "c32":
            lane, item = line & 1 | along & 2, line & 2 | along & 5
            return 16 * high + 4 * product + lane, item, 0
        if self.which != "c16" and (self.order == "col") != (self.which == "b"):
            line, along = along, line
        return 16 * high + 4 * product + line, along // 2, along % 2


Elements = tuple[tuple[int, int], ...]


@lru_cache(maxsize=256)
def held(fragment: Layout | QuadPairs) -> dict[tuple[int, int], Elements]:
    """The (row, column) that each lane holds in each (register, part)."""
    found: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
    for row in range(fragment.rows):
        for column in range(fragment.columns):
            lane, register, part = fragment.owner(row, column)
            found.setdefault((register, part), {})[lane] = (row, column)
    return {key: tuple(lanes[lane] for lane in range(32)) for key, lanes in sorted(found.items())}


# Sparse matrices: of each chunk of a row of A half the elements are kept, and four bits say which.


def chunk_of(bits: int) -> int:
    """The columns of a chunk: 1 of 2 elements of 32 bits is kept, 2 of 4 of 16 and 8 bits, 2 of 4 pairs of 4 bits."""
    return {32: 2, 4: 8}.get(bits, 4)


def metadata_place(bits: int, depth: int, row: int, chunk: int, selector: int) -> tuple[int, int]:
    """The lane that holds the code of a chunk, and its lowest bit; ``depth`` is the k of the shape.

    A lane of a quad holds 16 columns of two rows, of elements of 8 and 4 bits two times as many of one row. The
    selector is the first of those that do, counted in as many lanes as it takes.
    """
    high, group = divmod(row, 8)
    if bits > 8:
        within, at = chunk // 4, 16 * high + 4 * (chunk % 4)
        lanes = depth // chunk_of(bits) // 4
    else:
        within, at = 2 * (chunk // 8) + high, 4 * (chunk % 8)
        lanes = depth // chunk_of(bits) // 4
    return 4 * group + lanes * selector + within, at


def scale_lanes(which: str, line: int) -> tuple[int, ...]:
    """The lanes that may hold the scales of a row of A or of a column of B, one for each thread-id."""
    if which == "a":
        return tuple(4 * (line % 8) + 2 * thread + line // 8 for thread in range(2))
    return tuple(4 * line + thread for thread in range(4))


SHAPES: dict[int, tuple[str, ...]] = {
    1: ("m8n8k128", "m16n8k128", "m16n8k256"),
    4: ("m8n8k32", "m16n8k32", "m16n8k64"),
    8: ("m8n8k16", "m16n8k16", "m16n8k32", "m16n16k16", "m32n8k16", "m8n32k16"),
    16: ("m16n8k8", "m16n8k16", "m16n16k16", "m32n8k16", "m8n32k16"),
    32: ("m16n8k4", "m16n8k8", "m16n16k8"),
    64: ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
}
"""The shapes of mma and wmma by the bits of an element of A and B: those that follow the rule."""

SPARSE_SHAPES: dict[int, tuple[str, ...]] = {
    4: ("m16n8k64", "m16n8k128"), 8: ("m16n8k32", "m16n8k64"), 16: ("m16n8k16", "m16n8k32"),
    32: ("m16n8k8", "m16n8k16"),
}
"""Those of mma with a sparse A."""

ELEMENT_BITS: dict[str, int] = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "e3m2": 8, "e2m3": 8, "e2m1": 8,
}
"""Bits of the types of A and B that lie in the layouts above; FP6 and FP4 have a byte each."""


def element_bits(kind: str, tokens: tuple[str, ...]) -> int:
    """The bits of an element of A or B in an instruction with these modifiers; 0 for a type that is none of theirs."""
    packed = kind == "e2m1" and not {"kind::mxf4", "kind::mxf4nvf4"}.isdisjoint(tokens)
    return 4 if packed else ELEMENT_BITS.get(kind, 0)


LAYOUTS: dict[tuple[str, str, int], Layout] = {
    key: layout(*key)
    for bits, shapes in SHAPES.items() for shape in shapes
    for key in (
        (shape, "a", bits), (shape, "b", bits), (shape, "c", max(bits, 32)),
        *([(shape, "c", 16)] if bits in (8, 16) else ()),
    )
}
