"""What an instruction computes where all of its floats are f64: the same semantics, on a form of those types.

Nothing is rounded, flushed or clamped as a narrower type has it: of the modifiers only those stay that say what is
computed (comparisons, ``.sat``, ``.relu``, rounding to integers). Packed numbers are computed one by one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Union

from ...isa import Form, OperandSpec
from ...types import TYPES, ScalarType, f64
from . import covered, lookup
from .formats import FORMATS, element_name, positive_part, saturate
from .lanes import Bits, Lanes, Real

__all__ = ["Number", "Part", "compute", "element_of", "parts_of"]

_LOST = frozenset(("rn", "rna", "rz", "rm", "rp", "rs", "ftz", "approx", "full", "satfinite", "oob", "pzo"))
"""Modifiers of how a result is made to fit its type."""
Number = Union[Real, Bits]


class Part(NamedTuple):
    """One element of an instruction's results, in f64.

    ``reads`` has for each source of ``form`` the operand of the instruction, the item in its braces and the element of
    that; ``writes`` the operands that get the results, and the element of each.
    """

    form: Form
    reads: tuple[tuple[int, int, int], ...]
    writes: tuple[tuple[int, int], ...]


def element_of(kind: ScalarType | None) -> str:
    """The format of a float type's elements, of those with a sign; "" of all other types."""
    if kind is None or not kind.is_float:
        return ""
    name = element_name(kind)
    return name if name in FORMATS and FORMATS[name].signed else ""


@cache
def parts_of(form: Form) -> tuple[Part, ...]:
    """An instruction that only computes in f64, element by element; empty where it has no float, or no such meaning."""
    read = [(n, spec) for n, spec in enumerate(form.operands) if not spec.written]
    written = [(n, spec) for n, spec in enumerate(form.operands) if spec.written]
    floats = [(n, spec) for n, spec in read if element_of(spec.type)]
    if not covered(form) or not written or any(token.startswith("scaled") for token in form.tokens):
        return ()
    result = written[0][1].type
    assert result is not None
    if element_of(result):
        return _computed(form, read, floats, written[0][0], result)
    if not floats or any(spec.type is not None and spec.type.is_float for _, spec in written):
        return ()
    lanes = max(spec.type.lanes for _, spec in floats if spec.type is not None)
    if lanes == 1:
        reads = tuple((n, 0, 0) for n, _ in read)
        return (Part(_in_f64(form, [s for _, s in written], [s for _, s in read]), reads, _first(written)),)
    if len(written) != lanes or result.kind != "p":
        return ()
    made = replace(_in_f64(form, [written[0][1]], [s for _, s in read]), row=_one_result(form))
    return tuple(
        Part(made, tuple((n, 0, at if element_of(spec.type) else 0) for n, spec in read), ((written[at][0], 0),))
        for at in range(lanes)
    )


def _first(written: list[tuple[int, OperandSpec]]) -> tuple[tuple[int, int], ...]:
    return tuple((n, 0) for n, _ in written)


def _one_result(form: Form) -> Any:
    """The row of a comparison of pairs as that of a comparison."""
    return replace(form.row, semantics=form.opcode)


def _computed(
    form: Form, read: list[tuple[int, OperandSpec]], floats: list[tuple[int, OperandSpec]], dest: int, kind: ScalarType
) -> tuple[Part, ...]:
    """The elements of a result. Of several sources that become one packed number the first is its upper end."""
    if any(spec.type is not None and spec.type.is_float and not element_of(spec.type) for _, spec in read):
        return ()
    single = [(n, item, 0) for n, spec in floats for item in range(max(1, spec.count))]
    apart = all(spec.type is not None and spec.type.lanes == 1 for _, spec in floats)
    d = form.operands[dest]
    if kind.lanes > 1 and apart and len(single) == kind.lanes:
        made = _in_f64(form, [d], [replace(floats[0][1], count=0)])
        return tuple(Part(made, (single[kind.lanes - 1 - at],), ((dest, at),)) for at in range(kind.lanes))
    if any(spec.count for _, spec in read) or any(
        spec.type is not None and spec.type.lanes not in (1, kind.lanes) for _, spec in floats
    ):
        return ()
    made = _in_f64(form, [d], [spec for _, spec in read])
    return tuple(
        Part(made, tuple((n, 0, at if spec.type is not None and spec.type.lanes > 1 else 0) for n, spec in read),
             ((dest, at),))
        for at in range(kind.lanes)
    )


def _in_f64(form: Form, written: list[OperandSpec], read: list[OperandSpec]) -> Form:
    operands = tuple(replace(s, type=f64) if element_of(s.type) else s for s in (*written, *read))
    tokens = [_renamed(token) for token in form.tokens if token not in _LOST]
    modifiers = {name: _renamed(value) for name, value in form.modifiers.items() if value not in _LOST}
    return Form(form.row, ".".join((form.opcode, *tokens)), modifiers, operands, form.needs)


def _renamed(token: Any) -> Any:
    return "f64" if element_of(TYPES.get(token)) else token


def compute(b: Lanes, part: Part, sources: list[Number]) -> list[Number]:
    """The results of an element, of its sources; floats are f64."""
    given = [source.to_bits() if isinstance(source, Real) else source for source in sources]
    found = lookup(part.form)(b, part.form, *(source.value for source in given))
    results: list[Number] = []
    for spec, value in zip(part.form.operands, found if isinstance(found, tuple) else (found,)):
        bits = b.wrap(value)
        results.append(_clamped(part.form, bits.reals()) if spec.type is f64 else bits)
    return results


def _clamped(form: Form, value: Real) -> Real:
    """As the form says of numbers, whatever their type."""
    if "sat" in form.tokens:
        value = saturate(value)
    return positive_part(value) if "relu" in form.tokens else value
