"""From sums in the registers of a warpgroup to a matrix in global memory, by way of shared memory and tensor copies.

A warpgroup has two buffers of 64 rows of 128 bytes, swizzled as the tensor map says. It fills one while the copy of the
other is still read; the copies themselves end behind the next product. stmatrix writes 16 bytes of a row from the four
lanes that hold them, so that rows of 128 bytes are written without bank conflicts; sums of 32 bits go in pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ScalarType, f32, ptx, tiles, tma, u8, when

from ..tensor_products import SPAN

__all__ = ["BUFFERS", "NBYTES", "ROWS", "Staging", "Writer"]

ROWS = 64
"""Of a buffer; they have 128 bytes."""
BUFFERS = 2
NBYTES = BUFFERS * ROWS * SPAN
"""Of a warpgroup."""

Finish = Callable[[int, list[Any]], list[Any]]


class Writer:
    """Writes sums of a warpgroup (64 rows, of f32) to a tile in shared memory, rounded to ``dtype``."""

    def __init__(self, dtype: ScalarType) -> None:
        self.dtype = dtype
        lane, warp = ptx.laneid, (ptx.tid.x >> 5) & 3
        pairs = dtype is f32
        self.row = (warp << 4) + (lane >> 2 if pairs else lane & 15)
        self.column = (lane & 3) << 1 if pairs else lane >> 4 << 3

    def write(self, tile: Any, registers: list[Any], first: int, finish: Finish | None = None) -> None:
        """Write as many columns as the tile has, from ``first`` on.

        ``finish(column, values)`` is what is stored for the sums of two rows in ``column``, to which is added twice the
        number of the lane in its four: of eight columns these have two each.
        """

        def rows(eight: int) -> list[tuple[Any, Any]]:
            own = [register.copy() for register in registers[eight // 2 : eight // 2 + 4]]
            left, right = own[::2], own[1::2]
            if finish is not None:
                left, right = finish(eight, left), finish(eight + 1, right)
            return list(zip(left, right))

        for column in range(0, tile.shape[1], 8 if self.dtype is f32 else 16):
            if self.dtype is f32:
                for number, pair in enumerate(rows(first + column)):
                    tile.at(self.row + 8 * number, self.column + column).store(0, list(pair))
            else:
                words = [
                    ptx[f"cvt.rn.{self.dtype}x2.f32"](right, left)
                    for eight in (column, column + 8) for left, right in rows(first + eight)
                ]
                self.write_words(tile, column, words)

    def write_words(self, tile: Any, column: int, words: list[Any]) -> None:
        """Write 16 columns of numbers of 16 bits: ``words`` as a fragment of a left factor has them."""
        ptx.stmatrix.sync.aligned.m8n8.x4.shared.b16(tile.at(self.row, self.column + column), words)


class Staging:
    """The buffers of the warpgroup that has the number ``group`` (u32), of those that lie from ``place`` on.

    ``barrier`` is the number of the named barrier of the first warpgroup.
    """

    def __init__(self, place: Any, dtype: ScalarType, group: Any, barrier: int) -> None:
        self.columns, self.writer = SPAN // dtype.bytes, Writer(dtype)
        mine = place.cast(u8) + group * NBYTES
        self.tiles = [
            tiles.Tile((mine + number * ROWS * SPAN).cast(dtype), ROWS, self.columns) for number in range(BUFFERS)
        ]
        self.barrier, self.leader = group + barrier, (ptx.tid.x & 127) == 0

    def meet(self) -> None:
        """All threads of the warpgroup."""
        ptx.barrier.cta.sync(self.barrier, 128)

    def store(self, to: Any, at: tuple[Any, Any], sums: Any, finish: Finish) -> None:
        """Store sums to the box of the map ``to`` at row and column ``at``; beyond its edges nothing is written."""
        number = 0
        for block, registers in enumerate(sums.blocks):
            for first in range(0, sums.shape[1], self.columns):
                tile = self.tiles[number % BUFFERS]
                with when(self.leader):
                    tma.wait(BUFFERS - 1, read=True)
                self.meet()
                self.writer.write(tile, registers, first, finish)
                tma.fence()
                self.meet()
                with when(self.leader):
                    tma.store(to, (at[0] + block * ROWS, at[1] + first), tile)
                    tma.commit()
                number += 1

    def drain(self) -> None:
        """Wait until all copies have read the buffers, before the block ends."""
        with when(self.leader):
            tma.wait(0, read=True)
