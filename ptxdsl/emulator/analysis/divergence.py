"""What is the same in all lanes: the class of each register, where lanes may part, and where pointers come from.

A register is *uniform* if all live lanes of a warp hold the same number, *affine* if they hold a uniform number plus a
vector that is known once the shape of the block is, else *varying*. The first two live in one scalar, which is why
they must only be written where all live lanes are together. The vector of a uniform register is all zeros, so one
domain serves both: the vector, or VARYING.

The origin of a pointer is the parameter or variable that its address was computed from; an access is checked against
that alone, so that running out of one array into its neighbour is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Union

from ...ir import (
    Address, Call, Immediate, Instruction, Not, Operand, Register, Selected, SpecialRegister, Symbol, Vector,
)
from ...analysis.control_flow import Graph, opcode
from ..machine.layout import LANES
from .statements import Op

__all__ = ["LINEAR", "UNIFORM", "VARYING", "Analysis", "Facts", "Known", "Shape3", "analyse", "special_vector"]

Known = Union[tuple[int, ...], None]
VARYING: Known = None
UNIFORM: tuple[int, ...] = (0,) * LANES
IOTA = tuple(range(LANES))

Shape3 = tuple[int, int, int]
Parting = Callable[[Operand, Callable[[Operand], Known]], bool]
LINEAR = frozenset(("pure", "add", "sub", "copy", "cvt", "shl", "mul", "mad", "mul.wide", "mad.wide"))
"""Rules of instructions that compute each lane by itself."""
MIXED = "?"
"""Origin of an address computed from more than one."""


@dataclass(slots=True, eq=False, repr=False)
class Facts:
    """By register name its vector (absent: never written) and its origin, if any; the blocks where lanes part."""

    known: dict[str, Known] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    parted: set[int] = field(default_factory=set)
    invariant: set[int] = field(default_factory=set)
    """Statements whose results depend on nothing but the launch and the thread's index."""
    private: bool = False
    """Whether local memory has generic addresses, so that one address may mean another place in each lane."""

    def may_be_local(self, space: str, origin: str) -> bool:
        """Whether an access through an address of this origin may go to each lane's own memory."""
        return space == "local" or (self.private and space == "generic" and origin in ("", MIXED))


