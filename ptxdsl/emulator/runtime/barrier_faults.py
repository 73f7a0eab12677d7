"""Faults of barriers, mbarriers and member masks."""

from __future__ import annotations

from ...errors import BarrierError, EmulationError
from ..machine.layout import Fault, Warp
from .faults import Scene, explains, ranges, set_bits
from .memory_faults import accessed

__all__: list[str] = []


def _named(mask: int) -> str:
    return ranges(set_bits(mask))


@explains(Fault.MEMBERS)
def _members(scene: Scene, _: Fault) -> EmulationError:
    members = scene.address
    active = scene.state.get_warp(scene.warp, Warp.ACTIVE, "I")
    strangers = active & ~members
    opcode = scene.statement.form.opcode
    if strangers:
        return scene.raised(
            BarrierError,
            f"`{opcode}` is executed by lanes {_named(strangers)}, which its member mask {members:#x} does not name",
            "name every lane that executes it: `0xFFFFFFFF` for a whole warp",
        )
    away = members & scene.state.get_warp(scene.warp, Warp.ALIVE, "I") & ~active
    return scene.raised(
        BarrierError, f"`{opcode}` names lanes {_named(away)} in its member mask {members:#x}, but they are elsewhere",
        "move it out of the branch, or name only the lanes that take it",
    )


@explains(Fault.BARRIER_DIVERGED)
def _diverged(scene: Scene, _: Fault) -> EmulationError:
    opcode = scene.statement.form.mnemonic
    active = scene.state.get_warp(scene.warp, Warp.ACTIVE, "I")
    away = scene.state.get_warp(scene.warp, Warp.ALIVE, "I") & ~active
    return scene.raised(
        BarrierError,
        f"`{opcode}` is reached by lanes {_named(active)} of warp {scene.warp} "
        f"while lanes {_named(away)} are elsewhere",
        "move the barrier out of the branch, so that all threads of the warp reach it together",
    )


_BARRIERS = {
    Fault.BARRIER_NUMBER: "names a barrier beyond 15",
    Fault.BARRIER_COUNT: "waits for a number of threads that is no positive multiple of 32",
    Fault.BARRIER_MISMATCH: "waits for another number of threads than those who arrived before",
    Fault.CLUSTER_ARRIVE: "comes before `barrier.cluster.wait` for the arrival before",
    Fault.CLUSTER_WAIT: "comes before `barrier.cluster.arrive`",
}


@explains(*_BARRIERS)
def _barrier(scene: Scene, kind: Fault) -> EmulationError:
    return scene.raised(BarrierError, f"`{scene.statement.form.mnemonic}` {_BARRIERS[kind]}")


_MBARRIERS = {
    Fault.MBARRIER_INVALID: (
        "what lies there is no mbarrier", "one thread makes it with `mbarrier.init`; the others wait at a barrier"
    ),
    Fault.MBARRIER_INIT: ("the number of arrivals is not 1 to 1048575", None),
    Fault.MBARRIER_COUNT: (
        "more arrivals than the phase waits for", "the count of `mbarrier.init` is the number of arrivals in each phase"
    ),
    Fault.MBARRIER_BYTES: ("the bytes that it waits for go beyond 1048575", None),
    Fault.MBARRIER_COMPLETES: ("`.noComplete` completes the phase", "leave `.noComplete` away"),
}


@explains(*_MBARRIERS)
def _mbarrier(scene: Scene, kind: Fault) -> EmulationError:
    what, hint = _MBARRIERS[kind]
    return scene.raised(BarrierError, f"`{scene.statement.form.mnemonic}` of {accessed(scene)}: {what}", hint)
