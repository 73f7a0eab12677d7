"""One function for all warps of a block: the same emitters as the handlers', over the kernel's control flow.

Between two barriers the warps run one after the other, in the order in which the scheduler would take them, as a loop
around the steps (basic blocks) that lie between. A step is compiled for all 32 lanes together; where lanes may part for
longer, a second time under a mask, and then the lanes at the step of the lowest rank go first, as everywhere else.

Whatever is unusual (a check that fails, lanes that part where that was not expected, an end in the middle of a warp)
is left to the records: registers and the places of all warps are put where the scheduler wants them, and the function
returns. So nothing is decided twice, and a fault is found and told exactly as by the handlers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from llvmlite import ir

from ...isa import lookup
from .. import semantics
from ..lanes import Lanes
from ..layout import FULL, LANES, NEVER, Barrier, Block, Entry, Warp
from ..library import Shape
from . import atomic, control, data, memory, segments, warp, watch
from .base import Handler, byte, i32, i64, lanes_of, pointer
from .fused import ARITHMETIC, Deferring, Slot
from .machine import PAIR, starting

__all__ = ["ALONE", "FUSED", "Plan", "Register", "Spot", "Step", "Sync", "whole"]

BUDGET = 1 << 20
"""Backward branches of a warp between two barriers; what takes longer goes on where it can be interrupted."""


class Spot(NamedTuple):
    """A record: ``offset`` is that of its statement in the kernel's records, ``access`` of the record of its access.

    The access is given only where its entry is to be read there, since it is learned while the kernel runs.
    """

    shape: Shape
    values: Sequence[int]
    statement: int
    offset: int
    access: int = -1
    together: tuple[int, int] | None = None


class Sync(NamedTuple):
    """A barrier of the whole block: its number and count, its record and the one behind it, its statement."""

    barrier: int
    expected: int
    wait: int
    after: int
    place: int
    at: int
    """Which of its step's records it is: others may come before."""


class Step(NamedTuple):
    """A basic block. ``meeting``: it begins with an instruction of the whole warp."""

    number: int
    rank: int
    offset: int
    place: int
    spots: tuple[Spot, ...]
    ending: Spot | None
    fall: int
    targets: tuple[int, ...]
    parted: bool
    meeting: bool
    sync: Sync | None


class Register(NamedTuple):
    """Where a register is: its slot here, and in the warp. ``letter``: p, s (one number), h (one a part), v (one a lane).

    ``known`` is the vector to add where this function has one number and the warp's memory one a lane.
    """

    slot: int
    letter: str
    bits: int
    offset: int
    known: tuple[int, ...] | None

    @property
    def kind(self) -> ir.Type:
        """Its type here."""
        element = ir.IntType(32 if self.letter == "p" else self.bits)
        return lanes_of(element) if self.letter in "hv" else element


class Plan(NamedTuple):
    """What to compile. ``needed(place, skip)`` are the registers needed at a statement, ``always`` those set before."""

    steps: tuple[Step, ...]
    warps: int
    stride: int
    registers: dict[str, Register]
    needed: Callable[[int, int], set[str]]
    reads: tuple[frozenset[str], ...]
    writes: tuple[frozenset[str], ...]
    always: frozenset[str]
    raw: frozenset[int]
    vectors: dict[int, tuple[int, ...]]
    parts: dict[int, Any]
    width: int
    shared: frozenset[int]
    begin: int
    opening: tuple[Spot, ...]


_FOLLOWING = object()
_SURE = (
    "data", "parts", "param", "isspace", "fence", "branch", "jump", "barrier", "watch_begin", "watch_arrive",
    "watch_passed",
)
"""Records that are never left for."""
_LASTING = ("store", "atomic", "fence")
"""Records that must not be repeated."""
MOST_SHARED = 24
"""Loads that are made once for all warps."""
MOST_LOST = 4
"""Registers whose old numbers are kept only for an exit that is rarely taken."""


@dataclass
class _Epoch:
    """An exit to the records: where to go on there, and what registers have then; how many have changed since."""

    block: ir.Block
    offset: int
    values: dict[int, tuple[Register, Any]]
    lost: int = 0


_UNTIL_NEXT = -1


def _alone(h: Handler, _: Shape) -> None:
    """Records that are left for: the service of Python, and what stops a kernel."""
    h.bail()  # type: ignore[attr-defined]


def _seldom(h: Handler, shape: Shape) -> None:
    """Go on where no lane is concerned."""
    mask = data.guard_mask(h, shape[1], True)
    h.branch_unless(h.ir.icmp_unsigned("==", mask, h.i32(0)), h.bail)  # type: ignore[attr-defined]


