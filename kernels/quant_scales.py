"""The scales and minimums of the sub-blocks of Q4_K and Q5_K, in registers."""

from __future__ import annotations

from typing import Any

from .. import f16, f32, select, u32, unpack

__all__ = ["sub_block_scales"]


def sub_block_scales(header: Any, group: Any) -> list[Any]:
    """Scale and minimum of the sub-blocks 2 group and 2 group + 1, as f32: s0, m0, s1, m1.

    ``header`` is the first 16 bytes of a super-block as four words. Sub-blocks 0 to 3 have their 6 bits in words 1 and
    2; 4 to 7 have their low 4 bits in word 3 and their high 2 bits on top of words 1 and 2.
    """
    pair = header[0].bits(u32)
    d, dmin = (half.to(f32) for half in unpack(pair, f16))
    s, m, low = header[1:]
    upper = group >= 2
    scales = select(upper, (low & 0x0F0F0F0F) | ((s >> 2) & 0x30303030), s & 0x3F3F3F3F)
    minimums = select(upper, ((low >> 4) & 0x0F0F0F0F) | ((m >> 2) & 0x30303030), m & 0x3F3F3F3F)
    shift = (group & 1) * 16
    scales, minimums = scales >> shift, minimums >> shift
    return [unit * _byte(word, i).to(f32) for i in (0, 1) for unit, word in ((d, scales), (dmin, minimums))]


def _byte(word: Any, index: int) -> Any:
    return (word >> (8 * index)) & 0xFF
