"""Racy programs, in the patterns of public race suites and of code that was found in the wild."""

from __future__ import annotations

from ptxdsl import Ptr, break_if, loop, otherwise, ptx, reg, shared, u8, u32, u64, when

from race_cases import FULL, Programs, spin_until

__all__ = ["RACY"]

RACY = Programs()
racy = RACY.add


# Lost updates: what is stored is the same, and yet an update is lost


@racy(kind="race", block=32)
def lanes_increment(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    y[0] = y[0] + 1  # !


@racy({"step": 2}, {"step": 32}, {"step": 64}, kind="race")
def neighbours_increment(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, step: int) -> None:
    y[ptx.tid.x // step] += 1  # !


@racy(kind="race")
def greatest_of_two_warps(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when((ptx.tid.x & 31) == 0):
        y[0] = ptx.max.u32(y[0], 5)  # !


@racy(kind="race")
def shared_increment(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 4), ptx.tid.x
    with when(t < 4):
        s[t] = 0
    ptx.bar.sync(0)
    s[t & 3] += 1  # !
    ptx.bar.sync(0)
    y[t] = s[t & 3]


@racy(kind="race", grid=3, block=32)
def bits_of_a_mask(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 3):
        y[0] = y[0] | 8  # !


@racy(kind="race", block=32)
def update_by_another_register(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    old = y[ptx.tid.x >> 1]  # !
    with when(old < 5):
        y[(ptx.tid.x & 62) >> 1] = 5  # !


@racy(kind="race")
def shared_histogram(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 8), ptx.tid.x
    with when(t < 8):
        s[t] = 0
    ptx.bar.sync(0)
    b = x[t] & 7
    s[b] = s[b] + 1  # !
    ptx.bar.sync(0)
    with when(t < 8):
        y[t] = s[t]


@racy(kind="race", block=32)
def update_in_a_loop(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with loop(0, 3):
        y[0] = y[0] ^ 1  # !


@racy(kind="race", block=32)
def bytes_incremented(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u8, 8), ptx.tid.x
    s[t & 7] = 0
    ptx.bar.warp.sync(FULL)
    s[t >> 3] = (s[t >> 3].to(u32) + 1).to(u8)  # !
    y[t] = s[t & 7].to(u32)  # !


@racy(kind="race", block=64)
def update_many_times(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Long enough to be compiled."""
    with loop(0, 3000):
        y[ptx.tid.x >> 5] += 1  # !


@racy(kind="race", grid=2, block=32)
def vectors_updated(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        a, b = y.load(0, width=2)  # !
        y.store(0, [a | 1, b | 1])  # !


@racy(kind="race", block=32)
def update_by_generic_addresses(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 2), ptx.tid.x
    s[t & 1] = 0
    ptx.bar.warp.sync(FULL)
    at = ptx.cvta.shared.u64((s + (t & 1)).address.to(u64))
    ptx["st.u32"](at, ptx["ld.u32"](at) + 1)  # !
    ptx.bar.warp.sync(FULL)
    y[t] = s[t & 1]


@racy(kind="race", grid=2, block=32)
def exchange_by_hand(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        old = y[0]  # !
        y[0] = 1  # !
        y[1 + ptx.ctaid.x] = old


# Stores that hide each other


@racy(kind="race")
def first_store_hidden(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        y[0] = 1  # !
        y[0] = 2  # !
    with when(ptx.tid.x == 40):
        y[0] = 2  # !


@racy(kind="race", block=32)
def two_stores_of_all_lanes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    y[0] = x[5]  # !
    y[0] = x[6]  # !


@racy(kind="race", block=32)
def lane_numbers_then_a_constant(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s = shared(u32, 1)
    s[0] = ptx.tid.x  # !
    s[0] = 7  # !
    ptx.bar.sync(0)
    y[ptx.tid.x] = s[0]


@racy({"by": 1}, {"by": 32}, kind="race")
def hidden_by_an_equal_store(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, by: int) -> None:
    with when(ptx.tid.x == 0):
        y[0] = 1  # !
    with when(ptx.tid.x == by):
        y[0] = 1  # !
        y[0] = 2  # !


@racy(kind="race", grid=2, block=32)
def weak_store_hidden_by_a_strong_one(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 0):
            y[0] = 1  # !
            ptx["fence.acq_rel.gpu"]()
            ptx["st.relaxed.gpu.global.u32"](y, 2)
        with otherwise():
            y[9] = ptx["ld.relaxed.gpu.global.u32"](y)  # !


@racy(kind="race", block=128, any_order=False)  # shadow memory keeps the last two readers
def third_reader_forgotten(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 2), ptx.tid.x
    with when(t < 2):
        s[t] = 0
    ptx.bar.sync(0)
    with when((t & 31) == 0):
        with when(t == 0):
            spin_until(lambda: ptx["ld.acquire.cta.shared.u32"](s + 1), 2)
            s[0] = 1  # !
        with otherwise():
            y[t] = s[0]  # !
            with when(t >= 64):
                ptx["red.release.cta.shared.add.u32"](s + 1, 1)


# Missing barriers


@racy(kind="race")
def double_buffer(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t, total = shared(u32, 128), ptx.tid.x, reg(u32, 0)
    s[t] = x[t]
    with loop(0, 4) as i:
        ptx.bar.sync(0)
        total += s[(i & 1) * 64 + (t ^ 32)]  # !
        s[(i & 1) * 64 + t] = total  # !
    y[t] = total


@racy(kind="race")
def private_histograms_merged_at_once(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    ptx.red.shared.add.u32(s + (t >> 5) * 32 + (x[t] & 31), 1)  # !
    with when(t < 32):
        y[t] = s[t] + s[t + 32]  # !


@racy({"last": 16}, {"last": 8}, kind="race", block=32)
def tree_in_a_warp(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, last: int) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = x[t]
    s[t + 32] = x[t + 32]
    for n in (16, 8, 4):
        ptx.bar.warp.sync(FULL)
        with when(t < n):
            s[t] = s[t] + s[t + n]  # !
        if n == last:
            with when(t < n // 2):
                s[t] = s[t] + s[t + n // 2]  # !


@racy(kind="race", block=96)
def named_barrier_of_others(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 96), ptx.tid.x
    s[t] = x[t]  # !
    with when(t < 64):
        ptx.bar.sync(1, 64)
        y[t] = s[t + 32]  # !


# Flags between blocks. The data is weak


SIDES = (
    ("st.relaxed.gpu", "", "ld.acquire.gpu", ""), ("st.release.gpu", "", "ld.relaxed.gpu", ""),
    ("st.release.cta", "", "ld.acquire.gpu", ""), ("st.release.gpu", "", "ld.acquire.cta", ""),
    ("st.release.cluster", "", "ld.acquire.gpu", ""), ("st.release.gpu", "", "ld.acquire.cluster", ""),
    ("st.relaxed.gpu", "fence.acq_rel.cta", "ld.acquire.gpu", ""),
    ("st.release.gpu", "", "ld.relaxed.gpu", "fence.acq_rel.cta"),
    ("st.release.sys", "", "ld.relaxed.sys", "fence.sc.cta"), ("st.release.gpu", "", "ld.volatile", "membar.cta"),
    ("st.volatile", "membar.cta", "ld.volatile", "membar.gl"),
    ("st.volatile", "membar.gl", "ld.volatile", "fence.acq_rel.cluster"), ("st.volatile", "", "ld.volatile", ""),
)


@racy(*({"tell": a, "before": b, "look": c, "behind": d} for a, b, c, d in SIDES), kind="race", grid=2)
def message(
    x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, tell: str, before: str, look: str, behind: str
) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42  # !
            if before:
                ptx[before]()
            ptx[tell + ".global.u32"](flag, 1)  # !
        with otherwise():
            spin_until(lambda: ptx[look + ".global.u32"](flag), 1)  # !
            if behind:
                ptx[behind]()
            y[1] = y[0]  # !


@racy(kind="race", grid=2)
def fence_of_the_block_and_a_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    with when(ptx.ctaid.x == 1):
        y[t] = t  # !
        ptx.bar.sync(0)
        with when(t == 0):
            ptx["st.release.gpu.global.u32"](flag, 1)
    with otherwise():
        with when(t == 0):
            spin_until(lambda: ptx["ld.relaxed.gpu.global.u32"](flag), 1)
            ptx["fence.acq_rel.cta"]()
        ptx.bar.sync(0)
        y[t + 512] = y[t]  # !


@racy({"chain": "atom.relaxed.cta"}, {"chain": "atom.relaxed.gpu"}, kind="race", grid=3, block=32)
def chain_of_read_modify_writes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, chain: str) -> None:
    """The chain is broken by its scope, or the last one does not acquire."""
    b = ptx.ctaid.x
    with when(ptx.tid.x == 0):
        with when(b == 0):
            y[0] = 42  # !
            ptx["atom.release.gpu.global.add.u32"](flag, 1)  # !
        with when(b == 1):
            spin_until(lambda: ptx["ld.relaxed.gpu.global.u32"](flag), 1)  # !
            ptx[chain + ".global.add.u32"](flag, 1)  # !
        with when(b == 2):
            look = "acquire" if chain.endswith("cta") else "relaxed"
            spin_until(lambda: ptx[f"ld.{look}.gpu.global.u32"](flag), 2)  # !
            y[1] = y[0]  # !


LOCKS = (
    ("atom.relaxed.gpu", "atom.relaxed.gpu", ""), ("atom.acquire.gpu", "atom.relaxed.gpu", ""),
    ("atom.relaxed.gpu", "atom.release.gpu", ""), ("atom.acquire.cta", "atom.release.gpu", ""),
    ("atom.relaxed.gpu", "atom.relaxed.gpu", "fence.acq_rel.cta"),
)


@racy(*({"take": a, "leave": b, "fence": c} for a, b, c in LOCKS), kind="race", grid=3, block=32)
def lock(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, take: str, leave: str, fence: str) -> None:
    with when(ptx.tid.x == 0):
        spin_until(lambda: ptx[take + ".global.cas.b32"](flag, 0, 1), 0)  # !
        if fence:
            ptx[fence]()
        y[0] = y[0] + 1  # !
        if fence:
            ptx[fence]()
        ptx[leave + ".global.exch.b32"](flag, 0)  # !


@racy(kind="race", grid=3, block=32)
def ticket_lock_without_fences(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        ticket = ptx.atom.global_.add.u32(flag, 1)
        spin_until(lambda: ptx["ld.volatile.global.u32"](flag + 1), ticket)
        y[0] = y[0] + 1  # !
        ptx["st.volatile.global.u32"](flag + 1, ticket + 1)


@racy({"fence": ""}, {"fence": "membar.cta"}, kind="race", grid=4)
def grid_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, fence: str) -> None:
    b, t = ptx.ctaid.x, ptx.tid.x
    y[b * 64 + t] = t  # !
    ptx.bar.sync(0)
    with when(t == 0):
        if fence:
            ptx[fence]()
        ptx.red.global_.add.u32(flag, 1)
        spin_until(lambda: ptx["ld.volatile.global.u32"](flag), 4)
    ptx.bar.sync(0)
    y[512 + b * 64 + t] = y[((b + 1) & 3) * 64 + t]  # !


@racy(kind="race", grid=2, block=32)
def weak_flags(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Dekker's entry with weak accesses."""
    b = ptx.ctaid.x
    with when(ptx.tid.x == 0):
        flag[b] = 1  # !
        ptx.membar.gl()
        with when(flag[1 - b] == 0):  # !
            ptx.red.global_.add.u32(y, 1)


@racy(kind="race", grid=2, block=32)
def checked_before_it_is_locked(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Made once, by who comes first: the second look does not see the data of who made it."""
    with when(ptx.tid.x == 0):
        with when(ptx["ld.relaxed.gpu.global.u32"](flag) == 0):
            with when(ptx["atom.relaxed.gpu.global.cas.b32"](flag + 1, 0, 1) == 0):
                y[0] = 42  # !
                ptx["st.release.gpu.global.u32"](flag, 1)
        spin_until(lambda: ptx["ld.relaxed.gpu.global.u32"](flag), 1)
        y[1 + ptx.ctaid.x] = y[0]  # !


@racy(kind="race", grid=4)
def stream_k_partial_sums(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    b, t, total = ptx.ctaid.x, ptx.tid.x, reg(u32, 0)
    with when(b > 0):
        y[b * 64 + t] = x[t]  # !
        with when(t == 0):
            ptx["st.release.gpu.global.u32"](flag + b, 1)
    with otherwise():
        with loop(1, 4) as i:
            with when(t == 0):
                spin_until(lambda: ptx["ld.acquire.gpu.global.u32"](flag + i), 1)
            ptx.bar.sync(0)
            total += y[i * 64 + t]  # !
        y[t] = total


# Strong accesses only: no race by the axioms, and yet the order is missing


@racy({"tell": "relaxed.gpu", "look": "relaxed.gpu"}, {"tell": "release.gpu", "look": "relaxed.gpu"},
      {"tell": "relaxed.gpu", "look": "acquire.gpu"}, {"tell": "volatile", "look": "volatile"}, kind="order", grid=2)
def message_of_strong_accesses(
    x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, tell: str, look: str
) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            ptx["st.volatile.global.u32"](y, 42)  # !
            ptx[f"st.{tell}.global.u32"](flag, 1)
        with otherwise():
            spin_until(lambda: ptx[f"ld.{look}.global.u32"](flag), 1)
            y[1] = ptx["ld.volatile.global.u32"](y)  # !


@racy(kind="order", grid=4, block=32)
def last_block_reads_volatile_sums(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    b, t, total = ptx.ctaid.x, ptx.tid.x, reg(u32, 0)
    with when(t == 0):
        ptx["st.volatile.global.u32"](y + 64 + b, b + 1)  # !
        with when(ptx.atom.global_.add.u32(flag, 1) == 3):
            with loop(0, 4) as i:
                total += ptx["ld.volatile.global.u32"](y + 64 + i)  # !
            y[0] = total


@racy(kind="order", grid=4, block=32)
def look_back_over_two_arrays(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    b, total = ptx.ctaid.x, reg(u32, 1)
    with when(ptx.tid.x == 0):
        with when(b > 0):
            spin_until(lambda: ptx["ld.volatile.global.u32"](flag + b), 1)
            total += ptx["ld.volatile.global.u32"](y + b)  # !
        ptx["st.volatile.global.u32"](y + b + 1, total)  # !
        ptx["st.volatile.global.u32"](flag + b + 1, 1)


@racy(kind="order", grid=2, block=32)
def queue_of_relaxed_items(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 0):
            ptx["st.relaxed.gpu.global.u32"](y + 5, 7)  # !
            ptx["st.relaxed.gpu.global.u32"](flag, 6)
        with otherwise():
            n = reg(u32, 0)
            with loop():
                n.set(ptx["ld.relaxed.gpu.global.u32"](flag))
                break_if(n > 0)
            y[0] = ptx["ld.relaxed.gpu.global.u32"](y + n - 1)  # !


@racy(kind="order", block=32)
def volatile_reduction_in_step(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = x[t]
    s[t + 32] = x[t + 32]
    ptx.bar.warp.sync(FULL)
    for n in (16, 8, 4, 2, 1):
        a = ptx["ld.volatile.shared.u32"](s + t)
        ptx["st.volatile.shared.u32"](s + t, a + ptx["ld.volatile.shared.u32"](s + t + n))  # !


@racy(kind="order")
def volatile_tile_without_a_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    ptx["st.volatile.shared.u32"](s + t, x[t])  # !
    y[t] = ptx["ld.volatile.shared.u32"](s + (t ^ 32))  # !


# Clusters, mbarriers, asynchronous copies


@racy({"arrive": "relaxed"}, {"arrive": ""}, kind="race", grid=2, cluster=2)
def other_block_of_the_cluster(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, arrive: str) -> None:
    b, t = ptx.ctaid.x, ptx.tid.x
    y[b * 64 + t] = t  # !
    if arrive:
        ptx["barrier.cluster.arrive.relaxed"]()
        ptx["barrier.cluster.wait"]()
    else:
        ptx.bar.sync(0)
    y[512 + b * 64 + t] = y[(1 - b) * 64 + t]  # !


@racy(kind="race", grid=4, block=32, cluster=2)
def flag_of_the_cluster_beyond_it(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    b = ptx.ctaid.x
    with when(ptx.tid.x == 0):
        with when(b == 0):
            y[0] = 42  # !
            ptx["st.release.cluster.global.u32"](flag, 1)  # !
        with when(b == 2):
            with when(ptx["ld.acquire.cluster.global.u32"](flag) == 1):  # !
                y[1] = y[0]  # !


@racy({"arrive": "mbarrier.arrive.relaxed.cta.shared.b64"}, {"arrive": ""}, kind="race")
def handed_over_by_an_mbarrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, arrive: str) -> None:
    s, bar, t = shared(u32, 32), shared(u32, 2, align=8), ptx.tid.x
    with when(t == 0):
        ptx.mbarrier.init.shared.b64(bar, 32)
    ptx.bar.sync(0)
    with when(t < 32):
        if arrive:
            s[t] = t  # !
            ptx[arrive](bar)
        else:
            ptx["mbarrier.arrive.shared.b64"](bar)
            s[t] = t  # !
    with otherwise():
        with loop():
            break_if(ptx["mbarrier.try_wait.parity.shared.b64"](bar, 0))
        y[t] = s[t - 32]  # !
