"""From text to a module: any PTX, traced or foreign, by the instruction table.

The module does not keep: comments at the end of a line (those on a line of their own stay), the columns of ``.loc`` and
where a line was inlined, time stamps of files, and nested scopes (`scopes`). Vector registers (``.reg .v4 .f32 v``)
become their components, constant expressions their value.
"""

from __future__ import annotations

import re

from .. import ir
from ..errors import did_you_mean, similar
from ..types import TYPES
from . import declarations
from .function import FunctionParser
from .context import LOC, Context
from .source import Source, Token

__all__ = ["parse"]

_LINKAGES = ("extern", "visible", "weak", "common")
_DEFINITIONS = (".entry", ".func", ".global", ".const", ".shared", ".local")
_METADATA = re.compile(r"\s*\{([^{}]*)\}")
_LOCAL_PRAGMAS = ("used_bytes_mask", "enable_smem_spilling", "mma_throughput", "frequency")


def parse(text: str, filename: str = "<ptx>") -> ir.Module:
    """The module that a PTX text says.

    ``filename`` is what errors call the text. Raises ParseError, with the line shown, where the text is not PTX: an
    unknown opcode or modifier, a name that is not declared, a number that does not fit. Whether operands have the
    types that the instruction wants is for `ptxdsl.verify`.

    >>> m = parse(".version 8.0\\n.target sm_90\\n.entry k() { .reg .b32 %r<2>; mov.u32 %r1, %tid.x; ret; }")
    >>> m.function("k").body[0].operands
    (Register(name='%r1', type=b32), SpecialRegister(special='%tid.x'))
    """
    source = Source(text, filename)
    try:
        return _Parser(source).module()
    except RecursionError:
        source.fail("the stack of Python does not suffice for what nests here", source.at)


def _narrow(function: ir.Function) -> bool:
    """Whether a function has global or generic addresses of 32 bits: text without ``.address_size`` says no more."""
    return any(
        o.__class__ is ir.Address and o.base.__class__ is ir.Register and o.base.type.bits == 32
        for s in function.body or () if s.__class__ is ir.Instruction and s.form.space in ("generic", "global")
        for o in s.operands
    )


