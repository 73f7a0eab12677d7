"""A pass of all warps of a block without checks: what each warp would check is checked once, for all of them.

Between two barriers a block function runs the warps one after the other, and each checks its accesses (bounds,
alignment, indices that wrap) and its bounds on an index (``if (i < n)``). In the inside of a grid all of these hold.
So where the code up to the next barrier has no loop and no way that depends on data, the numbers that addresses and
bounds are made of are computed before the loop over the warps, as vectors with an element for each warp. If every check
holds for every warp, the loop runs without any: accesses take their host addresses from these vectors, and predicates
are known. Else the code with checks runs, as if nothing had been, so a fault is found where it always was.

It is no help where addresses depend on what was loaded, where warps have lanes that others lack, and in what the
sanitizer has added. A bound that holds in some warps of each block only costs the attempt.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from llvmlite import ir

from ...machine_code.host import vector_registers
from ..codegen.handler import Handler, Lines, i32, i64, pointer
from ..codegen.segments import LINE, lines_of
from ..instructions.addresses import AccessFlags
from ..instructions.control import Branch, Exit, Jump
from ..instructions.data import Compute, WrapCheck
from ..instructions.memory import Load, LoadParameter, Store
from ..instructions.micro_op import MicroOp
from ..instructions.operand_classes import ABSENT, ABSOLUTE, NEGATED, SINK, OperandClass
from ..machine.layout import LANES, Warp
from .accumulators import in_groups, opaque
from .block_numbers import BlockNumbers, Unsuited
from .function_builder import BlockFunction
from .jammed_warps import JammedWarp, fetched_before, warps_at_once
from .plan import RETIRED, BlockBarrier, Plan, PlannedBlock, PlannedOp, loop_cost, votes
from .prefetching import distance_ahead
from .row_micro_ops import ComputeRows, RowWrapCheck
from .row_plan import picked

__all__ = ["GLOBAL", "BlockPass", "emit_block_pass", "suits_passes"]

MAX_OPS = 160
"""Micro-ops of a pass: its code is there twice."""
GLOBAL = 1
"""The spaces of an access that is of global memory only."""


class Region(Protocol):
    """The code from a barrier, or from the kernel's entry, to the next barriers."""

    h: BlockFunction
    plan: Plan
    start: int
    first: PlannedBlock
    at_barrier: BlockBarrier | None
    ends: dict[int, None]
    all_warps: ir.Block
    common: tuple[str, ...]

    def load_registers(self) -> None: ...

    def emit_op(self, op: MicroOp) -> None: ...


def emit_block_pass(region: Region, hoists: bool) -> bool:
    """Emit a pass without checks at the head of a region, where that can be done; go on where checks are needed.

    A region that ``hoists`` loads over the loop over the warps has one only where the order of its micro-ops is better,
    or several warps run at once.
    """
    plan, start = region.plan, region.start
    if plan.warps == 1 or not suits_passes(plan) or (start >= 0 and plan.blocks[start].waits_for_cluster):
        return False
    made = BlockPass(region)
    try:
        made.plan_ways()
        if hoists and not made.groups and made.at_once == 1:
            return False
        made.check()
    except Unsuited:
        return False
    made.emit()
    return True


def suits_passes(plan: Plan) -> bool:
    """Whether all warps of a block have the same lanes, and do the same in front of the kernel."""
    return plan.tail == plan.whole and not plan.leaves and not plan.prologue


class _Host(NamedTuple):
    """A host address: a number, or one for each warp, and what is to be added."""

    base: Any
    offset: int


