"""Fragments of a and b: how ldmatrix or single elements of a tile or view come to the lanes that hold them."""

from __future__ import annotations

from typing import Any

from ..errors import PtxTypeError
from ..isa.fragments import Layout, layout
from ..language import pack, ptx, reg
from ..language.errors import located
from ..tiles import Tile
from ..types import ScalarType, b32, f32, f64, u8, u16, u32
from .operands import RESULTS, SHAPES, matrix, moved, multiple, sides

__all__ = ["Fragment", "Loader", "checked", "element", "load"]


class Fragment:
    """``a`` or ``b`` of a product in the registers of a warp (``a`` of a warpgroup), by blocks of its instruction.

    ``blocks[i, j]`` are the 32-bit registers (of f64 the value) of the block in block row i and block column j.
    """

    def __init__(
        self, side: str, dtype: ScalarType, shape: tuple[int, int], blocks: dict[tuple[int, int], list[Any]],
        warps: int = 1,
    ) -> None:
        self.side, self.dtype, self.shape, self.blocks, self.warps = side, dtype, shape, blocks, warps

    def __repr__(self) -> str:
        return f"<{self.side} of {self.dtype} {self.shape[0]} x {self.shape[1]}>"


def load(side: str, source: Any, rows: Any, columns: Any, row: Any, column: Any) -> Fragment:
    if isinstance(source, Tile):
        if rows is not None or columns is not None:
            source = source.part(rows or source.shape[0], columns or source.shape[1], row, column)
        shape = source.shape
    else:
        matrix(source, f"load_{side}")
        if rows is None or columns is None:
            raise located(
                PtxTypeError, f"`load_{side}` of a view without a shape",
                f"`mma.load_{side}(x, 16, 16, row=.., column=..)`",
            )
        shape = rows, columns
    checked(side, source.dtype, shape)
    return Fragment(side, source.dtype, shape, Loader(source, side, shape, row, column).load())


def checked(side: str, dtype: ScalarType, shape: tuple[int, int]) -> None:
    """Refuse types and shapes that no instruction takes."""
    if dtype not in RESULTS:
        raise located(
            PtxTypeError, f"{side} of {dtype}",
            "`tile.cast(tf32)` takes f32 for tf32" if dtype is f32 else f"one of {', '.join(map(str, RESULTS))}",
        )
    m, n, k = sides(SHAPES[dtype.bits])
    high, wide = (m, k) if side == "a" else (k, n)
    multiple("rows", shape[0], high, f" of {side}")
    multiple("columns", shape[1], wide, f" of {side}")


