"""Checks made once for several accesses with the same base register: of bounds, and the sanitizer's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..instructions.micro_op import PlacedMicroOp
from .plan import PlacedOp

__all__ = ["merged_bounds_checks", "merged_shadow_checks"]

Written = Callable[[PlacedMicroOp], "set[int]"]
"""RegisterFile that the statement of a micro-op writes."""
MAX_GRANULES = 32
"""Granules of shadow memory in one check."""


def merged_bounds_checks(records: Sequence[PlacedMicroOp], written: Written) -> dict[int, tuple[int, int]]:
    """Merge the bounds checks of accesses with the same base register, by the number of the micro-op.

    The leader checks the whole extent: (bytes from the lowest access to its own, extent of all). Followers have
    (0, -1).
    """
    version: dict[int, int] = {}
    groups: dict[Any, list[int]] = {}
    for number, record in enumerate(records):
        key = _bounds_key(record)
        if key is not None:
            groups.setdefault((*key, version.get(key[1], 0)), []).append(number)
        for slot in written(record):
            version[slot] = version.get(slot, 0) + 1
    merged: dict[int, tuple[int, int]] = {}
    for members in groups.values():
        spans = [_span(records[number]) for number in members]
        low, high = min(start for start, _ in spans), max(stop for _, stop in spans)
        merged.update(dict.fromkeys(members, (0, -1)))
        merged[members[0]] = (spans[0][0] - low, high - low)
    return merged


def _bounds_key(record: PlacedMicroOp) -> Any:
    """What accesses with one check have in common: kind, base register, buffer entry, alignment."""
    if record.op[0] not in ("load", "store") or record.op[6]:
        return None
    kind, pattern = record.op[1], record.op[2]
    uniform = kind[0] == "U" and (record.op[0] == "load" or record.op[5])
    if not uniform and (kind[0] != "A" or pattern is None or (record.op[0] == "store" and pattern[0] != "c")):
        return None
    flags, entry, slot, offset = record.values[:4]
    return record.op[0], slot, kind, flags, entry, offset % (flags & 255)


def _span(record: PlacedMicroOp) -> tuple[int, int]:
    """First and last byte of an access, from its base register."""
    flags, offset = record.values[0], record.values[3]
    extent = record.values[5] if record.op[1][0] == "A" else (flags & 255) - 1
    return offset, offset + extent


def merged_shadow_checks(ops: list[PlacedOp], records: Sequence[PlacedMicroOp], written: Written) -> list[PlacedOp]:
    """Merge the sanitizer's checks of adjacent reads with the same base register."""
    groups: dict[Any, list[int]] = {}
    version: dict[int, int] = {}
    since = 0
    for number, op in enumerate(ops):
        if op.shape[0] == "shadow_check" and op.shape[1] == 0:
            key = _shadow_key(op)
            if key is not None:
                groups.setdefault((*key, since, version.get(op.values[2], 0)), []).append(number)
        elif op.shape[0] in ("store", "atomic", "fence", "shadow_check", "epoch_barrier", "epoch_arrive"):
            since += 1
        for slot in written(records[number]):
            version[slot] = version.get(slot, 0) + 1
    found = list(ops)
    for members in groups.values():
        for run in _adjacent(sorted(members, key=lambda number: ops[number].values[3]), ops):
            _merge(found, run)
    return found


def _shadow_key(op: PlacedOp) -> Any:
    """What shadow checks have in common that can be merged; None where this one cannot."""
    _, _, level, _, own, kind, pattern, nbytes, granule, guard, *_ = op.shape
    conservative = own and not level and not guard and not nbytes % (1 << granule)
    if not conservative or kind[0] not in "AU" or (kind[0] == "A" and (pattern is None or pattern[0] != "b")):
        return None
    return op.shape, op.values[1], op.values[2], op.values[3] % nbytes


def _adjacent(members: list[int], ops: list[PlacedOp]) -> list[list[int]]:
    """The members, which are sorted by address, in runs without a gap."""
    runs: list[list[int]] = []
    nbytes, granule = ops[members[0]].shape[7:9]
    most = max(1, MAX_GRANULES * (1 << granule) // nbytes)
    for number in members:
        last = runs[-1] if runs else []
        if last and len(last) < most and ops[number].values[3] == ops[last[-1]].values[3] + nbytes:
            last.append(number)
        else:
            runs.append([number])
    return runs


def _merge(found: list[PlacedOp], run: list[int]) -> None:
    """The first of a run in program order checks for all."""
    if len(run) == 1:
        return
    ops = [found[number] for number in run]
    nbytes, granule = ops[0].shape[7:9]
    statements = tuple(op.values[-1] for op in ops for _ in range(nbytes >> granule))
    extent = (ops[0].values[5] if ops[0].shape[5][0] == "A" else nbytes - 1) + nbytes * (len(run) - 1)
    leader = min(run)
    values = [*found[leader].values[:3], ops[0].values[3], *found[leader].values[4:]]
    for number in run:
        found[number] = found[number]._replace(shadowed=())
    found[leader] = found[leader]._replace(values=values, bounds=(0, extent), shadowed=statements)
