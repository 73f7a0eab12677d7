"""What the searches of rule R3 have found in a trace, so that most changes need none.

Each place that holds a register has a reference to it. How many references a change has besides depends on its way: the
instructions that the frames up to the kernel's are at. So a register that has no more references than those which were
searched for at its way has no more holders than they had; and where a place like theirs holds it, no other one does.

That is kept of registers that nothing of the user's holds, as those that a helper makes, and of those that lie at one
place of a container: that is no second holder of a variable which was taken from there, whatever reads it later. Two
registers must have been searched for: one may have had a reference that only C code knows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import compress, repeat
from operator import is_
from types import FrameType
from typing import Any, NamedTuple

from ..builder import Trace
from ..introspection.frame_variables import locals_of
from ..introspection.reachable import child, children
from ..values.value import Reg
from .holders import Found, Holder

__all__ = ["Taken", "Way", "is_alone", "is_known", "note"]

Way = tuple[Any, ...]
_Container = dict[int, tuple[str, tuple[tuple[str, Any], ...]]]
"""By the number of a frame, counted from the kernel's on, how it reaches a container: a variable, the steps from it."""


class Taken(NamedTuple):
    """The variable through which a register is changed, and the one that it was taken from: ``acc = sums[0]``."""

    frame: int
    name: str
    root: str


_ALONE = Taken(-1, "", "")
"""Of registers that nothing holds."""


class _Searched:
    """The registers that were searched for at a way and were held alike."""

    def __init__(self) -> None:
        self.references = sys.maxsize
        """The fewest that one had, without those of snapshots."""
        self.container: _Container = {}
        """That of the last one."""
        self._registers: set[int] = set()

    def add(self, reg: Reg, references: int, container: _Container) -> None:
        self.references, self.container = min(self.references, references), container
        if len(self._registers) < _ENOUGH:
            self._registers.add(id(reg))

    def allows(self, reg: Reg, references: int) -> bool:
        """Whether a register that is held alike has no other holder, having so many references."""
        return references <= self.references and (len(self._registers) == _ENOUGH or id(reg) in self._registers)


_ENOUGH = 2


def is_alone(reg: Reg, references: int, way: Way, trace: Trace) -> bool:
    """Whether nothing holds a register that has so many references, without those of snapshots."""
    alike: dict[Taken | None, _Searched] = trace.searched.get(way, {})
    return _ALONE in alike and alike[_ALONE].allows(reg, references)


def is_known(stack: Sequence[FrameType], reg: Reg, references: int, way: Way, trace: Trace) -> bool:
    """Whether one place of a container holds a register, and nothing else but what was taken from there."""
    alike: dict[Taken | None, _Searched] = trace.searched.get(way, {})
    if not any(searched.allows(reg, references) for searched in alike.values()):
        return False
    variables = [locals_of(frame) for frame in reversed(stack)]
    names = [
        (number, name) for number, held in enumerate(variables)
        for name in compress(held, map(is_, held.values(), repeat(reg)))
    ]
    if len(names) > 1:
        return False
    known = trace.containers.get(id(reg))
    for container in (*([known] if known else []), *(searched.container for searched in alike.values())):
        reached = _reached(container, variables, reg)
        if not names and next(reached, None) is None:
            continue
        taken = Taken(*names[0], dict(reached).get(names[0][0], "")) if names else None
        searched = alike.get(taken)
        if searched is not None and searched.allows(reg, references):
            trace.containers[id(reg)] = container
            return True
    return False


def _reached(container: _Container, variables: list[dict[str, Any]], reg: Reg) -> Iterator[tuple[int, str]]:
    """The frames in which a container is reached that holds the register, with the variable."""
    for number, (root, steps) in container.items():
        value: Any = variables[number].get(root) if number < len(variables) else None
        for form, key in steps:
            value = child(value, form, key)
        plain = type(value) in (list, tuple)
        groups: list[Sequence[Any]] = [value] if plain else [part.held for part in children(value)]
        if any(id(reg) in map(id, held) for held in groups):
            yield number, root


def note(
    reg: Reg, references: int, way: Way, trace: Trace, found: Sequence[Found], taken: Taken | None
) -> None:
    """Note what a search has found. ``taken``: through what it is changed, if it was taken from the one place."""
    holders = [holder for each in found for holder in each.places]
    names = [name for each in found for name in each.names]
    container: _Container = {}
    if not holders and not names:
        taken = _ALONE
    elif len({holder.place for holder in holders}) != 1 or holders[0].held is not reg or len(names) != bool(taken):
        return
    for number, each in enumerate(reversed(found)):
        for holder in each.places:
            if taken is None or taken.frame != number or taken.root == holder.root:
                container.setdefault(number, (holder.root, _steps(holder)))
    trace.containers[id(reg)] = container
    trace.searched.setdefault(way, {}).setdefault(taken, _Searched()).add(reg, references, container)


def _steps(holder: Holder) -> tuple[tuple[str, Any], ...]:
    """How a container is reached from its variable."""
    found: list[tuple[str, Any]] = []
    node = holder.node
    while node.parent is not None:
        found.append((node.form, node.key))
        node = node.parent
    return tuple(reversed(found))
