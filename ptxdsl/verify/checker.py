"""What no assembler should see: the rules of PTX that a module can break although every statement of it is well formed.

ptxas is laxer than the manual (it takes numbers that do not fit, and addresses of 32 bits that it then fails on), and
what it does refuse it refuses in terms of the PTX. Here each offence is reported at the Python line that made it. The
check runs after tracing and after parsing, so it has to cost little: what depends only on the form and the types of
the operands is looked up from the second time on.
"""

from __future__ import annotations

import re
from operator import itemgetter

from .. import ir
from ..analysis.definite_assignment import Block, assigned, early_reads
from ..isa.legacy import legacy_needs
from ..isa.targets import serves, version_text
from .declarations import ModuleContext, fail
from .form_plans import READ, WRITE, FormPlan, form_plan
from .statements import ADDRESSES, StatementChecker, number

__all__ = ["verify"]

_C = (".cu", ".cuh", ".h", ".hpp", ".hxx", ".cpp", ".cc", ".c", ".inl")
_MANY = 4096
"""Shapes kept for a form: numbers are part of a shape, so that there could be any number of them."""


def verify(module: ir.Module, *, foreign: bool = False, filename: str = "<ptx>") -> None:
    """Raise VerifyError at the first offence of a module; return if there is none.

    A register that is read on a path on which nothing wrote it is an offence where the statement carries its Python
    line. Text without lines may also read registers that nothing writes at all, and with the lines of C++, or in a
    ``foreign`` module, anything goes: C++ allows a variable without a value that is never used.
    ``filename`` names the text in errors about statements that carry no Python line.

    >>> from ..text import parse
    >>> verify(parse(".version 8.0\\n.target sm_90\\n.entry k() { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; ret; }"))
    """
    checker = ModuleContext(module, foreign, filename)
    checker.head()
    for function in module.functions:
        _declarations(checker, function)
        if function.body is not None:
            _FunctionChecker(checker, function).check()


def _declarations(module: ModuleContext, function: ir.Function) -> None:
    """What the version and target must have for the directives and types of a function."""
    module.attributes(function.attributes)
    for prototype in (function, *function.prototypes.values()):
        module.directives(prototype)
    if function.kind == "entry":
        module.parameters(function)
    for kind in set(map(itemgetter(1), function.registers)):
        module.type(kind, "a register")
    for variable in function.variables:
        module.variable(variable)
    module.fits("local", function.variables, f" of {function.name}")


class _FunctionChecker(StatementChecker):
    def check(self) -> None:
        """The names that a function declares, and its statements."""
        function = self.function
        self._names()
        blocks, places = self._statements()
        for table, names in function.branch_tables.items():
            for name in names:
                if name not in self.labels:
                    fail(f"the list {table} names the label {name}, which is nowhere in {function.name}")
        if not self.module.foreign:
            self._assigned(blocks, places)

    # -- what is declared

    def _names(self) -> None:
        function = self.function
        if len(dict(function.registers)) != len(function.registers):
            self._twice([register.name for register in function.registers])
        self._twice([*self.local, *self.parameters] if self.local.keys() & self.parameters.keys() else [])
        labels = [s.name for s in function.body or () if s.__class__ is ir.Label]
        self.labels = set(labels)
        if len(labels) != len(self.labels):
            self._twice(labels)

    def _twice(self, names: list[str]) -> None:
        for name in names:
            if names.count(name) > 1:
                fail(f"{name} is declared twice in {self.function.name}", hint="give one of the two another name")

    def _assigned(self, blocks: list[Block], places: dict[str, int]) -> None:
        passed = {p.name for p in (*self.function.parameters, *self.function.results) if p.space == "reg"}
        given = [register for register in self.function.registers if register.name in passed] if passed else ()
        for register, statement in early_reads(blocks, places, given):
            if statement.loc is None and register not in assigned(self.function):
                continue
            if statement.loc is not None and statement.loc.file.endswith(_C):
                continue
            name, kind = register
            if statement.loc is None or re.match(r"%[a-z]+\d+$", name):
                zero = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(str(kind), "0")
                hint = f"give it a value first: `mov.{kind} {name}, {zero};`"
            else:
                hint = f"give it a value first: `{name[1:]}.set(...)`"
            self.fail(statement, f"{name} is read here, and not every path to this line has written it", hint)

    # -- instructions

    def _statements(self) -> tuple[list[Block], dict[str, int]]:  # noqa: C901 - one loop: it runs for every operand
        """Check every statement; the basic blocks, and the number of the one that each label begins."""
        declared, plans, kinds = self.declared, self.module.plans, ADDRESSES
        register, immediate, address, instruction = ir.Register, ir.Immediate, ir.Address, ir.Instruction
        blocks, places = [self.block], {}
        defined, exposed = self.block.defined, self.block.exposed
        for s in self.function.body or ():
            if isinstance(s, instruction):
                roles, arity, bounded, ends, branches, shapes = plans.get(s.form) or self._admit(s)
                if s.guard is not None:
                    self.guard(s)
                shape: list[object] = []
                for role, o in zip(roles, reversed(s.operands)):
                    if o.__class__ is register:
                        if o not in defined:
                            if o not in declared:
                                self.undeclared(s, o)
                            if role != WRITE and o not in exposed:
                                exposed[o] = s
                            if role != READ:
                                defined.add(o)
                        shape.append(o[1])
                    elif o.__class__ is immediate:
                        shape.append(o if bounded else number(o))
                    elif o.__class__ is address and not o[2]:
                        base = o[0]
                        if base.__class__ is register:
                            if base not in defined:
                                self.use(s, base, READ)
                            shape.append(kinds[base[1]])
                        else:
                            shape.append(self.symbol_space(s, o))
                    else:
                        shape.append(self.shape(s, o, role))
                key = tuple(shape)
                if key not in shapes or len(s.operands) != arity:
                    self.operands(s)
                    if len(shapes) < _MANY:
                        shapes.add(key)
                if not ends:
                    continue
                self.block.targets = self._targets(s) if branches else []
                self.block.falls = s.guard is not None
            elif isinstance(s, ir.Label):
                places[s.name] = len(blocks)
            else:
                if isinstance(s, ir.Call):
                    self.call(s)
                continue
            self.block = Block()
            blocks.append(self.block)
            defined, exposed = self.block.defined, self.block.exposed
        return blocks, places

    def _targets(self, branch: ir.Instruction) -> list[str]:
        """The labels that a branch may go to."""
        tables = self.function.branch_tables
        names = [o[0] for o in branch.operands if isinstance(o, (ir.LabelRef, ir.Symbol))]
        return [target for name in names for target in tables.get(name, (name,))]

    def _admit(self, statement: ir.Instruction) -> FormPlan:
        """The plan of a form, once the module's version and target have it."""
        form = statement.form
        loc = self.loc(statement)
        self.module.needs(form.needs, f"`{form.mnemonic}`", loc)
        if self.module.is_legacy:
            self.module.needs(legacy_needs(form.mnemonic), f"`{form.mnemonic}`", loc)
        until = form.row.until
        module = self.module.module
        if until is not None and module.version >= until and serves(module.target, "sm_70"):
            fail(
                f"`{form.mnemonic}` is gone since PTX {version_text(until)}", loc=loc,
                hint=f"say which lanes take part: `{form.mnemonic.replace('.', '.sync.', 1)}`",
            )
        found = self.module.plans[form] = form_plan(form, self.module.module.address_size)
        return found
