"""The registers of all threads of a block while a kernel is executed for all at once (:mod:`.block_execution`).

What a statement gives of the same numbers it gives again: so each is computed once in a loop whose numbers come again,
and equal numbers are one object.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol
from ..machine.layout import LANES
from .linear_values import NO_BLOCK
from .static_values import Known
from .thread_numbers import Arithmetic, Number, merged

__all__ = ["ThreadRegisters"]

_UNITS = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


class ThreadRegisters:
    """The numbers that are known of them, by name."""

    def __init__(self, graph: ControlFlowGraph, known: Known, starts: Any) -> None:
        self.graph, self.known = graph, known
        x, y, z = known.block
        linear = np.arange(x * y * z, dtype=np.int64)
        self.arithmetic = Arithmetic(known.grid, len(linear), starts)
        self.every = np.ones(len(linear), bool)
        self.special = {
            "%tid.x": Number(linear % x), "%tid.y": Number(linear // x % y), "%tid.z": Number(linear // (x * y)),
            "%laneid": Number(linear % 32),
        }
        self.registers: dict[str, Number] = {}
        self.effort = 0
        self.inputs: dict[int, tuple[str, ...]] = {}
        self.made: dict[object, tuple[Number | None, object]] = {}
        """What statements give of registers, by the identities of their numbers, which are kept."""
        self.unique: dict[object, Number] = {}

    def _forget(self, place: int) -> None:
        for register in self.graph.def_use[place].writes:
            self.registers.pop(register.name, None)

    def _known(self, guard: Register | Not | None, mask: Any) -> Any:
        """The threads of a mask in which a guard holds; None where that is not known."""
        if guard is None:
            return mask
        predicate = guard.predicate if isinstance(guard, Not) else guard
        found = self._register(predicate, mask)
        if found is None:
            return None
        holds = found.numbers != 0
        if isinstance(holds, bool):
            return mask if holds != isinstance(guard, Not) else np.zeros_like(mask)
        return mask & (~holds if isinstance(guard, Not) else holds)

    def _one(self, number: Number) -> Number:
        """The first number that was equal to this one."""
        if number.known is not None:
            return number
        numbers = number.numbers
        key = numbers if isinstance(numbers, int) else numbers.tobytes(), number.block, number.origin
        return self.unique.setdefault(key, number)

    def _compute(self, place: int, statement: Instruction, mask: Any) -> None:
        """Execute an instruction in some threads; without a guard that is known its result has no number."""
        self.effort += 1
        if mask is self.every and statement.guard is None:
            self._compute_in_all(place, statement)
            return
        self.effort += 3
        where = self._known(statement.guard, mask)
        writes = self.graph.def_use[place].writes
        found = self._result(statement, where) if where is not None and len(writes) == 1 else None
        if found is None or where is None:
            self._forget(place)
            return
        name = writes[0].name
        if where is not self.every and not where.all():
            found = self._partly(self.registers.get(name), found, where)
        self.registers[name] = found

    def _compute_in_all(self, place: int, statement: Instruction) -> None:
        """Execute an instruction in all threads, once for the same numbers."""
        names = self.inputs.get(place)
        if names is None:
            names = self.inputs[place] = tuple(register.name for register in self.graph.def_use[place].uses)
        given = tuple(map(self.registers.get, names))
        key = place, *map(id, given)
        found = self.made.get(key)
        if found is None:
            self.effort += 3
            one = len(self.graph.def_use[place].writes) == 1
            result = self._result(statement, self.every) if one else None
            found = self.made[key] = None if result is None else self._one(result), given
        if found[0] is None:
            self._forget(place)
        else:
            self.registers[self.graph.def_use[place].writes[0].name] = found[0]

    @staticmethod
    def _partly(before: Number | None, found: Number, where: Any) -> Number:
        """A register of which some threads have a new number."""
        known = where if found.known is None else where & found.known
        both = None if before is None or found.known is not None else merged(where, found, before)
        if both is None or before is None:
            return found._replace(known=known)
        return both if before.known is None else both._replace(known=before.known | where)

    def _register(self, register: Register, mask: Any) -> Number | None:
        """The numbers of a register in the threads of a mask."""
        found = self.registers.get(register.name)
        if found is None or found.known is None:
            return found
        return None if (mask & ~found.known).any() else found._replace(known=None)

    def _operand(self, operand: Operand, mask: Any) -> Number | None:
        if isinstance(operand, Register):
            return self._register(operand, mask)
        if isinstance(operand, Immediate):
            return Number(_signed(operand.bits, max(operand.type.bits, 2)))
        if isinstance(operand, Not):
            found = self._register(operand.predicate, mask)
            if found is None:
                return None
            numbers = found.numbers
            return Number(int(not numbers) if isinstance(numbers, int) else (numbers == 0).astype(np.int64))
        if isinstance(operand, Symbol):
            origin = self.known.array(operand.symbol)
            return Number(operand.offset, origin=origin) if origin else None
        if isinstance(operand, SpecialRegister):
            return self._special_register(operand.special)
        return None

    def _special_register(self, name: str) -> Number | None:
        head, _, axis = name.partition(".")
        if name in self.special:
            return self.special[name]
        if head in ("%ntid", "%nctaid", "%ctaid") and axis in ("x", "y", "z"):
            number = "xyz".index(axis)
            if head == "%ctaid":
                return Number(0, _UNITS[number] if self.known.grid[number] > 1 else NO_BLOCK)
            return Number(self.known.block[number] if head == "%ntid" else self.known.grid[number])
        return None

    def _result(self, statement: Instruction, mask: Any) -> Number | None:
        form, operands = statement.form, statement.operands
        kind = form.type
        if kind is None or kind.lanes != 1 or kind.kind not in "usbp" or not isinstance(operands[0], Register):
            return None
        if form.effects.accesses:
            loads = form.opcode == "ld" and form.space == "param"
            return self._parameter(operands[1], kind.bits, kind.kind == "s") if loads else None
        if form.opcode == "shfl":
            return self._shuffled(statement, mask)
        given: list[Number] = []
        for operand in operands[1:]:
            found = self._operand(operand, mask)
            if found is None:
                return None
            given.append(found)
        return self.arithmetic.result(form, kind, given, operands[0].type.bits)

    def _shuffled(self, statement: Instruction, mask: Any) -> Number | None:
        """What the lanes of whole warps have from lanes of these by their number."""
        _, a, b, last, *members = statement.operands
        whole = len(mask) % LANES == 0 and "idx" in statement.form.tokens and isinstance(last, Immediate)
        if not whole or not isinstance(last, Immediate) or last.bits != LANES - 1 or not members:
            return None
        of_warps = mask.reshape(-1, LANES)
        if not isinstance(members[0], Immediate) or members[0].bits != 0xFFFFFFFF or (
            of_warps.any(axis=1) != of_warps.all(axis=1)
        ).any():
            return None
        found, lanes = self._operand(a, mask), self._operand(b, mask)
        if found is None or lanes is None or lanes.origin or lanes.block != NO_BLOCK:
            return None
        if isinstance(found.numbers, int):
            return found
        first = np.arange(len(mask)) & -LANES
        return found._replace(numbers=found.numbers[first + (lanes.numbers & LANES - 1)])

    def _parameter(self, operand: Operand, bits: int, signed: bool) -> Number | None:
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            return None
        offset = operand.offset + operand.base.offset
        origin = self.known.array(operand.base.symbol) if bits == 64 and not offset else ""
        if origin:
            return Number(0, origin=origin)
        number = self.known.parameter(operand.base.symbol, offset, bits // 8)
        if number is None:
            return None
        return Number(_signed(number, bits) if signed or bits >= 32 else number)


def _signed(number: int, width: int) -> int:
    return number - (1 << width) if number >> (width - 1) else number
