"""Functions of one warp: parts of a kernel between statements that only the first tier executes.

Such a function takes the place of the handlers of the micro-ops that it is entered at. Where all lanes of the warp
come there together, it loads the registers, and runs until it comes to what it cannot do; there it stores them, and
goes on at that micro-op's handler. So barriers of some warps, waits and clocks stay what they are, warps take their
turns as the scheduler has it, and a long kernel is several functions that hand the registers to each other in memory.

That lanes come together is not enough: where they were apart in the first tier, a register may differ among them that
converged code takes for one number. So that is asked of each register that is loaded; if it does not hold, if lanes
have ended, or the time slice is over, the handler that was there runs. A seed's schedule is that of the first tier.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..codegen import data
from ..codegen.control import yield_warp
from ..codegen.handler import HANDLER, Handler, i1, i32, i64, lanes_of, pointer
from ..codegen.segments import in_lanes, spread
from ..instructions.operand_classes import OperandClass
from ..machine.budgets import OWN_POLL, PATIENCE, POLL
from ..machine.layout import LANES, NEVER, Block, Warp
from .barrier_regions import BarrierRegion
from .function_builder import BlockFunction
from .plan import OWN_POLL_COST, POLL_COST, Join, Layout, Plan, PlannedRegister
from .waiting_lanes import WaitingLanes
from .warp_planning import Piece, WarpFunction, WarpPlan, polls

__all__ = ["emit_warp_function"]

BUDGET = 1 << 20
"""Statements in loops until the warp's time slice is over."""


def emit_warp_function(
    module: ir.Module, name: str, made: WarpPlan, part: WarpFunction, originals: dict[int, str]
) -> None:
    """Add a function of a warp; ``originals`` are the symbols of the handlers at the offsets that it is entered at."""
    h = _Builder(module, name, made.plan)
    region = _WarpRegion(h, made, part)
    h.ir.position_at_end(h.body)
    offset = h.ir.sub(h.ir.ptrtoint(h.rec, i64), h.base)
    h.set("budget", BUDGET)
    h.set("vote", 0)
    h.set("poll", 0)
    h.number = Handler.load(h, h.warp, Warp.INDEX, i32)
    h.set("result", Handler.load(h, h.warp, Warp.RESULT, i32))
    for state in ("alive", "converged"):
        h.set(state, h.lanes_at(h.number))
    lost = h.block_named("lost")
    switch = h.ir.switch(offset, lost)
    h.ir.position_at_end(lost)
    h.ir.unreachable()
    for at, piece in part.entries.items():
        switch.add_case(h.i64(at), entry := h.block_named("entry"))
        h.ir.position_at_end(entry)
        region.enter(piece, originals[at])
    region.emit()
    h.allocas.branch(h.preheader.block)
    h.preheader.branch(h.body)


class _View(Handler):
    """What a function does as a handler would: nothing of the warp's memory is known."""

    def __init__(self, h: BlockFunction) -> None:
        self.function, self.ir = h.function, h.ir
        self.rec, self.warp, self.block = h.rec, h.warp, h.block


class _Builder(BlockFunction):
    """The function under construction."""

    def __init__(self, module: ir.Module, name: str, plan: Plan) -> None:
        super().__init__(module, name, plan)
        self.state["poll"] = self.alloca(i32, 4)
        """What a poll costs at which the function is left; 0 where it is left for something else."""

    def charge_budget(self, cost: int, leave: Callable[[], None]) -> None:
        def end_slice() -> None:
            self.store(self.i32(0), self.warp, Warp.BUDGET)
            leave()

        def poll_again() -> None:
            self.set("poll", OWN_POLL if cost >= OWN_POLL_COST else POLL)
            self.handing_on = True
            leave()
            self.handing_on = False

        if cost >= POLL_COST:  # another warp may be what it waits for
            self.branch_unless(ir.Constant(i1, 0), poll_again)
            return
        super().charge_budget(cost, end_slice)

    handing_on = False
    """Whether exits are to where this function or another one may be entered."""

    def _leave_for(self, offset: int) -> None:
        if not self.handing_on:
            self.store(self.i32(1), self.warp, Warp.SKIP)
        super()._leave_for(offset)

    def hand_on(self, offset: int, live: set[str]) -> None:
        """Go on at a statement of the first tier, or in another function."""
        self.handing_on = True
        self.exit_at(offset, live)
        self.handing_on = False

    def call_handler(self, handler: Any, rec: Any) -> None:
        """Go on with a handler of the first tier."""
        Handler.tail(self, handler, rec)


