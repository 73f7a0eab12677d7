"""Registers of wgmma that are touched too early: a forward data-flow analysis over the control-flow graph.

A product reads and writes its registers at some time between where it stands and the wait for its group, so until then
only products of the same shape may use its accumulators, and nothing may write the registers of its A. The other way
round, `wgmma.fence` stands between what touches registers and a product that uses them, and before the first product.
(PTX ISA manual, "Asynchronous wgmma instructions"; ptxas serialises what breaks this, or inserts waits.)

A register holds the products that may be incomplete on some path, each with the least number of groups committed since.
Copies of an accumulator (``mov``) are followed, since compilers leave such, and count only where the copy is used. What
is found holds on some path; whether a run takes it is for the run to say.
"""

from __future__ import annotations

from typing import NamedTuple

from ...analysis.control_flow import ControlFlowGraph
from ...ir import Immediate, Instruction, Register, elements, registers
from ...isa.fragments import shape_of

__all__ = ["Hazard", "hazards", "touches_of"]

_MOST_GROUPS = 8
"""A wait leaves at most seven groups, so with so many behind it a product is like an older one."""


class Hazard(NamedTuple):
    """At ``place`` a register is used that the statement ``other`` has touched, -1 for none.

    ``kind``: ``pending`` where that is a product which may be incomplete; ``unfenced`` where ``place`` is a product,
    and no fence is between; ``first`` where no fence is before a product at all.
    """

    kind: str
    place: int
    other: int
    register: str


class _State(NamedTuple):
    """Of each register: the products that use it, with the groups committed since, as accumulator or of A; the last
    statement that has touched it with no fence since. ``fenced``: whether there was a fence at all.
    """

    sums: dict[str, dict[int, int]]
    held: dict[str, dict[int, int]]
    touched: dict[str, int]
    fenced: bool

    def copy(self) -> _State:
        sums, held = ({name: dict(found) for name, found in each.items()} for each in (self.sums, self.held))
        return _State(sums, held, dict(self.touched), self.fenced)


def _joined(one: _State | None, other: _State) -> tuple[_State, bool]:
    """What may hold on either path, and whether that is more than before."""
    if one is None:
        return other.copy(), True
    changed = one.fenced and not other.fenced
    for mine, theirs in ((one.sums, other.sums), (one.held, other.held)):
        for name, found in theirs.items():
            into = mine.setdefault(name, {})
            for place, count in found.items():
                if into.get(place, _MOST_GROUPS + 1) > count:
                    into[place] = count
                    changed = True
    for name, place in other.touched.items():
        if name not in one.touched:
            one.touched[name] = place
            changed = True
    return one._replace(fenced=one.fenced and other.fenced), changed


class _Product(NamedTuple):
    """The registers of a product by their use; of its shape products may follow each other."""

    sums: tuple[str, ...]
    held: tuple[str, ...]
    shape: tuple[str, ...]


def _product(statement: Instruction) -> _Product:
    named = {spec.name: operand for spec, operand in zip(statement.form.operands, statement.operands)}
    held = [r.name for name in ("a", "e") if name in named for r in registers(named[name])]
    held = held if len(elements(named["a"])) > 1 or "e" in named else []
    if len(elements(named["a"])) <= 1:  # a descriptor is read where the product stands
        descriptor = {r.name for r in registers(named["a"])}
        held = [name for name in held if name not in descriptor]
    tokens = statement.form.tokens
    kind = next(token for token in tokens if token in ("f16", "f32", "s32"))
    return _Product(tuple(r.name for r in registers(named["d"])), tuple(held), (shape_of(tokens), kind))


