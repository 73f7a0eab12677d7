"""Handlers of the sanitizer: records beside those of the memory instructions, there only where it is on.

The usual case is decided on whole vectors of tags: written before the last barrier, or by this very thread. All else
goes lane by lane through ``inspect``, and what that cannot tell is asked of Python, which knows how threads have been
ordered otherwise. An access is looked at before it is made, so nothing is lost where it overwrites its own address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ..layout import LANES, Block, Entry, Status, Warp
from ..library import Shape
from ..shadow import (
    HASH, LANE, LENIENT, OWNERS_BITS, SEEN_BITS, SEGMENT_SHIFT, SEVERAL, STATEMENT_SHIFT, STRENGTH, STRENGTH_SHIFT,
    THREAD, UNWRITTEN, WARP, WHOLE, Ledger, Own, Reason, Region,
)
from .base import Handler, byte, i1, i32, i64, lanes_of, pointer
from .data import guard_mask, source
from .memory import Access, twins

__all__ = [
    "arrive", "ask", "begin", "can_fuse", "inspect", "meeting", "passed", "touch", "watch", "watch_with",
]

INSPECT = ir.FunctionType(i1, [pointer, pointer, pointer, i32, i64, i32])
READ, WRITE, ATOMIC = 0, 1, 2


class Book:
    """The ledger of the block, and the warp's part of it, for a handler; ``fixed`` where it only reads what it gets."""

    def __init__(self, h: Handler, fixed: bool = False) -> None:
        self.h, self.fixed = h, fixed
        self.ledger = h.load(h.block, Block.WATCH, pointer, fixed=True)
        number = h.ir.zext(h.load(h.warp, Warp.INDEX, i32, fixed=True), i64)
        self.own = h.add(self.ledger, h.ir.add(h.ir.mul(number, h.i64(Own.SIZE)), h.i64(Ledger.WARPS)))
        self.number = number

    def get(self, offset: int, kind: ir.Type = i64) -> Any:
        return self.h.load(self.ledger, offset, kind, fixed=self.fixed)

    def mine(self, offset: int) -> Any:
        return self.h.load(self.own, offset, i64, fixed=self.fixed)

    def owner(self, segment: Any) -> tuple[Any, Any]:
        """Where the block of a segment is noted."""
        h = self.h
        place = h.ir.and_(segment, h.i64((1 << OWNERS_BITS) - 1))
        return self.get(Ledger.OWNERS, pointer), h.ir.shl(place, h.i64(2))

    def fresh(self) -> Any:
        """A new segment for this warp, as in a tag."""
        h = self.h
        counter = self.get(Ledger.NEXT, pointer)
        segment = h.ir.add(h.load(counter, 0, i64), h.i64(1))
        h.store(segment, counter, 0)
        h.store(self.get(Ledger.BLOCK, i32), *self.owner(segment))
        tag = h.ir.shl(segment, h.i64(SEGMENT_SHIFT))
        h.store(h.ir.or_(tag, h.ir.shl(self.number, h.i64(5))), self.own, Own.CURRENT)
        return tag


