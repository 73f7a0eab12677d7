"""The sanitizer's check of indices: an access that stays in its array, and leaves its row.

``a[i, 6]`` of a (4, 4) array is the address of ``a[i + 1, 2]``: the text of a kernel has the sum only, and memory is
there. So the tracer leaves with each address what it was computed from (`ir.Function.indexed`), which no text shows,
and here each index is compared with its extent before the access, under its guard. What is outside calls the host,
which reports the indices that were asked, and the access goes on.

It judges what is written with an index for each dimension: ``a[i, j]``, a row's ``a[i][j]``, ``a.load(i, j, width=4)``
by its last element, and ``a.at(i, j)`` that an instruction takes. It cannot see what is computed with pointers
(``a.at(i, 0)[j]``, ``a + n``, ``a.cast(b32)``): who flattens an array on purpose does it so. Nor does it judge what an
instruction may leave unread: the source of a copy whose size is a number of run time, and bulk copies, whose rows may
be longer than the array's. Arrays of one dimension need no check: what is outside is in no array.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir import Address, Call, Function, Immediate, Indexed, Instruction, Module, Operand, Register, Symbol
from ...types import TYPES
from .builder import PtxBuilder, integer

__all__ = ["OUTSIDE", "Annotations", "checks_index"]

OUTSIDE = "%outside"
"""The function that the lanes call whose indices are outside: with the number of what was asked, and the indices."""
_U32 = TYPES["u32"]


def checks_index(statement: object) -> bool:
    """Whether a statement is the call of a check."""
    return isinstance(statement, Call) and statement.callee == Symbol(OUTSIDE)


class Annotations:
    """What was traced of a module's addresses, for the statements that its text was read into.

    ``asked`` is what each check compares, by its number.
    """

    def __init__(self, traced: Module, read: Module) -> None:
        self.asked: list[Indexed] = []
        self._indexed: dict[int, dict[int, Indexed]] = {}
        self._kept: dict[int, list[tuple[Register, Register]]] = {}
        for one, other in zip(traced.functions, read.functions):
            if one.name == other.name and one.indexed and one.body is not None and other.body is not None:
                self._match(one, other)

    def __bool__(self) -> bool:
        return bool(self._indexed)

    def _match(self, traced: Function, read: Function) -> None:
        """Give what is known of each traced statement to the one that it was read as."""
        asked = {
            id(address): origin._replace(indices=origin.indices + tuple(map(_index, last)))
            for address, origin, last in traced.indexed
        }
        kept: dict[int, list[tuple[Register, Register]]] = {}
        for place, copy, source in traced.kept:
            kept.setdefault(id(place), []).append((copy, source))
        ones, others = list(traced.instructions()), list(read.instructions())
        if len(ones) != len(others):
            return
        for one, other in zip(ones, others):
            found = {n: asked[id(o)] for n, o in enumerate(one.operands) if id(o) in asked and isinstance(o, Address)}
            if found:
                self._indexed[id(other)] = found
            if id(one) in kept:
                self._kept[id(other)] = kept[id(one)]

    def of(self, statement: Instruction) -> Indexed | None:
        """What the address of an access was computed from, where it is to be judged."""
        found = self._indexed.get(id(statement))
        judged = found and _judged(statement)
        return next((asked for n, asked in (found or {}).items() if n == judged), None) if judged is not None else None

    def checked(self, function: Function) -> Function:
        """A function with the checks of its accesses."""
        if any(id(s) in self._indexed for s in function.instructions()):
            return _Checks(function, self).run()
        return function

    def module(self, module: Module) -> Module:
        """The module with those of all functions that it calls."""
        functions = [f if f.kind == "entry" else self.checked(f) for f in module.functions]
        return replace(module, functions=functions)


def _index(given: Any) -> int | Register:
    """An index as it is compared: a register has the type of the Python variable."""
    found: int | Register = Register(given[0].name, given[1]) if given.__class__ is tuple else given
    return found


def _judged(statement: Instruction) -> int | None:
    """The operand whose indices an instruction must keep; None where it may do without the element."""
    effects = statement.form.effects
    if effects.completes == "async_group":
        return 0  # the source may be read in part, or not at all
    if effects.completes or effects.access is None or statement.form.space == "param":
        return None
    return effects.access.operand


class _Checks(PtxBuilder):
    """Adds the comparisons to one function."""

    def __init__(self, function: Function, annotations: Annotations) -> None:
        super().__init__(function)
        self.annotations = annotations
        self.outside = self.register(OUTSIDE, "pred")
        self.other = self.register(f"{OUTSIDE}.other", "pred")

    def run(self) -> Function:
        body = self.function.body or []
        for parameter in sorted({e.symbol for e in self._extents(body) if isinstance(e, Symbol)}):
            self.emit("ld.param.u32", self._extent(Symbol(parameter)), Address(Symbol(parameter)))
        for statement in body:
            if isinstance(statement, Instruction):
                self.statement = statement
                for copy, source in self.annotations._kept.get(id(statement), ()):
                    self.move(self.register(copy.name, copy.type.register), source)
                asked = self.annotations.of(statement)
                if asked is not None:
                    self._check(statement, asked)
            self.body.append(statement)
        return self.result()

    def _extents(self, body: list[Any]) -> list[int | Symbol]:
        found = [self.annotations.of(s) for s in body if isinstance(s, Instruction)]
        return [extent for asked in found if asked is not None for extent in asked.shape]

    def _extent(self, extent: Symbol) -> Register:
        return self.register(f"{OUTSIDE}.{extent.symbol}", _U32)

    def _check(self, statement: Instruction, asked: Indexed) -> None:
        """Call the host for lanes whose index is not below its extent, read without a sign: below 0 is outside too."""
        access = statement.form.effects.access
        width = max(1, access.nbytes // asked.type.bytes) if access is not None and _is_vector(statement) else 1
        last = len(asked.indices) - 1
        tests = 0
        indices = [self.register(i.name, i.type) if isinstance(i, Register) else i for i in asked.indices]
        for axis, (index, extent) in enumerate(zip(indices, asked.shape)):
            tests += self._compare(index, extent, width if axis == last else 1, tests > 0)
        if not tests:
            return
        self.both(self.outside, statement.guard)
        number = len(self.annotations.asked)
        self.annotations.asked.append(asked)
        numbers = [index if isinstance(index, Register) else integer(index, _U32) for index in indices]
        self.call(OUTSIDE, Immediate(number, _U32), *numbers, guard=self.outside)

    def _compare(self, index: int | Register, extent: int | Symbol, width: int, more: bool) -> bool:
        """Whether it takes a test to know that so many elements from an index on lie in an extent."""
        if isinstance(index, int) and isinstance(extent, int):
            if index + width <= extent:
                return False
            self._note("setp.ge.u32", integer(extent, _U32), integer(extent, _U32), more)
            return True
        if isinstance(index, int):
            self._note("setp.lt.u32", self._extent(extent), integer(index + width, _U32), more)  # type: ignore[arg-type]
            return True
        kind = f"u{index.type.bits}"
        end: Operand = integer(extent, TYPES[kind]) if isinstance(extent, int) else self._extent(extent)
        if isinstance(end, Register) and index.type.bits == 64:
            wide = self.register(f"{end.name}.wide", "u64")
            self.emit("cvt.u64.u32", wide, end)
            end = wide
        if width > 1 and isinstance(extent, int) and extent >= width:
            self._note(f"setp.gt.{kind}", index, integer(extent - width, TYPES[kind]), more)
            return True
        self._note(f"setp.ge.{kind}", index, end, more)
        if width > 1:
            last = self.register(f"{OUTSIDE}.last{index.type.bits}", kind)
            self.emit(f"add.{kind}", last, index, width - 1)
            self._note(f"setp.ge.{kind}", last, end, True)
        return True

    def _note(self, mnemonic: str, first: Operand, second: Operand, more: bool) -> None:
        if isinstance(first, Immediate):  # known without a test: every lane is outside
            register = self.register(f"{OUTSIDE}.always", _U32)
            self.emit("mov.u32", register, first)
            first = register
        self.emit(mnemonic, self.other if more else self.outside, first, second)
        if more:
            self.emit("or.pred", self.outside, self.outside, self.other)


def _is_vector(statement: Instruction) -> bool:
    """Whether an instruction accesses elements side by side, as ``ld.v4`` does."""
    return statement.form.effects.access is not None
