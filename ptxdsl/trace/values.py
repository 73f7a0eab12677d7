"""Run-time values: what a kernel's Python variables hold while it is traced."""

from __future__ import annotations

from .. import ir
from ..types import ScalarType
from .builder import Region

__all__ = ["Reg", "Value"]


class Value:
    """The immutable result of an instruction, alive in the region that computed it."""

    __slots__ = ("register", "type", "region")

    def __init__(self, register: ir.Register, type: ScalarType, region: Region) -> None:
        self.register = register
        self.type = type
        self.region = region


class Reg(Value):
    """A register that may be changed: by ``+=`` and its like, by `set`, by ``out=``."""

    __slots__ = ()
