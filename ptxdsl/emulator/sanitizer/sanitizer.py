"""The sanitizer: uninitialised memory and races, found while a kernel runs.

Compiled checks (``handlers/watch``) decide nearly everything. What they cannot, they ask here, where the order of the
threads is known exactly (``sanitizer_order``). A finding is noted, the memory in question is taken to be fine from then
on, and the kernel goes on, so that one run tells of all its bugs; the launch raises the first at its end.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ...errors import EmulationError
from ...ir import Immediate
from ...launch import Buffer
from ..codegen.library import library
from ..instructions.instrumentation import ShadowInspection
from ..machine.block_state import LaunchState, State, Tool
from ..machine.layout import LANES, SHARED_START, SPACE_BITS, Block, Entry
from ..machine.shadow import (
    EPOCH_BITS, EPOCH_SHIFT, LANE, ORDER_CACHE_BITS, ORDER_HASH, SEVERAL_LANES, STATEMENT_SHIFT, SUPPRESSED, UNWRITTEN,
    WARP, WARP_SHIFT, WHOLE_WARP, Reason, Shadow, WarpClock,
)
from .clusters import connect, renew
from .copies import Copies
from .events import synchronise
from .happens_before import BlockOrder, Clock, Order, Thread, join, knows
from .instrumentation import Checks, grain
from .report import Finding, Reporter, raised
from .shadow_store import store

__all__ = ["Sanitizer", "collect"]

_INSPECT = ShadowInspection()
PATIENCE = 200
"""Questions about one instruction after which it is not looked at any more in this launch."""
POLL = 128
"""What a strong read counts of a block state's turns: it probably waits for another block."""
TAG_BYTES = 8
PLANES = 3
_WORD = (1 << 64) - 1


_collected: ContextVar[list[Finding] | None] = ContextVar("ptxdsl_findings", default=None)


@contextmanager
def collect() -> Iterator[list[Finding]]:
    """Findings go to a list instead of being raised.

    >>> with collect() as findings:
    ...     pass
    >>> findings
    []
    """
    findings: list[Finding] = []
    token = _collected.set(findings)
    try:
        yield findings
    finally:
        _collected.reset(token)


