"""Faults of control flow."""

from __future__ import annotations

from ...errors import EmulationError, TrapError
from ..machine.layout import Fault
from ..machine.unsupported import render
from ..rewrite.loop_bounds import WrappedBound
from .faults import Scene, explains

__all__: list[str] = []


@explains(Fault.TRAP)
def _trap(scene: Scene, _: Fault) -> EmulationError:
    if isinstance(scene.statement, WrappedBound):
        return _wrapped(scene, scene.statement)
    return scene.raised(TrapError, "the kernel executed `trap`")


def _wrapped(scene: Scene, trap: WrappedBound) -> EmulationError:
    difference = trap.difference
    kind = difference.form.mnemonic.rpartition(".")[2]
    place = f" of line {difference.loc.line}" if difference.loc is not None else ""
    return scene.raised(
        TrapError,
        f"the bound of this loop is the difference{place}, `{render(difference)}`, which is negative here: as a {kind} "
        f"it has wrapped around, and the loop would run on and on",
        "`with when(n > m):` around the loop, or signed numbers: `loop((n - m).bits(s32))` runs zero times",
    )


@explains(Fault.BRANCH_INDEX)
def _index(scene: Scene, _: Fault) -> EmulationError:
    return scene.raised(EmulationError, "the index of `brx.idx` is beyond its list of labels")
