"""The sanitizer's check of registers: instructions that find where a thread reads one that it has not written.

``verify`` refuses a register that some path leaves unwritten where the PTX is ours, but a guarded write counts as one
there, and compilers' PTX may carry values that are never used. So each register that may be read too early gets a
predicate, set where the register is written. An instruction that only computes passes it on: to what depends on an
undefined operand, which for ``selp``, ``and`` and ``or`` is a matter of the other operands' values. It is tested where
a value decides something: as a guard, an address, in what is stored for others to see, or read by an instruction of
several lanes; but a shuffle passes it on, from the lane that the number is taken from. Of a word that is packed of
several registers each part has a predicate (:mod:`.packed_words`). Loads that the program may have
made in vain (:mod:`.deferred_loads`) clear it where they find memory unwritten, and a store to memory of the block
leaves that as undefined as its value. What is stored to tensor memory is not tested: compilers fill up tiles there
with registers that nobody has written, and the products of that are dropped.
"""

from __future__ import annotations

from typing import NamedTuple

from ...analysis.control_flow import control_flow_graph
from ...analysis.definite_assignment import maybe_unwritten
from ...ir import (
    Address, Call, Function, Instruction, Not, Operand, Register, SpecialRegister, Symbol, Vector, elements,
    registers,
)
from ...analysis.def_use import DefUse
from ...isa import Form
from ...types import TYPES
from ..analysis.call_stack import uses_stack
from .builder import PtxBuilder, integer
from .deferred_loads import copies_to_memory, deferred_loads, is_pure
from .index_checks import checks_index
from .packed_words import packed_words, parts_read

__all__ = ["UNWRITTEN", "Definedness", "check_definedness", "checks_definedness"]

UNWRITTEN = "%unwritten"
"""The function that is called with a register by the lanes that have not written it."""
_FLAG, _TEST = ".written", "%unwritten"


def checks_definedness(statement: Instruction | Call) -> bool:
    """Whether a statement is one of those that are added here."""
    if isinstance(statement, Call):
        return statement.callee == Symbol(UNWRITTEN) or checks_index(statement)
    first = statement.operands[0] if statement.operands else None
    return isinstance(first, Register) and (first.name.startswith(_TEST) or first.name.endswith(_FLAG))


class Definedness(NamedTuple):
    """A function with such checks. Of the loads that are deferred, and of stores to memory of the block: the
    predicates of the registers that they load or store, by the identity of the statement.
    """

    function: Function
    flags: dict[int, tuple[str, ...]]
    deferred: frozenset[int]


def check_definedness(
    function: Function, unwritten: bool, written: frozenset[int] = frozenset()
) -> Definedness:
    """The function with such checks; itself where none is needed.

    ``unwritten``: global memory may be so. ``written``: the places of loads that find no unwritten memory.
    """
    flow = control_flow_graph(function)
    deferred = deferred_loads(flow, unwritten, written)
    exposed = maybe_unwritten(flow) | {w for place in deferred for w in flow.def_use[place].writes}
    if not exposed:
        return Definedness(function, {}, frozenset())
    passing = [op for op in flow.def_use if _passes(op)]
    moved = [(_moved(op.statement), op.writes[0]) for op in flow.def_use if _moved(op.statement) is not None]
    while more := (
        {w for op in passing if not exposed.isdisjoint(op.uses) for w in op.writes}
        | {result for source, result in moved if source in exposed}
    ) - exposed:
        exposed |= more
    loads = frozenset(id(flow.statements[place]) for place in deferred)
    packed = packed_words(flow.def_use, exposed, {id(op.statement) for op in passing})
    return _Checks(function, exposed, maybe_unwritten(flow), loads, packed).checked()


def _passes(op: DefUse) -> bool:
    return isinstance(op.statement, Instruction) and is_pure(op.statement.form)


def _moved(statement: object) -> Register | None:
    """The register that a shuffle moves."""
    if isinstance(statement, Instruction) and statement.form.opcode == "shfl":
        source = statement.operand("a")
        return source if isinstance(source, Register) else None
    return None


