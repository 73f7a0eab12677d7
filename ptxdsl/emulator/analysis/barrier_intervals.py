"""What can run between the same two barriers of a block, where all of its threads pass the same barriers.

That is so where no barrier lies between a branch that threads may take differently and where their ways meet again:
then the n-th barrier of one thread is the n-th of all others that have not ended. A thread that ends arrives at all
later barriers. What a thread computes is the same in all threads of the block unless it comes from the thread's index,
from memory that the kernel writes, from other lanes, or from where threads may be apart. The same goes for barriers of
a cluster, where what comes from the block's index may differ too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...analysis.control_flow import ControlFlowGraph
from ...analysis.def_use import DefUse
from ...ir import Call, Instruction, Operand, SpecialRegister
from .form_plans import plan_of

__all__ = ["SAME_IN_CLUSTER", "intervals", "varying_registers"]

SAME_IN_CLUSTER = (
    "%ntid", "%nctaid", "%cluster_nctaid", "%cluster_nctarank", "%clusterid", "%nclusterid", "%is_explicit", "%gridid",
    "%total_smem", "%dynamic_smem",
)
"""How the special registers begin that are the same in all threads of a cluster."""
_SAME = (*SAME_IN_CLUSTER, "%ctaid", "%cluster_ctaid", "%cluster_ctarank")


def _read(operands: Iterable[Operand]) -> Iterable[Operand]:
    for operand in operands:
        items = getattr(operand, "items", None)
        yield from items if isinstance(items, tuple) else (operand,)


class _Varying:
    """Which registers may differ among the threads of a block, and which basic blocks only some may execute."""

    def __init__(
        self, graph: ControlFlowGraph, steady: Callable[[Instruction], bool], same: tuple[str, ...]
    ) -> None:
        self.graph, self.steady, self.same = graph, steady, same
        self.registers: set[str] = set()
        self.blocks: set[int] = set()
        self.split: set[int] = set()
        self.regions: dict[int, set[int]] = {}
        while self._pass():
            pass

    def _pass(self) -> bool:
        before = len(self.registers), len(self.blocks)
        ops = self.graph.def_use
        for number, block in enumerate(self.graph.blocks):
            apart = number in self.blocks
            for place in range(block.start, block.stop):
                op = ops[place]
                if op.writes and (apart or self._varies(op)):
                    self.registers.update(register.name for register in op.writes)
            if len(block.successors) > 1 and number not in self.split and self._branches_apart(ops[block.stop - 1]):
                self.split.add(number)
                self.blocks |= self.graph.divergent_region(number, self.regions)
        return before != (len(self.registers), len(self.blocks))

    def _branches_apart(self, op: DefUse) -> bool:
        return any(register.name in self.registers for register in op.uses) or self._special(op)

    def _special(self, op: DefUse) -> bool:
        specials = (each.special for each in _read(op.reads) if isinstance(each, SpecialRegister))
        return not all(special.startswith(self.same) for special in specials)

    def _varies(self, op: DefUse) -> bool:
        statement = op.statement
        if isinstance(statement, Call):
            return True
        form = statement.form
        if form.effects.barrier == "block" and form.effects.waits:  # its result is of the whole block
            return statement.guard is not None
        if any(register.name in self.registers for register in op.uses) or self._special(op):
            return True
        return not plan_of(form).pure and not self.steady(statement)


def varying_registers(
    graph: ControlFlowGraph, steady: Callable[[Instruction], bool], same: tuple[str, ...] = _SAME
) -> tuple[set[str], set[int]]:
    """The registers that may differ among the threads of a block, and the basic blocks where threads may be apart.

    ``same``: how the special registers begin that are alike in all threads that count.
    """
    found = _Varying(graph, steady, same)
    return found.registers, found.blocks


def intervals(
    graph: ControlFlowGraph, barriers: set[int], apart: set[int], places: set[int]
) -> list[frozenset[int]] | None:
    """Of some places those that can run in one interval, for each interval; None where threads pass other barriers.

    ``barriers`` are those of the whole block, or of all of a cluster, that every thread waits at; ``apart``: basic
    blocks where threads may be apart.
    """
    segments: dict[int, list[tuple[set[int], bool]]] = {}
    for number, block in enumerate(graph.blocks):
        found: list[tuple[set[int], bool]] = [(set(), False)]
        for place in range(block.start, block.stop):
            if place in barriers:
                if number in apart:
                    return None
                found[-1] = (found[-1][0], True)
                found.append((set(), False))
            elif place in places:
                found[-1][0].add(place)
        segments[number] = found
    starts = [(0, 0)] if graph.blocks else []
    starts += [(number, at) for number, found in segments.items() for at in range(1, len(found))]
    result = []
    for start in starts:
        reached: set[int] = set()
        seen, todo = set(), [start]
        while todo:
            number, at = todo.pop()
            if (number, at) in seen:
                continue
            seen.add((number, at))
            inside, ends = segments[number][at]
            reached |= inside
            if not ends:
                todo.extend((successor, 0) for successor in graph.blocks[number].successors)
        result.append(frozenset(reached))
    return result