def _of_module(emit: Callable[[Any, str, Shape], None]) -> Callable[[Handler, Shape], None]:
    return lambda h, shape: emit(h, "", shape)


class _Access(memory.Access):
    """An address whose entry is looked at once for all accesses of the block."""

    def limits(self, extent: Any) -> tuple[Any, Any, Any]:
        h: Any = self.h
        if h.spot.access >= 0:
            return super().limits(extent)
        return h.limits(h.spot.values[1], self.write, int(extent.constant))


class _PartsAccess(_Access):
    """An address with a number for each part, and neighbours within it."""

    def __init__(self, h: Handler, kind: str, pattern: tuple[str, int] | None, nbytes: int, write: bool) -> None:
        super().__init__(h, kind, pattern, nbytes, write)
        self.extent: Any = h.field()

    def check_scalar(self) -> tuple[Any, Any]:
        h: Any = self.h
        assert self.pattern is not None
        low, bound, delta = self.limits(h.i64(int(self.extent.constant)))
        good: Any = ir.Constant(ir.IntType(1), 1)
        hosts = []
        for h.part in range(0, LANES, self.pattern[1]):
            address = self.base()
            good = h.ir.and_(good, h.ir.icmp_unsigned("<", h.ir.sub(address, low), bound))
            if self.nbytes > 1:
                odd = h.ir.and_(address, h.i64(self.nbytes - 1))
                good = h.ir.and_(good, h.ir.icmp_unsigned("==", odd, h.i64(0)))
            hosts.append(h.ir.add(address, delta))
        h.part = 0
        self.segments = [h.ir.sub(host, hosts[0]) for host in hosts[1:]]
        return good, hosts[0]


def _by_part(h: Any, shape: Shape) -> None:
    """("parts", mnemonic, index among its forms, classes, codes): the result in the first lane of each part."""
    _, mnemonic, index, kinds, _ = shape
    form = lookup(mnemonic)[index]
    slot: Any = None
    read: list[tuple[Any, Any, Any]] = []
    for spec, kind in zip(form.operands, kinds):
        if spec.written:
            slot = h.slot()
        elif kind[0] == "#":
            read.append((int(kind[1:]), None, None))
        else:
            read.append((_first_lane(h, kind), kind, spec))
    results = []
    for h.part in range(0, LANES, h.plan.parts[slot.offset].lanes):
        values = [data.cut(h, get(), spec) if kind else get for get, kind, spec in read]
        result = semantics.lookup(form)(h.numbers(1), form, *values)
        signed = form.operands[0].type is not None and form.operands[0].type.is_signed
        results.append((h.part, data.fit(h, result, int(kinds[0][1:]), signed)))
    for h.part, result in results:
        h.store(result, slot, 0)
    h.part = 0
    h.next()


def _first_lane(h: Any, kind: str) -> Callable[[], Any]:
    """What gives an operand's number in the first lane of the current part."""
    if kind[0] in "IBUPN":
        value = data.source(h, kind, 1)
        return lambda: value
    element = ir.IntType(int(kind[1:]))
    slot = h.slot()
    if kind[0] == "X":
        return lambda: h.load(slot, 0, element)
    number, known = h.load(slot, 0, element), h.plan.vectors[int(h.field("q").constant)]
    return lambda: h.ir.add(number, ir.Constant(element, known[h.part] & (1 << element.width) - 1))


def _bounded_parts(h: Any, shape: Shape) -> None:
    """("wrap_parts", class, signed, codes): as wrap, for each part."""
    _, kind, signed, _ = shape
    first = _first_lane(h, kind)
    least, most = h.field("q"), h.field("q")
    good: Any = ir.Constant(ir.IntType(1), 1)
    for h.part in range(0, LANES, h.plan.width):
        value = first()
        wide = (h.ir.sext if signed else h.ir.zext)(value, i64)
        bits = value.type.width
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        good = h.ir.and_(good, h.ir.icmp_signed(">=", h.ir.add(wide, least), h.i64(low)))
        good = h.ir.and_(good, h.ir.icmp_signed("<=", h.ir.add(wide, most), h.i64(high)))
    h.part = 0
    h.branch_unless(good, h.bail)
    h.next()


