"""Programs without a race, in the patterns in which code that is right looks like code that is not."""

from __future__ import annotations

from ptxdsl import Ptr, break_if, loop, otherwise, ptx, reg, shared, u32, when

from race_cases import FULL, Programs, spin_until

__all__ = ["ORDERED"]

ORDERED = Programs()
ordered = ORDERED.add


# The same value, by several


@ordered(grid=3)
def flag_set_by_all(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    flag[0] = 1


@ordered(grid=2)
def flag_set_by_who_finds_it(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(x[ptx.tid.x] % 7 == 3):
        flag[0] = 1


@ordered()
def flag_of_the_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    s[0] = 0
    with loop(0, 3) as i:
        ptx.bar.sync(0)
        with when(x[t] == i * 20):
            s[0] = 1
        ptx.bar.sync(0)
        y[t] += s[0]


@ordered(block=32)
def equal_in_different_turns(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """What a lane stores is the same whichever lane does; what its register holds afterwards is not."""
    t = ptx.tid.x
    with loop(0, 32) as i:
        value = ptx.selp.u32(7, t + 50, t == i)
        with when(value == 7):
            y[0] = value


@ordered(block=32)
def computed_alike_by_all_lanes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, total = shared(u32, 8), reg(u32, 0)
    with loop(0, 8) as i:
        total += x[i]
        s[i] = total
    ptx.bar.sync(0)
    y[ptx.tid.x] = s[ptx.tid.x & 7]


@ordered()
def computed_alike_through_a_register(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    v = ptx.tid.x // 64 + x[9]
    with loop(0, 50):
        y[0] = v


@ordered()
def counter_that_all_increment_after_a_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s = shared(u32, 1)
    s[0] = 0
    with loop(0, 3):
        ptx.bar.sync(0)
        n = s[0]
        ptx.bar.sync(0)
        s[0] = n + 1


@ordered(block=96)
def constant_twice(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    y[0] = 3
    y[1] = 4
    y[0] = 3
    y[1] = 4


@ordered(grid=2)
def neighbours_share_a_halo(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.ctaid.x * 62 + ptx.tid.x
    y[i] = x[i] * 3


@ordered(block=32)
def vectors_of_the_same(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    i = ptx.tid.x >> 3
    y.store(i * 4, [i, x[i], 5, i + 1])


@ordered()
def a_store_for_oneself(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    y[t] = 1
    y[t] += x[t]
    y[t] = y[t] * 2


# Atomics


@ordered({"op": "add"}, {"op": "max"}, {"op": "xor"}, grid=3)
def one_counter(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, op: str) -> None:
    kind = "b32" if op == "xor" else "u32"
    ptx[f"red.global.{op}.{kind}"](y, ptx.tid.x)


@ordered({"load": "ld.relaxed.gpu"}, {"load": "ld.volatile"}, {"load": "ld"}, grid=2)
def update_by_compare_and_swap(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, load: str) -> None:
    at = y + (ptx.tid.x & 3)
    old = reg(u32, ptx[load + ".global.u32"](at))
    with loop():
        seen = ptx.atom.global_.cas.b32(at, old, old * 3 + 1)
        break_if(seen == old)
        old.set(seen)


@ordered(grid=2)
def update_by_compare_and_swap_loaded_each_time(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with loop():
        old = y[0]
        break_if(ptx.atom.global_.cas.b32(y, old, old + 1) == old)


@ordered(grid=2)
def half_of_a_word_by_compare_and_swap(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    old = reg(u32, y[0])
    with loop():
        high = (old & 0xFFFF0000) + 0x10000
        assumed = reg(u32, old)
        old.set(ptx.atom.global_.cas.b32(y, assumed, high | (assumed & 0xFFFF)))
        break_if(old == assumed)


@ordered()
def private_histograms(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    s[t] = 0
    ptx.bar.sync(0)
    ptx.red.shared.add.u32(s + (t >> 5) * 32 + (x[t] & 31), 1)
    ptx.bar.sync(0)
    with when(t < 32):
        y[t] = s[t] + s[t + 32]


@ordered(grid=3)
def statistics(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Counters that somebody looks at on the way."""
    t = ptx.tid.x
    ptx.red.global_.add.u32(flag + (t & 3), 1)
    ptx.red.global_.add.u32(flag + (t & 1) + 4, x[t])
    with when(t == 0):
        with loop(0, 6) as i:
            y[ptx.ctaid.x * 6 + i] = ptx["ld.relaxed.gpu.global.u32"](flag + i)


@ordered(grid=3)
def bound_that_only_saves_work(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    v = x[ptx.tid.x]
    with when(ptx["ld.volatile.global.u32"](flag) < v):
        ptx.red.global_.max.u32(flag, v)


@ordered(grid=3, block=32)
def stop_when_somebody_has_found_it(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    t = ptx.tid.x
    with loop(0, 20) as i:
        break_if(ptx["ld.volatile.global.u32"](flag) != 0)
        with when(x[i * 32 + t] == 100 + ptx.ctaid.x):
            ptx["st.volatile.global.u32"](flag, 1)


# Flags, locks and barriers of the grid


SIDES = (
    ("st.release.gpu", "", "ld.acquire.gpu", ""), ("st.release.sys", "", "ld.acquire.gpu", ""),
    ("st.relaxed.gpu", "fence.acq_rel.gpu", "ld.acquire.gpu", ""),
    ("st.release.gpu", "", "ld.relaxed.gpu", "fence.acq_rel.gpu"),
    ("st.volatile", "membar.gl", "ld.volatile", "membar.gl"),
    ("st.volatile", "membar.sys", "ld.relaxed.sys", "fence.sc.gpu"),
    ("st.release.gpu", "", "ld.acquire.sys", "membar.cta"),
    ("st.relaxed.sys", "fence.sc.sys", "ld.volatile", "fence.acq_rel.sys"),
)


@ordered(*({"tell": a, "before": b, "look": c, "behind": d} for a, b, c, d in SIDES), grid=2)
def message(
    x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, tell: str, before: str, look: str, behind: str
) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            y[0] = 42
            if before:
                ptx[before]()
            ptx[tell + ".global.u32"](flag, 1)
        with otherwise():
            spin_until(lambda: ptx[look + ".global.u32"](flag), 1)
            if behind:
                ptx[behind]()
            y[1] = y[0]


@ordered({"fence": "fence.acq_rel.cta"}, {"fence": "membar.cta"}, {"fence": "fence.acq_rel.cluster"})
def message_in_a_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, fence: str) -> None:
    with when(ptx.tid.x == 0):
        spin_until(lambda: ptx["ld.relaxed.cta.global.u32"](flag), 1)
        ptx[fence]()
        y[1] = y[0]
    with when(ptx.tid.x == 32):
        y[0] = 42
        ptx[fence]()
        ptx["st.relaxed.cta.global.u32"](flag, 1)


@ordered({"strong": True}, {"strong": False}, grid=2)
def narrow_fence_then_a_wide_one(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, strong: bool) -> None:
    with when(ptx.tid.x == 0):
        with when(ptx.ctaid.x == 1):
            if strong:
                ptx["st.relaxed.gpu.global.u32"](y, 42)
            else:
                y[0] = 42
            ptx["st.release.gpu.global.u32"](flag, 1)
        with otherwise():
            spin_until(lambda: ptx["ld.relaxed.gpu.global.u32"](flag), 1)
            ptx["fence.acq_rel.cta"]()
            ptx["fence.acq_rel.gpu"]()
            y[1] = ptx["ld.relaxed.gpu.global.u32"](y) if strong else y[0]


@ordered({"middle": "relaxed"}, {"middle": "acq_rel"}, grid=3, block=32)
def chain_of_read_modify_writes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, middle: str) -> None:
    b = ptx.ctaid.x
    with when(ptx.tid.x == 0):
        with when(b == 0):
            y[0] = 42
            ptx["atom.release.gpu.global.add.u32"](flag, 1)
        with when(b == 1):
            spin_until(lambda: ptx["ld.relaxed.gpu.global.u32"](flag), 1)
            ptx[f"atom.{middle}.gpu.global.add.u32"](flag, 1)
        with when(b == 2):
            spin_until(lambda: ptx["ld.acquire.gpu.global.u32"](flag), 2)
            y[1] = y[0]


@ordered(grid=2, block=32)
def narrow_write_ends_no_chain_in_its_block(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """A release of the GPU's scope, carried on by the block's scope within the block."""
    t = ptx.tid.x
    with when(ptx.ctaid.x == 0):
        with when(t == 0):
            y[0] = 42
            ptx["atom.release.gpu.global.add.u32"](flag, 1)
        with when(t == 1):
            spin_until(lambda: ptx["ld.relaxed.cta.global.u32"](flag), 1)
            ptx["atom.relaxed.gpu.global.add.u32"](flag, 1)
    with otherwise():
        with when(t == 0):
            spin_until(lambda: ptx["ld.acquire.gpu.global.u32"](flag), 2)
            y[1] = y[0]


LOCKS = (
    ("atom.acquire.gpu", "atom.release.gpu", ""), ("atom.relaxed.gpu", "atom.relaxed.gpu", "fence.acq_rel.gpu"),
    ("atom.acq_rel.sys", "atom.acq_rel.gpu", ""), ("atom", "atom", "membar.gl"),
)


@ordered(*({"take": a, "leave": b, "fence": c} for a, b, c in LOCKS), grid=3, block=32)
def lock(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, take: str, leave: str, fence: str) -> None:
    with when(ptx.tid.x == 0):
        spin_until(lambda: ptx[take + ".global.cas.b32"](flag, 0, 1), 0)
        if fence:
            ptx[fence]()
        y[0] = y[0] + 1
        if fence:
            ptx[fence]()
        ptx[leave + ".global.exch.b32"](flag, 0)


@ordered(grid=3, block=32)
def lock_around_volatile_data(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    with when(ptx.tid.x == 0):
        spin_until(lambda: ptx["atom.acquire.gpu.global.cas.b32"](flag, 0, 1), 0)
        ptx["st.volatile.global.u32"](y, ptx["ld.volatile.global.u32"](y) + 1)
        ptx["atom.release.gpu.global.exch.b32"](flag, 0)


@ordered({"fences": True}, {"fences": False}, grid=3, block=32)
def ticket_lock(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, fences: bool) -> None:
    with when(ptx.tid.x == 0):
        ticket = ptx.atom.global_.add.u32(flag, 1)
        if fences:
            spin_until(lambda: ptx["ld.volatile.global.u32"](flag + 1), ticket)
            ptx.membar.gl()
            y[0] = y[0] + 1
            ptx.membar.gl()
            ptx["st.volatile.global.u32"](flag + 1, ticket + 1)
        else:
            spin_until(lambda: ptx["ld.acquire.gpu.global.u32"](flag + 1), ticket)
            y[0] = y[0] + 1
            ptx["st.release.gpu.global.u32"](flag + 1, ticket + 1)


@ordered({"turns": 1}, {"turns": 3}, grid=4)
def grid_barrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, turns: int) -> None:
    b, t = ptx.ctaid.x, ptx.tid.x
    with loop(0, turns) as i:
        y[i * 512 + b * 64 + t] = t
        ptx.bar.sync(0)
        with when(t == 0):
            ptx.membar.gl()
            ptx.red.global_.add.u32(flag, 1)
            with loop():
                break_if(ptx["ld.volatile.global.u32"](flag) >= (i + 1) * 4)
            ptx.membar.gl()
        ptx.bar.sync(0)
        y[i * 512 + 256 + b * 64 + t] = y[i * 512 + ((b + 1) & 3) * 64 + t]


@ordered(grid=2, block=32)
def entry_by_sequentially_consistent_fences(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    b = ptx.ctaid.x
    with when(ptx.tid.x == 0):
        ptx["st.relaxed.gpu.global.u32"](flag + b, 1)
        ptx["fence.sc.gpu"]()
        with when(ptx["ld.relaxed.gpu.global.u32"](flag + (1 - b)) == 0):
            y[0] = b


@ordered({"data": "st.volatile"}, {"data": "st"}, grid=4, block=32)
def last_block_adds_up(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, data: str) -> None:
    b, t, total = ptx.ctaid.x, ptx.tid.x, reg(u32, 0)
    with when(t == 0):
        ptx[data + ".global.u32"](y + 64 + b, b)
        ptx.membar.gl()
        with when(ptx.atom.global_.add.u32(flag, 1) == 3):
            ptx.membar.gl()
            with loop(0, 4) as i:
                total += ptx[data.replace("st", "ld") + ".global.u32"](y + 64 + i)
            y[0] = total


@ordered(grid=4, block=32)
def look_back_with_the_sum_in_the_flag(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """One word holds both, so it needs no order."""
    b, total = ptx.ctaid.x, reg(u32, 5)
    with when(ptx.tid.x == 0):
        with when(b > 0):
            with loop():
                word = ptx["ld.relaxed.gpu.global.u32"](y + (b - 1))
                total.set((word >> 1) + 5)
                break_if((word & 1) == 1)
        ptx["st.relaxed.gpu.global.u32"](y + b, total * 2 + 1)


@ordered(grid=4, block=32)
def look_back_by_a_warp(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """The lanes poll a window of earlier blocks until none is empty; a stale word costs another turn."""
    b, t = ptx.ctaid.x, ptx.tid.x
    ptx["st.relaxed.gpu.global.u32"](y + b * 32 + t, b * 2 + 1)
    before = reg(u32, 0)
    with when(b > 0):
        with loop():
            word = ptx["ld.relaxed.gpu.global.u32"](y + (t % b) * 32 + t)
            before.set(word)
            break_if(ptx["vote.sync.all.pred"](word != 0, FULL))
        ptx["st.relaxed.gpu.global.u32"](y + b * 32 + t, before + 2)


@ordered({"release": "st.release.gpu"}, {"release": "st.relaxed.gpu"}, grid=4)
def stream_k_fix_up(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, release: str) -> None:
    b, t, total = ptx.ctaid.x, ptx.tid.x, reg(u32, 0)
    with when(b > 0):
        y[b * 64 + t] = x[t]
        if "relaxed" in release:
            ptx["fence.acq_rel.gpu"]()
        ptx.bar.sync(0)
        with when(t == 0):
            ptx[release + ".global.u32"](flag + b, 1)
    with otherwise():
        with loop(1, 4) as i:
            with when(t == 0):
                spin_until(lambda: ptx["ld.acquire.gpu.global.u32"](flag + i), 1)
            ptx.bar.sync(0)
            total += y[i * 64 + t]
        y[t] = total


@ordered(grid=3, block=32)
def stack_of_nodes(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Nodes are pushed by a compare-and-swap that releases, and followed behind one that acquires."""
    b = ptx.ctaid.x
    with when(ptx.tid.x == 0):
        head = reg(u32, ptx["ld.relaxed.gpu.global.u32"](flag))
        with loop():
            y[b + 1] = head
            seen = ptx["atom.release.gpu.global.cas.b32"](flag, head, b + 1)
            break_if(seen == head)
            head.set(seen)
        node, length = reg(u32, ptx["ld.acquire.gpu.global.u32"](flag)), reg(u32, 0)
        with loop():
            break_if(node == 0)
            length += 1
            node.set(y[node])
        y[16 + b] = length


@ordered(grid=3, block=32)
def union_find(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """The trees change while they are followed; what is old is still right."""
    t = ptx.tid.x
    ptx["st.relaxed.gpu.global.u32"](y + 40 + t, 40 + t)
    at = reg(u32, 40 + (t + ptx.ctaid.x) % 32)
    with loop(0, 6):
        up = ptx["ld.relaxed.gpu.global.u32"](y + at)
        break_if((up == at) | (up == 0))
        above = ptx["ld.relaxed.gpu.global.u32"](y + up)
        break_if(above == 0)
        ptx["st.relaxed.gpu.global.u32"](y + at, above)
        at.set(above)


@ordered(grid=4, block=32)
def persistent_blocks(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """Tiles are drawn by tickets; each has its own output."""
    t, tile = ptx.tid.x, reg(u32, 0)
    with loop():
        with when(t == 0):
            tile.set(ptx.atom.global_.add.u32(flag, 1))
        tile.set(ptx.shfl.sync.idx.b32(tile, 0, 31, FULL))
        break_if(tile >= 9)
        y[tile * 32 + t] = x[tile * 32 + t] * 2


@ordered(grid=2, block=32)
def one_thread_adds_up(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    """A place of its own, many times."""
    with when(ptx.tid.x == 0):
        with loop(0, 3000) as i:
            y[ptx.ctaid.x] += i
            y[ptx.ctaid.x] = y[ptx.ctaid.x] ^ 1


@ordered()
def everybody_clears_and_one_adds(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 1), ptx.tid.x
    with loop(0, 3) as i:
        s[0] = 0
        ptx.bar.sync(0)
        with when(t == i):
            s[0] += x[i]
            s[0] += 1
        ptx.bar.sync(0)
        y[i * 64 + t] = s[0]
        ptx.bar.sync(0)


# Barriers


@ordered()
def double_buffer(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t, total = shared(u32, 128), ptx.tid.x, reg(u32, 0)
    s[t] = x[t]
    with loop(0, 4) as i:
        ptx.bar.sync(0)
        total += s[(i & 1) * 64 + (t ^ 32)]
        s[((i + 1) & 1) * 64 + t] = total
    y[t] = total


@ordered({"kind": "plain"}, {"kind": "volatile"}, block=32)
def tree_in_a_warp(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, kind: str) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    middle = "" if kind == "plain" else ".volatile"
    s[t] = x[t]
    s[t + 32] = x[t + 32]
    ptx.bar.warp.sync(FULL)
    for n in (16, 8, 4, 2, 1):
        a = ptx[f"ld{middle}.shared.u32"](s + t) + ptx[f"ld{middle}.shared.u32"](s + t + n)
        ptx.bar.warp.sync(FULL)
        ptx[f"st{middle}.shared.u32"](s + t, a)
        ptx.bar.warp.sync(FULL)


@ordered()
def volatile_tile(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    ptx["st.volatile.shared.u32"](s + t, x[t])
    ptx.bar.sync(0)
    y[t] = ptx["ld.volatile.shared.u32"](s + (t ^ 32))


@ordered({"data": "st.relaxed.gpu"}, {"data": "st"}, grid=2)
def barrier_after_a_relaxed_flag(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, data: str) -> None:
    """NVIDIA's libraries count on the barrier after the flag, where no fence is."""
    t = ptx.tid.x
    with when(ptx.ctaid.x == 1):
        ptx[data + ".global.u32"](y + t, t)
        ptx.membar.gl()
        ptx.bar.sync(0)
        with when(t == 0):
            ptx["st.volatile.global.u32"](flag, 1)
    with otherwise():
        with when(t == 0):
            with loop():
                break_if(ptx["ld.volatile.global.u32"](flag) == 1)
                ptx["fence.acq_rel.cta"]()
        ptx.bar.sync(0)
        y[t + 512] = ptx[data.replace("st", "ld") + ".global.u32"](y + t)


# Clusters, mbarriers


@ordered({"arrive": "release"}, {"arrive": "fence"}, grid=2, cluster=2)
def blocks_of_a_cluster(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, arrive: str) -> None:
    b, t = ptx.ctaid.x, ptx.tid.x
    y[b * 64 + t] = t
    if arrive == "fence":
        ptx["fence.acq_rel.cluster"]()
        ptx["barrier.cluster.arrive.relaxed"]()
    else:
        ptx["barrier.cluster.arrive"]()
    ptx["barrier.cluster.wait"]()
    y[512 + b * 64 + t] = y[(1 - b) * 64 + t]


@ordered({"look": "ld.acquire.cluster"}, {"look": "ld.relaxed.cluster"}, grid=4, block=32, cluster=2)
def flag_in_a_cluster(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, look: str) -> None:
    b = ptx.ctaid.x
    c = b >> 1
    with when(ptx.tid.x == 0):
        with when((b & 1) == 0):
            y[c] = 42
            ptx["st.release.cluster.global.u32"](flag + c, 1)
        with otherwise():
            spin_until(lambda: ptx[look + ".global.u32"](flag + c), 1)
            if "relaxed" in look:
                ptx["fence.acq_rel.cluster"]()
            y[4 + c] = y[c]


@ordered(grid=4, block=32, cluster=2)
def counter_of_a_cluster(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    ptx["red.relaxed.cluster.global.add.u32"](y + (ptx.ctaid.x >> 1), 1)


@ordered({"arrive": ""}, {"arrive": ".release.cta"})
def handed_over_by_an_mbarrier(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32], *, arrive: str) -> None:
    s, bar, t = shared(u32, 32), shared(u32, 2, align=8), ptx.tid.x
    with when(t == 0):
        ptx.mbarrier.init.shared.b64(bar, 32)
    ptx.bar.sync(0)
    with when(t < 32):
        s[t] = t
        ptx[f"mbarrier.arrive{arrive}.shared.b64"](bar)
    with otherwise():
        with loop():
            break_if(ptx["mbarrier.try_wait.parity.shared.b64"](bar, 0))
        y[t] = s[t - 32]


@ordered()
def copied_and_waited_for(x: Ptr[u32], y: Ptr[u32], flag: Ptr[u32]) -> None:
    s, t = shared(u32, 64), ptx.tid.x
    ptx["cp.async.ca.shared.global"](s + t, x + t, 4)
    ptx["cp.async.wait_all"]()
    ptx.bar.sync(0)
    y[t] = s[t ^ 33]
