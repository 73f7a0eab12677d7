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
from .shadow_groups import Group

__all__ = ["LineCheck", "of_lines"]

_LINE = ir.FunctionType(i1, [pointer, pointer, pointer, i32, *[i64] * 4])
_COMES_BEFORE = ir.FunctionType(i1, [pointer, pointer, pointer, i64, i32, i1])
_WHOLE = 0xFFFFFFFF << EPOCH_SHIFT | WARP


def of_lines(check: ShadowCheck) -> bool:
    """Whether an order among warps is searched for, and the lanes lie side by side."""
    side_by_side = (check.address.affine or check.address.by_row) and check.pattern is not None
    return check.searched and check.race and not check.strength and not check.copies and side_by_side


class LineCheck(FastCheck):
    """A check that asks :func:`_line_check` for each of its lines, and then looks at one word a lane."""

    def check_group(self, group: Group) -> None:
        """Go on where a line passes."""
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
    """The check of a line, in its function."""

    def look_at_each(self) -> ir.Block | None:
        """The code that asks does that."""
        return None

    def judge_writers(self, group: Group, writers: Any, mine: Any) -> None:  # noqa: ARG002
        """Go on where no last writer races with the read."""
        self.demand(self.come_before(writers, group))
        if self.check.init:
            self.demand(self.all(self.written(writers, group.size), group.size))

    def judge_write(self, group: Group, writers: Any, one: Any, own: Any) -> Any:  # noqa: ARG002
        """Go on where no access races with the store."""
        self.demand(self.come_before(writers, group))
        for plane in (Plane.READER, Plane.EARLIER_READER) if self.check.readers else ():
            self.demand(self.come_before(group.get(plane), group, True))
        if self.check.init and self.check.role == Role.ATOMIC:
            self.demand(self.all(self.written(writers, group.size), group.size))

    def read_later(self, group: Group, readers: Any, mine: Any, after: ir.Block) -> None:
        """What the same threads have read in an earlier epoch they have read now: the one before is what it was."""
        h, n = self.h, group.size
        other = h.ir.and_(h.ir.xor(readers, mine), self.splat(ASYNC | STORED | WARP | LANE, n))
        several = h.ir.and_(h.ir.or_(readers, mine), self.splat(SEVERAL_LANES, n))
        same = h.ir.icmp_unsigned("==", h.ir.or_(other, several), self.splat(0, n))
        again, anew = h.block_named("again"), h.block_named("anew")
        h.ir.cbranch(self.all(same, n), again, anew)
        h.ir.position_at_end(again)
        group.put(Plane.READER, h.ir.or_(mine, h.ir.and_(readers, self.splat(FIRST, n))), None)
        h.ir.branch(after)
        h.ir.position_at_end(anew)

    def come_before(self, words: Any, group: Group, readers: bool = False) -> Any:
        """Whether the accesses of a line's words are harmless; of what one warp did in one epoch that is asked once.

        Of ``readers`` those of the same thread in an earlier epoch are harmless.
        """
        h, n = self.h, group.size
        change = h.ir.xor(words, group.lanes)
        word, first, lanes = (h.ir.extract_element(vector, h.i32(0)) if n > 1 else vector
                              for vector in (words, change, group.lanes))

        def own(words: Any, lanes: Any, n: int) -> Any:
            mine = h.ir.or_(self.splat(self.word, n), lanes)
            if self.check.role != Role.READ:  # several lanes are no one thread
                mine = h.ir.and_(mine, self.splat(~SEVERAL_LANES & (1 << 64) - 1, n))
            return self.same_thread(words, mine, n)

        def ask() -> Any:
            several = h.i64(SEVERAL_LANES if n > 1 else 0)
            same = h.ir.or_(h.ir.xor(first, self.word), h.ir.and_(word, h.i64(SEVERAL_LANES)))
            same = h.zero(h.ir.and_(same, h.i64(WARP | LANE | SEVERAL_LANES)))
            same = same if readers else ir.Constant(i1, 0)
            function = _comes_before(h.function.module, bool(self.check.block_private))
            return h.ir.call(function, [h.rec, h.warp, h.block, h.ir.or_(word, several), self.mask, same])

        def once() -> Any:
            good = self.harmless(word, own(word, lanes, 1), 1)
            return h.ir.or_(good, h.asked_if(h.ir.not_(good), ask))

        if n == 1:
            return once()
        alike = self.all(h.ir.icmp_unsigned("==", change, self.splat(first, n)), n)
        with h.ir.if_else(alike) as (one, several):
            with one:
                of_one, by_one = once(), h.ir.block
            with several:
                of_each = self.all(self.harmless(words, own(words, group.lanes, n), n), n)
                by_each = h.ir.block
        return h.merged(by_one, [of_one], by_each, [of_each])[0]


def _comes_before(module: ir.Module, of_block: bool) -> ir.Function:
    """Whether accesses come before what the lanes of a mask do: (_, warp, block, word, lanes, threads).

    They are those of a shadow word, in memory of the block, where no barrier of the block orders them; ``threads``:
    each of them is of the thread that asks.
    """
    name = f"comes_before.{int(of_block)}"
    found: ir.Function | None = module.globals.get(name)
    if found is not None:
        return found
    h = Handler(module, name, result=_COMES_BEFORE)
    h.function.linkage = "internal"
    h.function.attributes.add("noinline")
    word, lanes, threads = h.function.args[3:]
    shadow, below = ShadowState(h), h.ir.icmp_unsigned
    now = shadow.clock(WarpClock.EPOCH)
    mine = h.zero(h.ir.and_(h.ir.xor(word, now), h.i64(WARP)))
    if not of_block:
        block = h.load(*shadow.block_of(h.ir.lshr(word, h.i64(EPOCH_SHIFT))), i32)
        mine = h.ir.and_(mine, below("==", block, shadow.get(Shadow.BLOCK, i32)))
    earlier = h.ir.or_(below("<", word, shadow.clock(WarpClock.WARP_FLOOR)), h.ir.and_(threads, below("<", word, now)))
    whole, last = h.ir.and_(word, h.i64(_WHOLE)), shadow.clock(WarpClock.KNOWN)
    good = h.ir.or_(h.ir.and_(mine, earlier), below("==", whole, last))

    def search() -> Any:
        """By what is acquired; what all lanes have is noted."""
        place = h.alloca(i64)
        h.ir.store(word, place)
        function = h.ir.bitcast(shadow.get(Shadow.SEARCH, pointer), PRECEDE.as_pointer())
        arguments = [*h.function.args[:3], h.ir.bitcast(place, pointer), h.i64(1), h.i64(0), lanes]
        known = h.ir.call(function, arguments)
        every = below("==", lanes, h.load(h.warp, Warp.INITIAL, i32))
        every = h.ir.and_(every, h.nonzero(h.ir.and_(word, h.i64(SEVERAL_LANES))))
        h.store(h.ir.select(h.ir.and_(known, every), whole, last), shadow.warp, WarpClock.KNOWN)
        return known

    h.ir.ret(h.ir.or_(good, h.asked_if(h.ir.not_(good), search)))
    return h.function
