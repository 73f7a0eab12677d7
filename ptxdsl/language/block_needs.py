"""What helpers of warps and blocks need of the launch: the number of threads, which no trace knows.

A reduction over a whole warp is wrong where the block's last warp has fewer lanes, and one over ``threads=128`` in a
block of 64. Tracing notes each such need with its line, and a launch of another block is refused on either backend.

Only what all threads reach is noted: a helper under a `when`, in a `ptx_func`, behind a `ptx.ret` or a branch of the
user's own may be for some warps only, so there nothing can be told before the kernel runs, and the emulator tells it.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import Loc
from .builder import Trace, current

__all__ = ["BlockNeed", "for_some", "may_miss", "needs_block"]


class BlockNeed(NamedTuple):
    """What ``helper`` needs: exactly so many ``threads``, a ``multiple`` of so many, or at ``least`` so many."""

    helper: str
    loc: Loc
    threads: int | None
    multiple: int
    least: int
    hint: str

    @property
    def wanted(self) -> str:
        """The blocks that it is right for, in words."""
        if self.threads is not None:
            return f"blocks of {self.threads} threads"
        if self.least:
            return f"blocks of at least {self.least} threads"
        return f"blocks of a multiple of {self.multiple} threads"

    def met(self, threads: int) -> bool:
        """Whether a block of so many threads will do."""
        exact = self.threads is None or threads == self.threads
        return exact and threads % self.multiple == 0 and threads >= self.least


def needs_block(helper: str, hint: str, *, threads: int | None = None, multiple: int = 1, least: int = 0) -> None:
    """Note what a helper needs where it is called; a ``hint`` says what else can be done."""
    trace = current()
    if not for_some(trace):
        trace.block_needs.append(BlockNeed(helper, trace.location(2), threads, multiple, least, hint))


def for_some(trace: Trace) -> bool:
    """Whether perhaps only some threads of the block come here."""
    if trace.called or trace.labels or any(form.effects.ends for form in trace.forms):
        return True
    return any(region.kind not in ("kernel", "loop") for region in trace.regions)


def may_miss(trace: Trace) -> bool:
    """Whether some threads may never come here, or leave a loop around it before the others do."""
    return for_some(trace) or len(trace.regions) > 1
