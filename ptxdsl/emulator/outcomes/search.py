"""Finds all executions of a launch that the memory model allows.

An execution grows event by event, in an order in which what is read has been written before. What writes, or orders,
is added at once, since the coherence order is chosen only when an execution is complete; so only reads branch: each
takes its bytes from any of the writes that are there and that the axioms allow (:mod:`.axioms`), or waits for others.
Executions that are reached twice are followed once.

A read may also be of a write that comes later, as long as that does not depend on what is read (No-Thin-Air). Such a
read is pending: its thread goes on as far as it does the same for several values of it, and what it writes meanwhile is
there for others, until a write is there that the read takes. So dependencies are those of values: to write
``r1 ^ r1`` depends on nothing, since a compiler may know that too; everything behind a branch depends on its condition.

Reduction: a read of bytes that no other thread writes from there on is taken at once, since nothing that the other
threads do changes what it can read. What each thread accesses is learned on the way (:mod:`.accesses`); where something
came that was not known, the search is made again with that knowledge. A turn of a loop that ends in the state that it
began in, without a change of memory, is left out: an execution without it allows the same and more. A thread that can
do nothing else waits forever.

A copy that completes later (:mod:`.copies`) is one thread more from where it begins; a wait for it goes on when it has
come to its end.

What it cannot see: dependencies are tried with a few values (those that the memory may have, and a random one), not
proved; a read is not of what comes of a copy that its thread begins later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from random import Random
from typing import Any

from .accesses import Accesses
from .axioms import Execution
from .barriers import Barriers
from .copies import begins_of, waited
from .events import Event, Source, Threads
from .executions import PENDING, Complete, Path, Sources, State, agree, events_of_step, steps_of
from .machine import Machine
from .thread_steps import Step

__all__ = ["Limit", "Search"]

PENDING_READS = 4
"""Reads of a thread that may be pending at a time,"""
GUESSES = 4
"""and values of each that are tried to see what depends on it, one read after the other."""
_Choice = tuple[tuple[Source, ...], bytes]


class Limit(Exception):
    """More executions than the bound allows."""


class Search:
    """All executions of the threads of a machine."""

    def __init__(
        self, machine: Machine, threads: Threads, initial: Callable[[int, int], bytes], bound: int, limit: int,
        progress: Callable[[int, int], None],
    ) -> None:
        self.machine, self.threads, self.initial = machine, threads, initial
        self.bound, self.limit, self.progress = bound, limit, progress
        self.barriers = Barriers(threads, machine.per_block)
        self.accesses = Accesses(threads)
        self.cut = False
        """Whether some thread did more than the bound allows."""
        self.seen: set[State] = set()
        self.values: dict[tuple[int, int], dict[bytes, None]] = {}
        """Values that memory may have, to try what depends on them."""
        self.random = Random(0)

    def run(self) -> list[Complete]:
        """All complete executions."""
        while True:
            self.accesses.begin()
            self.cut, self.seen = False, set()
            found = self._explore()
            if not self.accesses.learned:
                return found

    def _explore(self) -> list[Complete]:
        found: list[Complete] = []
        start = State(tuple(Path(self.machine.root(thread)) for thread in range(len(self.threads))))
        stack = [self._settled(start)]
        while stack:
            state = stack.pop()
            if state in self.seen:
                continue
            self.seen.add(state)
            if len(self.seen) > self.limit:
                raise Limit
            self.progress(len(self.seen), len(found))
            following, complete = self._following(state)
            stack += following
            if complete is not None:
                found.append(complete)
        return found

    # Growth

    def _settled(self, state: State) -> State:
        """With all that the threads do before their next reads."""
        changed = True
        while changed:
            changed = False
            at = 0
            while at < len(state.paths):
                path = state.paths[at]
                while self._goes_on(path):
                    self.accesses.learn(path)
                    path = self._grown(path, (), ())
                changed = changed or path is not state.paths[at]
                state, begun = self._begun(state.with_path(at, path), at)
                at, changed = at + (not begun), changed or begun
            moved = self.barriers.advance(state.paths[: len(self.threads)], state.phases)
            if moved is not None:
                changed = True
                moves, phases = moved
                state = state._replace(phases=phases)
                for thread, (taken, given) in moves.items():
                    state = state.with_path(thread, self._grown(state.paths[thread], taken, given))
        return state

    def _begun(self, state: State, at: int) -> tuple[State, bool]:
        """With the copy that a thread is about to begin, or behind a wait for copies that is over; whether it is."""
        path, step = state.paths[at], state.paths[at].step
        if step.depth >= self.bound or path.kind not in ("copy", "wait"):
            return state, False
        if path.kind == "copy":
            number = self._number(step)
            begun = state.with_path(at, self._grown(path, (number,), ()))
            return begun.with_copy(Path(self.machine.copy(number, begins_of(step)))), True
        numbers = tuple(self._number(each) for each in waited(step))
        ends = [state.find(number) for number in numbers]
        if any(end is None or not end.ended for end in ends):
            return state, False
        return state.with_path(at, self._grown(path, numbers, ())), True

    def _number(self, step: Step) -> int:
        """The number of the copy that a step begins."""
        index = sum(each.kind == "copy" for each in steps_of(step)) - 1
        return self.threads.copy(step.thread, index, self.machine.block_of(step))

    def _grown(self, path: Path, taken: Any, given: tuple[bytes, ...]) -> Path:
        after = self.machine.after
        return path.grown(after(path.step, given), taken, tuple(after(other, given) for other in path.others))

    def _goes_on(self, path: Path) -> bool:
        step, kind = path.step, path.kind
        if step.depth >= self.bound and step.kind != "end":
            self.cut = True
            return False
        return kind in ("fence", "commit") or (kind == "access" and not step.reads)

    def _following(self, state: State) -> tuple[list[State], Complete | None]:
        paths = state.paths
        reading = [n for n, p in enumerate(paths) if p.kind == "access" and p.step.reads and p.step.depth < self.bound]
        for path in paths:
            self.accesses.learn(path)
        alone = [n for n in reading if not self.accesses.disturbed(state, paths[n].step)][:1]
        events = state.events()
        following = [grown for thread in alone or reading for grown in self._reads(state, thread, events)]
        if not following and alone:  # it turns in a circle, and others may still read
            following = [
                grown for thread in reading if thread not in alone for grown in self._reads(state, thread, events)
            ]
        for thread, path in enumerate(paths):
            for place in path.pending:
                following += self._resolved(state, thread, place, events)
        if following or any(path.others for path in paths):
            return following, None
        left = [path.step for path in paths if not path.ended]
        if any(step.depth >= self.bound for step in left):
            return [], None
        if any(self._escapes(state, n) for n, path in enumerate(paths) if not path.ended):
            return [], None
        return [], self._complete(events, left, [path.step for path in paths if path.kind == "fault"])

    def _complete(self, events: list[Event], waiting: list[Step], errors: list[Step]) -> Complete:
        execution = Execution(self.threads, events)
        races = next(execution.orders()).races()
        for event in (events[n] for race in races for n in race):
            self.accesses.note_race(event)
        return Complete(execution, waiting, errors, races)

    # Reads

    def _reads(self, state: State, thread: int, events: list[Event]) -> Iterator[State]:
        """The executions in which a thread makes its next read."""
        path = state.paths[thread]
        waits = thread < len(self.threads) and self.accesses.disturbed(state, path.step)
        postponed = self._postponed(path) if waits else None
        if postponed is not None:
            yield self._settled(state.with_path(thread, postponed))
        for grown, added in self._taken(path, events):
            if not grown.step.turns:
                for event in added:
                    if event.writes:
                        self.values.setdefault((event.address, event.nbytes), {}).setdefault(event.written)
                yield self._settled(state.with_path(thread, grown))

    def _taken(self, path: Path, events: list[Event]) -> Iterator[tuple[Path, list[Event]]]:
        """A thread with its next read made, for each source that the axioms allow, and the events of the read."""
        own = not path.others and not path.step.proxy and self.accesses.private(path.step)
        if own:  # nobody else writes there: it reads what it has written last
            events = path.events
        choices = [self._choices(element.address, element.nbytes, events, own) for element in path.step.elements]
        for chosen in product(*choices):
            grown = self._grown(path, tuple(sources for sources, _ in chosen), tuple(data for _, data in chosen))
            added = list(events_of_step(path.step, grown.step, grown.taken[-1]))
            if own or Execution(self.threads, [*events, *added]).consistent():
                yield grown, added

    def _choices(self, address: int, nbytes: int, events: list[Event], last: bool = False) -> list[_Choice]:
        """What an element can be read from, and the bytes; only the ``last`` write to each of them where that is so."""
        end = address + nbytes
        writes = [e for e in events if e.writes and e.address < end and address < e.end]
        ends = (place for event in writes for place in (max(event.address, address), min(event.end, end)))
        parts = []
        for low, high in pairwise(sorted({address, end, *ends})):
            count = high - low
            options: list[tuple[Source, bytes]] = [(Source(low - address, count, None), self.initial(low, count))]
            for event in writes:
                if event.address <= low and high <= event.end:
                    data = event.written[low - event.address :][:count]
                    options.append((Source(low - address, count, event.who), data))
            parts.append(options[-1:] if last else options)
        return [(tuple(s for s, _ in chosen), b"".join(d for _, d in chosen)) for chosen in product(*parts)]

    def _escapes(self, state: State, thread: int) -> bool:
        """Whether a thread, of which every read here ends in a state where it was, need only read again what it has."""
        left = [state.paths[thread]]
        known = set()
        while left:
            path = left.pop()
            if path.kind != "access" or not path.step.reads:
                continue
            paths = state.with_path(thread, path)
            for grown, _ in self._taken(path, paths.events()):
                if not grown.step.turns:
                    return True
                key = grown.step.place, grown.step.key
                if key not in known:
                    known.add(key)
                    left.append(grown)
        return False

    # Reads of what comes later

    def _postponed(self, path: Path) -> Path | None:
        """A thread that goes on before what it reads has been written; None where it can do nothing then."""
        step = path.step
        if not self.accesses.may_wait(path):
            return None
        if len(path.pending) >= PENDING_READS:
            self.cut = True
            return None
        first, *guesses = product(*(self._guesses(element.address, element.nbytes) for element in step.elements))
        worlds = [self.machine.after(world, first) for world in (step, *path.others)]
        worlds += [self.machine.after(step, guess) for guess in guesses]
        grown, writes = Path.of(worlds[0], (*path.taken, PENDING), tuple(worlds[1:])), False
        while self._goes_on(grown):
            self.accesses.learn(grown)
            writes = writes or grown.step.writes
            grown = self._grown(grown, (), ())
        return grown if writes or (grown.kind == "access" and grown.step.reads) else None

    def _guesses(self, address: int, nbytes: int) -> tuple[bytes, ...]:
        """Values that a location may have, and another one where there is only one."""
        values = self.values.setdefault((address, nbytes), {})
        values.setdefault(self.initial(address, nbytes))
        if len(values) < 2:
            values.setdefault(self.random.randbytes(nbytes))
        return tuple(values)[:GUESSES]

    def _resolved(self, state: State, thread: int, place: int, events: list[Event]) -> Iterator[State]:
        """The executions in which a read that is pending takes what is there by now."""
        path = state.paths[thread]
        step = steps_of(path.step)[place]
        choices = [self._choices(element.address, element.nbytes, events) for element in step.elements]
        for chosen in product(*choices):
            sources = tuple(sources for sources, _ in chosen)
            if all(s.event is None for each in sources for s in each):
                continue  # which it need not have waited for
            again = self._again(path, place, sources, tuple(data for _, data in chosen))
            if again is not None:
                grown = state.with_path(thread, again)
                added = grown.events()
                if agree(added) and Execution(self.threads, added).consistent():
                    yield self._settled(grown)

    def _again(self, path: Path, place: int, sources: Sources, given: tuple[bytes, ...]) -> Path | None:
        """A thread once more, with what a read that was pending has read; None where it did something else then."""
        worlds: list[Step] = []
        for last in (path.step, *path.others):
            steps = steps_of(last)
            at = steps[place]
            for was, following in pairwise(steps[place:]):
                if at.place != was.place or at.begins != was.begins or (at.reads and at.elements != was.elements):
                    return None
                at = self.machine.after(at, given if was is steps[place] else following.given)
                if at.turns:
                    return None
            if at not in worlds:
                worlds.append(at)
        taken = (*path.taken[:place], sources, *path.taken[place + 1 :])
        return Path.of(worlds[0], taken, tuple(worlds[1:]) if PENDING in taken else ())
