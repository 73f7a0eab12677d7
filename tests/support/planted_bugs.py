"""Kernels with one bug each, on the lines that end in ``# !``."""

from __future__ import annotations

from ptxdsl import (
    BarrierError, DeadlockError, MemoryFault, Ptr, RaceError, UninitializedError, break_if, dynamic_shared, local, loop,
    otherwise, ptx, reg, s32, shared, u32, u8, when,
)

from sanitizer_cases import FULL, THREADS, Cases

__all__ = ["BUGS"]

BUGS = Cases()
case = BUGS.register


# Shared memory, whole blocks


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


BUGS["dynamic"] = BUGS["dynamic"]._replace(shared=512)


@case(RaceError)
def partial_named_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """A barrier of warps 0 and 1, but warp 0 reads what warp 2 wrote."""
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


# Within a warp


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
def barrier_of_half_a_warp(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
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


for name in ("missing_warp_sync-1", "missing_warp_sync-16", "warp_reduction_in_step", "barrier_of_half_a_warp",
             "leader_after_its_lanes", "shuffle_is_no_fence"):
    BUGS[name] = BUGS[name]._replace(block=32)


# Global memory


@case(RaceError, {"off": 1}, {"off": 64})
def global_in_a_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, off: int) -> None:
    t = ptx.tid.x
    y[t] = x[t]  # !
    y[t + 4096] = y[t ^ off]  # !


@case(RaceError, grid=4)
def neighbouring_blocks(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.ctaid.x + ptx.tid.x
    y[i + 1] = y[i]  # !


BUGS["neighbouring_blocks"] = BUGS["neighbouring_blocks"]._replace(block=1, grid=4)


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


# Uninitialised


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


# Bounds, alignment, barriers, deadlock


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
