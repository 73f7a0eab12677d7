"""What warps meet at, as the emulator goes through it: generations of barriers, phases of mbarriers.

Each has the moments that end it. A wait refers to the list of these, which is complete by the time when the emulator
has let the wait end.
"""

from __future__ import annotations

from ..emulator.machine.allocation import number_at
from ..emulator.machine.layout import Mbarrier
from .events import Moment

__all__ = ["BarrierPhases", "MbarrierPhases"]


class BarrierPhases:
    """A barrier of a block or a cluster: its arrivals, generation by generation."""

    def __init__(self) -> None:
        self._open: list[Moment] = []
        self._threads = 0

    def arrive(self, moment: Moment, threads: int, expected: int) -> list[Moment]:
        """The generation that an arrival of so many threads belongs to; ``expected`` 0: all threads that live."""
        generation = self._open
        generation.append(moment)
        self._threads += threads
        if expected and self._threads >= expected:
            self.end(generation)
        return generation

    def end(self, generation: list[Moment]) -> None:
        """A warp was let go, so all arrivals of its generation have come."""
        if generation is self._open:
            self._open, self._threads = [], 0


class MbarrierPhases:
    """An mbarrier, at a host address. That a phase is over is read from its word, as the emulator keeps it."""

    def __init__(self, host: int) -> None:
        self._host = host
        self._parity = self._read()
        self._now: list[Moment] = []
        self._before: list[Moment] = []

    def _read(self) -> int:
        return number_at(self._host) >> Mbarrier.PARITY & 1

    def update(self) -> None:
        """See whether the phase is over."""
        parity = self._read()
        if parity != self._parity:
            self._parity, self._before, self._now = parity, self._now, []

    def add(self, moment: Moment) -> None:
        """The phase waits for this moment."""
        self._now.append(moment)

    def ended(self) -> list[Moment]:
        """What the phase has waited for that is over."""
        return self._before
