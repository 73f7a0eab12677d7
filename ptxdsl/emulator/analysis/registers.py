"""Where the registers of a warp lie: a slot each, shared by registers that are never needed at the same time.

Fewer bytes stay in the first-level cache. A slot holds registers of one size only: lanes that wait elsewhere keep their
numbers in the slots of registers that the active lanes do not have, and writes touch only the lanes that are active.
"""

from __future__ import annotations

import heapq

from ...types import ScalarType
from .divergence import VARYING, Facts
from ...analysis.control_flow import ControlFlowGraph
from ..machine.layout import LANES, Warp

__all__ = ["RegisterFile"]


class RegisterFile:
    """The offset in a warp of each register by name, and the size that a warp needs.

    ``keep``: each register has a slot of its own, so that it can be read after its last use.
    """

    def __init__(self, graph: ControlFlowGraph, facts: Facts, keep: bool = False) -> None:
        self.offsets: dict[str, int] = {}
        self._types: dict[str, ScalarType] = {}
        self._wanted: list[str] = []
        self._live: list[tuple[int, int]] = []
        self._graph = graph
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
        """First and last statement between which each register is needed, over the text as one line."""
        nodes, ops, types = self._graph.blocks, self._graph.def_use, self._types
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for node in nodes:
            for place in range(node.start, node.stop):
                op = ops[place]
                for name, kind in op.uses:
                    if name not in first:
                        first[name], types[name] = place, kind
                    last[name] = place
                for name, kind in op.writes:
                    if name not in first:
                        first[name], types[name] = place, kind
                    last[name] = place
        self._live = self._liveness()
        self._stretch(first, last)
        always = {register.name for place in self._facts.launch_invariant for register in ops[place].writes}
        intervals = [(start, last[name], name) for name, start in first.items() if name not in always]
        return sorted(intervals + [(-1, len(ops) + 1, name) for name in sorted(always)])

    def _stretch(self, first: dict[str, int], last: dict[str, int]) -> None:
        """Let registers live where some block begins or ends with their numbers still needed."""
        nodes, wanted = self._graph.blocks, self._wanted
        seen = 0
        for node, (coming, _) in zip(nodes, self._live):
            for number in _ones(coming & ~seen):
                first[wanted[number]] = min(first[wanted[number]], node.start)
            seen |= coming
        seen = 0
        for node, (_, leaving) in zip(reversed(nodes), reversed(self._live)):
            for number in _ones(leaving & ~seen):
                last[wanted[number]] = max(last[wanted[number]], node.stop)
            seen |= leaving

    def _exposed(self) -> tuple[list[set[str]], list[set[str]]]:
        """By block: the registers read before they are written, and those written. A guarded write keeps the old."""
        exposed, written, ops = [], [], self._graph.def_use
        for node in self._graph.blocks:
            use: set[str] = set()
            kill: set[str] = set()
            for place in range(node.start, node.stop):
                op = ops[place]
                for name, _ in op.uses if op.statement.guard is None else (*op.uses, *op.writes):
                    if name not in kill:
                        use.add(name)
                for name, _ in op.writes:
                    kill.add(name)
            exposed.append(use)
            written.append(kill)
        return exposed, written

    def _liveness(self) -> list[tuple[int, int]]:
        """The registers live at the start and at the end of each block, as bits of their places in ``_wanted``."""
        nodes = self._graph.blocks
        if len(nodes) == 1 and not nodes[0].successors:
            return [(0, 0)]
        exposed, written = self._exposed()
        bits: dict[str, int] = {}
        for names in exposed:
            for name in names:
                if name not in bits:
                    bits[name] = 1 << len(bits)
        self._wanted = list(bits)
        uses = [sum([bits[name] for name in names]) for names in exposed]
        keeps = [~sum([bits[name] for name in names if name in bits]) for names in written]
        coming, leaving = uses[:], [0] * len(nodes)
        changed = True
        while changed:
            changed = False
            for number in range(len(nodes) - 1, -1, -1):
                out = 0
                for successor in nodes[number].successors:
                    out |= coming[successor]
                leaving[number] = out
                now = uses[number] | out & keeps[number]
                if now != coming[number]:
                    coming[number], changed = now, True
        return list(zip(coming, leaving))

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

    def needed_after(self, place: int) -> set[str]:
        """The registers whose numbers are still needed behind a statement."""
        return self.needed(place, 1)

    def needed(self, place: int, skip: int = 0) -> set[str]:
        """The registers whose numbers are still needed before a statement, or ``skip`` statements further on."""
        graph = self._graph
        number = next(n for n, node in enumerate(graph.blocks) if node.start <= place < node.stop)
        live = {self._wanted[n] for n in _ones(self._live[number][1])}
        for op in reversed(graph.def_use[place + skip : graph.blocks[number].stop]):
            if op.statement.guard is None:
                live.difference_update([register.name for register in op.writes])
            live.update([register.name for register in op.uses])
        return live

    def bits(self, name: str) -> int:
        """Width of a register; 1 for a predicate."""
        kind = self._types.get(name)
        return kind.bits if kind is not None else 1

    def reserve(self, nbytes: int) -> int:
        """Room for something else of a warp."""
        offset = (self.size + 63) // 64 * 64
        self.size = offset + (nbytes + 63) // 64 * 64
        return offset


def _ones(word: int) -> list[int]:
    found = []
    while word:
        low = word & -word
        found.append(low.bit_length() - 1)
        word ^= low
    return found
