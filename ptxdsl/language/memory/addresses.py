"""Addresses as instructions: what a pointer emits to move on by a run-time index, and which ld or st serves it.

The same index on the same base is computed once, for the address arithmetic is not the user's.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NoReturn

from ... import ir
from ...errors import PtxTypeError, UnknownInstruction, with_article
from ...isa import Form, lookup
from ...types import ScalarType, s32, u32, u64
from ..builder import Trace
from ..errors import conversions, described, located, named
from ..values.literals import literal, plain
from ..values.moves import known_form
from ..values.value import Reg, Result, Value
from .declared import Declared

__all__ = [
    "NARROW", "ReadOnly", "access", "address_of", "address_type", "advance", "form_of", "guard_of", "no_index",
    "refuse_items", "variable_address", "whole",
]

NARROW = frozenset({"shared", "local"})
"""The state spaces whose addresses are 32-bit numbers here; ``const`` and ``global`` have 64 bits."""


class ReadOnly(str):
    """A state space in which a pointer only reads: where it is compared it is that space."""

    __slots__ = ()


def address_type(space: str) -> ScalarType:
    """The type of an address in a state space."""
    return u32 if space in NARROW else u64


def whole(index: Any) -> int:
    index = plain(index)
    if isinstance(index, bool) or not isinstance(index, int):
        raise no_index(index)
    return index


def no_index(index: object) -> PtxTypeError:
    return located(
        PtxTypeError, f"a pointer is indexed by integers, not {described(index)}", "`p[i]` with a u32 or an int"
    )


_new: Any = tuple.__new__


def address_of(trace: Trace, base: Value | Declared, offset: int) -> ir.Address:
    # Past the constructor of the named tuple, which costs more than all else here.
    address: ir.Address = _new(ir.Address, (base.use(trace), offset, (), False))
    return address


def variable_address(trace: Trace, variable: Declared, space: str) -> Value:
    """The address of a variable in a register, loaded once at the top of the kernel."""
    symbol = variable.use(trace)
    found: Value | None = trace.constants.get(symbol)
    if found is None:
        kind = address_type(space)
        register = trace.fresh(kind)
        trace.prepend(form_of("mov", kind), (register, symbol))
        found = trace.constants[symbol] = Result(register, kind, trace.kernel)
    return found


def guard_of(trace: Trace, predicate: Any) -> ir.Register | ir.Not:
    """What ``pred=`` gives, as a guard."""
    if isinstance(predicate, Value):
        return predicate.guard(trace)
    raise located(
        PtxTypeError, f"`pred` is a predicate, not {described(predicate)}",
        "what is known while tracing is decided by Python: `if flag:`" if isinstance(predicate, bool)
        else "`pred=i < n`",
    )


_accesses: dict[tuple[str, str, int, ScalarType], Form] = {}
_DEPTH = 5
"""How many frames lie at least between the user's line and the instructions for an index."""


def access(opcode: str, space: str, width: int, dtype: ScalarType) -> Form:
    """The ld or st of so many elements; a located PtxTypeError where the table has none."""
    if space.__class__ is ReadOnly and opcode == "ld" and space == "global":
        space = "global.nc"
    form = _accesses.get((opcode, space, width, dtype))
    if form is None:
        vector = f".v{width}" if width != 1 else ""
        try:
            form = lookup(f"{opcode}{'' if space == 'generic' else f'.{space}'}{vector}.{dtype.register}")[0]
        except UnknownInstruction:
            raise located(
                PtxTypeError, f"PTX has no {opcode} of {width} {dtype} at once",
                "a vector has 2 or 4 elements, 16 bytes at most; `p.cast(b32)` for pairs of 16 bits",
            ) from None
        _accesses[opcode, space, width, dtype] = form
    return form


