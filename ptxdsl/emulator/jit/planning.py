"""What of a kernel can be compiled as one function, and the facts that hold while all lanes of a warp are together.

The records of the first tier must be right wherever lanes are; so what is written between a branch and where its lanes
meet counts as varying there. The function of a whole kernel runs with all lanes together and leaves where they part, so
here a bound on an index (``if (i < n)``) makes nothing vary: the kernel is lowered once more, with these facts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ...ir import Address, Call, Immediate, Instruction, Not, Operand, Register, SpecialRegister, Symbol
from ...isa import lookup
from ..analysis.divergence import UNIFORM, VARYING, Facts, Known
from ...analysis.control_flow import Graph
from .merged_checks import joint_checks, merged_looks
from ..machine.layout import LANES, Warp
from ..instructions.lowering import Code, Lowering, Record
from ..instructions.operands import Field, Operands, Pool
from ..analysis.row_affine import Parts, PartsAnalysis, relative

if TYPE_CHECKING:
    from .plan import Plan, Spot, Step, Sync
    from ..analysis.statements import Op

__all__ = ["plan_of_kernel"]

MOST_STATEMENTS, MOST_WARPS = 1500, 32
_ORDERED = ("lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
_LOGIC = ("and", "or", "xor", "not", "mov")
_STRONG = ("volatile", "acquire", "release", "relaxed", "mmio", "acq_rel", "sc")


class _Slots:
    """A slot for each register: LLVM finds out which can share. Smaller offsets are those of the warp itself."""

    def __init__(self) -> None:
        self.offsets: dict[str, int] = {}

    def reserve(self, _: int) -> int:
        return Warp.REGISTERS + len(self.offsets)


class _Pool(Pool):
    """Known vectors by number: they become constants of the function, which must not depend on where anything lies."""

    def __init__(self) -> None:
        super().__init__()
        self.vectors: list[tuple[int, ...]] = []

    def address(self, vector: tuple[int, ...], bits: int) -> int:  # noqa: ARG002
        if vector not in self.vectors:
            self.vectors.append(vector)
        return self.vectors.index(vector)


class _Operands(Operands):
    """Registers with a number for each part of the warp are read like those with one a lane, unless parts are asked."""

    def known(self, operand: Operand) -> Known:
        known = super().known(operand)
        return VARYING if isinstance(known, Parts) else known

    def parts(self, operand: Operand) -> Parts | None:
        """The vector of an operand that has a number for each part; None for all others."""
        known = super().known(operand)
        return known if isinstance(known, Parts) else None

    def _describe(self, operand: Register, scalar: bool) -> Field:
        if self.parts(operand) is not None:
            return Field(f"X{operand.type.bits}", "i", (self.slots.offsets[operand.name],))
        return super()._describe(operand, scalar)


class WholeLowering(Lowering):
    """Lowers a kernel for warps whose lanes are together."""

    operands: _Operands
    pool: _Pool

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.pool = _Pool()
        self.operands = _Operands(self.facts, self.slots, self.block, self.pool, self.spaces.symbols)

    def _analysed(self) -> Facts:
        return PartsAnalysis(self.graph, self.block, self.spaces.origins, _Together(self.graph).parts).run()

    def _placed(self, keep_registers: bool) -> Any:  # noqa: ARG002
        slots = _Slots()
        for op in self.graph.ops:
            for register in (*op.uses, *op.writes):
                slots.offsets.setdefault(register.name, slots.reserve(8))
        return slots

    def statement(self, statement: Instruction | Call) -> None:
        """The records of a statement; what has a number for each part of the warp is worked out for each alone."""
        op = self.graph.ops[self.place]
        known = self.operands.parts(op.writes[0]) if len(op.writes) == 1 else None
        if known is None or isinstance(statement, Call):
            super().statement(statement)
            return
        form = statement.form
        if op.rule in ("mul.wide", "mad.wide", "cvt"):
            self._guard_parts(statement)
        fields, kinds = [], []
        for spec, operand in zip(form.operands, statement.operands):
            if spec.written:
                part = Field(f"H{op.writes[0].type.bits}", "i", (self.slots.offsets[op.writes[0].name],))
            else:
                part = self._operand(statement, spec, operand, LANES)
            fields.append(part)
            kinds.append(part.kind)
        number = lookup(form.mnemonic).index(form)
        self.emit(("parts", form.mnemonic, number, tuple(kinds)), *fields)

    def _guard_parts(self, statement: Instruction) -> None:
        """As `_guard_wrap`, for each part of the warp."""
        form = statement.form
        result = form.operands[0].type
        for spec, operand in zip(form.operands, statement.operands):
            if spec.written or spec.type is None or result is None or result.bits <= spec.type.bits:
                continue
            known = Operands.known(self.operands, operand)
            if known is None or operand.type.bits >= 64:  # type: ignore[union-attr]
                continue
            offsets = relative(known, self.block[0])
            if any(offsets):
                base = self.operands.source(operand, 32, False)
                bounds = Field("", "qq", (min(offsets), max(offsets)))
                self.emit(("wrap_parts", base.kind, spec.type.is_signed), base, bounds)

    def address(self, statement: Instruction, operand: Any, nbytes: int, write: bool) -> tuple[str, Any, Field]:
        kind, pattern, place = super().address(statement, operand, nbytes, write)
        known = self.operands.parts(operand.base)
        opcode = statement.form.opcode
        if known is None or self.parted or statement.guard is not None or opcode not in ("ld", "st"):
            return kind, pattern, place
        lanes = known.lanes
        for letter, step in (("c", nbytes), ("b", 0)):
            if tuple(known) == tuple(lane % lanes * step for lane in range(LANES)) and (letter == "c" or not write):
                extent = (lanes - 1) * step + nbytes - 1
                return f"H{kind[1:]}", (letter, lanes), Field("H", place.codes + "i", (*place.values, extent))
        return kind, pattern, place

    def steps(self) -> list[list[Record]]:
        """The records of each node."""
        found = []
        for number, node in enumerate(self.graph.nodes):
            before = len(self.records)
            self._node(number, node)
            found.append([record for record in self.records[before:] if record.shape[0] != "check"])
        return found


class _Together:
    """Which branches part lanes for longer: those on data. An index beyond a bound parts the last warp at most."""

    def __init__(self, graph: Graph) -> None:
        self.writers: dict[str, list[Op]] = {}
        for op in graph.ops:
            for register in op.writes:
                self.writers.setdefault(register.name, []).append(op)

    def parts(self, guard: Operand, vector: Any) -> bool:
        """Whether a branch under this guard parts lanes; ``vector`` gives what is known of an operand."""
        return not self._bounds(guard, vector, 0)

    def _bounds(self, operand: Operand, vector: Any, depth: int) -> bool:
        if isinstance(operand, Not):
            operand = operand.predicate
        if not isinstance(operand, Register):
            return True
        if vector(operand) is UNIFORM:
            return True
        writers = self.writers.get(operand.name, [])
        return depth < 4 and bool(writers) and all(self._bound(op, vector, depth) for op in writers)

    def _bound(self, op: Op, vector: Any, depth: int) -> bool:
        statement = op.statement
        if not isinstance(statement, Instruction) or statement.guard is not None:
            return False
        if statement.form.opcode in _LOGIC:
            return all(self._bounds(operand, vector, depth + 1) for operand in op.reads)
        if statement.form.opcode != "setp" or not set(_ORDERED) & set(statement.form.tokens):
            return False
        return all(vector(operand) is not VARYING for operand in op.reads)


def plan_of_kernel(code: Code) -> Plan | None:
    """How to compile the kernel of some records as one function; None where that cannot be done."""
    from .plan import Plan

    if code.source is None or code.plain or not code.graph.nodes:
        return None
    function, spaces, block, instrument = code.source
    threads = block[0] * block[1] * block[2]
    if spaces.cluster not in (None, (1, 1, 1)) or threads % LANES or len(code.graph.statements) > MOST_STATEMENTS:
        return None
    if any(_unfit(statement) for statement in code.graph.statements):
        return None
    low = WholeLowering(function, spaces, block, False, instrument)
    maker = _Maker(code, low, threads)
    steps = maker.steps()
    if steps is None:
        return None
    ops, nodes = low.graph.ops, low.graph.nodes

    def names(place: range, reads: bool) -> frozenset[str]:
        return frozenset(
            r.name for n in place if n not in low.facts.invariant for r in (ops[n].uses if reads else ops[n].writes)
        )

    places = [range(node.start, node.stop) for node in nodes]
    plan = Plan(
        tuple(steps), threads // LANES, code.slots.size, maker.registers(), lru_cache(None)(code.slots.needed),
        tuple(names(place, True) for place in places), tuple(names(place, False) for place in places),
        frozenset(r.name for n in low.facts.invariant for r in ops[n].writes), maker.raw,
        dict(enumerate(low.pool.vectors)),
        {low.slots.offsets[name]: known for name, known in low.facts.known.items() if isinstance(known, Parts)},
        block[0], frozenset(low.slots.offsets[name] for name in _alike(low, block)),
        code.entry - code.base, maker.opening, "",
    )
    return plan._replace(key=_key(plan, code))


def _key(plan: Plan, code: Code) -> str:
    """All that the code of a plan depends on. What is needed where follows from the statements and their blocks."""
    whole = plan._replace(needed=None, always=frozenset(), raw=frozenset(), reads=(), writes=())  # type: ignore[arg-type]
    sets = [sorted(plan.always), sorted(plan.raw), *(sorted(names) for names in (*plan.reads, *plan.writes))]
    uses = [
        (tuple(r.name for r in op.uses), tuple(r.name for r in op.writes), op.statement.guard is None)
        for op in code.graph.ops
    ]
    nodes = [(node.start, node.stop, node.successors) for node in code.graph.nodes]
    return repr((whole._replace(shared=frozenset()), sorted(plan.shared), sets, uses, nodes))


def _alike(low: WholeLowering, block: Any) -> set[str]:
    """Registers set before the blocks run that hold the same in all warps: those that know of no row of the block."""
    alike: set[str] = set()
    allowed = ("%ntid", "%nctaid", "%laneid", *(("%tid.x",) if LANES % block[0] == 0 else ()))
    for node in low.graph.nodes:
        for place in range(node.start, node.stop):
            op = low.graph.ops[place]
            if place in low.facts.invariant and all(_alike_operand(operand, alike, allowed) for operand in op.reads):
                alike.update(r.name for r in op.writes)
    return alike


def _alike_operand(operand: Operand, alike: set[str], allowed: tuple[str, ...]) -> bool:
    if isinstance(operand, Register):
        return operand.name in alike
    if isinstance(operand, SpecialRegister):
        return operand.special.startswith(allowed)
    if isinstance(operand, Address):
        return isinstance(operand.base, Symbol)
    return isinstance(operand, (Immediate, Symbol))


def _unfit(statement: Any) -> bool:
    """What must be seen to happen in its place and time, or lies where the fast checks do not reach."""
    form = getattr(statement, "form", None)
    if form is None:
        return False
    if form.opcode in ("ld", "st") and (form.space == "local" or any(token in form.tokens for token in _STRONG)):
        return True
    return form.opcode == "atom" and any(token in form.tokens for token in ("cas", "exch"))


class _Maker:
    def __init__(self, code: Code, low: WholeLowering, threads: int) -> None:
        from .inlining import ALONE, FUSED

        self.code, self.low, self.threads = code, low, threads
        self.fused, self.alone = FUSED, ALONE
        start = next(n for n, offset in enumerate(code.offsets) if offset >= code.entry - code.base)
        self.first: dict[int, int] = {}
        self.accesses: dict[int, list[int]] = {}
        self.barriers: dict[int, int] = {}
        opening = [record for record in code.records[start:] if record.shape[0] == "epoch_begin"]
        self.opening = tuple(self._spot_of(record, code.entry - code.base) for record in opening)
        for number in range(start + len(opening), len(code.records)):
            record = code.records[number]
            if record.shape[0] == "barrier":
                self.barriers[record.statement] = number
            if record.shape[0] != "check":
                self.first.setdefault(record.statement, number)
            if record.shape[0] in ("load", "store", "atomic"):
                self.accesses.setdefault(record.statement, []).append(number)
        self.raw: frozenset[int] = frozenset()

    @staticmethod
    def _spot_of(record: Record, offset: int) -> Spot:
        from .plan import Spot

        return Spot(record.shape, record.values, record.statement, offset)

    def steps(self) -> list[Step] | None:
        from .superinstructions import ARITHMETIC

        nodes = self.low.steps()
        raw: set[int] = set()
        for records in nodes:
            for record in records:
                shape = record.shape
                if shape[0] == "data" and shape[1] in ARITHMETIC and not shape[4]:
                    op = self.low.graph.ops[record.statement]
                    raw.update(self.low.slots.offsets[r.name] for r in op.writes)
        self.raw = frozenset(raw)
        made = [self._step(number, records) for number, records in enumerate(nodes)]
        return None if any(step is None for step in made) else made  # type: ignore[return-value]

    def _step(self, number: int, records: list[Record]) -> Step | None:
        from .plan import Step

        node, code = self.low.graph.nodes[number], self.code
        sync = None
        at = next((n for n, record in enumerate(records[:2]) if record.shape[0] == "barrier"), None)
        if at is not None and (at == 0 or records[0].shape[0] == "epoch_arrive"):
            sync = self._sync(records[at], at)
            if sync is None:
                return None
        together = joint_checks(records, self._written)
        ending = None
        spots = []
        for place, record in enumerate(records):
            kind = record.shape[0]
            spot = self._spot(record, together.get(place))
            last = place + 1 == len(records)
            if kind in ("jump", "branch") or (kind == "exit" and not record.shape[1]):
                if not last or (kind != "exit" and record.values[-1] > 1 and record.shape[2 if kind == "jump" else 3]):
                    return None
                ending = spot
            elif kind in self.fused or kind in self.alone or (sync is not None and place == sync.at):
                spots.append(spot)
            else:
                return None
        offset = int(code.blocks[code.graph.nodes[number].rank]) - code.base
        meeting = bool(records) and records[0].shape[0] in (
            "meet", "shuffle", "vote", "match", "redux", "elect", "activemask",
        )
        if number not in self.low.facts.parted:
            spots = merged_looks(spots, records, self._written)
        return Step(
            number, node.rank, offset, node.start, tuple(spots), ending, node.fall, node.targets,
            number in self.low.facts.parted, meeting, sync,
        )

    def _sync(self, record: Record, at: int) -> Sync | None:
        from .plan import Sync

        _, what, guard, masked, number, count, predicate, _ = record.shape
        if what != "sync" or guard or predicate or number[0] != "I" or (count and count[0] != "I"):
            return None
        values = record.values[1 if masked else 0 :]
        if values[0] > 15 or (count and values[1] != self.threads):
            return None
        wait = self.barriers[record.statement]
        offsets = self.code.offsets
        expected = values[1] if count else 0
        return Sync(values[0], expected, offsets[wait], offsets[wait + 1], record.statement, at)

    def _spot(self, record: Record, together: tuple[int, int] | None) -> Spot:
        from .plan import Spot

        access = -1
        if record.shape[0] in ("load", "store", "atomic") and not record.values[0] >> 17 & 1:
            access = self.code.offsets[self.accesses[record.statement][0]]
        offset = self.code.offsets[self.first[record.statement]]
        return Spot(record.shape, record.values, record.statement, offset, access, together)

    def _written(self, record: Record) -> set[int]:
        offsets = self.low.slots.offsets
        return {offsets[register.name] for register in self.low.graph.ops[record.statement].writes}

    def registers(self) -> dict[str, Any]:
        from .plan import Register

        found = {}
        mine, theirs, slots = self.low.facts.known, self.code.operands.facts.known, self.code.slots
        kinds = {r.name: r.type for op in self.low.graph.ops for r in (*op.uses, *op.writes)}
        for name, kind in kinds.items():
            here: Known = mine.get(name, UNIFORM)
            there: Known = theirs.get(name, UNIFORM)
            letter = "v" if here is VARYING else "h" if isinstance(here, Parts) else "s"
            letter = "p" if kind.kind == "p" else letter
            known = here if letter == "s" and there is VARYING else None
            found[name] = Register(self.low.slots.offsets[name], letter, kind.bits, slots.offsets[name], known)
        return found
