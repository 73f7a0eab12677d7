"""Loads and stores: address classes, bounds checks, and the patterns of access that need no gather.

Every access names an entry of the block's buffer table: the one of the array that its pointer came from where that is
known, else the one hit last. The check against it is a subtraction and a comparison; what fails it goes lane by lane
through the block's RESOLVE function, which searches the table and judges. The address is one of

- ``K``: a number; ``U32``, ``U64``: a uniform register plus a number;
- ``A32``, ``A64``: as U, plus lane offsets, which fall into segments of ``m`` lanes that are contiguous
  (``c``) or all equal (``b``): one host access a segment;
- ``X32``, ``X64``: a register with one address a lane. Two contiguous half warps are recognised, all else gathers.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, Block, Entry
from ..instructions.addresses import Pattern
from ..instructions.memory import Load, LoadParameter, MemoryCheck, Store
from ..instructions.operand_classes import ABSOLUTE, SINK, OperandClass
from .gathers import WORD, Places, concat, gather_all, scatter
from .handler import Handler, byte, i1, i32, i64, lanes_of, pointer, undefined
from .data import fit, guard_mask, put, slots_of, source
from .local_memory import load_private, store_private
from .registry import emits

__all__ = ["RESOLVE", "Access", "access_of", "in_lanes", "spread"]

RESOLVE = ir.FunctionType(i1, [pointer, pointer, pointer, i32])
wide = lanes_of(i64)
PIECE = 16
"""Bytes that lie within a cache line in arrays of numpy, which are aligned to as many."""


class Access:
    """The address of a memory handler: its fields, its checks, its translation to host addresses."""

    def __init__(self, h: Handler, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> None:
        self.h, self.kind, self.nbytes, self.write = h, kind, nbytes, write
        h.field()  # flags, for RESOLVE
        self.entry = h.add(h.load(h.block, Block.TABLE, pointer, fixed=True), h.field())
        self.bits = kind.bits or 64
        self.pattern = pattern
        if self.kind == ABSOLUTE:
            self.offset = h.field("q")
            return
        self.slot = h.slot()
        self.offset = h.field("q")
        if self.kind.affine:
            self.low, self.extent, self.known = h.field(), h.field(), h.field("q")
            self.segments = [h.field() for _ in range(LANES // pattern[1] - 1)] if pattern else []

    @property
    def searches(self) -> bool:
        """Whether what its buffer entry does not hold is searched in this function, without a side exit."""
        return False

    @property
    def beside(self) -> bool:
        """Whether its lanes probably lie side by side, where some of them are not active."""
        return False

    @property
    def strides(self) -> bool:
        """Whether the lanes' addresses are known to be a distance apart, of which the places make use."""
        return False

    def base(self) -> Any:
        """The uniform part of the address, i64; of an affine address that of its lowest lane."""
        h = self.h
        if self.kind == ABSOLUTE:
            return self.offset
        return h.ir.add(h.ir.zext(h.load(self.slot, 0, ir.IntType(self.bits)), i64), self.offset)

    def vector(self) -> Any:
        """The address of each lane, <32 x i64>."""
        h = self.h
        if self.kind.scalar:
            return h.splat(self.base())
        element = lanes_of(ir.IntType(self.bits))
        if self.kind.per_lane:
            lanes = h.load(self.slot, 0, element)
        else:
            base = h.splat(h.load(self.slot, 0, ir.IntType(self.bits)))
            lanes = h.ir.add(base, h.lane_offsets(self.known, self.bits))
        if self.bits < 64:
            lanes = h.ir.zext(lanes, wide)
        offset = self.offset if self.kind.per_lane else h.ir.sub(self.offset, h.ir.sext(self.low, i64))
        return h.ir.add(lanes, h.splat(offset))

    def elements(self, bits: int) -> tuple[int, ...]:  # noqa: ARG002
        """The element that each lane accesses, from the lowest on, where these are known and few; empty elsewhere."""
        return ()

    def limits(self, extent: Any) -> tuple[Any, Any, Any]:
        """The entry's lowest address, the bound on offsets of ``extent`` + 1 bytes, and the way to the host."""
        h = self.h
        size = h.load(self.entry, Entry.WRITABLE if self.write else Entry.SIZE, i64, fixed=True)
        bound = h.call("llvm.usub.sat.i64", i64, size, extent)
        low, delta = (h.load(self.entry, field, i64, fixed=True) for field in (Entry.LOW, Entry.DELTA))
        return low, bound, delta

    def check_scalar(self) -> tuple[Any, Any]:
        """Whether the whole pattern lies within the entry, and the host address of its lowest byte."""
        h = self.h
        address = first = self.base()
        extent = h.extended(self.extent) if self.kind.affine else h.i64(self.nbytes - 1)
        merged = h.merged_bounds()
        if merged is not None:
            back, extent = h.i64(merged[0]), h.i64(merged[1])
            first = h.ir.sub(address, back)
        low, bound, delta = self.limits(extent)
        good = self.and_aligned(h.ir.icmp_unsigned("<", h.ir.sub(first, low), bound), address)
        return h.note_bounds(good), h.ir.add(address, delta)

    def and_aligned(self, good: Any, address: Any) -> Any:
        """Whether this holds, and an address is aligned; or that of each lane."""
        h = self.h
        if self.nbytes <= 1:
            return good
        low, zero = h.i64(self.nbytes - 1), h.i64(0)
        if address.type != i64:
            low, zero = h.splat(low), h.splat(zero)
        return h.ir.and_(good, h.ir.icmp_unsigned("==", h.ir.and_(address, low), zero))

    def check_vector(self, mask: Any) -> tuple[Any, Any]:
        """Whether each lane of the mask lies within the entry, and the host addresses."""
        h = self.h
        lanes = self.vector()
        low, bound, delta = self.limits(h.i64(self.nbytes - 1))
        good = self.and_aligned(h.ir.icmp_unsigned("<", h.ir.sub(lanes, h.splat(low)), h.splat(bound)), lanes)
        bad = h.ir.and_(mask, h.ir.not_(h.mask(good)))
        return h.zero(bad), h.ir.add(lanes, h.splat(delta))

    def demand(self, good: Any) -> None:
        """Go on here where the check holds, else start over on the slow path."""
        self.h.branch_unless(good, lambda: self.h.tail(self.h.slow_path, self.h.rec))

    def hosts(self, mask: Any) -> Any:
        """Checked host addresses of the lanes in the mask, <32 x i64>."""
        return self.resolve(mask) if self.h.slow_path is None else self.hosts_within(mask)

    def places(self, mask: Any) -> Places:
        """The same, as they are gathered from."""
        return Places(self.h, self.hosts(mask))

    def hosts_within(self, mask: Any) -> Any:
        """The same on the fast path, for lanes that all lie within the entry."""
        good, lanes = self.check_vector(mask)
        self.demand(good)
        return lanes

    def resolve(self, mask: Any) -> Any:
        """Host addresses by the slow, exact way; returns from the handler where a lane is at fault."""
        h = self.h
        scratch = h.add(h.block, Block.SCRATCH)
        h.store(self.vector(), scratch, 0)
        resolve = h.load(h.block, Block.RESOLVE, RESOLVE.as_pointer(), 8)
        fine = h.ir.call(resolve, [h.rec, h.warp, h.block, mask])
        h.branch_unless(fine, h.ir.ret_void)
        return h.load(scratch, 0, wide)

    def starts(self, host: Any) -> list[Any]:
        """The host addresses of all segments."""
        return [host, *(self.h.ir.add(host, self.h.ir.sext(offset, i64)) for offset in self.segments)]

    def host(self, mask: Any) -> Any:
        """The one host address that a uniform access has."""
        h = self.h
        if h.slow_path is None:
            lane = h.first_lane(mask)
            return h.ir.extract_element(self.resolve(h.ir.and_(mask, h.ir.sub(h.i32(0), mask))), lane)
        good, host = self.check_scalar()
        self.demand(good)
        return host


