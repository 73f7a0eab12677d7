"""Loops that run several iterations a turn: the body as the trace has it, and once more for each further iteration.

A body is traced once, so the other iterations are copies of its statements, with labels and registers of their own,
but for each `Reg`, which goes on from one iteration to the next. What the counter moves by a known number of bytes is
not computed again: all iterations of a turn stay below the stop, so no counter wraps around, and an address that is a
multiple of it is that of the first iteration and so many bytes on: ``[%rd4+1024]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ... import ir
from ...errors import StructureError
from ...ir.module import registers
from ...types import TYPES, ScalarType
from ..builder import Region, Trace
from ..errors import located
from ..values.literals import literal
from ..values.moves import known_form

__all__ = ["Body", "written"]

_REACH = 1 << 23
"""How far from its register an address of SASS can be, in bytes."""
_LINEAR = frozenset(
    f"{op}.{sign}{bits}" for op in ("add", "sub", "mul.lo", "mad.lo") for sign in "us" for bits in (32, 64)
) | {"mul.wide.u32", "mul.wide.s32", "shl.b32", "shl.b64"}


class Body:
    """The first iteration of a loop, and by how much a step of its counter moves what.

    It is what the trace has from the start of ``region`` on; ``indexed`` counts the annotated addresses before that.
    ``step`` is 0 where it is not known while tracing. A StructureError where a label of the user's would be copied.
    """

    def __init__(
        self, trace: Trace, region: Region, indexed: int, counter: ir.Register | None = None,
        type: ScalarType | None = None, step: int = 0,
    ) -> None:
        self.trace, self.counter, self.type = trace, counter, type
        self.statements = trace.body[region.start :]
        self.labels = [s.name for s in self.statements if isinstance(s, ir.Label)]
        for name in self.labels:
            if name in trace.labels:
                raise located(
                    StructureError, f"label `{name}` stands in a loop with `unroll`, which would place it repeatedly",
                    "`break_if` and `continue_if` need no labels; or leave `unroll` out",
                )
        writes: dict[str, int] = {}
        for register, guarded in written(self.statements):
            writes[register.name] = writes.get(register.name, 0) + 1 + guarded
        self.written = frozenset(writes)
        self.own = frozenset(name for name, count in writes.items() if count == 1 and name not in trace.mutable)
        self.indexed = {id(address): (origin, last) for address, origin, last in trace.indexed[indexed:]}
        self.kept = {id(place): (kept, source) for place, kept, source in trace.kept}
        self.moves: dict[str, int] = {}
        if counter is not None and step:
            self.moves[counter.name] = step
            if not any(id(s) in self.kept for s in self.statements):
                self._follow()

    def copy(self, number: int, before: ir.Register | None = None, advance: ir.Operand | None = None) -> Any:
        """Append the iteration ``number``, 1 the second one; its counter is returned, for the next one.

        Where the step is not known while tracing, it is the counter ``before`` and ``advance`` more.
        """
        copy = _Copy(self, self.moves, number)
        if advance is not None and self.counter is not None and self.type is not None:
            counter = copy.renamed[self.counter.name] = self.trace.fresh(self.type)
            copy.put(f"add.{self.type}", counter, before, advance)
            before = counter
        copy.append_all()
        return before

    def remainder(self) -> None:
        """Append an iteration that knows nothing of the others."""
        _Copy(self, {}, 0).append_all()

    def _follow(self) -> None:
        """Find the registers that a step moves by a known number, of those that each iteration computes."""
        skipped: set[str] = set()
        for statement in self.statements:
            if isinstance(statement, ir.Label):
                skipped.discard(statement.name)
            elif isinstance(statement, ir.Instruction):
                skipped.update(
                    o.label for o in statement.operands if isinstance(o, ir.LabelRef) and o.label in self.labels
                )
                if not skipped and statement.guard is None and statement.form.mnemonic in _LINEAR:
                    self._follow_instruction(statement)

    def _follow_instruction(self, instruction: ir.Instruction) -> None:
        name, (result, a, *rest) = instruction.form.mnemonic, instruction.operands
        moved = [self._moved(operand) for operand in (a, *rest)]
        if not isinstance(result, ir.Register) or result.name not in self.own or None in moved or not any(moved):
            return
        first, second, *third = (m or 0 for m in moved)
        number = rest[0].value if isinstance(rest[0], ir.Immediate) else None
        if name.startswith(("add", "sub")):
            found = first + second if name.startswith("add") else first - second
        elif number.__class__ is not int or (name.startswith("mul.wide") and not self._is_counter(a, name[-3:])):
            return  # not the same for all steps, or of a number that may have wrapped around
        else:
            found = sum(third) + (first << number if name.startswith("shl") else first * number)
        if abs(found) < _REACH:
            self.moves[result.name] = found

    def _is_counter(self, operand: ir.Operand, type: str) -> bool:
        return operand == self.counter and str(self.type) == type

    def _moved(self, operand: ir.Operand) -> int | None:
        """By how much a step moves an operand; None where that is not known."""
        if isinstance(operand, ir.Register):
            return self.moves.get(operand.name, None if operand.name in self.written else 0)
        return 0 if isinstance(operand, (ir.Immediate, ir.Symbol)) else None


class _Copy:
    """A further iteration."""

    def __init__(self, body: Body, moves: dict[str, int], number: int) -> None:
        self.body, self.trace, self.moves, self.number = body, body.trace, moves, number
        self.labels = {name: self.trace.fresh_label(name[1:]) for name in body.labels}
        self.renamed: dict[str, ir.Register] = {}
        self.loc = self.trace.region.loc

    def put(self, mnemonic: str, *operands: Any) -> None:
        """Append an instruction with the line of the one that needs it."""
        self.trace.emit(known_form(mnemonic), operands, None, self.loc)

    def append_all(self) -> None:
        """Append the statements, without those that compute what is known to move."""
        for statement in self.body.statements:
            if isinstance(statement, ir.Label):
                self.trace.place_label(self.labels[statement.name])
                for name in self.moves:  # which control may have come past
                    self.renamed.pop(name, None)
            elif isinstance(statement, ir.Instruction):
                self._instruction(statement)
            elif isinstance(statement, ir.Call):
                self._call(statement)
            else:
                self.trace.body.append(statement)

    def _instruction(self, instruction: ir.Instruction) -> None:
        if any(register.name in self.moves for register in instruction.writes()):
            return
        self.loc = instruction.loc or self.loc
        sources = [None if spec.result else self._operand(o)
                   for spec, o in zip(instruction.form.operands, instruction.operands)]
        guard: Any = None if instruction.guard is None else self._operand(instruction.guard)
        self._define(instruction.writes())
        operands = tuple([self._operand(o) if s is None else s for s, o in zip(sources, instruction.operands)])
        copied = ir.Instruction(instruction.form, operands, guard, instruction.loc)
        self.trace.append(copied)
        if id(instruction) in self.body.kept:
            kept, source = self.body.kept[id(instruction)]
            self.renamed[kept.name] = ir.Register(f"%index${len(self.trace.kept)}", kept.type)
            self.trace.kept.append((copied, self.renamed[kept.name], self._register(source)))

    def _call(self, call: ir.Call) -> None:
        self.loc = call.loc or self.loc
        callee, guard = self._operand(call.callee), call.guard and self._operand(call.guard)
        arguments = tuple([self._operand(o) for o in call.arguments])
        self._define(register for result in call.results for register in registers(result))
        results = tuple([self._operand(o) for o in call.results])
        self.trace.body.append(ir.Call(callee, results, arguments, call.prototype, call.uniform, guard, call.loc))

    def _define(self, written: Iterable[ir.Register]) -> None:
        """Make registers for those of an iteration that are written now."""
        for register in written:
            if register.name in self.body.own:
                self.renamed[register.name] = self.trace.fresh(register.type)

    def _operand(self, operand: Any) -> Any:
        if isinstance(operand, ir.Register):
            return self._register(operand)
        if isinstance(operand, ir.Address):
            return self._address(operand)
        if isinstance(operand, ir.Vector):
            return ir.Vector(tuple(self._operand(item) for item in operand.items))
        if isinstance(operand, ir.Not):
            return ir.Not(self._register(operand.predicate))
        if isinstance(operand, ir.Selected):
            return operand._replace(register=self._register(operand.register))
        if isinstance(operand, ir.LabelRef):
            return ir.LabelRef(self.labels.get(operand.label, operand.label))
        return operand

    def _register(self, register: ir.Register) -> ir.Register:
        """What a register of the first iteration is in this one."""
        found = self.renamed.get(register.name)
        if found is None and register.name in self.moves:
            found = self.renamed[register.name] = self.trace.fresh(register.type)
            bits = register.type.bits
            by = literal(self.moves[register.name] * self.number % (1 << bits), TYPES[f"u{bits}"])
            self.put(f"add.u{bits}", found, register, by)
        return found or register

    def _address(self, address: ir.Address) -> ir.Address:
        base, offset = address.base, address.offset
        moved = self.moves.get(base.name) if isinstance(base, ir.Register) else None
        if isinstance(base, ir.Register):
            if moved is not None and abs(offset + moved * self.number) < _REACH:
                offset += moved * self.number
            else:
                base = self._register(base)
        copied = ir.Address(base, offset, tuple(self._operand(part) for part in address.parts), address.unified)
        if id(address) in self.body.indexed:
            origin, last = self.body.indexed[id(address)]
            indices = tuple(self._operand(index) for index in origin.indices)
            asked = tuple((self._register(i[0]), i[1]) if i.__class__ is tuple else self._operand(i) for i in last)
            self.trace.indexed.append((copied, origin._replace(indices=indices), asked))
        return copied


def written(statements: list[ir.Statement]) -> Iterator[tuple[ir.Register, bool]]:
    """The registers that statements write, and whether under a guard."""
    for statement in statements:
        if isinstance(statement, ir.Instruction):
            for register in statement.writes():
                yield register, statement.guard is not None
        elif isinstance(statement, ir.Call):
            for result in statement.results:
                for register in registers(result):
                    yield register, True
