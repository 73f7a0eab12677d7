"""How long one warp takes through its instructions when it has a partition to itself: in order, as results arrive.

A warp issues an instruction when the one before it has been issued and its sources are there. So loads that stand next
to each other wait together, and a chain of dependent ones waits for each; by Little's law the warps that are resident
then say how much of that is hidden. Loops are walked twice, which is when what one turn leaves for the next is there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from .machines import Machine
from .pipes import latency, pipe_clocks
from .sass import Sass, Segment

__all__ = ["segment_clocks"]

_REGISTER = re.compile(r"(?<![\w.])(U?R\d+|U?P\d)\b")
_BULK = ("UTMALDG", "UBLKCP")
_PRODUCTS = ("HGMMA", "QGMMA", "IGMMA", "BGMMA")
_USES = (*_PRODUCTS, "LDS", "LDSM")
_NO_RESULT = ("ST", "STG", "STS", "STL", "STSM", "RED", "REDG", "BRA", "EXIT", "BAR", "BSYNC", "BSSY", "SYNCS", "RET")


@dataclass
class _Warp:
    """A warp's clock, when its registers are ready, and the ends of what runs beside it."""

    machine: Machine
    miss: float
    now: float = 0.0
    ready: dict[str, float] = field(default_factory=dict)
    tensor: float = 0.0
    waits: bool = False
    """Whether it waits for the bulk copies that it begins itself, which end at ``bulk``."""
    bulk: float = 0.0
    copies: list[float] = field(default_factory=list)
    """Ends of the groups of asynchronous copies; the last one is open."""

    def walk(self, segment: Segment) -> list[float]:
        """The clocks that go by at each instruction."""
        found = []
        for one in segment.instructions:
            before = self.now
            self._issue(one)
            found.append(self.now - before)
        return found

    def _issue(self, one: Sass) -> None:
        results, sources = _registers(one)
        self.now = max([self.now + 1, *(self.ready.get(name, 0.0) for name in sources)])
        after = latency(one.name, self.machine, self.miss)
        if one.name in _PRODUCTS:
            self.tensor = max(self.tensor, self.now) + product_clocks(one.opcode, self.machine)
            return
        if one.name in _BULK:
            self.bulk = self.now + latency("LDG", self.machine, self.miss)
        elif one.name == "SYNCS" and "PHASECHK" in one.opcode and self.waits:
            self.now = max(self.now, self.bulk)
        elif one.name == "WARPGROUP" and "DEPBAR" in one.opcode:
            left = int((re.findall(r"0x[0-9a-f]+", " ".join(one.operands)) or ["0"])[-1], 16)
            self.now = self.now if left else max(self.now, self.tensor)
        elif one.name == "LDGSTS":
            self.copies = self.copies or [0.0]
            self.copies[-1] = self.now + latency("LDG", self.machine, self.miss)
        elif one.name == "LDGDEPBAR":
            self.copies.append(0.0)
        elif one.name == "DEPBAR" and self.copies:
            left = int((re.findall(r"0x[0-9a-f]+", " ".join(one.operands)) or ["0"])[-1], 16)
            done = self.copies[: max(0, len(self.copies) - 1 - left)]
            self.now = max([self.now, *done])
            self.copies = self.copies[len(done) :]
        self.now += max(0.0, pipe_clocks(one.name, one.opcode, self.machine) - 1)
        for name in results:
            self.ready[name] = self.now + after


def product_clocks(opcode: str, machine: Machine) -> float:
    """Clocks of the tensor cores of a multiprocessor for one product of a warpgroup."""
    shape = re.search(r"(\d+)x(\d+)x(\d+)", opcode)
    if shape is None:
        return 0.0
    m, n, k = map(int, shape.groups())
    factors = "e4m3" if opcode.startswith(("QG", "IG")) else "tf32" if "TF32" in opcode else "f16"
    return 2 * m * n * k / machine.rates.tensor_rate(factors)


@lru_cache(maxsize=1 << 14)
def _registers(one: Sass) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The registers that an instruction writes, and those that it waits for."""
    operands = list(one.operands)
    results: list[str] = []
    if one.name not in _NO_RESULT and operands:
        first = _REGISTER.match(operands[0])
        if first:
            results = _wide(first[1], one)
            operands.pop(0)
        while operands and re.fullmatch(r"U?P[\dT]", operands[0]) and len(operands) > 2:
            results.append(operands.pop(0))
    sources = [name for text in (one.guard, *operands) for name in _REGISTER.findall(text)]
    for text in operands:  # the pair that holds an address
        sources += [f"R{int(found) + 1}" for found in re.findall(r"\bR(\d+)\.64", text)]
    return tuple(results), tuple(sources)


def _wide(register: str, one: Sass) -> list[str]:
    bits = re.search(r"\.(64|128|256)\b", one.opcode)
    count = int(bits[1]) // 32 if bits and one.name.startswith(("LD", "ATOM")) else 1
    if ".WIDE" in one.opcode or one.name in ("DFMA", "DADD", "DMUL", "CS2R"):
        count = 2
    if one.name == "LDSM" and one.opcode[-1] in "24":
        count = int(one.opcode[-1])
    if one.name in ("HMMA", "IMMA"):
        count = 4
    kind, number = re.match(r"(U?[RP])(\d+)", register).groups()  # type: ignore[union-attr]
    return [f"{kind}{int(number) + at}" for at in range(count)]


def segment_clocks(segments: Sequence[Segment], machine: Machine, miss: float) -> list[list[float]]:
    """Clocks of a warp at each instruction of each basic block, in a late turn of the innermost loop around it."""
    warp = _Warp(machine, miss)
    found = [warp.walk(segment) for segment in segments]
    for first, last in _loops(segments):
        inside = {one.name for segment in segments[first : last + 1] for one in segment.instructions}
        warp = _Warp(machine, miss, waits=not inside.isdisjoint(_BULK) and not inside.isdisjoint(_USES))
        for turn in range(3):
            for at in range(first, last + 1):
                clocks = warp.walk(segments[at])
                if turn:
                    found[at] = clocks
    return found


def _loops(segments: Sequence[Segment]) -> list[tuple[int, int]]:
    """The loops as the segments from and to that a backward branch spans, the outer ones first."""
    at = {label: number for number, segment in enumerate(segments) for label in segment.labels}
    found = {
        (at[one.target], number)
        for number, segment in enumerate(segments) for one in segment.instructions
        if one.target in at and at[one.target] <= number and one.name == "BRA"
    }
    return sorted(found, key=lambda loop: loop[0] - loop[1])