@cache
def tid_vectors(block: Shape3) -> tuple[Known, Known, Known]:
    """Lane vectors of %tid.x, y, z relative to the warp's first lane, where they are the same in every warp."""
    x, y, z = block
    if x % LANES == 0:
        return IOTA, UNIFORM, UNIFORM
    if LANES % x:
        return VARYING, VARYING, VARYING
    across, rows = [lane % x for lane in IOTA], [lane // x for lane in IOTA]
    if x * y % LANES == 0 or z == 1:
        return _wrapped(across, 32), _wrapped(rows, 32), UNIFORM
    if LANES % (x * y) == 0:
        return _wrapped(across, 32), _wrapped([row % y for row in rows], 32), _wrapped([row // y for row in rows], 32)
    return VARYING, VARYING, VARYING


_MASKS: dict[str, Callable[[int], int]] = {
    "%lanemask_eq": lambda lane: 1 << lane,
    "%lanemask_lt": lambda lane: (1 << lane) - 1,
    "%lanemask_le": lambda lane: (2 << lane) - 1,
    "%lanemask_gt": lambda lane: 0xFFFFFFFF & ~((2 << lane) - 1),
    "%lanemask_ge": lambda lane: 0xFFFFFFFF & ~((1 << lane) - 1),
}


def special_vector(name: str, block: Shape3) -> Known:
    """The lane vector of a special register."""
    if name == "%tid":
        return VARYING
    if name.startswith("%tid."):
        return tid_vectors(block)["xyz".index(name[-1])]
    if name == "%laneid":
        return IOTA
    if name in _MASKS:
        return tuple(_signed(_MASKS[name](lane), 32) for lane in IOTA)
    return UNIFORM


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


_CHANGING = ("%clock", "%globaltimer", "%pm", "%ctaid", "%smid", "%cluster")


class Analysis:
    """The fixpoint: vectors only fall from known to VARYING and blocks only become parted, so it ends."""

    def __init__(
        self, graph: Graph, block: Shape3, origins: dict[str, str], parting: Parting | None = None
    ) -> None:
        self.graph, self.block, self.origins, self.parting = graph, block, origins, parting
        self.facts = Facts()
        self.facts.private = any(op.rule == "copy" and _exposes(op.statement) for op in graph.ops)
        self.split: set[int] = set()
        self.between: dict[int, set[int]] = {}
        self.again = False
        self.used: set[str] = set()

    def run(self) -> Facts:
        self._find_invariants()
        self.again = True
        while self.again:
            self.again = False
            self.used.clear()
            for number in range(len(self.graph.nodes)):
                self._node(number)
        return self.facts

    def _find_invariants(self) -> None:
        """Pure statements over parameters and thread indices whose result is written once."""
        ops = self.graph.ops
        once: set[str] = set()
        again: set[str] = set()
        for op in ops:
            for name, _ in op.writes:
                (again if name in once else once).add(name)
        fixed: set[str] = set()
        for node in self.graph.nodes:
            for number in range(node.start, node.stop):
                op = ops[number]
                if not op.pure or not op.writes:
                    continue
                for operand in op.reads:
                    if not (operand[0] in fixed if operand.__class__ is Register else _fixed(operand, fixed)):
                        break
                else:
                    names = [name for name, _ in op.writes]
                    if again.isdisjoint(names) and len(set(names)) == len(names):
                        fixed.update(names)
                        self.facts.invariant.add(number)

    def _node(self, number: int) -> None:
        node, ops = self.graph.nodes[number], self.graph.ops
        parted, known = number in self.facts.parted, self.facts.known
        for place in range(node.start, node.stop):
            op = ops[place]
            if op.writes:
                self._op(op, parted and place not in self.facts.invariant)
            for name, _ in op.uses:
                if name not in known:
                    self.used.add(name)
        if len(node.successors) > 1 and number not in self.split and self._parts(ops[node.stop - 1]):
            self.split.add(number)
            region = self.graph.region(number, self.between)
            if not region <= self.facts.parted:
                self.facts.parted |= region
                self.again = True

    def _parts(self, last: Op) -> bool:
        guard = last.statement.guard
        if guard is not None and self.vector(guard) is not UNIFORM:
            return self.parting is None or self.parting(guard, self.vector)
        return last.rule == "varying" and opcode(last.statement) == "brx" and self.vector(last.reads[0]) is not UNIFORM

    def _op(self, op: Op, parted: bool) -> None:
        guard = op.statement.guard
        vector = VARYING if parted else self._transfer(op)
        if guard is not None and self.vector(guard) is not UNIFORM:
            vector = VARYING
        origin = self._origin(op)
        for register in op.writes:
            kind = register.type
            plain = (vector is UNIFORM and kind.bits != 128) or (vector is not VARYING and kind.kind != "p")
            self._set(register.name, vector if plain else VARYING, origin)
        if len(op.writes) > 1 and any(self.facts.known[register.name] is VARYING for register in op.writes):
            for register in op.writes:  # what one instruction writes is all in scalars or all in vectors
                self._set(register.name, VARYING, origin)

    def _set(self, name: str, vector: Known, origin: str) -> None:
        known, facts = self.facts.known, self.facts
        if name not in known:
            known[name] = vector
            if origin:
                facts.origin[name] = origin
            self.again |= name in self.used
            return
        old = known[name]
        if old is not VARYING and old != vector:
            known[name] = VARYING
            self.again = True
        before = facts.origin.get(name, "")
        if before not in (origin, MIXED):
            facts.origin[name] = MIXED
            self.again = True

    def vector(self, operand: Operand) -> Known:
        """The lane vector of an operand; a register without a value yet counts as uniform."""
        if isinstance(operand, Register):
            return self.facts.known.get(operand.name, UNIFORM)
        if isinstance(operand, (Immediate, Symbol)):
            return UNIFORM
        if isinstance(operand, SpecialRegister):
            return special_vector(operand.special, self.block)
        if isinstance(operand, Not):
            return self.vector(operand.predicate)
        if isinstance(operand, Vector):
            return UNIFORM if all(self.vector(item) is UNIFORM for item in operand.items) else VARYING
        if isinstance(operand, Address):
            return self.vector(operand.base)
        return self.vector(operand.register) if isinstance(operand, Selected) else UNIFORM

    def _transfer(self, op: Op) -> Known:
        if op.rule == "varying":
            return VARYING
        if op.rule == "load":
            address, space = op.reads[0], op.statement.form.space  # type: ignore[union-attr]
            base = address.base if isinstance(address, Address) else address
            one = self.vector(base) is UNIFORM and not self.facts.may_be_local(space, self.origin_of(base))
            return UNIFORM if one else VARYING
        known, vectors = self.facts.known, []
        for operand in op.reads:
            vector = known.get(operand[0], UNIFORM) if operand.__class__ is Register else self.vector(operand)
            if vector is VARYING and op.rule != "uniform":
                return VARYING
            vectors.append(vector)
        if vectors.count(UNIFORM) == len(vectors):
            return UNIFORM
        if op.rule == "uniform":
            return UNIFORM if vectors[-1] is UNIFORM or opcode(op.statement) in ("bar", "barrier") else VARYING
        return VARYING if op.rule == "pure" else self._affine(op, vectors)

    def _affine(self, op: Op, vectors: list[Known]) -> Known:
        bits, read, kind = op.writes[0].type.bits, op.reads, op.rule
        a, b = vectors[0] or UNIFORM, (vectors[1] if len(vectors) > 1 else UNIFORM) or UNIFORM
        if kind in ("copy", "cvt"):
            return _wrapped(a, bits)
        if kind in ("add", "sub"):
            sign = 1 if kind == "add" else -1
            return _wrapped([x + sign * y for x, y in zip(a, b)], bits)
        if kind == "shl":
            count = read[1]
            return _scaled(a, 1 << min(count.bits, 64), bits) if isinstance(count, Immediate) else VARYING
        product = _product(read, a, b, bits)
        if product is VARYING or not kind.startswith("mad"):
            return product
        return _wrapped([x + y for x, y in zip(product or UNIFORM, vectors[2] or UNIFORM)], bits)

    def _origin(self, op: Op) -> str:
        if op.rule == "load":
            return self._loaded(op)
        known = self.facts.origin
        for operand in op.reads:
            if operand[0] in known if operand.__class__ is Register else operand.__class__ is Symbol:
                break
        else:
            return ""
        if opcode(op.statement) == "mapa":
            return ""  # another block's memory
        found = [origin for operand in op.reads if (origin := self.origin_of(operand))]
        if found and opcode(op.statement) in ("selp", "slct"):
            found = [self.origin_of(operand) for operand in op.reads[:2]]
        if len(found) < 2:
            return found[0] if found else ""
        if op.rule == "sub" and found[0] == found[1]:
            return ""
        return found[0] if found.count(found[0]) == len(found) else MIXED

    def _loaded(self, op: Op) -> str:
        """A whole parameter of 64 bits is the array that the launch passes for it."""
        address, kind = op.reads[0], op.statement.form.type  # type: ignore[union-attr]
        if not isinstance(address, Address) or not isinstance(address.base, Symbol) or kind is None or kind.bits != 64:
            return ""
        whole = address.offset == 0 and address.base.offset == 0 and opcode(op.statement) == "ld"
        parameter = op.statement.form.space == "param"  # type: ignore[union-attr]
        return self.origins.get(address.base.symbol, "") if whole and parameter else ""

    def origin_of(self, operand: Operand) -> str:
        if isinstance(operand, Register):
            return self.facts.origin.get(operand.name, "")
        if isinstance(operand, Symbol):
            return self.origins.get(operand.symbol, "")
        return ""


def _exposes(statement: Instruction | Call) -> bool:
    """Whether a statement makes a generic address of one in local memory."""
    return isinstance(statement, Instruction) and statement.form.opcode == "cvta" and "local" in statement.form.tokens


def _wrapped(vector: Sequence[int], bits: int) -> Known:
    result = tuple(_signed(x, bits) for x in vector)
    return UNIFORM if not any(result) else result


def _scaled(vector: Sequence[int], factor: int, bits: int) -> Known:
    return _wrapped([x * factor for x in vector], bits)


def _product(read: Sequence[Operand], a: Sequence[int], b: Sequence[int], bits: int) -> Known:
    if not any(a) and not any(b):
        return UNIFORM
    for vector, factor in ((a, read[1]), (b, read[0])):
        if isinstance(factor, Immediate) and any(vector):
            return _scaled(vector, int(factor.value), bits)
    return VARYING


def _fixed(operand: Operand, fixed: set[str]) -> bool:
    if isinstance(operand, Register):
        return operand.name in fixed
    if isinstance(operand, SpecialRegister):
        return not operand.special.startswith(_CHANGING)
    if isinstance(operand, Not):
        return operand.predicate.name in fixed
    if isinstance(operand, Vector):
        return all(_fixed(item, fixed) for item in operand.items)
    if isinstance(operand, Address):
        return isinstance(operand.base, Symbol)
    return isinstance(operand, (Immediate, Symbol))


def analyse(graph: Graph, block: Shape3, origins: dict[str, str], parting: Parting | None = None) -> Facts:
    """The facts of a function for one shape of block; ``origins`` names those of parameters and variables.

    ``parting(guard, vector)`` says which of the branches whose guard is not uniform part lanes: all where it is None.
    """
    return Analysis(graph, block, origins, parting).run()


def everything_varies(graph: Graph, block: Shape3, origins: dict[str, str]) -> Facts:
    """The facts that hold whatever happens: what code must assume where lanes of a warp run in any order."""
    facts = analyse(graph, block, origins)
    known: dict[str, Known] = dict.fromkeys(facts.known, VARYING)
    return Facts(known, facts.origin, set(range(len(graph.nodes))), private=facts.private)
