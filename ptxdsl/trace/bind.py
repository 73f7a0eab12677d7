"""From Python arguments to the operands of an instruction.

A mnemonic may spell several forms (with a mask or without, packing or unpacking); the arguments decide. Each form is
tried by `problem`, which only looks: the first without a problem is bound, and if all have one, the problem of the
nearest is the error. What was bound once is remembered by the types of its arguments, so that a loop unrolled a
thousand times decides once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from .. import ir
from ..errors import PtxTypeError
from ..isa import Form, OperandSpec
from ..types import ScalarType, encode, pred
from .arrays import TensorMapValue
from .builder import Trace
from .literals import is_number, known_literal, literal, plain
from .memory import NARROW, Pointer
from .problems import described, located, named
from .values import Negated, Parameter, Reg, Result, Value, Vec

__all__ = ["SINK", "Plan", "apply", "kind_of", "plan", "syntax"]

SINK = "_"


class Problem(NamedTuple):
    """Why an argument is not what an operand must be; ``grave`` where it is not even of the right kind."""

    text: str
    hint: str
    grave: bool = False


Converter = Callable[[Trace, Form, OperandSpec, Any], ir.Operand]


class Plan(NamedTuple):
    """How arguments of certain kinds become the operands of a form.

    ``steps`` has, for each operand of the form, what converts the caller's argument, or None for a result; ``kept``
    is the type of each result. ``sources`` has the arguments' steps again, and whether a Value is simply its register.
    """

    form: Form
    steps: tuple[tuple[OperandSpec, Converter | None], ...]
    kept: tuple[ScalarType, ...]
    sources: tuple[tuple[OperandSpec, Converter, bool], ...]
    direct: bool
    """Whether there is no result, or one that is the first operand and not in braces: what most instructions are."""


_VALUES = frozenset((Result, Reg, Parameter))


def kind_of(argument: Any) -> Any:
    """What of an argument decides how it binds: the type of a value, the state space of a pointer, the class of others."""
    kind = argument.__class__
    if kind in _VALUES:
        return argument.type if kind is not Reg else (Reg, argument.type)
    if kind is list or kind is tuple or kind is Vec:
        return tuple([kind_of(item) for item in argument])
    if isinstance(argument, Pointer):
        return argument.space, argument.base.__class__ is str
    return kind if kind is not Negated else (Negated, argument.type)


def syntax(form: Form) -> str:
    """A form as it is written: ``shfl.sync.bfly.b32 d, a, b, c, membermask``."""
    text = form.mnemonic
    for i, spec in enumerate(form.operands):
        text += ("|" if spec.joined else " " if i == 0 else ", ") + _notation(spec)
    return text


def _notation(spec: OperandSpec) -> str:
    if spec.kind == "address":
        return f"[{', '.join((spec.name, *map(_notation, spec.parts)))}]"
    if spec.count:
        names = [f"{spec.name}{i}" for i in range(spec.count)]
        return f"{{{', '.join(names if len(names) <= 4 else (names[0], '...', names[-1]))}}}"
    return spec.name


def inputs(form: Form) -> list[OperandSpec]:
    """The operands that the caller gives."""
    return [spec for spec in form.operands if not _returned(spec)]


def outputs(form: Form) -> list[OperandSpec]:
    """The operands that are returned."""
    return [spec for spec in form.operands if _returned(spec)]


def plan(forms: Sequence[Form], arguments: tuple[Any, ...], out: Any) -> Plan:
    """How the first of the forms that takes the arguments does; a located PtxTypeError if none does."""
    form = _choose(forms, arguments, out)
    given = iter(arguments)
    steps = tuple((spec, None if _returned(spec) else _converter(spec, next(given))) for spec in form.operands)
    specs = outputs(form)
    direct = not specs or (len(specs) == 1 and form.operands[0] is specs[0] and not specs[0].count)
    sources = tuple((spec, convert, convert in (_used, _predicate)) for spec, convert in steps if convert is not None)
    return Plan(form, steps, tuple(_kept(spec, form, arguments) for spec in specs), sources, direct)


def apply(trace: Trace, plan: Plan, arguments: tuple[Any, ...], out: Any, guard: ir.Register | ir.Not | None) -> Any:
    """Append the instruction; its result, or a tuple of several."""
    form = plan.form
    outs = (out,) if len(plan.kept) == 1 else out if out is not None else (None,) * len(plan.kept)
    if guard is not None and plan.kept and any(target is None for target in _flat(outs)):
        raise located(
            PtxTypeError, f"a guarded `{form.mnemonic}` may compute nothing, and a Value has always been computed",
            f"`v = reg({plan.kept[0]}, 0)` before it, then `out=v, pred=..`",
        )
    # Sources first: reading `~p` may take an instruction of its own, and a result must not be named before it.
    given = iter(arguments)
    operands: list[Any] = [
        None if convert is None else convert(trace, form, spec, next(given)) for spec, convert in plan.steps
    ]
    results: list[Any] = []
    for at, (spec, convert) in enumerate(plan.steps):
        if convert is None:
            operands[at], result = _result(trace, spec, outs[len(results)], plan.kept[len(results)])
            results.append(result)
    trace.emit(form, tuple(operands), guard)
    return results[0] if len(results) == 1 else tuple(results) if results else None


def _returned(spec: OperandSpec) -> bool:
    return spec.kind == "value" and spec.role == "w"


# ---------------------------------------------------------------------------------------------------------------------
# Which form


def _choose(forms: Sequence[Form], arguments: tuple[Any, ...], out: Any) -> Form:
    candidates = [form for form in forms if len(inputs(form)) == len(arguments)]
    if not candidates:
        raise _miscounted(forms, arguments)
    fitting = sorted((form for form in candidates if _outs_fit(form, out)), key=lambda form: len(outputs(form)))
    if not fitting:
        raise _unfit_outs(candidates, out)
    nearest: tuple[Form, OperandSpec, Problem] | None = None
    for form in fitting:
        found = _first_problem(form, arguments, out)
        if found is None:
            return form
        if nearest is None or (nearest[2].grave and not found[1].grave):
            nearest = (form, *found)
    assert nearest is not None
    raise _error(*nearest)


def _error(form: Form, spec: OperandSpec, why: Problem) -> PtxTypeError:
    name = "out" if _returned(spec) else f"operand `{spec.name}`"
    return located(PtxTypeError, f"{name} of `{syntax(form)}` {why.text}", why.hint)


def _first_problem(form: Form, arguments: tuple[Any, ...], out: Any) -> tuple[OperandSpec, Problem] | None:
    for spec, argument in zip(inputs(form), arguments):
        why = _problem(form, spec, argument)
        if why is not None:
            return spec, why
    for spec, target in zip(outputs(form), _outs(form, out)):
        why = _target_problem(form, spec, target)
        if why is not None:
            return spec, why
    return None


def _miscounted(forms: Sequence[Form], arguments: tuple[Any, ...]) -> PtxTypeError:
    counts = sorted({len(inputs(form)) for form in forms})
    wanted = " or ".join(map(str, counts))
    form = min(forms, key=lambda form: abs(len(inputs(form)) - len(arguments)))
    names = ", ".join(spec.name for spec in inputs(form))
    hint = f"it takes {names}; " if names else ""
    hint += "the result is returned, or written to `out=`" if outputs(form) else "it has no result"
    return located(
        PtxTypeError, f"`{syntax(form)}` takes {wanted} operand{'' if wanted == '1' else 's'}, and got {len(arguments)}", hint
    )


def _outs(form: Form, out: Any) -> list[Any]:
    """One target for each result: a Reg, the sink, None for a new Value, or a list of these for a vector."""
    specs = outputs(form)
    if len(specs) == 1:
        return [out]
    return list(out) if out is not None else [None] * len(specs)


def _flat(outs: Sequence[Any]) -> Iterator[Any]:
    for target in outs:
        if isinstance(target, (list, tuple)):
            yield from target
        else:
            yield target


def _outs_fit(form: Form, out: Any) -> bool:
    specs = outputs(form)
    if out is None:
        return True
    if len(specs) == 1:
        many = isinstance(out, (list, tuple))
        return len(out) == specs[0].count if many else not specs[0].count or out is SINK
    return isinstance(out, (list, tuple)) and len(out) == len(specs) > 0


def _unfit_outs(forms: Sequence[Form], out: Any) -> PtxTypeError:
    form = forms[0]
    specs = outputs(form)
    got = f"{len(out)} of them" if isinstance(out, (list, tuple)) else described(out)
    if not specs:
        return located(PtxTypeError, f"`{syntax(form)}` has no result for `out`", "leave it out")
    wanted = f"a list of {specs[0].count} regs" if specs[0].count else "one reg" if len(specs) == 1 else f"{len(specs)} regs"
    return located(PtxTypeError, f"out of `{syntax(form)}` is {wanted}, not {got}", f"`out=reg({specs[0].type})`")


# ---------------------------------------------------------------------------------------------------------------------
# What is wrong


def fits(wanted: ScalarType, type: ScalarType, relaxed: bool) -> bool:
    """Whether an operand of type ``wanted`` takes a value of ``type``: PTX's rule, and never one float for another."""
    if wanted is type:
        return True
    if pred in (wanted, type) or (wanted.bits != type.bits and not (relaxed and type.bits > wanted.bits)):
        return False
    if "b" in (wanted.kind, type.kind):
        return True
    return wanted.kind in "us" and type.kind in "us" and wanted.lanes == type.lanes


