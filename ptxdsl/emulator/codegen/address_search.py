"""The slow path of address translation: the table of buffers, the heap and local memory are searched lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from ..instructions.addresses import AccessFlags
from ..instructions.bulk_copies import ALIGNMENT
from ..machine.heap import Heap
from ..machine.layout import LANES, LOCAL_START, SINK_BYTES, SPACE_BITS, Block, Cluster, Entry, Warp
from ..machine.status import Fault, Status
from .handler import Handler, byte, i1, i32, i64, lanes_of, pointer
from .access import RESOLVE

__all__ = ["AddressSearch"]


class AddressSearch:
    """Emits RESOLVE: translates the addresses in SCRATCH to host addresses for the lanes of a mask.

    False where a lane is at fault; the block state then says which, and how. The record has AccessFlags first.
    """

    def __init__(self, module: ir.Module, name: str) -> None:
        self.h = h = Handler(module, name, result=RESOLVE)
        mask = h.function.args[3]
        flags = h.load(h.rec, 8, i32, 4)
        self.fixed = h.ir.zext(h.ir.and_(flags, h.i32(AccessFlags.NBYTES)), i64)
        self.is_fixed = h.nonzero(self.fixed)
        self.spaces = h.ir.and_(h.ir.lshr(flags, h.i32(AccessFlags.SPACES_SHIFT)), h.i32(255))
        self.writes = self.flag(flags, AccessFlags.WRITES)
        self.one_entry = self.flag(flags, AccessFlags.ONE_ENTRY)
        any_address = h.ir.select(self.flag(flags, AccessFlags.BYTEWISE), h.i64(1), h.i64(ALIGNMENT))
        self.alignment = h.ir.select(self.is_fixed, self.fixed, any_address)
        self.passes = h.ir.and_(self.flag(flags, AccessFlags.PASSES), self.is_fixed)
        self.table = h.load(h.block, Block.TABLE, pointer)
        self.count = h.load(h.block, Block.ENTRIES, i32)
        self.together(mask)
        h.for_each_lane(mask, self.lane)
        h.ir.ret(ir.Constant(i1, 1))

    def flag(self, flags: Any, flag: int) -> Any:
        return self.h.ir.icmp_unsigned("!=", self.h.ir.and_(flags, self.h.i32(flag)), self.h.i32(0))

    def together(self, mask: Any) -> None:
        """Search local memory and the entries for all lanes at once; goes on lane by lane where some are elsewhere.

        The search begins where one was found last, and notes the first that it finds: the lanes of a warp that access
        several blocks of a cluster, or several arrays, find these one after the other.
        """
        h = self.h
        near, head, probe, found, over = (h.block_named(n) for n in ("near", "entries", "probe", "found", "lanes"))
        scratch = h.add(h.block, Block.SCRATCH)
        lanes = h.load(scratch, 0, lanes_of(i64))
        odd = h.ir.and_(lanes, h.splat(h.ir.sub(self.fixed, h.i64(1))))
        odd_lanes = h.ir.and_(h.mask(h.ir.icmp_unsigned("!=", odd, h.splat(h.i64(0)))), mask)
        plain = h.ir.and_(h.ir.and_(self.is_fixed, h.zero(odd_lanes)), h.ir.not_(self.one_entry))
        plain = h.ir.and_(plain, h.nonzero(h.ir.and_(mask, h.ir.sub(mask, h.i32(1)))))  # one lane is quicker alone
        whole = h.ir.mul(self.count, h.i32(Entry.nbytes))
        known = h.load(h.rec, 12, i32, 4)
        known = h.ir.select(h.ir.icmp_unsigned("<", known, whole), known, h.i32(0))  # of a launch with more arrays
        h.ir.cbranch(plain, near, over)
        h.ir.position_at_end(near)
        own, mine = self.own(lanes)
        others = h.ir.and_(mask, h.ir.not_(own))
        only, some = h.block_named("local_only"), h.ir.block
        h.ir.cbranch(h.zero(others), only, head)
        h.ir.position_at_end(only)
        h.store(mine, scratch, 0)
        h.ir.ret(ir.Constant(i1, 1))
        h.ir.position_at_end(head)
        number, hosts, left, first = h.ir.phi(i32), h.ir.phi(lanes.type), h.ir.phi(i32), h.ir.phi(i32)
        for phi, start in ((number, h.i32(0)), (hosts, mine), (left, others), (first, h.i32(-1))):
            phi.add_incoming(start, some)
        h.ir.cbranch(h.ir.icmp_unsigned("<", number, self.count), probe, over)
        h.ir.position_at_end(probe)
        ahead = h.ir.add(known, h.ir.mul(number, h.i32(Entry.nbytes)))
        around = h.ir.sub(ahead, whole)
        offset = h.ir.select(h.ir.icmp_signed("<", around, h.i32(0)), ahead, around)
        entry = h.add(self.table, offset)
        size = h.ir.select(self.writes, h.load(entry, Entry.WRITABLE, i64), h.load(entry, Entry.SIZE, i64))
        bound = h.call("llvm.usub.sat.i64", i64, size, h.ir.sub(self.fixed, h.i64(1)))
        allowed = h.nonzero(h.ir.and_(h.load(entry, Entry.SPACES, i32), self.spaces))
        bound = h.ir.select(allowed, bound, h.i64(0))
        below = h.ir.sub(lanes, h.splat(h.load(entry, Entry.LOW, i64)))
        inside = h.ir.icmp_unsigned("<", below, h.splat(bound))
        moved = h.ir.select(inside, h.ir.add(lanes, h.splat(h.load(entry, Entry.DELTA, i64))), hosts)
        here = h.ir.and_(h.mask(inside), left)
        rest = h.ir.and_(left, h.ir.not_(here))
        fresh = h.ir.and_(h.nonzero(here), h.ir.icmp_signed("<", first, h.i32(0)))
        which = h.ir.select(fresh, offset, first)
        for phi, value in ((number, h.ir.add(number, h.i32(1))), (hosts, moved), (left, rest), (first, which)):
            phi.add_incoming(value, probe)
        h.ir.cbranch(h.zero(rest), found, head)
        h.ir.position_at_end(found)
        h.store(moved, scratch, 0)
        h.store(which, h.rec, 12, 4)
        h.ir.ret(ir.Constant(i1, 1))
        h.ir.position_at_end(over)

    def own(self, addresses: Any) -> tuple[Any, Any]:
        """The lanes whose addresses are of their own local memory, and the addresses with the hosts of these."""
        h = self.h
        window, size, allowed = self.local_window()
        offset = h.ir.sub(addresses, h.splat(h.ir.add(window, h.i64(LOCAL_START))))
        bound = h.call("llvm.usub.sat.i64", i64, size, h.ir.sub(self.fixed, h.i64(1)))
        inside = h.ir.icmp_unsigned("<", offset, h.splat(h.ir.select(allowed, bound, h.i64(0))))
        numbers = ir.Constant(lanes_of(i64), list(range(LANES)))
        hosts = self.local_host(offset, numbers, h.splat)
        return h.mask(inside), h.ir.select(inside, hosts, addresses)

    def lane(self, lane: Any) -> None:
        h = self.h
        place = h.ir.add(h.ir.shl(h.ir.zext(lane, i64), h.i64(3)), h.i64(Block.SCRATCH))
        address = h.load(h.block, place, i64)
        extent = h.load(h.block, h.ir.add(place, h.i64(Block.EXTENTS - Block.SCRATCH)), i64)
        self.nbytes = h.ir.select(self.is_fixed, self.fixed, extent)
        odd = h.ir.and_(address, h.ir.sub(self.alignment, h.i64(1)))
        even = h.zero(odd)
        self.sunk = h.block_named("sunk")
        h.branch_unless(even, lambda: self.fail(lane, address, Fault.ALIGNMENT))
        done, search, lost = h.block_named("translated"), h.block_named("search"), h.block_named("lost")
        known = h.load(h.rec, 12, i32, 4)
        hit, host, real = self.probe(known, address)
        hits = [(host, h.ir.block)]
        other, own, unknown = (h.block_named(n) for n in ("other", "own", "unknown"))
        h.ir.cbranch(hit, done, other)
        h.ir.position_at_end(other)
        entry = h.add(self.table, known)
        variable = h.ir.select(self.one_entry, h.load(entry, Entry.DELTA, i64), h.i64(0))
        h.ir.cbranch(h.ir.or_(real, h.zero(variable)), unknown, own)
        h.ir.position_at_end(own)
        hits.append(self.local(lane, address, done, lost, (h.load(entry, Entry.LOW, i64), variable)))
        h.ir.position_at_end(unknown)
        here = h.ir.not_(self.in_other_block(entry, address))
        h.ir.cbranch(h.ir.and_(h.ir.and_(self.one_entry, real), here), lost, search)
        h.ir.position_at_end(search)
        entries = h.block_named("all_entries")
        hits.append(self.local(lane, address, done, entries))
        h.ir.position_at_end(entries)
        hits.append(self.scan(address, done, entries))
        hits.append(self.heap(address, done, lost))
        h.ir.branch(lost)
        h.ir.position_at_end(lost)
        self.fail(lane, address, Fault.MEMORY)
        h.ir.position_at_end(self.sunk)
        sink = h.ir.mul(h.ir.zext(lane, i64), h.i64(SINK_BYTES))
        hits.append((h.ir.add(h.load(h.block, Block.SINK, i64), sink), self.sunk))
        h.ir.branch(done)
        h.ir.position_at_end(done)
        found = h.ir.phi(i64)
        for host, block in hits:
            found.add_incoming(host, block)
        h.store(found, h.block, place)

    def in_other_block(self, entry: Any, address: Any) -> Any:
        """Whether an address that comes from a shared array leads to another block's: bits of its rank were changed."""
        h = self.h
        shared = h.nonzero(h.ir.and_(h.load(entry, Entry.SPACES, i32), h.i32(SPACE_BITS["shared"])))
        changed = h.ir.lshr(h.ir.xor(address, h.load(entry, Entry.LOW, i64)), h.i64(Cluster.RANK_BITS))
        return h.ir.and_(shared, h.nonzero(changed))

    def fail(self, lane: Any, address: Any, kind: int) -> None:
        h, fault = self.h, self.h.block_named("fault")
        h.ir.cbranch(self.passes, self.sunk, fault)
        h.ir.position_at_end(fault)
        h.store(lane, h.block, Block.FAULT_LANE)
        h.store(address, h.block, Block.FAULT_ADDRESS)
        h.store(h.i32(kind), h.block, Block.FAULT_KIND)
        h.stop(Status.FAULT)
        h.ir.ret(ir.Constant(i1, 0))

    def probe(self, offset: Any, address: Any) -> tuple[Any, Any, Any]:
        """Whether the entry at an offset of the table holds the address; the host address; whether it is one at all."""
        h = self.h
        entry = h.add(self.table, offset)
        size = h.ir.select(self.writes, h.load(entry, Entry.WRITABLE, i64), h.load(entry, Entry.SIZE, i64))
        bound = h.call("llvm.usub.sat.i64", i64, size, h.ir.sub(self.nbytes, h.i64(1)))
        inside = h.ir.icmp_unsigned("<", h.ir.sub(address, h.load(entry, Entry.LOW, i64)), bound)
        spaces = h.load(entry, Entry.SPACES, i32)
        allowed = h.nonzero(h.ir.and_(spaces, self.spaces))
        real = h.nonzero(spaces)
        return h.ir.and_(inside, allowed), h.ir.add(address, h.load(entry, Entry.DELTA, i64)), real

    def scan(self, address: Any, done: ir.Block, before: ir.Block) -> tuple[Any, ir.Block]:
        """Search all entries; the micro-op keeps the one that holds the address. Continues here where none does."""
        h = self.h
        head, body, next_, hit, over = (h.block_named(n) for n in ("scan", "entry", "next", "hit", "over"))
        h.ir.branch(head)
        h.ir.position_at_end(head)
        number = h.ir.phi(i32)
        number.add_incoming(h.i32(0), before)
        h.ir.cbranch(h.ir.icmp_unsigned("<", number, self.count), body, over)
        h.ir.position_at_end(body)
        offset = h.ir.mul(number, h.i32(Entry.nbytes))
        found, host, _ = self.probe(offset, address)
        h.ir.cbranch(found, hit, next_)
        h.ir.position_at_end(next_)
        number.add_incoming(h.ir.add(number, h.i32(1)), next_)
        h.ir.branch(head)
        h.ir.position_at_end(hit)
        cached, through = h.block_named("cached"), h.block_named("through")
        h.ir.cbranch(self.one_entry, through, cached)
        h.ir.position_at_end(cached)
        h.store(offset, h.rec, 12, 4)
        h.ir.branch(through)
        h.ir.position_at_end(through)
        h.ir.branch(done)
        h.ir.position_at_end(over)
        return host, through

    def heap(self, address: Any, done: ir.Block, lost: ir.Block) -> tuple[Any, ir.Block]:
        """The memory of malloc: of each granule the bytes that are given out. Goes on where it is elsewhere."""
        h = self.h
        inside, elsewhere = h.block_named("heap"), h.block_named("elsewhere")
        offset = h.ir.sub(address, h.load(h.block, Block.HEAP, i64))
        valid = h.load(h.block, Block.HEAP_MAP, i64)
        there = h.ir.and_(
            h.nonzero(valid), h.ir.icmp_unsigned("<", offset, h.i64(Heap.SIZE))
        )
        reach = h.ir.or_(self.allows("global"), self.allows("generic"))
        h.ir.cbranch(h.ir.and_(there, reach), inside, elsewhere)
        h.ir.position_at_end(inside)
        granule = h.ir.add(valid, h.ir.lshr(offset, h.i64(Heap.GRANULE_BITS)))
        size = h.i64(Heap.GRANULE)
        end = h.ir.add(h.ir.and_(offset, h.i64(Heap.GRANULE - 1)), self.nbytes)
        head, again, whole = (h.block_named(n) for n in ("granules", "granule", "allocated"))
        h.ir.branch(head)
        h.ir.position_at_end(head)
        at, left = h.ir.phi(i64), h.ir.phi(i64)  # the bytes from the granule's start to the end of the access
        at.add_incoming(granule, inside)
        left.add_incoming(end, inside)
        room = h.ir.zext(h.load(h.ir.inttoptr(at, pointer), 0, byte, 1), i64)
        least = h.ir.select(h.ir.icmp_unsigned("<", left, size), left, size)
        h.ir.cbranch(h.ir.icmp_unsigned("<=", least, room), again, lost)
        h.ir.position_at_end(again)
        at.add_incoming(h.ir.add(at, h.i64(1)), again)
        left.add_incoming(h.ir.sub(left, size), again)
        h.ir.cbranch(h.ir.icmp_unsigned(">", left, size), head, whole)
        h.ir.position_at_end(whole)
        h.ir.branch(done)
        h.ir.position_at_end(elsewhere)
        return address, whole

    def local(
        self, lane: Any, address: Any, done: ir.Block, lost: ir.Block, variable: tuple[Any, Any] | None = None
    ) -> tuple[Any, ir.Block]:
        """The thread's own memory, through its window or directly; only that of a ``variable``, given its place."""
        h = self.h
        window, size, allowed = self.local_window()
        offset = h.ir.sub(address, h.ir.add(window, h.i64(LOCAL_START)))
        low, room = (h.i64(LOCAL_START), size) if variable is None else variable
        bound = h.call("llvm.usub.sat.i64", i64, room, h.ir.sub(self.nbytes, h.i64(1)))
        inside = h.ir.icmp_unsigned("<", h.ir.sub(h.ir.sub(address, window), low), bound)
        host = self.local_host(offset, h.ir.zext(lane, i64), lambda number: number)
        block = h.ir.block
        h.ir.cbranch(h.ir.and_(inside, allowed), done, lost)
        return host, block

    def local_window(self) -> tuple[Any, Any, Any]:
        """The window of local memory in the addresses that are meant, its size, and whether these may be of it."""
        h, direct = self.h, self.allows("local")
        window = h.ir.select(direct, h.i64(0), h.load(h.block, Block.LOCAL_WINDOW, i64))
        return window, h.load(h.block, Block.LOCAL_BYTES, i64), h.ir.or_(direct, self.allows("generic"))

    def local_host(self, offset: Any, lane: Any, like: Callable[[Any], Any]) -> Any:
        """The host address of an offset in local memory, of a lane or of each; ``like`` makes numbers of that kind."""
        h = self.h
        warp, size = h.load(h.warp, Warp.INDEX, i32), h.load(h.block, Block.LOCAL_BYTES, i64)
        shift = h.load(h.block, Block.LOCAL_SHIFT, i64)
        start = h.ir.ptrtoint(h.load(h.block, Block.LOCAL, pointer), i64)
        start = h.ir.add(start, h.ir.mul(h.ir.zext(warp, i64), h.ir.mul(size, h.i64(LANES))))
        rest = h.ir.and_(offset, like(h.ir.sub(h.ir.shl(h.i64(1), shift), h.i64(1))))
        row = h.ir.mul(h.ir.sub(offset, rest), like(h.i64(LANES)))
        return h.ir.add(h.ir.add(like(start), row), h.ir.add(h.ir.shl(lane, like(shift)), rest))

    def allows(self, space: str) -> Any:
        return self.h.ir.icmp_unsigned("!=", self.h.ir.and_(self.spaces, self.h.i32(SPACE_BITS[space])), self.h.i32(0))
