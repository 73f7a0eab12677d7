"""Faults of barriers, mbarriers and member masks."""

from __future__ import annotations

from ...errors import BarrierError, EmulationError
from ..instructions.warp import source_lane
from ..machine.layout import LANES, Fault, Warp
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


@explains(Fault.SOURCE)
def _source(scene: Scene, _: Fault) -> EmulationError:
    statement = scene.statement
    b, c = (scene.number(statement.operand(name)) for name in "bc")
    source, _inside = source_lane(statement.form.modifiers["mode"], scene.lane, b, c)
    why, hint = _absence(scene, source)
    return scene.raised(
        BarrierError,
        f"`{statement.form.mnemonic}` in lane {scene.lane} of warp {scene.warp} takes from lane {source}, {why}", hint,
    )


def _absence(scene: Scene, lane: int) -> tuple[str, str]:
    """Why a lane does not take part, and what to do about it."""
    initial, alive, active = (
        scene.state.get_warp(scene.warp, field, "I") >> lane & 1 for field in (Warp.INITIAL, Warp.ALIVE, Warp.ACTIVE)
    )
    if not initial:
        threads = scene.state.launch.config.threads
        return f"which was never there: the block has {threads} threads", (
            f"launch {-(-threads // LANES) * LANES} threads and give the further ones the neutral element, or take "
            "only from lanes that exist"
        )
    if not alive:
        return "which has ended", "let no thread end before it: guard the loads and stores, and not the shuffle"
    guard = scene.statement.guard
    if not active or (guard is not None and not scene.state.values(scene.warp, guard)[lane]):
        return "which is elsewhere", f"move it out of the branch, so that lane {lane} executes it too"
    return f"which its member mask {scene.number(scene.statement.operands[-1]):#x} does not name", (
        f"name lane {lane} in the member mask: `0xFFFFFFFF` for a whole warp"
    )


@explains(Fault.MATRIX)
def _matrix(scene: Scene, _: Fault) -> EmulationError:
    missing = 0xFFFFFFFF & ~scene.state.get_warp(scene.warp, Warp.ALIVE, "I")
    why, hint = _absence(scene, set_bits(missing)[0])
    return scene.raised(
        BarrierError,
        f"`{scene.statement.form.mnemonic}` takes all 32 lanes of a warp; warp {scene.warp} has lane "
        f"{set_bits(missing)[0]}, {why}",
        hint,
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
