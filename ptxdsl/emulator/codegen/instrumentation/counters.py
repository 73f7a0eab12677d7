"""Handlers of the profiler's counters and the debugger's breakpoints.

Their micro-ops precede those of each instruction while a launch is profiled or debugged, and exist in no other launch.
Each host thread that runs blocks has counters of its own, at the same distance from those that the micro-ops name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import Breakpoint, CountBranch, CountExecution, CountMemory, MarkSectors, Stop
from ...machine.layout import LANES, LOCAL_WINDOW, SHARED_WINDOW, Block, Entry, Warp
from ...machine.status import Count, Status
from ..data import guard_mask, source
from ..handler import Handler, i32, i64, lanes_of, pointer
from ..access import Access
from ..registry import emits

BANKS = 32
BANK_BYTES = 4
SECTOR_BITS = 5


def _add(h: Handler, counters: Any, which: int, amount: Any) -> None:
    place = h.ir.bitcast(h.add(counters, 8 * which), i64.as_pointer())
    amount = h.i64(amount) if isinstance(amount, int) else amount
    amount = h.ir.zext(amount, i64) if amount.type.width < 64 else amount
    h.ir.store(h.ir.add(h.ir.load(place), amount), place)


def _population(h: Handler, mask: Any) -> Any:
    return h.call("llvm.ctpop.i32", i32, mask)


def _some(h: Handler, mask: Any) -> Any:
    """1 where a mask has lanes, else 0."""
    return h.ir.zext(h.nonzero(mask), i64)


def _counters(h: Handler) -> Any:
    return h.ir.inttoptr(h.ir.add(h.field("q"), h.load(h.block, Block.COUNTERS, i64)), pointer)


def _lead(h: Handler, lanes: Any) -> Any:
    """The lowest lane of a mask, 0 where it has none."""
    return h.ir.and_(h.first_lane(lanes), h.i32(LANES - 1))


def _executed(h: Handler, counters: Any, lanes: Any) -> None:
    _add(h, counters, Count.EXECUTIONS, 1)
    _add(h, counters, Count.LANES, _population(h, lanes))


@emits(CountExecution)
def count_execution(h: Handler, op: CountExecution) -> None:
    lanes = guard_mask(h, op.guard, True)
    _executed(h, _counters(h), lanes)
    h.next()


@emits(CountBranch)
def count_branch(h: Handler, op: CountBranch) -> None:
    """A branch that is not taken is executed all the same: by all active lanes."""
    lanes = guard_mask(h, op.guard, True)
    diverges = h.ir.and_(_some(h, lanes), _some(h, h.ir.and_(h.active, h.ir.not_(lanes))))
    if op.selector:
        numbers = source(h, op.selector, LANES)
        first = h.ir.extract_element(numbers, _lead(h, lanes))
        others = h.mask(h.ir.icmp_unsigned("!=", numbers, h.splat(first)))
        diverges = h.ir.or_(diverges, _some(h, h.ir.and_(lanes, others)))
    counters = _counters(h)
    _executed(h, counters, h.active)
    _add(h, counters, Count.DIVERGENT, diverges)
    h.next()


@emits(CountMemory)
def count_memory(h: Handler, op: CountMemory) -> None:
    access = Access(h, op.address, None, op.nbytes, False)
    lanes = guard_mask(h, op.guard, True)
    counters = _counters(h)
    _executed(h, counters, lanes)
    places = access.vector()
    ways: dict[str, Any] = {op.space: lanes}
    if op.space == "generic":
        windows = h.ir.lshr(places, h.splat(h.i64(56)))
        ways = {"global": lanes}
        for name, window in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
            inside = h.mask(h.ir.icmp_unsigned("==", windows, h.splat(h.i64(window >> 56))))
            ways[name] = h.ir.and_(lanes, inside)
            ways["global"] = h.ir.and_(ways["global"], h.ir.not_(inside))
    for way, mask in ways.items():
        _SPACES[way](h, counters, places, mask, op.nbytes, op.exclusive)
    h.next()


def _global(h: Handler, counters: Any, places: Any, lanes: Any, *_: Any) -> None:
    _add(h, counters, Count.GLOBAL_REQUESTS, _some(h, lanes))
    _add(h, counters, Count.GLOBAL_LANES, _population(h, lanes))
    places = h.ir.sub(places, h.splat(_start(h, places, lanes)))
    numbers = h.ir.lshr(places, h.splat(h.i64(SECTOR_BITS)))
    before = h.ir.shuffle_vector(numbers, numbers, ir.Constant(lanes_of(i32), [0, *range(LANES - 1)]))
    falls = h.mask(h.ir.icmp_unsigned("<", numbers, before))
    rises = _population(h, h.mask(h.ir.icmp_unsigned(">", numbers, before)))
    in_order = h.ir.and_(h.full(lanes), h.zero(falls))
    sectors = _variable(h, i64)
    h.ir.store(h.ir.select(in_order, h.ir.zext(h.ir.add(rises, h.i32(1)), i64), h.i64(0)), sectors)

    def one(_: Any, __: Any) -> None:
        h.ir.store(h.ir.add(h.ir.load(sectors), h.i64(1)), sectors)

    _each_distinct(h, numbers, h.ir.select(in_order, h.i32(0), lanes), one)
    _add(h, counters, Count.SECTORS, h.ir.load(sectors))


def _start(h: Handler, places: Any, lanes: Any) -> Any:
    """Offset of the first lane's array from the start of a sector: on a GPU an array begins at one."""
    address = h.ir.extract_element(places, _lead(h, lanes))
    table, start = h.load(h.block, Block.TABLE, pointer), _variable(h, i64)

    def one(number: Any) -> None:
        entry = h.add(table, h.ir.mul(number, h.i64(Entry.nbytes)))
        low, size = h.load(entry, Entry.LOW, i64), h.load(entry, Entry.SIZE, i64)
        inside = h.ir.icmp_unsigned("<", h.ir.sub(address, low), size)
        h.ir.store(h.ir.select(inside, h.ir.and_(low, h.i64((1 << SECTOR_BITS) - 1)), h.ir.load(start)), start)

    h.count(h.ir.zext(h.load(h.block, Block.ENTRIES, i32), i64), 1, one)
    return h.ir.load(start)


