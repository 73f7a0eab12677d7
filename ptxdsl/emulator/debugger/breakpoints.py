"""Where a debugger stops: at lines, under conditions, counted, or with a message in place of a stop."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from dataclasses import dataclass, field

from ..machine.layout import LANES
from .expressions import evaluate, parse, shown
from .places import Places
from .view import DebugError, View

__all__ = ["Breakpoint", "interpolated"]

_HITS = re.compile(r"\s*(>=|<=|==|>|<|%)?\s*(\d+)\s*$")


@dataclass(eq=False)
class Breakpoint:
    """Stop at a line of ``file`` (None: of the PTX text).

    ``condition`` is an expression that must hold for some active lane; ``hits`` says which of the times it does:
    ``"3"`` or ``">= 3"`` (from the third on), ``"== 3"``, ``"% 3"`` (each third). With a ``message`` it does not stop,
    and tells that, with ``{expressions}`` in it.
    """

    file: str | None
    line: int
    condition: str = ""
    hits: str = ""
    message: str = ""
    id: int = 0
    statement: int | None = None
    """The statement itself, in place of a line."""
    seen: list[int] = field(default_factory=list)
    """The ticks at which it was reached and the condition held."""

    def check(self) -> None:
        """Raise DebugError where what it says is nothing."""
        if self.condition:
            parse(self.condition)
        if self.hits and _HITS.match(self.hits) is None:
            raise DebugError(f"`{self.hits}` is no count of hits", hint="`5`, `>= 5`, `== 5` or `% 5`")
        for expression in re.findall(r"\{([^{}]*)\}", self.message):
            parse(expression)

    def places(self, places: Places) -> list[int]:
        """The statements at which it stops."""
        if self.statement is not None:
            return [self.statement] if self.statement < len(places.statements) else []
        return places.at_line(self.file, self.line)

    def lane(self, view: View, lanes: int, tick: int) -> int | None:
        """The first of some lanes for which it stops now; None where there is none. Raises DebugError."""
        for lane in (lane for lane in range(LANES) if lanes >> lane & 1):
            if not self.condition or evaluate(self.condition, view.of(lane)):
                return lane if self._counts(tick) else None
        return None

    def _counts(self, tick: int) -> bool:
        number = bisect_left(self.seen, tick) + 1
        if number > len(self.seen) or self.seen[number - 1] != tick:
            insort(self.seen, tick)
        if not self.hits:
            return True
        found = _HITS.match(self.hits)
        assert found is not None
        wanted = int(found[2])
        answers = {
            ">=": number >= wanted, "<=": number <= wanted, "==": number == wanted, ">": number > wanted,
            "<": number < wanted, "%": wanted > 0 and number % wanted == 0,
        }
        return answers[found[1] or ">="]


def interpolated(message: str, view: View) -> str:
    """A message with the values of the expressions in braces."""

    def value(match: re.Match[str]) -> str:
        try:
            return shown(evaluate(match[1], view))
        except DebugError as error:
            return f"<{error.message}>"

    return re.sub(r"\{([^{}]*)\}", value, message)
