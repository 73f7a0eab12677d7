"""What is the same in all lanes: the lane offsets of each register, where lanes may diverge, where pointers come from.

A register is *uniform* if all live lanes of a warp hold the same number, *affine* if they hold a uniform number plus
offsets that are known once the shape of the block is, else *varying*. The first two live in one scalar, which is why
they must only be written where all live lanes are converged. The offsets of a uniform register are all zeros, so one
domain serves both: the offsets, or VARYING.

The provenance of a pointer is the parameter or variable that its address was computed from; an access is checked
against that alone, so that running out of one array into its neighbour is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Union

from ...ir import (
    Address, Immediate, Instruction, Not, Operand, Register, Selected, SpecialRegister, Symbol, Vector,
)
from ...analysis.control_flow import ControlFlowGraph, control_of
from ...analysis.def_use import DefUse
from ..machine.layout import LANES, LOCAL_ORIGIN
from ..machine.warp_rows import WarpRows, lanes_of_warps
from .bitwise_offsets import KnownBits, bitwise
from .call_stack import uses_stack
from .form_plans import CALL, Plan, plan_of

__all__ = [
    "LINEAR", "NOWHERE", "UNIFORM", "VARYING", "DivergenceAnalysis", "Facts", "LaneOffsets", "Shape3", "analyse",
    "combined", "conservative_facts", "special_offsets", "tid_offsets",
]

LaneOffsets = Union[tuple[int, ...], None]
VARYING: LaneOffsets = None
UNIFORM: tuple[int, ...] = (0,) * LANES
IOTA = tuple(range(LANES))
NOWHERE: frozenset[int] = frozenset()

Shape3 = tuple[int, int, int]
Diverges = Callable[[int, Operand, Callable[[Operand], LaneOffsets]], bool]
LINEAR = frozenset(("pure", "copy", "opposite", "sum", "difference", "shift", "product", "product_sum"))
"""Rules of instructions that compute each lane by itself."""
MIXED = "?"
"""Provenance of an address computed from several pointers, or from one and something unknown."""


@dataclass(slots=True, eq=False, repr=False)
class Facts:
    """By register name its lane offsets (absent: never written) and provenance, if any; the divergent blocks."""

    offsets: dict[str, LaneOffsets] = field(default_factory=dict)
    provenance: dict[str, str] = field(default_factory=dict)
    divergent: set[int] = field(default_factory=set)
    launch_invariant: set[int] = field(default_factory=set)
    """Statements whose results depend on nothing but the launch and the thread's index."""
    private: bool = False
    """Whether local memory has generic addresses, so that one address may be of another place in each lane."""

    def may_be_local(self, space: str, provenance: str) -> bool:
        """Whether an access through an address of this provenance may be to the local memory of each lane."""
        if space != "generic":
            return space == "local"
        return provenance[:1] == LOCAL_ORIGIN or (self.private and provenance[:1] in ("", MIXED))


