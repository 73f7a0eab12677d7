"""What helpers need of the launch, which no trace knows: the number of threads, whether all blocks run at once, and the
boxes of tensor maps.

A reduction over a whole warp is wrong where the block's last warp has fewer lanes, and one over ``threads=128`` in a
block of 64. Tracing notes each such need with its line, and a launch of another block is refused on either backend.

Of threads only what all of them reach is noted: a helper under a `when`, in a `ptx_func`, behind a `ptx.ret` or a
branch of the user's own may be for some warps only, so there nothing can be told before the kernel runs, and the
emulator tells it.
A tensor map has one box, so every copy of a tile by it says which.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from ..errors import Loc
from .builder import Trace, current

__all__ = [
    "BlockNeed", "BoxNeed", "for_some", "may_miss", "needs_block", "needs_box",
    "needs_cooperation", "needs_flat_block",
]


class BlockNeed(NamedTuple):
    """What ``helper`` needs: so many ``threads``, a ``multiple`` of so many, at ``least`` so many, or one dimension."""

    helper: str
    loc: Loc
    threads: int | None
    multiple: int
    least: int
    hint: str
    flat: bool = False
    cooperative: bool = False

    @property
    def wanted(self) -> str:
        """The blocks that it is right for, in words."""
        if self.cooperative:
            return "cooperative launches"
        if self.flat:
            return "blocks of one dimension"
        if self.threads is not None:
            return f"blocks of {self.threads} threads"
        if self.least:
            return f"blocks of at least {self.least} threads"
        return f"blocks of a multiple of {self.multiple} threads"

    def met(self, threads: int, block: tuple[int, ...]) -> bool:
        """Whether a block of so many threads and of this shape will do."""
        if self.flat:
            return threads == block[0]
        exact = self.threads is None or threads == self.threads
        return exact and threads % self.multiple == 0 and threads >= self.least


class BoxNeed(NamedTuple):
    """What a copy of a tile by ``helper`` needs of a parameter's map: rows and columns, bits, bytes of a swizzle."""

    parameter: str
    helper: str
    loc: Loc
    box: tuple[int, int]
    bits: int
    swizzle: int

    @property
    def wanted(self) -> str:
        """The maps that it is right for, in words."""
        swizzled = f"swizzle {self.swizzle}B" if self.swizzle else "no swizzle"
        return f"elements of {self.bits} bits, boxes of {self.box}, {swizzled}"

    def met(self, box: tuple[int, ...], bits: int, swizzle: str) -> bool:
        """Whether a map of boxes of these extents, the innermost first, will do: those behind it are its rows."""
        rows, columns = self.box
        name = f"{self.swizzle}B" if self.swizzle else "none"
        return (columns, rows, self.bits, name) == (box[0], prod(box[1:]), bits, swizzle)


def needs_box(parameter: str, helper: str, box: tuple[int, int], bits: int, swizzle: int) -> None:
    """Note which map a copy of a tile needs, where it is called."""
    trace = current()
    need = BoxNeed(parameter, helper, trace.location(2), box, bits, swizzle)
    if need not in trace.box_needs:
        trace.box_needs.append(need)


def needs_block(helper: str, hint: str, *, threads: int | None = None, multiple: int = 1, least: int = 0) -> None:
    """Note what a helper needs where it is called; a ``hint`` says what else can be done."""
    trace = current()
    if not for_some(trace):
        trace.block_needs.append(BlockNeed(helper, trace.location(2), threads, multiple, least, hint))


def needs_flat_block(helper: str) -> None:
    """Note that a helper numbers the threads by ``%tid.x`` alone; also where only some threads come."""
    trace = current()
    hint = "launch as many threads along x alone"
    trace.block_needs.append(BlockNeed(helper, trace.location(2), None, 1, 0, hint, True))


def needs_cooperation(helper: str) -> None:
    """Note that all blocks of the grid have to run at once."""
    trace = current()
    hint = "`.configure(grid, block, cooperative=True)`"
    trace.block_needs.append(BlockNeed(helper, trace.location(2), None, 1, 0, hint, cooperative=True))


def for_some(trace: Trace) -> bool:
    """Whether perhaps only some threads of the block come here."""
    if trace.called or trace.labels or any(form.effects.ends for form in trace.forms):
        return True
    return any(region.kind not in ("kernel", "loop") for region in trace.regions)


def may_miss(trace: Trace) -> bool:
    """Whether some threads may never come here, or leave a loop around it before the others do."""
    return for_some(trace) or len(trace.regions) > 1
