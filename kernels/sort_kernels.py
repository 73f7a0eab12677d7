"""Radix sort, 8 bits a pass from the lowest on: each key and value is read once and written once a pass.

As in Onesweep (Adinets & Merrill 2022) one kernel counts the digits of all passes; then a pass takes tiles in order, a
warp ranks its keys by `match.any`, and a tile learns how many of each digit lie before it by looking back at what the
tiles before have published: a word of 32 bits a digit, 30 of the count, and two that say of what. Keys go to their
places by way of shared memory, so that those of one digit are stored side by side. Passes are stable, and so is the
sort.

Rows and segments that a block sorts alone take the same tiles, one after the other, and look back at nobody.

Keys are compared by unsigned numbers in the same order: of floats -0 and 0 are the same, and all NaNs are the greatest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from .. import (
    Kernel, Ptr, ScalarType, b8, b16, b32, b64, bf16, block, break_if, loop, minimum, ptx, ptx_kernel, reg, s64, select,
    shared, u32, u64, when,
)
from .. import warp

from .scan_kernels import next_tile
from .storage import UNSIGNED

__all__ = [
    "DIGITS", "POINTED", "THREADS", "Sorted", "count_kernel", "pass_kernel", "row_kernel", "sortable",
    "start_kernel", "tile_size", "wide",
]

THREADS = DIGITS = 256
_WARPS = THREADS // 32
_PARTIAL, _COMPLETE, _COUNT = 1 << 30, 2 << 30, (1 << 30) - 1
POINTED = {8: b8, 16: b16, 32: b32, 64: b64}
"""Pointers to these take arrays of all numbers of the size."""


def wide(bits: int) -> ScalarType:
    """The unsigned type in which numbers of so many bits are computed."""
    return u64 if bits == 64 else u32


def sortable(value: Any, dtype: ScalarType, descending: bool = False) -> Any:
    """An unsigned number that is less where the element comes first; ``value`` is its bits, u64 or u32.

    -0 is 0, and NaNs come last; with ``descending`` everything is the other way round, NaNs come first.
    """
    top, ones = 1 << dtype.bits - 1, (1 << dtype.bits) - 1
    if dtype.is_signed:
        value = value ^ top
    elif dtype.is_float:
        infinity = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0 << 48}[dtype.bits] if dtype is not bf16 else 0x7F80
        magnitude = value & (ones ^ top)
        turned = select(value >= top, value ^ ones, value ^ top)
        value = select(magnitude == 0, top, select(magnitude > infinity, ones, turned))
    return value ^ ones if descending else value


class Sorted(NamedTuple):
    """What is sorted: the keys' dtype, their order, and the bits of a value, 0 without.

    With ``places`` the values of the first pass are the indices of the keys.
    """

    dtype: ScalarType
    descending: bool
    value_bits: int = 0
    places: bool = False

    def digit(self, key: Any, shift: Any) -> Any:
        shifted = sortable(key, self.dtype, self.descending) >> shift
        return shifted.to(u32) & (DIGITS - 1)

    @property
    def label(self) -> str:
        value = f"_{'places' if self.places else self.value_bits}" if self.value_bits else ""
        return f"{self.dtype}{'_descending' if self.descending else ''}{value}"

    @property
    def value_type(self) -> ScalarType:
        """That of a pointer to values; without, to what is given in their stead, the keys."""
        return s64 if self.places else POINTED[self.value_bits or self.dtype.bits]


def tile_size(what: Sorted) -> int:
    """Keys that a block ranks at a time: as many as have room in shared memory."""
    return THREADS * (8 if max(what.dtype.bits, what.value_bits) == 64 else 16)


class _Tile:
    """The keys of a tile, of which a warp has neighbouring ones: item j of lane i is number 32 j + i of the warp's."""

    def __init__(self, what: Sorted, staged: Any) -> None:
        self.what, self.staged = what, staged
        self.items = tile_size(what) // THREADS
        self.counts = shared(u32, _WARPS, DIGITS + 1)
        """Of each warp and digit; the last digit is that of keys beyond the end."""
        self.offsets, self.bases = shared(u32, DIGITS), shared(u32, DIGITS)
        self.first = (ptx.tid.x >> 5) * (32 * self.items) + ptx.laneid

    def run(
        self, source: tuple[Any, Any], target: tuple[Any, Any], start: Any, count: Any, shift: Any,
        base: Callable[[Any], Any],
    ) -> None:
        """Move ``count`` keys and values from ``start`` on to their places.

        ``base`` gives, to the thread of a digit, where the tile's keys of that digit begin; from how many there are.
        """
        what = self.what
        keys = self._load(source[0], start, count, what.dtype.bits)
        digits = [
            select(self.first + 32 * i < count, what.digit(key, shift), DIGITS) for i, key in enumerate(keys)
        ]
        ranks = self._ranked(digits)
        ptx.bar.sync(0)
        total = self._over_warps()
        offset = block.scan(lambda a, b: a + b, total, THREADS, exclusive=True, initial=0)
        self.offsets[ptx.tid.x] = offset
        self.bases[ptx.tid.x] = base(total) - offset
        ptx.bar.sync(0)
        number = ptx.tid.x >> 5
        places = [
            self.offsets[minimum(digit, DIGITS - 1)] + self.counts[number, digit] + rank
            for digit, rank in zip(digits, ranks)
        ]
        self._exchange(places, keys, count)
        targets = []
        for i in range(self.items):
            at = ptx.tid.x + i * THREADS
            key, place = reg(wide(what.dtype.bits), 0), reg(u32, 0)
            with when(at < count):
                key.set(self.staged.cast(key.type)[at])
                place.set(self.bases[what.digit(key, shift)] + at)
                _store(target[0], place, key, what.dtype.bits)
            targets.append(place)
        if what.value_bits:
            values = self._values(source[1], start, count)
            ptx.bar.sync(0)
            self._exchange(places, values, count)
            for i, place in enumerate(targets):
                at = ptx.tid.x + i * THREADS
                with when(at < count):
                    _store(target[1], place, self.staged.cast(wide(what.value_bits))[at], what.value_bits)
        ptx.bar.sync(0)

    def _load(self, source: Any, start: Any, count: Any, bits: int) -> list[Any]:
        loaded, kind = [], UNSIGNED[bits]
        for i in range(self.items):
            value, at = reg(wide(bits), 0), self.first + 32 * i
            with when(at < count):
                element = source.cast(kind)[start + at]
                value.set(element if bits >= 32 else element.to(u32))
            loaded.append(value)
        return loaded

    def _values(self, source: Any, start: Any, count: Any) -> list[Any]:
        if self.what.places:
            return [(start + self.first + 32 * i).to(u64) for i in range(self.items)]
        return self._load(source, start, count, self.what.value_bits)

    def _ranked(self, digits: list[Any]) -> list[Any]:
        """How many keys of the same digit come before each in its warp; counts all of them."""
        with loop(ptx.tid.x, _WARPS * (DIGITS + 1), THREADS) as i:
            self.counts.at(0, 0)[i] = 0
        ptx.bar.sync(0)
        number, ranks = ptx.tid.x >> 5, []
        for digit in digits:
            same = ptx.match.any.sync.b32(digit, warp.MASK)
            below = ptx.popc.b32(same & ptx.lanemask_lt)
            before = self.counts[number, digit]
            ptx.bar.warp.sync(warp.MASK)
            with when(below == 0):
                self.counts[number, digit] = before + ptx.popc.b32(same)
            ptx.bar.warp.sync(warp.MASK)
            ranks.append(before + below)
        return ranks

    def _over_warps(self) -> Any:
        """Turn the counts of a digit into those of the warps before, and return their sum, to the digit's thread."""
        total = reg(u32, 0)
        for number in range(_WARPS):
            here = self.counts[number, ptx.tid.x]
            self.counts[number, ptx.tid.x] = total
            total += here
        return total.copy()

    def _exchange(self, places: list[Any], values: list[Any], count: Any) -> None:
        for i, (place, value) in enumerate(zip(places, values)):
            with when(self.first + 32 * i < count):
                self.staged.cast(value.type)[place] = value
        ptx.bar.sync(0)


