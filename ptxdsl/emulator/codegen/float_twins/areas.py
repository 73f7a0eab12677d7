"""The planes of an area: where code finds the twins of floats in memory.

A plane has a copy of the area's memory, as it was when floats of its format were followed there, and a cell for each
element. A twin counts where the copy still agrees with the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from ...machine.float_twins import Area, Areas, Cell
from ...machine.layout import LANES
from ..handler import Handler, byte, i32, i64, lanes_of, pointer

__all__ = ["CELL", "Lines", "Plane", "each_area", "gather", "scatter", "there"]

double, single = ir.DoubleType(), ir.FloatType()
CELL: tuple[tuple[int, Any, int], ...] = ((Cell.TWIN, double, 8), (Cell.ORIGIN, i32, 4), (Cell.AROSE, single, 4))
"""The fields of a cell: where each lies, its type, its bytes."""
_FIND = ir.FunctionType(pointer, [pointer, i64])


def _finder(h: Handler) -> ir.Function:
    """The function that finds the area of an address; null where there is none."""
    name = "area_of"
    found = h.ir.module.globals.get(name)
    if found is not None:
        return found
    function = ir.Function(h.ir.module, _FIND, name)
    function.linkage = "internal"
    areas, address = function.args
    entry, head, body, hit, turn, none = (function.append_basic_block() for _ in range(6))
    b = ir.IRBuilder(entry)

    def at(place: Any, offset: int) -> Any:
        return b.gep(place, [i64(offset)], source_etype=byte)

    count = b.load(areas, align=8, typ=i64)
    first = at(areas, Areas.nbytes)
    b.branch(head)
    b.position_at_end(head)
    number, place = b.phi(i64), b.phi(pointer)
    number.add_incoming(i64(0), entry)
    place.add_incoming(first, entry)
    b.cbranch(b.icmp_unsigned("<", number, count), body, none)
    b.position_at_end(body)
    low, size = (b.load(at(place, offset), align=8, typ=i64) for offset in (Area.LOW, Area.SIZE))
    b.cbranch(b.icmp_unsigned("<", b.sub(address, low), size), hit, turn)
    b.position_at_end(turn)
    number.add_incoming(b.add(number, i64(1)), turn)
    place.add_incoming(at(place, Area.nbytes), turn)
    b.branch(head)
    b.position_at_end(hit)
    b.ret(place)
    b.position_at_end(none)
    b.ret(pointer(None))
    return function


class Plane:
    """The plane of a format in the areas of a launch, as a micro-op names them."""

    def __init__(self, h: Handler, shape: Any) -> None:
        self.h, self.shape = h, shape
        self.areas, self.number = h.ir.inttoptr(h.field("q"), pointer), h.ir.sext(h.field(), i64)

    def area(self, address: Any) -> Any:
        return self.h.ir.call(_finder(self.h), [self.areas, address])

    def place(self, area: Any, address: Any) -> Place:
        h = self.h
        low, size = (h.load(area, offset, i64) for offset in (Area.LOW, Area.SIZE))
        base = h.load(h.add(area, h.ir.shl(self.number, h.i64(3))), Area.PLANES, pointer, 8)
        cells = h.ir.and_(h.ir.add(size, h.i64(Cell.nbytes - 1)), h.i64(-Cell.nbytes))
        return Place(self, h.ir.sub(address, low), base, h.add(base, cells))


class Place(NamedTuple):
    """An address in a plane: bytes from the area's begin, the copy of its memory, its cells."""

    plane: Plane
    offset: Any
    copy: Any
    cells: Any

    def _at(self, nbytes: int) -> Any:
        return self.plane.h.ir.add(self.offset, self.plane.h.i64(nbytes))

    def word(self, nbytes: int, bits: int) -> Any:
        """What the copy has, so many bytes further on."""
        return self.plane.h.load(self.copy, self._at(nbytes), ir.IntType(bits), 1)

    def put_word(self, nbytes: int, value: Any) -> None:
        self.plane.h.store(value, self.copy, self._at(nbytes), 1)

    def cell(self, nbytes: int) -> Any:
        h, element = self.plane.h, self.plane.shape[2] // 8
        return h.add(self.cells, h.ir.mul(h.ir.udiv(self._at(nbytes), h.i64(element)), h.i64(Cell.nbytes)))


