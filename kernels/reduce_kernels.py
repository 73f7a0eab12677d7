"""The kernels of reductions: along rows, along columns, and of what several blocks have reduced.

An array is taken as [outer, n, inner], of which n is reduced. With inner = 1 lanes go along a row, 16 bytes a load and
four loads in flight each; else a thread goes down a column, or as many columns as are 16 bytes. Where few blocks would
be at work, n is split among several, which write their states, and a second kernel combines these. The order in which
elements are combined depends on the shape and, along rows, on where they begin within 16 bytes; on nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import Kernel, Ptr, ScalarType, loop, minimum, ptx, ptx_kernel, reg, s64, select, shared, u32, u64, when
from .. import warp

from . import storage
from .reduce_operations import Operation, operation

__all__ = ["COLUMN_LANES", "THREADS", "column_kernel", "merge_kernel", "row_kernel"]

THREADS = 256
COLUMN_LANES = (32, 4)
"""Threads of a block that lie side by side, in wide arrays and in narrow ones."""


class _State:
    """What a thread has reduced so far, in registers."""

    def __init__(self, op: Operation, index: ScalarType = u32) -> None:
        self.op = op
        self.registers = [reg(op.state, op.neutral)]
        if op.indexed:
            self.registers.append(reg(index, 0))

    def add(self, element: Any, index: Any) -> None:
        self.combine([self.op.lift(element), index] if self.op.indexed else [self.op.lift(element)])

    def combine(self, other: list[Any]) -> None:
        for register, value in zip(self.registers, self.op.combine(list(self.registers), other)):
            register.set(value)

    def add_all(self, elements: list[Any], index: Any) -> None:
        """Elements that follow one another: pairwise, so that sums are as short as they can be."""
        lifted = map(self.op.lift, elements)
        states = [[v, index + i] if self.op.indexed else [v] for i, v in enumerate(lifted)]
        while len(states) > 1:
            states = [self.op.combine(*states[i : i + 2]) for i in range(0, len(states), 2)]
        self.combine(states[0])

    def across_lanes(self, lanes: int) -> None:
        """Each of so many neighbouring lanes gets the state of all."""
        distance = 1
        while distance < lanes:
            self.combine([warp.shuffle_xor(register.copy(), distance, lanes) for register in self.registers])
            distance *= 2

    def across_block(self) -> None:
        """The first warp gets the state of all threads."""
        self.across_lanes(32)
        parts = [shared(register.type, THREADS // 32) for register in self.registers]
        with when(ptx.tid.x & 31 == 0):
            for part, register in zip(parts, self.registers):
                part[ptx.tid.x >> 5] = register
        ptx.bar.sync(0)
        for part, register in zip(parts, self.registers):
            register.set(part[ptx.tid.x & (THREADS // 32 - 1)])
        self.across_lanes(THREADS // 32)

    def across(self, lanes: int) -> None:
        """The first of so many threads gets the state of all."""
        if lanes > 32:
            self.across_block()
        else:
            self.across_lanes(lanes)

    def store(self, values: Any, indices: Any, at: Any, count: Any, finished: bool) -> None:
        """The result, or the state, where it goes on to be combined."""
        index = self.registers[1].to(s64) if self.op.indexed else None
        if not finished:
            values[at] = self.registers[0]
            if index is not None:
                indices[at] = index
            return
        values[at] = index if index is not None else storage.narrowed(
            self.op.finish(list(self.registers), count), self.op.result
        )


@cache
def row_kernel(name: str, dtype: ScalarType, lanes: int, finished: bool) -> Kernel:
    """So many lanes a row, ``THREADS // lanes`` rows a block; along y of the grid, chunks of the rows."""
    op = operation(name, dtype)
    target = storage.in_memory(op.result) if finished else op.state
    index_type = s64 if op.indexed else target
    stored = storage.in_memory(dtype)
    label = f"reduce_{name}_rows_{dtype}_{lanes}{'' if finished else '_states'}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(
        x: Ptr[stored], values: Ptr[target], indices: Ptr[index_type], rows: u64, n: u64, chunk: u32,
        total: u64,
    ) -> None:
        row = ptx.mad.wide.u32(ptx.ctaid.x, THREADS // lanes, (ptx.tid.x // lanes).to(u64))
        start = ptx.mul.wide.u32(ptx.ctaid.y, chunk)
        count = select(row < rows, minimum(n - start, chunk.to(u64)), 0).to(u32)
        state = _State(op)
        source = x + (select(row < rows, row * n, 0) + start)
        storage.along(source, count, dtype, ptx.tid.x % lanes, lanes, state.add, state.add_all)
        state.across(lanes)
        with when((row < rows) & (ptx.tid.x % lanes == 0)):
            if op.indexed:
                state.registers[1] = state.registers[1].to(u64) + start
            state.store(values, indices, row * ptx.nctaid.y.to(u64) + ptx.ctaid.y.to(u64), total, finished)

    return kernel


@cache
def column_kernel(name: str, dtype: ScalarType, lanes: int, columns: int, finished: bool) -> Kernel:
    """So many lanes side by side, each with so many columns (1, or 16 bytes); along y of the grid, chunks of rows."""
    op = operation(name, dtype)
    target = storage.in_memory(op.result) if finished else op.state
    index_type = s64 if op.indexed else target
    wide, rows = lanes * columns, THREADS // lanes
    stored = storage.in_memory(dtype)
    label = f"reduce_{name}_columns_{dtype}_{lanes}x{columns}{'' if finished else '_states'}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(
        x: Ptr[stored], values: Ptr[target], indices: Ptr[index_type], inner: u32, groups: u32, n: u64, chunk: u32,
        total: u64,
    ) -> None:
        outer, column = ptx.ctaid.x // groups, ptx.ctaid.x % groups * wide
        start = ptx.mul.wide.u32(ptx.ctaid.y, chunk)
        count = minimum(n - start, chunk.to(u64)).to(u32)
        mine, first = column + ptx.tid.x % lanes * columns, ptx.tid.x // lanes
        states = [_State(op) for _ in range(columns)]
        with when(mine < inner):
            body = x + ((outer.to(u64) * n + start) * inner.to(u64) + mine.to(u64))
            _down(states, body, count, inner, dtype, first, rows)

        # One row of threads after the other: the order of the sums is that of the array's rows.
        parts = [shared(register.type, rows, wide) for register in states[0].registers]
        for i, state in enumerate(states):
            for part, register in zip(parts, state.registers):
                part[first, ptx.tid.x % lanes * columns + i] = register
        ptx.bar.sync(0)
        with loop(ptx.tid.x, minimum(inner - column, wide), THREADS) as at:
            state = _State(op)
            for row in range(rows):
                state.combine([part[row, at] for part in parts])
            if op.indexed:
                state.registers[1] = state.registers[1].to(u64) + start
            place = (outer.to(u64) * ptx.nctaid.y.to(u64) + ptx.ctaid.y.to(u64)) * inner.to(u64)
            state.store(values, indices, place + (column + at).to(u64), total, finished)

    return kernel


