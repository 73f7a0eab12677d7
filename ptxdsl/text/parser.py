"""From text to a module: any PTX, ours or foreign, on the table.

The statements that a kernel consists of are instructions, so they have a path of their own: one regular expression for
the statement, one look-up for each operand that is a name. Everything else goes by tokens.

What the text says and the module does not keep: comments behind something (those on a line of their own stay), the
columns of ``.loc`` and where a line was inlined, time stamps of files, and nested scopes (`scopes`). Vector registers
(``.reg .v4 .f32 v``) become their components, constant expressions their value.
"""

from __future__ import annotations

import difflib
import re
from functools import cache
from typing import NoReturn

from .. import ir
from ..errors import Loc, ParseError, PtxTypeError, UnknownInstruction
from ..isa import Form, OperandSpec, lookup, special
from ..operands import fits, mismatch
from ..types import TYPES, ScalarType, pred
from . import declarations
from .escape import unescape
from .numbers import encoded, expression, literal
from .scopes import Scope, Scopes
from .source import Source, Token

__all__ = ["parse"]

_LINKAGES = ("extern", "visible", "weak", "common")
_SPACES = ("global", "const", "shared", "local", "param")
_FILE = re.compile(r'\.file\s+(\d+)\s+"((?:\\.|[^"\\])*)"(?:\s*,\s*\d+\s*,\s*\d+)?')
_SECTION = re.compile(r"\s*([\w.$]+)\s*\{([^}]*)\}")
_INSTRUCTION = re.compile(
    r"\s*(?:@\s*(!?)\s*([%$\w]+)\s+)?([a-z]\w*(?:\s?\.\w+(?:::\w+)*)*)(?![\w.:$%])(?!\s*:)\s*([^;]*);"
)
_LOC = re.compile(
    r"\s*\.loc\s+(\d+)\s+(\d+)(?:[ \t]+\d+)?(?:\s*,\s*function_name\s+[\w$.]+(?:\s*\+\s*\d+)?"
    r"\s*,\s*inlined_at\s+\d+\s+\d+\s+\d+)?"
)
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")
_PARTS = re.compile(r"(?:\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,\[{(])+")
_NAME = re.compile(r"[A-Za-z_$%][\w$]*$")
_SYMBOL = re.compile(r"([A-Za-z_$%][\w$]*)([-+].+)$")
_PLAIN = re.compile(r"(?:-?[1-9]\d*)?$")
_SPECIAL = re.compile(r"%\w+(?:\.[xyzw])?$")
_SELECTED = re.compile(r"(-?)([A-Za-z_$%][\w$]*)(?:\.([bh][0-7]+))?$")


def parse(text: str, filename: str = "<ptx>") -> ir.Module:
    """The module that a PTX text says.

    ``filename`` is what errors call the text. Raises ParseError, with the line shown, where the text is not PTX: an
    unknown opcode or modifier, a name that nobody declared, a number that does not fit. Whether operands have the
    types that the instruction wants is for `ptxdsl.verify`.

    >>> m = parse(".version 8.0\\n.target sm_90\\n.entry k() { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; ret; }")
    >>> m.function("k").body[0].operands
    (Register(name='%r1', type=b32), SpecialRegister(special='%tid.x'))
    """
    return _Parser(Source(text, filename)).module()