def _store(target: Any, place: Any, value: Any, bits: int) -> None:
    target.cast(UNSIGNED[bits])[place] = value if bits >= 32 else value.to(UNSIGNED[bits])


def _staged(what: Sorted) -> Any:
    return shared(wide(max(what.dtype.bits, what.value_bits)), tile_size(what))


# ---------------------------------------------------------------------------------------------------------------------


@cache
def count_kernel(what: Sorted) -> Kernel:
    """Count the digits of all passes: ``counts`` is [passes, 256], and 0 before."""
    passes, bits = what.dtype.bits // 8, what.dtype.bits
    pointed = POINTED[bits]

    @ptx_kernel(name=f"sort_count_{what.label}", reqntid=THREADS)
    def kernel(keys: Ptr[pointed], counts: Ptr[u64], n: u32) -> None:
        mine = shared(u32, passes * DIGITS)
        with loop(ptx.tid.x, passes * DIGITS, THREADS) as i:
            mine[i] = 0
        ptx.bar.sync(0)
        first, step = ptx.ctaid.x * THREADS + ptx.tid.x, ptx.nctaid.x * THREADS
        with loop(first, n, step) as i:
            element = keys.cast(UNSIGNED[bits])[i]
            key = sortable(element if bits >= 32 else element.to(u32), what.dtype, what.descending)
            for number in range(passes):
                digit = (key >> (8 * number)).to(u32) & (DIGITS - 1)
                ptx.red.shared.add.u32(mine + (digit + number * DIGITS), 1)
        ptx.bar.sync(0)
        with loop(ptx.tid.x, passes * DIGITS, THREADS) as i:
            ptx.red.global_.add.u32(counts.cast(u32) + i, mine[i])

    return kernel


