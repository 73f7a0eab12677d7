"""What is proven of a kernel's accesses, and whether it holds of the code that was made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...ir import Call, Instruction
from ..machine.address_spaces import AddressSpaces

__all__ = ["NOTHING_PROVEN", "Proven", "Refuted", "Upheld", "array_of", "same_statements", "upheld"]


class Proven(NamedTuple):
    """Of a function as it was rewritten: the places of accesses that cannot race, those of accesses to memory that is
    known to be written, and the arrays that the proofs take all accesses to be to, of the exact ones by their number.
    Of arrays with strong accesses ``in_turn`` are those which barriers order, or which are never of one place, whatever
    they are.
    Accesses that ``reach`` memory of a cluster by addresses of ``mapa`` are to no array in global memory.
    """

    ordered: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    arrays: frozenset[tuple[int, str]] = frozenset()
    exact: frozenset[int] = frozenset()
    in_turn: frozenset[int] = frozenset()
    reach: frozenset[int] = frozenset()


NOTHING_PROVEN = Proven()


class Upheld(NamedTuple):
    """The identities of the statements that need no check of their order, none of what they read, or no record as
    strong accesses; the arrays that statements stay ``inside`` of.
    """

    ordered: set[int]
    written: set[int]
    in_turn: set[int]
    inside: dict[int, str]


class Refuted(Exception):
    """A proof does not hold of the code; ``remains`` is what does."""

    def __init__(self, remains: Proven) -> None:
        super().__init__()
        self.remains = remains


def array_of(spaces: AddressSpaces, origin: str) -> str:
    """The name of the memory that a provenance stands for; "" where it may be memory of another name as well."""
    if not origin or origin not in spaces.entries:
        return ""
    area = spaces.ranges[spaces.entries[origin]]
    if area is not None and area.shared and area.nbytes < 0:  # all that have no size begin at one place
        return next(
            name for name, number in spaces.entries.items()
            if (other := spaces.ranges[number]) is not None and other.shared and other.nbytes < 0
        )
    return origin


def same_statements(places: frozenset[int], spaces: AddressSpaces) -> set[int]:
    """The identities of the statements at these places of the function as it was rewritten, and at no others."""
    before = [s for s in spaces.function.body or () if isinstance(s, (Instruction, Call))]
    return {id(before[place]) for place in places} - {id(s) for n, s in enumerate(before) if n not in places}


def upheld(
    proven: Proven, spaces: AddressSpaces, origin_of: Callable[[Any], str], flags: dict[int, tuple[str, ...]]
) -> Upheld:
    """What is proven, of the statements of the code.

    ``origin_of`` is the provenance that the code holds an access to. ``flags`` are those of stores whose value may be
    undefined. Raises :class:`Refuted` where these differ from what the proofs take them to be.
    """
    if proven is NOTHING_PROVEN:
        return Upheld(set(), set(), set(), {})
    before: list[Any] = [s for s in spaces.function.body or () if isinstance(s, (Instruction, Call))]
    known = ((place, name) for place, name in proven.arrays if place not in proven.exact)
    if any(array_of(spaces, origin_of(before[place])) != name for place, name in known):
        raise Refuted(NOTHING_PROVEN)
    partly = {
        name for place, name in proven.arrays
        if before[place].form.effects.writes and any(flags.get(id(before[place]), ()))
    }
    remains = proven.written - {place for place, name in proven.arrays if name in partly}
    if remains != proven.written:
        raise Refuted(proven._replace(written=remains))
    alone = same_statements(proven.exact, spaces)
    inside = {id(before[place]): name for place, name in proven.arrays if id(before[place]) in alone}
    ordered, written, in_turn = (
        same_statements(places, spaces) for places in (proven.ordered, proven.written, proven.in_turn)
    )
    return Upheld(ordered, written, in_turn, inside)
