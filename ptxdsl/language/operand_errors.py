"""Operand errors: why an argument is not what an operand of an instruction must be, in words that name both.

What an operand must be is said by the table and `ir.operand_matching`; here Python's arguments are checked against it.
Nothing is appended and no register is named until a form without an error is found. Most arguments have none, so a name
or a hint is worked out only when there is one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import ir
from ..errors import PtxTypeError, with_article
from ..ir.operand_matching import elements, mismatch, takes
from ..isa import Form, OperandSpec
from ..types import ScalarType, encode, pred
from .builder import current
from .call_signature import SINK, inputs, outputs, returned, syntax
from .errors import conversions, described, located, named
from .memory.addresses import NARROW
from .memory.declared import Declared
from .memory.pointers import Pointer
from .memory.tensor_map import TensorMapValue
from .values.literals import is_number, plain
from .values.value import Part, Reg, Value

__all__ = [
    "OperandError", "argument_error", "check_update", "count_error", "number_error", "operand_error", "out_error",
    "outs_error", "symbol",
]


class OperandError(NamedTuple):
    """Why an argument is not what an operand must be; ``wrong_kind`` where it is not even of the right kind."""

    text: str
    hint: str
    wrong_kind: bool = False


def operand_error(form: Form, spec: OperandSpec, why: OperandError) -> PtxTypeError:
    name = "out" if returned(spec) else f"operand `{spec.name}`"
    return located(PtxTypeError, f"{name} of `{syntax(form)}` {why.text}", why.hint)


def count_error(forms: Sequence[Form], arguments: tuple[Any, ...]) -> PtxTypeError:
    counts = sorted({len(inputs(form)) for form in forms})
    wanted = " or ".join(map(str, counts))
    form = min(forms, key=lambda form: abs(len(inputs(form)) - len(arguments)))
    names = ", ".join(_tuple(spec) if spec.parts else spec.name for spec in inputs(form))
    hint = f"it takes {names}; " if names else ""
    hint += "the result is returned, or written to `out=`" if outputs(form) else "it has no result"
    if any(isinstance(argument, Value) and argument.type is pred for argument in arguments):
        hint += "; a guard is `pred=..`"
    return located(
        PtxTypeError,
        f"`{syntax(form)}` takes {wanted} operand{'' if wanted == '1' else 's'}, and got {len(arguments)}", hint,
    )


def outs_error(forms: Sequence[Form], out: Any) -> PtxTypeError:
    form = forms[0]
    specs = outputs(form)
    got = f"{len(out)} of them" if isinstance(out, (list, tuple)) else described(out)
    if not specs:
        return located(PtxTypeError, f"`{syntax(form)}` has no result for `out`", "leave it out")
    wanted = "one reg" if len(specs) == 1 else f"{len(specs)} regs"
    if specs[0].count:
        wanted = f"a list of {specs[0].count} regs"
    return located(PtxTypeError, f"out of `{syntax(form)}` is {wanted}, not {got}", f"`out=reg({specs[0].type})`")


def check_update(form: Form, dtype: ScalarType) -> None:
    """A located PtxTypeError where an atomic operation computes with elements as numbers that they are not.

    The least and the greatest of floats may be found by their bits, as integers.
    """
    kind = form.type
    if kind is None or kind is dtype or "b" in (kind.kind, dtype.kind) or kind.lanes > 1 or dtype.lanes > 1:
        return
    if dtype.bits == 8:  # bytes: memory of no type
        return
    operation = form.effects.atomic
    ordered = operation == "min" or operation == "max"
    if not ordered and operation != "add" and operation not in ("inc", "dec"):
        return
    if kind.bits == dtype.bits:
        if kind.is_integer and dtype.is_float and ordered:
            return
        if kind.is_float == dtype.is_float and not (ordered and kind.is_signed != dtype.is_signed):
            return
    raise located(
        PtxTypeError, f"`{form.mnemonic}` updates {with_article(kind)}, and the pointer is one to {dtype}",
        f"the operation of {dtype}, or `x.cast({kind})` to take what lies there for {with_article(kind)}",
    )


def argument_error(form: Form, spec: OperandSpec, argument: Any) -> OperandError | None:
    if spec.kind == "address":
        return _address_error(form, spec, argument)
    if spec.kind == "value":
        return _vector_error(form, spec, argument) if spec.count else _value_error(form, spec, argument)
    if spec.kind == "label" or isinstance(argument, (list, tuple)):
        return None
    return OperandError(f"is a list of labels, not {_what(argument)}", "`ptx.brx.idx(i, [first, second])`", True)


def _vector_error(form: Form, spec: OperandSpec, argument: Any) -> OperandError | None:
    if not isinstance(argument, (tuple, list)) or len(argument) != spec.count:
        got = f"{len(argument)}" if isinstance(argument, (tuple, list)) else _what(argument)
        return OperandError(
            f"is {spec.count} values of {spec.type} in braces, not {got}", f"a list or a Vec of {spec.count}", True
        )
    return next(filter(None, (_value_error(form, one, item) for one, item in zip(elements(spec), argument))), None)


def _what(argument: Any) -> str:
    return argument._kind() if isinstance(argument, (Value, Pointer, TensorMapValue)) else described(argument)


def _value_error(form: Form, spec: OperandSpec, argument: Any) -> OperandError | None:
    wanted = spec.type
    assert wanted is not None
    if isinstance(argument, Value):
        return _register_error(form, spec, wanted, argument)
    if argument.__class__ is str:
        return _name_error(spec, wanted, argument)
    if isinstance(argument, Part):
        return _part_error(spec, argument)
    if is_number(argument):
        return number_error(spec, wanted, plain(argument))
    if spec.variable and (
        hasattr(argument, "symbol") or (isinstance(argument, Pointer) and isinstance(argument.base, Declared))
    ):
        return None
    if isinstance(argument, (Pointer, TensorMapValue)):
        return OperandError(
            f"is {with_article(wanted)}, not {with_article(_what(argument))}",
            f"`{named(argument, 'p')}.address` is its address as a number", True,
        )
    if isinstance(argument, (tuple, list)):
        return OperandError(
            f"is one {wanted}, not {len(argument)} values", "the vector forms have `.v2` or `.v4`", True
        )
    hint = "operands are Values, regs and Python numbers"
    if hasattr(argument, "mnemonic"):
        hint = f"call it, `{argument!r}(..)`"
    return OperandError(f"is {with_article(wanted)}, not {described(argument)}", hint, True)


_NAME = r"([a-zA-Z_$][\w$]*)(?:\+(\d+))?"


def symbol(text: str) -> ir.Symbol | None:
    """A parameter of the kernel by name, as ``"p"`` or ``"p+8"``; None if there is none."""
    found, trace = re.fullmatch(_NAME, text), current()
    if found is None or found[1] not in trace.parameters:
        return None
    trace.needs_verification = True
    return ir.Symbol(found[1], int(found[2] or 0))


def _name_error(spec: OperandSpec, wanted: ScalarType, text: str) -> OperandError | None:
    """Whether a str is the sink, a special register or a parameter's address, where such may stand."""
    if text == SINK and spec.sink:
        return None
    if text.startswith("%") and spec.special:
        why = mismatch(spec, ir.SpecialRegister(text))
        return OperandError(f"is {with_article(wanted)}: {why}", '`ptx.tid.x`, or as here `"%tid.x"`') if why else None
    if spec.variable and symbol(text):
        return None
    hint = "operands are Values, regs and Python numbers"
    return OperandError(f"is {with_article(wanted)}, not {described(text)}", hint, True)


