"""The product of tcgen05.mma as a function of its operands: what its code depends on beside a plan."""

from __future__ import annotations

from ..micro_op import Routine

__all__ = ["TensorMultiply"]


class TensorMultiply(Routine):
    """``multiply(request, plan)``: the product of a :class:`.ProductRequest`, if its descriptors are right.

    ``held``: A lies in tensor memory; ``table``: B are indices into one. All else is asked as it runs, so that few of
    these are compiled.
    """

    held: bool
    sparse: bool
    scaled: bool
    table: bool
