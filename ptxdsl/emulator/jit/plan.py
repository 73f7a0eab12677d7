"""What is to be compiled as one function: micro-ops, basic blocks, registers. No LLVM, so that planning needs none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, NamedTuple

from ...isa import lookup
from .. import semantics
from ..instructions.addresses import AccessFlags
from ..instructions.barriers import Barrier
from ..instructions.control import Branch, Exit, IndexedBranch, Jump
from ..instructions.data import Compute
from ..instructions.instrumentation import ShadowCheck
from ..instructions.micro_op import MicroOp, PlacedMicroOp
from ..machine.layout import FULL, LANES
from ..machine.budgets import OWN_POLL, POLL

__all__ = [
    "BUDGET", "OWN_POLL_COST", "POLL_COST", "RETIRED", "BlockBarrier", "Idle", "Index", "Join", "LanePlan", "Layout",
    "Plan", "PlannedBlock", "PlannedOp", "PlannedRegister", "Refused", "Row", "Step", "Term", "defers_nan",
    "effort", "learns_entry", "loop_cost", "registers_of_entry", "votes",
]

RETIRED = -1
"""In place of the number of a barrier's basic block: the end of a warp, and also its begin."""
BUDGET = 1 << 24
"""Statements in loops that all warps of a block may execute; what takes longer resumes where it can be interrupted."""
POLL_COST = 1 << 13
"""What one turn of a loop that waits for memory costs, in statements: the first tier waits for long."""
CHECK = 25
"""Micro-ops that take LLVM as long as one of the sanitizer's checks."""
OWN_POLL_COST = BUDGET + 1
"""The same where another warp of the block is waited for: it runs when the first tier goes on."""


def effort(op: MicroOp) -> int:
    """How long LLVM takes for a micro-op, in others: the sanitizer's checks take it long."""
    return CHECK if isinstance(op, ShadowCheck) else 1


def learns_entry(placed: PlacedMicroOp) -> bool:
    """Whether a micro-op is an access that learns its buffer entry while the kernel runs."""
    return "flags" in placed.op.values and not placed.value("flags") & AccessFlags.ONE_ENTRY


def votes(planned: PlannedOp) -> bool:
    """Whether a barrier has a result."""
    return isinstance(planned.op, Barrier) and bool(planned.op.predicate)


class Refused(Exception):
    """A kernel that has no block function; the text says why, as ``a barrier under a guard (line 12)``."""


class Row(NamedTuple):
    """What a load reads of its lane's row: the first ``leader`` of a basic block's loads of it makes it."""

    leader: int
    column: int
    columns: int


class Index(NamedTuple):
    """How the addresses of an access follow from a number of 32 bits for each lane, by the slots of registers."""

    slot: int
    signed: bool
    scale: int
    """Bytes that the number counts."""
    bases: tuple[int, ...]
    """Registers of 64 bits that are added, the same in all lanes."""
    offset: int
    """A number that is added, besides that of the access."""


class PlannedOp(NamedTuple):
    """A micro-op; ``offset`` is where the first tier resumes if the function cannot execute it.

    ``access`` is the offset of the micro-op whose buffer entry is to be read while the kernel runs, since that is
    learned; -1 where the entry is known.
    """

    op: MicroOp
    values: Sequence[int]
    statement: int
    offset: int
    access: int = -1
    bounds: tuple[int, int] | None = None
    """Of a merged bounds check: bytes from the lowest access to this one, extent of all; (0, -1) if already checked."""
    shadowed: tuple[int, ...] | None = None
    """Of a merged shadow check: the statement of each granule; none where another micro-op checks them."""
    row: Row | None = None
    """Of a load of several in a row of each lane: its place there."""
    indexed: Index | None = None
    """Of an access whose addresses follow from an index."""
    beside: bool = False
    """Of an access whose lanes probably lie side by side."""

    def value(self, name: str) -> int:
        """A value of the record by its name."""
        return self.values[self.op.values.index(name)]


class BlockBarrier(NamedTuple):
    """A barrier of all threads of a block."""

    number: int
    expected: int
    wait: int
    """Offset of its micro-op."""
    after: int
    """Offset of the micro-op behind it."""
    statement: int
    place: int
    """Which micro-op of its basic block it is: the sanitizer's may come before."""
    cluster: bool = False
    """Whether it is the cluster's, where the block may have to wait for others."""


