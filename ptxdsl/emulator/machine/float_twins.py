"""What compiled code keeps of numbers that it follows in float64: of each instruction, and of memory.

A twin is the number that a register or an element of memory would hold if everything had been computed in float64.
Beside it stands where most of its error arose, a line of the kernel by its number from 1 (0: nowhere), and how large
it was. A twin belongs to the bits that it was computed with: where a register or memory holds others, it is that number
itself.
"""

from __future__ import annotations

from .layout import LANES
from .structs import Struct, field

__all__ = ["FORMATS", "OPERANDS", "Area", "Areas", "Case", "Cell", "Row", "part_offsets", "plane_bytes", "twin_bytes"]

OPERANDS = 3
"""Operands that a case has room for."""
FORMATS = 8


class Case(Struct):
    """One execution by a thread: the measure by which it was chosen, and the numbers."""

    MEASURE = field("d")
    REAL = field("d")
    TWIN = field("d")
    INHERITED = field("d")
    """The largest error of an operand."""
    ROUNDING = field("d")
    """The error that the instruction makes of operands without any."""
    BLOCK = field("q")
    THREAD = field("q")
    ADDRESS = field("Q")
    """In memory, where it is a store."""
    ORIGIN = field("q")
    COUNT = field("q")
    """Operands that are floats."""
    SOURCES = field("d", OPERANDS)
    TWINS = field("d", OPERANDS)


class Row(Struct):
    """An instruction: what its results were like."""

    LANES = field("q")
    """Threads that have executed it."""
    WORST = field(Case)
    """The largest error of a result."""
    ARISES = field(Case)
    """The largest error that arises at its line."""
    DECISIONS = field("q")
    """Threads for which a comparison, or a conversion to an integer, has another result in float64."""
    DECISION = field(Case)
    INFINITIES = field("q")
    """Threads that made one of operands without any."""
    INFINITY = field(Case)
    NANS = field("q")
    NAN = field(Case)


class Area(Struct):
    """A range of host memory whose floats are followed, and its planes, one for each format."""

    LOW = field("Q")
    SIZE = field("Q")
    ARRAY = field("q")
    """Whether it is an array that the host gave."""
    PLANES = field("Q", FORMATS)


class Areas(Struct):
    """The areas of a launch; they follow."""

    COUNT = field("q", align=64)


class Cell(Struct):
    """The twin of an element; a plane has a copy of the memory, then a cell for each element."""

    TWIN = field("d")
    ORIGIN = field("i")
    AROSE = field("f")


def twin_bytes(bits: int, count: int) -> int:
    """Bytes a lane of a register's twins: its bits, then of each element what a cell has."""
    return bits // 8 + count * Cell.nbytes


def part_offsets(bits: int, number: int) -> tuple[int, int, int]:
    """Where the twins of an element lie in those of a register, and the lines and errors beside them."""
    start = LANES * (bits // 8 + number * Cell.nbytes)
    return start, start + LANES * Cell.ORIGIN, start + LANES * Cell.AROSE


def plane_bytes(nbytes: int, slot: int) -> tuple[int, int]:
    """Where the cells of a plane begin, and its size, for an area of so many bytes and elements of so many bits."""
    start = -(-nbytes // Cell.nbytes) * Cell.nbytes
    return start, start + -(-nbytes * 8 // slot) * Cell.nbytes
