"""Loads of tensor memory that nobody has written: of each register the lanes in which it is undefined."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import TensorReadCheck
from ...machine.layout import Block
from ...machine.shadow import NOTED, Reason
from ..handler import Handler, i1, i32, i64, lanes_of, pointer
from ..registry import emits
from ..tensor_cores.tensor_transfers import Transfer, lane_cells, selected
from .epochs import ShadowState, leave

__all__: list[str] = []

_wide = lanes_of(i64)


@emits(TensorReadCheck)
def tensor_read_check(h: Handler, op: TensorReadCheck) -> None:
    transfer = Transfer(h, op, op.shape, op.packed, op.registers)
    table = h.field("q")
    transfer.check(op.members)
    marks = h.field()
    _Check(h, op, transfer, h.ir.inttoptr(table, pointer)).run()
    found = h.load(h.block, Block.EXTENTS, i32)
    noted = h.nonzero(h.ir.and_(marks, h.i32(NOTED)))
    h.branch_unless(
        h.ir.or_(noted, h.zero(found)), lambda: leave(h, ShadowState(h), Reason.DEFERRED, h.following(), found)
    )
    h.next()


class _Check:
    """Lanes that read what is unwritten go to EXTENTS, where they do to SCRATCH."""

    def __init__(self, h: Handler, op: TensorReadCheck, transfer: Transfer, table: Any) -> None:
        self.h, self.op, self.transfer, self.table = h, op, transfer, table
        self.missing = h.alloca(i32)
        self.hosts = h.add(h.block, Block.SCRATCH)

    def run(self) -> None:
        h, op, per = self.h, self.op, self.transfer.step.registers
        h.ir.store(h.i32(0), self.missing)
        h.store(h.i32(0), h.block, Block.EXTENTS)

        def step(number: Any) -> None:
            columns = self.transfer.columns(number)
            first = h.ir.mul(number, h.i64(per))
            for register in range(per):
                lanes = h.ir.not_(self.written(columns, register))
                self.note(lanes, columns, register)
                self.clear(h.ir.add(first, h.i64(register)), lanes)

        h.count(h.i64(self.transfer.steps), 1, step)
        for number in range(op.folded):
            self.clear(h.i64(op.registers + number), h.ir.load(self.missing))

    def written(self, columns: list[Any], register: int) -> Any:
        """The lanes for which a register's cells were written."""
        h, transfer = self.h, self.transfer
        lanes, places = transfer.step.lanes, lane_cells(transfer.step, register)
        kind = ir.IntType(lanes)
        bits = [h.load(transfer.cells.written(transfer.lane, column), 0, kind, 2) for column in columns]
        flags = [h.ir.bitcast(each, ir.VectorType(i1, lanes)) for each in bits]
        parts = [h.mask(selected(h, flags[n :: transfer.apart], places)) for n in range(transfer.apart)]
        return parts[0] if len(parts) == 1 else h.ir.and_(*parts)

    def note(self, lanes: Any, columns: list[Any], register: int) -> None:
        """Keep where each lane has found the first cell that nobody has written."""
        h, transfer = self.h, self.transfer
        known = h.ir.load(self.missing)
        fresh = h.ir.and_(lanes, h.ir.not_(known))
        with h.ir.if_then(h.nonzero(fresh), likely=False):
            cells = lane_cells(transfer.step, register)
            starts = [h.ir.ptrtoint(transfer.cells.cell(transfer.lane, c), i64) for c in columns[:: transfer.apart]]
            hosts = ir.Constant(_wide, [4 * lane for _, lane in cells])
            for column, start in enumerate(starts):
                mine = ir.Constant(lanes_of(i1), [int(column == of) for of, _ in cells])
                hosts = h.ir.add(hosts, h.ir.select(mine, h.splat(start), ir.Constant(_wide, None)))
            old = h.load(self.hosts, 0, _wide, 64)
            h.store(h.ir.select(h.bools(fresh), hosts, old), self.hosts, 0, 64)
        h.ir.store(h.ir.or_(known, lanes), self.missing)

    def clear(self, number: Any, lanes: Any) -> None:
        """The register of a number, which some predicate may be of, is undefined in these lanes."""
        h = self.h
        offset = h.load(h.add(self.table, h.ir.shl(number, h.i64(2))), 0, i32)
        with h.ir.if_then(h.ir.icmp_signed(">=", offset, h.i32(0))):
            slot = h.add(h.warp, offset)
            h.store(h.ir.and_(h.load(slot, 0, i32), h.ir.not_(lanes)), slot, 0)
            found = h.load(h.block, Block.EXTENTS, i32)
            h.store(h.ir.or_(found, lanes), h.block, Block.EXTENTS)

