"""How long what was recorded takes: a small model of a multiprocessor goes through it again, in the order of its clock.

A warp issues its instructions in order, one a clock, each when its registers are there. What warps share in a block are
the tensor cores, one partition for each warp's own products and all four for those of a warpgroup or of tensor memory,
and the port by which copies come from the L2 cache. Both do one thing after the other. Whatever waits, waits for the
last of its moments. A block has a multiprocessor to itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from ..forecasting.machines import Machine
from ..forecasting.pipes import PARTITIONS
from .costs import WARPGROUP, Cost, product_clocks
from .events import Item, LaunchRecord, Moment, Step, WarpKey

__all__ = ["WAITS", "Interval", "Operation", "Schedule", "schedule"]

WAITS = ("barrier", "mbarrier", "copies", "products", "memory")
"""The kinds of intervals in which a warp waits."""
_LEAST = 8.0
"""Clocks that a warp waits for memory before it counts as waiting: what is shorter is latency of the pipeline."""
_KINDS = {"async_group": "copies", "bulk_group": "copies", "wgmma_group": "products", "tcgen05_wait": "memory"}


class Interval(NamedTuple):
    """What a warp does from ``start`` to ``end``, in clocks: ``run``, ``matrix``, or one of :data:`WAITS`.

    ``place`` is its statement, the first one of a run; ``on`` what it waits at or for. ``by`` is the warp that has let
    it go on by the statement ``cause``, at ``end`` as a rule; None where it was no warp.
    """

    start: float
    end: float
    kind: str
    place: int
    on: str = ""
    by: WarpKey | None = None
    cause: int = -1


class Operation(NamedTuple):
    """A ``copy`` or a ``product`` beside the warps: from when it was issued to when it is complete.

    ``begun`` is when the tensor cores, or the port of copies, begin with it.
    """

    start: float
    begun: float
    end: float
    kind: str
    place: int
    by: WarpKey
    amount: int


@dataclass
class Schedule:
    """The times of a launch: intervals by warp, operations by block, how many instructions each warp has issued."""

    warps: dict[WarpKey, list[Interval]] = field(default_factory=dict)
    operations: dict[int, list[Operation]] = field(default_factory=lambda: defaultdict(list))
    issued: dict[WarpKey, int] = field(default_factory=dict)
    clocks: float = 0.0


class _Group:
    """The open and the committed groups of one kind that a warp, or a warpgroup, has begun."""

    def __init__(self) -> None:
        self.open: list[Moment] = []
        self.committed: list[list[Moment]] = []

    def commit(self) -> None:
        self.committed.append(self.open)
        self.open = []

    def before(self, left: int) -> list[Moment]:
        """What a wait waits for that leaves so many groups; -1: for those too that are not committed."""
        groups = self.committed if left <= 0 else self.committed[:-left]
        return [moment for group in groups for moment in group] + (self.open if left < 0 else [])


class _Warp:
    """A warp on its way through what was recorded of it."""

    def __init__(self, key: WarpKey, items: list[Item]) -> None:
        self.key, self.items = key, items
        self.item, self.place = 0, -1
        self.now, self.issued = 0.0, 0
        self.ready: dict[str, tuple[float, str, int]] = {}
        self.groups: dict[str, _Group] = defaultdict(_Group)
        self.products = 0
        self.tensor: list[Moment] = []
        """The operations on tensor memory that no commit has tracked yet, and those before."""
        self.intervals: list[Interval] = []
        self.waiting: tuple[list[Moment], float, int, str, str] | None = None

    def spend(self, start: float, kind: str, place: int, on: str = "", last: Moment | None = None) -> None:
        """It has done this from ``start`` until now."""
        if self.now <= start:
            return
        before = self.intervals[-1] if self.intervals else None
        if before is not None and before.kind == kind == "run" and before.end >= start:
            self.intervals[-1] = before._replace(end=self.now)
            return
        by, cause = (last.by, last.place) if last is not None else (None, -1)
        self.intervals.append(Interval(start, self.now, kind, place, on, by, cause))


class _Replay:
    def __init__(self, record: LaunchRecord, costs: Sequence[Cost | None], machine: Machine) -> None:
        self.record, self.costs, self.machine = record, costs, machine
        self.found = Schedule()
        self.free: dict[tuple[int, str], float] = defaultdict(float)
        """By block: when its tensor cores, partitions of them and its port are free."""
        self.queue: list[tuple[float, WarpKey]] = []
        self.parked: dict[Moment, list[WarpKey]] = defaultdict(list)
        self.joint: dict[tuple[int, int, int], list[tuple[float, Moment]]] = defaultdict(list)
        self.warps = {
            (number, warp): _Warp((number, warp), items)
            for number, block in record.blocks.items() for warp, items in sorted(block.warps.items())
        }

    def run(self) -> Schedule:
        for key in self.warps:
            heappush(self.queue, (0.0, key))
        while self.queue:
            self._go(self.warps[heappop(self.queue)[1]])
        found = self.found
        found.clocks = max((warp.now for warp in self.warps.values()), default=0.0)
        found.clocks = max([found.clocks, *(op.end for ops in found.operations.values() for op in ops)])
        for key, warp in self.warps.items():
            if warp.waiting is not None:  # what it waits for was not recorded any more
                _, start, place, kind, on = warp.waiting
                warp.now = found.clocks
                warp.spend(start, kind, place, on)
            found.warps[key], found.issued[key] = warp.intervals, warp.issued
        return found

    # One warp goes on

    def _go(self, warp: _Warp) -> None:
        """Until it waits for what has no time yet, or something that warps share is another one's turn."""
        if warp.waiting is not None and not self._released(warp):
            return
        while warp.item < len(warp.items):
            item = warp.items[warp.item]
            if isinstance(item, Step):
                if self._turn(warp) or not self._step(warp, item):
                    return
                continue
            place = item.first if warp.place < 0 else warp.place
            while place < item.end:
                one = self.costs[place]
                if one is not None and one.does:
                    warp.place = place
                    if self._turn(warp):
                        return
                    warp.place = place + 1
                    if warp.place == item.end:
                        warp.item, warp.place = warp.item + 1, -1
                    if not self._execute(warp, place, one, None):
                        return
                    break
                if one is not None:
                    self._issue(warp, place, one)
                place += 1
            else:
                warp.item, warp.place = warp.item + 1, -1

    def _turn(self, warp: _Warp) -> bool:
        """Whether another warp comes first; this one goes on after it."""
        if self.queue and self.queue[0] < (warp.now, warp.key):
            heappush(self.queue, (warp.now, warp.key))
            return True
        return False

    def _issue(self, warp: _Warp, place: int, one: Cost) -> None:
        """Issue an instruction as soon as its registers are there."""
        start, source, cause = warp.now, "", place
        for name in one.needs:
            ready = warp.ready.get(name)
            if ready is not None and ready[0] > start:
                start, source, cause = ready
        before = warp.now
        if source and start - before > _LEAST:
            warp.now = start
            warp.spend(before, "memory", place, source, None)
            warp.intervals[-1] = warp.intervals[-1]._replace(cause=cause)
            before = start
        warp.now = start + 1
        warp.issued += 1
        warp.spend(before, "run", place)
        if one.writes:
            ready = start + one.latency, one.source, place
            for name in one.writes:
                warp.ready[name] = ready

    def _step(self, warp: _Warp, step: Step) -> bool:
        warp.item += 1
        one = self.costs[step.place]
        assert one is not None, "what synchronises stands for itself"
        return self._execute(warp, step.place, one, step)

    def _execute(self, warp: _Warp, place: int, one: Cost, step: Step | None) -> bool:
        """Issue an instruction and do what it does beside; False where the warp has to wait."""
        if one.does == "matrix":
            return self._matrix(warp, place, one)
        self._issue(warp, place, one._replace(writes=()) if one.does in ("copy", "product") else one)
        if step is not None:
            for moment in step.arrives:
                self._come(moment, warp.now)
        if one.does in ("copy", "transfer", "product"):
            self._begin(warp, place, one, step)
        elif one.does == "commit":
            self._commit(warp, one, step)
        elif one.does == "wait":
            return self._wait(warp, warp.groups[one.group].before(one.left), place, _KINDS[one.group], _called(one))
        if step is not None and step.waits is not None:
            kind = "mbarrier" if step.on.startswith("mbarrier") else "barrier"
            return self._wait(warp, step.waits, place, kind, step.on)
        return True

    # What warps share

    def _engine(self, block: int, name: str, start: float, clocks: float) -> tuple[float, float]:
        """When an engine begins with something that comes at ``start``, and when it is free again."""
        begun = max(start, self.free[block, name])
        self.free[block, name] = begun + clocks
        return begun, begun + clocks

    def _matrix(self, warp: _Warp, place: int, one: Cost) -> bool:
        """A product of one warp: it issues when the partition's tensor cores can begin with it."""
        self._issue(warp, place, one._replace(writes=()))
        clocks = product_clocks(one.amount, one.factors, self.machine, whole=False)
        block, number = warp.key
        begun, end = self._engine(block, f"partition {number % PARTITIONS}", warp.now - 1, clocks)
        self.found.operations[block].append(
            Operation(warp.now - 1, begun, end, "matrix", place, warp.key, one.amount)
        )
        if begun + 1 > warp.now:
            start, warp.now = warp.now, begun + 1
            warp.spend(start, "matrix", place)
        for name in one.writes:
            warp.ready[name] = begun + max(one.latency, clocks), "", place
        return True

    def _begin(self, warp: _Warp, place: int, one: Cost, step: Step | None) -> None:
        """Something begins that completes later."""
        known = step.completes[0] if step is not None and step.completes else None
        moment = known or Moment(warp.key, place)
        amount = step.amount if step is not None and step.amount else one.amount
        if one.group == "wgmma_group" or one.threads == "warpgroup":
            self._join(warp, place, one, moment)
        elif one.does == "product":
            self._product(warp.key, place, one, amount, warp.now, [moment])
        elif one.does == "transfer":
            self._come(moment, warp.now + one.latency)
        else:
            rate, machine = self.machine.l2_port, self.machine
            begun, done = self._engine(warp.key[0], "port", warp.now, amount / rate)
            self.found.operations[warp.key[0]].append(
                Operation(warp.now, begun, done + machine.memory_latency, "copy", place, warp.key, amount)
            )
            self._come(moment, done + machine.memory_latency)
        if one.group == "tcgen05_commit":
            warp.tensor.append(moment)
        elif known is None:
            warp.groups[one.group].open.append(moment)

    def _join(self, warp: _Warp, place: int, one: Cost, moment: Moment) -> None:
        """A product of a warpgroup begins when its last warp has issued it."""
        block, number = warp.key
        first = number // WARPGROUP * WARPGROUP
        key = block, first, warp.products
        warp.products += 1
        self.joint[key].append((warp.now, moment))
        members = sum((block, first + each) in self.warps for each in range(WARPGROUP))
        if len(self.joint[key]) == members:
            joined = self.joint.pop(key)
            start = max(time for time, _ in joined)
            self._product((block, first), place, one, one.amount, start, [each for _, each in joined])

    def _product(
        self, by: WarpKey, place: int, one: Cost, amount: int, start: float, moments: list[Moment]
    ) -> None:
        clocks = product_clocks(amount, one.factors, self.machine, whole=True)
        begun, end = self._engine(by[0], "tensor cores", start, clocks)
        self.found.operations[by[0]].append(Operation(start, begun, end, "product", place, by, amount))
        for moment in moments:
            self._come(moment, end + one.latency)

    def _commit(self, warp: _Warp, one: Cost, step: Step | None) -> None:
        """A group of what was begun; or an mbarrier counts an arrival when all of it is complete."""
        if step is None or not step.completes:
            warp.groups[one.group].commit()
            return
        tracked = warp.tensor if one.group == "tcgen05_commit" else warp.groups["async_group"].before(-1)
        latest = max([warp.now, *(moment.time for moment in tracked if moment.time is not None)])
        for moment in step.completes:
            self._come(moment, latest)

    # Moments

    def _come(self, moment: Moment, time: float) -> None:
        moment.time = time
        for key in self.parked.pop(moment, ()):
            heappush(self.queue, (max(time, self.warps[key].now), key))

    def _wait(self, warp: _Warp, moments: list[Moment], place: int, kind: str, on: str) -> bool:
        warp.waiting = moments, warp.now, place, kind, on
        return self._released(warp)

    def _released(self, warp: _Warp) -> bool:
        """Whether all that a warp waits for has its time; it then goes on at the latest of them."""
        assert warp.waiting is not None
        moments, start, place, kind, on = warp.waiting
        for moment in moments:
            if moment.time is None:
                self.parked[moment].append(warp.key)
                return False
        warp.waiting = None
        last = max(moments, key=lambda moment: moment.time or 0.0, default=None)
        if last is not None and last.time is not None and last.time > start:
            warp.now = last.time
            warp.spend(start, kind, place, on, last)
        return True


def _called(one: Cost) -> str:
    """What a wait for groups is called."""
    many = {"async_group": "cp.async groups", "bulk_group": "bulk groups", "wgmma_group": "wgmma groups"}
    if one.group not in many:
        return "tensor memory"
    return many[one.group] + (f" but the last {one.left}" if one.left > 0 else "")


def schedule(record: LaunchRecord, costs: Sequence[Cost | None], machine: Machine) -> Schedule:
    """The times of a launch that was recorded, on a GPU; ``costs`` has those of its statements."""
    return _Replay(record, costs, machine).run()