def advance(trace: Trace, base: Value, index: Value, factor: int, out: ir.Register | None = None) -> Value:
    """``base + index * factor``, in bytes, into ``out`` or computed once for values that cannot change.

    In 64 bits as a product and a sum, since ptxas hoists and combines the parts of such an address, but not those of a
    ``mad`` (``tests/bench/sass.py``).
    """
    key = (base.register.name, index.register.name, factor)
    fixed = out is None and base.__class__ is not Reg and index.__class__ is not Reg
    if fixed:
        known: Value | None = trace.addresses.get(key)
        if known is not None and known.region.owner is trace:
            index.use(trace)
            return known
    kind, type = base.type, index.type
    if not type.is_integer or type.bits < 32 or type.bits > kind.bits or type.lanes > 1:
        raise _unfit(index, kind)
    offset, start = index.use(trace), base.use(trace)
    if kind is u64 or abs(factor) == 1:
        moved = _wide(trace, index, offset, factor) if type.bits < kind.bits else _shifted(trace, type, offset, factor)
        target = trace.fresh(kind) if out is None else out
        step = trace.emit(form_of("add" if factor > 0 else "sub", kind), (target, start, moved), None, None, _DEPTH)
    else:
        target = trace.fresh(kind) if out is None else out
        size = literal(factor if type.is_signed else factor % (1 << type.bits), type)
        step = trace.emit(form_of("mad.lo", type), (target, offset, size, start), None, None, _DEPTH)
    if out is None:
        trace.computes_address[id(step)] = step
    result = Result(target, kind, trace.region)
    if fixed:
        trace.addresses[key] = result
    return result


def _wide(trace: Trace, index: Value, offset: ir.Register, factor: int) -> ir.Register:
    """``index * abs(factor)`` in 64 bits, once for all pointers that an index moves alike."""
    key = ("bytes", offset.name, factor)
    if index.__class__ is not Reg:
        known: Value | None = trace.addresses.get(key)
        if known is not None and known.region.owner is trace:
            return known.register
    product = trace.fresh(u64)
    size = literal(abs(factor), index.type)
    step = trace.emit(form_of("mul.wide", index.type), (product, offset, size), None, None, _DEPTH + 1)
    trace.computes_address[id(step)] = step
    if index.__class__ is not Reg:
        trace.addresses[key] = Result(product, u64, trace.region)
    return product


def _shifted(trace: Trace, type: ScalarType, offset: ir.Register, factor: int) -> ir.Register:
    """``index * abs(factor)`` in the index's bits; each time anew, since ptxas fuses a shift with the sum after it."""
    size = abs(factor)
    shift = size.bit_length() - 1
    if size == 1:
        return offset
    product, form, by = trace.fresh(type), form_of("mul.lo", type), literal(size, type)
    if size == 1 << shift:
        form, by = known_form(f"shl.b{type.bits}"), literal(shift, u32)
    step = trace.emit(form, (product, offset, by), None, None, _DEPTH + 1)
    trace.computes_address[id(step)] = step
    return product


@cache
def form_of(opcode: str, type: ScalarType) -> Form:
    return known_form(f"{opcode}.{type}")


def _unfit(index: Value, kind: ScalarType) -> PtxTypeError:
    wanted = "u32 or s32" if kind is u32 else "u32, s32, u64 or s64"
    name = named(index, "i")
    bits = index.type.kind == "b" and index.type.bits >= 32
    signed = s32 if index.type.is_signed or index.type.is_float else u32
    hint = f"`{name}.bits(u{index.type.bits})`" if bits else conversions(index, signed).partition(";")[0]
    return located(PtxTypeError, f"an index here is {with_article(wanted)}, not {index._kind()}", hint)


def refuse_items(count: int, rank: int, spelled: str = "a[i, j]") -> NoReturn:
    raise located(
        PtxTypeError, f"{count} ind{'ex' if count == 1 else 'ices'} for {rank} dimension{'s' * (rank != 1)}",
        f"give one index a dimension: `{spelled.replace('i, j', ', '.join('ijklmnop'[:rank]))}`",
    )
