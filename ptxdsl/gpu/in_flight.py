"""Which launches the GPU may still be working on: a fault comes to light in a later call, which is not to blame."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from ..errors import Loc
from ..launch import Argument, Buffer, LaunchConfig

__all__ = ["InFlight"]

_TOLD = 8
"""How many launches a message names."""
_KEPT = 1024


class _Launch(NamedTuple):
    entry: str
    geometry: LaunchConfig
    arguments: tuple[tuple[str, str, tuple[int, ...] | None], ...]
    stream: int
    loc: Loc | None

    def __str__(self) -> str:
        given = ", ".join(n if shape is None else f"{n}: {dtype}{list(shape)}" for n, dtype, shape in self.arguments)
        place = f" at {self.loc.file}:{self.loc.line}" if self.loc else ""
        return f"kernel `{self.entry}`[{self.geometry.grid}, {self.geometry.block}]({given}){place}"


class InFlight:
    """The launches of one GPU since all of its work was last known to be done."""

    def __init__(self) -> None:
        self._launches: deque[_Launch] = deque(maxlen=_KEPT)

    def note(
        self, entry: str, geometry: LaunchConfig, arguments: Sequence[Argument], stream: int, loc: Loc | None
    ) -> None:
        """A launch was handed to the driver."""
        shown = tuple((a.name, a.dtype, a.shape) if type(a) is Buffer else (a.name, "", None) for a in arguments)
        self._launches.append(_Launch(entry, geometry, shown, stream, loc))

    def clear(self, stream: int | None = None) -> None:
        """All are done, or those on a stream."""
        left = [] if stream is None else [launch for launch in list(self._launches) if launch.stream != stream]
        self._launches = deque(left, _KEPT)

    def suspects(self) -> tuple[str, Loc | None]:
        """Who may have caused a fault, in words, and where it was launched if there is only one."""
        launches = list(self._launches)
        if not launches:
            return "a launch that ptxdsl did not make faulted", None
        if len(launches) == 1:
            return f"{launches[0]._replace(loc=None)} faulted", launches[0].loc
        known = list(dict.fromkeys(map(str, reversed(launches))))
        told = "".join(f"\n  {each}" for each in known[:_TOLD])
        more = f"\n  and {len(known) - _TOLD} others" if len(known) > _TOLD else ""
        return f"one of the {len(launches)} launches in flight faulted, the latest first:{told}{more}\n", None
