"""Reading instructions and calls: the form that a mnemonic and its operands spell."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from .. import ir
from ..errors import Loc, ParseError, UnknownInstruction
from ..ir.operand_matching import fits, mismatch
from ..isa import Form, lookup
from ..isa.orders import BRACED, reordered
from ..types import pred
from .legacy import forms_of
from .context import Context
from .reader import Reader

__all__ = ["InstructionReader"]

_ALL_USED = re.compile(r"tcgen05\.|spcompress|spdecompress|wmma\.mma|tex\..*\.v2\.f16x2")
"""Instructions of which ptxas takes no `_` among the results."""


class InstructionReader(Reader):
    """The instructions of one function."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.forms = forms_of(context.result.version, context.result.target)

    def _flush(self, statement: ir.Instruction | ir.Call) -> None:
        """Put what computes operands of a statement before it."""
        for computed in self.pending.values():
            self.body.append(replace(computed, guard=statement.guard, loc=statement.loc, line=statement.line))
        self.pending.clear()

    def _respell(self, mnemonic: str, position: int, arity: int) -> tuple[str, tuple[Form, ...]]:
        """The forms of a mnemonic with spaces, or in another order than the table's; an error if there are none."""
        written = "".join(mnemonic.split())
        spelled = next(iter(reordered(written)), written)
        try:
            return spelled, self.forms(spelled, arity)
        except UnknownInstruction as error:
            meant = reordered(written, loose=True)
            hint = f"these modifiers are in the order `{meant[0]}`" if meant else error.hint
            self.source.fail(error.message, position, hint=hint)

    def _choose(
        self, mnemonic: str, candidates: tuple[Form, ...], parts: list[str], start: int
    ) -> tuple[Form, tuple[ir.Operand, ...]]:
        """The form, of several that a mnemonic spells, that the operands fit; else the nearest."""
        if not candidates:
            self._miscounted(mnemonic, len(parts), start)
        self.lenient = False
        readings: list[tuple[int, int, Form, tuple[ir.Operand, ...]]] = []
        failure: ParseError | None = None
        for number, form in enumerate(candidates):
            try:
                operands = tuple([self.names.get(p) or self.operand(p, s) for p, s in zip(parts, form.operands)])
            except ParseError as error:
                failure = failure or error
                continue
            relaxed = form.row.relaxed
            wrong = sum(mismatch(s, o, relaxed) is not None for s, o in zip(form.operands, operands))
            readings.append((wrong, number, form, operands))
            if not wrong:
                break
        self.lenient = True
        if not readings:
            assert failure is not None
            try:
                raise failure
            finally:  # an error holds this frame, and so must not be held by it
                failure = None
        wrong, _, form, operands = min(readings)
        return (form, operands) if not wrong else self._lenient(candidates, parts) or (form, operands)

    def _lenient(self, candidates: tuple[Form, ...], parts: list[str]) -> tuple[Form, tuple[ir.Operand, ...]] | None:
        """The first form that the operands fit with some of them computed before the statement."""
        made, declared = dict(self.pending), len(self.result.registers)
        for form in candidates:
            try:
                operands = tuple([self.names.get(p) or self.operand(p, s) for p, s in zip(parts, form.operands)])
            except ParseError:
                operands = ()
            if form.opcode == "mov" and operands and isinstance(operands[-1], ir.SpecialRegister):
                operands = (*operands[:-1], self.in_register(operands[-1], form.operands[-1]))
            if operands and fits(form, operands):
                return form, operands
            self.pending, self.result.registers[declared:] = dict(made), []
        return None

    def adapted(self, form: Form) -> Form:
        """The form of an instruction with unusual operands; an error where ptxas does not take them."""
        unusual, self.unusual = self.unusual, {}
        if "braces" in unusual and form.opcode not in BRACED:
            self.fail(f"`{form.mnemonic}` takes no operand in braces there", unusual["braces"], "leave out the braces")
        if "unused" in unusual and _ALL_USED.match(form.mnemonic):
            self.fail(f"`{form.mnemonic}` writes all of its results", "_", "give it a register that nothing reads")
        return self.in_shared(form) if "narrow" in unusual else form

    def in_shared(self, form: Form) -> Form:
        """The form with the state space that an address of 32 bits implies, where the memory can only be shared.

        ptxas takes `ldmatrix...b16 {..}, [%r1]`, of the same code as `ldmatrix...shared.b16`.
        """
        if form.space != "generic" or reordered(f"{form.mnemonic}.global"):
            return form
        for space in ("shared::cta", "shared", "shared::cluster"):
            for spelled in reordered(f"{form.mnemonic}.{space}"):
                for other in self.forms(spelled, len(form.operands)):
                    if [o.kind for o in other.operands] == [o.kind for o in form.operands]:
                        return other
        return form

    def _miscounted(self, mnemonic: str, count: int, start: int) -> NoReturn:
        forms = lookup(mnemonic)
        counts = sorted({len(form.operands) for form in forms})
        said = " or ".join(map(str, counts))
        if self.source.text.find("\n", start, self.source.text.find(";", start)) >= 0:
            hint = "is a `;` missing at its end?"
            self.source.fail(f"`{mnemonic}` takes {said} operands, not {count}", start, hint=hint)
        self.source.fail(
            f"`{mnemonic}` takes {said} operand{'' if said == '1' else 's'}, not {count}", start,
            hint="; or ".join(dict.fromkeys(f"{f.row.syntax}" for f in forms)),
        )

    def _guard(self, name: str, negated: str, position: int) -> ir.Register | ir.Not:
        found = self.names.get(name)
        if not isinstance(found, ir.Register) or found.type is not pred:
            what = "is not declared" if found is None else "is no predicate"
            self.source.fail(f"the guard {name} {what}", position, hint="declare it: `.reg .pred p;`")
        return ir.Not(found) if negated else found

    def _call(
        self, text: str, uniform: bool, guard: ir.Register | ir.Not | None, loc: Loc | None, line: int
    ) -> ir.Call:
        groups = self.groups(text)
        results = self.arguments(groups.pop(0), []) if groups and groups[0].startswith("(") else ()
        if not groups:
            self.fail("a call without a function", text)
        name = groups.pop(0)
        callee = self.names.get(name) or self.context.symbols.get(name)
        if not isinstance(callee, (ir.Symbol, ir.Register)):
            self.unknown(name)
        given = groups.pop(0) if groups and groups[0].startswith("(") else "()"
        prototype = None
        if groups:
            found = self.names.get(groups[0])
            if not isinstance(found, ir.Symbol):
                self.fail(f"no .callprototype is called {groups[0]}", groups[0])
            prototype = found.symbol
        if len(groups) > 1:
            hint = "a call is `call (results), function, (arguments), prototype`"
            self.fail(f"`{groups[1]}` is too much", groups[1], hint)
        arguments = self.arguments(given, self._parameters(callee, prototype))
        return ir.Call(callee, results, arguments, prototype, uniform, guard, loc, line)

    def _parameters(self, callee: ir.Symbol | ir.Register, prototype: str | None) -> list[ir.Parameter]:
        """What is declared of the parameters of a call, which gives numbers among its arguments their types."""
        if prototype in self.result.prototypes:
            return self.result.prototypes[prototype].parameters
        targets = self.result.call_targets.get(prototype or "", ())
        head = self.context.heads.get(callee.symbol if isinstance(callee, ir.Symbol) else next(iter(targets), ""))
        return head.parameters if head is not None else []
