"""Loops that are bounded by an unsigned difference: an error where it has wrapped around, and there only."""

# ruff: noqa: N805 -- kernels in classes that are tables
from __future__ import annotations

import linecache
import random
from typing import Any

import numpy as np
import pytest

import ptxdsl
from ptxdsl import (
    Ptr, TrapError, break_if, cdiv, loop, minimum, ptx, ptx_kernel, reg, s32, u16, u32, u64, when,
)


class Wrapped:
    """Each stops where n < m, and counts the iterations for n >= m."""

    def difference(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - m):  # 1
            count += 1
        out[ptx.tid.x] = count

    def from_a_start(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(0, n - m) as i:  # 1
            count += 1 + i - i
        out[ptx.tid.x] = count

    def behind_addresses(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        others = [ptx.tid.x ^ k for k in range(5)]
        with loop(n - m):  # 1
            for other in others:
                ptx.prefetch.global_.L2(out.at(other))
            count += 1
        out[ptx.tid.x] = count

    def by_a_step(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(0, n - m, 2):  # 2
            count += 1
        out[ptx.tid.x] = count

    def divided(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop((n - m) // 2):  # -2
            count += 1
        out[ptx.tid.x] = count

    def shifted(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - m >> 1):  # -2
            count += 1
        out[ptx.tid.x] = count

    def in_64_bits(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n.to(u64) - m.to(u64)):  # 1
            count += 1
        out[ptx.tid.x] = count

    def widened(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop((n - m).to(u64)):  # 1
            count += 1
        out[ptx.tid.x] = count

    def in_16_bits(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n.to(u16) - m.to(u16)):  # 1
            count += 1
        out[ptx.tid.x] = count

    def that_breaks(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - m):  # 1
            count += 1
            break_if(count > 1000)
        out[ptx.tid.x] = count

    def in_a_block(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with when(ptx.tid.x < 40):
            with loop(n - m):  # 1
                count += 1
        out[ptx.tid.x] = (n - m) * (ptx.tid.x >= 40).to(u32) + count

    def bound_by_a_name(n: u32, m: u32, out: Ptr[u32]):
        count, length = reg(u32, 0), n - m
        out[ptx.tid.x] = length
        with loop(length):  # 1
            count += 1
        out[ptx.tid.x] = count

    def of_regs(n: u32, m: u32, out: Ptr[u32]):
        count, a, b = reg(u32, 0), reg(u32, n), reg(u32, m)
        length = a - b
        a += 7
        b += 9
        with loop(length):  # 1
            count += 1
        out[ptx.tid.x] = count


    def subtracted_in_place(n: u32, m: u32, out: Ptr[u32]):
        count, length = reg(u32, 0), reg(u32, n)
        length -= m
        with loop(length):  # 1
            count += 1
        out[ptx.tid.x] = count

    def set(n: u32, m: u32, out: Ptr[u32]):
        count, length = reg(u32, 0), reg(u32, 0)
        length.set(n - m)
        with loop(length):  # 1
            count += 1
        out[ptx.tid.x] = count

    def of_two_subtractions(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - (m - 1) - 1):  # 1
            count += 1
        out[ptx.tid.x] = count

    def multiplied(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop((n - m) * 2 >> 1):  # 1
            count += 1
        out[ptx.tid.x] = count

    def part_of_a_tile(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(minimum(n - m, 1000)):  # 1
            count += 1
        out[ptx.tid.x] = count

    def rounded_up(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(cdiv(n - m - 1, 2)):  # -2
            count += 1
        with when(((n - m) & 1) == 1):
            count += 0
        out[ptx.tid.x] = count

    def as_the_start(n: u32, m: u32, out: Ptr[u32]):
        count, end = reg(u32, 0), 2 * (n - m) + (n - m >> 31)
        with loop(n - m, end):  # 1
            count += 1
        out[ptx.tid.x] = count


class Right:
    """Each stores n in out, whatever m is."""

    def signed(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop((n - m).bits(s32)):
            count += 1
        with when(n >= m):
            count += m
        with when(n < m):
            count += n
        out[ptx.tid.x] = count

    def guarded(n: u32, m: u32, out: Ptr[u32]):
        count, length = reg(u32, n), n - m
        with when(n > m):
            count.set(m)
            with loop(length):
                count += 1
        out[ptx.tid.x] = count

    def right_again(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - m + m):
            count += 1
        out[ptx.tid.x] = count

    def between_two(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, m)
        with loop(m, n):
            count += 1
        with when(m > n):
            count.set(n)
        out[ptx.tid.x] = count

    def of_differences(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop((n - 50) - (m - 50) + m):
            count += 1
        out[ptx.tid.x] = count

    def inclusive(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - 1 + 1):
            count += 1
        with loop(0, n + m - 1 - m + 1):
            count += 1
        out[ptx.tid.x] = count >> 1

    def rounded_up(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(cdiv(n - 1 + 1, 1)):
            count += 1
        out[ptx.tid.x] = count

    def the_last_is_not_there(n: u32, m: u32, out: Ptr[u32]):
        count, length = reg(u32, 0), reg(u32, n - m)
        length.set(n)
        with loop(length):
            count += 1
        out[ptx.tid.x] = count

    def a_ring(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, n)
        with loop(n - m & 7):
            count += 1
        out[ptx.tid.x] = count - (n - m & 7)

    def the_lesser_first(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n - minimum(n, m)):
            count += 1
        out[ptx.tid.x] = count + minimum(n, m)

    def a_hash(n: u32, m: u32, out: Ptr[u32]):
        h = reg(u32, n)
        with loop(3) as i:
            h.set((h - m) * 5 - i)
        with loop(h & 3):
            h += 1
        out[ptx.tid.x] = n + h * 0

    def an_index(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop(n) as i:
            count += (i - m - (i - m)) + 1
        out[ptx.tid.x] = count

    def compared(n: u32, m: u32, out: Ptr[u32]):
        count = reg(u32, 0)
        with loop():
            break_if(count - m == n - m)
            count += 1
        out[ptx.tid.x] = count


def _of(table: type) -> list[Any]:
    return [function for function in vars(table).values() if callable(function)]


def _marked(function: Any) -> tuple[int, int]:
    """The line of the loop that is marked, and the mark: what the count is multiplied by, or divided if negative."""
    first = function.__code__.co_firstlineno
    for line in range(first, first + 12):
        mark = linecache.getline(__file__, line).partition(":  # ")[2].strip()
        if mark.lstrip("-").isdigit():
            return line, int(mark)
    raise AssertionError(function)


@pytest.mark.parametrize(
    ("function", "sanitize"), [*((function, None) for function in _of(Wrapped)), (Wrapped.in_a_block, "all")]
)
def test_a_bound_that_has_wrapped_around(function: Any, sanitize: str | None) -> None:
    kernel = ptx_kernel(function).configure(1, 64, backend="emulator", sanitize=sanitize)
    line, step = _marked(function)
    m = random.randrange(1, 500)
    for length in (random.randrange(2), random.randrange(2, 90)):
        out = np.full(64, 99, np.uint32)
        kernel(m + length, m, out)
        assert set(out.tolist()) == {-(-length // step) if step > 0 else length // -step}
    with pytest.raises(TrapError) as caught:
        kernel(m - 1, m, np.zeros(64, np.uint32))
    assert caught.value.loc is not None and caught.value.loc.line == line
    assert "has wrapped around" in caught.value.message


@pytest.mark.parametrize("function", _of(Right))
def test_what_wraps_and_is_right(function: Any) -> None:
    for n, m in ((0, 0), (5, 3), (3, 5), (random.randrange(40), random.randrange(40))):
        out = np.full(64, 99, np.uint32)
        ptx_kernel(function).configure(1, 64, backend="emulator")(n, m, out)
        assert set(out.tolist()) == {n}


def test_a_loop_that_only_some_threads_enter() -> None:
    @ptx_kernel
    def kernel(n: u32, out: Ptr[u32]) -> None:
        t, count = ptx.tid.x, reg(u32, 0)
        with when(t < n):
            with loop(n - t):
                count += 1
        out[t] = count

    out = np.zeros(64, np.uint32)
    with ptxdsl.use("emulator"):
        kernel[1, 64](40, out)
    assert out.tolist() == [max(0, 40 - t) for t in range(64)]


def test_the_message() -> None:
    kernel = ptx_kernel(Wrapped.difference)
    with pytest.raises(TrapError) as caught:
        kernel.configure(1, 32, backend="emulator")(3, 5, np.zeros(32, np.uint32))
    line, _ = _marked(Wrapped.difference)
    assert caught.value.message == (
        f"the bound of this loop is the difference of line {line}, `sub.u32 %r2, %r0, %r1`, which is negative here: "
        "as a u32 it has wrapped around, and the loop would run on and on"
    )
    assert caught.value.hint == (
        "`with when(n > m):` around the loop, or signed numbers: `loop((n - m).bits(s32))` runs zero times"
    )
    assert caught.value.thread == (0, 0, 0)
    with pytest.raises(TrapError) as caught:
        ptx_kernel(Wrapped.as_the_start).configure(1, 32, backend="emulator")(3, 5, np.zeros(32, np.uint32))
    assert caught.value.message.startswith("the start of this loop is the difference")
    assert caught.value.message.endswith("as a u32 it has wrapped around, and the loop would not run at all")
    assert caught.value.hint == "signed numbers: `loop((i - 1).bits(s32), (i + 2).bits(s32))`"
