"""What proofs ask of a kernel for one shape of block, whatever its launches are."""

from __future__ import annotations

from functools import cached_property

from ...analysis.control_flow import ControlFlowGraph, control_flow_graph
from ...ir import Call, Function, Immediate, Instruction, Symbol
from ..analysis.divergence import Shape3
from ..rewrite.index_checks import checks_index
from .accesses import checked_access
from .uses import Values

__all__ = ["KernelFacts", "arrive_and_wait"]

_HARMLESS = ("vprintf", "__assertfail")


class KernelFacts:
    """A kernel: its statements, the barriers of the whole block, and the ``parameters`` that proofs depend on."""

    def __init__(self, function: Function, block: Shape3) -> None:
        self.block = block
        self.graph: ControlFlowGraph = control_flow_graph(function)
        self.statements = [(place, s) for place, s in enumerate(self.graph.statements) if isinstance(s, Instruction)]
        self.hopeless = any(isinstance(s, Call) and not _is_harmless(s) for s in self.graph.statements) or not any(
            (access := checked_access(s.form)) is not None and access.writes and access.space != "local"
            for _, s in self.statements
        )
        self.barriers = self._barriers()
        """The barriers, if all of them are of the whole block, and their places alone say which."""
        of_block = any(s.form.effects.barrier == "block" for _, s in self.statements)
        self.of_some = of_block and not self.barriers
        """Whether there are others."""
        self.cluster_barriers = self._cluster_barriers()
        """The waits at barriers of the cluster, if threads do nothing between their arrival and the wait."""
        if not self.of_some:
            self.barriers |= self.cluster_barriers
        self.parameters: set[tuple[str, int, int]] = set()
        """Name, offset and size of the parts of parameters that the proofs ask for."""

    @cached_property
    def uses(self) -> Values:
        """What becomes of what is loaded."""
        return Values(self.graph)

    def _barriers(self) -> set[int]:
        x, y, z = self.block
        whole = -(-x * y * z // 32) * 32
        found = set()
        for place, statement in self.statements:
            effects = statement.form.effects
            if effects.barrier == "warp" and self._is_of_all(statement):
                found.add(place)
            if effects.barrier != "block":
                continue
            count = statement.operand("b")
            if not effects.waits or (count is not None and getattr(count, "bits", None) != whole):
                return set()
            if statement.guard is not None or not isinstance(statement.operand("a"), Immediate):
                return set()
            found.add(place)
        return found

    def _cluster_barriers(self) -> set[int]:
        barriers = {place: s for place, s in self.statements if s.form.effects.barrier == "cluster"}
        return {place + 1 for place in barriers if not barriers[place].form.effects.waits} if (
            arrive_and_wait(self.graph, barriers)
        ) else set()

    def _is_of_all(self, statement: Instruction) -> bool:
        """Whether a barrier of a warp is one of the whole block, which is no larger."""
        x, y, z = self.block
        mask = statement.operand("membermask")
        if x * y * z > 32 or statement.guard is not None or not isinstance(mask, Immediate):
            return False
        return not ~mask.bits & (1 << x * y * z) - 1


def arrive_and_wait(graph: ControlFlowGraph, barriers: dict[int, Instruction]) -> bool:
    """Whether each arrival at a barrier of the cluster, by its place, releases, and the wait for its end comes next."""
    targets = [number for block in graph.blocks for number in block.successors]
    joins = {each.start for number, each in enumerate(graph.blocks) if targets.count(number) > 1}
    for place, statement in barriers.items():
        arrives = not statement.form.effects.waits
        other = barriers.get(place + 1 if arrives else place - 1)
        if other is None or bool(other.form.effects.waits) is not arrives or (place + arrives) in joins:
            return False
        if statement.guard is not None or (arrives and statement.form.effects.order == "relaxed"):
            return False
    return True


def _is_harmless(call: Call) -> bool:
    """Whether a call touches no memory that threads share."""
    return checks_index(call) or (isinstance(call.callee, Symbol) and call.callee.symbol in _HARMLESS)
