"""`Pipeline`: a ring of stages between threads that fill them and threads that use them, by two mbarriers a stage.

A producer waits until a stage is empty and fills it; a consumer waits until it is full, uses it, and gives it back.
The pipeline keeps what goes wrong by hand: which stage is next, and the parities of its mbarriers, which change once a
turn around the ring and begin apart for the two sides.

What it cannot see: whether as many threads arrive as it was told, and whether a stage is given back before its last
use is done. There the emulator and its sanitizer look.

Plain Python on the public language and on `ptxdsl.mbarrier`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from . import mbarrier
from .errors import PtxTypeError, StructureError, TraceError
from .language import current, ptx, reg
from .language.builder import fatal, thread
from .language.errors import described, located
from .language.values.functions import parts_named
from .language.values.literals import known_integer
from .tiles import Stage
from .types import u32

__all__ = ["Pipeline"]


_ways: WeakKeyDictionary[_Side, str] = WeakKeyDictionary()
"""In which way each side takes its stages: not an attribute, which a loop might not change (rule R2)."""


class Pipeline:
    """A ring of ``stages``; all threads of the block make it together, and then have each their side of it.

    Args:
        stages: how many stages may be filled ahead.
        consumers: arrivals that give a stage back: one for each thread that executes ``slot.release()``.
        producers: arrivals that fill a stage: one for each thread that executes ``slot.commit()``, or, with
            ``nbytes``, ``acquire``.
        nbytes: bytes of asynchronous copies that a stage waits for, where copies fill it: ``acquire`` expects them,
            and there is nothing to commit.
        cluster: other blocks of the cluster arrive at its mbarriers, or copy to its stages.
        start: make the mbarriers here, with a barrier of the block or cluster; else by ``mbarrier.start(*pipe.bars)``.

    Take stages one by one, ``slot = producer.acquire()``, in ``with loop(n):`` or anywhere; or, with less work for the
    kernel since the numbers of the stages are known while tracing, a turn at a time: ``for slot in producer.turn():``.
    One side of a pipeline takes them in one of the two ways.

    >>> import numpy as np
    >>> from ptxdsl import Pipeline, Ptr, f32, loop, ptx, ptx_kernel, shared, when
    >>> @ptx_kernel
    ... def double(x: Ptr[f32], y: Ptr[f32]):
    ...     lane, pipe = ptx.tid.x & 31, Pipeline(2, producers=32, consumers=32)
    ...     stages = shared(f32, 2, 32)
    ...     with when(ptx.tid.x < 32):
    ...         producer = pipe.producer()
    ...         with loop(5) as i:
    ...             slot = producer.acquire()
    ...             stages[slot.index, lane] = x[i * 32 + lane]
    ...             slot.commit()
    ...     with when(ptx.tid.x >= 32):
    ...         consumer = pipe.consumer()
    ...         with loop(5) as i:
    ...             slot = consumer.wait()
    ...             y[i * 32 + lane] = stages[slot.index, lane] * 2.0
    ...             slot.release()
    >>> x, y = np.arange(160, dtype=np.float32), np.zeros(160, np.float32)
    >>> double[1, 64](x, y)
    >>> bool((y == 2 * x).all())
    True
    """

    def __init__(
        self, stages: int, *, consumers: int, producers: int = 1, nbytes: int | None = None, cluster: bool = False,
        start: bool = True,
    ) -> None:
        self.stages = _count("stages", stages)
        self.consumers, self.producers = _count("consumers", consumers), _count("producers", producers)
        self.nbytes = None if nbytes is None else _count("bytes", nbytes)
        self.cluster = cluster
        with parts_named("full"):
            self.full = mbarrier.declare(self.stages)
        with parts_named("empty"):
            self.empty = mbarrier.declare(self.stages)
        if start:
            mbarrier.start(*self.bars, cluster=cluster)

    @property
    def bars(self) -> tuple[tuple[Any, int], tuple[Any, int]]:
        """Its mbarriers and their arrivals, for ``mbarrier.start``."""
        return (self.full, self.producers), (self.empty, self.consumers)

    def producer(self) -> Producer:
        """The side of a thread that fills stages; two registers, which begin at the first stage."""
        return Producer(self, self.empty, 1)

    def consumer(self) -> Consumer:
        """The side of a thread that uses stages; two registers, which begin at the first stage."""
        return Consumer(self, self.full, 0)


class Slot(Stage):
    """A stage that was waited for: ``index`` is its number, ``full`` and ``empty`` are its mbarriers."""

    def __init__(self, pipe: Pipeline, index: Any, fills: bool) -> None:
        super().__init__(index, pipe.stages)
        self.pipe, self.fills = pipe, fills

    @property
    def full(self) -> Any:
        """The mbarrier that tells consumers that the stage is full: that of the copies into it."""
        return self.pipe.full + self.index

    @property
    def empty(self) -> Any:
        """The mbarrier that tells producers that the stage may be filled."""
        return self.pipe.empty + self.index

    def commit(self, *, copies: bool = False, pred: Any = None) -> None:
        """Say that the stage is full, for each thread that executes it; with ``copies``, once its cp.async are done."""
        if not self.fills:
            raise located(TraceError, "a consumer commits no stage, it gives it back", "`slot.release()`")
        if self.pipe.nbytes is not None:
            raise located(
                TraceError, f"a stage of {self.pipe.nbytes} bytes is full when they have come, and is not committed",
                "leave `commit` out, or `nbytes=` of the Pipeline where threads fill the stages",
            )
        if copies:
            ptx.cp.async_.mbarrier.arrive.noinc.shared.b64(self.full, pred=pred)
        else:
            mbarrier.arrive(self.full, pred=pred)

    def release(self, *, rank: Any = None, pred: Any = None) -> None:
        """Give the stage back, for each thread that executes it; with ``rank``, to that block of the cluster."""
        if self.fills:
            raise located(TraceError, "a producer gives no stage back, it fills it", "`slot.commit()`")
        mbarrier.arrive(self.empty, rank=rank, pred=pred)


class _Side:
    """Which stage is next, and the parity to wait for there."""

    def __init__(self, pipe: Pipeline, bars: Any, parity: int) -> None:
        self.pipe, self.bars, self.fills = pipe, bars, parity == 1
        # What copies bring is there for whoever sees them counted, by a wait of any scope; one of the cluster's empties
        # the L1 cache of a GPU each time.
        self.cluster = pipe.cluster and (self.fills or pipe.nbytes is None)
        with parts_named("stage"):
            self.index = reg(u32, 0)
        with parts_named("parity"):
            self.phase = reg(u32, parity)

    def _taken(self, way: str) -> None:
        """Refuse the other way of taking stages: a turn begins at the first stage, whatever is next."""
        before = _ways.setdefault(self, way)
        if before != way:
            raise located(
                TraceError, "this side of the pipeline has taken stages in turns, and takes one here" if way == "one"
                else "this side of the pipeline has taken single stages, and takes a turn here",
                "take all stages in one of the two ways, or make another Pipeline",
            )

    def _next(self) -> Slot:
        index, stages = self.index.copy(), self.pipe.stages
        mbarrier.wait(self.bars + index, self.phase, cluster=self.cluster)
        ptx.add.u32(self.index, 1, out=self.index)
        over = self.index == stages
        ptx.mov.u32(0, out=self.index, pred=over)
        ptx.xor.b32(self.phase, 1, out=self.phase, pred=over)
        return Slot(self.pipe, index, self.fills)

    def _turn(self) -> Iterator[Slot]:
        trace = current()
        self._taken("turns")
        for stage in range(self.pipe.stages):
            mbarrier.wait(self.bars + stage, self.phase, cluster=self.cluster)
            try:
                yield Slot(self.pipe, stage, self.fills)
            except GeneratorExit:
                if thread.trace is trace:  # else the trace has failed before, and this is cleared away
                    fatal(located(
                        StructureError,
                        f"a turn of a pipeline of {self.pipe.stages} stages was left after stage {stage}",
                        "take all stages of a turn, or take them one by one: `acquire()`, `wait()`",
                    ))
                raise
        ptx.xor.b32(self.phase, 1, out=self.phase)


class Producer(_Side):
    """The side of a pipeline that fills stages."""

    def acquire(self) -> Slot:
        """The next stage, once it is empty; its bytes are expected, if copies fill it."""
        self._taken("one")
        return self._armed(self._next())

    def turn(self) -> Iterator[Slot]:
        """Each stage in turn, once it is empty; take all of them, without a ``break``."""
        for slot in self._turn():
            yield self._armed(slot)

    def finish(self) -> None:
        """Wait until all stages were given back: before a block ends that others of its cluster arrive at."""
        for _ in range(self.pipe.stages):
            self._next()

    def _armed(self, slot: Slot) -> Slot:
        if self.pipe.nbytes is not None:
            mbarrier.arrive(slot.full, expect_tx=self.pipe.nbytes)
        return slot


class Consumer(_Side):
    """The side of a pipeline that uses stages."""

    def wait(self) -> Slot:
        """The next stage, once it is full."""
        self._taken("one")
        return self._next()

    def turn(self) -> Iterator[Slot]:
        """Each stage in turn, once it is full; take all of them, without a ``break``."""
        return self._turn()


def _count(what: str, value: Any) -> int:
    known = known_integer(value)
    if known is None or known < 1:
        raise located(
            PtxTypeError, f"a Pipeline of {described(value)} {what}",
            "a positive int that is known while tracing: `Pipeline(3, consumers=128)`",
        )
    return known
