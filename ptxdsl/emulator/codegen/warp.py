"""Instructions by which the lanes of a warp see each other: shfl, vote, match, redux and the like.

A member mask names lanes that take part. All of them that live must be here, and each lane that is here must be named:
everything else waits for ever or is undefined on a GPU, so it is a fault.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...isa import lookup
from ...machine_code.host import vector_registers
from .. import semantics
from ..machine.layout import LANES, Block, Warp
from ..machine.status import Fault
from ..instructions.operand_classes import OperandClass
from ..instructions.warp import ActiveMask, Elect, Match, Reduce, Shuffle, Vote, WarpBarrier, source_lane
from .handler import Handler, i1, i32, i64, lanes_of, pointer, zeros
from .control import await_lanes
from .data import guard_mask, put, slots_of, source
from .registry import emits

__all__ = ["Members", "permuted", "sources_of", "words"]

words = lanes_of(i32)


class Members:
    """The executing lanes and the member mask of a warp instruction, checked."""

    def __init__(self, h: Handler, guard: OperandClass, masked: bool) -> None:
        self.h, self.guard = h, guard
        self.lanes = guard_mask(h, guard, True)
        self.priority = h.field() if masked else None
        self.mask_for_put = self.lanes if masked or guard else None
        if guard:
            h.skip_unless_any(self.lanes)

    def check(self, kind: OperandClass, missing: Any = None) -> Any:
        """Read the member mask and check it; the members of each lane's group, an i32 or <32 x i32>.

        ``missing`` are the lanes whose source does not take part.
        """
        h = self.h
        varies = kind.per_lane or kind.affine
        members = source(h, kind, LANES if varies else 1)
        alive = h.load(h.warp, Warp.ALIVE, i32)
        if varies:
            return self._check_each(members, alive)
        strangers = h.ir.and_(self.lanes, h.ir.not_(members))
        absent = h.ir.and_(h.ir.and_(members, alive), h.ir.not_(self.lanes))
        await_lanes(h, absent, self.priority)
        wrong = h.ir.or_(strangers, absent)
        if missing is None:
            h.branch_unless(h.zero(wrong), lambda: self._fault(members))
            return members

        def either() -> None:
            h.branch_unless(h.zero(wrong), lambda: self._fault(members))
            h.fault(Fault.SOURCE, missing)

        h.branch_unless(h.zero(h.ir.or_(wrong, missing)), either)
        return members

    def _check_each(self, members: Any, alive: Any) -> Any:
        h = self.h
        own = ir.Constant(words, [1 << lane for lane in range(LANES)])
        named = h.ir.icmp_unsigned("!=", h.ir.and_(members, own), zeros(words))
        missing = h.ir.and_(h.ir.and_(members, h.splat(alive)), h.splat(h.ir.not_(self.lanes)))
        here = h.ir.icmp_unsigned("==", missing, zeros(words))
        await_lanes(h, h.ir.and_(self.lanes, h.ir.not_(h.mask(here))), self.priority)
        bad = h.ir.and_(self.lanes, h.ir.not_(h.mask(h.ir.and_(named, here))))
        lane = h.first_lane(bad)
        h.branch_unless(
            h.zero(bad), lambda: self._fault(h.ir.extract_element(members, lane))
        )
        return members

    def check_whole(self) -> None:
        """Check that all 32 lanes execute it."""
        self.h.branch_unless(self.h.full(self.lanes), lambda: self.h.fault(Fault.MATRIX, self.lanes))

    def check_sources(self, op: Shuffle, sources: Any, members: Any) -> None:
        """Check that the lanes that a shuffle takes from take part; those of a whole warp always do."""
        h = self.h
        if members is not None and isinstance(members.type, ir.VectorType):
            self._demand(_taken(h, sources, h.ir.and_(members, h.splat(self.lanes))))
        elif not isinstance(self.lanes, ir.Constant) and op.constant is None:
            with h.ir.if_then(h.ir.not_(h.full(self.lanes)), likely=False):
                self._demand(_taken(h, sources, h.splat(self.lanes)))

    def _demand(self, there: Any) -> None:
        """Check that these are all lanes that execute it."""
        missing = self.h.ir.and_(self.lanes, self.h.ir.not_(there))
        self.h.branch_unless(self.h.zero(missing), lambda: self.h.fault(Fault.SOURCE, missing))

    def missing_sources(self, op: Shuffle) -> Any:
        """The lanes whose source does not take part, where sources are known and the member mask is uniform; or None.

        It is checked together with the mask: with a branch of its own LLVM makes 32 loads of one.
        """
        if op.constant is None or op.members.per_lane or op.members.affine:
            return None
        if op.lenient or isinstance(self.lanes, ir.Constant):
            return None
        return self.h.ir.and_(self.lanes, self.h.ir.not_(_moved(self.h, op.mode, *op.constant, self.lanes)))

    def _fault(self, members: Any) -> None:
        h = self.h
        h.store(h.ir.zext(members, i64), h.block, Block.FAULT_ADDRESS)
        h.fault(Fault.MEMBERS, self.lanes)

    def put(self, dest: OperandClass, slot: Any, value: Any) -> None:
        """Store a result that may be the same for all lanes."""
        if slot is None:
            return
        scalar = not isinstance(value.type, ir.VectorType)
        if dest.per_lane and scalar:
            value = self.h.splat(value) if value.type != i1 else self.h.bools(self.h.ir.sext(value, i32))
        put(self.h, slot, value, self.mask_for_put if dest.per_lane else None)


@emits(WarpBarrier)
def warp_barrier(h: Handler, op: WarpBarrier) -> None:
    group = Members(h, op.guard, op.masked)
    group.check(op.members)
    if op.whole:
        group.check_whole()
    h.next()


@emits(Shuffle)
def shuffle(h: Handler, op: Shuffle) -> None:
    group = Members(h, op.guard, op.masked)
    slots = slots_of(h, (op.dest, op.predicate))
    value = source(h, op.a, LANES)
    lanes, within = sources_of(h, op.mode, op.constant, op.b, op.c)
    found = permuted(h, value, lanes) if op.constant is None else h.ir.shuffle_vector(value, value, lanes)
    missing = group.missing_sources(op)
    members = group.check(op.members, missing) if op.members else None
    if missing is not None and not op.members:
        h.branch_unless(h.zero(missing), lambda: h.fault(Fault.SOURCE, missing))
    if not op.lenient:
        group.check_sources(op, lanes, members)
    group.put(op.dest, slots[0], found)
    group.put(op.predicate, slots[1], h.bools(within))
    h.next()


def sources_of(
    h: Handler, mode: str, constant: tuple[int, int] | None, b: OperandClass, c: OperandClass
) -> tuple[Any, Any]:
    """The lane that each lane takes from, and the mask of those for which it is within the segment."""
    if constant is not None:
        chosen, inside = _constant_lanes(mode, *constant)
        return ir.Constant(words, chosen), h.i32(inside)
    lanes, good = _lanes(h, mode, source(h, b, LANES), source(h, c, LANES))
    return lanes, h.mask(good)


def _constant_lanes(mode: str, b: int, c: int) -> tuple[list[int], int]:
    chosen = [source_lane(mode, lane, b, c) for lane in range(LANES)]
    bits = sum(1 << lane for lane, (_, good) in enumerate(chosen) if good)
    return [to for to, _ in chosen], bits - (1 << 32) if bits >> 31 else bits


def _taken(h: Handler, sources: Any, masks: Any) -> Any:
    """The lanes whose source is in the mask that each has."""
    return h.mask(h.ir.trunc(h.ir.lshr(masks, sources), lanes_of(i1)))


def _moved(h: Handler, mode: str, b: int, c: int, mask: Any) -> Any:
    """The lanes whose source is in a mask, where the sources are known: a few scalar operations."""
    sources, inside = _constant_lanes(mode, b, c)
    b &= 31
    if mode == "idx":
        found: Any = h.i32(0)
        for source in sorted(set(sources)):
            takers = sum(1 << lane for lane in range(LANES) if sources[lane] == source)
            takers -= (takers >> 31) << 32
            there = h.nonzero(h.ir.and_(mask, h.i32((1 << source) - ((source == 31) << 32))))
            found = h.ir.or_(found, h.ir.select(there, h.i32(takers), h.i32(0)))
        return found
    if mode == "bfly":
        for bit in range(5):
            if b >> bit & 1:
                low = h.i32(sum(1 << lane for lane in range(LANES) if not lane >> bit & 1) & 0x7FFFFFFF)
                up, down = h.ir.shl(h.ir.and_(mask, low), h.i32(1 << bit)), h.ir.lshr(mask, h.i32(1 << bit))
                mask = h.ir.or_(up, h.ir.and_(down, low))
    else:
        mask = (h.ir.shl if mode == "up" else h.ir.lshr)(mask, h.i32(b))
    return h.ir.or_(mask, h.i32(~inside))


def _lanes(h: Handler, mode: str, b: Any, c: Any) -> tuple[Any, Any]:
    """As source_lane, in each lane, for b and c that are registers."""
    five = h.splat(h.i32(31))
    lane = h.iota(32)
    clamp, segment = h.ir.and_(c, five), h.ir.and_(h.ir.lshr(c, h.splat(h.i32(8))), five)
    free = h.ir.xor(segment, five)
    low = h.ir.and_(lane, segment)
    high = h.ir.or_(low, h.ir.and_(clamp, free))
    b = h.ir.and_(b, five)
    if mode == "idx":
        to = h.ir.or_(low, h.ir.and_(b, free))
    else:
        to = {"up": h.ir.sub, "down": h.ir.add, "bfly": h.ir.xor}[mode](lane, b)
    good = h.ir.icmp_signed(">=" if mode == "up" else "<=", to, high)
    return h.ir.select(good, to, lane), good


def permuted(h: Handler, value: Any, lanes: Any) -> Any:
    """value[lanes[i]] in each lane i: by way of memory, since hosts have gathers, where they have nothing better."""
    element = value.type.element
    if element.width == 32 and permutes():
        low, high = (h.ir.shuffle_vector(value, value, _half(n)) for n in range(2))
        name, kind = "llvm.x86.avx512.vpermi2var.d.512", low.type
        found = [h.call(name, kind, low, h.ir.shuffle_vector(lanes, lanes, _half(n)), high) for n in range(2)]
        return h.ir.shuffle_vector(found[0], found[1], ir.Constant(words, list(range(LANES))))
    place = h.alloca(value.type, 64)
    h.ir.store(value, place)
    offsets = h.ir.mul(h.ir.zext(lanes, lanes_of(i64)), h.splat(h.i64(element.width // 8)))
    places = h.ir.inttoptr(h.ir.add(h.splat(h.ir.ptrtoint(place, i64)), offsets), lanes_of(pointer))
    name = f"llvm.masked.gather.v{LANES}i{element.width}.v{LANES}p0"
    every = ir.Constant(lanes_of(i1), [1] * LANES)
    return h.call(name, value.type, places, h.i32(element.width // 8), every, zeros(value.type))


def _half(number: int) -> ir.Constant:
    size = LANES // 2
    return ir.Constant(ir.VectorType(i32, size), list(range(number * size, (number + 1) * size)))


def permutes() -> bool:
    """Whether this CPU has an instruction that permutes the numbers of a warp."""
    return vector_registers() == (32, 64)


@emits(Vote)
def vote(h: Handler, op: Vote) -> None:
    group = Members(h, op.guard, op.masked)
    slot, = slots_of(h, (op.dest,))
    holds = h.ir.and_(_predicate(h, op.predicate), group.lanes)
    members: Any = group.check(op.members) if op.members else h.i32(-1)
    if isinstance(members.type, ir.VectorType):
        ballot, asked = h.ir.and_(h.splat(holds), members), h.ir.and_(h.splat(group.lanes), members)
        none = zeros(words)
    else:
        ballot, asked, none = h.ir.and_(holds, members), h.ir.and_(group.lanes, members), h.i32(0)
    every, any_ = h.ir.icmp_unsigned("==", ballot, asked), h.ir.icmp_unsigned("!=", ballot, none)
    result = {"ballot": ballot, "all": every, "any": any_, "uni": h.ir.or_(every, h.ir.not_(any_))}[op.mode]
    group.put(op.dest, slot, result)
    h.next()


def _predicate(h: Handler, kind: OperandClass) -> Any:
    if kind.immediate:
        return h.ir.sext(h.ir.trunc(h.field("q"), i1), i32)
    return guard_mask(h, kind, False)


@emits(ActiveMask)
def active_mask(h: Handler, op: ActiveMask) -> None:
    group = Members(h, op.guard, op.masked)
    slot, = slots_of(h, (op.dest,))
    group.put(op.dest, slot, group.lanes)
    h.next()


@emits(Elect)
def elect(h: Handler, op: Elect) -> None:
    group = Members(h, op.guard, op.masked)
    slots = slots_of(h, (op.dest, op.predicate))
    members: Any = group.check(op.members)
    if isinstance(members.type, ir.VectorType):
        low = h.call("llvm.cttz.v32i32", words, h.ir.and_(members, h.splat(group.lanes)), ir.Constant(i1, 0))
        chosen = h.ir.icmp_unsigned("==", low, h.iota(32))
    else:
        low = h.first_lane(h.ir.and_(members, group.lanes))
        chosen = h.ir.icmp_unsigned("==", h.splat(low), h.iota(32))
    group.put(op.dest, slots[0], low)
    group.put(op.predicate, slots[1], chosen)
    h.next()


@emits(Match)
def match(h: Handler, op: Match) -> None:
    group = Members(h, op.guard, op.masked)
    slots = slots_of(h, (op.dest, op.predicate))
    value = source(h, op.a, LANES)
    members: Any = group.check(op.members)
    members = members if isinstance(members.type, ir.VectorType) else h.splat(members)
    members = h.ir.and_(members, h.splat(group.lanes))
    same = zeros(words)
    for lane in range(LANES):
        other = h.splat(h.ir.extract_element(value, h.i32(lane)))
        bit = ir.Constant(words, [1 << lane] * LANES)
        same = h.ir.or_(same, h.ir.select(h.ir.icmp_unsigned("==", value, other), bit, zeros(words)))
    same = h.ir.and_(same, members)
    if op.mode == "any":
        group.put(op.dest, slots[0], same)
    else:
        every = h.ir.icmp_unsigned("==", same, members)
        group.put(op.dest, slots[0], h.ir.select(every, members, zeros(words)))
        group.put(op.predicate, slots[1], every)
    h.next()


@emits(Reduce)
def reduce(h: Handler, op: Reduce) -> None:
    group = Members(h, op.guard, op.masked)
    slot, = slots_of(h, (op.dest,))
    value = source(h, op.a, LANES)
    members: Any = group.check(op.members)
    real = op.operation.endswith("f32")
    name, neutral = _REDUCTIONS[op.operation, op.signed and not real]
    start = h.splat(h.i32(neutral))
    if real and op.signed:
        value = h.ir.and_(value, h.splat(h.i32(0x7FFFFFFF)))

    def reduced(lanes: Any) -> Any:
        if real:
            return _fold(h, name, h.ir.select(h.bools(lanes), value, start))
        return h.call(f"llvm.vector.reduce.{name}.v32i32", i32, h.ir.select(h.bools(lanes), value, start))

    if not isinstance(members.type, ir.VectorType):
        group.put(op.dest, slot, reduced(h.ir.and_(members, group.lanes)))
    elif not real and permutes():
        group.put(op.dest, slot, _of_groups(h, name, value, h.ir.and_(members, h.splat(group.lanes))))
    else:
        result = ir.Constant(words, ir.Undefined)
        for lane in range(LANES):
            lanes = h.ir.and_(h.ir.extract_element(members, h.i32(lane)), group.lanes)
            result = h.ir.insert_element(result, reduced(lanes), h.i32(lane))
        group.put(op.dest, slot, result)
    h.next()


def _of_groups(h: Handler, name: str, value: Any, members: Any) -> Any:
    """The reduction of the lanes that each lane names: each takes that of the next one, the next but one, and so on.

    After the step n, a lane has that of 2**n lanes from itself on; the lowest of each group has all in the end.
    """
    def joined(one: Any, other: Any) -> Any:
        if name in _PLAIN:
            return getattr(h.ir, _PLAIN[name])(one, other)
        compare = h.ir.icmp_signed if name[0] == "s" else h.ir.icmp_unsigned
        return h.ir.select(compare("<" if name.endswith("min") else ">", one, other), one, other)

    def lowest(masks: Any) -> Any:
        return h.call("llvm.cttz.v32i32", words, masks, ir.Constant(i1, 0))

    above = ir.Constant(words, [-(2 << lane) & 0xFFFFFFFF for lane in range(LANES)])
    following, none = lowest(h.ir.and_(members, above)), h.splat(h.i32(LANES))
    for _ in range(5):
        some = h.ir.icmp_unsigned("!=", following, none)
        value = h.ir.select(some, joined(value, permuted(h, value, following)), value)
        following = h.ir.select(some, permuted(h, following, following), none)
    return permuted(h, value, lowest(members))


_PLAIN = {"add": "add", "and": "and_", "or": "or_", "xor": "xor"}


def _fold(h: Handler, mnemonic: str, value: Any) -> Any:
    """An instruction over all lanes, by halves: the order does not matter to min and max."""
    form = lookup(mnemonic)[0]
    for step in (16, 8, 4, 2, 1):
        other = h.ir.shuffle_vector(value, value, ir.Constant(words, [(lane + step) % LANES for lane in range(LANES)]))
        value = semantics.lookup(form)(h.numbers(LANES), form, value, other)
    return h.ir.extract_element(value, h.i32(0))


_INFINITY, _NAN = 0x7F800000, 0x7FFFFFFF
_REDUCTIONS = {
    ("min.f32", False): ("min.f32", _NAN), ("max.f32", False): ("max.f32", _NAN),
    ("min.NaN.f32", False): ("min.NaN.f32", _INFINITY), ("max.NaN.f32", False): ("max.NaN.f32", _INFINITY - (1 << 31)),
    ("add", False): ("add", 0), ("add", True): ("add", 0), ("and", False): ("and", -1), ("or", False): ("or", 0),
    ("xor", False): ("xor", 0), ("min", False): ("umin", -1), ("max", False): ("umax", 0),
    ("min", True): ("smin", 0x7FFFFFFF), ("max", True): ("smax", -0x80000000),
}
