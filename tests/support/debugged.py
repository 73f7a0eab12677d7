"""Launches in a debugger that a function of the test steers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ptxdsl
from ptxdsl.emulator.debugger.debugged_launch import DebuggedLaunch
from ptxdsl.emulator.debugger.observer import Debugger

__all__ = ["debugged"]


class _Steered(Debugger):
    def __init__(self, steer: Callable[[DebuggedLaunch], object], history: int) -> None:
        super().__init__(history)
        self.said: list[str] = []
        self._steer = steer

    def say(self, text: str) -> None:
        self.said.append(text)

    def steer(self, launch: DebuggedLaunch) -> None:
        self._steer(launch)


def debugged(
    launch: Callable[..., object], *args: Any, steer: Callable[[DebuggedLaunch], object], history: int = 256,
    **named: Any,
) -> list[str]:
    """Launch a kernel in a debugger; what that has said."""
    debugger = _Steered(steer, history)
    with ptxdsl.use("emulator"), debugger:
        launch(*args, **named)
    return debugger.said
