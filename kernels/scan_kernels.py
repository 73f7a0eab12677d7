"""Scans in one pass: blocks take tiles in order, and learn what lies before theirs from the blocks before them.

Each tile publishes the sum of its elements as soon as it has it, and the sum of all elements up to its end once it
knows that (decoupled look-back: Merrill & Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016).
A block looks back, 32 tiles at a time, for the nearest tile that has published the second, and from there on adds what
the tiles have published, in their order: so the result does not depend on how far the others were, and floats have the
same bits each time. Tiles are handed out by a counter, since no other order of blocks is promised; a block waits only
for tiles that were handed out before its own, to blocks that run.

A sum of 32 bits and the mark that it is there are one word of 64, stored and loaded as a whole; a sum of 64 bits is
stored first, and its mark releases it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import inf
from typing import Any

from .. import (
    Kernel, Ptr, ScalarType, break_if, loop, maximum, minimum, otherwise, pack, ptx, ptx_kernel, reg, select, shared,
    u8, u32, u64, unpack, when,
)
from .. import warp

from . import storage

__all__ = [
    "COMPLETE", "OPERATORS", "PARTIAL", "THREADS", "LookBack", "Sums", "clear_kernel", "column_kernel", "next_tile",
    "tile_kernel", "tile_size",
]

THREADS = 256
_WARPS = THREADS // 32
PARTIAL, COMPLETE = 0, 1
"""What a tile publishes: the sum of its elements, and of all up to its end."""
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b,
    "max": lambda a, b: _extreme(True, a, b), "min": lambda a, b: _extreme(False, a, b),
}


def _extreme(greatest: bool, a: Any, b: Any) -> Any:
    """The greater or the less; a NaN where one of them is."""
    chosen = (maximum if greatest else minimum)(a, b)
    if not a.type.is_float:
        return chosen
    return select(ptx[f"setp.nan.{a.type}"](a, b), float("nan"), chosen)


def neutral(op: str, kind: ScalarType) -> int | float:
    """The number that changes no other one, in the type that elements are computed in."""
    if op in ("add", "mul"):
        number = int(op == "mul")
        return float(number) if kind.is_float else number
    low, high = (-inf, inf) if kind.is_float else kind.bounds
    return low if op == "max" else high


State = list[Any]
"""A sum and, in segmented scans, a u32: whether a segment begins among its elements."""


class Sums:
    """How states of one operation, element type and kind of scan are combined, moved and stored."""

    def __init__(self, op: str, dtype: ScalarType, segmented: bool) -> None:
        self.op, self.kind, self.segmented = OPERATORS[op], storage.working(dtype), segmented
        self.neutral = neutral(op, self.kind)

    def combine(self, a: State, b: State) -> State:
        """a comes first; where b begins a segment, a is over."""
        value = self.op(a[0], b[0])
        if not self.segmented:
            return [value]
        return [select(b[1] != 0, b[0], value), a[1] | b[1]]

    def registers(self) -> State:
        made = [reg(self.kind, self.neutral)]
        return [*made, reg(u32, 0)] if self.segmented else made

    def shared(self, count: int) -> list[Any]:
        return [shared(kind, count) for kind in [self.kind, u32][: 1 + self.segmented]]

    def before_lane(self, state: State) -> tuple[State, State]:
        """The states of the lanes before this one (neutral in the first), and of all lanes."""
        lane, now = ptx.laneid, state
        for distance in (1, 2, 4, 8, 16):
            lower = [warp.shuffle_up(part, distance) for part in now]
            joined = self.combine(lower, now)
            now = [select(lane >= distance, new, old) for new, old in zip(joined, now)]
        first = [self.neutral, 0]
        before = [select(lane == 0, none, warp.shuffle_up(part, 1)) for none, part in zip(first, now)]
        return before, [warp.shuffle(part, 31) for part in now]


class LookBack:
    """What the tiles have published, two words each: their own sum and the sum up to their end."""

    def __init__(self, sums: Sums, words: Any, wide: Any) -> None:
        self.sums, self.words, self.wide = sums, words, wide

    def publish(self, tile: Any, which: int, state: State) -> None:
        """By one thread."""
        mark = state[1] << 1 | 1 if self.sums.segmented else reg(u32, 1)
        if self.sums.kind.bits == 32:
            ptx.st.relaxed.gpu.global_.u64(self.words.at(tile * 2 + which), pack(u64, mark, state[0].bits(u32)))
            return
        self.wide[tile * 2 + which] = state[0]
        ptx.st.release.gpu.global_.u64(self.words.at(tile * 2 + which), mark.to(u64))

    def before(self, tile: Any, first: Any, state: State) -> None:
        """Put the state of the tiles from ``first`` to before ``tile`` (one at least) into registers of a whole warp.

        Lane 31 looks at the nearest tile; lanes that would look beyond the first have nothing to wait for.
        """
        end, found = reg(u32, tile), reg(u32, 0)
        partial, complete = _Seen(self, PARTIAL), _Seen(self, COMPLETE)
        with loop():
            with loop():
                partial.mark.set(1)
                complete.mark.set(0)
                with when(end + ptx.laneid >= first + 32):
                    complete.look(end)
                    partial.look(end)
                break_if(ptx.vote.sync.all.pred((partial.mark | complete.mark) != 0, warp.MASK))
            found.set(ptx.vote.sync.ballot.b32(complete.mark != 0, warp.MASK))
            break_if(found != 0)
            end -= 32
        nearest = reg(u32, ptx.bfind.u32(found))
        complete.fetch(end)
        partial.fetch(end)
        _set(state, complete.of_lane(nearest))
        nearest += 1
        with loop():
            with loop(nearest, 32) as lane:
                _set(state, self.sums.combine(list(state), partial.of_lane(lane)))
            break_if(end >= tile)
            end += 32
            partial.look(end)
            partial.fetch(end)
            nearest.set(0)


class _Seen:
    """What the lanes of a warp have seen of one of the two words of 32 tiles, of which ``end`` is behind the last."""

    def __init__(self, tiles: LookBack, which: int) -> None:
        self.tiles, self.which = tiles, which
        self.mark, self.value = reg(u32, 0), reg(tiles.sums.kind, tiles.sums.neutral)

    def _place(self, end: Any) -> Any:
        return (end + ptx.laneid - 32) * 2 + self.which

    def look(self, end: Any) -> None:
        word = self.tiles.words.at(self._place(end))
        if self.value.type.bits == 64:
            self.mark.set(ptx.ld.acquire.gpu.global_.u64(word).to(u32))
            return
        mark, value = unpack(ptx.ld.relaxed.gpu.global_.u64(word), u32)
        self.mark.set(mark)
        self.value.set(value.bits(self.value.type))

    def fetch(self, end: Any) -> None:
        """Load sums of 64 bits, which the marks have released."""
        if self.value.type.bits == 64:
            with when((self.mark != 0) & (end + ptx.laneid >= 32)):
                self.value.set(self.tiles.wide[self._place(end)])

    def of_lane(self, lane: Any) -> State:
        state = [warp.shuffle(self.value.copy(), lane)]
        return [*state, warp.shuffle(self.mark.copy(), lane) >> 1] if self.tiles.sums.segmented else state


def _set(registers: State, values: State) -> None:
    for register, value in zip(registers, values):
        register.set(value)


# ---------------------------------------------------------------------------------------------------------------------


def _vectors(dtype: ScalarType) -> int:
    """16 bytes each: so many loads of a thread are in flight."""
    return 4 if dtype.bytes >= 4 else 2


def tile_size(dtype: ScalarType) -> int:
    """Elements that a block scans at a time."""
    return THREADS * _vectors(dtype) * storage.per_vector(dtype)


@cache
def clear_kernel() -> Kernel:
    """Zeros in all words: nothing is published, and no tile handed out."""

    @ptx_kernel(name="scan_clear", reqntid=THREADS)
    def kernel(words: Ptr[u64], count: u32) -> None:
        i = ptx.ctaid.x * THREADS + ptx.tid.x
        with when(i < count):
            words[i] = 0

    return kernel


def next_tile(words: Any) -> Any:
    """The number of the tile that this block is to take, by a counter in the first word."""
    ticket = shared(u32, 1)
    with when(ptx.tid.x == 0):
        ticket[0] = ptx.atom.relaxed.gpu.global_.add.u32(words.cast(u32), 1)
    ptx.bar.sync(0)
    return ticket[0]


class _Tile:
    """The elements of a tile that a thread has: of each of its warp's parts the 16 bytes that are the lane's."""

    def __init__(self, sums: Sums, dtype: ScalarType, count: Any) -> None:
        self.sums, self.dtype, self.count = sums, dtype, count
        self.per, self.vectors = storage.per_vector(dtype), _vectors(dtype)
        self.first = ((ptx.tid.x >> 5) * (32 * self.vectors) + ptx.laneid) * self.per

    def places(self, vector: int) -> list[Any]:
        return [self.first + (vector * 32 * self.per + i) for i in range(self.per)]

    def whole(self, *pointers: Any) -> Any:
        """Whether 16 bytes can be accessed at a time: the tile is full, and begins at a multiple of them."""
        fits = self.count == tile_size(self.dtype)
        for pointer in pointers:
            fits = fits & ((pointer.address & (storage.BYTES - 1)) == 0)
        return fits

    def load(self, x: Any, whole: Any, flags: Any) -> list[list[State]]:
        """The states of the elements; neutral beyond the end."""
        made = [[self.sums.registers() for _ in range(self.per)] for _ in range(self.vectors)]
        with when(whole):
            at = x + self.first
            for number, states in enumerate(made):
                elements = storage.load_vector(at, number * 32 * self.per, self.dtype)
                for state, element in zip(states, elements):
                    state[0].set(element)
        with otherwise():
            for number, states in enumerate(made):
                for state, place in zip(states, self.places(number)):
                    with when(place < self.count):
                        state[0].set(storage.widened(x[place], self.dtype))
        if flags is not None:
            for number, states in enumerate(made):
                for state, place in zip(states, self.places(number)):
                    with when(place < self.count):
                        state[1].set((flags[place] != 0).to(u32))
        return made

    def store(self, out: Any, whole: Any, results: list[list[Any]]) -> None:
        with when(whole):
            at = out + self.first
            for number, values in enumerate(results):
                storage.store(at, number * 32 * self.per, values)
        with otherwise():
            for number, values in enumerate(results):
                for value, place in zip(values, self.places(number)):
                    out.store(place, storage.narrowed(value, self.dtype), pred=place < self.count)


def _scan_tile(
    sums: Sums, elements: list[list[State]], exclusive: bool, tiles: LookBack, tile: Any, first: Any
) -> list[list[Any]]:
    """The results of a thread's elements: within the thread, the warp, the block, and behind all earlier tiles."""
    inner = [_running(sums, states) for states in elements]
    carry: State = []
    before = []
    for states in inner:
        lanes, total = sums.before_lane(states[-1])
        before.append(sums.combine(carry, lanes) if carry else lanes)
        carry = sums.combine(carry, total) if carry else total
    parts, ahead = sums.shared(_WARPS), sums.shared(1)
    number = ptx.tid.x >> 5
    with when(ptx.laneid == 0):
        for part, value in zip(parts, carry):
            part[number] = value
    ptx.bar.sync(0)
    earlier, whole = sums.registers(), sums.registers()
    with loop(_WARPS) as other:
        with when(other == number):
            _set(earlier, list(whole))
        _set(whole, sums.combine(list(whole), [part[other] for part in parts]))
    with when(number == 0):
        _look_back(sums, tiles, tile, first, whole, ahead)
    ptx.bar.sync(0)
    start = sums.combine([part[0] for part in ahead], list(earlier))
    return [
        _results(sums, sums.combine(start, lanes), states, own, exclusive)
        for lanes, states, own in zip(before, inner, elements)
    ]


