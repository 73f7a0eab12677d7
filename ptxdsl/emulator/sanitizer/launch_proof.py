"""Which accesses of a kernel need no check, since nothing that a launch does can make them wrong.

A race needs two threads at one byte. There is none where the threads of a launch keep to bytes of their own in an
array, nor where those of a block do so between any two barriers in shared memory, or only read there, or only use
atomics, or only stores of one number (:mod:`..analysis.disjointness`, :mod:`..analysis.barrier_intervals`). Where
that is not plain, the kernel is executed for the threads of a block, as far as it follows from parameters and indices
(:mod:`..analysis.block_execution`), which also says what finds memory written. An access that is proven so against all
others of its array is neither checked nor recorded; what is not proven is checked as it runs. Proofs are made for
grid, block and parameters of a launch, and kept (:mod:`.proofs`).

Addresses of an array stay in it, since bounds are checked by provenance: so proofs hold only where the emulator takes
each access to be to the array that the proof is about. No proof is made of arrays that share memory, of those that
bulk copies or mbarriers use, nor of kernels with calls. A block reaches the shared memory of another one by addresses
of ``mapa``: what is reached so is proven by :mod:`.cluster_proof` or not at all; where the addresses are known to stay
in one variable, the others are as if there were no cluster.
"""

from __future__ import annotations

from collections import defaultdict

from ...ir import Address, Call, Immediate, Instruction, Register
from ...isa.effects import Access
from ...launch import Buffer, Scalar
from ..analysis.barrier_intervals import intervals, varying_registers
from ..analysis.block_execution import EFFORT, Stored
from ..analysis.disjointness import Footprint, are_disjoint, are_warps_disjoint, is_inside, is_within
from ..analysis.divergence import Shape3
from ..analysis.guarded_addresses import are_disjoint_within
from ..analysis.linear_values import unknown
from ..analysis.static_values import Known, StaticValues
from ..machine.address_spaces import AddressSpaces
from ..machine.layout import CLUSTER_ORIGIN, LOCAL_ORIGIN
from ..rewrite.index_checks import checks_index
from ..analysis.call_stack import uses_stack
from ..runtime.block_state import LaunchState
from .accesses import checked_access, strength
from .cluster_proof import SPACES, ArrayAccess, ClusterProof
from .executed_accesses import ExecutedAccesses
from .kernel_facts import KernelFacts
from .proven_accesses import NOTHING_PROVEN, Proven, array_of

__all__ = ["LaunchProof"]

MOST_ACCESSES = 4000
"""Accesses of one array that are compared."""
MOST_COMPARED = 1000
"""Pairs of a read and a write of an array, where each read is held against all writes."""

_NONE = 4
"""More than any access's strength."""
_STACK = "%stack"
"""Stands for what is pushed, among the arrays."""


class _Arguments:
    """What a launch passes to a kernel, and what of that the proofs have ``asked`` for."""

    def __init__(
        self, spaces: AddressSpaces, given: dict[str, Scalar | Buffer], asked: set[tuple[str, int, int]]
    ) -> None:
        self.spaces, self.given, self.asked = spaces, given, asked

    def number(self, name: str, offset: int, size: int) -> int | None:
        """Bytes of a parameter as a number."""
        argument = self.given.get(name)
        if not isinstance(argument, Scalar) or offset < 0 or offset + size > len(argument.data):
            return None
        self.asked.add((name, offset, size))
        return int.from_bytes(argument.data[offset : offset + size], "little")

    def array(self, symbol: str) -> str:
        """The memory that the address of a symbol, or in a parameter, is in."""
        if isinstance(self.given.get(symbol), Scalar):
            return ""
        return array_of(self.spaces, self.spaces.provenance.get(symbol, ""))