def _problem(form: Form, spec: OperandSpec, argument: Any) -> Problem | None:
    if spec.kind == "address":
        return _address_problem(form, spec, argument)
    if spec.kind == "value":
        return _many_problem(form, spec, argument) if spec.count else _value_problem(form, spec, argument)
    if isinstance(argument, (str, Pointer)) or hasattr(argument, "name"):
        return None
    return Problem(f"is a {spec.kind}, not {described(argument)}", "`l = label()`" if spec.kind == "label" else "its name", True)


def _many_problem(form: Form, spec: OperandSpec, argument: Any) -> Problem | None:
    if not isinstance(argument, (tuple, list)) or len(argument) != spec.count:
        got = f"{len(argument)}" if isinstance(argument, (tuple, list)) else _what(argument)
        return Problem(f"is {spec.count} values of {spec.type} in braces, not {got}", f"a list or a Vec of {spec.count}", True)
    return next(filter(None, (_value_problem(form, _single(spec), item) for item in argument)), None)


def _what(argument: Any) -> str:
    return argument._kind() if isinstance(argument, (Value, Pointer, TensorMapValue)) else described(argument)


def _value_problem(form: Form, spec: OperandSpec, argument: Any) -> Problem | None:
    wanted = spec.type
    assert wanted is not None
    if isinstance(argument, Value):
        return _register_problem(form, spec, wanted, argument)
    if is_number(argument):
        return _number_problem(spec, wanted, plain(argument))
    if isinstance(argument, Pointer) and spec.variable and isinstance(argument.base, str):
        return None
    if isinstance(argument, (Pointer, TensorMapValue)):
        return Problem(f"is a {wanted}, not a {_what(argument)}", f"`{named(argument, 'p')}.address` is its address as a number", True)
    if isinstance(argument, (tuple, list)):
        return Problem(f"is one {wanted}, not {len(argument)} values", "the vector forms have `.v2` or `.v4`", True)
    hint = f"call it, `{argument!r}(..)`" if hasattr(argument, "mnemonic") else "operands are Values, regs and Python numbers"
    return Problem(f"is a {wanted}, not {described(argument)}", hint, True)


