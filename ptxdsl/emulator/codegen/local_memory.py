"""Loads and stores of local memory, which each thread has to itself.

The memory of a warp lies in granules, side by side for its lanes: the granule at an offset of lane 0, of lane 1, and so
on, then that of the next offset. What all lanes access at one offset, an index that is uniform, is one vector in
memory; so is a stack that is equally deep in all lanes. A granule has the bytes of the kernel's widest access of local
memory, so that no access falls apart.

An address is checked against the variable that it comes from, where that is known, else against all of the thread's
local memory; what fails goes lane by lane through RESOLVE, as everywhere.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..instructions.instrumentation import ShadowCheck
from ..instructions.memory import Load, Store
from ..machine.layout import LANES, LOCAL_START, Block, Entry, Warp
from .handler import Handler, byte, i1, i32, i64, lanes_of, pointer, zeros

__all__ = ["load_private", "private_places", "store_private"]


class _Private:
    """The places of an access, as bytes from where the warp's memory begins."""

    def __init__(self, h: Handler, access: Any, op: Load | Store | ShadowCheck, nbytes: int) -> None:
        self.h, self.access, self.nbytes = h, access, nbytes
        self.granule, self.known, self.windowed = op.private
        size = h.load(h.block, Block.LOCAL_BYTES, i64, fixed=True)
        warp = h.ir.mul(h.ir.zext(h.load(h.warp, Warp.INDEX, i32), i64), h.ir.mul(size, h.i64(LANES)))
        self.memory = h.add(h.load(h.block, Block.LOCAL, pointer, fixed=True), warp)
        window = h.load(h.block, Block.LOCAL_WINDOW, i64, fixed=True) if self.windowed else h.i64(0)
        self.start = h.ir.add(window, h.i64(LOCAL_START))
        low: Any = self.start
        if self.known:
            low = h.ir.add(window, h.load(access.entry, Entry.LOW, i64, fixed=True))
            size = h.load(access.entry, Entry.DELTA, i64, fixed=True)
        self.merged = h.merged_bounds()
        extent = nbytes - 1 if self.merged is None or self.merged[1] < 0 else self.merged[1]
        self.low, self.bound = low, h.call("llvm.usub.sat.i64", i64, size, h.i64(extent))

    def _spread(self, value: Any, like: Any) -> Any:
        return self.h.splat(value) if isinstance(like.type, ir.VectorType) else value

    def fits(self, address: Any) -> Any:
        """Whether an address, or that of each lane, is aligned and within bounds."""
        h = self.h
        if self.merged is not None and self.merged[1] < 0:
            return i1(1)
        back = self.merged[0] if self.merged is not None else 0
        offset = h.ir.sub(address, self._spread(h.ir.add(self.low, h.i64(back)) if back else self.low, address))
        good = h.ir.icmp_unsigned("<", offset, self._spread(self.bound, address))
        return good if h.known_alignment >= self.nbytes else self.access.and_aligned(good, address)

    def row(self, address: Any) -> Any:
        """Where lane 0 has what is at an address, or the one lane that the code is for."""
        h = self.h
        offset = h.ir.sub(address, self._spread(self.start, address))
        if max(self.nbytes, h.known_alignment) >= self.granule:
            place = h.ir.mul(offset, self._spread(h.i64(LANES), address))
        else:
            within = h.ir.and_(offset, self._spread(h.i64(self.granule - 1), address))
            rows = h.ir.sub(offset, within)
            place = h.ir.add(h.ir.mul(rows, self._spread(h.i64(LANES), address)), within)
        lane = h.lane
        return place if lane is None else h.ir.add(place, h.ir.mul(h.ir.zext(lane, i64), h.i64(self.granule)))

    def together(self, bits: int, count: int) -> bool:
        """Whether several elements of a lane lie side by side."""
        return 1 < count <= self.granule * 8 // bits

    def step(self, number: int, nbytes: int) -> int:
        """Bytes from the first element of an access to another."""
        at = number * nbytes
        return at // self.granule * self.granule * LANES + at % self.granule


def _checked(h: Handler, access: Any, private: _Private, lanes: Any) -> tuple[Any, Any, Any]:
    """The place of lane 0 where all lanes have one offset, the places of all, None if that is known, and whether so."""
    if access.kind.scalar:
        address = access.base()
        access.demand(private.fits(address))
        return private.row(address), None, None
    address = access.vector()
    bad = h.ir.and_(lanes, h.ir.not_(h.mask(private.fits(address))))
    access.demand(h.zero(bad))
    rows = private.row(address)
    full = isinstance(lanes, ir.Constant)
    first = h.ir.extract_element(rows, h.i32(0) if full else h.ir.and_(h.first_lane(lanes), h.i32(LANES - 1)))
    other = h.ir.icmp_unsigned("!=", rows, h.splat(first))
    same = h.zero(h.ir.and_(lanes, h.mask(other)))
    places = h.ir.add(rows, h.iota(64, private.granule))
    return first, h.ir.add(places, h.splat(h.ir.ptrtoint(private.memory, i64))), same


