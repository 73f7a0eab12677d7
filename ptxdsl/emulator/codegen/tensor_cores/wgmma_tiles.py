"""The tiles of wgmma in shared memory: where their pieces of 16 bytes lie, as a descriptor says."""

from __future__ import annotations

from ....isa.matrix_descriptors import ADDRESS, LEADING, STRIDE, SWIZZLE
from ...semantics.lanes import Bits, Lanes

__all__ = ["PIECE", "DescribedTile"]

PIECE = 16


class DescribedTile:
    """The addresses of a tile's pieces before the swizzle, which :meth:`swizzled` adds."""

    def __init__(self, b: Lanes, descriptor: Bits) -> None:
        self.start, self.leading, self.stride, mode = (
            field.of(descriptor) for field in (ADDRESS, LEADING, STRIDE, SWIZZLE)
        )
        self.plain = mode.eq(0)
        """Whether there is no swizzle."""
        self.span = self.plain.pick(PIECE, b.bits(64, 256) >> mode)
        """Bytes of a row that is swizzled as a whole."""
        self.pieces = self.span >> 4
        self.mask = self.pieces - 1

    def line(self, at: Bits) -> Bits:
        """The begin of a line, of a tile that is K-major."""
        return self.start + (at >> 3) * self.stride + (at & 7) * self.span

    def depth(self, k: Bits) -> Bits:
        """The begin of what all lines have at a k, where these follow each other."""
        return self.start + (k >> 3) * self.plain.pick(self.leading, self.stride) + (k & 7) * self.span

    def along(self, number: Bits) -> Bits:
        """Bytes from there to the piece of eight lines."""
        slab, within = number.divide(self.pieces, False), number & self.mask
        return slab * self.plain.pick(self.stride, self.leading) + within * PIECE

    def swizzled(self, address: Bits) -> Bits:
        return address ^ (((address >> 7) & self.mask) << 4)
