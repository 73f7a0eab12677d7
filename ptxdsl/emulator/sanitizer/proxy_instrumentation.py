"""What the sanitizer adds to a kernel for the async proxy: bulk and tensor copies, wgmma, and fences between proxies.

The rules are those of PTX's memory model (ISA manual, "Memory Consistency Model", "Proxies"): accesses to one address
by different proxies are ordered only if a proxy fence stands on the way by which one happens before the other.

- A write by the generic proxy (a store, cp.async) is seen by a bulk or tensor copy, or a wgmma, if it happens before a
  ``fence.proxy.async`` of any thread, and that before the access. So it is with writes before writes. A read by the
  generic proxy needs no fence before the async proxy writes there: no compiler and no library of NVIDIA puts one.
- What the async proxy has accessed is over for a thread that has waited for what completes it (a phase of an mbarrier,
  a group of a warpgroup or of a thread), or that comes after such a thread. Waiting is the fence in that direction.
- An mbarrier may complete a copy if a fence or a barrier stands between its initialisation and the copy. Compilers rely
  on barriers of the block alone, so these do.

A wgmma is of its warpgroup: a wait of one of the four warps is enough, as CUTLASS takes it, and its reads are those of
all. Each granule keeps its last write and the last two reads; of fences, groups and phases the last few are known, and
what is older counts as ordered. Not followed are blocks of clusters, and those where Python has taken over the order of
threads (:mod:`.warp_orders`); of global memory the proxies are not told apart.
"""

from __future__ import annotations

from typing import Any

from ...ir import Address, Immediate, Instruction
from ..analysis.wgmma_registers import Hazard, hazards
from ..instructions.addresses import lane_by_lane
from ..instructions.bulk_copies import hosts, slot
from ..instructions.lowering import Lowering
from ..instructions.operands import Field, raw
from ..instructions.proxy_checks import (
    ProxyFence, ProxyGroup, ProxyHazard, ProxyMap, ProxyMbarrier, ProxyNote, ProxyObject, ProxyProductFence, ProxyRange,
    ProxyTile,
)
from ...isa.tensor_maps import USED_BYTES
from ..instructions.wgmma import ROWS, tiles_of
from ..machine.proxy_shadow import HAZARDS
from ..machine.shadow import statement_bits
from .accesses import action_of, fence_kinds

__all__ = ["ProductRegisters", "ProxyInstrumentation"]


class ProductRegisters:
    """The registers of wgmma: what may be touched too early is known before the run, and judged in it."""

    def __init__(self, low: Lowering) -> None:
        self.low = low
        found = hazards(low.graph)[:HAZARDS]
        self.hazards: dict[int, list[tuple[int, Hazard]]] = {}
        self.touches: dict[int, list[tuple[int, bool]]] = {}
        for number, hazard in enumerate(found):
            self.hazards.setdefault(hazard.place, []).append((number, hazard))
            if hazard.other >= 0:
                self.touches.setdefault(hazard.other, []).append((number, hazard.kind == "pending"))

    def before(self, statement: Instruction) -> None:
        """Before an instruction: whether it touches a register too early, and what it touches itself."""
        if not self.hazards:
            return
        low, place, guard = self.low, self.low.place, self.low.operands.guard(statement)
        for number, hazard in self.hazards.get(place, ()):
            op = ProxyHazard(hazard.kind, number, guard.kind)
            low.emit(op, guard, raw("i", number), raw("i", statement_bits(place)))
        for number, product in self.touches.get(place, ()):
            low.emit(ProxyNote(product, number, guard.kind), guard)
        if statement.form.effects.fence == "wgmma":
            low.emit(ProxyProductFence(guard.kind), guard)

    def group(self, statement: Instruction) -> None:
        """Behind what commits a group of products, or waits for groups."""
        if not self.hazards:
            return
        effects, guard = statement.form.effects, self.low.operands.guard(statement)
        left = statement.operands[0].bits if effects.waits and isinstance(statement.operands[0], Immediate) else 0
        self.low.emit(ProxyGroup(False, bool(effects.commits), left, guard.kind), guard)