class _WarpRegion(BarrierRegion):
    """The pieces of one function."""

    copies = False

    def __init__(self, h: _Builder, made: WarpPlan, part: WarpFunction) -> None:
        self.h: BlockFunction = h
        self.builder = h
        self.plan, self.start, self.made, self.part = made.plan, 0, made, part
        self.first = self.plan.blocks[0]
        self.at_barrier = None
        self.hand_over = h.block_named("hand_over")
        self.exit_block = h.block_named("exit_converged")
        self.starts = {piece.block: piece for piece in part.pieces if not piece.first and piece.block not in made.apart}
        self.reached = list(self.starts)
        self.inside = [self.plan.blocks[number] for number in dict.fromkeys(piece.block for piece in part.pieces)]
        self.ragged = self.skipped = set().union(*(join.way for join in self.plan.joins.values()))
        self.bodies = {number: h.block_named(f"block{number}_") for number in self.reached}
        self.behind = {
            piece: h.block_named("behind") for piece in part.pieces if piece != self.starts.get(piece.block)
        }
        self.divergent, self.hoisted, self.divergent_start, self.ends = [], {}, None, {}
        self.some_may_retire = self.read_only = False
        self.idle = {}
        self.waiting = WaitingLanes(self, [block.number for block in self.inside])
        h.written = frozenset().union(*(self.plan.writes[block.number] for block in self.inside))
        self.read = frozenset().union(*(self.plan.reads[block.number] for block in self.inside))

    # Entries

    def enter(self, piece: Piece, original: str) -> None:
        """Where the function is entered at a piece, in place of a handler."""
        h, plan = self.h, self.plan
        block = plan.blocks[piece.block]
        at = block.ops[piece.first] if piece.first < len(block.ops) else block.terminator
        assert at is not None
        live = plan.live(at.statement, 0)
        once = {name for name in plan.launch_invariant & self.read if _is_one_number(plan, name)}
        names = ((live & (h.written | self.read)) | (plan.launch_invariant & self.read)) - once
        active, alive = (Handler.load(h, h.warp, field, i32) for field in (Warp.ACTIVE, Warp.ALIVE))
        lanes, join = h.lanes_at(h.number), self._join(piece)
        all_there = h.ir.icmp_unsigned("==", h.ir.and_(active, alive), lanes)
        others = h.ir.and_(lanes, h.ir.not_(active))
        if join is not None:
            waits = h.ir.and_(self._wait_at(join, others), h.ir.icmp_unsigned("==", alive, lanes))
            all_there = h.ir.or_(all_there, waits)
        slice_left = Handler.load(h, h.warp, Warp.BUDGET, i32)
        in_time = h.ir.icmp_signed(">", slice_left, h.i32(0))
        unseeded = h.zero(Handler.load(h, h.block, Block.SEED, i32))
        fresh = h.zero(Handler.load(h, h.warp, Warp.SKIP, i32))
        good = h.ir.and_(h.ir.and_(all_there, fresh), h.ir.and_(in_time, unseeded))
        kept = plan.live(plan.blocks[join.block].start, 0) if join is not None else names
        for name in sorted(names):
            held = self._holds(name, plan.registers[name], lanes if name in kept else active)
            good = h.ir.and_(good, held) if held is not None else good

        def go_on() -> None:
            h.store(h.i32(0), h.warp, Warp.SKIP)
            module = h.function.module
            self.builder.call_handler(module.globals.get(original) or ir.Function(module, HANDLER, original), h.rec)

        h.branch_unless(good, go_on)
        # A loop that leaves the function in each turn has a fresh budget each time: entering it takes of the slice.
        h.store(h.ir.sub(slice_left, h.i32(1)), h.warp, Warp.BUDGET)
        h.load_registers(names)
        h.load_warp_invariant(once)
        if join is not None:
            self.waiting.resume(join, others)
        h.ir.branch(self.behind[piece] if piece in self.behind else self.bodies[piece.block])

    def _join(self, piece: Piece) -> Join | None:
        """Where the other lanes of a warp wait if some poll at a piece."""
        if piece.first or not polls(self.plan.blocks[piece.block]):
            return None
        joins = {join.block: join for join in self.waiting.joins.values() if piece.block in join.way}
        return next(iter(joins.values())) if len(joins) == 1 else None

    def _wait_at(self, join: Join, others: Any) -> Any:
        """Whether these lanes, of which there are some, wait at a join, and no other lane anywhere."""
        h = self.h
        priority = h.i32(self.plan.blocks[join.block].priority)
        places = Handler.load(h, h.warp, Warp.PRIORITIES, lanes_of(i32), 64)
        elsewhere = h.mask(h.ir.icmp_unsigned("!=", places, h.splat(priority)))
        first = h.ir.icmp_unsigned("==", Handler.load(h, h.warp, Warp.PARKED, i32), priority)
        return h.ir.and_(first, h.zero(h.ir.and_(elsewhere, others)))

    def _holds(self, name: str, register: PlannedRegister, lanes: Any) -> Any:
        """Whether memory has what converged code takes a register for: one number, and known offsets from it.

        None where the first tier knows that too.
        """
        h = self.h
        if register.layout is Layout.PREDICATE:
            if name not in self.made.alike:
                return None
            mask = h.ir.and_(Handler.load(h, h.warp, register.offset, i32), lanes)
            return h.ir.or_(h.zero(mask), h.ir.icmp_unsigned("==", mask, lanes))
        element = ir.IntType(register.bits)
        vector = ir.VectorType(element, LANES)
        if register.layout is Layout.ROW_AFFINE:
            offsets = self.plan.row_affine[register.slot]
            firsts = [
                Handler.load(h, h.warp, register.offset + lane * register.bits // 8, element)
                for lane in range(0, h.present, offsets.lanes)
            ]
            wanted = in_lanes(h, [spread(h, first, offsets.lanes) for first in firsts])
        elif register.lane_offsets is not None:
            offsets = register.lane_offsets
            first = Handler.load(h, h.warp, register.offset, element)
            wanted = h.splat(h.ir.sub(first, ir.Constant(element, offsets[0] & (1 << register.bits) - 1)))
        else:
            return None
        wanted = h.ir.add(wanted, h.vector(offsets, register.bits))
        same = h.ir.icmp_unsigned("==", Handler.load(h, h.warp, register.offset, vector), wanted)
        return h.zero(h.ir.and_(lanes, h.ir.not_(h.mask(same))))

    # Pieces

    def emit(self) -> None:
        h = self.h
        h.exit_block = self.exit_block
        self._find_divergent()
        for piece in self.part.pieces:
            h.ir.position_at_end(self.behind[piece] if piece in self.behind else self.bodies[piece.block])
            self._piece(piece)
        self._emit_divergent()
        h.ir.position_at_end(self.hand_over)
        h.store(h.get("active"), h.warp, Warp.ACTIVE)
        h.store(h.get("parked"), h.warp, Warp.PARKED)
        rec = h.ir.inttoptr(h.ir.add(h.base, h.get("resume")), pointer)
        self._yield(rec)
        self.builder.call_handler(h.ir.load(h.ir.bitcast(rec, HANDLER.as_pointer().as_pointer()), align=8), rec)

    def _yield(self, rec: Any) -> None:
        """Let another warp run after a poll; the first tier does where lanes may wait for others of their warp."""
        h = self.h
        cost, on, polled, patient = h.get("poll"), *(h.block_named(name) for name in ("on", "polled", "patient"))
        h.ir.cbranch(h.zero(cost), on, polled)
        h.ir.position_at_end(polled)
        yields = h.ir.icmp_signed("<", Handler.load(h, h.warp, Warp.YIELDS, i32), h.i32(PATIENCE))
        together = h.ir.icmp_signed("==", h.get("parked"), h.i32(NEVER))
        h.branch_unless(h.ir.or_(yields, together), lambda: self._poll_there(on))
        h.ir.branch(patient)
        h.ir.position_at_end(patient)
        yield_warp(_View(h), cost, rec)
        h.ir.position_at_end(on)

    def _poll_there(self, on: ir.Block) -> None:
        """Poll in the first tier, at the end of the time slice."""
        for field, value in ((Warp.BUDGET, 0), (Warp.SKIP, 1)):
            self.h.store(self.h.i32(value), self.h.warp, field)
        self.h.ir.branch(on)

    def _piece(self, piece: Piece) -> None:
        h, plan = self.h, self.plan
        block = plan.blocks[piece.block]
        h.lanes, h.masked, h.canonical, h.exit_block = h.converged, False, set(), self.exit_block
        partial, h.partial = h.partial, h.partial or bool(plan.joins)
        h.thin = block.number in self.skipped
        self.emit_ops(block._replace(ops=block.ops[: piece.last]), piece.first)
        h.partial, h.thin = partial, False
        if piece.leave < 0:
            self._terminator(block)
        else:
            self.builder.hand_on(piece.offset, plan.live(piece.leave, 0))
        h.emit_side_exits()

    def arrive(self, number: int) -> None:
        h, block = self.h, self.plan.blocks[number]
        if number in self.waiting.entries:  # nobody waits for lanes of this warp any more
            h.store(h.i32(0), h.warp, Warp.YIELDS)
        if number in self.bodies:
            h.ir.branch(self.bodies[number])
        else:
            self.builder.hand_on(block.offset, self.plan.live(block.start, 0))

    def end_lanes(self, guard: OperandClass) -> None:
        """Lanes end: the first tier goes on, under a guard if there is one that holds."""
        h = self.h
        h.branch_unless(h.zero(data.guard_mask(h, guard, True)), h.side_exit)

    def _end_warp(self, number: int, offset: int, live: set[str], vote: Any = None) -> None:  # noqa: ARG002
        self.h.exit_at(offset, live)


def _is_one_number(plan: Plan, name: str) -> bool:
    """Whether a register is one number that is the same in all warps."""
    register = plan.registers[name]
    return (
        register.slot in plan.warp_invariant and register.layout is Layout.UNIFORM and register.lane_offsets is None
    )
