"""PTX's memory model a second time, as plainly as its text goes: relations are sets of pairs, and everything is tried.

For straight-line litmus tests (:mod:`litmus`) of a few events: all reads-from, all orders of writes and of fence.sc,
then the axioms, word by word. A program is a list of threads, a thread a list of :class:`Op`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

__all__ = ["Op", "all_finals"]

Pairs = set[tuple[int, int]]
ORDERED = {"acquire": (True, False), "release": (False, True), "acq_rel": (True, True), "sc": (True, True)}
"""Of an order, whether it acquires, and whether it releases."""


class Op(NamedTuple):
    """``what``: ld, st, add, exch or fence; ``order``: weak, relaxed, acquire, ...; ``place`` names the location.

    What is stored is a number, or what an earlier read of the thread has put in the register ``source``.
    """

    what: str
    order: str
    scope: str = "gpu"
    place: str = ""
    value: int = 0
    register: str = ""
    source: str = ""

    @property
    def text(self) -> str:
        """As :mod:`litmus` writes it."""
        if self.what == "fence":
            return f"fence.{self.order}.{self.scope}"
        name = f"{self.what}.weak" if self.order == "weak" else f"{self.what}.{self.order}.{self.scope}"
        return " ".join([name, *([self.register] if self.register else []), self.place,
                         *([self.source or str(self.value)] if self.what != "ld" else [])])


def closure(pairs: Pairs) -> Pairs:
    """The transitive closure."""
    found = set(pairs)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return found
        found |= more


def acyclic(pairs: Pairs) -> bool:
    return all(a != b for a, b in closure(pairs))


class _Program:
    def __init__(self, threads: list[list[Op]], blocks: list[int]) -> None:
        self.ops = [op for thread in threads for op in thread]
        self.thread = [n for n, thread in enumerate(threads) for _ in thread]
        self.blocks = blocks
        self.events = range(len(self.ops))
        self.po = {(a, b) for a in self.events for b in self.events if a < b and self.thread[a] == self.thread[b]}
        self.reads = [e for e in self.events if self.ops[e].what in ("ld", "add", "exch")]
        self.writes = [e for e in self.events if self.ops[e].what in ("st", "add", "exch")]
        self.fences = [e for e in self.events if self.ops[e].what == "fence" and self.ops[e].order == "sc"]

    def same(self, a: int, b: int) -> bool:
        return self.ops[a].place == self.ops[b].place != ""

    def includes(self, a: int, b: int) -> bool:
        own, other = self.blocks[self.thread[a]], self.blocks[self.thread[b]]
        return self.ops[a].order != "weak" and (self.ops[a].scope != "cta" or own == other)

    def strong(self, a: int, b: int) -> bool:
        if self.thread[a] != self.thread[b] and not (self.includes(a, b) and self.includes(b, a)):
            return False
        return a != b and (self.same(a, b) or not (self.ops[a].place and self.ops[b].place))

    def acquires(self, e: int) -> bool:
        return ORDERED.get(self.ops[e].order, (False, False))[0] and self.ops[e].what != "st"

    def releases(self, e: int) -> bool:
        return ORDERED.get(self.ops[e].order, (False, False))[1] and self.ops[e].what != "ld"

    def values(self, rf: dict[int, int]) -> dict[int, tuple[int, int]] | None:
        """What each event reads and writes; None where values depend on themselves.

        What a read-modify-write writes depends on what it reads, what it reads on nothing else.
        """
        read: dict[int, int] = {e: 0 for e in self.writes if e not in rf}
        written: dict[int, int] = {-1: 0, **{e: 0 for e in self.reads if e not in self.writes}}
        more = True
        while more:
            more = False
            for e in self.reads:
                if e not in read and rf[e] in written:
                    read[e], more = written[rf[e]], True
            for e in self.writes:
                op = self.ops[e]
                origin = self.origin(e) if op.source else e
                if e not in written and e in read and origin in read:
                    given = read[origin] if op.source else op.value
                    written[e], more = (read[e] + given if op.what == "add" else given), True
        events = {*self.reads, *self.writes}
        if not all(e in read and e in written for e in events):
            return None
        return {-1: (0, 0), **{e: (read[e], written[e]) for e in events}}

    def origin(self, e: int) -> int:
        """The read that has put there what an event stores."""
        return max(a for a, b in self.po if b == e and self.ops[a].register == self.ops[e].source)

    def observation(self, rf: dict[int, int]) -> Pairs:
        found = {(w, r) for r, w in rf.items() if w >= 0 and self.strong(w, r)}
        while True:
            more = {(w, r) for w, z in found for y, r in found if z == y and z in self.writes} - found
            if not more:
                return found
            found |= more

    def synchronizes(self, observed: Pairs) -> Pairs:
        release = {(w, w) for w in self.writes if self.releases(w)}
        acquire = {(r, r) for r in self.reads if self.acquires(r)}
        for a, b in self.po:
            fence_a, fence_b = self.ops[a].what == "fence", self.ops[b].what == "fence"
            if self.releases(a) and b in self.writes and self.ops[b].order != "weak" and (fence_a or self.same(a, b)):
                release.add((a, b))
            if self.acquires(b) and a in self.reads and self.ops[a].order != "weak" and (fence_b or self.same(a, b)):
                acquire.add((a, b))
        return {
            (head, tail) for head, w in release for r, tail in acquire if (w, r) in observed and self.strong(head, tail)
        }

    def coherences(self) -> Iterator[Pairs]:
        """All orders of writes that are morally strong, location by location."""
        places = sorted({self.ops[w].place for w in self.writes})
        choices = []
        for place in places:
            writes = [w for w in self.writes if self.ops[w].place == place]
            orders = {
                frozenset((a, b) for n, a in enumerate(order) for b in order[n + 1 :] if self.strong(a, b))
                for order in permutations(writes)
            }
            choices.append(orders)
        for chosen in product(*choices):
            yield {pair for pairs in chosen for pair in pairs}

    def allowed(self, rf: dict[int, int], co: Pairs, sc: Pairs, observed: Pairs, sync: Pairs) -> Pairs | None:
        """The coherence order, with what follows from causality; None where an axiom does not hold."""
        base = closure(self.po | sync | sc)
        cause = base | {(x, y) for x, z in observed for a, y in base if z == a}
        if any(a == b for a, b in cause) or any((b, a) in base for a, b in sc):
            return None
        co = closure(co | {(a, b) for a, b in cause if a in self.writes and b in self.writes and self.same(a, b)})
        if any(a == b for a, b in co):
            return None
        fr = {(r, w) for r, s in rf.items() for w in self.writes if w != r and self.same(r, w)
              and (s < 0 or (s, w) in co)}
        for r, s in rf.items():
            before = [w for w in self.writes if self.same(w, r) and (w, r) in cause]
            if (r, s) in cause or any(s < 0 or (s, w) in co for w in before):
                return None
            if r in self.writes and any(
                (r, w) in fr and (w, r) in co and self.strong(r, w) for w in self.writes
            ):
                return None
        com = {(w, r) for r, w in rf.items() if w >= 0} | co | fr
        members = [*{*self.reads, *self.writes}]
        for size in range(2, len(members) + 1):
            for group in _groups(members, size):
                if all(self.strong(a, b) and self.same(a, b) for a in group for b in group if a != b):
                    inside = {(a, b) for a, b in com | self.po if a in group and b in group}
                    if not acyclic(inside):
                        return None
        return co


def _groups(members: list[int], size: int) -> Iterator[tuple[int, ...]]:
    from itertools import combinations

    return combinations(members, size)


def all_finals(threads: list[list[Op]], blocks: list[int]) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """What registers (of the reads in order) and locations (by name) may hold at the end."""
    program = _Program(threads, blocks)
    places = sorted({op.place for op in program.ops if op.place})
    orders = {
        frozenset((a, b) for n, a in enumerate(order) for b in order[n + 1 :] if program.strong(a, b))
        for order in permutations(program.fences)
    }
    coherences = list(program.coherences())
    found = set()
    options = [[-1, *(w for w in program.writes if w != r and program.same(w, r))] for r in program.reads]
    for chosen in product(*options):
        rf = dict(zip(program.reads, chosen))
        values = program.values(rf)
        if values is None:
            continue
        observed = program.observation(rf)
        sync = program.synchronizes(observed)
        for sc in orders:
            for co in coherences:
                whole = program.allowed(rf, co, set(sc), observed, sync)
                if whole is not None:
                    for last in product(*(_last(program, place, whole) for place in places)):
                        memory = tuple(values[w][1] for w in last)
                        found.add((tuple(values[r][0] for r in program.reads), memory))
    return found


def _last(program: _Program, place: str, co: Pairs) -> list[int]:
    writes = [w for w in program.writes if program.ops[w].place == place]
    return [w for w in writes if not any((w, other) in co for other in writes)] or [-1]
