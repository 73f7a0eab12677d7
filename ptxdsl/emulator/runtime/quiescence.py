"""Whether blocks that wait for each other wait for ever.

Compiled code is deterministic: if everything is as it was some rounds before, when every block had a time slice, then
nothing will ever change. Where warps run in a random order, it is enough that nothing changes for many rounds.

Threads that wait may read a clock. It stands still while states are compared, and goes on before the next time; that
nothing else changes for a second is the end, since no kernel waits that long for its own timeout.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter

from ..codegen.code import Code
from ..machine.layout import Block
from .block_state import BlockState, LaunchState

__all__ = ["Quiescence", "digest"]

FIRST, ROUNDS = 32, 80
"""Rounds without the end of a block before the first comparison, then doubled, and how many to compare: more than
twice the warps of a block, since each time another one may run, and each has to see a clock stand still first."""
READ_AGAIN = 2
"""Rounds after which one that reads a clock may have seen it stand still. What is compared with is that after so many
rounds, then after twice as many and so on, since there may be many that do."""
RANDOM_ROUNDS = 64
"""Rounds in which nothing must change where warps run in a random order: a warp that would change something may not
have run."""
SECONDS = 1.0
"""How long nothing but clocks must change."""


class Quiescence:
    """Counts rounds without the end of a block, and compares what there was after them."""

    def __init__(self, random: bool) -> None:
        self.random = random
        self.slices, self.rounds, self.first, self.since, self.same = 0, 0, FIRST, 0, 0
        self.stopped = False
        """Whether the clocks stand still."""
        self.still = 0.0
        """When nothing but clocks had changed for the first time."""
        self.seen = b""
        """What to compare with; empty where it is not yet time to."""

    def slice_over(self, states: int) -> bool:
        """A block state has had a time slice; whether all have had one, and it is time to compare."""
        self.slices += 1
        if self.slices < states:
            return False
        self.slices, self.rounds = 0, self.rounds + 1
        return self.rounds >= self.first

    def reached(self, now: bytes) -> bool:
        """Whether nothing will ever change, since ``now`` everything is as it was."""
        self.same = self.same + 1 if now == self.seen else 0
        if self.same >= (RANDOM_ROUNDS if self.random else 1):
            return True
        if not self.stopped:
            self.stopped, self.since = True, self.rounds
            return False
        spent = self.rounds - self.since
        if spent >= ROUNDS and not self.same:
            self.first, self.seen, self.stopped, self.still = 2 * self.rounds, b"", False, 0.0
        elif spent >= READ_AGAIN and (self.random or spent & spent - 1 == 0):
            self.seen = now
        return False

    def certain(self, code: Code) -> bool:
        """Whether that is the end, and no thread waits for a time to come."""
        from ..instructions.data import ReadClock

        if ReadClock not in code.notes:
            code.notes[ReadClock] = any(isinstance(placed.op, ReadClock) for placed in code.micro_ops)
        self.still = self.still or perf_counter()
        if not code.notes[ReadClock] or perf_counter() - self.still >= SECONDS:
            return True
        self.first, self.seen, self.same, self.stopped = self.rounds + FIRST, b"", 0, False
        return False


def digest(launch: LaunchState, states: Iterable[BlockState], further: bytes = b"") -> bytes:
    """A digest of all that the threads of these states can read."""
    from hashlib import blake2b

    found = blake2b(further, digest_size=16)
    for state in sorted(states, key=lambda state: state.address):
        state.digest(found)
        if launch.config.seed is None:  # a time slice may be over before every warp had its own
            found.update(bytes([state.get(Block.CURRENT, "B")]))
    launch.digest(found)
    return found.digest()
