"""Shadow checks of whole lines where flags, fences or barriers of the cluster order warps: one function a kind of line.

A line of shadow words is mostly of one warp and one epoch then, with its lanes in their order: a warp has made the
line, and hands it over. So whether that comes before is asked once for all words. The function stands beside the code
that asks, which keeps its vectors in registers.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowCheck
from ...machine.layout import Warp
from ...machine.proxy_shadow import ASYNC
from ...machine.shadow import EPOCH_SHIFT, FIRST, LANE, SEVERAL_LANES, STORED, WARP, Plane, Role, Shadow, WarpClock
from ..handler import Handler, i1, i32, i64, pointer
from ..storage import digest
from .epochs import ShadowState
from .fast_checks import FastCheck, Found
from .mbarriers import PRECEDE
from .order_search import known_to_all
from .shadow_groups import Group

__all__ = ["LineCheck", "of_lines"]

_LINE = ir.FunctionType(i1, [pointer, pointer, pointer, i32, *[i64] * 4])
_COMES_BEFORE = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i32])
_WHOLE = 0xFFFFFFFF << EPOCH_SHIFT | WARP


def of_lines(check: ShadowCheck) -> bool:
    """Whether an order among warps is searched for, and the lanes lie side by side."""
    side_by_side = (check.address.affine or check.address.by_row) and check.pattern is not None
    plain = check.race and not check.strength and not check.copies
    return check.searched and plain and side_by_side


class LineCheck(FastCheck):
    """A check that asks :func:`_line_check` for each of its lines, and then looks at one word a lane."""

    def check_group(self, group: Group) -> None:
        """Go on where a line passes."""
        if group.size == 1:
            super().check_group(group)
            return
        h, where = self.h, (self.place_bits, self.words, self.stride, group.start)
        function = _line_check(h.function.module, self.check, group)
        self.demand(h.ir.call(function, [h.rec, h.warp, h.block, self.mask, *where]))


def _line_check(module: ir.Module, check: ShadowCheck, group: Group) -> ir.Function:
    """Whether a line passes a check, which is then noted: (_, warp, block, mask, place, words, stride, host)."""
    what = check.role, check.block_private, check.granule, check.init, check.readers, check.in_cluster, group.lanes
    name = f"line.{digest(repr((*what[:-1], str(group.lanes))).encode())}"
    found: ir.Function | None = module.globals.get(name)
    if found is not None:
        return found
    h = Handler(module, name, result=_LINE)
    h.function.linkage = "internal"
    h.function.attributes.add("noinline")
    mask, place, words, stride, host = h.function.args[3:]
    shadow = ShadowState(h)
    line = _Line(h, check, Found(h), shadow, h.ir.or_(shadow.clock(WarpClock.EPOCH), place), mask, [], place)
    line.words, line.stride = words, stride
    line.check_group(line.line(host, group.size, group.lanes))
    h.ir.ret(ir.Constant(i1, 1))
    return h.function


class _Line(FastCheck):
    """The check of a line, in its function: by the words of its first lane, where all others follow from these."""

    def look_at_each(self) -> ir.Block | None:
        """The code that asks does that."""
        return None

    def read(self, group: Group) -> None:
        """Read a line that one warp has written in one epoch, and one or the same has read; or any other."""
        h, check, whole, done = self.h, self.check, self.h.block_named("any"), self.h.block_named("read")
        writer, reader = self.first_words(group, (Plane.WRITER, Plane.READER), whole)
        self.demand(self.comes_before(writer, group))
        if check.init:
            self.demand(self.written(writer, 1))
        old = self.ordered(reader, 1)
        again = h.zero(h.ir.and_(reader, h.i64(STORED)))
        again = h.ir.and_(again, self.of_same_threads(reader, group))
        flags = h.i64(0)
        if check.block_private:  # what came before the same threads' last read is what came before this one
            flags = h.ir.select(old, h.i64(FIRST), h.ir.and_(reader, h.i64(FIRST)))
        note = h.block_named("note")
        h.ir.cbranch(h.ir.or_(old, again), note, whole)
        h.ir.position_at_end(note)
        group.put(Plane.READER, h.ir.or_(self.splat(h.ir.or_(self.word, flags), group.size), group.lanes), None)
        h.ir.branch(done)
        h.ir.position_at_end(whole)
        super().read(group)
        h.ir.branch(done)
        h.ir.position_at_end(done)

    def write(self, group: Group) -> None:
        """Write a line that one warp has written in one epoch, and one or the same has read; or any other."""
        h, check, whole, done = self.h, self.check, self.h.block_named("any"), self.h.block_named("written")
        planes = (Plane.WRITER, Plane.READER) if check.readers else (Plane.WRITER,)
        writer, *readers = self.first_words(group, planes, whole)
        self.demand(self.comes_before(writer, group))
        if check.init and check.role == Role.ATOMIC:
            self.demand(self.written(writer, 1))
        for reader in readers:
            self.demand(self.comes_before(reader, group, True))
            first = h.ir.icmp_unsigned("==", h.ir.and_(reader, h.i64(STORED | FIRST)), h.i64(FIRST))
            alone, earlier = h.block_named("alone"), h.block_named("earlier")
            h.ir.cbranch(first if check.block_private else ir.Constant(i1, 0), alone, earlier)
            h.ir.position_at_end(earlier)
            one, = self.first_words(group, (Plane.EARLIER_READER,), whole)
            self.demand(self.comes_before(one, group, True))
            h.ir.branch(alone)
            h.ir.position_at_end(alone)
        group.put(Plane.WRITER, h.ir.or_(self.splat(self.word, group.size), group.lanes), None)
        h.ir.branch(done)
        h.ir.position_at_end(whole)
        super().write(group)
        h.ir.branch(done)
        h.ir.position_at_end(done)

    def first_words(self, group: Group, planes: tuple[int, ...], whole: ir.Block) -> list[Any]:
        """The word of the first lane in each plane, from which the others follow; control goes to ``whole`` if not."""
        h, n = self.h, group.size
        found, apart = [], self.splat(0, n)
        for plane in planes:
            words = group.get(plane)
            change = h.ir.xor(words, group.lanes)
            found.append(h.ir.extract_element(words, h.i32(0)))
            first = h.ir.extract_element(change, h.i32(0))
            apart = h.ir.or_(apart, h.ir.xor(change, self.splat(first, n)))
        alike = h.block_named("alike")
        all_bits = h.call(f"llvm.vector.reduce.or.v{n}i64", i64, apart)
        h.ir.cbranch(h.likely(h.zero(all_bits)), alike, whole)
        h.ir.position_at_end(alike)
        return found

    def of_same_threads(self, word: Any, group: Group) -> Any:
        """Whether a line's accesses are each of the thread that is there now, in this epoch or an earlier one."""
        h = self.h
        mine = h.ir.or_(self.word, h.ir.extract_element(group.lanes, h.i32(0)))
        other = h.ir.and_(h.ir.xor(word, mine), h.i64(ASYNC | WARP | LANE))
        several = h.ir.and_(h.ir.or_(word, mine), h.i64(SEVERAL_LANES))
        same = h.zero(h.ir.or_(other, several))
        if self.check.block_private:
            return same
        block = h.load(*self.shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
        return h.ir.and_(same, h.ir.icmp_unsigned("==", block, self.shadow.get(Shadow.BLOCK, i32)))

    def comes_before(self, word: Any, group: Group, read: bool = False) -> Any:
        """Whether a line's accesses are harmless: by barriers, as those of the same thread, or by what is acquired.

        Of a thread's stores before this epoch a later one has to look at the values, but of its reads it has not.
        """
        h = self.h
        mine = h.ir.or_(self.word, h.ir.extract_element(group.lanes, h.i32(0)))
        if self.check.role != Role.READ:  # several lanes are no one thread
            mine = h.ir.and_(mine, h.i64(~SEVERAL_LANES & (1 << 64) - 1))
        good = self.harmless(word, self.same_thread(word, mine, 1), 1)
        if read:
            good = h.ir.or_(good, self.of_same_threads(word, group))

        def ask() -> Any:
            function = _comes_before(h.function.module, bool(self.check.block_private))
            return h.ir.call(function, [*h.function.args[:3], h.ir.or_(word, h.i64(SEVERAL_LANES)), self.mask])

        return h.ir.or_(good, h.asked_if(h.ir.not_(good), ask))


def _comes_before(module: ir.Module, of_block: bool) -> ir.Function:
    """Whether accesses of several lanes come before what those of a mask do: (_, warp, block, word, lanes)."""
    name = f"comes_before.{int(of_block)}"
    found: ir.Function | None = module.globals.get(name)
    if found is not None:
        return found
    h = Handler(module, name, result=_COMES_BEFORE)
    h.function.linkage = "internal"
    h.function.attributes.add("noinline")
    word, lanes = h.function.args[3:]
    shadow, below = ShadowState(h), h.ir.icmp_unsigned
    mine = h.zero(h.ir.and_(h.ir.xor(word, shadow.clock(WarpClock.EPOCH)), h.i64(WARP)))
    good = h.ir.and_(mine, below("<", word, shadow.clock(WarpClock.WARP_FLOOR)))
    good = h.ir.or_(good, known_to_all(h, shadow, word))
    if not of_block:
        block = h.load(*shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
        good = h.ir.and_(good, below("==", block, shadow.get(Shadow.BLOCK, i32)))
    whole, last = h.ir.and_(word, h.i64(_WHOLE)), shadow.clock(WarpClock.KNOWN)
    good = h.ir.or_(good, below("==", whole, last))

    def search() -> Any:
        """By what is acquired; what all lanes have is noted."""
        place = h.alloca(i64)
        h.ir.store(word, place)
        function = h.ir.bitcast(shadow.get(Shadow.SEARCH, pointer), PRECEDE.as_pointer())
        arguments = [*h.function.args[:3], h.ir.bitcast(place, pointer), h.i64(1), h.i64(0), lanes]
        known = h.ir.call(function, arguments)
        every = h.ir.and_(known, below("==", lanes, h.load(h.warp, Warp.INITIAL, i32)))
        h.store(h.ir.select(every, whole, last), shadow.warp, WarpClock.KNOWN)
        return known

    h.ir.ret(h.ir.or_(good, h.asked_if(h.ir.not_(good), search)))
    return h.function
