"""Warps that have no lane within a bound, as the one before them has none: they are not run (:mod:`.idle_planning`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..codegen.handler import Handler, i32, i64, pointer
from ..machine.layout import Block
from .block_registers import type_of
from .function_builder import BlockFunction
from .plan import Idle, Term

__all__ = ["note_idle", "pass_idle", "store_kept"]


def note_idle(h: BlockFunction, idle: Idle) -> None:
    """No lane of this warp is within the bound: how many warps come next of which that is known."""
    last = h.i32(h.plan.warps - 1)
    rest = [h.ir.sub(last, each) for each in (h.number, h.get("position"))]  # later ones are those of higher numbers
    count = h.ir.select(h.ir.icmp_signed("<", *rest), *rest)
    good: Any = h.ir.icmp_signed(">", count, h.i32(0))
    for thread in (0, h.plan.threads - 1):
        for held in _Ends(h, thread, idle.signed).demands(idle.number):
            good = h.ir.and_(good, held)
    h.set("idle", h.ir.select(good, count, h.i32(0)))


def pass_idle(h: BlockFunction, names: tuple[str, ...]) -> None:
    """Warps that are known to be idle arrive at the barrier with this one, whose numbers they have."""
    count = h.get("idle")
    some, on = h.block_named("idle"), h.block_named("after_idle")
    h.ir.cbranch(h.nonzero(count), some, on)
    h.ir.position_at_end(some)
    registers = [h.plan.registers[name] for name in names]
    values = [h.ir.load(h.variable(register.slot, type_of(register))) for register in registers]
    last = h.ir.add(h.get("position"), count)
    if names:
        _store_for(h, h.ir.add(h.get("position"), h.i32(1)), h.ir.add(last, h.i32(1)), names, values)
    h.set("position", last)
    h.ir.branch(on)
    h.ir.position_at_end(on)


def store_kept(h: BlockFunction, first: Any, end: Any, names: Iterable[str], kept: str) -> None:
    """Store in the memory of warps, from one position to before another, what was kept once for all of them."""
    if not names:
        return
    registers = [h.plan.registers[name] for name in names]
    values = [h.ir.load(h.variable((kept, register.slot), type_of(register))) for register in registers]
    some, on = h.block_named("some_kept"), h.block_named("all_stored")
    h.ir.cbranch(h.ir.icmp_signed("<", first, end), some, on)
    h.ir.position_at_end(some)
    _store_for(h, first, end, names, values)
    h.ir.branch(on)
    h.ir.position_at_end(on)


def _store_for(h: BlockFunction, first: Any, end: Any, names: Iterable[str], values: list[Any]) -> None:
    """Store numbers in the memory of warps, of which there are some, by their positions."""
    registers = [h.plan.registers[name] for name in names]
    warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
    before, turn, done = h.ir.block, h.block_named("next_warp"), h.block_named("passed")
    h.ir.branch(turn)
    h.ir.position_at_end(turn)
    position: Any = h.ir.phi(i32)
    position.add_incoming(first, before)
    warp = h.add(warps, h.ir.mul(h.ir.zext(h.warp_at(position), i64), h.i64(h.plan.warp_bytes)))
    for register, value in zip(registers, values):
        given = h.canonical_number(value) if register.slot in h.plan.noncanonical else value
        place = h.ir.bitcast(h.add(warp, register.offset), value.type.as_pointer())
        stored = h.ir.store_atomic(given, place, "monotonic", register.bits // 8)  # one by one: they are read soon
        stored.set_metadata("tbaa", h.state_tag)
    following = h.ir.add(position, h.i32(1))
    position.add_incoming(following, h.ir.block)
    h.ir.cbranch(h.ir.icmp_signed("<", following, end), turn, done)
    h.ir.position_at_end(done)


class _Ends:
    """What must hold for a number not to wrap around up to a thread, whose terms it is made of there."""

    def __init__(self, h: BlockFunction, thread: int, signed: bool) -> None:
        self.h, self.thread = h, thread
        self.least = -1 << 31 if signed else 0
        self.held: list[Any] = []

    def demands(self, term: Term) -> Iterator[Any]:
        self._number(term)
        return iter(self.held)

    def _number(self, term: Term) -> Any:
        """A number of the thread as the integer that it is, 64 bits."""
        h = self.h
        if term.kind == "number":
            return h.i64(term.number)
        if term.kind == "thread":
            return h.i64(self.thread)
        if term.kind == "register":
            return h.ir.sext(h.ir.load(h.variable(term.number, i32)), i64)
        a, b = (self._number(each) for each in term.terms)
        if term.kind == "product":
            for factor, other in zip((a, b), reversed(term.terms)):
                if other.grows:  # it grows with the thread's number too, or not at all
                    self.held.append(h.ir.icmp_signed(">=", factor, h.i64(0)))
        value = {"sum": h.ir.add, "difference": h.ir.sub, "product": h.ir.mul}[term.kind](a, b)
        if term.grows:
            moved = h.ir.sub(value, h.i64(self.least))
            self.held.append(h.ir.icmp_unsigned("<", moved, h.i64((1 << 31) - self.least)))
        return value
