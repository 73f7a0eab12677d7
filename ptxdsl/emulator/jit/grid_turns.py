"""Grid-stride loops of several blocks at once: each block makes a turn before one makes the next.

A loop that steps by the size of the grid reads and writes a kilobyte of a block, then skips those of all other blocks.
Block after block would go through all of memory in such steps, once for each block, which takes twice as long as going
through it in order. So the first block claims the next ones of the grid and makes their turns with its own.

Nothing of the others has to be kept: what a block's turn accesses follows from the block's number and the turn's, since
the registers that a turn hands on to the next one only grow by a step that is the same in the whole launch. Those turns
are made of which every check holds beforehand, without checks, as in :mod:`.block_passes`; from the first other turn on
each block goes on by itself, as if it had made those before: its registers get so many steps at the head of the loop.

It is done where the turns of a block may be made before others that come earlier in the grid: in kernels whose warps
make turns together already (:mod:`.loop_interchange`), and where nothing but global memory is accessed, in the loop.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..codegen.handler import Handler, i1, i32, i64, lanes_of, pointer
from ..machine.layout import Block, Launch
from .block_numbers import Unsuited
from .block_passes import BlockPass
from .entry_region import EntryRegion
from .function_builder import BlockFunction
from .plan import Layout, Step

__all__ = ["emit_grid_turns", "emit_made_turns"]

MOST = 4096
"""Blocks whose turns are made together."""
WORTH = 3
"""Turns that a block must have."""


class _GridTurns(BlockPass):
    """The turns of several blocks."""

    reorders = False

    def __init__(self, h: BlockFunction, head: int) -> None:
        self.turns = EntryRegion(h)
        super().__init__(self.turns)
        self.plan_ways()
        self.begins = len(self.ops)
        """The first micro-op of the loop."""
        if self.end != head:
            raise Unsuited
        self.turns.turn(head)
        self.plan_ways()
        made = {planned.statement for planned in self.ops[self.begins :]}
        if self.end != head or any(step.statement not in made for step in self.plan.grid_steps):
            raise Unsuited
        self.turns.start = -1
        self.made: Any = None
        """The number of the turn."""

    def before(self, number: int) -> None:
        """Where the loop begins, the registers have made their steps."""
        if number != self.begins:
            return
        for step in self.plan.grid_steps:
            for key in _keys(self.h, step):
                value = self.numbers.get(key)
                if value is None:
                    raise Unsuited
                bits = self.plan.registers[step.register].bits
                way = self.h.ir.mul(_cut(self.h, self.made, bits), self._by(step, bits))
                self.numbers[key] = self.h.ir.add(*self.alike(value, way))

    def read(self, slot: int, row: int | None = None) -> Any:
        """The number of a register; before the kernel's entry it has only what is computed once a launch."""
        known = (slot if row is None else (slot, row)) in self.numbers
        if not known and self.registers.get(slot, ("",))[0] not in self.plan.launch_invariant:
            raise Unsuited
        return super().read(slot, row)

    def _by(self, step: Step, bits: int) -> Any:
        if not step.by:
            return ir.Constant(ir.IntType(bits), step.number & (1 << bits) - 1)
        value = self.read(self.plan.registers[step.by].slot)
        if isinstance(value.type, ir.VectorType):
            raise Unsuited
        return value

    def before_in_warp(self, number: int) -> None:
        """The same of the registers of a warp."""
        h = self.h
        if number != self.begins:
            return
        for step in self.plan.grid_steps:
            kind = ir.IntType(self.plan.registers[step.register].bits)
            way = h.ir.mul(_cut(h, self.made, kind.width), self._by(step, kind.width))
            for key in _keys(h, step):
                place = h.variable(key, kind)
                h.ir.store(h.ir.add(h.ir.load(place), way), place)

    def leave(self) -> None:
        """Nothing is kept of the turn."""

    def emit_turns(self) -> None:
        """Emit all of it; go on where the current block has to be run by itself."""
        h, launch = self.h, Handler.load(self.h, self.h.block, Block.GRID, pointer, fixed=True)
        head, alone = h.block_named("grid"), h.block_named("alone")
        number = Handler.load(h, h.block, Block.CTA64, i64)
        wanted = self._wanted(launch)
        good = h.ir.icmp_signed(">", wanted, h.i64(0))
        for offset in (Block.NCTAID + 4, Block.NCTAID + 8):
            good = h.ir.and_(good, h.ir.icmp_signed("==", Handler.load(h, h.block, offset, i32), h.i32(1)))
        for value in (h.get("turns"), Handler.load(h, h.block, Block.BEGUN, i32)):
            good = h.ir.and_(good, h.zero(value))
        start = h.ir.block
        h.ir.cbranch(good, head, alone)
        h.ir.position_at_end(head)
        place, turn, trial, first, more = (h.ir.phi(kind) for kind in (i64, i32, i1, i64, i64))
        self._come(start, (place, h.i64(0)), (turn, h.i32(WORTH - 1)), (trial, i1(1)), (first, h.i64(0)),
                   (more, h.i64(0)))
        further = h.ir.add(first, h.ir.sub(place, h.i64(1)))
        current = h.ir.select(h.zero(place), number, further)
        h.replaced = {Block.CTAID: current, Block.CTA64: current}
        self.made = turn
        try:
            self.check()
        except Unsuited:
            h.replaced = {}
            h.ir.branch(alone)
            h.ir.position_at_end(alone)
            return
        fine, claim, run, stop, leave = (
            h.block_named(n) for n in ("holds", "claim", "grid_turn", "holds_not", "begun")
        )
        h.ir.cbranch(h.likely(self.reduced(self.good)), fine, stop)
        h.ir.position_at_end(fine)
        h.ir.cbranch(trial, claim, run)
        h.ir.position_at_end(claim)
        counter = h.ir.bitcast(h.add(launch, Launch.NEXT), i64.as_pointer())
        mine = h.ir.atomic_rmw("add", counter, wanted, "monotonic")
        there = h.ir.sub(Handler.load(h, launch, Launch.BLOCKS, i64), mine)
        got = h.call("llvm.smax.i64", i64, h.call("llvm.smin.i64", i64, there, wanted), h.i64(0))
        self._come(h.ir.block, (place, h.i64(0)), (turn, h.i32(0)), (trial, i1(0)), (first, mine), (more, got))
        h.ir.branch(head)
        h.ir.position_at_end(run)
        self.look_ahead()
        self.run_warps()
        last = h.ir.icmp_signed(">=", place, more)
        following = h.ir.select(last, h.i64(0), h.ir.add(place, h.i64(1)))
        turned = h.ir.add(turn, h.ir.zext(last, i32))
        self._come(h.ir.block, (place, following), (turn, turned), (trial, i1(0)), (first, first), (more, more))
        h.ir.branch(head)
        h.ir.position_at_end(stop)
        h.replaced = {}
        h.ir.cbranch(trial, alone, leave)
        h.ir.position_at_end(leave)
        h.store(first, h.block, Block.BEGUN_FIRST)
        h.store(h.ir.trunc(more, i32), h.block, Block.BEGUN)
        h.store(turn, h.block, Block.BEGUN_TURNS)
        ahead = h.call("llvm.usub.sat.i64", i64, place, h.i64(1))
        h.store(h.ir.trunc(ahead, i32), h.block, Block.BEGUN_FURTHER)
        h.set("turns", h.ir.add(turn, h.ir.zext(h.nonzero(place), i32)))
        h.ir.branch(alone)
        h.ir.position_at_end(alone)

    def _wanted(self, launch: Any) -> Any:
        """How many further blocks to claim: of those that are left, as many as each host thread gets."""
        h = self.h
        blocks, following = (Handler.load(h, launch, at, i64) for at in (Launch.BLOCKS, Launch.NEXT))
        left = h.ir.add(h.ir.sub(blocks, following), h.i64(1))
        share = h.call("llvm.smin.i64", i64, h.i64(MOST), h.ir.sdiv(left, h.i64(self.plan.threads_of_host)))
        return h.ir.sub(share, h.i64(1))

    def _come(self, block: ir.Block, *values: tuple[Any, Any]) -> None:
        for phi, value in values:
            phi.add_incoming(value, block)


