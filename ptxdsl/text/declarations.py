"""Declarations: variables with their initial values, parameters, and what stands at the head of a function."""

from __future__ import annotations

from typing import Any

from .. import ir
from ..errors import with_article
from ..isa.directives import DIRECTIVES, VARIABLE_ATTRIBUTES
from ..isa.targets import MEMORY
from ..types import TYPES, ScalarType
from .escape import unescape
from .numbers import Number, encoded, expression, literal
from .printer import shape_text
from .source import Source, Token

__all__ = [
    "attributes", "directives", "parameters", "registers", "strings", "variables",
]

_FUNDAMENTAL = {f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)} | {"b128", "f16", "f16x2", "f32", "f64"}
_OUTSIDE = {
    "alias", "common", "const", "entry", "extern", "file", "func", "global", "loc", "section", "shared", "visible",
    "weak",
}
"""What begins something after a declaration that lacks its semicolon."""
_OPAQUE = {"texref", "samplerref", "surfref"}
MOST_REGISTERS = 1 << 20
LARGEST_ALIGNMENT = 1 << 20
LARGEST_VECTOR = 128
MOST_DIMENSIONS = 64
LARGEST = {**MEMORY, "shared": 228 << 10, "param": 1 << 20, "global": 1 << 40}
"""The bytes that a variable can have: what a GPU has, or more than any has."""
_ALLOWED = {
    "reg": _FUNDAMENTAL | {"pred"}, "param": (_FUNDAMENTAL | _OPAQUE) - {"f16x2"}, "global": _FUNDAMENTAL | _OPAQUE,
}


def scalar_type(source: Source, space: str) -> ScalarType:
    """A ``.type``, one that variables of the space can have."""
    token = source.next()
    name = token.text[1:]
    if not token.text.startswith(".") or name not in TYPES:
        source.fail(f"expected a type such as `.b32`, not {source.quoted(token)}", token.start)
    if name not in _ALLOWED.get(space, _FUNDAMENTAL):
        source.fail(f"nothing in .{space} can have the type .{name}", token.start, hint=_instead(TYPES[name]))
    return TYPES[name]


def _instead(kind: ScalarType) -> str | None:
    register = kind.register
    return f"declare it .{register}" if register is not kind and register.__name__ in _FUNDAMENTAL else None


def vector_type(source: Source, space: str) -> tuple[ScalarType, int]:
    """A ``.type``, and the length of the vector, 0 for none: ``.v2`` or ``.v4`` may stand on either side of it."""
    at = source.peek()
    before = _vector_length(source)
    kind = scalar_type(source, space)
    lanes = before or _vector_length(source)
    if lanes * kind.bits > LARGEST_VECTOR:
        source.fail(f"a vector of {lanes} times {kind.bits} bits, and the largest has {LARGEST_VECTOR}", at.start)
    return kind, lanes


def _vector_length(source: Source) -> int:
    return next((int(text[2:]) for text in (".v2", ".v4") if source.accept(text)), 0)


def registers(source: Source) -> tuple[ScalarType, int, list[tuple[list[str], int]]]:
    """What follows ``.reg``: the type, the length of vectors or 0, and names with the place where they stand."""
    kind, lanes = vector_type(source, "reg")
    groups: list[tuple[list[str], int]] = []
    while True:
        name = source.name("a register")
        names = [name.text]
        if source.accept("<"):
            count = source.integer("how many registers")
            source.expect(">", "how many registers")
            _afford(source, count, name)
            names = [f"{name.text}{number}" for number in range(count)]
        groups.append((names, name.start))
        if not source.accept(","):
            source.expect(";", f"the declaration of {name.text}")
            return kind, lanes, groups


def _afford(source: Source, count: int, name: Token) -> None:
    """Count registers against what a module may have: a million, or one for each character of a larger text."""
    source.registers += count
    most = max(MOST_REGISTERS, len(source.text))
    if source.registers > most:
        source.fail(
            f"{count} registers {name.text}, and the registers of a module are at most {most}", name.start,
            hint="declare those that are used",
        )


def alignment(source: Source) -> int | None:
    """``.align n``, where it stands."""
    if not source.accept(".align"):
        return None
    at = source.peek()
    value = source.integer("an alignment")
    if value < 1 or value & (value - 1):
        source.fail(f"an alignment of {value}, which is no power of two", at.start)
    if value > LARGEST_ALIGNMENT:
        source.fail(f"an alignment of {value}, and the largest is {LARGEST_ALIGNMENT}", at.start)
    return value


def dimensions(source: Source) -> tuple[int | None, ...]:
    """``[4][8]``, ``[]`` or nothing."""
    shape: list[int | None] = []
    while source.accept("["):
        if len(shape) == MOST_DIMENSIONS:
            source.fail(f"an array of more than {MOST_DIMENSIONS} dimensions", source.peek().start)
        if shape and source.peek().text == "]":
            source.fail("only the first dimension of an array may lack its size", source.peek().start)
        shape.append(None if source.peek().text == "]" else source.integer("the size of an array"))
        source.expect("]", "the size of an array")
    return tuple(shape)


