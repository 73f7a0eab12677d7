"""The greatest or least k elements of a row by radix select: a block finds the k-th key, 8 bits at a time.

Keys are compared as `sort_kernels.sortable` numbers. From the upper bits down, the block counts the digits of the keys
that begin with what is known of the k-th one, and takes the digit in which it lies. A last pass collects what comes
before that key and, of the keys equal to it, the first ones, in the order of their places; a bitonic network in shared
memory puts up to 1024 of them in order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, block, loop, minimum, ptx, ptx_kernel, reg, s64, select, shared, u32, u64, when,
)

from .sort_kernels import DIGITS, POINTED, sortable, wide
from .storage import UNSIGNED

__all__ = ["NETWORK", "THREADS", "topk_kernel"]

THREADS = 256
NETWORK = 1024
"""As many elements are put in order in shared memory."""
_STEP = 4
"""Neighbouring elements that a thread collects at a time, and loads of it in flight."""


class _Row:
    """The elements x[0:count] of a row, as keys of which the least are wanted."""

    def __init__(self, x: Any, count: Any, dtype: ScalarType, largest: bool) -> None:
        self.x, self.count, self.dtype, self.largest = x, count, dtype, largest
        self.bits, self.kind = dtype.bits, wide(dtype.bits)

    def key(self, at: Any) -> Any:
        element = self.x.cast(UNSIGNED[self.bits])[at]
        return sortable(element if self.bits >= 32 else element.to(u32), self.dtype, self.largest)

    def threshold(self, k: Any) -> tuple[Any, Any]:
        """The k-th key, and how many of those equal to it are among the first k."""
        known, left = reg(self.kind, 0), reg(u32, k)
        counts, found = shared(u32, DIGITS), shared(u32, 2)
        for shift in range(self.bits - 8, -1, -8):
            counts[ptx.tid.x] = 0
            ptx.bar.sync(0)
            whole = self.count - self.count % (THREADS * _STEP)
            with loop(ptx.tid.x, whole, THREADS * _STEP) as i:
                for key in [self.key(i + THREADS * step) for step in range(_STEP)]:
                    self._count(counts, key, known, shift)
            with loop(whole + ptx.tid.x, self.count, THREADS) as i:
                self._count(counts, self.key(i), known, shift)
            ptx.bar.sync(0)
            mine = counts[ptx.tid.x]
            before = block.scan(lambda a, b: a + b, mine, THREADS, exclusive=True, initial=0)
            with when((before < left) & (left <= before + mine)):
                found[0] = ptx.tid.x
                found[1] = left - before
            ptx.bar.sync(0)
            digit = found[0] if self.kind is u32 else found[0].to(u64)
            known.set(known | (digit << shift))
            left.set(found[1])
        return known.copy(), left.copy()

    def _count(self, counts: Any, key: Any, known: Any, shift: int) -> None:
        digit = (key >> shift).to(u32) & (DIGITS - 1)
        if shift + 8 >= self.bits:
            ptx.red.shared.add.u32(counts + digit, 1)
            return
        with when(key >> (shift + 8) == known >> (shift + 8)):
            ptx.red.shared.add.u32(counts + digit, 1)

    def collect(self, last: Any, ties: Any, put: Any) -> None:
        """Call ``put(number, place, key, pred)`` for all that is wanted, numbered in the order of the places."""
        less, same = reg(u32, 0), reg(u32, 0)
        with loop(0, self.count, THREADS * _STEP) as start:
            first = start + ptx.tid.x * _STEP
            keys, marks = [], []
            for step in range(_STEP):
                key, mark = reg(self.kind, 0), reg(u32, 0)
                with when(first + step < self.count):
                    key.set(self.key(first + step))
                    mark.set((key < last).to(u32) | ((key == last).to(u32) << 16))
                keys.append(key)
                marks.append(mark)
            mine = marks[0] + marks[1] + marks[2] + marks[3]
            before = reg(block.scan(lambda a, b: a + b, mine, THREADS, exclusive=True, initial=0))
            total = block.broadcast(before + mine, THREADS - 1)
            for step, (key, mark) in enumerate(zip(keys, marks)):
                equal = same + (before >> 16)
                number = less + (before & 0xFFFF) + minimum(equal, ties)
                wanted = (mark == 1) | ((mark == 1 << 16) & (equal < ties))
                put(number, first + step, key, wanted)
                before += mark
            less += total & 0xFFFF
            same += total >> 16


def _network(keys: Any, places: Any, size: int) -> None:
    """Batcher's bitonic sort by key, and place where keys are equal."""
    span = 2
    while span <= size:
        distance = span // 2
        while distance:
            ptx.bar.sync(0)
            with loop(ptx.tid.x, size // 2, THREADS) as i:
                low = (i // distance) * (2 * distance) + i % distance
                a, b = (keys[low], places[low]), (keys[low + distance], places[low + distance])
                after = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] > b[1]))
                up = (low & span) == 0
                with when((after & up) | (~after & ~up)):
                    keys[low], places[low] = b
                    keys[low + distance], places[low + distance] = a
            distance //= 2
        span *= 2
    ptx.bar.sync(0)


@cache
def topk_kernel(dtype: ScalarType, largest: bool, network: int, mapped: bool) -> Kernel:
    """Of each row of n elements ``chunks`` of ``chunk``, the last one of what is left; k of each, a block each.

    ``network`` is a power of two from k on, or 0 to leave them in the order of their places. ``mapped`` rows are
    elements that were chosen before, and ``given`` where they come from.
    """
    pointed, bits = POINTED[dtype.bits], dtype.bits
    given_type = s64 if mapped else pointed
    label = f"topk_{dtype}{'' if largest else '_least'}_{network}{'_mapped' if mapped else ''}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(
        x: Ptr[pointed], given: Ptr[given_type], values: Ptr[pointed], indices: Ptr[s64], n: u32, chunk: u32,
        chunks: u32, k: u32,
    ) -> None:
        number = ptx.ctaid.x % chunks
        start = number * chunk
        count = select(number + 1 == chunks, n - start, chunk)
        begin = ptx.mad.wide.u32(ptx.ctaid.x // chunks, n, start.to(u64))
        target = ptx.mul.wide.u32(ptx.ctaid.x, k)
        source, row = x.cast(UNSIGNED[bits]) + begin, _Row(x + begin, count, dtype, largest)
        last, ties = row.threshold(k)

        def store(number: Any, place: Any) -> None:
            (values.cast(UNSIGNED[bits]) + target)[number] = source[place]
            (indices + target)[number] = (given + begin)[place] if mapped else (start + place).to(s64)

        if not network:
            def put(number: Any, place: Any, _key: Any, wanted: Any) -> None:
                with when(wanted):
                    store(number, place)

            row.collect(last, ties, put)
            return
        keys, places = shared(row.kind, network), shared(u32, network)
        with loop(ptx.tid.x, network, THREADS) as i:
            keys[i] = (1 << row.kind.bits) - 1
            places[i] = 0xFFFFFFFF

        def keep(number: Any, place: Any, key: Any, wanted: Any) -> None:
            with when(wanted):
                keys[number] = key
                places[number] = place

        ptx.bar.sync(0)
        row.collect(last, ties, keep)
        _network(keys, places, network)
        with loop(ptx.tid.x, k, THREADS) as i:
            store(i, places[i])

    return kernel
