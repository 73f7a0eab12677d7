"""Handlers: the code of one micro-op each, a function over (micro-op, warp, block) that tail-calls the next handler.

In memory a micro-op is the address of its handler, then its fields: offsets of register slots, numbers, distances to
other micro-ops. Handlers are small leaf functions in the C calling convention, so the three pointers stay in machine
registers from micro-op to micro-op, and the jump (``musttail``) grows no stack.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from llvmlite import ir

from ...machine_code.host import has_avx
from ..instructions.addresses import Pattern
from ..instructions.operand_classes import OperandClass
from ..semantics.constants import undefined, zeros
from ..semantics.lanes import Lanes
from ..machine.layout import FULL, LANES, Block, Warp
from ..machine.status import Status

__all__ = ["HANDLER", "Handler", "byte", "i1", "i32", "i64", "lanes_of", "pointer", "undefined", "zeros"]

i1, byte, i16, i32, i64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
pointer = byte.as_pointer()
HANDLER = ir.FunctionType(ir.VoidType(), [pointer, pointer, pointer])


def lanes_of(element: ir.Type) -> ir.VectorType:
    """One element for each lane."""
    return ir.VectorType(element, LANES)


@functools.cache
def _multiples(bits: int, step: int) -> ir.Constant:
    return ir.Constant(lanes_of(ir.IntType(bits)), [lane * step for lane in range(LANES)])


def const(kind: ir.Type, value: int) -> ir.Constant:
    return ir.Constant(kind, int(value))  # llvmlite writes an enum by its name


class _VolatileLoad(ir.instructions.LoadInstr):  # type: ignore[misc]
    def descr(self, buf: list[str]) -> None:
        text: list[str] = []
        super().descr(text)
        buf.append("".join(text).replace("load ", "load volatile ", 1))


class Lines(NamedTuple):
    """How rows of a tile are loaded that all begin as far behind the begin of a cache line."""

    parts: Any
    """Whether there are such, which lie in two lines each."""
    within: Any
    """How far."""
    order: Any
    """Which words of both lines are those of the row."""


class Handler:
    """A handler under construction. ``codes`` are the fields of its micro-op, as letters of the struct module."""

    present, partial = LANES, False
    """Lanes that any warp has; whether warps may have fewer, as their masks of active lanes say."""
    loads_pieces = False
    """Whether a load that may lie in two cache lines had better be several: a CPU that has begun many stores, whose
    addresses it does not know yet, may have such a load wait for all of them."""
    ahead: Any = None
    """How far in front of what a store writes lines are fetched, a number of bytes, if they are."""
    lines: Lines | None = None
    """How loads of a cache line's size are made that lie in two, if not as one."""
    single_warp = True
    """Whether the function runs for one warp of one block, so that nothing of these changes but registers."""

    @property
    def lane(self) -> Any:
        """The number of the lane that the code is for; None where it is for all of a warp."""
        return None

    @property
    def known_alignment(self) -> int:
        """Bytes that the address of an access of local memory is surely a multiple of."""
        return 1

    @property
    def sparse(self) -> bool:
        """Whether few lanes may be active where it executes an access."""
        return False

    def __init__(self, module: ir.Module, name: str, codes: str = "", result: ir.FunctionType = HANDLER) -> None:
        self.function = ir.Function(module, result, name)
        self.function.attributes.add("nounwind")
        self.rec, self.warp, self.block = self.function.args[:3]
        self.ir = ir.IRBuilder(self.function.append_basic_block())
        self.codes = codes
        self.slow_path: ir.Function | None = None
        """The function that starts over where the fast check of an access fails; None in that function itself."""
        self._at = 8
        self._read = 0
        self.size = (8 + sum(4 if code == "i" else 8 for code in codes) + 7) // 8 * 8

    # Fields and memory

    def field(self, code: str = "i") -> Any:
        """The next field of the micro-op; fields are read in order."""
        if self.codes[self._read : self._read + 1] != code:
            raise AssertionError(f"field {self._read} of {self.codes!r} is no {code!r}")
        value = self.load(self.rec, self._at, i32 if code == "i" else i64, 4)
        self._read += 1
        self._at += 4 if code == "i" else 8
        return value

    @property
    def mark(self) -> tuple[int, int]:
        """Which field comes next."""
        return self._at, self._read

    def read_again(self, mark: tuple[int, int]) -> None:
        """Read fields again from there on."""
        self._at, self._read = mark

    def add(self, base: Any, offset: Any) -> Any:
        """``base + offset`` bytes; the offset is a number or an i32 or i64 value."""
        if isinstance(offset, int):
            if not offset:
                return base
            offset = const(i64, offset)
        elif offset.type.width < 64:
            offset = self.ir.sext(offset, i64)
        return self.ir.gep(base, [offset], source_etype=byte)

    def load(self, base: Any, offset: Any, kind: ir.Type, align: int | None = None, fixed: bool = False) -> Any:
        """The value at an address; ``fixed``: it does not change during a launch."""
        value = self.ir.load(self.add(base, offset), align=align or natural(kind), typ=kind)
        if fixed:
            value.set_metadata("invariant.load", self.ir.module.add_metadata([]))
        return value

    def store(self, value: Any, base: Any, offset: Any, align: int | None = None) -> None:
        place = self.ir.bitcast(self.add(base, offset), value.type.as_pointer())
        self.ir.store(value, place, align=align or natural(value.type))

    def load_apart(self, base: Any, offset: int, kind: ir.Type, align: int | None = None) -> Any:
        """As ``load``, by an instruction of its own that LLVM makes as it is (a volatile one)."""
        load = _VolatileLoad(self.ir.block, self.ir.bitcast(self.add(base, offset), kind.as_pointer()))
        load.align = align or natural(kind)
        self.ir._insert(load)
        return load

    def held(self, slot: Any, kind: ir.Type) -> Any:
        """What a slot holds in the lanes that its next result is not for.

        Of a load, a select and a store LLVM would make a masked store, which no CPU forwards to the next load.
        """
        return self.load_apart(slot, 0, kind)

    def slot(self) -> Any:
        """Address of the register slot that the next field names."""
        return self.add(self.warp, self.field("i"))

    def lane_offsets(self, place: Any, bits: int) -> Any:
        """The lane offsets at an address."""
        return self.load(self.ir.inttoptr(place, pointer), 0, lanes_of(ir.IntType(bits)))

    def own_access(self, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> Any:  # noqa: ARG002
        """The address of an access where the function has a way of its own to check it; None elsewhere."""
        return None

    def keeps(self, slot: Any) -> bool:  # noqa: ARG002
        """Whether lanes that do not execute the micro-op may still read what its result's slot holds."""
        return True

    def begin_row(self, access: Any, bits: int, lanes: Any, guarded: bool) -> None:
        """Load the row of each lane of which this access is the first, where the function has rows."""

    def in_row(self, count: int, otherwise: Callable[[], list[Any]]) -> list[Any] | None:  # noqa: ARG002
        """What an access loads of its lanes' rows, or ``otherwise``; None where it has no row."""
        return None

    def merged_granules(self) -> tuple[int, ...] | None:
        """Of a merged shadow check: the statement of each granule, none where others check them; None elsewhere."""
        return None

    def alias_class(self, instruction: Any, what: str) -> Any:  # noqa: ARG002
        """Tell LLVM that an instruction accesses memory of some kind and no other."""
        return instruction

    def alloca(self, kind: ir.Type, align: int = 16) -> Any:
        """A variable on the stack."""
        place = self.ir.alloca(kind)
        place.align = align
        return place

    # Constants and masks

    def i32(self, value: int) -> ir.Constant:
        return const(i32, value)

    def i64(self, value: int) -> ir.Constant:
        return const(i64, value)

    def extended(self, value: Any) -> Any:
        """An i32 field as i64, zeros before it."""
        if isinstance(value, ir.Constant):
            return self.i64(int(value.constant) & FULL)
        return self.ir.zext(value, i64)

    def splat(self, value: Any) -> Any:
        """The scalar in every lane."""
        return Lanes(self.ir, LANES).everywhere(value)

    def iota(self, bits: int, step: int = 1) -> ir.Constant:
        """0, step, 2 step, ..."""
        return _multiples(bits, step)

    @property
    def active(self) -> Any:
        """The mask of active lanes, an i32."""
        return self.load(self.warp, Warp.ACTIVE, i32)

    def bools(self, mask: Any) -> Any:
        """An i32 mask as <32 x i1>."""
        return self.ir.bitcast(mask, lanes_of(i1))

    def mask(self, bools: Any) -> Any:
        """<32 x i1> as an i32 mask."""
        return self.ir.bitcast(bools, i32)

    def full(self, mask: Any) -> Any:
        return self.ir.icmp_unsigned("==", mask, const(i32, FULL))

    def whole(self, mask: Any) -> Any:
        """Whether the mask has all lanes that any warp has."""
        there = const(i32, FULL >> LANES - self.present)
        return self.ir.icmp_unsigned("==", self.ir.and_(mask, there) if self.present < LANES else mask, there)

    def nonzero(self, value: Any) -> Any:
        return self.ir.icmp_unsigned("!=", value, const(value.type, 0))

    def zero(self, value: Any) -> Any:
        return self.ir.icmp_unsigned("==", value, const(value.type, 0))

    def first_lane(self, mask: Any) -> Any:
        """The lowest lane of a mask, an i32; 32 where it has none."""
        return self.call("llvm.cttz.i32", i32, mask, const(i1, 0))

    # Calls and ends

    def call(self, name: str, result: ir.Type, *arguments: Any) -> Any:
        """An LLVM intrinsic."""
        return Lanes(self.ir, 1).call(name, result, *arguments)

    def numbers(self, width: int) -> Lanes:
        """What the semantics compute with."""
        return Lanes(self.ir, width)

    def likely(self, condition: Any, expected: bool = True) -> Any:
        return self.call("llvm.expect.i1", i1, condition, const(i1, int(expected)))

    def goto(self, rec: Any) -> None:
        """Continue at the micro-op ``rec``."""
        handler = self.ir.load(self.ir.bitcast(rec, HANDLER.as_pointer().as_pointer()), align=8)
        self.tail(handler, rec)

    def tail(self, handler: Any, rec: Any) -> None:
        self.ir.call(handler, [rec, self.warp, self.block], tail="musttail")
        self.ir.ret_void()

    def leave(self) -> None:
        """Return to Python, whose libraries have much code of SSE's.

        A CPU with AVX may execute that a hundred times slower while the upper halves of its registers are in use.
        """
        if has_avx():
            self.call("llvm.x86.avx.vzeroupper", ir.VoidType())
        self.ir.ret_void()

    def next(self) -> None:
        """Continue at the next micro-op."""
        if self._read != len(self.codes):
            raise AssertionError(f"{self.function.name}: read {self._read} of the fields {self.codes!r}")
        self.goto(self.following())

    def following(self) -> Any:
        return self.add(self.rec, self.size)

    def here(self) -> Any:
        """Address of a micro-op of the statement, in the first tier."""
        return self.rec

    def deoptimise(self, leave: Callable[[], None]) -> None:
        """Go on in conservative code, since a check failed: ``leave`` emits how."""
        leave()

    def merged_bounds(self) -> tuple[int, int] | None:
        """Of a merged bounds check: bytes from the lowest access to this one, extent of all; None elsewhere."""
        return None

    def note_bounds(self, good: Any) -> Any:
        """Whether an access lies within bounds, given what its own check says: another may have been made for it."""
        return good

    def tail_to(self, slot: int, rec: Any) -> None:
        """Tail call of the function whose address the block state has at ``slot``."""
        handler = self.load(self.block, slot, HANDLER.as_pointer(), 8)
        self.tail(handler, rec)

    def schedule(self, resume: Any) -> None:
        """Switch to another warp; this one resumes at the micro-op ``resume``."""
        self.store(resume, self.warp, Warp.PC)
        self.tail_to(Block.SCHEDULE, resume)

    def fault(self, kind: int, mask: Any = None) -> None:
        """End the launch with a fault in the lanes of ``mask``."""
        self.stop(Status.FAULT)
        self.store(const(i32, kind), self.block, Block.FAULT_KIND)
        if mask is not None:
            self.store(self.first_lane(mask), self.block, Block.FAULT_LANE)
        self.ir.ret_void()

    def stop(self, status: int) -> None:
        """Note why compiled code returns, and where; the caller returns."""
        self.store(const(i32, status), self.block, Block.STATUS)
        self.store(self.rec, self.warp, Warp.PC)
        self.store(self.rec, self.block, Block.FAULT_PC)
        self.store(self.load(self.warp, Warp.INDEX, i32), self.block, Block.FAULT_WARP)

    # Control flow inside a handler

    def block_named(self, name: str) -> ir.Block:
        return self.function.append_basic_block(name)

    def branch_unless(self, condition: Any, otherwise: Callable[[], None]) -> None:
        """Go on here where ``condition`` holds; ``otherwise`` emits the rare case and must end it."""
        rare, on = self.block_named("rare"), self.block_named("on")
        self.ir.cbranch(self.likely(condition), on, rare)
        self.ir.position_at_end(rare)
        otherwise()
        self.ir.position_at_end(on)

    def asked_if(self, condition: Any, ask: Callable[[], Any]) -> Any:
        """The i1 that ``ask`` emits, which runs only where ``condition`` holds; false elsewhere."""
        asked, on = self.block_named("asked"), self.block_named("on")
        before = self.ir.block
        self.ir.cbranch(condition, asked, on)
        self.ir.position_at_end(asked)
        answer = ask()
        last = self.ir.block
        self.ir.branch(on)
        self.ir.position_at_end(on)
        return self.merged(before, [const(i1, 0)], last, [answer])[0]

    def merged(self, one: Any, ones: Iterable[Any], other: Any, others: Iterable[Any]) -> list[Any]:
        """The values of the basic block that control came from, of two."""
        found = []
        for a, b in zip(ones, others):
            value = self.ir.phi(a.type)
            value.add_incoming(a, one)
            value.add_incoming(b, other)
            found.append(value)
        return found

    def skip_unless_any(self, mask: Any) -> None:
        """Continue here if the mask has a lane, else at the next micro-op."""
        go, skip = self.block_named("go"), self.block_named("skip")
        self.ir.cbranch(self.nonzero(mask), go, skip)
        self.ir.position_at_end(skip)
        self.goto(self.following())
        self.ir.position_at_end(go)

    def loop(self, start: Any, goes_on: Callable[[Any], Any], body: Callable[[Any], Any]) -> None:
        """Run ``value = body(value)`` from ``start`` on, while ``goes_on(value)``."""
        head, inner, done = (self.block_named(name) for name in ("head", "body", "done"))
        before = self.ir.block
        self.ir.branch(head)
        self.ir.position_at_end(head)
        value = self.ir.phi(start.type)
        value.add_incoming(start, before)
        self.ir.cbranch(goes_on(value), inner, done)
        self.ir.position_at_end(inner)
        value.add_incoming(body(value), self.ir.block)
        self.ir.branch(head)
        self.ir.position_at_end(done)

    def count(self, end: Any, step: int, body: Callable[[Any], None]) -> None:
        """Run ``body(number)`` for 0, step, ... below ``end``, an i64 that is a multiple of step."""

        def turn(number: Any) -> Any:
            body(number)
            return self.ir.add(number, self.i64(step))

        self.loop(self.i64(0), lambda number: self.ir.icmp_unsigned("<", number, end), turn)

    def fill(self, place: Any, word: Any, size: Any) -> None:
        """Fill so many bytes, a multiple of 64, with a number of 64 bits.

        The C library's memset is for much more: from 2 KB on it has the CPU's string instruction do it, which takes as
        long as a short block.
        """
        line = ir.VectorType(i64, 8)
        first = self.ir.insert_element(ir.Constant(line, ir.Undefined), word, self.i32(0))
        words = self.ir.shuffle_vector(first, first, ir.Constant(ir.VectorType(i32, 8), [0] * 8))
        self.count(size, 64, lambda at: self.store(words, place, at, 8))

    def for_each_lane(self, mask: Any, body: Callable[[Any], None]) -> None:
        """Run ``body(lane)`` for each lane in the mask, lowest first; the lane is an i32."""

        def turn(left: Any) -> Any:
            body(self.first_lane(left))
            return self.ir.and_(left, self.ir.sub(left, const(i32, 1)))

        self.loop(mask, self.nonzero, turn)


def natural(kind: ir.Type) -> int:
    """Alignment of a value in the emulator's own memory."""
    if isinstance(kind, ir.VectorType):
        return max(1, min(64, kind.count * max(1, kind.element.width // 8)))
    if isinstance(kind, ir.IntType):
        return max(1, min(8, kind.width // 8))
    return 8
