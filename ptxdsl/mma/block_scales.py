"""Products by tcgen05 of elements that share scales by blocks along k: mxfp8, mxfp4, nvfp4 (sm_100a).

The scales lie in tensor memory, where copies from shared memory bring them. See `ptxdsl.tcgen05`, which has the names.
PTX ISA, sections 9.7.16.10.7 (block scaling) and 9.7.16.9.2 (tcgen05.cp).
"""

from __future__ import annotations

from typing import Any

from ..errors import PtxTypeError
from ..isa.instruction_descriptors import InvalidDescriptor, Product, Variant, decode, encode
from ..isa.matrix_descriptors import ADDRESS, tensor_descriptor
from ..language import ptx, reg
from ..language.errors import described, located
from ..language.values.literals import known_integer
from ..types import ScalarType, e2m1, e2m1x2, e2m3, e3m2, e4m3, e5m2, f32, u32, u64, ue8m0
from .descriptors import STEP
from .operands import check_shapes, kind_named, multiple, predicate

__all__ = ["Scales", "scaled_products"]

_LINES, _GROUP, _PIECE = 128, 4, 512
"""Lines of a piece, the scales that each has there, and its bytes."""
_COLUMNS = 4
"""Of tensor memory, of a piece."""
_BYTES = (e4m3, e5m2, e3m2, e2m3, e2m1)
_FORMS: dict[tuple[bool, int, ScalarType], tuple[str, str, int]] = {
    (False, 32, ue8m0): ("mxf8f6f4", "", 1), (True, 32, ue8m0): ("mxf4", "", 2),
    (True, 16, ue8m0): ("mxf4nvf4", ".block16", 4), (True, 16, e4m3): ("mxf4nvf4", ".block16", 4),
}
"""The kind, the modifier and the scales of a line in an instruction; by: whether elements are packed, block, type."""


class Scales:
    """Scales in tensor memory of ``lines``, rows of a or columns of b, in ``groups`` of four a line along k.

    They have `columns` from ``address`` on.
    """

    def __init__(self, address: Any, lines: int, groups: int, pair: bool) -> None:
        self.address, self.lines, self.groups, self.pair = address, lines, groups, pair

    @staticmethod
    def columns(lines: int, groups: int) -> int:
        """The columns of tensor memory that they take.

        >>> Scales.columns(256, 4)
        32
        """
        return -(-lines // _LINES) * groups * _COLUMNS

    @staticmethod
    def nbytes(lines: int, groups: int) -> int:
        """The bytes of shared memory from which they are copied: pieces of 512 bytes for 128 lines."""
        return -(-lines // _LINES) * groups * _PIECE

    def copy(self, source: Any) -> None:
        """Copy them from shared memory, by the thread that multiplies with them next.

        ``source`` points to pieces of 512 bytes at multiples of 16 bytes, those of the first 128 lines, one for each
        group, then of the next lines: in a piece, scale j of line i is byte ``i % 32 * 16 + i // 32 * 4 + j``.
        """
        start, tiles = source.address, -(-self.lines // _LINES)
        name = f"tcgen05.cp.cta_group::{1 + self.pair}.32x128b.warpx4"
        for tile in range(tiles):
            for group in range(self.groups):
                place = start + (tile * self.groups + group) * _PIECE
                address = (place >> ADDRESS.unit) & (1 << ADDRESS.width) - 1
                ptx[name](self.at(group, tile), address.to(u64) + tensor_descriptor(0, 16, 128, 0))

    def at(self, group: int, tile: int = 0) -> Any:
        """The address of the scales of 128 lines in a group."""
        moved = (group * -(-self.lines // _LINES) + tile) * _COLUMNS
        return self.address + moved if moved else self.address


def scaled_products(
    sums: Any, a: Any, b: Any, scales: tuple[Scales, Scales], block: int, scale_type: ScalarType, accumulate: Any,
    operand: Any,
) -> None:
    """Issue the instructions; ``operand(tile, side)`` gives what gives the operand of a step along k."""
    packed = a.dtype is e2m1x2
    known = known_integer(block)
    form = _FORMS.get((packed, known or 0, scale_type))
    if form is None or (not packed and a.dtype not in _BYTES) or (b.dtype is e2m1x2) != packed or (
        not packed and b.dtype not in _BYTES
    ):
        raise located(
            PtxTypeError,
            f"a product of {kind_named(a.dtype)} and {kind_named(b.dtype)} with scales of {kind_named(scale_type)} "
            f"for blocks of {described(block) if known is None else known}",
            "e4m3, e5m2 and other elements of a byte with ue8m0 for 32; e2m1x2 with ue8m0 for 32 or 16, or e4m3 for 16",
        )
    if sums.dtype is not f32:
        raise located(PtxTypeError, f"a product with scales into sums of {sums.dtype}", "sums of f32")
    kind, size, each = form
    check_shapes("tcgen05.multiply", sums.shape, a, b, pair=sums.pair)
    multiple("columns", a.shape[1], STEP, " of a")
    steps = a.shape[1] // STEP
    for side, lines, held in (("a", sums.shape[0] // (1 + sums.pair), scales[0]), ("b", sums.shape[1], scales[1])):
        if held.lines != lines or held.groups * _GROUP < steps * each:
            raise located(
                PtxTypeError, f"scales of {held.lines} lines and {held.groups} groups for {side}",
                f"{lines} lines, all of them for b also of a pair, and {-(-steps * each // _GROUP)} groups",
            )
    variant, words = Variant(kind, 1 + sums.pair, blocks=each), {}
    name = f"tcgen05.mma.cta_group::{1 + sums.pair}.kind::{kind}.block_scale{size}"
    left, right, place = operand(a, "a"), operand(b, "b"), sums.memory.at(sums.column)
    first = predicate(accumulate)
    always = first if accumulate is True or steps == 1 else predicate(True)
    for step in range(steps):
        group, byte = divmod(step * each, _GROUP)
        if byte not in words:
            words[byte] = reg(u32, _word(variant, sums.shape, a, b, byte, scale_type)).copy()
        ptx[name](
            place, left(step), right(step), words[byte], scales[0].at(group), scales[1].at(group),
            always if step else first,
        )


def _word(variant: Variant, shape: tuple[int, int], a: Any, b: Any, byte: int, scale_type: ScalarType) -> int:
    """The instruction descriptor of a product whose scales begin at a byte of their group."""
    packed = a.dtype is e2m1x2
    types = ("e2m1x", "e2m1x") if packed else (str(a.dtype), str(b.dtype))
    product = Product(
        *shape, 64 if packed else 32, "f32", types, turned=(a.transposed, not b.transposed), scales=(byte, byte),
        scale_type="ue8m0" if scale_type is ue8m0 else "ue4m3",
    )
    word = encode(variant, product)
    try:
        decode(variant, word)
    except InvalidDescriptor as error:
        raise located(PtxTypeError, f"tcgen05.mma with scales into {shape[0]} x {shape[1]}: {error}") from None
    return word
