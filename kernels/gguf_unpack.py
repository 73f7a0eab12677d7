"""Weights of GGUF blocks in registers: what each lane of a block unpacks, for products with them.

An unpacker takes the address of a block and the number of the lane among those that share it, and gives runs of
consecutive weights in float32: pairs of the first weight's place in the block and the weights. Blocks of 18, 22, 34 and
210 bytes begin at even addresses only, so they are read by 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import f16, f32, ptx, s8, s32, u16, u32

from .gguf import FORMATS
from .quant_scales import sub_block_scales

__all__ = ["UNPACKERS", "Unpacker"]

Runs = list[tuple[Any, list[Any]]]


class Unpacker(NamedTuple):
    """How many lanes share a block, and what each of them unpacks."""

    lanes: int
    runs: Callable[[Any, Any], Runs]


def _half(block: Any, at: int) -> Any:
    return block.cast(f16)[at // 2].to(f32)


def _word(block: Any, at: Any) -> Any:
    """Four bytes at an even place."""
    low, high = ((block + at).cast(u16)[i].to(u32) for i in (0, 1))
    return low | (high << 16)


def _bytes(word: Any, mask: int, shift: int = 0) -> list[Any]:
    return [((word >> (8 * i + shift)) & mask) for i in range(4)]


def _legacy(name: str, bits: int, minimum: bool) -> Callable[[Any, Any], Runs]:
    """The formats of 32 weights: a lane of four has bytes 4 lane to 4 lane + 3, low and high."""
    at = FORMATS[name].nbytes - 16

    def runs(block: Any, lane: Any) -> Runs:
        d = _half(block, 0)
        shift = _half(block, 2) if minimum else d * -float(1 << (bits - 1))
        packed = _word(block, at + 4 * lane)
        found: Runs = []
        for upper in (0, 1):
            quants = _bytes(packed, 15, 4 * upper)
            if bits == 5:
                high = _word(block, at - 4) >> (4 * lane + 16 * upper)
                quants = [q | (((high >> i) & 1) << 4) for i, q in enumerate(quants)]
            found.append((16 * upper + 4 * lane, [ptx.fma.rn.f32(q.to(f32), d, shift) for q in quants]))
        return found

    return runs


def _q8_0(block: Any, lane: Any) -> Runs:
    d = _half(block, 0)
    words = [_word(block, 2 + 8 * lane + 4 * i) for i in (0, 1)]
    return [(8 * lane + 4 * i, [d * _signed(word, n) for n in range(4)]) for i, word in enumerate(words)]


def _signed(word: Any, n: int) -> Any:
    """Byte n of a word as a signed number."""
    return ptx.bfe.s32(word.bits(s32), 8 * n, 8).to(f32)


def _q4_k(block: Any, lane: Any) -> Runs:
    """A lane of 32 has four bytes of one group of 64 weights."""
    return _of_groups(block, lane, 16, None)


def _q5_k(block: Any, lane: Any) -> Runs:
    return _of_groups(block, lane, 48, 16)


def _of_groups(block: Any, lane: Any, nibbles: int, fifth: int | None) -> Runs:
    group, column = lane >> 3, (lane & 7) * 4
    words = block.cast(u32)
    scales = sub_block_scales(words.load(0, width=4), group)
    packed = words[nibbles // 4 + lane]
    high = words[fifth // 4 + (lane & 7)] >> (2 * group) if fifth is not None else None
    found: Runs = []
    for half, (scale, minimum) in enumerate((scales[:2], scales[2:])):
        quants = _bytes(packed, 15, 4 * half)
        if high is not None:
            quants = [q | (((high >> (8 * i + half)) & 1) << 4) for i, q in enumerate(quants)]
        weights = [ptx.fma.rn.f32(q.to(f32), scale, -minimum) for q in quants]
        found.append((group * 64 + 32 * half + column, weights))
    return found


def _q6_k(block: Any, lane: Any) -> Runs:
    """A lane of 32 has two columns of each quarter of its half of the block."""
    half, column = lane >> 4, (lane & 15) * 2
    d = _half(block, 208)
    low = [((block + half * 64 + 32 * i + column).cast(u16))[0].to(u32) for i in (0, 1)]
    high = (block + 128 + half * 32 + column).cast(u16)[0].to(u32)
    found: Runs = []
    for quarter in range(4):
        scale = d * (block + 192 + half * 8 + (column >> 4) + 2 * quarter).cast(s8)[0].to(f32)
        nibbles = low[quarter % 2] >> (4 * (quarter // 2))
        pairs = high >> (2 * quarter)
        weights = []
        for i in (0, 8):
            q = ((nibbles >> i) & 15) | (((pairs >> i) & 3) << 4)
            weights.append(scale * (q.to(f32) - 32.0))
        found.append((half * 128 + 32 * quarter + column, weights))
    return found


UNPACKERS: dict[str, Unpacker] = {
    "q8_0": Unpacker(4, _q8_0),
    "q4_0": Unpacker(4, _legacy("q4_0", 4, False)),
    "q4_1": Unpacker(4, _legacy("q4_1", 4, True)),
    "q5_0": Unpacker(4, _legacy("q5_0", 5, False)),
    "q5_1": Unpacker(4, _legacy("q5_1", 5, True)),
    "q4_k": Unpacker(32, _q4_k),
    "q5_k": Unpacker(32, _q5_k),
    "q6_k": Unpacker(32, _q6_k),
}