@cache
def _forms(mnemonic: str, arity: int) -> tuple[Form, ...]:
    return tuple(form for form in lookup(mnemonic) if len(form.operands) == arity)


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.result = ir.Module()
        self.files = {int(m[1]): unescape(m[2]) for m in _FILE.finditer(source.text)}
        self.symbols: dict[str, ir.Symbol] = {}
        self.locs: dict[tuple[str, str], Loc | None] = {}

    # -- the module

    def module(self) -> ir.Module:
        """Everything up to the end of the text."""
        source = self.source
        self._header()
        while True:
            token = source.next()
            if not token.text:
                return self.result
            handler = getattr(self, "_" + token.text[1:], None) if token.text in _MODULE_LEVEL else None
            if handler is None:
                self._definition(token)
            else:
                handler(token)

    def _header(self) -> None:
        source, module = self.source, self.result
        token = source.next()
        if token.text != ".version":
            source.fail("a module begins with `.version`", token.start, hint="write `.version 8.0` first")
        number = source.next()
        match = re.match(r"(\d+)\.(\d+)$", number.text)
        if match is None:
            source.fail(f"expected a version such as 8.0, not {source.shown(number)}", number.start)
        module.version = (int(match[1]), int(match[2]))
        token = source.next()
        if token.text != ".target":
            source.fail("behind `.version` comes `.target`", token.start, hint="write `.target sm_75`")
        names = [source.name("a target").text]
        while source.accept(","):
            names.append(source.name("a target or an option of it").text)
        module.target = next((name for name in names if name.startswith("sm_")), names[0])
        module.target_options = tuple(name for name in names if name != module.target)

    def _address_size(self, token: Token) -> None:
        size = self.source.integer("an address size")
        if size not in (32, 64):
            self.source.fail(f"an address size of {size}, which is neither 32 nor 64", token.start)
        self.result.address_size = size

    def _file(self, token: Token) -> None:
        match = _FILE.match(self.source.text, token.start)
        if match is None:
            self.source.fail('expected `.file number "name"`', token.start)
        self.source.at = match.end()

    def _loc(self, token: Token) -> None:
        match = _LOC.match(self.source.text, token.start)
        if match is None:
            self.source.fail("expected `.loc file line column`", token.start)
        self.source.at = match.end()

    def _section(self, token: Token) -> None:
        match = _SECTION.match(self.source.text, self.source.at)
        if match is None:
            self.source.fail("expected `.section name { ... }`", token.start)
        self.source.at = match.end()
        lines = (line.strip() for line in match[2].splitlines())
        self.result.sections.append((match[1], "\n".join(line for line in lines if line)))

    def _pragma(self, token: Token) -> None:
        strings = declarations.strings(self.source)
        for text in strings:
            if text.startswith(_LOCAL_PRAGMAS):
                self.source.fail(f'the pragma "{text}" outside a function', token.start, hint="move it into the function")
        self.result.directives.append(("pragma", strings))

    def _alias(self, _token: Token) -> None:
        name = self.source.name("an alias").text
        self.source.expect(",", "the name of an alias")
        other = self.source.name("a function").text
        self.source.expect(";", "an alias")
        self.result.directives.append(("alias", (name, other)))

    def _definition(self, token: Token) -> None:
        source, linkage = self.source, ""
        if token.text[1:] in _LINKAGES:
            linkage, token = token.text[1:], source.next()
        kind = token.text[1:]
        if not token.text.startswith(".") or kind not in ("entry", "func", *_SPACES[:-1]):
            near = difflib.get_close_matches(token.text, [".entry", ".func", ".global", ".const", ".shared"], n=1)
            source.fail(
                f"{source.shown(token)} begins nothing at the level of the module", token.start,
                hint=f"did you mean `{near[0]}`?" if near else "here stand .entry, .func, variables and directives",
            )
        if kind in ("entry", "func"):
            self.result.functions.append(_FunctionParser(self, kind, linkage).function())
            return
        if kind == "local":
            source.fail("a .local variable outside a function", token.start, hint="declare it in the function")
        for variable in declarations.variables(source, kind, linkage):
            self._declare(variable.name, token)
            self.result.variables.append(variable)

    def _declare(self, name: str, token: Token) -> None:
        if name in self.symbols:
            self.source.fail(f"{name} is declared twice", token.start)
        self.symbols[name] = ir.Symbol(name)

    def location(self, file: str, line: str, position: int) -> Loc | None:
        """What ``.loc file line`` means; None for line 0."""
        found = self.locs.get((file, line), self)
        if found is self:
            name = self.files.get(int(file))
            if name is None:
                self.source.fail(f"no `.file` has the number {file}", position)
            found = self.locs[file, line] = Loc(name, int(line)) if int(line) else None
        return found  # type: ignore[return-value]


_LOCAL_PRAGMAS = ("used_bytes_mask", "enable_smem_spilling", "mma_throughput", "frequency")
_MODULE_LEVEL = (".address_size", ".file", ".loc", ".section", ".pragma", ".alias")


