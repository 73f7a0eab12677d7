"""Checks of what tcgen05 reads in shared memory: the tiles of products, and the rows that are copied.

Where they lie say the same routines by which the instructions find them (:class:`.TilePlaces`), 16 bytes at a time. A
product's sizes are known where it runs: its plan says them (:mod:`...machine.product_plan`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.proxy_checks import ProxyProduct, ProxyRows
from ...instructions.tensor_cores.tensor_memory_copies import SHAPES
from ...machine.layout import LANES, SHARED_START
from ...machine.product_plan import ProductPlan
from ...machine.proxy_shadow import ASYNC, GENERATION_SHIFT, OBJECT_SHIFT, Objects, ProxyShadow
from ..atomics import element_at, spill
from ..data import guard_mask, source
from ..handler import Handler, i32, i64, pointer
from ..registry import emits
from .checks import Pieces, access_word, suppressed

__all__: list[str] = []

_PLACES = ir.FunctionType(ir.VoidType(), [pointer] * 3 + [i64] * 3)
_MOST = 2048
"""Pieces of a tile."""
_PIECE = 16
_FAR = 1 << 40


class _Reads:
    """Checks what lanes have the tensor core read."""

    def __init__(self, h: Handler, op: ProxyProduct | ProxyRows, statement: Any, most: int) -> None:
        self.h, self.statement = h, statement
        self.pieces = Pieces(h, op.granule, False, op.init, op.copies)
        self.places = h.ir.bitcast(h.alloca(ir.ArrayType(i32, most)), pointer)
        self.bounds = h.ir.bitcast(h.alloca(ir.ArrayType(i64, 2)), pointer)

    def begin(self, lane: Any) -> None:
        """Begin what a lane has issued since the last commit of its warp."""
        h, pieces = self.h, self.pieces
        shadow = pieces.shadow
        commits = h.ir.zext(pieces.orders.get(ProxyShadow.TENSOR_COMMITTED, shadow.number, i32), i64)
        completed = h.ir.shl(commits, h.i64(GENERATION_SHIFT))
        completed = h.ir.or_(completed, h.i64(ASYNC | Objects.TENSOR << OBJECT_SHIFT))
        word = access_word(h, shadow, completed, self.statement, lane)
        pieces.begin(word, h.ir.shl(h.i32(1), lane), lane)

    def check(self, find: Any, sizes: Any, descriptor: Any, shift: Any, used: Any) -> None:
        """Check the pieces that a routine finds by a descriptor, of which so many bytes are ``used``."""
        h = self.h
        for value, at in ((_FAR, 0), (0, 8)):
            h.store(h.i64(value), self.bounds, at)
        h.ir.call(find, [self.places, sizes, self.bounds, descriptor, h.i64(0), shift])
        count = h.ir.mul(*(h.load(sizes, at, i64) for at in (0, 24)))
        with h.ir.if_else(h.likely(h.ir.icmp_unsigned("==", used, h.i64(_PIECE)))) as (whole, padded):
            with whole:
                self._pairs(count)
            with padded:
                h.count(count, 1, lambda number: self._padded(self._at(number), used))

    def _padded(self, offset: Any, used: Any) -> None:
        """Check the first 8 bytes of a piece, and 4 more where there are 12."""
        h = self.h
        self._check(offset, 8)
        with h.ir.if_then(h.ir.icmp_unsigned(">", used, h.i64(8))):
            self._check(h.ir.add(offset, h.i64(8)), 4)

    def _pairs(self, count: Any) -> None:
        """Check whole pieces, two at once where they lie side by side."""
        h = self.h

        def pair(number: Any) -> None:
            first, second = (self._at(h.ir.add(number, h.i64(n))) for n in range(2))
            side = h.ir.icmp_unsigned("==", h.ir.xor(first, second), h.i64(_PIECE))
            lower = h.ir.select(h.ir.icmp_unsigned("<", first, second), first, second)
            with h.ir.if_else(side) as (together, apart):
                with together:
                    self._check(lower, 2 * _PIECE)
                with apart:
                    self._check(first, _PIECE)
                    self._check(second, _PIECE)

        even = h.ir.and_(count, h.i64(-2))
        h.count(even, 2, pair)
        with h.ir.if_then(h.ir.icmp_unsigned("!=", even, count)):
            self._check(self._at(even), _PIECE)

    def _at(self, number: Any) -> Any:
        """The offset of a piece from shared memory on."""
        h = self.h
        place = h.load(self.places, h.ir.shl(number, h.i64(2)), i32)
        return h.ir.sub(h.ir.zext(place, i64), h.i64(SHARED_START))

    def _check(self, offset: Any, nbytes: int) -> None:
        h, pieces = self.h, self.pieces
        good = h.ir.icmp_unsigned("<", offset, h.ir.sub(pieces.nbytes, h.i64(nbytes - 1)))
        with h.ir.if_then(h.likely(good)):
            pieces.check(h.ir.add(offset, pieces.low), nbytes)


@emits(ProxyProduct)
def proxy_product(h: Handler, op: ProxyProduct) -> None:
    mask = guard_mask(h, op.guard, True)
    plans = h.ir.bitcast(h.slot(), i64.as_pointer())
    descriptors = [spill(h, source(h, kind, LANES)) for kind in op.descriptors]
    zeros = spill(h, source(h, op.zeros, LANES)) if op.zeros else None
    statement = h.field()
    h.skip_unless_any(mask)
    h.branch_unless(h.ir.not_(suppressed(h, statement)), h.next)
    reads = _Reads(h, op, statement, _MOST)
    routines = [
        (ProductPlan.A_PLACES, ProductPlan.A_SIZES, ProductPlan.A_BYTES),
        (ProductPlan.B_PLACES, ProductPlan.B_SIZES, ProductPlan.B_BYTES),
    ]

    def one(lane: Any) -> None:
        plan = h.ir.inttoptr(element_at(h, plans, lane, i64), pointer)
        reads.begin(lane)
        for descriptor, (function, sizes, used) in zip(descriptors, routines[-len(descriptors) :]):
            find, shift = h.load(plan, function, _PLACES.as_pointer(), 8), h.i64(0)
            if zeros is not None and function == ProductPlan.B_PLACES:
                shift = h.ir.and_(h.ir.lshr(element_at(h, zeros, lane, i64), h.i64(56)), h.i64(63))
            given = h.load(plan, sizes, pointer), element_at(h, descriptor, lane, i64)
            reads.check(find, *given, shift, h.load(plan, used, i64))

    h.for_each_lane(mask, one)
    h.next()


@emits(ProxyRows)
def proxy_rows(h: Handler, op: ProxyRows) -> None:
    find = h.ir.inttoptr(h.field("q"), _PLACES.as_pointer())
    mask = guard_mask(h, op.guard, True)
    descriptors = spill(h, source(h, op.descriptor, LANES))
    statement = h.field()
    h.skip_unless_any(mask)
    h.branch_unless(h.ir.not_(suppressed(h, statement)), h.next)
    shape = SHAPES[op.shape]
    reads = _Reads(h, op, statement, shape.rows * shape.pieces)
    sizes = h.ir.bitcast(h.alloca(ir.ArrayType(i64, 6)), pointer)
    for n, value in enumerate((shape.rows, shape.rows - 1, _FAR, shape.pieces, 3, 0)):
        h.store(h.i64(value), sizes, 8 * n)

    def one(lane: Any) -> None:
        reads.begin(lane)
        reads.check(find, sizes, element_at(h, descriptors, lane, i64), h.i64(0), h.i64(2 * op.bits))

    h.for_each_lane(mask, one)
    h.next()
