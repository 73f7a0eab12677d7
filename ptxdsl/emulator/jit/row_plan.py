"""Loads through one address of each lane that lie side by side: what is to be read as a row of each lane.

Fields of a structure, four turns of a loop over a lane's own row, the elements of a vector: a gather for each of them
costs as much as the lanes one after the other, and the CPU reads the same lines again and again. So they are made once,
at the first of them: one load for each lane of all that is wanted there, and the lanes' rows are transposed.

Loads belong together that have the same base register, and nothing between them that waits, or stores to the same
space: the last ones are made earlier than their place, but memory is the same there. Stores stay where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from ..instructions.addresses import AccessFlags
from ..instructions.memory import Load, Store
from ..instructions.micro_op import PlacedMicroOp
from ..machine.layout import LANES, SPACE_BITS
from .merged_checks import Lowered, written_slots
from .plan import Row

__all__ = ["MOST_BYTES", "picked", "row_loads"]

ROW_BYTES = 32
"""Of a row at most."""
WORD_BYTES = 8
"""Of a row of elements below 32 bits: it is read as one number."""
MOST_ROWS = 64
"""In a basic block."""
APART = (SPACE_BITS["global"], SPACE_BITS["shared"])
"""Spaces that have no memory in common."""
MOST_BYTES = 512
"""From the lowest lane's to the highest's of an access whose lanes pick elements of all that lies there."""


def picked(offsets: Sequence[int], bits: int, nbytes: int) -> tuple[int, ...]:
    """The element that each lane accesses, from the lowest on; empty where all from there on are too many."""
    low, element = min(offsets), bits // 8
    if any((offset - low) % element for offset in offsets) or max(offsets) - low > MOST_BYTES - nbytes:
        return ()
    return tuple((offset - low) // element for offset in offsets) + (0,) * (LANES - len(offsets))


class WithOffsets(Lowered, Protocol):
    """A lowered kernel whose lane offsets are known by number."""

    pool: Any


def row_loads(low: WithOffsets, micro_ops: Sequence[PlacedMicroOp], present: int) -> dict[int, Row]:
    """The rows of the loads of a basic block, by the number of the micro-op."""
    version: dict[int, int] = {}
    groups: dict[Any, list[int]] = {}
    since: Counter[int] = Counter()
    for number, placed in enumerate(micro_ops):
        key = _key(low, placed, present)
        if key is not None:
            here = version.get(placed.value("slot"), 0), since[_space(placed)]
            groups.setdefault((*key, *here), []).append(number)
        elif not placed.op.repeatable or placed.op.converges:
            stored = _space(placed) if isinstance(placed.op, Store) else 0
            since.update(space for space in (0, *APART) if not stored or space in (0, stored))
        for slot in written_slots(low, placed):
            version[slot] = version.get(slot, 0) + 1
    found: dict[int, Row] = {}
    rows = 0
    for members in groups.values():
        for run in _runs(sorted(members, key=lambda number: micro_ops[number].value("offset")), micro_ops):
            if rows < MOST_ROWS:
                rows += 1
                found.update(run)
    return found


def _space(placed: PlacedMicroOp) -> int:
    """The space that an access surely is in and none of another is; 0 where that is not known."""
    spaces = placed.value("flags") >> AccessFlags.SPACES_SHIFT & 255
    return spaces if spaces in APART else 0


def _key(low: WithOffsets, placed: PlacedMicroOp, present: int) -> Any:
    """What loads of one row have in common; None of others."""
    op = placed.op
    if not isinstance(op, Load) or op.private or op.pattern is not None:
        return None
    address, flags = op.address, placed.value("flags")
    if not flags & AccessFlags.ONE_ENTRY or all(not dest.per_lane for dest in op.dests):
        return None
    vector = 0
    if address.affine:
        vector = placed.value("vector")
        if picked(low.pool.vectors[vector][:present], op.bits, op.bits // 8 * len(op.dests)):
            return None
    elif not address.per_lane or op.guard:
        return None
    entry, slot, offset = (placed.value(name) for name in ("entry", "slot", "offset"))
    return address, op.bits, flags, entry, slot, vector, offset % (op.bits // 8)


def _runs(members: list[int], micro_ops: Sequence[PlacedMicroOp]) -> list[dict[int, Row]]:
    """The members, which are sorted by offset, as rows; those that are alone are none."""
    found: list[dict[int, Row]] = []
    run: list[int] = []
    for number in [*members, None]:
        if number is not None and (not run or _columns([*run, number], micro_ops)[1]):
            run.append(number)
            continue
        *columns, total = _columns(run, micro_ops)[0]
        if total > 1:
            found.append({each: Row(min(run), column, total) for each, column in zip(run, columns)})
        run = [number] if number is not None else []
    return found


def _columns(run: list[int], micro_ops: Sequence[PlacedMicroOp]) -> tuple[list[int], bool]:
    """The first column of each load, then how many there are; whether they are no more than a row has."""
    loads: list[Any] = [micro_ops[number] for number in run]
    element, start = loads[0].op.bits // 8, loads[0].value("offset")
    columns = [(load.value("offset") - start) // element for load in loads]
    total = max(column + len(load.op.dests) for column, load in zip(columns, loads))
    return [*columns, total], total * element <= (ROW_BYTES if element > 2 else WORD_BYTES)
