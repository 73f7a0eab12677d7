"""Lanes of a warp that meet at different instructions: ``shfl.sync`` or ``barrier.sync`` in both arms of a branch.

A ``.sync`` instruction makes a thread wait until all threads of its member mask that have not exited have executed
one with the same qualifiers and the same mask, wherever that stands; a barrier without ``.aligned`` waits for the
threads of the warp before it counts the warp. Compiled code only knows lanes that come to one instruction together,
which is how nearly all programs are. It stops where some are missing, and what happens then happens here: the lanes
that came are set aside, at a rank behind all blocks, and the others go on. When the last of them has come, or ended,
each gets its result; where none can come any more, the first who wait are at fault. So is who waits at an aligned
instruction, but the others go on nevertheless, since they may be about to say why they part (an assertion that
fails).

Only plain code can go on so: nothing is taken to be uniform there, and its blocks end behind such instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add, and_, or_, xor
from typing import TYPE_CHECKING, Any, NoReturn, Union

from ...ir import Immediate, Instruction, Not, Operand, Register
from ...isa import Form
from .faults import failure
from ..machine.layout import LANES, Barrier, Block, Fault, Warp

if TYPE_CHECKING:
    from ..machine.block_state import State

__all__ = ["Group", "accuse", "meet"]


@dataclass
class Group:
    """Lanes that wait at an instruction for others of their warp. ``alive`` are those that lived when these came.

    ``key`` is what the others must have in common with them, None where nobody may come; ``arrived`` tells that the
    warp has been counted at a barrier, and waits for other warps.
    """

    key: tuple[Any, ...] | None
    statement: Instruction
    place: int
    record: int
    fault: int
    members: int
    alive: int
    lanes: int = 0
    arrived: bool = False


def meet(state: State) -> bool:
    """Go on where lanes are missing at an instruction; False where that takes plain code. Raises all other faults."""
    kind, warp = state.get(Block.FAULT_KIND, "i"), state.get(Block.FAULT_WARP, "i")
    if kind not in (Fault.MEMBERS, Fault.BARRIER_DIVERGED, Fault.MEETING):
        if kind != Fault.TRAP:
            accuse(state)
        raise failure(state)
    meeting = _Meeting(state, warp)
    if kind != Fault.MEETING and not meeting.come(kind):
        return False
    meeting.settle()
    return True


def accuse(state: State) -> None:
    """Raise the fault of lanes that wait where nobody may come, before one that may follow from it."""
    for warp, groups in state.meetings.items():
        for group in groups:
            if group.key is None:
                _Meeting(state, warp).blame(group)


class _Meeting:
    """The lanes of one warp."""

    def __init__(self, state: State, warp: int) -> None:
        self.state, self.warp = state, warp
        self.groups = state.meetings.setdefault(warp, [])

    @property
    def alive(self) -> int:
        return int(self.state.get_warp(self.warp, Warp.ALIVE, "I"))

    def values(self, operand: Operand) -> list[int]:
        """An operand in each lane."""
        if isinstance(operand, Immediate):
            return [operand.bits] * LANES
        if isinstance(operand, Not):
            return [bit ^ 1 for bit in self.state.register(self.warp, operand.predicate.name)]
        assert isinstance(operand, Register)
        return self.state.register(self.warp, operand.name)

    # Lanes come

    def come(self, kind: int) -> bool:
        """The active lanes have come to an instruction at which others are missing: set them aside."""
        state = self.state
        record, active = state.get(Block.FAULT_RECORD, "Q"), state.get_warp(self.warp, Warp.ACTIVE, "I")
        place = state.code.statement_at(record)
        statement: Any = state.code.graph.statements[place]
        guard = [1] * LANES if statement.guard is None else self.values(statement.guard)
        lanes = [lane for lane in range(LANES) if active >> lane & guard[lane]]
        reads = _chosen(statement, False)
        keys: dict[Any, Group] = {}
        members = [0xFFFFFFFF] * LANES if kind == Fault.BARRIER_DIVERGED else self.values(reads[-1])
        if any(not members[lane] >> lane & 1 for lane in lanes):
            raise failure(state)
        if not state.code.plain:
            return False
        for lane in lanes:
            key = _key(statement, kind, members[lane], [self.values(operand)[lane] for operand in reads])
            group = keys.get(key)
            if group is None:
                group = Group(key, statement, place, record, kind, members[lane], self.alive)
                keys[key] = group
                self.groups.append(group)
            group.lanes |= 1 << lane
        behind = [lane for lane in range(LANES) if active >> lane & 1 and lane not in lanes]
        if behind:
            self._park(behind, self._behind(place))
        self._park(lanes, len(state.code.graph.nodes))
        return True

    def _behind(self, place: int) -> int:
        """The rank of the block behind a statement."""
        ranks = [node.rank for node in self.state.code.graph.nodes if node.start == place + 1]
        if not ranks:
            raise failure(self.state)
        return ranks[0]

    def _park(self, lanes: list[int], rank: int) -> None:
        for lane in lanes:
            self.state.put_warp(self.warp, Warp.PLACES + 4 * lane, "i", rank)

    # Lanes go

    def settle(self) -> None:
        """Let go whose company is complete; the warp goes on with the lanes that come first."""
        for group in [group for group in self.groups if group.arrived]:
            self._past_barrier(group, self.state.get_warp(self.warp, Warp.RESULT, "I"))
        for key in dict.fromkeys(group.key for group in self.groups):
            together = [group for group in self.groups if group.key == key]
            here = reduce(or_, (group.lanes for group in together))
            if key is not None and not together[0].members & self.alive & ~here:
                self._complete(together)
        waiting = reduce(or_, (group.lanes for group in self.groups), 0)
        if self.groups and not self.alive & ~waiting and not any(group.arrived for group in self.groups):
            self.blame(self.groups[0])
        self.state.put_warp(self.warp, Warp.PC, "Q", self.state.code.base)

    def _complete(self, groups: list[Group]) -> None:
        if groups[0].fault == Fault.BARRIER_DIVERGED:
            self._arrive(groups)
            return
        inputs: dict[int, list[int]] = {}
        for group in groups:
            columns = [self.values(operand) for operand in _chosen(group.statement, False)[:-1]]
            inputs.update({lane: [column[lane] for column in columns] for lane in _lanes(group.lanes)})
        form = groups[0].statement.form
        results = _OPERATIONS[form.opcode](form, inputs)
        if results is None:
            self.blame(groups[0])
        for group in groups:
            self._let_go(group, {lane: results[lane] for lane in _lanes(group.lanes)})

    def _let_go(self, group: Group, results: dict[int, tuple[int, ...]]) -> None:
        for number, operand in enumerate(_chosen(group.statement, True)):
            if isinstance(operand, Register):
                values = {lane: result[number] for lane, result in results.items()}
                self.state.set_register(self.warp, operand.name, values)
        self._park(_lanes(group.lanes), self._behind(group.place))
        self.groups.remove(group)
        sanitizer = self.state.launch.sanitizer
        if sanitizer is not None:
            sanitizer.reporter.incomplete(self.state, group.place)

    # Barriers

    def _arrive(self, groups: list[Group]) -> None:
        """All lanes of the warp have come to one barrier: count the warp."""
        state, (what, number, count) = self.state, groups[0].key  # type: ignore[misc]
        if number > 15:
            self.blame(groups[0], Fault.BARRIER_NUMBER)
        if count is not None and (count == 0 or count % LANES):
            self.blame(groups[0], Fault.BARRIER_COUNT)
        at = Block.BARRIERS + number * Barrier.SIZE
        arrived, expected = state.get(at + Barrier.ARRIVED, "I"), state.get(at + Barrier.EXPECTED, "I")
        if arrived and expected != (count or 0):
            self.blame(groups[0], Fault.BARRIER_MISMATCH)
        result = self._vote(what, groups, state.get(at + Barrier.RESULT, "I") if arrived else None)
        waiting, bit = state.get(at + Barrier.WAITING, "I") if arrived else 0, 1 << self.warp
        complete = arrived + 1 >= (count // LANES if count else state.get(Block.LIVE, "I").bit_count())
        for group in [*groups] if complete or what == "arrive" else ():
            self._past_barrier(group, result)
        if complete:
            for warp in _lanes(waiting):
                state.put_warp(warp, Warp.RESULT, "I", result)
            state.put(at, "4I", 0, 0, 0, 0)
            state.put(Block.RUNNABLE, "I", state.get(Block.RUNNABLE, "I") | waiting)
            return
        state.put(Block.BARRED, "I", state.get(Block.BARRED, "I") | 1 << number)
        if what != "arrive":
            waiting |= bit
            state.put(Block.RUNNABLE, "I", state.get(Block.RUNNABLE, "I") & ~bit)
            state.put_warp(self.warp, Warp.BARRIER, "i", number)
            state.put_warp(self.warp, Warp.WAITS, "Q", groups[0].record)
            for group in groups:
                group.arrived = True
        state.put(at, "4I", arrived + 1, count or 0, waiting, result)

    def _vote(self, what: str, groups: list[Group], before: int | None) -> int:
        """The barrier's result with this warp's predicates; ``before`` is None for the first warp."""
        if what in ("sync", "arrive"):
            return before or 0
        holds = []
        for group in groups:
            column = self.values(_chosen(group.statement, False)[-1])
            holds += [column[lane] for lane in _lanes(group.lanes)]
        if what == "popc":
            return sum(holds) + (before or 0)
        if what == "and":
            return (0xFFFFFFFF if before is None else before) * all(holds)
        return 0xFFFFFFFF if any(holds) or before else 0

    def _past_barrier(self, group: Group, result: int) -> None:
        value = result if "popc" in group.statement.form.tokens else int(result != 0)
        self._let_go(group, dict.fromkeys(_lanes(group.lanes), (value,)))

    def blame(self, group: Group, kind: int | None = None) -> NoReturn:
        """The lanes of a group will wait for ever."""
        state = self.state
        state.put(Block.FAULT_KIND, "i", group.fault if kind is None else kind)
        state.put(Block.FAULT_LANE, "i", _lanes(group.lanes)[0])
        state.put(Block.FAULT_RECORD, "Q", group.record)
        state.put(Block.FAULT_ADDRESS, "Q", group.members)
        state.put_warp(self.warp, Warp.ACTIVE, "II", group.lanes, group.alive)
        raise failure(state)


def _lanes(mask: int) -> list[int]:
    return [lane for lane in range(LANES) if mask >> lane & 1]


def _chosen(statement: Instruction, written: bool) -> list[Operand]:
    """The operands that a statement writes, or those that it reads."""
    return [value for spec, value in zip(statement.form.operands, statement.operands) if spec.written == written]


def _key(statement: Instruction, kind: int, members: int, reads: list[int]) -> tuple[Any, ...] | None:
    """What lanes that meet have in common; None at instructions that they may only come to together."""
    form = statement.form
    if kind == Fault.MEMBERS:
        return (form.mnemonic, members) if form.opcode in _OPERATIONS else None
    apart = form.opcode == "barrier" and "aligned" not in form.tokens
    if not apart or form.semantics not in ("bar_sync", "bar_arrive", "bar_red"):
        return None
    what = next(token for token in form.tokens if token in ("sync", "arrive", "popc", "and", "or"))
    count = reads[1] if len(reads) > (2 if form.semantics == "bar_red" else 1) else None
    return what, reads[0], count


# What lanes exchange: from the numbers of each lane to its results, None where a lane wants those of one that is gone


Inputs = dict[int, list[int]]
Results = Union[dict[int, tuple[int, ...]], None]


def _nothing(_: Form, inputs: Inputs) -> Results:
    return dict.fromkeys(inputs, ())


def _shuffle(form: Form, inputs: Inputs) -> Results:
    from ..codegen.warp import source_lane

    results: dict[int, tuple[int, ...]] = {}
    for lane, (_, b, c) in inputs.items():
        source, within = source_lane(str(form.modifiers["mode"]), lane, b, c)
        if source not in inputs:
            return None
        results[lane] = inputs[source][0], int(within)
    return results


def _vote(form: Form, inputs: Inputs) -> Results:
    holds = [bits[0] for bits in inputs.values()]
    ballot = sum(bits[0] << lane for lane, bits in inputs.items())
    every, any_ = all(holds), any(holds)
    answers = {"ballot": ballot, "all": every, "any": any_, "uni": every or not any_}
    mode = next(token for token in form.tokens if token in answers)
    return dict.fromkeys(inputs, (int(answers[mode]),))


def _match(form: Form, inputs: Inputs) -> Results:
    same = {lane: sum(1 << other for other in inputs if inputs[other] == value) for lane, value in inputs.items()}
    if "any" in form.tokens:
        return {lane: (mask,) for lane, mask in same.items()}
    whole = sum(1 << lane for lane in inputs)
    return {lane: (mask, 1) if mask == whole else (0, 0) for lane, mask in same.items()}


def _elect(_: Form, inputs: Inputs) -> Results:
    return {lane: (min(inputs), int(lane == min(inputs))) for lane in inputs}


def _redux(form: Form, inputs: Inputs) -> Results:
    assert form.type is not None
    values = [value for (value,) in inputs.values()]
    if form.type.is_float:
        result = _least(form, values)
    else:
        op = next(token for token in form.tokens if token in _REDUCTIONS)
        signed = [value - (value >> 31 << 32) for value in values] if form.type.is_signed else values
        result = reduce(_REDUCTIONS[op], signed) & 0xFFFFFFFF
    return dict.fromkeys(inputs, (result,))


def _least(form: Form, words: list[int]) -> int:
    """The least or greatest of floats, given and returned as bits; of zeros the negative one is less."""
    bits = [word & 0x7FFFFFFF if "abs" in form.tokens else word for word in words]
    numbers = [word for word in bits if word & 0x7FFFFFFF <= 0x7F800000]
    if not numbers or ("NaN" in form.tokens and len(numbers) < len(bits)):
        return 0x7FFFFFFF

    def order(word: int) -> tuple[float, bool]:
        return struct.unpack("<f", struct.pack("<I", word))[0], not word >> 31

    return (min if "min" in form.tokens else max)(numbers, key=order)


_REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": add, "min": min, "max": max, "and": and_, "or": or_, "xor": xor,
}
_OPERATIONS: dict[str, Callable[[Form, Inputs], Results]] = {
    "bar": _nothing, "shfl": _shuffle, "vote": _vote, "match": _match, "elect": _elect, "redux": _redux,
}
