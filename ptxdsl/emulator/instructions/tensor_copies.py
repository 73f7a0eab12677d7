"""Tensor copies (TMA): `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`: boxes of a tensor that a map describes.

As bulk copies (:mod:`.bulk_copies`) they are micro-ops one after the other: the host address of the map; what the box
takes of the tensor, and how many bytes in shared memory; the host address of these; and what begins the copy. In shared
memory a box is a run of bytes, so that end is that of a bulk copy.
"""

from __future__ import annotations

from typing import Literal

from ...ir import Address, Instruction, Vector, elements
from ...isa.tensor_maps import USED_BYTES
from ..machine.layout import SPACE_BITS
from ..machine.unsupported import unsupported
from .addresses import AccessFlags
from .bulk_copies import ALIGNMENT, BulkAddress, begins, find_mbarrier, hosts, plain_address, slot, told
from .lowering import Lowering, lowers
from .micro_op import MicroOp, Routine
from .operand_classes import ABSENT, OperandClass, per_lane
from .operands import NOTHING, Field, raw

__all__ = [
    "MOST_HALO", "MOST_OFFSET", "PIXEL_SHAPES", "REDUCED", "SHARED_ALIGNMENT", "MakeTensor", "Shape", "TensorBox",
    "TensorMove", "TensorOverride", "find", "identity", "is_tensor_copy", "move", "size_of", "taken",
]

SHARED_ALIGNMENT = 128
"""Of a box in shared memory."""
Shape = Literal["tile", "rows", "pixels", "width", "chunks"]
"""What a copy takes: boxes, rows, pixels (im2col), those of one line of pixels, and in chunks of 32 (im2col::w)."""
_SHAPES: dict[str, Shape] = {
    "tile::gather4": "rows", "tile::scatter4": "rows", "im2col": "pixels", "im2col_no_offs": "pixels",
    "im2col::w": "width", "im2col_no_offs::w": "width", "im2col::w::128": "chunks",
}
PIXEL_SHAPES = ("pixels", "width", "chunks")
MOST_HALO = {"width": 512, "chunks": 32}
"""A halo has fewer pixels."""
MOST_OFFSET = 32
"""An offset along the width is less."""
REDUCED = {
    "add": ("u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"), "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",), "dec": ("u32",), "and": ("u32", "s32", "u64", "s64"), "or": ("u32", "s32", "u64", "s64"),
    "xor": ("u32", "s32", "u64", "s64"),
}
"""The element types of each reduction."""
_COPIES = ("tensor_load", "tensor_store", "tensor_reduce")


class TensorBox(MicroOp, may_fault=True, repeatable=True, inlinable="its cost is the copy's"):
    """Finds, lane by lane, the host address of what a box takes of its tensor, and the bytes that it has.

    These are the bytes that the mbarrier counts, and those of shared memory in which they lie. ``coordinates`` are the
    innermost first. Of the shape ``rows`` the last four of them are rows of a tensor of two dimensions; of those of
    pixels the last ``offsets`` of them are what the instruction has beside the map. ``operation``, that of a reduction,
    must take the element type.
    """

    shape: Shape
    offsets: int
    writes: bool
    operation: str
    coordinates: tuple[OperandClass, ...]
    guard: OperandClass


class TensorOverride(MicroOp, may_fault=False, repeatable=True, inlinable="its cost is the copy's"):
    """Puts copies of the tensor maps, with other properties, in their place.

    ``shape`` are the classes of the extents, of the strides in units of 16 bytes, and of their high bits, if they are
    given, behind that of the tensor's address.
    """

    address: OperandClass
    shape: tuple[OperandClass, ...]
    guard: OperandClass


class TensorMove(
    MicroOp, may_fault=True, repeatable=False, inlinable="its cost is the copy's", reads_memory=True,
    writes_memory=True,
):
    """Begins to move the boxes, lane by lane; its record has the address of :class:`MakeTensor`.

    The other fields are those of TensorBox and BulkMove.
    """

    waits: int
    clustered: bool
    defers: bool
    writes: bool
    coordinates: tuple[OperandClass, ...]
    guard: OperandClass


class MakeTensor(Routine):
    """Moves a box to shared memory, or from there, where ``operation`` may combine them, and counts its bytes.

    WORDS has so many coordinates and offsets, BYTES the used ones of the map.
    """

    shape: Shape
    offsets: int
    writes: bool
    operation: str
    words: int


def is_tensor_copy(statement: Instruction) -> bool:
    return statement.form.semantics in _COPIES


@lowers(*_COPIES)
def tensor_copy(low: Lowering, statement: Instruction) -> None:
    find(low, statement)
    move(low, statement)


def _operands(statement: Instruction) -> tuple[Address, int, int]:
    """The map's operand, and the places of the map and of the address in shared memory."""
    effects = statement.form.effects
    tensor = next(access.operand for access in effects.accesses if access.kind == "tensor")
    shared = next(access.operand for access in effects.accesses if access.kind == "bytes")
    operand = statement.operands[tensor]
    assert isinstance(operand, Address)
    return operand, tensor, shared


def _box(low: Lowering, statement: Instruction) -> tuple[Shape, int, bool, str, tuple[Field, ...]]:
    """What TensorBox and TensorMove have in common: their first fields, and the coordinates with the offsets."""
    form = statement.form
    if any(token.startswith("mbarrier::report::validity") for token in form.tokens):
        raise unsupported(statement, f"`{form.mnemonic}`")
    operand, _, _ = _operands(statement)
    coordinates = operand.parts[-1]
    assert isinstance(coordinates, Vector)
    writes = form.semantics != "tensor_load"
    operation = form.effects.atomic if form.semantics == "tensor_reduce" else ""
    shape: Shape = next((_SHAPES[token] for token in form.tokens if token in _SHAPES), "tile")
    given = tuple(low.read(statement, item) for item in coordinates.items)
    offsets = tuple(low.read(statement, item, 16) for item in elements(statement.operand("offsets") or Vector(())))
    return shape, len(offsets), writes, operation, given + offsets


