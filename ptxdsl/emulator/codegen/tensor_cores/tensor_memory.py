"""Code of the allocation of tensor memory: first fit, in units of 32 columns.

A warp waits until enough columns are free. For a pair a warp of each block must do the same: the first asks, and waits
until one of the other block answers, which does it for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...instructions.tensor_cores.tensor_memory import (
    TensorAllocate, TensorDeallocate, TensorMemoryEnd, TensorRelinquish,
)
from ...machine.layout import LANES, Block, Warp
from ...machine.tensor_memory import TensorMemory
from ...machine.status import Fault
from ..access import Access
from ..atomics import element_at, spill
from ..control import wait_again
from ..data import guard_mask, source
from ..handler import Handler, i32, i64, pointer
from ..registry import emits
from .tensor_cells import TensorCells, at_most
from .tensor_flight import ALL_LANES, Flight
from ..warp import Members

__all__: list[str] = []

_UNIT = TensorMemory.UNIT
_UNIT_BITS = _UNIT.bit_length() - 1
_MOST = TensorMemory.EXCLUSIVE_COLUMNS // _UNIT


@emits(TensorAllocate, slow_path=True)
def tensor_allocate(h: Handler, op: TensorAllocate) -> None:
    access = Access(h, op.address, None, 4, True)
    group = Members(h, op.guard, op.masked)
    given = source(h, op.columns, LANES)
    group.check(op.members)
    group.check_whole()
    site = h.field()
    cells = TensorCells(h)
    columns = _same(h, cells, given, group.lanes)
    cells.use_group(op.group, group.lanes, present=False)
    h.branch_unless(
        h.zero(cells.get(TensorMemory.RELINQUISHED)), lambda: cells.fault(Fault.TENSOR_PERMIT, group.lanes)
    )
    _check_count(h, cells, op, columns, group.lanes)
    hosts = _own_shared(h, access, group.lanes)
    units = h.ir.lshr(columns, h.i32(_UNIT_BITS))

    def give() -> Any:
        return _give(h, op, cells.pair(op.group), units, site)

    if op.group == 2:
        wanted = h.ir.or_(h.ir.shl(h.ir.zext(columns, i64), h.i64(32)), h.i64(1 + op.exclusive))
        column = _together(h, cells, wanted, give, group.lanes)
    else:
        column = give()
    h.for_each_lane(
        group.lanes, lambda lane: h.store(column, h.ir.inttoptr(element_at(h, hosts, lane, i64), pointer), 0)
    )
    h.next()


def _same(h: Handler, cells: TensorCells, values: Any, lanes: Any) -> Any:
    """The number that all lanes have."""
    first = h.ir.extract_element(values, h.i32(0))
    same = h.full(h.mask(h.ir.icmp_unsigned("==", values, h.splat(first))))
    h.branch_unless(same, lambda: cells.fault(Fault.TENSOR_ADDRESS, lanes))
    return first


def _check_count(h: Handler, cells: TensorCells, op: TensorAllocate, columns: Any, lanes: Any) -> None:
    """Check that so many columns may be allocated at once."""
    most = TensorMemory.EXCLUSIVE_COLUMNS if op.exclusive else TensorMemory.COLUMNS
    odd = h.ir.and_(columns, h.i32(_UNIT - 1))
    if not op.exclusive:
        odd = h.ir.and_(columns, h.ir.sub(columns, h.i32(1)))
    above = h.ir.icmp_unsigned("<=", h.ir.sub(columns, h.i32(_UNIT)), h.i32(most - _UNIT))
    h.branch_unless(h.ir.and_(h.zero(odd), above), lambda: cells.fault(Fault.TENSOR_COUNT, lanes, columns))


def _own_shared(h: Handler, access: Access, lanes: Any) -> Any:
    """The host addresses of what is written, of each lane in memory: they lie in the block's shared memory."""
    hosts = access.hosts(lanes)
    start, size = h.load(h.block, Block.SHARED, i64), h.load(h.block, Block.SHARED_BYTES, i64)
    inside = h.ir.icmp_unsigned("<", h.ir.sub(hosts, h.splat(start)), h.splat(size))
    outside = h.ir.and_(lanes, h.ir.not_(h.mask(inside)))

    def leave() -> None:
        h.store(h.ir.extract_element(access.vector(), h.first_lane(outside)), h.block, Block.FAULT_ADDRESS)
        h.fault(Fault.TENSOR_SHARED_OWN, outside)

    h.branch_unless(h.zero(outside), leave)
    return spill(h, hosts)


