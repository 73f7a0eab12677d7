"""Branches at which all later warps of a block have no active lane once one has none.

In the steps of a tree reduction or a scan fewer threads work each time, those of the lowest numbers: a bound on a
number that grows with the thread's number, as ``if (t < s)`` or ``int k = 2 * s * t; if (k < n)``. Where no lane of a
warp is within it, none of a later warp is, unless the number wraps around. What those warps do up to the next barrier
is then known: they compute what is the same in all warps, and wait. So they are not run, but given the same numbers
(:mod:`.idle_warps`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...analysis.def_use import DefUse
from ...ir import Immediate, Instruction, Not, Operand, Register, SpecialRegister
from ..analysis.block_uniform import BlockUniform
from ..analysis.comparisons import MIRRORED, OPPOSITE
from ..analysis.divergence import Shape3
from ..analysis.form_plans import plan_of
from ..analysis.thread_arithmetic import UNSIGNED
from ..instructions.control import Branch, Exit, Jump
from ..instructions.data import Compute
from ..instructions.memory import LoadParameter
from .convergent_lowering import ConvergentLowering
from .plan import Idle, Join, Layout, Plan, PlannedBlock, Term, votes

__all__ = ["idle_branches", "kept_registers"]

PURE = (Compute, LoadParameter)
DEEPEST = 12
"""Statements in a row that a number is followed back through."""
WIDTH = 32


_Span = tuple[int, int] | None
"""The basic block of a statement, at whose end its registers are asked; None where its result is fixed."""


class _Other(Exception):
    """A number that may not grow with the thread's number."""


def idle_branches(plan: Plan, low: ConvergentLowering, block: Shape3) -> tuple[tuple[int, Idle], ...]:
    """What is to be known of such branches, by the basic blocks that they end."""
    joins = {number: join for number, join in plan.joins.items() if number not in plan.after_ends}
    if not joins or block[1:] != (1, 1):
        return ()
    search = _Search(plan, low, block)
    found = [(number, search.idle(plan.blocks[number], join)) for number, join in sorted(joins.items())]
    return tuple((number, idle) for number, idle in found if idle is not None)


def kept_registers(plan: Plan) -> dict[int, tuple[str, ...]]:
    """Registers that are kept once for all warps behind a barrier, by its basic block.

    Where warps may be idle those behind the barriers that these pass. Warps that are idle again have not run since, so
    what is kept must be kept or stored where they come to next.
    """
    if not plan.idle:
        barriers = {b.number: b.barrier for b in plan.blocks if b.barrier is not None and not b.waits_for_cluster}
        kept = {n: tuple(sorted(plan.live(each.statement, 0) & plan.block_uniform)) for n, each in barriers.items()}
        return {number: names for number, names in kept.items() if names and number not in plan.after_ends}
    passed: dict[int, set[str]] = {}
    for _, idle in plan.idle:
        for end, written in idle.ends:
            passed.setdefault(end, set()).update(written)
    found = {}
    for barrier, names in passed.items():
        inside, todo = {barrier}, [barrier]
        while todo:
            ahead = plan.blocks[todo.pop()].successors
            new = [number for number in ahead if number not in inside and plan.blocks[number].rendezvous is None]
            inside.update(new)
            todo += new
        again = [dict(idle.ends) for number, idle in plan.idle if number in inside]
        for end in set().union(*again):
            at = plan.blocks[end].barrier
            assert at is not None
            there = set().union(*(ends.get(end, ()) for ends in again))
            if names & plan.live(at.statement, 0) - there:
                break
        else:
            found[barrier] = tuple(sorted(names))
    return found


