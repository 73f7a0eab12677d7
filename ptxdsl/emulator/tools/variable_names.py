"""The Python variables of a kernel, and the helpers that run, by the lines of its PTX text, for a debugger."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from ...config import current
from ...ir import Call, Function, Instruction
from ...language.variable_scopes import Constant, Frame, Held, Scope, variable_scopes

__all__ = ["Constant", "Frame", "Held", "Names"]


class Names:
    """The variables at each statement of a traced kernel, by the line of the statement in the PTX text."""

    def __init__(self, scopes: list[Scope], lines: list[int]) -> None:
        self._starts = [scope.start for scope in scopes]
        self._scopes = [scope.frames for scope in scopes]
        self._places = {line: place for place, line in enumerate(lines)}
        self.of_register: dict[str, str] = {}
        for frames in self._scopes:
            for name, held in frames[0].variables.items():
                if held.register:
                    self.of_register.setdefault(held.register, name)

    def frames(self, ptx_line: int) -> tuple[Frame, ...]:
        """The functions that run just before a statement, innermost first; none outside of the kernel's own text."""
        place = self._places.get(ptx_line)
        if place is None:
            return ()
        found = bisect_right(self._starts, place) - 1
        return self._scopes[found] if found >= 0 else ()

    @classmethod
    def of(cls, kernel: Any, constants: Mapping[str, Any], parsed: Function) -> Names:
        """Those of a kernel of Python; ``parsed`` is its entry as the emulator has it."""
        scopes = variable_scopes(
            kernel.function, constants={**kernel.signature.constants, **constants},
            arch=kernel.arch or current().arch, name=kernel.entry, signature=kernel.signature,
        )
        return cls(scopes, [s.line for s in parsed.body or () if isinstance(s, (Instruction, Call))])
