"""What the threads of a block have certainly stored when they pass a barrier for the first time.

The beginning of a kernel is executed for all threads of a block at once, as far as it follows from parameters and the
thread's index alone: what is loaded, or depends on the block, has no number. A branch that has none is passed over to
where its ways meet, if no way ends or waits before that; stores in between do not count. So the loops that fill an
array count as they are, whatever their shape. The first branch that cannot be passed over ends it, or a thousand steps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Call, Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol
from ...isa import Form
from ...types import ScalarType
from .static_values import Known
from .thread_arithmetic import OPERATIONS, UNSIGNED, bits_of, compared

__all__ = ["Stored", "certain_stores"]

STEPS = 1000
"""Basic blocks that are executed."""


class Stored(NamedTuple):
    """A barrier, and which bytes of each array have been written when it is first passed."""

    barrier: int
    bytes: dict[str, Any]


class _Number(NamedTuple):
    """A number for each thread, in a register of at most 64 bits; an offset in an array where there is an origin.

    ``known``: the threads whose number it is, None for all.
    """

    numbers: Any
    origin: str = ""
    known: Any = None


class _Stop(Exception):
    """Nothing more is certain."""


def certain_stores(
    graph: ControlFlowGraph, known: Known, barriers: set[int], stores: dict[int, tuple[Address, int]],
    sizes: Callable[[str], int],
) -> list[Stored]:
    """What is written at each barrier of the block that is certainly passed.

    ``stores``: the places of stores, with address and bytes. ``sizes`` are those of arrays, 0 where it is not known.
    """
    run = _Run(graph, known, barriers, stores, sizes)
    with contextlib.suppress(_Stop):
        run.run()
    return run.found


class _Run:
    def __init__(
        self, graph: ControlFlowGraph, known: Known, barriers: set[int], stores: dict[int, tuple[Address, int]],
        sizes: Callable[[str], int],
    ) -> None:
        self.graph, self.known, self.barriers, self.stores, self.sizes = graph, known, barriers, stores, sizes
        x, y, z = known.block
        linear = np.arange(x * y * z, dtype=np.int64)
        self.every = np.ones(len(linear), bool)
        self.alive = self.every.copy()
        self.special = {
            "%tid.x": linear % x, "%tid.y": linear // x % y, "%tid.z": linear // (x * y), "%laneid": linear % 32,
        }
        self.registers: dict[str, _Number] = {}
        self.written: dict[str, Any] = {}
        self.found: list[Stored] = []
        self.passed: set[int] = set()
        self.waiting: dict[int, Any] = {}
        self.needed = self._needed()

    def _needed(self) -> set[int]:
        """The statements that say where threads go and where they store, or what that is computed from."""
        ops = self.graph.def_use
        writers: dict[str, list[int]] = {}
        for place, op in enumerate(ops):
            for register in op.writes:
                writers.setdefault(register.name, []).append(place)
        bases = [address.base for address, _ in self.stores.values()]
        names = [base.name for base in bases if isinstance(base, Register)]
        for place in self.stores:
            names += self._guard_name(place)
        for block in self.graph.blocks:
            names += [name for place in range(block.start, block.stop) if self._leads(place)
                      for name in self._guard_name(place)]
        seen, found = set(), set()
        while names:
            name = names.pop()
            if name not in seen:
                seen.add(name)
                for place in writers.get(name, ()):
                    found.add(place)
                    names += [register.name for register in ops[place].uses]
        return found

    def _leads(self, place: int) -> bool:
        statement = self.graph.statements[place]
        return isinstance(statement, Instruction) and (statement.form.effects.branches or statement.form.effects.ends)

    def _guard_name(self, place: int) -> list[str]:
        guard = self.graph.statements[place].guard
        predicate = guard.predicate if isinstance(guard, Not) else guard
        return [predicate.name] if predicate is not None else []

    def run(self) -> None:
        blocks = self.graph.blocks
        if blocks:
            self.waiting[0] = self.every.copy()
        for _ in range(STEPS):
            if not self.waiting:
                return
            number = min(self.waiting, key=lambda n: blocks[n].priority)
            self._block(number, self.waiting.pop(number))

    def _block(self, number: int, mask: Any) -> None:
        block = self.graph.blocks[number]
        for place in range(block.start, block.stop):
            statement = self.graph.statements[place]
            if isinstance(statement, Call):
                self._forget(place)
                continue
            effects = statement.form.effects
            if effects.branches:
                self._branch(number, statement, mask)
                return
            if effects.ends:
                mask = mask & ~self._holds(statement.guard, mask)
                if not mask.any():
                    return
            elif effects.barrier == "block":
                self._barrier(place, mask)
            elif place in self.stores:
                self._store(place, statement, mask)
            elif place in self.needed:
                self._compute(place, statement, mask)
        if block.fallthrough >= 0:
            self._go(block.fallthrough, mask)
        else:
            self.alive = self.alive & ~mask

    def _barrier(self, place: int, mask: Any) -> None:
        if place not in self.barriers or self.waiting or (mask != self.alive).any():
            raise _Stop
        if place not in self.passed:
            self.passed.add(place)
            self.found.append(Stored(place, {name: written.copy() for name, written in self.written.items()}))

    def _go(self, number: int, mask: Any) -> None:
        if mask.any():
            before = self.waiting.get(number)
            self.waiting[number] = mask if before is None else before | mask

    def _known(self, guard: Register | Not | None, mask: Any) -> Any:
        """The threads of a mask in which a guard holds; None where that is not known."""
        if guard is None:
            return mask
        predicate = guard.predicate if isinstance(guard, Not) else guard
        found = self._register(predicate, mask)
        if found is None:
            return None
        holds = found.numbers != 0
        return mask & (~holds if isinstance(guard, Not) else holds)

    def _holds(self, guard: Register | Not | None, mask: Any) -> Any:
        found = self._known(guard, mask)
        if found is None:
            raise _Stop
        self.alive = self.alive & ~found
        return found

    def _branch(self, number: int, statement: Instruction, mask: Any) -> None:
        block = self.graph.blocks[number]
        if block.exits:
            mask = mask & ~self._holds(statement.guard, mask)
        elif len(block.targets) != 1:
            self._pass_over(number, mask)
            return
        else:
            taken = self._known(statement.guard, mask)
            if taken is None:
                self._pass_over(number, mask)
                return
            self._go(block.targets[0], taken)
            mask = mask & ~taken
        if block.fallthrough >= 0:
            self._go(block.fallthrough, mask)

    def _pass_over(self, number: int, mask: Any) -> None:
        """Go on where the ways of a branch meet."""
        end = self.graph.reconvergence[number]
        region = self.graph.divergent_region(number, {})
        if end < 0:
            raise _Stop
        for inside in region:
            block = self.graph.blocks[inside]
            if block.exits or not block.successors:
                raise _Stop
            for place in range(block.start, block.stop):
                statement = self.graph.statements[place]
                if isinstance(statement, Instruction):
                    effects = statement.form.effects
                    if effects.ends or effects.barrier == "block":
                        raise _Stop
                self._forget(place)
        self._go(end, mask)

    def _forget(self, place: int) -> None:
        for register in self.graph.def_use[place].writes:
            self.registers.pop(register.name, None)

    def _store(self, place: int, statement: Instruction, mask: Any) -> None:
        address, nbytes = self.stores[place]
        where = self._known(statement.guard, mask)
        value = self._operand(address.base, where) if where is not None else None
        if value is None or not value.origin or where is None or not where.any():
            return
        size = self.sizes(value.origin)
        starts = value.numbers[where] + address.offset
        if not size or int(starts.min()) < 0 or int(starts.max()) + nbytes > size:
            return
        if value.origin not in self.written:
            self.written[value.origin] = np.zeros(size, bool)
        self.written[value.origin][(starts[:, None] + np.arange(nbytes)).ravel()] = True

    # Numbers

    def _compute(self, place: int, statement: Instruction, mask: Any) -> None:
        """Execute an instruction in some threads; without a guard that is known its result has no number."""
        where = self._known(statement.guard, mask)
        writes = self.graph.def_use[place].writes
        found = self._result(statement, where) if where is not None and len(writes) == 1 else None
        if found is None or where is None:
            self._forget(place)
            return
        name = writes[0].name
        before = self.registers.get(name)
        if where.all():
            before = None
        elif before is not None and before.origin == found.origin:
            known = None if before.known is None else before.known | where
            found = _Number(np.where(where, found.numbers, before.numbers), found.origin, known)
        else:
            found = found._replace(known=where)
        self.registers[name] = found

    def _register(self, register: Register, mask: Any) -> _Number | None:
        """The numbers of a register in the threads of a mask."""
        found = self.registers.get(register.name)
        if found is None or (found.known is not None and (mask & ~found.known).any()):
            return None
        return found._replace(known=None)

    def _operand(self, operand: Operand, mask: Any) -> _Number | None:
        if isinstance(operand, Register):
            return self._register(operand, mask)
        if isinstance(operand, Immediate):
            return _Number(np.full(len(self.every), _signed(operand.bits, 64), np.int64))
        if isinstance(operand, Not):
            found = self._register(operand.predicate, mask)
            return None if found is None else _Number((found.numbers == 0).astype(np.int64))
        if isinstance(operand, Symbol):
            origin = self.known.array(operand.symbol)
            return _Number(np.full(len(self.every), operand.offset, np.int64), origin) if origin else None
        if isinstance(operand, SpecialRegister):
            return self._special_register(operand.special)
        return None

    def _special_register(self, name: str) -> _Number | None:
        head, _, axis = name.partition(".")
        if name in self.special:
            return _Number(self.special[name])
        if head in ("%ntid", "%nctaid", "%ctaid") and axis in ("x", "y", "z"):
            number = "xyz".index(axis)
            count = self.known.block[number] if head == "%ntid" else self.known.grid[number]
            if head != "%ctaid":
                return _Number(np.full(len(self.every), count, np.int64))
            return _Number(np.zeros(len(self.every), np.int64)) if count == 1 else None
        return None

    def _result(self, statement: Instruction, mask: Any) -> _Number | None:
        form, operands = statement.form, statement.operands
        kind = form.type
        if kind is None or kind.lanes != 1 or kind.kind not in "usbp" or not isinstance(operands[0], Register):
            return None
        if form.effects.accesses:
            loads = form.opcode == "ld" and form.space == "param"
            return self._parameter(operands[1], kind.bits) if loads else None
        given: list[_Number] = []
        for operand in operands[1:]:
            found = self._operand(operand, mask)
            if found is None:
                return None
            given.append(found)
        if form.opcode in ("mov", "cvta") and len(given) == 1:
            return given[0]
        if form.opcode == "cvt":
            return _converted(given[0], form.tokens)
        if any(each.origin for each in given):
            return _moved(form.opcode, form.tokens, given, kind.bits)
        return _computed(form, kind, [each.numbers for each in given], operands[0].type.bits)

    def _parameter(self, operand: Operand, bits: int) -> _Number | None:
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            return None
        offset = operand.offset + operand.base.offset
        number = self.known.parameter(operand.base.symbol, offset, bits // 8)
        return None if number is None else _Number(np.full(len(self.every), _signed(number, 64), np.int64))


def _signed(number: int, width: int) -> int:
    return number - (1 << width) if number >> (width - 1) else number


def _computed(form: Form, kind: ScalarType, x: list[Any], out: int) -> _Number | None:
    """The result of an instruction on numbers."""
    opcode, tokens, width, signed = form.opcode, form.tokens, kind.bits, kind.kind == "s"
    if kind.kind == "p":
        return _logic(opcode, x)
    if opcode == "setp":
        return _tested(tokens, width, signed, x)
    if opcode == "selp" and len(x) == 3:
        return _Number(np.where(x[2] != 0, x[0], x[1]))
    if {"sat", "cc", "hi"} & {*tokens}:
        return None
    if opcode in ("add", "sub") and len(x) == 2:
        return _Number(bits_of(x[0] + x[1] if opcode == "add" else x[0] - x[1], width))
    if width > 32:
        return None
    shift = opcode in ("shl", "shr")
    a = [bits_of(each, 32 if shift and n else width, signed and not (shift and n)) for n, each in enumerate(x)]
    if opcode in ("mul", "mad") and len(x) == 2 + (opcode == "mad"):
        if int(np.abs(a[0]).max()) * int(np.abs(a[1]).max()) >= 1 << 62:
            return None
        return _Number(bits_of(a[0] * a[1] + (x[2] if opcode == "mad" else 0), out if "wide" in tokens else width))
    if opcode in ("neg", "not"):
        return _Number(bits_of(-a[0] if opcode == "neg" else ~a[0], width))
    if opcode in OPERATIONS and len(a) == 2 and (opcode not in ("div", "rem") or a[1].all()):
        return _Number(bits_of(OPERATIONS[opcode](a[0], a[1]), width))
    return None


def _logic(opcode: str, x: list[Any]) -> _Number | None:
    """An operation on predicates."""
    if opcode == "not":
        return _Number((x[0] == 0).astype(np.int64))
    logic = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    return _Number(logic[opcode](*x).astype(np.int64)) if opcode in logic and len(x) == 2 else None


def _converted(value: _Number, tokens: tuple[str, ...]) -> _Number | None:
    types = [token for token in tokens if token[0] in "us" and token[1:].isdigit()]
    if len(types) != 2 or len(tokens) != 2:
        return None
    if value.origin:
        return value if all(int(token[1:]) >= 32 for token in types) else None
    to, source = int(types[0][1:]), types[1]
    numbers = bits_of(value.numbers, int(source[1:]), source[0] == "s")
    if to < 32:
        return None
    return _Number(bits_of(numbers, to))


def _moved(opcode: str, tokens: tuple[str, ...], given: list[_Number], width: int) -> _Number | None:
    """An address that is moved on by numbers."""
    if {"sat", "cc", "hi"} & {*tokens}:
        return None
    numbers = [each.numbers if each.origin else bits_of(each.numbers, width, True) for each in given]
    origins = [each.origin for each in given]
    if opcode == "add" and not all(origins):
        return _Number(numbers[0] + numbers[1], origins[0] or origins[1])
    if opcode == "sub" and not origins[1]:
        return _Number(numbers[0] - numbers[1], origins[0])
    if opcode == "mad" and not origins[0] and not origins[1] and width <= 32:
        signed = "u32" not in tokens or "wide" not in tokens
        a, b = (bits_of(each.numbers, width, signed) for each in given[:2])
        if int(np.abs(a).max()) * int(np.abs(b).max()) < 1 << 31:
            return _Number(numbers[2] + a * b, origins[2])
    return None


def _tested(tokens: tuple[str, ...], width: int, signed: bool, x: list[Any]) -> _Number | None:
    test = tokens[0]
    signed, test = signed and test not in UNSIGNED, UNSIGNED.get(test, test)
    if width > 32 or test not in ("lt", "le", "gt", "ge", "eq", "ne") or len(x) not in (2, 3):
        return None
    found = compared(test, bits_of(x[0], width, signed), bits_of(x[1], width, signed))
    if len(x) == 3:
        joins = [token for token in tokens if token in ("and", "or", "xor")]
        if not joins:
            return None
        found = {"and": found & (x[2] != 0), "or": found | (x[2] != 0), "xor": found ^ (x[2] != 0)}[joins[0]]
    return _Number(found.astype(np.int64))
