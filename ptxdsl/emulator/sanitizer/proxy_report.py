"""Findings about the async proxy: what is not complete, what no proxy fence orders, what does not lie as it must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir import Instruction
from ..analysis.wgmma_registers import Hazard, hazards
from ..machine.allocation import number_at
from ..machine.layout import LANES
from ..machine.tensor_memory import TensorMemory
from ..machine.proxy_shadow import OBJECT_SHIFT, Objects
from ..machine.shadow import LAST_STATEMENT, STATEMENT_SHIFT, Reason
from ..runtime.block_state import BlockState
from ..runtime.faults import Scene, block_of, index_in
from .accesses import bulk_accesses, checked_access, is_tile_product, reads_tiles
from .findings import Access, Finding, Index
from .report import END, WAIT, WAIT_GROUP, Reporter, at

__all__ = ["PROXY_REASONS", "ProxyReporter"]

PROXY_REASONS = (
    Reason.UNFENCED, Reason.UNFENCED_MBARRIER, Reason.UNFENCED_MAP, Reason.MISALIGNED, Reason.UNREAD_SOURCE,
    Reason.REUSED_MBARRIER, Reason.EXPECTING_MBARRIER, Reason.UNSEEN_COPY,
)
_FENCE = (
    "put `ptx.fence.proxy.async_.shared__cta()` behind it in the threads that store, before the barrier, or in the "
    "thread that goes on behind the barrier"
)
_FENCE_AFAR = (
    "put `ptx.fence.proxy.async_()` behind it in the threads that store, before the barrier of the cluster or the "
    "arrival at an mbarrier, or in the thread that goes on behind these"
)
_FENCE_MBARRIER = "put `ptx.fence.mbarrier_init.release.cluster()` behind it, then `ptx.bar.sync(0)`"
_FENCE_MAP = "put `ptx.fence.proxy.tensormap__generic.acquire.gpu(map, 128)` before it, in the thread that copies"
_WAIT_GROUP = (
    "wait first: `ptx.wgmma.commit_group.sync.aligned()`, then `ptx.wgmma.wait_group.sync.aligned(0)`"
)
_FENCE_PRODUCT = "put `ptx.wgmma.fence.sync.aligned()` before it"
_WAIT_PRODUCTS = (
    "wait first, in the warpgroup: `ptx.wgmma.commit_group.sync.aligned()`, `ptx.wgmma.wait_group.sync.aligned(0)`; "
    "then a barrier, or an arrival at an mbarrier, if it is another thread"
)
_WAIT_READ = (
    "wait before the end, in the thread that copies: `ptx.cp.async_.bulk.commit_group()`, then "
    "`ptx.cp.async_.bulk.wait_group.read(0)`"
)
_FENCE_AFTER = (
    "put `ptx.tcgen05.fence__after_thread_sync()` before it, behind the wait or the barrier that orders the two"
)
_FENCE_BEFORE = (
    "put `ptx.tcgen05.fence__before_thread_sync()` behind the store and its wait, before the barrier or the arrival"
)
_WAIT_REUSE = "wait for its phase first, in the thread that makes it again, or in another one before a barrier"
_WAIT_COPY = (
    "wait at that mbarrier before the end, in any thread: `ptx.mbarrier.try_wait.parity.shared.b64(bar, parity)` in a "
    "loop until it is true"
)
_WAIT_CORE = (
    "let `tcgen05.commit` of the thread that issues it arrive at an mbarrier, and wait there first: an arrival of the "
    "thread itself does not wait for the tensor core"
)


def _allocates(state: BlockState, place: int) -> bool:
    """Whether a store is that of the address of tensor memory: compilers let copies take its place without a fence."""
    statements = state.code.graph.statements
    statement: Any = statements[place] if place < len(statements) else None
    return isinstance(statement, Instruction) and statement.form.semantics == "tensor_memory"


class ProxyReporter:
    """Makes them for a launch."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def note(
        self, state: BlockState, pc: int, thread: tuple[int, int], reason: int, word: int, other: Index, host: int
    ) -> None:
        """Record one; ``word`` holds the access before, ``other`` its thread."""
        reporter = self.reporter
        place, before = state.code.statement_at(pc), word >> STATEMENT_SHIFT & LAST_STATEMENT
        if reason == Reason.UNFENCED and _allocates(state, before):
            return
        guarded, address = reporter.range_of(state, host)
        memory = reporter.memory_of(Scene(state, *thread, pc), guarded, address, host)
        mine = reporter.access_of(state, place, block_of(state), thread)
        if reason in (Reason.MISALIGNED, Reason.EXPECTING_MBARRIER):
            before = place
        theirs = reporter.access_of(state, before, index_in(reporter.launch.config.grid, other[0]), other[1:])
        finding = self._finding(state, reason, word, (place, before), mine, theirs, memory)
        lines = sorted((reporter.line(state, place), reporter.line(state, before)), key=str)
        reporter.add(place, finding, finding.kind, guarded and guarded.name, *lines)

    def note_register(self, state: BlockState, pc: int, thread: tuple[int, int], number: int) -> None:
        """Record a register of wgmma that is touched too early, by the number of the hazard."""
        reporter, place = self.reporter, state.code.statement_at(pc)
        notes = state.code.notes
        if Hazard not in notes:
            notes[Hazard] = hazards(state.code.graph)
        hazard: Hazard = notes[Hazard][number]
        mine = self._side(state, place, thread)
        theirs = self._side(state, hazard.other, thread) if hazard.other >= 0 else None
        name = hazard.register
        if hazard.kind == "first":
            message = f"{mine.verb} by warp {thread[0]} with no `wgmma.fence` before it"
        elif hazard.kind == "unfenced":
            message = f"{mine.verb} uses {name}, with no `wgmma.fence` behind the {theirs and theirs.verb} of it"
        else:
            message = f"{mine.verb} of {name}, which a wgmma may still use: its group has not been waited for"
        hint = _WAIT_GROUP if hazard.kind == "pending" else _FENCE_PRODUCT
        finding = Finding("race", message, mine, theirs, name, name, "register", hint)
        other = reporter.line(state, hazard.other) if theirs is not None else None
        reporter.add(place, finding, hazard.kind, reporter.line(state, place), other)

    def note_core(self, state: BlockState, pc: int, thread: tuple[int, int], word: int, host: int) -> None:
        """Record tensor memory that is read with no fence of tcgen05 between, by the stream that has written it."""
        reporter, place = self.reporter, state.code.statement_at(pc)
        stream, fenced = word & 0xFF, bool(word >> 8)
        before = state.code.statement_at(number_at(state.tensor + TensorMemory.ISSUED_AT + 8 * stream, 8))
        guarded, address = reporter.range_of(state, host)
        memory = reporter.memory_of(Scene(state, *thread, pc), guarded, address, host)
        mine = reporter.access_of(state, place, block_of(state), thread)
        theirs = reporter.access_of(state, before, block_of(state), (stream % LANES, 0))
        which = "after" if fenced else "before"
        message = (
            f"{mine.verb} {at(mine.verb)} {memory.element}, which the {theirs.verb} by warp {stream % LANES} has "
            f"written: no `tcgen05.fence::{which}_thread_sync` is {'behind' if not fenced else 'between'}"
        )
        hint = _FENCE_AFTER if fenced else _FENCE_BEFORE
        lines = sorted((reporter.line(state, place), reporter.line(state, before)), key=str)
        reporter.add(place, self._found("race", message, mine, theirs, memory, hint), "core", which, *lines)

    def _side(self, state: BlockState, place: int, thread: tuple[int, int]) -> Access:
        """An instruction by a thread, which is a wgmma or uses registers."""
        access = self.reporter.access_of(state, place, block_of(state), thread)
        statement: Any = state.code.graph.statements[place]
        known = isinstance(statement, Instruction) and is_tile_product(statement.form)
        return access if known else replace(access, verb="use")

    @staticmethod
    def _found(kind: str, message: str, mine: Access, theirs: Access, memory: Any, hint: str) -> Finding:
        return Finding(kind, message, mine, theirs, memory.name, memory.element, memory.space, hint)

    def _finding(
        self, state: BlockState, reason: int, word: int, places: tuple[int, int], mine: Access, theirs: Access,
        memory: Any,
    ) -> Finding:
        what = f"{mine.verb} {_preposition(state, places[0], mine.verb, memory.space)} {memory.element}"
        afar = theirs.block != mine.block
        who = f"by thread {theirs.thread}{f' of block {theirs.block}' if afar else ''}"
        if reason == Reason.UNFENCED:
            message = (
                f"{what}, which the {theirs.verb} {who} has written through another proxy: no proxy fence is between"
            )
            hint = _FENCE_AFAR if afar else _FENCE
            hint = hint if memory.space == "shared" else _FENCE.replace("shared__cta", "global_")
            return self._found("race", message, mine, theirs, memory, hint)
        if reason == Reason.MISALIGNED:
            return _misaligned(what, word, mine, memory)
        if reason == Reason.UNREAD_SOURCE:
            message = (
                f"the block may end before the {theirs.verb} {who} has read {memory.element}: the thread ends without "
                "a wait for its group"
            )
            return self._found("race", message, theirs, replace(mine, verb=END), memory, _WAIT_READ)
        if reason == Reason.EXPECTING_MBARRIER:
            message = f"{memory.element} is made again or invalid while its phase still waits for {word} bytes"
            return Finding("race", message, mine, None, memory.name, memory.element, memory.space, _WAIT_REUSE)
        if reason == Reason.REUSED_MBARRIER:
            message = (
                f"{memory.element} is made again or invalid while the {theirs.verb} {who} that it counts is not known "
                "to be complete"
            )
            return self._found("race", message, mine, theirs, memory, _WAIT_REUSE)
        if reason == Reason.UNSEEN_COPY:
            message = (
                f"the block ends before the {theirs.verb} {who} is known to be complete: nobody has waited for its "
                f"phase of {memory.element}"
            )
            return self._found("race", message, theirs, replace(mine, verb=END), memory, _WAIT_COPY)
        if reason == Reason.UNFENCED_MAP:
            message = (
                f"{mine.verb} by a tensor map, of which the {theirs.verb} {who} has changed {memory.element}: no "
                "`fence.proxy.tensormap` is between"
            )
            return self._found("race", message, mine, theirs, memory, _FENCE_MAP)
        if reason == Reason.UNFENCED_MBARRIER:
            message = (
                f"{mine.verb} completed by {memory.element}, whose initialisation {who} is not ordered before it: "
                "neither a fence nor a barrier is between"
            )
            return self._found("race", message, mine, theirs, memory, _FENCE_MBARRIER)
        completed = word >> OBJECT_SHIFT & 0xFF
        if reason == Reason.WRITER and completed < Objects.WARPGROUP and not _stores(state, places[0]):
            kind = "init" if "init" in self.reporter.kinds else "race"
            copy = "copy" if "copy" in theirs.verb else f"asynchronous {theirs.verb}"
            message = f"{what}, whose {copy} {who} is not known to be complete"
            return self._found(kind, message, mine, theirs, memory, WAIT[True])
        message = (
            f"race on {memory.element} in {memory.space} memory: {mine.verb} by thread {mine.thread}"
            f" and {theirs.verb} by thread {theirs.thread} of block {theirs.block} are not ordered"
        )
        hint = _WAIT_PRODUCTS if completed < Objects.THREAD else WAIT_GROUP.format(".read(0)")
        hint = _WAIT_CORE if completed == Objects.TENSOR else hint
        hint = WAIT[True] if completed < Objects.WARPGROUP else hint
        return self._found("race", message, mine, theirs, memory, hint)


