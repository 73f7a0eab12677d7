"""A schedule as a value: where it leaves the order in which a launch runs by default.

By default a warp runs until it must wait, then the next one that can; an asynchronous operation completes when a wait
needs it. A schedule names the steps that are otherwise: ``"7:0.1 9:0.4#2"`` says that step 7 is warp 1 of block 0, and
step 9 the completion of operation 2 of warp 4 of block 0. Steps are counted from 0, one for each part of a warp from
one synchronisation to the next, and for each completion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Actor", "parse_schedule", "schedule_text"]

_STEP = re.compile(r"(\d+):(\d+)\.(\d+)(?:#(\d+))?")


class Actor(NamedTuple):
    """What makes a step: a warp of a block, or one of the asynchronous operations that it has begun."""

    block: int
    warp: int
    operation: int = -1

    def __str__(self) -> str:
        return f"{self.block}.{self.warp}" + (f"#{self.operation}" if self.operation >= 0 else "")


def parse_schedule(text: str) -> dict[int, Actor]:
    """Which actor makes a step, by the number of the step, of what a launch takes for a schedule."""
    return {
        int(step): Actor(int(block), int(warp), int(operation or -1))
        for step, block, warp, operation in _STEP.findall(text)
    }


def schedule_text(steps: Mapping[int, Actor]) -> str:
    """The same as text; a schedule without a step that is otherwise has its first one."""
    return " ".join(f"{step}:{actor}" for step, actor in (sorted(steps.items()) or [(0, Actor(0, 0))]))
