"""The schedule that a seed draws: the order of the blocks, which one goes on at a stop, and how long its slice is.

Compiled code draws the warps (``codegen.scheduler``). A launch with a seed runs on one thread, whatever the setting, so
that the same seed gives the same schedule.
"""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from ..codegen.code import Code
from ..machine.layout import Block
from .block_state import BlockState, LaunchState

__all__ = ["SLICES", "SeededSchedule"]

SLICES = (1, 16, 64, 256, 1024, 4096)
"""Time slices; after the short ones a block stops at its first poll, or with the first slice of a warp."""


class SeededSchedule:
    """The draws of one launch; its states run one block after the other, each of which is drawn."""

    def __init__(self, launch: LaunchState) -> None:
        self.launch = launch
        self._random = random.Random(launch.config.seed)
        self._order = self.shuffled(launch.blocks) if launch.spaces.cluster is None else []
        self._free: list[BlockState] = []

    def shuffled(self, count: int) -> list[int]:
        """The numbers below this one in an order that is drawn."""
        order = list(range(count))
        self._random.shuffle(order)
        return order

    def starts(self, waiting: deque[BlockState], most: int) -> bool:
        """Whether a block starts next, before those that wait; these may take so many bytes."""
        if not waiting:
            return True
        return len(waiting) * waiting[0].nbytes < most and self._random.random() < 0.5

    def draw(self, waiting: deque[Any]) -> None:
        """One of those that wait comes to the front."""
        waiting.rotate(self._random.randrange(len(waiting)))

    def slice(self) -> int:
        return self._random.choice(SLICES)

    def begin(self, code: Code) -> BlockState:
        """A state that runs the block that is drawn next."""
        state = self._free.pop() if self._free else BlockState(self.launch, code)
        if state.counter is None:
            state.own_blocks()
        state.assign(self._order[self.launch.take()])
        state.left = self.slice()
        state.put(Block.BUDGET, "i", 0)  # what the block before has left of its slice
        return state

    def end(self, state: BlockState, code: Code) -> None:
        """Its block has come to an end."""
        if state.code is code and state.counter is not None and not state.renews:
            self._free.append(state)
