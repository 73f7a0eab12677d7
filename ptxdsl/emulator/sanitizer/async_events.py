"""What threads do about accesses that complete later, where Python keeps their order: each event, as it is reported.

A copy is reported with what it accesses in shared memory, then with its mbarrier; st.async and red.async are the store
or reduction and the count of bytes that stand for them. Products are reported warp by warp, and so are groups.
"""

from __future__ import annotations

from typing import Any

from ...ir import Address, Instruction
from ...isa import Form
from ...isa.matrix_descriptors import ADDRESS, BASE_OFFSET, LEADING, SPANS, STRIDE, SWIZZLE
from ..instructions.tensor_cores.wgmma import ROWS, WARPS, tiles_of
from ..machine.layout import LANES, SHARED_START, Block, Cluster, Warp
from ..machine.proxy_shadow import Kinds, Objects
from ..machine.shadow import EPOCH_SHIFT, Plane, Reason
from ..rewrite.builder import CommitArrival, CountedStore
from ..runtime.block_state import BlockState
from .accesses import checked_access, fence_kinds, operand_value, strength
from .async_accesses import AsyncAccesses, Completion, Issue, Knows, Wrong, Seen
from .clocks import Clocks
from .core_tiles import pieces_of
from .happens_before import BlockOrder, Thread
from .proxy_report import ProxyReporter

__all__ = ["AsyncEvents"]

_PIECE = 16
MOST_ISSUED = 64
"""What a thread has issued before its last commit, of which later commits are followed too."""


