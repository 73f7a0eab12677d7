"""Registers of a warp, read and written from Python."""

from __future__ import annotations

import ctypes

from ..codegen.code import Code
from ..machine.allocation import number_at
from ..machine.layout import LANES

__all__ = ["read_register", "write_register"]


def read_register(code: Code, warp: int, name: str) -> list[int]:
    """The number in each lane of a register of the warp at an address."""
    bits = code.registers.bits(name)
    known = code.operands.facts.offsets.get(name)
    source = warp + code.registers.offsets[name]
    if bits == 1:
        mask = number_at(source, 4)
        return [mask >> lane & 1 for lane in range(LANES)]
    size = bits // 8
    if known is None:
        data = ctypes.string_at(source, LANES * size)
        return [int.from_bytes(data[lane * size : (lane + 1) * size], "little") for lane in range(LANES)]
    base = number_at(source, size)
    return [(base + x) % (1 << bits) for x in known]


def write_register(code: Code, warp: int, name: str, values: dict[int, int]) -> None:
    """Write some lanes of a varying register of the warp at an address."""
    place, bits = warp + code.registers.offsets[name], code.registers.bits(name)
    if bits == 1:
        mask = number_at(place, 4)
        for lane, value in values.items():
            mask = mask & ~(1 << lane) | (value & 1) << lane
        ctypes.memmove(place, mask.to_bytes(4, "little"), 4)
        return
    size = bits // 8
    for lane, value in values.items():
        ctypes.memmove(place + lane * size, (value & (1 << bits) - 1).to_bytes(size, "little"), size)