FUSED: dict[str, Callable[[Any, Shape], None]] = {
    "data": data.compute, "param": memory.fetch, "wrap": control.bounded,
    "load": lambda h, shape: memory.load_with(h, shape, h.function),
    "store": lambda h, shape: memory.store_with(h, shape, h.function),
    "atomic": lambda h, shape: atomic.atomic_with(h, shape, h.function),
    "watch": lambda h, shape: watch.watch_with(h, shape, h.function), "watch_begin": _of_module(segments.begin),
    "watch_arrive": _of_module(segments.arrive), "watch_passed": _of_module(segments.passed),
    "parts": _by_part, "wrap_parts": _bounded_parts,
    "isspace": _of_module(data.isspace), "fence": lambda h, _: h.ir.fence("seq_cst"),
    **{kind: _of_module(getattr(warp, name)) for kind, name in (
        ("meet", "meet"), ("shuffle", "shuffle"), ("vote", "vote"), ("activemask", "activemask"), ("elect", "elect"),
        ("match", "match"), ("redux", "redux"),
    )},
}
"""What can be compiled in place."""
ALONE: dict[str, Callable[[Any, Shape], None]] = {"service": _seldom, "trap": _seldom, "exit": _seldom}
"""What is left for, if it concerns anybody."""


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
        self.epoch: _Epoch | None = None
        self.epochs: list[_Epoch] = []
        self.leaving: ir.Block | None = None
        self.written: frozenset[str] = frozenset()
        root = module.add_metadata(["ptxdsl"])
        state, user = (module.add_metadata([name, root, i64(0)]) for name in ("state", "user"))
        self.state_tag, self.user_tag = (module.add_metadata([kind, kind, i64(0)]) for kind in (state, user))
        tags = module.add_metadata(["tags", root, i64(0)])
        self.kinds = {"tags": module.add_metadata([tags, tags, i64(0)])}
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
        if shape[0] not in _SURE:
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
        stored = self.ir.store(value, place, align=align or _natural(value.type))
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
        return (_PartsAccess if kind[0] == "H" else _Access)(self, kind, pattern, nbytes, write)

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

    def tail(self, handler: Any, rec: Any) -> None:
        self.bail()

    def first_turns(self) -> None:
        """What follows in this record is for the first two warps only."""
        self.cont = self.block_named("cont")
        mine = self.block_named("mine")
        self.ir.cbranch(self.ir.icmp_signed("<", self.get("turn"), self.i32(2)), mine, self.cont)
        self.ir.position_at_end(mine)

    def through(self, slot: int, rec: Any) -> None:
        self.bail()

    def fault(self, kind: int, mask: Any = None) -> None:
        self.bail()

    def give_up(self, leave: Callable[[], None]) -> None:
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
        if self.epoch is not None and self.epoch.lost <= MOST_LOST:
            return
        names = self.plan.needed(spot.statement, 0) & self.written
        values = {
            register.slot: (register, self._now(register))
            for register in (self.plan.registers[name] for name in sorted(names))
        }
        self.epoch = _Epoch(self.block_named("bail"), spot.offset, values)
        self.epochs.append(self.epoch)

    def _now(self, register: Register) -> Any:
        if register.letter == "h":
            return self._get(register.slot, register.kind)
        return self.ir.load(self._slot(register.slot, register.kind))

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


_KNOWN = {Warp.ALIVE: ir.Constant(i32, FULL), Warp.INITIAL: ir.Constant(i32, FULL), Warp.PARKED: ir.Constant(i32, NEVER)}
"""What a warp whose lanes all live and are together has; it is not kept in memory here."""


def _natural(kind: ir.Type) -> int:
    from .base import natural

    return natural(kind)


