"""The shadow words of an access: lines of them where its lanes lie side by side, else one gathered for each lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ...instructions.instrumentation import CopyBegin, ShadowCheck
from ...machine.layout import LANES, Block, Entry
from ...machine.shadow import SEVERAL_LANES, WORD_SHIFT, Plane, Role, Shadow
from ..handler import Handler, i32, i64, lanes_of, pointer
from .epochs import scatter_words

__all__ = ["Group", "Groups", "words_of"]


class Group(NamedTuple):
    """Shadow words that are checked at once: accessors by plane (writer, reader, earlier reader), and their lanes."""

    size: int
    get: Callable[[int], Any]
    put: Callable[[int, Any, Any], None]
    lanes: Any
    gathered: bool = False
    start: Any = None
    """The host address of the first one, where they lie side by side."""


def words_of(h: Handler, access: Any) -> tuple[Any, Any]:
    """Where the shadow words of an array are that an access is to, and the bytes from plane to plane."""
    if getattr(access, "in_window", False):
        shadow = h.load(h.block, Block.SHADOW, pointer, fixed=True)
        return h.load(shadow, Shadow.SHARED_ORIGIN, i64), h.load(shadow, Shadow.SHARED_STRIDE, i64)
    words, stride = Entry.SHADOW_WORDS, Entry.SHADOW_STRIDE
    return h.load(access.entry, words, i64, fixed=True), h.load(access.entry, stride, i64, fixed=True)


class Groups:
    """The shadow words of an access, as vectors where its lanes lie so."""

    def __init__(self, h: Handler, check: ShadowCheck | CopyBegin, access: Any, mask: Any) -> None:
        self.h, self.check, self.access, self.mask = h, check, access, mask
        self.rest: Any = ir.Constant(lanes_of(i64), None)
        """What a gather gives for lanes that make no access."""
        self.together: Any = None
        """Whether all lanes store the same; None where that is not asked."""
        self.at: Any = None
        """The host address of one lane's access that has been found; None where it is not known yet."""
        self.words, self.stride = words_of(h, access)

    def by_segments(self) -> bool:
        """Whether the lanes lie in segments, if all are there."""
        kind = self.check.address
        return (kind.affine or kind.by_row) and self.check.pattern is not None

    def groups(self, whole: bool = True) -> list[Group]:
        """The words of all lanes of a warp, or not ``whole``: of those in the mask."""
        h, check, access = self.h, self.check, self.access
        kind = check.address
        if kind.scalar:
            good, host = access.check_scalar() if self.at is None else (ir.Constant(ir.IntType(1), 1), self.at)
            self.host = host
            single = h.zero(h.ir.and_(self.mask, h.ir.sub(self.mask, h.i32(1))))
            if check.role == Role.WRITE and not check.same_value:
                good = h.ir.and_(good, single if self.together is None else h.ir.or_(single, self.together))
            self.demand(good)
            lane = h.ir.zext(h.first_lane(self.mask), i64)
            lane = h.ir.or_(lane, h.ir.select(single, h.i64(0), h.i64(SEVERAL_LANES)))
            merged = h.merged_granules()
            if merged is None:
                return [self.line(host, check.granules, self.splat(lane, check.granules))]
            return [self.line(host, len(merged), h.ir.or_(self.splat(lane, len(merged)), self.constant([*merged])))]
        if whole and check.pattern is not None and self.by_segments():
            good, host = access.check_scalar()
            self.demand(h.ir.and_(good, h.whole(self.mask)))
            if check.folded and check.role == Role.READ:
                return [self.segment(host, 0)]
            there = min(-(-h.present // check.pattern[1]), 1 + len(access.segments))
            return [self.segment(host, number) for number in range(there)]
        hosts = access.hosts_within(self.mask)  # whose shadow words it has
        return [self.scattered(hosts, number) for number in range(check.granules)]

    def demand(self, good: Any) -> None:
        """Go on where this holds."""
        self.access.demand(good)

    def segment(self, host: Any, number: int) -> Group:
        h, check = self.h, self.check
        assert check.pattern is not None
        letter, lanes = check.pattern
        start = host if number == 0 else h.ir.add(host, h.ir.sext(self.access.segments[number - 1], i64))
        first = number * lanes
        if letter == "b":
            who = first | (SEVERAL_LANES if lanes > 1 else 0)
            ids = [who | statement for statement in self.h.merged_granules() or (0,) * check.granules]
        else:
            more = SEVERAL_LANES if check.folded and check.role == Role.READ else 0
            ids = [first + lane | more for lane in range(lanes) for _ in range(check.granules)]
        return self.line(start, len(ids), self.constant(ids))

    def constant(self, values: list[int]) -> Any:
        return ir.Constant(ir.VectorType(i64, len(values)), values) if len(values) > 1 else self.h.i64(values[0])

    def place(self, host: Any) -> Any:
        """Address of the shadow words of a host address, or of a vector of them."""
        h, kind = self.h, host.type
        shift = ir.Constant(kind, [self.check.granule] * LANES) if kind != i64 else h.i64(self.check.granule)
        word_shift = ir.Constant(kind, [WORD_SHIFT] * LANES) if kind != i64 else h.i64(WORD_SHIFT)
        words = h.splat(self.words) if kind != i64 else self.words
        return h.ir.add(h.ir.shl(h.ir.lshr(host, shift), word_shift), words)

    def line(self, host: Any, size: int, lanes: Any) -> Group:
        """Contiguous shadow words."""
        h = self.h
        place = self.place(host)
        kind = ir.VectorType(i64, size) if size > 1 else i64

        def at(plane: int) -> Any:
            address = place if plane == 0 else h.ir.add(place, h.ir.mul(self.stride, h.i64(plane)))
            return h.ir.inttoptr(address, kind.as_pointer())

        def put(plane: int, value: Any, _: Any) -> None:
            h.alias_class(h.ir.store(value, at(plane), align=8), "shadow")

        return Group(size, lambda plane: h.alias_class(h.ir.load(at(plane), align=8), "shadow"), put, lanes, start=host)

    def scattered(self, hosts: Any, number: int) -> Group:
        """A shadow word for each lane, gathered."""
        h, check = self.h, self.check
        offset = number << check.granule
        place = self.place(h.ir.add(hosts, h.splat(h.i64(offset))) if offset else hosts)
        bools = h.bools(self.mask)
        wide = lanes_of(i64)

        def at(plane: int) -> Any:
            return h.ir.add(place, h.splat(h.ir.mul(self.stride, h.i64(plane)))) if plane else place

        def get(plane: int) -> Any:
            rest = ir.Constant(wide, None) if plane == Plane.COPY else self.rest
            name = "llvm.masked.gather.v32i64.v32p0"
            places = h.ir.inttoptr(at(plane), lanes_of(pointer))
            return h.alias_class(h.call(name, wide, places, h.i32(8), bools, rest), "shadow")

        def put(plane: int, value: Any, where: Any) -> None:
            scatter_words(h, value, at(plane), bools if where is None else h.ir.and_(bools, where))

        return Group(LANES, get, put, self._ids(), True)

    def _ids(self) -> Any:
        """The number of each lane; of several that lie together by the pattern it says so."""
        h, check = self.h, self.check
        if check.pattern is None or (check.pattern[0] == "c" and not check.folded):
            return h.iota(64)
        lanes = check.pattern[1]
        alike = "segment" if check.pattern[0] == "b" else "place"
        which = [lane // lanes if alike == "segment" else lane % lanes for lane in range(LANES)]
        groups = [sum(1 << other for other in range(LANES) if which[other] == n) for n in which]
        there = h.ir.and_(h.splat(self.mask), ir.Constant(lanes_of(i32), groups))
        others = h.ir.and_(there, h.ir.sub(there, h.splat(h.i32(1))))
        several = h.ir.icmp_unsigned("!=", others, ir.Constant(lanes_of(i32), None))
        return h.ir.or_(h.iota(64), h.ir.select(several, self.splat(SEVERAL_LANES, LANES), self.splat(0, LANES)))

    def splat(self, value: Any, size: int) -> Any:
        if isinstance(value, int):
            value = self.h.i64(value)
        if size == 1:
            return value
        kind = ir.VectorType(value.type, size)
        first = self.h.ir.insert_element(ir.Constant(kind, ir.Undefined), value, self.h.i32(0))
        return self.h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, size), [0] * size))
