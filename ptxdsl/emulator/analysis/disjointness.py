"""Whether threads keep to bytes of their own: accesses to one array, of all threads of a launch or of a block.

What tells threads apart are digits of a number: the thread's part of an address, the multiples of the block's
coordinates and what loops and memory add, each a multiple of more than all below it span. Then equal bytes mean equal
threads. Addresses are integers here; where a register may have wrapped around, any multiple of 2^bits is one more digit
that nothing is known of. Where addresses are known but for the block, the blocks that are near enough are compared.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from ..machine.layout import LANES
from .divergence import Shape3
from .linear_values import Part, Value, flat, summed

__all__ = ["Footprint", "apart", "are_disjoint", "are_warps_disjoint", "is_inside", "is_within"]

_SPAN = 1 << 62
MOST = 1 << 18
"""Bytes, or units of them, of all threads together, up to which they are compared."""


class Footprint(NamedTuple):
    """The bytes that an access may touch: from its address on, in these threads (None for all); whether it writes."""

    value: Value
    nbytes: int
    threads: Any
    writes: bool


class _Piece(NamedTuple):
    """What the threads of one access touch of one digit: the access, and its part."""

    access: Footprint
    part: Part


def are_warps_disjoint(accesses: Sequence[Footprint], threads: int) -> bool:
    """Whether what a warp writes in shared memory is touched by no other warp of the block; only of exact addresses."""
    whole = _without_blocks([_Piece(access, flat(access.value)) for access in accesses])
    if any(piece.part.symbols or piece.part.step or piece.access.value.bits < 32 for piece in whole):
        return False
    starts, sizes, owners, writes = _places(whole, threads)
    return not len(starts) or apart(starts, sizes, owners // LANES, writes, 0)


def are_disjoint(accesses: Sequence[Footprint], grid: Shape3, threads: int, width: int) -> bool:
    """Whether what one thread writes is touched by no other thread of the grid; (1, 1, 1) is one block alone.

    ``width``: bits of an address.
    """
    if not any(access.writes for access in accesses):
        return True
    whole = [_Piece(access, flat(access.value)) for access in accesses]
    if any(piece.part.symbols for piece in whole):
        return False
    within = grid == (1, 1, 1)
    if within:
        whole = _without_blocks(whole)
    bits = min(access.value.bits for access in accesses)
    wraps = 0 if bits >= width and _bounded(whole, width) else 1 << min(bits, width)
    if _digit_tells(whole, grid, wraps, threads):
        return True
    if wraps:
        return False
    columns = _columns(accesses, grid)
    if within:
        columns = [_without_blocks(column) for column in columns]
    for each in (columns, _folded(columns)):
        split = [part for column in each for part in _split(column, grid, threads)]
        if len(split) > 1 and _digits_tell(split, grid, threads):
            return True
    return not within and _near_blocks_tell(whole, grid, threads)


def _columns(accesses: Sequence[Footprint], grid: Shape3) -> list[list[_Piece]]:
    """The parts of all accesses, beside one another: multiples of the same coordinates of the block, others by size."""
    found = []
    for access in accesses:
        parts: dict[Hashable, Part] = {}
        rest: list[Part] = []
        for key, each in access.value.parts.items():
            part = _tightened(each, access.threads, grid)
            if key is not None and not any(part.block):
                rest.append(part)
                continue
            place = part.block if any(part.block) else None
            parts[place] = summed(parts[place], part) if place in parts else part
        rest.sort(key=lambda part: (part.high or 0) - (part.low or 0))
        found.append(parts | {(number,): part for number, part in enumerate(rest)})
    keys = list(dict.fromkeys(key for parts in found for key in parts))
    return [[_Piece(access, parts.get(key, Part())) for access, parts in zip(accesses, found)] for key in keys]


def _tightened(part: Part, threads: Any, grid: Shape3) -> Part:
    """A part with the bounds that follow from the threads which make the access."""
    if part.vector is None or threads is None:
        return part
    numbers = part.vector[threads]
    part = part._replace(vector=np.where(threads, part.vector, numbers[0]))
    if part.step or part.low is None or part.high is None:
        return part
    numbers = numbers + part.const
    ends = [each * (count - 1) for each, count in zip(part.block, grid)]
    low = int(numbers.min()) + sum(min(0, end) for end in ends)
    high = int(numbers.max()) + sum(max(0, end) for end in ends)
    return part._replace(low=max(part.low, low), high=min(part.high, high))


def is_inside(access: Footprint, size: int) -> bool:
    """Whether an access, by a number of as many bits as its address, touches none but the bytes of an array."""
    part = flat(access.value)
    if access.value.bits < 32 or part.symbols or part.low is None or part.high is None:
        return False
    return part.low >= 0 and part.high + access.nbytes <= size


def is_within(access: Footprint, written: Any) -> bool:
    """Whether an access touches none but bytes of a mask, or those beyond it."""
    if written.all():
        return True
    part = flat(access.value)
    if access.value.bits < 32 or part.symbols or part.block != (0, 0, 0) or part.low is None or part.high is None:
        return False
    if part.step:
        natural = part.low >= 0 and part.high + access.nbytes <= 1 << 32  # so that no register has wrapped around
        return natural and bool(written[part.low : part.high + access.nbytes].all())
    start = np.array([part.const]) if part.vector is None else part.vector + part.const
    start = start if access.threads is None or part.vector is None else start[access.threads]
    if not len(start) or int(start.min()) < 0 or int(start.max()) + access.nbytes > len(written):
        return False
    return bool(written[start[:, None] + np.arange(access.nbytes)].all())


def _without_blocks(pieces: list[_Piece]) -> list[_Piece]:
    """Within a block: equal multiples of its coordinates cancel out, others count as unknown."""
    step = 0
    first = pieces[0].part.block
    for piece in pieces:
        for one, other in zip(first, piece.part.block):
            step = gcd(step, one - other)
    return [
        piece._replace(part=piece.part._replace(block=(0, 0, 0), step=gcd(piece.part.step, step))) for piece in pieces
    ]


def _bounded(pieces: list[_Piece], width: int) -> bool:
    """Whether equal addresses are equal integers: no two of these are 2^width apart, less what an array can have."""
    lows, highs = [piece.part.low for piece in pieces], [piece.part.high for piece in pieces]
    if None in lows or None in highs:
        return False
    span = max(high for high in highs if high is not None) - min(low for low in lows if low is not None)
    return span < (1 << width) - (1 << width - 4)


def _blocks(pieces: list[_Piece], grid: Shape3) -> list[tuple[int, int, int]] | None:
    """The multiples of the block's coordinates in the order of their sizes, counts and axes; None if unlike."""
    first = pieces[0].part.block
    found = []
    for axis, count in enumerate(grid):
        if count == 1:
            continue
        if any(piece.part.block[axis] != first[axis] for piece in pieces):
            return None
        if first[axis]:
            found.append((abs(first[axis]), count, axis))
    return sorted(found)


