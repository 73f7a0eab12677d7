"""Runs one launch: on this thread, on several, or cluster by cluster."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter

from ...errors import PtxWarning, caller
from ..codegen.code import Code
from ..jit.tier_up import note_time
from ..machine.status import Status
from . import worker_pool
from .alone import enter, leave
from .block_state import TIME_SLICE, BlockState, LaunchState

__all__ = ["run"]


def run(launch: LaunchState, code: Code, codes: Callable[[bool], Code], alone: bool = True) -> None:
    """Run all blocks of a launch, on this thread where ``alone``.

    ``codes(conservative)`` gives the kernel's micro-ops as they are by then, conservative code where that is True.
    """
    if not code.updates:
        _run(launch, code, codes, alone)
        return
    try:
        enter(launch)
        _run(launch, code, codes, alone)
    finally:
        leave(launch)


def _run(launch: LaunchState, code: Code, codes: Callable[[bool], Code], alone: bool) -> None:
    blocks = launch.blocks
    if launch.spaces.cluster is not None:
        from .cluster_pool import ClusterPool

        ClusterPool(launch, code, codes, alone).run()
        return
    returned, seconds = None, 0.0
    short = alone or 0 < blocks * code.pace < worker_pool.WAKE_SECONDS
    if blocks == 1 or (short and launch.config.seed is None):  # no work for a second thread
        state = launch.state(code)
        launch.tool.switch(state)
        start, count = perf_counter(), worker_pool.FIRST_BLOCKS if blocks == 1 else worker_pool.first_slice(code.pace)
        status = state.run(count)
        while (seconds := perf_counter() - start) < worker_pool.SHORT and status == Status.YIELD and _goes_on(state):
            launch.tool.switch(state)
            count = min(4 * count, TIME_SLICE)
            status = state.run(count)
        if status == Status.DONE:
            note_time(code, seconds)
            launch.end(state)
        else:
            returned = worker_pool.Returned(state, status, seconds)
    if returned is not None or not seconds:
        pool, begun = worker_pool.WorkerPool(launch, codes, alone), perf_counter() - seconds
        seconds = pool.run(returned)
        code.note_wall(pool.woken > 0, (perf_counter() - begun) / blocks)
    code.pace = seconds / blocks
    if code.failure is not None:
        _warn(code, launch.spaces.function.name)


def _goes_on(state: BlockState) -> bool:
    """Whether a state goes on at once when compiled code has returned: in the same code, and without waiting."""
    if not state.between_blocks:
        return state.left > 0
    state.left = TIME_SLICE
    return not (state.renews or state.code.outdated)


def _warn(code: Code, kernel: str) -> None:
    error, code.failure = code.failure, None
    loc = caller()
    warnings.warn_explicit(
        f"kernel `{kernel}` stays in the emulator's first tier, which is right but slower: making the second failed "
        f"with {error!r}", PtxWarning, loc.file if loc else "<unknown>", loc.line if loc else 0,
    )
