"""From Python arguments to the operands of an instruction.

A mnemonic may spell several forms (with a mask or without, packing or unpacking); the arguments decide. Each form is
tried by `argument_error`, which changes nothing: the first without an error is bound, and if all have one, that of the
nearest form is raised. What was bound once is remembered by the types of its arguments, so that a loop unrolled a
thousand times decides once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import ir
from ..errors import PtxTypeError
from ..ir.operand_matching import elements
from ..isa import Form, OperandSpec, special
from ..types import ScalarType, pred
from .builder import Trace, current
from .call_signature import SINK, inputs, outputs, returned
from .control.labels import table_of, target_of
from .errors import located
from .memory.addresses import address_of
from .memory.declared import Declared
from .memory.pointers import Pointer
from .memory.tensor_map import TensorMapValue
from .operand_errors import (
    OperandError, argument_error, check_update, count_error, number_error, operand_error, out_error, outs_error, symbol,
)
from .values.literals import is_number, known_literal, literal, plain
from .values.value import Negated, Parameter, Part, Reg, Result, Value, Vec

__all__ = ["REG_KINDS", "Binding", "Numbers", "apply", "bind", "kind_of"]

# ruff: noqa: ARG001 -- the converters have one signature, of which none needs all

Converter = Callable[[Trace, Form, OperandSpec, Any], ir.Operand]


class Binding(NamedTuple):
    """How arguments of certain kinds become the operands of a form.

    ``steps`` has, for each operand of the form, what converts the caller's argument, or None for a result; ``results``
    are the types of the results.
    """

    form: Form
    steps: tuple[tuple[OperandSpec, Converter | None], ...]
    results: tuple[ScalarType, ...]
    stable: bool
    """Whether the arguments' kinds alone decide on the form, not what numbers they are."""
    direct: bool
    """Whether there is no result, or one that is the first operand: what most instructions are."""
    width: int
    """How many registers that result has in braces; 0 if it has none."""
    numbers: tuple[tuple[int, Numbers], ...]
    """The arguments that are numbers: which, from 1, and what they become."""
    others: tuple[tuple[int, OperandSpec, Converter], ...]
    """The arguments that are neither numbers nor Values which are simply their registers."""


class Numbers(dict[Any, ir.Operand]):
    """What Python numbers become as an operand; a located PtxTypeError for those that it does not take."""

    def __init__(self, form: Form, spec: OperandSpec) -> None:
        super().__init__()
        self._form, self._spec = form, spec

    def __missing__(self, number: Any) -> ir.Operand:
        found = _number(current(), self._form, self._spec, number)
        # A float zero may be negative, and 0.0 == -0.0; a NaN is not even equal to itself.
        if number == number and (number or number.__class__ is int):
            self[number] = found
        return found


class _RegKinds(dict[ScalarType, Any]):
    def __missing__(self, type: ScalarType) -> Any:
        self[type] = Reg, type
        return self[type]


REG_KINDS = _RegKinds()
"""The kind of a `Reg`, by its type."""
_REGISTERS = frozenset((Result, Reg, Parameter))


def kind_of(argument: Any) -> Any:
    """What of an argument decides how it binds: a value's type, a pointer's state space, the class of anything else."""
    kind = argument.__class__
    if kind is Result or kind is Parameter:
        return argument.type
    if kind is Reg:
        return REG_KINDS[argument.type]
    if kind is list or kind is tuple or kind is Vec:
        return tuple([item.type if item.__class__ is Result else kind_of(item) for item in argument])
    if isinstance(argument, Pointer):
        return argument.space, argument.space.__class__, argument.base.__class__ is Declared
    if kind is str:
        return argument
    if kind is Part:
        return Part, argument.value.type, argument.selector, argument.negated, argument.value.__class__ is Reg
    return kind if kind is not Negated else (Negated, argument.type)


