"""The memory that ``malloc`` gives in a kernel: every piece with its bounds, so that each access is checked.

One byte for each 16 of the heap says how many of them belong to a piece that is given out. Pieces never touch each
other, and what has been freed is given again only when nothing else is left, so that a late access finds it gone.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

__all__ = ["Heap", "Piece"]


class Piece(NamedTuple):
    """What one call of malloc gave: ``room`` bytes from ``address`` on, ``nbytes`` of them to be used.

    ``by`` is the thread that asked for it, later the one that gave it back, in words.
    """

    address: int
    nbytes: int
    room: int
    by: str


class Heap:
    """8 MiB, the default of a GPU."""

    SIZE = 8 << 20
    GRANULE_BITS = 4
    GRANULE = 1 << GRANULE_BITS

    def __init__(self) -> None:
        self._end = 0
        self.given: dict[int, Piece] = {}
        self.freed: dict[int, Piece] = {}

    @cached_property
    def _memory(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        return np.zeros(self.SIZE + 256, np.uint8)

    @cached_property
    def valid(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """Of each granule, how many of its bytes may be used."""
        return np.zeros(self.SIZE >> self.GRANULE_BITS, np.uint8)

    @cached_property
    def start(self) -> int:
        """Its address."""
        return -(-self._memory.ctypes.data // 256) * 256

    def take(self, nbytes: int, by: str = "") -> int:
        """Address of memory for ``nbytes`` bytes, aligned to 16; 0 where there is none left."""
        room = -(-max(1, nbytes) // self.GRANULE) * self.GRANULE + self.GRANULE
        if self._end + room <= self.SIZE:
            address, self._end = self.start + self._end, self._end + room
        else:
            address = self._reused(room)
        if address:
            self.given[address] = Piece(address, nbytes, room, by)
            self._mark(address, nbytes)
        return address

    def give(self, address: int, by: str = "") -> bool:
        """Take memory back; False if it is not given out."""
        piece = self.given.pop(address, None)
        if piece is not None:
            self._mark(address, 0, piece.nbytes)
            self.freed[address] = piece._replace(by=by)
        return piece is not None

    def around(self, address: int) -> tuple[Piece | None, bool]:
        """The piece in or behind which an address lies, and whether it has been freed."""
        for pieces, gone in ((self.given, False), (self.freed, True)):
            for piece in pieces.values():
                if piece.address <= address < piece.address + piece.room:
                    return piece, gone
        return None, False

    def _mark(self, address: int, nbytes: int, before: int = 0) -> None:
        first = (address - self.start) >> self.GRANULE_BITS
        whole, rest = divmod(nbytes, self.GRANULE)
        self.valid[first : first + -(-before // self.GRANULE)] = 0
        self.valid[first : first + whole] = self.GRANULE
        if rest:
            self.valid[first + whole] = rest

    def _reused(self, room: int) -> int:
        """The first run of freed pieces, side by side, that has so much room; 0 where there is none."""
        run: list[Piece] = []
        for piece in sorted(self.freed.values()):
            if run and run[-1].address + run[-1].room != piece.address:
                run = []
            run.append(piece)
            spare = sum(piece.room for piece in run) - room
            if spare >= 0:
                for used in run:
                    del self.freed[used.address]
                if spare:
                    start = run[0].address + room
                    self.freed[start] = Piece(start, 0, spare, piece.by)
                return run[0].address
        return 0