@cache
def tid_offsets(block: Shape3) -> tuple[LaneOffsets, LaneOffsets, LaneOffsets]:
    """Lane offsets of %tid.x, y, z relative to the warp's first lane, where they are the same in every warp."""
    x, y, z = block
    across, rows = [lane % x for lane in IOTA], [lane // x for lane in IOTA]
    wide = lanes_of_warps(block)
    if x % wide == 0 or y * z == 1:
        return IOTA, UNIFORM, UNIFORM
    if wide < LANES:  # some rows of one layer
        return _wrapped(across, 32), _wrapped(rows, 32), UNIFORM
    if x * y * z <= LANES:  # the only warp
        layers = [row // y % z for row in rows]
        return _wrapped(across, 32), _wrapped([row % y for row in rows], 32), _wrapped(layers, 32)
    if LANES % x:
        return VARYING, VARYING, VARYING
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


def special_offsets(name: str, block: Shape3) -> LaneOffsets:
    """The lane offsets of a special register."""
    if name == "%tid":
        return VARYING
    if name.startswith("%tid."):
        return tid_offsets(block)["xyz".index(name[-1])]
    if name == "%laneid":
        return IOTA
    if name in _MASKS:
        return tuple(_signed(_MASKS[name](lane), 32) for lane in IOTA)
    return UNIFORM


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


_CHANGING = ("%clock", "%globaltimer", "%pm", "%ctaid", "%smid", "%cluster")


class DivergenceAnalysis:
    """The fixpoint: offsets only fall from known to VARYING and blocks only become divergent, so it ends."""

    def __init__(
        self, graph: ControlFlowGraph, block: Shape3, roots: dict[str, str], diverges: Diverges | None = None,
        wraps: frozenset[int] = NOWHERE,
    ) -> None:
        self.graph, self.block, self.roots, self.diverges, self.wraps = graph, block, roots, diverges, wraps
        self.plans = [plan_of(s.form) if s.__class__ is Instruction else CALL for s in graph.statements]
        self.facts = Facts()
        self.split: set[int] = set()
        self.regions: dict[int, set[int]] = {}
        self.used: set[str] = set()
        """Registers that were read before anything was known of them."""
        self.whole = set(range(len(graph.blocks)))
        """Blocks to evaluate anew; of the others only statements with a stale register."""
        self.stale: set[str] = set()
        self.changed: set[str] = set()
        """Registers whose facts have changed since the last pass began, and in this pass."""

    @cached_property
    def known_bits(self) -> KnownBits:
        return KnownBits(self.graph.def_use, self.block)

    def run(self) -> Facts:
        self._find_invariants()
        while self.whole or self.changed:
            self.stale, self.changed = self.changed, set()
            for number in range(len(self.graph.blocks)):
                self._block(number)
        return self.facts

    def _find_invariants(self) -> None:
        """Pure statements over parameters and thread indices whose result is written once."""
        ops, plans = self.graph.def_use, self.plans
        once: set[str] = set()
        again: set[str] = set()
        for op in ops:
            for name, _ in op.writes:
                (again if name in once else once).add(name)
        fixed: set[str] = set()
        for node in self.graph.blocks:
            for number in range(node.start, node.stop):
                op, plan = ops[number], plans[number]
                if not plan.pure or not op.writes:
                    continue
                if plan.exposes_local:
                    self.facts.private = True
                if op.statement.guard is not None:
                    continue
                for operand in op.reads:
                    if not (operand[0] in fixed if operand.__class__ is Register else _fixed(operand, fixed)):
                        break
                else:
                    names = [name for name, _ in op.writes]
                    if again.isdisjoint(names) and len(set(names)) == len(names):
                        fixed.update(names)
                        self.facts.launch_invariant.add(number)

    def _block(self, number: int) -> None:
        node, ops = self.graph.blocks[number], self.graph.def_use
        divergent, known, stale = number in self.facts.divergent, self.facts.offsets, self.stale
        whole = number in self.whole
        self.whole.discard(number)
        for place in range(node.start, node.stop):
            op = ops[place]
            if not whole:
                for name, _ in op.uses if len(op.writes) < 2 else op.uses + op.writes:
                    if name in stale:
                        break
                else:
                    continue
            if op.writes:
                within = divergent and place not in self.facts.launch_invariant
                apart = place in self.wraps or (within and self._is_apart(number, op))
                self._statement(op, self.plans[place], apart, within)
            for name, _ in op.uses:
                if name not in known:
                    self.used.add(name)
        if len(node.successors) > 1 and number not in self.split and self._diverges(number, ops[node.stop - 1]):
            self._split(number)

    def _split(self, number: int) -> None:
        """Lanes diverge at the end of a basic block."""
        self.split.add(number)
        region = self.graph.divergent_region(number, self.regions) - self.facts.divergent
        self.facts.divergent |= region
        self.whole |= region

    def _is_apart(self, number: int, op: DefUse) -> bool:  # noqa: ARG002
        """Whether what a statement of a divergent block writes is varying."""
        return True

    def _in_arm(self, op: DefUse, plan: Plan) -> LaneOffsets:  # noqa: ARG002
        """The lane offsets of what a statement of a divergent block writes that is not apart."""
        return VARYING

    def _diverges(self, number: int, last: DefUse) -> bool:
        guard = last.statement.guard
        if guard is not None and self.offsets_of(guard) is not UNIFORM:
            return self.diverges is None or self.diverges(number, guard, self.offsets_of)
        return control_of(last.statement) == "indexed_branch" and self.offsets_of(last.reads[0]) is not UNIFORM

    def _statement(self, op: DefUse, plan: Plan, apart: bool, within: bool) -> None:
        guard = op.statement.guard
        offsets = VARYING if apart else self._in_arm(op, plan) if within else self._transfer(op, plan.rule)
        if guard is not None and self.offsets_of(guard) is not UNIFORM:
            offsets = VARYING
        provenance = self._provenance(op, plan)
        for register in op.writes:
            kind = register.type
            held = (offsets is UNIFORM and kind.bits != 128) or (offsets is not VARYING and kind.kind != "p")
            self._set(register.name, offsets if held else VARYING, provenance)
        if len(op.writes) > 1 and any(self.facts.offsets[register.name] is VARYING for register in op.writes):
            for register in op.writes:  # what one instruction writes is all in scalars or all in vectors
                self._set(register.name, VARYING, provenance)

    def _set(self, name: str, offsets: LaneOffsets, provenance: str) -> None:
        known, facts = self.facts.offsets, self.facts
        if name not in known:
            known[name] = offsets
            if provenance:
                facts.provenance[name] = provenance
            if name in self.used:
                self._note_change(name)
            return
        old = known[name]
        if old is not VARYING and old != offsets:
            known[name] = VARYING
            self._note_change(name)
        before = facts.provenance.get(name, "")
        if before not in (provenance, MIXED):
            facts.provenance[name] = MIXED
            self._note_change(name)

    def _note_change(self, name: str) -> None:
        self.stale.add(name)
        self.changed.add(name)

    def offsets_of(self, operand: Operand) -> LaneOffsets:
        """The lane offsets of an operand; a register without a value yet counts as uniform."""
        if isinstance(operand, Register):
            return self.facts.offsets.get(operand.name, UNIFORM)
        if isinstance(operand, (Immediate, Symbol)):
            return UNIFORM
        if isinstance(operand, SpecialRegister):
            return special_offsets(operand.special, self.block)
        if isinstance(operand, Not):
            return self.offsets_of(operand.predicate)
        if isinstance(operand, Vector):
            return UNIFORM if all(self.offsets_of(item) is UNIFORM for item in operand.items) else VARYING
        if isinstance(operand, Address):
            return self.offsets_of(operand.base)
        return self.offsets_of(operand.register) if isinstance(operand, Selected) else UNIFORM

    def _transfer(self, op: DefUse, rule: str) -> LaneOffsets:
        if rule == "varying":
            return VARYING
        if rule == "load":
            address, space = op.reads[0], op.statement.form.space  # type: ignore[union-attr]
            base = address.base if isinstance(address, Address) else address
            one = self.offsets_of(base) is UNIFORM and not self.facts.may_be_local(space, self.provenance_of(base))
            return UNIFORM if one else VARYING
        known, inputs = self.facts.offsets, []
        for operand in op.reads:
            offsets = known.get(operand[0], UNIFORM) if operand.__class__ is Register else self.offsets_of(operand)
            if offsets is VARYING and rule != "uniform":
                return VARYING
            inputs.append(offsets)
        if inputs.count(UNIFORM) == len(inputs):
            return UNIFORM
        if rule == "uniform":
            return UNIFORM if inputs[-1] is UNIFORM or op.statement.form.effects.barrier else VARYING  # type: ignore[union-attr]
        given = [each or UNIFORM for each in inputs]
        result = bitwise(op, given, self.known_bits) if rule == "pure" else combined(rule, op.reads, given)
        if result is None and isinstance(self.block, WarpRows) and not any(each[0] for each in given):
            result = self.block.offsets.get(op.writes[0].name)
        return VARYING if result is None else _wrapped(result, op.writes[0].type.bits)

    def _provenance(self, op: DefUse, plan: Plan) -> str:
        if plan.rule == "load":
            return self._loaded(op)
        if plan.rule == "varying" and op.writes and uses_stack(op):  # the number that it had before the call
            return self.facts.provenance.get(op.writes[0].name, "")
        carriers: Sequence[Operand] = op.reads
        if plan.carriers is not None:
            operands = op.statement.operands  # type: ignore[union-attr]
            carriers = [operands[n] for n in plan.carriers]
        known = self.facts.provenance
        for operand in carriers:
            if operand[0] in known if operand.__class__ is Register else operand.__class__ is Symbol:
                break
        else:
            return ""
        found = [name for operand in carriers if (name := self.provenance_of(operand))]
        if found and plan.selects:
            found = [self.provenance_of(operand) for operand in carriers]
        if len(found) < 2:
            return found[0] if found else ""
        if plan.rule == "difference" and found[0] == found[1]:
            return ""
        return found[0] if found.count(found[0]) == len(found) else MIXED

    def _loaded(self, op: DefUse) -> str:
        """A whole parameter of 64 bits is the array that the launch passes for it."""
        address, kind = op.reads[0], op.statement.form.type  # type: ignore[union-attr]
        if not isinstance(address, Address) or not isinstance(address.base, Symbol) or kind is None or kind.bits != 64:
            return ""
        whole = address.offset == 0 and address.base.offset == 0
        parameter = op.statement.form.space == "param"  # type: ignore[union-attr]
        return self.roots.get(address.base.symbol, "") if whole and parameter else ""

    def provenance_of(self, operand: Operand) -> str:
        """The name that an address comes from; "" of what is none."""
        if isinstance(operand, Register):
            return self.facts.provenance.get(operand.name, "")
        if isinstance(operand, Symbol):
            return self.roots.get(operand.symbol, "")
        return ""


def _wrapped(offsets: Sequence[int], bits: int) -> LaneOffsets:
    result = tuple(_signed(x, bits) for x in offsets)
    return UNIFORM if not any(result) else result


def combined(rule: str, read: Sequence[Operand], offsets: Sequence[Sequence[int]]) -> Sequence[int] | None:
    """The offsets of an affine combination, before they wrap; None where a factor of offsets is not known."""
    a, b = offsets[0], offsets[1] if len(offsets) > 1 else UNIFORM
    if rule == "copy":
        return a
    if rule == "opposite":
        return [-x for x in a]
    if rule in ("sum", "difference"):
        sign = 1 if rule == "sum" else -1
        return [x + sign * y for x, y in zip(a, b)]
    if rule == "shift" and any(b):
        return None
    varying, other = (a, read[1]) if any(a) else (b, read[0])
    if not any(varying):
        product = list(UNIFORM)
    elif not isinstance(other, Immediate):
        return None
    else:
        factor = 1 << min(other.bits, 64) if rule == "shift" else int(other.value)
        product = [x * factor for x in varying]
    return [x + y for x, y in zip(product, offsets[2])] if rule == "product_sum" else product


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


def analyse(
    graph: ControlFlowGraph, block: Shape3, roots: dict[str, str], diverges: Diverges | None = None,
    wraps: frozenset[int] = NOWHERE,
) -> Facts:
    """The facts of a function for one shape of block; ``roots`` names those of parameters and variables.

    ``diverges(block, guard, offsets_of)`` says which of the branches whose guard is not uniform diverge, by the block
    that they end: all where it is None.
    ``wraps`` are statements that widen a register which wraps around in some lane: their results are varying.
    """
    return DivergenceAnalysis(graph, block, roots, diverges, wraps).run()


def conservative_facts(graph: ControlFlowGraph, block: Shape3, roots: dict[str, str]) -> Facts:
    """The facts that hold whatever happens: what code must assume where lanes of a warp run in any order."""
    facts = analyse(graph, block, roots)
    known: dict[str, LaneOffsets] = dict.fromkeys(facts.offsets, VARYING)
    return Facts(known, facts.provenance, set(range(len(graph.blocks))), private=facts.private)
