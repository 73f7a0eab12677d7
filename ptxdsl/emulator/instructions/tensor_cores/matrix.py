"""The products of matrix instructions; fragments are loaded and stored by :mod:`...rewrite.matrix_fragments`."""

from __future__ import annotations

import re

from ....errors import EmulationError
from ....ir import Immediate, Instruction, Operand, elements
from ....isa.fragments import ELEMENT_BITS, chunk_of, element_bits, layout, shape_of
from ....types import TYPES
from ...machine.unsupported import render, unsupported
from ..lowering import Lowering, lowers
from ..micro_op import MicroOp
from ..operand_classes import OperandClass
from ..operands import Field

__all__ = ["MatrixProduct", "is_sparse"]


class MatrixProduct(MicroOp, may_fault=True, repeatable=True, inlinable="its code takes long to emit", converges=True):
    """mma and wmma.mma of fragments with classes ``d``, ``a``, ``b`` and ``c``.

    ``types`` are those of a and b, ``bits`` those of their elements, ``result`` and ``addend`` the types of d and c;
    ``variant`` is ``satfinite``, what single bits are combined by, a rounding, or empty; ``orders`` those of a and b
    in ``m8n8k4`` of f16, else empty. ``selector`` is that of a sparse a's metadata, -1 where a is dense. ``scales`` is
    the number of scales of a row and their type, 0 and "" without. ``rest`` are the classes of the operands behind c:
    metadata, then scales, byte-id and thread-id of a and of b.
    """

    shape: str
    types: tuple[str, str]
    bits: int
    result: str
    addend: str
    variant: str
    orders: tuple[str, ...]
    selector: int
    scales: tuple[int, str]
    d: tuple[OperandClass, ...]
    a: tuple[OperandClass, ...]
    b: tuple[OperandClass, ...]
    c: tuple[OperandClass, ...]
    rest: tuple[OperandClass, ...]
    members: OperandClass
    guard: OperandClass
    masked: bool

    @property
    def byte_ids(self) -> range:
        """The first bytes that the scales in a register may have."""
        return range(0, 4, max(1, self.scales[0]))


def is_sparse(tokens: tuple[str, ...]) -> bool:
    """Whether A is sparse in an instruction with these modifiers."""
    return "sp" in tokens or "sp::ordered_metadata" in tokens


def _types(statement: Instruction, shape: str) -> tuple[str, str, str, str]:
    """The types of d, a, b and c; of wmma's two types a and b are f16."""
    tokens = statement.form.tokens
    kinds = [token for token in tokens[tokens.index(shape) + 1 :] if token in TYPES or token in ELEMENT_BITS][:4]
    if len(kinds) == 2:
        return kinds[0], "f16", "f16", kinds[1]
    if len(kinds) != 4:
        raise unsupported(statement, f"`{statement.form.mnemonic}`")
    return kinds[0], kinds[1], kinds[2], kinds[3]


_VARIANTS = ("satfinite", "xor", "and", "rz", "rm", "rp")
_SCALES = {"kind::mxf8f6f4": 1, "kind::mxf4": 2, "scale_vec::2X": 2, "scale_vec::4X": 4}


def _scales(tokens: tuple[str, ...]) -> tuple[int, str]:
    """How many scales a row of A has, and their type."""
    if "block_scale" not in tokens:
        return 0, ""
    return next(count for name, count in _SCALES.items() if name in tokens), tokens[-1]


def _selector(statement: Instruction, bits: int, operand: Operand) -> int:
    """The sparsity selector; EmulationError for one that names no lanes of a quad."""
    assert isinstance(operand, Immediate)
    depth = int(re.findall(r"\d+", shape_of(statement.form.tokens))[2])
    lanes = depth // chunk_of(bits) // 4
    if operand.bits * lanes >= 4:
        raise EmulationError(
            f"sparsity selector {operand.bits}: {lanes} of 4 lanes hold the metadata here, so it is below {4 // lanes}",
            loc=statement.loc, ptx_line=statement.line or None, instruction=render(statement),
            hint="write 0, and let the first lanes of each quad hold the metadata",
        )
    return operand.bits


@lowers("wmma", "mma")
def product(low: Lowering, statement: Instruction) -> None:
    form, tokens = statement.form, statement.form.tokens
    shape, operands = shape_of(tokens), list(statement.operands)
    result, left, right, addend = _types(statement, shape)
    bits = element_bits(left, tokens)
    vectors = [elements(operand) for operand in operands[:4]]
    if form.opcode == "wmma":  # whose fragments of f16 may hold every element twice
        counts = [1 + layout(shape, which, bits).places[-1].register for which in "ab"]
        vectors[1:3] = [vector[:count] for vector, count in zip(vectors[1:3], counts)]
    dests = [low.operands.destination(item) for item in vectors[0]]
    sizes = [64 if kind == "f64" else 32 for kind in (left, right, addend)]
    sources = [[low.read(statement, item, size) for item in vector] for vector, size in zip(vectors[1:], sizes)]
    selector, rest = -1, operands[4:]
    if is_sparse(tokens):
        selector = _selector(statement, bits, rest.pop(1))
    further: list[Field] = [
        low.read(statement, item, 16 if number else 32)
        for operand in rest for number, item in [(len(elements(operand)) > 1, each) for each in elements(operand)]
    ]
    members, guard = low.operands.number(0xFFFFFFFF, 32), low.operands.guard(statement)
    d, a, b, c, more = (tuple(field.kind for field in fields) for fields in (dests, *sources, further))
    variant = next((token for token in tokens if token in _VARIANTS), "")
    orders = tuple(t for t in tokens if t in ("row", "col")) if (shape, left) == ("m8n8k4", "f16") else ()
    low.emit(
        MatrixProduct(
            shape, (left, right), bits, result, addend, variant, orders, selector, _scales(tokens), d, a, b, c, more,
            members.kind, guard.kind, low.divergent,
        ),
        guard, low.priority(), *dests, *(field for group in sources for field in group), *further, members,
    )
