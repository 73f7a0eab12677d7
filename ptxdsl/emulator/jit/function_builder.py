"""The function of a whole kernel while it is being made: what emitters ask of it, its registers, its exits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ..semantics.lanes import Lanes
from ..machine.layout import FULL, LANES, NEVER, Block, Entry, Warp
from ..codegen import memory
from ..codegen.handler import Handler, i32, i64, lanes_of, natural, pointer
from .superinstructions import ARITHMETIC, Deferring, Slot
from .plan import Plan, Register, Spot
from .inlining import SURE, PartsAccess, SharedAccess

__all__ = ["Exit", "Whole"]

_FOLLOWING = object()
MOST_LOST = 4
"""Registers whose old numbers are kept only for an exit that is rarely taken."""
_KNOWN = {
    Warp.ALIVE: ir.Constant(i32, FULL), Warp.INITIAL: ir.Constant(i32, FULL), Warp.PARKED: ir.Constant(i32, NEVER),
}
"""What a warp whose lanes all live and are together has; it is not kept in memory here."""


@dataclass
class Exit:
    """An exit to the records: where to go on there, and what registers have then; how many have changed since."""

    block: ir.Block
    offset: int
    values: dict[int, tuple[Register, Any]]
    lost: int = 0
    loads: bool = False
    stores: bool = False


class Whole(Handler):
    """The function under construction. Registers are in variables of its own, which LLVM makes values."""

    lasting = False

    def mark(self, instruction: Any, what: str) -> Any:
        instruction.set_metadata("tbaa", self.kinds[what])
        return instruction

    def __init__(self, module: ir.Module, name: str, plan: Plan) -> None:
        super().__init__(module, name)
        self.plan = plan
        self.rooms = self.ir
        self.ir = ir.IRBuilder(self.function.append_basic_block("body"))
        self.begin_block = self.ir.block
        self.ahead = ir.IRBuilder(self.function.append_basic_block("ahead"))
        self.entries: dict[tuple[int, bool, int], tuple[Any, Any, Any]] = {}
        self.slots: dict[Any, Any] = {}
        self.spot: Spot | None = None
        self.lanes: Any = self.i32(FULL)
        self.clean: set[int] = set()
        self.cont: ir.Block | None = None
        self.part = 0
        self.stored: list[tuple[Any, Any]] | None = None
        self.arithmetic = False
        self.masked = False
        self.epoch: Exit | None = None
        self.epochs: list[Exit] = []
        self.leaving: ir.Block | None = None
        self.written: frozenset[str] = frozenset()
        root = module.add_metadata(["ptxdsl"])
        state, user = (module.add_metadata([name, root, i64(0)]) for name in ("state", "user"))
        self.state_tag, self.user_tag = (module.add_metadata([kind, kind, i64(0)]) for kind in (state, user))
        shadow = module.add_metadata(["shadow", root, i64(0)])
        self.kinds = {"shadow": module.add_metadata([shadow, shadow, i64(0)])}
        names = ("turn", "first", "budget", "active", "parked", "sync")
        self.v = {name: self.room(i32, 4) for name in names}
        self.v.update({name: self.room(i64, 8) for name in ("record", "begin")})
        self.base = super().load(self.block, Block.MEET, i64, fixed=True)
        self.number: Any = None

    def room(self, kind: ir.Type, align: int = 16) -> Any:
        place = self.rooms.alloca(kind)
        place.align = align
        return place

    # What the emitters ask for

    def begin(self, spot: Spot) -> None:
        self.spot, self.codes, self._read, self.cont = spot, spot.shape[-1], 0, None
        shape = spot.shape
        self.arithmetic = shape[0] == "data" and shape[1] in ARITHMETIC and not shape[4] and not self.masked
        if shape[0] not in SURE:
            self.remember(spot)

    def numbers(self, width: int) -> Lanes:
        return Deferring(self.ir, width) if self.arithmetic else super().numbers(width)

    def field(self, code: str = "i") -> Any:
        spot = self.spot
        assert spot is not None and self.codes[self._read] == code
        value = spot.values[self._read]
        self._read += 1
        if spot.access >= 0 and self._read == 2:
            place = self.ir.inttoptr(self.ir.add(self.base, self.i64(spot.access + 12)), i32.as_pointer())
            return self.ir.load(place, align=4)
        return ir.Constant(i32 if code == "i" else i64, value)

    def slot(self) -> Any:
        return Slot(int(self.field().constant))

    def known(self, place: Any, bits: int) -> Any:
        return self.vector(self.plan.vectors[int(place.constant)], bits)

    def vector(self, numbers: Iterable[int], bits: int) -> ir.Constant:
        element = ir.IntType(bits)
        return ir.Constant(lanes_of(element), [number & (1 << bits) - 1 for number in numbers])

    def load(self, base: Any, offset: Any, kind: ir.Type, align: int | None = None, fixed: bool = False) -> Any:
        if isinstance(base, Slot) and base.offset < Warp.REGISTERS:
            base, offset = self.warp, base.offset
        if isinstance(base, Slot):
            return self._get(base.offset, kind)
        mine = base is self.warp or base is self.block
        if base is self.warp and isinstance(offset, int):
            if offset in _KNOWN:
                return _KNOWN[offset]
            if offset == Warp.INDEX:
                return self.number
        lasting = base is self.block or (base is self.warp and isinstance(offset, int) and offset < Warp.REGISTERS)
        value = super().load(base, offset, kind, align, fixed or lasting)
        value.set_metadata("tbaa", self.state_tag if mine or fixed else self.user_tag)
        return value

    def store(self, value: Any, base: Any, offset: Any, align: int | None = None) -> None:
        if isinstance(base, Slot):
            if self.stored is not None:
                self.stored.append((base, value))
                return
            key = base.offset if base.offset not in self.plan.parts else (base.offset, self.part)
            self.ir.store(value, self._slot(key, value.type))
            self.clean.discard(base.offset)
            if self.epoch is not None and base.offset in self.epoch.values:
                self.epoch.lost += 1
            return
        place = self.ir.bitcast(self.add(base, offset), value.type.as_pointer())
        stored = self.ir.store(value, place, align=align or natural(value.type))
        stored.set_metadata("tbaa", self.state_tag if base is self.warp or base is self.block else self.user_tag)

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        value = super().call(name, result, *arguments)
        if name.startswith("llvm.masked."):
            value.set_metadata("tbaa", self.user_tag)
        return value

    @property
    def active(self) -> Any:
        return self.lanes

    def access(self, kind: str, pattern: tuple[str, int] | None, nbytes: int, write: bool) -> Any:
        return (PartsAccess if kind[0] == "H" else SharedAccess)(self, kind, pattern, nbytes, write)

    def limits(self, entry: int, write: bool, extent: int) -> tuple[Any, Any, Any]:
        """Of an entry: its lowest address, the bound, and the way to the host, found once for the whole block."""
        found = self.entries.get((entry, write, extent))
        if found is None:
            here, self.ir = self.ir, self.ahead
            place = self.add(self.load(self.block, Block.TABLE, pointer), entry)
            size = self.load(place, Entry.WRITABLE if write else Entry.SIZE, i64, fixed=True)
            bound = self.call("llvm.usub.sat.i64", i64, size, self.i64(extent))
            low, delta = (self.load(place, field, i64, fixed=True) for field in (Entry.LOW, Entry.DELTA))
            found = self.entries[entry, write, extent] = (low, bound, delta)
            self.ir = here
        return found

    def checked_together(self) -> tuple[int, int] | None:
        assert self.spot is not None
        return self.spot.together

    def merged(self) -> tuple[int, ...] | None:
        assert self.spot is not None
        return self.spot.merged

    def following(self) -> Any:
        return _FOLLOWING

    def goto(self, rec: Any) -> None:
        if rec is not _FOLLOWING:
            raise AssertionError("a record of its own")
        if self.cont is None:
            self.cont = self.block_named("cont")
        self.ir.branch(self.cont)

    def next(self) -> None:
        if self._read != len(self.codes):
            raise AssertionError(f"read {self._read} of the fields {self.codes!r} of {self.spot}")
        if self.cont is not None:
            self.ir.branch(self.cont)
            self.ir.position_at_end(self.cont)
            self.clean.clear()

    def splat(self, value: Any) -> Any:
        if isinstance(value, ir.Constant) and isinstance(value.type, ir.IntType):
            return Lanes(self.ir, LANES).const(value.type.width, int(value.constant))
        return super().splat(value)

    def branch_unless(self, condition: Any, otherwise: Callable[[], None]) -> None:
        if not (isinstance(condition, ir.Constant) and condition.constant):
            super().branch_unless(condition, otherwise)

    def tail(self, handler: Any, rec: Any) -> None:  # noqa: ARG002
        self.bail()

    def first_turns(self) -> None:
        """What follows in this record is for the first two warps only."""
        self.cont = self.block_named("cont")
        mine = self.block_named("mine")
        self.ir.cbranch(self.ir.icmp_signed("<", self.get("turn"), self.i32(2)), mine, self.cont)
        self.ir.position_at_end(mine)

    def through(self, slot: int, rec: Any) -> None:  # noqa: ARG002
        self.bail()

    def fault(self, kind: int, mask: Any = None) -> None:  # noqa: ARG002
        self.bail()

    def give_up(self, leave: Callable[[], None]) -> None:  # noqa: ARG002
        self.bail()

    # Registers

    def _slot(self, offset: Any, kind: ir.Type) -> Any:
        place = self.slots.get(offset)
        if place is None:
            place = self.slots[offset] = self.room(kind, 64 if isinstance(kind, ir.VectorType) else 8)
            self.rooms.store(ir.Constant(kind, None if isinstance(kind, ir.VectorType) else 0), place)
        if place.type.pointee != kind:
            raise AssertionError(f"a slot of {place.type.pointee} taken for {kind}")
        return place

    def _get(self, offset: int, kind: ir.Type) -> Any:
        known = self.plan.parts.get(offset)
        if known is not None:
            return self._spread(offset, kind, known)
        value = self.ir.load(self._slot(offset, kind))
        if offset in self.plan.raw and not self.arithmetic and offset not in self.clean:
            value = self._canonical(value)
            self.ir.store(value, self._slot(offset, kind))
            self.clean.add(offset)
        return value

    def _spread(self, offset: int, kind: ir.Type, known: Any) -> Any:
        """A register with a number a part: that of this part, or one for each lane."""
        if not isinstance(kind, ir.VectorType):
            return self.ir.load(self._slot((offset, self.part), kind))
        firsts = [self.ir.load(self._slot((offset, n), kind.element)) for n in range(0, LANES, known.lanes)]
        whole = memory.concat(self, [memory.spread(self, first, known.lanes) for first in firsts])
        return self.ir.add(whole, self.vector(known, kind.element.width))

    def _canonical(self, value: Any) -> Any:
        lanes = Lanes(self.ir, value.type.count if isinstance(value.type, ir.VectorType) else 1)
        bits = lanes.wrap(value)
        nan = bits.reals().isnan()
        return nan.pick(0x7FFFFFFF, bits).value

    def flush(self, names: set[str]) -> None:
        """Store registers where the warp has them."""
        for name in sorted(names & self.written):
            register = self.plan.registers[name]
            self._put_back(register, self._get(register.slot, register.kind))

    def fill(self, names: Iterable[str]) -> None:
        """Load registers from where the warp has them."""
        for name in sorted(names):
            register = self.plan.registers[name]
            if register.letter == "h":
                self._fill_parts(register)
                continue
            value = self.load(self.warp, register.offset, register.kind)
            if register.known is not None:
                value = self.ir.sub(value, ir.Constant(value.type, register.known[0] & (1 << register.bits) - 1))
            self.ir.store(value, self._slot(register.slot, register.kind))

    def _fill_parts(self, register: Register) -> None:
        element = ir.IntType(register.bits)
        for lane in range(0, LANES, self.plan.parts[register.slot].lanes):
            value = self.load(self.warp, register.offset + lane * register.bits // 8, element)
            self.ir.store(value, self._slot((register.slot, lane), element))

    # Ends

    def bail(self) -> None:
        """Leave this statement, and all that follows, to the records, which may repeat what came just before it."""
        assert self.epoch is not None
        self.ir.branch(self.epoch.block)

    def remember(self, spot: Spot) -> None:
        """Before a record that may be left for: what the warp is to have in its registers then."""
        epoch = self.epoch
        reads = spot.shape[0] not in ("store", "shadow_check", "wrap", "wrap_parts")
        if epoch is not None and epoch.lost <= MOST_LOST and not (epoch.stores and reads):
            epoch.loads |= reads
            return
        names = self.plan.needed(spot.statement, 0) & self.written
        values = {
            register.slot: (register, self._now(register))
            for register in (self.plan.registers[name] for name in sorted(names))
        }
        self.epoch = Exit(self.block_named("bail"), spot.offset, values, loads=reads)
        self.epochs.append(self.epoch)

    def _now(self, register: Register) -> Any:
        if register.letter == "h":
            return self._get(register.slot, register.kind)
        return self.ir.load(self._slot(register.slot, register.kind))

    def lasts(self, kind: str) -> None:
        """A record of a kind has changed memory: a store may be repeated with others, but no load before it."""
        epoch = self.epoch
        if epoch is not None and kind == "store" and not epoch.loads:
            epoch.stores = True
        else:
            self.epoch = None

    def finish_epochs(self) -> None:
        """The code of the exits of a step."""
        for epoch in self.epochs:
            self.ir.position_at_end(epoch.block)
            for register, value in epoch.values.values():
                self._put_back(register, self._canonical(value) if register.slot in self.plan.raw else value)
            self.ir.store(self.i64(epoch.offset), self.v["record"])
            assert self.leaving is not None
            self.ir.branch(self.leaving)
        self.epoch, self.epochs = None, []

    def _put_back(self, register: Register, value: Any) -> None:
        if register.known is not None:
            value = self.ir.add(self.splat(value), self.vector(register.known, register.bits))
        self.store(value, self.warp, register.offset)

    def leave(self, offset: int, needed: set[str]) -> None:
        self.clean = set()
        self.flush(needed)
        self.clean = set()
        self.ir.store(self.i64(offset), self.v["record"])
        assert self.leaving is not None
        self.ir.branch(self.leaving)

    def get(self, name: str) -> Any:
        return self.ir.load(self.v[name])

    def set(self, name: str, value: Any) -> None:
        variable = self.v[name]
        self.ir.store(ir.Constant(variable.type.pointee, value) if isinstance(value, int) else value, variable)
