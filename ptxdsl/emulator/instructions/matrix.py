"""The products of matrix instructions; fragments are loaded and stored by :mod:`..rewrite.matrix_fragments`."""

from __future__ import annotations

from ...ir import Instruction, elements
from ...isa.fragments import ELEMENT_BITS, SHAPES, layout, shape_of
from ...types import TYPES
from ..machine.unsupported import unsupported
from .lowering import Lowering, lowers
from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["MatrixProduct"]


class MatrixProduct(MicroOp, may_fault=True, repeatable=True, inlinable="its code takes long to emit", converges=True):
    """mma and wmma.mma of fragments with classes ``d``, ``a``, ``b`` and ``c``.

    ``types`` are those of a and b, ``result`` and ``addend`` of d and c; ``variant`` is ``satfinite``, what single bits
    are combined by, or empty.
    """

    shape: str
    types: tuple[str, str]
    result: str
    addend: str
    variant: str
    d: tuple[OperandClass, ...]
    a: tuple[OperandClass, ...]
    b: tuple[OperandClass, ...]
    c: tuple[OperandClass, ...]
    members: OperandClass
    guard: OperandClass
    masked: bool


def _types(statement: Instruction, shape: str) -> tuple[str, str, str, str]:
    """The types of d, a, b and c; of wmma's two types a and b are f16."""
    tokens = statement.form.tokens
    kinds = [token for token in tokens[tokens.index(shape) + 1 :] if token in TYPES or token in ELEMENT_BITS]
    if len(kinds) == 2:
        return kinds[0], "f16", "f16", kinds[1]
    if len(kinds) != 4:
        raise unsupported(statement, f"`{statement.form.mnemonic}`")
    return kinds[0], kinds[1], kinds[2], kinds[3]


_REFUSED = frozenset(("sp", "sp::ordered_metadata", "block_scale", "rz", "rm", "rp"))
_VARIANTS = ("satfinite", "xor", "and")


@lowers("wmma", "mma")
def product(low: Lowering, statement: Instruction) -> None:
    form = statement.form
    shape = shape_of(form.tokens)
    if not shape or len(statement.operands) != 4 or not _REFUSED.isdisjoint(form.tokens):
        raise unsupported(statement, f"`{form.mnemonic}`")
    result, left, right, addend = _types(statement, shape)
    if shape not in SHAPES.get(ELEMENT_BITS.get(left, 0), ()) or ELEMENT_BITS[left] != ELEMENT_BITS.get(right):
        raise unsupported(statement, f"`{form.mnemonic}`")
    bits = (_bits(result), ELEMENT_BITS[left], ELEMENT_BITS[right], _bits(addend))
    counts = [1 + layout(shape, which, size).places[-1].register for which, size in zip("cabc", bits)]
    vectors = [elements(operand)[:count] for operand, count in zip(statement.operands, counts)]
    dests = [low.operands.destination(item) for item in vectors[0]]
    sizes = [64 if kind == "f64" else 32 for kind in (left, right, addend)]
    sources = [[low.read(statement, item, size) for item in vector] for vector, size in zip(vectors[1:], sizes)]
    members, guard = low.operands.number(0xFFFFFFFF, 32), low.operands.guard(statement)
    d, a, b, c = (tuple(field.kind for field in fields) for fields in (dests, *sources))
    variant = next((token for token in form.tokens if token in _VARIANTS), "")
    low.emit(
        MatrixProduct(
            shape, (left, right), result, addend, variant, d, a, b, c, members.kind, guard.kind, low.divergent
        ),
        guard, low.priority(), *dests, *(field for group in sources for field in group), members,
    )


def _bits(kind: str) -> int:
    """Bits of an element of C or D that make its layout: halves share registers."""
    return 16 if kind == "f16" else 32
