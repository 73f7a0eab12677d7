"""The classes of operands: where a value lies, how many lanes it has, and its bits, as one short word.

``X32`` is one number a lane, ``U32`` one for the warp, ``A32`` one for the warp plus lane offsets known beforehand,
``H32`` one for each row of the block in the warp, ``B32`` a field of the block state, ``I32`` an immediate, ``K`` an
address that is a number; ``P`` and ``N`` a predicate and its complement, a mask, ``XP`` and ``UP`` one that is written;
``_`` a sink, ``#5`` a number that shapes the code, and the empty word no operand at all.
"""

from __future__ import annotations

from functools import cache

__all__ = [
    "ABSENT", "ABSOLUTE", "NEGATED", "PREDICATE", "SINK", "OperandClass", "affine", "block_field", "by_row",
    "immediate", "per_lane", "shaping", "uniform",
]


class OperandClass(str):
    """The class of an operand; a word, so that it is hashed and compared as fast as one."""

    __slots__ = (
        "affine", "bits", "block_field", "by_row", "immediate", "per_lane", "predicate", "scalar", "shaping", "storage",
        "uniform",
    )

    def __init__(self, word: str) -> None:
        self.storage = letter = word[:1]
        """Its letter."""
        self.bits = int(word[1:]) if word[1:].isdigit() else 0
        """The bits of a number, 0 for a predicate; what a number is that shapes the code."""
        self.predicate = word[-1:] == "P" or letter == "N"
        self.per_lane, self.uniform, self.affine = letter == "X", letter == "U", letter == "A"
        self.by_row, self.immediate = letter == "H", letter == "I"
        self.block_field, self.shaping = letter == "B", letter == "#"
        self.scalar = letter in ("U", "B", "I", "K")
        """One number for the warp."""


@cache
def per_lane(bits: int) -> OperandClass:
    """A register with a number for each lane; 0 bits are a predicate."""
    return OperandClass(f"X{bits or 'P'}")


@cache
def uniform(bits: int) -> OperandClass:
    """A register with one number for the warp; 0 bits are a predicate."""
    return OperandClass(f"U{bits or 'P'}")


@cache
def affine(bits: int) -> OperandClass:
    """A register with one number for the warp, to which each lane adds an offset known beforehand."""
    return OperandClass(f"A{bits}")


@cache
def by_row(bits: int) -> OperandClass:
    """A register with a number for each row of the block that lies in the warp."""
    return OperandClass(f"H{bits}")


@cache
def block_field(bits: int) -> OperandClass:
    """A field of the block state."""
    return OperandClass(f"B{bits}")


@cache
def immediate(bits: int) -> OperandClass:
    """A number in the record."""
    return OperandClass(f"I{bits}")


@cache
def shaping(number: int) -> OperandClass:
    """A number that shapes the code."""
    return OperandClass(f"#{number}")


ABSENT, SINK, PREDICATE, NEGATED, ABSOLUTE = (OperandClass(word) for word in ("", "_", "P", "N", "K"))
