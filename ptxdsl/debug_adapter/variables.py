"""Scopes and variables for the editor: names, values in the thread in focus, and on demand all lanes and elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..emulator.debugger.debugged_launch import DebuggedLaunch
from ..emulator.debugger.expressions import Lanes, shown
from ..emulator.debugger.view import ArrayView, Cell, DebugError, View
from ..emulator.machine.layout import LANES
from ..emulator.runtime.faults import ranges, set_bits
from ..emulator.tools.variable_names import Held
from ..language.variable_scopes import Pointed

__all__ = ["Variables"]

Record = dict[str, Any]
Children = Callable[[int, int], Iterator[Record]]
MOST = 1000
"""Elements that are given at a time, where the editor does not say how many it wants."""


class Variables:
    """What the editor can ask for by number while the launch has stopped."""

    def __init__(self, launch: DebuggedLaunch) -> None:
        self.launch = launch
        self.hexadecimal = False
        self._children: list[Children] = []
        self._indexed: set[int] = set()

    def children(self, reference: int, start: int, count: int) -> list[Record]:
        """The variables of a scope, lanes of a variable, or elements of an array. Raises DebugError."""
        if not 1 <= reference <= len(self._children):
            raise DebugError(f"there are no variables {reference} since the launch has gone on")
        return list(self._children[reference - 1](start, count or MOST))

    def indexed(self, reference: int) -> bool:
        """Whether they are lanes or elements, rather than variables with names."""
        return reference in self._indexed

    def _reference(self, children: Children) -> int:
        self._children.append(children)
        return len(self._children)

    def scopes(self, view: View) -> list[Record]:
        """The scopes of a function that runs."""
        parameters = view.state.launch.spaces.offsets
        found = [self._scope(f"Thread {view.thread}", lambda *_: self._locals(view, parameters, False), "locals")]
        if any(name in parameters for name in view.variables):
            found.append(self._scope("Parameters", lambda *_: self._locals(view, parameters, True), "arguments"))
        if view.state.launch.spaces.shared:
            found.append(self._scope("Shared memory", lambda *_: self._shared(view)))
        found.append(self._scope("Special registers", lambda *_: self._special(view)))
        found.append(self._scope("Registers of PTX", lambda *_: self._registers(view), "registers", expensive=True))
        return found

    def _scope(self, name: str, children: Children, hint: str = "", expensive: bool = False) -> Record:
        record = {"name": name, "variablesReference": self._reference(children), "expensive": expensive}
        return {**record, "presentationHint": hint} if hint else record

    def _locals(self, view: View, parameters: Any, wanted: bool) -> Iterator[Record]:
        for name, held in view.variables.items():
            if (name in parameters) == wanted:
                yield self.held(name, held, view)
        for name, value in () if wanted else view.constants.items():
            yield self._record(name, repr(value), name, f"{type(value).__name__} of Python")

    def _shared(self, view: View) -> Iterator[Record]:
        launch = view.state.launch
        arrays = {h.points.symbol: h for h in view.variables.values() if h.points is not None and not h.points.offset}
        for name in sorted(launch.spaces.shared):
            entry = launch.ranges[launch.spaces.entries[name]]
            if entry is not None and entry.variable is not None:
                kind = entry.variable.type
                yield self.held(name, arrays.get(name) or Held("", kind, Pointed(kind, "shared", 0, name)), view)

    def _registers(self, view: View) -> Iterator[Record]:
        for name, kind in view.registers.items():
            if view.has_value(name):
                yield self.held(name, Held(name, kind), view)

    def _special(self, view: View) -> Iterator[Record]:
        for name, value in view.special().items():
            yield self._record(name, value, f"%{name}" if isinstance(value, int) else name)
        yield self._record("active lanes", ranges(set_bits(view.active)) or "none")
        ended = (1 << min(LANES, view.state.launch.config.threads - view.warp * LANES)) - 1 & ~view.alive
        yield self._record("lanes that have ended", ranges(set_bits(ended)) or "none")

    # Values

    def text(self, value: Any) -> str:
        """A value as text: numbers as the editor wants them."""
        plain = value[value.lane] if isinstance(value, Lanes) else value.read() if isinstance(value, Cell) else value
        if self.hexadecimal and isinstance(plain, int) and not isinstance(plain, bool):
            return hex(plain)
        return shown(plain)

    def held(self, name: str, held: Held, view: View) -> Record:
        """A variable."""
        if held.points is None:
            return self.value(name, Lanes(name, held.register, view.lanes(held, name), view.lane, view.type_of(held)))
        try:
            return self.value(name, view.array(name, held))
        except DebugError as error:
            return self._record(name, error.message, name, f"pointer to {held.points.type}")

    def value(self, name: str, value: Any) -> Record:
        """What an expression is."""
        if isinstance(value, Lanes):
            kind = f"{value.type} in {value.register}" if value.register else str(value.type)
            record = self._record(name, self.text(value), name, kind)
            if not name.endswith("]"):
                self._expand(record, len(value), lambda start, count: self._lanes(value, start, count))
            return record
        if isinstance(value, ArrayView):
            record = self._record(name, shown(value), name, f"{value} in {value.space} memory")
            self._expand(record, value.size, lambda start, count: self._elements(value, start, count))
            return record
        if isinstance(value, Cell):
            return self._record(name, self.text(value), name, f"{value.type} in {value.space} memory")
        return self._record(name, self.text(value), name, type(value).__name__)

    def _expand(self, record: Record, size: int, children: Children) -> None:
        record["variablesReference"] = self._reference(children)
        record["indexedVariables"] = size
        self._indexed.add(record["variablesReference"])

    def _lanes(self, value: Lanes, start: int, count: int) -> Iterator[Record]:
        for lane in range(start, min(len(value), start + count)):
            one = Lanes(f"{value.name}[{lane}]", value.register, value, lane, value.type)
            yield self._record(f"[{lane}]", self.text(one), one.name, str(value.type))

    def _elements(self, array: ArrayView, start: int, count: int) -> Iterator[Record]:
        for index in array.indices(start, count):
            cell = array.cell(index)
            yield self._record(cell.name[len(array.name) :], self.text(cell), cell.name, str(array.type))

    def _record(self, name: str, value: Any, evaluate: str = "", kind: str = "") -> Record:
        text = value if isinstance(value, str) else self.text(value)
        record = {"name": name, "value": text, "variablesReference": 0}
        return {**record, **({"evaluateName": evaluate} if evaluate else {}), **({"type": kind} if kind else {})}
