"""What the sanitizer has to follow in a kernel: which accesses are checked, and for what; who keeps the order.

Reads of arrays that the kernel never writes cannot race, so they have no check; synchronisation through memory is
followed only in kernels that have a fence, an acquire or a release, since nothing else orders threads that way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir import Address, Immediate, Instruction
from ...isa import Form
from ...isa.effects import Access
from ..instructions.lowering import Lowering
from ..rewrite.builder import CountedStore
from ..rewrite.definedness import Definedness, checks_definedness
from .covered_loads import covered
from .kernel_facts import arrive_and_wait
from .proxy_instrumentation import ProductRegisters, ProxyInstrumentation
from .proven_accesses import NOTHING_PROVEN, Proven, same_statements, upheld
from .unneeded_barriers import unneeded_barriers
from .uses import Values, trusting
from .accesses import (
    bulk_accesses, checked_access, copy_groups, granularity, granule_of, holds_orders, is_of_tile, reads_tiles,
    strength, synchronise,
)

__all__ = ["Checks", "Needs"]


class Checks(NamedTuple):
    """Which checks are on, and what the launch requires of them.

    ``overlap``: arrays share memory, so provenance does not say what writes to it. ``unwritten``: the host has left
    memory uninitialised. ``proven``: what needs no check.
    """

    race: bool
    init: bool
    overlap: bool
    unwritten: bool
    order: bool
    cas: bool
    proven: Proven = NOTHING_PROVEN


class Needs:
    """What is followed of one function, by its instructions and by what the launch asks for."""

    def __init__(self, low: Lowering, checks: Checks, definedness: Definedness) -> None:
        self.low, self.checks, self.definedness = low, checks, definedness
        low.defers = False
        self.granule = granule_of(low.function)
        self.copy_groups = copy_groups(low.function) if checks.init else -1
        instructions = [(place, s) for place, s in enumerate(low.graph.statements) if isinstance(s, Instruction)]
        self.synchronises = synchronise([s.form for _, s in instructions])
        self.follows = checks.race and self.synchronises
        """Whether threads can synchronise through memory, and whether that is followed."""
        self.clustered = any(s.form.effects.barrier == "cluster" for _, s in instructions)
        of_cluster = {place: s for place, s in instructions if s.form.effects.barrier == "cluster"}
        self.waits_at_once = self.clustered and arrive_and_wait(low.graph, of_cluster)
        """Whether threads do nothing between their arrival at a barrier of the cluster and the end of its phase."""
        self.values = Values(low.graph)
        self.upheld = upheld(checks.proven, low.spaces, self._origin, definedness.flags)
        self.handed = self._handed_over(instructions) if checks.order else set()
        self.confirmed = self._confirmed(instructions) if checks.race and not checks.cas else set()
        pairs = [pair for basic_block in low.graph.blocks for pair in covered(low, basic_block)]
        self.covered, self.updates = {load for load, _ in pairs}, {store for _, store in pairs}
        barriers = [s.form.effects for _, s in instructions if s.form.effects.barrier == "block"]
        self.partial_barriers = not all(effects.waits for effects in barriers)
        x, y, z = low.block
        self.threads = -(-x * y * z // 32) * 32
        self.barriers_only = not self.follows and not self.handed and all(self._orders_all(s) for _, s in instructions)
        self.reach = same_statements(checks.proven.reach, low.spaces)
        """Accesses that are to shared memory of the cluster."""
        self.read: set[str] | None = set()
        self.written: set[str] | None = set()
        for place, statement in instructions:
            access = checked_access(statement.form)
            if access is not None and access.space != "local":
                if access.writes:
                    self.written = self._with(self.written, statement)
                elif place not in self.covered:
                    self.read = self._with(self.read, statement)
            for access in bulk_accesses(statement.form):
                known = access.kind != "tensor"  # the map says which array, when it is executed
                if access.writes:
                    self.written = self._with(self.written, statement, access.operand) if known else None
                if access.reads:
                    self.read = self._with(self.read, statement, access.operand) if known else None
            if reads_tiles(statement.form):
                self.read = None
        waited = any(bulk_accesses(s.form) and s.form.effects.completes == "mbarrier" for _, s in instructions)
        self.mbarriers = checks.race and self._follows_mbarriers([s for _, s in instructions])
        """Whether compiled code follows mbarriers and barriers of some warps or lanes, rather than Python."""
        self.proxies: ProxyInstrumentation | None = None
        if self.mbarriers and granularity(low.spaces).followed:
            self.proxies = ProxyInstrumentation(low, self.granule, checks.init, self.copy_groups >= 0)
            low.keeps_plans = True
            self.proxies.core_fences = any(s.form.effects.fence == "tcgen05" for _, s in instructions)
            self.barriers_only = False
        self.registers = ProductRegisters(low) if granularity(low.spaces).proxies else None
        self.grouped = any(bulk_accesses(s.form) and s.form.effects.completes == "bulk_group" for _, s in instructions)
        """Whether copies are completed by bulk groups."""
        self.counted = waited
        """Whether some are completed by mbarriers."""
        self.reports = checks.race and self.proxies is None and self._reports([s for _, s in instructions])
        """Whether Python follows what completes later in shared memory, where it keeps the order of threads."""
        self.fenced_mbarriers = checks.race and not self.mbarriers and self._is_clustered
        self.barriers_only = self.barriers_only and not self.reports
        self.bulk = checks.init and waited and self.proxies is None and not self.reports
        """Whether Python follows which bulk copies are complete."""
        if checks.overlap:
            self.written = self.read = None
        self.accesses = {
            place: self._needs(place, s, access) for place, s in instructions
            if (access := checked_access(s.form)) is not None
        }
        """Whether an access is checked, for races and for being initialised."""
        self.followed = {place for place, needs in self.accesses.items() if any(needs)}
        self._leave_out()
        copies = [each for _, s in instructions for each in self._bulk_needs(s)]
        mbarriers = checks.race and any(a.kind == "mbarrier" for _, s in instructions for a in s.form.effects.accesses)
        self.races = mbarriers or self.proxies is not None or self.reports or bool(self.handed)
        self.races = self.races or any(race for race, _ in (*self.accesses.values(), *copies))
        """Whether anything asks for the order of threads."""
        self.checked = any(any(needs) for needs in (*self.accesses.values(), *copies)) or self.races
        self.checked = self.checked or (self.registers is not None and bool(self.registers.hazards))
        of_block = {place: s for place, s in instructions if s.form.effects.barrier == "block"}
        self.unneeded_barriers = self._unneeded_barriers(of_block)
        """Barriers of the block that order nothing which is followed."""

    def _unneeded_barriers(self, barriers: dict[int, Instruction]) -> set[int]:
        alike = all(
            self._is_of_block(s) and s.guard is None and isinstance(s.operand("a"), Immediate)
            for s in barriers.values()
        )
        if not barriers or not alike or not self.races or self.mbarriers or granularity(self.low.spaces).proxies:
            return set()
        return unneeded_barriers(self.low.graph, set(barriers), self._is_followed)

    def _is_followed(self, place: int) -> bool:
        """Whether a statement does anything that is followed, beside barriers of the block."""
        statement = self.low.graph.statements[place]
        if not isinstance(statement, Instruction):
            return not checks_definedness(statement)
        form, effects = statement.form, statement.form.effects
        access = checked_access(form)
        if access is not None:
            return place in self.followed and (any(self.accesses[place]) or self._is_logged(place, form, access))
        if effects.control in ("exit", "return"):
            return self._is_clustered
        if effects.barrier == "block":
            return False
        orders = any((effects.arrives, effects.waits, effects.fence, effects.completes, effects.commits))
        return orders or any(access.space not in ("param", "const") for access in effects.accesses)

    def _is_logged(self, place: int, form: Form, access: Access) -> bool:
        """Whether an access is noted: threads synchronise by it, or data may be handed over."""
        return (self.follows and bool(strength(form)) and access.space != "local") or place in self.handed

    def _needs(self, place: int, statement: Instruction, access: Access) -> tuple[bool, bool]:
        """Whether an access may race, and whether it may be one to memory that is not initialised."""
        checks, origin = self.checks, self._origin(statement)
        race = checks.race and access.space != "local" and (access.writes or self._may_be_written(origin))
        init = checks.init and (self._is_private(access.space, origin) is not False or checks.unwritten)
        return race and place not in self.covered, init

    def _bulk_needs(self, statement: Instruction) -> list[tuple[bool, bool]]:
        """The same of the ends of a bulk copy, the source first."""
        found = []
        for access in bulk_accesses(statement.form)[::-1]:
            checks, origin = self.checks, self._origin(statement, access.operand)
            race = checks.race and (access.writes or self._may_be_written(origin))
            init = checks.init and (self._is_private(access.space, origin) is not False or checks.unwritten)
            found.append((race, init))
        return found

    @property
    def _is_clustered(self) -> bool:
        return self.low.spaces.cluster not in (None, (1, 1, 1))

    def _reports(self, instructions: list[Instruction]) -> bool:
        """Whether anything completes later in shared memory that compiled code does not follow."""
        return granularity(self.low.spaces).proxies or any(isinstance(s, CountedStore) for s in instructions)

    def _follows_mbarriers(self, instructions: list[Instruction]) -> bool:
        """Whether mbarriers of this block, and barriers of it, of some warps or of lanes, are what orders threads."""
        if self._is_clustered or not holds_orders([s.form for s in instructions]):
            return False
        if granularity(self.low.spaces).followed:
            return True
        found = any(a.kind == "mbarrier" for s in instructions for a in s.form.effects.accesses)
        some = any(s.form.effects.barrier == "block" and not self._is_of_block(s) for s in instructions)
        return found or some or any(is_of_tile(statement) for statement in instructions)

    def _leave_out(self) -> None:
        """Check nothing that is proven."""
        ordered, written = self.upheld.ordered, self.upheld.written
        followed = self.proxies is not None or self.reports
        for place, (race, init) in self.accesses.items():
            if followed and self._is_shared(place):
                continue  # what wgmma reads is in no proof
            number = id(self.low.graph.statements[place])
            self.accesses[place] = race and number not in ordered, init and number not in written
        if not followed and not any(init and self._finds_copies(self.low.graph.statements[place])
                                    for place, (_, init) in self.accesses.items()):
            self.copy_groups = -1

    def _is_shared(self, place: int) -> bool:
        """Whether an access may be one to shared memory."""
        statement: Any = self.low.graph.statements[place]
        access = checked_access(statement.form)
        return access is not None and self._is_private(access.space, self._origin(statement)) is not False

    def between_blocks(self, statement: Instruction, access: Access) -> tuple[str, bool] | None:
        """The array of an access that other blocks may reach, "" if it is not known, and whether it may race there."""
        origin = self._origin(statement, access.operand)
        if self._is_private(access.space, origin):
            return None
        race = (access.writes or self._may_be_written(origin)) and id(statement) not in self.upheld.ordered
        return origin if origin in self.low.spaces.entries else "", race

    def _finds_copies(self, statement: Any) -> bool:
        """Whether an access may read what an asynchronous copy writes."""
        access = checked_access(statement.form)
        if access is None or not access.reads:
            return False
        return self._is_private(access.space, self._origin(statement)) is not False

    def _confirmed(self, instructions: list[tuple[int, Instruction]]) -> set[int]:
        """The weak loads whose value a compare-and-swap of the same array confirms."""
        found = set()
        for place, statement in instructions:
            access = checked_access(statement.form)
            if access is None or access.writes or strength(statement.form):
                continue
            swaps = (self.low.graph.statements[swap] for swap in self.values.confirms(place))
            origin = self._origin(statement)
            if any(isinstance(swap, Instruction) and self._origin(swap) == origin for swap in swaps):
                found.add(place)
        return found

    def _handed_over(self, instructions: list[tuple[int, Instruction]]) -> set[int]:
        """The strong accesses by which data may be handed over without an order (:mod:`.hand_over`)."""
        strong = {place: s for place, s in instructions if (a := checked_access(s.form)) is not None
                  and strength(s.form) and a.space != "local" and id(s) not in self.upheld.in_turn}
        reads = {place: s for place, s in strong.items() if s.form.effects.reads}
        uses = {place: self.values.uses(place) for place in reads}
        choosing = {place for place, use in uses.items() if use.chooses or use.addresses}
        trusts = {place for place, s in reads.items() if trusting(self.values, place, s.form.effects.access)}
        stores = {self._origin(s) for s in strong.values() if not s.form.effects.reads}
        in_step = {place for place in trusts if uses[place].stored and not uses[place].chooses
                   and self._origin(reads[place]) in stores}
        trusts = {place for place in trusts if choosing - {place}}
        if not trusts:  # read-modify-writes count only where somebody sees what they have written
            choosing, strong = set(), {p: s for p, s in strong.items() if not s.form.effects.atomic}
        trusts |= in_step
        if not trusts:
            return set()
        origins = {self._origin(reads[place]) for place in trusts | choosing}
        known = self.low.spaces.entries
        if not all(origin in known for origin in origins):
            return set(strong)
        return {place for place, s in strong.items() if (o := self._origin(s)) in origins or o not in known}

    def _with(self, names: set[str] | None, statement: Instruction, operand: int | None = None) -> set[str] | None:
        """The names with that of the array which an instruction accesses; None for all, where it is not known."""
        origin = self.upheld.inside.get(id(statement)) or self._origin(statement, operand)
        if id(statement) in self.reach and names is not None:
            return names | self.low.spaces.shared
        return None if names is None or origin not in self.low.spaces.entries else names | {origin}

    def _orders_all(self, statement: Instruction) -> bool:
        """Whether a statement orders no threads, or all threads of the block."""
        effects = statement.form.effects
        if effects.barrier == "block":
            return self._is_of_block(statement)
        return not effects.barrier and not any(access.kind == "mbarrier" for access in effects.accesses)

    @staticmethod
    def _address(statement: Instruction) -> Address:
        return next(operand for operand in statement.operands if isinstance(operand, Address))

    def _origin(self, statement: Instruction, operand: int | None = None) -> str:
        address = self._address(statement) if operand is None else statement.operands[operand]
        return self.low.origin(address.base) if isinstance(address, Address) else ""

    def _is_of_block(self, statement: Instruction) -> bool:
        """Whether a barrier is for all threads of the block."""
        count = statement.operand("b")
        if not statement.form.effects.waits:
            return False
        return count is None or (not self.partial_barriers and getattr(count, "bits", None) == self.threads)

    def _may_be_written(self, origin: str) -> bool:
        """Whether the kernel may write what an address of this provenance reads."""
        if self.written is None or origin in self.written:
            return True
        return bool(self.written) and origin not in self.low.spaces.entries

    def _is_private(self, space: str, origin: str) -> bool | None:
        """Whether memory is reached by one block (True) or by all (False); None where that is not known."""
        if space != "global" and self.low.spaces.cluster not in (None, (1, 1, 1)):
            return None
        if space in ("shared", "global"):
            return space == "shared"
        number = self.low.spaces.entries.get(origin)
        if space == "local" or number is None or number in self.low.spaces.locals:
            return None
        guarded = self.low.spaces.ranges[number]
        return guarded is not None and guarded.shared
