"""The control-flow graph of a function, and the order in which parted lanes run so that they meet again.

Lanes that part at a branch are to meet at the nearest place that all of them must pass, the branch's immediate
post-dominator. If every block is ranked below the blocks that post-dominate it, "run the lanes at the lowest rank"
does just that, for any graph, reducible or not: while somebody is on the way to a block, nobody runs that block.

A block that does nothing but end the thread is no block here: a branch to it is an exit under the branch's guard, so
that ``if (i >= n) return`` parts nobody.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from ..errors import EmulationError
from ..ir import Call, Function, Instruction, Label, LabelRef, Symbol
from ..isa import Form
from ..emulator.analysis.statements import Op

__all__ = ["MEETINGS", "Graph", "Node", "graph"]

_ENDS = ("ret", "exit")
MEETINGS = ("bar", "barrier", "shfl", "vote", "match", "redux", "elect", "mma", "wmma")
"""Instructions that lanes execute together: each begins a block, so that lanes can wait there for others."""


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A basic block: the numbers of its statements, and the blocks that may follow.

    ``fall`` is the block that follows in the text (-1 where none is reached that way), ``targets`` those of the branch
    at its end; ``quit`` tells that the branch is to a block that only ends the thread.
    """

    start: int
    stop: int
    fall: int = -1
    targets: tuple[int, ...] = ()
    quit: bool = False
    rank: int = -1
    successors: tuple[int, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Graph:
    """The blocks that can be reached, in the order of the text; ``meet[n]`` post-dominates n (-1: the end)."""

    statements: list[Instruction | Call]
    ops: list[Op]
    nodes: list[Node]
    meet: list[int] = field(default_factory=list)

    def region(self, number: int, between: dict[int, set[int]]) -> set[int]:
        """The blocks on the ways from a branch to where its lanes meet again, but for those that were given before.

        ``between`` holds these by that place: many branches may meet at one, behind all of which lies the same.
        """
        meet = self.meet[number]
        seen = between.setdefault(meet, set())
        fresh: set[int] = set()
        todo = list(self.nodes[number].successors)
        while todo:
            at = todo.pop()
            if at != meet and at not in seen:
                seen.add(at)
                fresh.add(at)
                todo.extend(self.nodes[at].successors)
        return fresh


def graph(function: Function, apart: bool = False) -> Graph:
    """The control-flow graph of a function's body; ``apart``: lanes may go on apart behind what they wait at."""
    statements, labels = _flatten(function)
    nodes = _nodes(function, statements, labels, apart)
    result = Graph(statements, [Op.of(statement) for statement in statements], nodes)
    result.meet = _post_dominators(nodes)
    _rank(nodes, result.meet)
    return result


def _flatten(function: Function) -> tuple[list[Instruction | Call], dict[str, int]]:
    statements: list[Instruction | Call] = []
    labels: dict[str, int] = {}
    for statement in function.body or ():
        if isinstance(statement, (Instruction, Call)):
            statements.append(statement)
        elif isinstance(statement, Label):
            labels[statement.name] = len(statements)
    return statements, labels


def opcode(statement: Instruction | Call) -> str:
    return "call" if isinstance(statement, Call) else statement.form.opcode


@cache
def _bounds(form: Form) -> str:
    """What a form does to blocks: ``branch``, ``end`` of a thread, ``meet``; "" for most."""
    if form.opcode in ("bra", "brx"):
        return "branch"
    return "end" if form.opcode in (*_ENDS, "trap") else "meet" if form.opcode in MEETINGS else ""


def _targets(function: Function, statement: Instruction, labels: dict[str, int]) -> list[int]:
    """Where a branch goes."""
    target = statement.operands[-1]
    name = target.symbol if isinstance(target, Symbol) else target.label if isinstance(target, LabelRef) else ""
    names = (name,) if statement.form.opcode == "bra" else function.branch_tables[name]
    return [labels[name] for name in names]


def _nodes(
    function: Function, statements: list[Instruction | Call], labels: dict[str, int], apart: bool
) -> list[Node]:
    count = len(statements)
    starts = {0, *labels.values()}
    branches: dict[int, list[int]] = {}
    for number, statement in enumerate(statements):
        if isinstance(statement, Call) or not (bounds := _bounds(statement.form)):
            continue
        if bounds == "meet":
            starts.update((number, number + 1) if apart else (number,))
        elif bounds == "branch":
            branches[number] = _targets(function, statement, labels)
            starts.add(number + 1)
        elif statement.guard is None:
            starts.add(number + 1)
    order = sorted(start for start in starts if start < count)
    stops = [*order[1:], count]
    by_start = {start: number for number, start in enumerate(order)}

    def ends(start: int) -> bool:
        return start == count or (opcode(statements[start]) in _ENDS and statements[start].guard is None)

    nodes = [Node(start, stop) for start, stop in zip(order, stops)]
    for number, node in enumerate(nodes):
        last = statements[node.stop - 1]
        targets = branches.get(node.stop - 1)
        falls = last.guard is not None or (targets is None and opcode(last) not in (*_ENDS, "trap"))
        if targets is not None and len(targets) == 1 and ends(targets[0]):
            node.quit = True
        elif targets is not None:
            if count in targets:
                raise EmulationError("a branch table with a label at the function's end is not supported", loc=last.loc)
            node.targets = tuple(by_start[target] for target in targets)
        if falls and number + 1 < len(nodes):
            node.fall = number + 1
        node.successors = tuple(dict.fromkeys((*node.targets, *((node.fall,) if node.fall >= 0 else ()))))
    return _reachable(nodes)


def _reachable(nodes: list[Node]) -> list[Node]:
    seen: set[int] = set()
    if nodes:
        _extend(seen, [node.successors for node in nodes], 0)
    if len(seen) == len(nodes):
        return nodes
    kept = sorted(seen)
    new = {old: number for number, old in enumerate(kept)}
    for old in kept:
        node = nodes[old]
        node.fall = new.get(node.fall, -1)
        node.targets = tuple(new[target] for target in node.targets)
        node.successors = tuple(new[successor] for successor in node.successors)
    return [nodes[old] for old in kept]


def _post_dominators(nodes: list[Node]) -> list[int]:
    """The immediate post-dominator of each block, -1 for the end (Cooper, Harvey and Kennedy's iteration)."""
    end = len(nodes)
    successors = [list(node.successors) or [end] for node in nodes]
    predecessors: list[list[int]] = [[] for _ in range(end + 1)]
    for number, following in enumerate(successors):
        for successor in following:
            predecessors[successor].append(number)
    ending: set[int] = set()
    _extend(ending, predecessors, end)
    for number in range(end - 1, -1, -1):  # a loop without an exit: pretend that it can end at its last block
        if number not in ending:
            successors[number].append(end)
            predecessors[end].append(number)
            _extend(ending, predecessors, number)
    order = _backward(predecessors, end)
    meet = {end: end}
    changed = True
    while changed:
        changed = False
        for number in sorted(order, key=order.__getitem__):
            if number == end:
                continue
            best = -1
            for successor in successors[number]:
                if successor in meet:
                    best = successor if best < 0 else _common(meet, order, best, successor)
            if meet.get(number) != best:
                meet[number] = best
                changed = True
    return [-1 if meet[number] == end else meet[number] for number in range(end)]


def _extend(found: set[int], ways: Sequence[Iterable[int]], start: int) -> None:
    """Add what can be reached from a block, itself too."""
    found.add(start)
    todo = [start]
    while todo:
        for at in ways[todo.pop()]:
            if at not in found:
                found.add(at)
                todo.append(at)


def _backward(predecessors: list[list[int]], end: int) -> dict[int, int]:
    """Each block that can reach the end, by its place in a reverse post-order from there."""
    post: list[int] = []
    seen = {end}
    stack = [(end, iter(predecessors[end]))]
    while stack:
        at, ways = stack[-1]
        following = next((way for way in ways if way not in seen), None)
        if following is None:
            post.append(at)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(predecessors[following])))
    return {number: place for place, number in enumerate(reversed(post))}


def _common(meet: dict[int, int], order: dict[int, int], a: int, b: int) -> int:
    while a != b:
        while order[a] > order[b]:
            a = meet[a]
        while order[b] > order[a]:
            b = meet[b]
    return a


def _rank(nodes: list[Node], meet: list[int]) -> None:
    """Number the blocks: each before those that post-dominate it, otherwise in the order of the text."""
    waiting = [0] * len(nodes)
    for above in meet:
        if above >= 0:
            waiting[above] += 1
    ready = [number for number, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    rank = 0
    while ready:
        number = heapq.heappop(ready)
        nodes[number].rank = rank
        rank += 1
        above = meet[number]
        if above >= 0:
            waiting[above] -= 1
            if waiting[above] == 0:
                heapq.heappush(ready, above)
