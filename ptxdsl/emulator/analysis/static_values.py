"""What is known of the numbers in registers before a launch runs: sums of thread, block and unknown terms.

The grid, the shape of the block and the parameters are numbers here. Values are worked out where they are asked for,
backwards from there (:mod:`.dominance`), under what the branches on the way say: a comparison that holds bounds what
it compares. A register that a loop changes by a number is its start plus multiples of that. What is not understood is
any number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Address, Call, Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol
from ...types import ScalarType
from .comparisons import MIRRORED, OPPOSITE, bounded, decided
from .divergence import Shape3
from .dominance import Definition, Definitions, Fact, Join, Unwritten, Values
from .linear_values import (
    EXACT, Part, Value, clamped, constant, is_exact, joined, number_of, of_threads, plus, unknown,
)
from .loop_values import is_settled, mentions, repeated
from .thread_arithmetic import UNSIGNED, compared
from .value_operations import computed, numbers

__all__ = ["Known", "StaticValues"]

DEPTH = 60
"""Values that are followed backwards at once; what lies further back is unknown."""
EFFORT = 6000
"""Values that are worked out for one function; from then on all are unknown."""


class Known(NamedTuple):
    """What a launch has: its grid, the shape of its blocks, the bytes of parameters by name, arrays by name."""

    grid: Shape3
    block: Shape3
    parameter: Callable[[str, int, int], int | None]
    """Bytes of a parameter as a number, by name, offset and size; None where that is not known."""
    array: Callable[[str], str]
    """The array that the address of a symbol, or a parameter of 64 bits, is in; "" for none."""
    cluster: Shape3 = (1, 1, 1)


class _Context:
    """What holds at a place: by value what it is compared with, and the threads that come there."""

    def __init__(self) -> None:
        self.bounds: dict[Values, list[tuple[int, bool, int, int]]] = {}
        self.threads: Any = None


class StaticValues:
    """The values of one function in one launch."""

    def __init__(self, graph: ControlFlowGraph, known: Known) -> None:
        self.graph, self.known = graph, known
        self.definitions = Definitions(graph)
        x, y, z = known.block
        linear = np.arange(x * y * z, dtype=np.int64)
        self.threads = len(linear)
        self._coordinates = (linear % x, linear // x % y, linear // (x * y))
        self._lane = linear % 32
        self._every = np.ones(self.threads, bool)
        self._predicates: dict[Values, tuple[Any, Any]] = {}
        self._special: dict[str, Value] = {}
        self._contexts: dict[tuple[Fact, ...], _Context] = {(): _Context()}
        self._open: set[Join] = set()
        self._memos: list[dict[tuple[Values, int], Value]] = [{}]
        """What has been worked out; the last one depends on the joins that are open."""
        self._depth = self._effort = 0

    # What is asked

    def address(self, place: int, operand: Address, guard: Operand | None) -> tuple[Value, Any]:
        """The address of a statement's access, and the threads that may make it (None for all)."""
        context = self._context_of(place, guard)
        base = operand.base
        width = base.type.bits if isinstance(base, Register) else 64
        value = self._operand(place, base, context)
        if operand.offset:
            value = plus(value, constant(operand.offset), width)
        return value, context.threads

    def bounds(self, place: int, guard: Operand | None) -> tuple[Part, ...]:
        """What comparisons say of those that come to a statement: numbers that are known, and their bounds there."""
        context = self._context_of(place, guard)
        found = (self._value(node, context).parts.get(node) for node in context.bounds)
        return tuple(part for part in found if part is not None and not part.step and not part.symbols)

    def _context_of(self, place: int, guard: Operand | None) -> _Context:
        facts = self.definitions.facts_at(place)
        if isinstance(guard, Register):
            facts += (Fact(place, guard, True),)
        elif isinstance(guard, Not):
            facts += (Fact(place, guard.predicate, False),)
        return self._context(facts)

    def number(self, place: int, operand: Operand) -> int | None:
        """What an operand of a statement is in all threads of the launch."""
        return number_of(self._operand(place, operand, self._contexts[()]))

    def _context(self, facts: tuple[Fact, ...]) -> _Context:
        found = self._contexts.get(facts)
        if found is None:
            found = self._contexts[facts] = _Context()
            for fact in facts:
                self._learn(found, fact.place, fact.predicate, fact.holds)
        return found

    def _learn(self, context: _Context, place: int, predicate: Register, holds: bool) -> None:
        """Add what a predicate's value says."""
        may = self._predicate(self.definitions.reaching(place, predicate.name))[0 if holds else 1]
        if not may.all():
            context.threads = may if context.threads is None else context.threads & may
        node = self.definitions.reaching(place, predicate.name)
        statement = self.graph.statements[node.place] if isinstance(node, Definition) else None
        if not isinstance(statement, Instruction) or statement.guard is not None or not isinstance(node, Definition):
            return
        form, operands = statement.form, statement.operands
        opcode, tokens = form.opcode, form.tokens
        if opcode == "not" and isinstance(operands[1], Register):
            self._learn(context, node.place, operands[1], not holds)
        elif opcode in ("and", "or") and (opcode == "and") == holds:
            for operand in operands[1:]:
                self._learn_operand(context, node.place, operand, holds)
        elif opcode == "setp" and form.type is not None and form.type.kind in "usb" and form.type.lanes == 1:
            op = self.graph.def_use[node.place]
            if len(op.writes) != 1 or len(op.reads) not in (2, 3):
                return
            if len(op.reads) == 3:
                joins = "and" if "and" in tokens else "or" if "or" in tokens else ""
                if not joins or (joins == "and") != holds:
                    return
                self._learn_operand(context, node.place, op.reads[2], holds)
            self._learn_comparison(context, node.place, tokens[0], form.type, op.reads[0], op.reads[1], holds)

    def _learn_operand(self, context: _Context, place: int, operand: Operand, holds: bool) -> None:
        if isinstance(operand, Not):
            self._learn(context, place, operand.predicate, not holds)
        elif isinstance(operand, Register):
            self._learn(context, place, operand, holds)

    def _learn_comparison(
        self, context: _Context, place: int, test: str, kind: ScalarType, a: Operand, b: Operand, holds: bool
    ) -> None:
        if test not in OPPOSITE:
            return
        test = test if holds else OPPOSITE[test]
        width, signed = kind.bits, kind.kind == "s"
        if test in UNSIGNED:
            test, signed = UNSIGNED[test], False
        nothing = self._contexts[()]
        for left, right, each in ((a, b, test), (b, a, MIRRORED[test])):
            if not isinstance(left, Register) or left.type.bits != width:
                continue
            bounds = is_exact(self._operand(place, right, nothing), width, signed)
            if bounds is None:
                number = number_of(self._operand(place, right, nothing))
                if number is None:
                    continue
                number &= (1 << width) - 1
                if signed and number >> (width - 1):
                    number -= 1 << width
                bounds = number, number
            learned = bounded(each, bounds, width, signed)
            if learned is not None:
                node = self.definitions.reaching(place, left.name)
                context.bounds.setdefault(node, []).append((width, signed, *learned))

    # Values

    def _value(self, node: Values, context: _Context) -> Value:
        """What a register holds, by its definition."""
        bounds = context.bounds.get(node, ())
        key = (node, 0 if isinstance(node, Join) and not bounds else id(context))
        for memo in reversed(self._memos):
            if key in memo:
                return memo[key]
        if self._depth >= DEPTH or self._effort >= EFFORT:
            return unknown(64)
        self._effort += 1
        self._depth += 1
        try:
            if not isinstance(node, Join):
                found = self._defined(node, context)
            else:  # which is the same wherever it is asked for
                found = self._value(node, self._contexts[()]) if bounds else self._join(node)
        finally:
            self._depth -= 1
        for width, signed, low, high in bounds:
            found = clamped(found, node, width, signed, low, high)
        self._memos[-1][key] = found
        return found

    def _join(self, node: Join) -> Value:
        """What a register holds where ways meet; of a loop: its start plus multiples of what the loop adds."""
        if node in self._open:
            return Value({None: Part(low=None, high=None, symbols=((node, 1),))})
        width = self._width(node.name)
        self._open.add(node)
        self._memos.append({})
        try:
            ways = [
                self._value(self.definitions.at_end(way, node.name), self._behind(way, node.block))
                for way in self.definitions.before[node.block]
            ]
        finally:
            found = self._memos.pop()
            self._open.remove(node)
        self._memos[-1].update((key, value) for key, value in found.items() if is_settled(value))
        if node.block == 0:
            return unknown(64)
        starts = [way for way in ways if not any(mentions(part, node) for part in way.parts.values())]
        around = [way for way in ways if any(mentions(part, node) for part in way.parts.values())]
        if not starts:
            return unknown(64)
        start = starts[0]
        for way in starts[1:]:
            start = joined(start, way, width)
        return repeated(node, start, around, width) if around else start

    def _behind(self, block: int, successor: int) -> _Context:
        """What holds on the way from a block to one of its successors."""
        definitions = self.definitions
        facts = definitions.facts_at(self.graph.blocks[block].stop - 1) + definitions.on_edge(block, successor)
        return self._context(facts)

    def _width(self, name: str) -> int:
        place = self.definitions.written[name][0]
        return next(r.type.bits for r in self.graph.def_use[place].writes if r.name == name)

    def _defined(self, node: Definition | Unwritten, context: _Context) -> Value:
        if isinstance(node, Unwritten):
            return unknown(64)
        statement = self.graph.statements[node.place]
        if isinstance(statement, Call):
            return unknown(64)
        found = self._computed(node.place, statement, context)
        if statement.guard is not None:
            before = self._value(self.definitions.reaching(node.place, node.name), context)
            found = joined(found, before, self._width(node.name))
        return found

    def _operand(self, place: int, operand: Operand, context: _Context) -> Value:
        """The value of an operand."""
        if isinstance(operand, Register):
            return self._value(self.definitions.reaching(place, operand.name), context)
        if isinstance(operand, Immediate):
            return constant(operand.bits, operand.type.bits)
        if isinstance(operand, SpecialRegister):
            return self._special_register(operand.special)
        if isinstance(operand, Symbol):
            origin = self.known.array(operand.symbol)
            return constant(operand.offset)._replace(origin=origin) if origin else unknown(64)
        return unknown(64)

    def _special_register(self, name: str) -> Value:
        found = self._special.get(name)
        if found is None:
            found = self._special[name] = self._find_special(name)
        return found

    def _find_special(self, name: str) -> Value:
        head, _, axis = name.partition(".")
        if head == "%laneid":
            return of_threads(self._lane)
        if head == "%cluster_ctarank":
            return unknown(32, high=prod(self.known.cluster) - 1)
        if head == "%cluster_nctarank":
            return constant(prod(self.known.cluster))
        if axis not in ("x", "y", "z"):
            return unknown(64)
        number = "xyz".index(axis)
        if head == "%tid":
            return of_threads(self._coordinates[number])
        if head == "%ntid":
            return constant(self.known.block[number])
        if head == "%nctaid":
            return constant(self.known.grid[number])
        if head == "%cluster_ctaid":
            return unknown(32, high=self.known.cluster[number] - 1)
        if head == "%cluster_nctaid":
            return constant(self.known.cluster[number])
        if head == "%ctaid":
            most = self.known.grid[number] - 1
            unit = (int(number == 0), int(number == 1), int(number == 2))
            return Value({None: Part(block=unit, high=most)}) if most else constant(0)
        return unknown(64)

    # Operations

    def _computed(self, place: int, statement: Instruction, context: _Context) -> Value:
        """The result of an instruction, without its guard."""
        form, operands = statement.form, statement.operands
        kind = form.type
        result = operands[0] if operands else None
        if not isinstance(result, Register) or kind is None or kind.kind not in "usb" or kind.lanes != 1:
            return unknown(64)
        if form.space == "param" and form.opcode == "ld":
            return self._parameter(operands[1], kind, kind.kind == "s")
        if form.effects.accesses:
            return unknown(64, high=(1 << kind.bits) - 1 if kind.kind != "s" and kind.bits < 64 else None)
        given = [self._operand(place, operand, context) for operand in operands[1:]]
        return computed(form, kind, given, result.type.bits, self.threads)

    def _parameter(self, operand: Operand, kind: ScalarType, signed: bool) -> Value:
        if not isinstance(operand, Address) or not isinstance(operand.base, Symbol):
            return unknown(64)
        name, offset = operand.base.symbol, operand.offset + operand.base.offset
        origin = self.known.array(name) if kind.bits == 64 and not offset else ""
        if origin:
            return Value({None: Part()}, EXACT, origin)
        number = self.known.parameter(name, offset, kind.bits // 8)
        if number is None:
            return unknown(64)
        if signed and number >> (kind.bits - 1):
            return constant(number - (1 << kind.bits))
        return constant(number, kind.bits)

    # Predicates

    def _predicate(self, node: Values) -> tuple[Any, Any]:
        """The threads in which a predicate may hold, and those in which it may not."""
        found = self._predicates.get(node)
        if found is None:
            found = self._find_predicate(node)
            if not self._open:
                self._predicates[node] = found
        return found

    def _find_predicate(self, node: Values) -> tuple[Any, Any]:
        every = self._every
        if not isinstance(node, Definition) or self._depth >= DEPTH:
            return every, every
        statement = self.graph.statements[node.place]
        if not isinstance(statement, Instruction) or statement.guard is not None:
            return every, every
        form, operands = statement.form, statement.operands
        self._depth += 1
        try:
            if form.opcode in ("and", "or", "not", "mov") and form.type is not None and form.type.kind == "p":
                parts = [self._predicate_operand(node.place, operand) for operand in operands[1:]]
                return _combined(form.opcode, parts)
            op = self.graph.def_use[node.place]
            if form.opcode == "setp" and len(op.writes) == 1 and len(op.reads) in (2, 3):
                found = self._compared(node.place, statement, op.reads) or (every, every)
                if len(op.reads) == 2:
                    return found
                joins = [token for token in form.tokens if token in ("and", "or")]
                if joins:
                    return _combined(joins[0], [found, self._predicate_operand(node.place, op.reads[2])])
        finally:
            self._depth -= 1
        return every, every

    def _predicate_operand(self, place: int, operand: Operand) -> tuple[Any, Any]:
        if isinstance(operand, Not):
            return self._predicate(self.definitions.reaching(place, operand.predicate.name))[::-1]
        if isinstance(operand, Register):
            return self._predicate(self.definitions.reaching(place, operand.name))
        every = self._every
        if isinstance(operand, Immediate):
            return (every, ~every) if operand.bits else (~every, every)
        return every, every

    def _compared(
        self, place: int, statement: Instruction, reads: Sequence[Operand]
    ) -> tuple[Any, Any] | None:
        kind, test = statement.form.type, statement.form.tokens[0]
        if kind is None or kind.kind not in "usb" or kind.lanes != 1 or kind.bits not in (32, 64):
            return None
        signed = kind.kind == "s" and test not in UNSIGNED
        test = UNSIGNED.get(test, test)
        if test not in OPPOSITE:
            return None
        a, b = (self._operand(place, operand, self._contexts[()]) for operand in reads[:2])
        every = self._every
        if kind.bits == 32:
            x, y = numbers(a, 32, signed, self.threads), numbers(b, 32, signed, self.threads)
            if x is not None and y is not None:
                found = compared(test, x, y)
                return found, ~found
        left, right = is_exact(a, kind.bits, signed), is_exact(b, kind.bits, signed)
        if left is not None and right is not None:
            always, never = decided(test, left, right)
            if always:
                return every, ~every
            if never:
                return ~every, every
        return every, every


def _combined(opcode: str, parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Where a combination of predicates may hold, and may not."""
    yes, no = parts[0]
    if opcode == "not":
        return no, yes
    for other_yes, other_no in parts[1:]:
        yes, no = (yes & other_yes, no | other_no) if opcode == "and" else (yes | other_yes, no & other_no)
    return yes, no