class BlockPass(BlockNumbers):
    """The pass of one region."""

    reorders = True
    """Whether its micro-ops may be put in another order."""

    def __init__(self, region: Region) -> None:
        super().__init__(region.h, region.start)
        self.region = region
        self.ops: list[PlannedOp] = []
        self.taken: dict[int, bool] = {}
        """Whether a branch is taken, in all lanes of all warps, by its number among the ops."""
        self.cost = 0
        """What the loops that it is a turn of take of the block's budget."""
        self.end, self.number = RETIRED, 0
        self.groups: list[list[int]] = []
        """The numbers of the ops in the order in which they are made, if that is another one (:mod:`.accumulators`)."""
        self.at_once = 1
        """How many warps run side by side (:mod:`.jammed_warps`)."""
        self.hosts: dict[int, list[_Host]] = {}
        """Host addresses, by the number of the op."""
        self.bases: dict[tuple[int, int], tuple[Any, int, Any]] = {}
        """Those that others are counted from, by the number and the buffer entry that they were computed from."""
        self.lines: dict[int, Lines] = {}
        """How rows are loaded that lie in two cache lines, by the number of the op."""
        self.ahead: dict[int, Any] = {}
        """How far in front of what they store lines are fetched, by the number of the op."""
        self.known: dict[int, list[tuple[int, int]]] = {}
        """Masks that predicates are known to have, by the number of the op that asks."""

    # The way through the region

    def plan_ways(self) -> None:
        """The micro-ops from the region's begin to its end: by the ways with the most accesses."""
        region, plan = self.region, self.plan
        at, barrier = region.first, region.at_barrier
        first = barrier.place + 1 if barrier is not None else 0
        best: dict[int, tuple[int, int]] = {}
        if (barrier is None and at.rendezvous is not None) or not self._explore(at, first, best):
            raise Unsuited
        while True:
            self.ops += at.ops[first:]
            first, number = 0, best[at.number][1]
            terminator = at.terminator
            if isinstance(terminator.op if terminator is not None else None, (Jump, Branch)):
                assert terminator is not None
                self.taken[len(self.ops)] = number == at.targets[0]
                self.ops.append(terminator)
                if self.taken[len(self.ops) - 1]:
                    self.cost += loop_cost(terminator, plan.blocks[number]) * self.warps
            if number == RETIRED or plan.blocks[number].rendezvous is not None:
                break
            at = plan.blocks[number]
        self.end = number
        if self.reorders and all(self._known(planned) for planned in self.ops):
            self.groups = in_groups(plan, self.ops)
            self.at_once = 1 if self.groups else warps_at_once(plan, self.ops, self.cost > 0)
        if len(self.ops) > MAX_OPS and not self.groups:
            raise Unsuited

    def _explore(self, block: PlannedBlock, first: int, best: dict[int, tuple[int, int]]) -> int:
        """The most accesses on a way from a basic block to the region's end; 0 where there is none."""
        best[block.number] = 0, RETIRED
        last = block.terminator.op if block.terminator is not None else None
        if block.divergent or not (last is None or isinstance(last, (Jump, Branch, Exit))):
            return 0
        most, way = (1, RETIRED) if isinstance(last, Exit) else (0, RETIRED)
        for number in reversed(block.successors):
            found = self._arrives(self.plan.blocks[number], best)
            if found > most:
                most, way = found, number
        if most:
            most += sum(isinstance(planned.op, (Load, Store)) for planned in block.ops[first:])
        best[block.number] = most, way
        return most

    def _arrives(self, block: PlannedBlock, best: dict[int, tuple[int, int]]) -> int:
        barrier = block.barrier
        if block.turn is not None:
            return 1
        if barrier is not None:
            return int(not barrier.place and not votes(block.ops[0]) and not block.waits_for_cluster)
        return best[block.number][0] if block.number in best else self._explore(block, 0, best)

    # Before the loop

    def check(self) -> None:
        """Compute the numbers and the checks of all warps; raises Unsuited where one cannot be known."""
        h, region = self.h, self.region
        if h.keeps_lanes and region.start in self.plan.after_ends:
            alive = [Handler.load(h, self.warp(number), Warp.ALIVE, i32) for number in range(self.warps)]
            for each in alive:
                self.demand(h.ir.icmp_unsigned("==", each, h.i32(self.plan.whole)))
        if self.cost:
            self.demand(h.ir.icmp_signed(">=", h.get("budget"), h.i32(self.cost)))
        for number, planned in enumerate(self.ops):
            self.number = number
            self.before(number)
            h.begin_unchecked(planned)
            self._foresee(planned)

    def before(self, number: int) -> None:
        """The micro-op of a number comes next."""

    def before_in_warp(self, number: int) -> None:
        """The same in the code of a warp."""

    def _foresee(self, planned: PlannedOp) -> None:
        """What a micro-op does, in all warps."""
        op = planned.op
        if isinstance(op, Compute):
            self.compute(planned, op)
        elif isinstance(op, ComputeRows):
            self.compute_rows(op)
        elif isinstance(op, (Load, Store)):
            self._access(planned, op)
        elif isinstance(op, (WrapCheck, RowWrapCheck)):
            self.wrap_check(op)
        elif isinstance(op, LoadParameter):
            self._forget_last(planned, op.dests)
        elif isinstance(op, Exit) and op.guard:
            self._assume(op.guard, planned.values[0], False)
        elif isinstance(op, Branch):
            self._assume(op.guard, planned.values[0], self.taken[self.number])
        elif not isinstance(op, Jump):
            raise Unsuited

    def _assume(self, guard: OperandClass, slot: int, holds: bool) -> None:
        """A guard holds in all lanes of all warps, or in none."""
        self.demand(self.known_of(guard, slot)[0 if holds else 1])
        mask = self.plan.whole if holds is (guard != NEGATED) else 0
        self.known.setdefault(self.number, []).append((slot, mask))

    def _forget_last(self, planned: PlannedOp, dests: Any) -> None:
        """What a micro-op writes is not known before the loop: its destinations, which come last."""
        there = [dest for dest in dests if dest not in (SINK, ABSENT)]
        self.forget(planned.values[len(planned.values) - len(there) :])

    def _access(self, planned: PlannedOp, op: Load | Store) -> None:
        """Check an access in all warps, and note its host addresses."""
        h, kind, pattern, write = self.h, op.address, op.pattern, isinstance(op, Store)
        count = len(op.sources) if isinstance(op, Store) else len(op.dests)
        nbytes = op.bits // 8 * count
        if not self._known(planned):
            raise Unsuited
        offset, slot = planned.value("offset"), 0 if kind == ABSOLUTE else planned.value("slot")
        extent = nbytes - 1
        if kind == ABSOLUTE:
            bases = [h.i64(0)]
        elif kind.by_row:
            assert pattern is not None
            bases, extent = [self.read(slot, row) for row in range(0, h.present, pattern[1])], planned.values[4]
        else:
            bases, extent = [self.read(slot)], planned.value("extent") if kind.affine else extent
        if op.guard:
            segments = LANES // pattern[1] - 1 if kind.affine and pattern is not None else 0
            self._assume(op.guard, planned.values[len(op.values) + segments + kind.by_row], True)
        back, checks = 0, True
        if planned.bounds is not None:
            back, checks = planned.bounds[0], planned.bounds[1] >= 0
            extent = planned.bounds[1]
        hosts = []
        for base in bases:
            address = self.plus(self._wide(base), offset)
            if checks:
                low, bound, delta = h.limits(planned.value("entry"), write, extent)
                first = h.ir.sub(*self.alike(self.plus(address, -back), low))
                self.demand(h.ir.icmp_unsigned("<", *self.alike(first, bound)))
            else:
                delta = h.limits(planned.value("entry"), write, nbytes - 1)[2]
            if nbytes > 1:
                rest = h.ir.and_(address, self.constant(address, nbytes - 1))
                self.demand(h.ir.icmp_unsigned("==", rest, self.constant(address, 0)))
            key = id(base), planned.value("entry")
            if key not in self.bases:
                self.bases[key] = base, offset, h.ir.add(*self.alike(address, delta))
            _, first_offset, host = self.bases[key]
            hosts.append(_Host(host, _distance(offset, first_offset)))
        self.hosts[self.number] = hosts
        if isinstance(op, Load):
            self._forget_last(planned, op.dests)

    def _known(self, planned: PlannedOp) -> bool:
        """Whether the host addresses of an access follow from numbers of the warps; True of what is none."""
        op = planned.op
        if not isinstance(op, (Load, Store)):
            return True
        letter, write = op.pattern[0] if op.pattern is not None else "", isinstance(op, Store)
        one = isinstance(op, Store) and op.uniform
        known = one or letter == "c" or (not write and (op.address.scalar or letter or self._picks(planned, op)))
        return bool(known) and not op.private and planned.access < 0

    def _picks(self, planned: PlannedOp, op: Load | Store) -> bool:
        """Whether the lanes of a load pick elements of all that lies from the lowest to the highest."""
        if not op.address.affine or op.pattern is not None or planned.row is not None:
            return False
        offsets = self.plan.lane_offsets[planned.value("vector")][: self.h.present]
        return bool(picked(offsets, op.bits, op.bits // 8 * (len(op.dests) if isinstance(op, Load) else 1)))

    def _wide(self, value: Any) -> Any:
        """As 64 bits."""
        vector = isinstance(value.type, ir.VectorType)
        if (value.type.element if vector else value.type).width == 64:
            return value
        return self.h.ir.zext(value, ir.VectorType(i64, self.warps) if vector else i64)

    # The loop

    def emit(self) -> None:
        """Emit the loop over the warps without checks, behind the checks; go on where they fail."""
        h, region = self.h, self.region
        quick, checked = (h.block_named(n) for n in ("unchecked", "checked"))
        h.ir.cbranch(h.likely(self.reduced(self.good)), quick, checked)
        h.ir.position_at_end(quick)
        self.run_warps()
        h.set("barrier", self.end)
        h.ir.branch(region.all_warps)
        region.ends[self.end] = None
        h.ir.position_at_end(checked)

    def run_warps(self) -> None:
        """Emit the loop over the warps."""
        h = self.h
        turn, done = (h.block_named(n) for n in ("next_unchecked", "none_left"))
        places = self._keep_hosts()
        if self.cost:
            h.set("budget", h.ir.sub(h.get("budget"), h.i32(self.cost)))
        if self.plan.varies:
            h.set("alive", self.plan.whole)
            h.set("converged", self.plan.whole)
        before = h.ir.block
        h.ir.branch(turn)
        h.ir.position_at_end(turn)
        position = h.ir.phi(i32)
        position.add_incoming(h.i32(0), before)
        self._warp_pass(position, places)
        after = h.ir.add(position, h.i32(self.at_once))
        position.add_incoming(after, h.ir.block)
        h.ir.cbranch(h.ir.icmp_signed("<", after, h.i32(self.warps)), turn, done)
        h.ir.position_at_end(done)

    def _keep_hosts(self) -> dict[Any, Any]:
        """Where the loop finds the host addresses that others are counted from.

        Values, or places in memory with one for each warp. What a loop loads in its turns to come is fetched there.
        """
        h, places = self.h, dict[Any, Any]()
        for number, hosts in self.hosts.items():
            again = self._bytes_again(self.ops[number])
            for host, offset in hosts:
                if not _is_vector(host):
                    places[host] = host
                    continue
                if host not in places:
                    places[host] = h.alloca(host.type, 64)
                if again:
                    planned = self.ops[number]
                    moves = self.registers[planned.value("slot")][0] in self.plan.along_rows
                    h.prefetching.want(
                        self.end, host, places[host], (offset, again), planned.value("entry"), moves
                    )
            if again >= LINE and vector_registers()[1] == LINE and all(_is_vector(host) for host, _ in hosts):
                moved = [h.ir.add(host, self.constant(host, offset)) for host, offset in hosts]
                self.lines[number] = lines_of(h, moved)
        for host, place in places.items():
            if host is not place:
                h.ir.store(host, place)
        return {host: place if host is place else h.ir.bitcast(place, pointer) for host, place in places.items()}

    def look_ahead(self) -> None:
        """Have stores fetch the lines that the pass stores when it is made for a block further on."""
        h, known = self.h, dict[Any, Any]()
        for number, hosts in self.hosts.items():
            op, base = self.ops[number].op, hosts[0].base
            if isinstance(op, Store):
                if base not in known:
                    first = h.ir.extract_element(base, h.i32(0)) if _is_vector(base) else base
                    nbytes = self.warps * h.present * len(op.sources) * op.bits // 8
                    known[base] = distance_ahead(h, first, nbytes)
                self.ahead[number] = known[base]

    def _bytes_again(self, planned: PlannedOp) -> int:
        """How much lies side by side that a loop loads of global memory in each turn; 0 where it does not."""
        op = planned.op
        if not self.cost or self.end < 0 or self.region.first.turn is not None or not isinstance(op, Load):
            return 0
        if planned.value("flags") >> AccessFlags.SPACES_SHIFT & 0xFF != GLOBAL:
            return 0
        return (op.pattern[1] if op.pattern is not None and op.pattern[0] == "c" else 1) * op.bits // 8 * len(op.dests)

    def _warp_pass(self, position: Any, places: dict[Any, Any]) -> None:
        h, region, plan = self.h, self.region, self.plan
        warps = [JammedWarp(h, number == 0) for number in range(self.at_once)]
        h.lanes, h.masked, h.deopt_point = h.i32(plan.whole), False, None
        for number, warp in enumerate(warps):
            warp.begin(h.warp_at(position) if self.at_once == 1 else h.ir.add(position, h.i32(number)))
            region.load_registers()
            h.checked.clear()
        before, order = self._size(), self.groups or [list(range(len(self.ops)))]
        place, fetching = 0, fetched_before([self.ops[number].op for group in order for number in group], warps)
        for group in order:
            for warp in warps if self.groups else ():
                warp.bases = {base: opaque(h, found) for base, found in warp.bases.items()}
            for number in group:
                for warp in fetching.pop(place, ()):
                    warp.resume()
                    h.prefetching.begin_warp(region.start)
                place += 1
                if self.at_once > 1 and self._is_alike(number):
                    self._emit_once(number, warps, places)
                    continue
                for warp in warps:
                    warp.resume()
                    self._emit(number, warp, places)
        h.straight += self._size() - before if self.groups or self.at_once > 1 else 0
        for warp in reversed(warps):
            warp.resume()
            self.leave()

    def _is_alike(self, number: int) -> bool:
        """Whether all warps load the same."""
        op = self.ops[number].op
        return isinstance(op, Load) and not op.guard and not any(map(_is_vector, next(zip(*self.hosts[number]))))

    def _emit_once(self, number: int, warps: list[JammedWarp], places: dict[Any, Any]) -> None:
        """Emit a load for the first of some warps, whose numbers the others have."""
        h = self.h
        h.captured = []
        warps[0].resume()
        self._emit(number, warps[0], places)
        found, h.captured = h.captured, None
        for warp in warps:
            warp.resume()
            for slot, value in found:
                h.store(value, slot, 0)

    def _size(self) -> int:
        return sum(len(block.instructions) for block in self.h.function.blocks)

    def _emit(self, number: int, warp: JammedWarp, places: dict[Any, Any]) -> None:
        """Emit a micro-op for a warp."""
        h, planned = self.h, self.ops[number]
        self.before_in_warp(number)
        for slot, mask in self.known.get(number, ()):
            h.ir.store(h.i32(mask), h.variable(slot, i32))
        if isinstance(planned.op, (WrapCheck, RowWrapCheck, Exit, Branch, Jump)):
            return
        h.hosts = [_plus(h, warp.base(base, places[base]), offset) for base, offset in self.hosts.get(number, ())]
        h.begin_unchecked(planned)
        h.lines, h.ahead = self.lines.get(number), self.ahead.get(number)
        self.region.emit_op(planned.op)
        h.hosts, h.lines, h.ahead = [], None, None

    def leave(self) -> None:
        """Keep what the next region reads of a warp."""
        h, plan = self.h, self.plan
        block = plan.blocks[self.end] if self.end >= 0 else None
        end = block.rendezvous if block is not None else None
        live = plan.live(end.statement, 0) if end is not None else set[str]()
        kept = h.kept_at.get(self.end, ())
        h.store_kept(name for name in self.region.common if name in live.difference(kept))
        h.store_registers(live.difference(kept))
        h.keep(kept)
        if h.keeps_lanes and block is None:
            h.store(h.i32(0), h.warp, Warp.ALIVE)


def _is_vector(value: Any) -> bool:
    return isinstance(value.type, ir.VectorType)


def _plus(h: BlockFunction, address: Any, offset: int) -> Any:
    return h.ir.add(address, h.i64(offset)) if offset else address


def _distance(offset: int, other: int) -> int:
    """From one offset of 64 bits to the other."""
    return (offset - other + (1 << 63)) % (1 << 64) - (1 << 63)