class _Parser(Context):
    sized = False

    def module(self) -> ir.Module:
        """Everything up to the end of the text."""
        source = self.source
        self._header()
        handlers = {
            ".address_size": self._address_size, ".file": self.file, ".loc": self._loc, ".section": self.section,
            ".pragma": self._pragma, ".reg": self._registers, ".alias": self._alias,
            ".metadata_section": self._metadata, ".tex": self._texture,
        }
        while token := source.next():
            if not token.text:
                break
            handlers.get(token.text, self._definition)(token)
        if self.locals and sum(function.body is not None for function in self.result.functions) > 1:
            source.fail(f"{self.locals[0].name}, a .local variable outside a function, and several functions", 0)
        if not self.sized and any(map(_narrow, self.result.functions)):
            self.result.address_size = 32
        return self.result

    def _header(self) -> None:
        source, module = self.source, self.result
        token = source.next()
        if token.text != ".version":
            source.fail("a module begins with `.version`", token.start, hint="write `.version 8.0` first")
        number = source.next()
        match = re.match(r"([0-9]{1,3})\.([0-9]{1,3})$", number.text)
        if match is None:
            source.fail(f"expected a version such as 8.0, not {source.quoted(number)}", number.start)
        module.version = (int(match[1]), int(match[2]))
        token = source.next()
        if token.text != ".target":
            source.fail("behind `.version` comes `.target`", token.start, hint="write `.target sm_75`")
        names = [re.sub(r"^compute_(?=\d)", "sm_", source.name("a target").text)]
        while source.accept(","):
            names.append(source.name("a target or an option of it").text)
        module.target = next((name for name in names if name.startswith("sm_")), names[0])
        module.target_options = tuple(name for name in names if name != module.target)

    def _registers(self, token: Token) -> None:
        if self.result.version >= (3, 0):
            self.source.fail("registers outside a function", token.start, hint="declare them in the function")
        kind, lanes, groups = declarations.registers(self.source)
        if lanes:
            self.source.fail("vector registers outside a function", token.start, hint="declare them in the function")
        self.registers.update({name: ir.Register(name, kind) for names, _ in groups for name in names})

    def _address_size(self, token: Token) -> None:
        size = self.source.integer("an address size")
        if size not in (32, 64):
            self.source.fail(f"an address size of {size}, which is neither 32 nor 64", token.start)
        if self.sized:
            self.source.fail("a second `.address_size`", token.start)
        self.result.address_size = size
        self.sized = True

    def _loc(self, token: Token) -> None:
        match = LOC.match(self.source.text, token.start)
        if match is None:
            self.source.fail("expected `.loc file line column`", token.start)
        self.source.at = match.end()

    def _pragma(self, token: Token) -> None:
        strings = declarations.strings(self.source)
        for text in strings:
            if text.startswith(_LOCAL_PRAGMAS):
                hint = "move it into the function"
                self.source.fail(f'the pragma "{text}" outside a function', token.start, hint=hint)
        self.result.directives.append(("pragma", strings))

    def _alias(self, _token: Token) -> None:
        name = self.source.name("an alias").text
        self.source.expect(",", "the name of an alias")
        other = self.source.name("a function").text
        self.source.expect(";", "an alias")
        self.result.directives.append(("alias", (name, other)))

    def _metadata(self, token: Token) -> None:
        if self.result.version < (9, 5):
            self.source.fail("`.metadata_section` needs PTX 9.5", token.start, hint="write `.version 9.5`")
        match = _METADATA.match(self.source.text, self.source.at)
        if match is None:
            self.source.fail("expected `.metadata_section { ... }`", token.start)
        self.source.at = match.end()
        self.result.directives.append(("metadata_section", (" ".join(match[1].split()),)))

    def _texture(self, token: Token) -> None:
        """``.tex .u32 t;`` of PTX before 1.5: a texture reference in global memory."""
        if self.result.version >= (1, 5):
            hint = "write `.global .texref`"
            self.source.fail("`.tex` is gone since PTX 1.5", token.start, hint=hint)
        kind = self.source.next()
        if kind.text not in (".u32", ".u64"):
            self.source.fail(f"expected `.u32` or `.u64` after `.tex`, not {self.source.quoted(kind)}", kind.start)
        for name in self.source.listed(lambda source: source.name("a texture").text):
            self._declare(name, token)
            self.result.variables.append(ir.Variable(name, "global", TYPES["texref"]))
        self.source.expect(";", "the declaration of a texture")

    def _definition(self, token: Token) -> None:
        source, linkage = self.source, ""
        given: tuple[ir.Directive, ...] = ()
        if token.text[1:] in _LINKAGES:
            linkage, token = token.text[1:], source.next()
        if token.text == ".attribute":
            source.at = token.start
            given, token = declarations.attributes(source), source.next()
        kind = token.text[1:]
        if token.text not in _DEFINITIONS:
            near = similar(token.text, _DEFINITIONS, cutoff=0.6)
            hint = did_you_mean(near, otherwise="here stand .entry, .func, variables and directives")
            source.fail(f"{source.quoted(token)} begins nothing at the level of the module", token.start, hint=hint)
        if kind in ("entry", "func") and not given:
            self.result.functions.append(FunctionParser(self, kind, linkage).function())
            return
        if kind == "local" and self.result.version >= (3, 0):
            source.fail("a .local variable outside a function", token.start, hint="declare it in the function")
        if linkage == "common" and kind != "global":
            hint = "write `.weak`, or declare it in .global"
            source.fail(f".common variables lie in .global, not in .{kind}", token.start, hint=hint)
        for variable in declarations.variables(source, kind, linkage, given):
            self._declare(variable.name, token)
            (self.locals if kind == "local" else self.result.variables).append(variable)

    def _declare(self, name: str, token: Token) -> None:
        if name in self.symbols:
            self.source.fail(f"{name} is declared twice", token.start)
        self.symbols[name] = ir.Symbol(name)
