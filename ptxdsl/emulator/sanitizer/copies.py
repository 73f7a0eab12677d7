"""Incomplete bulk copies: shared memory that one writes counts as unwritten until a thread has waited.

It waits at the mbarrier that counts the bytes. What the bulk copies of a group access is ordered with nothing until
their thread has waited for the group. The emulator copies at once, so a missing wait would change no result; on a GPU
it does. ``cp.async``, of which each thread makes many, is followed by compiled code (:class:`CopyClock`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ...ir import Instruction
from ..machine.allocation import number_at
from ..machine.layout import Block, Mbarrier
from ..machine.shadow import PENDING, UNWRITTEN, Plane, WarpClock
from ..runtime.block_state import BlockState
from .accesses import counts_bytes, operand_value
from .happens_before import Thread
from .report import Copier, Reporter
from .shadow_memory import ShadowMemory

__all__ = ["Copies"]

MOST = 1 << 16
"""Copies that are followed at a time."""
_Owner = tuple[int, Thread]
"""Number of a block, and a thread of it."""


class _Copy(NamedTuple):
    """A copy, or one end of a bulk copy of a group: its source where it ``reads``.

    ``before`` are the shadow words of its granules as of an access that is complete: they get them back once it is.
    """

    state: BlockState
    owner: _Owner
    group: int
    host: int
    words: np.ndarray[Any, Any]
    before: np.ndarray[Any, Any]
    reads: bool


class Copies:
    """The copies of all threads of a launch."""

    def __init__(self, memory: ShadowMemory, reporter: Reporter) -> None:
        self.memory, self.reporter = memory, reporter
        self.groups: dict[_Owner, int] = {}
        """Groups that a thread has committed."""
        self.grouped: dict[_Owner, list[_Copy]] = {}
        self.pending: dict[_Owner, list[_Copy]] = {}
        """Copies to be counted: the instruction that counts them comes next."""
        self.counted: dict[int, list[tuple[int, _Copy]]] = {}
        """By the host address of an mbarrier: bulk copies, each with the parity of the phase that counts it."""
        self.blocks: dict[int, int] = {}
        self.count = 0
        reporter.copier = self.copier

    def begin(self, state: BlockState, thread: Thread, statement: Instruction, host: int, reads: bool) -> None:
        """A thread begins a copy to a host address; of bulk copies of a group also from it, where it ``reads``."""
        completes, owner = statement.form.effects.completes, (state.block, thread)
        words = self._words(state, thread, statement, host, Plane.READER if reads else Plane.WRITER)
        if words is None:
            return
        self.memory.copied = True
        copy = _Copy(state, owner, self.groups.get(owner, 0), host, words, words.copy(), reads)
        if completes == "bulk_group":
            words |= PENDING
            self.grouped.setdefault(owner, []).append(copy)
        else:
            self._forget(state)
            words[:] = self._marker
            self.pending.setdefault(owner, []).append(copy)

    def _words(
        self, state: BlockState, thread: Thread, statement: Instruction, host: int, plane: int
    ) -> np.ndarray[Any, Any] | None:
        """The shadow words of what a copy accesses from a host address on; None where it is not followed."""
        if self.count >= MOST:
            if self.count == MOST:
                self.reporter.incomplete(state, state.code.graph.statements.index(statement))
                self.count += 1
            return None
        nbytes = state.get(Block.EXTENTS + 8 * thread[1], "Q")
        region = self.memory.region_at(host)
        if region is None or nbytes <= 0:
            return None
        self.count += 1
        return self.memory.words(region, host, nbytes >> self.memory.granule, plane)

    def _forget(self, state: BlockState) -> None:
        """Drop the copies of the block that a state ran before."""
        if self.blocks.get(state.address) == state.block:
            return
        self.blocks[state.address] = state.block
        for owner, copies in self.pending.items():
            self.pending[owner] = [copy for copy in copies if copy.state is not state]
        for host, counted in self.counted.items():
            self.counted[host] = [(parity, copy) for parity, copy in counted if copy.state is not state]
        tables: list[list[Any]] = [*self.pending.values(), *self.counted.values(), *self.grouped.values()]
        self.count = sum(map(len, tables)) if self.count < MOST else self.count

    # Completion

    def group(self, state: BlockState, threads: list[Thread], statement: Instruction) -> None:
        """Threads commit a group, or wait until at most the last few are incomplete, or have not read their sources."""
        effects, operands = statement.form.effects, statement.operands
        only_sources = "read" in statement.form.tokens
        for thread in threads:
            owner = state.block, thread
            current = self.groups.get(owner, 0)
            if effects.commits:
                self.groups[owner] = current + 1
                continue
            left = operand_value(state, thread, operands[0])
            kept = []
            for copy in self.grouped.get(owner, []):
                if copy.group >= current - left or (only_sources and not copy.reads):
                    kept.append(copy)
                else:
                    self._complete_grouped(copy)
            self.grouped[owner] = kept

    def mbarrier(self, state: BlockState, thread: Thread, statement: Instruction, host: int) -> None:
        """Before an operation on the mbarrier at a host address: bytes are counted, or a thread waits."""
        what, owner = statement.form.tokens[0], (state.block, thread)
        parity = number_at(host) >> Mbarrier.PARITY & 1
        if what == "init":
            self.counted.pop(host, None)
        elif counts_bytes(statement.form):
            pending = self.pending.pop(owner, [])
            self.counted.setdefault(host, []).extend((parity, copy) for copy in pending)
        elif statement.form.effects.waits and host in self.counted:
            counted = self.counted[host]
            last = max((number for number, (phase, _) in enumerate(counted) if phase != parity), default=-1)
            for _, copy in counted[: last + 1]:
                self._complete(copy)
            del counted[: last + 1]

    @property
    def _marker(self) -> int:
        """The shadow word of unwritten memory."""
        return UNWRITTEN if self.memory.clustered else 0

    def _complete(self, copy: _Copy) -> None:
        """Give granules their words back, but for those that have been written, or reported, since."""
        self._completed()
        np.copyto(copy.words, copy.before, where=copy.words == self._marker)

    def _completed(self) -> None:
        if self.count < MOST:
            self.count -= 1

    def _complete_grouped(self, copy: _Copy) -> None:
        """Its accesses happen before what its thread does from now on."""
        self._completed()
        _, (warp, _) = copy.owner
        epoch = self.memory.clock(copy.state, warp, WarpClock.EPOCH) & PENDING
        done = copy.before & ~np.uint64(PENDING) | np.uint64(epoch)
        np.copyto(copy.words, done, where=copy.words == copy.before | np.uint64(PENDING))

    # Which copy accesses an address

    def _at(self, host: int, copies: Iterable[_Copy]) -> Iterator[_Copy]:
        return (copy for copy in copies if 0 <= host - copy.host >> self.memory.granule < copy.words.size)

    def pending_at(self, host: int) -> tuple[int, int, int] | None:
        """Block, warp and lane of the bulk copy of a group that accesses a host address, if it is still pending."""
        shared = self.memory.shared_region_at(host) is not None
        for copy in self._at(host, chain.from_iterable(self.grouped.values())):
            if not shared or copy.state.block == copy.owner[0]:
                return copy.owner[0], *copy.owner[1]
        return None

    def copier(self, host: int) -> Copier | None:
        """The thread that has begun a counted copy to a granule that nobody has waited for."""
        counted = (copy for copies in self.counted.values() for _, copy in copies)
        copies = chain(chain.from_iterable(self.pending.values()), counted)
        return next((Copier(copy.owner[1], True) for copy in self._at(host, copies)), None)
