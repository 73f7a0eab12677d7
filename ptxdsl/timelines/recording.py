"""What warps of a launch do, recorded while the emulator runs it.

The kernel is lowered with stops: where a basic block begins, which says the way of a warp through the program, and
around each statement by which warps synchronise, or of which only the registers say what it moves. There the phases of
barriers and mbarriers are followed. Attempts of a wait that fail, and the loop around them, are not recorded: the model
says how long the wait is.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..emulator.instructions.instrumentation import Stop
from ..emulator.instructions.lowering import Lowering
from ..emulator.machine.layout import LANES, SHARED_START, Block, Cluster, Warp
from ..emulator.outcomes.stops import Site, Sites
from ..emulator.runtime.block_state import BlockState, LaunchState
from ..emulator.runtime.faults import index_in, set_bits
from ..emulator.runtime.tool import Tool
from ..emulator.tools.tensor_boxes import box_bytes
from ..ir import Address, Call, Instruction
from ..isa.instruction_descriptors import InvalidDescriptor, decode
from .events import BlockRecord, Item, LaunchRecord, Moment, Run, Step, WarpKey
from .phases import BarrierPhases, MbarrierPhases

__all__ = ["Recorder", "Stops"]

_GROUPS = ("async_group", "bulk_group", "wgmma_group", "tcgen05_wait")


def _seen(statement: Instruction | Call) -> str:
    """Why there are stops around a statement: barrier, mbarrier, sized or guarded; "" where there are none."""
    if isinstance(statement, Call):
        return ""
    effects = statement.form.effects
    kinds = {access.kind for access in effects.accesses}
    if effects.barrier in ("block", "cluster"):
        return "barrier"
    if "mbarrier" in kinds:
        return "mbarrier"
    if effects.completes and (kinds & {"bytes", "tensor"} or statement.operand("idesc") is not None):
        return "sized"
    asynchronous = effects.completes or effects.commits or effects.waits in _GROUPS
    return "guarded" if statement.guard is not None and asynchronous else ""


class Stops:
    """The probe: where a launch stops."""

    def __init__(self) -> None:
        self._starts: frozenset[int] | None = None

    def starts(self, graph: Any) -> frozenset[int]:
        """The statements at which a basic block begins."""
        if self._starts is None:
            self._starts = frozenset(block.start for block in graph.blocks)
        return self._starts

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        if low.place in self.starts(low.graph) or _seen(statement):
            low.emit(Stop())

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        if _seen(statement):
            low.emit(Stop())


class _Pending(NamedTuple):
    """A statement that a warp is about to execute: its site, arrival and amount, the mbarriers it names."""

    site: Site
    moment: Moment
    generation: list[Moment]
    barrier: tuple[Any, ...]
    on: str
    amount: int
    mbarriers: list[MbarrierPhases]
    hosts: list[int]


class Recorder(Tool[BlockState]):
    """Records chosen blocks of one launch: at most ``limit`` items."""

    def __init__(self, launch: LaunchState, code: Any, chosen: Sequence[int], limit: int) -> None:
        self.launch, self.code, self.limit = launch, code, limit
        config, statements = launch.config, list(code.graph.statements)
        self.record = LaunchRecord(launch.spaces.function.name, config.grid, config.block, statements)
        self.record.blocks = {n: BlockRecord(n, index_in(config.grid, n)) for n in chosen}
        self.items = 0
        self.sites = Sites(launch, code)
        self._stops = dict(self._numbered())
        self._ends = _segments(code.graph, statements)
        self._starts = frozenset(block.start for block in code.graph.blocks)
        self._pending: dict[WarpKey, dict[int, _Pending | None]] = defaultdict(dict)
        """By place: of a warp whose lanes have diverged, some may wait at a barrier while others go on."""
        self._polls: dict[WarpKey, tuple[int, int]] = {}
        self._barriers: dict[tuple[Any, ...], BarrierPhases] = {}
        self._arrived: dict[tuple[tuple[Any, ...], WarpKey], list[Moment]] = {}
        self._mbarriers: dict[int, MbarrierPhases] = {}

    def _numbered(self) -> Any:
        """By the address of each stop its statement, and whether it is the one behind it."""
        description, known = self.code.description, set[int]()
        starts = {block.start for block in self.code.graph.blocks}
        for placed, offset in zip(description.micro_ops, description.offsets):
            place = placed.statement
            if isinstance(placed.op, Stop):
                yield self.code.base + offset, (place, place in known)
                known.add(place)
        assert starts <= known

    def connect(self, states: list[BlockState]) -> None:
        for state in states:
            self.sites.clusters[state.address] = states

    def callback(self, state: BlockState) -> None:
        """A warp is at a stop."""
        block = self.record.blocks.get(state.block)
        if block is None or self.record.left_out:
            return
        warp = state.get(Block.FAULT_WARP, "i")
        place, behind = self._stops[state.get(Block.FAULT_PC, "Q")]
        items = block.warps.setdefault(warp, [])
        size = len(items)
        if behind:
            self._after(state, warp, place, items)
            self._run(items, place + 1)
        else:
            if place in self._starts:
                self._run(items, place)
            if self._ends[place] == place:
                self._before(state, warp, place)
        self.items += len(items) - size
        if self.items > self.limit:
            self.record.left_out = f"what comes after the first {self.limit:,} events (limit=) is left out"

    def converged(self, state: BlockState, warp: int, lanes: int, place: int) -> None:  # noqa: ARG002
        block = self.record.blocks.get(state.block)
        if block is None or self.record.left_out:
            return
        pending = self._pending[state.block, warp]
        for each in [n for n, one in pending.items() if n == place or (one is not None and one.barrier)]:
            self._after(state, warp, each, block.warps.setdefault(warp, []))

    def _run(self, items: list[Item], first: int) -> None:
        end = self._ends.get(first, first)
        if end > first:
            items.append(Run(first, end))

    # Before a statement

    def _before(self, state: BlockState, warp: int, place: int) -> None:
        key, statement = (state.block, warp), self.record.statements[place]
        assert isinstance(statement, Instruction)
        effects = statement.form.effects
        if effects.barrier and self._pending[key].get(place) is not None:
            return  # lanes that have waited for others of the warp come to it again
        lanes = self.sites.lanes(state, warp, statement)
        if not lanes:
            self._pending[key][place] = None
            return
        site = Site("", statement, effects.accesses, place)
        barrier, on, generation, moment = (), "", [], Moment(key, place)
        if effects.barrier:
            barrier, on, expected = self._barrier(state, warp, statement)
            if effects.arrives:
                phases = self._barriers.setdefault(barrier, BarrierPhases())
                generation = phases.arrive(moment, LANES, expected)
                self._arrived[barrier, key] = generation
            else:
                generation = self._arrived.get((barrier, key), generation)
        hosts = self._hosts(state, warp, site, lanes)
        for host in hosts:
            if host not in self._mbarriers:
                self._mbarriers[host] = MbarrierPhases(host)
        mbarriers = [self._mbarriers[host] for host in hosts]
        for one in mbarriers:
            one.update()
        if hosts:
            on = self._name(state, hosts[0])
        amount = self._amount(state, warp, site, lanes)
        self._pending[key][place] = _Pending(site, moment, generation, barrier, on, amount, mbarriers, hosts)

    def _barrier(self, state: BlockState, warp: int, statement: Instruction) -> tuple[tuple[Any, ...], str, int]:
        """What a barrier is, its name, and the threads it waits for, 0 for all."""
        if statement.form.effects.barrier == "cluster":
            return ("cluster", self.sites.clusters[state.address][0].block), "barrier of the cluster", 0
        number, threads = statement.operand("a"), statement.operand("b")
        found = int(self.sites.number(state, warp, number)[0]) if number is not None else 0
        expected = int(self.sites.number(state, warp, threads)[0]) if threads is not None else 0
        return ("block", state.block, found), f"barrier {found}", expected

    def _hosts(self, state: BlockState, warp: int, site: Site, lanes: int) -> list[int]:
        """Where the mbarriers lie in host memory that a statement names."""
        found: set[int] = set()
        for access in site.accesses:
            if access.kind == "mbarrier":
                found.update(int(host) for host in self.sites.hosts(state, warp, site, access, lanes))
        mask, states = site.statement.operand("mask"), self.sites.clusters.get(state.address, [])
        if mask is not None and found and states:
            ranks = set_bits(int(self.sites.number(state, warp, mask)[set_bits(lanes)[0]]))
            near = next((each for each in states if 0 <= min(found) - each.shared < self.launch.shared_bytes), state)
            found = {host - near.shared + states[r].shared for host in found for r in ranks if r < len(states)}
        return sorted(found)

    def _name(self, state: BlockState, host: int) -> str:
        """The variable that an mbarrier lies in, and its place there where that has several."""
        states = self.sites.clusters.get(state.address, [state])
        home = next((each for each in states if 0 <= host - each.shared < self.launch.shared_bytes), state)
        offset = host - home.shared + SHARED_START
        for area in self.launch.ranges:
            if area is not None and area.shared:
                inside = offset + area.window - area.address
                size = self.launch.size_of(area)
                if 0 <= inside < size:
                    return f"mbarrier {area.name}" + (f"[{inside // 8}]" if size > 8 else "")
        return f"mbarrier at {offset & (1 << Cluster.RANK_BITS) - 1:#x}"

    def _amount(self, state: BlockState, warp: int, site: Site, lanes: int) -> int:
        """The bytes of a copy, the operations of a product with a descriptor; 0 where neither is known."""
        statement = site.statement
        size, descriptor = statement.operand("size"), statement.operand("idesc")
        chosen = set_bits(lanes)
        if descriptor is not None:
            return self._operations(site.place, int(self.sites.number(state, warp, descriptor)[chosen[0]]))
        if size is not None:
            return int(sum(int(self.sites.number(state, warp, size)[lane]) for lane in chosen))
        for access in statement.form.effects.accesses:
            operand = statement.operands[access.operand]
            if access.kind == "tensor" and isinstance(operand, Address):
                found = self.sites.number(state, warp, operand.base)
                return sum(self._box(int(found[lane]) + operand.offset, statement) for lane in chosen)
            if access.kind == "elements" and statement.form.effects.completes:
                return access.nbytes * len(chosen)
        return 0

    def _box(self, address: int, statement: Instruction) -> int:
        for area in self.launch.ranges:
            if area is not None and 0 <= address - area.address < area.nbytes and area.place:
                data = ctypes.string_at(address - area.address + area.place, 64)
                return box_bytes(data, statement.form.tokens)
        return 0

    def _operations(self, place: int, word: int) -> int:
        ops = (placed.op for placed in self.code.description.micro_ops if placed.statement == place)
        variants = [op.variant for op in ops if hasattr(op, "variant")]
        try:
            product = decode(variants[0], word & 0xFFFFFFFF)
        except InvalidDescriptor:  # which the product itself says
            return 0
        return 2 * product.m * product.n * product.k

    # Behind it

    def _after(self, state: BlockState, warp: int, place: int, items: list[Item]) -> None:
        key = (state.block, warp)
        done = self._pending[key].pop(place, None)
        if done is None:
            items.append(Run(place, place + 1))
            return
        effects = done.site.statement.form.effects
        if effects.waits == "mbarrier":
            self._waited(state, warp, items, done)
            return
        self._polls.pop(key, None)
        if any(access.kind == "mbarrier" and access.writes and not access.reads for access in done.site.accesses):
            for host in done.hosts:  # it begins, or is no more
                self._mbarriers.pop(host, None)
            items.append(Run(place, place + 1))
            return
        arrives = (done.moment,) if effects.arrives else ()
        completes: tuple[Moment, ...] = ()
        if done.mbarriers and (effects.completes or effects.commits):
            completes = (done.moment,)
        waits = done.generation if effects.barrier and effects.waits == effects.barrier else None
        if waits is not None:
            self._barriers[done.barrier].end(done.generation)
        if arrives or completes:
            for one in done.mbarriers:
                one.add(done.moment)
        for one in done.mbarriers:
            one.update()
        items.append(Step(place, arrives, completes, waits, done.on, done.amount))

    def _waited(self, state: BlockState, warp: int, items: list[Item], done: _Pending) -> None:
        """A warp has asked whether phases of mbarriers are over."""
        key, place = (state.block, warp), done.site.place
        polled = self._polls.get(key)
        if polled is not None and polled[0] == place:
            del items[polled[1] :]
        else:
            self._polls[key] = place, len(items)
        if state.get_warp(warp, Warp.WAITS_AT, "Q"):
            return
        self._polls.pop(key)
        moments: list[Moment] = []
        for one in done.mbarriers:
            one.update()
            moments += one.ended()
        items.append(Step(place, (), (), moments, done.on))


def _segments(graph: Any, statements: Sequence[Instruction | Call]) -> dict[int, int]:
    """By statement the first one from it on that has stops around it, or the end of its basic block."""
    ends: dict[int, int] = {}
    for block in graph.blocks:
        end = block.stop
        for place in range(block.stop - 1, block.start - 1, -1):
            if _seen(statements[place]):
                end = place
            ends[place] = end
    return ends
