"""Which registers are live: those whose value some path from there on reads before it writes it.

A guarded write keeps the old value where the guard does not hold, so it reads the register too.
"""

from __future__ import annotations

from .control_flow import ControlFlowGraph

__all__ = ["Liveness"]


class Liveness:
    """The registers that are live at the start and at the end of each block, as bits of their places in ``names``."""

    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        self.names: list[str] = []
        self.entries: list[int] = []
        self.exits: list[int] = []
        self._solve()

    def before(self, place: int, skip: int = 0) -> set[str]:
        """The registers that are live before a statement, or ``skip`` statements further on in its block."""
        blocks, ops = self.graph.blocks, self.graph.def_use
        number = next(n for n, block in enumerate(blocks) if block.start <= place < block.stop)
        live = self.named(self.exits[number])
        for op in reversed(ops[place + skip : blocks[number].stop]):
            if op.statement.guard is None:
                live.difference_update([register.name for register in op.writes])
            live.update([register.name for register in op.uses])
        return live

    def after(self, place: int) -> set[str]:
        """The registers that are live behind a statement."""
        return self.before(place, 1)

    def named(self, bits: int) -> set[str]:
        """The registers of a set of bits."""
        found = set()
        while bits:
            low = bits & -bits
            found.add(self.names[low.bit_length() - 1])
            bits ^= low
        return found

    def _exposed(self) -> tuple[list[set[str]], list[set[str]]]:
        """By block: the registers read before they are written, and those written."""
        exposed, written, ops = [], [], self.graph.def_use
        for block in self.graph.blocks:
            use: set[str] = set()
            kill: set[str] = set()
            for op in ops[block.start : block.stop]:
                for name, _ in op.uses if op.statement.guard is None else (*op.uses, *op.writes):
                    if name not in kill:
                        use.add(name)
                for name, _ in op.writes:
                    kill.add(name)
            exposed.append(use)
            written.append(kill)
        return exposed, written

    def _solve(self) -> None:
        blocks = self.graph.blocks
        if len(blocks) == 1 and not blocks[0].successors:
            self.entries, self.exits = [0], [0]
            return
        exposed, written = self._exposed()
        bits: dict[str, int] = {}
        for names in exposed:
            for name in names:
                if name not in bits:
                    bits[name] = 1 << len(bits)
        self.names = list(bits)
        uses = [sum([bits[name] for name in names]) for names in exposed]
        keeps = [~sum([bits[name] for name in names if name in bits]) for names in written]
        entries, exits = uses[:], [0] * len(blocks)
        changed = True
        while changed:
            changed = False
            for number in range(len(blocks) - 1, -1, -1):
                out = 0
                for successor in blocks[number].successors:
                    out |= entries[successor]
                exits[number] = out
                now = uses[number] | out & keeps[number]
                if now != entries[number]:
                    entries[number], changed = now, True
        self.entries, self.exits = entries, exits