def _register_problem(form: Form, spec: OperandSpec, wanted: ScalarType, value: Value) -> Problem | None:
    if spec.register and spec.role == "r" and fits(wanted, value.type, form.row.relaxed):
        return None
    name = named(value, "v")
    if not spec.register:
        return Problem(f"is a number known while tracing, not a run-time {value.type}", "a keyword-only parameter of the kernel", True)
    if spec.role == "rw" and not isinstance(value, Reg):
        return Problem("is changed by the instruction, and a Value is not", f"`{name} = reg({value.type}, {name})` before it")
    if fits(wanted, value.type, form.row.relaxed):
        return None
    if pred in (wanted, value.type):
        hint = f"`{name} != 0`" if wanted is pred else f"`{name}.to({wanted})`"
    else:
        hint = f"`{name}.to({wanted})` converts (cvt)"
        if wanted.bits == value.type.bits:
            hint += f"; `{name}.bits({wanted})` keeps the bits (mov)"
    return Problem(f"is a {wanted}, not a {value.type}", hint)


def _number_problem(spec: OperandSpec, wanted: ScalarType, number: Any) -> Problem | None:
    if not spec.immediate:
        return Problem(f"is a register, not the number {number!r}", f"`reg({wanted}, {number!r})`")
    try:
        encode(number, wanted)
    except PtxTypeError as error:
        return Problem(f"is a {wanted}: {error.message}", error.hint or "a number that fits")
    if spec.bounds is not None and not (spec.bounds[0] <= number <= spec.bounds[1] and number % spec.step == 0):
        steps = f" in steps of {spec.step}" if spec.step > 1 else ""
        return Problem(f"is a number from {spec.bounds[0]} to {spec.bounds[1]}{steps}, not {number}", "a number within the bounds")
    return None