def _running(sums: Sums, states: list[State]) -> list[State]:
    made = [[part.copy() for part in states[0]]]
    for state in states[1:]:
        made.append(sums.combine(made[-1], list(state)))
    return made


def _look_back(sums: Sums, tiles: LookBack, tile: Any, first: Any, whole: State, ahead: list[Any]) -> None:
    """The first warp publishes the tile's sum, and puts what lies before the tile into ``ahead``."""
    lane, before = ptx.laneid, sums.registers()
    with when(tile != first):
        with when(lane == 0):
            tiles.publish(tile, PARTIAL, list(whole))
        ptx.bar.warp.sync(warp.MASK)
        tiles.before(tile, first, before)
    with when(lane == 0):
        tiles.publish(tile, COMPLETE, sums.combine(list(before), list(whole)))
        for place, part in zip(ahead, before):
            place[0] = part


def _results(sums: Sums, before: State, inclusive: list[State], own: list[State], exclusive: bool) -> list[Any]:
    if not exclusive:
        return [sums.combine(before, state)[0] for state in inclusive]
    values = [before[0], *(sums.combine(before, state)[0] for state in inclusive[:-1])]
    if sums.segmented:
        values = [select(state[1] != 0, sums.neutral, value) for state, value in zip(own, values)]
    return values


