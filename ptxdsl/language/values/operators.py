"""Which instruction each Python operator is the default form of.

Pure: from an operator and a type to a row of the table. Candidates are tried in order and the table decides, so that
a type that gains an ``add`` gains its ``+``. What Python and PTX would mean differently is refused here.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ...errors import PtxTypeError, UnknownInstruction
from ...isa import Form, lookup
from ...types import ScalarType, bf16x2, f16x2, f32, f64, pred, s32, u32

__all__ = [
    "COMPARISONS", "Operation", "binary", "conversion", "extreme", "find", "move", "selection", "unary",
]

COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "div", "%": "rem", "&": "and", "|": "or", "^": "xor"}


class Operation(NamedTuple):
    """An instruction and the types of its result and of its second operand.

    ``fma`` holds, for the bf16 types that have no ``add`` before sm_90, the places of the operands and the constants of
    the fused multiply-add that computes the same: ``a + b`` is ``a * 1 + b``.
    """

    form: Form
    result: ScalarType
    second: ScalarType
    fma: tuple[str | float, ...] = ()


_BRAIN: dict[str, tuple[str | float, ...]] = {"+": ("a", 1.0, "b"), "-": ("b", -1.0, "a"), "*": ("a", "b", -0.0)}


@cache
def find(*mnemonics: str) -> Form | None:
    """The first of the mnemonics that the table knows: its form with the fewest operands, results not in braces."""
    for mnemonic in mnemonics:
        try:
            forms = [form for form in lookup(mnemonic) if not any(spec.count for spec in form.operands)]
        except UnknownInstruction:
            continue
        if forms:
            return min(forms, key=lambda form: len(form.operands))
    return None


@cache
def move(type: ScalarType) -> Form | None:
    """The mov of a value of ``type``; 8-bit types have none."""
    return find(f"mov.{type.register}")


@cache
def selection(type: ScalarType) -> Form | None:
    return find(f"selp.{type.register}")


@cache
def extreme(name: str, type: ScalarType) -> Form | None:
    """The ``min`` or ``max`` of two values of ``type``."""
    return find(f"{name}.{type}") if type.bits > 8 else None


@cache
def binary(op: str, type: ScalarType) -> Operation:
    """The instruction of ``a op b`` for two operands of ``type``; a PtxTypeError that says why there is none."""
    if op in COMPARISONS:
        return Operation(_comparison(op, type), pred, type)
    if op in ("<<", ">>"):
        return _shift(op, type)
    _refuse(op, type)
    if str(type) in ("bf16", "bf16x2") and op in _BRAIN:
        return Operation(_known(find(f"fma.rn.{type}"), op, type), type, type, _BRAIN[op])
    name = _NAMES[op]
    if op in "&|^":
        form = find(f"{name}.{pred if type is pred else f'b{type.bits}'}")
    elif op == "*" and not type.is_float:
        form = find(f"mul.lo.{type}")
    elif op == "/":
        form = find(f"div.rn.{type}")
    else:
        form = find(f"{name}.{type}", f"{name}.rn.{type}")
    return Operation(_known(form, op, type), type, type)


@cache
def unary(op: str, type: ScalarType) -> Form:
    """The instruction of ``-a``, ``~a`` or ``abs(a)``."""
    if op == "~":
        _refuse(op, type)
        return _known(find(f"not.{pred if type is pred else f'b{type.bits}'}"), op, type)
    if type.kind == "u":
        signed = f"`v.bits({str(type).replace('u', 's')})` for a signed value"
        hint = f"`0 - v` for the two's complement, {signed}" if op == "-" else "it is `v` itself"
        raise PtxTypeError(f"`{op}` of an unsigned {type}", hint=hint)
    _refuse(op, type)
    return _known(find(f"{'neg' if op == '-' else 'abs'}.{type}"), op, type)


@cache
def conversion(source: ScalarType, target: ScalarType, modifiers: tuple[str, ...]) -> Form:
    """The cvt from one type to another: to nearest for floats, towards zero for integers, unless modifiers say else."""
    for kind in (source, target):
        if kind.kind == "b":
            raise PtxTypeError(
                f"{kind} has no value to convert, only bits", hint=f"say what they are first: `v.bits({_typed(kind)})`"
                if kind is source else f"`v.bits({kind})` keeps the bits",
            )
    asked = any(m in _ROUNDINGS for m in modifiers)
    defaults: list[tuple[str, ...]] = [()] if asked else [(), ("rn",), ("rzi",), ("rna",)]
    if source.is_float and target.is_integer and not asked:
        defaults = [("rzi",)]
    names = [".".join(("cvt", *default, *modifiers, str(target), str(source))) for default in defaults]
    form = find(*names)
    if form is not None and len(form.operands) == 2:
        return form
    said = "".join(f".{m}" for m in modifiers)
    way = None if modifiers else _way(source, target)
    raise PtxTypeError(
        f"PTX has no cvt{said} from {source} to {target}", hint=f"`v.to({target})` without the modifiers" if modifiers
        else f"in two steps: `v.to({way}).to({target})`" if way else _in_pairs(source, target),
    )


def _way(source: ScalarType, target: ScalarType) -> ScalarType | None:
    """A type by whose way one becomes the other, without a loss beside that of the target."""
    ways = (f32, f64, u32, s32, f16x2, bf16x2)
    known = [way for way in ways if way not in (source, target) and not (source.is_float and way.is_integer)]
    return next((way for way in known if _direct(source, way) and _direct(way, target)), None)


def _direct(source: ScalarType, target: ScalarType) -> bool:
    names = [".".join(("cvt", *(m for m in (rounding,) if m), str(target), str(source)))
             for rounding in ("", "rn", "rzi", "rn.satfinite")]
    form = find(*names)
    return form is not None and len(form.operands) == 2


def _in_pairs(source: ScalarType, target: ScalarType) -> str:
    """What there is for the floats of 8 bits and less."""
    narrow = source if source.bits <= 8 else target
    if source is narrow:
        return f"PTX converts them in pairs: load through `p.cast({narrow}x2)`, then `v.to(f16x2)` or `v.to(bf16x2)`"
    return f"PTX converts two at once: `ptx.cvt.rn.satfinite.{narrow}x2.f32(high, low)`"


_ROUNDINGS = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "rs"})


def _typed(kind: ScalarType) -> str:
    return f"u{kind.bits}"


def _comparison(op: str, type: ScalarType) -> Form:
    name = COMPARISONS[op]
    if type is pred:
        raise PtxTypeError(
            f"`{op}` of predicates: they have no order and are no numbers", hint="`p.to(u32)` makes a number of one"
        )
    if type.kind == "b" and op not in ("==", "!="):
        raise PtxTypeError(
            f"`{op}` of untyped {type}: bits have no order", hint=f"`v.bits({_typed(type)})` or `v.bits(s{type.bits})`"
        )
    _small(op, type)
    # Python's != is true of a NaN, which is PTX's `neu`; its `ne` is not.
    if type.is_float and name == "ne":
        name = "neu"
    if type.lanes > 1:
        raise PtxTypeError(f"`{op}` of packed {type} has two results", hint=f"`p, q = ptx.setp.{name}.{type}(a, b)`")
    return _known(find(f"setp.{name}.{type}"), op, type)


def _shift(op: str, type: ScalarType) -> Operation:
    _refuse(op, type)
    kind = type if op == ">>" else f"b{type.bits}"
    return Operation(_known(find(f"{'shr' if op == '>>' else 'shl'}.{kind}"), op, type), type, u32)


def _refuse(op: str, type: ScalarType) -> None:
    """The combinations that mean something else in Python than in PTX, or nothing at all."""
    if type is pred:
        if op not in ("&", "|", "^", "~"):
            raise PtxTypeError(f"`{op}` of predicates", hint="`select(p, 1, 0)` or `p.to(u32)` makes a number of one")
        return
    _small(op, type)
    if op in ("&", "|", "^", "~", "<<", ">>") and type.is_float:
        raise PtxTypeError(
            f"`{op}` of {type}: floats have no bitwise operators", hint=f"`v.bits(u{type.bits})` gives the bits"
        )
    if op in ("//", "%") and type.kind != "u":
        _refuse_division(op, type)
    if op == "/" and not type.is_float:
        wide = f32 if type.bits <= 16 else f64
        raise PtxTypeError(
            f"`/` of {type}: integers have no true division",
            hint=f"{_quotient(type)} truncates, `a.to({wide}) / b.to({wide})` is a float"
        )
    if type.kind == "b" and op in ("+", "-", "*", "abs"):
        raise PtxTypeError(f"`{op}` of untyped {type}", hint=f"say what the bits are: `v.bits({_typed(type)})`")


def _quotient(type: ScalarType) -> str:
    return "`a // b`" if type.kind == "u" else f"`ptx.div.{type}(a, b)`"


def _refuse_division(op: str, type: ScalarType) -> None:
    if type.is_signed:
        name = "div" if op == "//" else "rem"
        raise PtxTypeError(
            f"`{op}` of signed {type}: Python floors, PTX truncates", hint=f"`ptx.{name}.{type}(a, b)` truncates",
        )
    if type.is_float:
        floor = f"`(a / b).to({type}, 'rmi')` for the floor of the quotient"
        hint = floor if op == "//" else "`ptxdsl.math.fmod(a, b)`"
        raise PtxTypeError(f"`{op}` of {type}", hint=hint)
    raise PtxTypeError(f"`{op}` of untyped {type}", hint=f"say what the bits are: `v.bits({_typed(type)})`")


def _small(op: str, type: ScalarType) -> None:
    if type.bits == 8:
        wide = "s32" if type.is_signed else "u32"
        hint = f"`v.to({wide})` first" if type.is_integer else f"`v.bits(u8).to({wide})` first"
        if type.is_float:
            hint = _in_pairs(type, f32)
        raise PtxTypeError(f"`{op}` of {type}: PTX does not compute in 8 bits", hint=hint)


def _known(form: Form | None, op: str, type: ScalarType) -> Form:
    if form is None:
        raise PtxTypeError(f"PTX has no instruction for `{op}` of {type}", hint="convert: `v.to(f32)`")
    return form
