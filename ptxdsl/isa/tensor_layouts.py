"""Where the operands of tcgen05.mma lie in tensor memory: rows of D and A, metadata of a sparse A, scales of blocks.

The one home of these places, which are the manual's layouts A to G and CUTLASS's; each is given relative to the
operand's own address, as (lane, column) of 32-bit cells. ``rows`` are those of one block: of a pair each has half of M.

In D a row is a lane, or, where there are fewer rows than lanes, one in each *bank* of lanes: the columns are dealt to
the banks, a run to each, and so are copies of A's rows and of their metadata.
"""

from __future__ import annotations

from typing import NamedTuple

from .fragments import chunk_of
from .instruction_descriptors import Product, Variant

__all__ = ["Accumulator", "accumulator", "metadata_cell", "scale_byte", "scales_of"]


class Accumulator(NamedTuple):
    """The layout of D, by the manual's letter; ``halves`` says that groups of 16 rows lie 32 lanes apart."""

    letter: str
    rows: int
    banks: int
    halves: bool

    def lane(self, row: int, bank: int = 0) -> int:
        """Of a row, relative to that of the address, which is 0, and with ``halves`` may be 16."""
        if self.halves:
            return 32 * (row // 16) + row % 16
        return self.rows * bank + row

    def place(self, row: int, column: int, columns: int) -> tuple[int, int]:
        """Lane and column of an element of D, which has so many columns."""
        bank, within = divmod(column, columns // self.banks)
        return self.lane(row, bank), within


def accumulator(variant: Variant, product: Product) -> Accumulator:
    """The layout of a product's D.

    >>> accumulator(Variant("f16"), Product(64, 32, 16, "f32", ("f16", "f16"))).letter
    'F'
    """
    m = product.m
    if variant.weights:
        return Accumulator({32: "G", 64: "E", 128: "D"}[m], m, 128 // m, False)
    if variant.group == 1:
        return Accumulator("F" if m == 64 else "D", m, 1, m == 64)
    if m == 256:
        return Accumulator("A", 128, 1, False)
    return Accumulator("C", 64, 1, True) if variant.sparse else Accumulator("B", 64, 2, False)


def metadata_cell(bits: int, lane: int, chunk: int, selector: int) -> tuple[int, int, int]:
    """Lane, column and lowest bit of the code of a chunk, of the row whose A lies in this lane.

    Elements of 16 and 32 bits have 8 codes a row, those of two rows 8 lanes apart in a cell; others 16 in two cells.
    """
    if bits > 8:
        place = 32 * (lane // 32) + lane % 8 + 16 * (lane % 32 // 16) + 8 * (chunk // 4)
        return place, selector, 16 * (lane % 16 // 8) + 4 * (chunk % 4)
    return lane, chunk // 8, 4 * (chunk % 8)


def chunks_of(product: Product, bits: int) -> int:
    """Of a row of a sparse A."""
    return product.k // chunk_of(bits)


def scales_of(variant: Variant, product: Product) -> int:
    """The scales of a row of A or a column of B.

    >>> scales_of(Variant("mxf4nvf4", blocks=4), Product(128, 64, 96, "f32", ("e2m1x", "e2m1x")))
    6
    """
    if variant.table:
        return 2 * variant.blocks
    return variant.blocks * 3 // 2 if product.k == 96 else variant.blocks


def scale_byte(line: int, lines: int, number: int, first: int, banks: int = 1) -> tuple[int, int, int]:
    """Lane, column and byte of a scale of a line (a row of A, a column of B), of which there are so many.

    They lie in 32 lanes, the same in all four quarters. With two ``banks`` (B's, where D has two) half of the lines lie
    in the quarters of each.
    """
    byte, per = first + number, -(-lines // banks)
    bank, within = divmod(line, per)
    column = within // 32 + byte // 4 * 4 * -(-per // 128)
    return 128 // banks * bank + within % 32, column, byte % 4