class PlannedBlock(NamedTuple):
    """A basic block; lanes wait for those at blocks of a lower ``priority``. ``start`` is its first statement."""

    number: int
    priority: int
    offset: int
    start: int
    ops: tuple[PlannedOp, ...]
    terminator: PlannedOp | None
    fallthrough: int
    targets: tuple[int, ...]
    divergent: bool
    converges: bool
    """Whether it begins with an instruction of the whole warp."""
    barrier: BlockBarrier | None
    turn: BlockBarrier | None = None
    """Where it begins a turn of a loop that all warps make before the next."""

    @property
    def rendezvous(self) -> BlockBarrier | None:
        """Where it begins with a place at which warps wait for each other."""
        return self.barrier if self.barrier is not None else self.turn

    @property
    def waits_for_cluster(self) -> bool:
        return self.barrier is not None and self.barrier.cluster

    @property
    def successors(self) -> list[int]:
        last = self.terminator.op if self.terminator is not None else None
        if isinstance(last, Exit):
            return []
        if isinstance(last, Jump):
            return [self.targets[0]]
        if isinstance(last, IndexedBranch):
            on = [self.fallthrough] if last.guard else []
            return [*dict.fromkeys((*self.targets, *on))]
        return ([self.fallthrough] if self.fallthrough >= 0 else []) + ([self.targets[0]] if last is not None else [])


def loop_cost(terminator: PlannedOp, target: PlannedBlock) -> int:
    """What a branch takes of the block's budget: if backward, the length of the loop, more where it polls memory."""
    op = terminator.op
    if not isinstance(op, (Branch, Jump)) or not op.backward:
        return 0
    cost = terminator.value("cost")
    cost = {POLL: POLL_COST, OWN_POLL: OWN_POLL_COST}.get(cost, cost - 1)
    return max(1, terminator.statement - target.start) + cost


class Layout(Enum):
    """How many numbers of a register the function keeps."""

    PREDICATE = "a mask"
    UNIFORM = "one"
    ROW_AFFINE = "one for each row of the block"
    VARYING = "one for each lane"


class PlannedRegister(NamedTuple):
    """A register: its slot in the function, and its offset in the warp's memory.

    ``lane_offsets`` are to be added where the function keeps one number and memory has one for each lane.
    """

    slot: int
    layout: Layout
    bits: int
    offset: int
    lane_offsets: tuple[int, ...] | None


class Join(NamedTuple):
    """The basic block where lanes reconverge that a branch sends there at once, while the others come another way."""

    block: int
    registers: tuple[str, ...]
    """Those that are live there and written on the way."""
    way: tuple[int, ...]
    """The basic blocks in between."""


class Term(NamedTuple):
    """A number of each thread of a block, of 32 bits.

    ``number``, ``register`` (one number, in this slot), ``thread`` (its number in the block), or the ``sum``,
    ``difference`` or ``product`` of two.
    """

    kind: str
    terms: tuple[Term, ...] = ()
    number: int = 0

    @property
    def grows(self) -> bool:
        """Whether it follows the thread's number."""
        return self.kind == "thread" or any(term.grows for term in self.terms)


class Idle(NamedTuple):
    """A branch at which lanes go whose number is beyond a bound; if all of a warp do, so do those of later warps."""

    taken: bool
    """Whether these lanes take the branch."""
    number: Term
    signed: bool
    """How it is compared."""
    ends: tuple[tuple[int, tuple[str, ...]], ...]
    """Barriers that such warps come to next, and the registers that they have written, the same in all of them."""

    def registers_at(self, barrier: int) -> tuple[str, ...] | None:
        """What such warps have written when they come to a barrier; None where they may do more on the way."""
        return dict(self.ends).get(barrier)


class LanePlan(NamedTuple):
    """The basic blocks that run one lane after the other, by their numbers; a warp of one lane is what they are for.

    ``returns`` are those of them that a recursive function returns at, ``parks`` those that lanes wait at.
    """

    blocks: dict[int, PlannedBlock]
    returns: frozenset[int]
    parks: frozenset[int]
    stacked: frozenset[int]
    """Statements that push and pop around calls: what they access is aligned, and there where it was pushed."""
    registers: tuple[tuple[int, tuple[int, ...] | None], ...]
    """Special registers that differ among lanes, in the slots -1, -2, ...: where the warp's number is, and offsets."""
    offsets: dict[str, tuple[int, ...]]
    """What each lane adds to registers that converged code has one number of."""

    def runs(self, group: set[int]) -> bool:
        """Whether a region of these basic blocks runs one lane after the other."""
        return not self.returns.isdisjoint(group) and group <= self.blocks.keys() | self.parks


