"""Copies that are not complete: what ``cp.async`` writes counts as unwritten until its thread has waited for it.

The emulator copies at once, so a wait that is missing would show in no result; on a GPU it does.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, NamedTuple

from ...ir import Instruction
from ..machine.shadow import UNWRITTEN
from .happens_before import Thread

if TYPE_CHECKING:
    from ..machine.block_state import State
    from .sanitizer import Sanitizer

__all__ = ["Copies"]

MOST = 1 << 16
"""Copies of a launch that are followed: each takes Python a while."""


class _Copy(NamedTuple):
    group: int
    host: int
    place: int
    tags: tuple[int, ...]
    """What its pieces had for tags: they get them back."""


class Copies:
    """The copies of all threads of a launch, by the state that runs their block."""

    def __init__(self, sanitizer: Sanitizer) -> None:
        self.sanitizer = sanitizer
        self.pending: dict[tuple[int, Thread], list[_Copy]] = {}
        self.groups: dict[tuple[int, Thread], int] = {}
        self.by_host: dict[int, Thread] = {}
        self.blocks: dict[int, int] = {}
        self.count = 0

    def begin(self, state: State, thread: Thread, statement: Instruction, host: int) -> None:
        """A thread has begun a copy to shared memory."""
        self.count += 1
        if self.count > MOST:
            if self.count == MOST + 1:
                self.sanitizer.reporter.incomplete(state, state.code.graph.statements.index(statement))
            return
        key, grain = (state.block, thread), self.sanitizer.grain
        size = next(o for o, spec in zip(statement.operands, statement.form.operands) if spec.name == "size")
        low, nbytes, start, _, _ = next(region for region in self.sanitizer.owned[state.address] if region[4] == 1)
        if self.blocks.get(state.address) != state.block:
            self.blocks[state.address] = state.block
            for gone in [place for place in self.by_host if low <= place < low + nbytes]:
                del self.by_host[gone]
        place, pieces = start + (host - low >> grain) * 8, getattr(size, "bits", 4) >> grain
        tags = tuple(int.from_bytes(ctypes.string_at(place + 8 * piece, 8), "little") for piece in range(pieces))
        self._fill(place, pieces, UNWRITTEN if self.sanitizer.launch.spaces.cluster not in (None, (1, 1, 1)) else 0)
        copy = _Copy(self.groups.get(key, 0), host, place, tags)
        self.pending.setdefault(key, []).append(copy)
        for piece in range(pieces):
            self.by_host[host + (piece << grain)] = thread

    @staticmethod
    def _fill(place: int, pieces: int, tag: int) -> None:
        for piece in range(pieces):
            ctypes.memmove(place + 8 * piece, tag.to_bytes(8, "little"), 8)

    def note(self, state: State, threads: list[Thread], statement: Instruction) -> None:
        """Threads close their group, or wait; an arrival at an mbarrier comes when all copies so far are complete."""
        what, operands = statement.form.semantics, statement.operands
        left = operands[0].bits if what == "cp_async_wait" and operands else None  # type: ignore[union-attr]
        for thread in threads:
            key = state.block, thread
            done = self.groups.get(key, 0)
            if what == "cp_async_commit":
                self.groups[key] = done + 1
                continue
            mine = self.pending.get(key, [])
            kept = [copy for copy in mine if left is not None and copy.group >= done - left]
            for copy in mine:
                for piece, tag in enumerate(copy.tags) if copy not in kept else ():
                    if self.by_host.pop(copy.host + (piece << self.sanitizer.grain), None) is not None:
                        self._fill(copy.place + 8 * piece, 1, tag)  # what has been told of is fine from now on
            self.pending[key] = kept
