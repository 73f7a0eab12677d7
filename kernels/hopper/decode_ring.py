"""What a decoding kernel is made for, and the side of it that brings keys and values: dense caches, or pages.

Boxes of a tensor copy have the rows that lie together: a tile of a dense cache, a page or its largest even share of a
cache of pages. In shared memory both are the same tile. Boxes behind the end of a sequence are taken from behind the
last page, where there are zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import (
    Pipeline, ScalarType, cdiv, check, dynamic_shared, loop, minimum, ptx, reg, s64, tiles, tma, u32, u64, when,
)

from .decode_state import ROWS
from .shares import Piece, Share

__all__ = ["SLAB", "WARPS", "Heads", "Kind", "Plan", "Ring", "place_of", "plan_of"]

SLAB = 64
"""Columns of 128 bytes of a tile."""
WARPS = 4
"""Those that multiply."""
_RING = 196608
"""Bytes of all stages, at most."""


class Plan(NamedTuple):
    """Tiles of ``keys`` x ``dim`` of k and v, and how many stages of them."""

    dim: int
    keys: int
    stages: int

    @property
    def shared(self) -> int:
        """Bytes of dynamic shared memory."""
        return self.stages * 2 * self.keys * self.dim * 2


def plan_of(dim: int) -> Plan:
    """The plan for a head dimension.

    >>> plan_of(80), plan_of(256)
    (Plan(dim=128, keys=64, stages=6), Plan(dim=256, keys=64, stages=3))
    """
    wide = cdiv(dim, SLAB) * SLAB
    keys = 128 if wide == SLAB else 64
    return Plan(wide, keys, _RING // (4 * keys * wide))


class Kind(NamedTuple):
    """What a kernel is made for."""

    dtype: ScalarType
    dim: int
    halves: int
    """Of the 16 rows of a product, whether the lower 8 are used, too: 2; else 1."""
    lengths: ScalarType | None
    """The type of an array of lengths, None where one number is that of all."""
    table: ScalarType | None = None
    """The type of a table of pages, None of dense caches."""
    page: int = 0
    heads_first: bool = False

    @property
    def box(self) -> int:
        """Rows of a tensor copy: of those that lie together in a page, a power of two."""
        keys = plan_of(self.dim).keys
        return min(keys, self.page & -self.page) if self.page else keys

    @property
    def name(self) -> str:
        pages = f"_paged_{self.table}_{self.box}{'_heads_first' * self.heads_first}" if self.table else ""
        return f"hopper_decode_{self.dtype}_hd{self.dim}_rows{8 * self.halves}_{self.lengths or 'uniform'}{pages}"


class Heads(NamedTuple):
    """How the query heads are cut in units: ``group`` share keys, ``parts`` products of at most 16 of them."""

    count: Any
    group: Any
    parts: Any

    def key_head(self, unit: Any) -> Any:
        return ptx.div.u32(unit, self.parts)

    def rows(self, unit: Any) -> tuple[Any, Any]:
        """The first query head of a unit, and how many it has."""
        key_head = self.key_head(unit)
        first = (unit - key_head * self.parts) * ROWS
        return key_head * self.group + first, minimum(self.group - first, ROWS)


class Ring:
    """The stages of a block."""

    def __init__(self, kind: Kind, plan: Plan) -> None:
        self.kind, self.plan = kind, plan
        self.k = tiles.Ring(dynamic_shared(kind.dtype, align=1024), plan.stages, plan.keys, plan.dim)
        self.v = tiles.Ring(self.k.end, plan.stages, plan.keys, plan.dim)
        boxes = plan.keys // kind.box
        self.lanes = min(32, boxes)
        """Lanes that bring a stage, each as many boxes."""
        self.boxes = boxes // self.lanes
        self.pipe = Pipeline(
            plan.stages, producers=self.lanes, consumers=WARPS, nbytes=2 * self.k.first.nbytes // self.lanes
        )

    def produce(self, share: Share, k: Any, v: Any, heads: Heads, place: Callable[..., Any]) -> None:
        """Fill the stages, by one warp; ``place(piece, key, key_head)`` are the coordinates but for the column."""
        first = share.first()
        with when(ptx.laneid < self.lanes):
            tma.prefetch_map(k)
            tma.prefetch_map(v)
            side = self.pipe.producer()

            def work(piece: Piece) -> None:
                key_head = heads.key_head(piece.unit)
                with loop(piece.tile, piece.tile + piece.count) as tile:
                    row = ptx.laneid * (self.boxes * self.kind.box)
                    at = [
                        place(piece, tile * self.plan.keys + (row + box * self.kind.box), key_head)
                        for box in range(self.boxes)
                    ]
                    slot = side.acquire()
                    for ring, source in ((self.k, k), (self.v, v)):
                        for box, coordinates in enumerate(at):
                            self._copy(ring[slot], row + box * self.kind.box, source, coordinates, slot.full)

            share.pieces(first, work)

    def _copy(self, tile: Any, row: Any, source: Any, at: Callable[[int], tuple[Any, ...]], full: Any) -> None:
        for column in range(0, self.plan.dim, SLAB):
            to = tile.place + (row * SLAB + column * self.plan.keys)
            tma.load(to, source, at(column), full)


def place_of(kind: Kind, heads: Heads, table: Any, pages: Any) -> Callable[..., Any]:
    """Where the boxes of keys lie: their coordinates in a map, by the column."""
    if kind.table is None:
        def dense(piece: Piece, key: Any, key_head: Any) -> Callable[[int], tuple[Any, ...]]:
            row = piece.sequence * ptx.div.u32(heads.count, heads.group) + key_head
            return lambda column: (row, key, column)

        return dense

    def paged(piece: Piece, key: Any, key_head: Any) -> Callable[[int], tuple[Any, ...]]:
        page, within = reg(u32, pages), key % kind.page  # no page: zeros come
        with when(key < piece.length):
            entry = table[piece.sequence, key // kind.page].to(s64)
            check(entry.bits(u64) < pages.to(u64), "paged_decode: a page beyond the cache")
            page.set(entry.to(u32))
        inner = (key_head, within) if kind.heads_first else (within, key_head)
        return lambda column: (page, *inner, column)

    return paged
