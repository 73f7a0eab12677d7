"""The plan of a block function: which kernels it can run, their basic blocks, registers and constants."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from ...ir import Address, Call, Immediate, Instruction, Operand, Register, SpecialRegister, Symbol
from ...analysis.control_flow import BasicBlock
from ...machine_code.host import cores
from ..analysis.block_uniform import BlockUniform
from ..analysis.divergence import UNIFORM, VARYING, LaneOffsets, Shape3
from ..analysis.row_affine import RowAffine
from ..instructions.barriers import Barrier
from ..instructions.clusters import ClusterBarrier
from ..instructions.control import Branch, Exit, Reconvergence
from ..instructions.instrumentation import EpochArrive, EpochBegin
from ..codegen.code import Code
from ..instructions.micro_op import PlacedMicroOp
from ..machine.layout import LANES
from ..machine.warp_rows import lanes_of_warps
from .convergent_lowering import ConvergentLowering
from .grid_steps import steps_of
from .idle_planning import idle_branches
from .indexed_addresses import IndexedAddresses
from .lane_planning import plan_lanes
from .loop_interchange import interchanged
from .merged_checks import merged_bounds_checks, merged_shadow_checks, without_repeated_checks, written_slots
from .plan import (
    BlockBarrier, Join, Layout, Plan, PlannedBlock, PlannedOp, PlannedRegister, Refused, Row, defers_nan, learns_entry,
)

from .row_plan import row_loads

__all__ = ["Planner", "key_of", "plan_block_function"]

MAX_STATEMENTS = 1500


def plan_block_function(code: Code) -> Plan:
    """How to compile a kernel as one function for a block; raises Refused where that cannot be done."""
    if code.source is None or not code.graph.blocks:
        raise Refused("no statements")
    if code.conservative:
        raise Refused("conservative code, since lanes of a warp wait for each other")
    function, spaces, block, instrument = code.source
    if len(code.graph.statements) > MAX_STATEMENTS:
        raise Refused(f"{len(code.graph.statements)} statements, more than {MAX_STATEMENTS}")
    low = ConvergentLowering(function, spaces, block, False, instrument, False, code.known_wraps, arms=True)
    return Planner(code, low, block).plan()


def line_of(statement: Instruction | Call) -> str:
    """Where a statement comes from, for people: its Python line, or that of the PTX text."""
    return f"line {statement.loc.line}" if statement.loc is not None else f"PTX line {statement.line}"


def _waits_for_cluster(placed: PlacedMicroOp) -> bool:
    return isinstance(placed.op, ClusterBarrier) and placed.op.action == "wait"


def _leaves_cluster(placed: PlacedMicroOp) -> bool:
    """Whether it is part of the end of lanes, which block functions do as one."""
    return isinstance(placed.op, ClusterBarrier) and placed.op.action == "leave"


class Planner:
    def __init__(self, code: Code, low: ConvergentLowering, block: Shape3) -> None:
        self.code, self.low, self.block = code, low, block
        self.threads, self.width = block[0] * block[1] * block[2], lanes_of_warps(block)
        self.indexed = IndexedAddresses(low)
        entry = code.entry - code.base
        start = next(n for n, offset in enumerate(code.offsets) if offset >= entry)
        self.first: dict[int, int] = {}
        """The first micro-op of each statement, in the first tier; below, its access, its shadow check, its barrier."""
        self.accesses: dict[tuple[int, bool], int] = {}
        self.barriers: dict[int, int] = {}
        prologue = [placed for placed in code.micro_ops[start:] if isinstance(placed.op, EpochBegin)]
        self.prologue = tuple(PlannedOp(placed.op, placed.values, placed.statement, entry) for placed in prologue)
        for number in range(start + len(prologue), len(code.micro_ops)):
            placed = code.micro_ops[number]
            if isinstance(placed.op, Barrier) or _waits_for_cluster(placed):
                self.barriers[placed.statement] = number
            if not isinstance(placed.op, Reconvergence):
                self.first.setdefault(placed.statement, number)
            if "flags" in placed.op.values:
                self.accesses.setdefault((placed.statement, placed.op.instrumentation), number)

    def plan(self) -> Plan:
        code, low = self.code, self.low
        micro_ops = low.basic_blocks()
        blocks = [self._basic_block(number, members) for number, members in enumerate(micro_ops)]
        turn = None
        if self.width == LANES and not low.cluster_barriers:
            turn = interchanged(blocks, low, self.threads)
        if turn is not None:
            blocks[turn.number] = blocks[turn.number]._replace(turn=turn)
        lanes = plan_lanes(low, blocks, code, self._planned)
        ops = low.graph.def_use
        invariant, offsets = low.facts.launch_invariant, low.registers.offsets

        def names(block: BasicBlock, reads: bool) -> frozenset[str]:
            places = [n for n in range(block.start, block.stop) if n not in invariant]
            return frozenset(r.name for n in places for r in (ops[n].uses if reads else ops[n].writes))

        def registers_of(place: int) -> tuple[frozenset[str], frozenset[str]]:
            op = ops[place]
            return frozenset(r.name for r in op.uses), frozenset(r.name for r in op.writes)

        made = Plan(
            blocks=tuple(blocks), threads=self.threads, width=self.width, warp_bytes=code.registers.size,
            registers=self._registers(), live=lru_cache(None)(code.registers.liveness.before),
            registers_of=registers_of,
            reads=tuple(names(each, True) for each in low.graph.blocks),
            writes=tuple(names(each, False) for each in low.graph.blocks),
            launch_invariant=frozenset(r.name for n in invariant for r in ops[n].writes),
            noncanonical=self._noncanonical(micro_ops), lane_offsets=dict(enumerate(low.pool.vectors)),
            row_affine={offsets[name]: each for name, each in low.facts.offsets.items() if isinstance(each, RowAffine)},
            row_lanes=self.block[0], local=self._local(),
            warp_invariant=frozenset(offsets[name] for name in _warp_invariant(low, self.block)),
            entry=code.entry - code.base, prologue=self.prologue, ending=self._ending(blocks, lanes is not None),
            joins=self._joins(blocks), lanes_end=turn is not None or any(map(_ends_lanes, blocks)),
            after_ends=frozenset(range(len(blocks))) if turn is not None else _after_ends(blocks),
            leaves=low.cluster_barriers, clustered=prod(low.spaces.cluster or (1,)), lanes=lanes, key="",
            along_rows=_along_rows(low),
        )
        if turn is not None:
            steps = steps_of(blocks, low, turn.number, made.registers)
            made = made._replace(grid_steps=steps, threads_of_host=cores() if steps else 1)
        elif made.warps > 1 and not made.leaves:
            idle = idle_branches(made, low, self.block) if made.warps > 2 else ()
            made = made._replace(block_uniform=_block_uniform(made, low), idle=idle)
        return made._replace(key=key_of(made, code))

    def _local(self) -> frozenset[int]:
        liveness, nodes = self.code.registers.liveness, self.low.graph.blocks
        outlive = frozenset().union(*(liveness.before(node.start) for node in nodes if node.start < node.stop))
        return frozenset(slot for name, slot in self.low.registers.offsets.items() if name not in outlive)

    def _ending(self, blocks: list[PlannedBlock], apart: bool) -> frozenset[int]:
        """``apart``: what follows runs long for each lane, so that the last lanes are worth code of their own."""
        found: set[int] = set()
        for block in blocks:
            for planned in (*block.ops, *((block.terminator,) if block.terminator is not None else ())):
                some = apart or block.divergent or self.low.ends_some(planned.statement)
                if isinstance(planned.op, Exit) and some:
                    found.add(planned.statement)
        return frozenset(found)

    def _joins(self, blocks: list[PlannedBlock]) -> dict[int, Join]:
        """Branches that may split a warp and are no part of a divergent region, with where their lanes wait.

        What is written on the way must be of one number a lane, or is not used from there on.
        """
        graph, facts, found = self.low.graph, self.low.facts, {}
        for block in blocks:
            op, join = block.terminator.op if block.terminator is not None else None, graph.reconvergence[block.number]
            if not isinstance(op, Branch) or not op.divergent or block.divergent or join not in block.successors:
                continue
            if join in facts.divergent or len(set(block.successors)) < 2:
                continue
            way = graph.divergent_region(block.number, {})
            written = {r for n in way for node in (graph.blocks[n],) for place in range(node.start, node.stop)
                       for r in graph.def_use[place].writes}
            live = self.code.registers.liveness.before(graph.blocks[join].start)
            kept = {r.name: r for r in written if r.name in live}
            if all(facts.offsets.get(name, VARYING) is VARYING for name in kept):
                found[block.number] = Join(join, tuple(sorted(kept)), tuple(sorted(way)))
        return found

    def _noncanonical(self, micro_ops: list[list[PlacedMicroOp]]) -> frozenset[int]:
        members = [placed for some in micro_ops for placed in some]
        return frozenset().union(*(written_slots(self.low, member) for member in members if defers_nan(member.op)))

    def _refused(self, placed: PlacedMicroOp, reason: str) -> Refused:
        return Refused(f"{reason} ({line_of(self.code.graph.statements[placed.statement])})")

    def _basic_block(self, number: int, micro_ops: list[PlacedMicroOp]) -> PlannedBlock:
        """A basic block; raises Refused where it has something that no block function can do."""
        block, code = self.low.graph.blocks[number], self.code
        micro_ops = [placed for placed in micro_ops if not _leaves_cluster(placed)]
        waits = (isinstance(each.op, Barrier) or _waits_for_cluster(each) for each in micro_ops[:2])
        index = next((n for n, here in enumerate(waits) if here), None)
        barrier = None
        if index is not None and (index == 0 or isinstance(micro_ops[0].op, EpochArrive)):
            barrier = self._barrier(micro_ops[index], index)
        bounds = merged_bounds_checks(self.low, micro_ops)
        rows = row_loads(self.low, micro_ops, self.low.present)
        terminator = None
        ops = []
        for place, placed in enumerate(micro_ops):
            op, planned = placed.op, self._planned(placed, bounds.get(place), rows.get(place))
            if op.ends:
                if place + 1 < len(micro_ops):
                    raise self._refused(placed, "an exit")
                terminator = planned
            elif op.inlinable or (barrier is not None and place == index):
                ops.append(planned)
            else:
                raise self._refused(placed, f"{self._mnemonic(placed)}: {op.first_tier}")
        divergent = number in self.low.facts.divergent
        if not divergent:
            ops = merged_shadow_checks(self.low, micro_ops, ops, self.width < LANES or self.threads % LANES > 0)
        ops = without_repeated_checks(self.low, micro_ops, ops)
        return PlannedBlock(
            number, block.priority, int(code.blocks[code.graph.blocks[number].priority]) - code.base, block.start,
            tuple(ops), terminator, block.fallthrough, block.targets, divergent,
            bool(micro_ops) and micro_ops[0].op.converges, barrier,
        )

    def _mnemonic(self, placed: PlacedMicroOp) -> str:
        statement = self.code.graph.statements[placed.statement]
        return statement.form.mnemonic if isinstance(statement, Instruction) else "call"

    def _barrier(self, placed: PlacedMicroOp, index: int) -> BlockBarrier:
        """A barrier of the whole block; raises Refused if others are meant, or that is not known."""
        op = placed.op
        wait, offsets = self.barriers[placed.statement], self.code.offsets
        if isinstance(op, ClusterBarrier):
            if op.guard:
                raise self._refused(placed, "a barrier under a guard")
            return BlockBarrier(0, 0, offsets[wait], offsets[wait + 1], placed.statement, index, True)
        assert isinstance(op, Barrier)
        if op.action == "arrive":
            raise self._refused(placed, "a barrier that some warps do not wait at")
        if op.guard:
            raise self._refused(placed, "a barrier under a guard")
        if not op.number.immediate or placed.value("number") > 15:
            raise self._refused(placed, "a barrier whose number is not known")
        expected = placed.value("threads") if op.threads.immediate else 0
        if op.threads and -(-self.threads // LANES) * LANES != expected:
            raise self._refused(placed, "a barrier of some threads of the block")
        return BlockBarrier(placed.value("number"), expected, offsets[wait], offsets[wait + 1], placed.statement, index)

    def _planned(self, placed: PlacedMicroOp, bounds: tuple[int, int] | None, row: Row | None) -> PlannedOp:
        access = -1
        if learns_entry(placed):
            access = self.code.offsets[self.accesses[placed.statement, placed.op.instrumentation]]
        offset = self.code.offsets[self.first[placed.statement]]
        index, beside = self.indexed.index(placed), self.indexed.beside(placed)
        return PlannedOp(placed.op, placed.values, placed.statement, offset, access, bounds, None, row, index, beside)

    def _registers(self) -> dict[str, PlannedRegister]:
        found = {}
        mine, first, slots = self.low.facts.offsets, self.code.operands.facts.offsets, self.code.registers
        types = {r.name: r.type for op in self.low.graph.def_use for r in (*op.uses, *op.writes)}
        for name, kind in types.items():
            if name not in slots.offsets:  # in code that nothing reaches
                continue
            here: LaneOffsets = mine.get(name, UNIFORM)
            layout = Layout.VARYING if here is VARYING else Layout.UNIFORM
            if kind.kind == "p":
                layout = Layout.PREDICATE
            elif isinstance(here, RowAffine):
                layout = Layout.ROW_AFFINE
            offsets = here if layout is Layout.UNIFORM and first.get(name, UNIFORM) is VARYING else None
            place = self.low.registers.offsets[name]
            found[name] = PlannedRegister(place, layout, kind.bits, slots.offsets[name], offsets)
        return found


def key_of(made: Plan, code: Code) -> str:
    """All that the code of a plan depends on. Liveness follows from the statements and their basic blocks."""
    others = ("live", "registers_of", "key")
    fields = {name: _ordered(value) for name, value in made._asdict().items() if name not in others}
    uses = [
        (tuple(r.name for r in op.uses), tuple(r.name for r in op.writes), op.statement.guard is None)
        for op in code.graph.def_use
    ]
    nodes = [(node.start, node.stop, node.successors) for node in code.graph.blocks]
    return repr((fields, uses, nodes))


def _ordered(value: Any) -> Any:
    """Sets in an order that is the same in every process."""
    if isinstance(value, frozenset):
        return sorted(value)
    return [_ordered(each) for each in value] if isinstance(value, tuple) else value


def _ends_lanes(block: PlannedBlock) -> bool:
    """Whether lanes may end in a basic block while others of their warp go on."""
    last = block.terminator.op if block.terminator is not None and block.divergent else None
    return isinstance(last, Exit) or any(isinstance(each.op, Exit) for each in block.ops)


def _after_ends(blocks: list[PlannedBlock]) -> frozenset[int]:
    """The basic blocks that can be reached when lanes have ended, by others of their warp."""
    before: dict[int, list[PlannedBlock]] = {}
    for block in blocks:
        for number in block.successors:
            before.setdefault(number, []).append(block)
    split, todo, found = set[int](), [block for block in blocks if _ends_lanes(block)], set[int]()
    while todo:  # back to where the lanes went apart
        block = todo.pop()
        if block.number not in split:
            split.add(block.number)
            todo += before.get(block.number, []) if block.divergent else []
    ways = [number for n in split for number in blocks[n].successors]
    while ways:
        number = ways.pop()
        if number not in found:
            found.add(number)
            ways += blocks[number].successors
    return frozenset(found)


def _warp_invariant(low: ConvergentLowering, block: Shape3) -> set[str]:
    """Launch-invariant registers that hold the same in all warps: those that do not depend on a row of the block."""
    found: set[str] = set()
    specials = ("%ntid", "%nctaid", "%laneid", *(("%tid.x",) if lanes_of_warps(block) % block[0] == 0 else ()))
    for each in low.graph.blocks:
        for place in range(each.start, each.stop):
            op = low.graph.def_use[place]
            fixed = place in low.facts.launch_invariant
            if fixed and all(_is_warp_invariant(each, found, specials) for each in op.reads):
                found.update(r.name for r in op.writes)
    return found


def _along_rows(low: ConvergentLowering) -> frozenset[str]:
    """Registers that are computed from the block's place in its row of the grid."""
    ops = [low.graph.def_use[place] for each in low.graph.blocks for place in range(each.start, each.stop)]
    found, before = set[str](), -1
    while before < len(found):
        before = len(found)
        for op in ops:
            if SpecialRegister("%ctaid.x") in op.reads or any(register.name in found for register in op.uses):
                found.update(register.name for register in op.writes)
    return frozenset(found)


def _block_uniform(made: Plan, low: ConvergentLowering) -> frozenset[str]:
    """Registers of one number that is the same in all warps, but for what is computed once a launch."""
    if made.clustered > 1 or not any(block.barrier is not None for block in made.blocks):
        return frozenset()
    varying = BlockUniform(low.graph).varying | made.launch_invariant
    return frozenset(
        name for name, register in made.registers.items()
        if name not in varying and register.layout is Layout.UNIFORM and register.lane_offsets is None
    )


def _is_warp_invariant(operand: Operand, registers: set[str], specials: tuple[str, ...]) -> bool:
    if isinstance(operand, Register):
        return operand.name in registers
    if isinstance(operand, SpecialRegister):
        return operand.special.startswith(specials)
    if isinstance(operand, Address):
        return isinstance(operand.base, Symbol)
    return isinstance(operand, (Immediate, Symbol))
