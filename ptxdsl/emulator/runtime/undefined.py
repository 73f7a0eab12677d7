"""Shuffles that take from lanes that do not take part: blocks go on in code that follows what they gave."""

from __future__ import annotations

import ctypes
import struct
from functools import partial

from ..codegen.code import Code
from ..codegen.translation import translate
from ..instructions.undefined import ORIGINS, UndefinedNumbers, undefined
from ..machine.allocation import number_at
from ..machine.layout import LANES, Warp
from .block_state import BlockState
from .deoptimise import deoptimise, resume_at
from .faults import set_bits

__all__ = ["follow", "follows", "mask_of", "origin_of", "put_mask", "take_origins"]


def follows(code: Code) -> bool:
    """Whether code follows undefined numbers."""
    return ORIGINS in code.registers.offsets


def follow(state: BlockState) -> BlockState:
    """Resume in code that does."""
    old = state.code
    if old.undefined is None:
        assert old.source is not None
        function, spaces, block, instrument = old.source
        old.undefined = translate(function, spaces, block, True, partial(UndefinedNumbers, inner=instrument))
    new: Code = old.undefined
    if not old.conservative:
        return deoptimise(state, new)
    warps, stride, keep = state.warps, state.stride, state.warps_memory
    state.attach(new)
    for number in range(state.count):
        before, after = warps + number * stride, state.warps + number * state.stride
        ctypes.memmove(after, before, Warp.REGISTERS)
        for name, offset in old.registers.offsets.items():
            size = max(4, LANES * old.registers.bits(name) // 8)
            if name in new.registers.offsets:
                ctypes.memmove(after + new.registers.offsets[name], before + offset, size)
        for field in (Warp.PC, Warp.WAITS):
            pc = state.get_warp(number, field, "Q")
            if pc:
                state.put_warp(number, field, "Q", new.base if pc == old.base else resume_at(old, new, pc))
    for arrivals in state.arrivals.values():
        for arrival in arrivals:
            arrival.pc = resume_at(old, new, arrival.pc)
    del keep
    return state


def mask_of(code: Code, warp: int, name: str) -> int:
    """The lanes in which a register of the warp at an address is undefined."""
    offset = code.registers.offsets.get(undefined(name))
    return 0 if offset is None else number_at(warp + offset, 4)


def put_mask(code: Code, warp: int, name: str, lanes: int, mask: int) -> None:
    """Set it for some lanes."""
    offset = code.registers.offsets.get(undefined(name))
    if offset is not None:
        whole = number_at(warp + offset, 4) & ~lanes | mask & lanes
        ctypes.memmove(warp + offset, whole.to_bytes(4, "little"), 4)


def origin_of(code: Code, warp: int, lane: int) -> tuple[int, int, int, int]:
    """The statement and the lane of the shuffle that gave a lane an undefined number, the lane that it took from.

    The last says of that whether it was there (1), lived (2) and executed the shuffle (4).
    """
    words = struct.unpack("<32I", ctypes.string_at(warp + code.registers.offsets[ORIGINS], 4 * LANES))
    found = lane if words[lane] else next(n for n, word in enumerate(words) if word)
    word = words[found]
    return word >> 8 & 0x7FFFFF, found, word & 31, word >> 5 & 7


def take_origins(code: Code, warp: int, other: Code, from_warp: int, lanes: int, statement: int) -> None:
    """Take over what another warp's memory says of the origins in some lanes, which is this statement."""
    place = warp + code.registers.offsets[ORIGINS]
    for lane in set_bits(lanes):
        word = number_at(from_warp + other.registers.offsets[ORIGINS] + 4 * lane, 4)
        if word:
            word = word & 0x800000FF | statement << 8
            ctypes.memmove(place + 4 * lane, word.to_bytes(4, "little"), 4)
