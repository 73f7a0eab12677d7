"""Machine code as counts: the instructions of a kernel, and those of its hot loop, from nvdisasm's text."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Listing", "Loop", "listing"]

_SECTION = re.compile(r"^\.text\.(\w+):$", re.MULTILINE)
_LABEL = re.compile(r"^(\.L_x_\d+):$")
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)(.*?);?\s*$")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")


class Loop(NamedTuple):
    """An innermost loop: its instructions, and how many of them do the work."""

    size: int
    work: int

    @property
    def each(self) -> float:
        """Instructions for one that does the work, however often the loop is unrolled."""
        return self.size / max(self.work, 1)


class Listing(NamedTuple):
    """The instructions of a kernel in order, without padding, and its innermost loops as ranges of them."""

    opcodes: list[str]
    loops: list[tuple[int, int]]

    def hot(self, work: str) -> Loop | None:
        """The innermost loop with most of the opcode that does the work; None where no loop has it."""
        found = (Loop(last - first, sum(o.startswith(work) for o in self.opcodes[first:last]))
                 for first, last in self.loops)
        return max((loop for loop in found if loop.work), key=lambda loop: loop.work, default=None)


def listing(sass: str, entry: str) -> Listing:
    """The code of a kernel in nvdisasm's text of a cubin."""
    starts = {match[1]: match.end() for match in _SECTION.finditer(sass)}
    text = sass[starts[entry] :].partition("\n\t.section")[0]
    opcodes: list[str] = []
    labels: dict[str, int] = {}
    branches: list[tuple[int, str]] = []
    for line in text.splitlines():
        label, instruction = _LABEL.match(line), _INSTRUCTION.match(line)
        if label:
            labels[label[1]] = len(opcodes)
        elif instruction and instruction[1] != "NOP":
            target = _TARGET.search(instruction[2])
            if target:
                branches.append((len(opcodes), target[1]))
            opcodes.append(instruction[1])
    back = [(labels[target], at + 1) for at, target in branches if labels[target] <= at]
    trap = (len(opcodes) - 1, len(opcodes))  # a branch to itself ends the code
    if trap in back:
        back.remove(trap)
        opcodes.pop()
    inner = [loop for loop in back if not any(o != loop and loop[0] <= o[0] and o[1] <= loop[1] for o in back)]
    return Listing(opcodes, sorted(set(inner)))
