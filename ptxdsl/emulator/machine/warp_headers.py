"""What the warps of a block have before their registers, when the block begins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from .layout import LANES, NEVER, Warp

__all__ = ["warp_headers"]


@cache
def warp_headers(block: tuple[int, int, int]) -> list[bytes]:
    """The header of each warp of a block of this shape."""
    return list(_headers(block))


def _headers(block: tuple[int, int, int]) -> Iterator[bytes]:
    import numpy as np

    x, y, z = block
    threads = x * y * z
    for number in range(-(-threads // LANES)):
        flat = np.arange(number * LANES, (number + 1) * LANES)
        tids = [flat % x, flat // x % y, flat // (x * y)]
        header = np.zeros(Warp.REGISTERS, np.uint8)
        words = header.view(np.int32)
        words[Warp.INDEX // 4] = number
        mask = (1 << min(LANES, threads - number * LANES)) - 1
        header.view(np.uint32)[Warp.INITIAL // 4] = mask
        header.view(np.uint32)[[Warp.ACTIVE // 4, Warp.ALIVE // 4]] = 0xFFFFFFFF
        words[Warp.PARKED // 4] = NEVER
        header.view(np.uint32)[Warp.FRESH // 4 :][:4] = mask, mask, NEVER, number
        words[Warp.AFTER // 4] = -1
        for axis, tid in enumerate(tids):
            words[Warp.TID // 4 + axis] = tid[0]
            start = Warp.TIDS // 4 + LANES * axis
            words[start : start + LANES] = tid
        yield header.tobytes()
