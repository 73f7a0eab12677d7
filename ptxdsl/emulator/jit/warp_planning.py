"""What kernels are compiled as that no block function can run: functions of a warp, and where each is entered and left.

Statements that only the first tier executes (barriers of some warps, waits, clocks) cut the basic blocks into pieces,
and so do long stretches without any. Pieces that lie together make up a function, which is entered at several places:
behind such a statement, at the heads of loops, and where another function's code goes on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import groupby
from typing import NamedTuple

from ..analysis.divergence import UNIFORM
from ..codegen.code import Code
from ..instructions.barriers import Barrier
from ..instructions.clusters import ClusterBarrier
from ..instructions.control import Branch, Jump
from ..instructions.micro_op import PlacedMicroOp
from ..machine.budgets import POLL
from .convergent_lowering import ConvergentLowering
from .merged_checks import merged_bounds_checks
from .plan import Plan, PlannedBlock, PlannedOp, Refused, effort
from .planning import Planner

__all__ = ["Piece", "WarpFunction", "plan_warp_functions"]

CUT = 400
"""Micro-ops of a piece of a basic block."""
LARGEST = 1000
"""Micro-ops of a function, if no piece has more: what LLVM takes grows faster than they do."""
MOST = 12_000
"""Micro-ops of a kernel."""
MOST_CHECKED = 3000
"""The same of a kernel with the sanitizer's checks."""
SHORTEST = 8
"""Micro-ops of a piece that are worth loading its registers, in the mean."""


class Piece(NamedTuple):
    """Micro-ops of a basic block: to its end where ``leave`` is -1, else the first tier goes on at that statement."""

    block: int
    first: int
    last: int
    leave: int
    offset: int
    """Of the first micro-op of the statement at which the function is left."""


class WarpFunction(NamedTuple):
    """Pieces that are compiled as one function, and those of them that it is entered at, by the offset."""

    pieces: tuple[Piece, ...]
    entries: dict[int, Piece]


class WarpPlan(NamedTuple):
    """All functions of a kernel; ``alike`` are the predicates that hold in all lanes of a warp or in none.

    ``apart`` are the basic blocks that begin with a statement of the first tier.
    """

    plan: Plan
    functions: tuple[WarpFunction, ...]
    apart: frozenset[int]
    alike: frozenset[str]


def plan_warp_functions(code: Code) -> WarpPlan:
    """How to compile a kernel as functions of a warp; raises Refused where that is not worth it."""
    if code.source is None or not code.graph.blocks or code.conservative:
        raise Refused("no functions of a warp")
    most = MOST if code.source[3] is None else MOST_CHECKED
    if sum(effort(placed.op) for placed in code.micro_ops) > most:
        raise Refused(f"as much as {most} micro-ops, or more")
    function, spaces, block, instrument = code.source
    low = ConvergentLowering(function, spaces, block, False, instrument, False, code.known_wraps)
    return _WarpPlanner(code, low, block).functions()


