"""Which launches the GPU may still be working on: a fault comes to light in a later call, which is not to blame."""

from __future__ import annotations

import ctypes
import itertools
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import Loc
from ..launch import Argument, Buffer, LaunchConfig

__all__ = ["InFlight", "Ring"]

_TOLD = 8
"""How many launches a message names."""
_KEPT = 1024
_numbers = itertools.count(1)


class _Launch(NamedTuple):
    entry: str
    geometry: LaunchConfig
    arguments: tuple[tuple[str, str, tuple[int, ...] | None], ...]
    stream: int
    loc: Loc | None
    planned: bool = False
    """Whether machine code made it: then ``arguments`` and ``loc`` are those of the launch that its plan was made of,
    with arguments of the same types."""

    def __str__(self) -> str:
        given = ", ".join(n if shape is None else f"{n}: {dtype}{list(shape)}" for n, dtype, shape in self.arguments)
        place = f" at {self.loc.file}:{self.loc.line}" if self.loc else ""
        head = f"kernel `{self.entry}`[{self.geometry.grid}, {self.geometry.block}]"
        if not self.planned:
            return f"{head}({given}){place}"
        return f"{head}({', '.join(name for name, *_ in self.arguments)}), like the one{place} of ({given}),"


def _shown(arguments: Sequence[Argument]) -> tuple[tuple[str, str, tuple[int, ...] | None], ...]:
    """What a message says of arguments: their names, and the types and shapes of arrays."""
    return tuple((a.name, a.dtype, a.shape) if type(a) is Buffer else (a.name, "", None) for a in arguments)


class Ring(ctypes.Structure):
    """The launches that machine code made: ``count`` so far, and the last ones by their plans and streams."""

    _fields_ = [("count", ctypes.c_uint64), ("launches", ctypes.c_uint64 * 2 * _KEPT)]


class InFlight:
    """The launches of one GPU since all of its work was last known to be done."""

    def __init__(self) -> None:
        self.ring = Ring()
        """Machine code notes here what it launches, since it has no time to say more."""
        self._plans: dict[int, _Launch] = {}
        self._launches: deque[tuple[int, _Launch]] = deque(maxlen=_KEPT)
        """Those of Python, each with the count of the others when it was made."""
        self._done, self._done_on = 0, dict[int, int]()
        """How many launches of machine code are done, of all and of those on a stream."""

    def note(
        self, entry: str, geometry: LaunchConfig, arguments: Sequence[Argument], stream: int, loc: Loc | None
    ) -> None:
        """A launch was handed to the driver."""
        self._launches.append((self.ring.count, _Launch(entry, geometry, _shown(arguments), stream, loc)))

    def planned(self, entry: str, geometry: LaunchConfig, arguments: Sequence[Argument], loc: Loc | None) -> int:
        """The number by which machine code notes launches like this one."""
        number = next(_numbers)
        if len(self._plans) >= _KEPT:
            self._plans.pop(next(iter(self._plans)), None)
        self._plans[number] = _Launch(entry, geometry, _shown(arguments), 0, loc, planned=True)
        return number

    def clear(self, stream: int | None = None) -> None:
        """All are done, or those on a stream."""
        left = [] if stream is None else [each for each in list(self._launches) if each[1].stream != stream]
        self._launches = deque(left, _KEPT)
        if stream is None:
            self._done, self._done_on = self.ring.count, {}
        else:
            self._done_on[stream] = self.ring.count

    def _all(self) -> list[_Launch]:
        """The oldest first."""
        found = [(at, 0, launch) for at, launch in list(self._launches)]
        for at in range(max(self._done, self.ring.count - _KEPT), self.ring.count):
            number, stream = self.ring.launches[at % _KEPT]
            if number in self._plans and at >= self._done_on.get(stream, 0):
                found.append((at, 1, self._plans[number]._replace(stream=stream)))
        return [launch for *_, launch in sorted(found, key=lambda each: each[:2])]

    def suspects(self) -> tuple[str, Loc | None]:
        """Who may have caused a fault, in words, and where it was launched if there is only one."""
        launches = self._all()
        if not launches:
            return "a launch that ptxdsl did not make faulted", None
        if len(launches) == 1:
            (launch,) = launches
            return f"{launch if launch.planned else launch._replace(loc=None)} faulted", launch.loc
        known = list(dict.fromkeys(map(str, reversed(launches))))
        told = "".join(f"\n  {each}" for each in known[:_TOLD])
        more = f"\n  and {len(known) - _TOLD} others" if len(known) > _TOLD else ""
        return f"one of the {len(launches)} launches in flight faulted, the latest first:{told}{more}\n", None
