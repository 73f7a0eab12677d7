"""The asynchronous operations of a launch that is run step by step: which are pending, what each touches, making one.

The emulator keeps them in queues (:mod:`..machine.pending`) and makes them as late as waits allow. What one warp begins
by one statement is one operation here, whatever number of records it is.

What it cannot see: the bytes of a tensor in global memory. What a product reads of shared memory is known from its
descriptors as a range that may be too large: so that is used to find orders to try, not to call something a race.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...ir import Immediate, elements
from ...isa.fragments import shape_of
from ...isa.matrix_descriptors import ADDRESS, LEADING, SPANS, STRIDE, SWIZZLE, SWIZZLES, TENSOR_SWIZZLE
from ..machine.allocation import copy_bytes, number_at
from ..machine.layout import SHARED_START, Block
from ..machine.pending import Kind, Pending
from ..machine.product_plan import ProductPlan, ProductRequest
from ..machine.status import Status
from ..runtime.block_state import BlockState, compiled
from ..runtime.faults import failure
from .schedule import Actor

__all__ = ["Operation", "Operations", "Span"]

Span = tuple[int, int]
"""Host addresses, of the first byte and behind the last one."""
_PRODUCTS = (Kind.PRODUCT, Kind.TENSOR)
_ROWS = 8
"""Rows of a tile that lie one after the other."""


class Operation:
    """What one statement of a warp has begun: ``records`` are its places in the queue of ``state``.

    ``reads`` and ``writes`` are the bytes it touches, ``loose`` those of which it may touch fewer. ``mbarriers``: the
    host addresses of those that count it.
    """

    def __init__(self, actor: Actor, state: BlockState, statement: Any, kind: int, owner: int) -> None:
        self.actor, self.state, self.statement, self.kind, self.owner = actor, state, statement, kind, owner
        self.records: list[int] = []
        self.reads: list[Span] = []
        self.writes: list[Span] = []
        self.loose: list[Span] = []
        self.mbarriers: list[int] = []
        self.begun = -1
        """The number of the step that has begun it."""

    def add(self, record: int) -> None:
        """Take a record, with what it touches."""
        self.records.append(record)
        mbarrier = number_at(record + Pending.MBARRIER)
        if mbarrier and mbarrier not in self.mbarriers:
            self.mbarriers.append(mbarrier)
        to, source = number_at(record + Pending.TO), number_at(record + Pending.SOURCE)
        size, nbytes = number_at(record + Pending.SIZE), number_at(record + Pending.NBYTES, 4)
        if self.kind == Kind.PRODUCT:
            self._add_product(record)
        elif self.kind == Kind.TENSOR:
            self._add_tensor_product(record)
        elif self.kind != Kind.ARRIVAL:
            tensor = any(access.kind == "tensor" for access in self.statement.form.effects.accesses)
            stores = tensor and any(a.kind == "tensor" and a.writes for a in self.statement.form.effects.accesses)
            inside = record <= source < record + Pending.nbytes
            if size and not inside and (not tensor or stores):
                self.reads.append((source, source + size))
            if not stores:
                self.writes.append((to, to + (nbytes if tensor or self.kind == Kind.COPY else size)))

    def _add_product(self, record: int) -> None:
        """The tiles of wgmma."""
        tokens, named = self.statement.form.tokens, self.named
        columns = int(shape_of(tokens).partition("n")[2].partition("k")[0])
        held = len(elements(named["a"])) > 1
        for number, name in enumerate("b" if held else "ab"):
            word = number_at(record + Pending.WORDS + 8 * number)
            turned = named.get(f"t{name}")
            lengthwise = isinstance(turned, Immediate) and bool(turned.bits)
            self._add_tile(word, columns if name == "b" else 64, SPANS[SWIZZLE.of(word)], lengthwise)

    @property
    def named(self) -> dict[str, Any]:
        """The operands of the statement by their names."""
        return {spec.name: value for spec, value in zip(self.statement.form.operands, self.statement.operands)}

    def _add_tensor_product(self, record: int) -> None:
        """The tiles of tcgen05.mma."""
        request, plan = record + Pending.BYTES, number_at(record + Pending.TO)
        held = any(a.space == "tmem" and a.operand == 1 for a in self.statement.form.effects.accesses)
        for name, lines, line in (
            (ProductRequest.A, ProductPlan.ROWS, ProductPlan.A_LINE),
            (ProductRequest.B, ProductPlan.COLUMNS, ProductPlan.B_LINE),
        ):
            word = number_at(request + name)
            swizzle = SWIZZLES.get(TENSOR_SWIZZLE.of(word))
            if swizzle is not None and not (held and name == ProductRequest.A):
                self._add_tile(word, number_at(plan + lines), swizzle.span, not number_at(plan + line))

    def _add_tile(self, word: int, lines: int, span: int, lengthwise: bool) -> None:
        """A tile of so many lines, which lie along its rows of ``span`` bytes or across them."""
        start = self.state.shared - SHARED_START + ADDRESS.of(word)
        extent = _ROWS * span
        if lengthwise:
            extent += max(0, 2 * lines // span - 1) * LEADING.of(word) + STRIDE.of(word)
        else:
            extent += max(0, lines // _ROWS - 1) * STRIDE.of(word) + (LEADING.of(word) if span == 16 else 0)
            start -= ADDRESS.of(word) % span
        self.loose.append((start, start + extent))


def _routines(queue: int, count: int) -> Any:
    """What makes each of the records of a queue, 0 where it was made."""
    data: Any = (ctypes.c_uint64 * (count * Pending.nbytes // 8)).from_address(queue)
    return np.frombuffer(data, np.uint64)[Pending.ROUTINE // 8 :: Pending.nbytes // 8]


class _Queue:
    """How far the queue of a state is known."""

    def __init__(self) -> None:
        self.end, self.count = 0, 0
        self.pending: list[Operation] = []

    def made(self, place: int, routines: Any) -> list[Operation]:
        """Take out the operations of which no record is left."""
        left: list[Operation] = []
        gone: list[Operation] = []
        for op in self.pending:
            numbers = [(record - place) // Pending.nbytes for record in op.records]
            waits = any(number < len(routines) and routines[number] for number in numbers)
            (left if waits else gone).append(op)
        self.pending = left
        return gone


class Operations:
    """All operations of a run."""

    def __init__(self) -> None:
        self._queues: dict[int, _Queue] = {}
        self._begun: dict[tuple[int, int, bool], int] = {}

    @property
    def pending(self) -> list[Operation]:
        return [op for queue in self._queues.values() for op in queue.pending]

    def update(self, states: Iterable[BlockState], block: int, step: int) -> tuple[list[Operation], list[Operation]]:
        """Look into the queues: the operations that were made in a step, and those that a block has begun in it."""
        made: list[Operation] = []
        begun: dict[tuple[int, int, int], Operation] = {}
        for state in states:
            queue = self._queues.get(state.address)
            if queue is None:
                if not state.has_pending:
                    continue
                queue = self._queues[state.address] = _Queue()
            first, end = (state.get(field, "i") for field in (Block.PENDING_FIRST, Block.PENDING_END))
            if end < queue.end:
                queue.end = 0
            place = state.get(Block.PENDING, "Q")
            routines = _routines(place, end)
            new = np.flatnonzero(routines[queue.end :]) + queue.end
            count = int(np.count_nonzero(routines[first:]))
            if count != queue.count + len(new):
                made += queue.made(place, routines)
            queue.end, queue.count = end, count
            for number in new.tolist():
                self._add(state, queue, place + number * Pending.nbytes, begun, block)
        for op in begun.values():
            op.begun = step
        return made, list(begun.values())

    def _add(
        self, state: BlockState, queue: _Queue, record: int, begun: dict[tuple[int, int, int], Operation], block: int
    ) -> None:
        place, kind = number_at(record + Pending.PLACE), number_at(record + Pending.KIND, 4)
        owner = number_at(record + Pending.OWNER, 4)
        warp = owner if kind == Kind.PRODUCT else owner >> 5
        op = begun.get((state.address, place, warp))
        if op is None:
            products = kind in _PRODUCTS
            count = self._begun.get((block, warp, products), 0)
            self._begun[block, warp, products] = count + 1
            statement = state.code.graph.statements[max(0, state.code.statement_at(place))]
            actor = Actor(block, warp, 2 * count + products)
            op = begun[state.address, place, warp] = Operation(actor, state, statement, kind, owner)
            queue.pending.append(op)
        op.add(record)

    def free(self) -> Iterator[Operation]:
        """Those that may complete next: products of a thread or a warpgroup complete in their order."""
        products = set()
        for op in self.pending:
            key = op.state.address, op.owner
            if op.kind not in _PRODUCTS:
                yield op
            elif key not in products:
                products.add(key)
                yield op

    def make(self, op: Operation) -> None:
        """Make an operation. Raises faults."""
        state = op.state
        state.put(Block.STATUS, "i", Status.RUNNING)
        for record in op.records:
            routine = number_at(record + Pending.ROUTINE)
            if routine:
                copy_bytes(record + Pending.ROUTINE, bytes(8), 8)
                compiled(routine)(record, number_at(record + Pending.WARP), state.address)
                if state.get(Block.STATUS, "i") == Status.FAULT:
                    raise failure(state)
        if not state.pending:
            state.put(Block.PENDING_FIRST, "ii", 0, 0)
            state.put(Block.STAGING_USED, "q", 0)
