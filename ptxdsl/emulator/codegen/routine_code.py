"""Functions that micro-ops call, under construction: of pointers and 64-bit numbers, with loops and vectors of 16."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..instructions.tensor_cores.matrix_tiles import GROUP
from .handler import byte, i32, i64, pointer

__all__ = ["RoutineCode"]


class RoutineCode:
    """A function of pointers and numbers under construction."""

    def __init__(self, module: ir.Module, name: str, pointers: int, numbers: int) -> None:
        kind = ir.FunctionType(ir.VoidType(), [pointer] * pointers + [i64] * numbers)
        self.function = ir.Function(module, kind, name)
        self.function.attributes.add("nounwind")
        self.ir = ir.IRBuilder(self.function.append_basic_block())

    def at(self, base: Any, offset: Any) -> Any:
        offset = i64(offset) if isinstance(offset, int) else offset
        return self.ir.gep(base, [offset], source_etype=byte)

    def load(self, place: Any, kind: ir.Type, align: int = 4) -> Any:
        return self.ir.load(self.ir.bitcast(place, kind.as_pointer()), align=align)

    def store(self, value: Any, place: Any, align: int = 4) -> None:
        self.ir.store(value, self.ir.bitcast(place, value.type.as_pointer()), align=align)

    def loop(self, count: Any, step: int, carried: list[Any], body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
        """Run ``body(number, values)`` for 0, step, ... below ``count``, once at least; the last values."""
        head, done = (self.function.append_basic_block(name) for name in ("head", "done"))
        before = self.ir.block
        self.ir.branch(head)
        self.ir.position_at_end(head)
        number, values = self.ir.phi(i64), [self.ir.phi(value.type) for value in carried]
        after = body(number, values)
        further = self.ir.add(number, i64(step))
        last = self.ir.block
        for phi, start, value in zip((number, *values), (i64(0), *carried), (further, *after)):
            phi.add_incoming(start, before)
            phi.add_incoming(value, last)
        self.ir.cbranch(self.ir.icmp_unsigned("<", further, count), head, done)
        self.ir.position_at_end(done)
        return after

    def splat(self, value: Any) -> Any:
        """A number in each of 16 elements."""
        first = self.ir.insert_element(ir.Constant(ir.VectorType(value.type, GROUP), None), value, i32(0))
        return self.shuffle(first, first, [0] * GROUP)

    def shuffle(self, left: Any, right: Any, mask: list[int]) -> Any:
        return self.ir.shuffle_vector(left, right, ir.Constant(ir.VectorType(i32, len(mask)), mask))
