"""An outcome of a launch, and all of them together, with what a test asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

import numpy as np

__all__ = ["Condition", "Outcome", "Outcomes"]

Condition = Union[Mapping[str, Any], "Callable[[Outcome], object]"]
"""What is asked of an outcome: a function of it, or the elements of some arrays."""


class Outcome:
    """A final state.

    Each array that the launch was given is an attribute by the name of its parameter, a numpy array: ``outcome.out``,
    or ``outcome["out"]``. ``waiting`` names the threads that wait forever, each with its line; ``error`` is what went
    wrong in a thread, if anything did, and ``raised`` the exception. ``execution`` says how it comes about, in as few
    steps as possible; ``schedule`` makes a launch in that way again, where it was found by its schedule.
    """

    schedule = ""

    def __init__(self, arrays: dict[str, Any], waiting: tuple[str, ...], error: str, steps: int) -> None:
        self.arrays, self.waiting, self.error, self.steps = arrays, waiting, error, steps
        self.raised: Exception | None = None
        self._told: Callable[[], str] = str

    @property
    def execution(self) -> str:
        """The shortest execution that ends so: of each thread the lines, and what each read was given by whom."""
        return self._told()

    def __getattr__(self, name: str) -> Any:
        arrays = self.__dict__.get("arrays", {})
        if name in arrays:
            return arrays[name]
        raise AttributeError(self._lacks(name))

    def __getitem__(self, name: str) -> Any:
        if name not in self.arrays:
            raise KeyError(self._lacks(name))
        return self.arrays[name]

    def _lacks(self, name: str) -> str:
        return f"the outcome has no array `{name}`; it has {', '.join(self.__dict__.get('arrays', {})) or 'none'}"

    def __repr__(self) -> str:
        said = [f"{name}={array.tolist()}" for name, array in self.arrays.items()]
        said += [f"waits: {each}" for each in self.waiting]
        return f"Outcome({', '.join([*said, *([self.error] if self.error else [])])})"


class Outcomes(list[Outcome]):
    """All outcomes of a launch, each once.

    ``complete``: no thread did more than the bound allows, so that what is not here cannot happen; where it is not,
    ``incomplete`` says why. ``executions``: how many were looked at, or schedules of a larger launch. ``races`` names
    the pairs of lines that race in some execution: conflicting accesses, not both strong, that nothing orders. What
    such code does is PTX's to say and no compiler's; in C++ it is undefined.
    """

    def __init__(self, found: Iterable[Outcome], incomplete: str, races: list[str], executions: int) -> None:
        super().__init__(found)
        self.complete, self.incomplete = not incomplete, incomplete
        self.races, self.executions = races, executions
        self.hint = ""
        """How to have it complete."""
        self._shows: Callable[[Callable[[Outcome], bool]], list[str] | None] = lambda _: None

    def where(self, condition: Condition | None = None, /, **arrays: Any) -> list[Outcome]:
        """The outcomes for which a condition holds: ``where(out=[1, 0])`` or ``where(lambda o: o.out[0] == 1)``."""
        holds = _condition(condition, arrays)
        return [outcome for outcome in self if holds(outcome)]

    def repair(self, condition: Condition | None = None, /, **arrays: Any) -> list[str] | None:
        """The changes, one or two, after which no outcome has the condition; None where none was found."""
        return self._shows(_condition(condition, arrays))

    def forbid(self, condition: Condition | None = None, /, **arrays: Any) -> Outcomes:
        """AssertionError where an outcome has the condition, with its execution and what would forbid it."""
        __tracebackhide__ = True
        found = self.where(condition, **arrays)
        if found:
            raise AssertionError(f"the memory model allows {found[0]!r}:\n{self._told(found[0], condition, arrays)}")
        self._require_complete()
        return self

    def require(self, condition: Condition | None = None, /, **arrays: Any) -> Outcomes:
        """AssertionError where no outcome has the condition."""
        __tracebackhide__ = True
        if not self.where(condition, **arrays):
            raise AssertionError(f"no outcome is so; there are:\n{self}")
        return self

    def always(self, condition: Condition | None = None, /, **arrays: Any) -> Outcomes:
        """AssertionError where an outcome has not the condition, or some thread waits forever or fails."""
        __tracebackhide__ = True
        holds = _condition(condition, arrays)
        return self.forbid(lambda outcome: bool(outcome.waiting or outcome.error) or not holds(outcome))

    def _told(self, outcome: Outcome, condition: Condition | None, arrays: Mapping[str, Any]) -> str:
        changes = self.repair(condition, **arrays)
        mend = f"\nforbidden by {' and '.join(changes)}" if changes else ""
        races = "".join(f"\nrace: {race}" for race in self.races)
        return f"{outcome.execution}{races}{mend}"

    def _require_complete(self) -> None:
        if not self.complete:
            raise AssertionError(f"{self.incomplete}, so that nothing is proved{self.hint}")

    def __str__(self) -> str:
        lines = [repr(outcome) for outcome in self]
        lines += [f"race: {race}" for race in self.races]
        if not self.complete:
            lines.append(f"not all: {self.incomplete}")
        return "\n".join(lines)


def _condition(condition: Condition | None, arrays: Mapping[str, Any]) -> Callable[[Outcome], bool]:
    if callable(condition):
        return lambda outcome: bool(condition(outcome))
    wanted = {**(condition or {}), **arrays}
    return lambda outcome: all(np.array_equal(outcome[name], value) for name, value in wanted.items())