def _down(
    states: list[_State], body: Any, count: Any, inner: Any, dtype: ScalarType, first: Any, rows: int
) -> None:
    """Add the rows first, first + rows, ... of a thread's columns to its states."""
    def load(row: Any) -> list[Any]:
        at = body + ptx.mul.wide.u32(row, inner)
        return [storage.widened(at[0], dtype)] if len(states) == 1 else storage.load_vector(at, 0, dtype)

    step = rows * storage.IN_FLIGHT
    whole = count - count % step
    with loop(first, whole + first, step) as row:
        loaded = [load(row + number * rows) for number in range(storage.IN_FLIGHT)]
        for number, elements in enumerate(loaded):
            for state, element in zip(states, elements):
                state.add(element, row + number * rows)
    with loop(whole + first, count, rows) as row:
        for state, element in zip(states, load(row)):
            state.add(element, row)


@cache
def merge_kernel(name: str, dtype: ScalarType, lanes: int, finished: bool) -> Kernel:
    """Combine states [outer, n, inner] along n: a thread or a block for each result."""
    op = operation(name, dtype)
    target = storage.in_memory(op.result) if finished else op.state
    index_type = s64 if op.indexed else target
    kind, place_type = op.state, s64 if op.indexed else op.state

    @ptx_kernel(name=f"reduce_{name}_merge_{dtype}_{lanes}{'' if finished else '_states'}", reqntid=THREADS)
    def kernel(
        states: Ptr[kind], places: Ptr[place_type], values: Ptr[target], indices: Ptr[index_type], results: u64,
        inner: u64, n: u32, count: u64,
    ) -> None:
        result = ptx.mad.wide.u32(ptx.ctaid.x, THREADS // lanes, (ptx.tid.x // lanes).to(u64))
        state = _State(op, s64)
        with when(result < results):
            first = result // inner * n.to(u64) * inner + result % inner
            with loop(ptx.tid.x % lanes, n, lanes) as i:
                at = first + i.to(u64) * inner
                state.combine([states[at], places[at]] if op.indexed else [states[at]])
        state.across(lanes)
        with when((result < results) & (ptx.tid.x % lanes == 0)):
            state.store(values, indices, result, count, finished)

    return kernel
