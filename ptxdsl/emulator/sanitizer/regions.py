"""The ranges of host memory that have shadow words, and those that the global memory of a launch consists of."""

from __future__ import annotations

from typing import NamedTuple

from ...analysis.stores import written_parameters
from ...ir import Module
from ..machine.address_spaces import AddressSpaces
from ..machine.layout import SPACE_BITS
from ..runtime.block_state import LaunchState

__all__ = ["Region", "global_spans"]


class Region(NamedTuple):
    """A range of host memory and its shadow words: their address, and the bytes from one plane to the next."""

    low: int
    nbytes: int
    words: int
    stride: int
    kind: int
    owner: int = 0

    def holds(self, host: int) -> bool:
        return self.low <= host < self.low + self.nbytes


def global_spans(launch: LaunchState, granule: int) -> tuple[list[list[int]], bool]:
    """Global memory in pieces that lie apart: where each begins and ends, and how many arrays are in it.

    Beside them whether any overlap of which the kernel writes one. They are whole granules, of ``1 << granule`` bytes.
    """
    mask = (1 << granule) - 1
    reach, only_read = SPACE_BITS["global"] | SPACE_BITS["generic"], _only_read(launch.spaces)
    spans = sorted(
        (g.place & ~mask, (g.place + g.nbytes + mask) & ~mask, number not in only_read)
        for number, g in enumerate(launch.ranges)
        if g is not None and not g.shared and g.spaces & reach and not g.spaces & SPACE_BITS["param"] and g.nbytes
    )
    merged: list[list[int]] = []
    overlap = written = False
    for low, high, writes in spans:
        if merged and low < merged[-1][1]:
            written |= writes
            overlap |= written
            merged[-1][1] = max(merged[-1][1], high)
            merged[-1][2] += 1
        else:
            merged.append([low, high, 1])
            written = writes
    return merged, overlap


def _only_read(spaces: AddressSpaces) -> frozenset[int]:
    """The ranges of those parameters whose arrays a kernel does not write, wherever else they are passed."""
    found: frozenset[int] | None = spaces.notes.get(_only_read)
    if found is None:
        function = spaces.function
        written = written_parameters(Module(functions=[function]), function.name)
        pointers = (name for name, _, nbytes in spaces.parameters if nbytes == 8)
        found = frozenset(spaces.entries[name] for name in pointers if name not in written)
        spaces.notes[_only_read] = found
    return found
