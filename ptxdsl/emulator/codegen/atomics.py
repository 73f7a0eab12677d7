"""atom and red: lane by lane, in the order of the lanes.

Shared memory belongs to the one host thread that runs the block, so a plain read and write is atomic there, and so is
what threads of one block or cluster agree on. Other memory is changed with the host's atomic instructions while other
host threads may change it too, which Block.LOCKS says: they take five times as long.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...isa import lookup
from .. import semantics
from ..semantics.lanes import Lanes
from ..machine.layout import LANES, Block
from ..instructions.atomics import Atomic
from ..instructions.bulk_copies import MakeBulk
from .handler import Handler, i32, i64, lanes_of
from .data import fit, guard_mask, put, slots_of, source
from .access import access_of
from .registry import emits

__all__ = ["ATOMIC_OPS", "array_of", "changed", "element_at", "place_at", "spill", "update"]

ATOMIC_OPS = {
    "add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap",
}


@emits(Atomic, slow_path=True)
def atomic(h: Handler, op: Atomic) -> None:
    bits, count = op.bits, max(1, len(op.sources[0]))
    access = access_of(h, op.address, None, bits // 8 * count, True)
    lanes = guard_mask(h, op.guard, True)
    slots = slots_of(h, op.dests)
    element = ir.IntType(bits)
    given = [[fit(h, source(h, item, LANES), bits, False) for item in value] for value in op.sources]
    if op.guard:
        h.skip_unless_any(lanes)
    places = spill(h, access.hosts(lanes))
    arrays = [[spill(h, item) for item in value] for value in given]
    results = [array_of(h, element) for _ in op.dests]

    def one(lane: Any, host_atomic: bool) -> None:
        host = element_at(h, places, lane, i64)
        for number in range(count):
            place = h.ir.inttoptr(h.ir.add(host, h.i64(number * bits // 8)), element.as_pointer())
            operands = [element_at(h, array[number], lane, element) for array in arrays]
            old = update(h, op, place, operands, host_atomic)
            if slots and slots[number] is not None:
                h.ir.store(old, place_at(h, results[number], lane, element), align=bits // 8)

    def each(host_atomic: bool) -> None:
        h.for_each_lane(lanes, lambda lane: one(lane, host_atomic))

    if op.host_atomic and not op.always:
        with h.ir.if_else(h.nonzero(h.load(h.block, Block.LOCKS, i32))) as (then, otherwise):
            with then:
                each(True)
            with otherwise:
                each(False)
    else:
        each(op.host_atomic)
    for slot, result, dest in zip(slots, results, op.dests):
        if slot is not None:
            value = h.ir.load(h.ir.bitcast(result, lanes_of(element).as_pointer()), align=16)
            put(h, slot, fit(h, value, dest.bits, False), lanes if op.masked or op.guard else None)
    h.next()


def array_of(h: Handler, element: ir.Type) -> Any:
    """Room for one element a lane."""
    return h.alloca(ir.ArrayType(element, LANES))


def spill(h: Handler, vector: Any) -> Any:
    """The lanes of a vector in memory, to be read by number."""
    place = array_of(h, vector.type.element)
    h.ir.store(vector, h.ir.bitcast(place, vector.type.as_pointer()), align=16)
    return place


def place_at(h: Handler, array: Any, lane: Any, element: ir.Type) -> Any:
    """The address of a lane's element."""
    return h.ir.gep(h.ir.bitcast(array, element.as_pointer()), [h.ir.zext(lane, i64)], source_etype=element)


def element_at(h: Handler, array: Any, lane: Any, element: ir.Type) -> Any:
    """A lane's element."""
    return h.ir.load(place_at(h, array, lane, element), align=element.width // 8)


def update(h: Handler, op: Atomic | MakeBulk, place: Any, operands: list[Any], host_atomic: bool) -> Any:
    """Change the number at ``place``; the number that was there."""
    bits = op.bits
    if host_atomic and op.operation in ATOMIC_OPS and not op.function and bits <= 64:
        return h.ir.atomic_rmw(ATOMIC_OPS[op.operation], place, operands[0], "seq_cst")
    if host_atomic and op.operation == "cas":
        return h.ir.extract_value(h.ir.cmpxchg(place, operands[0], operands[1], "seq_cst", "seq_cst"), 0)
    old = h.ir.load(place, align=bits // 8)
    if not host_atomic:
        h.ir.store(changed(h, op.operation, op.function, old, operands), place, align=bits // 8)
        return old
    before, again, done = h.ir.block, h.block_named("again"), h.block_named("changed")
    h.ir.branch(again)
    h.ir.position_at_end(again)
    seen = h.ir.phi(old.type)
    seen.add_incoming(old, before)
    pair = h.ir.cmpxchg(place, seen, changed(h, op.operation, op.function, seen, operands), "seq_cst", "seq_cst")
    seen.add_incoming(h.ir.extract_value(pair, 0), h.ir.block)
    h.ir.cbranch(h.ir.extract_value(pair, 1), done, again)
    h.ir.position_at_end(done)
    return seen


def changed(h: Handler, operation: str, function: str, old: Any, operands: list[Any]) -> Any:
    """The number that an operation leaves."""
    if function:
        form = lookup(function)[0]
        return semantics.lookup(form)(Lanes(h.ir, 1), form, old, operands[0])
    b = operands[0]
    simple = {"add": h.ir.add, "and": h.ir.and_, "or": h.ir.or_, "xor": h.ir.xor}.get(operation)
    if simple is not None:
        return simple(old, b)
    if operation == "exch":
        return b
    if operation == "cas":
        return h.ir.select(h.ir.icmp_unsigned("==", old, b), operands[1], old)
    zero, one = ir.Constant(old.type, 0), ir.Constant(old.type, 1)
    if operation == "inc":
        return h.ir.select(h.ir.icmp_unsigned(">=", old, b), zero, h.ir.add(old, one))
    if operation != "dec":
        raise AssertionError(f"no atomic operation {operation}")
    reset = h.ir.or_(h.ir.icmp_unsigned("==", old, zero), h.ir.icmp_unsigned(">", old, b))
    return h.ir.select(reset, b, h.ir.sub(old, one))
