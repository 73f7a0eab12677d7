"""The micro-ops that block functions are made of, and those that only they have."""

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

__all__ = ["INLINE", "HoistedAccess", "RowAccess"]


def _exit_if_active(h: Handler, shape: Shape) -> None:
    """A side exit if a lane is active under the guard."""
    mask = data.guard_mask(h, shape[1], True)
    h.branch_unless(h.ir.icmp_unsigned("==", mask, h.i32(0)), h.side_exit)  # type: ignore[attr-defined]


def _of_module(emit: Callable[[Any, str, Shape], None]) -> Callable[[Handler, Shape], None]:
    return lambda h, shape: emit(h, "", shape)


class HoistedAccess(memory.Access):
    """An address whose buffer entry is loaded once for the block."""

    def limits(self, extent: Any) -> tuple[Any, Any, Any]:
        h: Any = self.h
        if h.planned.access >= 0:
            return super().limits(extent)
        return h.limits(h.planned.value("entry"), self.write, int(extent.constant))


class RowAccess(HoistedAccess):
    """A row-affine address, contiguous or the same within a row."""

    def __init__(self, h: Handler, kind: str, pattern: tuple[str, int] | None, nbytes: int, write: bool) -> None:
        super().__init__(h, kind, pattern, nbytes, write)
        self.extent: Any = h.field()

    def check_scalar(self) -> tuple[Any, Any]:
        h: Any = self.h
        assert self.pattern is not None
        low, bound, delta = self.limits(h.i64(int(self.extent.constant)))
        good: Any = ir.Constant(ir.IntType(1), 1)
        hosts = []
        for row in range(0, LANES, self.pattern[1]):
            h.row = row
            address = self.base()
            good = h.ir.and_(good, h.ir.icmp_unsigned("<", h.ir.sub(address, low), bound))
            if self.nbytes > 1:
                odd = h.ir.and_(address, h.i64(self.nbytes - 1))
                good = h.ir.and_(good, h.ir.icmp_unsigned("==", odd, h.i64(0)))
            hosts.append(h.ir.add(address, delta))
        h.row = 0
        self.segments = [h.ir.sub(host, hosts[0]) for host in hosts[1:]]
        return good, hosts[0]


def _by_row(h: Any, shape: Shape) -> None:
    """("parts", mnemonic, index among its forms, classes, codes): the result in the first lane of each row."""
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
    for row in range(0, LANES, h.plan.row_affine[slot.offset].lanes):
        h.row = row
        values = [data.cut(h, get(), spec) if kind else get for get, kind, spec in read]
        result = semantics.lookup(form)(h.numbers(1), form, *values)
        signed = form.operands[0].type is not None and form.operands[0].type.is_signed
        results.append((h.row, data.fit(h, result, int(kinds[0][1:]), signed)))
    for row, result in results:
        h.row = row
        h.store(result, slot, 0)
    h.row = 0
    h.next()


def _first_lane(h: Any, kind: str) -> Callable[[], Any]:
    """What gives an operand's number in the first lane of the current row."""
    if kind[0] in "IBUPN":
        value = data.source(h, kind, 1)
        return lambda: value
    element = ir.IntType(int(kind[1:]))
    slot = h.slot()
    if kind[0] == "X":
        return lambda: h.load(slot, 0, element)
    number, known = h.load(slot, 0, element), h.plan.lane_offsets[int(h.field("q").constant)]
    return lambda: h.ir.add(number, ir.Constant(element, known[h.row] & (1 << element.width) - 1))


def _bounded_rows(h: Any, shape: Shape) -> None:
    """("wrap_parts", class, signed, codes): as wrap, for each row."""
    _, kind, signed, _ = shape
    first = _first_lane(h, kind)
    least, most = h.field("q"), h.field("q")
    good: Any = ir.Constant(ir.IntType(1), 1)
    for row in range(0, LANES, h.plan.row_lanes):
        h.row = row
        value = first()
        wide = (h.ir.sext if signed else h.ir.zext)(value, i64)
        bits = value.type.width
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        good = h.ir.and_(good, h.ir.icmp_signed(">=", h.ir.add(wide, least), h.i64(low)))
        good = h.ir.and_(good, h.ir.icmp_signed("<=", h.ir.add(wide, most), h.i64(high)))
    h.row = 0
    h.branch_unless(good, h.side_exit)
    h.next()


INLINE: dict[str, Callable[[Any, Shape], None]] = {
    "data": data.compute, "param": memory.fetch, "wrap": control.bounded,
    "load": lambda h, shape: memory.load_with(h, shape, h.function),
    "store": lambda h, shape: memory.store_with(h, shape, h.function),
    "atomic": lambda h, shape: atomic.atomic_with(h, shape, h.function),
    "shadow_check": lambda h, shape: shadow_checks.check_with(h, shape, h.function),
    "epoch_begin": _of_module(epochs.begin), "epoch_arrive": _of_module(epochs.arrive),
    "epoch_barrier": _of_module(epochs.barrier),
    **dict.fromkeys(("service", "trap", "exit"), _exit_if_active),
    "parts": _by_row, "wrap_parts": _bounded_rows,
    "isspace": _of_module(data.isspace), "fence": lambda h, _: h.ir.fence("seq_cst"),
    **{kind: _of_module(getattr(warp, kind)) for kind in (
        "meet", "shuffle", "vote", "activemask", "elect", "match", "redux",
    )},
}
"""The emitters."""
