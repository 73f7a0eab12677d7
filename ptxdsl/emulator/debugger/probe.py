"""What a debugger adds to a kernel's code, and the memory that it shares with that."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from ...ir import Address, Call, Instruction
from ..codegen.code import Code, Source
from ..codegen.translation import translate
from ..instructions.debugging import DebugPoint, NoteExecuted, NoteStored
from ..instructions.lowering import Lowering
from ..instructions.operands import raw
from ..machine.address_spaces import AddressSpaces
from ..machine.allocation import allocate, number_at
from ..machine.debug_control import LOGGED, DebugControl
from ..tools.counters import counted_access
from ..tools.observer import Probed

__all__ = ["Control", "debugged_code"]

_SPACES = ("global", "shared", "generic")
NEVER = (1 << 64) - 1


class Control:
    """The :class:`DebugControl` of a kernel's code. Fields are read and written by their names: ``control["TICK"]``."""

    def __init__(self, statements: int) -> None:
        self._memory, self.address, self._view = allocate(DebugControl.nbytes)
        self._log, log, self._entries = allocate(16 * LOGGED)
        self._flags, flags, self._bytes = allocate(max(1, statements))
        self.statements = statements
        self["LOG"], self["FLAGS"] = log, flags
        self.reset()

    def reset(self) -> None:
        """A launch begins."""
        self["TICK"], self["TARGET"], self["BLOCK"], self["STAMPS"] = 0, NEVER, -1, 1
        self["PAUSE"] = self["WORD"] = self["NBYTES"] = 0
        self.flag(bytes(self.statements))

    def __getitem__(self, name: str) -> int:
        offset, field = DebugControl._fields[name]
        return number_at(self.address + offset, field.nbytes)

    def __setitem__(self, name: str, value: int) -> None:
        offset, field = DebugControl._fields[name]
        data = (value % (1 << 8 * field.nbytes)).to_bytes(field.nbytes, "little")
        ctypes.memmove(self.address + offset, data, field.nbytes)

    def flag(self, flags: bytes) -> None:
        """Set the flags of all statements, and empty the log."""
        self._bytes[: len(flags)] = flags
        self["COUNT"] = 0

    def flags_of(self, place: int) -> int:
        """The flags of a statement."""
        return int(self._bytes[place])

    def logged(self) -> list[tuple[int, int]]:
        """The entries of the log: tick and statement, in order."""
        count = self["COUNT"]
        words = self._entries[: 16 * min(count, LOGGED)].cast("Q").tolist()
        entries = list(zip(words[::2], words[1::2]))
        at = count % LOGGED if count > LOGGED else 0
        return entries[at:] + entries[:at]


class _Probe:
    """Adds the micro-ops of a debugger before each statement."""

    def __init__(self, control: Control) -> None:
        self._control = raw("q", control.address)

    def before(self, low: Lowering, statement: Instruction | Call) -> None:
        place, guard = raw("i", low.place), low.operands.guard(statement)
        low.emit(DebugPoint(), self._control, place)
        low.emit(NoteExecuted(guard.kind), guard, self._control, place)
        access = counted_access(statement.form) if isinstance(statement, Instruction) else None
        if access is not None and access.writes and access.space in _SPACES:
            operand = statement.operands[access.operand]  # type: ignore[union-attr]
            assert isinstance(operand, Address)
            kind, _, address = low.address(statement, operand, access.nbytes, False)  # type: ignore[arg-type]
            low.emit(NoteStored(access.space, kind, access.nbytes, guard.kind), address, guard, self._control)

    def after(self, low: Lowering, statement: Instruction | Call) -> None:
        """Nothing runs after a statement."""


def debugged_code(spaces: AddressSpaces, block: tuple[int, int, int]) -> tuple[Code, Control]:
    """The code of a kernel for a debugger, which is made once, and its control."""
    kept: dict[Any, tuple[Code, Control]] = spaces.notes.setdefault(Control, {})
    if block not in kept:
        control = Control(sum(1 for s in spaces.function.body or () if isinstance(s, (Instruction, Call))))
        instrument = partial(Probed, probe=_Probe(control))
        code = translate(spaces.function, spaces, block, True, instrument, keep_registers=True)
        code.described = code.description._replace(source=Source(spaces.function, spaces, block, instrument))
        kept[block] = code, control
    return kept[block]