class _Search:
    def __init__(self, plan: Plan, low: ConvergentLowering, block: Shape3) -> None:
        self.plan, self.blocks, self.registers, self.low, self.block = plan, plan.blocks, plan.registers, low, block
        self.uniform = BlockUniform(low.graph)
        self.ops = low.graph.def_use
        self.writers: dict[str, list[int]] = {}
        for place, op in enumerate(self.ops):
            for register in op.writes:
                self.writers.setdefault(register.name, []).append(place)
        self.before: dict[int, list[int]] = {}
        for each in self.blocks:
            for number in each.successors:
                self.before.setdefault(number, []).append(each.number)

    def idle(self, block: PlannedBlock, join: Join) -> Idle | None:
        """Of the branch at a basic block's end; None where warps without active lanes are no rule."""
        last = block.terminator
        if last is None or not isinstance(last.op, Branch) or block.number in self.uniform.apart:
            return None
        taken = join.block == block.targets[0]
        ahead, written = self._back_from(block.number, None), set[str]()
        if not all(self._plain(number, number == block.number) for number in ahead):
            return None
        for number in ahead:
            written |= self.plan.writes[number]
        try:
            term, signed = self._bound(block, taken)
        except _Other:
            return None
        ends = tuple(self._ends(join.block, block.number, written))
        return Idle(taken, term, signed, ends) if ends else None

    def _ends(self, join: int, branch: int, written: set[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """Barriers that idle warps come to, with what they have written by then that is read behind."""
        way = {join} if self.blocks[join].rendezvous is None else set[int]()
        todo = list(way)
        barriers = set() if way else {join}
        while todo:
            for number in self.blocks[todo.pop()].successors:
                if self.blocks[number].rendezvous is not None:
                    barriers.add(number)
                elif number not in way:
                    way.add(number)
                    todo.append(number)
        if branch in way:
            return
        for number in sorted(barriers):
            block = self.blocks[number]
            barrier = block.barrier
            if barrier is None or barrier.place or barrier.cluster or votes(block.ops[0]):
                continue
            if number in self.plan.after_ends or number in self.uniform.apart:
                continue
            passed = self._back_from(number, way)
            if not all(self._plain(each, False) for each in passed):
                continue
            all_written = written.union(*(self.plan.writes[each] for each in passed))
            names = sorted(self.plan.live(barrier.statement, 0) & all_written)
            if all(self._is_one(name) for name in names):
                yield number, tuple(names)

    def _back_from(self, number: int, within: set[int] | None) -> set[int]:
        """The basic blocks from which one is reached without a barrier: those of a set, or that one and all others."""
        found = {number} if within is None else set[int]()
        todo = [number]
        while todo:
            at = todo.pop()
            if within is None and self.blocks[at].rendezvous is not None:
                continue
            for each in self.before.get(at, []):
                if each not in found and (within is None or each in within):
                    found.add(each)
                    todo.append(each)
        return found

    def _plain(self, number: int, last: bool) -> bool:
        """Whether what a warp does in a basic block, behind its barrier, only computes, and all warps go on alike."""
        block = self.blocks[number]
        first = block.barrier.place + 1 if block.barrier is not None else 0
        if block.turn is not None or block.divergent or number in self.uniform.apart:
            return False
        if not all(isinstance(each.op, PURE) for each in block.ops[first:]):
            return False
        end = block.terminator.op if block.terminator is not None else None
        return last or end is None or (isinstance(end, (Branch, Jump, Exit)) and self.uniform.branches(number))

    def _is_one(self, name: str) -> bool:
        """Whether a register holds one number, the same in all warps."""
        register = self.registers[name]
        return name not in self.uniform.varying and register.layout is Layout.UNIFORM and not register.lane_offsets

    # What is compared

    def _bound(self, block: PlannedBlock, taken: bool) -> tuple[Term, bool]:
        """The number that grows, and whether it is compared as signed: idle lanes have a larger one."""
        node = self.low.graph.blocks[block.number]
        guard: Any = self.ops[node.stop - 1].statement.guard
        positive = not isinstance(guard, Not)
        predicate = guard if positive else guard.predicate
        place, span = self._definition(predicate, node.stop - 1, (node.start, node.stop))
        op = self.ops[place]
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None or self._apart(place):
            raise _Other
        test, kind = statement.form.modifiers.get("cmp"), statement.form.operands[-1].type
        if test is None or len(op.reads) != 2 or len(op.writes) != 1 or kind is None or kind.bits != WIDTH:
            raise _Other
        if kind.kind not in "usb":
            raise _Other
        signed = kind.is_signed and test not in UNSIGNED
        test = UNSIGNED.get(test, test)
        grows = [n for n, each in enumerate(op.reads) if not self.uniform.holds(each)]
        if len(grows) != 1 or test in ("eq", "ne"):
            raise _Other
        test = test if grows == [0] else MIRRORED[test]
        if (test if positive == taken else OPPOSITE[test]) not in ("gt", "ge"):
            raise _Other
        return self._term(op.reads[grows[0]], place, span, 0), signed

    def _apart(self, place: int) -> bool:
        """Whether threads may execute a statement at different times."""
        nodes = self.low.graph.blocks
        return any(nodes[number].start <= place < nodes[number].stop for number in self.uniform.apart)

    def _definition(self, register: Register, place: int, span: _Span) -> tuple[int, _Span]:
        """The statement that wrote a register before another; its span."""
        writers = self.writers.get(register.name, [])
        at = max((each for each in writers if span is not None and span[0] <= each < place), default=None)
        if at is None and len(writers) != 1:
            raise _Other
        at = writers[0] if at is None else at
        inside = span is not None and span[0] <= at < place and at not in self.low.facts.launch_invariant
        return at, span if inside else None

    def _term(self, operand: Operand, place: int, span: _Span, depth: int) -> Term:
        """A number that a statement reads."""
        if depth > DEEPEST:
            raise _Other
        if isinstance(operand, Immediate):
            number = operand.bits & (1 << WIDTH) - 1
            return Term("number", (), number - (number >> WIDTH - 1 << WIDTH))
        if isinstance(operand, SpecialRegister):
            if operand.special == "%tid.x":
                return Term("thread")
            if operand.special == "%ntid.x":
                return Term("number", (), self.block[0])
            raise _Other
        if not isinstance(operand, Register) or operand.type.bits != WIDTH or operand.type.kind not in "usb":
            raise _Other
        writers = self.writers.get(operand.name, [])
        if span is not None and self._is_one(operand.name):
            if any(place <= each < span[1] for each in writers):
                raise _Other
            return Term("register", (), self.registers[operand.name].slot)
        at, span = self._definition(operand, place, span)
        return self._computed(self.ops[at], at, span, depth + 1)

    def _computed(self, op: DefUse, place: int, span: _Span, depth: int) -> Term:
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None or len(op.writes) != 1:
            raise _Other
        plan = plan_of(statement.form)
        if plan.widens or op.writes[0].type.bits != WIDTH:
            raise _Other
        terms = tuple(self._term(each, place, span, depth) for each in op.reads)
        if plan.rule == "copy" and len(terms) == 1:
            return terms[0]
        grows = [term.grows for term in terms]
        if plan.rule == "shift" and not grows[1] and terms[1].kind == "number" and 0 <= terms[1].number < WIDTH - 1:
            return Term("product", (terms[0], Term("number", (), 1 << terms[1].number)))
        if plan.rule == "sum" or (plan.rule == "difference" and not grows[1]):
            return Term(plan.rule, terms)
        if plan.rule == "product" and not all(grows):
            return Term("product", terms)
        if plan.rule == "product_sum" and not all(grows[:2]):
            return Term("sum", (Term("product", terms[:2]), terms[2]))
        raise _Other
