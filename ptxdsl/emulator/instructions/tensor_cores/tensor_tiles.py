"""What lays out tiles that tcgen05 takes from shared memory and from tensor memory, beside :mod:`.matrix_tiles`."""

from __future__ import annotations

from ..micro_op import Routine

__all__ = ["COLUMN_BYTES", "CellPanel", "TilePlaces"]

COLUMN_BYTES = 512
"""Of a column of tensor memory: 128 lanes of 32 bits."""


class CellPanel(Routine):
    """``panel(to, cells, offsets, groups, columns, pitch)``: rows that lie in columns of tensor memory, in order.

    ``offsets`` are 32-bit numbers, where each 16 rows begin in a column; a column is COLUMN_BYTES behind another. A
    cell of 32 bits has 4 elements of FP6 and FP4, in bytes of their own: FP6 in the lower 6 bits, FP4 in bits 5 to 2.
    """

    element: str


class TilePlaces(Routine):
    """``places(to, sizes, bounds, descriptor, delta, shift)``: the addresses of the 16-byte pieces of tcgen05's tiles.

    They are 32-bit numbers in the order of :class:`TilePanel`. ``sizes`` are 64-bit numbers: how many places along the
    lines there are (lines of a ``k``-major tile, else pieces of a k), the last one that is another than its
    predecessor, the first one that lies in the other block of a pair, ``delta`` bytes further on; the pieces of a line,
    or the number of k; as powers of two the rows that lie side by side without the stride, and the lines of a place.
    There may be ``shift`` lines more. To ``bounds`` go the lowest and the highest address, without ``delta``.
    """

    major: str
