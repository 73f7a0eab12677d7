"""Names within a function. PTX has nested scopes, the IR has none: what an inner one declares is renamed if need be.

The first to declare a name in a function keeps it, any later one in another scope becomes ``name$1``, ``name$2``: so a
text without nested scopes keeps all its names. Labels may be used before they are placed, so uses are resolved last.
"""

from __future__ import annotations

from collections.abc import Iterable

from .. import ir

__all__ = ["Scope", "Scopes"]


class Scope:
    """One pair of braces: what is declared in it, and what the names meant outside."""

    def __init__(self, parent: Scope | None) -> None:
        self.parent = parent
        self.declared: set[str] = set()
        self.hidden: list[tuple[str, ir.Operand | None]] = []
        self.labels: dict[str, str] = {}

    def label(self, name: str) -> str | None:
        """The label that ``name`` means here, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None


class Scopes:
    """The names of a function while it is parsed: ``names`` gives what each means at this point."""

    def __init__(self, outer: Iterable[str]) -> None:
        self.names: dict[str, ir.Operand] = {}
        self.current = Scope(None)
        self._outer = outer
        self._taken: set[str] = set()

    def enter(self) -> None:
        """Open an inner scope."""
        self.current = Scope(self.current)

    def leave(self) -> bool:
        """Close the innermost scope; False if that was the function itself."""
        for name, before in reversed(self.current.hidden):
            if before is None:
                del self.names[name]
            else:
                self.names[name] = before
        if self.current.parent is None:
            return False
        self.current = self.current.parent
        return True

    def rename(self, name: str) -> str | None:
        """Declare a name in this scope: the one it has in the function; None if the scope has it already."""
        scope = self.current
        if name in scope.declared:
            return None
        scope.declared.add(name)
        return self.fresh(name)

    def fresh(self, name: str) -> str:
        """``name``, or where the function has it already a name like it."""
        scope, unique, number = self.current, name, 0
        while unique in self._taken or (scope.parent is not None and unique in self._outer):
            number += 1
            unique = f"{name}${number}"
        self._taken.add(unique)
        return unique

    def declare(self, names: list[str]) -> bool:
        """Declare all the names in the outermost scope, which is quick; False if that is not as simple as that."""
        scope, new = self.current, set(names)
        if scope.parent is not None or len(new) < len(names) or not new.isdisjoint(self._taken):
            return False
        scope.declared |= new
        self._taken |= new
        return True

    def bind(self, name: str, meaning: ir.Operand) -> None:
        """Let a name mean an operand until the scope ends."""
        if self.current.parent is not None:
            self.current.hidden.append((name, self.names.get(name)))
        self.names[name] = meaning
