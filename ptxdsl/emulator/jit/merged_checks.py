"""Checks made once for several accesses with the same base register: of bounds, and the sanitizer's.

A granule that has passed a check of being written stays written: who asks again of the same place in the same basic
block, or would note that it is written, need not. The first tier leaves none of these out, since there a load of
unwritten memory may go on. It is seen by the register that holds the address, so ``a[i]`` computed twice is two places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...analysis.control_flow import ControlFlowGraph
from ..instructions.addresses import AccessFlags
from ..instructions.instrumentation import CopyBegin, EpochArrive, EpochBarrier, ShadowCheck
from ..instructions.memory import Load, Store
from ..instructions.micro_op import PlacedMicroOp
from ..machine.shadow import Role, statement_bits
from .plan import PlannedOp

__all__ = ["merged_bounds_checks", "merged_shadow_checks", "without_repeated_checks", "written_slots"]

MAX_GRANULES = 32
"""Granules of shadow memory in one check."""


class Lowered(Protocol):
    """A lowered kernel."""

    @property
    def graph(self) -> ControlFlowGraph: ...
    @property
    def registers(self) -> Any: ...


def written_slots(low: Lowered, placed: PlacedMicroOp) -> set[int]:
    """Slots that the statement of a micro-op writes."""
    return {low.registers.offsets[register.name] for register in low.graph.def_use[placed.statement].writes}


def merged_bounds_checks(
    low: Lowered, micro_ops: Sequence[PlacedMicroOp], stacked: frozenset[int] | None = None
) -> dict[int, tuple[int, int]]:
    """Merge the bounds checks of accesses with the same base register, by the number of the micro-op.

    The leader checks the whole extent: (bytes from the lowest access to its own, extent of all). Followers have
    (the leader's number, -1). ``stacked`` are the aligned accesses in the code of one lane, where those of local memory
    are merged too; None elsewhere.
    """
    version: dict[int, int] = {}
    groups: dict[Any, list[int]] = {}
    for number, placed in enumerate(micro_ops):
        key = _bounds_key(placed, stacked)
        if key is not None:
            groups.setdefault((*key, version.get(key[1], 0)), []).append(number)
        for slot in written_slots(low, placed):
            version[slot] = version.get(slot, 0) + 1
    merged: dict[int, tuple[int, int]] = {}
    for members in groups.values():
        spans = [_span(micro_ops[number]) for number in members]
        start, stop = min(first for first, _ in spans), max(last for _, last in spans)
        merged.update(dict.fromkeys(members, (members[0], -1)))
        merged[members[0]] = (spans[0][0] - start, stop - start)
    return merged


def _bounds_key(placed: PlacedMicroOp, stacked: frozenset[int] | None) -> Any:
    """What accesses with one check have in common: kind, base register, buffer entry, alignment."""
    op = placed.op
    if not isinstance(op, (Load, Store)) or op.guard or (op.private and stacked is None):
        return None
    if op.private and stacked is not None:
        return _private_key(placed, op, placed.statement in stacked)
    address, pattern, load = op.address, op.pattern, isinstance(op, Load)
    uniform = address.uniform and (isinstance(op, Load) or op.uniform)
    if not uniform and (not address.affine or pattern is None or (not load and pattern[0] != "c")):
        return None
    flags, entry, slot, offset = (placed.value(name) for name in ("flags", "entry", "slot", "offset"))
    if not flags & AccessFlags.ONE_ENTRY:  # each learns its own
        return None
    return load, slot, address, flags, entry, offset % (flags & AccessFlags.NBYTES)


def _private_key(placed: PlacedMicroOp, op: Load | Store, aligned: bool) -> Any:
    """The same for accesses of local memory by one lane, whose loads and stores have the same bounds."""
    if not op.address.uniform:
        return None
    flags, entry, slot, offset = (placed.value(name) for name in ("flags", "entry", "slot", "offset"))
    nbytes = flags & AccessFlags.NBYTES
    return op.private, slot, op.address, entry, None if aligned else (nbytes, offset % nbytes)


def _span(placed: PlacedMicroOp) -> tuple[int, int]:
    """First and last byte of an access, from its base register."""
    offset = placed.value("offset")
    if "extent" in placed.op.values:
        return offset, offset + placed.value("extent")
    return offset, offset + (placed.value("flags") & AccessFlags.NBYTES) - 1


def merged_shadow_checks(
    low: Lowered, micro_ops: Sequence[PlacedMicroOp], ops: list[PlannedOp], uniform: bool
) -> list[PlannedOp]:
    """Merge the sanitizer's checks of adjacent reads with the same base register; only of ``uniform`` addresses."""
    groups: dict[Any, list[int]] = {}
    version: dict[int, int] = {}
    since = 0
    for number, planned in enumerate(ops):
        op = planned.op
        if isinstance(op, ShadowCheck) and op.role == Role.READ:
            key = _shadow_key(planned, op, uniform)
            if key is not None:
                groups.setdefault((*key, since, version.get(planned.value("slot"), 0)), []).append(number)
        elif not op.repeatable or isinstance(op, (ShadowCheck, EpochArrive, EpochBarrier)):
            since += 1
        for slot in written_slots(low, micro_ops[number]):
            version[slot] = version.get(slot, 0) + 1
    found = list(ops)
    for members in groups.values():
        for run in _adjacent(sorted(members, key=lambda number: ops[number].value("offset")), ops):
            _merge(found, run)
    return found


def _shadow_key(planned: PlannedOp, op: ShadowCheck, uniform: bool) -> Any:
    """What shadow checks have in common that can be merged; None where this one cannot."""
    if not op.block_private or op.strength or op.guard or op.nbytes % (1 << op.granule):
        return None
    broadcast = op.pattern is not None and op.pattern[0] == "b"
    if not op.address.uniform and (uniform or not (op.address.affine and broadcast)):
        return None
    return op, planned.value("entry"), planned.value("slot"), planned.value("offset") % op.nbytes


def _adjacent(members: list[int], ops: list[PlannedOp]) -> list[list[int]]:
    """The members, which are sorted by address, in runs without a gap."""
    runs: list[list[int]] = []
    check = ops[members[0]].op
    assert isinstance(check, ShadowCheck)
    most = max(1, MAX_GRANULES // check.granules)
    for number in members:
        last = runs[-1] if runs else []
        if last and len(last) < most and ops[number].value("offset") == ops[last[-1]].value("offset") + check.nbytes:
            last.append(number)
        else:
            runs.append([number])
    return runs


def _merge(found: list[PlannedOp], run: list[int]) -> None:
    """The first of a run in program order checks for all."""
    if len(run) == 1:
        return
    first, leader = found[run[0]], found[min(run)]
    check = first.op
    assert isinstance(check, ShadowCheck)
    statements = tuple(statement_bits(found[number].statement) for number in run for _ in range(check.granules))
    extent = (first.value("extent") if check.address.affine else check.nbytes - 1) + check.nbytes * (len(run) - 1)
    values = list(leader.values)
    values[check.values.index("offset")] = first.value("offset")
    for number in run:
        found[number] = found[number]._replace(shadowed=())
    found[min(run)] = leader._replace(values=values, bounds=(0, extent), shadowed=statements)


def without_repeated_checks(
    low: Lowered, micro_ops: Sequence[PlacedMicroOp], ops: list[PlannedOp]
) -> list[PlannedOp]:
    """Leave out checks of being written behind another check of the same place."""
    found: list[PlannedOp] = []
    version: dict[int, int] = {}
    passed: dict[Any, bool] = {}
    """The places that are known to be written, and whether no copy to them is incomplete."""
    for placed, planned in zip(micro_ops, ops):
        op = planned.op
        if isinstance(op, ShadowCheck) and op.init and not op.guard:
            key = _place_key(planned, op, version)
            complete = op.role == Role.READ and op.copies
            covered = key in passed and passed[key] >= complete
            passed[key] = complete or passed.get(key, False)
            if covered and not op.race and planned.shadowed is None:
                planned = planned._replace(shadowed=())
        elif isinstance(op, CopyBegin) or op.converges or not (op.repeatable or isinstance(op, Store)):
            passed.clear()
        for slot in written_slots(low, placed):
            version[slot] = version.get(slot, 0) + 1
        found.append(planned)
    return found


def _place_key(planned: PlannedOp, op: ShadowCheck, version: dict[int, int]) -> Any:
    """What two checks of the same place have in common."""
    named = {name: value for name, value in zip(op.values, planned.values) if name != "flags"}
    return op.address, op.nbytes, *named.values(), version.get(named.get("slot", -1), 0)
