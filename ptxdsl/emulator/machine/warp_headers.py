"""What the warps of a block have before their registers, when the block begins."""

from __future__ import annotations

from functools import cache

from .layout import FULL, LANES, NEVER, Warp
from .warp_rows import lanes_of_warps, warps_of

__all__ = ["warp_headers"]

_HEAD, _TIDS = Warp.span("ACTIVE", "FRESH"), Warp.span("TIDS", "TIDS")


@cache
def warp_headers(block: tuple[int, int, int]) -> list[bytes]:
    """The header of each warp of a block of this shape."""
    x, y, z = block
    threads, lanes, headers = x * y * z, lanes_of_warps(block), []
    for number in range(warps_of(block)):
        flat = range(number * lanes, number * lanes + LANES)
        tids = [*(n % x for n in flat), *(n // x % y for n in flat), *(n // (x * y) for n in flat)]
        mask = (1 << min(lanes, threads - number * lanes)) - 1
        header = bytearray(Warp.REGISTERS)
        _HEAD.pack_into(  # in the order of the fields of Warp
            header, 0, FULL, FULL, NEVER, number, 0, 0, 0, mask, 0, 0, -1, *tids[::LANES], 0, 0, mask, mask, NEVER,
            number,
        )
        _TIDS.pack_into(header, Warp.TIDS, *tids)
        headers.append(bytes(header))
    return headers
