"""Debug information: which register each Python variable is in, statement by statement, and in which helper.

PTX has no names of variables. Noting them at every statement would slow each trace down, and only a debugger asks: so
it traces the kernel once more, under ``sys.settrace``. At each Python line the local variables of the kernel and of the
helpers that run are noted together with the last statements appended by then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple, Union

from .. import ir
from ..ir.signature import Signature
from ..types import ScalarType, u64
from .builder import thread
from .introspection.call_sites import is_user_file
from .memory.arrays import View
from .memory.declared import Declared
from .memory.pointers import Pointer
from .tracing import trace
from .values.value import Negated, Value

__all__ = ["Constant", "Extent", "Frame", "Held", "Pointed", "Scope", "variable_scopes"]

Constant = Union[bool, int, float, str]
Extent = Union[int, "Held"]
"""Of an array: a number, or the register that has it."""


_CONSTANTS = (bool, int, float, str)


class Pointed(NamedTuple):
    """What a pointer points to: elements of ``type``, ``offset`` bytes from what its register holds, or its symbol."""

    type: ScalarType
    space: str
    offset: int
    symbol: str = ""
    shape: tuple[Extent, ...] | None = None
    strides: tuple[Extent, ...] = ()
    """In elements."""


class Held(NamedTuple):
    """What a variable is at run time: a register, read as a number of ``type``; "" of an array that is a variable."""

    register: str
    type: ScalarType
    points: Pointed | None = None


class Frame(NamedTuple):
    """A Python function that runs: where it is, its variables, and those that are numbers or texts while tracing."""

    function: str
    file: str
    line: int
    variables: dict[str, Held]
    constants: dict[str, Constant]


class Scope(NamedTuple):
    """The functions that run from a statement on, innermost first; statements are counted without labels."""

    start: int
    frames: tuple[Frame, ...]

    @property
    def variables(self) -> dict[str, Held]:
        """Those of the innermost function."""
        return self.frames[0].variables


def variable_scopes(
    function: Callable[..., object], *, constants: Mapping[str, Any], arch: str, name: str, signature: Signature
) -> list[Scope]:
    """The variables of a kernel function in the order of its statements."""
    recorder, before = _Recorder(function.__code__), sys.gettrace()
    sys.settrace(recorder.called)
    try:
        module = trace(function, constants=constants, arch=arch, name=name, signature=signature)
    finally:
        sys.settrace(before)
    statements = list(_statements(module.function(name).body or ()))
    places = {id(s): n for n, s in enumerate(statements)}
    files = {s.loc.file for s in statements if s.loc is not None}
    scopes: list[Scope] = []
    for last, frames in recorder.seen:
        if frames[0].file in files:
            place = next((places[id(s)] + 1 for s in reversed(last) if id(s) in places), 0)
            scopes.append(Scope(max(place, scopes[-1].start if scopes else 0), frames))
    return scopes


def _statements(body: Iterable[ir.Statement]) -> Iterator[ir.Instruction | ir.Call]:
    return (s for s in body if isinstance(s, (ir.Instruction, ir.Call)))


class _Recorder:
    """Notes the local variables of the user's functions while a kernel is traced."""

    LOOKBACK = 64
    """Statements to remember at a line: loads of parameters that are never used are dropped later."""

    def __init__(self, kernel: CodeType) -> None:
        self.kernel = kernel
        self.seen: list[tuple[list[ir.Instruction | ir.Call], tuple[Frame, ...]]] = []

    def called(self, frame: FrameType, _: str, __: Any) -> Any:
        return self._event if is_user_file(frame.f_code.co_filename) else None

    def _event(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "return":
            frame = self._outer(frame)
        trace = thread.trace
        if event in ("line", "return") and trace is not None:
            last = list(_statements(trace.body[-self.LOOKBACK :]))
            self.seen.append((last, tuple(self._frames(frame))))
        return self._event

    def _outer(self, frame: FrameType) -> FrameType:
        """The user's function that has called one, in place or through ptxdsl."""
        back = frame.f_back if frame.f_code is not self.kernel else None
        while back is not None:
            if is_user_file(back.f_code.co_filename) or back.f_code is self.kernel:
                return back
            back = back.f_back
        return frame

    def _frames(self, innermost: FrameType) -> Iterator[Frame]:
        """The user's functions from one out to the kernel."""
        frame: FrameType | None = innermost
        while frame is not None:
            code = frame.f_code
            if is_user_file(code.co_filename) or code is self.kernel:
                constants = {name: value for name, value in frame.f_locals.items() if type(value) in _CONSTANTS}
                yield Frame(code.co_name, code.co_filename, frame.f_lineno, _held(frame.f_locals), constants)
            if code is self.kernel:
                return
            frame = frame.f_back


def _held(variables: Mapping[str, Any]) -> dict[str, Held]:
    """The variables that are there at run time: values, pointers, and the elements of lists and tuples of these."""
    found: dict[str, Held] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, Pointer):
            found[name] = _pointer(value)
        elif isinstance(value, Value) and not isinstance(value, Negated):  # whose register has the opposite
            found[name] = Held(value.register.name, value.type)
        elif isinstance(value, (list, tuple)) and len(value) <= 64:
            for number, item in enumerate(value):
                add(f"{name}[{number}]", item)

    for name, value in variables.items():
        if not name.startswith("@"):
            add(name, value)
    return found


def _pointer(pointer: Pointer) -> Held:
    base = pointer.base
    shape: tuple[Extent, ...] | None = None
    strides: tuple[Extent, ...] = ()
    if isinstance(pointer, View):
        shape, strides = tuple(map(_extent, pointer.shape)), tuple(map(_extent, pointer.strides))
    symbol = base.symbol.symbol if isinstance(base, Declared) else ""
    points = Pointed(pointer.dtype, str(pointer.space), pointer.offset, symbol, shape, strides)
    if isinstance(base, Declared):
        return Held("", u64, points)
    return Held(base.register.name, base.type, points)


def _extent(extent: Any) -> Extent:
    return Held(extent.register.name, extent.type) if isinstance(extent, Value) else int(extent)
