"""Loads and stores."""

from __future__ import annotations

from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["Load", "LoadParameter", "MemoryCheck", "Pattern", "Store", "address_values"]

Pattern = tuple[str, int]
"""How the lanes of an affine address lie: contiguous (c) or equal (b) within segments of so many lanes."""


def address_values(address: OperandClass) -> tuple[str, ...]:
    """The values of an address.

    ``flags`` are the bytes and the spaces of the access, ``entry`` that of the buffer table,
    ``slot`` where the base lies, ``offset`` what is added, of an affine address that of its lowest lane; ``extent`` is
    its last byte from there, ``vector`` the lane offsets. Where all segments but the first start comes behind these.
    """
    if not address.bits:
        return "flags", "entry", "offset"
    return ("flags", "entry", "slot", "offset", "low", "extent", "vector")[: 7 if address.affine else 4]


class LoadParameter(MicroOp, may_fault=False, repeatable=True, inlinable=True):
    """A load from the kernel's parameters, whose place is checked when it is lowered."""

    bits: int
    signed: bool
    dests: tuple[OperandClass, ...]
    guard: OperandClass
    masked: bool

    @property
    def fusible(self) -> bool:
        return not self.guard


class Load(MicroOp, may_fault=True, repeatable=True, inlinable=True, reads_memory=True):
    """ld of one or more elements of so many bits."""

    address: OperandClass
    pattern: Pattern | None
    bits: int
    signed: bool
    dests: tuple[OperandClass, ...]
    guard: OperandClass
    masked: bool

    @property
    def fusible(self) -> bool:
        return not self.guard

    @property
    def values(self) -> tuple[str, ...]:
        return address_values(self.address)


class Store(MicroOp, may_fault=True, repeatable=False, inlinable=True, writes_memory=True):
    """st; ``uniform`` where all lanes store the same at one address."""

    address: OperandClass
    pattern: Pattern | None
    bits: int
    sources: tuple[OperandClass, ...]
    uniform: bool
    guard: OperandClass
    masked: bool

    @property
    def fusible(self) -> bool:
        return not self.guard

    @property
    def values(self) -> tuple[str, ...]:
        return address_values(self.address)


class MemoryCheck(MicroOp, may_fault=True, repeatable=True, inlinable=False):
    """The memory must be there; nothing happens to it."""

    address: OperandClass
    nbytes: int
    writes: bool
    guard: OperandClass
