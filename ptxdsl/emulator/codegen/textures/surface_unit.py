"""Surface units: loads, stores and reductions at the coordinates of a surface, and what is done beyond its edges.

The instructions of raw bits (``.b``) count the first coordinate in bytes, the formatted ones (``.p``) in elements. A
coordinate beyond an edge is a fault (``.trap``), the nearest one within (``.clamp``), or reads 0 and writes nothing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....launch.texture_description import TYPES
from ...machine.texture_pool import Header, Kind, Level, Request
from ...semantics.lanes import Bits
from ...machine.status import Fault
from ...instructions.textures import SurfaceUnit
from ..handler import i32, i64, pointer
from ..registry import builds
from .unit import Unit, axes, layered


class _Access(Unit):
    """The start of every unit: the address, or the end where there is nothing to do."""

    def __init__(self, module: ir.Module, name: str, key: SurfaceUnit) -> None:
        self.what, self.geometry, self.mode, self.formatted = key.action, key.geometry, key.mode, key.formatted
        self.bits, self.vector = key.bits, key.elements
        super().__init__(module, name)
        self.surface = self.header(Request.HANDLE, Kind.SURFACE, geometry=self.geometry)
        self.entry = self.load(self.surface, Header.TABLE, pointer, 8)
        texel = self.field(self.surface, Header.TEXEL)
        nbytes = texel if self.formatted else self.b.bits(32, self.bits // 8 * self.vector)
        count = axes(self.geometry)
        sizes = self.extents(self.entry, count)
        width = sizes[0].zext(64) * texel.zext(64)
        step = nbytes.zext(64)
        first = self.given(Request.X).sext(64)
        places = [first * step if self.formatted else first]
        places += [self.given(Request.X + 128 * axis).sext(64) for axis in range(1, count)]
        lasts = [width - step] + [size.zext(64) - 1 for size in sizes[1:]]
        if layered(self.geometry):
            places.append(self.given(Request.LAYER).zext(64))
            lasts.append(self.field(self.surface, Header.LAYERS).zext(64) - 1)
        self.demand(step.le(width), Fault.SURFACE)
        self._keep_inside(places, lasts)
        x = places[0] if self.mode != "clamp" else places[0].max(0, signed=True).min(lasts[0], signed=True)
        if not self.formatted:
            odd = self.bits // 8 * self.vector - 1
            self.demand((x & odd).eq(0) | self._moved(places[0], lasts[0]), Fault.SURFACE_ALIGNMENT)
            x = x & ~odd
        if self.mode == "clamp":
            places[1:] = [
                place.max(0, signed=True).min(last, signed=True) for place, last in zip(places[1:], lasts[1:])
            ]
        address = self.field(self.entry, Level.BASE, 64) + x
        for place, stride in zip(places[1:], self._strides(count)):
            address = address + place * self.field(self.entry, stride, 64)
        self.address = address

    def _strides(self, count: int) -> list[int]:
        if layered(self.geometry) and count == 1:
            return [Level.SLICE]
        return [Level.PITCH, Level.SLICE]

    def _keep_inside(self, places: list[Bits], lasts: list[Bits]) -> None:
        """Leave where a coordinate is beyond an edge and the mode says so."""
        if self.mode == "clamp":
            return
        inside = self.true()
        for place, last in zip(places, lasts):
            inside = inside & place.le(last)
        if self.mode == "trap":
            self.demand(inside, Fault.SURFACE)
            return
        on, beyond = self.named("on"), self.named("beyond")
        self.ir.cbranch(inside.value, on, beyond)
        self.ir.position_at_end(beyond)
        if self.what == "load":
            for number in range(self.vector):
                self.answer(i64(0), Request.RESULT + 256 * number, 8)
        self.fine()
        self.ir.position_at_end(on)

    def _moved(self, place: Bits, last: Bits) -> Bits:
        """Whether clamping has moved a coordinate: an edge need not be aligned."""
        return place.gt(last) if self.mode == "clamp" else Bits(self.b, ir.Constant(ir.IntType(1), 0), 1)

    def host(self, kind: ir.Type, number: int = 0) -> Any:
        """The address of element ``number`` of what lies there."""
        address = self.address + number * kind.width // 8
        return self.ir.inttoptr(address.value, kind.as_pointer())

    def value(self, number: int, kind: ir.Type) -> Any:
        """A number that is written."""
        return self.given(Request.VALUE + 256 * number, 64).trunc(kind.width).value


def _load(unit: _Access) -> None:
    kind = ir.IntType(unit.bits)
    for number in range(unit.vector):
        value = unit.ir.load(unit.host(kind, number), align=unit.bits // 8)
        unit.answer(value if unit.bits == 64 else unit.ir.zext(value, i64), Request.RESULT + 256 * number, 8)
    unit.fine()


def _store(unit: _Access) -> None:
    kind = ir.IntType(unit.bits)
    for number in range(unit.vector):
        unit.ir.store(unit.value(number, kind), unit.host(kind, number), align=unit.bits // 8)
    unit.fine()


def _store_formatted(unit: _Access) -> None:
    """Each number as the surface's format has it, integers clamped; those without a channel are left out."""

    def store(dtype: str, channels: int) -> None:
        for number in range(min(channels, unit.vector)):
            value = _formatted(unit, unit.b.wrap(unit.value(number, i32)), dtype)
            unit.ir.store(value, unit.host(value.type, number), align=value.type.width // 8)
        unit.fine()

    unit.by_format(unit.surface, store)


def _formatted(unit: _Access, value: Bits, dtype: str) -> Any:
    bits = int(dtype[-2:].strip("t"))
    if bits == 32:
        return value.value
    if dtype == "float16":
        half = unit.ir.fptrunc(unit.ir.bitcast(value.value, ir.FloatType()), ir.HalfType())
        return unit.ir.bitcast(half, ir.IntType(16))
    if dtype[0] == "u":
        return value.min((1 << bits) - 1).trunc(bits).value
    return value.clamp(bits, True).trunc(bits).value


def _reduce(unit: _Access) -> None:
    """One atomic operation of the host; of what is formatted the surface's type says whether it is signed."""
    op, _, signed = unit.what.partition(":")
    kind = ir.IntType(unit.bits)
    place, value = unit.host(kind), unit.value(0, kind)
    if op not in ("min", "max"):
        unit.ir.atomic_rmw(op, place, value, "seq_cst")
        unit.fine()
        return

    def change(sign: bool) -> Any:
        return unit.ir.atomic_rmw(op if sign else f"u{op}", place, value, "seq_cst")

    if unit.formatted:
        number = unit.field(unit.surface, Header.FORMAT).divide(3, False)
        negative = (number & 1).eq(1) & number.lt(TYPES.index("float16"))
        unit.either(negative, lambda: change(True), lambda: change(False))
    else:
        change(signed == "s")
    unit.fine()


@builds(SurfaceUnit)
def surface_unit(module: ir.Module, name: str, key: SurfaceUnit) -> None:
    unit = _Access(module, name, key)
    if unit.what == "load":
        _load(unit)
    elif unit.what == "store":
        (_store_formatted if unit.formatted else _store)(unit)
    else:
        _reduce(unit)
