"""Blocks: what all of them share, and ``with when(p)`` with its ``otherwise()``.

Each statement leaves the few labels and branches behind that a careful author would write by hand: a ``when`` is one
branch around its body. Labels carry the line they come from (``$endif_27``).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import ir
from ...errors import PtxTypeError, StructureError, with_article
from ...types import pred
from ..builder import Region, Trace, current, fatal, thread
from ..errors import described, located, named
from ..introspection.call_sites import place_of, user_frame
from ..rules import early_exit, lost_update, structure
from ..rules.snapshots import snapshot
from ..rules.structure import BlockStatement
from ..values.moves import known_form
from ..values.value import Value

__all__ = ["Block", "branch", "numbered", "otherwise", "predicate_of", "when"]

_KNOWN = "what is known while tracing is a plain Python `if`; `when` takes a predicate, such as `i < n`"


class Block:
    """What `when`, `otherwise` and `loop` share: one region of the trace, entered once by a `with`."""

    kind: ClassVar[str]
    usage: ClassVar[str]

    def __init__(self) -> None:
        self.trace = trace = thread.trace or current()
        self.loc = trace.location(2)
        self.region: Region | None = None
        self.closing = structure.Closing()
        trace.not_entered[id(self)] = self

    def open(self) -> Region:
        """Open the region, with the line of the `with`."""
        structure.check_entered_once(self)
        trace = self.trace
        trace.not_entered.pop(id(self), None)
        frame = user_frame(3, trace.code)
        early_exit.check_with(trace, frame)
        self.loc = place_of(frame)
        self.region = region = trace.enter(self.kind, self.loc)
        region.statement = self
        region.before = snapshot(trace, frame)
        return region

    def close(self) -> None:
        """Append what ends the block."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        region = self.region
        assert region is not None
        if self.trace.over:
            return  # a generator that nobody has run to its end: `structure.finish` has told
        try:
            if kind is None:
                early_exit.check_closed(region)
                lost_update.compare(region.before, region)
                self.closing = structure.closing(region)
                self.close()
            else:
                fatal(StructureError(
                    f"the `{self.kind}` of this line was left by an exception, {kind.__name__}, and has no end",
                    loc=region.loc, hint="catch it inside the block, or run the generator in it to its end",
                ))
        finally:
            region.before, region.statement = [], None
            self.trace.leave(region)
            self.trace.forget_addresses()
        if kind is None:
            self.trace.region.last = (self, len(self.trace.body))

    def __bool__(self) -> bool:
        return structure.misused(self, f"if {self.kind}(...)")

    def __iter__(self) -> Any:
        structure.misused(self, f"for ... in {self.kind}(...)")


class when(Block, metaclass=BlockStatement):
    """A block that a thread executes where the predicate ``p`` holds: ``with when(i < n):``.

    An ``otherwise()`` may follow directly. What the block computes ends with it; declare a ``reg`` before it to carry
    a value out, or use ``select``. One branch around the block is emitted; ``when(~p)`` costs no ``not``.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, otherwise, ptx, ptx_kernel, s32, use, when
    >>> @ptx_kernel
    ... def sign(x: Ptr[s32]):
    ...     i = ptx.tid.x
    ...     with when(x[i] < 0):
    ...         x[i] = -1
    ...     with otherwise():
    ...         x[i] = 1
    >>> x = np.array([5, -7], np.int32)
    >>> with use("emulator"):
    ...     sign[1, 2](x)
    >>> x.tolist()
    [1, -1]
    """

    kind = "when"
    usage = "with when(p):"

    def __init__(self, p: Any) -> None:
        super().__init__()
        predicate_of(self.trace, p, "when", _KNOWN)
        self.p = p
        self.labels = ""

    def __enter__(self) -> None:
        holds = predicate_of(self.trace, self.p, "when", _KNOWN)
        skip = holds.predicate if isinstance(holds, ir.Not) else ir.Not(holds)
        region = self.open()
        self.labels = numbered(self.trace, "endif", self.loc.line)
        self.branch = branch(self.trace, f"$endif_{self.labels}", skip, self)
        region.start = len(self.trace.body)

    def close(self) -> None:
        self.trace.place_label(f"$endif_{self.labels}")


class otherwise(Block, metaclass=BlockStatement):
    """The block of the threads that skipped the ``when(p)`` directly before it: ``with otherwise():``."""

    kind = "otherwise"
    usage = "with otherwise():"

    def __enter__(self) -> None:
        first = structure.preceding_when(current())
        trace = self.trace
        trace.body.pop()
        self.open()
        branch(trace, f"$endif_{first.labels}", None, self)
        trace.place_label(f"$else_{first.labels}")
        first.branch.operands = (ir.LabelRef(f"$else_{first.labels}"),)
        self.labels = first.labels
        trace.forget_addresses()

    def close(self) -> None:
        self.trace.place_label(f"$endif_{self.labels}")


# ---------------------------------------------------------------------------------------------------------------------


def predicate_of(trace: Trace, p: Any, name: str, hint: str) -> ir.Register | ir.Not:
    """The predicate that a statement branches on; a PtxTypeError for anything else."""
    if not isinstance(p, Value):
        raise located(PtxTypeError, f"`{name}` of {described(p)}", hint)
    if p.type is not pred:
        hint = f"`{name}({named(p, 'v')} != 0)`"
        raise located(PtxTypeError, f"`{name}` of {with_article(p.type)}, which is no predicate", hint)
    return p.guard(trace)


def numbered(trace: Trace, stem: str, line: int) -> str:
    """What distinguishes the labels of this block from others: the line, and a number where the line has several."""
    return trace.fresh_label(f"{stem}_{line}")[len(stem) + 2 :]


def branch(
    trace: Trace, target: str, predicate: ir.Register | ir.Not | None, block: Block | None = None
) -> ir.Instruction:
    """Append a branch to a label."""
    return trace.emit(known_form("bra"), (ir.LabelRef(target),), predicate, None if block is None else block.loc)