class Step(NamedTuple):
    """What a turn of a loop adds to a register: what another one holds (``by``), or a number."""

    register: str
    statement: int
    by: str
    number: int


class Plan(NamedTuple):
    """What to compile; ``key`` says all that the code depends on."""

    blocks: tuple[PlannedBlock, ...]
    threads: int
    """Of a block; of the last warp lanes may be missing."""
    width: int
    """Lanes of each other warp."""
    warp_bytes: int
    registers: dict[str, PlannedRegister]
    live: Callable[[int, int], set[str]]
    """The registers that are live at a statement, or (1) behind it."""
    registers_of: Callable[[int], tuple[frozenset[str], frozenset[str]]]
    """What a statement reads and writes."""
    reads: tuple[frozenset[str], ...]
    writes: tuple[frozenset[str], ...]
    """Registers that each basic block reads and writes."""
    launch_invariant: frozenset[str]
    noncanonical: frozenset[int]
    """Slots that may hold a NaN other than PTX's."""
    lane_offsets: dict[int, tuple[int, ...]]
    row_affine: dict[int, Any]
    """Slots with a number for each row, and their offsets within rows."""
    row_lanes: int
    local: frozenset[int]
    """Slots that nothing reads but behind a write in the same basic block."""
    warp_invariant: frozenset[int]
    """Slots that hold the same in all warps of a block."""
    entry: int
    """Offset of the micro-op that warps begin with."""
    prologue: tuple[PlannedOp, ...]
    ending: frozenset[int]
    """Statements at which some lanes of a warp end, not only at the end of the data, and the others go on."""
    joins: dict[int, Join]
    """Where lanes wait that a branch leaves behind, by the basic block that it ends."""
    lanes_end: bool
    """Whether lanes may end before others of their warp."""
    after_ends: frozenset[int]
    """The basic blocks that a warp may come to when some of its lanes have ended."""
    leaves: bool
    """Whether the barrier of a cluster waits for the threads that have not ended."""
    clustered: int
    """Blocks of a cluster, 1 where it runs in none."""
    lanes: LanePlan | None
    key: str
    grid_steps: tuple[Step, ...] = ()
    """Of the loop whose turns several blocks make at once, if there is one."""
    threads_of_host: int = 1
    """Host threads that such blocks are shared out among."""
    block_uniform: frozenset[str] = frozenset()
    """Registers that are computed again in each turn of a loop or block, and hold the same in all warps."""
    along_rows: frozenset[str] = frozenset()
    """Registers that may differ among the blocks of a row of the grid."""
    idle: tuple[tuple[int, Idle], ...] = ()
    """Branches at which a warp without active lanes says the same of later ones, by the basic blocks that they end."""

    def is_scalar(self, name: str) -> bool:
        """Whether a register is one number that is the same in all warps."""
        register = self.registers[name]
        same = register.slot in self.warp_invariant
        return same and register.layout is Layout.UNIFORM and register.lane_offsets is None

    @property
    def warps(self) -> int:
        return -(-self.threads // self.width)

    @property
    def partial(self) -> bool:
        """Whether some warps of a block have fewer lanes than others."""
        return self.threads > self.width and self.threads % self.width > 0

    @property
    def varies(self) -> bool:
        """Whether converged code may run for less than all lanes."""
        return self.tail != FULL or self.lanes_end or bool(self.joins)

    @property
    def tail(self) -> int:
        """The lanes of the last warp."""
        return self.whole >> -self.threads % self.width

    @property
    def whole(self) -> int:
        """The lanes of each other warp."""
        return FULL >> LANES - self.width


def registers_of_entry(plan: Plan) -> set[str]:
    """Registers that nothing writes behind the first barrier."""
    todo = [block.number for block in plan.blocks if block.rendezvous is not None]
    behind = set[int]()
    while todo:
        at = todo.pop()
        if at not in behind:
            behind.add(at)
            todo += plan.blocks[at].successors
    return set(plan.registers).difference(*(plan.writes[number] for number in behind))


def defers_nan(op: MicroOp) -> bool:
    """Whether a micro-op may leave the host's NaN, and take any: others make what they read canonical first."""
    if not isinstance(op, Compute) or op.guard:
        return False
    return semantics.tolerates_any_nan(lookup(op.mnemonic)[op.number])