def _misaligned(what: str, span: int, mine: Access, memory: Any) -> Finding:
    """A tile that a swizzle of so many bytes expects somewhere else."""
    rows = span // 16 * 128
    message = (
        f"{what}, a tile that is swizzled by {span} bytes and does not begin at a multiple of {rows}: "
        "the rows of its swizzle are others than those that its descriptor says"
    )
    hint = f"align it: `dynamic_shared(bf16, align={rows})`, and begin tiles at multiples of 8 rows"
    return Finding("race", message, mine, None, memory.name, memory.element, memory.space, hint)


def _stores(state: BlockState, place: int) -> bool:
    """Whether a statement writes shared memory."""
    statement: Any = state.code.graph.statements[place]
    return any(access.space == "shared" and access.writes for access in bulk_accesses(statement.form)) or (
        (access := checked_access(statement.form)) is not None and access.writes and not access.reads
    )


def _preposition(state: BlockState, place: int, verb: str, space: str) -> str:
    statement: Any = state.code.graph.statements[place]
    form = statement.form
    if reads_tiles(form):
        return "of"
    accesses = bulk_accesses(form)
    reads = any((access.space == "shared") == (space == "shared") and access.reads for access in accesses)
    reads = reads and not any(access.reads and access.writes for access in accesses)
    return "from" if reads else at(verb)
