"""What a debugger and the code of the launch that it debugs share: where to stop, and what to note of the way."""

from __future__ import annotations

from .layout import LANES
from .structs import Struct, field

__all__ = ["EXECUTED", "LOGGED", "DebugControl", "Flag"]

LOGGED = 1 << 16
"""Entries of the log, which keeps the last ones."""
EXECUTED = 4 * LANES
"""Bytes of a statement in the table of what has been executed: a mask of lanes for each warp of the block."""


class Flag:
    """Bits of the byte that each statement has at FLAGS."""

    STOP = 1
    """Stop where any warp comes to it."""
    STOP_FOCUS = 2
    """Stop where the thread in focus comes to it."""
    LOG_STOP = 4
    """Log where any warp comes to it."""
    LOG_FOCUS = 8
    """Log where the thread in focus comes to it."""
    LOG_EXECUTED = 16
    """Log where the thread in focus executes it: where its guard holds."""


class DebugControl(Struct):
    """One for a launch, which one host thread runs."""

    align = 64
    TICK = field("Q")
    """How many statements warps have come to since the launch began. It names a moment: before the last of them."""
    TARGET = field("Q")
    """The tick at which to stop."""
    PAUSE = field("i")
    """Whether to stop at the next statement."""
    STAMPS = field("i")
    """Whether the clocks that threads read show the tick, so that each run of the launch reads the same."""
    BLOCK = field("q")
    """The thread in focus: number of its block, -1 for none,"""
    WARP = field("I")
    """its warp,"""
    LANES = field("I")
    """and a mask that has its lane."""
    FLAGS = field("Q")
    """Address of a byte for each statement (:class:`Flag`)."""
    LOG = field("Q")
    """Address of the log: tick and statement of each entry,"""
    COUNT = field("Q")
    """and how many entries there were, of which LOGGED are kept."""
    WORD = field("Q")
    """Host address of eight bytes that are watched, 0 for none,"""
    MASK = field("Q")
    """which bits of them,"""
    VALUE = field("Q")
    """what they were last,"""
    CHANGED = field("Q")
    """and the tick of the statement that has changed them last, 0 where none has."""
    ANYWHERE = field("i")
    """Whether the addresses below are watched in all blocks, or only in BLOCK."""
    NBYTES = field("Q")
    """Bytes of memory whose stores are noted, 0 for none,"""
    ADDRESS = field("Q")
    """their address in their state space,"""
    GENERIC = field("Q")
    """their generic address,"""
    STORED = field("Q")
    """and the tick of the last store there, 0 where there was none."""
