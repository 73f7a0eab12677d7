"""The second tier: a kernel that takes long is compiled, in a thread beside it, while it goes on running.

All of it becomes one function for a block where that can be done (:mod:`whole`): the next block that starts uses it.
Runs of records become functions too. Each takes the place of the handler in the run's first record, a single pointer;
everything else stays, so it can be put there between two instructions of any warp: that is for kernels that cannot be
compiled as a whole, and for blocks that are on their way.
"""

from __future__ import annotations

import ctypes
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .merged_checks import joint_checks
from ..codegen.library import library

if TYPE_CHECKING:
    from .superinstructions import Part
    from ..instructions.lowering import Code, Record

__all__ = ["heat", "speed_up", "speed_up_runs", "speed_up_whole"]

SECONDS, SECONDS_A_RECORD = 0.004, 200e-6
"""Running time of a kernel's launches after which its runs are compiled: a fraction of what compiling takes."""
SHORTEST, LONGEST, MOST = 3, 300, 3000
"""Records in a run, and in all runs of a kernel."""
BESIDE = 300
"""Records in runs up to which they are compiled beside the whole: LLVM would take more memory than they are worth."""


def heat(code: Code, seconds: float) -> None:
    """Note that the kernel has run for so long; start compiling its runs where that was long enough."""
    code.seconds += seconds
    if code.seconds >= SECONDS and not code.hot:
        code.hot = _observed(code)
    if not code.hot and code.seconds >= SECONDS + SECONDS_A_RECORD * len(code.records):
        code.hot = True
        threading.Thread(target=_try, args=(code,), name="ptxdsl hot tier").start()


def _try(code: Code) -> None:
    try:
        speed_up(code)
    except Exception as error:  # noqa: BLE001 - the records go on alone; the next launch that ends says why
        code.failure = error


def _observed(code: Code) -> bool:
    """Whether records look at registers that the kernel itself has no more use for: those must stay in memory."""
    return any(record.shape[0].startswith(("count", "breakpoint")) for record in code.records)


class _Run(NamedTuple):
    first: int
    last: int


def speed_up(code: Code) -> None:
    """Compile a kernel: all of it as one function where that can be done; its runs, which go on where that ends."""
    code.hot = True
    if not speed_up_whole(code) or sum(run.last - run.first for run in _runs(code)) <= BESIDE:
        speed_up_runs(code)


def speed_up_whole(code: Code) -> bool:
    """Compile a kernel as one function for a block; whether that can be done."""
    from .planning import plan_of_kernel

    plan = plan_of_kernel(code)
    if plan is None:
        return False
    from .plan import TooLong

    def build(module: Any, name: str) -> None:
        from .block_function import whole

        whole(module, name, plan)

    try:
        code.whole = library().kept(plan.key, build)
    except TooLong:
        return False
    return True


def speed_up_runs(code: Code) -> None:
    """Compile the runs of a kernel and put them in place."""
    from llvmlite import ir

    from .superinstructions import fuse

    runs = list(_runs(code))
    total = 0
    module = ir.Module()
    chosen = []
    for run in runs:
        total += run.last - run.first
        if total > MOST:
            break
        original = int.from_bytes(ctypes.string_at(code.base + code.offsets[run.first], 8), "little")
        end = code.offsets[run.last - 1] + code.records[run.last - 1].size
        parts = _parts(code, run)
        fuse(module, f"run{run.first}", parts, original, end - code.offsets[run.first], _live_after(code, run))
        chosen.append(run)
    if not chosen:
        return
    addresses = library().compile_once(module, [f"run{run.first}" for run in chosen])
    for run, address in zip(chosen, addresses):
        ctypes.memmove(code.base + code.offsets[run.first], address.to_bytes(8, "little"), 8)


def _runs(code: Code) -> Any:
    """Stretches of records, within a block, that can be fused; those before the kernel's entry run once only."""
    from .superinstructions import can_fuse

    records = code.records
    starts = {int(address) - code.base for address in code.blocks}
    start = next(n for n, offset in enumerate(code.offsets) if offset >= code.entry - code.base)
    for number in range(start, len(records) + 1):
        fits = number < len(records) and can_fuse(records[number].shape)
        full = number - start >= LONGEST
        if not fits or full or (number < len(records) and code.offsets[number] in starts):
            if number - start >= SHORTEST:
                yield _Run(start, number)
            start = number if fits else number + 1


def _live_after(code: Code, run: _Run) -> set[int]:
    """Offsets of the registers that are needed behind a run."""
    offsets = code.slots.offsets
    last = code.records[run.last - 1].statement
    behind = next((r.statement for r in code.records[run.last :] if r.statement != last), -1)
    inside = run.last < len(code.records) and code.records[run.last].statement == last  # the statement goes on
    names = code.slots.needed_after(last) if behind != last and not inside else set(offsets)
    return {offsets[name] for name in names if name in offsets} | ({offsets["%CF"]} if "%CF" in offsets else set())


def _written(code: Code, record: Record) -> set[int]:
    offsets = code.slots.offsets
    return {offsets[register.name] for register in code.graph.ops[record.statement].writes}


def _parts(code: Code, run: _Run) -> list[Part]:
    """The records of a run, accesses through one pointer checked at the first of them."""
    from .superinstructions import Part

    records = code.records[run.first : run.last]
    together = joint_checks(records, partial(_written, code))
    base = code.offsets[run.first]
    return [
        Part(
            record.shape, record.values, code.offsets[run.first + number] - base, together.get(number),
            record.shape[0] in ("load", "store", "shadow_check") and not record.values[0] >> 17 & 1,
        )
        for number, record in enumerate(records)
    ]
