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

from ..ir import Address, Call, Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol, Vector
from ..isa import Form
from . import semantics
from .cfg import Graph
from .layout import LANES

__all__ = ["UNIFORM", "VARYING", "Facts", "Known", "Shape3", "analyse", "special_vector"]

Known = Union[tuple[int, ...], None]
VARYING: Known = None
UNIFORM: tuple[int, ...] = (0,) * LANES
IOTA = tuple(range(LANES))

Shape3 = tuple[int, int, int]
MIXED = "?"
"""Origin of an address computed from more than one."""


@dataclass(slots=True)
class Facts:
    """The result: by register name its vector (absent: never written) and its origin; the blocks where lanes part."""

    known: dict[str, Known] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    parted: set[int] = field(default_factory=set)
    invariant: set[int] = field(default_factory=set)
    """Statements whose results depend on nothing but the launch and the thread's index."""


@cache
def tid_vectors(block: Shape3) -> tuple[Known, Known, Known]:
    """Lane vectors of %tid.x, y, z relative to the warp's first lane, where they are the same in every warp."""
    x, y, _ = block
    flat = x * y
    if x % LANES == 0:
        return IOTA, UNIFORM, UNIFORM
    if LANES % x == 0 and (flat % LANES == 0 or LANES % flat == 0 or block[2] == 1):
        rows = tuple(lane // x for lane in IOTA)
        if flat % LANES == 0 or block[2] == 1:
            return tuple(lane % x for lane in IOTA), rows, UNIFORM
        return tuple(lane % x for lane in IOTA), tuple(row % y for row in rows), tuple(lane // flat for lane in IOTA)
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


@cache
def rule(form: Form) -> str:
    """How a form treats lane vectors: ``pure`` lane by lane, ``add`` and the like exactly, ``varying`` never uniform."""
    opcode, tokens, kind = form.opcode, form.tokens, form.type
    plain = kind is not None and kind.kind in "usb" and kind.lanes == 1 and "sat" not in tokens and "cc" not in tokens
    if opcode in ("add", "sub") and plain:
        return opcode
    if opcode in ("mul", "mad") and plain and "lo" in tokens:
        return opcode
    if opcode in ("mul", "mad") and plain and "wide" in tokens:
        return f"{opcode}.wide"
    if opcode == "shl":
        return "shl"
    if opcode == "mov" and kind is not None and kind.kind != "p" and not any(spec.count for spec in form.operands):
        return "copy"
    if opcode == "cvta":
        return "copy"
    if opcode == "cvt" and plain and "sat" not in tokens and len(tokens) == 2:
        return "cvt" if all(token[0] in "us" and token[1:] in ("32", "64") for token in tokens) else "pure"
    if opcode in ("ld", "ldu"):
        return "load" if form.space != "local" else "varying"
    if semantics.covered(form) or opcode == "isspacep":
        return "pure"
    return "uniform" if form.semantics in _UNIFORM_RESULTS else "varying"


_UNIFORM_RESULTS = ("vote", "activemask", "redux", "bar_red")


def single(operand: Operand) -> str | None:
    return operand.name if isinstance(operand, Register) else None


class _Analysis:
    """The fixpoint: vectors only fall from known to VARYING and blocks only become parted, so it ends."""

    def __init__(self, graph: Graph, block: Shape3, origins: dict[str, str]) -> None:
        self.graph, self.block, self.origins = graph, block, origins
        self.facts = Facts()
        self.regions: dict[int, set[int]] = {}
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
        writes: dict[str, int] = {}
        for statement in self.graph.statements:
            for register in written(statement):
                writes[register.name] = writes.get(register.name, 0) + 1
        fixed: set[str] = set()
        for node in self.graph.nodes:
            for number in range(node.start, node.stop):
                statement = self.graph.statements[number]
                if isinstance(statement, Call) or statement.guard is not None:
                    continue
                results = list(written(statement))
                if (
                    results
                    and all(writes[register.name] == 1 for register in results)
                    and _is_pure(statement.form)
                    and all(_fixed(operand, fixed) for operand in sources(statement))
                ):
                    fixed.update(register.name for register in results)
                    self.facts.invariant.add(number)

    def _node(self, number: int) -> None:
        node = self.graph.nodes[number]
        for place in range(node.start, node.stop):
            statement = self.graph.statements[place]
            if isinstance(statement, Call):
                for register in written(statement):
                    self._set(register.name, VARYING, "")
                continue
            self._statement(statement, place, number)
        last = self.graph.statements[node.stop - 1] if node.stop > node.start else None
        if last is not None and len(node.successors) > 1 and number not in self.regions and self._parts(last):
            self.regions[number] = region = self.graph.region(number)
            if not region <= self.facts.parted:
                self.facts.parted |= region
                self.again = True

    def _parts(self, last: Instruction | Call) -> bool:
        if last.guard is not None and self.vector(last.guard) != UNIFORM:
            return True
        return isinstance(last, Instruction) and last.form.opcode == "brx" and self.vector(last.operands[0]) != UNIFORM

    def _statement(self, statement: Instruction, place: int, number: int) -> None:
        form, operands = statement.form, statement.operands
        kind = rule(form)
        free = place in self.facts.invariant
        vector = self._transfer(kind, statement)
        if number in self.facts.parted and not free:
            vector = VARYING
        if statement.guard is not None and self.vector(statement.guard) != UNIFORM:
            vector = VARYING
        origin = self._origin(kind, statement)
        for spec, operand in zip(form.operands, operands):
            if spec.written:
                for register in _items(operand):
                    known = vector
                    if known is not UNIFORM and known is not VARYING and register.type.kind == "p":
                        known = VARYING
                    if register.type.bits == 128:
                        known = VARYING
                    self._set(register.name, known, origin)

    def _set(self, name: str, vector: Known, origin: str) -> None:
        known, facts = self.facts.known, self.facts
        if name not in known:
            known[name], facts.origin[name] = vector, origin
            self.again |= name in self.used
            return
        old = known[name]
        if old is not VARYING and old != vector:
            known[name] = VARYING
            self.again = True
        if facts.origin[name] != origin and facts.origin[name] != MIXED:
            facts.origin[name] = MIXED
            self.again = True

    def vector(self, operand: Operand) -> Known:
        """The lane vector of an operand; a register without a value yet counts as uniform."""
        if isinstance(operand, Register):
            self.used.add(operand.name)
            return self.facts.known.get(operand.name, UNIFORM)
        if isinstance(operand, SpecialRegister):
            return special_vector(operand.special, self.block)
        if isinstance(operand, Not):
            return self.vector(operand.predicate)
        if isinstance(operand, Vector):
            return UNIFORM if all(self.vector(item) == UNIFORM for item in operand.items) else VARYING
        if isinstance(operand, Address):
            return self.vector(operand.base)
        return UNIFORM if isinstance(operand, (Immediate, Symbol)) else VARYING if registers_in(operand) else UNIFORM

    def _transfer(self, kind: str, statement: Instruction) -> Known:
        if kind == "varying":
            return VARYING
        if kind == "load":
            return UNIFORM if self.vector(statement.operands[1]) == UNIFORM else VARYING
        vectors = [self.vector(operand) for operand in sources(statement)]
        if all(vector == UNIFORM for vector in vectors):
            return UNIFORM
        if kind == "uniform":
            return UNIFORM if vectors[-1] == UNIFORM or statement.form.semantics == "bar_red" else VARYING
        if kind == "pure" or any(vector is VARYING for vector in vectors):
            return VARYING
        return self._affine(kind, statement, vectors)

    def _affine(self, kind: str, statement: Instruction, vectors: list[Known]) -> Known:
        bits = written_bits(statement)
        read = list(sources(statement))
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
        return _wrapped([x + y for x, y in zip(product, vectors[2] or UNIFORM)], bits)

    def _origin(self, kind: str, statement: Instruction) -> str:
        if kind == "load":
            address = statement.operands[1]
            assert isinstance(address, Address)
            whole = isinstance(address.base, Symbol) and address.offset == 0 and address.base.offset == 0
            if whole and statement.form.space == "param" and statement.form.type is not None:
                name = address.base.symbol  # type: ignore[union-attr]
                return self.origins.get(name, "") if statement.form.type.bits == 64 else ""
            return ""
        found = {origin for operand in sources(statement) if (origin := self.origin_of(operand))}
        if len(found) > 1:
            return MIXED
        if kind == "sub" and found and all(self.origin_of(operand) for operand in sources(statement)):
            return ""
        return found.pop() if found else ""

    def origin_of(self, operand: Operand) -> str:
        if isinstance(operand, Register):
            return self.facts.origin.get(operand.name, "")
        if isinstance(operand, Symbol):
            return self.origins.get(operand.symbol, "") if not operand.symbol.startswith("%") else ""
        return ""


def _wrapped(vector: Sequence[int], bits: int) -> Known:
    result = tuple(_signed(x, bits) for x in vector)
    return UNIFORM if not any(result) else result


def _scaled(vector: Sequence[int], factor: int, bits: int) -> Known:
    return _wrapped([x * factor for x in vector], bits)


def _product(read: list[Operand], a: Sequence[int], b: Sequence[int], bits: int) -> Known:
    if not any(a) and not any(b):
        return UNIFORM
    for vector, factor in ((a, read[1]), (b, read[0])):
        if isinstance(factor, Immediate) and any(vector):
            return _scaled(vector, int(factor.value), bits)
    return VARYING


def registers_in(operand: Operand) -> bool:
    from ..ir import registers

    return any(True for _ in registers(operand))


def _items(operand: Operand) -> list[Register]:
    if isinstance(operand, Register):
        return [operand]
    return [item for item in operand.items if isinstance(item, Register)] if isinstance(operand, Vector) else []


CARRY = "%CF"
"""The carry flag, a register that no instruction names."""


def written(statement: Instruction | Call) -> list[Register]:
    """The registers that a statement writes."""
    if isinstance(statement, Call):
        return [item for operand in statement.results for item in _items(operand)]
    return list(statement.writes())


def written_bits(statement: Instruction) -> int:
    return next((register.type.bits for register in statement.writes()), 0)


def sources(statement: Instruction | Call) -> list[Operand]:
    """The operands whose values a statement reads: addresses too, the guard not."""
    if isinstance(statement, Call):
        return [*statement.arguments, *((statement.callee,) if isinstance(statement.callee, Register) else ())]
    return [operand for spec, operand in zip(statement.form.operands, statement.operands) if not (spec.written and spec.role == "w")]


def _is_pure(form: Form) -> bool:
    if form.opcode == "ld":
        return form.space == "param"
    return rule(form) not in ("varying", "uniform", "load") and "cc" not in form.tokens and not semantics.carry(form).reads


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


def analyse(graph: Graph, block: Shape3, origins: dict[str, str]) -> Facts:
    """The facts of a function launched with this shape of block; ``origins`` names those of parameters and variables."""
    return _Analysis(graph, block, origins).run()


def everything_varies(graph: Graph, block: Shape3, origins: dict[str, str]) -> Facts:
    """The facts that hold whatever happens: what code must assume where lanes of a warp run in any order."""
    facts = analyse(graph, block, origins)
    return Facts(dict.fromkeys(facts.known, VARYING), facts.origin, set(range(len(graph.nodes))))
