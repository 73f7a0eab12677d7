"""Incomplete copies: shared memory that an asynchronous copy writes counts as unwritten until a thread has waited.

For ``cp.async`` that is the thread that copies; for a bulk copy any thread, at the mbarrier that counts its bytes. What
the bulk copies of a group access is ordered with nothing until their thread has waited for the group. The emulator
copies at once, so a missing wait would change no result; on a GPU it does.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from ...ir import Immediate, Instruction
from ..machine.layout import Mbarrier
from ..machine.shadow import PENDING, UNWRITTEN, Plane, WarpClock
from ..runtime.block_state import BlockState
from .barriers import operand_value
from .happens_before import Thread
from .report import Copier, Reporter
from .shadow_memory import WORD_BYTES, ShadowMemory

__all__ = ["Copies"]

MOST = 1 << 16
"""Copies of a launch that are followed: each takes Python a while."""
_Owner = tuple[int, Thread]
"""Number of a block, and a thread of it."""


class _Copy(NamedTuple):
    """``words`` are the shadow words that its granules had before: they get them back once it is complete."""

    state: int
    owner: _Owner
    group: int
    host: int
    words: np.ndarray[Any, Any]
    before: np.ndarray[Any, Any]
    bulk: bool


class _Pending(NamedTuple):
    """One end of a bulk copy of a group; ``before`` are its shadow words as of an access that is complete."""

    state: BlockState
    owner: _Owner
    group: int
    reads: bool
    host: int
    words: np.ndarray[Any, Any]
    before: np.ndarray[Any, Any]


class Copies:
    """The copies of all threads of a launch."""

    def __init__(self, memory: ShadowMemory, reporter: Reporter) -> None:
        self.memory, self.reporter = memory, reporter
        self.groups: dict[_Owner, int] = {}
        self.pending: dict[_Owner, list[_Copy]] = {}
        self.counted: dict[int, list[tuple[int, _Copy]]] = {}
        """By the host address of an mbarrier: bulk copies, each with the parity of the phase that counts it."""
        self.bulk_groups: dict[_Owner, int] = {}
        self.grouped: dict[_Owner, list[_Pending]] = {}
        self.blocks: dict[int, int] = {}
        self.count = 0
        reporter.copier = self.copier

    def begin(self, state: BlockState, thread: Thread, statement: Instruction, host: int) -> None:
        """A thread begins a copy to a host address of shared memory."""
        words = self._words(state, thread, statement, host, 0)
        if words is None:
            return
        self._forget(state)
        bulk = statement.form.effects.completes == "mbarrier"
        owner = state.block, thread
        copy = _Copy(state.address, owner, self.groups.get(owner, 0), host, words, words.copy(), bulk)
        words[:] = self._marker
        self.pending.setdefault(owner, []).append(copy)

    def _words(
        self, state: BlockState, thread: Thread, statement: Instruction, host: int, plane: int
    ) -> np.ndarray[Any, Any] | None:
        """The shadow words of what a copy accesses from a host address on; None where it is not followed."""
        self.count += 1
        if self.count > MOST:
            if self.count == MOST + 1:
                self.reporter.incomplete(state, state.code.graph.statements.index(statement))
            return None
        size = next(o for o, spec in zip(statement.operands, statement.form.operands) if spec.name == "size")
        nbytes = operand_value(state, thread[0], size, thread[1])
        region = self.memory.region_at(host)
        if region is None or nbytes <= 0:
            return None
        place = region.words + plane * region.stride + (host - region.low >> self.memory.granule) * WORD_BYTES
        return np.ctypeslib.as_array((ctypes.c_uint64 * (nbytes >> self.memory.granule)).from_address(place))

    # Bulk copies of groups

    def begin_bulk(self, state: BlockState, thread: Thread, statement: Instruction, host: int, operand: int) -> None:
        """A thread begins a bulk copy; the operand is its destination (0) or source (1)."""
        reads = operand == 1
        words = self._words(state, thread, statement, host, Plane.READER if reads else Plane.WRITER)
        if words is None:
            return
        owner = state.block, thread
        group = self.bulk_groups.get(owner, 0)
        self.grouped.setdefault(owner, []).append(_Pending(state, owner, group, reads, host, words, words.copy()))
        words |= PENDING

    def bulk_group(self, state: BlockState, threads: list[Thread], statement: Instruction) -> None:
        """Threads commit a group, or wait until at most the last few are incomplete, or have not read their sources."""
        for thread in threads:
            owner = state.block, thread
            current = self.bulk_groups.get(owner, 0)
            if statement.form.effects.commits:
                self.bulk_groups[owner] = current + 1
                continue
            first = current - operand_value(state, thread[0], statement.operands[0], thread[1])
            kept = []
            for pending in self.grouped.get(owner, []):
                if pending.group >= first or ("read" in statement.form.tokens and not pending.reads):
                    kept.append(pending)
                else:
                    self._complete_bulk(pending)
            self.grouped[owner] = kept

    def _complete_bulk(self, pending: _Pending) -> None:
        """Its accesses happen before what its thread does from now on."""
        state, (_, (warp, _)) = pending.state, pending.owner
        epoch = self.memory.clock(state, warp, WarpClock.EPOCH) & PENDING
        done = pending.before & ~np.uint64(PENDING) | np.uint64(epoch)
        np.copyto(pending.words, done, where=pending.words == pending.before | np.uint64(PENDING))

    def pending_at(self, host: int) -> tuple[int, int, int] | None:
        """Block, warp and lane of the bulk copy of a group that accesses a host address, if it is still pending."""
        for pending in [each for grouped in self.grouped.values() for each in grouped]:
            number = host - pending.host >> self.memory.granule
            shared = self.memory.shared_region_at(host) is not None
            if 0 <= number < pending.words.size and (not shared or pending.state.block == pending.owner[0]):
                return pending.owner[0], *pending.owner[1]
        return None

    # Copies that mbarriers count

    @property
    def _marker(self) -> int:
        """The shadow word of memory that nobody has written."""
        return UNWRITTEN if self.memory.clustered else 0

    def _forget(self, state: BlockState) -> None:
        """Drop the copies of the block that a state ran before."""
        if self.blocks.get(state.address) == state.block:
            return
        self.blocks[state.address] = state.block
        for owner, copies in list(self.pending.items()):
            self.pending[owner] = [copy for copy in copies if copy.state != state.address]
        for host, counted in list(self.counted.items()):
            self.counted[host] = [(parity, copy) for parity, copy in counted if copy.state != state.address]

    def copier(self, host: int) -> Copier | None:
        """Who has begun the copy to a granule and not waited for it, if the granule is still as that has left it."""
        copies = [copy for copies in self.pending.values() for copy in copies]
        copies += [copy for counted in self.counted.values() for _, copy in counted]
        for copy in copies:
            number = host - copy.host >> self.memory.granule
            if 0 <= number < copy.words.size:
                return Copier(copy.owner[1], copy.bulk)
        return None

    def synchronise(self, state: BlockState, threads: list[Thread], statement: Instruction) -> None:
        """Threads commit a group, or wait; an arrival at an mbarrier comes when all copies so far are complete."""
        effects, operands = statement.form.effects, statement.operands
        left = operands[0] if effects.waits == "async_group" and operands else None
        for thread in threads:
            owner = state.block, thread
            current = self.groups.get(owner, 0)
            if effects.commits == "async_group":
                self.groups[owner] = current + 1
                continue
            pending = self.pending.get(owner, [])
            first = current - left.bits if isinstance(left, Immediate) else current + 1
            self.pending[owner] = [copy for copy in pending if copy.bulk or copy.group >= first]
            for copy in pending:
                if not copy.bulk and copy.group < first:
                    self._complete(copy)

    def mbarrier(self, state: BlockState, thread: Thread, statement: Instruction, host: int) -> None:
        """Before an operation on the mbarrier at a host address: bytes are counted, or a thread waits."""
        what, owner = statement.form.tokens[0], (state.block, thread)
        parity = int.from_bytes(ctypes.string_at(host, 8), "little") >> Mbarrier.PARITY & 1
        if what == "init":
            self.counted.pop(host, None)
        elif what == "complete_tx":
            pending = self.pending.get(owner, [])
            self.pending[owner] = [copy for copy in pending if not copy.bulk]
            self.counted.setdefault(host, []).extend((parity, copy) for copy in pending if copy.bulk)
        elif statement.form.effects.waits and host in self.counted:
            counted = self.counted[host]
            last = max((number for number, (phase, _) in enumerate(counted) if phase != parity), default=-1)
            for _, copy in counted[: last + 1]:
                self._complete(copy)
            del counted[: last + 1]

    def _complete(self, copy: _Copy) -> None:
        """Give granules their words back, but for those that have been written, or reported, since."""
        np.copyto(copy.words, copy.before, where=copy.words == self._marker)