class _FunctionParser:
    """An entry or function, from the name on."""

    def __init__(self, parser: _Parser, kind: str, linkage: str) -> None:
        self.parser, self.source = parser, parser.source
        self.result = ir.Function("", kind, linkage=linkage)
        self.scopes = Scopes(parser.symbols)
        self.names = self.scopes.names
        self.uses: list[tuple[int, Scope, int]] = []
        self.tables: list[tuple[str, Scope, int]] = []
        self.numbers: dict[tuple[str, ScalarType | None], ir.Immediate] = {}

    def function(self) -> ir.Function:
        """The head, and the body unless it is a declaration."""
        source, function = self.source, self.result
        function.attributes = declarations.attributes(source)
        if function.kind == "func":
            function.results = declarations.parameters(source)
        name = source.name("a function")
        function.name = name.text
        function.parameters = declarations.parameters(source)
        function.directives = declarations.directives(source)
        self.parser.symbols.setdefault(name.text, ir.Symbol(name.text))
        for parameter in (*function.results, *function.parameters):
            self._declare(parameter.name, name.start)
            if parameter.space == "reg":
                register = ir.Register(parameter.name, parameter.type)
                function.registers.append(register)
                self.names[parameter.name] = register
            else:
                self.names[parameter.name] = ir.Symbol(parameter.name)
        token = source.next()
        if token.text == ";":
            function.body = None
            function.registers = []
        elif token.text != "{":
            source.fail(f"expected `{{` and the body of {name.text}, not {source.shown(token)}", token.start)
        else:
            self._body()
            self._resolve()
        return function

    # -- statements

    def _body(self) -> None:
        source, names, text = self.source, self.names, self.source.text
        body: list[ir.Statement] = []
        self.result.body = body
        loc: Loc | None = None
        position = last = source.at
        line = source.line(position)
        remarks = [remark for remark in reversed(source.remarks) if remark[0] >= position]
        forms, operand, instruction = _forms, self._operand, _INSTRUCTION.match
        while True:
            match = instruction(text, position)
            if match is None:
                match = _LOC.match(text, position)
                if match is not None:
                    loc = self.parser.location(match[1], match[2], match.start(1))
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
                body.append(self._call(rest, mnemonic == "call.uni", guard, loc, line))
                continue
            rest = rest.replace(" ", "")
            parts = rest.split(",") if "[" not in rest and "{" not in rest and "(" not in rest else self._split(rest)
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
            body.append(ir.Instruction(form, operands, guard, loc, line))

    def _respell(self, mnemonic: str, position: int, arity: int) -> tuple[str, tuple[Form, ...]]:
        """The forms of a mnemonic that is written with spaces in it, which is legal; an error for another one."""
        spelled = re.sub(r"\s", "", mnemonic)
        try:
            return spelled, _forms(spelled, arity)
        except UnknownInstruction as error:
            self.source.fail(error.message, position, hint=error.hint)

    def _split(self, text: str) -> list[str]:
        """Operands between the commas that are in no bracket."""
        parts = _PARTS.findall(text)
        if sum(map(len, parts)) + len(parts) - 1 != len(text):
            self._fail("these operands are not well formed", text)
        return parts

    def _choose(
        self, mnemonic: str, candidates: tuple[Form, ...], parts: list[str], start: int
    ) -> tuple[Form, tuple[ir.Operand, ...]]:
        """The form, of several that a mnemonic spells, that the operands fit; else the nearest."""
        if not candidates:
            self._miscounted(mnemonic, len(parts), start)
        readings: list[tuple[int, int, Form, tuple[ir.Operand, ...]]] = []
        failure: ParseError | None = None
        for number, form in enumerate(candidates):
            try:
                operands = tuple([self.names.get(p) or self._operand(p, s) for p, s in zip(parts, form.operands)])
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
            self.source.fail(f"`{mnemonic}` takes {said} operands, not {count}", start, hint="is a `;` missing at its end?")
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

    # -- operands

    def _fail(self, message: str, part: str, hint: str | None = None) -> NoReturn:
        """An error at an operand of the statement in hand."""
        at = self.source.text.find(part, self.position)
        self.source.fail(message, self.position if at < 0 else at, hint=hint)

    def _operand(self, text: str, spec: OperandSpec) -> ir.Operand:
        """An operand that is not simply a name in `names`, read as what ``spec`` wants."""
        number = self.numbers.get((text, spec.type))
        if number is not None:
            return number
        text = text.strip()
        head = text[:1]
        if head == "[":
            return self._address(text, spec)
        if head == "{":
            return self._vector(text, spec)
        if _NAME.match(text):
            return self._named(text, spec)
        if head == "!":
            found = self.names.get(text[1:])
            if isinstance(found, ir.Register):
                return ir.Not(found)
        elif head == "%":
            return self._percent(text, spec)
        elif (match := _SYMBOL.match(text)) and match[1] != "WARP_SZ":
            return self._offset_symbol(match[1], match[2], text)
        elif match := _SELECTED.match(text):
            found = self.names.get(match[2])
            if isinstance(found, ir.Register):
                return ir.Selected(found, match[3] or "", bool(match[1]))
        if not text:
            self._fail("an operand is missing", ",")
        return self._number(text, spec)

    def _named(self, text: str, spec: OperandSpec) -> ir.Operand:
        found = self.names.get(text)
        if found is not None:
            return found
        if text == "_":
            return ir.Sink()
        if spec.kind == "label":
            assert self.result.body is not None
            self.uses.append((len(self.result.body), self.scopes.current, self.position))
            return ir.LabelRef(text)
        if text in self.parser.symbols:
            return self.parser.symbols[text]
        if text == "WARP_SZ":
            return self._number(text, spec)
        if text[0] == "%":
            return self._percent(text, spec)
        return self._unknown(text)

    def _percent(self, text: str, spec: OperandSpec) -> ir.Operand:
        """A special register, a part of a register, or a mistake."""
        base, _, rest = text.partition(".")
        if base in self.names:
            match = _SELECTED.match(text)
            found = self.names[base]
            if match and isinstance(found, ir.Register):
                return ir.Selected(found, match[3])
            self._fail(f"{base} has no part `.{rest}`", text)
        if _SPECIAL.match(text):
            try:
                special(text)
            except UnknownInstruction as error:
                if error.hint is None or self._near(text):
                    self._unknown(text)
                self._fail(error.message, text, error.hint)
            self.names.setdefault(text, ir.SpecialRegister(text))
            return ir.SpecialRegister(text)
        return self._unknown(text)

    def _near(self, text: str) -> list[str]:
        return difflib.get_close_matches(text, [*self.names, *self.parser.symbols], n=3, cutoff=0.6)

    def _unknown(self, text: str) -> NoReturn:
        near = self._near(text)
        if not _NAME.match(text):
            self._fail(f"`{text}` is no operand", text)
        hint = f"did you mean {' or '.join(near)}?" if near else f"declare it: `.reg .b32 {text};`"
        self._fail(f"{text} is not declared", text, hint)

    def _offset_symbol(self, name: str, rest: str, text: str) -> ir.Operand:
        found = self.names.get(name) or self.parser.symbols.get(name)
        if not isinstance(found, ir.Symbol):
            self._fail(f"`{text}` is no operand: {name} is no variable", text)
        return ir.Symbol(found.symbol, self._integer(rest))

    def _expression(self, text: str) -> Source:
        """An operand on its own; a percent sign in it is the operator, since no register is in an expression."""
        return Source(text.replace("%", " % "), self.source.filename)

    def _integer(self, text: str) -> int:
        """The value of a constant expression, of integers."""
        inner = self._expression(text)
        try:
            number = expression(inner)
        except ParseError as error:
            self._fail(error.message.split("\n", maxsplit=1)[0], text)
        if inner.peek().text or isinstance(number.value, float) or number.exact is not None:
            self._fail(f"`{text}` is no integer", text)
        return number.value

    def _number(self, text: str, spec: OperandSpec) -> ir.Operand:
        """A number in the type of the operand. A 0f or 0d one in untyped bits stays the float it is written as."""
        kind = spec.type
        number = literal(text)
        if number is None:
            inner = self._expression(text)
            try:
                number = expression(inner)
            except ParseError:
                self._fail(f"`{text}` is no operand", text)
            if inner.peek().text:
                self._fail(f"`{text}` is no operand", text)
        if kind is None:
            self._fail(f"`{text}` is a number, and here must be {spec.kind == 'label' and 'a label' or 'a name'}", text)
        if kind.kind == "f" and kind.register is not kind:
            self._fail(f"a number cannot be a .{kind}", text, "move it to a register first")
        try:
            bits = encoded(number, kind)
        except (ValueError, PtxTypeError) as error:
            self._fail(str(error), text)
        exact = number.exact
        immediate = ir.Immediate(bits, exact if exact is not None and kind.kind == "b" else kind)
        self.numbers[text, kind] = immediate
        return immediate

    def _vector(self, text: str, spec: OperandSpec) -> ir.Vector:
        if not text.endswith("}"):
            self._fail("these braces do not close", text)
        names = self.names
        return ir.Vector(tuple([names.get(p) or self._operand(p, spec) for p in text[1:-1].split(",")]))

    def _address(self, text: str, spec: OperandSpec) -> ir.Operand:
        unified = text.endswith("].unified")
        inner = text[1 : -9 if unified else -1].strip()
        if not unified and not text.endswith("]"):
            self._fail("these brackets do not close", text)
        start, _, offset_text = inner.partition("+")
        found = self.names.get(start)
        if (found.__class__ is ir.Register or found.__class__ is ir.Symbol) and _PLAIN.match(offset_text):
            return ir.Address(found, int(offset_text or 0), (), unified)  # type: ignore[arg-type]
        first, *rest = self._split(inner) if "," in inner else [inner]
        specs = spec.parts if len(spec.parts) == len(rest) else (spec,) * len(rest)
        parts = tuple([self.names.get(p) or self._operand(p, s) for p, s in zip(rest, specs)])
        first = first.strip()
        match = _SYMBOL.match(first)
        name, offset = (match[1].strip(), self._integer(match[2])) if match else (first, 0)
        base = self.names.get(name) or self.parser.symbols.get(name)
        if base is None and not first[:1].isdigit():
            self._unknown(name)
        if base is None:
            base = ir.Immediate(self._integer(first), TYPES[f"u{self.parser.result.address_size}"])
        if not isinstance(base, (ir.Register, ir.Symbol, ir.Immediate)):
            self._fail(f"{name} is no address", text)
        return ir.Address(base, offset, parts, unified)

    # -- calls

    def _call(
        self, text: str, uniform: bool, guard: ir.Register | ir.Not | None, loc: Loc | None, line: int
    ) -> ir.Call:
        groups = [part.strip() for part in _PARTS.findall(text)]
        results = self._arguments(groups.pop(0)) if groups and groups[0].startswith("(") else ()
        if not groups:
            self._fail("a call without a function", text)
        name = groups.pop(0)
        callee = self.names.get(name) or self.parser.symbols.get(name)
        if not isinstance(callee, (ir.Symbol, ir.Register)):
            self._unknown(name)
        arguments = self._arguments(groups.pop(0)) if groups and groups[0].startswith("(") else ()
        prototype = None
        if groups:
            found = self.names.get(groups[0])
            if not isinstance(found, ir.Symbol):
                self._fail(f"no .callprototype is called {groups[0]}", groups[0])
            prototype = found.symbol
        if len(groups) > 1:
            self._fail(f"`{groups[1]}` is too much: a call is `call (results), function, (arguments), prototype`", groups[1])
        return ir.Call(callee, results, arguments, prototype, uniform, guard, loc, line)

    def _arguments(self, text: str) -> tuple[ir.Operand, ...]:
        inner = text[1:-1].strip()
        return tuple(self._operand(part, _ARGUMENT) for part in _PARTS.findall(inner)) if inner else ()

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
            assert self.result.body is not None
            self.result.body += [ir.Pragma(string) for string in declarations.strings(source)]
        elif match := _LABEL.match(source.text, source.at):
            source.at = match.end()
            self._label(match[1], match.start(1))
        elif text == ".file":
            self.parser._file(token)
        elif text == ".section":
            source.next()
            self.parser._section(token)
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
        source = self.source
        lanes = declarations.vector_length(source)
        kind = declarations.scalar_type(source, "reg")
        lanes = lanes or declarations.vector_length(source)
        while True:
            name = source.name("a register")
            if source.accept("<"):
                count = source.integer("how many registers")
                source.expect(">", "how many registers")
                found = [f"{name.text}{number}" for number in range(count)]
            else:
                found = [name.text]
            if not lanes and self.scopes.declare(found):
                registers = [ir.Register(each, kind) for each in found]
                self.result.registers += registers
                self.names.update(zip(found, registers))
            else:
                for each in found:
                    self._register(each, kind, lanes, name.start)
            if not source.accept(","):
                source.expect(";", f"the declaration of {name.text}")
                return

    def _register(self, name: str, kind: ScalarType, lanes: int, position: int) -> None:
        unique = self._declare(name, position)
        if not lanes:
            register = ir.Register(unique, kind)
            self.result.registers.append(register)
            self.scopes.bind(name, register)
            return
        parts = [ir.Register(self._declare(f"{unique}${letter}", position), kind) for letter in "xyzw"[:lanes]]
        self.result.registers += parts
        self.scopes.bind(name, ir.Vector(tuple(parts)))
        for letter, colour, part in zip("xyzw", "rgba", parts):
            self.scopes.bind(f"{name}.{letter}", part)
            self.scopes.bind(f"{name}.{colour}", part)

    def _variables(self, space: str, token: Token) -> None:
        for variable in declarations.variables(self.source, space):
            name = variable.name
            variable.name = self._declare(name, token.start)
            self.scopes.bind(name, ir.Symbol(variable.name))
            self.result.variables.append(variable)

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
            assert function.body is not None
            self.scopes.current.labels[name] = unique
            function.body.append(ir.Label(unique))
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
        return ir.Function(label, "func", given, results, marks, body=None, linkage="")

    def _resolve(self) -> None:
        """Let every use of a label mean the label of its scope."""
        body = self.result.body
        assert body is not None
        for index, scope, position in self.uses:
            statement = body[index]
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
            near = difflib.get_close_matches(name, list(scope.labels), n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"place it: `{name}:`"
            self.source.fail(f"no label is called {name}", position, hint=hint)
        return found


_ARGUMENT = OperandSpec("argument", type=TYPES["b64"], variable=True)
