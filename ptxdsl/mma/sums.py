"""Sums of a product: registers of a warp's or warpgroup's threads, and the row and column that each belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..errors import PtxTypeError
from ..isa.fragments import layout
from ..language import Value, pack, ptx, reg
from ..language.errors import described, located
from ..language.values.literals import known_integer
from ..types import ScalarType, bf16, f16, f16x2, f32, f64
from ..warp import reduce as reduce_lanes
from .fragments import Fragment, element
from .operands import SHAPES, kind_named, matrix, moved

__all__ = ["Accumulator", "Held", "accumulator"]

_LANES = 4
"""Lanes of a warp that hold the numbers of one row."""


class Held(NamedTuple):
    """A number of each thread: its row and column but for what depends on the thread, and the register it is part of.

    That is the number of the block and of the register in it: the registers themselves are held at one place.
    """

    row: int
    column: int
    block: int
    register: int
    part: int


class Accumulator:
    """Sums of a (rows, columns) matrix in the registers of some threads: a list of registers and where each belongs.

    ``registers`` are `reg`s of its type, of f16 two numbers in each (f16x2). ``for row, column, value in sums:`` goes
    through the numbers of this thread, with the row and column of the matrix (u32).
    """

    def __init__(
        self, dtype: ScalarType, shape: tuple[int, int], blocks: list[list[Any]], held: list[Held], row: Any,
        column: Any, warps: int, lanes: int = _LANES,
    ) -> None:
        self.dtype, self.shape, self.warps = dtype, shape, warps
        self.blocks = blocks
        """The registers of each instruction."""
        self._held, self._row, self._column, self._lanes = held, row, column, lanes

    def __repr__(self) -> str:
        return f"<sums of {self.dtype} {self.shape[0]} x {self.shape[1]}>"

    @property
    def registers(self) -> list[Any]:
        """All of them, block after block."""
        return [register for registers in self.blocks for register in registers]

    def _numbers(self) -> Iterator[tuple[int, int, Any, int]]:
        for row, column, block, register, part in self._held:
            yield row, column, self.blocks[block][register], part

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        for row, column, register, part in self._numbers():
            value = register.unpack(f16)[part] if self.dtype is f16 else register.copy()
            yield moved(row, self._row), moved(column, self._column), value

    def fill(self, value: Any) -> None:
        """Set each number to ``value``, a number or a value of the type."""
        if self.dtype is f16:
            value = pack(f16x2, *[value if isinstance(value, Value) else reg(f16, value).copy()] * 2)
        for register in self.registers:
            register.set(value)

    def map(self, function: Callable[[Any], Any]) -> None:
        """Replace each number by the function of it: ``sums.map(lambda v: v * scale)``. Not of f16."""
        self._single("map")
        for register in self.registers:
            register.set(function(register.copy()))

    def map_at(self, function: Callable[[Any, Any, Any], Any]) -> None:
        """Replace each number by the function of its row, its column and it: a mask."""
        self._single("map_at")
        rows = {number: moved(number, self._row) for number in self._row_numbers()}
        columns = {number: moved(number, self._column) for number in sorted({held.column for held in self._held})}
        for row, column, register, _ in self._numbers():
            register.set(function(rows[row], columns[column], register.copy()))

    def rows(self) -> list[Any]:
        """The rows of which this thread has numbers, as u32; `reduce_rows` and `map_rows` have one value for each."""
        return [moved(row, self._row) for row in self._row_numbers()]

    def _row_numbers(self) -> list[int]:
        return sorted({held.row for held in self._held})

    def reduce_rows(self, op: Callable[[Any, Any], Any]) -> list[Any]:
        """``op`` over each row of the matrix, in each thread for its own rows (see `rows`): a softmax's maxima."""
        self._single("reduce_rows")
        found: dict[int, Any] = {}
        for row, _, register, _ in self._numbers():
            value = register.copy()
            found[row] = op(found[row], value) if row in found else value
        values = [found[row] for row in self._row_numbers()]
        return values if self._lanes == 1 else [reduce_lanes(op, value, self._lanes) for value in values]

    def map_rows(self, function: Callable[[Any, Any], Any], values: list[Any]) -> None:
        """Replace each number by the function of it and of its row's value: ``sums.map_rows(operator.mul, scales)``."""
        self._single("map_rows")
        numbers = self._row_numbers()
        given = len(values) if isinstance(values, (list, tuple)) else None
        if given != len(numbers):
            raise located(
                PtxTypeError,
                f"{described(values) if given is None else f'{given} values'} for {len(numbers)} rows of a thread",
                "one for each of `sums.rows()`",
            )
        by_row = dict(zip(numbers, values))
        for row, _, register, _ in self._numbers():
            register.set(function(register.copy(), by_row[row]))

    def _single(self, what: str) -> None:
        if self.dtype is f16:
            raise located(PtxTypeError, f"`{what}` of sums of f16, two in a register", "sums of f32")

    def store(self, to: Any, row: Any = 0, column: Any = 0) -> None:
        """Store the matrix to ``to[row:, column:]``: an `Array` or another view, without what lies beyond its edges.

        Numbers are rounded to its type.
        """
        view = matrix(to, "store")
        if not all(isinstance(start, Value) or known_integer(start) is not None for start in (row, column)):
            raise located(PtxTypeError, "the matrix begins at a row and column", "ints or u32")
        rows, columns = self._inside(view, 0, row), self._inside(view, 1, column)
        for y, x, register, part in self._numbers():
            value = register.unpack(f16)[part] if self.dtype is f16 else register
            (i, below), (j, left) = rows[y], columns[x]
            view.at(i, j).store(0, value if value.type is view.dtype else value.to(view.dtype), pred=below & left)

    def _inside(self, view: Any, axis: int, start: Any) -> dict[int, tuple[Any, Any]]:
        """For the rows or columns of this thread's numbers, where they are in a view, and whether that is within it."""
        own = self._column if axis else self._row
        found = {}
        for number in sorted({held[axis] for held in self._held}):
            index = moved(start, moved(number, own))
            if not isinstance(index, Value):
                index = ptx.mov.u32(index)
            found[number] = index, index < view.shape[axis]
        return found

    def load(self, source: Any, row: Any = 0, column: Any = 0) -> None:
        """Fill it with ``source[row:, column:]``, and 0 beyond its edges."""
        self._single("load")
        view = matrix(source, "load")
        rows, columns = self._inside(view, 0, row), self._inside(view, 1, column)
        for y, x, register, _ in self._numbers():
            (i, below), (j, left) = rows[y], columns[x]
            register.set(element(view, i, j, self.dtype, below & left))

    def fragment(self, dtype: ScalarType) -> Fragment:
        """The matrix, rounded to f16 or bf16, as ``a`` of another product: no lane needs a number of another one."""
        self._single("fragment")
        if dtype not in (f16, bf16) or self.dtype is not f32 or self.shape[1] % 16 or self._lanes != _LANES:
            raise located(
                PtxTypeError, f"{self!r} as a of {kind_named(dtype)}",
                "sums of f32 with a multiple of 16 columns, as f16 or bf16",
            )
        held = {(row, column): register for row, column, register, _ in self._numbers()}
        blocks = {}
        for m, first in enumerate(sorted({row - row % 16 for row, _ in held})):
            for k in range(self.shape[1] // 16):
                pairs: dict[int, list[Any]] = {}
                for place in layout(SHAPES[16], "a", 16).places:
                    pairs.setdefault(place.register, []).append(held[first + place.row, 16 * k + place.column])
                blocks[m, k] = [_rounded(dtype, low, high) for low, high in pairs.values()]
        return Fragment("a", dtype, self.shape, blocks, self.warps)


def _rounded(dtype: ScalarType, low: Any, high: Any) -> Any:
    name = "cvt.rn.f16x2.f32" if dtype is f16 else "cvt.rn.bf16x2.f32"
    return ptx[name](high, low)


def accumulator(
    dtype: ScalarType, rows: list[int], columns: int, shape: tuple[int, int], row: Any = 0, warps: int = 1
) -> Accumulator:
    """Sums of 0: for each of ``rows`` a block of a warp that begins there, with so many columns.

    ``row`` is what depends on the warp.
    """
    own = layout(SHAPES[64] if dtype is f64 else SHAPES[16], "c", 16 if dtype is f16 else dtype.bits)
    kind = f16x2 if dtype is f16 else dtype
    per = 1 + max(place.register for place in own.places)
    blocks: list[list[Any]] = []
    held = []
    for first in rows:
        blocks.append([_zero(kind) for _ in range(columns // own.columns * per)])
        for number in range(columns // own.columns):
            held += [
                Held(
                    first + place.row, number * own.columns + place.column, len(blocks) - 1,
                    number * per + place.register, place.part,
                )
                for place in own.places
            ]
    lane = ptx.laneid
    return Accumulator(dtype, shape, blocks, held, (lane >> 2) + row, (lane & 3) * own.run, warps)


def _zero(kind: ScalarType) -> Any:
    register = reg(kind)
    ptx[f"mov.{'b32' if kind is f16x2 else kind}"](0.0 if kind.is_float and kind is not f16x2 else 0, out=register)
    return register
