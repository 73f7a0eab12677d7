"""Which records a function of a whole kernel is made of, and those that there are only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ...isa import lookup
from .. import semantics
from ..machine.layout import LANES
from ..codegen.library import Shape
from ..codegen import atomics as atomic, control, data, memory, epochs, warp, shadow_checks
from ..codegen.handler import Handler, i64

__all__ = ["ALONE", "FUSED", "LASTING", "SURE", "PartsAccess", "SharedAccess"]

SURE = (
    "data", "parts", "param", "isspace", "fence", "branch", "jump", "barrier", "epoch_begin", "epoch_arrive",
    "epoch_barrier",
)
"""Records that are never left for."""
LASTING = ("store", "atomic", "fence")
"""Records that must not be repeated."""


def _seldom(h: Handler, shape: Shape) -> None:
    """Go on where no lane is concerned."""
    mask = data.guard_mask(h, shape[1], True)
    h.branch_unless(h.ir.icmp_unsigned("==", mask, h.i32(0)), h.bail)  # type: ignore[attr-defined]


def _of_module(emit: Callable[[Any, str, Shape], None]) -> Callable[[Handler, Shape], None]:
    return lambda h, shape: emit(h, "", shape)


class SharedAccess(memory.Access):
    """An address whose entry is looked at once for all accesses of the block."""

    def limits(self, extent: Any) -> tuple[Any, Any, Any]:
        h: Any = self.h
        if h.spot.access >= 0:
            return super().limits(extent)
        return h.limits(h.spot.values[1], self.write, int(extent.constant))


class PartsAccess(SharedAccess):
    """An address with a number for each part, and neighbours within it."""

    def __init__(self, h: Handler, kind: str, pattern: tuple[str, int] | None, nbytes: int, write: bool) -> None:
        super().__init__(h, kind, pattern, nbytes, write)
        self.extent: Any = h.field()

    def check_scalar(self) -> tuple[Any, Any]:
        h: Any = self.h
        assert self.pattern is not None
        low, bound, delta = self.limits(h.i64(int(self.extent.constant)))
        good: Any = ir.Constant(ir.IntType(1), 1)
        hosts = []
        for part in range(0, LANES, self.pattern[1]):
            h.part = part
            address = self.base()
            good = h.ir.and_(good, h.ir.icmp_unsigned("<", h.ir.sub(address, low), bound))
            if self.nbytes > 1:
                odd = h.ir.and_(address, h.i64(self.nbytes - 1))
                good = h.ir.and_(good, h.ir.icmp_unsigned("==", odd, h.i64(0)))
            hosts.append(h.ir.add(address, delta))
        h.part = 0
        self.segments = [h.ir.sub(host, hosts[0]) for host in hosts[1:]]
        return good, hosts[0]


def _by_part(h: Any, shape: Shape) -> None:
    """("parts", mnemonic, index among its forms, classes, codes): the result in the first lane of each part."""
    _, mnemonic, index, kinds, _ = shape
    form = lookup(mnemonic)[index]
    slot: Any = None
    read: list[tuple[Any, Any, Any]] = []
    for spec, kind in zip(form.operands, kinds):
        if spec.written:
            slot = h.slot()
        elif kind[0] == "#":
            read.append((int(kind[1:]), None, None))
        else:
            read.append((_first_lane(h, kind), kind, spec))
    results = []
    for part in range(0, LANES, h.plan.parts[slot.offset].lanes):
        h.part = part
        values = [data.cut(h, get(), spec) if kind else get for get, kind, spec in read]
        result = semantics.lookup(form)(h.numbers(1), form, *values)
        signed = form.operands[0].type is not None and form.operands[0].type.is_signed
        results.append((h.part, data.fit(h, result, int(kinds[0][1:]), signed)))
    for part, result in results:
        h.part = part
        h.store(result, slot, 0)
    h.part = 0
    h.next()


def _first_lane(h: Any, kind: str) -> Callable[[], Any]:
    """What gives an operand's number in the first lane of the current part."""
    if kind[0] in "IBUPN":
        value = data.source(h, kind, 1)
        return lambda: value
    element = ir.IntType(int(kind[1:]))
    slot = h.slot()
    if kind[0] == "X":
        return lambda: h.load(slot, 0, element)
    number, known = h.load(slot, 0, element), h.plan.vectors[int(h.field("q").constant)]
    return lambda: h.ir.add(number, ir.Constant(element, known[h.part] & (1 << element.width) - 1))


def _bounded_parts(h: Any, shape: Shape) -> None:
    """("wrap_parts", class, signed, codes): as wrap, for each part."""
    _, kind, signed, _ = shape
    first = _first_lane(h, kind)
    least, most = h.field("q"), h.field("q")
    good: Any = ir.Constant(ir.IntType(1), 1)
    for part in range(0, LANES, h.plan.width):
        h.part = part
        value = first()
        wide = (h.ir.sext if signed else h.ir.zext)(value, i64)
        bits = value.type.width
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        good = h.ir.and_(good, h.ir.icmp_signed(">=", h.ir.add(wide, least), h.i64(low)))
        good = h.ir.and_(good, h.ir.icmp_signed("<=", h.ir.add(wide, most), h.i64(high)))
    h.part = 0
    h.branch_unless(good, h.bail)
    h.next()


FUSED: dict[str, Callable[[Any, Shape], None]] = {
    "data": data.compute, "param": memory.fetch, "wrap": control.bounded,
    "load": lambda h, shape: memory.load_with(h, shape, h.function),
    "store": lambda h, shape: memory.store_with(h, shape, h.function),
    "atomic": lambda h, shape: atomic.atomic_with(h, shape, h.function),
    "shadow_check": lambda h, shape: shadow_checks.check_with(h, shape, h.function),
    "epoch_begin": _of_module(epochs.begin), "epoch_arrive": _of_module(epochs.arrive),
    "epoch_barrier": _of_module(epochs.barrier),
    "parts": _by_part, "wrap_parts": _bounded_parts,
    "isspace": _of_module(data.isspace), "fence": lambda h, _: h.ir.fence("seq_cst"),
    **{kind: _of_module(getattr(warp, name)) for kind, name in (
        ("meet", "meet"), ("shuffle", "shuffle"), ("vote", "vote"), ("activemask", "activemask"), ("elect", "elect"),
        ("match", "match"), ("redux", "redux"),
    )},
}
"""What can be compiled in place."""
ALONE: dict[str, Callable[[Any, Shape], None]] = {"service": _seldom, "trap": _seldom, "exit": _seldom}
"""What is left for, if it concerns anybody."""
