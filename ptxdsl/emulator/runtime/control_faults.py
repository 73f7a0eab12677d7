"""Faults of control flow."""

from __future__ import annotations

from ...errors import EmulationError, TrapError, with_article
from ..machine.status import Fault
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
        f"the {'start' if trap.is_start else 'bound'} of this loop is the difference{place}, `{render(difference)}`, "
        f"which is negative here: as {with_article(kind)} it has wrapped around, and the loop would "
        f"{'not run at all' if trap.is_start else 'run on and on'}",
        "`with when(n > m):` around the loop, or signed numbers: `loop((n - m).bits(s32))` runs zero times"
        if not trap.is_start else "signed numbers: `loop((i - 1).bits(s32), (i + 2).bits(s32))`",
    )


@explains(Fault.BRANCH_INDEX)
def _index(scene: Scene, _: Fault) -> EmulationError:
    return scene.raised(EmulationError, "the index of `brx.idx` is beyond its list of labels")
