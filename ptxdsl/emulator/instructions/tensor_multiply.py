"""The product of tcgen05.mma as a function of its operands: what its code depends on beside a plan."""

from __future__ import annotations

from .micro_op import Routine

__all__ = ["TensorMultiply"]


class TensorMultiply(Routine):
    """``multiply(request, plan)``: the product of a :class:`.ProductRequest`, if its descriptors are right.

    ``held``: A lies in tensor memory; ``pair``: it is one of two blocks; ``weights``: ``.ws``; ``masked``: some lanes
    of D may not be written; ``table``: B are indices into one.
    """

    held: bool
    sparse: bool
    scaled: bool
    pair: bool
    weights: bool
    masked: bool
    table: bool
