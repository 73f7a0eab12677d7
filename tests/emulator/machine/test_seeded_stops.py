"""A seed stops warps before strong accesses too: between a load of a flag and what is done by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxdsl

from ptxdsl import Ptr, break_if, loop, mbarrier, ptx, ptx_kernel, shared, u32, when

SEEDS = 24


@ptx_kernel
def incremented(count: Ptr[u32], *, atomic: bool) -> None:
    with when((ptx.tid.x & 31) == 0):
        if atomic:
            ptx.red.relaxed.gpu.global_.add.u32(count, 1)
        else:
            ptx.st.relaxed.gpu.global_.u32(count, ptx.ld.relaxed.gpu.global_.u32(count) + 1)


@ptx_kernel
def tried_lock(lock: Ptr[u32], inside: Ptr[u32], most: Ptr[u32], *, atomic: bool) -> None:
    with when((ptx.tid.x & 31) == 0):
        with loop():
            if atomic:
                break_if(ptx.atom.acquire.gpu.global_.cas.b32(lock, 0, 1) == 0)
            else:
                break_if(ptx.ld.acquire.gpu.global_.u32(lock) == 0)
        if not atomic:
            ptx.st.relaxed.gpu.global_.u32(lock, 1)
        now = ptx.atom.relaxed.gpu.global_.add.u32(inside, 1)
        ptx.red.relaxed.gpu.global_.max.u32(most, now + 1)
        ptx.red.relaxed.gpu.global_.add.u32(inside, -1 & 0xFFFFFFFF)
        ptx.st.release.gpu.global_.u32(lock, 0)


@ptx_kernel
def asked_once(out: Ptr[u32], *, atomic: bool) -> None:
    """A warp asks once for the phase that another one completes."""
    bar = mbarrier.declare()
    mbarrier.start((bar, 32))
    seen = shared(u32, 1)
    with when(ptx.tid.x == 0):
        seen[0] = 0
    ptx.bar.sync(0)
    with when(ptx.tid.x >= 32):
        mbarrier.arrive(bar)
    with when(ptx.tid.x < 32):
        if atomic:
            mbarrier.wait(bar, 0)
        with when(mbarrier.test(bar, 0) & (ptx.tid.x == 0)):
            seen[0] = 1
    ptx.bar.sync(0)
    out[0] = seen[0]


def _results(kernel: Any, blocks: int, threads: int, *sizes: int, atomic: bool) -> set[tuple[int, ...]]:
    found = set()
    for seed in range(SEEDS):
        arrays = [np.zeros(size, np.uint32) for size in sizes]
        kernel.configure(blocks, threads, seed=seed, backend="emulator")(*arrays, atomic=atomic)
        found.add(tuple(int(array[0]) for array in arrays))
    return found


@pytest.mark.parametrize(("blocks", "threads"), [(1, 64), (2, 32), (3, 64)])
def test_a_load_and_the_store_behind_it_are_split(blocks: int, threads: int) -> None:
    every = blocks * threads // 32
    assert _results(incremented, blocks, threads, 1, atomic=True) == {(every,)}
    assert min(_results(incremented, blocks, threads, 1, atomic=False)) < (every,)


@pytest.mark.parametrize(("blocks", "threads"), [(1, 96), (3, 32)])
def test_a_poll_and_the_access_behind_it_are_split(blocks: int, threads: int) -> None:
    assert _results(tried_lock, blocks, threads, 1, 1, 1, atomic=True) == {(0, 0, 1)}
    assert max(most for _, _, most in _results(tried_lock, blocks, threads, 1, 1, 1, atomic=False)) > 1


def test_an_arrival_and_a_test_come_in_either_order() -> None:
    assert _results(asked_once, 1, 64, 1, atomic=True) == {(1,)}
    assert _results(asked_once, 1, 64, 1, atomic=False) == {(0,), (1,)}


@ptx_kernel
def waits_forever(flag: Ptr[u32]) -> None:
    with loop():
        break_if(ptx.ld.acquire.gpu.global_.u32(flag) == ptx.ctaid.x + 1)


@pytest.mark.parametrize("seed", range(3))
def test_that_nobody_comes_is_still_found(seed: int) -> None:
    with pytest.raises(ptxdsl.DeadlockError, match="every warp polls memory in a loop, and nothing changes it"):
        waits_forever.configure(2, 64, seed=seed, backend="emulator")(np.zeros(1, np.uint32))
