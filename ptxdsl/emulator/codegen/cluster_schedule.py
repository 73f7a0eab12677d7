"""The compiled scheduler of clusters: which block of one runs next, and the cluster after it.

A block that waits at the barrier of its cluster returns to where it was called from, since the others share its host
thread: so a cluster of four blocks takes eight calls, and Python would take most of the time. Here the blocks that can
run take their turns in the order of their ranks. What is anything but the end of a block, or a wait that another block
can end, returns to Python with that block as the current one, and Python goes on from there.

Where the sanitizer has given the blocks shadow states, a cluster begins with new words for the shared memory of its
blocks, and each turn with a new window of epochs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..machine.layout import LANES, Block, Cluster, ClusterBlock, ClusterRun, Entry, Launch
from ..machine.status import Status
from ..machine.shadow import EPOCH_SHIFT, WORD_SHIFT, Plane, Shadow
from .handler import Handler, byte, i1, i32, i64, pointer

__all__ = ["run_clusters"]

VOID = ir.VoidType()


class _Blocks:
    """The blocks of the cluster that runs; ``h.block`` is the :class:`ClusterRun`."""

    def __init__(self, h: Handler) -> None:
        self.h, self.run = h, h.block
        self.head = h.load(self.run, ClusterRun.HEAD, pointer)
        self.able = h.alloca(i32)

    def get(self, offset: int, kind: ir.Type = i32) -> Any:
        return self.h.load(self.run, offset, kind)

    def part(self, rank: Any) -> Any:
        """What the cluster keeps for a block."""
        h = self.h
        return h.add(self.head, h.ir.add(h.ir.mul(rank, h.i32(ClusterBlock.nbytes)), h.i32(Cluster.nbytes)))

    def state(self, rank: Any) -> Any:
        return self.h.load(self.part(rank), ClusterBlock.BLOCK, pointer)

    def begin(self) -> None:
        """Make all states ready for the blocks of the next cluster."""
        h = self.h
        blocks = self.get(ClusterRun.BLOCKS)
        h.store(h.i64(0), self.head, Cluster.PHASE)  # and ARRIVED
        h.store(self.get(ClusterRun.THREADS), self.head, Cluster.LIVE)
        h.store(blocks, self.head, Cluster.BLOCKS)
        h.store(h.i32(0), self.head, Cluster.ENDED)
        h.store(blocks, self.run, ClusterRun.LEFT)
        h.store(h.i32(0), self.run, ClusterRun.CURRENT)
        number = h.ir.trunc(self.get(ClusterRun.NUMBER, i64), i32)
        x, y = (self.get(ClusterRun.GRID + 4 * axis) for axis in range(2))
        above = h.ir.udiv(number, x)
        index = h.ir.urem(number, x), h.ir.urem(above, y), h.ir.udiv(above, y)
        h.for_each_lane(blocks, lambda rank: self._assign(rank, index))

    def _assign(self, rank: Any, index: tuple[Any, ...]) -> None:
        """Make a state ready for its block."""
        h = self.h
        part, state = self.part(rank), self.state(rank)
        h.store(h.i32(0), part, ClusterBlock.WAITING)
        masks = h.add(part, ClusterBlock.MASKS)
        h.call("llvm.memset.p0.i64", VOID, masks, ir.Constant(byte, 0), h.i64(8 * LANES), ir.Constant(i1, 0))
        number: Any = h.i64(0)
        for axis in (2, 1, 0):
            at, shape, inside = index[axis], self.get(ClusterRun.SHAPE + 4 * axis), Block.CLUSTER_CTAID + 4 * axis
            at = h.ir.add(h.ir.mul(at, shape), h.load(state, inside, i32))
            extent = h.load(state, Block.NCTAID + 4 * axis, i32)
            number = h.ir.add(h.ir.mul(number, h.ir.zext(extent, i64)), h.ir.zext(at, i64))
            h.store(index[axis], state, Block.CLUSTERID + 4 * axis)
        counter = h.load(state, Block.GRID, pointer)
        h.store(number, counter, Launch.NEXT)
        h.store(h.ir.add(number, h.i64(1)), counter, Launch.BLOCKS)
        h.store(self.get(ClusterRun.SLICE), state, Block.BUDGET)
        shadow = h.load(state, Block.SHADOW, pointer)
        with h.ir.if_then(self.exists(shadow)):
            self._clear(shadow)
        size = self.get(ClusterRun.SHARED_BYTES, i64)
        h.for_each_lane(self.get(ClusterRun.BLOCKS), lambda other: self._reach(state, other, size))

    def exists(self, shadow: Any) -> Any:
        """Whether a block has a shadow state."""
        return self.h.nonzero(self.h.ir.ptrtoint(shadow, i64))

    def _clear(self, shadow: Any) -> None:
        """Clear the shadow words of a block's shared memory, and note where the epochs of the cluster begin."""
        h = self.h
        h.store(self._next_epoch(shadow), shadow, Shadow.CLUSTER_BASE)
        words, stride, writer = (h.load(shadow, n, i64) for n in (Shadow.WORDS, Shadow.WORDS_STRIDE, Shadow.FRESH))
        size, writers = h.load(shadow, Shadow.WORDS_BYTES, i64), h.ir.inttoptr(words, pointer)
        h.count(size, 1 << WORD_SHIFT, lambda at: h.store(writer, writers, at))
        for plane in (Plane.READER, Plane.EARLIER_READER):
            place = h.add(writers, h.ir.mul(stride, h.i64(plane)))
            h.call("llvm.memset.p0.i64", VOID, place, ir.Constant(byte, 0), size, ir.Constant(i1, 0))

    def switch(self, state: Any) -> None:
        """The block has its turn: the epochs until now may be of any block."""
        h = self.h
        shadow = h.load(state, Block.SHADOW, pointer)
        with h.ir.if_then(self.exists(shadow)):
            h.store(self._next_epoch(shadow), shadow, Shadow.WINDOW)

    def _next_epoch(self, shadow: Any) -> Any:
        """The epoch that begins next, as in a shadow word."""
        h = self.h
        epoch = h.load(h.load(shadow, Shadow.EPOCH_COUNTER, pointer), 0, i64)
        return h.ir.shl(h.ir.add(epoch, h.i64(1)), h.i64(EPOCH_SHIFT))

    def _reach(self, state: Any, other: Any, size: Any) -> None:
        """The bytes of another block's shared memory that a block may access, by shared addresses and generic ones."""
        h = self.h
        place = h.add(h.load(state, Block.TABLE, pointer), self.get(ClusterRun.WINDOWS, i64))
        place = h.add(place, h.ir.mul(other, h.i32(2 * Entry.nbytes)))
        for offset in (0, Entry.nbytes):
            for field in (Entry.SIZE, Entry.WRITABLE):
                h.store(size, place, offset + field)
        h.store(size, state, Block.CLUSTER_OPEN)

    def end(self, rank: Any) -> None:
        """A block has ended: no other may access its shared memory any more."""
        h = self.h
        left = h.ir.and_(self.get(ClusterRun.LEFT), h.ir.not_(h.ir.shl(h.i32(1), rank)))
        h.store(left, self.run, ClusterRun.LEFT)
        h.for_each_lane(left, lambda other: self._reach(self.state(other), rank, h.i64(0)))

    def following(self, rank: Any) -> tuple[Any, Any]:
        """The next block that can run, behind one of a rank and around; whether there is one."""
        h = self.h
        h.ir.store(h.i32(0), self.able)

        def ask(other: Any) -> None:
            state = self.state(other)
            fresh, runnable = h.zero(h.load(state, Block.LIVE, i32)), h.nonzero(h.load(state, Block.RUNNABLE, i32))
            bit = h.ir.shl(h.ir.zext(h.ir.or_(fresh, runnable), i32), other)
            h.ir.store(h.ir.or_(h.ir.load(self.able), bit), self.able)

        h.for_each_lane(self.get(ClusterRun.LEFT), ask)
        mask, after = h.ir.load(self.able), h.ir.add(rank, h.i32(1))
        ahead = h.call("llvm.cttz.i32", i32, h.call("llvm.fshr.i32", i32, mask, mask, after), ir.Constant(i1, 0))
        return h.ir.and_(h.ir.add(after, ahead), h.i32(LANES - 1)), h.nonzero(mask)


