"""From a module to its text: deterministic, readable, and quick, since every traced kernel passes through here once.

A `.loc` line stands before each instruction whose Python line differs from the one before it, within a function: it
holds for all that follow until the next. At the start of a function there is none, and ``.loc n 0 0`` (line 0, which
debuggers too read as "no line") says that from here on there is none again. So the parser restores every line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from itertools import groupby

from .. import ir
from ..errors import Loc
from ..isa import Form
from ..types import ScalarType
from .escape import escape

__all__ = ["to_text"]

_WIDTH = 100
"""Lists of names and numbers are broken about here."""


def _module_directive(directive: ir.Directive) -> str:
    name, values = directive
    if name == "metadata_section":
        return f".{name} {{ {values[0]} }}"
    return f"{_directive(directive)}{'' if name == 'pragma' else ';'}"


def to_text(module: ir.Module, *, comments: bool = False) -> str:
    """The PTX text of a module.

    ``comments``: each `.loc` is followed by the Python source line.

    >>> print(to_text(ir.Module((8, 0), "sm_90", functions=[ir.Function("nothing")])))
    .version 8.0
    .target sm_90
    .address_size 64
    <BLANKLINE>
    .visible .entry nothing()
    {
    }
    <BLANKLINE>
    """
    files: dict[str, int] = {}
    blocks = list(_definitions(module, files, comments))
    blocks += [f"{_module_directive(d)}\n" for d in module.directives]
    blocks += [f".section {name}\n{{\n{text}\n}}\n" for name, text in module.sections]
    target = ", ".join((module.target, *module.target_options))
    header = f".version {module.version[0]}.{module.version[1]}\n.target {target}\n"
    blocks.insert(0, f"{header}.address_size {module.address_size}\n")
    if files:
        blocks.insert(1, "".join(f'.file {number} "{escape(name)}"\n' for name, number in files.items()))
    return "\n".join(blocks)


def _definitions(module: ir.Module, files: dict[str, int], comments: bool) -> Iterator[str]:
    """Variables and functions, each list in its order, so that whatever is named has been declared before.

    Functions may name any variable; a variable may have the address of a function as its value, which then precedes.
    """
    functions = module.functions
    places = {f.name: n for n, f in reversed(list(enumerate(functions)))}
    done = next((n for n, f in enumerate(functions) if f.body is not None), len(functions))
    yield from (_function(f, files, comments) for f in functions[:done])
    lines = ""
    for variable in module.variables:
        named = [places.get(value.symbol, -1) + 1 for value in variable.values or () if not isinstance(value, int)]
        needed = max(named, default=0)
        if needed > done:
            if lines:
                yield lines
            yield from (_function(f, files, comments) for f in functions[done:needed])
            done, lines = needed, ""
        lines += f"{_variable(variable)};\n"
    if lines:
        yield lines
    yield from (_function(f, files, comments) for f in functions[done:])


# ---------------------------------------------------------------------------------------------------------------------
# Operands


@cache
def _immediate(number: ir.Immediate) -> str:
    bits, kind = number
    if kind.kind == "f":
        return f"0d{bits:016X}" if kind.bits == 64 else f"0f{bits:08X}"
    return str(bits - (1 << kind.bits) if kind.kind == "s" and bits >> (kind.bits - 1) else bits)


def _symbol(symbol: ir.Symbol) -> str:
    return f"{symbol.symbol}+{symbol.offset}" if symbol.offset else symbol.symbol


def _address(address: ir.Address) -> str:
    base, offset, parts, unified = address
    text = base[0] if base.__class__ is ir.Register else operand_text(base)
    if not parts and not unified:
        return f"[{text}+{offset}]" if offset else f"[{text}]"
    if offset:
        text = f"{text}+{offset}"
    if parts:
        text = ", ".join((text, *map(operand_text, parts)))
    return f"[{text}].unified" if unified else f"[{text}]"


def _vector(vector: ir.Vector) -> str:
    texts = [o[0] if o.__class__ is ir.Register else operand_text(o) for o in vector[0]]
    return f"{{{', '.join(texts)}}}"


def _selected(part: ir.Selected) -> str:
    return f"{'-' if part.negated else ''}{part.register.name}{'.' if part.selector else ''}{part.selector}"


def _name(operand: ir.Operand) -> str:
    return operand[0]  # type: ignore[return-value]


_OPERANDS: dict[type, Callable[..., str]] = {
    ir.Register: _name, ir.SpecialRegister: _name, ir.LabelRef: _name, ir.Sink: _name, ir.Immediate: _immediate,
    ir.Symbol: _symbol, ir.Not: lambda operand: f"!{operand[0][0]}", ir.Selected: _selected, ir.Vector: _vector,
    ir.Address: _address,
}


def operand_text(operand: ir.Operand) -> str:
    """An operand as it stands in the text."""
    return _OPERANDS[operand.__class__](operand)


# ---------------------------------------------------------------------------------------------------------------------
# Statements


@cache
def _joined(form: Form) -> bool:
    return any(spec.joined for spec in form.operands)


def instruction_text(statement: ir.Instruction | ir.Call) -> str:
    """One instruction, without indentation and semicolon."""
    guard = statement.guard
    text = f"@{operand_text(guard)} " if guard is not None else ""
    if isinstance(statement, ir.Call):
        return text + _call(statement)
    texts = list(map(operand_text, statement.operands))
    if _joined(statement.form):
        texts = ["".join(_bars(statement.form, texts))]
    return f"{text}{statement.form.mnemonic}{' ' if texts else ''}{', '.join(texts)}"


def _bars(form: Form, texts: list[str]) -> Iterator[str]:
    yield texts[0]
    for spec, text in zip(form.operands[1:], texts[1:]):
        yield ("|" if spec.joined else ", ") + text


def _call(call: ir.Call) -> str:
    parts = [operand_text(call.callee)]
    if call.results:
        parts.insert(0, f"({', '.join(map(operand_text, call.results))})")
    if call.arguments:
        parts.append(f"({', '.join(map(operand_text, call.arguments))})")
    if call.prototype:
        parts.append(call.prototype)
    return f"call{'.uni' if call.uniform else ''} {', '.join(parts)}"


class _Templates(dict[Form, str]):
    """An unguarded instruction with a gap for each operand; "" where they need more than commas between them."""

    def __missing__(self, form: Form) -> str:
        gaps = ", ".join(["%s"] * len(form.operands))
        text = self[form] = "" if _joined(form) else f"    {form.mnemonic}{' ' if gaps else ''}{gaps};\n"
        return text


_TEMPLATES = _Templates()


def _body(body: list[ir.Statement], files: dict[str, int], comments: bool) -> list[str]:
    lines: list[str] = []
    loc: Loc | None = None
    file = prefix = ""
    put, templates, render, register, instruction = lines.append, _TEMPLATES, _OPERANDS, ir.Register, ir.Instruction
    for s in body:
        if s.__class__ is not instruction and not isinstance(s, ir.Call):
            put(_other_statement(s))  # type: ignore[arg-type]
            continue
        if s.loc is not loc and s.loc != loc:
            loc = s.loc
            if loc is None:
                put("    .loc 1 0 0\n")
            else:
                if loc[0] != file or not prefix:
                    file = loc[0]
                    prefix = f"    .loc {files.setdefault(file, len(files) + 1)} "
                source = f"  // {escape(loc.source)}" if comments and loc.source else ""
                put(f"{prefix}{loc[1]} 0{source}\n")
        if s.guard is None and s.__class__ is instruction and (template := templates[s.form]):
            operands = s.operands
            # Without a list for the usual numbers of operands: half of the time to print is spent here.
            if len(operands) == 2:
                a, b = operands
                put(template % (
                    a[0] if a.__class__ is register else render[a.__class__](a),
                    b[0] if b.__class__ is register else render[b.__class__](b),
                ))
            elif len(operands) == 3:
                a, b, c = operands
                put(template % (
                    a[0] if a.__class__ is register else render[a.__class__](a),
                    b[0] if b.__class__ is register else render[b.__class__](b),
                    c[0] if c.__class__ is register else render[c.__class__](c),
                ))
            elif len(operands) == 4:
                a, b, c, d = operands
                put(template % (
                    a[0] if a.__class__ is register else render[a.__class__](a),
                    b[0] if b.__class__ is register else render[b.__class__](b),
                    c[0] if c.__class__ is register else render[c.__class__](c),
                    d[0] if d.__class__ is register else render[d.__class__](d),
                ))
            else:
                put(template % tuple([o[0] if o.__class__ is register else render[o.__class__](o) for o in operands]))
        else:
            put(f"    {instruction_text(s)};\n")
    return lines


def _other_statement(statement: ir.Label | ir.Comment) -> str:
    """What is no instruction."""
    if isinstance(statement, ir.Label):
        return f"{statement.name}:\n"
    if isinstance(statement, ir.Pragma):
        return f'    .pragma "{escape(statement.text)}";\n'
    return "".join(f"    // {escape(line)}\n" for line in statement.text.splitlines())


# ---------------------------------------------------------------------------------------------------------------------
# Functions and variables


def _function(function: ir.Function, files: dict[str, int], comments: bool) -> str:
    if function.body is None:
        return f"{_head(function)};\n"
    lines = [f"{_head(function)}\n{{\n"]
    passed = {p.name for p in (*function.parameters, *function.results) if p.space == "reg"}
    lines += _registers([r for r in function.registers if r.name not in passed] if passed else function.registers)
    lines += [f"    {_variable(v)};\n" for v in function.variables]
    lines += [f"    {label}: .callprototype {_prototype(p)};\n" for label, p in function.prototypes.items()]
    lines += [f"    {label}: .branchtargets {', '.join(names)};\n" for label, names in function.branch_tables.items()]
    lines += [f"    {label}: .calltargets {', '.join(names)};\n" for label, names in function.call_targets.items()]
    if len(lines) > 1:
        lines.append("\n")
    lines += _body(function.body, files, comments)
    lines.append("}\n")
    return "".join(lines)


class _Stems(dict[str, str]):
    """A register's name without its number; "" for one that has none."""

    def __missing__(self, name: str) -> str:
        if len(self) > 65536:
            self.clear()
        stem = name.rstrip("0123456789")
        self[name] = stem = "" if stem == name else stem
        return stem


