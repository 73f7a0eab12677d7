"""atom and red."""

from __future__ import annotations

from .memory import address_values
from .micro_op import MicroOp
from .operand_classes import OperandClass

__all__ = ["Atomic"]


class Atomic(
    MicroOp, may_fault=True, repeatable=False, inlinable=True, reads_memory=True, writes_memory=True
):
    """A read and a write that nothing comes between, lane by lane.

    ``operation`` is PTX's name, ``function`` the mnemonic of the instruction that computes the new value where LLVM has
    no such operation. ``host_atomic`` where other threads of the host may do the same. ``sources`` has one entry an
    operand, each with one class an element.
    """

    operation: str
    function: str
    bits: int
    host_atomic: bool
    address: OperandClass
    dests: tuple[OperandClass, ...]
    sources: tuple[tuple[OperandClass, ...], ...]
    guard: OperandClass
    masked: bool

    @property
    def values(self) -> tuple[str, ...]:
        return address_values(self.address)
