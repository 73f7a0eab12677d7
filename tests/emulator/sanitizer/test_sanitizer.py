"""The planted-bug suite: small kernels with one bug each, found at its lines, and correct ones that raise nothing.

A kernel's bug is on the lines that end in ``# !``; a finding must name these lines and no others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, NamedTuple

import numpy as np
import ptxdsl
import pytest
from ptxdsl import (
    BarrierError, DeadlockError, EmulationError, MemoryFault, Ptr, RaceError, UninitializedError, break_if,
    dynamic_shared, empty, local, loop, otherwise, ptx, ptx_kernel, reg, s32, select, shared, u8, u16, u32, use, when,
)
from ptxdsl import warp
from ptxdsl.emulator.sanitizer.sanitizer import collect

pytest_plugins = ["pytester"]

FULL = 0xFFFFFFFF
THREADS = 128


class Case(NamedTuple):
    """A kernel, how to launch it, and the error wanted; None for a correct one."""

    kernel: Any
    error: type[EmulationError] | None
    lines: frozenset[int]
    grid: int
    block: int
    constants: dict[str, Any]
    shared: int
    fresh: bool


CASES: dict[str, Case] = {}


def case(
    error: type[EmulationError] | None, *variants: dict[str, Any], grid: int = 1, block: int = THREADS, shared: int = 0,
    fresh: bool = False,
) -> Callable[[Any], Any]:
    """Register a kernel ``(x, y, flag)``, once for each set of constants."""

    def register(function: Any) -> Any:
        source, first = inspect.getsourcelines(function)
        lines = frozenset(first + n for n, line in enumerate(source) if line.rstrip().endswith("# !"))
        kernel = ptx_kernel(function)
        for constants in variants or ({},):
            name = "-".join([function.__name__, *(str(value) for value in constants.values())])
            assert name not in CASES, name
            CASES[name] = Case(kernel, error, lines, grid, block, constants, shared, fresh)
        return function

    return register


def run(chosen: Case, **options: Any) -> np.ndarray[Any, Any]:
    x, y, flag = np.arange(8192, dtype=np.uint32), np.zeros(8192, np.uint32), np.zeros(64, np.uint32)
    target: Any = empty(8192, np.uint32, backend="emulator") if chosen.fresh else y
    with use("emulator"):
        launch = chosen.kernel.configure(chosen.grid, chosen.block, shared=chosen.shared, sanitize=True, **options)
        launch(x, target, flag, **chosen.constants)
    return y





# Bugs: shared memory, whole blocks


@case(RaceError, *({"off": off} for off in (1, 32, 33, 64, 127)))
def missing_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]  # !
    y[t] = s[(t + off) & 127]  # !


@case(RaceError, {"off": 1}, {"off": 32})
def write_after_read(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    ptx.bar.sync(0)
    y[t] = s[(t + off) & 127]  # !
    s[t] = 7  # !


@case(RaceError)
def one_place_for_all(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    s[0] = t  # !
    ptx.bar.sync(0)
    y[t] = s[0]


@case(RaceError, {"n": 2}, {"n": 32})
def lanes_to_one_place(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, n: int) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t // n * n] = t  # !
    ptx.bar.sync(0)
    y[t] = s[t // n * n]


@case(RaceError)
def tile_overwritten(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t, total = shared(u32, THREADS), ptx.tid.x, reg(u32, 0)
    with loop(0, 4) as i:
        s[t] = x[i * THREADS + t]  # !
        ptx.bar.sync(0)
        total += s[127 - t]  # !
    y[t] = total


@case(RaceError)
def reduction_without_its_last_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    ptx.bar.sync(0)
    with when(t < 64):
        s[t] += s[t + 64]  # !
    with when(t < 32):
        y[t] = s[t] + s[t + 32]  # !


@case(RaceError)
def atomic_then_load(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    with when(t < 32):
        s[t] = 0
    ptx.bar.sync(0)
    ptx.red.shared.add.u32(s + (t & 31), 1)  # !
    y[t] = s[(t + 7) & 31]  # !


@case(RaceError)
def atomic_before_zero(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    with when(t < 32):
        s[t] = 0  # !
    ptx.red.shared.add.u32(s + (t & 31), 1)  # !
    ptx.bar.sync(0)
    y[t] = s[t & 31]


@case(RaceError)
def broadcast_of_thread_zero(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    with when(t == 0):
        s[0] = x[5]  # !
    y[t] = s[0]  # !


@case(RaceError)
def double_buffer_of_one(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t, total = shared(u32, THREADS), ptx.tid.x, reg(u32, 0)
    s[t] = x[t]
    with loop(0, 3):
        ptx.bar.sync(0)
        total += s[(t + 32) & 127]  # !
        s[t] = total  # !
    y[t] = total


@case(RaceError)
def bytes_that_overlap(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u8, THREADS + 1), ptx.tid.x
    s[t] = x[t].to(u8)  # !
    y[t] = s[t + 1].to(u32)  # !


@case(RaceError)
def wide_store_over_narrow(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    with when(t < 32):
        s.store(t * 4, [t, t, t, t])  # !
    y[t] = s[t]  # !


@case(RaceError)
def dynamic(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = dynamic_shared(u32), ptx.tid.x
    s[t] = x[t]  # !
    y[t] = s[t ^ 64]  # !


CASES["dynamic"] = CASES["dynamic"]._replace(shared=512)


@case(RaceError)
def partial_named_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Warps 0 and 1 meet, but warp 0 reads what warp 2 wrote."""
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]  # !
    with when(t < 64):
        ptx.bar.sync(1, 64)
        y[t] = s[t + 64]  # !


