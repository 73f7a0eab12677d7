"""The states of decoding: the online softmax of a warp's products, and the states that blocks leave for each other."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from ... import ScalarType, f32, maximum, mma, ptx, reg, warp, when

from ..online import finite

__all__ = ["KEYS", "ROWS", "Partials", "State"]

ROWS, KEYS = 16, 16
"""Query heads of a product, and the keys that a warp takes at a time."""


class State:
    """The online softmax of a warp: of its rows a thread has a part of one or two."""

    def __init__(self, dtype: ScalarType, dim: int, halves: int, factor: Any) -> None:
        self.dtype, self.factor, self.halves = dtype, factor, range(halves)
        self.top = [reg(f32, -inf) for _ in self.halves]
        self.total = [reg(f32, 0.0) for _ in self.halves]
        self.sums = mma.zeros(ROWS, dim)

    def reset(self) -> None:
        for half in self.halves:
            self.top[half].set(-inf)
            self.total[half].set(0.0)
        self.sums.fill(0.0)

    def pairs(self, registers: list[Any]) -> list[tuple[int, int, Any, Any]]:
        """Half, first column but for the lane's, and the two registers, of all that is used of an accumulator."""
        return [
            (half, i // 4 * 8, registers[i + 2 * half], registers[i + 2 * half + 1])
            for i in range(0, len(registers), 4) for half in self.halves
        ]

    def rescale(self, by: list[Any]) -> None:
        for half, _, *pair in self.pairs(self.sums.registers):
            for register in pair:
                register.set(register * by[half])

    def scale(self, scores: Any) -> None:
        """Products become scores; before a mask, which may lie on any of them."""
        for _, _, *pair in self.pairs(scores.registers):
            for register in pair:
                register.set(register * self.factor)

    def weigh(self, scores: Any) -> Any:
        """The weights of the scores as the left factor of their product with values; the sums go down to them."""
        pairs = self.pairs(scores.registers)
        raised, tops = None, []
        for half in self.halves:
            top = self.top[half].copy()
            for own, _, left, right in pairs:
                if own == half:
                    top = maximum(top, maximum(left, right))
            tops.append(warp.reduce_max(top, 4))
            grew = tops[half] > self.top[half]
            raised = grew if raised is None else raised | grew
        bases = [finite(top) for top in tops]
        with when(ptx.vote.sync.any.pred(raised, warp.MASK)):
            shrink = [ptx.ex2.approx.ftz.f32(self.top[half] - bases[half]) for half in self.halves]
            for half in self.halves:
                self.total[half].set(self.total[half] * shrink[half])
                self.top[half].set(tops[half])
            self.rescale(shrink)
        for half, _, *pair in pairs:
            for register in pair:
                register.set(ptx.ex2.approx.ftz.f32(register - bases[half]))
        for half in self.halves:
            for own, _, left, right in pairs:
                if own == half:
                    self.total[half].set(self.total[half] + (left + right))
        packed = {
            (half, column): ptx[f"cvt.rn.{self.dtype}x2.f32"](right, left) for half, column, left, right in pairs
        }
        nothing = None if len(self.halves) == 2 else ptx.mov.b32(0)
        blocks = {(0, 0): [packed.get((half, column), nothing) for column in (0, 8) for half in range(2)]}
        return mma.Fragment("a", self.dtype, (ROWS, KEYS), blocks)

    def add(self, top: list[Any], total: list[Any], sums: list[tuple[Any, Any]]) -> None:
        """Merge another state: ``sums`` are those of ``pairs``."""
        shrink, grow = [], []
        for half in self.halves:
            both = maximum(self.top[half], top[half])
            base = finite(both)
            shrink.append(ptx.ex2.approx.ftz.f32(self.top[half] - base))
            grow.append(ptx.ex2.approx.ftz.f32(top[half] - base))
            self.top[half].set(both)
            self.total[half].set(ptx.fma.rn.f32(self.total[half], shrink[half], total[half] * grow[half]))
        for (half, _, *own), others in zip(self.pairs(self.sums.registers), sums):
            for register, other in zip(own, others):
                register.set(ptx.fma.rn.f32(register, shrink[half], other * grow[half]))


class Partials(NamedTuple):
    """The states of pieces in global memory: ``sums`` are 16 x dim of each.

    ``states`` are the greatest score and the total of each row.
    """

    sums: Any
    states: Any
    dim: int

    @classmethod
    def behind(cls, sums: Any, dim: int) -> Partials:
        """The states lie behind the sums of all blocks."""
        return cls(sums, sums + ptx.mul.wide.u32(ptx.nctaid.x, 2 * ROWS * dim), dim)

    def of(self, part: Any) -> tuple[Any, Any]:
        return self.sums + ptx.mul.wide.u32(part, ROWS * self.dim), self.states + ptx.mul.wide.u32(part, 2 * ROWS)
