"""What a warp, or a block, may run before another one does, and what waiting costs of that."""

from __future__ import annotations

__all__ = [
    "FOLLOWS", "INTERRUPTS", "LONE_POLL_COST", "OWN_POLL", "OWN_POLL_COST", "PATIENCE", "POLL", "POLL_COST",
    "SHORT_LOOP", "SLICE", "SLICE_COST",
]

SLICE = 4096
"""Backward branches that a warp may take before another one runs: its time slice."""
SHORT_LOOP = 16
"""Statements of a loop that polls memory: it probably waits."""
POLL = SLICE + 1
"""What a backward branch of such a loop costs: another warp runs at once."""
OWN_POLL = POLL + 1
"""The same where only warps of the same block can be what it waits for."""
FOLLOWS = 16
"""What it costs where each turn polls another place."""
SLICE_COST, POLL_COST, LONE_POLL_COST, OWN_POLL_COST = 16, 4, 16, 1
"""What a slice of a warp, or a poll, takes of the budget of its block, after which compiled code returns to Python; a
poll takes more where no other warp of the block can run: then it waits for another block; less where that cannot be."""
INTERRUPTS = 1 << 29
"""How probably, of 2**32, a stop before a strong access ends the time slice of a block, where a seed draws."""
PATIENCE = 1024
"""How long diverged lanes may wait, 16 a slice and 1 a poll, before the others of their warp run too."""