class AsyncEvents:
    """Those of a launch; ``init``: what is read must have been written."""

    def __init__(self, clocks: Clocks, reporter: ProxyReporter, init: bool) -> None:
        self.accesses, self.clocks, self.memory = AsyncAccesses(clocks), clocks, clocks.memory
        self.reporter, self.init = reporter, init
        self._begun: dict[tuple[int, Thread], list[Issue]] = {}
        """Copies of a thread whose mbarrier is reported next."""
        self._issued: dict[tuple[int, Thread], list[Issue]] = {}
        """What a thread has issued to the tensor core since its last commit."""
        self._groups: dict[tuple[int, Any], Completion] = {}
        """The groups of a thread, and of a warp."""
        self._sources: dict[tuple[int, Thread], tuple[int, int]] = {}
        """The last copy of a thread's groups from shared memory: its shadow word, and from where."""

    def _knows(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int]) -> Knows:
        return self.accesses.knows(state, block, warp, lanes)

    def _completion(self, block: int, of: Any, object_: int) -> Completion:
        return self._groups.setdefault((block, of), Completion(object_))

    def holder(self, host: int, state: BlockState) -> BlockState:
        """The block in whose shared memory a host address lies."""
        return self.reporter.reporter.holder(state, host)

    def _note(self, state: BlockState, thread: Thread, wrong: list[Wrong]) -> None:
        pc = state.get(Block.FAULT_PC, "Q")
        for each in wrong[:1]:
            generic = each.reason in (Reason.READER, Reason.EARLIER_READER, Reason.WRITER) and not each.word >> 63
            if generic or each.reason in (Reason.UNINITIALISED, Reason.INCOMPLETE_COPY):
                self.reporter.reporter.note(state, pc, thread, each.reason, each.word, each.other, each.host)
            else:
                self.reporter.note(state, pc, thread, each.reason, each.word, each.other, each.host)

    # Copies

    def copy(self, state: BlockState, block: BlockOrder, thread: Thread, place: int, host: int, writes: bool) -> None:
        """A thread begins a copy to a host address, or from it."""
        statement: Any = state.code.graph.statements[place]
        nbytes, of_thread = state.get(Block.EXTENTS + 8 * thread[1], "Q"), (
            statement.form.effects.completes == "bulk_group"
        )
        target, object_ = self.holder(host, state), Objects.THREAD if of_thread else 0
        word, issue = self.accesses.issue(state, target, thread, place, object_)
        if of_thread:
            groups = self._completion(block.block, thread, object_)
            issue.ends.append((groups, groups.generation))
        else:
            self._begun.setdefault((block.block, thread), []).append(issue)
        knows = self._knows(state, block, thread[0], [thread[1]])
        if of_thread and not writes:
            self._sources[block.block, thread] = word, host
        wrong = self.accesses.check(target, [(host, nbytes)], word, knows, writes, True, self.init)
        self._note(state, thread, wrong)

    def end(self, state: BlockState, block: BlockOrder, threads: list[Thread]) -> None:
        """Threads end: bulk copies of their groups have to have read their sources."""
        for thread in threads:
            word, host = self._sources.pop((block.block, thread), (0, 0))
            issue = self.accesses.record(word) if word else None
            if issue is not None and issue.ends[0][1] >= issue.ends[0][0].done:
                pc = state.get(Block.FAULT_PC, "Q")
                self.reporter.note(state, pc, thread, Reason.UNREAD_SOURCE, issue.shown(word), issue.owner, host)

    def counted(
        self, state: BlockState, block: BlockOrder, thread: Thread, statement: Instruction, host: int,
        mbarrier: Any,
    ) -> None:
        """Bytes are counted at an mbarrier: those of a copy, or of a store that completes later."""
        if isinstance(statement, CommitArrival):
            begun: list[Issue] | None = self._issued.get((block.block, thread), [])
        else:
            begun = self._begun.pop((block.block, thread), None)
        if begun is None:
            begun = self._stored(state, thread, statement)
        elif begun and mbarrier.unfenced:
            self._demand_fenced(state, block, thread, host, mbarrier)
        for issue in begun:
            issue.ends.append((mbarrier.completion, mbarrier.completion.generation))

    def _demand_fenced(self, state: BlockState, block: BlockOrder, thread: Thread, host: int, mbarrier: Any) -> None:
        """A fence or a barrier that releases has to stand between an mbarrier's initialisation and the copies that it
        completes.
        """
        word, other = mbarrier.unfenced, self.memory.thread_of(mbarrier.unfenced)
        who = Seen(other[0], other[1], 1 << other[2], word >> EPOCH_SHIFT)
        knows = self._knows(state, block, thread[0], [thread[1]])
        if not knows.by_barrier(who) and not self.accesses.fenced(who, knows, Kinds.SHARED | Kinds.MBARRIER):
            pc = state.get(Block.FAULT_PC, "Q")
            self.reporter.note(state, pc, thread, Reason.UNFENCED_MBARRIER, word, other, host)
        mbarrier.unfenced = 0

    def _stored(self, state: BlockState, thread: Thread, statement: Instruction) -> list[Issue]:
        """The record of what the store or reduction before has written, which the count of its bytes completes."""
        place = state.code.graph.statements.index(statement) - 1
        stored: Any = state.code.graph.statements[place] if place >= 0 else None
        access = checked_access(stored.form) if isinstance(stored, CountedStore) else None
        if access is None:
            return []
        host = self._host(state, thread, stored.operands[access.operand])
        if host is None:
            return []
        target = self.holder(host, state)
        region = self.memory.shared_region(target)
        if region is None or not region.holds(host):
            return []
        word, issue = self.accesses.issue(state, target, thread, place, 0, strength(stored.form))
        count = -(-(access.nbytes or 1) >> self.memory.granule)
        self.memory.words(region, host, count, Plane.WRITER)[:] = word
        return [issue]

    def _host(self, state: BlockState, thread: Thread, address: Any) -> int | None:
        """The host address of an address in the shared memory of the cluster."""
        if not isinstance(address, Address):
            return None
        value = operand_value(state, thread, address.base)
        if value < 0:
            return None
        value = value + address.offset & (1 << Cluster.RANK_BITS + 8) - 1
        rank, offset = value >> Cluster.RANK_BITS, value & (1 << Cluster.RANK_BITS) - 1
        states = self.reporter.reporter.states or [state]
        return states[rank].shared + offset - SHARED_START if rank < len(states) else None

    def waits(self, state: BlockState, block: BlockOrder, thread: Thread, completion: Completion) -> None:
        """A thread looks at an mbarrier: it sees that the phases before the current one are complete."""
        epoch = self.clocks.of_warp(state, thread[0])[0] >> EPOCH_SHIFT
        completion.waited(completion.generation - 1, Seen(block.block, thread[0], 1 << thread[1], epoch))

    def over(
        self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int], word: int, form: Form
    ) -> bool:
        """Whether the access of a shadow word is over for each of some lanes, or does not race with their access."""
        issue = self.accesses.record(word)
        if issue is None or min(issue.level, strength(form)) > 1:
            return True
        return self.accesses.over(word, self.accesses.knows(state, block, warp, lanes, each=True))

    # Groups, fences

    def group(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int], statement: Instruction) -> None:
        """Lanes have committed a group, or waited for groups; a warpgroup's are those of each of its warps."""
        effects, of_thread = statement.form.effects, "bulk_group" in (
            statement.form.effects.commits, statement.form.effects.waits
        )
        epoch = self.clocks.of_warp(state, warp)[0] >> EPOCH_SHIFT
        for lane in lanes if of_thread else lanes[:1]:
            of: Any = (warp, lane) if of_thread else warp
            groups = self._completion(block.block, of, Objects.THREAD if of_thread else Objects.WARPGROUP)
            if effects.commits:
                groups.advance()
                continue
            left = operand_value(state, (warp, lane), statement.operands[0])
            if groups.generation > left:
                mask = 1 << lane if of_thread else sum(1 << each for each in lanes)
                groups.waited(groups.generation - 1 - left, Seen(block.block, warp, mask, epoch))

    def fence(self, state: BlockState, block: BlockOrder, warp: int, lanes: list[int], statement: Instruction) -> None:
        self.accesses.fence(self._knows(state, block, warp, lanes), fence_kinds(statement.form))

    # Products

    def product(self, state: BlockState, block: BlockOrder, warp: int, place: int) -> None:
        """A warp issues its part of a wgmma: its rows of A, and B as far as the first warp of the four goes."""
        statement: Any = state.code.graph.statements[place]
        lanes = [lane for lane in range(LANES) if state.get_warp(warp, Warp.ALIVE, "I") >> lane & 1]
        word, issue = self.accesses.issue(state, state, (warp, 0), place, Objects.WARPGROUP)
        first = warp - warp % WARPS
        groups = [self._completion(block.block, each, Objects.WARPGROUP) for each in range(first, first + WARPS)]
        own = groups[warp % WARPS].generation
        issue.ends += [(each, own) for each in groups]
        knows = self._knows(state, block, warp, lanes)
        wrong: list[Wrong] = []
        for tile in tiles_of(statement):
            value = operand_value(state, (warp, 0), tile.descriptor)
            if value < 0:
                continue
            wrong += _misaligned(state, value)
            first = warp % WARPS * ROWS if tile.left else 0
            lines = ROWS if tile.left else tile.lines
            pieces = [(state.shared + at - SHARED_START, size) for at, size in _pieces(tile, value, first, lines)]
            marks = word if tile.left or warp % WARPS == 0 else 0
            wrong += self.accesses.check(state, pieces, marks, knows, False, True, self.init)
        self._note(state, (warp, 0), wrong)


    def of_core(self, state: BlockState, block: BlockOrder, thread: Thread, place: int) -> None:
        """A thread has issued a product or copy to the tensor core, which the commits behind it complete."""
        found: dict[int, list[tuple[int, int]]] = {}
        states = self.reporter.reporter.states
        first = state.rank & ~1
        for piece in pieces_of(state, thread, place):
            both = "cta_group::2" in state.code.graph.statements[place].form.tokens  # type: ignore[union-attr]
            rank = first + piece.block if both and first + 1 < len(states) else state.rank
            target = states[rank] if states else state
            found.setdefault(rank, []).append((target.shared + piece.address - SHARED_START, piece.nbytes))
        issued = self._issued.setdefault((block.block, thread), [])
        if any(each.ends for each in issued[-1:]):  # a commit was the last: those before it are of the past
            self._issued[block.block, thread] = issued = issued[-MOST_ISSUED:]
        knows = self._knows(state, block, thread[0], [thread[1]])
        for rank, pieces in found.items():
            target = states[rank] if states else state
            word, issue = self.accesses.issue(state, target, thread, place, Objects.TENSOR)
            issued.append(issue)
            self._note(state, thread, self.accesses.check(target, pieces, word, knows, False, True, self.init))


