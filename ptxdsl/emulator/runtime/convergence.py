"""Lanes of a warp that come to a ``.sync`` instruction at different places: ``shfl.sync`` in both arms of a branch.

A ``.sync`` instruction makes a thread wait until all threads of its member mask that have not exited have executed
one with the same qualifiers and the same mask, wherever that stands; a barrier without ``.aligned`` waits for the
threads of the warp before it counts the warp. Compiled code only knows lanes that come to one instruction together,
which is how nearly all programs are. It stops where some are missing: the lanes that came are set aside here, at a
priority behind all blocks, and the others go on. When the last of them has come, or ended, the instruction runs once
over all of them (:mod:`.converged`), and each lane resumes behind its instruction. Where none can come any more, the
first that wait are at fault. So are lanes that wait at an aligned instruction, unless all that lived come to that same
barrier: compilers rotate loops so that one lane has work to do before it which the others skip. They go on in any case,
since they may be about to say why they diverged (an assertion that fails).

Only conservative code can go on so: nothing is taken to be uniform there, and its blocks end behind such instructions.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, NoReturn

from ...ir import Instruction, Register
from ..machine.layout import LANES, NEVER, Block, Warp
from ..machine.status import Fault
from ..rewrite.builder import WholeWarp
from .arrival import Arrival
from .block_state import BlockState
from .converged import Converged, operands_of
from .faults import failure, set_bits
from .undefined import follow

__all__ = ["converge", "raise_pending"]


def converge(state: BlockState) -> bool:
    """Go on where lanes are missing at an instruction; False where that takes other code. Raises all other faults."""
    kind, warp = state.get(Block.FAULT_KIND, "i"), state.get(Block.FAULT_WARP, "i")
    if kind not in (Fault.MEMBERS, Fault.BARRIER_DIVERGED, Fault.CONVERGENCE):
        if kind != Fault.TRAP:
            raise_pending(state)
        raise failure(state)
    lanes = _Warp(state, warp)
    if kind != Fault.CONVERGENCE and not lanes.arrive(kind):
        return False
    lanes.settle()
    return True


def raise_pending(state: BlockState) -> None:
    """Raise the fault of lanes that wait where no others may come, before one that may follow from it."""
    for warp, arrivals in state.arrivals.items():
        for arrival in arrivals:
            if arrival.aligned:
                _Warp(state, warp).fail(arrival)


class _Warp:
    """The lanes of one warp."""

    def __init__(self, state: BlockState, warp: int) -> None:
        self.state, self.warp = state, warp
        self.arrivals = state.arrivals.setdefault(warp, [])

    @property
    def alive(self) -> int:
        return int(self.state.get_warp(self.warp, Warp.ALIVE, "I"))

    # Lanes come

    def arrive(self, kind: int) -> bool:
        """The active lanes have come to an instruction at which others are missing: set them aside."""
        state = self.state
        pc, active = state.get(Block.FAULT_PC, "Q"), state.get_warp(self.warp, Warp.ACTIVE, "I")
        place = state.code.statement_at(pc)
        statement: Any = state.code.graph.statements[place]
        guard = [1] * LANES if statement.guard is None else state.values(self.warp, statement.guard)
        lanes = [lane for lane in set_bits(active) if guard[lane]]
        reads, members = [], [0xFFFFFFFF] * LANES
        if statement.form.effects.converges == "mask" or statement.form.effects.barrier == "block":
            reads = [state.values(self.warp, operand) for operand in operands_of(statement, False)]
            members = members if kind == Fault.BARRIER_DIVERGED else reads[-1]
        if any(not members[lane] >> lane & 1 for lane in lanes):
            raise failure(state)
        if not state.code.conservative:
            return False
        by_key: dict[Any, Arrival] = {}
        for lane in lanes:
            key = _key(statement, kind, members[lane], [column[lane] for column in reads], place)
            arrival = by_key.get(key)
            if arrival is None:
                aligned = key is None or key[0] == _ALIGNED
                arrival = Arrival(key, statement, place, pc, kind, members[lane], self.alive, aligned)
                by_key[key] = arrival
                self.arrivals.append(arrival)
            arrival.lanes |= 1 << lane
        behind = [lane for lane in set_bits(active) if lane not in lanes]
        if behind:
            self._park(behind, self._behind(place))
        self._park(lanes, len(state.code.graph.blocks))
        return True

    def _behind(self, place: int) -> int:
        """The priority of the block behind a statement."""
        priorities = [node.priority for node in self.state.code.graph.blocks if node.start == place + 1]
        if not priorities:
            raise failure(self.state)
        return priorities[0]

    def _park(self, lanes: list[int], priority: int) -> None:
        for lane in lanes:
            self.state.put_warp(self.warp, Warp.PRIORITIES + 4 * lane, "i", priority)

    # Lanes go

    def settle(self) -> None:
        """Run the instructions whose lanes are complete; the warp goes on with the lanes that come first."""
        counted = [arrival for arrival in self.arrivals if arrival.resume]
        if counted:
            self._run(counted, counted[0].resume)
        for key in dict.fromkeys(arrival.key for arrival in self.arrivals):
            together = [arrival for arrival in self.arrivals if arrival.key == key]
            alive = together[0].alive if together[0].aligned else self.alive
            if key is None or together[0].members & alive & ~_union(together):
                continue
            if together[0].aligned:
                self._join(together)
                return
            self._run(together)
        if self.arrivals and not self.alive & ~_union(self.arrivals) and not any(a.resume for a in self.arrivals):
            self.fail(self.arrivals[0])
        self.state.put_warp(self.warp, Warp.PC, "Q", self.state.code.base)

    def _join(self, arrivals: list[Arrival]) -> None:
        """All lanes have come to one barrier: they execute it together."""
        self.state.put_warp(self.warp, Warp.ACTIVE, "I", _union(arrivals))
        self.state.put_warp(self.warp, Warp.PARKED, "i", NEVER)
        self.state.put_warp(self.warp, Warp.PC, "Q", arrivals[0].pc)
        self.arrivals.clear()

    def _run(self, arrivals: list[Arrival], resume: int = 0) -> None:
        """Run an instruction once for all lanes of these, from its start or from behind a barrier."""
        first = arrivals[0]
        model = max((a.statement for a in arrivals), key=lambda s: len(s.operands))  # with all results that one has
        run = Converged(self.state, self.warp, model, _union(arrivals))
        for arrival in arrivals:
            reads = operands_of(arrival.statement, False)
            run.take(set_bits(arrival.lanes), [self.state.values(self.warp, operand) for operand in reads])
            run.take_undefined(arrival.lanes, reads)
        fault = run.execute(resume)
        if fault == Fault.SOURCE:
            follow(self.state)
            self._run(arrivals)
            return
        if fault is not None:
            self.fail(first, fault)
        if run.waits:
            self.state.put_warp(self.warp, Warp.WAITS, "Q", first.pc)
        else:
            self.state.launch.tool.converged(self.state, self.warp, run.lanes, first.place)
        for arrival in arrivals:
            arrival.resume = run.resume
            if not run.waits:
                self._release(arrival, run)

    def _release(self, arrival: Arrival, run: Converged) -> None:
        lanes = set_bits(arrival.lanes)
        run.give_undefined(arrival.lanes, operands_of(arrival.statement, True), arrival.place)
        for operand, column in zip(operands_of(arrival.statement, True), run.results()):
            if isinstance(operand, Register):
                self.state.set_register(self.warp, operand.name, {lane: column[lane] for lane in lanes})
        self._park(lanes, self._behind(arrival.place))
        self.arrivals.remove(arrival)

    def fail(self, arrival: Arrival, kind: int | None = None) -> NoReturn:
        """These lanes will wait for ever."""
        state = self.state
        state.put(Block.FAULT_KIND, "i", arrival.fault if kind is None else kind)
        state.put(Block.FAULT_WARP, "i", self.warp)
        state.put(Block.FAULT_LANE, "i", set_bits(arrival.lanes)[0])
        state.put(Block.FAULT_PC, "Q", arrival.pc)
        state.put(Block.FAULT_ADDRESS, "Q", arrival.members)
        state.put_warp(self.warp, Warp.ACTIVE, "II", arrival.lanes, arrival.alive)
        raise failure(state)


def _union(arrivals: list[Arrival]) -> int:
    return reduce(or_, (arrival.lanes for arrival in arrivals), 0)


_ALIGNED = "aligned"


def _key(statement: Instruction, kind: int, members: int, reads: list[int], place: int) -> tuple[Any, ...] | None:
    """What lanes that converge have in common; None at instructions that they may only come to together."""
    form = statement.form
    if isinstance(statement, WholeWarp):
        return None
    if kind == Fault.MEMBERS:
        return (form.mnemonic, members) if form.effects.converges == "mask" else None
    if form.effects.barrier != "block":
        return None
    if form.effects.converges:
        return _ALIGNED, place, *reads
    what = next(token for token in form.tokens if token in ("sync", "arrive", "popc", "and", "or"))
    return what, *(reads[:-1] if form.effects.uniform else reads)