def _address_problem(form: Form, spec: OperandSpec, argument: Any) -> Problem | None:
    space = (spec.space or form.space).split("::")[0]
    if spec.parts:
        if not isinstance(argument, (tuple, list)) or len(argument) != 1 + len(spec.parts):
            return Problem(f"is an address with {len(spec.parts)} more part(s), not {_what(argument)}", f"a tuple: `{_tuple(spec)}`", True)
        for part, item in zip(spec.parts, argument[1:]):
            why = _problem(form, part, item)
            if why is not None:
                return why
        argument = argument[0]
    if isinstance(argument, TensorMapValue):
        return None
    if isinstance(argument, Pointer):
        return _space_problem(space, argument)
    if isinstance(argument, Value):
        if argument.type.kind in "usb" and argument.type.lanes == 1 and argument.type.bits in (32, 64):
            if argument.type.bits == 64 or space in (*NARROW, "const"):
                return None
        name = named(argument, "v")
        return Problem(f"is an address, not a {argument.type}", f"`{name}.to(u64)`, or a pointer: `x + {name}`", True)
    return Problem(f"is an address, not {described(argument)}", "a pointer `x + i`, a shared array, or an address in a u64", True)


def _space_problem(space: str, pointer: Pointer) -> Problem | None:
    if pointer.space == space or (space == "generic" and pointer.space == "global"):
        return None
    name = named(pointer, "p")
    if space == "generic":
        hint = f"`{name}.generic()`, or the form of the instruction that names the state space"
    elif pointer.space == "generic" or space == "generic":
        hint = f"`ptx.cvta.to.{space}{'_' if space == 'global' else ''}.u64({name}.address)`"
    else:
        hint = f"`.{pointer.space}` in the instruction's name"
    return Problem(f"is an address in {space} memory, not in {pointer.space} memory", hint)


def _tuple(spec: OperandSpec) -> str:
    return f"({', '.join((spec.name, *(f'({part.name}, ..)' if part.count else part.name for part in spec.parts)))})"


def _target_problem(form: Form, spec: OperandSpec, target: Any) -> Problem | None:
    wanted = spec.type
    assert wanted is not None
    if target is None or (target is SINK and spec.sink and not spec.count):
        return None
    if spec.count and isinstance(target, (list, tuple)):
        if len(target) != spec.count:
            return Problem(f"is {spec.count} regs, not {len(target)}", f"`[reg({wanted}) for _ in range({spec.count})]`", True)
        return next(filter(None, (_target_problem(form, _single(spec), item) for item in target)), None)
    if isinstance(target, Reg):
        if fits(wanted, target.type, form.row.relaxed):
            return None
        return Problem(f"is a {wanted}, not a reg of {target.type}", f"`reg({wanted})`")
    if target is SINK:
        return Problem("must be kept: PTX has no `_` here", f"`out=reg({wanted})`", True)
    hint = f"`{named(target, 'v')} = reg({target.type}, {named(target, 'v')})`" if isinstance(target, Value) else f"`reg({wanted})`"
    return Problem(f"is a reg, not {'a Value' if isinstance(target, Value) else described(target)}", hint, True)


