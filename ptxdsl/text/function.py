"""Reading a function: its head, its statements, its scopes.

The statements are instructions nearly all, so these have a path of their own: one regular expression for the
statement, one look-up for each operand that is a name. Everything else goes by tokens.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NoReturn

from .. import ir
from ..errors import Loc, ParseError, UnknownInstruction
from ..isa import Form, lookup
from ..ir.operand_matching import fits, mismatch
from ..types import ScalarType, pred
from . import declarations
from .legacy import forms_of
from .escape import unescape
from .reader import LOC, Context, Reader
from .scopes import Scope
from .source import Token

__all__ = ["FunctionParser"]

_SPACES = ("global", "const", "shared", "local", "param")
_INSTRUCTION = re.compile(
    r"\s*(?:@\s*(!?)\s*([%$\w]+)\s+)?([a-z]\w*(?:\s?\.\w+(?:::?\w+)*)*)(?![\w.:$%])(?!\s*:)\s*([^;]*);"
)
_ATOMIC = re.compile(r"^(atom|red)((?:\.(?:[a-z]\w*)(?:::cta|::cluster)?)+?)(\.(?:noftz|v[248]|[bsu]?f?\d).*)$")
_ORDER = (
    ("relaxed", "acquire", "release", "acq_rel"), ("cta", "cluster", "gpu", "sys"),
    ("global", "shared", "shared::cta", "shared::cluster"),
)
_RESPELLED = (
    # nvcc puts the rounding last, cuda::ptx writes tcgen05.ld.red....f32.min.
    (re.compile(r"^(wmma\.mma\.\S+)((?:\.f64){4})(\.r[nzmp])$"), r"\1\3\2"),
    (re.compile(r"^(tcgen05\.ld\.red\..*)\.([fus]32)((?:\.(?:min|max|abs|NaN))+)$"), r"\1\3.\2"),
)
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")


def _respelled(mnemonic: str) -> str:
    """A mnemonic in the manual's order: ptxas takes others too.

    cooperative_groups writes atom.add.release.gpu.u32, cuda's headers atom.global.cta.add.u32, Triton
    atom.global.gpu.acq_rel.add.u32.
    """
    spelled = re.sub(r"\s", "", mnemonic)
    for pattern, order in _RESPELLED:
        spelled = pattern.sub(order, spelled)
    match = _ATOMIC.match(spelled)
    if match is None:
        return spelled
    tokens = match[2][1:].split(".")
    rank = {token: place for place, group in enumerate(_ORDER) for token in group}
    return ".".join([match[1], *sorted(tokens, key=lambda token: rank.get(token, len(_ORDER)))]) + match[3]


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


class FunctionParser(Reader):
    """An entry or function, from the name on."""

    def __init__(self, context: Context, kind: str, linkage: str) -> None:
        super().__init__(context)
        self.result = ir.Function("", kind, linkage=linkage)
        self.tables: list[tuple[str, Scope, int]] = []
        self.forms = forms_of(context.result.version, context.result.target)

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
        if token.text == ";":
            function.body = None
            function.registers = []
        elif token.text != "{" and function.kind == "func" and (token.text[:1] == "." or not token.text):
            source.at = token.start  # a declaration as nvcc once wrote it
            function.body = None
            function.registers = []
        elif token.text != "{":
            source.fail(f"expected `{{` and the body of {name.text}, not {source.shown(token)}", token.start)
        else:
            self._body()
            self._resolve()
            own = {register.name for register in function.registers}
            function.registers += [r for r in self.context.registers.values() if r.name not in own]
        return function

    # -- statements

    def _body(self) -> None:  # noqa: C901 - one loop: it runs for every statement
        source, names, text = self.source, self.names, self.source.text
        body = self.result.body = self.body
        loc: Loc | None = None
        position = last = source.at
        line = source.line(position)
        remarks = [remark for remark in reversed(source.remarks) if remark[0] >= position]
        forms, operand, instruction = self.forms, self.operand, _INSTRUCTION.match
        while True:
            match = instruction(text, position)
            if match is None:
                match = LOC.match(text, position)
                if match is not None:
                    loc = self.context.location(match[1], match[2])
                    position = match.end()
                    continue
                source.at = position
                token = source.peek()
                while remarks and remarks[-1][0] < token.start:
                    body.append(ir.Comment(unescape(remarks.pop()[1])))
                if not self._other(token):
                    return
                position = source.at
                continue
            negated, guard_name, mnemonic, rest = match.groups()
            start = match.start(3)
            line += text.count("\n", last, start)
            last = start
            while remarks and remarks[-1][0] < start:
                body.append(ir.Comment(unescape(remarks.pop()[1])))
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
            statement = ir.Instruction(form, operands, guard, loc, line)
            if self.made:
                self._flush(statement)
            body.append(statement)

    def _flush(self, statement: ir.Instruction | ir.Call) -> None:
        """Put what computes operands of a statement before it."""
        for made in self.made.values():
            self.body.append(replace(made, guard=statement.guard, loc=statement.loc, line=statement.line))
        self.made.clear()

    def _respell(self, mnemonic: str, position: int, arity: int) -> tuple[str, tuple[Form, ...]]:
        """The forms of a mnemonic that is spelled as it should not be, but is by NVIDIA; an error for another one."""
        spelled = _respelled(mnemonic)
        try:
            return spelled, self.forms(spelled, arity)
        except UnknownInstruction as error:
            self.source.fail(error.message, position, hint=error.hint)

    def _choose(
        self, mnemonic: str, candidates: tuple[Form, ...], parts: list[str], start: int
    ) -> tuple[Form, tuple[ir.Operand, ...]]:
        """The form, of several that a mnemonic spells, that the operands fit; else the nearest."""
        self.alone = False
        try:
            return self._nearest(mnemonic, candidates, parts, start)
        finally:
            self.alone = True

    def _nearest(
        self, mnemonic: str, candidates: tuple[Form, ...], parts: list[str], start: int
    ) -> tuple[Form, tuple[ir.Operand, ...]]:
        if not candidates:
            self._miscounted(mnemonic, len(parts), start)
        readings: list[tuple[int, int, Form, tuple[ir.Operand, ...]]] = []
        failure: ParseError | None = None
        for number, form in enumerate(candidates):
            try:
                operands = tuple([self.names.get(p) or self.operand(p, s) for p, s in zip(parts, form.operands)])
            except ParseError as error:
                failure = failure or error
                continue
            if fits(form, operands):
                return form, operands
            relaxed = form.row.relaxed
            wrong = sum(mismatch(s, o, relaxed) is not None for s, o in zip(form.operands, operands))
            readings.append((wrong, number, form, operands))
        if not readings:
            assert failure is not None
            raise failure
        return min(readings)[2:]

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
        source.fail(f"{source.shown(token)} begins no statement", token.start)

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
            targets = [source.name("a label").text]
            while source.accept(","):
                targets.append(source.name("a label").text)
            source.expect(";", f"the list {name}")
            if directive == ".branchtargets":
                function.branch_tables[unique] = tuple(targets)
                self.tables.append((unique, self.scopes.current, position))
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
        marks = declarations.directives(source)
        source.expect(";", "a .callprototype")
        return ir.Function(label, "func", _components(given), _components(results), marks, body=None, linkage="")

    def _resolve(self) -> None:
        """Let every use of a label mean the label of its scope."""
        for index, (scope, position) in self.uses.items():
            statement = self.body[index]
            assert isinstance(statement, ir.Instruction)
            statement.operands = tuple(
                ir.LabelRef(self._target(o.label, scope, position)) if isinstance(o, ir.LabelRef) else o
                for o in statement.operands
            )
        for table, scope, position in self.tables:
            targets = self.result.branch_tables[table]
            self.result.branch_tables[table] = tuple(self._target(name, scope, position) for name in targets)

    def _target(self, name: str, scope: Scope, position: int) -> str:
        found = scope.label(name)
        if found is None:
            import difflib

            near = difflib.get_close_matches(name, list(scope.labels), n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"place it: `{name}:`"
            self.source.fail(f"no label is called {name}", position, hint=hint)
        return found
