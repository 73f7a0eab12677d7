"""Tiles: matrices in shared memory as tensor copies lay them, swizzled, and as matrix instructions read them.

A tile is cut in slabs of as many columns as fit in the bytes of its swizzle (128, 64 or 32; 16 without one); a slab is
all its rows, one after the other. That is what a box of a tensor map leaves whose rows have so many bytes, one box a
slab, and what the descriptors of wgmma and tcgen05 describe. With ``swizzle=0`` a tile is a plain matrix instead, its
rows ``pitch`` elements apart, which only ``mma`` and ordinary accesses read.

A tile knows its shape, so that ``a @ b`` is checked while tracing, and where each element lies. Which bits a swizzle
inverts stands in `isa.tensor_maps`.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from .errors import PtxTypeError
from .isa.tensor_maps import SWIZZLES
from .language import Pointer, Value, View, current, minimum, ptx, select
from .language.block_needs import needs_flat_block
from .language.errors import described, located
from .language.values.literals import known_integer
from .types import ScalarType, u8, u32

__all__ = ["Ring", "Stage", "Tile", "copy"]

SPANS = (128, 64, 32, 16)
"""Bytes of a row of a slab, which are the swizzles' names; 16 is none."""
_PERIOD = 8
"""Rows after which a swizzle repeats, which a tile's address must be a multiple of."""