class Sanitizer(Tool):
    """The tools that are on for one launch."""

    def __init__(self, launch: LaunchState, tools: frozenset[str]) -> None:
        self.launch, self.store = launch, store()
        self.store.lock.acquire()
        if int(self.store.counter[0]) >> (EPOCH_BITS - 1):
            self.store.counter[0], self.store.free = 1, []
        self.first = int(self.store.counter[0]) + 1
        self.grain = grain(launch.spaces.function)
        self.arrays: list[np.ndarray[Any, Any]] = []
        self.kept: list[Any] = []
        self.regions: list[tuple[int, int, int, int]] = []
        self.owned: dict[int, list[tuple[int, int, int, int, int]]] = {}
        """Shared (1) and local (2) memory of each state, by its address, as ``describe`` takes them."""
        self.fresh = self._fresh_buffers() if "init" in tools else []
        overlap = self._global_regions()
        heap = any(guarded is not None and guarded.heap for guarded in launch.ranges)
        self.poisoned = "init" in tools and (heap or bool(self.fresh))
        self.checks = Checks("race" in tools, "init" in tools, overlap, self.poisoned)
        self.order = Order()
        self.copies = Copies(self)
        self.reporter = Reporter(launch)
        self.reporter.copies = self.copies.by_host
        self.asked: dict[int, int] = {}
        self.spared: list[tuple[int, bytes]] = []
        self.current: State | None = None

    # Tags

    def _tags(self, nbytes: int) -> tuple[int, int]:
        """Tags for host memory: their address, and the bytes from one plane to the next."""
        pieces = (nbytes >> self.grain) + 9
        stride = pieces + (24 - pieces % 16)  # planes apart by odd cache lines, so that they do not evict each other
        array = self.store.take(PLANES * stride + 16)
        self.arrays.append(array)
        return array.ctypes.data, stride * TAG_BYTES

    def _fresh_buffers(self) -> list[Buffer]:
        buffers = [argument for argument in self.launch.arguments if isinstance(argument, Buffer)]
        return [buffer for buffer in buffers if getattr(buffer.owner, "unwritten", None) is not None]

    def _global_regions(self) -> bool:
        """Give tags to all global memory; whether any two arrays overlap."""
        mask = (1 << self.grain) - 1
        reach = SPACE_BITS["global"] | SPACE_BITS["generic"]
        spans = sorted(
            (g.place & ~mask, (g.place + g.nbytes + mask) & ~mask) for g in self.launch.ranges
            if g is not None and not g.shared and g.spaces & reach and not g.spaces & SPACE_BITS["param"] and g.nbytes
        )
        merged: list[list[int]] = []
        overlap = False
        for low, high in spans:
            if merged and low < merged[-1][1]:
                overlap = True
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        for low, high in merged:
            self.regions.append((low, high - low, *self._tags(high - low)))
        for buffer in self.fresh:
            self._poison(buffer)
        return overlap

    def _plane(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """The tags of the last writers of a buffer."""
        low, _, tags, _ = next(r for r in self.regions if r[0] <= buffer.address < r[0] + r[1])
        start = tags + (buffer.address - low >> self.grain) * TAG_BYTES
        count = (buffer.nbytes + (1 << self.grain) - 1) >> self.grain
        return np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(start))

    def _poison(self, buffer: Buffer) -> None:
        unwritten = buffer.owner.unwritten  # type: ignore[attr-defined]
        plane = self._plane(buffer)
        known = np.zeros(plane.size << self.grain, bool)
        known[: buffer.nbytes] = unwritten
        plane[:] = np.where(known.reshape(plane.size, -1).any(1), UNWRITTEN, 0)

    def attach(self, state: State) -> None:
        """Give a block state its ledger."""
        memory = np.zeros(Shadow.nbytes + 64, np.uint8)
        seen = np.zeros(1 << ORDER_CACHE_BITS, np.uint64)
        local = self.launch.spaces.local_bytes * state.count * LANES
        own = [(state.shared, self.launch.shared_bytes, 1), (state.local, local, 2)]
        regions = [(*region, 0) for region in self.regions]
        owned = [(low, nbytes, *self._tags(nbytes), kind) for low, nbytes, kind in own if nbytes]
        self.owned[state.address] = owned
        regions += owned
        self.kept += [memory, seen]
        state.shadow = address = memory.ctypes.data + -memory.ctypes.data % 64
        state.put(Block.SHADOW, "Q", address)
        inspect = library().need([_INSPECT])[_INSPECT]
        for offset, codes, value in (
            (Shadow.EPOCH_COUNTER, "Q", self.store.counter.ctypes.data),
            (Shadow.EPOCH_BLOCKS, "Q", self.store.owners.ctypes.data),
            (Shadow.LAUNCH, "Q", self.first << EPOCH_SHIFT), (Shadow.ORDER_CACHE, "Q", seen.ctypes.data),
            (Shadow.INSPECT, "Q", inspect),
        ):
            self.put(state, offset, codes, value)
        self.describe(state, regions)
        for number, guarded in enumerate(self.launch.ranges):
            if guarded is not None:
                host = guarded.place
                if guarded.shared:
                    host = state.shared - SHARED_START + guarded.address - guarded.window
                for low, nbytes, tags, stride, _ in regions:
                    if low <= host < low + nbytes:
                        start = (tags - (low >> self.grain) * TAG_BYTES) & _WORD
                        place = state.table + number * Entry.nbytes + Entry.SHADOW_WORDS
                        ctypes.memmove(place, struct.pack("<QQ", start, stride), 16)
                        break

    def describe(self, state: State, regions: list[tuple[int, int, int, int, int]]) -> None:
        """Let a block know of pieces of host memory: address, bytes, tags, bytes to the next plane of them, kind."""
        table = b"".join(struct.pack("<QQQQi28x", *region) for region in regions)
        described = np.frombuffer(table, np.uint8).copy()
        self.kept.append(described)
        self.put(state, Shadow.REGIONS, "Q", described.ctypes.data)
        self.put(state, Shadow.REGION_COUNT, "i", len(regions))

    def connect(self, states: list[State]) -> None:
        """Let each block of a cluster know of the shared memory of all of them."""
        connect(self, states)

    def begin_cluster(self, states: list[State]) -> None:
        """The shared memory of a new cluster: nobody has touched it."""
        renew(self, states)

    def untracked(self, state: State, statement: int) -> None:
        self.reporter.incomplete(state, statement)

    def unwritten(self, state: State, record: int, thread: tuple[int, int], register: str) -> None:
        self.reporter.unwritten(state, record, thread, register)

    def allocated(self, address: int, nbytes: int) -> None:
        """Memory of malloc changes hands: nobody has touched it, and where that is looked for nobody has written it."""
        low, _, tags, stride = next(region for region in self.regions if region[0] <= address < region[0] + region[1])
        first = address - low >> self.grain
        count = -(-nbytes >> self.grain) if nbytes else 0
        for plane in range(PLANES):
            start = tags + plane * stride + first * TAG_BYTES
            words = np.ctypeslib.as_array((ctypes.c_uint64 * count).from_address(start))
            words[:] = UNWRITTEN if plane == 0 and self.checks.fresh else 0

    # The ledger

    @staticmethod
    def put(state: State, offset: int, codes: str, value: int) -> None:
        data = struct.pack("<" + codes, value)
        ctypes.memmove(state.shadow + offset, data, len(data))

    @staticmethod
    def get(state: State, offset: int, codes: str = "Q") -> int:
        data = ctypes.string_at(state.shadow + offset, struct.calcsize("<" + codes))
        value: int = struct.unpack("<" + codes, data)[0]
        return value

    def own(self, state: State, warp: int, offset: int) -> int:
        return self.get(state, Shadow.WARP_CLOCKS + warp * WarpClock.nbytes + offset)

    def switch(self, state: State) -> None:
        """Where another block state takes its turn, segments so far may be of any block."""
        if state is self.current:
            return
        self.current = state
        self.put(state, Shadow.WINDOW, "Q", (int(self.store.counter[0]) + 1) << EPOCH_SHIFT)

    def advance(self, state: State, warp: int) -> None:
        """A new segment for a warp."""
        segment = int(self.store.counter[0]) + 1
        self.store.counter[0] = segment
        self.store.owners[segment & (1 << EPOCH_BITS) - 1] = self.get(state, Shadow.BLOCK, "I")
        place = Shadow.WARP_CLOCKS + warp * WarpClock.nbytes + WarpClock.EPOCH
        self.put(state, place, "Q", segment << EPOCH_SHIFT | warp << WARP_SHIFT)

    # Questions

    def callback(self, state: State) -> None:
        """Answer the question for which compiled code came back; the same warp goes on."""
        warp = state.get(Block.FAULT_WARP, "i")
        state.put(Block.CURRENT, "I", warp - 1 & 31)
        state.put(Block.STAY, "I", 1)
        reason = self.get(state, Shadow.REASON, "i")
        block = self._caught_up(state)
        if reason in (Reason.SYNC_ACCESS, Reason.SYNC_INSTRUCTION, Reason.WARP_BARRIER):
            mask = state.get(Block.FAULT_ADDRESS, "Q")
            synchronise(self, state, block, warp, [lane for lane in range(LANES) if mask >> lane & 1], reason)
        else:
            self._judge(state, block, warp, reason)

    def _caught_up(self, state: State) -> BlockOrder:
        """The order of the state's block, with the barriers and meetings since the last question."""
        block = self.order.block(self.get(state, Shadow.BLOCK, "I") - 1)
        data = ctypes.string_at(state.shadow + Shadow.WARP_CLOCKS, state.count * WarpClock.nbytes)
        base = self.get(state, Shadow.BASE)  # warps before it have not begun with this block
        fields = [struct.unpack_from("<QQQQ", data, number * WarpClock.nbytes) for number in range(state.count)]
        fields = [own if own[0] > base else (0, 0, 0, 0) for own in fields]
        most = max(fields, key=lambda own: own[3])
        block.barrier(most[3], most[1] >> EPOCH_SHIFT)
        for number, own in enumerate(fields):
            if own[2] > own[1]:
                block.warp_met(number, own[2])
        return block

    def view(self, state: State, block: BlockOrder, thread: Thread) -> Clock:
        """All that a thread knows, itself included."""
        warp, lane = thread
        number = block.block
        current, floor, meeting = (
            self.own(state, warp, offset) >> EPOCH_SHIFT
            for offset in (WarpClock.EPOCH, WarpClock.BLOCK_FLOOR, WarpClock.WARP_FLOOR)
        )
        mine = {(number, warp, lane): current, number: floor - 1, (number, warp): meeting - 1}
        return join(block.clock(thread), mine)

    # What orders threads

    @staticmethod
    def polls(state: State) -> None:
        """A thread looks at what others write: it probably waits."""
        state.put(Block.BUDGET, "i", state.get(Block.BUDGET, "i") - POLL)

    @staticmethod
    def value(state: State, warp: int, operand: Any, lane: int) -> int:
        """The number that an operand is in a lane; -1 where that is not known."""
        if isinstance(operand, Immediate):
            return operand.bits
        name = getattr(operand, "name", None)
        return state.register(warp, name)[lane] if name in state.code.registers.offsets else -1

    # What may be wrong

    def _judge(self, state: State, block: BlockOrder, warp: int, reason: int) -> None:
        tag, lane = self.get(state, Shadow.WORD), self.get(state, Shadow.LANE, "i")
        record = state.get(Block.FAULT_RECORD, "Q")
        segment = tag >> EPOCH_SHIFT
        owner = int(self.store.owners[segment & (1 << EPOCH_BITS) - 1]) - 1
        other = (owner, (tag & WARP) >> WARP_SHIFT, tag & LANE)
        if reason != Reason.UNINITIALISED and self._ordered(state, block, (warp, lane), tag, other):
            self._ask_no_more(state, record)
            return
        plane = {Reason.READER: 1, Reason.EARLIER_READER: 2}.get(Reason(reason), 0)
        if reason != Reason.WRITER or not self._same_value(state, record, warp, lane, tag, other):
            self.reporter.note(state, record, warp, lane, reason, tag, other, self.get(state, Shadow.HOST))
        self._forgive(state, plane)
        self._ask_no_more(state, record)

    def _ordered(
        self, state: State, block: BlockOrder, thread: Thread, tag: int, other: tuple[int, int, int]
    ) -> bool:
        warp, lane = thread
        segment, several = tag >> EPOCH_SHIFT, bool(tag & SEVERAL_LANES)
        if not knows(block.clock(thread), other, segment, several):
            return False
        mine = [block.own.get((warp, n), block.common) for n in range(LANES)]
        broad = all(knows(clock, other, segment, True) for clock in {id(clock): clock for clock in mine}.values())
        if broad:
            key = segment << EPOCH_SHIFT | WHOLE_WARP | warp
        else:
            key = segment << EPOCH_SHIFT | warp << WARP_SHIFT | lane | (tag & (LANE | SEVERAL_LANES)) << 10
        slot = (key * ORDER_HASH & _WORD) >> (64 - ORDER_CACHE_BITS)
        ctypes.memmove(self.get(state, Shadow.ORDER_CACHE) + 8 * slot, struct.pack("<Q", key), 8)
        self.put(state, Shadow.CACHE_USED, "i", 1)
        return True

    def _forgive(self, state: State, plane: int) -> None:
        """Take the memory in question to be fine from now on."""
        place = self.get(state, Shadow.WORD_ADDRESS) + plane * self.get(state, Shadow.STRIDE)
        fine = self.get(state, Shadow.BASE) if plane == 0 and self._is_own(state) else 0
        ctypes.memmove(place, struct.pack("<Q", fine), 8)

    def _is_own(self, state: State) -> bool:
        """Whether no other block reaches the memory in question, whose tags begin with the block."""
        host, shared = self.get(state, Shadow.HOST), bool(self.reporter.states)
        return any(
            low <= host < low + nbytes and not (shared and kind == 1)
            for low, nbytes, _, _, kind in self.owned[state.address]
        )

    def _same_value(
        self, state: State, record: int, warp: int, lane: int, tag: int, other: tuple[int, int, int]
    ) -> bool:
        """Whether two plain stores write the same number, which does no harm; the lanes of one instruction, too."""
        statements = state.code.graph.statements
        mine: Any = statements[state.code.statement_at(record)]
        place = tag >> STATEMENT_SHIFT & 0xFFFF
        theirs: Any = statements[place] if place < len(statements) else None
        if mine.form.opcode != "st" or getattr(theirs, "form", None) is None or theirs.form.opcode != "st":
            return False
        if len(mine.operands) != 2:
            return False
        size, host = mine.form.type.bits // 8, self.get(state, Shadow.HOST)
        items = getattr(mine.operands[1], "items", mine.operands[1:])
        item = items[host % (size * len(items)) // size]  # accesses are aligned to all that they take
        value = self.value(state, warp, item, lane) & (1 << 8 * size) - 1
        block = self.get(state, Shadow.BLOCK, "I") - 1
        current = self.own(state, warp, WarpClock.EPOCH) >> EPOCH_SHIFT
        if theirs is mine and other[:2] == (block, warp) and tag >> EPOCH_SHIFT == current:
            before = self.value(state, warp, item, other[2]) & (1 << 8 * size) - 1
        else:
            before = int.from_bytes(ctypes.string_at(host - host % size, size), "little")
        return value == before

    def _ask_no_more(self, state: State, record: int) -> None:
        """An instruction that asks again and again is not judged any more; what else it might do is not known."""
        asked = self.asked[record] = self.asked.get(record, 0) + 1
        statement = state.code.statement_at(record)
        found = self.reporter.has(statement)
        if asked < (PATIENCE if found else 1000 * PATIENCE):
            return
        code = state.code
        codes = code.records[code.offsets.index(record - code.base)].op.codes
        place = record + struct.calcsize("<Q" + codes) - 4
        data = ctypes.string_at(place, 4)
        self.spared.append((place, data))
        ctypes.memmove(place, struct.pack("<I", int.from_bytes(data, "little") | SUPPRESSED), 4)
        if not found:
            self.reporter.incomplete(state, statement)

    # The end

    def release(self) -> None:
        """Put everything back."""
        for place, data in self.spared:
            ctypes.memmove(place, data, len(data))
        for buffer in self.fresh:
            unwritten = np.repeat(self._plane(buffer) == UNWRITTEN, 1 << self.grain)[: buffer.nbytes]
            buffer.owner.unwritten = unwritten if unwritten.any() else None  # type: ignore[attr-defined]
        if not self.poisoned:
            self.store.give(self.arrays)
        if int(self.store.counter[0]) >> EPOCH_BITS:
            self.reporter.overflow()
        self.store.lock.release()

    def finish(self, fault: EmulationError | None = None) -> None:
        """Raise the first finding, if there is one; ``fault`` ended the kernel early."""
        findings = self.reporter.bugs()
        into = _collected.get()
        if into is not None:
            into.extend(findings)
        elif findings:
            raise raised(findings, self.launch) from fault



