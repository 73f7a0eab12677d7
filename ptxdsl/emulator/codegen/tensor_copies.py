"""Code of tensor copies: what boxes take of their tensors, and the loops that move them, chunk by chunk."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ...isa.tensor_maps import ELEMENTS, USED_BYTES
from ...types import TYPES
from ..instructions.bulk_copies import MakeBulk, reduction
from ..instructions.tensor_copies import REDUCED, MakeTensor, TensorBox, TensorMove, TensorOverride
from ..machine.layout import LANES, Block
from ..machine.status import Fault
from ..machine.pending import COPIES, READERS, Kind, Pending
from ..semantics.lanes import Bits
from .atomics import element_at, place_at, spill, update
from .data import guard_mask, source
from .handler import Handler, byte, i1, i32, i64, lanes_of, pointer
from .access import RESOLVE
from .mbarrier import count_operation
from .pending import Begun
from .registry import builds, emits
from .tensor_boxes import CHUNK, MapFields, TensorBoxes, box_of, chunk_type

__all__: list[str] = []

_MAP = ir.VectorType(byte, USED_BYTES)
_MOST_EXTENT = 255
"""That an override gives."""
_FLUSHED = ("f32.ftz", "tf32.ftz")


def _codes(operation: str) -> frozenset[int] | None:
    return frozenset(ELEMENTS[kind].code for kind in REDUCED[operation]) if operation else None


class _Lanes(NamedTuple):
    """The operands of a micro-op, in memory, to be read by lane."""

    coordinates: list[Any]
    maps: Any

    def box(self, h: Handler, lane: Any, op: TensorBox) -> TensorBoxes:
        return box_of(h, op, element_at(h, self.maps, lane, i64), self.coordinates, lane)


def _slots(h: Handler, count: int) -> list[Any]:
    return [h.ir.bitcast(h.slot(), i64.as_pointer()) for _ in range(count)]


@emits(TensorBox)
def tensor_box(h: Handler, op: TensorBox) -> None:
    h.field(), h.field()  # of RESOLVE
    mask = guard_mask(h, op.guard, True)
    coordinates = [source(h, kind, LANES) for kind in op.coordinates]
    maps = h.ir.bitcast(h.slot(), i64.as_pointer())
    nbytes, extents, tensors = h.slot(), h.slot(), h.slot()
    h.skip_unless_any(mask)
    lanes = _Lanes([spill(h, each) for each in coordinates], maps)
    some = h.alloca(i32)
    h.ir.store(h.i32(0), some)

    def one(lane: Any) -> None:
        box = lanes.box(h, lane, op)

        def leave() -> None:
            h.store(element_at(h, maps, lane, i64), h.block, Block.FAULT_ADDRESS)
            h.fault(Fault.TENSOR_MAP, h.ir.shl(h.i32(1), lane))

        h.branch_unless(box.valid(op.writes, _codes(op.operation)), leave)
        for slot, count in ((nbytes, box.nbytes()), (extents, box.extent())):
            h.ir.store(h.ir.trunc(count.value, i32), place_at(h, slot, lane, i32), align=4)
        start, length = box.span()
        for at, value in ((Block.SCRATCH, start), (Block.EXTENTS, length)):
            h.ir.store(value.value, place_at(h, h.add(h.block, at), lane, i64), align=8)
        h.ir.store(start.value, place_at(h, tensors, lane, i64), align=8)
        bit = h.ir.shl(h.ir.zext(length.ne(0).value, i32), lane)
        h.ir.store(h.ir.or_(h.ir.load(some), bit), some)

    h.for_each_lane(mask, one)
    touched = h.ir.load(some)
    resolve = h.load(h.block, Block.RESOLVE, RESOLVE.as_pointer(), 8)
    fine = h.ir.call(resolve, [h.rec, h.warp, h.block, touched])
    h.branch_unless(fine, h.ir.ret_void)
    wide = lanes_of(i64)
    h.store(h.ir.sub(h.load(h.block, Block.SCRATCH, wide), h.load(tensors, 0, wide)), tensors, 0)
    h.next()


@emits(TensorOverride)
def tensor_override(h: Handler, op: TensorOverride) -> None:
    mask = guard_mask(h, op.guard, True)
    start = spill(h, source(h, op.address, LANES))
    given = [(kind.bits, spill(h, source(h, kind, LANES))) for kind in op.shape]
    maps, copies = h.ir.bitcast(h.slot(), i64.as_pointer()), h.slot()
    h.skip_unless_any(mask)

    def one(lane: Any) -> None:
        place = place_at(h, maps, lane, i64)
        copy = h.ir.gep(copies, [h.ir.mul(lane, h.i32(USED_BYTES))], source_etype=byte)
        old = h.ir.inttoptr(h.ir.load(place, align=8), pointer)
        h.call("llvm.memcpy.p0.p0.i64", ir.VoidType(), copy, old, h.i64(USED_BYTES), ir.Constant(i1, 0))
        h.store(h.ir.ptrtoint(copy, i64), place, 0)
        changed = MapFields(h, copy)
        changed.put("global_address", element_at(h, start, lane, i64))
        values = [h.ir.zext(element_at(h, each, lane, ir.IntType(bits)), i64) for bits, each in given]
        rank = len(values) // 2
        for number, extent in enumerate(values[:rank]):
            changed.put("global_dim", h.ir.and_(extent, h.i64(_MOST_EXTENT)), number)
        for number, stride in enumerate(values[rank:-1]):
            changed.put("global_stride", stride, number)
            changed.put("global_stride_high", h.ir.lshr(values[-1], h.i64(4 * number)), number)

    h.for_each_lane(mask, one)
    h.next()


@emits(TensorMove)
def tensor_move(h: Handler, op: TensorMove) -> None:
    routine = h.field("q")
    mask = guard_mask(h, op.guard, True)
    coordinates = [source(h, kind, LANES) for kind in op.coordinates]
    maps, tensors, shared = _slots(h, 3)
    nbytes, extents = h.slot(), h.slot()
    mbarriers = _slots(h, 1) if op.waits == Kind.COUNTED else []
    h.skip_unless_any(mask)
    words, room = [spill(h, each) for each in coordinates], Begun.room_of(h, op.defers)
    pace = READERS if op.writes else COPIES

    def one(lane: Any) -> None:
        mbarrier = element_at(h, mbarriers[0], lane, i64) if mbarriers else None
        begun = Begun(h, room, routine, op.waits, pace, lane, mbarrier, op.clustered)
        for number, (word, value) in enumerate(zip(words, coordinates)):
            item = element_at(h, word, lane, value.type.element)
            begun.put(h.ir.zext(item, i32) if item.type.width < 32 else item, Pending.WORDS + 4 * number)
        map_ = h.ir.inttoptr(element_at(h, maps, lane, i64), _MAP.as_pointer())
        begun.put(h.ir.load(map_, align=16), Pending.BYTES)
        tensor, place = (element_at(h, at, lane, i64) for at in (tensors, shared))
        begun.put(tensor if op.writes else place, Pending.TO)
        begun.put(place if op.writes else tensor, Pending.SOURCE)
        begun.put(element_at(h, nbytes, lane, i32), Pending.NBYTES)
        begun.put(h.ir.zext(element_at(h, extents, lane, i32), i64), Pending.SIZE)
        begun.end()

    h.for_each_lane(mask, one)
    h.next()


@builds(MakeTensor)
def make_tensor(module: ir.Module, name: str, key: MakeTensor) -> None:
    h = Handler(module, name)
    words = [h.add(h.rec, Pending.WORDS + 4 * number) for number in range(key.words)]
    box = box_of(h, key, h.ir.ptrtoint(h.add(h.rec, Pending.BYTES), i64), words, h.i32(0))
    fields = (Pending.TO, Pending.SOURCE) if key.writes else (Pending.SOURCE, Pending.TO)
    delta, start = (Bits(box.b, h.load(h.rec, field, i64), 64) for field in fields)
    _Mover(h, key, box, delta, start, h.alloca(chunk_type)).run()
    count_operation(h)
    h.ir.ret_void()


class _Mover:
    """Moves the box of one lane; ``delta`` is added to an address of the tensor for that of the host."""

    def __init__(self, h: Handler, op: MakeTensor, box: TensorBoxes, delta: Bits, start: Bits, buffer: Any) -> None:
        self.h, self.op, self.box, self.delta, self.start, self.buffer = h, op, box, delta, start, buffer
        self.swizzled = box.swizzled()
        self.whole = box.chunk_bytes.eq(CHUNK)
        self.filled = self._fill()

    def _fill(self) -> Bits:
        """Eight bytes of what lies outside: zeros, or ones in all bits, which are NaNs of every type."""
        return self.box.field("fill_mode").ne(0).pick(-1, self.box.number(0))

    def run(self) -> None:
        self.box.each_row(self._row)

    def _row(self, address: Bits, inside: Bits, number: Bits) -> None:
        box, h = self.box, self.h
        line = self.start + number * box.row_bytes

        def chunk(offset: Any) -> None:
            at = Bits(box.b, offset, 64)
            position = box.first + (at >> 4) * box.chunk_bytes
            last = position + box.chunk_bytes
            below = last.compare("<=", box.limit, signed=True) & (position.lt(0, signed=True) ^ 1)
            place, flips = self.swizzled(line + at)
            host = address + position + self.delta
            (self._store if self.op.writes else self._load)(host, position, inside, inside & below, place, flips)

        h.count(box.row_bytes.value, CHUNK, chunk)

    def _at(self, address: Bits, kind: ir.Type) -> Any:
        return self.h.ir.inttoptr(address.value, kind.as_pointer())

    def _inside(self, position: Bits, inside: Bits, number: Bits) -> Bits:
        """Whether a byte of a chunk is one of the tensor."""
        return inside & (position + number).lt(self.box.limit)

    def _chunk(self, address: Bits) -> Any:
        return self.h.ir.load(self._at(address, chunk_type), align=1)

    def _flipped(self, value: Any, flips: Bits) -> Any:
        halves = ir.Constant(ir.VectorType(i32, CHUNK), [(lane + CHUNK // 2) % CHUNK for lane in range(CHUNK)])
        return self.h.ir.select(flips.value, self.h.ir.shuffle_vector(value, value, halves), value)

    def _buffered(self, number: Bits) -> Any:
        place = self.h.ir.bitcast(self.buffer, pointer)
        return self.h.ir.gep(place, [number.value], source_etype=byte)

    # To shared memory

    def _load(self, host: Bits, position: Bits, inside: Bits, whole: Bits, place: Bits, flips: Bits) -> None:
        h = self.h
        fast = whole & self.whole
        with h.ir.if_else(h.likely(fast.value)) as (then, otherwise):
            with then:
                h.ir.store(self._chunk(host), self.buffer, align=16)
            with otherwise:
                self._gather(host, position, inside)
        value = self._flipped(self._flushed(h.ir.load(self.buffer, align=16)), flips)
        h.ir.store(value, self._at(place, chunk_type), align=16)

    def _gather(self, host: Bits, position: Bits, inside: Bits) -> None:
        """The bytes that are the tensor's, and what fills the others; zeros behind them."""
        h, box = self.h, self.box
        h.ir.store(ir.Constant(chunk_type, None), self.buffer, align=16)

        def one(at: Any) -> None:
            number = Bits(box.b, at, 64)
            fill = (self.filled >> ((number & 7) << 3)).trunc(8).value
            good = self._inside(position, inside, number)
            with h.ir.if_else(good.value) as (then, otherwise):
                with then:
                    h.ir.store(h.ir.load(self._at(host + number, byte), align=1), self._buffered(number), align=1)
                with otherwise:
                    h.ir.store(fill, self._buffered(number), align=1)

        h.count(box.chunk_bytes.value, 1, one)

    def _flushed(self, value: Any) -> Any:
        """Subnormal numbers as zeros of their sign, of the types that ask for it."""
        h, words = self.h, ir.VectorType(i32, CHUNK // 4)
        asked = self.box.code.eq(ELEMENTS[_FLUSHED[0]].code)
        word = h.ir.bitcast(value, words)
        tiny = h.ir.icmp_unsigned("==", h.ir.and_(word, ir.Constant(words, [0x7F800000] * 4)), ir.Constant(words, None))
        zero = h.ir.and_(word, ir.Constant(words, [-(1 << 31)] * 4))
        flushed = h.ir.bitcast(h.ir.select(tiny, zero, word), chunk_type)
        return h.ir.select(asked.value, flushed, value)

    # From shared memory

    def _store(self, host: Bits, position: Bits, inside: Bits, whole: Bits, place: Bits, flips: Bits) -> None:
        h, box = self.h, self.box
        value = self._flipped(h.ir.load(self._at(place, chunk_type), align=16), flips)
        if self.op.operation:
            h.ir.store(value, self.buffer, align=16)
            self._reduce(host, position, inside)
            return
        with h.ir.if_else(h.likely(whole.value)) as (then, otherwise):
            with then:
                h.ir.store(value, self._at(host, chunk_type), align=1)
            with otherwise:
                h.ir.store(value, self.buffer, align=16)

                def one(at: Any) -> None:
                    number = Bits(box.b, at, 64)
                    with h.ir.if_then(self._inside(position, inside, number).value):
                        h.ir.store(h.ir.load(self._buffered(number), align=1), self._at(host + number, byte), align=1)

                h.count(h.i64(CHUNK), 1, one)

    def _reduce(self, host: Bits, position: Bits, inside: Bits) -> None:
        """Combine the elements of a chunk that are the tensor's, by the type that the map says."""
        h, box = self.h, self.box
        done = h.block_named("reduced")
        switch = h.ir.switch(box.code.value, done)
        for kind in REDUCED[self.op.operation]:
            case = h.block_named(kind)
            switch.add_case(i64(ELEMENTS[kind].code), case)
            h.ir.position_at_end(case)
            self._reduce_as(kind, host, position, inside)
            h.ir.branch(done)
        h.ir.position_at_end(done)

    def _reduce_as(self, kind: str, host: Bits, position: Bits, inside: Bits) -> None:
        h, box = self.h, self.box
        size = ELEMENTS[kind].bits // 8
        element = ir.IntType(8 * size)
        operation, function = reduction(self.op.operation, TYPES[kind.partition(".")[0]], False)
        one_op = MakeBulk(operation, function, 8 * size, True, False)

        def one(at: Any) -> None:
            number = Bits(box.b, at, 64)
            with h.ir.if_then(self._inside(position, inside, number).value):
                place = h.ir.bitcast(self._buffered(number), element.as_pointer())
                update(h, one_op, self._at(host + number, element), [h.ir.load(place, align=size)], True)

        h.count(h.i64(CHUNK), size, one)
