"""Some lanes of a warp one after the other, where what they access lies so: the elements that a compaction keeps."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ....machine_code.host import packs_bytes
from ...machine.layout import LANES
from ..handler import Handler, byte, i32, i64, lanes_of, pointer

__all__ = ["GROUP", "fetch", "packed_lanes"]

GROUP = 8
"""Lanes that are looked at together."""
LINE = 64
"""Bytes of a cache line."""
_EACH_BYTE = 0x0101010101010101
"""One in each byte of eight."""


def packed_lanes(h: Handler, mask: Any) -> Any:
    """The numbers of the lanes of a mask, one after the other, <32 x i64>; anything behind them.

    Few CPUs pack vectors well: so a table has the order of each group, and each is stored where the last one ends.
    """
    if packs_bytes():
        numbers = ir.Constant(lanes_of(byte), list(range(LANES)))
        rest = ir.Constant(lanes_of(byte), None)
        found = h.call("llvm.x86.avx512.mask.compress.v32i8", lanes_of(byte), numbers, rest, h.bools(mask))
        return h.ir.zext(found, lanes_of(i64))
    room, whole = h.alloca(ir.ArrayType(byte, LANES + GROUP), 64), lanes_of(byte).as_pointer()
    h.ir.store(ir.Constant(lanes_of(byte), None), h.ir.bitcast(room, whole), align=64)
    place, table = h.ir.ptrtoint(room, i64), h.ir.ptrtoint(_orders(h.function.module), i64)
    for first in range(0, LANES, GROUP):
        some = h.ir.and_(h.ir.lshr(mask, h.i32(first)), h.i32((1 << GROUP) - 1))
        entry = h.ir.add(table, h.ir.shl(h.ir.zext(some, i64), h.i64(3)))
        order = h.ir.load(h.ir.inttoptr(entry, i64.as_pointer()), align=8)
        h.ir.store(h.ir.add(order, h.i64(first * _EACH_BYTE)), h.ir.inttoptr(place, i64.as_pointer()), align=1)
        place = h.ir.add(place, h.ir.zext(h.call("llvm.ctpop.i32", i32, some), i64))
    return h.ir.zext(h.ir.load(h.ir.bitcast(room, whole), align=64), lanes_of(i64))


def _orders(module: ir.Module) -> ir.GlobalVariable:
    """For each mask of a group the numbers of its lanes, the first in the lowest byte."""
    found: ir.GlobalVariable | None = module.globals.get("packed_orders")
    if found is None:
        masks = [[lane for lane in range(GROUP) if mask >> lane & 1] for mask in range(1 << GROUP)]
        numbers = [sum(lane << 8 * rank for rank, lane in enumerate(lanes)) for lanes in masks]
        kind = ir.ArrayType(i64, len(numbers))
        found = ir.GlobalVariable(module, kind, "packed_orders")
        found.initializer, found.global_constant, found.linkage = ir.Constant(kind, numbers), True, "internal"
    return found


def fetch(h: Handler, host: Any, lines: int) -> None:
    """Have the CPU fetch what is about to be stored: a store that waits for memory holds up those behind it."""
    for line in range(lines):
        place = h.ir.inttoptr(h.ir.add(host, h.i64(line * LINE)), pointer)
        h.call("llvm.prefetch.p0", ir.VoidType(), place, h.i32(1), h.i32(3), h.i32(1))
