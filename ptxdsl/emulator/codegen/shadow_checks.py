"""Handlers of the sanitizer: records beside those of the memory instructions, there only where it is on.

The usual case is decided on whole vectors of tags: written before the last barrier, or by this very thread. All else
goes lane by lane through ``inspect``, and what that cannot tell is asked of Python, which knows how threads have been
ordered otherwise. An access is looked at before it is made, so nothing is lost where it overwrites its own address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ..machine.layout import LANES, Entry
from .library import Shape
from ..machine.shadow import LANE, SEGMENT_SHIFT, SEVERAL, STRENGTH, STRENGTH_SHIFT, THREAD, UNWRITTEN, Ledger, Own
from .handler import Handler, i1, i32, i64, lanes_of, pointer
from .data import guard_mask
from .shadow_inspection import ATOMIC, INSPECT, READ, WRITE
from .memory import Access, twins
from .epochs import Book

__all__ = ["can_fuse", "watch", "watch_with"]


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
    access = h.access(look.kind, look.pattern, look.nbytes, look.role != READ)
    mask = guard_mask(h, look.guard, True)
    statement = h.field()
    if look.guard:
        h.branch_unless(h.ir.icmp_unsigned("!=", mask, h.i32(0)), lambda: h.goto(h.following()))
    book = Book(h, fixed=True)
    if h.merged() is not None:
        statement = h.i32(0)  # each piece has its own
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
            merged = h.merged()
            if merged is None:
                return [self.line(host, look.pieces, self.splat(lane, look.pieces))]
            return [self.line(host, len(merged), h.ir.or_(self.splat(lane, len(merged)), self.constant([*merged])))]
        if letter in "AH" and look.pattern is not None:
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
            who = first | (SEVERAL if lanes > 1 else 0)
            ids = [who | statement for statement in self.h.merged() or (0,) * look.pieces]
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
            h.mark(h.ir.store(value, at(plane), align=8), "tags")

        return _Group(size, lambda plane: h.mark(h.ir.load(at(plane), align=8), "tags"), put, lanes)

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
            name = "llvm.masked.gather.v32i64.v32p0"
            return h.mark(h.call(name, wide, at(plane), h.i32(8), bools, rest), "tags")

        def put(plane: int, value: Any, where: Any) -> None:
            chosen = bools if where is None else h.ir.and_(bools, where)
            name = "llvm.masked.scatter.v32i64.v32p0"
            h.mark(h.call(name, ir.VoidType(), value, at(plane), h.i32(8), chosen), "tags")

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
        reach = self.h.call("llvm.usub.sat.i64", i64, self.floor, self.window)
        inside = below("<", since, self.splat(reach, n))
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