@cache
def start_kernel() -> Kernel:
    """Turn the counts of a pass's digits into where each begins: a block a pass."""

    @ptx_kernel(name="sort_starts", reqntid=THREADS)
    def kernel(counts: Ptr[u64]) -> None:
        totals, at = counts.cast(u32), ptx.ctaid.x * DIGITS + ptx.tid.x
        totals[at] = block.scan(lambda a, b: a + b, totals[at], THREADS, exclusive=True, initial=0)

    return kernel


@cache
def pass_kernel(what: Sorted) -> Kernel:
    """One pass: ``starts`` is where its digits begin, ``words`` a counter (64 bits) and [tiles, 256] words of 0."""
    pointed, value_type, size = POINTED[what.dtype.bits], what.value_type, tile_size(what)

    @ptx_kernel(name=f"sort_pass_{what.label}", reqntid=THREADS)
    def kernel(
        keys: Ptr[pointed], values: Ptr[value_type], keys_out: Ptr[pointed], values_out: Ptr[value_type],
        starts: Ptr[u64], words: Ptr[u64], n: u32, shift: u32,
    ) -> None:
        number = next_tile(words)
        published = (words + 1).cast(u32) + ptx.tid.x
        tile, start = _Tile(what, _staged(what)), number * size

        def base(total: Any) -> Any:
            """Where the tile's keys of this thread's digit begin: behind those of all tiles before."""
            def publish(status: int, sum_: Any) -> None:
                ptx.st.relaxed.gpu.global_.u32(published.at(number * DIGITS), sum_ | status)

            before, other = reg(u32, 0), reg(u32, number)
            with when(number > 0):
                publish(_PARTIAL, total)
            with loop():
                break_if(other == 0)
                other -= 1
                found = reg(u32, 0)
                with loop():
                    found.set(ptx.ld.relaxed.gpu.global_.u32(published.at(other * DIGITS)))
                    break_if(found != 0)
                before += found & _COUNT
                break_if(found >= _COMPLETE)
            publish(_COMPLETE, before + total)
            return starts.cast(u32)[ptx.tid.x] + before

        tile.run((keys, values), (keys_out, values_out), start, minimum(n - start, size), shift, base)

    return kernel


@cache
def row_kernel(what: Sorted, uniform: bool) -> Kernel:
    """One pass of many rows, a block each: of ``n`` keys (then there are keys for offsets), or between ``offsets``."""
    pointed, value_type, size = POINTED[what.dtype.bits], what.value_type, tile_size(what)
    offset_type = pointed if uniform else s64

    @ptx_kernel(name=f"sort_{'rows' if uniform else 'segments'}_{what.label}", reqntid=THREADS)
    def kernel(
        keys: Ptr[pointed], values: Ptr[value_type], keys_out: Ptr[pointed], values_out: Ptr[value_type],
        offsets: Ptr[offset_type], n: u32, shift: u32,
    ) -> None:
        row = ptx.ctaid.x
        if uniform:
            first, count = ptx.mul.wide.u32(row, n), n
        else:
            first = offsets[row].bits(u64)
            count = (offsets[row + 1].bits(u64) - first).to(u32)
        own = [pointer + first for pointer in (keys, values, keys_out, values_out)]
        tile = _Tile(what, _staged(what))
        running = shared(u32, DIGITS)
        running[ptx.tid.x] = 0
        ptx.bar.sync(0)
        with loop(ptx.tid.x, count, THREADS) as i:
            element = own[0].cast(UNSIGNED[what.dtype.bits])[i]
            key = element if what.dtype.bits >= 32 else element.to(u32)
            ptx.red.shared.add.u32(running + what.digit(key, shift), 1)
        ptx.bar.sync(0)
        begins = reg(block.scan(lambda a, b: a + b, running[ptx.tid.x], THREADS, exclusive=True, initial=0))

        def base(total: Any) -> Any:
            here = begins.copy()
            begins.set(here + total)
            return here

        with loop(0, count, size) as start:
            left = minimum(count - start, size)
            tile.run((own[0], own[1]), (own[2], own[3]), start, left, shift, base)

    return kernel
