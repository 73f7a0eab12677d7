"""The control-flow graph of a function, and the priorities by which divergent lanes reconverge.

Lanes that diverge at a branch reconverge at its immediate post-dominator, the nearest block that all of them must pass.
If every block has a lower number than the blocks that post-dominate it, "run the lanes at the lowest number" does just
that, for any graph, reducible or not: while some lane is on the way to a block, no lane runs that block. Such numbers
are the scheduling priorities of thread frontiers (Diamos et al., SIMD Re-Convergence At Thread Frontiers, 2011).

A block that does nothing but end the thread is no block here: a branch to it is an exit under the branch's guard, so
that ``if (i >= n) return`` does not diverge.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from ..errors import EmulationError
from ..ir import Call, Function, Instruction, Label, LabelRef, Symbol
from ..isa import Form
from .def_use import DefUse

__all__ = ["BasicBlock", "ControlFlowGraph", "control_flow_graph", "control_of", "reverse_postorder"]


@dataclass(slots=True, eq=False, repr=False)
class BasicBlock:
    """The numbers of its first statement and of that behind its last, and the blocks that may follow.

    ``fallthrough`` is the block that follows in the text (-1 where none is reached that way), ``targets`` those of the
    branch at its end; ``exits`` says that the branch is to a block that only ends the thread.
    """

    start: int
    stop: int
    fallthrough: int = -1
    targets: tuple[int, ...] = ()
    exits: bool = False
    priority: int = -1
    successors: tuple[int, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class ControlFlowGraph:
    """The blocks that can be reached, in the order of the text.

    ``reconvergence[n]`` is the immediate post-dominator of block n, -1 for the end of the function.
    """

    statements: list[Instruction | Call]
    def_use: list[DefUse]
    blocks: list[BasicBlock]
    reconvergence: list[int] = field(default_factory=list)

    def divergent_region(self, number: int, found: dict[int, set[int]]) -> set[int]:
        """The blocks between a branch and where its lanes reconverge, but for those that were given before.

        ``found`` holds these by that block: many branches may reconverge at one, behind all of which lies the same.
        """
        end = self.reconvergence[number]
        seen = found.setdefault(end, set())
        fresh: set[int] = set()
        todo = list(self.blocks[number].successors)
        while todo:
            at = todo.pop()
            if at != end and at not in seen:
                seen.add(at)
                fresh.add(at)
                todo.extend(self.blocks[at].successors)
        return fresh


def control_flow_graph(function: Function, conservative: bool = False) -> ControlFlowGraph:
    """The control-flow graph of a function's body.

    Instructions that lanes execute together begin a block, so that lanes can wait there for others. ``conservative``:
    they end it as well, so that lanes may go on one by one.
    """
    statements, labels = _flatten(function)
    blocks = _basic_blocks(function, statements, labels, conservative)
    result = ControlFlowGraph(statements, [DefUse.of(statement) for statement in statements], blocks)
    result.reconvergence = _post_dominators(blocks)
    _prioritise(blocks, result.reconvergence)
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


def control_of(statement: Instruction | Call) -> str:
    """Where a statement goes on, as :class:`ptxdsl.isa.effects.Effects` says it."""
    return "call" if isinstance(statement, Call) else statement.form.effects.control


@cache
def _boundary(form: Form) -> str:
    """Why a form begins or ends a block: ``branch``, ``end`` of the thread, ``collective``; "" for most."""
    effects = form.effects
    return "branch" if effects.branches else "end" if effects.ends else "collective" if effects.collective else ""


def _targets(function: Function, statement: Instruction, labels: dict[str, int]) -> list[int]:
    """Where a branch goes."""
    target = statement.operands[-1]
    name = target.symbol if isinstance(target, Symbol) else target.label if isinstance(target, LabelRef) else ""
    names = function.branch_tables[name] if statement.form.effects.control == "indexed_branch" else (name,)
    return [labels[name] for name in names]


def _basic_blocks(
    function: Function, statements: list[Instruction | Call], labels: dict[str, int], conservative: bool
) -> list[BasicBlock]:
    count = len(statements)
    starts = {0, *labels.values()}
    branches: dict[int, list[int]] = {}
    for number, statement in enumerate(statements):
        if isinstance(statement, Call) or not (boundary := _boundary(statement.form)):
            continue
        if boundary == "collective":
            starts.update((number, number + 1) if conservative else (number,))
        elif boundary == "branch":
            branches[number] = _targets(function, statement, labels)
            starts.add(number + 1)
        elif statement.guard is None:
            starts.add(number + 1)
    order = sorted(start for start in starts if start < count)
    stops = [*order[1:], count]
    by_start = {start: number for number, start in enumerate(order)}

    def only_ends(start: int) -> bool:
        return start == count or (control_of(statements[start]) in _LEAVES and statements[start].guard is None)

    blocks = [BasicBlock(start, stop) for start, stop in zip(order, stops)]
    for number, block in enumerate(blocks):
        last = statements[block.stop - 1]
        targets = branches.get(block.stop - 1)
        falls = last.guard is not None or (targets is None and control_of(last) not in _ENDS)
        if targets is not None and len(targets) == 1 and only_ends(targets[0]):
            block.exits = True
        elif targets is not None:
            if count in targets:
                raise EmulationError("a branch table with a label at the function's end is not supported", loc=last.loc)
            block.targets = tuple(by_start[target] for target in targets)
        if falls and number + 1 < len(blocks):
            block.fallthrough = number + 1
        following = (block.fallthrough,) if block.fallthrough >= 0 else ()
        block.successors = tuple(dict.fromkeys((*block.targets, *following)))
    return _reachable(blocks)


_LEAVES = ("return", "exit")
_ENDS = (*_LEAVES, "trap")


def _reachable(blocks: list[BasicBlock]) -> list[BasicBlock]:
    seen: set[int] = set()
    if blocks:
        _extend(seen, [block.successors for block in blocks], 0)
    if len(seen) == len(blocks):
        return blocks
    kept = sorted(seen)
    new = {old: number for number, old in enumerate(kept)}
    for old in kept:
        block = blocks[old]
        block.fallthrough = new.get(block.fallthrough, -1)
        block.targets = tuple(new[target] for target in block.targets)
        block.successors = tuple(new[successor] for successor in block.successors)
    return [blocks[old] for old in kept]


def _post_dominators(blocks: list[BasicBlock]) -> list[int]:
    """The immediate post-dominator of each block, -1 for the end (Cooper, Harvey and Kennedy's iteration)."""
    end = len(blocks)
    successors = [list(block.successors) or [end] for block in blocks]
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
    order = {number: place for place, number in enumerate(reverse_postorder(predecessors, end))}
    found = {end: end}
    changed = True
    while changed:
        changed = False
        for number in sorted(order, key=order.__getitem__):
            if number == end:
                continue
            best = -1
            for successor in successors[number]:
                if successor in found:
                    best = successor if best < 0 else _common(found, order, best, successor)
            if found.get(number) != best:
                found[number] = best
                changed = True
    return [-1 if found[number] == end else found[number] for number in range(end)]


def _extend(found: set[int], ways: Sequence[Iterable[int]], start: int) -> None:
    """Add what can be reached from a block, itself too."""
    found.add(start)
    todo = [start]
    while todo:
        for at in ways[todo.pop()]:
            if at not in found:
                found.add(at)
                todo.append(at)


def reverse_postorder(ways: Sequence[Sequence[int]], start: int) -> list[int]:
    """The blocks that are reached from one by these ways, each before those that only it leads to."""
    post: list[int] = []
    seen = {start}
    stack = [(start, iter(ways[start]))]
    while stack:
        at, left = stack[-1]
        following = next((way for way in left if way not in seen), None)
        if following is None:
            post.append(at)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(ways[following])))
    return post[::-1]


def _common(found: dict[int, int], order: dict[int, int], a: int, b: int) -> int:
    while a != b:
        while order[a] > order[b]:
            a = found[a]
        while order[b] > order[a]:
            b = found[b]
    return a


def _prioritise(blocks: list[BasicBlock], post_dominators: list[int]) -> None:
    """Number the blocks: each before those that post-dominate it, otherwise in the order of the text."""
    dominated = [0] * len(blocks)
    for above in post_dominators:
        if above >= 0:
            dominated[above] += 1
    ready = [number for number, count in enumerate(dominated) if count == 0]
    heapq.heapify(ready)
    priority = 0
    while ready:
        number = heapq.heappop(ready)
        blocks[number].priority = priority
        priority += 1
        above = post_dominators[number]
        if above >= 0:
            dominated[above] -= 1
            if dominated[above] == 0:
                heapq.heappush(ready, above)
