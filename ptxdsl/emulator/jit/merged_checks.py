"""Accesses that are checked together in compiled code, since they go through one pointer: bounds, and the sanitizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .plan import Spot
    from ..instructions.lowering import Record

__all__ = ["joint_checks", "merged_looks"]

Written = Callable[["Record"], "set[int]"]
"""Slots that the statement of a record changes."""
MOST_PIECES = 32
"""Pieces of memory that are looked at together."""


def joint_checks(records: Sequence[Record], written: Written) -> dict[int, tuple[int, int]]:
    """By their place, the accesses that are checked at the first of those through the same pointer.

    For the first: bytes from the lowest of all to this one, and the extent of all; for the others (0, -1).
    """
    version: dict[int, int] = {}
    groups: dict[Any, list[int]] = {}
    for number, record in enumerate(records):
        key = _group(record)
        if key is not None:
            groups.setdefault((*key, version.get(key[1], 0)), []).append(number)
        for offset in written(record):
            version[offset] = version.get(offset, 0) + 1
    together: dict[int, tuple[int, int]] = {}
    for members in groups.values():
        spans = [_span(records[number]) for number in members]
        low, high = min(start for start, _ in spans), max(stop for _, stop in spans)
        together[members[0]] = (spans[0][0] - low, high - low)
        for number in members[1:]:
            together[number] = (0, -1)
    return together


def _group(record: Record) -> Any:
    """What accesses must share to be checked together: how, through which register, against which entry."""
    if record.shape[0] not in ("load", "store") or record.shape[6]:
        return None
    kind, pattern = record.shape[1], record.shape[2]
    uniform = kind[0] == "U" and (record.shape[0] == "load" or record.shape[5])
    if not uniform and (kind[0] != "A" or pattern is None or (record.shape[0] == "store" and pattern[0] != "c")):
        return None
    flags, entry, slot, offset = record.values[:4]
    return record.shape[0], slot, kind, flags, entry, offset % (flags & 255)


def _span(record: Record) -> tuple[int, int]:
    """First and last byte of an access, from the uniform part of its address."""
    flags, offset = record.values[0], record.values[3]
    extent = record.values[5] if record.shape[1][0] == "A" else (flags & 255) - 1
    return offset, offset + extent


def merged_looks(spots: list[Spot], records: Sequence[Record], written: Written) -> list[Spot]:
    """The sanitizer's looks at what all lanes, or rows of them, read side by side: one for many."""
    groups: dict[Any, list[int]] = {}
    version: dict[int, int] = {}
    since = 0
    for number, spot in enumerate(spots):
        if spot.shape[0] == "shadow_check" and spot.shape[1] == 0:
            key = _look(spot)
            if key is not None:
                groups.setdefault((*key, since, version.get(spot.values[2], 0)), []).append(number)
        elif spot.shape[0] in ("store", "atomic", "fence", "shadow_check", "epoch_barrier", "epoch_arrive"):
            since += 1
        for offset in written(records[number]):
            version[offset] = version.get(offset, 0) + 1
    found = list(spots)
    for members in groups.values():
        for chunk in _chunks(sorted(members, key=lambda number: spots[number].values[3]), spots):
            _merge(found, chunk)
    return found


def _look(spot: Spot) -> Any:
    """What looks that are made as one have in common; None where this one is made by itself."""
    _, _, level, _, own, kind, pattern, nbytes, grain, guard, *_ = spot.shape
    plain = own and not level and not guard and not nbytes % (1 << grain)
    if not plain or kind[0] not in "AU" or (kind[0] == "A" and (pattern is None or pattern[0] != "b")):
        return None
    return spot.shape, spot.values[1], spot.values[2], spot.values[3] % nbytes


def _chunks(members: list[int], spots: list[Spot]) -> list[list[int]]:
    """The members, by where they read, in runs without a gap."""
    chunks: list[list[int]] = []
    nbytes, grain = spots[members[0]].shape[7:9]
    most = max(1, MOST_PIECES * (1 << grain) // nbytes)
    for number in members:
        last = chunks[-1] if chunks else []
        if last and len(last) < most and spots[number].values[3] == spots[last[-1]].values[3] + nbytes:
            last.append(number)
        else:
            chunks.append([number])
    return chunks


def _merge(found: list[Spot], chunk: list[int]) -> None:
    """The first of a chunk, in the text, looks for all."""
    if len(chunk) == 1:
        return
    spots = [found[number] for number in chunk]
    nbytes, grain = spots[0].shape[7:9]
    pieces = nbytes >> grain
    statements = tuple(spot.values[-1] for spot in spots for _ in range(pieces))
    extent = (spots[0].values[5] if spots[0].shape[5][0] == "A" else nbytes - 1) + nbytes * (len(chunk) - 1)
    first = min(chunk)
    values = [*found[first].values[:3], spots[0].values[3], *found[first].values[4:]]
    for number in chunk:
        found[number] = found[number]._replace(merged=())
    found[first] = found[first]._replace(values=values, together=(0, extent), merged=statements)
