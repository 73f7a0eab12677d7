"""Handlers of shadow checks: the sanitizer's micro-ops before those of memory instructions.

The fast path decides on whole vectors of shadow words: an access before the last barrier, or by the same thread, is no
race. All others go lane by lane through ``shadow_inspection``; what that cannot decide is left to Python, which has the
vector clocks. The check precedes the access, which may overwrite the register that holds its address.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.instrumentation import ShadowCheck
from ...instructions.micro_op import layout_of
from ...instructions.operand_classes import PREDICATE, OperandClass
from ...machine.layout import LANES, Block, Entry
from ...machine.shadow import (
    NOTED, STORED, STRENGTH_SHIFT, THREAD, WORD_SHIFT, Plane, Reason, Role, Shadow, WarpClock,
)
from ..atomics import place_at
from ..data import fit, guard_mask, source
from .epochs import ShadowState, leave
from ..handler import Handler, const, i1, i32, i64, lanes_of, pointer
from ..local_memory import private_places
from ..access import Access, access_of
from ..registry import emits
from ..storage import digest
from .fast_checks import FastCheck, Found, knows_again
from .line_checks import LineCheck, of_lines
from .masked_checks import MOST_GRANULES, MOST_PRIVATE, masked_check
from .shadow_groups import words_of
from .shadow_inspection import INSPECT


@emits(ShadowCheck, slow_path=True)
def shadow_check(h: Handler, check: ShadowCheck) -> None:
    access = access_of(h, check.address, check.pattern, check.nbytes, check.role != Role.READ)
    access.in_window = check.anywhere
    mask = guard_mask(h, check.guard, True)
    one_value = check.same_value or h.lane is not None
    alike = one_value and check.address.scalar and all(kind.scalar for kind in check.sources)
    one_place = check.role == Role.WRITE and check.address.scalar and check.race and not alike
    values = [_stored(h, kind, check.bits, alike, one_place) for kind in check.sources]
    flags = _Flags(h, check)
    written = [h.field() for _ in range(check.apart)]
    statement = h.ir.and_(h.field(), h.i32(NOTED - 1))
    if check.guard:
        h.skip_unless_any(mask)
    over = _skip_unless_within(h, access, mask, written) if written else None
    shadow = ShadowState(h, fixed=True)
    if h.merged_granules() is not None:
        statement = h.i32(0)  # each granule has its own
    place = h.ir.or_(h.ir.zext(statement, i64), h.i64(check.strength << STRENGTH_SHIFT))
    anywhere = check.block_private is None and not check.private and not check.copies
    anywhere = anywhere and 0 < check.granules <= MOST_GRANULES
    if h.slow_path is None:
        hosts = access.resolve(mask)
        if anywhere:
            _skip_if_passed(h, check, shadow, mask, place, hosts)
        if values:
            h.store(h.ir.ptrtoint(_spilled(h, values), i64), shadow.block, Shadow.VALUES)
        flags.announce(shadow, mask)
        function = h.ir.bitcast(shadow.get(Shadow.INSPECT, pointer), INSPECT.as_pointer())
        decided = h.ir.call(function, [h.rec, h.warp, h.block, mask, place, h.i32(check.flags)])
        h.branch_unless(decided, h.ir.ret_void)
        flags.settle(shadow)
        _go_on(h, over)
        return
    flags.demand(access, mask)
    if h.merged_granules() == ():
        _go_on(h, over)
        return
    if h.lane is not None:
        _check_lane(h, check, access, shadow, mask, place, values)
        _go_on(h, over)
        return
    if check.block_private is None:
        if check.private and check.granules <= MOST_PRIVATE:
            hosts = private_places(h, access, check, mask)
            function, words = masked_check(h.function.module, check), shadow.get(Shadow.LOCAL_WORDS)
            arguments = [h.rec, h.warp, h.block, mask, place, words, h.i64(0), hosts]
            access.demand(h.ir.call(function, arguments))
        elif anywhere:
            function = masked_check(h.function.module, check)
            access.demand(h.ir.call(function, _anywhere(h, mask, place, access.hosts(mask))))
        else:
            access.demand(const(i1, 0))
        h.next()
        return
    kind = LineCheck if of_lines(check) and h.merged_granules() is None else FastCheck
    fast = kind(h, check, access, shadow, _word(shadow, place), mask, values if alike else [], place)
    if one_place and values:
        fast.compare_lanes(values)
    fast.emit()
    h.store(h.i32(0), shadow.block, Shadow.CHECKED_LANES)
    _go_on(h, over)


def _check_lane(
    h: Handler, check: ShadowCheck, access: Access, shadow: ShadowState, mask: Any, place: Any, values: list[Any]
) -> None:
    """The check of the one lane that the code is for."""
    if check.block_private is not None:
        good, host = access.check_scalar()
        access.demand(good)
        _ask_for_lane(h, check, access, place, values, host)
    elif check.private and check.granules <= MOST_PRIVATE:
        _check_private_lane(h, check, access, shadow, private_places(h, access, check, mask), place)
    elif not check.private and not check.copies and 0 < check.granules <= MOST_GRANULES:
        _ask_for_lane(h, check, access, place, values, access.host(mask))
    else:
        access.demand(const(i1, 0))


def _ask_for_lane(h: Handler, check: ShadowCheck, access: Access, place: Any, values: list[Any], host: Any) -> None:
    """The check of one lane: here whether it was the last to read, all else in a function beside the code that asks.

    The last reader of a place in this epoch is the only thread that may have come there since (:mod:`.masked_checks`).
    """
    words, stride = h.i64(0), h.i64(0)
    if check.block_private is not None:
        words, stride = words_of(h, access)

    def ask() -> Any:
        function = _lane_check(h.function.module, check, [value.type for value in values])
        return h.ir.call(function, [h.rec, h.warp, h.block, h.lane, place, words, stride, host, *values])

    quick = check.block_private is not None and knows_again(check)
    if not quick:
        access.demand(ask())
        return
    shadow, first = ShadowState(h), h.ir.shl(h.ir.lshr(host, h.i64(check.granule)), h.i64(WORD_SHIFT))
    at = h.ir.add(h.ir.add(words, first), h.ir.mul(stride, h.i64(Plane.READER)))
    reader = h.alias_class(h.ir.load(h.ir.inttoptr(at, i64.as_pointer()), align=8), "shadow")
    mine = h.ir.or_(shadow.clock(WarpClock.EPOCH), h.ir.zext(h.lane, i64))
    again = h.zero(h.ir.and_(h.ir.xor(reader, mine), h.i64(THREAD)))
    if check.role == Role.READ:
        access.demand(h.ir.not_(h.asked_if(h.ir.not_(again), lambda: h.ir.not_(ask()))))
        return
    writer, earlier = (
        h.ir.inttoptr(h.ir.add(h.ir.add(words, first), h.ir.mul(stride, h.i64(plane))), i64.as_pointer())
        for plane in (Plane.WRITER, Plane.EARLIER_READER)
    )
    old = h.ir.icmp_unsigned("<", h.alias_class(h.ir.load(earlier, align=8), "shadow"), shadow.get(Shadow.LAUNCH))
    again = h.ir.and_(h.ir.and_(again, old), h.zero(h.ir.and_(reader, h.i64(STORED))))
    quick_way, other, done = (h.block_named(name) for name in ("again", "anew", "noted"))
    h.ir.cbranch(again, quick_way, other)
    h.ir.position_at_end(other)
    access.demand(ask())
    h.ir.branch(done)
    h.ir.position_at_end(quick_way)
    h.alias_class(h.ir.store(h.ir.or_(mine, place), writer, align=8), "shadow")
    h.ir.branch(done)
    h.ir.position_at_end(done)


class _LaneHandler(Handler):
    """The function of a check of one lane."""

    @property
    def lane(self) -> Any:
        return self.function.args[3]


def _lane_check(module: ir.Module, check: ShadowCheck, kinds: list[ir.Type]) -> ir.Function:
    """Whether one lane passes a check: (_, warp, block, lane, place, words, stride, host, values)."""
    what = check[:-1] + tuple(map(str, kinds))
    name = f"lane.{digest(repr(what).encode())}"
    found: ir.Function | None = module.globals.get(name)
    if found is not None:
        return found
    h = _LaneHandler(module, name, result=ir.FunctionType(i1, [pointer, pointer, pointer, i32, *[i64] * 4, *kinds]))
    h.function.linkage = "internal"
    h.function.attributes.add("noinline")
    place, words, stride, host, *values = h.function.args[4:]
    shadow = ShadowState(h)
    fast = FastCheck(h, check, Found(h), shadow, _word(shadow, place), h.ir.shl(h.i32(1), h.lane), values, place)
    fast.words, fast.stride, fast.at = words, stride, host
    if check.block_private is None:
        fast.find_region()
    fast.emit()
    h.ir.ret(const(i1, 1))
    return h.function


def _word(shadow: ShadowState, place: Any) -> Any:
    """The shadow word of an access, but for its lane."""
    return shadow.h.ir.or_(shadow.clock(WarpClock.EPOCH), place)


def _check_private_lane(
    h: Handler, check: ShadowCheck, access: Access, shadow: ShadowState, host: Any, place: Any
) -> None:
    """The check of one lane's own memory: whether it has been written."""
    if check.copies or check.strength or (check.role == Role.ATOMIC and check.race):
        access.demand(const(i1, 0))
        return
    words, base = shadow.get(Shadow.LOCAL_WORDS), shadow.get(Shadow.BASE)
    mine = h.ir.or_(h.ir.or_(shadow.clock(WarpClock.EPOCH), place), h.ir.zext(h.lane, i64))
    count = check.granules  # side by side: no access of local memory falls apart
    if check.role == Role.READ and h.known_alignment >= check.nbytes:
        count = 1  # what was pushed is popped as a whole
    first = h.ir.shl(h.ir.lshr(host, h.i64(check.granule)), h.i64(WORD_SHIFT))
    kind = ir.VectorType(i64, count) if count > 1 else i64
    place_of_words = h.ir.inttoptr(h.ir.add(words, first), kind.as_pointer())

    def each(value: Any) -> Any:
        spread = h.ir.insert_element(ir.Constant(kind, ir.Undefined), value, h.i32(0)) if count > 1 else value
        order = ir.Constant(ir.VectorType(i32, count), None)
        return h.ir.shuffle_vector(spread, spread, order) if count > 1 else value

    if check.role == Role.WRITE:
        h.alias_class(h.ir.store(each(mine), place_of_words, align=8), "shadow")
    elif check.init:
        before = h.alias_class(h.ir.load(place_of_words, align=8), "shadow")
        good = h.ir.icmp_unsigned(">=", before, each(base))
        every = ir.Constant(ir.IntType(count), -1)
        access.demand(h.ir.icmp_unsigned("==", h.ir.bitcast(good, every.type), every) if count > 1 else good)


