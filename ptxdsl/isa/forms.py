"""A row of the table, and the forms that it spells: every modifier chosen, every operand's type known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..types import TYPES, ScalarType
from .effects import Effects, derive
from .expressions import NAMES, evaluate
from .reprs import LazyRepr
from .specs import Modifiers, Need, OperandSpec, Slot
from .templates import Template, choices, operands

__all__ = ["Form", "Row"]


@dataclass(eq=False, repr=False)
class Form:
    """A spelling of a row: every slot chosen, every operand's type known. One object for one spelling.

    ``mnemonic`` is the text before the operands, ``modifiers`` the choice in each slot.
    """

    row: Row
    mnemonic: str
    modifiers: Modifiers
    operands: tuple[OperandSpec, ...]
    needs: tuple[Need, ...]

    @property
    def opcode(self) -> str:
        return self.row.opcode

    @property
    def semantics(self) -> str:
        return self.row.semantics

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The modifiers of the mnemonic in order: ``("rn", "f32")`` for ``fma.rn.f32``."""
        return tuple(self.mnemonic.split(".")[1:])

    @cached_property
    def type(self) -> ScalarType | None:
        """The type of the operation: the slot ``type``, or else the last type in the mnemonic."""
        name = _default(self.modifiers, self.tokens)
        return TYPES.get(name) if name else None

    @cached_property
    def space(self) -> str:
        """The state space in the mnemonic, without ``::cta`` or ``::cluster``; ``generic`` where there is none."""
        spaces = ("global", "shared", "local", "const", "param")
        return next((t.split("::")[0] for t in self.tokens if t.split("::")[0] in spaces), "generic")

    @cached_property
    def effects(self) -> Effects:
        """What it does beside computing its results."""
        stated = self.row.stated
        names = {**NAMES, **self.modifiers} if stated else {}
        return derive(
            self.mnemonic, self.operands, self.type, self.space,
            {word: value for word, value, condition in stated if not condition or evaluate(condition, names)},
        )

    def __repr__(self) -> str:
        return f"<Form {self.mnemonic}/{len(self.operands)}>"


@dataclass(eq=False, repr=False)
class Row(LazyRepr):
    """One row of the table. ``syntax`` is the mnemonic as written, ``written`` the operands."""

    opcode: str
    syntax: str
    written: str
    slots: tuple[Slot, ...]
    chapter: str
    doc: str = ""
    semantics: str = ""
    relaxed: bool = False
    needs: tuple[tuple[Need, str], ...] = ()
    until: tuple[int, int] | None = None
    where: tuple[str, ...] = ()
    derived: tuple[tuple[str, str], ...] = ()
    stated: tuple[tuple[str, str, str], ...] = ()

    @cached_property
    def operands(self) -> tuple[Template, ...]:
        return operands(self.written)

    def forms(self, tokens: tuple[str, ...]) -> tuple[Form, ...]:
        """The forms that ``opcode.tokens`` spells in this row, one for each way to leave out operands; () if none."""
        for chosen, needs in _walk(self.slots, tokens):
            names: dict[str, Any] = {**NAMES, **chosen}
            for name, expression in self.derived:
                names[name] = evaluate(expression, names)
            if all(evaluate(expression, names) for expression in self.where):
                return tuple(self._expand(tokens, chosen, names, needs))
        return ()

    def begins(self, tokens: tuple[str, ...]) -> bool:
        """Whether these modifiers are complete, or something may follow them."""
        return next(_complete(self.slots, tokens), None) is not None

    def completions(self, tokens: tuple[str, ...]) -> set[str]:
        """What may stand after these modifiers; "" if they are complete."""
        return set(_complete(self.slots, tokens))

    def _expand(
        self, tokens: tuple[str, ...], chosen: Modifiers, names: dict[str, Any], needs: tuple[Need, ...]
    ) -> Iterator[Form]:
        mnemonic = ".".join((self.opcode, *tokens))
        default = _default(chosen, tokens)
        needs += tuple(need for need, condition in self.needs if not condition or evaluate(condition, names))
        for kept in choices(tuple(t for t in self.operands if t.stands(names))):
            yield Form(self, mnemonic, chosen, tuple(t.resolve(names, default) for t in kept), needs)


def _default(chosen: Modifiers, tokens: tuple[str, ...]) -> str | None:
    """The type of operands that the row gives none."""
    return chosen.get("type") or next((t for t in reversed(tokens) if t in TYPES), None)


def _walk(slots: tuple[Slot, ...], tokens: tuple[str, ...]) -> Iterator[tuple[Modifiers, tuple[Need, ...]]]:
    """Every way to read the modifiers ``tokens`` as a choice in each slot."""
    if not slots:
        if not tokens:
            yield {}, ()
        return
    slot, rest = slots[0], slots[1:]
    for value, need, size in _standing(slot, tokens):
        for chosen, needs in _walk(rest, tokens[size:]):
            yield {slot.name or value: value, **chosen}, (need, *needs) if need else needs
    if slot.optional:
        for chosen, needs in _walk(rest, tokens):
            yield {slot.name or next(iter(slot.values)): None, **chosen}, needs


def _standing(slot: Slot, tokens: tuple[str, ...]) -> Iterator[tuple[str, Need | None, int]]:
    """The values of a slot that the modifiers begin with, what each needs, and of how many modifiers it consists."""
    if tokens and tokens[0] in slot.values:
        yield tokens[0], slot.values[tokens[0]], 1
    for size in range(2, min(len(tokens), 4) + 1):
        value = ".".join(tokens[:size])
        if value in slot.values:
            yield value, slot.values[value], size


def _complete(slots: tuple[Slot, ...], tokens: tuple[str, ...]) -> Iterator[str]:
    if not slots:
        if not tokens:
            yield ""
        return
    slot, rest = slots[0], slots[1:]
    for _, _, size in _standing(slot, tokens):
        yield from _complete(rest, tokens[size:])
    for value in slot.values:
        parts = tuple(value.split("."))
        if len(parts) > len(tokens) and parts[: len(tokens)] == tokens:
            yield parts[len(tokens)]
    if slot.optional:
        yield from _complete(rest, tokens)