# ---------------------------------------------------------------------------------------------------------------------
# Conversion: no problem is left


def _converter(spec: OperandSpec, argument: Any) -> Converter:
    """What makes an operand of arguments of this kind."""
    if spec.kind == "address":
        return _pointer if isinstance(argument, Pointer) and not spec.parts else _address
    if spec.kind == "label":
        return _label
    if spec.kind != "value":
        return _symbol
    if spec.count:
        return _vector
    if isinstance(argument, Value):
        return _written if spec.role == "rw" else _predicate if spec.negatable else _used
    return _variable if isinstance(argument, Pointer) else _number


def _used(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    register: ir.Register = argument.use(trace)
    return register


def _predicate(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    found: ir.Register | ir.Not = argument.guard(trace)
    return found


def _written(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    register: ir.Register = argument.write(trace)
    return register


def _number(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    assert spec.type is not None
    found = known_literal(argument, spec.type)
    if found is None or spec.bounds is not None:
        why = _number_problem(spec, spec.type, plain(argument))
        if why is not None:
            raise _error(form, spec, why)
    return found or literal(argument, spec.type)


def _variable(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return ir.Symbol(argument.base, argument.offset)


def _vector(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return ir.Vector(tuple([_converter(single, item)(trace, form, single, item) for single, item in _items(spec, argument)]))


def _items(spec: OperandSpec, argument: Any) -> list[tuple[OperandSpec, Any]]:
    single = _single(spec)
    return [(single, item) for item in argument]


@cache
def _single(spec: OperandSpec) -> OperandSpec:
    """An operand in braces as one of its elements."""
    return replace(spec, count=0)


def _pointer(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    address: ir.Address = argument.operand(trace)
    return address


def _address(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    parts: tuple[ir.Operand, ...] = ()
    if spec.parts:
        argument, *rest = argument
        parts = tuple(_converter(part, item)(trace, form, part, item) for part, item in zip(spec.parts, rest))
    if isinstance(argument, TensorMapValue):
        argument = argument.address
    if isinstance(argument, Pointer):
        return argument.operand(trace)._replace(parts=parts)
    return ir.Address(argument.use(trace), 0, parts)


def _label(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    from .labels import target_of

    return target_of(trace, argument)


def _symbol(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return ir.Symbol(argument if isinstance(argument, str) else argument.name)


def _kept(spec: OperandSpec, form: Form, arguments: tuple[Any, ...]) -> ScalarType:
    """The type of a result: where the table says only bits, that of the first operand whose bits they are."""
    wanted = spec.type
    assert wanted is not None
    if wanted.kind == "b":
        for source, argument in zip(inputs(form), arguments):
            if source.type is wanted and source.kind == "value":
                for item in argument if source.count else (argument,):
                    if isinstance(item, Value) and item.type.bits == wanted.bits:
                        return item.type
    return wanted


def _result(trace: Trace, spec: OperandSpec, target: Any, type: ScalarType) -> tuple[ir.Operand, Any]:
    if not spec.count:
        return _target(trace, target, type)
    items = list(target) if isinstance(target, (list, tuple)) else [None] * spec.count
    pairs = [_target(trace, item, type) for item in items]
    values = tuple(value for _, value in pairs)
    return ir.Vector(tuple(operand for operand, _ in pairs)), target if target is not None else Vec(values)


def _target(trace: Trace, target: Any, type: ScalarType) -> tuple[ir.Operand, Any]:
    if target is None:
        register = trace.fresh(type)
        return register, Result(register, type, trace.region)
    if isinstance(target, Reg):
        return target.write(trace), target
    return ir.Sink(), None
