"""Findings about the async proxy: what is not complete, what no proxy fence orders, what does not lie as it must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...ir import Instruction
from ..analysis.wgmma_registers import Hazard, hazards
from ..machine.proxy_shadow import OBJECT_SHIFT, Objects
from ..machine.shadow import LAST_STATEMENT, STATEMENT_SHIFT, Reason
from ..runtime.block_state import BlockState
from ..runtime.faults import Scene, block_of, index_in
from .accesses import bulk_accesses, checked_access, is_tile_product
from .findings import Access, Finding, Index
from .report import WAIT, WAIT_GROUP, Reporter, at

__all__ = ["PROXY_REASONS", "ProxyReporter"]

PROXY_REASONS = (Reason.UNFENCED, Reason.UNFENCED_MBARRIER, Reason.UNFENCED_MAP, Reason.MISALIGNED)
_FENCE = (
    "put `ptx.fence.proxy.async_.shared__cta()` behind it in the threads that store, before the barrier, or in the "
    "thread that goes on behind the barrier"
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
        memory = reporter.memory_of(Scene(state, *thread, pc), guarded, address)
        mine = reporter.access_of(state, place, block_of(state), thread)
        if reason == Reason.MISALIGNED:
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
        what = f"{mine.verb} {_preposition(state, places[0], mine.verb)} {memory.element}"
        who = f"by thread {theirs.thread}"
        if reason == Reason.UNFENCED:
            message = (
                f"{what}, which the {theirs.verb} {who} has written through another proxy: no proxy fence is between"
            )
            return self._found("race", message, mine, theirs, memory, _FENCE)
        if reason == Reason.MISALIGNED:
            return _misaligned(what, word, mine, memory)
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
            message = f"{what}, whose copy {who} is not known to be complete"
            return self._found(kind, message, mine, theirs, memory, WAIT[True])
        message = (
            f"race on {memory.element} in {memory.space} memory: {mine.verb} by thread {mine.thread}"
            f" and {theirs.verb} {who} of block {theirs.block} are not ordered"
        )
        hint = _WAIT_PRODUCTS if completed < Objects.THREAD else WAIT_GROUP.format(".read(0)")
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


def _preposition(state: BlockState, place: int, verb: str) -> str:
    statement: Any = state.code.graph.statements[place]
    form = statement.form
    if is_tile_product(form):
        return "of"
    reads = any(access.space == "shared" and access.reads for access in bulk_accesses(form))
    return "from" if reads else at(verb)
