"""Matrix descriptors of tiles, for wgmma and tcgen05: where a tile begins, and the distances in it.

Both read a tile along its rows of memory (K-major) or across them, with the same distances; the bits of the descriptor
differ, and stand in `isa.matrix_descriptors`.
"""

from __future__ import annotations

from typing import Any

from ..errors import PtxTypeError
from ..isa.matrix_descriptors import ADDRESS
from ..language.errors import located
from ..tiles import Tile

__all__ = ["STEP", "UNIT", "address", "along_k", "distances", "moves"]

STEP = 32
"""Bytes of a row of a that an instruction takes."""
UNIT = 1 << ADDRESS.unit
"""Bytes that the addresses of a descriptor count in."""


def along_k(tile: Tile, side: str) -> bool:
    """Whether k goes along the rows of the tile's memory (K-major)."""
    return tile.transposed == (side == "b")


def address(tile: Tile) -> Any:
    """Where a tile begins, as descriptors have it: a u32."""
    start = tile.place.address
    if not isinstance(tile.origin[0], int):
        start = start + tile.origin[0] * tile.swizzle
    return (start >> ADDRESS.unit) & (1 << ADDRESS.width) - 1


def moves(tile: Tile, side: str, line: int, step: int) -> int:
    """What the address grows by from the tile's place to a row of a or column of b, and a step along k, in units."""
    k = step * (STEP // tile.dtype.bytes)
    return tile.offset(*((line, k) if side == "a" else (k, line))) // UNIT


def distances(tile: Tile, side: str, turned: tuple[int, ...]) -> tuple[int, int]:
    """The leading and the stride distance of a tile's descriptor, in bytes; a located error where it has none.

    ``turned`` are the bits of the elements that may be stored with k across the rows.
    """
    if not tile.swizzle:
        raise located(
            PtxTypeError, f"{side} is {tile!r}: a matrix descriptor has no such layout",
            "`Tile(place, rows, columns, swizzle)` with 128, 64, 32 or 16",
        )
    rows_of_k = along_k(tile, side)
    if not rows_of_k and tile.dtype.bits not in turned:
        raise located(
            PtxTypeError,
            f"{side} of {tile.dtype} is stored with k along its columns; only elements of "
            f"{' or '.join(map(str, turned))} bits may be",
            f"store it as {'(m, k)' if side == 'a' else '(n, k), and give `b.T`'}",
        )
    row, column = tile.origin
    if isinstance(row, int) and row % 8:
        raise located(PtxTypeError, f"{side} begins at row {row} of its tile's memory", "a multiple of 8")
    within, extent = column % tile.slab, tile.stored[1]
    if rows_of_k and column * tile.dtype.bytes % min(STEP, tile.swizzle):
        raise located(
            PtxTypeError, f"{side} begins at column {column} of its tile's memory",
            f"a multiple of {STEP // tile.dtype.bytes}",
        )
    if not rows_of_k and within and within + extent > tile.slab:
        raise located(
            PtxTypeError, f"{side} has the columns {column} to {column + extent - 1} of its tile's memory",
            f"parts that begin at a multiple of {tile.slab}",
        )
    group, slab = 8 * tile.swizzle, tile.slab_bytes
    if tile.swizzle == 16:
        return (slab, group) if rows_of_k else (group, slab)
    return (UNIT, group) if rows_of_k else (slab, group)
