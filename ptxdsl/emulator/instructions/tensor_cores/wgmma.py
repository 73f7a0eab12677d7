"""wgmma: products of a warpgroup's tiles, which the last of its four warps to come begins for all of them.

They are made then or later, in their order (:mod:`..machine.pending`). A warp that waits for groups waits until the
others have committed them too: what it says to others then, that a stage is free say, holds for all.
"""

from __future__ import annotations

from typing import NamedTuple

from ....ir import Immediate, Instruction, Operand, elements
from ....isa.fragments import shape_of
from ...machine.layout import LANES
from ...machine.pending import FEW
from ...machine.unsupported import unsupported
from ..bulk_copies import slot
from ..lowering import Lowering, lowers
from .matrix_tiles import TilePanel, TileProduct, WarpPanel, elements_of, lines_of, products_of
from ..micro_op import MicroOp, Routine
from ..operand_classes import OperandClass
from ..operands import NOTHING, raw

__all__ = [
    "ROWS", "WARPS", "MakeProduct", "Tile", "WarpgroupCommit", "WarpgroupProduct", "WarpgroupWait", "tiles_of",
]

ROWS = 16
"""Of a warp."""
WARPS = 4
"""Of a warpgroup."""


class WarpgroupProduct(
    MicroOp, may_fault=True, repeatable=False, inlinable="its cost is the product's", converges=True, reads_memory=True
):
    """A product of a tile of A with one of B, of ``columns``; A's rows are 32 bytes, kept ones where it is sparse.

    ``types`` and ``majors`` are those of A and B; A's major is "" where it lies in registers. ``result`` is the type of
    d, ``negative`` says that products are subtracted. ``selector`` is that of a sparse A's metadata, -1 where A is
    dense. ``descriptors`` are those of what lies in shared memory, ``held`` the registers of A, then the metadata;
    ``warps`` are those of the block. The record has the addresses of :class:`MakeProduct`, of the core's functions, and
    of a table of the offsets of d's registers. Where a product does not ``defer``, it is made at once.
    """

    warps: int

    types: tuple[str, str]
    majors: tuple[str, str]
    columns: int
    result: str
    saturates: bool
    negative: bool
    selector: int
    descriptors: tuple[OperandClass, ...]
    held: tuple[OperandClass, ...]
    scale: OperandClass
    members: OperandClass
    guard: OperandClass
    masked: bool
    defers: bool

    @property
    def sparse(self) -> bool:
        return self.selector >= 0

    @property
    def depth(self) -> int:
        """Elements of A along k that are multiplied, of single bits words."""
        return 2 * elements_of(self.types[0])


class MakeProduct(Routine):
    """Makes a product: WORDS has its descriptors and whether d counts as 0, the record of ``op`` the rest."""

    op: WarpgroupProduct


class WarpgroupCommit(MicroOp, may_fault=True, repeatable=False, inlinable="it is followed by a wait", converges=True):
    """A warp has begun the products of a group; ``warps`` are those of the block."""

    warps: int
    members: OperandClass
    guard: OperandClass
    masked: bool


class WarpgroupWait(MicroOp, may_fault=True, repeatable=False, inlinable="it waits for other warps", converges=True):
    """Waits until all warps have committed as many groups as this one, but for the last ``left``, and makes these."""

    left: int
    members: OperandClass
    guard: OperandClass
    masked: bool


_KINDS = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "b1")