class _Analysis:
    def __init__(self, graph: ControlFlowGraph) -> None:
        self.graph = graph
        self.products = {
            place: _product(s) for place, s in enumerate(graph.statements)
            if isinstance(s, Instruction) and s.form.effects.completes == "wgmma_group"
        }
        self.relevant = {name for each in self.products.values() for name in (*each.sums, *each.held)}
        self._follow_copies()
        self.found: dict[tuple[str, int, int], Hazard] = {}

    def _follow_copies(self) -> None:
        """Copies of what products use are relevant too, and copies of these."""
        copies = [(copy[0], copy[1]) for place in range(len(self.graph.statements)) if (copy := self._copy(place))]
        more = True
        while more:
            fresh = {dest for dest, source in copies if source in self.relevant} - self.relevant
            self.relevant |= fresh
            more = bool(fresh)

    def _copy(self, place: int) -> tuple[str, str] | None:
        """Destination and source of a statement that copies a register, for all lanes."""
        statement = self.graph.statements[place]
        if not isinstance(statement, Instruction) or statement.form.mnemonic.partition(".")[0] != "mov":
            return None
        if statement.guard is not None or len(statement.operands) != 2:
            return None
        dest, source = statement.operands
        if not isinstance(dest, Register) or not isinstance(source, Register):
            return None
        return dest.name, source.name

    def run(self) -> list[Hazard]:
        blocks = self.graph.blocks
        before: list[_State | None] = [None] * len(blocks)
        before[0] = _State({}, {}, {}, False)
        work = [0]
        while work:
            number = work.pop()
            state = before[number]
            assert state is not None
            after = state.copy()
            for place in range(blocks[number].start, blocks[number].stop):
                after = self._step(after, place)
            for successor in blocks[number].successors:
                before[successor], changed = _joined(before[successor], after)
                if changed:
                    work.append(successor)
        return sorted(self.found.values(), key=lambda hazard: (hazard.place, hazard.other))

    def _note(self, kind: str, place: int, other: int, register: str) -> None:
        self.found.setdefault((kind, place, other), Hazard(kind, place, other, register))

    def _step(self, state: _State, place: int) -> _State:
        statement = self.graph.statements[place]
        effects = statement.form.effects if isinstance(statement, Instruction) else None
        if place in self.products:
            return self._multiply(state, place)
        if effects is not None and effects.fence == "wgmma":
            return state._replace(touched={}, fenced=True)
        if effects is not None and effects.commits == "wgmma_group":
            for found in (*state.sums.values(), *state.held.values()):
                found.update((each, min(count + 1, _MOST_GROUPS)) for each, count in found.items())
            return state
        if effects is not None and effects.waits == "wgmma_group":
            left = statement.operands[0] if isinstance(statement, Instruction) else None
            return self._wait(state, left.bits if isinstance(left, Immediate) else 0)
        self._touch(state, place)
        return state

    @staticmethod
    def _wait(state: _State, left: int) -> _State:
        sums, held = (
            {name: kept for name, found in each.items() if (kept := {p: n for p, n in found.items() if n <= left})}
            for each in (state.sums, state.held)
        )
        return state._replace(sums=sums, held=held)

    def _touch(self, state: _State, place: int) -> None:
        """An instruction that is no product."""
        op, copy = self.graph.def_use[place], self._copy(place)
        if copy is not None and copy[1] in state.sums and copy[1] in self.relevant:
            dest, source = copy
            if dest not in state.sums:
                state.sums[dest] = dict(state.sums[source])
            return
        written = {r.name for r in op.writes} & self.relevant
        for name in ({r.name for r in op.uses} | written) & self.relevant:
            for other in state.sums.get(name, ()):
                self._note("pending", place, other, name)
            for other in state.held.get(name, ()) if name in written else ():
                self._note("pending", place, other, name)
            state.touched[name] = place
        for name in written:
            state.sums.pop(name, None)
            state.held.pop(name, None)

    def _multiply(self, state: _State, place: int) -> _State:
        product = self.products[place]
        if not state.fenced:
            self._note("first", place, -1, "")
            state = state._replace(fenced=True)
        for name in (*product.sums, *product.held):
            if name in state.touched:
                self._note("unfenced", place, state.touched.pop(name), name)
        for name in product.sums:
            for other in state.sums.get(name, ()):
                if self.products[other].shape != product.shape or self.products[other].sums != product.sums:
                    self._note("pending", place, other, name)
            for other in state.held.get(name, ()):
                self._note("pending", place, other, name)
            state.sums[name] = {place: 0}
        for name in product.held:
            for other in state.sums.get(name, ()):
                self._note("pending", place, other, name)
            state.held.setdefault(name, {})[place] = 0
        return state


def hazards(graph: ControlFlowGraph) -> list[Hazard]:
    """The registers of a function's products that are touched too early on some path, in the order of the text."""
    return _Analysis(graph).run()


def touches_of(found: list[Hazard]) -> dict[int, str]:
    """The statements whose execution must be known to say whether a hazard is one in a run, and what they are."""
    return {hazard.other: "product" if hazard.kind == "pending" else "touch" for hazard in found if hazard.other >= 0}
