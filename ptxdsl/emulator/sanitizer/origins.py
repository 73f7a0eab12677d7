"""Where an undefined value comes from: backwards through what computed it, to a load or a register without a value."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ...ir import Instruction
from ..codegen.code import Code
from ..rewrite.deferred_loads import is_pure
from ..rewrite.definedness import checks_definedness

__all__ = ["Origin", "Origins"]

Reader = tuple[int, int, int]
"""Block, warp and lane."""


class Origin(NamedTuple):
    """The statement that first reads what is undefined: a register, or, from ``host``, memory."""

    place: int
    register: str
    host: int | None


class Origins:
    """The origins of values in one function. ``loads``: for each load of unwritten memory, who has read where."""

    def __init__(self, code: Code, loads: dict[int, dict[Reader, int]]) -> None:
        self.code, self.statements, self.loads = code, code.graph.statements, loads
        self.known: dict[tuple[str, int], Origin] = {}
        """Those of registers without a value, by register and use."""
        self.writers: dict[str, list[int]] = {}
        self.uses = [[register.name for register in op.uses] for op in code.graph.def_use]
        self.flags = {name for names in self.uses for name in names if name.endswith(".written")}
        for place, op in enumerate(code.graph.def_use):
            if not checks_definedness(op.statement):
                for register in op.writes:
                    self.writers.setdefault(register.name, []).append(place)

    def of(self, register: str, use: int, reader: Reader) -> Origin:
        """The nearest origin of a register that a statement uses: a load by this thread if there is one."""
        first, others = Origin(use, register, None), None
        todo = deque([first])
        seen = {register}
        while todo:
            at = todo.popleft()
            for place in self.writers.get(at.register, ()):
                found = self.loads.get(place)
                if found is not None:
                    if reader in found:
                        return Origin(place, at.register, found[reader])
                    others = others or Origin(place, at.register, next(iter(found.values())))
                statement = self.statements[place]
                if isinstance(statement, Instruction) and is_pure(statement.form):
                    reads = at.place if statement.form.opcode == "mov" else place
                    fresh = [name for name in self.uses[place] if name not in seen]
                    seen.update(fresh)
                    todo.extend(Origin(reads, name, None) for name in fresh)
        if others is None and (register, use) not in self.known:
            self.known[register, use] = self.without_value(register, use)
        return others or self.known[register, use]

    def without_value(self, register: str, use: int) -> Origin:
        """The first read of a register that may have no value, by way of what computes with it."""
        found, name, seen = Origin(use, register, None), register, {register}
        flags = self.flags
        while True:
            for place in self.writers.get(name, ()):
                statement = self.statements[place]
                fresh = [n for n in self.uses[place] if f"{n}.written" in flags and n not in seen]
                if isinstance(statement, Instruction) and is_pure(statement.form) and fresh:
                    name = fresh[0]
                    seen.add(name)
                    if statement.form.opcode != "mov":
                        found = Origin(place, name, None)
                    break
            else:
                return found
