"""Debug information: which register each Python variable is in, statement by statement.

PTX has no names of variables. Noting them at every statement would slow each trace down, and only a debugger asks: so
it traces the kernel once more, under ``sys.settrace``. At each Python line the local variables are noted together with
the last statements appended by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from .. import ir
from ..ir.signature import Signature
from ..types import ScalarType
from .builder import thread
from .introspection.call_sites import is_user_file
from .memory.pointers import Pointer
from .tracing import trace
from .values.value import Value

__all__ = ["Held", "Scope", "variable_scopes"]


class Held(NamedTuple):
    """What a variable is at run time: a register, read as a number of ``type``."""

    register: str
    type: ScalarType


class Scope(NamedTuple):
    """The variables from a statement on, which is counted without labels and comments."""

    start: int
    variables: dict[str, Held]


def variable_scopes(
    function: Callable[..., object], *, constants: Mapping[str, Any], arch: str, name: str, signature: Signature
) -> list[Scope]:
    """The variables of a kernel function in the order of its statements."""
    recorder, before = _Recorder(), sys.gettrace()
    sys.settrace(recorder.called)
    try:
        module = trace(function, constants=constants, arch=arch, name=name, signature=signature)
    finally:
        sys.settrace(before)
    statements = list(_statements(module.function(name).body or ()))
    places = {id(s): n for n, s in enumerate(statements)}
    files = {s.loc.file for s in statements if s.loc is not None}
    scopes: list[Scope] = []
    for file, last, variables in recorder.seen:
        if file in files:
            place = next((places[id(s)] + 1 for s in reversed(last) if id(s) in places), 0)
            scopes.append(Scope(max(place, scopes[-1].start if scopes else 0), variables))
    return scopes


def _statements(body: Iterable[ir.Statement]) -> Iterator[ir.Instruction | ir.Call]:
    return (s for s in body if isinstance(s, (ir.Instruction, ir.Call)))


class _Recorder:
    """Notes the local variables of the user's functions while a kernel is traced."""

    LOOKBACK = 64
    """Statements to remember at a line: loads of parameters that are never used are dropped later."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[ir.Instruction | ir.Call], dict[str, Held]]] = []

    def called(self, frame: FrameType, _: str, __: Any) -> Any:
        return self._event if is_user_file(frame.f_code.co_filename) else None

    def _event(self, frame: FrameType, event: str, _: Any) -> Any:
        back = frame.f_back
        if event == "return" and back is not None and is_user_file(back.f_code.co_filename):
            frame = back
        trace = thread.trace
        if event in ("line", "return") and trace is not None:
            last = list(_statements(trace.body[-self.LOOKBACK :]))
            self.seen.append((frame.f_code.co_filename, last, _held(frame.f_locals)))
        return self._event


def _held(variables: Mapping[str, Any]) -> dict[str, Held]:
    """The variables that are in registers: values, pointers, and the elements of lists and tuples of these."""
    found: dict[str, Held] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Pointer):
            value = value.base
        if isinstance(value, Value):
            found[name] = Held(value.register.name, value.type)
        elif isinstance(value, (list, tuple)) and len(value) <= 64:
            for number, item in enumerate(value):
                add(f"{name}[{number}]", item)

    for name, value in variables.items():
        if not name.startswith("@"):
            add(name, value)
    return found
