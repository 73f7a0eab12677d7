"""Loads and stores, by the patterns of access that need no gather where there is one.

Where the lanes' addresses are known to lie in segments, each is one host access; of lanes with an address each two
contiguous half warps are recognised, and any line where that is probable: all else gathers.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, Block
from ..instructions.memory import Load, LoadParameter, MemoryCheck, Store
from ..instructions.operand_classes import SINK
from .access import Access, access_of
from .gathers import WORD, Places, concat, gather_all, scatter
from .handler import Handler, byte, lanes_of, pointer, zeros
from .data import fit, guard_mask, put, slots_of, source
from .local_memory import load_private, store_private
from .registry import emits
from .segments import as_pointer, interleaved, segments, store_segments, store_spread, strided

__all__: list[str] = []


@emits(LoadParameter)
def load_parameter(h: Handler, op: LoadParameter) -> None:
    bits = op.bits
    mask = guard_mask(h, op.guard, op.masked)
    if op.guard and op.dests[0].uniform:
        h.skip_unless_any(mask)
        mask = None
    element = ir.IntType(bits)
    base = h.load(h.block, Block.LAUNCH, pointer, fixed=True)
    place = h.add(base, h.field())
    for number, dest in enumerate(op.dests):
        if dest == SINK:
            continue
        value = fit(h, h.load(place, number * bits // 8, element, 1), dest.bits, op.signed)
        put(h, h.slot(), value if dest.uniform else h.splat(value), mask)
    h.next()


@emits(Load, slow_path=True)
def load(h: Handler, op: Load) -> None:
    kind, pattern, bits, dests = op.address, op.pattern, op.bits, op.dests
    count = len(dests)
    access = access_of(h, kind, pattern, bits // 8 * count, False)
    mask = guard_mask(h, op.guard, op.masked or bool(op.guard))
    slots = slots_of(h, dests)
    lanes = mask if mask is not None else h.active
    h.begin_row(access, bits, lanes, bool(op.guard))
    if op.guard:
        h.skip_unless_any(mask)
    if op.private and h.slow_path is not None:
        values, mask = load_private(h, access, op, lanes), mask if h.lane is None else None
    elif all(dest.uniform or dest == SINK for dest in dests):
        host, mask = access.host(lanes), None
        values = [h.load(as_pointer(h, host, byte), n * bits // 8, ir.IntType(bits), bits // 8) for n in range(count)]
    elif h.slow_path is None:
        values = gather_all(h, Places(h, access.resolve(lanes)), bits, count, lanes)
    elif kind.per_lane or (kind.affine and pattern is None and not access.elements(bits)):
        apart = partial(_load_lanes, h, access, bits, count, lanes)
        row = h.in_row(count, apart)
        values = apart() if row is None else row
    elif access.searches or (h.partial and not kind.scalar):
        values = _load_present(h, access, bits, count, lanes)
    else:
        good, host = access.check_scalar()
        access.demand(good)
        values = segments(h, access, host, bits, count)
    for dest, slot, value in zip(dests, slots, values):
        if slot is not None:
            put(h, slot, fit(h, value, dest.bits, op.signed), mask)
    h.next()


def _load_present(h: Handler, access: Access, bits: int, count: int, lanes: Any) -> list[Any]:
    """By segments where all lanes of a warp could load, else only those that it has."""
    good, host = access.check_scalar()
    with h.ir.if_else(h.likely(good)) as (then, otherwise):
        with then:
            whole = segments(h, access, host, bits, count)
            one = h.ir.block
        with otherwise:
            rest = gather_all(h, access.places(lanes), bits, count, lanes)
            other = h.ir.block
    return h.merged(one, whole, other, rest)


def _load_lanes(h: Handler, access: Access, bits: int, count: int, lanes: Any) -> list[Any]:
    places = access.places(lanes)
    if access.strides:
        return gather_all(h, places, bits, count, lanes)
    if access.beside and count == 1 and bits >= WORD:
        return _load_line(h, places, bits, lanes)
    regular = places.halves(access.nbytes, lanes)
    if isinstance(regular, ir.Constant):
        return gather_all(h, places, bits, count, lanes)
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            half = ir.VectorType(ir.IntType(bits), 16 * count)
            wholes = [h.load(as_pointer(h, start, byte), 0, half, access.nbytes) for start in places.starts()]
            quick = [concat(h, [strided(h, whole, n, count, 16) for whole in wholes]) for n in range(count)]
            halves = h.ir.block
        with otherwise:
            gathered = gather_all(h, places, bits, count, lanes)
            other = h.ir.block
    return h.merged(halves, quick, other, gathered)


def _load_line(h: Handler, places: Places, bits: int, lanes: Any) -> list[Any]:
    """What the active lanes load, which probably lie side by side."""
    start, regular = places.line(bits // 8, lanes)
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            kind = lanes_of(ir.IntType(bits))
            mask, rest = h.bools(lanes), zeros(kind)
            line = h.call(
                f"llvm.masked.load.v{LANES}i{bits}.p0", kind, as_pointer(h, start, byte), h.i32(bits // 8), mask, rest
            )
            one = h.ir.block
        with otherwise:
            gathered = gather_all(h, places, bits, 1, lanes)
            other = h.ir.block
    return h.merged(one, [line], other, gathered)


@emits(Store, slow_path=True)
def store(h: Handler, op: Store) -> None:
    pattern, bits = op.pattern, op.bits
    access = access_of(h, op.address, pattern, bits // 8 * len(op.sources), True)
    mask = guard_mask(h, op.guard, op.masked or bool(op.guard))
    values = [fit(h, source(h, value, 1 if op.uniform else LANES), bits, False) for value in op.sources]
    if op.guard:
        h.skip_unless_any(mask)
    lanes = mask if mask is not None else h.active
    if op.private and h.slow_path is not None:
        store_private(h, access, op, values, lanes)
    elif op.uniform:
        host = access.host(lanes)
        for number, value in enumerate(values):
            h.store(value, as_pointer(h, host, byte), number * bits // 8, bits // 8)
    elif h.slow_path is None:
        scatter(h, values, Places(h, access.resolve(lanes)), lanes)
    elif (op.address.affine or op.address.by_row) and pattern is not None and pattern[0] == "c":
        good, host = access.check_scalar()
        if h.partial or access.searches:
            with h.ir.if_else(h.likely(good)) as (then, otherwise):
                with then:
                    store_segments(h, access, values, host, lanes)
                with otherwise:
                    scatter(h, values, access.places(lanes), lanes)
        else:
            access.demand(good)
            store_segments(h, access, values, host, lanes)
    else:
        _store_lanes(h, access, values, lanes)
    h.next()


@emits(MemoryCheck, slow_path=True)
def memory_check(h: Handler, op: MemoryCheck) -> None:
    access = access_of(h, op.address, None, op.nbytes, op.writes)
    mask = guard_mask(h, op.guard, True)
    if op.guard:
        h.skip_unless_any(mask)
    access.hosts(mask)
    h.next()


def _store_lanes(h: Handler, access: Access, values: list[Any], lanes: Any) -> None:
    places = access.elements(values[0].type.element.width)[: h.present]
    if places and all(b - a >= len(values) for a, b in pairwise(sorted(places))):
        good, host = access.check_scalar()
        with h.ir.if_else(h.ir.and_(good, h.whole(lanes))) as (then, otherwise):
            with then:
                store_spread(h, values, host, places, values[0].type.element.width // 8)
            with otherwise:
                scatter(h, values, access.places(lanes), lanes)
        return
    where, bits = access.places(lanes), values[0].type.element.width
    if access.strides:
        scatter(h, values, where, lanes)
        return
    if access.beside and len(values) == 1 and bits >= WORD:
        _store_line(h, where, values[0], lanes)
        return
    regular = where.halves(access.nbytes, lanes)
    if isinstance(regular, ir.Constant):
        scatter(h, values, where, lanes)
        return
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            for number, start in enumerate(where.starts()):
                h.store(interleaved(h, values, number * 16, 16), as_pointer(h, start, byte), 0, access.nbytes)
        with otherwise:
            scatter(h, values, where, lanes)


def _store_line(h: Handler, places: Places, value: Any, lanes: Any) -> None:
    """Store what the active lanes have, which probably lie side by side."""
    bits = value.type.element.width
    start, regular = places.line(bits // 8, lanes)
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            name = f"llvm.masked.store.v{LANES}i{bits}.p0"
            h.call(name, ir.VoidType(), value, as_pointer(h, start, byte), h.i32(bits // 8), h.bools(lanes))
        with otherwise:
            scatter(h, [value], places, lanes)
