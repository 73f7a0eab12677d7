"""Operations on tensor memory that may not be complete: who writes or reads a column, until somebody has waited.

The tensor core works beside the warps: what ``mma``, ``cp`` and ``shift`` do is complete once a wait has found the
phase of an mbarrier complete that a ``tcgen05.commit`` behind them has arrived at; a ``st`` once its warp has executed
``tcgen05.wait::st``. Here all is done where it stands, so a missing wait would not be seen in the results: a fault says
it. Each warp has two streams of operations, those of the tensor core and its stores, whose operations have numbers.
For each 16 lanes of a column the last operation that writes and that reads there is kept, for each stream the number up
to which all are complete.

- ``ld``, ``st`` and ``dealloc`` of what the tensor core may still write, ``st`` and ``dealloc`` of what it may still
  read, whatever warp has issued it;
- ``ld``, ``mma``, ``cp``, ``shift`` and ``dealloc`` of what a warp has stored and not waited for.

Operations of the tensor core among each other are not checked: one thread's follow each other in its pipeline. Nor are
loads, whose registers the hardware waits for. It cannot see: whose wait it was (any thread's will do, for it may tell
the others), and which phase it was for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...machine.layout import Block, Warp
from ...machine.tensor_memory import Commit, TensorMemory
from ...machine.status import Fault
from ..handler import Handler, i1, i32, i64, pointer
from ..pending import owner_block
from .tensor_cells import TensorCells

__all__ = ["ALL_LANES", "Flight", "note_commit", "note_complete", "stores_complete"]

NUMBER_BITS = 25
STORES = 64
"""The first of the streams of stores; those of the tensor core are of the pair's warps."""
_GROUPS = ir.VectorType(i32, 8)
_COLUMN = 32
"""Bytes of a column's operations."""
_COMMITS = Commit.nbytes
_MOST = 64
_ISSUED_AT = 8
ALL_LANES = 0xFF


def _stream(h: Handler, stores: bool) -> Any:
    """The number of a stream of the warp that runs."""
    warp = h.load(h.warp, Warp.INDEX, i32)
    if stores:
        return h.ir.add(warp, h.i32(STORES))
    parity = h.ir.and_(h.load(h.block, Block.RANK, i32), h.i32(1))
    return h.ir.add(warp, h.ir.shl(parity, h.i32(5)))


def _at(h: Handler, place: Any, field: int, stream: Any, size: int = 4) -> Any:
    return h.add(place, h.ir.add(h.ir.mul(stream, h.i32(size)), h.i32(field)))


def _bit(h: Handler, place: Any, stream: Any) -> tuple[Any, Any]:
    """The word of FLYING that has the bit of a stream, and that."""
    word = h.add(place, h.ir.add(h.ir.shl(h.ir.lshr(stream, h.i32(6)), h.i32(3)), h.i32(TensorMemory.FLYING)))
    return word, h.ir.shl(h.i64(1), h.ir.zext(h.ir.and_(stream, h.i32(63)), i64))


