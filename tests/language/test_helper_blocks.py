"""Helpers of warps and blocks in blocks of every shape: right, or an error that names the helper, on either backend."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxdsl import Ptr, block, break_if, loop, ptx, ptx_func, ptx_kernel, reg, u32, warp, when
from ptxdsl.errors import BarrierError, DeadlockError, LaunchError, PtxTypeError, TrapError

Body = Callable[[Any], Any]
N = 1024


def run(body: Body, shape: Any, n: int = N, before: Callable[[Any, Any], Any] | None = None) -> np.ndarray:
    """What ``body`` gives each thread, of the numbers 1 to 1024 by thread; 7 where it has not come."""

    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], n: u32):
        i = block.thread()
        if before is not None:
            before(i, n)
        y[i] = body(x[i])

    return _launched(kernel, shape, n)


def run_inside(body: Body, shape: Any, n: int) -> np.ndarray:
    """The same under `when(i < n)`."""

    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], n: u32):
        i = block.thread()
        with when(i < n):
            y[i] = body(x[i])

    return _launched(kernel, shape, n)


def _launched(kernel: Any, shape: Any, n: int) -> np.ndarray:
    x, y = np.arange(1, N + 1, dtype=np.uint32), np.full(N, 7, np.uint32)
    kernel[1, shape](x, y, n)
    return y[: int(np.prod(shape))]


SHAPES = [1, 5, 33, 48, 100, (6, 8), (4, 4, 3), (17, 3), 1000]
WHOLE = [32, 96, (8, 8), (4, 4, 4), 1024]
NEEDS_WARPS: dict[str, Body] = {
    "warp.reduce": warp.reduce_sum,
    "block.reduce": block.reduce_sum,
    "block.scan": lambda v: block.scan(operator.add, v),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("helper", NEEDS_WARPS)
def test_a_launch_with_a_partial_warp_is_refused(helper: str, shape: Any) -> None:
    with pytest.raises(LaunchError) as caught:
        run(NEEDS_WARPS[helper], shape)
    assert f"`{helper}` at " in caught.value.message
    assert caught.value.message.endswith("is right for blocks of a multiple of 32 threads only")


def test_what_is_said_of_it() -> None:
    with pytest.raises(LaunchError) as caught:
        run(warp.reduce_sum, 48)
    assert caught.value.message == (
        f"block (48, 1, 1) has 48 threads; `warp.reduce` at {__file__}:{LINE}: y[i] = body(x[i]) "
        "is right for blocks of a multiple of 32 threads only"
    )
    assert caught.value.hint == (
        "launch a multiple of 32 threads, and give those without a number the neutral element of the operation"
    )


LINE = run.__code__.co_firstlineno + 8


@pytest.mark.parametrize(("threads", "launched"), [(128, 64), (64, 128), (32, 1024), (96, 48), (1024, 32)])
@pytest.mark.parametrize("helper", ["block.reduce", "block.scan"])
def test_threads_are_those_of_the_launch(helper: str, threads: int, launched: int) -> None:
    body = {"block.reduce": lambda v: block.reduce_max(v, threads)}.get(
        helper, lambda v: block.scan(operator.add, v, threads)
    )
    with pytest.raises(LaunchError, match=f"is right for blocks of {threads} threads only") as caught:
        run(body, launched)
    assert caught.value.hint == f"launch {threads} threads, or leave `threads` out"


def test_a_broadcast_from_a_thread_that_is_not_there() -> None:
    with pytest.raises(LaunchError, match="is right for blocks of at least 78 threads only"):
        run(lambda v: block.broadcast(v, 77), 64)
    assert (run(lambda v: block.broadcast(v, 77), 78) == 78).all()


X = np.arange(1, N + 1)


@pytest.mark.parametrize("shape", [*SHAPES, *WHOLE], ids=str)
def test_right_in_any_block(shape: Any) -> None:
    threads = int(np.prod(shape))
    x, place = X[:threads], np.arange(threads) % 32
    starts = np.arange(threads) // 32 * 32
    scanned = np.array([x[a : n + 1].sum() for n, a in enumerate(starts)])
    assert (run(lambda v: warp.scan(operator.add, v), shape) == scanned).all()
    assert (run(lambda v: warp.scan(operator.add, v, exclusive=True, initial=0), shape) == scanned - x).all()
    assert (run(lambda v: warp.shuffle_up(v, 3), shape) == np.where(place >= 3, x - 3, x)).all()
    assert (run(warp.broadcast, shape) == starts + 1).all()
    assert (run(block.broadcast, shape) == 1).all()


@pytest.mark.parametrize("shape", WHOLE, ids=str)
def test_right_in_whole_warps(shape: Any) -> None:
    threads = int(np.prod(shape))
    x = X[:threads]
    assert (run(block.reduce_sum, shape) == x.sum()).all()
    assert (run(lambda v: block.reduce_max(v, threads), shape) == threads).all()
    assert (run(lambda v: block.scan(operator.add, v), shape) == x.cumsum()).all()
    assert (run(warp.reduce_sum, shape) == np.repeat(x.reshape(-1, 32).sum(1), 32)).all()
    assert (run_inside(block.reduce_sum, shape, N) == x.sum()).all()


@pytest.mark.parametrize(("width", "threads"), [(2, 50), (4, 12), (8, 40), (16, 48)])
def test_segments_that_are_full(width: int, threads: int) -> None:
    wanted = np.repeat(X[:threads].reshape(-1, width).sum(1), width)
    assert (run(lambda v: warp.reduce_sum(v, width), threads) == wanted).all()
    with pytest.raises(LaunchError, match=f"a multiple of {width} threads"):
        run(lambda v: warp.reduce_sum(v, width), threads + 1)


def test_a_block_with_a_partial_warp_of_which_only_whole_ones_reduce() -> None:
    found = run_inside(warp.reduce_sum, 48, 32)
    assert (found[:32] == X[:32].sum()).all() and (found[32:] == 7).all()
    found = run(warp.reduce_sum, 80, 64, before=lambda i, n: ptx.ret(pred=i >= n))
    assert (found[:64] == np.repeat(X[:64].reshape(2, 32).sum(1), 32)).all() and (found[64:] == 7).all()


WAYS = {
    "when": run_inside,
    "ret": lambda body, shape, n: run(body, shape, n, before=lambda i, n: ptx.ret(pred=i >= n)),
}


@pytest.mark.emulator(reason="it makes deadlocks")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threads", [None, 128])
def test_threads_that_keep_away_from_a_block(way: str, threads: int | None) -> None:
    for body in (lambda v: block.reduce_sum(v, threads), lambda v: block.scan(operator.add, v, threads)):
        for n in (32, 64, 96):
            with pytest.raises(DeadlockError):
                WAYS[way](body, 128, n)
        for n in (20, 40):
            with pytest.raises((BarrierError, DeadlockError)):
                WAYS[way](body, 128, n)
        assert (WAYS[way](body, 128, 128) == run(body, 128)).all()
    with pytest.raises(DeadlockError):
        WAYS[way](block.broadcast, 128, 64)
    with pytest.raises(BarrierError):
        WAYS[way](lambda v: block.reduce_sum(v, threads), 128, 127)
    found = WAYS[way](lambda v: block.scan(operator.add, v, threads), 128, 127)  # takes only from those before
    assert (found[:127] == X[:127].cumsum()).all()


def ragged(way: str) -> Any:
    """A loop whose turns differ from warp to warp where ``n`` is no multiple of 64."""

    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], n: u32):
        i, total = ptx.tid.x, reg(u32, 0)
        if way == "bounds":
            with loop(i, n, 64) as at:
                total += block.reduce_sum(x[at])
        else:
            at = reg(u32)
            at.set(i)
            with loop():
                total += block.reduce_sum(x[at])
                at += 64
                break_if(at >= n)
        y[i] = total

    return kernel


@pytest.mark.emulator(reason="it makes deadlocks")
@pytest.mark.parametrize("way", ["bounds", "break_if"])
def test_threads_that_leave_a_loop_before_the_others(way: str) -> None:
    assert (_launched(ragged(way), 64, 192) == X[:192].sum()).all()
    with pytest.raises(DeadlockError):
        _launched(ragged(way), 64, 160)
    with pytest.raises((BarrierError, DeadlockError)):
        _launched(ragged(way), 64, 150)


@pytest.mark.emulator(reason="it makes deadlocks")
def test_a_thread_that_is_known_when_the_kernel_runs() -> None:
    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], n: u32):
        y[ptx.tid.x] = block.broadcast(x[ptx.tid.x], n)

    assert (_launched(kernel, 48, 47) == 48).all()
    with pytest.raises(TrapError, match="block.broadcast from a thread that the block does not have"):
        _launched(kernel, 48, 48)


BEYOND: dict[str, tuple[Body, str]] = {
    "lane": (lambda v: warp.shuffle(v, 33), "the int 33 is beyond a segment of 32 lanes"),
    "negative": (lambda v: warp.broadcast(v, -1), "the int -1 is beyond a segment of 32 lanes"),
    "mask": (lambda v: warp.shuffle_xor(v, 32), "the int 32 is beyond a segment of 32 lanes"),
    "distance": (lambda v: warp.shuffle_up(v, 33), "the int 33 is beyond a segment of 32 lanes"),
    "segment": (lambda v: warp.shuffle_down(v, 8, 8), "the int 8 is beyond a segment of 8 lanes"),
    "width": (lambda v: warp.reduce_sum(v, 32.0), "the float 32.0 is no segment of a warp"),  # type: ignore[arg-type]
    "thread": (lambda v: block.broadcast(v, 1024), "the int 1024 is no number of a thread"),
    "threads": (lambda v: block.reduce_sum(v, 48), "a block of the int 48 threads"),
}


@pytest.mark.parametrize("name", BEYOND)
def test_numbers_beyond_a_warp_or_block(name: str) -> None:
    body, message = BEYOND[name]
    with pytest.raises(PtxTypeError) as caught:
        run(body, 64)
    assert caught.value.message == message


def test_integers_of_numpy() -> None:
    assert (run(lambda v: block.reduce_sum(v, np.int64(64)), 64) == X[:64].sum()).all()  # type: ignore[arg-type]
    wanted = np.repeat(X[:64].reshape(-1, 8).sum(1), 8)
    assert (run(lambda v: warp.reduce_sum(v, np.uint8(8)), 64) == wanted).all()  # type: ignore[arg-type]
    assert (run(lambda v: block.broadcast(v, np.int32(5)), 64) == 6).all()


def test_some_warps_as_a_block() -> None:
    """Half of the warps reduce among themselves, which is what a count says."""
    found = run_inside(lambda v: block.reduce_sum(v, 64), 128, 64)
    assert (found[:64] == X[:64].sum()).all() and (found[64:] == 7).all()


def test_in_functions_and_loops() -> None:
    @ptx_func
    def whole(v: u32) -> u32:
        return block.reduce_sum(v)

    assert (run(whole, 96) == X[:96].sum()).all()

    @ptx_kernel
    def kernel(x: Ptr[u32], y: Ptr[u32], n: u32):
        with loop(n) as row:
            y[ptx.tid.x] = warp.reduce_sum(x[ptx.tid.x]) + row

    assert (_launched(kernel, 32, 3) == X[:32].sum() + 2).all()
    with pytest.raises(LaunchError, match="`warp.reduce`"):
        _launched(kernel, 40, 3)
