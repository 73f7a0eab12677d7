"""The layout of a warp's register file: a slot for each register, shared by registers that are never live together.

Fewer bytes stay in the first-level cache. A slot holds registers of one size only: lanes that wait elsewhere keep their
numbers in the slots of registers that the active lanes do not have, and writes touch only the lanes that are active.
What an asynchronous instruction reads or writes at a later time shares its slot with nothing.
"""

from __future__ import annotations

import heapq

from ...analysis.control_flow import ControlFlowGraph
from ...analysis.liveness import Liveness
from ...ir import Instruction, Register, elements
from ...types import ScalarType
from ..machine.layout import LANES, Warp
from .divergence import VARYING, Facts

__all__ = ["RegisterFile"]

_REGISTER_OPERATIONS = ("wgmma_group", "tcgen05_wait")
"""What instructions complete by that read or write registers later."""


class RegisterFile:
    """The offset in a warp of each register by name, and the size that a warp needs.

    ``keep``: each register has a slot of its own, so that it can be read after its last use.
    """

    def __init__(self, graph: ControlFlowGraph, facts: Facts, keep: bool = False) -> None:
        self.offsets: dict[str, int] = {}
        self.liveness = Liveness(graph)
        self._types: dict[str, ScalarType] = {}
        self._facts = facts
        self.size = Warp.REGISTERS
        intervals = self._intervals()
        if keep:
            intervals = sorted((-1, 1 << 60, name) for _, _, name in intervals)
        self._assign(intervals)

    def _kind(self, name: str) -> int:
        """What may share a slot: predicates (0), uniform registers (1), varying registers of one size (their bits)."""
        kind = self._types[name]
        if kind.kind == "p":
            return 0
        return kind.bits if self._facts.offsets.get(name, VARYING) is VARYING else 1

    def _intervals(self) -> list[tuple[int, int, str]]:
        """The live interval of each register, first and last statement, over the text as one line (linear scan)."""
        graph, types = self.liveness.graph, self._types
        ops = graph.def_use
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for block in graph.blocks:
            for place in range(block.start, block.stop):
                op = ops[place]
                for name, kind in op.uses:
                    if name not in first:
                        first[name], types[name] = place, kind
                    last[name] = place
                for name, kind in op.writes:
                    if name not in first:
                        first[name], types[name] = place, kind
                    last[name] = place
        self._extend(first, last)
        for name in self._asynchronous() & first.keys():  # the others are in code that nothing reaches
            first[name], last[name] = -1, len(ops) + 1
        always = {register.name for place in self._facts.launch_invariant for register in ops[place].writes}
        intervals = [(start, last[name], name) for name, start in first.items() if name not in always]
        return sorted(intervals + [(-1, len(ops) + 1, name) for name in sorted(always)])

    def _asynchronous(self) -> set[str]:
        """The registers of instructions that complete later: accumulators, rows of A, what tensor memory gives."""
        found: set[str] = set()
        for statement in self.liveness.graph.statements:
            if isinstance(statement, Instruction) and statement.form.effects.completes in _REGISTER_OPERATIONS:
                for operand in statement.operands:
                    found |= {item.name for item in elements(operand) if isinstance(item, Register)}
        return found

    def _extend(self, first: dict[str, int], last: dict[str, int]) -> None:
        """Extend the intervals to where some block begins or ends with the register live."""
        live = self.liveness
        blocks = live.graph.blocks
        seen = 0
        for block, bits in zip(blocks, live.entries):
            for name in live.named(bits & ~seen):
                first[name] = min(first[name], block.start)
            seen |= bits
        seen = 0
        for block, bits in zip(reversed(blocks), reversed(live.exits)):
            for name in live.named(bits & ~seen):
                last[name] = max(last[name], block.stop)
            seen |= bits

    def _assign(self, intervals: list[tuple[int, int, str]]) -> None:
        free: dict[int, list[int]] = {}
        busy: list[tuple[int, int, int]] = []
        for start, stop, name in intervals:
            while busy and busy[0][0] < start:
                _, kind, offset = heapq.heappop(busy)
                heapq.heappush(free.setdefault(kind, []), offset)
            kind = self._kind(name)
            ready = free.get(kind)
            offset = heapq.heappop(ready) if ready else self._fresh(kind)
            self.offsets[name] = offset
            heapq.heappush(busy, (stop, kind, offset))
        self.size = (self.size + 63) // 64 * 64

    def _fresh(self, kind: int) -> int:
        size = 8 if kind < 2 else LANES * kind // 8
        align = min(size, 64)
        offset = (self.size + align - 1) // align * align
        self.size = offset + size
        return offset

    def bits(self, name: str) -> int:
        """Width of a register; 1 for a predicate."""
        kind = self._types.get(name)
        return kind.bits if kind is not None else 1

    def reserve(self, nbytes: int) -> int:
        """Room for something else of a warp."""
        offset = (self.size + 63) // 64 * 64
        self.size = offset + (nbytes + 63) // 64 * 64
        return offset
