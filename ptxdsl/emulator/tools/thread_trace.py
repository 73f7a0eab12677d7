"""One thread of a launch as a list: each instruction that it executed, with its operands' values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...errors import EmulationError, LaunchError, Loc
from ...options import checked_options
from ...ir import Call, Instruction
from ..runtime.block_state import BlockState
from ..machine.unsupported import render
from .observed_thread import ObservedThread, formatted
from .profile_table import place

__all__ = ["Step", "ThreadTrace", "trace_thread"]


class Step(NamedTuple):
    """An instruction that a thread executed: its Python line, its text, and its operands' values.

    Sources have the number that was read, results the one that was written; a register that holds a Python variable
    goes by the variable's name.
    """

    loc: Loc | None
    text: str
    registers: dict[str, int | float | bool]


class ThreadTrace(list[Step]):
    """The steps of a thread, in order; printed, a table.

    ``error`` is what went wrong in the launch, None where nothing did.
    """

    error: EmulationError | None = None

    def __str__(self) -> str:
        places = [place(step.loc) if step.loc else "" for step in self]
        width = max([len(text) for text in places] or [0])
        wide = max([len(step.text) for step in self] or [0])
        lines = []
        for n, (step, where) in enumerate(zip(self, places)):
            where = where if not n or step.loc != self[n - 1].loc else ""
            values = ", ".join(f"{name} = {formatted(value)}" for name, value in step.registers.items())
            lines.append(f"{where:{width}}  {step.text:{wide}}  {values}".rstrip())
        if self.error is not None:
            lines.append(f"{type(self.error).__name__}: {self.error}")
        return "\n".join(lines)


class _Tracer(ObservedThread):
    what = "ptxdsl.trace_thread()"

    def __init__(self, block: Any, thread: Any) -> None:
        super().__init__(block, thread)
        self.steps = ThreadTrace()

    def at(self, state: BlockState, statement: Instruction | Call, values: dict[str, Any]) -> None:  # noqa: ARG002
        self.steps.append(Step(statement.loc, render(statement), values))


@checked_options(LaunchError, "trace_thread")
def trace_thread(
    launch: Callable[..., object], *args: object, block: Any = 0, thread: Any = 0, **named: object
) -> ThreadTrace:
    """What one thread does: calls ``launch(*args, **named)``, which launches one kernel on the emulator.

    ``block`` and ``thread`` are its indices, an int or a tuple of up to three. Where the kernel fails, the trace ends
    with the failing instruction and ``error`` holds the EmulationError. Raises LaunchError for a thread that is not
    there and for a launch on a GPU.

    >>> from ptxdsl import Ptr, f32, ptx, ptx_kernel, trace_thread, use
    >>> @ptx_kernel
    ... def double(x: Ptr[f32]):
    ...     i = ptx.tid.x
    ...     v = x[i]
    ...     x[i] = v + v
    >>> x = np.arange(4, dtype=np.float32)
    >>> with use("emulator"):
    ...     steps = trace_thread(double[1, 4], x, thread=3)
    >>> steps[-2].text, steps[-2].registers
    ('st.global.f32 [%rd2], %f1', {...: 6.0})
    """
    tracer = _Tracer(block, thread)
    with tracer:
        try:
            launch(*args, **named)
        except EmulationError as error:
            tracer.steps.error = error
    return tracer.steps