def _give(h: Handler, op: TensorAllocate, blocks: list[TensorCells], units: Any, site: Any) -> Any:
    """Allocate the first units that are free in all of these blocks: their column; waits where there are none."""
    taken: Any = h.i32(0)
    for cells in blocks:
        mine = cells.get(TensorMemory.ALLOCATED)
        if op.exclusive:  # all of it is taken as long as some is
            mine = h.ir.sext(h.nonzero(mine), i32)
        else:
            exclusive = h.ir.sext(h.nonzero(cells.get(TensorMemory.EXCLUSIVE)), i32)
            mine = h.ir.or_(mine, exclusive)
        taken = h.ir.or_(taken, mine)
    most = TensorMemory.EXCLUSIVE_COLUMNS if op.exclusive else TensorMemory.COLUMNS
    free = h.ir.and_(h.ir.not_(taken), h.i32((1 << most // _UNIT) - 1))
    runs = h.alloca(i32)
    h.ir.store(free, runs)

    def shorten(number: Any) -> Any:
        h.ir.store(h.ir.and_(h.ir.load(runs), h.ir.lshr(free, number)), runs)
        return h.ir.add(number, h.i32(1))

    h.loop(h.i32(1), lambda number: h.ir.icmp_unsigned("<", number, units), shorten)
    found = h.ir.load(runs)
    h.branch_unless(h.nonzero(found), lambda: wait_again(h))
    first = h.first_lane(found)
    start = h.ir.shl(h.i32(1), first)
    mask = h.ir.mul(h.ir.sub(h.ir.shl(h.i32(1), units), h.i32(1)), start)
    column = h.ir.shl(first, h.i32(_UNIT_BITS))
    for cells in blocks:
        fields = (TensorMemory.ALLOCATED, mask), (TensorMemory.STARTS, start), (TensorMemory.FREED, mask)
        for field, bits in (*fields, *([(TensorMemory.EXCLUSIVE, start)] if op.exclusive else [])):
            cells.put(field, h.ir.or_(cells.get(field), bits))
        h.store(site, h.add(cells.place, h.ir.shl(first, h.i32(2))), TensorMemory.SITES)
        cells.clear(column, h.ir.shl(units, h.i32(_UNIT_BITS)))
    return column


def _together(h: Handler, cells: TensorCells, wanted: Any, perform: Callable[[], Any], lanes: Any) -> Any:
    """What ``perform`` gives to both blocks of a pair, once a warp of each has come to do what is wanted."""
    me = h.ir.add(h.load(h.warp, Warp.INDEX, i32), h.i32(1))
    asking = cells.get(TensorMemory.ASKING)
    mine, other, free, done = (h.block_named(n) for n in ("mine", "other", "free", "done"))
    h.ir.cbranch(h.ir.icmp_unsigned("==", asking, me), mine, other)

    h.ir.position_at_end(mine)
    answer = cells.get(TensorMemory.ANSWER)

    def unanswered() -> None:
        cells.demand_peer(lanes)
        wait_again(h)

    h.branch_unless(h.nonzero(answer), unanswered)
    cells.put(TensorMemory.ASKING, h.i32(0))
    cells.put(TensorMemory.ANSWER, h.i32(0))
    given, asked = h.ir.sub(answer, h.i32(1)), h.ir.block
    h.ir.branch(done)

    h.ir.position_at_end(other)
    cells.demand_peer(lanes)
    h.branch_unless(h.zero(asking), lambda: wait_again(h))
    h.ir.branch(free)
    h.ir.position_at_end(free)
    peer = cells.peer()
    request = peer.get(TensorMemory.REQUEST, i64)

    def ask() -> None:
        cells.put(TensorMemory.REQUEST, wanted)
        cells.put(TensorMemory.ASKING, me)
        wait_again(h)

    h.branch_unless(h.nonzero(request), ask)

    def differs() -> None:
        h.store(request, h.block, Block.EXTENTS)
        h.store(wanted, h.block, Block.FAULT_ADDRESS)
        h.fault(Fault.TENSOR_PAIR_DIFFERS, lanes)

    h.branch_unless(h.ir.icmp_unsigned("==", request, wanted), differs)
    made = perform()
    peer.put(TensorMemory.ANSWER, h.ir.add(made, h.i32(1)))
    peer.put(TensorMemory.REQUEST, h.i64(0))
    performed = h.ir.block
    h.ir.branch(done)
    h.ir.position_at_end(done)
    return h.merged(asked, [given], performed, [made])[0]


@emits(TensorDeallocate)
def tensor_deallocate(h: Handler, op: TensorDeallocate) -> None:
    group = Members(h, op.guard, op.masked)
    addresses, given = source(h, op.address, LANES), source(h, op.columns, LANES)
    group.check(op.members)
    group.check_whole()
    site = h.field()
    cells = TensorCells(h)
    address, columns = (_same(h, cells, each, group.lanes) for each in (addresses, given))
    cells.use_group(op.group, group.lanes, present=False)

    def take() -> Any:
        for each in cells.pair(op.group):
            _take(h, op, each, address, columns, site, group.lanes)
        return h.i32(0)

    if op.group == 2:
        wanted = h.ir.or_(h.ir.shl(h.ir.zext(columns, i64), h.i64(32)), h.ir.zext(address, i64))
        wanted = h.ir.or_(wanted, h.i64(1 << 63))
        _together(h, cells, wanted, take, group.lanes)
    else:
        take()
    h.next()


def _take(
    h: Handler, op: TensorDeallocate, cells: TensorCells, address: Any, columns: Any, site: Any, lanes: Any
) -> None:
    """Free what was allocated from an address on, where that is so many columns."""
    first, units = (at_most(h, h.ir.lshr(each, h.i32(_UNIT_BITS)), _MOST) for each in (address, columns))
    good = h.zero(h.ir.and_(h.ir.or_(address, columns), h.i32(_UNIT - 1)))
    end = at_most(h, h.ir.add(first, units), _MOST)
    for each in (address, columns, h.ir.add(address, columns)):
        good = h.ir.and_(good, h.ir.icmp_unsigned("<=", each, h.i32(TensorMemory.EXCLUSIVE_COLUMNS)))
    good = h.ir.and_(good, h.nonzero(columns))
    start = h.ir.shl(h.i32(1), first)
    mask = h.ir.sub(h.ir.shl(h.i32(1), end), start)
    allocated, starts = cells.get(TensorMemory.ALLOCATED), cells.get(TensorMemory.STARTS)
    whole = h.ir.icmp_unsigned("==", h.ir.and_(allocated, mask), mask)
    one = h.ir.icmp_unsigned("==", h.ir.and_(starts, mask), start)
    goes_on = h.ir.and_(h.ir.and_(allocated, h.ir.not_(starts)), h.ir.shl(h.i32(1), end))
    kind = h.ir.and_(cells.get(TensorMemory.EXCLUSIVE), start)
    alike = h.nonzero(kind) if op.exclusive else h.zero(kind)
    for condition in (whole, one, h.zero(goes_on), alike):
        good = h.ir.and_(good, condition)

    def leave() -> None:
        h.store(h.ir.zext(columns, i64), h.block, Block.EXTENTS)
        cells.fault(Fault.TENSOR_DEALLOCATION, lanes, address)

    h.branch_unless(good, leave)
    Flight(h, cells, lanes).check(cells, address, columns, h.i32(ALL_LANES), writes=True)
    for field, value in (
        (TensorMemory.ALLOCATED, mask), (TensorMemory.STARTS, start), (TensorMemory.EXCLUSIVE, start),
    ):
        cells.put(field, h.ir.and_(cells.get(field), h.ir.not_(value)))

    def note(unit: Any) -> None:
        h.store(site, h.add(cells.place, h.ir.shl(unit, h.i32(2))), TensorMemory.FREEING_SITES)

    h.for_each_lane(mask, note)


@emits(TensorRelinquish)
def tensor_relinquish(h: Handler, op: TensorRelinquish) -> None:
    group = Members(h, op.guard, op.masked)
    group.check(op.members)
    group.check_whole()
    cells = TensorCells(h)
    cells.use_group(op.group, group.lanes, present=False)
    cells.put(TensorMemory.RELINQUISHED, h.i32(1))
    h.next()


@emits(TensorMemoryEnd)
def tensor_memory_end(h: Handler, op: TensorMemoryEnd) -> None:
    gone = guard_mask(h, op.guard, True)
    alive = h.load(h.warp, Warp.ALIVE, i32)
    own = h.ir.shl(h.i32(1), h.load(h.warp, Warp.INDEX, i32))
    last = h.ir.and_(
        h.ir.icmp_unsigned("==", h.ir.and_(gone, alive), alive),
        h.ir.icmp_unsigned("==", h.load(h.block, Block.LIVE, i32), own),
    )
    with h.ir.if_then(last):
        cells = TensorCells(h)
        left = cells.get(TensorMemory.ALLOCATED)
        h.branch_unless(h.zero(left), lambda: cells.fault(Fault.TENSOR_LEAK, gone))
        for field in range(0, TensorMemory.PEER, 8):
            cells.put(field, h.i64(0))
        for field in (TensorMemory.FLYING, TensorMemory.FLYING + 8):
            cells.put(field, h.i64(0))
        cells.put(TensorMemory.COMMITS, h.i32(0))
    h.next()