class _WarpPlanner(Planner):
    """Plans pieces where the block function has basic blocks."""

    leaves: dict[tuple[int, int], tuple[int, int]]
    """Before which micro-op of a basic block the function is left, and the statement and offset there."""

    def functions(self) -> WarpPlan:
        self.leaves = {}
        plan = self.plan()._replace(idle=())
        blocks = tuple(block._replace(turn=None) for block in plan.blocks)
        plan = plan._replace(blocks=blocks, lanes_end=False, ending=frozenset(), leaves=False)
        pieces = [piece for block in sorted(plan.blocks, key=lambda b: b.priority) for piece in self._pieces(block)]
        micro_ops = sum(len(block.ops) for block in plan.blocks)
        if micro_ops < SHORTEST * (1 + len(self.leaves)) and not self._has_loop(plan.blocks):
            raise Refused("no functions of a warp")
        groups: list[list[Piece]] = [[]]
        size = 0
        for piece in pieces:
            if groups[-1] and size + piece.last - piece.first > LARGEST:
                groups.append([])
                size = 0
            groups[-1].append(piece)
            size += piece.last - piece.first
        apart = frozenset(number for number, place in self.leaves if not place)
        entries = _Entries(plan, groups, self.leaves)
        return WarpPlan(plan, tuple(entries.functions(self._behind_polls(plan))), apart, self._alike())

    def _behind_polls(self, plan: Plan) -> list[int]:
        """Where the lanes of a warp are together again of which some have waited in the first tier."""
        after, found = self.low.graph.reconvergence, []
        apart = {number for join in plan.joins.values() for number in join.way}
        apart.update(block.number for block in plan.blocks if block.divergent)
        for block in plan.blocks:
            if block.number in apart and polls(block):
                number = block.number
                while number in apart:
                    number = after[number]
                if number >= 0:
                    found.append(number)
        return found

    def _has_loop(self, blocks: tuple[PlannedBlock, ...]) -> bool:
        """Whether there is a loop that compiled code does not leave."""
        left = {blocks[number].priority for number, _ in self.leaves}
        ways = ((blocks[target].priority, block.priority) for block in blocks for target in block.successors)
        return any(first <= last and not any(first <= at <= last for at in left) for first, last in ways)

    def _alike(self) -> frozenset[str]:
        known = self.low.facts.offsets
        written = {register for op in self.low.graph.def_use for register in op.writes}
        return frozenset(r.name for r in written if r.type.kind == "p" and known.get(r.name, UNIFORM) is UNIFORM)

    def _pieces(self, block: PlannedBlock) -> list[Piece]:
        places = [place for number, place in self.leaves if number == block.number]
        starts = places if places[:1] == [0] else [0, *places]
        ends = [*starts[1:], len(block.ops)]
        leaves = [self.leaves[block.number, place] for place in starts[1:]]
        return [
            Piece(block.number, first, last, *leave)
            for first, last, leave in zip(starts, ends, [*leaves, (-1, -1)])
        ]

    def _basic_block(self, number: int, micro_ops: list[PlacedMicroOp]) -> PlannedBlock:
        block, code = self.low.graph.blocks[number], self.code
        segments: list[list[PlacedMicroOp]] = [[]]
        terminator: PlannedOp | None = None
        place = 0
        members = [list(some) for _, some in groupby(micro_ops, key=lambda placed: placed.statement)]
        for which, statement in enumerate(members):
            here = statement[0].statement, self.code.offsets[self.first[statement[0].statement]]
            last = statement[-1]
            if last.op.ends and which + 1 == len(members):
                terminator = self._planned(last, None, None)
                statement = [placed for placed in statement[:-1] if not isinstance(placed.op, ClusterBarrier)]
            stops = not all(map(_runs, statement))
            if stops and terminator is not None:
                raise Refused("no functions of a warp")
            if stops or (last.op.ends and terminator is None):
                self.leaves.setdefault((number, place), here)
                segments.append([])
                continue
            if len(segments[-1]) >= CUT:
                self.leaves.setdefault((number, place), here)
                segments.append([])
            segments[-1] += statement
            place += len(statement)
        ops = [planned for segment in segments for planned in self._segment(segment, segments)]
        divergent = number in self.low.facts.divergent
        cut = any(at == number for at, _ in self.leaves)
        return PlannedBlock(
            number, block.priority, int(code.blocks[code.graph.blocks[number].priority]) - code.base, block.start,
            tuple(ops), terminator, block.fallthrough, block.targets, divergent,
            cut or (bool(micro_ops) and micro_ops[0].op.converges), None,
        )

    def _segment(self, segment: list[PlacedMicroOp], segments: list[list[PlacedMicroOp]]) -> list[PlannedOp]:
        """Micro-ops between two places where the function is left: their checks are merged among them."""
        before = 0
        for other in segments:
            if other is segment:
                break
            before += len(other)
        bounds = {
            number: (first + before if extent < 0 else first, extent)
            for number, (first, extent) in merged_bounds_checks(self.low, segment).items()
        }
        return [self._planned(placed, bounds.get(number), None) for number, placed in enumerate(segment)]


def polls(block: PlannedBlock) -> bool:
    """Whether a basic block ends with the branch of a loop that waits for memory."""
    last = block.terminator
    return last is not None and isinstance(last.op, (Branch, Jump)) and last.op.backward and last.value("cost") >= POLL


def _runs(placed: PlacedMicroOp) -> bool:
    """Whether compiled code executes a micro-op."""
    return placed.op.inlinable and not isinstance(placed.op, (Barrier, ClusterBarrier))


class _Entries:
    """Where functions are entered."""

    def __init__(self, plan: Plan, groups: list[list[Piece]], leaves: Container[tuple[int, int]]) -> None:
        self.plan, self.groups, self.leaves = plan, groups, leaves
        self.group_of = {(piece.block, piece.first): number for number, group in enumerate(groups) for piece in group}
        self.piece_at = {(piece.block, piece.first): piece for group in groups for piece in group}
        self.entered: dict[int, dict[int, Piece]] = {number: {} for number in range(len(groups))}

    def functions(self, further: Iterable[int]) -> list[WarpFunction]:
        """The functions; they are entered where these basic blocks begin, too."""
        self._enter(0)
        for number in further:
            self._enter(number)
        for number, group in enumerate(self.groups):
            for piece in group:
                block = self.plan.blocks[piece.block]
                if (piece.block, piece.first) in self.leaves:
                    self._enter_piece(piece)
                for target in block.successors if piece.leave < 0 else ():
                    if self.group_of[target, 0] != number or self._loops(block, target):
                        self._enter(target)
        made = zip(self.groups, self.entered.values())
        return [WarpFunction(tuple(group), entries) for group, entries in made if entries]

    def _loops(self, block: PlannedBlock, target: int) -> bool:
        last = block.terminator.op if block.terminator is not None else None
        backward = not isinstance(last, (Branch, Jump)) or last.backward
        return backward and self.plan.blocks[target].priority <= block.priority

    def _enter(self, number: int) -> None:
        """Enter where a basic block begins, if that is not with a statement of the first tier."""
        if (number, 0) not in self.leaves:
            self._enter_piece(self.piece_at[number, 0])

    def _enter_piece(self, piece: Piece) -> None:
        """Enter at the first micro-op of a piece; where there is none, at the next basic block."""
        block = self.plan.blocks[piece.block]
        at = block.ops[piece.first] if piece.first < len(block.ops) else block.terminator
        if at is not None:
            self.entered[self.group_of[piece.block, piece.first]][at.offset] = piece
        elif block.fallthrough > block.number:
            self._enter(block.fallthrough)