class LaunchProof(ClusterProof):
    """The proofs for one launch."""

    def __init__(
        self, kernel: KernelFacts, launch: LaunchState, given: dict[str, Scalar | Buffer], overlap: bool,
        effort: int = EFFORT,
    ) -> None:
        super().__init__(kernel, launch)
        arguments = _Arguments(launch.spaces, given, kernel.parameters)
        self.grid, self.cluster = launch.config.grid, launch.spaces.cluster or (1, 1, 1)
        self.values = StaticValues(kernel.graph, Known(
            self.grid, kernel.block, arguments.number, arguments.array, self.cluster,
        ))
        self.executed = ExecutedAccesses(
            kernel.graph, self.values.known, kernel.barriers, launch.spaces, launch.config.shared, effort
        )
        self.unclear: list[tuple[int, Instruction, Access]] = []
        """Accesses of which only execution may say where they are."""
        self.exact: set[int] = set()
        """Those whose addresses are known to be in their array, whatever they were computed from."""
        calls = any(isinstance(s, Call) and not checks_index(s) for s in kernel.graph.statements)
        self.excluded.update(("global",) if overlap else (), ("local",) if calls else ())
        self.stacked: set[int] = set()
        """Pushes around recursive calls, and the pops of what they wrote."""
        self.never: set[int] = set()
        """Accesses that no thread makes."""
        self.confirms = "cas" not in (launch.config.sanitize or ())
        """Whether a compare-and-swap says that a load before it is right."""

    def _find_accesses(self) -> None:
        for place, statement in self.kernel.statements:
            for access in statement.form.effects.accesses:
                if access.space in SPACES and (access.reads or access.writes):
                    self._collect(place, statement, access)
        self._clear_up()

    def run(self) -> Proven:
        self._find_accesses()
        reached, found_written = self._reached()
        ordered, written, in_turn = self.never | reached, self.never | self.stacked | found_written, set(self.never)
        between = None
        for name, found in self.accesses.items():
            group = _group(self.spaces, name)
            if name in self.excluded or group in self.excluded or len(found) > MOST_ACCESSES:
                continue
            if reached.issuperset(access.place for access in found):
                continue
            accesses = self._confirmed(found)
            if group == "local":
                written |= self._written(name, accesses, [])
            elif not any(access.footprint.writes for access in accesses):
                continue
            elif group == "global":
                places = {access.place for access in accesses}
                if self._is_safe(accesses, self.grid, 64, _NONE):
                    ordered, in_turn = ordered | places, in_turn | places
                elif self._is_safe(accesses, self.grid, 64, 3) or self._is_safe_as_executed(name, accesses):
                    ordered |= places
            else:
                between = self._intervals() if between is None else between
                ordered |= self._ordered_between(name, accesses, between, 1)
                if any(access.strength for access in accesses):
                    in_turn |= self._ordered_between(name, accesses, between, _NONE)
                written |= self._by_warps(name, accesses) or set()
                if self.kernel.barriers:
                    stored = [] if self.copied else self.executed.execution.stored
                    written |= self._written(name, accesses, stored)
        self.stopped |= self.executed.stopped
        if not ordered and not written and not self.reach:
            return NOTHING_PROVEN
        self.exact |= self._executed_inside()
        arrays = frozenset((access.place, name) for name, found in self.accesses.items() for access in found)
        arrays |= frozenset((place, _STACK) for place in self.stacked)
        exact, reach = frozenset(self.exact | self.stacked), frozenset(self.reach)
        return Proven(frozenset(ordered), frozenset(written), arrays, exact, frozenset(in_turn), reach)

    def _executed_inside(self) -> set[int]:
        """The accesses to shared memory that are in their arrays as they were executed, if they were."""
        if not self.executed.begun:
            return set()
        shared = [name for name in self.accesses if _group(self.spaces, name) == "shared"]
        return {
            access.place for name in shared for access in self.accesses[name]
            if access.place not in self.exact and self.executed.arrays_of(access.place) == {name}
        }

    def _collect(self, place: int, statement: Instruction, access: Access) -> None:
        """Find which array an access is to, and where."""
        effects, address = statement.form.effects, statement.operands[access.operand]
        if uses_stack(self.kernel.graph.def_use[place]):
            self.stacked.add(place)
            return
        if effects.completes == "async_group":  # stores stand for it
            self.copied |= access.writes
            return
        value, threads = None, None
        if isinstance(address, Address) and access.kind != "tensor":
            value, threads = self.values.address(place, address, statement.guard)
        if value is None or not value.origin:
            alone = self.cluster == (1, 1, 1)  # a number is no address of the block's own there
            if isinstance(address, Address) and access is checked_access(statement.form) and alone:
                self.unclear.append((place, statement, access))
                self.executed.ask(place, address, access, "")
            else:
                self._exclude(access)
        elif value.origin.startswith(CLUSTER_ORIGIN):
            self._collect_far(place, statement, access, value)
        elif access is not checked_access(statement.form):
            self.excluded.add(value.origin)
        elif threads is not None and not threads.any():
            self.never.add(place)
        else:
            footprint = Footprint(value, access.nbytes, threads, access.writes)
            stored = self._stored(place, statement) if access.writes and not access.reads else None
            found = ArrayAccess(place, value.origin, footprint, strength(statement.form), access.reads, stored)
            self.accesses[value.origin].append(found)
            if access.space == "shared" and is_inside(footprint, self.executed.size(value.origin)):
                self.exact.add(place)
            if isinstance(address, Address):
                self.executed.ask(place, address, access, value.origin)

    def _stored(self, place: int, statement: Instruction) -> int | None:
        values = [operand for operand in statement.operands if not isinstance(operand, Address)]
        plain = len(values) == 1 and isinstance(values[0], (Register, Immediate))
        return self.values.number(place, values[0]) if plain else None

    def _exclude(self, access: Access) -> None:
        self.excluded.update(SPACES[:3] if access.space == "generic" else (access.space,))

    def _clear_up(self) -> None:
        """Find by execution what the accesses are to that nothing else is known of."""
        for place, statement, access in self.unclear:
            names = self.executed.arrays_of(place)
            if not names:
                self.never.add(place)
                continue
            name = names.pop()
            if not name or names or access.space not in ("shared", "local"):
                self._exclude(access)
                continue
            self.exact.add(place)
            footprint = Footprint(unknown(64, name), access.nbytes, None, access.writes)
            self.accesses[name].append(ArrayAccess(place, name, footprint, strength(statement.form), access.reads))

    def _is_safe(self, accesses: list[ArrayAccess], grid: Shape3, width: int, strong: int) -> bool:
        """Whether no two accesses of different threads race."""
        if not any(access.footprint.writes for access in accesses):
            return True
        if all(access.strength >= strong for access in accesses):
            return True
        first = accesses[0]
        if first.stored is not None and all(
            access.stored == first.stored and access.footprint.nbytes == first.footprint.nbytes for access in accesses
        ):  # of elements that are aligned
            return True
        x, y, z = self.kernel.block
        return are_disjoint([access.footprint for access in accesses], grid, x * y * z, width)

    def _confirmed(self, accesses: list[ArrayAccess]) -> list[ArrayAccess]:
        """Weak loads count as strong ones where a compare-and-swap of the same array confirms what they read."""
        places = {access.place for access in accesses if access.reads and access.footprint.writes}
        if not places or not self.confirms:
            return accesses
        return [
            each if each.strength or each.footprint.writes or places.isdisjoint(self.kernel.uses.confirms(each.place))
            else each._replace(strength=3) for each in accesses
        ]

    # Shared memory

    def _intervals(self) -> list[frozenset[int]]:
        """The places of accesses that can run in one interval between barriers."""
        kernel = self.kernel
        every = frozenset(access.place for found in self.accesses.values() for access in found)
        if not kernel.barriers:
            return [every]
        steady = _Steady(self.spaces, self.accesses, self.excluded)
        numbers = {id(statement): place for place, statement in kernel.statements}
        _, apart = varying_registers(kernel.graph, lambda statement: steady(statement, numbers[id(statement)]))
        return intervals(kernel.graph, kernel.barriers, apart, set(every)) or [every]

    def _ordered_between(
        self, name: str, accesses: list[ArrayAccess], between: list[frozenset[int]], strong: int
    ) -> set[int]:
        """The accesses to an array in shared memory that race with none of the intervals that they can be in.

        Accesses that are as strong as ``strong`` do not race with each other.
        """
        by_place = {access.place: access for access in accesses}
        bad: set[int] = set()
        for places in {each.intersection(by_place) for each in between}:
            inside = [by_place[place] for place in sorted(places)]
            if inside and not self._is_safe(inside, (1, 1, 1), 32, strong):
                bad |= self._racing(inside, strong)
        if bad and self._by_warps(name, accesses) is not None:
            bad = set()
        if bad:
            footprints = {access.place: access.footprint for access in accesses}
            executed = self.executed.between_barriers(footprints, name)
            if executed is not None:
                bad, in_warps = set(), self._unsafe(by_place, executed, strong)
                x, y, z = self.kernel.block
                for inside in in_warps:
                    if not are_warps_disjoint([access.footprint for access in inside], x * y * z):
                        bad |= self._racing(inside, strong)
                if in_warps:  # what is left is between lanes of a warp, which its barriers order
                    phases = self.executed.within_warps(footprints, name)
                    for inside in self._unsafe(by_place, phases, strong):
                        bad |= self._racing(inside, strong)
        return by_place.keys() - bad

    def _by_warps(self, name: str, accesses: list[ArrayAccess]) -> set[int] | None:
        """Where barriers of some warps order all accesses to an array, those that find it written, as in _written."""
        if self.copied or not self.kernel.of_some or any(access.strength for access in accesses):
            return None
        warps = self.executed.execution.warps
        if warps is None or name in warps.racing:
            return None
        readers = {access.place for access in accesses if access.reads}
        return {access.place for access in accesses} if warps.early.isdisjoint(readers) else readers - warps.early

    def _racing(self, accesses: list[ArrayAccess], strong: int) -> set[int]:
        """Those of unsafe accesses that need a check: reads do not that no write can race with."""
        writes = [access for access in accesses if access.footprint.writes]
        places = {access.place for access in accesses}
        if not self._is_safe(writes, (1, 1, 1), 32, strong):
            return places
        reads: dict[int, list[ArrayAccess]] = defaultdict(list)
        for access in accesses:
            if not access.footprint.writes:
                reads[access.place].append(access)
        if len(reads) * len(writes) > MOST_COMPARED:
            return places
        return places - {
            place for place, found in reads.items() if self._is_safe([*writes, *found], (1, 1, 1), 32, strong)
        }

    def _unsafe(
        self, accesses: dict[int, ArrayAccess], executed: list[dict[int, list[Footprint]]], strong: int
    ) -> list[list[ArrayAccess]]:
        """Those of some times between barriers at which accesses race."""
        times = (
            [accesses[place]._replace(footprint=each) for place in found for each in found[place]] for found in executed
        )
        return [inside for inside in times if inside and not self._is_safe(inside, (1, 1, 1), 32, strong)]

    def _is_safe_as_executed(self, name: str, accesses: list[ArrayAccess]) -> bool:
        """Whether no accesses of different threads to an array in global memory race, as they are executed."""
        x, y, z = self.kernel.block
        found = self.executed.all({access.place: access.footprint for access in accesses}, name)
        if found is None:
            return False
        if are_disjoint([footprint for _, footprint in found], self.grid, x * y * z, 64):
            return True
        statements = self.kernel.graph.statements
        bounds = {place: self.values.bounds(place, statements[place].guard) for place, _ in found}
        within = [(footprint, bounds[place]) for place, footprint in found] if any(bounds.values()) else []
        return bool(within) and are_disjoint_within(within, self.grid, x * y * z)

    def _written(self, name: str, accesses: list[ArrayAccess], stored: list[Stored]) -> set[int]:
        """The accesses to an array of a block that find it written, and those that nobody need follow then."""
        comes_before = self.values.definitions.comes_before
        readers = [access for access in accesses if access.reads]
        found = {
            access.place for access in readers if any(
                name in written and comes_before(barrier, access.place) and is_within(access.footprint, written[name])
                for barrier, written in stored
            )
        }
        if self.executed.complete:
            found.update(access.place for access in readers if access.place not in self.executed.execution.early)
        return {access.place for access in accesses} if len(found) == len(readers) else found


class _Steady:
    """Whether a load gives all threads that make it the same, whenever they do: the kernel does not write there."""

    def __init__(self, spaces: AddressSpaces, found: dict[str, list[ArrayAccess]], excluded: set[str]) -> None:
        self.places = {access.place: access.array for accesses in found.values() for access in accesses}
        changing = {name for name, accesses in found.items() if any(access.footprint.writes for access in accesses)}
        self.names = {
            name for name in found
            if name not in changing | excluded and ("shared" if spaces.is_shared(name) else "global") not in excluded
        }

    def __call__(self, statement: Instruction, place: int) -> bool:
        return statement.form.space in ("param", "const") or self.places.get(place, "") in self.names


def _group(spaces: AddressSpaces, name: str) -> str:
    """The space that an array is in."""
    return "local" if name.startswith(LOCAL_ORIGIN) else "shared" if spaces.is_shared(name) else "global"
