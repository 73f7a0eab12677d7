"""Faults of control flow."""

from __future__ import annotations

from ...errors import EmulationError, TrapError
from ..machine.layout import Fault
from .faults import Scene, explains

__all__: list[str] = []


@explains(Fault.TRAP)
def _trap(scene: Scene, _: Fault) -> EmulationError:
    return scene.raised(TrapError, "the kernel executed `trap`")


@explains(Fault.BRANCH_INDEX)
def _index(scene: Scene, _: Fault) -> EmulationError:
    return scene.raised(EmulationError, "the index of `brx.idx` is beyond its list of labels")
