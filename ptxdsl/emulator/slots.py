"""Where the registers of a warp lie: a slot each, shared by registers that are never needed at the same time.

Fewer bytes stay in the first-level cache. A slot holds registers of one size only: lanes that wait elsewhere keep their
numbers in the slots of registers that the active lanes do not have, and writes touch only the lanes that are active.
"""

from __future__ import annotations

import heapq

from ..ir import Register
from .analysis import VARYING, Facts
from .cfg import Graph
from .layout import LANES, Warp
from .ops import Op

__all__ = ["Slots"]


class Slots:
    """The offset in a warp of each register by name, and the size that a warp needs."""

    def __init__(self, graph: Graph, facts: Facts) -> None:
        self.offsets: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        self._kinds: dict[str, int] = {}
        self._bits: dict[str, int] = {}
        self._live: list[tuple[int, int]] = []
        self._graph = graph
        self._facts = facts
        self.size = Warp.REGISTERS
        self._assign(self._intervals())

    def _kind(self, register: Register) -> int:
        """What may share a slot: predicates (0), uniform registers (1), varying registers of one size (their bits)."""
        if register.type.kind == "p":
            return 0
        if self._facts.known.get(register.name, VARYING) is not VARYING:
            return 1
        return register.type.bits

    def _number(self, register: Register) -> int:
        number = self._numbers.get(register.name)
        if number is None:
            number = self._numbers[register.name] = len(self._numbers)
            self._kinds[register.name] = self._kind(register)
            self._bits[register.name] = register.type.bits
        return number

    def _accesses(self, op: Op) -> tuple[list[int], list[int]]:
        """Numbers of the registers that a statement reads and writes; a guarded write keeps the old number alive."""
        reads = [self._number(register) for register in op.uses]
        writes = [self._number(register) for register in op.writes]
        return (reads + writes if op.statement.guard is not None else reads), writes

    def _intervals(self) -> list[tuple[int, int, str]]:
        """First and last statement between which each register is needed, over the text as one line."""
        accesses = [self._accesses(op) for op in self._graph.ops]
        live = self._live = self._liveness(accesses)
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for node, (coming, leaving) in zip(self._graph.nodes, live):
            for number in _ones(coming):
                first.setdefault(number, node.start)
            for place in range(node.start, node.stop):
                reads, writes = accesses[place]
                for number in reads:
                    first.setdefault(number, place)
                    last[number] = place
                for number in writes:
                    first.setdefault(number, place)
                    last[number] = place
            for number in _ones(leaving):
                last[number] = node.stop
        always = {self._number(r) for place in self._facts.invariant for r in self._graph.ops[place].writes}
        names, end = list(self._numbers), len(accesses)
        intervals = [(first[n], last.get(n, first[n]), names[n]) for n in first if n not in always]
        return sorted(intervals + [(-1, end + 1, names[n]) for n in always])

    def _gen_kill(self, accesses: list[tuple[list[int], list[int]]]) -> tuple[list[int], list[int]]:
        """By block, as bits: the registers read before they are written, and those written."""
        uses, kills = [], []
        for node in self._graph.nodes:
            use: set[int] = set()
            kill: set[int] = set()
            for reads, writes in accesses[node.start : node.stop]:
                use.update([number for number in reads if number not in kill])
                kill.update(writes)
            uses.append(sum([1 << number for number in use]))
            kills.append(sum([1 << number for number in kill]))
        return uses, kills

    def _liveness(self, accesses: list[tuple[list[int], list[int]]]) -> list[tuple[int, int]]:
        """The registers live at the start and at the end of each block, as bits."""
        nodes = self._graph.nodes
        if len(nodes) == 1 and not nodes[0].successors:
            return [(0, 0)]
        uses, kills = self._gen_kill(accesses)
        coming = uses[:]
        changed = True
        while changed:
            changed = False
            for number in range(len(nodes) - 1, -1, -1):
                leaving = 0
                for successor in nodes[number].successors:
                    leaving |= coming[successor]
                now = uses[number] | leaving & ~kills[number]
                if now != coming[number]:
                    coming[number], changed = now, True
        result = []
        for number, node in enumerate(nodes):
            leaving = 0
            for successor in node.successors:
                leaving |= coming[successor]
            result.append((coming[number], leaving))
        return result

    def _assign(self, intervals: list[tuple[int, int, str]]) -> None:
        free: dict[int, list[int]] = {}
        busy: list[tuple[int, int, int]] = []
        for start, stop, name in intervals:
            while busy and busy[0][0] < start:
                _, kind, offset = heapq.heappop(busy)
                heapq.heappush(free.setdefault(kind, []), offset)
            kind = self._kinds[name]
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
        number = next(n for n, node in enumerate(graph.nodes) if node.start <= place < node.stop)
        names = list(self._numbers)
        live = {names[n] for n in _ones(self._live[number][1])}
        for op in reversed(graph.ops[place + skip : graph.nodes[number].stop]):
            if op.statement.guard is None:
                live.difference_update([register.name for register in op.writes])
            live.update([register.name for register in op.uses])
        return live

    def bits(self, name: str) -> int:
        """Width of a register; 1 for a predicate."""
        return self._bits.get(name, 1)

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