def _skip_unless_within(h: Handler, access: Access, mask: Any, entries: list[Any]) -> ir.Block:
    """Go on in the block that is given, but for accesses to one of these arrays, from just before it on."""
    one = h.lane is not None
    lanes, table = access.base() if one else access.vector(), h.load(h.block, Block.TABLE, pointer, fixed=True)
    found: Any = const(i1, 0) if one else ir.Constant(lanes_of(i1), None)
    for offset in entries:
        entry, before = h.add(table, offset), h.i64(access.nbytes - 1)
        low, size = (h.load(entry, field, i64, fixed=True) for field in (Entry.LOW, Entry.SIZE))
        low, size = h.ir.sub(low, before), h.ir.add(size, before)
        low, size = (low, size) if one else (h.splat(low), h.splat(size))
        found = h.ir.or_(found, h.ir.icmp_unsigned("<", h.ir.sub(lanes, low), size))
    within, over = h.block_named("within"), h.block_named("elsewhere")
    h.ir.cbranch(found if one else h.nonzero(h.ir.and_(h.mask(found), mask)), within, over)
    h.ir.position_at_end(within)
    return over


def _go_on(h: Handler, over: ir.Block | None) -> None:
    if over is not None:
        h.ir.branch(over)
        h.ir.position_at_end(over)
    h.next()


