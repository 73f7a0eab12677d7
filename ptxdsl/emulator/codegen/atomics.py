"""Handlers of atom and red: lane by lane, in the order of the lanes.

Shared memory belongs to the one host thread that runs the block, so a plain read and write is atomic there; global
memory is changed with the host's atomic instructions.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...isa import lookup
from .. import semantics
from ..semantics.lanes import Lanes
from ..machine.layout import LANES
from .library import Shape
from .handler import Handler, i64, lanes_of
from .data import fit, guard_mask, put, source
from .memory import twins

__all__ = ["ATOMIC_OPS", "array_of", "atomic", "atomic_with", "element_at", "place_at", "reach", "spill"]

ATOMIC_OPS = {
    "add": "add", "and": "and", "or": "or", "xor": "xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap",
}


def atomic(module: ir.Module, name: str, shape: Shape) -> None:
    """("atomic", op, function, bits, real, address, dests, values, guard, masked, codes).

    ``op`` is PTX's name of the operation, ``function`` the mnemonic of the instruction that computes the new value
    where LLVM has no such operation. ``values`` has one entry an operand, each with one class an element.
    """
    twins(module, name, shape, atomic_with)


def atomic_with(h: Handler, shape: Shape, slow: ir.Function | None) -> None:
    _, op, function, bits, real, kind, dests, values, guard, masked, _ = shape
    count = max(1, len(values[0]))
    access = h.access(kind, None, bits // 8 * count, True)
    lanes = guard_mask(h, guard, True)
    slots = [None if dest == "_" else h.slot() for dest in dests]
    element = ir.IntType(bits)
    given = [[fit(h, source(h, item, LANES), bits, False) for item in value] for value in values]
    if guard:
        go, skip = h.block_named("go"), h.block_named("skip")
        h.ir.cbranch(h.ir.icmp_unsigned("!=", lanes, h.i32(0)), go, skip)
        h.ir.position_at_end(skip)
        h.goto(h.following())
        h.ir.position_at_end(go)
    places = spill(h, access.hosts(lanes, slow))
    arrays = [[spill(h, item) for item in value] for value in given]
    results = [array_of(h, element) for _ in dests]

    def one(lane: Any) -> None:
        host = element_at(h, places, lane, i64)
        for number in range(count):
            place = h.ir.inttoptr(h.ir.add(host, h.i64(number * bits // 8)), element.as_pointer())
            operands = [element_at(h, array[number], lane, element) for array in arrays]
            old = _update(h, op, function, real, place, operands, bits)
            if slots and slots[number] is not None:
                h.ir.store(old, place_at(h, results[number], lane, element), align=bits // 8)

    h.for_each_lane(lanes, one)
    for slot, result, dest in zip(slots, results, dests):
        if slot is not None:
            value = h.ir.load(h.ir.bitcast(result, lanes_of(element).as_pointer()), align=16)
            put(h, slot, fit(h, value, int(dest[1:]), False), lanes if masked or guard else None)
    h.next()


def reach(module: ir.Module, name: str, shape: Shape) -> None:
    """("reach", address, bytes, writes, guard, codes): the memory must be there; nothing happens to it."""
    twins(module, name, shape, _reach)


def _reach(h: Handler, shape: Shape, slow: ir.Function | None) -> None:
    _, kind, nbytes, writes, guard, _ = shape
    access = h.access(kind, None, nbytes, writes)
    mask = guard_mask(h, guard, True)
    if guard:
        h.branch_unless(h.ir.icmp_unsigned("!=", mask, h.i32(0)), lambda: h.goto(h.following()))
    access.hosts(mask, slow)
    h.next()


def array_of(h: Handler, element: ir.Type) -> Any:
    """Room for one element a lane."""
    return h.room(ir.ArrayType(element, LANES))


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


def _update(h: Handler, op: str, function: str, real: bool, place: Any, operands: list[Any], bits: int) -> Any:
    """Change the number at ``place``; the number that was there."""
    if real and op in ATOMIC_OPS and not function and bits <= 64:
        return h.ir.atomic_rmw(ATOMIC_OPS[op], place, operands[0], "seq_cst")
    if real and op == "cas":
        return h.ir.extract_value(h.ir.cmpxchg(place, operands[0], operands[1], "seq_cst", "seq_cst"), 0)
    old = h.ir.load(place, align=bits // 8)
    if not real:
        h.ir.store(_new(h, op, function, old, operands), place, align=bits // 8)
        return old
    before, again, done = h.ir.block, h.block_named("again"), h.block_named("changed")
    h.ir.branch(again)
    h.ir.position_at_end(again)
    seen = h.ir.phi(old.type)
    seen.add_incoming(old, before)
    pair = h.ir.cmpxchg(place, seen, _new(h, op, function, seen, operands), "seq_cst", "seq_cst")
    seen.add_incoming(h.ir.extract_value(pair, 0), h.ir.block)
    h.ir.cbranch(h.ir.extract_value(pair, 1), done, again)
    h.ir.position_at_end(done)
    return seen


def _new(h: Handler, op: str, function: str, old: Any, operands: list[Any]) -> Any:
    """The number that an operation leaves."""
    if function:
        form = lookup(function)[0]
        return semantics.lookup(form)(Lanes(h.ir, 1), form, old, operands[0])
    b = operands[0]
    if op in ("add", "and", "or", "xor"):
        return {"add": h.ir.add, "and": h.ir.and_, "or": h.ir.or_, "xor": h.ir.xor}[op](old, b)
    if op == "exch":
        return b
    if op == "cas":
        return h.ir.select(h.ir.icmp_unsigned("==", old, b), operands[1], old)
    zero, one = ir.Constant(old.type, 0), ir.Constant(old.type, 1)
    if op == "inc":
        return h.ir.select(h.ir.icmp_unsigned(">=", old, b), zero, h.ir.add(old, one))
    if op != "dec":
        raise AssertionError(f"no atomic operation {op}")
    reset = h.ir.or_(h.ir.icmp_unsigned("==", old, zero), h.ir.icmp_unsigned(">", old, b))
    return h.ir.select(reset, b, h.ir.sub(old, one))