class _Masked:
    """Steps where lanes may be apart: they have a mask each of the lanes that wait there, and run by rank."""

    def __init__(self, stretch: _Stretch, members: list[Step], exits: list[Step]) -> None:
        self.stretch, self.members = stretch, {step.number for step in members}
        h = self.h = stretch.h
        self.chain = sorted([*members, *exits], key=lambda step: step.rank)
        self.pending = {step.number: h.room(i32, 4) for step in self.chain}
        self.checks = {step.number: h.block_named(f"check{step.number}_") for step in self.chain}
        self.bodies = {
            step.number: h.block_named(f"masked{step.number}_") for step in members if not self._together(step)
        }
        self.leaving = h.block_named("leave_masked")

    @staticmethod
    def _together(step: Step) -> bool:
        return step.sync is not None or step.meeting

    def enter(self, lanes: dict[int, Any]) -> None:
        """Lanes part: so many go on at each step."""
        h = self.h
        for number, place in self.pending.items():
            h.ir.store(lanes.get(number, h.i32(0)), place)
        h.ir.branch(self.checks[min(lanes, key=lambda number: self.stretch.plan.steps[number].rank)])

    def emit(self) -> None:
        for place, step in enumerate(self.chain):
            after = self.chain[place + 1] if place + 1 < len(self.chain) else None
            self._check(step, after)
            if step.number in self.bodies:
                self._body(step, after)
        self._leave()

    def _check(self, step: Step, after: Step | None) -> None:
        h = self.h
        h.ir.position_at_end(self.checks[step.number])
        lanes = h.ir.load(self.pending[step.number])
        here = h.block_named("here")
        if after is None:
            h.ir.branch(here)
        else:
            h.ir.cbranch(h.ir.icmp_unsigned("!=", lanes, h.i32(0)), here, self.checks[after.number])
        h.ir.position_at_end(here)
        if step.number in self.bodies:
            h.ir.branch(self.bodies[step.number])
            return
        all_, part = h.block_named("all"), h.block_named("part")
        h.ir.cbranch(h.full(lanes), all_, part)
        h.ir.position_at_end(all_)
        h.clean = set()
        self.stretch.edge(step.number)
        h.ir.position_at_end(part)
        self._leave_at(step)

    def _leave_at(self, step: Step) -> None:
        """The lanes that wait at a step go on there in the records."""
        h = self.h
        h.set("active", h.ir.load(self.pending[step.number]))
        h.ir.store(h.i32(0), self.pending[step.number])
        h.clean = set()
        h.leaving = self.leaving
        h.leave(step.offset, h.plan.needed(step.place, 0))
        h.leaving = self.stretch.leaving

    def _body(self, step: Step, after: Step | None) -> None:
        h, stretch = self.h, self.stretch
        h.ir.position_at_end(self.bodies[step.number])
        place = self.pending[step.number]
        lanes = h.ir.load(place)
        h.ir.store(h.i32(0), place)
        h.set("active", lanes)
        h.lanes, h.masked, h.clean, h.leaving = lanes, True, set(), self.leaving
        if not stretch.spots(step, 0):
            self._ending(step, lanes, after)
        h.finish_epochs()
        h.lanes, h.masked, h.leaving = h.i32(FULL), False, stretch.leaving

    def _ending(self, step: Step, lanes: Any, after: Step | None) -> None:
        h, ending = self.h, step.ending
        ways: list[tuple[int, Any]] = []
        cost = 0
        if ending is None:
            ways.append((step.fall, lanes))
        elif ending.shape[0] == "jump":
            ways.append((step.targets[0], lanes))
            cost = ending.values[-1] if ending.shape[2] else 0
        elif ending.shape[0] == "branch":
            mask = h.ir.and_(self.stretch.condition(ending), lanes)
            ways.append((step.targets[0], mask))
            ways.append((step.fall, h.ir.and_(lanes, h.ir.not_(mask))))
            cost = ending.values[-1] if ending.shape[3] else 0
        for number, mask in ways:
            waiting = self.pending[number]
            h.ir.store(h.ir.or_(h.ir.load(waiting), mask), waiting)
        for number, _ in ways:
            target = self.stretch.plan.steps[number]
            if target.rank <= step.rank:
                self._back(target, cost)
        if after is None:
            h.ir.unreachable()
        else:
            h.ir.branch(self.checks[after.number])

    def _back(self, target: Step, cost: int) -> None:
        """Lanes that go back go first."""
        h = self.h
        some, none, on = h.block_named("back"), h.block_named("forth"), h.block_named("again")
        waiting = h.ir.load(self.pending[target.number])
        h.ir.cbranch(h.ir.icmp_unsigned("!=", waiting, h.i32(0)), some, none)
        h.ir.position_at_end(some)
        if cost:
            budget = h.ir.sub(h.get("budget"), h.i32(cost))
            h.set("budget", budget)
            over = h.block_named("over")
            h.ir.cbranch(h.likely(h.ir.icmp_signed(">=", budget, h.i32(0))), on, over)
            h.ir.position_at_end(over)
            self._leave_at(target)
            h.leaving = self.leaving
        else:
            h.ir.branch(on)
        h.ir.position_at_end(on)
        h.ir.branch(self.checks[target.number])
        h.ir.position_at_end(none)

    def _leave(self) -> None:
        """The lanes that wait elsewhere are noted in the warp."""
        h = self.h
        h.ir.position_at_end(self.leaving)
        kind = lanes_of(i32)
        places: Any = h.load(h.warp, Warp.PLACES, kind, 64)
        parked: Any = h.i32(NEVER)
        for step in reversed(self.chain):
            lanes = h.ir.load(self.pending[step.number])
            rank = h.i32(step.rank)
            places = h.ir.select(h.bools(lanes), h.splat(rank), places)
            parked = h.ir.select(h.ir.icmp_unsigned("!=", lanes, h.i32(0)), rank, parked)
        h.store(places, h.warp, Warp.PLACES, 64)
        h.set("parked", parked)
        h.ir.branch(self.stretch.common)