@cache
def tile_kernel(op: str, dtype: ScalarType, exclusive: bool, segmented: bool) -> Kernel:
    """Scan rows of ``n`` elements, of ``tiles`` tiles each."""
    sums = Sums(op, dtype, segmented)
    mark, kind = u8 if segmented else dtype, sums.kind if sums.kind.bits == 64 else u64
    size = tile_size(dtype)
    label = f"scan_{op}_{dtype}{'_exclusive' if exclusive else ''}{'_segmented' if segmented else ''}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(
        x: Ptr[dtype], flags: Ptr[mark], out: Ptr[dtype], words: Ptr[u64], wide: Ptr[kind], n: u64, tiles: u32
    ) -> None:
        tile = next_tile(words)
        row, part = tile // tiles, tile % tiles
        start = ptx.mul.wide.u32(part, size)
        begin = row.to(u64) * n + start
        held = _Tile(sums, dtype, minimum(n - start, size).to(u32))
        source, target = x + begin, out + begin
        whole = held.whole(source, target)
        elements = held.load(source, whole, flags + begin if segmented else None)
        results = _scan_tile(sums, elements, exclusive, LookBack(sums, words + 1, wide), tile, tile - part)
        held.store(target, whole, results)

    return kernel


@cache
def column_kernel(op: str, dtype: ScalarType, exclusive: bool, segmented: bool) -> Kernel:
    """Scan [outer, n, inner] along n: a thread goes down a column, with several loads in flight."""
    sums = Sums(op, dtype, segmented)
    mark = u8 if segmented else dtype
    label = f"scan_{op}_columns_{dtype}{'_exclusive' if exclusive else ''}{'_segmented' if segmented else ''}"

    @ptx_kernel(name=label, reqntid=THREADS)
    def kernel(x: Ptr[dtype], flags: Ptr[mark], out: Ptr[dtype], n: u32, inner: u64, columns: u64) -> None:
        column = ptx.mad.wide.u32(ptx.ctaid.x, THREADS, ptx.tid.x.to(u64))
        with when(column < columns):
            first = column // inner * n.to(u64) * inner + column % inner
            before = sums.registers()

            def take(row: Any, count: int) -> None:
                places = [first + (row + i).to(u64) * inner for i in range(count)]
                elements = [[storage.widened(x[place], dtype)] for place in places]
                if segmented:
                    elements = [[*e, (flags[place] != 0).to(u32)] for e, place in zip(elements, places)]
                for place, element in zip(places, elements):
                    old = before[0].copy() if exclusive else None
                    _set(before, sums.combine(list(before), element))
                    value = before[0] if old is None else old
                    if segmented and exclusive:
                        value = select(element[1] != 0, sums.neutral, value)
                    out[place] = storage.narrowed(value, dtype)

            whole = n - n % 4
            with loop(0, whole, 4) as row:
                take(row, 4)
            with loop(whole, n) as row:
                take(row, 1)

    return kernel