class Tile:
    """``rows`` x ``columns`` elements at ``place``, a pointer into shared memory, whose type is theirs.

    Args:
        place: a pointer, aligned to 8 rows of a slab: 1024 bytes with swizzle 128, 512 with 64, 256 with 32.
        rows: a multiple of 8.
        columns: a multiple of what a slab has: of 64 elements of 16 bits with swizzle 128.
        swizzle: 128, 64, 32, 16 (slabs of 16 bytes, not swizzled), or 0: a plain matrix.
        pitch: with swizzle 0, the elements from one row to the next.

    ``tile.T`` is its transpose, another view of the same memory; ``tile.part(...)`` some rows and columns of it.
    A wrong shape is an error at its line while tracing.

    >>> from ptxdsl import dynamic_shared, f16, ptx_kernel
    >>> from ptxdsl.tiles import Tile
    >>> @ptx_kernel
    ... def kernel():
    ...     tile = Tile(dynamic_shared(f16, align=1024), 128, 64)
    ...     print(tile, tile.nbytes, tile.box, tile.T.shape)
    >>> _ = kernel.ptx()
    <tile of f16 128 x 64, swizzle 128> 16384 (128, 64) (64, 128)
    """

    def __init__(self, place: Any, rows: int, columns: int, swizzle: int = 128, *, pitch: int | None = None) -> None:
        if not isinstance(place, Pointer) or place.space != "shared":
            raise located(
                PtxTypeError, f"a tile lies in shared memory, not at {described(place)}",
                "`Tile(dynamic_shared(f16, align=1024), 128, 64)`",
            )
        self.dtype: ScalarType = place.dtype
        self.place, self.swizzle = place, swizzle
        self.shape = _extent("rows", rows), _extent("columns", columns)
        self.whole = self.shape
        """The shape of the tile that this one is a part of, as it lies in memory."""
        self.origin: tuple[Any, int] = (0, 0)
        """Row and column of that where this one begins."""
        self.transposed = False
        if swizzle:
            self._check_slabs(pitch)
        elif pitch is not None and _extent("elements of a pitch", pitch) < columns:
            raise located(PtxTypeError, f"rows of {columns} elements, {pitch} apart", f"`pitch={columns}` or more")
        self.pitch = pitch or columns
        self._check_alignment()

    def _check_slabs(self, pitch: int | None) -> None:
        rows, columns = self.shape
        if self.swizzle not in SPANS:
            raise located(
                PtxTypeError, f"swizzle {described(self.swizzle)}",
                "128, 64 or 32 bytes, as its tensor map has; 16 for slabs without one, 0 for a plain matrix",
            )
        if pitch is not None:
            raise located(PtxTypeError, "a swizzled tile has no pitch", "`swizzle=0`, or leave `pitch` out")
        if rows % _PERIOD:
            raise located(PtxTypeError, f"a tile of {rows} rows", "a multiple of 8, after which swizzles repeat")
        if columns % self.slab:
            fitting = [span for span in SPANS if columns * self.dtype.bytes % span == 0]
            raise located(
                PtxTypeError,
                f"rows of {columns} {self.dtype} have {columns * self.dtype.bytes} bytes, no multiple of the "
                f"{self.swizzle} of the swizzle",
                f"`swizzle={fitting[0]}`, in the tensor map too, or a multiple of {self.slab} columns" if fitting
                else f"a multiple of {self.slab} columns",
            )

    def _check_alignment(self) -> None:
        """A tile's address, where it is known, must be a multiple of what its swizzle repeats after."""
        wanted = _PERIOD * self.swizzle
        base = self.place.base
        if isinstance(base, Value) or not self.swizzle:
            return
        trace = current()
        declared = next(
            (v for v in (*trace.variables, *trace.module_variables) if v.name == base.symbol.symbol), None
        )
        has = gcd(declared.align or 1, self.place.offset) if declared else wanted
        if has % wanted:
            raise located(
                PtxTypeError, f"a tile of swizzle {self.swizzle} lies at a multiple of {wanted} bytes, not of {has}",
                f"`align={wanted}` where its memory is declared, and tiles one behind the other"
            )

    def __repr__(self) -> str:
        swizzled = f"swizzle {self.swizzle}" if self.swizzle else f"{self.pitch} apart"
        return f"<tile of {self.dtype} {self.shape[0]} x {self.shape[1]}, {swizzled}{', transposed' * self.transposed}>"

    @property
    def slab(self) -> int:
        """Columns of a slab; all of a plain matrix."""
        return self.swizzle // self.dtype.bytes if self.swizzle else self.whole[1]

    @property
    def nbytes(self) -> int:
        """The bytes that a copy of it brings."""
        rows, columns = self.shape
        return rows * columns * self.dtype.bytes

    @property
    def box(self) -> tuple[int, int]:
        """Rows and columns of the boxes of its tensor map, which has to have the same swizzle."""
        return self.stored[0], min(self.stored[1], self.slab)

    @property
    def stored(self) -> tuple[int, int]:
        """The shape as it lies in memory: columns are contiguous."""
        rows, columns = self.shape
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def slab_bytes(self) -> int:
        """From one slab to the next."""
        return self.whole[0] * self.swizzle

    @property
    def T(self) -> Tile:  # noqa: N802 -- as numpy has it
        """The transpose, of the same memory."""
        return self._view(self.shape[::-1], self.origin, not self.transposed)

    def cast(self, dtype: ScalarType) -> Tile:
        """The same memory as elements of another type of the same size: f32 as tf32, u8 as e4m3."""
        if not isinstance(dtype, ScalarType) or dtype.bytes != self.dtype.bytes:
            raise located(
                PtxTypeError,
                f"elements of {self.dtype} as {dtype if isinstance(dtype, ScalarType) else described(dtype)}",
                "a type of the same size: f32 as tf32, u8 as e4m3",
            )
        found = self._view(self.shape, self.origin, self.transposed)
        found.dtype, found.place = dtype, self.place.cast(dtype)
        return found

    def part(self, rows: int, columns: int, row: Any = 0, column: Any = 0) -> Tile:
        """``rows`` x ``columns`` elements of it from (``row``, ``column``) on.

        The rows as they lie in memory may begin at a u32, a multiple of 8; the rest is known while tracing.
        """
        extents = _extent("rows", rows), _extent("columns", columns)
        starts = (column, row) if self.transposed else (row, column)
        for start, extent, all_ in zip((row, column), extents, self.shape):
            known = known_integer(start)
            if known is not None and not 0 <= known <= all_ - extent:
                raise located(
                    PtxTypeError, f"{extent} from {known} on are not within the {all_} of {self!r}", "a part within it"
                )
        if known_integer(starts[1]) is None:
            raise located(
                PtxTypeError, f"a part of a tile that begins at column {described(starts[1])} of its memory",
                "an int; only the rows of a tile may begin at a u32",
            )
        if not isinstance(starts[0], Value) and known_integer(starts[0]) is None:
            raise located(PtxTypeError, f"a part that begins at row {described(starts[0])}", "an int or a u32")
        return self._view(extents, (_plus(self.origin[0], starts[0]), self.origin[1] + starts[1]), self.transposed)

    def _view(self, shape: tuple[int, int], origin: tuple[Any, int], transposed: bool) -> Tile:
        found = Tile.__new__(Tile)
        found.__dict__.update(self.__dict__)
        found.shape, found.origin, found.transposed = shape, origin, transposed
        return found

    def at(self, row: Any, column: Any) -> Any:
        """The address of an element; both may be u32. Vectors and ldmatrix take 16 bytes from a multiple of 16 on."""
        row, column = (
            self._index(what, number, extent)
            for what, number, extent in zip(("row", "column"), (row, column), self.shape)
        )
        if self.transposed:
            row, column = column, row
        return self.element(row, column)

    def _index(self, what: str, number: Any, extent: int) -> Any:
        """A row or column, which must be one of the tile where that is known."""
        if isinstance(number, Value):
            return number
        known = known_integer(number)
        if known is None or not 0 <= known < extent:
            raise located(
                PtxTypeError, f"{what} {described(number) if known is None else known} of {self!r}",
                f"an int from 0 to {extent - 1}, or a u32",
            )
        return known

    def element(self, row: Any, column: Any) -> Any:
        """The same by the row and column that it has in memory."""
        row, column = _plus(self.origin[0], row), _plus(self.origin[1], column)
        size = self.dtype.bytes
        place = self.place.cast(u8)
        if not self.swizzle:
            return (place + (row * self.pitch + column) * size).cast(self.dtype)
        line = row * self.swizzle
        slab, within = divmod(column, self.slab) if isinstance(column, int) else (
            column // self.slab, column % self.slab
        )
        start = slab * self.slab_bytes if self.whole[1] > self.slab else 0
        turned, inside = self.turned(line), within * size
        return (place + (_plus(line, start) + (inside if turned is None else turned ^ inside))).cast(self.dtype)

    def offset(self, row: int, column: int) -> int:
        """The bytes from ``place`` to an element before swizzling, without a row of the origin that is a u32."""
        if self.transposed:
            row, column = column, row
        slab, within = divmod(self.origin[1] + column, self.slab)
        row += self.origin[0] if isinstance(self.origin[0], int) else 0
        return slab * self.slab_bytes + row * self.swizzle + within * self.dtype.bytes

    def turned(self, line: Any) -> Any:
        """The bits of an address that the swizzle inverts in the row that begins at ``line``, or None without one."""
        spread = SWIZZLES.get(f"{self.swizzle}B")
        if spread is None:
            return None
        return (line >> 7 - spread.low) & (((1 << spread.bits) - 1) << spread.low)