class _Stretch:
    """What lies between two barriers: the loop over the warps and the steps inside it."""

    def __init__(self, h: Whole, start: int, common: ir.Block) -> None:
        self.h, self.plan, self.start, self.common = h, h.plan, start, common
        first = self.plan.steps[max(start, 0)]
        self.first = first
        self.turn, self.latch = h.block_named(f"turn{start}_"), h.block_named("latch")
        self.again = self.turn
        self.leaving = h.block_named("leave_full")
        self.reached = self._reach()
        self.blocks: dict[int, ir.Block] = {}
        self.masked: list[_Masked] = []
        self.ends: dict[int, None] = {}
        """Where warps end: at the barrier of a step, or (-1) for good."""

    def _successors(self, step: Step) -> list[int]:
        ending = step.ending
        if ending is not None and ending.shape[0] == "exit":
            return []
        if ending is not None and ending.shape[0] == "jump":
            return [step.targets[0]]
        ways = [step.fall] if step.fall >= 0 else []
        return ways + ([step.targets[0]] if ending is not None else [])

    def _reach(self) -> list[int]:
        seen: dict[int, None] = {}
        todo = self._successors(self.first) if self.start >= 0 else [0]
        while todo:
            at = todo.pop()
            if at not in seen and self.plan.steps[at].sync is None:
                seen[at] = None
                todo += self._successors(self.plan.steps[at])
        return list(seen)

    def emit(self) -> None:
        h, plan = self.h, self.plan
        inside = [*self.reached, self.first.number]
        h.written = frozenset().union(*(plan.writes[n] for n in inside))
        read = frozenset().union(*(plan.reads[n] for n in inside))
        h.leaving = self.leaving
        h.ir.position_at_end(self.turn)
        self._prepare()
        self._begin(h.written, read)
        self.blocks = {n: h.block_named(f"step{n}_") for n in self.reached}
        self._parts()
        if self.first.sync is not None and self.start >= 0:
            self._full(self.first, self.first.sync.at + 1)
        else:
            h.lanes, h.masked = h.i32(FULL), False
            for spot in plan.opening:
                h.begin(spot)
                FUSED[spot.shape[0]](h, spot.shape)
            self.edge(0)
        for number in self.reached:
            h.ir.position_at_end(self.blocks[number])
            self._full(plan.steps[number], 0)
        for part in self.masked:
            part.emit()
        h.ir.position_at_end(self.leaving)
        h.set("active", FULL)
        h.set("parked", NEVER)
        h.ir.branch(self.common)
        self._latch()

    def _prepare(self) -> None:
        """Load once what all warps of the block load from the same place, where nobody stores meanwhile."""
        h, plan = self.h, self.plan
        self.loaded: dict[int, list[tuple[Any, Any]]] = {}
        self.quiet = plan.warps > 1 and not any(
            spot.shape[0] in _LASTING for n in (*self.reached, self.first.number) for spot in plan.steps[n].spots
        )
        if not self.quiet:
            return
        spots = [
            (number, spot) for number, spot in enumerate(self.first.spots)
            if spot.shape[0] == "load" and not spot.shape[6] and spot.shape[1][0] in "AU" and spot.shape[2] is not None
            and spot.values[2] in plan.shared
        ][:MOST_SHARED]
        if not spots:
            return
        h.number = h.i32(0)
        h.warp = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        names = {register.slot: name for name, register in plan.registers.items()}
        h.fill({names[spot.values[2]] for _, spot in spots})
        h.set("turn", 0)
        h.lanes, h.masked, h.clean = h.i32(FULL), False, set()
        h.epoch = _Epoch(h.block_named("unprepared"), 0, {})
        for number, spot in spots:
            h.begin(spot)
            h.stored = []
            FUSED["load"](h, spot.shape)
            self.loaded[number] = h.stored
            h.stored = None
        turn = h.block_named("turns")
        h.ir.branch(turn)
        h.ir.position_at_end(h.epoch.block)
        h.epoch = None
        h.set("record", self.begin)
        h.set("begin", self.begin)
        h.ir.branch(self.leaving)
        h.ir.position_at_end(turn)
        self.again = turn

    @property
    def begin(self) -> int:
        """Where a warp that has not had its turn goes on in the records."""
        return self.first.sync.after if self.start >= 0 and self.first.sync is not None else self.plan.begin

    def _begin(self, written: frozenset[str], read: frozenset[str]) -> None:
        """The next warp's turn."""
        h, plan = self.h, self.plan
        turned = h.ir.add(h.get("first"), h.get("turn"))
        back = h.ir.sub(turned, h.i32(plan.warps))
        h.number = h.ir.select(h.ir.icmp_signed("<", turned, h.i32(plan.warps)), turned, back)
        warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
        h.warp = h.add(warps, h.ir.mul(h.ir.zext(h.number, i64), h.i64(plan.stride)))
        sync_ = self.first.sync if self.start >= 0 else None
        h.set("begin", self.begin)
        h.set("budget", BUDGET)
        live = plan.needed(sync_.place, 1) if sync_ is not None else plan.needed(self.first.place, 0)
        h.fill((live & (written | read)) | (plan.always & read))

    def _latch(self) -> None:
        h, plan = self.h, self.plan
        h.ir.position_at_end(self.latch)
        turn = h.ir.add(h.get("turn"), h.i32(1))
        h.set("turn", turn)
        all_ = h.block_named("all_warps")
        h.ir.cbranch(h.ir.icmp_signed("<", turn, h.i32(plan.warps)), self.again, all_)
        h.ir.position_at_end(all_)
        h.set("turn", 0)
        first = h.ir.sub(h.get("first"), h.i32(1))
        h.set("first", h.ir.select(h.ir.icmp_signed("<", first, h.i32(0)), h.i32(plan.warps - 1), first))
        done = h.block_named("done")
        ways = h.ir.switch(h.get("sync"), done)
        self.ways = ways
        h.ir.position_at_end(done)
        h.ir.ret_void()

    def _parts(self) -> None:
        """The groups of steps where lanes may be apart."""
        plan = self.plan
        left = {n for n in self.reached if plan.steps[n].parted}
        near: dict[int, set[int]] = {n: set() for n in left}
        for n in left:
            for other in self._successors(plan.steps[n]):
                if other in left:
                    near[n].add(other)
                    near[other].add(n)
        while left:
            group, todo = set(), [min(left)]
            while todo:
                at = todo.pop()
                if at in left:
                    left.discard(at)
                    group.add(at)
                    todo += near[at]
            exits = {s for n in group for s in self._successors(plan.steps[n])} - group
            members, outer = ([plan.steps[n] for n in sorted(some)] for some in (group, exits))
            self.masked.append(_Masked(self, members, outer))

    # Steps of all lanes

    def edge(self, number: int) -> None:
        """Go on with a step, all lanes together."""
        step = self.plan.steps[number]
        if step.sync is not None:
            for spot in step.spots[: step.sync.at]:
                self.h.begin(spot)
                FUSED[spot.shape[0]](self.h, spot.shape)
            self._end(number, step.sync.wait, self.plan.needed(step.sync.place, 0))
        else:
            self.h.ir.branch(self.blocks[number])

    def _end(self, number: int, offset: int, needed: set[str]) -> None:
        """The warp is at a barrier, or has ended; all of them must have come to the same."""
        h = self.h
        self.ends[number] = None
        h.flush(needed)
        code = h.i32(number)
        same = h.ir.icmp_signed("==", h.get("sync"), code)
        good = h.ir.or_(h.ir.icmp_signed("==", h.get("turn"), h.i32(0)), same)
        on, other = h.block_named("arrived"), h.block_named("elsewhere")
        h.ir.cbranch(h.likely(good), on, other)
        h.ir.position_at_end(other)
        h.set("record", offset)
        h.ir.branch(self.leaving)
        h.ir.position_at_end(on)
        h.set("sync", number)
        h.ir.branch(self.latch)

    def spots(self, step: Step, first: int) -> bool:
        """The code of a step's records; whether it has ended early."""
        h = self.h
        for number, spot in enumerate(step.spots[first:], first):
            ready = self.loaded.get(number) if first or step is self.first and self.start < 0 else None
            if ready is not None:
                for place, value in ready:
                    h.store(value, place, 0)
                continue
            h.begin(spot)
            kind = spot.shape[0]
            if kind in FUSED:
                if kind == "watch" and self.quiet and self._twice(spot):
                    h.first_turns()
                FUSED[kind](h, spot.shape)
            elif spot.shape[1]:  # guarded
                ALONE[kind](h, spot.shape)
                h.clean.clear()
            else:
                h.bail()
                return True
            if kind in _LASTING:
                h.epoch = None
        return False

    def _twice(self, spot: Spot) -> bool:
        """Whether two warps that read a place tell as much as all: they are the two readers that are remembered."""
        look = watch.Look(*spot.shape[1:])
        plain = look.role == watch.READ and look.own and look.simple and look.race and not look.guard
        return bool(plain and look.pattern is not None and look.kind[0] in "AU" and spot.values[2] in self.plan.shared)

    def condition(self, ending: Spot) -> Any:
        """The mask of the lanes that take a branch."""
        h = self.h
        h.begin(ending)
        return data.guard_mask(h, ending.shape[1], False)

    def _full(self, step: Step, first: int) -> None:
        h = self.h
        h.lanes, h.masked, h.clean, h.leaving = h.i32(FULL), False, set(), self.leaving
        if not self.spots(step, first):
            self._go_on(step)
        h.finish_epochs()

    def _go_on(self, step: Step) -> None:
        ending = step.ending
        if ending is None:
            self.edge(step.fall)
        elif ending.shape[0] == "exit":
            self._end(_UNTIL_NEXT, ending.offset, set())
        elif ending.shape[0] == "jump":
            self._spend(step.targets[0], ending.values[-1] if ending.shape[2] else 0)
        else:
            self._branch(step, ending)

    def _spend(self, target: int, cost: int) -> None:
        h = self.h
        if cost:
            budget = h.ir.sub(h.get("budget"), h.i32(cost))
            h.set("budget", budget)
            on, over = h.block_named("on"), h.block_named("over")
            h.ir.cbranch(h.likely(h.ir.icmp_signed(">=", budget, h.i32(0))), on, over)
            h.ir.position_at_end(over)
            step = self.plan.steps[target]
            h.leave(step.offset, self.plan.needed(step.place, 0))
            h.ir.position_at_end(on)
        self.edge(target)

    def _branch(self, step: Step, ending: Spot) -> None:
        h = self.h
        _, _, apart, back = ending.shape[:4]
        cost = ending.values[-1] if back else 0
        mask = self.condition(ending)
        all_, some = h.block_named("all"), h.block_named("some")
        target = step.targets[0]
        h.ir.cbranch(h.full(mask) if apart else h.ir.icmp_unsigned("!=", mask, h.i32(0)), all_, some)
        h.ir.position_at_end(all_)
        kept = set(h.clean)
        self._spend(target, cost)
        h.ir.position_at_end(some)
        h.clean = kept
        if not apart:
            self.edge(step.fall)
            return
        none, mixed = h.block_named("none"), h.block_named("mixed")
        h.ir.cbranch(h.ir.icmp_unsigned("==", mask, h.i32(0)), none, mixed)
        h.ir.position_at_end(none)
        self.edge(step.fall)
        h.ir.position_at_end(mixed)
        h.clean = set()
        part = next((p for p in self.masked if {target, step.fall} & p.members), None)
        if part is None or target == step.fall or not {target, step.fall} <= set(part.pending):
            h.leave(ending.offset, self.plan.needed(ending.statement, 0))
            return
        part.enter({target: mask, step.fall: h.ir.not_(mask)})