@case(RaceError)
def consumer_does_not_wait(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    with when(t < 64):
        s[t] = x[t]  # !
        ptx.bar.arrive(1, 128)
    with otherwise():
        y[t] = s[t - 64]  # !
        ptx.bar.sync(1, 128)


@case(RaceError)
def producer_does_not_wait(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """The buffer is filled again before anybody says that it is empty."""
    s, t, total = shared(u32, 64), ptx.tid.x, reg(u32, 0)
    with loop(0, 3) as i:
        with when(t < 64):
            s[t] = i  # !
            ptx.bar.sync(1, 128)
        with otherwise():
            ptx.bar.sync(1, 128)
            total += s[t - 64]  # !
    y[t] = total


# Bugs: within a warp


@case(RaceError, {"off": 1}, {"off": 16})
def missing_warp_sync(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    s[t] = x[t]  # !
    y[t] = s[t ^ off]  # !


@case(RaceError)
def warp_reduction_in_step(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = x[t]
    s[t + 32] = x[t + 32]
    ptx.bar.warp.sync(FULL)
    s[t] += s[t + 16]  # !
    y[t] = s[t]


@case(RaceError)
def half_a_warp_meets(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    s[t] = x[t]  # !
    with when(t < 16):
        ptx.bar.warp.sync(0xFFFF)
        y[t] = s[t + 16]  # !


@case(RaceError)
def leader_after_its_lanes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    with when(t > 0):
        s[t] = x[t]  # !
    with otherwise():
        y[0] = s[9]  # !


@case(RaceError)
def shuffle_is_no_fence(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    s[t] = x[t]  # !
    v = ptx.shfl.sync.bfly.b32(x[t], 1, 31, FULL)
    y[t] = s[t ^ 1] + v  # !


for name in ("missing_warp_sync-1", "missing_warp_sync-16", "warp_reduction_in_step", "half_a_warp_meets",
             "leader_after_its_lanes", "shuffle_is_no_fence"):
    CASES[name] = CASES[name]._replace(block=32)


# Bugs: global memory


@case(RaceError, {"off": 1}, {"off": 64})
def global_in_a_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    t = ptx.tid.x
    y[t] = x[t]  # !
    y[t + 4096] = y[t ^ off]  # !


@case(RaceError, grid=4)
def neighbouring_blocks(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.ctaid.x + ptx.tid.x
    y[i + 1] = y[i]  # !


CASES["neighbouring_blocks"] = CASES["neighbouring_blocks"]._replace(block=1, grid=4)


@case(RaceError, grid=3)
def all_blocks_one_place(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        y[0] = ptx.ctaid.x  # !


@case(RaceError, grid=3)
def lost_increment(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        y[0] = y[0] + 1  # !


@case(RaceError, grid=2)
def overlapping_tiles(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.ctaid.x * (THREADS - 1) + ptx.tid.x
    y[i] = i + ptx.ctaid.x  # !


@case(RaceError, grid=2)
def atomic_and_store_across_blocks(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 0):
            y[0] = 5  # !
        with otherwise():
            ptx.red.global_.add.u32(y, 1)  # !


@case(RaceError, grid=2)
def atomic_of_the_block_only(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        ptx["red.relaxed.cta.global.add.u32"](y, 1)  # !


@case(RaceError, grid=2)
def flag_without_fences(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42  # !
            ptx["st.volatile.global.u32"](flag, 1)
        with otherwise():
            with loop():
                break_if(ptx["ld.volatile.global.u32"](flag) == 1)
            y[1] = y[0]  # !


@case(RaceError, grid=2)
def flag_without_a_release(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42  # !
            ptx["st.relaxed.gpu.global.u32"](flag, 1)
        with otherwise():
            with loop():
                break_if(ptx["ld.acquire.gpu.global.u32"](flag) == 1)
            y[1] = y[0]  # !


@case(RaceError, grid=2)
def flag_without_an_acquire(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42  # !
            ptx["st.release.gpu.global.u32"](flag, 1)
        with otherwise():
            with loop():
                break_if(ptx["ld.relaxed.gpu.global.u32"](flag) == 1)
            y[1] = y[0]  # !


@case(RaceError, grid=2)
def fence_after_the_flag(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42  # !
            ptx["st.volatile.global.u32"](flag, 1)
            ptx.membar.gl()
        with otherwise():
            with loop():
                break_if(ptx["ld.volatile.global.u32"](flag) == 1)
            ptx.membar.gl()
            y[1] = y[0]  # !


@case(RaceError, grid=2)
def only_thread_zero_waits(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    with when(ptx.ctaid.x == 1):
        y[t] = t  # !
        ptx.bar.sync(0)
        with when(t == 0):
            ptx["st.release.gpu.global.u32"](flag, 1)
    with otherwise():
        with when(t == 0):
            with loop():
                break_if(ptx["ld.acquire.gpu.global.u32"](flag) == 1)
        y[t + 1024] = y[t]  # !


@case(RaceError, grid=2)
def release_before_the_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Thread 0 publishes before the others have written."""
    t = ptx.tid.x
    with when(ptx.ctaid.x == 1):
        y[t] = t  # !
        with when(t == 0):
            ptx["st.release.gpu.global.u32"](flag, 1)
    with otherwise():
        with when(t == 0):
            with loop():
                break_if(ptx["ld.acquire.gpu.global.u32"](flag) == 1)
        ptx.bar.sync(0)
        y[t + 1024] = y[t]  # !


@case(RaceError, grid=2)
def plain_flag(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 0):
            flag[0] = 1  # !
        with otherwise():
            y[0] = ptx["ld.acquire.gpu.global.u32"](flag)  # !


@case(RaceError, grid=4)
def last_block_without_a_fence(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t, last = ptx.tid.x, shared(u32, 1)
    with when(t == 0):
        y[ptx.ctaid.x] = ptx.ctaid.x  # !
        last[0] = ptx.atom.global_.add.u32(flag, 1)
    ptx.bar.sync(0)
    with when((last[0] == 3) & (t < 4)):
        y[t + 64] = y[t]  # !


@case(RaceError, grid=3)
def lock_without_an_order(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with loop():
            break_if(ptx.atom.global_.cas.b32(flag, 0, 1) == 0)
        y[0] = y[0] + 1  # !
        ptx.atom.global_.exch.b32(flag, 0)


# Bugs: nothing there yet


@case(UninitializedError)
def shared_never_written(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    y[t] = s[t]  # !


@case(UninitializedError)
def shared_half_written(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    with when(t < 100):
        s[t] = x[t]
    ptx.bar.sync(0)
    y[t] = s[t]  # !


@case(UninitializedError)
def halo_not_loaded(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS + 2), ptx.tid.x
    s[t + 1] = x[t]
    ptx.bar.sync(0)
    y[t] = s[t] + s[t + 1] + s[t + 2]  # !


@case(UninitializedError)
def counter_not_cleared(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    ptx.red.shared.add.u32(s, 1)  # !
    ptx.bar.sync(0)
    y[t] = s[0]


@case(UninitializedError, grid=2)
def of_the_block_before(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    with when(ptx.ctaid.x == 0):
        s[t] = 1
    y[t + ptx.ctaid.x * THREADS] = s[t]  # !


@case(UninitializedError)
def bytes_not_written(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u8, 2 * THREADS), ptx.tid.x
    s[2 * t] = x[t].to(u8)
    y[t] = s[2 * t + 1].to(u32)  # !


@case(UninitializedError)
def vector_half_written(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 4 * THREADS), ptx.tid.x
    s.store(4 * t, [t, t])
    a, b, c, d = s.load(4 * t, width=4)  # !
    y[t] = a + b + c + d


@case(UninitializedError)
def local_never_written(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    m, t = local(u32, 8), ptx.tid.x
    m[0] = 1
    y[t] = m[t & 7]  # !


@case(UninitializedError)
def local_of_some_lanes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    m, t = local(u32, 2), ptx.tid.x
    with when(t != 77):
        m[1] = t
    y[t] = m[1]  # !


@case(UninitializedError, fresh=True)
def global_never_written(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    y[ptx.tid.x + 1024] = y[ptx.tid.x]  # !


@case(UninitializedError, fresh=True)
def accumulates_into_empty(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    y[ptx.tid.x] += 1  # !


@case(UninitializedError, fresh=True)
def counts_into_empty(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    ptx.red.global_.add.u32(y, 1)  # !


# Bugs: bounds, alignment, barriers, waiting


@case(MemoryFault, {"off": -1}, {"off": 8192 - THREADS + 1})
def out_of_global(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    y[ptx.tid.x.to(s32) + off] = 1  # !


@case(MemoryFault, {"off": -1}, {"off": 1})
def out_of_shared(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    s = shared(u32, THREADS)
    s[ptx.tid.x.to(s32) + off] = 1  # !


@case(MemoryFault)
def out_of_local(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    m = local(u32, 8)
    m[ptx.tid.x] = 1  # !


@case(MemoryFault)
def misaligned_vector(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    a, b = x.load(2 * ptx.tid.x + 1, width=2)  # !
    y[ptx.tid.x] = a + b


@case(MemoryFault)
def misaligned_shared_vector(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 4 * THREADS), ptx.tid.x
    s.store(2 * t, [t, t, t, t])  # !


@case(BarrierError)
def barrier_in_a_branch(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x < 100):
        ptx.bar.sync(0)  # !
    y[ptx.tid.x] = 1


@case(BarrierError)
def barrier_of_48_threads(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    ptx.bar.sync(1, x[48])  # !


@case(BarrierError)
def shuffle_in_a_branch(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    with when(t < 16):
        y[t] = ptx.shfl.sync.bfly.b32(x[t], 1, 31, FULL)  # !
    ptx.bar.sync(0)


@case(DeadlockError)
def barrier_for_too_many(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x < 64):
        ptx.bar.sync(1, 96)  # !


@case(DeadlockError)
def flag_that_nobody_sets(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with loop():
        break_if(ptx["ld.volatile.global.u32"](flag) == 1)  # !


BUGS = list(CASES)


# Correct kernels: nothing may be said of them


@case(None, *({"off": off} for off in (1, 32, 33, 64, 127)))
def barrier_between(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    ptx.bar.sync(0)
    y[t] = s[(t + off) & 127]


@case(None, {"count": False}, {"count": True})
def reads_end_before_writes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, count: bool) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    numbers = (0, THREADS) if count else (0,)
    s[t] = x[t]
    ptx.bar.sync(*numbers)
    v = s[t ^ 65]
    ptx.bar.sync(*numbers)
    s[t ^ 3] = v
    ptx.bar.sync(*numbers)
    y[t] = s[t]


@case(None, {"block": 32}, {"block": 64}, {"block": 128}, grid=3)
def tree_reduction(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, block: int) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[ptx.ctaid.x * THREADS + t]
    off = THREADS // 2
    while off:
        ptx.bar.sync(0)
        with when(t < off):
            s[t] += s[t + off]
        off //= 2
    with when(t == 0):
        y[ptx.ctaid.x] = s[0]


@case(None)
def two_buffers(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t, total = shared(u32, 2, THREADS), ptx.tid.x, reg(u32, 0)
    s[0, t] = x[t]
    ptx.bar.sync(0)
    for i in range(6):
        s[(i + 1) % 2, t] = x[t + i]
        total += s[i % 2, t ^ 33]
        ptx.bar.sync(0)
    y[t] = total


@case(None, {"steps": 1}, {"steps": 5})
def tiles_with_two_barriers(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, steps: int) -> None:
    s, t, total = shared(u32, THREADS), ptx.tid.x, reg(u32, 0)
    with loop(0, steps) as i:
        s[t] = x[i * THREADS + t]
        ptx.bar.sync(0)
        total += s[127 - t]
        ptx.bar.sync(0)
    y[t] = total


@case(None, {"off": 1}, {"off": 8}, {"off": 16})
def warp_sync_between(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    ptx.bar.warp.sync(FULL)
    y[t] = s[t ^ off]


@case(None)
def warp_reduction_with_syncs(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    lane = t & 31
    for off in (16, 8, 4, 2, 1):
        ptx.bar.warp.sync(FULL)
        v = reg(u32, 0)
        with when(lane < off):
            v.set(s[t] + s[t + off])
        ptx.bar.warp.sync(FULL)
        with when(lane < off):
            s[t] = v
    with when(lane == 0):
        y[t] = s[t]


@case(None)
def half_warps_that_meet(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    with when((t & 31) < 16):
        ptx.bar.warp.sync(0xFFFF)
        y[t] = s[t ^ 5]
    with otherwise():
        ptx.bar.warp.sync(0xFFFF0000)
        y[t] = s[t ^ 9]


@case(None)
def mask_of_each_half(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    ptx.bar.warp.sync(select((t & 31) < 16, reg(u32, 0xFFFF), reg(u32, 0xFFFF0000)))
    y[t] = s[t ^ 5]


@case(None)
def own_words_only(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    s[t] += 1
    s[t] += s[t]
    y[t] = s[t]
    y[t] += 1


@case(None)
def bytes_side_by_side(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u8, THREADS), ptx.tid.x
    s[t] = x[t].to(u8)
    y[t] = s[t].to(u32)


@case(None)
def halves_side_by_side(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u16, THREADS), ptx.tid.x
    s[t] = x[t].to(u16)
    ptx.bar.sync(0)
    y[t] = s[t ^ 1].to(u32)


@case(None)
def same_value_by_all(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    s[0] = 0
    ptx.bar.sync(0)
    with when(x[t] > 3):
        s[0] = 1
    ptx.bar.sync(0)
    y[t] = s[0]


@case(None)
def read_only_by_all(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 4), ptx.tid.x
    with when(t < 4):
        s[t] = x[t]
    ptx.bar.sync(0)
    y[t] = s[0] + s[1] + s[t & 3]


@case(None, grid=3)
def histogram(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    with loop(t, 1024, THREADS) as i:
        ptx.red.shared.add.u32(s + (x[i] * 7 & 127), 1)
    ptx.bar.sync(0)
    ptx.red.global_.add.u32(y + t, s[t])


@case(None)
def atomics_of_one_word(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    with when(t == 0):
        s[0] = 0
    ptx.bar.sync(0)
    y[ptx.atom.shared.add.u32(s, 1)] = t
    ptx.bar.sync(0)
    y[t + 128] = s[0]


@case(None, grid=4)
def atomic_maximum(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    ptx.red.global_.max.u32(y, x[ptx.ctaid.x * THREADS + ptx.tid.x])


@case(None, grid=4)
def relaxed_counter(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        ptx["red.relaxed.gpu.global.add.u32"](y, 1)
        ptx["st.relaxed.gpu.global.u32"](y + 1, ptx.ctaid.x)
        y[ptx.ctaid.x + 64] = ptx["ld.relaxed.gpu.global.u32"](y)


@case(None, grid=3)
def volatile_everywhere(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    ptx["st.volatile.global.u32"](flag, 1)
    y[ptx.ctaid.x * THREADS + t] = ptx["ld.volatile.global.u32"](flag)


@case(None, grid=3)
def each_block_its_own(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.ctaid.x * THREADS + ptx.tid.x
    y[i] = x[i]
    ptx.bar.sync(0)
    y[i + 4096] = y[i ^ 1]


@case(None, grid=3)
def read_only_overlap(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.ctaid.x * THREADS + ptx.tid.x
    y[i] = x[i] + x[i + 1] + x[i + 2]


@case(None)
def named_barriers_for_halves(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    with when(t < 64):
        ptx.bar.sync(1, 64)
        y[t] = s[t ^ 32]
    with otherwise():
        ptx.bar.sync(2, 64)
        y[t] = s[t ^ 33]


@case(None)
def named_barrier_by_number(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    ptx.bar.sync((t >> 6) + 1, 64)
    y[t] = s[t ^ 32]


@case(None, {"stages": 1}, {"stages": 4})
def producer_and_consumer(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, stages: int) -> None:
    s, t, total = shared(u32, 64), ptx.tid.x, reg(u32, 0)
    with loop(0, stages) as i:
        with when(t < 64):
            s[t] = x[i + t]
            ptx.bar.arrive(1, 128)
            ptx.bar.sync(2, 128)
        with otherwise():
            ptx.bar.sync(1, 128)
            total += s[127 - t]
            ptx.bar.arrive(2, 128)
    y[t] = total


@case(None, grid=2)
def flag_released(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    with when(ptx.ctaid.x == 1):
        y[t] = t
        ptx.bar.sync(0)
        with when(t == 0):
            ptx["st.release.gpu.global.u32"](flag, 1)
    with otherwise():
        with when(t == 0):
            with loop():
                break_if(ptx["ld.acquire.gpu.global.u32"](flag) == 1)
        ptx.bar.sync(0)
        y[t + 1024] = y[t]


@case(None, {"fence": "membar.gl"}, {"fence": "fence.acq_rel.gpu"}, {"fence": "fence.sc.gpu"}, {"fence": "membar.sys"},
      grid=2)
def flag_and_fences(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, fence: str) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42
            ptx[fence]()
            ptx["st.volatile.global.u32"](flag, 1)
        with otherwise():
            with loop():
                break_if(ptx["ld.volatile.global.u32"](flag) == 1)
            ptx[fence]()
            y[1] = y[0]


@case(None, grid=2)
def flag_by_exchange(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42
            ptx["atom.release.gpu.global.exch.b32"](flag, 1)
        with otherwise():
            with loop():
                break_if(ptx["atom.acquire.gpu.global.cas.b32"](flag, 1, 2) == 1)
            y[1] = y[0]


@case(None)
def flag_in_a_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Warp 0 waits for warp 3 without a barrier."""
    s, t = shared(u32, 2), ptx.tid.x
    with when(t == 0):
        s[1] = 0
    ptx.bar.sync(0)
    with when(t == 96):
        s[0] = 42
        ptx["st.release.cta.shared.u32"](s + 1, 1)
    with when(t == 0):
        with loop():
            break_if(ptx["ld.acquire.cta.shared.u32"](s + 1) == 1)
        y[0] = s[0]


@case(None)
def one_lane_waits_for_its_warp(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32), ptx.tid.x
    with when(t >= 96):
        s[t - 96] = t
        ptx.bar.warp.sync(FULL)
        with when(t == 96):
            ptx["st.release.gpu.global.u32"](flag, 1)
    with when(t < 32):
        with when(t == 0):
            with loop():
                break_if(ptx["ld.acquire.gpu.global.u32"](flag) == 1)
        ptx.bar.warp.sync(FULL)
        y[t] = s[t]


@case(None, grid=4)
def last_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """As in the programming guide: a fence before the ticket, a barrier behind it."""
    t, last = ptx.tid.x, shared(u32, 1)
    with when(t == 0):
        y[ptx.ctaid.x] = ptx.ctaid.x
        ptx.membar.gl()
        last[0] = ptx.atom.global_.add.u32(flag, 1)
    ptx.bar.sync(0)
    with when((last[0] == 3) & (t < 4)):
        y[t + 64] = y[t]


@case(None, grid=4)
def last_block_by_acq_rel(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t, last = ptx.tid.x, shared(u32, 1)
    y[ptx.ctaid.x * THREADS + t] = t
    ptx.bar.sync(0)
    with when(t == 0):
        last[0] = ptx["atom.acq_rel.gpu.global.add.u32"](flag, 1)
    ptx.bar.sync(0)
    with when(last[0] == 3):
        total = reg(u32, 0)
        for block in range(4):
            total += y[block * THREADS + t]
        y[2048 + t] = total


@case(None, grid=4)
def last_block_resets_its_counter(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        y[ptx.ctaid.x] = 1
        ptx["fence.acq_rel.gpu"]()
        with when(ptx.atom.global_.inc.u32(flag, 3) == 3):
            ptx["fence.acq_rel.gpu"]()
            y[64] = y[0] + y[1] + y[2] + y[3]
            flag[1] = 0


@case(None, grid=3)
def spin_lock(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with loop():
            break_if(ptx["atom.acquire.gpu.global.cas.b32"](flag, 0, 1) == 0)
        y[0] = y[0] + 1
        ptx["st.release.gpu.global.u32"](flag, 0)


@case(None, grid=3)
def spin_lock_with_fences(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with loop():
            break_if(ptx.atom.global_.cas.b32(flag, 0, 1) == 0)
        ptx.membar.gl()
        y[0] = y[0] + 1
        ptx.membar.gl()
        ptx.atom.global_.exch.b32(flag, 0)


@case(None)
def spin_lock_of_all_warps(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when((ptx.tid.x & 31) == 0):
        with loop():
            break_if(ptx["atom.acquire.gpu.global.cas.b32"](flag, 0, 1) == 0)
        y[0] = y[0] + 1
        ptx["st.release.gpu.global.u32"](flag, 0)


@case(None, {"blocks": 2}, {"blocks": 6}, grid=6)
def lookback(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, blocks: int) -> None:
    """Each block adds to what the one before has handed on."""
    t, before, b = ptx.tid.x, shared(u32, 1), ptx.ctaid.x
    with when(t == 0):
        before[0] = 0
        with when(b > 0):
            with loop():
                break_if(ptx["ld.acquire.gpu.global.u32"](flag + (b - 1)) == 1)
            before[0] = y[b - 1]
        y[b] = before[0] + b
        ptx["st.release.gpu.global.u32"](flag + b, 1)
    ptx.bar.sync(0)
    y[1024 + b * THREADS + t] = before[0]


@case(None, grid=3)
def barrier_of_the_grid(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t, b = ptx.tid.x, ptx.ctaid.x
    y[b * THREADS + t] = b
    ptx.bar.sync(0)
    with when(t == 0):
        ptx["fence.acq_rel.gpu"]()
        ptx.red.global_.add.u32(flag, 1)
        with loop():
            break_if(ptx["ld.relaxed.gpu.global.u32"](flag) == 3)
        ptx["fence.acq_rel.gpu"]()
    ptx.bar.sync(0)
    y[2048 + b * THREADS + t] = y[(b * THREADS + t + THREADS) % 384]


@case(None, grid=3)
def all_fence_then_meet(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """The order of fence and barrier that many libraries have."""
    t, b = ptx.tid.x, ptx.ctaid.x
    y[b * THREADS + t] = b
    ptx.membar.gl()
    ptx.bar.sync(0)
    last = shared(u32, 1)
    with when(t == 0):
        last[0] = ptx.atom.global_.add.u32(flag, 1)
    ptx.bar.sync(0)
    with when(last[0] == 2):
        y[2048 + t] = y[t] + y[t + 128] + y[t + 256]


@case(None, {"slots": 2})
def ring_of_two_warps(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, slots: int) -> None:
    """Every lane fences, the warp meets, lane 0 sets the flag; whoever waits fences behind its poll."""
    queue, full, vacant = shared(u32, slots, 32), shared(u32, 1), shared(u32, 1)
    lane, number = ptx.tid.x & 31, ptx.tid.x >> 5
    with when(ptx.tid.x == 0):
        full[0] = 0
        vacant[0] = 0
    ptx.bar.sync(0)
    with when(number == 0):
        with loop(0, 5) as i:
            with loop():
                break_if(i - ptx.ld.volatile.shared.u32(vacant + 0) < slots)
            ptx.membar.cta()
            queue[i % slots, lane] = x[i * 32 + lane]
            ptx.membar.cta()
            ptx.bar.warp.sync(FULL)
            with when(lane == 0):
                ptx.st.volatile.shared.u32(full + 0, i + 1)
    with when(number == 1):
        with loop(0, 5) as i:
            with loop():
                break_if(ptx.ld.volatile.shared.u32(full + 0) > i)
            ptx.membar.cta()
            y[i * 32 + lane] = queue[i % slots, lane]
            ptx.membar.cta()
            ptx.bar.warp.sync(FULL)
            with when(lane == 0):
                ptx.st.volatile.shared.u32(vacant + 0, i + 1)


@case(None)
def shuffles_and_votes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    y[ptx.tid.x] = warp.reduce_sum(x[ptx.tid.x])


@case(None)
def vectors(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 4 * THREADS), ptx.tid.x
    s.store(4 * t, list(x.load(4 * t, width=4)))
    ptx.bar.sync(0)
    y.store(4 * t, list(s.load(4 * (127 - t), width=4)))


@case(None)
def dynamic_with_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = dynamic_shared(u32), ptx.tid.x
    s[t] = x[t]
    ptx.bar.sync(0)
    y[t] = s[t ^ 64]


CASES["dynamic_with_barrier"] = CASES["dynamic_with_barrier"]._replace(shared=512)


@case(None)
def local_memory(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    m, t = local(u32, 4), ptx.tid.x
    for i in range(4):
        m[i] = x[t + i]
    y[t] = m[t & 3] + m[(t + 1) & 3]


@case(None, fresh=True)
def writes_what_is_empty(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    y[t] = x[t]
    ptx.bar.sync(0)
    y[t + 1024] = y[t ^ 32]


@case(None, grid=3)
def warps_that_end_early(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    ptx.ret(pred=t >= 96)
    s[t] = x[t]
    ptx.bar.sync(0)
    y[ptx.ctaid.x * THREADS + t] = s[(t + 32) % 96]


@case(None)
def transposed(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 32, 33), ptx.tid.x
    row, lane = t >> 5, t & 31
    for i in range(0, 32, 4):
        s[row + i, lane] = x[(row + i) * 32 + lane]
    ptx.bar.sync(0)
    for i in range(0, 32, 4):
        y[(row + i) * 32 + lane] = s[lane, row + i]


@case(None)
def scan(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 2, THREADS), ptx.tid.x
    s[0, t] = x[t]
    ptx.bar.sync(0)
    for step in range(7):
        v = reg(u32, s[step % 2, t])
        with when(t >= 1 << step):
            v += s[step % 2, t - (1 << step)]
        s[(step + 1) % 2, t] = v
        ptx.bar.sync(0)
    y[t] = s[1, t]


@case(None)
def shared_used_twice(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    for i in range(3):
        s[(t + i) & 127] = x[t]
        ptx.bar.sync(0)
        y[t + i * THREADS] = s[t]
        ptx.bar.sync(0)


@case(None)
def barrier_that_reduces(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, THREADS), ptx.tid.x
    s[t] = x[t]
    n = ptx["barrier.cta.red.popc.aligned.u32"](0, x[t] > 5)
    y[t] = s[t ^ 64] + n


@case(None)
def handed_on_from_warp_to_warp(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Warp 0 to 1 by a flag, 1 to 2 by another: what 0 wrote, 2 may read."""
    s, t = shared(u32, 4), ptx.tid.x
    with when(t < 4):
        s[t] = 0
    ptx.bar.sync(0)
    with when(t == 0):
        s[0] = 42
        ptx["st.release.cta.shared.u32"](s + 1, 1)
    with when(t == 32):
        with loop():
            break_if(ptx["ld.acquire.cta.shared.u32"](s + 1) == 1)
        ptx["st.release.cta.shared.u32"](s + 2, 1)
    with when(t == 64):
        with loop():
            break_if(ptx["ld.acquire.cta.shared.u32"](s + 2) == 1)
        y[0] = s[0]


for name in ("tree_reduction-32", "tree_reduction-64"):
    del CASES[name]
GOOD = [name for name in CASES if name not in BUGS]



@pytest.mark.parametrize("name", BUGS)
def test_planted(name: str) -> None:
    chosen = CASES[name]
    assert chosen.error is not None
    with pytest.raises(chosen.error) as caught:
        run(chosen)
    error = caught.value
    assert error.loc is not None and error.loc.line in chosen.lines, str(error)
    if error.findings:
        assert len(error.findings) == 1, str(error)
        found = error.findings[0]
        lines = {side.loc.line for side in (found.access, found.earlier) if side is not None}
        assert lines == chosen.lines, str(error)


@pytest.mark.parametrize("name", GOOD)
def test_correct(name: str) -> None:
    run(CASES[name])


@pytest.mark.parametrize("name", GOOD)
def test_correct_in_any_order(name: str, rng: np.random.Generator) -> None:
    """Warps that take turns by lot reach the same numbers, and nothing is said of them."""
    usual = run(CASES[name])
    shuffled = run(CASES[name], seed=int(rng.integers(1 << 32)))
    if not name.startswith(("volatile", "relaxed", "atomics_of_one", "last_block_resets")):
        assert (usual == shuffled).all()


@pytest.mark.parametrize("name", [name for name in BUGS if CASES[name].error is RaceError])
def test_planted_in_any_order(name: str, rng: np.random.Generator) -> None:
    with pytest.raises(RaceError) as caught:
        run(CASES[name], seed=int(rng.integers(1 << 32)))
    assert caught.value.loc is not None and caught.value.loc.line in CASES[name].lines, str(caught.value)


def test_order_is_that_of_the_seed() -> None:
    """A lost update shows in some orders, and in the same ones each time."""

    @ptx_kernel
    def order(x: Ptr[u32]) -> None:
        with when((ptx.tid.x & 31) == 0):
            with loop(0, 20):
                x[ptx.atom.global_.add.u32(x, 1) + 1] = ptx.tid.x >> 5
                with loop(0, 300):
                    ptx.atom.global_.cas.b32(x + 4000, 0, 0)

    def ran(seed: int | None) -> list[int]:
        x = np.zeros(8192, np.uint32)
        with use("emulator"):
            order.configure(1, 256, seed=seed)(x)
        return x[1:161].tolist()

    assert ran(None) == ran(None)
    assert ran(5) == ran(5)
    assert len({tuple(ran(seed)) for seed in (None, 1, 2, 3)}) == 4


# What is said


def test_report_of_a_race() -> None:
    with pytest.raises(RaceError) as caught:
        run(CASES["missing_barrier-32"])
    error = caught.value
    first, second = sorted(CASES["missing_barrier-32"].lines)
    here = __file__
    assert str(error).split(" (PTX line")[0] == (
        "race on s[32] in shared memory: store by thread (32, 0, 0) and load by thread (0, 0, 0) of block (0, 0, 0) "
        "are not ordered\n"
        f"  after the load by thread (0, 0, 0) of block (0, 0, 0) at {here}:{second}: y[t] = s[(t + off) & 127]  # !"
    )
    assert error.hint == "put a barrier between the two: `ptx.bar.sync(0)`"
    (finding,) = error.findings
    assert (finding.kind, finding.array, finding.element, finding.space) == ("race", "s", "s[32]", "shared")
    assert (finding.access.verb, finding.access.thread) == ("store", (32, 0, 0))
    assert finding.earlier is not None and finding.earlier.thread == (0, 0, 0)
    assert finding.access.loc is not None and finding.access.loc.line == first


def test_all_findings_are_collected() -> None:
    with collect() as findings:
        run(CASES["shared_never_written"])
        run(CASES["all_blocks_one_place"])
        run(CASES["spin_lock"])
    assert [finding.kind for finding in findings] == ["init", "race"]


def test_two_bugs_are_two_findings() -> None:
    @ptx_kernel
    def two(y: Ptr[u32]) -> None:
        s, u, t = shared(u32, THREADS), shared(u32, THREADS), ptx.tid.x
        s[t] = t
        y[t] = s[t ^ 32] + u[t]

    with use("emulator"), pytest.raises(UninitializedError, match="and 1 more finding:\n  race on s") as caught:
        two.configure(1, THREADS, sanitize="all")(np.zeros(THREADS, np.uint32))
    assert [finding.kind for finding in caught.value.findings] == ["init", "race"]


@pytest.mark.parametrize(("tools", "error"), [("race", RaceError), ("init", UninitializedError), ("memory", None)])
def test_one_tool(tools: str, error: type[EmulationError] | None) -> None:
    @ptx_kernel
    def both(y: Ptr[u32]) -> None:
        s, u, t = shared(u32, THREADS), shared(u32, THREADS), ptx.tid.x
        s[t] = t
        y[t] = s[t ^ 32] + u[t]

    launch = both.configure(1, THREADS, sanitize=(tools,), backend="emulator")
    if error is None:
        launch(np.zeros(THREADS, np.uint32))
    else:
        with pytest.raises(error):
            launch(np.zeros(THREADS, np.uint32))


def test_written_by_one_launch_read_by_the_next() -> None:
    @ptx_kernel
    def fill(x: Ptr[u32], *, n: int) -> None:
        with when(ptx.tid.x < n):
            x[ptx.tid.x] = 1

    @ptx_kernel
    def add(x: Ptr[u32], y: Ptr[u32]) -> None:
        y[ptx.tid.x] = x[ptx.tid.x] + 1

    y = np.zeros(THREADS, np.uint32)
    for n, whole in ((THREADS, True), (THREADS - 1, False)):
        x = empty(THREADS, np.uint32, backend="emulator")
        fill.configure(1, THREADS, sanitize=True, backend="emulator")(x, n=n)
        launch = add.configure(1, THREADS, sanitize=True, backend="emulator")
        if whole:
            launch(x, y)
        else:
            with pytest.raises(UninitializedError, match=r"x\[127\]"):
                launch(x, y)


def test_arrays_that_overlap() -> None:
    @ptx_kernel
    def shift(x: Ptr[u32], y: Ptr[u32]) -> None:
        y[ptx.tid.x] = x[ptx.tid.x]

    memory = np.zeros(THREADS + 1, np.uint32)
    launch = shift.configure(1, THREADS, sanitize=True, backend="emulator")
    launch(memory[:-1], memory[:-1])
    with pytest.raises(RaceError):
        launch(memory[:-1], memory[1:])


def test_plugin(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import numpy as np
        from ptxdsl import Ptr, f32, ptx, ptx_kernel, shared

        @ptx_kernel
        def k(y: Ptr[f32]):
            s, t = shared(f32, 64), ptx.tid.x
            s[t] = 1.0
            y[t] = s[t ^ 32]

        def test_it():
            k.configure(1, 64, backend="emulator")(np.zeros(64, np.float32))
    """)
    installed = any(point.name == "ptxdsl" for point in entry_points(group="pytest11"))
    options = [] if installed else ["-p", "ptxdsl.pytest_plugin"]
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=1)
    result = pytester.runpytest_subprocess(*options, "--ptx-sanitize")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*ptxdsl: sanitize=all*", "*RaceError*"])


def test_enough() -> None:
    assert len(BUGS) >= 60 and len(GOOD) >= 60


def test_a_lock_among_lanes_is_no_deadlock() -> None:
    """Questions make turns short: that a poll changes nothing is no sign while it was not the holder's turn."""
    lock, count = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 lock, .param .u64 count) {
        .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p;
        ld.param.u64 %rd1, [lock]; ld.param.u64 %rd2, [count]; mov.u32 %r1, 0;
    AGAIN: atom.global.acquire.gpu.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p, %r2, 0; @%p bra AGAIN;
        ld.global.u32 %r3, [%rd2]; add.u32 %r3, %r3, 1; st.global.u32 [%rd2], %r3; st.release.gpu.u32 [%rd1], 0;
        add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, 2; @%p bra AGAIN; ret;
    }"""
    ptxdsl.load(text)["k"].configure(2, 64, backend="emulator", sanitize="all")(lock, count)
    assert count[0] == 2 * 64 * 2