def _part_error(spec: OperandSpec, part: Part) -> OperandError | None:
    if spec.role != "r" and not isinstance(part.value, Reg):
        return OperandError(
            "is written by the instruction, and a Value is not", f'`v = reg({part.value.type}, 0)`, `v.part("b0")`'
        )
    why = mismatch(spec, part.operand())
    if why is None:
        return None
    if spec.selector:
        return OperandError(f"has no such part: {why}", '`v.part("b0")` to "b3", `v.part("h0")`, `v.part("h1")`')
    return OperandError(f"is a whole register: {why}", "`v` without `.part()`")


def _register_error(form: Form, spec: OperandSpec, wanted: ScalarType, value: Value) -> OperandError | None:
    if spec.register and spec.role == "r" and not spec.selected and takes(wanted, value.type, form.row.relaxed):
        return None
    name = named(value, "v")
    if spec.selected:
        return OperandError("names bytes or halfwords of the register", f'`{name}.part("b3210")`')
    if not spec.register:
        return OperandError(
            f"is a number known while tracing, not a run-time {value.type}", "a keyword-only parameter of the kernel",
            True,
        )
    if spec.role == "rw" and not isinstance(value, Reg):
        return OperandError(
            "is changed by the instruction, and a Value is not", f"`{name} = reg({value.type}, {name})` before it"
        )
    if takes(wanted, value.type, form.row.relaxed):
        return None
    hint = conversions(value, wanted)
    if pred in (wanted, value.type):
        hint = f"`{name} != 0`" if wanted is pred else f"`{name}.to({wanted})`"
    return OperandError(f"is {with_article(wanted)}, not {with_article(value.type)}", hint)


def number_error(spec: OperandSpec, wanted: ScalarType, number: Any) -> OperandError | None:
    if not spec.immediate:
        return OperandError(f"is a register, not the number {number!r}", f"`reg({wanted}, {number!r})`")
    try:
        encode(number, wanted)
    except PtxTypeError as error:
        return OperandError(f"is {with_article(wanted)}: {error.message}", error.hint or "a number that fits")
    if spec.name == "membermask" and number == 0:
        return OperandError("is the set of lanes that take part, not 0", "`0xFFFFFFFF` is all 32 lanes of the warp")
    if not spec.admits(number):
        if spec.choices:
            wanted_numbers = f"one of {', '.join(map(str, spec.choices))}"
        else:
            assert spec.bounds is not None
            steps = f" in steps of {spec.step}" if spec.step > 1 else ""
            wanted_numbers = f"a number from {spec.bounds[0]} to {spec.bounds[1]}{steps}"
        return OperandError(f"is {wanted_numbers}, not {number}", "a number within the bounds")
    return None