def find(low: Lowering, statement: Instruction) -> None:
    """Emit what finds the host addresses of the map, of the tensor and of shared memory, and the mbarrier."""
    operand, tensor, shared = _operands(statement)
    guard = low.operands.guard(statement)
    kind, place = plain_address(low, statement, operand._replace(parts=()), False, "generic")
    nbytes = low.operands.number(USED_BYTES, 32)
    low.emit(
        BulkAddress(tensor, kind, ALIGNMENT, False, False, ABSENT, nbytes.kind, ABSENT, guard.kind, True),
        place, guard, nbytes, hosts(low, tensor),
    )
    _override(low, statement)
    shape, offsets, writes, operation, coordinates = _box(low, statement)
    flags = AccessFlags.of(0, SPACE_BITS["global"], writes, False)
    box = TensorBox(shape, offsets, writes, operation, tuple(each.kind for each in coordinates), guard.kind)
    low.emit(
        box, raw("ii", flags, 0), guard, *coordinates, hosts(low, tensor), _bytes(low), size_of(low, statement),
        _tensor(low),
    )
    _find_shared(low, statement, shared, guard)
    mbar = statement.operand("mbar")
    if mbar is not None:
        find_mbarrier(low, statement, mbar)


def _override(low: Lowering, statement: Instruction) -> None:
    """Emit what changes the map for this copy."""
    operand, tensor, _ = _operands(statement)
    if not any(token.startswith("override") for token in statement.form.tokens):
        return
    address, *shape = operand.parts[:-1]
    given = [elements(part) for part in shape]
    bits = (16, 32, 16)
    fields = [low.read(statement, item, size) for items, size in zip(given, bits) for item in items]
    start, guard = low.read(statement, address, 64), low.operands.guard(statement)
    op = TensorOverride(start.kind, tuple(each.kind for each in fields), guard.kind)
    low.emit(op, guard, start, *fields, hosts(low, tensor), raw("i", slot(low, "%tensor.map", USED_BYTES)))


def _find_shared(low: Lowering, statement: Instruction, shared: int, guard: Field) -> None:
    form, clustered = statement.form, low.spaces.cluster not in (None, (1, 1, 1))
    space = next(token for token in form.tokens if token.startswith("shared"))
    loads = form.semantics == "tensor_load"
    address = statement.operands[shared]
    assert isinstance(address, Address)
    kind, place = plain_address(low, statement, address, loads, space.split("::")[0])
    mbar, word, found = statement.operand("mbar"), ABSENT, NOTHING
    if mbar is not None and clustered and "cta_group::2" not in form.tokens:
        word, found = plain_address(low, statement, mbar, True, "shared", 8)
    own_block, size = clustered and space == "shared::cta", size_of(low, statement)
    op = BulkAddress(shared, kind, SHARED_ALIGNMENT, loads, own_block, word, size.kind, ABSENT, guard.kind, True)
    low.emit(op, place, found, guard, size, hosts(low, shared))


def move(low: Lowering, statement: Instruction) -> None:
    """Emit what begins the copy."""
    _, tensor, shared = _operands(statement)
    shape, offsets, writes, operation, coordinates = _box(low, statement)
    guard = low.operands.guard(statement)
    kind, clustered, defers, mbarrier_host = begins(low, statement)
    op = TensorMove(kind, clustered, defers, writes, tuple(each.kind for each in coordinates), guard.kind)
    placed = low.emit(
        op, raw("q", 0), guard, *coordinates, hosts(low, tensor), _tensor(low), hosts(low, shared), _bytes(low),
        size_of(low, statement), mbarrier_host,
    )
    placed.links = {0: MakeTensor(shape, offsets, writes, operation, len(coordinates))}


def taken(low: Lowering, statement: Instruction) -> tuple[Shape, int, tuple[OperandClass, ...], tuple[Field, ...]]:
    """What boxes take of their tensors: shape, offsets and the classes of the coordinates; these, map and tensor."""
    _, tensor, _ = _operands(statement)
    shape, offsets, _, _, coordinates = _box(low, statement)
    fields = *coordinates, hosts(low, tensor), _tensor(low)
    return shape, offsets, tuple(each.kind for each in coordinates), fields


def identity(low: Lowering, statement: Instruction) -> tuple[Field, ...]:
    """What is equal in lanes whose copies are one and the same; nothing where each of them counts, as in sums."""
    if statement.form.semantics == "tensor_reduce":
        return ()
    _, tensor, shared = _operands(statement)
    *_, coordinates = _box(low, statement)
    return *coordinates, *told(low, statement, tensor, shared)


def size_of(low: Lowering, _: Instruction) -> Field:
    """The bytes of shared memory in which a box lies."""
    return Field(per_lane(32), "i", (slot(low, "%tensor.extent", 4),))


def _bytes(low: Lowering) -> Field:
    """The bytes of the tensor in a box, which the mbarrier counts."""
    return Field(per_lane(32), "i", (slot(low, "%tensor.bytes", 4),))


def _tensor(low: Lowering) -> Field:
    """Where a warp keeps what is to be added to the address of an element of the tensor for its host address."""
    return raw("i", slot(low, "%tensor.host", 8))