class ProxyInstrumentation:
    """Adds them to one function."""

    def __init__(self, low: Lowering, granule: int, init: bool, copies: bool) -> None:
        self.low, self.granule, self.init, self.copies = low, granule, init, copies

    def _guard(self, statement: Instruction) -> Field:
        return self.low.operands.guard(statement)

    def _place(self) -> Field:
        return raw("i", statement_bits(self.low.place))

    def fence(self, statement: Instruction) -> None:
        """A fence, if it is one between proxies."""
        kinds, guard = fence_kinds(statement.form), self._guard(statement)
        if kinds:
            self.low.emit(ProxyFence(kinds, guard.kind), guard)

    def mbarrier(self, statement: Instruction, address: Address) -> None:
        """Before an operation on an mbarrier."""
        kind, _, place = self.low.address(statement, address, 8, True, "shared")
        guard = self._guard(statement)
        op = ProxyMbarrier(kind, action_of(statement.form), guard.kind)
        self.low.emit(op, lane_by_lane(kind, place), guard, self._place())

    def copied(
        self, statement: Instruction, operand: int, writes: bool, size: Field, identity: tuple[Field, ...]
    ) -> None:
        """What a copy writes to shared memory, or reads there; its place is known by now."""
        low, guard = self.low, self._guard(statement)
        of_thread = statement.form.effects.completes == "bulk_group"
        objects = [] if of_thread else [raw("i", slot(low, "%proxy.object", 8))]
        op = ProxyRange(
            writes, of_thread, self.init and not writes, self.copies and not writes, self.granule, size.kind,
            tuple(each.kind for each in identity), guard.kind,
        )
        low.emit(op, guard, size, hosts(low, operand), *objects, *identity, self._place())

    def completes(self, statement: Instruction) -> None:
        """Find the mbarrier that completes a copy, and its phase."""
        low, guard, mbar = self.low, self._guard(statement), statement.operand("mbar")
        if isinstance(mbar, Address):
            kind, _, place = low.address(statement, mbar, 8, True, "shared")
            objects = raw("i", slot(low, "%proxy.object", 8))
            low.emit(ProxyObject(kind, guard.kind), lane_by_lane(kind, place), guard, objects)

    def map(self, statement: Instruction, operand: int) -> None:
        """The tensor map that a copy uses, where that is in memory which the kernel may change."""
        low, guard = self.low, self._guard(statement)
        address = statement.operands[operand]
        origin = low.origin(address.base) if isinstance(address, Address) else ""
        given = any(name == origin and nbytes >= USED_BYTES for name, _, nbytes in low.spaces.parameters)
        if not given and low.spaces.function.parameters:
            low.emit(ProxyMap(self.granule, guard.kind), guard, hosts(low, operand), self._place())

    def product(self, statement: Instruction) -> None:
        """The tiles in shared memory that a wgmma reads."""
        low, guard = self.low, self._guard(statement)
        for tile in tiles_of(statement):
            descriptor: Any = low.read(statement, tile.descriptor, 64)
            lines = ROWS if tile.left else tile.lines
            op = ProxyTile(
                tile.major, tile.left, lines, tile.depth, tile.pieces, self.init, self.copies, self.granule,
                descriptor.kind, guard.kind,
            )
            low.emit(op, guard, descriptor, self._place())

    def group(self, statement: Instruction) -> None:
        """Behind what commits a group, or waits for groups."""
        effects, guard = statement.form.effects, self._guard(statement)
        of_thread = "bulk_group" in (effects.commits, effects.waits)
        left = statement.operands[0].bits if effects.waits and isinstance(statement.operands[0], Immediate) else 0
        self.low.emit(ProxyGroup(of_thread, bool(effects.commits), left, guard.kind), guard)
