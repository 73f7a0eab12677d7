"""The numeric core of matrix instructions whose tiles lie in memory: its two functions, by what they depend on.

A tile is at first laid out as *panels* of f32 (:class:`TilePanel`), then multiplied (:class:`TileProduct`). Both know
nothing of descriptors: a tile is given as the offsets of its 16-byte pieces, for all swizzles move these as a whole.
"""

from __future__ import annotations

from typing import NamedTuple

from ..micro_op import Routine

__all__ = [
    "GROUP", "ScaledSum", "SparseLines", "TilePanel", "TileProduct", "Tiles", "WarpPanel", "elements_of",
    "held_by_lanes", "held_in_rows", "lines_of", "products_of",
]

GROUP = 16
"""Lines (rows of A, columns of B) that are laid out at a time: a panel has a multiple of these."""


PADDED = {"e2m3": 12, "e3m2": 12, "e2m1": 8}
"""The bytes of a 16-byte piece that hold elements, where those are padded."""


def elements_of(element: str) -> int:
    """The elements of a 16-byte piece; FP6 and FP4 (``e2m1``) are padded to a byte each, ``e2m1x`` is not padded.

    An element of ``b1`` is a word of 32 bits of one line.
    """
    return {"b1": 4, "tf32": 4, "f16": 8, "bf16": 8, "ti16": 8, "e2m1x": 32}.get(element, 16)


def products_of(element: str) -> str:
    """How elements of A are multiplied and added, as :class:`TileProduct` has it."""
    return {"s8": "integers", "u8": "integers", "b1": "bits", "ti16": "words"}.get(element, "reals")


class TilePanel(Routine):
    """``panel(to, base, offsets, groups, pieces, pitch)``: elements as f32, words of bits, line by line of each k.

    ``offsets`` are 32-bit numbers. Where ``major`` is ``k`` a piece has elements of one line, and the ``pieces`` of
    each line follow each other; where it is ``mn`` a piece has those of one k, ``pieces`` is the number of k, and the
    pieces of all lines of a k follow each other. ``pitch`` are the bytes between two k of the panel.

    ``order`` says how 16 lines lie in the panel: ``lines`` in order; ``pairs`` of each eight the even ones first, then
    the odd ones, as lanes hold the columns of an accumulator; ``spread`` each of them four times.
    """

    element: str
    major: str
    order: str


class WarpPanel(Routine):
    """``panel(to, registers, offsets, pitch)``: the 16 rows of A that a warp holds in registers, spread.

    ``offsets`` are four 32-bit numbers, where the registers of :func:`ptxdsl.isa.fragments.layout` lie: rows g and
    g + 8 of the first half of k, then of the second. It fills vectors 4w to 4w + 3 of each k, for warp w.
    """

    element: str


class TileProduct(Routine):
    """``product(d, offsets, a, b, sizes)``: d += a * b, in vectors of 16 elements of d.

    ``left`` and ``right`` are what a vector takes of the panels of A and B: 16 elements (``vector``), 4 of them that
    repeat (``quad``), or one (``one``). ``rows`` and ``columns`` are the vectors that are summed at a time. ``offsets``
    are 32-bit numbers, where each vector lies, those of one place in A's panel after the other, wherever registers or
    tensor memory have them. ``sizes`` are 64-bit numbers: how many vectors d has by A and by B (multiples of ``rows``
    and ``columns``), k, the pitches of the panels of A and B, and whether d counts as 0 before.

    ``products`` of ``reals`` are exact and added by one rounding to f32 each, k ascending. Of ``integers`` the sum of
    the products, exact in f32 for k up to 256, is added to d in 32 bits; so is of ``bits`` the number of those that
    words of A and B both have, and k counts words; ``words`` are whole numbers that are multiplied in 32 bits. Of a
    ``sparse`` A the panel has what is kept, k counts that, and a sixth pointer is to what :class:`SparseLines` made:
    which row of B's panel each element selects.
    """

    left: str
    right: str
    rows: int
    columns: int
    products: str
    sparse: bool


class SparseLines(Routine):
    """``lines(to, codes, groups, chunks, pitch)``: for each kept element of each row where B's panel has its k.

    ``codes`` has a byte for each chunk of each of 16 ``groups`` rows, those of a chunk side by side, with a code as
    :func:`ptxdsl.isa.fragments.metadata_place` finds it; ``bits`` are those of an element of A, ``pitch`` that of B's
    panel.
    """

    bits: int


class ScaledSum(Routine):
    """``scaled(d, offsets, sums, left, right, sizes)``: d += sums * left * right in f64, rounded to f32 once.

    ``sums`` has the vectors of a block's products one after the other, as ``offsets`` has those of d, by rows;
    ``left`` the scale of each row and ``right`` those of the columns, as f64; ``sizes`` the numbers of rows and of
    vectors in a row.
    """


class Tiles(NamedTuple):
    """The functions of a product: they lay out A and B, and multiply."""

    left: TilePanel | WarpPanel
    right: TilePanel
    product: TileProduct
    lines: SparseLines | None


def held_by_lanes(elements: tuple[str, str], majors: tuple[str, str], sparse: bool = False) -> Tiles:
    """For a d that lanes hold as those of mma do: a register of a warp is two vectors, of rows 0 to 3 and 4 to 7.

    A lies in memory, or in registers where its major is "". Vector i by A has rows 4i to 4i + 3, 16 rows a warp; vector
    2e + p by B the columns p, p + 2, p + 4 and p + 6 of the eight e. So half i % 2 of the register
    4e + 2 (i / 2 % 2) + p of warp i / 4 is one.
    """
    left = TilePanel(elements[0], majors[0], "spread") if majors[0] else WarpPanel(elements[0])
    return Tiles(
        left, TilePanel(elements[1], majors[1], "pairs"),
        TileProduct("vector", "quad", 8, 2, products_of(elements[0]), sparse), lines_of(elements[0], sparse),
    )


def held_in_rows(elements: tuple[str, str], majors: tuple[str, str], vectors: int, sparse: bool = False) -> Tiles:
    """For a d whose rows lie in memory: vector i by A is row i, vector j by B has columns 16j to 16j + 15."""
    columns = next(count for count in (4, 3, 2, 1) if vectors % count == 0)
    return Tiles(
        TilePanel(elements[0], majors[0], "lines"), TilePanel(elements[1], majors[1], "lines"),
        TileProduct("one", "vector", 4, columns, products_of(elements[0]), sparse), lines_of(elements[0], sparse),
    )


def lines_of(element: str, sparse: bool) -> SparseLines | None:
    """What finds the elements of B that those of a sparse A select."""
    return SparseLines(128 // elements_of(element)) if sparse else None
