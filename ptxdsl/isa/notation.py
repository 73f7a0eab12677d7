"""How a row of the instruction table is written, and what it means.

The chapters (``chapters/*.isa``) are text in the manner of the PTX manual: the syntax of a form at the left margin,
what its parts may be indented below it. ::

    let rnd = rn rz rm rp

    fma{.rnd}{.ftz}{.sat}.f32 d, a, b, c
        "d = a * b + c, rounded once."

A modifier that is the name of a ``let`` or of a ``.name = ...`` line below is a slot, any other stands for itself;
``{...}`` is optional. ``let name = text`` gives the name to modifiers, targets, operands or an expression: ``$name``
stands for the text. The lines below a form:

    .name = v1 v2[8.6 sm_100] $let      the values of a slot; in brackets what a single value needs beyond the row;
                                        ``n{8..256/8}`` is ``n8 n16 ... n256``
    name = expression                   a name for the operands' types and counts, computed from the slots
    where expression                    a combination is legal only if this is true
    ptx 7.0 sm_80 sm_120f               lowest PTX version and target(s) of all that the row spells
    ptx 7.8 sm_90 if expression         ... of what the expression is true for
    until 6.4                           the first PTX version that no longer has it
    relaxed                             registers may be wider than the operand's type (ld, st, cvt)
    does name                           the semantics; the opcode where absent
    control branch                      an effect that does not follow from operands and modifiers: ``arrives``,
    waits grid if expression            ``commits``, ``completes``, ``control``, ``converges``, ``fence``, ``hint``,
                                        ``order``, ``uniform``, ``waits``, as :class:`ptxdsl.isa.effects.Effects` has
                                        them; ``order acquire.gpu`` where the modifiers say no order
    "text"                              one line for people

A row without a ``ptx`` line is in the lowest version and target that the package knows: PTX 6.3 and sm_75.

Operands, comma-separated, in the order of the manual:

    d          written (names that begin with d, or a leading =)   a            read: a register or a number
    +d         read and written                                    a!           a register only
    ~d         may be the sink ``_``; ``_`` itself always is       #n           a number only
    a:type*n   of that type, n of them in braces (0: a plain one)  #n:u32(0..31), (0..64 by 8), (4|8)   such numbers
    d|p        two results joined by a bar                         {!}p, {-}a   may be negated
    &a         may be the address of a variable                    $a           ... or a special register
    {, c}      may be absent                                       a:type or [a]  either
    {, c if x} there exactly if x is true                          {, c when x} may be there only if x is true
    [a]        memory that is read, [=a] written, [+a] both; [a:shared] in that space; [a, c:s32*2] with further parts
    a.part     of a register a byte or halfword may be named, a.part+ must; halves and bytes: of two registers; half and
               byte: a mask of a result
    L:label    a label; f:symbol a function or a list of labels

Types, counts and conditions are Python expressions over the slots' values (strings, None where absent) and the names
of the scalar types, with the functions of :mod:`ptxdsl.isa.expressions`. An operand without a type has that of the
slot ``type``, or else the last type in the mnemonic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from ..types import TYPES, ScalarType
from .effects import Effects, derive
from .expressions import NAMES, evaluate, number
from .reprs import Shown
from .specs import Modifiers, Need, OperandSpec, Slot, Special

__all__ = ["Form", "Modifiers", "Need", "OperandSpec", "Row", "Slot", "Special", "Template"]


@dataclass(frozen=True, slots=True, repr=False)
class Template(Shown):
    """An operand as written in a row: its types and counts still expressions.

    ``present`` is the condition under which it may or must stand there, ``other`` what may stand in its place.
    """

    spec: OperandSpec
    type: str = ""
    count: str = ""
    optional: bool = False
    present: str = ""
    parts: tuple[Template, ...] = ()
    other: Template | None = None

    def choices(self) -> Iterator[Template | None]:
        """What may stand in its place: nothing, itself, its alternative."""
        if self.optional:
            yield None
        if any(part.optional for part in self.parts):
            yield from (replace(self, parts=parts) for parts in _choices(self.parts))
        else:
            yield self
        if self.other:
            yield self.other

    def resolve(self, names: dict[str, Any], default: str | None) -> OperandSpec:
        """The operand for a choice of modifiers; ``default`` is its type if the row gives none."""
        spec = self.spec
        if spec.kind != "value":
            parts = tuple(part.resolve(names, default) for part in self.parts if part.stands(names))
            return replace(spec, parts=parts) if parts else spec
        asked = evaluate(self.type, names) if self.type else default
        if asked is None:
            raise ValueError(f"operand {spec.name} has no type")
        types = tuple(TYPES[each] for each in asked) if isinstance(asked, tuple) else ()
        kind = types[0] if types else TYPES[asked]
        count = len(types) or (evaluate(self.count, names) if self.count else 0)
        return replace(
            spec, type=kind, types=types, count=count if isinstance(count, int) else number(count),
            immediate=spec.immediate and (kind in _NUMERIC or not spec.register),
            sink=spec.sink and (bool(count) or not self.count),
        )

    def stands(self, names: dict[str, Any]) -> bool:
        """Whether the operand can be there with these modifiers."""
        return not self.present or bool(evaluate(self.present, names))


_NUMERIC = (*(TYPES[f"{kind}{bits}"] for kind in "usb" for bits in (8, 16, 32, 64)), TYPES["f32"], TYPES["f64"])
"""The types that a number can be written in."""


@dataclass(frozen=True, eq=False, repr=False)
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

    def __reduce__(self) -> tuple[Any, ...]:
        from .table import form_of, lookup

        return (form_of, (self.mnemonic, lookup(self.mnemonic).index(self)))


@dataclass(frozen=True, eq=False, repr=False)
class Row(Shown):
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
        from .reading import operands

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

    def completions(self, tokens: tuple[str, ...]) -> set[str]:
        """What may stand after these modifiers; "" if they are complete."""
        return set(_complete(self.slots, tokens))

    def _expand(
        self, tokens: tuple[str, ...], chosen: Modifiers, names: dict[str, Any], needs: tuple[Need, ...]
    ) -> Iterator[Form]:
        mnemonic = ".".join((self.opcode, *tokens))
        default = _default(chosen, tokens)
        needs += tuple(need for need, condition in self.needs if not condition or evaluate(condition, names))
        for kept in _choices(tuple(t for t in self.operands if t.stands(names))):
            yield Form(self, mnemonic, chosen, tuple(t.resolve(names, default) for t in kept), needs)


def _default(chosen: Modifiers, tokens: tuple[str, ...]) -> str | None:
    """The type of operands that the row gives none."""
    return chosen.get("type") or next((t for t in reversed(tokens) if t in TYPES), None)


def _choices(templates: tuple[Template, ...]) -> list[tuple[Template, ...]]:
    """Every way to choose among operands that may be absent or something else; the shortest first."""
    ways = (tuple(t for t in way if t) for way in product(*(t.choices() for t in templates)))
    return sorted(ways, key=len)


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