class Flight:
    """An operation of the warp that runs on the cells of a block."""

    def __init__(
        self, h: Handler, own: TensorCells, lanes: Any, core: bool = False, passes_own: bool = False
    ) -> None:
        """``core``: it is one of the tensor core, for which only stores are in the way.

        ``passes_own``: stores of the same warp are not.
        """
        self.h, self.own, self.lanes, self.core, self.passes_own = h, own, lanes, core, passes_own

    # Checks

    def check(self, cells: TensorCells, column: Any, count: Any, groups: Any, writes: bool) -> None:
        """Check that nothing in flight is in the way of ``count`` columns; ``groups`` has a bit for each 16 lanes."""
        h, core = self.h, self.core
        flying = [h.load(cells.place, TensorMemory.FLYING + 8 * n, i64) for n in ((1,) if core else (0, 1))]
        some = flying[0] if core else h.ir.or_(*flying)
        with h.ir.if_then(h.nonzero(some), likely=False):
            fields = [TensorMemory.WRITERS] + [TensorMemory.READERS] * (writes and not core)
            for field in fields:
                self._check(cells, field, column, count, groups)

    def _check(self, cells: TensorCells, field: int, column: Any, count: Any, groups: Any) -> None:
        h = self.h
        own = _stream(h, True)

        def one(number: Any) -> None:
            at = h.ir.add(column, h.ir.trunc(number, i32))
            place = h.add(cells.place, h.ir.add(h.ir.mul(at, h.i32(_COLUMN)), h.i32(field)))

            def group(which: Any) -> None:
                stamp = h.load(h.add(place, h.ir.shl(which, h.i32(2))), 0, i32)
                flies = self._flies(cells, stamp)
                stream = h.ir.lshr(stamp, h.i32(NUMBER_BITS))
                stored = h.ir.icmp_unsigned(">=", stream, h.i32(STORES))
                bad = h.ir.and_(flies, stored) if self.core else flies
                if self.passes_own:
                    bad = h.ir.and_(bad, h.ir.icmp_unsigned("!=", stream, own))

                def leave() -> None:
                    h.store(h.ir.zext(at, i64), h.block, Block.FAULT_ADDRESS)
                    h.store(h.ir.zext(stream, i64), h.block, Block.EXTENTS)
                    h.store(h.load(_at(h, cells.place, TensorMemory.ISSUED_AT, stream, _ISSUED_AT), 0, i64),
                            h.block, Block.EXTENTS + 8)
                    h.fault(Fault.TENSOR_FLIGHT, self.lanes)

                h.branch_unless(h.ir.not_(bad), leave)

            h.for_each_lane(groups, group)

        h.count(h.ir.zext(count, i64), 1, one)

    def _flies(self, cells: TensorCells, stamp: Any) -> Any:
        h = self.h
        stream = h.ir.lshr(stamp, h.i32(NUMBER_BITS))
        done = h.load(_at(h, cells.place, TensorMemory.DONE, stream), 0, i32)
        ahead = h.ir.and_(h.ir.sub(stamp, done), h.i32((1 << NUMBER_BITS) - 1))
        return h.ir.icmp_unsigned("<", h.ir.sub(ahead, h.i32(1)), h.i32((1 << NUMBER_BITS - 1) - 1))

    # What is issued

    def begin(self, blocks: list[TensorCells], stores: bool = False) -> None:
        """The warp issues another operation, on the cells of these blocks."""
        h = self.h
        stream = _stream(h, stores)
        issued = _at(h, self.own.place, TensorMemory.ISSUED, stream)
        number = h.ir.and_(h.ir.add(h.load(issued, 0, i32), h.i32(1)), h.i32((1 << NUMBER_BITS) - 1))
        self.stamp = h.ir.or_(h.ir.shl(stream, h.i32(NUMBER_BITS)), number)
        for cells in blocks:
            h.store(number, _at(h, cells.place, TensorMemory.ISSUED, stream), 0)
            h.store(h.ir.ptrtoint(h.rec, i64), _at(h, cells.place, TensorMemory.ISSUED_AT, stream, _ISSUED_AT), 0)
            word, bit = _bit(h, cells.place, stream)
            h.store(h.ir.or_(h.load(word, 0, i64), bit), word, 0)

    def note(self, cells: TensorCells, column: Any, count: Any, groups: Any, writes: bool) -> None:
        """It writes, or reads, these columns."""
        h = self.h
        field = TensorMemory.WRITERS if writes else TensorMemory.READERS
        first = h.add(cells.place, h.ir.add(h.ir.mul(column, h.i32(_COLUMN)), h.i32(field)))
        mask = h.ir.bitcast(h.ir.trunc(groups, ir.IntType(8)), ir.VectorType(i1, 8))
        stamp = h.ir.insert_element(ir.Constant(_GROUPS, ir.Undefined), self.stamp, h.i32(0))
        stamp = h.ir.shuffle_vector(stamp, stamp, ir.Constant(_GROUPS, [0] * 8))

        def one(number: Any) -> None:
            place = h.add(first, h.ir.mul(number, h.i64(_COLUMN)))
            h.store(h.ir.select(mask, stamp, h.load(place, 0, _GROUPS, 4)), place, 0, 4)

        h.count(h.ir.zext(count, i64), 1, one)


# What is complete


def _complete(h: Handler, place: Any, stream: Any, number: Any, issued: Any) -> None:
    """All operations of a stream up to a number are complete, as the tensor memory of one block notes it."""
    done = _at(h, place, TensorMemory.DONE, stream)
    ahead = h.ir.and_(h.ir.sub(number, h.load(done, 0, i32)), h.i32((1 << NUMBER_BITS) - 1))
    newer = h.ir.icmp_unsigned("<", ahead, h.i32(1 << NUMBER_BITS - 1))
    with h.ir.if_then(newer):
        h.store(number, done, 0)
        with h.ir.if_then(h.ir.icmp_unsigned("==", number, issued)):
            word, bit = _bit(h, place, stream)
            h.store(h.ir.and_(h.load(word, 0, i64), h.ir.not_(bit)), word, 0)