def there(h: Handler, area: Any) -> Any:
    """Whether it is an area."""
    return h.nonzero(h.ir.ptrtoint(area, i64))


class Lines:
    """Lanes that access one area: their offsets from its begin, the copy of its memory, its cells."""

    def __init__(self, plane: Plane, area: Any, hosts: Any, mask: Any) -> None:
        self.h, self.plane, self.mask = plane.h, plane, mask
        h = self.h
        place = plane.place(area, h.i64(0))
        self.offsets = h.ir.add(hosts, h.splat(place.offset))
        self.copy, self.cells = (h.splat(h.ir.ptrtoint(base, i64)) for base in (place.copy, place.cells))

    def _places(self, base: Any, offsets: Any) -> Any:
        return self.h.ir.inttoptr(self.h.ir.add(base, offsets), lanes_of(pointer))

    def words(self, nbytes: int) -> Any:
        """Where the copy has what lies so many bytes further on."""
        return self._places(self.copy, self.h.ir.add(self.offsets, self.h.splat(self.h.i64(nbytes))))

    def cell(self, nbytes: int, field: int) -> Any:
        """Where a field of the element's cell lies."""
        h, element = self.h, self.plane.shape[2] // 8
        number = h.ir.lshr(h.ir.add(self.offsets, h.splat(h.i64(nbytes))), h.splat(h.i64(element.bit_length() - 1)))
        scaled = h.ir.shl(number, h.splat(h.i64(Cell.nbytes.bit_length() - 1)))
        return self._places(self.cells, h.ir.add(scaled, h.splat(h.i64(field))))


def _suffix(kind: Any) -> str:
    return {double: "f64", single: "f32"}.get(kind) or f"i{kind.width}"


def gather(h: Handler, places: Any, kind: Any, align: int, where: Any, rest: Any) -> Any:
    """What lies at an address of each lane, ``rest`` where it is not wanted."""
    name = f"llvm.masked.gather.v{LANES}{_suffix(kind)}.v{LANES}p0"
    return h.call(name, lanes_of(kind), places, h.i32(align), where, rest)


def scatter(h: Handler, value: Any, places: Any, align: int, where: Any) -> None:
    """Store what the lanes have, the lowest first."""
    name = f"llvm.masked.scatter.v{LANES}{_suffix(value.type.element)}.v{LANES}p0"
    h.call(name, ir.VoidType(), value, places, h.i32(align), where)


def each_area(h: Handler, plane: Plane, hosts: Any, mask: Any, body: Callable[[Any, Lines], None]) -> None:
    """Run ``body(area, lines)`` for each area that lanes of a mask access."""

    def turn(left: Any) -> Any:
        lane = h.first_lane(left)
        area = plane.area(h.ir.extract_element(hosts, lane))
        before, found, on = h.ir.block, h.block_named("found"), h.block_named("on")
        one = h.ir.shl(h.i32(1), lane)
        h.ir.cbranch(there(h, area), found, on)
        h.ir.position_at_end(found)
        low, size = (h.splat(h.load(area, offset, i64)) for offset in (Area.LOW, Area.SIZE))
        inside = h.ir.icmp_unsigned("<", h.ir.sub(hosts, low), size)
        same = h.ir.and_(left, h.mask(inside))
        body(area, Lines(plane, area, hosts, same))
        last = h.ir.block
        h.ir.branch(on)
        h.ir.position_at_end(on)
        done, = h.merged(before, [one], last, [same])
        return h.ir.and_(left, h.ir.not_(done))

    h.loop(mask, h.nonzero, turn)