def _anywhere(h: Handler, mask: Any, place: Any, hosts: Any) -> list[Any]:
    """The arguments of a check of one word a lane, wherever that is."""
    return [h.rec, h.warp, h.block, mask, place, h.i64(0), h.i64(0), hosts]


def _skip_if_passed(h: Handler, check: ShadowCheck, shadow: ShadowState, mask: Any, place: Any, hosts: Any) -> None:
    """Go on with the next micro-op where all lanes pass at once, unless Python was asked for some of them."""
    function = masked_check(h.function.module, check)
    fresh = h.zero(shadow.get(Shadow.CHECKED_LANES, i32))
    passed = h.asked_if(fresh, lambda: h.ir.call(function, _anywhere(h, mask, place, hosts)))
    h.branch_unless(h.ir.not_(passed), h.next)


def _stored(h: Handler, kind: OperandClass, bits: int, alike: bool, one_place: bool) -> Any:
    """A value that is stored, in each lane; on the fast path it is asked for only where the address is one for all, and
    is one number where it is ``alike`` in all.
    """
    if h.slow_path is None or one_place:
        return fit(h, source(h, kind, LANES), bits, False)
    if alike:
        return fit(h, source(h, kind, 1), bits, False)
    h.field("q" if kind.immediate else "i")
    if kind.affine or (kind.immediate and kind.bits == 128):
        h.field("q")
    return None