def access_of(h: Handler, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> Access:
    """The address of an access, as the function under construction checks it."""
    own: Access | None = h.own_access(kind, pattern, nbytes, write)
    return Access(h, kind, pattern, nbytes, write) if own is None else own


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
        values = [h.load(_host(h, host, byte), n * bits // 8, ir.IntType(bits), bits // 8) for n in range(count)]
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
        values = _segments(h, access, host, bits, count)
    for dest, slot, value in zip(dests, slots, values):
        if slot is not None:
            put(h, slot, fit(h, value, dest.bits, op.signed), mask)
    h.next()


def _host(h: Handler, address: Any, kind: ir.Type) -> Any:
    return h.ir.inttoptr(address, kind.as_pointer())


def _segments(h: Handler, access: Access, host: Any, bits: int, count: int) -> list[Any]:
    """One host load a segment of equal or contiguous lanes."""
    element = ir.IntType(bits)
    if access.pattern is None and access.kind.affine:
        return _picked(h, access, host, bits, count)
    if access.pattern is None:
        return [h.splat(h.load(_host(h, host, byte), n * bits // 8, element, bits // 8)) for n in range(count)]
    letter, lanes = access.pattern
    parts: list[list[Any]] = []
    for start in access.starts(host)[: -(-h.present // lanes)]:
        place = _host(h, start, byte)
        if letter == "b":
            numbers = [h.load(place, n * bits // 8, element, bits // 8) for n in range(count)]
            parts.append([spread(h, number, lanes) for number in numbers])
        else:
            whole = _contiguous(h, place, element, lanes * count, access.nbytes)
            parts.append([_stride(h, whole, n, count, lanes) for n in range(count)])
    return [in_lanes(h, [part[n] for part in parts]) for n in range(count)]


class _VolatileLoad(ir.instructions.LoadInstr):  # type: ignore[misc]
    """A load that LLVM makes as it is."""

    def descr(self, buf: list[str]) -> None:
        text: list[str] = []
        super().descr(text)
        buf.append("".join(text).replace("load ", "load volatile ", 1))


def _contiguous(h: Handler, place: Any, element: ir.Type, count: int, align: int) -> Any:
    """So many elements as one load; in pieces that LLVM keeps apart where that is better."""
    size = PIECE * 8 // element.width
    if not h.loads_pieces or count <= size or count & (count - 1):
        return h.load(place, 0, ir.VectorType(element, count), align)
    kind, pieces = ir.VectorType(element, size), []
    for number in range(count // size):
        piece = _VolatileLoad(h.ir.block, h.ir.bitcast(h.add(place, number * PIECE), kind.as_pointer()))
        piece.align = align
        h.ir._insert(piece)
        pieces.append(piece)
    return concat(h, pieces)


def _picked(h: Handler, access: Access, host: Any, bits: int, count: int) -> list[Any]:
    """All elements from the lowest lane's to the highest's, of which each lane picks its own."""
    places = access.elements(bits)
    size = max(places) + count
    whole = h.load(_host(h, host, byte), 0, ir.VectorType(ir.IntType(bits), size), access.nbytes)
    orders = [[place + n for place in places] for n in range(count)]
    return [h.ir.shuffle_vector(whole, whole, ir.Constant(lanes_of(i32), order)) for order in orders]


def spread(h: Handler, value: Any, lanes: int) -> Any:
    kind = ir.VectorType(value.type, lanes)
    first = h.ir.insert_element(undefined(kind), value, h.i32(0))
    return h.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, lanes), None))


def _stride(h: Handler, whole: Any, first: int, count: int, lanes: int) -> Any:
    if count == 1:
        return whole
    order = [first + lane * count for lane in range(lanes)]
    return h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, lanes), order))


def in_lanes(h: Handler, parts: list[Any]) -> Any:
    """Segments of lanes as one vector; lanes behind them, which the block does not have, hold anything."""
    lanes = parts[0].type.count
    if LANES % lanes == 0:
        return concat(h, parts + [parts[0]] * (LANES // lanes - len(parts)))
    whole: Any = None
    for number, part in enumerate(parts):
        first, last = number * lanes, (number + 1) * lanes
        order = [lane - first if first <= lane < last else 0 for lane in range(LANES)]
        wide = h.ir.shuffle_vector(part, part, ir.Constant(lanes_of(i32), order))
        blend = [lane if lane < first else LANES + lane for lane in range(LANES)]
        whole = wide if whole is None else h.ir.shuffle_vector(whole, wide, ir.Constant(lanes_of(i32), blend))
    return whole


def _load_present(h: Handler, access: Access, bits: int, count: int, lanes: Any) -> list[Any]:
    """By segments where all lanes of a warp could load, else only those that it has."""
    good, host = access.check_scalar()
    with h.ir.if_else(h.likely(good)) as (then, otherwise):
        with then:
            whole = _segments(h, access, host, bits, count)
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
    starts, regular = places.halves(access.nbytes, lanes)
    if isinstance(regular, ir.Constant):
        return gather_all(h, places, bits, count, lanes)
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            half = ir.VectorType(ir.IntType(bits), 16 * count)
            wholes = [h.load(_host(h, start, byte), 0, half, access.nbytes) for start in starts]
            quick = [concat(h, [_stride(h, whole, n, count, 16) for whole in wholes]) for n in range(count)]
            halves = h.ir.block
        with otherwise:
            gathered = gather_all(h, places, bits, count, lanes)
            spread = h.ir.block
    return h.merged(halves, quick, spread, gathered)


def _load_line(h: Handler, places: Places, bits: int, lanes: Any) -> list[Any]:
    """What the active lanes load, which probably lie side by side."""
    start, regular = places.line(bits // 8, lanes)
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            kind = lanes_of(ir.IntType(bits))
            mask, rest = h.bools(lanes), ir.Constant(kind, None)
            line = h.call(
                f"llvm.masked.load.v{LANES}i{bits}.p0", kind, _host(h, start, byte), h.i32(bits // 8), mask, rest
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
            h.store(value, _host(h, host, byte), number * bits // 8, bits // 8)
    elif h.slow_path is None:
        scatter(h, values, Places(h, access.resolve(lanes)), lanes)
    elif (op.address.affine or op.address.by_row) and pattern is not None and pattern[0] == "c":
        good, host = access.check_scalar()
        if h.partial or access.searches:
            with h.ir.if_else(h.likely(good)) as (then, otherwise):
                with then:
                    _store_segments(h, access, values, host, lanes)
                with otherwise:
                    scatter(h, values, access.places(lanes), lanes)
        else:
            access.demand(good)
            _store_segments(h, access, values, host, lanes)
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


def _store_segments(h: Handler, access: Access, values: list[Any], host: Any, lanes: Any) -> None:
    count, width = len(values), access.pattern[1] if access.pattern else LANES
    starts = access.starts(host)[: h.present // width]
    parts = [_interleave(h, values, number * width, width) for number in range(len(starts))]
    with h.ir.if_else(h.whole(lanes)) as (then, otherwise):
        with then:
            for start, part in zip(starts, parts):
                h.store(part, _host(h, start, byte), 0, access.nbytes)
        with otherwise:
            bools = h.bools(lanes)
            for number, (start, part) in enumerate(zip(starts, parts)):
                order = [number * width + lane // count for lane in range(width * count)]
                chosen = h.ir.shuffle_vector(bools, bools, ir.Constant(ir.VectorType(i32, len(order)), order))
                name = f"llvm.masked.store.v{part.type.count}i{part.type.element.width}.p0"
                h.call(name, ir.VoidType(), part, _host(h, start, byte), h.i32(part.type.element.width // 8), chosen)


def _interleave(h: Handler, values: list[Any], first: int, lanes: int) -> Any:
    """Lanes ``first`` to ``first + lanes`` of the values as they lie in memory: a vector access interleaves them."""
    count = len(values)
    whole = concat(h, _padded(values))
    order = [value * LANES + first + lane for lane in range(lanes) for value in range(count)]
    return h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, len(order)), order))


def _padded(values: list[Any]) -> list[Any]:
    size = 1 << (len(values) - 1).bit_length()
    return values + [values[0]] * (size - len(values))


def _store_spread(h: Handler, values: list[Any], host: Any, places: tuple[int, ...], align: int) -> None:
    """One store of all from the lowest lane's elements to the highest's, which leaves out what lies between them."""
    whole, count = concat(h, _padded(values)), len(values)
    order, there = ([0] * (max(places) + count) for _ in range(2))
    for lane, place in enumerate(places):
        for number in range(count):
            order[place + number], there[place + number] = number * LANES + lane, 1
    part = h.ir.shuffle_vector(whole, whole, ir.Constant(ir.VectorType(i32, len(order)), order))
    name = f"llvm.masked.store.v{len(order)}i{part.type.element.width}.p0"
    mask = ir.Constant(ir.VectorType(i1, len(there)), there)
    h.call(name, ir.VoidType(), part, _host(h, host, byte), h.i32(align), mask)


def _store_lanes(h: Handler, access: Access, values: list[Any], lanes: Any) -> None:
    places = access.elements(values[0].type.element.width)[: h.present]
    if places and all(b - a >= len(values) for a, b in pairwise(sorted(places))):
        good, host = access.check_scalar()
        with h.ir.if_else(h.ir.and_(good, h.whole(lanes))) as (then, otherwise):
            with then:
                _store_spread(h, values, host, places, values[0].type.element.width // 8)
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
    starts, regular = where.halves(access.nbytes, lanes)
    if isinstance(regular, ir.Constant):
        scatter(h, values, where, lanes)
        return
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            for number, start in enumerate(starts):
                h.store(_interleave(h, values, number * 16, 16), _host(h, start, byte), 0, access.nbytes)
        with otherwise:
            scatter(h, values, where, lanes)


def _store_line(h: Handler, places: Places, value: Any, lanes: Any) -> None:
    """Store what the active lanes have, which probably lie side by side."""
    bits = value.type.element.width
    start, regular = places.line(bits // 8, lanes)
    with h.ir.if_else(regular) as (then, otherwise):
        with then:
            name = f"llvm.masked.store.v{LANES}i{bits}.p0"
            h.call(name, ir.VoidType(), value, _host(h, start, byte), h.i32(bits // 8), h.bools(lanes))
        with otherwise:
            scatter(h, [value], places, lanes)