def _places(pieces: list[_Piece], threads: int) -> tuple[Any, Any, Any, Any]:
    """Of each access and each of its threads: where it starts, how many bytes, the thread, whether it writes."""
    starts, sizes, owners, writes = [], [], [], []
    every = np.arange(threads)
    for access, part in pieces:
        start = np.full(threads, part.const, np.int64) if part.vector is None else part.vector + part.const
        who = every if access.threads is None else every[access.threads]
        starts.append(start[who])
        sizes.append(np.full(len(who), access.nbytes, np.int64))
        owners.append(who)
        writes.append(np.full(len(who), access.writes))
    return np.concatenate(starts), np.concatenate(sizes), np.concatenate(owners), np.concatenate(writes)


def _step(pieces: list[_Piece], wraps: int) -> int:
    found = wraps
    for piece in pieces:
        found = gcd(found, piece.part.step)
    return found


def _radix(blocks: list[tuple[int, int, int]], span: int, step: int) -> bool:
    """Whether each digit is a multiple of more than all below it span."""
    for size, count, _ in blocks:
        if size < span:
            return False
        span += size * (count - 1)
    return not step or not blocks or span <= step


def _digit_tells(pieces: list[_Piece], grid: Shape3, wraps: int, threads: int) -> bool:
    """Whether addresses as a whole tell the threads apart."""
    blocks = _blocks(pieces, grid)
    if blocks is None or len(blocks) < sum(count > 1 for count in grid):
        return False
    starts, sizes, owners, writes = _places(pieces, threads)
    if not len(starts):
        return True
    step = _step(pieces, wraps)
    span = int((starts + sizes).max() - starts.min())
    return _radix(blocks, span, step) and apart(starts, sizes, owners, writes, step if step < span else 0)


