"""A row in the registers of a warp, a block or a cluster, which every function here walks through.

Each thread has vectors of 16 bytes of a row. A row that fits stays in registers between the passes over it, and all its
loads are in flight at once; a longer one is loaded again in each pass, a few vectors at a time. Of a row that is no
multiple of what the threads take, those beyond its end load its last vector, and what they have does not count.

The blocks of a cluster share a row that one block cannot hold, or of which there are too few to keep the
multiprocessors busy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import ScalarType, cdiv, loop, maximum, ptx, reg, select, when
from .. import warp
from . import arguments
from .blocks import MOST, Blocks, has_clusters, options, pairwise, spread
from .storage import BYTES, load_packed, store, unpacked

__all__ = ["Chunk", "Plan", "Row", "each_row", "plan_of", "row_of"]

ROWS = 4
"""Rows of a block whose warps have one each."""
MOST_BESIDE = 4
"""Vectors of a thread up to which other arrays are held in registers, too."""
_REGISTERS = 64
"""Those of a thread for the numbers of its rows, at most: with more of them, blocks of ``_WIDEST`` threads spill."""
_WIDEST = 512
"""Threads of the largest block."""
_IN_FLIGHT = 4
"""Vectors that a thread loads at once of rows that are not kept."""


class Plan(NamedTuple):
    """``threads`` of a block have a row, each ``steps`` vectors of ``width`` elements; any number where it is 0.

    ``exact`` rows have just as many elements. ``blocks`` are those of a cluster that share a row.
    """

    threads: int
    steps: int
    width: int
    exact: bool
    blocks: int = 1

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return ROWS if self.threads == 32 else 1

    @property
    def reach(self) -> int:
        """Elements from one vector of a thread to its next."""
        return self.blocks * self.threads * self.width

    @property
    def options(self) -> dict[str, Any]:
        """What a kernel for the plan is declared with."""
        return {"reqntid": self.block, **options(self.blocks)}

    def grid(self, rows: int) -> int:
        """Blocks of a launch for so many rows."""
        return cdiv(rows, self.rows) * self.blocks

    def __str__(self) -> str:
        shared = f"_by_{self.blocks}" if self.blocks > 1 else ""
        return f"{self.threads}x{self.steps}x{self.width}{'' if self.exact else 'r'}{shared}"


def plan_of(columns: int, *arrays: Any, rows: int | None = None, held: int = 1) -> Plan:
    """The plan for rows of so many elements of arrays whose last axis is contiguous.

    There are ``rows`` of them, or many where it is None; ``held`` arrays have theirs in registers.

    >>> import numpy as np
    >>> from ptxdsl import use
    >>> print(plan_of(4096, np.zeros(4096, np.float16)), plan_of(1001, np.zeros(1001)))
    128x4x8 256x4x1r
    >>> with use("emulator"):
    ...     print(plan_of(102400, np.zeros(8, np.float16), rows=4))
    512x4x8r_by_8
    """
    sizes = [arguments.DTYPES[arguments.dtype_name(array)].bytes for array in arrays]
    width = BYTES // min(sizes)
    if columns % width or not arguments.is_aligned(BYTES, *arrays):
        width = 1
    vectors = -(-columns // width)
    most = max(1, min(8, _REGISTERS // (held * width * max(1, max(sizes) // 4))))
    blocks = _blocks(vectors, most, rows)
    if blocks > 1:
        threads = _WIDEST
    else:
        threads = 32 if vectors <= 128 else 128 if vectors <= 512 else 256 if vectors <= 256 * most else _WIDEST
    each = -(-vectors // (threads * blocks))
    steps = next((steps for steps in (1, 2, 4, 8) if most >= steps >= each), 0)
    return Plan(threads, steps, width, columns == blocks * threads * steps * width, blocks)


def _blocks(vectors: int, most: int, rows: int | None) -> int:
    """The blocks that share a row: those that hold it, and more of them while that leaves multiprocessors idle."""
    blocks = 1
    while vectors > blocks * _WIDEST * most and blocks < MOST and has_clusters():
        blocks *= 2
    return blocks if rows is None else spread(rows, vectors, blocks)


class Chunk(NamedTuple):
    """A vector of a row."""

    number: int
    """Among those of a thread; 0 of a row that is not kept."""
    at: Any
    """The element that it begins with."""
    counts: Any
    """Whether it is within the row; None where it is known to be."""
    values: list[list[Any]]
    """Its elements in each array; before :meth:`Row.visit` the words that hold them."""


class Row:
    """A row of ``columns`` elements, of which the pointers are those to its beginning in several arrays."""

    def __init__(self, plan: Plan, columns: Any, acc: ScalarType, *pointers: Any) -> None:
        self.plan, self.columns, self.acc, self.pointers = plan, columns, acc, pointers
        self.blocks = Blocks(plan.blocks, plan.threads) if plan.threads > 32 else None
        thread = ptx.tid.x & 31 if self.blocks is None else self.blocks.thread
        self.first = thread * plan.width if plan.width > 1 else thread
        self.kept = self._chunks(self.first, plan.steps, columns - plan.width)

    def _chunks(self, first: Any, count: int, spare: Any) -> list[Chunk]:
        """So many vectors of this thread from an element on; those beyond the end have what begins with ``spare``."""
        return [self._chunk(first + step * self.plan.reach, step, spare) for step in range(count)]

    def _chunk(self, index: Any, number: int, spare: Any) -> Chunk:
        counts = None
        if not self.plan.exact:
            counts = index < self.columns
            index = select(counts, index, spare)
        return Chunk(number, index, counts, [load_packed(pointer, index, self.plan.width) for pointer in self.pointers])

    def _ready(self, chunk: Chunk) -> Chunk:
        return chunk._replace(values=[self._unpacked(words, p) for words, p in zip(chunk.values, self.pointers)])

    def load(self, pointer: Any, at: Any) -> list[Any]:
        """The elements of a vector of another array, in the type of the sums."""
        return self._unpacked(load_packed(pointer, at, self.plan.width), pointer)

    def _unpacked(self, words: list[Any], pointer: Any) -> list[Any]:
        return [value.to(self.acc) for value in unpacked(words, pointer.dtype, self.plan.width)]

    def beside(self, pointer: Any) -> Callable[[Chunk], list[Any]]:
        """What gives a vector's elements of another array: loaded now, with the row, where there are registers left."""
        if not 0 < self.plan.steps <= MOST_BESIDE:
            return lambda chunk: self.load(pointer, chunk.at)
        loaded = [load_packed(pointer, chunk.at, self.plan.width) for chunk in self.kept]
        return lambda chunk: self._unpacked(loaded[chunk.number], pointer)

    def visit(self, body: Callable[[Chunk], None]) -> None:
        """Call ``body`` with each vector that this thread has, its elements in the type of the sums.

        Until then they are as in memory: elements of 16 bits take half a register, and a pass has few unpacked at once.
        """
        if self.plan.steps:
            for chunk in self.kept:
                body(self._ready(chunk))
            return
        together = max(1, _IN_FLIGHT // len(self.pointers))
        with loop(self.first, self.columns, together * self.plan.reach) as index:
            # Beyond the end it is the thread's own first vector: no other thread overwrites that, where it is in place.
            for chunk in self._chunks(index, together, index):
                body(self._ready(chunk))

    def sums(self, terms: Callable[[Chunk], Sequence[list[Any]]], count: int = 1) -> list[Any]:
        """The sums over the row of ``count`` terms, of which ``terms`` gives those of a vector, one an element."""
        totals = [reg(self.acc, 0.0) for _ in range(count)]

        def body(chunk: Chunk) -> None:
            for total, term in zip(totals, terms(chunk)):
                part = pairwise(operator.add, term)
                total.set(total + (part if chunk.counts is None else select(chunk.counts, part, 0.0)))

        self.visit(body)
        return self.reduce(operator.add, [total.copy() for total in totals])

    def largest(self) -> Any:
        """The largest element of the first array's row; NaNs are passed over."""
        largest = reg(self.acc, -float("inf"))

        def body(chunk: Chunk) -> None:
            # Those beyond the end have the last vector, which does not change the result.
            largest.set(maximum(largest, pairwise(maximum, chunk.values[0])))

        self.visit(body)
        return self.reduce(maximum, [largest.copy()])[0]

    def reduce(self, op: Callable[[Any, Any], Any], values: list[Any]) -> list[Any]:
        """``op`` over each of the values of all threads that have the row."""
        return self.blocks.reduce(op, values) if self.blocks else [warp.reduce(op, value) for value in values]

    def write(self, results: Callable[[Chunk], Sequence[list[Any]]], *pointers: Any) -> None:
        """Store what ``results`` gives for each vector, a list for each pointer."""

        def body(chunk: Chunk) -> None:
            made = results(chunk)
            if chunk.counts is None:
                for pointer, values in zip(pointers, made):
                    store(pointer, chunk.at, values)
            else:
                with when(chunk.counts):
                    for pointer, values in zip(pointers, made):
                        store(pointer, chunk.at, values)

        if self.plan.threads == 32:
            ptx.bar.warp.sync(warp.MASK)  # a lane may store to what others have loaded, as the last vector
        self.visit(body)


def each_row(plan: Plan, rows: Any, body: Callable[[Any], None]) -> None:
    """Call ``body`` with the number of the row that this thread works on."""
    if plan.rows == 1:
        body(ptx.ctaid.x // plan.blocks if plan.blocks > 1 else ptx.ctaid.x)
        return
    row = ptx.ctaid.x * plan.rows + (ptx.tid.x >> 5)
    with when(row < rows):
        body(row)


def row_of(pointer: Any, row: Any, columns: Any) -> Any:
    """The pointer to a row of a C-contiguous matrix."""
    return pointer + ptx.mul.wide.u32(row, columns)
