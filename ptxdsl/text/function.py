"""Reading a function: its head, its statements, its scopes.

Nearly all statements are instructions, so these are read without tokens: by one regular expression for the statement,
and one lookup for each operand that is a name.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from .. import ir
from ..errors import Loc, UnknownInstruction, did_you_mean, similar
from ..types import ScalarType
from . import declarations
from .escape import unescape
from .instructions import InstructionReader
from .context import LOC, Context
from .scopes import Scope
from .source import Token

__all__ = ["FunctionParser"]

_SPACES = ("global", "const", "shared", "local", "param")
_INSTRUCTION = re.compile(
    r"\s*(?:@\s*(!?)\s*([%$\w]+)\s+)?([a-z]\w*(?:\s*\.\w+(?:::?\w+)*)*)(?![\w.:$%])(?!\s*:)\s*([^;]*);"
)
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")


def _components(parameters: list[ir.Parameter]) -> list[ir.Parameter]:
    """The parameters, vector registers as their components."""
    found: list[ir.Parameter] = []
    for parameter in parameters:
        if parameter.space == "reg" and parameter.shape:
            letters = "xyzw"[: parameter.shape[0]]
            found += [ir.Parameter(f"{parameter.name}${x}", parameter.type, space="reg") for x in letters]
        else:
            found.append(parameter)
    return found


class FunctionParser(InstructionReader):
    """An entry or function, from the name on."""

    def __init__(self, context: Context, kind: str, linkage: str) -> None:
        super().__init__(context)
        self.result = ir.Function("", kind, linkage=linkage)
        self.branch_tables: list[tuple[str, Scope, int]] = []

    def function(self) -> ir.Function:
        """The head, and the body unless it is a declaration."""
        source, function = self.source, self.result
        function.attributes = declarations.attributes(source)
        results = declarations.parameters(source) if function.kind == "func" else []
        name = source.name("a function")
        function.name = name.text
        parameters = declarations.parameters(source)
        function.results, function.parameters = _components(results), _components(parameters)
        self.names.update(self.context.registers)
        function.directives = declarations.directives(source)
        self.context.symbols.setdefault(name.text, ir.Symbol(name.text))
        self.context.heads[name.text] = function
        for parameter in (*function.results, *function.parameters):
            self._declare(parameter.name, name.start)
            if parameter.space == "reg":
                register = ir.Register(parameter.name, parameter.type)
                function.registers.append(register)
                self.names[parameter.name] = register
            else:
                self.names[parameter.name] = ir.Symbol(parameter.name)
        for parameter in (*results, *parameters):
            if parameter.space == "reg" and parameter.shape:
                self._vector_register(parameter.name, [ir.Register(p.name, p.type) for p in _components([parameter])])
        token = source.next()
        if token.text == "{":
            self._body()
            self._resolve()
            declared = {register.name for register in function.registers}
            function.registers += [r for r in self.context.registers.values() if r.name not in declared]
            owned = {variable.name for variable in function.variables}
            function.variables += [replace(v) for v in self.context.locals if v.name not in owned]
            return function
        function.body, function.registers = None, []
        if token.text != ";":
            if function.kind != "func" or (token.text and token.text[0] != "."):
                source.fail(f"expected `{{` and the body of {name.text}, not {source.quoted(token)}", token.start)
            source.at = token.start  # a declaration without `;`, as old versions of nvcc wrote it
        return function

    # -- statements

    def _body(self) -> None:  # noqa: C901 - one loop: it runs for every statement
        source, names, text = self.source, self.names, self.source.text
        body = self.result.body = self.body
        loc: Loc | None = None
        position = last = source.at
        line = source.line(position)
        comments = [comment for comment in reversed(source.comments) if comment[0] >= position]
        forms, operand, instruction = self.forms, self.operand, _INSTRUCTION.match
        while True:
            match = instruction(text, position)
            if match is None:
                match = LOC.match(text, position)
                if match is not None:
                    loc = self.context.location(match)
                    position = match.end()
                    continue
                source.at = position
                token = source.peek()
                while comments and comments[-1][0] < token.start:
                    body.append(ir.Comment(unescape(comments.pop()[1])))
                if not self._other(token):
                    return
                position = source.at
                continue
            negated, guard_name, mnemonic, rest = match.groups()
            start = match.start(3)
            line += text.count("\n", last, start)
            last = start
            while comments and comments[-1][0] < start:
                body.append(ir.Comment(unescape(comments.pop()[1])))
            self.position = match.start(4)
            guard = None if guard_name is None else self._guard(guard_name, negated, match.start(2))
            position = match.end()
            if mnemonic == "call" or mnemonic == "call.uni":
                call = self._call(rest, mnemonic == "call.uni", guard, loc, line)
                self._flush(call)
                body.append(call)
                continue
            rest = rest.replace(" ", "")
            parts = rest.split(",") if "[" not in rest and "{" not in rest and "(" not in rest else self.split(rest)
            if parts == [""]:
                parts = []
            elif "|" in parts[0]:
                parts[:1] = parts[0].split("|")
            try:
                candidates = forms(mnemonic, len(parts))
            except UnknownInstruction:
                mnemonic, candidates = self._respell(mnemonic, start, len(parts))
            if len(candidates) == 1:
                form = candidates[0]
                operands = tuple([names.get(p) or operand(p, s) for p, s in zip(parts, form.operands)])
            else:
                form, operands = self._choose(mnemonic, candidates, parts, start)
            if self.unusual:
                form = self.adapted(form)
            statement = ir.Instruction(form, operands, guard, loc, line)
            if self.pending:
                self._flush(statement)
            body.append(statement)

    # -- what is no instruction

    def _other(self, token: Token) -> bool:
        """A declaration, label or brace; False where the function ends."""
        source, text = self.source, token.text
        if text == "}":
            source.next()
            return self.scopes.leave()
        if text == "{":
            source.next()
            self.scopes.enter()
        elif text == ".reg":
            source.next()
            self._registers()
        elif text[1:] in _SPACES and text[0] == ".":
            source.next()
            self._variables(text[1:], token)
        elif text == ".pragma":
            source.next()
            self.body += [ir.Pragma(string) for string in declarations.strings(source)]
        elif match := _LABEL.match(source.text, source.at):
            source.at = match.end()
            self._label(match[1], match.start(1))
        elif text == ".file":
            self.context.file(token)
        elif text == ".section":
            source.next()
            self.context.section(token)
        elif not text:
            source.fail(f"the body of {self.result.name} does not end", token.start, hint="close it with `}`")
        else:
            self._stray(token)
        return True

    def _stray(self, token: Token) -> NoReturn:
        source = self.source
        if re.match(r"[a-z@]", token.text):
            source.fail("a statement without its `;`", token.start, hint="end it with `;`")
        source.fail(f"{source.quoted(token)} begins no statement", token.start)

    def _declare(self, name: str, position: int) -> str:
        unique = self.scopes.rename(name)
        if unique is None:
            self.source.fail(f"{name} is declared twice", position)
        return unique

    def _registers(self) -> None:
        kind, lanes, groups = declarations.registers(self.source)
        for found, start in groups:
            if not lanes and self.scopes.declare(found):
                registers = [ir.Register(each, kind) for each in found]
                self.result.registers += registers
                self.names.update(zip(found, registers))
            else:
                for each in found:
                    self._register(each, kind, lanes, start)

    def _register(self, name: str, kind: ScalarType, lanes: int, position: int) -> None:
        unique = self._declare(name, position)
        if not lanes:
            register = ir.Register(unique, kind)
            self.result.registers.append(register)
            self.scopes.bind(name, register)
            return
        parts = [ir.Register(self._declare(f"{unique}${letter}", position), kind) for letter in "xyzw"[:lanes]]
        self.result.registers += parts
        self._vector_register(name, parts)

    def _vector_register(self, name: str, parts: list[ir.Register]) -> None:
        """Let a name mean a vector of registers, and its name with a letter each of them."""
        self.scopes.bind(name, ir.Vector(tuple(parts)))
        for letter, colour, part in zip("xyzw", "rgba", parts):
            self.scopes.bind(f"{name}.{letter}", part)
            self.scopes.bind(f"{name}.{colour}", part)

    def _variables(self, space: str, token: Token) -> None:
        first = self.result.kind == "entry" and self.context.result.version < (1, 4)
        for variable in declarations.variables(self.source, space):
            name = variable.name
            variable.name = self._declare(name, token.start)
            if space == "param" and first:  # where the parameters of a kernel stood
                parameter = ir.Parameter(variable.name, variable.type, variable.shape, variable.align)
                self.result.parameters.append(parameter)
            elif space in ("global", "const"):
                self._hoist(variable)
            else:
                self.result.variables.append(variable)
            self.scopes.bind(name, ir.Symbol(variable.name))

    def _hoist(self, variable: ir.Variable) -> None:
        """Make a variable of the module of one that only the function can name."""
        symbols = self.context.symbols
        while variable.name in symbols:
            variable.name = f"{self.result.name}${variable.name}"
        symbols[variable.name] = ir.Symbol(variable.name)
        self.context.result.variables.append(variable)

    def _label(self, name: str, position: int) -> None:
        source, function = self.source, self.result
        unique = self._declare(name, position)
        directive = source.peek().text
        if directive == ".callprototype":
            source.next()
            function.prototypes[unique] = self._prototype(unique)
        elif directive in (".branchtargets", ".calltargets"):
            source.next()
            targets = source.listed(lambda source: source.name("a label").text)
            source.expect(";", f"the list {name}")
            if directive == ".branchtargets":
                function.branch_tables[unique] = tuple(targets)
                self.branch_tables.append((unique, self.scopes.current, position))
            else:
                function.call_targets[unique] = tuple(targets)
        else:
            self.scopes.current.labels[name] = unique
            self.body.append(ir.Label(unique))
            return
        self.scopes.bind(name, ir.Symbol(unique))

    def _prototype(self, label: str) -> ir.Function:
        source = self.source
        results = declarations.parameters(source)
        name = source.name("nothing, `_`")
        if name.text != "_":
            source.fail(f"the name in a .callprototype is `_`, not `{name.text}`", name.start)
        given = declarations.parameters(source)
        found = declarations.directives(source)
        source.expect(";", "a .callprototype")
        return ir.Function(label, "func", _components(given), _components(results), found, body=None, linkage="")

    def _resolve(self) -> None:
        """Let every use of a label mean the label of its scope."""
        for index, (scope, position) in self.label_uses.items():
            statement = self.body[index]
            assert isinstance(statement, ir.Instruction)
            statement.operands = tuple(
                ir.LabelRef(self._target(o.label, scope, position)) if isinstance(o, ir.LabelRef) else o
                for o in statement.operands
            )
        for table, scope, position in self.branch_tables:
            targets = self.result.branch_tables[table]
            self.result.branch_tables[table] = tuple(self._target(name, scope, position) for name in targets)

    def _target(self, name: str, scope: Scope, position: int) -> str:
        found = scope.label(name)
        if found is None:
            hint = did_you_mean(similar(name, scope.labels, 2, 0.6), "{}", f"place it: `{name}:`")
            self.source.fail(f"no label is called {name}", position, hint=hint)
        return found