def _shared(h: Handler, counters: Any, places: Any, lanes: Any, nbytes: int, exclusive: bool) -> None:
    """A request takes a wavefront for each different word in a bank; wide accesses go in 2, 4, ... phases."""
    _add(h, counters, Count.SHARED_REQUESTS, _some(h, lanes))
    _add(h, counters, Count.SHARED_LANES, _population(h, lanes))
    width = max(BANK_BYTES, nbytes)
    phases, banks = width // BANK_BYTES, BANKS * BANK_BYTES // width
    words = h.ir.lshr(places, h.splat(h.i64(width.bit_length() - 1)))
    kind = ir.ArrayType(i32, banks)
    array, most = h.ir.alloca(kind), _variable(h, i32)
    wavefronts = h.ir.bitcast(array, i32.as_pointer())

    def one(word: Any, same: Any) -> None:
        place = h.ir.gep(wavefronts, [h.ir.and_(word, h.i64(banks - 1))], source_etype=i32)
        taken = h.ir.add(h.ir.load(place), _population(h, same) if exclusive else h.i32(1))
        h.ir.store(taken, place)
        h.ir.store(h.call("llvm.umax.i32", i32, taken, h.ir.load(most)), most)

    part = (1 << LANES // phases) - 1
    for phase in range(phases):
        mask = h.ir.and_(lanes, h.i32(part << phase * (LANES // phases)))
        conflict_free = _conflict_free(h, words, mask, banks)
        h.ir.store(ir.Constant(kind, None), array)
        h.ir.store(h.ir.select(conflict_free, h.ir.trunc(_some(h, mask), i32), h.i32(0)), most)
        _each_distinct(h, words, h.ir.select(conflict_free, h.i32(0), mask), one)
        _add(h, counters, Count.WAVEFRONTS, h.ir.load(most))
        _add(h, counters, Count.LEAST, _some(h, mask))


def _conflict_free(h: Handler, words: Any, mask: Any, banks: int) -> Any:
    """Whether no two lanes of a mask need the same bank: the usual case, which needs no loop over lanes."""
    wide = lanes_of(i32)
    bank = h.ir.and_(h.ir.trunc(words, wide), h.splat(h.i32(banks - 1)))
    bits = h.ir.select(h.bools(mask), h.ir.shl(h.splat(h.i32(1)), bank), ir.Constant(wide, None))
    used = h.call("llvm.vector.reduce.or.v32i32", i32, bits)
    return h.ir.icmp_unsigned("==", _population(h, used), _population(h, mask))


def _local(h: Handler, counters: Any, _: Any, lanes: Any, *__: Any) -> None:
    _add(h, counters, Count.LOCAL_LANES, _population(h, lanes))


_SPACES: dict[str, Callable[..., None]] = {"global": _global, "shared": _shared, "local": _local}


def _variable(h: Handler, kind: ir.IntType) -> Any:
    place = h.ir.alloca(kind)
    h.ir.store(ir.Constant(kind, 0), place)
    return place


def _each_distinct(h: Handler, values: Any, mask: Any, body: Callable[[Any, Any], None]) -> None:
    """Run ``body(value, lanes)`` for each different value that the lanes of a mask have, and the lanes that have it."""

    def turn(left: Any) -> Any:
        value = h.ir.extract_element(values, h.first_lane(left))
        same = h.ir.and_(left, h.mask(h.ir.icmp_unsigned("==", values, h.splat(value))))
        body(value, same)
        return h.ir.and_(left, h.ir.not_(same))

    h.loop(mask, h.nonzero, turn)


@emits(MarkSectors)
def mark_sectors(h: Handler, op: MarkSectors) -> None:
    """The lanes whose addresses lie in the array of the first one together, then those of the next array."""
    places = Access(h, op.address, None, op.nbytes, False).vector()
    lanes = guard_mask(h, op.guard, True)
    table, marks = h.load(h.block, Block.TABLE, pointer), h.load(h.block, Block.MARKS, pointer)
    entries = h.ir.zext(h.load(h.block, Block.ENTRIES, i32), i64)
    low, size, array = (_variable(h, i64) for _ in range(3))

    def turn(left: Any) -> Any:
        address = h.ir.extract_element(places, h.first_lane(left))
        for place in (low, size, array):
            h.ir.store(h.i64(0), place)

        def one(number: Any) -> None:
            entry = h.add(table, h.ir.mul(number, h.i64(Entry.nbytes)))
            start, extent = h.load(entry, Entry.LOW, i64), h.load(entry, Entry.SIZE, i64)
            inside = h.ir.icmp_unsigned("<", h.ir.sub(address, start), extent)
            marked = h.load(h.add(marks, h.ir.shl(number, h.i64(3))), 0, i64)
            for place, value in ((low, start), (size, extent), (array, marked)):
                h.ir.store(h.ir.select(inside, value, h.ir.load(place)), place)

        h.count(entries, 1, one)
        offsets = h.ir.sub(places, h.splat(h.ir.load(low)))
        inside = h.mask(h.ir.icmp_unsigned("<", offsets, h.splat(h.ir.load(size))))
        same = h.ir.or_(h.ir.and_(left, inside), h.ir.and_(left, h.ir.sub(h.i32(0), left)))
        base = h.ir.load(array)
        numbers = h.ir.lshr(offsets, h.splat(h.i64(SECTOR_BITS)))

        def mark(lane: Any) -> None:
            place = h.ir.inttoptr(h.ir.add(base, h.ir.extract_element(numbers, lane)), pointer)
            h.ir.store(h.ir.or_(h.ir.load(place), ir.Constant(ir.IntType(8), op.bits)), place)

        h.for_each_lane(h.ir.select(h.nonzero(base), same, h.i32(0)), mark)
        return h.ir.and_(left, h.ir.not_(same))

    h.loop(lanes, h.nonzero, turn)
    h.next()


@emits(Breakpoint)
def breakpoint_(h: Handler, _: Breakpoint) -> None:
    """The warp resumes after it."""
    block, warp, lanes = h.field("q"), h.field(), h.field()
    here = h.ir.icmp_unsigned("==", h.load(h.block, Block.CTA64, i64), block)
    here = h.ir.and_(here, h.ir.icmp_unsigned("==", h.load(h.warp, Warp.INDEX, i32), warp))
    here = h.ir.and_(here, h.nonzero(h.ir.and_(h.active, lanes)))

    h.branch_unless(h.ir.not_(here), lambda: stop(h, Stop()))
    h.next()


@emits(Stop)
def stop(h: Handler, _: Stop) -> None:
    """The warp resumes after it."""
    h.stop(Status.CALLBACK)
    h.store(h.following(), h.warp, Warp.PC)
    h.ir.ret_void()