def _spilled(h: Handler, values: list[Any]) -> Any:
    """Values in memory, one after the other."""
    kind = values[0].type
    array = h.alloca(ir.ArrayType(kind.element, LANES * len(values)))
    for number, value in enumerate(values):
        start = place_at(h, array, h.i32(number * LANES), kind.element)
        h.ir.store(value, h.ir.bitcast(start, kind.as_pointer()), align=8)
    return array


class _Flags:
    """The predicates of the elements of an access that say whether they are defined."""

    def __init__(self, h: Handler, check: ShadowCheck) -> None:
        self.h, self.check, self.loads = h, check, check.role == Role.READ
        elements = [number for number, flagged in enumerate(check.flagged) if flagged]
        self.slots = {number: h.field() for number in elements} if self.loads else {}
        self.values = {} if self.loads else {number: guard_mask(h, PREDICATE, False) for number in elements}

    def _place(self, granule: int) -> int:
        return Shadow.UNDEFINED + 4 * granule

    def undefined(self, number: int, mask: Any) -> Any:
        return self.h.ir.and_(self.h.ir.not_(self.values[number]), mask)

    def demand(self, access: Access, mask: Any) -> None:
        """A store of defined values only."""
        for number in self.values:
            access.demand(self.h.zero(self.undefined(number, mask)))

    def announce(self, shadow: ShadowState, mask: Any) -> None:
        """Say before the inspection of a store which values are undefined."""
        for number in self.values:
            for granule in self.check.granules_of(number):
                self.h.store(self.undefined(number, mask), shadow.block, self._place(granule))

    def settle(self, shadow: ShadowState) -> None:
        """Clear the predicates of what the inspection of a load has found undefined, and tell Python at first."""
        h, check = self.h, self.check
        if not check.defers:
            return
        found: Any = h.i32(0)
        for number in range(len(check.flagged)):
            lanes: Any = h.i32(0)
            for granule in check.granules_of(number):
                lanes = h.ir.or_(lanes, h.load(shadow.block, self._place(granule), i32))
                h.store(h.i32(0), shadow.block, self._place(granule))
            if number in self.slots:
                slot = h.add(h.warp, self.slots[number])
                h.store(h.ir.and_(h.load(slot, 0, i32), h.ir.not_(lanes)), slot, 0)
            found = h.ir.or_(found, lanes)
        if self.loads:
            place = layout_of(h.codes)[0].size - 4
            noted = h.nonzero(h.ir.and_(h.load(h.rec, place, i32, 4), h.i32(NOTED)))
            told = h.ir.or_(noted, h.zero(found))
            h.branch_unless(told, lambda: leave(h, ShadowState(h), Reason.DEFERRED, h.following(), found))
