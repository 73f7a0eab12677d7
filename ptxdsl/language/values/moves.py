"""The moves: into registers that can be changed, of numbers where an operand takes none, of bits and their parts."""

from __future__ import annotations

from ... import ir
from ...errors import PtxTypeError, with_article
from ...isa import Form, lookup
from ...types import ScalarType, pred, u32
from ..builder import Trace
from ..errors import located
from .literals import literal
from .operators import find, move

__all__ = ["constant", "known_form", "move_form", "parts_form", "set_register"]


def known_form(mnemonic: str) -> Form:
    """The form of a mnemonic; a located PtxTypeError where the table has none."""
    form = find(mnemonic)
    if form is None:
        raise located(PtxTypeError, f"PTX has no `{mnemonic}`", "convert: `v.to(u32)` or `v.to(f32)`")
    return form


def move_form(type: ScalarType) -> Form:
    """The mov of a type; a located PtxTypeError for those of 8 bits."""
    form = move(type)
    if form is None:
        wide = "s32" if type.is_signed else "u32"
        way = f"v.to({wide})" if type.is_integer else f"v.bits(u8).to({wide})"
        raise located(PtxTypeError, f"PTX has no mov of {type}", f"keep it in a `reg({wide})`: `{way}`")
    return form


def parts_form(type: ScalarType, count: int, written: bool) -> Form:
    """The mov that packs ``count`` registers into one of ``type``, or unpacks it (``written``)."""
    for form in lookup(f"mov.b{type.bits}") if type.bits in (16, 32, 64, 128) else ():
        spec = form.operands[0 if written else -1]
        if spec.count == count and spec.written is written:
            return form
    message = f"PTX does not split {with_article(type)} into {count} parts"
    raise located(PtxTypeError, message, "`v.unpack(u32)` of a u64")


def constant(trace: Trace, value: object, type: ScalarType) -> ir.Register:
    """A number in a register, loaded once at the top of the kernel: for operands where PTX allows no number."""
    number = literal(value, type)
    found: ir.Register | None = trace.constants.get(number)
    if found is None:
        moved = type.register
        found = trace.constants[number] = trace.fresh(type)
        trace.prepend(move_form(moved), (found, ir.Immediate(number.bits, moved)))
    return found


def set_register(trace: Trace, register: ir.Register, source: ir.Operand, type: ScalarType) -> None:
    """``mov register, source``."""
    if source.__class__ is ir.Immediate:
        if type is pred:
            # The table's mov.pred takes no number; a comparison of numbers is one instruction too.
            zero = ir.Immediate(0, u32)
            trace.emit(known_form("setp.eq.u32" if source.bits else "setp.ne.u32"), (register, zero, zero))
            return
        moved = type.register
        if source.type is not moved:
            source = ir.Immediate(source.bits, moved)
    trace.emit(move_form(type), (register, source), None, None, 3)