@lowers("wgmma")
def wgmma(low: Lowering, statement: Instruction) -> None:
    form, tokens = statement.form, statement.form.tokens
    if tokens[0] != "mma_async":
        _group(low, statement)
        return
    result, left, right = [token for token in tokens if token not in ("and", "popc")][-3:]
    if left not in _KINDS:
        raise unsupported(statement, f"`{form.mnemonic}`")
    columns = int(shape_of(tokens).partition("n")[2].partition("k")[0])
    named = {spec.name: operand for spec, operand in zip(form.operands, statement.operands)}
    d = elements(named["d"])
    signs = [operand.bits for name in ("sa", "sb") if isinstance(operand := named.get(name), Immediate)]
    turned = [_turned(named.get(name)) for name in ("ta", "tb")]
    in_registers = elements(named["a"]) if len(elements(named["a"])) > 1 else ()
    majors = "" if in_registers else "mn" if turned[0] else "k", "mn" if turned[1] else "k"
    descriptors = [low.read(statement, named[name], 64) for name in ("a", "b") if name == "b" or not in_registers]
    held = [low.read(statement, register) for register in in_registers]
    selector, lines = -1, lines_of(left, "e" in named)
    if lines is not None:
        held.append(low.read(statement, named["e"]))
        selector = _number(named["f"])
    scale, guard = low.read(statement, named["scale"]), low.operands.guard(statement)
    members = low.operands.number(0xFFFFFFFF, 32)
    op = WarpgroupProduct(
        _warps(low), (left, right), majors, columns, result, "satfinite" in tokens,
        sum(bits & 1 << 31 != 0 for bits in signs) == 1, selector, tuple(field.kind for field in descriptors),
        tuple(field.kind for field in held), scale.kind, members.kind, guard.kind, low.divergent, low.defers,
    )
    if low.defers:
        low.pending = max(low.pending, FEW)
    table = low.pool.table(_accumulators([low.operands.destination(each).values[0] for each in d], result, columns))
    place = raw("i", slot(low, f"%wgmma.{low.place}", 4 * len(held))) if held else NOTHING
    placed = low.emit(
        op, raw("qqqqqq", 0, 0, 0, 0, 0, table), place, *held, guard, low.priority(), *descriptors, scale, members
    )
    panel = TilePanel(left, majors[0], "spread") if majors[0] else WarpPanel(left)
    wide = 4 if columns % 16 == 0 else 2
    product = TileProduct("vector", "quad", 4, wide, products_of(left), lines is not None)
    assert isinstance(placed.op, WarpgroupProduct)
    placed.links = {0: MakeProduct(placed.op), 1: panel, 2: TilePanel(right, majors[1], "pairs"), 3: product}
    if lines is not None:
        placed.links[4] = lines


class Tile(NamedTuple):
    """A tile in shared memory: ``lines`` of A's rows or B's columns, each of so many pieces of 16 bytes along k."""

    descriptor: Operand
    left: bool
    major: str
    lines: int
    depth: int
    pieces: int


def tiles_of(statement: Instruction) -> list[Tile]:
    """The tiles that a product reads by descriptors."""
    form = statement.form
    tokens = [token for token in form.tokens if token not in ("and", "popc")]
    named = {spec.name: operand for spec, operand in zip(form.operands, statement.operands)}
    left, sparse = tokens[-2], "e" in named
    columns = int(shape_of(form.tokens).partition("n")[2].partition("k")[0])
    depth, found = 2 * elements_of(left), []
    if len(elements(named["a"])) <= 1:
        major = "mn" if _turned(named.get("ta")) else "k"
        found.append(Tile(named["a"], True, major, WARPS * ROWS, depth, 2))
    major = "mn" if _turned(named.get("tb")) else "k"
    found.append(Tile(named["b"], False, major, columns, depth << sparse, 2 << sparse))
    return found


def _group(low: Lowering, statement: Instruction) -> None:
    effects, guard = statement.form.effects, low.operands.guard(statement)
    members = low.operands.number(0xFFFFFFFF, 32)
    op: MicroOp
    if effects.commits:
        op = WarpgroupCommit(_warps(low), members.kind, guard.kind, low.divergent)
    elif effects.waits:
        left = statement.operands[0]
        assert isinstance(left, Immediate)
        op = WarpgroupWait(left.bits, members.kind, guard.kind, low.divergent)
    else:
        return
    low.emit(op, guard, low.priority(), members)


def _warps(low: Lowering) -> int:
    x, y, z = low.block
    return -(-x * y * z // LANES)


def _turned(operand: object) -> bool:
    return isinstance(operand, Immediate) and operand.bits == 1


def _number(operand: object) -> int:
    assert isinstance(operand, Immediate)
    return operand.bits


def _accumulators(slots: list[int], result: str, columns: int) -> list[int]:
    """Where the vectors of d lie that the product takes, in its order; of halves those of the registers alone."""
    if result == "f16":
        return slots
    return [
        slots[4 * eight + 2 * (four // 2) + odd] + 64 * (four % 2)
        for four in range(4) for eight in range(columns // 8) for odd in range(2)
    ]