class Loader:
    """What loads blocks of a tile or view, all at once or some of them."""

    def __init__(self, source: Any, side: str, shape: tuple[int, int], row: Any = 0, column: Any = 0) -> None:
        bits = source.dtype.bits
        m, n, k = sides(SHAPES[bits])
        self.high, self.wide = (m, k) if side == "a" else (k, n)
        self.shape, self.source, self.at = shape, source, (row, column)
        self.held = layout(SHAPES[bits], side, bits)
        whole = isinstance(source, Tile) and _whole(source, side)
        self.matrices = _Matrices(source, side, self.held, self.high, self.wide) if whole else None

    def load(self, rows: range | None = None, columns: range | None = None) -> dict[tuple[int, int], list[Any]]:
        """The blocks of these block rows and columns, of all by default."""
        rows = range(self.shape[0] // self.high) if rows is None else rows
        columns = range(self.shape[1] // self.wide) if columns is None else columns
        if self.matrices is not None:
            return self.matrices.load(rows, columns)
        return {
            (i, j): _by_elements(self.source, self.held, i * self.high, j * self.wide, *self.at)
            for i in rows for j in columns
        }


def _whole(tile: Tile, side: str) -> bool:
    """Whether ldmatrix loads it: 16 bytes of each row of memory are 16 bytes along k, or 8 halves along the other."""
    size = tile.dtype.bytes
    along_k = tile.transposed == (side == "b")
    if tile.dtype is f64 or not (along_k or size == 2):
        return False
    if not tile.swizzle:
        return not (tile.pitch * size % 16 or tile.origin[1] * size % 16 or tile.place.offset % 16)
    if isinstance(tile.origin[0], int) and tile.origin[0] % 8:
        return False
    return tile.origin[1] * size % min(32, tile.swizzle) == 0


def _straight(tile: Tile) -> tuple[int, int] | None:
    """The bytes from a row to the next and, for every column, from that to the next, of a tile without a swizzle."""
    size = tile.dtype.bytes
    if tile.swizzle not in (0, 16):
        return None
    return (tile.pitch * size, size) if not tile.swizzle else (tile.swizzle, tile.whole[0] * size)


class _Matrices:
    """Registers of a tile by ldmatrix, four matrices of 8 rows x 16 bytes at a time where a row of blocks has so many.

    What depends on the lane is computed once for all of the tile.
    """

    def __init__(self, tile: Tile, side: str, held: Layout, high: int, wide: int) -> None:
        self.tile, self.held, self.high, self.wide = tile, held, high, wide
        self.trans = "" if tile.transposed == (side == "b") else ".trans"
        self.lanes: dict[tuple[int, ...], tuple[Any, int]] = {}
        self.turned: dict[tuple[tuple[int, ...], int], Any] = {}

    def load(self, rows: range, columns: range) -> dict[tuple[int, int], list[Any]]:
        """The blocks of these block rows and columns."""
        found: dict[tuple[int, int], list[Any]] = {(i, j): [] for i in rows for j in columns}
        for i in rows:
            wanted = [
                (i, j, i * self.high + place.row, j * self.wide + place.column)
                for j in columns for place in self.held.places if place.part == 0
            ]
            for first in range(0, len(wanted), 4):
                group = wanted[first : first + 4]
                name = f"ldmatrix.sync.aligned.m8n8.x{len(group)}{self.trans}.shared.b16"
                loaded = ptx[name](self._place([(row, column) for _, _, row, column in group]))
                for (_, j, _, _), register in zip(group, loaded):
                    found[i, j].append(register)
        return found

    def _place(self, starts: list[tuple[int, int]]) -> Any:
        """The address that each lane gives: of row lane % 8 of the matrix lane // 8."""
        tile = self.tile
        if tile.transposed:
            starts = [(column, row) for row, column in starts]
        (row, column), *others = starts
        steps = tuple(step for r, c in (others[:1] + others[1:2] if len(starts) == 4 else others) for step in (
            r - row, c - column
        ))
        base, across = self._lane(steps)
        row_origin, column_origin = tile.origin
        column += column_origin
        row += row_origin if isinstance(row_origin, int) else 0
        size = tile.dtype.bytes
        place = tile.place.cast(u8)
        straight = _straight(tile)
        if straight is not None:
            return (place + base + (row * straight[0] + column * straight[1])).cast(u16)
        slab, within = divmod(column, tile.slab)
        at = within * size
        if at & across:  # the bits of the lane's column and of the block's are the same: they are added, not set
            raise AssertionError("blocks of a tile begin at multiples of what a lane's address spans")
        turned = self.turned.get((steps, at))
        if turned is None:
            turned = self.turned[steps, at] = base ^ at if at else base
        return (place + turned + (row * tile.swizzle + slab * tile.slab_bytes)).cast(u16)

    def _lane(self, steps: tuple[int, ...]) -> tuple[Any, int]:
        """What a lane adds, in bytes, and the bits of a row of memory that it may set."""
        found = self.lanes.get(steps)
        if found is not None:
            return found
        tile, lane = self.tile, ptx.laneid
        row, column = lane & 7, None
        for bit in range(len(steps) // 2):
            number = (lane >> 3 + bit) & 1
            down, along = steps[2 * bit : 2 * bit + 2]
            if down:
                row = row + number * down
            if along:
                column = number * along if column is None else column + number * along
        if not isinstance(tile.origin[0], int):
            row = row + tile.origin[0]
        size, across = tile.dtype.bytes, sum(steps[1::2]) * tile.dtype.bytes
        straight = _straight(tile)
        if straight is not None:
            base = row * straight[0]
            return self.lanes.setdefault(steps, (base if column is None else base + column * straight[1], across))
        base = row * tile.swizzle
        turned = tile.turned(base)
        within = None if column is None else column * size
        low = within if turned is None else turned if within is None else turned ^ within
        return self.lanes.setdefault(steps, (base if low is None else base + low, across))


def _by_elements(source: Any, held: Layout, first: int, start: int, row: Any, column: Any) -> list[Any]:
    """The registers of a block that begins at (first, start), element by element."""
    lane = ptx.laneid
    line, along = lane >> 2, (lane & 3) * held.run
    if held.transposed:
        line, along = along, line
    parts: dict[int, list[Any]] = {}
    for place in held.places:
        y, x = line + (first + place.row), along + (start + place.column)
        if isinstance(source, Tile):
            value = source.at(y, x)[0]
        else:
            value = element(source, moved(row, y), moved(column, x), source.dtype)
        parts.setdefault(place.register, []).append(value)
    return [_packed(values) for _, values in sorted(parts.items())]


def _packed(values: list[Any]) -> Any:
    """A register of the elements of a lane, the lowest first."""
    if len(values) == 1:
        value = values[0]
        return value if value.type is f64 else value.bits(u32)
    if len(values) == 2:
        return pack(b32, *values)
    words = [value.bits(u8).to(u32) for value in values]
    return words[0] | words[1] << 8 | words[2] << 16 | words[3] << 24


def element(view: Any, row: Any, column: Any, dtype: ScalarType, inside: Any = None) -> Any:
    """An element of a view, and 0 beyond its edges."""
    if inside is None:
        inside = (row < view.shape[0]) & (column < view.shape[1])
    kind = u8 if view.dtype.bits == 8 else view.dtype.register
    value = reg(u16 if kind is u8 else kind)  # of a byte there is no register that zeros could go to
    _zero(value)
    place = view.at(row, column).cast(kind)
    if kind is u8:
        ptx[f"ld.{view.space}.u8"](place, out=value, pred=inside)
    else:
        place.load(0, pred=inside, out=value)
    found = value.copy() if kind is not u8 else value.to(u8)
    if kind is not view.dtype:
        found = found.bits(view.dtype)
    return found if dtype is view.dtype else found.to(dtype)


def _zero(register: Any) -> None:
    register.set(0.0 if register.type.is_float else 0)
