"""Addresses of memory accesses: their classes, their bounds checks, their translation to host addresses.

Every access names an entry of the block's buffer table: the one of the array that its pointer came from where that is
known, else the one hit last. The check against it is a subtraction and a comparison; what fails it goes lane by lane
through the block's RESOLVE function, which searches the table and judges. The address is one of

- ``K``: a number; ``U32``, ``U64``: a uniform register plus a number;
- ``A32``, ``A64``: as U, plus lane offsets, which fall into segments of ``m`` lanes that are contiguous
  (``c``) or all equal (``b``): one host access a segment;
- ``X32``, ``X64``: a register with one address a lane.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, SHARED_START, Block, Entry
from ..instructions.addresses import Pattern
from ..instructions.operand_classes import ABSOLUTE, OperandClass
from .gathers import Places
from .handler import Handler, i1, i32, i64, lanes_of, pointer

__all__ = ["RESOLVE", "Access", "access_of"]

RESOLVE = ir.FunctionType(i1, [pointer, pointer, pointer, i32])
wide = lanes_of(i64)


class Access:
    """The address of a memory handler: its fields, its checks, its translation to host addresses."""

    def __init__(self, h: Handler, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> None:
        self.h, self.kind, self.nbytes, self.write = h, kind, nbytes, write
        h.field()  # flags, for RESOLVE
        self.entry = h.add(h.load(h.block, Block.TABLE, pointer, fixed=True), h.field())
        self.bits = kind.bits or 64
        self.pattern = pattern
        self.in_window = False
        """Whether it is checked against shared memory as a whole, rather than the array that it is to."""
        if self.kind == ABSOLUTE:
            self.offset = h.field("q")
            return
        self.slot = h.slot()
        self.offset = h.field("q")
        if self.kind.affine:
            self.low, self.extent, self.known = h.field(), h.field(), h.field("q")
            self.segments = [h.field() for _ in range(LANES // pattern[1] - 1)] if pattern else []

    @property
    def searches(self) -> bool:
        """Whether what its buffer entry does not hold is searched in this function, without a side exit."""
        return False

    @property
    def beside(self) -> bool:
        """Whether its lanes probably lie side by side, where some of them are not active."""
        return False

    @property
    def strides(self) -> bool:
        """Whether the lanes' addresses are known to be a distance apart, of which the places make use."""
        return False

    def base(self) -> Any:
        """The uniform part of the address, i64; of an affine address that of its lowest lane."""
        h = self.h
        if self.kind == ABSOLUTE:
            return self.offset
        return h.ir.add(h.ir.zext(h.load(self.slot, 0, ir.IntType(self.bits)), i64), self.offset)

    def vector(self) -> Any:
        """The address of each lane, <32 x i64>."""
        h = self.h
        if self.kind.scalar:
            return h.splat(self.base())
        element = lanes_of(ir.IntType(self.bits))
        if self.kind.per_lane:
            lanes = h.load(self.slot, 0, element)
        else:
            base = h.splat(h.load(self.slot, 0, ir.IntType(self.bits)))
            lanes = h.ir.add(base, h.lane_offsets(self.known, self.bits))
        if self.bits < 64:
            lanes = h.ir.zext(lanes, wide)
        offset = self.offset if self.kind.per_lane else h.ir.sub(self.offset, h.ir.sext(self.low, i64))
        return h.ir.add(lanes, h.splat(offset))

    def elements(self, bits: int) -> tuple[int, ...]:  # noqa: ARG002
        """The element that each lane accesses, from the lowest on, where these are known and few; empty elsewhere."""
        return ()

    def limits(self, extent: Any) -> tuple[Any, Any, Any]:
        """The entry's lowest address, the bound on offsets of ``extent`` + 1 bytes, and the way to the host."""
        h = self.h
        if self.in_window:
            size, memory = (h.load(h.block, field, i64, fixed=True) for field in (Block.SHARED_BYTES, Block.SHARED))
            bound, start = h.call("llvm.usub.sat.i64", i64, size, extent), h.i64(SHARED_START)
            return start, bound, h.ir.sub(memory, start)
        size = h.load(self.entry, Entry.WRITABLE if self.write else Entry.SIZE, i64, fixed=True)
        bound = h.call("llvm.usub.sat.i64", i64, size, extent)
        low, delta = (h.load(self.entry, field, i64, fixed=True) for field in (Entry.LOW, Entry.DELTA))
        return low, bound, delta

    def check_scalar(self) -> tuple[Any, Any]:
        """Whether the whole pattern lies within the entry, and the host address of its lowest byte."""
        h = self.h
        address = first = self.base()
        extent = h.extended(self.extent) if self.kind.affine else h.i64(self.nbytes - 1)
        merged = h.merged_bounds()
        if merged is not None:
            back, extent = h.i64(merged[0]), h.i64(merged[1])
            first = h.ir.sub(address, back)
        low, bound, delta = self.limits(extent)
        good = self.and_aligned(h.ir.icmp_unsigned("<", h.ir.sub(first, low), bound), address)
        return h.note_bounds(good), h.ir.add(address, delta)

    def and_aligned(self, good: Any, address: Any) -> Any:
        """Whether this holds, and an address is aligned; or that of each lane."""
        h = self.h
        if self.nbytes <= 1:
            return good
        low, zero = h.i64(self.nbytes - 1), h.i64(0)
        if address.type != i64:
            low, zero = h.splat(low), h.splat(zero)
        return h.ir.and_(good, h.ir.icmp_unsigned("==", h.ir.and_(address, low), zero))

    def check_vector(self, mask: Any) -> tuple[Any, Any]:
        """Whether each lane of the mask lies within the entry, and the host addresses."""
        h = self.h
        lanes = self.vector()
        low, bound, delta = self.limits(h.i64(self.nbytes - 1))
        good = self.and_aligned(h.ir.icmp_unsigned("<", h.ir.sub(lanes, h.splat(low)), h.splat(bound)), lanes)
        bad = h.ir.and_(mask, h.ir.not_(h.mask(good)))
        return h.zero(bad), h.ir.add(lanes, h.splat(delta))

    def demand(self, good: Any) -> None:
        """Go on here where the check holds, else start over on the slow path."""
        self.h.branch_unless(good, lambda: self.h.tail(self.h.slow_path, self.h.rec))

    def hosts(self, mask: Any) -> Any:
        """Checked host addresses of the lanes in the mask, <32 x i64>."""
        return self.resolve(mask) if self.h.slow_path is None else self.hosts_within(mask)

    def places(self, mask: Any) -> Places:
        """The same, as they are gathered from."""
        return Places(self.h, self.hosts(mask))

    def hosts_within(self, mask: Any) -> Any:
        """The same on the fast path, for lanes that all lie within the entry."""
        good, lanes = self.check_vector(mask)
        self.demand(good)
        return lanes

    def resolve(self, mask: Any, lanes: Any = None) -> Any:
        """Host addresses by the slow, exact way; returns from the handler where a lane is at fault.

        They are those of the access, or of ``lanes``.
        """
        h = self.h
        scratch = h.add(h.block, Block.SCRATCH)
        h.store(self.vector() if lanes is None else lanes, scratch, 0)
        resolve = h.load(h.block, Block.RESOLVE, RESOLVE.as_pointer(), 8)
        fine = h.ir.call(resolve, [h.rec, h.warp, h.block, mask])
        h.branch_unless(fine, h.ir.ret_void)
        return h.load(scratch, 0, wide)

    def starts(self, host: Any) -> list[Any]:
        """The host addresses of all segments."""
        return [host, *(self.h.ir.add(host, self.h.ir.sext(offset, i64)) for offset in self.segments)]

    def host(self, mask: Any) -> Any:
        """The one host address that a uniform access has."""
        h = self.h
        if h.slow_path is None:
            lane = h.first_lane(mask)
            return h.ir.extract_element(self.resolve(h.ir.and_(mask, h.ir.sub(h.i32(0), mask))), lane)
        good, host = self.check_scalar()
        self.demand(good)
        return host


def access_of(h: Handler, kind: OperandClass, pattern: Pattern | None, nbytes: int, write: bool) -> Access:
    """The address of an access, as the function under construction checks it."""
    own: Access | None = h.own_access(kind, pattern, nbytes, write)
    return Access(h, kind, pattern, nbytes, write) if own is None else own