def attributes(source: Source) -> tuple[ir.Directive, ...]:
    """``.attribute(.managed, .unified(19, 95))``, where it stands."""
    if not source.accept(".attribute"):
        return ()
    source.expect("(", "`.attribute`")
    found = source.listed(_attribute)
    source.expect(")", "the attributes")
    return tuple(found)


def _attribute(source: Source) -> ir.Directive:
    token = source.next()
    name = token.text[1:]
    if name not in VARIABLE_ATTRIBUTES:
        hint = "there are .managed and .unified(a, b)"
        source.fail(f"{source.quoted(token)} is no attribute", token.start, hint=hint)
    if not VARIABLE_ATTRIBUTES[name].most:
        return name, ()
    source.expect("(", token.text)
    numbers = _numbers(source)
    source.expect(")", f"the numbers of {token.text}")
    return name, tuple(numbers)


def _numbers(source: Source) -> list[int]:
    return source.listed(lambda source: source.integer("a number"))


def strings(source: Source) -> tuple[str, ...]:
    """``"a", "b";`` after a ``.pragma``."""
    found = source.listed(_string)
    source.expect(";", "a pragma")
    return tuple(found)


def _string(source: Source) -> str:
    token = source.next()
    if token.text[:1] != '"':
        source.fail(f"expected a string in quotes, not {source.quoted(token)}", token.start)
    return unescape(token.text[1:-1])


def directives(source: Source) -> list[ir.Directive]:
    """The performance directives, up to the ``{`` or ``;`` that ends the head of a function, or what comes next."""
    found: list[ir.Directive] = []
    while source.peek().text.startswith(".") and source.peek().text[1:] not in _OUTSIDE:
        token = source.next()
        name = token.text[1:]
        if name == "pragma":
            found.append((name, strings(source)))
            continue
        if name not in DIRECTIVES:
            known = ", ".join(f".{known}" for known in DIRECTIVES)
            source.fail(f"`.{name}` is no directive of a function", token.start, hint=f"there are {known} and .pragma")
        least, most = DIRECTIVES[name][:2]
        values = _numbers(source) if most else []
        if any(value >> 32 for value in values):
            source.fail(f"a number of `.{name}` that does not fit in 32 bits", token.start)
        if len(values) > most:
            source.fail(f"`.{name}` takes {least if least == most else f'{least} to {most}'} numbers", token.start)
        found.append((name, tuple(values)))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Parameters


def parameters(source: Source) -> list[ir.Parameter]:
    """The parameters in parentheses after the name of a function, or the results before it; [] where there are none."""
    if not source.accept("(") or source.accept(")"):
        return []
    found = source.listed(parameter)
    source.expect(")", "a parameter")
    return found


def parameter(source: Source) -> ir.Parameter:
    """``.param .u64 .ptr .global .align 16 x``; a vector register, ``.reg .v2 .f32 x``, is an array here."""
    token = source.next()
    if token.text not in (".param", ".reg"):
        source.fail(f"expected a parameter, which begins with `.param`, not {source.quoted(token)}", token.start)
    space = token.text[1:]
    align = alignment(source)
    kind, lanes = vector_type(source, space) if space == "reg" else (scalar_type(source, space), 0)
    pointer = None
    if source.accept(".ptr"):
        where = "generic"
        for candidate in ("const", "global", "local", "shared", *sorted(_OPAQUE)):
            if source.accept(f".{candidate}"):
                where = candidate
        pointer = (where, alignment(source) or 0)
    align = align or alignment(source)
    name = source.name("a parameter")
    found = ir.Parameter(name.text, kind, (lanes,) if lanes else dimensions(source), align, pointer, space)
    check_size(source, name, "param", found.nbytes)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Variables


def variables(
    source: Source, space: str, linkage: str = "", given: tuple[ir.Directive, ...] = ()
) -> list[ir.Variable]:
    """What follows ``.global`` and the other spaces, up to the semicolon: one variable or several of one type.

    ``given`` are the attributes that stood before the space.
    """
    align = alignment(source)
    given += attributes(source)
    align = align or alignment(source)
    kind, lanes = vector_type(source, space)
    if lanes:
        # A vector is laid out as an array is, on the alignment of the whole.
        align = align or lanes * kind.bytes
    found: list[ir.Variable] = []
    while True:
        name = source.name("a variable")
        shape = dimensions(source) + ((lanes,) if lanes else ())
        variable = ir.Variable(name.text, space, kind, shape, align, None, linkage, given)
        if source.accept("="):
            _initialise(source, variable)
        elif (None in shape[:1] or 0 in shape) and linkage != "extern" and space != "param":
            source.fail(f"the array {name.text} has no size", name.start, hint="only an .extern one may lack it")
        check_size(source, name, space, variable.nbytes)
        found.append(variable)
        if not source.accept(","):
            source.expect(";", f"the declaration of {name.text}")
            return found