def stores_complete(h: Handler) -> None:
    """The warp has waited for its stores."""
    place, stream = h.load(h.block, Block.TENSOR, pointer), _stream(h, True)
    number = h.load(_at(h, place, TensorMemory.ISSUED, stream), 0, i32)
    _complete(h, place, stream, number, number)


def note_commit(h: Handler, host: Any) -> None:
    """The mbarrier at a host address tracks what the warp has issued to the tensor core."""
    own, stream = h.load(h.block, Block.TENSOR, pointer), _stream(h, False)
    number = h.load(_at(h, own, TensorMemory.ISSUED, stream), 0, i32)
    clustered = h.nonzero(h.load(h.block, Block.CLUSTER, i64))
    block = h.alloca(pointer)
    h.ir.store(h.block, block)
    with h.ir.if_then(clustered):
        h.ir.store(owner_block(h, host), block)
    place = h.load(h.ir.load(block), Block.TENSOR, pointer)
    count = h.load(place, TensorMemory.COMMITS, i32)
    at = h.alloca(i32)
    h.ir.store(count, at)

    def one(which: Any) -> None:
        entry = _entry(h, place, h.ir.trunc(which, i32))
        same = h.ir.icmp_unsigned("==", h.load(entry, Commit.MBARRIER, i64), host)
        for field, value, kind in ((Commit.STREAM, stream, i32), (Commit.ISSUER, h.ir.ptrtoint(own, i64), i64)):
            same = h.ir.and_(same, h.ir.icmp_unsigned("==", h.load(entry, field, kind), value))
        with h.ir.if_then(same):
            h.ir.store(h.ir.trunc(which, i32), at)

    h.count(h.ir.zext(count, i64), 1, one)
    found = h.ir.load(at)
    full = h.ir.icmp_unsigned(">=", found, h.i32(_MOST))
    with h.ir.if_then(full, likely=False):
        _take(h, place, h.i32(0))
        h.ir.store(h.i32(_MOST - 1), at)
    found = h.ir.load(at)
    entry = _entry(h, place, found)
    for field, value in (
        (Commit.MBARRIER, host), (Commit.ISSUER, h.ir.ptrtoint(own, i64)), (Commit.STREAM, stream),
        (Commit.NUMBER, number),
    ):
        h.store(value, entry, field)
    with h.ir.if_then(h.ir.icmp_unsigned("==", found, h.load(place, TensorMemory.COMMITS, i32))):
        h.store(h.ir.add(found, h.i32(1)), place, TensorMemory.COMMITS)


def _entry(h: Handler, place: Any, number: Any) -> Any:
    return h.add(place, h.ir.add(h.ir.mul(number, h.i32(_COMMITS)), h.i32(TensorMemory.COMMITTED)))


def _take(h: Handler, place: Any, number: Any) -> None:
    """What a commit tracks is complete; another one takes its place."""
    entry = _entry(h, place, number)
    issuer, stream = h.load(entry, Commit.ISSUER, pointer), h.load(entry, Commit.STREAM, i32)
    done = h.load(entry, Commit.NUMBER, i32)
    issued = h.load(_at(h, issuer, TensorMemory.ISSUED, stream), 0, i32)
    _complete(h, issuer, stream, done, issued)
    peer = h.load(issuer, TensorMemory.PEER, pointer)
    with h.ir.if_then(h.nonzero(h.ir.ptrtoint(peer, i64))):
        _complete(h, peer, stream, done, issued)
    left = h.ir.sub(h.load(place, TensorMemory.COMMITS, i32), h.i32(1))
    h.store(left, place, TensorMemory.COMMITS)
    whole = ir.ArrayType(i64, _COMMITS // 8)
    h.store(h.load(_entry(h, place, left), 0, whole, 8), entry, 0, 8)


def note_complete(h: Handler, host: Any) -> None:
    """A wait has found the phase of the mbarrier at a host address complete."""
    tensor = h.load(h.block, Block.TENSOR, pointer)

    def some() -> Any:
        return h.nonzero(h.load(tensor, TensorMemory.COMMITS, i32))

    with h.ir.if_then(h.asked_if(h.nonzero(h.ir.ptrtoint(tensor, i64)), some), likely=False):

        def turn(left: Any) -> Any:
            number = h.ir.sub(left, h.i32(1))
            entry = _entry(h, tensor, number)
            with h.ir.if_then(h.ir.icmp_unsigned("==", h.load(entry, Commit.MBARRIER, i64), host)):
                _take(h, tensor, number)
            return number

        h.loop(h.load(tensor, TensorMemory.COMMITS, i32), h.nonzero, turn)