def _address_error(form: Form, spec: OperandSpec, argument: Any) -> OperandError | None:
    space = (spec.space or form.space).split("::")[0]
    if spec.parts:
        if not isinstance(argument, (tuple, list)) or len(argument) != 1 + len(spec.parts):
            name = named(argument, spec.name) if isinstance(argument, Value) else spec.name
            return OperandError(
                f"is a tuple of an address and what belongs to it, not {_what(argument)}",
                f"one operand for all of it: `{_tuple(spec, name)}`", True,
            )
        for part, item in zip(spec.parts, argument[1:]):
            why = argument_error(form, part, item)
            if why is not None:
                return why
        argument = argument[0]
    if isinstance(argument, TensorMapValue):
        return None
    if isinstance(argument, str):
        return _parameter_error(space, argument)
    if isinstance(argument, Pointer):
        if argument.read_only and "w" in spec.role:
            return OperandError(
                f"is written, and `{named(argument, 'p')}` is {with_article(argument._kind())}, which only reads",
                f"a parameter that is written is a `Ptr[{argument.dtype}]`, without `const`", True,
            )
        named_space = space == "shared" and argument.space.startswith("shared::") and argument.space in form.tokens
        return None if named_space else _space_error(space, argument)
    if isinstance(argument, Value):
        type = argument.type
        narrow = space in ("tmem", "fabric")
        if type.kind in "usb" and type.lanes == 1 and (
            (type.bits == 64 and not narrow) or (type.bits == 32 and (narrow or space in (*NARROW, "const")))
        ):
            return None
        name = named(argument, "v")
        hint = "`x.at(i)` is the address of the element `x[i]`"
        if type.is_integer and type.lanes == 1 and type.bits >= 32:
            hint = f"a pointer: `x + {name}`; {hint}"
        return OperandError(f"is an address, not {with_article(argument.type)}", hint, True)
    return OperandError(
        f"is an address, not {described(argument)}",
        "a pointer `x + i`, the address `x.at(i)` of an element, or one in a u64", True,
    )


def _parameter_error(space: str, text: str) -> OperandError | None:
    if space in ("param", "generic") and symbol(text):
        return None
    known = ", ".join(f"`{name}`" for name in sorted(current().parameters)) or "none"
    return OperandError(
        f"is an address, not {described(text)}", f"a pointer `x + i`; `.param` instructions name a parameter: {known}",
        True,
    )


def _space_error(space: str, pointer: Pointer) -> OperandError | None:
    if pointer.space == space or (space == "generic" and pointer.space == "global"):
        return None
    name = named(pointer, "p")
    if space == "generic":
        hint = f"`{name}.generic()`, or the form of the instruction that names the state space"
    elif pointer.space == "generic" or space == "generic":
        hint = f"`ptx.cvta.to.{space}{'_' if space == 'global' else ''}.u64({name}.address)`"
    else:
        hint = f"`.{pointer.space}` in the instruction's name"
    return OperandError(f"is an address in {space} memory, not in {pointer.space} memory", hint)


def _tuple(spec: OperandSpec, name: str = "") -> str:
    parts = (f"({part.name}, ..)" if part.count else part.name for part in spec.parts)
    return f"({', '.join((name or spec.name, *parts))})"


def out_error(form: Form, spec: OperandSpec, target: Any) -> OperandError | None:
    wanted = spec.type
    assert wanted is not None
    if target is None or (target is SINK and spec.sink and not spec.count):
        return None
    if spec.count and isinstance(target, (list, tuple)):
        if len(target) != spec.count:
            return OperandError(
                f"is {spec.count} regs, not {len(target)}", f"`[reg({wanted}) for _ in range({spec.count})]`", True
            )
        return next(filter(None, (out_error(form, one, item) for one, item in zip(elements(spec), target))), None)
    if isinstance(target, Part):
        return _part_error(spec, target)
    if isinstance(target, Reg):
        if spec.selected:
            return OperandError("names bytes or halfwords of the reg", '`out=v.part("b3210")`')
        if takes(wanted, target.type, form.row.relaxed):
            return None
        return OperandError(f"is {with_article(wanted)}, not a reg of {target.type}", f"`reg({wanted})`")
    if target is SINK:
        return OperandError("must be kept: PTX has no `_` here", f"`out=reg({wanted})`", True)
    name = named(target, "v")
    hint = f"`{name} = reg({target.type}, {name})`" if isinstance(target, Value) else f"`reg({wanted})`"
    return OperandError(f"is a reg, not {'a Value' if isinstance(target, Value) else described(target)}", hint, True)
