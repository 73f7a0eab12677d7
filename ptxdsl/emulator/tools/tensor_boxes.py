"""Which bytes of a tensor a box of a tensor map takes, row by row: what a tensor copy reads or writes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from ...isa.tensor_maps import ELEMENTS, decode

__all__ = ["box_bytes", "box_ranges"]

_BITS = {element.code: element.bits for element in ELEMENTS.values()}


def box_ranges(data: bytes, coordinates: Sequence[int], tokens: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Address and bytes of each row of a box that lies in the tensor; ``coordinates`` are the innermost first.

    With the tokens ``tile::gather4`` and ``tile::scatter4`` the last four coordinates are rows.
    """
    fields = decode(data.ljust(128, b"\0"))
    rank, bits = fields["rank"][0], _BITS[fields["elemtype"][0]]
    extents, boxes = fields["global_dim"][:rank], fields["box_dim"][:rank]
    strides = [
        (high << 32 | low) << 4 for low, high in zip(fields["global_stride"], fields["global_stride_high"])
    ]
    places = [value - (1 << 32) if value >> 31 else value for value in coordinates]
    first, end = max(0, places[0]), min(extents[0], places[0] + boxes[0])
    if any(token in ("tile::gather4", "tile::scatter4") for token in tokens):
        outer: list[tuple[int, ...]] = [(row,) for row in places[1:5]]
    else:
        outer = list(itertools.product(*(range(at, at + box) for at, box in zip(places[1:rank], boxes[1:]))))
    for index in outer:
        if first < end and all(0 <= at < extent for at, extent in zip(index, extents[1:])):
            row = sum(at * stride for at, stride in zip(index, strides))
            yield fields["global_address"][0] + row + first * bits // 8, (end - first) * bits // 8


def box_bytes(data: bytes, tokens: Sequence[str]) -> int:
    """The bytes of a box in shared memory: all of it, also what lies outside of the tensor."""
    fields = decode(data.ljust(128, b"\0"))
    rank, bits = fields["rank"][0], _BITS[fields["elemtype"][0]]
    if any(token in ("tile::gather4", "tile::scatter4") for token in tokens):
        return 4 * fields["box_dim"][0] * bits // 8
    if any(token.startswith("im2col") for token in tokens):
        return fields["box_dim"][0] * fields["pixels"][0] * bits // 8
    return math.prod(fields["box_dim"][:rank]) * bits // 8
