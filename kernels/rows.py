"""A row in the registers of a warp or a block, which every function here walks through.

Each thread has vectors of 16 bytes of a row. A row that fits stays in registers between the passes over it, and all its
loads are in flight at once; a longer one is loaded again in each pass. Of a row that is no multiple of what the threads
take, those beyond its end load its last vector, and what they have does not count.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import ScalarType, loop, maximum, minimum, ptx, reg, select, when
from .. import block, warp
from . import arguments
from .storage import BYTES, load, store

__all__ = ["Chunk", "Plan", "Row", "each_row", "plan_of", "row_of"]

ROWS = 4
"""Rows of a block whose warps have one each."""
MOST_BESIDE = 4
"""Vectors of a thread up to which other arrays are held in registers, too."""


class Plan(NamedTuple):
    """``threads`` have a row, each ``steps`` vectors of ``width`` elements; any number of them where it is 0.

    ``exact`` rows have just as many elements.
    """

    threads: int
    steps: int
    width: int
    exact: bool

    @property
    def block(self) -> int:
        """Threads of a block."""
        return self.threads * self.rows

    @property
    def rows(self) -> int:
        """Rows of a block."""
        return ROWS if self.threads == 32 else 1

    def __str__(self) -> str:
        return f"{self.threads}x{self.steps}x{self.width}{'' if self.exact else 'r'}"


def plan_of(columns: int, *arrays: Any) -> Plan:
    """The plan for rows of so many elements of arrays whose last axis is contiguous.

    >>> import numpy as np
    >>> print(plan_of(4096, np.zeros(4096, np.float16)), plan_of(1001, np.zeros(1001)))
    128x4x8 256x4x1r
    """
    size = min(arguments.DTYPES[arguments.dtype_name(array)].bytes for array in arrays)
    width = BYTES // size
    if columns % width or not arguments.is_aligned(BYTES, *arrays):
        width = 1
    vectors = -(-columns // width)
    threads = 32 if vectors <= 128 else 128 if vectors <= 512 else 256 if vectors <= 2048 else 512
    each = -(-vectors // threads)
    steps = next((steps for steps in (1, 2, 4, 8) if steps >= each), 0)
    return Plan(threads, steps, width, steps == 0 or columns == threads * steps * width)


class Chunk(NamedTuple):
    """A vector of a row."""

    number: int
    """Among those of a thread; 0 of a row that is not kept."""
    at: Any
    """The element that it begins with."""
    counts: Any
    """Whether it is within the row; None where it is known to be."""
    values: list[list[Any]]
    """Its elements in each array."""


class Row:
    """A row of ``columns`` elements, of which the pointers are those to its beginning in several arrays."""

    def __init__(self, plan: Plan, columns: Any, acc: ScalarType, *pointers: Any) -> None:
        self.plan, self.columns, self.acc, self.pointers = plan, columns, acc, pointers
        thread = ptx.tid.x & 31 if plan.threads == 32 else ptx.tid.x
        self.first = thread * plan.width if plan.width > 1 else thread
        reach = plan.threads * plan.width
        self.kept = [self._chunk(self.first + step * reach, step) for step in range(plan.steps)]

    def _chunk(self, index: Any, number: int = 0) -> Chunk:
        counts = None
        if not self.plan.exact:
            counts, index = index < self.columns, minimum(index, self.columns - self.plan.width)
        return Chunk(number, index, counts, [self.load(pointer, index) for pointer in self.pointers])

    def load(self, pointer: Any, at: Any) -> list[Any]:
        """The elements of a vector of another array, in the type of the sums."""
        return [value.to(self.acc) for value in load(pointer, at, self.plan.width)]

    def beside(self, pointer: Any) -> Callable[[Chunk], list[Any]]:
        """What gives a vector's elements of another array: loaded now, with the row, where there are registers left."""
        if not 0 < self.plan.steps <= MOST_BESIDE:
            return lambda chunk: self.load(pointer, chunk.at)
        loaded = [load(pointer, chunk.at, self.plan.width) for chunk in self.kept]
        return lambda chunk: [value.to(self.acc) for value in loaded[chunk.number]]

    def visit(self, body: Callable[[Chunk], None]) -> None:
        """Call ``body`` with each vector that this thread has."""
        if self.plan.steps:
            for chunk in self.kept:
                body(chunk)
            return
        with loop(self.first, self.columns, self.plan.threads * self.plan.width) as index:
            body(self._chunk(index))

    def sums(self, terms: Callable[[Chunk], Sequence[list[Any]]], count: int = 1) -> list[Any]:
        """The sums over the row of ``count`` terms, of which ``terms`` gives those of a vector, one an element."""
        totals = [reg(self.acc, 0.0) for _ in range(count)]

        def body(chunk: Chunk) -> None:
            for total, term in zip(totals, terms(chunk)):
                part = _pairwise(operator.add, term)
                total.set(total + (part if chunk.counts is None else select(chunk.counts, part, 0.0)))

        self.visit(body)
        return [self.reduce(operator.add, total.copy()) for total in totals]

    def largest(self) -> Any:
        """The largest element of the first array's row; NaNs are passed over."""
        largest = reg(self.acc, -float("inf"))

        def body(chunk: Chunk) -> None:
            # Those beyond the end have the last vector, which does not change the result.
            largest.set(maximum(largest, _pairwise(maximum, chunk.values[0])))

        self.visit(body)
        return self.reduce(maximum, largest.copy())

    def reduce(self, op: Callable[[Any, Any], Any], value: Any) -> Any:
        """``op`` over the value of each thread that has the row."""
        return warp.reduce(op, value) if self.plan.threads == 32 else block.reduce(op, value, self.plan.threads)

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


def _pairwise(op: Callable[[Any, Any], Any], values: list[Any]) -> Any:
    while len(values) > 1:
        values = [op(*values[at : at + 2]) if at + 1 < len(values) else values[at] for at in range(0, len(values), 2)]
    return values[0]


def each_row(plan: Plan, rows: Any, body: Callable[[Any], None]) -> None:
    """Call ``body`` with the number of the row that this thread works on."""
    if plan.rows == 1:
        body(ptx.ctaid.x)
        return
    row = ptx.ctaid.x * plan.rows + (ptx.tid.x >> 5)
    with when(row < rows):
        body(row)


def row_of(pointer: Any, row: Any, columns: Any) -> Any:
    """The pointer to a row of a C-contiguous matrix."""
    return pointer + ptx.mul.wide.u32(row, columns)
