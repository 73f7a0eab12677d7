"""What tcgen05 reads in shared memory, of one block or of both of a pair: where the pieces of its tiles lie.

The routines say it by which the instructions find them (:class:`..instructions.tensor_cores.tensor_tiles.TilePlaces`),
with the sizes of the plan that a product has been made by.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...ir import Address, Instruction

from ..codegen.library import library
from ..instructions.tensor_cores.tensor_memory_copies import SHAPES, element_bits
from ..instructions.tensor_cores.tensor_products import TensorProduct
from ..instructions.tensor_cores.tensor_tiles import TilePlaces
from ..machine.layout import Cluster
from ..machine.product_plan import ProductPlan
from ..runtime.block_state import BlockState
from ..runtime.tensor_product_plans import plan_fields
from .accesses import operand_value

__all__ = ["Piece", "pieces_of"]

_FAR = 1 << 40
_OTHER = 1 << Cluster.RANK_BITS
"""What a place in the other block is further on."""
_PLACES = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)

class Piece(NamedTuple):
    """So many bytes at an address in shared memory, of the first or second block of a pair."""

    block: int
    address: int
    nbytes: int

def pieces_of(state: BlockState, thread: tuple[int, int], place: int) -> list[Piece]:
    """Those of a product that has been made, or of a copy; of the block itself as the first where it is alone."""
    statement: Any = state.code.graph.statements[place]
    both = "cta_group::2" in statement.form.tokens
    if statement.form.semantics == "tensor_memory_copy":
        shape = SHAPES[next(token for token in statement.form.tokens if token in SHAPES)]
        sizes = np.array([shape.rows, shape.rows - 1, _FAR, shape.pieces, 3, 0], np.int64)
        function = library().need([TilePlaces("k")])[TilePlaces("k")]
        value = operand_value(state, thread, statement.operand("s"))
        places = _places(function, int(sizes.ctypes.data), value, 0)
        return [Piece(block, each, 2 * element_bits(statement)) for block in range(1 + both) for each in places]
    return list(_of_product(state, thread, place, statement, both))

def _of_product(
    state: BlockState, thread: tuple[int, int], place: int, statement: Instruction, both: bool
) -> Iterator[Piece]:
    op = _products(state).get(place)
    word = operand_value(state, thread, statement.operand("idesc")) & 0xFFFFFFFF
    fields = plan_fields(op, word) if op is not None else None
    if fields is None:
        return
    zero, a = statement.operand("zero"), statement.operand("a")
    shift = 0 if zero is None else operand_value(state, thread, zero) >> 56 & 63
    if not isinstance(a, Address):
        found = _places(
            fields[ProductPlan.A_PLACES], fields[ProductPlan.A_SIZES], operand_value(state, thread, a), 0
        )
        for block in range(1 + both):
            yield from (Piece(block, each, fields[ProductPlan.A_BYTES]) for each in found)
    value = operand_value(state, thread, statement.operand("b"))
    for each in _places(fields[ProductPlan.B_PLACES], fields[ProductPlan.B_SIZES], value, shift):
        yield Piece(int(each >= _OTHER), each & _OTHER - 1, fields[ProductPlan.B_BYTES])

def _products(state: BlockState) -> dict[int, TensorProduct]:
    """The micro-ops of products, by their statements."""
    code = state.code
    found: dict[int, TensorProduct] | None = code.notes.get(Piece)
    if found is None:
        found = code.notes[Piece] = {
            code.statement_at(code.base + offset): placed.op
            for offset, placed in zip(code.offsets, code.micro_ops) if isinstance(placed.op, TensorProduct)
        }
    return found

def _places(function: int, sizes: int, descriptor: int, shift: int) -> list[int]:
    count, _, _, further, _, _ = (ctypes.c_int64 * 6).from_address(sizes)
    to, bounds = np.zeros(count * further, np.uint32), np.array([_FAR, 0], np.int64)
    signed = descriptor - (descriptor >> 63 << 64)
    _PLACES(function)(to.ctypes.data, sizes, bounds.ctypes.data, signed, _OTHER, shift)
    return sorted(set(to.tolist()))