def check_size(source: Source, name: Token, space: str, nbytes: int) -> None:
    """Refuse a variable or parameter that no GPU has room for."""
    if nbytes > LARGEST[space]:
        source.fail(f"{name.text} has {nbytes} bytes, and .{space} memory at most {LARGEST[space]}", name.start)


def _initialise(source: Source, variable: ir.Variable) -> None:
    kind, shape = variable.type, variable.shape
    at = source.peek()
    if kind.kind == "o":
        variable.properties = tuple(_properties(source))
        return
    if kind.__name__ in ("f16", "f16x2") or variable.space in ("shared", "local", "param"):
        what = f".{kind.__name__}" if variable.space in ("global", "const") else f".{variable.space}"
        source.fail(f"{with_article(what)} variable has no initial value", at.start)
    if not shape:
        if at.text == "{":
            source.fail(f"braces around the initial value of {variable.name}, which is no array", at.start)
        variable.values = (_element(source, kind),)
        return
    values = _braces(source, kind, len(shape))
    if shape[0] is None:
        variable.shape = shape = (len(values), *shape[1:])
    flat = _flatten(values, shape)  # type: ignore[arg-type]
    if flat is None:
        source.fail(f"these initial values do not fit the array {variable.name}{shape_text(shape)}", at.start)
    variable.values = tuple(flat)


def _braces(source: Source, kind: ScalarType, depth: int) -> list[Any]:
    brace = source.expect("{", "`=`")
    if not depth:
        source.fail("braces nested deeper than the array has dimensions", brace.start)
    values: list[Any] = []
    while not source.accept("}"):
        values.append(_braces(source, kind, depth - 1) if source.peek().text == "{" else _element(source, kind))
        if not source.accept(","):
            source.expect("}", "an initial value")
            break
    return values


def _flatten(values: list[Any], shape: tuple[int, ...]) -> list[Any] | None:
    """Row-major values of an array; rows that are written shorter are filled up with 0. None if they do not fit."""
    if len(shape) == 1:
        return values if len(values) <= shape[0] and not any(isinstance(value, list) for value in values) else None
    size = 1
    for extent in shape[1:]:
        size *= extent
    flat: list[Any] = []
    for value in values:
        row = _flatten(value, shape[1:]) if isinstance(value, list) else None
        if row is None:
            return None
        flat += row + [0] * (size - len(row))
    while flat and flat[-1] == 0:
        flat.pop()
    return flat if len(values) <= shape[0] else None


def _element(source: Source, kind: ScalarType) -> int | ir.Symbol | ir.Reference:
    token = source.peek()
    number = literal(token.text)
    if number is not None and number.exact is None:
        after = source.at
        source.next()
        if source.accept("("):
            symbol, offset, generic = _address(source)
            source.expect(")", "the address that a mask applies to")
            return ir.Reference(symbol, offset, generic, int(number.value))
        source.at = after
    if number is None and token.text[:1] not in "-+~!(":
        symbol, offset, generic = _address(source)
        return ir.Reference(symbol, offset, True) if generic else ir.Symbol(symbol, offset)
    return _encoded(source, token, expression(source), kind)


def _encoded(source: Source, token: Token, number: Number, kind: ScalarType) -> int:
    if kind.kind == "b" and kind.bits in (16, 32) and isinstance(number.value, float):
        kind = TYPES[f"f{kind.bits}"]
    try:
        return encoded(number, kind)
    except (ValueError, TypeError) as error:
        source.fail(str(error), token.start)


def _address(source: Source) -> tuple[str, int, bool]:
    generic = source.accept("generic")
    if generic:
        source.expect("(", "`generic`")
    symbol = source.name("a variable").text
    if generic and source.accept(")"):
        return symbol, _offset(source), True
    offset = _offset(source)
    if generic:
        source.expect(")", "the address in `generic(...)`")
    return symbol, offset, generic


def _offset(source: Source) -> int:
    if source.peek().text not in ("+", "-"):
        return 0
    negative = source.next().text == "-"
    value = int(expression(source, 9).value)
    return -value if negative else value


def _properties(source: Source) -> list[tuple[str, int | str]]:
    found: list[tuple[str, int | str]] = []
    source.expect("{", "`=`")
    while not source.accept("}"):
        name = source.name("a property").text
        source.expect("=", "the name of a property")
        if source.peek().text[:1].isdigit():
            found.append((name, source.integer("the value of a property")))
        else:
            found.append((name, source.name("the value of a property").text))
        if not source.accept(","):
            source.expect("}", "a property")
            break
    return found


