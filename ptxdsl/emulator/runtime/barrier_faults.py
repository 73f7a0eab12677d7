"""Faults of barriers, mbarriers and member masks."""

from __future__ import annotations

from ...errors import BarrierError, EmulationError
from ...ir import Call, Not
from ..instructions.barriers import RegisterCount
from ..machine.layout import LANES, Warp
from ..machine.status import Fault
from .faults import Scene, explains, ranges, set_bits
from .memory_faults import accessed
from .undefined import origin_of

__all__: list[str] = []


def _named(mask: int) -> str:
    return ranges(set_bits(mask))


@explains(Fault.MEMBERS)
def _members(scene: Scene, _: Fault) -> EmulationError:
    members = scene.address
    executing = _executing(scene)
    form = scene.statement.form
    strangers = executing & ~members
    if strangers:
        return scene.raised(
            BarrierError,
            f"`{form.opcode}` is executed by lanes {_named(strangers)}, which its member mask {members:#x} does not "
            "name",
            "name every lane that executes it: `0xFFFFFFFF` for a whole warp",
        )
    away = _named(members & scene.state.get_warp(scene.warp, Warp.ALIVE, "I") & ~executing)
    if "aligned" in form.tokens:
        return scene.raised(
            BarrierError,
            f"`{form.mnemonic}` takes all 32 lanes of a warp, and lanes {away} of warp {scene.warp} are elsewhere",
            "move it out of the branch, so that all lanes of the warp execute it",
        )
    return scene.raised(
        BarrierError, f"`{form.opcode}` names lanes {away} in its member mask {members:#x}, but they are elsewhere",
        "move it out of the branch, or name only the lanes that take it",
    )


def _executing(scene: Scene) -> int:
    """The active lanes for which the guard of the statement holds."""
    active: int = scene.state.get_warp(scene.warp, Warp.ACTIVE, "I")
    guard = scene.statement.guard
    if guard is None:
        return active
    negated = isinstance(guard, Not)
    values = scene.state.values(scene.warp, guard.predicate if negated else guard)
    return active & sum(1 << lane for lane, value in enumerate(values) if bool(value) != negated)


@explains(Fault.UNDEFINED)
def _undefined(scene: Scene, _: Fault) -> EmulationError:
    """An undefined number is used; the shuffle that gave it is at fault."""
    state, code = scene.state, scene.state.code
    place, lane, source, known = origin_of(code, state.warps + scene.warp * state.stride, scene.lane)
    use = scene.statement
    scene = Scene(state, scene.warp, lane, code.pc_of(place))
    why, hint = _absence(scene, source, known)
    what = f"a call of {use.callee}" if isinstance(use, Call) else f"`{use.form.mnemonic}`"
    where = f"at {use.loc}" if use.loc is not None else f"at PTX line {use.line}"
    return scene.raised(
        BarrierError,
        f"`{scene.statement.form.mnemonic}` in lane {lane} of warp {scene.warp} takes from lane {source}, {why}; "
        f"{what} uses that number, {where}", hint,
    )


def _absence(scene: Scene, lane: int, known: int) -> tuple[str, str]:
    """Why a lane does not take part, and what to do; it was there (1), lived (2) and executed the instruction (4)."""
    if not known & 1:
        threads = scene.state.launch.config.threads
        return f"which was never there: the block has {threads} threads", (
            f"launch {-(-threads // LANES) * LANES} threads and give the further ones the neutral element, or take "
            "only from lanes that exist"
        )
    if not known & 2:
        return "which has ended", "let no thread end before it: guard the loads and stores, and not the shuffle"
    if not known & 4:
        return "which is elsewhere", f"move it out of the branch, so that lane {lane} executes it too"
    return "which its member mask does not name", f"name lane {lane} in it: `0xFFFFFFFF` for a whole warp"


@explains(Fault.MATRIX)
def _matrix(scene: Scene, _: Fault) -> EmulationError:
    missing = 0xFFFFFFFF & ~scene.state.get_warp(scene.warp, Warp.ALIVE, "I")
    lane = set_bits(missing)[0]
    why, hint = _absence(scene, lane, scene.state.get_warp(scene.warp, Warp.INITIAL, "I") >> lane & 1)
    return scene.raised(
        BarrierError,
        f"`{scene.statement.form.mnemonic}` takes all 32 lanes of a warp, and warp {scene.warp} has lane {lane}, {why}",
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
    Fault.MBARRIER_BUSY: (
        "it is in use: a warp waits there, or a copy that it counts is not complete",
        "all threads have found its last phase complete, and waited at a barrier, before it is made again",
    ),
    Fault.MBARRIER_COMPLETES: ("`.noComplete` completes the phase", "leave `.noComplete` away"),
}


@explains(*_MBARRIERS)
def _mbarrier(scene: Scene, kind: Fault) -> EmulationError:
    what, hint = _MBARRIERS[kind]
    return scene.raised(BarrierError, f"`{scene.statement.form.mnemonic}` of {accessed(scene)}: {what}", hint)


@explains(Fault.MAXNREG)
def _registers(scene: Scene, _: Fault) -> EmulationError:
    form, count, op = scene.statement.form, scene.number(scene.statement.operands[0]), scene.op
    assert isinstance(op, RegisterCount)
    has = scene.state.get_warp(scene.warp, Warp.MAXNREG, "i") or op.initial
    what = "fewer" if "inc" in form.tokens else "more"
    return scene.raised(
        EmulationError, f"`{form.mnemonic}` of {count} registers, {what} than the {has} that warp {scene.warp} has",
        "`.dec` gives registers back, `.inc` takes them",
    )
