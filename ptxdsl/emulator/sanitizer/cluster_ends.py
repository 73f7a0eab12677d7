"""Blocks of a cluster that may end while others still reach their shared memory, although in this run they did not.

Where a block ends, each access of another block to its shared memory has to happen before the end of one of its
threads. Asked are the last accesses that shadow memory has, and the last operations of each thread on its mbarriers;
only in kernels where a thread may end behind such an access with no barrier of the cluster between.
"""

from __future__ import annotations

from typing import Any

from ..analysis.cluster_ends import ends_unordered
from ..machine.address_spaces import AddressSpaces
from ..machine.layout import Block
from ..machine.proxy_shadow import ASYNC
from ..machine.shadow import EPOCH_SHIFT, LAST_STATEMENT, PENDING, SEVERAL_LANES, STATEMENT_SHIFT, Plane
from ..runtime.block_state import BlockState
from ..runtime.faults import Scene, index_in
from .async_accesses import AsyncAccesses, Knows, Seen, words_of
from .barriers import Barriers
from .findings import Finding
from .happens_before import BlockOrder, Clock, join
from .report import Reporter, at

__all__ = ["asks_at_ends", "check_end"]

_HINT = "synchronise the blocks before they end: `ptxdsl.cluster.sync()`"


def asks_at_ends(spaces: AddressSpaces) -> bool:
    """Whether that is asked of a kernel, which is found once."""
    if spaces.cluster in (None, (1, 1, 1)):
        return False
    found: bool | None = spaces.notes.get(asks_at_ends)
    if found is None:
        found = spaces.notes[asks_at_ends] = ends_unordered(spaces.function)
    return found


def check_end(
    state: BlockState, block: BlockOrder, accesses: AsyncAccesses, barriers: Barriers, reporter: Reporter
) -> None:
    """A block has ended: report the first access of each kind that may come later in another run."""
    memory = accesses.memory
    known: Clock = join(block.common, *{id(clock): clock for clock in block.own.values()}.values())
    knows = Knows(block, -1, [], {}, 0)
    knows.acquired = [known, {block.block: PENDING}]
    region = memory.shared_region(state)
    first = memory.first_epoch << EPOCH_SHIFT
    found: dict[int, tuple[tuple[int, int, int], int]] = {}
    if region is not None:
        count = region.nbytes >> memory.granule
        for plane in (Plane.WRITER, Plane.READER, Plane.EARLIER_READER):
            words = memory.words(region, region.low, count, plane)
            for word in words_of(words):
                if word < first or word >= PENDING:
                    continue
                issue = accesses.record(word) if word >= ASYNC else None
                if word >= ASYNC and issue is None:
                    continue
                who = memory.thread_of(word) if issue is None else issue.owner
                if who[0] == block.block:
                    continue
                mask = 0xFFFFFFFF if word & SEVERAL_LANES else 1 << who[2]
                over = knows.all_of(Seen(who[0], who[1], mask, word >> EPOCH_SHIFT)) if issue is None else (
                    accesses.over(word, knows)
                )
                if not over:
                    host = region.low + (int((words == word).argmax()) << memory.granule)
                    found.setdefault(word >> STATEMENT_SHIFT & LAST_STATEMENT, (who, host))
    for (who, place), (epoch, host) in barriers.remote.pop(block.block, {}).items():
        if not knows.all_of(Seen(who[0], who[1], 1 << who[2], epoch)):
            found.setdefault(place, (who, host))
    for place, (who, host) in found.items():
        _report(state, reporter, place, who, host)


def _report(state: BlockState, reporter: Reporter, place: int, who: tuple[int, int, int], host: int) -> None:
    grid: Any = reporter.launch.config.grid
    access = reporter.access_of(state, place, index_in(grid, who[0]), who[1:])
    guarded, address = reporter.range_of(state, host)
    memory = reporter.memory_of(Scene(state, *who[1:], state.get(Block.FAULT_PC, "Q")), guarded, address)
    message = (
        f"{access.verb} {at(access.verb)} {memory.element} of block {state.rank} of the cluster, which may have ended: "
        "nothing orders its end behind this"
    )
    finding = Finding("race", message, access, None, memory.name, memory.element, memory.space, _HINT)
    reporter.add(place, finding, "end", reporter.line(state, place))