def _accumulators(statement: Instruction | Call) -> tuple[frozenset[Register], Register | Not | None]:
    """The registers of a matrix product that are read only where a predicate holds, and that predicate."""
    place = statement.form.effects.scale if isinstance(statement, Instruction) else -1
    scale = statement.operands[place] if place >= 0 else None  # type: ignore[union-attr]
    if not isinstance(scale, (Register, Not)):
        return frozenset(), None
    assert isinstance(statement, Instruction)
    pairs = zip(statement.form.operands, statement.operands)
    return frozenset(r for spec, operand in pairs if spec.role == "rw" for r in registers(operand)), scale


def _fills_tensor_memory(statement: Instruction | Call) -> tuple[object, ...]:
    """The registers that an instruction stores to tensor memory."""
    effects = statement.form.effects if isinstance(statement, Instruction) else None
    if effects is None or effects.completes != "tcgen05_wait" or not effects.writes:
        return ()
    return elements(statement.operands[-1])  # type: ignore[union-attr]


class _Checks(PtxBuilder):
    """Adds the instructions that set and test the predicates of some registers."""

    def __init__(
        self, function: Function, exposed: set[Register], unwritten: set[Register], loads: frozenset[int],
        packed: dict[Register, int],
    ) -> None:
        super().__init__(function)
        self.flags = {register: self.register(register.name + _FLAG, "pred") for register in sorted(exposed)}
        self.packed = {
            register: [self.register(f"{register.name}.{part}{_FLAG}", "pred") for part in range(count)]
            for register, count in sorted(packed.items())
        }
        """The predicates of the parts of a word."""
        self.unwritten, self.loads = self.register(_TEST, "pred"), loads
        self.parts = [self.register(f"{_TEST}.{name}", "pred") for name in "abcd"]
        self.lane = self.register(f"{_TEST}.lane", "u32")
        self.bit, self.taken = self.register(f"{_TEST}.number", "b32"), self.register(f"{_TEST}.taken", "b32")
        self.shuffles = any(_moved(statement) in self.flags for statement in function.instructions())
        """Whether some shuffle moves a register with a predicate: each is then doubled, since any two may meet."""
        self.initial = unwritten
        self.found: dict[int, tuple[str, ...]] = {}

    def checked(self) -> Definedness:
        loaded = {r for s in self.function.instructions() if id(s) in self.loads for r in DefUse.of(s).writes}
        for register, flag in self.flags.items():
            if register in self.initial | loaded:  # what is written twice is not computed before the launch
                for each in (flag, *self.packed.get(register, ())):
                    self.emit("mov.pred", each, 0)
        self.emit("mov.u32", self.lane, SpecialRegister("%laneid"))
        for statement in self.function.body or ():
            if isinstance(statement, (Instruction, Call)) and not checks_index(statement):
                self.statement = statement
                self._before(statement)
            self.body.append(statement)
            if id(statement) in self.found and id(statement) not in self.loads:
                for name in filter(None, self.found[id(statement)]):  # so that they live until the store is checked
                    flag = self.register(name, "pred")
                    self.emit("and.pred", self.parts[0], flag, flag)
        return Definedness(self.result(), self.found, self.loads)

    def _before(self, statement: Instruction | Call) -> None:
        op = DefUse.of(statement)
        used = [register for register in op.uses if register in self.flags]
        guard = statement.guard
        if _passes(op):
            decides = [] if guard is None else [guard.predicate if isinstance(guard, Not) else guard]
        elif isinstance(statement, Instruction) and copies_to_memory(statement.form):
            value = next(operand for operand in statement.operands if not isinstance(operand, Address))
            items = elements(value)
            if any(item in self.flags for item in items):
                self.found[id(statement)] = tuple(
                    self.flags[item].name if isinstance(item, Register) and item in self.flags else "" for item in items
                )
            decides = [register for register in used if register not in items]
        elif isinstance(statement, Instruction) and self.shuffles and statement.form.opcode == "shfl":
            decides = [register for register in used if register in op.reads[1:] or register == guard]
        else:
            fills = _fills_tensor_memory(statement)
            decides = [] if uses_stack(op) else [register for register in used if register not in fills]
        changed, scale = _accumulators(statement)
        for register in dict.fromkeys(decides):
            if register in self.flags:
                self._test(guard, register, scale if register in changed else None)
        if id(statement) in self.loads:
            self._load(statement, op)
            return
        if isinstance(statement, Instruction) and self.shuffles and statement.form.opcode == "shfl":
            self._shuffle(statement, op.writes[0])
            return
        self._results(statement, op, used if _passes(op) else [])

    def _results(self, statement: Instruction | Call, op: DefUse, sources: list[Register]) -> None:
        """The predicates of what a statement computes from these."""
        guard = statement.guard
        parts = self._parts(statement, op, sources)
        whole = bool(sources) and not parts and isinstance(statement, Instruction)
        value_wise = self._value_wise(statement) if whole else None  # type: ignore[arg-type]
        for register in op.writes:
            if register in self.flags and value_wise is not None:
                self.emit("mov.pred", self.flags[register], value_wise, guard=guard)
            elif register in self.flags:
                flags = parts.get(register) or [self.flags[source] for source in sources]
                self._set(guard, self.flags[register], flags)
            if register in self.packed:
                self._set_parts(statement, register, guard)

    def _parts(
        self, statement: Instruction | Call, op: DefUse, sources: list[Register]
    ) -> dict[Register, list[Register]]:
        """The predicates of the parts of a word that results are computed from; empty where they need all of it."""
        if len(sources) != 1 or sources[0] not in self.packed or not isinstance(statement, Instruction):
            return {}
        flags = self.packed[sources[0]]
        read = {register: parts_read(statement, sources[0], register, len(flags)) for register in op.writes}
        return {register: [flags[part] for part in parts] for register, parts in read.items() if parts is not None}

    def _set_parts(self, statement: Instruction | Call, register: Register, guard: Register | Not | None) -> None:
        """The parts of a word are those that it is packed of, or copied from; or are what the word is."""
        flags, source = self.packed[register], None
        if isinstance(statement, Instruction) and statement.form.opcode == "mov":
            source = statement.operands[1]
        of: list[Register | None] = [self.flags[register]] * len(flags)
        if isinstance(source, Vector):
            items = [self.flags.get(item) if isinstance(item, Register) else None for item in source.items]
            of = [item for item in items for _ in range(len(flags) // len(items))]
        elif isinstance(source, Register) and len(self.packed.get(source, ())) == len(flags):
            of = [*self.packed[source]]
        for flag, value in zip(flags, of):
            self.emit("mov.pred", flag, 1 if value is None else value, guard=guard)

    def _shuffle(self, statement: Instruction, result: Register) -> None:
        """The predicate is moved as the number is."""
        guard, taken = statement.guard, self.taken
        moved, *rest = DefUse.of(statement).reads
        self._known(self.parts[0], moved)
        self.emit("selp.b32", self.bit, 1, 0, self.parts[0])
        self.emit(statement.form.mnemonic, taken, self.bit, *rest, guard=guard)
        if result in self.flags:
            self.emit("setp.ne.b32", self.flags[result], taken, 0, guard=guard)

    def _load(self, statement: Instruction | Call, op: DefUse) -> None:
        """Its check clears the predicates again of lanes that load what is unwritten.

        They are set by a comparison that always holds, which nothing takes to be the same in all lanes.
        """
        for register in op.writes:
            self.emit("setp.ge.u32", self.flags[register], self.lane, 0, guard=statement.guard)
        assert isinstance(statement, Instruction)
        written = (o for spec, o in zip(statement.form.operands, statement.operands) if spec.written)
        items = [item for operand in written for item in elements(operand)]
        self.found[id(statement)] = tuple(
            self.flags[item].name if isinstance(item, Register) else "" for item in items
        )

    def _value_wise(self, statement: Instruction) -> Register | None:
        """The predicate of a result that may not depend on all operands; None of all others."""
        form, operands = statement.form, statement.operands
        a, b, c, d = self.parts
        if form.opcode == "selp":
            _, yes, no, condition = operands
            self._choose(a, yes, condition)
            self._choose(b, no, condition, False)
            self.emit("or.pred", a, a, b)
            return self._and(a, condition)
        if form.effects.absorbs:
            _, x, y = operands
            self._known(a, x)
            self._known(b, y)
            self._absorbs(c, form, x)
            self._absorbs(d, form, y)
            self.emit("and.pred", c, c, a)
            self.emit("and.pred", d, d, b)
            self.emit("and.pred", a, a, b)
            self.emit("or.pred", a, a, c)
            self.emit("or.pred", a, a, d)
            return a
        if form.opcode == "setp" and len(operands) == 4 and ("and" in form.tokens or "or" in form.tokens):
            _, x, y, z = operands
            self._known(a, z)
            self._absorbs(c, form, z)
            self.emit("and.pred", c, c, a)
            for operand in (x, y):
                a = self._and(a, operand)
            self.emit("or.pred", a, a, c)
            return a
        return None

    def _known(self, into: Register, operand: Operand) -> None:
        """Whether an operand is defined."""
        register = operand.predicate if isinstance(operand, Not) else operand
        flag = self.flags.get(register) if isinstance(register, Register) else None
        self.emit("mov.pred", into, 1 if flag is None else flag)

    def _and(self, into: Register, operand: Operand) -> Register:
        register = operand.predicate if isinstance(operand, Not) else operand
        flag = self.flags.get(register) if isinstance(register, Register) else None
        if flag is not None:
            self.emit("and.pred", into, into, flag)
        return into

    def _choose(self, into: Register, operand: Operand, condition: Operand, holds: bool = True) -> None:
        """Whether the condition holds, or does not, and the operand is defined."""
        inverted = isinstance(condition, Not)
        source = condition.predicate if isinstance(condition, Not) else condition
        self.emit("mov.pred" if inverted != holds else "not.pred", into, source)
        self._and(into, operand)

    def _absorbs(self, into: Register, form: Form, operand: Operand) -> None:
        """Whether an operand decides the result of a logical operation alone: 0 of ``and``, all ones of ``or``."""
        conjunction = form.opcode == "and" or "and" in form.tokens
        inverted, source = isinstance(operand, Not), operand.predicate if isinstance(operand, Not) else operand
        assert not isinstance(source, Not)
        if isinstance(source, Register) and source.type.kind == "p":
            self.emit("mov.pred" if conjunction == inverted else "not.pred", into, source)
        elif isinstance(source, Register):
            bits = source.type.bits
            ones = (1 << bits) - 1
            self.emit(f"setp.eq.b{bits}", into, source, 0 if conjunction else integer(ones, TYPES[f"b{bits}"]))
        else:
            bits = getattr(source, "bits", 1)
            absorbs = bits == 0 if conjunction else bits == (1 << TYPES["u64"].bits) - 1
            self.emit("mov.pred", into, int(absorbs))

    def _set(self, guard: Register | Not | None, flag: Register, sources: list[Register]) -> None:
        """The register has a value from here on, if its sources have theirs."""
        if not sources:
            self.emit("mov.pred", flag, 1, guard=guard)
            return
        first, *rest = sources
        self.emit("and.pred", flag, first, rest[0] if rest else first, guard=guard)
        for source in rest[1:]:
            self.emit("and.pred", flag, flag, source, guard=guard)

    def _test(self, guard: Register | Not | None, register: Register, scale: Register | Not | None) -> None:
        """``scale``: the predicate without which the register is not read."""
        flag = self.flags[register]
        self.emit("not.pred", self.unwritten, flag)
        self.both(self.unwritten, scale)
        if register not in (guard, getattr(guard, "predicate", None)):
            self.both(self.unwritten, guard)
        self.call(UNWRITTEN, register, guard=self.unwritten)
        self.emit("or.pred", flag, flag, self.unwritten)
