"""Warps of a block that run side by side: the loop over the warps is unrolled, and their instructions are interleaved.

A warp of a tiled product adds to one or two registers of the CPU, a product after the other: each addition waits for
the one before, and what all warps multiply by, a row of the other tile, is loaded for each of them. Several warps at a
time (unroll and jam) have as many sums that do not wait for each other, and load such a row once.

It is done in passes without checks only, whose accesses are plain: programs without data races cannot tell the order.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from ...machine_code.host import vector_registers
from ..codegen.handler import Handler, i64, pointer
from ..instructions.data import Compute
from ..instructions.memory import Load
from ..instructions.micro_op import MicroOp
from ..machine.layout import LANES, Block
from .function_builder import BlockFunction
from .plan import Layout, Plan, PlannedOp

__all__ = ["JammedWarp", "fetched_before", "warps_at_once"]

LONG = 8
"""Instructions that wait for each other, from which on it is worth it in any case."""
MOST_OPS = 1000
"""Micro-ops of all warps that run side by side."""


class JammedWarp:
    """A warp of a pass: where its memory is, and the variables of its registers."""

    def __init__(self, h: BlockFunction, first: bool) -> None:
        self.h = h
        self.variables: dict[Any, Any] = h.variables if first else {}
        self.bases: dict[Any, Any] = {}
        """Host addresses that others are counted from."""

    def begin(self, number: Any) -> None:
        """It is the warp of this number."""
        h = self.h
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        self.number, self.canonical = number, set[int]()
        self.memory = h.add(warps, h.ir.mul(h.ir.zext(number, i64), h.i64(h.plan.warp_bytes)))
        self.place = h.ir.mul(h.ir.zext(number, i64), h.i64(8))
        self.resume()

    def resume(self) -> None:
        """What is emitted next is of this warp."""
        h = self.h
        h.number, h.warp, h.variables, h.canonical = self.number, self.memory, self.variables, self.canonical

    def base(self, base: Any, at: Any) -> Any:
        """A host address, which is ``at``, or there for each warp."""
        h = self.h
        if base not in self.bases:
            self.bases[base] = Handler.load(h, h.add(at, self.place), 0, i64) if at.type == pointer else at
        return self.bases[base]


def warps_at_once(plan: Plan, ops: list[PlannedOp], turns: bool) -> int:
    """How many warps of a pass run side by side: as many as have their sums in the CPU's registers.

    Two where they do not wait for long, but make the pass again and again (``turns``).
    """
    if not ops:
        return 1
    number, size = vector_registers()
    most = number * size // 2 // max(1, _held(plan, ops))
    if _longest_chain(plan, ops) < LONG:
        most = min(most, 2) if turns else 1
    found = 1
    while plan.warps % (2 * found) == 0 and 2 * found <= most and 2 * found * len(ops) <= MOST_OPS:
        found *= 2
    return found


def fetched_before(ops: list[MicroOp], warps: list[JammedWarp]) -> dict[int, list[JammedWarp]]:
    """Before which micro-ops what comes next is fetched for which warps: not for all of them at a time."""
    pairs = enumerate(pairwise(ops), 1)
    places = [0, *(n for n, (one, other) in pairs if isinstance(one, Compute) and isinstance(other, Load))]
    found: dict[int, list[JammedWarp]] = {}
    for number, warp in enumerate(warps):
        found.setdefault(places[number * len(places) // len(warps)], []).append(warp)
    return found


def _varying(plan: Plan, name: str) -> bool:
    register = plan.registers.get(name)
    return register is not None and register.layout is Layout.VARYING


def _longest_chain(plan: Plan, ops: list[PlannedOp]) -> int:
    """The most instructions of which each needs the result of the one before."""
    depths: dict[str, int] = {}
    for planned in ops:
        reads, writes = plan.registers_of(planned.statement)
        depth = max((depths.get(name, 0) for name in reads), default=0) + isinstance(planned.op, Compute)
        depths.update({name: depth for name in writes if _varying(plan, name)})
    return max(depths.values(), default=0)


def _held(plan: Plan, ops: list[PlannedOp]) -> int:
    """The most bytes of registers of each lane that are live at a time; what is loaded and read once is not held."""
    touched = [plan.registers_of(planned.statement) for planned in ops]
    uses = Counter(name for reads, _ in touched for name in reads)
    loaded = {name for planned, (_, writes) in zip(ops, touched) for name in writes
              if isinstance(planned.op, Load) and uses[name] < 2}
    sizes = {name: plan.registers[name].bits // 8 * LANES for name in uses if _varying(plan, name)}
    live = plan.live(ops[-1].statement, 1) & {name for _, writes in touched for name in writes}
    most = 0
    for reads, writes in reversed(touched):
        live = (live - writes) | reads
        most = max(most, sum(sizes.get(name, 0) for name in live - loaded))
    return most