_STEMS = _Stems()


def _registers(registers: list[ir.Register]) -> Iterator[str]:
    """The `.reg` lines: by type, ``%r<n>`` where a family counts from 0 without a gap."""
    families: dict[ScalarType, dict[str, list[str]]] = {}
    every: tuple[str, ...]
    every, kinds = zip(*registers) if registers else ((), ())
    end = 0
    for kind, group in groupby(kinds):
        start, end = end, end + len(list(group))
        names = list(every[start:end])
        stems = families.setdefault(kind, {})
        found = list(map(_STEMS.__getitem__, names))
        if found.count(found[0]) == len(found):
            stems.setdefault(found[0], []).extend(names)
        else:
            for name, stem in zip(names, found):
                stems.setdefault(stem, []).append(name)
    for kind, stems in families.items():
        head, single = f"    .reg .{kind.__name__} ", stems.pop("", [])
        for stem, names in stems.items():
            if stem != "%" and set(names) == _family(stem, len(names)):
                yield f"{head}{stem}<{len(names)}>;\n"
            else:
                single += names
        if single:
            yield from (f"{head}{line};\n" for line in _lines(single))


@lru_cache(64)
def _family(stem: str, count: int) -> frozenset[str]:
    """The registers that ``stem<count>`` declares."""
    return frozenset([f"{stem}{number}" for number in range(count)])


