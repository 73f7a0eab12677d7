"""What the sanitizer adds to a kernel for the async proxy: copies, wgmma, tcgen05, and fences between proxies.

The rules are those of PTX's memory model (ISA manual, "Memory Consistency Model", "Proxies"): accesses to one address
by different proxies are ordered only if a proxy fence stands on the way by which one happens before the other.

- A write by the generic proxy (a store, cp.async) is seen by a bulk or tensor copy, a wgmma, a ``tcgen05.mma`` or a
  ``tcgen05.cp``, if it happens before a ``fence.proxy.async`` of any thread, and that before the access. So it is with
  writes before writes. A read by the generic proxy needs no fence before the async proxy writes there: no compiler and
  no library of NVIDIA puts one.
- What the async proxy has accessed is over for a thread that has waited for what completes it (a phase of an mbarrier,
  a group of a warpgroup or of a thread), or that comes after such a thread. Waiting is the fence in that direction.
- What tcgen05 reads is complete with the phase of an mbarrier at which a later ``tcgen05.commit`` of its thread has
  arrived. An arrival of the thread itself says nothing of it.
- The block's shared memory may be gone once a thread has ended: it must have waited until its bulk groups have read it.
- The same holds of a copy into it that an mbarrier completes: somebody must have waited for its phase. Nothing
  is asked of ``cp.async``, by which pipelines fetch stages that nobody uses.
- An mbarrier that is made again, or invalid, has completed its copies, and waits for no bytes.
- A wait counts in lanes to which it has said that the phase is over, and only where something uses that: a copy is made
  where it stands here, but may take longer. Of a use nothing is asked: both sides of a branch may read on.
- Tensor memory that other warps have written is behind fences of tcgen05, in kernels that have any
  (:mod:`..codegen.proxy_checks.core_fences`).
- An mbarrier may complete a copy if a fence or a barrier stands between its initialisation and the copy. Compilers rely
  on barriers of the block alone, so these do.

A wgmma is of its warpgroup: a wait of one of the four warps is enough, as CUTLASS takes it, and its reads are those of
all. Each granule keeps its last write and the last two reads; of fences, groups, commits and phases the last few are
known, and what is older counts as ordered. Where Python has taken over the order of threads (:mod:`.warp_orders`), as
it does in kernels that poll flags, it decides what compiled code does not know of (:mod:`.proxy_orders`); in clusters
it follows all of this (:mod:`.async_events`).

In global memory a copy needs the fence as well (:mod:`..codegen.proxy_checks.fences`, with what it takes on trust), and
what a bulk group writes is over once its thread has waited for the group, not for its sources alone
(:mod:`..codegen.instrumentation.bulk_groups`). Several threads that make the same copy are told: each of them writes,
and nothing orders the writes; lanes of one instruction count as one, as compilers rely on it.
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
    ProxyCells, ProxyCommit, ProxyCoreFence, ProxyEnd, ProxyFence, ProxyGroup, ProxyHazard, ProxyMap, ProxyMbarrier,
    ProxyNote, ProxyObject, ProxyOperands, ProxyProduct, ProxyProductFence, ProxyRange, ProxyReuse, ProxyRows,
    ProxyTile, ProxyUnseen,
)
from ..instructions.tensor_cores.tensor_memory_copies import SHAPES, element_bits
from ..instructions.tensor_cores.tensor_products import PLAN
from ..instructions.tensor_cores.tensor_tiles import TilePlaces
from ..instructions.tensor_cores.tensor_transfers import cells_of, place_of
from ..rewrite.deferred_loads import reads_cells
from ...isa.tensor_maps import USED_BYTES
from ..instructions.tensor_cores.wgmma import ROWS, tiles_of
from ..machine.proxy_shadow import HAZARDS
from ..machine.shadow import Action, statement_bits
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
        self.core_fences = False
        """Whether the kernel has fences of tcgen05: Triton and Gluon emit none, and nothing is asked of them."""

    def _guard(self, statement: Instruction) -> Field:
        return self.low.operands.guard(statement)

    def _place(self) -> Field:
        return raw("i", statement_bits(self.low.place))

    def fence(self, statement: Instruction) -> None:
        """A fence, if it is one between proxies."""
        kinds, guard = fence_kinds(statement.form), self._guard(statement)
        if kinds:
            self.low.emit(ProxyFence(kinds, guard.kind), guard)

    def mbarrier(self, statement: Instruction, address: Address, guard: Field) -> None:
        """Before an operation on an mbarrier, or behind a wait."""
        kind, _, place = self.low.address(statement, address, 8, True, "shared")
        if action_of(statement.form) == Action.INITIALISES:
            self.low.emit(ProxyReuse(kind, guard.kind), lane_by_lane(kind, place), guard)
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
            low.emit(ProxyObject(kind, guard.kind), lane_by_lane(kind, place), guard, objects, self._place())

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

    def of_core(self, statement: Instruction) -> None:
        """A product or copy of tcgen05, and what it reads in shared memory."""
        low, guard = self.low, self._guard(statement)
        if statement.form.semantics == "tensor_memory_copy":
            shape = next(token for token in statement.form.tokens if token in SHAPES)
            descriptor = low.read(statement, statement.operand("s"), 64)
            bits = element_bits(statement)
            rows = ProxyRows(shape, bits, self.init, self.copies, self.granule, descriptor.kind, guard.kind)
            low.emit(rows, raw("q", 0), guard, descriptor, self._place()).links = {0: TilePlaces("k")}
            low.statement(statement)
            return
        low.statement(statement)
        found = [statement.operand(name) for name in "ab"]
        descriptors = [low.read(statement, each, 64) for each in found if not isinstance(each, Address)]
        zeros = low.read(statement, statement.operand("zero"), 64)
        op = ProxyProduct(
            self.init, self.copies, self.granule, tuple(each.kind for each in descriptors), zeros.kind, guard.kind
        )
        low.emit(op, guard, raw("i", low.slot(PLAN, 8)), *descriptors, zeros, self._place())
        held = {name: a for name in ("a", "e", "lut", "sa", "sb") if isinstance(a := statement.operand(name), Address)}
        if held and self.core_fences:
            places = [low.read(statement, each.base) for each in held.values()]
            check = ProxyOperands(tuple(held), tuple(each.kind for each in places), guard.kind)
            offsets = raw("i" * len(held), *(each.offset for each in held.values()))
            low.emit(check, guard, raw("i", low.slot(PLAN, 8)), *places, offsets, self._place())

    def core(self, statement: Instruction) -> bool:
        """A load of tensor memory, or a fence of tcgen05; False for others."""
        low, guard = self.low, self._guard(statement)
        if statement.form.effects.fence == "tcgen05":
            before = statement.form.tokens[0] == "fence::before_thread_sync"
            low.statement(statement)
            low.emit(ProxyCoreFence(before, guard.kind), guard)
            return True
        if not reads_cells(statement.form):
            return False
        (base, place), cells = place_of(low, statement), cells_of(statement)
        members = low.operands.number(0xFFFFFFFF, 32)
        op = ProxyCells(
            cells.shape, cells.registers, cells.packed, base.kind, members.kind, guard.kind, low.divergent
        )
        low.emit(op, guard, low.priority(), base, place, members, self._place())
        low.statement(statement)
        return True

    def commit(self, statement: Instruction, address: Address) -> None:
        """Before a commit of tcgen05."""
        kind, _, place = self.low.address(statement, address, 8, True)
        guard = self._guard(statement)
        self.low.emit(ProxyCommit(kind, guard.kind), lane_by_lane(kind, place), guard)

    def end(self, statement: Instruction, grouped: bool, counted: bool) -> None:
        """Before lanes end, in kernels with bulk groups, or with copies that mbarriers count."""
        guard = self._guard(statement)
        if grouped:
            self.low.emit(ProxyEnd(guard.kind), guard)
        if counted:
            self.low.emit(ProxyUnseen(guard.kind), guard)

    def group(self, statement: Instruction) -> None:
        """Behind what commits a group, or waits for groups."""
        effects, guard = statement.form.effects, self._guard(statement)
        of_thread = "bulk_group" in (effects.commits, effects.waits)
        left = statement.operands[0].bits if effects.waits and isinstance(statement.operands[0], Immediate) else 0
        self.low.emit(ProxyGroup(of_thread, bool(effects.commits), left, guard.kind), guard)