def run_clusters(module: ir.Module, name: str) -> None:
    """``clusters(_, _, run)``: run clusters from NUMBER on, all before END, while TURNS last.

    At the return NUMBER is the cluster to go on with. LEFT says which of its blocks have not ended, of which CURRENT
    is next; RETURNED whether it has returned with a status that is to be answered. LEFT is 0 before the first.
    """
    h = Handler(module, name)
    b = _Blocks(h)
    head, some, fresh, start, turn, leave = (
        h.block_named(n) for n in ("head", "some", "fresh", "start", "turn", "leave")
    )
    h.store(h.i32(0), b.run, ClusterRun.RETURNED)
    h.ir.branch(head)
    h.ir.position_at_end(head)
    h.ir.cbranch(h.nonzero(b.get(ClusterRun.LEFT)), some, fresh)
    h.ir.position_at_end(fresh)
    h.ir.cbranch(h.ir.icmp_signed("<", b.get(ClusterRun.NUMBER, i64), b.get(ClusterRun.END, i64)), start, leave)
    h.ir.position_at_end(start)
    b.begin()
    h.ir.branch(head)
    h.ir.position_at_end(some)
    turns = h.ir.sub(b.get(ClusterRun.TURNS), h.i32(1))
    h.store(turns, b.run, ClusterRun.TURNS)
    h.ir.cbranch(h.ir.icmp_signed(">=", turns, h.i32(0)), turn, leave)
    h.ir.position_at_end(turn)
    rank = b.get(ClusterRun.CURRENT)
    state = b.state(rank)
    b.switch(state)
    h.store(h.i32(Status.RUNNING), state, Block.STATUS)
    h.ir.call(h.load(b.run, ClusterRun.RUN, h.function.type, 8), [h.rec, h.warp, state])
    status = h.load(state, Block.STATUS, i32)
    done, blocked, other = (h.block_named(n) for n in ("done", "blocked", "other"))
    switch = h.ir.switch(status, other)
    switch.add_case(h.i32(Status.DONE), done)
    switch.add_case(h.i32(Status.BLOCKED), blocked)
    h.ir.position_at_end(done)
    _end(b, rank, head)
    h.ir.position_at_end(blocked)
    waits = h.nonzero(h.load(b.part(rank), ClusterBlock.WAITING, i32))
    after, able = b.following(rank)
    onward = h.block_named("onward")
    h.ir.cbranch(h.ir.and_(waits, able), onward, other)
    h.ir.position_at_end(onward)
    h.store(after, b.run, ClusterRun.CURRENT)
    h.ir.branch(head)
    h.ir.position_at_end(other)
    h.store(h.i32(1), b.run, ClusterRun.RETURNED)
    h.ir.branch(leave)
    h.ir.position_at_end(leave)
    h.leave()


def _end(b: _Blocks, rank: Any, head: ir.Block) -> None:
    """A block has ended: go on with the next one, or with the next cluster."""
    h = b.h
    b.end(rank)
    after, able = b.following(rank)
    following, over = h.block_named("following"), h.block_named("cluster_over")
    h.ir.cbranch(h.nonzero(b.get(ClusterRun.LEFT)), following, over)
    h.ir.position_at_end(over)
    h.store(h.ir.add(b.get(ClusterRun.NUMBER, i64), h.i64(1)), b.run, ClusterRun.NUMBER)
    h.ir.branch(head)
    h.ir.position_at_end(following)  # where none can run, the next one says so
    left = b.get(ClusterRun.LEFT)
    behind = h.ir.add(rank, h.i32(1))
    ahead = h.call("llvm.cttz.i32", i32, h.call("llvm.fshr.i32", i32, left, left, behind), ir.Constant(i1, 0))
    next_ = h.ir.and_(h.ir.add(behind, ahead), h.i32(LANES - 1))
    h.store(h.ir.select(able, after, next_), b.run, ClusterRun.CURRENT)
    h.ir.branch(head)
