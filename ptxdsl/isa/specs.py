"""What rows of the table are made of: needs, modifiers, operands, special registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..types import ScalarType
from .reprs import LazyRepr

__all__ = ["Modifiers", "Need", "OperandSpec", "Slot", "Special"]

Modifiers = dict[str, "str | None"]


class Need(NamedTuple):
    """The lowest PTX version and the targets of which one must be met."""

    version: tuple[int, int]
    targets: tuple[str, ...]


class Special(NamedTuple):
    """A special register. ``components`` are the letters that may follow its name after a dot, () if none may.

    ``relaxed``: it may be read in half of its bits, as wide as it was in earlier versions of PTX.
    """

    name: str
    type: ScalarType
    components: tuple[str, ...]
    needs: tuple[Need, ...]
    doc: str
    relaxed: bool = False


class Slot(NamedTuple):
    """One position among the modifiers; ``name`` is empty for a modifier that stands for itself."""

    name: str
    values: dict[str, Need | None]
    optional: bool


@dataclass(slots=True, eq=False, repr=False)
class OperandSpec(LazyRepr):
    """What one operand of a form must be.

    ``role`` is ``r``, ``w`` or ``rw``; ``kind`` is ``value``, ``address``, ``label`` or ``symbol``. ``count`` is 0 for
    a plain operand and n for n of them in braces, whose types are ``types`` where they differ. For an address ``role``
    says what happens to the memory, ``space`` is its state space where the operand itself names one, and ``parts`` are
    the further operands in the brackets. Numbers lie within ``bounds``, both included, and are multiples of ``step``,
    or are one of ``choices``: see ``admits``. ``variable`` and ``special``: a value may also be the address of a
    variable or a special register. ``selector`` is the pattern of the parts of a register that may be named
    (``%r1.b0``), ``selected`` says that one must be; there ``negatable`` means a minus sign. ``fixed``: foreign text
    has no number in place of the register either.
    """

    name: str
    role: str = "r"
    kind: str = "value"
    type: ScalarType | None = None
    count: int = 0
    register: bool = True
    immediate: bool = True
    negatable: bool = False
    sink: bool = False
    joined: bool = False
    bounds: tuple[int | float, int | float] | None = None
    space: str | None = None
    parts: tuple[OperandSpec, ...] = ()
    variable: bool = False
    special: bool = False
    step: int = 1
    choices: tuple[int, ...] = ()
    types: tuple[ScalarType, ...] = ()
    selector: str = ""
    selected: bool = False
    fixed: bool = False

    def admits(self, literal: float) -> bool:
        """Whether a literal number is within what the operand may be (its type apart)."""
        if self.choices:
            return literal in self.choices
        if self.bounds is None:
            return True
        return self.bounds[0] <= literal <= self.bounds[1] and (self.step == 1 or literal % self.step == 0)

    @property
    def written(self) -> bool:
        """Whether registers of this operand are results."""
        return self.kind == "value" and self.role != "r"

    @property
    def result(self) -> bool:
        """Whether registers of this operand are only written."""
        return self.kind == "value" and self.role == "w"
