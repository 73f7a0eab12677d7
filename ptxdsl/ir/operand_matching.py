"""Whether an operand is what the table wants, and the words of the error where it is not.

The parser chooses with it between the forms that a mnemonic spells, the verifier checks every instruction with it.
The rules are those of the PTX manual, "Operand Size and Type Checking": sizes agree, and where a row is ``relaxed``
(ld, st, cvt) a register may be wider than an integer or untyped operand, never than a floating-point one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from ..errors import UnknownInstruction
from ..isa import Form, OperandSpec, special
from ..types import ScalarType, compatible, f32, f64
from . import module as ir

__all__ = ["accepts", "elements", "fits", "mismatch", "takes", "wanted"]


def accepts(type: ScalarType, register: ScalarType, relaxed: bool) -> bool:
    """Whether an operand of ``type`` may be a register declared ``register``.

    Of wider registers, a floating-point operand takes untyped ones only.

    >>> from ..types import b16, f32, u8, u32
    >>> accepts(u8, b16, relaxed=True), accepts(u8, b16, relaxed=False), accepts(f32, u32, relaxed=True)
    (True, False, False)
    """
    if not relaxed or type.bits >= register.bits:
        return compatible(type, register)
    if type.kind == "f":
        return register.kind == "b" and register.bits <= 64
    if register.kind == "p" or type.kind == "p":
        return False
    return type.kind == "b" or register.kind != "f"


def takes(type: ScalarType, value: ScalarType, relaxed: bool) -> bool:
    """Whether an operand of ``type`` may be a value of the language's type ``value``.

    As `accepts`, but by what a value means, where PTX only sees a register's size: never one float for another.

    >>> from ptxdsl.types import b16, bf16, f16, u16
    >>> takes(b16, bf16, relaxed=False), takes(f16, bf16, relaxed=False), takes(f16, u16, relaxed=False)
    (True, False, False)
    """
    if type is value:
        return True
    if "p" in (type.kind, value.kind) or (type.bits != value.bits and not (relaxed and value.bits > type.bits)):
        return False
    if "b" in (type.kind, value.kind):
        return True
    return type.kind in "us" and value.kind in "us" and type.lanes == value.lanes


def fits(form: Form, operands: tuple[ir.Operand, ...]) -> bool:
    """Whether the operands are what the form wants."""
    relaxed = form.row.relaxed
    return len(operands) == len(form.operands) and all(
        mismatch(spec, operand, relaxed) is None for spec, operand in zip(form.operands, operands)
    )


def wanted(spec: OperandSpec) -> str:
    """What an operand must be: ``a .b32 register or number``."""
    if spec.kind != "value":
        names = {"address": "an address in brackets", "label": "a label", "symbol": "the name of a function or list"}
        return names[spec.kind]
    kinds = [name for name, allowed in (("register", spec.register), ("number", spec.immediate)) if allowed]
    text = f"{' or '.join(kinds) or 'register'}"
    if spec.count:
        return f"{spec.count} .{spec.type} {text}{'s' if spec.count > 1 else ''} in braces"
    return f"a .{spec.type} {text}"


def mismatch(spec: OperandSpec, operand: ir.Operand, relaxed: bool = False) -> str | None:
    """Why an operand is not what its form wants: ``it is a .f32 register``; None if it is."""
    if spec.kind == "address":
        return _address(spec, operand)
    if spec.kind != "value":
        named = ir.LabelRef if spec.kind == "label" else ir.Symbol
        return None if isinstance(operand, named) else f"it is {described(operand)}"
    if spec.count:
        if not isinstance(operand, ir.Vector):
            return f"it is {described(operand)}"
        if len(operand.items) != spec.count:
            return f"it has {len(operand.items)} elements"
        for inner, item in zip(elements(spec), operand.items):
            if why := _value(inner, item, relaxed):
                return why
        if spec.types:
            return None
        sizes = {item.type.bits for item in operand.items if isinstance(item, ir.Register)}
        return "its registers differ in size" if len(sizes) > 1 else None
    return _value(spec, operand, relaxed)


@cache
def elements(spec: OperandSpec) -> tuple[OperandSpec, ...]:
    """What each operand in the braces of an operand must be."""
    types = spec.types or (spec.type,) * spec.count
    return tuple(replace(spec, type=type, types=(), count=0) for type in types)


def _value(spec: OperandSpec, operand: ir.Operand, relaxed: bool) -> str | None:
    type = spec.type
    assert type is not None
    if isinstance(operand, ir.Register):
        good = spec.register and not spec.selected and accepts(type, operand.type, relaxed)
    elif isinstance(operand, ir.Selected):
        return _selected(spec, type, operand)
    elif isinstance(operand, ir.Immediate):
        return _immediate(spec, type, operand)
    elif isinstance(operand, ir.Symbol):
        good = spec.variable
    elif isinstance(operand, ir.SpecialRegister):
        return _special(spec, type, operand)
    elif isinstance(operand, ir.Not):
        good = spec.negatable and type.kind == "p" and accepts(type, operand.predicate.type, relaxed)
    else:
        good = isinstance(operand, ir.Sink) and spec.sink
    return None if good else f"it is {described(operand)}"


def _selected(spec: OperandSpec, type: ScalarType, operand: ir.Selected) -> str | None:
    if operand.negated and not (spec.negatable and type.kind != "p"):
        return "it has a minus sign"
    if not accepts(type, operand.register.type, relaxed=False):
        return f"it is {described(operand)}"
    whole = not operand.selector and not spec.selected
    if not whole and not (spec.selector and re.fullmatch(spec.selector, operand.selector)):
        return f"it is {described(operand)}"
    return None


def _immediate(spec: OperandSpec, type: ScalarType, number: ir.Immediate) -> str | None:
    wide = number.type.bits == type.bits
    same = number.type is type or (wide and type.kind == "b" and number.type in (f32, f64))
    if not spec.immediate or not same:
        return f"it is {described(number)}"
    if not 0 <= number.bits < 1 << type.bits:
        return f"{number.bits} does not fit in {type}"
    value = number.value
    low, high = spec.bounds or (0, 0)
    if isinstance(value, int) and low < 0 and value >> (type.bits - 1):
        value -= 1 << type.bits
    if spec.admits(value):
        return None
    if spec.choices:
        return f"{value} is not one of {', '.join(map(str, spec.choices))}"
    return f"{value} is not " + (f"a multiple of {spec.step}" if low <= value <= high else f"between {low} and {high}")


def _special(spec: OperandSpec, type: ScalarType, operand: ir.SpecialRegister) -> str | None:
    if not spec.special:
        return f"it is {described(operand)}"
    try:
        found = special(operand.special)
    except UnknownInstruction as error:
        return error.message
    if (found.type.kind == "p") != (type.kind == "p"):
        return f"{operand.special} is a .{found.type}"
    if found.type.bits != type.bits and not (found.type.bits > type.bits and found.relaxed):
        return f"{operand.special} is a .{found.type}"
    return None


def _address(spec: OperandSpec, operand: ir.Operand) -> str | None:
    if not isinstance(operand, ir.Address):
        return f"it is {described(operand)}"
    base = operand.base
    if isinstance(base, ir.Register) and (base.type.kind in "fp" or base.type.bits not in (32, 64)):
        return f"its base is {described(base)}"
    if operand.parts and operand.offset:
        return "it has an offset, and operands behind the address"
    if len(operand.parts) != len(spec.parts):
        return f"it has {len(operand.parts)} operands behind the address, not {len(spec.parts)}"
    for inner, part in zip(spec.parts, operand.parts):
        if why := mismatch(inner, part):
            return why
    return None


def described(operand: ir.Operand) -> str:
    """An operand in words: ``the .f32 register %f1``."""
    if isinstance(operand, ir.Register):
        return f"the .{operand.type} register {operand.name}"
    if isinstance(operand, ir.Immediate):
        return f"the .{operand.type} number {operand.value}"
    names = {
        ir.Symbol: "the address of {0}", ir.SpecialRegister: "the special register {0}", ir.LabelRef: "the label {0}",
        ir.Sink: "the sink {0}",
    }
    if operand.__class__ in names:
        return names[operand.__class__].format(operand[0])
    if isinstance(operand, ir.Not):
        return f"the negated predicate !{operand.predicate.name}"
    if isinstance(operand, ir.Vector):
        return f"a vector of {len(operand.items)}"
    if isinstance(operand, ir.Selected):
        return f"the part .{operand.selector} of the .{operand.register.type} register {operand.register.name}"
    return "an address in brackets"