def apart(starts: Any, sizes: Any, owners: Any, writes: Any, step: int, ranks: Any = None, most: int = MOST) -> bool:
    """Whether no thread touches bytes that another one writes, modulo ``step``, among those of equal rank."""
    unit = int(np.gcd.reduce(np.concatenate((starts - starts.min(), sizes))))
    unit = gcd(unit, step)
    if not step:
        starts = starts - starts.min()
    else:
        shift = int(starts.min())
        starts, unit = starts - shift, gcd(unit, step)
    counts = sizes // unit
    total = int(counts.sum())
    if total > most:
        return False
    first = np.repeat(np.cumsum(counts) - counts, counts)
    places = np.repeat(starts // unit, counts) + (np.arange(total) - first)
    if step:
        places %= step // unit
    if ranks is not None and len(places):
        if int(places.max()) >= 8 * MOST:
            places = np.unique(places, return_inverse=True)[1]
        places += np.repeat(ranks, counts) * (int(places.max()) + 1)
    who, write = np.repeat(owners, counts), np.repeat(writes, counts)
    if not len(places):
        return True
    if int(places.max()) < 8 * MOST:
        holder = np.full(int(places.max()) + 1, -1, np.int32)
        holder[places[write]] = who[write]
        found = holder[places]
    else:
        names, indices = np.unique(places, return_inverse=True)
        holder = np.full(len(names), -1, np.int32)
        holder[indices[write]] = who[write]
        found = holder[indices]
    return bool(((found == -1) | (found == who)).all())


def _split(pieces: list[_Piece], grid: Shape3, threads: int) -> list[list[_Piece]]:
    """A part in several, where multiples of the block's coordinates lie between those of the thread's."""
    blocks = _blocks(pieces, grid)
    vectors = [
        np.full(threads, part.const, np.int64) if part.vector is None else part.vector + part.const
        for _, part in pieces
    ]
    least = min(int(vector.min()) for vector in vectors)
    most = max(int(vector.max()) for vector in vectors)
    if not blocks or most - least < blocks[0][0] or blocks[0][0] >= _SPAN:
        return [pieces]
    size, count, axis = blocks[0]
    low = [(vector - least) % size for vector in vectors]
    rest = [vector - part for vector, part in zip(vectors, low)]
    first = tuple(each if number == axis else 0 for number, each in enumerate(pieces[0].part.block))
    end = first[axis] * (count - 1)
    middle = Part(0, None, first, 0, min(0, end), max(0, end))  # type: ignore[arg-type]
    lows, highs = [], []
    for piece, one, other in zip(pieces, low, rest):
        block = tuple(0 if number == axis else each for number, each in enumerate(piece.part.block))
        ends = [each * (n - 1) for each, n in zip(block, grid)]
        bounds = (
            (None, None) if piece.part.step
            else (int(other.min()) + sum(min(0, e) for e in ends), int(other.max()) + sum(max(0, e) for e in ends))
        )
        lows.append(piece._replace(part=Part(0, one, (0, 0, 0), 0, int(one.min()), int(one.max()))))
        highs.append(piece._replace(part=Part(0, other, block, piece.part.step, *bounds)))  # type: ignore[arg-type]
    return [lows, [piece._replace(part=middle) for piece in pieces], *_split(highs, grid, threads)]


def _near_blocks_tell(pieces: list[_Piece], grid: Shape3, threads: int) -> bool:
    """Whether no other block is where one writes: all addresses are known but for the block, which moves them alike."""
    first = pieces[0].part.block
    if any(part.step or part.block != first for _, part in pieces) or prod(grid) > MOST:
        return False
    starts, sizes, owners, writes = _places(pieces, threads)
    if not len(starts):
        return True
    x, y, z = (each * np.arange(1 - count, count) for each, count in zip(first, grid))
    away = (x[:, None, None] + y[:, None] + z).ravel()
    unit = int(np.gcd.reduce(np.concatenate((starts - starts.min(), sizes, away))))
    span = int((starts + sizes).max() - starts.min())
    near = np.unique(away[np.abs(away) < span])
    if np.count_nonzero(away == 0) > 1 or span // unit > 64 * MOST or len(near) * int(sizes.sum()) // unit > 64 * MOST:
        return False
    counts = sizes // unit
    places = np.repeat((starts - starts.min()) // unit - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
    touched = np.zeros(span // unit, bool)
    touched[places] = True
    written = places[np.repeat(writes, counts)]
    for each in near[near != 0] // unit:
        moved = written + each
        if touched[moved[(moved >= 0) & (moved < len(touched))]].any():
            return False
    return apart(starts, sizes, owners, writes, 0)


def _digits_tell(columns: list[list[_Piece]], grid: Shape3, threads: int) -> bool:
    """The same, of parts whose bounds are known one by one: each is a multiple of more than those below it span."""
    units = [_unit(column) for column in columns]
    order = sorted(range(len(columns)), key=lambda n: -units[n])
    below = max(piece.access.nbytes for piece in columns[0])
    for number in reversed(order):
        if number != order[-1] and units[number] < below:
            return False
        part_lows = [piece.part.low for piece in columns[number]]
        part_highs = [piece.part.high for piece in columns[number]]
        if None in part_lows or None in part_highs:
            if number != order[0]:
                return False
            continue
        below += max(h for h in part_highs if h is not None) - min(w for w in part_lows if w is not None)
    told: set[int] = set()
    ranks: Any = None
    for number in order:
        column = columns[number]
        blocks = _blocks(column, grid)
        if blocks is None:
            return False
        starts, sizes, owners, writes = _places(column, threads)
        if not len(starts):
            return True
        step = _step(column, 0)
        last = number == order[-1]
        span = int((starts + (sizes if last else 1)).max() - starts.min())
        if not _radix(blocks, span, step):
            return False
        told.update(axis for _, _, axis in blocks)
        if last:
            missing = len(told) < sum(count > 1 for count in grid)
            return not missing and apart(starts, sizes, owners, writes, step if step < span else 0, ranks)
        values = (starts - starts.min()) % step if 0 < step < _SPAN else starts
        ranks = _ranked(values, ranks)
    return False


def _ranked(values: Any, ranks: Any) -> Any:
    """A number for each combination of a value and a rank."""
    numbers = np.unique(values, return_inverse=True)[1]
    if ranks is None:
        return numbers
    return np.unique(np.stack((ranks, numbers)), axis=1, return_inverse=True)[1].ravel()


def _folded(columns: list[list[_Piece]]) -> list[list[_Piece]]:
    """Parts that are only numbers are added to the part of the smallest unit."""
    plain = [column for column in columns if all(_is_number(piece.part) for piece in column)]
    rest = sorted((column for column in columns if not all(_is_number(piece.part) for piece in column)), key=_unit)
    if not plain or not rest:
        return columns
    for column in plain:
        rest[0] = [piece._replace(part=_moved(piece.part, other.part.const)) for piece, other in zip(rest[0], column)]
    return rest


def _is_number(part: Part) -> bool:
    return part.vector is None and part.block == (0, 0, 0) and not part.step and not part.symbols


def _moved(part: Part, by: int) -> Part:
    low, high = (None if end is None else end + by for end in (part.low, part.high))
    return part._replace(const=part.const + by, low=low, high=high)


def _unit(pieces: list[_Piece]) -> int:
    """A number that all differences between values of a part are multiples of; a large one where there are none."""
    found = 0
    first = pieces[0].part.const
    for _, part in pieces:
        found = gcd(found, gcd(part.step, part.const - first, *part.block))
        if part.vector is not None:
            found = gcd(found, int(np.gcd.reduce(part.vector - part.vector[0])))
            found = gcd(found, int(part.vector[0]) + part.const - first)
    return found or _SPAN