def whole(module: ir.Module, name: str, plan: Plan) -> None:
    """Add the function of a kernel: void (record, warp, block), which runs the block whose place is set."""
    h = Whole(module, name, plan)
    common = h.block_named("common")
    stretches: dict[int, _Stretch] = {}
    todo = [_UNTIL_NEXT]
    while todo:
        start = todo.pop()
        if start not in stretches:
            stretches[start] = stretch = _Stretch(h, start, common)
            stretch.emit()
            todo += [end for end in stretch.ends if end >= 0]
    for stretch in stretches.values():
        for end in stretch.ends:
            if end >= 0:
                stretch.ways.add_case(i32(end), stretches[end].turn)
    h.ir.position_at_end(h.begin_block)
    for name_ in ("turn", "first"):
        h.set(name_, 0)
    h.set("sync", _UNTIL_NEXT)
    h.ir.branch(stretches[_UNTIL_NEXT].turn)
    h.ir.position_at_end(common)
    _settle(h, [plan.steps[n] for n in stretches if n >= 0])
    h.rooms.branch(h.ahead.block)
    h.ahead.branch(h.begin_block)


def _settle(h: Whole, barriers: list[Step]) -> None:
    """Put all warps where the scheduler looks for them: those before this one at the barrier or at their end."""
    current, first, at = h.get("turn"), h.get("first"), h.get("sync")
    after: Any = h.i64(0)
    wait, number, expected = h.i64(0), h.i32(0), h.i32(0)
    for step in barriers:
        sync_ = step.sync
        assert sync_ is not None
        here = h.ir.icmp_signed("==", at, h.i32(step.number))
        after = h.ir.select(here, h.i64(sync_.after), after)
        wait = h.ir.select(here, h.i64(sync_.wait), wait)
        number = h.ir.select(here, h.i32(sync_.barrier), number)
        expected = h.ir.select(here, h.i32(sync_.expected), expected)
    ended = h.ir.icmp_signed("<", at, h.i32(0))
    head, body, over = (h.block_named(n) for n in ("settle", "settle_one", "settled"))
    before = h.ir.block
    h.ir.branch(head)
    h.ir.position_at_end(head)
    turn, done = h.ir.phi(i32), h.ir.phi(i32)
    turn.add_incoming(h.i32(0), before)
    done.add_incoming(h.i32(0), before)
    h.ir.cbranch(h.ir.icmp_signed("<", turn, h.i32(h.plan.warps)), body, over)
    h.ir.position_at_end(body)
    turned = h.ir.add(first, turn)
    index = h.ir.select(
        h.ir.icmp_signed("<", turned, h.i32(h.plan.warps)), turned, h.ir.sub(turned, h.i32(h.plan.warps))
    )
    warps = Handler.load(h, h.block, Block.WARPS, pointer, fixed=True)
    place = h.add(warps, h.ir.mul(h.ir.zext(index, i64), h.i64(h.plan.stride)))
    past, this = h.ir.icmp_signed("<", turn, current), h.ir.icmp_signed("==", turn, current)
    h.store(Handler.load(h, place, Warp.FRESH, PAIR), place, Warp.ACTIVE)
    offset = h.ir.select(past, after, h.ir.select(this, h.get("record"), h.get("begin")))
    h.store(starting(h, h.ir.add(h.base, offset)), place, Warp.PC)
    dead = h.ir.and_(past, ended)
    active = h.ir.select(this, h.get("active"), h.i32(FULL))
    h.store(h.ir.select(dead, h.i32(0), active), place, Warp.ACTIVE)
    h.store(h.ir.select(dead, h.i32(0), h.i32(FULL)), place, Warp.ALIVE)
    h.store(h.ir.select(this, h.get("parked"), h.i32(NEVER)), place, Warp.PARKED)
    h.store(h.ir.select(past, h.ir.add(h.base, wait), h.i64(0)), place, Warp.WAITS)
    h.store(number, place, Warp.BARRIER)
    bit = h.ir.shl(h.i32(1), index)
    done.add_incoming(h.ir.select(past, h.ir.or_(done, bit), done), body)
    turn.add_incoming(h.ir.add(turn, h.i32(1)), body)
    h.ir.branch(head)
    h.ir.position_at_end(over)
    all_ = h.load(h.block, Block.ALL, i32)
    rest = h.ir.and_(all_, h.ir.not_(done))
    h.store(h.ir.select(ended, rest, all_), h.block, Block.LIVE)
    h.store(rest, h.block, Block.RUNNABLE)
    here = h.ir.add(first, current)
    here = h.ir.select(h.ir.icmp_signed("<", here, h.i32(h.plan.warps)), here, h.ir.sub(here, h.i32(h.plan.warps)))
    h.store(h.ir.and_(h.ir.sub(here, h.i32(1)), h.i32(LANES - 1)), h.block, Block.CURRENT)
    arrived, quiet = h.block_named("some_wait"), h.block_named("none_waits")
    waits = h.ir.and_(h.ir.icmp_signed(">", current, h.i32(0)), h.ir.not_(ended))
    h.ir.cbranch(waits, arrived, quiet)
    h.ir.position_at_end(arrived)
    barrier = h.add(h.block, h.ir.add(h.ir.mul(h.ir.zext(number, i64), h.i64(Barrier.SIZE)), h.i64(Block.BARRIERS)))
    h.store(current, barrier, Barrier.ARRIVED)
    h.store(expected, barrier, Barrier.EXPECTED)
    h.store(done, barrier, Barrier.WAITING)
    h.store(h.ir.shl(h.i32(1), number), h.block, Block.BARRED)
    h.ir.branch(quiet)
    h.ir.position_at_end(quiet)
    h.ir.ret_void()
