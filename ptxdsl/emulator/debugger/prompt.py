"""A prompt at the lines of one thread, with its registers by the names of Python's variables."""

from __future__ import annotations

import cmd
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import IO, Any

from ...errors import LaunchError, caller, did_you_mean, similar
from ..machine.layout import LANES
from ..machine.unsupported import render
from ..tools.observed_thread import formatted, index_of, within
from ..tools.variable_names import Held
from .breakpoints import Breakpoint
from .debugged_launch import DebuggedLaunch, Stop, Thread
from .expressions import evaluate, shown
from .observer import HISTORY, Debugger, flat_index
from .reverse import back, back_to_breakpoint
from .view import DebugError
from .writers import who

__all__ = ["debug"]


class _Quit(Exception):
    """The user ends the session."""


class _Prompt(Debugger, cmd.Cmd):
    """Stop at lines of one thread; type help."""

    what = "ptxdsl.debug()"
    prompt = "(ptxdsl) "

    def __init__(
        self, block: Any, thread: Any, breakpoints: Iterable[int], history: int, stdin: Any, stdout: Any
    ) -> None:
        Debugger.__init__(self, history)
        cmd.Cmd.__init__(self, stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.block, self.thread = index_of("block", block), index_of("thread", thread)
        self.lines = set(breakpoints)
        self._launched = False

    def say(self, text: str) -> None:
        self.stdout.write(text + "\n")
        self.stdout.flush()

    def launching(self, kernel: Any, constants: Mapping[str, Any], backend: str) -> None:
        super().launching(kernel, constants, backend)
        if self._launched:
            raise LaunchError("a debugger observes one launch, and this is the second", loc=caller())
        self._launched = True
        self._file = kernel.loc.file if hasattr(kernel, "function") else None

    def steer(self, launch: DebuggedLaunch) -> None:
        config = launch.launch.config
        within("block", self.block, config.grid, "grid")
        within("thread", self.thread, config.block, "block")
        flat = flat_index(self.thread, config.block)
        launch.only = launch.thread = Thread(flat_index(self.block, config.grid), flat // LANES, flat % LANES)
        self.launch, self._known = launch, launch.places.lines(self._file)
        for line in sorted(self.lines.difference(self._known)):
            raise LaunchError(
                f"no instruction of kernel `{launch.places.kernel}` comes from line {line}", loc=caller(),
                hint=f"lines with instructions: {', '.join(map(str, self._known))}",
            )
        for line in sorted(self.lines):
            self._add(line)
        self._after(launch.resume() if self.lines else launch.step("instruction"))
        if not self.launch.ended:
            self.cmdloop()

    def _add(self, line: int) -> None:
        self.launch.breakpoints.append(Breakpoint(self._file, line))

    def _after(self, stop: Stop | None) -> bool:
        """Tell where the launch has stopped; whether it has ended."""
        if stop is None:
            return True
        if stop.text:
            self.say(stop.text)
        self._show()
        return False

    def _show(self) -> None:
        statement = self.launch.statement
        self.say(f"> {statement.loc or f'PTX line {statement.line}'}\n-> {render(statement)}")

    def onecmd(self, line: str) -> bool:
        """Do what a line says; what cannot be answered is told."""
        try:
            return bool(super().onecmd(line))
        except DebugError as error:
            self.say(error.message if error.hint is None else f"{error.message}\n  hint: {error.hint}")
            return False

    # Going on and back

    def do_step(self, _: str) -> bool:
        """step: go on to the next instruction."""
        return self._after(self.launch.step("instruction"))

    def do_next(self, _: str) -> bool:
        """next: go on to the next line of Python."""
        return self._after(self.launch.step("into"))

    def do_continue(self, _: str) -> bool:
        """continue: go on to the next breakpoint."""
        return self._after(self.launch.resume())

    def do_reverse_step(self, _: str) -> bool:
        """reverse-step: go back to the instruction before."""
        return self._after(back(self.launch, "instruction"))

    def do_reverse_next(self, _: str) -> bool:
        """reverse-next: go back to the beginning of the line, or of the line before."""
        return self._after(back(self.launch, "into"))

    def do_reverse_continue(self, _: str) -> bool:
        """reverse-continue: go back to where a breakpoint would have stopped last."""
        return self._after(back_to_breakpoint(self.launch))

    def do_quit(self, _: str) -> bool:
        """quit: give the launch up."""
        raise _Quit

    # Breakpoints

    def do_break(self, text: str) -> None:
        """break LINE [if CONDITION]: stop at a line of the kernel; without one, list the breakpoints."""
        line, _, condition = (part.strip() for part in text.partition(" if "))
        if not line:
            lines = ", ".join(map(str, sorted({b.line for b in self.launch.breakpoints})))
            self.say(f"breakpoints: {lines or 'none'}")
        elif not line.isdigit() or int(line) not in self._known:
            lines = ", ".join(map(str, self._known))
            self.say(f"no instruction comes from line {line}; lines with instructions: {lines}")
        else:
            point = Breakpoint(self._file, int(line), condition)
            point.check()
            self.launch.breakpoints.append(point)

    def do_clear(self, line: str) -> None:
        """clear LINE: no longer stop at a line."""
        self.launch.breakpoints = [b for b in self.launch.breakpoints if str(b.line) != line.strip()]

    # Looking

    def do_print(self, text: str) -> None:
        """print NAME: a variable, a register (%r3) or an expression (x[i] + 1); without one, all variables."""
        view = self.launch.view()
        if not text:
            for variable, each in view.variables.items():
                if each.register:
                    self.do_print(variable)
            return
        held = view.variables.get(text)
        if held is None and text in view.registers:
            held = Held(text, view.registers[text])
        if held is None or not held.register:
            self.say(f"{text} = {shown(evaluate(text, view))}")
        elif view.lanes(held, text)[view.lane] is None:
            self.say(f"{text} has no value yet ({held.type} {held.register})")
        else:
            self.say(f"{text} = {formatted(view.number(held, text))} ({view.type_of(held)} {held.register})")

    def do_registers(self, _: str) -> None:
        """registers: every register that has a value."""
        view, names = self.launch.view(), self.launch.places.names
        for register, kind in view.registers.items():
            if view.has_value(register):
                name = names.of_register.get(register) if names is not None else None
                value = formatted(view.number(Held(register, kind)))
                self.say(f"{register} = {value}{f'  {name}' if name else ''}")

    def do_who(self, text: str) -> None:
        """who NAME, who x[3], who *ADDRESS: the instruction and the thread that have written it last."""
        if not text:
            raise DebugError("who wrote what?", hint="`who acc`, `who x[3]`, `who *0x7f0000001000`")
        self.say(str(who(self.launch, text)))

    def do_where(self, _: str) -> None:
        """where: the line, the instruction and the thread, and the helpers that run."""
        statement = self.launch.statement
        place = statement.loc or f"PTX line {statement.line}"
        self.say(f"thread {self.thread} of block {self.block}, {place}\n{render(statement)}")
        frames = self.launch.places.frames(self.launch.place)
        for inner, frame in pairwise(frames):
            self.say(f"{inner.function} is called by {frame.function} at {frame.loc or f'PTX line {frame.ptx_line}'}")

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """Commands may have hyphens."""
        name, _, rest = line.strip().partition(" ")
        spelled = name.replace("-", "_")
        return super().parseline(f"{spelled} {rest}" if hasattr(self, f"do_{spelled}") else line)

    def default(self, line: str) -> None:
        """What is no command."""
        name = line.split(maxsplit=1)[0]
        known = [each.replace("_", "-") for each in self._commands() if len(each) > 2]
        value = f"`print {line}` for the value of a variable; `help` names the commands"
        hint = did_you_mean(similar(name, known, cutoff=0.6), otherwise=value)
        raise DebugError(f"`{name}` is no command", hint=hint)

    def do_help(self, arg: str) -> None:
        """help, help COMMAND: what the commands do, or one."""
        commands, name = self._commands(), arg.replace("-", "_")
        if arg and name not in commands:
            self.default(arg)
        shorter = {function: short for short, function in commands.items() if len(short) <= 2}
        for function in dict.fromkeys([commands[name]] if arg else commands.values()):
            short = f" ({shorter[function]})" if function in shorter else ""
            self.say(f"{inspect.cleandoc(function.__doc__ or '')}{short}")

    def _commands(self) -> dict[str, Callable[..., object]]:
        """The commands by name, short ones too."""
        return {name[3:]: getattr(type(self), name) for name in self.get_names() if name.startswith("do_")}

    do_s, do_n, do_c, do_q = do_step, do_next, do_continue, do_quit
    do_b, do_p, do_r, do_w = do_break, do_print, do_registers, do_where
    do_rs, do_rn, do_rc = do_reverse_step, do_reverse_next, do_reverse_continue
    do_EOF = do_quit  # noqa: N815


def debug(
    launch: Callable[..., object], *args: object, block: Any = 0, thread: Any = 0, breakpoints: Iterable[int] = (),
    history: int = HISTORY, stdin: IO[str] | None = None, stdout: IO[str] | None = None, **named: object,
) -> None:
    """Stop at lines of one thread, with its registers by the names of Python's variables; go on, and back.

    Calls ``launch(*args, **named)``, which launches one kernel on the emulator: ``debug(saxpy[4, 256], n, a, x, y,
    thread=3, breakpoints=[12])``. ``breakpoints`` are lines of the kernel's file (of the PTX text, for PTX that was
    loaded); without any it stops at the first instruction. At the prompt: step (an instruction), next (a line),
    continue, reverse-step, reverse-next, reverse-continue, break LINE [if CONDITION], clear LINE, print NAME, who NAME
    (the instruction and the thread that have written it last), registers, where, quit, each also by its first
    letter(s). It stops where a kernel fails, and where the sanitizer that the launch asks for has found something.

    Going back takes copies of what the launch may write: ``history`` MiB at most. Where these are too few it says so.
    Commands come from ``stdin`` and answers go to ``stdout``, those of the process if not given. Raises LaunchError for
    a thread or a line that is not there and for a launch on a GPU, and what the launch raises.

    >>> import io
    >>> import numpy as np
    >>> from ptxdsl import Ptr, debug, loop, ptx_kernel, reg, u32, use
    >>> @ptx_kernel
    ... def total(n: u32, x: Ptr[u32], out: Ptr[u32]):
    ...     acc = reg(u32, 0)
    ...     with loop(0, n) as i:
    ...         acc += x[i]
    ...     out[0] = acc
    >>> x, out, said = np.arange(5, dtype=np.uint32), np.zeros(1, np.uint32), io.StringIO()
    >>> with use("emulator"):
    ...     debug(total[1, 1], 5, x, out, breakpoints=[6], stdin=io.StringIO("who acc\\ncontinue\\n"), stdout=said)
    >>> print(said.getvalue())
    > ...:6: out[0] = acc
    -> st.global.u32 [%rd1], %acc
    (ptxdsl) acc = 10 was written by thread (0, 0, 0) of block (0, 0, 0)
      at ...:5: acc += x[i]
      PTX line ...: add.u32 %acc, %acc, ...
    (ptxdsl) the launch has ended; thread (0, 0, 0) of block (0, 0, 0) with it
    <BLANKLINE>
    """
    debugger = _Prompt(block, thread, breakpoints, history, stdin, stdout or sys.stdout)
    with debugger:
        try:
            launch(*args, **named)
        except _Quit:
            debugger.say("given up; what was stored until here stays")
        else:
            debugger.say(f"the launch has ended; thread {debugger.thread} of block {debugger.block} with it")
