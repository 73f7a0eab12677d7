"""Code of wgmma: its instructions, which the four warps of a group execute, and what is made later of a product."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...instructions.tensor_cores.wgmma import WARPS, MakeProduct, WarpgroupCommit, WarpgroupProduct, WarpgroupWait
from ...machine.layout import LANES, Warp
from ...machine.status import Fault
from ...machine.pending import READERS, Kind, Pending
from ..control import wait_again
from ..data import guard_mask, source
from ..handler import Handler, i32, i64, pointer
from ..pending import Begun, faulty, make_where
from ..registry import builds, emits
from ..warp import Members
from .wgmma_products import VECTOR, Metadata, Product, Warps

__all__: list[str] = []

_FRESH = 16
"""Where WORDS has it behind the descriptors."""


@emits(WarpgroupProduct)
def warpgroup_product(h: Handler, op: WarpgroupProduct) -> None:
    routine, _ = h.field("q"), [h.field("q") for _ in range(5)]
    if op.held:
        h.field()
    for kind in op.held:
        source(h, kind, LANES)
    group = _Warpgroup(h, op)
    descriptors = [source(h, kind, LANES) for kind in op.descriptors]
    scale = guard_mask(h, op.scale, False)
    group.check(op)
    mine = h.ir.add(h.load(h.warp, Warp.PRODUCTS, i32), h.i32(1))
    h.store(mine, h.warp, Warp.PRODUCTS)
    last, on = h.block_named("last"), h.block_named("on")
    h.ir.cbranch(h.ir.icmp_signed(">=", group.least(Warp.PRODUCTS), mine), last, on)
    h.ir.position_at_end(last)
    begun = Begun(h, Begun.room_of(h, op.defers), routine, Kind.PRODUCT, READERS, h.i32(0))
    begun.put(group.owner, Pending.OWNER)
    begun.put(h.ir.ptrtoint(group.first, i64), Pending.WARP)
    begun.put(h.load(h.warp, Warp.GROUPS, i32), Pending.AGE)
    for number, value in enumerate(descriptors):
        begun.put(h.ir.extract_element(value, h.i32(0)), Pending.WORDS + 8 * number)
    fresh = h.ir.xor(h.ir.and_(scale, h.i32(1)), h.i32(1))
    begun.put(fresh, Pending.WORDS + _FRESH)
    begun.end()
    h.ir.branch(on)
    h.ir.position_at_end(on)
    h.next()


@builds(MakeProduct)
def make_product(module: ir.Module, name: str, key: MakeProduct) -> None:
    op = key.op
    h = Handler(module, name, op.codes)
    operation = h.rec
    h.rec, h.warp = (h.load(operation, field, pointer) for field in (Pending.PLACE, Pending.WARP))
    _, left, right, multiply, find, table = (h.field("q") for _ in range(6))
    group = Warps(h)
    place = h.field() if op.held else None
    mark = h.mark
    for number in range(WARPS):
        h.warp = group.warp(h.i64(number))
        h.read_again(mark)
        for which, kind in enumerate(op.held):
            h.store(source(h, kind, LANES), h.add(h.warp, place), which * VECTOR, 64)
    h.warp = group.first
    found = [h.load(operation, Pending.WORDS + 8 * number, i64) for number in range(len(op.descriptors))]
    product = Product(h, op, group, h.ir.inttoptr(table, pointer))
    product.right(right, found[-1])
    if op.majors[0]:
        product.left(left, found[0])
    else:
        product.held(left, place)
    if op.sparse:
        product.metadata = Metadata(product, find, h.ir.add(place, h.i32((len(op.held) - 1) * VECTOR)))
    product.run(multiply, h.load(operation, Pending.WORDS + _FRESH, i32))
    h.ir.ret_void()


class _Warpgroup(Warps):
    """The warps of a group, all of whose lanes execute an instruction together."""

    def __init__(self, h: Handler, op: WarpgroupProduct | WarpgroupCommit | WarpgroupWait) -> None:
        super().__init__(h)
        self.members = Members(h, op.guard, op.masked)
        number = h.ir.and_(h.load(h.warp, Warp.INDEX, i32), h.i32(WARPS - 1))
        self.owner = h.ir.sub(h.load(h.warp, Warp.INDEX, i32), number)
        self.first = h.add(h.warp, h.ir.neg(h.ir.mul(h.ir.zext(number, i64), self.stride)))

    def check(self, op: WarpgroupProduct | WarpgroupCommit) -> None:
        """Check that lanes and warps are there."""
        h = self.h
        self.members.check(op.members)
        self.members.check_whole()
        last = h.ir.or_(h.load(h.warp, Warp.INDEX, i32), h.i32(WARPS - 1))
        whole = h.ir.icmp_unsigned("<", last, h.i32(op.warps))
        h.branch_unless(whole, lambda: h.fault(Fault.WARPGROUP, self.members.lanes))

    def least(self, counter: int) -> Any:
        """The lowest value of a counter of the warps."""
        h = self.h
        first, *others = (h.load(self.warp(h.i64(n)), counter, i32) for n in range(WARPS))
        for other in others:
            first = h.call("llvm.smin.i32", i32, first, other)
        return first


@emits(WarpgroupCommit)
def warpgroup_commit(h: Handler, op: WarpgroupCommit) -> None:
    _Warpgroup(h, op).check(op)
    h.store(h.ir.add(h.load(h.warp, Warp.GROUPS, i32), h.i32(1)), h.warp, Warp.GROUPS)
    h.next()


@emits(WarpgroupWait)
def warpgroup_wait(h: Handler, op: WarpgroupWait) -> None:
    group = _Warpgroup(h, op)
    group.members.check(op.members)
    group.members.check_whole()
    wanted = h.ir.sub(h.load(h.warp, Warp.GROUPS, i32), h.i32(op.left))
    some, on = h.block_named("some"), h.block_named("on")
    h.ir.cbranch(h.ir.icmp_signed(">", wanted, h.i32(0)), some, on)
    h.ir.position_at_end(some)
    h.branch_unless(h.ir.icmp_signed(">=", group.least(Warp.GROUPS), wanted), lambda: wait_again(h))

    def mine(operation: Any) -> Any:
        same = h.ir.icmp_unsigned("==", h.load(operation, Pending.KIND, i32), h.i32(Kind.PRODUCT))
        same = h.ir.and_(same, h.ir.icmp_unsigned("==", h.load(operation, Pending.OWNER, i32), group.owner))
        return h.ir.and_(same, h.ir.icmp_signed("<", h.load(operation, Pending.AGE, i32), wanted))

    make_where(h, mine)
    h.branch_unless(h.ir.not_(faulty(h)), h.ir.ret_void)
    h.ir.branch(on)
    h.ir.position_at_end(on)
    h.next()
