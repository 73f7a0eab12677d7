"""Labels: for the branches that no block spells.

``top = label()`` stands where it is written; ``ptx.bra`` goes there. A branch back makes a loop of what lies between,
so rule R2 holds for it as it does for a ``with loop():``.
"""

from __future__ import annotations

from typing import Any

from ... import ir
from ...errors import PtxTypeError, StructureError
from ..builder import Region, Trace, current
from ..errors import described, located
from ..introspection.call_sites import user_frame
from ..rules import lost_update
from ..rules.snapshots import snapshot

__all__ = ["label", "table_of", "target_of"]


class label:
    """A place to branch to with ``ptx.bra``: ``top = label()`` stands here, ``label("done")`` too, under that name.

    For a branch forward either name it, ``ptx.bra("done", pred=p)`` and later ``label("done")``, or make it first and
    place it later: ``done = label(here=False)``, ``ptx.bra(done, pred=p)``, ``done.here()``.

    >>> import numpy as np
    >>> from ptxdsl import Ptr, label, ptx, ptx_kernel, reg, u32, use
    >>> @ptx_kernel
    ... def logarithm(n: u32, out: Ptr[u32]):
    ...     v, steps = reg(u32, n), reg(u32, 0)
    ...     top = label()
    ...     v >>= 1
    ...     ptx.bra("done", pred=v == 0)
    ...     steps += 1
    ...     ptx.bra(top)
    ...     label("done")
    ...     out[0] = steps
    >>> out = np.zeros(1, np.uint32)
    >>> with use("emulator"):
    ...     logarithm[1, 1](1000, out)
    >>> int(out[0])
    9
    """

    def __init__(self, name: str | None = None, *, here: bool = True) -> None:
        self.trace = current()
        self.loc = self.trace.location()
        if name is not None and (not isinstance(name, str) or not name.isidentifier() or not name.isascii()):
            hint = '`label("done")`: letters, digits and `_`'
            raise located(StructureError, f"{name!r} is no name for a label", hint)
        self.name = name or self.trace.fresh_label(f"label_{self.loc.line}")
        self.region: Region | None = None
        if here:
            self.here()

    def here(self) -> None:
        """Place the label here."""
        trace = current()
        if trace is not self.trace:
            raise located(StructureError, f"label `{self.name}` belongs to another kernel", "make it in this kernel")
        earlier = trace.labels.get(self.name)
        if earlier is not None:
            raise located(
                StructureError, f"label `{self.name}` already stands at line {earlier.loc.line}",
                "a label that a helper or an unrolled loop places more than once has no name: `top = label()`",
            )
        trace.labels[self.name] = self
        trace.needs_verification = True
        trace.place_label(self.name)
        trace.forget_addresses()
        self.region = Region("label", self.loc, trace.region, trace, trace, len(trace.body))
        self.region.before = snapshot(trace, user_frame(2))

    def __repr__(self) -> str:
        return f"<label {self.name}>"


def target_of(trace: Trace, target: Any) -> ir.LabelRef:
    """The label that ``ptx.bra`` names; rule R6 checks at the end that it was placed."""
    if isinstance(target, label):
        if target.trace is not trace:
            raise located(StructureError, f"label `{target.name}` belongs to another kernel", "make it in this kernel")
        name = target.name
    elif isinstance(target, str):
        name = target
    else:
        raise located(
            PtxTypeError, f"a branch to {described(target)}",
            '`top = label()` and `ptx.bra(top)`, or `ptx.bra("done")` and `label("done")`',
        )
    trace.needs_verification = True
    placed = trace.labels.get(name)
    if placed is None:
        trace.branches.setdefault(name, trace.location())
    elif placed.region is not None:
        lost_update.compare(placed.region.before, placed.region)
    return ir.LabelRef(name)


def table_of(trace: Trace, targets: Any) -> ir.Symbol:
    """The ``.branchtargets`` that ``ptx.brx.idx(i, [a, b, c])`` names."""
    if not isinstance(targets, (list, tuple)) or not targets:
        raise located(PtxTypeError, f"a list of labels, not {described(targets)}", "`ptx.brx.idx(i, [first, second])`")
    name = trace.fresh_label(f"targets_{trace.location().line}")
    trace.tables[name] = tuple(target_of(trace, target).label for target in targets)
    return ir.Symbol(name)
