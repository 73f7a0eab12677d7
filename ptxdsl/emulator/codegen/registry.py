"""The emitters of handlers, by the kind of their shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import (
    atomics as atomic, clusters as cluster, control, counters as count, data, shadow_inspection,
    scheduler as machine, matrix, mbarrier, memory, epochs, surface_unit, barriers as sync,
    textures as texture, texture_unit, warp, shadow_checks,
)

if TYPE_CHECKING:
    from .library import Emitter, Shape

__all__ = ["emit"]

_KINDS: dict[str, Emitter] = {
    "data": data.data,
    "isspace": data.isspace,
    "clock": data.clock,
    "param": memory.param,
    "load": memory.load,
    "store": memory.store,
    "jump": control.jump,
    "branch": control.branch,
    "check": control.check,
    "exit": control.exit_,
    "index": control.index,
    "trap": control.trap,
    "wrap": control.wrap,
    "service": control.service,
    "machine": machine.machine,
    "barrier": sync.barrier,
    "outcome": sync.outcome,
    "fence": sync.fence,
    "meet": warp.meet,
    "shuffle": warp.shuffle,
    "vote": warp.vote,
    "activemask": warp.activemask,
    "elect": warp.elect,
    "match": warp.match,
    "redux": warp.redux,
    "product": matrix.product,
    "atomic": atomic.atomic,
    "mbarrier": mbarrier.mbarrier,
    "reach": atomic.reach,
    "cluster": cluster.cluster,
    "request": texture.request,
    "kind_of": texture.kind_of,
    "query_unit": texture.query_unit,
    "texture_unit": texture_unit.texture_unit,
    "surface_unit": surface_unit.surface_unit,
    "shadow_check": shadow_checks.shadow_check,
    "epoch_begin": epochs.begin,
    "epoch_arrive": epochs.arrive,
    "epoch_barrier": epochs.barrier,
    "epoch_warp_barrier": epochs.warp_barrier,
    "sync_instruction": epochs.sync_instruction,
    "sync_access": epochs.sync_access,
    "shadow_inspection": shadow_inspection.inspect,
    "count": count.count,
    "count_branch": count.count_branch,
    "count_memory": count.count_memory,
    "breakpoint": count.breakpoint_,
}


def emit(module: Any, name: str, shape: Shape) -> None:
    """Add the function of a shape to an LLVM module."""
    _KINDS[shape[0]](module, name, shape)