def _misaligned(state: BlockState, descriptor: int) -> list[Wrong]:
    """A tile that does not begin in the first row of its swizzle, where the descriptor does not say so."""
    start, span = ADDRESS.of(descriptor), SPANS[SWIZZLE.of(descriptor)]
    if span == _PIECE or not start >> 7 & (span >> 4) - 1 or BASE_OFFSET.of(descriptor):
        return []
    return [Wrong(Reason.MISALIGNED, span, (0, 0, 0), state.shared + start - SHARED_START, Plane.WRITER)]


def _pieces(tile: Any, descriptor: int, first: int, lines: int) -> list[tuple[int, int]]:
    """Where the pieces of a tile lie, joined where they lie one behind the other."""
    start, leading, stride = (each.of(descriptor) for each in (ADDRESS, LEADING, STRIDE))
    span = SPANS[SWIZZLE.of(descriptor)]
    plain, mask = span == _PIECE, (span >> 4) - 1
    found = []
    if tile.major == "mn":
        per = span >> 4
        for k in range(tile.depth):
            row = start + (k >> 3) * (leading if plain else stride) + (k & 7) * span
            slabs = range(first >> 3, (first + lines) >> 3)
            found += [row + at // per * (stride if plain else leading) + at % per * _PIECE for at in slabs]
    else:
        for at in range(first, first + lines):
            row = start + (at >> 3) * stride + (at & 7) * span
            found += [row + number * (leading if plain else _PIECE) for number in range(tile.pieces)]
    places = sorted({place ^ ((place >> 7 & mask) << 4) for place in found})
    joined: list[tuple[int, int]] = []
    for place in places:
        if joined and sum(joined[-1]) == place:
            joined[-1] = joined[-1][0], joined[-1][1] + _PIECE
        else:
            joined.append((place, _PIECE))
    return joined
