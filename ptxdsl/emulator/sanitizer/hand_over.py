"""Data handed over by strong accesses that nothing orders: no race by the axioms, and yet an old value may be read.

A thread *has seen* what another one wrote, and all that this one did before and had seen itself, when it reads that by
a strong access and then goes its way by it (branches, computes an address, acquires). Where it then reads what was
written before by another strong access, it counts on an order; if the happens-before order has none, the memory model
lets it read an older value. That is a finding of the kind ``order``. Within a block, so is every strong store whose
value another thread reads and computes with, unordered: it counts on the lanes, or warps, running in step.

No finding are loads that repeat until they find what is wanted, loads that a compare-and-swap confirms, and
read-modify-writes, which read no old value; and a read of what the thread, or one that is ordered before it, has read
already. Not seen are stores that may be overwritten by older ones, and what only a fence between the accesses of both
threads would forbid (Dekker's entry).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..codegen.code import Code
from .happens_before import BlockOrder, Clock, Places, Thread, covers, join
from .uses import Uses, Values, trusting

__all__ = ["HandOver", "Write", "Written"]

_MOST = 64
"""Writes to one place that are remembered."""
Who = tuple[int, int, int]
"""Block, warp and lane."""


class Write(NamedTuple):
    """A strong write: by whom, in which epoch, at which statement, over which value.

    ``stored`` is the new value of a plain store, -1 of read-modify-writes.
    """

    who: Who
    epoch: int
    statement: int
    before: int
    stored: int


@dataclass
class Written:
    """The last writes to a place, in their order; who has read it since; what they had seen."""

    writes: list[Write] = field(default_factory=list)
    readers: list[tuple[Who, int]] = field(default_factory=list)
    seen: Clock = field(default_factory=dict)


class _Load(NamedTuple):
    """Whether a load may read an old value unnoticed, and what becomes of its result."""

    trusting: bool
    uses: Uses


class HandOver:
    """What the threads of a launch have seen of each other's strong accesses."""

    def __init__(self) -> None:
        self.places: Places[Written] = Places()

    @staticmethod
    def load(code: Code, place: int) -> _Load:
        """What is known of a load."""
        loads: dict[int, _Load] = code.notes.setdefault(_Load, {})
        if place not in loads:
            values: Any = code.notes.get(Values)
            if values is None:
                values = code.notes[Values] = Values(code.graph)
            statement: Any = code.graph.statements[place]
            loads[place] = _Load(trusting(values, place, statement.form.effects.access), values.uses(place))
        return loads[place]

    def write(
        self, block: BlockOrder, thread: Thread, home: int, host: int, clock: Clock, write: Write
    ) -> None:
        """A thread is about to write."""
        places = self.places.of(block, home)
        before = places.get(host)
        seen, writes = join(clock, block.seen_by(thread)), [write]
        if before is not None:
            last = before.writes[-1]
            if last.stored >= 0:  # a lane before it has yet to store
                write = write._replace(before=last.stored)
            writes = [*before.writes[1 - _MOST :], write]
            if write.stored < 0:
                seen = join(seen, before.seen)
        places[host] = Written(writes, [], seen)

    def read(
        self, code: Code, block: BlockOrder, thread: Thread, home: int, host: int, clock: Clock, place: int
    ) -> Write | None:
        """A thread is about to read; the write that it may miss, where it counts on an order."""
        written = self.places.of(block, home).get(host)
        if written is None:
            return None
        statement: Any = code.graph.statements[place]
        load = self.load(code, place)
        found = None
        if load.trusting:
            found = self._missed(block, thread, clock, written, load.uses)
        if len(written.readers) < _MOST:
            who = (block.block, *thread)
            written.readers.append((who, clock[who]))
        if load.uses.chooses or load.uses.addresses or statement.form.effects.acquires:
            block.seen[thread] = join(block.seen_by(thread), written.seen)
        return found

    @staticmethod
    def _missed(block: BlockOrder, thread: Thread, clock: Clock, written: Written, uses: Uses) -> Write | None:
        for who, epoch in written.readers:
            if covers(clock, who, epoch, False):
                return None
        seen = block.seen_by(thread)
        for write in reversed(written.writes):
            if covers(clock, write.who, write.epoch, False):
                return None
            if write.before == write.stored:
                continue
            in_step = write.stored >= 0 and write.who[0] == block.block and uses.stored and not uses.chooses
            if in_step or covers(seen, write.who, write.epoch, False):
                return write
        return None
