"""Which Python variable a register is, for a debugger.

PTX has no names of variables, so the kernel is traced once more, with an eye on the local variables of its function:
at each line they are noted together with the last instruction that was there by then. Nothing of this is done unless
somebody debugs.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from ...ir import Call, Function, Instruction, Register
from ...types import ScalarType

__all__ = ["Held", "Names"]


class Held(NamedTuple):
    """What a variable is at run time: a register, read as a number of ``type``."""

    register: str
    type: ScalarType


class Names:
    """The variables at each statement of a traced kernel, by the line of the statement in the PTX text."""

    def __init__(self, scopes: list[tuple[int, dict[str, Held]]], lines: list[int]) -> None:
        self._starts = [start for start, _ in scopes]
        self._scopes = [scope for _, scope in scopes]
        self._places = {line: place for place, line in enumerate(lines)}
        self.of_register: dict[str, str] = {}
        for scope in self._scopes:
            for name, held in scope.items():
                self.of_register.setdefault(held.register, name)

    def at(self, ptx_line: int) -> dict[str, Held]:
        """The variables just before a statement; none where it is no statement of the kernel's own text."""
        place = self._places.get(ptx_line)
        if place is None:
            return {}
        found = bisect_right(self._starts, place) - 1
        return self._scopes[found] if found >= 0 else {}

    @classmethod
    def of(cls, kernel: Any, constants: Mapping[str, Any], parsed: Function) -> Names:
        """Trace a kernel of Python again; ``parsed`` is its entry as the emulator has it."""
        watch = _Watch()
        statements = list(_statements(watch.trace(kernel, constants).function(kernel.entry)))
        places = {id(s): n for n, s in enumerate(statements)}
        files = {s.loc.file for s in statements if s.loc is not None}
        scopes: list[tuple[int, dict[str, Held]]] = []
        for file, last, scope in watch.seen:
            if file not in files:
                continue
            place = next((places[id(s)] + 1 for s in reversed(last) if id(s) in places), 0)
            scopes.append((max(place, scopes[-1][0] if scopes else 0), scope))
        return cls(scopes, [statement.line for statement in _statements(parsed)])


def _statements(function: Function) -> Iterator[Instruction | Call]:
    return (s for s in function.body or () if isinstance(s, (Instruction, Call)))


class _Watch:
    """Looks at the locals of the user's functions while a kernel is traced."""

    LOOKBACK = 64
    """Statements to remember at a line: those loads of parameters among them that nobody uses are dropped later."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[Any], dict[str, Held]]] = []

    def trace(self, kernel: Any, constants: Mapping[str, Any]) -> Any:
        from ...config import current
        from ...language import trace

        values = {**kernel.signature.constants, **constants}
        arch, before = kernel.arch or current().arch, sys.gettrace()
        sys.settrace(self._called)
        try:
            return trace(kernel.function, constants=values, arch=arch, name=kernel.entry, signature=kernel.signature)
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, _: str, __: Any) -> Any:
        from ...language.introspection.call_sites import is_user_file

        return self._event if is_user_file(frame.f_code.co_filename) else None

    def _event(self, frame: FrameType, event: str, _: Any) -> Any:
        from ...language.builder import active
        from ...language.introspection.call_sites import is_user_file

        back = frame.f_back
        if event == "return" and back is not None and is_user_file(back.f_code.co_filename):
            frame = back
        trace = active()
        if event in ("line", "return") and trace is not None:
            last = [s for s in trace.body[-self.LOOKBACK :] if isinstance(s, (Instruction, Call))]
            self.seen.append((frame.f_code.co_filename, last, _held(frame.f_locals)))
        return self._event


def _held(variables: Mapping[str, Any]) -> dict[str, Held]:
    """The variables that are in registers: values, pointers, and the elements of lists and tuples of these."""
    from ...language.memory.pointers import Pointer
    from ...language.values.value import Value

    found: dict[str, Held] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Pointer):
            value = value.base
        if isinstance(value, Value):
            register = getattr(value, "register", None)
            if isinstance(register, Register):
                found[name] = Held(register.name, value.type)
        elif isinstance(value, (list, tuple)) and len(value) <= 64:
            for number, item in enumerate(value):
                add(f"{name}[{number}]", item)

    for name, value in variables.items():
        if not name.startswith("@"):
            add(name, value)
    return found