def private_places(h: Handler, access: Any, check: ShadowCheck, lanes: Any) -> Any:
    """The host address of each lane, or of the one that the code is for."""
    private = _Private(h, access, check, check.nbytes)
    first, places, _ = _checked(h, access, private, lanes)
    if places is not None:
        return places
    if h.lane is not None:
        return h.ir.add(first, h.ir.ptrtoint(private.memory, i64))
    return h.ir.add(h.iota(64, private.granule), h.splat(h.ir.add(first, h.ir.ptrtoint(private.memory, i64))))


def load_private(h: Handler, access: Any, op: Load, lanes: Any) -> list[Any]:
    """The elements of an access in the lanes of the mask."""
    bits, count = op.bits, len(op.dests)
    private = _Private(h, access, op, bits // 8 * count)
    first, places, same = _checked(h, access, private, lanes)
    if h.lane is not None:
        kind = ir.VectorType(ir.IntType(bits), count)
        if private.together(bits, count):
            whole = h.load(private.memory, first, kind, bits // 8)
            return [h.ir.extract_element(whole, h.i32(n)) for n in range(count)]
        steps = [h.ir.add(first, h.i64(private.step(n, bits // 8))) for n in range(count)]
        return [h.load(private.memory, step, kind.element, bits // 8) for step in steps]

    def aligned() -> list[Any]:
        return [_load_row(h, private, h.ir.add(first, h.i64(private.step(n, bits // 8))), bits) for n in range(count)]

    if places is None:
        return aligned()
    with h.ir.if_else(same) as (then, otherwise):
        with then:
            rows, one = aligned(), h.ir.block
        with otherwise:
            gathered = [_gather(h, private, places, n, bits, lanes) for n in range(count)]
            other = h.ir.block
    return h.merged(one, rows, other, gathered)


def _order(private: _Private, bits: int) -> tuple[int, range]:
    """How many elements lie where one of each lane does, and which these are."""
    step = private.granule * 8 // bits
    return step * LANES, range(0, step * LANES, step)


def _load_row(h: Handler, private: _Private, place: Any, bits: int) -> Any:
    size, order = _order(private, bits)
    whole = h.load(private.memory, place, ir.VectorType(ir.IntType(bits), size), bits // 8)
    return whole if size == LANES else h.ir.shuffle_vector(whole, whole, ir.Constant(lanes_of(i32), [*order]))


def _places(h: Handler, private: _Private, places: Any, number: int, bits: int) -> Any:
    step = private.step(number, bits // 8)
    return h.ir.inttoptr(h.ir.add(places, h.splat(h.i64(step))) if step else places, lanes_of(pointer))


def _gather(h: Handler, private: _Private, places: Any, number: int, bits: int, lanes: Any) -> Any:
    kind, name = lanes_of(ir.IntType(bits)), f"llvm.masked.gather.v32i{bits}.v32p0"
    where = _places(h, private, places, number, bits)
    return h.call(name, kind, where, h.i32(bits // 8), h.bools(lanes), zeros(kind))


def store_private(h: Handler, access: Any, op: Store, values: list[Any], lanes: Any) -> None:
    """Store the elements of an access in the lanes of the mask."""
    bits = op.bits
    private = _Private(h, access, op, bits // 8 * len(values))
    first, places, same = _checked(h, access, private, lanes)
    if h.lane is not None:
        numbers = [h.ir.extract_element(value, h.i32(0)) for value in values]
        if private.together(bits, len(values)):
            whole: Any = ir.Constant(ir.VectorType(ir.IntType(bits), len(values)), ir.Undefined)
            for place, number in enumerate(numbers):
                whole = h.ir.insert_element(whole, number, h.i32(place))
            h.store(whole, private.memory, first, bits // 8)
            return
        for place, number in enumerate(numbers):
            h.store(number, private.memory, h.ir.add(first, h.i64(private.step(place, bits // 8))), bits // 8)
        return

    def aligned() -> None:
        for number, value in enumerate(values):
            _store_row(h, private, h.ir.add(first, h.i64(private.step(number, bits // 8))), value, lanes)

    if places is None:
        aligned()
        return
    with h.ir.if_else(same) as (then, otherwise):
        with then:
            aligned()
        with otherwise:
            for number, value in enumerate(values):
                where = _places(h, private, places, number, bits)
                name = f"llvm.masked.scatter.v32i{bits}.v32p0"
                h.call(name, ir.VoidType(), value, where, h.i32(bits // 8), h.bools(lanes))


def _store_row(h: Handler, private: _Private, place: Any, value: Any, lanes: Any) -> None:
    bits = value.type.element.width
    size, order = _order(private, bits)
    chosen = h.bools(lanes)
    if size > LANES:
        back = [LANES] * size
        for lane, at in enumerate(order):
            back[at] = lane
        spread = ir.Constant(ir.VectorType(i32, size), back)
        value = h.ir.shuffle_vector(value, zeros(value.type), spread)
        chosen = h.ir.shuffle_vector(chosen, zeros(lanes_of(i1)), spread)
    elif isinstance(lanes, ir.Constant):
        h.store(value, private.memory, place, bits // 8)
        return
    where = h.ir.bitcast(h.add(private.memory, place), byte.as_pointer())
    h.call(f"llvm.masked.store.v{size}i{bits}.p0", ir.VoidType(), value, where, h.i32(bits // 8), chosen)
