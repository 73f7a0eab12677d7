"""Which registers hold floats, and of which format: what the float64 twins of numbers are kept for.

PTX moves floats in registers of untyped bits, so a register's formats follow from the instructions that compute with
it, and from those of the registers that it is copied from and to. One may have several, as in code of nvcc; which of
them a number is in is known while the kernel runs. What is only carried from memory to memory may be of any format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...ir import Call, Instruction, Operand, Register, Vector, elements
from ...isa import Form
from ...isa.fragments import element_bits, shape_of
from ...types import TYPES, ScalarType
from ..semantics.float64 import element_of
from ..semantics.formats import FORMATS, Format

__all__ = ["FloatLayout", "FloatRegisters", "copied", "layout_of", "matrix_types"]

_WIDEST = 64
"""Bits of a register that is followed."""
BYTE = 8


class FloatLayout(NamedTuple):
    """``lanes`` numbers of a format in a register, each in ``slot`` bits."""

    name: str
    lanes: int
    slot: int

    @property
    def bits(self) -> int:
        return self.lanes * self.slot

    @property
    def format(self) -> Format:
        return FORMATS[self.name]

    def times(self, n: int) -> FloatLayout:
        return FloatLayout(self.name, self.lanes * n, self.slot)

    def part(self, n: int) -> FloatLayout | None:
        """The layout of each of ``n`` equal parts, None where they are no numbers."""
        return FloatLayout(self.name, self.lanes // n, self.slot) if self.lanes % n == 0 else None


def layout_of(kind: ScalarType | None) -> FloatLayout | None:
    """The layout of a float type; a tf32 lies as an f32 does."""
    name = element_of(kind)
    if not name or kind is None or kind.bits > _WIDEST:
        return None
    return FloatLayout("f32" if name == "tf32" else name, kind.lanes, kind.bits // kind.lanes)


def copied(form: Form) -> tuple[int, ...]:
    """The operands that an instruction copies whole, or packs, to its first."""
    if form.effects.selects:
        return (1, 2)
    if form.semantics == "mov":
        return (1,)
    if form.semantics == "shfl":
        return (2 if form.operands[1].written else 1,)
    return ()


def matrix_types(form: Form) -> tuple[str, str, str, str]:
    """The types of d, a, b and c of a product of fragments, those of two being f16; empty ones where it is none."""
    dense = not any(token.partition("::")[0] == "sp" for token in form.tokens)
    if not (dense and shape_of(form.tokens)) or form.effects.accesses or form.effects.completes:
        return "", "", "", ""
    kinds = [token for token in form.tokens if token in TYPES][:4]
    if len(kinds) == 2:
        kinds = [kinds[0], "f16", "f16", kinds[1]]
    if len(kinds) != 4 or "block_scale" in form.tokens or not all(element_of(TYPES[kind]) for kind in kinds):
        return "", "", "", ""
    return kinds[0], kinds[1], kinds[2], kinds[3]


def _packed(name: str, form: Form, bits: int) -> FloatLayout | None:
    """The layout of numbers of a fragment in a register of so many bits; None where they do not fill their slots."""
    single = layout_of(TYPES[name])
    slot = element_bits(name, form.tokens)
    if single is None or (slot and single.format.bits != slot):
        return None
    return FloatLayout(single.name, bits // single.slot, single.slot)


class FloatRegisters:
    """The layouts of each register of a function, by its name, and the formats that memory may have."""

    def __init__(self, statements: Iterable[Instruction | Call]) -> None:
        self.of: dict[str, set[FloatLayout]] = {}
        self._computed: set[str] = set()
        """Registers that instructions compute with."""
        self._loaded: dict[str, Register] = {}
        """Those that memory is loaded to, or stored from."""
        self._copies: list[tuple[Operand, Operand]] = []
        for statement in statements:
            if isinstance(statement, Instruction):
                self._take(statement)
        self._spread()
        self.formats = tuple(sorted(
            {(one.name, one.slot) for found in self.of.values() for one in found if one.slot >= BYTE}
        ))
        for name, register in self._loaded.items():
            if name not in self._computed and not self.of.get(name) and register.type.bits <= _WIDEST:
                self.of[name] = {
                    FloatLayout(form, register.type.bits // slot, slot)
                    for form, slot in self.formats if register.type.bits % slot == 0
                }
        self._spread()

    def layouts(self, operand: Operand) -> list[FloatLayout]:
        """The layouts of a register, in a fixed order; none of anything else."""
        return sorted(self.of.get(operand.name, ())) if isinstance(operand, Register) else []

    def _take(self, statement: Instruction) -> None:
        form, operands = statement.form, statement.operands
        for spec, operand in zip(form.operands, operands):
            kinds = spec.types or (spec.type,) * max(1, spec.count)
            for kind, item in zip(kinds, elements(operand)):
                self._add(item, layout_of(kind))
        for name, operand in zip(matrix_types(form), operands):
            for item in elements(operand):
                if name and isinstance(item, Register):
                    self._add(item, _packed(name, form, item.type.bits))
        access, copies = form.effects.access, copied(form)
        if copies:
            self._copies += [(operands[0], operands[n]) for n in copies]
        elif access is not None and not (form.effects.atomic and form.effects.atomic not in ("exch", "cas")):
            for operand in operands:
                self._loaded.update((i.name, i) for i in elements(operand) if isinstance(i, Register))
        else:
            self._computed.update(i.name for operand in operands for i in elements(operand) if isinstance(i, Register))

    def _add(self, operand: Operand, layout: FloatLayout | None) -> bool:
        """Whether a register is not known yet to have a layout, which it has from now on."""
        if layout is None or not isinstance(operand, Register) or operand.type.bits != layout.bits:
            return False
        found = self.of.setdefault(operand.name, set())
        if layout in found:
            return False
        found.add(layout)
        return True

    def _spread(self) -> None:
        changed = True
        while changed:
            changed = False
            for dest, source in self._copies:
                for operand, layout in (*self._derived(dest, source), *self._derived(source, dest)):
                    changed = self._add(operand, layout) or changed

    def _derived(self, one: Operand, other: Operand) -> Iterator[tuple[Operand, FloatLayout | None]]:
        """What the layouts of one side of a copy say of the other: packed, unpacked, or as it is."""
        if isinstance(one, Vector) and isinstance(other, Vector):
            return
        if isinstance(one, Vector):
            for item in one.items:
                yield from ((other, layout.times(len(one.items))) for layout in self.layouts(item))
        else:
            items = elements(other)
            for layout in self.layouts(one):
                yield from ((item, layout.part(len(items))) for item in items)
