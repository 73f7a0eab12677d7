"""Code of bulk copies: the bytes of each lane are checked as a whole, then or later moved by the host's memmove.

Reductions go element by element, with the same operations as `red`.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..instructions.bulk_copies import ALIGNMENT, BulkAddress, BulkMove, BulkTrim, GroupCommit, GroupWait, MakeBulk
from ..machine.layout import LANES, Block, Cluster, Warp
from ..machine.status import Fault
from ..machine.pending import COPIES, READERS, Kind, Pending
from .atomics import element_at, spill, update
from .data import guard_mask, source
from .handler import Handler, byte, const, i1, i16, i32, i64, lanes_of, pointer
from .access import Access
from .mbarrier import count_operation
from .pending import Begun, each, faulty, make_where
from .registry import builds, emits

__all__ = ["move_bytes"]

_SWIZZLED = 1024
_CHUNK = ir.VectorType(byte, ALIGNMENT)


@emits(BulkAddress)
def bulk_address(h: Handler, op: BulkAddress) -> None:
    access = Access(h, op.address, None, 1, op.writes)
    vector = access.vector()
    mbarrier = Access(h, op.mbarrier, None, 8, True).vector() if op.mbarrier else None
    mask = guard_mask(h, op.guard, True)
    sizes = source(h, op.size, LANES)
    skipped = source(h, op.skipped, LANES) if op.skipped else None
    hosts = h.slot()
    h.skip_unless_any(mask)
    h.store(h.ir.zext(sizes, lanes_of(i64)), h.block, Block.EXTENTS)
    window = h.load(h.block, Block.WINDOW, i64)
    splat = h.splat

    def demand(good: Any, kind: Fault) -> None:
        _demand(h, mask, good, kind, vector)

    if skipped is not None:
        demand(_multiple(h, vector, ALIGNMENT), Fault.ALIGNMENT)
    elif op.bulk:
        demand(_multiple(h, sizes, ALIGNMENT), Fault.BULK_SIZE)
    if op.alignment > ALIGNMENT:
        demand(_multiple(h, vector, op.alignment), Fault.TENSOR_SHARED)
    if op.own_block:
        demand(_same_block(h, vector, splat(window)), Fault.BULK_BLOCK)
    if mbarrier is not None:
        demand(_same_block(h, vector, mbarrier), Fault.BULK_MBARRIER)
    some = h.ir.and_(mask, h.mask(h.ir.icmp_unsigned("!=", sizes, splat(h.i32(0)))))
    lanes = None if skipped is None else h.ir.add(vector, h.ir.zext(skipped, vector.type))
    h.store(access.resolve(some, lanes), hosts, 0)
    h.next()


def _demand(h: Handler, mask: Any, good: Any, kind: Fault, addresses: Any) -> None:
    bad = h.ir.and_(mask, h.ir.not_(h.mask(good)))

    def leave() -> None:
        if addresses is not None:
            h.store(h.ir.extract_element(addresses, h.first_lane(bad)), h.block, Block.FAULT_ADDRESS)
        h.fault(kind, bad)

    h.branch_unless(h.zero(bad), leave)


def _multiple(h: Handler, values: Any, unit: int) -> Any:
    """Which lanes of a vector are multiples of a power of two."""
    bits = ir.Constant(values.type, [unit - 1] * LANES)
    return h.ir.icmp_unsigned("==", h.ir.and_(values, bits), ir.Constant(values.type, None))


@emits(BulkTrim)
def bulk_trim(h: Handler, op: BulkTrim) -> None:
    mask = guard_mask(h, op.guard, True)
    size, left, right = (source(h, each, LANES) for each in (op.size, op.left, op.right))
    trimmed = h.slot()
    h.skip_unless_any(mask)
    most = h.splat(h.i32(ALIGNMENT))
    _demand(h, mask, _multiple(h, size, ALIGNMENT), Fault.BULK_SIZE, None)
    for ignored in (left, right):
        _demand(h, mask, h.ir.icmp_unsigned("<", ignored, most), Fault.BULK_IGNORED, None)
    ignored = h.ir.add(left, right)
    some = h.ir.icmp_unsigned("<", ignored, size)
    h.store(h.ir.select(some, h.ir.sub(size, ignored), h.splat(h.i32(0))), trimmed, 0)
    h.next()


def _same_block(h: Handler, a: Any, b: Any) -> Any:
    """Whether shared addresses lie in one block of the cluster."""
    bits = h.splat(h.i64(Cluster.RANK_BITS))
    return h.ir.icmp_unsigned("==", h.ir.lshr(a, bits), h.ir.lshr(b, bits))


@emits(BulkMove)
def bulk_move(h: Handler, op: BulkMove) -> None:
    routine = h.field("q")
    mask = guard_mask(h, op.guard, True)
    sizes = source(h, op.size, LANES)
    counted = source(h, op.counted, LANES) if op.counted else None
    chosen = source(h, op.byte_mask, LANES) if op.byte_mask else None
    hosts = [h.slot() for _ in range(3 if op.waits == Kind.COUNTED else 2)]
    h.skip_unless_any(mask)
    places = [h.ir.bitcast(slot, i64.as_pointer()) for slot in hosts]
    moved, room = spill(h, sizes), Begun.room_of(h, op.defers)
    counts = moved if counted is None else spill(h, counted)
    masks = None if chosen is None else spill(h, chosen)
    pace = COPIES if op.waits == Kind.COUNTED else READERS

    def one(lane: Any) -> None:
        to, start, *mbarrier = (element_at(h, place, lane, i64) for place in places)
        begun = Begun(h, room, routine, op.waits, pace, lane, mbarrier[0] if mbarrier else None, op.clustered)
        begun.put(to, Pending.TO)
        begun.put(start, Pending.SOURCE)
        begun.put(element_at(h, counts, lane, i32), Pending.NBYTES)
        begun.put(h.ir.zext(element_at(h, moved, lane, i32), i64), Pending.SIZE)
        if masks is not None:
            begun.put(h.ir.zext(element_at(h, masks, lane, i16), i32), Pending.MASK)
        begun.end()

    h.for_each_lane(mask, one)
    h.next()


@builds(MakeBulk)
def make_bulk(module: ir.Module, name: str, key: MakeBulk) -> None:
    h = Handler(module, name)
    to, start, size = (h.load(h.rec, field, i64) for field in (Pending.TO, Pending.SOURCE, Pending.SIZE))
    if key.operation:
        _reduce(h, key, to, start, size)
    elif key.masked:
        _masked(h, to, start, size, h.load(h.rec, Pending.MASK, i16))
    else:
        move_bytes(h, to, start, size)
    count_operation(h)
    h.ir.ret_void()


def move_bytes(h: Handler, to: Any, start: Any, size: Any) -> None:
    ends = [h.ir.inttoptr(end, pointer) for end in (to, start)]
    h.call("llvm.memmove.p0.p0.i64", ir.VoidType(), *ends, size, ir.Constant(i1, 0))


def _masked(h: Handler, dest: Any, start: Any, size: Any, chosen: Any) -> None:
    """Copy those of each 16 bytes whose bit is set."""
    bits = h.ir.bitcast(chosen, ir.VectorType(i1, ALIGNMENT))

    def chunk(offset: Any) -> None:
        to, of = (h.ir.inttoptr(h.ir.add(end, offset), _CHUNK.as_pointer()) for end in (dest, start))
        h.ir.store(h.ir.select(bits, h.ir.load(of, align=1), h.ir.load(to, align=1)), to, align=1)

    h.count(size, ALIGNMENT, chunk)


def _reduce(h: Handler, key: MakeBulk, dest: Any, start: Any, size: Any) -> None:
    element = ir.IntType(key.bits)

    def one(offset: Any) -> None:
        to, of = (h.ir.inttoptr(h.ir.add(end, offset), element.as_pointer()) for end in (dest, start))
        value = h.ir.load(of, align=key.bits // 8)
        update(h, key, to, [value], key.host_atomic)

    h.count(size, key.bits // 8, one)


# Groups


def _of_threads(h: Handler, operation: Any, waits: int, mask: Any) -> Any:
    """Whether an operation that ``waits`` for is of a thread of this warp in a mask."""
    same = h.ir.icmp_unsigned("==", h.load(operation, Pending.KIND, i32), h.i32(waits))
    owner = h.load(operation, Pending.OWNER, i32)
    same = h.ir.and_(same, h.ir.icmp_unsigned("==", h.ir.lshr(owner, h.i32(5)), h.load(h.warp, Warp.INDEX, i32)))
    return h.ir.and_(same, h.ir.trunc(h.ir.lshr(mask, h.ir.and_(owner, h.i32(LANES - 1))), i1))


@emits(GroupCommit)
def group_commit(h: Handler, op: GroupCommit) -> None:
    mask = guard_mask(h, op.guard, True)

    def older(operation: Any) -> None:
        with h.ir.if_then(_of_threads(h, operation, op.waits, mask)):
            h.store(h.ir.add(h.load(operation, Pending.AGE, i32), h.i32(1)), operation, Pending.AGE)

    each(h, older)
    h.next()


@emits(GroupWait)
def group_wait(h: Handler, op: GroupWait) -> None:
    mask = guard_mask(h, op.guard, True)

    def wanted(operation: Any) -> Any:
        old = h.ir.icmp_signed(">", h.load(operation, Pending.AGE, i32), h.i32(op.left))
        mine = h.asked_if(old, lambda: _of_threads(h, operation, op.waits, mask))
        if not op.sources:
            return mine
        return h.asked_if(mine, lambda: h.ir.not_(_staged(h, operation)))

    make_where(h, wanted)
    h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)
    h.next()


def _staged(h: Handler, operation: Any) -> Any:
    """Whether what an operation reads lies elsewhere, where it is copied now if there is room.

    The address stays the same modulo 1024, by which tiles are swizzled.
    """
    before = h.nonzero(h.load(operation, Pending.STAGED, i32))
    start, size = (h.load(operation, field, i64) for field in (Pending.SOURCE, Pending.SIZE))
    used = h.load(h.block, Block.STAGING_USED, i64)
    at = h.ir.add(used, h.ir.and_(start, h.i64(_SWIZZLED - 1)))
    end = h.ir.add(at, size)
    fits = h.ir.icmp_unsigned("<=", end, h.load(h.block, Block.STAGING_BYTES, i64))

    def stage() -> Any:
        place = h.ir.add(h.load(h.block, Block.STAGING, i64), at)
        move_bytes(h, place, start, size)
        h.store(place, operation, Pending.SOURCE)
        h.store(h.i32(1), operation, Pending.STAGED)
        whole = h.ir.and_(h.ir.add(end, h.i64(_SWIZZLED - 1)), h.i64(-_SWIZZLED))
        h.store(whole, h.block, Block.STAGING_USED)
        return const(i1, 1)

    return h.ir.or_(before, h.asked_if(h.ir.and_(fits, h.ir.not_(before)), stage))