def bind(forms: Sequence[Form], arguments: tuple[Any, ...], out: Any) -> Binding:
    """How the first of the forms that takes the arguments does; a located PtxTypeError if none does."""
    form = _choose(forms, arguments, out)
    given = iter(arguments)
    steps = tuple(
        (spec, None if returned(spec) else _dropped if spec.name == SINK else _converter(spec, next(given)))
        for spec in form.operands
    )
    if form.effects.atomic and form.effects.access is not None:
        steps = tuple((spec, _updated if convert is _pointer else convert) for spec, convert in steps)
    specs = outputs(form)
    direct = not specs or (len(specs) == 1 and form.operands[0] is specs[0])
    direct = direct and all(convert is not _dropped for _, convert in steps)
    sources = [(spec, convert) for spec, convert in steps if convert is not None and convert is not _dropped]
    numbers, others = [], []
    for at, ((spec, convert), argument) in enumerate(zip(sources, arguments), 1):
        if convert is _number:
            numbers.append((at, Numbers(form, spec)))
        elif argument.__class__ not in _REGISTERS or convert not in (_used, _predicate):
            others.append((at, spec, convert))
    result_types = tuple(_result_type(spec, form, arguments) for spec in specs)
    width = specs[0].count if direct and specs else 0
    return Binding(form, steps, result_types, _stable(forms, arguments), direct, width, tuple(numbers), tuple(others))


def _stable(forms: Sequence[Form], arguments: tuple[Any, ...]) -> bool:
    rivals = [inputs(form) for form in forms if len(inputs(form)) == len(arguments)]
    return len(rivals) == 1 or not any(
        is_number(argument) and len({(spec.bounds, spec.step, spec.choices, spec.immediate) for spec in specs}) > 1
        for argument, specs in zip(arguments, zip(*rivals))
    )


def apply(
    trace: Trace, binding: Binding, arguments: tuple[Any, ...], out: Any, guard: ir.Register | ir.Not | None
) -> Any:
    """Append the instruction; its result, or a tuple of several."""
    form = binding.form
    outs = (out,) if len(binding.results) == 1 else out if out is not None else (None,) * len(binding.results)
    if guard is not None and binding.results and any(target is None for target in _flat(outs)):
        raise located(
            PtxTypeError, f"a guarded `{form.mnemonic}` may compute nothing, and a Value has always been computed",
            f"`v = reg({binding.results[0]}, 0)` before it, then `out=v, pred=..`",
        )
    # Sources first: reading `~p` may take an instruction of its own, and a result must not be named before it.
    given = iter(arguments)
    operands: list[Any] = [
        None if convert is None else convert(trace, form, spec, SINK if convert is _dropped else next(given))
        for spec, convert in binding.steps
    ]
    results: list[Any] = []
    for at, (spec, convert) in enumerate(binding.steps):
        if convert is None:
            operands[at], result = _result(trace, spec, outs[len(results)], binding.results[len(results)])
            results.append(result)
    trace.emit(form, tuple(operands), guard, None, 3)
    return results[0] if len(results) == 1 else tuple(results) if results else None


# ---------------------------------------------------------------------------------------------------------------------
# Which form


def _choose(forms: Sequence[Form], arguments: tuple[Any, ...], out: Any) -> Form:
    candidates = [form for form in forms if len(inputs(form)) == len(arguments)]
    if not candidates:
        raise count_error(forms, arguments)
    fitting = sorted((form for form in candidates if _outs_fit(form, out)), key=lambda form: len(outputs(form)))
    if not fitting:
        raise outs_error(candidates, out)
    nearest: tuple[Form, OperandSpec, OperandError] | None = None
    for form in fitting:
        found = _first_error(form, arguments, out)
        if found is None:
            return form
        if nearest is None or (nearest[2].wrong_kind and not found[1].wrong_kind):
            nearest = (form, *found)
    assert nearest is not None
    raise operand_error(*nearest)


def _first_error(form: Form, arguments: tuple[Any, ...], out: Any) -> tuple[OperandSpec, OperandError] | None:
    for spec, argument in zip(inputs(form), arguments):
        why = argument_error(form, spec, argument)
        if why is not None:
            return spec, why
    for spec, target in zip(outputs(form), _outs(form, out)):
        why = out_error(form, spec, target)
        if why is not None:
            return spec, why
    return None


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


# ---------------------------------------------------------------------------------------------------------------------
# Conversion: what is left has no error


