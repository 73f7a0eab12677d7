"""Correct kernels, of which the sanitizer must report nothing."""

from __future__ import annotations

from ptxdsl import Ptr, break_if, dynamic_shared, local, loop, otherwise, ptx, reg, select, shared, u16, u32, u8, when
from ptxdsl import warp

from sanitizer_cases import FULL, THREADS, Cases

__all__ = ["CORRECT"]

CORRECT = Cases()
case = CORRECT.register


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


@case(None, {"block": 128}, grid=3)
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
def barriers_of_half_warps(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
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
def all_fence_then_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
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
    """Every lane fences, a warp barrier, lane 0 sets the flag; the thread that waits fences after its poll."""
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


CORRECT["dynamic_with_barrier"] = CORRECT["dynamic_with_barrier"]._replace(shared=512)


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


@case(None, {"mask": 7}, {"mask": 12}, block=32)
def lanes_store_alike(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, mask: int) -> None:
    """Several lanes store the same at each place, whose offsets are known."""
    s, t = shared(u8, 16), ptx.tid.x
    s[t & mask] = 5
    ptx.bar.warp.sync(FULL)
    y[t] = s[t & mask].to(u32)


@case(None, block=(8, 4))
def rows_store_alike(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u8, 8), ptx.tid.x
    s[t] = 5
    ptx.bar.warp.sync(FULL)
    y[t + ptx.tid.y * 8] = s[t].to(u32)
