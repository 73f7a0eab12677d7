"""tcgen05.mma: products whose accumulators lie in tensor memory, each issued by one thread.

Which product it is says a number that the kernel computes, the instruction descriptor. So the micro-op asks for a plan
of it (:mod:`..machine.product_plan`), of which Python makes each once, and the rest is a function of plan and operands
(:class:`TensorMultiply`). It is made then or later, in order (:mod:`..machine.pending`).
"""

from __future__ import annotations

from ....ir import Address, Immediate, Instruction, Operand, Vector, elements
from ....isa.instruction_descriptors import KINDS, Variant
from ...machine.pending import FEW
from ..lowering import Lowering, lowers
from ..micro_op import MicroOp, Routine
from ..operand_classes import OperandClass
from ..operands import NOTHING, Field, raw
from .tensor_multiply import TensorMultiply

__all__ = ["PLAN", "MakeTensorProduct", "TensorProduct", "variant_of"]

PLAN = "%tensor.plan"
"""The slot of the plans that products leave."""


class TensorProduct(
    MicroOp, may_fault=True, repeatable=False, inlinable="its cost is the product's", reads_memory=True,
    writes_memory=True,
):
    """Makes, lane by lane, the products of a variant. Its record begins with the list of the plans that are made.

    ``places`` are the addresses in tensor memory of d, then those that there are of a, e, a table, and the scales of a
    and b; numbers that are added follow in the record. ``descriptors`` are those of shared memory. ``divided``: d is
    divided by 2 to this. ``keeps``: the plan of each lane goes to a slot.
    """

    variant: Variant
    shifted: bool
    divided: int
    places: tuple[OperandClass, ...]
    descriptors: tuple[OperandClass, ...]
    word: OperandClass
    enable: OperandClass
    lanes: tuple[OperandClass, ...]
    zeros: OperandClass
    guard: OperandClass
    defers: bool
    keeps: bool

    @property
    def multiply(self) -> TensorMultiply:
        variant = self.variant
        return TensorMultiply(variant.held, variant.sparse, variant.blocks > 0, variant.table)


class MakeTensorProduct(Routine):
    """Makes the product of the request in BYTES, by the plan at TO and the function at SOURCE.

    ``shifted``: A's rows are moved down by one behind it, in ``group`` blocks.
    """

    shifted: bool
    group: int


_BLOCKS = {"1X": 1, "2X": 2, "4X": 4, "block16": 4, "block32": 2}


def variant_of(statement: Instruction) -> Variant:
    """What a statement says of its product."""
    tokens = statement.form.tokens
    kind = next(token for token in tokens if token.startswith("kind::")).partition("::")[2]
    assert kind in KINDS
    blocks = 0
    if "block_scale" in tokens:
        said = next((_BLOCKS[word] for token in tokens if (word := token.partition("::")[2] or token) in _BLOCKS), 0)
        blocks = 1 if kind == "mxf8f6f4" else said or 2
    return Variant(
        kind, 2 if "cta_group::2" in tokens else 1, "sp" in tokens, "ws" in tokens,
        isinstance(statement.operand("a"), Address), blocks, "decompress::lut::b" in tokens,
    )


@lowers("tcgen05_mma")
def tensor_product(low: Lowering, statement: Instruction) -> None:
    variant = variant_of(statement)
    held = [each for name in ("d", "a", "e", "lut", "sa", "sb") if isinstance(each := statement.operand(name), Address)]
    places = [_place(low, statement, each) for each in held]
    descriptors = [
        low.read(statement, each, 64) for name in ("a", "b")
        if not isinstance(each := statement.operand(name), Address)
    ]
    word = low.read(statement, statement.operand("idesc"))
    enable = low.read(statement, statement.operand("enable"))
    lanes = [low.read(statement, each) for each in elements(statement.operand("lanes") or Vector(()))]
    zeros = low.read(statement, statement.operand("zero"), 64)
    guard = low.operands.guard(statement)
    op = TensorProduct(
        variant, "ashift" in statement.form.tokens, _number(statement.operand("scale")),
        tuple(field.kind for field in places),
        tuple(field.kind for field in descriptors), word.kind, enable.kind, tuple(field.kind for field in lanes),
        zeros.kind, guard.kind, low.defers, low.keeps_plans,
    )
    if low.defers:
        low.pending = max(low.pending, FEW)
    offsets = raw("i" * len(held), *(each.offset for each in held))
    kept = raw("i", low.slot(PLAN, 8)) if low.keeps_plans else NOTHING
    placed = low.emit(
        op, raw("qqq", 0, 0, 0), guard, *places, offsets, *descriptors, word, enable, *lanes, zeros, kept
    )
    placed.links = {1: op.multiply, 2: MakeTensorProduct(op.shifted, variant.group)}


def _place(low: Lowering, statement: Instruction, address: Address) -> Field:
    return low.read(statement, address.base)


def _number(operand: Operand | None) -> int:
    return operand.bits if isinstance(operand, Immediate) else 0