def _converter(spec: OperandSpec, argument: Any) -> Converter:
    """What makes an operand of arguments of this kind."""
    if spec.kind == "address":
        if spec.parts:
            return _address
        return _pointer if isinstance(argument, Pointer) else _based if isinstance(argument, Value) else _address
    if spec.kind == "label":
        return _label
    if spec.kind != "value":
        return _symbol
    if spec.count:
        return _vector
    if isinstance(argument, Value):
        return _written if spec.role == "rw" else _predicate if spec.type is pred else _used
    if isinstance(argument, str):
        return _sink if argument == SINK else _name
    if isinstance(argument, Part):
        return _written if spec.role == "rw" else _used
    return _variable if isinstance(argument, Pointer) or hasattr(argument, "symbol") else _number


def _sink(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return ir.Sink()


def _dropped(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return ir.Sink()


def _name(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    if argument.startswith("%"):
        trace.require(special(argument).needs, f"`{argument}`")
        return ir.SpecialRegister(argument)
    found = symbol(argument)
    assert found is not None
    return found


def _used(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    register: ir.Register = argument.use(trace)
    return register


def _predicate(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    found: ir.Register | ir.Not = argument.guard(trace)
    return found


def _written(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    argument.use(trace)  # it is read too, and a `Reg` without a value yet must be checked
    register: ir.Register = argument.write(trace)
    return register


def _number(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    assert spec.type is not None
    found = known_literal(argument, spec.type)
    narrow = spec.bounds is not None or spec.choices or not spec.immediate or spec.name == "membermask"
    if found is None or narrow:
        why = number_error(spec, spec.type, plain(argument))
        if why is not None:
            raise operand_error(form, spec, why)
    return found or literal(argument, spec.type)


def _variable(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    if isinstance(argument, Pointer):
        assert isinstance(argument.base, Declared)
        symbol = argument.base.use(trace)
        return symbol._replace(offset=argument.offset) if argument.offset else symbol
    function: ir.Symbol = argument.symbol(trace)
    return function


def _vector(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    if spec.written:
        with trace.vector_of(argument):
            return ir.Vector(tuple(_elements(trace, form, spec, argument)))
    return ir.Vector(tuple(_elements(trace, form, spec, argument)))


def _elements(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> list[ir.Operand]:
    items: list[ir.Operand] = []
    for at, item in enumerate(argument):
        if item.__class__ is Result and item.region.owner is trace:
            items.append(item.register)
        else:
            one = elements(spec)[at]
            items.append(_converter(one, item)(trace, form, one, item))
    return items


def _based(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return address_of(trace, argument, 0)


def _pointer(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    address: ir.Address = argument.operand(trace)
    return address


def _updated(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    check_update(form, argument.dtype)
    return _pointer(trace, form, spec, argument)


def _address(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    parts: tuple[ir.Operand, ...] = ()
    if spec.parts:
        argument, *rest = argument
        parts = tuple(_converter(part, item)(trace, form, part, item) for part, item in zip(spec.parts, rest))
    if isinstance(argument, str):
        found = symbol(argument)
        assert found is not None
        return ir.Address(ir.Symbol(found.symbol), found.offset, parts)
    if isinstance(argument, TensorMapValue):
        argument = argument.address
    if isinstance(argument, Pointer):
        return argument.operand(trace)._replace(parts=parts)
    return ir.Address(argument.use(trace), 0, parts)


def _label(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return target_of(trace, argument)


def _symbol(trace: Trace, form: Form, spec: OperandSpec, argument: Any) -> ir.Operand:
    return table_of(trace, argument)


def _result_type(spec: OperandSpec, form: Form, arguments: tuple[Any, ...]) -> ScalarType:
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
    if not isinstance(target, (list, tuple)):
        registers = tuple([trace.fresh(type) for _ in range(spec.count)])
        values = Vec([Result(register, type, trace.region) for register in registers])
        return ir.Vector(registers), values if target is None else target
    with trace.vector_of(target):
        return ir.Vector(tuple([_target(trace, item, type)[0] for item in target])), target


def _target(trace: Trace, target: Any, type: ScalarType) -> tuple[ir.Operand, Any]:
    if target is None:
        register = trace.fresh(type)
        return register, Result(register, type, trace.region)
    if isinstance(target, (Reg, Part)):
        return target.write(trace), target if isinstance(target, Reg) else target.value
    return ir.Sink(), None
