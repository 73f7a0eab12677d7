"""A prompt at the lines of one thread, with its registers by the names of Python's variables."""

from __future__ import annotations

import cmd
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any

from ...errors import LaunchError, Loc, caller
from ...ir import Call, Function, Instruction
from ..runtime.block_state import BlockState
from ..machine.unsupported import render
from .observed_thread import ObservedThread, formatted
from .variable_names import Held

__all__ = ["debug"]


class _Quit(Exception):
    """The user ends the session."""


class _Debugger(ObservedThread, cmd.Cmd):
    """Stop at lines of one thread; type help."""

    what = "ptxdsl.debug()"
    prompt = "(ptxdsl) "

    def __init__(self, block: Any, thread: Any, breakpoints: Iterable[int], stdin: Any, stdout: Any) -> None:
        ObservedThread.__init__(self, block, thread)
        cmd.Cmd.__init__(self, stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.breakpoints = set(breakpoints)
        self._mode = "continue" if self.breakpoints else "step"
        self._line: Any = None
        self._lines: list[int] = []

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def begin(self, function: Function) -> None:
        statements = [s for s in function.body or () if isinstance(s, (Instruction, Call))]
        if self._python is None:
            self._lines = sorted({s.line for s in statements})
        else:
            file = self._python[0].loc.file
            self._lines = sorted({s.loc.line for s in statements if s.loc is not None and s.loc.file == file})
        for line in self.breakpoints.difference(self._lines):
            raise LaunchError(
                f"no instruction of kernel `{function.name}` comes from line {line}", loc=caller(),
                hint=f"lines with instructions: {', '.join(map(str, self._lines))}",
            )

    def at(self, state: BlockState, statement: Instruction | Call, values: dict[str, Any]) -> None:  # noqa: ARG002
        line: Any = statement.loc if self._python is not None else statement.line
        fresh, self._line = line != self._line, line
        stops = {"step": True, "next": fresh}.get(self._mode, False)
        if stops or (fresh and self._number(line) in self.breakpoints):
            self._state, self._statement = state, statement
            self.say(f"> {statement.loc or f'PTX line {statement.line}'}\n-> {render(statement)}")
            self.cmdloop()

    def _number(self, line: Any) -> int | None:
        """The number of a line of the kernel's file, None for a line of another one."""
        if isinstance(line, Loc):
            return line.line if self._python is not None and line.file == self._python[0].loc.file else None
        return line

    def _go(self, mode: str) -> bool:
        self._mode = mode
        return True

    def do_step(self, _: str) -> bool:
        """step: go on to the next instruction."""
        return self._go("step")

    def do_next(self, _: str) -> bool:
        """next: go on to the next line of Python."""
        return self._go("next")

    def do_continue(self, _: str) -> bool:
        """continue: go on to the next breakpoint."""
        return self._go("continue")

    def do_quit(self, _: str) -> bool:
        """quit: give the launch up."""
        raise _Quit

    def do_break(self, line: str) -> None:
        """break LINE: stop at a line of the kernel; without one, list the breakpoints."""
        if not line:
            self.say(f"breakpoints: {', '.join(map(str, sorted(self.breakpoints))) or 'none'}")
        elif not line.isdigit() or int(line) not in self._lines:
            lines = ", ".join(map(str, self._lines))
            self.say(f"no instruction comes from line {line}; lines with instructions: {lines}")
        else:
            self.breakpoints.add(int(line))

    def do_clear(self, line: str) -> None:
        """clear LINE: no longer stop at a line."""
        self.breakpoints.discard(int(line) if line.isdigit() else -1)

    def do_print(self, name: str) -> None:
        """print NAME: a Python variable (print acc) or a register (print %r3); without one, all variables."""
        names = self.names.at(self._statement.line) if self.names is not None else {}
        if not name:
            for variable in names:
                self.do_print(variable)
            return
        held = names.get(name)
        if held is None and name in self.registers:
            held = Held(name, self.type_of(name, self.registers[name].type))
        if held is None:
            self.say(f"there is no variable `{name}` here; there are {', '.join(names) or 'none'}")
        elif held.register not in self.written:
            self.say(f"{name} has no value yet ({held.type} {held.register})")
        else:
            value = formatted(self.value(self._state, held.register, held.type))
            self.say(f"{name} = {value} ({held.type} {held.register})")

    def do_registers(self, _: str) -> None:
        """registers: every register that has a value."""
        names = self.names.of_register if self.names is not None else {}
        for register, declared in self.registers.items():
            if register in self.written:
                name = f"  {names[register]}" if register in names else ""
                value = self.value(self._state, register, self.type_of(register, declared.type))
                self.say(f"{register} = {formatted(value)}{name}")

    def do_where(self, _: str) -> None:
        """where: the line, the instruction and the thread."""
        place = self._statement.loc or f"PTX line {self._statement.line}"
        self.say(f"thread {self.thread} of block {self.block}, {place}\n{render(self._statement)}")

    do_s, do_n, do_c, do_q = do_step, do_next, do_continue, do_quit
    do_b, do_p, do_r, do_w = do_break, do_print, do_registers, do_where
    do_EOF = do_quit  # noqa: N815


def debug(
    launch: Callable[..., object], *args: object, block: Any = 0, thread: Any = 0, breakpoints: Iterable[int] = (),
    stdin: IO[str] | None = None, stdout: IO[str] | None = None, **named: object,
) -> None:
    """Stop at lines of one thread, with its registers by the names of Python's variables.

    Calls ``launch(*args, **named)``, which launches one kernel on the emulator: ``debug(saxpy[4, 256], n, a, x, y,
    thread=3, breakpoints=[12])``. ``breakpoints`` are lines of the kernel's file (of the PTX text, for PTX that was
    loaded); without any it stops at the first instruction. At the prompt: step (an instruction), next (a line),
    continue, break LINE, clear LINE, print NAME, registers, where, quit, each also by its first letter. Commands come
    from ``stdin`` and answers go to ``stdout``, those of the process if not given. Raises LaunchError for a thread or
    a line that is not there and for a launch on a GPU, and what the launch raises.
    """
    debugger = _Debugger(block, thread, breakpoints, stdin, stdout or sys.stdout)
    with debugger:
        try:
            launch(*args, **named)
        except _Quit:
            debugger.say("given up; what was stored until here stays")
        else:
            debugger.say(f"the launch has ended; thread {debugger.thread} of block {debugger.block} with it")