def _lines(items: list[str]) -> Iterator[str]:
    """The items, with commas between them, in lines of bearable length."""
    line = ""
    for item in items:
        if line and len(line) + len(item) > _WIDTH:
            yield line
            line = ""
        line = f"{line}, {item}" if line else item
    yield line


def _head(function: ir.Function) -> str:
    linkage = f".{function.linkage} " if function.linkage else ""
    return f"{linkage}.{function.kind} {_attributes(function.attributes)}{_signature(function, function.name)}"


def _signature(function: ir.Function, name: str) -> str:
    parameters = list(map(_parameter, function.parameters))
    inner = ",".join(f"\n    {parameter}" for parameter in parameters) + ("\n" if parameters else "")
    return f"{_results(function)}{name}({inner}){''.join(f'{chr(10)}{_directive(d)}' for d in function.directives)}"


def _prototype(function: ir.Function) -> str:
    parameters = ", ".join(map(_parameter, function.parameters))
    return f"{_results(function)}_ ({parameters}){''.join(f' {_directive(d)}' for d in function.directives)}"


def _results(function: ir.Function) -> str:
    return f"({', '.join(map(_parameter, function.results))}) " if function.results else ""


def _directive(directive: ir.Directive) -> str:
    name, arguments = directive
    if name == "pragma":
        return ".pragma " + ", ".join(f'"{escape(str(text))}"' for text in arguments) + ";"
    return f".{name} {', '.join(map(str, arguments))}".rstrip()