def begin(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_begin", codes): a warp starts on a block; the block's first one makes the ledger ready."""
    h = Handler(module, name, shape[-1])
    book = Book(h)
    number = h.ir.add(h.ir.trunc(h.load(h.block, Block.CTA64, i64), i32), h.i32(1))
    with h.ir.if_then(h.ir.icmp_unsigned("!=", book.get(Ledger.BLOCK, i32), number)):
        h.store(number, book.ledger, Ledger.BLOCK)
        with h.ir.if_then(h.ir.icmp_unsigned("!=", book.get(Ledger.DIRTY, i32), h.i32(0))):
            h.store(h.i32(0), book.ledger, Ledger.DIRTY)
            nothing, size = ir.Constant(byte, 0), h.i64(8 << SEEN_BITS)
            seen = book.get(Ledger.SEEN, pointer)
            h.call("llvm.memset.p0.i64", ir.VoidType(), seen, nothing, size, ir.Constant(i1, 0))
        base = book.fresh()
        for offset in (Ledger.BASE, Ledger.WINDOW):
            h.store(base, book.ledger, offset)
    floor = h.ir.add(book.get(Ledger.BASE), h.i64(1 << SEGMENT_SHIFT))
    book.fresh()
    h.store(floor, book.own, Own.FLOOR)
    h.store(floor, book.own, Own.MEETING)
    h.store(h.i64(0), book.own, Own.BARRIERS)
    h.next()


def _pending(book: Book) -> Any:
    h = book.h
    odd = h.ir.and_(book.mine(Own.BARRIERS), h.i64(1))
    return h.add(book.ledger, h.ir.add(h.ir.shl(odd, h.i64(3)), h.i64(Ledger.PENDING)))


def arrive(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_arrive", codes): before a barrier of the whole block. The last warp's number is the one that stays."""
    h = Handler(module, name, shape[-1])
    book = Book(h)
    place = _pending(book)
    h.store(book.fresh(), place, 0)
    h.next()


def passed(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_passed", guard, codes): behind a barrier of the whole block."""
    _, guard, codes = shape
    h = Handler(module, name, codes)
    mask = guard_mask(h, guard, True)
    book = Book(h)
    with h.ir.if_then(h.ir.icmp_unsigned("!=", mask, h.i32(0))):
        floor = h.load(_pending(book), 0, i64)
        h.store(floor, book.own, Own.FLOOR)
        h.store(floor, book.own, Own.MEETING)
        h.store(h.ir.add(book.mine(Own.BARRIERS), h.i64(1)), book.own, Own.BARRIERS)
        book.fresh()
    h.next()


def meeting(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_meet", guard, members, codes): behind a bar.warp.sync; only some lanes are Python's affair."""
    _, guard, kind, codes = shape
    h = Handler(module, name, codes)
    mask = guard_mask(h, guard, True)
    members = source(h, kind, LANES)
    book = Book(h)
    some, whole, part, after = (h.block_named(n) for n in ("some", "whole", "part", "after"))
    h.ir.cbranch(h.ir.icmp_unsigned("!=", mask, h.i32(0)), some, after)
    h.ir.position_at_end(some)
    first = h.ir.extract_element(members, h.call("llvm.cttz.i32", i32, mask, ir.Constant(i1, 0)))
    absent = h.ir.and_(h.load(h.warp, Warp.INITIAL, i32), h.ir.not_(h.ir.and_(mask, first)))
    h.ir.cbranch(h.ir.icmp_unsigned("==", absent, h.i32(0)), whole, part)
    h.ir.position_at_end(whole)
    h.store(book.fresh(), book.own, Own.MEETING)
    h.ir.branch(after)
    h.ir.position_at_end(part)
    _leave(h, book, Reason.MEET, h.following(), mask)
    h.ir.position_at_end(after)
    h.next()


def _leave(h: Handler, book: Book, reason: int, resume: Any, mask: Any) -> None:
    """Return to Python; the warp goes on at the record ``resume``."""
    h.store(h.i32(reason), book.ledger, Ledger.REASON)
    h.stop(Status.WATCH)
    h.store(resume, h.warp, Warp.PC)
    h.store(h.ir.zext(mask, i64), h.block, Block.FAULT_ADDRESS)
    h.ir.ret_void()


def ask(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_ask", guard, whole, codes): tell Python of an instruction; ``whole`` only where the warp is together."""
    _, guard, whole, codes = shape
    h = Handler(module, name, codes)
    mask = guard_mask(h, guard, True)
    go = h.ir.icmp_unsigned("!=", mask, h.i32(0))
    if whole:
        go = h.ir.and_(go, h.ir.icmp_unsigned("==", mask, h.load(h.warp, Warp.ALIVE, i32)))
    h.branch_unless(go, h.next)
    _leave(h, Book(h), Reason.NOTE, h.following(), mask)


def touch(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch_touch", address, bytes, writes, guard, codes): tell Python of an access by which threads synchronise."""
    twins(module, name, shape, _touch)


def _touch(h: Handler, shape: Shape, slow: ir.Function | None) -> None:
    _, kind, nbytes, writes, guard, _ = shape
    access = Access(h, kind, None, nbytes, writes)
    mask = guard_mask(h, guard, True)
    h.branch_unless(h.ir.icmp_unsigned("!=", mask, h.i32(0)), lambda: h.goto(h.following()))
    hosts = access.hosts(mask, slow)
    h.store(hosts, h.block, Block.SCRATCH)
    _leave(h, Book(h), Reason.ATOMIC, h.following(), mask)


# Accesses


class Look(NamedTuple):
    """The shape of a check. ``own``: the memory is certainly the block's, False certainly not, None unknown.

    ``readers``: somebody reads the memory. ``simple``: nothing orders the kernel's threads but barriers of the block.
    ``folded``: all segments of the address pattern are the same.
    """

    role: int
    strength: int
    same: bool
    own: bool | None
    kind: str
    pattern: tuple[str, int] | None
    nbytes: int
    grain: int
    guard: str
    race: bool
    init: bool
    readers: bool
    simple: bool
    folded: bool
    codes: str

    @property
    def pieces(self) -> int:
        """Pieces of memory that an access touches."""
        return self.nbytes >> self.grain

    @property
    def flags(self) -> int:
        """For ``inspect``."""
        return self.role | self.grain << 2 | self.pieces << 5 | self.same << 12 | self.race << 13 | self.init << 14


def watch(module: ir.Module, name: str, shape: Shape) -> None:
    """("watch", *Look): an access is about to be made."""
    twins(module, name, shape, watch_with)


def can_fuse(shape: Shape) -> bool:
    """Whether a check may be part of a run of records."""
    look = Look(*shape[1:])
    return not look.guard and look.own is not None


def watch_with(h: Handler, shape: Shape, slow: ir.Function | None) -> None:
    """A check; the slow twin itself where ``slow`` is None."""
    look = Look(*shape[1:])
    access = Access(h, look.kind, look.pattern, look.nbytes, look.role != READ)
    mask = guard_mask(h, look.guard, True)
    statement = h.field()
    if look.guard:
        h.branch_unless(h.ir.icmp_unsigned("!=", mask, h.i32(0)), lambda: h.goto(h.following()))
    book = Book(h, fixed=True)
    place = h.ir.or_(h.ir.zext(statement, i64), h.i64(look.strength << STRENGTH_SHIFT))
    if slow is None:
        access.resolve(mask)
        function = h.ir.bitcast(book.get(Ledger.INSPECT, pointer), INSPECT.as_pointer())
        fine = h.ir.call(function, [h.rec, h.warp, h.block, mask, place, h.i32(look.flags)])
        h.branch_unless(fine, h.ir.ret_void)
        h.next()
        return
    if look.own is None:
        h.tail(slow, h.rec)
        return
    _Fast(h, look, access, book, h.ir.or_(book.mine(Own.CURRENT), place), mask, slow).emit()
    h.store(h.i32(0), book.ledger, Ledger.DONE)
    h.next()


class _Group(NamedTuple):
    """Tags that are looked at together: how to read and write them by their plane, and whose lanes they are."""

    size: int
    get: Callable[[int], Any]
    put: Callable[[int, Any, Any], None]
    lanes: Any


class _Fast:
    """A check on whole vectors of tags; whatever is unusual starts over in the slow twin."""

    def __init__(
        self, h: Handler, look: Look, access: Access, book: Book, tag: Any, mask: Any, slow: ir.Function
    ) -> None:
        self.h, self.look, self.access, self.tag, self.mask, self.slow = h, look, access, tag, mask, slow
        self.floor = book.mine(Own.FLOOR)
        self.base, self.launch, self.window = (book.get(n) for n in (Ledger.BASE, Ledger.LAUNCH, Ledger.WINDOW))
        self.tags, self.stride = (
            h.load(access.entry, field, i64, fixed=True) for field in (Entry.TAGS, Entry.STRIDE)
        )

    def emit(self) -> None:
        for group in self.groups():
            if self.look.role == READ:
                self.read(group)
            else:
                self.write(group)

    # Where the tags are

    def groups(self) -> list[_Group]:
        h, look, access = self.h, self.look, self.access
        letter = look.kind[0]
        if letter in "KU":
            good, host = access.check_scalar()
            alone = h.ir.icmp_unsigned("==", h.ir.and_(self.mask, h.ir.sub(self.mask, h.i32(1))), h.i32(0))
            if look.role == WRITE and not look.same:
                good = h.ir.and_(good, alone)
            access.demand(good, self.slow)
            lane = h.ir.zext(h.call("llvm.cttz.i32", i32, self.mask, ir.Constant(i1, 0)), i64)
            lane = h.ir.or_(lane, h.ir.select(alone, h.i64(0), h.i64(SEVERAL)))
            return [self.line(host, look.pieces, self.splat(lane, look.pieces))]
        if letter == "A" and look.pattern is not None:
            good, host = access.check_scalar()
            access.demand(h.ir.and_(good, h.full(self.mask)), self.slow)
            if look.folded and look.role == READ:
                return [self.segment(host, 0)]
            return [self.segment(host, number) for number in range(LANES // look.pattern[1])]
        hosts = access.hosts(self.mask, self.slow)
        return [self.scattered(hosts, number) for number in range(look.pieces)]

    def segment(self, host: Any, number: int) -> _Group:
        h, look = self.h, self.look
        assert look.pattern is not None
        letter, lanes = look.pattern
        start = host if number == 0 else h.ir.add(host, h.ir.sext(self.access.segments[number - 1], i64))
        first = number * lanes
        if letter == "b":
            ids = [first | (SEVERAL if lanes > 1 else 0)] * look.pieces
        else:
            more = SEVERAL if look.folded and look.role == READ else 0
            ids = [first + lane | more for lane in range(lanes) for _ in range(look.pieces)]
        return self.line(start, len(ids), self.constant(ids))

    def constant(self, values: list[int]) -> Any:
        return ir.Constant(ir.VectorType(i64, len(values)), values) if len(values) > 1 else self.h.i64(values[0])

    def place(self, host: Any) -> Any:
        """Address of the first tag of a host address, or of a vector of them."""
        h, kind = self.h, host.type
        shift = ir.Constant(kind, [self.look.grain] * LANES) if kind != i64 else h.i64(self.look.grain)
        three = ir.Constant(kind, [3] * LANES) if kind != i64 else h.i64(3)
        tags = h.splat(self.tags) if kind != i64 else self.tags
        return h.ir.add(h.ir.shl(h.ir.lshr(host, shift), three), tags)

    def line(self, host: Any, size: int, lanes: Any) -> _Group:
        """Tags that lie side by side."""
        h = self.h
        place = self.place(host)
        kind = ir.VectorType(i64, size) if size > 1 else i64

        def at(plane: int) -> Any:
            address = place if plane == 0 else h.ir.add(place, h.ir.mul(self.stride, h.i64(plane)))
            return h.ir.inttoptr(address, kind.as_pointer())

        def put(plane: int, value: Any, _: Any) -> None:
            h.ir.store(value, at(plane), align=8)

        return _Group(size, lambda plane: h.ir.load(at(plane), align=8), put, lanes)

    def scattered(self, hosts: Any, number: int) -> _Group:
        """A tag for each lane, anywhere."""
        h, look = self.h, self.look
        offset = number << look.grain
        place = self.place(h.ir.add(hosts, h.splat(h.i64(offset))) if offset else hosts)
        bools = h.bools(self.mask)
        wide = lanes_of(i64)

        def at(plane: int) -> Any:
            address = place
            if plane:
                address = h.ir.add(place, h.splat(h.ir.mul(self.stride, h.i64(plane))))
            return h.ir.inttoptr(address, lanes_of(pointer))

        def get(plane: int) -> Any:
            rest = h.splat(self.tag)
            return h.call("llvm.masked.gather.v32i64.v32p0", wide, at(plane), h.i32(8), bools, rest)

        def put(plane: int, value: Any, where: Any) -> None:
            chosen = bools if where is None else h.ir.and_(bools, where)
            h.call("llvm.masked.scatter.v32i64.v32p0", ir.VoidType(), value, at(plane), h.i32(8), chosen)

        return _Group(LANES, get, put, h.iota(64))

    # What they say

    def splat(self, value: Any, size: int) -> Any:
        if isinstance(value, int):
            value = self.h.i64(value)
        if size == 1:
            return value
        kind = ir.VectorType(value.type, size)
        first = self.h.ir.insert_element(ir.Constant(kind, ir.Undefined), value, self.h.i32(0))
        return self.h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, size), [0] * size))

    def ordered(self, tags: Any, n: int) -> Any:
        below = self.h.ir.icmp_unsigned
        if self.look.own:
            return below("<", tags, self.splat(self.floor, n))
        since = self.h.ir.sub(tags, self.splat(self.window, n))
        inside = below("<", since, self.splat(self.h.ir.sub(self.floor, self.window), n))
        return self.h.ir.or_(below("<", tags, self.splat(self.launch, n)), inside)

    def fine(self, tags: Any, mine: Any, n: int) -> Any:
        """Whether what a tag tells of is no matter for an access by ``mine``."""
        h, look = self.h, self.look
        differs = h.ir.and_(h.ir.xor(tags, mine), self.splat(THREAD, n))
        good = h.ir.or_(self.ordered(tags, n), h.ir.icmp_unsigned("==", differs, self.splat(0, n)))
        if look.strength and (look.own or look.strength == 2):
            level = h.ir.and_(tags, self.splat(STRENGTH, n))
            least = 1 << STRENGTH_SHIFT if look.own else 2 << STRENGTH_SHIFT
            good = h.ir.or_(good, h.ir.icmp_unsigned(">=", level, self.splat(least, n)))
        return good

    def written(self, tags: Any, n: int) -> Any:
        """Whether there is a writer at all."""
        if self.look.own:
            return self.h.ir.icmp_unsigned(">=", tags, self.splat(self.base, n))
        return self.h.ir.icmp_unsigned("!=", tags, self.splat(UNWRITTEN, n))

    def all(self, bools: Any, n: int) -> Any:
        """Whether it is so for all tags."""
        h = self.h
        if n == 1:
            return bools
        whole = h.ir.bitcast(bools, ir.IntType(n))
        return h.ir.icmp_unsigned("==", whole, ir.Constant(ir.IntType(n), -1))

    def read(self, group: _Group) -> None:
        h, look, n = self.h, self.look, group.size
        mine = h.ir.or_(self.splat(self.tag, n), group.lanes)
        self.read_writers(group.get(0), mine, n)
        if not look.race:
            return
        readers = group.get(1)
        after = h.block_named("read")
        if look.own:
            self.read_first(group, readers, mine, n, after)
        change = h.ir.xor(readers, mine)
        here = h.ir.icmp_unsigned("<", change, self.splat(1 << SEGMENT_SHIFT, n))
        other = h.ir.icmp_unsigned("!=", h.ir.and_(change, self.splat(SEVERAL | LANE, n)), self.splat(0, n))
        more = h.ir.select(h.ir.and_(here, other), self.splat(SEVERAL, n), self.splat(0, n))
        past = h.ir.or_(here, self.ordered(readers, n))
        keep, kept = h.block_named("keep"), h.block_named("kept")
        h.ir.cbranch(self.all(past, n), kept, keep)
        h.ir.position_at_end(keep)
        group.put(2, h.ir.select(past, group.get(2), readers), None)
        h.ir.branch(kept)
        h.ir.position_at_end(kept)
        group.put(1, h.ir.or_(mine, more), None)
        h.ir.branch(after)
        h.ir.position_at_end(after)

    def read_writers(self, writers: Any, mine: Any, n: int) -> None:
        """Go on where the last writers are no matter."""
        h, look = self.h, self.look
        if look.own and look.race and look.init:  # one comparison tells written and ordered
            since = h.ir.sub(writers, self.splat(self.base, n))
            usual = h.ir.icmp_unsigned("<", since, self.splat(h.ir.sub(self.floor, self.base), n))
            rare, on = h.block_named("unusual"), h.block_named("usual")
            h.ir.cbranch(h.likely(self.all(usual, n)), on, rare)
            h.ir.position_at_end(rare)
            good = h.ir.and_(self.fine(writers, mine, n), self.written(writers, n))
            self.access.demand(self.all(good, n), self.slow)
            h.ir.branch(on)
            h.ir.position_at_end(on)
            return
        good = self.fine(writers, mine, n) if look.race else self.written(writers, n)
        if look.race and look.init:
            good = h.ir.and_(good, self.written(writers, n))
        self.access.demand(self.all(good, n), self.slow)

    def read_first(self, group: _Group, readers: Any, mine: Any, n: int, after: ir.Block) -> None:
        """The first reader since the last barrier, or one after two others, has little to do."""
        h = self.h
        floor = self.splat(self.floor, n)
        first, later = h.block_named("first"), h.block_named("later")
        h.ir.cbranch(self.all(h.ir.icmp_unsigned("<", readers, floor), n), first, later)
        h.ir.position_at_end(first)
        group.put(1, mine, None)
        h.ir.branch(after)
        h.ir.position_at_end(later)
        if self.look.simple and self.look.pattern is not None:
            earlier = group.get(2)
            both = (readers, earlier)
            others = [h.ir.icmp_unsigned(">=", h.ir.xor(t, mine), self.splat(1 << SEGMENT_SHIFT, n)) for t in both]
            live = [h.ir.icmp_unsigned(">=", tags, floor) for tags in both]
            enough = h.ir.and_(h.ir.and_(*others), h.ir.and_(*live))
            update = h.block_named("update")
            h.ir.cbranch(self.all(enough, n), after, update)
            h.ir.position_at_end(update)

    def write(self, group: _Group) -> None:
        h, look, n = self.h, self.look, group.size
        mine = h.ir.or_(self.splat(self.tag, n), group.lanes)
        if look.race:
            writers = group.get(0)
            good = self.fine(writers, mine, n)
            for plane in (1, 2) if look.readers else ():
                good = h.ir.and_(good, self.fine(group.get(plane), mine, n))
            if look.init and look.role == ATOMIC:
                good = h.ir.and_(good, self.written(writers, n))
            self.access.demand(self.all(good, n), self.slow)
            if look.strength:
                same = h.ir.and_(h.ir.xor(writers, mine), self.splat(THREAD, n))
                same = h.ir.icmp_unsigned("==", same, self.splat(0, n))
                weak = h.ir.icmp_unsigned("==", h.ir.and_(writers, self.splat(STRENGTH, n)), self.splat(0, n))
                mine = h.ir.select(h.ir.and_(same, weak), writers, mine)
        elif look.role == ATOMIC:
            self.access.demand(self.all(self.written(group.get(0), n), n), self.slow)
        group.put(0, mine, None)
        if n == LANES and look.kind[0] not in "KU" and look.pattern is None and look.role == WRITE and look.race:
            lost = h.ir.icmp_unsigned("==", group.get(0), mine)
            lost = h.ir.or_(lost, h.ir.not_(h.bools(self.mask)))
            self.access.demand(self.all(lost, n), self.slow)


# Lane by lane


def inspect(module: ir.Module, name: str, shape: Shape) -> None:  # noqa: ARG001
    """("watch_inspect",): look at the accesses of SCRATCH for the lanes of a mask; False where Python is asked."""
    _Inspect(module, name)


class _Inspect:
    def __init__(self, module: ir.Module, name: str) -> None:
        h = self.h = Handler(module, name, result=INSPECT)
        mask, self.place, self.flags = h.function.args[3:]
        self.book = book = Book(h)
        self.mine_warp = h.ir.or_(book.mine(Own.CURRENT), self.place)
        self.lenient = h.ir.icmp_unsigned("!=", h.ir.and_(self.place, h.i64(LENIENT)), h.i64(0))
        done = book.get(Ledger.DONE, i32)
        h.for_each_lane(h.ir.and_(mask, h.ir.not_(done)), self.lane)
        h.store(h.i32(0), book.ledger, Ledger.DONE)
        h.ir.ret(ir.Constant(i1, 1))

    def bits(self, shift: int, width: int) -> Any:
        h = self.h
        return h.ir.and_(h.ir.lshr(self.flags, h.i32(shift)), h.i32((1 << width) - 1))

    def lane(self, lane: Any) -> None:
        h, book = self.h, self.book
        self.number = lane
        offset = h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH))
        host = h.load(h.block, offset, i64)
        regions, count = book.get(Ledger.REGIONS, pointer), book.get(Ledger.COUNT, i32)
        head, body, found, over = (h.block_named(n) for n in ("regions", "region", "found", "over"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        index = h.ir.phi(i32)
        index.add_incoming(h.i32(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", index, count), body, over)
        h.ir.position_at_end(body)
        region = h.add(regions, h.ir.mul(h.ir.zext(index, i64), h.i64(Region.SIZE)))
        within = h.ir.sub(host, h.load(region, Region.LOW, i64))
        hit = h.ir.icmp_unsigned("<", within, h.load(region, Region.BYTES, i64))
        index.add_incoming(h.ir.add(index, h.i32(1)), body)
        h.ir.cbranch(hit, found, head)
        h.ir.position_at_end(found)
        self.granules(region, host, within)
        h.ir.branch(over)
        h.ir.position_at_end(over)

    def granules(self, region: Any, host: Any, within: Any) -> None:
        h = self.h
        grain, count = h.ir.zext(self.bits(2, 3), i64), h.ir.zext(self.bits(5, 7), i64)
        tags = h.load(region, Region.TAGS, i64)
        self.stride, self.own = h.load(region, Region.STRIDE, i64), h.load(region, Region.OWN, i32)
        first = h.ir.add(tags, h.ir.shl(h.ir.lshr(within, grain), h.i64(3)))
        head, body, after = (h.block_named(n) for n in ("pieces", "piece", "pieces_done"))
        before = h.ir.block
        h.ir.branch(head)
        h.ir.position_at_end(head)
        number = h.ir.phi(i64)
        number.add_incoming(h.i64(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", number, count), body, after)
        h.ir.position_at_end(body)
        self.at = h.ir.add(first, h.ir.shl(number, h.i64(3)))
        self.host = h.ir.add(host, h.ir.shl(number, grain))
        self.piece()
        number.add_incoming(h.ir.add(number, h.i64(1)), h.ir.block)
        h.ir.branch(head)
        h.ir.position_at_end(after)

    def get(self, plane: int) -> Any:
        h = self.h
        return h.ir.load(self.pointer(plane), align=8)

    def pointer(self, plane: int) -> Any:
        h = self.h
        return h.ir.inttoptr(h.ir.add(self.at, h.ir.mul(self.stride, h.i64(plane))), i64.as_pointer())

    def piece(self) -> None:
        h, book = self.h, self.book
        role, same = self.bits(0, 2), h.ir.trunc(self.bits(12, 1), i1)
        race, init = h.ir.trunc(self.bits(13, 1), i1), h.ir.trunc(self.bits(14, 1), i1)
        local = h.ir.icmp_unsigned("==", self.own, h.i32(2))
        race = h.ir.and_(race, h.ir.not_(local))
        self.mine = h.ir.or_(self.mine_warp, h.ir.zext(self.number, i64))
        writer = self.get(0)
        reads = h.ir.icmp_unsigned("!=", role, h.i32(WRITE))
        stale = h.ir.icmp_unsigned("<", writer, book.get(Ledger.BASE))
        stale = h.ir.select(h.ir.icmp_unsigned("!=", self.own, h.i32(0)), stale,
                            h.ir.icmp_unsigned("==", writer, h.i64(UNWRITTEN)))
        stale = h.ir.and_(h.ir.and_(init, reads), h.ir.and_(stale, h.ir.not_(self.lenient)))
        h.branch_unless(h.ir.not_(stale), lambda: self.leave(Reason.UNINITIALISED, writer))
        quiet = h.ir.or_(h.ir.not_(race), self.lenient)
        fine = h.ir.or_(quiet, self.fine(writer, h.ir.and_(same, h.ir.not_(reads))))
        h.branch_unless(fine, lambda: self.leave(Reason.WRITER, writer))
        is_read = h.ir.icmp_unsigned("==", role, h.i32(READ))
        no = ir.Constant(i1, 0)
        with h.ir.if_else(is_read) as (then, otherwise):
            with then, h.ir.if_then(race):
                reader = self.get(1)
                change = h.ir.xor(reader, self.mine)
                here = h.ir.icmp_unsigned("<", change, h.i64(1 << SEGMENT_SHIFT))
                other = h.ir.icmp_unsigned("!=", h.ir.and_(change, h.i64(SEVERAL | LANE)), h.i64(0))
                more = h.ir.select(h.ir.and_(here, other), h.i64(SEVERAL), h.i64(0))
                past = h.ir.or_(here, self.ordered(reader))
                h.ir.store(h.ir.select(past, self.get(2), reader), self.pointer(2), align=8)
                h.ir.store(h.ir.or_(self.mine, more), self.pointer(1), align=8)
            with otherwise:
                for plane, reason in ((1, Reason.READER), (2, Reason.EARLIER_READER)):
                    reader = self.get(plane)
                    fine = h.ir.or_(quiet, self.fine(reader, no))
                    h.branch_unless(fine, lambda reason=reason, reader=reader: self.leave(reason, reader))  # type: ignore[misc]
                h.ir.store(h.ir.select(self.weak_own(writer), writer, self.mine), self.pointer(0), align=8)

    def weak_own(self, tag: Any) -> Any:
        """Whether a strong access follows a weak one of its own thread, which is the one that others mind."""
        h = self.h
        change = h.ir.and_(h.ir.xor(tag, self.mine), h.i64(THREAD))
        same = h.ir.icmp_unsigned("==", change, h.i64(0))
        weak = h.ir.icmp_unsigned("<", h.ir.and_(tag, h.i64(STRENGTH)), h.ir.and_(self.mine, h.i64(STRENGTH)))
        return h.ir.and_(same, weak)

    def ordered(self, tag: Any) -> Any:
        h, book = self.h, self.book
        below, floor, window = h.ir.icmp_unsigned, book.mine(Own.FLOOR), book.get(Ledger.WINDOW)
        inside = below("<", h.ir.sub(tag, window), h.ir.sub(floor, window))
        there = h.ir.or_(below("<", tag, book.get(Ledger.LAUNCH)), inside)
        return h.ir.select(below("!=", self.own, h.i32(0)), below("<", tag, floor), there)

    def fine(self, tag: Any, same: Any) -> Any:
        """Whether the access that a tag tells of comes before this one, or does not mind it."""
        h, book, mine = self.h, self.book, self.mine
        equal = h.ir.icmp_unsigned
        change = h.ir.xor(tag, mine)

        def agrees(bits: int) -> Any:
            return equal("==", h.ir.and_(change, h.i64(bits)), h.i64(0))

        segment = h.ir.lshr(tag, h.i64(SEGMENT_SHIFT))
        block = equal("==", h.load(*book.owner(segment), i32), book.get(Ledger.BLOCK, i32))
        warp = h.ir.and_(block, agrees(WARP))
        thread = h.ir.and_(warp, equal("==", h.ir.and_(h.ir.or_(change, h.ir.and_(tag, h.i64(SEVERAL))),
                                                      h.i64(LANE | SEVERAL)), h.i64(0)))
        met = h.ir.and_(warp, equal("<", tag, book.mine(Own.MEETING)))
        both = [h.ir.and_(value, h.i64(STRENGTH)) for value in (tag, mine)]
        weaker = h.ir.select(equal("<", *both), *both)
        needed = h.ir.select(block, h.i64(1 << STRENGTH_SHIFT), h.i64(2 << STRENGTH_SHIFT))
        strong = h.ir.and_(equal(">=", weaker, needed), equal("<", weaker, h.i64(3 << STRENGTH_SHIFT)))
        statement = agrees(0xFFFFFFFF << SEGMENT_SHIFT | 0xFFFF << STATEMENT_SHIFT | WARP)
        benign = equal("==", both[0], h.i64(3 << STRENGTH_SHIFT))
        alike = h.ir.and_(statement, h.ir.or_(same, benign))
        good = self.ordered(tag)
        for reason in (thread, met, strong, alike, self.seen(tag, WHOLE), self.seen(tag, 0)):
            good = h.ir.or_(good, reason)
        return good

    def seen(self, tag: Any, whole: int) -> Any:
        """Whether Python has said so before: of the warps, or of these two threads."""
        h, book = self.h, self.book
        key = h.ir.and_(tag, h.i64(0xFFFFFFFF << SEGMENT_SHIFT))
        if whole:
            own = h.ir.or_(h.ir.lshr(h.ir.and_(self.mine, h.i64(WARP)), h.i64(5)), h.i64(WHOLE))
        else:
            other = h.ir.and_(tag, h.i64(LANE | SEVERAL))
            own = h.ir.or_(h.ir.and_(self.mine, h.i64(WARP | LANE)), h.ir.shl(other, h.i64(10)))
            own = h.ir.and_(own, h.i64(0xFFFFFFFF & ~WHOLE))
        key = h.ir.or_(key, own)
        slot = h.ir.lshr(h.ir.mul(key, h.i64(HASH)), h.i64(64 - SEEN_BITS))
        return h.ir.icmp_unsigned("==", h.load(book.get(Ledger.SEEN, pointer), h.ir.shl(slot, h.i64(3)), i64), key)

    def leave(self, reason: int, tag: Any) -> None:
        h, book = self.h, self.book
        for value, offset in (
            (tag, Ledger.TAG), (self.at, Ledger.PLACE), (self.host, Ledger.HOST), (self.number, Ledger.LANE),
            (self.stride, Ledger.STRIDE), (h.i32(reason), Ledger.REASON),
        ):
            h.store(value, book.ledger, offset)
        before = h.ir.sub(h.ir.shl(h.i32(1), self.number), h.i32(1))
        h.store(h.ir.or_(book.get(Ledger.DONE, i32), before), book.ledger, Ledger.DONE)
        h.stop(Status.WATCH)
        h.ir.ret(ir.Constant(i1, 0))
