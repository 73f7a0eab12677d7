"""Code of bulk copies: the bytes of each lane are checked as a whole, then moved by the host's memmove.

Reductions go element by element, with the same operations as `red`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..instructions.bulk_copies import ALIGNMENT, BulkAddress, BulkMove
from ..machine.layout import LANES, Block, Cluster, Fault
from .atomics import element_at, spill, update
from .data import guard_mask, source
from .handler import Handler, byte, i1, i16, i32, i64, lanes_of, pointer
from .access import Access
from .registry import emits

__all__: list[str] = []

_CHUNK = ir.VectorType(byte, ALIGNMENT)


@emits(BulkAddress)
def bulk_address(h: Handler, op: BulkAddress) -> None:
    access = Access(h, op.address, None, 1, op.writes)
    vector = access.vector()
    mbarrier = Access(h, op.mbarrier, None, 8, True).vector() if op.mbarrier else None
    mask = guard_mask(h, op.guard, True)
    sizes = source(h, op.size, LANES)
    hosts = h.slot()
    h.skip_unless_any(mask)
    window = h.load(h.block, Block.WINDOW, i64)
    splat = h.splat

    def demand(good: Any, kind: Fault) -> None:
        bad = h.ir.and_(mask, h.ir.not_(h.mask(good)))

        def leave() -> None:
            h.store(h.ir.extract_element(vector, h.first_lane(bad)), h.block, Block.FAULT_ADDRESS)
            h.fault(kind, bad)

        h.branch_unless(h.zero(bad), leave)

    odd = h.ir.and_(sizes, splat(h.i32(ALIGNMENT - 1)))
    demand(h.ir.icmp_unsigned("==", odd, splat(h.i32(0))), Fault.BULK_SIZE)
    if op.alignment > ALIGNMENT:
        low = h.ir.and_(vector, splat(h.i64(op.alignment - 1)))
        demand(h.ir.icmp_unsigned("==", low, splat(h.i64(0))), Fault.TENSOR_SHARED)
    if op.own_block:
        demand(_same_block(h, vector, splat(window)), Fault.BULK_BLOCK)
    if mbarrier is not None:
        demand(_same_block(h, vector, mbarrier), Fault.BULK_MBARRIER)
    some = h.ir.and_(mask, h.mask(h.ir.icmp_unsigned("!=", sizes, splat(h.i32(0)))))
    h.store(h.ir.zext(sizes, lanes_of(i64)), h.block, Block.EXTENTS)
    h.store(access.resolve(some), hosts, 0)
    h.next()


def _same_block(h: Handler, a: Any, b: Any) -> Any:
    """Whether shared addresses lie in one block of the cluster."""
    bits = h.splat(h.i64(Cluster.RANK_BITS))
    return h.ir.icmp_unsigned("==", h.ir.lshr(a, bits), h.ir.lshr(b, bits))


@emits(BulkMove)
def bulk_move(h: Handler, op: BulkMove) -> None:
    mask = guard_mask(h, op.guard, True)
    sizes = source(h, op.size, LANES)
    chosen = source(h, op.byte_mask, LANES) if op.byte_mask else None
    hosts = [h.slot(), h.slot()]
    h.skip_unless_any(mask)
    places = [h.ir.bitcast(slot, i64.as_pointer()) for slot in hosts]
    counts = spill(h, sizes)
    masks = None if chosen is None else spill(h, chosen)

    def one(lane: Any) -> None:
        dest, start = (element_at(h, place, lane, i64) for place in places)
        size = h.ir.zext(element_at(h, counts, lane, i32), i64)
        if op.operation:
            _reduce(h, op, dest, start, size)
        elif masks is not None:
            _masked(h, dest, start, size, element_at(h, masks, lane, i16))
        else:
            ends = [h.ir.inttoptr(end, pointer) for end in (dest, start)]
            h.call("llvm.memmove.p0.p0.i64", ir.VoidType(), *ends, size, ir.Constant(i1, 0))

    h.for_each_lane(mask, one)
    h.next()


def _masked(h: Handler, dest: Any, start: Any, size: Any, chosen: Any) -> None:
    """Copy those of each 16 bytes whose bit is set."""
    bits = h.ir.bitcast(chosen, ir.VectorType(i1, ALIGNMENT))

    def chunk(offset: Any) -> None:
        to, of = (h.ir.inttoptr(h.ir.add(end, offset), _CHUNK.as_pointer()) for end in (dest, start))
        h.ir.store(h.ir.select(bits, h.ir.load(of, align=1), h.ir.load(to, align=1)), to, align=1)

    h.count(size, ALIGNMENT, chunk)


def _reduce(h: Handler, op: BulkMove, dest: Any, start: Any, size: Any) -> None:
    element = ir.IntType(op.bits)

    def one(offset: Any) -> None:
        to, of = (h.ir.inttoptr(h.ir.add(end, offset), element.as_pointer()) for end in (dest, start))
        value = h.ir.load(of, align=op.bits // 8)
        update(h, op, to, [value], op.host_atomic)

    h.count(size, op.bits // 8, one)