class Stage:
    """A stage of a ring: its number, an int or a u32, of so many."""

    def __init__(self, index: Any, stages: int) -> None:
        self.index, self.stages = index, stages


class Ring:
    """``count`` tiles one behind the other: ``ring[i]`` by an int or a u32, ``ring[slot]`` of a `Pipeline`.

    >>> from ptxdsl import dynamic_shared, f16, ptx_kernel
    >>> from ptxdsl.tiles import Ring
    >>> @ptx_kernel
    ... def kernel():
    ...     a = Ring(dynamic_shared(f16, align=1024), 3, 128, 64)
    ...     b = Ring(a.end, 3, 256, 64)
    ...     print(a[2], b.nbytes)
    >>> _ = kernel.ptx()
    <tile of f16 128 x 64, swizzle 128> 98304
    """

    def __init__(
        self, place: Any, count: int, rows: int, columns: int, swizzle: int = 128, *, pitch: int | None = None
    ) -> None:
        self.first = Tile(place, rows, columns, swizzle, pitch=pitch)
        self.count = _extent("tiles", count)
        self.step = rows * self.first.pitch
        """Elements from one tile to the next."""
        self[self.count - 1]

    @property
    def nbytes(self) -> int:
        """The bytes of all of them."""
        return self.count * self.step * self.first.dtype.bytes

    @property
    def end(self) -> Any:
        """A pointer to what lies behind the last one."""
        return self.first.place + self.count * self.step

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, stage: Any) -> Tile:
        if isinstance(stage, Stage):
            if stage.stages != self.count:
                raise located(
                    PtxTypeError, f"a ring of {self.count} tiles for a pipeline of {stage.stages} stages",
                    f"`Ring(place, {stage.stages}, ...)`",
                )
            stage = stage.index
        known = known_integer(stage)
        if known is None and not isinstance(stage, Value):
            raise located(PtxTypeError, f"tile {described(stage)} of a ring", "the stage: an int or a u32")
        if known is not None and not 0 <= known < self.count:
            raise located(PtxTypeError, f"tile {known} of a ring of {self.count}", f"0 to {self.count - 1}")
        found = self.first._view(self.first.shape, (0, 0), False)
        found.place = self.first.place + (stage if known is None else known) * self.step
        found._check_alignment()
        return found


