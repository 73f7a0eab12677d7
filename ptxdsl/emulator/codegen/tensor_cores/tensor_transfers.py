"""Code of loads and stores of tensor memory: in a loop over the steps of a shape, shuffles of neighbouring lanes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....isa import lookup
from ... import semantics
from ...instructions.tensor_cores.tensor_transfers import (
    STEPS, Step, TensorCompression, TensorLoad, TensorStore, TensorWait,
)
from ...machine.layout import LANES, Warp
from ...machine.status import Fault
from ...semantics.lanes import Bits
from ...semantics.sparse import rank_of_f32, two_of_four
from ..data import put, slots_of, source
from ..handler import Handler, i32, lanes_of, pointer
from ..registry import emits
from .tensor_cells import TensorCells, issued, split
from .tensor_flight import Flight, stores_complete
from ..warp import Members

__all__ = ["Transfer", "lane_cells", "selected"]

words = lanes_of(i32)
_VECTOR = 4 * LANES


class Transfer:
    """The cells of an instruction, checked; the fields behind its address are left to be read."""

    def __init__(self, h: Handler, op: Any, shape: str, packed: bool, count: int) -> None:
        self.h, self.step = h, STEPS[shape]
        self.group = Members(h, op.guard, op.masked)
        self.writes = isinstance(op, TensorStore)
        self.address = source(h, op.address, LANES)
        self.offset, self.half = h.field(), h.field()
        self.apart = 1 + packed
        """Columns of a register's cell."""
        self.steps = count // self.step.registers
        self.span = self.step.columns * self.apart
        """Columns from step to step."""

    def check(self, members: Any) -> None:
        """Check lanes and columns, behind the last field of the record."""
        h, step = self.h, self.step
        self.group.check(members)
        self.group.check_whole()
        lanes, cells = self.group.lanes, TensorCells(h)
        base = h.ir.extract_element(self.address, h.i32(0))
        same = h.full(h.mask(h.ir.icmp_unsigned("==", self.address, h.splat(base))))
        h.branch_unless(same, lambda: cells.fault(Fault.TENSOR_ADDRESS, lanes))
        address = h.ir.add(base, self.offset)
        self.cells, (self.lane, self.column) = cells, split(h, address)
        quarter = h.ir.shl(h.ir.and_(h.load(h.warp, Warp.INDEX, i32), h.i32(3)), h.i32(5))
        inside = h.ir.sub(self.lane, quarter)
        cells.check_lanes(address, h.zero(h.ir.and_(inside, h.i32(-1 - (32 - step.lanes)))), lanes)
        count = h.i32(self.steps * self.span)
        cells.check_columns(address, self.column, count, lanes)
        self.count = count
        self.starts = [self.column]
        if step.split:
            second = h.ir.add(self.column, self.half)
            named = h.ir.or_(h.ir.and_(address, h.i32(-1 << 16)), h.ir.and_(second, h.i32(0xFFFF)))
            cells.check_columns(named, second, count, lanes)
            self.starts.append(second)
        self.flight = Flight(h, cells, lanes, passes_own=self.writes)
        self.groups = h.ir.shl(h.i32((1 << step.lanes // 16) - 1), h.ir.lshr(self.lane, h.i32(4)))
        for start in self.starts:
            self.flight.check(cells, start, count, self.groups, writes=self.writes)

    def columns(self, number: Any) -> list[Any]:
        """The columns of a step: of each cell of a lane those that it has, one behind the other."""
        h = self.h
        first = h.ir.add(self.column, h.ir.mul(h.ir.trunc(number, i32), h.i32(self.span)))
        starts = [first] if not self.step.split else [first, h.ir.add(first, self.half)]
        return [h.ir.add(start, h.i32(n)) for start in starts for n in range(self.step.columns * self.apart)]

    @property
    def kind(self) -> ir.Type:
        return ir.VectorType(i32, self.step.lanes)


def selected(h: Handler, columns: list[Any], cells: list[tuple[int, int]]) -> Any:
    """A vector of cells, each by its column and the place there."""
    size = columns[0].type.count
    result: Any = None
    for first in range(0, len(columns), 2):
        pair = columns[first : first + 2]
        both = pair[0] if size == LANES else h.ir.shuffle_vector(pair[0], pair[-1], _numbers(range(2 * size)))
        here = [(column - first) * size + place if column in (first, first + 1) else -1 for column, place in cells]
        if result is None:
            result = h.ir.shuffle_vector(both, both, _numbers(max(0, at) for at in here))
        else:
            chosen = [LANES + at if at >= 0 else t for t, at in enumerate(here)]
            result = h.ir.shuffle_vector(result, both, _numbers(chosen))
    return result


def _numbers(values: Any) -> ir.Constant:
    found = list(values)
    return ir.Constant(ir.VectorType(i32, len(found)), found)


def _slot(h: Handler, base: Any, table: Any, number: Any) -> Any:
    """Where the register of a number lies."""
    place = h.ir.gep(h.ir.inttoptr(table, i32.as_pointer()), [number], source_etype=i32)
    return h.add(base, h.ir.load(place, align=4))


def lane_cells(step: Step, register: int) -> list[tuple[int, int]]:
    return [step.cell(t, register) for t in range(LANES)]


def _loaded(h: Handler, transfer: Transfer, number: Any) -> list[Any]:
    """The registers of a step."""
    cells, step = transfer.cells, transfer.step
    columns = [h.load(cells.cell(transfer.lane, column), 0, transfer.kind, 4) for column in transfer.columns(number)]
    found = []
    for register in range(step.registers):
        places = lane_cells(step, register)
        parts = [selected(h, columns[n :: transfer.apart], places) for n in range(transfer.apart)]
        if len(parts) == 2:
            low = h.ir.and_(parts[0], h.splat(h.i32(0xFFFF)))
            parts = [h.ir.or_(low, h.ir.shl(parts[1], h.splat(h.i32(16))))]
        found += parts
    return found


class _Reduction:
    """The least or greatest of each lane's registers, from the first one on."""

    def __init__(self, h: Handler, reduction: tuple[str, ...]) -> None:
        self.h, self.reduction = h, reduction
        self.place = h.alloca(words, 64)

    def take(self, value: Any, first: Any) -> None:
        h = self.h
        *signs, mnemonic = self.reduction
        if signs:
            value = h.ir.and_(value, h.splat(h.i32(0x7FFFFFFF)))
        form = lookup(mnemonic)[0]
        old = h.ir.select(first, value, h.ir.load(self.place, align=64))
        h.ir.store(semantics.lookup(form)(h.numbers(LANES), form, old, value), self.place, align=64)

    def result(self) -> Any:
        return self.h.ir.load(self.place, align=64)


@emits(TensorLoad)
def tensor_load(h: Handler, op: TensorLoad) -> None:
    transfer = Transfer(h, op, op.shape, op.packed, op.registers)
    table = h.field("q")
    result, = slots_of(h, (op.result,))
    transfer.check(op.members)
    reduction = _Reduction(h, op.reduction) if op.reduction else None
    per = transfer.step.registers

    def step(number: Any) -> None:
        first = h.ir.mul(number, h.i64(per))
        for register, value in enumerate(_loaded(h, transfer, number)):
            h.store(value, _slot(h, h.warp, table, h.ir.add(first, h.i64(register))), 0, 4)
            if reduction is not None:
                reduction.take(value, h.zero(number))

    h.count(h.i64(transfer.steps), 1, step)
    if reduction is not None and result is not None:
        put(h, result, reduction.result(), None)
    issued(h, "ld")
    h.next()


@emits(TensorCompression)
def tensor_compression(h: Handler, op: TensorCompression) -> None:
    transfer = Transfer(h, op, "32x32b", False, op.columns)
    table = h.field("q")
    result, = slots_of(h, (op.result,))
    transfer.check(op.members)
    reduction = _Reduction(h, op.reduction) if op.reduction else None
    lanes, masks = h.numbers(LANES), max(1, op.columns // 32)
    indices = h.alloca(ir.ArrayType(words, masks), 64)
    for number in range(masks):
        h.store(ir.Constant(words, None), h.ir.bitcast(indices, pointer), number * _VECTOR, 64)

    def group(number: Any) -> None:
        four = [_loaded(h, transfer, h.ir.add(h.ir.shl(number, h.i64(2)), h.i64(n)))[0] for n in range(4)]
        if reduction is not None:
            for n, value in enumerate(four):
                reduction.take(value, h.zero(number) if n == 0 else ir.Constant(ir.IntType(1), 0))
        codes = [Bits(lanes, value, 32) for value in four]
        kept, places = two_of_four(codes, [rank_of_f32(code, op.absolute, op.least) for code in codes])
        for n, value in enumerate(kept):
            at = h.ir.add(h.ir.shl(number, h.i64(1)), h.i64(masks + n))
            h.store(value.value, _slot(h, h.warp, table, at), 0, 4)
        shift = h.ir.trunc(h.ir.shl(h.ir.and_(number, h.i64(7)), h.i64(2)), i32)
        bits = h.ir.shl((places[0] | (places[1] << 2)).value, h.splat(shift))
        word = h.add(h.ir.bitcast(indices, pointer), h.ir.mul(h.ir.lshr(number, h.i64(3)), h.i64(_VECTOR)))
        h.store(h.ir.or_(h.load(word, 0, words, 64), bits), word, 0, 64)

    h.count(h.i64(op.columns // 4), 1, group)
    for number in range(masks):
        word = h.load(h.ir.bitcast(indices, pointer), number * _VECTOR, words, 64)
        h.store(word, _slot(h, h.warp, table, h.i64(number)), 0, 4)
    if reduction is not None and result is not None:
        put(h, result, reduction.result(), None)
    issued(h, "ld")
    h.next()


@emits(TensorStore)
def tensor_store(h: Handler, op: TensorStore) -> None:
    transfer = Transfer(h, op, op.shape, op.packed, op.registers)
    values = [source(h, kind, LANES) for kind in op.values]
    table = h.field("q") if not values else None
    transfer.check(op.members)
    cells, step, lanes, per = transfer.cells, transfer.step, transfer.step.lanes, transfer.step.registers
    if values:
        held = h.ir.bitcast(h.alloca(ir.ArrayType(words, len(values)), 64), pointer)
        for number, value in enumerate(values):
            h.store(value, held, number * _VECTOR, 64)

    def register(number: Any) -> Any:
        if values:
            return h.load(h.add(held, h.ir.mul(number, h.i64(_VECTOR))), 0, words, 64)
        return h.load(_slot(h, h.warp, table, number), 0, words, 4)

    def one(number: Any) -> None:
        first = h.ir.mul(number, h.i64(per))
        registers = [register(h.ir.add(first, h.i64(n))) for n in range(per)]
        wanted = {step.cell(t, r): (r, t) for r in range(per) for t in range(LANES)}
        for place, column in enumerate(transfer.columns(number)):
            whole, part = divmod(place, transfer.apart)
            cells_of = [wanted[whole, lane] for lane in range(lanes)]
            value = _gathered(h, registers, cells_of)
            to = cells.cell(transfer.lane, column)
            if op.packed:
                half = h.ir.lshr(value, _splat(16, lanes)) if part else h.ir.and_(value, _splat(0xFFFF, lanes))
                value = h.ir.or_(h.ir.and_(h.load(to, 0, transfer.kind, 4), _splat(-1 << 16, lanes)), half)
            h.store(value, to, 0, 4)
            cells.mark(transfer.lane, column, lanes)

    h.count(h.i64(transfer.steps), 1, one)
    transfer.flight.begin([cells], stores=True)
    for start in transfer.starts:
        transfer.flight.note(cells, start, transfer.count, transfer.groups, writes=True)
    issued(h, "st")
    h.next()


@emits(TensorWait)
def tensor_wait(h: Handler, op: TensorWait) -> None:
    group = Members(h, op.guard, op.masked)
    group.check(op.members)
    group.check_whole()
    if op.stores:
        stores_complete(h)
    h.next()


def _splat(value: int, lanes: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(i32, lanes), [value] * lanes)


def _gathered(h: Handler, registers: list[Any], cells: list[tuple[int, int]]) -> Any:
    """What registers of all lanes hold for the lanes of a column, each by its register and the lane that has it."""
    result: Any = None
    for number, value in enumerate(registers):
        here = [lane if register == number else -1 for register, lane in cells]
        if max(here) < 0:
            continue
        taken = h.ir.shuffle_vector(value, value, _numbers(max(0, at) for at in here))
        if result is None:
            result = taken
        else:
            chosen = (n + len(cells) * (at >= 0) for n, at in enumerate(here))
            result = h.ir.shuffle_vector(result, taken, _numbers(chosen))
    return result
