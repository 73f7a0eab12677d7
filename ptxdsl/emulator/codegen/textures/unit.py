"""What the units of textures and surfaces have in common: a function over one lane of a request.

Handlers put the operands of all lanes into a request (:class:`.texture_pool.Request`) and call the unit for
each lane. So one unit serves every way in which an instruction's operands can lie in registers, and headers are free
to differ from lane to lane.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from llvmlite import ir

from ....launch.texture_description import TYPES
from ...machine.texture_pool import GEOMETRY_NUMBERS, HEADERS, Header, Level, Request
from ...semantics.lanes import Bits, Lanes, Real
from ...machine.status import Fault
from ..handler import byte, i1, i32, i64, pointer

__all__ = ["UNIT", "Unit", "axes", "doubles", "floats", "layered", "words"]

UNIT = ir.FunctionType(i32, [i64, pointer, i32])
words, floats, doubles = (ir.VectorType(kind, 4) for kind in (i32, ir.FloatType(), ir.DoubleType()))


def axes(geometry: str) -> int:
    """Coordinates within a layer or face."""
    return {"1": 1, "2": 2, "3": 3, "c": 2}[geometry.removeprefix("a")[0]]


def layered(geometry: str) -> bool:
    """Whether the first coordinate is the number of a layer."""
    return geometry.startswith("a")


class Unit:
    """A function under construction over (start of the pool, request, lane); it gives 0 or a Fault."""

    def __init__(self, module: ir.Module, name: str, kind: ir.FunctionType = UNIT) -> None:
        self.function = ir.Function(module, kind, name)
        self.function.attributes.add("nounwind")
        self.ir = ir.IRBuilder(self.function.append_basic_block())
        self.b = Lanes(self.ir, 1)
        if kind is UNIT:
            self.pool, self.request, lane = self.function.args
            self.lane = self.ir.zext(lane, i64)

    # Memory

    def at(self, base: Any, offset: Any) -> Any:
        """The address so many bytes further on."""
        if isinstance(offset, Bits):
            offset = offset.sext(64).value
        return self.ir.gep(base, [i64(offset) if isinstance(offset, int) else offset], source_etype=byte)

    def load(self, base: Any, offset: Any, kind: ir.Type, align: int | None = None) -> Any:
        place = self.ir.bitcast(self.at(base, offset), kind.as_pointer())
        size = getattr(kind, "count", 1) * getattr(getattr(kind, "element", kind), "width", 32) // 8
        return self.ir.load(place, align=align or max(1, min(8, size)))

    def store(self, value: Any, base: Any, offset: Any, align: int = 4) -> None:
        self.ir.store(value, self.ir.bitcast(self.at(base, offset), value.type.as_pointer()), align=align)

    def field(self, base: Any, offset: int, bits: int = 32) -> Bits:
        """A number of a header or of a level."""
        return self.b.wrap(self.load(base, offset, ir.IntType(bits), 4))

    def real_field(self, base: Any, offset: int) -> Real:
        """A f32 of a header, as f64."""
        return self.field(base, offset).reals().to(64)

    def given(self, offset: int, bits: int = 32) -> Bits:
        """This lane's number of the request."""
        place = self.at(self.request, self.ir.mul(self.lane, i64(bits // 8)))
        return self.b.wrap(self.load(place, offset, ir.IntType(bits), bits // 8))

    def coordinate(self, offset: int) -> Real:
        """This lane's f32, as f64."""
        return self.given(offset).reals().to(64)

    def answer(self, value: Any, offset: int, size: int) -> None:
        """Store a result of this lane."""
        self.store(value, self.at(self.request, self.ir.mul(self.lane, i64(size))), offset, size)

    # Control flow

    def named(self, name: str) -> ir.Block:
        return self.function.append_basic_block(name)

    def demand(self, condition: Bits, fault: int) -> None:
        """Go on where the condition holds, else give the fault."""
        on, bad = self.named("on"), self.named("bad")
        self.ir.cbranch(condition.value, on, bad)
        self.ir.position_at_end(bad)
        self.ir.ret(i32(fault))
        self.ir.position_at_end(on)

    def either(self, condition: Bits, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
        """What ``yes`` gives where the condition holds, else what ``no`` gives: one value, or a list of them."""
        one, other, after = self.named("yes"), self.named("no"), self.named("after")
        self.ir.cbranch(condition.value, one, other)
        ways = []
        for block, way in ((one, yes), (other, no)):
            self.ir.position_at_end(block)
            made = way()
            ways.append((made if isinstance(made, list) else [made], self.ir.block))
            self.ir.branch(after)
        self.ir.position_at_end(after)
        merged = []
        for values in zip(*(made for made, _ in ways)):
            raw = [value.value if isinstance(value, (Bits, Real)) else value for value in values]
            phi = self.ir.phi(raw[0].type)
            for value, (_, block) in zip(raw, ways):
                phi.add_incoming(value, block)
            like = values[0]
            merged.append(type(like)(self.b, phi, like.bits) if isinstance(like, (Bits, Real)) else phi)
        return merged if isinstance(made, list) else merged[0]

    # Headers

    def header(self, offset: int, *kinds: int, geometry: str = "") -> Any:
        """The header that this lane's handle stands for, if it is of such a kind and geometry; else a fault."""
        handle = self.given(offset, 64)
        distance = handle - Bits(self.b, self.pool, 64)
        inside = distance.lt(HEADERS * Header.nbytes) & (distance & (Header.nbytes - 1)).eq(0)
        self.demand(inside, Fault.HANDLE)
        header = self.ir.inttoptr(handle.value, pointer)
        known = self.field(header, Header.KIND)
        fits = known.eq(kinds[0])
        for kind in kinds[1:]:
            fits = fits | known.eq(kind)
        self.demand(fits, Fault.HANDLE)
        if geometry:
            self.demand(self.field(header, Header.GEOMETRY).eq(GEOMETRY_NUMBERS[geometry]), Fault.HANDLE)
        return header

    def extents(self, entry: Any, count: int) -> list[Bits]:
        """Width, height, depth of a level."""
        return [self.field(entry, Level.WIDTH + 4 * axis) for axis in range(count)]

    def layer(self, header: Any, geometry: str) -> Bits:
        """The layer that is asked for, the last one for those beyond."""
        if not layered(geometry):
            return self.b.bits(32, 0)
        return self.given(Request.LAYER).min(self.field(header, Header.LAYERS) - 1)

    def place(self, header: Any, entry: Any, layer: Bits | None, indices: list[Bits]) -> Any:
        """The address of a texel."""
        address = self.field(entry, Level.BASE, 64) + indices[0].zext(64) * self.field(header, Header.TEXEL).zext(64)
        if len(indices) > 1:
            address = address + indices[1].zext(64) * self.field(entry, Level.PITCH, 64)
        outer = indices[2] if len(indices) > 2 else layer
        if outer is not None:
            address = address + outer.zext(64) * self.field(entry, Level.SLICE, 64)
        return self.ir.inttoptr(address.value, pointer)

    def by_format(self, header: Any, emit: Callable[[str, int], None]) -> None:
        """The end, for each format that a header may have: ``emit(dtype, channels)``."""
        nowhere = self.named("nowhere")
        choice = self.ir.switch(self.field(header, Header.FORMAT).value, nowhere)
        for number, (dtype, log) in enumerate(product(TYPES, range(3))):
            block = self.named(f"{dtype}x{1 << log}")
            choice.add_case(i32(number), block)
            self.ir.position_at_end(block)
            emit(dtype, 1 << log)
        self.ir.position_at_end(nowhere)
        self.ir.unreachable()

    def true(self) -> Bits:
        return Bits(self.b, i1(1), 1)

    def fine(self) -> None:
        """The end: nothing was wrong."""
        self.ir.ret(i32(0))