def _keys(h: BlockFunction, step: Step) -> list[Any]:
    """The variables of a register."""
    slot = h.plan.registers[step.register].slot
    offsets = h.plan.row_affine.get(slot)
    return [slot] if offsets is None else [(slot, row) for row in range(0, h.present, offsets.lanes)]


def _cut(h: BlockFunction, number: Any, bits: int) -> Any:
    """An i32 in so many bits."""
    if bits == 32:
        return number
    return (h.ir.zext if bits > 32 else h.ir.trunc)(number, ir.IntType(bits))


def emit_grid_turns(h: BlockFunction) -> None:
    """Make the turns of this block and of others, where a loop is worth it; go on with what is left of this one."""
    plan = h.plan
    h.set("turns", Handler.load(h, h.block, Block.TURNS, i32))
    head = next((block.number for block in plan.blocks if block.turn is not None), None)
    if head is None or not plan.grid_steps:
        return
    h.written = frozenset()
    try:
        made = _GridTurns(h, head)
    except Unsuited:
        return
    made.emit_turns()


def emit_made_turns(h: BlockFunction) -> None:
    """At the head of the loop: let the registers of all warps make the steps of the turns that were made before."""
    plan = h.plan
    if not plan.grid_steps:
        return
    made, on = h.block_named("made_before"), h.block_named("at_turn")
    turns = h.get("turns")
    h.ir.cbranch(h.likely(h.zero(turns)), on, made)
    h.ir.position_at_end(made)
    warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
    for number in range(plan.warps):
        warp = h.add(warps, number * plan.warp_bytes)
        for step in plan.grid_steps:
            register = plan.registers[step.register]
            kind: Any = ir.IntType(register.bits)
            by: Any = ir.Constant(kind, step.number & (1 << register.bits) - 1)
            if step.by:
                by = Handler.load(h, warp, plan.registers[step.by].offset, kind)
            way = h.ir.mul(_cut(h, turns, register.bits), by)
            if register.layout is Layout.ROW_AFFINE or register.lane_offsets is not None:
                way, kind = h.splat(way), lanes_of(kind)
            value = Handler.load(h, warp, register.offset, kind, register.bits // 8)
            Handler.store(h, h.ir.add(value, way), warp, register.offset, register.bits // 8)
    h.set("turns", 0)
    h.ir.branch(on)
    h.ir.position_at_end(on)
