"""Launches of whole blocks that synchronise by barriers, mbarriers, flags and copies, each right and wrong.

A program is (name, what is wrong, launch, arguments, what the arrays must be): "" is a right one, ``differs`` one whose
result depends on the schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ptxdsl import (
    Array, Pipeline, Ptr, TensorMap, bf16, break_if, cluster, dtype_of, dynamic_shared, f32, loop, mbarrier, otherwise,
    ptx, ptx_kernel, shared, tensor_map, tiles, tma, u32, wgmma, when,
)

__all__ = ["PROGRAMS", "Program"]


class Program(NamedTuple):
    """A launch."""

    name: str
    wrong: str
    kernel: Any
    grid: int
    block: int
    arguments: Callable[[], list[Any]]
    holds: Callable[[list[Any]], bool]
    options: dict[str, Any]
    constants: dict[str, Any]


PROGRAMS: list[Program] = []


def _add(
    kernel: Any, grid: int, block: int, arguments: Callable[[], list[Any]], variants: dict[str, str],
    holds: Callable[[list[Any]], bool] = lambda _: True, **options: Any,
) -> None:
    """Each variant of a kernel, and what is wrong with it."""
    for how, wrong in variants.items():
        name = f"{kernel.__name__} {how}".strip()
        PROGRAMS.append(Program(name, wrong, kernel, grid, block, arguments, holds, options, {"how": how}))


def _zeros(*sizes: int) -> Callable[[], list[Any]]:
    return lambda: [np.zeros(size, np.uint32) for size in sizes]


@ptx_kernel
def block_barrier(x: Ptr[u32], *, how: str) -> None:
    row, thread = shared(u32, 128), ptx.tid.x
    row[thread] = thread
    if how == "halves":
        with when(thread < 64):
            ptx.bar.sync(1, 64)
        with otherwise():
            ptx.bar.sync(2, 64)
    elif how != "none":
        ptx.bar.sync(0)
    x[thread] = row[(thread + 64) & 127]


_add(
    block_barrier, 1, 128, _zeros(128), {"": "", "halves": "RaceError", "none": "RaceError"},
    lambda a: bool((a[0] == (np.arange(128) + 64) % 128).all()),
)


@ptx_kernel
def named_barriers(x: Ptr[u32], *, how: str) -> None:
    row, thread = shared(u32, 32), ptx.tid.x
    full, empty = (2, 1) if how == "swapped" else (1, 2)
    with when(thread < 32):
        with loop(3) as i:
            row[thread] = i + thread
            ptx.bar.sync(full, 64)
            ptx.bar.sync(empty, 64)
    with otherwise():
        with loop(3) as i:
            ptx.bar.sync(1, 64)
            x[thread - 32 + i * 32] = row[thread - 32]
            if how != "skipped":
                ptx.bar.sync(2, 64)


_add(named_barriers, 1, 64, _zeros(96), {"": "", "swapped": "DeadlockError", "skipped": "DeadlockError"})


@ptx_kernel
def third_warp_arrives(x: Ptr[u32], *, how: str) -> None:
    thread = ptx.tid.x
    with when(thread < 64):
        ptx.bar.sync(1, 96 if how == "" else 64)
        x[thread] = 1
    with otherwise():
        ptx.bar.arrive(1, 96 if how == "" else 64)


_add(third_warp_arrives, 1, 96, _zeros(64), {"": "", "too many": "DeadlockError"})


@ptx_kernel
def flag(x: Ptr[u32], flag: Ptr[u32], out: Ptr[u32], *, how: str) -> None:
    thread = ptx.tid.x
    with when(ptx.ctaid.x == 0):
        x[thread] = thread + 1
        if how != "no barrier":
            ptx.bar.sync(0)
        with when(thread == 0):
            if how == "fence":
                ptx.fence.acq_rel.gpu()
            if how in ("fence", "relaxed"):
                ptx.st.relaxed.gpu.global_.u32(flag, 1)
            elif how == "of the block":
                ptx.st.release.cta.global_.u32(flag, 1)
            elif how == "weak":
                flag[0] = 1
            else:
                ptx.st.release.gpu.global_.u32(flag, 1)
    with otherwise():
        if how != "no wait":
            with when(thread == 0), loop():
                load = ptx.ld.volatile.global_ if how == "volatile" else ptx.ld.acquire.gpu.global_
                break_if(load.u32(flag) == 1)
        ptx.bar.sync(0)
        out[thread] = x[thread]


_wrong = ("no barrier", "relaxed", "of the block", "weak", "no wait", "volatile")
_add(
    flag, 2, 64, _zeros(64, 1, 64), {"": "", "fence": "", **dict.fromkeys(_wrong, "RaceError")},
    lambda a: bool((a[2] == np.arange(64) + 1).all()),
)


@ptx_kernel
def lock(lock: Ptr[u32], count: Ptr[u32], *, how: str) -> None:
    with when((ptx.tid.x & 31) == 0):
        with loop():
            if how == "relaxed":
                old = ptx.atom.relaxed.gpu.global_.cas.b32(lock, 0, 1)
            else:
                old = ptx.atom.acquire.gpu.global_.cas.b32(lock, 0, 1)
            break_if(old == 0)
        count[0] = count[0] + 1
        if how != "kept":
            ptx.st.release.gpu.global_.u32(lock, 0)


_add(
    lock, 2, 64, _zeros(1, 1), {"": "", "relaxed": "RaceError", "kept": "DeadlockError"}, lambda a: bool(a[1][0] == 4)
)


@ptx_kernel
def two_locks(locks: Ptr[u32], count: Ptr[u32], *, how: str) -> None:
    with when(ptx.tid.x == 0):
        first = ptx.ctaid.x * (0 if how == "" else 1)
        for at in (first, first ^ 1):
            with loop():
                break_if(ptx.atom.acquire.gpu.global_.cas.b32(locks + at, 0, 1) == 0)
        count[0] = count[0] + 1
        for at in (first ^ 1, first):
            ptx.st.release.gpu.global_.u32(locks + at, 0)


_add(two_locks, 2, 32, _zeros(2, 1), {"": "", "in a circle": "DeadlockError"}, lambda a: bool(a[1][0] == 2))


@ptx_kernel
def counter(count: Ptr[u32], *, how: str) -> None:
    with when((ptx.tid.x & 31) == 0):
        if how == "":
            ptx.red.relaxed.gpu.global_.add.u32(count, 1)
        else:
            ptx.st.relaxed.gpu.global_.u32(count, ptx.ld.relaxed.gpu.global_.u32(count) + 1)


_add(counter, 3, 32, _zeros(1), {"": "", "lost": "differs"}, lambda a: bool(a[0][0] == 3))


@ptx_kernel
def last_block(part: Ptr[u32], ended: Ptr[u32], out: Ptr[u32], *, how: str) -> None:
    last = shared(u32, 1)
    with when(ptx.tid.x == 0):
        part[ptx.ctaid.x] = ptx.ctaid.x + 1
        if how == "":
            ptx.fence.acq_rel.gpu()
        last[0] = ptx.atom.relaxed.gpu.global_.add.u32(ended, 1)
        if how == "":
            ptx.fence.acq_rel.gpu()
    ptx.bar.sync(0)
    with when((last[0] == ptx.nctaid.x - 1) & (ptx.tid.x == 0)):
        out[0] = part[0] + part[1]


_add(last_block, 2, 64, _zeros(2, 1, 1), {"": "", "no fence": "RaceError"}, lambda a: bool(a[2][0] == 3))


@ptx_kernel
def copies(x: Ptr[u32], y: Ptr[u32], *, how: str) -> None:
    stages, thread = shared(u32, 2, 64, align=16), ptx.tid.x

    def fetch(step: int) -> None:
        if step < 4:
            ptx["cp.async.ca.shared.global"](stages.at(step & 1, thread), x + (step * 64 + thread), 4)
        ptx.cp.async_.commit_group()

    fetch(0)
    for step in range(4):
        fetch(step + 1)
        ptx.cp.async_.wait_group(2 if how == "wait" else 1)
        if how != "before":
            ptx.bar.sync(0)
        y[step * 64 + thread] = stages[step & 1, thread ^ 32]
        if how != "behind":
            ptx.bar.sync(0)


def _numbers() -> list[Any]:
    return [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]


_add(
    copies, 1, 64, _numbers, {"": "", "wait": "RaceError", "before": "RaceError", "behind": "RaceError"},
    lambda a: bool((a[1].reshape(4, 64) == a[0].reshape(4, 64)[:, np.arange(64) ^ 32]).all()),
)


@ptx_kernel
def bulk_store(x: Ptr[u32], y: Ptr[u32], *, how: str) -> None:
    tile, thread = shared(u32, 64, align=128), ptx.tid.x
    tile[thread] = x[thread]
    tma.fence()
    ptx.bar.sync(0)
    with when(thread == 0):
        ptx["cp.async.bulk.global.shared::cta.bulk_group"](y, tile, 256)
        ptx["cp.async.bulk.commit_group"]()
        if how != "no wait":
            ptx["cp.async.bulk.wait_group.read"](0)
    ptx.bar.sync(0)
    tile[thread] = thread + 1000
    if how == "of reads":
        y[thread] = y[thread] + 1


_add(
    bulk_store, 1, 64, _numbers, {"": "", "no wait": "RaceError", "of reads": "RaceError"},
    lambda a: bool((a[1][:64] == a[0][:64]).all()),
)


@ptx_kernel
def bulk_load(x: Ptr[u32], y: Ptr[u32], *, how: str) -> None:
    tile, bar, thread = shared(u32, 64, align=16), mbarrier.declare(), ptx.tid.x
    mbarrier.start((bar, 1))
    with when(thread == 0):
        mbarrier.arrive(bar, expect_tx=128 if how == "bytes" else 256)
        ptx["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"](tile, x, 256, bar)
    if how == "test":
        mbarrier.test(bar, 0)
    elif how != "no wait":
        mbarrier.wait(bar, 1 if how == "parity" else 0)
    y[thread] = tile[thread]


_add(
    bulk_load, 1, 64, _numbers,
    {"": "", "test": "RaceError", "no wait": "RaceError", "parity": "RaceError", "bytes": "DeadlockError"},
    lambda a: bool((a[1][:64] == a[0][:64]).all()),
)


@ptx_kernel
def ring(x: Ptr[u32], y: Ptr[u32], *, how: str) -> None:
    stages, lane = shared(u32, 2, 32), ptx.tid.x & 31
    full, empty = mbarrier.declare(2), mbarrier.declare(2)
    mbarrier.start((full, 32), (empty, 32))
    with when(ptx.tid.x < 32):
        for step in range(6):
            stage, turn = step % 2, step // 2
            if turn and how != "not empty":
                mbarrier.wait(empty + stage, (turn - 1) & 1)
            stages[stage, lane] = x[step * 32 + lane]
            if how != "not filled" or step != 3:
                mbarrier.arrive(full + stage)
    with otherwise():
        for step in range(6):
            stage, turn = step % 2, step // 2
            mbarrier.wait(full + stage, (turn + (how == "parity")) & 1)
            if how == "early":
                mbarrier.arrive(empty + stage)
            y[step * 32 + lane] = stages[stage, lane]
            if how != "early":
                mbarrier.arrive(empty + stage)


_add(
    ring, 1, 64, _numbers,
    {"": "", "early": "RaceError", "parity": "RaceError", "not empty": "DeadlockError", "not filled": "DeadlockError"},
    lambda a: bool((a[1][:192] == a[0][:192]).all()),
)


@ptx_kernel
def neighbours(y: Ptr[u32], *, how: str) -> None:
    row, thread, rank = shared(u32, 64), ptx.tid.x, cluster.rank()
    row[thread] = rank * 100 + thread
    if how == "relaxed":
        cluster.arrive(relaxed=True)
        cluster.wait()
    elif how != "no barrier":
        cluster.sync()
    y[rank * 64 + thread] = cluster.at(row, rank ^ 1)[thread]
    if how != "ends":
        cluster.sync()


_add(
    neighbours, 2, 64, _zeros(128), {"": "", "relaxed": "RaceError", "no barrier": "RaceError", "ends": "MemoryFault"},
    lambda a: bool((a[0] == np.r_[100:164, 0:64]).all()), cluster=2,
)


@ptx_kernel
def multicast(a: TensorMap, y: Ptr[f32], *, how: str) -> None:
    box, bar = shared(f32, 8, 8, align=128), mbarrier.declare()
    mbarrier.start((bar, 1), cluster=how != "not started")
    thread, rank = ptx.tid.x, cluster.rank()
    with when(thread == 0):
        mbarrier.arrive(bar, expect_tx=256)
        with when(rank == 0):
            tma.load(box, a, (0, 0), bar, multicast=3)
    if how != "no wait":
        mbarrier.wait(bar, 0, cluster=True)
    y[rank * 64 + thread] = box[thread >> 3, thread & 7]
    cluster.sync()


def _map() -> list[Any]:
    return [tensor_map(np.arange(64, dtype=np.float32).reshape(8, 8), (8, 8)), np.zeros(128, np.float32)]


_add(
    multicast, 2, 64, _map, {"": "", "no wait": "RaceError", "not started": "BarrierError"},
    lambda a: bool((a[1] == np.tile(np.arange(64), 2)).all()), cluster=2,
)

SIDE, DEPTH, STAGES = 64, 64, 2


@ptx_kernel(maxntid=160)
def products(a: TensorMap, b: TensorMap, c: Array[f32, 2], turns: u32, *, how: str) -> None:
    left = tiles.Ring(dynamic_shared(bf16, align=1024), STAGES, SIDE, DEPTH)
    right = tiles.Ring(left.end, STAGES, SIDE, DEPTH)
    pipe = Pipeline(STAGES, consumers=1, nbytes=left[0].nbytes + right[0].nbytes)
    with when(ptx.tid.x >= 128):
        with when(ptx.tid.x == 128):
            producer = pipe.producer()
            with loop(turns) as turn:
                slot = producer.acquire()
                tma.load(left[slot], a, (0, turn * DEPTH), slot.full)
                tma.load(right[slot], b, (0, turn * DEPTH), slot.full)
    with otherwise():
        consumer, sums = pipe.consumer(), wgmma.zeros(64, SIDE)
        with loop(turns):
            slot = consumer.wait()
            wgmma.fence()
            wgmma.multiply(sums, left[slot], right[slot].T)
            wgmma.commit()
            if how == "early":
                slot.release(pred=ptx.tid.x == 0)
            wgmma.wait()
            if how != "early":
                slot.release(pred=ptx.tid.x == 0)
        sums.store(c, 0, 0)


_matrices = [np.random.default_rng(1).integers(-3, 4, (SIDE, 3 * DEPTH)) for _ in range(2)]


def _product_arguments() -> list[Any]:
    maps = [tensor_map(each.astype(dtype_of(bf16)), (SIDE, DEPTH), swizzle=128) for each in _matrices]
    return [*maps, np.zeros((SIDE, SIDE), np.float32), 3]


_add(
    products, 1, 160, _product_arguments, {"": "", "early": "RaceError"},
    lambda a: bool((a[2] == _matrices[0] @ _matrices[1].T).all()), shared=STAGES * 2 * SIDE * DEPTH * 2,
)