_PIECE = 16
"""Bytes of a copy of one thread."""


def copy(tile: Tile, source: Any, row: Any, column: Any, *, threads: int, thread: Any = None) -> None:
    """Copy ``source[row:, column:]`` to all of a tile by ``cp.async``, 16 bytes at a time, and 0 beyond its edges.

    By ``threads`` threads together, of which ``thread`` (u32) is the number of this one, ``%tid.x`` by default. Rows
    of the view must begin at multiples of 16 bytes, and ``column`` be a multiple of as many elements. The copies are
    waited for by ``cp.async.commit_group`` and ``wait_group``, or by ``slot.commit(copies=True)``.

    >>> import numpy as np
    >>> from ptxdsl import Array, dynamic_shared, f16, ptx, ptx_kernel, tiles
    >>> @ptx_kernel
    ... def transpose(x: Array[f16, 2], y: Array[f16, 2]):
    ...     tile = tiles.Tile(dynamic_shared(f16, align=1024), 32, 64)
    ...     tiles.copy(tile, x, 0, 0, threads=32)
    ...     ptx.cp.async_.wait_all()
    ...     ptx.bar.sync(0)
    ...     for i in range(64):
    ...         y[i, ptx.tid.x] = tile.at(ptx.tid.x, i)[0]
    >>> x, y = np.arange(2048, dtype=np.float16).reshape(32, 64), np.zeros((64, 32), np.float16)
    >>> transpose.configure(1, 32, shared=4096)(x, y)
    >>> bool((y == x.T).all())
    True
    """
    view, size = _view_of(tile, source), tile.dtype.bytes
    rows, columns = tile.shape
    per_row = columns * size // _PIECE
    count = _extent("threads", threads)
    if columns * size % _PIECE or rows * per_row % count:
        raise located(
            PtxTypeError, f"{rows} rows of {columns * size} bytes copied by {count} threads, 16 bytes at a time",
            "as many threads, or a part of them, as it has pieces of 16 bytes",
        )
    each = _PIECE // size
    if thread is None:
        needs_flat_block("tiles.copy")
    mine = ptx.tid.x if thread is None else thread
    # Whether a thread goes on in the same row or at the same place of another, which takes no division each time.
    same = count % per_row == 0 or per_row % count == 0
    first, piece = (mine // per_row, mine % per_row) if per_row > 1 else (mine, 0)
    for number in range(rows * per_row // count):
        down, along = divmod(number * count, per_row)
        y, at = _plus(first, down), _plus(piece, along)
        if number and not same:
            y, at = (mine + number * count) // per_row, (mine + number * count) % per_row
        x = _plus(column, at * each)
        i = _plus(row, y)
        left = select(x < view.shape[1], minimum((view.shape[1] - x) * size, _PIECE), 0)
        used = select(i < view.shape[0], left, 0)
        to = tile.element(y, at * each).cast(u8)
        ptx.cp.async_.cg.shared.global_(to, view.at(i, x).cast(u8), _PIECE, used)


def _view_of(tile: Any, source: Any) -> Any:
    if not isinstance(tile, Tile) or tile.transposed:
        got = repr(tile) if isinstance(tile, Tile) else described(tile)
        raise located(PtxTypeError, f"a copy to {got}", "a Tile as it is stored, without `.T`")
    if not isinstance(source, View) or source.space != "global" or len(source.shape) != 2:
        raise located(PtxTypeError, f"a copy of {described(source)}", "a matrix: a parameter `a: Array[f16, 2]`")
    if source.dtype is not tile.dtype:
        raise located(
            PtxTypeError, f"a copy of {source.dtype} to {tile!r}", f"`tile.cast({source.dtype})` where the sizes agree"
        )
    return source


def _extent(what: str, value: Any) -> int:
    known = known_integer(value)
    if known is None or known < 1:
        raise located(
            PtxTypeError, f"{described(value)} {what} of a tile",
            "a positive int: a compile-time constant, `*, tile=64`",
        )
    return known


def _plus(a: Any, b: Any) -> Any:
    """The sum, without an instruction where one of them is 0."""
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    for value in (a, b):
        if isinstance(value, Value) and value.type is not u32:
            raise located(PtxTypeError, f"a row or column is a u32, not {value.type}", "`.to(u32)`")
    return a + b
