"""Updates of memory by a load and a store: which atomic operation does the same; loads that a ``cas`` confirms."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir import Address, Instruction
from ...isa import lookup
from ..codegen.code import Code
from .accesses import checked_access, role_of, strength
from ..machine.shadow import Role
from .uses import Values, copies_value

__all__ = ["Update", "Updates"]

_SPACES = {"global": "global_", "shared": "shared"}
_ATOMIC = {
    "add": ("add", "adds v"), "sub": ("add", "adds v, so give it the negative"),
    "max": ("max", "keeps the greater one"), "min": ("min", "keeps the lesser one"),
    "and": ("and", "clears bits"), "or": ("or", "sets bits"), "xor": ("xor", "flips bits"),
}
"""The atomic operation that does the same, and what it does."""


class Update(NamedTuple):
    """A load and a store that together do ``operation`` in a ``type``; "" where no atomic does that at once."""

    operation: str
    type: str

    def hint(self, array: str, space: str) -> str:
        """How to lose no update."""
        where = _SPACES.get(space, space)
        if not self.operation:
            return (
                "a load and a store are no update: try again with `ptx.atom"
                f".{where}.cas.b32({array} + i, old, new)` until it gives `old`"
            )
        operation, does = _ATOMIC[self.operation]
        return (
            f"a load and a store are no update: `ptx.red.{where}.{operation}.{self.type}({array} + i, v)` "
            f"{does}, and loses none"
        )


class Updates:
    """What is known of the updates in each code of a launch."""

    def __init__(self) -> None:
        self._values: dict[int, Values] = {}

    def _of_code(self, code: Code) -> Values:
        return self._values.setdefault(id(code), Values(code.graph))

    def confirmed(self, code: Code, *places: int) -> bool:
        """Whether one of two accesses is a weak load that a compare-and-swap confirms, and the other one is strong."""
        statements = code.graph.statements
        if any(place >= len(statements) for place in places):
            return False
        one, other = (statements[place] for place in places)
        for place, load, rest in ((places[0], one, other), (places[1], other, one)):
            access = checked_access(load.form) if isinstance(load, Instruction) else None
            if access is None or access.writes or strength(load.form) or not strength(rest.form):  # type: ignore[union-attr]
                continue
            if self._of_code(code).confirms(place):
                return True
        return False

    def of(self, code: Code, *places: int) -> Update | None:
        """The update that a store among these statements makes; None where none does."""
        for place in places:
            found = self._update(code, place)
            if found is not None:
                return found
        return None

    def _update(self, code: Code, place: int) -> Update | None:
        statements = code.graph.statements
        store: Any = statements[place] if place < len(statements) else None
        access = checked_access(store.form) if isinstance(store, Instruction) else None
        if access is None or role_of(access) != Role.WRITE or strength(store.form):
            return None
        address, value = store.operands[access.operand], getattr(store.operands[1], "name", "")
        made = self._made(code, value, place)
        if made is None:
            return None
        operation, *tokens = made.form.mnemonic.split(".")
        sources = [getattr(operand, "name", "") for operand in made.operands[1:]]
        if not any(self._loads(code, source, address) for source in sources):
            return None
        atomic, kind = _ATOMIC.get(operation, ("", ""))[0], tokens[-1] if tokens else ""
        if atomic == "add" and kind == "s64":
            kind = "u64"  # which has the same sums
        known = atomic and lookup(f"red.global.{atomic}.{kind}")
        return Update(operation, kind) if known and not (operation == "sub" and kind[0] == "f") else Update("", "")

    @staticmethod
    def _made(code: Code, name: str, before: int) -> Instruction | None:
        """The instruction that computes a register, the last one before a statement."""
        for place in range(before - 1, -1, -1):
            statement = code.graph.statements[place]
            if any(register.name == name for register in code.graph.def_use[place].writes):
                if not isinstance(statement, Instruction) or statement.form.effects.accesses:
                    return None
                copied = copies_value(statement.form)
                source = getattr(statement.operands[1], "name", "") if copied else ""
                return Updates._made(code, source, place) if source else statement
        return None

    def _loads(self, code: Code, name: str, address: Address) -> bool:
        """Whether a register holds what a load has read at an address, as it is or converted."""
        values = self._of_code(code)
        for place, statement in enumerate(code.graph.statements):
            if not isinstance(statement, Instruction):
                continue
            access = checked_access(statement.form)
            if access is None or access.writes or statement.operands[access.operand] != address:
                continue
            if name in values.copies_of(place):
                return True
        return False