def _attributes(attributes: Iterable[ir.Directive]) -> str:
    inner = ", ".join(f".{name}({', '.join(map(str, n))})" if n else f".{name}" for name, n in attributes)
    return f".attribute({inner}) " if inner else ""


def shape_text(shape: tuple[int | None, ...]) -> str:
    """The dimensions of a variable or parameter, each in brackets."""
    return "".join(f"[{'' if extent is None else extent}]" for extent in shape)


def _parameter(p: ir.Parameter) -> str:
    align = f".align {p.align} " if p.align else ""
    pointer = ""
    if p.pointer is not None:
        space, bytes_ = p.pointer
        pointer = ".ptr " + ("" if space == "generic" else f".{space} ") + (f".align {bytes_} " if bytes_ else "")
    return f".{p.space} {align}.{p.type.__name__} {pointer}{p.name}{shape_text(p.shape)}"


def _variable(v: ir.Variable) -> str:
    linkage = f".{v.linkage} " if v.linkage else ""
    align = f".align {v.align} " if v.align else ""
    head = f"{linkage}.{v.space} {_attributes(v.attributes)}{align}.{v.type} {v.name}{shape_text(v.shape)}"
    if v.properties:
        return f"{head} = {{ {', '.join(f'{name} = {value}' for name, value in v.properties)} }}"
    if v.values is None:
        return head
    if not v.shape:
        return f"{head} = {_value(v.values[0], v.type)}"
    separator = ",\n    "
    return f"{head} = {separator.join(_lines(_nested([_value(x, v.type) for x in v.values], v.shape[1:])))}"


def _nested(values: list[str], inner: tuple[int | None, ...]) -> list[str]:
    """The initial values with the braces of an array whose inner dimensions are ``inner``."""
    for extent in reversed(inner):
        step = extent or 1
        rows = [values[n : n + step] for n in range(0, len(values), step)]
        values = [f"{{{', '.join(row)}}}" for row in rows]
    return ["{" + values[0], *values[1:-1], values[-1] + "}"] if len(values) > 1 else [f"{{{', '.join(values)}}}"]


def _value(value: int | ir.Symbol | ir.Reference, kind: ScalarType) -> str:
    if isinstance(value, int):
        return _immediate(ir.Immediate(value, kind)) if kind.kind != "f" or kind.bits >= 32 else str(value)
    if isinstance(value, ir.Symbol):
        return _symbol(value)
    name = f"generic({value.symbol})" if value.generic else value.symbol
    text = f"{name}+{value.offset}" if value.offset else name
    return text if value.mask is None else f"0x{value.mask:X}({text})"
