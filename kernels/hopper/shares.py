"""How persistent blocks share work evenly along a row of tiles, and tell each other where a share ends within a sum.

The tiles that are added up, of all sequences and units, stand in one row, sequence by sequence and unit by unit, and
each block takes as many neighbouring ones: a piece of a sequence, whole sequences, and a piece again. For decoding a
tile is of keys, and a unit the query heads of one product; for a product of matrices there is one sequence, a tile is a
step along k, and a unit a tile of the result. Lengths may lie in the GPU's memory: the blocks find their shares
themselves. A sequence without keys has a tile, too, so that somebody writes its zeros.

The block that ends a sequence waits for those before it, which began earlier. An arrival is a number that no other
launch has, so that nothing needs zeros beforehand, and what waited for it removes it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from secrets import randbits
from typing import Any, NamedTuple

from ... import break_if, loop, maximum, minimum, ptx, reg, select, u32, warp, when

__all__ = ["Arrivals", "Lengths", "Piece", "Share", "arrival"]

_numbers = count(randbits(62))


class Lengths:
    """The keys of each sequence: ``of(sequence)`` is a u32, the same for all of them where ``uniform``."""

    def __init__(self, of: Callable[[Any], Any], uniform: bool, batch: Any, units: Any, keys: int) -> None:
        self.of, self.uniform, self.batch, self.units, self.keys = of, uniform, batch, units, keys

    def tiles(self, length: Any) -> Any:
        """The tiles of a sequence."""
        return maximum((length + (self.keys - 1)) // self.keys, 1)

    def _counted(self, first: Any) -> Any:
        """The tiles of all units of the sequence ``first`` + lane; 0 behind the last one."""
        sequence, count = first + ptx.laneid, reg(u32, 0)
        with when(sequence < self.batch):
            count.set(self.tiles(self.of(sequence)) * self.units)
        return count

    def total(self) -> Any:
        """The tiles of all sequences and units; by a whole warp."""
        if self.uniform:
            return self.tiles(self.of(0)) * self.units * self.batch
        total = reg(u32, 0)
        with loop(0, self.batch, 32) as first:
            total += self._counted(first)
        return warp.reduce_sum(total)

    def find(self, tile: Any) -> tuple[Any, Any]:
        """The sequence of a tile, of which there are more, and its number among the sequence's; by a whole warp."""
        if self.uniform:
            each = self.tiles(self.of(0)) * self.units
            sequence = ptx.div.u32(tile, each)
            return sequence, tile - sequence * each
        sequence, left = reg(u32, 0), reg(u32, tile)
        with loop():
            through = warp.scan(lambda a, b: a + b, self._counted(sequence))
            before = ptx.popc.b32(ptx.vote.sync.ballot.b32(through <= left, warp.MASK))
            passed = warp.shuffle(through, maximum(before, 1) - 1)
            left -= select(before > 0, passed, 0)
            sequence += before
            break_if(before < 32)
        return sequence.copy(), left.copy()


class Piece(NamedTuple):
    """``count`` tiles from ``tile`` on of the ``tiles`` of a ``length`` of keys, for a unit of a sequence."""

    sequence: Any
    unit: Any
    tile: Any
    count: Any
    tiles: Any
    length: Any


class Share:
    """The tiles of this block, from ``start`` to ``stop``; a warp finds them by itself."""

    def __init__(self, lengths: Lengths) -> None:
        self.lengths = lengths
        total, blocks = lengths.total(), ptx.nctaid.x
        self.each = ptx.div.u32(total, blocks)
        self.more = total - self.each * blocks
        """The first so many blocks have a tile more."""
        self.start = self._before(ptx.ctaid.x)
        self.stop = self._before(ptx.ctaid.x + 1)

    def _before(self, block: Any) -> Any:
        return block * self.each + minimum(block, self.more)

    def block_of(self, tile: Any) -> Any:
        """The block that has a tile."""
        large = self.more * (self.each + 1)
        rest = self.more + ptx.div.u32(tile - large, maximum(self.each, 1))
        return select(tile < large, ptx.div.u32(tile, self.each + 1), rest)

    def first(self) -> Piece:
        """The piece that the block begins with; it must have a tile."""
        sequence, tile = self.lengths.find(self.start)
        length = self.lengths.of(sequence)
        tiles = self.lengths.tiles(length)
        unit = ptx.div.u32(tile, tiles)
        tile = tile - unit * tiles
        return Piece(sequence, unit, tile, minimum(tiles - tile, self.stop - self.start), tiles, length)

    def pieces(self, first: Piece, work: Callable[[Piece], None]) -> None:
        """``work(piece)`` for each piece of the block, from the ``first`` on: a loop."""
        sequence, unit, tile = (reg(u32, each) for each in (first.sequence, first.unit, first.tile))
        left = reg(u32, self.stop - self.start)
        with loop():
            length = self.lengths.of(sequence)
            tiles = self.lengths.tiles(length)
            count = minimum(tiles - tile, left)
            work(Piece(sequence.copy(), unit.copy(), tile.copy(), count, tiles, length))
            left -= count
            break_if(left == 0)
            tile.set(0)
            unit += 1
            with when(unit == self.lengths.units):
                unit.set(0)
                sequence += 1

    def parts(self, piece: Piece) -> tuple[Any, Any]:
        """The first of the blocks that a sequence is shared by, which this one ends with ``piece``, and how many."""
        first = self.block_of(self.start - piece.tile)
        return first, ptx.ctaid.x + 1 - first


def arrival() -> int:
    """A number that no other launch has, in this process or another."""
    return next(_numbers)


class Arrivals(NamedTuple):
    """What blocks have left in global memory, two parts each: of the piece that goes on a sequence, of one that begins.

    ``numbers`` has two words a block, of any contents.
    """

    numbers: Any
    own: Any
    """That of the launch."""

    @staticmethod
    def part(first: Any, number: Any) -> Any:
        """Of the blocks from ``first`` on, the first one's piece begins the sequence, the others' go on."""
        return (first + number) * 2 + (number == 0).to(u32)

    def publish(self, part: Any) -> None:
        """By one thread, behind a barrier of all that wrote the part."""
        ptx.st.release.gpu.global_.u64(self.numbers + part, self.own)

    def take(self, first: Any, parts: Any, threads: int) -> None:
        """Wait for all parts of a sequence, and remove their numbers, so that the launch can be repeated.

        By so many threads, and then a barrier of theirs.
        """
        with loop(ptx.tid.x, parts, threads) as number:
            place = self.numbers + self.part(first, number)
            with loop():
                break_if(ptx.ld.acquire.gpu.global_.u64(place) == self.own)
            place[0] = 0
