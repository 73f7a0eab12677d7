"""The order in which a pass without checks adds to many registers: some of them at a time, all the way.

A thread of a tiled product that computes 4 x 4 or 8 x 8 elements adds to 16 or 64 registers for each column of the
tile. Those of 32 lanes are several times what a CPU has, so each sum would be fetched from memory and put back for each
product. But the sums are apart: those that fit are made from the first column to the last, then the next ones. What
they all multiply is loaded again for each of these groups, which costs no more than the fetch that it saves; those that
share what is loaded lane by lane, as a column of the other factor, are one group.

Only what is arithmetic or a load, before the first store, is put in another order, and each result stays what it was.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...isa import lookup
from ...machine_code.host import vector_registers
from ..instructions.addresses import AccessFlags
from ..instructions.control import Branch, Exit, Jump
from ..instructions.data import Compute, WrapCheck
from ..instructions.memory import Load, LoadParameter
from ..machine.layout import LANES, SPACE_BITS
from .plan import Layout, Plan, PlannedOp
from .row_micro_ops import ComputeRows, RowWrapCheck

__all__ = ["in_groups", "opaque"]

MOST_OPS = 2000
"""Micro-ops of a pass, with the loads that are repeated."""
LONG = 4
"""Instructions for each sum, from which on it is worth it."""
NOTHING = (WrapCheck, RowWrapCheck, Branch, Exit, Jump)
"""Micro-ops that such a pass has no code for."""


def in_groups(plan: Plan, ops: list[PlannedOp]) -> list[list[int]]:
    """The numbers of the micro-ops in a better order, in groups; loads come again. Empty where there is none."""
    end = next((n for n, each in enumerate(ops) if not _pure(each)), len(ops))
    there = [n for n in range(end) if not isinstance(ops[n].op, NOTHING)]
    found = _Sums(plan, ops)
    if plan.clustered > 1 or not all(map(found.add, there)) or not found.worth:
        return []
    groups = [{number for which in group for number in found.members[which]} for group in found.groups()]
    order = _ordered(plan, ops, there, groups, end)
    return [*order, list(range(end, len(ops)))] if sum(map(len, order)) < MOST_OPS else []


class _Sums:
    """The registers that are added to, and the micro-ops that do."""

    def __init__(self, plan: Plan, ops: list[PlannedOp]) -> None:
        self.plan, self.ops = plan, ops
        self.live = plan.live(ops[0].statement, 0) if ops else set()
        self.sums: dict[str, int] = {}
        """Of a register, which sum it holds."""
        self.members: list[list[int]] = []
        self.by_lane: list[set[int]] = []
        """What is loaded by lane for each sum."""
        self.maker: dict[str, int] = {}
        self.readers: dict[str, set[int]] = {}
        """The sums whose arithmetic has read a register, -1 for other arithmetic."""
        number, size = vector_registers()
        self.lanes = size // 4
        self.most = max(1, number * size * 3 // 4 // (4 * LANES))
        """The sums that fit into the CPU's registers, with what is added to them."""

    @property
    def worth(self) -> bool:
        return len(self.members) > self.most and sum(map(len, self.members)) >= LONG * len(self.members)

    def add(self, number: int) -> bool:
        """Whether a micro-op belongs to one sum at most, and writes nothing that others have read or written."""
        planned = self.ops[number]
        reads, writes = self.plan.registers_of(planned.statement)
        for name in reads & self.live - self.maker.keys() - self.sums.keys():
            if _adds(planned) and self._varies(name):
                self.sums[name] = len(self.members)
                self.members.append([])
                self.by_lane.append(set())
        mine = {self.sums[name] for name in reads if name in self.sums}
        if len(mine) > 1 or self._spreads(planned):
            return False
        which = next(iter(mine), -1)
        if any((name in self.maker and name not in reads) or self.readers.get(name, mine) - {which} for name in writes):
            return False
        if mine:
            self.members[which].append(number)
            makers = {self.maker[name] for name in reads if name in self.maker}
            self.by_lane[which].update(maker for maker in makers if _by_lane(self.ops[maker]))
            self.sums.update(dict.fromkeys(writes, which))
        self.maker.update(dict.fromkeys(writes, number))
        if not isinstance(planned.op, Load):  # its address is known before
            for name in reads:
                self.readers.setdefault(name, set()).add(which)
        return True

    def _varies(self, name: str) -> bool:
        register = self.plan.registers.get(name)
        return register is not None and register.layout is Layout.VARYING

    def _spreads(self, planned: PlannedOp) -> bool:
        """Whether a load gives several numbers to the lanes of a register of the CPU: that costs more than a load."""
        pattern = planned.op.pattern if isinstance(planned.op, Load) else None
        return pattern is not None and pattern[0] == "b" and pattern[1] < self.lanes

    def groups(self) -> list[list[int]]:
        """The sums in groups of so many: those that share what is loaded by lane, first."""
        alike: dict[frozenset[int], list[int]] = {}
        for which in range(len(self.members)):
            alike.setdefault(frozenset(self.by_lane[which]), []).append(which)
        found: list[list[int]] = []
        for group in alike.values():
            for first in range(0, len(group), self.most):
                part = group[first : first + self.most]
                if found and len(found[-1]) + len(part) <= self.most:
                    found[-1] += part
                else:
                    found.append(part)
        return found


def _pure(planned: PlannedOp) -> bool:
    op = planned.op
    if isinstance(op, Compute):
        return not (op.guard or lookup(op.mnemonic)[op.number].effects.carries)
    if isinstance(op, (Load, LoadParameter)):
        return not op.guard
    return isinstance(op, (ComputeRows, *NOTHING))


def _adds(planned: PlannedOp) -> bool:
    return isinstance(planned.op, Compute) and planned.op.width == LANES


def _by_lane(planned: PlannedOp) -> bool:
    """Whether it loads a number of its own for each lane, or nearly so."""
    op = planned.op
    return isinstance(op, Load) and not op.address.scalar and (op.pattern is None or op.pattern[0] == "c")


def _repeats(planned: PlannedOp) -> bool:
    """Whether it is a load that finds the same again: no other host thread writes to the block's shared memory."""
    op = planned.op
    return isinstance(op, Load) and planned.value("flags") >> AccessFlags.SPACES_SHIFT & 0xFF == SPACE_BITS["shared"]


def _ordered(plan: Plan, ops: list[PlannedOp], there: list[int], groups: list[set[int]], end: int) -> list[list[int]]:
    """The micro-ops of each group, with what they need; then what none needs."""
    maker: dict[int, set[int]] = {}
    last: dict[str, int] = {}
    for number in there:
        reads, writes = plan.registers_of(ops[number].statement)
        maker[number] = {last[name] for name in reads if name in last}
        last.update(dict.fromkeys(writes, number))
    done = set[int]()
    found: list[list[int]] = []
    for group in groups:
        wanted, todo = set[int](), list(group)
        while todo:
            at = todo.pop()
            if at not in wanted and (at not in done or _repeats(ops[at])):
                wanted.add(at)
                todo += maker[at]
        done |= wanted
        found.append(sorted(wanted))
    return [*found, [number for number in range(end) if number not in done]]


def opaque(h: Any, value: Any) -> Any:
    """The same number, of which LLVM does not know that: so that what is loaded there is loaded again."""
    kind = ir.FunctionType(value.type, [value.type])
    return h.ir.asm(kind, "", "=r,0", [value], False)
