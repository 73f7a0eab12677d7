"""Reading the operands of an instruction: names, numbers, addresses, vectors.

Most operands are the name of a register and never come here: the statement loop of `function` has them from `names`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from .. import ir
from ..errors import ParseError, PtxTypeError, UnknownInstruction, did_you_mean, similar
from ..ir.operand_matching import elements, fits
from ..isa import OperandSpec, lookup, special, special_registers
from ..types import TYPES, ScalarType, f64
from .context import Context
from .numbers import encoded, expression, literal
from .scopes import Scope, Scopes
from .source import Source

__all__ = ["Reader"]

_PARTS = re.compile(r"(?:\[[^\]]*\]|\{[^}]*\}|\([^)]*\)|[^,\[{(])+")
_NAME = re.compile(r"[A-Za-z_$%][\w$]*$")
_SYMBOL = re.compile(r"([A-Za-z_$%][\w$]*)([-+].+)$")
_INDEXED = re.compile(r"([A-Za-z_$%][\w$]*)\s*\[([^\[\]]*)\]$")
_PLAIN = re.compile(r"(?:-?[1-9][0-9]{0,17})?$")
_SPECIAL = re.compile(r"%\w+(?:\.[xyzw])?$")
_COLOURS = {"r": "x", "g": "y", "b": "z", "a": "w"}
"""Other names of the components of a vector."""
_SELECTED = re.compile(r"(-?)([A-Za-z_$%][\w$]*)(?:\.([bh][0-7]+))?$")


class Reader:
    """The operands of one function. ``names`` says what each name means at this point."""

    def __init__(self, context: Context) -> None:
        self.context, self.source = context, context.source
        self.scopes = Scopes(context.symbols)
        self.names = self.scopes.names
        self.result = ir.Function("", "func")
        self.body: list[ir.Statement] = []
        self.position = 0
        self.lenient = True
        """Whether what only ptxas takes as an operand is computed before the statement: not while forms compete."""
        self.unusual: dict[str, str] = {}
        """What operands of the current statement are that not every instruction takes, each with the text of one:
        ``narrow`` is an address in a register of 32 bits, ``braces`` stand around a single operand, ``unused`` is a
        `_` in braces."""
        self.label_uses: dict[int, tuple[Scope, int]] = {}
        """By statement: where labels are used, and the scope to resolve them in."""
        self.pending: dict[tuple[str, str], ir.Instruction] = {}
        """Instructions that compute operands of the current statement, to stand before it."""
        self.numbers: dict[tuple[str, ScalarType | None], ir.Immediate] = {}

    def fail(self, message: str, part: str, hint: str | None = None) -> NoReturn:
        """An error at an operand of the current statement."""
        at = self.source.text.find(part, self.position)
        self.source.fail(message, self.position if at < 0 else at, hint=hint)

    def split(self, text: str) -> list[str]:
        """Operands between the commas that are in no bracket."""
        parts = _PARTS.findall(text)
        if sum(map(len, parts)) + len(parts) - 1 != len(text):
            self.fail("these operands are not well formed", text)
        return parts

    def operand(self, text: str, spec: OperandSpec) -> ir.Operand:
        """An operand that is not simply a name in `names`, read as what ``spec`` wants."""
        number = self.numbers.get((text, spec.type))
        if number is not None and spec.immediate:
            return number
        text = text.strip()
        head = text[:1]
        if head in ("[", "{"):
            return (self._address if head == "[" else self._vector)(text, spec)
        if _NAME.match(text):
            return self._named(text, spec)
        if head == "!":
            if isinstance(found := self.names.get(text[1:].lstrip()), ir.Register):
                return self._negated(found, spec)
        elif match := _INDEXED.match(text):
            return self._indexed(match[1], match[2].strip(), text, spec)
        elif head == "%" and "+" not in text:
            return self._percent(text, spec)
        elif (match := _SYMBOL.match(text)) and match[1] != "WARP_SZ":
            return self._offset_symbol(match[1], match[2], text, spec)
        elif match := _SELECTED.match(text):
            found = self.names.get(match[2])
            if isinstance(found, ir.Register):
                return ir.Selected(found, match[3] or "", bool(match[1]))
        if not text:
            self.fail("an operand is missing", ",")
        return self._number(text, spec)

    def _negated(self, register: ir.Register, spec: OperandSpec) -> ir.Operand:
        if spec.type is register.type and not spec.negatable and self._absent(spec):
            return self.make("not.pred", register.type, register)
        return ir.Not(register)

    def _named(self, text: str, spec: OperandSpec) -> ir.Operand:
        found = self.names.get(text)
        if found is not None:
            return found
        if text == "_":
            return ir.Sink()
        if spec.kind == "label":
            self.label_uses[len(self.body)] = (self.scopes.current, self.position)
            return ir.LabelRef(text)
        if text in self.context.symbols:
            return self.context.symbols[text]
        if text == "WARP_SZ":
            return self._number(text, spec)
        if text[0] == "%":
            return self._percent(text, spec)
        return self.unknown(text)

    def _address_of(self, symbol: ir.Symbol, spec: OperandSpec) -> ir.Operand:
        """``variable+4``, moved to a register where the table has registers and numbers.

        A variable alone ptxas refuses there.
        """
        kind = spec.type
        where = spec.immediate and not spec.variable and not spec.selector and self._absent(spec)
        if kind is None or not where or kind.bits < 32 or not self._moves(kind):
            return symbol
        plain = TYPES[f"u{kind.bits}"]
        return self.make(f"mov.{plain}", plain, symbol)

    def _percent(self, text: str, spec: OperandSpec) -> ir.Operand:
        """A special register, a part of a register, or a mistake."""
        base, _, rest = text.partition(".")
        if base in self.names:
            match = _SELECTED.match(text)
            found = self.names[base]
            if match and isinstance(found, ir.Register):
                return ir.Selected(found, match[3])
            self.fail(f"{base} has no part `.{rest}`", text)
        if base in special_registers() and (components := special_registers()[base].components):
            rest = _COLOURS.get(rest, rest)
            if rest == "w" and "w" not in components:
                return self._number("0", spec)  # the fourth component of all
            text = f"{base}.{rest}" if rest else base
        if _SPECIAL.match(text):
            try:
                special(text)
            except UnknownInstruction as error:
                if error.hint is None or self._near(text):
                    self.unknown(text)
                self.fail(error.message, text, error.hint)
            return ir.SpecialRegister(text)
        return self.unknown(text)

    def _absent(self, spec: OperandSpec) -> bool:
        """Whether an operand that the table does not have may be computed before the statement."""
        return self.lenient and spec.register and spec.role == "r" and not spec.fixed

    @staticmethod
    def _moves(kind: ScalarType) -> bool:
        """Whether integers of a type can be moved to a register."""
        return kind.kind in "bus" and kind.lanes == 1 and kind.bits in (16, 32, 64)

    def _element(self, spec: OperandSpec, operand: ir.Operand) -> ir.Operand:
        """An operand in braces, of several: a special register is moved, a result that is not wanted written."""
        kind = spec.type
        assert kind is not None
        if isinstance(operand, ir.SpecialRegister):
            return self.in_register(operand, spec)
        if isinstance(operand, ir.Sink) and spec.role == "w" and not spec.sink and self.lenient:
            self.unusual["unused"] = "_"
            register = ir.Register(self.scopes.fresh("%unused"), kind.register)
            self.result.registers.append(register)
            return register
        return operand

    def in_register(self, operand: ir.SpecialRegister, spec: OperandSpec) -> ir.Operand:
        """A special register, moved to another where the table has those only."""
        kind = spec.type
        if kind is None or spec.special or not self._absent(spec) or not self._moves(kind):
            return operand
        if special(operand.special).type.bits != kind.bits:
            return operand
        return self.make(f"mov.b{kind.bits}", TYPES[f"b{kind.bits}"], operand)

    def _near(self, text: str) -> list[str]:
        return similar(text, [*self.names, *self.context.symbols], 3, 0.6)

    def unknown(self, text: str) -> NoReturn:
        if not _NAME.match(text):
            self._no_operand(text)
        otherwise = f"declare it: `.reg .b32 {text};`"
        if not text.startswith("%"):
            otherwise = "declare it before: a variable, a parameter, a function or a register"
        hint = did_you_mean(self._near(text), "{}", otherwise)
        self.fail(f"{text} is not declared", text, hint)

    def _no_operand(self, text: str) -> NoReturn:
        if not text:
            self.fail("an operand is missing", text)
        first, *more = text.splitlines()
        self.fail(f"`{first}` is no operand", first, f"end the statement: `{first};`" if more else None)

    def _offset_symbol(self, name: str, rest: str, text: str, spec: OperandSpec) -> ir.Operand:
        found = self.names.get(name) or self.context.symbols.get(name)
        if isinstance(found, ir.Register) and found.type.kind in "bus" and rest[0] == "+" and spec.kind == "value":
            kind = TYPES[f"{'u' if found.type.bits > 16 else 's'}{found.type.bits}"]
            number = ir.Immediate(self._integer(rest) & (1 << kind.bits) - 1, kind)
            return self.make(f"add.{kind}", found.type, found, number)
        if not isinstance(found, ir.Symbol):
            self.fail(f"`{text}` is no operand: {name} is no variable", text)
        return self._address_of(ir.Symbol(found.symbol, self._integer(rest)), spec)

    def _indexed(self, name: str, index: str, text: str, spec: OperandSpec) -> ir.Operand:
        """``array[2]``, the address of an element of one number, and its memory where an instruction accesses that.

        ptxas has the index in a register too, without a sign.
        """
        found = self.names.get(name) or self.context.symbols.get(name)
        declared = (*self.result.variables, *self.context.result.variables, *self.context.locals)
        array = next((v for v in declared if found == ir.Symbol(v.name) and v.shape), None)
        if array is None:
            self.fail(f"`{text}`: {name} is no array", text)
        symbol, size, register = ir.Symbol(array.name), array.type.bytes, self.names.get(index)
        is_memory = spec.kind == "address"
        if not isinstance(register, ir.Register):
            offset = self._integer(index) * size
            return ir.Address(symbol, offset) if is_memory else ir.Symbol(array.name, offset)
        has = register.type.bits
        if register.type.kind not in "bus" or has < 32:
            self.fail(f"`{text}`: the index {index} is a .{register.type}", text, "an index has 32 or 64 bits")
        bits = self.context.result.address_size if is_memory or spec.type is None else spec.type.bits
        kind = TYPES[f"u{bits}"]
        if has > bits:
            register, has = self.make(f"cvt.u{bits}.u64", kind, register), bits
        base = self.make(f"mov.u{bits}", kind, symbol)
        factor = ir.Immediate(size, TYPES[f"u{has}"])
        element = self.make(f"mad.wide.u{has}" if has < bits else f"mad.lo.u{bits}", kind, register, factor, base)
        return ir.Address(element) if is_memory else element

    def make(self, mnemonic: str, kind: ScalarType, *operands: ir.Operand) -> ir.Register:
        """A register for what ptxas takes as an operand and PTX does not have: ``%r1+4``, a number for a predicate.

        It is computed before the current statement, by an instruction that `function` puts there.
        """
        key = (mnemonic, repr(operands))
        if key not in self.pending:
            register = ir.Register(self.scopes.fresh("%made"), kind)
            self.result.registers.append(register)
            every = (register, *operands)
            form = next((form for form in lookup(mnemonic) if fits(form, every)), None)
            if form is None:
                self.source.fail(f"an operand that `{mnemonic}` does not take either", self.position)
            self.pending[key] = ir.Instruction(form, every)
        result = self.pending[key].operands[0]
        assert isinstance(result, ir.Register)
        return result

    def _expression(self, text: str) -> Source:
        """The text of an operand as a source. A percent sign in it is the operator: expressions have no registers."""
        return Source(text.replace("%", " % "), self.source.filename)

    def _integer(self, text: str) -> int:
        """The value of a constant expression, of integers."""
        inner = self._expression(text)
        try:
            number = expression(inner)
        except ParseError as error:
            self.fail(error.message.split("\n", maxsplit=1)[0], text)
        if inner.peek().text or isinstance(number.value, float) or number.exact is not None:
            self.fail(f"`{text}` is no integer", text)
        if not -(1 << 63) <= number.value < 1 << 64:
            self.fail(f"{number.value} does not fit in 64 bits", text)
        return number.value

    def _number(self, text: str, spec: OperandSpec) -> ir.Operand:
        """A number in the type of the operand. A 0f or 0d one in untyped bits stays the float it is written as."""
        kind = spec.type
        if spec.written:
            self.fail(f"`{text}` is a number, and here must be a register for the result", text)
        number = literal(text)
        if number is None:
            inner = self._expression(text)
            try:
                number = expression(inner)
            except ParseError:
                self._no_operand(text)
            if inner.peek().text:
                self._no_operand(text)
        if kind is None:
            wanted = "a label" if spec.kind == "label" else "a name"
            self.fail(f"`{text}` is a number, and here must be {wanted}", text)
        if kind.kind == "f" and kind.register is not kind:
            self.fail(f"a number cannot be a .{kind}", text, "move it to a register first")
        try:
            bits = encoded(number, kind)
        except (ValueError, PtxTypeError) as error:
            self.fail(str(error), text)
        if kind.kind == "p" and spec.name == "scale" and number.value not in (0, 1):
            self.fail(f"`{text}` is neither 0 nor 1", text)
        exact = number.exact
        immediate = ir.Immediate(bits, exact if exact is not None and kind.kind == "b" else kind)
        if not spec.immediate:
            floating = kind is exact or (kind is f64 and isinstance(number.value, float))
            return self._moved(immediate, spec, floating or (isinstance(number.value, int) and exact is None))
        self.numbers[text, kind] = immediate
        return immediate

    def _moved(self, immediate: ir.Immediate, spec: OperandSpec, movable: bool) -> ir.Operand:
        """A number, or a register that it is moved to, where the table has registers only."""
        kind = immediate.type
        if not self._absent(spec) or not movable:
            return immediate
        if kind.kind == "f":
            return self.make(f"mov.{kind}", kind, immediate)
        if kind.kind == "p":
            return self.make("mov.pred", kind, immediate)
        plain = TYPES[f"b{kind.bits}"]
        return self.make(f"mov.{plain}", plain, ir.Immediate(immediate.bits, plain)) if self._moves(kind) else immediate

    def _vector(self, text: str, spec: OperandSpec) -> ir.Operand:
        """Operands in braces. nvcc and Triton put braces around single ones too, where the manual has none."""
        if not text.endswith("}"):
            self.fail("these braces do not close", text)
        names, parts = self.names, text[1:-1].split(",")
        if "{" in parts[0]:
            self.fail("braces within braces", text)
        specs = elements(spec) if spec.count == len(parts) else (spec,) * len(parts)
        lenient, self.lenient = self.lenient, self.lenient and len(parts) > 1
        items = tuple([names.get(p) or self.operand(p, s) for p, s in zip(parts, specs)])
        if spec.count and self.lenient:
            items = tuple([o if o.__class__ is ir.Register else self._element(s, o) for s, o in zip(specs, items)])
        self.lenient = lenient
        if len(items) > 1 or spec.count:
            return ir.Vector(items)
        self.unusual["braces"] = text
        return items[0]

    def _address(self, text: str, spec: OperandSpec) -> ir.Operand:
        unified = text.endswith("].unified")
        inner = text[1 : -9 if unified else -1].strip()
        if not unified and not text.endswith("]"):
            self.fail("these brackets do not close", text)
        start, _, offset_text = inner.partition("+")
        found = self.names.get(start)
        if found.__class__ is ir.Register and found[1].bits == 32:
            self.unusual["narrow"] = inner
        if (found.__class__ is ir.Register or found.__class__ is ir.Symbol) and _PLAIN.match(offset_text):
            return ir.Address(found, int(offset_text or 0), (), unified)
        first, *rest = self.split(inner) if "," in inner else [inner]
        specs = spec.parts if len(spec.parts) == len(rest) else (spec,) * len(rest)
        parts = tuple([self.names.get(p) or self.operand(p, s) for p, s in zip(rest, specs)])
        first = first.strip()
        if not first:
            self.fail("an address is missing", text, "write a register, a variable or a number: `[%rd0]`")
        match = _SYMBOL.match(first)
        if match and match[2][0] == "-" and isinstance(self.names.get(match[1]), ir.Register):
            hint = f"write `[{match[1]}+{match[2]}]`"
            self.fail(f"`{first}`: an address is a register plus a number, not minus one", text, hint)
        name, offset = (match[1].strip(), self._integer(match[2])) if match else (first, 0)
        if any(isinstance(p, ir.Vector) and len(p.items) > s.count > 0 for p, s in zip(parts, specs)):
            parts = self._coordinates(parts, specs)
        if offset and rest:
            self.fail(f"`{first}` and operands behind it", text, "add the number to the register before")
        base = self.names.get(name) or self.context.symbols.get(name)
        if base is None and not first[:1].isdigit():
            self.unknown(name)
        if base is None:
            base = ir.Immediate(self._integer(first), TYPES[f"u{self.context.result.address_size}"])
        if not isinstance(base, (ir.Register, ir.Symbol, ir.Immediate)):
            self.fail(f"{name} is no address", text)
        return ir.Address(base, offset, parts, unified)

    def _coordinates(self, parts: tuple[ir.Operand, ...], specs: tuple[OperandSpec, ...]) -> tuple[ir.Operand, ...]:
        """Those of a texture that it has, of the four that text of any version may give."""
        before = self.source.text[max(0, self.position - 80) : self.position]
        if not re.search(r"\btex\.[\w.:]*\s*$", before):
            return parts
        return tuple(
            ir.Vector(p.items[: s.count]) if isinstance(p, ir.Vector) and len(p.items) in (2, 4) and s.count else p
            for p, s in zip(parts, specs)
        )

    def arguments(self, text: str, parameters: list[ir.Parameter]) -> tuple[ir.Operand, ...]:
        """What a call passes, in parentheses: a number has the type of its parameter, a vector goes in parts."""
        inner = text[1:-1].strip()
        given: list[ir.Operand] = []
        for part in _PARTS.findall(inner) if inner else []:
            kind = parameters[len(given)].type if len(given) < len(parameters) else TYPES["b64"]
            operand = self.operand(part, OperandSpec("argument", type=kind, variable=True))
            given += operand.items if isinstance(operand, ir.Vector) else (operand,)
        return tuple(given)

    def groups(self, text: str) -> list[str]:
        """The parts of a call: results, function, arguments, prototype."""
        return [part.strip() for part in _PARTS.findall(text)]
