"""Which stronger instruction or fence would forbid an outcome.

Stronger orders and fences change no value that a thread computes, so that they can only take executions away. So the
executions that show the outcome are decided again with some of their events changed; those of one statement together,
since they are one line of the program. Small changes are tried first: one, then two. Larger repairs are not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

from ...errors import UnknownInstruction
from ...isa import Form, lookup
from ...isa.effects import ORDERS, SCOPES
from .axioms import Execution
from .events import SPREAD, Event, Identity
from .wording import place_of

__all__ = ["Change", "repair"]

MOST = 3000
"""Combinations that are tried."""
_COSTS = {"relaxed": 1, "acquire": 2, "release": 2, "acq_rel": 3}


class Change(NamedTuple):
    """What to do about a statement: make it another instruction, or put a fence before it, where ``mnemonic`` is one.

    ``order`` and ``scope`` are what it has then.
    """

    cost: int
    statement: int
    order: str
    scope: str
    mnemonic: str
    fence: bool = False

    def text(self, statement: Any) -> str:
        """``st.release.gpu.global.u32 in place of st.global.u32 at mp.py:12``."""
        if self.fence:
            return f"`{self.mnemonic}` before {place_of(statement)}"
        return f"`{self.mnemonic}` in place of `{statement.form.mnemonic}` at {place_of(statement)}"


@cache
def _stronger(form: Form, scope: str) -> tuple[tuple[str, str], ...]:
    """The orders in which there is an instruction in place of another one that also has its own, with its mnemonic."""
    kept = [token for token in form.tokens if token not in ORDERS and token not in SCOPES]
    own = form.effects.order if form.effects.order in _COSTS else "relaxed"
    found = {}
    for wanted in _COSTS:
        order = "acq_rel" if {own, wanted} >= {"acquire", "release"} else max(own, wanted, key=_COSTS.__getitem__)
        mnemonic = ".".join((form.opcode, order, scope, *kept))
        try:
            lookup(mnemonic)
        except UnknownInstruction:
            continue
        found[order] = mnemonic
    return tuple(found.items())


def _changes(event: Event, scope: str, first: bool) -> Iterable[Change]:
    """What can be done about a memory operation, or before a copy begins."""
    number = id(event.statement)
    if event.begins >= 0:
        yield Change(3, number, "", "", "fence.proxy.async", True)
        return
    for order, mnemonic in _stronger(event.statement.form, _widest(scope, event.scope)):
        yield Change(_COSTS[order], number, order, scope, mnemonic)
    for cost, order in ((4, "acq_rel"), (6, "sc")):
        if not first:
            yield Change(cost, number, order, scope, f"fence.{order}.{scope}", True)


def _changed(threads: int, events: Sequence[Event], changes: Iterable[Change]) -> list[Event]:
    """The events with changes made; places are doubled, so that there is room before each."""
    by_statement: dict[int, list[Change]] = {}
    for change in changes:
        by_statement.setdefault(change.statement, []).append(change)
    found: list[Event] = []
    for event in events:
        moved = event._replace(who=_moved(event.who), sources=tuple(
            source._replace(event=_moved(source.event)) if source.event is not None else source
            for source in event.sources
        ))
        for change in by_statement.get(id(event.statement), ()):
            if not change.fence:
                moved = _strengthened(moved, change)
            elif event.begins >= 0:
                found.append(Event(moved.who._replace(place=moved.who.place - 1), fences="async"))
            elif not event.who.element and event.who.thread < threads:
                found.append(Event(
                    moved.who._replace(place=moved.who.place - 1), strong=True, fence=True, acquire=True, release=True,
                    sc=change.order == "sc", scope=change.scope, statement=event.statement,
                ))
        found.append(moved)
    return found


def _widest(*scopes: str) -> str:
    return max(scopes, key=lambda scope: SPREAD.index(scope) if scope in SPREAD else -1)


def _strengthened(event: Event, change: Change) -> Event:
    return event._replace(
        strong=True, scope=_widest(change.scope, event.scope),
        acquire=event.acquire or (event.reads and change.order in ("acquire", "acq_rel")),
        release=event.release or (event.writes and change.order in ("release", "acq_rel")),
    )


def _moved(who: Identity) -> Identity:
    return who._replace(place=2 * who.place + 1)


def repair(executions: Sequence[Execution], shows: Callable[[Execution], bool]) -> list[str] | None:
    """What forbids the outcome that ``shows`` finds in these executions; None where one or two changes do not."""
    if not executions:
        return None
    threads = executions[0].threads
    scope = threads.narrowest()
    statements: dict[int, Any] = {}
    found: dict[Change, None] = {}
    for execution in executions:
        for event in execution.events:
            if event.begins >= 0 or (event.nbytes and event.who.thread < len(threads)):
                statements[id(event.statement)] = event.statement
                first = not any(
                    e.nbytes and e.who.thread == event.who.thread and e.who.place < event.who.place
                    for e in execution.events
                )
                found.update(dict.fromkeys(_changes(event, scope, first)))
    singles = sorted(found, key=lambda change: change.cost)
    tried = [(change,) for change in singles]
    pairs = [(a, b) for a, b in combinations(singles, 2) if a.statement != b.statement or a.fence != b.fence]
    candidates: list[tuple[Change, ...]] = [*tried, *sorted(pairs, key=lambda pair: pair[0].cost + pair[1].cost)]
    order = list(executions)
    for changes in candidates[:MOST]:
        for n, execution in enumerate(order):
            if shows(Execution(threads, _changed(len(threads), execution.events, changes))):
                order.insert(0, order.pop(n))  # what refutes one change often refutes the next
                break
        else:
            return [change.text(statements[change.statement]) for change in changes]
    return None
