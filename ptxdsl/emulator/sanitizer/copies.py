"""Incomplete copies: what ``cp.async`` writes counts as unwritten until its thread has waited for it.

The emulator copies at once, so a missing wait would change no result; on a GPU it does.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from ...ir import Immediate, Instruction
from ..runtime.block_state import BlockState
from ..machine.shadow import UNWRITTEN
from .happens_before import Thread
from .report import Reporter
from .shadow_memory import WORD_BYTES, ShadowMemory

__all__ = ["Copies"]

MOST = 1 << 16
"""Copies of a launch that are followed: each takes Python a while."""


class _Copy(NamedTuple):
    """``words``: the shadow words that its granules had before, which they get back once it is complete."""

    group: int
    host: int
    place: int
    words: tuple[int, ...]


class Copies:
    """The copies of all threads of a launch."""

    def __init__(self, memory: ShadowMemory, reporter: Reporter) -> None:
        self.memory, self.reporter = memory, reporter
        self.pending: dict[tuple[int, Thread], list[_Copy]] = {}
        self.groups: dict[tuple[int, Thread], int] = {}
        self.by_host = reporter.copies
        self.blocks: dict[int, int] = {}
        self.count = 0

    def begin(self, state: BlockState, thread: Thread, statement: Instruction, host: int) -> None:
        """A thread begins a copy to a host address of shared memory."""
        self.count += 1
        if self.count > MOST:
            if self.count == MOST + 1:
                self.reporter.incomplete(state, state.code.graph.statements.index(statement))
            return
        key, granule, region = (state.block, thread), self.memory.granule, self.memory.shared_region(state)
        assert region is not None
        size = next(o for o, spec in zip(statement.operands, statement.form.operands) if spec.name == "size")
        if self.blocks.get(state.address) != state.block:
            self.blocks[state.address] = state.block
            for gone in [place for place in self.by_host if region.holds(place)]:
                del self.by_host[gone]
        place = region.words + (host - region.low >> granule) * WORD_BYTES
        count = (size.bits if isinstance(size, Immediate) else 4) >> granule
        words = tuple(int.from_bytes(ctypes.string_at(place + WORD_BYTES * n, 8), "little") for n in range(count))
        unwritten = UNWRITTEN if self.memory.launch.spaces.cluster not in (None, (1, 1, 1)) else 0
        for number in range(count):
            self._put(place, number, unwritten)
            self.by_host[host + (number << granule)] = thread
        self.pending.setdefault(key, []).append(_Copy(self.groups.get(key, 0), host, place, words))

    @staticmethod
    def _put(place: int, number: int, word: int) -> None:
        ctypes.memmove(place + WORD_BYTES * number, word.to_bytes(8, "little"), 8)

    def synchronise(self, state: BlockState, threads: list[Thread], statement: Instruction) -> None:
        """Threads commit a group, or wait; an arrival at an mbarrier comes when all copies so far are complete."""
        effects, operands = statement.form.effects, statement.operands
        left = operands[0] if effects.waits == "async_group" and operands else None
        for thread in threads:
            key = state.block, thread
            current = self.groups.get(key, 0)
            if effects.commits == "async_group":
                self.groups[key] = current + 1
                continue
            pending = self.pending.get(key, [])
            first = current - left.bits if isinstance(left, Immediate) else current + 1
            self.pending[key] = [copy for copy in pending if copy.group >= first]
            for copy in pending:
                if copy.group < first:
                    self._complete(copy)

    def _complete(self, copy: _Copy) -> None:
        for number, word in enumerate(copy.words):
            if self.by_host.pop(copy.host + (number << self.memory.granule), None) is not None:
                self._put(copy.place, number, word)  # a granule that was reported counts as written from then on
