"""Accesses to shared memory that complete later, where Python keeps the order of threads: in clusters above all.

The rules are those of :mod:`.proxy_instrumentation`, over all blocks of a cluster: an access by a bulk or tensor copy,
by wgmma or tcgen05 happens where it is issued, and is over for a thread that has waited for what completes it, or that
comes after such a thread. So is what st.async and red.async store, which the generic proxy does. What the generic proxy
has written is seen by the async one if a proxy fence of any thread of the cluster stands between. An mbarrier that is
completed from another block has to be fenced, beside the barrier of the cluster.

The shadow word of such an access names a record here in place of an epoch, so that compiled checks leave it to Python,
which has the vector clocks of all threads. Of fences and phases the last few are known; what is older counts as
ordered. Each granule keeps its last write and the last two reads. Tensor memory and global memory are not followed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..machine.allocation import number_at
from ..machine.proxy_shadow import ASYNC, OBJECT_SHIFT, Kinds, Objects
from ..machine.shadow import (
    EPOCH_SHIFT, LANE, LAST_STATEMENT, PENDING, SEVERAL_LANES, STATEMENT_SHIFT, STRENGTH_SHIFT, TICKET_SHIFT, UNWRITTEN,
    WARP, WARP_SHIFT, Plane, Reason, Shadow, statement_bits,
)
from ..runtime.block_state import BlockState
from .clocks import Clocks
from .happens_before import BlockOrder, Clock, Thread, join

__all__ = ["AsyncAccesses", "Completion", "Issue", "Knows", "Seen", "Wrong", "words_of"]

_KEPT = 4
"""The last phases or groups of which it is known who has seen them complete."""
_FENCES = 16
"""The last fences of a warp."""
_RECORDS = 1 << 16
_WHO = 0xFFFFFFFF << EPOCH_SHIFT | LAST_STATEMENT << STATEMENT_SHIFT | SEVERAL_LANES | WARP
_PLANES = ((Plane.READER, Reason.READER), (Plane.EARLIER_READER, Reason.EARLIER_READER))
Who = tuple[int, int, int]
"""Block, warp and lane."""


class Seen(NamedTuple):
    """Lanes of a warp that have waited for something, or executed a fence, in an epoch."""

    block: int
    warp: int
    mask: int
    epoch: int


@dataclass(eq=False)
class Completion:
    """What completes accesses: an mbarrier, the groups of a warp or of a thread. Generations are its phases, or groups.

    ``seen`` has for each generation that is complete who has waited for it; those before ``done`` are.
    """

    object: int
    generation: int = 0
    done: int = 0
    seen: dict[int, list[Seen]] = field(default_factory=dict)

    def advance(self) -> None:
        """The current phase, or group, has ended."""
        self.generation += 1
        if self.object < Objects.WARPGROUP:
            self._complete(self.generation)

    def _complete(self, done: int) -> None:
        self.done = max(self.done, done)
        for old in [each for each in self.seen if each < self.done - _KEPT]:
            del self.seen[old]

    def waited(self, generation: int, who: Seen) -> None:
        """Lanes have waited for a generation, and so for those before it."""
        self._complete(generation + 1)
        found = self.seen.setdefault(generation, [])
        for number, known in enumerate(found):
            if known[:2] == who[:2]:
                if not who.mask & ~known.mask:
                    return
                if known.epoch == who.epoch:
                    found[number] = known._replace(mask=known.mask | who.mask)
                    return
        found.append(who)

    def over(self, generation: int, knows: Knows) -> bool:
        """Whether a generation is complete, for threads that know so much."""
        if generation < self.done - _KEPT:
            return True
        later = (each for number, found in self.seen.items() if number >= generation for each in found)
        return any(knows.any_of(each) for each in later)


class Knows:
    """What threads of a warp know when they execute an instruction, together or ``each`` for itself."""

    def __init__(
        self, block: BlockOrder, warp: int, lanes: list[int], own: Clock, epoch: int, each: bool = False
    ) -> None:
        self.block, self.warp, self.own, self.epoch = block.block, warp, own, epoch
        self.acquired = list({id(clock): clock for clock in (block.clock((warp, lane)) for lane in lanes)}.values())
        self.mask, self.each = sum(1 << lane for lane in lanes), each

    def all_of(self, who: Seen) -> bool:
        """Whether what all these lanes did in their epoch happens before."""
        block, warp, mask, epoch = who
        if (block, warp) == (self.block, self.warp) and not mask & ~self.mask and epoch <= self.epoch:
            return True
        return any(_covers(clock, who) for clock in (self.own, *self.acquired)) or (
            bool(mask & mask - 1) and _covers(join(self.own, *self.acquired), who)
        )

    def by_barrier(self, who: Seen) -> bool:
        """Whether what a lane did happens before by more than the order of its own program."""
        own = {key: epoch for key, epoch in self.own.items() if type(key) is not tuple or len(key) < len(who) - 1}
        return any(_covers(clock, who) for clock in (own, *self.acquired))

    def any_of(self, who: Seen) -> bool:
        """Whether what one of these lanes did happens before."""
        block, warp, mask, epoch = who
        own = not self.mask & ~mask if self.each else bool(mask & self.mask)
        if own and (block, warp) == (self.block, self.warp) and epoch <= self.epoch:
            return True
        if self.each:
            return all(_covers_one(clock, who) for clock in self.acquired) or _covers_one(self.own, who)
        return any(_covers_one(clock, who) for clock in (self.own, *self.acquired))


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _covers_one(clock: Clock, who: Seen) -> bool:
    block, warp, mask, epoch = who
    if clock.get(block, 0) >= epoch or clock.get((block, warp), 0) >= epoch:
        return True
    return any(clock.get((block, warp, lane), 0) >= epoch for lane in _bits(mask))


def _covers(clock: Clock, who: Seen) -> bool:
    block, warp, mask, epoch = who
    if clock.get(block, 0) >= epoch or clock.get((block, warp), 0) >= epoch:
        return True
    return all(clock.get((block, warp, lane), 0) >= epoch for lane in _bits(mask))


class _Fence(NamedTuple):
    """A fence between proxies: by whom, and what they knew then."""

    who: Seen
    kinds: int
    knows: Knows


@dataclass(eq=False)
class Issue:
    """One access, or several of one instruction: what completes it, once that is known."""

    owner: Who
    region: BlockState
    block: int
    ends: list[tuple[Completion, int]]
    object: int
    level: int

    def shown(self, word: int) -> int:
        """Its shadow word as compiled checks would have it."""
        return (word & (1 << EPOCH_SHIFT) - 1) | ASYNC | self.object << OBJECT_SHIFT


class Wrong(NamedTuple):
    """An access before that another one should not meet: why, its shadow word and thread, where, and which plane."""

    reason: int
    word: int
    other: Who
    host: int
    plane: int


class AsyncAccesses:
    """Those of a launch."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks, self.memory = clocks, clocks.memory
        self.records: dict[int, Issue] = {}
        self._number = 0
        self._fences: dict[tuple[int, int], deque[_Fence]] = {}
        self._forgotten: dict[tuple[int, int], int] = {}
        """The epoch of the last fence of a warp that is no longer known."""
        self._fenced: set[Any] = set()

    # Who executes something

    def knows(
        self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int], each: bool = False
    ) -> Knows:
        own, clock = self.clocks.of_warp(state, warp), {}
        for lane in lanes[: 1 if each else None]:
            clock.update(self.clocks.own(block, (warp, lane), *own))
        if each:
            del clock[block.block, warp, lanes[0]]
        return Knows(block, warp, lanes, clock, own[0] >> EPOCH_SHIFT, each)

    def fence(self, knows: Knows, kinds: int) -> None:
        """Lanes of a warp execute a fence between proxies."""
        key = knows.block, knows.warp
        kept = self._fences.setdefault(key, deque())
        kept.append(_Fence(Seen(*key, knows.mask, knows.epoch), kinds, knows))
        if len(kept) > _FENCES:
            self._forgotten[key] = kept.popleft().who.epoch

    def fenced(self, writer: Seen, knows: Knows, kinds: int) -> bool:
        """Whether a fence stands between what lanes wrote and what threads do that know so much."""
        key = writer, knows.block, knows.warp, knows.mask, kinds
        if key in self._fenced:
            return True
        near = (writer[:2], (knows.block, knows.warp))
        warps = [*near, *(each for each in self._fences if each not in near)]
        found = any(
            fence.kinds & kinds and fence.who.epoch >= writer.epoch and knows.any_of(fence.who)
            and fence.knows.all_of(writer)
            for warp in warps for fence in reversed(self._fences.get(warp, ()))
        ) or any(epoch >= writer.epoch for epoch in self._forgotten.values())
        if found:
            if len(self._fenced) > _RECORDS:
                self._fenced.clear()
            self._fenced.add(key)
        return found

    # Accesses

    def issue(
        self, state: BlockState, target: BlockState, thread: Thread, place: int, object_: int, level: int = 0
    ) -> tuple[int, Issue]:
        """A new record, and the shadow word of its accesses, which are strong to a ``level``."""
        if len(self.records) > _RECORDS:
            for number in list(self.records)[: _RECORDS // 2]:
                del self.records[number]
        self._number += 1
        self.memory.copied = True
        owner = self.memory.block_of(state), *thread
        made = Issue(owner, target, self.memory.block_of(target), [], object_, level)
        self.records[self._number] = made
        who = thread[0] << WARP_SHIFT | thread[1] | level << STRENGTH_SHIFT
        return ASYNC | self._number << EPOCH_SHIFT | statement_bits(place) | who, made

    def record(self, word: int) -> Issue | None:
        """The record of a shadow word; None where it is of no block that runs."""
        found = self.records.get(word >> EPOCH_SHIFT & 0x7FFFFFFF)
        if found is None or self.memory.block_of(found.region) != found.block:
            return None
        return found

    def over(self, word: int, knows: Knows) -> bool:
        """Whether the access of a shadow word is complete, for threads that know so much."""
        issue = self.record(word)
        return issue is None or any(end.over(generation, knows) for end, generation in issue.ends)

    def check(
        self, target: BlockState, pieces: list[tuple[int, int]], mine: int, knows: Knows, writes: bool, proxy: bool,
        init: bool,
    ) -> list[Wrong]:
        """Check an access to so many bytes from each of some host addresses, and note it as the word ``mine``.

        ``proxy``: it is by the async proxy. What is wrong is so no longer.
        """
        region = self.memory.shared_region(target)
        wrong: list[Wrong] = []
        if region is None:
            return wrong
        base = self.memory.get(target, Shadow.BASE) if not self.memory.clustered else 0
        judge = _Judge(self, knows, proxy, base)
        for host, nbytes in _merged(pieces):
            nbytes = min(nbytes, region.low + region.nbytes - host)
            if host < region.low or nbytes <= 0:
                continue
            count = -(-nbytes >> self.memory.granule)
            planes = {plane: self.memory.words(region, host, count, plane) for plane in (0, 1, 2)}
            writer = planes[Plane.WRITER]
            if self.memory.copies and not writes:
                wrong += self._incomplete(target, self.memory.words(region, host, count, Plane.COPY), host)
            if init and not writes:
                limit = base or UNWRITTEN
                missing = writer < limit if base else writer == limit
                if missing.any():
                    at = int(np.argmax(missing))
                    wrong.append(Wrong(
                        Reason.UNINITIALISED, int(writer[at]), (0, 0, 0), host + (at << self.memory.granule), 0
                    ))
                    writer[missing] = base
            for plane, reason in _PLANES if writes else ():
                wrong += judge.plane(planes[plane], host, plane, reason, self.memory.granule)
            wrong += judge.plane(writer, host, Plane.WRITER, Reason.WRITER, self.memory.granule)
            if writes:
                writer[:] = mine
            elif mine:
                reader = planes[Plane.READER]
                keep = np.zeros(count, bool)
                for word in words_of(reader):
                    if not judge.gone(word) and not self._same(word, mine):
                        keep |= reader == np.uint64(word)
                np.copyto(planes[Plane.EARLIER_READER], reader, where=keep)
                reader[:] = mine
        return wrong

    def _incomplete(self, target: BlockState, words: Any, host: int) -> list[Wrong]:
        """What a ``cp.async`` has written that its thread has not waited for."""
        clocks, size = (self.memory.get(target, each) for each in (Shadow.COPY_CLOCKS, Shadow.COPY_BYTES))
        found = []
        for word in words_of(words):
            warp, lane = (word & WARP) >> WARP_SHIFT, word & LANE
            if word and word >> TICKET_SHIFT >= number_at(clocks + warp * size + 4 * lane, 4):
                at = host + (int(np.argmax(words == np.uint64(word))) << self.memory.granule)
                found.append(Wrong(Reason.INCOMPLETE_COPY, word, (0, 0, 0), at, Plane.COPY))
                words[words == np.uint64(word)] = 0
        return found

    def _same(self, word: int, mine: int) -> bool:
        """Whether two accesses are completed by the same."""
        one, other = (self.record(each) if ASYNC <= each < PENDING else None for each in (word, mine))
        return one is not None and other is not None and bool(one.ends) and one.ends == other.ends


def _merged(pieces: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes, pieces that follow each other as one: the rows of a tile mostly do."""
    found: list[tuple[int, int]] = []
    for host, nbytes in sorted(pieces):
        if found and found[-1][0] + found[-1][1] == host:
            found[-1] = found[-1][0], found[-1][1] + nbytes
        else:
            found.append((host, nbytes))
    return found


def words_of(words: Any) -> list[int]:
    """The words that there are, each once."""
    changes = np.flatnonzero(words[1:] != words[:-1]) + 1
    return list(dict.fromkeys(words[np.append(0, changes)].tolist()))


class _Judge:
    """Judges the accesses before one."""

    def __init__(self, accesses: AsyncAccesses, knows: Knows, proxy: bool, base: int) -> None:
        self.accesses, self.knows, self.proxy = accesses, knows, proxy
        self.base = base or accesses.memory.first_epoch << EPOCH_SHIFT
        self._gone: dict[int, bool] = {}

    def who(self, word: int, mask: int) -> Seen:
        block, warp, _ = self.accesses.memory.thread_of(word)
        return Seen(block, warp, mask, word >> EPOCH_SHIFT)

    def gone(self, word: int) -> bool:
        """Whether an access before is over, or happens before this one."""
        found = self._gone.get(word)
        if found is None:
            found = self._gone[word] = self._is_gone(word)
        return found

    def _is_gone(self, word: int) -> bool:
        if ASYNC <= word < PENDING:
            return self.accesses.over(word, self.knows)
        if word >= PENDING:
            return False
        mask = 0xFFFFFFFF if word & SEVERAL_LANES else 1 << (word & LANE)
        return word < self.base or self.knows.all_of(self.who(word, mask))

    def plane(self, words: Any, host: int, plane: int, reason: int, granule: int) -> list[Wrong]:
        """What is wrong with the words of a plane, which are cleared then; lanes of one warp are judged together."""
        groups: dict[int, list[int]] = {}
        for word in words_of(words):
            if ASYNC <= word < PENDING:
                groups[word] = [word]
            elif word >= self.base and word < ASYNC:
                groups.setdefault(word & _WHO, []).append(word)
        wrong: list[Wrong] = []
        for group in groups.values():
            bad = self._wrong(group, reason, plane)
            for word, why in bad[:1]:
                other = self.accesses.memory.thread_of(word)
                issue = self.accesses.record(word) if word >= ASYNC else None
                at = host + (int(np.argmax(words == np.uint64(word))) << granule)
                shown = word if issue is None else issue.shown(word)
                wrong.append(Wrong(why, shown, other if issue is None else issue.owner, at, plane))
            for word, _ in bad:
                words[words == np.uint64(word)] = 0
        return wrong

    def _wrong(self, group: list[int], reason: int, plane: int) -> list[tuple[int, int]]:
        if group[0] >= ASYNC:
            return [] if self.gone(group[0]) else [(group[0], reason)]
        fences = self.proxy and plane == Plane.WRITER
        mask = 0xFFFFFFFF if group[0] & SEVERAL_LANES else sum(1 << (word & LANE) for word in group)
        whole = self.who(group[0], mask)
        if self.knows.all_of(whole) and not (fences and not self._fenced(whole)):
            return []
        found = []
        for word in group:
            who = self.who(word, mask if word & SEVERAL_LANES else 1 << (word & LANE))
            if not self.knows.all_of(who):
                found.append((word, reason))
            elif fences and not self._fenced(who):
                found.append((word, int(Reason.UNFENCED)))
        return found

    def _fenced(self, who: Seen) -> bool:
        return self.accesses.fenced(who, self.knows, Kinds.SHARED)
